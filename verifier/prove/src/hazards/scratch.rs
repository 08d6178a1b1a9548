//! Scratch memory at known addresses: spilled values are as good as registers.
//!
//! An access names a base register and an offset in bytes. Its address is known if on every path of a lane the last
//! write of the base is the move of one immediate. (Allocation puts it at the start of a program that spills.) A store
//! whose address is not known may change all of a lane's memory, a load from there may have any of it.
//!
//! *Assumptions.* `p[…]` is each lane's own memory, and only `stp` writes it: no other opcode has that space, and its
//! addresses are not those of any buffer. Loads and stores of one lane take effect in the order of the code; Mesa has
//! no flag between a spill and its reload, either. Inactive lanes do not store.

use super::flow::Flow;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{
    AddressSpace, Attrs, InstrData, Opcode, PhysReg, Place, RegClass, RegFile, Src, SrcOperand, WriteMask,
};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;
use ir3_semantics::machine::steps::{Bits, Steps};
use ir3_semantics::machine::units;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of scratch memory that are followed: more than a program of Mesa's that spills everything has.
const BYTES: i64 = 8192;

/// Offset and size of an element of a scratch access, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    offset: i32,
    size: u8,
}

impl Access {
    /// The access of an instruction, if its attributes are known.
    fn of(data: &InstrData) -> Option<Self> {
        let memory = data.memory().filter(|memory| memory.space == Some(AddressSpace::Scratch))?;
        let size = memory.ty?.bits() / 8;
        let offset = match data.opcode {
            Opcode::Stp => memory.offset,
            Opcode::Ldp => match data.srcs.get(1)?.operand {
                SrcOperand::Immediate(offset) => offset as i32,
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { offset, size })
    }
}

/// Scratch accesses whose addresses come from elsewhere than the code: Mesa's text of a store has no offset, its
/// assembly has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScratchAccesses {
    known: FxHashMap<Ip, Access>,
}

impl ScratchAccesses {
    /// The accesses of the same code, with their attributes.
    #[must_use]
    pub fn of(code: &Code) -> Self {
        let known = code.instrs.iter().filter_map(|(ip, instr)| Some((ip, Access::of(&instr.data)?)));
        Self { known: known.collect() }
    }

    /// The facts of code without the instruction at a position.
    #[must_use]
    pub fn without(&self, removed: Ip) -> Self {
        let moved = |at: Ip| if at > removed { Ip::from_u32(at.as_u32() - 1) } else { at };
        let known = self.known.iter().filter(|(at, _)| **at != removed);
        Self { known: known.map(|(&at, &access)| (moved(at), access)).collect() }
    }
}

/// The scratch memory accesses of an instruction, in units of two bytes; unknown if the address is.
#[derive(Clone, Debug)]
pub enum ScratchOperation {
    /// It loads.
    Load {
        /// The units.
        units: Option<Range<u32>>,
        /// The registers that are loaded, one for each component.
        data: SmallVec<[Bits; 2]>,
    },
    /// It stores.
    Store {
        /// The units.
        units: Option<Range<u32>>,
        /// The registers that are stored, one for each component.
        data: SmallVec<[Bits; 2]>,
    },
}

/// The scratch accesses of a program.
#[derive(Debug, Default)]
pub struct Scratch {
    operations: FxHashMap<usize, ScratchOperation>,
    /// Words of a set of the units that are accessed.
    pub words: usize,
}

