//! Bytes to nir, nir to registers, every boundary compared. The logic is `ir3_verifier::check::fuzz_one`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if ir3_verifier::check::fuzz_one(bytes) { Corpus::Keep } else { Corpus::Reject }
});
