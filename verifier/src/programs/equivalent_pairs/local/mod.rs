//! Rewrites of one instruction: it computes the same in another way, from the same values or from new ones in front of it.
//!
//! Every rule asks the encoding whether it can have its operands; what was put in front of an instruction that could not be
//! rewritten in the end stays there and is read by nobody.

mod again;
mod choose;
mod commute;
mod compare;
mod logic;
mod reassociate;
mod shift;
mod subtract;

use super::edit::{At, consts_change, is_pure};
use crate::support::random::Random;
use ir3_compiler::ir3::Program;
use ir3_compiler::target::Target;

/// Rewrites the instruction; false, and its result as it was, if the rule is not for it.
pub(super) type Rule = fn(&mut At<'_>) -> bool;

/// A family of rules.
pub(super) struct Family {
    pub name: &'static str,
    pub rules: &'static [Rule],
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
    Family { name: "computed again", rules: &[again::computed] },
    Family { name: "copied", rules: &[again::copied] },
    Family { name: "regrouped", rules: &[again::regrouped] },
];

/// The families that rewrite integer operations and nothing else, for programs that are half rewritten.
pub(super) fn integer_rules() -> Vec<Rule> {
    let others = ["commute floats", "copied", "regrouped", "computed again", "signs as bits"];
    FAMILIES.iter().filter(|family| !others.contains(&family.name)).flat_map(|family| family.rules).copied().collect()
}

/// Rewrites so many of a hundred instructions by one of `rules`; says how many it were.
pub(super) fn rewrite(
    program: &mut Program,
    target: &Target,
    random: &mut Random,
    rules: &[Rule],
    percent: usize,
) -> usize {
    let consts_change = consts_change(program);
    let mut count = 0;
    for block in program.layout.clone() {
        let mut index = 0;
        while let Some(&instr) = program.blocks[block].instrs.get(index) {
            if is_pure(&program.instrs[instr], consts_change) && random.chance(percent) {
                let first = random.below(rules.len());
                let mut at = At { program, target, random, block, index, instr, consts_change };
                count += usize::from((0..rules.len()).any(|i| rules[(first + i) % rules.len()](&mut at)));
                index = at.index;
            }
            index += 1;
        }
    }
    count
}
