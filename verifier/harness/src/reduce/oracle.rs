//! Classification of failures, and the test for "fails in the same way".
//!
//! Two failures are the same if they are of the same kind at the same stage: a refutation with the same kind of
//! difference, a refusal for the same reason (numbers aside), a panic at the same place of the source. The lanes and
//! values that differ are ignored, because every step changes them. So a reduction cannot drift to another bug of
//! another stage or kind.

use std::fmt;

use ir3_compiler::pipeline::{ErrorKind, Options, Stage};
use ir3_compiler::target::Target;
use ir3_compiler::{nir, words};

use crate::check::{Checker, DEFAULT_FUEL, Panic, Unknown, Verdict, Verification, plant_of};
use crate::guard::{self, Setting, Stop, Stopped};
use ir3_programs::planted_bugs::SharedPlantedBug;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{Difference, Scratch};
use ir3_semantics::support::panics::catch;

words! {
    /// The kind of difference of a refutation.
    pub enum DifferenceKind {
        /// An output.
        Output = "output",
        /// A word of memory.
        Memory = "memory",
        /// The killed lanes.
        Killed = "killed lanes",
        /// The program after the stage has undefined behaviour.
        Undefined = "undefined",
        /// The program after the stage does not terminate.
        Endless = "endless",
        /// The headers differ.
        Header = "header",
        /// A barrier or fence.
        Synchronization = "synchronization",
        /// Loads that must not be removed.
        Loads = "loads",
    }
}

impl DifferenceKind {
    /// The kind of a difference.
    pub const fn of(difference: &Difference) -> Self {
        match difference {
            Difference::Output { .. } | Difference::OtherOutput(_) => Self::Output,
            Difference::Memory { .. } => Self::Memory,
            Difference::Killed { .. } => Self::Killed,
            Difference::Undefined { .. } => Self::Undefined,
            Difference::Endless { .. } => Self::Endless,
            Difference::Header(_) => Self::Header,
            Difference::Synchronization { .. } => Self::Synchronization,
            Difference::Loads { .. } => Self::Loads,
        }
    }
}

/// A failure of the compiler on a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A stage changed the meaning of the program.
    Refuted {
        /// The stage.
        stage: Stage,
        /// The kind of difference.
        difference: DifferenceKind,
    },
    /// The compiler refused the program.
    Refused {
        /// The stage that refused it.
        stage: Stage,
        /// The kind of error.
        kind: ErrorKind,
        /// The reason, without its numbers.
        reason: String,
    },
    /// The interpreter does not support the program.
    Unsupported {
        /// The stage after which the program is not supported.
        stage: Stage,
        /// The reason, without its numbers.
        reason: String,
    },
    /// The compiler or an engine panicked.
    Panic {
        /// File, line and column.
        place: String,
    },
    /// The compiler did not terminate, or ran out of memory.
    Stopped(Stopped),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuted { stage, difference } => write!(f, "{stage} refuted: {}", difference.name()),
            Self::Refused { stage, reason, .. } => write!(f, "{stage} refuses: {reason}"),
            Self::Unsupported { stage, reason } => write!(f, "the program after {stage} cannot be run: {reason}"),
            Self::Panic { place } => write!(f, "panic at {place}"),
            Self::Stopped(Stopped { stage, stop }) => write!(f, "{stage} stopped: {}", stop.name()),
        }
    }
}

impl Failure {
    /// The failure in a report: the first refutation, otherwise the refusal, otherwise the unsupported program.
    pub fn of(report: &Verification) -> Option<Self> {
        if let Some(Panic { place, .. }) = &report.panic {
            return Some(Self::Panic { place: place.clone() });
        }
        let refuted = report.boundaries.iter().find_map(|row| match &row.verdict {
            Verdict::Refuted(refutation) => {
                Some(Self::Refuted { stage: row.stage, difference: DifferenceKind::of(&refutation.difference) })
            }
            _ => None,
        });
        let refused = || {
            let error = report.refusal.as_ref()?;
            Some(Self::Refused {
                stage: error.stage,
                kind: error.kind,
                reason: without_numbers(&error.reason.without_location()),
            })
        };
        let unsupported = || {
            report.boundaries.iter().find_map(|row| match &row.verdict {
                Verdict::Unknown(Unknown::Unsupported(reason)) => {
                    Some(Self::Unsupported { stage: row.stage, reason: without_numbers(&reason.what) })
                }
                _ => None,
            })
        };
        refuted.or_else(refused).or_else(unsupported)
    }
}

