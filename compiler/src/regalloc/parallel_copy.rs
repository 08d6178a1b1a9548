//! Parallel copies to sequences of moves and swaps.
//!
//! A parallel copy reads all of its sources before it writes any destination. Registers are counted in *units* of one
//! half register, so that 16-bit and 32-bit copies of a merged register file can overlap in any way. The sequence is
//! found in three steps:
//!
//! 1. A copy whose destination nobody else still has to read is done at once, which may free another's destination.
//! 2. If none is left, but one unit of some 32-bit destination is free, that copy falls into two 16-bit ones.
//! 3. What is left are cycles. *Proof:* let `D` be the units that copies between registers still have to write, `R`
//!    those that they have to read. After step 2 each unit of `D` is blocked, so `D ⊆ R`; each unit is written once and
//!    each written unit has one read unit, so `|R| ≤ |D|`. Hence `R = D`, each unit is read once, and the copies permute
//!    `D`. (It follows that no constant or immediate is left: its destination is not in `D`, so not in `R`, so free.)
//!    A swap puts one value in its place, and whoever wanted the value that was there finds it where the first came from.
//!
//! Half registers only reach the first half of a merged file. A 16-bit piece of a 32-bit copy may lie beyond; then the
//! 32-bit register that contains it is swapped with one in reach for the time being.

use crate::ir3::{
    Attrs, Dst, InstrData, Opcode, PhysReg, Place, RegClass, RegFile, Round, Src, SrcOperand, Type, WriteMask,
};
use crate::target::{Generation, Target};

/// Where a value is copied from.
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

    /// Whether it reads a unit of `[start, start + len)`.
    fn reads(self, start: u16, len: u16) -> bool {
        matches!(self.src, Source::Unit(src) if src < start + len && start < src + self.units())
    }
}

/// The register files that copies are independent in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// Full registers, and half registers where they are the halves of full ones.
    Full,
    /// Half registers where they are a file of their own.
    Half,
    /// Shared registers.
    Shared,
}

const UNITS: usize = 384;

/// Collects the copies of one parallel copy, and sequences them. Made once, used for many.
pub struct Sequencer {
    merged: bool,
    has_swz: bool,
    pending: [Vec<Copy>; 3],
    /// How many pending copies read each unit.
    readers: Box<[u16; UNITS]>,
}

impl Sequencer {
    /// For copies on `target`.
    pub fn new(target: &Target) -> Self {
        Self {
            merged: target.merged_regs,
            has_swz: target.generation >= Generation::A5xx,
            pending: [Vec::new(), Vec::new(), Vec::new()],
            readers: Box::new([0; UNITS]),
        }
    }

    fn space(&self, class: RegClass) -> Space {
        match class.file {
            RegFile::Shared => Space::Shared,
            _ if class.half && !self.merged => Space::Half,
            _ => Space::Full,
        }
    }

    /// Adds a copy of one component to the register `dst`. The operand is a register of the same class, a constant or
    /// an immediate; an undefined source needs no copy. Returns false where the operand is something else.
    #[must_use]
    pub fn add(&mut self, class: RegClass, dst: PhysReg, src: &SrcOperand) -> bool {
        let source = match *src {
            SrcOperand::Place(Place::Reg(reg) | Place::Assigned(_, reg)) => Source::Unit(unit_of(class, reg)),
            SrcOperand::Const(word) => Source::Const(word),
            SrcOperand::Immediate(bits) => Source::Immediate(bits),
            SrcOperand::Undef => return true,
            SrcOperand::Place(_) | SrcOperand::ConstRelative(_) => return false,
        };
        let dst = unit_of(class, dst);
        if source != Source::Unit(dst) {
            let space = self.space(class);
            self.pending[space as usize].push(Copy { dst, src: source, half: class.half });
        }
        true
    }

