//! Pairs of programs that were made to be attacked: they may mean the same, and nobody knows.

use crate::programs::seeds::env_seeds;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;

/// What an engine is asked.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The stage between the programs, if there is one.
    pub stage: Option<Stage>,
    /// The one side.
    pub before: &'a Snapshot,
    /// The other side.
    pub after: &'a Snapshot,
    /// The GPU.
    pub machine: &'a Target,
    /// Inputs, for an engine that needs some.
    pub envs: &'a [Env],
}

/// Something that engines are asked about.
pub trait Case: Send {
    /// What they are asked.
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a>;
    /// The inputs for engines that need some.
    fn envs(&self) -> Vec<Env>;
}

/// Two programs that may mean the same.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The family, in a stream of several ([`adversarial`](crate::programs::adversarial)).
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
