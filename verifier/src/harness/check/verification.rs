//! All engines together on the boundaries of one compilation.
//!
//! A boundary is a stage that changed the program; stages that did not are counted apart. The register checker decides
//! first, as it takes microseconds; the SMT engine has the rest; what neither settles is run, and so is the last program
//! against the first one. Only if something is left are the runs measured ([`Sensitivity`]), and added to while they come
//! to depend on more of the program. The first refutation ends it. Of the answers on a boundary
//!
//! - a refutation counts before everything: a run shows the difference;
//! - then a crash, then a proof;
//! - what the register checker followed and could not prove is unknown, whatever runs say: it is complete for most
//!   moves, so a failure is more likely a bug that no input reached than a weak proof;
//! - what is left was only run. That is a pass if the runs depend on enough of the program, and otherwise unknown.

use super::checker::{Decide, Next};
use super::engine::{COMPILER, NO_ENGINE};
use super::sensitivity::{Sensitivity, SensitivityProbe};
use super::{
    Answer, Checker, EngineKind, Engines, NotShown, Plant, ProgramReport, StageSnapshots, Unknown, Verdict,
    contradiction, postconditions,
};
use crate::programs::Question;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::support::panics::catch;
use cpu_time::ThreadTime;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;
use std::time::Duration;

/// The least sensitivity at which a boundary that was only run is a pass.
pub const LEAST_SENSITIVITY: f64 = 0.7;
/// Environments are added while the sensitivity grows by this much.
const LEAST_GROWTH: f64 = 0.01;
/// The number of times that environments are added without that.
const PATIENCE: usize = 1;
/// The number of environments that are added at a time.
const BATCH: usize = 2;
/// The number of times that other environments are tried if no run has a meaning.
const RETRIES: usize = 16;
/// Environments, at most, before that.
pub const MOST_RUNS: usize = 16;

/// The verdict on one boundary.
#[derive(Clone, Debug)]
pub struct BoundaryVerdict {
    /// The stage.
    pub stage: Stage,
    /// The verdict of all engines together.
    pub verdict: Verdict,
    /// The name of the engine that decided.
    pub engine: &'static str,
    /// CPU time of all engines.
    pub time: Duration,
}

/// The verdicts on a compilation.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// The verdicts on its boundaries, in order. If a stage refuses the program or panics, it is the last.
    pub boundaries: Vec<BoundaryVerdict>,
    /// The number of stages that changed nothing.
    pub unchanged: usize,
    /// The report of the runs, if there were any.
    pub report: ProgramReport,
    /// The environments of the runs.
    pub envs: Vec<Env>,
    /// The share of the final program on which the runs depend, if it was measured.
    pub sensitivity: Option<Sensitivity>,
    /// CPU time of the provers.
    pub proving: Duration,
    /// Boundaries that a prover proved and a run refutes.
    pub wrong_proofs: Vec<(Stage, EngineKind, String)>,
}

/// The answers of the provers, by boundary.
#[derive(Default)]
struct Proofs {
    answers: Vec<(Stage, Vec<Answer>)>,
    /// The stages that are not settled.
    open: Vec<Stage>,
    /// True if one is refuted.
    is_refuted: bool,
    /// The last program.
    last: Option<Snapshot>,
}

impl Proofs {
    /// Asks the provers about a boundary.
    fn ask(&mut self, engines: &Engines, sides: &StageSnapshots, machine: &Target) -> Next {
        let &StageSnapshots { stage, ref before, ref after } = sides;
        let question = Question { stage: Some(stage), before, after, machine, envs: &[] };
        let mut answers = engines.ask_until_known(&question);
        // The provers leave time out: their programs have their results at once.
        if stage.is_final()
            && let Some(Answer { verdict: verdict @ Verdict::Proved { .. }, .. }) = answers.last_mut()
            && let Some(hazard) = hazard(after, machine)
        {
            *verdict = Verdict::Unknown(Unknown::NotShown(NotShown::Hazard(hazard)));
        }
        for answer in &mut answers {
            if let Verdict::Refuted(refutation) = &mut answer.verdict {
                refutation.stage = stage.name();
            }
        }
        let next = match answers.last().map(|answer| &answer.verdict) {
            Some(Verdict::Proved { .. }) => Next::Skip,
            Some(Verdict::Refuted(_)) => {
                self.is_refuted = true;
                Next::Stop
            }
            _ => {
                self.open.push(stage);
                Next::Run
            }
        };
        self.answers.push((stage, answers));
        self.last = Some(after.clone());
        next
    }
}

