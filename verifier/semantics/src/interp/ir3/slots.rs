//! Slots of operands.

use super::op::{ConstWidth, SlotElements};
use super::storage::{Loc, Modifier, Read, Storage, Write};
use crate::interp::filling::Narrow;
use crate::interp::{PlaceName, Places};
use crate::machine::arrays::reach;
use crate::machine::units;
use crate::operations::ir3_alu;
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{
    Array, ArrayAccess, Dst, InstrData, Mods, PhysReg, Place, Program, RegClass, RegFile, Src, SrcOperand, Value,
};
use ir3_compiler::maps::map_of;
use rustc_hash::{FxHashMap, FxHashSet};

/// Full registers of the general file, and half registers where they are a file of their own.
const GENERAL: u32 = 48 * 4;
/// Full registers of the shared file.
const SHARED: u32 = 8 * 4;

/// Assigns slots to the places that a program names, in the order in which they are requested.
pub(crate) struct SlotAllocator<'a> {
    program: &'a Program,
    merged: bool,
    /// Number of slots.
    pub count: u32,
    values: SecondaryMap<Value, Option<u32>>,
    arrays: SecondaryMap<Array, Option<u32>>,
    /// True for arrays whose accesses name no version: each has one storage.
    unversioned: SecondaryMap<Array, bool>,
    general: Option<u32>,
    half: Option<u32>,
    shared: Option<u32>,
    predicates: Option<u32>,
    addresses: Option<u32>,
    pub undefined: Option<u32>,
    /// The slots of less than 32 bits, and their bits.
    pub narrow: Narrow,
    immediates: FxHashMap<u32, u32>,
    consts: FxHashMap<(u16, ConstWidth), u32>,
}

/// The first slots of the register files that a program names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterBases {
    general: Option<u32>,
    half: Option<u32>,
    shared: Option<u32>,
    predicates: Option<u32>,
    addresses: Option<u32>,
}

impl RegisterBases {
    /// The slot of `a0.x`.
    pub const fn address(&self) -> Option<u32> {
        self.addresses
    }

    /// The slot of a half register, by its bit in the masks of [`units`](crate::machine::units), and which
    /// of its two poison masks are those of the register.
    pub fn slot(&self, bit: u16) -> Option<(u32, [bool; 2])> {
        let halves = |base: Option<u32>, bit: u16| {
            let low = bit & 1 == 0;
            Some((base? + u32::from(bit / 2), [low, !low]))
        };
        let whole = |base: Option<u32>, index: u16| Some((base? + u32::from(index), [true, true]));
        match units::file_of(bit) {
            (units::File::General, bit) => halves(self.general, bit),
            (units::File::Half, index) => whole(self.half, index),
            (units::File::Shared, bit) => halves(self.shared, bit),
            (units::File::Addresses, index) => whole(self.addresses, index),
            (units::File::Predicates, index) => whole(self.predicates, index),
        }
    }

    /// Makes a half register poison in these lanes.
    pub fn poison(&self, storage: &mut Storage, bit: u16, lanes: u64) {
        let Some((slot, parts)) = self.slot(bit) else { return };
        for (part, is_own) in parts.into_iter().enumerate() {
            storage.poison[2 * slot as usize + part] |= if is_own { lanes } else { 0 };
        }
        storage.partial[slot as usize] &= !lanes;
    }

    /// The slots of general and shared registers; true for shared ones.
    pub fn fillable(&self) -> impl Iterator<Item = (std::ops::Range<u32>, bool)> {
        let all = [(self.general, GENERAL, false), (self.half, GENERAL, false), (self.shared, SHARED, true)];
        all.into_iter().filter_map(|(base, size, shared)| Some((base?..base? + size, shared)))
    }
}

/// The bits of a class of less than 32.
fn mask_of(class: RegClass) -> Option<u32> {
    match class.file {
        RegFile::Predicate => Some(1),
        RegFile::Address => Some(0xffff),
        _ => class.half.then_some(0xffff),
    }
}

/// A place that has no slot, as text.
pub(crate) type SlotError = String;

impl<'a> SlotAllocator<'a> {
    /// Creates an empty assignment.
    pub fn new(program: &'a Program, merged: bool) -> Self {
        Self {
            program,
            merged,
            count: 0,
            values: map_of(program.values.len()),
            arrays: SecondaryMap::new(),
            unversioned: unversioned_arrays(program),
            general: None,
            half: None,
            shared: None,
            predicates: None,
            addresses: None,
            undefined: None,
            narrow: Narrow::new(),
            immediates: FxHashMap::default(),
            consts: FxHashMap::default(),
        }
    }

