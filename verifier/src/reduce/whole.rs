//! A program and its input together.
//!
//! A plainer input can make more of a program superfluous (what reads only zeros can as well be zero), so both take
//! turns until neither changes.

use ir3_compiler::nir::Shader;

use super::checkpoint::CheckpointError;
use super::engine::{Options, Progress, Reduced, run_parallel};
use super::{Oracle, environment};
use crate::semantics::env::Env;

/// What came out.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The program.
    pub reduced: Reduced,
    /// The input on which it fails, where the failure needs one.
    pub env: Option<Env>,
}

/// Reduces a program that fails as `oracle` knows, and the input on which it does, with `jobs` threads. `oracle` has
/// that input afterwards.
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
        let smaller = best.is_none() || reduced.progress.taken > 0;
        reduced.progress = add(&reduced.progress);
        let goes_on = reduced.reproduced && reduced.minimal && smaller;
        let shader = reduced.shader.clone();
        best = Some(reduced);
        // The checkpoint is about the program that went in first.
        options.checkpoint = None;
        let simpler = match oracle.envs() {
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
        if let Some(reduced) = best.take_if(|_| !simpler) {
            return Ok(Whole { reduced, env: oracle.envs().first().cloned() });
        }
    }
}
