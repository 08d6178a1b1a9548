//! Sets of registers, in the units in which they overlap.
//!
//! A unit is half a register of 32 bits, so that a full register and its halves meet in a merged file. Where the files
//! are separate, half registers have units of their own. Shared registers, addresses and predicates follow.

use super::{ArrayAccess, Dst, InstrData, PhysReg, Place, Program, RegClass, RegFile, Src, SrcOperand, WriteMask};
use crate::target::Target;
use std::ops::Range;

const FULL: Range<u32> = 0..384;
const HALF: Range<u32> = FULL.end..FULL.end + 192;
const SHARED: Range<u32> = HALF.end..HALF.end + 64;
/// `a0.x`, `a1.x`, and the predicates.
const OTHERS: Range<u32> = SHARED.end..SHARED.end + 6;

const WORDS: usize = OTHERS.end.div_ceil(64) as usize;
/// The units of the shared file are whole words.
const SHARED_WORDS: Range<usize> = (SHARED.start / 64) as usize..(SHARED.end / 64) as usize;

/// The number of units.
pub const UNITS: usize = OTHERS.end as usize;

/// The registers that an access relative to `a0.x` may reach, as the first one and their number: the offset may be that
/// of an element, so the array of `size` registers is around it.
pub fn around(offset: i16, size: u16) -> (i32, u32) {
    let first = (i32::from(offset) - i32::from(size) + 1).max(0);
    (first, (i32::from(offset) + i32::from(size) - first).max(0) as u32)
}

/// Visits the words of a set that have units of a place, with the bits of these; none for `r63.x`.
#[inline]
fn for_each_word(
    program: &Program,
    target: &Target,
    place: &Place,
    class: RegClass,
    mask: WriteMask,
    mut visit: impl FnMut(usize, u64),
) {
    let units = u32::from(class.component_units());
    let (file, origin, units) = match class.file {
        RegFile::General if class.half && !target.merged_regs => (HALF, 0, 1),
        RegFile::General => (FULL, 0, units),
        RegFile::Shared => (SHARED, PhysReg::SHARED_FIRST.0, units),
        RegFile::Address => (OTHERS, PhysReg::A0_X.0, 1),
        RegFile::Predicate => (OTHERS.start + 2..OTHERS.end, PhysReg::P0_X.0, 1),
    };
    // Most places are a few registers in one word.
    if let Place::Reg(reg) = *place
        && mask.0 & mask.0.wrapping_add(1) == 0
    {
        let start = file.start + u32::from(reg.0.saturating_sub(origin)) * units;
        let end = (start + mask.0.trailing_ones() * units).min(file.end);
        if reg == PhysReg::INVALID || end <= start {
            return;
        }
        if start / 64 == (end - 1) / 64 {
            visit((start / 64) as usize, u64::MAX >> (64 - (end - start)) << (start % 64));
            return;
        }
    }
    // `count` registers from number `first` on.
    let mut range = |first: i32, count: u32| {
        let start = file.start + (first - i32::from(origin)).max(0) as u32 * units;
        let end = (start + count * units).min(file.end);
        let mut unit = start;
        while unit < end {
            let in_word = (end - unit).min(64 - unit % 64);
            visit((unit / 64) as usize, u64::MAX >> (64 - in_word) << (unit % 64));
            unit += in_word;
        }
    };
    match *place {
        Place::Reg(reg) | Place::Assigned(_, reg) => {
            if reg == PhysReg::INVALID {
                return;
            }
            let mut components = mask.0;
            while components != 0 {
                let first = components.trailing_zeros();
                let count = (components >> first).trailing_ones();
                range(i32::from(reg.0) + first as i32, count);
                components &= u32::MAX.checked_shl(first + count).unwrap_or(0);
            }
        }
        Place::Relative { offset, size } => {
            let (first, count) = around(offset, size);
            range(first, count);
        }
        Place::Array(ArrayAccess { array, base, relative, offset, .. }) => match base.expand() {
            Some(base) if relative => range(i32::from(base.0), u32::from(program.arrays[array].length)),
            Some(base) => range(i32::from(base.0) + i32::from(offset), mask.span()),
            None => {}
        },
        Place::Value(_) => {}
    }
}

/// A set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet([u64; WORDS]);

impl RegisterSet {
    /// The set without registers.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The registers of a place; none for `r63.x`.
    pub fn of(program: &Program, target: &Target, place: &Place, class: RegClass, mask: WriteMask) -> Self {
        let mut set = Self::EMPTY;
        set.add_place(program, target, place, class, mask);
        set
    }

