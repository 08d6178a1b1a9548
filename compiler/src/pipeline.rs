//! The stages of the backend, in order.
//!
//! A [`Stage`] is a function from a program to a program. Each is one row of the table below: if it can be disabled, if
//! it only moves values, when it is needed, and its function.
//! [`compilation`](crate::compilation) runs them one after the other; a single stage is [`run_nir_stage`], [`select`]
//! or [`run_stage`], by the language that it reads.

mod allocator;
mod error;
mod i965;
mod options;
mod own_pass;
#[cfg(test)]
mod probe;
mod run;
mod stage;

use crate::arms::{Counter, Skip};
pub use crate::features::{Feature, Features};
pub use crate::graph_colouring::Rotation;
use crate::i965::vec4;
use crate::regalloc::Carried;
pub use crate::regalloc::RegisterLimit;
use crate::schedule::dependencies::ScheduleRules;
use crate::select::SelectError;
use crate::target::{Backend, RegisterFiles, Target};
use crate::{encode, ir3, legalize, lower_samgq, lower_subgroups, nir, nir_passes, opt, regalloc, repeat, schedule};
pub use allocator::{Allocation, Allocator};
pub use error::{CompileError, ErrorKind, Refusal};
pub use i965::{run_vec4_stage, select_vec4};
pub use options::Options;
pub use own_pass::OwnPass;
pub(crate) use run::select_counted;
pub use run::{Change, run_nir_stage, run_stage, select};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

/// The inputs of a stage in addition to the program.
pub(crate) struct Context<'a> {
    pub(crate) target: &'a Target,
    pub(crate) options: &'a Options,
    pub(crate) counter: &'a Counter,
    /// Results of the allocator's stages for the current program.
    pub(crate) carried: &'a RefCell<Carried>,
}

impl Context<'_> {
    fn uses(&self, feature: Feature) -> bool {
        self.options.features.contains(feature)
    }

    /// The size of the register files.
    fn files(&self) -> RegisterFiles {
        self.options.registers.files(self.target)
    }

    /// The maximum number of predicate registers of the program.
    fn predicate_registers(&self) -> u32 {
        if self.uses(Feature::PredicateRegisters) { self.target.num_predicates } else { 1 }
    }

    fn schedule_rules(&self) -> ScheduleRules {
        ScheduleRules {
            predicates: self.uses(Feature::PredicateScheduling),
            registers: self.predicate_registers(),
            occupancy: self.uses(Feature::ScheduleOccupancy),
        }
    }

    fn allocation(&self) -> Allocation<'_> {
        Allocation::of(self.options, self.target)
    }
}

type StageResult<T> = Result<T, Refusal>;

/// A function from a program to a program of the same language. `is_needed` has only a shared reference to the program.
/// So if a stage is not needed, the program after it is the program before it; code that compares boundaries relies on
/// that.
struct Pass<P> {
    is_needed: fn(&P, &Context<'_>) -> StageResult<bool>,
    run: fn(&mut P, &Context<'_>) -> StageResult<Change>,
}

/// The function of a stage, by the languages that it reads and writes.
enum Function {
    /// nir to nir.
    Nir(Pass<nir::Shader>),
    /// vec4 to vec4.
    Vec4(Pass<vec4::Program>),
    /// ir3 to ir3.
    Ir3(Pass<ir3::Program>),
    /// nir to vec4 or ir3.
    Selection,
}

/// A stage can be disabled, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It runs if the feature is enabled.
    Optional(Feature),
    /// It always runs.
    Always,
    /// It runs if the options have a pass for it.
    Given,
}

/// The kind of changes that a stage makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StageKind {
    /// It only moves values: it orders instructions, adds moves, spills and reloads, and assigns registers.
    Moves,
    /// It changes the computation.
    Computes,
}

/// A row of the table of stages.
struct StageRow {
    name: &'static str,
    need: Need,
    kind: StageKind,
    function: Function,
}

