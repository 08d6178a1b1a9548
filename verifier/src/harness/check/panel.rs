//! Engines before a question: two programs, do they mean the same?
//!
//! Every engine is asked the same way, so that tables of verdicts (the kill matrix, equivalent pairs, agreement) know none of
//! them by itself. A panic of an engine is a verdict, too: unknown.

use crate::harness::check::by_registers;
use crate::harness::check::{Smt, Unknown, Verdict, compare_snapshots};
use crate::programs::{Case, Question};
use crate::support::panics::{Panicked, catch};
use cpu_time::ThreadTime;
use ir3_compiler::target::Target;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Runs both sides.
    Interpreter,
    /// Proves that every use reads the value that it read before.
    Registers,
    /// Proves that both sides compute the same, on terms and with a solver.
    Smt,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Interpreter, Self::Registers, Self::Smt];

    /// The name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::Registers => "registers",
            Self::Smt => "smt",
        }
    }

    /// The engine of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// Whether it says something for all inputs, and not of those that it has tried.
    pub const fn proves(self) -> bool {
        !matches!(self, Self::Interpreter)
    }

    /// What it says; nothing where the question is not for it.
    pub fn judge(self, question: &Question<'_>, smt: &Smt) -> Option<(Verdict, Duration)> {
        let start = ThreadTime::now();
        let verdict = catch(|| self.answer(question, smt))
            .unwrap_or_else(|Panicked { message, .. }| Some(Verdict::Unknown(Unknown::Crashed(message))));
        verdict.map(|verdict| (verdict, start.elapsed()))
    }

    fn answer(self, question: &Question<'_>, smt: &Smt) -> Option<Verdict> {
        let &Question { stage, before, after, machine, envs } = question;
        match self {
            Self::Interpreter => Some(compare_snapshots(before, after, machine, envs).0),
            Self::Registers => {
                if stage.is_some_and(|stage| !stage.moves_values()) {
                    return None;
                }
                by_registers(before, after, machine)
            }
            Self::Smt => Some(smt.judge(before, after, machine)),
        }
    }
}

/// What engines have said of several questions.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Proved for all inputs.
    pub proved: u64,
    /// Run, and no difference seen.
    pub tested: u64,
    /// Refuted.
    pub refuted: u64,
    /// Nothing can be said.
    pub unknown: u64,
    /// CPU time of each answer.
    pub times: Vec<Duration>,
    /// Why nothing could be said, and how often.
    pub reasons: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts an answer.
    pub fn count(&mut self, verdict: &Verdict, time: Duration) {
        match verdict {
            Verdict::Proved { .. } => self.proved += 1,
            Verdict::Tested { .. } => self.tested += 1,
            Verdict::Refuted(_) => self.refuted += 1,
            Verdict::Unknown(why) => {
                self.unknown += 1;
                *self.reasons.entry(general(&why.to_string())).or_default() += 1;
            }
        }
        self.times.push(time);
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.proved += other.proved;
        self.tested += other.tested;
        self.refuted += other.refuted;
        self.unknown += other.unknown;
        self.times.extend(&other.times);
        for (why, n) in &other.reasons {
            *self.reasons.entry(why.clone()).or_default() += n;
        }
    }

    /// Questions that were asked.
    pub const fn asked(&self) -> u64 {
        self.proved + self.tested + self.refuted + self.unknown
    }

    /// The time that so many of a hundred answers did not take longer than.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        times.get(last * percent / 100).copied().unwrap_or_default()
    }
}

/// A reason without the numbers in it, so that reasons of one kind are counted together.
fn general(reason: &str) -> String {
    let mut out = String::new();
    let mut in_number = false;
    for c in reason.lines().next().unwrap_or_default().chars().take(120) {
        let is_number = c.is_ascii_digit() || in_number && (c.is_ascii_hexdigit() || c == 'x' || c == '.');
        if !is_number {
            out.push(c);
        } else if !in_number {
            out.push('#');
        }
        in_number = is_number;
    }
    out
}

