//! The machine language of Intel's Gen7 in its vec4 form, as i965's vec4 backend has it before register allocation.
//!
//! A register holds four channels, x to w, of 32 bits each for every vertex. An instruction writes the channels of its writemask, each from the
//! channels that the swizzles of its sources name. The flag register f0.0 has one bit for each channel: comparisons and conditional modifiers
//! write the bits of the writemask, predicates read them. Control flow is structured: `if`, `else`, `endif`, `do`, `while`, `break`, `continue`
//! stand in the flat list of instructions.
//!
//! [`text`] reads and writes programs as Mesa's `dump_instructions` prints them; [`validate`] checks what the hardware and the passes rely on.

mod cfg;
mod instr;
pub mod text;
mod validate;

use crate::nir;
pub use cfg::{Blocks, Structure, StructureError};
pub use instr::{
    Cmod, Dst, DstFile, Immediate, Instr, Mask, Opcode, OpcodeKind, Predicate, RegType, Src, SrcFile, Swizzle,
};
pub use validate::{Invalid, validate};

/// A program: its header, as nir has it, and its instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The kind of shader.
    pub stage: nir::Stage,
    /// The declarations.
    pub info: nir::Info,
    /// The instructions.
    pub instrs: Vec<Instr>,
}

impl Program {
    /// The number of virtual registers: one more than the last that is named.
    pub fn registers(&self) -> u32 {
        let dsts = self.instrs.iter().filter_map(|instr| match instr.dst.file {
            DstFile::Vgrf(number) => Some(number + 1),
            _ => None,
        });
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
