//! `run --vulkan` and `fuzz --vulkan`: programs on a device of Vulkan, compared with the interpreter.

use crate::coverage::write_compared;
use crate::exit::{self, Exit, Failure, Unwritten};
use crate::{Format, interrupt, output, values};
use clap::Args;
use ir3_compiler::nir::Shader;
use ir3_compiler::target::Target;
use ir3_harness::reduce::Progress;
use ir3_harness::vulkan::campaign::{Campaign, Counts, Finding, features};
use ir3_harness::vulkan::coverage::Compared;
use ir3_harness::vulkan::mistakes::MISTAKES;
use ir3_harness::vulkan::oracle::{Observation, Verdict, observe};
use ir3_harness::vulkan::reduction;
use ir3_harness::vulkan::second::Second;
use ir3_harness::vulkan::times::Part;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::vulkan::{Device, DeviceError, Library, NoLibrary};
use ir3_report::bundle;
use ir3_report::device::Report;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use ir3_semantics::support::panics::catch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The device.
#[derive(Args)]
#[command(next_help_heading = "A device of Vulkan")]
pub struct VulkanArgs {
    /// Execute programs on a Vulkan device, and compare it with the interpreter (docs/vulkan.md). DEVICE is the path
    /// of a driver or of the loader (`PATH#1` or `PATH#NAME` for another device than the first), the name of a
    /// registered driver (`lvp`, `radeon`, `freedreno`), or a part of the name of a device. Default: lavapipe of
    /// `ci/stock-mesa --lavapipe` or of the system, then the loader.
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    vulkan: Option<String>,
    /// An execution that takes longer counts as a hang. On llvmpipe the first one includes compilation.
    #[arg(long, value_name = "T", default_value = "60s", value_parser = values::time)]
    device_time: Duration,
    /// Begin with programs of one operation each: all operations that SPIR-V has a form for, also those that the
    /// generator does not make.
    #[arg(long, requires = "vulkan")]
    sweep: bool,
    /// Execute programs of failures on this device, too: their reports name the sides that agree.
    #[arg(long, value_name = "DEVICE", requires = "vulkan")]
    second_device: Option<String>,
    /// Find mistakes that are planted in the interpreter, one after the other: all of them, or that of a name.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "vulkan", hide = true)]
    mistakes: Option<String>,
}

impl VulkanArgs {
    /// The driver, if programs are executed on a device.
    pub fn library(&self) -> Result<Option<Library>, NoLibrary> {
        self.vulkan.as_deref().map(|given| Library::find(Some(given))).transpose()
    }

    /// The second device.
    fn second(&self) -> Result<Option<Device>, DeviceError> {
        let given = self.second_device.as_deref();
        given.map(|given| Device::open(&Library::find(Some(given))?, self.device_time)).transpose()
    }

    fn option(&self) -> &str {
        self.vulkan.as_deref().unwrap_or_default()
    }
}

/// The candidates of a reduction.
const CANDIDATES: u64 = 3000;

/// The exit of a comparison.
fn exit_of(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Equal | Verdict::Known(..) => Exit::Passed,
        Verdict::Differs(..) | Verdict::Fault(..) => Exit::Refuted,
        Verdict::Refused(..) | Verdict::Excluded(_) | Verdict::NothingCompared => Exit::Unmet,
    }
}

