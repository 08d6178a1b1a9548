//! Final programs from files: an ir3 text after legalization, machine code, or the sections `AFTER: ir3_legalize` of a
//! log.
//!
//! A log has more than one text of a final program. The pass prints the state of the compiler, but neither the types of
//! memory accesses nor `(ei)` and `(eq)`, which are in the assembly after it; nor the starts of arrays, which the
//! allocator has added to the offsets that the text before it has.

use crate::check::legal;
use cranelift_entity::EntityRef;
use ir3_compiler::compilation::compile;
use ir3_compiler::ir3::{
    AddressSpace, BlockData, Category, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, Program, WriteMask,
    text,
};
use ir3_compiler::log_line::LogLine;
use ir3_compiler::machine::encoding::{self, Decoded};
use ir3_compiler::machine::{Code, Ip, listing};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::generator::{self, Features, Profile};
use ir3_programs::input::machine_code::{CompletedCode, MachineCode, machine_code};
use ir3_programs::input::programs::{read_ir3, target_of};
use ir3_programs::mesa::input::{FilePosition, InputError, InputKind, Source};
use ir3_programs::mesa::log::{Log, Section, SectionKind};
use ir3_programs::mesa::native::listed_words;
use ir3_programs::mesa::shader::shaders_of;
use ir3_prove::hazards::{self, Facts, HazardReport, ScratchAccesses};
use ir3_semantics::machine::arrays::{ArrayBases, Side};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A final program.
#[derive(Clone, Debug)]
pub struct FinalProgram {
    /// The path, followed by the number of the section if the file has several.
    pub name: String,
    /// The flat code.
    pub code: Code,
    /// The same code, with the memory accesses of its assembly, if that is known.
    pub typed: Option<Code>,
    /// Facts about the program that the code does not contain.
    pub facts: Facts,
    /// The GPU.
    pub target: Target,
    /// The first rule of ir3 that the program breaks. Sections of logs lack attributes that rules need: of them only the
    /// waits are compared with those of the assembly.
    pub broken_rule: Option<String>,
    /// True if the log does not name its GPU, and it is one of the generation.
    pub is_target_guessed: bool,
    /// The line of each instruction in the file, if it is known.
    pub lines: Vec<u32>,
    /// The attributes that the text leaves out, with the values that were assumed.
    pub taken: Vec<String>,
    /// The reason why the code is not known.
    pub unread: Option<String>,
    /// The lines that start with a repetition of the same program.
    pub repeated: Vec<u32>,
    /// The code decoded with the fewest registers: a typed access of 16 bits is one of an image or one of a buffer of
    /// 8 bits, which access different numbers of registers; its word does not distinguish them.
    pub fewest_registers: Option<Code>,
}

impl FinalProgram {
    /// The final program of a program in blocks.
    ///
    /// # Errors
    /// If it is not final.
    pub fn new(name: String, program: Program, target: Target) -> Result<Self, ir3_compiler::machine::CodeError> {
        let code = Code::from_program(&program)?;
        Ok(Self { facts: Facts::of_program(&program), ..Self::of_code(name, code, target) })
    }

    /// A program whose code is known.
    fn of_code(name: String, code: Code, target: Target) -> Self {
        Self {
            name,
            code,
            typed: None,
            facts: Facts::default(),
            target,
            broken_rule: None,
            is_target_guessed: false,
            lines: Vec::new(),
            taken: Vec::new(),
            unread: None,
            repeated: Vec::new(),
            fewest_registers: None,
        }
    }

    /// Checks that the program waits for its results.
    ///
    /// # Errors
    /// If its code is not known, or has an instruction that the checker does not support, or hazards that depend on
    /// facts that its words leave open.
    pub fn hazards(&self) -> Result<HazardReport, String> {
        if let Some(reason) = &self.unread {
            return Err(reason.clone());
        }
        let check = |code: &Code| hazards::check(code, &self.facts, &self.target).map_err(|error| error.to_string());
        let report = check(&self.code)?;
        if let Some(code) = self.fewest_registers.as_ref().filter(|_| !report.is_proved())
            && check(code)?.is_proved()
        {
            let what = "a typed access of 16 bits is one of an image, or of one register of a buffer of 8 bits: the words leave that open";
            return Err(what.to_owned());
        }
        Ok(report)
    }

