//! Loads programs from files.

use crate::programs::mesa::input::{FilePosition, InputError, InputKind, Source};
use crate::programs::mesa::log::Log;
use crate::semantics::Snapshot;
use ir3_compiler::{ir3, nir, target::Target};
use std::path::Path;

/// A program with the name that reports use.
#[derive(Clone, Debug)]
pub struct Named {
    /// A path, followed by the number of the section if the file has several.
    pub name: String,
    /// The program.
    pub program: Snapshot,
}

/// Loads the programs of a file: one from a `.nir` or `.ir3` text, one for each final-form nir of a log.
///
/// # Errors
/// If the file cannot be read, or is not such a text; with the position.
pub fn load(path: &Path, target: &Target) -> Result<Vec<Named>, InputError> {
    programs_of(path, Source::read(path)?, target)
}

/// Reads the first program of a text in nir or ir3, or of a log.
///
/// # Errors
/// If it is not such a text; with the position.
pub fn parse(text: &str, target: &Target) -> Result<Snapshot, InputError> {
    let path = Path::new("text");
    let programs = programs_of(path, Source::from_bytes(path, text.into())?, target)?;
    let first = programs.into_iter().next().map(|named| named.program);
    first.ok_or_else(|| InputError::NoNir { path: path.to_owned() })
}

fn programs_of(path: &Path, source: Source, target: &Target) -> Result<Vec<Named>, InputError> {
    let name = path.display().to_string();
    match source.kind {
        InputKind::Nir => {
            let program = Snapshot::Nir(Box::new(read_nir(path, &source.text, 0)?));
            Ok(vec![Named { name, program }])
        }
        InputKind::Ir3 => {
            let program = Snapshot::Ir3(Box::new(read_ir3(path, &source.text, target)?));
            Ok(vec![Named { name, program }])
        }
        InputKind::Log => {
            let log = Log::read(path, &source.text)?;
            let sections = log.nir(path)?;
            let many = sections.len() > 1;
            sections
                .iter()
                .enumerate()
                .map(|(i, section)| {
                    let shader = read_nir(path, &section.text, section.first_line - 1)?;
                    let name = if many { format!("{name}#{i}") } else { name.clone() };
                    Ok(Named { name, program: Snapshot::Nir(Box::new(shader)) })
                })
                .collect()
        }
    }
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
