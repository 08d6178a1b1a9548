//! One compilation: a shader, and the program after each stage.
//!
//! [`Compilation`] is the only loop over the stages. Code that compares the two sides of a stage, plants a bug after
//! one or collects snapshots steps through it: [`Compilation::step`] runs a stage and copies nothing,
//! [`Compilation::program`] is the current program. [`compile`] and [`run_nir`] run it to its end. [`pipeline`] has the
//! order of the stages and runs each.

use crate::arms::Counter;
use crate::i965::vec4;
use crate::pipeline::{self, Change, CompileError, Context, Options, RegisterLimit, Stage};
use crate::regalloc::Carried;
use crate::target::{Backend, Target};
use crate::{ir3, nir};
use std::borrow::Cow;
use std::cell::RefCell;

/// A program in nir, vec4 or ir3.
#[derive(Clone, Copy, Debug)]
pub enum ProgramRef<'a> {
    /// The nir, before selection.
    Nir(&'a nir::Shader),
    /// The vec4 program, after selection for a vec4 target.
    Vec4(&'a vec4::Program),
    /// The ir3 program, after selection.
    Ir3(&'a ir3::Program),
}

/// A mutable program in nir, vec4 or ir3. A borrowed nir shader is cloned at the first change.
#[derive(Debug)]
pub enum ProgramMut<'a, 's> {
    /// The nir, before selection.
    Nir(&'a mut Cow<'s, nir::Shader>),
    /// The vec4 program, after selection for a vec4 target.
    Vec4(&'a mut vec4::Program),
    /// The ir3 program, after selection.
    Ir3(&'a mut ir3::Program),
}

/// Changes the program after a stage, as a planted bug does.
pub type Hook<'h> = &'h mut dyn FnMut(Stage, ProgramMut<'_, '_>) -> Change;

/// The result of [`Compilation::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The stage that ran.
    pub stage: Stage,
    /// The change that it, or the hook after it, made to the program. Selection makes a new program.
    pub change: Change,
}

/// The current program.
#[derive(Clone, Debug)]
enum Current {
    Nir,
    Vec4(Box<vec4::Program>),
    Ir3(Box<ir3::Program>),
}

/// A compilation in progress.
pub struct Compilation<'s, 'h> {
    target: Target,
    options: Options,
    /// The shader; after selection, the one that selection read.
    shader: Cow<'s, nir::Shader>,
    program: Current,
    /// The stages that have not run yet.
    stages: std::vec::IntoIter<Stage>,
    /// The last stage that ran, or the one that is running.
    last: Option<Stage>,
    counter: Counter,
    /// Results of the allocator's stages for the current program.
    carried: RefCell<Carried>,
    hook: Option<Hook<'h>>,
}

impl<'s, 'h> Compilation<'s, 'h> {
    /// The compilation of a shader, before its first stage.
    pub fn new(shader: &'s nir::Shader, target: &Target, options: &Options) -> Self {
        let stages: Vec<Stage> =
            Stage::every().filter(|&stage| options.runs(stage) && stage.is_of(target.backend)).collect();
        Self {
            target: *target,
            options: *options,
            shader: Cow::Borrowed(shader),
            program: Current::Nir,
            stages: stages.into_iter(),
            last: None,
            counter: Counter::new(options.skip),
            carried: RefCell::default(),
            hook: None,
        }
    }

    /// Sets a hook, which is called after each stage from now on.
    #[must_use]
    pub fn with_hook<'g>(self, hook: Option<Hook<'g>>) -> Compilation<'s, 'g> {
        let Self { target, options, shader, program, stages, last, counter, carried, hook: _ } = self;
        Compilation { target, options, shader, program, stages, last, counter, carried, hook }
    }

    /// A copy of this compilation that continues with another register limit, and without a hook. `None` if a stage that
    /// ran may depend on the limit: the result is the one of a compilation that had this limit from its start.
    pub fn with_limit<'g>(&self, registers: RegisterLimit) -> Option<Compilation<'s, 'g>> {
        if self.last.is_some_and(|last| Stage::every().any(|stage| stage <= last && self.reads_limit(stage, registers)))
        {
            return None;
        }
        Some(Compilation {
            target: self.target,
            options: Options { registers, ..self.options },
            shader: self.shader.clone(),
            program: self.program.clone(),
            stages: self.stages.clone(),
            last: self.last,
            counter: self.counter.clone(),
            carried: RefCell::default(),
            hook: None,
        })
    }

    /// Returns true if the next stage may have another result with another register limit.
    pub fn next_reads_limit(&self, registers: RegisterLimit) -> bool {
        self.next_stage().is_some_and(|stage| self.reads_limit(stage, registers))
    }

    fn reads_limit(&self, stage: Stage, registers: RegisterLimit) -> bool {
        self.options.runs(stage) && stage.reads_limit(&self.target, [self.options.registers, registers])
    }

    /// The current program.
    pub fn program(&self) -> ProgramRef<'_> {
        match &self.program {
            Current::Nir => ProgramRef::Nir(&self.shader),
            Current::Vec4(program) => ProgramRef::Vec4(program),
            Current::Ir3(program) => ProgramRef::Ir3(program),
        }
    }

    /// The current shader; after selection, the one that selection read.
    pub fn shader(&self) -> &nir::Shader {
        &self.shader
    }

    /// The counts of the arms so far.
    pub fn counter(&self) -> &Counter {
        &self.counter
    }

    /// The stage that [`step`](Self::step) runs next.
    pub fn next_stage(&self) -> Option<Stage> {
        self.stages.as_slice().first().copied()
    }

    /// The stage that ran last. After a panic in a step, the stage that panicked.
    pub fn last_stage(&self) -> Option<Stage> {
        self.last
    }

    /// Runs the next stage; `None` after the last one.
    ///
    /// # Errors
    /// If the stage refuses the program. No stage runs after it.
    pub fn step(&mut self) -> Option<Result<Step, CompileError>> {
        let stage = self.stages.next()?;
        self.last = Some(stage);
        let ran = self.run(stage);
        if ran.is_err() {
            self.stages = Vec::new().into_iter();
        }
        Some(ran.map(|change| Step { stage, change }))
    }

    fn run(&mut self, stage: Stage) -> Result<Change, CompileError> {
        let context =
            Context { target: &self.target, options: &self.options, counter: &self.counter, carried: &self.carried };
        let mut change = match &mut self.program {
            Current::Nir if stage < Stage::Vec4Select => context.run_nir(stage, &mut self.shader)?,
            Current::Nir if matches!(stage, Stage::Vec4Select | Stage::ScalarSelect) => {
                self.program = Current::Vec4(Box::new(pipeline::select_vec4(stage, &self.shader, &self.options)?));
                Change::Something
            }
            Current::Vec4(program) => context.run_vec4(stage, program)?,
            Current::Nir => {
                self.program =
                    Current::Ir3(Box::new(pipeline::select_counted(&self.shader, &self.target, &self.counter)?));
                Change::Something
            }
            Current::Ir3(program) => context.run_ir3(stage, program)?,
        };
        if let Some(hook) = &mut self.hook {
            let program = match &mut self.program {
                Current::Nir => ProgramMut::Nir(&mut self.shader),
                Current::Vec4(program) => ProgramMut::Vec4(program),
                Current::Ir3(program) => ProgramMut::Ir3(program),
            };
            if hook(stage, program) == Change::Something {
                change = Change::Something;
                self.carried = RefCell::default();
            }
        }
        Ok(change)
    }

    /// Runs all stages before one.
    ///
    /// # Errors
    /// If a stage refuses the program.
    pub fn run_until(&mut self, stage: Stage) -> Result<(), CompileError> {
        self.run_while(|next| next < stage)
    }

    /// Runs all stages up to one and that one.
    ///
    /// # Errors
    /// If a stage refuses the program.
    pub fn run_through(&mut self, stage: Stage) -> Result<(), CompileError> {
        self.run_while(|next| next <= stage)
    }

    fn run_while(&mut self, is_wanted: impl Fn(Stage) -> bool) -> Result<(), CompileError> {
        while self.next_stage().is_some_and(&is_wanted)
            && let Some(step) = self.step()
        {
            step?;
        }
        Ok(())
    }

    /// Runs the remaining stages. Returns the ir3 program; `None` if selection to ir3 is not among the stages.
    ///
    /// # Errors
    /// If a stage refuses the program.
    pub fn finish(mut self) -> Result<Option<ir3::Program>, CompileError> {
        while let Some(step) = self.step() {
            step?;
        }
        Ok(match self.program {
            Current::Nir | Current::Vec4(_) => None,
            Current::Ir3(program) => Some(*program),
        })
    }
}

