//! The judge: the one function that compares two programs and returns a verdict.
//!
//! Every command and every campaign compares programs by [`Judge::judge`]: a stage of a compilation, a section of a
//! log, two files, a candidate of a reduction. A [`Policy`] selects the engines, the inputs and the budget; the rules
//! are the same for all.
//!
//! 1. Declarations that differ refute the boundary, and two equal programs are proved.
//! 2. The provers run, the cheaper first; two programs with the same code are proved at once. A proof holds only if the
//!    program after keeps the rules of ir3, and final code only if it has no hazard: proofs are about programs whose
//!    results are available at once.
//! 3. A boundary that no prover settles is run. With a [`Search`](super::Search) further inputs are tried (`search`),
//!    and the runs are measured: a boundary is *tested* only if they depend on enough of the program ([`Sensitivity`]),
//!    and if accesses to memory have the same order or runs show that it makes no difference ([`memory_order`]).
//! 4. Of all answers the one with the highest [rank](rank) is the verdict: a refutation comes first, because a run
//!    shows it; then a crash; then a proof. A failed proof of the register checker that it followed to the end comes
//!    before runs: the checker is complete for most moves, so a failure is more likely a bug that no input reached than
//!    a weak proof.
//! 5. A pass has to meet the other conditions of the boundary (hazards, rules, the driver's reservations).
//!
//! Boundaries of one compilation follow each other: the outcomes of the program after are those of the program before
//! of the next boundary, so each program is run once. A proved boundary is not run; the next one that is runs its own
//! program before.

use super::boundary::{Boundary, BoundaryKind, Origin, ir3_of};
use super::engine::crash;
use super::final_code::{final_code, hazard};
use super::history::History;
use super::interpreter::{
    Comparison, Refutation, SourceRuns, compare_runs, decode_with_driver_words, source_run, source_runs,
};
use super::legal::broken_rule;
use super::policy::Policy;
use super::proof_time::with_proof_time;
use super::search::InputSearch;
use super::sensitivity::Sensitivity;
use super::{Answer, EngineKind, Engines, Executable, Execution, NO_ENGINE, NotShown, Unknown, Verdict};
use super::{contradiction, kills, memory_order, thresholds};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::{Opcode, Program};
use ir3_compiler::nir::Shader;
use ir3_compiler::target::Target;
use ir3_programs::Question;
use ir3_prove::registers::RegisterFailure;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::sync::Sync;
use ir3_semantics::header;
use ir3_semantics::interp::ir3::machine::Completion;
use ir3_semantics::interp::{self, Difference, Outcome, Scratch};
use ir3_semantics::support::panics::catch;
use std::time::Duration;

/// The engine of two sides that are the same program.
pub const SAME_PROGRAM: &str = "same program";

/// The environments in which the order of accesses is compared, with those that are given.
const ORDERED: usize = 24;

/// The batches of environments in which final code with a hazard is run on the machine, and their size.
const LATE_BATCHES: usize = 12;
const LATE_BATCH: usize = 8;

/// The verdict on a boundary, with its evidence.
#[derive(Clone, Debug)]
pub struct Judgment {
    /// The verdict of all engines together.
    pub verdict: Verdict,
    /// The name of the engine that decided.
    pub engine: &'static str,
    /// The share of the program after on which the runs depend, if it was measured.
    pub sensitivity: Option<Sensitivity>,
    /// CPU time of all engines.
    pub time: Duration,
    /// CPU time of the provers.
    pub proving: Duration,
    /// The provers that proved a boundary that a run refutes, and the reason of the refutation.
    pub wrong_proofs: Vec<(EngineKind, String)>,
    /// True if the refutation is of an earlier boundary, which was proved and not run: of the source and the program
    /// before.
    pub is_earlier: bool,
}

impl Judgment {
    /// A verdict without engines.
    pub(crate) fn of(verdict: Verdict, engine: &'static str) -> Self {
        Self {
            verdict,
            engine,
            sensitivity: None,
            time: Duration::ZERO,
            proving: Duration::ZERO,
            wrong_proofs: Vec::new(),
            is_earlier: false,
        }
    }
}

