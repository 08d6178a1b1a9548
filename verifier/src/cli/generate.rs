//! `generate`: a random program as text, or seed inputs for a fuzz target.

use crate::exit::{self, Unwritten};
use crate::values;
use crate::{Exit, Failure, Gpu, output};
use clap::Args;
use ir3_compiler::nir;
use ir3_harness::fuzz_targets::ProgramInput;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `generate`.
#[derive(Args)]
pub struct Generate {
    /// The seed; the same seed makes the same program on every machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The profile of the program.
    #[arg(long, value_name = "PROFILE", default_value = "mixed", conflicts_with = "bytes", value_parser = values::profile())]
    profile: Profile,
    #[command(flatten)]
    gpu: Gpu,
    /// Write inputs of the fuzz targets that begin with nir to files in this folder, instead: byte strings of mixed
    /// profiles and GPUs.
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    bytes: Option<PathBuf>,
    /// The number of inputs.
    #[arg(long, value_name = "N", default_value_t = 200, requires = "bytes", value_parser = values::count::<u64>())]
    count: u64,
    /// The least number of instructions of each.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "bytes")]
    instructions: usize,
}

impl Generate {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        if let Some(folder) = &self.bytes {
            return self.inputs(folder);
        }
        let generated = generator::from_seed(self.seed, self.profile, Features::of(&self.gpu.target()));
        output::document(&format!("{}-{}", self.profile, self.seed), "program", &nir::text::write(&generated.shader));
        Ok(Exit::Passed)
    }

    fn inputs(&self, folder: &Path) -> Result<Exit, Failure> {
        let context = Unwritten::new;
        exit::try_folder(folder)?;
        fs::create_dir_all(folder).map_err(|error| context(folder, error))?;
        let (mut bytes, mut instructions) = (0, 0);
        for number in 0..self.count {
            let Some(input) = ProgramInput::seeded(self.seed.wrapping_add(number), self.instructions) else {
                return Err(format!("found no input of {} instructions, expected fewer", self.instructions).into());
            };
            let path = folder.join(format!("seed-{}-{number}", self.seed));
            fs::write(&path, &input).map_err(|error| context(&path, error))?;
            bytes += input.len();
            instructions += ProgramInput::from_bytes(&input).shader.instruction_count();
        }
        let mean = |sum: usize| sum as f64 / self.count.max(1) as f64;
        let (bytes, instructions) = (mean(bytes), mean(instructions));
        output::json(
            "inputs",
            &serde_json::json!({ "count": self.count, "bytes": bytes, "instructions": instructions }),
        );
        output::line(&format!("{} inputs of {bytes:.0} bytes and {instructions:.0} instructions", self.count));
        Ok(Exit::Passed)
    }
}
