//! The checker's model of the machine: the units that execute instructions, the time until a result may be
//! read, and the flag with which a reader waits for it.
//!
//! These are the checker's own rules, each with its source: Mesa 25.0-devel (7d41cfa1a97), `src/freedreno/ir3`. No
//! latency column of the compiler's table of opcodes is read, nor its count of delays or its legalization.

use ir3_compiler::ir3::{Category, Dst, InstrData, InstrFlags, Opcode, OperandFlags, Place, RegFile, Src, SrcOperand};
use ir3_compiler::target::{Generation, Target};

/// The slots between a write of the ALU and its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The slots before a read by the ALU in the same width (`delay_update`, ir3_legalize.c).
    pub near: u32,
    /// The slots before any other read: by another unit, in the other width, of a predicate or of an address
    /// (`delay_update`).
    pub far: u32,
    /// A multiply-add reads its third source this many slots after it is issued (`delay_calc`).
    pub third_late: u32,
}

impl Slots {
    /// The slots of a GPU. Mesa has had those of a7xx since 25.1 (`delay_slots`, ir3_compiler.c). Before, it left the
    /// same slots there as on a6xx, which is no less.
    pub const fn of(target: &Target) -> Self {
        match target.generation {
            Generation::A7xx => Self { near: 2, far: 5, third_late: 1 },
            _ => Self { near: 3, far: 6, third_late: 2 },
        }
    }
}

/// Slots of nops after `prede` where it does not take effect at once (`add_predication_workaround`: `(rpt6)nop`).
pub const AFTER_PREDE: u32 = 7;
/// Slots of nops after the second `predt` or `predf` of a pair, on some GPUs (`(rpt4)nop`).
pub const AFTER_SECOND_PREDICATION: u32 = 5;

/// The unit that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The ALU, of fixed latency.
    Alu,
    /// The scalar ALU: in order, in parallel with the vector ALU (`is_scalar_alu`, ir3.c).
    ScalarAlu,
    /// Special functions (`is_sfu`, ir3.h).
    Special,
    /// Textures, derivatives and quads.
    Texture,
    /// Memory.
    Memory,
    /// Barriers and caches.
    Barrier,
    /// Control flow, and aliases.
    Flow,
}

impl Unit {
    /// The unit of an instruction.
    pub fn of(data: &InstrData, target: &Target) -> Self {
        match data.opcode.category() {
            // It is part of the instruction after it.
            _ if data.opcode == Opcode::Alias => Self::Flow,
            Category::Flow => Self::Flow,
            Category::Move | Category::Alu2 | Category::Alu3 if is_scalar(data, target) => Self::ScalarAlu,
            Category::Move | Category::Alu2 | Category::Alu3 => Self::Alu,
            Category::Sfu => Self::Special,
            Category::Texture => Self::Texture,
            Category::Memory if data.opcode == Opcode::Getfiberid => Self::Special,
            Category::Memory | Category::Meta => Self::Memory,
            Category::Barrier => Self::Barrier,
        }
    }

    /// Returns true for both ALUs (`is_alu`, ir3.h).
    pub fn is_alu(self) -> bool {
        matches!(self, Self::Alu | Self::ScalarAlu)
    }
}

/// Returns true if the scalar ALU executes an instruction: its result is shared, and it is no move from a register of
/// lanes, which uses the path that existed before the scalar ALU (`is_scalar_alu`).
fn is_scalar(data: &InstrData, target: &Target) -> bool {
    let uniform = |src: &Src| match src.operand {
        SrcOperand::Place(_) => src.class.file == RegFile::Shared,
        _ => true,
    };
    target.has_scalar_alu
        && data.opcode != Opcode::Movmsk
        && (writes_shared(data) || writes_uniform(data))
        && (data.opcode != Opcode::Mov || data.srcs.first().is_some_and(uniform))
}

/// Returns true if the result is a predicate that is the same in all lanes, `up0.x`: the scalar ALU writes it.
pub fn writes_uniform(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.flags.contains(OperandFlags::UNIFORM))
}

/// Returns true if the first result is a shared register.
fn writes_shared(data: &InstrData) -> bool {
    data.dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared)
}

/// The issue slots of an instruction: before the next one can be issued, this much time has passed for sure. The other
/// units and the scalar ALU execute in parallel with the ALU, and jumps take no issue slot (`count_instruction`).
pub fn issue_slots(data: &InstrData, unit: Unit) -> u32 {
    let counts = match unit {
        Unit::Alu => true,
        Unit::Flow => !matches!(data.opcode, Opcode::Jump | Opcode::Br | Opcode::Braa | Opcode::Brao | Opcode::Alias),
        _ => false,
    };
    if counts { 1 + u32::from(data.repeat) } else { 0 }
}

/// The slots that pass after an instruction by its `(nopN)`. Not all GPUs before a5xx implement it, and none of a3xx
/// does.
pub fn nops_after(data: &InstrData, target: &Target) -> u32 {
    if target.generation >= Generation::A5xx { data.nop.into() } else { 0 }
}

