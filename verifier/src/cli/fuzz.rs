//! `fuzz`: checks generated programs.

use crate::corpus::CorpusArgs;
use crate::coverage::CoverageArgs;
use crate::engines::{self, EngineArgs, TIMEOUT};
use crate::exit::{self, Exit, Failure};
use crate::fuzz_compiler;
use crate::results::Results;
use crate::triage::{self, Reducing};
use crate::turnip::DriverArgs;
use crate::unknown_programs::UnknownPrograms;
use crate::values;
use crate::vulkan::{self, VulkanArgs};
use crate::{Format, Fuel, Guarding, Jobs, Planted, Stages, given, interrupt, output};
use clap::Args;
use ir3_compiler::pipeline::RegisterLimit;
use ir3_compiler::target::Target;
use ir3_harness::campaigns::code::CodeFailure;
use ir3_harness::campaigns::counts::Counts;
use ir3_harness::campaigns::coverage::Director;
use ir3_harness::campaigns::external::Compiler;
use ir3_harness::campaigns::fuzzing::{Boundaries, Campaign, Drawn, every_generation};
use ir3_harness::campaigns::register_limits::Limits;
use ir3_harness::campaigns::shard::Shard;
use ir3_harness::campaigns::workers::{self, Ended, WorkerCommand, WorkerFinding};
use ir3_harness::case::Case;
use ir3_harness::check::{EngineKind, Summary};
use ir3_programs::coverage::table::Table;
use ir3_programs::generator::Profile;
use ir3_programs::vulkan::Library;
use ir3_report::bundle;
use ir3_report::triage::FailureKind;
use serde::Serialize;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Options of `fuzz`.
#[derive(Args)]
pub struct Fuzz {
    /// Stop after this number of programs. Without `--programs` and `--time`, it runs until it is stopped.
    #[arg(long, value_name = "N", value_parser = values::count::<u64>())]
    programs: Option<u64>,
    /// Check only the Ith of N equal parts of the programs of the campaign of `--seed`. The results are written to the
    /// folder of the bundles, for `merge`.
    #[arg(long, value_name = "I/N", requires = "seed")]
    shard: Option<Shard>,
    /// The number of the first program, to continue an earlier run with the same seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Stop after this time (`90s`, `10m`, `8h`).
    #[arg(long, value_name = "T", value_parser = values::time)]
    time: Option<Duration>,
    /// Seed of the campaign; the same seed gives the same programs on every machine. Default: a random seed, which is
    /// printed.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Profiles of the programs, in turn; default: all, with `operations` every third time. May be repeated.
    #[arg(long, value_name = "PROFILE", value_parser = values::profile())]
    profile: Vec<Profile>,
    /// The GPU of all programs. Default: one of each generation in turn (a306, a420, a540, a618, a630, a660, a730,
    /// a750), or a660 with `--compiler`.
    #[arg(long, value_name = "GPU", value_parser = values::gpu())]
    gpu: Option<Target>,
    /// Limit on full general registers (4 to a vec4): a number, `min` (the fewest that the program compiles with),
    /// `min+N`, or `random` (drawn for each program). Default: all, but few enough to spill for most programs of the
    /// profile `pressure` and for some others.
    #[arg(long, value_name = "LIMIT", value_parser = parse_registers)]
    max_registers: Option<Limits>,
    #[command(flatten)]
    stages: Stages,
    #[command(flatten)]
    jobs: Jobs,
    /// The number of random environments (inputs) that each program is run on, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    engines: EngineArgs,
    /// Compare every boundary of every program. Unless given, and unless a prover is among the engines: of one program
    /// in sixteen, and of each whose last program differs from its source.
    #[arg(long)]
    every_boundary: bool,
    /// Continue after a failure, to the end; then reduce the failures.
    #[arg(long)]
    keep_going: bool,
    /// Treat programs that the compiler refuses as failures, too.
    #[arg(long)]
    refusals: bool,
    #[command(flatten)]
    reducing: Reducing,
    /// Folder for the bundles of failures.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
    #[command(flatten)]
    pub guarding: Guarding,
    #[command(flatten)]
    planted: Planted,
    #[command(flatten)]
    external: fuzz_compiler::External,
    #[command(flatten)]
    driver: DriverArgs,
    #[command(flatten)]
    vulkan: Box<VulkanArgs>,
    /// This process is a worker of a campaign with this seed.
    #[arg(long, value_name = "SEED", hide = true)]
    worker: Option<u64>,
    #[command(flatten)]
    coverage: CoverageArgs,
    #[command(flatten)]
    corpus: CorpusArgs,
}

