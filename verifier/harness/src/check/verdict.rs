//! Verdicts and their counts.

use crate::check::{MemoryOrder, Refutation, Sensitivity};
use ir3_prove::registers::RegisterFailure;
use ir3_prove::simulation::Obstacle;
use ir3_semantics::interp;
use ir3_semantics::support::panics::Panicked;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The reason of an unknown verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Every run of the source had undefined behaviour (it branched on poison, or stored to a poisoned address).
    Vacuous(String),
    /// Every run of the source used up its fuel.
    OutOfFuel,
    /// The engine does not support an operation.
    Unsupported(Unsupported),
    /// A proof failed, and no input is known on which the sides differ.
    NotShown(NotShown),
    /// A proof reached its time limit. Contains the first value or effect that was not proved until then.
    OutOfTime(Option<Box<Obstacle>>),
    /// The sides agreed on all runs, but these depend on too little of the program to be a pass.
    Insensitive(Sensitivity),
    /// The sides agreed on all runs, but the order of their memory accesses differs, and no run shows that this has no
    /// effect.
    MemoryOrder(Box<MemoryOrder>),
    /// The program needs more registers than there are.
    NeedsSpilling(String),
    /// The compiler or an engine panicked, or broke its own rules.
    Crashed(Crash),
}

/// A failure of the compiler or of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The message.
    pub message: String,
    /// File, line and column of a panic.
    pub place: Option<String>,
}

impl From<String> for Crash {
    fn from(message: String) -> Self {
        Self { message, place: None }
    }
}

impl From<Panicked> for Crash {
    fn from(Panicked { message, place }: Panicked) -> Self {
        Self { message, place: Some(place) }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, ", at {place}"))
    }
}

/// A feature that an engine or the compiler does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The unsupported operation or part of one, without its location.
    pub what: String,
    /// The complete message, with the location.
    pub message: String,
}

impl From<String> for Unsupported {
    fn from(what: String) -> Self {
        Self { message: what.clone(), what }
    }
}

