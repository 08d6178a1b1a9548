//! The environment of a run: every value that a program reads and does not compute.
//!
//! Each value is a pure function of one seed, [`hash`]ed with the name of the value, so both sides of a comparison see
//! the same environment in any order of reads. Values are [`nice`]: most programs compute something meaningful from
//! them. [`Hints`] about a program make them fit it better. Any value can be overridden by name; an environment with
//! its overrides can be written as JSON and read back.

mod system_values;

use crate::support::random::{hash, mix};
use std::collections::{BTreeMap, BTreeSet};

use ir3_compiler::ir3::{ConstLayout, SystemValue};
use ir3_compiler::nir;
use serde::{Deserialize, Serialize};

use crate::arithmetic::float;
use crate::arithmetic::rows::{ALL_LANES, LANES, Row};
use crate::environment::Binding;
use crate::environment::aliases::{Aliasing, MemoryName};
use crate::environment::corners::{corner, wide_corner};
use crate::environment::device::DeviceRules;
use crate::environment::hints::{Hints, Usage};
use crate::environment::memory::Space;
use system_values::system_tag;
pub use system_values::{system_value_bits, system_value_of};

/// The number of words of the constant file.
pub const CONST_WORDS: u32 = 2048;

/// The number of the uniform buffer that models the push constants. No descriptor has it.
pub const PUSH_CONSTANTS: u32 = u32::MAX;

/// 32 bits that are meaningful as an integer or as a float: mostly small numbers of both kinds and powers of two,
/// sometimes random bits and edge cases.
#[inline]
pub fn nice(hash: u64) -> u32 {
    let bits = hash as u32;
    let low = bits & 0xff;
    match hash >> 56 {
        0..=63 => bits % 17,
        64..=75 => (bits % 8).wrapping_sub(8),
        76..=99 => bits & 0x3ff,
        100..=111 => 1 << (bits & 31),
        112..=175 => ((low as f32 - 128.0) * 0.25).to_bits(),
        176..=219 => nice_float(hash),
        220..=249 => bits,
        _ => EDGE_FLOATS[(bits % EDGE_FLOATS.len() as u32) as usize],
    }
}

/// A finite float of moderate size, never a denormal: mostly in [-1, 1], sometimes larger.
#[inline]
pub fn nice_float(hash: u64) -> u32 {
    let unit = (hash as u32 >> 8) as f32 / (1 << 24) as f32;
    let value = match hash >> 40 & 15 {
        0..=7 => unit,
        8..=11 => -unit,
        12 | 13 => unit * 8.0 - 4.0,
        14 => (hash as u32 % 33) as f32 - 16.0,
        _ => unit * 512.0 - 256.0,
    };
    value.to_bits()
}

/// Corner cases of floats.
pub(super) const EDGE_FLOATS: [u32; 10] = [
    0x0000_0000,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0000_0001,
    0x7f7f_ffff,
    0x0080_0000,
];

/// The properties of a program that the environment depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// True if lanes are fragments, some of which may be helper lanes.
    pub fragment: bool,
    /// The size of the workgroup; `[64, 1, 1]` for stages without one, [`VARIABLE_SIZE`] if each dispatch has its own.
    pub workgroup_size: [u32; 3],
    /// The index of the wave in the workgroup: 0 except for the second wave of a program with barriers.
    pub wave: u32,
}

/// The size of a workgroup that is set by the dispatch, as nir writes it.
pub const VARIABLE_SIZE: [u32; 3] = [0; 3];

impl Default for Launch {
    fn default() -> Launch {
        Launch { fragment: false, workgroup_size: [64, 1, 1], wave: 0 }
    }
}

impl Launch {
    /// The dispatch of a shader.
    pub fn of(shader: &nir::Shader) -> Self {
        let workgroup_size = match shader.info.workgroup_size {
            Some(_) if shader.info.workgroup_size_variable => VARIABLE_SIZE,
            size => size.unwrap_or([64, 1, 1]),
        };
        Self { fragment: shader.stage == nir::Stage::Fragment, workgroup_size, wave: 0 }
    }

    /// The number of invocations of a workgroup.
    pub fn threads(self) -> u32 {
        self.workgroup_size.iter().fold(1, |product, &size| product.saturating_mul(size.max(1)))
    }
}

