//! Register allocation by graph colouring, after the allocator that Mesa's drivers shared in 2015, with round-robin
//! selection of registers.
//!
//! The allocator proper depends on no instruction set:
//! 1. [`classes`]: register classes, conflicts, `p` and `q`;
//! 2. [`graph`]: the interference graph; its nodes have classes, given registers, and costs of spilling;
//! 3. [`simplify`]: the order of the nodes; optimistic if no node is trivially colourable;
//! 4. [`select`]: a register for each node, with round-robin rotation;
//! 5. [`spill_choice`]: the node to spill if a node gets no register.
//!
//! For ir3 (`ir3_graph`, `colour`, `spilling`) a node is a [merge set](crate::regalloc::merge_sets): values that are
//! coalesced before allocation, such as a vector and its parts, or a phi and its sources. A value has one location for
//! its whole live range. So this allocator never moves a value to free registers; if it finds no register it spills,
//! even if fewer registers are live than exist. The comparison with the SSA allocator measures this property.
//!
//! Liveness, conversion to conventional SSA, precoloured registers and the emission of copies are those of the SSA
//! allocator. So are the stages: `spill` spills until the program can be coloured, and `register-allocation` colours
//! it.

mod bits;
pub mod classes;
mod colour;
pub mod graph;
mod ir3_graph;
pub mod select;
pub mod simplify;
pub mod spill_choice;
mod spilling;
#[cfg(test)]
mod tests;

pub use select::Rotation;
pub use spilling::{is_spilling_needed, spill};

use crate::arms::Counter;
use crate::ir3::Program;
use crate::regalloc::pressure::Analysis;
use crate::regalloc::{Error, RegisterLimit, assign};
use crate::target::Target;

/// Assigns registers to all values of a program that `predicates` has processed. Like `run_limited` of the SSA
/// allocator, except that the minimum limit is the number of registers that colouring needs.
///
/// # Errors
/// If the graph cannot be coloured with the registers of the limit, or the program is not supported.
pub fn run(
    program: &mut Program,
    target: &Target,
    limit: RegisterLimit,
    rotation: Rotation,
    counter: &Counter,
) -> Result<(), Error> {
    let mut analysis = Analysis::new(program, target)?;
    let pressure = analysis.max_pressure(program);
    let fixed = colour::with_few_registers(program, &mut analysis, &pressure, target, limit, rotation)?;
    assign::run_fixed(program, &analysis, target, &fixed, &pressure, counter)
}
