//! The last stage: a final program becomes words, and is read back from them.
//!
//! The words are what the hardware gets. So the program after this stage is the one that they say, in blocks again, with what the
//! driver knows beside them ([`Interface`](crate::machine::Interface)). What an encoding loses or changes is a difference between
//! the two programs.

use crate::ir3::Program;
use crate::machine::{Code, CodeError};
use crate::target::Target;

/// Encodes a program after legalization and decodes the words.
///
/// # Errors
/// If the program is not final, or has an operand that does not fit into its field.
pub fn run(program: &mut Program, target: &Target) -> Result<(), CodeError> {
    let code = Code::from_program(program)?;
    let words = code.encode(target.generation)?;
    *program = Code::decode(target.generation, &words, code.interface)?.to_program()?;
    Ok(())
}