/// The outcomes of the program before the next boundary, if that follows the last one.
#[derive(Default)]
struct Trail {
    envs: Vec<Env>,
    outcomes: Vec<Outcome>,
    /// The reason why the last run without a meaning has none.
    vacuous: String,
    runs: SourceRuns,
    /// True if boundaries were proved since: the outcomes are those of an earlier program.
    has_skipped_runs: bool,
}

/// Compares programs.
pub struct Judge<'a> {
    policy: Policy<'a>,
    target: Target,
    envs: &'a [Env],
    scratch: &'a mut Scratch,
    trail: Trail,
    history: History,
}

impl<'a> Judge<'a> {
    /// A judge of boundaries that do not follow each other. Every boundary that is run is run in `envs`.
    pub fn new(policy: Policy<'a>, target: Target, envs: &'a [Env], scratch: &'a mut Scratch) -> Self {
        Self { policy, target, envs, scratch, trail: Trail::default(), history: History::default() }
    }

    /// Returns the judge with the history of the same program.
    #[must_use]
    pub fn with_history(self, history: History) -> Self {
        Self { history, ..self }
    }

    /// Returns the history with the boundaries so far.
    pub fn into_history(self) -> History {
        self.history
    }

    /// Runs the first program of boundaries that follow each other.
    ///
    /// # Errors
    /// If the interpreter does not support an operation.
    pub fn begin(&mut self, source: ProgramRef<'_>) -> Result<(), interp::Unsupported> {
        let executable = Executable::new(source, &self.target, Execution::Untimed)?;
        let outcomes = run_all(&executable, self.envs, self.policy.fuel, self.scratch);
        self.begin_with(outcomes);
        Ok(())
    }

    /// Takes the outcomes of the first program of boundaries that follow each other.
    pub fn begin_with(&mut self, outcomes: Vec<Outcome>) {
        let (runs, vacuous) = source_runs(&outcomes);
        self.trail = Trail { envs: self.envs.to_vec(), outcomes, vacuous, runs, has_skipped_runs: false };
    }

    /// The runs of the first program.
    pub fn source_runs(&self) -> SourceRuns {
        self.trail.runs
    }

    /// True if the last boundaries were proved, and their programs not run.
    pub fn has_skipped_runs(&self) -> bool {
        self.trail.has_skipped_runs
    }

    /// Decides if the program after a boundary refines the program before it.
    pub fn judge(&mut self, boundary: &Boundary<'_>) -> Judgment {
        let mut judgment = self.with_kills(boundary);
        let is_pass = |judgment: &Judgment| judgment.verdict.is_pass();
        if is_pass(&judgment)
            && let Some(why) = boundary.condition.and_then(|condition| condition())
        {
            judgment.verdict = Verdict::Unknown(Unknown::NotShown(why));
        }
        judgment
    }

    /// Compares a last program of a compilation, decoded already, with the first one. The next comparison begins with
    /// the first program, too.
    pub(super) fn judge_end(&mut self, whole: &Boundary<'_>, last: &Executable) -> Verdict {
        if let Some(difference) = header::difference(whole.before, whole.after) {
            return refuted(whole, self.envs.first().cloned().unwrap_or_default(), Difference::Header(difference));
        }
        let Trail { envs, outcomes, vacuous, .. } = &self.trail;
        let run = |env: &Env, fuel, scratch: &mut Scratch| last.run(env, fuel, scratch);
        compare_runs(envs, &mut outcomes.clone(), vacuous, self.scratch, run)
            .unwrap_or_else(|(at, difference)| refuted(whole, envs[at].clone(), difference))
    }

