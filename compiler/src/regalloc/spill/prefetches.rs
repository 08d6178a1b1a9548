//! Samples that are issued before the program starts, in a program that has too few registers.
//!
//! Their results are there from the start, beside all inputs, and no instruction can move or store anything before them. Where values
//! have to be stored to memory that is too much: there they become samples at varyings that the program interpolates itself.

use super::scalars::define;
use crate::ir3::access::build::{self, TextureHandle};
use crate::ir3::{Attrs, InstrData, InstrFlags, Opcode, Place, Program, RegClass, Round, Src, Type, Value, WriteMask};

/// The immediates that `bary.f` holds.
const IMMEDIATES: u32 = 0x200;

/// Replaces each of them; returns true if there is one.
pub fn issue_late(program: &mut Program) -> bool {
    let entry = program.entry();
    let is_prefetch = |program: &Program, instr| program.instrs[instr].opcode == Opcode::TexPrefetch;
    if !program.blocks[entry].instrs.iter().any(|&instr| is_prefetch(program, instr)) {
        return false;
    }
    let list = std::mem::take(&mut program.blocks[entry].instrs);
    let mut out = Vec::with_capacity(list.len());
    for instr in list {
        if is_prefetch(program, instr) {
            let (attrs, flags) = (program.instrs[instr].attrs.clone(), program.instrs[instr].flags);
            let barycentric = program.instrs[instr].srcs[0];
            if let Attrs::Texture(attrs) = attrs {
                let coordinates = [0, 1].map(|component| {
                    let number = u32::from(attrs.input_offset.unwrap_or(0)) + component;
                    let number = if number < IMMEDIATES {
                        Src::immediate(number, false)
                    } else {
                        let mut data = InstrData::new(Opcode::Mov);
                        data.attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
                        data.srcs.push(Src::immediate(number, false));
                        scalar(program, &mut out, data)
                    };
                    let mut data = InstrData::new(Opcode::BaryF);
                    data.srcs.extend([number, Src::new(barycentric.operand, barycentric.class, barycentric.mask)]);
                    scalar(program, &mut out, data)
                });
                let mut data = InstrData::new(Opcode::Collect);
                data.srcs.extend(coordinates);
                let (collect, pair) = define(program, data, RegClass::FULL, 2);
                out.push(collect);
                let handle = TextureHandle::Fixed {
                    set: attrs.base.filter(|_| flags.contains(InstrFlags::BINDLESS)),
                    texture: attrs.texture.unwrap_or(0),
                    sampler: attrs.sampler.unwrap_or(0),
                };
                let ty = attrs.ty.unwrap_or(Type::F32);
                let pair = Src::reg(Place::Value(pair), RegClass::FULL, WriteMask::first(2));
                let sample = build::texture(Opcode::Sam, ty, handle, InstrFlags::empty(), Some(pair), None);
                let data = &mut program.instrs[instr];
                *data = InstrData { dsts: std::mem::take(&mut data.dsts), ..sample };
            }
        }
        out.push(instr);
    }
    program.blocks[entry].instrs = out;
    true
}

/// Appends an instruction with a scalar result.
fn scalar(program: &mut Program, out: &mut Vec<crate::ir3::Instr>, data: InstrData) -> Src {
    let (instr, value): (_, Value) = define(program, data, RegClass::FULL, 1);
    out.push(instr);
    Src::reg(Place::Value(value), RegClass::FULL, WriteMask::SCALAR)
}
