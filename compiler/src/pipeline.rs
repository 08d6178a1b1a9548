//! The stages of the backend, in order.
//!
//! A [`Stage`] is a function from a program to a program. Each is one row of the table below, with its [features](Feature).
//! [`compilation`](crate::compilation) runs them one after the other; a single stage is [`run_nir_stage`], [`select`] or [`run_stage`], by the language that it reads.

mod features;
mod own_pass;
#[cfg(test)]
mod probe;

pub use crate::regalloc::graph_colouring::Rotation;
pub use crate::regalloc::{Allocator, RegisterLimit};
use crate::select::SelectError;
use crate::target::{Backend, Target};
use crate::vec4_passes::{cmod_propagation, dead_code, live_variables};
use crate::{
    encode, ir3, legalize, lower_samgq, lower_subgroups, nir, nir_passes, opt, regalloc, repeat, schedule, vec4,
    vec4_select,
};
pub use features::Features;
pub use own_pass::OwnPass;
use std::borrow::Cow;
use std::fmt;

/// The inputs of a stage beside the program.
struct Context<'a> {
    target: &'a Target,
    options: &'a Options,
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
    Nir { is_needed: fn(&nir::Shader, &Target) -> bool, run: fn(&mut nir::Shader) },
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

/// A feature as the table has it.
struct FeatureRow {
    name: &'static str,
    stage: Stage,
}