/// Compares programs on a device, writes those that differ, and prints how many have which verdict, if there are
/// several. A program is its name and its nir, or the reason why it was not read.
///
/// # Errors
/// If there is no device, or it is gone.
pub fn run(
    options: &VulkanArgs,
    library: &Library,
    programs: impl Iterator<Item = (String, Result<Shader, String>)>,
    env: &Env,
    failures: Option<&Path>,
) -> Result<Exit, Failure> {
    let mut device = Device::open(library, options.device_time)?;
    let mut other = options.second()?;
    output::line(device.name());
    let (mut scratch, mut exit) = (Scratch::default(), Exit::Passed);
    let (mut verdicts, mut count) = (BTreeMap::new(), 0);
    for (name, shader) in programs {
        if interrupt::is_set() {
            return Ok(Exit::Interrupted);
        }
        count += 1;
        let shader = match shader {
            Ok(shader) => shader,
            Err(why) => {
                let line = why.lines().next().unwrap_or_default();
                output::problem(&format!("{name}: {why}"));
                *verdicts
                    .entry(format!("not read: {}", line.replace(&name, "").trim_start_matches(": ")))
                    .or_default() += 1;
                exit = exit.max(Exit::Bad);
                continue;
            }
        };
        let seen = match catch(|| observe(&mut device, &shader, env, None, &mut scratch)) {
            Ok(seen) => seen?,
            Err(panic) => Observation::panicked(&format!("{}: {}", panic.place, panic.message)),
        };
        print_one(&name, &seen);
        let kind = match &seen.verdict {
            Verdict::Excluded(_) | Verdict::Refused(..) | Verdict::Fault(..) | Verdict::NothingCompared => {
                seen.verdict.to_string()
            }
            Verdict::Known(name, _) => format!("known: {name}"),
            verdict => verdict.name().to_owned(),
        };
        *verdicts.entry(format!("{}: {kind}", shader.stage)).or_default() += 1;
        exit = exit.max(exit_of(&seen.verdict));
        let second = second_of(other.as_mut(), &shader, env, &seen.verdict)?;
        if let Some(root) = failures.filter(|_| seen.verdict.is_failure()) {
            let report = Report {
                device: device.name(),
                option: options.option(),
                origin: None,
                shader: &shader,
                original: None,
                env,
                seen: &seen,
                second: second.as_ref(),
            };
            let folder = report.write(root).map_err(|cause| Unwritten::new(root, cause))?;
            output::line(&format!("  written to {}", folder.display()));
        }
    }
    if count > 1 {
        output::reasons(&format!("{count} programs"), &verdicts);
    }
    Ok(exit)
}

/// The result of a second device for a failure, which is printed.
fn second_of(
    device: Option<&mut Device>,
    shader: &Shader,
    env: &Env,
    verdict: &Verdict,
) -> Result<Option<Second>, DeviceError> {
    let Some(device) = device.filter(|_| verdict.is_failure()) else { return Ok(None) };
    let second = Second::of(device, shader, env, verdict)?;
    output::line(&format!("  on {}: {}", second.device, second.agreement));
    Ok(Some(second))
}

fn print_one(name: &str, seen: &Observation) {
    output::line(&format!("{name}: {}", seen.verdict));
    let verdict = if let Verdict::Known(_, verdict) = &seen.verdict { verdict } else { &seen.verdict };
    if let Verdict::Differs(_, list) = verdict {
        list.iter().skip(1).take(15).for_each(|difference| output::line(&format!("  {difference}")));
    }
    let words = &seen.words;
    output::line(&format!(
        "  words stored: {} compared exactly, {} in some bits, {} open of which {} agree",
        words.exact,
        words.partly,
        words.open + words.agreed,
        words.agreed
    ));
    let list = |names: Vec<&str>| names.join(", ");
    if !seen.freedoms.is_empty() {
        output::line(&format!("  open: {}", list(seen.freedoms.iter().copied().collect())));
    }
    if !seen.replaced.is_empty() {
        output::line(&format!("  replaced: {}", list(seen.replaced.iter().map(String::as_str).collect())));
    }
    let object = serde_json::json!({
        "program": name,
        "verdict": seen.verdict.name(),
        "message": seen.verdict.to_string(),
        "exact": words.exact,
        "partly": words.partly,
        "agreed": words.agreed,
        "open": words.open,
        "freedoms": seen.freedoms,
        "replaced": seen.replaced,
    });
    output::json("vulkan", &object);
}