    /// Judges a boundary by what killed lanes do ([`kills`]). Between texts of ir3 they go on as helper lanes where the
    /// hardware's do; if other instructions depend on the active lanes, both meanings have to agree. After nir, whose
    /// `terminate` ends them, one meaning is enough.
    fn with_kills(&mut self, boundary: &Boundary<'_>) -> Judgment {
        let helpers = match boundary.origin {
            Origin::Printed => kills::as_helpers(boundary.before, boundary.after, &self.target),
            Origin::Compiled => None,
        };
        let Some(helpers) = helpers else { return self.compare(boundary) };
        let [before, after] = [(&helpers.before).into(), (&helpers.after).into()];
        let of_hardware = Boundary { before, after, follows: false, ..*boundary };
        let is_ir3 = ir3_of(boundary.before).is_some();
        if is_ir3 && !helpers.counts_lanes {
            return self.compare(&of_hardware);
        }
        let judgment = self.compare(boundary);
        let needs_both = is_ir3 && judgment.verdict.is_pass();
        if !needs_both && !judgment.verdict.is_refuted() {
            return judgment;
        }
        let again = self.compare(&of_hardware);
        let time = judgment.time + again.time;
        match (needs_both, again.verdict.is_pass()) {
            (true, true) => return Judgment { time, ..judgment },
            (false, _) if again.verdict.is_refuted() => return Judgment { time, ..judgment },
            (false, _) if !helpers.counts_lanes => return Judgment { time, ..again },
            _ => {}
        }
        let what = "a sample or derivative moved over a kill where other instructions depend on the active lanes";
        let verdict = Verdict::Unknown(Unknown::Unsupported(what.to_owned().into()));
        Judgment { verdict, time, ..judgment }
    }

    /// Asks the engines.
    fn compare(&mut self, boundary: &Boundary<'_>) -> Judgment {
        if let (true, ProgramRef::Nir(shader), ProgramRef::Ir3(program)) =
            (boundary.follows && boundary.kind != BoundaryKind::Whole, boundary.before, boundary.after)
        {
            self.add_driver_words(shader, program);
        }
        // A campaign of runs alone counts its runs.
        let is_shortcut = boundary.origin == Origin::Printed || self.policy.engines.has_prover();
        if is_shortcut && boundary.has_same_sides() {
            let program = ir3_of(boundary.after).filter(|_| boundary.kind == BoundaryKind::Final);
            let verdict = match program.and_then(|program| hazard(program, boundary, &self.target)) {
                Some(hazard) => Verdict::Unknown(Unknown::NotShown(NotShown::Hazard(hazard))),
                None => Verdict::Proved { assumptions: Vec::new() },
            };
            return Judgment::of(verdict, SAME_PROGRAM);
        }
        if let Some(difference) = header::difference(boundary.before, boundary.after) {
            let env = self.envs.first().cloned().unwrap_or_default();
            let verdict = refuted(boundary, env, Difference::Header(difference));
            return Judgment::of(verdict, EngineKind::Interpreter.name());
        }
        let mut answers = self.proofs(boundary);
        let proving = answers.iter().map(|answer| answer.time).sum();
        let is_settled = answers.last().is_some_and(|answer| answer.verdict.is_pass() || answer.verdict.is_refuted());
        let mut sensitivity = None;
        let mut is_earlier = false;
        let has_inputs = !self.envs.is_empty() || self.policy.search.is_some();
        if self.policy.runs() && has_inputs && (!is_settled || self.policy.runs_proved) {
            let doubted = answers.iter().any(is_failure_of_registers);
            let start = ThreadTime::now();
            let run = catch(|| self.run(boundary, doubted));
            let run = run.unwrap_or_else(|panicked| {
                // The panic left the buffers in an undefined state.
                *self.scratch = Scratch::default();
                Run::of(crash(panicked))
            });
            sensitivity = run.sensitivity;
            is_earlier = run.is_earlier;
            answers.push(Answer { engine: EngineKind::Interpreter, verdict: run.verdict, time: start.elapsed() });
        } else if boundary.follows {
            self.trail.has_skipped_runs = true;
        }
        // In a compilation, runs are on the machine, and the postconditions of the stage report the hazards.
        let leaves_time_out = |answer: &Answer| match boundary.origin {
            Origin::Compiled => answer.verdict.is_proved(),
            Origin::Printed => answer.verdict.is_pass(),
        };
        if boundary.kind == BoundaryKind::Final && answers.iter().any(leaves_time_out) {
            self.time_matters(boundary, &mut answers);
        }
        let wrong_proofs = contradiction(&answers)
            .map(|(provers, why)| provers.into_iter().map(|prover| (prover, why.clone())).collect())
            .unwrap_or_default();
        let time = answers.iter().map(|answer| answer.time).sum();
        let (verdict, engine) = combined(answers, sensitivity.as_ref())
            .map_or_else(|| (Verdict::not_compared(), NO_ENGINE), |(verdict, engine)| (verdict, engine.name()));
        let verdict = self.ordered(boundary, verdict);
        let verdict = self.checked(boundary, verdict);
        Judgment { verdict, engine, sensitivity, time, proving, wrong_proofs, is_earlier }
    }

