//! `verify`: compiles programs from files and checks every boundary.
//!
//! Threads check the programs in the order of the files; the main thread prints the results in that order, and writes
//! bundles.

use crate::engines::{self, EngineArgs};
use crate::exit::{self, Exit, Failure};
use crate::results::Results;
use crate::turnip::{DriverArgs, Shaders};
use crate::{Compiler, EnvSeed, Format, Fuel, Gpu, Guarding, Jobs, Planted, interrupt, output, paths, turnip, values};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use ir3_compiler::i965::vec4;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_harness::campaigns::shard::Shard;
use ir3_harness::case::{Case, ProgramOrigin};
use ir3_harness::check::{
    BoundaryVerdict, Check, Checker, DEFAULT_FUEL, EngineKind, Engines, Policy, ProgramInputs, Search, Summary,
    Verdict, Verification, plant_of, verify_vec4,
};
use ir3_harness::guard::{self, Setting, Stopped};
use ir3_harness::reduce;
use ir3_programs::input;
use ir3_programs::input::{Named, Unread};
use ir3_programs::mesa::input::{InputError, Lines};
use ir3_programs::planted_bugs::PlantedBug;
use ir3_programs::turnip::is_shader;
use ir3_report::bundle;
use ir3_report::page;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::threads;
use ir3_semantics::vec4::lift;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Options of `verify`.
#[derive(Args)]
pub struct Verify {
    /// Programs (.nir, or Mesa logs with final-form nir), shaders, bundles, or folders of these. Mesa's turnip
    /// compiles shaders (.spv, .comp, .vert, .frag, .wgsl) to nir (docs/turnip.md). Bundles bring their GPU,
    /// options and input, but in subfolders only their program is used.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    compiler: Compiler,
    /// Check only the Ith of N equal parts of the programs. The results are written to the folder of the bundles, for
    /// `merge`.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// The number of random environments (inputs) that each program is run on, 64 lanes each. More are added, up to
    /// 16, while something is not proved and the runs depend on more of the program.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    seed: EnvSeed,
    /// Use exactly this environment, which the report of a failure names, instead of `--runs` and `--seed`.
    #[arg(long, value_name = "SEED")]
    env_seed: Option<u64>,
    /// Use exactly this environment, in JSON as `reduce` writes it.
    #[arg(long, value_name = "FILE", conflicts_with = "env_seed")]
    env: Option<PathBuf>,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    jobs: Jobs,
    /// Fail (exit code 3) unless every boundary of every program has at least this verdict.
    #[arg(long, value_enum, value_name = "VERDICT")]
    require: Option<Required>,
    /// Print a row for each boundary when it is decided, not only for failures, and the summary at the end.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Print only the summary.
    #[arg(long, short)]
    quiet: bool,
    /// Folder for the files of refutations.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
    /// Write a page for each failure, and an index, into a folder.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    #[command(flatten)]
    pub guarding: Guarding,
    #[command(flatten)]
    planted: Planted,
    #[command(flatten)]
    driver: DriverArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Required {
    /// Run on both sides with agreement, or proved.
    Tested,
    /// Proved for all inputs.
    Proved,
}

const WIDTH: usize = 60;

/// A program to be checked.
struct Job {
    name: String,
    /// The program; for a vec4 program, the nir that it is translated to.
    shader: Shader,
    /// The vec4 program, whose passes are checked.
    vec4: Option<Box<vec4::Program>>,
    target: Target,
    options: Options,
    plant: Option<&'static PlantedBug>,
    /// The given environments; `None` to choose them.
    envs: Option<Vec<Env>>,
    /// The failure that is recorded in its bundle.
    recorded: Option<reduce::Failure>,
}

impl Job {
    /// Writes the bundle of a failure. Returns `None` if the program does not fail when it is run again: for example,
    /// if the difference is after an undefined value of its source.
    fn write(&self, root: &Path, envs: &[Env]) -> Result<Option<PathBuf>, Failure> {
        let (shader, origin) = (self.shader.clone(), ProgramOrigin::File(self.name.clone()));
        let case = Case::find(shader, self.target, self.options, self.plant, envs, origin);
        Ok(case.map(|case| bundle::write(root, &case)).transpose()?)
    }
}

/// An input, in the order of the command line.
enum Input {
    /// A program, which a thread parses.
    Text(Unread),
    /// A bundle.
    Bundle(PathBuf),
    /// A path that could not be read.
    Error(InputError),
}

/// The check of a program.
struct Checked {
    job: Job,
    verification: Verification,
    /// The counts of this program alone.
    summary: Summary,
    /// The failure that was found, if a bundle records one.
    found: Option<reduce::Failure>,
}

/// The exit code for an input without a program.
fn exit_of_input(error: &(dyn std::error::Error + 'static)) -> Exit {
    error.downcast_ref::<InputError>().map_or(Exit::Bad, turnip::exit_of)
}

impl Verify {
    /// The program of an input; `None` if it is not nir.
    fn job(&self, input: Input, given: Option<&[Env]>) -> Result<Job, Failure> {
        let text = match input {
            Input::Error(error) => return Err(error.into()),
            Input::Bundle(path) => {
                let Case { program, target, options, plant, env, symptom, .. } = bundle::read(&path)?;
                return Ok(Job {
                    name: path.display().to_string(),
                    shader: program,
                    vec4: None,
                    target,
                    options,
                    plant: self.planted.plant.or(plant),
                    envs: given.map(<[Env]>::to_vec).or_else(|| env.map(|env| vec![env])),
                    recorded: Some(symptom.failure),
                });
            }
            Input::Text(text) => text,
        };
        let Named { name, program, target, .. } = text.read()?;
        let (shader, vec4) = match program {
            Snapshot::Nir(shader) => (shader, None),
            Snapshot::Vec4(program) => (Box::new(lift(&program)?), Some(program)),
            Snapshot::Ir3(_) => {
                let why = "found an ir3 program, expected nir (two ir3 programs are compared with `check`)";
                return Err(format!("{name}: {why}").into());
            }
        };
        let (options, plant, envs) = (self.compiler.options(), self.planted.on(&target)?, given.map(<[Env]>::to_vec));
        Ok(Job { name, shader: *shader, vec4, target, options, plant, envs, recorded: None })
    }

    /// The programs of a file, read one by one.
    fn inputs(&self, path: &Path, shaders: &Shaders<'_>) -> Box<dyn Iterator<Item = Input> + Send> {
        if bundle::is_bundle(path) {
            return Box::new(std::iter::once(Input::Bundle(path.to_owned())));
        }
        // A folder may contain texts without nir; a file on the command line must have some.
        let is_named = self.paths.iter().any(|given| given == path);
        let (lines, gpu) = match is_shader(path) {
            true => (shaders.lines(path), Some(shaders.target())),
            false => (Lines::open(path), self.gpu.given()),
        };
        let texts = input::unread_of(lines, gpu);
        Box::new(texts.filter_map(move |text| match text {
            Ok(text) => Some(Input::Text(text)),
            Err(error) if error.is_without_program() && !is_named => None,
            Err(error) => Some(Input::Error(error)),
        }))
    }

    /// The given files, and those in the given folders, where a bundle counts as one file. The exit code is that of
    /// paths that cannot be read.
    fn files(&self) -> Result<(Vec<PathBuf>, Exit), Failure> {
        let (mut files, mut exit) = (Vec::new(), Exit::Passed);
        for path in &self.paths {
            if bundle::is_bundle(path) {
                files.push(path.clone());
                continue;
            }
            match paths::with_shaders(std::slice::from_ref(path)) {
                Ok((found, of_folder)) => {
                    // The folder in which the program of a bundle was found.
                    let whole = |file: PathBuf| match file.parent() {
                        Some(folder) if folder.parent() == Some(path) && bundle::is_bundle(folder) => folder.to_owned(),
                        _ => file,
                    };
                    files.extend(found.into_iter().map(whole));
                    exit = exit.max(of_folder);
                }
                Err(error) if self.paths.len() == 1 => return Err(error),
                Err(error) => {
                    output::error(&*error);
                    exit = Exit::Bad;
                }
            }
        }
        Ok((files, exit))
    }

    /// The reason why the compilation of a program must be aborted, determined before this process compiles it.
    fn stopped(&self, job: &Job) -> Option<Stopped> {
        let plant = job.plant.map(PlantedBug::shared);
        guard::probe(&job.shader, &Setting::new(job.target, job.options, plant.as_ref(), self.guarding.limits())?)
    }

    /// Checks a program with all engines.
    fn check(&self, job: Job, engines: &Engines) -> Checked {
        let inputs = ProgramInputs::new(&job.shader, self.seed.seed);
        let mut change = job.plant.map(PlantedBug::change);
        let mut checker = Checker::new(job.target, job.options).with_fuel(self.fuel.given().unwrap_or(DEFAULT_FUEL));
        let envs = self.fuel.of(job.envs.clone().unwrap_or_else(|| inputs.envs.first(self.runs)));
        let plant = plant_of(&mut change);
        let policy = Policy::new(engines);
        let search = match &job.envs {
            None => Search { fuel: checker.fuel(), ..Search::of_stage(&inputs) },
            Some(_) => Search::MEASURING,
        };
        let verification = match &job.vec4 {
            Some(program) => verify_vec4(program, &job.options, job.plant, &policy.with_search(search), envs),
            None if let Some(stopped) = self.stopped(&job) => {
                Verification::stopped(stopped.stage, &stopped.to_string())
            }
            // Use exactly the given environments, to reproduce a failure.
            None if job.envs.is_some() => checker.verify(&job.shader, plant, &policy, &envs),
            None => checker.verify(&job.shader, plant, &policy.with_search(search), &envs),
        };
        let sites = verification.sites();
        let mut summary = Summary {
            programs: 1,
            rejected: u64::from(verification.is_rejected()),
            unchanged: verification.unchanged as u64,
            sites: sites.all.into(),
            seen_sites: sites.seen.into(),
            seconds: verification.times.total().as_secs_f64(),
            ..Summary::default()
        };
        verification.boundaries.iter().for_each(|boundary| summary.count(&boundary.verdict));
        let found = job.recorded.as_ref().and_then(|_| {
            let (shader, origin) = (job.shader.clone(), ProgramOrigin::File(job.name.clone()));
            let case = Case::find(shader, job.target, job.options, job.plant, &verification.envs, origin)?;
            Some(case.symptom.failure)
        });
        Checked { job, verification, summary, found }
    }

    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let given = match (&self.env, self.env_seed) {
            (Some(path), _) => Some(vec![crate::run::read_env(path)?]),
            (None, Some(seed)) => Some(vec![Env::from_seed(seed)]),
            (None, None) => None,
        };
        let (files, found) = self.files()?;
        let shaders = Shaders::new(&self.driver, &self.gpu);
        shaders.start(&files)?;
        let files = shaders.linked(files);
        let engines = self.engines.engines(&EngineKind::ALL, engines::PROOF_TIME)?;
        exit::try_folder(&self.failures)?;
        let bar = ProgressBar::new(0);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos} of {len} programs or more, {elapsed}, {msg}")?);
        if let Some(folder) = &self.html {
            exit::try_folder(folder)?;
        }
        let mut printer = Printer::new(self, format)?;
        let inputs = files.iter().flat_map(|path| {
            bar.set_message(format!("{}", path.display()));
            let bar = bar.clone();
            self.inputs(path, &shaders).inspect(move |_| bar.inc_length(1))
        });
        // Every machine sees the same inputs in the same order.
        let shard = self.shard.unwrap_or_default();
        let inputs = (0..).zip(inputs).filter(move |(number, _)| shard.has(*number)).map(|(_, input)| input);
        let given = given.as_deref();
        let check = |input| {
            let checked = self.job(input, given).map(|job| self.check(job, &engines));
            checked.map_err(|error| (exit_of_input(&*error), error.to_string()))
        };
        let printed = threads::in_order(self.jobs.count(), inputs, interrupt::flag(), check, |checked| {
            bar.inc(1);
            bar.suspend(|| printer.program(checked))
        });
        bar.finish_and_clear();
        let (mut summary, mut exit) = (printer.summary(), printer.exit);
        if let Err(error) = printed {
            output::error(&*error);
            exit = exit.max(exit::of_failure(&*error));
        }
        interrupt::ends_by_itself();
        summary.interrupted = interrupt::is_set();
        output::summary(&summary);
        if let Some(shard) = self.shard {
            Results::new(shard, summary.clone(), None, Vec::new()).write(&self.failures)?;
        }
        printer.rest.iter().for_each(|line| output::line(line));
        let required = match self.require {
            None | Some(Required::Tested) => summary.unknown > 0,
            Some(Required::Proved) => summary.unknown + summary.tested > 0,
        };
        Ok(Exit::of_all([
            exit,
            found,
            exit::of_verdicts(&summary),
            Exit::Unmet.when(required),
            engines::written(&engines),
        ]))
    }
}

