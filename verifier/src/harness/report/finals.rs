//! Final programs from files: an ir3 text after legalization, or the sections `AFTER: ir3_legalize` of a log.

use super::programs::target_of;
use crate::programs::mesa::input::{FilePosition, InputError, InputKind, Source};
use crate::programs::mesa::log::{Log, Section, SectionKind};
use crate::prove::hazards::Divergence;
use ir3_compiler::ir3::{BlockData, Place, Program, SrcOperand, text};
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
    /// The stage of the nir before it in the log, as `FRAG`.
    pub stage: Option<String>,
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
            let mut stage = None;
            let mut sections: Vec<(&Section, Option<String>)> = Vec::new();
            for section in &log.sections {
                match &section.kind {
                    SectionKind::NirFinal { stage: its } => stage = Some(its.clone()),
                    kind if is_final(kind) => sections.push((section, stage.clone())),
                    _ => {}
                }
            }
            let statistics = log.statistics();
            let mut all = Vec::with_capacity(sections.len());
            let several = sections.len() > 1;
            for (i, (section, stage)) in sections.into_iter().enumerate() {
                let name = if several { format!("{name}#{i}") } else { name.clone() };
                let waves = statistics.get(i).and_then(|statistics| statistics.waves);
                let at = |line: u32, column: u32| section.place(line, column);
                let program = read(&path, &section.text, name, &at, target)?;
                all.push(FinalProgram { branch_stack: waves.map(|waves| waves.branchstack), stage, ..program });
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

/// Completes code from words by what only its text says: how large arrays are that are accessed relative to `a0.x`.
pub(super) fn complete(code: &mut Code, text: &Code) {
    for (ip, instr) in &mut code.instrs {
        let Some(said) = text.instrs.get(ip).filter(|said| said.data.opcode == instr.data.opcode) else { continue };
        let dsts = instr.data.dsts.iter_mut().map(|dst| &mut dst.place).zip(said.data.dsts.iter().map(|dst| dst.place));
        let srcs = instr.data.srcs.iter_mut().zip(&said.data.srcs).filter_map(|(src, said)| {
            let SrcOperand::Place(place) = &mut src.operand else { return None };
            Some((place, *said.place()?))
        });
        for (place, said) in dsts.chain(srcs) {
            if let (Place::Relative { size, .. }, Place::Relative { size: said, .. }) = (place, said) {
                *size = said;
            }
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
    Ok(FinalProgram { name, program, code, divergence, branch_stack: None, stage: None, target })
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
