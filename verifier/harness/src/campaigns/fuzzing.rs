//! The fuzzing campaign: checks many generated programs in parallel.
//!
//! Program `i` of a campaign is a function of the campaign's seed and `i` alone, for any number of threads, so
//! each of them can be generated again. Threads take the next number from a counter; results are only summed, so the
//! counts of a campaign do not depend on the distribution of the work. A failure is reported as soon as it is found.

use super::corpus::{Corpus, NewProgram};
use super::counts::Counts;
use super::coverage::{Coverage, Director};
use super::register_limits::{Limits, further_limits};
use crate::campaigns::shard::Shard;
use crate::case::{Case, ProgramOrigin};
use crate::check::{
    Checker, Ends, EndsOfLimits, EngineKind, Engines, Policy, SourceOutcomes, Unknown, Verdict, Verification, plant_of,
};
use crate::guard::{self, Setting};
use cpu_time::ThreadTime;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Allocator, Options, RegisterLimit, Stage};
use ir3_compiler::target::{Backend, Target};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::planted_bugs::PlantedBug;
use ir3_programs::seeds::{campaign_envs, env_seeds, program_seed};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::{self, End, Outcome, Scratch};
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::threads;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The GPUs, taken in turn: [`Campaign::program`].
    pub targets: Vec<Target>,
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
    /// Stop after this number of programs, those of other shards included.
    pub programs: Option<u64>,
    /// The part of the campaign that is run.
    pub shard: Shard,
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
    /// The programs of which every boundary is compared.
    pub boundaries: Boundaries,
    /// A bug that is planted into the backend.
    pub plant: Option<&'static PlantedBug>,
    /// The coverage counts, if they are wanted.
    pub coverage: Option<Arc<Coverage>>,
    /// Chooses programs with rare cells, if they are not just taken in turn.
    pub director: Option<Arc<Director>>,
    /// Some programs are in the language of the backend ([`Drawn::code`]).
    pub has_code: bool,
    /// Programs that half of the programs are variants of.
    pub corpus: Option<Arc<Corpus>>,
}

/// A thousand programs of all profiles on the default GPU, compared by runs, until the first failure.
impl Default for Campaign {
    fn default() -> Self {
        Self {
            targets: vec![Target::default()],
            seed: 1,
            profiles: Profile::CAMPAIGN.to_vec(),
            registers: Limits::ByProfile,
            options: Options::default(),
            first: 0,
            programs: Some(1000),
            shard: Shard::ALL,
            time: None,
            jobs: threads::default_jobs(),
            runs: 1,
            fuel: None,
            keep_going: false,
            refusals: false,
            engines: Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() },
            boundaries: Boundaries::Sampled,
            plant: None,
            coverage: None,
            director: None,
            has_code: false,
            corpus: None,
        }
    }
}

/// The number of times that other environments are tried if no run of a program has a meaning and ends.
const RETRIES: u64 = 16;

/// The programs of a campaign of which every boundary is compared, and not only the last program with the source. A
/// program that does not agree [end to end](Ends) is always one of them, and so are all programs if a prover is among
/// the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundaries {
    /// All programs.
    All,
    /// One of 64.
    Sampled,
}

/// One program of this many is sampled.
const SAMPLE: u64 = 64;

/// One GPU of each generation that the ir3 backend has, and of those with differences that passes look at.
pub const GPUS: [&str; 8] = ["a306", "a420", "a540", "a618", "a630", "a660", "a730", "a750"];

/// The GPUs of a campaign for which none is named.
pub fn every_generation() -> Vec<Target> {
    GPUS.iter().filter_map(|name| Target::by_name(name).ok()).collect()
}

/// The program of a number: the generator's input, and the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The GPU.
    pub target: Target,
    /// The profile.
    pub profile: Profile,
    /// The seed that makes the program.
    pub seed: u64,
    /// The register limit.
    pub registers: RegisterLimit,
    /// True if it is a program of the backend's own language ([`Drawn::code`]).
    pub is_code: bool,
    /// True if it is a variant of a program of the corpus, where that has one for the GPU.
    pub is_variant: bool,
}

/// A program that the campaign reports.
pub struct Finding<'a> {
    /// Its number in the campaign.
    pub number: u64,
    /// Its GPU.
    pub target: Target,
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
    /// The program, unless it is [code](Drawn::code).
    pub shader: Option<&'a Shader>,
    /// The report of the check.
    pub report: &'a Verification,
    /// The environment in which a prover refuted it, if the runs of the campaign did not.
    pub env: Option<&'a Env>,
}

