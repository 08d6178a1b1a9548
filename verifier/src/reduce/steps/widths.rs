//! 64-bit values become 32-bit ones.
//!
//! Only that: 32 bits are the plainest width of this machine, and a program is no easier to read with halves in it.
//! As with vectors, a class of values changes together: those that an operation wants to be as wide as each other.

use ir3_compiler::nir::{Alu, AluSrc, Components, Def, DestBits, Function, Instr, InstrData, Op};
use smallvec::SmallVec;

use super::{Step, Steps, boxed};
use crate::reduce::edit::{Edit, View};

/// What makes a 32-bit value out of the operands of an operation whose result always has 64 bits.
fn narrowed_result(op: Op, source_bits: u8) -> Option<Op> {
    Some(match op {
        Op::U2u64 | Op::I2i64 | Op::F2f64 if source_bits == 32 => Op::Mov,
        Op::U2u64 => Op::U2u32,
        Op::I2i64 => Op::I2i32,
        Op::B2i64 => Op::B2i32,
        Op::F2i64 => Op::F2i32,
        Op::F2u64 => Op::F2u32,
        Op::F2f64 => Op::F2f32,
        Op::I2f64 => Op::I2f32,
        Op::U2f64 => Op::U2f32,
        Op::B2f64 => Op::B2f32,
        Op::Pack64_2x32Split | Op::Pack64_2x32 => Op::Mov,
        Op::Imul2x32_64 | Op::Umul2x32_64 => Op::Imul,
        _ => return None,
    })
}

/// What takes the place of an operation whose operand always has 64 bits.
fn narrowed_operand(op: Op) -> Option<Op> {
    Some(match op {
        Op::Unpack64_2x32SplitX | Op::Unpack64_2x32SplitY => Op::Mov,
        Op::Unpack64_2x32 => Op::Vec2,
        _ => return None,
    })
}

/// The values that must be as wide as `seed`, if all of them can be narrowed.
fn class(edit: &Edit, seed: Def) -> Option<Vec<Def>> {
    let function = edit.function();
    let mut class = vec![seed];
    let mut at = 0;
    while let Some(&def) = class.get(at) {
        at += 1;
        let mut more = SmallVec::<[Def; 8]>::new();
        match &function.instrs[edit.definer(def)?] {
            InstrData::Const { .. } | InstrData::Undef { .. } => {}
            InstrData::Phi { srcs, .. } => more.extend(srcs.iter().map(|&(_, src)| src)),
            InstrData::Alu(alu) if alu.op.info().output.ty.size == 0 => more.extend(unsized_sources(alu)),
            InstrData::Alu(alu) => {
                narrowed_result(alu.op, function.defs[alu.srcs[0].def].bit_size)?;
            }
            InstrData::Intrinsic(intrinsic) => match intrinsic.op.info().dest_bits {
                DestBits::Source(source) => more.push(intrinsic.srcs[usize::from(source)]),
                DestBits::Any => {}
                DestBits::OneOf(widths) if widths.contains(&32) => {}
                DestBits::OneOf(_) => return None,
            },
            InstrData::Tex(_) | InstrData::Jump(_) => return None,
        }
        for (_, user) in function.instrs_in_order() {
            match &function.instrs[user] {
                InstrData::Phi { def: phi, srcs } if srcs.iter().any(|&(_, src)| src == def) => more.push(*phi),
                InstrData::Alu(alu) if alu.srcs.iter().any(|src| src.def == def) => {
                    let info = alu.op.info();
                    let sized =
                        |(src, input): (&AluSrc, &ir3_compiler::nir::Operand)| src.def == def && input.ty.size != 0;
                    if alu.srcs.iter().zip(info.inputs).any(sized) {
                        narrowed_operand(alu.op)?;
                        continue;
                    }
                    more.extend(unsized_sources(alu));
                    if info.output.ty.size == 0 {
                        more.push(alu.def);
                    }
                }
                InstrData::Intrinsic(intrinsic) if intrinsic.srcs.contains(&def) => {
                    let info = intrinsic.op.info();
                    let whole = |(&src, &kind): (&Def, &Components)| src == def && kind != Components::Vector;
                    if intrinsic.srcs.iter().zip(info.srcs).any(whole) {
                        return None;
                    }
                    if let DestBits::Source(source) = info.dest_bits
                        && intrinsic.srcs[usize::from(source)] == def
                    {
                        more.extend(intrinsic.def);
                    }
                }
                InstrData::Tex(tex) if tex.srcs.iter().any(|&(_, src)| src == def) => return None,
                _ => {}
            }
        }
        for def in more {
            if !class.contains(&def) {
                class.push(def);
            }
        }
    }
    Some(class)
}

fn unsized_sources(alu: &Alu) -> impl Iterator<Item = Def> {
    alu.srcs.iter().zip(alu.op.info().inputs).filter(|(_, input)| input.ty.size == 0).map(|(src, _)| src.def)
}

/// A 64-bit value and all that must be as wide become 32-bit values.
struct Narrow(Def);

impl Step for Narrow {
    fn apply(&self, edit: &mut Edit) -> bool {
        if edit.shape(self.0).bits != 64 {
            return false;
        }
        let Some(class) = class(edit, self.0) else { return false };
        if class.iter().any(|&def| edit.shape(def).bits != 64) {
            return false;
        }
        let instrs: Vec<Instr> = edit.function().instrs_in_order().map(|(_, instr)| instr).collect();
        let function = edit.function_mut();
        for instr in instrs {
            narrow(function, instr, &class);
        }
        for def in class {
            function.defs[def].bit_size = 32;
        }
        true
    }
}

/// Changes an instruction that defines or reads values of the class.
fn narrow(function: &mut Function, instr: Instr, class: &[Def]) {
    match &mut function.instrs[instr] {
        InstrData::Const { def, values } if class.contains(def) => {
            values.iter_mut().for_each(|value| *value &= u64::from(u32::MAX));
        }
        InstrData::Alu(alu) => {
            let info = alu.op.info();
            if class.contains(&alu.def) && info.output.ty.size != 0 {
                let bits = function.defs[alu.srcs[0].def].bit_size;
                // A source in the class is about to become narrower itself.
                let bits = if class.contains(&alu.srcs[0].def) { 32 } else { bits };
                if let Some(op) = narrowed_result(alu.op, bits) {
                    alu.op = op;
                    alu.srcs.truncate(op.info().inputs.len());
                    fit(&mut alu.srcs, function.defs[alu.def].num_components);
                }
            }
            let sized = alu.op.info().inputs.iter().any(|input| input.ty.size == 64);
            if sized
                && alu.srcs.iter().any(|src| class.contains(&src.def))
                && let Some(op) = narrowed_operand(alu.op)
            {
                alu.op = op;
                let src = alu.srcs[0];
                alu.srcs = match op {
                    Op::Vec2 => SmallVec::from_elem(AluSrc::swizzled(src.def, &src.swizzle[..1]), 2),
                    _ => SmallVec::from_elem(src, 1),
                };
            }
        }
        _ => {}
    }
}

/// Clears what the operation does not read any more.
fn fit(srcs: &mut [AluSrc], components: u8) {
    for src in srcs {
        src.swizzle[usize::from(components)..].fill(0);
    }
}

/// Each 64-bit value.
pub(super) fn narrow_list(view: &View<'_>) -> Steps {
    boxed(view.defs().filter(|&(_, def)| view.shape(def).bits == 64).map(|(_, def)| Narrow(def)))
}
