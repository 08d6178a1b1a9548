//! The fuzzing campaign: checks many generated programs in parallel.
//!
//! Program `i` of a campaign is a function of the campaign's seed and `i` alone, whatever the number of threads, so
//! each of them can be generated again. Threads take the next number from a counter; results are only summed, so the
//! counts of a campaign do not depend on the distribution of the work. A failure is reported as soon as it is found,
//! before anything else happens.

use super::coverage::{Coverage, Director};
use crate::harness::check::{
    Checker, EngineKind, Engines, ProgramReport, Spills, Summary, Unknown, Verdict, Verification, plant_of,
};
use crate::harness::report::bundle::{Case, ProgramOrigin};
use crate::programs::generator;
use crate::programs::generator::{Features, Generated, Profile};
use crate::programs::planted_bugs::PlantedBug;
use crate::programs::seeds::{env_seeds, program_seed};
use crate::semantics::environment::env::Env;
use crate::semantics::interp::{self, End, Scratch};
use crate::support::panics::catch;
use crate::support::threads;
use cpu_time::ThreadTime;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The GPU.
    pub target: Target,
    /// Seed of the campaign.
    pub seed: u64,
    /// The profiles, taken in turn.
    pub profiles: Vec<Profile>,
    /// The register limits of the programs.
    pub registers: Limits,
    /// The compiler options.
    pub options: Options,
    /// Number of the first program.
    pub first: u64,
    /// Stop after this number of programs.
    pub programs: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// The number of threads.
    pub jobs: usize,
    /// The number of environments for each program.
    pub runs: u32,
    /// The fuel of runs, if it is another than the default.
    pub fuel: Option<u64>,
    /// Go on after a failure.
    pub keep_going: bool,
    /// Programs that the compiler refuses are failures, like refuted and crashing ones.
    pub refusals: bool,
    /// The engines that compare each boundary. A refutation by a prover counts if a run confirms it.
    pub engines: Engines,
    /// A bug that is planted into the backend.
    pub plant: Option<&'static PlantedBug>,
    /// The counts of what the programs have, if they are wanted.
    pub coverage: Option<Arc<Coverage>>,
    /// Programs are chosen for what is rare among those before.
    pub directed: bool,
}

/// A thousand programs of all profiles on the default GPU, compared by runs, until the first failure.
impl Default for Campaign {
    fn default() -> Self {
        Self {
            target: Target::default(),
            seed: 1,
            profiles: Profile::ALL.to_vec(),
            registers: Limits::ByProfile,
            options: Options::default(),
            first: 0,
            programs: Some(1000),
            time: None,
            jobs: threads::default_jobs(),
            runs: 1,
            fuel: None,
            keep_going: false,
            refusals: false,
            engines: Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() },
            plant: None,
            coverage: None,
            directed: false,
        }
    }
}

/// The number of times that other environments are tried if no run of a program has a meaning and ends.
const RETRIES: u64 = 16;

/// The register limits of the programs of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// The same limit for all programs.
    Fixed(RegisterLimit),
    /// A random limit for each program, from the fewest registers to all.
    Drawn,
    /// All registers; for programs of the profile `pressure` so few that most of them spill: the fewest that are
    /// possible, and up to 7 more.
    ByProfile,
}

impl Limits {
    /// Returns the limit of a program.
    pub fn of(self, profile: Profile, program: u64) -> RegisterLimit {
        match self {
            Self::Fixed(limit) => limit,
            Self::Drawn => program_registers(program),
            Self::ByProfile if profile == Profile::Pressure => {
                RegisterLimit::Minimum((program_seed(program ^ 0x7265_6773, 0) % 8) as u16)
            }
            Self::ByProfile => RegisterLimit::Target,
        }
    }
}

/// The counts of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Verdicts.
    pub summary: Summary,
    /// Programs that the compiler refused or that were not valid.
    pub rejected: u64,
    /// Runs of source programs.
    pub runs: u64,
    /// Runs of source programs with undefined behaviour.
    pub vacuous_runs: u64,
    /// Runs of source programs that used up their fuel.
    pub unfinished_runs: u64,
    /// Instructions of the generated programs.
    pub instructions: u64,
    /// Programs with spilled values.
    pub spilled: u64,
    /// Accesses to spill slots.
    pub spills: Spills,
    /// Boundaries that were proved and that a run refutes, as numbers of programs and stages: a prover is unsound.
    pub wrong_proofs: Vec<(u64, Stage)>,
    /// CPU time in the generator.
    pub generate: Duration,
    /// CPU time in the compiler.
    pub compile: Duration,
    /// CPU time in the interpreters.
    pub run: Duration,
    /// CPU time in the provers.
    pub prove: Duration,
}

