//! Generated programs on a device, in several threads, each with a process of its own.
//!
//! Program `i` of a campaign is a function of the campaign's seed, `i`, and the properties of the device.

use super::dependence::{depended_on, operations};
use super::mistakes::Mistake;
use super::oracle::{Observation, Verdict, observe};
use super::times::{Part, Stopwatch, Times};
use super::words::WordCounts;
use ir3_compiler::nir::{Shader, Stage};
use ir3_programs::coverage::{self, Cell, Family};
use ir3_programs::generator::{self, Features, Profile};
use ir3_programs::seeds::{ProgramEnvs, program_seed};
use ir3_programs::vulkan::{Device, DeviceError, Library, sweep};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::threads;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The parameters of a campaign.
pub struct Campaign<'a> {
    /// The driver.
    pub library: &'a Library,
    /// The time of an execution.
    pub device_time: Duration,
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the first program.
    pub first: u64,
    /// Stop after this number of programs.
    pub programs: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// The profiles, taken in turn.
    pub profiles: Vec<Profile>,
    /// The features that programs may have.
    pub features: Features,
    /// The number of threads.
    pub jobs: usize,
    /// Go on after a failure.
    pub keep_going: bool,
    /// A mistake in the interpreter.
    pub mistake: Option<Mistake>,
    /// The first programs are of one operation each.
    pub sweeps: bool,
}

/// The counts of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The device.
    pub device: String,
    /// Programs.
    pub programs: u64,
    /// Programs whose words agree.
    pub equal: u64,
    /// Programs that differ, or whose execution is a fault of the device.
    pub failures: u64,
    /// Programs that differ as known bugs of the device make them, by bug.
    pub known: BTreeMap<String, u64>,
    /// Programs that the device executed, but that store no word that can be compared.
    pub open: u64,
    /// Programs that the device did not execute, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Programs that were not executed, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// The words that were stored.
    pub words: WordCounts,
    /// Programs by what is left open in them.
    pub freedoms: BTreeMap<String, u64>,
    /// Programs by the operations that were replaced.
    pub replaced: BTreeMap<String, u64>,
    /// Programs that agree, by their stage.
    pub stages: BTreeMap<String, u64>,
    /// Programs that agree, by the operations of nir that they have.
    pub operations: BTreeMap<String, u64>,
    /// Those of the operations that a compared word was shown to depend on, in the interpreter.
    pub depended_on: BTreeSet<&'static str>,
    /// The operations of the generated programs: each has a form in SPIR-V.
    pub generated: BTreeSet<&'static str>,
    /// Shapes of control flow in programs that agree.
    pub shapes: BTreeSet<String>,
    /// Shapes of control flow in the generated programs.
    pub generated_shapes: BTreeSet<String>,
    /// The CPU time of the parts of all comparisons.
    pub times: Times,
    /// The campaign was interrupted.
    pub interrupted: bool,
}

impl Counts {
    fn count(&mut self, shader: &Shader, seen: &Observation) {
        let add = |map: &mut BTreeMap<String, u64>, key: &str| *map.entry(key.to_owned()).or_default() += 1;
        self.programs += 1;
        self.generated.extend(operations(shader));
        shapes(shader, &mut self.generated_shapes);
        match &seen.verdict {
            Verdict::Equal => {
                self.equal += 1;
                if let Some((shader, _)) = seen.prepared.as_deref() {
                    add(&mut self.stages, &shader.stage.to_string());
                    operations(shader).into_iter().for_each(|name| add(&mut self.operations, name));
                    shapes(shader, &mut self.shapes);
                }
            }
            Verdict::Differs(..) | Verdict::Fault(..) => self.failures += 1,
            Verdict::Known(name, _) => add(&mut self.known, name),
            Verdict::NothingCompared => self.open += 1,
            Verdict::Refused(kind, why) => add(&mut self.refused, &format!("{kind}: {why}")),
            Verdict::Excluded(why) => add(&mut self.excluded, why),
        }
        seen.freedoms.iter().for_each(|name| add(&mut self.freedoms, name));
        seen.replaced.iter().for_each(|name| add(&mut self.replaced, name));
        self.times.add(&seen.times);
        self.words.exact += seen.words.exact;
        self.words.partly += seen.words.partly;
        self.words.agreed += seen.words.agreed;
        self.words.open += seen.words.open;
    }

    /// The programs that were compared.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.equal + self.failures + self.known.values().sum::<u64>()
    }
}

/// Adds the shapes of the control flow of a program.
fn shapes(shader: &Shader, to: &mut BTreeSet<String>) {
    let mut cells: BTreeSet<Cell> = BTreeSet::new();
    coverage::of_shader(shader, |cell| {
        cells.insert(cell);
    });
    let names = control_names();
    to.extend(cells.iter().filter_map(|cell| names.get(cell).cloned()));
}

/// The names of the cells of control flow.
fn control_names() -> &'static BTreeMap<Cell, String> {
    static NAMES: OnceLock<BTreeMap<Cell, String>> = OnceLock::new();
    NAMES.get_or_init(|| Family::Control.cells().collect())
}

/// Programs in which an operation was not shown to matter, after which it is tried no more.
const TRIES: u64 = 400;

