//! Clamps to [0, 1], in the operations that compute what is clamped.
//!
//! nir's `fsat` is selected as `(sat)max.f x, x`. Where nothing else reads `x`, and what computes it is a float operation
//! that can clamp its own result, it does so, and the `max.f` goes: the clamp of a number is the same in both places, and
//! that of a NaN is 0 in both.

use crate::ir3::legality::can_saturate;
use crate::ir3::{Dst, Instr, InstrFlags, Opcode, Place, Program, RegClass, RegFile, Src, SrcOperand, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Whether there is a clamp.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| clamped(program, instr).is_some())
}

/// Folds the clamps.
pub fn run(program: &mut Program) {
    let mut reads = SecondaryMap::<Value, u32>::with_capacity(program.values.len());
    for (_, instr) in program.iter_instrs() {
        for value in program.instrs[instr].srcs.iter().filter_map(|src| src.value()) {
            reads[value] += 1;
        }
    }
    // The clamped values, which are now what they were clamped from.
    let mut same = SecondaryMap::<Value, PackedOption<Value>>::new();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut list = std::mem::take(&mut program.blocks[block].instrs);
        list.retain(|&instr| {
            let Some((x, result)) = clamped(program, instr) else { return true };
            // Both sources of the `max.f`, and no more.
            let sole = reads[x] == 2;
            // What is clamped may be a clamp itself, and gone.
            let x = same[x].expand().unwrap_or(x);
            let def = program.values[x].instr;
            if !sole || !computes_float(program, def, x) {
                return true;
            }
            program.instrs[def].flags |= InstrFlags::SAT;
            same[result] = x.into();
            false
        });
        program.blocks[block].instrs = list;
    }
    for position in 0..program.layout.len() {
        for index in 0..program.blocks[program.layout[position]].instrs.len() {
            let instr = program.blocks[program.layout[position]].instrs[index];
            for src in &mut program.instrs[instr].srcs {
                if let Some(x) = src.value().and_then(|value| same[value].expand()) {
                    src.set_value(x);
                }
            }
        }
    }
}

/// What `(sat)max.f x, x` clamps, and its result.
fn clamped(program: &Program, instr: Instr) -> Option<(Value, Value)> {
    let data = &program.instrs[instr];
    if data.opcode != Opcode::MaxF || data.flags != InstrFlags::SAT || data.repeat != 0 {
        return None;
    }
    let (&[a, b], &[Dst { place: Place::Value(result), class, .. }]) = (&data.srcs[..], &data.dsts[..]) else {
        return None;
    };
    let Src { operand: SrcOperand::Place(Place::Value(x)), mods, .. } = a else { return None };
    let general = class.file == RegFile::General;
    (a == b && mods.is_empty() && general && a.class == class).then_some((x, result))
}

/// Whether the instruction computes `x`, a float, and can clamp it.
fn computes_float(program: &Program, instr: Instr, x: Value) -> bool {
    let data = &program.instrs[instr];
    let [Dst { place: Place::Value(value), class, .. }] = data.dsts[..] else { return false };
    let same_width = data.srcs.iter().all(|src| src.class.half == class.half);
    value == x
        && matches!(class, RegClass::FULL | RegClass::HALF)
        && same_width
        && data.repeat == 0
        && InstrFlags::SAT.contains(data.flags)
        && can_saturate(data.opcode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{Attrs, BlockData, Builder, Mods};

    /// The opcodes and flags that are left of a clamp of what `compute` gives for two inputs. `also` is read too.
    fn left(
        class: RegClass,
        compute: impl Fn(&mut Builder, [Src; 2]) -> Value,
        also: bool,
    ) -> Vec<(Opcode, InstrFlags)> {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let inputs = [0, 1].map(|_| {
            let value = b.define(Opcode::Input, class, 1, &[], Attrs::Input(None));
            b.src(value)
        });
        let x = compute(&mut b, inputs);
        let x = b.src(x);
        let clamp = b.alu(Opcode::MaxF, x.class, &[x, x]);
        let def = b.program.values[clamp].instr;
        b.program.instrs[def].flags |= InstrFlags::SAT;
        let clamp = b.src(clamp);
        b.effect(Opcode::End, &[clamp, x][..1 + usize::from(also)]);
        assert!(is_needed(&program));
        run(&mut program);
        let (_, end) = program.iter_instrs().last().unwrap();
        let read = program.values[program.instrs[end].srcs[0].value().unwrap()].instr;
        assert!(program.instrs[read].flags.contains(InstrFlags::SAT));
        program
            .iter_instrs()
            .map(|(_, instr)| (program.instrs[instr].opcode, program.instrs[instr].flags))
            .filter(|(opcode, _)| !matches!(opcode, Opcode::Input | Opcode::End))
            .collect()
    }

    const CLAMP: (Opcode, InstrFlags) = (Opcode::MaxF, InstrFlags::SAT);

    #[test]
    fn the_operation_clamps() {
        for class in [RegClass::FULL, RegClass::HALF] {
            let sum = |b: &mut Builder, [x, y]: [Src; 2]| b.alu(Opcode::AddF, class, &[x, y.with_mods(Mods::NEG)]);
            assert_eq!(left(class, sum, false), [(Opcode::AddF, InstrFlags::SAT)]);
            assert_eq!(left(class, sum, true), [(Opcode::AddF, InstrFlags::empty()), CLAMP]);
        }
    }

    /// The clamp of a clamp is one.
    #[test]
    fn clamps_of_clamps_are_one() {
        let class = RegClass::FULL;
        let twice = |b: &mut Builder, [x, y]: [Src; 2]| {
            let sum = b.alu(Opcode::AddF, class, &[x, y]);
            let sum = b.src(sum);
            let clamp = b.alu(Opcode::MaxF, class, &[sum, sum]);
            let def = b.program.values[clamp].instr;
            b.program.instrs[def].flags |= InstrFlags::SAT;
            clamp
        };
        assert_eq!(left(class, twice, false), [(Opcode::AddF, InstrFlags::SAT)]);
        assert_eq!(left(class, twice, true), [(Opcode::AddF, InstrFlags::SAT), CLAMP]);
    }

    /// Integers saturate in another way, special functions not at all, and a conversion behind the clamp is no clamp.
    #[test]
    fn other_operations_do_not() {
        let r = RegClass::FULL;
        let int = |b: &mut Builder, [x, y]: [Src; 2]| b.alu(Opcode::AddU, r, &[x, y]);
        assert_eq!(left(r, int, false), [(Opcode::AddU, InstrFlags::empty()), CLAMP]);
        let rcp = |b: &mut Builder, [x, _]: [Src; 2]| b.alu(Opcode::Rcp, r, &[x]);
        assert_eq!(left(r, rcp, false), [(Opcode::Rcp, InstrFlags::empty()), CLAMP]);
        let widening = |b: &mut Builder, [x, y]: [Src; 2]| b.alu(Opcode::AddF, r, &[x, y]);
        assert_eq!(left(RegClass::HALF, widening, false), [(Opcode::AddF, InstrFlags::empty()), CLAMP]);
    }
}
