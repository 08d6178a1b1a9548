//! Two programs under reduction that are compared with each other, while the verdicts of the engines stay the same.
//!
//! A change of one program alone would be a difference of the reducer's own making. So there are two kinds of steps:
//! the same change of both programs, and a change of one of them that preserves its behaviour, as far as runs show.
//! Changes are the same if they change lines in the same way, numbers of values and registers aside; if the programs
//! are in two languages, only the removal of the same output, or of the effect at the same position, is. A candidate
//! keeps the *signature* of the bug: the operations where both runs first differ, and that the values there depend on
//! inputs.

use super::engine::{self, Options, Reduced, Watch};
use super::ir3::{Ir3Step, outputs_of};
use super::oracle::{DifferenceKind, without_numbers};
use super::size::Size;
use super::subject::{Kind, NirStep, Side, SideStep, Subject};
use super::{CheckpointError, steps};
use crate::check::{Boundary, Engines, Refutation, TextPair, Unknown, Verdict};
use ir3_compiler::ir3::Program;
use ir3_compiler::nir::{Index, InstrData, IntrinsicOp, Shader};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The verdict on a pair, without the parts that every step changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairVerdict {
    name: &'static str,
    reason: String,
}

impl PairVerdict {
    fn of(verdict: &Verdict) -> Self {
        let reason = match verdict {
            Verdict::Refuted(refutation) => DifferenceKind::of(&refutation.difference).name().to_owned(),
            Verdict::Unknown(unknown) => without_numbers(&unknown.kind()),
            Verdict::Proved { .. } | Verdict::Tested { .. } => String::new(),
        };
        Self { name: verdict.name(), reason }
    }

    /// Returns true if the programs passed.
    pub fn is_pass(&self) -> bool {
        matches!(self.name, "proved" | "tested")
    }
}

impl fmt::Display for PairVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, ", {}", self.reason) }
    }
}

/// A description of the bug that a refutation shows, which a smaller pair has to keep: of the pair itself without a
/// third argument, of a smaller one with that of the pair. `None` if it is not known.
pub type Signature<'a> = &'a (dyn Fn(&Refutation, &Target, Option<&[String]>) -> Option<Vec<String>> + Sync);

/// The verdict on a pair of programs.
#[derive(Clone)]
pub struct PairOracle<'a> {
    engines: Engines,
    target: Target,
    /// The environments of the comparison.
    envs: Vec<Env>,
    /// The environments in which a program that is changed alone has to do the same.
    own: Arc<[Env]>,
    verdict: Verdict,
    signature: Signature<'a>,
    /// The signature of the pair.
    wanted: Option<Vec<String>>,
    /// True if a side has no effect from the start.
    starts_trivial: bool,
}

impl<'a> PairOracle<'a> {
    /// Compares two programs, as `check` does. Candidates have the verdict and the signature of the two. Candidates of
    /// programs that are refuted are run in the one environment that shows it, if the verdict is the same in it.
    pub fn new(
        engines: Engines,
        target: Target,
        envs: Vec<Env>,
        [before, after]: [&Snapshot; 2],
        signature: Signature<'a>,
    ) -> Self {
        let own = envs.clone().into();
        let undecided = Verdict::Unknown(Unknown::OutOfFuel);
        let starts_trivial = is_trivial(before) || is_trivial(after);
        let mut oracle =
            Self { engines, target, envs, own, verdict: undecided, signature, wanted: None, starts_trivial };
        oracle.verdict = oracle.judge(before, after);
        oracle.wanted = oracle.signature_of(&oracle.verdict);
        if let Verdict::Refuted(refutation) = &oracle.verdict {
            let envs = std::mem::replace(&mut oracle.envs, vec![refutation.env.clone()]);
            let engines = std::mem::replace(&mut oracle.engines, Engines::interpreter());
            if !oracle.same(before, after) {
                (oracle.envs, oracle.engines) = (envs, engines);
            }
        }
        // A signature that is not found again in the same pair would reject every candidate.
        if !oracle.same(before, after) {
            oracle.wanted = None;
        }
        oracle
    }

