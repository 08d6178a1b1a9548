//! The locations of values: registers, SSA values, arrays and scratch memory, in pieces of 16 bits.
//!
//! Pieces are numbered densely, program by program: first the registers of all files, then scratch memory, then arrays
//! and SSA values. A full register is two pieces, a half one is one; in a merged file these are the same pieces.

use super::liveness::LiveEntity;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use fixedbitset::FixedBitSet;
use ir3_compiler::ir3::{Array, ArrayAccess, PhysReg, Place, Program, RegClass, RegFile, Src, Value};
use std::ops::Range;

/// A piece of 16 bits (or a predicate, or an address register) of one program.
pub type Piece = u32;

/// The reason why an operand has no location.
pub type LocationProblem = String;

/// The numbers of pieces of the full file, of half registers where they are a file of their own, of shared registers.
const FULL: u32 = 48 * 4 * 2;
const HALF: u32 = 48 * 4;
const SHARED: u32 = 8 * 4 * 2;
const PREDICATES: u32 = 4;
const ADDRESSES: u32 = 2;

const HALF_FIRST: u32 = FULL;
const SHARED_FIRST: u32 = HALF_FIRST + HALF;
const PREDICATE_FIRST: u32 = SHARED_FIRST + SHARED;
const ADDRESS_FIRST: u32 = PREDICATE_FIRST + PREDICATES;
/// `a1.x`, which belongs to the wave.
const SECOND_ADDRESS: u32 = ADDRESS_FIRST + 1;
const SCRATCH_FIRST: u32 = ADDRESS_FIRST + ADDRESSES;

/// The pieces of registers that a value may keep: shared registers and predicates.
pub(super) const KEPT: Range<Piece> = SHARED_FIRST..ADDRESS_FIRST;

/// The half registers that a machine instruction can name: `hr0.x` to `hr47.w`.
const NAMED_HALVES: u32 = 48 * 4;

/// The pieces of a program.
pub struct Locations<'a> {
    pub program: &'a Program,
    pub(super) merged: bool,
    /// The number of pieces of registers and scratch memory, which come first.
    pub registers: u32,
    /// The number of fixed pieces, with arrays: pieces that are not of SSA values may be written more than once, and
    /// begin undefined.
    pub fixed: u32,
    values: SecondaryMap<Value, u32>,
    arrays: SecondaryMap<Array, u32>,
    /// The values that have a definition without a register: those are in no register, even if a use names one.
    unassigned: EntitySet<Value>,
    /// Number of pieces.
    pub count: u32,
    /// Pieces that the wave has once: those of shared registers, and `a1.x`.
    shared: FixedBitSet,
}

enum Owner {
    Value(Value),
    Array(Array),
}

impl<'a> Locations<'a> {
    /// Numbers the pieces of a program.
    pub fn new(program: &'a Program, merged: bool) -> Self {
        let scratch = program.scratch_size.div_ceil(2);
        let mut count = SCRATCH_FIRST + scratch;
        let mut arrays = SecondaryMap::with_capacity(program.arrays.len());
        for (array, data) in program.arrays.iter() {
            arrays[array] = count;
            count += u32::from(data.length) * pieces(data.class);
        }
        let fixed = count;
        let mut values = SecondaryMap::with_capacity(program.values.len());
        values.resize(program.values.len());
        for (value, data) in program.values.iter() {
            values[value] = count;
            count += u32::from(data.components) * pieces(data.class);
        }
        let mut unassigned = EntitySet::new();
        for (_, instr) in program.iter_instrs() {
            for dst in &program.instrs[instr].dsts {
                if let Place::Value(value) = dst.place {
                    unassigned.insert(value);
                }
            }
        }
        let registers = SCRATCH_FIRST + scratch;
        let shared = FixedBitSet::new();
        let mut this = Self { program, merged, registers, fixed, values, arrays, unassigned, count, shared };
        this.shared = this.find_shared();
        this
    }

    fn find_shared(&self) -> FixedBitSet {
        let Program { arrays, values, .. } = self.program;
        let instrs = self.program.iter_instrs().map(|(_, instr)| &self.program.instrs[instr]);
        let second_address = instrs.flat_map(|data| &data.dsts).filter_map(|dst| match dst.place {
            Place::Assigned(value, PhysReg::A1_X) => Some(self.value(value)),
            _ => None,
        });
        let arrays = arrays.iter().filter(|(_, data)| data.class.file == RegFile::Shared);
        let values = values.iter().filter(|(_, data)| data.class.file == RegFile::Shared);
        let all = arrays.map(|(array, _)| self.whole_array(array)).chain(values.map(|(value, _)| self.value(value)));
        let all = all.chain(second_address);
        let mut shared = FixedBitSet::with_capacity(self.count as usize);
        shared.insert_range(SHARED_FIRST as usize..PREDICATE_FIRST as usize);
        shared.insert(SECOND_ADDRESS as usize);
        all.for_each(|pieces| shared.insert_range(pieces.start as usize..pieces.end as usize));
        shared
    }

