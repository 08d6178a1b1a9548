//! A case: the first line with its options, the input, the expected outcome.
//!
//! The first line is `// test <pass>` and options:
//!
//! - `gpu=NAME` (a660 by default), `disable=FEATURE,…`, `skip=ARM,…`, `max-registers=LIMIT` and
//!   `allocator=ALLOCATOR[:RULE]`, as for `ir3-equiv compile`;
//! - `prove=unknown`: the provers cannot prove this case. The interpreter still runs it.
//!
//! The next line is a comment that describes the case. After the input comes one of
//!
//! - `// expect`, and the output;
//! - `// expect unchanged`: the pass does not change the program;
//! - `// expect refused: TEXT`: the pass refuses the program, by an error that contains the text.

use ir3_compiler::pipeline::{Feature, Options, Stage};
use ir3_compiler::target::Target;

/// The pass that a case runs.
#[derive(Clone, Copy, Debug)]
pub enum CasePass {
    /// A stage of the pipeline.
    Stage(Stage),
    /// The insertion of nops alone, which is a part of legalization.
    Delays,
}

impl CasePass {
    const DELAYS: &str = "delays";

    pub fn name(self) -> &'static str {
        match self {
            Self::Stage(stage) => stage.name(),
            Self::Delays => Self::DELAYS,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        match Stage::from_name(name) {
            Some(stage) => Some(Self::Stage(stage)),
            None => (name == Self::DELAYS).then_some(Self::Delays),
        }
    }

    /// The language that it reads, as the extension of files.
    pub fn reads(self) -> &'static str {
        match self {
            Self::Stage(stage) if stage < Stage::Vec4Select || stage.is_selection() => "nir",
            Self::Stage(stage) if stage < Stage::Select => "vec4",
            _ => "ir3",
        }
    }
}

/// The outcome of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This program.
    Text(String),
    /// The input.
    Unchanged,
    /// An error that contains this text.
    Refused(String),
}

/// A parsed case.
#[derive(Clone, Debug)]
pub struct FileCase {
    /// The file, as errors print it.
    pub name: String,
    pub pass: CasePass,
    pub target: Target,
    pub options: Options,
    /// False if the first line has `prove=unknown`.
    pub is_proved: bool,
    /// The text up to the line `// expect`: the input of the readers, with the numbers of the file's lines.
    pub input: String,
    /// The number of the line `// expect`, from 1.
    pub expect_line: usize,
    pub expected: Expected,
}

const EXPECT: &str = "// expect";
const OPTIONS: &str = "gpu, disable, skip, max-registers, allocator, prove";

