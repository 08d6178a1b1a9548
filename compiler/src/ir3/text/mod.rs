//! Reading and writing programs in the syntax of Mesa's `ir3_print`.
//!
//! A program is its blocks in layout order; an instruction is one line:
//!
//! ```text
//! block2 {
//!     pred: block1
//!     0012:0007:001:  (ss)(sat)add.f ssa_12, (kill)ssa_9, (neg)c3.y
//!     /* keeps:
//!      */
//!     /* succs: block3, block4 (div) */
//! }
//! ```
//!
//! The three numbers are the instruction's serial number (`ssa_12` refers to it), its position, and the number of uses
//! of its result (`XXX` if a pass marked it unused). The last two are redundant, so they are neither checked nor kept.
//! A section of a log may have its prefix and its colours.
//!
//! The text is ambiguous in some places. The reader resolves them as follows:
//! - `(null)` is an opcode without a name in Mesa's table: `ccinv`, or with types `read_getlast.macro`.
//! - An immediate of a float operation is the index of a float in the hardware's table
//!   ([`FLUT`](super::legality::FLUT)); the program holds the float's own bits. The writer converts them back, and
//!   marks with `// {raw}` an instruction whose small immediates are not indices.
//! - Array accesses are relative when the instruction has `a0.x` among its sources, unless another operand is relative
//!   to `a0.x`.
//! - `(kill)` marks the first source that reads a value for the last time; further sources of the instruction that read
//!   the same place die there too.
//! - `ball` and `bany` print no inversion: one whose printed target is the block's second successor is inverted.
//! - Results of an instruction with several destinations may have no names yet (`scan_clusters.macro`): the reduction
//!   is the one in a shared register; the other used one is the exclusive scan if it exists.
//! - An instruction that is listed under `keeps` but in no block has been removed from the code; it is in the program,
//!   and in no block.
//!
//! Attributes that Mesa omits are written as a comment after the line, `// {type=u32, components=2}`, and for the whole
//! program before the first block; the reader parses them, but does not require them. Other comments (`//` to the end
//! of the line) are skipped.
//!
//! Reading numbers all entities in the order of the text, so that `read(&write(p))` is
//! [`p.canonical()`](super::Program::canonical).

mod comment;
mod cursor;
mod line;
mod mnemonic;
mod operand;
mod reader;
mod writer;

pub use cursor::ParseError;
pub(in crate::ir3) use mnemonic::default_attrs;
pub(in crate::ir3) use operand::{write_immediate, write_prefix, write_reg};
pub use reader::{Completion, ReadProgram, read, read_fragment, read_with_positions};
pub use writer::write;

#[cfg(test)]
mod tests;
