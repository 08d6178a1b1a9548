//! The boundaries of one compilation.
//!
//! [`Checker::verify`] compiles a program stage by stage, and has the [judge](super::judge) compare the programs before
//! and after each stage that changed something. A stage has to keep its [postconditions](super::postconditions) too,
//! and a program that fits where `spill` accepts it. The first refutation, refusal or crash ends it. At the end the
//! last program is compared with the source if boundaries were proved and not run: so the proofs are tested together. A
//! difference there is looked for at every boundary, by runs alone.

use super::SourceOutcomes;
use super::boundary::Boundary;
use super::interpreter::source_run;
use super::legal::Judged;
use super::verification::{BoundaryVerdict, Panic, Spills, Verification};
use super::{
    COMPILER, Crash, EngineKind, Engines, Judge, Judgment, Policy, Refutation, Unknown, Unsupported, Verdict, hook_of,
    postconditions,
};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, Hook, ProgramRef};
use ir3_compiler::pipeline::{Allocator, Change, CompileError, ErrorKind, Options, Refusal, RegisterLimit, Stage};
use ir3_compiler::{nir, target::Target};
use ir3_programs::coverage::{self, Seen};
use ir3_programs::planted_bugs::{PlantedBug, PlantedChange};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::{DEFAULT_FUEL, Env};
use ir3_semantics::header::HeaderDifference;
use ir3_semantics::interp;
use ir3_semantics::interp::{Difference, End, Outcome, Scratch};
use ir3_semantics::support::panics::{Panicked, catch};
use ir3_semantics::support::watch::watched;
use std::time::Duration;

/// A hook of tests that changes a program after a stage, to plant a bug.
pub type Plant<'a> = &'a mut dyn PlantedChange;

/// The change of a planted bug, if there is one, as a hook.
pub fn plant_of<F: PlantedChange>(change: &mut Option<F>) -> Option<Plant<'_>> {
    change.as_mut().map(|change| change as Plant<'_>)
}

/// A hook of tests for the stages on nir; returns true if it has changed anything.
pub type NirPlant = fn(Stage, &mut nir::Shader) -> bool;

/// Compiles programs and has their boundaries judged. Keeps its buffers between programs.
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
    coverage: Option<Box<Covered>>,
}

/// The coverage of the programs that a checker has compiled.
#[derive(Debug, Default)]
pub struct Covered {
    /// The cells.
    pub seen: Seen,
    /// The number of programs.
    pub programs: u64,
}

