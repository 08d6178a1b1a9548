//! Reduction of the environment of a failure.
//!
//! An environment is a function of its seed. Steps simplify it one after the other as long as the program fails in the
//! same way:
//!
//! - nothing aliases, or buffers alias in pairs;
//! - fewer lanes run: one alone, or as few as possible;
//! - buffers and the constant file are 0 everywhere, or 1, or at least the words that the program accesses are;
//! - an input that the text of the program names (system values, attributes, varyings, words of the constant file) is
//!   0, or 1, or uniform;
//! - values for inputs that the program does not read are removed;
//! - the seed is 0.
//!
//! Every step must decrease a measure, `EnvComplexity`, so the search terminates. Only values that differ from the
//! seed's are explicit in the result.

use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{InstrData, InterpMode, Intrinsic, IntrinsicOp, Shader, Stage};

use ir3_semantics::environment::aliases::{Aliasing, MemoryName};
use ir3_semantics::environment::env::{CONST_WORDS, Env, Launch, system_value_of};
use ir3_semantics::interp;
use ir3_semantics::interp::Scratch;
use ir3_semantics::support::panics::catch;

/// An input of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ReadInput {
    System(SystemValue, u32),
    Attribute(u32, u32),
    Varying(u32),
    Const(u32),
    Helpers,
    /// A word of the memory of that name in environments.
    Memory(String, u32),
}

/// The complexity of an environment for a program. Smaller is simpler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EnvComplexity {
    /// The number of lanes that run.
    lanes: u32,
    /// The distance of the inputs from 0, and the number of explicit values.
    values: u32,
    /// The seed is not 0.
    seed: bool,
    /// The alias classes are given.
    aliases: bool,
}

/// Words of memory are simplified one by one if there are no more than these.
const MEMORY_WORDS: usize = 16;

/// Simplifies an environment as long as `same` returns true: the program fails in the same way.
pub fn run(env: &Env, shader: &Shader, same: &mut dyn FnMut(&Env) -> bool) -> Env {
    let reads = reads_memory(shader);
    let mut search = EnvironmentSearch { inputs: inputs(shader), reads, shader, best: env.clone(), same };
    // The names of words depend on it.
    while search.aliases() {}
    if reads {
        search.inputs.extend(touched(&search.best, shader));
    }
    loop {
        while search.iterate() {}
        // Simpler values may need less aliasing.
        if !search.aliases() {
            return search.best;
        }
    }
}

struct EnvironmentSearch<'a> {
    inputs: Vec<ReadInput>,
    /// The program reads memory.
    reads: bool,
    shader: &'a Shader,
    best: Env,
    same: &'a mut dyn FnMut(&Env) -> bool,
}