    /// The verdict of runs, downgraded unless the order of accesses to memory is kept or makes no difference. Used only
    /// with a search.
    fn ordered(&self, boundary: &Boundary<'_>, verdict: Verdict) -> Verdict {
        let (Verdict::Tested { .. }, Some(search)) = (&verdict, &self.policy.search) else { return verdict };
        let others = (0..ORDERED).map(|at| search.comparison(super::search::FIRST_COMPARED + at, None));
        let others = others.map(|env| boundary.launched(env));
        let envs: Vec<Env> = self.envs.iter().cloned().chain(others).collect();
        let &Boundary { before, after, .. } = boundary;
        match catch(|| memory_order::check(before, after, &envs, &self.target)) {
            Ok(Ok(())) => verdict,
            Ok(Err(order)) => Verdict::Unknown(Unknown::MemoryOrder(order)),
            Err(panicked) => crash(panicked),
        }
    }

    /// The rules that engines do not check of runs, for programs from texts.
    fn checked(&self, boundary: &Boundary<'_>, verdict: Verdict) -> Verdict {
        match &verdict {
            _ if boundary.origin == Origin::Compiled => verdict,
            Verdict::Tested { .. } => {
                let rule = ir3_of(boundary.after).and_then(|program| broken_rule(program, &self.target));
                let reason = rule.map(NotShown::Rule).or_else(|| {
                    let threshold = thresholds::only_in_one(boundary.before, boundary.after)?;
                    let side = if threshold.is_of_after { "after" } else { "before" };
                    Some(NotShown::Threshold { threshold: threshold.to_string(), side })
                });
                reason.map_or(verdict, |reason| Verdict::Unknown(Unknown::NotShown(reason)))
            }
            Verdict::Refuted(refutation) if is_of_fence(boundary, &refutation.difference) => {
                let what = "the order of a fence and an access: which memories a fence orders is not printed";
                Verdict::Unknown(Unknown::Unsupported(what.to_owned().into()))
            }
            _ => verdict,
        }
    }

    /// The answers of the provers, up to the first that settles the boundary.
    fn proofs(&mut self, boundary: &Boundary<'_>) -> Vec<Answer> {
        if !self.policy.engines.has_prover() {
            return Vec::new();
        }
        let engines = with_proof_time(&self.policy, boundary, &self.history.failed_proofs);
        let &Boundary { stage, before, after, .. } = boundary;
        let mut answers =
            engines.answers_until_decided(&Question { stage, before, after, machine: &self.target, envs: &[] });
        for answer in &mut answers {
            self.history.failed_proofs.add(answer);
            if let Verdict::Refuted(refutation) = &mut answer.verdict {
                refutation.stage = boundary.stage_name();
            }
        }
        // An input that a prover found may have other bits in a boolean word than the driver writes.
        if let Some(inputs) = self.policy.search.and_then(|search| search.inputs).filter(|it| it.has_booleans())
            && let Some(Answer { verdict: Verdict::Refuted(refutation), .. }) = answers.last_mut()
        {
            let found = inputs.with_booleans(refutation.env.clone());
            let again = self.compared_in(boundary, &[found], &mut Scratch::default());
            match again {
                Verdict::Refuted(again) => *refutation = again,
                _ => drop(answers.pop()),
            }
        }
        // If values are computed in other ways, the register checker may prove the boundary; a failure of it shows
        // nothing there. Nor does an operand that it cannot represent.
        answers.retain(|answer| match &answer.verdict {
            Verdict::Unknown(Unknown::NotShown(NotShown::Registers(failure))) => {
                boundary.kind == BoundaryKind::Moves && !matches!(failure, RegisterFailure::Place { .. })
            }
            _ => true,
        });
        answers
    }

