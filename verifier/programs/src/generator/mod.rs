//! The program generator: random nir that is well-formed by construction.
//!
//! A program is generated from its beginning to its end. Every instruction takes its sources from the `pool` of values
//! that dominate it; scopes nest with control flow; loops count their iterations (`control`). Values without a reader
//! at the end of a scope are mixed into the value that leaves it, and at the end of the program into its outputs, so
//! that nearly all of a program affects its result.
//!
//! Decisions come from [`Choices`]: bytes of a fuzzer, or a ChaCha stream of a seed. Both run the same code, and a
//! proptest strategy is the byte version (`strategy`). `copies` generates programs of parallel copies alone.

pub mod accepted;
mod additions;
mod chains;
mod choices;
mod conditions;
mod config;
mod control;
mod copies;
mod driver;
mod effects;
mod expression;
mod features;
mod fixed_registers;
mod hoard;
mod kept;
mod kernel;
mod operations;
mod overwrites;
mod pool;
mod profile;
mod scopes;
mod shapes;
mod style;
mod undefined;
mod uniform;
mod vec4;

use config::CONFIG;
use ir3_compiler::nir::{Builder, Def, FloatControls, Shader, Stage};
use ir3_compiler::target::Target;

pub(crate) use driver::replace;

pub use choices::{Bytes, Choices, Seeded};
pub use copies::copies;
pub use features::Features;
pub use fixed_registers::assign_fixed_registers;
pub use profile::Profile;

use control::LoopFrame;
use operations::Swarm;
use pool::Pool;
use profile::Weights;
use style::Style;

/// A generated program.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The program.
    pub shader: Shader,
    /// The number of undefined values in it. None of them reaches a condition or an address.
    pub undefined_values: u32,
}

struct Generator<'a, C> {
    c: &'a mut C,
    b: Builder,
    pool: Pool,
    weights: Weights,
    features: Features,
    target: Target,
    style: Style,
    /// The number of branches and loops around the current place whose conditions may differ between lanes.
    divergence: usize,
    /// The number of those that may separate the lanes of a quad.
    quads: usize,
    /// The program has a preamble.
    has_preamble: bool,
    /// In the preamble: the first words of its stores to the constant file.
    stored_words: Vec<i32>,
    /// The features of a program of the profile `operations`.
    swarm: Swarm,
    /// The weights of divergent code inside of uniform code.
    divergent: Weights,
    loops: Vec<LoopFrame>,
    /// The number of instructions after which the program is finished.
    limit: u32,
    /// A lane may have been killed.
    killed: bool,
    /// Outputs are stored before the program may end, so all are words.
    has_early_outputs: bool,
    /// A varying is read at a computed place: before a5xx, no lane may end then.
    computed_varyings: bool,
    lane: Option<Def>,
    /// Values that the outputs read, in addition to other readers.
    long_lived: Vec<Def>,
    /// Words of the environment that differ between lanes, unmodified.
    raw: Vec<Def>,
    /// The first of four elements of a buffer that most lanes have to themselves.
    own_place: Option<Def>,
    /// In a sweep: the words that are not stored yet.
    unstored: Option<Vec<Def>>,
    /// The number of times that each lane has stored words of its own.
    own_stores: u64,
    /// The start of the scratch memory that the program has written.
    scratch: Option<u32>,
    /// The images of the program, by number.
    images: Vec<operations::Image>,
}

/// The greatest number of instructions of a program, for any size that its source of decisions returns.
const MAX_INSTRUCTIONS: u32 = 2000;

/// Generates the program of a seed for a GPU with these features, the same on every machine.
pub fn from_seed(seed: u64, profile: Profile, features: Features) -> Generated {
    from_seed_within(seed, u32::MAX, profile, features)
}

/// Like [`from_seed`], with at most about `size` instructions.
pub fn from_seed_within(seed: u64, size: u32, profile: Profile, features: Features) -> Generated {
    generate(&mut Seeded::new(seed).within(size), profile, features)
}

/// Generates the program of a byte string. Any bytes make a program; the first chooses the profile where none is given.
pub fn from_bytes(bytes: &[u8], profile: Option<Profile>, features: Features) -> Generated {
    let mut c = Bytes::new(bytes);
    let profile = profile.unwrap_or_else(|| c.pick(&Profile::ALL));
    generate(&mut c, profile, features)
}

/// A proptest strategy for programs of a profile. Shrinking shortens and zeroes the underlying bytes.
#[cfg(feature = "proptest")]
pub fn strategy(profile: Profile, features: Features) -> impl proptest::strategy::Strategy<Value = Generated> {
    use proptest::prelude::*;
    prop::collection::vec(any::<u8>(), 0..1200).prop_map(move |bytes| from_bytes(&bytes, Some(profile), features))
}

