//! Input files: finding them, their kinds, and the errors of those that cannot be read.

mod error;

use std::fs;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use ir3_compiler::i965::vec4;
use ir3_compiler::log_line::LogLine;
use ir3_compiler::machine::{encoding, listing};

use super::{fragment, paste};
use crate::turnip::is_shader;
pub use error::{FilePosition, InputError};

/// The languages of input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// A nir program.
    Nir,
    /// A vec4 program.
    Vec4,
    /// An ir3 program, in SSA form or with registers.
    Ir3,
    /// Machine code: a listing that one of Mesa's tools printed, or assembly.
    Code,
    /// A log of Mesa's ir3 compiler.
    Log,
}

impl InputKind {
    /// The kind that a file name determines.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "nir" => Some(Self::Nir),
            "vec4" => Some(Self::Vec4),
            "ir3" => Some(Self::Ir3),
            "asm" => Some(Self::Code),
            "log" => Some(Self::Log),
            _ => None,
        }
    }

    /// The kind that a text determines: a log by its headline, otherwise by the first line of a known language; machine
    /// code if neither matches.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let mut kind = None;
        for raw in text.lines() {
            if is_headline(raw) {
                return Some(Self::Log);
            }
            let line = LogLine::of(raw).text;
            // It follows a header like that of nir.
            if vec4::text::begins(&line).is_some() {
                return Some(Self::Vec4);
            }
            if kind.is_some() {
                continue;
            }
            let block = line.strip_prefix("(jp)").unwrap_or(&line);
            if line.starts_with("shader: ") || line.starts_with("impl ") {
                kind = Some(Self::Nir);
            } else if block.strip_prefix("block").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                kind = Some(Self::Ir3);
            }
        }
        kind.or_else(|| Self::of_fragment(text)).or_else(|| has_code(text).then_some(Self::Code))
    }

    /// The kind of a piece of a program, by its first line that only one language has.
    fn of_fragment(text: &str) -> Option<Self> {
        let of_line = |raw| {
            let line = LogLine::of(raw).text;
            match () {
                () if fragment::is_ir3_line(&line) => Some(Self::Ir3),
                () if fragment::is_nir_line(&line) => Some(Self::Nir),
                () => None,
            }
        };
        text.lines().find_map(of_line).or_else(|| fragment::from_notation(text).map(|_| Self::Ir3))
    }

    /// The kind of a file. The text decides where a name is wrong: a dump that is called a log.
    fn of(path: &Path, text: &str) -> Option<Self> {
        match Self::of_path(path) {
            Some(Self::Log) if !text.lines().any(is_headline) && has_code(text) => Some(Self::Code),
            Some(Self::Ir3 | Self::Nir) if text.lines().any(|raw| listing::is_listing_line(&LogLine::of(raw).text)) => {
                Some(Self::Code)
            }
            Some(Self::Ir3) if is_assembly(text) => Some(Self::Code),
            Some(kind) => Some(kind),
            None => Self::of_text(text),
        }
    }
}

/// Returns true for machine code, with neither a block nor a numbered instruction.
fn is_assembly(text: &str) -> bool {
    let of_program = |raw| {
        let line = LogLine::of(raw).text;
        line.trim_start_matches("(jp)").starts_with("block") || fragment::is_ir3_line(&line)
    };
    !text.lines().any(of_program) && has_code(text)
}

/// Returns true if a text has a line that only machine code has, or nothing but instructions. Other tools print single
/// words, such as `nop`.
fn has_code(text: &str) -> bool {
    let mut only = true;
    let mut any = false;
    for raw in text.lines() {
        let line = LogLine::of(raw).text;
        let line = line.trim();
        let bare = line.split(';').next().unwrap_or_default().trim();
        if bare.is_empty() || line.starts_with("//") || bare.ends_with(':') {
            continue;
        }
        if listing::is_listing_line(line) || bare.starts_with('@') && listing::Directive::read(bare).is_ok() {
            return true;
        }
        // Flags at the end are those of the next instruction.
        let without_flags = bare.split('(').next().unwrap_or_default().trim();
        let is_instruction = encoding::begins_instruction(bare) || encoding::begins_instruction(without_flags);
        if is_instruction && bare.contains(['(', '.', '#']) {
            return true;
        }
        (only, any) = (only && is_instruction, any || is_instruction);
    }
    only && any
}

