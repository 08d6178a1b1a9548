//! The stages of the i965 backends, and the forms of their passes by feature.

use super::{Change, CompileError, Feature, Features, Functions, Options, Stage};
pub use crate::i965::scalar_passes::{self, combine_additions, lower_additions};
pub use crate::i965::vec4_passes::{cmod_propagation, dead_code, live_variables};
use crate::i965::{scalar_select, vec4, vec4_select};

/// Calls a macro with the rows of these stages, then with the rows that it is given.
macro_rules! with_stages {
    ($stages:ident $($rows:tt)*) => {
        $stages! {
            i965 {
                /// nir to vec4, for the targets with that backend.
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
                ], Functions::Vec4 {
                    is_needed: |features| features.contains(Feature::Vec4DeadCode),
                    run: |program, features| i965::dead_code::run(program, i965::flag(features)),
                };
                /// Comparisons with zero become conditional modifiers of the instructions that compute their operands.
                CmodPropagation = "cmod-propagation", Always, [
                    /// Conditional modifiers are propagated.
                    CmodPropagation = "cmod-propagation",
                ], Functions::Vec4 {
                    is_needed: |features| features.contains(Feature::CmodPropagation),
                    run: |program, _| i965::cmod_propagation::run(program),
                };
                /// Dead code again, after conditional modifiers have been propagated.
                Vec4LateDeadCode = "vec4-late-dead-code", Always, [], Functions::Vec4 {
                    is_needed: |features| features.contains(Feature::Vec4DeadCode),
                    run: |program, features| i965::dead_code::run(program, i965::flag(features)),
                };
                /// nir to a scalar program, for the targets with that backend.
                ScalarSelect = "scalar-select", Always, [
                    /// A thread of a scalar program has 16 invocations, not 8.
                    Simd16 = "simd16",
                ], Functions::Vec4Selection;
                /// The halves of 64-bit sums become instructions of the hardware.
                LowerAdditions = "lower-additions", Always, [
                    /// The carry of a 64-bit sum goes through the accumulator.
                    CarryAccumulator = "carry-accumulator",
                    /// It goes through the flag, if not through the accumulator; else it is a comparison.
                    CarryFlag = "carry-flag",
                    /// With the accumulator, the high words of 16 invocations are added by one instruction.
                    WideSum = "wide-sum",
                ], Functions::Vec4 {
                    is_needed: |_| true,
                    run: |program, features| i965::lower_additions::run(program, i965::lower_additions_rules(features)),
                };
                /// The two instructions that compute the low word of a sum and its carry become one.
                CombineAdditions = "combine-additions", Optional, [
                    /// Matched pairs of sums are combined.
                    CombineAdditions = "combine-additions",
                ], Functions::Vec4 {
                    is_needed: |_| true,
                    run: |program, _| i965::combine_additions::run(program),
                };
                /// Dead code is removed from scalar programs.
                ScalarDeadCode = "scalar-dead-code", Optional, [
                    /// Dead code is removed from scalar programs.
                    ScalarDeadCode = "scalar-dead-code",
                ], Functions::Vec4 {
                    is_needed: |_| true,
                    run: |program, _| i965::scalar_passes::dead_code::run(program),
                };
            }
            $($rows)*
        }
    };
}
pub(super) use with_stages;

/// Runs the stage from nir to a vec4 or scalar program.
///
/// # Errors
/// If the shader has something that the language does not support.
pub fn select_vec4(
    stage: Stage,
    shader: &crate::nir::Shader,
    options: &Options,
) -> Result<vec4::Program, CompileError> {
    let uses = |feature| options.features.contains(feature);
    if stage == Stage::ScalarSelect {
        let mode = if uses(Feature::Simd16) { vec4::Mode::Simd16 } else { vec4::Mode::Simd8 };
        return scalar_select::run(shader, mode).map_err(|error| CompileError::new(stage, error.into()));
    }
    let rules =
        vec4_select::Rules { replicate_sel: uses(Feature::ReplicateSel), replicate_if: uses(Feature::ReplicateIf) };
    vec4_select::run(shader, rules).map_err(|error| CompileError::new(Stage::Vec4Select, error.into()))
}

/// Runs one stage on a vec4 or scalar program. Other stages do nothing here.
pub fn run_vec4_stage(stage: Stage, program: &mut vec4::Program, options: &Options) -> Change {
    match stage.row().functions {
        Functions::Vec4 { is_needed, run } if is_needed(options.features) && run(program, options.features) => {
            Change::Something
        }
        _ => Change::Nothing,
    }
}

/// The model of the flag for dead-code elimination on vec4.
pub fn flag(features: Features) -> live_variables::Flag {
    live_variables::Flag { channels: features.contains(Feature::FlagChannels) }
}

/// The form of 64-bit sums in scalar programs.
pub fn lower_additions_rules(features: Features) -> lower_additions::Rules {
    lower_additions::Rules {
        carry: match () {
            () if features.contains(Feature::CarryAccumulator) => lower_additions::Carry::Accumulator,
            () if features.contains(Feature::CarryFlag) => lower_additions::Carry::Flag,
            () => lower_additions::Carry::Comparison,
        },
        wide_sum: features.contains(Feature::WideSum),
    }
}
