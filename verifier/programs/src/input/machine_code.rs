//! Machine code from files: listings of Mesa's tools, and assembly of logs and of `computerator`.
//!
//! A file may have several programs, between lines of any kind. A program of a dump that is printed again, word for
//! word, counts once. Parts that the text leaves out are completed, and named in [`CompletedCode::taken`]: an `end`
//! after the last instruction, and the end as the target of branches that leave the text.

use super::natives;
use crate::mesa::input::{FilePosition, InputError};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{
    DriverParam, Dst, InputKind, InstrData, Opcode, PhysReg, Place, Program, RegClass, ShaderStage, SystemValue,
    WriteMask,
};
use ir3_compiler::log_line::LogLine;
use ir3_compiler::machine::encoding;
use ir3_compiler::machine::listing::{self, Assembled, Directive, Format, ListingError};
use ir3_compiler::machine::{Code, CodeInstr, EntryRegister, Interface, Ip};
use ir3_compiler::target::{Generation, Target};
use std::path::Path;

/// A program in machine code.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineCode {
    /// The path, followed by the number of the program if the file has several.
    pub name: String,
    /// The words.
    pub words: Vec<u64>,
    /// The line of each word in the file, from 1 on.
    pub lines: Vec<u32>,
    /// The position of the first word.
    pub first: u32,
    /// The lines that begin with `@`.
    pub directives: Vec<Directive>,
    /// The GPU.
    pub target: Target,
    /// True if neither the command nor the text names the GPU or its generation.
    pub is_target_guessed: bool,
    /// The lines that start with a repetition of the same program.
    pub repeated: Vec<u32>,
    path: std::path::PathBuf,
    /// A gap between positions.
    gap: Option<(u32, String)>,
    format: Option<Format>,
}

/// A program as the engines need it.
#[derive(Clone, Debug)]
pub struct CompletedCode {
    /// The code.
    pub code: Code,
    /// The parts that were added to the text.
    pub taken: Vec<String>,
}

/// Reads the programs of a text.
///
/// # Errors
/// If a line is no instruction of the GPU, or the text has no program.
pub fn machine_code(path: &Path, text: &str, gpu: Option<Target>) -> Result<Vec<MachineCode>, InputError> {
    let clean: String = text.lines().flat_map(|line| [LogLine::of(line).text, "\n".into()]).collect();
    let listings = listing::listings(&clean);
    let mut programs: Vec<MachineCode> = Vec::new();
    for listing in listings {
        let (target, is_target_guessed) = target_of_words(path, &listing, gpu)?;
        let words = listing.words();
        // The code in memory is printed each time that a register or a packet points to it.
        let is_dump = listing.format == Format::Dump;
        let line = |line: u32| line + 1;
        // The padding depends on the printer.
        let same_code = |its: &MachineCode| without_padding(&its.words) == without_padding(&words);
        let mut known = programs.iter_mut();
        if let Some(same) = known.find(|its| is_dump && its.format == Some(listing.format) && same_code(its)) {
            same.repeated.extend(listing.lines.first().map(|first| line(first.line)));
            continue;
        }
        let gap = listing.gap().map(|[before, after]| {
            let (expected, found) = (before.ip + 1, after.ip);
            (
                line(after.line),
                format!(
                    "found position {found} after {}, expected {expected}: lines of the program are missing",
                    before.ip
                ),
            )
        });
        programs.push(MachineCode {
            name: String::new(),
            words,
            lines: listing.lines.iter().map(|its| line(its.line)).collect(),
            first: listing.lines.first().map_or(0, |first| first.ip),
            directives: Vec::new(),
            target,
            is_target_guessed,
            repeated: Vec::new(),
            path: path.to_owned(),
            gap,
            format: Some(listing.format),
        });
    }
    add_assemblies(path, &clean, gpu, &mut programs)?;
    programs.sort_by_key(|program| program.lines.first().copied());
    if programs.is_empty() {
        let place = FilePosition { path: path.to_owned(), line: 1, column: 1 };
        return Err(InputError::Invalid { place, problem: "found no instruction of machine code".to_owned() });
    }
    let name = path.display().to_string();
    let count = programs.len();
    for (i, program) in programs.iter_mut().enumerate() {
        program.name = if count > 1 { format!("{name}#{i}") } else { name.clone() };
    }
    Ok(programs)
}

/// Words without the nops at their end.
fn without_padding(words: &[u64]) -> &[u64] {
    &words[..words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1)]
}

