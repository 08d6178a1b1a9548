//! Sets of features.

use super::Feature;
use std::fmt;
use std::ops::Sub;

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
        Feature::every().collect()
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

    /// The features, in the order of the stages.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::every().filter(move |&feature| self.contains(feature))
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
