//! Every arithmetic operation of nir, at every width: the selected instructions compute, in the ir3 interpreter, the
//! result of the operation's own kernel. Operands are corner cases and random bits.

use std::collections::BTreeMap;

use ir3_compiler::nir::{self, Builder, Def, FloatControls, Index, IntrinsicOp, Op, Stage};
use ir3_compiler::select;
use ir3_compiler::target::Target;
use ir3_semantics::arithmetic::rows::{LANES, Row};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{End, Scratch};
use ir3_semantics::operations::{Kernel, Select, nir_alu};
use ir3_semantics::support::random::hash;

const EDGES: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x3c00,
    0x7bff,
    0x7c00,
    0x7e00,
    0x7fff,
    0x8000,
    0x8001,
    0xbc00,
    0xfc00,
    0xffff,
    0x1_0000,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x3f80_0000,
    0x3f00_0000,
    0x4f00_0000,
    0x4f80_0000,
    0x477f_f000,
    0x477f_e000,
    0x3380_0000,
    0x3300_0001,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc0_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xbf80_0000,
    0xff80_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x7ff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_0000_0000,
    0xffff_ffff_ffff_ffff,
];

const ROUNDS: u64 = 24;

/// An operation with its widths, and constants for the sources that have to be constants.
struct OperationCase {
    op: Op,
    dst_bits: u8,
    src_bits: Vec<u8>,
    constants: Vec<Option<u64>>,
}

impl OperationCase {
    fn name(&self) -> String {
        format!("{} {} <- {:?} {:?}", self.op.name(), self.dst_bits, self.src_bits, self.constants)
    }

    fn components(&self, source: usize) -> usize {
        usize::from(self.op.info().inputs[source].components.max(1))
    }

    fn results(&self) -> usize {
        usize::from(self.op.info().output.components.max(1))
    }
}

fn cases() -> Vec<OperationCase> {
    let mut cases = Vec::new();
    for op in Op::ALL {
        let info = op.info();
        let widths: &[u8] = if info.width_source().is_some() { &[1, 8, 16, 32, 64] } else { &[32] };
        for &width in widths {
            let size = |declared: u8| if declared == 0 { width } else { declared };
            let src_bits: Vec<u8> = info.inputs.iter().map(|input| size(input.ty.size)).collect();
            let dst_bits = size(info.output.ty.size);
            let part = match op {
                Op::ExtractU8 | Op::ExtractI8 | Op::InsertU8 => 8,
                Op::ExtractU16 | Op::ExtractI16 | Op::InsertU16 => 16,
                _ => 0,
            };
            if part == 0 {
                let constants = vec![None; src_bits.len()];
                cases.push(OperationCase { op, dst_bits, src_bits, constants });
                continue;
            }
            for index in 0..u64::from(width / part) {
                let constants = vec![None, Some(index)];
                cases.push(OperationCase { op, dst_bits, src_bits: src_bits.clone(), constants });
            }
        }
    }
    cases
}

/// A shader that applies the operation to vertex attributes. Each register of each operand is an attribute.
fn shader(case: &OperationCase) -> nir::Shader {
    let mut b = Builder::new(Stage::Vertex);
    let zero = b.constant(32, 0);
    let mut base = 0;
    let mut srcs = Vec::new();
    for (source, &bits) in case.src_bits.iter().enumerate() {
        let scalars: Vec<Def> = (0..case.components(source))
            .map(|_| {
                if let Some(constant) = case.constants[source] {
                    return b.constant(bits, constant);
                }
                let mut attribute = |b: &mut Builder| {
                    let def = b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], [Index::Base(base)]).unwrap();
                    base += 1;
                    def
                };
                let low = attribute(&mut b);
                match bits {
                    1 => b.alu(Op::Ine, &[low, zero]),
                    8 => b.alu(Op::U2u8, &[low]),
                    16 => b.alu(Op::U2u16, &[low]),
                    32 => low,
                    _ => {
                        let high = attribute(&mut b);
                        b.alu(Op::Pack64_2x32Split, &[low, high])
                    }
                }
            })
            .collect();
        srcs.push(b.vec(&scalars));
    }
    let result = b.alu(case.op, &srcs);
    let mut location = 0;
    for component in 0..case.results() {
        let x = b.channel(result, component as u8);
        let words = match case.dst_bits {
            1 => vec![b.alu(Op::B2i32, &[x])],
            8 | 16 => vec![b.alu(Op::U2u32, &[x])],
            32 => vec![x],
            _ => vec![b.alu(Op::Unpack64_2x32SplitX, &[x]), b.alu(Op::Unpack64_2x32SplitY, &[x])],
        };
        for word in words {
            let indices = [Index::Base(location), Index::WriteMask(1)];
            b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[word, zero], indices);
            location += 1;
        }
    }
    b.finish()
}

