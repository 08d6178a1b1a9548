//! Features: parts of the backend that can be disabled, to measure their worth, or to test if one is at fault.
//!
//! A feature is an optional stage of the same name, or a part of a stage that is no single rule: those are
//! [arms](crate::arms).

use std::fmt;
use std::ops::Sub;

crate::words! {
    /// An optional stage, or an optional part of one that is useful by itself.
    pub enum Feature {
        /// 64-bit sums are split before selection.
        SplitAdditions = "split-additions",
        /// Negations of conditions go inside, where branches read two predicates.
        DeMorgan = "de-morgan",
        /// Preambles are inlined for vec4.
        InlinePreamble = "inline-preamble",
        /// A selection of one channel has a replicated predicate.
        ReplicateSel = "replicate-sel",
        /// A branch has a replicated predicate.
        ReplicateIf = "replicate-if",
        /// Dead code is removed from vec4 programs.
        Vec4DeadCode = "vec4-dead-code",
        /// The channels of the flag are tracked one by one.
        FlagChannels = "flag-channels",
        /// Conditional modifiers are propagated.
        CmodPropagation = "cmod-propagation",
        /// A thread of a scalar program has 16 invocations, not 8.
        Simd16 = "simd16",
        /// The carry of a 64-bit sum goes through the accumulator.
        CarryAccumulator = "carry-accumulator",
        /// It goes through the flag, if not through the accumulator; else it is a comparison.
        CarryFlag = "carry-flag",
        /// With the accumulator, the high words of 16 invocations are added by one instruction.
        WideSum = "wide-sum",
        /// Matched pairs of sums are combined.
        CombineAdditions = "combine-additions",
        /// Dead code is removed from scalar programs.
        ScalarDeadCode = "scalar-dead-code",
        /// Uniform values are computed by the scalar ALU, where the target has one.
        ScalarAlu = "scalar-alu",
        /// Copies are propagated.
        CopyPropagation = "copy-propagation",
        /// Values that are available are reused.
        ValueNumbering = "value-numbering",
        /// Immediates go to the constant file.
        Constants = "constants",
        /// Dead code is removed.
        DeadCode = "dead-code",
        /// Clamps are folded into the operations that compute their operands.
        Saturation = "saturation",
        /// Results are computed as their readers want them.
        Fold = "fold",
        /// Small ifs are predicated.
        Predication = "predication",
        /// Instructions are put in order.
        Schedule = "schedule",
        /// Predicates do not wait for each other in the schedule.
        PredicateScheduling = "predicate-scheduling",
        /// The schedule may use as many registers as the waves allow, and other orders are tried if fewer registers give more waves.
        ScheduleOccupancy = "schedule-occupancy",
        /// All predicate registers are used, not only one.
        PredicateRegisters = "predicate-registers",
        /// Parts of live ranges and single components are spilled.
        PartialSpilling = "partial-spilling",
        /// Values that can be one variable are merged.
        MergeSets = "merge-sets",
        /// Vectors are merged with their parts, too.
        VectorCoalescing = "vector-coalescing",
        /// Values are moved to free registers for others.
        LiveRangeSplitting = "live-range-splitting",
        /// More registers than needed are taken where that costs no waves.
        Occupancy = "occupancy",
        /// Instructions are repeated with `(rptN)`.
        Repeat = "repeat",
        /// Instructions with registers are put in order.
        PostSchedule = "post-schedule",
    }
}

/// Features that are in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Features(u64);

impl Features {
    /// No feature.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// Every feature.
    pub fn all() -> Self {
        Feature::ALL.into_iter().collect()
    }

    /// One feature.
    pub const fn only(feature: Feature) -> Self {
        Self(1 << feature as u32)
    }

    /// Returns true if a feature is in use.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & Self::only(feature).0 != 0
    }

    /// Adds a feature.
    pub const fn insert(&mut self, feature: Feature) {
        self.0 |= Self::only(feature).0;
    }

    /// Takes a feature away.
    pub const fn remove(&mut self, feature: Feature) {
        self.0 &= !Self::only(feature).0;
    }

    /// The number of features.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The features, in order.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |&feature| self.contains(feature))
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        let mut all = Self::empty();
        features.into_iter().for_each(|feature| all.insert(feature));
        all
    }
}

/// The features of the first set that are not in the second.
impl Sub for Features {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
