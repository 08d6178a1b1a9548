//! Reduction of the compiler options and the GPU of a failure.
//!
//! - Stages after the failing one are left out, and so is each feature that can be disabled: fewer passes to look at.
//! - Arms of the failing stage are skipped, and the last applications of one that is needed: the one before these is
//!   wrong.
//! - The SSA allocator, all registers of the GPU, and no pass of the caller.
//! - An older GPU: one of each generation, the oldest first, in the order of the table of GPUs.
//!
//! A failure that also occurs on an older GPU has a cause that the generations share, and the rest of the reduction
//! uses that GPU.

use ir3_compiler::arms::{Arm, ArmKind, Skip};
use ir3_compiler::compilation::Compilation;
use ir3_compiler::pipeline::{Allocator, Features, Options, RegisterLimit, Rotation, Stage};
use ir3_compiler::target::{ALL, Generation, Target};

use super::{Failure, Oracle};
use ir3_compiler::nir::Shader;
use ir3_semantics::support::panics::catch;

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
fn options(now: Options, failure: &Failure, arms: &[(Arm, u32)]) -> Vec<Options> {
    let mut all = Vec::new();
    if let Some(last) = stage_of(failure) {
        all.push(Options { last, ..now });
    }
    all.push(Options { registers: RegisterLimit::Target, ..now });
    all.push(Options { allocator: Allocator::Ssa, ..now });
    all.push(Options { allocator: Allocator::GraphColouring(Rotation::FirstFit), ..now });
    all.push(Options { own_pass: None, ..now });
    all.push(Options { features: Features::empty(), ..now });
    all.extend(now.features.iter().map(|feature| now.without(feature)));
    all.extend(skips(now.skip, arms).map(|skip| Options { skip, ..now }));
    all.retain(|options| *options != now && (options.allocator == Allocator::Ssa || now.allocator != Allocator::Ssa));
    all
}

/// The arms of the failing stage that a compilation counts and can skip, with their counts.
fn counted(oracle: &Oracle, shader: &Shader) -> Vec<(Arm, u32)> {
    let Some(stage) = stage_of(oracle.failure()) else { return Vec::new() };
    let options = oracle.options();
    let mut compilation = Compilation::new(shader, &oracle.target(), &options);
    // The stage may panic.
    let _ = catch(|| while let Some(Ok(_)) = compilation.step() {});
    let is_skippable = |arm: Arm| arm.info().pass == stage.name() && arm.info().kind == ArmKind::Changes;
    compilation.counter().counts().filter(|&(arm, _)| is_skippable(arm)).collect()
}

/// More of the arms: each as a whole, then the last applications of one.
fn skips(now: Skip, arms: &[(Arm, u32)]) -> impl Iterator<Item = Skip> {
    let arms = move || arms.iter().copied().filter(move |&(arm, _)| !now.has(arm));
    let ranges = move |(arm, count)| {
        let firsts: Vec<u32> = match now.range() {
            None => (0..FURTHEST).map(|exponent| 1 << exponent).take_while(|&first| first < count).collect(),
            Some((other, first)) if other == arm => (0..FURTHEST)
                .rev()
                .map(|exponent| 1 << exponent)
                .filter(|&step| step < first)
                .map(|step| first - step)
                .collect(),
            Some(_) => Vec::new(),
        };
        firsts.into_iter().map(move |first| now.and_range(arm, first, u32::MAX))
    };
    arms().map(move |(arm, _)| now.and(arm)).chain(arms().flat_map(ranges))
}

/// The exponent of the number of the first application that is skipped at first, at most.
const FURTHEST: u32 = 12;

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
    let arms = counted(oracle, shader);
    // One change at a time, starting over after each that was taken. No change is taken twice.
    while let Some(simpler) = options(oracle.options(), oracle.failure(), &arms)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The failure needs one application of an arm, and no other arm.
    #[test]
    fn the_last_application_that_is_needed_is_found() {
        for needed in [0, 1, 2, 5, 77, 1000] {
            let fails = |skip: Skip| {
                let runs = |(arm, first)| arm != Arm::FoldTwo || first > needed;
                !skip.has(Arm::FoldTwo) && skip.range().is_none_or(runs)
            };
            let mut now = Skip::default();
            while let Some(next) = skips(now, &[(Arm::FoldTwo, 2000), (Arm::FoldVote, 1)]).find(|&skip| fails(skip)) {
                assert_ne!(next, now);
                now = next;
            }
            assert_eq!(now.to_string(), format!("fold-vote,fold-two:{}..", needed + 1));
        }
    }
}