/// The options of a campaign.
pub struct Request<'a> {
    pub library: &'a Library,
    pub options: &'a VulkanArgs,
    pub gpu: Option<Target>,
    pub seed: u64,
    pub profiles: Vec<Profile>,
    pub first: u64,
    pub programs: Option<u64>,
    pub time: Option<Duration>,
    pub jobs: usize,
    pub keep_going: bool,
    /// The time for reductions, and the number of failures that are reduced.
    pub reduce: Option<(Option<Duration>, usize)>,
    pub failures: &'a Path,
    /// The record of comparisons on devices, and its file.
    pub coverage: Option<(PathBuf, Compared)>,
}

/// A failure that was written.
struct Written {
    origin: (Profile, u64),
    shader: Shader,
    env: Env,
    seen: Observation,
    folder: PathBuf,
    original: Option<Shader>,
    second: Option<Second>,
}

impl Written {
    fn write(&mut self, request: &Request<'_>, device: &str) -> Result<(), Unwritten> {
        let report = Report {
            device,
            option: request.options.option(),
            origin: Some(self.origin),
            shader: &self.shader,
            original: self.original.as_ref(),
            env: &self.env,
            seen: &self.seen,
            second: self.second.as_ref(),
        };
        self.folder = report.write(request.failures).map_err(|cause| Unwritten::new(request.failures, cause))?;
        let mut object = report.json();
        object["folder"] = self.folder.display().to_string().into();
        output::json("vulkan-failure", &object);
        Ok(())
    }
}

/// Runs a campaign, reduces what it finds, and prints all of it.
///
/// # Errors
/// If there is no device, or something cannot be written.
pub fn fuzz(mut request: Request<'_>, format: Format) -> Result<Exit, Failure> {
    let coverage = request.coverage.take();
    let request = &request;
    exit::try_folder(request.failures)?;
    bundle::clean(request.failures).map_err(|error| format!("{}: {error}", request.failures.display()))?;
    // Fails here where there is no device, before anything else.
    let mut device = Device::open(request.library, request.options.device_time)?;
    let name = device.name().to_owned();
    output::json("campaign", &serde_json::json!({ "seed": request.seed, "first": request.first }));
    output::line(&format!("{name}\nseed {}", request.seed));
    let campaign = Campaign {
        library: request.library,
        device_time: request.options.device_time,
        seed: request.seed,
        first: request.first,
        programs: request.programs,
        time: request.time,
        profiles: request.profiles.clone(),
        features: features(Features::of(&request.gpu.or_else(|| Target::by_name("a750").ok()).unwrap_or_default())),
        jobs: request.jobs,
        keep_going: request.keep_going,
        mistake: None,
        sweeps: request.options.sweep,
    };
    if let Some(name) = &request.options.mistakes {
        return plant(campaign, name);
    }
    let start = Instant::now();
    let (counts, mut all, mut lost) = campaign_of(request, &campaign, &name, format)?;
    print(&counts, start.elapsed());
    if let Some((path, mut compared)) = coverage {
        compared.add(&counts);
        write_compared(&path, &compared)?;
    }
    if lost.is_none()
        && let Some(mut other) = request.options.second()?
    {
        for written in &mut all {
            output::line(&written.folder.display().to_string());
            written.second = second_of(Some(&mut other), &written.shader, &written.env, &written.seen.verdict)?;
            if let Err(error) = written.write(request, &name) {
                lost = Some(error);
                break;
            }
        }
    }
    if let Some((time, limit)) = request.reduce.filter(|_| lost.is_none()) {
        all.sort_by_key(|written| written.shader.instruction_count());
        let begin = Instant::now();
        for written in all.iter_mut().take(limit) {
            let over = || time.is_some_and(|time| begin.elapsed() >= time) || interrupt::is_set();
            if over() {
                break;
            }
            let mut goes_on = |_: &Progress| !over();
            let (shader, env, verdict) = (&written.shader, &written.env, &written.seen.verdict);
            let reduced = reduction::reduce(&mut device, shader, env, verdict, CANDIDATES, &mut goes_on)?;
            let Some(reduced) = reduced else {
                output::note(&format!("{}: it did not fail in the same way again", written.folder.display()));
                continue;
            };
            let original = std::mem::replace(&mut written.shader, reduced.shader);
            written.original = Some(original);
            written.seen = reduced.seen;
            if let Err(error) = written.write(request, &name) {
                lost = Some(error);
                break;
            }
            let size = written.shader.instruction_count();
            output::line(&format!(
                "reduced to {size} instructions: {}: {}",
                written.folder.display(),
                written.seen.verdict
            ));
        }
    }
    let exit = Exit::of_all([
        Exit::Nothing.when(counts.compared() == 0),
        Exit::Refuted.when(counts.failures > 0),
        Exit::Interrupted.when(counts.interrupted),
    ]);
    if let Some(lost) = lost {
        output::error(&lost);
        return Ok(exit.max(Exit::Unwritten));
    }
    Ok(exit)
}