    /// Emits everything that was added, and is empty again.
    pub fn finish(&mut self, emit: &mut dyn FnMut(InstrData)) {
        for space in [Space::Shared, Space::Half, Space::Full] {
            let mut pending = std::mem::take(&mut self.pending[space as usize]);
            let out = &mut Emitter { file: file_of(space), has_swz: self.has_swz, reach: reach(space), emit };
            match pending[..] {
                [] => {}
                [copy] => out.copy(copy),
                _ => sequence(&mut pending, &mut self.readers, out),
            }
            pending.clear();
            self.pending[space as usize] = pending;
        }
    }
}

const fn file_of(space: Space) -> RegFile {
    match space {
        Space::Shared => RegFile::Shared,
        Space::Full | Space::Half => RegFile::General,
    }
}

/// Units that half registers reach.
const fn reach(space: Space) -> u16 {
    match space {
        Space::Shared => 32,
        Space::Full | Space::Half => 192,
    }
}

/// First unit of a register.
pub const fn unit_of(class: RegClass, reg: PhysReg) -> u16 {
    let first = if matches!(class.file, RegFile::Shared) { PhysReg::SHARED_FIRST.0 } else { 0 };
    (reg.0 - first) * class.component_units()
}

/// The register of a class that starts at a unit.
pub const fn reg_of(class: RegClass, unit: u16) -> PhysReg {
    let first = if matches!(class.file, RegFile::Shared) { PhysReg::SHARED_FIRST.0 } else { 0 };
    PhysReg(first + unit / class.component_units())
}

fn sequence(pending: &mut Vec<Copy>, readers: &mut [u16; UNITS], out: &mut Emitter) {
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
            out.copy(copy);
            if let Source::Unit(src) = copy.src {
                readers[unit_range(src, copy)].iter_mut().for_each(|n| *n -= 1);
            }
            pending.swap_remove(i);
            progress = true;
        }
        if pending.is_empty() {
            return;
        }
        if progress {
            continue;
        }
        let half_free = |copy: &Copy| {
            !copy.half && matches!(copy.src, Source::Unit(_)) && readers[unit_range(copy.dst, *copy)].contains(&0)
        };
        match pending.iter().position(half_free) {
            Some(i) => split(pending, i),
            None => break,
        }
    }
    // Whole registers first: a swap of them moves halves along, while a swap of halves takes whole ones apart.
    pending.sort_unstable_by_key(|copy| (copy.half, copy.dst));
    let mut i = 0;
    while let Some(&copy) = pending.get(i) {
        i += 1;
        let Source::Unit(src) = copy.src else { continue };
        if src == copy.dst {
            continue;
        }
        out.swap(copy.dst, src, copy.half);
        // What stood in the destination is in the source now.
        let mut j = i;
        while let Some(other) = pending.get_mut(j) {
            if !other.reads(copy.dst, copy.units()) {
                j += 1;
                continue;
            }
            if copy.half && !other.half {
                // One half of it moved away. The two pieces go behind `j`, and are looked at again.
                split(pending, j);
                continue;
            }
            if let Source::Unit(from) = &mut other.src {
                *from = *from - copy.dst + src;
            }
            j += 1;
        }
    }
}

/// Replaces a 32-bit copy between registers by its two halves; one in its place, one at the end.
fn split(pending: &mut Vec<Copy>, i: usize) {
    let Copy { dst, src, .. } = pending[i];
    let Source::Unit(src) = src else { return };
    pending[i] = Copy { dst, src: Source::Unit(src), half: true };
    pending.push(Copy { dst: dst + 1, src: Source::Unit(src + 1), half: true });
}

/// Writes the instructions of one register file.
struct Emitter<'a> {
    file: RegFile,
    has_swz: bool,
    reach: u16,
    emit: &'a mut dyn FnMut(InstrData),
}

