//! Loads programs from files.

use super::machine_code::{MachineCode, machine_code};
use crate::mesa::fragment::{self, CompletedNir, OldText};
use crate::mesa::input::{FilePosition, InputError, InputKind, Lines, Source, is_headline};
use crate::mesa::log::{self, Log, LogReader, Section, SectionKind};
use crate::mesa::pair_file::TextPair;
use ir3_compiler::ir3::ShaderStage;
use ir3_compiler::log_line::LogLine;
use ir3_compiler::machine::encoding;
use ir3_compiler::target::{Backend, GEN7, GEN7_SCALAR, Generation, Target};
use ir3_compiler::{i965::vec4, ir3, nir};
use ir3_semantics::Snapshot;
use std::collections::VecDeque;
use std::io::Cursor;
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
    /// The attributes that the text leaves out, with the values that were assumed.
    pub taken: Vec<String>,
    /// True for machine code that may hand over registers at its end, which its text does not name.
    pub has_unknown_results: bool,
}

/// A text that has not been parsed.
#[derive(Clone, Debug)]
pub struct Unread {
    path: PathBuf,
    name: String,
    kind: InputKind,
    text: String,
    /// The lines of the file before the text.
    skipped: u32,
    target: Target,
    /// The program of machine code, which has no text of its own.
    code: Option<Box<MachineCode>>,
}

impl Unread {
    /// Parses and validates the text.
    ///
    /// # Errors
    /// If it is not a valid program; with the position.
    pub fn read(&self) -> Result<Named, InputError> {
        let Self { path, name, kind, text, skipped, target, code } = self;
        if let Some(code) = code {
            let (program, taken) = code.program()?;
            let has_unknown_results = program.stage != Some(ShaderStage::Compute);
            let program = Snapshot::Ir3(Box::new(program));
            return Ok(Named { name: name.clone(), program, target: *target, taken, has_unknown_results });
        }
        let program = match kind {
            InputKind::Nir if *skipped == 0 => {
                let (shader, taken) = read_nir_text(path, text)?;
                return Ok(Named {
                    name: name.clone(),
                    program: Snapshot::Nir(Box::new(shader)),
                    target: *target,
                    taken,
                    has_unknown_results: false,
                });
            }
            InputKind::Nir | InputKind::Log => Snapshot::Nir(Box::new(read_nir(path, text, *skipped)?)),
            InputKind::Vec4 => Snapshot::Vec4(Box::new(read_vec4(path, text)?)),
            InputKind::Ir3 => {
                let (program, taken) = read_ir3(path, text, target)?;
                return Ok(Named {
                    name: name.clone(),
                    program: Snapshot::Ir3(Box::new(program)),
                    target: *target,
                    taken,
                    has_unknown_results: false,
                });
            }
            InputKind::Code => return Err(InputError::NoNir { path: path.clone() }),
        };
        Ok(Named { name: name.clone(), program, target: *target, taken: Vec::new(), has_unknown_results: false })
    }
}

/// The texts of a file, as they come: one of a `.nir` or `.ir3` text, one for each final-form nir of a log. The GPU is
/// the given one; otherwise the default one of the generation that a log names, or of all.
///
/// A log is read only as far as the next program needs: up to the line after it that names the generation. So programs
/// from a pipe are available at once. An error is the last item: the file cannot be read, or is of another kind, or is
/// the log of another generation than that of the GPU.
pub fn unread(path: &Path, gpu: Option<Target>) -> impl Iterator<Item = Result<Unread, InputError>> + Send + use<> {
    unread_of(Lines::open(path), gpu)
}

/// The texts of the lines of a file, as they come.
pub fn unread_of(
    lines: Result<Lines, InputError>,
    gpu: Option<Target>,
) -> impl Iterator<Item = Result<Unread, InputError>> + Send + use<> {
    let mut texts = match lines {
        Ok(lines) => Ok(Texts::new(lines, gpu)),
        Err(error) => Err(Some(error)),
    };
    std::iter::from_fn(move || match &mut texts {
        Ok(reader) => match reader.next_text() {
            Ok(text) => text.map(Ok),
            Err(error) => {
                texts = Err(None);
                Some(Err(error))
            }
        },
        Err(error) => error.take().map(Err),
    })
}

/// The texts of a file, while it is read.
struct Texts {
    lines: Lines,
    /// The reader of a log; `None` while the kind of the file is not known to be that.
    log: Option<LogReader>,
    /// The text so far, until the kind is known.
    head: String,
    /// Programs that have been read and wait for the line that names their generation. (The first one waits for the
    /// second, too: only one of several has a number.)
    waiting: VecDeque<Section>,
    /// The number of programs so far, and of those that a generation was named after.
    programs: usize,
    confirmed: usize,
    returned: usize,
    target: Option<Target>,
    ended: bool,
    /// True while there is nothing but blanks.
    blank: bool,
    has_headline: bool,
    /// The programs of a file that is no log.
    rest: VecDeque<Unread>,
}

