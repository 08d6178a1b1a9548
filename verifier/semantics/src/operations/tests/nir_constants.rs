//! nir's operations compared with Mesa's own constant folding: `semantics/nir-constants.tsv` of the shared folder.
//!
//! Each row is an operation, a width, operands and Mesa's result. All rows run through the kernels that the interpreter
//! runs, and some of each operation through the kernels' meanings, whose terms must fold to the same constants. A row
//! that differs must belong to an exception: an operation, the widths, a reason, and a test of the difference. An
//! exception that no row belongs to is out of date and fails, as does an operation or a width that is neither defined
//! here nor listed.
//!
//! Mesa folds in execution mode 0, where the rounding of plain conversions is open, and folds them to nearest even. So
//! the rows run with that rounding; with the machine's, toward zero, they may differ by one unit in the last place, in
//! conversions only.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ir3_compiler::nir::{BaseType, FloatControls, Op};

use crate::arithmetic::domain::Format;
use crate::arithmetic::rows::LANES;
use crate::operations::tests::nir_table::{Operation, Vector};

/// A row in which the results differ.
struct Difference {
    bits: u8,
    operands: Vec<Vector>,
    mesa: Vector,
    ours: Vector,
}

/// Rows in which a difference is right, or allowed.
struct Exception {
    ops: &'static [&'static str],
    widths: &'static [u8],
    reason: &'static str,
    /// Returns true if this is the difference that the reason explains.
    explains: fn(&Difference) -> bool,
}

/// The rows with operands of fixed sizes.
const FIXED: u8 = 0;

fn mask(bits: u8) -> u64 {
    u64::MAX >> (64 - bits)
}

fn format(bits: u8) -> Format {
    Format::of_width(bits.into()).expect("a float")
}

fn magnitude(bits: u8, x: u64) -> u64 {
    x & (format(bits).sign() - 1)
}

fn is_signalling(bits: u8, x: u64) -> bool {
    let f = format(bits);
    magnitude(bits, x) > f.infinity() && x & (1 << (f.fraction() - 1)) == 0
}

/// The number of floats between two floats.
fn units(bits: u8, a: u64, b: u64) -> u64 {
    let order = |x: u64| {
        let size = magnitude(bits, x) as i64;
        if x & format(bits).sign() != 0 { -size } else { size }
    };
    order(a).abs_diff(order(b))
}

