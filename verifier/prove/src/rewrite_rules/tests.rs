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
    for table in [
        "de-morgan",
        "de-morgan-simpler",
        "split-additions",
        "split-additions-simpler",
        "fold-conversions",
        "saturation",
    ] {
        assert!(claims.iter().any(|statement| statement.table == table), "{table}");
    }
    for statement in claims {
        let claim = statement.claim.expect("an operation");
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

/// The statements that are refuted, by name and width, each once.
fn refuted(statements: Vec<Statement>) -> Vec<(String, Option<u8>)> {
    let mut all = Vec::new();
    for statement in statements {
        let width = statement.claim.as_ref().ok().map(|claim| claim.width);
        match statement.verdict(&mut Z3::default(), &Budget::default()) {
            ClaimVerdict::Refuted { .. } | ClaimVerdict::IllTyped(_) => all.push((statement.rule, width)),
            ClaimVerdict::Unknown(reason) => panic!("{}: {reason}", statement.rule),
            ClaimVerdict::Proved(_) | ClaimVerdict::Inexact => {}
        }
    }
    all
}

/// One rule of the proposal takes the wrong word, one property does not hold, and a declared width contradicts three
/// rules.
#[test]
fn what_is_wrong_with_the_proposal() {
    let names: Vec<String> = refuted(proposal::all()).into_iter().map(|(name, _)| name).collect();
    let wrong =
        ["4-lo-no-carry", "iadd64_split2_hi associates", "width of 3-hi", "width of 3-lo", "width of 2-lo-no-carry"];
    assert_eq!(names, wrong);
}

/// nir's own table declares three operations associative that are not (docs/findings.md).
#[test]
fn what_nir_declares() {
    let statements = properties::all();
    assert!(statements.len() > 300, "{}", statements.len());
    let wrong = refuted(statements);
    let imad = [1, 8, 16, 32, 64].map(|width| ("imad associates", width));
    let expected = imad.into_iter().chain([("imul24 associates", 32), ("umul24 associates", 32)]);
    assert_eq!(wrong, expected.map(|(name, width)| (name.to_owned(), Some(width))).collect::<Vec<_>>());
}

/// A declaration that does not hold is refuted, for any operation.
#[test]
fn wrong_properties_are_refuted() {
    use ir3_compiler::nir::Property::{Associates, Commutes};
    for (op, property) in [(Op::Isub, Commutes), (Op::Ishl, Commutes), (Op::Isub, Associates), (Op::UsubSat, Commutes)]
    {
        let mut statements = properties::of("test", op, &[property]);
        statements.retain(|statement| statement.claim.as_ref().is_ok_and(|claim| claim.width == 32));
        assert_eq!(refuted(statements).len(), 1, "{op} {property:?}");
    }
}