    fn signature_of(&self, verdict: &Verdict) -> Option<Vec<String>> {
        match verdict {
            Verdict::Refuted(refutation) => (self.signature)(refutation, &self.target, self.wanted.as_deref()),
            _ => None,
        }
    }

    /// The signature of the bug.
    pub fn signature(&self) -> Option<&[String]> {
        self.wanted.as_deref()
    }

    /// The verdict on the two programs.
    pub fn verdict(&self) -> PairVerdict {
        PairVerdict::of(&self.verdict)
    }

    fn judge(&self, before: &Snapshot, after: &Snapshot) -> Verdict {
        let pair = TextPair::new(before.clone(), after.clone(), &self.target);
        pair.judge(&mut |boundary| self.engines.judge(boundary, &self.target, &self.envs), || None).verdict
    }

    /// Returns true if the verdict on two other programs is the same.
    pub fn same(&self, before: &Snapshot, after: &Snapshot) -> bool {
        if !self.starts_trivial && (is_trivial(before) || is_trivial(after)) {
            return false;
        }
        let verdict = self.judge(before, after);
        PairVerdict::of(&verdict) == self.verdict()
            && (self.wanted.is_none() || self.signature_of(&verdict) == self.wanted)
    }

    /// Reduces the two programs together, in `jobs` threads.
    ///
    /// # Errors
    /// If a file of `options` cannot be read or written.
    pub fn reduce(
        &self,
        pair: &Pair,
        jobs: usize,
        options: &Options,
        progress: &mut Watch<'_, Pair>,
    ) -> Result<Reduced<Pair>, CheckpointError> {
        let same = |pair: &Pair| self.same(&pair.before.snapshot(), &pair.after.snapshot());
        let mut tests: Vec<_> = (0..jobs.max(1)).map(|_| same).collect();
        engine::run_watched(pair, &mut tests, options, progress)
    }
}

/// Returns true if nothing in a program has an effect: such a side is no plausible report.
fn is_trivial(program: &Snapshot) -> bool {
    match program {
        Snapshot::Nir(shader) => steps::effects_of(shader).is_empty(),
        Snapshot::Ir3(program) => !program.iter_instrs().any(|(_, instr)| {
            let data = &program.instrs[instr];
            data.opcode.has_side_effect() && !data.opcode.is_terminator()
                || data.opcode.is_output() && !data.srcs.is_empty()
        }),
        Snapshot::Vec4(_) => false,
    }
}

/// Two programs.
#[derive(Clone)]
pub struct Pair {
    /// The program before.
    pub before: Side,
    /// The program after.
    pub after: Side,
    target: Target,
    envs: Arc<[Env]>,
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.before == other.before && self.after == other.after
    }
}

/// A change of two programs.
pub enum PairStep {
    /// The same change of both programs.
    Both(SideStep, SideStep),
    /// A change of the program before.
    Before(SideStep),
    /// A change of the program after.
    After(SideStep),
}

/// The programs that a kind of step changes.
#[derive(Clone, Copy)]
enum Which {
    Both,
    Before,
    After,
}

impl Pair {
    /// Two programs, and the environments of an oracle.
    pub fn new(before: Snapshot, after: Snapshot, oracle: &PairOracle<'_>) -> Self {
        let target = oracle.target;
        let (before, after) = (Side::new(before, target), Side::new(after, target));
        Self { before, after, target, envs: Arc::clone(&oracle.own) }
    }

    /// The programs and the kind of a number: first all kinds of both together, then those of each.
    fn kind(&self, number: usize) -> (Which, usize) {
        let both = self.kinds_of_both().len();
        let before = self.before.kinds().len();
        match number {
            n if n < both => (Which::Both, n),
            n if n < both + before => (Which::Before, n - both),
            n => (Which::After, n - both - before),
        }
    }

