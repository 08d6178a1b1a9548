//! The runs of a boundary that no prover settles.
//!
//! The first environments are those of the shader by number. While the runs depend on too little of the program, more are added: of some
//! candidates those that come to most of what no run has depended on yet ([`SensitivityProbe::choose`]). What a run depends on costs many
//! runs, to compare two programs costs two: so both are compared in some environments before anything is measured, in more after it, and in
//! many more where the register checker names what is wrong.

use super::boundary::Settings;
use super::ties::Ties;
use crate::harness::check::{Answer, LEAST_SENSITIVITY, Sensitivity, SensitivityProbe, Unknown, Verdict};
use crate::programs::numbers::InputNumbers;
use crate::programs::seeds::ProgramEnvs;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::semantics::environment::hints::Hints;
use crate::support::panics::catch;
use crate::support::random::hash;
use cpu_time::ThreadTime;
use ir3_compiler::nir::Shader;
use ir3_compiler::target::Target;
use std::collections::BTreeSet;
use std::time::Duration;

/// The factor of the fuel of a run where others end without it.
const LONG: u64 = 10;
/// The candidates of which environments are chosen.
const CANDIDATES: usize = 12;
/// Environments in which the programs are compared before anything is measured.
const COMPARED_FIRST: usize = 24;
/// Environments in which the programs are compared only, with these.
const COMPARED: usize = 96;
/// The same where the register checker has found a difference.
const COMPARED_DOUBTED: usize = 192;
/// The candidates that are made of runs before, so that a comparison comes out otherwise.
const STEERED: usize = 6;
/// The runs of which these are made.
const MOST_LEARNED: usize = 4;
/// Environments that are compared at once.
const BATCH: usize = 8;
/// The work of measuring, in multiples of what it is elsewhere: real shaders are large.
const WORK: u64 = 3;
/// The number of the first of them: they are others than those that are measured.
const FIRST_COMPARED: usize = 1 << 20;

/// The environments of a shader.
pub(super) struct Environments {
    envs: ProgramEnvs,
    booleans: BTreeSet<u32>,
    /// The inputs that are one number each.
    pub numbers: InputNumbers,
}

impl Environments {
    pub fn of(shader: &Shader, seed: u64) -> Self {
        let (booleans, numbers) = (Hints::boolean_words(shader), InputNumbers::of(shader));
        Self { envs: ProgramEnvs::new(shader, seed), booleans, numbers }
    }

    /// The environment of a number. Each word that nir reads as a boolean of 32 bits has no bit or all of them: Mesa's `b2b1`
    /// looks at the low 16 only (docs/semantics.md, boolean words).
    pub fn env(&self, number: usize) -> Env {
        self.with_booleans(self.envs.env(number))
    }

    /// The environment of a number of a shader, or of any if there is none.
    pub fn numbered(environments: Option<&Self>, number: usize) -> Env {
        environments.map_or_else(|| Env::from_seed(number as u64), |it| it.env(number))
    }

    /// Returns true if nir reads words of the constant file as booleans of 32 bits.
    pub fn has_booleans(&self) -> bool {
        !self.booleans.is_empty()
    }

    /// An environment in which each of these words has no bit or all of them.
    pub fn with_booleans(&self, mut env: Env) -> Env {
        for &word in &self.booleans {
            let given = env.consts.get(&word).map(|&bits| bits != 0);
            let holds = given.unwrap_or_else(|| hash(&[env.seed, 0x626f_6f6c, word.into()]) & 1 != 0);
            env.consts.insert(word, if holds { u32::MAX } else { 0 });
        }
        env
    }
}