/// The kind of a value, as part of its hash.
#[derive(Clone, Copy)]
enum EnvironmentKey {
    Const = 1,
    System,
    Attribute,
    Varying,
    Ubo,
    Memory,
    Helpers,
    Size,
    Resource,
    Waves,
    Aliases,
    Primitive,
    WorkgroupSize,
}

/// The number of instructions of a wave after which a run of the program before is aborted.
pub const DEFAULT_FUEL: u64 = 200_000;

/// The inputs of a run: a seed, and overrides of single values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Env {
    /// The seed of all values that are not overridden.
    pub seed: u64,
    /// The hints about the inputs of a program. Without them, values are drawn without regard to their use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Box<Hints>>,
    /// The number of instructions of a wave after which a run of the program before is aborted; [`DEFAULT_FUEL`] if
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// The mask of helper lanes of a fragment shader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helpers: Option<u64>,
    /// The mask of running lanes; all lanes by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u64>,
    /// The partition of buffers, images and global memory into alias classes. By default the seed draws one; where
    /// words of memory are given by name, nothing aliases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Aliasing>,
    /// Memories that alias no other one, as the program before guarantees.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub alone: BTreeSet<MemoryName>,
    /// The share of texels that are 0 in every component, in eighths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub black_texels: u8,
    /// The number of cells of one colour from coordinate 0 to 1, plus one: 1 for textures of a single colour, 0 for
    /// textures without cells.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub coarse_texels: u8,
    /// The share of the components of texels that are corner cases of floats, in eighths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corner_texels: u8,
    /// The share of the words of memory, of the constant file and of inputs that are corner cases, in eighths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corner_words: u8,
    /// The value of every word of the constant file, of uniform buffers and of memory that is not given below; a hash
    /// of the seed by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<u32>,
    /// The rules of a run that is compared with a Vulkan device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceRules>,
    /// Words of the constant file, by scalar index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub consts: BTreeMap<u32, u32>,
    /// Words of the constant file that the driver fills for the compiled program, by scalar index. A nir load at a
    /// computed index reads them too: there is one constant file, and nir does not declare the end of its own words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub driver: BTreeMap<u32, u32>,
    /// Vertex attributes by `base.component`: one value, or one per lane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Vec<u32>>,
    /// Fragment inputs by `4 * base + component`: the bits of the value at (0, 0) and of its slopes in i and j.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varyings: BTreeMap<u32, [u32; 3]>,
    /// System values by `Name.component`: one value, or one per lane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub system: BTreeMap<String, Vec<u32>>,
    /// Words of memory by `space binding` (`ssbo 0`, `ubo 3`, `shared 0`; of a bindless resource `ssbo set 1 index
    /// 0`), then by word.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, BTreeMap<u32, u32>>,
}

impl Env {
    /// An environment without overrides.
    pub fn from_seed(seed: u64) -> Env {
        Env { seed, ..Env::default() }
    }

    /// The environments of these seeds, without overrides.
    pub fn from_seeds(seeds: &[u64]) -> Vec<Env> {
        seeds.iter().map(|&seed| Self::from_seed(seed)).collect()
    }

    /// The number of instructions of a wave after which a run of the program before is aborted.
    pub fn fuel(&self) -> u64 {
        self.fuel.unwrap_or(DEFAULT_FUEL)
    }

    /// Returns the environments with this fuel, if it is given.
    pub fn with_fuel(envs: Vec<Self>, fuel: Option<u64>) -> Vec<Self> {
        envs.into_iter().map(|env| Self { fuel: fuel.or(env.fuel), ..env }).collect()
    }

