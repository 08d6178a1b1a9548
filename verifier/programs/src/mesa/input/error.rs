//! The errors of input files: each message has the place, the found and the expected text.

use crate::turnip::{Kind, WorkerError};
use ir3_compiler::target::Generation;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A position in a file; line and column count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The file.
    pub path: PathBuf,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

/// An error in an input. Each message has the place, the found and the expected text.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// There is no such path.
    #[error("{path}: found no such file or folder, expected a program, a log, or a folder of them", path = path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The system refused to read it.
    #[error("{path}: cannot be read: {cause}", path = path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// The file is empty.
    #[error("{path}:1:1: found an empty file, expected a program", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file does not have two programs.
    #[error(
        "{path}: found {found} line{s} `// after`, expected two files, or one with a line `// after` between two programs \
         (a name for each of several: `// after NAME`, `// pair NAME`)",
        path = path.display(),
        s = plural(*found)
    )]
    NoPair {
        /// The file.
        path: PathBuf,
        /// The number of lines that separate programs.
        found: usize,
    },
    /// The file is not text.
    #[error("{place}: found the byte {byte:#04x} at offset {offset}, expected UTF-8 text")]
    NotText {
        /// The position of the first invalid byte.
        place: FilePosition,
        /// The invalid byte.
        byte: u8,
        /// Its offset.
        offset: usize,
    },
    /// The file is compressed.
    #[error("{path}: found a file compressed by {name}, expected text: unpack it with `{command}`", path = path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The compression.
        name: &'static str,
        /// The command that unpacks it.
        command: &'static str,
    },
    /// Neither its name nor its text determines the kind of the file.
    #[error(
        "{path}:1:1: found {found}, expected a nir program (`shader: MESA_SHADER_…`), an ir3 program (`block0 {{`), machine code \
         (`add.f r0.x, r0.y, r0.z`, or a listing of ir3-disasm, cffdump or crashdec) or a log of Mesa's ir3",
        path = path.display()
    )]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// A folder without input files.
    #[error("{path}: found no program in the folder, expected .nir, .ir3 or .log files", path = path.display())]
    NoPrograms {
        /// The folder.
        path: PathBuf,
    },
    /// A folder whose only programs are file tests.
    #[error(
        "{path}: found no program in the folder but {count} file test{s} (`// test PASS`), which `cargo test -p ir3-verifier --test suite \
         file_tests::` runs, expected .nir, .ir3 or .log files",
        path = path.display(),
        s = plural(*count)
    )]
    OnlyFileTests {
        /// The folder.
        path: PathBuf,
        /// The number of file tests.
        count: usize,
    },
    /// A folder whose only programs are those of pairs.
    #[error(
        "{path}: found no program in the folder but {count} pair{s}, which `ir3-equiv check` compares, expected .nir, .ir3 or .log files",
        path = path.display(),
        s = plural(*count)
    )]
    OnlyPairs {
        /// The folder.
        path: PathBuf,
        /// The number of pairs.
        count: usize,
    },
    /// The folder of a refuted pair, where a program to compile is expected.
    #[error(
        "{path}: found the two programs of a refuted pair, expected a program to compile: `ir3-equiv check {path}` compares them, \
         `ir3-equiv show {path}` writes the page",
        path = path.display()
    )]
    PairFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A folder without a pair.
    #[error(
        "{path}: found no pair in the folder, expected .pair files (two programs with a line `// after` between them), or folders of \
         refuted pairs, which `mesa` and `check --failures` write",
        path = path.display()
    )]
    NoPairs {
        /// The folder.
        path: PathBuf,
    },
    /// A folder where a file is expected.
    #[error("{path}: found a folder, expected {expected}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The expected input.
        expected: &'static str,
    },
    /// A log without a nir section.
    #[error("{path}: found no `NIR (final form)` section in the log, expected one at least", path = path.display())]
    NoNir {
        /// The log.
        path: PathBuf,
    },
    /// A log of another compiler than ir3.
    #[error("{place}: found `{found}`, a line of {printer}, expected a log of ir3 (`IR3_SHADER_DEBUG`)")]
    OtherCompiler {
        /// The position of the line.
        place: FilePosition,
        /// The line.
        found: String,
        /// The compiler, and the variable that makes it print.
        printer: &'static str,
    },
    /// A log of another generation than that of the GPU to compile for.
    #[error("{place}: found a log of {found}, expected one of {expected}, that of {gpu}")]
    OtherGeneration {
        /// The line that names the generation.
        place: FilePosition,
        /// The generation of the log.
        found: Generation,
        /// The generation of the GPU to compile for.
        expected: Generation,
        /// The name of that GPU.
        gpu: &'static str,
    },
    /// A section of a log that ends in the middle of a program.
    #[error("{place}: the section `{section}` is cut off: found {found}, expected {expected}")]
    CutOff {
        /// The position where it ends.
        place: FilePosition,
        /// The section's title.
        section: String,
        /// The text that was found.
        found: String,
        /// The text that was expected.
        expected: String,
    },
    /// A section that is interrupted by another headline.
    #[error(
        "{place}: lines of two shaders are mixed at line {line}, or the section `{section}` is cut off: found the next headline, expected {expected}",
        line = place.line
    )]
    Interrupted {
        /// The position before the headline.
        place: FilePosition,
        /// The section's title.
        section: String,
        /// The text that was expected.
        expected: String,
    },
    /// A section that has lines of two programs.
    #[error("{place}: lines of two shaders are mixed at line {line}: found {found} in the section `{section}`, expected {expected}", line = place.line)]
    Mixed {
        /// The first line that cannot be of the same program as those before it, or that where reading failed.
        place: FilePosition,
        /// The section's title.
        section: String,
        /// The text that was found.
        found: String,
        /// The text that was expected.
        expected: String,
    },
    /// Sections of two shaders in turn, each of them whole.
    #[error(
        "{place}: sections of two shaders are mixed: found `{section}` after the final code of the shader at line {}, expected nir, because the \
         shader at line {} had no final code when that one began",
        shaders[1], shaders[0]
    )]
    MixedSections {
        /// The first section that is left.
        place: FilePosition,
        /// Its title.
        section: String,
        /// The lines of the two shaders.
        shaders: [u32; 2],
    },
    /// A listing of words that lacks lines.
    #[error("{place}: lines of the hex listing are lost: found {found}, expected word {expected}")]
    LostWords {
        /// The line after the lost ones.
        place: FilePosition,
        /// The text that was found.
        found: String,
        /// The number of the word that was expected.
        expected: usize,
    },
    /// A log whose lines are wrapped.
    #[error(
        "{place}: found {count} lines that are broken off at this column and go on in the next line, expected each line of Mesa as one \
         line: the log was wrapped by a terminal or a mail program; write it to a file (`2> shaders.log`)"
    )]
    Wrapped {
        /// The first such line.
        place: FilePosition,
        /// The number of such lines.
        count: usize,
    },
    /// A log that begins inside of a program.
    #[error(
        "{place}: found `{found}`, a line of a program without a headline, expected `NIR (final form) for …` or `AFTER: …` before it: \
         the beginning of the log is missing"
    )]
    NoStart {
        /// The first line of the program.
        place: FilePosition,
        /// That line.
        found: String,
    },
    /// A program that parses and breaks a rule of its language.
    #[error("{place}: {problem}")]
    Invalid {
        /// The position of the program.
        place: FilePosition,
        /// The rule, with the found and the expected text.
        problem: String,
    },
    /// A shader that the driver does not compile.
    #[error("{}", not_compiled(path, *kind, detail))]
    NotCompiled {
        /// The file.
        path: PathBuf,
        /// The end of the compilation.
        kind: Kind,
        /// The reason.
        detail: String,
    },
    /// There is no driver to compile a shader with.
    #[error("{path}: {cause}", path = path.display())]
    NoDriver {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: WorkerError,
    },
    /// A text of a version of Mesa that is not read.
    #[error("{place}: found `{sign}`, which {version} prints, expected text of Mesa 23.1 or later")]
    OldText {
        /// The position of the sign.
        place: FilePosition,
        /// The sign.
        sign: &'static str,
        /// The version.
        version: &'static str,
    },
    /// A syntax error.
    #[error("{place}: found {found}, expected {expected}")]
    Syntax {
        /// The position of the error.
        place: FilePosition,
        /// The text that was found.
        found: String,
        /// The text that was expected.
        expected: String,
    },
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The message for a shader that is not compiled. An error of a translator has its place in the text, if the translator
/// reports one.
fn not_compiled(path: &Path, kind: Kind, detail: &str) -> String {
    match kind {
        Kind::Untranslated if detail.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{}:{detail}", path.display())
        }
        _ => format!("{}: {kind}: {detail}", path.display()),
    }
}

impl InputError {
    /// The position of the error.
    #[must_use]
    pub const fn place(&self) -> Option<&FilePosition> {
        match self {
            Self::NotText { place, .. }
            | Self::OtherCompiler { place, .. }
            | Self::OtherGeneration { place, .. }
            | Self::CutOff { place, .. }
            | Self::Interrupted { place, .. }
            | Self::Mixed { place, .. }
            | Self::Wrapped { place, .. }
            | Self::NoStart { place, .. }
            | Self::Invalid { place, .. }
            | Self::OldText { place, .. }
            | Self::Syntax { place, .. } => Some(place),
            _ => None,
        }
    }

    /// Returns true if a log was read and has no program.
    #[must_use]
    pub const fn is_without_program(&self) -> bool {
        matches!(self, Self::NoNir { .. } | Self::OtherCompiler { .. })
    }
}
