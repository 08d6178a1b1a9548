//! De Morgan's laws, reversed, for the conditions of ifs.
//!
//! Front ends usually move negations out of conjunctions and disjunctions. If the GPU branches on two predicates, and
//! inverts each for free, they are better inside: the negation of a conjunction is the disjunction of two negations,
//! and all three are one branch.
//!
//! A negation is rewritten only if its only use is the if after its block, its operand has no other use, and the branch
//! itself can test one operand of that. Otherwise two negations would replace one.

use super::{Rewriter, Rule, Table, Term};
use crate::nir::{Block, CfNode, Def, Function, Instr, InstrData, Op};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
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
        function.instrs_in_order().any(|(block, instr)| has(instr) && reads.pays(function, block, instr))
    }
}

/// Rewrites all of them.
pub fn run(function: &mut Function) {
    let reads = Reads::of(function);
    let all: Vec<_> = function.instrs_in_order().filter(|&(block, instr)| reads.pays(function, block, instr)).collect();
    let mut next_index = function.defs.values().map(|data| data.index + 1).max().unwrap_or(0);
    for (block, instr) in all {
        for rule in Table::DeMorgan.rules() {
            let InstrData::Alu(alu) = &function.instrs[instr] else { break };
            let def = alu.def;
            let bits = function.defs[def].bit_size;
            let Some(bindings) = rule.matches(function, alu.op, &alu.srcs, bits) else { continue };
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
    /// The block of its definition.
    blocks: SecondaryMap<Def, PackedOption<Block>>,
    /// The number of instructions that read it.
    instrs: SecondaryMap<Def, u32>,
    /// The blocks that end with an if on it.
    ifs: SecondaryMap<Def, SmallVec<[Block; 1]>>,
}

impl Reads {
    fn of(function: &Function) -> Self {
        let mut this = Self { blocks: SecondaryMap::new(), instrs: SecondaryMap::new(), ifs: SecondaryMap::new() };
        for (block, instr) in function.instrs_in_order() {
            let data = &function.instrs[instr];
            data.for_each_src(|def| this.instrs[def] += 1);
            if let Some(def) = data.def() {
                this.blocks[def] = block.into();
            }
        }
        this.conditions(&function.body);
        this
    }

    fn conditions(&mut self, list: &[CfNode]) {
        let mut before = None;
        for node in list {
            match node {
                CfNode::Block(block) => before = Some(*block),
                CfNode::If(node) => {
                    self.ifs[node.condition].extend(before);
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

    /// Returns true if a result in `block` can be folded into the branch at its end.
    fn pays(&self, function: &Function, block: Block, instr: Instr) -> bool {
        let Some((def, [inner])) = scalar(function, instr, |op| op == Op::Inot) else { return false };
        let of_branch = self.instrs[def] == 0 && self.ifs[def][..] == [block];
        let join = |op| matches!(op, Op::Iand | Op::Ior);
        let inner_instr = function.defs[inner].instr;
        let Some((_, operands)) = scalar::<2>(function, inner_instr, join) else { return false };
        of_branch && self.is_sole(inner) && operands.into_iter().any(|operand| self.is_test(function, block, operand))
    }

    /// Returns true if one instruction reads a value, and there is no other use.
    fn is_sole(&self, def: Def) -> bool {
        self.instrs[def] == 1 && self.ifs[def].is_empty()
    }

    /// Returns true if an operand is computed in `block` for one user only, so that it can be computed as a predicate.
    fn is_test(&self, function: &Function, block: Block, mut operand: Def) -> bool {
        while let Some((_, [inner])) = scalar(function, function.defs[operand].instr, |op| op == Op::Inot)
            && self.is_sole(operand)
        {
            operand = inner;
        }
        self.is_sole(operand) && self.blocks[operand].expand() == Some(block)
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
