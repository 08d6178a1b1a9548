//! Recovery of attributes that Mesa's text leaves out, from the other sections of the same shader.
//!
//! Everything that is recovered is a property of an instruction by its serial number, or of the whole shader. It is the
//! same for all sections, so both sides of a boundary have it.

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

mod textures;
mod varyings;

use super::statements;
pub use contradiction::Contradiction;
use ir3_compiler::ir3::aliases::Stored;
use ir3_compiler::ir3::{self, Attrs, Block, InstrFlags, Opcode, Program};
use ir3_compiler::machine::Code;
use ir3_compiler::nir::{Shader, Stage};
use ir3_compiler::target::{Generation, Target};
use ir3_programs::input::natives;
use ir3_programs::input::programs::read_nir;
use ir3_programs::mesa::mixed::mixed_at;
use ir3_programs::mesa::native::{Native, assembled_words, listed_words};
use ir3_programs::mesa::shader::LogShader;
use ir3_programs::mesa::{FilePosition, InputError, Section};
pub use phases::Phase;
use std::path::Path;

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
    /// True if the words of the constant file that the driver fills are not known: the lists of them before the code are
    /// missing, or have lost a line.
    pub lacks_constants: bool,
    /// Facts that were inferred, one line each.
    pub inferred: Vec<String>,
    /// Facts that could not be recovered, one line each.
    pub problems: Vec<String>,
    /// Inferences that two sections contradict; each names both.
    pub contradictions: Vec<Contradiction>,
    /// The number of sections that are cut off, mixed, or not of the language; at least one if the log ends before the lists after the code.
    pub unread: usize,
}

