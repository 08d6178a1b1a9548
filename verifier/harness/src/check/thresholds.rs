//! Constants of comparisons, of boundaries that no prover decides.
//!
//! A comparison with another constant is right but for the inputs whose value is between the two constants. The search
//! for ties moves inputs, and finds such an input where the value is a function of one; sums of texels are none. The
//! sensitivity does not show it either: it changes one of the programs only. So a boundary that was only run does not
//! pass if one program compares with a constant that the other one has nowhere.

use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::opcode::Numeric;
use ir3_compiler::ir3::{InstrData, Opcode, Program, Src, SrcOperand, Value};
use ir3_compiler::nir::{self, Function};
use ir3_semantics::arithmetic::float::{f16_to_f32, f32_to_f16};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// A constant with which a program compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold {
    /// Its bits.
    pub bits: u32,
    is_float: bool,
    is_half: bool,
    /// True if it is of the program after.
    pub is_of_after: bool,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { bits, is_float, is_half, .. } = self;
        match (is_float, is_half) {
            (true, true) => write!(f, "{:?} ({bits:#06x})", f32::from_bits(f16_to_f32(bits))),
            (true, false) => write!(f, "{:?} ({bits:#010x})", f32::from_bits(bits)),
            (false, _) => write!(f, "{bits:#x}"),
        }
    }
}

/// The first constant with which one program compares, and that the other one does not have, also with another sign or
/// width.
pub(super) fn only_in_one(before: ProgramRef<'_>, after: ProgramRef<'_>) -> Option<Threshold> {
    let [before, after] = [Constants::of(before)?, Constants::of(after)?];
    let missing = |of: &Constants, other: &Constants| of.compared.iter().copied().find(|it| !other.has(it));
    let of_after = missing(&after, &before).map(|it| Threshold { is_of_after: true, ..it });
    of_after.or_else(|| missing(&before, &after))
}

/// The constants of a program.
#[derive(Debug, Default)]
struct Constants {
    all: Vec<u32>,
    compared: Vec<Threshold>,
}

impl Constants {
    fn of(program: ProgramRef<'_>) -> Option<Self> {
        match program {
            ProgramRef::Nir(shader) => Some(Self::of_nir(&shader.entry)),
            ProgramRef::Ir3(program) => Some(Self::of_ir3(program)),
            ProgramRef::Vec4(_) => None,
        }
    }

    fn of_nir(function: &Function) -> Self {
        let mut own = Self::default();
        for (_, instr) in function.instrs_in_order() {
            match &function.instrs[instr] {
                nir::InstrData::Const { values, .. } => {
                    own.all.extend(values.iter().flat_map(|&value| [value as u32, (value >> 32) as u32]));
                }
                nir::InstrData::Alu(alu) => {
                    let name = alu.op.name().trim_end_matches(|c: char| c.is_ascii_digit());
                    let is_float = matches!(name, "flt" | "fge" | "feq" | "fneu");
                    if !is_float && !matches!(name, "ilt" | "ige" | "ieq" | "ine" | "ult" | "uge") {
                        continue;
                    }
                    for src in &alu.srcs {
                        let Some(values) = function.as_const(src.def) else { continue };
                        let bits = function.defs[src.def].bit_size;
                        let read = usize::from(function.defs[alu.def].num_components);
                        let values = src.swizzle[..read].iter().filter_map(|&at| values.get(usize::from(at)));
                        // The words of a number of 64 bits are compared one by one.
                        let words = values.flat_map(|&value| [value as u32, (value >> 32) as u32]);
                        let is_half = bits < 32;
                        let words = words.filter(|_| bits > 1);
                        let is_float = is_float && bits <= 32;
                        own.compared.extend(words.map(|bits| Threshold::new(bits, is_float, is_half)));
                    }
                }
                _ => {}
            }
        }
        own
    }

