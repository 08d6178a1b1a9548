//! A simpler input for a program that fails.
//!
//! All of an environment comes from its seed. What a program reads by a name that can be told from its text (system
//! values, attributes, varyings, words of the constant file) is set to something plainer, one after the other: 0
//! everywhere, 1 everywhere, or in all lanes what the first one has. What is written down then is what can be looked at;
//! what must be as the seed has it is not written down.

use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{InstrData, InterpMode, Intrinsic, IntrinsicOp, Shader, Stage};

use crate::semantics::env::{CONST_WORDS, Env, Launch, system_value_of};

/// Something that a program reads.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Input {
    System(SystemValue, u32),
    Attribute(u32, u32),
    Varying(u32),
    Const(u32),
    Helpers,
}

/// Makes an environment simpler as long as `same` says that the program fails in the same way.
pub fn run(env: &Env, shader: &Shader, same: &mut dyn FnMut(&Env) -> bool) -> Env {
    let mut best = env.clone();
    for plainer in without_overrides(env) {
        let candidate = plainer(&best);
        if candidate != best && same(&candidate) {
            best = candidate;
        }
    }
    for input in inputs(shader) {
        for candidate in plainer(&best, shader, &input) {
            if candidate != best && same(&candidate) {
                best = candidate;
                break;
            }
        }
    }
    best
}

type Change = Box<dyn Fn(&Env) -> Env>;

/// Takes out what the environment has been given beside its seed, all of it, then one by one.
fn without_overrides(env: &Env) -> Vec<Change> {
    let mut changes: Vec<Change> = vec![Box::new(|env: &Env| Env::from_seed(env.seed))];
    let (attributes, system, memory) = (env.attributes.clone(), env.system.clone(), env.memory.clone());
    for &key in env.consts.keys() {
        changes.push(edit(move |env| _ = env.consts.remove(&key)));
    }
    for &key in env.varyings.keys() {
        changes.push(edit(move |env| _ = env.varyings.remove(&key)));
    }
    for key in attributes.into_keys() {
        changes.push(edit(move |env| _ = env.attributes.remove(&key)));
    }
    for key in system.into_keys() {
        changes.push(edit(move |env| _ = env.system.remove(&key)));
    }
    for key in memory.into_keys() {
        changes.push(edit(move |env| _ = env.memory.remove(&key)));
    }
    changes
}

fn edit(change: impl Fn(&mut Env) + 'static) -> Change {
    Box::new(move |env| {
        let mut env = env.clone();
        change(&mut env);
        env
    })
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

/// Environments that are plainer in one input, the plainest first.
fn plainer(env: &Env, shader: &Shader, input: &Input) -> Vec<Env> {
    let with = |change: &dyn Fn(&mut Env)| {
        let mut env = env.clone();
        change(&mut env);
        env
    };
    let rows = |first: u32| [vec![0], vec![1], vec![first]];
    match input {
        Input::Helpers => vec![with(&|env| env.helpers = Some(0))],
        Input::Const(word) => {
            [0, 1].into_iter().map(|value| with(&|env| _ = env.consts.insert(*word, value))).collect()
        }
        Input::Varying(location) => {
            let flat = [env.varying(*location)[0], 0, 0];
            let choices = [[0; 3], [1f32.to_bits(), 0, 0], flat];
            choices.into_iter().map(|planes| with(&|env| _ = env.varyings.insert(*location, planes))).collect()
        }
        Input::Attribute(base, component) => {
            let mut row = [0; 64];
            env.attribute(*base, *component, &mut row);
            let key = format!("{base}.{component}");
            let set = |row: Vec<u32>| with(&|env| _ = env.attributes.insert(key.clone(), row.clone()));
            rows(row[0]).into_iter().map(set).collect()
        }
        Input::System(value, component) => {
            let mut row = [0; 64];
            let workgroup_size = shader.info.workgroup_size.unwrap_or([64, 1, 1]);
            let launch = Launch { fragment: shader.stage == Stage::Fragment, workgroup_size };
            env.system_value(launch, *value, *component, &mut row);
            let key = format!("{value:?}.{component}");
            let set = |row: Vec<u32>| with(&|env| _ = env.system.insert(key.clone(), row.clone()));
            rows(row[0]).into_iter().map(set).collect()
        }
    }
}
