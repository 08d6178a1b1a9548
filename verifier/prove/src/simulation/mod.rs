//! The simulation proof: shows that a program refines another, for all inputs and without unrolling their loops.
//!
//! Both programs are cut at their entries and at their loop headers, and each segment is executed once on terms
//! ([`symbolic`](crate::symbolic)). If both programs are at the same cut point, with locations that agree as the
//! *relation* there says (`relation`), then both reach the same next cut point, with the same observable effects on the
//! way, and agree there as its relation says. By induction over the cut points that a lane passes, both programs behave
//! the same for ever. As this holds for every lane, and both programs run their waves in the same order
//! (`prove/symbolic/graph.rs`), it holds for cross-lane operations and for memory.
//!
//! - The relation at a header is a partition of the locations of both programs into classes of equal value. It starts
//!   with the values that are equal on the first path to the header. A class is split where a segment makes its members
//!   differ, until nothing splits: the result is the largest relation that the segments preserve (`relation`).
//! - The target's values are *swept* when they are computed: a term that the source does not have is compared, on
//!   samples, with the source's terms; where the solver proves them equal, the source's term takes its place (`sweep`).
//!   So a query covers the difference of a single instruction.
//! - If a loop tests first in one program and last in the other, the first is cut after its test instead (`cuts`).
//! - The rest, at the end, are obligations: path conditions and outputs that must be equal if the source is
//!   defined (`proof`).
//!
//! If no proof is found, nothing follows: the relation may have been too weak. The solver's model of a failed
//! obligation becomes an input (`inputs`); the interpreter decides whether the programs differ on it.

mod cuts;
mod events;
mod failure;
mod header_facts;
mod inputs;
mod layers;
mod loop_exits;
mod meaning;
mod memories;
mod oracle;
mod promises;
mod proof;
mod refinement;
mod relation;
mod scans;
mod state;
mod stores;
mod sweep;
mod undecided;

pub use self::failure::{EventDifference, Observable, Obstacle, SimulationFailure};

use crate::solver::{Budget, Solver};
use crate::symbolic::{Ir3, Nir};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::{ir3, target::Target};
use ir3_semantics::arithmetic::rounding;
use ir3_semantics::assumptions;
use ir3_semantics::header;
use ir3_semantics::interp;
use ir3_semantics::interp::Places;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::vec4;
use std::time::Duration;

/// The limits of a proof.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limit of one query.
    pub query: Budget,
    /// CPU time of a whole proof. The proof gives up shortly before, so that its last query ends in time.
    pub time: Duration,
    /// True if a failed proof searches for inputs.
    pub inputs: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let query = Budget { rlimit: 4_000_000, time: Duration::from_secs(2) };
        Self { query, time: Duration::from_secs(10), inputs: true }
    }
}

impl Limits {
    /// Returns the default limits with at most this much CPU time.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        let Self { query, inputs, .. } = Self::default();
        Self { query: Budget { time: query.time.min(time), ..query }, time, inputs }
    }
}

/// A proof that, for all inputs, the target refines the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The assumptions and lemmas that it uses.
    pub assumptions: Vec<&'static str>,
    /// Number of cut points.
    pub cuts: usize,
    /// Number of iterations until the relation was stable.
    pub iterations: usize,
    /// Number of solver queries.
    pub queries: usize,
    /// Number of observables that were proved equal: path conditions, operands of events, outputs.
    pub obligations: usize,
}

/// Returns true if every value is known to be defined before it is read. (Physical edges of a text do not count if it
/// leaves out any that lanes take.)
fn is_in_order(program: &ir3::Program, machine: &Target) -> bool {
    let blocks = || program.layout.iter().map(|&block| &program.blocks[block]);
    let is_whole =
        |block: &ir3::BlockData| block.successors.iter().flatten().all(|next| block.physical_successors.contains(next));
    let has_physical = blocks().any(|block| !block.physical_successors.is_empty());
    (!has_physical || blocks().all(is_whole)) && validate(program, machine, Form::of(program)).is_ok()
}

/// A decoded program.
enum DecodedProgram {
    Nir(interp::nir::Decoded),
    Ir3(interp::ir3::Decoded, Places),
}

