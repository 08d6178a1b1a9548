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
//! For ir3 (`ir3_graph`, `colour`, `spilling`) a node is a [merge set](crate::regalloc::merge_sets): values that are coalesced
//! before allocation, such as a vector and its parts, or a phi and its sources. A value has one location for its whole
//! live range. So this allocator never moves a value to free registers; if it finds no register it spills, even if
//! fewer registers are live than exist. The comparison with the SSA allocator measures this property.
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

use crate::ir3::Program;
use crate::regalloc::pressure::Analysis;
use crate::regalloc::{Error, RegisterLimit, assign};
use crate::target::Target;

crate::words! {
    /// Planted bugs of this allocator, for tests of the checks after it.
    pub enum Fault {
        /// Every third edge of the interference graph is missing.
        MissingEdge = "missing-edge",
        /// Every `q` is 0, so each node seems trivially colourable.
        WrongQ = "wrong-q",
        /// Neighbours of a vector avoid only its first unit.
        SubRegister = "sub-register",
        /// The register from which the search starts is taken even if it is not of the class of the node.
        OutOfClass = "out-of-class",
        /// Precoloured inputs and outputs get other registers.
        Recoloured = "recoloured",
        /// Values whose last use is an instruction are treated as dead before it.
        DeadTooEarly = "dead-too-early",
    }
}

/// The settings of the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The nodes after which the search for a register starts at the next register.
    pub rotation: Rotation,
    /// A planted bug.
    pub fault: Option<Fault>,
}

/// Assigns registers to all values of a program that `predicates` has processed. Like `run_limited` of the SSA
/// allocator, except that the minimum limit is the number of registers that colouring needs.
///
/// # Errors
/// If the graph cannot be coloured with the registers of the limit, or the program is not supported.
pub fn run(program: &mut Program, target: &Target, limit: RegisterLimit, settings: Settings) -> Result<(), Error> {
    let mut analysis = Analysis::new(program, target)?;
    let pressure = analysis.max_pressure(program);
    let fixed = colour::with_few_registers(program, &mut analysis, &pressure, target, limit, settings)?;
    assign::run_fixed(program, &analysis, target, &fixed, &pressure)
}
