//! A program, its input and how it is compiled, together.
//!
//! A plainer input can make more of a program superfluous (what reads only zeros can as well be zero), and so can a
//! compiler with fewer passes, so they take turns until nothing changes.

use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline;
use ir3_compiler::target::Target;

use super::checkpoint::CheckpointError;
use super::engine::{Options, Progress, Reduced, run_parallel};
use super::{Oracle, compilation, environment};
use crate::semantics::environment::env::Env;

/// What came out.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The program.
    pub reduced: Reduced,
    /// The input on which it fails, where the failure needs one.
    pub env: Option<Env>,
    /// The GPU on which it fails.
    pub target: Target,
    /// What it is compiled with.
    pub options: pipeline::Options,
}

/// Turns that are taken at most: a few times what was ever seen.
const ROUNDS: u32 = 32;

/// Reduces a program that fails as `oracle` knows, the input on which it does, and what it is compiled with and for, with
/// `jobs` threads. `oracle` has all of that afterwards.
///
/// # Errors
/// When the checkpoint cannot be read or written.
pub fn run(
    shader: &Shader,
    oracle: &mut Oracle,
    jobs: usize,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Whole, CheckpointError> {
    let mut options = options.clone();
    let mut rounds = 0;
    let mut best: Option<Reduced> = None;
    loop {
        let mut oracles: Vec<Oracle> = (0..jobs.max(1)).map(|_| oracle.fork()).collect();
        let mut same: Vec<_> = oracles.iter_mut().map(|oracle| |shader: &Shader| oracle.same(shader)).collect();
        let start = best.as_ref().map_or(shader, |best| &best.shader);
        let before = best.as_ref().map(|best| best.progress.clone());
        let add = |new: &Progress| match &before {
            None => new.clone(),
            Some(old) => {
                Progress { candidates: old.candidates + new.candidates, taken: old.taken + new.taken, ..new.clone() }
            }
        };
        let mut reduced = run_parallel(start, &mut same, &options, &mut |new| progress(&add(new)))?;
        reduced.progress = add(&reduced.progress);
        rounds += 1;
        let goes_on = reduced.reproduced && reduced.minimal && rounds < ROUNDS;
        let shader = reduced.shader.clone();
        best = Some(reduced);
        // The checkpoint is about the program that went in first.
        options.checkpoint = None;
        let mut simpler = match oracle.envs() {
            [env] if goes_on => {
                let env = env.clone();
                let simple = environment::run(&env, &shader, &mut |env| {
                    oracle.set_envs(vec![env.clone()]);
                    oracle.same(&shader)
                });
                let changed = simple != env;
                oracle.set_envs(vec![simple]);
                changed
            }
            _ => false,
        };
        if goes_on {
            simpler |= compilation::run(oracle, &shader);
        }
        if let Some(reduced) = best.take_if(|_| !simpler) {
            let (env, target, options) = (oracle.envs().first().cloned(), oracle.target(), oracle.options());
            return Ok(Whole { reduced, env, target, options });
        }
    }
}
