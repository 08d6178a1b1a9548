//! Lowers parallel copies made of the input bytes, and runs both programs. The logic is in
//! `ir3_harness::fuzz_targets`.

#![no_main]

use ir3_harness::fuzz_targets::{CopyInput, parallel_copy, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: CopyInput| -> Corpus {
    if settle(parallel_copy(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
