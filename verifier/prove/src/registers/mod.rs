//! The register checker: a dataflow proof that every use reads the value that it read before spilling, allocation or
//! the lowering of copies.
//!
//! *The lattice.* At a point of both programs, the set of facts "piece `l` of the target holds the value of piece `x`
//! of the source" (`facts`); pieces are 16 bits of a register, of an SSA value, of scratch memory (`location`). More
//! facts are higher; the meet is the intersection. The analysis starts with no facts at the entry and, as usual for a
//! forward analysis, with all facts at unvisited blocks, and iterates until nothing changes (`walk`).
//!
//! *The transfer functions.* Both programs are stepped from block to block in parallel. An instruction that only copies
//! (`copies`) is a step of its own program: in the target, the destination holds the values of its source; in the
//! source, the destination is added to all holders of its source. Phis are copies on the edges. An instruction of both
//! programs (`operation`) is a step of both: its operands in the target must hold its operands in the source, and then
//! its results hold each other. A value that the target rematerialises holds each value that the source has computed in
//! the same way from the values that the operands hold. A value that only the source computes is held nowhere. If the
//! instructions of a block are in another order, they are put back into the source's order first, if that changes
//! nothing (`order`).
//!
//! *Soundness.* By induction over the steps of a run, every fact is true. So at every instruction of both programs the
//! same operation is executed on the same operands, with the same effects in the same order, and branches take the same
//! paths. Nothing is taken from the pass but the pairing of instructions, and if that is wrong, the shapes or the
//! operands differ. Liveness is used only to forget facts.

mod arrays;
mod copies;
mod effects;
mod facts;
mod failure;
mod held;
mod liveness;
mod location;
mod moves;
mod numbers;
mod open;
mod operation;
mod order;
mod slots;
mod survey;
mod uniform;
mod walk;
mod wave;

pub use failure::{InstrSite, Mismatch, RegisterFailure};

use ir3_compiler::ir3::Program;
use ir3_compiler::target::Target;
use ir3_semantics::assumptions::NO_ALIAS;

/// A proof that, for all inputs, the target refines the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Number of steps over instructions of both programs.
    pub operations: u64,
    /// Number of operand pieces that were checked.
    pub operands: u64,
    /// Number of visits of blocks.
    pub blocks: u64,
    /// The assumptions that were used.
    pub assumptions: Vec<&'static str>,
}

/// Proves that a pass which changes only where values are kept preserves the meaning of a program.
///
/// # Errors
/// The obligation that failed, and where: the pass is wrong there, or did something that the checker does not support.
pub fn prove(source: &Program, target: &Program, machine: &Target) -> Result<Proof, RegisterFailure> {
    let aligned = numbers::aligned(source, target);
    let target = aligned.as_ref().unwrap_or(target);
    let order::Restored { program, differs, disjoint_images } = order::restored(source, target, machine.merged_regs);
    let mut proof = walk::LockstepWalk::new(source, program.as_ref().unwrap_or(target), machine)
        .run()
        .map_err(|failure| differs.unwrap_or(failure))?;
    proof.assumptions.extend(disjoint_images.then_some(NO_ALIAS));
    Ok(proof)
}