    /// Reads an environment from JSON.
    ///
    /// # Errors
    /// If the text is not JSON of an environment.
    pub fn from_json(text: &str) -> Result<Env, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Writes the environment as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps with string keys and numbers are JSON")
    }

    #[inline]
    fn hash(&self, key: EnvironmentKey, words: [u64; 3]) -> u64 {
        hash(&[self.seed, key as u64, words[0], words[1], words[2]])
    }

    /// Returns true if the value with a hash is a corner case.
    #[inline]
    fn is_corner(&self, hash: u64) -> bool {
        self.corner_words != 0 && mix(hash, 0x6564_6765) % 8 < self.corner_words.into()
    }

    /// A word of memory that forms, with the adjacent one, a corner case of 64 bits: an eighth of all pairs, or more,
    /// if the environment has corner cases.
    #[inline]
    fn half_of_wide(&self, word: u32, hash: impl Fn(u32) -> u64) -> Option<u32> {
        if self.corner_words == 0 {
            return None;
        }
        let eighths = 1 << (mix(self.seed, 0x7368_6172) & 3);
        let drawn = mix(hash(word & !1), 0x7061_6972);
        (drawn % 8 < eighths).then(|| (wide_corner(drawn) >> (32 * (word & 1))) as u32)
    }

    /// A value from its hash: one that fits its use in the program.
    #[inline]
    fn drawn(&self, hash: u64, usage: impl Fn(&Hints) -> Usage) -> u32 {
        if self.is_corner(hash) {
            return corner(hash);
        }
        match &self.hints {
            None => nice(hash),
            Some(hints) => hints.word(self.seed, hash, usage(hints)),
        }
    }

    /// Like [`drawn`](Self::drawn), of a word in memory, from the hashes of words.
    #[inline]
    fn drawn_in_memory(&self, word: u32, hash: impl Fn(u32) -> u64, drawn: impl Fn(&Hints, u64) -> u32) -> u32 {
        self.half_of_wide(word, &hash).unwrap_or_else(|| {
            let hash = hash(word);
            match &self.hints {
                _ if self.is_corner(hash) => corner(hash),
                None => nice(hash),
                Some(hints) => drawn(hints, hash),
            }
        })
    }

    /// A word of the constant file.
    #[inline]
    pub fn const_word(&self, index: u32) -> u32 {
        if let Some(&word) = self.consts.get(&index) {
            return word;
        }
        self.fill.unwrap_or_else(|| {
            self.drawn(self.hash(EnvironmentKey::Const, [index.into(), 0, 0]), |hints| hints.const_usage(index))
        })
    }

    /// Returns this environment with the words that the driver fills for a compiled program. Those past the end of the
    /// file are not read.
    #[must_use]
    pub fn with_driver_words(&self, launch: Launch, consts: &ConstLayout) -> Env {
        let mut env = self.clone();
        let mut row = [0; LANES];
        for param in &consts.driver_params {
            self.system_value(launch, param.value, param.component.into(), &mut row);
            env.driver.insert(param.word.into(), row[0]);
        }
        env.driver.extend(consts.immediates.iter().map(|&(word, bits)| (word.into(), bits)));
        env.driver.retain(|&word, _| word < CONST_WORDS);
        env
    }

    /// A word of a uniform buffer. Uniform buffers have no end.
    #[inline]
    pub fn ubo_word(&self, binding: Binding, word: u32) -> u32 {
        if let Some(word) = self.memory_override("ubo", binding, word) {
            return word;
        }
        let hash = |word: u32| self.hash(EnvironmentKey::Ubo, [binding.bits(), word.into(), 0]);
        self.fill.unwrap_or_else(|| {
            self.drawn_in_memory(word, hash, |hints, drawn| hints.word(self.seed, drawn, hints.ubo_usage(word)))
        })
    }

    /// The initial contents of a word of memory.
    #[inline]
    pub fn memory_word(&self, space: Space, binding: Binding, word: u32) -> u32 {
        if let Some(word) = self.memory_override(space.name(), binding, word) {
            return word;
        }
        let hash = |word: u32| self.hash(EnvironmentKey::Memory, [space as u64, binding.bits(), word.into()]);
        self.fill.unwrap_or_else(|| {
            self.drawn_in_memory(word, hash, |hints, drawn| hints.memory_word(self.seed, drawn, word))
        })
    }

    #[inline]
    fn memory_override(&self, space: &str, binding: Binding, word: u32) -> Option<u32> {
        if self.memory.is_empty() {
            return None;
        }
        let key = match Space::from_name(space) {
            Some(space) => MemoryName::of(space, binding).to_string(),
            None => format!("{space} {binding}"),
        };
        self.memory.get(&key)?.get(&word).copied()
    }

    /// The number of invocations of a workgroup.
    fn threads(&self, launch: Launch) -> u32 {
        Launch { workgroup_size: self.workgroup_size(launch), ..launch }.threads()
    }

    /// The number of lanes of a wave, 64 or 128; of 128 lanes the lower half is run here and the upper half is not
    /// modelled. Never 128 if that would leave one wave in a workgroup that may run two.
    fn wave_lanes(&self, launch: Launch) -> u32 {
        let (half, whole) = (LANES as u32, 2 * LANES as u32);
        let is_doubled =
            self.hash(EnvironmentKey::System, [system_tag(SystemValue::SubgroupSize), 0, 64]).is_multiple_of(4);
        if is_doubled && !(half + 1..=whole).contains(&self.threads(launch)) { whole } else { half }
    }

    /// The index of a wave in its workgroup.
    fn subgroup(&self, launch: Launch) -> u32 {
        let subgroups = u64::from(self.threads(launch).div_ceil(self.wave_lanes(launch)));
        let first = self.hash(EnvironmentKey::System, [system_tag(SystemValue::SubgroupId), 0, 64]) % subgroups;
        ((first + u64::from(launch.wave)) % subgroups) as u32
    }

    /// The mask of the running lanes of one of several waves: those with an invocation of the workgroup.
    pub fn lanes_of_wave(&self, launch: Launch) -> u64 {
        self.running_lanes() & first_lanes(self.threads(launch) - self.subgroup(launch) * self.wave_lanes(launch))
    }

    /// Returns true if the second of two waves runs first after this number of barriers.
    pub fn second_wave_is_first(&self, barriers: u64) -> bool {
        self.hash(EnvironmentKey::Waves, [barriers, 0, 0]) & 1 != 0
    }

    /// The mask of running lanes, never empty.
    pub fn running_lanes(&self) -> u64 {
        self.lanes.filter(|&lanes| lanes != 0).unwrap_or(ALL_LANES)
    }

    /// The partition of buffers, images and global memory into alias classes.
    pub fn aliasing(&self) -> Aliasing {
        self.aliases.unwrap_or_else(|| match self.memory.is_empty() {
            true => Aliasing::drawn(self.hash(EnvironmentKey::Aliases, [4, 0, 0])),
            false => Aliasing::Disjoint,
        })
    }

    /// Returns the environment in which these memories alias no other one, as a program promises.
    #[must_use]
    pub fn keeping(&self, promised: &BTreeSet<MemoryName>) -> Self {
        let mut env = self.clone();
        env.alone.extend(promised);
        env
    }

    /// Returns true if a memory aliases no other memory.
    pub fn keeps_alone(&self, name: MemoryName) -> bool {
        self.aliasing() == Aliasing::Disjoint || self.alone.iter().any(|alone| alone.covers(name))
    }

    /// The size of a buffer, as a query returns it: in bytes, or in words where the program makes bytes of them.
    pub fn buffer_size(&self, binding: Binding) -> u32 {
        if let Some(device) = &self.device {
            return device.buffer_bytes;
        }
        let hash = self.hash(EnvironmentKey::Size, [binding.bits(), 0, 0]);
        let words = (hash >> 32) as u32;
        match hash >> 60 {
            // A computation on a size often wraps only if a buffer is very small.
            0 | 1 => words % 8,
            2 => 4 * (words % 64),
            _ => 64 << (hash % 7),
        }
    }

    /// A property of an image or texture: its size in one dimension, its levels or its samples, by number. A power of
    /// two of at most 256.
    pub fn resource_property(&self, binding: Binding, property: u32, level: u32) -> u32 {
        1 << (self.hash(EnvironmentKey::Resource, [binding.bits(), property.into(), level.into()]) % 9)
    }

    /// The size of the workgroup; if the dispatch sets it, a size that the seed gives.
    pub fn workgroup_size(&self, launch: Launch) -> [u32; 3] {
        if launch.workgroup_size != VARIABLE_SIZE {
            return launch.workgroup_size.map(|size| size.max(1));
        }
        const SIZES: [[u32; 3]; 6] = [[64, 1, 1], [128, 1, 1], [32, 4, 1], [8, 8, 2], [7, 3, 5], [1, 1, 1]];
        SIZES[(self.hash(EnvironmentKey::WorkgroupSize, [0; 3]) % SIZES.len() as u64) as usize]
    }

    /// The mask of helper lanes: lanes that exist only to complete their quad.
    pub fn helper_lanes(&self, launch: Launch) -> u64 {
        if !launch.fragment {
            return 0;
        }
        if let Some(mask) = self.helpers {
            return mask;
        }
        let h = self.hash(EnvironmentKey::Helpers, [0; 3]);
        // In a quarter of all waves, up to three lanes of some quads; never a whole quad.
        if h & 3 != 0 {
            return 0;
        }
        let a = hash(&[h, 1]);
        let b = hash(&[h, 2]);
        a & b & 0x7777_7777_7777_7777
    }

    /// Reads a component of a vertex attribute.
    pub fn attribute(&self, base: u32, component: u32, dst: &mut Row) {
        if let Some(values) = self.named(&self.attributes, || format!("{base}.{component}")) {
            return fill(dst, values);
        }
        for (lane, value) in dst.iter_mut().enumerate() {
            // With hints, some lanes have the inputs of their neighbour.
            let of = if self.hints.is_some() && lane % 16 < 4 { lane & !1 } else { lane };
            let hash = self.hash(EnvironmentKey::Attribute, [base.into(), component.into(), of as u64]);
            *value = self.drawn(hash, |hints| hints.input_usage(4 * base + component));
        }
    }

    /// The primitive of a lane's fragment. A wave has fragments of one primitive or of several; a quad has fragments of
    /// one.
    pub fn primitive(&self, lane: usize) -> u32 {
        let quads = [1, 2, 4, 16][(self.hash(EnvironmentKey::Primitive, [0; 3]) % 4) as usize];
        lane as u32 / 4 / quads
    }

    /// A component of a fragment input, `location` being `4 * base + component`, of a [primitive](Self::primitive): the
    /// bits of its value where the barycentric coordinates are 0, and of its slopes in i and j. A flat input is the
    /// first of them.
    pub fn varying(&self, location: u32, primitive: u32) -> [u32; 3] {
        if let Some(&values) = self.varyings.get(&location) {
            return values;
        }
        [0, 1, 2].map(|plane| {
            let hash = self.hash(EnvironmentKey::Varying, [location.into(), plane, primitive.into()]);
            match (&self.hints, plane) {
                (_, 0) if self.is_corner(hash) => corner(hash),
                (None, _) => nice_float(hash),
                (Some(hints), 0) => match hints.input_usage(location) {
                    usage @ (Usage::Int | Usage::Address(_)) => hints.word(self.seed, hash, usage),
                    Usage::Any | Usage::Float | Usage::Halves(_) => hints.word(self.seed, hash, Usage::Float),
                },
                (Some(_), _) => Hints::slope(hash),
            }
        })
    }

    /// Reads a fragment input that is not interpolated, in all lanes: 32 bits, or the low 16 of them if `half`.
    pub fn flat(&self, location: u32, half: bool, dst: &mut Row) {
        let mut last = None;
        for (lane, word) in dst.iter_mut().enumerate() {
            let primitive = self.primitive(lane);
            let value = match last {
                Some((of, value)) if of == primitive => value,
                _ => self.varying(location, primitive)[0],
            };
            last = Some((primitive, value));
            *word = if half { value & 0xffff } else { value };
        }
    }

    /// Interpolates a fragment input at the barycentric coordinates `i` and `j`: 32-bit floats, or 16-bit ones of the
    /// same value if `half`.
    pub fn interpolate(&self, location: u32, i: &Row, j: &Row, half: bool, dst: &mut Row) {
        let mut last = None;
        for lane in 0..LANES {
            let primitive = self.primitive(lane);
            let planes = match last {
                Some((of, planes)) if of == primitive => planes,
                _ => self.varying(location, primitive),
            };
            last = Some((primitive, planes));
            let [p0, p1, p2] = planes;
            let value = float::interpolate(p0, p1, p2, i[lane], j[lane]);
            dst[lane] = if half { float::f32_to_f16(value) } else { value };
        }
    }

    fn named<'a>(&self, map: &'a BTreeMap<String, Vec<u32>>, key: impl Fn() -> String) -> Option<&'a [u32]> {
        if map.is_empty() { None } else { map.get(&key()).map(Vec::as_slice).filter(|values| !values.is_empty()) }
    }
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

fn fill(dst: &mut Row, values: &[u32]) {
    for (lane, value) in dst.iter_mut().enumerate() {
        *value = values[lane % values.len()];
    }
}

/// The lanes of a mask, lowest first.
#[inline]
pub fn lanes(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}

/// The mask of a wave's first `count` lanes.
pub const fn first_lanes(count: u32) -> u64 {
    if count >= 64 { ALL_LANES } else { (1 << count) - 1 }
}