impl EnvironmentSearch<'_> {
    /// Accepts a change if it makes the environment simpler and the program still fails.
    fn attempt(&mut self, change: impl FnOnce(&mut Env)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        let taken = self.complexity(&candidate) < self.complexity(&self.best) && (self.same)(&candidate);
        if taken {
            self.best = candidate;
        }
        taken
    }

    /// Like [`attempt`](Self::attempt), with the alias classes of the best environment, which may follow from the
    /// changed words.
    fn attempt_with_aliases(&mut self, change: impl FnOnce(&mut Env)) -> bool {
        self.attempt(|env| {
            env.aliases = Some(env.aliasing());
            change(env);
        })
    }

    /// Tries everything once. Returns true if any change was accepted.
    fn iterate(&mut self) -> bool {
        let mut any = self.lanes();
        any |= [Some(0), Some(1), None].into_iter().any(|fill| self.attempt(|env| env.fill = fill));
        for input in self.inputs.clone() {
            let changes = simpler(&self.best, self.shader, &input);
            any |= changes.into_iter().any(|change| self.attempt(change));
        }
        any |= self.unread();
        any |= self.attempt_with_aliases(|env| env.seed = 0);
        any | self.attempt(|env| env.aliases = None)
    }

    /// Makes fewer memories alias.
    fn aliases(&mut self) -> bool {
        let pairs = [1, 2, 3, 4, 5, 6, 7].map(Aliasing::Pairs);
        let partitions = std::iter::once(Aliasing::Disjoint).chain(pairs).chain([Aliasing::One]).map(Some);
        let any = partitions.chain([None]).any(|aliases| self.attempt(|env| env.aliases = aliases));
        let mut any = any | self.attempt(|env| env.alone.clear());
        for name in self.best.alone.clone() {
            any |= self.attempt(|env| _ = env.alone.remove(&name));
        }
        any
    }

    /// Reduces the lanes that run: to the first one with which the program fails, otherwise by removing halves,
    /// quarters, ….
    fn lanes(&mut self) -> bool {
        let running = self.best.running_lanes();
        if running.count_ones() == 1 {
            return false;
        }
        let each = || (0..64).filter(|lane| running >> lane & 1 != 0);
        if each().any(|lane| self.attempt(|env| env.lanes = Some(1 << lane))) {
            return true;
        }
        let mut any = false;
        for size in [32, 16, 8, 4, 2, 1] {
            // Remove the last ones first, so that low numbers are left.
            for at in (0..64 / size).rev() {
                let group = (u64::MAX >> (64 - size)) << (at * size);
                let left = self.best.running_lanes() & !group;
                any |= left != 0 && self.attempt(|env| env.lanes = Some(left));
            }
        }
        any
    }

    /// Removes the values of inputs that the program does not read.
    fn unread(&mut self) -> bool {
        let env = self.best.clone();
        let mut any = false;
        for key in env.consts.keys() {
            any |= self.attempt(|env| _ = env.consts.remove(key));
        }
        for key in env.varyings.keys() {
            any |= self.attempt(|env| _ = env.varyings.remove(key));
        }
        for key in env.attributes.keys() {
            any |= self.attempt(|env| _ = env.attributes.remove(key));
        }
        for key in env.system.keys() {
            any |= self.attempt(|env| _ = env.system.remove(key));
        }
        for (name, words) in &env.memory {
            any |= self.attempt_with_aliases(|env| _ = env.memory.remove(name));
            for word in words.keys() {
                any |=
                    self.attempt_with_aliases(|env| _ = env.memory.get_mut(name).and_then(|words| words.remove(word)));
            }
        }
        any |= self.attempt(|env| env.helpers = None);
        any
    }

    fn complexity(&self, env: &Env) -> EnvComplexity {
        let explicit = env.consts.len() + env.varyings.len() + env.attributes.len() + env.system.len();
        let explicit = explicit + env.memory.values().map(|words| words.len().max(1)).sum::<usize>();
        let explicit = explicit + env.alone.len();
        let aliasing = if self.reads { 2 * env.aliasing().complexity() } else { 0 };
        let fill = if self.reads { far(env.fill) } else { u32::from(env.fill.is_some()) };
        let mut values = explicit as u32 + u32::from(env.helpers.is_some()) + fill + aliasing;
        values += self.inputs.iter().map(|input| 8 * distance(env, input)).sum::<u32>();
        let lanes = env.running_lanes().count_ones();
        EnvComplexity { lanes, values, seed: env.seed != 0, aliases: env.aliases.is_some() }
    }
}

/// The distance of a word from 0; a word that is not uniform has the greatest.
fn far(word: Option<u32>) -> u32 {
    match word {
        Some(0) => 0,
        Some(1 | 0x3f80_0000) => 1,
        Some(_) => 2,
        None => 3,
    }
}