/// Runs a campaign for each planted mistake, until it is found.
fn plant(mut campaign: Campaign<'_>, name: &str) -> Result<Exit, Failure> {
    let all = MISTAKES.into_iter().filter(|mistake| name.is_empty() || mistake.name() == name);
    let (mut count, mut found_count, begin) = (0, 0, Instant::now());
    campaign.keep_going = false;
    for mistake in all {
        if interrupt::is_set() {
            break;
        }
        campaign.mistake = Some(mistake);
        let (start, mut at) = (Instant::now(), None);
        let mut found = |finding: &Finding<'_>| at = at.or(Some(finding.number));
        let counts = campaign.run(interrupt::flag(), &mut found, &mut |_| {})?;
        count += 1;
        found_count += usize::from(at.is_some());
        let seconds = start.elapsed().as_secs_f64();
        output::line(&match at {
            Some(number) => format!("{}: found by program {number}, {seconds:.1} s", mistake.name()),
            None => format!("{}: not found in {} programs, {seconds:.1} s", mistake.name(), counts.programs),
        });
    }
    if count == 0 {
        return Err(format!("--mistakes: found `{name}`, which is none").into());
    }
    output::line(&format!("{found_count} of {count} mistakes found in {:.1} s", begin.elapsed().as_secs_f64()));
    Ok(Exit::Unmet.when(found_count < count))
}

fn campaign_of(
    request: &Request<'_>,
    campaign: &Campaign<'_>,
    device: &str,
    format: Format,
) -> Result<(Counts, Vec<Written>, Option<Unwritten>), Failure> {
    let interrupted = interrupt::flag();
    let bar = output::campaign_bar(request.programs)?;
    let (mut all, mut lost) = (Vec::new(), None);
    let mut found = |finding: &Finding<'_>| {
        let mut written = Written {
            origin: (finding.profile, finding.seed),
            shader: finding.shader.clone(),
            env: finding.env.clone(),
            seen: finding.seen.clone(),
            folder: PathBuf::new(),
            original: None,
            second: None,
        };
        let Finding { number, profile, seed, seen, .. } = finding;
        let line = format!("program {number} ({profile}, seed {seed}): {}", seen.verdict);
        let result = bar.suspend(|| written.write(request, device));
        if let Err(error) = result {
            bar.suspend(|| output::line(&line));
            // The disk may be full: later folders would fail as well.
            interrupted.store(true, Ordering::Relaxed);
            lost.get_or_insert(error);
            return;
        }
        if format != Format::Json {
            bar.suspend(|| output::line(&format!("{line}\n  written to {}", written.folder.display())));
        }
        all.push(written);
    };
    let mut progress = |counts: &Counts| {
        bar.set_position(counts.programs);
        bar.set_message(format!("{} compared, {} failures", counts.compared(), counts.failures));
    };
    let counts = campaign.run(interrupted, &mut found, &mut progress);
    bar.finish_and_clear();
    Ok((counts?, all, lost))
}

