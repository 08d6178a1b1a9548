//! The interpreter engine on all boundaries of a compilation.
//!
//! It compares each boundary as the engine does, but runs each program once: the outcomes of the program after a stage
//! are those of the program before the next one. Boundaries that a prover has settled are not run ([`Next`]); the last
//! program always is, so that the proofs are tested together.

use super::interpreter::{Refutation, SourceRuns, beside_driver, compare_runs, source_run, source_runs, target_fuel};
use super::legal::Judged;
use crate::harness::check::{
    Executable, Execution, StageSnapshots, Unknown, Unsupported, Verdict, hook_of, postconditions,
};
use crate::programs::planted_bugs::{PlantedBug, PlantedChange};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::{DEFAULT_FUEL, Env};
use crate::semantics::header::{Header, HeaderDifference};
use crate::semantics::interp;
use crate::semantics::interp::filling::{self, Agreement};
use crate::semantics::interp::{Compared, Difference, End, Outcome, Scratch};
use crate::support::panics::{Panicked, catch};
use crate::support::watch::watched;
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, Hook, ProgramRef};
use ir3_compiler::pipeline::{Change, CompileError, ErrorKind, Options, Refusal, RegisterLimit, Stage};
use ir3_compiler::regalloc::Allocator;
use ir3_compiler::{ir3, nir, target::Target};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::time::Duration;

/// CPU time of the parts of a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Compiling.
    pub compile: Duration,
    /// Running and comparing.
    pub run: Duration,
}

/// Accesses to spill slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spills {
    /// `stp`.
    pub stores: u64,
    /// `ldp`.
    pub loads: u64,
}

impl Spills {
    /// Counts the accesses of a program, without those of the shader itself to scratch memory.
    pub(super) fn count(program: &ir3::Program) -> Self {
        let mut spills = Self::default();
        for (_, instr) in program.iter_instrs() {
            match program.instrs[instr].opcode {
                ir3::Opcode::Stp | ir3::Opcode::SpillMacro => spills.stores += 1,
                ir3::Opcode::Ldp | ir3::Opcode::ReloadMacro => spills.loads += 1,
                _ => {}
            }
        }
        spills
    }
}

/// The report on one program.
#[derive(Clone, Debug, Default)]
pub struct ProgramReport {
    /// One verdict for each boundary, with the time of the comparison. If a stage refuses the program or panics, it is
    /// the last.
    pub boundaries: Vec<(Stage, Verdict, Duration)>,
    /// The number of stages that changed nothing: there is nothing to compare.
    pub unchanged: usize,
    /// The runs of the source.
    pub source: SourceRuns,
    /// Accesses to spill slots in the program.
    pub spills: Spills,
    /// Why the compiler stopped, if it did.
    pub refusal: Option<CompileError>,
    /// True if the compiler panicked.
    pub compiler_panicked: bool,
    /// True if boundaries were not run, as they were settled.
    pub skipped: bool,
    /// CPU time.
    pub times: Times,
}

impl Times {
    pub(super) fn add(&mut self, other: &Self) {
        self.compile += other.compile;
        self.run += other.run;
    }
}

impl ProgramReport {
    /// Adds the report of the same compilation in other environments.
    pub(super) fn add(&mut self, other: Self) {
        for (stage, verdict, elapsed) in other.boundaries {
            match self.boundaries.iter_mut().find(|(at, ..)| *at == stage) {
                Some((_, known, sum)) => {
                    known.add_runs(verdict);
                    *sum += elapsed;
                }
                None => self.boundaries.push((stage, verdict, elapsed)),
            }
        }
        self.boundaries.sort_by_key(|(stage, ..)| *stage);
        self.source.finished += other.source.finished;
        self.source.vacuous += other.source.vacuous;
        self.source.out_of_fuel += other.source.out_of_fuel;
        self.refusal = self.refusal.take().or(other.refusal);
        self.compiler_panicked |= other.compiler_panicked;
        self.times.add(&other.times);
    }

