//! The steps of the recovery, in their order.
//!
//! Sections are read first, and made comparable: the same instruction has the same serial number in all of them. Then
//! the facts of the whole shader are taken from nir, the lists after the code, and the words; the words need the lists,
//! and nir's textures and the accesses need the words. At last the facts are written into each program. A step reads
//! the results of the steps in its `needs` and does nothing where they are missing: a log with fewer sections has fewer
//! facts.

use super::contradiction::Contradiction;
use super::phases::Phase;
use super::{
    accesses, accesses_memory, array_names, array_starts, array_versions, arrays, chain, chained, clear_unencoded_jp,
    false_deps, fold_single_target_branches, interface, is_to_its_end, last_line, last_text, native, nir_arrays,
    other_bars, scratch, serials, split_blocks, textures, unread, untold_varying, varyings,
};
use crate::mesa::statements;
use ir3_compiler::ir3::aliases::Stored;
use ir3_compiler::ir3::text::ReadProgram;
use ir3_compiler::ir3::{self, InstrFlags, Program};
use ir3_compiler::machine::Code;
use ir3_compiler::nir::{Shader, Stage};
use ir3_compiler::stats::Stats;
use ir3_compiler::target::{Generation, Target};
use ir3_programs::input::natives;
use ir3_programs::input::programs::read_nir;
use ir3_programs::mesa::damage;
use ir3_programs::mesa::mesa_counts;
use ir3_programs::mesa::native::{Native, listing_fault};
use ir3_programs::mesa::shader::LogShader;
use ir3_programs::mesa::{FilePosition, InputError};
use std::path::Path;

/// A step of the recovery.
pub(super) struct Recovery {
    /// The part of the shader that it reads or completes.
    pub name: &'static str,
    /// The steps before it whose results it reads.
    pub needs: &'static [&'static str],
    /// Reads and completes the state.
    pub apply: fn(&mut State<'_>),
}

/// The steps. Each is after the steps that it needs.
pub(super) const RECOVERIES: &[Recovery] = &[
    Recovery { name: "nir", needs: &[], apply: read_nir_section },
    Recovery { name: "passes", needs: &[], apply: read_passes },
    // Before serial numbers: these pair instructions by their flags, and a jump that only one section has shifts the
    // others.
    Recovery { name: "scheduler marks", needs: &["passes"], apply: remove_scheduler_marks },
    // Before all steps that find an instruction by its number. The positions in the text are not needed after it.
    Recovery { name: "serial numbers", needs: &["passes", "scheduler marks"], apply: number_instructions },
    Recovery { name: "arrays", needs: &["serial numbers"], apply: name_arrays },
    // Before `last text`, which is cloned: the chain of tessellation is not in it.
    Recovery { name: "chains", needs: &["serial numbers"], apply: remove_chains },
    // Before all facts about nir: it removes the barriers of tessellation from nir and from the passes.
    Recovery { name: "barriers", needs: &["nir", "chains"], apply: remove_barriers },
    Recovery { name: "final code", needs: &[], apply: read_final_code },
    Recovery { name: "missing sections", needs: &["nir", "passes", "final code"], apply: report_missing },
    // Before `varyings`: it adds the outputs that the next stage reads to nir.
    Recovery { name: "outputs", needs: &["nir", "barriers", "final code"], apply: complete_outputs },
    Recovery { name: "varyings", needs: &["outputs", "final code"], apply: find_varyings },
    Recovery { name: "interface", needs: &["outputs", "final code", "arrays", "barriers"], apply: find_interface },
    Recovery { name: "lists", needs: &["outputs", "final code"], apply: compare_lists },
    // The last text has the instructions of the words with their serial numbers.
    Recovery { name: "last text", needs: &["outputs", "arrays", "barriers"], apply: find_last_text },
    Recovery { name: "words", needs: &["outputs", "final code", "last text"], apply: read_words },
    // After `words`, whose reader expects nir as it is in the log.
    Recovery { name: "textures", needs: &["words", "passes"], apply: complete_textures },
    Recovery { name: "entry", needs: &["words", "interface"], apply: complete_entry },
    Recovery { name: "accesses", needs: &["words", "textures", "last text"], apply: complete_accesses },
    Recovery { name: "code", needs: &["words", "varyings", "barriers"], apply: make_code },
    Recovery { name: "count of instructions", needs: &["code", "last text"], apply: count_instructions },
    // Texts after the last pass have packed varyings; the code has them unpacked by the step before.
    Recovery { name: "varyings of final texts", needs: &["varyings", "accesses"], apply: unpack_varyings },
    // After the entry: the preamble's stores are among the facts of the interface.
    Recovery { name: "inputs and constants", needs: &["interface", "entry", "accesses"], apply: complete_inputs },
    // After aliases, which are folded into the next instruction of the same block.
    Recovery { name: "blocks", needs: &["inputs and constants"], apply: complete_blocks },
    // After `blocks`: versions of an array are followed along the edges.
    Recovery { name: "versions of arrays", needs: &["arrays", "blocks"], apply: remove_array_versions },
    Recovery { name: "starts of arrays", needs: &["versions of arrays"], apply: find_array_starts },
    Recovery { name: "aliases of the code", needs: &["code", "interface"], apply: fold_aliases_of_code },
    // The code has the arrays of the last text, which are complete now.
    Recovery {
        name: "arrays of the code",
        needs: &["aliases of the code", "starts of arrays"],
        apply: complete_arrays_of_code,
    },
    Recovery { name: "scratch memory", needs: &["arrays of the code", "blocks"], apply: complete_scratch },
    // Last: the other steps complete their programs with this nir although it cannot be compared.
    Recovery { name: "refused nir", needs: &["textures", "code"], apply: refuse_nir },
];