impl DecodedProgram {
    fn new(program: ProgramRef<'_>, machine: &Target) -> Result<Self, interp::Unsupported> {
        Self::with_order_of(program, program, machine)
    }

    /// Decodes a program that has the values of another one, in which their order is checked.
    fn with_order_of(
        program: ProgramRef<'_>,
        other: ProgramRef<'_>,
        machine: &Target,
    ) -> Result<Self, interp::Unsupported> {
        Ok(match program {
            ProgramRef::Nir(shader) => Self::Nir(interp::nir::Decoded::of_target(shader, machine)?),
            ProgramRef::Vec4(program) => Self::Nir(interp::nir::Decoded::of_target(&vec4::lift(program)?, machine)?),
            ProgramRef::Ir3(program) => {
                let (decoded, mut places) = interp::ir3::Decoded::with_places(program, machine)?;
                if !matches!(other, ProgramRef::Ir3(other) if is_in_order(other, machine)) {
                    places.written_first.clear();
                }
                Self::Ir3(decoded, places)
            }
        })
    }
}

/// Proves that `target` refines `source`.
///
/// # Errors
/// The reason why it was not proved.
pub fn prove(
    source: ProgramRef<'_>,
    target: ProgramRef<'_>,
    machine: &Target,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, SimulationFailure> {
    if let Some(difference) = header::difference(source, target)
        && !left_out(Guard::Header)
    {
        return Err(SimulationFailure::not_shown(Obstacle::Header(difference)));
    }
    // Operands that the text does not print may be the same at the same instruction; on terms, any two of equal text
    // would be.
    for program in [source, target] {
        if let ProgramRef::Ir3(program) = program
            && let Some(instr) = header::unprinted(program)
        {
            return Err(SimulationFailure::Unsupported(instr));
        }
    }
    let omitted = header::omitted_declarations(source, target);
    let mut proof = prove_code(source, target, machine, limits, solver)?;
    proof.assumptions.extend(omitted);
    Ok(proof)
}

/// Proves two programs with equal headers.
fn prove_code(
    source: ProgramRef<'_>,
    target: ProgramRef<'_>,
    machine: &Target,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, SimulationFailure> {
    let resolved = match (source, target) {
        (ProgramRef::Nir(source), ProgramRef::Ir3(target)) => Some(rounding::with_rounding_of(source, target)),
        _ => None,
    };
    let quantized = match (source, target) {
        (ProgramRef::Nir(source), ProgramRef::Ir3(target)) => rounding::keeps_half_denormals(source, target),
        _ => false,
    };
    let source = resolved.as_deref().map_or(source, ProgramRef::Nir);
    let scans = scans::of_both(source, target, machine);
    let [source, target] = [(source, &scans[0]), (target, &scans[1])].map(|(program, with_macros)| {
        // A program that is read with macros must be supported without them, too.
        let decoded = DecodedProgram::new(program, machine)?;
        match with_macros {
            Some(read) => DecodedProgram::with_order_of(ProgramRef::Ir3(&read.program), program, machine),
            None => Ok(decoded),
        }
    });
    let (source, target) = (source?, target?);
    let proof = match (&source, &target) {
        (DecodedProgram::Nir(source), DecodedProgram::Nir(target)) => {
            cuts::prove(&Nir::new(source)?, &Nir::new(target)?, false, limits, solver)
        }
        (DecodedProgram::Nir(source), DecodedProgram::Ir3(target, places)) => cuts::prove(
            &Nir::new(source)?.with_driver_words_of(target),
            &Ir3::new(target, places)?,
            true,
            limits,
            solver,
        ),
        (DecodedProgram::Ir3(source, before), DecodedProgram::Ir3(target, after)) => {
            cuts::prove(&Ir3::new(source, before)?, &Ir3::new(target, after)?, false, limits, solver)
        }
        (DecodedProgram::Ir3(..), DecodedProgram::Nir(_)) => {
            Err(SimulationFailure::Unsupported("nir from ir3".to_owned()))
        }
    };
    proof.map(|mut proof| {
        if quantized {
            proof.assumptions.push(assumptions::QUANTIZED);
        }
        for lemma in scans.into_iter().flatten().flat_map(|read| read.lemmas) {
            if !proof.assumptions.contains(&lemma) {
                proof.assumptions.push(lemma);
            }
        }
        proof
    })
}
