//! Hints: what a program tells about its inputs, so that runs depend on more of it.
//!
//! Random words hide most of a program: small integers are denormal floats, a sum loses its smaller operand, clamps
//! saturate, comparisons never hold. A program tells which of its inputs it uses as floats, and its own constants are
//! the values that it compares with. With [`Hints`], an environment draws floats of moderate size where floats are
//! used; now and then a constant of the program or a neighbour of one, or a value that other inputs have, too; and its
//! textures are smooth.
//!
//! The values are still a function of the seed: two programs in one environment read the same inputs.

use super::Binding;
use super::env::{nice, nice_float};
use crate::semantics::arithmetic::float::f32_to_f16;
use crate::support::random::{hash, mix};
use ir3_compiler::nir::{
    Alu, AluType, BaseType, Def, Function, Index, IndexKind, InstrData, IntrinsicOp, Op, Shader, TexOp,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The type that operations read a value as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Usage {
    /// None, or several.
    #[default]
    Any,
    /// A float of 32 bits.
    Float,
    /// An integer.
    Int,
    /// Two numbers of 16 bits; those that are set, the low one first, are floats.
    Halves([bool; 2]),
}

/// The size of the values that are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Magnitude {
    /// Moderate.
    #[default]
    Moderate,
    /// Small: loops end soon, and powers do not overflow.
    Small,
    /// Mostly 0, 1 and -1: what is computed often from itself neither grows nor vanishes, and sums of products are exact.
    Units,
}

/// What a program tells about its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hints {
    /// The constants that are read as floats, without 0.
    floats: Vec<u32>,
    /// The other constants, without 0.
    ints: Vec<u32>,
    /// The words of the constant file that are read as floats, and those that are read as integers.
    consts: [BTreeSet<u32>; 2],
    /// The same for inputs, by `4 * base + component`.
    inputs: [BTreeSet<u32>; 2],
    /// The same for the words of uniform buffers, whatever the buffer is: those that are loaded at a known place, by an instruction or
    /// into the constant file.
    #[serde(default, skip_serializing_if = "are_empty")]
    ubos: [BTreeSet<u32>; 2],
    /// The words of the constant file of which a half is read as a number of 16 bits, and those of uniform buffers; each with the halves
    /// that are floats.
    #[serde(default, skip_serializing_if = "has_no_halves")]
    halves: [BTreeMap<u32, [bool; 2]>; 2],
    /// What most loads from memory are read as.
    memory: Usage,
    /// The size of the values.
    #[serde(default, skip_serializing_if = "Magnitude::is_moderate")]
    magnitude: Magnitude,
}

/// The most constants of each type.
const MOST_CONSTANTS: usize = 64;
/// The most vec4s of one copy to the constant file.
const MOST_COPIED: u32 = 512;
/// The largest constant that is a value where values are small.
const MOST_COUNTED: u32 = 4096;
/// The number of values that several inputs of an environment have.
const SHARED: u64 = 4;

impl Magnitude {
    fn is_moderate(&self) -> bool {
        *self == Self::Moderate
    }
}

impl Hints {
    /// The hints of a program.
    pub fn of(shader: &Shader) -> Self {
        Reader::new(&shader.entry).hints()
    }

    /// The same hints for small values: loops over them end soon, and their powers do not overflow.
    #[must_use]
    pub fn calm(&self) -> Self {
        Self { magnitude: Magnitude::Small, ..self.clone() }
    }

    /// The same hints for floats that are mostly 0, 1 and -1, and small integers.
    #[must_use]
    pub fn units(&self) -> Self {
        Self { magnitude: Magnitude::Units, ..self.clone() }
    }

    /// The words of the constant file that are read as a number.
    pub fn const_words(&self) -> Vec<u32> {
        let all: BTreeSet<u32> = self.consts.iter().flatten().copied().collect();
        all.into_iter().collect()
    }

    /// The components of inputs that are read as a number, by `4 * base + component`.
    pub fn input_places(&self) -> BTreeSet<u32> {
        self.inputs.iter().flatten().copied().collect()
    }

    /// The words of uniform buffers that a program loads at a known place, of known buffers.
    pub fn ubo_places(shader: &Shader) -> BTreeSet<(Binding, u32)> {
        let reader = Reader { function: &shader.entry, uses: FxHashMap::default(), changed: false };
        reader.ubo_words().into_iter().filter_map(|(buffer, word, _)| Some((buffer?, word))).collect()
    }

