//! Recovery of attributes that Mesa's text leaves out, from the other sections of the same shader.
//!
//! Everything that is recovered is a property of an instruction by its serial number, or of the whole shader. It is the
//! same for all sections, so both sides of a boundary have it. The steps and the reasons for their order are in
//! `steps`.

mod accesses;
mod array_names;
pub(super) mod array_starts;
mod array_versions;
mod arrays;
mod chain;
mod contradiction;
mod false_deps;
mod interface;
mod nir_arrays;
mod phases;
pub(super) mod scratch;
mod serials;
mod steps;
mod textures;
mod varyings;

pub use contradiction::Contradiction;
use ir3_compiler::ir3::{self, Attrs, Block, InstrFlags, Opcode, Program};
use ir3_compiler::machine::Code;
use ir3_compiler::nir::{Shader, Stage};
use ir3_compiler::target::Target;
use ir3_programs::mesa::mixed::mixed_at;
use ir3_programs::mesa::native::{Native, assembled_words, listed_words};
use ir3_programs::mesa::shader::LogShader;
use ir3_programs::mesa::{InputError, Section};
pub use phases::Phase;
use std::path::Path;
use steps::{RECOVERIES, State};

/// A shader with the recovered attributes.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The nir, or why it cannot be read.
    pub nir: Result<Shader, String>,
    /// The programs after passes, or why they cannot be read.
    pub passes: Vec<Result<Program, String>>,
    /// The part of the pipeline of each program.
    pub phases: Vec<Phase>,
    /// The final code.
    pub code: Result<Program, String>,
    /// True if the words of the constant file that the driver fills are not known: the lists of them before the code
    /// are missing, or have lost a line.
    pub lacks_constants: bool,
    /// Facts that were inferred, one line each.
    pub inferred: Vec<String>,
    /// Facts that could not be recovered, one line each.
    pub problems: Vec<String>,
    /// Inferences that two sections contradict; each names both.
    pub contradictions: Vec<Contradiction>,
    /// The number of sections that are cut off, mixed, or not of the language; at least one if the log ends before the
    /// lists after the code.
    pub unread: usize,
}

/// Reads the sections of a shader, and recovers attributes that they leave out.
pub fn recover(path: &Path, shader: &LogShader, target: &Target) -> Recovered {
    let mut state = State::new(path, shader, target);
    RECOVERIES.iter().for_each(|recovery| (recovery.apply)(&mut state));
    let State { nir, passes, phases, code, inferred, problems, contradictions, unread, lacks_constants, .. } = state;
    Recovered { nir, passes, phases, code, inferred, problems, contradictions, unread, lacks_constants }
}

/// The last program with registers; the program of the words, if the log has them.
fn last_text(passes: &[Result<Program, String>], phases: &[Phase]) -> Option<(Program, Phase)> {
    let mut texts = passes.iter().zip(phases).rev();
    let (program, phase) = texts.find_map(|(program, phase)| Some((program.as_ref().ok()?, *phase)))?;
    (phase >= Phase::Allocated).then(|| (program.clone(), phase))
}

/// Returns true if the program has accesses of memory, of whose offsets and types the text has only a part.
fn accesses_memory(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| matches!(program.instrs[instr].attrs, Attrs::Memory(_)))
}

/// Takes the barriers of a tessellation control shader out of nir and all programs: those must have the same number,
/// which is returned.
fn chained(nir: &mut Result<Shader, String>, passes: &mut [Result<Program, String>]) -> Option<usize> {
    let Ok(nir) = nir else { return None };
    if nir.stage != Stage::TessCtrl {
        return None;
    }
    chain::without_barriers(nir);
    let mut first = None;
    for program in passes {
        let Ok(own) = program else { continue };
        let bars = chain::without_bars(own.instrs.values_mut());
        if bars != *first.get_or_insert(bars) {
            *program = Err(other_bars(bars));
        }
    }
    first
}

fn untold_varying(number: u32) -> String {
    format!("it reads the varying {number}, which is not in the list of inputs")
}

fn other_bars(found: usize) -> String {
    format!("found {found} `bar`, expected as many as in the first ir3")
}

/// The expected text where the reader of ir3 finds an undefined value.
const UNDEFINED: &str = "a value that is defined";

