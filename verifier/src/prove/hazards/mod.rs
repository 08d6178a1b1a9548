//! The hazard checker: a dataflow proof that a final program reads no result before it is there, and overwrites nothing
//! before it has been read, on every path and whatever the order of completion.
//!
//! *Why it is needed.* The machine does not wait. The ALU writes its results a fixed number of issue slots later, and
//! other units when they are done; a reader waits with slots, `(ss)` or `(sy)`, or it reads what was there before. Runs
//! try some inputs and orders of completion; this covers all.
//!
//! *The lattice* (`state`). A state is what may be outstanding at a point: for each register (`semantics::machine::units`) the slots until
//! the ALU and other units may read it, and the sets of registers whose results, or whose reads, are waited for with a
//! flag; some facts about the wave. The join is the union of the sets and the later of the times.
//!
//! *The transfer functions* (`walk`). An instruction first waits for its flags, which empties sets. Then each register
//! that it reads or writes must be in none of the sets that it has to wait for, and each read must come late enough.
//! Then its own results and sources are added, as the rules of its unit say (`semantics::machine::rules`), and its issue slots pass.
//!
//! *Paths* (`flow`). Registers of lanes follow the branches that lanes take: instructions that other lanes execute in
//! between only add time and waits. What all lanes share (shared registers, `a1.x`, constants) also follows the turns
//! of the wave between lanes that diverged. That lanes reconverge is checked with the same sets: each position where
//! lanes may wait has `(jp)`, and there are never more of them than the branch stack holds.
//!
//! *Soundness.* The states are a fixed point from nothing outstanding at the start of the program (but texture
//! samples that the driver prefetches), so each contains all that is outstanding on any path. A program without a
//! hazard in any state has none in any run, if the rules are those of the machine, and with these assumptions: the
//! branches named uniform are ([`Divergence`]), and relative accesses stay in their arrays, where the code says how
//! large these are (`semantics::machine::arrays`), and the preamble writes no array of constants. The order of the wave's blocks is the one that Mesa assumes.
//!
//! Nothing is taken from the compiler's own analyses, which the checker is there to check.

mod failure;
mod flow;
mod state;
#[cfg(test)]
mod tests;
mod walk;

pub use failure::{Hazard, HazardError, HazardKind, Refusal};

use crate::semantics::machine::steps::Steps;
use flow::Flow;
use ir3_compiler::ir3::Program;
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;

/// What is known of branches: the lanes of a wave stay together at uniform ones.
#[derive(Clone, Debug)]
pub enum Divergence {
    /// True for uniform branches, by position; lanes may diverge at all others.
    Uniform(Vec<bool>),
    /// Words do not say it. A branch whose later target is no `(jp)` is assumed to be uniform.
    ByMarks,
}

impl Divergence {
    /// The marks of a program in blocks: `(con)` after the successors of a block.
    #[must_use]
    pub fn of_program(program: &Program) -> Self {
        let mut uniform = Vec::with_capacity(program.instrs.len());
        for &block in &program.layout {
            let data = &program.blocks[block];
            let opcodes = data.instrs.iter().map(|&instr| program.instrs[instr].opcode);
            let same = data.divergent == Some(false);
            uniform.extend(opcodes.filter(|opcode| !opcode.is_meta()).map(|opcode| same && opcode.is_terminator()));
        }
        Self::Uniform(uniform)
    }

    fn is_uniform(&self, code: &Code, ip: Ip) -> bool {
        use cranelift_entity::EntityRef;
        match self {
            Self::Uniform(uniform) => uniform.get(ip.index()).copied().unwrap_or(false),
            Self::ByMarks => {
                let next = Ip::new(ip.index() + 1);
                let later = code.instrs[ip].target.map_or(next, |target| target.max(next));
                let flags = code.instrs.get(later).map(|instr| instr.data.flags);
                !flags.is_some_and(|flags| flags.contains(ir3_compiler::ir3::InstrFlags::JP))
            }
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct HazardReport {
    /// All hazards, in the order of the code. None is a proof that there is none on any path.
    pub hazards: Vec<Hazard>,
    /// The number of instructions.
    pub instructions: u32,
    /// Blocks visited until nothing changed.
    pub visits: u64,
    /// The branches that are assumed to be uniform because no lane could reconverge at their target.
    pub assumed_uniform: Vec<Ip>,
}

/// Checks a final program. `branch_stack` is the depth of the branch stack that the driver configures, where that is
/// known; otherwise the one that the GPU has counts.
///
/// # Errors
/// If the code has something that the checker does not understand.
pub fn check(
    code: &Code,
    divergence: &Divergence,
    branch_stack: Option<u32>,
    target: &Target,
) -> Result<HazardReport, HazardError> {
    if code.instrs.is_empty() {
        return Ok(HazardReport::default());
    }
    let flow = Flow::new(code, &|ip| divergence.is_uniform(code, ip))?;
    let steps = Steps::new(code, target).map_err(|error| HazardError {
        at: error.at,
        refusal: Refusal::NoRegister { opcode: error.opcode, number: error.number },
    })?;
    let mut report = walk::run(code, &steps, &flow, target)?;
    walk::positional(code, &steps, target, &mut report.hazards);
    walk::reconvergence(code, &flow, branch_stack.unwrap_or(target.branchstack_size), &mut report.hazards);
    report.hazards.sort_by_key(|hazard| hazard.at);
    if matches!(divergence, Divergence::ByMarks) {
        use ir3_compiler::ir3::Opcode::{Br, Braa, Brac, Brao, Brax};
        let branches =
            code.instrs.iter().filter(|(_, instr)| matches!(instr.data.opcode, Br | Braa | Brao | Brac | Brax));
        report.assumed_uniform = branches.map(|(ip, _)| ip).filter(|&ip| divergence.is_uniform(code, ip)).collect();
    }
    failure::explain(code, &steps, &flow, &mut report.hazards);
    Ok(report)
}
