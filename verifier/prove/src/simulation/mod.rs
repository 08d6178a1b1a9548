//! The simulation proof: shows that a program refines another, for all inputs and without unrolling their loops.
//!
//! # The refinement
//!
//! Let `e` be an environment (inputs, memory, textures, launch), and `u` and `v` the undefined words of the source `S`
//! and of the target `T`. `obs` is what a run makes observable: its events (accesses of memory, barriers, subgroup
//! operations, ends of lanes) with their operands, in order; at the end, the versions of all memories except scratch
//! memory, the demoted lanes, and the outputs of lanes that are neither demoted nor helpers. A run is *defined* up to
//! its first branch or kill on an undefined word, or store to an undefined address. The theorem is
//!
//! ```text
//! ∀ e ∀ v ∃ u:  obs(T(e, v))  ⊑  obs(S(e, u))        as far as S(e, u) is defined
//! ```
//!
//! where the bits of `T` equal those of `S` except for bits of `S` that are free (undefined, and independent of all
//! others):
//!
//! ```text
//! t ⊑ (s, free)  ⇔  free = ~0  ∨  (s ⊕ t) ∧ ¬free = 0                                         (`agreement`)
//! ```
//!
//! `u` is a function of `v`, one of four for the whole proof (`UndefinedChoice`): 0, all ones, the word of `v` in the
//! same place, or the other operand of a phi. So `∃ u` costs no query: each choice is an attempt of its own, and any
//! that succeeds is a proof.
//!
//! # The proof
//!
//! Both programs are cut at their entries and at their loop headers, and each segment is executed once on terms
//! ([`symbolic`](crate::symbolic)). For each header `h` there is a relation `R_h`: classes of locations of both
//! programs that have the same value `w_k` (`relation`), with linear functions and bounds of these (`header_facts`).
//! Let `A_i` be the first `i` assumptions of the source in a segment (its conditions and addresses are not undefined),
//! `A` all of them, and `p_S(g)`, `p_T(g)` the conditions under which a lane leaves the segment through exit `g`. For
//! the segment of each cut point `c` that is reached, with `R_c` at its start:
//!
//! ```text
//! ∀ e ∀ v ∀ w:
//!   exits      A   ⇒  p_S(g) = p_T(g)                                          for each exit g        (`compare_exits`)
//!   events     A_i ⇒  the i-th condition and operands of T equal those of the paired event of S    (`events`)
//!   relation   p_S(h) ⇒  the members of each class of R_h are equal            for each header h      (`refine`)
//!   end        p_S(end) ∧ A  ⇒  t ⊑ s     for each output of a lane that is seen, and the demoted lanes
//!              A  ⇒  the versions of the memories are equal                                           (`at_end`)
//! ```
//!
//! By induction over the cut points that a lane passes, both programs are at the same cut points with values in the
//! relations, and make the same events. As this holds for every lane, and both programs run their waves in the same
//! order (`prove/symbolic/graph.rs`), it holds for cross-lane operations and for memory. `A` may be false for all
//! inputs; then everything is proved, so there is one query more:
//!
//! ```text
//! ∃ e ∃ v ∃ w:  a path from the entry to an end on which all assumptions hold                       (`meaning`)
//! ```
//!
//! Without one, the result is *vacuous*; if the solver does not decide it in time, the proof has the assumption
//! `source-defined`. Before the segments are compared, declarations (`header.rs`), outputs, the nesting of loops and
//! what a program may leave to the hardware are.
//!
//! - `R_h` starts with the values that are equal on the first path to the header. A class is split where a segment
//!   makes its members differ, until nothing splits: the result is the largest relation that the segments preserve.
//!   Facts of earlier iterations only guess.
//! - The target's values are *swept* when they are computed: a term that the source does not have is compared, on
//!   samples, with the source's terms; where the solver proves them equal, the source's term takes its place (`sweep`).
//!   So a query covers the difference of a single instruction.
//! - If a loop tests first in one program and last in the other, the first is cut after its test instead (`cuts`).
//! - Operations that lanes execute together are compared under the conditions that select them (`events`, `promises`,
//!   `loop_exits`).
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
mod same_code;
mod scans;
mod state;
mod stores;
mod sweep;
mod undecided;

pub use self::failure::{EventDifference, Observable, Obstacle, SimulationFailure};
pub use self::same_code::same_code;

use crate::solver::{Budget, Session, Solver};
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
use rustc_hash::{FxHashMap, FxHashSet};
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

/// The numbers that the texts of two programs print for their phis, by the number of the value that a phi defines.
/// Values of programs that were read from texts have numbers in the order of each text, so an instruction that only one
/// of them has shifts all that follow. Empty unless all phis have numbers, no two of a program the same, and the source
/// has all numbers of the target.
fn phi_numbers(source: &ir3::Program, target: &ir3::Program) -> [FxHashMap<u32, u32>; 2] {
    let of_phis = |program: &ir3::Program| -> Option<FxHashMap<u32, u32>> {
        let phis = program.iter_instrs().filter(|(_, instr)| program.instrs[*instr].opcode == ir3::Opcode::Phi);
        let mut taken = FxHashSet::default();
        let numbers = phis.flat_map(|(_, instr)| {
            let number = program.serials[instr];
            program.instrs[instr].dsts.iter().filter_map(ir3::Dst::value).map(move |value| (value.as_u32(), number))
        });
        numbers.map(|(value, number)| (number != 0 && taken.insert(number)).then_some((value, number))).collect()
    };
    let Some((source, target)) = of_phis(source).zip(of_phis(target)) else { return Default::default() };
    let known: FxHashSet<u32> = source.values().copied().collect();
    if target.values().all(|number| known.contains(number)) { [source, target] } else { Default::default() }
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
    let _session = Session::begin();
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
    let read = |program, at: usize| match (&scans[at], program) {
        (Some(read), _) => Some(&read.program),
        (None, ProgramRef::Ir3(program)) => Some(program),
        _ => None,
    };
    let [before_phis, after_phis] = match (read(source, 0), read(target, 1)) {
        (Some(source), Some(target)) => phi_numbers(source, target),
        _ => Default::default(),
    };
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
            let source = Ir3::new(source, before)?.with_phi_numbers(before_phis);
            let target = Ir3::new(target, after)?.with_phi_numbers(after_phis);
            cuts::prove(&source, &target, false, limits, solver)
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
