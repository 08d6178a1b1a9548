//! The search for inputs on which two programs differ.
//!
//! The first environments are those of the program by number. While the runs depend on too little of the program, more
//! are added: of some candidates those that reach most of the sites that no run has depended on yet
//! ([`SensitivityProbe::choose`]). To measure a run takes many runs, to compare two programs takes two: so both are
//! compared in some environments before anything is measured, in more after it, and in many more where the register
//! checker names a failure. At the end single inputs are moved until the operands of a comparison are equal ([`Ties`]).

use super::history::History;
use super::judge::is_decided;
use super::policy::Search;
use super::sensitivity::LEAST_SENSITIVITY;
use super::ties::Ties;
use super::{Sensitivity, SensitivityProbe, Unknown, Verdict};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::panics::catch;
use std::time::Duration;

/// The factor of the fuel of a run where others end without it.
const LONG: u64 = 10;
/// The divisor of the fuel of a run that is measured: many short runs show more than a long one.
const SHORT: u64 = 20;
/// The candidates of which environments are chosen.
const CANDIDATES: usize = 12;
/// Environments in which the programs are compared before anything is measured.
const COMPARED_FIRST: usize = 24;
/// Environments in which the programs are compared only, with these.
const COMPARED: usize = 96;
/// The number of compared environments if the register checker has found a difference.
const COMPARED_DOUBTED: usize = 192;
/// Candidates derived from earlier runs by flipping a comparison.
const STEERED: usize = 6;
/// The runs from which these are derived.
const MOST_LEARNED: usize = 4;
/// Environments that are compared at once.
const BATCH: usize = 8;
/// Multiplier of the measuring budget for large programs.
const WORK: u64 = 3;
/// CPU time after which no environments are added while the runs depend on too little, in multiples of that where they
/// depend on enough.
const PATIENCE: u32 = 3;
/// CPU time of measuring, in multiples of the time after which no environments are added.
const MEASURED: u32 = 4;
/// The share of a program below which the search on the next boundary hardly finds enough.
const FAR_TOO_LITTLE: f64 = LEAST_SENSITIVITY / 2.0;
/// The same two after a search on an earlier boundary of the program that found too little.
const SHORT_PATIENCE: u32 = 1;
const SHORT_MEASURED: u32 = 1;
/// The divisor of the time of the comparisons at the end if this search finds too little, too.
const FOUND_TOO_LITTLE_AGAIN: u32 = 4;
/// Environment numbers below this are measured; from here on they are compared only.
pub(super) const FIRST_COMPARED: usize = 1 << 20;

/// Compares both programs in some environments.
type Compare<'a> = &'a mut dyn FnMut(&[Env]) -> Verdict;

/// The search on one boundary.
pub(super) struct InputSearch<'a> {
    search: &'a Search<'a>,
    /// The findings on earlier boundaries of the program.
    known: &'a mut History,
    probe: Option<SensitivityProbe>,
    measured: Option<Sensitivity>,
    fuel: u64,
    /// The fuel of runs that are measured, and of candidates.
    measured_fuel: u64,
    /// The number of the next candidate.
    next: usize,
    /// The environment that reached most so far.
    best: Option<Env>,
    /// Environments with the operands of the comparisons that their runs execute.
    compared: Vec<(Env, Vec<[u32; 2]>)>,
    /// The register checker has found a difference.
    pub doubted: bool,
    /// All lanes of each wave run.
    pub has_full_waves: bool,
}

impl<'a> InputSearch<'a> {
    pub fn new(after: ProgramRef<'_>, target: &Target, search: &'a Search<'a>, known: &'a mut History) -> Self {
        let probe = catch(|| SensitivityProbe::of(after, target)).ok().flatten();
        // Without a limit the given runs are measured, in any time.
        let factor = if known.found_too_little { SHORT_MEASURED } else { MEASURED };
        let time = if search.limit.is_zero() { Duration::MAX } else { search.limit * factor };
        let probe = probe.map(|probe| probe.with_work(WORK).with_time(time));
        Self {
            search,
            known,
            probe,
            measured: None,
            fuel: search.fuel,
            measured_fuel: (search.fuel / SHORT).max(1),
            next: search.runs,
            best: None,
            compared: Vec::new(),
            doubted: false,
            has_full_waves: false,
        }
    }

