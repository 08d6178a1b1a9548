//! Engines: each decides if one program refines another.
//!
//! [`Engine`] has one method: a [`Question`] in, a [`Verdict`] out. Commands and campaigns name engines by
//! [`EngineKind`] and run them through [`Engines`], so that none of them depends on a particular engine. A panic of an
//! engine is an unknown verdict.

use super::boundary::ir3_of;
use super::interpreter::compare_within;
use super::legal::{broken_rule, unknown_flags};
use super::{Crash, Execution, NotShown, Smt, Unknown, Unsupported, Verdict};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::words;
use ir3_programs::Question;
use ir3_prove::registers::{self, RegisterFailure};
use ir3_prove::simulation;
use ir3_semantics::environment::env::DEFAULT_FUEL;
use ir3_semantics::support::panics::{Panicked, catch};
use std::time::Duration;

/// Decides if the program after refines the program before.
pub trait Engine: Sync {
    /// The kind of the engine.
    fn kind(&self) -> EngineKind;

    /// Returns the verdict on a question; `None` if the engine does not apply to it.
    fn verdict(&self, question: &Question<'_>) -> Option<Verdict>;

    /// Returns the answer to a question, with its CPU time; `None` if the engine does not apply to it.
    fn answer(&self, question: &Question<'_>) -> Option<Answer> {
        let start = ThreadTime::now();
        let verdict = catch(|| self.verdict(question)).unwrap_or_else(|panicked| Some(crash(panicked)))?;
        Some(Answer { engine: self.kind(), verdict, time: start.elapsed() })
    }
}

/// The verdict of an engine that panicked.
pub(super) fn crash(panicked: Panicked) -> Verdict {
    Verdict::Unknown(Unknown::Crashed(Crash::from(panicked)))
}

words! {
    /// The engines, by name. Provers are in the order of their cost.
    pub enum EngineKind {
        /// Runs both programs.
        Interpreter = "interpreter",
        /// Proves that every use reads the value that it read before the pass.
        Registers = "registers",
        /// Proves that both programs compute the same, on terms and with a solver.
        Smt = "smt",
    }
}

impl EngineKind {
    /// A description for the help of the command line.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Interpreter => "Runs both programs on inputs",
            Self::Registers => {
                "Proves that every use reads the value that it read before: all that stages do which only move values"
            }
            Self::Smt => "Proves that both programs compute the same, on terms and with a solver",
        }
    }

    /// Returns true if its verdicts hold for all inputs, not only for those that were run.
    pub const fn proves(self) -> bool {
        !matches!(self, Self::Interpreter)
    }
}

/// Runs both programs on the inputs of the question.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter;

impl Engine for Interpreter {
    fn kind(&self) -> EngineKind {
        EngineKind::Interpreter
    }

    fn verdict(&self, question: &Question<'_>) -> Option<Verdict> {
        let &Question { before, after, machine, envs, .. } = question;
        Some(compare_within(before, after, machine, envs, DEFAULT_FUEL, [Execution::Untimed; 2]).0)
    }
}

/// The register checker. It applies to pairs of ir3 programs. On a stage that also changes computations it may prove a
/// boundary, but a failed proof means nothing there.
#[derive(Clone, Copy, Debug)]
pub struct Registers;

impl Engine for Registers {
    fn kind(&self) -> EngineKind {
        EngineKind::Registers
    }

    fn verdict(&self, question: &Question<'_>) -> Option<Verdict> {
        let (ProgramRef::Ir3(before), ProgramRef::Ir3(after)) = (question.before, question.after) else { return None };
        let only_moves = question.stage.is_none_or(Stage::moves_values);
        Some(match registers::prove(before, after, question.machine) {
            Ok(proof) => Verdict::Proved { assumptions: proof.assumptions },
            Err(_) if !only_moves => return None,
            Err(RegisterFailure::Unsupported { site, what }) => {
                Verdict::Unknown(Unknown::Unsupported(Unsupported { message: format!("{site}: {what}"), what }))
            }
            Err(failure) => Verdict::Unknown(Unknown::NotShown(failure.into())),
        })
    }
}

impl Engine for Smt {
    fn kind(&self) -> EngineKind {
        EngineKind::Smt
    }

    fn verdict(&self, question: &Question<'_>) -> Option<Verdict> {
        Some(self.compare(question.before, question.after, question.machine))
    }
}

/// The answer of an engine to a question.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The engine that answered.
    pub engine: EngineKind,
    /// The verdict of the engine.
    pub verdict: Verdict,
    /// The CPU time of the engine.
    pub time: Duration,
}

/// The name printed for the engine if the compiler refused the program or panicked.
pub const COMPILER: &str = "compiler";
/// The name printed for the engine if no selected engine compares the two sides.
pub const NO_ENGINE: &str = "-";

/// The engines that a command or campaign runs.
#[derive(Clone, Debug, Default)]
pub struct Engines {
    /// The kinds of the engines.
    pub kinds: Vec<EngineKind>,
    /// The settings of the SMT engine.
    pub smt: Smt,
}

impl Engines {
    /// All engines.
    pub fn all(smt: Smt) -> Self {
        Self { kinds: EngineKind::ALL.to_vec(), smt }
    }

    /// The interpreter alone.
    pub fn interpreter() -> Self {
        Self { kinds: vec![EngineKind::Interpreter], smt: Smt::default() }
    }

    /// The engines that prove.
    pub fn provers(smt: Smt) -> Self {
        Self { kinds: vec![EngineKind::Registers, EngineKind::Smt], smt }
    }