/// Declares the stages and their features. A row is: documentation, variant, name, [`Need`], [`StageKind`] (of a stage on ir3), features,
/// [`Functions`]. The rows under `tests` are there in unit tests only.
macro_rules! stages {
    (
        nir { $(
            $(#[$nir_doc:meta])*
            $nir:ident = $nir_name:literal, $nir_need:ident,
            [$($(#[$nir_part_doc:meta])* $nir_part:ident = $nir_part_name:literal,)*], $nir_functions:expr;
        )* }
        vec4 { $(
            $(#[$vec4_doc:meta])*
            $vec4:ident = $vec4_name:literal, $vec4_need:ident,
            [$($(#[$vec4_part_doc:meta])* $vec4_part:ident = $vec4_part_name:literal,)*], $vec4_functions:expr;
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

            /// The stages whose result is a vec4 program, in order.
            pub const VEC4: [Self; [$(Self::$vec4),*].len()] = [$(Self::$vec4),*];

            /// The stages whose result is an ir3 program, in order.
            const IR3: [Self; [$(Self::$stage,)* $(#[cfg(test)] Self::$test,)*].len()] =
                [$(Self::$stage,)* $(#[cfg(test)] Self::$test,)*];
        }

        /// Something that the backend can do without: an optional stage, or a part of a stage that is worth something by itself. Each
        /// can be left out alone, to see what it is worth, or whether it is the one that goes wrong.
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

stages! {
    nir {
        /// 64-bit sums become pairs of operations on words. nir to nir.
        SplitAdditions = "split-additions", Optional, [
            /// 64-bit sums are split before selection.
            SplitAdditions = "split-additions",
        ], Functions::Nir {
            // vec4 has no halves of sums.
            is_needed: |shader, target| {
                target.backend == Backend::Ir3 && nir_passes::split_additions::is_needed(&shader.entry)
            },
            run: |shader| nir_passes::split_additions::run(&mut shader.entry),
        };
        /// Negations of conditions move inwards, where branches read two predicates. nir to nir.
        DeMorgan = "de-morgan", Optional, [
            /// Negations of conditions go inside, where branches read two predicates.
            DeMorgan = "de-morgan",
        ], Functions::Nir {
            is_needed: |shader, target| target.has_branch_and_or && nir_passes::de_morgan::is_needed(&shader.entry),
            run: |shader| nir_passes::de_morgan::run(&mut shader.entry),
        };
    }
    vec4 {
        /// nir to vec4, for the targets that have it.
        Vec4Select = "vec4-select", Always, [
            /// A selection of one channel has a replicated predicate.
            ReplicateSel = "replicate-sel",
            /// A branch has a replicated predicate.
            ReplicateIf = "replicate-if",
        ], Functions::Vec4Selection;
        /// Dead code is removed from vec4 programs, and dead channels from writemasks.
        Vec4DeadCode = "vec4-dead-code", Always, [
            /// Dead code is removed from vec4 programs.
            Vec4DeadCode = "vec4-dead-code",
            /// The channels of the flag are tracked one by one.
            FlagChannels = "flag-channels",
            /// A predicated instruction does not kill the flag.
            FlagPredicates = "flag-predicates",
            /// An instruction on one vertex does not kill the flag.
            FlagExecSizes = "flag-exec-sizes",
            /// An instruction kills the channels of the flag in its writemask only.
            FlagWritemasks = "flag-writemasks",
            /// An instruction that writes a register and the flag keeps the live channels of both.
            FlagBothMasks = "flag-both-masks",
        ], Functions::Vec4 {
            is_needed: |features| features.contains(Feature::Vec4DeadCode),
            run: |program, features| dead_code::run(program, dead_code_rules(features)),
        };
        /// Comparisons with zero become conditional modifiers of what they compare.
        CmodPropagation = "cmod-propagation", Always, [
            /// Conditional modifiers are propagated.
            CmodPropagation = "cmod-propagation",
            /// The producer writes all channels that the comparison writes.
            CmodWritemasks = "cmod-writemasks",
            /// The comparison reads the channels that the producer writes to the same bits of the flag.
            CmodSwizzles = "cmod-swizzles",
            /// Other channels of the flag that the producer would write are dead.
            CmodLiveChannels = "cmod-live-channels",
            /// The flag of a comparison is no comparison of its result with zero.
            CmodResults = "cmod-results",
            /// A flag with another condition does not make a test for not zero redundant.
            CmodConditions = "cmod-conditions",
            /// Clamped results are compared after they are clamped.
            CmodSaturated = "cmod-saturated",
        ], Functions::Vec4 {
            is_needed: |features| features.contains(Feature::CmodPropagation),
            run: |program, features| cmod_propagation::run(program, cmod_rules(features)),
        };
        /// Dead code again, after conditional modifiers have been propagated.
        Vec4LateDeadCode = "vec4-late-dead-code", Always, [], Functions::Vec4 {
            is_needed: |features| features.contains(Feature::Vec4DeadCode),
            run: |program, features| dead_code::run(program, dead_code_rules(features)),
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
                opt::scalar_alu::run(program, context.target);
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
                opt::copy_propagation::run(program, context.target);
                Ok(())
            },
        };
        /// A value that has been computed already is not computed a second time.
        ValueNumbering = "value-numbering", Optional, Computes, [
            /// Values that are available are reused, except comparisons.
            ValueNumbering = "value-numbering",
            /// Comparisons that have been made are not made again.
            ComparisonNumbering = "comparison-numbering",
        ], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                let rules = opt::value_numbering::NumberingRules {
                    comparisons: context.uses(Feature::ComparisonNumbering),
                    others: context.uses(Feature::ValueNumbering),
                };
                opt::value_numbering::run(program, rules);
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
                opt::constants::run(program, context.target);
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
        /// Clamps are folded into the operations that compute what is clamped.
        Saturation = "saturation", Optional, Computes, [
            /// Clamps are folded into what they clamp.
            Saturation = "saturation",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(opt::saturation::is_needed(program)),
            run: |program, _| {
                opt::saturation::run(program);
                Ok(())
            },
        };
        /// Results are computed as their readers want them: predicates, other widths, negations.
        Fold = "fold", Optional, Computes, [
            /// Negations are folded into branches, selections and bitwise operations.
            Negations = "negations",
            /// Branches read two predicates.
            BranchAndOr = "branch-and-or",
            /// Also where several branches read one condition, or branches of other blocks.
            SeveralBranches = "several-branches",
            /// Subgroup votes become vote branches.
            VoteBranches = "vote-branches",
            /// Comparisons write predicates.
            PredicateComparisons = "predicate-comparisons",
            /// Bitwise operations write predicates.
            PredicateBitops = "predicate-bitops",
            /// Comparisons and bitwise operations whose results are also read as numbers write a predicate besides.
            PredicateCopies = "predicate-copies",
            /// Tests of single bits are `getbit.b`.
            PredicateBits = "predicate-bits",
            /// Other values are tested where they are defined.
            EarlyTests = "early-tests",
            /// Operations convert their own results.
            Conversions = "conversions",
        ], Functions::Ir3 {
            is_needed: |program, _| Ok(opt::fold::is_needed(program)),
            run: |program, context| {
                let rules = opt::fold::FoldRules {
                    negations: context.uses(Feature::Negations),
                    branch_and_or: context.uses(Feature::BranchAndOr),
                    several_branches: context.uses(Feature::SeveralBranches),
                    votes: context.uses(Feature::VoteBranches),
                    comparisons: context.uses(Feature::PredicateComparisons),
                    bitops: context.uses(Feature::PredicateBitops),
                    number_predicates: context.uses(Feature::PredicateCopies),
                    bits: context.uses(Feature::PredicateBits),
                    early_tests: context.uses(Feature::EarlyTests),
                    conversions: context.uses(Feature::Conversions),
                };
                opt::fold::run(program, context.target, rules);
                Ok(())
            },
        };
        /// Small ifs are predicated: lanes are inactive instead of branching.
        Predication = "predication", Optional, Computes, [
            /// Small ifs are predicated.
            Predication = "predication",
        ], Functions::Ir3 {
            is_needed: |program, context| Ok(opt::predication::is_needed(program, context.target)),
            run: |program, _| {
                opt::predication::run(program);
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
        /// The instructions of each block are ordered so that results are there when they are read.
        Schedule = "schedule", Always, Moves, [
            /// Instructions are put in order.
            Schedule = "schedule",
            /// In that order, predicates do not wait for each other.
            PredicateScheduling = "predicate-scheduling",
        ], Functions::Ir3 {
            is_needed: |program, context| {
                Ok(context.uses(Feature::Schedule) && schedule::before::is_needed(program))
            },
            run: |program, context| {
                let predicates = context.uses(Feature::PredicateScheduling);
                let registers = context.predicate_registers();
                let rules = schedule::dependencies::ScheduleRules { predicates, registers };
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
        /// Values that find no register are spilled and reloaded.
        Spill = "spill", Always, Moves, [], Functions::Ir3 {
            is_needed: |program, context| {
                let options = context.options;
                Ok(options.allocator.is_spilling_needed(program, context.target, options.registers)?)
            },
            run: |program, context| {
                let options = context.options;
                Ok(options.allocator.spill(program, context.target, options.registers)?)
            },
        };
        /// Physical registers; phis become parallel copies.
        RegisterAllocation = "register-allocation", Always, Moves, [], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                let options = context.options;
                Ok(options.allocator.run(program, context.target, options.registers)?)
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
            run: |program, context| Ok(regalloc::lower_copies::run(program, context.target)?),
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
                repeat::run(program, context.target);
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
        /// Words, and the program as they say it.
        Encode = "encode", Always, Computes, [], Functions::Ir3 {
            is_needed: |_, _| Ok(true),
            run: |program, context| {
                encode::run(program, context.target).map_err(|error| Refusal::Postcondition(error.to_string()))
            },
        };
    }
    tests {
        /// Shows what a stage takes: this row and its file.
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

/// The form of dead-code elimination on vec4.
fn dead_code_rules(features: Features) -> dead_code::Rules {
    dead_code::Rules {
        flag: live_variables::FlagRules {
            channels: features.contains(Feature::FlagChannels),
            predicated: features.contains(Feature::FlagPredicates),
            exec_size: features.contains(Feature::FlagExecSizes),
            writemask: features.contains(Feature::FlagWritemasks),
        },
        both_masks: features.contains(Feature::FlagBothMasks),
    }
}

/// The form of the propagation of conditional modifiers.
fn cmod_rules(features: Features) -> cmod_propagation::Rules {
    cmod_propagation::Rules {
        writemasks: features.contains(Feature::CmodWritemasks),
        swizzles: features.contains(Feature::CmodSwizzles),
        live_channels: features.contains(Feature::CmodLiveChannels),
        cmp_results: features.contains(Feature::CmodResults),
        same_condition: features.contains(Feature::CmodConditions),
        saturated: features.contains(Feature::CmodSaturated),
    }
}

impl Stage {
    /// Every stage of the backend whose result is an ir3 program, in order: all but [`Stage::OwnPass`].
    pub const ALL: [Self; Self::IR3.len() - 1] = {
        let mut all = [Self::Select; Self::IR3.len() - 1];
        let (mut i, mut count) = (0, 0);
        while i < Self::IR3.len() {
            if !matches!(Self::IR3[i], Self::OwnPass) {
                all[count] = Self::IR3[i];
                count += 1;
            }
            i += 1;
        }
        all
    };

    /// The last stage.
    pub const LAST: Self = Self::IR3[Self::IR3.len() - 1];

    /// Every stage, in order, with [`Stage::OwnPass`].
    pub fn every() -> impl Iterator<Item = Self> {
        Self::NIR.into_iter().chain(Self::VEC4).chain(Self::IR3)
    }

    /// Returns true if it is a stage of a backend, or on nir.
    pub fn is_of(self, backend: Backend) -> bool {
        match backend {
            _ if self < Self::Vec4Select => true,
            Backend::Ir3 => self >= Self::Select,
            Backend::Vec4 => self < Self::Select,
        }
    }

    fn row(self) -> &'static StageRow {
        &ROWS[self as usize]
    }

    /// The name that the command line and the reports use.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns true if the stage can be disabled. It has [features](Feature), without which it does not run.
    pub fn is_optional(self) -> bool {
        self.row().need == Need::Optional
    }

    /// Returns true if it only moves values: it orders instructions, adds moves, spills and reloads, and assigns
    /// registers. The register checker follows such a stage.
    pub fn moves_values(self) -> bool {
        self.row().kind == StageKind::Moves
    }

    /// Returns true if the program after it is final: what the machine runs, with its waits.
    pub fn is_final(self) -> bool {
        self >= Self::Legalize
    }

    /// The stage of a name as [`Stage::name`] gives it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::every().find(|stage| stage.name() == name)
    }
}

impl Feature {
    fn row(self) -> &'static FeatureRow {
        &FEATURES[self as usize].1
    }

    /// Every feature, in the order of the stages.
    pub fn every() -> impl Iterator<Item = Self> {
        FEATURES.iter().map(|(feature, _)| *feature)
    }

    /// The name that the command line and the reports use.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The feature of a name as [`Feature::name`] gives it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::every().find(|feature| feature.name() == name)
    }

    /// Returns true if the feature corrects an unsound form of a pass, which stays selectable to see it fail. A failing program is not reduced by
    /// leaving it out: that would be another failure.
    pub fn is_correction(self) -> bool {
        matches!(
            self,
            Self::FlagPredicates
                | Self::FlagExecSizes
                | Self::FlagWritemasks
                | Self::FlagBothMasks
                | Self::CmodWritemasks
                | Self::CmodSwizzles
                | Self::CmodLiveChannels
                | Self::CmodResults
                | Self::CmodConditions
                | Self::CmodSaturated
        )
    }

    /// The stage of the feature. An [optional](Stage::is_optional) stage with all features disabled does not run.
    pub fn stage(self) -> Stage {
        self.row().stage
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The options of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The enabled features.
    pub features: Features,
    /// The last stage that runs.
    pub last: Stage,
    /// The limit on the number of registers.
    pub registers: RegisterLimit,
    /// The allocator of general registers.
    pub allocator: Allocator,
    /// The pass of the caller that runs as [`Stage::OwnPass`].
    pub own_pass: Option<OwnPass>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            features: Features::all(),
            last: Stage::LAST,
            registers: RegisterLimit::Target,
            allocator: Allocator::Ssa,
            own_pass: None,
        }
    }
}

impl Options {
    /// Returns true if `stage` runs.
    pub fn runs(&self, stage: Stage) -> bool {
        let is_wanted = match stage.row().need {
            Need::Always => true,
            Need::Optional => self.features.iter().any(|feature| feature.stage() == stage),
            Need::Given => self.own_pass.is_some(),
        };
        stage <= self.last && is_wanted
    }

    /// The same options without a feature.
    #[must_use]
    pub fn without(mut self, feature: Feature) -> Self {
        self.features.remove(feature);
        self
    }
}

/// The kind of reason for which a program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The program uses a feature that the backend does not support.
    Unsupported,
    /// The program's values do not fit into the registers.
    NeedsSpilling,
    /// The backend broke one of its invariants.
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
    /// The reason, with the operation and its location.
    pub reason: Refusal,
}

/// The reason for which a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Selection cannot translate it.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// Registers cannot be assigned.
    #[error(transparent)]
    Registers(#[from] regalloc::Error),
    /// A postcondition of a stage does not hold.
    #[error("{0}")]
    Postcondition(String),
}

impl Refusal {
    /// The reason without its location, for comparisons.
    pub fn without_location(&self) -> String {
        match self {
            Self::Select(SelectError { operation, reason, .. }) => format!("{operation}: {reason}"),
            Self::Registers(_) | Self::Postcondition(_) => self.to_string(),
        }
    }
}

impl CompileError {
    fn new(stage: Stage, reason: Refusal) -> Self {
        let kind = match &reason {
            Refusal::Select(_) => ErrorKind::Unsupported,
            Refusal::Postcondition(_) => ErrorKind::Internal,
            Refusal::Registers(error) => match error {
                // All values that can be spilled have been.
                regalloc::Error::NeedsSpilling { file: "full" | "half", .. } if stage == Stage::RegisterAllocation => {
                    ErrorKind::Internal
                }
                // What the stage before has coloured.
                regalloc::Error::Uncoloured { .. } if stage == Stage::RegisterAllocation => ErrorKind::Internal,
                regalloc::Error::NeedsSpilling { .. }
                | regalloc::Error::Uncoloured { .. }
                | regalloc::Error::NoPrivateMemory { .. }
                | regalloc::Error::Instruction { .. } => ErrorKind::NeedsSpilling,
                regalloc::Error::Unsupported { .. } => ErrorKind::Unsupported,
                regalloc::Error::Malformed { .. } => ErrorKind::Internal,
            },
        };
        Self { stage, kind, reason }
    }
}

/// Runs one of the stages on nir.
pub fn run_nir_stage(stage: Stage, shader: &mut Cow<'_, nir::Shader>, target: &Target) -> Change {
    match stage.row().functions {
        Functions::Nir { is_needed, run } if is_needed(shader, target) => {
            run(shader.to_mut());
            Change::Something
        }
        _ => Change::Nothing,
    }
}

/// Runs the stage from nir to vec4.
///
/// # Errors
/// If the shader has something that vec4 does not support.
pub fn select_vec4(shader: &nir::Shader, options: &Options) -> Result<vec4::Program, CompileError> {
    let uses = |feature| options.features.contains(feature);
    let rules =
        vec4_select::Rules { replicate_sel: uses(Feature::ReplicateSel), replicate_if: uses(Feature::ReplicateIf) };
    vec4_select::run(shader, rules).map_err(|error| CompileError::new(Stage::Vec4Select, error.into()))
}

/// Runs one stage on a vec4 program. Other stages do nothing here.
pub fn run_vec4_stage(stage: Stage, program: &mut vec4::Program, options: &Options) -> Change {
    match stage.row().functions {
        Functions::Vec4 { is_needed, run } if is_needed(options.features) && run(program, options.features) => {
            Change::Something
        }
        _ => Change::Nothing,
    }
}

/// Runs the stage from nir to ir3.
///
/// # Errors
/// If the shader has something that the backend does not support.
pub fn select(shader: &nir::Shader, target: &Target) -> Result<ir3::Program, CompileError> {
    if target.backend != Backend::Ir3 {
        let (operation, reason) = ("shader".to_owned(), format!("{target} has no ir3"));
        let error = SelectError { operation, reason, line: None, instr: None };
        return Err(CompileError::new(Stage::Select, error.into()));
    }
    let mut program =
        crate::select::run(shader, target).map_err(|error| CompileError::new(Stage::Select, error.into()))?;
    opt::constants::declare(&mut program, target, array_words(&shader.info));
    Ok(program)
}

/// The words of the constant file that the uniforms and the constants of a shader may have, with room for their alignment to four vec4.
fn array_words(info: &nir::Info) -> u32 {
    let constants = info.get("constants").and_then(|bytes| bytes.trim().parse::<u32>().ok()).unwrap_or(0);
    let words = |vec4: u32| vec4.next_multiple_of(4).saturating_mul(4);
    words(info.uniforms).saturating_add(words(constants.div_ceil(16)))
}

/// The change that a stage made to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// None: it had only a shared reference to the program.
    Nothing,
    /// Possibly some.
    Something,
}

/// Runs one stage on a program. [`Stage::Select`] and the stages on nir do nothing here.
///
/// # Errors
/// If the stage refuses the program.
pub fn run_stage(
    stage: Stage,
    program: &mut ir3::Program,
    target: &Target,
    options: &Options,
) -> Result<Change, CompileError> {
    let refused = |reason| CompileError::new(stage, reason);
    let context = Context { target, options };
    match stage.row().functions {
        Functions::Ir3 { is_needed, run } if is_needed(program, &context).map_err(refused)? => {
            run(program, &context).map_err(refused)?;
            Ok(Change::Something)
        }
        _ => Ok(Change::Nothing),
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
        let one = Options::default().without(Feature::ValueNumbering);
        assert!(
            one.runs(Stage::ValueNumbering) && !one.without(Feature::ComparisonNumbering).runs(Stage::ValueNumbering)
        );
        let none = Options { features: Features::empty(), ..Options::default() };
        assert!(none.runs(Stage::Predicates));
    }
}
