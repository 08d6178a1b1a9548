//! `fuzz --compiler CMD`: generated programs for an external compiler, whose log is checked pass by pass.

use crate::exit::{self, Exit, Failure, Unwritten};
use crate::temporary::Temporary;
use crate::turnip::DriverArgs;
use crate::values;
use crate::{Format, engines, interrupt, output};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_compiler::nir::Shader;
use ir3_compiler::target::Target;
use ir3_harness::campaigns::external::reduce::{Reduction, spirv_size};
use ir3_harness::campaigns::external::variants::{Original, VariantCampaign, VariantFinding};
use ir3_harness::campaigns::external::{
    self, Campaign, Compiler, CompilerCommand, Counts, Course, Drivers, Finding, Found, LogRules,
};
use ir3_harness::check::{Engines, Summary};
use ir3_harness::mesa::Settings;
use ir3_programs::generator::Profile;
use ir3_report::bundle;
use ir3_report::external::{Report, write_variant};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The compiler under test.
#[derive(Args)]
pub struct External {
    /// Fuzz this compiler instead of our own backend: a command that gets the path of a SPIR-V module and prints the
    /// log of Mesa's ir3 (docs/mesa.md has the contract). Its passes are checked as `mesa` checks them, by all
    /// engines unless `--engine` is given.
    #[arg(
        long,
        value_name = "CMD",
        help_heading = "Another compiler",
        conflicts_with_all = ["plant", "max_registers", "disable", "skip", "round_robin", "coverage", "directed", "corpus"]
    )]
    compiler: Option<PathBuf>,
    /// Fuzz Mesa's turnip as a distribution ships it (docs/turnip.md), with the driver of `--driver` or of the usual
    /// places: nir and the final code end to end, and all passes of one program in sixteen and of each that
    /// differs.
    #[arg(
        long,
        help_heading = "Another compiler",
        conflicts_with_all = ["compiler", "plant", "max_registers", "disable", "skip", "round_robin", "coverage", "directed", "corpus"]
    )]
    turnip: bool,
    /// Fuzz with mutated modules instead of generated programs: of these .spv files, and of all in these folders. May
    /// be repeated.
    #[arg(long, value_name = "PATH", requires = "turnip", help_heading = "Another compiler")]
    pub variants_of: Vec<PathBuf>,
    /// An argument of the compiler, before the path of the module. May be repeated.
    #[arg(
        long,
        value_name = "ARG",
        requires = "compiler",
        allow_hyphen_values = true,
        help_heading = "Another compiler"
    )]
    compiler_arg: Vec<OsString>,
    /// Time limit of the compiler for a program; it is killed then, and counts as hanging.
    #[arg(
        long,
        value_name = "T",
        default_value = "20s",
        value_parser = values::time,
        help_heading = "Another compiler"
    )]
    compiler_time: Duration,
    /// Memory limit of the compiler, in MiB of address space.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        value_parser = values::count::<u64>(),
        help_heading = "Another compiler"
    )]
    compiler_memory: u64,
}

impl External {
    /// Returns true if there is another compiler under test.
    pub const fn is_given(&self) -> bool {
        self.turnip || self.compiler.is_some()
    }

    /// The compiler, if there is one.
    pub fn compiler(&self, driver: &DriverArgs, target: Target) -> Result<Option<Compiler>, Failure> {
        if self.turnip {
            let drivers = Drivers::new(driver.setup(target)?)?;
            output::line(drivers.device());
            return Ok(Some(Compiler::Driver(Box::new(drivers))));
        }
        if driver.is_given() {
            return Err("--driver: found no --turnip, expected it".into());
        }
        let command = self.compiler.clone().map(|program| CompilerCommand {
            program,
            arguments: self.compiler_arg.clone(),
            time: self.compiler_time,
            memory: self.compiler_memory << 20,
        });
        Ok(command.map(Compiler::Command))
    }
}

/// The options of the command line.
pub struct Request<'a> {
    pub compiler: &'a Compiler,
    pub target: Target,
    pub seed: u64,
    pub profiles: Vec<Profile>,
    pub first: u64,
    pub programs: Option<u64>,
    pub time: Option<Duration>,
    pub jobs: usize,
    pub runs: usize,
    pub fuel: Option<u64>,
    pub engines: &'a Engines,
    /// Compare all boundaries of every program.
    pub every_boundary: bool,
    pub keep_going: bool,
    pub refusals: bool,
    /// The time for reductions, and the number of failures that are reduced of each kind.
    pub reduce: Option<(Option<Duration>, usize)>,
    pub failures: &'a Path,
    /// The modules that are mutated; if empty, programs are generated.
    pub variants_of: &'a [PathBuf],
}

