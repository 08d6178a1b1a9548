//! `spirv`: translates a nir program to SPIR-V.

use crate::exit::Unwritten;
use crate::{Exit, Failure, Gpu, output};
use clap::Args;
use ir3_programs::input;
use ir3_programs::spirv::Module;
use ir3_semantics::Snapshot;
use std::path::PathBuf;

/// Options of `spirv`.
#[derive(Args)]
pub struct Spirv {
    /// A nir text with one program, a Mesa log with one shader, or `-` for standard input.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    gpu: Gpu,
    /// Write the module to this file, instead of its disassembly to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Spirv {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let programs = input::load(&self.path, self.gpu.given())?;
        if let (Some(path), true) = (&self.output, programs.len() != 1) {
            let found = programs.len();
            return Err(format!("found {found} programs, expected one to write to {}", path.display()).into());
        }
        for named in programs {
            let Snapshot::Nir(shader) = &named.program else {
                let found = named.program.language();
                return Err(format!("{}: found a program in {found}, expected nir", named.name).into());
            };
            let module = Module::of(shader).map_err(|error| format!("{}: {error}", named.name))?;
            match &self.output {
                Some(path) => {
                    std::fs::write(path, module.bytes()).map_err(|error| Unwritten::new(path, error))?;
                    let (instructions, nir) = (module.instruction_count(), shader.instruction_count());
                    let counts = serde_json::json!({ "program": named.name, "instructions": instructions, "nir": nir });
                    output::json("module", &counts);
                    output::line(&format!("{}: {instructions} instructions, {nir} of nir", named.name));
                }
                None => output::document(&named.name, "program", &format!("{module}\n")),
            }
        }
        Ok(Exit::Passed)
    }
}
