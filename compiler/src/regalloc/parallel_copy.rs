//! Sequentialises parallel copies into moves and swaps.
//!
//! A parallel copy reads all of its sources before it writes any destination. Registers are counted in *units* of one
//! half register, those of all files in one numbering, so that 16-bit and 32-bit copies of a merged register file can
//! overlap in any way. The sequence is found in three steps:
//!
//! 1. A copy whose destination no other pending copy reads is emitted at once, which may free another's destination.
//! 2. If none is left, but one unit of some 32-bit destination is free, that copy is split into two 16-bit ones.
//! 3. The remaining copies are cycles. *Proof:* let `D` be the units that copies between registers still have to write,
//!    `R` those that they have to read. After step 2 each unit of `D` is blocked, so `D ⊆ R`; each unit is written once
//!    and each written unit has one read unit, so `|R| ≤ |D|`. Hence `R = D`, each unit is read once, and the copies
//!    permute `D`. (It follows that no constant or immediate is left: its destination is not in `D`, so not in `R`, so
//!    free.) A swap puts one value in its place, and the copy that reads the displaced value finds it at the other
//!    operand of the swap.
//!
//! A cycle of *n* registers takes *n* − 1 swaps: the last one puts two values in their places. Every other copy is one
//! move.
//!
//! Half registers only reach the first half of a merged file, and the first half of the shared one. A 16-bit piece of a
//! 32-bit copy may lie beyond; then the 32-bit register that contains it is temporarily swapped with one in reach.
//!
//! Some copies are impossible: no instruction swaps a general register with a shared one, and without a scalar ALU none
//! computes on shared registers. Such copies are [`ImpossibleCopy`].

use crate::arms::{Arm, Counter};
use crate::ir3::{
    Attrs, Dst, InstrData, Opcode, PhysReg, Place, RegClass, RegFile, Round, Src, SrcOperand, Type, WriteMask,
};
use crate::target::{Generation, Target};

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A register, by its first unit.
    Unit(u16),
    /// A word of the constant file.
    Const(u16),
    /// An immediate.
    Immediate(u32),
}

/// One copy of 16 or 32 bits.
#[derive(Clone, Copy, Debug)]
struct Copy {
    dst: u16,
    src: Source,
    half: bool,
}

impl Copy {
    fn units(self) -> u16 {
        if self.half { 1 } else { 2 }
    }

    /// Returns true if it reads a unit of `[start, start + len)`.
    fn reads(self, start: u16, len: u16) -> bool {
        matches!(self.src, Source::Unit(src) if src < start + len && start < src + self.units())
    }
}

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    /// Full registers, and half registers if these are the halves of full ones.
    Full,
    /// Half registers, if these have a file of their own.
    Half,
    /// Shared registers, full and half.
    Shared,
}

impl Space {
    /// The file that a unit is in.
    const fn of(unit: u16) -> Self {
        match unit {
            0..384 => Self::Full,
            384..576 => Self::Half,
            _ => Self::Shared,
        }
    }

    /// Its first unit.
    const fn first(self) -> u16 {
        match self {
            Self::Full => 0,
            Self::Half => 384,
            Self::Shared => 576,
        }
    }

    /// The number of units from its first that half registers reach.
    const fn reach(self) -> u16 {
        match self {
            Self::Shared => 32,
            Self::Full | Self::Half => 192,
        }
    }

    const fn file(self) -> RegFile {
        match self {
            Self::Shared => RegFile::Shared,
            Self::Full | Self::Half => RegFile::General,
        }
    }
}

/// Units of all files.
const UNITS: usize = 640;

/// A parallel copy that no sequence of instructions implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpossibleCopy {
    /// General and shared registers form a cycle.
    AcrossFiles,
    /// Shared registers form a cycle, or halves of them are beyond reach, without a scalar ALU.
    NoScalarAlu,
}

impl ImpossibleCopy {
    /// A description for messages.
    pub const fn what(self) -> &'static str {
        match self {
            Self::AcrossFiles => "an exchange of general with shared registers",
            Self::NoScalarAlu => "an exchange of shared registers without a scalar ALU",
        }
    }
}