/// The bytes of a log without a headline that are kept, as it may be a dump.
const MOST_HEAD: usize = 64 << 20;

impl Texts {
    fn new(lines: Lines, gpu: Option<Target>) -> Self {
        let is_log = InputKind::of_path(&lines.path) == Some(InputKind::Log);
        let log = is_log.then(|| LogReader::new(&lines.path));
        let (head, waiting) = (String::new(), VecDeque::new());
        Self {
            lines,
            log,
            head,
            waiting,
            programs: 0,
            confirmed: 0,
            returned: 0,
            target: gpu,
            ended: false,
            blank: true,
            has_headline: false,
            rest: VecDeque::new(),
        }
    }

    fn next_text(&mut self) -> Result<Option<Unread>, InputError> {
        while !self.ended && !self.is_ready() {
            match self.lines.next().transpose()? {
                Some(line) => self.line(&line)?,
                None => {
                    self.ended = true;
                    self.rest = self.end()?;
                }
            }
        }
        if let Some(text) = self.rest.pop_front() {
            return Ok(Some(text));
        }
        let Some(section) = self.waiting.pop_front() else { return Ok(None) };
        let (path, number) = (self.lines.path.clone(), self.returned);
        self.returned += 1;
        let name = path.display().to_string();
        Ok(Some(Unread {
            path,
            name: if self.is_one_of_several() { format!("{name}#{number}") } else { name },
            kind: InputKind::Nir,
            text: section.text,
            skipped: section.first_line - 1,
            target: self.target.unwrap_or_default(),
            code: None,
        }))
    }

    /// Returns true if the first program that waits needs no more of the file.
    fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && self.is_one_of_several() && self.returned < self.confirmed
    }

    fn is_one_of_several(&self) -> bool {
        self.programs + usize::from(self.log.as_ref().is_some_and(LogReader::is_in_nir)) > 1
    }

    fn line(&mut self, line: &str) -> Result<(), InputError> {
        self.blank &= line.trim().is_empty();
        if self.log.is_none() {
            let by_name = InputKind::of_path(&self.lines.path);
            self.head.push_str(line);
            if by_name.is_none() && is_headline(line.trim_end_matches('\n')) {
                let mut log = LogReader::new(&self.lines.path);
                let head = std::mem::take(&mut self.head);
                for line in head.lines() {
                    let section = log.line(line)?;
                    self.section(section);
                }
                self.log = Some(log);
            }
            return Ok(());
        }
        if self.has_headline || is_headline(line.trim_end_matches('\n')) {
            self.has_headline = true;
            self.head.clear();
        } else if self.head.len() < MOST_HEAD {
            self.head.push_str(line);
        }
        let line = line.trim_end_matches('\n');
        self.check_generation(line)?;
        let ended = self.log.as_mut().map_or(Ok(None), |log| log.line(line))?;
        self.section(ended);
        Ok(())
    }

    fn section(&mut self, section: Option<Section>) {
        if let Some(section) = section.filter(|section| matches!(section.kind, SectionKind::NirFinal { .. })) {
            self.programs += 1;
            self.waiting.push_back(section);
        }
    }

    /// Reads the generation that a line names, if it does.
    fn check_generation(&mut self, line: &str) -> Result<(), InputError> {
        let Some(found) = log::generation(&LogLine::of(line).text) else { return Ok(()) };
        expect_generation(&mut self.target, &self.lines.path, self.lines.number(), found)?;
        self.confirmed = self.programs;
        Ok(())
    }

    /// At the end of the file: its programs, if it is no log.
    fn end(&mut self) -> Result<VecDeque<Unread>, InputError> {
        let path = self.lines.path.clone();
        if let Some(log) = self.log.take() {
            if self.blank {
                return Err(InputError::Empty { path });
            }
            let head = std::mem::take(&mut self.head);
            if !self.has_headline
                && let Ok(source) = Source::from_bytes(&path, head.into_bytes())
                && source.kind == InputKind::Code
            {
                return texts_of(source, self.target);
            }
            let nothing = log.nothing();
            let last = log.end()?;
            self.section(last);
            return if self.programs == 0 { Err(nothing) } else { Ok(VecDeque::new()) };
        }
        let source = Source::from_bytes(&path, std::mem::take(&mut self.head).into_bytes())?;
        texts_of(source, self.target)
    }
}