/// True if each step is after the steps that it needs, and no name is there twice.
const fn is_ordered(steps: &[Recovery]) -> bool {
    let mut at = 0;
    while at < steps.len() {
        let mut need = 0;
        while need < steps[at].needs.len() {
            if !is_before(steps, at, steps[at].needs[need]) {
                return false;
            }
            need += 1;
        }
        if is_before(steps, at, steps[at].name) {
            return false;
        }
        at += 1;
    }
    true
}

/// True if one of the first `count` steps has this name.
const fn is_before(steps: &[Recovery], count: usize, name: &str) -> bool {
    let mut at = 0;
    while at < count {
        let (mut byte, [own, name]) = (0, [steps[at].name.as_bytes(), name.as_bytes()]);
        while byte < own.len() && byte < name.len() && own[byte] == name[byte] {
            byte += 1;
        }
        if byte == own.len() && byte == name.len() {
            return true;
        }
        at += 1;
    }
    false
}

const _: () = assert!(is_ordered(RECOVERIES), "a step of the recovery is before one that it needs, or is there twice");

/// The results of the steps so far.
pub(super) struct State<'a> {
    path: &'a Path,
    shader: &'a LogShader,
    target: &'a Target,
    /// The nir, or why it cannot be read.
    pub nir: Result<Shader, String>,
    /// The programs after passes with positions, until their instructions are numbered.
    reads: Vec<Result<ReadProgram, String>>,
    /// The programs after passes, or why they cannot be read.
    pub passes: Vec<Result<Program, String>>,
    /// The part of the pipeline of each program.
    pub phases: Vec<Phase>,
    /// The barriers of a tessellation control shader.
    bars: Option<usize>,
    /// The words and lists after the last pass, or why they cannot be read.
    pub native: Result<Native, String>,
    /// The lists before the code, which describe the constant file, are missing or have lost a line.
    pub lacks_constants: bool,
    varyings: Option<varyings::Varyings>,
    interface: Option<interface::Recovered>,
    /// The last program with registers.
    last: Option<(Program, Phase)>,
    /// The code that the words decode to, or the reason why they cannot be decoded; `None` if nir or the lists are
    /// missing, and after `code`.
    words: Option<Result<Code, String>>,
    /// Why the final code cannot be compared, although its words can be read.
    refused_code: Option<String>,
    /// The final code.
    pub code: Result<Program, String>,
    /// Why nir cannot be compared, although it can be read.
    refused_nir: Option<String>,
    pub inferred: Vec<String>,
    pub problems: Vec<String>,
    pub contradictions: Vec<Contradiction>,
    pub unread: usize,
}