/// Replaces each run of digits (hexadecimal too) by `#`: every step changes the numbers of values and blocks.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // Keeps digits of names, as in `u2u32`.
        let in_name = out.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
        let numbered = ["ssa_", "instr", "block", "b", "line "].iter().any(|before| ends_with_word(&out, before));
        if c.is_ascii_digit() && (!in_name || numbered) {
            while chars.next_if(|c| c.is_ascii_hexdigit() || *c == 'x').is_some() {}
            out.push('#');
        } else {
            out.push(c);
        }
    }
    // Programs that are not read from a text have instructions instead of lines.
    out.replace("instruction #", "line #")
}

/// Returns true if the text ends with `word` as a whole word.
fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// Tests if a program has a given failure.
pub struct Oracle {
    target: Target,
    options: Options,
    envs: Vec<Env>,
    fuel: u64,
    plant: Option<SharedPlantedBug>,
    failure: Failure,
    /// The interpreter supports the program.
    runs: bool,
    /// Candidates have the limits of the guard, and not [smaller ones](guard::Limits::of_candidate).
    has_full_limits: bool,
    checker: Checker,
}

impl Oracle {
    /// Determines the failure of a program on some environments, and keeps the environment that shows it. `None` if it
    /// does not fail.
    pub fn find(
        target: Target,
        options: Options,
        shader: &nir::Shader,
        envs: &[Env],
        plant: Option<SharedPlantedBug>,
    ) -> Option<Self> {
        let checker = Checker::new(target, options);
        let nothing = Failure::Panic { place: String::new() };
        let mut oracle = Self {
            target,
            options,
            envs: envs.to_vec(),
            fuel: DEFAULT_FUEL,
            plant,
            failure: nothing,
            runs: false,
            has_full_limits: false,
            checker,
        };
        // A compilation in this process would not terminate either, so probe first.
        if let Some(stopped) = oracle.stopped(shader, false) {
            (oracle.failure, oracle.envs) = (Failure::Stopped(stopped), Vec::new());
            return Some(oracle);
        }
        let (failure, env) = oracle.observe(shader)?;
        oracle.failure = failure;
        oracle.runs = interp::nir::Decoded::new(shader).is_ok();
        // Preferably no environment; then the one of the refutation; then any.
        let mut choices = vec![Vec::new()];
        choices.extend(env.map(|env| vec![env]));
        choices.extend(envs.iter().map(|env| vec![env.clone()]));
        choices.push(envs.to_vec());
        for choice in choices {
            oracle.envs = choice;
            if oracle.same(shader) {
                break;
            }
        }
        let fuel = oracle.needed_fuel(shader);
        oracle = oracle.with_fuel(fuel);
        if !oracle.same(shader) {
            oracle = oracle.with_fuel(DEFAULT_FUEL);
        }
        Some(oracle)
    }

    /// The failure.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// The environments that candidates are run on: one at most, unless the failure needs several.
    pub fn envs(&self) -> &[Env] {
        &self.envs
    }

    /// Replaces the environments.
    pub fn set_envs(&mut self, envs: Vec<Env>) {
        self.envs = envs;
    }

    /// The GPU.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The compiler options.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Replaces the GPU and the options.
    pub fn set_compilation(&mut self, target: Target, options: Options) {
        (self.target, self.options) = (target, options);
        self.checker = Checker::new(target, options).with_fuel(self.fuel);
    }

    /// Returns true if a reduced program, whose compilation was stopped at the limits of candidates, has to be stopped
    /// at those of the guard too. Otherwise candidates have these from now on.
    pub fn confirms(&mut self, shader: &nir::Shader) -> bool {
        self.has_full_limits = true;
        let is_confirmed = !matches!(self.failure, Failure::Stopped(_)) || self.same(shader);
        self.has_full_limits = !is_confirmed;
        is_confirmed
    }

    /// Returns true if a program fails in the same way on another GPU, or with other options.
    pub fn compiles_same(&self, target: Target, options: Options, shader: &nir::Shader) -> bool {
        let mut other = self.fork();
        other.set_compilation(target, options);
        other.same(shader)
    }