/// The maximum number of candidates in a reduction.
const CANDIDATES: u64 = 6000;

/// A failure that was written.
struct Written {
    origin: (Profile, u64),
    shader: Shader,
    found: Found,
    folder: PathBuf,
    /// The generated program, if `shader` is a reduced one.
    original: Option<Shader>,
}

/// A failure, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    stage: &'a str,
    kind: &'a str,
    failure: String,
    message: &'a str,
    profile: String,
    seed: u64,
    instructions: usize,
    spirv_instructions: usize,
    reduced: bool,
    folder: String,
}

impl Written {
    fn row(&self) -> Row<'_> {
        Row {
            stage: self.found.failure.stage(),
            kind: self.found.failure.kind(),
            failure: self.found.failure.to_string(),
            message: &self.found.message,
            profile: self.origin.0.to_string(),
            seed: self.origin.1,
            instructions: self.shader.instruction_count(),
            spirv_instructions: spirv_size(&self.shader),
            reduced: self.original.is_some(),
            folder: self.folder.display().to_string(),
        }
    }

    fn write(&mut self, request: &Request<'_>) -> Result<(), Unwritten> {
        let report = Report {
            compiler: request.compiler,
            gpu: request.target.name,
            origin: self.origin,
            shader: &self.shader,
            original: self.original.as_ref(),
            found: &self.found,
        };
        self.folder = report.write(request.failures).map_err(|cause| Unwritten::new(request.failures, cause))?;
        Ok(())
    }
}

/// `spirv-val`, if it is installed.
fn validator() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("spirv-val")).find(|file| file.is_file())
}

/// Runs the campaign, reduces its findings, and prints the results.
///
/// # Errors
/// If the compiler cannot be started, or something cannot be written.
pub fn run(request: &Request<'_>, format: Format) -> Result<Exit, Failure> {
    let interrupted = interrupt::flag();
    exit::try_folder(request.failures)?;
    bundle::clean(request.failures).map_err(|error| format!("{}: {error}", request.failures.display()))?;
    let temporary = Temporary::new("compiler")?;
    let validator = validator();
    output::json("campaign", &serde_json::json!({ "seed": request.seed, "first": request.first }));
    output::line(&format!("seed {}", request.seed));
    let settings = Settings::new(request.engines, request.runs, 1);
    let settings = Settings { fuel: request.fuel.unwrap_or(settings.fuel), ..settings };
    let is_driver = matches!(request.compiler, Compiler::Driver(_));
    let rules = LogRules {
        target: request.target,
        settings,
        end_to_end: (is_driver && !request.every_boundary).then_some(request.runs),
        time: None,
        refusals: request.refusals,
        validator: validator.as_deref(),
    };
    if let (Compiler::Driver(drivers), false) = (request.compiler, request.variants_of.is_empty()) {
        return variants(request, drivers, rules, temporary.path(), validator.is_some());
    }
    let campaign = Campaign {
        compiler: request.compiler,
        rules,
        profiles: request.profiles.clone(),
        course: course(request, temporary.path()),
    };
    let (counts, mut all, mut lost) = campaign_of(request, &campaign, format)?;
    print(&counts, validator.is_some());
    if let Some((time, limit)) = request.reduce.filter(|_| lost.is_none()) {
        let reduction = Reduction {
            compiler: request.compiler,
            rules: &rules,
            jobs: request.jobs,
            candidates: CANDIDATES,
            time: None,
            folder: temporary.path(),
            stop: interrupted,
        };
        lost = reduce(request, reduction, &mut all, time, limit)?;
    }
    groups(&all, request.failures);
    output::summary(&counts.summary);
    for (number, pass) in &counts.wrong_proofs {
        output::problem(&format!("program {number}: {pass} was proved, and a run refutes it"));
    }
    let nothing = counts.summary.proved + counts.summary.tested + counts.summary.refuted == 0;
    let exit = Exit::of_all([
        engines::written(request.engines),
        Exit::Nothing.when(nothing),
        Exit::Unmet.when(counts.summary.unknown > 0),
        Exit::Refuted.when(counts.failures > 0),
        Exit::Unsound.when(!counts.wrong_proofs.is_empty()),
    ]);
    if let Some(lost) = lost {
        output::error(&lost);
        return Ok(exit.max(Exit::Unwritten));
    }
    Ok(exit)
}

/// The .spv files of paths: files, and all below folders, in the order of their names.
fn modules(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
            entries.push(entry.map_err(|error| format!("{}: {error}", path.display()))?.path());
        }
        entries.sort();
        entries.retain(|entry| entry.is_dir() || entry.extension().is_some_and(|extension| extension == "spv"));
        files.extend(modules(&entries)?);
    }
    Ok(files)
}

