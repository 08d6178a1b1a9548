//! Runs engines on a stream of cases, in several threads.

use ir3_compiler::target::Target;
use ir3_harness::check::{Answer, Engines};
use ir3_programs::Case;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::threads;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Runs engines on each case. Cases are generated in order and passed to `each` in any order, with their number in the
/// stream. Runs have that fuel, if it is given. An interrupted run
/// still finishes the cases that were generated.
pub fn compare_all<C: Case>(
    cases: impl Iterator<Item = C> + Send,
    machine: &Target,
    engines: &Engines,
    jobs: usize,
    fuel: Option<u64>,
    interrupted: &AtomicBool,
    each: &mut (dyn FnMut(u64, &C, &[Answer]) + Send),
) {
    let each = Mutex::new(each);
    threads::for_each(jobs, cases, interrupted, |number, case| {
        let envs = Env::with_fuel(case.envs(), fuel);
        let answers = engines.answers(&case.question(machine, &envs));
        (each.lock().unwrap_or_else(std::sync::PoisonError::into_inner))(number, &case, &answers);
    });
}