    /// The share of the program after on which the runs depend.
    pub fn sensitivity(&self) -> Sensitivity {
        self.measured.unwrap_or(Sensitivity::NONE)
    }

    /// Searches on from the verdict of the runs in the first environments.
    pub fn run(&mut self, first: Verdict, envs: &[Env], compare: Compare<'_>) -> Verdict {
        let search = self.search;
        let mut verdict = first;
        let mut envs = envs.to_vec();
        if matches!(verdict, Verdict::Unknown(Unknown::OutOfFuel)) {
            // One long run shows more than none.
            self.fuel = self.measured_fuel;
            let mut ending = self.more();
            if ending.is_empty() {
                self.fuel = search.fuel * LONG;
                self.measured_fuel = self.fuel;
                ending.push(self.env(0));
            }
            match compare(&ending) {
                Verdict::Unknown(Unknown::OutOfFuel) => self.fuel = search.fuel,
                ending_verdict => (verdict, envs) = (ending_verdict, ending),
            }
        }
        envs.iter().for_each(|env| self.learn(env));
        let mut at = 0;
        self.compare(&mut verdict, compare, &mut at, COMPARED_FIRST, search.limit * 2);
        let start = ThreadTime::now();
        self.measure_more(&mut verdict, &envs, compare, start);
        if self.measured_fuel < self.fuel && !self.sensitivity().is_enough() && !is_decided(&verdict) {
            self.measured_fuel = self.fuel;
            self.measure(&envs, &mut |_| false);
        }
        let most = if self.doubted { COMPARED_DOUBTED } else { COMPARED };
        // Measuring long runs takes all of the time, and shows little of their computations.
        let left = (search.limit * 2).saturating_sub(start.elapsed()).max(search.limit / 2);
        let finds_too_little = self.probe.is_some() && self.sensitivity().share() < FAR_TOO_LITTLE;
        let share = if finds_too_little && self.known.found_too_little { FOUND_TOO_LITTLE_AGAIN } else { 1 };
        self.known.found_too_little = finds_too_little;
        self.compare(&mut verdict, compare, &mut at, most, left / share);
        self.steer(&mut verdict, compare, share);
        verdict
    }

    /// Measures the runs in the first environments, and in others while they depend on too little.
    fn measure_more(&mut self, verdict: &mut Verdict, envs: &[Env], compare: Compare<'_>, start: ThreadTime) {
        let search = self.search;
        let patience = if self.known.found_too_little { SHORT_PATIENCE } else { PATIENCE };
        let is_over = |enough| start.elapsed() >= search.limit * if enough { 1 } else { patience };
        let mut count = envs.len();
        let mut measured = envs.to_vec();
        let (mut last, mut idle) = (0.0, 0);
        while !is_decided(verdict) {
            // Without a limit the given runs are measured, all of them.
            let stop = &mut |enough| !search.limit.is_zero() && is_over(enough);
            let Some(share) = self.measure(&measured, stop) else { break };
            if share > last {
                self.best = measured.first().cloned();
                measured.iter().for_each(|env| self.learn(env));
            }
            idle = if share < last + 0.01 { idle + 1 } else { 0 };
            let enough = self.sensitivity().is_enough();
            if is_over(enough) || count >= search.most_runs || share == 1.0 || idle > 2 && enough {
                break;
            }
            last = share.max(last);
            measured = self.next_envs();
            count += measured.len();
            verdict.add_runs(compare(&measured));
        }
    }

    /// Compares both programs where operands of comparisons are equal, or next to each other.
    /// The time is divided by `share`.
    fn steer(&mut self, verdict: &mut Verdict, compare: Compare<'_>, share: u32) {
        if is_decided(verdict) {
            return;
        }
        let (Some(inputs), Some(probe)) = (self.search.inputs, &mut self.probe) else { return };
        let limit = if self.doubted { self.search.limit } else { self.search.limit / 2 };
        let mut ties = Ties::new(inputs, probe, self.fuel, limit / share);
        let from = self.best.iter().chain(self.compared.iter().rev().map(|(env, _)| env));
        for env in from {
            let found = catch(|| {
                ties.search(env, &mut |envs| {
                    verdict.add_runs(compare(envs));
                    !is_decided(verdict)
                });
            });
            if found.is_err() || is_decided(verdict) {
                break;
            }
        }
    }