/// A program that fails.
pub struct Finding<'a> {
    /// The number of the program.
    pub number: u64,
    /// Its profile.
    pub profile: Profile,
    /// The seed that makes it.
    pub seed: u64,
    /// The program.
    pub shader: &'a Shader,
    /// The environment, before it is that of the device.
    pub env: &'a Env,
    /// The comparison.
    pub seen: &'a Observation,
}

/// The features of generated programs for a device: what has a meaning there and here.
#[must_use]
pub const fn features(of_gpu: Features) -> Features {
    Features { global: false, ..of_gpu.for_driver() }
}

impl Campaign<'_> {
    /// The program of a number, and its environment.
    fn program(&self, number: u64) -> (Profile, u64, Shader, Env) {
        let profile = self.profiles[(number % self.profiles.len() as u64) as usize];
        let seed = program_seed(self.seed, number);
        let swept =
            usize::try_from(number).ok().filter(|_| self.sweeps).and_then(|number| sweep::programs().get(number));
        if let Some(shader) = swept {
            let env = ProgramEnvs::new(shader, seed).env(0);
            return (Profile::Operations, seed, shader.clone(), env);
        }
        let mut shader = generator::from_seed(seed, profile, self.features).shader;
        if !matches!(shader.stage, Stage::Compute | Stage::Vertex | Stage::Fragment) {
            let features = Features { only_compute: true, ..self.features };
            shader = generator::from_seed(seed, profile, features).shader;
        }
        let env = ProgramEnvs::new(&shader, seed).env(0);
        (profile, seed, shader, env)
    }

    /// The operations of a program that agrees for which no comparison was shown to depend on them.
    fn unshown(&self, seen: &Observation, counts: &Counts) -> BTreeSet<&'static str> {
        let (Verdict::Equal, Some((shader, _)), None) = (&seen.verdict, seen.prepared.as_deref(), self.mistake) else {
            return BTreeSet::new();
        };
        let is_open = |name: &&'static str| {
            !counts.depended_on.contains(name) && counts.operations.get(*name).is_none_or(|&count| count < TRIES)
        };
        operations(shader).into_iter().filter(is_open).collect()
    }

    /// Runs the campaign. `found` is called for each failure as soon as there is one, `progress` now and then; both
    /// from worker threads, one at a time. `interrupted` stops it early.
    ///
    /// # Errors
    /// If there is no device, or it is gone.
    pub fn run(
        &self,
        interrupted: &AtomicBool,
        found: &mut (dyn FnMut(&Finding<'_>) + Send),
        progress: &mut (dyn FnMut(&Counts) + Send),
    ) -> Result<Counts, DeviceError> {
        let (next, stop, start) = (AtomicU64::new(self.first), AtomicBool::new(false), Instant::now());
        let shared = Mutex::new((Counts::default(), found, progress, None));
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let number = || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let over = self.programs.is_some_and(|count| number - self.first >= count)
                || self.time.is_some_and(|time| start.elapsed() >= time)
                || interrupted.load(Ordering::Relaxed)
                || stop.load(Ordering::Relaxed);
            (!over).then_some(number)
        };
        let work = || -> Result<(), DeviceError> {
            let mut device = Device::open(self.library, self.device_time)?;
            lock().0.device = device.name().to_owned();
            let (mut scratch, mut last) = (Scratch::default(), Instant::now());
            while let Some(number) = number() {
                let (mut times, mut watch) = (Times::default(), Stopwatch::start());
                let (profile, seed, shader, env) = self.program(number);
                watch.stop(&mut times, Part::Generation);
                let seen = match catch(|| observe(&mut device, &shader, &env, self.mistake.as_ref(), &mut scratch)) {
                    Ok(seen) => seen?,
                    Err(panic) => Observation::panicked(&format!("{}: {}", panic.place, panic.message)),
                };
                let seen = if self.mistake.is_some() && seen.verdict.is_failure() {
                    let without = observe(&mut device, &shader, &env, None, &mut scratch)?;
                    if without.verdict.is_failure() || matches!(without.verdict, Verdict::Known(..)) {
                        Observation::excluded("a difference without the mistake")
                    } else {
                        seen
                    }
                } else {
                    seen
                };
                let mut watch = Stopwatch::start();
                let unshown = self.unshown(&seen, &lock().0);
                let shown = match seen.prepared.as_deref() {
                    Some((shader, env)) if !unshown.is_empty() => depended_on(shader, env, &unshown, &mut scratch),
                    _ => BTreeSet::new(),
                };
                watch.stop(&mut times, Part::Dependence);
                let mut shared = lock();
                shared.0.times.add(&times);
                shared.0.count(&shader, &seen);
                shared.0.depended_on.extend(shown);
                if seen.verdict.is_failure() {
                    (shared.1)(&Finding { number, profile, seed, shader: &shader, env: &env, seen: &seen });
                    stop.fetch_or(!self.keep_going, Ordering::Relaxed);
                }
                if last.elapsed() > Duration::from_millis(100) {
                    last = Instant::now();
                    let (counts, _, progress, _) = &mut *shared;
                    progress(counts);
                }
            }
            Ok(())
        };
        threads::run(self.jobs, || {
            if let Err(error) = work() {
                lock().3.get_or_insert(error);
                stop.store(true, Ordering::Relaxed);
            }
        });
        let (mut counts, _, progress, error) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        counts.interrupted = interrupted.load(Ordering::Relaxed);
        progress(&counts);
        error.map_or(Ok(counts), Err)
    }
}
