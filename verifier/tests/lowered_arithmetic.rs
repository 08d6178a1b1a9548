//! Operations of nir that need many machine instructions: the selected instructions of each are proved, and those of
//! another operation are not.

use super::common::vertex;

use ir3_compiler::ir3::{self, Attrs, Condition, Opcode};
use ir3_compiler::pipeline;
use ir3_compiler::target::Target;
use ir3_prove::simulation;
use ir3_prove::simulation::{Limits, Proof, SimulationFailure};
use ir3_prove::solver::{Budget, Z3};
use ir3_semantics::Snapshot;
use std::time::Duration;

fn gpu() -> Target {
    Target::by_name("a660").expect("a GPU")
}

/// A vertex shader that computes `%2` of four words.
fn shader(lines: &[&str]) -> Snapshot {
    vertex::shader(&lines.join("\n"), "%2")
}

/// One operation on 32 bits.
fn plain(op: &str, operands: usize) -> Snapshot {
    let operands = ["%1.x", "%1.y", "%1.z", "%1.w"][..operands].join(", ");
    shader(&[&format!("32 %2 = {op} {operands}")])
}

/// One operation on two narrow numbers, widened with (`i`) or without (`u`) a sign.
fn narrow(op: &str, bits: u8, sign: char) -> Snapshot {
    shader(&[
        &format!("{bits} %3 = u2u{bits} %1.x"),
        &format!("{bits} %4 = u2u{bits} %1.y"),
        &format!("{bits} %5 = {op} %3, %4"),
        &format!("32 %2 = {sign}2{sign}32 %5"),
    ])
}

/// The product of two halves, each extended.
fn product_of_halves(signs: [char; 2]) -> Snapshot {
    let [a, b] = signs;
    shader(&[
        "16 %3 = u2u16 %1.x",
        "16 %4 = u2u16 %1.y",
        &format!("32 %5 = {a}2{a}32 %3"),
        &format!("32 %6 = {b}2{b}32 %4"),
        "32 %2 = imul %5, %6",
    ])
}

/// A word of a 64-bit product.
fn wide(op: &str) -> Snapshot {
    shader(&[&format!("64 %3 = {op} %1.x, %1.y"), "32 %2 = unpack_64_2x32_split_y %3"])
}

fn selected(source: &Snapshot) -> ir3::Program {
    let Snapshot::Nir(shader) = source else { unreachable!("made of text") };
    pipeline::select(shader, &gpu()).expect("a program")
}

fn prove(source: &Snapshot, target: ir3::Program, time: Duration) -> Result<Proof, SimulationFailure> {
    let limits = Limits { query: Budget { time: time / 2, ..Budget::default() }, time, inputs: false };
    let target = Snapshot::Ir3(Box::new(target));
    simulation::prove(source.into(), (&target).into(), &gpu(), &limits, &mut Z3::default())
}

/// Each row is proved, by these lemmas, and no row is proved equivalent to another.
fn family(rows: &[(&str, Snapshot, &[&str])]) {
    for (name, source, lemmas) in rows {
        let proof = prove(source, selected(source), Duration::from_secs(20));
        let proof = proof.unwrap_or_else(|failure| panic!("{name} is not proved: {failure}"));
        for lemma in *lemmas {
            assert!(proof.assumptions.contains(lemma), "{name} without {lemma}: {proof:?}");
        }
    }
    apart(rows);
}

/// No row is proved equivalent to another.
fn apart(rows: &[(&str, Snapshot, &[&str])]) {
    for (name, source, _) in rows {
        for (other, target, _) in rows.iter().filter(|(other, ..)| other != name) {
            let proof = prove(source, selected(target), Duration::from_millis(300));
            assert!(proof.is_err(), "{other} is taken for {name}");
        }
    }
}

#[test]
fn division() {
    family(&[
        ("idiv", plain("idiv", 2), &["lemma:udiv32"]),
        ("irem", plain("irem", 2), &["lemma:umod32"]),
        ("imod", plain("imod", 2), &["lemma:umod32"]),
        ("udiv", plain("udiv", 2), &["lemma:udiv32"]),
        ("umod", plain("umod", 2), &["lemma:umod32"]),
    ]);
}

