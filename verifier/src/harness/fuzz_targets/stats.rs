//! How large the inputs are that a target is given, and how many of them came to a comparison.
//!
//! libFuzzer counts runs and says how large its corpus is, but not how large the inputs were that it ran, nor whether a run
//! checked anything: a program that is refused, or has no meaning in its environment, is a run like any other to it. Where
//! the environment names a file (`IR3_FUZZ_STATS`), the sums are written there every few hundred inputs: one line of
//! `inputs bytes largest instructions compared`. `ci/fuzz` reads it.

use std::cell::RefCell;
use std::path::PathBuf;

/// The variable that names the file.
const VARIABLE: &str = "IR3_FUZZ_STATS";

/// Inputs between two writes.
const INTERVAL: u64 = 256;

struct Sums {
    file: Option<PathBuf>,
    inputs: u64,
    bytes: u64,
    largest: usize,
    instructions: u64,
    compared: u64,
}

thread_local! {
    static SUMS: RefCell<Sums> = RefCell::new(Sums {
        file: std::env::var_os(VARIABLE).map(PathBuf::from),
        inputs: 0,
        bytes: 0,
        largest: 0,
        instructions: 0,
        compared: 0,
    });
}

/// Counts an input of so many bytes, and the instructions of its program.
pub(super) fn count(bytes: usize, instructions: usize) {
    SUMS.with_borrow_mut(|sums| {
        let Some(file) = &sums.file else { return };
        sums.inputs += 1;
        sums.bytes += bytes as u64;
        sums.largest = sums.largest.max(bytes);
        sums.instructions += instructions as u64;
        if sums.inputs % INTERVAL == 0 {
            // The input that is counted now has not been compared yet.
            let Sums { inputs, bytes, largest, instructions, compared, .. } = sums;
            let line = format!("{inputs} {bytes} {largest} {instructions} {compared}\n");
            // Figures for a person: a fuzzer does not stop because they cannot be written.
            let _ = std::fs::write(file, line);
        }
    });
}

/// Counts the input as one that came to a comparison.
pub(super) fn compared() {
    SUMS.with_borrow_mut(|sums| sums.compared += 1);
}
