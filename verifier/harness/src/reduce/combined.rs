//! Reduces a program, its environment and the compiler options together.
//!
//! A simpler environment can make more of a program redundant (a value that only loads zeros can be zero), and so can a
//! compiler with fewer passes. So the three reductions alternate until nothing changes.

use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline;
use ir3_compiler::target::Target;

use super::checkpoint::CheckpointError;
use super::engine::{Options, Progress, Reduced, run_parallel};
use super::{Oracle, compilation, environment};
use ir3_semantics::environment::env::Env;

/// The result of the combined reduction.
#[derive(Clone, Debug)]
pub struct CombinedReduction {
    /// The reduced program.
    pub reduced: Reduced,
    /// The environment on which it fails, if the failure needs one.
    pub env: Option<Env>,
    /// The GPU on which it fails.
    pub target: Target,
    /// The compiler options with which it fails.
    pub options: pipeline::Options,
}

/// The greatest number of iterations: a small multiple of the most that were ever needed.
const ITERATIONS: u32 = 32;

/// Reduces a program with the failure of `oracle`, the environment, the options and the GPU, with `jobs` threads.
/// `oracle` has the reduced ones afterwards.
///
/// # Errors
/// If the checkpoint cannot be read or written.
pub fn run(
    shader: &Shader,
    oracle: &mut Oracle,
    jobs: usize,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<CombinedReduction, CheckpointError> {
    let mut options = options.clone();
    let mut iterations = 0;
    let mut best: Option<Reduced> = None;
    loop {
        let mut oracles: Vec<Oracle> = (0..jobs.max(1)).map(|_| oracle.fork()).collect();
        let mut same: Vec<_> = oracles.iter_mut().map(|oracle| |shader: &Shader| oracle.same(shader)).collect();
        let start = best.as_ref().map_or(shader, |best| &best.program);
        let before = best.as_ref().map(|best| best.progress.clone());
        let add = |new: &Progress| match &before {
            None => new.clone(),
            Some(old) => {
                Progress { candidates: old.candidates + new.candidates, taken: old.taken + new.taken, ..new.clone() }
            }
        };
        let mut reduced = run_parallel(start, &mut same, &options, &mut |new| progress(&add(new)))?;
        reduced.progress = add(&reduced.progress);
        iterations += 1;
        let goes_on = reduced.reproduced && reduced.minimal && iterations < ITERATIONS;
        let shader = reduced.program.clone();
        best = Some(reduced);
        // The checkpoint belongs to the original program only.
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
            return Ok(CombinedReduction { reduced, env, target, options });
        }
    }
}
