//! A simpler input for a program that fails.
//!
//! All of an environment comes from its seed. Steps make it plainer, one after the other, as long as the program fails in
//! the same way:
//!
//! - fewer lanes run: one alone, or as few as can be;
//! - buffers and the constant file hold 0 everywhere, or 1, or at least the words that the program touches do;
//! - what a program reads by a name that can be told from its text (system values, attributes, varyings, words of the
//!   constant file) is 0, or 1, or the same in all lanes;
//! - what is said of anything that the program does not read is not said any more;
//! - the seed is 0.
//!
//! What is plainer is a matter of `Plainness`, which every step lowers. What is written down then is what can be
//! looked at; what must be as the seed has it is not written down.

use std::fmt::Display;

use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{InstrData, InterpMode, Intrinsic, IntrinsicOp, Shader, Stage};

use crate::harness::check::DEFAULT_FUEL;
use crate::semantics::environment::env::{CONST_WORDS, Env, Launch, system_value_of};
use crate::semantics::interp;
use crate::semantics::interp::Scratch;
use crate::support::panics::catch;

/// Something that a program reads.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Input {
    System(SystemValue, u32),
    Attribute(u32, u32),
    Varying(u32),
    Const(u32),
    Helpers,
    /// A word of the memory that environments call so.
    Memory(String, u32),
}

/// How much there is to know of an environment, as far as a program is concerned: the less, the plainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Plainness {
    /// Lanes that run.
    lanes: u32,
    /// How far what the program reads is from 0, and what is said beside that.
    values: u32,
    /// Whether the seed is another one than 0.
    seed: bool,
}

/// Words of memory that are looked at one by one, if they are no more.
const MEMORY_WORDS: usize = 16;

/// Makes an environment simpler as long as `same` says that the program fails in the same way.
pub fn run(env: &Env, shader: &Shader, same: &mut dyn FnMut(&Env) -> bool) -> Env {
    let reads = reads_memory(shader);
    let mut search = Search { inputs: inputs(shader), reads, shader, best: env.clone(), same };
    if reads {
        search.inputs.extend(touched(env, shader));
    }
    while search.round() {}
    search.best
}

struct Search<'a> {
    inputs: Vec<Input>,
    /// Whether the program reads memory.
    reads: bool,
    shader: &'a Shader,
    best: Env,
    same: &'a mut dyn FnMut(&Env) -> bool,
}

impl Search<'_> {
    /// Takes a change if it makes the environment plainer and the program still fails.
    fn attempt(&mut self, change: impl FnOnce(&mut Env)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        let taken = self.plainness(&candidate) < self.plainness(&self.best) && (self.same)(&candidate);
        if taken {
            self.best = candidate;
        }
        taken
    }

    /// Tries everything once. Says whether anything was taken.
    fn round(&mut self) -> bool {
        let mut any = self.lanes();
        any |= [Some(0), Some(1), None].into_iter().any(|fill| self.attempt(|env| env.fill = fill));
        for input in self.inputs.clone() {
            let changes = plainer(&self.best, self.shader, &input);
            any |= changes.into_iter().any(|change| self.attempt(change));
        }
        any |= self.unread();
        any | self.attempt(|env| env.seed = 0)
    }

    /// Fewer lanes: the first that fails alone, or else halves, quarters, … of them go.
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
            // The last ones first, so that the first ones are left.
            for at in (0..64 / size).rev() {
                let group = (u64::MAX >> (64 - size)) << (at * size);
                let left = self.best.running_lanes() & !group;
                any |= left != 0 && self.attempt(|env| env.lanes = Some(left));
            }
        }
        any
    }

    /// What is said of things that the program does not read is not said any more.
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
            any |= self.attempt(|env| _ = env.memory.remove(name));
            for word in words.keys() {
                any |= self.attempt(|env| _ = env.memory.get_mut(name).and_then(|words| words.remove(word)));
            }
        }
        any |= self.attempt(|env| env.helpers = None);
        any
    }

    fn plainness(&self, env: &Env) -> Plainness {
        let said = env.consts.len() + env.varyings.len() + env.attributes.len() + env.system.len();
        let said = said + env.memory.values().map(|words| words.len().max(1)).sum::<usize>();
        let fill = if self.reads { far(env.fill) } else { u32::from(env.fill.is_some()) };
        let mut values = said as u32 + u32::from(env.helpers.is_some()) + fill;
        values += self.inputs.iter().map(|input| 8 * distance(env, input)).sum::<u32>();
        Plainness { lanes: env.running_lanes().count_ones(), values, seed: env.seed != 0 }
    }
}

/// How far a word that is the same everywhere is from 0; one that is not is further.
fn far(word: Option<u32>) -> u32 {
    match word {
        Some(0) => 0,
        Some(1 | 0x3f80_0000) => 1,
        Some(_) => 2,
        None => 3,
    }
}

/// How far an input is from 0 in all lanes.
fn distance(env: &Env, input: &Input) -> u32 {
    let row = |row: Option<&Vec<u32>>| match row.map(Vec::as_slice) {
        Some([word]) => far(Some(*word)),
        _ => far(None),
    };
    match input {
        Input::System(value, component) => row(env.system.get(&system_key(*value, *component))),
        Input::Attribute(base, component) => row(env.attributes.get(&attribute_key(*base, *component))),
        Input::Varying(location) => match env.varyings.get(location) {
            Some([word, 0, 0]) => far(Some(*word)),
            _ => far(None),
        },
        Input::Const(word) => far(env.consts.get(word).copied().or(env.fill)),
        Input::Memory(name, word) => far(env.memory.get(name).and_then(|words| words.get(word)).copied().or(env.fill)),
        Input::Helpers => far(env.helpers.map(|mask| if mask == 0 { 0 } else { 2 })),
    }
}