/// The unknown boundaries of a program, the first of each kind: a vacuous source is unknown in every stage.
pub(super) fn unknown_boundaries(verification: &Verification) -> Vec<(Stage, Unknown)> {
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

/// The GPU and the profile of a program by its number. Profiles are taken in turn, and so are GPUs; those are shifted
/// by one after each pass over the profiles, so that each profile is combined with each GPU.
pub(super) fn in_turn(targets: &[Target], profiles: &[Profile], number: u64) -> (Target, Profile) {
    let (count, gpus) = (profiles.len() as u64, targets.len() as u64);
    let (round, place) = (number / count, number % count);
    (targets[((round + place) % gpus) as usize], profiles[place as usize])
}

impl Campaign {
    /// The environments of a program and its seed: the first ones in which one run at least has a meaning and ends, so
    /// that there is something to compare.
    pub fn envs(&self, seed: u64, shader: &Shader, target: &Target) -> Vec<Env> {
        self.source(seed, shader, target, &mut Scratch::default()).envs
    }

    /// The environments of a program, with its runs in them; none of these if an operation is not supported.
    fn source(&self, seed: u64, shader: &Shader, target: &Target, scratch: &mut Scratch) -> SourceOutcomes {
        let chosen = |seed| Env::with_fuel(campaign_envs(seed, self.runs), self.fuel);
        // Corner-case inputs have more undefined behaviour.
        let tame = |seed| Env::with_fuel(Env::from_seeds(&env_seeds(seed, self.runs)), self.fuel);
        let retries = (1..=RETRIES).map(|retry| tame(program_seed(seed, retry)));
        let find = || {
            let decoded = interp::nir::Decoded::of_target(shader, target).ok()?;
            let promised = decoded.unaliased();
            let mut run = |env: &Env| decoded.run(env, env.fuel(), scratch);
            let mut source = |envs: Vec<Env>| {
                let envs: Vec<Env> = envs.iter().map(|env| env.keeping(&promised)).collect();
                let outcomes: Vec<Outcome> = envs.iter().map(&mut run).collect();
                SourceOutcomes { envs, outcomes }
            };
            let has_end = |source: &SourceOutcomes| source.outcomes.iter().any(|run| run.end == End::Finished);
            std::iter::once(chosen(seed)).chain(retries).map(&mut source).find(has_end)
        };
        // A panic of the interpreter is seen again, and reported, where the program is checked.
        let without = || SourceOutcomes { envs: chosen(seed), outcomes: Vec::new() };
        catch(find).ok().flatten().unwrap_or_else(without)
    }

    /// Returns true if every program for a GPU fits in its registers once it is spilled.
    fn can_spill(&self, target: &Target) -> bool {
        let is_least = !matches!(self.registers, Limits::Fixed(RegisterLimit::Registers(_)));
        target.pvtmem && is_least && self.options.allocator == Allocator::Ssa
    }

    /// A checker for its programs.
    pub fn checker(&self) -> Checker {
        let checker = Checker::new(self.targets.first().copied().unwrap_or_default(), self.options);
        if self.coverage.is_some() { checker.with_coverage() } else { checker }
    }

    fn check(&self, checker: &mut Checker, shader: &Shader, envs: &[Env]) -> Verification {
        let mut change = self.plant.map(PlantedBug::change);
        checker.program(shader, envs, plant_of(&mut change))
    }

    /// The failure that a finding of this campaign shows, as a case. `None` if the program
    /// does not fail when it is run again.
    pub fn case(&self, finding: &Finding<'_>) -> Option<Case> {
        self.case_of(finding.number, finding.registers, finding.env)
    }

    /// The failure of the program of a number that ended its worker; `None` if the compiler alone does not. The program
    /// is not compiled in this process.
    pub fn stopped_case(&self, number: u64) -> Option<Case> {
        let drawn = self.program(number);
        let target = drawn.target;
        let (shader, _) = self.generate(&drawn);
        let plant = self.plant.map(PlantedBug::shared);
        let process = guard::guard()?.limits;
        let stops = |registers| {
            let options = Options { registers, ..self.options };
            guard::probe(&shader, &Setting::new(target, options, plant.as_ref(), process)?)
        };
        let limit = self.limits(&drawn).into_iter().find(|&limit| stops(limit).is_some())?;
        self.case_of(number, limit, None)
    }

    /// The failure of the program of a number with a register limit, in the environment in which a prover has refuted
    /// it, if the runs of the campaign did not.
    pub fn case_of(&self, number: u64, registers: RegisterLimit, env: Option<&Env>) -> Option<Case> {
        let drawn = self.program(number);
        let Drawn { target, seed, .. } = drawn;
        let (shader, origin) = self.generate(&drawn);
        let envs = match env {
            Some(env) => vec![env.clone()],
            None => self.envs(seed, &shader, &target),
        };
        let options = Options { registers, ..self.options };
        Case::find(shader, target, options, self.plant, &envs, origin)
    }

    /// The register limits with which a program is compared end to end: the one of the program, and further ones.
    pub fn limits(&self, drawn: &Drawn) -> Vec<RegisterLimit> {
        let mut limits = vec![drawn.registers];
        // A program of a corpus is kept with one limit.
        if self.registers == Limits::ByProfile && self.corpus.is_none() {
            limits.extend(further_limits(drawn.seed).into_iter().filter(|&limit| limit != drawn.registers));
        }
        limits
    }

    /// Returns the program of a number.
    pub fn program(&self, number: u64) -> Drawn {
        let (target, profile) = in_turn(&self.targets, &self.profiles, number);
        let seed = match &self.director {
            Some(director) => director.seed(number),
            None => program_seed(self.seed, number),
        };
        let is_code = self.has_code && Drawn::is_code(&target, seed);
        let is_variant = !is_code && self.corpus.is_some() && program_seed(seed ^ 0x7661_7269, 0).is_multiple_of(2);
        Drawn { target, profile, seed, registers: self.registers.of(profile, seed), is_code, is_variant }
    }

    /// Generates a program.
    fn generate(&self, drawn: &Drawn) -> (Shader, ProgramOrigin) {
        let &Drawn { target, profile, seed, .. } = drawn;
        if let Some(corpus) = self.corpus.as_ref().filter(|_| drawn.is_variant)
            && let Some((of, shader)) = corpus.variant(&target, seed)
        {
            return (shader, ProgramOrigin::Variant { of: of.to_owned(), seed });
        }
        (generator::from_seed(seed, profile, Features::of(&target)).shader, ProgramOrigin::Seed { seed, profile })
    }

    /// The program of a number, to be kept in a corpus; `None` if it is [code](Drawn::code).
    pub fn new_program(&self, number: u64) -> Option<NewProgram> {
        let drawn = self.program(number);
        let options = Options { registers: drawn.registers, ..self.options };
        let (shader, _) = self.generate(&drawn);
        (!drawn.is_code).then_some(NewProgram { shader, target: drawn.target, options })
    }

    /// Checks the program of a number, and adds it to the counts. `found` is called if it is refuted, crashes, is
    /// refused or has an unknown boundary. Returns true if it is a failure.
    pub fn check_number(
        &self,
        checker: &mut Checker,
        number: u64,
        counts: &mut Counts,
        found: &mut dyn FnMut(&Finding<'_>),
    ) -> bool {
        let drawn = self.program(number);
        if let Some(program) = drawn.code() {
            return self.check_code(number, &drawn, &program, counts, found);
        }
        let Drawn { target, profile, seed, mut registers, .. } = drawn;
        let cpu = ThreadTime::now();
        let (generated, _) = self.generate(&drawn);
        let elapsed = cpu.elapsed();
        checker.retarget(target, Options { registers, ..self.options });
        let shader = &generated;
        counts.count_program(shader.instruction_count(), elapsed);
        let cpu = ThreadTime::now();
        let source = self.source(seed, shader, &target, checker.scratch());
        counts.run += cpu.elapsed();
        let mut change = self.plant.map(PlantedBug::change);
        // Runs without an end, or without a meaning, give more information about each boundary.
        let all_end = !source.outcomes.is_empty() && source.outcomes.iter().all(|run| run.end == End::Finished);
        let is_sampled = seed.is_multiple_of(SAMPLE) || self.boundaries == Boundaries::All;
        let mut differs = None;
        // Programs of other languages run as nir, and have no registers to look at.
        let has_ends = target.backend == Backend::Ir3 && self.engines.kinds == [EngineKind::Interpreter];
        if all_end && !is_sampled && has_ends {
            let limits = self.limits(&drawn);
            let EndsOfLimits { ends, times } = checker.ends_of_limits(shader, &source, &limits, plant_of(&mut change));
            counts.compile += times.compile;
            counts.run += times.run;
            let mut is_open = false;
            for (&limit, ends) in limits.iter().zip(ends) {
                is_open = !ends.is_pass();
                registers = limit;
                match ends {
                    Ends::Agree(report) => counts.count_ends(shader.instruction_count(), &report),
                    Ends::Differ(refutation) => differs = Some(refutation),
                    Ends::Same | Ends::Open => {}
                }
            }
            if !is_open {
                counts.end_to_end += 1;
                return false;
            }
            checker.set_registers(registers);
        }
        let plant = plant_of(&mut change);
        let mut verification = checker.verify(shader, plant, &Policy::new(&self.engines), &source.envs);
        if let Some(refutation) = differs.filter(|_| verification.failing_env().is_none()) {
            // No boundary has this refutation, so add it here.
            verification.add_refutation(*refutation);
        }
        counts.count(number, shader.instruction_count(), &verification);
        let env = verification.failing_env().flatten().cloned();
        let mut unknown = unknown_boundaries(&verification);
        let needs_spilling = unknown.iter().any(|(_, why)| matches!(why, Unknown::NeedsSpilling(_)));
        counts.not_spilled += u64::from(needs_spilling && self.can_spill(&target));
        let mut report = verification;
        if let Some(refuting) = &env {
            // A run confirms the refutation of a prover.
            report = self.check(checker, shader, std::slice::from_ref(refuting));
        }
        let refused = report.refusal.is_some();
        let wrong = report.refutation().is_some() || report.crash().is_some();
        let failed = wrong || refused && self.refusals;
        if failed {
            unknown.clear();
        }
        if failed || refused || !unknown.is_empty() {
            found(&Finding {
                number,
                target,
                profile,
                seed,
                registers,
                plant: self.plant,
                failed,
                unknown,
                shader: Some(shader),
                report: &report,
                env: env.as_ref(),
            });
        }
        failed
    }

    /// Runs the campaign. `found` is called for each program that is refuted, crashes, is refused or has an unknown
    /// boundary, as soon as there is one, `progress` now and then; both from worker threads, one at a time.
    /// `interrupted` stops it early.
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
        threads::run(self.jobs, || {
            let mut checker = self.checker();
            let mut local = Counts::default();
            let mut last = Instant::now();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = self.programs.is_some_and(|n| number - self.first >= n)
                    || self.time.is_some_and(|t| start.elapsed() >= t)
                    || interrupted.load(Ordering::Relaxed)
                    || stop.load(Ordering::Relaxed);
                if over {
                    break;
                }
                if !self.shard.has(number) {
                    continue;
                }
                let failed = self.check_number(&mut checker, number, &mut local, &mut |finding| (lock().1)(finding));
                if failed && !self.keep_going {
                    stop.store(true, Ordering::Relaxed);
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
            if let (Some(coverage), Some(covered)) = (&self.coverage, checker.coverage()) {
                coverage.add(covered);
            }
        });
        let (mut counts, ..) = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        counts.summary.interrupted = interrupted.load(Ordering::Relaxed);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Smt;
    use ir3_programs::planted_bugs;
    use ir3_prove::simulation::Limits as ProofLimits;

    fn campaign(kinds: &[EngineKind]) -> Campaign {
        let plant = planted_bugs::by_name("inverted-branch").expect("a planted bug");
        Campaign {
            targets: vec![Target::default()],
            seed: 1,
            profiles: vec![Profile::Branchy],
            registers: Limits::ByProfile,
            options: Options { last: plant.stage, ..Options::default() },
            first: 0,
            programs: Some(6),
            shard: Shard::ALL,
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
            boundaries: Boundaries::Sampled,
            plant: Some(plant),
            coverage: None,
            director: None,
            has_code: false,
            corpus: None,
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

    /// Programs of every operation that selection accepts are compiled and pass on one GPU of each kind.
    #[test]
    fn every_operation_passes_on_every_generation() {
        let never = AtomicBool::new(false);
        for gpu in ["a306", "a420", "a540", "a618", "a660", "a730", "a750"] {
            let campaign = Campaign {
                targets: vec![Target::by_name(gpu).expect("a GPU")],
                profiles: vec![Profile::Operations],
                plant: None,
                options: Options::default(),
                programs: Some(25),
                ..campaign(&[EngineKind::Interpreter])
            };
            let mut failed = Vec::new();
            let mut found = |finding: &Finding<'_>| {
                if finding.failed {
                    let report = finding.report;
                    let refuted = report.refutation().map(|refuted| (refuted.stage, refuted.difference.clone()));
                    failed.push(format!("{}: {:?} {refuted:?}", finding.number, report.crash()));
                }
            };
            let counts = campaign.run(&never, &mut found, &mut |_| ());
            assert!(failed.is_empty(), "{gpu}: {failed:#?}");
            assert_eq!(counts.summary.unknown, counts.summary.needs_spilling, "{gpu}");
        }
    }

    /// A failure with a further register limit names it, and is one of that limit when it is compiled again.
    #[test]
    fn failures_with_further_limits_are_reproduced() {
        let plant = planted_bugs::by_name("wrong-slot");
        let campaign = Campaign {
            plant,
            profiles: vec![Profile::Mixed],
            options: Options::default(),
            programs: Some(200),
            ..campaign(&[EngineKind::Interpreter])
        };
        let never = AtomicBool::new(false);
        let mut failed = Vec::new();
        let mut found = |finding: &Finding<'_>| {
            let own = campaign.program(finding.number).registers;
            if finding.failed && finding.registers != own {
                failed.push((finding.number, own, finding.registers));
            }
        };
        let counts = campaign.run(&never, &mut found, &mut |_| ());
        assert!(counts.summary.programs == 200 && counts.compilations > 210, "{}", counts.compilations);
        let &(number, own, registers) = failed.first().expect("a failure with a further limit");
        assert!(campaign.limits(&campaign.program(number)).contains(&registers));
        let case = campaign.case_of(number, registers, None).expect("the failure");
        assert_eq!(case.options.registers, registers);
        assert!(campaign.case_of(number, own, None).is_none(), "program {number} fails with its own limit, too");
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
            assert!(
                matches!(&unknown[..], [(Stage::SplitAdditions | Stage::Select, Unknown::OutOfFuel)]),
                "{unknown:?}"
            );
        }
    }

    /// Running out of registers is no failure on a GPU without private memory, or with a limit that the caller chose.
    #[test]
    fn who_can_spill() {
        let can_spill = |gpu: &str, registers: Limits| {
            let campaign = Campaign { registers, ..campaign(&[EngineKind::Interpreter]) };
            campaign.can_spill(&Target::by_name(gpu).expect("a GPU"))
        };
        assert!(can_spill("a660", Limits::ByProfile) && can_spill("a540", Limits::Fixed(RegisterLimit::Minimum(0))));
        assert!(!can_spill("a306", Limits::ByProfile));
        assert!(!can_spill("a660", Limits::Fixed(RegisterLimit::Registers(4))));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let never = AtomicBool::new(false);
        let count = |registers: Limits| {
            let targets = vec![Target::by_name("a306").expect("a GPU")];
            let (options, profiles) = (Options::default(), vec![Profile::Pressure]);
            let few = Campaign {
                targets,
                profiles,
                registers,
                options,
                plant: None,
                programs: Some(3),
                ..campaign(&[EngineKind::Interpreter])
            };
            let counts = few.run(&never, &mut |_| (), &mut |_| ());
            (counts.summary.needs_spilling, counts.not_spilled)
        };
        let (needs_spilling, not_spilled) = count(Limits::Fixed(RegisterLimit::Registers(4)));
        assert!(needs_spilling > 0 && not_spilled == 0, "{needs_spilling}, {not_spilled}");
    }

    /// A vote on the result of an atomic, which helper lanes do not get.
    const VOTE: &str = "shader: MESA_SHADER_FRAGMENT
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32   %0 = load_const (0x00000000)
    32   %1 = load_const (0x00000001)
    32   %2 = @ssbo_atomic_ir3 (%0, %0, %1, %0) (access=coherent, atomic_op=iadd)
    1    %3 = ilt %2, %0
    1    %4 = @vote_any (%3)
    if %4 {
        block b1:
        @store_ssbo_ir3 (%1, %0, %1, %1) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    } else {
        block b2:
    }
    block b3:
    block b4:
}
";

    /// It becomes a branch on it: the environments are those in which it is defined, and the program passes in them.
    #[test]
    fn votes_on_results_that_helper_lanes_lack() {
        let campaign = Campaign { plant: None, options: Options::default(), ..campaign(&[EngineKind::Interpreter]) };
        let shader = ir3_compiler::nir::read(VOTE).expect("a program");
        let end = |env: &Env| {
            let decoded = interp::nir::Decoded::new(&shader).expect("a program that can be run");
            decoded.run(env, env.fuel(), &mut Scratch::default()).end
        };
        let has_helpers = |seed: &u64| matches!(end(&campaign_envs(*seed, 1)[0]), End::Undefined { .. });
        let seed = (0..200).find(has_helpers).expect("an environment with helper lanes");
        let envs = campaign.envs(seed, &shader, &campaign.program(0).target);
        assert_eq!(end(&envs[0]), End::Finished);
        let report = campaign.check(&mut campaign.checker(), &shader, &envs);
        assert!(report.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Tested { .. })));
    }

    #[test]
    fn a_proof_that_a_run_refutes_is_counted() {
        let mut counts = Counts::default();
        let wrong_proofs = vec![(Stage::Fold, EngineKind::Smt, String::new())];
        counts.count(3, 10, &Verification { wrong_proofs, ..Verification::default() });
        assert_eq!(counts.wrong_proofs, [(3, Stage::Fold)]);
    }
}
