//! One stage on one program.

use super::*;

/// Runs one of the stages on nir.
pub fn run_nir_stage(stage: Stage, shader: &mut Cow<'_, nir::Shader>, target: &Target) -> Change {
    nir_stage(stage, shader, target, &Counter::default())
}

pub(crate) fn nir_stage(stage: Stage, shader: &mut Cow<'_, nir::Shader>, target: &Target, counter: &Counter) -> Change {
    match stage.row().functions {
        Functions::Nir { is_needed, run } if is_needed(shader, target) => {
            run(shader.to_mut(), counter);
            Change::Something
        }
        _ => Change::Nothing,
    }
}

/// Runs selection, the stage from nir to ir3.
///
/// # Errors
/// If the shader has an operation that the backend does not support.
pub fn select(shader: &nir::Shader, target: &Target) -> Result<ir3::Program, CompileError> {
    selected(shader, target, &Counter::default())
}

pub(crate) fn selected(shader: &nir::Shader, target: &Target, counter: &Counter) -> Result<ir3::Program, CompileError> {
    if target.backend != Backend::Ir3 {
        let (operation, reason) = ("shader".to_owned(), format!("{target} has no ir3"));
        let error = SelectError { operation, reason, line: None, instr: None };
        return Err(CompileError::new(Stage::Select, error.into()));
    }
    let mut program =
        crate::select::run(shader, target).map_err(|error| CompileError::new(Stage::Select, error.into()))?;
    opt::constants::declare(&mut program, target, array_words(&shader.info), counter);
    Ok(program)
}

/// The words of the constant file that the uniforms and the constants of a shader may have, including their alignment
/// to four vec4.
fn array_words(info: &nir::Info) -> u32 {
    let constants = info.get("constants").and_then(|bytes| bytes.trim().parse::<u32>().ok()).unwrap_or(0);
    let words = |vec4: u32| vec4.next_multiple_of(4).saturating_mul(4);
    words(info.uniforms).saturating_add(words(constants.div_ceil(16)))
}

/// The change that a stage made to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The stage had only a shared reference to the program.
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
    stage_on_ir3(stage, program, &Context { target, options, counter: &Counter::new(options.skip) })
}

pub(crate) fn stage_on_ir3(
    stage: Stage,
    program: &mut ir3::Program,
    context: &Context<'_>,
) -> Result<Change, CompileError> {
    let refused = |reason| CompileError::new(stage, reason);
    match stage.row().functions {
        Functions::Ir3 { is_needed, run } if is_needed(program, context).map_err(refused)? => {
            run(program, context).map_err(refused)?;
            Ok(Change::Something)
        }
        _ => Ok(Change::Nothing),
    }
}