    /// Runs both programs: in the given environments, then in those of the search.
    fn run(&mut self, boundary: &Boundary<'_>, doubted: bool) -> Run {
        let first = match boundary.follows {
            true => match self.follow(boundary) {
                Ok(verdict) => verdict,
                Err(earlier) => return Run { is_earlier: true, ..Run::of(earlier) },
            },
            false => Verdict::Unknown(Unknown::OutOfFuel),
        };
        if is_decided(&first) || boundary.follows && self.policy.search.is_none() {
            return Run::of(first);
        }
        let comparison = match self.comparison(boundary) {
            Ok(comparison) => comparison,
            Err(error) => return Run::of(Verdict::Unknown(Unknown::Unsupported(error.into()))),
        };
        let scratch = &mut *self.scratch;
        let mut compare = |envs: &[Env]| {
            let compared = comparison.run(envs, scratch);
            compared.unwrap_or_else(|differs| refuted(boundary, differs.0, differs.1))
        };
        let first = if boundary.follows { first } else { compare(self.envs) };
        match &self.policy.search {
            Some(search) if !is_decided(&first) => {
                let mut inputs = InputSearch::new(boundary.after, &self.target, search, &mut self.history);
                inputs.doubted = doubted;
                inputs.has_full_waves = boundary.has_full_waves();
                let verdict = inputs.run(first, self.envs, &mut compare);
                Run { verdict, sensitivity: Some(inputs.sensitivity()), is_earlier: false }
            }
            _ => Run::of(first),
        }
    }

