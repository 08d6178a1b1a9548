//! Folds clamps to [0, 1] into the operations that compute the clamped values.
//!
//! nir's `fsat` is selected as `(sat)max.f x, x`. If `x` has no other use and is the result of a float operation that
//! can clamp its own result, that operation does so and the `max.f` is removed: the clamp of a number is the same in
//! both places, and that of a NaN is 0 in both.

use crate::arms::{Arm, Counter};
use crate::ir3::{Dst, Instr, InstrFlags, Opcode, Place, Program, RegClass, RegFile, Src, SrcOperand, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Returns true if there is a clamp.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| clamped(program, instr).is_some())
}

/// Folds the clamps.
pub fn run(program: &mut Program, counter: &Counter) {
    let mut reads = map_of::<Value, u32>(program.values.len());
    for (_, instr) in program.iter_instrs() {
        for value in program.instrs[instr].srcs.iter().filter_map(|src| src.value()) {
            reads[value] += 1;
        }
    }
    // The results of removed clamps, with the values that replace them.
    let mut same = SecondaryMap::<Value, PackedOption<Value>>::new();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut list = std::mem::take(&mut program.blocks[block].instrs);
        list.retain(|&instr| {
            let Some((x, result)) = clamped(program, instr) else { return true };
            // Both sources of the `max.f` are the only uses.
            let sole = reads[x] == 2;
            // The clamped value may be the result of a removed clamp.
            let x = same[x].expand().unwrap_or(x);
            let def = program.values[x].instr;
            if !sole || !computes_float(program, def, x) {
                counter.count(Arm::SaturationOther);
                return true;
            }
            if !counter.may(Arm::SaturationFolded) {
                return true;
            }
            program.instrs[def].flags |= InstrFlags::SAT;
            same[result] = x.into();
            false
        });
        program.blocks[block].instrs = list;
    }
    let Program { layout, blocks, instrs, .. } = program;
    for &instr in layout.iter().flat_map(|&block| &blocks[block].instrs) {
        for src in &mut instrs[instr].srcs {
            if let Some(x) = src.value().and_then(|value| same[value].expand()) {
                src.set_value(x);
            }
        }
    }
}

/// The operand of `(sat)max.f x, x`, and its result.
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

/// Returns true if the instruction computes the float `x` and can clamp it.
fn computes_float(program: &Program, instr: Instr, x: Value) -> bool {
    let data = &program.instrs[instr];
    let [Dst { place: Place::Value(value), class, .. }] = data.dsts[..] else { return false };
    let same_width = data.srcs.iter().all(|src| src.class.half == class.half);
    value == x
        && matches!(class, RegClass::FULL | RegClass::HALF)
        && same_width
        && data.repeat == 0
        && InstrFlags::SAT.contains(data.flags)
        && data.opcode.can_saturate()
}