impl Emitter<'_> {
    fn class(&self, half: bool) -> RegClass {
        RegClass { file: self.file, half }
    }

    fn src(&self, unit: u16, half: bool) -> Src {
        let class = self.class(half);
        Src::reg(Place::Reg(reg_of(class, unit)), class, WriteMask::SCALAR)
    }

    fn dst(&self, unit: u16, half: bool) -> Dst {
        let class = self.class(half);
        Dst::new(Place::Reg(reg_of(class, unit)), class, WriteMask::SCALAR)
    }

    fn push(&mut self, opcode: Opcode, dsts: &[Dst], srcs: &[Src], attrs: Attrs) {
        let mut data = InstrData::new(opcode);
        data.dsts.extend_from_slice(dsts);
        data.srcs.extend_from_slice(srcs);
        data.attrs = attrs;
        (self.emit)(data);
    }

    fn mov(&mut self, dst: u16, half: bool, src: Src) {
        let ty = raw_type(half);
        let dst = self.dst(dst, half);
        self.push(Opcode::Mov, &[dst], &[src], Attrs::Move { src: ty, dst: ty, round: Round::Default });
    }

    /// Whether a half register cannot name the unit.
    fn beyond(&self, unit: u16, half: bool) -> bool {
        half && unit >= self.reach
    }

    fn copy(&mut self, copy: Copy) {
        let Copy { dst, src, half } = copy;
        if self.beyond(dst, half) {
            let other = match src {
                Source::Unit(src) => src,
                _ => dst,
            };
            self.with_full_in_reach(dst, other, |this, dst, other| {
                let src = if matches!(src, Source::Unit(_)) { Source::Unit(other) } else { src };
                this.copy(Copy { dst, src, half });
            });
            return;
        }
        let src = match src {
            Source::Const(word) => Src::new(SrcOperand::Const(word), self.class(half), WriteMask::SCALAR),
            Source::Immediate(bits) => Src::new(SrcOperand::Immediate(bits), self.class(half), WriteMask::SCALAR),
            Source::Unit(src) if self.beyond(src, half) => {
                let dst = self.dst(dst, half);
                let whole = self.src(src & !1, false);
                if src % 2 == 0 {
                    let attrs = Attrs::Move { src: Type::U32, dst: Type::U16, round: Round::Default };
                    self.push(Opcode::Mov, &[dst], &[whole], attrs);
                } else {
                    self.push(Opcode::ShrB, &[dst], &[whole, Src::immediate(16, false)], Attrs::None);
                }
                return;
            }
            Source::Unit(src) => self.src(src, half),
        };
        self.mov(dst, half, src);
    }

    fn swap(&mut self, a: u16, b: u16, half: bool) {
        // The one out of reach first.
        let (a, b) = if self.beyond(b, half) { (b, a) } else { (a, b) };
        if self.beyond(a, half) {
            self.with_full_in_reach(a, b, |this, a, b| this.swap(a, b, half));
            return;
        }
        let (dst_a, dst_b, src_a, src_b) = (self.dst(a, half), self.dst(b, half), self.src(a, half), self.src(b, half));
        if self.has_swz && self.file != RegFile::Shared {
            let ty = raw_type(half);
            let attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
            self.push(Opcode::Swz, &[dst_a, dst_b], &[src_b, src_a], attrs);
        } else {
            for dst in [dst_a, dst_b, dst_a] {
                self.push(Opcode::XorB, &[dst], &[src_a, src_b], Attrs::None);
            }
        }
    }

    /// Does something to the halves `a` and `b` while the whole register of `a`, which is out of reach, stands in
    /// reach. `b` comes along if it is in the same register.
    fn with_full_in_reach(&mut self, a: u16, b: u16, run: impl FnOnce(&mut Self, u16, u16)) {
        let far = a & !1;
        let near = if b & !1 == 0 { 8 } else { 0 };
        self.swap(far, near, false);
        let moved = |unit: u16| if unit & !1 == far { near + (unit & 1) } else { unit };
        run(self, moved(a), moved(b));
        self.swap(far, near, false);
    }
}

const fn raw_type(half: bool) -> Type {
    if half { Type::U16 } else { Type::U32 }
}

#[cfg(test)]
#[path = "parallel_copy_tests.rs"]
mod tests;