impl Scratch {
    /// Finds the addresses of all accesses. The edges of lanes are those of `flow`.
    pub fn new(code: &Code, steps: &Steps, flow: &Flow, given: &ScratchAccesses, target: &Target) -> Self {
        let is_access = |opcode| matches!(opcode, Opcode::Ldp | Opcode::Stp);
        let mut this = Self::default();
        let mut bases: FxHashMap<Option<PhysReg>, Vec<Option<u32>>> = FxHashMap::default();
        let mut end = 0;
        for (ip, instr) in code.instrs.iter().filter(|(_, instr)| is_access(instr.data.opcode)) {
            let data = &instr.data;
            let mut address = || {
                let access = given.known.get(&ip).copied().or_else(|| Access::of(data))?;
                let base = data.srcs.first()?;
                let register = base.place().and_then(Place::reg);
                let values = bases.entry(register).or_insert_with(|| constant_at(code, steps, flow, base, target));
                Some((i64::from(values[ip.index()]?) + i64::from(access.offset), access.size))
            };
            let address = address();
            // A register of an unusual width is of no type that spills have.
            let units = |mask: WriteMask, class: RegClass| {
                let (first, size) = address?;
                let last = first + i64::from(size) * i64::from(mask.span());
                let fits = mask == WriteMask::first(mask.span())
                    && first >= 0
                    && last <= BYTES
                    && first % 2 == 0
                    && size == if class.half { 2 } else { 4 };
                fits.then_some(first as u32 / 2..last as u32 / 2)
            };
            let operation = match (data.opcode, data.srcs.get(1), data.dsts.first()) {
                (Opcode::Stp, Some(src), _) => {
                    let bits = src.place().map(|place| bits_of(place, src.class, src.mask, target));
                    let units = units(src.mask, src.class).filter(|_| bits.is_some());
                    ScratchOperation::Store { units, data: bits.unwrap_or_default() }
                }
                (Opcode::Ldp, _, Some(dst)) => ScratchOperation::Load {
                    units: units(dst.mask, dst.class),
                    data: bits_of(&dst.place, dst.class, dst.mask, target),
                },
                (Opcode::Ldp, ..) => ScratchOperation::Load { units: None, data: SmallVec::new() },
                _ => ScratchOperation::Store { units: None, data: SmallVec::new() },
            };
            let (ScratchOperation::Load { units, .. } | ScratchOperation::Store { units, .. }) = &operation;
            end = end.max(units.as_ref().map_or(0, |units| units.end));
            this.operations.insert(ip.index(), operation);
        }
        this.words = end.div_ceil(64) as usize;
        this
    }

    /// The scratch memory access of an instruction, if it has one.
    pub fn operation(&self, at: usize) -> Option<&ScratchOperation> {
        if self.operations.is_empty() { None } else { self.operations.get(&at) }
    }
}

/// The registers of an operand, one for each component.
fn bits_of(place: &Place, class: RegClass, mask: WriteMask, target: &Target) -> SmallVec<[Bits; 2]> {
    let pieces = units::pieces(place, class, mask, target.merged_regs).unwrap_or_default();
    let bits = pieces.iter().map(|piece| Bits {
        word: (piece.bit / 64) as u8,
        half: class.half,
        bits: ((1 << piece.width) - 1) << (piece.bit % 64),
    });
    bits.collect()
}

/// The value of a register on the paths of lanes to a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// No path has been found.
    Unreached,
    /// The last write on all paths moves this immediate.
    Constant(u32),
    /// Something else.
    Any,
}

/// The constant that a full register holds before each instruction, for every lane that executes it, if it does.
fn constant_at(code: &Code, steps: &Steps, flow: &Flow, register: &Src, target: &Target) -> Vec<Option<u32>> {
    let none = || vec![None; code.instrs.len()];
    let full = register.class.file == RegFile::General && !register.class.half;
    let (Some(place), true) = (register.place().filter(|place| place.reg().is_some()), full) else { return none() };
    let own = bits_of(place, register.class, register.mask, target);
    let [own] = own[..] else { return none() };
    let touches = |at: usize| {
        let writes = steps.bits(&steps.steps[at].write_bits);
        writes.iter().any(|of| of.word == own.word && of.bits & own.bits != 0)
    };
    let written = |at: usize| {
        let data = &code.instrs[Ip::new(at)].data;
        let moves = matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst && src.bits() == 32);
        match (data.opcode, &data.dsts[..], &data.srcs[..]) {
            (Opcode::Mov, [dst], [src])
                if moves && data.repeat == 0 && dst.place.reg() == place.reg() && src.mods.is_empty() =>
            {
                match src.operand {
                    SrcOperand::Immediate(value) if dst.class == register.class => Value::Constant(value),
                    _ => Value::Any,
                }
            }
            _ => Value::Any,
        }
    };
    let mut before = vec![Value::Unreached; flow.blocks.len()];
    before[0] = Value::Any;
    let mut pending = vec![0usize];
    let mut values = none();
    while let Some(block) = pending.pop() {
        let mut value = before[block];
        for at in flow.blocks[block].ips.clone() {
            let at = at as usize;
            values[at] = if let Value::Constant(value) = value { Some(value) } else { None };
            if touches(at) {
                value = written(at);
            }
        }
        for &to in &flow.blocks[block].lanes {
            let next = &mut before[to as usize];
            let joined = match *next {
                Value::Unreached => value,
                other if other == value => value,
                _ => Value::Any,
            };
            if joined != *next {
                *next = joined;
                pending.push(to as usize);
            }
        }
    }
    values
}