/// An answer of each engine that had one.
pub type Answers = Vec<(Engine, Verdict, Duration)>;

/// Engines that are asked, in their order, and how hard they try.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Who.
    pub engines: Vec<Engine>,
    /// How the one of terms compares.
    pub smt: Smt,
}

impl Panel {
    /// What they say.
    pub fn ask(&self, question: &Question<'_>) -> Answers {
        let answer = |&engine: &Engine| {
            let (verdict, time) = engine.judge(question, &self.smt)?;
            Some((engine, verdict, time))
        };
        self.engines.iter().filter_map(answer).collect()
    }
}

/// Who proved what another one refuted, and how it is refuted: one of them is wrong.
pub fn contradiction(answers: &Answers) -> Option<(Vec<Engine>, String)> {
    let refuted = answers.iter().find(|(_, verdict, _)| matches!(verdict, Verdict::Refuted(_)))?;
    let proved = answers.iter().filter(|(_, verdict, _)| matches!(verdict, Verdict::Proved { .. }));
    let proved: Vec<Engine> = proved.map(|&(engine, ..)| engine).collect();
    (!proved.is_empty()).then(|| (proved, refuted.1.reason().unwrap_or_default()))
}

/// Asks engines about each case, with several threads. Cases are made one after the other and come to `each` in any order; the
/// number is that in the series. A case that was made is asked about, interrupted or not.
pub fn ask_all<C: Case>(
    cases: impl Iterator<Item = C> + Send,
    machine: &Target,
    panel: &Panel,
    jobs: usize,
    interrupted: &AtomicBool,
    each: &mut (dyn FnMut(u64, &C, &Answers) + Send),
) {
    let cases = Mutex::new((0u64, cases));
    let each = Mutex::new(each);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let next = {
                        let mut cases = cases.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        if interrupted.load(Ordering::Relaxed) {
                            return;
                        }
                        let number = cases.0;
                        cases.0 += 1;
                        cases.1.next().map(|case| (number, case))
                    };
                    let Some((number, case)) = next else { return };
                    let envs = case.envs();
                    let answers = panel.ask(&case.question(machine, &envs));
                    (each.lock().unwrap_or_else(std::sync::PoisonError::into_inner))(number, &case, &answers);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_one_kind_are_one() {
        assert_eq!(general("block3: ssa_17 is 0x1f at 12.5"), general("block12: ssa_4 is 0x3 at 7"));
        assert_ne!(general("a load"), general("a store"));
    }

    #[test]
    fn a_wrong_proof_is_a_contradiction() {
        let machine = Target::default();
        let mutant = crate::harness::campaigns::kill_matrix::Mutants::new(1, 40, &machine)
            .find(|mutant| ran(mutant, &machine).is_some_and(is_refuted))
            .unwrap();
        let (refuted, time) = ran(&mutant, &machine).unwrap();
        let refuted = (Engine::Interpreter, refuted, time);
        // An engine that believes everything.
        let proved = (Engine::Registers, Verdict::Proved { assumptions: Vec::new() }, time);
        let unknown = (Engine::Registers, Verdict::Unknown(Unknown::OutOfFuel), time);
        assert_eq!(contradiction(&vec![refuted.clone(), unknown]), None);
        assert_eq!(contradiction(&vec![proved.clone()]), None);
        assert_eq!(contradiction(&vec![proved, refuted]).unwrap().0, [Engine::Registers]);
    }

    fn ran(mutant: &crate::harness::campaigns::kill_matrix::Mutant, machine: &Target) -> Option<(Verdict, Duration)> {
        Engine::Interpreter.judge(&mutant.question(machine, &mutant.envs()), &Smt::default())
    }

    fn is_refuted((verdict, _): (Verdict, Duration)) -> bool {
        matches!(verdict, Verdict::Refuted(_))
    }

    #[test]
    fn engines_have_names() {
        for engine in Engine::ALL {
            assert_eq!(Engine::from_name(engine.name()), Some(engine));
        }
    }
}