/// The flag with which users of a result wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Readers need no flag: there is no result, or slots are enough.
    None,
    /// `(ss)`.
    Ss,
    /// `(sy)`.
    Sy,
}

/// The flag with which users of a result of another unit than an ALU wait (`legalize_block`).
pub fn result_wait(data: &InstrData, unit: Unit) -> Wait {
    use Opcode::{Ldl, Ldlv, Ldlw, Resinfo, Shfl, Tcinv};
    match unit {
        Unit::Special => Wait::Ss,
        Unit::Texture if data.opcode == Tcinv => Wait::None,
        Unit::Texture => Wait::Sy,
        Unit::Memory if matches!(data.opcode, Ldl | Ldlv | Ldlw | Resinfo | Shfl) => Wait::Ss,
        Unit::Memory if is_local_atomic(data) => Wait::Ss,
        Unit::Memory => Wait::Sy,
        // Predicates have no fast path to the scalar ALU (`sync_update`).
        Unit::Alu | Unit::ScalarAlu if writes_uniform(data) => Wait::Ss,
        Unit::Alu | Unit::ScalarAlu | Unit::Barrier | Unit::Flow => Wait::None,
    }
}

/// Returns true for an atomic on the memory of the workgroup; those on buffers have other opcodes, or a flag.
fn is_local_atomic(data: &InstrData) -> bool {
    let name = data.opcode.name();
    let other = ["atomic.b.", "atomic.g.", "atomic.s."].iter().any(|prefix| name.starts_with(prefix));
    name.starts_with("atomic.") && !other && !data.flags.contains(InstrFlags::GLOBAL)
}

/// Returns true if the result of an atomic replaces its operand in the same registers (`is_bindless_atomic`).
pub fn result_replaces_third(opcode: Opcode) -> bool {
    opcode.name().starts_with("atomic.b.")
}

/// The event after which the sources of an instruction have been read, if that is later than its issue
/// (`is_war_hazard_producer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceWait {
    /// Its issue.
    None,
    /// A later `(ss)`.
    Ss,
    /// A later `(ss)`, or a later `(sy)`: its results come with `(sy)`, and by then its sources have been read.
    SsOrSy,
    /// A later `(ss)`, except for the scalar ALU, which runs in order.
    Scalar,
}

/// The event after which the sources of an instruction have been read.
pub fn source_wait(data: &InstrData, unit: Unit) -> SourceWait {
    match unit {
        Unit::ScalarAlu => SourceWait::Scalar,
        Unit::Alu if writes_shared(data) => SourceWait::Ss,
        Unit::Special => SourceWait::Ss,
        Unit::Texture if data.opcode != Opcode::Tcinv => SourceWait::SsOrSy,
        Unit::Memory if result_wait(data, unit) == Wait::Ss && !data.dsts.is_empty() && !data.opcode.is_atomic() => {
            SourceWait::Ss
        }
        // A store has no result that could be waited for.
        Unit::Memory if data.dsts.is_empty() && !data.opcode.is_atomic() => SourceWait::Ss,
        Unit::Memory => SourceWait::SsOrSy,
        Unit::Alu | Unit::Texture | Unit::Barrier | Unit::Flow => SourceWait::None,
    }
}

/// Returns true if `(ss)` of an instruction is encoded: texture and memory instructions have no such bit, and need a
/// nop before them that has it. Barriers have it (ir3-cat7.xml); Mesa sets it on them since 25.1, and emitted a nop
/// before.
pub fn can_wait_ss(opcode: Opcode) -> bool {
    !matches!(opcode.category(), Category::Texture | Category::Memory) || opcode == Opcode::Alias
}

/// Lane 0 of each quad of a wave.
pub const FIRST_OF_QUADS: u64 = 0x1111_1111_1111_1111;

/// The lane of each quad that an instruction reads and writes, if it is one only: the other lanes keep their registers,
/// so results of other lanes may be outstanding in the same register. Mesa puts `samgp0` to `samgp3` with one
/// destination in place of a `samgq`, and has only the last two wait (`legalize_block`).
pub const fn quad_lane(opcode: Opcode) -> Option<u8> {
    match opcode {
        Opcode::Samgp0 => Some(0),
        Opcode::Samgp1 => Some(1),
        Opcode::Samgp2 => Some(2),
        Opcode::Samgp3 => Some(3),
        _ => None,
    }
}

/// Returns true if the third source is read [late](Slots::third_late) (`is_mad`, `is_madsh`, ir3.h).
pub const fn reads_third_late(opcode: Opcode) -> bool {
    use Opcode::{MadF16, MadF32, MadS16, MadS24, MadU16, MadU24, MadshM16, MadshU16};
    matches!(opcode, MadF16 | MadF32 | MadS16 | MadS24 | MadU16 | MadU24 | MadshM16 | MadshU16)
}