impl<'a> State<'a> {
    pub fn new(path: &'a Path, shader: &'a LogShader, target: &'a Target) -> Self {
        let missing = || Err("it is not read yet".to_owned());
        Self {
            path,
            shader,
            target,
            nir: missing(),
            reads: Vec::new(),
            passes: Vec::new(),
            phases: Vec::new(),
            bars: None,
            native: Err(String::new()),
            lacks_constants: true,
            varyings: None,
            interface: None,
            last: None,
            words: None,
            refused_code: None,
            code: Err("the log has no final assembly that can be read".to_owned()),
            refused_nir: None,
            inferred: Vec::new(),
            problems: shader.broken.iter().map(|(_, error)| error.to_string()).collect(),
            contradictions: Vec::new(),
            unread: shader.broken.len(),
        }
    }

    /// The programs after passes that can be read.
    fn programs(&mut self) -> impl Iterator<Item = &mut Program> {
        self.passes.iter_mut().flatten()
    }

    /// Nir and the lists, if both can be read.
    fn both(&mut self) -> Option<(&mut Shader, &Native)> {
        Some((self.nir.as_mut().ok()?, self.native.as_ref().ok()?))
    }
}

fn read_nir_section(state: &mut State<'_>) {
    let State { path, shader, .. } = *state;
    state.nir = match &shader.nir {
        Some(section) => read_nir(path, &section.text, section.first_line - 1)
            .map_err(|error| unread(path, section, error).to_string()),
        None => Err("the log has no final-form nir".to_owned()),
    };
    state.unread += usize::from(shader.nir.is_some() && state.nir.is_err());
}

fn read_passes(state: &mut State<'_>) {
    let State { path, shader, .. } = *state;
    let read = |section| {
        ir3::text::read_with_positions(&false_deps::without_expanded(section)).map_err(|error| {
            let (line, column) = section.place(error.line as u32, error.column as u32);
            let place = FilePosition { path: path.to_owned(), line, column };
            let (found, expected) = (error.found, error.expected);
            unread(path, section, InputError::Syntax { place, found, expected }).to_string()
        })
    };
    state.reads = shader.passes.iter().map(read).collect();
    state.phases = Phase::of(&shader.passes);
    let is_damaged = state.reads.iter().any(Result::is_err) || shader.nir.is_some() && state.nir.is_err();
    let damage = [&shader.without_start, &shader.mixed].into_iter().flatten().map(ToString::to_string);
    state.unread += usize::from(shader.mixed.is_some());
    let wrapped = damage::wrapped(path, shader).filter(|_| is_damaged);
    state.problems.extend(damage.chain(wrapped.map(|error| error.to_string())));
}

/// The second scheduler marks instructions that will have to wait; legalization removes its marks before it sets its
/// own.
fn remove_scheduler_marks(state: &mut State<'_>) {
    for (read, &phase) in state.reads.iter_mut().zip(&state.phases) {
        if let (Ok(read), true) = (read, phase < Phase::Final) {
            serials::jump_after_preamble(&mut read.program);
            let waits = InstrFlags::SS | InstrFlags::SY;
            read.program.instrs.values_mut().for_each(|data| data.flags -= waits);
        }
    }
}

fn number_instructions(state: &mut State<'_>) {
    state.inferred.extend(serials::complete(&state.shader.passes, &state.phases, &mut state.reads));
    state.passes = std::mem::take(&mut state.reads).into_iter().map(|read| read.map(|it| it.program)).collect();
    state.unread += state.passes.iter().filter(|pass| pass.is_err()).count();
}

fn name_arrays(state: &mut State<'_>) {
    let without_versions = arrays::without_versions(&state.shader.passes, &state.phases);
    for (number, program) in state.passes.iter_mut().enumerate() {
        if let Ok(program) = program {
            array_names::complete(program);
            arrays::complete(program, number < without_versions);
        }
    }
}