/// Rows for every register of every operand, in order, and the attributes that provide them.
fn operands(case: &OperationCase, round: u64) -> (Vec<Row>, BTreeMap<String, Vec<u32>>) {
    let mut rows = Vec::new();
    let mut attributes = BTreeMap::new();
    for (source, &bits) in case.src_bits.iter().enumerate() {
        for component in 0..case.components(source) {
            let value = |lane: usize| {
                if let Some(constant) = case.constants[source] {
                    return constant;
                }
                let h = hash(&[round, source as u64, component as u64, lane as u64]);
                let pick = hash(&[h]);
                let edge = EDGES[(pick >> 8) as usize % EDGES.len()];
                match pick % 4 {
                    0 => h,
                    1 => h >> (pick >> 16 & 63),
                    _ => edge,
                }
            };
            let values: Vec<u64> = (0..LANES).map(value).collect();
            let mut push = |row: Row, attribute: Vec<u32>| {
                if case.constants[source].is_none() {
                    attributes.insert(format!("{}.0", attributes.len()), attribute);
                }
                rows.push(row);
            };
            let low: Vec<u32> = values.iter().map(|&v| v as u32).collect();
            let row = |f: &dyn Fn(u32) -> u32| -> Row { std::array::from_fn(|lane| f(low[lane])) };
            match bits {
                1 => push(row(&|v| u32::from(v != 0)), low.clone()),
                8 => push(row(&|v| v & 0xff), low.clone()),
                16 => push(row(&|v| v & 0xffff), low.clone()),
                32 => push(row(&|v| v), low.clone()),
                _ => {
                    push(row(&|v| v), low.clone());
                    let high: Vec<u32> = values.iter().map(|&v| (v >> 32) as u32).collect();
                    push(std::array::from_fn(|lane| high[lane]), high);
                }
            }
        }
    }
    (rows, attributes)
}

fn expected(case: &OperationCase, kernel: Kernel, rows: &[Row]) -> Vec<Row> {
    let mut out = vec![[0; LANES]; case.results() * if case.dst_bits == 64 { 2 } else { 1 }];
    match kernel {
        Kernel::One(f) => (f.run)(&mut out[0], &rows[0]),
        Kernel::Two(f) => (f.run)(&mut out[0], &rows[0], &rows[1]),
        Kernel::Three(f) => (f.run)(&mut out[0], &rows[0], &rows[1], &rows[2]),
        Kernel::Select(select) => {
            // The first row of each source.
            let mut starts = Vec::new();
            let mut next = 0;
            for &bits in &case.src_bits {
                starts.push(next);
                next += if bits == 64 { 2 } else { 1 };
            }
            let condition = usize::from(select.condition);
            let width = if case.src_bits[condition] == 64 { 2 } else { 1 };
            let mask = select.mask(&rows[starts[condition]..starts[condition] + width]);
            for (word, out) in out.iter_mut().enumerate() {
                let [yes, no] = [select.yes, select.no].map(|source| &rows[starts[usize::from(source)] + word]);
                Select::blend(out, mask, yes, no);
            }
        }
        Kernel::Rows(f) => {
            let rows: Vec<&Row> = rows.iter().collect();
            (f.run)(&mut out, &rows);
        }
    }
    out
}

fn check(gpu: &str) -> (usize, BTreeMap<String, Vec<String>>, Vec<String>) {
    let target = Target::by_name(gpu).unwrap();
    let (mut checked, mut refused, mut wrong) = (0, BTreeMap::<String, Vec<String>>::new(), Vec::new());
    let mut scratch = Scratch::new();
    for case in cases() {
        let Some(kernel) = nir_alu::kernel(case.op, case.dst_bits, &case.src_bits, FloatControls::OPEN) else {
            continue;
        };
        let program = match select::run(&shader(&case), &target) {
            Ok(program) => program,
            Err(error) => {
                refused.entry(error.reason.to_string()).or_default().push(case.name());
                continue;
            }
        };
        let decoded = match interp::ir3::Decoded::new(&program, &target) {
            Ok(decoded) => decoded,
            Err(error) => {
                wrong.push(format!("{}: does not run: {} in {}", case.name(), error.what, error.place));
                continue;
            }
        };
        checked += 1;
        'rounds: for round in 0..ROUNDS {
            let (rows, attributes) = operands(&case, round);
            let mut env = Env::from_seed(round);
            env.attributes = attributes;
            let outcome = decoded.run(&env, 100_000, &mut scratch);
            if !matches!(outcome.end, End::Finished) {
                wrong.push(format!("{}: did not end", case.name()));
                break;
            }
            for (location, row) in expected(&case, kernel, &rows).iter().enumerate() {
                let found = outcome.outputs.rows().iter().find(|output| usize::from(output.base) == location);
                let Some(found) = found else {
                    wrong.push(format!("{}: no output {location}", case.name()));
                    break 'rounds;
                };
                if let Some(lane) =
                    (0..LANES).find(|&lane| found.poison >> lane & 1 != 0 || found.values[lane] != row[lane])
                {
                    let operands: Vec<String> = rows.iter().map(|row| format!("{:#x}", row[lane])).collect();
                    wrong.push(format!(
                        "{}: of {} word {location} is {:#x}{}, expected {:#x}",
                        case.name(),
                        operands.join(", "),
                        found.values[lane],
                        if found.poison >> lane & 1 != 0 { " (poison)" } else { "" },
                        row[lane]
                    ));
                    break 'rounds;
                }
            }
        }
    }
    (checked, refused, wrong)
}

#[test]
fn selected_arithmetic_is_what_nir_means() {
    for gpu in ["a660", "a630", "a420"] {
        let (checked, refused, wrong) = check(gpu);
        let count: usize = refused.values().map(Vec::len).sum();
        println!("{gpu}: {checked} operations agree, {count} refused, {} wrong", wrong.len());
        if gpu == "a660" {
            for (reason, names) in &refused {
                println!("  {reason}: {}", names.join("; "));
            }
        }
        assert!(wrong.is_empty(), "{gpu}:\n{}", wrong.join("\n"));
        assert!(checked > 300, "only {checked} operations");
    }
}
