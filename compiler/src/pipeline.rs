//! The stages of the backend, in order.
//!
//! A [`Stage`] is a function from a program to a program. [`compile`] runs them all and shows the program to a sink
//! after each one; the sink may look, copy or compare, and the pipeline itself copies nothing. A stage alone is
//! [`run_stage`] (or the pass's own `run`). [`select`] makes the ir3 program; the stages in front of it, on nir, are
//! [`rewrite_stage`], and [`rewrite`] is all of them.

use crate::features::{Feature, Features};
pub use crate::regalloc::RegisterLimit;
use crate::target::Target;
use crate::{ir3, nir, opt, regalloc, rewrite as rewrites, schedule};
use std::borrow::Cow;
use std::fmt;

/// A stage of the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Negations of conditions go inside, where branches read two predicates. nir to nir.
    DeMorgan,
    /// nir to ir3 in SSA form.
    Select,
    /// Uniform values go to shared registers, their computation to the scalar ALU.
    ScalarAlu,
    /// Copies, modifiers, immediates and constants into the instructions that read them.
    CopyPropagation,
    /// What has been computed already is not computed again.
    ValueNumbering,
    /// Immediates that no operand can hold go to the constant file.
    Constants,
    /// Removal of what nobody reads.
    DeadCode,
    /// Clamps into the operations that compute what is clamped.
    Saturation,
    /// Results are computed as their readers want them: predicates, other widths, negations.
    Fold,
    /// Small ifs have lanes sleep instead of branching.
    Predication,
    /// The instructions of each block in an order in which results are there when they are read.
    Schedule,
    /// Registers for predicates and addresses; critical edges get blocks of their own. Otherwise still SSA.
    Predicates,
    /// Registers for shared values; physical edges. General values are still in SSA form.
    SharedRegisters,
    /// Values that find no register go to memory and come back.
    Spill,
    /// Physical registers; phis become parallel copies.
    RegisterAllocation,
    /// Spills and reloads become accesses to scratch memory.
    LowerSpills,
    /// Parallel copies, collects and splits become moves and swaps.
    LowerCopies,
}

impl Stage {
    /// The stages on nir, in order.
    pub const NIR: [Self; 1] = [Self::DeMorgan];

    /// Every stage that gives an ir3 program, in order.
    pub const ALL: [Self; 16] = [
        Self::Select,
        Self::ScalarAlu,
        Self::CopyPropagation,
        Self::ValueNumbering,
        Self::Constants,
        Self::DeadCode,
        Self::Saturation,
        Self::Fold,
        Self::Predication,
        Self::Schedule,
        Self::Predicates,
        Self::SharedRegisters,
        Self::Spill,
        Self::RegisterAllocation,
        Self::LowerSpills,
        Self::LowerCopies,
    ];

    /// Every stage, in order.
    pub fn every() -> impl Iterator<Item = Self> {
        Self::NIR.into_iter().chain(Self::ALL)
    }

    /// The name that the command line and the reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeMorgan => "de-morgan",
            Self::Select => "select",
            Self::ScalarAlu => "scalar-alu",
            Self::CopyPropagation => "copy-propagation",
            Self::ValueNumbering => "value-numbering",
            Self::Constants => "constants",
            Self::DeadCode => "dead-code",
            Self::Saturation => "saturation",
            Self::Fold => "fold",
            Self::Predication => "predication",
            Self::Schedule => "schedule",
            Self::Predicates => "predicates",
            Self::SharedRegisters => "shared-registers",
            Self::Spill => "spill",
            Self::RegisterAllocation => "register-allocation",
            Self::LowerSpills => "lower-spills",
            Self::LowerCopies => "lower-copies",
        }
    }

    /// Whether a program can do without it. It has [features](Feature), without which it does not run.
    pub const fn is_optional(self) -> bool {
        matches!(
            self,
            Self::DeMorgan
                | Self::ScalarAlu
                | Self::CopyPropagation
                | Self::ValueNumbering
                | Self::Constants
                | Self::DeadCode
                | Self::Saturation
                | Self::Fold
                | Self::Predication
        )
    }

    /// The stage of a name as [`Stage::name`] gives it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::every().find(|stage| stage.name() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to compile with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is used of what the backend can do without.
    pub features: Features,
    /// The last stage that runs.
    pub last: Stage,
    /// How many registers the program may take.
    pub registers: RegisterLimit,
}

