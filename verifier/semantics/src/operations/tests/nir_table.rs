//! nir's operations against `nir_table.txt`.

use std::collections::BTreeSet;

use ir3_compiler::nir::{BaseType, FloatControls, Op};
use ir3_compiler::nir_passes::split_additions::PROPOSED;

use crate::arithmetic::domain::Domain;
use crate::arithmetic::rows::{LANES, Row};
use crate::operations::Words;
use crate::operations::tests::{bits, lines};
use crate::operations::{Kernel, Select, nir_alu};
use crate::terms::Terms;

/// The components of a value.
pub(super) type Vector = Vec<u64>;

/// An operation at a width.
pub(super) struct Operation {
    /// Widths of the sources.
    pub src_bits: Vec<u8>,
    /// Width of the result.
    pub dst_bits: u8,
    /// Components of the result.
    pub components: usize,
    /// The kernel that runs.
    pub kernel: Kernel,
}

fn rows_of(bits: u8) -> usize {
    if bits == 64 { 2 } else { 1 }
}

impl Operation {
    /// The operation; `width` is the size of operands that have no size of their own; `None` if it has no such width.
    pub fn new(op: Op, width: u8, controls: FloatControls) -> Option<Self> {
        let info = op.info();
        let size = |declared: u8| if declared == 0 { width } else { declared };
        let src_bits: Vec<u8> = info.inputs.iter().map(|input| size(input.ty.size)).collect();
        let dst_bits = size(info.output.ty.size);
        let kernel = nir_alu::kernel(op, dst_bits, &src_bits, controls)?;
        Some(Self { src_bits, dst_bits, components: usize::from(info.output.components.max(1)), kernel })
    }

    /// Runs the kernel on lists of operands, at most one per lane.
    pub fn run(&self, operands: &[Vec<Vector>]) -> Vec<Vector> {
        let first = operands.first().expect("operands");
        let mut rows: Vec<Vec<Row>> = Vec::new();
        for (index, (&bits, components)) in self.src_bits.iter().zip(first).enumerate() {
            let mut words = vec![[0; LANES]; components.len() * rows_of(bits)];
            for lane in 0..LANES {
                // The lanes without operands of their own repeat the first ones.
                let vector = &operands.get(lane).unwrap_or(first)[index];
                for (word, row) in words.iter_mut().enumerate() {
                    row[lane] = (vector[word / rows_of(bits)] >> (32 * (word % rows_of(bits)))) as u32;
                }
            }
            rows.push(words);
        }
        let mut out = vec![[0xdead_beef; LANES]; self.components * rows_of(self.dst_bits)];
        match self.kernel {
            Kernel::One(kernel) => (kernel.run)(&mut out[0], &rows[0][0]),
            Kernel::Two(kernel) => (kernel.run)(&mut out[0], &rows[0][0], &rows[1][0]),
            Kernel::Three(kernel) => (kernel.run)(&mut out[0], &rows[0][0], &rows[1][0], &rows[2][0]),
            Kernel::Select(select @ Select { condition, yes, no, .. }) => {
                let mask = select.mask(&rows[usize::from(condition)]);
                for (word, out) in out.iter_mut().enumerate() {
                    Select::blend(out, mask, &rows[usize::from(yes)][word], &rows[usize::from(no)][word]);
                }
            }
            Kernel::Rows(kernel) => (kernel.run)(&mut out, &rows.iter().flatten().collect::<Vec<_>>()),
        }
        let value = |lane: usize, i: usize| {
            let low = u64::from(out[i * rows_of(self.dst_bits)][lane]);
            if self.dst_bits == 64 { low | u64::from(out[2 * i + 1][lane]) << 32 } else { low }
        };
        (0..operands.len()).map(|lane| (0..self.components).map(|i| value(lane, i)).collect()).collect()
    }
}

/// The operation on terms.
impl Operation {
    /// The result as the kernel's meaning folds it, if it is a constant.
    pub fn fold(&self, operands: &[Vector]) -> Option<Vector> {
        let mut terms = Terms::new();
        let mut words = Vec::new();
        let mut starts = Vec::new();
        for (vector, &bits) in operands.iter().zip(&self.src_bits) {
            starts.push(words.len());
            for &value in vector {
                words.extend((0..rows_of(bits)).map(|i| terms.constant(32, value >> (32 * i) & u64::from(u32::MAX))));
            }
        }
        let out: Words = match self.kernel {
            Kernel::One(kernel) => [(kernel.meaning)(&mut terms, words[0])].into_iter().collect(),
            Kernel::Two(kernel) => [(kernel.meaning)(&mut terms, words[0], words[1])].into_iter().collect(),
            Kernel::Three(kernel) => [(kernel.meaning)(&mut terms, words[0], words[1], words[2])].into_iter().collect(),
            Kernel::Select(select @ Select { condition, yes, no, .. }) => {
                let [first, yes, no] = [condition, yes, no].map(|source| starts[usize::from(source)]);
                let count = rows_of(self.src_bits[usize::from(condition)]);
                let test = select.holds(&mut terms, &words[first..first + count]);
                (0..rows_of(self.dst_bits)).map(|i| terms.ite(32, test, words[yes + i], words[no + i])).collect()
            }
            Kernel::Rows(kernel) => (kernel.meaning)(&mut terms, &words),
        };
        let bits: Option<Vec<u64>> = out.iter().map(|&word| terms.as_constant(word)).collect();
        let join = |words: &[u64]| words.iter().rev().fold(0, |all, word| all << 32 | word);
        Some(bits?.chunks(rows_of(self.dst_bits)).map(join).collect())
    }
}

