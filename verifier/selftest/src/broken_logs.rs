//! Damaged logs of Mesa: truncated, mixed with the output of applications, or interleaved from two shaders.
//!
//! Reading such a log must end with a message that names the line, never with a panic, and its complete parts must
//! still be checked.

use ir3_compiler::target::Target;
use ir3_harness::check::Verdict;
use ir3_harness::mesa::{Settings, check_shader};
use ir3_programs::mesa::input::Lines;
use ir3_programs::mesa::shader::shaders_in;
use ir3_programs::mesa::{Log, SectionKind};
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::random::Random;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

/// The kind of damage to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breakage {
    /// The log is truncated at a byte.
    Cut,
    /// The log is truncated before a headline.
    CutAtSection,
    /// Lines of an application are inserted between those of Mesa.
    Lines,
    /// Such lines have another prefix, or are messages of Mesa.
    OtherPrefixes,
    /// The log has the colour codes of a terminal, and line ends of Windows.
    Colours,
    /// The start of an application's line is inserted before some of Mesa's.
    PartialLines,
    /// An application's text is inserted in the middle of one of Mesa's lines.
    TornLine,
    /// Lines of another shader are inserted between its lines.
    Mixed,
    /// Lines of one section of another shader are inserted into one of its sections.
    MixedSection,
}

impl Breakage {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Cut,
        Self::CutAtSection,
        Self::Lines,
        Self::OtherPrefixes,
        Self::Colours,
        Self::PartialLines,
        Self::TornLine,
        Self::Mixed,
        Self::MixedSection,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut at a byte",
            Self::CutAtSection => "cut at a section",
            Self::Lines => "other lines",
            Self::OtherPrefixes => "other prefixes",
            Self::Colours => "colours and CRLF",
            Self::PartialLines => "partial lines before",
            Self::TornLine => "torn line",
            Self::Mixed => "two shaders mixed",
            Self::MixedSection => "a section mixed",
        }
    }

    /// Returns true if the damage must not change the verdict of any boundary.
    const fn changes_nothing(self) -> bool {
        matches!(self, Self::Lines | Self::OtherPrefixes | Self::Colours | Self::PartialLines)
    }
}

/// A broken log.
pub struct BrokenLog {
    /// The kind of damage.
    pub breakage: Breakage,
    /// The byte or line of the damage.
    pub at: usize,
    bytes: Vec<u8>,
    /// The number of boundaries of which both sections are undamaged.
    intact: usize,
}

/// The start of a section in a log.
struct Headline {
    at: usize,
    is_program: bool,
    /// True if a boundary ends here: the section before is one of the same shader.
    follows: bool,
}

fn headlines(path: &Path, text: &str) -> Vec<Headline> {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let sections = Log::read(path, text).map(|log| log.sections).unwrap_or_default();
    let mut was_program = false;
    let mut found = Vec::new();
    for section in sections {
        let (is_nir, is_ir3) = match section.kind {
            SectionKind::NirFinal { .. } => (true, false),
            SectionKind::Ir3After { .. } => (false, true),
            _ => (false, false),
        };
        let line = (section.first_line as usize).saturating_sub(2);
        found.push(Headline {
            at: starts.get(line).copied().unwrap_or(0),
            is_program: is_nir || is_ir3,
            follows: is_ir3 && was_program,
        });
        was_program = is_nir || is_ir3;
    }
    found
}

/// The number of boundaries whose sections end before a byte.
fn intact(headlines: &[Headline], end: usize) -> usize {
    headlines.windows(2).filter(|pair| pair[0].follows && pair[1].at <= end).count()
}

