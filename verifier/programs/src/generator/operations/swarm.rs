//! Swarm testing: each program has a random subset of the features, each with a weight of its own.
//!
//! With all features in every program, most pairs of them are rare, and a heavy one crowds out the others. A program
//! with few features has each of them many times, next to each other.

use super::super::config::CONFIG;
use ir3_compiler::nir::Op;
use ir3_compiler::target::Target;

use super::super::accepted::{driver_operations, operations};
use super::super::choices::Choices;

/// A family of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Arithmetic,
    Buffer,
    Shared,
    Global,
    Scratch,
    UniformBuffer,
    ConstantFile,
    Image,
    Texture,
    Lanes,
    Input,
    Array,
    Barrier,
    Kill,
}

impl Family {
    /// All of them, with their usual weights; arithmetic is the first.
    pub(super) const ALL: [(Self, u16); 14] = [
        (Self::Arithmetic, 40),
        (Self::Buffer, 6),
        (Self::Shared, 4),
        (Self::Global, 4),
        (Self::Scratch, 4),
        (Self::UniformBuffer, 3),
        (Self::ConstantFile, 4),
        (Self::Image, 6),
        (Self::Texture, 9),
        (Self::Lanes, 15),
        (Self::Input, 6),
        (Self::Array, 5),
        (Self::Barrier, 2),
        (Self::Kill, 3),
    ];
}

/// The features of one program.
#[derive(Default)]
pub(in crate::generator) struct Swarm {
    families: Vec<(Family, u16)>,
    /// The operations, each with a width, that are most of the arithmetic; none if all are equally frequent.
    favoured: Vec<(Op, u8)>,
    /// The probability of a constant operand, in 1/256.
    pub constants: u32,
    /// The probability of a modifier on an operand, in 1/256, and about that of one on a result.
    pub modifiers: u32,
    /// The probability of an operand that is converted from another type, in 1/256.
    pub conversions: u32,
    /// The probability of a constant offset, in 1/256.
    pub constant_offsets: u32,
    /// The probability of arithmetic that matches the pattern of a rule, or nearly does, in 1/256.
    pub patterns: u32,
    /// The probability that arithmetic is a chain of operations of which each has the next as its only use, in 1/256.
    pub chains: u32,
    /// The probability of arithmetic that is one operation on words of the environment, in 1/256.
    pub probes: u32,
    /// The probability of a value that is stored to a local array and loaded by its use, in 1/256.
    pub detours: u32,
    /// The probability of a bindless descriptor, in 1/256.
    pub bindless: u32,
    /// The width of most memory accesses; 0 for any width.
    pub memory_bits: u8,
    /// True if component counts are small.
    pub scalars: bool,
    /// True if only operations are drawn that have a form in SPIR-V.
    driver: bool,
}

/// The operations that a program may have.
pub(super) fn all(target: &Target, driver: bool) -> &'static [(Op, u8)] {
    if driver { driver_operations(target) } else { operations(target) }
}

impl Swarm {
    /// Draws the features of a program.
    pub fn draw<C: Choices>(c: &mut C, target: &Target, driver: bool) -> Self {
        let mut families = Vec::new();
        for (family, usual) in Family::ALL {
            let weight = weight(c, usual);
            // Arithmetic makes the operands of all others.
            let weight = if family == Family::Arithmetic { weight.max(8) } else { weight };
            if weight != 0 {
                families.push((family, weight));
            }
        }
        let all = all(target, driver);
        let count = if c.even() { 3 + c.below(12) } else { 0 };
        let favoured = (0..count).map(|_| c.pick(all)).collect();
        let mut share = |choices: [u32; 4]| c.pick(&choices);
        Self {
            families,
            favoured,
            constants: share([8, 36, 60, 110]),
            modifiers: share([0, 16, 40, 100]),
            conversions: share([0, 0, 20, 50]),
            constant_offsets: share([40, 110, 110, 220]),
            patterns: share([0, 10, 30, 80]),
            chains: share([0, 20, 60, 120]),
            probes: share([0, 16, 30, 70]),
            detours: share([0, 0, 0, 10]),
            bindless: share([0, 60, 110, 230]),
            memory_bits: share([0, 0, 16, 64]) as u8,
            scalars: share([0, 0, 1, 1]) != 0,
            driver,
        }
    }

    /// Draws the family of the next operation.
    pub(super) fn family<C: Choices>(&self, c: &mut C) -> Family {
        let total: usize = self.families.iter().map(|&(_, weight)| usize::from(weight)).sum();
        let mut at = c.below(total.max(1));
        for &(family, weight) in &self.families {
            match at.checked_sub(weight.into()) {
                Some(rest) => at = rest,
                None => return family,
            }
        }
        Family::Arithmetic
    }

    /// Draws an arithmetic operation and a width.
    pub(super) fn operation<C: Choices>(&self, c: &mut C, target: &Target) -> (Op, u8) {
        if !self.favoured.is_empty() && c.chance(CONFIG.favoured_operation) {
            c.pick(&self.favoured)
        } else {
            c.pick(all(target, self.driver))
        }
    }
}

/// Draws the weight of a feature in one program: 0 with probability 3/8, otherwise up to several times the usual
/// weight.
pub(in crate::generator) fn weight<C: Choices>(c: &mut C, usual: u16) -> u16 {
    match c.below(8) {
        0..=2 => 0,
        3 | 4 => usual,
        5 | 6 => 2 * usual,
        _ => 5 * usual,
    }
}
