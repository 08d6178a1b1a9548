//! Every rule of the compiler is proved; rules that are wrong are refuted.

use super::*;
use ir3_compiler::ir3::Opcode;
use ir3_compiler::nir::Op;
use ir3_compiler::nir_passes::{Rule, Term};

fn verdict(claim: &Claim) -> ClaimVerdict {
    claim.verdict(&mut Z3::default(), &Budget::default())
}

#[test]
fn every_rule_of_the_compiler_is_proved() {
    let claims = tables::all();
    for table in ["de-morgan", "de-morgan-simpler", "fold-conversions", "saturation"] {
        assert!(claims.iter().flatten().any(|claim| claim.table == table), "{table}");
    }
    for claim in claims {
        let claim = claim.expect("an operation");
        let verdict = verdict(&claim);
        assert!(
            matches!(verdict, ClaimVerdict::Proved(_)),
            "{} {} {}: {verdict}",
            claim.table,
            claim.rule,
            claim.width
        );
    }
    assert_eq!(check_enabled(), Ok(()));
}

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);
const NOT_AND: Term = Term::Op(Op::Inot, &[Term::Op(Op::Iand, &[A, B])]);
const AND_NOT: Term = Term::Op(Op::Iand, &[Term::Op(Op::Inot, &[A]), Term::Op(Op::Inot, &[B])]);
const OR_NOT: Term = Term::Op(Op::Ior, &[Term::Op(Op::Inot, &[A]), Term::Op(Op::Inot, &[B])]);
const MINUS: Term = Term::Op(Op::Isub, &[A, B]);
const PLUS_MINUS: Term = Term::Op(Op::Iadd, &[A, Term::Op(Op::Ineg, &[B])]);
const TWICE: Term = Term::Op(Op::Ineg, &[Term::Op(Op::Iabs, &[A])]);

#[test]
fn wrong_rules_are_refuted() {
    for bits in [1, 8, 16, 32, 64] {
        let wrong = Rule { name: "wrong", bits, from: NOT_AND, to: AND_NOT };
        let claim = tables::of_rule("test", &wrong).expect("an operation");
        let ClaimVerdict::Refuted { operands, left, right } = verdict(&claim) else { panic!("{bits}") };
        let mask = u64::MAX >> (64 - bits);
        assert_eq!((left, right), (!(operands[0] & operands[1]) & mask, !operands[0] & !operands[1] & mask));
        let right = Rule { name: "right", to: OR_NOT, ..wrong };
        assert!(
            matches!(verdict(&tables::of_rule("test", &right).expect("an operation")), ClaimVerdict::Proved(_)),
            "{bits}"
        );
    }
}

#[test]
fn rules_of_numbers() {
    for bits in [8, 16, 32, 64] {
        let rule = Rule { name: "minus", bits, from: MINUS, to: PLUS_MINUS };
        assert!(
            matches!(verdict(&tables::of_rule("test", &rule).expect("an operation")), ClaimVerdict::Proved(_)),
            "{bits}"
        );
        // Not so for the least number alone, if it were `to: A` of a negative one; here for positive ones.
        let rule = Rule { name: "negated", bits, from: TWICE, to: A };
        let claim = tables::of_rule("test", &rule).expect("an operation");
        let ClaimVerdict::Refuted { operands, .. } = verdict(&claim) else { panic!("{bits}") };
        assert!(operands[0] >> (bits - 1) == 0 && operands[0] != 0, "{operands:x?}");
    }
}

#[test]
fn what_is_no_operation_is_no_claim() {
    let rule = Rule { name: "none", bits: 13, from: NOT_AND, to: OR_NOT };
    assert!(tables::of_rule("test", &rule).is_err());
}

/// A claim about an opcode has as many operands as the opcode; an opcode without a fixed number has no claim.
#[test]
fn operand_counts_are_those_of_the_opcodes() {
    use Opcode::*;
    for (opcode, count) in
        [(AbsnegF, Some(1)), (AbsnegS, Some(1)), (ClzB, Some(1)), (AddU, Some(2)), (MadF32, Some(3)), (SelB32, Some(3))]
    {
        assert_eq!(tables::operand_count(opcode), count, "{opcode}");
    }
    for opcode in [Nop, End, Mov, Sam] {
        assert_eq!(tables::operand_count(opcode), None, "{opcode}");
    }
}
