//! The register checker: a dataflow proof that every use reads the value that it read before spilling, allocation or
//! the lowering of copies.
//!
//! # The lattice
//!
//! A *piece* is 16 bits of a register, of an SSA value or of scratch memory (`location`). Let `T` be the pieces of the
//! target, `X` those of the source, and `C` the literals (immediates, words of the constant file), which are pieces of
//! both. A state is
//!
//! ```text
//! σ = (E, U)        E ⊆ (T ∪ C) × (X ∪ C),   U ⊆ X
//! holds(σ, l, x)  ⇔  (l, x) ∈ E  ∨  x ∈ U  ∨  l = x ∈ C
//! γ(σ) = { (t, s) | in every active lane:  ∀ x ∈ U: s(x) is undefined,
//!                                          ∀ (l, x) ∈ E: s(x) is undefined ∨ t(l) = s(x) }
//! ```
//!
//! where `t` and `s` are the contents of both programs at a point (`facts`). More facts are higher; `γ(σ ⊓ σ')  ⊇  γ(σ)
//! ∪ γ(σ')`:
//!
//! ```text
//! (E, U) ⊓ (E', U') = ( { (l, x) ∈ E ∪ E' | holds(σ, l, x) ∧ holds(σ', l, x) },  U ∩ U' )
//! ```
//!
//! A fact that is in only one of `E` and `E'` is *open*: it assumes a content of the undefined `x` (`open`). The state
//! at the entry is `(∅, X₀)`, `X₀` being the registers of the source, which begin undefined; that at an unvisited block
//! is the top of the lattice. Blocks are visited until nothing changes (`walk`). The pairs that hold only get fewer, so
//! the iteration ends. Pairs that nothing reads later are left out of `E` (`liveness`), which only enlarges `γ`.
//!
//! # The transfer functions
//!
//! Both programs are stepped from block to block in parallel. Write `E \ l` for `E` without the pairs of `l`, and `E \
//! x` for `E` without those of `x`.
//!
//! | step | new state | premise |
//! |---|---|---|
//! | target: copies `lᵢ ← mᵢ` | `E \ lᵢ ∪ { (lᵢ, x) \| (mᵢ, x) ∈ E ∨ mᵢ = x ∈ C }`, `U` | |
//! | source: copies `xᵢ ← yᵢ` | `E \ xᵢ ∪ { (l, xᵢ) \| yᵢ ∉ U, (l, yᵢ) ∈ E ∨ l = yᵢ ∈ C }`, `U \ xᵢ ∪ { xᵢ \| yᵢ ∈ U }` | |
//! | target alone: `l ← op(m)`, pure | `E \ l ∪ { (l, x) \| x = op(y) in the source, ∀ k: holds(mₖ, yₖ) }`, `U` | |
//! | source alone: `x ← op(y)`, pure | `E \ x`, `U \ x` | |
//! | both: `l ← op(m)`, `x ← op(y)` | `E \ l \ x ∪ { (l, x) }`, `U \ x` | `∀ k: holds(mₖ, yₖ)` |
//! | both, pure, the premise fails | `E \ l \ x`, `U \ x` | |
//! | both: one of `(lᵢ, xᵢ)` is written | `E \ lᵢ \ xᵢ ∪ { (lᵢ, xᵢ) \| holds(lᵢ, xᵢ) }`, `U \ xᵢ` | `∀ k: holds(mₖ, yₖ)` |
//!
//! The operands of one step are read before its results are written. `E` and `U` on the right are those before the
//! step, and a premise that fails refuses the program, unless the operation is pure. Copies are `copies`, the others
//! `operation` and `moves`; the sixth row defers the failure to a use of `l`. Operands of a commutative operation may
//! be exchanged. Where a premise holds because `y` is undefined, `y` is the content of `m` from there on. Phis are
//! copies on the edges. Effects are operations: a store writes no piece, an operation on the constant file removes the
//! facts about its words.
//!
//! A shared register belongs to the wave, not to a lane: other lanes may write it between the end of one block and the
//! start of the next. At the start of `b`, with `W(b)` the blocks from which the wave may come (`wave`),
//!
//! ```text
//! l and x of the wave (or literals):  (l, x) stays  ⇔  holds(end of p, l, x) for all p ∈ W(b)
//! one of the wave, one of a lane:     (l, x) stays  ⇔  W(b) has one block at most
//! ```
//!
//! If the instructions of a block are in another order, they are put back into the source's order first, if that
//! changes nothing (`order`). Branches that a wave takes as one are followed by their condition (`uniform`).
//!
//! # Soundness
//!
//! By induction over the steps of two runs with the same inputs, the contents of both at every point are in `γ` of its
//! state: each row keeps that, and so does the meet. So at every instruction of both programs the same operation is
//! executed on the same operands, with the same effects in the same order, and branches take the same paths. Nothing is
//! taken from the pass but the pairing of instructions, and if that is wrong, the shapes or the operands differ.
//! Liveness is used only to forget facts.

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
