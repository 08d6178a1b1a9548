//! The amount of work of campaigns in tests: a sample in `.ci/run`, all of it in `ci/nightly`.

/// The factor on the number of cases of a sample: `IR3_EFFORT`, or 1.
///
/// # Panics
/// If `IR3_EFFORT` is not a number of 1 or more.
pub fn effort() -> u64 {
    let Ok(text) = std::env::var("IR3_EFFORT") else { return 1 };
    match text.parse() {
        Ok(times) if times > 0 => times,
        _ => panic!("IR3_EFFORT={text}: expected a number of 1 or more"),
    }
}

/// One of so many cases is tested; all of them with more effort.
pub fn one_of(cases: usize) -> usize {
    if effort() > 1 { 1 } else { cases }
}