/// Prints the counts of a campaign.
fn print(counts: &Counts, elapsed: Duration) {
    let share = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
    output::line(&format!(
        "{} programs in {:.1} s: {} equal, {} failures; {:.1} % compared",
        counts.programs,
        elapsed.as_secs_f64(),
        counts.equal,
        counts.failures,
        share(counts.compared(), counts.programs)
    ));
    let seconds = counts.times.all().as_secs_f64();
    let parts = Part::ALL.map(|part| {
        format!("{part} {:.1} %", 100.0 * counts.times.of(part).as_secs_f64() / seconds.max(f64::MIN_POSITIVE))
    });
    output::line(&format!(
        "{seconds:.1} s of CPU time, {:.1} programs a second of it: {}",
        counts.programs as f64 / seconds.max(f64::MIN_POSITIVE),
        parts.join(", ")
    ));
    let words = &counts.words;
    let all = words.exact + words.partly + words.agreed + words.open;
    output::line(&format!(
        "{all} words stored: {:.1} % compared exactly, {:.1} % in some bits, {:.1} % open and as the interpreter has them, {:.1} % open",
        share(words.exact, all),
        share(words.partly, all),
        share(words.agreed, all),
        share(words.open, all)
    ));
    let stages: Vec<String> = counts.stages.iter().map(|(stage, count)| format!("{count} {stage}")).collect();
    output::line(&format!("equal, by stage: {}", stages.join(", ")));
    let shown = counts.depended_on.intersection(&counts.generated).count();
    let missing: Vec<&str> = counts.generated.difference(&counts.depended_on).copied().collect();
    output::line(&format!(
        "operations: compared words depend on {shown} of {} that generated programs have ({:.1} %); shapes of control flow: {} of {} ({:.1} %)",
        counts.generated.len(),
        share(shown as u64, counts.generated.len() as u64),
        counts.shapes.len(),
        counts.generated_shapes.len(),
        share(counts.shapes.len() as u64, counts.generated_shapes.len() as u64)
    ));
    if !missing.is_empty() {
        output::line(&format!("  no compared word depends on: {}", missing.join(", ")));
    }
    for (title, reasons) in [
        ("known bugs of the device (docs/findings.md)", &counts.known),
        ("not executed", &counts.excluded),
        ("not executed by the device", &counts.refused),
        ("left open by the specification", &counts.freedoms),
        ("replaced", &counts.replaced),
    ] {
        output::reasons(title, reasons);
    }
    if counts.open > 0 {
        output::line(&format!("{:6}  nothing compared: all that is stored is open", counts.open));
    }
    let map = |map: &BTreeMap<String, u64>| serde_json::json!(map);
    let times: BTreeMap<&str, f64> =
        Part::ALL.into_iter().map(|part| (part.name(), counts.times.of(part).as_secs_f64())).collect();
    let object = serde_json::json!({
        "device": counts.device,
        "programs": counts.programs,
        "equal": counts.equal,
        "failures": counts.failures,
        "known": map(&counts.known),
        "times": times,
        "nothing_compared": counts.open,
        "exact": words.exact,
        "partly": words.partly,
        "agreed": words.agreed,
        "open": words.open,
        "excluded": map(&counts.excluded),
        "refused": map(&counts.refused),
        "freedoms": map(&counts.freedoms),
        "replaced": map(&counts.replaced),
        "operations": map(&counts.operations),
        "stages": map(&counts.stages),
        "depended_on": counts.depended_on,
        "not_depended_on": missing,
        "shapes": counts.shapes,
        "shapes_not_compared": counts.generated_shapes.difference(&counts.shapes).collect::<Vec<_>>(),
    });
    output::json("vulkan-campaign", &object);
}