/// Runs an operation of a width on vectors; conversions round to nearest even.
pub(super) fn evaluate(op: Op, width: u8, srcs: &[Vector]) -> Option<Vector> {
    evaluate_with(op, width, srcs, FloatControls::EVEN)
}

/// Runs an operation of a width on vectors; the result has as many components as the operation's, or one.
fn evaluate_with(op: Op, width: u8, srcs: &[Vector], controls: FloatControls) -> Option<Vector> {
    let operation = Operation::new(op, width, controls)?;
    let mut results = operation.run(&vec![srcs.to_vec(); LANES]);
    let result = results.pop()?;
    assert!(results.iter().all(|other| *other == result), "lanes with the same operands have the same result");
    Some(result)
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
    // Mesa has no such operations; `rewrite_rules` proves their meaning by those that it has.
    let proposed = |op: &Op| PROPOSED.widths.iter().any(|(other, _)| other == op);
    let missing: Vec<_> = Op::ALL
        .iter()
        .filter(|op| !moves(op) && !proposed(op))
        .map(|op| op.name())
        .filter(|name| !covered.contains(name))
        .collect();
    assert!(missing.is_empty(), "operations without a line: {missing:?}");
}

#[test]
fn only_fmad_rounds_its_product_on_every_machine() {
    // Two roundings make zeros of these.
    for (width, operands, once) in
        [(32, [0x3f80_0001, 0x3f80_0001, 0xbf80_0002], 0x2880_0000), (16, [0x3c01, 0x3c01, 0xbc02], 0x0010)]
    {
        let operands = operands.map(|word| vec![word]);
        let result = |op, fused| {
            let controls = FloatControls::OPEN.with_fused(fused);
            evaluate_with(op, width, &operands, controls).expect("a kernel")[0]
        };
        for op in [Op::Ffma, Op::FfmaWeak] {
            assert_eq!([result(op, false), result(op, true)], [0, once], "{op:?} of {width} bits");
        }
        assert_eq!([result(Op::Fmad, false), result(Op::Fmad, true)], [0, 0], "{width} bits");
    }
}

#[test]
fn a_conversion_without_a_rounding_mode_rounds_as_the_machine_does() {
    let convert = |op: Op, width: u8, operand: u64, controls: FloatControls| {
        evaluate_with(op, width, &[vec![operand]], controls).expect("a kernel")[0]
    };
    // A float halfway between two halves, and above the midpoint.
    for (bits, zero, even) in
        [(0x3f80_3000, 0x3c01, 0x3c02), (0xbf80_3000, 0xbc01, 0xbc02), (0x477f_ffff, 0x7bff, 0x7c00)]
    {
        assert_eq!(convert(Op::F2f16, 32, bits, FloatControls::OPEN), zero);
        assert_eq!(convert(Op::F2f16Rtz, 32, bits, FloatControls::EVEN), zero);
        assert_eq!(convert(Op::F2f16, 32, bits, FloatControls::EVEN), even);
        assert_eq!(convert(Op::F2f16Rtne, 32, bits, FloatControls::OPEN), even);
    }
    for (op, bits, zero, even) in [
        (Op::I2f32, 0x7fff_ffff, 0x4eff_ffff, 0x4f00_0000),
        (Op::I2f32, 0x8000_0001, 0xceff_ffff, 0xcf00_0000),
        (Op::U2f32, 0xffff_ffff, 0x4f7f_ffff, 0x4f80_0000),
        (Op::I2f16, 2051, 0x6801, 0x6802),
        (Op::U2f16, 0x0001_0000, 0x7bff, 0x7c00),
    ] {
        assert_eq!(convert(op, 32, bits, FloatControls::OPEN), zero, "{op:?}");
        assert_eq!(convert(op, 32, bits, FloatControls::EVEN), even, "{op:?}");
    }
    let large = 0x7fff_ffff_ffff_ffff;
    assert_eq!(convert(Op::I2f64, 64, large, FloatControls::OPEN), 0x43df_ffff_ffff_ffff);
    assert_eq!(convert(Op::I2f64, 64, large, FloatControls::EVEN), 0x43e0_0000_0000_0000);
    assert_eq!(convert(Op::F2f32, 64, 0x3fef_ffff_ffff_ffff, FloatControls::OPEN), 0x3f7f_ffff);
}

#[test]
fn wrong_widths_are_refused() {
    assert!(nir_alu::kernel(Op::Iadd, 32, &[32, 16], FloatControls::OPEN).is_none());
    assert!(nir_alu::kernel(Op::Iadd, 16, &[32, 32], FloatControls::OPEN).is_none());
    assert!(nir_alu::kernel(Op::Fadd, 8, &[8, 8], FloatControls::OPEN).is_none());
    assert!(nir_alu::kernel(Op::Fadd, 32, &[32], FloatControls::OPEN).is_none());
    assert!(nir_alu::kernel(Op::Ishl, 32, &[32, 16], FloatControls::OPEN).is_none());
    assert!(nir_alu::kernel(Op::Mov, 32, &[32], FloatControls::OPEN).is_none());
}
