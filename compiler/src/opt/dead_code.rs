//! Dead-code elimination.

use crate::ir3::Program;

/// Removes what nobody reads.
pub fn run(program: &mut Program) {
    let _ = program;
}