impl From<interp::Unsupported> for Unsupported {
    fn from(unsupported: interp::Unsupported) -> Self {
        Self { message: unsupported.to_string(), what: unsupported.what }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The reason why a prover has no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotShown {
    /// A use that does not read its value, for the register checker.
    #[error(transparent)]
    Registers(#[from] RegisterFailure),
    /// The value or effect that the SMT engine could not prove equal.
    #[error("{obstacle}{}", .left_out.map(|why| format!(" (on terms alone, without a solver: {why})")).unwrap_or_default())]
    Simulation {
        /// The first value or effect that was not proved equal.
        obstacle: Box<Obstacle>,
        /// The reason why there was no solver, if that is so.
        left_out: Option<&'static str>,
    },
    /// A hazard of a final program that agrees if results are available at once: a result that may be late, or an
    /// instruction that the hazard checker does not support.
    #[error("a hazard: {0}")]
    Hazard(String),
    /// A rule of ir3 that the program after breaks, so that the hardware does not execute its text.
    #[error("the program after breaks a rule: {0}")]
    Rule(String),
    /// A register or value about which a piece of a program is silent, and on which the verdict depends.
    #[error("{0}")]
    Piece(String),
    /// A constant with which only one of the programs compares: no run need have a value between it and the constant
    /// of the other one.
    #[error("only the program {side} compares with {threshold}: runs need not have a value between two constants")]
    Threshold {
        /// The constant.
        threshold: String,
        /// `before` or `after`: the program that has it.
        side: &'static str,
    },
    /// A final program whose compiler reports to the driver fewer resources than its code uses.
    #[error("the driver reserves too little: {0}")]
    Reserved(String),
}

impl Unknown {
    /// The name of the reason, without its location: reasons of one kind are counted together.
    pub fn kind(&self) -> Cow<'static, str> {
        match self {
            Self::Vacuous(_) => "vacuous".into(),
            Self::OutOfFuel => "out of fuel".into(),
            Self::Unsupported(unsupported) => format!("unsupported: {}", unsupported.what).into(),
            Self::NotShown(NotShown::Registers(failure)) => format!("not shown: {}", failure.kind()).into(),
            Self::NotShown(NotShown::Simulation { obstacle, .. }) => format!("not shown: {}", obstacle.kind()).into(),
            Self::NotShown(NotShown::Hazard(_)) => "not shown: a hazard".into(),
            Self::NotShown(NotShown::Rule(_)) => "not shown: a broken rule".into(),
            Self::NotShown(NotShown::Piece(_)) => "not shown: an open piece".into(),
            Self::NotShown(NotShown::Threshold { .. }) => "not shown: a constant of a comparison".into(),
            Self::NotShown(NotShown::Reserved(_)) => "not shown: more than is reserved".into(),
            Self::OutOfTime(_) => "out of time".into(),
            Self::Insensitive(_) => "insensitive runs".into(),
            Self::MemoryOrder(_) => "memory order".into(),
            Self::NeedsSpilling(_) => "needs spilling".into(),
            Self::Crashed(_) => "crashed".into(),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vacuous(why) => write!(f, "vacuous: {why}"),
            Self::OutOfFuel => f.write_str("out of fuel"),
            Self::Unsupported(what) => write!(f, "unsupported: {what}"),
            Self::NotShown(why) => write!(f, "not shown: {why}"),
            Self::Insensitive(sensitivity) => {
                write!(f, "tested, but the runs depend on too little of the program: {sensitivity}")
            }
            Self::MemoryOrder(order) => write!(f, "tested, but {order}"),
            Self::OutOfTime(None) => f.write_str("out of time"),
            Self::OutOfTime(Some(obstacle)) => write!(f, "out of time: {obstacle}"),
            Self::NeedsSpilling(why) => write!(f, "needs spilling: {why}"),
            Self::Crashed(message) => write!(f, "crashed: {message}"),
        }
    }
}

/// The verdict of an engine on a boundary.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The program after refines the program before, for all inputs.
    Proved {
        /// The assumptions of the proof.
        assumptions: Vec<&'static str>,
    },
    /// Both sides agreed on all lanes that were run.
    Tested {
        /// The number of lanes of defined runs.
        lanes: u64,
    },
    /// The sides differ on an input that was run.
    Refuted(Box<Refutation>),
    /// No result.
    Unknown(Unknown),
}

impl Verdict {
    /// The name in tables and in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Proved { .. } => "proved",
            Self::Tested { .. } => "tested",
            Self::Refuted(_) => "refuted",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Returns true if the boundary passed.
    pub const fn is_pass(&self) -> bool {
        matches!(self, Self::Proved { .. } | Self::Tested { .. })
    }

    /// Returns true if it is proved.
    pub const fn is_proved(&self) -> bool {
        matches!(self, Self::Proved { .. })
    }

    /// Returns true if it is refuted.
    pub const fn is_refuted(&self) -> bool {
        matches!(self, Self::Refuted(_))
    }

    /// The refutation, if it is one.
    pub fn into_refutation(self) -> Option<Box<Refutation>> {
        match self {
            Self::Refuted(refutation) => Some(refutation),
            _ => None,
        }
    }

    /// The verdict on a boundary to which no selected engine applies.
    pub(crate) fn not_compared() -> Self {
        Self::Unknown(Unknown::Unsupported("no selected engine compares them".to_owned().into()))
    }

