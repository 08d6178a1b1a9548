//! Patterns that the rewrite rules of nir passes, selection and passes after it match, and near misses.
//!
//! Drawn one at a time, operations hardly ever make a pattern of three. So a rule's pattern is written out, with
//! operands of any kind for its variables. Often one thing in it is changed: another operation, another number, another
//! value or component where a variable occurs again. A rule that looks less closely than it should rewrites these as
//! well.

use super::super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, BaseType, Op};
use ir3_compiler::nir_passes::{Table, Term, VARIABLES, operand_bits};
use smallvec::SmallVec;

use super::super::Generator;
use super::super::accepted::operations;
use super::super::choices::Choices;
use super::operands::source;

const A: Term = Term::Variable(0);
const B: Term = Term::Variable(1);
const C: Term = Term::Variable(2);
const ZERO: Term = Term::Constant(0);
const ONE: Term = Term::Constant(1);

/// Patterns that passes without rules match, with the width of their operands: numbers that are 0 or 1, products and
/// shifts in sums, parts of words, clamps, modifiers.
const LOOKED_FOR: &[(u8, Term)] = &[
    (32, Term::Op(Op::Ine, &[Term::Op(Op::Ixor, &[A, ONE]), ZERO])),
    (32, Term::Op(Op::Ieq, &[Term::Op(Op::Iand, &[A, ONE]), ZERO])),
    (32, Term::Op(Op::Ine, &[Term::Op(Op::Ior, &[Term::Op(Op::B2i32, &[A]), B]), ZERO])),
    (32, Term::Op(Op::Ieq, &[Term::Op(Op::B2i32, &[A]), ONE])),
    (32, Term::Op(Op::Ixor, &[Term::Op(Op::B2i32, &[A]), ONE])),
    (32, Term::Op(Op::Iand, &[Term::Op(Op::B2i32, &[A]), B])),
    (32, Term::Op(Op::Bcsel, &[Term::Op(Op::Ine, &[Term::Op(Op::Ixor, &[A, ONE]), ZERO]), B, C])),
    (16, Term::Op(Op::Ine, &[Term::Op(Op::Ixor, &[A, ONE]), ZERO])),
    (32, Term::Op(Op::Iadd, &[Term::Op(Op::Imul, &[A, B]), C])),
    (32, Term::Op(Op::Iadd, &[Term::Op(Op::Ishl, &[A, Term::Constant(2)]), B])),
    (32, Term::Op(Op::Ishl, &[Term::Op(Op::Iadd, &[A, B]), Term::Constant(3)])),
    (32, Term::Op(Op::Ushr, &[Term::Op(Op::Ishl, &[A, Term::Constant(24)]), Term::Constant(24)])),
    (32, Term::Op(Op::Iand, &[Term::Op(Op::Ushr, &[A, Term::Constant(8)]), Term::Constant(255)])),
    (
        32,
        Term::Op(
            Op::Ior,
            &[Term::Op(Op::Ishl, &[A, Term::Constant(16)]), Term::Op(Op::Iand, &[B, Term::Constant(0xffff)])],
        ),
    ),
    (32, Term::Op(Op::Imax, &[Term::Op(Op::Ineg, &[A]), A])),
    (32, Term::Op(Op::Isub, &[Term::Op(Op::Imax, &[A, B]), Term::Op(Op::Imin, &[A, B])])),
    (32, Term::Op(Op::Fmin, &[Term::Op(Op::Fmax, &[A, ZERO]), Term::Constant(0x3f80_0000)])),
    (32, Term::Op(Op::Fmax, &[Term::Op(Op::Fmin, &[A, Term::Constant(0x3f80_0000)]), ZERO])),
    (16, Term::Op(Op::Fmin, &[Term::Op(Op::Fmax, &[A, ZERO]), Term::Constant(0x3c00)])),
    (32, Term::Op(Op::Fsat, &[Term::Op(Op::Fneg, &[Term::Op(Op::Fadd, &[A, B])])])),
    (32, Term::Op(Op::Fabs, &[Term::Op(Op::Fneg, &[A])])),
    (32, Term::Op(Op::Fneg, &[Term::Op(Op::Fabs, &[A])])),
    (32, Term::Op(Op::Fadd, &[Term::Op(Op::Fmul, &[A, B]), Term::Op(Op::Fneg, &[C])])),
    (32, Term::Op(Op::Ffma, &[Term::Op(Op::Fneg, &[A]), B, Term::Op(Op::Fneg, &[C])])),
    (1, Term::Op(Op::Inot, &[Term::Op(Op::Iand, &[A, Term::Op(Op::Inot, &[B])])])),
    (1, Term::Op(Op::Ixor, &[A, Term::Op(Op::Inot, &[B])])),
    (64, Term::Op(Op::Isub, &[A, Term::Op(Op::Ineg, &[A])])),
    // Quotients are computed from an estimate: next to a multiple of the divisor, and of the largest number, it has to
    // be corrected.
    (32, Term::Op(Op::Udiv, &[Term::Op(Op::Isub, &[Term::Op(Op::Imul, &[A, B]), ONE]), B])),
    (32, Term::Op(Op::Umod, &[Term::Op(Op::Imul, &[A, B]), B])),
    (32, Term::Op(Op::Idiv, &[Term::Op(Op::Isub, &[Term::Op(Op::Imul, &[A, B]), ONE]), B])),
    (32, Term::Op(Op::Udiv, &[Term::Constant(0xffff_ffff), A])),
    (32, Term::Op(Op::Udiv, &[Term::Constant(0xffff_ffff), Term::Op(Op::Iadd, &[A, Term::Constant(0x1_0000)])])),
    // A negation as a condition, and as a number.
    (32, Term::Op(Op::Udiv, &[A, Term::Op(Op::Ixor, &[B, ONE])])),
    (32, Term::Op(Op::IcselEqz, &[Term::Op(Op::Ixor, &[A, ONE]), B, C])),
    (32, Term::Op(Op::IcselEqz, &[Term::Op(Op::B2i32, &[Term::Op(Op::Inot, &[A])]), B, C])),
    (
        32,
        Term::Op(
            Op::IcselEqz,
            &[Term::Op(Op::Ixor, &[Term::Op(Op::Iand, &[Term::Op(Op::B2i32, &[A]), B]), ONE]), B, C],
        ),
    ),
    (
        32,
        Term::Op(Op::IcselEqz, &[Term::Op(Op::Ixor, &[Term::Op(Op::Ior, &[Term::Op(Op::B2i32, &[A]), B]), ONE]), B, C]),
    ),
    (
        32,
        Term::Op(
            Op::IcselEqz,
            &[Term::Op(Op::Ixor, &[Term::Op(Op::Ixor, &[Term::Op(Op::B2i32, &[A]), B]), ONE]), B, C],
        ),
    ),
    (32, Term::Op(Op::BitfieldInsert, &[A, B, C, Term::Op(Op::Ixor, &[C, ONE])])),
    (32, Term::Op(Op::Bcsel, &[A, Term::Op(Op::B2i32, &[Term::Op(Op::Inot, &[B])]), C])),
    (32, Term::Op(Op::Bcsel, &[A, C, Term::Op(Op::B2i32, &[Term::Op(Op::Inot, &[A])])])),
    (32, Term::Op(Op::Imad24Ir3, &[A, Term::Op(Op::B2i32, &[Term::Op(Op::Inot, &[B])]), C])),
    (16, Term::Op(Op::Bcsel, &[A, Term::Op(Op::B2i16, &[Term::Op(Op::Inot, &[B])]), C])),
];

