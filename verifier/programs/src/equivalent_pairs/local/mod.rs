//! Rewrites of one instruction: it computes the same result in another way, from the same values or from new ones that
//! are inserted before it.
//!
//! Every rule checks that its operands can be encoded. Instructions that were inserted before a rule failed stay in the
//! program as dead code.

mod choose;
mod commute;
mod compare;
mod logic;
mod reassociate;
mod rematerialise;
mod shift;
mod subtract;

use super::edit::{RewriteSite, consts_change, is_pure};
use ir3_compiler::ir3::Program;
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// Rewrites the instruction; returns false, and keeps its result, if the rule does not apply.
pub type RewriteRule = fn(&mut RewriteSite<'_>) -> bool;

/// A family of rules.
pub(super) struct Family {
    pub name: &'static str,
    pub rules: &'static [RewriteRule],
}

/// All families.
pub(super) static FAMILIES: &[Family] = &[
    Family { name: "commute integers", rules: &[commute::integers] },
    Family { name: "commute floats", rules: &[commute::floats] },
    Family { name: "turn comparisons", rules: &[compare::turned] },
    Family { name: "invert comparisons", rules: &[compare::inverted] },
    Family { name: "reassociate", rules: &[reassociate::to_the_right, reassociate::to_the_left] },
    Family { name: "shifts and products", rules: &[shift::product, shift::doubled, shift::in_two, shift::by_parts] },
    Family { name: "differences and sums", rules: &[subtract::negated, subtract::by_complement, subtract::of_sum] },
    Family { name: "de morgan", rules: &[logic::de_morgan, logic::exclusive_or, logic::exclusive_difference] },
    Family { name: "turned selects", rules: &[choose::turned, choose::of_a_copy] },
    Family { name: "minima as selects", rules: &[choose::smaller] },
    Family { name: "signs as bits", rules: &[logic::sign_bit] },
    Family { name: "recomputed", rules: &[rematerialise::computed] },
    Family { name: "copied", rules: &[rematerialise::copied] },
    Family { name: "regrouped", rules: &[rematerialise::regrouped] },
];

/// The rules that rewrite integer operations only, for [`scaled`](super::scaled).
pub(super) fn integer_rules() -> Vec<RewriteRule> {
    let others = ["commute floats", "copied", "regrouped", "recomputed", "signs as bits"];
    FAMILIES.iter().filter(|family| !others.contains(&family.name)).flat_map(|family| family.rules).copied().collect()
}

/// Rewrites `percent` of a hundred instructions, each by one of `rules`; returns the number of rewritten ones.
pub fn rewrite(
    program: &mut Program,
    target: &Target,
    random: &mut Random,
    rules: &[RewriteRule],
    percent: usize,
) -> usize {
    let consts_change = consts_change(program);
    let mut count = 0;
    for block in program.layout.clone() {
        let mut index = 0;
        while let Some(&instr) = program.blocks[block].instrs.get(index) {
            if is_pure(&program.instrs[instr], consts_change) && random.chance(percent) {
                let first = random.below(rules.len());
                let mut at = RewriteSite { program, target, random, block, index, instr, consts_change };
                count += usize::from((0..rules.len()).any(|i| rules[(first + i) % rules.len()](&mut at)));
                index = at.index;
            }
            index += 1;
        }
    }
    count
}
