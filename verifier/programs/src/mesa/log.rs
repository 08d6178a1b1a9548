//! Parser for logs of Mesa's ir3 compiler: splits them into sections.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::input::{FilePosition, InputError};
use super::mixed::mixed_at;
use super::origin::Foreign;
use ir3_compiler::log_line::LogLine;
use ir3_compiler::target::Generation;

/// The kind of a section.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SectionKind {
    /// The nir that ir3 receives.
    NirFinal {
        /// The stage in the headline: `VERT`, `BVERT` (the binning variant), `FRAG`, `CL` …
        stage: String,
    },
    /// The ir3 program after a pass.
    Ir3After {
        /// The pass in the headline: `nir->ir3`, `ir3_cp`, `register allocation` …
        pass: String,
    },
    /// The final assembly.
    NativeCode,
    /// The costs of the program, and the registers of its inputs and outputs.
    Statistics,
    /// The machine words in hexadecimal, with their disassembly.
    Listing,
    /// The text before the first headline.
    Other,
}

/// One section of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its kind.
    pub kind: SectionKind,
    /// Its headline; empty if it has none.
    pub headline: String,
    /// The line in the file, counted from 1, on which `text` begins (the one after the headline, if there is one).
    pub first_line: u32,
    /// The lines without log prefixes and colours, as many as in the file.
    pub text: String,
    /// The number of characters that were removed from the beginning of each line.
    prefixes: Vec<u32>,
}

/// A log as sections, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The sections. A log of several variants (a vertex shader has a binning variant too) repeats them.
    pub sections: Vec<Section>,
}

impl Section {
    fn new(kind: SectionKind, first_line: u32) -> Self {
        Self { kind, headline: String::new(), first_line, text: String::new(), prefixes: Vec::new() }
    }

    /// Maps a line and a column of the text to the file, all counted from 1; line 0 is the headline.
    #[must_use]
    pub fn place(&self, line: u32, column: u32) -> (u32, u32) {
        let prefix = line.checked_sub(1).and_then(|i| self.prefixes.get(i as usize));
        ((self.first_line + line).saturating_sub(1), column + prefix.copied().unwrap_or(0))
    }

    /// The number of characters of each line, as it is in the file. A line of another program has none.
    pub(super) fn widths(&self) -> impl Iterator<Item = u32> {
        self.text.lines().zip(&self.prefixes).map(|(line, prefix)| line.chars().count() as u32 + prefix)
    }

    /// Returns true if the first line has a log prefix.
    pub(super) fn is_prefixed(&self) -> bool {
        self.prefixes.first().is_some_and(|&prefix| prefix > 0)
    }

    /// The error of a section that has lines of two programs, from this line of its text on.
    pub fn mixed(&self, path: &Path, line: u32) -> InputError {
        let found = self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim();
        let found = format!("`{}`", found.chars().take(60).collect::<String>());
        let (line, column) = self.place(line, 1);
        InputError::Mixed {
            place: FilePosition { path: path.to_owned(), line, column },
            section: self.title(),
            found,
            expected: "the next line of the same program, or a headline before this one".to_owned(),
        }
    }

