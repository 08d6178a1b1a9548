//! Loads programs from files.

use crate::programs::mesa::input::{FilePosition, InputError, InputKind, Source};
use crate::programs::mesa::log::Log;
use crate::semantics::Snapshot;
use ir3_compiler::{ir3, nir, target::Target};
use std::path::{Path, PathBuf};

/// A program with the name that reports use.
#[derive(Clone, Debug)]
pub struct Named {
    /// A path, followed by the number of the section if the file has several.
    pub name: String,
    /// The program.
    pub program: Snapshot,
    /// The GPU to compile it for.
    pub target: Target,
}

/// A text that has not been parsed.
#[derive(Clone, Debug)]
pub struct Unread {
    path: PathBuf,
    name: String,
    is_nir: bool,
    text: String,
    /// The lines of the file before the text.
    skipped: u32,
    target: Target,
}

impl Unread {
    /// Parses and validates the text.
    ///
    /// # Errors
    /// If it is not a valid program; with the position.
    pub fn read(&self) -> Result<Named, InputError> {
        let Self { path, name, is_nir, text, skipped, target } = self;
        let program = match is_nir {
            true => Snapshot::Nir(Box::new(read_nir(path, text, *skipped)?)),
            false => Snapshot::Ir3(Box::new(read_ir3(path, text, target)?)),
        };
        Ok(Named { name: name.clone(), program, target: *target })
    }
}

/// Returns the texts of a file: one of a `.nir` or `.ir3` text, one for each final-form nir of a log. The GPU is the given one; otherwise the
/// default one of the generation that a log names, or of all.
///
/// # Errors
/// If the file cannot be read, or is of another kind, or is the log of another generation than that of the given GPU.
pub fn unread(path: &Path, gpu: Option<Target>) -> Result<Vec<Unread>, InputError> {
    texts_of(Source::read(path)?, gpu)
}

fn texts_of(Source { path, kind, text }: Source, gpu: Option<Target>) -> Result<Vec<Unread>, InputError> {
    let name = path.display().to_string();
    if kind != InputKind::Log {
        let target = gpu.unwrap_or_default();
        return Ok(vec![Unread { path, name, is_nir: kind == InputKind::Nir, text, skipped: 0, target }]);
    }
    let log = Log::read(&path, &text)?;
    let target = target_of(&path, &log, gpu)?;
    let sections = log.nir(&path)?;
    let many = sections.len() > 1;
    let unread = sections.iter().enumerate().map(|(i, section)| Unread {
        path: path.clone(),
        name: if many { format!("{name}#{i}") } else { name.clone() },
        is_nir: true,
        text: section.text.clone(),
        skipped: section.first_line - 1,
        target,
    });
    Ok(unread.collect())
}

/// The GPU of a log.
fn target_of(path: &Path, log: &Log, gpu: Option<Target>) -> Result<Target, InputError> {
    let mut target = gpu;
    for (line, generation) in log.generations() {
        let expected = target.get_or_insert_with(|| Target::of_generation(generation));
        if expected.generation != generation {
            let place = FilePosition { path: path.to_owned(), line, column: 1 };
            return Err(InputError::OtherGeneration {
                place,
                found: generation,
                expected: expected.generation,
                gpu: expected.name,
            });
        }
    }
    Ok(target.unwrap_or_default())
}

/// Loads the programs of a file, as [`unread`] finds them.
///
/// # Errors
/// If the file cannot be read, or is not such a text; with the position.
pub fn load(path: &Path, gpu: Option<Target>) -> Result<Vec<Named>, InputError> {
    unread(path, gpu)?.iter().map(Unread::read).collect()
}

/// Reads the first program of a text in nir or ir3, or of a log.
///
/// # Errors
/// If it is not such a text; with the position.
pub fn parse(text: &str, target: &Target) -> Result<Snapshot, InputError> {
    let path = Path::new("text");
    let texts = texts_of(Source::from_bytes(path, text.into())?, Some(*target))?;
    let first = texts.first().ok_or_else(|| InputError::NoNir { path: path.to_owned() })?;
    Ok(first.read()?.program)
}

/// Parses and validates nir. The text begins after `skipped` lines of the file.
fn read_nir(path: &Path, text: &str, skipped: u32) -> Result<nir::Shader, InputError> {
    let shader = nir::text::read(text).map_err(|error| InputError::Syntax {
        place: FilePosition { path: path.to_owned(), line: error.line + skipped, column: error.column },
        found: error.found.clone(),
        expected: error.expected.clone(),
    })?;
    if let Err(errors) = nir::validate(&shader)
        && let Some(error) = errors.first()
    {
        let place = FilePosition { path: path.to_owned(), line: error.place.line.max(1) + skipped, column: 1 };
        return Err(InputError::Invalid { place, problem: error.to_string() });
    }
    Ok(shader)
}

/// Parses and validates ir3.
fn read_ir3(path: &Path, text: &str, target: &Target) -> Result<ir3::Program, InputError> {
    let program = ir3::text::read(text).map_err(|error| InputError::Syntax {
        place: FilePosition { path: path.to_owned(), line: error.line as u32, column: error.column as u32 },
        found: error.found.clone(),
        expected: error.expected.clone(),
    })?;
    if let Err(violations) = ir3::validate::validate(&program, target, ir3::validate::Form::of(&program))
        && let Some(violation) = violations.first()
    {
        // The text numbers its instructions, so the number identifies the line.
        let serial = violation.instr.map(|instr| format!("{:04}:", program.serials[instr]));
        let line = serial.and_then(|serial| text.lines().position(|line| line.contains(&serial)));
        let place = FilePosition { path: path.to_owned(), line: line.map_or(1, |line| line as u32 + 1), column: 1 };
        return Err(InputError::Invalid { place, problem: violation.to_string() });
    }
    Ok(program)
}
