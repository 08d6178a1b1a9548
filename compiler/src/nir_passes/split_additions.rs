//! 64-bit sums in halves: `iadd64_split[234]_(lo|hi)`.
//!
//! Hardware of 32 bits adds two 64-bit numbers in two steps, and the second one needs the carry of the first. The
//! best form of the carry depends on the machine: a comparison, an accumulator, a flag. So nir leaves the carry to
//! selection: each half of a sum is one operation on the low words of both addends and on those of their high words
//! that are not 0.
//!
//! The pass makes pairs of these operations of 64-bit additions, and recognises the sums of addresses that were lowered
//! before: a high word to which a comparison is added, of a sum of low words with one of its operands. Then the
//! operations lose the operands that are 0.
//!
//! Source: Ian Romanick's proposal (seed 004). Its table of rules and its declared properties are in [`PROPOSED`]
//! unchanged, though one rule, one property and one type are wrong (docs/findings.md): nothing applies them.

use super::{Bindings, Rewriter, Rule, Table, Term};
use crate::nir::{AluSrc, Def, Function, Instr, InstrData, Op, Property};
use cranelift_entity::EntitySet;
use std::sync::LazyLock;

use Op::{
    B2i32, I2i64, Iadd, Iadd64Split2Hi, Iadd64Split2Lo, Iadd64Split3Hi, Iadd64Split3Lo, Iadd64Split4Hi, Iadd64Split4Lo,
    Ishr, Pack64_2x32Split, U2u64, Ult, Unpack64_2x32SplitX, Unpack64_2x32SplitY,
};

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);
const C: Term = Term::Variable(2);
const D: Term = Term::Variable(3);
const ZERO: Term = Term::Constant(0);

/// The words of two addends of 64 bits.
const WORDS: [Term; 4] = [
    Term::Op(Unpack64_2x32SplitX, &[A]),
    Term::Op(Unpack64_2x32SplitX, &[B]),
    Term::Op(Unpack64_2x32SplitY, &[A]),
    Term::Op(Unpack64_2x32SplitY, &[B]),
];

/// The carry of the low words, as `nir_lower_int64` computes it.
const CARRY: Term = Term::Op(B2i32, &[Term::Op(Ult, &[Term::Op(Iadd, &[A, B]), A])]);

const fn rule(name: &'static str, bits: u8, from: Term, to: Term) -> Rule {
    Rule { name, bits, from, to }
}

/// Larger patterns first: the last one is a part of those before it.
pub(super) const RULES: [Rule; 5] = [
    rule(
        "sum",
        64,
        Term::Op(Iadd, &[A, B]),
        Term::Op(Pack64_2x32Split, &[Term::Op(Iadd64Split4Lo, &WORDS), Term::Op(Iadd64Split4Hi, &WORDS)]),
    ),
    rule(
        "carry-and-sum",
        32,
        Term::Op(Iadd, &[CARRY, Term::Op(Iadd, &[C, D])]),
        Term::Op(Iadd64Split4Hi, &[A, B, C, D]),
    ),
    rule(
        "sum-of-carry",
        32,
        Term::Op(Iadd, &[Term::Op(Iadd, &[CARRY, C]), D]),
        Term::Op(Iadd64Split4Hi, &[A, B, C, D]),
    ),
    rule("carry-and-word", 32, Term::Op(Iadd, &[CARRY, C]), Term::Op(Iadd64Split3Hi, &[A, B, C])),
    CARRY_RULE,
];

const CARRY_RULE: Rule = rule("carry", 32, CARRY, Term::Op(Iadd64Split2Hi, &[A, B]));

pub(super) const SIMPLER: [Rule; 18] = [
    rule("low-of-pair", 32, Term::Op(Unpack64_2x32SplitX, &[Term::Op(Pack64_2x32Split, &[A, B])]), A),
    rule("high-of-pair", 32, Term::Op(Unpack64_2x32SplitY, &[Term::Op(Pack64_2x32Split, &[A, B])]), B),
    rule("low-of-unsigned", 32, Term::Op(Unpack64_2x32SplitX, &[Term::Op(U2u64, &[A])]), A),
    rule("high-of-unsigned", 32, Term::Op(Unpack64_2x32SplitY, &[Term::Op(U2u64, &[A])]), ZERO),
    rule("low-of-signed", 32, Term::Op(Unpack64_2x32SplitX, &[Term::Op(I2i64, &[A])]), A),
    rule(
        "high-of-signed",
        32,
        Term::Op(Unpack64_2x32SplitY, &[Term::Op(I2i64, &[A])]),
        Term::Op(Ishr, &[A, Term::Constant(31)]),
    ),
    FOUR_HIGH_FIRST,
    FOUR_LOW_FIRST,
    FOUR_HIGH_SECOND,
    FOUR_LOW_SECOND,
    THREE_HIGH,
    THREE_LOW,
    FOUR_HIGH_NO_CARRY,
    rule("4-lo-no-carry", 32, Term::Op(Iadd64Split4Lo, &[A, ZERO, B, C]), A),
    THREE_HIGH_NO_CARRY,
    THREE_LOW_NO_CARRY,
    TWO_HIGH_NO_CARRY,
    TWO_LOW_NO_CARRY,
];

