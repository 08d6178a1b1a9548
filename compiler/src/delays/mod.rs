//! Delays: latencies, and the nops that they cost.
//!
//! The machine does not wait for the results of its ALU. An instruction that reads one too early reads the old contents
//! of the register, so the compiler places other instructions between the two, or nops.

pub mod latency;
pub mod nops;
#[cfg(test)]
mod tests;