    /// Compares both programs in the environments from number `at` on, up to `most`, until the time is used up.
    fn compare(&self, verdict: &mut Verdict, compare: Compare<'_>, at: &mut usize, most: usize, limit: Duration) {
        let start = ThreadTime::now();
        let mut count = 1;
        while *at < most && !is_decided(verdict) && start.elapsed() < limit {
            let batch: Vec<Env> = (*at..*at + count).map(|at| self.comparison(at)).collect();
            let before = start.elapsed();
            verdict.add_runs(compare(&batch));
            *at += count;
            // Few at once where a run takes long.
            let is_short = (start.elapsed() - before) * 8 < limit;
            count = if is_short { BATCH } else { 1 };
        }
    }

    fn env(&self, number: usize) -> Env {
        Env { fuel: Some(self.fuel), ..self.search.env(number) }
    }

    /// An environment in which the programs are compared only.
    fn comparison(&self, at: usize) -> Env {
        // In turn with the others, those that steer the last runs elsewhere.
        let number = FIRST_COMPARED + at;
        let steered = || {
            let inputs = self.search.inputs.filter(|_| at % 4 == 3)?;
            let (env, compared) = self.compared.iter().rev().cycle().nth(at / 4 % self.compared.len().max(1))?;
            Some(inputs.with_booleans(inputs.envs.towards(env, compared, number)?))
        };
        let env = steered().unwrap_or_else(|| self.search.comparison(number, self.best.as_ref()));
        let env = Env { fuel: Some(self.fuel), ..env };
        if self.has_full_waves { Env { lanes: None, ..env } } else { env }
    }

    /// Records the comparisons of a run, of the last few that are given.
    fn learn(&mut self, env: &Env) {
        let fuel = self.fuel;
        let Some(probe) = &mut self.probe else { return };
        if let Ok(compared) = catch(|| probe.compared(env, fuel)) {
            let operands = compared.into_iter().map(|compared| compared.values).collect();
            self.compared.push((env.clone(), operands));
            let first = self.compared.len().saturating_sub(MOST_LEARNED);
            self.compared.drain(..first);
        }
    }

    /// Measures the sites that further runs depend on, until `stop` returns true; it receives if the runs so far depend
    /// on enough.
    fn measure(&mut self, envs: &[Env], stop: &mut dyn FnMut(bool) -> bool) -> Option<f64> {
        let fuel = self.measured_fuel;
        let probe = self.probe.as_mut()?;
        let measured = catch(|| {
            for env in envs {
                probe.run(env, fuel);
                if stop(probe.sensitivity().is_enough()) {
                    break;
                }
            }
        });
        if measured.is_err() {
            self.probe = None;
            self.measured = None;
            return None;
        }
        let sensitivity = probe.sensitivity();
        self.measured = Some(sensitivity);
        Some(sensitivity.share())
    }

    /// The next environments: the candidates that reach most that no run depends on, or those by number.
    fn next_envs(&mut self) -> Vec<Env> {
        let from = self.next;
        let mut chosen = self.more();
        if chosen.is_empty() {
            chosen = (from..from + self.search.runs.max(1)).map(|number| self.env(number)).collect();
        }
        chosen
    }

    /// Of the next candidates those that reach most that no run depends on; none if no run of them ends.
    fn more(&mut self) -> Vec<Env> {
        let count = self.search.runs.max(1);
        let from = self.next;
        self.next += CANDIDATES;
        let (fuel, limit) = (self.measured_fuel, self.search.limit * 2);
        let (Some(it), Some(probe)) = (self.search.inputs, &mut self.probe) else { return Vec::new() };
        let make = |number| it.with_booleans(it.envs.candidate(number, self.best.as_ref()));
        let steered = |number: usize| {
            let (env, compared) = self.compared.get(number % self.compared.len().max(1))?;
            it.envs.towards(env, compared, number).map(|env| it.with_booleans(env))
        };
        let candidates: Vec<Env> = (from..self.next)
            .map(|number| Env { fuel: Some(fuel), ..make(number) })
            .chain((from..from + STEERED).filter_map(steered))
            .collect();
        catch(|| probe.choose(candidates, fuel, count, limit)).unwrap_or_default()
    }
}
