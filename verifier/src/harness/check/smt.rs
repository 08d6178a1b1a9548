//! The engine of terms and a solver, on two programs.
//!
//! A proof is kept in a folder, if there is one, by the texts of the two programs: it says the same tomorrow. Anything else is found
//! anew, since it depends on how long one tries.

use crate::harness::check::{Unknown, Verdict, compare_snapshots};
use crate::prove::lemmas;
use crate::prove::simulation;
use crate::prove::simulation::{Failure, Limits};
use crate::prove::solver::cache::{Cache, Key};
use crate::prove::solver::smtlib::Recording;
use crate::prove::solver::{Floats, Solver, Z3};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use ir3_compiler::target::Target;
use std::io;
use std::path::{Path, PathBuf};

/// Environments that both sides are run in where there is no proof.
const ATTACKS: u64 = 40;

/// How programs are compared.
#[derive(Clone, Debug, Default)]
pub struct Smt {
    /// How hard to try.
    pub limits: Limits,
    /// What float operations mean.
    pub floats: Floats,
    /// The folder that queries are written to.
    pub emit: Option<PathBuf>,
    /// The folder of proofs.
    pub cache: Option<Cache>,
}

impl Smt {
    /// The verdict on two programs. Where there is no proof both sides are run a few times, and on what the solver thinks to be a difference.
    pub fn compare(&self, before: &Snapshot, after: &Snapshot, target: &Target) -> Verdict {
        let key = self.cache.as_ref().map(|cache| (cache, self.key(before, after, target)));
        if let Some((cache, key)) = key
            && let Some(names) = cache.get::<Vec<String>>(key)
            && let Some(assumptions) = names.iter().map(|name| lemmas::assumption(name)).collect()
        {
            return Verdict::Proved { assumptions };
        }
        let mut solver: Box<dyn Solver> = match &self.emit {
            None => Box::new(Z3 { floats: self.floats }),
            Some(folder) => match Recording::new(Z3 { floats: self.floats }, folder, self.floats) {
                Ok(recording) => Box::new(recording),
                Err(error) => return Verdict::Unknown(Unknown::Unsupported(failed("make", folder, &error))),
            },
        };
        let proof = simulation::prove(before.into(), after.into(), target, &self.limits, &mut *solver);
        // What the solver makes of it comes last: an input that is named by its seed is the better one.
        let mut envs: Vec<Env> = (0..ATTACKS).map(Env::from_seed).collect();
        let unknown = match proof {
            Ok(proof) => {
                if let Some((cache, key)) = key {
                    cache.put(key, &proof.assumptions);
                }
                return Verdict::Proved { assumptions: proof.assumptions };
            }
            Err(Failure::Unsupported(what)) => Unknown::Unsupported(what),
            Err(failure @ Failure::Vacuous) => Unknown::Vacuous(failure.to_string()),
            Err(Failure::NotShown { what, inputs }) => {
                envs.extend(inputs);
                Unknown::NotShown(what)
            }
            Err(failure) => Unknown::NotShown(failure.to_string()),
        };
        match compare_snapshots(before, after, target, &envs).0 {
            Verdict::Refuted(refutation) => Verdict::Refuted(refutation),
            _ => Verdict::Unknown(unknown),
        }
    }

    /// What a proof is about.
    fn key(&self, before: &Snapshot, after: &Snapshot, target: &Target) -> Key {
        Key::of(&[target.name, &format!("{:?}", self.floats), &before.text(), &after.text()])
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
