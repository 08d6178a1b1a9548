//! De Morgan's laws, reversed, for the conditions of ifs.
//!
//! Front ends usually move negations out of conjunctions and disjunctions. If the GPU branches on two predicates, and
//! inverts each for free, they are better inside: the negation of a conjunction is the disjunction of two negations,
//! and all three are one branch.
//!
//! A negation is rewritten only if it is read by ifs alone, its operand has no other use, and a branch can test one
//! operand of that without a further instruction: a comparison, or a conjunction or disjunction itself, with no other
//! uses than ifs. Otherwise two negations would replace one.

use super::{Rewriter, Rule, Table, Term};
use crate::arms::{Arm, Counter};
use crate::maps::map_of;
use crate::nir::{CfNode, Def, Function, Instr, InstrData, Op};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);

pub(super) const RULES: [Rule; 2] = [
    Rule {
        name: "not-and",
        bits: 1,
        from: Term::Op(Op::Inot, &[Term::Op(Op::Iand, &[A, B])]),
        to: Term::Op(Op::Ior, &[Term::Op(Op::Inot, &[A]), Term::Op(Op::Inot, &[B])]),
    },
    Rule {
        name: "not-or",
        bits: 1,
        from: Term::Op(Op::Inot, &[Term::Op(Op::Ior, &[A, B])]),
        to: Term::Op(Op::Iand, &[Term::Op(Op::Inot, &[A]), Term::Op(Op::Inot, &[B])]),
    },
];

pub(super) const SIMPLER: [Rule; 1] =
    [Rule { name: "not-not", bits: 1, from: Term::Op(Op::Inot, &[Term::Op(Op::Inot, &[A])]), to: A }];

/// Returns true if there is a negation to rewrite.
pub fn is_needed(function: &Function) -> bool {
    let has = |instr: Instr| Table::DeMorgan.rules().iter().any(|rule| applies(function, rule, instr));
    function.instrs_in_order().any(|(_, instr)| has(instr)) && {
        let reads = Reads::of(function);
        function.instrs_in_order().any(|(_, instr)| has(instr) && reads.pays(function, instr))
    }
}

/// Rewrites all of them.
pub fn run(function: &mut Function, counter: &Counter) {
    let reads = Reads::of(function);
    let all: Vec<_> = function.instrs_in_order().filter(|&(_, instr)| reads.pays(function, instr)).collect();
    let mut next_index = function.defs.values().map(|data| data.index + 1).max().unwrap_or(0);
    for (block, instr) in all {
        for rule in Table::DeMorgan.rules() {
            let InstrData::Alu(alu) = &function.instrs[instr] else { break };
            let def = alu.def;
            let bits = function.defs[def].bit_size;
            let Some(bindings) = rule.matches(function, alu.op, &alu.srcs, bits) else { continue };
            let arm = if rule.name == RULES[0].name { Arm::DeMorganAnd } else { Arm::DeMorganOr };
            if !counter.may(arm) {
                break;
            }
            let mut rewriter = Rewriter { function, block, before: instr, simpler: Table::Simpler, next_index };
            let done = rewriter.replace(rule, &bindings, def);
            next_index = rewriter.next_index;
            if done {
                break;
            }
        }
    }
}

fn applies(function: &Function, rule: &Rule, instr: Instr) -> bool {
    matches!(&function.instrs[instr], InstrData::Alu(alu)
        if rule.matches(function, alu.op, &alu.srcs, function.defs[alu.def].bit_size).is_some())
}

/// The uses of each value.
struct Reads {
    /// The number of instructions that read it.
    instrs: SecondaryMap<Def, u32>,
    /// True if an if reads it.
    ifs: SecondaryMap<Def, bool>,
}

impl Reads {
    fn of(function: &Function) -> Self {
        let mut this = Self { instrs: map_of(function.defs.len()), ifs: map_of(function.defs.len()) };
        for (_, instr) in function.instrs_in_order() {
            function.instrs[instr].for_each_src(|def| this.instrs[def] += 1);
        }
        this.conditions(&function.body);
        this
    }

    fn conditions(&mut self, list: &[CfNode]) {
        for node in list {
            match node {
                CfNode::Block(_) => {}
                CfNode::If(node) => {
                    self.ifs[node.condition] = true;
                    self.conditions(&node.then);
                    self.conditions(&node.otherwise);
                }
                CfNode::Loop(node) => {
                    self.conditions(&node.body);
                    self.conditions(node.continuing.as_deref().unwrap_or_default());
                }
            }
        }
    }

    /// Returns true if a result can be folded into all branches that read it.
    fn pays(&self, function: &Function, instr: Instr) -> bool {
        let Some((def, [inner])) = scalar(function, instr, |op| op == Op::Inot) else { return false };
        let of_branches = self.instrs[def] == 0 && self.ifs[def];
        let join = |op| matches!(op, Op::Iand | Op::Ior);
        let inner_instr = function.defs[inner].instr;
        let Some((_, operands)) = scalar::<2>(function, inner_instr, join) else { return false };
        of_branches && self.is_sole(inner) && operands.into_iter().any(|operand| self.is_test(function, operand))
    }

    /// Returns true if one instruction reads a value, and there is no other use.
    fn is_sole(&self, def: Def) -> bool {
        self.instrs[def] == 1 && !self.ifs[def]
    }

    /// Returns true if an operand can be computed as a predicate: one instruction reads it, and ifs besides.
    fn is_test(&self, function: &Function, mut operand: Def) -> bool {
        while let Some((_, [inner])) = scalar(function, function.defs[operand].instr, |op| op == Op::Inot)
            && self.is_sole(operand)
        {
            operand = inner;
        }
        let is_alu = matches!(function.instrs[function.defs[operand].instr], InstrData::Alu(_));
        self.instrs[operand] == 1 && is_alu
    }
}

/// The result and the operands of an operation with `N` of them.
fn scalar<const N: usize>(function: &Function, instr: Instr, wanted: impl Fn(Op) -> bool) -> Option<(Def, [Def; N])> {
    let InstrData::Alu(alu) = &function.instrs[instr] else { return None };
    let operands: SmallVec<[Def; 4]> = alu.srcs.iter().map(|src| src.def).collect();
    wanted(alu.op).then_some((alu.def, <[Def; N]>::try_from(&operands[..]).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules hold for all 1-bit values.
    #[test]
    fn rules_hold() {
        fn value(term: Term, variables: u32) -> bool {
            match term {
                Term::Variable(number) => variables >> number & 1 == 1,
                Term::Op(Op::Inot, &[x]) => !value(x, variables),
                Term::Op(Op::Iand, &[x, y]) => value(x, variables) && value(y, variables),
                Term::Op(Op::Ior, &[x, y]) => value(x, variables) || value(y, variables),
                Term::Constant(_) | Term::Op(..) => panic!("{term:?}"),
            }
        }
        for rule in RULES.iter().chain(&SIMPLER) {
            assert_eq!(rule.bits, 1);
            for variables in 0..16 {
                assert_eq!(value(rule.from, variables), value(rule.to, variables), "{}", rule.name);
            }
        }
    }
}
