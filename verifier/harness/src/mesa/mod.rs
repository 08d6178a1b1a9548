//! The passes of the real compiler: each section of a log compared with the one before it.
//!
//! A [`LogShader`] is one variant of a shader: nir, the programs after each pass, the final assembly, its words. Mesa's
//! text leaves out attributes that engines need; [`recover`] takes them from the other sections of the same shader, the
//! same for all of them. Then each boundary is a question to the engines:
//!
//! - nir and the first ir3;
//! - each section and the next one;
//! - the last section and the code of the final assembly;
//! - the code of the assembly and that of the words, if the log has them: the same words;
//! - nir and the final code.
//!
//! The function works on one shader at a time, so that a stream of them needs the memory of one.

pub mod print;
pub mod recover;
mod reserved;
mod sides;
mod statements;

pub use crate::check::{NO_ENGINE, SAME_PROGRAM};
pub use sides::{CODE, Checked, NIR, READER, RefutedPass, Settings, Side, Sides, WHOLE};
pub use statements::not_compared;

use crate::check::{EngineKind, History, Verdict};
use cpu_time::ThreadTime;
use ir3_compiler::target::Target;
use ir3_programs::mesa::shader::LogShader;
use ir3_semantics::environment::env::Env;
use recover::Recovered;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// The name of the boundary from the assembly to the words of the listing.
pub const WORDS: &str = "words";

/// Checks the boundaries of a shader. `each` receives the verdicts, in order.
///
/// An input that refutes one of them is tried at all that are not proved: if it refutes nir and the final code only, it
/// names the pass.
pub fn check_shader<'a>(
    path: &Path,
    shader: &'a LogShader,
    target: &Target,
    settings: &Settings<'_>,
    each: &mut dyn FnMut(Checked<'a>),
) -> Recovered {
    let (sides, recovered) = Sides::of(path, shader, target, settings.seed);
    let boundaries = sides.boundaries();
    let mut history = History::default();
    let mut all: Vec<Checked<'a>> =
        boundaries.iter().map(|&(name, at)| named(name, &sides, at, settings, &mut history)).collect();
    if settings.engines.has(EngineKind::Interpreter) {
        let envs = refuting(&all);
        all.iter_mut().zip(&boundaries).for_each(|(checked, &(_, at))| sides.run_on(checked, at, &envs));
    }
    all.into_iter().for_each(each);
    recovered
}

fn named<'a>(
    name: &str,
    sides: &Sides<'a>,
    at: [usize; 2],
    settings: &Settings<'_>,
    history: &mut History,
) -> Checked<'a> {
    Checked { name: name.to_owned(), ..sides.judge_next(at, settings, history) }
}

/// The most inputs that are tried at other boundaries.
const MOST_REFUTING: usize = 4;

/// The inputs that refute boundaries.
fn refuting(all: &[Checked<'_>]) -> Vec<Env> {
    let envs = all.iter().filter_map(|checked| match &checked.verdict {
        Verdict::Refuted(refutation) => Some(refutation.env.clone()),
        _ => None,
    });
    envs.take(MOST_REFUTING).collect()
}

/// Runs nir and the final code alone, in some environments. `None` if one of them is not there.
pub fn run_whole<'a>(
    path: &Path,
    shader: &'a LogShader,
    target: &Target,
    settings: &Settings<'_>,
    runs: usize,
) -> Option<Checked<'a>> {
    let (sides, _) = Sides::of(path, shader, target, settings.seed);
    let last = sides.all.len().checked_sub(1)?;
    let has_both = sides.all[0].name == NIR && sides.all[last].name == CODE;
    has_both.then(|| Checked { name: WHOLE.to_owned(), ..sides.run([0, last], settings.fuel, runs) })
}

/// Checks the boundaries of a shader, in order, until `each` breaks: briefly, and once the CPU time is used up by runs
/// alone.
pub fn check_shader_within<'a>(
    path: &Path,
    shader: &'a LogShader,
    target: &Target,
    settings: &Settings<'_>,
    time: Duration,
    each: &mut dyn FnMut(Checked<'a>) -> ControlFlow<()>,
) -> Recovered {
    let start = ThreadTime::now();
    let (sides, recovered) = Sides::of(path, shader, target, settings.seed);
    let mut history = History::default();
    for (name, at) in sides.boundaries() {
        let checked = match start.elapsed() < time {
            true => sides.judge_briefly(at, settings, &mut history),
            false => sides.run(at, settings.fuel, settings.runs),
        };
        if each(Checked { name: name.to_owned(), ..checked }).is_break() {
            break;
        }
    }
    recovered
}

/// Checks the boundaries of a shader, in order, until `each` breaks.
pub fn check_shader_until<'a>(
    path: &Path,
    shader: &'a LogShader,
    target: &Target,
    settings: &Settings<'_>,
    each: &mut dyn FnMut(Checked<'a>) -> ControlFlow<()>,
) -> Recovered {
    let (sides, recovered) = Sides::of(path, shader, target, settings.seed);
    let mut history = History::default();
    for (name, at) in sides.boundaries() {
        if each(named(name, &sides, at, settings, &mut history)).is_break() {
            break;
        }
    }
    recovered
}
