//! The style of a program: the number of copies of its phis, the exits of its loops, the lanes that end early.
//!
//! Weights determine the frequency of operations; passes after selection depend more on the shape of a program. Each
//! program has a style of its own, drawn once, so that shapes that are rare in one program are frequent in another:
//! many exits *and* many phis *and* lanes that end.

use super::choices::Choices;

/// The style of one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// The most phis after a branch, and of a loop in addition to its counter.
    pub phis: usize,
    /// The probability that a back edge permutes phis, or a join's two arms pass the same values in another order, in
    /// 1/256.
    pub permutations: u32,
    /// The most `break`s and `continue`s in the body of a loop, in addition to its limit.
    pub exits: usize,
    /// The probability that a step of a fragment shader ends lanes instead of branching, in 1/256.
    pub kills: u32,
    /// The probability that a branch has a condition that is uniform by its definition, in 1/256.
    pub uniform_branches: u32,
    /// The probability that a step is a chain of operations of which each has the next as its only use, in 1/256.
    pub chains: u32,
    /// The width of a local array is often this one.
    pub array_bits: u8,
    /// The probability that a step is a constructed shape (`shapes`), in 1/256.
    pub shapes: u32,
    /// The probability that a loop has a nest of branches, in 1/256.
    pub nests: u32,
    /// The probability that a phi has 16 bits instead of its usual width, in 1/256.
    pub half_phis: u32,
}

impl Style {
    /// Draws the style of a program.
    pub fn draw<C: Choices>(c: &mut C) -> Self {
        Self {
            phis: c.pick(&[3, 3, 3, 3, 4, 6, 8, 12]),
            permutations: c.pick(&[40, 40, 40, 160]),
            exits: c.pick(&[1, 1, 1, 2, 3, 4]),
            kills: c.pick(&[16, 16, 16, 90]),
            uniform_branches: c.pick(&[10, 10, 30, 90]),
            chains: c.pick(&[4, 12, 30, 60]),
            array_bits: c.pick(&[32, 32, 16]),
            shapes: c.pick(&[0, 0, 4, 20]),
            nests: c.pick(&[12, 12, 100]),
            half_phis: c.pick(&[0, 0, 40, 110]),
        }
    }
}