/// The runs of one boundary.
pub(super) struct Runs<'a> {
    settings: &'a Settings<'a>,
    environments: Option<&'a Environments>,
    probe: Option<SensitivityProbe>,
    measured: Option<Sensitivity>,
    fuel: u64,
    /// The number of the next candidate.
    next: usize,
    /// The environment by which the runs came to depend on more.
    best: Option<Env>,
    /// Environments with the operands of the comparisons that their runs come to.
    compared: Vec<(Env, Vec<[u32; 2]>)>,
    /// The register checker has found a difference.
    pub doubted: bool,
}

impl<'a> Runs<'a> {
    pub fn new(
        after: &Snapshot,
        target: &Target,
        settings: &'a Settings<'a>,
        environments: Option<&'a Environments>,
    ) -> Self {
        let probe = catch(|| SensitivityProbe::of(after, target)).ok().flatten().map(|probe| probe.with_work(WORK));
        let (fuel, next) = (settings.fuel, settings.runs);
        Self {
            settings,
            environments,
            probe,
            measured: None,
            fuel,
            next,
            best: None,
            compared: Vec::new(),
            doubted: false,
        }
    }

    /// The share of the program after on which the runs depend.
    pub fn sensitivity(&self) -> Sensitivity {
        self.measured.unwrap_or(Sensitivity::NONE)
    }

    /// Runs both programs: `ask` compares them.
    pub fn ask(&mut self, ask: &dyn Fn(&[Env]) -> Option<Answer>) -> Option<Answer> {
        let settings = self.settings;
        let mut envs: Vec<Env> = (0..settings.runs).map(|at| self.env(at)).collect();
        let mut answer = ask(&envs)?;
        if matches!(answer.verdict, Verdict::Unknown(Unknown::OutOfFuel)) {
            // One long run says more than none.
            self.fuel = settings.fuel * LONG;
            let long = [self.env(0)];
            match ask(&long) {
                Some(long_answer) if !matches!(long_answer.verdict, Verdict::Unknown(Unknown::OutOfFuel)) => {
                    (answer, envs) = (long_answer, long.to_vec());
                }
                _ => self.fuel = settings.fuel,
            }
        }
        envs.iter().for_each(|env| self.learn(env));
        let mut at = 0;
        self.compare(&mut answer, ask, &mut at, COMPARED_FIRST, settings.limit * 2);
        let start = ThreadTime::now();
        let mut measured = envs.clone();
        let mut count = envs.len();
        let (mut last, mut idle) = (0.0, 0);
        while !is_decided(&answer.verdict) {
            let Some(share) = self.measure(&measured) else { break };
            if share > last {
                self.best = measured.first().cloned();
                measured.iter().for_each(|env| self.learn(env));
            }
            idle = if share < last + 0.01 { idle + 1 } else { 0 };
            let too_long = start.elapsed() >= settings.limit;
            if too_long || count >= settings.most_runs || share == 1.0 || idle > 2 && share >= LEAST_SENSITIVITY {
                break;
            }
            last = share.max(last);
            measured = self.more();
            count += measured.len();
            add(&mut answer, ask(&measured));
        }
        let most = if self.doubted { COMPARED_DOUBTED } else { COMPARED };
        // Measuring long runs takes all of the time, and says little of what they compute.
        let left = (settings.limit * 2).saturating_sub(start.elapsed()).max(settings.limit / 2);
        self.compare(&mut answer, ask, &mut at, most, left);
        self.steer(&mut answer, ask);
        Some(answer)
    }

    /// Compares both programs where operands of comparisons are equal, or next to each other.
    fn steer(&mut self, answer: &mut Answer, ask: &dyn Fn(&[Env]) -> Option<Answer>) {
        if is_decided(&answer.verdict) {
            return;
        }
        let (Some(environments), Some(probe)) = (self.environments, &mut self.probe) else { return };
        let limit = if self.doubted { self.settings.limit } else { self.settings.limit / 2 };
        let mut ties = Ties::new(environments, probe, self.fuel, limit);
        let from = self.best.iter().chain(self.compared.iter().rev().map(|(env, _)| env));
        for env in from {
            let found = catch(|| {
                ties.search(env, &mut |envs| {
                    add(answer, ask(envs));
                    !is_decided(&answer.verdict)
                });
            });
            if found.is_err() || is_decided(&answer.verdict) {
                break;
            }
        }
    }

