//! Bytes to nir, and what all engines say of it. The logic is `ir3_verifier::harness::fuzz_targets`.

#![no_main]

use ir3_verifier::harness::fuzz_targets::{ProgramInput, engines, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: ProgramInput| -> Corpus {
    if settle(engines(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