    /// The name of the section in messages.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.kind {
            SectionKind::NirFinal { stage } => format!("NIR (final form) for {stage} shader"),
            SectionKind::Ir3After { pass } => format!("AFTER: {pass}"),
            SectionKind::NativeCode => "Native code".to_owned(),
            SectionKind::Statistics => "statistics".to_owned(),
            SectionKind::Listing => "hex listing".to_owned(),
            SectionKind::Other => "text before the first section".to_owned(),
        }
    }

    fn push(&mut self, line: &LogLine<'_>) {
        self.text.push_str(&line.text);
        self.text.push('\n');
        self.prefixes.push(line.prefix);
    }

    /// Leaves out a last line that is the start of a headline: the log ends there, and the program before it may be
    /// whole.
    fn drop_cut_headline(&mut self) {
        let is_program = matches!(self.kind, SectionKind::NirFinal { .. } | SectionKind::Ir3After { .. });
        let Some(last) = self.text.lines().last().filter(|last| is_program && !last.is_empty()) else { return };
        if [NIR, AFTER, NATIVE].iter().any(|headline| headline.starts_with(last)) {
            self.text.truncate(self.text.len() - last.len() - 1);
            self.prefixes.pop();
        }
    }

    /// Finds the place where the text is cut off, or has an unmatched brace: its line and column in the text, the found
    /// and the expected text.
    fn flaw(&self) -> Option<(u32, u32, String, String)> {
        if !matches!(self.kind, SectionKind::NirFinal { .. } | SectionKind::Ir3After { .. }) {
            return None;
        }
        // The lines of the open braces.
        let mut open: Vec<u32> = Vec::new();
        let mut any = false;
        let mut last = 0;
        for (number, line) in (1..).zip(self.text.lines()) {
            if !line.is_empty() {
                last = number;
            }
            // nir_print writes the brace of an `if` or `loop` after its comment: `if %49  // don't flatten {`.
            let opens =
                ["if ", "loop ", "con loop ", "div loop "].iter().any(|start| line.trim_start().starts_with(start));
            let in_comment = opens && line.ends_with('{');
            let code = if in_comment { line } else { line.split_once("//").map_or(line, |(code, _)| code) };
            for (column, c) in (1..).zip(code.chars()) {
                match c {
                    '{' => {
                        any = true;
                        open.push(number);
                    }
                    '}' if open.pop().is_none() => {
                        return Some((number, column, "`}`".into(), "a `{` before it".into()));
                    }
                    _ => {}
                }
            }
        }
        // An empty section ends at its headline.
        let column = self.text.lines().nth((last as usize).wrapping_sub(1)).map_or(1, |l| l.chars().count() as u32 + 1);
        if let Some(&opened) = open.last() {
            let (line, _) = self.place(opened, 1);
            return Some((last, column, "the end of the section".into(), format!("`}}` for the `{{` of line {line}")));
        }
        let wants_body = match &self.kind {
            SectionKind::NirFinal { .. } => !self.text.lines().any(|line| line.starts_with("impl ")),
            _ => !any,
        };
        if wants_body {
            let wanted = if matches!(self.kind, SectionKind::NirFinal { .. }) { "`impl main {`" } else { "a block" };
            return Some((last, column, "the end of the section".into(), wanted.into()));
        }
        None
    }
}

impl Log {
    /// Splits a log into its sections.
    ///
    /// # Errors
    /// If a section is cut off.
    pub fn read(path: &Path, raw: &str) -> Result<Self, InputError> {
        let mut reader = LogReader::new(path);
        let mut sections = Vec::new();
        for line in raw.lines() {
            sections.extend(reader.line(line)?);
        }
        sections.extend(reader.end()?);
        Ok(Self { sections })
    }

    /// The generations that the lines about the code name (`; gpu gen 6, …`), with the numbers of the lines.
    pub fn generations(&self) -> impl Iterator<Item = (u32, Generation)> {
        self.sections.iter().flat_map(|section| {
            let line = move |(at, line)| Some((section.place(at, 1).0, generation(line)?));
            (1..).zip(section.text.lines()).filter_map(line)
        })
    }

    /// The line of another compiler before the first section.
    fn foreign(&self) -> Option<Foreign> {
        let section = self.sections.first().filter(|section| section.kind == SectionKind::Other)?;
        let signs = (1..).zip(section.text.lines()).map(|(at, line)| {
            let (line_number, column) = section.place(at, 1);
            Foreign::of_line(line, line_number, column - 1)
        });
        signs.fold(None, Foreign::or)
    }

    /// Returns the nir sections.
    ///
    /// # Errors
    /// If there are none: such a log has no program to start from.
    pub fn nir(&self, path: &Path) -> Result<Vec<&Section>, InputError> {
        let sections: Vec<_> =
            self.sections.iter().filter(|s| matches!(s.kind, SectionKind::NirFinal { .. })).collect();
        if sections.is_empty() {
            return Err(Foreign::error(self.foreign(), path));
        }
        Ok(sections)
    }
}

/// The start of the headline of nir.
const NIR: &str = "NIR (final form) for ";
/// The headline of the program after a pass.
const AFTER: &str = "AFTER: ";
/// The headline of the final assembly.
const NATIVE: &str = "Native code for ";

/// The bytes after which no more lines of a section are kept: it is cut off there.
const MOST_SECTION: usize = 16 << 20;

/// The prefix of lines that Mesa logs.
const PREFIX: &str = "MESA: info: ";

