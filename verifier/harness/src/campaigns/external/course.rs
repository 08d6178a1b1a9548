//! The loop of a campaign: the numbers of its programs, which threads take in turn until a limit, a failure or an
//! interruption.

use super::campaign::Counts;
use super::command::RunError;
use super::observe::{Found, Observation};
use cpu_time::ThreadTime;
use ir3_semantics::support::threads;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The programs of a campaign, and its limits.
pub struct Course {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the first program.
    pub first: u64,
    /// Stop after this number of programs.
    pub programs: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// The number of threads.
    pub jobs: usize,
    /// Go on after a failure.
    pub keep_going: bool,
    /// A folder for the files that the compiler reads; each thread has one of its own in it.
    pub folder: PathBuf,
}

/// The program of a number, and its observed result.
pub(super) struct Trial<P> {
    /// The program.
    pub program: P,
    /// Its instructions.
    pub instructions: usize,
    /// The observation.
    pub seen: Observation,
}

impl Course {
    /// Tries the programs. `found` is called for each failure as soon as there is one, `progress` now and then; both
    /// from worker threads, one at a time. `interrupted` stops it early.
    ///
    /// # Errors
    /// The first of `attempt`.
    pub(super) fn run<P>(
        &self,
        interrupted: &AtomicBool,
        attempt: impl Fn(u64, &Path) -> Result<Trial<P>, RunError> + Sync,
        found: &mut (dyn FnMut(u64, &P, &Found) + Send),
        progress: &mut (dyn FnMut(&Counts) + Send),
    ) -> Result<Counts, RunError> {
        let next = AtomicU64::new(self.first);
        let worker = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let start = Instant::now();
        let shared = Mutex::new((Counts::default(), found, progress, None));
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        threads::run(self.jobs, || {
            let folder = self.folder.join(worker.fetch_add(1, Ordering::Relaxed).to_string());
            let mut last = Instant::now();
            let end = || {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = self.programs.is_some_and(|n| number - self.first >= n)
                    || self.time.is_some_and(|time| start.elapsed() >= time)
                    || interrupted.load(Ordering::Relaxed)
                    || stop.load(Ordering::Relaxed);
                (!over).then_some(number)
            };
            while let Some(number) = end() {
                let cpu = ThreadTime::now();
                let Trial { program, instructions, seen } = match attempt(number, &folder) {
                    Ok(trial) => trial,
                    Err(error) => {
                        lock().3.get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                        break;
                    }
                };
                if seen.stopped {
                    break;
                }
                let mut shared = lock();
                shared.0.count(number, instructions, cpu.elapsed().as_secs_f64(), &seen);
                if let Some(found) = &seen.found {
                    (shared.1)(number, &program, found);
                    if !self.keep_going {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                if last.elapsed() > Duration::from_millis(100) {
                    last = Instant::now();
                    let (counts, _, progress, _) = &mut *shared;
                    progress(counts);
                }
            }
        });
        let (mut counts, _, progress, error) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        counts.summary.interrupted = interrupted.load(Ordering::Relaxed);
        progress(&counts);
        error.map_or(Ok(counts), Err)
    }
}