    /// Records the verdict of a boundary and its time.
    fn note(&mut self, stage: Stage, verdict: Verdict, elapsed: Duration) {
        self.times.run += elapsed;
        self.boundaries.push((stage, verdict, elapsed));
    }

    /// The first refutation.
    pub fn refutation(&self) -> Option<&Refutation> {
        self.boundaries.iter().find_map(|(_, verdict, _)| match verdict {
            Verdict::Refuted(refutation) => Some(&**refutation),
            _ => None,
        })
    }

    /// The stage in which the compiler or an engine panicked, and the message.
    pub fn crash(&self) -> Option<(Stage, &str)> {
        self.boundaries.iter().find_map(|(stage, verdict, _)| match verdict {
            Verdict::Unknown(Unknown::Crashed(message)) => Some((*stage, &**message)),
            _ => None,
        })
    }
}

/// What the runs do with a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Run it.
    Run,
    /// Go on to the next one: it is settled.
    Skip,
    /// Do not go on.
    Stop,
}

/// Decides what to do with each boundary.
pub(super) type Decide<'a> = &'a mut dyn FnMut(&StageSnapshots) -> Next;

/// A hook of tests that changes a program after a stage, to plant a bug.
pub type Plant<'a> = &'a mut dyn PlantedChange;

/// The change of a planted bug, if there is one, as a hook.
pub fn plant_of<F: PlantedChange>(change: &mut Option<F>) -> Option<Plant<'_>> {
    change.as_mut().map(|change| change as Plant<'_>)
}

/// A hook of tests for the stages on nir; returns true if it has changed anything.
pub type NirPlant = fn(Stage, &mut nir::Shader) -> bool;

/// Compiles programs and compares each boundary by runs. Keeps its buffers between programs.
pub struct Checker {
    target: Target,
    options: Options,
    fuel: u64,
    scratch: Scratch,
    /// The current stage.
    stage: Stage,
    /// True while the compiler runs.
    is_compiling: bool,
    nir_plant: Option<NirPlant>,
}

impl Checker {
    /// A checker for one GPU.
    pub fn new(target: Target, options: Options) -> Self {
        Self {
            target,
            options,
            fuel: DEFAULT_FUEL,
            scratch: Scratch::default(),
            stage: Stage::Select,
            is_compiling: false,
            nir_plant: None,
        }
    }

    /// Keeps the buffers for another GPU or other options.
    pub fn retarget(&mut self, target: Target, options: Options) {
        self.target = target;
        self.options = options;
    }

