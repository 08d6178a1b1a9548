//! Shared registers: 64 half units, each with one value per wave.
//!
//! A shared value is live along the physical edges: while its lanes wait, others run, and may overwrite it. For the
//! same reason it cannot be moved on an edge, since the wave takes edges that none of its lanes takes. So a value has
//! one place for its whole live range:
//!
//! 1. `elements` numbers the components of shared values; a split is another name for a component;
//! 2. `liveness` computes where they are live, along physical edges;
//! 3. `assign` visits the blocks and gives each component the first gap, or chooses *victims*, the cheapest values that
//!    occupy the registers;
//! 4. `spill` moves the victims to general registers, one value per lane, and makes their users read these; a user that
//!    needs a shared register gets the value back for that one instruction. Then 2 to 4 are repeated.
//!
//! Each iteration leaves fewer values that may become victims, so this terminates. At last operands become registers,
//! and phis parallel copies. Nothing else of the program changes: general values are still in SSA form.

mod assign;
mod elements;
mod liveness;
mod spill;

use super::Error;
use super::parallel_copy::reg_of;
use crate::ir3::loops::{BackEdge, back_edges};
use crate::ir3::{
    Block, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile, SrcOperand, Value,
    WriteMask, reconvergence,
};
use crate::maps::map_of;
use crate::target::{RegisterFiles, Target};
use assign::SharedAssignment;
use cranelift_entity::SecondaryMap;
use elements::Elements;
use liveness::Liveness;

/// Returns true if a place is a shared value without a register.
fn is_value(place: &Place, class: RegClass) -> bool {
    class.file == RegFile::Shared && matches!(place, Place::Value(_))
}

/// Returns true if the program has shared values.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        let read = |src: &crate::ir3::Src| src.place().is_some_and(|place| is_value(place, src.class));
        data.dsts.iter().any(|dst| is_value(&dst.place, dst.class)) || data.srcs.iter().any(read)
    })
}

/// Assigns a register to every shared value, within `limits`. Critical edges have been split.
///
/// # Errors
/// If a shared value fits neither there nor where it could be moved.
pub fn run(program: &mut Program, target: &Target, limits: RegisterFiles) -> Result<(), Error> {
    reconvergence::run(program);
    check(program)?;
    let mut kept = SecondaryMap::new();
    spill::run(program, target, &mixed_phis(program), &mut kept);
    loop {
        let accesses = accesses(program);
        let elements = Elements::new(program, &accesses);
        let liveness = Liveness::new(program, &accesses, &elements);
        match assign::run(program, &accesses, &elements, &liveness, limits, &kept)? {
            SharedAssignment::Placed(units) => return apply(program, &elements, &units),
            SharedAssignment::Victims(victims) => spill::run(program, target, &victims, &mut kept),
        }
    }
}

/// The instructions with shared operands.
fn accesses(program: &Program) -> Vec<(Block, Instr)> {
    let is_shared = |class: RegClass| class.file == RegFile::Shared;
    let accesses = |&(_, instr): &(Block, Instr)| {
        let data = &program.instrs[instr];
        data.dsts.iter().any(|dst| is_shared(dst.class)) || data.srcs.iter().any(|src| is_shared(src.class))
    };
    program.iter_instrs().filter(accesses).collect()
}

/// Refuses constructs that this allocator does not support.
fn check(program: &Program) -> Result<(), Error> {
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        let bound = OperandFlags::TIED;
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::Shared) {
            if dst.flags.contains(bound) || matches!(dst.place, Place::Array(_) | Place::Assigned(..)) {
                return Err(Error::unsupported(program, instr, "a shared destination that is tied, or an array"));
            }
            if data.opcode == Opcode::Phi && dst.mask != WriteMask::SCALAR {
                return Err(Error::unsupported(program, instr, "a phi of a shared vector"));
            }
            if data.opcode == Opcode::Split && dst.mask != WriteMask::SCALAR {
                return Err(Error::unsupported(program, instr, "a split of several components"));
            }
        }
        for src in data.srcs.iter().filter(|src| src.class.file == RegFile::Shared) {
            if src.flags.contains(bound) || matches!(src.place(), Some(Place::Array(_) | Place::Assigned(..))) {
                return Err(Error::unsupported(program, instr, "a shared source that is tied, or an array"));
            }
        }
    }
    Ok(())
}