/// Checks a generation that a log names against the GPU; the first one chooses the GPU, if none is given.
fn expect_generation(target: &mut Option<Target>, path: &Path, line: u32, found: Generation) -> Result<(), InputError> {
    let expected = target.get_or_insert_with(|| Target::of_generation(found));
    // The nir of a log can be compiled for a target of vec4, which has no logs of its own.
    if expected.generation == found || expected.backend != Backend::Ir3 {
        return Ok(());
    }
    let (generation, gpu) = (expected.generation, expected.name);
    let place = FilePosition { path: path.to_owned(), line, column: 1 };
    Err(InputError::OtherGeneration { place, found, expected: generation, gpu })
}

/// The GPU of a log.
///
/// # Errors
/// If the log is of several generations, or of another one than the given GPU.
pub fn target_of(path: &Path, log: &Log, gpu: Option<Target>) -> Result<Target, InputError> {
    let mut target = gpu;
    for (line, generation) in log.generations() {
        expect_generation(&mut target, path, line, generation)?;
    }
    Ok(target.unwrap_or_default())
}

/// The programs of a file that is no log.
fn texts_of(Source { path, kind, text }: Source, gpu: Option<Target>) -> Result<VecDeque<Unread>, InputError> {
    if kind == InputKind::Code {
        let of_code = |code: MachineCode| Unread {
            path: path.clone(),
            name: code.name.clone(),
            kind,
            text: String::new(),
            skipped: 0,
            target: code.target,
            code: Some(Box::new(code)),
        };
        return Ok(machine_code(&path, &text, gpu)?.into_iter().map(of_code).collect());
    }
    let name = path.display().to_string();
    // A vec4 or scalar program belongs to the one target that has the language.
    let target = match kind {
        InputKind::Vec4 if text.lines().find_map(vec4::text::begins).is_some_and(vec4::Mode::is_scalar) => GEN7_SCALAR,
        InputKind::Vec4 => GEN7,
        _ => gpu.unwrap_or_default(),
    };
    let unread = (kind != InputKind::Log).then_some(Unread { path, name, kind, text, skipped: 0, target, code: None });
    Ok(unread.into_iter().collect())
}

/// Loads the programs of a file, as [`unread`] finds them.
///
/// # Errors
/// If the file cannot be read, or is not such a text; with the position.
pub fn load(path: &Path, gpu: Option<Target>) -> Result<Vec<Named>, InputError> {
    unread(path, gpu).map(|text| text?.read()).collect()
}

/// Loads both programs of a pair.
///
/// # Errors
/// If one of them is not valid; with the position.
pub fn load_pair(pair: &TextPair, gpu: Option<Target>) -> Result<[Snapshot; 2], InputError> {
    let load = |source: &Source| {
        let only = load_source(source.clone(), gpu)?.into_iter().next();
        only.map(|named| named.program).ok_or_else(|| InputError::Empty { path: source.path.clone() })
    };
    let [before, after] = &pair.sources;
    Ok([load(before)?, load(after)?])
}

/// Loads the programs of a file that has been read.
///
/// # Errors
/// If it is not such a text; with the position.
pub fn load_source(source: Source, gpu: Option<Target>) -> Result<Vec<Named>, InputError> {
    let lines = Lines::of(&source.path.clone(), Cursor::new(source.text));
    let mut texts = Texts::new(lines, gpu);
    std::iter::from_fn(|| texts.next_text().transpose()).map(|text| text?.read()).collect()
}

/// Reads the first program of a text in nir or ir3, or of a log.
///
/// # Errors
/// If it is not such a text; with the position.
pub fn parse(text: &str, target: &Target) -> Result<Snapshot, InputError> {
    let path = Path::new("text");
    let lines = Lines::of(path, Cursor::new(text.to_owned()));
    let first = Texts::new(lines, Some(*target)).next_text()?;
    Ok(first.ok_or_else(|| InputError::NoNir { path: path.to_owned() })?.read()?.program)
}

/// Parses and validates the nir of a log.
///
/// # Errors
/// If it is not a valid program; with the position.
pub fn read_log_nir(path: &Path, section: &Section) -> Result<nir::Shader, InputError> {
    read_nir(path, &section.text, section.first_line.saturating_sub(1))
}

