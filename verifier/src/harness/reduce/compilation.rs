//! A plainer way to compile a program that fails.
//!
//! - No stage behind the one that fails, and none of the features that can be left out and need not be there: fewer
//!   passes to look at.
//! - All registers that the GPU has.
//! - An older GPU: one of each generation, the oldest first, as the table of GPUs has them.
//!
//! What fails in the same way on an older GPU fails for a reason that newer ones have in common with it, and the rest of
//! the reduction goes on there.

use ir3_compiler::features::Features;
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::{ALL, Generation, Target};

use super::{Failure, Oracle};
use ir3_compiler::nir::Shader;

/// The stage at which a failure is seen, where it has one.
fn stage_of(failure: &Failure) -> Option<Stage> {
    match failure {
        Failure::Refuted { stage, .. } | Failure::Refused { stage, .. } | Failure::Unsupported { stage, .. } => {
            Some(*stage)
        }
        Failure::Panic { .. } => None,
    }
}

/// Plainer options, each different in one thing.
fn options(now: Options, failure: &Failure) -> Vec<Options> {
    let mut all = Vec::new();
    if let Some(last) = stage_of(failure) {
        all.push(Options { last, ..now });
    }
    all.push(Options { registers: RegisterLimit::Target, ..now });
    all.push(Options { features: Features::empty(), ..now });
    all.extend(now.features.iter().map(|feature| now.without(feature)));
    all.retain(|options| *options != now);
    all
}

/// One GPU of each generation before this one's, the oldest first.
fn targets(now: &Target) -> impl Iterator<Item = Target> {
    let generation = now.generation;
    let mut seen: Option<Generation> = None;
    ALL.iter().copied().filter(move |target| {
        target.generation < generation && seen.replace(target.generation) != Some(target.generation)
    })
}

/// Makes the options and the GPU of an oracle plainer as long as the program fails in the same way. Says whether that
/// changed anything.
pub(super) fn run(oracle: &mut Oracle, shader: &Shader) -> bool {
    let before = (oracle.target(), oracle.options());
    // One thing at a time, again from the first after each that was taken; each is taken once at most.
    while let Some(plainer) = options(oracle.options(), oracle.failure())
        .into_iter()
        .find(|&plainer| oracle.compiles_same(oracle.target(), plainer, shader))
    {
        oracle.set_compilation(oracle.target(), plainer);
    }
    let plainer = targets(&oracle.target()).find(|&target| oracle.compiles_same(target, oracle.options(), shader));
    if let Some(target) = plainer {
        oracle.set_compilation(target, oracle.options());
    }
    before != (oracle.target(), oracle.options())
}
