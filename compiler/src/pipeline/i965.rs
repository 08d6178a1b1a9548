//! The stages of the i965 backends, and the forms of their passes by feature.

use super::{Change, CompileError, Context, Feature, Options, Stage};
use crate::arms::Counter;
use crate::i965::scalar_passes::lower_additions;
use crate::i965::vec4_passes::live_variables::Flag;
use crate::i965::{scalar_select, vec4, vec4_select};
use crate::target::{GEN7, GEN7_SCALAR};
use std::cell::RefCell;

/// Calls a macro with the rows of these stages, then with the rows that it is given.
macro_rules! with_stages {
    ($stages:ident $($rows:tt)*) => {
        $stages! {
            i965 (program context) {
                /// nir to vec4, for the targets with that backend.
                Vec4Select = "vec4-select", Always;
                /// Dead code is removed from vec4 programs, and dead channels from writemasks.
                Vec4DeadCode = "vec4-dead-code", Optional(Feature::Vec4DeadCode),
                    true => crate::i965::vec4_passes::dead_code::run(program, context.flag());
                /// Comparisons with zero become conditional modifiers of the instructions that compute their operands.
                CmodPropagation = "cmod-propagation", Optional(Feature::CmodPropagation),
                    true => crate::i965::vec4_passes::cmod_propagation::run(program);
                /// Dead code again, after conditional modifiers have been propagated.
                Vec4LateDeadCode = "vec4-late-dead-code", Optional(Feature::Vec4DeadCode),
                    true => crate::i965::vec4_passes::dead_code::run(program, context.flag());
                /// nir to a scalar program, for the targets with that backend.
                ScalarSelect = "scalar-select", Always;
                /// The halves of 64-bit sums become instructions of the hardware.
                LowerAdditions = "lower-additions", Always,
                    true => crate::i965::scalar_passes::lower_additions::run(program, context.lower_additions_rules());
                /// The two instructions that compute the low word of a sum and its carry become one.
                CombineAdditions = "combine-additions", Optional(Feature::CombineAdditions),
                    true => crate::i965::scalar_passes::combine_additions::run(program);
                /// Dead code is removed from scalar programs.
                ScalarDeadCode = "scalar-dead-code", Optional(Feature::ScalarDeadCode),
                    true => crate::i965::scalar_passes::dead_code::run(program);
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
    if stage == Stage::ScalarSelect {
        let mode = if options.features.contains(Feature::Simd16) { vec4::Mode::Simd16 } else { vec4::Mode::Simd8 };
        return scalar_select::run(shader, mode).map_err(|error| CompileError::new(stage, error.into()));
    }
    vec4_select::run(shader, options.features).map_err(|error| CompileError::new(Stage::Vec4Select, error.into()))
}

/// Runs one stage on a vec4 or scalar program. Other stages do nothing here.
///
/// # Errors
/// If the stage refuses the program.
pub fn run_vec4_stage(stage: Stage, program: &mut vec4::Program, options: &Options) -> Result<Change, CompileError> {
    let target = if program.mode.is_scalar() { &GEN7_SCALAR } else { &GEN7 };
    let (counter, carried) = (Counter::new(options.skip), RefCell::default());
    Context { target, options, counter: &counter, carried: &carried }.run_vec4(stage, program)
}

impl Context<'_> {
    /// The model of the flag for dead-code elimination on vec4.
    pub(super) fn flag(&self) -> Flag {
        Flag { channels: self.uses(Feature::FlagChannels) }
    }

    /// The form of 64-bit sums in scalar programs.
    pub(super) fn lower_additions_rules(&self) -> lower_additions::Rules {
        lower_additions::Rules {
            carry: match () {
                () if self.uses(Feature::CarryAccumulator) => lower_additions::Carry::Accumulator,
                () if self.uses(Feature::CarryFlag) => lower_additions::Carry::Flag,
                () => lower_additions::Carry::Comparison,
            },
            wide_sum: self.uses(Feature::WideSum),
        }
    }
}