impl Counts {
    /// CPU time of the whole loop.
    pub fn total(&self) -> Duration {
        self.generate + self.compile + self.run + self.prove
    }

    /// Counts the verdicts on the program of a number.
    fn count(&mut self, number: u64, instructions: usize, generate: Duration, verification: &Verification) {
        let Verification { report, boundaries, wrong_proofs, .. } = verification;
        self.summary.programs += 1;
        self.instructions += instructions as u64;
        self.generate += generate;
        self.compile += report.times.compile;
        self.run += report.times.run;
        let source = &report.source;
        self.runs += u64::from(source.finished + source.vacuous + source.out_of_fuel);
        self.vacuous_runs += u64::from(source.vacuous);
        self.unfinished_runs += u64::from(source.out_of_fuel);
        self.rejected += u64::from(report.refusal.is_some());
        self.spilled += u64::from(report.spills != Spills::default());
        self.spills.stores += report.spills.stores;
        self.spills.loads += report.spills.loads;
        self.prove += verification.proving;
        boundaries.iter().for_each(|boundary| self.summary.count(&boundary.verdict));
        self.wrong_proofs.extend(wrong_proofs.iter().map(|(stage, ..)| (number, *stage)));
        self.summary.seconds = self.total().as_secs_f64();
    }

    fn add(&mut self, other: &Self) {
        self.summary.add(&other.summary);
        self.rejected += other.rejected;
        self.runs += other.runs;
        self.vacuous_runs += other.vacuous_runs;
        self.unfinished_runs += other.unfinished_runs;
        self.instructions += other.instructions;
        self.spilled += other.spilled;
        self.spills.stores += other.spills.stores;
        self.spills.loads += other.spills.loads;
        self.generate += other.generate;
        self.compile += other.compile;
        self.run += other.run;
        self.prove += other.prove;
        self.wrong_proofs.extend(&other.wrong_proofs);
    }
}

/// A program that the campaign reports.
pub struct Finding<'a> {
    /// Its number in the campaign.
    pub number: u64,
    /// Its profile.
    pub profile: Profile,
    /// The seed that makes it.
    pub seed: u64,
    /// Its register limit.
    pub registers: RegisterLimit,
    /// The bug that was planted.
    pub plant: Option<&'static PlantedBug>,
    /// True if it is a failure, false if it was only refused or has unknown boundaries.
    pub failed: bool,
    /// Its unknown boundaries, the first of each kind, if it is no failure.
    pub unknown: Vec<(Stage, Unknown)>,
    /// The program.
    pub generated: &'a Generated,
    /// The report of the check.
    pub report: &'a ProgramReport,
    /// The environment in which a prover refuted it, if the runs of the campaign did not.
    pub env: Option<&'a Env>,
}

/// Draws the register limit of a program: from as few registers as it needs to all, small limits more often than large
/// ones.
pub fn program_registers(program: u64) -> RegisterLimit {
    let drawn = program_seed(program ^ 0x7265_6773, 0);
    match drawn % 8 {
        0 => RegisterLimit::Minimum(0),
        7 => RegisterLimit::Target,
        // 1 to 126 more; mostly 7 to 30, with which many programs just fit: then vectors are not split for spilling,
        // and have to be moved.
        _ => {
            let scale = 1 << [1, 2, 3, 3, 4, 4, 5, 6][(drawn >> 8 & 7) as usize];
            RegisterLimit::Minimum((scale + (drawn >> 16) % scale) as u16 - 1)
        }
    }
}

/// The unknown boundaries of a program, the first of each kind: a vacuous source is unknown in every stage.
fn unknown_boundaries(verification: &Verification) -> Vec<(Stage, Unknown)> {
    let mut unknown: Vec<(Stage, Unknown)> = Vec::new();
    for boundary in &verification.boundaries {
        if let Verdict::Unknown(why) = &boundary.verdict
            && unknown.iter().all(|(_, other)| other.kind() != why.kind())
        {
            unknown.push((boundary.stage, why.clone()));
        }
    }
    unknown
}

