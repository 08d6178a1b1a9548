//! The machine language of Intel's Gen7, in the form of i965's backends before register allocation, in the two
//! [modes](Mode) of the hardware.
//!
//! In vec4 mode, a register holds four channels, x to w, of 32 bits each for every vertex. An instruction writes the
//! channels of its writemask, each from the channels that the swizzles of its sources name. The flag register f0.0 has
//! one bit for each channel: comparisons and conditional modifiers write the bits of the writemask, predicates read
//! them. Control flow is structured: `if`, `else`, `endif`, `do`, `while`, `break`, `continue` are part of the flat
//! list of instructions.
//!
//! In scalar mode a register holds 32 bits for each invocation, 8 or 16 of them a thread, and the flag one bit.
//! Operands are the same, with x as their only channel. There are 64-bit sums in halves, and the accumulator that
//! `addc` writes its carry to. A message of a scalar program has a source for each word, and its result is in
//! consecutive registers; one of a vec4 program has a source for each operand, and its result in one register.
//!
//! [`text`] reads and writes programs as Mesa's `dump_instructions` prints them; [`validate`] checks the requirements
//! of the hardware and the passes.

mod cfg;
mod instr;
mod message;
pub mod text;
mod validate;

use crate::{nir, words};
pub use cfg::{Blocks, Structure, StructureError};
pub use instr::{
    Cmod, Dst, DstFile, Immediate, Instr, Mask, Opcode, OpcodeKind, Predicate, RegType, Src, SrcFile, Swizzle,
};
pub use message::{Message, MessageError, WordType};
pub use validate::{Invalid, validate};

words! {
    /// The two modes of access to registers. The name is printed before the instructions.
    pub enum Mode {
        /// Four channels of two vertices, with writemasks and swizzles (align16).
        Vec4 = "vec4",
        /// One channel of 8 invocations (align1).
        Simd8 = "simd8",
        /// One channel of 16 invocations (align1).
        Simd16 = "simd16",
    }
}

impl Mode {
    /// The channels of a thread.
    pub fn width(self) -> u8 {
        match self {
            Self::Vec4 | Self::Simd8 => 8,
            Self::Simd16 => 16,
        }
    }

    /// Returns true if operands have one channel.
    pub fn is_scalar(self) -> bool {
        self != Self::Vec4
    }
}

/// A program: nir's header, and its instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The mode of its instructions.
    pub mode: Mode,
    /// The kind of shader.
    pub stage: nir::Stage,
    /// The declarations.
    pub info: nir::Info,
    /// The instructions.
    pub instrs: Vec<Instr>,
}

impl Program {
    /// Removes the instructions that are marked as dead, by their number.
    pub fn remove(&mut self, dead: &[bool]) {
        let mut marks = dead.iter();
        self.instrs.retain(|_| !marks.next().copied().unwrap_or(false));
    }

    /// The number of virtual registers: one more than the last that is named.
    pub fn registers(&self) -> u32 {
        let dsts = self.instrs.iter().map(|instr| instr.registers_written().end);
        let srcs = self.instrs.iter().flat_map(|instr| &instr.srcs).filter_map(|src| match src.file {
            SrcFile::Vgrf(number) => Some(number + 1),
            _ => None,
        });
        dsts.chain(srcs).max().unwrap_or(0)
    }

    /// The number of loops.
    pub fn loops(&self) -> usize {
        self.instrs.iter().filter(|instr| instr.opcode == Opcode::Do).count()
    }
}
