//! The CPU time of a proof.
//!
//! It grows with a program from a text, and shrinks after long proofs of the same program that failed: its boundaries
//! have the same values, so the next proof would take as long and fail, and runs decide sooner. After one failure the
//! boundaries that are proved all the same need little of the time of a large program; nir and the final code, which
//! all passes are between, are proved at once or not; after two for one cause little is left. The failures are part of
//! the [`History`](super::History) of a program.

use super::boundary::{Boundary, BoundaryKind, Origin};
use super::policy::Policy;
use super::{Answer, Engines, NotShown, Smt, Unknown, Verdict};
use ir3_compiler::compilation::ProgramRef;
use ir3_prove::simulation::{Limits, Obstacle};
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

/// CPU time of a proof for each instruction: symbolic execution of a large program alone takes longer than the proof of
/// a small one.
const PROOF_TIME_PER_INSTR: Duration = Duration::from_micros(1_500);
/// The default limit on the CPU time of a proof.
const MOST_PROOF_TIME: Duration = Duration::from_secs(4);
/// CPU time from which a proof that fails is long.
const LONG_PROOF: Duration = Duration::from_millis(200);
/// The divisor of the time that a large program adds to a proof, after a long one of the same program that failed.
const DOUBTFUL: u32 = 4;
/// The divisor of the time of a proof of nir and the final code after such a one.
const WHOLE: u32 = 3;
/// The divisor of the time of a proof after two long ones of the same program that failed for the same cause: runs
/// decide.
const HOPELESS: u32 = 8;

/// The causes of long proofs of this program that failed, where they are known: the next boundary has the same values,
/// and hardly other ones.
#[derive(Default)]
pub(super) struct FailedProofs(Vec<Option<Discriminant<Obstacle>>>);

impl FailedProofs {
    /// Adds a proof that failed.
    pub fn add(&mut self, answer: &Answer) {
        let obstacle = match &answer.verdict {
            Verdict::Unknown(Unknown::OutOfTime(obstacle)) => obstacle.as_deref(),
            Verdict::Unknown(Unknown::NotShown(NotShown::Simulation { obstacle, .. })) => Some(&**obstacle),
            _ => return,
        };
        if answer.time >= LONG_PROOF {
            self.0.push(obstacle.map(discriminant));
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if two proofs failed for the same cause.
    fn repeat(&self) -> bool {
        self.0.iter().enumerate().any(|(at, cause)| cause.is_some() && self.0[..at].contains(cause))
    }
}

/// The engines, with more CPU time for proofs about large programs from texts.
pub(super) fn with_proof_time(policy: &Policy<'_>, boundary: &Boundary<'_>, failed: &FailedProofs) -> Engines {
    let engines = policy.engines;
    let instrs = match boundary.origin {
        Origin::Compiled => 0,
        Origin::Printed => u32::try_from(boundary.instructions()).unwrap_or(u32::MAX),
    };
    let of_size = PROOF_TIME_PER_INSTR.saturating_mul(instrs).min(MOST_PROOF_TIME);
    let is_whole = matches!(boundary.before, ProgramRef::Nir(_)) && boundary.kind == BoundaryKind::Final;
    let time = proof_time(engines.smt.limits.time, of_size, is_whole, failed).min(policy.most_proof_time);
    let limits = Limits { inputs: engines.smt.limits.inputs, ..Limits::within(time) };
    Engines { kinds: engines.kinds.clone(), smt: Smt { limits, ..engines.smt.clone() } }
}

/// The time of a proof that has `least` for a small program and `of_size` for one of this size. `is_whole` is true for
/// nir and the final code.
fn proof_time(least: Duration, of_size: Duration, is_whole: bool, failed: &FailedProofs) -> Duration {
    let time = if failed.is_empty() {
        least.max(of_size)
    } else if is_whole {
        least / WHOLE
    } else {
        least.max(of_size / DOUBTFUL)
    };
    if failed.repeat() { (time / HOPELESS).max(least / DOUBTFUL) } else { time }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::EngineKind;

    fn failed(proofs: impl IntoIterator<Item = (Option<Obstacle>, u64)>) -> FailedProofs {
        let mut failed = FailedProofs::default();
        for (obstacle, millis) in proofs {
            failed.add(&Answer {
                engine: EngineKind::Smt,
                verdict: Verdict::Unknown(Unknown::OutOfTime(obstacle.map(Box::new))),
                time: Duration::from_millis(millis),
            });
        }
        failed
    }

    #[test]
    fn two_long_proofs_that_failed_for_one_cause_repeat() {
        let other = || Some(Obstacle::Liberty("a".into()));
        let nesting = || Some(Obstacle::Nesting);
        assert!(!failed([(nesting(), 300), (other(), 300), (nesting(), 1)]).repeat());
        assert!(failed([(nesting(), 300), (other(), 300), (nesting(), 300)]).repeat());
        // Out of time before anything failed: that is no cause.
        assert!(!failed([(None, 300), (None, 300)]).repeat());
    }

    #[test]
    fn a_proof_has_less_time_after_long_ones_that_failed() {
        let millis = |least, of_size, is_whole, failed: &FailedProofs| {
            let [least, of_size] = [least, of_size].map(Duration::from_millis);
            proof_time(least, of_size, is_whole, failed).as_millis()
        };
        let none = failed([(Some(Obstacle::Nesting), 1)]);
        assert_eq!([millis(300, 4000, false, &none), millis(300, 4000, true, &none)], [4000, 4000]);
        let once = failed([(None, 300)]);
        assert_eq!([millis(300, 4000, false, &once), millis(300, 400, false, &once)], [1000, 300]);
        assert_eq!(millis(300, 4000, true, &once), 100);
        let twice = failed([(Some(Obstacle::Nesting), 300), (Some(Obstacle::Nesting), 300)]);
        assert_eq!([millis(300, 4000, false, &twice), millis(300, 400, false, &twice)], [125, 75]);
    }
}