/// Splits a log into its sections line by line, as the log comes.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    current: Section,
    /// True if the current section's headline has a log prefix.
    is_prefixed: bool,
    /// The lines so far.
    lines: u32,
    /// True if lines of the current section were not kept.
    is_cut: bool,
    /// The line of another compiler before the first section.
    foreign: Option<Foreign>,
}

impl LogReader {
    /// A reader of a log that has not begun.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            current: Section::new(SectionKind::Other, 1),
            is_prefixed: false,
            lines: 0,
            is_cut: false,
            foreign: None,
        }
    }

    /// The path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error of a log that has nothing of ir3.
    pub fn nothing(&self) -> InputError {
        Foreign::error(self.foreign.clone(), &self.path)
    }

    /// Returns true while it reads nir.
    pub fn is_in_nir(&self) -> bool {
        matches!(self.current.kind, SectionKind::NirFinal { .. })
    }

    /// Returns true while it reads a program: nir, ir3 or the final assembly.
    pub fn is_in_program(&self) -> bool {
        matches!(
            self.current.kind,
            SectionKind::NirFinal { .. } | SectionKind::Ir3After { .. } | SectionKind::NativeCode
        )
    }

    /// Reads a line; returns the section that it ends.
    ///
    /// # Errors
    /// If that section is cut off.
    pub fn line(&mut self, raw: &str) -> Result<Option<Section>, InputError> {
        self.lines += 1;
        let line = without_foreign_start(raw);
        let Some((kind, is_body)) = headline(&line.text, &self.current.kind) else {
            // If Mesa's lines have a prefix, one without is another program's.
            let is_foreign = self.is_in_program() && self.is_prefixed && line.prefix == 0;
            if self.current.kind == SectionKind::Other {
                let found = Foreign::of_line(&line.text, self.lines, line.prefix);
                self.foreign = Foreign::or(self.foreign.take(), found);
            }
            let empty = LogLine { text: Cow::Borrowed(""), prefix: 0 };
            if self.is_full() {
                self.is_cut = true;
                return Ok(None);
            }
            self.current.push(if is_foreign { &empty } else { &line });
            return Ok(None);
        };
        self.is_prefixed = line.prefix > 0;
        let first_line = if is_body { self.lines } else { self.lines + 1 };
        let ended = std::mem::replace(&mut self.current, Section::new(kind, first_line));
        if is_body {
            self.current.push(&line);
        } else {
            self.current.headline = line.text.into_owned();
        }
        self.close(ended)
    }

    /// Returns true if the current section has as many lines as are kept.
    fn is_full(&self) -> bool {
        // Each line has its prefix, too.
        self.current.text.len() + 4 * self.current.prefixes.len() > MOST_SECTION
    }

    /// Returns true after the code of a program.
    pub fn is_after_code(&self) -> bool {
        matches!(self.current.kind, SectionKind::Statistics | SectionKind::Listing)
    }

    /// Ends the current section before the next headline, if it may be complete.
    pub fn between(&mut self) -> Option<Section> {
        if !self.is_after_code() {
            return None;
        }
        self.is_cut = false;
        Some(std::mem::replace(&mut self.current, Section::new(SectionKind::Other, self.lines + 1)))
    }

    /// Returns the last section.
    ///
    /// # Errors
    /// If it is cut off.
    pub fn end(mut self) -> Result<Option<Section>, InputError> {
        let mut last = std::mem::replace(&mut self.current, Section::new(SectionKind::Other, 0));
        last.drop_cut_headline();
        let cut_native = last.kind == SectionKind::NativeCode;
        let (line, column) = last.place(last.prefixes.len() as u32, 1);
        let last = self.close(last)?;
        if cut_native {
            return Err(InputError::CutOff {
                place: FilePosition { path: self.path, line, column },
                section: "Native code".to_owned(),
                found: "the end of the file".to_owned(),
                expected: "the program's statistics".to_owned(),
            });
        }
        Ok(last)
    }

    /// A finished section, unless it is empty.
    fn close(&mut self, section: Section) -> Result<Option<Section>, InputError> {
        // Lines after the statistics or a listing belong to the application, in any number.
        let is_open = matches!(section.kind, SectionKind::Other | SectionKind::Statistics | SectionKind::Listing);
        if std::mem::take(&mut self.is_cut) && !is_open {
            let (line, column) = section.place(section.prefixes.len() as u32, 1);
            let (found, expected) = (format!("more than {} MiB", MOST_SECTION >> 20), "the next headline".to_owned());
            let place = FilePosition { path: self.path.clone(), line, column };
            return Err(InputError::CutOff { place, section: section.title(), found, expected });
        }
        if let Some((line, column, found, expected)) = section.flaw() {
            if let Some(line) = mixed_at(&section) {
                return Err(section.mixed(&self.path, line));
            }
            let (line, column) = section.place(line, column);
            let place = FilePosition { path: self.path.clone(), line, column };
            return Err(InputError::CutOff { place, section: section.title(), found, expected });
        }
        let is_empty = section.kind == SectionKind::Other && section.text.trim().is_empty();
        Ok((!is_empty).then_some(section))
    }
}

