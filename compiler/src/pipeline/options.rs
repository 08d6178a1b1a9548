//! The options of a compilation.

use super::{Allocator, Feature, Features, Need, OwnPass, RegisterLimit, Skip, Stage};

/// The options of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The enabled features.
    pub features: Features,
    /// The applications of arms that are skipped.
    pub skip: Skip,
    /// The last stage that runs.
    pub last: Stage,
    /// The limit on the number of registers.
    pub registers: RegisterLimit,
    /// The allocator of general registers.
    pub allocator: Allocator,
    /// The pass of the caller that runs as [`Stage::OwnPass`].
    pub own_pass: Option<OwnPass>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            features: Features::all(),
            skip: Skip::default(),
            last: Stage::LAST,
            registers: RegisterLimit::Target,
            allocator: Allocator::Ssa,
            own_pass: None,
        }
    }
}

impl Options {
    /// Returns true if `stage` runs.
    pub fn runs(&self, stage: Stage) -> bool {
        let is_wanted = match stage.row().need {
            Need::Always => true,
            Need::Optional(feature) => self.features.contains(feature),
            Need::Given => self.own_pass.is_some(),
        };
        stage <= self.last && is_wanted
    }

    /// Returns the options without a feature.
    #[must_use]
    pub fn without(mut self, feature: Feature) -> Self {
        self.features.remove(feature);
        self
    }
}