impl Campaign {
    /// The environments of a program and its seed: the first ones in which one run at least has a meaning and ends, so that there is something
    /// to compare.
    pub(super) fn envs(&self, seed: u64, shader: &Shader) -> Vec<Env> {
        let chosen = |seed| Env::with_fuel(Env::from_seeds(&env_seeds(seed, self.runs)), self.fuel);
        let retries = (1..=RETRIES).map(|retry| chosen(program_seed(seed, retry)));
        let find = || {
            let decoded = interp::nir::Decoded::new(shader).ok()?;
            let mut scratch = Scratch::default();
            let mut ends = |env: &Env| decoded.run(env, env.fuel(), &mut scratch).end == End::Finished;
            std::iter::once(chosen(seed)).chain(retries).find(|envs| envs.iter().any(&mut ends))
        };
        // A panic of the interpreter is seen again, and reported, where the program is checked.
        catch(find).ok().flatten().unwrap_or_else(|| chosen(seed))
    }

    fn check(&self, checker: &mut Checker, shader: &Shader, envs: &[Env]) -> ProgramReport {
        let mut change = self.plant.map(PlantedBug::change);
        checker.program(shader, envs, plant_of(&mut change))
    }

    /// The failure that a finding of this campaign shows, for a [bundle](crate::harness::report::bundle). `None` if the program does not fail when it is run again.
    pub fn case(&self, finding: &Finding<'_>) -> Option<Case> {
        let Finding { profile, seed, registers, plant, .. } = *finding;
        let envs = match finding.env {
            Some(env) => vec![env.clone()],
            None => self.envs(seed, &finding.generated.shader),
        };
        let options = Options { registers, ..self.options };
        let origin = ProgramOrigin::Seed { seed, profile };
        Case::find(finding.generated.shader.clone(), self.target, options, plant, &envs, origin)
    }

