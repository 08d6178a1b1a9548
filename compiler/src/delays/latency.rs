//! Latency: the number of issue slots between an instruction and a user of its result.
//!
//! The result of the ALU is available after a fixed time, and only distance delays a user: that is the *hard* part,
//! [`Latency::slots`]. Special functions, textures and memory have variable latency, and users wait with `(ss)` or
//! `(sy)`: the expected time is an estimate for the scheduler only.

use crate::ir3::opcode::Latency as LatencyClass;
use crate::ir3::{AddressSpace, Category, Dst, InstrData, Opcode, RegFile, SrcOperand};
use crate::target::{DelaySlots, Target};

/// Returns true if the instruction runs on the scalar ALU.
#[must_use]
pub fn is_scalar_alu(data: &InstrData, target: &Target) -> bool {
    let uniform = |operand: &SrcOperand, file: RegFile| match operand {
        SrcOperand::Place(_) => matches!(file, RegFile::Shared | RegFile::Address),
        _ => true,
    };
    target.has_scalar_alu
        && data.opcode.is_alu()
        && !data.opcode.is_vector_only()
        && is_shared(data.dsts.first())
        && data.srcs.iter().all(|src| uniform(&src.operand, src.class.file))
}

fn is_shared(dst: Option<&Dst>) -> bool {
    dst.is_some_and(|dst| dst.class.file == RegFile::Shared)
}

/// The number of issue slots of an instruction. Instructions of other units, and jumps, take none.
#[must_use]
pub fn issue_slots(data: &InstrData, target: &Target) -> u32 {
    issue_slots_of(data, is_scalar_alu(data, target))
}

fn issue_slots_of(data: &InstrData, is_scalar: bool) -> u32 {
    let counted = match data.opcode.category() {
        Category::Move | Category::Alu2 | Category::Alu3 => !is_scalar,
        Category::Flow => !data.opcode.is_issued_on_the_way(),
        _ => false,
    };
    match data.opcode {
        // Two moves, which legalized programs write as a repetition.
        Opcode::Swz => 2,
        _ if counted => 1 + u32::from(data.repeat),
        _ => 0,
    }
}

/// The mechanism with which a user waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Distance only.
    #[default]
    Distance,
    /// `(ss)`.
    Ss,
    /// `(sy)`.
    Sy,
}

/// The mechanism with which users of an instruction's result wait, if they are not on the scalar ALU themselves.
#[must_use]
pub fn sync(data: &InstrData, target: &Target) -> Sync {
    sync_of(data, || is_scalar_alu(data, target))
}

fn sync_of(data: &InstrData, is_scalar: impl Fn() -> bool) -> Sync {
    let space = || data.memory().and_then(|memory| memory.space);
    match data.opcode.info().latency {
        LatencyClass::Sfu => Sync::Ss,
        LatencyClass::Texture => Sync::Sy,
        LatencyClass::LocalMemory if data.opcode.info().dsts > 0 && !data.opcode.is_atomic() => Sync::Ss,
        // The same atomics are those of buffers below a6xx. In Mesa's texts they are never.
        LatencyClass::LocalMemory
            if data.opcode.is_atomic() && space().is_none_or(|space| space == AddressSpace::Shared) =>
        {
            Sync::Ss
        }
        LatencyClass::LocalMemory | LatencyClass::Memory if data.dsts.is_empty() => Sync::Distance,
        LatencyClass::LocalMemory | LatencyClass::Memory => Sync::Sy,
        LatencyClass::Alu | LatencyClass::Macro
            if data.opcode.is_alu() && is_shared(data.dsts.first()) && !is_scalar() =>
        {
            Sync::Ss
        }
        LatencyClass::Alu | LatencyClass::Macro | LatencyClass::Flow | LatencyClass::Meta => Sync::Distance,
    }
}