fn remove_chains(state: &mut State<'_>) {
    for program in &mut state.passes {
        if let Ok(Err(why)) = program.as_mut().map(chain::without_chsh) {
            *program = Err(why);
        }
    }
}

fn remove_barriers(state: &mut State<'_>) {
    state.bars = chained(&mut state.nir, &mut state.passes);
}

fn read_final_code(state: &mut State<'_>) {
    let State { path, shader, target, .. } = *state;
    let listing = shader.listing.as_ref();
    let lost = listing.zip(shader.assembly.as_ref());
    let lost = lost.and_then(|(listing, assembly)| listing_fault(path, listing, assembly, target.generation));
    if let Some(error) = &lost {
        state.unread += 1;
        state.problems.push(error.to_string());
    }
    state.native = native(shader, listing.filter(|_| lost.is_none()), target);
    let missing = state.native.as_ref().map(Native::missing_constants);
    state.lacks_constants = !matches!(missing, Ok(None));
    if let Ok(Some(missing)) = missing {
        state.problems.push(format!("{}: the lists before the code have {missing}", state.path.display()));
    }
}

/// Reports nir or final code that cannot be read and that no boundary names.
fn report_missing(state: &mut State<'_>) {
    let State { path, shader, .. } = *state;
    if let (Err(why), true) = (&state.nir, state.passes.is_empty() && shader.nir.is_some()) {
        state.problems.push(why.clone());
    }
    match (&state.nir, &state.native) {
        // Mesa prints the passes of a shader without nir and assembly if `IR3_SHADER_DEBUG` does not name its stage.
        (Err(_), Err(_)) if shader.nir.is_none() && shader.assembly.is_none() => {}
        (_, Err(error)) if is_to_its_end(shader) => {
            state.problems.push(error.clone());
            state.code = Err(error.clone());
        }
        (_, Err(error)) => {
            // The section that was cut off is one of them.
            state.unread = state.unread.max(1);
            state.problems.push(format!("{}:{}: {error}", path.display(), last_line(shader)));
        }
        (_, Ok(_)) => {}
    }
}

fn complete_outputs(state: &mut State<'_>) {
    let generation = state.target.generation;
    let Some((nir, native)) = state.both() else { return };
    let is_pixel = generation < Generation::A6xx && natives::interpolates_at_pixels(native) && natives::to_pixels(nir);
    let outputs = chain::complete(nir, native);
    if is_pixel {
        state.inferred.push("a pixel has one sample: centroid and sample are the pixel".to_owned());
    }
    match outputs {
        Ok(mut outputs) => state.inferred.append(&mut outputs),
        Err(problem) => state.problems.push(problem),
    }
}

fn find_varyings(state: &mut State<'_>) {
    let Some((nir, native)) = state.both() else { return };
    let varyings = varyings::Varyings::of(native, nir);
    state.inferred.extend(varyings.inferred());
    state.varyings = Some(varyings);
}

fn find_interface(state: &mut State<'_>) {
    let (Ok(nir), Ok(native)) = (&state.nir, &state.native) else { return };
    let mut interface = interface::Recovered::of(native, nir, &state.shader.passes, &state.passes);
    state.inferred.append(&mut interface.inferred);
    state.problems.append(&mut interface.problems);
    state.contradictions.append(&mut interface.contradictions);
    if let Some(short) = interface.short_list.take() {
        refuse_lists(state, &short);
    }
    state.interface = Some(interface);
}

fn compare_lists(state: &mut State<'_>) {
    let (Ok(nir), Ok(native)) = (&state.nir, &state.native) else { return };
    let (lists, scratch) = (statements::of_lists(state.shader, native), statements::of_scratch(state.shader, nir));
    if let Some(why) = lists.first() {
        refuse_lists(state, why);
    }
    let words = statements::of_words(state.shader, state.target);
    let all = lists.into_iter().chain(scratch).chain(words);
    state.contradictions.extend(all.map(Contradiction::of_lists));
}