/// The programs of a campaign, and its limits.
fn course(request: &Request<'_>, folder: &Path) -> Course {
    Course {
        seed: request.seed,
        first: request.first,
        programs: request.programs,
        time: request.time,
        jobs: request.jobs,
        keep_going: request.keep_going,
        folder: folder.to_owned(),
    }
}

/// Runs a campaign with mutated modules.
fn variants(
    request: &Request<'_>,
    drivers: &Drivers,
    rules: LogRules<'_>,
    folder: &Path,
    validated: bool,
) -> Result<Exit, Failure> {
    let mut originals = Vec::new();
    for path in modules(request.variants_of)? {
        let name = path.display().to_string();
        match Original::read(path, rules.validator) {
            Ok(original) => originals.push(original),
            Err(why) => output::note(&format!("{name}: left out: {why}")),
        }
    }
    if originals.is_empty() {
        return Err("--variants-of: found no module, expected .spv files".into());
    }
    let campaign = VariantCampaign { drivers, rules, originals: &originals, course: course(request, folder) };
    let bar = output::campaign_bar(request.programs)?;
    let mut lost = None;
    let mut groups: BTreeMap<external::Failure, usize> = BTreeMap::new();
    let mut found = |finding: &VariantFinding<'_>| {
        *groups.entry(finding.failure().clone()).or_default() += 1;
        let (number, failure, message) = (finding.number, finding.failure(), &finding.found.message);
        let line = format!("variant {number} of {}: {failure}: {message}", finding.original.path.display());
        bar.suspend(|| output::line(&line));
        match write_variant(finding, request.failures, drivers, request.target.name) {
            Ok(path) => bar.suspend(|| output::line(&format!("  written to {}", path.display()))),
            Err(cause) => {
                interrupt::flag().store(true, Ordering::Relaxed);
                lost.get_or_insert(Unwritten::new(request.failures, cause));
            }
        }
    };
    let mut progress = |counts: &Counts| {
        bar.set_position(counts.summary.programs);
        bar.set_message(format!("{} boundaries, {} failures", counts.summary.checks, counts.failures));
    };
    let counts = campaign.run(interrupt::flag(), &mut found, &mut progress);
    bar.finish_and_clear();
    let counts = counts?;
    print(&counts, validated);
    for (failure, count) in &groups {
        output::line(&format!("{count:>5}  {failure}"));
    }
    output::summary(&counts.summary);
    let nothing = counts.summary.proved + counts.summary.tested + counts.summary.refuted == 0;
    let exit = Exit::of_all([
        Exit::Nothing.when(nothing),
        Exit::Unmet.when(counts.summary.unknown > 0),
        Exit::Refuted.when(counts.failures > 0),
        Exit::Unsound.when(!counts.wrong_proofs.is_empty()),
    ]);
    match lost {
        Some(lost) => {
            output::error(&lost);
            Ok(exit.max(Exit::Unwritten))
        }
        None => Ok(exit),
    }
}

/// Runs the campaign: the counts, the findings, and the files that could not be written. A finding is printed only
/// after its folder has been written.
fn campaign_of(
    request: &Request<'_>,
    campaign: &Campaign<'_>,
    format: Format,
) -> Result<(Counts, Vec<Written>, Option<Unwritten>), Failure> {
    let interrupted = interrupt::flag();
    let bar = output::campaign_bar(request.programs)?;
    let mut all: Vec<Written> = Vec::new();
    let mut lost = None;
    let mut found = |finding: &Finding<'_>| {
        let Finding { number, profile, seed, shader, found } = *finding;
        let folder = PathBuf::new();
        let mut written =
            Written { origin: (profile, seed), shader: shader.clone(), found: found.clone(), folder, original: None };
        let Found { failure, message, .. } = &written.found;
        let failure = failure.to_string();
        // For a crash the message is the failure itself.
        let said = if failure == *message { failure } else { format!("{failure}: {message}") };
        let line = format!("program {number} ({profile}, seed {seed}): {said}");
        if let Err(error) = written.write(request) {
            bar.suspend(|| output::line(&line));
            // The disk may be full: later folders would fail as well.
            interrupted.store(true, Ordering::Relaxed);
            lost.get_or_insert(error);
            return;
        }
        // The log is in the folder.
        written.found.log = String::new();
        bar.suspend(|| match format {
            Format::Json => output::json("compiler-failure", &written.row()),
            _ => {
                output::line(&line);
                output::line(&format!("  written to {}", written.folder.display()));
            }
        });
        all.push(written);
    };
    let so_far = Arc::new(Mutex::new((Summary::default(), 0)));
    let words = Arc::clone(&so_far);
    interrupt::last_words(move || {
        let (mut summary, failures) = words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        summary.interrupted = true;
        output::summary(&summary);
        Exit::Interrupted.max(Exit::Refuted.when(failures > 0))
    });
    let mut progress = |counts: &Counts| {
        *so_far.lock().unwrap_or_else(PoisonError::into_inner) = (counts.summary.clone(), counts.failures);
        bar.set_position(counts.summary.programs);
        bar.set_message(format!("{} boundaries, {} failures", counts.summary.checks, counts.failures));
    };
    let counts = campaign.run(interrupted, &mut found, &mut progress);
    bar.finish_and_clear();
    Ok((counts?, all, lost))
}

