//! Copy propagation.

use crate::ir3::Program;
use crate::target::Target;

/// Replaces operands by what was copied into them.
pub fn run(program: &mut Program, target: &Target) {
    let _ = (program, target);
}
