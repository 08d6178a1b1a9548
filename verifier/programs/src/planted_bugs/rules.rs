//! Planted rewrite rules: wrong ones, to see how `rules` refutes them.

use ir3_compiler::nir::Op;
use ir3_compiler::nir_passes::{Rule, Term};

/// The table in which the planted rules are listed.
pub const TABLE: &str = "planted";

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);
const NOT_A: Term = Term::Op(Op::Inot, &[A]);
const NOT_B: Term = Term::Op(Op::Inot, &[B]);
const C: Term = Term::Variable(2);
const D: Term = Term::Variable(3);
const SUM: Term = Term::Op(Op::Iadd, &[A, B]);
const HIGH: Term = Term::Op(Op::Iadd64Split4Hi, &[A, B, C, D]);
const CARRY: Term = Term::Op(Op::Iadd64Split2Hi, &[A, B]);

/// All planted rules.
pub static RULES: [Rule; 8] = [
    // A negation that is moved inwards must exchange conjunction and disjunction.
    Rule {
        name: "not-and-as-and",
        bits: 32,
        from: Term::Op(Op::Inot, &[Term::Op(Op::Iand, &[A, B])]),
        to: Term::Op(Op::Iand, &[NOT_A, NOT_B]),
    },
    // Right for all numbers but positive ones.
    Rule { name: "negated-absolute", bits: 32, from: Term::Op(Op::Ineg, &[Term::Op(Op::Iabs, &[A])]), to: A },
    // The least number is its own negation.
    Rule {
        name: "negated-maximum",
        bits: 16,
        from: Term::Op(Op::Ineg, &[Term::Op(Op::Imax, &[A, B])]),
        to: Term::Op(Op::Imin, &[Term::Op(Op::Ineg, &[A]), Term::Op(Op::Ineg, &[B])]),
    },
    // A sum is as large as an operand where the other one is 0, and then there is no carry.
    Rule { name: "carry-of-equal", bits: 32, from: CARRY, to: Term::Op(Op::B2i32, &[Term::Op(Op::Uge, &[A, SUM])]) },
    Rule { name: "carry-signed", bits: 32, from: CARRY, to: Term::Op(Op::B2i32, &[Term::Op(Op::Ilt, &[SUM, A])]) },
    Rule { name: "lost-high-word", bits: 32, from: HIGH, to: Term::Op(Op::Iadd64Split3Hi, &[A, B, C]) },
    Rule {
        name: "carry-of-high-words",
        bits: 32,
        from: HIGH,
        to: Term::Op(Op::Iadd, &[Term::Op(Op::Iadd, &[C, D]), Term::Op(Op::Iadd64Split2Hi, &[C, D])]),
    },
    // An offset is not unsigned because its sum is.
    Rule {
        name: "high-word-of-signed",
        bits: 32,
        from: Term::Op(Op::Unpack64_2x32SplitY, &[Term::Op(Op::I2i64, &[A])]),
        to: Term::Constant(0),
    },
];

/// The planted rule of a name.
pub fn by_name(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}
