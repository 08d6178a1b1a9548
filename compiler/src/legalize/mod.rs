//! From a program with registers to what the machine runs: when results may be read.
//!
//! The machine does not wait for the results of its ALU. Whoever reads one too early reads what was there before, so
//! the compiler leaves time: by other instructions, else by nops.

pub mod delays;
pub mod latency;
#[cfg(test)]
mod tests;