/// Generates one program.
pub fn generate<C: Choices>(c: &mut C, profile: Profile, features: Features) -> Generated {
    if features.vec4 {
        return vec4::generate(c);
    }
    if features.scalar || profile == Profile::Additions {
        return additions::generate(c, features);
    }
    let target = Target::by_name(features.gpu).unwrap_or_default();
    let (weights, swarm) = match profile {
        Profile::Operations => (Weights::drawn(c), Swarm::draw(c, &target, features.driver)),
        // Many live values together with operations of any kind, which have constraints of their own: vectors, pairs,
        // results before operands are read.
        Profile::Pressure if c.chance(CONFIG.pressure_of_others) => {
            let others = [Profile::Subgroups, Profile::Memory, Profile::Textures, Profile::Half, Profile::Int64];
            let long_lived = profile.weights().long_lived;
            (Weights { long_lived, ..c.pick(&others).weights() }, Swarm::default())
        }
        _ => (profile.weights(), Swarm::default()),
    };
    let drawn = c.below(8);
    let stage = match (profile, drawn) {
        _ if features.only_compute => Stage::Compute,
        (Profile::Textures, 0..=4) | (_, 0 | 1) => Stage::Fragment,
        (_, 3) if features.driver => Stage::Fragment,
        (_, 2) => Stage::Vertex,
        (_, 3 | 4) if !features.compute => Stage::Vertex,
        _ if !features.compute => Stage::Fragment,
        _ => Stage::Compute,
    };
    let limit = c.size().min(MAX_INSTRUCTIONS);
    let mut style = Style::draw(c);
    if profile == Profile::Operations {
        style.chains = c.pick(&[12, 40, 60]);
    }
    if profile == Profile::Operations && weights.long_lived > 0 {
        // Cycles of halves where the file is full, and crowds, for which some of them are moved beyond the reach of
        // half operands.
        (style.permutations, style.half_phis, style.shapes) = (160, 110, 40);
    }
    let mut g = Generator {
        c,
        b: Builder::new(stage),
        pool: Pool::default(),
        weights,
        features,
        target,
        style,
        divergence: 0,
        quads: 0,
        has_preamble: false,
        stored_words: Vec::new(),
        swarm,
        divergent: if profile == Profile::Operations { weights } else { Profile::Uniform.weights() },
        loops: Vec::new(),
        limit,
        killed: false,
        has_early_outputs: false,
        computed_varyings: false,
        lane: None,
        long_lived: Vec::new(),
        raw: Vec::new(),
        own_place: None,
        unstored: None,
        own_stores: 0,
        scratch: None,
        images: Vec::new(),
    };
    g.preamble();
    g.lane_number();
    g.inputs();
    g.raw_inputs();
    g.every_width();
    g.scratch_memory();
    g.inputs_of_stage();
    if !g.sweep() {
        g.row_of_probes();
        g.row_of_patterns();
        g.long_lived();
        g.uniform_values();
        if profile == Profile::Pressure && g.c.chance(CONFIG.pressure_crowd) {
            g.crowd();
        }
        if profile == Profile::Operations && g.c.chance(CONFIG.hoard) {
            g.hoard();
        }
        while !g.done() {
            g.region(u32::MAX);
        }
    }
    g.last_votes();
    g.last_constants();
    g.outputs();
    let mut shader = g.b.finish();
    shader.info.divergence_analysis_run = false;
    for bits in [16, 32] {
        if profile == Profile::Operations && c.chance(CONFIG.rounds_to_even) {
            // The header has no other mode.
            let _ = FloatControls::require_even(&mut shader.info, bits);
        }
    }
    let info = &mut shader.info;
    // A barrier synchronizes the lanes of the declared workgroup.
    if profile == Profile::Operations && info.workgroup_size == Some([64, 1, 1]) && c.chance(CONFIG.variable_workgroup)
    {
        info.workgroup_size_variable = true;
    }
    if features.driver {
        driver::settle(&mut shader, &target);
    }
    let undefined_values = undefined::settle(&mut shader);
    Generated { shader, undefined_values }
}