impl Covered {
    /// Counts a program that is compiled now.
    pub(super) fn begin(&mut self, shader: &nir::Shader) {
        self.programs += 1;
        coverage::of_shader(shader, |cell| self.seen.add(cell));
    }
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
            coverage: None,
        }
    }

    /// Counts the coverage of the programs from now on.
    pub fn with_coverage(mut self) -> Self {
        self.coverage = Some(Box::default());
        self
    }

    /// The coverage so far, if it is counted.
    pub fn coverage(&self) -> Option<&Covered> {
        self.coverage.as_deref()
    }

    /// Adds to the coverage, if it is counted.
    pub(super) fn cover(&mut self, add: impl FnOnce(&mut Covered)) {
        if let Some(covered) = &mut self.coverage {
            add(covered);
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

    /// The fuel of source runs.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Sets the register limit.
    pub fn set_registers(&mut self, registers: RegisterLimit) {
        self.options.registers = registers;
    }

    /// Compiles a shader, with a change planted after stages, and compares each boundary by runs in the environments
    /// alone.
    pub fn program(&mut self, shader: &nir::Shader, envs: &[Env], plant: Option<Plant<'_>>) -> Verification {
        self.verify(shader, plant, &Policy::new(&Engines::interpreter()), envs)
    }

    /// Like [`program`](Self::program), but panics where the compiler or an engine does.
    ///
    /// # Panics
    /// With the message and the place of that panic.
    pub fn program_or_panic(&mut self, shader: &nir::Shader, envs: &[Env], plant: Option<Plant<'_>>) -> Verification {
        let verification = self.program(shader, envs, plant);
        if let Some(Panic { place, message, .. }) = &verification.panic {
            panic!("{message}, at {place}");
        }
        verification
    }

    /// Compiles a shader, with a change planted after stages, and has each boundary judged. Boundaries that no prover
    /// settles are run in `envs`.
    ///
    /// A panic of the compiler or of an engine is caught, and is the verdict of its stage; the verdicts of earlier
    /// stages are kept.
    pub fn verify(
        &mut self,
        shader: &nir::Shader,
        mut plant: Option<Plant<'_>>,
        policy: &Policy<'_>,
        envs: &[Env],
    ) -> Verification {
        let policy = Policy { fuel: self.fuel, ..*policy };
        let envs = match policy.runs() {
            true => {
                let promised = interp::nir::unaliased(shader);
                envs.iter().map(|env| env.keeping(&promised)).collect()
            }
            false => Vec::new(),
        };
        let mut verification = Verification { envs, ..Verification::default() };
        let mut scratch = std::mem::take(&mut self.scratch);
        let earlier = catch(|| {
            let plant = plant.as_mut().map(|plant| &mut **plant as Plant<'_>);
            self.judge_stages(shader, plant, &policy, &mut scratch, &mut verification)
        });
        // A panic leaves the buffers in an undefined state.
        if earlier.is_ok() {
            self.scratch = scratch;
        }
        match earlier {
            Ok(None) => {}
            Ok(Some(refutation)) => self.locate(shader, plant, refutation, &mut verification),
            Err(Panicked { message, place }) => {
                let is_of_compiler = std::mem::take(&mut self.is_compiling);
                let engine = if is_of_compiler { COMPILER } else { EngineKind::Interpreter.name() };
                verification.panicked(engine, Panic { stage: self.stage, place, message, is_of_compiler });
            }
        }
        verification
    }

    /// Returns a refutation of the last program by an earlier one that no judged boundary shows.
    fn judge_stages(
        &mut self,
        shader: &nir::Shader,
        plant: Option<Plant<'_>>,
        policy: &Policy<'_>,
        scratch: &mut Scratch,
        verification: &mut Verification,
    ) -> Option<Box<Refutation>> {
        let (target, options) = (self.target, self.options);
        let envs = verification.envs.clone();
        let mut judge = Judge::new(*policy, target, &envs, scratch);
        self.stage = Stage::Select;
        let start = ThreadTime::now();
        if !envs.is_empty()
            && let Err(reason) = judge.begin(ProgramRef::Nir(shader))
        {
            let verdict = Verdict::Unknown(Unknown::Unsupported(reason.into()));
            verification.push(Stage::Select, Judgment::of(verdict, EngineKind::Interpreter.name()));
            return None;
        }
        verification.source = judge.source_runs();
        verification.times.run += start.elapsed();
        let mut hook = hook_of(plant, self.nir_plant);
        let mut compilation = Compilation::new(shader, &target, &options).with_hook(Some(&mut hook));
        self.cover(|covered| covered.begin(shader));
        let is_judged = policy.engines.has_prover() || !envs.is_empty();
        let refutation = self.judge_boundaries(&mut compilation, &mut judge, is_judged, verification);
        self.cover(|covered| covered.seen.add_arms(compilation.counter()));
        refutation
    }

    /// Runs the stages of a compilation and has the boundary of each judged.
    fn judge_boundaries(
        &mut self,
        compilation: &mut Compilation<'_, '_>,
        judge: &mut Judge<'_>,
        is_judged: bool,
        verification: &mut Verification,
    ) -> Option<Box<Refutation>> {
        let (target, options) = (self.target, self.options);
        let mut judged = Judged::default();
        let mut before = Snapshot::from(compilation.program());
        let mut last = None;
        while let Some(stage) = compilation.next_stage() {
            self.stage = stage;
            let start = ThreadTime::now();
            let terms = watched(|| terms_of(stage, compilation.program(), &target, &options));
            verification.times.run += start.elapsed();
            let start = ThreadTime::now();
            self.is_compiling = true;
            let step = watched(|| compilation.step());
            self.is_compiling = false;
            verification.times.compile += start.elapsed();
            let change = match step {
                Some(Ok(step)) => {
                    self.cover(|covered| covered.seen.add_stage(stage, compilation.program()));
                    step.change
                }
                Some(Err(error)) => {
                    verification.refuse(needs_spilling_after_spill(error, &options));
                    return None;
                }
                None => break,
            };
            if change == Change::Nothing {
                verification.unchanged += 1;
                // Operations that the stage must lower may remain. In ir3 the last stage, which changes every program,
                // reports them.
                if let program @ ProgramRef::Vec4(_) = compilation.program()
                    && let Some(error) = postconditions::broken(stage, program, &target, &terms, None)
                {
                    verification.refuse(error);
                    return None;
                }
                continue;
            }
            if let (Stage::LowerSpills, ProgramRef::Ir3(program)) = (stage, compilation.program()) {
                verification.spills = Spills::count(program);
            }
            let after = Snapshot::from(compilation.program());
            let boundary = Boundary::of_stage(stage, (&before).into(), (&after).into());
            let judgment = judge.judge(&boundary);
            verification.count(&judgment);
            if judgment.is_earlier {
                return judgment.verdict.into_refutation();
            }
            if let (Verdict::Unknown(Unknown::Unsupported(what)), true) =
                (&judgment.verdict, judgment.engine == EngineKind::Interpreter.name())
            {
                verification.refuse(lost(stage, what));
                return None;
            }
            let is_over = matches!(judgment.verdict, Verdict::Refuted(_) | Verdict::Unknown(Unknown::Crashed(_)));
            if is_judged {
                verification.push(stage, judgment);
            }
            if is_over {
                return None;
            }
            let start = ThreadTime::now();
            let broken = postconditions::broken(stage, compilation.program(), &target, &terms, Some(&mut judged));
            verification.times.run += start.elapsed();
            if let Some(error) = broken {
                if is_judged {
                    verification.boundaries.pop();
                }
                verification.refuse(error);
                return None;
            }
            before = after;
            last = Some(stage);
        }
        let last = Boundary::of_stage(last?, (&before).into(), (&before).into());
        let judgment = judge.finish(&last);
        let judgment = judgment?;
        verification.times.run += judgment.time;
        match judgment.verdict {
            Verdict::Unknown(Unknown::Unsupported(what)) => {
                verification.refuse(lost(self.stage, &what));
                None
            }
            verdict => verdict.into_refutation(),
        }
    }

    /// Finds the boundary of a refutation among those that were proved, by runs of all in its environment. Its proof is
    /// wrong.
    fn locate(
        &mut self,
        shader: &nir::Shader,
        plant: Option<Plant<'_>>,
        refutation: Box<Refutation>,
        verification: &mut Verification,
    ) {
        let last = self.stage;
        let envs = verification.envs.clone();
        let mut again = self.verify(shader, plant, &Policy::new(&Engines::interpreter()), &envs);
        verification.times.add(&again.times);
        let refuted = again.boundaries.pop().filter(|row| row.verdict.is_refuted());
        let row = refuted.unwrap_or_else(|| BoundaryVerdict {
            stage: last,
            verdict: Verdict::Refuted(refutation),
            engine: EngineKind::Interpreter.name(),
            time: Duration::ZERO,
            sensitivity: None,
        });
        let why = row.verdict.reason().unwrap_or_default();
        let proof = verification.boundaries.iter().find(|other| other.stage == row.stage && other.verdict.is_proved());
        if let Some(prover) = proof.and_then(|proof| EngineKind::from_name(proof.engine)) {
            verification.wrong_proofs.push((row.stage, prover, why));
        }
        verification.boundaries.retain(|other| other.stage < row.stage);
        verification.boundaries.push(row);
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
        let before = Snapshot::from(compilation.program());
        let Some(Ok(_)) = compilation.step() else { return false };
        let Ok(source) = self.run_nir(compilation.shader(), envs) else { return false };
        // Without a meaning of the source, the stores before that may differ.
        if source.iter().any(|outcome| matches!(outcome.end, End::Undefined { .. })) {
            return true;
        }
        let after = Snapshot::from(compilation.program());
        let boundary = Boundary { follows: false, ..Boundary::of_stage(at, (&before).into(), (&after).into()) };
        let engines = Engines::interpreter();
        let policy = Policy { fuel: self.fuel, ..Policy::new(&engines) };
        match Judge::new(policy, self.target, envs, &mut self.scratch).judge(&boundary).verdict {
            Verdict::Refuted(refutation) => like(&refutation.difference),
            Verdict::Tested { .. } => false,
            // The comparison was with an earlier program.
            Verdict::Proved { .. } | Verdict::Unknown(_) => true,
        }
    }

    /// The outcomes of a program in some environments.
    ///
    /// # Errors
    /// If the interpreter does not support an operation.
    pub fn source_outcomes(
        &mut self,
        shader: &nir::Shader,
        envs: &[Env],
    ) -> Result<SourceOutcomes, interp::Unsupported> {
        Ok(SourceOutcomes { envs: envs.to_vec(), outcomes: self.run_nir(shader, envs)? })
    }

    pub(super) fn run_nir(&mut self, shader: &nir::Shader, envs: &[Env]) -> Result<Vec<Outcome>, interp::Unsupported> {
        let (decoded, fuel) = (interp::nir::Decoded::of_target(shader, &self.target)?, self.fuel);
        Ok(envs
            .iter()
            .map(|env| source_run(&mut self.scratch, |scratch| decoded.run(env, env.fuel.unwrap_or(fuel), scratch)))
            .collect())
    }

    /// The program before `stage`, compiled again: passes change a program in place, and nothing is copied while
    /// boundaries pass.
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

/// The postconditions of the next stage, which need the register limits of the allocator.
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

/// Calls the same compiler functions as a [`Checker`], under watch. `begins` gets each stage before it runs.
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

/// Makes `NeedsSpilling` of register allocation an internal error if `spill` has run: it accepts only programs that
/// fit.
fn needs_spilling_after_spill(error: CompileError, options: &Options) -> CompileError {
    let is_broken = error.kind == ErrorKind::NeedsSpilling
        && error.stage == Stage::RegisterAllocation
        && options.runs(Stage::Spill)
        && options.allocator == Allocator::Ssa;
    if is_broken { CompileError { kind: ErrorKind::Internal, ..error } } else { error }
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
        ErrorKind::Internal => Unknown::Crashed(Crash::from(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Ends, ProgramInputs, Search};
    use ir3_compiler::ir3::{Category, InstrData, InstrFlags, Opcode, Src};
    use ir3_programs::generator::{self, Features, Profile};
    use ir3_programs::planted_bugs;

    #[test]
    fn a_proof_that_a_run_refutes_is_wrong() {
        // An unsound prover proves every boundary; a run of the last program refutes the source.
        let plant = &planted_bugs::ALL[0];
        let mut checker = Checker::new(Target::default(), Options::default());
        let (shader, refutation) = (0..200)
            .find_map(|seed| {
                let shader = generator::from_seed(seed, Profile::Mixed, Features::ALL).shader;
                let report = checker.program(&shader, &[Env::from_seed(seed)], Some(&mut plant.change()));
                Some((shader, report.refutation()?.clone()))
            })
            .expect("a program in which the bug matters");
        let mut verification = Verification { envs: vec![refutation.env.clone()], ..Verification::default() };
        for stage in Stage::every() {
            let proved = Verdict::Proved { assumptions: Vec::new() };
            verification.push(stage, Judgment::of(proved, EngineKind::Smt.name()));
        }
        checker.locate(&shader, Some(&mut plant.change()), Box::new(refutation), &mut verification);
        assert_eq!(verification.wrong_proofs.len(), 1);
        assert_eq!(verification.wrong_proofs[0].0, plant.stage);
        let last = verification.boundaries.last().expect("a boundary");
        assert!(last.stage == plant.stage && last.verdict.is_refuted());
    }

    #[test]
    fn a_program_that_was_spilled_has_registers() {
        let error = |stage, kind| CompileError { stage, kind, reason: Refusal::Postcondition("no room".to_owned()) };
        let options = Options::default();
        let spilled = needs_spilling_after_spill(error(Stage::RegisterAllocation, ErrorKind::NeedsSpilling), &options);
        assert!(matches!(refusal(&spilled), Unknown::Crashed(_)));
        for (stage, kind) in
            [(Stage::Spill, ErrorKind::NeedsSpilling), (Stage::RegisterAllocation, ErrorKind::Unsupported)]
        {
            assert!(!matches!(refusal(&needs_spilling_after_spill(error(stage, kind), &options)), Unknown::Crashed(_)));
        }
    }

    /// The provers leave time out: a final program without its waits does the same to them. The postconditions of the
    /// stage find it.
    #[test]
    fn a_proof_of_a_final_program_needs_its_waits() {
        let shader = generator::from_seed(1, Profile::Mixed, Features::ALL).shader;
        let verdict = |plant: Option<Plant<'_>>| {
            let engines = Engines { kinds: vec![EngineKind::Registers, EngineKind::Smt], ..Engines::default() };
            let mut checker = Checker::new(Target::default(), Options::default());
            let verification = checker.verify(&shader, plant, &Policy::new(&engines), &[]);
            let mut rows = verification.boundaries.into_iter();
            rows.find(|row| row.stage == Stage::Legalize).map(|row| row.verdict)
        };
        assert!(matches!(verdict(None), Some(Verdict::Proved { .. })));
        let mut dropped = 0;
        let lost = verdict(Some(&mut |stage: Stage, program: &mut ir3_compiler::ir3::Program| {
            if stage == Stage::Legalize {
                for data in program.instrs.values_mut() {
                    dropped += u32::from(data.flags.intersects(InstrFlags::SS | InstrFlags::SY));
                    data.flags -= InstrFlags::SS | InstrFlags::SY;
                }
            }
        }));
        assert!(dropped > 0);
        let Some(Verdict::Unknown(Unknown::Crashed(reason))) = lost else { panic!("{lost:?}") };
        assert!(reason.message.contains("without (s"), "{reason}");
    }

    /// A stage that leaves a program which no engine can run, of one that could be run, has failed: it is named,
    /// whether every boundary is compared or both ends.
    #[test]
    fn a_program_that_cannot_be_run_any_more_is_a_failure() {
        let shader = generator::from_seed(1, Profile::Mixed, Features::ALL).shader;
        let mut plant = |stage: Stage, program: &mut ir3_compiler::ir3::Program| {
            if stage == Stage::Schedule {
                let is_alu = |data: &InstrData| data.opcode.category() == Category::Alu2 && data.srcs.len() == 2;
                let placed = program.layout.iter().flat_map(|&block| program.blocks[block].instrs.clone());
                let instr = placed.into_iter().find(|&instr| is_alu(&program.instrs[instr])).expect("an operation");
                // It has no meaning here.
                program.instrs[instr].opcode = Opcode::Msad;
            }
        };
        let envs = vec![Env::from_seed(1)];
        let mut checker = Checker::new(Target::default(), Options::default());
        let report = checker.program(&shader, &envs, Some(&mut plant));
        let (stage, why) = report.crash().expect("a failure");
        assert!(stage == Stage::Schedule && why.message.contains("cannot be run any more"), "{stage}: {why}");
        let outcomes = checker.run_nir(&shader, &envs).expect("it runs");
        let ends = checker.ends(&shader, &SourceOutcomes { envs, outcomes }, Some(&mut plant));
        assert!(!matches!(ends, Ends::Agree(_)));
    }

    /// Operands that the passes' table allows and the hardware lacks: runs do not see them, so the verifier's own table
    /// has to.
    #[test]
    fn operands_that_the_hardware_lacks_are_a_failure_of_the_stage() {
        for at in [Stage::CopyPropagation, Stage::Schedule, Stage::PostSchedule, Stage::Legalize] {
            let found = (0..40).find_map(|seed| {
                let shader = generator::from_seed(seed, Profile::Alu, Features::ALL).shader;
                // The same constant twice in a scalar operation or a vector one: an addition without a use.
                let mut plant = |stage: Stage, program: &mut ir3_compiler::ir3::Program| {
                    let mut adds = program.instrs.values_mut().filter(|data| data.opcode == Opcode::AddU);
                    if stage == at
                        && let Some(add) = adds.find(|add| !add.srcs[0].class.half && add.srcs.len() == 2)
                    {
                        add.srcs[0] = Src::constant(0, false);
                        add.srcs[1] = Src::constant(1, false);
                    }
                };
                let mut checker = Checker::new(Target::default(), Options::default());
                let report = checker.program(&shader, &[], Some(&mut plant));
                report.crash().map(|(stage, why)| (stage, why.message.clone()))
            });
            let (stage, why) = found.expect("a program with an addition");
            assert!(stage == at && !why.is_empty(), "{at}: {stage}: {why}");
        }
    }

    #[test]
    fn runs_are_added_for_what_is_not_proved() {
        let shader = generator::from_seed(12, Profile::Mixed, Features::ALL).shader;
        let inputs = ProgramInputs::new(&shader, 1);
        let verify = |kinds: &[EngineKind]| {
            let engines = Engines { kinds: kinds.to_vec(), ..Engines::default() };
            let mut checker = Checker::new(Target::default(), Options::default());
            let policy = Policy::new(&engines).with_search(Search::of_stage(&inputs));
            checker.verify(&shader, None, &policy, &[Env::from_seed(0), Env::from_seed(1)])
        };
        let proved = verify(&EngineKind::ALL);
        assert!(proved.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Proved { .. })));
        assert!(proved.boundaries.iter().all(|row| row.sensitivity.is_none()) && proved.source.finished > 0);
        // A boundary to which no engine applies is no pass.
        let registers = verify(&[EngineKind::Registers]);
        assert_eq!(registers.boundaries.len(), proved.boundaries.len());
        let select = &registers.boundaries[0];
        assert_eq!(select.verdict.reason().as_deref(), Some("unsupported: no selected engine compares them"));
        assert!(registers.boundaries.iter().any(|row| matches!(row.verdict, Verdict::Proved { .. })));
        let run = verify(&[EngineKind::Interpreter]);
        for row in &run.boundaries {
            let sensitivity = row.sensitivity.expect("it was measured");
            assert!(sensitivity.share() > 0.0);
            assert_eq!(matches!(row.verdict, Verdict::Tested { .. }), sensitivity.is_enough());
        }
        assert_eq!(run.boundaries.len(), proved.boundaries.len());
    }
}
