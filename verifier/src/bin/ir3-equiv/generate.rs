//! `generate`: a random program as text.

use crate::{Exit, Failure, Gpu, output};
use clap::Args;
use ir3_compiler::nir;
use ir3_verifier::generate::{self, Features, Profile};

/// Options of `generate`.
#[derive(Args)]
pub struct Generate {
    /// The seed; the same seed makes the same program on every machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// What the program is made of.
    #[arg(long, value_name = "P", default_value = "mixed")]
    profile: Profile,
    #[command(flatten)]
    gpu: Gpu,
}

impl Generate {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let generated = generate::from_seed(self.seed, self.profile, Features::of(&self.gpu.target));
        output::text(&nir::text::write(&generated.shader));
        Ok(Exit::Passed)
    }
}
