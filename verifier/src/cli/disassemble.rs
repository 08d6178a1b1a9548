//! `disassemble`: the text of machine code.

use crate::{Exit, Failure, Gpu, output};
use clap::{Args, ValueEnum};
use ir3_compiler::machine::listing::{self, Item};
use ir3_compiler::target::Generation;
use ir3_programs::input::machine_code::{MachineCode, machine_code};
use ir3_programs::mesa::{InputKind, Source};
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Options of `disassemble`.
#[derive(Args)]
pub struct Disassemble {
    /// A listing or assembly (of ir3-disasm, cffdump, crashdec, computerator, a log), words in hexadecimal, or a
    /// binary file of 64-bit words; `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    gpu: Gpu,
    /// Read the file as binary: words of 64 bits, the least significant byte first.
    #[arg(long)]
    binary: bool,
    /// The output format of each instruction.
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t, conflicts_with = "plain")]
    form: Form,
    /// Print assembly without positions and words: `--as plain`.
    #[arg(long)]
    plain: bool,
}

/// The output format of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The format of `ir3-disasm`.
    #[default]
    Ir3Disasm,
    /// The hex listing of a log.
    Log,
    /// The format of `cffdump` and `crashdec`.
    Cffdump,
    /// Assembly without positions and words.
    Plain,
}

/// A program to print.
struct Listed {
    generation: Generation,
    first: u32,
    words: Vec<u64>,
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
        for Listed { generation, first, words } in &programs {
            let items = listing::disassemble_at(*generation, words, *first);
            for item in &items {
                let Item::Instr(ip, word, text) = item else { continue };
                unknown += usize::from(text.is_err());
                let (text, error) = match text {
                    Ok(text) => (Some(text.as_str()), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                output::json("instruction", &Line { ip: *ip, word: format!("{word:016x}"), text, error });
            }
            output::text(&match self.form {
                _ if self.plain => listing::write_plain(&items),
                Form::Ir3Disasm => listing::write_disasm(&items),
                Form::Log => listing::write(&items),
                Form::Cffdump => listing::write_dump(&items),
                Form::Plain => listing::write_plain(&items),
            });
        }
        if unknown > 0 {
            let words: usize = programs.iter().map(|program| program.words.len()).sum();
            return Err(format!("{}: {unknown} of {words} words are no instructions", self.file.display()).into());
        }
        let is_empty = programs.iter().all(|program| program.words.is_empty());
        if is_empty {
            output::problem(&format!("{}: found no word", self.file.display()));
        }
        Ok(Exit::Nothing.when(is_empty))
    }

    /// Reads the programs of the file.
    fn programs(&self, bytes: &[u8]) -> Result<Vec<Listed>, Failure> {
        let name = self.file.display();
        let listed = |words: Vec<u64>| vec![Listed { generation: self.gpu.target().generation, first: 0, words }];
        let text = std::str::from_utf8(bytes).ok().filter(|text| !self.binary && !text.contains('\0'));
        let Some(text) = text.map(str::to_owned).or_else(|| if self.binary { None } else { text_of(bytes) }) else {
            let words = listing::from_bytes(bytes);
            let words =
                words.ok_or_else(|| format!("{name}: {} bytes, expected words of 8 bytes, or a text", bytes.len()))?;
            return Ok(listed(words));
        };
        // Words alone may look like assembly, and begin with no mnemonic.
        let not_words = match listing::words(&text) {
            Ok(words) => return Ok(listed(words)),
            Err(error) => error,
        };
        let Ok(source) = Source::from_bytes(&self.file, text.into_bytes()) else {
            return Err(format!("{name}:{not_words}").into());
        };
        let programs = match source.kind {
            InputKind::Code | InputKind::Log => machine_code(&self.file, &source.text, self.gpu.given())?,
            _ => return Err(format!("{name}:{not_words}").into()),
        };
        let of =
            |code: MachineCode| Listed { generation: code.target.generation, first: code.first, words: code.words };
        Ok(programs.into_iter().map(of).collect())
    }
}

/// The text of bytes that are in another encoding.
fn text_of(bytes: &[u8]) -> Option<String> {
    let source = Source::from_bytes(Path::new("text.log"), bytes.to_vec()).ok()?;
    (source.kind == InputKind::Code).then_some(source.text)
}
