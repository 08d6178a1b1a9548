//! The unit of checking: two programs, the second of which must refine the first.
//!
//! A boundary comes from a stage of our compiler, from a section of a log, or from two files. Its
//! [`kind`](Boundary::kind) decides which rules apply besides refinement; its [`origin`](Boundary::origin) decides
//! which facts about the programs are complete.

use super::Execution;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3;
use ir3_compiler::pipeline::Stage;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;

/// The work that lies between the two programs of a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundaryKind {
    /// Moves, spilling and register assignment: every operation has a counterpart with the same operands, so that a
    /// failure of the register checker counts against the boundary.
    Moves,
    /// Anything else that ends in a program whose results are available at once.
    Computes,
    /// The program after is final code: it has to wait for its results.
    Final,
    /// The first program of a compilation and its last one. The rules of final code are those of the boundary before
    /// it.
    Whole,
}

impl BoundaryKind {
    /// The kind of the boundary that a stage of our compiler makes.
    pub fn of_stage(stage: Stage) -> Self {
        match stage {
            _ if stage.is_final() => Self::Final,
            _ if stage.moves_values() => Self::Moves,
            _ => Self::Computes,
        }
    }
}

/// The source of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Our compiler, in memory: every attribute is known, and the postconditions of the stage are checked by the
    /// caller.
    Compiled,
    /// Texts, which may leave out attributes: the memories that a fence orders, the lanes that a kill ends.
    Printed,
}

/// Facts about final code that its program does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct FinalFacts {
    /// The text leaves out `(ei)` and `(eq)`.
    pub releases_unknown: bool,
    /// The depth of the branch stack that the driver configures.
    pub branch_stack: Option<u32>,
    /// True if the driver runs the preamble early.
    pub early_preamble: Option<bool>,
}

/// A condition on the program after that is checked if the boundary passes; returns the reason why it does not hold.
pub type Condition<'a> = &'a dyn Fn() -> Option<super::NotShown>;

/// Two programs, the second of which must refine the first.
#[derive(Clone, Copy)]
pub struct Boundary<'a> {
    /// The stage of our compiler between them, if it is one.
    pub stage: Option<Stage>,
    /// The work that lies between them.
    pub kind: BoundaryKind,
    /// The source of the programs.
    pub origin: Origin,
    /// The program before.
    pub before: ProgramRef<'a>,
    /// The program after.
    pub after: ProgramRef<'a>,
    /// The machine model that runs the program before.
    pub runs_before: Execution,
    /// The machine model that runs the program after.
    pub runs_after: Execution,
    /// True if `before` is the program after the boundary that was judged last: its outcomes are used again.
    pub follows: bool,
    /// Facts for the hazard checker, of [`BoundaryKind::Final`].
    pub facts: FinalFacts,
    /// An additional condition that the boundary must meet to pass.
    pub condition: Option<Condition<'a>>,
}

impl<'a> Boundary<'a> {
    /// The boundary of a stage of our compiler. It follows the boundary of the stage before it.
    pub fn of_stage(stage: Stage, before: ProgramRef<'a>, after: ProgramRef<'a>) -> Self {
        // Encoding is the one stage with final code on both sides.
        let runs_before = if stage == Stage::Encode { Execution::after(Stage::Legalize) } else { Execution::Untimed };
        Self {
            stage: Some(stage),
            kind: BoundaryKind::of_stage(stage),
            origin: Origin::Compiled,
            runs_before,
            runs_after: Execution::after(stage),
            follows: true,
            ..Self::of_texts(before, after)
        }
    }

    /// The boundary between two programs that were read from texts.
    pub fn of_texts(before: ProgramRef<'a>, after: ProgramRef<'a>) -> Self {
        Self {
            stage: None,
            kind: BoundaryKind::Computes,
            origin: Origin::Printed,
            before,
            after,
            runs_before: Execution::Untimed,
            runs_after: Execution::Untimed,
            follows: false,
            facts: FinalFacts::default(),
            condition: None,
        }
    }

    /// Returns true if both sides are the same ir3 program.
    pub fn has_same_sides(&self) -> bool {
        matches!((self.before, self.after), (ProgramRef::Ir3(before), ProgramRef::Ir3(after)) if before == after)
    }

    /// Returns true if every launch of the program before runs all lanes of its waves: a text declares the size of its
    /// workgroups. Programs of our compiler are run on parts of a wave, too: no pass depends on full ones.
    pub fn has_full_waves(&self) -> bool {
        let size = match self.before {
            ProgramRef::Nir(shader) => shader.info.workgroup_size_in_ir3(),
            ProgramRef::Ir3(program) => program.workgroup_size,
            ProgramRef::Vec4(_) => None,
        };
        self.origin == Origin::Printed && size.is_some_and(|size| size != [0; 3])
    }

    /// An environment in which the program before is launched: all lanes of full waves run.
    pub(super) fn launched(&self, env: Env) -> Env {
        if self.has_full_waves() { Env { lanes: None, ..env } } else { env }
    }

    /// The number of instructions of the larger side.
    pub fn instructions(&self) -> usize {
        let size = |side: ProgramRef<'_>| ir3_of(side).map_or(0, |program| program.instrs.len());
        size(self.before).max(size(self.after))
    }

    /// The name of the stage in reports of a refutation.
    pub fn stage_name(&self) -> &'static str {
        self.stage.map_or("check", Stage::name)
    }

    /// Copies of both programs.
    pub fn snapshots(&self) -> [Snapshot; 2] {
        [self.before.into(), self.after.into()]
    }
}

/// The program, if it is in ir3.
pub(super) fn ir3_of(side: ProgramRef<'_>) -> Option<&ir3::Program> {
    match side {
        ProgramRef::Ir3(program) => Some(program),
        ProgramRef::Nir(_) | ProgramRef::Vec4(_) => None,
    }
}
