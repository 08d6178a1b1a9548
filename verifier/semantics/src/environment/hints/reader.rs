//! Analysis of how a program uses its inputs and constants.
//!
//! Each operation reads a value as a float or as an integer. A copy passes the uses of its result on to its sources:
//! moves, vectors, phis, halves of words, and words of the constant file that the preamble stores. That is repeated
//! until nothing changes; uses are only added.

use super::super::env::PUSH_CONSTANTS;
use super::{AddressWord, Binding, Hints, MOST_CONSTANTS, Usage};
use ir3_compiler::nir::{
    Alu, AluType, BaseType, Def, Function, Index, IndexKind, InstrData, Intrinsic, IntrinsicOp, Op, TexOp, preamble,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The most vec4s of one copy to the constant file.
const MOST_COPIED: u32 = 512;

/// Uses of a half of a word.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct HalfUses {
    float: bool,
    int: bool,
}

impl HalfUses {
    fn and(self, other: Self) -> Self {
        Self { float: self.float || other.float, int: self.int || other.int }
    }

    fn any(self) -> bool {
        self.float || self.int
    }
}

/// Uses as floats, as integers and as booleans of several bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Uses {
    float: bool,
    int: bool,
    boolean: bool,
    /// Uses of the low half, and of the high one.
    halves: [HalfUses; 2],
    /// Used as the low word of a pointer, as the high one, or as both words.
    address: [bool; 2],
}

impl Uses {
    /// The uses of a word of which a half becomes a value with some uses.
    fn of_half(number: usize, uses: Self) -> Self {
        let mut halves = [HalfUses::default(); 2];
        halves[number] = HalfUses { float: uses.float, int: uses.int };
        // The low half of a number is a number, too.
        Self { int: number == 0 && !uses.float, halves, ..Self::default() }
    }

    /// The halves that are floats, if the word is read as two numbers.
    fn separate_halves(self) -> Option<[bool; 2]> {
        let [low, high] = self.halves;
        (low.float || high.any()).then_some([low.float, high.float])
    }

    fn of(ty: AluType) -> Self {
        let [float, int] = [&[BaseType::Float][..], &[BaseType::Int, BaseType::Uint]].map(|all| all.contains(&ty.base));
        Self { float, int, ..Self::default() }
    }

    /// The uses of a word of a value of 64 bits.
    fn of_word(number: usize, uses: Self) -> Self {
        let mut address = [false; 2];
        address[number] = uses.address == [true; 2];
        Self { address, ..Self::default() }
    }

    /// The word of a pointer that it is, if it is one.
    const fn address_word(self) -> Option<AddressWord> {
        match self.address {
            [true, false] => Some(AddressWord::Low),
            [false, true] => Some(AddressWord::High),
            _ => None,
        }
    }

    fn usage(self) -> Usage {
        match (self.float, self.int) {
            (true, false) => Usage::Float,
            (false, true) => Usage::Int,
            _ => Usage::Any,
        }
    }
}

/// The pointer of an access to global memory.
fn pointer(intrinsic: &Intrinsic) -> Option<Def> {
    let name = intrinsic.op.name();
    if !name.contains("global") || name.contains("invocation") {
        return None;
    }
    intrinsic.srcs.get(usize::from(name.starts_with("store"))).copied()
}

/// A component of a value, or a word of the constant file that the program stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Component(Def, u8),
    Const(u32),
}

/// Finds the uses of all values of a function: uses of copies are uses of their sources.
pub(super) struct Reader<'a> {
    function: &'a Function,
    uses: FxHashMap<Value, Uses>,
    changed: bool,
}

impl<'a> Reader<'a> {
    pub fn new(function: &'a Function) -> Self {
        let mut reader = Self { function, uses: FxHashMap::default(), changed: true };
        // A copy may be of a value of an earlier iteration.
        while std::mem::take(&mut reader.changed) {
            for data in function.instrs.values() {
                reader.instr(data);
            }
        }
        reader
    }

    fn uses(&self, value: Value) -> Uses {
        self.uses.get(&value).copied().unwrap_or_default()
    }

    fn add(&mut self, value: Value, uses: Uses) {
        let known = self.uses.entry(value).or_default();
        let new = Uses {
            float: known.float || uses.float,
            int: known.int || uses.int,
            boolean: known.boolean || uses.boolean,
            halves: [0, 1].map(|at| known.halves[at].and(uses.halves[at])),
            address: [0, 1].map(|at| known.address[at] || uses.address[at]),
        };
        self.changed |= *known != new;
        *known = new;
    }

