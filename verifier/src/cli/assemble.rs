//! `assemble`: the words of machine code.

use crate::exit::Unwritten;
use crate::{Exit, Failure, Gpu, disassemble, output};
use clap::Args;
use ir3_compiler::machine::listing::{self, ListingError};
use ir3_programs::mesa::input::{self, FilePosition, InputError};
use std::path::{Path, PathBuf};

/// Options of `assemble`.
#[derive(Args)]
pub struct Assemble {
    /// Assembly with labels, with directives of computerator, or a listing, whose words are ignored; `-` for standard
    /// input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    gpu: Gpu,
    /// Write the words to this file, 8 bytes each, the least significant byte first.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The error, with the found text.
fn error_of(path: &Path, text: &str, error: ListingError) -> InputError {
    let ListingError { line, column, expected } = error;
    let rest = text.lines().nth(line - 1).and_then(|line| line.get(column - 1..)).unwrap_or_default().trim();
    let found = match rest.is_empty() {
        true => "the end of the line".to_owned(),
        false => format!("`{}`", rest.chars().take(40).collect::<String>()),
    };
    InputError::Syntax {
        place: FilePosition { path: path.to_owned(), line: line as u32, column: column as u32 },
        found,
        expected,
    }
}

impl Assemble {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let name = self.file.display();
        let bytes = disassemble::read(&self.file)?;
        let text = match input::text_of(&self.file, bytes) {
            Err(InputError::Empty { .. }) => String::new(),
            text => text?,
        };
        let generation = self.gpu.target().generation;
        let words = listing::assemble(generation, &text).map_err(|error| error_of(&self.file, &text, error))?;
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