/// The reason why a final program is not proved free of hazards.
fn hazard(after: &Snapshot, machine: &Target) -> Option<String> {
    let program = after.as_ir3()?;
    match postconditions::hazards_of(program, false, machine) {
        Ok((_, hazards)) => hazards.first().map(ToString::to_string),
        Err(refusal) => Some(refusal),
    }
}

impl Engines {
    /// Verifies a compilation with all selected engines. With `more`, which makes the environment of a number,
    /// environments are added for boundaries that are not settled: while the runs come to depend on more of the program,
    /// or no run has a meaning.
    pub fn verify(
        &self,
        checker: &mut Checker,
        shader: &Shader,
        mut plant: Option<Plant<'_>>,
        mut envs: Vec<Env>,
        more: Option<&dyn Fn(usize) -> Env>,
    ) -> Verification {
        let runs = self.has(EngineKind::Interpreter);
        if !runs {
            envs.clear();
        }
        let target = *checker.target();
        let mut proofs = Proofs::default();
        // Nobody needs the programs if nothing is proved or added to.
        let mut ask = |sides: &StageSnapshots| proofs.ask(self, sides, &target);
        let decide: Option<Decide<'_>> = if self.prove() || more.is_some() { Some(&mut ask) } else { None };
        let mut report = run_open(checker, shader, &mut plant, &envs, decide);
        let mut sensitivity = None;
        let has_failed = proofs.is_refuted || report.refutation().is_some() || report.crash().is_some();
        let is_open = runs && !proofs.open.is_empty() && !has_failed && report.refusal.is_none();
        if let Some(more) = more.filter(|_| is_open) {
            let start = ThreadTime::now();
            let mut added = Vec::new();
            if report.source.finished == 0 {
                // Other environments may make a run defined, or loops shorter.
                added.extend((MOST_RUNS..MOST_RUNS + RETRIES).map(more));
            }
            let mut probe =
                proofs.last.as_ref().and_then(|program| catch(|| SensitivityProbe::of(program, &target)).ok()?);
            let (mut last, mut idle) = (0.0, 0);
            let mut measured: Vec<Env> = envs.iter().chain(&added).cloned().collect();
            while let Some(probe) = &mut probe {
                if catch(|| measured.iter().for_each(|env| probe.run(env, checker.fuel()))).is_err() {
                    break;
                }
                let (count, share) = (envs.len() + added.len(), probe.sensitivity().share());
                idle = if share < last + LEAST_GROWTH { idle + 1 } else { 0 };
                if count >= MOST_RUNS || share == 1.0 || idle > PATIENCE {
                    break;
                }
                last = share.max(last);
                measured = (count..count + BATCH).map(more).collect();
                added.extend_from_slice(&measured);
            }
            // What could not be measured is no pass.
            sensitivity = Some(probe.map_or(Sensitivity::NONE, |probe| probe.sensitivity()));
            report.times.run += start.elapsed();
            if !added.is_empty() {
                let open = &proofs.open;
                let mut decide =
                    |sides: &StageSnapshots| if open.contains(&sides.stage) { Next::Run } else { Next::Skip };
                report.add(run_open(checker, shader, &mut plant, &added, Some(&mut decide)));
                envs.extend(added);
            }
        }
        let proving = proofs.answers.iter().flat_map(|(_, answers)| answers).map(|answer| answer.time).sum();
        let mut verification =
            Verification { unchanged: report.unchanged, sensitivity, envs, proving, ..Verification::default() };
        verification.combine(&report, proofs.answers, runs);
        verification.report = report;
        verification
    }
}

/// Runs the boundaries that `decide` leaves open. If a difference may come from one that was skipped, all are run.
fn run_open(
    checker: &mut Checker,
    shader: &Shader,
    plant: &mut Option<Plant<'_>>,
    envs: &[Env],
    decide: Option<Decide<'_>>,
) -> ProgramReport {
    let mut report = checker.open_boundaries(shader, envs, reborrow(plant), decide);
    if report.skipped && report.refutation().is_some() {
        let all = checker.program(shader, envs, reborrow(plant));
        report.times.add(&all.times);
        if all.refutation().is_some() {
            return ProgramReport { times: report.times, ..all };
        }
    }
    report
}