fn parse_registers(text: &str) -> Result<Limits, String> {
    if text == "random" {
        return Ok(Limits::Drawn);
    }
    text.parse().map(Limits::Fixed).map_err(|error| format!("{error}, or `random`"))
}

/// Returns a seed that other campaigns are unlikely to have.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// The exit code of a campaign without a failure. Programs that do not fit in the registers are counted and reported.
/// They are a failure only if no other program remains, or if every value of a program could be spilled: the limits are
/// tight by design.
pub fn exit_of(counts: &Counts) -> Exit {
    let summary = &counts.summary;
    if summary.proved + summary.tested + summary.refuted == 0 || counts.rejected >= summary.programs {
        return Exit::Nothing;
    }
    Exit::Unmet.when(summary.unknown > summary.needs_spilling || counts.not_spilled > 0)
}

/// The rates and shares of the campaign, as JSON.
#[derive(Serialize)]
struct Rates {
    programs_per_second: f64,
    compilations: u64,
    compilations_per_second: f64,
    instructions_per_second: f64,
    generate_instructions_per_second: f64,
    compile_instructions_per_second: f64,
    run_instructions_per_second: f64,
    rejected: f64,
    vacuous: f64,
    unfinished: f64,
    spilled: f64,
    stp: u64,
    ldp: u64,
    end_to_end: u64,
    every_boundary: u64,
}

impl Rates {
    fn of(counts: &Counts) -> Self {
        let per = |n: u64, time: Duration| n as f64 / time.as_secs_f64().max(1e-9);
        let share = |n: u64, of: u64| n as f64 / of.max(1) as f64;
        Self {
            programs_per_second: per(counts.summary.programs, counts.total()),
            compilations: counts.compilations,
            compilations_per_second: per(counts.compilations, counts.total()),
            instructions_per_second: per(counts.instructions, counts.total()),
            generate_instructions_per_second: per(counts.instructions, counts.generate),
            compile_instructions_per_second: per(counts.instructions, counts.compile),
            run_instructions_per_second: per(counts.instructions, counts.run),
            rejected: share(counts.rejected, counts.summary.programs),
            vacuous: share(counts.vacuous_runs, counts.runs),
            unfinished: share(counts.unfinished_runs, counts.runs),
            spilled: share(counts.spilled, counts.compilations),
            stp: counts.spills.stores,
            ldp: counts.spills.loads,
            end_to_end: counts.end_to_end,
            every_boundary: counts.every_boundary,
        }
    }
}

/// A failure that was found and written, as JSON.
#[derive(Serialize)]
struct Found<'a> {
    number: u64,
    gpu: &'static str,
    profile: String,
    seed: u64,
    registers: String,
    stage: &'static str,
    failure: String,
    message: &'a str,
    /// The folder of the bundle; `None` if it could not be written.
    folder: Option<String>,
}