/// Runs all stages on nir.
pub fn run_nir<'s>(shader: &'s nir::Shader, target: &Target, options: &Options) -> Cow<'s, nir::Shader> {
    let mut compilation = Compilation::new(shader, target, options);
    compilation.run_until(Stage::Vec4Select).expect("selection is the first stage that can refuse a program");
    compilation.shader
}

/// Compiles a shader to a vec4 program, or to a scalar program of the same IR if the target executes those.
///
/// # Errors
/// If selection refuses the program.
pub fn compile_vec4(shader: &nir::Shader, target: &Target, options: &Options) -> Result<vec4::Program, CompileError> {
    compile_vec4_with(shader, target, options, None)
}

/// Like [`compile_vec4`], with a hook after each stage.
///
/// # Errors
/// If selection refuses the program.
pub fn compile_vec4_with(
    shader: &nir::Shader,
    target: &Target,
    options: &Options,
    hook: Option<Hook<'_>>,
) -> Result<vec4::Program, CompileError> {
    let is_scalar = target.backend == Backend::Scalar;
    let (backend, selection) =
        if is_scalar { (Backend::Scalar, Stage::ScalarSelect) } else { (Backend::Vec4, Stage::Vec4Select) };
    let target = Target { backend, ..*target };
    let options = Options { last: options.last.max(selection), ..*options };
    let mut compilation = Compilation::new(shader, &target, &options).with_hook(hook);
    while let Some(step) = compilation.step() {
        step?;
    }
    match compilation.program {
        Current::Vec4(program) => Ok(*program),
        _ => unreachable!("selection is one of the stages"),
    }
}