/// A line without prefix and colours. An application may have printed the start of a line of its own before Mesa
/// printed; and a log that breaks off in a line may be followed by another one, whose first line is a headline.
fn without_foreign_start(raw: &str) -> LogLine<'_> {
    let line = LogLine::of(raw);
    let Some(at) = (if line.prefix == 0 { raw.find(PREFIX) } else { raw.rfind(PREFIX) }) else { return line };
    let LogLine { text, prefix } = LogLine::of(&raw[at..]);
    if line.prefix > 0 && ![NIR, AFTER, NATIVE].iter().any(|headline| text.starts_with(headline)) {
        return line;
    }
    let start = LogLine::of(&raw[..at]);
    let skipped = start.prefix + start.text.chars().count() as u32;
    // A message of Mesa has no text.
    LogLine { text, prefix: if prefix == 0 { 0 } else { prefix + skipped } }
}

/// The generation that a line about the code names.
pub fn generation(line: &str) -> Option<Generation> {
    let number = line.strip_prefix("; gpu gen ")?;
    let number: u32 = number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Generation::ALL.into_iter().find(|generation| generation.number() == number)
}

/// The kind of section that a line begins, and whether the line is part of that section.
fn headline(line: &str, current: &SectionKind) -> Option<(SectionKind, bool)> {
    if let Some(rest) = line.strip_prefix(NIR) {
        let stage = rest.split(' ').next().unwrap_or_default().to_owned();
        // The compiler for Intel has this headline with names of stages in full.
        if stage.starts_with(|c: char| c.is_ascii_lowercase()) {
            return None;
        }
        return Some((SectionKind::NirFinal { stage }, false));
    }
    if let Some(rest) = line.strip_prefix(AFTER) {
        let pass = rest.strip_suffix(':').unwrap_or(rest).to_owned();
        return Some((SectionKind::Ir3After { pass }, false));
    }
    if line.starts_with(NATIVE) && !is_of_intel(line) {
        return Some((SectionKind::NativeCode, false));
    }
    if line.starts_with("; hex listing") {
        return Some((SectionKind::Listing, false));
    }
    // The first comment after the code that names its stage: `; VERT: outputs: …`. The comments before the code
    // (`; num_ubos: 1`) have no upper-case word.
    let in_code = *current == SectionKind::NativeCode;
    let names_stage = |rest: &str| rest.split([':', ' ']).next().is_some_and(is_stage);
    if in_code && line.strip_prefix("; ").is_some_and(names_stage) {
        return Some((SectionKind::Statistics, true));
    }
    None
}

/// Returns true for the headline of code that the compiler for Intel prints, with the name of a stage in full:
/// `Native code for unnamed fragment shader …`. Names of shaders may be anything.
fn is_of_intel(line: &str) -> bool {
    let mut stages = line.match_indices(" shader").filter_map(|(at, _)| line[..at].rsplit(' ').next()).peekable();
    stages.peek().is_some() && !stages.any(is_stage)
}

