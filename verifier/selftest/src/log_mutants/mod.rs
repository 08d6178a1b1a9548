//! Changed logs of the real compiler: does `mesa` refute the pass whose section was changed?
//!
//! One thing in the text of one section is changed, after a pass or in the words of the final code (`changes`). The
//! whole log is recovered again from the changed text, so that the effect of the change on the recovery is a part of
//! the trial. A change for which the provers show that the section has the same meaning is *equivalent*; the others
//! have to be refuted, at the boundary before the section.

mod changes;
mod line;

pub use changes::kinds;

use changes::{Edit, Text};
use ir3_compiler::ir3::validate::{Form, Rule, validate};
use ir3_compiler::machine::listing;
use ir3_compiler::target::Target;
use ir3_harness::check::{EngineKind, Engines, Verdict};
use ir3_harness::mesa::recover::Contradiction;
use ir3_harness::mesa::{CODE, Checked, NIR, Settings, Sides, WHOLE};
use ir3_programs::mesa::Section;
use ir3_programs::mesa::native::listed_words;
use ir3_programs::mesa::shader::LogShader;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;
use std::path::Path;
use std::time::Duration;

/// Changes that are tried at a section until one can be read.
const TRIES: u32 = 12;
/// Environments in which a proved equivalence is run.
const ATTACKS: usize = 8;

/// The programs of a log, original or changed.
struct Version {
    sides: Sides<'static>,
    contradictions: Vec<Contradiction>,
    target: Target,
}

impl Version {
    fn of(path: &Path, shader: &LogShader, target: &Target, seed: u64) -> Self {
        let (sides, recovered) = Sides::of(path, shader, target, seed);
        Self { sides: sides.into_programs(), contradictions: recovered.contradictions, target: *target }
    }

    /// The number of programs.
    fn len(&self) -> usize {
        self.sides.all.len()
    }

    /// The name of a program: the pass that made it.
    fn name(&self, at: usize) -> &str {
        &self.sides.all[at].name
    }

    /// Returns true if a program can be read.
    fn has(&self, at: usize) -> bool {
        self.sides.all[at].program.is_ok()
    }

    /// Returns true if a program after a pass is the same in both, or cannot be read in both.
    fn is_same(&self, other: &Self, at: usize) -> bool {
        match (&self.sides.all[at].program, &other.sides.all[at].program) {
            (Ok(Snapshot::Ir3(own)), Ok(Snapshot::Ir3(other))) => own == other,
            (Ok(_), Ok(_)) => true,
            (own, other) => own.is_err() == other.is_err(),
        }
    }

    /// Returns true if the log contradicts itself in a section with this title, and the original does not: `mesa` ends
    /// with an error.
    fn contradicts(&self, original: &Self, title: &str) -> bool {
        let mut new = self.contradictions.iter().filter(|what| !original.contradictions.contains(what));
        new.any(|what| what.sections.iter().any(|section| section == title))
    }

    /// The number of rules of the language that a program after a pass breaks, without that of `(jp)`, which Mesa's
    /// validator does not have.
    fn violations(&self, at: usize) -> usize {
        match &self.sides.all[at].program {
            Ok(Snapshot::Ir3(program)) => {
                let all = validate(program, &self.target, Form::of(program)).err().unwrap_or_default();
                all.iter().filter(|violation| violation.rule != Rule::Reconvergence).count()
            }
            _ => 0,
        }
    }

    fn judge(&self, before: usize, after: usize, settings: &Settings<'_>) -> Checked<'static> {
        self.sides.judge([before, after], settings)
    }
}

/// The verdict of the check on a changed log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The boundary before the changed section is refuted, and none before it.
    Refuted,
    /// Another boundary is refuted first.
    RefutedElsewhere {
        /// Its name.
        pass: String,
    },
    /// No boundary is refuted, and `mesa` ends with an error: the section and another one contradict each other.
    Contradicted,
    /// The provers show that the section has the same meaning.
    Equivalent,
    /// No boundary is refuted, and that before the section is no pass.
    Unknown {
        /// The reason.
        why: String,
        /// A run shows that the changed section differs from the original one.
        differs: bool,
    },
    /// The boundary before the section passes, by runs.
    MissedTested {
        /// A run shows that the changed section differs from the original one.
        differs: bool,
    },
    /// The boundary is proved, or the sections are, and a run shows that they differ.
    MissedProved {
        /// The difference.
        why: String,
    },
}

/// A changed log, and its outcome.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The pass whose section was changed.
    pub pass: String,
    /// The kind of the change.
    pub kind: &'static str,
    /// The line of the log.
    pub line: u32,
    /// The line before the change.
    pub was: String,
    /// The line after it; empty if it was removed.
    pub is: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The engine that decided at the boundary.
    pub engine: &'static str,
    /// The share of the program on which the runs depend, if it was run.
    pub sensitivity: Option<f64>,
    /// CPU time of all checks.
    pub time: Duration,
}