    fn comparison<'b>(&self, boundary: &Boundary<'b>) -> Result<Comparison<'b>, interp::Unsupported> {
        let executions = [boundary.runs_before, boundary.runs_after];
        Comparison::new(boundary.before, boundary.after, &self.target, executions, self.policy.fuel)
    }

    /// Runs both programs in some environments, independent of earlier runs.
    fn compared_in(&self, boundary: &Boundary<'_>, envs: &[Env], scratch: &mut Scratch) -> Verdict {
        match self.comparison(boundary) {
            Ok(comparison) => {
                comparison.run(envs, scratch).unwrap_or_else(|differs| refuted(boundary, differs.0, differs.1))
            }
            Err(error) => Verdict::Unknown(Unknown::Unsupported(error.into())),
        }
    }

    /// Runs the program after a boundary that follows the last one, and compares it with the outcomes of the program
    /// before.
    ///
    /// # Errors
    /// The difference between the outcomes of an earlier program and those of the program before, if boundaries between
    /// them were proved.
    fn follow(&mut self, boundary: &Boundary<'_>) -> Result<Verdict, Verdict> {
        if self.trail.has_skipped_runs {
            self.trail.has_skipped_runs = false;
            if let refuted @ Verdict::Refuted(_) = self.step(boundary, boundary.before, boundary.runs_before) {
                return Err(refuted);
            }
        }
        Ok(self.step(boundary, boundary.after, boundary.runs_after))
    }

    /// Runs a program, compares it with the outcomes of the trail, and replaces them.
    fn step(&mut self, boundary: &Boundary<'_>, program: ProgramRef<'_>, execution: Execution) -> Verdict {
        let executable = match Executable::new(program, &self.target, execution) {
            Ok(executable) => executable,
            Err(error) => return Verdict::Unknown(Unknown::Unsupported(error.into())),
        };
        let Trail { envs, outcomes, vacuous, .. } = &mut self.trail;
        let run = |env: &Env, fuel, scratch: &mut Scratch| executable.run(env, fuel, scratch);
        compare_runs(envs, outcomes, vacuous, self.scratch, run)
            .unwrap_or_else(|(at, difference)| refuted(boundary, envs[at].clone(), difference))
    }

    /// Adds the words that the driver fills to the environments of the boundaries that follow each other, once
    /// selection has placed them, and runs nir again if it reads them.
    pub(super) fn add_driver_words(&mut self, shader: &Shader, program: &Program) {
        if !self.policy.runs() {
            return;
        }
        let Some(decoded) = decode_with_driver_words(shader, program) else { return };
        let Trail { envs, outcomes, .. } = &mut self.trail;
        envs.iter_mut().for_each(|env| *env = env.with_driver_words(decoded.launch(), &program.consts));
        let fuel = self.policy.fuel;
        let mut run =
            |env: &Env| source_run(self.scratch, |scratch| decoded.run(env, env.fuel.unwrap_or(fuel), scratch));
        *outcomes = envs.iter().map(&mut run).collect();
    }

    /// Compares a final program with the first one, if boundaries were proved since the last run: the proofs are tested
    /// together.
    pub fn finish(&mut self, last: &Boundary<'_>) -> Option<Judgment> {
        if !std::mem::take(&mut self.trail.has_skipped_runs) || !self.policy.runs() {
            return None;
        }
        let start = ThreadTime::now();
        let verdict = self.step(last, last.after, last.runs_after);
        let judgment = Judgment::of(verdict, EngineKind::Interpreter.name());
        Some(Judgment { time: start.elapsed(), ..judgment })
    }

    /// Replaces the answers on final code that passes where results are available at once, and that has a hazard: by a
    /// run on the machine that shows it, or by *unknown*.
    fn time_matters(&mut self, boundary: &Boundary<'_>, answers: &mut Vec<Answer>) {
        let Some(program) = ir3_of(boundary.after) else { return };
        let Some(hazard) = hazard(program, boundary, &self.target) else { return };
        let start = ThreadTime::now();
        let refuted = match boundary.runs_after {
            // It ran on the machine.
            Execution::Machine(_) => None,
            Execution::Untimed if self.policy.runs() => self.late_run(boundary, program),
            Execution::Untimed => None,
        };
        let verdict = refuted.unwrap_or(Verdict::Unknown(Unknown::NotShown(NotShown::Hazard(hazard))));
        answers.retain(|answer| !answer.verdict.is_pass());
        answers.push(Answer { engine: EngineKind::Interpreter, verdict, time: start.elapsed() });
    }

    /// Runs final code on a machine whose results come as late as they may, in the environments of the boundary and in
    /// more.
    fn late_run(&mut self, boundary: &Boundary<'_>, program: &Program) -> Option<Verdict> {
        let start = ThreadTime::now();
        let plain = final_code(program).ok().map(|(plain, ..)| plain);
        let late = Boundary {
            after: plain.as_ref().map_or(boundary.after, ProgramRef::Ir3),
            runs_after: Execution::Machine(Completion::Latest),
            ..*boundary
        };
        let limit = self.policy.search.map_or(Duration::ZERO, |search| search.limit * 2);
        let others = self.policy.search.into_iter().flat_map(|search| {
            (0..LATE_BATCHES).map(move |batch| {
                let numbers = batch * LATE_BATCH..(batch + 1) * LATE_BATCH;
                let envs = numbers.map(|at| search.comparison(super::search::FIRST_COMPARED + at, None));
                envs.map(|env| boundary.launched(env)).collect()
            })
        });
        let given = self.envs.to_vec();
        std::iter::once(given)
            .chain(others)
            .enumerate()
            .take_while(|(at, _)| *at == 0 || start.elapsed() < limit)
            .map(|(_, envs): (usize, Vec<Env>)| {
                let compared = catch(|| self.compared_in(&late, &envs, &mut Scratch::default()));
                compared.unwrap_or_else(crash)
            })
            .find(Verdict::is_refuted)
    }
}

impl Engines {
    /// Judges one boundary, with runs in the given environments alone.
    pub fn judge(&self, boundary: &Boundary<'_>, target: &Target, envs: &[Env]) -> Judgment {
        Judge::new(Policy::new(self), *target, envs, &mut Scratch::default()).judge(boundary)
    }
}

