//! Compiles a nir program made of the input bytes to registers, and compares. The logic is in
//! `ir3_harness::fuzz_targets`.

#![no_main]

use ir3_harness::fuzz_targets::{ProgramInput, ra_equiv, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: ProgramInput| -> Corpus {
    if settle(ra_equiv(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
