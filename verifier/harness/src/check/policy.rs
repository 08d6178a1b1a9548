//! The policy of a comparison: the engines, the search for inputs, and the budget.

use super::inputs::{ProgramInputs, any_env};
use super::{EngineKind, Engines};
use ir3_semantics::environment::env::{DEFAULT_FUEL, Env};
use std::time::Duration;

/// CPU time after which no environments are added on a boundary of our compiler.
const STAGE_LIMIT: Duration = Duration::from_millis(50);

/// The search for inputs on which two programs differ. With a search, a boundary is *tested* only if the runs depend on
/// enough of the program.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The inputs of the program; `None` for programs without nir, whose inputs are not known.
    pub inputs: Option<&'a ProgramInputs>,
    /// The number of environments that are compared at first, and that are added at a time.
    pub runs: usize,
    /// The maximum number of environments whose sensitivity is measured.
    pub most_runs: usize,
    /// CPU time after which no environments are added.
    pub limit: Duration,
    /// The fuel (instruction limit) of a run.
    pub fuel: u64,
}

impl<'a> Search<'a> {
    /// No further inputs: only the sensitivity of the runs in the given environments is measured.
    pub const MEASURING: Self = Self { inputs: None, runs: 0, most_runs: 0, limit: Duration::ZERO, fuel: DEFAULT_FUEL };

    /// The search on the boundaries of our compiler. It is short, because most of them are proved.
    pub const fn of_stage(inputs: &'a ProgramInputs) -> Self {
        Self { inputs: Some(inputs), runs: 2, most_runs: 16, limit: STAGE_LIMIT, fuel: DEFAULT_FUEL }
    }

    /// Creates the environment with a number.
    pub(crate) fn env(&self, number: usize) -> Env {
        let env = self.inputs.map_or_else(|| Env::from_seed(number as u64), |inputs| inputs.env(number));
        Env { fuel: Some(self.fuel), ..env }
    }

    /// Creates the environment with a number, for a comparison without measuring the sensitivity. `best` is the
    /// environment that reached most of the program so far.
    pub(super) fn comparison(&self, number: usize, best: Option<&Env>) -> Env {
        let env = self.inputs.map_or_else(|| any_env(number), |inputs| inputs.comparison(number, best));
        Env { fuel: Some(self.fuel), ..env }
    }
}

/// The parameters of a [`Judge`](super::Judge): the engines, the inputs and the budget.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// The engines that run.
    pub engines: &'a Engines,
    /// The search for further inputs, if any.
    pub search: Option<Search<'a>>,
    /// True if proved boundaries are run too, to detect wrong proofs.
    pub runs_proved: bool,
    /// The fuel of runs of the program before, in environments that do not set it.
    pub fuel: u64,
    /// The limit on the CPU time of a proof, independent of the engines' own.
    pub most_proof_time: Duration,
}

impl<'a> Policy<'a> {
    /// Creates a policy that runs the engines in the given environments only.
    pub const fn new(engines: &'a Engines) -> Self {
        Self { engines, search: None, runs_proved: false, fuel: DEFAULT_FUEL, most_proof_time: Duration::MAX }
    }

    /// Returns the policy with a search for further inputs.
    #[must_use]
    pub fn with_search(self, search: Search<'a>) -> Self {
        Self { search: Some(search), ..self }
    }

    /// Returns true if boundaries that no prover decides are run.
    pub fn runs(&self) -> bool {
        self.engines.has(EngineKind::Interpreter)
    }
}
