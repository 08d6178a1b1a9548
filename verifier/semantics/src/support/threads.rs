//! Work on several threads.
//!
//! A thread takes the next item when it has finished one. Results do not depend on the number of threads if the work on an item does not
//! depend on other items.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of processors: the default number of threads.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs a function on each of several threads, and waits for all.
pub fn run(jobs: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(&work);
        }
    });
}

/// Calls a function for each item and its number, until `stop` is set. The iterator itself is advanced by one thread at a time.
pub fn for_each<T>(
    jobs: usize,
    items: impl Iterator<Item = T> + Send,
    stop: &AtomicBool,
    work: impl Fn(u64, T) + Sync,
) {
    let items = Mutex::new((0u64..).zip(items));
    run(jobs, || {
        while !stop.load(Ordering::Relaxed) {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, item)) = next else { return };
            work(number, item);
        }
    });
}

/// The results of a function for all items, in their order.
pub fn map<T: Sync, R: Send>(jobs: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results = Mutex::new(Vec::with_capacity(items.len()));
    for_each(jobs.min(items.len()), items.iter(), &AtomicBool::new(false), |number, item| {
        let result = work(item);
        results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn results_are_in_order() {
        let items: Vec<u64> = (0..100).collect();
        for jobs in [0, 1, 7] {
            assert_eq!(map(jobs, &items, |n| n * n), items.iter().map(|n| n * n).collect::<Vec<_>>());
        }
        assert!(map(4, &[0u8; 0], |_| ()).is_empty());
    }

    #[test]
    fn a_stop_ends_it() {
        let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        for_each(1, 0.., &stop, |_, n: u64| {
            seen.store(n, Ordering::Relaxed);
            stop.store(n == 5, Ordering::Relaxed);
        });
        assert_eq!(seen.into_inner(), 5);
    }
}
