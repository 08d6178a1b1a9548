//! Variants of programs: pieces of other programs in them, code guarded by conditions, small changes.
//!
//! Real programs have shapes that no generator has thought of. A variant keeps most of one and changes little: each of
//! a few steps grafts a piece of arithmetic of a donor (`piece`, `graft`), appends the code of another program
//! (`append`), or makes one of the [small changes](crate::mutations::nir). Some steps preserve the meaning of
//! the program, such as code guarded by an opaque condition (one whose value the compiler cannot determine), and others
//! do not: the comparison is between the variant before and after each stage, never the variant with the program that
//! it was made of.
//!
//! After Donaldson et al., *Test-case reduction and deduplication almost for free with transformation-based compiler
//! testing* (spirv-fuzz).

mod append;
mod graft;
mod piece;

use crate::mutations::nir::KINDS;
use ir3_compiler::nir::{CfNode, Function, Shader, read, validate, write};
use ir3_semantics::support::random::Random;

/// The most steps of a variant.
const STEPS: usize = 8;

/// A variant gets no longer than this, in instructions, by steps.
const LARGEST: usize = 1500;

/// A variant of a program with pieces of donors: a function of its arguments. Valid if the program is; the program
/// itself if no step applies.
///
/// The results of divergence analysis are dropped, as they need not hold for the variant.
pub fn variant(program: &Shader, donors: &[&Shader], seed: u64) -> Shader {
    let mut random = Random::new(seed);
    let mut variant = program.clone();
    forget_divergence(&mut variant);
    for _ in 0..random.below(STEPS + 1) {
        let mut next = variant.clone();
        let donor = random.pick(donors).unwrap_or(program);
        let function = &mut next.entry;
        let changed = match random.below(8) {
            0 | 1 => graft::replace(function, &donor.entry, &mut random),
            2 | 3 => graft::keep(function, &donor.entry, &mut random),
            4 | 5 => graft::branch(function, &donor.entry, &mut random),
            6 => append::append(&mut next, donor),
            _ => KINDS[random.below(KINDS.len())].apply(function, random.next()),
        };
        if changed
            && next.instruction_count() <= LARGEST.max(program.instruction_count())
            && let Some(valid) = renumbered(&next)
        {
            variant = valid;
        }
    }
    variant
}

/// The program with its entities in the order of its text; `None` if it is not valid.
fn renumbered(shader: &Shader) -> Option<Shader> {
    let shader = read(&write(shader)).ok()?;
    validate(&shader).is_ok().then_some(shader)
}

fn forget_divergence(shader: &mut Shader) {
    shader.info.divergence_analysis_run = false;
    let Function { defs, blocks, body, .. } = &mut shader.entry;
    defs.values_mut().for_each(|def| def.divergent = None);
    blocks.values_mut().for_each(|block| block.divergent = None);
    forget_loops(body);
}

fn forget_loops(list: &mut [CfNode]) {
    for node in list {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                forget_loops(&mut node.then);
                forget_loops(&mut node.otherwise);
            }
            CfNode::Loop(node) => {
                node.divergent = None;
                forget_loops(&mut node.body);
                node.continuing.iter_mut().for_each(|list| forget_loops(list));
            }
        }
    }
}

#[cfg(test)]
mod tests;