// The proposal's rules: where a high word is 0, the operation with an operand less; where a low word is 0, there is no
// carry.
const FOUR_HIGH_FIRST: Rule =
    rule("4-hi-first", 32, Term::Op(Iadd64Split4Hi, &[A, B, ZERO, C]), Term::Op(Iadd64Split3Hi, &[A, B, C]));
const FOUR_LOW_FIRST: Rule =
    rule("4-lo-first", 32, Term::Op(Iadd64Split4Lo, &[A, B, ZERO, C]), Term::Op(Iadd64Split3Lo, &[A, B, C]));
const FOUR_HIGH_SECOND: Rule =
    rule("4-hi-second", 32, Term::Op(Iadd64Split4Hi, &[A, B, C, ZERO]), Term::Op(Iadd64Split3Hi, &[A, B, C]));
const FOUR_LOW_SECOND: Rule =
    rule("4-lo-second", 32, Term::Op(Iadd64Split4Lo, &[A, B, C, ZERO]), Term::Op(Iadd64Split3Lo, &[A, B, C]));
const THREE_HIGH: Rule = rule("3-hi", 32, Term::Op(Iadd64Split3Hi, &[A, B, ZERO]), Term::Op(Iadd64Split2Hi, &[A, B]));
const THREE_LOW: Rule = rule("3-lo", 32, Term::Op(Iadd64Split3Lo, &[A, B, ZERO]), Term::Op(Iadd64Split2Lo, &[A, B]));
const FOUR_HIGH_NO_CARRY: Rule =
    rule("4-hi-no-carry", 32, Term::Op(Iadd64Split4Hi, &[A, ZERO, B, C]), Term::Op(Iadd, &[B, C]));
const THREE_HIGH_NO_CARRY: Rule = rule("3-hi-no-carry", 32, Term::Op(Iadd64Split3Hi, &[A, ZERO, B]), B);
const THREE_LOW_NO_CARRY: Rule = rule("3-lo-no-carry", 32, Term::Op(Iadd64Split3Lo, &[A, ZERO, B]), A);
const TWO_HIGH_NO_CARRY: Rule = rule("2-hi-no-carry", 32, Term::Op(Iadd64Split2Hi, &[A, ZERO]), ZERO);
const TWO_LOW_NO_CARRY: Rule = rule("2-lo-no-carry", 32, Term::Op(Iadd64Split2Lo, &[A, ZERO]), A);

/// The definitions of new operations in a proposal.
#[derive(Clone, Copy, Debug)]
pub struct Proposal {
    /// The rules, in its order.
    pub rules: &'static [Rule],
    /// The declared properties of each operation.
    pub properties: &'static [(Op, &'static [Property])],
    /// The declared width of each result.
    pub widths: &'static [(Op, u8)],
}

/// The text of seed 004. `4-lo-no-carry` has the high word for the low one, `iadd64_split2_hi` is no associative
/// operation, and the results of those with two operands are declared to have 64 bits, which the rules that make them
/// of others contradict.
pub const PROPOSED: Proposal = Proposal {
    rules: &[
        FOUR_HIGH_FIRST,
        FOUR_LOW_FIRST,
        FOUR_HIGH_SECOND,
        FOUR_LOW_SECOND,
        THREE_HIGH,
        THREE_LOW,
        FOUR_HIGH_NO_CARRY,
        rule("4-lo-no-carry", 32, Term::Op(Iadd64Split4Lo, &[A, ZERO, B, C]), C),
        THREE_HIGH_NO_CARRY,
        THREE_LOW_NO_CARRY,
        TWO_HIGH_NO_CARRY,
        TWO_LOW_NO_CARRY,
    ],
    properties: &[
        (Iadd64Split4Hi, &[Property::Commutes]),
        (Iadd64Split4Lo, &[Property::Commutes]),
        (Iadd64Split3Hi, &[Property::Commutes]),
        (Iadd64Split3Lo, &[Property::Commutes]),
        (Iadd64Split2Hi, &[Property::Commutes, Property::Associates]),
        (Iadd64Split2Lo, &[Property::Commutes, Property::Associates]),
    ],
    widths: &[
        (Iadd64Split4Hi, 32),
        (Iadd64Split4Lo, 32),
        (Iadd64Split3Hi, 32),
        (Iadd64Split3Lo, 32),
        (Iadd64Split2Hi, 64),
        (Iadd64Split2Lo, 64),
    ],
};

