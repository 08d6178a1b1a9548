//! The values that are coalesced, which is a [feature](crate::features) of the SSA allocator.

use crate::features::{Feature, Features};

/// The values that are put into one [merge set](super::merge_sets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coalescing {
    /// No value is merged: each is alone. Copies remain, but the assigner still chooses the register of a source for a
    /// copy if that is free, and a tied result takes the register of its operand.
    Nothing,
    /// Phis and their sources, copies, tied operands, and the operands of instructions that may be repeated: values of
    /// one size.
    Variables,
    /// Vectors and their parts, too: the results of splits and the sources of collects are pieces of their vector.
    #[default]
    Vectors,
}

impl Coalescing {
    /// The values that are merged with some features.
    pub fn of(features: Features) -> Self {
        match (features.contains(Feature::MergeSets), features.contains(Feature::VectorCoalescing)) {
            (false, _) => Self::Nothing,
            (true, false) => Self::Variables,
            (true, true) => Self::Vectors,
        }
    }
}
