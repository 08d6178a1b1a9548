//! Register classes, which of their registers conflict, and the numbers `p` and `q` of Runeson and Nyström
//! ("Retargetable Graph-Coloring Register Allocation for Irregular Architectures").
//!
//! A register of a class is the number of its first unit: register `r` is the units `r..r + length`. Two registers
//! conflict if they have a unit in common: vectors, the scalars in them, and the halves of these.
//!
//! - `p(c)` is the number of registers of class `c`.
//! - `q(c, d)` is the largest number of registers of `c` that one register of `d` conflicts with.
//!
//! A node of class `c` gets a register for any registers of its neighbours if the sum of `q(c, class of m)` over its
//! neighbours `m` is less than `p(c)`.

use super::bits::Bits;
use cranelift_entity::{PrimaryMap, entity_impl};

/// A register class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u32);
entity_impl!(Class, "class");

/// A register of a class: the number of its first unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u16);

/// A range of the units of a node, counted from its first one, half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The first unit.
    pub low: u16,
    /// The unit after the last.
    pub high: u16,
}

impl Part {
    /// All units of a node, of any class.
    pub const WHOLE: Self = Self { low: 0, high: u16::MAX };

    /// The smallest range that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

#[derive(Clone, Debug)]
struct ClassData {
    members: Bits,
    /// The number of units of a register.
    length: u16,
}

/// The classes of an allocation.
#[derive(Clone, Debug)]
pub struct Classes {
    units: u32,
    classes: PrimaryMap<Class, ClassData>,
    p: Vec<u32>,
    /// `q(c, d)` at `c * count + d`.
    q: Vec<u32>,
}

/// Collects classes.
#[derive(Clone, Debug)]
pub struct ClassesBuilder {
    units: u32,
    classes: PrimaryMap<Class, ClassData>,
}

impl ClassesBuilder {
    /// Creates a builder for registers of `units` units.
    pub fn new(units: u32) -> Self {
        Self { units, classes: PrimaryMap::new() }
    }

    /// Adds a class whose registers are `length` consecutive units, at least 1, from the given ones on. A register that
    /// reaches beyond the last unit is left out.
    pub fn add_contiguous(&mut self, length: u16, members: impl IntoIterator<Item = Register>) -> Class {
        let length = length.max(1);
        let mut set = Bits::new(self.units);
        let end = (self.units + 1).saturating_sub(u32::from(length));
        members.into_iter().map(|register| u32::from(register.0)).filter(|&at| at < end).for_each(|at| set.insert(at));
        self.classes.push(ClassData { members: set, length })
    }

    /// Computes `p` and `q`.
    pub fn finish(self) -> Classes {
        let Self { units, classes } = self;
        let p = classes.values().map(|class| class.members.len()).collect();
        let mut this = Classes { units, classes, p, q: Vec::new() };
        this.q = this.compute_q();
        this
    }
}

impl Classes {
    /// The number of units.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// The registers of a class.
    pub fn members(&self, class: Class) -> &Bits {
        &self.classes[class].members
    }

    /// The number of units of a register of a class.
    pub fn length(&self, class: Class) -> u16 {
        self.classes[class].length
    }

    /// The number of registers of a class.
    pub fn p(&self, class: Class) -> u32 {
        self.p[class.as_u32() as usize]
    }

    /// The largest number of registers of `of` that one register of `by` conflicts with.
    pub fn q(&self, of: Class, by: Class) -> u32 {
        self.q[of.as_u32() as usize * self.classes.len() + by.as_u32() as usize]
    }

    fn compute_q(&self) -> Vec<u32> {
        let mut q = Vec::with_capacity(self.classes.len() * self.classes.len());
        for data in self.classes.values() {
            // The number of registers of the class below each unit.
            let mut below = Vec::with_capacity(self.units as usize + 1);
            below.push(0);
            (0..self.units).for_each(|at| below.push(below[at as usize] + u32::from(data.members.contains(at))));
            for other in self.classes.values() {
                let most = other.members.iter().map(|at| {
                    let first = (at + 1).saturating_sub(u32::from(data.length));
                    let end = (at + u32::from(other.length)).min(self.units);
                    below[end as usize] - below[first as usize]
                });
                q.push(most.max().unwrap_or(0));
            }
        }
        q
    }

    /// Adds to `blocked` the registers of class `of` whose units `own` conflict with the units `other` of register `at`
    /// of class `by`.
    pub fn block(&self, blocked: &mut Bits, of: Class, own: Part, by: Class, other: Part, at: Register) {
        let at = u32::from(at.0);
        let own_high = u32::from(own.high.min(self.length(of)));
        let (low, high) = (at + u32::from(other.low), at + u32::from(other.high.min(self.length(by))));
        // Those that start so late that the part begins before the other one's end, and ends after its start.
        blocked.insert_range((low + 1).saturating_sub(own_high), high.saturating_sub(u32::from(own.low)));
    }
}
