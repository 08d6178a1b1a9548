//! The style of a program: how many copies its phis make, how its loops end, which lanes end early.
//!
//! Weights say how often an operation comes; what passes after selection have to get right is more a matter of shape. Each program has a style
//! of its own, drawn once, so that what is rare in one program is frequent in another: many exits *and* many phis *and* lanes that end.

use super::choices::Choices;

/// The style of one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// The most phis after a branch, and of a loop beside its counter.
    pub phis: usize,
    /// Of 256, the back edges that permute phis, and the joins where two arms hand on the same values in another order.
    pub permutations: u32,
    /// The most places where the body of a loop leaves it or goes on with the next iteration, beside its limit.
    pub exits: usize,
    /// Of 256, the steps that may branch in a fragment shader and end lanes instead.
    pub kills: u32,
    /// Of 256, the branches on conditions that are the same in all lanes by their definition.
    pub uniform_branches: u32,
    /// Of 256, the steps that are chains of operations of which each reads the one before, and nobody else does.
    pub chains: u32,
    /// The width of a local array is often this one.
    pub array_bits: u8,
    /// Of 256, the steps that are a shape made on purpose (`shapes`).
    pub shapes: u32,
    /// Of 256, the loops with a nest of branches.
    pub nests: u32,
    /// Of 256, the phis that have 16 bits, beside the usual ones.
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