/// The error of a section that cannot be read: that lines of two programs are mixed in it, if there is a sign of that.
fn unread(path: &Path, section: &Section, error: InputError) -> InputError {
    match (mixed_at(section), error) {
        (Some(line), _) => section.mixed(path, line),
        (None, InputError::Syntax { place, found, expected }) if expected.starts_with(UNDEFINED) => {
            let expected = format!("{expected}: a line before it is missing or damaged");
            InputError::Syntax { place, found, expected }
        }
        (None, error) => error,
    }
}

/// Returns true if the log has the final assembly, and the last lines of the lists after it.
fn is_to_its_end(shader: &LogShader) -> bool {
    shader.assembly.is_some() && shader.statistics.as_ref().is_some_and(|statistics| statistics.text.contains(" prog "))
}

/// The last line of a shader in its log.
fn last_line(shader: &LogShader) -> u32 {
    let line = |section: &Section| section.place(section.text.trim_end().lines().count() as u32, 1).0;
    shader.sections().map(line).max().unwrap_or(shader.line)
}

/// The final program: the words of the listing, or else those of the assembly.
fn native(shader: &LogShader, listing: Option<&Section>, target: &Target) -> Result<Native, String> {
    let assembly = shader.assembly.as_ref().ok_or("the log has no final assembly")?;
    if !is_to_its_end(shader) {
        return Err("the log ends before the lists of inputs and outputs".to_owned());
    }
    let words = match listing {
        Some(listing) => listed_words(listing),
        None => assembled_words(assembly, target.generation)?,
    };
    let native = Native::read(Some(assembly), shader.statistics.as_ref(), words);
    native.map_err(|error| error.to_string())
}

/// Makes jumps of conditional branches to the only successor of their block: legalization puts one after a `kill` with
/// which the block before the end ends.
fn fold_single_target_branches(program: &mut Program) {
    use Opcode::{Ball, Bany, Br, Braa, Brao};
    for block in program.layout.clone() {
        let successors: Vec<Block> = program.blocks[block].successors().collect();
        let Some(&last) = program.blocks[block].instrs.last() else { continue };
        let data = &mut program.instrs[last];
        if let (&[to], Br | Braa | Brao | Bany | Ball, Attrs::Branch { target: Some(target) }) =
            (&successors[..], data.opcode, &data.attrs)
            && *target == to
        {
            data.opcode = Opcode::Jump;
            data.srcs.clear();
        }
    }
}

/// Clears the reconvergence mark of blocks whose first instruction has no `(jp)` flag: the mark before a block is the
/// compiler's, the hardware gets only the flag.
fn clear_unencoded_jp(program: &mut Program) {
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut code = program.blocks[block]
            .instrs
            .iter()
            .map(|&instr| &program.instrs[instr])
            .filter(|data| !data.opcode.is_meta());
        if code.next().is_some_and(|first| !first.flags.contains(InstrFlags::JP)) {
            program.blocks[block].reconvergence_point = false;
        }
    }
}

/// The program with a block after each branch, if legalization has put a branch into the middle or at the end of one
/// that leads to none of its successors (after `kill`, to the end). `None` if it has not, or the program is not final.
fn split_blocks(program: &Program) -> Option<Program> {
    let has_middle = program.layout.iter().any(|&block| {
        let list = &program.blocks[block].instrs;
        let body = list.iter().rposition(|&instr| {
            let opcode = program.instrs[instr].opcode;
            !opcode.is_terminator() && opcode != Opcode::Nop
        });
        let leads_elsewhere = list.iter().any(|&instr| match program.instrs[instr].attrs {
            Attrs::Branch { target: Some(to) } => !program.blocks[block].successors().any(|successor| successor == to),
            _ => false,
        });
        leads_elsewhere
            || body.is_some_and(|last| list[..last].iter().any(|&instr| program.instrs[instr].opcode.is_terminator()))
    });
    if !has_middle {
        return None;
    }
    let mut split = Code::from_program(program).ok()?.into_program().ok()?;
    // The code has the instructions in order.
    let is_code = |program: &Program, instr: ir3::Instr| !program.instrs[instr].opcode.is_meta();
    let numbers: Vec<u32> = program
        .iter_instrs()
        .filter(|&(_, instr)| is_code(program, instr))
        .map(|(_, instr)| program.serials[instr])
        .collect();
    let instrs: Vec<ir3::Instr> =
        split.iter_instrs().map(|(_, instr)| instr).filter(|&instr| is_code(&split, instr)).collect();
    let same = numbers.len() >= instrs.len();
    for (instr, number) in instrs.into_iter().zip(numbers).filter(|_| same) {
        split.serials[instr] = number;
    }
    Some(split)
}