/// The broken variants of a log: `cuts` at evenly spaced bytes, `sections` at headlines, and one of each other kind.
/// `other` is a log to be mixed with it.
pub fn broken(path: &Path, text: &str, other: &str, cuts: usize, sections: usize, seed: u64) -> Vec<BrokenLog> {
    let headlines = headlines(path, text);
    let all = intact(&headlines, text.len() + 1);
    let mut logs = Vec::new();
    let mut put = |breakage, at, bytes, intact| logs.push(BrokenLog { breakage, at, bytes, intact });
    for number in 1..=cuts {
        let at = text.len() * number / (cuts + 1);
        put(Breakage::Cut, at, text.as_bytes()[..at].to_vec(), intact(&headlines, at));
    }
    for number in 0..sections.min(headlines.len()) {
        let at = headlines[headlines.len() * number / sections.min(headlines.len())].at;
        put(Breakage::CutAtSection, at, text.as_bytes()[..at].to_vec(), intact(&headlines, at));
    }
    let mut random = Random::new(seed);
    for breakage in Breakage::ALL {
        let changed = match breakage {
            Breakage::Cut | Breakage::CutAtSection => continue,
            Breakage::Mixed => mixed(text, other, &mut random),
            Breakage::MixedSection => mixed_section(text, other, &headlines, &mut random),
            _ => noisy(text, breakage, &mut random),
        };
        let Some((at, text)) = changed else { continue };
        let intact = match breakage {
            _ if breakage.changes_nothing() => all,
            // Two boundaries have the section.
            Breakage::TornLine | Breakage::MixedSection => all.saturating_sub(2),
            _ => 0,
        };
        put(breakage, at, text.into_bytes(), intact);
    }
    logs
}

/// Lines as applications print them.
const FOREIGN: [&str; 5] = ["fps: 60", "[info] loading level 3 {", "}", "shader cache: 12 hits", "\tat main.c:17"];