    /// The buffers, for a run outside a comparison.
    pub(crate) fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }

    /// Sets the fuel of source runs in environments that have none of their own.
    pub fn with_fuel(mut self, fuel: u64) -> Self {
        self.fuel = fuel;
        self
    }

    /// Plants a bug in stages on nir.
    pub fn with_nir_plant(mut self, plant: NirPlant) -> Self {
        self.nir_plant = Some(plant);
        self
    }

    /// The GPU.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The compiler options.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The bug in stages on nir.
    pub(super) fn nir_plant(&self) -> Option<NirPlant> {
        self.nir_plant
    }

    /// Replaces the buffers, which a panic has left in an undefined state.
    pub(super) fn forget_buffers(&mut self) {
        self.scratch = Scratch::default();
    }

    /// The fuel of source runs.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// The current or last stage: the place of a panic.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Sets the register limit.
    pub fn set_registers(&mut self, registers: RegisterLimit) {
        self.options.registers = registers;
    }

    /// Compiles `shader`, with a change planted after stages, and compares each boundary in the environments.
    ///
    /// A panic on the way is caught, and is the verdict of the stage that it happened in; the verdicts of the stages before it are kept. A run
    /// over many programs must not be lost with one of them.
    pub fn program(&mut self, shader: &nir::Shader, envs: &[Env], plant: Option<Plant<'_>>) -> ProgramReport {
        self.open_boundaries(shader, envs, plant, None)
    }

    /// Like [`program`](Self::program), but compares only the last program, with the source.
    pub fn last_program(&mut self, shader: &nir::Shader, envs: &[Env], plant: Option<Plant<'_>>) -> ProgramReport {
        self.open_boundaries(shader, envs, plant, Some(&mut |_| Next::Skip))
    }

    /// Like [`program`](Self::program), but runs only the boundaries that `decide` leaves open, and the last program.
    pub(super) fn open_boundaries(
        &mut self,
        shader: &nir::Shader,
        envs: &[Env],
        plant: Option<Plant<'_>>,
        decide: Option<Decide<'_>>,
    ) -> ProgramReport {
        let mut report = ProgramReport::default();
        if let Err(Panicked { message, .. }) = catch(|| self.check(shader, envs, plant, decide, &mut report)) {
            // The panic left the buffers in an undefined state.
            self.scratch = Scratch::default();
            report.compiler_panicked = std::mem::take(&mut self.is_compiling);
            report.boundaries.push((self.stage, Verdict::Unknown(Unknown::Crashed(message)), Duration::ZERO));
        }
        report
    }

    /// Like [`program`](Self::program), but a panic is one of the caller.
    pub fn program_or_panic(&mut self, shader: &nir::Shader, envs: &[Env], plant: Option<Plant<'_>>) -> ProgramReport {
        let mut report = ProgramReport::default();
        self.check(shader, envs, plant, None, &mut report);
        report
    }

    fn check(
        &mut self,
        shader: &nir::Shader,
        envs: &[Env],
        plant: Option<Plant<'_>>,
        mut decide: Option<Decide<'_>>,
        report: &mut ProgramReport,
    ) {
        let apart: Vec<Env>;
        let mut envs = if interp::nir::promises_no_alias(shader) {
            apart = envs.iter().map(|env| Env { one_buffer: Some(false), ..env.clone() }).collect();
            &apart[..]
        } else {
            envs
        };
        self.stage = Stage::Select;
        let start = ThreadTime::now();
        let mut previous = match self.run_nir(shader, envs) {
            _ if envs.is_empty() => Vec::new(),
            Ok(outcomes) => outcomes,
            Err(reason) => {
                let verdict = Verdict::Unknown(Unknown::Unsupported(reason.into()));
                report.boundaries.push((Stage::Select, verdict, start.elapsed()));
                return;
            }
        };
        let (source, vacuous) = source_runs(&previous);
        report.source = source;
        report.times.run += start.elapsed();

        let (target, options) = (self.target, self.options);
        let mut header = Header::of(ProgramRef::Nir(shader));
        let mut hook = hook_of(plant, self.nir_plant);
        let mut compilation = Compilation::new(shader, &target, &options).with_hook(Some(&mut hook));
        let beside = OnceCell::new();
        let mut judged = Judged::default();
        let mut differs = None;
        // The program before the current stage, and true if `previous` is older than that.
        let mut before = decide.is_some().then(|| Snapshot::Nir(Box::new(shader.clone())));
        let mut is_behind = false;
        while let Some(stage) = compilation.next_stage() {
            self.stage = stage;
            let start = ThreadTime::now();
            let terms = watched(|| terms_of(stage, compilation.program(), &target, &options));
            report.times.run += start.elapsed();
            let start = ThreadTime::now();
            self.is_compiling = true;
            let step = watched(|| compilation.step());
            self.is_compiling = false;
            report.times.compile += start.elapsed();
            let change = match step {
                Some(Ok(step)) => step.change,
                Some(Err(error)) => return refused(report, kept_promise(error, &options)),
                None => break,
            };
            if change == Change::Nothing {
                report.unchanged += 1;
                // What it should have lowered may still be there. Of ir3 the last stage, which changes every program, would show it.
                if let program @ ProgramRef::Vec4(_) = compilation.program()
                    && let Some(error) = postconditions::broken(stage, program, &target, &terms, None)
                {
                    return refused(report, error);
                }
                continue;
            }
            if let (Stage::LowerSpills, ProgramRef::Ir3(program)) = (stage, compilation.program()) {
                report.spills = Spills::count(program);
            }
            // Only now is it known where the driver's words are.
            if let (Stage::Select, ProgramRef::Ir3(program)) = (stage, compilation.program())
                && let Some(decoded) = beside_driver(compilation.shader(), program)
            {
                let with_words = |env: &Env| env.with_driver_words(decoded.launch(), &program.consts);
                envs = beside.get_or_init(|| envs.iter().map(with_words).collect::<Vec<Env>>());
                let fuel = self.fuel;
                let mut run = |env: &Env| {
                    source_run(&mut self.scratch, |scratch| decoded.run(env, env.fuel.unwrap_or(fuel), scratch))
                };
                previous = envs.iter().map(&mut run).collect();
            }
            let mut compared = match changed(&mut header, compilation.program()) {
                Some(difference) => Err((0, difference)),
                None => Ok(None),
            };
            if let (Ok(_), Some(decide), Some(before)) = (&compared, &mut decide, &mut before) {
                let after = Snapshot::from(compilation.program());
                let sides = StageSnapshots { stage, before: std::mem::replace(before, after.clone()), after };
                match decide(&sides) {
                    Next::Stop => return,
                    Next::Skip => {
                        report.skipped = true;
                        is_behind = true;
                    }
                    // The stages before it were not run.
                    Next::Run if std::mem::take(&mut is_behind) => {
                        let start = ThreadTime::now();
                        let execution =
                            if stage == Stage::Encode { Execution::after(Stage::Legalize) } else { Execution::Untimed };
                        let before = (&sides.before).into();
                        compared = self.compare(before, execution, envs, &mut previous, &vacuous).map(|_| None);
                        report.times.run += start.elapsed();
                    }
                    Next::Run => {}
                }
            }
            let start = ThreadTime::now();
            if compared.is_ok() && !is_behind && !envs.is_empty() {
                let execution = Execution::after(stage);
                compared = self.compare(compilation.program(), execution, envs, &mut previous, &vacuous).map(Some);
            }
            let noted = match compared {
                Ok(Some(Verdict::Unknown(Unknown::Unsupported(what)))) => return refused(report, lost(stage, &what)),
                Ok(verdict) => verdict,
                Err((env, difference)) => {
                    let after = Snapshot::from(compilation.program());
                    differs = Some((stage, env, difference, after, start));
                    break;
                }
            };
            let is_noted = noted.is_some();
            if let Some(verdict) = noted {
                report.note(stage, verdict, start.elapsed());
            }
            let start = ThreadTime::now();
            let broken = postconditions::broken(stage, compilation.program(), &target, &terms, Some(&mut judged));
            report.times.run += start.elapsed();
            if let Some(error) = broken {
                if is_noted {
                    report.boundaries.pop();
                }
                return refused(report, error);
            }
        }
        // What is settled is run from end to end.
        if is_behind && differs.is_none() {
            let start = ThreadTime::now();
            let execution = Execution::after(self.stage);
            let compared = self.compare(compilation.program(), execution, envs, &mut previous, &vacuous);
            report.times.run += start.elapsed();
            match compared {
                Err((env, difference)) => {
                    differs = Some((self.stage, env, difference, Snapshot::from(compilation.program()), start));
                }
                Ok(Verdict::Unknown(Unknown::Unsupported(what))) => return refused(report, lost(self.stage, &what)),
                Ok(_) => {}
            }
        }
        drop(compilation);
        if let Some((stage, env, difference, after, start)) = differs {
            let refutation = Refutation {
                stage: stage.name(),
                before: self.program_before(shader, stage, &mut hook),
                after,
                env: envs.get(env).cloned().unwrap_or_default(),
                difference,
            };
            report.note(stage, Verdict::Refuted(Box::new(refutation)), start.elapsed());
        }
    }

    /// Returns false only if [`Checker::program`] finds no such difference at a stage. Only the programs before and
    /// after the stage are run, which is a fraction of the work. If it returns true, the program may still be refuted
    /// at an earlier stage.
    pub fn may_differ_at(
        &mut self,
        shader: &nir::Shader,
        envs: &[Env],
        at: Stage,
        like: &dyn Fn(&Difference) -> bool,
        plant: Option<Plant<'_>>,
    ) -> bool {
        // Headers are compared before anything is run, so there is nothing to be saved.
        if at <= Stage::Vec4Select || like(&Difference::Header(HeaderDifference::default())) {
            return true;
        }
        let options = Options { last: at, ..self.options };
        let mut hook = hook_of(plant, self.nir_plant);
        let mut compilation = Compilation::new(shader, &self.target, &options).with_hook(Some(&mut hook));
        if compilation.run_until(at).is_err() {
            return false;
        }
        let before = match compilation.program() {
            // Encoding is the one stage with a final program on both sides.
            program @ ProgramRef::Ir3(_) if at == Stage::Encode => {
                Some(Executable::new(program, &self.target, Execution::after(Stage::Legalize)))
            }
            program @ ProgramRef::Ir3(_) => Some(Executable::new(program, &self.target, Execution::Untimed)),
            program @ ProgramRef::Vec4(_) => Some(Executable::new(program, &self.target, Execution::Untimed)),
            ProgramRef::Nir(_) => None,
        };
        let Some(Ok(_)) = compilation.step() else { return false };
        let Ok(source) = interp::nir::Decoded::of_target(compilation.shader(), &self.target) else { return false };
        let program = compilation.program();
        let Ok(after) = Executable::new(program, &self.target, Execution::after(at)) else { return false };
        for env in envs {
            let mut outcome = source.run(env, env.fuel.unwrap_or(self.fuel), &mut self.scratch);
            match outcome.end {
                End::Finished => {}
                End::OutOfFuel => continue,
                // The stores before that may differ.
                End::Undefined { .. } => return true,
            }
            match &before {
                Some(Ok(before)) => {
                    // The most fuel that all stages up to this one may get.
                    let fuel = target_fuel(target_fuel(outcome.executed));
                    outcome = before.run(env, fuel, &mut self.scratch);
                    if outcome.end != End::Finished {
                        return false;
                    }
                }
                // The comparison was with an earlier program.
                Some(Err(_)) => return true,
                None => {}
            }
            let target = after.run(env, target_fuel(outcome.executed), &mut self.scratch);
            let run = |scratch: &mut Scratch| after.run(env, target_fuel(outcome.executed), scratch);
            match filling::compare(&outcome, &target, &mut self.scratch, run) {
                Err(difference) => return like(&difference),
                Ok(Agreement::Plain(Compared::OutOfFuel)) => {
                    return like(&Difference::Endless { expected: outcome.executed, actual: target.executed });
                }
                Ok(_) => {}
            }
        }
        false
    }

    pub(super) fn run_nir(&mut self, shader: &nir::Shader, envs: &[Env]) -> Result<Vec<Outcome>, interp::Unsupported> {
        let (decoded, fuel) = (interp::nir::Decoded::of_target(shader, &self.target)?, self.fuel);
        Ok(envs
            .iter()
            .map(|env| source_run(&mut self.scratch, |scratch| decoded.run(env, env.fuel.unwrap_or(fuel), scratch)))
            .collect())
    }

    /// Runs `program` on each environment and compares with the outcomes of the other side, which it replaces: the next
    /// stage must preserve what this one left defined. The error is the number of the environment and the difference.
    fn compare(
        &mut self,
        program: ProgramRef<'_>,
        execution: Execution,
        envs: &[Env],
        previous: &mut [Outcome],
        vacuous: &str,
    ) -> Result<Verdict, (usize, Difference)> {
        match Executable::new(program, &self.target, execution) {
            Ok(executable) => compare_runs(envs, previous, vacuous, &mut self.scratch, |env, fuel, scratch| {
                executable.run(env, fuel, scratch)
            }),
            Err(error) => Ok(Verdict::Unknown(Unknown::Unsupported(error.into()))),
        }
    }

    /// The program before `stage`, compiled again: passes change a program in place, and nothing is copied while boundaries pass.
    pub fn before(&self, shader: &nir::Shader, stage: Stage, plant: Option<Plant<'_>>) -> Snapshot {
        self.program_before(shader, stage, &mut hook_of(plant, self.nir_plant))
    }

    fn program_before(&self, shader: &nir::Shader, stage: Stage, hook: Hook<'_>) -> Snapshot {
        let mut compilation = Compilation::new(shader, &self.target, &self.options).with_hook(Some(hook));
        match compilation.run_until(stage) {
            Ok(()) => compilation.program().into(),
            Err(_) => ProgramRef::Nir(compilation.shader()).into(),
        }
    }
}