/// The reason why a failure was not written as a bundle.
#[derive(Debug, thiserror::Error)]
enum Lost {
    /// The failure is not reproducible.
    #[error("{profile}, {gpu}, seed {seed}: it failed, and when it was run again it did not")]
    Passed { gpu: &'static str, profile: Profile, seed: u64 },
    /// Checking the program ends the process; compiling it alone does not.
    #[error("{profile}, {gpu}, seed {seed}: its check ended the process, and the compiler alone does not: {why}")]
    Died { gpu: &'static str, profile: Profile, seed: u64, why: String },
}

/// The findings of a campaign so far.
#[derive(Default)]
struct Findings {
    /// The bundles, in the order in which they were written.
    bundles: Vec<PathBuf>,
    /// Programs without a failure that have boundaries with an unknown verdict.
    unknown: UnknownPrograms,
    /// The coverage of the programs, if it is counted.
    coverage: Table,
    /// The exits of failures without a bundle, and of files that workers could not write.
    exits: Vec<Exit>,
    /// The numbers of the programs that are added to the corpus.
    new: Vec<u64>,
}

impl Fuzz {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        if let Some(programs) = self.programs.filter(|programs| self.from.checked_add(*programs).is_none()) {
            let (from, last) = (self.from, u64::MAX);
            return Err(format!("found --from {from} and --programs {programs}, expected numbers up to {last}").into());
        }
        if let Some(library) = self.vulkan.library()? {
            if self.external.is_given() {
                return Err("--vulkan: found --compiler or --turnip, expected one of them".into());
            }
            return self.on_device(&library, format);
        }
        if let Some(compiler) = self.external.compiler(&self.driver, self.gpu.unwrap_or_default())? {
            return self.compiler(&compiler, format);
        }
        let interrupted = interrupt::flag();
        exit::try_folder(&self.failures)?;
        let seed = self.seed.unwrap_or_else(random_seed);
        output::json("campaign", &serde_json::json!({ "seed": seed, "first": self.from }));
        output::line(&format!("seed {seed}"));
        let mut table = self.coverage.table()?;
        self.corpus.try_folder()?;
        let mut skipped = 0;
        let campaign = self.of_seed(seed, &mut skipped)?;
        if let Some(corpus) = &campaign.corpus {
            CorpusArgs::print(corpus, skipped, format);
        }
        let jobs = campaign.jobs;
        let (counts, findings) = self.campaign(&campaign, format, interrupted)?;
        print(format, &counts, &findings.unknown);
        // A file that cannot be written must not hide findings.
        let mut written = Vec::new();
        if let Some(table) = &mut table {
            table.merge(&findings.coverage);
            written.push(self.coverage.write(table, format));
        }
        written.push(self.corpus.keep(&campaign, &findings.new, format, interrupted));
        if let Some(shard) = self.shard {
            let results = Results::new(shard, counts.summary.clone(), Some(counts.clone()), findings.unknown.saved());
            written.push(results.write(&self.failures));
        }
        for (number, stage) in &counts.wrong_proofs {
            output::problem(&format!("program {number}: {stage} was proved, and a run refutes it"));
        }
        let mut exits = findings.exits;
        let mut problems: Vec<Failure> = written.into_iter().filter_map(Result::err).collect();
        if !findings.bundles.is_empty() {
            let triage = self.reducing.run(&findings.bundles, jobs, interrupted)?;
            triage::print(format, &triage, &self.failures);
            problems.extend(triage.problems.into_iter().map(|problem| problem.error as Failure));
        }
        output::summary(&counts.summary);
        for problem in &problems {
            output::error(&**problem);
            exits.push(exit::of_failure(&**problem));
        }
        let failed = !findings.bundles.is_empty() || counts.summary.refuted + counts.summary.crashed > 0;
        exits.extend([
            exit_of(&counts),
            Exit::Refuted.when(failed),
            Exit::Unsound.when(!counts.wrong_proofs.is_empty()),
        ]);
        Ok(Exit::of_all(exits))
    }

    /// The campaign of a seed; `skipped` counts the texts of the corpus that are left out.
    fn of_seed(&self, seed: u64, skipped: &mut usize) -> Result<Campaign, Failure> {
        let targets = self.gpu.map_or_else(every_generation, |target| vec![target]);
        let corpus = self.corpus.read(&targets, skipped)?.map(Arc::new);
        let campaign = Campaign {
            targets,
            seed,
            profiles: if self.profile.is_empty() { Profile::CAMPAIGN.to_vec() } else { self.profile.clone() },
            registers: self.max_registers.unwrap_or(Limits::ByProfile),
            first: self.from,
            programs: self.programs,
            shard: self.shard.unwrap_or_default(),
            time: self.time,
            jobs: self.jobs.count(),
            runs: self.runs,
            fuel: self.fuel.given(),
            options: self.stages.options(),
            engines: self.engines.engines(&[EngineKind::Interpreter], TIMEOUT)?,
            keep_going: self.keep_going,
            refusals: self.refusals,
            boundaries: if self.every_boundary { Boundaries::All } else { Boundaries::Sampled },
            plant: self.planted.on(&self.gpu.unwrap_or_default())?,
            coverage: self.coverage.counts().or_else(|| corpus.is_some().then(Arc::default)),
            director: None,
            has_code: true,
            corpus,
        };
        let director = self.coverage.is_directed().then(|| Arc::new(Director::of(&campaign)));
        Ok(Campaign { director, ..campaign })
    }

    /// The seed, if this process is a worker.
    pub fn worker(&self) -> Option<u64> {
        self.worker
    }

    /// Runs a part of the campaign as a worker process.
    pub fn work(&self, seed: u64) -> Result<Exit, Failure> {
        let campaign = self.of_seed(seed, &mut 0)?;
        workers::serve(&campaign, self.guarding.limits())?;
        Ok(engines::written(&campaign.engines))
    }

    /// Runs the campaign on a Vulkan device.
    fn on_device(&self, library: &Library, format: Format) -> Result<Exit, Failure> {
        let request = vulkan::Request {
            library,
            options: &self.vulkan,
            gpu: self.gpu,
            seed: self.seed.unwrap_or_else(random_seed),
            profiles: if self.profile.is_empty() { Profile::CAMPAIGN.to_vec() } else { self.profile.clone() },
            first: self.from,
            programs: self.programs,
            time: self.time,
            jobs: self.jobs.count(),
            keep_going: self.keep_going,
            reduce: self.reducing.wanted(),
            failures: &self.failures,
            coverage: self.coverage.compared()?,
        };
        vulkan::fuzz(request, format)
    }

    /// Runs the campaign against an external compiler.
    fn compiler(&self, compiler: &Compiler, format: Format) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, engines::PROOF_TIME)?;
        let request = fuzz_compiler::Request {
            compiler,
            target: self.gpu.unwrap_or_default(),
            seed: self.seed.unwrap_or_else(random_seed),
            profiles: if self.profile.is_empty() { Profile::CAMPAIGN.to_vec() } else { self.profile.clone() },
            first: self.from,
            programs: self.programs,
            time: self.time,
            jobs: self.jobs.count(),
            runs: self.runs as usize,
            fuel: self.fuel.given(),
            engines: &engines,
            every_boundary: self.every_boundary,
            keep_going: self.keep_going,
            refusals: self.refusals,
            reduce: self.reducing.wanted(),
            failures: &self.failures,
            variants_of: &self.external.variants_of,
        };
        fuzz_compiler::run(&request, format)
    }

    /// Runs the campaign. A finding is printed only after its bundle has been written.
    fn campaign(
        &self,
        campaign: &Campaign,
        format: Format,
        interrupted: &'static AtomicBool,
    ) -> Result<(Counts, Findings), Failure> {
        bundle::clean(&self.failures).map_err(|error| format!("{}: {error}", self.failures.display()))?;
        let bar = output::campaign_bar(campaign.programs)?;
        let mut findings = Findings::default();
        let mut found = |finding: &WorkerFinding| {
            if finding.failed {
                match self.kept(campaign, finding) {
                    Ok(kept) => {
                        let written = self.write(&kept);
                        bar.suspend(|| {
                            announce(format, campaign, finding, &kept, written.as_deref().ok());
                            written.as_ref().err().into_iter().for_each(|error| output::error(error));
                        });
                        match (written, kept) {
                            (Ok(path), Kept::Bundle(_)) => findings.bundles.push(path),
                            (Ok(_), Kept::Code { .. }) => {}
                            (Err(_), _) => {
                                // The disk may be full: later bundles would fail as well.
                                interrupted.store(true, Ordering::Relaxed);
                                findings.exits.push(Exit::Unwritten);
                            }
                        }
                    }
                    Err(error) => {
                        bar.suspend(|| output::error(&error));
                        findings.exits.push(Exit::Bad);
                    }
                }
            } else {
                findings.unknown.add(campaign, finding);
            }
        };
        let so_far = Arc::new(Mutex::new(Summary::default()));
        let (words, root) = (Arc::clone(&so_far), self.failures.clone());
        interrupt::last_words(move || {
            let mut summary = words.lock().unwrap_or_else(PoisonError::into_inner).clone();
            summary.interrupted = true;
            let failed = summary.refuted + summary.crashed > 0;
            if failed {
                triage::unfinished(&root);
            }
            output::summary(&summary);
            Exit::Interrupted.max(Exit::Refuted.when(failed))
        });
        let mut progress = |counts: &Counts| {
            *so_far.lock().unwrap_or_else(PoisonError::into_inner) = counts.summary.clone();
            bar.set_position(counts.summary.programs);
            let rates = Rates::of(counts);
            bar.set_message(format!(
                "{:.0} programs/s, {:.0} k instructions/s of CPU time",
                rates.programs_per_second,
                rates.instructions_per_second / 1e3
            ));
        };
        let program = std::env::current_exe()?;
        let mut arguments = given();
        arguments.push(format!("--worker={}", campaign.seed));
        let command = WorkerCommand { program: &program, arguments: &arguments };
        let ended = workers::run(campaign, &command, interrupted, &mut found, &mut progress);
        bar.finish_and_clear();
        let Ended { counts, failures, coverage, new } = ended?;
        (findings.coverage, findings.new) = (coverage, new);
        failures.iter().for_each(|failure| output::problem(failure));
        findings.exits.push(Exit::Unwritten.when(!failures.is_empty()));
        Ok((counts, findings))
    }

    /// The form in which a failure is written: a case, or the text of a failing program that was not generated from
    /// nir.
    fn kept(&self, campaign: &Campaign, finding: &WorkerFinding) -> Result<Kept, Lost> {
        let Drawn { target, profile, seed, registers, is_code, .. } = finding.origin(campaign);
        let gpu = target.name;
        if is_code && finding.died.is_none() {
            let failure = campaign.code_failure(finding.number, self.reducing.wanted().is_some());
            let failure = failure.ok_or(Lost::Passed { gpu, profile, seed })?;
            let name = format!("{}-{gpu}-{seed}.{}", failure.stage, failure.extension);
            return Ok(Kept::Code { failure, name });
        }
        let case = match &finding.died {
            None => {
                let case = campaign.case_of(finding.number, registers, finding.env.as_ref());
                case.ok_or(Lost::Passed { gpu, profile, seed })?
            }
            Some(why) => {
                let died = || Lost::Died { gpu, profile, seed, why: why.clone() };
                campaign.stopped_case(finding.number).ok_or_else(died)?
            }
        };
        Ok(Kept::Bundle(Box::new(case)))
    }

    /// Writes a failure, and returns its place.
    fn write(&self, kept: &Kept) -> Result<PathBuf, bundle::WriteError> {
        let (failure, path) = match kept {
            Kept::Bundle(case) => return bundle::write(&self.failures, case),
            Kept::Code { failure, name } => (failure, self.failures.join(name)),
        };
        let write = || {
            std::fs::create_dir_all(&self.failures)?;
            std::fs::write(&path, &failure.text)?;
            failure.after.iter().try_for_each(|after| std::fs::write(path.with_extension("after.ir3"), after))
        };
        match write() {
            Ok(()) => Ok(path),
            Err(cause) => Err(bundle::WriteError { path, cause }),
        }
    }
}