/// Writes to the constant file, whose readers must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstWrite {
    /// The instruction does not write the constant file.
    None,
    /// A write of a preamble, visible after the flag, or else after the end of the preamble, `(sy)(ss)shpe`
    /// (`needs_ss_for_const` and `needs_sy_for_const`; before 25.1 nothing in a preamble reads its stores).
    Preamble(Wait),
}

/// The kind of write to the constant file.
pub const fn const_write(opcode: Opcode) -> ConstWrite {
    match opcode {
        Opcode::Stc | Opcode::Stsc => ConstWrite::Preamble(Wait::Ss),
        Opcode::LdcK => ConstWrite::Preamble(Wait::Sy),
        Opcode::LdgK => ConstWrite::Preamble(Wait::None),
        _ => ConstWrite::None,
    }
}

/// Returns true for reads of varyings: the memory of varyings is released by `(ei)` (`is_input`).
pub const fn reads_varying(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::BaryF | Opcode::FlatB | Opcode::Ldlv)
}

/// Returns true for a `bary.f` whose result is discarded: Mesa puts it where the memory of the varyings is released,
/// without waiting for the register that it names.
pub fn only_releases(data: &InstrData) -> bool {
    data.opcode == Opcode::BaryF && data.dsts.iter().all(|dst| is_no_register(&dst.place))
}

/// Returns true for a `sam` without a result, which fetches descriptors (`prefetch_sam_ir3`). Mesa gives it one
/// register of coordinates, fewer than its word reads, and overwrites them without waiting.
pub fn only_prefetches(data: &InstrData) -> bool {
    data.opcode == Opcode::Sam && data.dsts.iter().all(|dst| is_no_register(&dst.place))
}

/// The sources whose registers matter: those of a `sam` that only fetches descriptors are the descriptors.
pub fn read_sources(data: &InstrData) -> &[Src] {
    if only_releases(data) {
        &[]
    } else if only_prefetches(data) {
        &data.srcs[..usize::from(data.flags.contains(InstrFlags::S2EN)).min(data.srcs.len())]
    } else {
        &data.srcs
    }
}

/// Returns true if the result depends on helper lanes, which end at `(eq)` (`uses_helpers`). `sam` without a result
/// only fills the cache.
pub fn uses_helpers(data: &InstrData) -> bool {
    use Opcode::*;
    match data.opcode {
        Samb | Getlod | Dsx | Dsy | Dsxpp1 | Dsypp1 | QuadShuffleBrcst | QuadShuffleHoriz | QuadShuffleVert
        | QuadShuffleDiag | Movmsk | BrcstActive | Ball | Bany => true,
        Sam => !only_prefetches(data),
        _ => false,
    }
}

/// Returns true if an instruction that uses helper lanes reads only their registers at their end. Mesa 26 ends them as
/// soon as the coordinates of the last sample are computed; it marks the instructions that compute them with
/// `(needs_helpers)`.
pub const fn reads_ended_helpers(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Sam | Opcode::Samb)
}

/// Returns true if an instruction moves the value of the first active lane to a register that all lanes share: that
/// lane may be a helper lane (`uses_helpers`).
pub fn takes_one_lane(data: &InstrData) -> bool {
    let is_general = |src: &Src| src.class.file == RegFile::General && src.place().is_some();
    data.opcode == Opcode::Mov && writes_shared(data) && data.srcs.first().is_some_and(is_general)
}

/// Returns true if `a1.x` is waited for with `(ss)` instead of slots in a preamble: from a7xx on, where it runs before
/// the wave has registers (`in_early_preamble`).
pub fn has_early_a1(preamble: &[&InstrData], target: &Target) -> bool {
    target.generation >= Generation::A7xx && can_run_early(preamble)
}

/// Returns true if a preamble can run before the wave has registers: it uses no register of lanes, writes no predicate
/// of lanes, and has no relative access (`early_preamble`). Mesa writes `up0.x` in early preambles since 26.
pub fn can_run_early(preamble: &[&InstrData]) -> bool {
    let of_lanes = |file: RegFile, place: Option<&Place>| {
        let relative = matches!(place, Some(Place::Relative { .. }));
        relative || matches!(file, RegFile::General) && place.is_some_and(|place| !is_no_register(place))
    };
    let is_predicate_of_lanes =
        |dst: &Dst| dst.class.file == RegFile::Predicate && !dst.flags.contains(OperandFlags::UNIFORM);
    let uses = |data: &InstrData| {
        data.srcs
            .iter()
            .any(|src| of_lanes(src.class.file, src.place()) || matches!(src.operand, SrcOperand::ConstRelative(_)))
            || data.dsts.iter().any(|dst| of_lanes(dst.class.file, Some(&dst.place)) || is_predicate_of_lanes(dst))
    };
    !preamble.iter().any(|data| uses(data))
}

/// Returns true for `r63.x`, which is no register.
pub fn is_no_register(place: &Place) -> bool {
    place.reg() == Some(ir3_compiler::ir3::PhysReg::INVALID)
}
