//! Planted rewrite rules: wrong ones, to see how `rules` refutes them.

use ir3_compiler::nir::Op;
use ir3_compiler::nir_passes::{Rule, Term};

/// The table in which the planted rules are listed.
pub const TABLE: &str = "planted";

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);
const NOT_A: Term = Term::Op(Op::Inot, &[A]);
const NOT_B: Term = Term::Op(Op::Inot, &[B]);

/// All planted rules.
pub static RULES: [Rule; 3] = [
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
];

/// The planted rule of a name.
pub fn by_name(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}