fn is_stage(word: &str) -> bool {
    word.len() >= 2 && word.bytes().all(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
hello
MESA: info: NIR (final form) for VERT shader (null):
MESA: info: shader: MESA_SHADER_VERTEX
MESA: info: impl main {
MESA: info:     block b0:  // preds: {
MESA: info:     if %0  // flatten {
MESA: info:     }
MESA: info: }
MESA: info: 
MESA: info: AFTER: nir->ir3:
MESA: info: block0 {
MESA: info: \t0001:0000:000: \tend
MESA: info: }
MESA: info: AFTER: register allocation:
MESA: info: block0 {
MESA: warning: something else
MESA: info: }
MESA: info: Native code for unnamed VERT shader (null) with sha1 00:
MESA: info: ; num_ubos: 0
MESA: info: end
MESA: info: ; VERT: outputs: r0.x
MESA: info: ; VERT prog 1/1: 20 instr
; gpu gen 6
; hex listing: index[hi_lo] disasm
0000[03000000_00000000] end
";

    fn read(text: &str) -> Result<Log, InputError> {
        Log::read(Path::new("x.log"), text)
    }

    #[test]
    fn sections_keep_their_lines() {
        let log = read(LOG).unwrap();
        let kinds: Vec<_> = log.sections.iter().map(|s| (s.title(), s.first_line)).collect();
        let expected = [
            ("text before the first section", 1),
            ("NIR (final form) for VERT shader", 3),
            ("AFTER: nir->ir3", 11),
            ("AFTER: register allocation", 15),
            ("Native code", 19),
            ("statistics", 21),
            ("hex listing", 25),
        ];
        assert_eq!(kinds, expected.map(|(title, line)| (title.to_owned(), line)));
        assert_eq!(log.sections[2].text, "block0 {\n\t0001:0000:000: \tend\n}\n");
        assert_eq!(log.sections[3].text, "block0 {\n\n}\n");
        assert_eq!(log.sections[2].place(2, 1), (12, 13));
        assert_eq!(log.sections[6].place(1, 3), (25, 3));
        assert_eq!(log.sections[6].place(9, 3), (33, 3));
        assert_eq!(log.nir(Path::new("x.log")).unwrap().len(), 1);
        for section in &log.sections {
            let raw: Vec<_> = LOG.lines().skip(section.first_line as usize - 1).collect();
            for (raw, line) in raw.iter().zip(section.text.lines()) {
                assert!(raw.ends_with(line), "{raw} / {line}");
            }
        }
    }

    #[test]
    fn windows_line_ends_change_nothing() {
        assert_eq!(read(&LOG.replace('\n', "\r\n")).unwrap(), read(LOG).unwrap());
    }

    #[test]
    fn every_cut_is_complete_or_an_error_with_its_place() {
        let complete = read(LOG).unwrap();
        let lines: Vec<_> = LOG.lines().collect();
        for end in 1..lines.len() {
            let text = lines[..end].join("\n");
            match read(&text) {
                // The sections are prefixes of the complete ones.
                Ok(log) => {
                    for (part, complete) in log.sections.iter().zip(&complete.sections) {
                        assert!(complete.text.starts_with(part.text.trim_end_matches('\n')), "cut after {end}");
                    }
                }
                Err(InputError::CutOff { place, .. }) => assert!(place.line as usize <= end, "{place}"),
                Err(other) => panic!("cut after {end}: {other}"),
            }
        }
    }

    #[test]
    fn a_cut_section_says_what_is_missing() {
        let cut = |end: usize| {
            let text = LOG.lines().take(end).collect::<Vec<_>>().join("\n");
            read(&text).unwrap_err().to_string()
        };
        assert_eq!(
            cut(5),
            "x.log:5:39: the section `NIR (final form) for VERT shader` is cut off: \
             found the end of the section, expected `}` for the `{` of line 4"
        );
        assert!(cut(3).contains("expected `impl main {`"), "{}", cut(3));
        assert!(cut(10).contains("`AFTER: nir->ir3` is cut off: found the end of the section, expected a block"));
        assert!(cut(12).starts_with("x.log:12:"), "{}", cut(12));
        assert!(cut(2).starts_with("x.log:2:1: "), "{}", cut(2));
        assert!(cut(19).contains("expected the program's statistics"), "{}", cut(19));
        let extra = LOG.replace("\tend\n", "\tend }\n");
        assert!(read(&extra).unwrap_err().to_string().contains("found `}`, expected a `{` before it"));
    }

    #[test]
    fn a_log_without_nir_is_refused() {
        let log = read("AFTER: ir3_cp:\nblock0 {\n}\n").unwrap();
        let error = log.nir(Path::new("x.log")).unwrap_err();
        assert!(error.to_string().contains("no `NIR (final form)` section"), "{error}");
    }
}
