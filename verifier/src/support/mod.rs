//! What all layers use: random numbers, caught panics, and the side conditions of the provers.

pub mod guards;
pub(crate) mod panics;
pub mod random;