/// Returns true for a line that only logs have.
pub fn is_headline(raw: &str) -> bool {
    let line = LogLine::of(raw).text;
    line.starts_with("NIR (final form) for ") || line.starts_with("AFTER: ")
}

/// An input file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// Its kind.
    pub kind: InputKind,
    /// The text of the file.
    pub text: String,
}

impl Source {
    /// Reads a file, or standard input for `-`, and determines its kind from its name or, if that is not possible, from
    /// its text.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, is not text, or is of no known kind.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let (path, mut reader) = open(path)?;
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|cause| unreadable(&path, cause))?;
        Self::from_bytes(&path, bytes)
    }

    /// Like [`read`](Self::read), from the bytes of the file.
    ///
    /// # Errors
    /// If the file is empty, is not text, or is of no known kind.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, InputError> {
        let text = text_of(path, bytes)?;
        let Some(kind) = InputKind::of(path, &text) else {
            let first: String = text.trim_start().lines().next().unwrap_or_default().chars().take(60).collect();
            return Err(InputError::UnknownKind { path: path.to_owned(), found: format!("`{}`", first.trim_end()) });
        };
        Ok(Self { path: path.to_owned(), kind, text })
    }
}

/// The text of a file of any kind, without additions around it.
///
/// # Errors
/// If the file is compressed, is not text, or is empty.
pub fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, InputError> {
    let mut bytes = without_wrapping(path, bytes)?;
    drop_byte_order_mark(&mut bytes);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // An application may print anything between the lines of a log; a file that does not begin with text is no log.
        Err(error) if is_log(path) && error.as_bytes()[..error.utf8_error().valid_up_to()].contains(&b'\n') => {
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
        Err(error) => return Err(not_text(path, &error)),
    };
    if text.trim().is_empty() {
        return Err(InputError::Empty { path: path.to_owned() });
    }
    Ok(text)
}

/// The original bytes of a text that was encoded or pasted in another way.
fn without_wrapping(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, InputError> {
    if let Some((name, command)) = paste::compression(&bytes) {
        return Err(InputError::Compressed { path: path.to_owned(), name, command });
    }
    let bytes = paste::from_utf16(&bytes).map_or(bytes, String::into_bytes);
    Ok(match std::str::from_utf8(&bytes).map(paste::unwrap) {
        Ok(std::borrow::Cow::Owned(text)) => text.into_bytes(),
        _ => bytes,
    })
}

/// Removes the mark with which some editors begin a text. It has no column.
fn drop_byte_order_mark(bytes: &mut Vec<u8>) {
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(.."\u{feff}".len());
    }
}

fn is_log(path: &Path) -> bool {
    InputKind::of_path(path) == Some(InputKind::Log)
}

/// Opens a file, or standard input for `-`. Returns its name, too.
fn open(path: &Path) -> Result<(PathBuf, Box<dyn BufRead + Send>), InputError> {
    if is_standard_input(path) {
        return Ok((PathBuf::from("<stdin>"), Box::new(BufReader::new(io::stdin()))));
    }
    let file = fs::File::open(path).map_err(|cause| unreadable(path, cause))?;
    let is_stream = file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    let path = path.to_owned();
    let mut reader: Box<dyn BufRead + Send> = Box::new(BufReader::new(file));
    // The lines of a stream are used as they come.
    if is_stream {
        return Ok((path, reader));
    }
    let start = reader.fill_buf().map_err(|cause| unreadable(&path, cause))?;
    let is_text = |start: &[u8]| match std::str::from_utf8(start) {
        Ok(text) => paste::is_wrapped(text),
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).is_ok_and(paste::is_wrapped),
    };
    if paste::compression(start).is_some() || paste::from_utf16(start).is_some() || is_text(start) {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|cause| unreadable(&path, cause))?;
        reader = Box::new(Cursor::new(without_wrapping(&path, bytes)?));
    }
    Ok((path, reader))
}