    fn kinds_of_both(&self) -> Vec<Kind> {
        match (&self.before, &self.after) {
            (Side::Nir(_), Side::Nir(_)) | (Side::Ir3(_), Side::Ir3(_)) | (Side::Vec4(_), Side::Vec4(_)) => {
                self.before.kinds()
            }
            _ => vec![Kind { name: "drop effects", together: true }],
        }
    }

    /// The changes of both programs that are the same.
    fn matched(&self, kind: usize) -> Vec<PairStep> {
        let labelled = |side: &Side| -> Vec<(Vec<String>, SideStep)> {
            let text = side.text();
            side.list(kind).into_iter().filter_map(|step| Some((label(side, &text, &step)?, step))).collect()
        };
        let (before, after) = match (&self.before, &self.after) {
            (Side::Nir(_), Side::Nir(_)) | (Side::Ir3(_), Side::Ir3(_)) | (Side::Vec4(_), Side::Vec4(_)) => {
                (labelled(&self.before), labelled(&self.after))
            }
            (before, after) => return same_effects(before, after),
        };
        let mut of_after = BTreeMap::<Vec<String>, Vec<SideStep>>::new();
        for (label, step) in after.into_iter().rev() {
            of_after.entry(label).or_default().push(step);
        }
        let other = |label: &Vec<String>, of_after: &mut BTreeMap<_, Vec<SideStep>>| of_after.get_mut(label)?.pop();
        before
            .into_iter()
            .filter_map(|(label, step)| Some(PairStep::Both(step, other(&label, &mut of_after)?)))
            .collect()
    }

    /// Returns true if a program that was changed does the same as it did, in all environments.
    fn keeps(&self, old: &Side, new: &Side) -> bool {
        let (old, new) = (old.snapshot(), new.snapshot());
        let boundary = Boundary::of_texts((&old).into(), (&new).into());
        Engines::interpreter().judge(&boundary, &self.target, &self.envs).verdict.is_pass()
    }
}

/// The lines that a step takes away and those that it adds, without numbers; `None` if it changes nothing.
fn label(side: &Side, text: &str, step: &SideStep) -> Option<Vec<String>> {
    let edited = side.edited(&[step], false)?.text();
    let mut lines = BTreeMap::<String, i32>::new();
    for (text, sign) in [(text, -1), (&edited, 1)] {
        for line in text.lines() {
            *lines.entry(words(line)).or_default() += sign;
        }
    }
    let changed = lines.into_iter().filter(|(_, count)| *count != 0);
    Some(changed.map(|(line, count)| format!("{count} {line}")).collect())
}

/// A line without the numbers of values, registers and instructions.
fn words(line: &str) -> String {
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let is_constant = |word: &str| word.starts_with("0x");
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@')));
    words.filter(|word| !word.is_empty() && (!is_number(word) || is_constant(word))).collect::<Vec<_>>().join(" ")
}

/// An effect of a program: the location of an output, or `None`.
type Effect = Option<u16>;

fn effects_of_nir(shader: &Shader) -> Vec<(Effect, SideStep)> {
    let function = &shader.entry;
    let effect = |data: &InstrData| match data {
        InstrData::Intrinsic(it) if it.op == IntrinsicOp::StoreOutput => {
            it.indices.0.iter().find_map(|index| match index {
                Index::Base(base) => u16::try_from(*base).ok(),
                _ => None,
            })
        }
        _ => None,
    };
    let steps = steps::effects_of(shader);
    steps.into_iter().map(|(instr, step)| (effect(&function.instrs[instr]), SideStep::Nir(NirStep(step)))).collect()
}