/// Not proved yet: the products of these have other shapes.
#[test]
fn division_of_narrow_numbers() {
    for bits in [8, 16] {
        apart(&[
            ("idiv", narrow("idiv", bits, 'i'), &[]),
            ("irem", narrow("irem", bits, 'i'), &[]),
            ("imod", narrow("imod", bits, 'i'), &[]),
            ("udiv", narrow("udiv", bits, 'u'), &[]),
        ]);
    }
}

/// Not proved yet either, for the same reason.
#[test]
fn division_by_numbers() {
    let by = |op: &str, number: u32| {
        shader(&[&format!("32 %3 = load_const ({number:#010x})"), &format!("32 %2 = {op} %1.x, %3")])
    };
    apart(&[
        ("by 7", by("idiv", 7), &[]),
        ("by -7", by("idiv", 0xffff_fff9), &[]),
        ("by 9, unsigned", by("udiv", 9), &[]),
        ("remainder of 7", by("irem", 7), &[]),
    ]);
}

/// One correction step is missing, which matters where the divisor divides the number.
#[test]
fn a_wrong_division_is_not_proved() {
    for op in ["udiv", "umod", "idiv", "imod"] {
        let source = plain(op, 2);
        let right = selected(&source);
        let is_test =
            |data: &ir3::InstrData| data.opcode == Opcode::CmpsU && matches!(data.attrs, Attrs::Compare(Condition::Ge));
        let tests: Vec<_> =
            right.iter_instrs().map(|(_, instr)| instr).filter(|&i| is_test(&right.instrs[i])).collect();
        assert_eq!(tests.len(), 2, "{op}");
        for test in tests {
            let mut wrong = right.clone();
            wrong.instrs[test].attrs = Attrs::Compare(Condition::Gt);
            assert!(prove(&source, wrong, Duration::from_millis(500)).is_err(), "{op}");
        }
    }
}

#[test]
fn products() {
    family(&[
        ("imul", plain("imul", 2), &["lemma:mul32"]),
        ("imul_high", plain("imul_high", 2), &["lemma:umul-high32", "lemma:imul-high32"]),
        ("umul_high", plain("umul_high", 2), &["lemma:umul-high32"]),
    ]);
    family(&[
        ("imul_2x32_64", wide("imul_2x32_64"), &["lemma:imul-high32"]),
        ("umul_2x32_64", wide("umul_2x32_64"), &["lemma:umul-high32"]),
    ]);
}

#[test]
fn products_of_halves() {
    family(&[
        ("signed", product_of_halves(['i', 'i']), &[]),
        ("unsigned", product_of_halves(['u', 'u']), &[]),
        ("one signed", product_of_halves(['i', 'u']), &[]),
    ]);
    family(&[("high, signed", narrow("imul_high", 16, 'i'), &[]), ("high", narrow("umul_high", 16, 'u'), &[])]);
}

#[test]
fn products_of_64_bits() {
    let of = |op: &str| {
        shader(&[
            "64 %3 = pack_64_2x32_split %1.x, %1.y",
            "64 %4 = pack_64_2x32_split %1.z, %1.w",
            &format!("64 %5 = {op} %3, %4"),
            "32 %2 = unpack_64_2x32_split_y %5",
        ])
    };
    family(&[("imul", of("imul"), &["lemma:mul64-high"]), ("iadd", of("iadd"), &[])]);
}

#[test]
fn fields_of_bits() {
    family(&[
        ("ubfe", plain("ubfe", 3), &[]),
        ("ibfe", plain("ibfe", 3), &[]),
        ("bfi", plain("bfi", 3), &[]),
        ("bitfield_select", plain("bitfield_select", 3), &[]),
        ("bitfield_insert", plain("bitfield_insert", 4), &[]),
        ("ubitfield_extract", plain("ubitfield_extract", 3), &[]),
        ("ibitfield_extract", plain("ibitfield_extract", 3), &[]),
    ]);
}