/// A pattern that is written out.
struct Instance {
    /// The width of the rule.
    bits: u8,
    /// The components of each operation.
    components: u8,
    variables: [Option<AluSrc>; VARIABLES],
    /// The share of the parts that are changed, in 1/256.
    changes: u32,
    /// The share of the variables that are replaced at a further occurrence, in 1/256.
    others: u32,
}

impl<C: Choices> Generator<'_, C> {
    /// Several patterns in a row: of a program's operations few are patterns, and there are many of these.
    pub(in crate::generator) fn row_of_patterns(&mut self) {
        if self.weights.operation != 0 && self.c.chance(CONFIG.row_of_patterns) {
            let count = 2 + self.c.below(6);
            (0..count).for_each(|_| self.pattern());
        }
    }

    /// Emits a pattern, original or changed; nothing if the GPU lacks an operation of it.
    pub(super) fn pattern(&mut self) {
        let (bits, term) = if self.c.even() {
            self.c.pick(LOOKED_FOR)
        } else {
            let rules = self.c.pick(&Table::ALL).rules();
            let rule = &rules[self.c.below(rules.len())];
            (rule.bits, rule.from)
        };
        let Term::Op(op, _) = term else { return };
        let output = op.info().output.ty;
        let result = output.width_or(bits);
        let components = if self.c.chance(CONFIG.scalar_pattern) { 1 } else { 2 + self.c.below(3) as u8 };
        // Repeated variables are overlooked most easily.
        let (changes, others) = self.c.pick(&[(0, 0), (0, 0), (20, 20), (60, 60), (0, 200)]);
        let mut instance = Instance { bits, components, variables: Default::default(), changes, others };
        let Some(src) = self.written_out(&mut instance, &term, output.base, result) else { return };
        if components == 1 && result == 1 && self.c.chance(CONFIG.branch_on_pattern) {
            return self.branch_on(src.def, 20);
        }
        self.define_seen(src.def, 256);
    }

    /// A term of a pattern as a source of `bits` bits.
    fn written_out(&mut self, instance: &mut Instance, term: &Term, base: BaseType, bits: u8) -> Option<AluSrc> {
        let is_changed = self.c.chance(instance.changes);
        match *term {
            Term::Variable(number) => {
                let bound = instance.variables[usize::from(number)];
                let is_other = is_changed || bound.is_some() && self.c.chance(instance.others);
                Some(match bound {
                    Some(src) if !is_other => src,
                    Some(src) if self.c.chance(CONFIG.next_component) => self.next_component(src),
                    _ => {
                        let has_others = bits != 1 && self.c.chance(instance.others);
                        let part = if has_others { self.part_of_vector(bits) } else { None };
                        let src = part.unwrap_or_else(|| self.any_operand(base, bits, instance.components));
                        instance.variables[usize::from(number)].get_or_insert(src);
                        src
                    }
                })
            }
            Term::Constant(_) if is_changed => Some(self.any_operand(base, bits, instance.components)),
            Term::Constant(number) => Some(self.constant_source(bits, number)),
            Term::Op(op, terms) => {
                let op = if is_changed { self.like(op, bits, instance.bits) } else { op };
                let info = op.info();
                let width = info.width_source().map_or(32, |i| operand_bits(op, i, bits, instance.bits));
                if !operations(&self.target).contains(&(op, width)) {
                    return None;
                }
                let mut srcs = Vec::new();
                for (i, term) in terms.iter().enumerate() {
                    let bits = operand_bits(op, i, bits, instance.bits);
                    srcs.push(self.written_out(instance, term, info.inputs[i].ty.base, bits)?);
                }
                if info.commutes() && self.c.even() {
                    srcs.swap(0, 1);
                }
                let def = self.b.alu_swizzled(op, instance.components, &srcs);
                if self.c.chance(CONFIG.pattern_with_reader) {
                    // It has another reader.
                    self.define(def);
                }
                Some(source(def, instance.components))
            }
        }
    }

    /// Another operation with operands of the same widths, and a result of `bits` bits like this one, in a rule of
    /// `rule` bits.
    fn like(&mut self, op: Op, bits: u8, rule: u8) -> Op {
        let widths = |op: Op| -> SmallVec<[u8; 4]> {
            (0..op.info().inputs.len()).map(|i| operand_bits(op, i, bits, rule)).collect()
        };
        let has_result = |op: Op| op.info().is_per_component() && [0, bits].contains(&op.info().output.ty.size);
        let all: Vec<Op> =
            Op::ALL.iter().copied().filter(|&other| has_result(other) && widths(other) == widths(op)).collect();
        self.c.pick(&all)
    }

    /// A source that reads the components of a vector from any of them on.
    fn part_of_vector(&mut self, bits: u8) -> Option<AluSrc> {
        let vector = self.pool.vector(self.c, Some(bits))?;
        let first = self.c.below(vector.components.into());
        let swizzle = std::array::from_fn(|i| ((first + i) % usize::from(vector.components)) as u8);
        Some(AluSrc { def: vector.def, swizzle })
    }

    /// A source that reads another component, if the value has one.
    fn next_component(&self, src: AluSrc) -> AluSrc {
        let count = self.b.function().defs[src.def].num_components;
        AluSrc { swizzle: src.swizzle.map(|component| (component + 1) % count), ..src }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Features, Profile, from_seed};
    use super::*;
    use ir3_compiler::nir::{Function, InstrData};
    use rustc_hash::FxHashSet;

    /// Returns true if the operations of a term, down to its variables, compute the source.
    fn is_written(function: &Function, term: &Term, src: AluSrc) -> bool {
        let Term::Op(op, terms) = *term else { return true };
        match &function.instrs[function.defs[src.def].instr] {
            InstrData::Alu(alu) if alu.op == op => {
                let fits = |srcs: [usize; 2]| {
                    terms
                        .iter()
                        .zip(srcs.into_iter().chain(2..))
                        .all(|(term, i)| is_written(function, term, alu.srcs[i]))
                };
                fits([0, 1]) || op.info().commutes() && fits([1, 0])
            }
            _ => false,
        }
    }

    #[test]
    fn every_pattern_is_generated() {
        let rules = Table::ALL.into_iter().flat_map(|table| table.rules()).map(|rule| rule.from);
        let terms: Vec<Term> = rules.chain(LOOKED_FOR.iter().map(|&(_, term)| term)).collect();
        let mut missing: FxHashSet<usize> = (0..terms.len()).collect();
        let (mut whole, mut near) = (0, 0);
        for seed in 0..1500 {
            let function = from_seed(seed, Profile::Operations, Features::ALL).shader.entry;
            for (_, instr) in function.instrs_in_order() {
                let InstrData::Alu(alu) = &function.instrs[instr] else { continue };
                for (number, term) in terms.iter().enumerate() {
                    if is_written(&function, term, alu.def.into()) {
                        missing.remove(&number);
                    }
                    let Term::Op(op, terms) = *term else { continue };
                    if alu.op != op || alu.srcs.len() != terms.len() {
                        continue;
                    }
                    let parts = terms.iter().zip(&alu.srcs).filter(|(term, _)| matches!(term, Term::Op(..)));
                    let parts: Vec<bool> = parts.map(|(term, &src)| is_written(&function, term, src)).collect();
                    let written = parts.iter().filter(|&&is| is).count();
                    whole += u32::from(written > 0 && written == parts.len());
                    near += u32::from(written > 0 && written < parts.len());
                }
            }
        }
        let missing: Vec<Term> = missing.into_iter().map(|number| terms[number]).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(whole > 1000 && near > 50, "{whole} patterns, {near} changed ones");
    }
}