/// The distance of an input from 0 in all lanes.
fn distance(env: &Env, input: &ReadInput) -> u32 {
    let row = |row: Option<&Vec<u32>>| match row.map(Vec::as_slice) {
        Some([word]) => far(Some(*word)),
        _ => far(None),
    };
    match input {
        ReadInput::System(value, component) => row(env.system.get(&system_key(*value, *component))),
        ReadInput::Attribute(base, component) => row(env.attributes.get(&attribute_key(*base, *component))),
        ReadInput::Varying(location) => match env.varyings.get(location) {
            Some([word, 0, 0]) => far(Some(*word)),
            _ => far(None),
        },
        ReadInput::Const(word) => far(env.consts.get(word).copied().or(env.fill)),
        ReadInput::Memory(name, word) => {
            far(env.memory.get(name).and_then(|words| words.get(word)).copied().or(env.fill))
        }
        ReadInput::Helpers => far(env.helpers.map(|mask| if mask == 0 { 0 } else { 2 })),
    }
}

fn system_key(value: SystemValue, component: u32) -> String {
    format!("{value:?}.{component}")
}

fn attribute_key(base: u32, component: u32) -> String {
    format!("{base}.{component}")
}

/// Returns true if a program reads buffers, constants or other memory.
fn reads_memory(shader: &Shader) -> bool {
    const MEMORIES: [&str; 7] = ["ssbo", "ubo", "shared", "global", "image", "const", "uniform"];
    let function = &shader.entry;
    function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => {
            intrinsic.def.is_some() && MEMORIES.iter().any(|memory| intrinsic.op.name().contains(memory))
        }
        _ => false,
    })
}

/// The words of memory that a run of the program accesses, if they are few.
fn touched(env: &Env, shader: &Shader) -> Vec<ReadInput> {
    let run = || {
        let mut scratch = Scratch::default();
        let env = env.keeping(&interp::nir::unaliased(shader));
        interp::nir::Decoded::new(shader).ok()?.run(&env, env.fuel(), &mut scratch);
        Some(scratch.memory.touched())
    };
    let touched = catch(run).ok().flatten().unwrap_or_default();
    if touched.len() > MEMORY_WORDS {
        return Vec::new();
    }
    let name = |space, binding| MemoryName::of(space, binding).to_string();
    touched.into_iter().map(|(space, binding, word)| ReadInput::Memory(name(space, binding), word)).collect()
}

/// The inputs that a program reads by name, in the order of the text.
fn inputs(shader: &Shader) -> Vec<ReadInput> {
    let function = &shader.entry;
    let mut inputs = Vec::new();
    if shader.stage == Stage::Fragment {
        inputs.push(ReadInput::Helpers);
    }
    for (_, instr) in function.instrs_in_order() {
        let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
        let Some(def) = intrinsic.def else { continue };
        let components = u32::from(function.defs[def].num_components);
        let constant = |index: usize| {
            intrinsic.srcs.get(index).and_then(|&src| function.as_const_scalar(src)).map(|value| value as u32)
        };
        let base = intrinsic.indices.base() as u32;
        let first = u32::from(intrinsic.indices.component());
        let offset = constant(intrinsic.srcs.len().saturating_sub(1));
        match intrinsic.op {
            IntrinsicOp::LoadConstIr3 => {
                let words = components * u32::from(function.defs[def].bit_size).div_ceil(32);
                if let Some(offset) = offset {
                    inputs.extend((0..words).map(|i| ReadInput::Const(base.wrapping_add(offset + i) % CONST_WORDS)));
                }
            }
            IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput => {
                let Some(location) = offset.map(|offset| base.wrapping_add(offset)) else { continue };
                inputs.extend((first..first + components).map(|c| match shader.stage {
                    Stage::Fragment => ReadInput::Varying(location.wrapping_mul(4).wrapping_add(c)),
                    _ => ReadInput::Attribute(location.wrapping_add(c / 4), c % 4),
                }));
            }
            op => {
                if let Some(value) = system_value_of(op).or_else(|| barycentric(intrinsic)) {
                    inputs.extend((0..components).map(|c| ReadInput::System(value, c)));
                }
            }
        }
    }
    let mut once: Vec<ReadInput> = Vec::with_capacity(inputs.len());
    for input in inputs {
        if !once.contains(&input) {
            once.push(input);
        }
    }
    once
}