fn system_key(value: SystemValue, component: u32) -> String {
    format!("{value:?}.{component}")
}

fn attribute_key(base: u32, component: u32) -> String {
    format!("{base}.{component}")
}

/// Whether a program reads buffers, constants or other memory.
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

/// The words of memory that a run of the program touches, if they are few.
fn touched(env: &Env, shader: &Shader) -> Vec<Input> {
    let run = || {
        let mut scratch = Scratch::default();
        interp::nir::Decoded::new(shader).ok()?.run(env, DEFAULT_FUEL, &mut scratch);
        Some(scratch.memory.touched())
    };
    let touched = catch(run).ok().flatten().unwrap_or_default();
    if touched.len() > MEMORY_WORDS {
        return Vec::new();
    }
    let name = |space: &str, binding: &dyn Display| format!("{space} {binding}");
    touched.into_iter().map(|(space, binding, word)| Input::Memory(name(space.name(), &binding), word)).collect()
}

/// What a program reads by name, in the order of the text.
fn inputs(shader: &Shader) -> Vec<Input> {
    let function = &shader.entry;
    let mut inputs = Vec::new();
    if shader.stage == Stage::Fragment {
        inputs.push(Input::Helpers);
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
                    inputs.extend((0..words).map(|i| Input::Const(base.wrapping_add(offset + i) % CONST_WORDS)));
                }
            }
            IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput => {
                let Some(location) = offset.map(|offset| base.wrapping_add(offset)) else { continue };
                inputs.extend((first..first + components).map(|c| match shader.stage {
                    Stage::Fragment => Input::Varying(location.wrapping_mul(4).wrapping_add(c)),
                    _ => Input::Attribute(location.wrapping_add(c / 4), c % 4),
                }));
            }
            op => {
                if let Some(value) = system_value_of(op).or_else(|| barycentric(intrinsic)) {
                    inputs.extend((0..components).map(|c| Input::System(value, c)));
                }
            }
        }
    }
    let mut once: Vec<Input> = Vec::with_capacity(inputs.len());
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
type Change = Box<dyn FnOnce(&mut Env)>;

/// Changes that make one input plainer, the plainest first.
fn plainer(env: &Env, shader: &Shader, input: &Input) -> Vec<Change> {
    fn change(change: impl FnOnce(&mut Env) + 'static) -> Change {
        Box::new(change)
    }
    // What the first lane that runs has.
    let lane = env.running_lanes().trailing_zeros() as usize;
    let mut row = [0; 64];
    match input.clone() {
        Input::Helpers => vec![change(|env| env.helpers = Some(0))],
        Input::Const(word) => [0, 1].map(|value| change(move |env| _ = env.consts.insert(word, value))).into(),
        Input::Memory(name, word) => [0, 1]
            .map(|value| {
                let name = name.clone();
                change(move |env| _ = env.memory.entry(name).or_default().insert(word, value))
            })
            .into(),
        Input::Varying(location) => [0, 1f32.to_bits(), env.varying(location, 0)[0]]
            .map(|value| change(move |env| _ = env.varyings.insert(location, [value, 0, 0])))
            .into(),
        Input::Attribute(base, component) => {
            env.attribute(base, component, &mut row);
            [0, 1, row[lane]]
                .map(|value| change(move |env| _ = env.attributes.insert(attribute_key(base, component), vec![value])))
                .into()
        }
        Input::System(system, component) => {
            let workgroup_size = shader.info.workgroup_size.unwrap_or([64, 1, 1]);
            let launch = Launch { fragment: shader.stage == Stage::Fragment, workgroup_size, ..Launch::default() };
            env.system_value(launch, system, component, &mut row);
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
    use crate::harness::check::{Checker, Verdict};
    use crate::programs::generator::{Features, Profile, from_seed};
    use crate::semantics::environment::Binding;
    use crate::semantics::environment::memory::Space;

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
        // No step is left.
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
        // Two that need each other.
        let both = |env: &Env| env.running_lanes() & 0x8010 == 0x8010;
        assert_eq!(self::simple(&Env::from_seed(5), both).lanes, Some(0x8010));
    }

    /// Both interpreters agree on waves of which only some lanes run, and only those count.
    #[test]
    fn waves_of_fewer_lanes() {
        let mut checker = Checker::new(Target::default(), Options::default());
        let masks = [1, 0xf0, 1 << 63, 0x8421_8421_8421_8421];
        for (seed, (profile, mask)) in (0..).zip(Profile::ALL.into_iter().flat_map(|p| masks.map(|mask| (p, mask)))) {
            let shader = from_seed(seed, profile, Features::ALL).shader;
            let env = Env { lanes: Some(mask), fill: (seed % 2 == 0).then_some(0), ..Env::from_seed(seed) };
            let report = checker.program_or_panic(&shader, &[env], None);
            for (stage, verdict, _) in &report.boundaries {
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