    /// The immediates that were requested: bits and slot.
    pub fn immediates(&self) -> Vec<(u32, u32)> {
        let mut list: Vec<_> = self.immediates.iter().map(|(&bits, &slot)| (bits, slot)).collect();
        list.sort_unstable_by_key(|&(_, slot)| slot);
        list
    }

    /// The words of the constant file that were requested.
    pub fn consts(&self) -> Vec<(u16, ConstWidth, u32)> {
        let mut list: Vec<_> = self.consts.iter().map(|(&(word, width), &slot)| (word, width, slot)).collect();
        list.sort_unstable_by_key(|&(.., slot)| slot);
        list
    }

    /// The first slots of values, in order, and the values' numbers.
    pub fn values(&self) -> Vec<(u32, u32)> {
        let mut list: Vec<_> =
            self.values.iter().filter_map(|(value, slot)| Some(((*slot)?, value.as_u32()))).collect();
        list.sort_unstable();
        list
    }

    /// The names of the slots of arrays without versions and of registers, which do not depend on the rest of the
    /// program; and the slots of values of one word that are no arrays, which their definitions write.
    pub fn places(&self) -> Places {
        let all = &self.program.arrays;
        let is_one = |id: u32| all.values().filter(|data| data.id == id).count() == 1;
        let arrays = self.arrays.iter().filter_map(|(array, &slot)| Some((&all[array], slot?)));
        let words = arrays.filter(|(data, _)| is_one(data.id)).flat_map(|(data, slot)| {
            let name = move |word| PlaceName::ArrayWord { array: data.id, word };
            (0..u32::from(data.length)).map(move |word| (slot + word, name(word)))
        });
        let registers = self.regions().into_iter().flat_map(|(base, size)| base.map_or(0..0, |base| base..base + size));
        let registers = registers.map(|slot| (slot, PlaceName::Register(self.canonical(slot))));
        let is_scalar = |value: Value| {
            let data = &self.program.values[value];
            data.array.is_none() && data.components == 1
        };
        let values = self.values.iter().filter_map(|(value, &slot)| Some((value, slot?)));
        // A value's record of its definition may be wrong: only a destination writes it.
        let instrs = self.program.iter_instrs().map(|(_, instr)| &self.program.instrs[instr]);
        let written: FxHashSet<Value> =
            instrs.flat_map(|data| data.dsts.iter().filter_map(|dst| dst.place.value())).collect();
        Places {
            names: words.chain(registers).collect(),
            written_first: values
                .filter(|&(value, _)| is_scalar(value) && written.contains(&value))
                .map(|(_, slot)| slot)
                .collect(),
        }
    }

    /// The first slots of the register files.
    pub fn bases(&self) -> RegisterBases {
        let Self { general, half, shared, predicates, addresses, .. } = *self;
        RegisterBases { general, half, shared, predicates, addresses }
    }

    fn regions(&self) -> [(Option<u32>, u32); 5] {
        [
            (self.general, GENERAL),
            (self.half, GENERAL),
            (self.shared, SHARED),
            (self.predicates, 4),
            (self.addresses, 2),
        ]
    }

    /// Allocates `n` consecutive slots.
    pub fn fresh(&mut self, n: u32) -> u32 {
        let first = self.count;
        self.count += n;
        first
    }

    /// Allocates `n` consecutive slots for values of a class.
    fn fresh_of(&mut self, class: RegClass, n: u32) -> u32 {
        let first = self.fresh(n);
        self.narrow.extend(mask_of(class).map(|mask| (first, n, mask)));
        first
    }

    /// The slot of an immediate.
    pub fn immediate(&mut self, bits: u32) -> Loc {
        let count = &mut self.count;
        let slot = *self.immediates.entry(bits).or_insert_with(|| {
            *count += 1;
            *count - 1
        });
        Loc::whole(slot)
    }

    /// The slot that stays poison.
    pub fn undefined(&mut self) -> Loc {
        let slot = match self.undefined {
            Some(slot) => slot,
            None => self.fresh(1),
        };
        self.undefined = Some(slot);
        Loc::whole(slot)
    }

    fn constant(&mut self, word: u16, width: ConstWidth) -> Result<Loc, SlotError> {
        if u32::from(word) >= crate::environment::env::CONST_WORDS {
            return Err(format!("word {word} of the constant file"));
        }
        let count = &mut self.count;
        let slot = *self.consts.entry((word, width)).or_insert_with(|| {
            *count += 1;
            *count - 1
        });
        Ok(Loc::whole(slot))
    }

    fn value(&mut self, value: Value) -> u32 {
        if let Some(slot) = self.values[value] {
            return slot;
        }
        let data = &self.program.values[value];
        let slots = match data.array {
            Some(array) => u32::from(self.program.arrays[array].length),
            None => u32::from(data.components),
        };
        let slot = self.fresh_of(data.class, slots.max(1));
        self.values[value] = Some(slot);
        slot
    }

