//! One program on a device and in the interpreter.

use super::known::KnownBug;
use super::mistakes::Mistake;
use super::races::{GroupAccesses, Race, first_race};
use super::times::{Part, Stopwatch, Times};
use super::words::{Difference, WordCounts, compare, decides};
use ir3_compiler::nir::{Shader, Stage};
use ir3_programs::spirv::{Modes, Module};
use ir3_programs::vulkan::{
    Device, DeviceError, Job, Kind, Layout, Preparation, Properties, fragments, groups_of, lanes_of, prepare, vertices,
};
use ir3_semantics::environment::aliases::Aliasing;
use ir3_semantics::environment::device::DeviceRules;
use ir3_semantics::environment::env::{Env, first_lanes};
use ir3_semantics::interp::nir::{DENORMALS, Decoded};
use ir3_semantics::interp::{End, Outcome, Scratch};
use ir3_semantics::support::panics::catch;
use std::collections::BTreeSet;
use std::fmt;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All words agree, in all bits that are compared.
    Equal,
    /// Some words differ: the number of them, and the first ones.
    Differs(usize, Vec<Difference>),
    /// Some words differ, and all of them are as a bug of the device that is known makes them: its name, and the
    /// verdict without it.
    Known(&'static str, Box<Self>),
    /// The driver or the device is at fault.
    Fault(Kind, String),
    /// The device has not executed the program.
    Refused(Kind, String),
    /// The specification gives the program no meaning, or none is known here, so it was not executed.
    Excluded(String),
    /// All that the program stores is open.
    NothingCompared,
}

impl Verdict {
    /// Returns true for what is reported as a failure.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Differs(..) | Self::Fault(..))
    }

    /// Returns true if the other one is a failure of the same kind.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Differs(..), Self::Differs(..)) => true,
            (Self::Fault(a, _), Self::Fault(b, _)) => a == b,
            _ => false,
        }
    }

    /// The kind of the verdict.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs(..) => "differs",
            Self::Known(..) => "known",
            Self::Fault(kind, _) | Self::Refused(kind, _) => kind.name(),
            Self::Excluded(_) => "excluded",
            Self::NothingCompared => "nothing-compared",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Differs(count, first) => {
                let words = if *count == 1 { "word differs" } else { "words differ" };
                write!(f, "{count} {words}")?;
                first.first().map_or(Ok(()), |first| write!(f, ": {first}"))
            }
            Self::Known(name, verdict) => write!(f, "known: {name} (docs/findings.md): {verdict}"),
            Self::Fault(kind, why) | Self::Refused(kind, why) if why.is_empty() => write!(f, "{kind}"),
            Self::Fault(kind, why) | Self::Refused(kind, why) => write!(f, "{kind}: {why}"),
            Self::Excluded(why) => write!(f, "excluded: {why}"),
            Self::NothingCompared => f.write_str("nothing compared: all that is stored is open"),
        }
    }
}

/// A comparison, with its evidence.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The result.
    pub verdict: Verdict,
    /// The words that the program stores.
    pub words: WordCounts,
    /// The names of the freedoms that the specification gives a device in this run.
    pub freedoms: BTreeSet<&'static str>,
    /// The operations that were replaced, as the device or the specification does not have them.
    pub replaced: BTreeSet<String>,
    /// The module, if it was executed.
    pub module: Vec<u32>,
    /// The program and the environment that were compared.
    pub prepared: Option<Box<(Shader, Env)>>,
    /// The CPU time of its parts.
    pub times: Times,
    /// Lanes access one byte without an order.
    races: bool,
}

impl Observation {
    fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            words: WordCounts::default(),
            freedoms: BTreeSet::new(),
            replaced: BTreeSet::new(),
            module: Vec::new(),
            prepared: None,
            times: Times::default(),
            races: false,
        }
    }

    /// The observation of a program on which a part of the harness panics.
    #[must_use]
    pub fn panicked(panic: &str) -> Self {
        Self::excluded(format!("a panic: {panic}"))
    }

    pub(super) fn excluded(why: impl Into<String>) -> Self {
        Self::new(Verdict::Excluded(why.into()))
    }
}

