//! The policy of a judge: the engines, the search for inputs, the budget.

use super::inputs::{ProgramInputs, any_env};
use super::{EngineKind, Engines};
use ir3_semantics::environment::env::{DEFAULT_FUEL, Env};
use std::time::Duration;

/// CPU time after which no environments are added on a boundary of our compiler.
const STAGE_LIMIT: Duration = Duration::from_millis(50);

/// The search for inputs on which two programs differ. With it a boundary is *tested* only if the runs depend on enough of the program.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The inputs of the program; of programs without nir nothing is known.
    pub inputs: Option<&'a ProgramInputs>,
    /// Environments that are added at a time, and compared at first.
    pub runs: usize,
    /// The most environments that are measured.
    pub most_runs: usize,
    /// CPU time after which no environments are added.
    pub limit: Duration,
    /// The fuel of a run.
    pub fuel: u64,
}

impl<'a> Search<'a> {
    /// No further inputs: only the runs in the given environments are measured.
    pub const MEASURING: Self = Self { inputs: None, runs: 0, most_runs: 0, limit: Duration::ZERO, fuel: DEFAULT_FUEL };

    /// The search on the boundaries of our compiler, of which most are proved.
    pub const fn of_stage(inputs: &'a ProgramInputs) -> Self {
        Self { inputs: Some(inputs), runs: 2, most_runs: 16, limit: STAGE_LIMIT, fuel: DEFAULT_FUEL }
    }

    /// The environment of a number.
    pub(crate) fn env(&self, number: usize) -> Env {
        let env = self.inputs.map_or_else(|| Env::from_seed(number as u64), |inputs| inputs.env(number));
        Env { fuel: Some(self.fuel), ..env }
    }

    /// The environment of a number in which programs are compared only. `best` is the one that reached most so far.
    pub(super) fn comparison(&self, number: usize, best: Option<&Env>) -> Env {
        let env = self.inputs.map_or_else(|| any_env(number), |inputs| inputs.comparison(number, best));
        Env { fuel: Some(self.fuel), ..env }
    }
}

/// The engines, the inputs and the budget of a judge.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// The engines.
    pub engines: &'a Engines,
    /// The search for further inputs.
    pub search: Option<Search<'a>>,
    /// Proved boundaries are run too, so that engines contradict each other where a prover is wrong.
    pub runs_proved: bool,
    /// The fuel of source runs in environments that have none of their own.
    pub fuel: u64,
    /// The limit on the CPU time of a proof, independent of the engines' own.
    pub most_proof_time: Duration,
}

impl<'a> Policy<'a> {
    /// The engines on the environments that are given.
    pub const fn new(engines: &'a Engines) -> Self {
        Self { engines, search: None, runs_proved: false, fuel: DEFAULT_FUEL, most_proof_time: Duration::MAX }
    }

    /// Returns the policy with a search for further inputs.
    #[must_use]
    pub fn with_search(self, search: Search<'a>) -> Self {
        Self { search: Some(search), ..self }
    }

    /// Returns true if boundaries that no prover settles are run.
    pub fn runs(&self) -> bool {
        self.engines.has(EngineKind::Interpreter)
    }
}
