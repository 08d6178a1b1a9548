//! The stages of the backend, in order.
//!
//! A [`Stage`] is a function from a program to a program. Each is one row of the table below, with its [features](Feature).
//! [`compilation`](crate::compilation) runs them one after the other; a single stage is [`run_nir_stage`], [`select`] or [`run_stage`], by the language that it reads.

mod allocator;
mod error;
mod features;
mod i965;
mod options;
mod own_pass;
#[cfg(test)]
mod probe;
mod run;
mod stage;

use crate::arms::{Counter, Skip};
pub use crate::graph_colouring::Rotation;
use crate::i965::vec4;
pub use crate::regalloc::{AllocationRules, Coalescing, RegisterLimit};
use crate::select::SelectError;
use crate::target::{Backend, Target};
use crate::{encode, ir3, legalize, lower_samgq, lower_subgroups, nir, nir_passes, opt, regalloc, repeat, schedule};
pub use allocator::Allocator;
pub use error::{CompileError, ErrorKind, Refusal};
pub use features::Features;
pub use i965::{run_vec4_stage, select_vec4};
pub use options::Options;
pub use own_pass::OwnPass;
pub use run::{Change, run_nir_stage, run_stage, select};
pub(crate) use run::{nir_stage, selected, stage_on_ir3};
use std::borrow::Cow;
use std::fmt;

/// The inputs of a stage in addition to the program.
pub(crate) struct Context<'a> {
    pub(crate) target: &'a Target,
    pub(crate) options: &'a Options,
    pub(crate) counter: &'a Counter,
}

impl Context<'_> {
    fn uses(&self, feature: Feature) -> bool {
        self.options.features.contains(feature)
    }

    /// The maximum number of predicate registers of the program.
    fn predicate_registers(&self) -> u32 {
        if self.uses(Feature::PredicateRegisters) { self.target.num_predicates } else { 1 }
    }
}

type StageResult<T> = Result<T, Refusal>;

