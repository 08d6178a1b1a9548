//! Recovery of the array of a version whose text does not name it.
//!
//! Spilling and parallel copies make versions of arrays without saying of which: their number is 0, and those of Mesa
//! begin at 1. A phi, a copy and an instruction that changes elements have versions of one array on both sides, and
//! another operand may name it. A version that could be of two arrays keeps its text.

use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{Array, ArrayAccess, InstrData, Opcode, OperandFlags, Place, Program, SrcOperand, Value};
use std::collections::BTreeSet;

/// The arrays that each version may be of.
type Candidates = SecondaryMap<Value, BTreeSet<Array>>;

/// Names the array of each version that other operands name.
pub(super) fn complete(program: &mut Program) {
    let is_unnamed = |program: &Program, array: Array| program.arrays[array].id == 0;
    if program.arrays.keys().all(|array| !is_unnamed(program, array)) {
        return;
    }
    let mut candidates = Candidates::new();
    let mut links = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for access in accesses(data) {
            if let Some(value) = access.value.expand().filter(|_| !is_unnamed(program, access.array)) {
                candidates[value].insert(access.array);
            }
        }
        links.extend(same_array(data));
    }
    // A named version belongs to its array, for any copied values.
    let named: BTreeSet<Value> = candidates.iter().filter(|(_, arrays)| !arrays.is_empty()).map(|(it, _)| it).collect();
    loop {
        let mut changed = false;
        for &(a, b) in &links {
            for (from, to) in [(a, b), (b, a)] {
                if !named.contains(&to) {
                    let before = candidates[to].len();
                    let more = candidates[from].clone();
                    candidates[to].extend(more);
                    changed |= candidates[to].len() > before;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let arrays = program.arrays.clone();
    let name = |access: &mut ArrayAccess| {
        let Some(value) = access.value.expand().filter(|_| arrays[access.array].id == 0) else { return };
        let mut its = candidates[value].iter();
        if let (Some(&array), None) = (its.next(), its.next())
            && (arrays[array].length, arrays[array].class) == (arrays[access.array].length, arrays[access.array].class)
        {
            access.array = array;
        }
    };
    for data in program.instrs.values_mut() {
        let srcs = data.srcs.iter_mut().filter_map(|src| match &mut src.operand {
            SrcOperand::Place(place) => Some(place),
            _ => None,
        });
        for place in data.dsts.iter_mut().map(|dst| &mut dst.place).chain(srcs) {
            let Place::Array(access) = place else { continue };
            name(access);
            if let Some(value) = access.value.expand() {
                program.values[value].array = Some(access.array);
            }
        }
    }
}

/// The accesses to arrays of an instruction.
fn accesses(data: &InstrData) -> impl Iterator<Item = &ArrayAccess> {
    let places = data.dsts.iter().map(|dst| &dst.place).chain(data.srcs.iter().filter_map(|src| src.place()));
    places.filter_map(|place| match place {
        Place::Array(access) => Some(access),
        _ => None,
    })
}

/// The pairs of versions that an instruction has of one array.
fn same_array(data: &InstrData) -> Vec<(Value, Value)> {
    let version = |place: Option<&Place>| match place {
        Some(Place::Array(access)) => access.value.expand(),
        _ => None,
    };
    let dst = |at: usize| data.dsts.get(at).and_then(|dst| version(Some(&dst.place)));
    let srcs = data.srcs.iter().enumerate();
    let pairs = srcs.map(|(at, src)| {
        let to = match data.opcode {
            Opcode::Phi => dst(0),
            Opcode::ParallelCopy => dst(at),
            _ if src.flags.contains(OperandFlags::TIED) => dst(0),
            _ => None,
        };
        to.zip(version(src.place()))
    });
    pairs.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::text;

    /// Two arrays, one of which is spilled, and merged without its number.
    const SPILLED: &str = "block0 {
	0001:0000:000: 	mov.u32u32 ssa_1:1, imm[0.000000,0,0x0]
	0002:0000:000: 	reload.macro ssa_2:2:arr[id=1, offset=0, size=4], ssa_1:1, imm[0.000000,0,0x0], imm[0.000000,4,0x4]
	0003:0000:000: 	reload.macro ssa_3:3:arr[id=2, offset=0, size=4], ssa_1:1, imm[0.000000,16,0x10], imm[0.000000,4,0x4]
	0004:0000:000: 	_meta:parallel_copy ssa_4:4:arr[id=0, offset=0, size=4], ssa_4:5:arr[id=0, offset=0, size=4], ssa_2:2:arr[id=0, offset=0, size=4], ssa_3:3:arr[id=0, offset=0, size=4]
	0005:0000:000: 	spill.macro ssa_1:1, ssa_4:4:arr[id=0, offset=0, size=4], imm[0.000000,4,0x4] dst_offset=0
	0006:0000:000: 	spill.macro ssa_1:1, ssa_4:5:arr[id=0, offset=0, size=4], imm[0.000000,4,0x4] dst_offset=16
	0007:0000:000: 	end
}
";

    fn spilled(text: &str) -> Vec<u32> {
        let mut program = text::read(text).unwrap_or_else(|error| panic!("{error}"));
        complete(&mut program);
        let spills = program.instrs.values().filter(|data| data.opcode == Opcode::SpillMacro);
        spills.flat_map(accesses).map(|access| program.arrays[access.array].id).collect()
    }

    #[test]
    fn copies_are_of_the_array_that_they_copy() {
        assert_eq!(spilled(SPILLED), [1, 2]);
    }
}