    /// Returns true if an engine is selected.
    pub fn has(&self, kind: EngineKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns true if a prover is selected.
    pub fn has_prover(&self) -> bool {
        self.kinds.iter().any(|kind| kind.proves())
    }

    /// The reason why a proof could not be written to the cache, if that has happened.
    pub fn cache_failure(&self) -> Option<&str> {
        self.smt.cache.as_ref()?.failure()
    }

    /// The reason why a query could not be written to its folder, if that has happened.
    pub fn query_failure(&self) -> Option<&str> {
        self.smt.emit.as_ref()?.failure()
    }

    fn engine(&self, kind: EngineKind) -> &dyn Engine {
        match kind {
            EngineKind::Interpreter => &Interpreter,
            EngineKind::Registers => &Registers,
            EngineKind::Smt => &self.smt,
        }
    }

    /// Returns the answers of all engines that apply to a question, in their order.
    pub fn answers(&self, question: &Question<'_>) -> Vec<Answer> {
        self.kinds.iter().filter_map(|&kind| self.answer_of(kind, question)).collect()
    }

    /// The answer of one engine. A proof is discarded if the program after violates a rule of ir3.
    fn answer_of(&self, kind: EngineKind, question: &Question<'_>) -> Option<Answer> {
        Some(kept_to_rules(self.engine(kind).answer(question)?, question))
    }

    /// The proof of two programs that differ only in what takes time and in names. It takes less time than the register
    /// checker, so it comes first; but not where a pass assigns registers, which is what that one checks.
    fn proof_of_same_code(&self, question: &Question<'_>) -> Option<Answer> {
        let &Question { stage, before, after, machine, .. } = question;
        if !self.has(EngineKind::Smt) || stage.is_some_and(Stage::moves_values) {
            return None;
        }
        let start = ThreadTime::now();
        let proof = catch(|| simulation::same_code(before, after, machine)).ok()??;
        let verdict = Verdict::Proved { assumptions: proof.assumptions };
        Some(kept_to_rules(Answer { engine: EngineKind::Smt, verdict, time: start.elapsed() }, question))
    }

    /// Returns the answers of the provers, in the order of their cost, up to the first that is not *unknown*.
    pub(super) fn answers_until_decided(&self, question: &Question<'_>) -> Vec<Answer> {
        if let Some(answer) = self.proof_of_same_code(question) {
            return vec![answer];
        }
        let mut answers = Vec::new();
        for kind in EngineKind::ALL.into_iter().filter(|kind| kind.proves() && self.has(*kind)) {
            let Some(answer) = self.answer_of(kind, question) else { continue };
            let is_known = !matches!(answer.verdict, Verdict::Unknown(_));
            answers.push(answer);
            if is_known {
                break;
            }
        }
        answers
    }
}

/// Discards a proof if the program after violates a rule of ir3.
fn kept_to_rules(mut answer: Answer, question: &Question<'_>) -> Answer {
    if matches!(answer.verdict, Verdict::Proved { .. })
        && let Some(program) = ir3_of(question.after)
        && let Some(what) = broken_rule(program, question.machine)
            .or_else(|| ir3_of(question.before).and_then(|before| unknown_flags(before, question.machine)))
    {
        answer.verdict = Verdict::Unknown(Unknown::NotShown(NotShown::Rule(what)));
    }
    answer
}

/// Returns the engines that proved a boundary that another one refuted, and the reason of the refutation: one of them
/// is wrong.
pub fn contradiction(answers: &[Answer]) -> Option<(Vec<EngineKind>, String)> {
    let refuted = answers.iter().find(|answer| matches!(answer.verdict, Verdict::Refuted(_)))?;
    let proved: Vec<EngineKind> = proofs(answers).map(|answer| answer.engine).collect();
    (!proved.is_empty()).then(|| (proved, refuted.verdict.reason().unwrap_or_default()))
}

/// Returns the answers that are proofs.
pub fn proofs(answers: &[Answer]) -> impl Iterator<Item = &Answer> {
    answers.iter().filter(|answer| matches!(answer.verdict, Verdict::Proved { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::target::Target;
    use ir3_programs::{Case, divergence};

    #[test]
    fn a_wrong_proof_is_a_contradiction() {
        let machine = Target::default();
        let refuted = divergence::pairs(1, 0..200, 3, &machine)
            .filter_map(|pair| Interpreter.answer(&pair.question(&machine, &pair.envs())))
            .find(|answer| matches!(answer.verdict, Verdict::Refuted(_)))
            .expect("a pair that differs");
        // An unsound engine.
        let of_registers = |verdict| Answer { engine: EngineKind::Registers, verdict, time: Duration::ZERO };
        let proved = of_registers(Verdict::Proved { assumptions: Vec::new() });
        let unknown = of_registers(Verdict::Unknown(Unknown::OutOfFuel));
        assert_eq!(contradiction(&[refuted.clone(), unknown]), None);
        assert_eq!(contradiction(std::slice::from_ref(&proved)), None);
        assert_eq!(contradiction(&[proved, refuted]).expect("a contradiction").0, [EngineKind::Registers]);
    }

    #[test]
    fn a_panic_is_a_verdict() {
        struct Broken;
        impl Engine for Broken {
            fn kind(&self) -> EngineKind {
                EngineKind::Smt
            }

            fn verdict(&self, _: &Question<'_>) -> Option<Verdict> {
                panic!("on purpose")
            }
        }
        let machine = Target::default();
        let pair = divergence::pairs(1, 0..200, 3, &machine).next().expect("a pair");
        let answer = Broken.answer(&pair.question(&machine, &[])).expect("an answer");
        let reason = answer.verdict.reason().unwrap_or_default();
        assert!(reason.starts_with("crashed: on purpose, at "), "{reason}");
    }
}
