//! Reorders the pure instructions of each block.

use super::edit::{consts_change, is_pure};
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{Instr, Opcode, Program};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// Puts each block into a random order. Instructions that are not pure stay in order among themselves.
pub(super) fn within_blocks(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    let consts_change = consts_change(program);
    let mut any = false;
    for block in program.layout.clone() {
        let instrs = program.blocks[block].instrs.clone();
        let fixed = |instr: Instr| {
            let opcode = program.instrs[instr].opcode;
            matches!(opcode, Opcode::Phi | Opcode::Input | Opcode::TexPrefetch)
        };
        let start = instrs.iter().rposition(|&instr| fixed(instr)).map_or(0, |i| i + 1);
        let end = instrs.iter().position(|&instr| program.instrs[instr].opcode.is_terminator()).unwrap_or(instrs.len());
        if end <= start {
            continue;
        }
        let order = order(program, &instrs[start..end], consts_change, random);
        any |= order[..] != instrs[start..end];
        program.blocks[block].instrs[start..end].copy_from_slice(&order);
    }
    any
}

/// A random topological order of the instructions: each follows the definitions of its operands.
fn order(program: &Program, instrs: &[Instr], consts_change: bool, random: &mut Random) -> Vec<Instr> {
    let mut waits: Vec<usize> = vec![0; instrs.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); instrs.len()];
    let mut position: SecondaryMap<Instr, Option<usize>> = SecondaryMap::new();
    let mut last_effect = None;
    for (i, &instr) in instrs.iter().enumerate() {
        let data = &program.instrs[instr];
        let mut before: Vec<usize> = data
            .srcs
            .iter()
            .filter_map(|src| src.value())
            .map(|value| program.values[value].instr)
            .chain(data.false_deps().iter().copied())
            .filter_map(|other| position[other])
            .collect();
        if !is_pure(data, consts_change) {
            before.extend(last_effect);
            last_effect = Some(i);
        }
        before.sort_unstable();
        before.dedup();
        waits[i] = before.len();
        for other in before {
            readers[other].push(i);
        }
        position[instr] = Some(i);
    }
    let mut ready: Vec<usize> = (0..instrs.len()).filter(|&i| waits[i] == 0).collect();
    let mut order = Vec::with_capacity(instrs.len());
    while !ready.is_empty() {
        let next = ready.swap_remove(random.below(ready.len()));
        order.push(instrs[next]);
        for &reader in &readers[next] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    order
}