    /// The words of the constant file that a program reads as booleans of 32 bits: all bits of such a word are equal
    /// (docs/semantics.md, boolean words).
    pub fn boolean_words(shader: &Shader) -> BTreeSet<u32> {
        let reader = Reader::new(&shader.entry);
        let words = reader.uses.iter().filter(|(_, uses)| uses.boolean);
        words.filter_map(|(&value, _)| if let Value::Const(word) = value { Some(word) } else { None }).collect()
    }

    /// What a word of the constant file is read as.
    pub fn const_usage(&self, word: u32) -> Usage {
        self.halves[0].get(&word).map_or_else(|| usage_in(&self.consts, word), |&floats| Usage::Halves(floats))
    }

    /// What an input is read as, by `4 * base + component`.
    pub fn input_usage(&self, location: u32) -> Usage {
        usage_in(&self.inputs, location)
    }

    /// What a word of a uniform buffer is read as.
    pub fn ubo_usage(&self, word: u32) -> Usage {
        match (self.halves[1].get(&word), usage_in(&self.ubos, word)) {
            (Some(&floats), _) => Usage::Halves(floats),
            (None, Usage::Any) => self.memory,
            (None, usage) => usage,
        }
    }

    /// What words of memory are read as.
    pub fn memory_usage(&self) -> Usage {
        self.memory
    }

    /// A word for a use, from a hash.
    pub fn word(&self, seed: u64, drawn: u64, usage: Usage) -> u32 {
        let choice = mix(drawn, 0x6869_6e74);
        let is_float = match usage {
            Usage::Float => true,
            Usage::Int => false,
            Usage::Any => choice >> 63 != 0,
            Usage::Halves([low, high]) => {
                let half = |number: u64, is_float: bool| match is_float {
                    true => f32_to_f16(self.word(seed, mix(drawn, number), Usage::Float)),
                    false => self.word(seed, mix(drawn, number), Usage::Int) & 0xffff,
                };
                return half(1, low) | half(2, high) << 16;
            }
        };
        let constants = if is_float { &self.floats } else { &self.ints };
        let constant = (!constants.is_empty()).then(|| constants[(choice >> 8) as usize % constants.len()]);
        // Of a sum of many words one large value, or one that is no number, is all that is left: half of these environments have none.
        let is_rare = choice & 0xff < 16 && mix(seed, 0x7461_6d65) & 1 != 0;
        // Programs count to what they count by; in some environments most numbers are such.
        let share = if mix(seed, 0x636f_756e) & 3 == 0 { 192 } else { 48 };
        let counted = constant.filter(|&number| !is_float && number <= MOST_COUNTED && choice & 0xff < share);
        let base = match choice & 0xff {
            _ if self.magnitude != Magnitude::Moderate && !is_rare => {
                return match (counted, self.magnitude) {
                    (Some(number), _) => number,
                    (None, Magnitude::Units) => unit(drawn, is_float),
                    (None, _) => calm(drawn, is_float),
                };
            }
            0..=35 => draw(hash(&[seed, choice >> 8 & (SHARED - 1), is_float.into()]), is_float),
            36..=75 if let Some(constant) = constant => constant,
            _ => return draw(drawn, is_float),
        };
        // The value itself more often than a neighbour.
        match choice >> 40 & 7 {
            0 => base.wrapping_add(1),
            1 => base.wrapping_sub(1),
            2 if is_float => (f32::from_bits(base) + 0.0625).to_bits(),
            3 if is_float => (f32::from_bits(base) - 0.0625).to_bits(),
            _ => base,
        }
    }

    /// The slope of a varying: small, so that the values of a primitive are near each other.
    pub fn slope(drawn: u64) -> u32 {
        match drawn >> 61 {
            0 => 0,
            1 => nice_float(drawn),
            _ => ((drawn as u32 >> 8) as f32 / (1 << 25) as f32 - 0.25).to_bits(),
        }
    }
}

fn are_empty(sets: &[BTreeSet<u32>; 2]) -> bool {
    sets.iter().all(BTreeSet::is_empty)
}

fn has_no_halves(halves: &[BTreeMap<u32, [bool; 2]>; 2]) -> bool {
    halves.iter().all(BTreeMap::is_empty)
}

fn usage_in([floats, ints]: &[BTreeSet<u32>; 2], key: u32) -> Usage {
    match (floats.contains(&key), ints.contains(&key)) {
        (true, false) => Usage::Float,
        (false, true) => Usage::Int,
        _ => Usage::Any,
    }
}