/// Refuses the comparisons for which the lists after the code pair inputs and outputs: those with nir and with the
/// final code. All passes name them in the same way.
fn refuse_lists(state: &mut State<'_>, why: &str) {
    state.refused_nir.get_or_insert_with(|| why.to_owned());
    state.refused_code.get_or_insert_with(|| why.to_owned());
}

fn find_last_text(state: &mut State<'_>) {
    if state.both().is_some() {
        state.last = last_text(&state.passes, &state.phases);
    }
}

fn read_words(state: &mut State<'_>) {
    let State { path, shader, target, .. } = *state;
    let (Ok(nir), Ok(native)) = (&state.nir, &state.native) else { return };
    let text = state.last.as_ref().filter(|(_, phase)| *phase == Phase::Final);
    let text = text.and_then(|(program, _)| Code::from_program(program).ok());
    let mut words = natives::code(native, nir, text.as_ref(), target);
    if let (Err(why), Some(listing)) = (&words, &shader.listing)
        && let Ok(assembled) = super::native(shader, None, target)
        && let assembled @ Ok(_) = natives::code(&assembled, nir, text.as_ref(), target)
    {
        // A log that ends in the list of the words has the same code as assembly before it.
        state.unread += 1;
        let line = listing.first_line;
        state.problems.push(format!("{}:{line}: the list of words is not whole: {why}", path.display()));
        words = assembled;
    }
    state.words = Some(words);
}

fn complete_textures(state: &mut State<'_>) {
    let (Ok(nir), Some(words)) = (&mut state.nir, &state.words) else { return };
    let texts = textures::Texts {
        first: state
            .passes
            .first()
            .and_then(|first| first.as_ref().ok())
            .filter(|_| state.phases[0] < Phase::Scheduled),
        words: words.iter().flat_map(|code| code.instrs.values().map(|instr| &instr.data)).collect(),
    };
    match textures::complete(nir, &texts, state.target) {
        Ok(mut lines) => state.inferred.append(&mut lines),
        Err(why) => drop(state.refused_nir.get_or_insert(why)),
    }
}

fn complete_entry(state: &mut State<'_>) {
    if let (Some(Ok(words)), Some(interface)) = (&state.words, &mut state.interface) {
        interface.complete_entry(&words.interface);
    }
}

fn complete_accesses(state: &mut State<'_>) {
    let State { target, .. } = *state;
    let (Ok(nir), Some(words)) = (&state.nir, &mut state.words) else { return };
    let words = match words {
        Ok(words) => words,
        Err(error) => {
            // Programs after passes agree on the attributes that their texts leave out; nir has them.
            if state.passes.first().and_then(|first| first.as_ref().ok()).is_some_and(accesses_memory) {
                let why = format!("its accesses cannot be compared without the final code: {error}");
                state.refused_nir.get_or_insert(why);
            }
            return;
        }
    };
    if nir.stage == Stage::TessCtrl {
        let own = chain::without_bars(words.instrs.values_mut().map(|instr| &mut instr.data));
        let other = state.bars.filter(|&bars| bars != own).map(|_| other_bars(own));
        state.refused_code = state.refused_code.take().or(other);
    }
    let last = state.last.as_ref().map(|(program, phase)| (program, *phase));
    let accesses = accesses::Accesses::of(last, words);
    for pass in &mut state.passes {
        if let Ok(program) = pass
            && let Err(why) = accesses.complete(program, nir, target)
        {
            *pass = Err(why);
        }
    }
    state.inferred.extend(accesses.inferred());
}

fn make_code(state: &mut State<'_>) {
    let (Some(words), Some(varyings)) = (state.words.take(), &state.varyings) else { return };
    let mut words = match words {
        Ok(words) => words,
        Err(error) => return state.code = Err(error),
    };
    let mut reads = words.instrs.values().map(|instr| &instr.data).chain(&words.interface.prefetches);
    let unlisted = || reads.find_map(|data| varyings.untold(data)).map(untold_varying);
    let refused = state.refused_code.take().or_else(unlisted);
    words.instrs.values_mut().for_each(|instr| varyings.unpack(&mut instr.data));
    words.interface.prefetches.iter_mut().for_each(|prefetch| varyings.unpack(prefetch));
    state.code = refused.map_or_else(|| words.into_program().map_err(|error| error.to_string()), Err);
}