    fn components(&self, def: Def) -> impl Iterator<Item = u8> + use<> {
        0..self.function.defs[def].num_components
    }

    /// Every use of `to` is one of `from`.
    fn copy(&mut self, from: Def, to: Def) {
        for component in self.components(to) {
            self.add(Value::Component(from, component), self.uses(Value::Component(to, component)));
        }
    }

    /// The uses of the word of which a component of the result is a half, or the shift by which its high half becomes
    /// the low one.
    fn halved(&self, alu: &Alu, component: u8) -> Option<Uses> {
        let uses = self.uses(Value::Component(alu.def, component));
        match alu.op {
            Op::U2u16 | Op::Unpack32_2x16SplitX => Some(Uses::of_half(0, uses)),
            Op::Unpack32_2x16SplitY => Some(Uses::of_half(1, uses)),
            Op::Ushr | Op::Ishr if uses.halves[0].any() => {
                let is_half = alu.srcs.get(1).is_some_and(|by| self.function.as_const_scalar(by.def) == Some(16));
                is_half.then(|| Uses { halves: [HalfUses::default(), uses.halves[0]], ..Uses::default() })
            }
            _ => None,
        }
    }

    fn instr(&mut self, data: &InstrData) {
        match data {
            InstrData::Alu(alu) => {
                let info = alu.op.info();
                let components = self.function.defs[alu.def].num_components;
                for (number, src) in alu.srcs.iter().enumerate() {
                    for at in 0..info.source_components(number, components) {
                        let uses = match alu.op {
                            Op::Mov => self.uses(Value::Component(alu.def, at)),
                            Op::Bcsel | Op::B32csel if number > 0 => self.uses(Value::Component(alu.def, at)),
                            op if op.is_vec() => self.uses(Value::Component(alu.def, number as u8)),
                            Op::B2b1 => Uses { boolean: true, ..Uses::default() },
                            // A pointer and an offset, or the carry of their low words.
                            Op::Iadd | Op::Isub => {
                                let address = self.uses(Value::Component(alu.def, at)).address;
                                Uses { address, ..Uses::of(info.inputs[number].ty) }
                            }
                            Op::Pack64_2x32Split => Uses::of_word(number, self.uses(Value::Component(alu.def, at))),
                            _ if number == 0
                                && let Some(uses) = self.halved(alu, at) =>
                            {
                                uses
                            }
                            _ => Uses::of(info.inputs[number].ty),
                        };
                        self.add(Value::Component(src.def, src.swizzle[usize::from(at)]), uses);
                    }
                }
            }
            InstrData::Phi { def, srcs } => srcs.iter().for_each(|&(_, src)| self.copy(src, *def)),
            InstrData::Tex(tex) => {
                let float = !matches!(tex.op, TexOp::Txf | TexOp::TxfMs | TexOp::TxfMsFb | TexOp::Txs);
                use ir3_compiler::nir::TexSrcKind::{Bias, Comparator, Coord, Ddx, Ddy, Lod, MinLod, Projector};
                let is_coordinate =
                    |kind| matches!(kind, Coord | Comparator | Projector | Bias | Lod | MinLod | Ddx | Ddy);
                let coordinates = tex.srcs.iter().filter(|&&(kind, _)| is_coordinate(kind));
                for &(_, src) in coordinates {
                    for component in self.components(src) {
                        self.add(Value::Component(src, component), Uses { float, int: !float, ..Uses::default() });
                    }
                }
            }
            InstrData::Intrinsic(intrinsic) => {
                let Some(&first) = intrinsic.srcs.first() else { return };
                if let Some(pointer) = pointer(intrinsic) {
                    let is_wide = self.function.defs[pointer].bit_size == 64;
                    for component in self.components(pointer).take(2) {
                        let address = [is_wide || component == 0, is_wide || component == 1];
                        self.add(Value::Component(pointer, component), Uses { address, ..Uses::default() });
                    }
                }
                match (intrinsic.op, intrinsic.def, intrinsic.indices.get(IndexKind::Base)) {
                    (IntrinsicOp::StoreConstIr3, _, Some(&Index::Base(base))) => {
                        for component in self.components(first) {
                            let uses = self.uses(Value::Const(base as u32 + u32::from(component)));
                            self.add(Value::Component(first, component), uses);
                        }
                    }
                    (IntrinsicOp::LoadConstIr3, Some(def), Some(&Index::Base(base))) => {
                        let Some(offset) = self.function.as_const_scalar(first) else { return };
                        let words = self.components(def).flat_map(|component| self.words_of(def, component));
                        for (number, uses) in words.collect::<SmallVec<[Uses; 4]>>().into_iter().enumerate() {
                            let word = (base as u32).wrapping_add(offset as u32) + number as u32;
                            self.add(Value::Const(word), uses);
                        }
                    }
                    (IntrinsicOp::ReadFirstInvocation, Some(def), _) => self.copy(first, def),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The buffer that a handle names, if its index is a constant.
    fn buffer(&self, handle: Def) -> Option<Binding> {
        let (set, index) = match &self.function.instrs[self.function.defs[handle].instr] {
            InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::BindlessResourceIr3 => {
                (Some(intrinsic.indices.desc_set()).filter(|&set| set < Binding::SETS), *intrinsic.srcs.first()?)
            }
            _ => (None, handle),
        };
        let index = self.function.as_const_scalar(index).and_then(|index| u32::try_from(index).ok())?;
        Some(Binding::new(set, index))
    }

    /// The words of uniform buffers that are loaded at a known place, with the buffer, if that is known, and their
    /// uses.
    fn ubo_words(&self) -> Vec<(Option<Binding>, u32, Uses)> {
        let mut words = Vec::new();
        for data in self.function.instrs.values() {
            let InstrData::Intrinsic(intrinsic) = data else { continue };
            if intrinsic.op == IntrinsicOp::CopyPushConstToUniformIr3 {
                let from = intrinsic.indices.base() as u32 / 4;
                let to = preamble::words(self.function, intrinsic).into_iter().flatten().take(4 * MOST_COPIED as usize);
                let buffer = Some(Binding::bound(PUSH_CONSTANTS));
                words.extend((from..).zip(to).map(|(at, to)| (buffer, at, self.uses(Value::Const(to as u32)))));
                continue;
            }
            let &[handle, vec4, ..] = &intrinsic.srcs[..] else { continue };
            let buffer = self.buffer(handle);
            let Some(vec4) = self.function.as_const_scalar(vec4).and_then(|vec4| u32::try_from(vec4).ok()) else {
                continue;
            };
            let from = vec4.wrapping_mul(4);
            match (intrinsic.op, intrinsic.def) {
                (IntrinsicOp::CopyUboToUniformIr3, _) => {
                    let to = intrinsic.indices.base() as u32;
                    let count = intrinsic.indices.range().min(MOST_COPIED) * 4;
                    words.extend(
                        (0..count)
                            .map(|at| (buffer, from.wrapping_add(at), self.uses(Value::Const(to.wrapping_add(at))))),
                    );
                }
                (IntrinsicOp::LoadUboVec4, Some(def)) if self.function.defs[def].bit_size == 32 => {
                    let first = match intrinsic.indices.get(IndexKind::Component) {
                        Some(&Index::Component(component)) => component as u32,
                        _ => 0,
                    };
                    let from = from.wrapping_add(intrinsic.indices.base() as u32 * 4).wrapping_add(first);
                    words.extend(self.components(def).map(|component| {
                        (buffer, from.wrapping_add(component.into()), self.uses(Value::Component(def, component)))
                    }));
                }
                _ => {}
            }
        }
        words
    }

    /// The words of uniform buffers that loads with a constant buffer and offset read.
    pub fn ubo_places(&self) -> BTreeSet<(Binding, u32)> {
        let read = self.ubo_words().into_iter().filter(|(_, _, uses)| uses.float || uses.int);
        read.filter_map(|(buffer, word, _)| Some((buffer?, word))).collect()
    }

    /// The words of the constant file that are read as booleans of 32 bits.
    pub fn boolean_words(&self) -> BTreeSet<u32> {
        let words = self.uses.iter().filter(|(_, uses)| uses.boolean);
        words.filter_map(|(&value, _)| if let Value::Const(word) = value { Some(word) } else { None }).collect()
    }

    /// The uses of the words of a component.
    fn words_of(&self, def: Def, component: u8) -> SmallVec<[Uses; 2]> {
        let uses = self.uses(Value::Component(def, component));
        match self.function.defs[def].bit_size {
            64 => [0, 1].map(|number| Uses::of_word(number, uses)).into(),
            _ => [uses].into_iter().collect(),
        }
    }

    /// The words of the constant file that the preamble fills.
    fn filled_words(&self) -> BTreeSet<u32> {
        use IntrinsicOp::{CopyPushConstToUniformIr3, CopyUboToUniformIr3, StoreConstIr3};
        let filling = self.function.instrs.values().filter_map(|data| match data {
            InstrData::Intrinsic(intrinsic) => Some(intrinsic).filter(|intrinsic| {
                matches!(intrinsic.op, CopyPushConstToUniformIr3 | CopyUboToUniformIr3 | StoreConstIr3)
            }),
            _ => None,
        });
        let words = filling.filter_map(|intrinsic| preamble::words(self.function, intrinsic));
        words.flat_map(|words| words.take(4 * MOST_COPIED as usize)).map(|word| word as u32).collect()
    }

    /// The constants other than 0 that integers are compared with for equality.
    fn sentinels(&self) -> Vec<u32> {
        let compared = self.function.instrs.values().filter_map(|data| match data {
            InstrData::Alu(alu) if matches!(alu.op, Op::Ieq | Op::Ine | Op::Ieq32 | Op::Ine32) => Some(alu),
            _ => None,
        });
        let constants = compared.flat_map(|alu| &alu.srcs).filter_map(|src| {
            let values = self.function.as_const(src.def)?;
            (self.function.defs[src.def].bit_size == 32).then(|| values[usize::from(src.swizzle[0])] as u32)
        });
        let all: BTreeSet<u32> = constants.filter(|&constant| constant != 0).collect();
        all.into_iter().take(MOST_CONSTANTS).collect()
    }

    pub fn hints(self) -> Hints {
        let mut hints = Hints::default();
        let insert = |[floats, ints]: &mut [BTreeSet<u32>; 2], key: u32, uses: Uses| {
            uses.float.then(|| floats.insert(key));
            uses.int.then(|| ints.insert(key));
        };
        let mut memory = [0, 0, 0];
        let mut constants = [BTreeSet::new(), BTreeSet::new()];
        let filled = self.filled_words();
        for (value, &uses) in &self.uses {
            if let Value::Const(word) = *value
                && !filled.contains(&word)
            {
                insert(&mut hints.consts, word, uses);
                hints.addresses[0].extend(uses.address_word().map(|half| (word, half)));
                hints.halves[0].extend(uses.separate_halves().map(|floats| (word, floats)));
            }
        }
        for (_, word, uses) in self.ubo_words() {
            insert(&mut hints.ubos, word, uses);
            hints.addresses[2].extend(uses.address_word().map(|half| (word, half)));
            hints.halves[1].extend(uses.separate_halves().map(|floats| (word, floats)));
        }
        for data in self.function.instrs.values() {
            match data {
                InstrData::Const { def, values } if self.function.defs[*def].bit_size == 32 => {
                    for (component, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0) {
                        let uses = self.uses(Value::Component(*def, component as u8));
                        constants[usize::from(uses.usage() != Usage::Float)].insert(value as u32);
                    }
                }
                InstrData::Intrinsic(intrinsic) => {
                    let Some(def) = intrinsic.def else { continue };
                    let base = match intrinsic.indices.get(IndexKind::Base) {
                        Some(&Index::Base(base)) => base as u32,
                        _ => 0,
                    };
                    let first = match intrinsic.indices.get(IndexKind::Component) {
                        Some(&Index::Component(component)) => component as u32,
                        _ => 0,
                    };
                    for component in self.components(def) {
                        let uses = self.uses(Value::Component(def, component));
                        let name = intrinsic.op.name();
                        if matches!(intrinsic.op, IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput) {
                            let place = 4 * base + first + u32::from(component);
                            insert(&mut hints.inputs, place, uses);
                            hints.addresses[1].extend(uses.address_word().map(|half| (place, half)));
                        } else if ["ssbo", "ubo", "global", "shared"].iter().any(|space| name.contains(space)) {
                            let is_half = self.function.defs[def].bit_size == 16;
                            hints.loads_addresses |= !name.contains("ubo") && uses.address != [false; 2];
                            memory[0] += u32::from(uses.float && !is_half);
                            memory[1] += u32::from(uses.int);
                            memory[2] += u32::from(uses.float && is_half);
                        }
                    }
                }
                _ => {}
            }
        }
        hints.memory = match memory {
            [floats, ints, halves] if floats > 2 * (ints + halves) => Usage::Float,
            [floats, ints, halves] if ints > 2 * (floats + halves) => Usage::Int,
            [floats, ints, halves] if halves > 2 * (floats + ints) => Usage::Halves([true; 2]),
            _ => Usage::Any,
        };
        hints.sentinels = self.sentinels();
        [hints.floats, hints.ints] = constants.map(|set| set.into_iter().take(MOST_CONSTANTS).collect());
        hints
    }
}
