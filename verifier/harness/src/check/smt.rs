//! The SMT engine on two programs.
//!
//! Proofs are cached in a folder, if there is one, by the texts of the two programs. Other verdicts are not cached,
//! since they depend on the limits of the search.

use crate::check::cache::{Cache, VerdictKey};
use crate::check::interpreter::compare_within;
use crate::check::{Execution, NotShown, Unknown, Verdict};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::target::Target;
use ir3_prove::lemmas;
use ir3_prove::simulation;
use ir3_prove::simulation::{Limits, SimulationFailure};
use ir3_prove::solver::smtlib::{QueryFolder, Recording};
use ir3_prove::solver::{Floats, Solver, Z3};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;

/// The number of environments in which both sides are run if there is no proof.
const ATTACKS: u64 = 40;
/// The fuel of each of these runs.
const ATTACK_FUEL: u64 = 10_000;

/// The settings of the engine.
#[derive(Clone, Debug, Default)]
pub struct Smt {
    /// The limits of a proof.
    pub limits: Limits,
    /// The meaning of float operations.
    pub floats: Floats,
    /// The folder for queries.
    pub emit: Option<QueryFolder>,
    /// The folder of cached proofs.
    pub cache: Option<Cache>,
}

impl Smt {
    /// Returns the verdict on two programs. If there is no proof, both sides are run a few times, and on the model of
    /// the solver.
    pub fn compare<'a>(
        &self,
        before: impl Into<ProgramRef<'a>>,
        after: impl Into<ProgramRef<'a>>,
        target: &Target,
    ) -> Verdict {
        let (before, after) = (before.into(), after.into());
        let key = self.cache.as_ref().map(|cache| (cache, self.key(before, after, target)));
        if let Some((cache, key)) = key
            && let Some(names) = cache.get::<Vec<String>>(key)
            && let Some(assumptions) = names.iter().map(|name| lemmas::assumption(name)).collect()
        {
            return Verdict::Proved { assumptions };
        }
        let mut solver: Box<dyn Solver> = match &self.emit {
            None => Box::new(Z3 { floats: self.floats }),
            Some(folder) => Box::new(Recording::new(Z3 { floats: self.floats }, folder, self.floats)),
        };
        let proof = simulation::prove(before, after, target, &self.limits, &mut *solver);
        // The model of the solver comes last: an input that is named by its seed is preferred.
        let mut envs: Vec<Env> = (0..ATTACKS).map(Env::from_seed).collect();
        let unknown = match proof {
            Ok(proof) => {
                if let Some((cache, key)) = key {
                    cache.put(key, &proof.assumptions);
                }
                return Verdict::Proved { assumptions: proof.assumptions };
            }
            Err(SimulationFailure::Unsupported(what)) => Unknown::Unsupported(what.into()),
            Err(failure @ SimulationFailure::Vacuous) => Unknown::Vacuous(failure.to_string()),
            Err(SimulationFailure::NotShown { obstacle, inputs }) => {
                envs.extend(inputs);
                Unknown::NotShown(NotShown::Simulation { obstacle, left_out: Z3::LEFT_OUT })
            }
            Err(SimulationFailure::OutOfTime(obstacle)) => Unknown::OutOfTime(obstacle),
        };
        match compare_within(before, after, target, &envs, ATTACK_FUEL, [Execution::Untimed; 2]).0 {
            Verdict::Refuted(refutation) => Verdict::Refuted(refutation),
            _ => Verdict::Unknown(unknown),
        }
    }

    /// The key of a proof in the cache.
    fn key(&self, before: ProgramRef<'_>, after: ProgramRef<'_>, target: &Target) -> VerdictKey {
        let [before, after] = [before, after].map(|side| Snapshot::from(side).text());
        VerdictKey::of(&[target.name, &format!("{:?}", self.floats), &before, &after])
    }
}