    /// A number for a slot; for a register, the same number in every program.
    pub fn canonical(&self, slot: u32) -> u32 {
        let mut first = 0;
        for (base, size) in self.regions() {
            if let Some(base) = base
                && (base..base + size).contains(&slot)
            {
                return first + slot - base;
            }
            first += size;
        }
        first + slot
    }

    /// Returns true if [`SlotAllocator::canonical`] gave this number to a register.
    pub const fn is_register(number: u32) -> bool {
        number < 2 * GENERAL + SHARED + 4 + 2
    }

    fn region(&mut self, of: impl Fn(&mut Self) -> &mut Option<u32>, class: RegClass, size: u32) -> u32 {
        if let Some(slot) = *of(self) {
            return slot;
        }
        let slot = self.fresh_of(class, size);
        *of(self) = Some(slot);
        slot
    }

    /// The registers from `reg` on, as elements of a class: slots, or halves of slots.
    fn registers(&mut self, reg: PhysReg, class: RegClass, length: u32) -> Result<SlotElements, SlotError> {
        let number = u32::from(reg.0);
        let outside = || format!("register {}{reg} is outside its file", if class.half { "h" } else { "" });
        let plain = |slot: u32, length: u32| SlotElements { slot, first: 0, halves: false, length };
        let within = |base: u32, size: u32| {
            let index = number.checked_sub(base).ok_or_else(outside)?;
            if index + length <= size { Ok(index) } else { Err(outside()) }
        };
        Ok(match (class.file, class.half) {
            (RegFile::General, true) if self.merged => {
                let index = within(0, 2 * GENERAL)?;
                let base = self.region(|s| &mut s.general, RegClass::FULL, GENERAL);
                SlotElements { slot: base + index / 2, first: index & 1, halves: true, length }
            }
            (RegFile::General, true) => {
                let index = within(0, GENERAL)?;
                plain(self.region(|s| &mut s.half, class, GENERAL) + index, length)
            }
            (RegFile::General, false) => {
                let index = within(0, GENERAL)?;
                plain(self.region(|s| &mut s.general, RegClass::FULL, GENERAL) + index, length)
            }
            (RegFile::Shared, true) => {
                let index = within(GENERAL, 2 * SHARED)?;
                let base = self.region(|s| &mut s.shared, RegClass::FULL, SHARED);
                SlotElements { slot: base + index / 2, first: index & 1, halves: true, length }
            }
            (RegFile::Shared, false) => {
                let index = within(GENERAL, SHARED)?;
                plain(self.region(|s| &mut s.shared, RegClass::FULL, SHARED) + index, length)
            }
            (RegFile::Predicate, _) => {
                let index = within(u32::from(PhysReg::P0_X.0), 4)?;
                plain(self.region(|s| &mut s.predicates, class, 4) + index, length)
            }
            (RegFile::Address, _) => {
                let index = within(u32::from(PhysReg::A0_X.0), 2)?;
                plain(self.region(|s| &mut s.addresses, class, 2) + index, length)
            }
        })
    }

    /// The elements of an array that an access is to: those of the version that it names, of the array's registers, or
    /// of the one storage of an array without versions. `None` is an array that is never written.
    ///
    /// # Errors
    /// If the operand is not as wide as the array's elements, or the array leaves the file.
    pub fn array(&mut self, access: &ArrayAccess, class: RegClass) -> Result<Option<SlotElements>, SlotError> {
        let data = &self.program.arrays[access.array];
        let length = u32::from(data.length);
        if data.class.half != class.half {
            return Err("array element of another width".to_owned());
        }
        if let Some(base) = access.base.expand() {
            return self.registers(base, class, length).map(Some);
        }
        if self.unversioned[access.array] {
            let slot = match self.arrays[access.array] {
                Some(slot) => slot,
                None => self.fresh_of(class, length),
            };
            self.arrays[access.array] = Some(slot);
            return Ok(Some(SlotElements { slot, first: 0, halves: false, length }));
        }
        Ok(access.value.expand().map(|value| SlotElements { slot: self.value(value), first: 0, halves: false, length }))
    }

    /// The elements that `r<a0.x + n>` may reach, and the number of the first register: those of the array, if it is
    /// known ([`reach`]). Elements beyond them are undefined, in any register: the register checker assumes that
    /// no access leaves its array.
    ///
    /// # Errors
    /// If there is no file of this class.
    pub fn relative(&mut self, class: RegClass, offset: i16, size: u16) -> Result<(SlotElements, u16), SlotError> {
        let (first, length) = reach(self.program, offset, size, class, self.merged);
        Ok((self.registers(PhysReg(first), class, length.into())?, first))
    }