fn one_unit(row: &Difference) -> bool {
    units(row.bits, row.mesa[0], row.ours[0]) <= 1
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        ops: &["imadsh_mix16"],
        widths: &[FIXED],
        reason: "Mesa gives the third operand",
        explains: |row| row.mesa == row.operands[2],
    },
    Exception {
        ops: &["iadd_sat", "uadd_sat"],
        widths: &[1, 8, 16],
        reason: "Mesa does not saturate",
        explains: |row| row.mesa[0] == row.operands[0][0].wrapping_add(row.operands[1][0]) & mask(row.bits),
    },
    Exception {
        ops: &["isub_sat"],
        widths: &[1, 8, 16],
        reason: "Mesa does not saturate",
        explains: |row| row.mesa[0] == row.operands[0][0].wrapping_sub(row.operands[1][0]) & mask(row.bits),
    },
    Exception {
        ops: &["uadd_carry"],
        widths: &[1, 8, 16],
        reason: "Mesa does not carry",
        explains: |row| row.mesa[0] == 0 && row.ours[0] == 1,
    },
    Exception {
        ops: &["udot_4x8_uadd_sat", "udot_2x16_uadd_sat"],
        widths: &[FIXED],
        reason: "Mesa sign-extends what is accumulated",
        explains: |row| row.operands[2][0] >> 31 == 1,
    },
    Exception {
        ops: &["unpack_snorm_2x16", "unpack_unorm_2x16"],
        widths: &[FIXED],
        reason: "Mesa's second component is 0",
        explains: |row| row.mesa[0] == row.ours[0] && row.mesa[1] == 0,
    },
    Exception {
        ops: &["ldexp"],
        widths: &[16, 32, 64],
        reason: "Mesa turns infinities and NaN into 0, and keeps half denormals",
        explains: |row| {
            let (mesa, ours, f) =
                (magnitude(row.bits, row.mesa[0]), magnitude(row.bits, row.ours[0]), format(row.bits));
            mesa == 0 && ours >= f.infinity() || row.bits == 16 && mesa < 1 << f.fraction() && ours == 0
        },
    },
    Exception {
        ops: &["fisnormal"],
        widths: &[16],
        reason: "Mesa counts half denormals",
        explains: |row| (1..0x400).contains(&magnitude(16, row.operands[0][0])) && row.ours[0] == 0,
    },
    Exception {
        ops: &["f2f16", "f2f16_rtne"],
        widths: &[64],
        reason: "Mesa loses the sticky bit, and gives a NaN on overflow",
        explains: |row| {
            let (mesa, ours) = (row.mesa[0], row.ours[0]);
            mesa == Format::F16.nan() && magnitude(16, ours) == Format::F16.infinity() || units(16, mesa, ours) == 1
        },
    },
    Exception {
        ops: &["frsq", "fcos", "fsin"],
        widths: &[32],
        reason: "one unit in the last place of a function that is not exact",
        explains: one_unit,
    },
    Exception {
        ops: &["fexp2", "flog2"],
        widths: &[64],
        reason: "Mesa computes in binary32",
        explains: |row| {
            let narrow = f64::from_bits(row.mesa[0]);
            f64::from(narrow as f32).to_bits() == row.mesa[0]
        },
    },
    Exception {
        ops: &["fsum3", "fsum4", "fdot2", "fdot3", "fdot4", "fdot5", "fdot8", "fdot16", "fdph", "flrp", "fmod", "frem"],
        widths: &[16],
        reason: "Mesa keeps binary32 between the operations",
        explains: |_| true,
    },
    Exception {
        ops: &["fmod", "frem"],
        widths: &[64],
        reason: "Mesa rounds the quotient to binary32 before it rounds it to an integer",
        explains: |_| true,
    },
    Exception {
        ops: &["fmin", "fpow"],
        widths: &[16],
        reason: "a signalling NaN: no NaN is signalling here",
        explains: |row| row.operands.iter().flatten().any(|&x| is_signalling(16, x)),
    },
];

/// Operations and widths without a definition: the shaders that ir3 compiles never have them, or Mesa's folding of them
/// is meaningless.
const REFUSED: &[(&[&str], &[u8], &str)] = &[
    (
        &["ishl", "ishr", "ushr", "urol", "uror", "shlm_ir3", "shrm_ir3", "shlg_ir3", "shrg_ir3"],
        &[1],
        "shifts of one bit, which Mesa counts modulo 8",
    ),
    (&["ufind_msb_rev"], &[1, 8, 16, 64], "Mesa looks at bit 31 whatever the width; the instruction has 32 bits"),
];

fn parse(text: &str, width: u8) -> Vector {
    let word = |word: &str| match word {
        "nan" => format(width).nan(),
        _ => u64::from_str_radix(word, 16).unwrap_or_else(|_| panic!("{word} is no number")),
    };
    text.split(',').map(word).collect()
}

/// The value with the canonical NaN for any NaN.
fn canonical(operation: &Operation, is_float: bool, value: Vector) -> Vector {
    let width = operation.dst_bits;
    let one = |x: u64| if magnitude(width, x) > format(width).infinity() { format(width).nan() } else { x };
    if is_float { value.into_iter().map(one).collect() } else { value }
}

/// The shared file, if it is installed.
fn table() -> Option<String> {
    let shared = std::env::var_os("IR3_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(shared).join("semantics/nir-constants.tsv");
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("{} is absent: nothing is compared", path.display());
    }
    text
}