/// Compiles a shader and passes the ir3 program after each stage to `sink`. All nir stages and selection run, even if
/// `options` names an earlier last stage.
///
/// # Errors
/// If a stage refuses the program.
pub fn compile(
    shader: &nir::Shader,
    target: &Target,
    options: &Options,
    sink: &mut dyn FnMut(Stage, &ir3::Program),
) -> Result<ir3::Program, CompileError> {
    let options = Options { last: options.last.max(Stage::Select), ..*options };
    if target.backend != Backend::Ir3 {
        // Refused, since the target has no ir3.
        return pipeline::select(shader, target);
    }
    let mut compilation = Compilation::new(shader, target, &options);
    while let Some(step) = compilation.step() {
        let stage = step?.stage;
        if let Current::Ir3(program) = &compilation.program {
            sink(stage, program);
        }
    }
    Ok(compilation.finish()?.expect("selection is one of the stages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHADER: &str = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = @load_local_invocation_index
    32     %1 = load_const (0x00000000)
    32     %2 = load_const (0x00000002)
    32     %3 = ishl %0, %2
                @store_ssbo_ir3 (%0, %1, %3, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}
";

    #[test]
    fn stages_run_in_order_and_hooks_after_each() {
        let shader = nir::text::read(SHADER).expect("a shader");
        let (target, options) = (Target::default(), Options::default());
        let mut seen = Vec::new();
        let mut hook = |stage, _: ProgramMut<'_, '_>| {
            seen.push(stage);
            if stage == Stage::Saturation { Change::Something } else { Change::Nothing }
        };
        let mut compilation = Compilation::new(&shader, &target, &options).with_hook(Some(&mut hook));
        let mut steps = Vec::new();
        while let Some(stage) = compilation.next_stage() {
            let step = compilation.step().expect("a stage").expect("it compiles");
            assert_eq!(step.stage, stage);
            assert_eq!(matches!(compilation.program(), ProgramRef::Ir3(_)), stage >= Stage::Select);
            steps.push(step);
        }
        assert!(compilation.step().is_none());
        let stages: Vec<Stage> = steps.iter().map(|step| step.stage).collect();
        let is_stage = |stage: &Stage| options.runs(*stage) && stage.is_of(Backend::Ir3);
        assert_eq!(stages, Stage::every().filter(is_stage).collect::<Vec<_>>());
        // No stage clamps: the change is that of the hook.
        let change = |at| steps.iter().find(|step| step.stage == at).map(|step| step.change);
        assert_eq!(change(Stage::Saturation), Some(Change::Something));
        assert_eq!(change(Stage::Predication), Some(Change::Nothing));
        assert_eq!(seen, stages);
    }

    /// A copy with another limit compiles to the program of a compilation with this limit, from each stage before which
    /// it can be made.
    #[test]
    fn copies_have_the_results_of_their_limits() {
        let shader = nir::text::read(SHADER).expect("a shader");
        let limits = [RegisterLimit::Target, RegisterLimit::Registers(8), RegisterLimit::Minimum(0)];
        for target in ["a420", "a540", "a660", "a750"].map(|name| Target::by_name(name).expect("a GPU")) {
            for (first, other) in limits.into_iter().flat_map(|first| limits.map(|other| (first, other))) {
                let options = |registers| Options { registers, ..Options::default() };
                let expected = Compilation::new(&shader, &target, &options(other)).finish();
                let mut compilation = Compilation::new(&shader, &target, &options(first));
                let mut is_shared = true;
                while let Some(stage) = compilation.next_stage() {
                    let copy = compilation.with_limit(other);
                    assert_eq!(copy.is_some(), is_shared, "{stage}");
                    assert!(copy.is_none_or(|copy| copy.finish() == expected), "{target}, {other}, from {stage}");
                    is_shared &= !compilation.next_reads_limit(other);
                    compilation.step().expect("a stage").expect("it compiles");
                }
                assert_eq!(is_shared, first == other, "{target}, {first}, {other}");
            }
        }
    }

    #[test]
    fn the_last_stage_ends_it() {
        let shader = nir::text::read(SHADER).expect("a shader");
        let compile =
            |last| Compilation::new(&shader, &Target::default(), &Options { last, ..Options::default() }).finish();
        assert_eq!(compile(Stage::DeMorgan), Ok(None));
        let selected = pipeline::select(&shader, &Target::default()).expect("a program");
        assert_eq!(compile(Stage::Select), Ok(Some(selected)));
        let mut compilation = Compilation::new(&shader, &Target::default(), &Options::default());
        compilation.run_until(Stage::Predicates).expect("it compiles");
        assert_eq!(compilation.next_stage(), Some(Stage::Predicates));
    }
}
