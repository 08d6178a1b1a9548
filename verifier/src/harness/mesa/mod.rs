//! The passes of the real compiler: each section of a log compared with the one before it.
//!
//! A [`LogShader`] is one variant of a shader: nir, the programs after each pass, the final assembly, its words. Mesa's text
//! leaves out what engines need; [`recover`] takes it from the other sections of the same shader, the same for all of
//! them. Then each boundary is a question to the engines:
//!
//! - nir and the first ir3;
//! - each section and the next one;
//! - the last section and the code of the final assembly;
//! - the code of the assembly and that of the words, if the log has them: the same words;
//! - nir and the final code.
//!
//! The function works on one shader at a time, so that a stream of them needs the memory of one.

mod boundary;
mod bundle;
mod kills;
pub mod print;
pub mod recover;
mod rerun;
mod reserved;
mod runs;
mod single;
mod ties;

pub use crate::harness::check::NO_ENGINE;
pub use boundary::{Checked, READER, SAME_PROGRAM, Settings};
pub use bundle::{command_again, files as bundle_files, write as write_bundle};
pub use rerun::{Refuted, first_refutation};
pub use single::Boundaries;

use crate::harness::check::{EngineKind, Verdict};
use crate::programs::mesa::shader::LogShader;
use crate::programs::mesa::{Section, Statistics};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use ir3_compiler::target::Target;
use recover::Recovered;
use runs::Environments;
use std::ops::ControlFlow;
use std::path::Path;

/// The name of the first side.
const NIR: &str = "nir";
/// The name of the boundary from nir to the final code.
pub const WHOLE: &str = "nir → final code";
/// The name of the boundary from the last pass to the final code.
pub const CODE: &str = "final code";
/// The name of the boundary from the assembly to the words of the listing.
pub const WORDS: &str = "words";

/// A side of a boundary.
struct Side<'a> {
    /// Its name in messages.
    name: String,
    section: Option<&'a Section>,
    program: Result<Snapshot, String>,
    /// Of final programs: what Mesa prints of the code.
    statistics: Option<Statistics>,
}

/// Checks the boundaries of a shader. `each` receives the verdicts, in order.
///
/// An input that refutes one of them is tried at all that are not proved: if it refutes nir and the final code only, it names the pass.
pub fn check_shader<'a>(
    path: &Path,
    shader: &'a LogShader,
    target: &Target,
    settings: &Settings<'_>,
    each: &mut dyn FnMut(Checked<'a>),
) -> Recovered {
    let recovered = recover::recover(path, shader, target);
    let environments = recovered.nir.as_ref().ok().map(|nir| Environments::of(nir, settings.seed));
    let sides: Vec<Side<'_>> = sides(shader, &recovered).collect();
    let list: Vec<(&str, &Side<'_>, &Side<'_>)> = boundaries(&sides).collect();
    let check = |&(name, before, after): &(&str, &Side<'a>, &Side<'a>)| {
        let checked = boundary::check(before, after, target, settings, environments.as_ref());
        Checked { name: name.to_owned(), ..checked }
    };
    let mut all: Vec<Checked<'a>> = list.iter().map(check).collect();
    let envs = refuting(&all);
    for (checked, (_, before, after)) in all.iter_mut().zip(&list) {
        if !envs.is_empty() && settings.engines.has(EngineKind::Interpreter) {
            boundary::check_on(checked, before, after, target, &envs);
        }
    }
    all.into_iter().for_each(each);
    recovered
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

/// Checks the boundaries of a shader, in order, until `each` breaks.
pub fn check_shader_until<'a>(
    path: &Path,
    shader: &'a LogShader,
    target: &Target,
    settings: &Settings<'_>,
    each: &mut dyn FnMut(Checked<'a>) -> ControlFlow<()>,
) -> Recovered {
    let recovered = recover::recover(path, shader, target);
    let environments = recovered.nir.as_ref().ok().map(|nir| Environments::of(nir, settings.seed));
    let sides: Vec<Side<'_>> = sides(shader, &recovered).collect();
    for (name, before, after) in boundaries(&sides) {
        let checked = boundary::check(before, after, target, settings, environments.as_ref());
        if each(Checked { name: name.to_owned(), ..checked }).is_break() {
            break;
        }
    }
    recovered
}

/// The boundaries between sides, each with its name: neighbours, then nir and the final code if there is a pass between them.
fn boundaries<'s, 'a>(sides: &'s [Side<'a>]) -> impl Iterator<Item = (&'s str, &'s Side<'a>, &'s Side<'a>)> {
    let whole = match sides {
        [nir, _, .., code] if nir.name == NIR && code.name == CODE => Some((WHOLE, nir, code)),
        _ => None,
    };
    sides.windows(2).map(|pair| (&*pair[1].name, &pair[0], &pair[1])).chain(whole)
}

/// The sides of the boundaries, in order: nir, the programs after passes, the final code.
fn sides<'a>(shader: &'a LogShader, recovered: &Recovered) -> impl Iterator<Item = Side<'a>> {
    let nir = shader.nir.as_ref().map(|section| Side {
        name: NIR.to_owned(),
        section: Some(section),
        program: recovered.nir.clone().map(|nir| Snapshot::Nir(Box::new(nir))),
        statistics: None,
    });
    let passes = shader.passes.iter().zip(&recovered.passes).map(|(section, program)| {
        let name = section.title().trim_start_matches("AFTER: ").to_owned();
        let statistics = boundary::is_final(&name).then(|| shader.figures()).flatten();
        let program = program.clone().map(|program| Snapshot::Ir3(Box::new(program)));
        Side { name, section: Some(section), program, statistics }
    });
    let code = shader.assembly.as_ref().map(|section| Side {
        name: CODE.to_owned(),
        section: Some(section),
        program: recovered.code.clone().map(|program| Snapshot::Ir3(Box::new(program))),
        statistics: shader.figures(),
    });
    nir.into_iter().chain(passes).chain(code)
}
