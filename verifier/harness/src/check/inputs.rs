//! The inputs of a program, by number: environments for comparing, and single numbers to vary.

use ir3_compiler::nir::Shader;
use ir3_programs::seeds::{ProgramEnvs, campaign_env};
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::hints::Hints;
use ir3_semantics::support::random::hash;
use std::collections::BTreeSet;

/// The inputs of a program.
pub struct ProgramInputs {
    /// Environments that fit the program, by number.
    pub envs: ProgramEnvs,
    booleans: BTreeSet<u32>,
}

impl ProgramInputs {
    /// The inputs of a program that our compiler compiles.
    pub fn new(shader: &Shader, seed: u64) -> Self {
        Self { envs: ProgramEnvs::new(shader, seed), booleans: BTreeSet::new() }
    }

    /// The inputs of a program of another compiler. Each word that nir reads as a boolean of 32 bits has no bit or all
    /// of them: Mesa's `b2b1` reads the low 16 only (docs/semantics.md, boolean words).
    pub fn with_boolean_words(shader: &Shader, seed: u64) -> Self {
        Self { booleans: Hints::boolean_words(shader), ..Self::new(shader, seed) }
    }

    /// The environment of a number.
    pub fn env(&self, number: usize) -> Env {
        self.with_booleans(self.envs.env(number))
    }

    /// Returns true if some words are restricted to no bit or all bits.
    pub fn has_booleans(&self) -> bool {
        !self.booleans.is_empty()
    }

    /// An environment in which each boolean word has no bit or all of them.
    pub fn with_booleans(&self, mut env: Env) -> Env {
        for &word in &self.booleans {
            let given = env.consts.get(&word).map(|&bits| bits != 0);
            let holds = given.unwrap_or_else(|| hash(&[env.seed, 0x626f_6f6c, word.into()]) & 1 != 0);
            env.consts.insert(word, if holds { u32::MAX } else { 0 });
        }
        env
    }

    /// The environment of a number, in which two programs are compared and nothing is measured. `best` is the one that
    /// reached most so far.
    pub fn comparison(&self, number: usize, best: Option<&Env>) -> Env {
        self.with_booleans(self.envs.comparison(number, best))
    }
}

/// The environment with this number for programs without nir, which have no hints: in turn, corner cases among the
/// words that they read, coarse textures and the smallest wave.
pub fn any_env(number: usize) -> Env {
    let seed = number as u64;
    let corner_words = 1 + (number / 4 % 7) as u8;
    match number % 8 {
        1 | 5 => Env { corner_words, ..Env::from_seed(seed) },
        3 => Env { corner_texels: corner_words, corner_words, ..Env::from_seed(seed) },
        6 => Env { lanes: Some(1), ..campaign_env(seed) },
        7 => Env { coarse_texels: 1, ..campaign_env(seed) },
        _ => Env::from_seed(seed),
    }
}