/// The functions of a stage, by the languages that it reads and writes. `is_needed` has only a shared reference to the
/// program. So if a stage is not needed, the program after it is the program before it; code that compares boundaries
/// relies on that.
enum Functions {
    /// nir to nir.
    Nir { is_needed: fn(&nir::Shader, &Target) -> bool, run: fn(&mut nir::Shader, &Counter) },
    /// nir to vec4.
    Vec4Selection,
    /// vec4 to vec4.
    Vec4 { is_needed: fn(Features) -> bool, run: fn(&mut vec4::Program, Features) -> bool },
    /// nir to ir3.
    Selection,
    /// ir3 to ir3.
    Ir3 {
        is_needed: fn(&ir3::Program, &Context<'_>) -> StageResult<bool>,
        run: fn(&mut ir3::Program, &Context<'_>) -> StageResult<()>,
    },
}

/// A stage can be disabled, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It has [features](Feature), without which it does not run.
    Optional,
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
    functions: Functions,
}

/// A row of the table of features.
struct FeatureRow {
    name: &'static str,
    stage: Stage,
}

/// Declares the stages and their features. A row is: documentation, variant, name, [`Need`], [`StageKind`] (of a stage
/// on ir3), features, [`Functions`]. The rows under `tests` exist in unit tests only.
macro_rules! stages {
    (
        i965 { $(
            $(#[$vec4_doc:meta])*
            $vec4:ident = $vec4_name:literal, $vec4_need:ident,
            [$($(#[$vec4_part_doc:meta])* $vec4_part:ident = $vec4_part_name:literal,)*], $vec4_functions:expr;
        )* }
        nir { $(
            $(#[$nir_doc:meta])*
            $nir:ident = $nir_name:literal, $nir_need:ident,
            [$($(#[$nir_part_doc:meta])* $nir_part:ident = $nir_part_name:literal,)*], $nir_functions:expr;
        )* }
        ir3 { $(
            $(#[$doc:meta])*
            $stage:ident = $name:literal, $need:ident, $kind:ident,
            [$($(#[$part_doc:meta])* $part:ident = $part_name:literal,)*], $functions:expr;
        )* }
        tests { $(
            $(#[$test_doc:meta])*
            $test:ident = $test_name:literal, $test_need:ident, $test_kind:ident,
            [$($(#[$test_part_doc:meta])* $test_part:ident = $test_part_name:literal,)*], $test_functions:expr;
        )* }
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

        /// An optional stage, or an optional part of one that is useful by itself. Each can be left out alone, to
        /// measure its effect, or to test if it is the faulty one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Feature {
            $($($(#[$nir_part_doc])* $nir_part,)*)*
            $($($(#[$vec4_part_doc])* $vec4_part,)*)*
            $($($(#[$part_doc])* $part,)*)*
            $($($(#[$test_part_doc])* #[cfg(test)] $test_part,)*)*
        }

        static ROWS: [StageRow; Stage::NIR.len() + Stage::VEC4.len() + Stage::IR3.len()] = [
            $(StageRow { name: $nir_name, need: Need::$nir_need, kind: StageKind::Computes, functions: $nir_functions },)*
            $(StageRow {
                name: $vec4_name,
                need: Need::$vec4_need,
                kind: StageKind::Computes,
                functions: $vec4_functions,
            },)*
            $(StageRow { name: $name, need: Need::$need, kind: StageKind::$kind, functions: $functions },)*
            $(
                #[cfg(test)]
                StageRow { name: $test_name, need: Need::$test_need, kind: StageKind::$test_kind, functions: $test_functions },
            )*
        ];

        static FEATURES: &[(Feature, FeatureRow)] = &[
            $($((Feature::$nir_part, FeatureRow { name: $nir_part_name, stage: Stage::$nir }),)*)*
            $($((Feature::$vec4_part, FeatureRow { name: $vec4_part_name, stage: Stage::$vec4 }),)*)*
            $($((Feature::$part, FeatureRow { name: $part_name, stage: Stage::$stage }),)*)*
            $($(
                #[cfg(test)]
                (Feature::$test_part, FeatureRow { name: $test_part_name, stage: Stage::$test }),
            )*)*
        ];
    };
}

i965::with_stages! { stages
    nir {
        /// 64-bit sums become pairs of operations on words. nir to nir.
        SplitAdditions = "split-additions", Optional, [
            /// 64-bit sums are split before selection.
            SplitAdditions = "split-additions",
        ], Functions::Nir {
            // vec4 has no halves of sums.
            is_needed: |shader, target| {
                target.backend != Backend::Vec4 && nir_passes::split_additions::is_needed(&shader.entry)
            },
            run: |shader, _| nir_passes::split_additions::run(&mut shader.entry),
        };
        /// Negations of conditions move inwards, where branches read two predicates. nir to nir.
        DeMorgan = "de-morgan", Optional, [
            /// Negations of conditions go inside, where branches read two predicates.
            DeMorgan = "de-morgan",
        ], Functions::Nir {
            is_needed: |shader, target| target.has_branch_and_or && nir_passes::de_morgan::is_needed(&shader.entry),
            run: |shader, counter| nir_passes::de_morgan::run(&mut shader.entry, counter),
        };
        /// The preamble becomes code of each invocation, where the target has none. nir to nir.
        InlinePreamble = "inline-preamble", Optional, [
            /// Preambles are inlined for vec4.
            InlinePreamble = "inline-preamble",
        ], Functions::Nir {
            is_needed: |shader, target| {
                target.backend == Backend::Vec4 && nir_passes::inline_preamble::is_needed(&shader.entry)
            },
            run: |shader, counter| nir_passes::inline_preamble::run(&mut shader.entry, counter),
        };
    }
    ir3 {
        /// nir to ir3 in SSA form.
        Select = "select", Always, Computes, [], Functions::Selection;
        /// Uniform values move to shared registers, their computation to the scalar ALU.
        ScalarAlu = "scalar-alu", Optional, Computes, [
            /// Uniform values are computed by the scalar ALU, where the target has one.
            ScalarAlu = "scalar-alu",
        ], Functions::Ir3 {
            is_needed: |_, context| Ok(context.target.has_shared_regfile),
            run: |program, context| {
                opt::scalar_alu::run(program, context.target, context.counter);
                Ok(())
            },
        };
        /// Copies, modifiers, immediates and constants are folded into the instructions that read them.
        CopyPropagation = "copy-propagation", Optional, Computes, [
            /// Copies are propagated.
            CopyPropagation = "copy-propagation",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                opt::copy_propagation::run(program, context.target, context.counter);
                Ok(())
            },
        };
        /// A value that has been computed already is not computed a second time.
        ValueNumbering = "value-numbering", Optional, Computes, [
            /// Values that are available are reused.
            ValueNumbering = "value-numbering",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                opt::value_numbering::run(program, context.counter);
                Ok(())
            },
        };
        /// Immediates that no operand can hold are put into the constant file.
        Constants = "constants", Optional, Computes, [
            /// Immediates go to the constant file.
            Constants = "constants",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(opt::constants::is_needed(program)),
            run: |program, context| {
                opt::constants::run(program, context.target, context.counter);
                Ok(())
            },
        };
        /// Instructions without effects whose results are not read are removed.
        DeadCode = "dead-code", Optional, Computes, [
            /// Dead code is removed.
            DeadCode = "dead-code",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, _| {
                opt::dead_code::run(program);
                Ok(())
            },
        };
        /// Clamps are folded into the operations that compute their operands.
        Saturation = "saturation", Optional, Computes, [
            /// Clamps are folded into the operations that compute their operands.
            Saturation = "saturation",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(opt::saturation::is_needed(program)),
            run: |program, context| {
                opt::saturation::run(program, context.counter);
                Ok(())
            },
        };
        /// Results are computed as their readers want them: predicates, other widths, negations.
        Fold = "fold", Optional, Computes, [
            /// Results are computed as their readers want them.
            Fold = "fold",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(opt::fold::is_needed(program)),
            run: |program, context| {
                opt::fold::run(program, context.target, context.counter);
                Ok(())
            },
        };
        /// Small ifs are predicated: lanes are inactive instead of branching.
        Predication = "predication", Optional, Computes, [
            /// Small ifs are predicated.
            Predication = "predication",
        ], Functions::Ir3 {
            is_needed: |program, context| Ok(opt::predication::is_needed(program, context.target)),
            run: |program, context| {
                opt::predication::run(program, context.counter);
                Ok(())
            },
        };
        /// A pass that the caller brings along: [`Options::own_pass`].
        OwnPass = "own-pass", Given, Computes, [], Functions::Ir3 {
            is_needed: |_, context| Ok(context.options.own_pass.is_some()),
            run: |program, context| match context.options.own_pass {
                Some(pass) => Ok(pass.run(program, context.target)?),
                None => Ok(()),
            },
        };
        /// The instructions of each block are ordered so that results are available when they are read.
        Schedule = "schedule", Always, Moves, [
            /// Instructions are put in order.
            Schedule = "schedule",
            /// Predicates do not wait for each other in the schedule.
            PredicateScheduling = "predicate-scheduling",
            /// The schedule may use as many registers as the waves allow, and other orders are tried if fewer registers
            /// give more waves.
            ScheduleOccupancy = "schedule-occupancy",
        ], Functions::Ir3 {
            is_needed: |program, context| {
                Ok(context.uses(Feature::Schedule) && schedule::before::is_needed(program))
            },
            run: |program, context| {
                let predicates = context.uses(Feature::PredicateScheduling);
                let registers = context.predicate_registers();
                let rules = schedule::dependencies::ScheduleRules { predicates, registers, occupancy: context.uses(Feature::ScheduleOccupancy) };
                let files = context.options.registers.files(context.target);
                schedule::before::run(program, context.target, files, rules);
                Ok(())
            },
        };
        /// Registers for predicates and addresses; critical edges get blocks of their own. Otherwise still SSA.
        Predicates = "predicates", Always, Moves, [
            /// All predicate registers are used, not only one.
            PredicateRegisters = "predicate-registers",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(regalloc::has_predicates(program)),
            run: |program, context| {
                Ok(regalloc::predicates_within(program, context.target, context.predicate_registers())?)
            },
        };
        /// Registers for shared values; physical edges. General values are still in SSA form.
        SharedRegisters = "shared-registers", Always, Computes, [], Functions::Ir3 {
            is_needed: |program, _| Ok(regalloc::shared::is_needed(program)),
            run: |program, context| {
                let files = context.options.registers.files(context.target);
                Ok(regalloc::shared::run(program, context.target, files)?)
            },
        };
        /// Arrays for which registers do not suffice are kept in scratch memory.
        SpillArrays = "spill-arrays", Always, Moves, [], Functions::Ir3 {
            is_needed: |program, context| {
                let Options { registers, allocator, .. } = *context.options;
                let rules = context.options.allocation_rules();
                Ok(allocator.with_spilling(context.target, registers, rules, |spilling| {
                    regalloc::spill_arrays::is_needed(program, context.target, registers, rules.coalescing, spilling)
                })?)
            },
            run: |program, context| {
                let Options { registers, allocator, .. } = *context.options;
                let rules = context.options.allocation_rules();
                Ok(allocator.with_spilling(context.target, registers, rules, |spilling| {
                    regalloc::spill_arrays::run(program, context.target, registers, rules.coalescing, spilling)
                })?)
            },
        };
        /// Values that find no register are spilled and reloaded.
        Spill = "spill", Always, Moves, [
            /// Parts of live ranges and single components are spilled.
            PartialSpilling = "partial-spilling",
        ], Functions::Ir3 {
            is_needed: |program, context| {
                let Options { registers, allocator, .. } = *context.options;
                Ok(allocator.is_spilling_needed(program, context.target, registers, context.options.allocation_rules())?)
            },
            run: |program, context| {
                let Options { registers, allocator, .. } = *context.options;
                Ok(allocator.spill(program, context.target, registers, context.options.allocation_rules())?)
            },
        };
        /// Physical registers; phis become parallel copies.
        RegisterAllocation = "register-allocation", Always, Moves, [
            /// Values that can be one variable are merged.
            MergeSets = "merge-sets",
            /// Vectors are merged with their parts, too.
            VectorCoalescing = "vector-coalescing",
            /// Values are moved to free registers for others.
            LiveRangeSplitting = "live-range-splitting",
            /// More registers than needed are taken where that costs no waves.
            Occupancy = "occupancy",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                let Options { registers, allocator, .. } = *context.options;
                Ok(allocator.run(program, context.target, registers, context.options.allocation_rules(), context.counter)?)
            },
        };
        /// Spills and reloads become accesses to scratch memory.
        LowerSpills = "lower-spills", Always, Moves, [], Functions::Ir3 {
            is_needed: |program, _| Ok(regalloc::lower_spills::is_needed(program)),
            run: |program, _| Ok(regalloc::lower_spills::run(program)?),
        };
        /// Parallel copies, collects and splits become moves and swaps.
        LowerCopies = "lower-copies", Always, Moves, [], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| Ok(regalloc::lower_copies::run(program, context.target, context.counter)?),
        };
        /// `samgq` becomes four instructions, one for each lane of a quad, where it would return wrong data.
        LowerSamgq = "lower-samgq", Always, Computes, [], Functions::Ir3 {
            is_needed: |program, context| Ok(lower_samgq::is_needed(program, context.target)),
            run: |program, _| {
                lower_samgq::run(program);
                Ok(())
            },
        };
        /// Adjacent instructions on consecutive registers become one with `(rptN)`. Before the second scheduler, which keeps them together.
        Repeat = "repeat", Optional, Computes, [
            /// Instructions are repeated with `(rptN)`.
            Repeat = "repeat",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                repeat::run(program, context.target, context.counter);
                Ok(())
            },
        };
        /// The instructions of each block are ordered again, now that registers are known. Moves to the same register are removed.
        PostSchedule = "post-schedule", Optional, Moves, [
            /// Instructions with registers are put in order.
            PostSchedule = "post-schedule",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                schedule::after::remove_self_moves(program);
                schedule::after::run(program, context.target);
                Ok(())
            },
        };
        /// Subgroup macros become control flow.
        LowerSubgroups = "lower-subgroups", Always, Computes, [], Functions::Ir3 {
            is_needed: |program, _| Ok(lower_subgroups::is_needed(program)),
            run: |program, _| {
                lower_subgroups::run(program);
                Ok(())
            },
        };
        /// Branches, waits for results, nops: the program is final.
        Legalize = "legalize", Always, Computes, [], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                legalize::run(program, context.target);
                Ok(())
            },
        };
        /// Encodes the program; the result is the decoded encoding.
        Encode = "encode", Always, Computes, [], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                encode::run(program, context.target).map_err(|error| Refusal::Postcondition(error.to_string()))
            },
        };
    }
    tests {
        /// An example of a stage: this row and its file.
        Probe = "probe", Optional, Computes, [
            /// Programs of 61 lanes end with a nop.
            Probe = "probe",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(probe::is_needed(program)),
            run: |program, _| {
                probe::run(program);
                Ok(())
            },
        };
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
            // Every optional stage has a feature that disables it.
            assert!(!stage.is_optional() || Features::all().iter().any(|feature| feature.stage() == stage), "{stage}");
            // Nir's values are in no registers between which they could be moved.
            assert!(!stage.moves_values() || stage > Stage::Select, "{stage}");
        }
        for (i, feature) in Feature::every().enumerate() {
            assert_eq!(feature as usize, i, "{feature}");
            assert_eq!(Feature::every().filter(|other| other.name() == feature.name()).count(), 1, "{feature}");
        }
    }

    #[test]
    fn names_are_found() {
        for stage in Stage::every() {
            assert_eq!(Stage::from_name(stage.name()), Some(stage));
        }
        assert_eq!(Stage::from_name("decode"), None);
        for feature in Features::all().iter() {
            assert_eq!(Feature::from_name(feature.name()), Some(feature));
            assert!(Options::default().runs(feature.stage()));
        }
        assert!(!Options { last: Stage::DeadCode, ..Options::default() }.runs(Stage::LowerCopies));
        assert!(!Options::default().without(Feature::DeadCode).runs(Stage::DeadCode));
        assert!(!Options::default().without(Feature::Fold).runs(Stage::Fold));
        let none = Options { features: Features::empty(), ..Options::default() };
        assert!(none.runs(Stage::Predicates));
    }
}
