//! How many issue slots lie between an instruction and one that reads its result.
//!
//! What the ALU computes is there after a fixed time, and nothing but distance makes a reader wait for it: that is the
//! *hard* part, [`Latency::slots`]. Special functions, textures and memory take as long as they take, and readers wait by
//! `(ss)` or `(sy)`: how long is an estimate, which only a scheduler wants to know.

use crate::ir3::{AddressSpace, Category, Dst, InstrData, Opcode, RegFile, SrcOperand};
use crate::target::Target;

/// Slots until an address register, a predicate, or anything that is not for the ALU may be read.
pub const FAR: u32 = 6;
/// Slots from ALU to ALU.
pub const NEAR: u32 = 3;
/// The third source of a multiplication with addition is read so much later than the others.
pub const THIRD_SOURCE: u32 = 2;

/// Whether the instruction runs on an ALU, that of vectors or that of scalars.
#[must_use]
pub fn is_alu(opcode: Opcode) -> bool {
    matches!(opcode.category(), Category::Move | Category::Alu2 | Category::Alu3)
}

/// Whether the instruction runs on the ALU for what is the same in all lanes.
#[must_use]
pub fn is_scalar_alu(data: &InstrData, target: &Target) -> bool {
    let uniform = |operand: &SrcOperand, file: RegFile| match operand {
        SrcOperand::Place(_) => matches!(file, RegFile::Shared | RegFile::Address),
        _ => true,
    };
    target.has_scalar_alu
        && is_alu(data.opcode)
        && !matches!(data.opcode, Opcode::Movmsk | Opcode::ScanMacro | Opcode::ScanClustersMacro)
        && is_shared(data.dsts.first())
        && data.srcs.iter().all(|src| uniform(&src.operand, src.class.file))
}

fn is_shared(dst: Option<&Dst>) -> bool {
    dst.is_some_and(|dst| dst.class.file == RegFile::Shared)
}

/// Whether the third source is read later than the others.
#[must_use]
pub const fn reads_third_late(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, MadU16 | MadshU16 | MadS16 | MadshM16 | MadU24 | MadS24 | MadF16 | MadF32)
}

/// How many issue slots an instruction takes. What other units do, and jumps, are issued on the way.
#[must_use]
pub fn issue_slots(data: &InstrData, target: &Target) -> u32 {
    use Opcode::*;
    let counted = match data.opcode.category() {
        Category::Move | Category::Alu2 | Category::Alu3 => !is_scalar_alu(data, target),
        Category::Flow => !matches!(data.opcode, Jump | Br | Braa | Brao),
        _ => false,
    };
    match data.opcode {
        // Two moves, which legalized programs say by a repetition.
        Swz => 2,
        _ if counted => 1 + u32::from(data.repeat),
        _ => 0,
    }
}

/// What a reader waits by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Nothing but distance.
    Distance,
    /// `(ss)`.
    Ss,
    /// `(sy)`.
    Sy,
}

/// What the readers of an instruction's result wait by, if they are not on the scalar ALU themselves.
#[must_use]
pub fn sync(data: &InstrData, target: &Target) -> Sync {
    use Opcode::*;
    let shared = is_shared(data.dsts.first());
    match data.opcode.category() {
        Category::Sfu => Sync::Ss,
        Category::Texture => Sync::Sy,
        Category::Move | Category::Alu2 | Category::Alu3 if shared && !is_scalar_alu(data, target) => Sync::Ss,
        Category::Memory => match data.opcode {
            Getfiberid | Shfl | Ldl | Ldlv | Ldlw | Resinfo => Sync::Ss,
            opcode if opcode.is_atomic() && data.memory().and_then(|m| m.space) == Some(AddressSpace::Shared) => {
                Sync::Ss
            }
            _ if data.dsts.is_empty() => Sync::Distance,
            _ => Sync::Sy,
        },
        Category::Meta if data.opcode == TexPrefetch => Sync::Sy,
        _ => Sync::Distance,
    }
}

/// The time from an instruction to a reader of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Slots that must lie between the two.
    pub slots: u32,
    /// Slots that had better lie between them: what must, or how long the reader would wait otherwise.
    pub soft: u32,
}

impl Latency {
    const NONE: Self = Self { slots: 0, soft: 0 };

    /// From an instruction to whoever reads its first result, as far as that does not depend on the reader.
    #[must_use]
    pub fn of(producer: &InstrData, target: &Target) -> Self {
        let hard = |slots| Self { slots, soft: slots };
        let Some(dst) = producer.dsts.first() else { return Self::NONE };
        if producer.opcode.is_meta() && producer.opcode != Opcode::TexPrefetch {
            return Self::NONE;
        }
        if dst.class.file == RegFile::Address {
            return hard(FAR);
        }
        match sync(producer, target) {
            Sync::Ss if is_alu(producer.opcode) => Self { slots: 0, soft: 6 },
            Sync::Ss => Self { slots: 0, soft: 10 },
            Sync::Sy => Self { slots: 0, soft: wait(producer) },
            Sync::Distance if !is_alu(producer.opcode) || is_scalar_alu(producer, target) => Self::NONE,
            Sync::Distance if dst.class.file == RegFile::Predicate => hard(FAR),
            Sync::Distance => hard(NEAR),
        }
    }

    /// From the first result of `producer` to source `index` of `consumer`.
    #[must_use]
    pub fn between(producer: &InstrData, consumer: &InstrData, index: usize, target: &Target) -> Self {
        let any = Self::of(producer, target);
        let Some(dst) = producer.dsts.first() else { return any };
        if consumer.opcode.is_meta() || matches!(consumer.opcode, Opcode::End | Opcode::Chmask) {
            return Self::NONE;
        }
        if any.slots == 0 && any.soft > 0 || dst.class.file == RegFile::Address {
            return any;
        }
        let hard = |slots| Self { slots, soft: slots };
        if !is_alu(producer.opcode) {
            return Self::NONE;
        }
        if is_scalar_alu(producer, target) {
            // Other readers wait by `(ss)`, in which the distance is.
            let same = is_scalar_alu(consumer, target)
                && consumer.srcs.first().is_some_and(|src| src.class.half == dst.class.half);
            return if same { Self::NONE } else { Self { slots: 0, soft: 6 } };
        }
        if !is_alu(consumer.opcode) || dst.class.file == RegFile::Predicate {
            return hard(FAR);
        }
        let src = &consumer.srcs[index];
        let near = if index == 2 && reads_third_late(consumer.opcode) { NEAR - THIRD_SOURCE } else { NEAR };
        hard(if src.class.half == dst.class.half { near } else { near + 3 })
    }
}

/// About how long a result takes that readers wait for by `(sy)`, in slots.
fn wait(data: &InstrData) -> u32 {
    let components = data.dsts.first().map_or(1, |dst| dst.mask.0.count_ones());
    match data.opcode.category() {
        Category::Texture | Category::Meta => match components {
            0 | 1 => 51,
            2 => 53,
            3 => 62,
            _ => 64,
        },
        _ if data.opcode == Opcode::Ldc => 18 + 4 * components,
        _ => 109 + components,
    }
}
