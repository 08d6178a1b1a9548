//! The loop over lanes and the meaning of every kernel, compared: on constants, which terms fold, and on variables,
//! whose terms are normalised.

use std::collections::BTreeSet;

use ir3_compiler::ir3::{Attrs, InstrFlags, Mods, Opcode, RegClass, Round};
use ir3_compiler::nir::{self, FloatControls};

use crate::arithmetic::domain::Domain;
use crate::arithmetic::rows::{LANES, Row};
use crate::operations::Words;
use crate::operations::tests::ir3_table::{CONDITIONS, TYPES, instr};
use crate::operations::{Kernel, Modify, Select, Two, ir3_alu, modifiers, nir_alu};
use crate::support::random::hash;
use crate::terms::{Op, SAMPLES, Samples, Term, Terms};

/// Corner cases of operations, for any width.
const CORNERS: [u64; 40] = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    24,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x3bff,
    0x3c00,
    0x7bff,
    0x7c00,
    0x7c01,
    0x7fff,
    0x8000,
    0x8001,
    0xfc00,
    0xffff,
    0x3f00_0000,
    0x3f80_0000,
    0x4b00_0001,
    0x7f80_0000,
    0x7f80_0001,
    0x7fff_ffff,
    0x8000_0000,
    0xff80_0000,
    0xffff_ffff,
    0x3ff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0x8000_0000_0000_0000,
    u64::MAX,
];

#[derive(Clone, Copy)]
enum Definition {
    Kernel(Kernel),
    Modify(&'static Modify),
}

struct KernelCase {
    name: String,
    definition: Definition,
    /// Widths of the components of each source.
    sources: Vec<Vec<u32>>,
    /// The number of rows of the result.
    results: usize,
}

/// The number of rows of components.
fn words_of(components: &[u32]) -> usize {
    components.iter().map(|&w| if w == 64 { 2 } else { 1 }).sum()
}

impl KernelCase {
    /// The first row of each source.
    fn starts(&self) -> Vec<usize> {
        let mut next = 0;
        let mut start = |components: &Vec<u32>| {
            next += words_of(components);
            next - words_of(components)
        };
        self.sources.iter().map(&mut start).collect()
    }

    /// The mask of the bits of each row.
    fn words(&self) -> Vec<u32> {
        self.sources.iter().flatten().flat_map(|&w| if w == 64 { vec![32, 32] } else { vec![w] }).collect()
    }

    fn run(&self, rows: &[Row]) -> Vec<Row> {
        let mut out = vec![[0xdead_beef; LANES]; self.results];
        match self.definition {
            Definition::Kernel(Kernel::One(kernel)) => (kernel.run)(&mut out[0], &rows[0]),
            Definition::Kernel(Kernel::Two(kernel)) => (kernel.run)(&mut out[0], &rows[0], &rows[1]),
            Definition::Kernel(Kernel::Three(kernel)) => (kernel.run)(&mut out[0], &rows[0], &rows[1], &rows[2]),
            Definition::Kernel(Kernel::Select(select)) => {
                let starts = self.starts();
                let condition = starts[usize::from(select.condition)];
                let mask =
                    select.mask(&rows[condition..condition + words_of(&self.sources[usize::from(select.condition)])]);
                let (yes, no) = (starts[usize::from(select.yes)], starts[usize::from(select.no)]);
                for (word, out) in out.iter_mut().enumerate() {
                    Select::blend(out, mask, &rows[yes + word], &rows[no + word]);
                }
            }
            Definition::Kernel(Kernel::Rows(kernel)) => (kernel.run)(&mut out, &rows.iter().collect::<Vec<_>>()),
            Definition::Modify(modify) => {
                out[0] = rows[0];
                (modify.run)(&mut out[0]);
            }
        }
        out
    }