/// A value of moderate size.
fn draw(drawn: u64, is_float: bool) -> u32 {
    let low = drawn as u32;
    let unit = (low >> 8) as f32 / (1 << 24) as f32;
    match (is_float, drawn >> 61) {
        (true, 0..=2) => unit.to_bits(),
        (true, 3) => (unit * 2.0 - 1.0).to_bits(),
        (true, 4) => (0.5 + unit).to_bits(),
        (true, 5) => ((low % 33) as f32 * 0.25 - 4.0).to_bits(),
        (true, 6) => nice_float(drawn),
        (false, 0..=2) => low % 8,
        (false, 3) => low & 0x3f,
        (false, 4) => low & 0x3ff,
        (false, 5) => (low % 4).wrapping_neg(),
        (false, 6) => 1 << (low & 31),
        _ => nice(mix(drawn, 1)),
    }
}

/// A small value, of either sign.
fn calm(drawn: u64, is_float: bool) -> u32 {
    let unit = (drawn as u32 >> 8) as f32 / (1 << 24) as f32;
    match (is_float, drawn >> 60) {
        (true, 0..=3) => unit.to_bits(),
        (true, 4..=6) => (-unit).to_bits(),
        (true, 7..=9) => (unit * 0.0625).to_bits(),
        (true, 10) => 0,
        (true, 11 | 12) => 1.0f32.to_bits(),
        (true, _) => ((drawn as u32 % 9) as f32 * 0.5 - 2.0).to_bits(),
        (false, 0..=10) => drawn as u32 % 4,
        (false, 11 | 12) => (drawn as u32 % 2 + 1).wrapping_neg(),
        (false, _) => drawn as u32 % 16,
    }
}

/// 0, 1 or -1 most of the time; integers as small as [`calm`] ones.
fn unit(drawn: u64, is_float: bool) -> u32 {
    match (is_float, drawn >> 60) {
        (true, 0..=8) => 0,
        (true, 9..=11) => 1.0f32.to_bits(),
        (true, 12..=14) => (-1.0f32).to_bits(),
        _ => calm(drawn << 4, is_float),
    }
}

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

    fn usage(self) -> Usage {
        match (self.float, self.int) {
            (true, false) => Usage::Float,
            (false, true) => Usage::Int,
            _ => Usage::Any,
        }
    }
}

/// A component of a value, or a word of the constant file that the program stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Component(Def, u8),
    Const(u32),
}

/// Finds the uses of all values of a function: those of copies are uses of what is copied.
struct Reader<'a> {
    function: &'a Function,
    uses: FxHashMap<Value, Uses>,
    changed: bool,
}