impl FileCase {
    /// Reads a case. `name` is its path, whose folder is the name of the pass.
    ///
    /// # Errors
    /// If the text is no case: file, line, the text found and the text expected.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let fail = |line: usize, problem: String| Err(format!("{name}:{line}: {problem}"));
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.first().copied().unwrap_or_default();
        let mut case = match first.strip_prefix("// test") {
            Some(header) => Self::header(name, header).or_else(|problem| fail(1, problem))?,
            None => return fail(1, format!("found `{first}`, expected `// test <pass>` and options")),
        };
        let is_about = |line: &&str| line.strip_prefix("// ").is_some_and(|about| !about.starts_with(['{', ' ']));
        if lines.get(1).filter(|line| is_about(line)).is_none() {
            return fail(2, "found no comment, expected a description of the case".to_owned());
        }
        let is_expect = |line: &str| line.starts_with(EXPECT);
        let Some(at) = lines.iter().position(|line| is_expect(line)) else {
            return fail(lines.len(), format!("found the end of the file, expected a line `{EXPECT}`"));
        };
        let after = &lines[at + 1..];
        if let Some(second) = after.iter().position(|line| is_expect(line)) {
            return fail(at + second + 2, format!("found a second `{EXPECT}`"));
        }
        case.expected = match lines[at].strip_prefix(EXPECT) {
            Some("") => Expected::Text(after.iter().flat_map(|line| [line, "\n"]).collect()),
            Some(" unchanged") => Expected::Unchanged,
            Some(rest) if rest.strip_prefix(" refused: ").is_some_and(|why| !why.is_empty()) => {
                Expected::Refused(rest[" refused: ".len()..].to_owned())
            }
            _ => {
                let expected = "expected `// expect`, `// expect unchanged` or `// expect refused: TEXT`";
                return fail(at + 1, format!("found `{}`, {expected}", lines[at]));
            }
        };
        let word = match case.expected {
            Expected::Text(_) => None,
            Expected::Unchanged => Some("unchanged"),
            Expected::Refused(_) => Some("refused"),
        };
        if let (Some(word), Some(_)) = (word, after.first()) {
            return fail(at + 2, format!("found text after `{EXPECT} {word}`"));
        }
        case.input = lines[..at].iter().flat_map(|line| [line, "\n"]).collect();
        case.expect_line = at + 1;
        Ok(case)
    }

    /// Reads the options after `// test` in the first line.
    fn header(name: &str, header: &str) -> Result<Self, String> {
        let mut words = header.split_whitespace();
        let names = || {
            let stages = Stage::every().map(Stage::name);
            stages.chain([CasePass::DELAYS]).collect::<Vec<_>>().join(", ")
        };
        let pass = words.next().ok_or_else(|| format!("found no pass, expected one of {}", names()))?;
        let Some(pass) = CasePass::from_name(pass) else {
            return Err(format!("found the pass `{pass}`, expected one of {}", names()));
        };
        let mut path = name.rsplit('/');
        let extension = path.next().and_then(|file| file.rsplit_once('.')).map_or("", |(_, extension)| extension);
        if extension != pass.reads() {
            let (pass, reads) = (pass.name(), pass.reads());
            return Err(format!("found a file of {extension}, expected one of {reads}, which {pass} reads"));
        }
        if let Some(folder) = path.next().filter(|&folder| folder != pass.name()) {
            return Err(format!("found the pass `{}` in the folder of {folder}", pass.name()));
        }
        let mut case = Self {
            name: name.to_owned(),
            pass,
            target: Target::by_name("a660").map_err(|error| error.to_string())?,
            options: Options::default(),
            is_proved: true,
            input: String::new(),
            expect_line: 0,
            expected: Expected::Unchanged,
        };
        let mut seen = Vec::new();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(format!("found `{word}`, expected an option as key=value"));
            };
            if seen.contains(&key) {
                return Err(format!("found {key} twice"));
            }
            seen.push(key);
            case.option(key, value)?;
        }
        Ok(case)
    }

    fn option(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "gpu" => {
                self.target =
                    Target::by_name(value).map_err(|_| format!("found the GPU `{value}`, which is unknown"))?;
            }
            "disable" => {
                for name in value.split(',') {
                    let feature = Feature::from_name(name).ok_or_else(|| {
                        let names: Vec<&str> = Options::default().features.iter().map(Feature::name).collect();
                        format!("found the feature `{name}`, expected one of {}", names.join(", "))
                    })?;
                    self.options = self.options.without(feature);
                }
            }
            "skip" => self.options.skip = value.parse()?,
            "allocator" => self.options.allocator = value.parse()?,
            "max-registers" => self.options.registers = value.parse()?,
            "prove" if value == "unknown" => self.is_proved = false,
            "prove" => return Err(format!("found `prove={value}`, expected prove=unknown")),
            _ => return Err(format!("found the option `{key}`, expected {OPTIONS}")),
        }
        Ok(())
    }

    /// The text of the case with the outcome that was found in place of the expected one.
    pub fn blessed(&self, text: &str, found: &Expected) -> String {
        let mut blessed: String = text.lines().take(self.expect_line - 1).flat_map(|line| [line, "\n"]).collect();
        blessed += EXPECT;
        match found {
            Expected::Text(output) => {
                blessed.push('\n');
                blessed += output;
            }
            Expected::Unchanged => blessed += " unchanged\n",
            Expected::Refused(why) => {
                blessed += " refused: ";
                blessed += why.lines().next().unwrap_or_default();
                blessed.push('\n');
            }
        }
        blessed
    }
}