/// The log with text of an application in it, and the last line at which text was inserted.
fn noisy(text: &str, breakage: Breakage, random: &mut Random) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_mesa = |line: &str| line.starts_with("MESA: info: ");
    let torn = if breakage == Breakage::TornLine {
        let long: Vec<usize> = (0..lines.len())
            .filter(|&at| is_mesa(lines[at]) && lines[at].len() > 40 && lines[at].contains(":\u{20}\t"))
            .collect();
        Some(random.pick(&long)?)
    } else {
        None
    };
    let mut out = String::new();
    let mut last = 0;
    for (at, line) in lines.iter().enumerate() {
        let chance = random.chance(10);
        let foreign = random.pick(&FOREIGN)?;
        let mut put = |text: &str| {
            out.push_str(text);
            last = at + 1;
        };
        match breakage {
            // Without a prefix, Mesa's lines cannot be distinguished from those of an application.
            Breakage::Lines if chance && is_mesa(line) => put(&format!("{foreign}\n")),
            Breakage::OtherPrefixes if chance && is_mesa(line) => {
                let prefix = random.pick(&["MESA: warning: ", "APP: info: ", "\u{1b}[33mwarn\u{1b}[0m: "])?;
                put(&format!("{prefix}{foreign}\n"));
            }
            Breakage::PartialLines if chance && is_mesa(line) => put("loading... "),
            _ => {}
        }
        match breakage {
            Breakage::Colours => {
                put(&format!("\u{1b}[1;32m{}\u{1b}[0m\r\n", line.replace("info: ", "info: \u{1b}[0m")));
                continue;
            }
            Breakage::TornLine if torn == Some(at) => {
                let middle = line.len() - 8;
                put(&format!("{}fps: 60\n{}", line.get(..middle)?, line.get(middle..)?));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    Some((last, out))
}

/// Two logs, whose lines alternate in groups of random lengths.
fn mixed(text: &str, other: &str, random: &mut Random) -> Option<(usize, String)> {
    let mut sides = [text.lines().peekable(), other.lines().peekable()];
    let mut out = String::new();
    let mut side = 0;
    while sides.iter_mut().any(|side| side.peek().is_some()) {
        for _ in 0..=random.below(6) {
            if let Some(line) = sides[side].next() {
                out.push_str(line);
                out.push('\n');
            }
        }
        side = 1 - side;
    }
    Some((0, out))
}

/// Inserts lines of a section of another log between those of one section.
fn mixed_section(text: &str, other: &str, headlines: &[Headline], random: &mut Random) -> Option<(usize, String)> {
    let start = other.find("AFTER: ")?;
    let start = start + other[start..].find('\n')? + 1;
    let other: Vec<&str> = other[start..].lines().take_while(|line| !line.contains("AFTER: ")).take(40).collect();
    let sections: Vec<usize> =
        (0..headlines.len().checked_sub(1)?).filter(|&at| headlines[at].follows && headlines[at].is_program).collect();
    let section = random.pick(&sections)?;
    let range = headlines[section].at..headlines[section + 1].at;
    let mut out = text[..range.start].to_owned();
    let mut own = text[range.clone()].lines();
    out.push_str(own.next()?);
    out.push('\n');
    let at = out.lines().count();
    let mut others = other.into_iter();
    for line in own {
        out.push_str(line);
        out.push('\n');
        for line in others.by_ref().take(2) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.push_str(&text[range.end..]);
    Some((at, out))
}

/// The result of checking a broken log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokenOutcome {
    /// The panic, if there was one.
    pub panic: Option<String>,
    /// The messages.
    pub messages: Vec<String>,
    /// The sections that could not be read.
    pub unread: usize,
    /// The boundaries of which both sides could be read.
    pub checked: usize,
    /// The verdicts of all boundaries by name.
    pub verdicts: BTreeMap<&'static str, usize>,
    /// The refuted boundaries.
    pub refuted: Vec<String>,
}

impl BrokenOutcome {
    /// Returns the fault of the reader on a log, if it has one. `whole` is the outcome of the undamaged log.
    pub fn fault(&self, log: &BrokenLog, whole: &Self) -> Option<String> {
        if let Some(panic) = &self.panic {
            return Some(format!("a panic: {panic}"));
        }
        if log.breakage.changes_nothing() && (self.verdicts != whole.verdicts || self.unread > 0) {
            return Some(format!("verdicts {:?} instead of {:?}; {:?}", self.verdicts, whole.verdicts, self.messages));
        }
        if self.checked < log.intact {
            return Some(format!(
                "{} of {} intact boundaries are checked; {:?}",
                self.checked, log.intact, self.messages
            ));
        }
        if let Some(new) = self.refuted.iter().find(|pass| !whole.refuted.contains(pass)) {
            return Some(format!("{new} is refuted"));
        }
        let has_line = |message: &String| {
            message.split([':', ' ']).any(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()))
        };
        if self.unread > 0 && !self.messages.iter().any(has_line) {
            return Some(format!("no message with a line: {:?}", self.messages));
        }
        let is_mixed = matches!(log.breakage, Breakage::Mixed | Breakage::MixedSection);
        if is_mixed && !self.messages.iter().any(|message| message.contains("lines of two shaders are mixed at line "))
        {
            return Some(format!("mixed lines are not named: {:?}", self.messages));
        }
        None
    }
}

/// Reads and checks a damaged log.
pub fn outcome(path: &Path, log: &BrokenLog, gpu: Option<Target>, settings: &Settings<'_>) -> BrokenOutcome {
    check(path, log.bytes.clone(), gpu, settings)
}

/// Reads and checks the undamaged log.
pub fn whole(path: &Path, text: &str, gpu: Option<Target>, settings: &Settings<'_>) -> BrokenOutcome {
    check(path, text.as_bytes().to_vec(), gpu, settings)
}

fn check(path: &Path, bytes: Vec<u8>, gpu: Option<Target>, settings: &Settings<'_>) -> BrokenOutcome {
    let mut outcome = BrokenOutcome::default();
    let caught = catch(|| {
        for shader in shaders_in(Lines::of(path, Cursor::new(bytes))) {
            let file = match shader {
                Ok(file) => file,
                // A log that ends before the first section.
                Err(error) if error.is_without_program() => {
                    outcome.messages.push(error.to_string());
                    continue;
                }
                Err(error) => {
                    outcome.unread += 1;
                    outcome.messages.push(error.to_string());
                    continue;
                }
            };
            let shader = &file.shader;
            let target = shader.target(gpu);
            let recovered = check_shader(path, shader, &target, settings, &mut |checked| {
                *outcome.verdicts.entry(checked.verdict.name()).or_default() += 1;
                outcome.checked += usize::from(checked.is_read());
                if !checked.is_read() {
                    // The row has the reason.
                    outcome.messages.extend(checked.verdict.reason());
                }
                if matches!(checked.verdict, Verdict::Refuted(_)) {
                    outcome.refuted.push(checked.name);
                }
            });
            outcome.unread += recovered.unread;
            outcome.messages.extend(recovered.problems);
        }
    });
    outcome.panic = caught.err().map(|panic| format!("{}: {}", panic.place, panic.message));
    outcome
}