/// Collects the copies of one parallel copy, and sequentialises them. Reusable.
pub struct Sequencer {
    machine: CopySupport,
    pending: Vec<Copy>,
    /// The number of pending copies that read each unit.
    readers: Box<[u16; UNITS]>,
}

/// The properties of the target that copies depend on.
#[derive(Clone, Copy)]
struct CopySupport {
    merged: bool,
    has_swz: bool,
    has_scalar_alu: bool,
    /// True if a half of a shared register cannot be moved directly to a general one.
    mov_half_shared: bool,
}

impl CopySupport {
    /// First unit of a register in the numbering of all files.
    fn unit_of(self, class: RegClass, reg: PhysReg) -> u16 {
        let space = match class.file {
            RegFile::Shared => Space::Shared,
            _ if class.half && !self.merged => Space::Half,
            _ => Space::Full,
        };
        space.first() + unit_of(class, reg)
    }
}

impl Sequencer {
    /// Creates a sequencer for `target`.
    pub fn new(target: &Target) -> Self {
        let machine = CopySupport {
            merged: target.merged_regs,
            has_swz: target.generation >= Generation::A5xx,
            has_scalar_alu: target.has_scalar_alu,
            mov_half_shared: target.quirks.mov_half_shared,
        };
        Self { machine, pending: Vec::new(), readers: Box::new([0; UNITS]) }
    }

    /// Adds a copy of one component to the register `dst`. The operand is a register of the same width, in the file
    /// `from`, a constant or an immediate; an undefined source needs no copy. Returns false for any other operand.
    #[must_use]
    pub fn add(&mut self, class: RegClass, dst: PhysReg, from: RegFile, src: &SrcOperand) -> bool {
        let source = match *src {
            SrcOperand::Place(Place::Reg(reg) | Place::Assigned(_, reg)) => {
                Source::Unit(self.machine.unit_of(RegClass { file: from, ..class }, reg))
            }
            SrcOperand::Const(word) => Source::Const(word),
            SrcOperand::Immediate(bits) => Source::Immediate(bits),
            SrcOperand::Undef => return true,
            SrcOperand::Place(_) | SrcOperand::ConstRelative(_) => return false,
        };
        let dst = self.machine.unit_of(class, dst);
        if source != Source::Unit(dst) {
            self.pending.push(Copy { dst, src: source, half: class.half });
        }
        true
    }

    /// Emits all copies that were added, and resets the sequencer.
    ///
    /// # Errors
    /// If no sequence implements the copies. The instructions emitted so far are then invalid.
    pub fn finish(&mut self, counter: &Counter, emit: &mut dyn FnMut(InstrData)) -> Result<(), ImpossibleCopy> {
        let mut out = Emitter { machine: self.machine, counter, emit };
        let result = match self.pending[..] {
            [] => Ok(()),
            [copy] => out.copy(copy),
            _ => sequence(&mut self.pending, &mut self.readers, &mut out),
        };
        self.pending.clear();
        result
    }
}

/// The first unit of a register in its file.
pub const fn unit_of(class: RegClass, reg: PhysReg) -> u16 {
    let first = if matches!(class.file, RegFile::Shared) { PhysReg::SHARED_FIRST.0 } else { 0 };
    (reg.0 - first) * class.component_units()
}

/// The register of a class that starts at a unit of its file, counted from 0.
pub const fn reg_of(class: RegClass, unit: u16) -> PhysReg {
    let first = if matches!(class.file, RegFile::Shared) { PhysReg::SHARED_FIRST.0 } else { 0 };
    PhysReg(first + unit / class.component_units())
}