/// The GPU of a listing; without a name, one of a generation that has its instructions.
fn target_of_words(
    path: &Path,
    listing: &listing::Listing<'_>,
    gpu: Option<Target>,
) -> Result<(Target, bool), InputError> {
    let named = listing.generation;
    if let (Some(gpu), Some(named)) = (gpu, named)
        && gpu.generation != named
    {
        let line = listing.lines.first().map_or(1, |first| first.line + 1);
        let place = FilePosition { path: path.to_owned(), line, column: 1 };
        return Err(InputError::OtherGeneration { place, found: named, expected: gpu.generation, gpu: gpu.name });
    }
    if let Some(target) = gpu.or_else(|| named.map(Target::of_generation)) {
        return Ok((target, false));
    }
    let unread = |generation: Generation| {
        listing.lines.iter().filter(|line| encoding::decode(generation, line.word).is_err()).count()
    };
    let best = GUESSES.into_iter().min_by_key(|&generation| unread(generation)).unwrap_or(Generation::A6xx);
    Ok((Target::of_generation(best), true))
}

/// The generations that a text without a name may be of, the most frequent one first.
const GUESSES: [Generation; 5] =
    [Generation::A6xx, Generation::A7xx, Generation::A5xx, Generation::A4xx, Generation::A3xx];

/// A part of a text that is the assembly of one program.
#[derive(Default)]
struct Part {
    /// The lines before it.
    skipped: usize,
    text: String,
    has_instruction: bool,
    ended: bool,
    generation: Option<Generation>,
}

/// Adds the assemblies of a text. That before a listing of the same words is the same program.
fn add_assemblies(
    path: &Path,
    text: &str,
    gpu: Option<Target>,
    programs: &mut Vec<MachineCode>,
) -> Result<(), InputError> {
    let has_listing = !programs.is_empty();
    // A dump has assembly of other processors, too.
    if programs.iter().any(|program| program.format == Some(Format::Dump)) {
        return Ok(());
    }
    for part in parts(text) {
        let named = part.generation;
        let given = gpu.or_else(|| named.map(Target::of_generation));
        let error = |error: ListingError| {
            let line = (part.skipped + error.line) as u32;
            let raw = text.lines().nth(line as usize - 1).unwrap_or_default();
            let found = raw.get(error.column - 1..).unwrap_or_default().trim();
            let found = if found.is_empty() {
                "the end of the line".to_owned()
            } else {
                format!("`{}`", found.chars().take(40).collect::<String>())
            };
            let column = raw.get(..error.column - 1).map_or(1, |before| before.chars().count() as u32 + 1);
            let place = FilePosition { path: path.to_owned(), line, column };
            InputError::Syntax { place, found, expected: error.expected }
        };
        let (assembled, target) = match given {
            Some(target) => (listing::assembled(target.generation, &part.text), target),
            None => {
                let mut tried =
                    GUESSES.into_iter().map(|its| (listing::assembled(its, &part.text), Target::of_generation(its)));
                let first = tried.next();
                match (first, tried.find(|(code, _)| code.is_ok())) {
                    (Some((Err(_), _)), Some(other)) => other,
                    (Some(first), _) => first,
                    (None, _) => continue,
                }
            }
        };
        let Assembled { words, lines, directives } = match assembled {
            Ok(code) => code,
            // The words of the listing are the program.
            Err(_) if has_listing => continue,
            Err(problem) => return Err(error(problem)),
        };
        let directives = directives.into_iter().map(|(_, directive)| directive).collect();
        let last = part.skipped as u32 + lines.last().copied().unwrap_or_default();
        let listed = programs.iter_mut().filter(|its| its.lines.first().is_some_and(|&line| line > last));
        if let Some(same) = listed.min_by_key(|its| its.lines.first().copied())
            && same.words.starts_with(&words)
        {
            same.directives = directives;
            continue;
        }
        if words.is_empty() {
            continue;
        }
        programs.push(MachineCode {
            name: String::new(),
            words,
            lines: lines.into_iter().map(|line| part.skipped as u32 + line + 1).collect(),
            first: 0,
            directives,
            target,
            is_target_guessed: given.is_none(),
            repeated: Vec::new(),
            path: path.to_owned(),
            gap: None,
            format: None,
        });
    }
    Ok(())
}

