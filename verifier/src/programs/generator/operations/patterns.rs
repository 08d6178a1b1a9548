//! What the rewrite rules of nir passes look for, and what is nearly that.
//!
//! Drawn one at a time, operations hardly ever make a pattern of three. So a rule's pattern is written out, with operands of any kind for
//! its variables. Often one thing in it is changed: another operation, another number, another value or component where a variable occurs
//! again. A rule that looks less closely than it should rewrites these as well.

use ir3_compiler::nir::{AluSrc, BaseType, Op};
use ir3_compiler::nir_passes::{Table, Term, VARIABLES, operand_bits};
use smallvec::SmallVec;

use super::super::Generator;
use super::super::accepted::operations;
use super::super::choices::Choices;
use super::operands::source;

/// A pattern that is written out.
struct Instance {
    /// The width of the rule.
    bits: u8,
    /// The components of each operation.
    components: u8,
    variables: [Option<AluSrc>; VARIABLES],
    /// Of 256, the parts that are changed.
    changes: u32,
}

impl<C: Choices> Generator<'_, C> {
    /// The pattern of a rule, as it is or changed; none if the GPU lacks an operation of it.
    pub(super) fn pattern(&mut self) {
        let rules = self.c.pick(&Table::ALL).rules();
        let rule = &rules[self.c.below(rules.len())];
        let components = if self.c.chance(220) { 1 } else { 2 + self.c.below(3) as u8 };
        let changes = self.c.pick(&[0, 0, 20, 60]);
        let mut instance = Instance { bits: rule.bits, components, variables: Default::default(), changes };
        let base = if rule.result_bits() == 1 { BaseType::Bool } else { BaseType::Uint };
        let Some(src) = self.written_out(&mut instance, &rule.from, base, rule.result_bits()) else { return };
        if components == 1 && rule.result_bits() == 1 && self.c.chance(170) {
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
                Some(match bound {
                    Some(src) if !is_changed => src,
                    Some(src) if self.c.chance(128) => self.next_component(src),
                    _ => {
                        let src = self.any_operand(base, bits, instance.components);
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
                if info.commutes() && self.c.chance(128) {
                    srcs.swap(0, 1);
                }
                let def = self.b.alu_swizzled(op, instance.components, &srcs);
                if self.c.chance(24) {
                    // It has another reader.
                    self.define(def);
                }
                Some(source(def, instance.components))
            }
        }
    }

    /// Another operation with operands of the same widths, and a result of `bits` bits like this one, in a rule of `rule` bits.
    fn like(&mut self, op: Op, bits: u8, rule: u8) -> Op {
        let widths = |op: Op| -> SmallVec<[u8; 4]> {
            (0..op.info().inputs.len()).map(|i| operand_bits(op, i, bits, rule)).collect()
        };
        let has_result = |op: Op| op.info().is_per_component() && [0, bits].contains(&op.info().output.ty.size);
        let all: Vec<Op> =
            Op::ALL.iter().copied().filter(|&other| has_result(other) && widths(other) == widths(op)).collect();
        self.c.pick(&all)
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
        let rules = Table::ALL.into_iter().flat_map(|table| table.rules());
        let mut missing: FxHashSet<&str> = rules.clone().map(|rule| rule.name).collect();
        let (mut deep, mut near) = (0, 0);
        for seed in 0..400 {
            let function = from_seed(seed, Profile::Operations, Features::ALL).shader.entry;
            for (_, instr) in function.instrs_in_order() {
                let InstrData::Alu(alu) = &function.instrs[instr] else { continue };
                for rule in rules.clone() {
                    if is_written(&function, &rule.from, alu.def.into()) {
                        missing.remove(rule.name);
                    }
                    let Term::Op(op, terms) = rule.from else { continue };
                    let is_deep = terms.iter().any(|term| matches!(term, Term::Op(..)));
                    if is_deep && alu.op == op && alu.srcs.len() == terms.len() {
                        let parts = terms.iter().zip(&alu.srcs).filter(|(term, _)| matches!(term, Term::Op(..)));
                        let parts: Vec<bool> = parts.map(|(term, &src)| is_written(&function, term, src)).collect();
                        deep += u32::from(parts.iter().all(|&is| is));
                        near += u32::from(parts.len() > 1 && parts.iter().any(|&is| is) && !parts.iter().all(|&is| is));
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
        assert!(deep > 200 && near > 10, "{deep} patterns, {near} changed ones");
    }
}
