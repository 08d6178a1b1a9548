//! Used by all layers: random numbers, threads, caught panics, a watchdog, and the side conditions of the provers.

pub mod guards;
pub mod panics;
pub mod queue;
pub mod random;
pub mod threads;
pub mod watch;