fn reborrow<'a>(plant: &'a mut Option<Plant<'_>>) -> Option<Plant<'a>> {
    plant.as_mut().map(|plant| &mut **plant as Plant<'a>)
}

impl Verification {
    /// The verdict on a program whose compilation had to be stopped in a stage: a crash, with a reason.
    pub fn stopped(stage: Stage, why: &str) -> Self {
        let verdict = Verdict::Unknown(Unknown::Crashed(why.to_owned()));
        let report = ProgramReport {
            boundaries: vec![(stage, verdict.clone(), Duration::ZERO)],
            compiler_panicked: true,
            ..ProgramReport::default()
        };
        let boundary = BoundaryVerdict { stage, verdict, engine: COMPILER, time: Duration::ZERO };
        Self { boundaries: vec![boundary], report, ..Self::default() }
    }

    /// Adds a refutation of the last program by its source, which no boundary shows.
    pub(crate) fn add_refutation(&mut self, refutation: super::Refutation) {
        let Some(stage) = Stage::from_name(refutation.stage) else { return };
        let verdict = Verdict::Refuted(Box::new(refutation));
        self.report.boundaries.push((stage, verdict.clone(), Duration::ZERO));
        let engine = EngineKind::Interpreter.name();
        self.boundaries.push(BoundaryVerdict { stage, verdict, engine, time: Duration::ZERO });
    }

    /// Returns true if the compiler refused the program.
    pub fn is_rejected(&self) -> bool {
        let by_compiler = |last: &BoundaryVerdict| {
            last.engine == COMPILER && !matches!(last.verdict, Verdict::Unknown(Unknown::Crashed(_)))
        };
        self.boundaries.last().is_some_and(by_compiler)
    }

    /// CPU time of the engines and of the compiler.
    pub fn time(&self) -> Duration {
        self.report.times.compile + self.report.times.run + self.proving
    }

    /// The first refutation.
    pub fn refutation(&self) -> Option<&super::Refutation> {
        self.boundaries.iter().find_map(|boundary| match &boundary.verdict {
            Verdict::Refuted(refutation) => Some(&**refutation),
            _ => None,
        })
    }

    /// The environment of the first failure: `Some(None)` for a crash, or for a difference in the environments of the
    /// runs.
    pub fn failing_env(&self) -> Option<Option<&Env>> {
        if self.report.refutation().is_some() || self.report.crash().is_some() {
            return Some(None);
        }
        self.refutation().map(|refutation| Some(&refutation.env))
    }

    /// Combines the runs and the proofs, which are both in the order of the stages. If it `is_run`, the interpreter was asked: a boundary without any
    /// answer is one after the first refutation.
    fn combine(&mut self, report: &ProgramReport, proofs: Vec<(Stage, Vec<Answer>)>, is_run: bool) {
        let mut stages: Vec<Stage> = report.boundaries.iter().map(|(stage, ..)| *stage).collect();
        stages.extend(proofs.iter().map(|(stage, _)| *stage));
        stages.sort_unstable();
        stages.dedup();
        let mut proofs = proofs.into_iter().peekable();
        let mut runs = report.boundaries.iter().peekable();
        for stage in stages {
            let mut answers = proofs.next_if(|(at, _)| *at == stage).map(|(_, answers)| answers).unwrap_or_default();
            let run = runs.next_if(|(at, ..)| *at == stage);
            if let Some((_, verdict, time)) = run {
                answers.push(Answer { engine: EngineKind::Interpreter, verdict: verdict.clone(), time: *time });
            }
            if let Some((provers, why)) = contradiction(&answers) {
                self.wrong_proofs.extend(provers.into_iter().map(|prover| (stage, prover, why.clone())));
            }
            let time = answers.iter().map(|answer| answer.time).sum();
            if let Some((verdict, engine)) = combined(answers, self.sensitivity.as_ref()) {
                let is_last = runs.peek().is_none() && run.is_some();
                let by_compiler = is_last && (report.refusal.is_some() || report.compiler_panicked);
                let engine = if by_compiler { COMPILER } else { engine.name() };
                self.boundaries.push(BoundaryVerdict { stage, verdict, engine, time });
            } else if !is_run {
                let verdict = Verdict::not_compared();
                self.boundaries.push(BoundaryVerdict { stage, verdict, engine: NO_ENGINE, time });
            }
        }
    }
}

/// The rank of an answer: the highest counts. See the module.
fn rank(answer: &Answer) -> u8 {
    match (&answer.verdict, answer.engine) {
        (Verdict::Refuted(_), _) => 6,
        (Verdict::Unknown(Unknown::Crashed(_)), _) => 5,
        (Verdict::Proved { .. }, _) => 4,
        (Verdict::Unknown(Unknown::NotShown(NotShown::Hazard(_))), _) => 3,
        (Verdict::Unknown(Unknown::NotShown(_)), EngineKind::Registers) => 3,
        (Verdict::Tested { .. }, _) => 2,
        // The reason why runs say nothing comes before the reason why there is no proof.
        (Verdict::Unknown(_), EngineKind::Interpreter) => 1,
        (Verdict::Unknown(_), _) => 0,
    }
}

/// The verdict that follows from the answers of all engines. `None` if no engine applied.
pub(crate) fn combined(answers: Vec<Answer>, sensitivity: Option<&Sensitivity>) -> Option<(Verdict, EngineKind)> {
    // Of equal ranks the last counts: the stronger prover.
    let answer = answers.into_iter().max_by_key(rank)?;
    let verdict = match (answer.verdict, sensitivity) {
        (Verdict::Tested { .. }, Some(sensitivity)) if sensitivity.share() < LEAST_SENSITIVITY => {
            Verdict::Unknown(Unknown::Insensitive(*sensitivity))
        }
        (verdict, _) => verdict,
    };
    Some((verdict, answer.engine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::check::sensitivity::SiteCount;
    use crate::harness::check::{Ends, SourceOutcomes};
    use crate::programs::generator::{self, Features, Profile};
    use crate::programs::planted_bugs;
    use crate::prove::simulation::Obstacle;
    use ir3_compiler::ir3::{Category, InstrData, InstrFlags, Opcode, Src};
    use ir3_compiler::pipeline::Options;

    fn answer(engine: EngineKind, verdict: Verdict) -> Answer {
        Answer { engine, verdict, time: Duration::ZERO }
    }

    fn tested() -> Answer {
        answer(EngineKind::Interpreter, Verdict::Tested { lanes: 64 })
    }

    fn not_shown(engine: EngineKind) -> Answer {
        let why = NotShown::Simulation { obstacle: Box::new(Obstacle::Nesting), left_out: None };
        answer(engine, Verdict::Unknown(Unknown::NotShown(why)))
    }

    fn verdict(answers: Vec<Answer>, seen: u32) -> String {
        let results = SiteCount { seen, all: 100 };
        let sensitivity = Sensitivity { results, ..Sensitivity::default() };
        combined(answers, Some(&sensitivity)).expect("a verdict").0.to_string()
    }

    #[test]
    fn a_proof_counts_more_than_runs() {
        let proved = answer(EngineKind::Smt, Verdict::Proved { assumptions: Vec::new() });
        assert_eq!(verdict(vec![not_shown(EngineKind::Registers), proved, tested()], 10), "proved");
    }

    #[test]
    fn what_the_register_checker_could_not_prove_does_not_pass() {
        let answers = vec![not_shown(EngineKind::Registers), not_shown(EngineKind::Smt), tested()];
        assert_eq!(verdict(answers, 100), "unknown");
        assert_eq!(verdict(vec![not_shown(EngineKind::Smt), tested()], 100), "tested 64");
    }

    #[test]
    fn runs_that_see_little_do_not_pass() {
        assert_eq!(verdict(vec![tested()], 69), "unknown");
        assert_eq!(verdict(vec![tested()], 70), "tested 64");
    }

    #[test]
    fn a_proof_that_a_run_refutes_is_wrong() {
        // A prover that proves everything: the last program is run all the same, and then every boundary.
        let mut checker = Checker::new(Target::default(), Options::default());
        let plant = &planted_bugs::ALL[0];
        let mut proves = |_: &StageSnapshots| Next::Skip;
        let (stage, report) = (0..200)
            .find_map(|seed| {
                let shader = generator::from_seed(seed, Profile::Mixed, Features::ALL).shader;
                let mut change = plant.change();
                let mut plant: Option<Plant<'_>> = Some(&mut change);
                let envs = [Env::from_seed(seed)];
                let report = run_open(&mut checker, &shader, &mut plant, &envs, Some(&mut proves));
                Some((report.refutation()?.stage, report))
            })
            .expect("a program in which the bug matters");
        assert_eq!(stage, plant.stage.name());
        let proved = || vec![answer(EngineKind::Smt, Verdict::Proved { assumptions: Vec::new() })];
        let answers = report.boundaries.iter().map(|(stage, ..)| (*stage, proved())).collect();
        let mut verification = Verification::default();
        verification.combine(&report, answers, true);
        assert_eq!(verification.wrong_proofs.len(), 1);
        assert!(verification.refutation().is_some());
    }

    #[test]
    fn what_is_settled_is_not_run() {
        let shader = generator::from_seed(1, Profile::Mixed, Features::ALL).shader;
        let mut checker = Checker::new(Target::default(), Options::default());
        let all = checker.program(&shader, &[Env::from_seed(1)], None);
        let mut decide = |sides: &StageSnapshots| match sides.stage {
            Stage::Schedule => Next::Run,
            _ => Next::Skip,
        };
        let open = checker.open_boundaries(&shader, &[Env::from_seed(1)], None, Some(&mut decide));
        let lanes = |report: &ProgramReport| {
            let mut boundaries = report.boundaries.iter();
            boundaries.find(|(stage, ..)| *stage == Stage::Schedule).map(|(_, verdict, _)| verdict.lanes())
        };
        assert_eq!((open.boundaries.len(), lanes(&open)), (1, lanes(&all)));
        assert!(lanes(&all).is_some_and(|lanes| lanes > 0) && all.boundaries.len() > 8);
    }

    /// The provers leave time out: a final program without its waits does the same to them. The postconditions of the stage find it.
    #[test]
    fn a_proof_of_a_final_program_needs_its_waits() {
        let shader = generator::from_seed(1, Profile::Mixed, Features::ALL).shader;
        let verdict = |plant: Option<Plant<'_>>| {
            let engines = Engines { kinds: vec![EngineKind::Registers, EngineKind::Smt], ..Engines::default() };
            let mut checker = Checker::new(Target::default(), Options::default());
            let verification = engines.verify(&mut checker, &shader, plant, Vec::new(), None);
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
        assert!(reason.contains("without (s"), "{reason}");
    }

    /// A stage that leaves a program which no engine can run, of one that could be run, has failed: it is named, whether every boundary is
    /// compared or both ends.
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
        assert!(stage == Stage::Schedule && why.contains("cannot be run any more"), "{stage}: {why}");
        let outcomes = checker.run_nir(&shader, &envs).expect("it runs");
        let (ends, _) = checker.ends(&shader, &SourceOutcomes { envs, outcomes }, Some(&mut plant));
        assert!(!matches!(ends, Ends::Agree(_)));
    }

    /// Operands that the passes' table allows and the hardware lacks: runs do not see them, so the verifier's own table has to.
    #[test]
    fn operands_that_the_hardware_lacks_are_a_failure_of_the_stage() {
        for at in [Stage::CopyPropagation, Stage::Schedule, Stage::PostSchedule, Stage::Legalize] {
            let found = (0..40).find_map(|seed| {
                let shader = generator::from_seed(seed, Profile::Alu, Features::ALL).shader;
                // The same constant twice in a scalar operation or a vector one: an addition that nobody uses.
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
                report.crash().map(|(stage, why)| (stage, why.to_owned()))
            });
            let (stage, why) = found.expect("a program with an addition");
            assert!(stage == at && !why.is_empty(), "{at}: {stage}: {why}");
        }
    }

    #[test]
    fn runs_are_added_for_what_is_not_proved() {
        let shader = generator::from_seed(12, Profile::Mixed, Features::ALL).shader;
        let verify = |kinds: &[EngineKind]| {
            let engines = Engines { kinds: kinds.to_vec(), ..Engines::default() };
            let mut checker = Checker::new(Target::default(), Options::default());
            let more = |number: usize| Env::from_seed(number as u64);
            engines.verify(&mut checker, &shader, None, vec![more(0), more(1)], Some(&more))
        };
        let proved = verify(&EngineKind::ALL);
        assert!(proved.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Proved { .. })));
        assert!(proved.envs.len() == 2 && proved.sensitivity.is_none() && proved.report.source.finished > 0);
        // A boundary to which no engine applies is no pass.
        let registers = verify(&[EngineKind::Registers]);
        assert_eq!(registers.boundaries.len(), proved.boundaries.len());
        let select = &registers.boundaries[0];
        assert_eq!(select.verdict.reason().as_deref(), Some("unsupported: no engine that was asked compares them"));
        assert!(registers.boundaries.iter().any(|row| matches!(row.verdict, Verdict::Proved { .. })));
        let run = verify(&[EngineKind::Interpreter]);
        let sensitivity = run.sensitivity.expect("it was measured").share();
        assert!(run.envs.len() > 2 && run.envs.len() <= MOST_RUNS && sensitivity > 0.0);
        let passes = sensitivity >= LEAST_SENSITIVITY;
        assert!(run.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Tested { .. }) == passes));
        assert_eq!(run.boundaries.len(), proved.boundaries.len());
    }
}
