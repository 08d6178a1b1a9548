//! `assemble`: the words of machine code.

use crate::exit::Unwritten;
use crate::{Exit, Failure, Gpu, disassemble, output};
use clap::Args;
use ir3_compiler::machine::listing;
use std::path::PathBuf;

/// Options of `assemble`.
#[derive(Args)]
pub struct Assemble {
    /// Assembly with labels, or a listing, whose words are not looked at; `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    gpu: Gpu,
    /// Write the words to this file, 8 bytes each, the least significant byte first.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Assemble {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let name = self.file.display();
        let bytes = disassemble::read(&self.file)?;
        let text = String::from_utf8(bytes).map_err(|error| format!("{name}: not text: {error}"))?;
        let generation = self.gpu.target().generation;
        let words = listing::assemble(generation, &text).map_err(|error| format!("{name}:{error}"))?;
        for (ip, word) in words.iter().enumerate() {
            output::json("word", &serde_json::json!({ "ip": ip, "word": format!("{word:016x}") }));
        }
        match &self.output {
            Some(path) => {
                std::fs::write(path, listing::to_bytes(&words)).map_err(|error| Unwritten::new(path, error))?;
            }
            None => {
                words.iter().for_each(|word| output::line(&format!("{:08x}_{:08x}", word >> 32, word & 0xffff_ffff)))
            }
        }
        if words.is_empty() {
            output::problem(&format!("{name}: found no instruction"));
        }
        Ok(Exit::Nothing.when(words.is_empty()))
    }
}