    /// Runs the campaign. `found` is called for each program that is refuted, crashes, is refused or has an unknown boundary, as soon as
    /// there is one, `progress` now and then; both from worker threads, one at a time. `interrupted` stops it early.
    pub fn run(
        &self,
        interrupted: &AtomicBool,
        found: &mut (dyn FnMut(&Finding<'_>) + Send),
        progress: &mut (dyn FnMut(&Counts) + Send),
    ) -> Counts {
        let next = AtomicU64::new(self.first);
        let stop = AtomicBool::new(false);
        let start = Instant::now();
        let shared = Mutex::new((Counts::default(), found, progress));
        let lock = || shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let director = self.directed.then(|| Director::new(self));
        threads::run(self.jobs, || {
            let _counting = self.coverage.as_deref().map(Coverage::count);
            let mut checker = Checker::new(self.target, self.options);
            let mut local = Counts::default();
            let mut last = Instant::now();
            let features = Features::of(&self.target);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = self.programs.is_some_and(|n| number - self.first >= n)
                    || self.time.is_some_and(|t| start.elapsed() >= t)
                    || interrupted.load(Ordering::Relaxed)
                    || stop.load(Ordering::Relaxed);
                if over {
                    break;
                }
                let profile = self.profiles[(number % self.profiles.len() as u64) as usize];
                let cpu = ThreadTime::now();
                let seed = match &director {
                    Some(director) => director.seed(number),
                    None => program_seed(self.seed, number),
                };
                let generated = generator::from_seed(seed, profile, features);
                let elapsed = cpu.elapsed();
                let registers = self.registers.of(profile, seed);
                checker.set_registers(registers);
                let envs = self.envs(seed, &generated.shader);
                let mut change = self.plant.map(PlantedBug::change);
                let (shader, plant) = (&generated.shader, plant_of(&mut change));
                let verification = self.engines.verify(&mut checker, shader, plant, envs, None);
                local.count(number, shader.instruction_count(), elapsed, &verification);
                let env = verification.failing_env().flatten().cloned();
                let mut unknown = unknown_boundaries(&verification);
                let mut report = verification.report;
                if let Some(refuting) = &env {
                    // A run confirms the refutation of a prover.
                    report = self.check(&mut checker, shader, std::slice::from_ref(refuting));
                }
                let refused = report.refusal.is_some();
                let wrong = report.refutation().is_some() || report.crash().is_some();
                let failed = wrong || refused && self.refusals;
                if failed {
                    unknown.clear();
                }
                if failed || refused || !unknown.is_empty() {
                    (lock().1)(&Finding {
                        number,
                        profile,
                        seed,
                        registers,
                        plant: self.plant,
                        failed,
                        unknown,
                        generated: &generated,
                        report: &report,
                        env: env.as_ref(),
                    });
                    if failed && !self.keep_going {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                if last.elapsed() > Duration::from_millis(100) {
                    last = Instant::now();
                    let mut shared = lock();
                    shared.0.add(&std::mem::take(&mut local));
                    let (counts, _, progress) = &mut *shared;
                    progress(counts);
                }
            }
            lock().0.add(&local);
        });
        let (mut counts, ..) = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        counts.summary.interrupted = interrupted.load(Ordering::Relaxed);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::check::Smt;
    use crate::programs::planted_bugs;
    use crate::prove::simulation::Limits as ProofLimits;

    fn campaign(kinds: &[EngineKind]) -> Campaign {
        let plant = planted_bugs::by_name("inverted-branch").expect("a planted bug");
        Campaign {
            target: Target::default(),
            seed: 1,
            profiles: vec![Profile::Branchy],
            registers: Limits::ByProfile,
            options: Options { last: plant.stage, ..Options::default() },
            first: 0,
            programs: Some(6),
            time: None,
            jobs: 1,
            runs: 1,
            fuel: None,
            keep_going: true,
            refusals: false,
            engines: Engines {
                kinds: kinds.to_vec(),
                smt: Smt { limits: ProofLimits::within(Duration::from_millis(300)), ..Smt::default() },
            },
            plant: Some(plant),
            coverage: None,
            directed: false,
        }
    }

    #[test]
    fn provers_find_a_planted_bug_and_runs_show_it() {
        let never = AtomicBool::new(false);
        let failures = |kinds: &[EngineKind]| {
            let mut failed = Vec::new();
            let mut found = |finding: &Finding<'_>| {
                if finding.failed {
                    assert!(finding.report.refutation().is_some());
                    failed.push((finding.number, finding.env.is_some()));
                }
            };
            let counts = campaign(kinds).run(&never, &mut found, &mut |_| ());
            assert!(counts.summary.proved > 0 && counts.wrong_proofs.is_empty(), "{:?}", counts.summary);
            failed
        };
        let by_smt = failures(&[EngineKind::Smt]);
        // Without the interpreter every failure has the environment of the prover.
        assert!(!by_smt.is_empty() && by_smt.iter().all(|&(_, of_prover)| of_prover), "{by_smt:?}");
        let by_all = failures(&EngineKind::ALL);
        assert!(by_smt.iter().all(|(number, _)| by_all.iter().any(|(other, _)| other == number)), "{by_all:?}");
    }

    #[test]
    fn programs_with_unknown_boundaries_are_reported() {
        let never = AtomicBool::new(false);
        let mut reported = Vec::new();
        let mut found = |finding: &Finding<'_>| {
            assert!(!finding.failed && !finding.unknown.is_empty());
            reported.push((finding.number, finding.unknown.clone()));
        };
        // Without fuel no run ends.
        let starved =
            Campaign { fuel: Some(1), plant: None, programs: Some(4), ..campaign(&[EngineKind::Interpreter]) };
        let counts = starved.run(&never, &mut found, &mut |_| ());
        assert!(counts.summary.unknown > 4, "{:?}", counts.summary);
        let numbers: Vec<u64> = reported.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        for (_, unknown) in reported {
            assert!(matches!(&unknown[..], [(Stage::Select, Unknown::OutOfFuel)]), "{unknown:?}");
        }
    }

    /// A vote on the result of an atomic, which helper lanes do not get, becomes a branch on it: the environments are those in which it is
    /// defined, and the program passes in them. Number 6474 of the campaign of seed 19.
    #[test]
    fn votes_on_results_that_helper_lanes_lack() {
        let seed = program_seed(19, 6474);
        let campaign = Campaign { plant: None, options: Options::default(), ..campaign(&[EngineKind::Interpreter]) };
        let shader = generator::from_seed(seed, Profile::Alu, Features::of(&campaign.target)).shader;
        let first = Env::from_seeds(&env_seeds(seed, 1));
        let end = |env: &Env| {
            let decoded = interp::nir::Decoded::new(&shader).expect("a program that can be run");
            decoded.run(env, env.fuel(), &mut Scratch::default()).end
        };
        assert!(matches!(end(&first[0]), End::Undefined { .. }), "the first environment has helper lanes");
        let envs = campaign.envs(seed, &shader);
        assert_eq!(end(&envs[0]), End::Finished);
        let report = campaign.check(&mut Checker::new(campaign.target, campaign.options), &shader, &envs);
        assert!(report.boundaries.iter().all(|(_, verdict, _)| matches!(verdict, Verdict::Tested { .. })));
    }

    #[test]
    fn a_proof_that_a_run_refutes_is_counted() {
        let mut counts = Counts::default();
        let wrong_proofs = vec![(Stage::Fold, EngineKind::Smt, String::new())];
        counts.count(3, 10, Duration::ZERO, &Verification { wrong_proofs, ..Verification::default() });
        assert_eq!(counts.wrong_proofs, [(3, Stage::Fold)]);
    }
}
