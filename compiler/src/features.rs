//! What the backend can do without, by name.
//!
//! A feature is an optional stage, or a part of a stage that pays by itself. Each can be left out alone, to see what it is
//! worth, or whether it is the one that goes wrong.

use enumset::{EnumSet, EnumSetType};
use std::fmt;

/// Something that the backend can do without.
#[derive(Debug, Hash, PartialOrd, Ord, EnumSetType)]
pub enum Feature {
    /// Negations of conditions go inside, where branches read two predicates.
    DeMorgan,
    /// Uniform values are computed by the scalar ALU, where the target has one.
    ScalarAlu,
    /// Copies are propagated.
    CopyPropagation,
    /// What has been computed already is not computed again, but for comparisons.
    ValueNumbering,
    /// Comparisons that have been made are not made again.
    ComparisonNumbering,
    /// Immediates go to the constant file.
    Constants,
    /// Dead code is removed.
    DeadCode,
    /// Clamps are folded into what they clamp.
    Saturation,
    /// Negations are folded into branches, selections and bitwise operations.
    Negations,
    /// Branches read two predicates.
    BranchAndOr,
    /// Branches vote.
    VoteBranches,
    /// Comparisons write predicates.
    PredicateComparisons,
    /// Bitwise operations write predicates.
    PredicateBitops,
    /// Operations convert their own results.
    Conversions,
    /// Small ifs are predicated.
    Predication,
    /// All predicate registers are used, not only one.
    PredicateRegisters,
    /// Instructions are put in order.
    Schedule,
    /// In that order, predicates do not wait for each other.
    PredicateScheduling,
}

/// Features that are in use.
pub type Features = EnumSet<Feature>;

impl Feature {
    /// The name that the command line and the reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeMorgan => "de-morgan",
            Self::ScalarAlu => "scalar-alu",
            Self::CopyPropagation => "copy-propagation",
            Self::ValueNumbering => "value-numbering",
            Self::ComparisonNumbering => "comparison-numbering",
            Self::Constants => "constants",
            Self::DeadCode => "dead-code",
            Self::Saturation => "saturation",
            Self::Negations => "negations",
            Self::BranchAndOr => "branch-and-or",
            Self::VoteBranches => "vote-branches",
            Self::PredicateComparisons => "predicate-comparisons",
            Self::PredicateBitops => "predicate-bitops",
            Self::Conversions => "conversions",
            Self::Predication => "predication",
            Self::PredicateRegisters => "predicate-registers",
            Self::Schedule => "schedule",
            Self::PredicateScheduling => "predicate-scheduling",
        }
    }

    /// The feature of a name as [`Feature::name`] gives it.
    pub fn from_name(name: &str) -> Option<Self> {
        Features::all().iter().find(|feature| feature.name() == name)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
