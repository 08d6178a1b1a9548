//! Hints about the inputs of a program, so that runs depend on more of it.
//!
//! Random words hide most of a program: small integers are denormal floats, a sum loses its smaller operand, clamps
//! saturate, comparisons never hold. A program's text shows which of its inputs it uses as floats, and its own
//! constants are the values that it compares with. With [`Hints`], an environment draws floats of moderate size where
//! floats are used; now and then a constant of the program or a neighbour of one, or a value that other inputs have,
//! too; and its textures are smooth.
//!
//! The values are still a function of the seed: two programs in one environment read the same inputs.

mod reader;

use super::Binding;
use super::aliases::REGION_BYTES;
use super::env::{nice, nice_float};
use crate::arithmetic::float::f32_to_f16;
use crate::support::random::{hash, mix};
use ir3_compiler::nir::Shader;
use reader::Reader;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The type that operations read a value as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Usage {
    /// No type, or several types.
    #[default]
    Any,
    /// A float of 32 bits.
    Float,
    /// An integer.
    Int,
    /// Two numbers of 16 bits; those that are set, the low one first, are floats.
    Halves([bool; 2]),
    /// A word of a pointer to global memory: the high one, or the low one.
    Address(AddressWord),
}

/// A word of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressWord {
    /// The low word.
    Low,
    /// The high word.
    High,
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
    /// Mostly 0, 1 and -1: repeated products neither grow nor vanish, and sums of products are exact.
    Units,
}

/// The hints about the inputs of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hints {
    /// The constants that are read as floats, without 0.
    floats: Vec<u32>,
    /// The other constants, without 0.
    ints: Vec<u32>,
    /// The constants other than 0 that integers are compared with for equality: ends of lists, tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sentinels: Vec<u32>,
    /// The words of the constant file that are read as floats, and those that are read as integers.
    consts: [BTreeSet<u32>; 2],
    /// The uses of inputs, by `4 * base + component`.
    inputs: [BTreeSet<u32>; 2],
    /// The uses of words of uniform buffers, of any buffer: those that are loaded at a known place, by an
    /// instruction or into the constant file.
    #[serde(default, skip_serializing_if = "are_empty")]
    ubos: [BTreeSet<u32>; 2],
    /// The words of the constant file of which a half is read as a number of 16 bits, and those of uniform buffers;
    /// each with the halves that are floats.
    #[serde(default, skip_serializing_if = "has_no_halves")]
    halves: [BTreeMap<u32, [bool; 2]>; 2],
    /// The words of pointers to global memory: in the constant file, in inputs, and in uniform buffers.
    #[serde(default, skip_serializing_if = "have_no_addresses")]
    addresses: [BTreeMap<u32, AddressWord>; 3],
    /// True if pointers are loaded from memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    loads_addresses: bool,
    /// The type with which most loads from memory are read.
    memory: Usage,
    /// The size of the values.
    #[serde(default, skip_serializing_if = "Magnitude::is_moderate")]
    magnitude: Magnitude,
}

