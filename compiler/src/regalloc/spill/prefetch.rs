//! Prefetches of programs that are spilled become textures like others.
//!
//! A prefetch reads the registers of an input, and writes its own, before the first instruction. So nothing can be
//! stored, reloaded or moved before it, and all results of prefetches are live from the start: a program that is short
//! of registers samples later instead.

use super::scalars::define;
use crate::ir3::{Attrs, Instr, InstrData, Opcode, Place, Program, RegClass, Src, SrcOperand, WriteMask};

/// Replaces the prefetches of a program by reads of varyings and textures at these. Returns true if there are any.
pub fn run(program: &mut Program) -> bool {
    let entry = program.entry();
    let is_prefetch = |&instr: &Instr| program.instrs[instr].opcode == Opcode::TexPrefetch;
    if !program.blocks[entry].instrs.iter().any(is_prefetch) {
        return false;
    }
    let list = std::mem::take(&mut program.blocks[entry].instrs);
    let mut out = Vec::with_capacity(list.len());
    for instr in list {
        if program.instrs[instr].opcode == Opcode::TexPrefetch {
            sample(program, instr, &mut out);
        }
        out.push(instr);
    }
    program.blocks[entry].instrs = out;
    true
}

/// Makes a prefetch a texture, after reads of its coordinates.
fn sample(program: &mut Program, instr: Instr, out: &mut Vec<Instr>) {
    let data = &program.instrs[instr];
    let (Attrs::Texture(attrs), Some(&barycentric)) = (&data.attrs, data.srcs.first()) else { return };
    // Prefetches from selection have no sampler of another descriptor set, which would be one more operand.
    let (Some(varying), None) = (attrs.input_offset, attrs.sampler_base) else { return };
    let value =
        |value, count| Src::new(SrcOperand::Place(Place::Value(value)), RegClass::FULL, WriteMask::first(count));
    let mut coordinates = InstrData::new(Opcode::Collect);
    for component in 0..2 {
        let mut data = InstrData::new(Opcode::BaryF);
        data.srcs.push(Src::immediate(u32::from(varying) + component, false));
        data.srcs.push(barycentric);
        let (read, coordinate) = define(program, data, RegClass::FULL, 1);
        coordinates.srcs.push(value(coordinate, 1));
        out.push(read);
    }
    let (collect, coordinates) = define(program, coordinates, RegClass::FULL, 2);
    out.push(collect);
    let data = &mut program.instrs[instr];
    data.opcode = Opcode::Sam;
    data.srcs.clear();
    data.srcs.push(value(coordinates, 2));
    if let Attrs::Texture(attrs) = &mut data.attrs {
        attrs.input_offset = None;
    }
}