/// Shared phis that cannot stay: lanes reconverge that took different edges, so that their values may differ, or that
/// lanes which have waited would overwrite the copies at the ends of the predecessors; or a source is not shared.
fn mixed_phis(program: &Program) -> Vec<Value> {
    let mut list = Vec::new();
    for &block in &program.layout {
        let data = &program.blocks[block];
        for &phi in &data.instrs {
            let phi = &program.instrs[phi];
            if phi.opcode != Opcode::Phi {
                break;
            }
            if phi.dsts[0].class.file != RegFile::Shared {
                continue;
            }
            let general = |operand: &SrcOperand, class: RegClass| {
                matches!(operand, SrcOperand::Place(_)) && class.file != RegFile::Shared
            };
            let mixed = phi.srcs.iter().any(|src| general(&src.operand, src.class));
            let straight =
                data.predecessors.iter().all(|&pred| program.blocks[pred].physical_successors[..] == [block]);
            if data.reconvergence_point || mixed || !straight {
                list.extend(phi.dsts[0].value());
            }
        }
    }
    list
}

/// Replaces values by registers, and phis by parallel copies; splits are removed.
fn apply(program: &mut Program, elements: &Elements, units: &[Option<u8>]) -> Result<(), Error> {
    let register = |class: RegClass, value: Value| -> Result<PhysReg, Error> {
        let unit = elements.of(value).and_then(|(first, _)| units[first as usize]);
        let unit = unit.ok_or_else(|| Error::Malformed { what: format!("{value} is read and has no register") })?;
        Ok(reg_of(class, u16::from(unit)))
    };
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let list = std::mem::take(&mut program.blocks[block].instrs);
        let mut out = Vec::with_capacity(list.len());
        let mut phis = Vec::new();
        for instr in list {
            let data = &mut program.instrs[instr];
            for dst in data.dsts.iter_mut().filter(|dst| is_value(&dst.place, dst.class)) {
                let Place::Value(value) = dst.place else { continue };
                dst.place = match elements.of(value) {
                    // An unused phi.
                    Some((first, _)) if units[first as usize].is_none() => Place::Reg(PhysReg::INVALID),
                    _ => Place::Reg(register(dst.class, value)?),
                };
            }
            for src in data.srcs.iter_mut().filter(|src| src.class.file == RegFile::Shared) {
                if let SrcOperand::Place(Place::Value(value)) = src.operand {
                    src.operand = SrcOperand::Place(Place::Reg(register(src.class, value)?));
                }
            }
            match data.opcode {
                Opcode::Phi if data.dsts[0].class.file == RegFile::Shared => phis.push(instr),
                Opcode::Split if data.dsts[0].class.file == RegFile::Shared => {}
                _ => out.push(instr),
            }
        }
        program.blocks[block].instrs = out;
        copy_phis(program, block, &phis);
    }
    Ok(())
}

/// The copies for phis, at the ends of the predecessors.
fn copy_phis(program: &mut Program, block: Block, phis: &[Instr]) {
    if phis.is_empty() {
        return;
    }
    for k in 0..program.blocks[block].predecessors.len() {
        let mut copy = InstrData::new(Opcode::ParallelCopy);
        for &phi in phis {
            let phi = &program.instrs[phi];
            let (dst, src) = (phi.dsts[0], phi.srcs[k]);
            let nothing = matches!(src.operand, SrcOperand::Undef) || dst.place == Place::Reg(PhysReg::INVALID);
            if !nothing && src.operand != SrcOperand::Place(dst.place) {
                copy.dsts.push(Dst::new(dst.place, dst.class, dst.mask));
                copy.srcs.push(src);
            }
        }
        if !copy.dsts.is_empty() {
            let pred = program.blocks[block].predecessors[k];
            let copy = program.instrs.push(copy);
            program.insert_before_terminators(pred, copy);
        }
    }
}

/// The number of back edges of the layout that lead around each block.
fn loop_depths(program: &Program) -> SecondaryMap<Block, u32> {
    let mut change = vec![0i32; program.layout.len() + 1];
    for BackEdge { header, latch } in back_edges(program) {
        change[header] += 1;
        change[latch + 1] -= 1;
    }
    let mut depths = map_of(program.blocks.len());
    let mut depth = 0;
    for (&block, change) in program.layout.iter().zip(change) {
        depth += change;
        depths[block] = depth as u32;
    }
    depths
}
