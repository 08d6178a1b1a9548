//! The first boundary of a shader that runs refute: what a reducer asks of each candidate.
//!
//! No prover runs, and nothing is said of the other boundaries.

use super::boundary::{self, Environments};
use super::{Side, boundaries, recover, sides};
use crate::harness::check::Refutation;
use crate::programs::mesa::shader::LogShader;
use crate::semantics::environment::env::Env;
use ir3_compiler::target::Target;
use std::path::Path;

/// A boundary that is refuted.
#[derive(Debug)]
pub struct Refuted {
    /// The pass, or the name of the comparison.
    pub name: String,
    /// Both programs, and the input on which they differ.
    pub refutation: Box<Refutation>,
}

/// Finds the first boundary that is refuted on an input, or on the first environments of a seed.
pub fn first_refutation(
    path: &Path,
    shader: &LogShader,
    target: &Target,
    env: &Env,
    own: (u64, usize),
) -> Option<Refuted> {
    let recovered = recover::recover(path, shader, target);
    let (seed, runs) = own;
    let envs: Vec<Env> = match recovered.nir.as_ref().ok().map(|nir| Environments::of(nir, seed)) {
        Some(environments) => {
            let own = (0..runs).map(|number| Env { fuel: env.fuel, ..environments.env(number) });
            [environments.with_booleans(env.clone())].into_iter().chain(own).collect()
        }
        None => vec![env.clone()],
    };
    let sides: Vec<Side<'_>> = sides(shader, &recovered).collect();
    boundaries(&sides).find_map(|(name, before, after)| {
        let refutation = boundary::rerun(before, after, target, &envs)?;
        Some(Refuted { name: name.to_owned(), refutation })
    })
}