    fn meaning(&self, terms: &mut Terms, words: &[Term]) -> Words {
        let out: Words = match self.definition {
            Definition::Kernel(Kernel::One(kernel)) => [(kernel.meaning)(terms, words[0])].into_iter().collect(),
            Definition::Kernel(Kernel::Two(kernel)) => {
                [(kernel.meaning)(terms, words[0], words[1])].into_iter().collect()
            }
            Definition::Kernel(Kernel::Three(kernel)) => {
                [(kernel.meaning)(terms, words[0], words[1], words[2])].into_iter().collect()
            }
            Definition::Kernel(Kernel::Select(select)) => {
                let starts = self.starts();
                let condition = starts[usize::from(select.condition)];
                let count = words_of(&self.sources[usize::from(select.condition)]);
                let test = select.holds(terms, &words[condition..condition + count]);
                assert_eq!(terms.width(test), 1, "{}: a test has one bit", self.name);
                let (yes, no) = (starts[usize::from(select.yes)], starts[usize::from(select.no)]);
                (0..self.results).map(|i| terms.ite(32, test, words[yes + i], words[no + i])).collect()
            }
            Definition::Kernel(Kernel::Rows(kernel)) => (kernel.meaning)(terms, words),
            Definition::Modify(modify) => [(modify.meaning)(terms, words[0])].into_iter().collect(),
        };
        assert_eq!(out.len(), self.results, "{}: words of the result", self.name);
        for &word in &out {
            assert_eq!(terms.width(word), 32, "{}: words have 32 bits", self.name);
        }
        out
    }
}

/// Every operation of nir, at every width that it has.
fn nir_cases() -> Vec<KernelCase> {
    let mut cases = Vec::new();
    for op in nir::Op::ALL {
        let info = op.info();
        let widths: &[u8] =
            if info.width_source().is_some() || info.output.ty.size == 0 { &[1, 8, 16, 32, 64] } else { &[32] };
        for &width in widths {
            let size = |declared: u8| if declared == 0 { width } else { declared };
            let src_bits: Vec<u8> = info.inputs.iter().map(|input| size(input.ty.size)).collect();
            let dst_bits = size(info.output.ty.size);
            let Some(kernel) = nir_alu::kernel(op, dst_bits, &src_bits, FloatControls::OPEN) else { continue };
            let components = |index: usize| usize::from(info.source_components(index, 1));
            let sources: Vec<_> = (0..src_bits.len()).map(|i| vec![u32::from(src_bits[i]); components(i)]).collect();
            let results = words_of(&vec![u32::from(dst_bits); usize::from(info.output.components.max(1))]);
            let name = format!("{} {dst_bits} <- {src_bits:?}", op.name());
            // The header affects plain conversions to floats.
            if matches!(op.name().get(1..3), Some("2f")) {
                let kernel = nir_alu::kernel(op, dst_bits, &src_bits, FloatControls::EVEN).expect("the same widths");
                let (name, sources) = (format!("{name} to nearest even"), Vec::clone(&sources));
                cases.push(KernelCase { name, definition: Definition::Kernel(kernel), sources, results });
            }
            cases.push(KernelCase { name, definition: Definition::Kernel(kernel), sources, results });
        }
    }
    cases
}

/// Every operation of ir3, with every combination of the properties that a kernel depends on.
fn ir3_cases() -> Vec<KernelCase> {
    const ROUNDS: [Round; 4] = [Round::Default, Round::Even, Round::PosInf, Round::NegInf];
    let mut cases = Vec::new();
    let mut add = |opcode: Opcode, attrs: Attrs, attrs_name: String| {
        for widths in [(32, 32), (16, 16), (16, 32), (32, 16)] {
            for (saturate, predicate) in [(false, false), (true, false), (false, true)] {
                let found = (1..=3).find_map(|count| {
                    let mut data = instr(opcode, attrs.clone(), widths, count);
                    data.flags.set(InstrFlags::SAT, saturate);
                    if predicate {
                        data.dsts[0].class = RegClass::PREDICATE;
                    }
                    Some((count, ir3_alu::kernel(&data)?))
                });
                let Some((count, alu)) = found else { continue };
                let name = format!("{opcode}{attrs_name} {widths:?} {saturate} {predicate}");
                let sources = vec![vec![widths.0.into()]; count];
                cases.push(KernelCase {
                    name: name.clone(),
                    definition: Definition::Kernel(alu.kernel),
                    sources,
                    results: 1,
                });
                if let Some(clamp) = alu.clamp {
                    let sources = vec![vec![widths.1.into()]];
                    cases.push(KernelCase {
                        name: format!("clamp of {name}"),
                        definition: Definition::Modify(clamp),
                        sources,
                        results: 1,
                    });
                }
            }
        }
    };
    for opcode in Opcode::ALL {
        match opcode {
            Opcode::Mov => {
                for src in TYPES {
                    for dst in TYPES {
                        for round in ROUNDS {
                            let name = format!(".{}.{} {round:?}", src.name(), dst.name());
                            add(opcode, Attrs::Move { src, dst, round }, name);
                        }
                    }
                }
            }
            Opcode::CmpsF | Opcode::CmpsU | Opcode::CmpsS => {
                for condition in CONDITIONS {
                    add(opcode, Attrs::Compare(condition), format!(".{}", condition.name()));
                }
            }
            _ => add(opcode, Attrs::None, String::new()),
        }
    }
    for opcode in Opcode::ALL {
        for half in [false, true] {
            if let Some(kernel) = ir3_alu::combine(opcode, half) {
                let sources = vec![vec![if half { 16 } else { 32 }]; 2];
                let definition = Definition::Kernel(Kernel::Two(kernel));
                cases.push(KernelCase { name: format!("scan by {opcode} {half}"), definition, sources, results: 1 });
            }
        }
    }
    cases
}

/// Every modifier of ir3's operands.
fn modifier_cases() -> Vec<KernelCase> {
    let mut cases = Vec::new();
    let mods = [Mods::NOT, Mods::NEG, Mods::ABS, Mods::NEG | Mods::ABS];
    for opcode in [Opcode::AddF, Opcode::AddS, Opcode::AndB] {
        for width in [16, 32] {
            for mods in mods {
                let mut data = instr(opcode, Attrs::None, (width, width), 2);
                data.srcs[0].mods = mods;
                let modify = ir3_alu::modifier(&data, 0).expect("a modifier");
                let name = format!("{mods:?} of {opcode} {width}");
                cases.push(KernelCase {
                    name,
                    definition: Definition::Modify(modify),
                    sources: vec![vec![width.into()]],
                    results: 1,
                });
            }
        }
    }
    for (width, modify) in [(16, modifiers::SATURATE16), (32, modifiers::SATURATE32)] {
        let name = format!("saturation {width}");
        cases.push(KernelCase { name, definition: Definition::Modify(modify), sources: vec![vec![width]], results: 1 });
    }
    cases
}

fn cases() -> Vec<KernelCase> {
    let mut cases = nir_cases();
    cases.extend(ir3_cases());
    cases.extend(modifier_cases());
    cases
}

fn cut(bits: u64, width: u32) -> u32 {
    (bits & u64::MAX >> (64 - width)) as u32
}

/// Bits for component `component` in a lane: random bits, numbers of any size, corner cases.
fn value(case: usize, component: usize, lane: usize) -> u64 {
    let h = hash(&[case as u64, component as u64, lane as u64]);
    let pick = hash(&[h]);
    match pick % 4 {
        0 => h,
        1 => h >> (pick >> 16 & 63),
        _ => CORNERS[(pick >> 8) as usize % CORNERS.len()],
    }
}

#[test]
fn every_operation_has_a_meaning() {
    let operations: BTreeSet<String> =
        nir_cases().iter().map(|case| case.name.split(' ').next().unwrap_or_default().to_owned()).collect();
    let moves = |op: &nir::Op| op.is_vec() || *op == nir::Op::Mov;
    let missing: Vec<_> = nir::Op::ALL
        .iter()
        .filter(|op| !moves(op))
        .map(|op| op.name())
        .filter(|&name| !operations.contains(name))
        .collect();
    assert!(missing.is_empty(), "operations without a case: {missing:?}");
    let count = (nir_cases().len(), ir3_cases().len(), modifier_cases().len());
    assert!(count.0 > 700 && count.1 > 3000, "{count:?}");
}

/// A lane in which the meaning, on constants, differs from the result of the loop.
fn differs_on_constants(number: usize, case: &KernelCase) -> Option<String> {
    let components: Vec<u32> = case.sources.iter().flatten().copied().collect();
    let mut rows: Vec<Row> = Vec::new();
    for (component, &width) in components.iter().enumerate() {
        let all: Vec<u64> = (0..LANES).map(|lane| value(number, component, lane)).collect();
        rows.push(std::array::from_fn(|lane| cut(all[lane], width.min(32))));
        if width == 64 {
            rows.push(std::array::from_fn(|lane| (all[lane] >> 32) as u32));
        }
    }
    let expected = case.run(&rows);
    let mut terms = Terms::new();
    for lane in 0..LANES {
        let words: Vec<Term> = rows.iter().map(|row| terms.constant(32, row[lane].into())).collect();
        let found = case.meaning(&mut terms, &words);
        for (word, &term) in found.iter().enumerate() {
            let (found, expected) = (terms.as_constant(term), expected[word][lane]);
            if found != Some(expected.into()) {
                let operands: Vec<u32> = rows.iter().map(|row| row[lane]).collect();
                return Some(format!("word {word} of {operands:x?} is {found:x?}, expected {expected:#x}"));
            }
        }
    }
    well_formed(&terms, &case.name);
    None
}

#[test]
fn meanings_of_constants_are_what_the_loops_compute() {
    for (number, case) in cases().iter().enumerate() {
        assert_eq!(differs_on_constants(number, case), None, "{}", case.name);
    }
}

/// The terms for the words of a case.
#[derive(Clone, Copy, Debug)]
enum Arguments {
    /// A variable for each word.
    Apart(u32),
    /// One variable for all components of a width.
    Same,
    /// A constant for this word, variables for the others.
    Constant(usize, u64),
}

/// A lane in which the meaning, on variables, differs from the result of the loop.
fn differs_on_variables(number: usize, case: &KernelCase) -> Option<String> {
    let widths = case.words();
    let mut shapes = vec![Arguments::Apart(0), Arguments::Apart(1), Arguments::Same];
    // Many words are those of vectors, which are all alike.
    for word in 0..widths.len().min(4) {
        let corner = |i: usize| CORNERS[(number + i) % CORNERS.len()];
        shapes.extend([0, 1, u64::MAX, corner(word), corner(word + 11)].map(|bits| Arguments::Constant(word, bits)));
    }
    let mut terms = Terms::new();
    let mut samples = Samples::default();
    for shape in shapes {
        let mut words = Vec::new();
        for (word, &width) in widths.iter().enumerate() {
            let name = match shape {
                Arguments::Constant(at, bits) if at == word => {
                    words.push(terms.constant(32, cut(bits, width).into()));
                    continue;
                }
                Arguments::Apart(set) => format!("{width} {word} {set}"),
                Arguments::Constant(..) => format!("{width} {word}"),
                Arguments::Same => format!("{width}"),
            };
            let name = terms.name(&name);
            let variable = terms.variable(width, name);
            words.push(terms.zext(width, 32, variable));
        }
        let mut row_of = |&word: &Term| {
            let sample = samples.of(&terms, word);
            std::array::from_fn(|lane| sample[lane % SAMPLES] as u32)
        };
        let rows: Vec<Row> = words.iter().map(&mut row_of).collect();
        let expected = case.run(&rows);
        let found = case.meaning(&mut terms, &words);
        for (word, &term) in found.iter().enumerate() {
            let sample = samples.of(&terms, term);
            for lane in 0..SAMPLES {
                let (found, expected) = (sample[lane], expected[word][lane]);
                if found != u64::from(expected) {
                    let operands: Vec<u32> = rows.iter().map(|row| row[lane]).collect();
                    let what = format!("word {word} of {operands:x?} is {found:#x}, expected {expected:#x}");
                    return Some(format!("{shape:?}: {what}"));
                }
            }
        }
    }
    well_formed(&terms, &case.name);
    None
}

#[test]
fn meanings_of_variables_have_the_values_that_the_loops_compute() {
    for (number, case) in cases().iter().enumerate() {
        assert_eq!(differs_on_variables(number, case), None, "{}", case.name);
    }
}

#[test]
fn another_operations_meaning_is_found() {
    let two = |op: nir::Op| match nir_alu::kernel(
        op,
        if op.info().output.ty.size == 0 { 16 } else { 1 },
        &[16, 16],
        FloatControls::OPEN,
    ) {
        Some(Kernel::Two(kernel)) => kernel,
        other => panic!("{op:?}: {other:?}"),
    };
    // The two differ in corner cases only.
    let pairs = [
        (nir::Op::Iadd, nir::Op::IaddSat),
        (nir::Op::Fmin, nir::Op::Imin),
        (nir::Op::Ihadd, nir::Op::Uhadd),
        (nir::Op::Irem, nir::Op::Imod),
        (nir::Op::Flt, nir::Op::Fltu),
        (nir::Op::Fmod, nir::Op::Frem),
    ];
    for (run, meaning) in pairs {
        let wrong = Box::leak(Box::new(Two { run: two(run).run, meaning: two(meaning).meaning }));
        let definition = Definition::Kernel(Kernel::Two(wrong));
        let case = KernelCase { name: "wrong".to_owned(), definition, sources: vec![vec![16]; 2], results: 1 };
        assert!(differs_on_constants(0, &case).is_some(), "{run:?} as {meaning:?}, constants");
        assert!(differs_on_variables(0, &case).is_some(), "{run:?} as {meaning:?}, variables");
    }
}

/// Checks that the widths of arguments are those that the operations expect: concrete results do not show where a
/// definition has a wrong one.
fn well_formed(terms: &Terms, case: &str) {
    for index in 0..terms.len() {
        let term = Term::from_u32(index as u32);
        let node = terms.node(term);
        let (width, args) = (u32::from(node.width), &node.args);
        let widths: Vec<u32> = args.iter().map(|&arg| terms.width(arg)).collect();
        let right = match node.op {
            Op::Not | Op::And | Op::Xor | Op::Add | Op::Mul | Op::Udiv | Op::Urem | Op::UmulHigh | Op::SmulHigh => {
                widths.iter().all(|&w| w == width)
            }
            Op::Shl | Op::Lshr | Op::Ashr | Op::Popcount | Op::Clz | Op::Reverse => widths.iter().all(|&w| w == width),
            Op::Eq | Op::Ult | Op::Slt => width == 1 && widths[0] == widths[1],
            Op::Ite => widths == [1, width, width],
            Op::Zext | Op::Sext => widths[0] < width,
            Op::Extract(low) => u32::from(low) + width <= widths[0],
            Op::Concat => widths.iter().sum::<u32>() == width,
            Op::Constant(bits) => bits >> (width - 1) <= 1,
            _ => true,
        };
        assert!(right, "{case}: {:?} of {widths:?} with {width} bits", node.op);
    }
}