/// Reduces up to `limit` failures of each kind, the smallest programs first, and writes their folders anew.
fn reduce(
    request: &Request<'_>,
    mut reduction: Reduction<'_>,
    all: &mut [Written],
    time: Option<Duration>,
    limit: usize,
) -> Result<Option<Unwritten>, Failure> {
    let start = Instant::now();
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed}, {msg}")?);
    bar.enable_steady_tick(Duration::from_millis(200));
    all.sort_by_key(|written| written.shader.instruction_count());
    let mut reduced: BTreeMap<external::Failure, usize> = BTreeMap::new();
    for written in all {
        let times = reduced.entry(written.found.failure.clone()).or_default();
        let left = time.map(|time| time.saturating_sub(start.elapsed()));
        if *times >= limit || interrupt::is_set() || left == Some(Duration::ZERO) {
            continue;
        }
        *times += 1;
        reduction.time = left;
        let mut progress = |progress: &ir3_harness::reduce::Progress| {
            bar.set_message(format!(
                "reducing: {} instructions, {} candidates",
                progress.size.instructions, progress.candidates
            ));
        };
        let Some(smaller) = reduction.run(&written.shader, &written.found, &mut progress)? else {
            if !interrupt::is_set() {
                output::note(&format!("{}: it did not fail in the same way again", written.folder.display()));
            }
            continue;
        };
        let original = std::mem::replace(&mut written.shader, smaller.shader);
        written.original = Some(original);
        written.found = smaller.found;
        if let Err(error) = written.write(request) {
            bar.finish_and_clear();
            return Ok(Some(error));
        }
        written.found.log = String::new();
        output::json("compiler-reduced", &written.row());
    }
    bar.finish_and_clear();
    Ok(None)
}

/// Prints the counts of the campaign.
fn print(counts: &Counts, validated: bool) {
    let checked = if validated { ", each checked by spirv-val" } else { "" };
    output::line(&format!(
        "{} programs of {} instructions, {} of them compiled{checked}; {:.1} s of CPU time of ir3-equiv",
        counts.summary.programs, counts.instructions, counts.compiled, counts.summary.seconds
    ));
    for (title, reasons) in [
        ("not expressed in SPIR-V", &counts.no_form),
        ("refused by the compiler", &counts.refused),
        ("unknown", &counts.unknown),
    ] {
        output::reasons(title, reasons);
    }
    let reasons = serde_json::json!({
        "compiled": counts.compiled,
        "instructions": counts.instructions,
        "no_form": counts.no_form,
        "refused": counts.refused,
        "unknown": counts.unknown,
    });
    output::json("compiler", &reasons);
}

/// Prints a table of failures that are alike.
fn groups(all: &[Written], root: &Path) {
    let mut groups: BTreeMap<&external::Failure, Vec<&Written>> = BTreeMap::new();
    for written in all {
        groups.entry(&written.found.failure).or_default().push(written);
    }
    if groups.is_empty() {
        return;
    }
    output::line(&format!("{:>5}  {:>7}  {:>5}  {:>6}  failure", "count", "reduced", "nir", "SPIR-V"));
    for (failure, group) in &groups {
        let smallest = group.iter().min_by_key(|it| (it.original.is_none(), it.shader.instruction_count()));
        let Some(smallest) = smallest else { continue };
        let reduced = group.iter().filter(|it| it.original.is_some()).count();
        let row = smallest.row();
        output::line(&format!(
            "{:>5}  {reduced:>7}  {:>5}  {:>6}  {failure}",
            group.len(),
            row.instructions,
            row.spirv_instructions
        ));
        output::line(&format!("       {}", smallest.folder.display()));
        let group = serde_json::json!({ "count": group.len(), "reduced": reduced, "smallest": row });
        output::json("compiler-group", &group);
    }
    let word = if groups.len() == 1 { "group" } else { "groups" };
    let failures = if all.len() == 1 { "failure" } else { "failures" };
    output::line(&format!("{} {failures} in {} {word}, in {}", all.len(), groups.len(), root.display()));
}
