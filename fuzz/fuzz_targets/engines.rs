//! Compares all engines on a nir program made of the input bytes. The logic is in
//! `ir3_harness::fuzz_targets`.

#![no_main]

use ir3_harness::fuzz_targets::{ProgramInput, engines, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: ProgramInput| -> Corpus {
    if settle(engines(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