/// The properties of an instruction on which its latencies depend, computed once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// The mechanism with which users of its result wait.
    pub sync: Sync,
    /// The issue slots.
    pub slots: u32,
    /// The latency of its result, without the part that depends on the user.
    pub result: Latency,
    /// True if it runs on the scalar ALU.
    pub is_scalar: bool,
}

impl Timing {
    /// Computes the properties of an instruction.
    #[must_use]
    pub fn of(data: &InstrData, target: &Target) -> Self {
        let is_scalar = is_scalar_alu(data, target);
        let sync = sync_of(data, || is_scalar);
        Self {
            sync,
            slots: issue_slots_of(data, is_scalar),
            result: Latency::with(data, sync, is_scalar, target),
            is_scalar,
        }
    }
}

/// An instruction with its properties.
pub type Timed<'a> = (&'a InstrData, &'a Timing);

/// The time from an instruction to a user of its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Slots that are required between the two.
    pub slots: u32,
    /// Preferred slots between them: the required ones, or the time that the user would wait otherwise.
    pub soft: u32,
}

impl Latency {
    const NONE: Self = Self { slots: 0, soft: 0 };

    /// The latency from an instruction to a user of its first result, without the part that depends on the user.
    #[must_use]
    pub fn of(producer: &InstrData, target: &Target) -> Self {
        Timing::of(producer, target).result
    }

    fn with(producer: &InstrData, sync: Sync, is_scalar: bool, target: &Target) -> Self {
        let hard = |slots| Self { slots, soft: slots };
        let DelaySlots { near, far, .. } = target.delay_slots;
        let Some(dst) = producer.dsts.first() else { return Self::NONE };
        if producer.opcode.is_meta() && producer.opcode != Opcode::TexPrefetch {
            return Self::NONE;
        }
        if dst.class.file == RegFile::Address {
            return hard(far);
        }
        match sync {
            Sync::Ss if producer.opcode.is_alu() => Self { slots: 0, soft: 6 },
            Sync::Ss => Self { slots: 0, soft: 10 },
            Sync::Sy => Self { slots: 0, soft: wait(producer) },
            Sync::Distance if !producer.opcode.is_alu() || is_scalar => Self::NONE,
            Sync::Distance if dst.class.file == RegFile::Predicate => hard(far),
            Sync::Distance => hard(near),
        }
    }

    /// The latency from the first result of `producer` to source `index` of `consumer`. Most latencies do not depend on
    /// the index.
    #[must_use]
    pub fn between(producer: Timed<'_>, consumer: Timed<'_>, index: impl FnOnce() -> usize, target: &Target) -> Self {
        let ((producer, producer_timing), (consumer, consumer_timing)) = (producer, consumer);
        let any = producer_timing.result;
        let Some(dst) = producer.dsts.first() else { return any };
        if consumer.opcode.is_meta() || consumer.opcode.is_output() {
            return Self::NONE;
        }
        if any.slots == 0 && any.soft > 0 || dst.class.file == RegFile::Address {
            return any;
        }
        let hard = |slots| Self { slots, soft: slots };
        if !producer.opcode.is_alu() {
            return Self::NONE;
        }
        if producer_timing.is_scalar {
            // Other users wait with `(ss)`, which includes the distance.
            let same =
                consumer_timing.is_scalar && consumer.srcs.first().is_some_and(|src| src.class.half == dst.class.half);
            return if same { Self::NONE } else { Self { slots: 0, soft: 6 } };
        }
        let DelaySlots { near, far, third_source } = target.delay_slots;
        if !consumer.opcode.is_alu() || dst.class.file == RegFile::Predicate {
            return hard(far);
        }
        let index = index();
        let src = &consumer.srcs[index];
        let late = if index == 2 && consumer.opcode.reads_third_late() { third_source } else { 0 };
        hard(if src.class.half == dst.class.half { near - late } else { far - late })
    }
}

/// The approximate latency of a result that users wait for with `(sy)`, in slots.
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
