//! Shows that two programs do the same, for all inputs and with their loops as they are.
//!
//! Both are cut at their entries and at the headers of their loops, and each segment is run once on terms
//! ([`symbolic`](crate::prove::symbolic)). The proof is a simulation: if both programs are at the same cut point, with locations that
//! agree as the *relation* there says (`relation`), then both go on to the same next cut point, do the same on the way to what can
//! be seen, and agree there as the relation says. By induction over the cut points that a lane passes, both programs
//! do the same for ever; and as it holds for every lane, and both programs run their waves in the same order
//! ([`symbolic::graph`](crate::prove::symbolic::graph)), it holds for operations across lanes and for memory.
//!
//! - The relation at a header is a partition of the locations of both programs into classes that hold the same value. It begins with all that
//!   is equal on the first way in, and a class is split where a segment makes its members differ, until nothing splits: the
//!   largest relation that the segments keep (`relation`).
//! - What the target computes is *swept* at once: a term that the source does not have is compared, on samples, with those that it has,
//!   and where the solver shows that they are equal the source's term takes its place (`sweep`). So a query holds one
//!   instruction's difference.
//! - Where a loop tests first in one program and last in the other, the iterations of one begin elsewhere: then the first is cut in front of what
//!   follows the test (`cuts`).
//! - What is left, at the end, are obligations: paths and outputs that must be equal wherever the source has a meaning (`proof`).
//!
//! A proof that fails says nothing: the relation may have been too weak. The solver's values for what did not hold become inputs
//! (`inputs`); whether the programs differ there is for the interpreter to say.

mod behind;
mod cuts;
mod engine;
mod events;
mod inputs;
mod layers;
mod meaning;
mod memories;
#[cfg(test)]
mod memory_tests;
mod proof;
mod relation;
mod sweep;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod undefined_tests;

use crate::prove::solver::{Budget, Solver};
use crate::prove::symbolic::{Ir3, Nir, Unsupported};
use crate::semantics::arithmetic::rounding;
use crate::semantics::environment::env::Env;
use crate::semantics::header;
use crate::semantics::interp;
use crate::semantics::interp::Places;
use crate::support::guards::{Guard, left_out};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::{ir3, target::Target};
use std::time::Duration;

/// How hard to try.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of one query.
    pub query: Budget,
    /// CPU time of a whole proof: it is given up shortly before, so that what it has begun ends in time.
    pub time: Duration,
    /// Whether inputs are looked for where there is none.
    pub inputs: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let query = Budget { rlimit: 4_000_000, time: Duration::from_secs(2) };
        Self { query, time: Duration::from_secs(10), inputs: true }
    }
}

impl Limits {
    /// No more than so much CPU time.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        let Self { query, inputs, .. } = Self::default();
        Self { query: Budget { time: query.time.min(time), ..query }, time, inputs }
    }
}

/// What was shown: for all inputs, the target does what the source does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// What was taken for granted.
    pub assumptions: Vec<&'static str>,
    /// Cut points.
    pub cuts: usize,
    /// How often the segments were run until the relation held.
    pub rounds: usize,
    /// Questions that were put to the solver.
    pub queries: usize,
    /// What had to be shown of observables: paths, operands of events, outputs.
    pub obligations: usize,
}

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Something is not followed.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Something observable could not be shown to be equal.
    #[error("{what}")]
    NotShown {
        /// What.
        what: String,
        /// Inputs on which it may be different.
        inputs: Vec<Env>,
    },
    /// The source has no meaning, so there is nothing to be shown.
    #[error("the source has no meaning on any input")]
    Vacuous,
    /// The limit of time.
    #[error("the limit of time was reached{0}")]
    Time(String),
}

impl Failure {
    /// Something could not be shown, and no input is known on which it would be different.
    fn not_shown(what: impl Into<String>) -> Self {
        Self::NotShown { what: what.into(), inputs: Vec::new() }
    }
}

impl From<Unsupported> for Failure {
    fn from(unsupported: Unsupported) -> Self {
        Self::Unsupported(unsupported.0)
    }
}

impl From<interp::Unsupported> for Failure {
    fn from(unsupported: interp::Unsupported) -> Self {
        Self::Unsupported(unsupported.to_string())
    }
}

/// Returns true if it is known that each value is defined before it is read. (Physical edges of a text are no reason if it leaves out any that
/// lanes take.)
fn is_in_order(program: &ir3::Program, machine: &Target) -> bool {
    let blocks = || program.layout.iter().map(|&block| &program.blocks[block]);
    let is_whole =
        |block: &ir3::BlockData| block.successors.iter().flatten().all(|next| block.physical_successors.contains(next));
    let has_physical = blocks().any(|block| !block.physical_successors.is_empty());
    (!has_physical || blocks().all(is_whole)) && validate(program, machine, Form::of(program)).is_ok()
}

/// A program, decoded.
enum Decoded {
    Nir(interp::nir::Decoded),
    Ir3(interp::ir3::Decoded, Places),
}

impl Decoded {
    fn new(program: ProgramRef<'_>, machine: &Target) -> Result<Self, interp::Unsupported> {
        Ok(match program {
            ProgramRef::Nir(shader) => Self::Nir(interp::nir::Decoded::new(shader)?),
            ProgramRef::Ir3(program) => {
                let (decoded, mut places) = interp::ir3::Decoded::with_places(program, machine)?;
                if !is_in_order(program, machine) {
                    places.written_first.clear();
                }
                Self::Ir3(decoded, places)
            }
        })
    }
}

/// Shows that `target` does what `source` does.
///
/// # Errors
/// Why it was not shown.
pub fn prove(
    source: ProgramRef<'_>,
    target: ProgramRef<'_>,
    machine: &Target,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, Failure> {
    if let Some(difference) = header::difference(source, target)
        && !left_out(Guard::Header)
    {
        return Err(Failure::not_shown(difference.to_string()));
    }
    // What is not printed may be the same at the same instruction; on terms, any two of equal text would be.
    for program in [source, target] {
        if let ProgramRef::Ir3(program) = program
            && let Some(instr) = header::unprinted(program)
        {
            return Err(Failure::Unsupported(instr));
        }
    }
    let omitted = header::omitted_declarations(source, target);
    let mut proof = prove_code(source, target, machine, limits, solver)?;
    proof.assumptions.extend(omitted);
    Ok(proof)
}

/// The same of two programs whose headers say the same.
fn prove_code(
    source: ProgramRef<'_>,
    target: ProgramRef<'_>,
    machine: &Target,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, Failure> {
    let resolved = match (source, target) {
        (ProgramRef::Nir(source), ProgramRef::Ir3(target)) => Some(rounding::with_rounding_of(source, target)),
        _ => None,
    };
    let source = resolved.as_deref().map_or(source, ProgramRef::Nir);
    let (source, target) = (Decoded::new(source, machine)?, Decoded::new(target, machine)?);
    match (&source, &target) {
        (Decoded::Nir(source), Decoded::Nir(target)) => {
            cuts::prove(&Nir::new(source)?, &Nir::new(target)?, false, limits, solver)
        }
        (Decoded::Nir(source), Decoded::Ir3(target, places)) => {
            cuts::prove(&Nir::new(source)?.beside(target), &Ir3::new(target, places)?, true, limits, solver)
        }
        (Decoded::Ir3(source, before), Decoded::Ir3(target, after)) => {
            cuts::prove(&Ir3::new(source, before)?, &Ir3::new(target, after)?, false, limits, solver)
        }
        (Decoded::Ir3(..), Decoded::Nir(_)) => Err(Failure::Unsupported("nir from ir3".to_owned())),
    }
}
