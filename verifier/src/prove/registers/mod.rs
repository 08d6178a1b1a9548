//! The register checker: a dataflow proof that every use reads the value that it read before spilling, allocation or the lowering of copies.
//!
//! *The lattice.* At a point of both programs, the set of facts "piece `l` of the target holds what piece `x` of the source
//! does" (`facts`); pieces are 16 bits of a register, of an SSA value, of scratch memory (`location`). More facts are higher;
//! the meet is the intersection. The walk begins with nothing at the entry, and, like any forward analysis, with everything
//! where it has not been yet, and goes round loops until nothing falls (`walk`).
//!
//! *The transfer functions.* Both sides step from block to block alike. An instruction that only copies (`copies`) is a step
//! of its own side: one of the target has its destination hold what its source does; one of the source adds the destination to
//! wherever its source is held. Phis are copies on the edges. An instruction that stands on both sides (`operation`) is a
//! step of both: what it reads in the target must hold what it reads in the source, and then its results hold each other. What
//! the target computes again holds what the source has computed in the same way from what the operands hold. What the
//! source alone computes is held nowhere. Where a block's instructions stand in another order, they go back to the source's
//! first, if that changes nothing (`order`).
//!
//! *Why it is right.* By induction over the steps of a run: every fact that is known is true, so at every instruction of
//! both sides the same operation is done on the same operands, with the same effects in the same order, and branches go the
//! same way. Nothing is taken from the pass but which instruction is which, and if that is wrong the shapes or the
//! operands differ. Liveness is used to forget, which makes less known.

mod copies;
mod facts;
mod failure;
mod liveness;
mod location;
mod moves;
mod numbers;
mod operation;
mod order;
mod slots;
mod survey;
mod walk;
mod wave;

pub use failure::{Failure, Mismatch, Site};

use crate::semantics::assumptions::NO_ALIAS;
use ir3_compiler::ir3::Program;
use ir3_compiler::target::Target;

/// What was shown: for all inputs, the target does what the source does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Instructions that stand on both sides, as often as the walk came to them.
    pub operations: u64,
    /// Pieces of operands that hold what they should.
    pub operands: u64,
    /// Blocks, as often as the walk came to them.
    pub blocks: u64,
    /// What was taken for granted.
    pub assumptions: Vec<&'static str>,
}

/// Shows that a pass which changes only where values are kept the meaning of a program.
///
/// # Errors
/// What cannot be shown, and where: the pass is wrong there, or did something that this engine does not follow.
pub fn prove(source: &Program, target: &Program, machine: &Target) -> Result<Proof, Failure> {
    let aligned = numbers::aligned(source, target);
    let target = aligned.as_ref().unwrap_or(target);
    let order::Restored { program, differs, images_apart } = order::restored(source, target);
    let mut proof = walk::Walk::new(source, program.as_ref().unwrap_or(target), machine)
        .run()
        .map_err(|failure| differs.unwrap_or(failure))?;
    proof.assumptions.extend(images_apart.then_some(NO_ALIAS));
    Ok(proof)
}