/// Reports final assembly with fewer instructions than Mesa counts: the code is not whole, whatever its verdict is.
fn count_instructions(state: &mut State<'_>) {
    let State { path, shader, target, .. } = *state;
    let (Ok(code), Some(assembly), None) = (&state.code, &shader.assembly, &shader.listing) else { return };
    let Some(expected) = shader.printed_statistics().and_then(|statistics| statistics.get("instr")) else { return };
    // The text after the last pass shows that the statistics count as here.
    let Some((last, Phase::Final)) = &state.last else { return };
    let found = u64::from(Stats::of_final(code, target).instructions);
    if found < expected && u64::from(mesa_counts(last, target).instructions) == expected {
        let (path, line) = (path.display(), assembly.first_line);
        state.problems.push(format!(
            "{path}:{line}: found {found} instructions in the final assembly, expected {expected} as in its statistics: a line is missing"
        ));
    }
}

fn unpack_varyings(state: &mut State<'_>) {
    for (pass, _) in state.passes.iter_mut().zip(&state.phases).filter(|(_, phase)| **phase == Phase::Final) {
        let Ok(program) = pass else { continue };
        match &state.varyings {
            Some(varyings) => program.instrs.values_mut().for_each(|data| varyings.unpack(data)),
            None if program.instrs.values().any(varyings::Varyings::is_read_by) => {
                *pass = Err("its varyings are packed, and no list has their numbers".to_owned());
                continue;
            }
            None => {}
        }
        clear_unencoded_jp(program);
    }
}

fn complete_inputs(state: &mut State<'_>) {
    for pass in &mut state.passes {
        let Ok(program) = pass else { continue };
        match (&state.interface, &state.native) {
            (Some(interface), _) => {
                interface.complete(program);
                if let Err(error) = interface.fold_aliases(program, Stored::AsPrinted) {
                    *pass = Err(error.to_string());
                }
            }
            (None, Ok(native)) => program.consts.immediates.clone_from(&native.immediates),
            (None, Err(_)) => {}
        }
    }
}

fn complete_blocks(state: &mut State<'_>) {
    for program in state.programs() {
        if let Some(split) = split_blocks(program) {
            *program = split;
        }
        fold_single_target_branches(program);
    }
}

fn remove_array_versions(state: &mut State<'_>) {
    state.programs().for_each(array_versions::remove);
}

fn find_array_starts(state: &mut State<'_>) {
    let mut starts = array_starts::Starts::default();
    for ((section, &phase), pass) in state.shader.passes.iter().zip(&state.phases).zip(&mut state.passes) {
        if let Ok(program) = pass {
            starts.section(section, phase, program);
        }
    }
    state.contradictions.append(&mut starts.contradictions);
}

fn fold_aliases_of_code(state: &mut State<'_>) {
    if let (Ok(program), Some(interface)) = (&mut state.code, &state.interface)
        && let Err(error) = interface.fold_aliases(program, Stored::Rest)
    {
        state.code = Err(error.to_string());
    }
}

fn complete_arrays_of_code(state: &mut State<'_>) {
    let (Ok(code), Ok(nir)) = (&mut state.code, &state.nir) else { return };
    fold_single_target_branches(code);
    match (state.passes.last(), state.phases.last()) {
        (Some(Ok(last)), Some(Phase::Final)) => array_starts::Starts::code(last, code),
        _ => nir_arrays::complete_code(code, nir),
    }
}

fn complete_scratch(state: &mut State<'_>) {
    let programs = state.passes.iter_mut().flatten().chain(&mut state.code);
    scratch::complete(state.shader, state.nir.as_ref().ok(), programs);
}

fn refuse_nir(state: &mut State<'_>) {
    if let Some(why) = state.refused_nir.take() {
        state.nir = Err(why);
    }
}
