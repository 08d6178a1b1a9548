//! Reduction of the compiler options and the GPU of a failure.
//!
//! - Stages after the failing one are left out, and so is each feature that can be disabled: fewer passes to look at.
//! - The SSA allocator, all registers of the GPU, and no pass of the caller.
//! - An older GPU: one of each generation, the oldest first, in the order of the table of GPUs.
//!
//! A failure that also occurs on an older GPU has a cause that the generations share, and the rest of the reduction
//! uses that GPU.

use ir3_compiler::pipeline::{Allocator, Feature, Options, RegisterLimit, Rotation, Stage};
use ir3_compiler::target::{ALL, Backend, Generation, Target};

use super::{Failure, Oracle};
use ir3_compiler::nir::Shader;

/// The stage of a failure, if it has one.
fn stage_of(failure: &Failure) -> Option<Stage> {
    match failure {
        Failure::Refuted { stage, .. } | Failure::Refused { stage, .. } | Failure::Unsupported { stage, .. } => {
            Some(*stage)
        }
        Failure::Stopped(stopped) => Some(stopped.stage),
        Failure::Panic { .. } => None,
    }
}

/// Simpler options, each with one change.
fn options(now: Options, failure: &Failure, target: &Target) -> Vec<Options> {
    let mut all = Vec::new();
    if let Some(last) = stage_of(failure) {
        all.push(Options { last, ..now });
    }
    all.push(Options { registers: RegisterLimit::Target, ..now });
    all.push(Options { allocator: Allocator::Ssa, ..now });
    all.push(Options { allocator: Allocator::GraphColouring(Rotation::FirstFit), ..now });
    all.push(Options { own_pass: None, ..now });
    // Dropping a required correction causes another failure on the vec4 backend.
    let stays = |feature: &Feature| target.backend == Backend::Vec4 && feature.is_correction();
    all.push(Options { features: now.features.iter().filter(stays).collect(), ..now });
    let removable = now.features.iter().filter(|feature| !stays(feature));
    all.extend(removable.map(|feature| now.without(feature)));
    all.retain(|options| *options != now && (options.allocator == Allocator::Ssa || now.allocator != Allocator::Ssa));
    all
}

/// One GPU of each earlier generation, the oldest first.
fn targets(now: &Target) -> impl Iterator<Item = Target> {
    let generation = now.generation;
    let mut seen: Option<Generation> = None;
    ALL.iter().copied().filter(move |target| {
        target.generation < generation && seen.replace(target.generation) != Some(target.generation)
    })
}

/// Simplifies the options and the GPU of an oracle as long as the program fails in the same way. Returns true if
/// something changed.
pub(super) fn run(oracle: &mut Oracle, shader: &Shader) -> bool {
    let before = (oracle.target(), oracle.options());
    // One change at a time, starting over after each that was taken. No change is taken twice.
    while let Some(simpler) = options(oracle.options(), oracle.failure(), &oracle.target())
        .into_iter()
        .find(|&simpler| oracle.compiles_same(oracle.target(), simpler, shader))
    {
        oracle.set_compilation(oracle.target(), simpler);
    }
    let simpler = targets(&oracle.target()).find(|&target| oracle.compiles_same(target, oracle.options(), shader));
    if let Some(target) = simpler {
        oracle.set_compilation(target, oracle.options());
    }
    before != (oracle.target(), oracle.options())
}
