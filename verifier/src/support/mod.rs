//! Used by all layers: random numbers, threads, caught panics, and the side conditions of the provers.

pub mod guards;
pub(crate) mod panics;
pub mod queue;
pub mod random;
pub mod threads;
pub mod version;
