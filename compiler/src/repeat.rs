//! Repetition: adjacent instructions that differ by consecutive registers become one with `(rptN)`.
//!
//! The machine executes the repetitions one after the other, each in its own slot, and counts the registers of the
//! destination up; of the sources those that are marked with `(r)`. So a group of up to four instructions is one word
//! if their destinations are consecutive registers, and each source either is consecutive too or the same in all of
//! them. None may read a result of an earlier one of the group: nothing waits between repetitions.

use crate::arms::{Arm, Counter};
use crate::ir3::register_set::RegisterSet;
use crate::ir3::{
    Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegFile, Src, SrcOperand, WriteMask,
};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;

/// The maximum number of instructions in a group.
const MOST: u8 = 4;

/// Merges the instructions of a program with registers.
pub fn run(program: &mut Program, target: &Target, counter: &Counter) {
    let mut is_there: SecondaryMap<Instr, bool> = map_of(program.instrs.len());
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let list = std::mem::take(&mut program.blocks[block].instrs);
        let mut out: Vec<Instr> = Vec::with_capacity(list.len());
        for instr in list {
            let merged = out
                .last()
                .and_then(|&last| merge(program, target, &program.instrs[last], &program.instrs[instr], counter));
            if let Some(merged) = merged
                && let Some(&last) = out.last()
            {
                program.instrs[last] = merged;
            } else {
                out.push(instr);
            }
        }
        if !program.blocks[block].keeps.is_empty() {
            out.iter().for_each(|&instr| is_there[instr] = true);
            program.blocks[block].keeps.retain(|&keep| is_there[keep]);
            out.iter().for_each(|&instr| is_there[instr] = false);
        }
        program.blocks[block].instrs = out;
    }
}

/// The group with one more instruction, if `next` is its continuation.
fn merge(
    program: &Program,
    target: &Target,
    group: &InstrData,
    next: &InstrData,
    counter: &Counter,
) -> Option<InstrData> {
    let opcode = group.opcode;
    let can_repeat = opcode.can_repeat() && opcode != Opcode::Nop && (opcode != Opcode::BaryF || target.has_rpt_bary_f);
    let count = group.repeat + 1;
    let is_same = opcode == next.opcode && group.flags == next.flags && group.attrs == next.attrs;
    if !can_repeat || !is_same || count == MOST || next.repeat > 0 || group.nop + next.nop > 0 {
        return None;
    }
    let ([dst], [next_dst]) = (&group.dsts[..], &next.dsts[..]) else { return None };
    let (Place::Reg(first), Place::Reg(reg)) = (dst.place, next_dst.place) else { return None };
    let is_general = dst.class == next_dst.class && dst.class.file == RegFile::General;
    let is_next = reg == first.offset(count.into()) && first != PhysReg::INVALID;
    if !is_general || !is_next || next_dst.mask != WriteMask::SCALAR || group.srcs.len() != next.srcs.len() {
        return None;
    }
    let written = RegisterSet::of_dst(program, target, dst);
    let mut merged = group.clone();
    for (src, next_src) in merged.srcs.iter_mut().zip(&next.srcs) {
        if RegisterSet::of_src(program, target, next_src).meets(&written) {
            counter.count(Arm::RepeatReads);
            return None;
        }
        let Some(next) = continued(opcode, src, next_src, count) else {
            counter.count(Arm::RepeatSource);
            return None;
        };
        *src = next;
    }
    if !counter.may(Arm::Repeated) {
        return None;
    }
    merged.repeat = count;
    merged.dsts[0].mask = WriteMask::first(u32::from(count) + 1);
    Some(merged)
}

/// The source of a group of `count` instructions, if the next one has `next` there.
fn continued(opcode: Opcode, src: &Src, next: &Src, count: u8) -> Option<Src> {
    let marks = OperandFlags::KILL | OperandFlags::FIRST_KILL;
    let is_alike = src.class == next.class
        && src.mods == next.mods
        && src.class.file != RegFile::Address
        && src.flags - marks - OperandFlags::R == next.flags - marks;
    let same = src.operand == next.operand;
    let advances = src.flags.contains(OperandFlags::R);
    let counts_up = match (src.operand, next.operand) {
        (SrcOperand::Place(Place::Reg(first)), SrcOperand::Place(Place::Reg(reg))) => reg == first.offset(count.into()),
        (SrcOperand::Const(first), SrcOperand::Const(word)) => word == first + u16::from(count),
        (SrcOperand::Immediate(first), SrcOperand::Immediate(number)) => {
            matches!(opcode, Opcode::BaryF | Opcode::FlatB) && number == first.wrapping_add(count.into())
        }
        _ => false,
    };
    let is_place = |operand: SrcOperand| match operand {
        SrcOperand::Place(place) => matches!(place, Place::Reg(_)),
        SrcOperand::ConstRelative(_) | SrcOperand::Undef => false,
        _ => true,
    };
    if !is_alike || !is_place(src.operand) {
        return None;
    }
    let is_scalar = next.mask == WriteMask::SCALAR && src.mask == WriteMask::first(count.into());
    if counts_up && (advances || count == 1) && is_scalar {
        let mask = WriteMask::first(u32::from(count) + 1);
        return Some(Src { mask, flags: src.flags | OperandFlags::R, ..*src });
    }
    (same && !advances && src.mask == next.mask).then_some(*src)
}
