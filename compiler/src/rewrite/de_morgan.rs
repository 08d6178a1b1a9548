//! De Morgan's laws, the other way round, for the conditions of ifs.
//!
//! A compiler's front end likes to take negations out of conjunctions and disjunctions. Where the GPU branches on two
//! predicates, and inverts each for nothing, they are better inside: the negation of a conjunction is the disjunction of
//! two negations, and all three are one branch.
//!
//! Only a negation that nothing but ifs reads is rewritten. Elsewhere two negations would take the place of one.

use super::{Rewriter, Rule, Term};
use crate::nir::{CfNode, Def, Function, Instr, InstrData, Op};
use cranelift_entity::SecondaryMap;

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);

/// What a negation of ifs is rewritten by.
pub const RULES: [Rule; 2] = [
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

/// What makes the new negations simpler.
pub const SIMPLER: [Rule; 1] =
    [Rule { name: "not-not", bits: 1, from: Term::Op(Op::Inot, &[Term::Op(Op::Inot, &[A])]), to: A }];

/// Whether there is a negation to rewrite.
pub fn is_needed(function: &Function) -> bool {
    let has = |instr: Instr| RULES.iter().any(|rule| applies(function, rule, instr));
    function.instrs_in_order().any(|(_, instr)| has(instr)) && {
        let read = reads(function);
        function.instrs_in_order().any(|(_, instr)| has(instr) && is_of_ifs(function, &read, instr))
    }
}

/// Rewrites all of them.
pub fn run(function: &mut Function) {
    let read = reads(function);
    let all: Vec<_> = function.instrs_in_order().filter(|&(_, instr)| is_of_ifs(function, &read, instr)).collect();
    let mut next_index = function.defs.values().map(|data| data.index + 1).max().unwrap_or(0);
    for (block, instr) in all {
        for rule in &RULES {
            let InstrData::Alu(alu) = &function.instrs[instr] else { break };
            let Some(bindings) = rule.matches(function, alu.op, &alu.srcs) else { continue };
            let Term::Op(op, terms) = rule.to else { continue };
            let def = alu.def;
            let mut rewriter = Rewriter { function, block, before: instr, simpler: &SIMPLER, next_index };
            let done = rewriter.replace(op, terms, &bindings, def);
            next_index = rewriter.next_index;
            if done {
                break;
            }
        }
    }
}

fn applies(function: &Function, rule: &Rule, instr: Instr) -> bool {
    matches!(&function.instrs[instr], InstrData::Alu(alu) if rule.matches(function, alu.op, &alu.srcs).is_some())
}

/// Who reads a value: ifs, or others.
#[derive(Clone, Copy, Default)]
struct Reads {
    ifs: bool,
    others: bool,
}

fn reads(function: &Function) -> SecondaryMap<Def, Reads> {
    let mut reads = SecondaryMap::with_capacity(function.defs.len());
    for (_, instr) in function.instrs_in_order() {
        function.instrs[instr].for_each_src(|def| {
            let of_def: &mut Reads = &mut reads[def];
            of_def.others = true;
        });
    }
    conditions(&function.body, &mut reads);
    reads
}

fn conditions(list: &[CfNode], reads: &mut SecondaryMap<Def, Reads>) {
    for node in list {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                reads[node.condition].ifs = true;
                conditions(&node.then, reads);
                conditions(&node.otherwise, reads);
            }
            CfNode::Loop(node) => {
                conditions(&node.body, reads);
                conditions(node.continuing.as_deref().unwrap_or_default(), reads);
            }
        }
    }
}

/// Whether a result is the condition of ifs and nothing else.
fn is_of_ifs(function: &Function, reads: &SecondaryMap<Def, Reads>, instr: Instr) -> bool {
    function.instrs[instr].def().is_some_and(|def| reads[def].ifs && !reads[def].others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nir::{Builder, Index, IntrinsicOp, Shader, Stage, validate};

    /// An if on the negation of a conjunction or disjunction, of which one side may be a negation itself; and whether
    /// something else reads the condition.
    fn shader(op: Op, inner: bool, other: bool) -> Shader {
        let mut b = Builder::new(Stage::Vertex);
        let zero = b.constant(32, 0);
        let inputs = [0, 1].map(|base| {
            let x = b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], [Index::Base(base)]).unwrap();
            b.alu(Op::Ine, &[x, zero])
        });
        let first = if inner { b.alu(Op::Inot, &inputs[..1]) } else { inputs[0] };
        let both = b.alu(op, &[first, inputs[1]]);
        let condition = b.alu(Op::Inot, &[both]);
        if other {
            let number = b.alu(Op::B2i32, &[condition]);
            b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[number, zero], [Index::Base(0), Index::WriteMask(1)]);
        }
        b.begin_if(condition);
        b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[zero, zero], [Index::Base(1), Index::WriteMask(1)]);
        b.end_if();
        b.finish()
    }

    fn booleans(function: &Function) -> Vec<Op> {
        let op = |instr| match &function.instrs[instr] {
            InstrData::Alu(alu) if matches!(alu.op, Op::Iand | Op::Ior | Op::Inot) => Some(alu.op),
            _ => None,
        };
        function.instrs_in_order().filter_map(|(_, instr)| op(instr)).collect()
    }

    #[test]
    fn negations_of_ifs_go_inside() {
        for (op, other) in [(Op::Iand, Op::Ior), (Op::Ior, Op::Iand)] {
            let mut shader = shader(op, false, false);
            assert!(is_needed(&shader.entry));
            run(&mut shader.entry);
            assert_eq!(validate(&shader), Ok(()));
            assert_eq!(booleans(&shader.entry), [op, Op::Inot, Op::Inot, other]);
            assert!(!is_needed(&shader.entry));
        }
    }

    #[test]
    fn the_negation_of_a_negation_is_none() {
        let mut shader = shader(Op::Iand, true, false);
        run(&mut shader.entry);
        assert_eq!(validate(&shader), Ok(()));
        assert_eq!(booleans(&shader.entry), [Op::Inot, Op::Iand, Op::Inot, Op::Ior]);
        assert!(!is_needed(&shader.entry));
    }

    #[test]
    fn a_negation_with_another_reader_stays() {
        let mut shader = shader(Op::Iand, false, true);
        let old = shader.clone();
        assert!(!is_needed(&shader.entry));
        run(&mut shader.entry);
        assert!(shader == old);
    }

    /// The rules hold for all values of one bit.
    #[test]
    fn rules_hold() {
        fn value(term: Term, variables: u32) -> bool {
            match term {
                Term::Variable(number) => variables >> number & 1 == 1,
                Term::Op(Op::Inot, &[x]) => !value(x, variables),
                Term::Op(Op::Iand, &[x, y]) => value(x, variables) && value(y, variables),
                Term::Op(Op::Ior, &[x, y]) => value(x, variables) || value(y, variables),
                Term::Op(..) => panic!("{term:?}"),
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