    /// Adds the registers of a place.
    fn add_place(&mut self, program: &Program, target: &Target, place: &Place, class: RegClass, mask: WriteMask) {
        let words = &mut self.0;
        for_each_word(program, target, place, class, mask, |at, bits| words[at] |= bits);
    }

    /// The registers that an instruction reads, and those that it writes.
    pub fn of_instr(program: &Program, target: &Target, data: &InstrData) -> [Self; 2] {
        let [mut reads, mut writes] = [Self::EMPTY; 2];
        for src in &data.srcs {
            if let SrcOperand::Place(place) = &src.operand {
                reads.add_place(program, target, place, src.class, src.mask);
            }
        }
        for dst in &data.dsts {
            writes.add_place(program, target, &dst.place, dst.class, dst.mask);
        }
        [reads, writes]
    }

    /// The registers that a destination names.
    pub fn of_dst(program: &Program, target: &Target, dst: &Dst) -> Self {
        Self::of(program, target, &dst.place, dst.class, dst.mask)
    }

    /// The registers that a source names.
    pub fn of_src(program: &Program, target: &Target, src: &Src) -> Self {
        match &src.operand {
            SrcOperand::Place(place) => Self::of(program, target, place, src.class, src.mask),
            _ => Self::EMPTY,
        }
    }

    /// Returns true if a register that a source names is in the set, or overlaps one that is.
    pub fn meets_src(&self, program: &Program, target: &Target, src: &Src) -> bool {
        let SrcOperand::Place(place) = &src.operand else { return false };
        let mut common = 0;
        for_each_word(program, target, place, src.class, src.mask, |at, bits| common |= self.0[at] & bits);
        common != 0
    }

    /// The units, in order.
    pub fn units(&self) -> impl Iterator<Item = usize> + '_ {
        (0..).zip(&self.0).flat_map(|(at, &units)| Word { at, units }.units())
    }

    /// Returns true if a register is in both sets, or overlaps one that is.
    pub fn meets(&self, other: &Self) -> bool {
        // Without an early exit, which would be a branch for each word.
        self.0.iter().zip(&other.0).fold(0, |common, (a, b)| common | a & b) != 0
    }

    /// Adds the registers of another set.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Returns true if a register of the list is in the set, or overlaps one that is.
    pub fn meets_list(&self, list: &[Word]) -> bool {
        list.iter().any(|word| self.0[word.at as usize] & word.units != 0)
    }

    /// Adds the registers of a list.
    pub fn add_list(&mut self, list: &[Word]) {
        list.iter().for_each(|word| self.0[word.at as usize] |= word.units);
    }

    /// The shared registers of the set.
    #[must_use]
    pub fn shared(&self) -> Self {
        let mut shared = Self::EMPTY;
        shared.0[SHARED_WORDS].copy_from_slice(&self.0[SHARED_WORDS]);
        shared
    }
}

/// A word of a [`RegisterSet`] with its units. The few registers of an instruction are a list of words, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    at: u32,
    units: u64,
}

impl Word {
    /// The units, in order.
    pub fn units(self) -> impl Iterator<Item = usize> {
        let lowest = |units: u64| (units != 0).then_some(units);
        let left = std::iter::successors(lowest(self.units), move |units| lowest(units & (units - 1)));
        left.map(move |left| self.at as usize * 64 + left.trailing_zeros() as usize)
    }
}

/// Appends the registers that an instruction reads to a list, then those that it writes. Returns the lengths of the
/// list in between and at the end.
pub fn list_instr(program: &Program, target: &Target, data: &InstrData, list: &mut Vec<Word>) -> [usize; 2] {
    let mut start = list.len();
    let mut add = |start: usize, place: &Place, class: RegClass, mask: WriteMask| {
        for_each_word(program, target, place, class, mask, |at, units| {
            match list[start..].iter_mut().find(|word| word.at as usize == at) {
                Some(word) => word.units |= units,
                None => list.push(Word { at: at as u32, units }),
            }
        });
        list.len()
    };
    let mut reads = start;
    for src in &data.srcs {
        if let SrcOperand::Place(place) = &src.operand {
            reads = add(start, place, src.class, src.mask);
        }
    }
    start = reads;
    let mut writes = start;
    for dst in &data.dsts {
        writes = add(start, &dst.place, dst.class, dst.mask);
    }
    [reads, writes]
}