/// The condition of a row: a bool, or a refusal.
trait Condition {
    fn holds(self) -> StageResult<bool>;
}

impl Condition for bool {
    fn holds(self) -> StageResult<bool> {
        Ok(self)
    }
}

impl<E: Into<Refusal>> Condition for Result<bool, E> {
    fn holds(self) -> StageResult<bool> {
        self.map_err(Into::into)
    }
}

/// The result of a pass: nothing, true if it has changed the program, or a refusal.
trait Outcome {
    fn change(self) -> StageResult<Change>;
}

impl Outcome for () {
    fn change(self) -> StageResult<Change> {
        Ok(Change::Something)
    }
}

impl Outcome for bool {
    fn change(self) -> StageResult<Change> {
        Ok(if self { Change::Something } else { Change::Nothing })
    }
}

impl<E: Into<Refusal>> Outcome for Result<(), E> {
    fn change(self) -> StageResult<Change> {
        self.map_err(Into::into).and_then(Outcome::change)
    }
}

/// The function of a row: selection, or the condition and the pass.
macro_rules! function {
    ($language:ident ($program:ident $context:ident)) => {
        Function::Selection
    };
    ($language:ident ($program:ident $context:ident) $is_needed:expr => $run:expr) => {
        Function::$language(Pass {
            is_needed: |$program, $context| Condition::holds($is_needed),
            run: |$program, $context| Outcome::change($run),
        })
    };
}

