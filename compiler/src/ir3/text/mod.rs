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
//! The three numbers are the instruction's serial number (what `ssa_12` refers to), its position, and how often its
//! result is used (`XXX` where a pass marked it unused); the last two say nothing that the program does not, so they
//! are neither checked nor kept. A section of a log reads with or without its prefix and its colours.
//!
//! What the reader makes of the places where the text says less than the program means:
//! - `(null)` is an opcode that Mesa's table has no name for: `ccinv`, or with types `read_getlast.macro`.
//! - An immediate of a float operation is the index of a float in the hardware's table
//!   ([`FLUT`](super::legality::FLUT)); the program holds the float's own bits. The writer turns them back, and marks
//!   with `// {raw}` an instruction whose small immediates are no indices.
//! - Array accesses are relative when the instruction has `a0.x` among its sources, unless another operand is what
//!   `a0.x` is for.
//! - `(kill)` stands on the first source that reads a value for the last time; further sources of the instruction that
//!   read the same place die there too.
//! - `ball` and `bany` print no inversion: one whose printed target is the block's second successor is inverted.
//! - Results of an instruction with several destinations that have no names yet (`scan_clusters.macro`): the
//!   reduction is the one in a shared register, the exclusive scan is what is used where there is one.
//! - An instruction that is listed under `keeps` but in no block has been removed from the code; it is in the
//!   program, and in no block.
//!
//! What Mesa leaves out altogether is written as a comment behind the line, `// {type=u32, components=2}`, and for the
//! whole program before the first block; the reader takes it back, and does without it. Other comments (`//` to the
//! end of the line) are skipped.
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
pub use reader::read;
pub use writer::write;

#[cfg(test)]
mod tests;