/// Reads the sections of a shader, and recovers attributes that they leave out.
pub fn recover(path: &Path, shader: &LogShader, target: &Target) -> Recovered {
    let (mut inferred, mut contradictions) = (Vec::new(), Vec::new());
    let mut problems: Vec<String> = shader.broken.iter().map(|(_, error)| error.to_string()).collect();
    let mut nir = match &shader.nir {
        Some(section) => read_nir(path, &section.text, section.first_line - 1)
            .map_err(|error| unread(path, section, error).to_string()),
        None => Err("the log has no final-form nir".to_owned()),
    };
    let mut reads: Vec<_> = shader
        .passes
        .iter()
        .map(|section| {
            ir3::text::read_with_positions(&false_deps::without_expanded(section)).map_err(|error| {
                let (line, column) = section.place(error.line as u32, error.column as u32);
                let place = FilePosition { path: path.to_owned(), line, column };
                let (found, expected) = (error.found, error.expected);
                unread(path, section, InputError::Syntax { place, found, expected }).to_string()
            })
        })
        .collect();
    let phases = Phase::of(&shader.passes);
    for (read, &phase) in reads.iter_mut().zip(&phases) {
        if let (Ok(read), true) = (read, phase < Phase::Final) {
            serials::jump_after_preamble(&mut read.program);
            // The second scheduler marks instructions that will have to wait; legalization removes its marks before it
            // sets its own.
            let waits = InstrFlags::SS | InstrFlags::SY;
            read.program.instrs.values_mut().for_each(|data| data.flags -= waits);
        }
    }
    inferred.extend(serials::complete(&shader.passes, &phases, &mut reads));
    let mut passes: Vec<Result<Program, String>> = reads.into_iter().map(|read| read.map(|it| it.program)).collect();
    let mut unread = shader.broken.len()
        + usize::from(shader.nir.is_some() && nir.is_err())
        + passes.iter().filter(|pass| pass.is_err()).count();
    let without_versions = arrays::without_versions(&shader.passes, &phases);
    for (number, program) in passes.iter_mut().enumerate() {
        if let Ok(program) = program {
            array_names::complete(program);
            arrays::complete(program, number < without_versions);
        }
        if let Ok(Err(why)) = program.as_mut().map(chain::without_chsh) {
            *program = Err(why);
        }
    }
    let bars = chained(&mut nir, &mut passes);
    let native = native(shader, shader.listing.as_ref(), target);
    if let (Err(why), true) = (&nir, passes.is_empty() && shader.nir.is_some()) {
        // No boundary has the reason.
        problems.push(why.clone());
    }
    let mut code = Err("the log has no final assembly that can be read".to_owned());
    let mut unsaid = None;
    let mut facts = None;
    match (&mut nir, &native) {
        (Ok(nir), Ok(native)) => {
            if target.generation < Generation::A6xx
                && natives::interpolates_at_pixels(native)
                && natives::to_pixels(nir)
            {
                inferred.push("a pixel has one sample: centroid and sample are the pixel".to_owned());
            }
            match chain::complete(nir, native) {
                Ok(mut outputs) => inferred.append(&mut outputs),
                Err(problem) => problems.push(problem),
            }
            let varyings = varyings::Varyings::of(native, nir);
            inferred.extend(varyings.inferred());
            let mut interface = interface::Recovered::of(native, nir, &shader.passes, &passes);
            inferred.append(&mut interface.inferred);
            problems.append(&mut interface.problems);
            contradictions.append(&mut interface.contradictions);
            contradictions
                .extend(statements::contradictions(shader, native, nir).into_iter().map(Contradiction::of_lists));
            let last = last_text(&passes, &phases);
            let text = last.as_ref().filter(|(_, phase)| *phase == Phase::Final);
            let text = text.and_then(|(program, _)| Code::from_program(program).ok());
            let mut of_words = natives::code(native, nir, text.as_ref(), target);
            if let (Err(why), Some(listing)) = (&of_words, &shader.listing)
                && let Ok(assembled) = self::native(shader, None, target)
                && let assembled @ Ok(_) = natives::code(&assembled, nir, text.as_ref(), target)
            {
                // A log that ends in the list of the words has the same code as assembly before it.
                unread += 1;
                let line = listing.first_line;
                problems.push(format!("{}:{line}: the list of words is not whole: {why}", path.display()));
                of_words = assembled;
            }
            let texts = textures::Texts {
                first: passes.first().and_then(|first| first.as_ref().ok()).filter(|_| phases[0] < Phase::Scheduled),
                words: of_words.iter().flat_map(|code| code.instrs.values().map(|instr| &instr.data)).collect(),
            };
            match textures::complete(nir, &texts, target) {
                Ok(mut lines) => inferred.append(&mut lines),
                Err(why) => unsaid = Some(why),
            }
            match &of_words {
                Ok(words) => {
                    interface.complete_entry(&words.interface);
                    let mut words = words.clone();
                    let mut lost = None;
                    if nir.stage == Stage::TessCtrl {
                        let own = chain::without_bars(words.instrs.values_mut().map(|instr| &mut instr.data));
                        lost = bars.filter(|&bars| bars != own).map(|_| other_bars(own));
                    }
                    let words = &words;
                    let last = last.as_ref().map(|(program, phase)| (program, *phase));
                    let accesses = accesses::Accesses::of(last, words);
                    for pass in &mut passes {
                        if let Ok(program) = pass
                            && let Err(why) = accesses.complete(program, nir, target)
                        {
                            *pass = Err(why);
                        }
                    }
                    inferred.extend(accesses.inferred());
                    let mut words = words.clone();
                    let untold = words.instrs.values().map(|instr| &instr.data).chain(&words.interface.prefetches);
                    lost =
                        lost.or_else(|| untold.into_iter().find_map(|data| varyings.untold(data)).map(untold_varying));
                    words.instrs.values_mut().for_each(|instr| varyings.unpack(&mut instr.data));
                    words.interface.prefetches.iter_mut().for_each(|prefetch| varyings.unpack(prefetch));
                    code = lost.map_or_else(|| words.into_program().map_err(|error| error.to_string()), Err);
                }
                Err(error) => {
                    // Programs after passes agree on the attributes that their texts leave out; nir has them.
                    if passes.first().and_then(|first| first.as_ref().ok()).is_some_and(accesses_memory) {
                        unsaid = Some(format!("its accesses cannot be compared without the final code: {error}"));
                    }
                    code = Err(error.clone());
                }
            }
            facts = Some((varyings, interface));
        }
        // Mesa prints the passes of a shader without nir and assembly if `IR3_SHADER_DEBUG` does not name its stage.
        (Err(_), Err(_)) if shader.nir.is_none() && shader.assembly.is_none() => {}
        (_, Err(error)) => {
            if is_to_its_end(shader) {
                problems.push(error.clone());
            } else {
                // The section that was cut off is one of them.
                unread = unread.max(1);
                problems.push(format!("{}:{}: {error}", path.display(), last_line(shader)));
            }
        }
        (Err(_), _) => {}
    }
    let mut starts = array_starts::Starts::default();
    for ((section, &phase), pass) in shader.passes.iter().zip(&phases).zip(&mut passes) {
        let Ok(program) = pass else { continue };
        if phase == Phase::Final {
            match &facts {
                Some((varyings, _)) => program.instrs.values_mut().for_each(|data| varyings.unpack(data)),
                None if program.instrs.values().any(varyings::Varyings::is_read_by) => {
                    *pass = Err("its varyings are packed, and no list has their numbers".to_owned());
                    continue;
                }
                None => {}
            }
            clear_unencoded_jp(program);
        }
        match (&facts, &native) {
            (Some((_, interface)), _) => {
                interface.complete(program);
                if let Err(error) = interface.fold_aliases(program, Stored::AsPrinted) {
                    *pass = Err(error.to_string());
                    continue;
                }
            }
            (None, Ok(native)) => program.consts.immediates.clone_from(&native.immediates),
            (None, Err(_)) => {}
        }
        if let Some(split) = split_blocks(program) {
            *program = split;
        }
        fold_single_target_branches(program);
        array_versions::remove(program);
        starts.section(section, phase, program);
    }
    contradictions.append(&mut starts.contradictions);
    if let (Ok(program), Some((_, interface))) = (&mut code, &facts)
        && let Err(error) = interface.fold_aliases(program, Stored::Rest)
    {
        code = Err(error.to_string());
    }
    if let (Ok(code), Ok(nir)) = (&mut code, &nir) {
        fold_single_target_branches(code);
        if let (Some(Ok(last)), Some(Phase::Final)) = (passes.last(), phases.last()) {
            array_starts::Starts::code(last, code);
        } else {
            nir_arrays::complete_code(code, nir);
        }
    }
    scratch::complete(shader, nir.as_ref().ok(), passes.iter_mut().flatten().chain(&mut code));
    if let Some(why) = unsaid {
        nir = Err(why);
    }
    let lost = native.as_ref().ok().and_then(Native::lost_constants);
    problems.extend(lost.iter().map(|lost| format!("{}: the lists before the code have {lost}", path.display())));
    let lacks_constants = native.is_err() || lost.is_some();
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

/// Takes the barriers of a tessellation control shader out of nir and all programs: those must have the same number, which is returned.
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

/// The error of a section that cannot be read: that lines of two programs are mixed in it, if there is a sign of that.
fn unread(path: &Path, section: &Section, error: InputError) -> InputError {
    match (mixed_at(section), error) {
        (Some(line), _) => section.mixed(path, line),
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
    native.map_err(|line| format!("a line of another form: `{line}`"))
}

/// Makes jumps of conditional branches to the only successor of their block: legalization puts one after a `kill` with which the block
/// before the end ends.
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