/// A failure that is written.
enum Kept {
    /// A bundle.
    Bundle(Box<Case>),
    /// The text of a program in the language of the backend, and the name of its file.
    Code { failure: CodeFailure, name: String },
}

/// Prints a finding and the path of its file, if it could be written.
fn announce(format: Format, campaign: &Campaign, finding: &WorkerFinding, kept: &Kept, folder: Option<&Path>) {
    let number = finding.number;
    let Drawn { target, profile, seed, registers, .. } = finding.origin(campaign);
    let (kind, stage, failure, message) = match kept {
        Kept::Bundle(case) => {
            let symptom = &case.symptom;
            (FailureKind::of(&symptom.failure), symptom.stage, symptom.failure.to_string(), &symptom.message)
        }
        Kept::Code { failure: code, .. } => {
            let kind = if code.is_crash { FailureKind::Crash } else { FailureKind::Refuted };
            (kind, code.stage, kind.to_string(), &code.message)
        }
    };
    match format {
        Format::Json => output::json(
            "failure",
            &Found {
                number,
                gpu: target.name,
                profile: profile.to_string(),
                seed,
                registers: registers.to_string(),
                stage: stage.name(),
                failure,
                message,
                folder: folder.map(|folder| folder.display().to_string()),
            },
        ),
        _ => {
            let limit = match kept {
                Kept::Bundle(case) if case.options.registers != RegisterLimit::Target => {
                    format!(", --max-registers {}", case.options.registers)
                }
                _ => String::new(),
            };
            output::line(&format!(
                "{kind}: program {number} ({profile}, {}, seed {seed}{limit}), stage {stage}: {message}",
                target.name
            ));
            if let Some(folder) = folder {
                output::line(&format!("  written to {}", folder.display()));
            }
        }
    }
}