fn barycentric(intrinsic: &Intrinsic) -> Option<SystemValue> {
    let linear = intrinsic.indices.interp_mode() == InterpMode::NoPerspective;
    Some(match (intrinsic.op, linear) {
        (IntrinsicOp::LoadBarycentricPixel, false) => SystemValue::BarycentricPixel,
        (IntrinsicOp::LoadBarycentricPixel, true) => SystemValue::BarycentricPixelLinear,
        (IntrinsicOp::LoadBarycentricCentroid, false) => SystemValue::BarycentricCentroid,
        (IntrinsicOp::LoadBarycentricCentroid, true) => SystemValue::BarycentricCentroidLinear,
        (IntrinsicOp::LoadBarycentricSample, false) => SystemValue::BarycentricSample,
        (IntrinsicOp::LoadBarycentricSample, true) => SystemValue::BarycentricSampleLinear,
        _ => return None,
    })
}

/// A change of an environment.
type EnvChange = Box<dyn FnOnce(&mut Env)>;

/// The changes that simplify one input, the simplest result first.
fn simpler(env: &Env, shader: &Shader, input: &ReadInput) -> Vec<EnvChange> {
    fn change(change: impl FnOnce(&mut Env) + 'static) -> EnvChange {
        Box::new(change)
    }
    // The value of the first running lane.
    let lane = env.running_lanes().trailing_zeros() as usize;
    let mut row = [0; 64];
    match input.clone() {
        ReadInput::Helpers => vec![change(|env| env.helpers = Some(0))],
        ReadInput::Const(word) => [0, 1].map(|value| change(move |env| _ = env.consts.insert(word, value))).into(),
        ReadInput::Memory(name, word) => [0, 1]
            .map(|value| {
                let name = name.clone();
                change(move |env| {
                    // By default nothing aliases if words of memory are given by name.
                    env.aliases = Some(env.aliasing());
                    env.memory.entry(name).or_default().insert(word, value);
                })
            })
            .into(),
        ReadInput::Varying(location) => [0, 1f32.to_bits(), env.varying(location, 0)[0]]
            .map(|value| change(move |env| _ = env.varyings.insert(location, [value, 0, 0])))
            .into(),
        ReadInput::Attribute(base, component) => {
            env.attribute(base, component, &mut row);
            [0, 1, row[lane]]
                .map(|value| change(move |env| _ = env.attributes.insert(attribute_key(base, component), vec![value])))
                .into()
        }
        ReadInput::System(system, component) => {
            env.system_value(Launch::of(shader), system, component, &mut row);
            [0, 1, row[lane]]
                .map(|value| change(move |env| _ = env.system.insert(system_key(system, component), vec![value])))
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use ir3_compiler::nir::{Builder, Index};
    use ir3_compiler::pipeline::Options;
    use ir3_compiler::target::Target;

    use super::*;
    use crate::check::{BoundaryVerdict, Checker, Verdict};
    use ir3_programs::generator::{Features, Profile, from_seed};
    use ir3_semantics::environment::Binding;
    use ir3_semantics::environment::aliases::AliasClasses;
    use ir3_semantics::environment::memory::Space;

    /// `ssbo 0 [4 * index] = ssbo 0 [12]`
    fn program() -> Shader {
        let mut b = Builder::new(Stage::Compute);
        let [zero, twelve] = [0, 12].map(|value| b.constant(32, value));
        let index = b.intrinsic(IntrinsicOp::LoadLocalInvocationIndex, 1, 32, &[], []).expect("a result");
        let value = b.intrinsic(IntrinsicOp::LoadSsbo, 1, 32, &[zero, twelve], [Index::AlignMul(4)]).expect("a result");
        b.intrinsic(IntrinsicOp::StoreSsbo, 1, 32, &[value, zero, index], [Index::WriteMask(1), Index::AlignMul(4)]);
        b.finish()
    }

    fn simple(env: &Env, mut same: impl FnMut(&Env) -> bool) -> Env {
        let shader = program();
        let simple = run(env, &shader, &mut same);
        assert!(same(&simple), "{}", simple.to_json());
        // A second run finds nothing.
        assert_eq!(run(&simple, &shader, &mut same), simple);
        simple
    }

    #[test]
    fn nothing_is_left_where_nothing_matters() {
        let mut env = Env::from_seed(77);
        env.memory.insert("ubo 3".to_owned(), [(1, 2)].into());
        env.consts.insert(9, 9);
        let simple = simple(&env, |_| true);
        let system = [("LocalInvocationIndex.0".to_owned(), vec![0])].into();
        assert_eq!(simple, Env { lanes: Some(1), fill: Some(0), system, ..Env::default() });
    }

    #[test]
    fn one_lane_and_one_word() {
        let word = |env: &Env| env.memory_word(Space::Ssbo, Binding::bound(0), 3);
        let simple = simple(&Env::from_seed(5), |env| env.running_lanes() >> 40 & 1 != 0 && word(env) % 2 == 1);
        assert_eq!((simple.lanes, simple.seed, word(&simple)), (Some(1 << 40), 0, 1));
        // Two lanes that the failure needs together.
        let both = |env: &Env| env.running_lanes() & 0x8010 == 0x8010;
        assert_eq!(self::simple(&Env::from_seed(5), both).lanes, Some(0x8010));
    }

    #[test]
    fn buffers_that_need_to_alias_are_a_pair() {
        let of = |env: &Env, index| AliasClasses::of(env).place(Space::Ssbo, Binding::bound(index), 0);
        let alias = |env: &Env| of(env, 2) == of(env, 3);
        let aliasing = |seed| Env { aliases: Some(Aliasing::Classes(2)), ..Env::from_seed(seed) };
        let env = (0..).map(aliasing).find(alias).expect("an environment");
        let simple = simple(&env, |env| alias(env) && env.memory_word(Space::Ssbo, of(env, 2).binding, 3) == 1);
        assert_eq!((simple.aliases, simple.alone.len(), simple.seed), (Some(Aliasing::Pairs(1)), 0, 0));
        assert_eq!(Env::from_json(&simple.to_json()).expect("JSON"), simple);
    }

    #[test]
    fn nothing_aliases_where_that_does_not_matter() {
        let env = Env { alone: [MemoryName::all(Space::Image)].into(), ..Env::from_seed(1) };
        let simple = simple(&env, |_| true);
        assert!(simple.aliasing() == Aliasing::Disjoint && simple.alone.is_empty(), "{}", simple.to_json());
    }

    /// Both interpreters agree on waves in which only some lanes run, and only those lanes count.
    #[test]
    fn waves_of_fewer_lanes() {
        let mut checker = Checker::new(Target::default(), Options::default());
        let masks = [1, 0xf0, 1 << 63, 0x8421_8421_8421_8421];
        for (seed, (profile, mask)) in (0..).zip(Profile::ALL.into_iter().flat_map(|p| masks.map(|mask| (p, mask)))) {
            let shader = from_seed(seed, profile, Features::ALL).shader;
            let env = Env { lanes: Some(mask), fill: (seed % 2 == 0).then_some(0), ..Env::from_seed(seed) };
            let report = checker.program_or_panic(&shader, &[env], None);
            for BoundaryVerdict { stage, verdict, .. } in &report.boundaries {
                let all = u64::from(mask.count_ones());
                let good = match verdict {
                    Verdict::Tested { lanes } => *lanes == all,
                    Verdict::Unknown(_) => report.source.finished == 0,
                    Verdict::Refuted(_) | Verdict::Proved { .. } => false,
                };
                assert!(good, "{profile} {mask:#x} {stage}: {verdict} {:?}", verdict.reason());
            }
        }
    }
}
