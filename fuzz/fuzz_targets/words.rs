//! Takes words of machine code to text and back. The logic is in `ir3_harness::fuzz_targets`.

#![no_main]

use ir3_harness::fuzz_targets::{WordsInput, settle, words};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: WordsInput| -> Corpus {
    if settle(words(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