    /// Returns true if the wave has a piece once: it belongs to a shared register, or is `a1.x`.
    pub fn is_shared(&self, piece: Piece) -> bool {
        self.shared.contains(piece as usize)
    }

    /// The pieces of a value.
    fn value(&self, value: Value) -> Range<Piece> {
        let data = &self.program.values[value];
        let first = self.values[value];
        first..first + u32::from(data.components) * pieces(data.class)
    }

    fn whole_array(&self, array: Array) -> Range<Piece> {
        let data = &self.program.arrays[array];
        let first = self.arrays[array];
        first..first + u32::from(data.length) * pieces(data.class)
    }

    /// Returns true if a piece is tracked by liveness.
    pub fn is_tracked(&self, piece: Piece) -> bool {
        (self.fixed..self.count).contains(&piece) || (SCRATCH_FIRST..self.registers).contains(&piece)
    }

    /// The pieces of an entity.
    pub fn entity(&self, entity: LiveEntity) -> Range<Piece> {
        match entity.index().checked_sub(self.program.values.len()) {
            None => self.value(Value::new(entity.index())),
            Some(at) => {
                let piece = SCRATCH_FIRST + at as u32;
                piece..piece + 1
            }
        }
    }

    /// The owner of a piece after the registers.
    fn owner(&self, piece: Piece) -> Option<Owner> {
        fn last<K: EntityRef>(starts: &SecondaryMap<K, u32>, piece: Piece) -> K {
            let starts = starts.values().as_slice();
            K::new(starts.partition_point(|&start| start <= piece) - 1)
        }
        match piece {
            _ if piece < self.registers => None,
            _ if piece < self.fixed => Some(Owner::Array(last(&self.arrays, piece))),
            _ => Some(Owner::Value(last(&self.values, piece))),
        }
    }

    /// The pieces of scratch memory at a byte address.
    ///
    /// # Errors
    /// If the bytes are not whole half words, or not within the program's scratch memory.
    pub fn scratch(&self, address: u32, bytes: u32) -> Result<Range<Piece>, LocationProblem> {
        if !address.is_multiple_of(2) || !bytes.is_multiple_of(2) {
            return Err(format!("byte {address} of scratch memory begins no half word"));
        }
        if address + bytes > self.program.scratch_size {
            return Err(format!(
                "bytes {address} to {} of scratch memory, which has {}",
                address + bytes,
                self.program.scratch_size
            ));
        }
        Ok(SCRATCH_FIRST + address / 2..SCRATCH_FIRST + (address + bytes) / 2)
    }

    /// Returns true if a place is a value that keeps its register.
    fn is_kept(&self, place: &Place, class: RegClass) -> bool {
        let Place::Assigned(value, _) = place else { return false };
        matches!(class.file, RegFile::Predicate | RegFile::Shared) && !self.unassigned.contains(*value)
    }

    /// The class of a source that is a value which keeps its register, and is [located](Self::component) in it.
    pub(super) fn kept(&self, src: &Src) -> Option<RegClass> {
        src.place().is_some_and(|place| self.is_kept(place, src.class)).then_some(src.class)
    }

    /// The first piece of component `component` of the value that a place names, if it names one.
    pub(super) fn value_piece(&self, place: &Place, class: RegClass, component: u32) -> Option<Piece> {
        let (Place::Value(value) | Place::Assigned(value, _)) = place else { return None };
        let data = &self.program.values[*value];
        let is_there = data.class.half == class.half && component < u32::from(data.components);
        is_there.then(|| self.values[*value] + component * pieces(class))
    }

    /// The pieces of component `component` of a place. `named`: a machine instruction has to name it.
    ///
    /// # Errors
    /// If the place is relative, has no such component, or is outside of its file.
    pub fn component(
        &self,
        place: &Place,
        class: RegClass,
        component: u32,
        named: bool,
    ) -> Result<Range<Piece>, LocationProblem> {
        let width = pieces(class);
        match place {
            // Some values that have a register are not in SSA form any more; these keep the register that they were
            // given. Addresses are values until all registers are assigned, as the interpreter takes them; and Mesa's
            // `predt` and `predf` name the register that they read before it is assigned.
            Place::Assigned(_, reg) if self.is_kept(place, class) => self.register(*reg, class, component, named),
            Place::Value(value) | Place::Assigned(value, _) => {
                let first = self.value_piece(place, class, component);
                let first = first.ok_or_else(|| format!("component {component} of {value}"))?;
                Ok(first..first + width)
            }
            Place::Reg(reg) => self.register(*reg, class, component, named),
            Place::Array(access) if !access.relative => {
                let region = self.array(access, class)?;
                let index = i64::from(access.offset) + i64::from(component);
                let first = i64::from(region.start) + index * i64::from(width);
                if index < 0 || first + i64::from(width) > i64::from(region.end) {
                    return Err(format!("element {index} of {}", access.array));
                }
                Ok(first as u32..first as u32 + width)
            }
            Place::Array(_) | Place::Relative { .. } => Err("a relative operand".to_owned()),
        }
    }