/// The environment of a prepared program on a device: a quad, or workgroups of which it has the first one.
///
/// # Errors
/// If the device has no such environment.
fn environment(
    env: &Env,
    shader: &Shader,
    properties: &Properties,
    layout: Layout,
    groups: u32,
) -> Result<Env, String> {
    let lanes = lanes_of(shader);
    let mut env = env.clone();
    env.aliases = Some(Aliasing::Disjoint);
    env.lanes = Some(first_lanes(lanes));
    env.device = Some(DeviceRules {
        buffer_bytes: layout.buffer_bytes(lanes * groups),
        image_width: layout.image_width(lanes * groups),
        modes: Some(properties.floats),
    });
    for component in 0..3 {
        let count = if component == 0 { groups } else { 1 };
        env.system.insert(format!("WorkgroupId.{component}"), vec![0]);
        env.system.insert(format!("BaseWorkgroupId.{component}"), vec![0]);
        env.system.insert(format!("NumWorkgroups.{component}"), vec![count]);
    }
    env.system.insert("SubgroupSize.0".to_owned(), vec![properties.subgroup_size]);
    env.system.insert("SubgroupId.0".to_owned(), vec![0]);
    match shader.stage {
        Stage::Fragment => fragments::environment(&mut env, shader)?,
        Stage::Vertex => vertices::environment(&mut env, shader),
        _ => {}
    }
    Ok(env)
}

/// Runs a program on the device and in the interpreter, and compares the results, with a planted mistake in the
/// interpreter if given. If lanes race because all of them access one part of each buffer, each gets a part of its own.
/// If nothing can be compared because denormals may be flushed, the program is changed to flush them.
///
/// # Errors
/// If the device is gone.
pub fn observe(
    device: &mut Device,
    shader: &Shader,
    env: &Env,
    mistake: Option<&Mistake>,
    scratch: &mut Scratch,
) -> Result<Observation, DeviceError> {
    let groups = groups_of(shader);
    // Nothing orders the lanes of two workgroups.
    let layout = if groups > 1 { Layout::Private } else { Layout::Shared };
    let mut preparation = Preparation { layout, flushes: false };
    let mut times = Times::default();
    loop {
        let mut watch = Stopwatch::start();
        let prepared = match prepare(shader, device.properties(), preparation) {
            Ok(prepared) => prepared,
            Err(why) => return Ok(Observation::excluded(why)),
        };
        let env = match environment(env, &prepared.shader, device.properties(), preparation.layout, groups) {
            Ok(env) => env,
            Err(why) => return Ok(Observation::excluded(why)),
        };
        watch.stop(&mut times, Part::Preparation);
        let mut seen = observe_prepared(device, &prepared.shader, &env, mistake, scratch)?;
        times.add(&seen.times);
        let is_open = matches!(seen.verdict, Verdict::Excluded(_) | Verdict::NothingCompared);
        match (seen.races, preparation) {
            (true, Preparation { layout: Layout::Shared, .. }) => preparation.layout = Layout::Private,
            (_, Preparation { flushes: false, .. }) if is_open && seen.freedoms.contains(DENORMALS) => {
                preparation.flushes = true;
            }
            _ => {
                seen.times = times;
                seen.replaced = prepared.replaced;
                seen.prepared = Some(Box::new((prepared.shader, env)));
                return Ok(seen);
            }
        }
    }
}

/// Runs a prepared program in the interpreter and on a device, in an environment that has the rules of the device.
fn observe_prepared(
    device: &mut Device,
    shader: &Shader,
    env: &Env,
    mistake: Option<&Mistake>,
    scratch: &mut Scratch,
) -> Result<Observation, DeviceError> {
    let mut times = Times::default();
    let seen = observe_parts(device, shader, env, mistake, scratch, &mut times)?;
    Ok(Observation { times, ..seen })
}