/// The postconditions of the next stage, which ask the allocator for its limits.
pub(super) fn terms_of(
    stage: Stage,
    program: ProgramRef<'_>,
    target: &Target,
    options: &Options,
) -> postconditions::Terms {
    match program {
        ProgramRef::Ir3(program) => postconditions::terms(stage, program, target, options),
        ProgramRef::Nir(_) | ProgramRef::Vec4(_) => postconditions::Terms::default(),
    }
}

/// Calls what a [`Checker`] calls of the compiler, under watch. `begins` gets each stage before it runs.
pub(crate) fn compile_stages(
    shader: &nir::Shader,
    target: &Target,
    options: &Options,
    plant: Option<&'static PlantedBug>,
    begins: &mut dyn FnMut(Stage),
) {
    let mut change = plant.map(PlantedBug::change);
    let mut hook = hook_of(plant_of(&mut change), None);
    let mut compilation = Compilation::new(shader, target, options).with_hook(Some(&mut hook));
    while let Some(stage) = compilation.next_stage() {
        begins(stage);
        watched(|| terms_of(stage, compilation.program(), target, options));
        if !matches!(watched(|| compilation.step()), Some(Ok(_))) {
            return;
        }
    }
}

/// What the stage `spill` accepts fits, so a later stage that has no room for it is wrong, and the program not too large.
fn kept_promise(error: CompileError, options: &Options) -> CompileError {
    let is_broken = error.kind == ErrorKind::NeedsSpilling
        && error.stage == Stage::RegisterAllocation
        && options.runs(Stage::Spill)
        && options.allocator == Allocator::Ssa;
    if is_broken { CompileError { kind: ErrorKind::Internal, ..error } } else { error }
}

