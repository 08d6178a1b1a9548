//! Merges reloads of adjacent slots that a collect reads into one reload of the vector.
//!
//! The vector's reload is at the collect, so no store to its slots may be in between. This only shortens live ranges.

use super::super::lower_spills::needs_base_to_the_end;
use super::rewrite::elements;
use super::scalars::{general_result, general_value};
use crate::ir3::access::build;
use crate::ir3::opcode::Role;
use crate::ir3::{Attrs, Instr, InstrData, Opcode, OperandFlags, Program, Src, SrcOperand, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// Merges reloads.
pub fn run(program: &mut Program) {
    let mut uses: SecondaryMap<Value, u32> = map_of(program.values.len());
    for (_, instr) in program.iter_instrs() {
        for value in program.instrs[instr].srcs.iter().filter_map(general_value) {
            uses[value] += 1;
        }
    }
    let mut gone: SecondaryMap<Instr, bool> = SecondaryMap::new();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        // The position of each value's reload in the block, and of each address's last store.
        let mut reloads: FxHashMap<Value, (u32, usize)> = FxHashMap::default();
        let mut stores: FxHashMap<u32, usize> = FxHashMap::default();
        let mut any = false;
        for at in 0..program.blocks[block].instrs.len() {
            let instr = program.blocks[block].instrs[at];
            let data = &program.instrs[instr];
            match data.opcode {
                Opcode::ReloadMacro => {
                    if let (Some(value), Some(address)) = (data.dsts.first().and_then(general_result), address(data)) {
                        reloads.insert(value, (address, at));
                    }
                }
                Opcode::SpillMacro => {
                    let (Attrs::Memory(memory), Some(src)) = (&data.attrs, data.source(Role::Data)) else { continue };
                    let size = if src.class.half { 2 } else { 4 };
                    stores.extend((0..src.mask.span()).map(|k| (memory.offset as u32 + k * size, at)));
                }
                Opcode::Collect => {
                    let Some((first, parts)) = neighbours(data, &reloads, &stores, &uses) else { continue };
                    let base = program.instrs[program.values[parts[0]].instr].srcs[0];
                    for part in &parts {
                        gone[program.values[*part].instr] = true;
                    }
                    any = true;
                    make_reload(&mut program.instrs[instr], base, first);
                }
                _ => {}
            }
        }
        if any {
            program.blocks[block].instrs.retain(|&instr| !gone[instr]);
        }
    }
}

/// The address of a reload.
fn address(data: &InstrData) -> Option<u32> {
    match data.source(Role::Offset)?.operand {
        SrcOperand::Immediate(address) => Some(address),
        _ => None,
    }
}

/// The address of the first part and the parts, if these are reloads of adjacent slots that only this collect reads.
fn neighbours(
    collect: &InstrData,
    reloads: &FxHashMap<Value, (u32, usize)>,
    stores: &FxHashMap<u32, usize>,
    uses: &SecondaryMap<Value, u32>,
) -> Option<(u32, Vec<Value>)> {
    let size = if collect.dsts.first()?.class.half { 2 } else { 4 };
    let mut parts = Vec::with_capacity(collect.srcs.len());
    let mut first = 0;
    for (k, src) in collect.srcs.iter().enumerate() {
        let value = general_value(src).filter(|&value| uses[value] == 1)?;
        let &(address, at) = reloads.get(&value)?;
        if k == 0 {
            first = address;
        }
        let is_old = stores.get(&address).is_some_and(|&store| store > at);
        if address != first + k as u32 * size || is_old {
            return None;
        }
        parts.push(value);
    }
    (parts.len() > 1).then_some((first, parts))
}

fn make_reload(data: &mut InstrData, base: Src, address: u32) {
    let Some(dst) = data.dsts.first_mut() else { return };
    let components = dst.mask.span();
    dst.flags.set(OperandFlags::EARLY_CLOBBER, needs_base_to_the_end(components));
    let operands = [(Role::Index, base), (Role::Offset, Src::immediate(address, false))];
    let reload = build::memory(Opcode::ReloadMacro, elements(dst.class, components as u8), &operands);
    (data.opcode, data.attrs, data.srcs) = (reload.opcode, reload.attrs, reload.srcs);
}