/// Splits a text into the assemblies of its programs. Other lines are before a program, or after its end.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = vec![Part::default()];
    let mut generation = None;
    for (index, line) in text.lines().enumerate() {
        generation = listing::generation(line).or(generation);
        let trimmed = line.trim();
        let bare = trimmed.split(';').next().unwrap_or_default().trim();
        let is_header = bare.starts_with('@')
            && Directive::read(bare)
                .map_or_else(|_| bare[1..].starts_with(|c: char| c.is_ascii_lowercase()), |it| !it.is_section());
        let is_comment = bare.is_empty() || trimmed.starts_with("//");
        let is_headline = trimmed.starts_with("Native code for ") || trimmed.starts_with("; num_ubos");
        let is_label = bare.strip_suffix(':').is_some_and(|name| !name.is_empty() && !name.contains([' ', '\t']));
        let is_instruction = !is_comment && !is_header && is_instruction(bare);
        let Some(part) = parts.last_mut() else { continue };
        let begins = is_headline || is_header || is_instruction;
        if begins
            && part.has_instruction
            && (is_headline || is_header || part.ended && is_instruction && part.interrupted())
        {
            parts.push(Part { skipped: index, generation, ..Part::default() });
        }
        let Some(part) = parts.last_mut() else { continue };
        // A line in the middle that is no instruction is kept: it is an error.
        let is_listed = listing::is_listing_line(line);
        let is_kept = !is_listed
            && (is_comment
                || is_header
                || is_label
                || is_instruction
                || bare.starts_with('@')
                || part.has_instruction && !part.ended);
        part.has_instruction |= is_instruction && !is_listed;
        part.generation = part.generation.or(generation);
        if is_kept {
            part.text.push_str(line);
            let mnemonic = bare.rsplit(')').next().unwrap_or_default().trim();
            match mnemonic {
                "end" | "chsh" | "ret" if is_instruction => part.ended = true,
                "nop" => {}
                _ if is_instruction || is_label => part.ended = false,
                _ => {}
            }
        } else if part.has_instruction && !is_comment {
            part.text.push_str(INTERRUPTION);
        }
        part.text.push('\n');
    }
    parts.retain(|part| part.has_instruction);
    parts
}

/// A comment instead of a line that is not of the program.
const INTERRUPTION: &str = "; …";

impl Part {
    /// Returns true if there are lines of another kind after the end.
    fn interrupted(&self) -> bool {
        self.text.lines().last() == Some(INTERRUPTION) || self.text.contains("\n; …\n")
    }
}

fn is_instruction(line: &str) -> bool {
    let start = ["no match:", ".word", "raw 0x"];
    if start.iter().any(|start| line.starts_with(start)) {
        return true;
    }
    // A label may be before it, and flags of the next instruction after it.
    let after = line
        .split_once(':')
        .filter(|(label, _)| !label.contains([' ', '(', '.']))
        .map_or(line, |(_, after)| after.trim());
    let without_flags = after.split('(').next().unwrap_or_default().trim();
    encoding::begins_instruction(after)
        || matches!(without_flags, "nop" | "end")
        || matches!(after, "(sy)" | "(ss)" | "(ss)(sy)" | "(sy)(ss)" | "(jp)")
}

impl MachineCode {
    /// The line of an instruction.
    pub fn line(&self, ip: Ip) -> Option<u32> {
        self.lines.get(ip.index()).copied()
    }

    fn error(&self, index: usize, problem: String) -> InputError {
        let line = self.lines.get(index).or(self.lines.last()).copied().unwrap_or(1);
        InputError::Invalid { place: FilePosition { path: self.path.clone(), line, column: 1 }, problem }
    }