impl Default for Options {
    fn default() -> Self {
        Self { features: Features::all(), last: Stage::LowerCopies, registers: RegisterLimit::Target }
    }
}

impl Options {
    /// Whether `stage` is one that runs.
    pub fn runs(&self, stage: Stage) -> bool {
        stage <= self.last && (!stage.is_optional() || self.features.iter().any(|feature| feature.stage() == stage))
    }

    /// The same without a feature.
    #[must_use]
    pub fn without(mut self, feature: Feature) -> Self {
        self.features.remove(feature);
        self
    }
}

/// Why a program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The program uses something that the backend does not have.
    Unsupported,
    /// The program's values do not fit into the registers.
    NeedsSpilling,
    /// The backend broke its own rules.
    Internal,
}

/// A program was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {reason}")]
pub struct CompileError {
    /// The stage that refused it.
    pub stage: Stage,
    /// The kind of reason.
    pub kind: ErrorKind,
    /// The reason, with the operation and its place.
    pub reason: String,
}

impl CompileError {
    fn of_registers(stage: Stage, error: regalloc::Error) -> Self {
        let kind = match &error {
            // Whatever can be spilled has been.
            regalloc::Error::NeedsSpilling { file: "full" | "half", .. } if stage == Stage::RegisterAllocation => {
                ErrorKind::Internal
            }
            regalloc::Error::NeedsSpilling { .. }
            | regalloc::Error::NoPrivateMemory { .. }
            | regalloc::Error::Instruction { .. } => ErrorKind::NeedsSpilling,
            regalloc::Error::Unsupported { .. } => ErrorKind::Unsupported,
            regalloc::Error::Malformed { .. } => ErrorKind::Internal,
        };
        Self { stage, kind, reason: error.to_string() }
    }
}

/// Runs the stages on nir.
pub fn rewrite<'a>(shader: &'a nir::Shader, target: &Target, options: &Options) -> Cow<'a, nir::Shader> {
    let mut shader = Cow::Borrowed(shader);
    for stage in Stage::NIR.into_iter().filter(|&stage| options.runs(stage)) {
        rewrite_stage(stage, &mut shader, target);
    }
    shader
}

/// Runs one of the stages on nir.
pub fn rewrite_stage(stage: Stage, shader: &mut Cow<'_, nir::Shader>, target: &Target) -> Change {
    let is_idle = match stage {
        Stage::DeMorgan => !target.has_branch_and_or || !rewrites::de_morgan::is_needed(&shader.entry),
        _ => true,
    };
    if is_idle {
        return Change::Nothing;
    }
    rewrites::de_morgan::run(&mut shader.to_mut().entry);
    Change::Something
}

/// Runs the stage from nir to ir3. It takes the shader as it is.
pub fn select(shader: &nir::Shader, target: &Target) -> Result<ir3::Program, CompileError> {
    crate::select::run(shader, target).map_err(|error| CompileError {
        stage: Stage::Select,
        kind: ErrorKind::Unsupported,
        reason: error.to_string(),
    })
}

/// What a stage has done to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: it had no more than a shared reference to it.
    Nothing,
    /// Something, perhaps.
    Something,
}

/// Runs one stage on a program. [`Stage::Select`], which makes the program, and those in front of it do nothing here.
pub fn run_stage(
    stage: Stage,
    program: &mut ir3::Program,
    target: &Target,
    options: &Options,
) -> Result<Change, CompileError> {
    let of_registers = |error| CompileError::of_registers(stage, error);
    let uses = |feature| options.features.contains(feature);
    let predicate_registers = || if uses(Feature::PredicateRegisters) { target.num_predicates } else { 1 };
    if is_idle(stage, program, target, options).map_err(of_registers)? {
        return Ok(Change::Nothing);
    }
    match stage {
        Stage::DeMorgan | Stage::Select => {}
        Stage::ScalarAlu => opt::scalar_alu::run(program, target),
        Stage::Spill => regalloc::spill::run(program, target, options.registers).map_err(of_registers)?,
        Stage::LowerSpills => regalloc::lower_spills::run(program).map_err(of_registers)?,
        Stage::CopyPropagation => opt::copy_propagation::run(program, target),
        Stage::ValueNumbering => {
            let comparisons = uses(Feature::ComparisonNumbering);
            opt::value_numbering::run(
                program,
                opt::value_numbering::Rules { comparisons, others: uses(Feature::ValueNumbering) },
            );
        }
        Stage::Constants => opt::constants::run(program, target),
        Stage::DeadCode => opt::dead_code::run(program),
        Stage::Saturation => opt::saturation::run(program),
        Stage::Fold => opt::fold::run(
            program,
            target,
            opt::fold::Rules {
                negations: uses(Feature::Negations),
                branch_and_or: uses(Feature::BranchAndOr),
                votes: uses(Feature::VoteBranches),
                comparisons: uses(Feature::PredicateComparisons),
                bitops: uses(Feature::PredicateBitops),
                conversions: uses(Feature::Conversions),
            },
        ),
        Stage::Predication => opt::predication::run(program),
        Stage::Predicates => {
            regalloc::predicates_within(program, target, predicate_registers()).map_err(of_registers)?;
        }
        Stage::Schedule => {
            let predicates = uses(Feature::PredicateScheduling);
            let rules = schedule::dependencies::Rules { predicates, registers: predicate_registers() };
            schedule::before::run(program, target, options.registers.files(target), rules);
        }
        Stage::SharedRegisters => {
            regalloc::shared::run(program, target, options.registers.files(target)).map_err(of_registers)?;
        }
        Stage::RegisterAllocation => {
            regalloc::run_limited(program, target, options.registers).map_err(of_registers)?;
        }
        Stage::LowerCopies => regalloc::lower_copies::run(program, target).map_err(of_registers)?,
    }
    Ok(Change::Something)
}