/// The runs of a boundary.
struct Run {
    verdict: Verdict,
    sensitivity: Option<Sensitivity>,
    is_earlier: bool,
}

impl Run {
    fn of(verdict: Verdict) -> Self {
        Self { verdict, sensitivity: None, is_earlier: false }
    }
}

/// Runs a program in each environment.
fn run_all(executable: &Executable, envs: &[Env], fuel: u64, scratch: &mut Scratch) -> Vec<Outcome> {
    let mut run = |env: &Env| source_run(scratch, |scratch| executable.run(env, env.fuel.unwrap_or(fuel), scratch));
    envs.iter().map(&mut run).collect()
}

fn refuted(boundary: &Boundary<'_>, env: Env, difference: Difference) -> Verdict {
    let [before, after] = boundary.snapshots();
    Verdict::Refuted(Box::new(Refutation { stage: boundary.stage_name(), before, after, env, difference }))
}

/// Returns true if no run changes the verdict of runs any more.
pub(super) fn is_decided(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refuted(_) | Verdict::Unknown(Unknown::Crashed(_) | Unknown::Unsupported(_)))
}

fn is_failure_of_registers(answer: &Answer) -> bool {
    matches!(answer.verdict, Verdict::Unknown(Unknown::NotShown(NotShown::Registers(_))))
}

/// Returns true if a difference shows nothing: the text of a fence has none of the memories that it orders, and its
/// word only some of them.
fn is_of_fence(boundary: &Boundary<'_>, difference: &Difference) -> bool {
    let fences = |side| {
        let program = ir3_of(side)?;
        let count = |opcodes: &[Opcode]| {
            program.iter_instrs().filter(|&(_, instr)| opcodes.contains(&program.instrs[instr].opcode)).count()
        };
        Some([count(&[Opcode::Fence, Opcode::Ccinv]), count(&[Opcode::Bar])])
    };
    matches!(difference, Difference::Synchronization { expected: Some(expected), .. } if matches!(expected.sync, Sync::Fence(_)))
        && fences(boundary.before).is_some()
        && fences(boundary.before) == fences(boundary.after)
}

/// The rank of an answer: the highest is the verdict. See the module.
fn rank(answer: &Answer) -> u8 {
    match (&answer.verdict, answer.engine) {
        (Verdict::Refuted(_), _) => 6,
        (Verdict::Unknown(Unknown::Crashed(_)), _) => 5,
        (Verdict::Proved { .. }, _) => 4,
        (Verdict::Unknown(Unknown::NotShown(NotShown::Hazard(_))), _) => 3,
        (Verdict::Unknown(Unknown::NotShown(_)), EngineKind::Registers) => 3,
        (Verdict::Tested { .. }, _) => 2,
        // The reason why runs show nothing comes before the reason why there is no proof.
        (Verdict::Unknown(_), EngineKind::Interpreter) => 1,
        (Verdict::Unknown(_), _) => 0,
    }
}

/// The verdict that follows from the answers of all engines. `None` if no engine applied.
fn combined(answers: Vec<Answer>, sensitivity: Option<&Sensitivity>) -> Option<(Verdict, EngineKind)> {
    // Of equal ranks the last counts: the stronger prover.
    let answer = answers.into_iter().max_by_key(rank)?;
    let verdict = match (answer.verdict, sensitivity) {
        (Verdict::Tested { .. }, Some(sensitivity)) if !sensitivity.is_enough() => {
            Verdict::Unknown(Unknown::Insensitive(*sensitivity))
        }
        (verdict, _) => verdict,
    };
    Some((verdict, answer.engine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::SiteCount;
    use ir3_prove::simulation::Obstacle;

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
    fn proofs_beside_a_refutation_are_named() {
        let proved = answer(EngineKind::Smt, Verdict::Proved { assumptions: Vec::new() });
        assert_eq!(contradiction(&[proved.clone(), tested()]), None);
        assert_eq!(verdict(vec![proved, tested()], 10), "proved");
    }
}