/// Parses and validates nir. The text begins after `skipped` lines of the file.
///
/// # Errors
/// If it is not nir; the position in the file.
pub fn read_nir(path: &Path, text: &str, skipped: u32) -> Result<nir::Shader, InputError> {
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

/// Parses and validates vec4.
fn read_vec4(path: &Path, text: &str) -> Result<vec4::Program, InputError> {
    vec4::text::read(text).map_err(|error| InputError::Syntax {
        place: FilePosition { path: path.to_owned(), line: error.line, column: error.column },
        found: error.found.clone(),
        expected: match error.message.is_empty() {
            true => error.expected.clone(),
            false => format!("{} ({})", error.expected, error.message),
        },
    })
}

/// Parses and validates the nir of a file, which may be a piece of a program.
fn read_nir_text(path: &Path, text: &str) -> Result<(nir::Shader, Vec<String>), InputError> {
    let Some(CompletedNir { text, added, taken }) = fragment::complete_nir(text) else {
        return Ok((read_nir(path, text, 0)?, Vec::new()));
    };
    let read = read_nir(path, &text, 0).map_err(|error| shifted(error, added));
    Ok((read?, taken))
}

/// An error of a text before which lines were added.
fn shifted(mut error: InputError, added: u32) -> InputError {
    if let InputError::Syntax { place, .. } | InputError::Invalid { place, .. } = &mut error {
        place.line = place.line.saturating_sub(added).max(1);
    }
    error
}

/// Parses and validates ir3, which may be a piece of a program. Returns the items that were added to it.
///
/// # Errors
/// If it is not ir3, or not valid for the target; the position in the file.
pub fn read_ir3(path: &Path, text: &str, target: &Target) -> Result<(ir3::Program, Vec<String>), InputError> {
    let of_syntax = |error: ir3::text::ParseError| {
        if let Some(OldText { line, column, sign, version }) = fragment::old_ir3(text) {
            return InputError::OldText { place: FilePosition { path: path.to_owned(), line, column }, sign, version };
        }
        let line = text.lines().nth(error.line.saturating_sub(1)).unwrap_or_default();
        let line = LogLine::of(line).text;
        let has_no_numbers = !fragment::is_ir3_line(&line) && encoding::begins_instruction(line.trim());
        InputError::Syntax {
            place: FilePosition { path: path.to_owned(), line: error.line as u32, column: error.column as u32 },
            found: error.found.clone(),
            expected: match has_no_numbers {
                true => "the numbers of the instruction before it (`0002:0001:000:`), as in the other lines".to_owned(),
                false => error.expected,
            },
        }
    };
    let is_valid = |program: &ir3::Program| {
        let Err(violations) = ir3::validate::validate(program, target, ir3::validate::Form::of(program)) else {
            return Ok(());
        };
        let Some(violation) = violations.first() else { return Ok(()) };
        // The text numbers its instructions, so the number identifies the line.
        let serial = violation.instr.map(|instr| format!("{:04}:", program.serials[instr]));
        let line = serial.and_then(|serial| text.lines().position(|line| line.contains(&serial)));
        let place = FilePosition { path: path.to_owned(), line: line.map_or(1, |line| line as u32 + 1), column: 1 };
        Err(InputError::Invalid { place, problem: violation.to_string() })
    };
    let whole = ir3::text::read(text).map_err(of_syntax).and_then(|program| is_valid(&program).map(|()| program));
    let error = match whole {
        Ok(program) => return Ok((program, Vec::new())),
        Err(error) => error,
    };
    let notation = fragment::from_notation(text);
    // A program that declares its stage or its results is whole.
    let is_declared = text.lines().any(|line| LogLine::of(line).text.starts_with("// {"));
    if notation.is_none() && (is_declared || has_end(text) && has_block(text)) {
        return Err(error);
    }
    let (program, completion) = ir3::text::read_fragment(notation.as_deref().unwrap_or(text)).map_err(of_syntax)?;
    is_valid(&program)?;
    Ok((program, taken(&completion)))
}

/// Returns true if a text of ir3 has the end of a program.
fn has_end(text: &str) -> bool {
    text.lines().any(|raw| {
        let line = LogLine::of(raw).text;
        let opcode = line.split("//").next().unwrap_or_default().rsplit([':', ')']).next().unwrap_or_default();
        line.contains(':') && matches!(opcode.split_whitespace().next(), Some("end" | "chmask"))
            || line.contains(" end ssa_")
            || line.contains("\tend ")
    })
}

fn has_block(text: &str) -> bool {
    text.lines().any(|raw| LogLine::of(raw).text.trim_start_matches("(jp)").starts_with("block"))
}

/// The parts that were added to a piece of a program, in words.
fn taken(completion: &ir3::text::Completion) -> Vec<String> {
    let ir3::text::Completion { inputs, blocks, is_without_block, is_without_end } = completion;
    let mut taken = Vec::new();
    if *is_without_block {
        taken.push("a block around the lines".to_owned());
    }
    if !inputs.is_empty() {
        taken.push(format!("the inputs {}", inputs.join(", ")));
    }
    if !blocks.is_empty() {
        let names: Vec<String> = blocks.iter().map(|number| format!("block{number}")).collect();
        taken.push(format!("the end at {}, which the text does not have", names.join(", ")));
    }
    if *is_without_end {
        taken.push("an `end` after the last line".to_owned());
    }
    taken
}