/// Returns true if there is a sum to split or an operation with an operand less.
pub fn is_needed(function: &Function) -> bool {
    let may = |op, bits| op == Iadd && bits == 64 || op == Ult || is_half(op);
    let is_candidate =
        |data: &InstrData| matches!(data, InstrData::Alu(alu) if may(alu.op, function.defs[alu.srcs[0].def].bit_size));
    function.instrs.values().any(is_candidate)
        && function.instrs_in_order().any(|(_, instr)| matching(function, instr).is_some())
}

/// Splits all 64-bit additions of a function, and simplifies the halves.
pub fn run(function: &mut Function) {
    let mut all: Vec<_> = function.instrs_in_order().collect();
    // The high word of a sum comes after its carry: from the end, the larger pattern is seen before its parts.
    all.reverse();
    let mut parts = EntitySet::new();
    let mut next_index = function.defs.values().map(|data| data.index + 1).max().unwrap_or(0);
    for (block, instr) in all {
        // The replacement may be an operation with an operand less.
        while !parts.contains(instr)
            && let Some(Match { rule, bindings, def }) = matching(function, instr)
        {
            let carry = carry_of(function, instr, &bindings);
            let mut rewriter = Rewriter { function, block, before: instr, simpler: Table::FewerWords, next_index };
            let done = rewriter.replace(rule, &bindings, def);
            next_index = rewriter.next_index;
            if !done {
                break;
            }
            if let Some(Carry { number, sum }) = carry {
                parts.insert(number);
                halve(function, sum);
            }
        }
    }
}

fn is_half(op: Op) -> bool {
    matches!(op, Iadd64Split2Lo | Iadd64Split2Hi | Iadd64Split3Lo | Iadd64Split3Hi | Iadd64Split4Lo | Iadd64Split4Hi)
}

/// A rule that matches an instruction.
struct Match {
    rule: &'static Rule,
    /// The values of its variables.
    bindings: Bindings,
    /// The result of the instruction.
    def: Def,
}

/// By operation: true if a rule may match it.
static ROOTS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let mut roots = vec![false; Op::ALL.len()];
    for rule in Table::SplitAdditions.rules().iter().chain(Table::FewerWords.rules()) {
        if let Term::Op(op, _) = rule.from {
            roots[op as usize] = true;
        }
    }
    roots
});

/// The first rule that matches a scalar instruction.
fn matching(function: &Function, instr: Instr) -> Option<Match> {
    let InstrData::Alu(alu) = &function.instrs[instr] else { return None };
    let def = alu.def;
    if function.defs[def].num_components != 1 || !ROOTS[alu.op as usize] {
        return None;
    }
    let simpler = Table::FewerWords.rules().iter().filter(|_| is_half(alu.op));
    Table::SplitAdditions.rules().iter().chain(simpler).find_map(|rule| {
        let bindings = rule.matches(function, alu.op, &alu.srcs, function.defs[def].bit_size)?;
        Some(Match { rule, bindings, def })
    })
}

/// The parts of a high word.
struct Carry {
    /// The carry as a number, which no other pattern should take for a high word of its own.
    number: Instr,
    /// The sum of the low words.
    sum: Instr,
}

/// The carry that is added up in an instruction: of the words that the rule has matched, as there may be others.
fn carry_of(function: &Function, instr: Instr, bindings: &Bindings) -> Option<Carry> {
    let InstrData::Alu(alu) = &function.instrs[instr] else { return None };
    let defined_by = |src: &AluSrc| function.defs[src.def].instr;
    match alu.op {
        B2i32 => {
            let words = CARRY_RULE.matches(function, alu.op, &alu.srcs, function.defs[alu.def].bit_size)?;
            let InstrData::Alu(test) = &function.instrs[defined_by(&alu.srcs[0])] else { return None };
            (words[..2] == bindings[..2]).then(|| Carry { number: instr, sum: defined_by(&test.srcs[0]) })
        }
        Iadd => alu.srcs.iter().find_map(|src| carry_of(function, defined_by(src), bindings)),
        _ => None,
    }
}

/// The sum of low words as one of the pair.
fn halve(function: &mut Function, sum: Instr) {
    if let InstrData::Alu(alu) = &mut function.instrs[sum]
        && alu.op == Iadd
        && function.defs[alu.def].num_components == 1
    {
        let srcs = alu.srcs.iter().map(|src| AluSrc::swizzled(src.def, &src.swizzle[..1])).collect();
        function.instrs[sum] = super::alu(Iadd64Split2Lo, alu.def, srcs);
    }
}
