//! Pairs of programs that were made to be attacked: they may mean the same, and nobody knows.

use super::Snapshot;
use super::campaign::env_seeds;
use super::judge::{Case, Question};
use crate::semantics::env::Env;
use ir3_compiler::target::Target;

/// Two programs that may mean the same.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The family, in a stream of several ([`adversarial`](crate::adversarial)).
    pub family: Option<&'static str>,
    /// The last change that was made.
    pub change: &'static str,
    /// Its number in the stream.
    pub number: u64,
    /// What is to be preserved.
    pub source: Snapshot,
    /// What may do the same.
    pub target: Snapshot,
    /// The programs differ, whether a run shows it or not.
    pub differs: bool,
    /// The seed of its environments.
    pub seed: u64,
    /// How many these are.
    pub runs: u32,
}

impl Case for Pair {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: None, before: &self.source, after: &self.target, machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        env_seeds(self.seed, self.runs).into_iter().map(Env::from_seed).collect()
    }
}
