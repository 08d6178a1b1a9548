//! `disassemble`: the text of machine code.

use crate::{Exit, Failure, Gpu, output};
use clap::Args;
use ir3_compiler::machine::listing::{self, Item};
use ir3_compiler::target::Generation;
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Options of `disassemble`.
#[derive(Args)]
pub struct Disassemble {
    /// A listing or a log with listings, words in hexadecimal, or a binary file of 64-bit words; `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    gpu: Gpu,
    /// The file is binary, whatever it looks like: words of 64 bits, the least significant byte first.
    #[arg(long)]
    binary: bool,
    /// Print assembly without positions and words.
    #[arg(long)]
    plain: bool,
}

/// An instruction, as JSON.
#[derive(Serialize)]
struct Line<'a> {
    ip: u32,
    word: String,
    text: Option<&'a str>,
    error: Option<String>,
}

/// Reads a file, or standard input for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    bytes.map_err(|error| format!("{}: cannot be read: {error}", path.display()).into())
}

impl Disassemble {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let bytes = read(&self.file)?;
        let programs = self.programs(&bytes)?;
        let mut unknown = 0;
        for (generation, words) in &programs {
            let items = listing::disassemble(*generation, words);
            for item in &items {
                let Item::Instr(ip, word, text) = item else { continue };
                unknown += usize::from(text.is_err());
                let (text, error) = match text {
                    Ok(text) => (Some(text.as_str()), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                output::json("instruction", &Line { ip: *ip, word: format!("{word:016x}"), text, error });
            }
            output::text(&if self.plain { listing::write_plain(&items) } else { listing::write(&items) });
        }
        if unknown > 0 {
            let words: usize = programs.iter().map(|(_, words)| words.len()).sum();
            return Err(format!("{}: {unknown} of {words} words are no instructions", self.file.display()).into());
        }
        let is_empty = programs.iter().all(|(_, words)| words.is_empty());
        if is_empty {
            output::problem(&format!("{}: found no word", self.file.display()));
        }
        Ok(Exit::Nothing.when(is_empty))
    }

    /// The programs of the file, each with its generation.
    fn programs(&self, bytes: &[u8]) -> Result<Vec<(Generation, Vec<u64>)>, Failure> {
        let name = self.file.display();
        let given = self.gpu.given().map(|target| target.generation);
        let default = self.gpu.target().generation;
        let text = std::str::from_utf8(bytes).ok().filter(|text| !self.binary && !text.contains('\0'));
        let Some(text) = text else {
            let words = listing::from_bytes(bytes);
            let words =
                words.ok_or_else(|| format!("{name}: {} bytes, expected words of 8 bytes, or a text", bytes.len()))?;
            return Ok(vec![(default, words)]);
        };
        let listings = listing::listings(text);
        if listings.is_empty() {
            let words = listing::words(text).map_err(|error| format!("{name}:{error}"))?;
            return Ok(vec![(default, words)]);
        }
        let mut programs = Vec::new();
        for listing in listings {
            let generation = match (given, listing.generation) {
                (Some(given), Some(said)) if given != said => {
                    let number = said.number();
                    return Err(format!("{name}: code of an a{number}xx, which is not the GPU that --gpu names").into());
                }
                (given, said) => given.or(said).unwrap_or(default),
            };
            programs.push((generation, listing.lines.iter().map(|line| line.word).collect()));
        }
        Ok(programs)
    }
}