/// Why there is no trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoTrial {
    /// The shader has no section that could be read whose predecessor could be read.
    NoSection,
    /// No change was found that can be read.
    NoChange,
    /// The boundary is refuted without the change.
    RefutedBefore,
}

/// The text of a section within a shader's log.
#[derive(Clone, Copy)]
enum Part {
    Pass(usize),
    Assembly,
    Listing,
}

impl Part {
    fn of(shader: &mut LogShader, part: Self) -> Option<&mut Section> {
        match part {
            Self::Pass(at) => shader.passes.get_mut(at),
            Self::Assembly => shader.assembly.as_mut(),
            Self::Listing => shader.listing.as_mut(),
        }
    }
}

/// Changes one section of a shader and checks the boundaries next to it.
///
/// # Errors
/// If there is nothing to change, or the effect of the change cannot be decided.
pub fn trial(
    path: &Path,
    shader: &mut LogShader,
    target: &Target,
    settings: &Settings<'_>,
    seed: u64,
) -> Result<Trial, NoTrial> {
    let mut random = Random::new(seed);
    let original = Version::of(path, shader, target, settings.seed);
    let first_pass = original.len() - shader.passes.len() - usize::from(shader.assembly.is_some());
    let sections: Vec<usize> = (1..original.len()).filter(|&at| original.has(at - 1) && original.has(at)).collect();
    let at = random.pick(&sections).ok_or(NoTrial::NoSection)?;
    let part = match at - first_pass {
        number if number < shader.passes.len() => Part::Pass(number),
        _ if shader.listing.is_some() => Part::Listing,
        _ => Part::Assembly,
    };
    let section = section_of(shader, part)?;
    let (text, first_line) = (section.text.clone(), section.first_line);
    let mut found = None;
    for _ in 0..TRIES {
        let changed = match part {
            Part::Listing => change_words(section_of(shader, part)?, target, &mut random),
            _ => {
                let text = Text::of(&text);
                text.change(&mut random).map(|edit| Change::of(&text, edit, |text, edit| text.with(edit), first_line))
            }
        };
        let Some(change) = changed else { continue };
        section_of(shader, part)?.text.clone_from(&change.text);
        let mutant = Version::of(path, shader, target, settings.seed);
        section_of(shader, part)?.text.clone_from(&text);
        let is_read = mutant.len() == original.len() && mutant.has(at);
        // A program that breaks a rule of the language is found by Mesa's own validator.
        if is_read && mutant.violations(at) <= original.violations(at) && !mutant.is_same(&original, at) {
            found = Some((change, mutant));
            break;
        }
    }
    let (change, mutant) = found.ok_or(NoTrial::NoChange)?;
    let mut trial = Trial {
        pass: original.name(at).to_owned(),
        kind: change.kind,
        line: change.line,
        was: change.was,
        is: change.is,
        outcome: Outcome::Refuted,
        engine: "",
        sensitivity: None,
        time: Duration::ZERO,
    };
    judge(&mut trial, &original, &mutant, at, settings)?;
    let title = Part::of(shader, part).map_or_else(String::new, |section| section.title().to_owned());
    let passes = matches!(
        trial.outcome,
        Outcome::RefutedElsewhere { .. } | Outcome::Unknown { .. } | Outcome::MissedTested { .. }
    );
    if passes && mutant.contradicts(&original, &title) {
        trial.outcome = Outcome::Contradicted;
    }
    Ok(trial)
}

fn section_of(shader: &mut LogShader, part: Part) -> Result<&mut Section, NoTrial> {
    Part::of(shader, part).ok_or(NoTrial::NoSection)
}

/// A changed text.
struct Change {
    kind: &'static str,
    line: u32,
    was: String,
    is: String,
    text: String,
}

impl Change {
    fn of(text: &Text<'_>, edit: Edit, print: impl FnOnce(&Text<'_>, &Edit) -> String, first_line: u32) -> Self {
        let is = edit.lines.iter().map(|(_, line)| line.trim()).collect::<Vec<_>>().join(" / ");
        Self {
            kind: edit.kind,
            line: first_line + edit.line as u32,
            was: text.line(edit.line).to_owned(),
            is,
            text: print(text, &edit),
        }
    }
}

