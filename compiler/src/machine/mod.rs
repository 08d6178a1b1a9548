//! The machine's programs: a flat list of instructions, and the words that encode them.
//!
//! [`Code`] is a final program as the hardware sees it: instructions one after the other, with the positions to which
//! they branch, and an [`Interface`] that lists what the driver fills. It is flattened from an
//! [`ir3::Program`](crate::ir3::Program), and read back into blocks and edges.

mod blocks;
mod code;
pub mod encoding;
pub mod listing;
mod words;

pub use code::{Code, CodeError, CodeInstr, EntryRegister, Interface, Ip, OutputRegister};
pub(crate) use code::{Flat, FlatInstr};
pub(crate) use words::encode;

#[cfg(test)]
mod tests;
