//! Counts of verdicts, their times and reasons.

use crate::check::Verdict;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The verdicts of an engine on several questions.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Proved for all inputs.
    pub proved: u64,
    /// Run without a difference.
    pub tested: u64,
    /// Refuted.
    pub refuted: u64,
    /// Neither proved nor refuted.
    pub unknown: u64,
    /// CPU time of each answer.
    pub times: Vec<Duration>,
    /// The kinds of reasons of unknown verdicts, with their counts.
    pub reasons: BTreeMap<Cow<'static, str>, u64>,
}

impl Tally {
    /// Counts an answer.
    pub fn count(&mut self, verdict: &Verdict, time: Duration) {
        match verdict {
            Verdict::Proved { .. } => self.proved += 1,
            Verdict::Tested { .. } => self.tested += 1,
            Verdict::Refuted(_) => self.refuted += 1,
            Verdict::Unknown(why) => {
                self.unknown += 1;
                *self.reasons.entry(why.kind()).or_default() += 1;
            }
        }
        self.times.push(time);
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.proved += other.proved;
        self.tested += other.tested;
        self.refuted += other.refuted;
        self.unknown += other.unknown;
        self.times.extend(&other.times);
        for (why, n) in &other.reasons {
            *self.reasons.entry(why.clone()).or_default() += n;
        }
    }

    /// The number of questions.
    pub const fn total(&self) -> u64 {
        self.proved + self.tested + self.refuted + self.unknown
    }

    /// The time that `percent` of a hundred answers did not exceed.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        times.get(last * percent / 100).copied().unwrap_or_default()
    }
}