impl<'a> Reader<'a> {
    fn new(function: &'a Function) -> Self {
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

    /// The uses of the word of which a component of the result is a half, or the shift by which its high half becomes the low one.
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
                match (intrinsic.op, intrinsic.def, intrinsic.indices.get(IndexKind::Base)) {
                    (IntrinsicOp::StoreConstIr3, _, Some(&Index::Base(base))) => {
                        for component in self.components(first) {
                            let uses = self.uses(Value::Const(base as u32 + u32::from(component)));
                            self.add(Value::Component(first, component), uses);
                        }
                    }
                    (IntrinsicOp::LoadConstIr3, Some(def), Some(&Index::Base(base))) => {
                        let Some(offset) = self.function.as_const_scalar(first) else { return };
                        for component in self.components(def) {
                            let word = (base as u32).wrapping_add(offset as u32) + u32::from(component);
                            self.add(Value::Const(word), self.uses(Value::Component(def, component)));
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

    /// The words of uniform buffers that are loaded at a known place, with the buffer, if that is known, and their uses.
    fn ubo_words(&self) -> Vec<(Option<Binding>, u32, Uses)> {
        let mut words = Vec::new();
        for data in self.function.instrs.values() {
            let InstrData::Intrinsic(intrinsic) = data else { continue };
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

    fn hints(self) -> Hints {
        let mut hints = Hints::default();
        let insert = |[floats, ints]: &mut [BTreeSet<u32>; 2], key: u32, uses: Uses| {
            uses.float.then(|| floats.insert(key));
            uses.int.then(|| ints.insert(key));
        };
        let mut memory = [0, 0, 0];
        let mut constants = [BTreeSet::new(), BTreeSet::new()];
        for (value, &uses) in &self.uses {
            if let Value::Const(word) = *value {
                insert(&mut hints.consts, word, uses);
                hints.halves[0].extend(uses.separate_halves().map(|floats| (word, floats)));
            }
        }
        for (_, word, uses) in self.ubo_words() {
            insert(&mut hints.ubos, word, uses);
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
                            insert(&mut hints.inputs, 4 * base + first + u32::from(component), uses);
                        } else if ["ssbo", "ubo", "global", "shared"].iter().any(|space| name.contains(space)) {
                            let is_half = self.function.defs[def].bit_size == 16;
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
        [hints.floats, hints.ints] = constants.map(|set| set.into_iter().take(MOST_CONSTANTS).collect());
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::arithmetic::float::f16_to_f32;
    use crate::semantics::environment::Binding;
    use crate::semantics::environment::env::Env;
    use crate::semantics::environment::memory::Space;
    use ir3_compiler::nir::text;

    /// Word 4 of the constant file is read as a float, through a choice; word 5 as an integer; word 6 as both.
    const SOURCE: &str = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_const_ir3 (%0) (base=4)
    32     %2 = @load_const_ir3 (%0) (base=5)
    32     %3 = @load_const_ir3 (%0) (base=6)
    32     %4 = load_const (0x3e99999a)
    32     %5 = load_const (0x00000123)
    32     %6 = iadd %2, %5
    1      %7 = ilt %6, %3
    32     %8 = bcsel %7, %1, %4
    32     %9 = fadd %8, %3
                @store_ssbo_ir3 (%9, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}
";

    #[test]
    fn uses_follow_copies() {
        let hints = Hints::of(&text::read(SOURCE).expect("a shader"));
        let usages = [4, 5, 6, 7].map(|word| hints.const_usage(word));
        assert_eq!(usages, [Usage::Float, Usage::Int, Usage::Any, Usage::Any]);
        assert_eq!((&hints.floats[..], &hints.ints[..]), (&[0x3e99_999a][..], &[0x123][..]));
    }

    #[test]
    fn words_of_uniform_buffers_have_the_use_of_the_words_that_they_are_copied_to() {
        let source = SOURCE.replace(
            "    32     %1 = @load_const_ir3 (%0) (base=4)",
            "    32     %10 = load_const (0x00000002)
    32     %11 = @bindless_resource_ir3 (%10) (desc_set=0)
                @copy_ubo_to_uniform_ir3 (%11, %10) (base=4, range=1)
    32x2   %12 = @load_ubo_vec4 (%11, %0) (access=none, base=1, component=0)
    32     %13 = fadd %12.x, %12.x
    32     %14 = iadd %12.y, %12.y
    32     %1 = @load_const_ir3 (%0) (base=4)",
        );
        let hints = Hints::of(&text::read(&source).unwrap_or_else(|error| panic!("{error}")));
        let usages = [8, 9, 10, 11, 4, 5].map(|word| hints.ubo_usage(word));
        let memory = hints.memory_usage();
        assert_eq!(usages, [Usage::Float, Usage::Int, memory, memory, Usage::Float, Usage::Int]);
        assert_ne!(memory, Usage::Int);
    }

    #[test]
    fn words_are_two_halves_where_one_is_read_as_a_float() {
        let halves = "16 %9 = u2u16 %2
    32 %10 = load_const (0x00000010)
    32 %11 = ushr %1, %10
    16 %12 = u2u16 %11
    16 %13 = fadd %9, %12
    16 %14 = u2u16 %3
    16 %15 = iadd %14, %14
";
        let (start, end) = SOURCE.split_once("    32     %4 =").expect("a constant");
        let end = end.split_once("@store").map(|(_, store)| store.replace("%9", "%3")).expect("a store");
        let hints =
            Hints::of(&text::read(&format!("{start}    {halves}    @store{end}")).unwrap_or_else(|e| panic!("{e}")));
        let usages = [4, 5, 6].map(|word| hints.const_usage(word));
        assert_eq!(usages, [Usage::Halves([false, true]), Usage::Halves([true, false]), Usage::Int]);
    }

    #[test]
    fn booleans_are_found() {
        let shader = |source: &str| text::read(source).expect("a shader");
        assert!(Hints::boolean_words(&shader(SOURCE)).is_empty());
        let source = SOURCE.replace("ilt %6, %3", "b2b1 %3");
        assert_eq!(Hints::boolean_words(&shader(&source)), BTreeSet::from([6]));
    }

    #[test]
    fn floats_of_16_bits_in_memory_are_small() {
        let (header, _) = SOURCE.split_once("block b0:").expect("a block");
        let source = |bits: u32| {
            let load =
                format!("{bits} %1 = @load_ssbo_ir3 (%0, %0, %0) (base=0, access=none, align_mul=4, align_offset=0)");
            let store = "@store_ssbo_ir3 (%2, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)";
            format!(
                "{header}block b0:\n32 %0 = load_const (0x00000000)\n{load}\n{bits} %2 = fadd %1, %1\n{store}\nblock b1:\n}}\n"
            )
        };
        let of = |bits| Hints::of(&text::read(&source(bits)).unwrap_or_else(|error| panic!("{error}")));
        assert_eq!((of(32).memory_usage(), of(16).memory_usage()), (Usage::Float, Usage::Halves([true; 2])));
        let small = |hints: Hints| {
            let hints = Some(Box::new(hints.calm()));
            let envs = (0..300).map(|seed| Env { hints: hints.clone(), ..Env::from_seed(seed) });
            let words = envs.map(|env| env.memory_word(Space::Ssbo, Binding::from_bits(0), 0));
            let is_small = |half: u32| f32::from_bits(f16_to_f32(half)).abs() <= 2.0;
            words.filter(|word| is_small(word & 0xffff) && is_small(word >> 16)).count()
        };
        let (floats, halves) = (small(of(32)), small(of(16)));
        assert!(halves > 230 && halves > floats, "{floats} {halves}");
    }

    #[test]
    fn calm_values_are_small() {
        let hints = Hints::of(&text::read(SOURCE).expect("a shader")).calm();
        assert_eq!(hints.const_words(), [4, 5, 6]);
        let given = Some(Box::new(hints.clone()));
        let envs: Vec<Env> = (0..300).map(|seed| Env { hints: given.clone(), ..Env::from_seed(seed) }).collect();
        let count = |holds: &dyn Fn(&Env) -> bool| envs.iter().filter(|env| holds(env)).count();
        assert!(count(&|env| f32::from_bits(env.const_word(4)).abs() <= 2.0) > 270);
        assert!(count(&|env| f32::from_bits(env.const_word(4)) < 0.0) > 50);
        // Small, or the constant by which the program counts.
        let is_small = |env: &Env| env.const_word(5).wrapping_add(2) <= 17;
        assert!(count(&is_small) > 150);
        assert!(count(&|env| is_small(env) || env.const_word(5) == 0x123) > 270);
        // In half of the environments all of them are.
        let word = |seed, drawn| f32::from_bits(hints.word(seed, mix(drawn, 1), Usage::Float));
        let all_small = (0..300).filter(|&seed| (0..256).all(|drawn| word(seed, drawn).abs() <= 2.0)).count();
        assert!((150..280).contains(&all_small), "{all_small}");
        assert_eq!(Env::from_json(&envs[7].to_json()).expect("JSON"), envs[7]);
    }

    #[test]
    fn units_are_0_and_1_and_minus_1() {
        let hints = Some(Box::new(Hints::of(&text::read(SOURCE).expect("a shader")).units()));
        let envs: Vec<Env> = (0..300).map(|seed| Env { hints: hints.clone(), ..Env::from_seed(seed) }).collect();
        let count = |value: f32| envs.iter().filter(|env| f32::from_bits(env.const_word(4)) == value).count();
        let [zeros, ones, others] = [0.0, 1.0, -1.0].map(count);
        assert!(zeros > 100 && ones > 25 && others > 25, "{zeros} {ones} {others}");
        assert_eq!(Env::from_json(&envs[7].to_json()).expect("JSON"), envs[7]);
    }

    #[test]
    fn inputs_fit_their_use() {
        let hints = Some(Box::new(Hints::of(&text::read(SOURCE).expect("a shader"))));
        let envs: Vec<Env> = (0..300).map(|seed| Env { hints: hints.clone(), ..Env::from_seed(seed) }).collect();
        let count = |holds: &dyn Fn(&Env) -> bool| envs.iter().filter(|env| holds(env)).count();
        let moderate = |word: u32| f32::from_bits(word) == 0.0 || (1e-4..=8.0).contains(&f32::from_bits(word).abs());
        assert!(count(&|env| moderate(env.const_word(4))) > 230);
        assert!(count(&|env| env.const_word(5) <= 0x3ff) > 180);
        // The constants, and their neighbours.
        assert!(count(&|env| env.const_word(4) == 0x3e99_999a) >= 10);
        assert!(count(&|env| [0x122, 0x124].contains(&env.const_word(5))) >= 5);
        // Equal values.
        assert!(count(&|env| (0..8).any(|word| env.const_word(4) == env.const_word(8 + word))) >= 2);
        // An environment that is kept gives the same.
        assert_eq!(Env::from_json(&envs[7].to_json()).expect("JSON"), envs[7]);
    }
}