fn sequence(pending: &mut Vec<Copy>, readers: &mut [u16; UNITS], out: &mut Emitter) -> Result<(), ImpossibleCopy> {
    readers.fill(0);
    let unit_range = |start: u16, copy: Copy| usize::from(start)..usize::from(start + copy.units());
    for &copy in &*pending {
        if let Source::Unit(src) = copy.src {
            readers[unit_range(src, copy)].iter_mut().for_each(|n| *n += 1);
        }
    }
    loop {
        let mut progress = false;
        let mut i = 0;
        while let Some(&copy) = pending.get(i) {
            if readers[unit_range(copy.dst, copy)].iter().any(|&n| n != 0) {
                i += 1;
                continue;
            }
            out.copy(copy)?;
            if let Source::Unit(src) = copy.src {
                readers[unit_range(src, copy)].iter_mut().for_each(|n| *n -= 1);
            }
            pending.swap_remove(i);
            progress = true;
        }
        if pending.is_empty() {
            return Ok(());
        }
        if progress {
            continue;
        }
        let half_free = |copy: &Copy| {
            !copy.half && matches!(copy.src, Source::Unit(_)) && readers[unit_range(copy.dst, *copy)].contains(&0)
        };
        match pending.iter().position(half_free) {
            Some(i) => {
                out.counter.count(Arm::CopiesHalfFree);
                split(pending, i);
            }
            None => break,
        }
    }
    // Whole registers first: a swap of them moves halves along, while a swap of halves splits whole ones.
    pending.sort_unstable_by_key(|copy| (copy.half, copy.dst));
    let mut i = 0;
    while let Some(&copy) = pending.get(i) {
        i += 1;
        let Source::Unit(src) = copy.src else { continue };
        if src == copy.dst {
            continue;
        }
        if Space::of(src) != Space::of(copy.dst) {
            out.counter.count(Arm::CopiesAcross);
            return Err(ImpossibleCopy::AcrossFiles);
        }
        out.counter.count(Arm::CopiesCycle);
        out.swap(copy.dst, src, copy.half)?;
        // The old value of the destination is in the source now. The copies that are left read all of it or one half:
        // after a swap of halves only halves are left.
        for other in pending[i..].iter_mut().filter(|other| other.reads(copy.dst, copy.units())) {
            if let Source::Unit(from) = &mut other.src {
                *from = *from - copy.dst + src;
            }
        }
    }
    Ok(())
}

/// Replaces a 32-bit copy between registers by its two halves; one in its place, one at the end.
fn split(pending: &mut Vec<Copy>, i: usize) {
    let Copy { dst, src, .. } = pending[i];
    let Source::Unit(src) = src else { return };
    pending[i] = Copy { dst, src: Source::Unit(src), half: true };
    pending.push(Copy { dst: dst + 1, src: Source::Unit(src + 1), half: true });
}

/// Writes the instructions.
struct Emitter<'a> {
    machine: CopySupport,
    counter: &'a Counter,
    emit: &'a mut dyn FnMut(InstrData),
}

const fn class(unit: u16, half: bool) -> RegClass {
    RegClass { file: Space::of(unit).file(), half }
}

const fn place(unit: u16, half: bool) -> Place {
    Place::Reg(reg_of(class(unit, half), unit - Space::of(unit).first()))
}

const fn src(unit: u16, half: bool) -> Src {
    Src::reg(place(unit, half), class(unit, half), WriteMask::SCALAR)
}

const fn dst(unit: u16, half: bool) -> Dst {
    Dst::new(place(unit, half), class(unit, half), WriteMask::SCALAR)
}

const fn is_shared(unit: u16) -> bool {
    matches!(Space::of(unit), Space::Shared)
}

/// Returns true if a half register cannot encode the unit.
const fn beyond(unit: u16, half: bool) -> bool {
    let space = Space::of(unit);
    half && unit - space.first() >= space.reach()
}

