//! The ways in which a compiler fails.

use crate::reduce::oracle::DifferenceKind;
use std::fmt;

/// A failure. Two programs fail in the same way if these are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The SPIR-V is not valid: a fault of ours. The message of `spirv-val`, without its numbers.
    Invalid(String),
    /// A signal, or an exit code of 100 or more, and the assertion that failed, if the log names one.
    Crashed {
        /// The signal, with the place if it is known, or the exit code.
        end: String,
        /// The assertion, or the place of a panic.
        assertion: Option<String>,
    },
    /// It takes longer than the time limit.
    Hung,
    /// It prints more than the limit.
    Flooded,
    /// A part of its log cannot be read: the reason, without its numbers.
    Unreadable(String),
    /// It refuses the program: the reason, without its numbers. A failure only if refusals are to be reported.
    Refused(String),
    /// A pass changed the meaning of the program.
    Refuted {
        /// The pass, or the name of the comparison.
        pass: String,
        /// The kind of difference. One that only a prover or the machine found has one, too.
        difference: DifferenceKind,
    },
}

impl Failure {
    /// The pass that is to blame, or the kind of failure.
    #[must_use]
    pub fn stage(&self) -> &str {
        match self {
            Self::Refuted { pass, .. } => pass,
            other => other.kind(),
        }
    }

    /// The kind, in one word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Crashed { .. } => "crashed",
            Self::Hung => "hung",
            Self::Flooded => "flooded",
            Self::Unreadable(_) => "unreadable",
            Self::Refused(_) => "refused",
            Self::Refuted { .. } => "refuted",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "the SPIR-V is not valid: {why}"),
            Self::Crashed { end, assertion: Some(assertion) } => write!(f, "crashed ({end}): {assertion}"),
            Self::Crashed { end, assertion: None } => write!(f, "crashed: {end}"),
            Self::Hung => f.write_str("hung: longer than the time limit"),
            Self::Flooded => f.write_str("prints without end"),
            Self::Unreadable(why) => write!(f, "its log cannot be read: {why}"),
            Self::Refused(why) => write!(f, "refuses the program: {why}"),
            Self::Refuted { pass, difference } => write!(f, "{pass} refuted: {}", difference.name()),
        }
    }
}