fn observe_parts(
    device: &mut Device,
    shader: &Shader,
    env: &Env,
    mistake: Option<&Mistake>,
    scratch: &mut Scratch,
    times: &mut Times,
) -> Result<Observation, DeviceError> {
    let Some(rules) = env.device else { return Ok(Observation::excluded("an environment without a device")) };
    let mut watch = Stopwatch::start();
    let planted = mistake.map(|mistake| mistake.planted(shader));
    let decoded = match Decoded::new(planted.as_ref().unwrap_or(shader)) {
        Ok(decoded) => decoded,
        Err(why) => return Ok(Observation::excluded(format!("the interpreter does not support {}", why.what))),
    };
    let groups = env.system.get("NumWorkgroups.0").and_then(|count| count.first().copied()).unwrap_or(1);
    let runs = Runs::new(&decoded, shader, env, groups, scratch);
    watch.stop(times, Part::Interpreter);
    let runs = match runs {
        Ok(runs) => runs,
        Err(seen) => return Ok(*seen),
    };
    let floats = rules.modes.unwrap_or_default();
    let modes = Modes { floats, reconverges: device.properties().reconverges, compares_bits: true };
    let module = match catch(|| Module::for_device(shader, modes)) {
        Ok(Ok(module)) => module,
        Ok(Err(why)) => return Ok(Observation::excluded(why.to_string())),
        Err(_) => return Ok(Observation::excluded("a translation to SPIR-V that panics")),
    };
    let job = Job::new(shader, &module, env, groups);
    watch.stop(times, Part::Translation);
    let execution = device.execute(&job)?;
    watch.stop(times, Part::Exchange);
    times.device(&execution);
    let seen = |verdict| Observation {
        freedoms: runs.freedoms.clone(),
        module: job.module.clone(),
        ..Observation::new(verdict)
    };
    match execution.kind {
        Kind::Executed | Kind::Unstable => {}
        kind if kind.is_fault() => {
            let fault = Verdict::Fault(kind, execution.detail);
            let known = KnownBug::of_device(device.name()).find(|bug| kind == Kind::Crashed && bug.crashes(shader));
            return Ok(seen(match known {
                Some(bug) => Verdict::Known(bug.name, Box::new(fault)),
                None => fault,
            }));
        }
        kind => return Ok(seen(Verdict::Refused(kind, execution.detail))),
    }
    let loose = Env { device: Some(rules.loose()), ..env.clone() };
    let loose: Vec<Outcome> = of_groups(&loose, groups).map(|env| decoded.run(&env, env.fuel(), scratch)).collect();
    watch.stop(times, Part::Interpreter);
    let mut contents = execution.words.chunks(job.answer_words().max(1));
    let first = contents.next().unwrap_or_default();
    let (mut verdict, words) = compare(&job, &runs.outcomes, &loose, first);
    if let Some(second) = contents.next() {
        // Open bits may differ each time.
        let (again, _) = compare(&job, &runs.outcomes, &loose, second);
        if again != verdict {
            return Ok(Observation { words, ..seen(Verdict::Fault(Kind::Unstable, execution.detail)) });
        }
    }
    if let Verdict::Differs(count, list) = &verdict
        && mistake.is_none()
        && let Some(bug) = known_bug(device.name(), shader, env, groups, scratch, &|outcomes| {
            let (found, _) = compare(&job, outcomes, outcomes, first);
            *count == list.len() && found == Verdict::Equal && list.iter().all(|it| decides(outcomes, it))
        })
    {
        verdict = Verdict::Known(bug.name, Box::new(verdict));
    }
    watch.stop(times, Part::Comparison);
    Ok(Observation { words, ..seen(verdict) })
}

/// The bug of a device that makes a program do what the device does. `explains` compares the runs of a program with the
/// device.
fn known_bug(
    device: &str,
    shader: &Shader,
    env: &Env,
    groups: u32,
    scratch: &mut Scratch,
    explains: &dyn Fn(&[Outcome]) -> bool,
) -> Option<&'static KnownBug> {
    KnownBug::of_device(device).find(|bug| {
        bug.imitations(shader).iter().any(|imitation| {
            let Ok(decoded) = Decoded::new(imitation) else { return false };
            let run = |env: Env| decoded.run(&env, env.fuel(), scratch);
            let outcomes: Vec<Outcome> = of_groups(env, groups).map(run).collect();
            outcomes.iter().all(|it| it.end == End::Finished) && explains(&outcomes)
        })
    })
}