impl Emitter<'_> {
    fn push(&mut self, opcode: Opcode, dsts: &[Dst], srcs: &[Src], attrs: Attrs) {
        let mut data = InstrData::new(opcode);
        data.dsts.extend_from_slice(dsts);
        data.srcs.extend_from_slice(srcs);
        data.attrs = attrs;
        // Two moves, as Mesa counts them.
        data.repeat = u8::from(opcode == Opcode::Swz);
        (self.emit)(data);
    }

    fn mov(&mut self, to: Dst, from: Src) {
        let (src, dst) = (raw_type(from.class.half), raw_type(to.class.half));
        self.push(Opcode::Mov, &[to], &[from], Attrs::Move { src, dst, round: Round::Default });
    }

    fn copy(&mut self, copy: Copy) -> Result<(), ImpossibleCopy> {
        let Copy { dst: to, src: from, half } = copy;
        if beyond(to, half) {
            self.counter.count(Arm::CopiesBeyond);
            let other = if let Source::Unit(unit) = from { unit } else { to };
            return self.with_full_in_reach(to, other, |this, to, other| {
                let from = if matches!(from, Source::Unit(_)) { Source::Unit(other) } else { from };
                this.copy(Copy { dst: to, src: from, half })
            });
        }
        let operand = match from {
            Source::Unit(unit) => return self.register(to, unit, half),
            Source::Const(word) => SrcOperand::Const(word),
            Source::Immediate(bits) => SrcOperand::Immediate(bits),
        };
        self.mov(dst(to, half), Src::new(operand, RegClass::general(half), WriteMask::SCALAR));
        Ok(())
    }

    /// Emits a copy between registers whose destination is in reach.
    fn register(&mut self, to: u16, from: u16, half: bool) -> Result<(), ImpossibleCopy> {
        // The hardware moves 16 bits from a general register to a shared one only as the low half of 32.
        let narrows = half && self.machine.merged && is_shared(to) && !is_shared(from);
        let misreads = half && self.machine.mov_half_shared && is_shared(from) && !is_shared(to);
        if !beyond(from, half) && !narrows && !misreads {
            self.mov(dst(to, half), src(from, half));
            return Ok(());
        }
        if is_shared(to) && is_shared(from) && !self.machine.has_scalar_alu {
            return Err(ImpossibleCopy::NoScalarAlu);
        }
        let whole = src(from & !1, false);
        if from.is_multiple_of(2) {
            self.counter.count(Arm::CopiesLowHalf);
            self.mov(dst(to, true), whole);
        } else if narrows {
            self.counter.count(Arm::CopiesNarrow);
            // No move to a shared register shifts: the two halves are temporarily swapped.
            self.swap(from & !1, from, true)?;
            self.mov(dst(to, true), whole);
            self.swap(from & !1, from, true)?;
        } else {
            self.counter.count(Arm::CopiesHighHalf);
            self.push(Opcode::ShrB, &[dst(to, true)], &[whole, Src::immediate(16, false)], Attrs::None);
        }
        Ok(())
    }

    /// Exchanges two registers of one file.
    fn swap(&mut self, a: u16, b: u16, half: bool) -> Result<(), ImpossibleCopy> {
        if is_shared(a) && !self.machine.has_scalar_alu {
            return Err(ImpossibleCopy::NoScalarAlu);
        }
        // The one out of reach first.
        let (a, b) = if beyond(b, half) { (b, a) } else { (a, b) };
        if beyond(a, half) {
            self.counter.count(Arm::CopiesSwapBeyond);
            return self.with_full_in_reach(a, b, |this, a, b| this.swap(a, b, half));
        }
        let (dst_a, dst_b, src_a, src_b) = (dst(a, half), dst(b, half), src(a, half), src(b, half));
        if self.machine.has_swz && !is_shared(a) && self.counter.may(Arm::CopiesSwz) {
            let ty = raw_type(half);
            let attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
            self.push(Opcode::Swz, &[dst_a, dst_b], &[src_b, src_a], attrs);
        } else {
            self.counter.count(Arm::CopiesXor);
            for dst in [dst_a, dst_b, dst_a] {
                self.push(Opcode::XorB, &[dst], &[src_a, src_b], Attrs::None);
            }
        }
        Ok(())
    }

    /// Runs `run` on the halves `a` and `b` while the whole register of `a`, which is out of reach, is swapped into
    /// reach. `b` is translated too if it is in the same register.
    fn with_full_in_reach(
        &mut self,
        a: u16,
        b: u16,
        run: impl FnOnce(&mut Self, u16, u16) -> Result<(), ImpossibleCopy>,
    ) -> Result<(), ImpossibleCopy> {
        let far = a & !1;
        let first = Space::of(a).first();
        let near = if b & !1 == first { first + 8 } else { first };
        self.swap(far, near, false)?;
        let moved = |unit: u16| if unit & !1 == far { near + (unit & 1) } else { unit };
        run(self, moved(a), moved(b))?;
        self.swap(far, near, false)
    }
}

const fn raw_type(half: bool) -> Type {
    if half { Type::U16 } else { Type::U32 }
}