#[test]
fn every_row_of_mesa_agrees_or_is_a_named_exception() {
    let Some(text) = table() else { return };
    let mut groups = BTreeMap::<(&str, u8), Vec<(&str, &str)>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [op, bits, operands, result] = fields[..] else { panic!("not a row: {line}") };
        let bits = if bits == "-" { FIXED } else { bits.parse().expect("a width") };
        groups.entry((op, bits)).or_default().push((operands, result));
    }
    let (mut read, mut agreed, mut refused, mut folded) = (0, 0, BTreeMap::<usize, usize>::new(), 0);
    let mut excepted = BTreeMap::<usize, usize>::new();
    let mut wrong = Vec::new();
    for (&(name, bits), rows) in &groups {
        read += rows.len();
        let width = if bits == FIXED { 32 } else { bits };
        let named = REFUSED.iter().position(|(ops, widths, _)| ops.contains(&name) && widths.contains(&bits));
        let op = Op::from_name(name);
        let operation = op.and_then(|op| Operation::new(op, width, FloatControls::EVEN.with_fused(true)));
        let (Some(op), Some(operation)) = (op, operation) else {
            match named {
                Some(index) => *refused.entry(index).or_default() += rows.len(),
                None => wrong.push(format!("{name} of {bits} bits is not defined")),
            }
            continue;
        };
        assert!(named.is_none(), "{name} of {bits} bits is defined, and listed as refused");
        // Folding rounds a multiply-add once.
        let open = Operation::new(op, width, FloatControls::OPEN.with_fused(true)).expect("the same widths");
        let is_float = op.info().output.ty.base == BaseType::Float;
        for (chunk, rows) in rows.chunks(LANES).enumerate() {
            let operands: Vec<Vec<Vector>> = rows
                .iter()
                .map(|(text, _)| text.split(' ').zip(&operation.src_bits).map(|(x, &bits)| parse(x, bits)).collect())
                .collect();
            let results = operation.run(&operands);
            let by_machine = open.run(&operands);
            for (i, operands) in operands.into_iter().enumerate() {
                if chunk == 0 && i < 8 {
                    folded += 1;
                    let constant = operation.fold(&operands);
                    if constant.as_ref() != Some(&results[i]) {
                        wrong.push(format!(
                            "{name} {bits}: {operands:x?} folds to {constant:x?}, not {:x?}",
                            results[i]
                        ));
                    }
                }
                let mesa = canonical(&operation, is_float, parse(rows[i].1, operation.dst_bits));
                let ours = canonical(&operation, is_float, results[i].clone());
                let machine = canonical(&operation, is_float, by_machine[i].clone());
                let dst = operation.dst_bits;
                if machine != ours
                    && (!name.contains("2f")
                        || units(dst, machine[0], ours[0]) != 1
                        || magnitude(dst, machine[0]) > magnitude(dst, ours[0]))
                {
                    wrong.push(format!("{name} {bits}: {operands:x?} is {machine:x?} by the machine's rounding"));
                }
                if mesa == ours {
                    agreed += 1;
                    continue;
                }
                let row = Difference { bits, operands, mesa, ours };
                let exception = EXCEPTIONS.iter().position(|exception| {
                    exception.ops.contains(&name) && exception.widths.contains(&bits) && (exception.explains)(&row)
                });
                match exception {
                    Some(index) => *excepted.entry(index).or_default() += 1,
                    None => wrong.push(format!(
                        "{name} {bits}: {:x?} is {:x?}, in Mesa {:x?}",
                        row.operands, row.ours, row.mesa
                    )),
                }
            }
        }
    }
    println!("{read} rows of {} operations and widths, {agreed} agree, {folded} folded as terms too", groups.len());
    for (index, exception) in EXCEPTIONS.iter().enumerate() {
        let count = excepted.get(&index).copied().unwrap_or_default();
        let names = exception.ops.join(", ");
        println!("{count} differ: {names} of {:?} bits: {}", exception.widths, exception.reason);
        if count == 0 {
            wrong.push(format!("no row belongs to the exception of {names}: {}", exception.reason));
        }
    }
    for (index, (ops, widths, reason)) in REFUSED.iter().enumerate() {
        let count = refused.get(&index).copied().unwrap_or_default();
        println!("{count} refused: {} of {widths:?} bits: {reason}", ops.join(", "));
        if count == 0 {
            wrong.push(format!("no row is refused for {}", ops.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(50)].join("\n"));
    let others: usize = excepted.values().chain(refused.values()).sum();
    assert_eq!(read, agreed + others);
}