/// Returns true if a register that a source names is in a list, or overlaps one that is.
pub fn list_meets_src(list: &[Word], program: &Program, target: &Target, src: &Src) -> bool {
    let SrcOperand::Place(place) = &src.operand else { return false };
    let mut common = 0;
    for_each_word(program, target, place, src.class, src.mask, |at, bits| {
        let same = list.iter().filter(|word| word.at as usize == at);
        common |= same.fold(0, |common, word| common | word.units & bits);
    });
    common != 0
}

/// Returns true if a register is in both lists, or overlaps one that is.
pub fn lists_meet(a: &[Word], b: &[Word]) -> bool {
    a.iter().any(|a| b.iter().any(|b| a.at == b.at && a.units & b.units != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_sets() {
        let target = Target::by_name("a540").unwrap();
        let text = "block0 {
	0001:0000:000: 	mad.f32 r15.w, r0.x, (r)r47.w, hr3.x
	0002:0000:000: 	(rpt3)mov.f32f32 r15.w, (r)r0.z
}
";
        let program = super::super::text::read(text).expect("a program");
        let mut list = Vec::new();
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            let start = list.len();
            let [middle, end] = list_instr(&program, &target, data, &mut list);
            let lists = [&list[start..middle], &list[middle..end]];
            for (list, set) in lists.into_iter().zip(RegisterSet::of_instr(&program, &target, data)) {
                let mut units: Vec<usize> = list.iter().flat_map(|word| word.units()).collect();
                units.sort_unstable();
                assert_eq!(units, set.units().collect::<Vec<_>>());
                let mut sum = RegisterSet::EMPTY;
                sum.add_list(list);
                assert_eq!(sum, set);
                assert!(set.meets_list(list) && lists_meet(list, list));
            }
            assert!(!lists_meet(lists[0], lists[1]));
        }
    }

    #[test]
    fn runs_of_components_are_the_components() {
        let (merged, separate) = (Target::by_name("a660").unwrap(), Target::by_name("a540").unwrap());
        for (target, class, units) in
            [(merged, RegClass::FULL, 2), (merged, RegClass::HALF, 1), (separate, RegClass::HALF, 1)]
        {
            let origin = if class.half && !target.merged_regs { HALF.start as usize } else { 0 };
            for (reg, mask) in [(0, 1), (30, 0xf), (31, 0b1011), (5, 0), (33, 0x8000_0001), (0, u32::MAX), (60, 0xff0f)]
            {
                let expected: Vec<usize> = WriteMask(mask)
                    .components()
                    .flat_map(|component| {
                        (0..units).map(move |unit| origin + (reg + component as usize) * units + unit)
                    })
                    .collect();
                assert_eq!(set(&target, class, reg as u16, mask).units().collect::<Vec<_>>(), expected);
            }
        }
    }

    fn set(target: &Target, class: RegClass, reg: u16, mask: u32) -> RegisterSet {
        RegisterSet::of(&Program::default(), target, &Place::Reg(PhysReg(reg)), class, WriteMask(mask))
    }

    #[test]
    fn halves_of_a_merged_file_overlap() {
        let merged = Target::by_name("a660").unwrap();
        let separate = Target::by_name("a540").unwrap();
        for (target, expected) in [(merged, true), (separate, false)] {
            let full = set(&target, RegClass::FULL, 5, 1);
            assert_eq!(full.meets(&set(&target, RegClass::HALF, 11, 1)), expected);
            assert!(!full.meets(&set(&target, RegClass::HALF, 12, 1)));
            assert!(full.meets(&set(&target, RegClass::FULL, 3, 0b100)));
            assert!(!full.meets(&set(&target, RegClass::FULL, 3, 0b1011)));
        }
    }

    #[test]
    fn files_do_not_overlap() {
        let target = Target::by_name("a660").unwrap();
        let shared = set(&target, RegClass::SHARED, PhysReg::SHARED_FIRST.0, 0xf);
        let mut others = set(&target, RegClass::PREDICATE, PhysReg::P0_X.0, 0xf);
        others.add(&set(&target, RegClass::ADDRESS, PhysReg::A0_X.0, 3));
        others.add(&set(&target, RegClass::FULL, 0, u32::MAX));
        assert!(!shared.meets(&others) && others != RegisterSet::EMPTY);
        let mut sum = RegisterSet::EMPTY;
        sum.add(&others.shared());
        assert_eq!(sum, RegisterSet::EMPTY);
        sum.add(&shared.shared());
        assert_eq!(sum, shared);
        assert_eq!(set(&target, RegClass::FULL, PhysReg::INVALID.0, 1), RegisterSet::EMPTY);
    }
}
