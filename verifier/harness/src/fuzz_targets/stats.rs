//! Statistics of fuzzing: the sizes of the inputs, and the number of those that were compared.
//!
//! libFuzzer counts runs and prints the size of its corpus, but neither the sizes of the inputs of its runs nor how
//! many of them checked anything: it also counts programs that are refused or have undefined behaviour. If the
//! environment variable `IR3_FUZZ_STATS` names a file, the sums are written to it every few hundred inputs: one line of
//! `inputs bytes largest instructions compared`. `ci/fuzz` reads it.

use std::cell::RefCell;
use std::path::PathBuf;

/// The environment variable that names the file.
const VARIABLE: &str = "IR3_FUZZ_STATS";

/// The number of inputs between two writes.
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

/// Counts an input of `bytes` bytes, and the instructions of its program.
pub(super) fn count(bytes: usize, instructions: usize) {
    SUMS.with_borrow_mut(|sums| {
        let Some(file) = &sums.file else { return };
        sums.inputs += 1;
        sums.bytes += bytes as u64;
        sums.largest = sums.largest.max(bytes);
        sums.instructions += instructions as u64;
        if sums.inputs % INTERVAL == 0 {
            // The current input is not yet among those that were compared.
            let Sums { inputs, bytes, largest, instructions, compared, .. } = sums;
            let line = format!("{inputs} {bytes} {largest} {instructions} {compared}\n");
            // The statistics are informative: a fuzzer does not stop because they cannot be written.
            let _ = std::fs::write(file, line);
        }
    });
}

/// Counts the input as compared.
pub(super) fn compared() {
    SUMS.with_borrow_mut(|sums| sums.compared += 1);
}