    /// A program of machine code.
    fn of_machine_code(program: MachineCode) -> Self {
        let (code, taken, unread) = match program.complete() {
            Ok(CompletedCode { code, taken }) => (code, taken, None),
            Err(error) => (Code::default(), Vec::new(), Some(error.to_string())),
        };
        let branch_stack = program.branch_stack();
        let MachineCode { name, target, is_target_guessed, lines, repeated, .. } = program;
        let mut of_code = Self::of_code(name, code, target);
        of_code.facts.branch_stack = branch_stack;
        of_code.facts.scratch = ScratchAccesses::of(&of_code.code);
        of_code.fewest_registers = fewest_registers(&of_code.code);
        Self { is_target_guessed, lines, taken, unread, repeated, ..of_code }
    }

    /// The line of an instruction in the file.
    #[must_use]
    pub fn line(&self, ip: Ip) -> Option<u32> {
        self.lines.get(ip.index()).copied()
    }

    /// The code in the form with the most known attributes.
    #[must_use]
    pub fn runnable(&self) -> &Code {
        self.typed.as_ref().unwrap_or(&self.code)
    }
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
            let named = gpu.or_else(|| named_gpu(&path, &text));
            let target = target_of(&path, &log, named)?;
            let mut all: Vec<FinalProgram> = Vec::new();
            let mut assemblies: Vec<Option<Vec<u64>>> = Vec::new();
            let of_section =
                |section: &Section| FilePosition { path: path.clone(), line: section.first_line, column: 1 };
            let statistics = log.statistics();
            // The sections before register allocation.
            let (mut unallocated, mut allocated): (Vec<&Section>, bool) = (Vec::new(), false);
            for section in &log.sections {
                match &section.kind {
                    SectionKind::NirFinal { .. } => (unallocated, allocated) = (Vec::new(), false),
                    SectionKind::Ir3After { pass } if pass == "register allocation" => allocated = true,
                    SectionKind::Ir3After { pass } if pass == "ir3_legalize" => {
                        let at = |line: u32, column: u32| section.place(line, column);
                        let (own, mut program) = read(&path, &section.text, name.clone(), &at, target)?;
                        program.facts.arrays = array_bases(&own, &program.code, &unallocated);
                        program.lines = lines(&own, section);
                        program.facts.releases_unknown = true;
                        program.is_target_guessed = named.is_none();
                        if let Some(said) = statistics.get(all.len()) {
                            program.facts.branch_stack = said.waves.and_then(|waves| waves.branchstack);
                            program.facts.early_preamble = said.early_preamble();
                        }
                        all.push(program);
                    }
                    SectionKind::NativeCode => {
                        let words = listing::assemble(target.generation, &plain(&section.text)).ok();
                        if let Some(program) = all.last_mut().filter(|program| program.typed.is_none()) {
                            const_parts(&section.text).for_each(|words| program.facts.arrays.add_consts(words));
                            program.typed = typed(&program.code, words.as_deref(), &target)
                                .map_err(|problem| InputError::Invalid { place: of_section(section), problem })?;
                            if let Some(typed) = &program.typed {
                                take_releases(&mut program.code, typed);
                                program.facts.releases_unknown = false;
                            }
                            program.facts.scratch = program.typed.as_ref().map(ScratchAccesses::of).unwrap_or_default();
                        }
                        assemblies.push(words);
                    }
                    SectionKind::Listing => check_listing(section, &assemblies)
                        .map_err(|problem| InputError::Invalid { place: of_section(section), problem })?,
                    SectionKind::Ir3After { .. } if !allocated => unallocated.push(section),
                    _ => {}
                }
            }
            if all.len() > 1 {
                all.iter_mut().enumerate().for_each(|(i, program)| program.name += &format!("#{i}"));
            }
            Ok(all)
        }
        InputKind::Ir3 => {
            let target = gpu.unwrap_or_default();
            let (own, taken) = read_ir3(&path, &text, &target)?;
            let place = || FilePosition { path: path.clone(), line: 1, column: 1 };
            let mut program = FinalProgram::new(name, own.clone(), target).map_err(|error| InputError::Invalid {
                place: place(),
                problem: format!("no final program: {error}"),
            })?;
            program.broken_rule = legal::broken_rule(&own, &target).filter(|_| taken.is_empty());
            program.taken = taken;
            program.lines = instruction_lines(&own, &text, &|line| line);
            Ok(vec![program])
        }
        InputKind::Code => {
            let programs = machine_code(&path, &text, gpu)?;
            Ok(programs.into_iter().map(FinalProgram::of_machine_code).collect())
        }
        InputKind::Nir | InputKind::Vec4 => {
            let place = FilePosition { path, line: 1, column: 1 };
            let found = if kind == InputKind::Nir { "nir" } else { "vec4" };
            let problem = format!("found {found}, expected a final program in ir3, or machine code");
            Err(InputError::Invalid { place, problem })
        }
    }
}