fn effects_of_ir3(program: &Program) -> Vec<(Effect, SideStep)> {
    let of = |(_, instr)| {
        let data = &program.instrs[instr];
        let outputs = outputs_of(program, data).into_iter().map(move |base| (Some(base), Ir3Step::Output(instr, base)));
        let is_effect = data.opcode.has_side_effect() && !data.opcode.is_terminator();
        outputs.chain(is_effect.then_some((None, Ir3Step::Drop(instr))))
    };
    program.iter_instrs().flat_map(of).map(|(effect, step)| (effect, SideStep::Ir3(step))).collect()
}

/// The removals of the same output, and of effects at the same position if there are as many on both sides.
fn same_effects(before: &Side, after: &Side) -> Vec<PairStep> {
    let of = |side: &Side| {
        let effects = match side {
            Side::Nir(shader) => effects_of_nir(shader),
            Side::Ir3(subject) => effects_of_ir3(&subject.program),
            // The effects of vec4 are its outputs, which are instructions like others.
            Side::Vec4(_) => Vec::new(),
        };
        let mut by_effect = BTreeMap::<Effect, Vec<SideStep>>::new();
        effects.into_iter().for_each(|(effect, step)| by_effect.entry(effect).or_default().push(step));
        by_effect
    };
    let mut of_after = of(after);
    let mut steps = Vec::new();
    for (effect, before) in of(before) {
        let after = of_after.remove(&effect).unwrap_or_default();
        if before.len() == after.len() {
            steps.extend(before.into_iter().zip(after).map(|(before, after)| PairStep::Both(before, after)));
        }
    }
    steps
}

impl Subject for Pair {
    type Step = PairStep;

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.kinds_of_both();
        kinds.extend(self.before.kinds());
        kinds.extend(self.after.kinds());
        kinds
    }

    fn list(&self, number: usize) -> Vec<PairStep> {
        match self.kind(number) {
            (Which::Both, kind) => self.matched(kind),
            (Which::Before, kind) => self.before.list(kind).into_iter().map(PairStep::Before).collect(),
            (Which::After, kind) => self.after.list(kind).into_iter().map(PairStep::After).collect(),
        }
    }

    fn edited(&self, steps: &[&PairStep], sweep: bool) -> Option<Self> {
        let (mut of_before, mut of_after, mut together) = (Vec::new(), Vec::new(), true);
        for step in steps {
            match step {
                PairStep::Both(before, after) => {
                    of_before.push(before);
                    of_after.push(after);
                }
                PairStep::Before(step) => {
                    of_before.push(step);
                    together = false;
                }
                PairStep::After(step) => {
                    of_after.push(step);
                    together = false;
                }
            }
        }
        let (before, after) = (self.before.edited(&of_before, sweep), self.after.edited(&of_after, sweep));
        if before.is_none() && after.is_none() {
            return None;
        }
        if !together {
            // Runs need a valid program.
            let keeps = |old: &Side, new: &Option<Side>| {
                new.as_ref().is_none_or(|new| new.finished().is_some_and(|new| self.keeps(old, &new)))
            };
            if !keeps(&self.before, &before) || !keeps(&self.after, &after) {
                return None;
            }
        }
        let before = before.unwrap_or_else(|| self.before.clone());
        let after = after.unwrap_or_else(|| self.after.clone());
        Some(Self { before, after, ..self.clone() })
    }

    fn swept(&self) -> Self {
        Self { before: self.before.swept(), after: self.after.swept(), ..self.clone() }
    }

    fn finished(&self) -> Option<Self> {
        Some(Self { before: self.before.finished()?, after: self.after.finished()?, ..self.clone() })
    }

    fn size(&self) -> Size {
        self.before.size() + self.after.size()
    }

    fn text(&self) -> String {
        format!("{}{SEPARATOR}{}", self.before.text(), self.after.text())
    }

    fn read(&self, text: &str) -> Option<Self> {
        let (before, after) = text.split_once(SEPARATOR)?;
        Some(Self { before: self.before.read(before)?, after: self.after.read(after)?, ..self.clone() })
    }
}

/// A line between the texts of a pair, which neither language has.
const SEPARATOR: &str = "\n----\n";