    /// Adds the verdict of the interpreter on the same boundary in other environments.
    pub(crate) fn add_runs(&mut self, other: Self) {
        let is_failure = |verdict: &Self| matches!(verdict, Self::Refuted(_) | Self::Unknown(Unknown::Crashed(_)));
        let is_not_shown = |verdict: &Self| matches!(verdict, Self::Unknown(Unknown::NotShown(_)));
        match (&mut *self, other) {
            (Self::Tested { lanes }, Self::Tested { lanes: more }) => *lanes += more,
            (known, other) if is_failure(&other) && !is_failure(known) => *known = other,
            // A property that runs cannot show in one environment is not shown by others.
            (known, other) if is_not_shown(&other) && !is_failure(known) => *known = other,
            (known @ Self::Unknown(_), other @ Self::Tested { .. }) if !is_failure(known) && !is_not_shown(known) => {
                *known = other;
            }
            _ => {}
        }
    }

    /// The number of lanes that agreed.
    pub const fn lanes(&self) -> u64 {
        match self {
            Self::Tested { lanes } => *lanes,
            Self::Proved { .. } | Self::Refuted(_) | Self::Unknown(_) => 0,
        }
    }

    /// The reason of a verdict other than a pass; the assumptions of a proof.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Proved { assumptions } if assumptions.is_empty() => None,
            Self::Proved { assumptions } => Some(format!("assuming {}", assumptions.join(", "))),
            Self::Tested { .. } => None,
            Self::Refuted(refutation) => Some(refutation.difference.to_string()),
            Self::Unknown(unknown) => Some(unknown.to_string()),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tested { lanes } => write!(f, "tested {lanes}"),
            other => f.write_str(other.name()),
        }
    }
}

/// A row of a report, as JSON: a boundary of a program.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The program: a path, or a seed.
    pub program: String,
    /// The name of the GPU.
    pub gpu: String,
    /// The stage of the boundary.
    pub stage: String,
    /// The name of the engine that decided.
    pub engine: &'static str,
    /// `proved`, `tested`, `refuted` or `unknown`.
    pub verdict: &'static str,
    /// The number of lanes that agreed.
    pub lanes: u64,
    /// The CPU time of the comparison, in seconds.
    pub seconds: f64,
    /// The reason, if it is not a pass.
    pub reason: Option<String>,
    /// The share of the program on which the runs depend, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<f64>,
}

/// The counts over a run of a command or campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Programs.
    pub programs: u64,
    /// Programs that the compiler refused.
    pub rejected: u64,
    /// Boundaries that were compared or should have been.
    pub checks: u64,
    /// Boundaries that were proved, for all inputs.
    pub proved: u64,
    /// Boundaries that passed by testing.
    pub tested: u64,
    /// Boundaries that were refuted.
    pub refuted: u64,
    /// Boundaries with an unknown verdict, the reasons below included.
    pub unknown: u64,
    /// Unknown because every run was vacuous.
    pub vacuous: u64,
    /// Unknown because every run used up its fuel.
    pub out_of_fuel: u64,
    /// Programs that were refused because they do not fit in the registers.
    pub needs_spilling: u64,
    /// Programs that were refused for something that is not supported, by the compiler or by the engine.
    pub unsupported: u64,
    /// Boundaries for which a proof failed.
    pub not_shown: u64,
    /// Boundaries for which a proof reached its time limit.
    pub out_of_time: u64,
    /// Boundaries whose runs agreed, but depend on too little of the program.
    pub insensitive: u64,
    /// Boundaries whose runs agreed, but do not show that another order of memory accesses has no effect.
    #[serde(default)]
    pub memory_order: u64,
    /// Programs on which the compiler or an engine panicked: a failure like a refutation.
    pub crashed: u64,
    /// Stages that changed nothing: no boundaries.
    pub unchanged: u64,
    /// The sites (operands, branches, accesses) of programs whose sensitivity was measured.
    pub sites: u64,
    /// The sites of these whose change the runs observed.
    pub seen_sites: u64,
    /// The number of lanes that agreed, over all checks.
    pub lanes: u64,
    /// CPU seconds.
    pub seconds: f64,
    /// True if the run was interrupted before its end, so that the counts are those of a part.
    pub interrupted: bool,
}