/// The GPU that the first shader of a log names.
fn named_gpu(path: &Path, text: &str) -> Option<Target> {
    let first = shaders_of(path, text).into_iter().next()?;
    (!first.is_target_guessed(None)).then(|| first.target(None))
}

fn read(
    path: &Path,
    source: &str,
    name: String,
    at: &dyn Fn(u32, u32) -> (u32, u32),
    target: Target,
) -> Result<(Program, FinalProgram), InputError> {
    let place = |line: u32, column: u32| {
        let (line, column) = at(line, column);
        FilePosition { path: PathBuf::from(path), line, column }
    };
    let program = text::read(source).map_err(|error| InputError::Syntax {
        place: place(error.line as u32, error.column as u32),
        found: error.found.clone(),
        expected: error.expected.clone(),
    })?;
    let read = FinalProgram::new(name, program.clone(), target)
        .map_err(|error| InputError::Invalid { place: place(1, 1), problem: format!("no final program: {error}") })?;
    Ok((program, read))
}

/// The code with one register for each typed access of 16 bits; `None` if it has none of several.
fn fewest_registers(code: &Code) -> Option<Code> {
    let mut fewest = code.clone();
    for instr in fewest.instrs.values_mut() {
        let data = &mut instr.data;
        let is_typed = data.memory().is_some_and(|memory| memory.space == Some(AddressSpace::Image));
        if !is_typed || !matches!(data.opcode, Opcode::Stib | Opcode::Ldib) {
            continue;
        }
        data.srcs.iter_mut().filter(|src| src.class.half).for_each(|src| src.mask = WriteMask::SCALAR);
        data.dsts.iter_mut().filter(|dst| dst.class.half).for_each(|dst| dst.mask = WriteMask::SCALAR);
    }
    (fewest != *code).then_some(fewest)
}

/// The lines of the instructions of a section in the file.
fn lines(program: &Program, section: &Section) -> Vec<u32> {
    instruction_lines(program, &section.text, &|line| section.place(line, 1).0)
}

/// The lines of the instructions of a text, by the serial numbers at their start, up to the first that is not found.
fn instruction_lines(program: &Program, text: &str, at: &dyn Fn(u32) -> u32) -> Vec<u32> {
    let mut by_serial: FxHashMap<u32, u32> = FxHashMap::default();
    for (number, raw) in (1..).zip(text.lines()) {
        let line = LogLine::of(raw).text;
        if let Some(serial) = line.trim_start().split(':').next().and_then(|serial| serial.parse().ok()) {
            by_serial.entry(serial).or_insert(number);
        }
    }
    let instrs = program.layout.iter().flat_map(|&block| &program.blocks[block].instrs);
    let instrs = instrs.filter(|&&instr| !program.instrs[instr].opcode.is_meta());
    // An end that was added has no line.
    instrs.map_while(|&instr| by_serial.get(&program.serials[instr]).map(|&line| at(line))).collect()
}