    /// Returns true if a program fails in the same way.
    pub fn same(&mut self, shader: &nir::Shader) -> bool {
        let stopped = self.stopped(shader, true);
        if let Failure::Stopped(expected) = self.failure {
            return stopped == Some(expected);
        }
        if stopped.is_some() {
            return false;
        }
        // Most candidates do not fail, and a check of the one stage shows that for most of them.
        self.may_be_same(shader) && self.observe(shader).is_some_and(|(failure, _)| failure == self.failure)
    }

    /// The reason why the compilation of a program has to be stopped, if there is a guard to detect it. The limits of a
    /// candidate are those that its failure needs.
    fn stopped(&self, shader: &nir::Shader, is_candidate: bool) -> Option<Stopped> {
        let full = guard::guard()?.limits;
        let small = full.of_candidate();
        let limits = match self.failure {
            _ if self.has_full_limits => full,
            Failure::Stopped(Stopped { stop: Stop::Time, .. }) if is_candidate => {
                guard::Limits { time: small.time, ..full }
            }
            Failure::Stopped(_) if is_candidate => guard::Limits { memory: small.memory, ..full },
            _ => full,
        };
        guard::probe(shader, &Setting::new(self.target, self.options, self.plant.as_ref(), limits)?)
    }

    /// A quick test: returns false only if the program does not fail in the same way.
    fn may_be_same(&mut self, shader: &nir::Shader) -> bool {
        // A refusal of the compiler needs no environment, but the program must remain runnable.
        if self.runs && interp::nir::Decoded::new(shader).is_err() {
            return false;
        }
        let Failure::Refuted { stage, difference } = self.failure else { return true };
        let like = |found: &Difference| DifferenceKind::of(found) == difference;
        let mut plant = self.plant.clone();
        let (checker, envs) = (&mut self.checker, &self.envs);
        let may_differ = catch(|| {
            let plant = plant_of(&mut plant);
            checker.may_differ_at(shader, envs, stage, &like, plant)
        });
        may_differ.unwrap_or_else(|_| {
            // The panic left the checker in an undefined state. A panic is another failure.
            self.checker = Checker::new(self.target, self.options).with_fuel(self.fuel);
            false
        })
    }

    /// Another oracle for the same failure, for another thread.
    pub fn fork(&self) -> Self {
        Self {
            target: self.target,
            options: self.options,
            envs: self.envs.clone(),
            fuel: self.fuel,
            plant: self.plant.clone(),
            failure: self.failure.clone(),
            runs: self.runs,
            has_full_limits: self.has_full_limits,
            checker: Checker::new(self.target, self.options).with_fuel(self.fuel),
        }
    }

    fn with_fuel(mut self, fuel: u64) -> Self {
        self.fuel = fuel;
        self.checker = Checker::new(self.target, self.options).with_fuel(fuel);
        self
    }

    /// A small multiple of the fuel that the program needs now: candidates without a loop exit must not run
    /// for long.
    fn needed_fuel(&self, shader: &nir::Shader) -> u64 {
        let run = || {
            let decoded = interp::nir::Decoded::new(shader).ok()?;
            let mut scratch = Scratch::default();
            self.envs.iter().map(|env| decoded.run(env, DEFAULT_FUEL, &mut scratch).executed).max()
        };
        catch(run).ok().flatten().map_or(DEFAULT_FUEL, |executed| (executed * 4 + 1000).min(DEFAULT_FUEL))
    }

    /// Returns the failure of a program, and the environment of a refutation.
    fn observe(&mut self, shader: &nir::Shader) -> Option<(Failure, Option<Env>)> {
        let mut plant = self.plant.clone();
        let report = self.checker.program(shader, &self.envs, plant_of(&mut plant));
        Some((Failure::of(&report)?, report.refutation().map(|refutation| refutation.env.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_things_do_not_count() {
        assert_eq!(without_numbers("line 12: `%3 = u2u32` in b4"), "line #: `%# = u2u32` in b#");
        assert_eq!(without_numbers("instruction 90: no form"), without_numbers("line 12: no form"));
        assert_eq!(without_numbers("needs 0x1f registers"), "needs # registers");
        assert_eq!(without_numbers("ssa_7 of instr9"), "ssa_# of instr#");
    }
}