/// The most constants of each type.
const MOST_CONSTANTS: usize = 64;
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

    /// Returns the hints with small values: loops over them end soon, and their powers do not overflow.
    #[must_use]
    pub fn calm(&self) -> Self {
        Self { magnitude: Magnitude::Small, ..self.clone() }
    }

    /// Returns the hints with floats that are mostly 0, 1 and -1, and small integers.
    #[must_use]
    pub fn units(&self) -> Self {
        Self { magnitude: Magnitude::Units, ..self.clone() }
    }

    /// The words of the constant file that are read as a number.
    pub fn const_words(&self) -> Vec<u32> {
        let all: BTreeSet<u32> = self.consts.iter().flatten().copied().collect();
        all.into_iter().collect()
    }

    /// The words of the constant file that are words of pointers.
    pub fn address_words(&self) -> impl Iterator<Item = u32> + '_ {
        self.addresses[0].keys().copied()
    }

    /// The components of inputs that are read as a number, by `4 * base + component`.
    pub fn input_places(&self) -> BTreeSet<u32> {
        self.inputs.iter().flatten().copied().collect()
    }

    /// The words of uniform buffers that a program loads at a known place, of known buffers, and reads as a number.
    pub fn ubo_places(shader: &Shader) -> BTreeSet<(Binding, u32)> {
        Reader::new(&shader.entry).ubo_places()
    }

    /// The words of the constant file that a program reads as booleans of 32 bits: all bits of such a word are equal
    /// (docs/semantics.md, boolean words).
    pub fn boolean_words(shader: &Shader) -> BTreeSet<u32> {
        Reader::new(&shader.entry).boolean_words()
    }

    /// The type with which a word of the constant file is read.
    pub fn const_usage(&self, word: u32) -> Usage {
        if let Some(&half) = self.addresses[0].get(&word) {
            return Usage::Address(half);
        }
        self.halves[0].get(&word).map_or_else(|| usage_in(&self.consts, word), |&floats| Usage::Halves(floats))
    }

    /// The type with which an input is read, by `4 * base + component`.
    pub fn input_usage(&self, location: u32) -> Usage {
        let address = self.addresses[1].get(&location);
        address.map_or_else(|| usage_in(&self.inputs, location), |&half| Usage::Address(half))
    }

    /// The type with which a word of a uniform buffer is read.
    pub fn ubo_usage(&self, word: u32) -> Usage {
        if let Some(&half) = self.addresses[2].get(&word) {
            return Usage::Address(half);
        }
        match (self.halves[1].get(&word), usage_in(&self.ubos, word)) {
            (Some(&floats), _) => Usage::Halves(floats),
            (None, Usage::Any) => self.memory,
            (None, usage) => usage,
        }
    }

    /// The type with which words of memory are read.
    pub fn memory_usage(&self) -> Usage {
        self.memory
    }

    /// A word of memory, from a hash: where the program loads pointers, half of the words are such as `address` draws.
    /// Of small values one in four is a sentinel of the program, so that lists end.
    pub fn memory_word(&self, seed: u64, drawn: u64, word: u32) -> u32 {
        let choice = mix(drawn, 0x7365_6e74);
        if self.magnitude == Magnitude::Small && choice & 3 == 0 && !self.sentinels.is_empty() {
            return self.sentinels[(choice >> 8) as usize % self.sentinels.len()];
        }
        let half = if word & 1 == 0 { AddressWord::Low } else { AddressWord::High };
        match self.loads_addresses && mix(drawn, 0x706f_696e) & 1 == 0 {
            true => address(drawn, half),
            false => self.word(seed, drawn, self.memory),
        }
    }

    /// A word for a use, from a hash.
    pub fn word(&self, seed: u64, drawn: u64, usage: Usage) -> u32 {
        let choice = mix(drawn, 0x6869_6e74);
        let is_float = match usage {
            Usage::Float => true,
            Usage::Int => false,
            Usage::Any => choice >> 63 != 0,
            Usage::Address(half) => return address(choice, half),
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
        if let Some(word) = self.small_word(seed, drawn, is_float, choice & 0xff, constant) {
            return word;
        }
        let base = match choice & 0xff {
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

    /// A word of the magnitude, by a choice below 256; `None` if the magnitude is moderate, and if the value is drawn
    /// as in other environments.
    #[inline]
    fn small_word(&self, seed: u64, drawn: u64, is_float: bool, choice: u64, constant: Option<u32>) -> Option<u32> {
        let value = match self.magnitude {
            Magnitude::Moderate => return None,
            Magnitude::Small => calm,
            Magnitude::Units => unit,
        };
        // One large value or NaN dominates the sum of many words: half of these environments have none.
        if choice < 16 && mix(seed, 0x7461_6d65) & 1 != 0 {
            return None;
        }
        // Programs count by their own constants; in some environments most numbers are such.
        let share = if mix(seed, 0x636f_756e) & 3 == 0 { 192 } else { 48 };
        let counted = constant.filter(|&number| !is_float && number <= MOST_COUNTED && choice < share);
        Some(counted.unwrap_or_else(|| value(drawn, is_float)))
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

fn have_no_addresses(addresses: &[BTreeMap<u32, AddressWord>; 3]) -> bool {
    addresses.iter().all(BTreeMap::is_empty)
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

/// A word of a pointer, which aliases buffers and other pointers if the environment permits: it points into one of a
/// few [regions](super::aliases::REGION_BYTES), mostly to their first bytes.
fn address(drawn: u64, word: AddressWord) -> u32 {
    let low = drawn as u32;
    match (word, drawn >> 61) {
        (AddressWord::High, _) => low % 3,
        (AddressWord::Low, 0..=4) => low % 3 * REGION_BYTES as u32,
        (AddressWord::Low, 5) => low % 3 * REGION_BYTES as u32 + (low >> 8) % 16 * 16,
        (AddressWord::Low, 6) => (low >> 8) % 64 * 4,
        (AddressWord::Low, _) => low & !0xf,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::float::f16_to_f32;
    use crate::environment::Binding;
    use crate::environment::aliases::AliasClasses;
    use crate::environment::env::Env;
    use crate::environment::memory::Space;
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
    fn words_of_pointers_are_found_and_meet_each_other() {
        let source = SOURCE.replace(
            "    32     %2 = @load_const_ir3 (%0) (base=5)",
            "    32     %2 = @load_const_ir3 (%0) (base=5)
    32x2   %10 = @load_const_ir3 (%0) (base=8)
    32     %11 = @load_global_ir3 (%10, %0) (access=none, align_mul=4, align_offset=0, range_base=0, range=0)
    32     %12 = @load_const_ir3 (%0) (base=10)
    32     %13 = @load_const_ir3 (%0) (base=11)
    32     %14 = iadd %12, %2
    32x2   %15 = vec2 %14, %13
    32x2   %16 = @load_global_ir3 (%15, %0) (access=none, align_mul=4, align_offset=0, range_base=0, range=0)
    32     %17 = @load_global_ir3 (%16, %0) (access=none, align_mul=4, align_offset=0, range_base=0, range=0)",
        );
        let hints = Hints::of(&text::read(&source).unwrap_or_else(|error| panic!("{error}")));
        let [low, high] = [AddressWord::Low, AddressWord::High].map(Usage::Address);
        let usages = [8, 9, 10, 11, 4].map(|word| hints.const_usage(word));
        assert_eq!(usages, [low, high, low, high, Usage::Float]);
        assert_eq!(hints.address_words().collect::<Vec<_>>(), [5, 8, 9, 10, 11]);
        assert!(hints.loads_addresses);
        let hints = Some(Box::new(hints));
        let envs: Vec<Env> = (0..400).map(|seed| Env { hints: hints.clone(), ..Env::from_seed(seed) }).collect();
        let place = |env: &Env, [low, high]: [u32; 2]| {
            let address = u64::from(low) | u64::from(high) << 32;
            let classes = AliasClasses::of(env);
            let place = classes.place(Space::Global, Binding::NONE, address);
            (place, address & place.window)
        };
        let of_consts = |env: &Env, word: u32| place(env, [0, 1].map(|half| env.const_word(word + half)));
        let count = |holds: &dyn Fn(&Env) -> bool| envs.iter().filter(|env| holds(env)).count();
        assert!(count(&|env| of_consts(env, 8) == of_consts(env, 10)) > 40);
        assert!(count(&|env| of_consts(env, 8) != of_consts(env, 10)) > 200);
        // One that is loaded from memory, and a buffer.
        let loaded = |env: &Env| {
            let words = [0, 1].map(|word| env.memory_word(Space::Ssbo, Binding::bound(0), word));
            let buffer = AliasClasses::of(env).place(Space::Ssbo, Binding::bound(1), 0);
            let (place, address) = place(env, words);
            place.binding == buffer.binding && place.space == buffer.space && address < 256
        };
        assert!(count(&loaded) > 20, "{}", count(&loaded));
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
    fn lists_in_memory_end() {
        let source = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_ssbo_ir3 (%0, %0, %0) (base=0, access=none, align_mul=4, align_offset=0)
    32     %2 = load_const (0xffffffff)
    1      %3 = ieq %1, %2
    32     %4 = b2i32 %3
                @store_ssbo_ir3 (%4, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}
";
        let hints = Hints::of(&text::read(source).expect("a shader"));
        let ends = |hints: Hints| {
            let env = Env { hints: Some(Box::new(hints)), ..Env::from_seed(1) };
            (0..400).filter(|&word| env.memory_word(Space::Ssbo, Binding::NONE, word) == u32::MAX).count()
        };
        let [calm, moderate] = [ends(hints.calm()), ends(hints)];
        assert!(calm > 70 && calm < 160 && moderate < calm, "{calm} {moderate}");
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
