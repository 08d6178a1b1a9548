//! Guard against compilations that do not terminate, or exhaust memory.
//!
//! A thread in an endless loop cannot be ended, and a failed allocation ends the process. So a program that may do
//! either is compiled in a process of its own, the *worker*: this program again, with the hidden subcommand `worker`
//! ([`worker`] is its side). It has a limit on its address space, and a watchdog on the CPU time of each stage
//! (`support::watch`). [`probe`] sends it one program; the process is kept for the next one, unless it was ended by
//! this one.
//!
//! Only the program that has [set up](configure) the guard has workers. A library user has none: then [`probe`] returns
//! `None`.

mod process;
pub mod worker;

pub use process::{Process, Verdict};

use ir3_compiler::nir::{self, Shader};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_compiler::words;
use ir3_programs::planted_bugs::{PlantedBug, SharedPlantedBug};
use ir3_semantics::support::random::text_hash;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

words! {
    /// The reason why a compilation was stopped.
    pub enum Stop {
        /// A stage took more CPU time than the limit.
        Time = "out-of-time",
        /// An allocation failed.
        Memory = "out-of-memory",
        /// The stack overflowed.
        Stack = "stack-overflow",
        /// The process ended in another way, such as by a signal.
        Died = "died",
    }
}

impl Stop {
    /// The reason in words.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Time => "it does not terminate within the limit of CPU time",
            Self::Memory => "it needs more memory than the limit",
            Self::Stack => "its stack overflows",
            Self::Died => "its process dies",
        }
    }
}

/// A compilation that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stopped {
    /// The stage that was running.
    pub stage: Stage,
    /// The reason.
    pub stop: Stop,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stop.name(), self.stop.description())
    }
}

/// The limits of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time of one stage.
    pub time: Duration,
    /// Address space of the process, in bytes.
    pub memory: u64,
}

impl Limits {
    /// The limits of a candidate of a reduction: it is a smaller program than the one that reached the limits of the
    /// campaign, and there are hundreds of candidates.
    #[must_use]
    pub fn of_candidate(self) -> Self {
        Self { time: self.time.min(Duration::from_millis(100)), memory: self.memory.min(512 << 20) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(5), memory: 2 << 30 }
    }
}

/// A guard: the program of the workers, and the limits.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The program, which has the subcommand `worker`.
    pub program: PathBuf,
    /// The limits.
    pub limits: Limits,
}

static GUARD: OnceLock<Guard> = OnceLock::new();

/// Sets up the guard of this process. The first call counts.
pub fn configure(guard: Guard) {
    GUARD.get_or_init(|| guard);
}

/// The guard of this process, if it has one.
pub fn guard() -> Option<&'static Guard> {
    GUARD.get()
}

/// Starts a worker without a program, which must exit: later ones that do not start would be taken for failures of the
/// compiler.
///
/// # Errors
/// If it does not, the reason.
pub fn try_start() -> Result<(), String> {
    let Some(Guard { program, limits }) = guard() else { return Ok(()) };
    let setting = Setting { target: Target::default(), options: Options::default(), plant: None, limits: *limits };
    let why = match Process::start(program, &setting.arguments()).map(Process::finish) {
        Ok((Some(0), _)) => return Ok(()),
        Ok((Some(code), log)) => format!("exit code {code}: {}", log.trim()),
        Ok((None, log)) => format!("a signal: {}", log.trim()),
        Err(error) => error.to_string(),
    };
    let memory = limits.memory >> 20;
    Err(format!("a process for the compiler, with {memory} MiB of memory, does not start: {why}"))
}

/// The settings of a worker's compilation.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The GPU.
    pub target: Target,
    /// The compiler options.
    pub options: Options,
    /// The planted bug.
    pub plant: Option<&'static PlantedBug>,
    /// The limits.
    pub limits: Limits,
}

impl Setting {
    /// The setting of a compilation. `None` if a worker cannot do the same: it has no pass of the caller, and no bug
    /// without a name.
    pub fn new(target: Target, options: Options, plant: Option<&SharedPlantedBug>, limits: Limits) -> Option<Self> {
        let plant = match plant {
            None => None,
            Some(SharedPlantedBug::Named(bug)) => Some(*bug),
            Some(SharedPlantedBug::Ir3(_)) => return None,
        };
        options.own_pass.is_none().then_some(Self { target, options, plant, limits })
    }

    /// The arguments of the worker: [`worker::Arguments`] reads them.
    fn arguments(&self) -> Vec<String> {
        let Self { target, options, plant, limits } = self;
        let Options { features, skip, last, registers, allocator, own_pass: _ } = options;
        let features: Vec<&str> = features.iter().map(|feature| feature.name()).collect();
        let mut list = vec![
            "worker".to_owned(),
            target.name.to_owned(),
            features.join(","),
            skip.to_string(),
            last.name().to_owned(),
            registers.to_string(),
            allocator.to_string(),
            limits.memory.to_string(),
        ];
        list.extend(plant.map(|plant| plant.name.to_owned()));
        list
    }
}

/// The programs that were stopped, by a hash of the program and the setting: each costs as much time as the limit is.
static KNOWN: Mutex<BTreeMap<u64, Stopped>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The worker of this thread.
    static WORKER: RefCell<Option<(Setting, Process)>> = const { RefCell::new(None) };
}

/// Compiles a program in a worker. `None` if it terminates, with any result; if there is no guard; or if no worker can
/// be started.
pub fn probe(shader: &Shader, setting: &Setting) -> Option<Stopped> {
    let guard = guard()?;
    let text = nir::text::write(shader);
    let key = text_hash(&format!("{setting:?}\n{text}"));
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&stopped) = known().get(&key) {
        return Some(stopped);
    }
    WORKER.with_borrow_mut(|slot| {
        // A worker has its limit of memory, and everything else but the time, from its start.
        let same = |(known, _): &(Setting, Process)| {
            *known == Setting { limits: Limits { time: known.limits.time, ..setting.limits }, ..setting.clone() }
        };
        if !slot.as_ref().is_some_and(same) {
            *slot = None;
            let process = Process::start(&guard.program, &setting.arguments()).ok()?;
            *slot = Some((setting.clone(), process));
        }
        let (_, process) = slot.as_mut()?;
        match process.compile(&text, setting.limits.time) {
            Verdict::Ends => None,
            Verdict::Stopped(stopped) => {
                *slot = None;
                known().insert(key, stopped);
                Some(stopped)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_written() {
        let options = Options { registers: "min+3".parse().expect("a limit"), ..Options::default() };
        let target = Target::by_name("a540").expect("a GPU");
        let plant = ir3_programs::planted_bugs::by_name("crash").map(PlantedBug::shared);
        let setting = Setting::new(target, options, plant.as_ref(), Limits::default()).expect("a worker can do it");
        let list = setting.arguments();
        let read = worker::Arguments::parse(&list[1..]).expect("arguments");
        assert_eq!((read.target, read.options, read.plant), (target, options, setting.plant));
        assert_eq!(read.memory, Limits::default().memory);
        assert!(worker::Arguments::parse(&list[2..]).is_err());
    }
}