/// Finds where the arrays of relative accesses start: allocation adds the first register to the offset that the same
/// instruction (its serial number is printed) has before.
fn array_bases(program: &Program, code: &Code, unallocated: &[&Section]) -> ArrayBases {
    let mut bases = ArrayBases::default();
    let instrs = program.layout.iter().flat_map(|&block| &program.blocks[block].instrs);
    let instrs = instrs.filter(|&&instr| !program.instrs[instr].opcode.is_meta());
    let relative: Vec<_> = code
        .instrs
        .iter()
        .zip(instrs)
        .flat_map(|((ip, instr), &own)| {
            let serial = program.serials[own];
            [Side::Read, Side::Write].map(|side| (ip, serial, side, relative_places(program, &instr.data, side)))
        })
        .filter(|(.., places)| !places.is_empty())
        .collect();
    if relative.is_empty() {
        return bases;
    }
    // The last one that is understood.
    let before = unallocated.iter().rev().find_map(|section| text::read(&section.text).ok());
    let Some(before) = before else { return bases };
    let by_serial: FxHashMap<u32, &InstrData> =
        before.iter_instrs().map(|(_, instr)| (before.serials[instr], &before.instrs[instr])).collect();
    for (ip, serial, side, places) in relative {
        let Some(&data) = by_serial.get(&serial) else { continue };
        let offsets = relative_places(&before, data, side);
        // One access a side, so that there is no doubt which it was.
        if let (&[(after, size)], &[(before, same)]) = (&places[..], &offsets[..])
            && size == same
            && let Ok(base) = u16::try_from(i32::from(after) - i32::from(before))
        {
            bases.insert(ip, side, base);
        }
    }
    bases
}

/// The offset and the size of each relative access of one side. A source that is the previous state of an array that
/// the instruction writes does not count.
fn relative_places(program: &Program, data: &InstrData, side: Side) -> SmallVec<[(i16, u16); 1]> {
    let access = |place: &Place| match *place {
        Place::Relative { offset, size } => Some((offset, size)),
        Place::Array(access) if access.relative => Some((access.offset, program.arrays[access.array].length)),
        _ => None,
    };
    match side {
        Side::Write => data.dsts.iter().filter_map(|dst| access(&dst.place)).collect(),
        Side::Read => {
            let srcs = data.srcs.iter().filter(|src| !src.flags.contains(OperandFlags::TIED));
            srcs.filter_map(|src| access(src.place()?)).collect()
        }
    }
}

/// The parts of the constant file that the comments before the assembly list, in words: `;   preamble   c0.x (4 vec4)`.
fn const_parts(assembly: &str) -> impl Iterator<Item = Range<u16>> {
    let comments = assembly.lines().take_while(|line| line.starts_with(';'));
    let listed = comments.skip_while(|line| *line != "; offsets:").skip(1).take_while(|line| line.starts_with(";   "));
    listed.filter_map(|line| {
        let (start, rest) = line.split_once(" c")?.1.split_once(".x (")?;
        let (start, count): (u16, u16) = (start.parse().ok()?, rest.split_once(" vec4")?.0.parse().ok()?);
        Some(start.checked_mul(4)?..start.checked_add(count)?.checked_mul(4)?)
    })
}

/// Flags that wait for results, or for lanes.
const WAITS: InstrFlags = InstrFlags::SS.union(InstrFlags::SY).union(InstrFlags::JP);

/// Flags that release varyings and helper lanes.
const RELEASES: InstrFlags = InstrFlags::EI.union(InstrFlags::EQ);

/// Copies the release flags from the same code with types.
fn take_releases(code: &mut Code, typed: &Code) {
    for (instr, typed) in code.instrs.values_mut().zip(typed.instrs.values()) {
        instr.data.flags |= typed.data.flags & RELEASES;
    }
}

/// The positions of the instructions of a program in its words. The words of compute shaders of a7xx have `lock` and
/// `unlock` before the end, which the text of the program does not have.
fn positions(code: &Code, decoded: &[Decoded]) -> Option<Vec<usize>> {
    let mut next = 0;
    let positions = code.instrs.values().map(|instr| {
        let is_lock = |decoded: &Decoded| matches!(decoded.data.opcode, Opcode::Lock | Opcode::Unlock);
        let is_added = |decoded: &Decoded| is_lock(decoded) && decoded.data.opcode != instr.data.opcode;
        while decoded.get(next).is_some_and(is_added) {
            next += 1;
        }
        next += 1;
        (next <= decoded.len()).then_some(next - 1)
    });
    positions.collect()
}

/// The code with the memory accesses of its assembly; `None` if that is not the same code, or ir3 does not have all of
/// its instructions.
/// A prefetch before the start has no type anywhere: its registers are arbitrary ones.
///
/// # Errors
/// If an instruction has other wait flags than in the text.
fn typed(code: &Code, assembly: Option<&[u64]>, target: &Target) -> Result<Option<Code>, String> {
    let Some((decoded, positions)) = assembly.and_then(|words| decoded(code, words, target)) else { return Ok(None) };
    for (instr, &at) in code.instrs.values().zip(&positions) {
        let (text, word) = (&instr.data, &decoded[at].data);
        let waits = |data: &InstrData| (data.flags & WAITS, data.repeat, data.nop);
        if text.opcode == word.opcode && waits(text) != waits(word) {
            let opcode = text.opcode;
            return Err(format!(
                "instruction {at} (`{opcode}`) has other waits or repetitions than after `ir3_legalize`"
            ));
        }
    }
    Ok(completed(code, &decoded, &positions))
}