    /// The code, completed.
    ///
    /// # Errors
    /// If lines are missing, or a word is no instruction.
    pub fn complete(&self) -> Result<CompletedCode, InputError> {
        if let Some((line, problem)) = &self.gap {
            let place = FilePosition { path: self.path.clone(), line: *line, column: 1 };
            return Err(InputError::Invalid { place, problem: problem.clone() });
        }
        let generation = self.target.generation;
        let mut taken = Vec::new();
        let mut code = Code { interface: self.interface(&mut taken), ..Code::default() };
        let mut distances = Vec::new();
        let is_end = |data: &InstrData| matches!(data.opcode, Opcode::End | Opcode::Chsh | Opcode::Ret);
        for (index, &word) in self.words.iter().enumerate() {
            match encoding::decode(generation, word) {
                Ok(decoded) => {
                    distances.push(decoded.distance);
                    code.instrs.push(CodeInstr { data: decoded.data, target: None });
                }
                // The words after the end are not always code.
                Err(error) => match code.instrs.values().rposition(|instr| is_end(&instr.data)) {
                    Some(end) if self.format.is_some() => {
                        distances.truncate(end + 1);
                        code.instrs = code.instrs.values().take(end + 1).cloned().collect();
                        break;
                    }
                    _ => return Err(self.error(index, error.to_string())),
                },
            }
        }
        let count = code.instrs.len();
        let ends = |code: &Code| {
            let last = code.instrs.values().rev().find(|instr| instr.data != InstrData::new(Opcode::Nop));
            last.is_some_and(|last| is_end(&last.data) || last.data.opcode == Opcode::Chmask)
        };
        let falls_out =
            !ends(&code) && code.instrs.values().next_back().is_none_or(|last| last.data.opcode != Opcode::Jump);
        let is_whole = self.first == 0 && ends(&code);
        let mut leaves = Vec::new();
        for (ip, distance) in distances.iter().enumerate() {
            let Some(distance) = distance else { continue };
            let to = ip as i64 + i64::from(*distance);
            let at = Ip::new(ip);
            if (0..count as i64).contains(&to) {
                code.instrs[at].target = Some(Ip::new(to as usize));
            } else if is_whole {
                return Err(self.error(ip, format!("a branch to {to}, and the code ends before it")));
            } else {
                code.instrs[at].target = Some(Ip::new(count));
                leaves.push(i64::from(self.first) + to);
            }
        }
        if falls_out || !leaves.is_empty() {
            code.instrs.push(CodeInstr { data: InstrData::new(Opcode::End), target: None });
        }
        if falls_out {
            taken.push("an `end` after the last line".to_owned());
        }
        if !leaves.is_empty() {
            let targets: Vec<String> = leaves.iter().map(|to| format!("l{to}")).collect();
            taken.push(format!("the end at {}, which the text does not have", targets.join(", ")));
        }
        natives::without_chsh(&mut code).map_err(|problem| self.error(count, problem))?;
        Ok(CompletedCode { code, taken })
    }

    /// The program in blocks, and the items that were added to the text.
    ///
    /// # Errors
    /// If lines are missing, a word is no instruction, or control flow leaves the code.
    pub fn program(&self) -> Result<(Program, Vec<String>), InputError> {
        let CompletedCode { code, taken } = self.complete()?;
        let program = code.into_program().map_err(|error| {
            let index = error.place.strip_prefix('l').and_then(|ip| ip.parse().ok()).unwrap_or(0);
            self.error(index, error.to_string())
        })?;
        Ok((program, taken))
    }

    /// The depth of the branch stack that the text names.
    pub fn branch_stack(&self) -> Option<u32> {
        self.directives.iter().find_map(|directive| match directive {
            Directive::BranchStack(depth) => Some(*depth),
            _ => None,
        })
    }

    /// The inputs that the lines before the code name.
    fn interface(&self, taken: &mut Vec<String>) -> Interface {
        let mut interface = Interface::default();
        let vector = |register: PhysReg, value: SystemValue| {
            let shared = register >= PhysReg::SHARED_FIRST;
            let class = if shared { RegClass::SHARED } else { RegClass::FULL };
            EntryRegister {
                input: Some(InputKind::System(value)),
                dst: Dst::new(Place::Reg(register), class, WriteMask::first(3)),
            }
        };
        let params = |word: u16, value: SystemValue| {
            (0..3).map(move |component| DriverParam { word: word + component, value, component: component as u8 })
        };
        for directive in &self.directives {
            let mut is_compute = true;
            match *directive {
                Directive::LocalSize(sizes) => {
                    interface.workgroup_size = Some(sizes.map(|size| u16::try_from(size).unwrap_or(u16::MAX)));
                }
                Directive::InvocationId(register) => {
                    interface.inputs.push(vector(register, SystemValue::LocalInvocationId))
                }
                Directive::WorkgroupId(register) => interface.inputs.push(vector(register, SystemValue::WorkgroupId)),
                Directive::WorkgroupIdConst(word) => {
                    interface.consts.driver_params.extend(params(word, SystemValue::WorkgroupId))
                }
                Directive::NumWorkgroups(word) => {
                    interface.consts.driver_params.extend(params(word, SystemValue::NumWorkgroups))
                }
                Directive::Buffer { .. } => {}
                Directive::Const(word, ref values) => {
                    interface.consts.immediates.extend((word..).zip(values.iter().copied()));
                    is_compute = false;
                }
                Directive::PrivateMemory(bytes) => interface.scratch_size = bytes,
                Directive::LocalMemory(bytes) => interface.shared_size = bytes,
                Directive::Texture(ref line) => {
                    taken.push(format!("no value for the sample before the start, `@tex{line}`"));
                    is_compute = false;
                }
                _ => is_compute = false,
            }
            if is_compute {
                interface.stage = Some(ShaderStage::Compute);
            }
        }
        interface
    }
}
