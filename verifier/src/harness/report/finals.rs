//! Final programs from files: an ir3 text after legalization, or the sections `AFTER: ir3_legalize` of a log.

use super::programs::target_of;
use crate::programs::mesa::input::{FilePosition, InputError, InputKind, Source};
use crate::programs::mesa::log::{Log, SectionKind};
use crate::prove::hazards::Divergence;
use ir3_compiler::ir3::{BlockData, Program, text};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;
use std::path::{Path, PathBuf};

/// A final program.
#[derive(Clone, Debug)]
pub struct FinalProgram {
    /// The path, followed by the number of the section if the file has several.
    pub name: String,
    /// The program in blocks, as the text has it.
    pub program: Program,
    /// The flat code.
    pub code: Code,
    /// Which branches are uniform.
    pub divergence: Divergence,
    /// The depth of the branch stack that the log names.
    pub branch_stack: Option<u32>,
    /// The GPU.
    pub target: Target,
}

/// Loads the final programs of a file: none if a log has no such section.
///
/// # Errors
/// If the file cannot be read, is neither an ir3 text nor a log, or a program in it is not final.
pub fn finals(path: &Path, gpu: Option<Target>) -> Result<Vec<FinalProgram>, InputError> {
    let Source { path, kind, text } = Source::read(path)?;
    let name = path.display().to_string();
    match kind {
        InputKind::Log => {
            let log = Log::read(&path, &text)?;
            let target = target_of(&path, &log, gpu)?;
            let is_final =
                |kind: &SectionKind| matches!(kind, SectionKind::Ir3After { pass } if pass == "ir3_legalize");
            let sections: Vec<_> = log.sections.iter().filter(|section| is_final(&section.kind)).collect();
            let statistics = log.statistics();
            let mut all = Vec::with_capacity(sections.len());
            for (i, section) in sections.iter().enumerate() {
                let name = if sections.len() > 1 { format!("{name}#{i}") } else { name.clone() };
                let waves = statistics.get(i).and_then(|statistics| statistics.waves);
                let at = |line: u32, column: u32| section.place(line, column);
                let program = read(&path, &section.text, name, &at, target)?;
                all.push(FinalProgram { branch_stack: waves.map(|waves| waves.branchstack), ..program });
            }
            Ok(all)
        }
        InputKind::Ir3 => {
            let target = gpu.unwrap_or_default();
            Ok(vec![read(&path, &text, name, &|line, column| (line, column), target)?])
        }
        InputKind::Nir => {
            let place = FilePosition { path, line: 1, column: 1 };
            Err(InputError::Invalid { place, problem: "found nir, expected a final program in ir3".to_owned() })
        }
    }
}

fn read(
    path: &Path,
    source: &str,
    name: String,
    at: &dyn Fn(u32, u32) -> (u32, u32),
    target: Target,
) -> Result<FinalProgram, InputError> {
    let place = |line: u32, column: u32| {
        let (line, column) = at(line, column);
        FilePosition { path: PathBuf::from(path), line, column }
    };
    let program = text::read(source).map_err(|error| InputError::Syntax {
        place: place(error.line as u32, error.column as u32),
        found: error.found.clone(),
        expected: error.expected.clone(),
    })?;
    let code = Code::from_program(&program)
        .map_err(|error| InputError::Invalid { place: place(1, 1), problem: format!("no final program: {error}") })?;
    let divergence = Divergence::of_program(&program);
    Ok(FinalProgram { name, program, code, divergence, branch_stack: None, target })
}

/// An instruction of the code as a line of text, with its position.
#[must_use]
pub fn instruction_text(code: &Code, ip: Ip) -> String {
    let Some(instr) = code.instrs.get(ip) else { return ip.to_string() };
    // The writer is one of whole programs.
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let only = program.instrs.push(instr.data.clone());
    program.blocks[block].instrs.push(only);
    let text = text::write(&program);
    let line = text.lines().find_map(|line| line.trim_start().split_once(":\t").map(|(_, line)| line.trim()));
    let line = line.unwrap_or_else(|| instr.data.opcode.name());
    match instr.target {
        Some(target) => format!("{ip}: {line} → {target}"),
        None => format!("{ip}: {line}"),
    }
}