/// Records that the compiler has refused the program.
fn refused(report: &mut ProgramReport, error: CompileError) {
    let unknown = refusal(&error);
    report.boundaries.push((error.stage, Verdict::Unknown(unknown), Duration::ZERO));
    report.refusal = Some(error);
}

/// The failure of a stage that leaves a program which no engine can run, of one that could be run.
fn lost(stage: Stage, what: &Unsupported) -> CompileError {
    let reason = Refusal::Postcondition(format!("the program cannot be run any more: {what}"));
    CompileError { stage, kind: ErrorKind::Internal, reason }
}

/// Converts a refusal of the compiler to the reason of an unknown verdict.
pub(super) fn refusal(error: &CompileError) -> Unknown {
    let why = error.reason.to_string();
    match error.kind {
        ErrorKind::NeedsSpilling => Unknown::NeedsSpilling(why),
        ErrorKind::Unsupported => {
            Unknown::Unsupported(Unsupported { message: why, what: error.reason.without_location() })
        }
        // The compiler broke its own rules: a failure, like a panic.
        ErrorKind::Internal => Unknown::Crashed(why),
    }
}

/// Compares the header of the program before with that of the program after, and replaces it.
pub(super) fn changed(header: &mut Header, after: ProgramRef<'_>) -> Option<Difference> {
    let after = Header::of(after);
    let difference = header.difference(&after);
    *header = after;
    difference.map(Difference::Header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_spilled_has_registers() {
        let error = |stage, kind| CompileError { stage, kind, reason: Refusal::Postcondition("no room".to_owned()) };
        let options = Options::default();
        let spilled = kept_promise(error(Stage::RegisterAllocation, ErrorKind::NeedsSpilling), &options);
        assert!(matches!(refusal(&spilled), Unknown::Crashed(_)));
        for (stage, kind) in
            [(Stage::Spill, ErrorKind::NeedsSpilling), (Stage::RegisterAllocation, ErrorKind::Unsupported)]
        {
            assert!(!matches!(refusal(&kept_promise(error(stage, kind), &options)), Unknown::Crashed(_)));
        }
    }
}
