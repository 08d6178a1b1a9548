//! Bytes to parallel copies, lowered to moves and swaps, both run. The logic is `ir3_verifier::check::fuzz`.

#![no_main]

use ir3_verifier::check::fuzz::{CopyInput, parallel_copy, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: CopyInput| -> Corpus {
    if settle(parallel_copy(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