/// Changes one word of a listing: as text, assembled again.
fn change_words(section: &Section, target: &Target, random: &mut Random) -> Option<Change> {
    let words = listed_words(section);
    let plain = listing::write_plain(&listing::disassemble(target.generation, &words));
    let text = Text::of(&plain);
    let edit = text.change(random)?;
    let new = listing::assemble(target.generation, &text.with(&edit)).ok()?;
    let same = listing::assemble(target.generation, &plain).ok()?;
    if new.len() != words.len() || same.len() != words.len() {
        return None;
    }
    let mut lines: Vec<String> = section.text.lines().map(str::to_owned).collect();
    let listed: Vec<usize> =
        listing::listings(&section.text).first()?.lines.iter().map(|line| line.line as usize).collect();
    let mut first = None;
    for (number, (&line, &word)) in listed.iter().zip(&new).enumerate() {
        // Changes that come from assembling alone are not part of the mutation.
        if word == same[number] {
            continue;
        }
        first = first.or(Some(line));
        let (start, rest) = lines[line].split_once('[')?;
        let (_, rest) = rest.split_once(']')?;
        lines[line] = format!("{start}[{:08x}_{:08x}]{rest}", word >> 32, word & 0xffff_ffff);
    }
    let line = section.first_line + first? as u32;
    let print = |_: &Text<'_>, _: &Edit| lines.iter().flat_map(|line| [&**line, "\n"]).collect();
    Some(Change { line, ..Change::of(&text, edit, print, 0) })
}

/// Checks the boundaries next to a changed section.
fn judge(
    trial: &mut Trial,
    original: &Version,
    mutant: &Version,
    at: usize,
    settings: &Settings<'_>,
) -> Result<(), NoTrial> {
    let is_refuted = |verdict: &Verdict| matches!(verdict, Verdict::Refuted(_));
    // The recovery may have carried the change to other sections.
    for earlier in 1..at {
        if mutant.is_same(original, earlier) && mutant.is_same(original, earlier - 1) {
            continue;
        }
        let checked = mutant.judge(earlier - 1, earlier, settings);
        trial.time += checked.time;
        if is_refuted(&checked.verdict) && !is_refuted(&original.judge(earlier - 1, earlier, settings).verdict) {
            trial.outcome = Outcome::RefutedElsewhere { pass: checked.name };
            trial.engine = checked.engine;
            return Ok(());
        }
    }
    let mut checked = mutant.judge(at - 1, at, settings);
    trial.time += checked.time;
    trial.engine = checked.engine;
    trial.sensitivity = checked.sensitivity.map(|it| it.share());
    if is_refuted(&checked.verdict) {
        if is_refuted(&original.judge(at - 1, at, settings).verdict) {
            return Err(NoTrial::RefutedBefore);
        }
        return Ok(());
    }
    let is_proved = |verdict: &Verdict| matches!(verdict, Verdict::Proved { .. });
    // Mutations that were made to the same original.
    let same = mutant.sides.judge_against(&original.sides, [at, at], settings);
    trial.time += same.time;
    if is_proved(&same.verdict) || is_proved(&checked.verdict) {
        let runs = Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() };
        let attack = Settings { engines: &runs, runs: ATTACKS, most_runs: ATTACKS, ..*settings };
        let attacked = mutant.sides.judge_against(&original.sides, [at, at], &attack);
        trial.time += attacked.time;
        trial.outcome = match &attacked.verdict {
            Verdict::Refuted(refutation) => Outcome::MissedProved { why: refutation.difference.to_string() },
            _ => Outcome::Equivalent,
        };
        return Ok(());
    }
    let differs = is_refuted(&same.verdict);
    // The boundary after it names the wrong pass, but names one.
    let next = if at + 1 < mutant.len() { Some((at, at + 1)) } else { None };
    let whole = (mutant.name(at) == CODE && mutant.name(0) == NIR).then_some((0, at));
    if let Some((before, after)) = next.or(whole) {
        let later = mutant.judge(before, after, settings);
        trial.time += later.time;
        if is_refuted(&later.verdict) && !is_refuted(&original.judge(before, after, settings).verdict) {
            // As in `mesa`: the input may identify the pass.
            if let Verdict::Refuted(refutation) = &later.verdict {
                mutant.sides.run_on(&mut checked, [at - 1, at], std::slice::from_ref(&refutation.env));
            }
            if is_refuted(&checked.verdict) {
                trial.engine = checked.engine;
                return Ok(());
            }
            let pass = if whole.is_some() { WHOLE.to_owned() } else { later.name };
            trial.outcome = Outcome::RefutedElsewhere { pass };
            return Ok(());
        }
    }
    trial.outcome = match &checked.verdict {
        Verdict::Tested { .. } => Outcome::MissedTested { differs },
        other => Outcome::Unknown { why: other.reason().unwrap_or_default(), differs },
    };
    Ok(())
}
