//! nir's operations against `nir_table.txt`.

use std::collections::BTreeSet;

use ir3_compiler::nir::{ALL_OPS, BaseType, Op};

use super::{bits, lines};
use crate::semantics::{Kernel, LANES, Row, Select, nir_alu, splat};

/// Runs an operation of a width on vectors; the result has as many components as the operation's, or one.
pub(super) fn evaluate(op: Op, width: u8, srcs: &[Vec<u64>]) -> Option<Vec<u64>> {
    let info = op.info();
    let size = |declared: u8| if declared == 0 { width } else { declared };
    let src_bits: Vec<u8> = info.inputs.iter().map(|input| size(input.ty.size)).collect();
    let dst_bits = size(info.output.ty.size);
    let rows_of = |bits: u8| if bits == 64 { 2 } else { 1 };
    let kernel = nir_alu::kernel(op, dst_bits, &src_bits)?;
    let words = |value: u64, bits: u8| (0..rows_of(bits)).map(move |i| splat((value >> (32 * i)) as u32));
    let rows: Vec<Vec<Row>> =
        srcs.iter().zip(&src_bits).map(|(src, &bits)| src.iter().flat_map(|&v| words(v, bits)).collect()).collect();
    let components = usize::from(info.output.components.max(1));
    let mut out = vec![[0xdead_beef; LANES]; components * rows_of(dst_bits)];
    match kernel {
        Kernel::One(kernel) => (kernel.run)(&mut out[0], &rows[0][0]),
        Kernel::Two(kernel) => (kernel.run)(&mut out[0], &rows[0][0], &rows[1][0]),
        Kernel::Three(kernel) => (kernel.run)(&mut out[0], &rows[0][0], &rows[1][0], &rows[2][0]),
        Kernel::Select(Select { test, condition, yes, no }) => {
            let mask = (test.run)(&rows[usize::from(condition)][0]);
            for (word, out) in out.iter_mut().enumerate() {
                Select::blend(out, mask, &rows[usize::from(yes)][word], &rows[usize::from(no)][word]);
            }
        }
        Kernel::Rows(kernel) => (kernel.run)(&mut out, &rows.iter().flatten().collect::<Vec<_>>()),
    }
    for row in &out {
        assert_eq!(*row, splat(row[0]), "lanes with the same operands have the same result");
    }
    let value = |i: usize| {
        let low = u64::from(out[i * rows_of(dst_bits)][0]);
        if dst_bits == 64 { low | u64::from(out[2 * i + 1][0]) << 32 } else { low }
    };
    Some((0..components).map(value).collect())
}

/// The words of a value: in brackets, or one.
fn vectors(text: &str) -> Vec<Vec<&str>> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (words, after) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_once(']').expect("a closing bracket"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        out.push(words.split_whitespace().collect());
        rest = after.trim();
    }
    out
}

#[test]
fn every_operation_has_the_results_of_the_table() {
    let mut covered = BTreeSet::new();
    for (number, line) in lines(include_str!("nir_table.txt")) {
        let (left, right) = line.split_once('=').expect("an equals sign");
        let (head, operands) = left.trim().split_once(' ').expect("operands");
        let (name, width) = head.split_once(':').expect("a width");
        let width: u8 = width.parse().unwrap();
        let op = Op::from_name(name).unwrap_or_else(|| panic!("line {number}: no operation {name}"));
        covered.insert(name);
        let info = op.info();
        let size = |declared: u8| if declared == 0 { width } else { declared };
        let parse = |words: &[&str], size: u8| words.iter().map(|word| bits(word, size)).collect::<Vec<u64>>();
        let srcs: Vec<Vec<u64>> =
            vectors(operands).iter().zip(info.inputs).map(|(words, input)| parse(words, size(input.ty.size))).collect();
        assert_eq!(srcs.len(), info.inputs.len(), "line {number}: {line}");
        let expected = parse(&vectors(right)[0], size(info.output.ty.size));
        let found = evaluate(op, width, &srcs).unwrap_or_else(|| panic!("line {number}: {line}: no kernel"));
        assert_eq!(found, expected, "line {number}: {line}: {found:#x?}");
        // The comparisons with wider results are all ones where those of one bit are 1.
        if info.output.ty.base == BaseType::Bool && info.output.ty.size == 1 {
            for wider in [8u8, 16, 32] {
                if let Some(op) = Op::from_name(&format!("{name}{wider}")) {
                    covered.insert(op.name());
                    let ones = u64::MAX >> (64 - wider);
                    assert_eq!(
                        evaluate(op, width, &srcs),
                        Some(vec![expected[0] * ones]),
                        "line {number}, {wider} bits"
                    );
                }
            }
        }
    }
    let moves = |op: &Op| op.is_vec() || *op == Op::Mov;
    let missing: Vec<_> =
        ALL_OPS.iter().filter(|op| !moves(op)).map(|op| op.name()).filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "operations without a line: {missing:?}");
}

#[test]
fn wrong_widths_are_refused() {
    assert!(nir_alu::kernel(Op::Iadd, 32, &[32, 16]).is_none());
    assert!(nir_alu::kernel(Op::Iadd, 16, &[32, 32]).is_none());
    assert!(nir_alu::kernel(Op::Fadd, 8, &[8, 8]).is_none());
    assert!(nir_alu::kernel(Op::Fadd, 32, &[32]).is_none());
    assert!(nir_alu::kernel(Op::Ishl, 32, &[32, 16]).is_none());
    assert!(nir_alu::kernel(Op::Mov, 32, &[32]).is_none());
}
