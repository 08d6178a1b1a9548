//! A watchdog for code that may not terminate.
//!
//! The code under watch runs inside [`watched`], which only counts. A thread looks at the count now and then: if the
//! same call is still running, the CPU time that the process has used since is that of the call. The thread cannot end
//! the call, only the process, so this is for processes that do nothing else (`ir3_harness::guard`).

use cpu_time::ProcessTime;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The number of entries and exits: odd while a call is running.
static EDGES: AtomicU64 = AtomicU64::new(0);

/// The limit of the watchdog, in nanoseconds.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// A call that waits without using CPU time may take this many times the limit.
const PATIENCE: u32 = 30;

/// Counts the exit, after a panic too.
struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        EDGES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs a function under watch. Calls are not nested.
pub fn watched<T>(run: impl FnOnce() -> T) -> T {
    EDGES.fetch_add(1, Ordering::Relaxed);
    let _exit = Exit;
    run()
}

/// Sets the CPU time that one call may take.
pub fn set_limit(limit: Duration) {
    LIMIT.store(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Starts the watchdog of this process: `stop` is called if a call exceeds its limit.
pub fn start(stop: impl Fn() + Send + 'static) {
    thread::spawn(move || {
        let mut seen = (EDGES.load(Ordering::Relaxed), ProcessTime::now(), Instant::now());
        loop {
            let limit = Duration::from_nanos(LIMIT.load(Ordering::Relaxed));
            thread::sleep((limit / 10).clamp(Duration::from_millis(5), Duration::from_millis(100)));
            let edges = EDGES.load(Ordering::Relaxed);
            if edges.is_multiple_of(2) || edges != seen.0 {
                seen = (edges, ProcessTime::now(), Instant::now());
            } else if seen.1.elapsed() > limit || seen.2.elapsed() > limit.saturating_mul(PATIENCE) {
                stop();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_call_that_takes_too_long_is_stopped_and_a_short_one_is_not() {
        let (send, stopped) = mpsc::channel();
        set_limit(Duration::from_millis(40));
        start(move || {
            let _ = send.send(());
        });
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(100) {
            watched(|| ());
        }
        assert!(stopped.try_recv().is_err());
        watched(|| {
            while stopped.try_recv().is_err() {
                assert!(begin.elapsed() < Duration::from_secs(60), "the watchdog does not bark");
            }
        });
    }
}