/// Declares the stages. A row is: documentation, variant, name, [`Need`], [`StageKind`] (of a stage on ir3), and the
/// condition and the function of the pass, which read the names in parentheses. The rows under `tests` exist in unit
/// tests only.
macro_rules! stages {
    (
        i965 $vec4_names:tt { $($(#[$vec4_doc:meta])* $vec4:ident = $vec4_name:literal, $vec4_need:expr $(, $vec4_if:expr => $vec4_run:expr)?;)* }
        nir $nir_names:tt { $($(#[$nir_doc:meta])* $nir:ident = $nir_name:literal, $nir_need:expr $(, $nir_if:expr => $nir_run:expr)?;)* }
        ir3 $names:tt { $($(#[$doc:meta])* $stage:ident = $name:literal, $need:expr, $kind:ident $(, $if:expr => $run:expr)?;)* }
        tests { $($(#[$test_doc:meta])* $test:ident = $test_name:literal, $test_if:expr => $test_run:expr;)* }
    ) => {
        /// A stage of the backend.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Stage {
            $($(#[$nir_doc])* $nir,)*
            $($(#[$vec4_doc])* $vec4,)*
            $($(#[$doc])* $stage,)*
            $($(#[$test_doc])* #[cfg(test)] $test,)*
        }

        impl Stage {
            /// The stages on nir, in order.
            pub const NIR: [Self; [$(Self::$nir),*].len()] = [$(Self::$nir),*];

            /// The stages whose result is a vec4 or scalar program, in order.
            pub const VEC4: [Self; [$(Self::$vec4),*].len()] = [$(Self::$vec4),*];

            /// The stages whose result is an ir3 program, in order.
            const IR3: [Self; [$(Self::$stage,)* $(#[cfg(test)] Self::$test,)*].len()] =
                [$(Self::$stage,)* $(#[cfg(test)] Self::$test,)*];
        }

        #[allow(unused_variables, reason = "most passes read a part of the context only")]
        static ROWS: [StageRow; Stage::NIR.len() + Stage::VEC4.len() + Stage::IR3.len()] = {
            use Need::*;
            [
                $(StageRow {
                    name: $nir_name,
                    need: $nir_need,
                    kind: StageKind::Computes,
                    function: function!(Nir $nir_names $($nir_if => $nir_run)?),
                },)*
                $(StageRow {
                    name: $vec4_name,
                    need: $vec4_need,
                    kind: StageKind::Computes,
                    function: function!(Vec4 $vec4_names $($vec4_if => $vec4_run)?),
                },)*
                $(StageRow {
                    name: $name,
                    need: $need,
                    kind: StageKind::$kind,
                    function: function!(Ir3 $names $($if => $run)?),
                },)*
                $(
                    #[cfg(test)]
                    StageRow {
                        name: $test_name,
                        need: Always,
                        kind: StageKind::Computes,
                        function: function!(Ir3 $names $test_if => $test_run),
                    },
                )*
            ]
        };
    };
}

i965::with_stages! { stages
    nir (program context) {
        /// 64-bit sums become pairs of operations on words; vec4 has no halves of sums.
        SplitAdditions = "split-additions", Optional(Feature::SplitAdditions),
            context.target.backend != Backend::Vec4 && nir_passes::split_additions::is_needed(&program.entry)
                => nir_passes::split_additions::run(&mut program.entry);
        /// Negations of conditions move inwards, where branches read two predicates.
        DeMorgan = "de-morgan", Optional(Feature::DeMorgan),
            context.target.has_branch_and_or && nir_passes::de_morgan::is_needed(&program.entry)
                => nir_passes::de_morgan::run(&mut program.entry, context.counter);
        /// The preamble becomes code of each invocation, where the target has none.
        InlinePreamble = "inline-preamble", Optional(Feature::InlinePreamble),
            context.target.backend == Backend::Vec4 && nir_passes::inline_preamble::is_needed(&program.entry)
                => nir_passes::inline_preamble::run(&mut program.entry, context.counter);
    }
    ir3 (program context) {
        /// nir to ir3 in SSA form.
        Select = "select", Always, Computes;
        /// Uniform values move to shared registers, their computation to the scalar ALU.
        ScalarAlu = "scalar-alu", Optional(Feature::ScalarAlu), Computes,
            context.target.has_shared_regfile => opt::scalar_alu::run(program, context.target, context.counter);
        /// Copies, modifiers, immediates and constants are folded into the instructions that read them.
        CopyPropagation = "copy-propagation", Optional(Feature::CopyPropagation), Computes,
            true => opt::copy_propagation::run(program, context.target, context.counter);
        /// A value that has been computed already is not computed a second time.
        ValueNumbering = "value-numbering", Optional(Feature::ValueNumbering), Computes,
            true => opt::value_numbering::run(program, context.counter);
        /// Immediates that no operand can hold are put into the constant file.
        Constants = "constants", Optional(Feature::Constants), Computes,
            opt::constants::is_needed(program) => opt::constants::run(program, context.target, context.counter);
        /// Instructions without effects whose results are not read are removed.
        DeadCode = "dead-code", Optional(Feature::DeadCode), Computes,
            true => opt::dead_code::run(program);
        /// Clamps are folded into the operations that compute their operands.
        Saturation = "saturation", Optional(Feature::Saturation), Computes,
            opt::saturation::is_needed(program) => opt::saturation::run(program, context.counter);
        /// Results are computed as their readers want them: predicates, other widths, negations.
        Fold = "fold", Optional(Feature::Fold), Computes,
            opt::fold::is_needed(program) => opt::fold::run(program, context.target, context.counter);
        /// Small ifs are predicated: lanes are inactive instead of branching.
        Predication = "predication", Optional(Feature::Predication), Computes,
            opt::predication::is_needed(program, context.target) => opt::predication::run(program, context.counter);
        /// A pass that the caller brings along: [`Options::own_pass`].
        OwnPass = "own-pass", Given, Computes,
            true => context.options.own_pass.map_or(Ok(()), |pass| pass.run(program, context.target));
        /// The instructions of each block are ordered so that results are available when they are read.
        Schedule = "schedule", Optional(Feature::Schedule), Moves,
            schedule::before::is_needed(program)
                => schedule::before::run(program, context.target, context.files(), context.schedule_rules());
        /// Registers for predicates and addresses; critical edges get blocks of their own. Otherwise still SSA.
        Predicates = "predicates", Always, Moves,
            regalloc::has_predicates(program)
                => regalloc::predicates_within(program, context.target, context.predicate_registers());
        /// Registers for shared values; physical edges. General values are still in SSA form.
        SharedRegisters = "shared-registers", Always, Computes,
            regalloc::shared::is_needed(program) => regalloc::shared::run(program, context.target, context.files());
        /// Arrays for which registers do not suffice are kept in scratch memory.
        SpillArrays = "spill-arrays", Always, Moves,
            context.allocation().are_arrays_spilled(program, context.carried)
                => context.allocation().spill_arrays(program, context.carried);
        /// Values that find no register are spilled and reloaded.
        Spill = "spill", Always, Moves,
            context.allocation().is_spilling_needed(program, context.carried)
                => context.allocation().spill(program, context.carried);
        /// Physical registers; phis become parallel copies.
        RegisterAllocation = "register-allocation", Always, Moves,
            true => context.allocation().run(program, context.carried, context.counter);
        /// Spills and reloads become accesses to scratch memory.
        LowerSpills = "lower-spills", Always, Moves,
            regalloc::lower_spills::is_needed(program) => regalloc::lower_spills::run(program);
        /// Parallel copies, collects and splits become moves and swaps.
        LowerCopies = "lower-copies", Always, Moves,
            true => regalloc::lower_copies::run(program, context.target, context.counter);
        /// `samgq` becomes four instructions, one for each lane of a quad, where it would return wrong data.
        LowerSamgq = "lower-samgq", Always, Computes,
            lower_samgq::is_needed(program, context.target) => lower_samgq::run(program);
        /// Adjacent instructions on consecutive registers become one with `(rptN)`. Before the second scheduler, which keeps them together.
        Repeat = "repeat", Optional(Feature::Repeat), Computes,
            true => repeat::run(program, context.target, context.counter);
        /// The instructions of each block are ordered again, now that registers are known. Moves to the same register are removed.
        PostSchedule = "post-schedule", Optional(Feature::PostSchedule), Moves,
            true => {
                schedule::after::remove_self_moves(program);
                schedule::after::run(program, context.target);
            };
        /// Subgroup macros become control flow.
        LowerSubgroups = "lower-subgroups", Always, Computes,
            lower_subgroups::is_needed(program) => lower_subgroups::run(program);
        /// Branches, waits for results, nops: the program is final.
        Legalize = "legalize", Always, Computes,
            true => legalize::run(program, context.target);
        /// Encodes the program; the result is the decoded encoding.
        Encode = "encode", Always, Computes,
            true => encode::run(program, context.target).map_err(|error| Refusal::Postcondition(error.to_string()));
    }
    tests {
        /// An example of a stage: this row and its file.
        Probe = "probe", probe::is_needed(program) => probe::run(program);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_consistent() {
        for (i, stage) in Stage::every().enumerate() {
            assert_eq!(stage as usize, i, "{stage}");
            assert_eq!(Stage::every().filter(|other| other.name() == stage.name()).count(), 1, "{stage}");
            // Nir's values are in no registers between which they could be moved.
            assert!(!stage.moves_values() || stage > Stage::Select, "{stage}");
        }
    }

    #[test]
    fn names_are_found() {
        for stage in Stage::every() {
            assert_eq!(Stage::from_name(stage.name()), Some(stage));
        }
        assert_eq!(Stage::from_name("decode"), None);
        for feature in Feature::ALL {
            assert_eq!(Features::only(feature).iter().collect::<Vec<_>>(), [feature]);
        }
        assert!(!Options { last: Stage::DeadCode, ..Options::default() }.runs(Stage::LowerCopies));
        assert!(!Options::default().without(Feature::DeadCode).runs(Stage::DeadCode));
        assert!(!Options::default().without(Feature::Fold).runs(Stage::Fold));
        let none = Options { features: Features::empty(), ..Options::default() };
        assert!(none.runs(Stage::Predicates));
    }
}