/// Prints the results in their order.
struct Printer<'a> {
    verify: &'a Verify,
    format: Format,
    summary: Arc<Mutex<Summary>>,
    /// Lines that are printed after the verdicts of the whole.
    rest: Vec<String>,
    pages: Option<page::PageFolder>,
    exit: Exit,
}

impl<'a> Printer<'a> {
    fn new(verify: &'a Verify, format: Format) -> Result<Self, Failure> {
        if verify.verbose {
            output::heading(WIDTH);
        }
        let summary = Arc::new(Mutex::new(Summary::default()));
        let so_far = Arc::clone(&summary);
        interrupt::last_words(move || {
            let mut summary = so_far.lock().unwrap_or_else(PoisonError::into_inner).clone();
            summary.interrupted = true;
            output::summary(&summary);
            Exit::Interrupted.max(Exit::Refuted.when(summary.refuted + summary.crashed > 0))
        });
        let pages = verify.html.as_deref().map(page::PageFolder::create).transpose()?;
        Ok(Self { verify, format, summary, rest: Vec::new(), pages, exit: Exit::Passed })
    }

    fn summary(&self) -> Summary {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints a line: at once, or after the verdicts of the whole.
    fn line(&mut self, line: String) {
        match (self.verify.verbose, self.verify.quiet) {
            (true, _) => output::line(&line),
            (_, true) => {}
            _ => self.rest.push(line),
        }
    }

    /// Prints the rows of a program, and writes the bundle of its failure.
    fn program(&mut self, checked: Result<Checked, (Exit, String)>) -> Result<(), Failure> {
        let Checked { job, verification, summary, found } = match checked {
            Ok(checked) => checked,
            Err((exit, error)) => {
                output::problem(&error);
                self.exit = self.exit.max(exit);
                return Ok(());
            }
        };
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).add(&summary);
        for BoundaryVerdict { stage, verdict, engine, time, sensitivity } in &verification.boundaries {
            let share = sensitivity.map(|sensitivity| sensitivity.share());
            let is_fine = verdict.is_pass();
            let is_left_out = match self.format {
                Format::Human => self.verify.quiet || is_fine && !self.verify.verbose,
                Format::Json => self.verify.quiet,
                // A JUnit report contains all boundaries.
                Format::Junit => false,
            };
            if is_left_out {
                continue;
            }
            let check = Check {
                program: job.name.clone(),
                gpu: job.target.name.to_owned(),
                stage: stage.name().to_owned(),
                engine,
                verdict: verdict.name(),
                lanes: verdict.lanes(),
                seconds: time.as_secs_f64(),
                reason: verdict.reason().or_else(|| {
                    let share = share.filter(|_| matches!(verdict, Verdict::Tested { .. }))?;
                    Some(format!("sensitivity {:.0} %", share * 100.0))
                }),
                sensitivity: share.filter(|_| *engine == EngineKind::Interpreter.name()),
            };
            if self.format == Format::Human {
                if self.rest.is_empty() && !self.verify.verbose {
                    self.line(output::heading_of(WIDTH));
                }
                self.line(output::row(WIDTH, &check));
            } else {
                output::check(WIDTH, &check);
            }
        }
        for (stage, engine, why) in &verification.wrong_proofs {
            let engine = engine.name();
            output::problem(&format!("{}: {engine} proved {stage}, and a run refutes it: {why}", job.name));
            self.exit = Exit::Unsound;
        }
        if let Some(recorded) = &job.recorded {
            self.exit = self.exit.max(Exit::Refuted.when(found.is_some()));
            let text = match &found {
                Some(found) if found == recorded => "it fails as recorded in its bundle".to_owned(),
                Some(found) => format!("it fails, but its bundle records: {recorded}; found: {found}"),
                None => format!("it does not fail any more; its bundle records: {recorded}"),
            };
            let same = found.as_ref() == Some(recorded);
            let (recorded, found) = (recorded.to_string(), found.map(|found| found.to_string()));
            output::json(
                "recorded",
                &serde_json::json!({ "program": job.name, "recorded": recorded, "found": found, "same": same }),
            );
            self.line(format!("  {text}"));
            if let (Some(pages), Some(_)) = (&mut self.pages, &found) {
                pages.add_bundle(Path::new(&job.name))?;
            }
            return Ok(());
        }
        // A refuted vec4 program is its own file: it was not made from nir.
        if let Some(env) = verification.failing_env().filter(|_| job.vec4.is_none()) {
            let envs = env.map_or_else(|| verification.envs.clone(), |env| vec![env.clone()]);
            let Some(folder) = job.write(&self.verify.failures, &envs)? else {
                output::problem(&format!(
                    "{}: no bundle: it did not fail when it was run again from its source",
                    job.name
                ));
                return Ok(());
            };
            if let Some(pages) = &mut self.pages {
                pages.add_bundle(&folder)?;
            }
            let folder = folder.display().to_string();
            output::json("bundle", &serde_json::json!({ "program": job.name, "folder": folder }));
            self.line(format!("  written to {folder}"));
            self.line(format!("  see it again: ir3-equiv verify {folder}"));
        }
        Ok(())
    }
}
