//! One stage on one program.

use super::*;
use std::borrow::Borrow;

impl<P> Pass<P> {
    /// Runs the pass, if it is needed. `to_mut` makes the program mutable.
    fn run<Q: Borrow<P>>(
        &self,
        stage: Stage,
        program: &mut Q,
        to_mut: fn(&mut Q) -> &mut P,
        context: &Context<'_>,
    ) -> Result<Change, CompileError> {
        let refused = |reason| CompileError::new(stage, reason);
        if !(self.is_needed)((*program).borrow(), context).map_err(refused)? {
            return Ok(Change::Nothing);
        }
        (self.run)(to_mut(program), context).map_err(refused)
    }
}

/// Runs one of the stages on nir.
///
/// # Errors
/// If the stage refuses the program.
pub fn run_nir_stage(
    stage: Stage,
    shader: &mut Cow<'_, nir::Shader>,
    target: &Target,
    options: &Options,
) -> Result<Change, CompileError> {
    let (counter, carried) = (Counter::new(options.skip), RefCell::default());
    Context { target, options, counter: &counter, carried: &carried }.run_nir(stage, shader)
}

/// Runs selection, the stage from nir to ir3.
///
/// # Errors
/// If the shader has an operation that the backend does not support.
pub fn select(shader: &nir::Shader, target: &Target) -> Result<ir3::Program, CompileError> {
    select_counted(shader, target, &Counter::default())
}

pub(crate) fn select_counted(
    shader: &nir::Shader,
    target: &Target,
    counter: &Counter,
) -> Result<ir3::Program, CompileError> {
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
    let (counter, carried) = (Counter::new(options.skip), RefCell::default());
    Context { target, options, counter: &counter, carried: &carried }.run_ir3(stage, program)
}

/// One stage on a program, by its language. Stages on another language do nothing.
impl Context<'_> {
    pub(crate) fn run_nir(&self, stage: Stage, shader: &mut Cow<'_, nir::Shader>) -> Result<Change, CompileError> {
        match &stage.row().function {
            Function::Nir(pass) => pass.run(stage, shader, Cow::to_mut, self),
            _ => Ok(Change::Nothing),
        }
    }

    pub(crate) fn run_vec4(&self, stage: Stage, program: &mut vec4::Program) -> Result<Change, CompileError> {
        match &stage.row().function {
            Function::Vec4(pass) => pass.run(stage, program, |program| program, self),
            _ => Ok(Change::Nothing),
        }
    }

    pub(crate) fn run_ir3(&self, stage: Stage, program: &mut ir3::Program) -> Result<Change, CompileError> {
        match &stage.row().function {
            Function::Ir3(pass) => pass.run(stage, program, |program| program, self),
            _ => Ok(Change::Nothing),
        }
    }
}
