//! Pairs of programs that may or may not be equivalent, and the questions that engines answer about them.

use crate::seeds::env_seeds;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;

/// A question to an engine: are these programs equivalent?
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The stage between the programs, if there is one.
    pub stage: Option<Stage>,
    /// The program before.
    pub before: ProgramRef<'a>,
    /// The program after.
    pub after: ProgramRef<'a>,
    /// The GPU.
    pub machine: &'a Target,
    /// The environments, for an engine that needs some.
    pub envs: &'a [Env],
}

/// A pair of programs that engines can be run on.
pub trait Case: Send {
    /// The question that it poses.
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a>;
    /// The environments for engines that need some.
    fn envs(&self) -> Vec<Env>;
}

/// Two programs that may be equivalent.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The family, in a stream of several ([`adversarial`](crate::adversarial)).
    pub family: Option<&'static str>,
    /// The name of the last change.
    pub change: &'static str,
    /// Its number in the stream.
    pub number: u64,
    /// The program whose meaning is to be preserved.
    pub source: Snapshot,
    /// The changed program.
    pub target: Snapshot,
    /// The programs differ by construction, whether or not a run shows it.
    pub differs: bool,
    /// The seed of the environments.
    pub seed: u64,
    /// The number of environments.
    pub runs: u32,
}

impl Case for Pair {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: None, before: (&self.source).into(), after: (&self.target).into(), machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        env_seeds(self.seed, self.runs).into_iter().map(Env::from_seed).collect()
    }
}