/// Whether a stage has nothing to do. This sees the program through a shared reference, so that whoever compares
/// boundaries may rely on it: the program behind an idle stage is the one in front of it.
fn is_idle(stage: Stage, program: &ir3::Program, target: &Target, options: &Options) -> Result<bool, regalloc::Error> {
    Ok(match stage {
        Stage::DeMorgan | Stage::Select => true,
        Stage::ScalarAlu => !target.has_shared_regfile,
        Stage::Constants => !opt::constants::is_needed(program),
        Stage::Saturation => !opt::saturation::is_needed(program),
        Stage::Fold => !opt::fold::is_needed(program),
        Stage::Predication => !opt::predication::is_needed(program, target),
        Stage::Schedule => !options.features.contains(Feature::Schedule) || !schedule::before::is_needed(program),
        Stage::SharedRegisters => !regalloc::shared::is_needed(program),
        Stage::Predicates => !regalloc::has_predicates(program),
        Stage::Spill => !regalloc::spill::is_needed(program, target, options.registers)?,
        Stage::LowerSpills => !regalloc::lower_spills::is_needed(program),
        Stage::CopyPropagation
        | Stage::ValueNumbering
        | Stage::DeadCode
        | Stage::RegisterAllocation
        | Stage::LowerCopies => false,
    })
}

/// Compiles a shader, and shows each stage's ir3 program to `sink`.
pub fn compile(
    shader: &nir::Shader,
    target: &Target,
    options: &Options,
    sink: &mut dyn FnMut(Stage, &ir3::Program),
) -> Result<ir3::Program, CompileError> {
    let mut program = select(&rewrite(shader, target, options), target)?;
    sink(Stage::Select, &program);
    compile_selected(&mut program, target, options, sink)?;
    Ok(program)
}

/// Runs the stages behind selection, and shows each one's result to `sink`.
pub fn compile_selected(
    program: &mut ir3::Program,
    target: &Target,
    options: &Options,
    sink: &mut dyn FnMut(Stage, &ir3::Program),
) -> Result<(), CompileError> {
    for stage in Stage::ALL.into_iter().filter(|&stage| stage != Stage::Select && options.runs(stage)) {
        run_stage(stage, program, target, options)?;
        sink(stage, program);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for stage in Stage::every() {
            assert_eq!(Stage::from_name(stage.name()), Some(stage));
        }
        assert_eq!(Stage::from_name("encode"), None);
        for feature in Features::all() {
            assert_eq!(Feature::from_name(feature.name()), Some(feature));
            assert!(Options::default().runs(feature.stage()));
        }
        assert!(!Options { last: Stage::DeadCode, ..Options::default() }.runs(Stage::LowerCopies));
        assert!(!Options::default().without(Feature::DeadCode).runs(Stage::DeadCode));
        let one = Options::default().without(Feature::ValueNumbering);
        assert!(
            one.runs(Stage::ValueNumbering) && !one.without(Feature::ComparisonNumbering).runs(Stage::ValueNumbering)
        );
        let none = Options { features: Features::empty(), ..Options::default() };
        assert!(none.runs(Stage::Predicates));
    }
}