impl<C: Choices> Generator<'_, C> {
    fn done(&self) -> bool {
        self.c.exhausted() || self.b.function().instrs.len() as u32 >= self.limit
    }

    /// Adds a new value to the pool.
    fn define(&mut self, def: Def) {
        self.define_seen(def, CONFIG.witnessed);
    }

    /// Adds a new value to the pool and, with a probability, to the witness, a sum that leaves the scope: most
    /// operations lose some information of a source (a comparison, a product with 0, a NaN), and a difference in it
    /// would not be observed.
    fn define_seen(&mut self, def: Def, of_256: u32) {
        self.pool.add(&self.b, def);
        if self.b.depth() == 0
            && let Some(words) = self.unstored.take()
        {
            return self.store_to_own_place(def, words);
        }
        if self.c.chance(of_256) {
            let data = &self.b.function().defs[def];
            let value = (def, data.bit_size, data.num_components);
            let sum = match self.pool.witness() {
                Some(witness) => self.fold(&[(witness, 32, 1), value]),
                None => self.fold(&[value]),
            };
            if let Some(sum) = sum {
                self.pool.set_witness(sum);
            }
        }
    }

    /// Defines values that stay live until the outputs.
    fn long_lived(&mut self) {
        if self.weights.long_lived == 0 {
            return;
        }
        let mut count = 8 + self.c.below(usize::from(self.weights.long_lived));
        // Enough to reach the upper half of the file, which half registers do not.
        let (often, least) = if self.weights.operation == 0 {
            (CONFIG.many_long_lived, 40)
        } else {
            (CONFIG.many_long_lived_of_operations, 100)
        };
        if self.c.chance(often) {
            count += least + self.c.below(80);
        }
        for _ in 0..count {
            if self.c.exhausted() {
                return;
            }
            let value = if self.c.chance(CONFIG.long_lived_float) { self.float(32) } else { self.half_op() };
            self.long_lived.extend(value);
        }
    }

    /// Straight-line code with control flow in it, of about `budget` instructions.
    fn region(&mut self, budget: u32) {
        let start = self.b.function().instrs.len() as u32;
        let steps = 2 + self.c.below(12);
        for _ in 0..steps {
            let spent = self.b.function().instrs.len() as u32 - start;
            if self.done() || spent >= budget {
                return;
            }
            self.step((budget - spent).min(80));
        }
    }

    fn step(&mut self, budget: u32) {
        let w = self.weights;
        if !self.pool.only_uniform && self.c.chance(self.style.chains) {
            return self.chain();
        }
        if !self.pool.only_uniform && self.c.chance(self.style.shapes) {
            return self.shape();
        }
        let kinds = [
            w.int,
            w.float,
            w.half,
            w.int8,
            w.int64,
            w.compare,
            w.boolean,
            w.select,
            w.convert,
            w.bits,
            w.divide,
            w.vector,
            w.memory,
            w.array,
            w.image,
            w.texture,
            w.subgroup,
            w.branch,
            w.loops,
            w.uniform,
            w.kept,
            w.operation,
        ];
        let total: usize = kinds.iter().map(|&k| usize::from(k)).sum();
        let mut at = self.c.below(total);
        let mut kind = 0;
        while at >= usize::from(kinds[kind]) {
            at -= usize::from(kinds[kind]);
            kind += 1;
        }
        match kind {
            0 => {
                self.int();
            }
            1 => {
                self.float(32);
            }
            2 => {
                self.half_op();
            }
            3 => {
                self.int8();
            }
            4 => {
                self.int64();
            }
            5 => {
                self.compare();
            }
            6 => {
                self.boolean();
            }
            7 => {
                self.select();
            }
            8 => {
                self.convert();
            }
            9 => {
                self.bit_operation();
            }
            10 => {
                self.divide();
            }
            11 => {
                self.vector_operation();
            }
            12 => self.memory(),
            13 => self.array(),
            14 if self.features.images && self.b.shader().stage == Stage::Compute => self.image(),
            15 => self.texture(),
            16 => self.subgroup(),
            17 if !self.pool.only_uniform && self.c.chance(self.style.kills) => self.kill(),
            17 => self.branch(budget),
            18 => self.repeat(budget),
            19 => self.uniform(budget),
            20 => self.kept_conditions(budget),
            21 => self.operation(),
            _ => {
                self.int();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::nir::{Access, InstrData, IntrinsicOp};
    use ir3_semantics::environment::env::Env;
    use ir3_semantics::interp::{self, End, Scratch};
    use rustc_hash::FxHashSet;

    /// Guards, strides that are products of words of push constants, and bytes of buffers that are only read.
    #[test]
    fn kernels_are_made() {
        let shaders: Vec<Shader> =
            (0..600).map(|seed| from_seed(seed, Profile::Operations, Features::ALL).shader).collect();
        let count = |has: &dyn Fn(&Shader, &InstrData) -> bool| {
            shaders.iter().filter(|shader| shader.entry.instrs.values().any(|data| has(shader, data))).count()
        };
        let pushed = count(&|_, data| match data {
            InstrData::Intrinsic(it) => it.op == IntrinsicOp::LoadConstIr3 && it.indices.base() >= 4 * 504,
            _ => false,
        });
        let bytes = count(&|shader, data| match data {
            InstrData::Intrinsic(it) => {
                it.op == IntrinsicOp::LoadSsboIr3
                    && it.indices.access().contains(Access::READONLY | Access::REORDERABLE)
                    && it.def.is_some_and(|def| shader.entry.defs[def].bit_size == 8)
            }
            _ => false,
        });
        assert!(pushed >= 5 && bytes >= 1, "{pushed} {bytes}");
    }

    #[test]
    fn a_seed_gives_one_program() {
        for profile in Profile::ALL {
            assert_eq!(from_seed(7, profile, Features::ALL).shader, from_seed(7, profile, Features::ALL).shader);
        }
    }

    /// Undefined values reach outputs, and no branch or address: every program has an environment in which it can be
    /// tested.
    #[test]
    fn runs_have_a_meaning() {
        let (mut undefined, mut programs, mut untestable) = (0, 0, Vec::new());
        for (seed, profile) in (0..2000).zip(Profile::ALL.into_iter().cycle()) {
            let Generated { shader, undefined_values } = from_seed(seed, profile, Features::ALL);
            undefined += undefined_values;
            let decoded = interp::nir::Decoded::new(&shader).expect("a program that can be run");
            // Atomics return nothing to helper lanes, so not every environment will do.
            let finishes = |number: u64| {
                let env = Env::from_seed(seed ^ number << 32);
                decoded.run(&env, env.fuel(), &mut Scratch::default()).end == End::Finished
            };
            if !(0..17).any(finishes) {
                untestable.push((profile, seed));
            }
            programs += 1;
        }
        assert!(untestable.is_empty(), "{untestable:?} of {programs}");
        assert!(undefined > 0, "no undefined value in {programs} programs");
    }

    /// Shapes that passes after selection have to get right, each of which some style makes.
    #[test]
    fn styles_reach_their_shapes() {
        use ir3_compiler::nir::{CfNode, IntrinsicOp, TexOp};
        let mut seen = FxHashSet::default();
        for (seed, profile) in (0..1500).zip(Profile::ALL.into_iter().cycle()) {
            let function = from_seed(seed, profile, Features::ALL).shader.entry;
            let mut shapes = |data: &InstrData, in_loop: bool, in_branch: bool| match data {
                InstrData::Phi { srcs, .. } if srcs.len() > 4 => _ = seen.insert("phi of more than four sources"),
                InstrData::Intrinsic(it) if in_loop && it.op == IntrinsicOp::TerminateIf => {
                    seen.insert("lanes that end in a loop");
                }
                InstrData::Intrinsic(it) if it.op == IntrinsicOp::LoadRegIndirect => {
                    let bits = it.def.map_or(0, |def| function.defs[def].bit_size);
                    seen.insert(if bits == 16 { "array of halves" } else { "array of words" });
                }
                InstrData::Tex(tex) if in_branch && tex.op == TexOp::Tex => {
                    _ = seen.insert("level in a uniform branch")
                }
                _ => {}
            };
            let mut nodes: Vec<(&CfNode, bool, bool)> = function.body.iter().map(|node| (node, false, false)).collect();
            let mut most = 0;
            while let Some((node, in_loop, in_branch)) = nodes.pop() {
                match node {
                    CfNode::Block(block) => {
                        let list = &function.blocks[*block].instrs;
                        let phis = list.iter().filter(|&&it| matches!(function.instrs[it], InstrData::Phi { .. }));
                        most = most.max(phis.count());
                        list.iter().for_each(|&it| shapes(&function.instrs[it], in_loop, in_branch));
                    }
                    CfNode::If(branch) => {
                        let arms = branch.then.iter().chain(&branch.otherwise);
                        nodes.extend(arms.map(|node| (node, in_loop, !in_loop)));
                    }
                    CfNode::Loop(repeated) => nodes.extend(repeated.body.iter().map(|node| (node, true, false))),
                }
            }
            if most > 6 {
                seen.insert("more than six phis");
            }
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
    }

    #[test]
    fn no_bytes_make_a_program() {
        let empty = from_bytes(&[], None, Features::ALL);
        assert!(empty.shader.instruction_count() > 0);
    }

    #[test]
    fn programs_grow_to_their_size() {
        let sizes: Vec<_> =
            (0..200).map(|s| from_seed(s, Profile::Mixed, Features::ALL).shader.instruction_count()).collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((60..400).contains(&mean), "mean size {mean}");
    }
}