    /// All pieces of an array.
    ///
    /// # Errors
    /// If the access is to a version of the array, or the array is of another class.
    pub fn array(&self, access: &ArrayAccess, class: RegClass) -> Result<Range<Piece>, LocationProblem> {
        if access.value.is_some() {
            return Err("a version of an array".to_owned());
        }
        let data = &self.program.arrays[access.array];
        if data.class != class {
            return Err("an array of another class".to_owned());
        }
        let length = u32::from(data.length);
        let first = match access.base.expand() {
            Some(base) if length > 0 => {
                self.register(base, class, length - 1, false)?;
                self.register(base, class, 0, false)?.start
            }
            _ => self.arrays[access.array],
        };
        Ok(first..first + length * pieces(class))
    }

    fn register(
        &self,
        reg: PhysReg,
        class: RegClass,
        component: u32,
        named: bool,
    ) -> Result<Range<Piece>, LocationProblem> {
        let number = u32::from(reg.0) + component;
        let width = pieces(class);
        let outside =
            || format!("{}{} is outside its file", if class.half { "h" } else { "" }, reg.offset(component as u16));
        let within = |first: u32, base: u32, size: u32| {
            let at = number.checked_sub(base).ok_or_else(outside)? * width;
            if at + width <= size { Ok(first + at..first + at + width) } else { Err(outside()) }
        };
        match class.file {
            RegFile::General if class.half && self.merged => {
                if named && number >= NAMED_HALVES {
                    return Err(format!("h{} is beyond the reach of half registers", reg.offset(component as u16)));
                }
                within(0, 0, FULL)
            }
            RegFile::General if class.half => within(HALF_FIRST, 0, HALF),
            RegFile::General => within(0, 0, FULL),
            RegFile::Shared => within(SHARED_FIRST, u32::from(PhysReg::SHARED_FIRST.0), SHARED),
            RegFile::Predicate => within(PREDICATE_FIRST, u32::from(PhysReg::P0_X.0), PREDICATES),
            RegFile::Address => within(ADDRESS_FIRST, u32::from(PhysReg::A0_X.0), ADDRESSES),
        }
    }

    /// The name of a piece, for messages.
    pub fn name(&self, piece: Piece) -> String {
        let xyzw = |n: u32| format!("{}.{}", n / 4, ['x', 'y', 'z', 'w'][n as usize % 4]);
        let part = |class: RegClass, piece: u32| match (pieces(class), piece % 2) {
            (2, 0) => " (low)",
            (2, _) => " (high)",
            _ => "",
        };
        match self.owner(piece) {
            Some(Owner::Value(value)) => {
                let class = self.program.values[value].class;
                let at = piece - self.values[value];
                format!("{value}.{}{}", at / pieces(class), part(class, at))
            }
            Some(Owner::Array(array)) => {
                let class = self.program.arrays[array].class;
                let at = piece - self.arrays[array];
                format!("{array}[{}]{}", at / pieces(class), part(class, at))
            }
            None if piece < HALF_FIRST => format!("r{}{}", xyzw(piece / 2), part(RegClass::FULL, piece)),
            None if piece < SHARED_FIRST => format!("hr{}", xyzw(piece - HALF_FIRST)),
            None if piece < PREDICATE_FIRST => {
                let at = piece - SHARED_FIRST;
                format!("r{}{}", xyzw(48 * 4 + at / 2), part(RegClass::FULL, at))
            }
            None if piece < ADDRESS_FIRST => format!("p{}", xyzw(piece - PREDICATE_FIRST)),
            None if piece < SCRATCH_FIRST => format!("a{}.x", piece - ADDRESS_FIRST),
            None => format!("scratch[{}]", (piece - SCRATCH_FIRST) * 2),
        }
    }
}

/// Pieces of one component.
pub const fn pieces(class: RegClass) -> u32 {
    match class.file {
        RegFile::Predicate | RegFile::Address => 1,
        RegFile::General | RegFile::Shared => class.component_units() as u32,
    }
}
