//! Engines asked about many cases, by several threads.

use crate::harness::check::{Answer, Engines};
use crate::programs::Case;
use crate::support::threads;
use ir3_compiler::target::Target;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Asks engines about each case. Cases are made one after the other and come to `each` in any order; the number is that in the series. An
/// interrupted run still asks about the cases that were made.
pub fn ask_all<C: Case>(
    cases: impl Iterator<Item = C> + Send,
    machine: &Target,
    engines: &Engines,
    jobs: usize,
    interrupted: &AtomicBool,
    each: &mut (dyn FnMut(u64, &C, &[Answer]) + Send),
) {
    let each = Mutex::new(each);
    threads::for_each(jobs, cases, interrupted, |number, case| {
        let envs = case.envs();
        let answers = engines.ask(&case.question(machine, &envs));
        (each.lock().unwrap_or_else(std::sync::PoisonError::into_inner))(number, &case, &answers);
    });
}
