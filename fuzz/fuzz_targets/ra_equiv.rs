//! Bytes to nir, nir to registers, compared. The logic is `ir3_verifier::harness::fuzz_targets`.

#![no_main]

use ir3_verifier::harness::fuzz_targets::{ProgramInput, ra_equiv, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: ProgramInput| -> Corpus {
    if settle(ra_equiv(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