impl Summary {
    /// Counts one boundary.
    pub fn count(&mut self, verdict: &Verdict) {
        self.checks += 1;
        match verdict {
            Verdict::Proved { .. } => self.proved += 1,
            Verdict::Tested { lanes } => {
                self.tested += 1;
                self.lanes += lanes;
            }
            Verdict::Refuted(_) => self.refuted += 1,
            Verdict::Unknown(unknown) => {
                self.unknown += 1;
                match unknown {
                    Unknown::Vacuous(_) => self.vacuous += 1,
                    Unknown::OutOfFuel => self.out_of_fuel += 1,
                    Unknown::NeedsSpilling(_) => self.needs_spilling += 1,
                    Unknown::Unsupported(_) => self.unsupported += 1,
                    Unknown::NotShown(_) => self.not_shown += 1,
                    Unknown::OutOfTime(_) => self.out_of_time += 1,
                    Unknown::Insensitive(_) => self.insensitive += 1,
                    Unknown::MemoryOrder(_) => self.memory_order += 1,
                    Unknown::Crashed(_) => self.crashed += 1,
                }
            }
        }
    }

    /// Adds the counts of another part of the same run.
    pub fn add(&mut self, other: &Self) {
        self.programs += other.programs;
        self.rejected += other.rejected;
        self.checks += other.checks;
        self.proved += other.proved;
        self.tested += other.tested;
        self.refuted += other.refuted;
        self.unknown += other.unknown;
        self.vacuous += other.vacuous;
        self.out_of_fuel += other.out_of_fuel;
        self.needs_spilling += other.needs_spilling;
        self.unsupported += other.unsupported;
        self.not_shown += other.not_shown;
        self.out_of_time += other.out_of_time;
        self.insensitive += other.insensitive;
        self.memory_order += other.memory_order;
        self.crashed += other.crashed;
        self.unchanged += other.unchanged;
        self.sites += other.sites;
        self.seen_sites += other.seen_sites;
        self.lanes += other.lanes;
        self.seconds += other.seconds;
        self.interrupted |= other.interrupted;
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of =
            |count: u64, one: &str, many: &str| format!("{} {}", grouped(count), if count == 1 { one } else { many });
        write!(
            f,
            "{}, {}: {} proved, {} tested, {} refuted, {} unknown",
            of(self.programs, "program", "programs"),
            of(self.checks, "boundary", "boundaries"),
            grouped(self.proved),
            grouped(self.tested),
            grouped(self.refuted),
            grouped(self.unknown)
        )?;
        let reasons = [
            (self.vacuous, "vacuous"),
            (self.out_of_fuel, "out of fuel"),
            (self.needs_spilling, "needs spilling"),
            (self.unsupported, "unsupported"),
            (self.not_shown, "not shown"),
            (self.out_of_time, "out of time"),
            (self.insensitive, "insensitive runs"),
            (self.memory_order, "memory order"),
            (self.crashed, "crashed"),
        ];
        let reasons: Vec<_> = reasons.iter().filter(|r| r.0 > 0).map(|r| format!("{} {}", r.1, grouped(r.0))).collect();
        if !reasons.is_empty() {
            write!(f, ": {}", reasons.join(", "))?;
        }
        if let Some(share) = (self.seen_sites * 100).checked_div(self.sites) {
            write!(f, "; sensitivity {share} %")?;
        }
        write!(f, "; {:.1} s of CPU time", self.seconds)?;
        if self.interrupted {
            f.write_str("; interrupted")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_one_line() {
        let mut summary = Summary { programs: 281, checks: 4496, proved: 4460, tested: 4, ..Summary::default() };
        (summary.unknown, summary.out_of_fuel) = (32, 32);
        assert_eq!(
            summary.to_string(),
            "281 programs, 4,496 boundaries: 4,460 proved, 4 tested, 0 refuted, 32 unknown: out of fuel 32; 0.0 s of CPU time"
        );
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