/// The environments of workgroups.
fn of_groups(env: &Env, groups: u32) -> impl Iterator<Item = Env> + '_ {
    (0..groups).map(|group| {
        let mut env = env.clone();
        env.system.insert("WorkgroupId.0".to_owned(), vec![group]);
        env
    })
}

/// The runs of the workgroups of a dispatch, each from the memory at its beginning, as none accesses what another one
/// writes.
struct Runs {
    outcomes: Vec<Outcome>,
    freedoms: BTreeSet<&'static str>,
}

impl Runs {
    /// Runs a program.
    ///
    /// # Errors
    /// The observation of a program that has no meaning, or none that is known.
    fn new(
        decoded: &Decoded,
        shader: &Shader,
        env: &Env,
        groups: u32,
        scratch: &mut Scratch,
    ) -> Result<Self, Box<Observation>> {
        let lanes = first_lanes(lanes_of(shader));
        let (mut own, mut accesses) = (Self { outcomes: Vec::new(), freedoms: BTreeSet::new() }, Vec::new());
        for env in of_groups(env, groups) {
            let (outcome, trace) = scratch.traced(|scratch| decoded.run(&env, env.fuel(), scratch));
            match &outcome.end {
                End::Finished => {}
                End::OutOfFuel => return Err(Observation::excluded("a run without an end").into()),
                End::Undefined { reason, .. } => {
                    let freedoms = outcome.freedoms;
                    return Err(Observation { freedoms, ..Observation::excluded(reason.to_string()) }.into());
                }
            }
            if shader.stage == Stage::Fragment && fragments::reads_subgroup(shader) && outcome.helpers & lanes != 0 {
                return Err(Observation::excluded("operations on subgroups with helper lanes").into());
            }
            if let Some(race) = first_race(&trace, lanes) {
                let races = matches!(race, Race::Data | Race::AtomicOrder);
                return Err(Observation { races, ..Observation::excluded(race.name()) }.into());
            }
            let of_group = GroupAccesses::of(&trace);
            if shader.stage == Stage::Vertex && of_group.reads_its_writes() {
                // A device may execute a vertex several times.
                return Err(Observation::excluded("vertices that load what they store").into());
            }
            accesses.push(of_group);
            own.freedoms.extend(&outcome.freedoms);
            own.outcomes.push(outcome);
        }
        let pairs = accesses.iter().enumerate();
        let race = pairs.flat_map(|(i, a)| accesses[..i].iter().map(move |b| (a, b))).any(|(a, b)| a.race_with(b));
        if race { Err(Observation::excluded("a data race of two workgroups").into()) } else { Ok(own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::generator::{Features, Profile};
    use ir3_programs::vulkan::Library;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    /// Generated programs on lavapipe, where it is and the worker is built.
    #[test]
    fn generated_programs_agree_with_lavapipe() {
        let device = Library::find(Some("lavapipe"))
            .ok()
            .and_then(|library| Device::open(&library, Duration::from_secs(10)).ok().map(|device| (library, device)));
        let Some((library, device)) = device.filter(|(_, device)| device.name().contains("llvmpipe")) else {
            eprintln!("no lavapipe, or no ir3-vulkan: nothing is tested (`ci/stock-mesa --lavapipe` unpacks it)");
            return;
        };
        drop(device);
        let campaign = super::super::campaign::Campaign {
            library: &library,
            device_time: Duration::from_secs(10),
            seed: 3,
            first: 0,
            programs: Some(60),
            time: None,
            profiles: Profile::ALL.to_vec(),
            features: super::super::campaign::features(Features::ALL),
            jobs: 2,
            keep_going: true,
            mistake: None,
            sweeps: false,
        };
        let mut failures = Vec::new();
        let mut found = |finding: &super::super::campaign::Finding<'_>| failures.push(finding.seen.verdict.to_string());
        let counts = campaign.run(&AtomicBool::new(false), &mut found, &mut |_| {}).expect("a device");
        assert!(failures.is_empty(), "{failures:?}");
        assert!(counts.programs == 60 && counts.equal > 25, "{counts:?}");
    }
}
