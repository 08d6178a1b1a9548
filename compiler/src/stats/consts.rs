//! `constlen`: the part of the constant file that a program needs.
//!
//! It is up to the last word that an instruction reads or stores. Words that are stored at `a1.x` are known, since a
//! constant is moved there in the same block. Words that are read at `a0.x` are not: of these the first one counts, and
//! Mesa, which counts the whole array, may have more. Shared constants do not count.

use crate::ir3::const_words::shared_consts;
use crate::ir3::{Attrs, InstrData, Opcode, PhysReg, Program, RegFile, ShaderStage, SrcOperand};
use crate::target::{Generation, Target};

/// The words that the instructions so far use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConstWords {
    end: u32,
    /// The constant in `a1.x`, in the current block.
    a1: Option<u32>,
    /// Words that are loaded on their own.
    shared: (u32, u32),
}

impl ConstWords {
    /// Counts the words of a program.
    pub(super) fn of(program: &Program, target: &Target) -> Self {
        let shared = shared_consts(program, target);
        Self { shared: (shared.start, shared.end), ..Self::default() }
    }

    /// Continues with another block.
    pub(super) const fn start_block(&mut self) {
        self.a1 = None;
    }

    /// Counts an instruction.
    pub(super) fn count(&mut self, data: &InstrData) {
        for src in &data.srcs {
            let first = match src.operand {
                SrcOperand::Const(word) => u32::from(word),
                SrcOperand::ConstRelative(word) => u32::try_from(word).unwrap_or(0),
                _ => continue,
            };
            if (self.shared.0..self.shared.1).contains(&first) {
                continue;
            }
            self.end = self.end.max(first + src.mask.span().max(1));
        }
        let base = |src: Option<&crate::ir3::Src>| match src.map(|src| src.operand) {
            Some(SrcOperand::Immediate(bits)) => Some(bits),
            _ => None,
        };
        let a1 = match data.srcs.iter().any(|src| src.class.file == RegFile::Address) {
            true => self.a1,
            false => Some(0),
        };
        let components = u32::from(data.memory().and_then(|memory| memory.components).unwrap_or(1));
        let stored = match data.opcode {
            Opcode::Stc => base(data.srcs.first()).map(|word| (word, components)),
            Opcode::LdcK => Some((0, 4 * components)),
            Opcode::PushConstsLoadMacro => match data.attrs {
                Attrs::PushConsts { dst, size, .. } => Some((dst, size)),
                _ => None,
            },
            _ => None,
        };
        if let (Some((word, count)), Some(a1)) = (stored, a1) {
            self.end = self.end.max(a1.saturating_add(word).saturating_add(count));
        }
        if data.dsts.iter().any(|dst| dst.place.reg() == Some(PhysReg::A1_X)) {
            self.a1 = base(data.srcs.first()).map(|bits| bits & 0xffff);
        }
    }

    /// The vec4 up to the last word.
    pub(super) const fn vectors(self) -> u32 {
        self.end.div_ceil(4)
    }

    /// The length in vec4, in the unit in which the GPU loads them. Vertex shaders of a6xx and later have at least 8.
    pub(super) fn length(self, stage: Option<ShaderStage>, target: &Target) -> u32 {
        let vec4 = self.vectors();
        let is_vertex = stage == Some(ShaderStage::Vertex) && target.generation >= Generation::A6xx;
        let least = if is_vertex { vec4.max(8) } else { vec4 };
        if target.generation >= Generation::A4xx { least.next_multiple_of(4) } else { least }
    }
}