    fn of_ir3(program: &Program) -> Self {
        let words: FxHashMap<u16, u32> = program.consts.immediates.iter().copied().collect();
        let number = |src: &Src| match src.operand {
            SrcOperand::Immediate(bits) => Some(bits),
            SrcOperand::Const(word) => words.get(&word).copied(),
            _ => None,
        };
        let instrs = || program.iter_instrs().map(|(_, instr)| &program.instrs[instr]);
        let moved = |data: &InstrData| {
            let (dst, src) = (data.dsts.first()?.value()?, data.srcs.first()?);
            (data.opcode == Opcode::Mov).then_some((dst, number(src)?))
        };
        let moves: FxHashMap<Value, u32> = instrs().filter_map(moved).collect();
        let mut own = Self::default();
        for data in instrs() {
            own.all.extend(data.srcs.iter().filter_map(number));
            if data.opcode.is_comparison() {
                let is_float = data.opcode.info().numeric == Numeric::Float;
                for src in data.srcs.iter().take(2) {
                    let bits = number(src).or_else(|| moves.get(&src.place()?.value()?).copied());
                    own.compared.extend(bits.map(|bits| Threshold::new(bits, is_float, src.class.half)));
                }
            }
        }
        own
    }

    fn has(&self, threshold: &Threshold) -> bool {
        let &Threshold { bits, is_float, is_half, .. } = threshold;
        // Passes add comparisons with 0 and 1 for booleans.
        if matches!(bits & 0x7fff_ffff, 0 | 1) || bits == u32::MAX {
            return true;
        }
        let forms = |its: u32| -> FxHashSet<u32> {
            let [half, float] = [f32_to_f16(its), f16_to_f32(its & 0xffff)];
            match is_float {
                true => [its, half, float].into_iter().flat_map(|it| [it, it ^ 1 << 31, it ^ 1 << 15]).collect(),
                // `x < 5` may become `x <= 4`, and `-x`.
                false => [its, its.wrapping_neg()]
                    .into_iter()
                    .flat_map(|it| [it, it.wrapping_add(1), it.wrapping_sub(1)])
                    .collect(),
            }
        };
        let mask = if is_half { 0xffff } else { u32::MAX };
        self.all.iter().any(|&its| forms(its).iter().any(|form| form & mask == bits & mask))
    }
}

impl Threshold {
    const fn new(bits: u32, is_float: bool, is_half: bool) -> Self {
        Self { bits, is_float, is_half, is_of_after: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::text;

    /// A program that compares its input with a constant, by `line`.
    fn program(line: &str) -> Program {
        let text = format!(
            "// {{stage=compute}}\nblock1 {{\n\t0001:0001:000: \t_meta:in r0.x // {{input=local_invocation_index}}\n\
             {line}\t0009:0009:000: \tend\n}}\n"
        );
        text::read(&text).unwrap_or_else(|error| panic!("{line}: {error:?}"))
    }

    #[test]
    fn a_constant_that_only_one_program_compares_with_is_found() {
        let float = |number: &str, bits: u32| {
            program(&format!(
                "\t0002:0002:000: \tmov.u32u32 ssa_2, imm[{number},{bits},{bits:#x}]\n\
                 \t0003:0003:000: \tcmps.f.lt ssa_3, r0.x, ssa_2\n"
            ))
        };
        let int =
            |bits: u32| program(&format!("\t0003:0003:000: \tcmps.u.lt r1.x, r0.x, imm[0.000000,{bits},{bits:#x}]\n"));
        let found = |before: &Program, after: &Program| {
            only_in_one(ProgramRef::Ir3(before), ProgramRef::Ir3(after)).map(|it| (it.bits, it.is_of_after))
        };
        let [small, other] = [float("0.000010", 0x3727_c5ac), float("0.000011", 0x3737_c5ac)];
        assert_eq!(found(&small, &small), None);
        assert_eq!(found(&small, &other), Some((0x3737_c5ac, true)));
        // The next float, and the negative one.
        assert_eq!(found(&small, &float("0.000010", 0x3727_c5ad)), Some((0x3727_c5ad, true)));
        assert_eq!(found(&small, &float("-0.000010", 0xb727_c5ac)), None);
        // `x < 5`, `x <= 4`; a program that lacks the comparison.
        assert_eq!(found(&int(5), &int(4)), None);
        assert_eq!(found(&int(5), &int(7)), Some((7, true)));
        assert_eq!(found(&int(7), &program("")), Some((7, false)));
        assert_eq!(found(&program(""), &int(1)), None);
    }
}