/// The lines of a file as they come, each with its end.
pub struct Lines {
    /// The name of the file.
    pub path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    /// The number of lines so far.
    lines: u32,
}

impl Lines {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let (path, reader) = open(path)?;
        Ok(Self { path, reader, lines: 0 })
    }

    /// The lines that a reader brings, with the name of the file.
    pub fn of(path: &Path, reader: impl BufRead + Send + 'static) -> Self {
        Self { path: path.to_owned(), reader: Box::new(reader), lines: 0 }
    }

    /// The number of lines so far.
    pub const fn number(&self) -> u32 {
        self.lines
    }
}

impl Iterator for Lines {
    type Item = Result<String, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.reader.read_until(b'\n', &mut line) {
            Err(cause) => return Some(Err(unreadable(&self.path, cause))),
            Ok(0) => return None,
            Ok(_) => {}
        }
        self.lines += 1;
        if self.lines == 1 {
            drop_byte_order_mark(&mut line);
        }
        Some(match String::from_utf8(line) {
            Ok(line) => Ok(line),
            Err(error) if self.lines == 1 => Err(not_text(&self.path, &error)),
            // Bytes that are not text are an application's, between the lines of a log.
            Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        })
    }
}

/// Expands paths to input files: a file is itself, a folder its programs in sorted order, including its subfolders. In
/// a folder, the two sides of a pair (`name.before.nir`, `name.after.ir3`) are left out, which are for `check`, and
/// file tests, which are two programs.
///
/// # Errors
/// If a path cannot be read, or a folder contains no program.
pub fn collect_paths(paths: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let Found { files, problems } = find_paths(paths);
    problems.into_iter().next().map_or(Ok(files), Err)
}

/// The input files of paths, and the errors of the others.
#[derive(Debug, Default)]
pub struct Found {
    /// The files.
    pub files: Vec<PathBuf>,
    /// One for each path or folder that cannot be read, or has no program.
    pub problems: Vec<InputError>,
}

/// Like [`collect_paths`], but a path that cannot be read does not hide the others.
pub fn find_paths(paths: &[PathBuf]) -> Found {
    find(paths, false)
}

/// Like [`find_paths`], but a folder without a program or a log is replaced by the shaders in it.
pub fn find_shaders(paths: &[PathBuf]) -> Found {
    find(paths, true)
}

fn find(paths: &[PathBuf], with_shaders: bool) -> Found {
    let mut found = Found::default();
    for path in paths {
        if is_standard_input(path) {
            found.files.push(path.clone());
            continue;
        }
        match fs::metadata(path) {
            Err(cause) => found.problems.push(unreadable(path, cause)),
            Ok(metadata) if metadata.is_dir() => {
                let before = (found.files.len(), found.problems.len());
                walk(path, &is_input, &mut found);
                if with_shaders && (found.files.len(), found.problems.len()) == before {
                    walk(path, &is_shader, &mut found);
                }
                if (found.files.len(), found.problems.len()) == before {
                    found.problems.push(without_programs(path));
                }
            }
            Ok(_) => found.files.push(path.clone()),
        }
    }
    found
}

/// The error of a folder without a program, by the other inputs that are in it.
fn without_programs(folder: &Path) -> InputError {
    let count = |is_wanted: &dyn Fn(&Path) -> bool| {
        let mut others = Found::default();
        walk(folder, is_wanted, &mut others);
        others.files.len()
    };
    let path = folder.to_owned();
    match (count(&|path| InputKind::of_path(path).is_some() && is_file_test(path)), count(&is_pair)) {
        (0, 0) => InputError::NoPrograms { path },
        (0, count) => InputError::OnlyPairs { path, count },
        (count, _) => InputError::OnlyFileTests { path, count },
    }
}

