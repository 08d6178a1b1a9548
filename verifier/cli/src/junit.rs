//! JUnit's XML, for CI systems: a suite for each program, a case for each boundary and engine.
//!
//! A case that is not a pass is a failure if it is refuted, and an error if it is unknown: neither is a skipped test,
//! which CI systems show as fine.

use ir3_harness::check::Check;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static SUITES: Mutex<Vec<TestSuite>> = Mutex::new(Vec::new());

fn suites() -> MutexGuard<'static, Vec<TestSuite>> {
    SUITES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a row.
pub fn check(check: &Check) {
    let mut status = match check.verdict {
        "proved" | "tested" => TestCaseStatus::success(),
        "refuted" => TestCaseStatus::non_success(NonSuccessKind::Failure),
        _ => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    status.set_type(check.verdict);
    if let Some(reason) = &check.reason {
        status.set_message(reason.as_str());
    }
    let mut case = TestCase::new(format!("{} ({})", check.stage, check.engine), status);
    case.set_classname(check.program.as_str());
    case.set_time(Duration::try_from_secs_f64(check.seconds).unwrap_or_default());
    let name = format!("{} on {}", check.program, check.gpu);
    let mut suites = suites();
    if suites.last().is_none_or(|suite| suite.name.as_str() != name) {
        suites.push(TestSuite::new(name));
    }
    if let Some(suite) = suites.last_mut() {
        suite.add_test_case(case);
    }
}

/// Adds a problem of a program, in addition to its rows.
pub fn problem(program: &str, problem: &str) {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("input");
    status.set_message(problem);
    let mut case = TestCase::new("input", status);
    case.set_classname(program);
    let mut suite = TestSuite::new(program);
    suite.add_test_case(case);
    suites().push(suite);
}

/// The document of all rows so far.
pub fn document() -> String {
    let mut report = Report::new("ir3-equiv");
    report.add_test_suites(suites().drain(..));
    report.to_string().unwrap_or_else(|error| format!("<!-- {error} -->\n"))
}