/// Removes the driver directives (`@…`) from an assembly.
fn plain(assembly: &str) -> String {
    assembly.lines().filter(|line| !line.starts_with('@')).flat_map(|line| [line, "\n"]).collect()
}

/// Checks that the words of a listing are those of an assembly before it, if all of these can be read.
fn check_listing(section: &Section, assemblies: &[Option<Vec<u64>>]) -> Result<(), String> {
    let words = listed_words(section);
    let may_be = |of: &Option<Vec<u64>>| of.as_ref().is_none_or(|of| words.starts_with(of));
    if words.is_empty() || assemblies.is_empty() || assemblies.iter().any(may_be) {
        return Ok(());
    }
    Err("the words are those of no assembly before them".to_owned())
}

/// The instructions of an assembly, and the positions of those of the code in it.
fn decoded(code: &Code, words: &[u64], target: &Target) -> Option<(Vec<Decoded>, Vec<usize>)> {
    // Data after the end of the program is not always code.
    let decoded: Vec<Decoded> =
        words.iter().map_while(|&word| encoding::decode(target.generation, word).ok()).collect();
    let positions = positions(code, &decoded)?;
    Some((decoded, positions))
}

/// The code with the attributes of the decoded instructions at these positions; `None` if the instructions differ.
fn completed(code: &Code, decoded: &[Decoded], positions: &[usize]) -> Option<Code> {
    let mut typed = code.clone();
    typed.interface.prefetches.clear();
    for ((_, instr), &at) in typed.instrs.iter_mut().zip(positions) {
        let Decoded { data, distance } = &decoded[at];
        let target = match *distance {
            // A branch to an instruction that the text does not have leads to the next one that it has.
            Some(distance) => {
                let to = usize::try_from(at as i64 + i64::from(distance)).ok()?;
                Some(Ip::new(positions.partition_point(|&at| at < to)))
            }
            None => None,
        };
        if data.opcode != instr.data.opcode || target != instr.target {
            return None;
        }
        // The text does not have them.
        let released = if instr.data.opcode.reads_varying() { RELEASES } else { InstrFlags::EQ };
        instr.data.flags |= data.flags & released;
        match instr.data.opcode.category() {
            Category::Memory | Category::Texture | Category::Barrier => instr.data = data.clone(),
            // An instruction without a result, which only takes an issue slot.
            _ if instr.data.dsts.first().is_some_and(|dst| dst.place.reg() == Some(PhysReg::INVALID)) => {
                let flags = instr.data.flags;
                instr.data = InstrData { flags, ..InstrData::new(Opcode::Nop) };
            }
            _ => {}
        }
    }
    Some(typed)
}

/// Compiles a generated program with the project's backend. Returns the final program; `None` if the backend refuses
/// it.
#[must_use]
pub fn generated_final(seed: u64, target: &Target) -> Option<FinalProgram> {
    let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
    let generated = generator::from_seed(seed, profile, Features::of(target));
    let options = Options { last: Stage::Legalize, ..Options::default() };
    let program = compile(&generated.shader, target, &options, &mut |_, _| {}).ok()?;
    FinalProgram::new(format!("generated {seed:#x}"), program, *target).ok()
}

/// An instruction of the code as a line of text, with its position.
#[must_use]
pub fn instruction_text(code: &Code, ip: Ip) -> String {
    let Some(instr) = code.instrs.get(ip) else { return ip.to_string() };
    // The writer prints whole programs only.
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let only = program.instrs.push(instr.data.clone());
    program.blocks[block].instrs.push(only);
    let text = text::write(&program);
    let line = text.lines().find_map(|line| line.trim_start().split_once(": \t").map(|(_, line)| line.trim()));
    let line = line.unwrap_or_else(|| instr.data.opcode.name());
    match instr.target {
        Some(target) => format!("{ip}: {line} → {target}"),
        None => format!("{ip}: {line}"),
    }
}