/// Finds the pairs of a folder and its subfolders, in sorted order: files of two programs, and folders of refuted
/// pairs.
///
/// # Errors
/// If the folder has no pair, or a folder in it cannot be read.
pub fn find_pairs(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let mut found = Found::default();
    walk(folder, &is_pair, &mut found);
    let Found { mut files, mut problems } = found;
    let folders = problems.extract_if(.., |problem| matches!(problem, InputError::PairFolder { .. }));
    files.extend(folders.filter_map(|problem| match problem {
        InputError::PairFolder { path } => Some(path),
        _ => None,
    }));
    files.sort();
    match (problems.into_iter().next(), files.is_empty()) {
        (Some(problem), _) => Err(problem),
        (None, true) => Err(match without_programs(folder) {
            InputError::NoPrograms { path } => InputError::NoPairs { path },
            tests => tests,
        }),
        (None, false) => Ok(files),
    }
}

/// Returns true for a file of two programs.
fn is_pair(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "pair")
}

/// Returns true for the folder of a refuted pair.
pub fn is_pair_folder(path: &Path) -> bool {
    path.join(PAIR_FILE).is_file()
}

/// The file of a refuted pair's folder that has its title and its GPU.
pub const PAIR_FILE: &str = "pair.json";

/// Returns true for files of a folder that are programs or logs.
fn is_input(path: &Path) -> bool {
    InputKind::of_path(path).is_some() && !is_side_of_pair(path) && !is_file_test(path)
}

fn walk(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool, found: &mut Found) {
    if let Err(problem) = walk_folder(folder, is_wanted, found) {
        found.problems.push(problem);
    }
}

fn walk_folder(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool, found: &mut Found) -> Result<(), InputError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|cause| unreadable(folder, cause))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    // Only the program itself is an input of a bundle.
    if entries.iter().any(|entry| entry.file_name() == "bundle.json") {
        found.files.extend(entries.iter().filter(|entry| entry.file_name() == "program.nir").map(fs::DirEntry::path));
        return Ok(());
    }
    if entries.iter().any(|entry| entry.file_name() == PAIR_FILE) {
        return Err(InputError::PairFolder { path: folder.to_owned() });
    }
    for entry in entries {
        let path = entry.path();
        // Hidden files: files that are being written, and files of other tools.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // A link to a folder is not followed: it may lead to a cycle.
        if entry.file_type().map_err(|cause| unreadable(&path, cause))?.is_dir() {
            walk(&path, is_wanted, found);
        } else if is_wanted(&path) && !path.is_dir() {
            found.files.push(path);
        }
    }
    Ok(())
}

/// Returns true for `name.before.nir` and the like.
fn is_side_of_pair(path: &Path) -> bool {
    let side = path.file_stem().and_then(|stem| Path::new(stem).extension());
    side.is_some_and(|side| side == "before" || side == "after")
}

/// Returns true for a file test: its first line is `// test <pass>`. A file that cannot be read is refused by its
/// reader.
fn is_file_test(path: &Path) -> bool {
    const START: &[u8] = b"// test ";
    let mut start = Vec::with_capacity(START.len());
    let read = fs::File::open(path).and_then(|file| file.take(START.len() as u64).read_to_end(&mut start));
    read.is_ok() && start == START
}

/// Returns true for `-`.
fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn unreadable(path: &Path, cause: io::Error) -> InputError {
    let path = path.to_owned();
    match cause.kind() {
        io::ErrorKind::NotFound => InputError::Missing { path },
        _ => InputError::Unreadable { path, cause },
    }
}

fn not_text(path: &Path, error: &std::string::FromUtf8Error) -> InputError {
    let offset = error.utf8_error().valid_up_to();
    let before = String::from_utf8_lossy(&error.as_bytes()[..offset]);
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
    let place = FilePosition { path: path.to_owned(), line, column };
    InputError::NotText { place, byte: error.as_bytes()[offset], offset }
}

#[cfg(test)]
mod tests;
