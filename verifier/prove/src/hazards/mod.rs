//! The hazard checker: a dataflow proof that a final program reads no result before it is available, and overwrites no
//! register before it has been read, on every path and for any order of completion.
//!
//! *Why it is needed.* The machine does not wait. The ALU writes its results a fixed number of issue slots later, and
//! other units when they are done; a reader waits with slots, `(ss)` or `(sy)`, or it reads the previous content. Runs
//! try some inputs and orders of completion; this covers all.
//!
//! *The lattice* (`state`). A state has the outstanding operations at a point: for each register
//! (`semantics::machine::units`) the slots until the ALU and other units may read it, and the sets of registers whose
//! results, or whose reads, are waited for with a flag; some facts about the wave. The join is the union of the sets
//! and the later of the times.
//!
//! *The transfer functions* (`walk`). An instruction first waits for its flags, which empties sets. Then each register
//! that it reads or writes must be in none of the sets that it has to wait for, and each read must come late enough.
//! Then its own results and sources are added, by the rules of its unit (`semantics::machine::rules`), and its issue
//! slots pass.
//!
//! *Paths* (`flow`). Registers of lanes follow the branches that lanes take: instructions that other lanes execute in
//! between only add time and waits. Registers that all lanes share (shared registers, `a1.x`, constants) also follow
//! the turns of the wave between lanes that diverged. That lanes reconverge is checked with the same sets: each
//! position where lanes may wait has `(jp)`, and there are never more of them than the branch stack holds.
//!
//! *Soundness.* The states are a fixed point from nothing outstanding at the start of the program (but texture
//! samples that the driver prefetches), so each contains all that is outstanding on any path. A program without a
//! hazard in any state has none in any run, if the rules are those of the machine, and with these assumptions: relative
//! accesses stay in their arrays, if the sizes of these are known (`semantics::machine::arrays`). The order of the
//! wave's blocks is the one that Mesa assumes. The uniform branches are derived (`uniform`).
//!
//! The checker uses none of the compiler's own analyses, which it has to check.
//!
//! *What a proof covers.* Rules of the machine, [`Basis::Machine`]: a program is proved if it keeps all of them.
//! Violations of rules that are only Mesa's practice ([`Basis::Practice`]) are reported too, as findings.

mod copies;
mod failure;
mod flow;
#[cfg(test)]
mod instruction_tests;
mod scratch;
#[cfg(test)]
mod scratch_tests;
mod state;
#[cfg(test)]
mod tests;
mod uniform;
mod walk;

pub use failure::{Basis, Hazard, HazardError, HazardKind, Refusal};
pub use scratch::ScratchAccesses;

use cranelift_entity::EntityRef;
use ir3_compiler::ir3::Program;
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;
use ir3_semantics::machine::arrays::ArrayBases;
use ir3_semantics::machine::steps::{FinalCode, Steps};

/// Facts about a program that are not in its code.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The branches that the text marks uniform (`(con)`), by position. They are compared with those that the checker
    /// finds, and not used, unless they are trusted.
    pub marked_uniform: Vec<bool>,
    /// The marks are right: the result depends on them, so a result without hazards is no proof.
    pub trusts_marks: bool,
    /// The depth of the branch stack that the driver configures; otherwise the one that the GPU has counts.
    pub branch_stack: Option<u32>,
    /// True if the driver runs the preamble before the wave has registers, if it is known; otherwise it does where the
    /// preamble lets it.
    pub early_preamble: Option<bool>,
    /// The starts of arrays in registers.
    pub arrays: ArrayBases,
    /// The code has no `(ei)` and `(eq)`, as in Mesa's text. Missing releases are not reported then.
    pub releases_unknown: bool,
    /// Addresses of scratch accesses whose instructions do not contain them.
    pub scratch: ScratchAccesses,
}

impl Facts {
    /// Reads the marks of a program in blocks: `(con)` after the successors of a block.
    #[must_use]
    pub fn of_program(program: &Program) -> Self {
        let mut marked_uniform = Vec::with_capacity(program.instrs.len());
        for &block in &program.layout {
            let data = &program.blocks[block];
            let opcodes = data.instrs.iter().map(|&instr| program.instrs[instr].opcode);
            let same = data.divergent == Some(false);
            marked_uniform
                .extend(opcodes.filter(|opcode| !opcode.is_meta()).map(|opcode| same && opcode.is_terminator()));
        }
        Self { marked_uniform, ..Self::default() }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct HazardReport {
    /// All hazards, in the order of the code. If none has [`Basis::Machine`], no path has one.
    pub hazards: Vec<Hazard>,
    /// The number of instructions.
    pub instructions: u32,
    /// Blocks visited until nothing changed.
    pub visits: u64,
    /// The branches that the text marks uniform, and the checker does not find so.
    pub not_shown_uniform: Vec<Ip>,
}

impl HazardReport {
    /// Returns true if the program keeps all rules of the machine.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.findings() == self.hazards.len()
    }

    /// The number of hazards that only break a rule of Mesa's practice.
    #[must_use]
    pub fn findings(&self) -> usize {
        self.hazards.iter().filter(|hazard| hazard.kind.basis() == Basis::Practice).count()
    }
}

/// Checks a final program.
///
/// # Errors
/// If the code has an instruction that the checker does not support.
pub fn check(code: &Code, facts: &Facts, target: &Target) -> Result<HazardReport, HazardError> {
    let mut steps = Steps::new(code, &facts.arrays, target).map_err(|error| HazardError {
        at: error.at,
        refusal: Refusal::NoRegister { opcode: error.opcode, number: error.number },
    })?;
    if facts.early_preamble == Some(false) {
        steps.steps.iter_mut().for_each(|step| step.early_a1 = false);
    }
    check_steps(code, &steps, facts, target)
}

/// Checks a final program of our compiler, without facts about its arrays and its preamble, whose steps are decoded.
///
/// # Errors
/// If the code has an instruction that the checker does not support.
pub fn check_final(code: &FinalCode, facts: &Facts, target: &Target) -> Result<HazardReport, HazardError> {
    debug_assert!(facts.early_preamble.is_none(), "the steps do not depend on facts");
    check_steps(&code.code, &code.steps, facts, target)
}

fn check_steps(code: &Code, steps: &Steps, facts: &Facts, target: &Target) -> Result<HazardReport, HazardError> {
    if code.instrs.is_empty() {
        return Ok(HazardReport::default());
    }
    let (uniform, flow) = uniform::analyze(code, steps, facts, target)?;
    let mut report = walk::run(code, steps, (&flow, &uniform), facts, target)?;
    walk::positional(code, steps, facts, target, &mut report.hazards);
    walk::reconvergence(code, &flow, facts.branch_stack.unwrap_or(target.branchstack_size), &mut report.hazards);
    report.hazards.sort_by_key(|hazard| hazard.at);
    let marked = facts.marked_uniform.iter().zip(code.instrs.keys()).filter(|(marked, _)| **marked);
    let shown = |ip: Ip| uniform[ip.index()] || !uniform::is_conditional(code.instrs[ip].data.opcode);
    report.not_shown_uniform = marked.map(|(_, ip)| ip).filter(|&ip| !shown(ip)).collect();
    failure::explain(code, steps, &flow, &mut report.hazards);
    Ok(report)
}