    /// Compares both programs in the environments from number `at` on, up to `most`, while the time lasts.
    fn compare(
        &self,
        answer: &mut Answer,
        ask: &dyn Fn(&[Env]) -> Option<Answer>,
        at: &mut usize,
        most: usize,
        limit: Duration,
    ) {
        let start = ThreadTime::now();
        while *at < most && !is_decided(&answer.verdict) && start.elapsed() < limit {
            let batch: Vec<Env> = (*at..*at + BATCH).map(|at| self.comparison(at)).collect();
            add(answer, ask(&batch));
            *at += BATCH;
        }
    }

    fn env(&self, number: usize) -> Env {
        Env { fuel: Some(self.fuel), ..Environments::numbered(self.environments, number) }
    }

    /// An environment in which the programs are compared only.
    fn comparison(&self, at: usize) -> Env {
        // In turn with the others, those that steer the last runs elsewhere.
        if at % 4 == 3
            && let Some(it) = self.environments
            && let Some((env, compared)) = self.compared.iter().rev().cycle().nth(at / 4 % self.compared.len().max(1))
            && let Some(env) = it.envs.towards(env, compared, FIRST_COMPARED + at)
        {
            return it.with_booleans(env);
        }
        comparison(self.environments, at, self.best.as_ref(), self.fuel)
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

    /// Measures what more runs depend on.
    fn measure(&mut self, envs: &[Env]) -> Option<f64> {
        let fuel = self.fuel;
        let probe = self.probe.as_mut()?;
        if catch(|| envs.iter().for_each(|env| probe.run(env, fuel))).is_err() {
            self.probe = None;
            self.measured = None;
            return None;
        }
        let sensitivity = probe.sensitivity();
        self.measured = Some(sensitivity);
        Some(sensitivity.share())
    }

    /// The next environments: the candidates that come to most that no run depends on, or those by number.
    fn more(&mut self) -> Vec<Env> {
        let count = self.settings.runs.max(1);
        let from = self.next;
        self.next += CANDIDATES;
        let fuel = self.fuel;
        let mut chosen = Vec::new();
        if let (Some(it), Some(probe)) = (self.environments, &mut self.probe) {
            let make = |number| it.with_booleans(it.envs.candidate(number, self.best.as_ref()));
            let steered = |number: usize| {
                let (env, compared) = self.compared.get(number % self.compared.len().max(1))?;
                it.envs.towards(env, compared, number).map(|env| it.with_booleans(env))
            };
            let candidates: Vec<Env> = (from..self.next)
                .map(|number| Env { fuel: Some(fuel), ..make(number) })
                .chain((from..from + STEERED).filter_map(steered))
                .collect();
            chosen = catch(|| probe.choose(candidates, fuel, count)).unwrap_or_default();
        }
        if chosen.is_empty() {
            chosen = (from..from + count).map(|number| self.env(number)).collect();
        }
        chosen
    }
}

/// The environment of a number in which programs are compared only.
pub(super) fn comparison(environments: Option<&Environments>, at: usize, best: Option<&Env>, fuel: u64) -> Env {
    let number = FIRST_COMPARED + at;
    let env = match environments {
        Some(it) => it.with_booleans(it.envs.comparison(number, best)),
        None => Environments::numbered(None, number),
    };
    Env { fuel: Some(fuel), ..env }
}

fn is_decided(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refuted(_) | Verdict::Unknown(Unknown::Crashed(_) | Unknown::Unsupported(_)))
}

fn add(answer: &mut Answer, more: Option<Answer>) {
    if let Some(more) = more {
        answer.time += more.time;
        answer.verdict.add_runs(more.verdict);
    }
}