    /// Component `component` of a place that is not indirect.
    ///
    /// # Errors
    /// If the place is indirect, has no such component, or has another width.
    pub fn place(&mut self, place: &Place, class: RegClass, component: u32) -> Result<Loc, SlotError> {
        match place {
            Place::Value(value) | Place::Assigned(value, _) => {
                let data = &self.program.values[*value];
                if data.class.half != class.half {
                    return Err(format!("{value} is not as wide as the operand"));
                }
                let components = match data.array {
                    Some(array) => u32::from(self.program.arrays[array].length),
                    None => u32::from(data.components),
                };
                if component >= components {
                    return Err(format!("component {component} of {value}"));
                }
                Ok(Loc::whole(self.value(*value) + component))
            }
            Place::Reg(reg) => Ok(self.registers(*reg, class, component + 1)?.loc(component)),
            Place::Array(access) => {
                if access.relative {
                    return Err("relative operand".to_owned());
                }
                let index = i64::from(access.offset) + i64::from(component);
                match self.array(access, class)? {
                    Some(elements) if (0..i64::from(elements.length)).contains(&index) => {
                        Ok(elements.loc(index as u32))
                    }
                    Some(elements) => Err(format!("element {index} of an array of {}", elements.length)),
                    None => Ok(self.undefined()),
                }
            }
            Place::Relative { .. } => Err("relative operand".to_owned()),
        }
    }

    /// Component `component` of a direct destination.
    ///
    /// A predicate is a full register. A write with the flag of half registers goes to another register, which the
    /// model does not have. A write to r63.x is discarded.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn write(&mut self, dst: &Dst, component: u32) -> Result<Write, SlotError> {
        let is_lost = dst.class == (RegClass { file: RegFile::Predicate, half: true });
        if is_lost || dst.place.reg() == Some(PhysReg::INVALID) {
            return Ok(Write { loc: Loc::whole(self.fresh(1)), shared: false });
        }
        Ok(Write {
            loc: self.place(&dst.place, dst.class, component)?,
            shared: units::is_of_wave(&dst.place, dst.class),
        })
    }

    /// Component `component` of a direct source, without its modifiers.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn loc(&mut self, src: &Src, component: u32, demote: ConstWidth) -> Result<Loc, SlotError> {
        match &src.operand {
            SrcOperand::Place(Place::Reg(PhysReg::INVALID)) => Ok(self.undefined()),
            SrcOperand::Place(place) => self.place(place, src.class, component),
            SrcOperand::Const(word) => {
                let width = if src.class.half { demote } else { ConstWidth::Full };
                self.constant(word + component as u16, width)
            }
            SrcOperand::Immediate(bits) => Ok(self.immediate(if src.class.half { bits & 0xffff } else { *bits })),
            SrcOperand::Undef => Ok(self.undefined()),
            SrcOperand::ConstRelative(_) => Err("relative operand".to_owned()),
        }
    }

    /// A direct source of an operation that has no modifiers.
    ///
    /// # Errors
    /// If the operand has a modifier, and as [`place`](Self::place).
    pub fn plain(&mut self, src: &Src, component: u32) -> Result<Read, SlotError> {
        if src.mods.is_empty() {
            Ok(Read::plain(self.loc(src, component, ConstWidth::Truncated)?))
        } else {
            Err("a modifier".to_owned())
        }
    }
}

/// The effect of the modifiers of source `i`.
pub(crate) fn modifier(data: &InstrData, i: usize) -> Result<Modifier, SlotError> {
    let src = &data.srcs[i];
    if src.mods.is_empty() {
        Ok(Modifier::None)
    } else if src.class.file == RegFile::Predicate {
        if src.mods == Mods::NOT { Ok(Modifier::Invert) } else { Err("modifier of a predicate".to_owned()) }
    } else {
        ir3_alu::modifier(data, i).map(Modifier::Apply).ok_or_else(|| format!("the modifiers of source {i}"))
    }
}

/// The arrays whose accesses name no version: `array_to_ssa` has not run.
fn unversioned_arrays(program: &Program) -> SecondaryMap<Array, bool> {
    let mut unversioned = SecondaryMap::new();
    if program.arrays.is_empty() {
        return unversioned;
    }
    let mut read = SecondaryMap::<Array, bool>::new();
    let mut versioned = SecondaryMap::<Array, bool>::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for src in &data.srcs {
            if let Some(Place::Array(access)) = src.place() {
                read[access.array] = true;
                versioned[access.array] |= access.value.is_some();
            }
        }
        for dst in &data.dsts {
            if let Place::Array(access) = dst.place
                && access.value.is_none()
            {
                read[access.array] = true;
            }
        }
    }
    for array in program.arrays.keys() {
        unversioned[array] = read[array] && !versioned[array];
    }
    unversioned
}