/// Prints the results of the campaign.
pub fn print(format: Format, counts: &Counts, unknown: &UnknownPrograms) {
    let rates = Rates::of(counts);
    match format {
        Format::Json => output::json("rates", &rates),
        _ => {
            output::line(&format!(
                "{} programs of {} instructions, {} compilations; per CPU second: {:.0} programs, {:.0} compilations, \
                 {:.0} k instructions (generate {:.0} k, compile {:.0} k, run and compare {:.0} k)",
                counts.summary.programs,
                counts.instructions,
                counts.compilations,
                rates.programs_per_second,
                rates.compilations_per_second,
                rates.instructions_per_second / 1e3,
                rates.generate_instructions_per_second / 1e3,
                rates.compile_instructions_per_second / 1e3,
                rates.run_instructions_per_second / 1e3,
            ));
            output::line(&format!(
                "checked end to end: {} programs; at every boundary: {}",
                counts.end_to_end, counts.every_boundary
            ));
            output::line(&format!(
                "rejected {:.2} % of programs, vacuous {:.2} % and unfinished {:.2} % of {} runs",
                rates.rejected * 100.0,
                rates.vacuous * 100.0,
                rates.unfinished * 100.0,
                counts.runs
            ));
            if counts.spilled > 0 {
                output::line(&format!(
                    "spilled {:.1} % of compilations, {} stp and {} ldp",
                    rates.spilled * 100.0,
                    rates.stp,
                    rates.ldp
                ));
            }
        }
    }
    unknown.print(format);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_could_be_spilled_and_is_not_is_no_pass() {
        let summary = Summary { programs: 2, tested: 1, unknown: 1, needs_spilling: 1, ..Summary::default() };
        let counts = Counts { summary, ..Counts::default() };
        assert_eq!(exit_of(&counts), Exit::Passed);
        assert_eq!(exit_of(&Counts { not_spilled: 1, ..counts }), Exit::Unmet);
    }
}
