//! Bytes to nir, nir to ir3 by selection, copy propagation and dead code, every boundary compared. The logic is `ir3_verifier::harness::fuzz_targets`.

#![no_main]

use ir3_verifier::harness::fuzz_targets::{ProgramInput, select, settle};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: ProgramInput| -> Corpus {
    if settle(select(&input), &input) { Corpus::Keep } else { Corpus::Reject }
});
