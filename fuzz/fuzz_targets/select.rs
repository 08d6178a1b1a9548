//! Compiles a nir program made of the input bytes by selection, copy propagation and dead code elimination, and
//! compares every boundary. The logic is in `ir3_harness::fuzz_targets`.

#![no_main]

use ir3_harness::fuzz_targets::{ProgramInput, select, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: ProgramInput| -> Corpus {
    if settle(select(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
