//! The CPU time of a proof.
//!
//! It grows with a program from a text, and shrinks after two long proofs of one compilation that failed for the same
//! cause: the boundaries of a program have the same values, so a third proof would take as long and fail, and runs
//! decide sooner.

use super::boundary::{Boundary, Origin};
use super::policy::Policy;
use super::{Answer, Engines, NotShown, Smt, Unknown, Verdict};
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
/// The divisor of the time of a proof after two long ones of the same program that failed for the same cause: runs
/// decide.
const HOPELESS: u32 = 8;

/// The causes of long proofs of this program that failed: the next boundary has the same values, and hardly other ones.
#[derive(Default)]
pub(super) struct FailedProofs(Vec<Discriminant<Obstacle>>);

impl FailedProofs {
    /// Adds a proof that failed.
    pub fn add(&mut self, answer: &Answer) {
        let obstacle = match &answer.verdict {
            Verdict::Unknown(Unknown::OutOfTime(Some(obstacle))) => &**obstacle,
            Verdict::Unknown(Unknown::NotShown(NotShown::Simulation { obstacle, .. })) => obstacle,
            _ => return,
        };
        if answer.time >= LONG_PROOF {
            self.0.push(discriminant(obstacle));
        }
    }

    /// Returns true if two proofs failed for the same cause.
    fn repeat(&self) -> bool {
        self.0.iter().enumerate().any(|(at, cause)| self.0[..at].contains(cause))
    }
}

/// The engines, with more CPU time for proofs about large programs from texts.
pub(super) fn with_proof_time(policy: &Policy<'_>, boundary: &Boundary<'_>, failed: &FailedProofs) -> Engines {
    let engines = policy.engines;
    let instrs = match boundary.origin {
        Origin::Compiled => 0,
        Origin::Printed => u32::try_from(boundary.instructions()).unwrap_or(u32::MAX),
    };
    let time = PROOF_TIME_PER_INSTR
        .saturating_mul(instrs)
        .min(MOST_PROOF_TIME)
        .max(engines.smt.limits.time)
        .min(policy.most_proof_time);
    let time = if failed.repeat() { time / HOPELESS } else { time };
    let limits = Limits { inputs: engines.smt.limits.inputs, ..Limits::within(time) };
    Engines { kinds: engines.kinds.clone(), smt: Smt { limits, ..engines.smt.clone() } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::EngineKind;

    #[test]
    fn two_long_proofs_that_failed_for_one_cause_repeat() {
        let answer = |obstacle, millis| Answer {
            engine: EngineKind::Smt,
            verdict: Verdict::Unknown(Unknown::OutOfTime(Some(Box::new(obstacle)))),
            time: Duration::from_millis(millis),
        };
        let mut failed = FailedProofs::default();
        failed.add(&answer(Obstacle::Nesting, 300));
        failed.add(&answer(Obstacle::Liberty("a".into()), 300));
        failed.add(&answer(Obstacle::Nesting, 1));
        assert!(!failed.repeat());
        failed.add(&answer(Obstacle::Nesting, 300));
        assert!(failed.repeat());
    }
}
