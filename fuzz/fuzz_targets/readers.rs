//! Feeds the input bytes to every text reader. The logic is in `ir3_harness::fuzz_targets`.

#![no_main]

use ir3_harness::fuzz_targets::{TextInput, readers, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: TextInput| -> Corpus {
    if settle(readers(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
