//! Work on several threads.
//!
//! A thread takes the next item when it has finished one. Results do not depend on the number of threads if the work on
//! an item does not depend on other items.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

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

/// Calls a function for each item and its number, until `stop` is set. The iterator itself is advanced by one thread at
/// a time.
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

/// Works on items on several threads until `stop` is set, and calls `each` on this thread with the results, in the
/// order of the items. Results after an item that was not finished before the stop come last. Ends at the first error
/// of `each`.
///
/// # Errors
/// That of `each`.
pub fn in_order<T, R: Send, E>(
    jobs: usize,
    items: impl Iterator<Item = T> + Send,
    stop: &AtomicBool,
    work: impl Fn(T) -> R + Sync + Send,
    mut each: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let (send, results) = mpsc::channel();
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let failed = &failed;
        scope.spawn(move || {
            let items = items.take_while(|_| !failed.load(Ordering::Relaxed));
            for_each(jobs, items, stop, |number, item| {
                // The receiver is gone after an error.
                let _ = send.send((number, work(item)));
            });
        });
        let (mut next, mut waiting) = (0, BTreeMap::new());
        let put = || {
            for (number, result) in results {
                waiting.insert(number, result);
                while let Some(result) = waiting.remove(&next) {
                    next += 1;
                    each(result)?;
                }
            }
            std::mem::take(&mut waiting).into_values().try_for_each(&mut each)
        };
        let put = put();
        failed.store(put.is_err(), Ordering::Relaxed);
        put
    })
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
    fn results_are_given_in_order() {
        let stop = AtomicBool::new(false);
        for jobs in [1, 7] {
            let mut found = Vec::new();
            let slow = |n: u64| {
                std::thread::sleep(std::time::Duration::from_millis(if n.is_multiple_of(5) { 3 } else { 0 }));
                n * n
            };
            in_order(jobs, 0..50, &stop, slow, |result| {
                found.push(result);
                Ok::<(), ()>(())
            })
            .expect("no error");
            assert_eq!(found, (0..50).map(|n| n * n).collect::<Vec<u64>>());
        }
        let worked = AtomicU64::new(0);
        let work = |n: u64| {
            worked.fetch_add(1, Ordering::Relaxed);
            n
        };
        let result = in_order(2, 0.., &stop, work, |n| if n < 9 { Ok(()) } else { Err(n) });
        assert_eq!(result, Err(9));
        assert!(worked.into_inner() >= 10);
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
