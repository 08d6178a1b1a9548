//! Address registers: `a0.x` for relative operands, and `a1.x`.
//!
//! An address costs one move. So when another address takes its register, the value is not kept but rematerialised
//! before its next use: no address is live across the end of a block.
//!
//! A rematerialised instruction reads its sources later than the program did, so this pass runs before liveness; see
//! [`rematerialize`](super::rematerialize). Definitions without uses in their block are removed at the end.

use super::Error;
use super::rematerialize::keep_old_constants;
use crate::ir3::{
    Attrs, Block, Instr, InstrData, OperandFlags, PhysReg, Place, Program, RegFile, SrcOperand, Type, Value,
};
use cranelift_entity::SecondaryMap;

/// `a0.x` and `a1.x`.
const SLOTS: usize = 2;
const A0: usize = 0;
const A1: usize = 1;

/// Returns true if there is an address operand.
pub fn is_needed(program: &Program) -> bool {
    program.layout.iter().any(|&block| has_addresses(program, block))
}

/// Assigns a register to each address operand.
///
/// # Errors
/// If an address is in another form than the allocator supports or cannot be rematerialised, or an instruction needs
/// two in one register.
pub fn run(program: &mut Program) -> Result<(), Error> {
    let mut pass = AddressAllocator { occupants: [None; SLOTS], uses: SecondaryMap::new(), out: Vec::new() };
    keep_old_constants(program, RegFile::Address);
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        if has_addresses(program, block) {
            pass.run_block(program, block)?;
        }
    }
    // Removed last: rematerialisation finds the sources by the values in the definition.
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        if has_addresses(program, block) {
            drop_unread(program, block);
        }
    }
    Ok(())
}

fn is_address(file: RegFile) -> bool {
    file == RegFile::Address
}

fn has_addresses(program: &Program, block: Block) -> bool {
    program.blocks[block].instrs.iter().any(|&instr| {
        let data = &program.instrs[instr];
        data.dsts.iter().any(|dst| is_address(dst.class.file)) || data.srcs.iter().any(|src| is_address(src.class.file))
    })
}

const fn register(slot: usize) -> PhysReg {
    if slot == A0 { PhysReg::A0_X } else { PhysReg::A1_X }
}

struct AddressAllocator {
    /// The value in each register.
    occupants: [Option<Value>; SLOTS],
    /// The number of uses of each value that remain in the block.
    uses: SecondaryMap<Value, u32>,
    out: Vec<Instr>,
}

impl AddressAllocator {
    fn run_block(&mut self, program: &mut Program, block: Block) -> Result<(), Error> {
        self.occupants = [None; SLOTS];
        let mut list = std::mem::take(&mut program.blocks[block].instrs);
        for &instr in &list {
            for src in program.instrs[instr].srcs.iter().filter(|src| is_address(src.class.file)) {
                if let Some(value) = src.value() {
                    self.uses[value] += 1;
                }
            }
        }
        self.out.clear();
        self.out.reserve(list.len() + 8);
        for &instr in &list {
            let data = &program.instrs[instr];
            if !data.srcs.iter().any(|src| is_address(src.class.file)) {
                if !data.dsts.iter().any(|dst| is_address(dst.class.file)) {
                    self.out.push(instr);
                    continue;
                }
                // Read in other blocks only, if at all; those rematerialise it.
                let unread = |value: Option<Value>| value.is_some_and(|value| self.uses[value] == 0);
                if data.dsts.len() == 1 && unread(data.dsts[0].value()) && data.is_rematerializable() {
                    continue;
                }
            }
            self.read(program, instr, [false; SLOTS])?;
            for k in 0..program.instrs[instr].srcs.len() {
                let src = program.instrs[instr].srcs[k];
                if let (true, Some(value)) = (is_address(src.class.file), src.value()) {
                    self.uses[value] -= 1;
                }
            }
            let mut locked = [false; SLOTS];
            for k in 0..program.instrs[instr].dsts.len() {
                if is_address(program.instrs[instr].dsts[k].class.file) {
                    let slot = self.write(program, instr, k, &locked)?;
                    locked[slot] = true;
                }
            }
            self.out.push(instr);
        }
        list.clone_from(&self.out);
        program.blocks[block].instrs = list;
        Ok(())
    }

    /// Ensures that the addresses among the sources of `instr` are in registers.
    fn read(&mut self, program: &mut Program, instr: Instr, mut locked: [bool; SLOTS]) -> Result<(), Error> {
        for k in 0..program.instrs[instr].srcs.len() {
            let src = program.instrs[instr].srcs[k];
            if !is_address(src.class.file) {
                continue;
            }
            let Some(value) = src.value() else { continue };
            if program.instrs[instr].opcode.is_meta() {
                return Err(Error::unsupported(program, instr, "an address"));
            }
            let slot = match self.occupants.iter().position(|&occupant| occupant == Some(value)) {
                Some(slot) => slot,
                None => self.rematerialize(program, instr, value, locked)?,
            };
            locked[slot] = true;
            program.instrs[instr].srcs[k].operand = SrcOperand::Place(Place::Assigned(value, register(slot)));
        }
        Ok(())
    }

    /// Inserts a copy of the instruction that defines `value` before its user; returns the register.
    fn rematerialize(
        &mut self,
        program: &mut Program,
        user: Instr,
        value: Value,
        locked: [bool; SLOTS],
    ) -> Result<usize, Error> {
        let data = program.instrs[program.values[value].instr].clone();
        if !data.is_rematerializable() {
            return Err(Error::unsupported(program, user, "an address that cannot be rematerialised"));
        }
        let clone = program.instrs.push(data);
        self.read(program, clone, locked)?;
        let slot = self.write(program, clone, 0, &locked)?;
        self.occupants[slot] = Some(value);
        self.out.push(clone);
        Ok(slot)
    }

    /// Assigns a register to destination `k` of `instr`.
    fn write(&mut self, program: &mut Program, instr: Instr, k: usize, locked: &[bool; SLOTS]) -> Result<usize, Error> {
        let data = &program.instrs[instr];
        let dst = &data.dsts[k];
        let slot = if is_second_address(data, k) { A1 } else { A0 };
        if locked[slot] {
            return Err(Error::NeedsSpilling { needed: 2, available: 1, file: "address" });
        }
        if let Some(value) = dst.value() {
            self.occupants[slot] = Some(value);
            program.instrs[instr].dsts[k].place = Place::Assigned(value, register(slot));
        }
        Ok(slot)
    }
}

/// Returns true if an address destination is `a1.x`: it is assigned to it, or has the type with which `a1.x` is
/// written.
fn is_second_address(data: &InstrData, k: usize) -> bool {
    match data.dsts[k].place {
        Place::Assigned(_, reg) | Place::Reg(reg) => reg == PhysReg::A1_X,
        _ => matches!(data.attrs, Attrs::Move { dst: Type::U16, .. }),
    }
}

/// Removes definitions whose register is not read before it is written again or the block ends, replaces places by
/// registers, and marks last reads.
pub(super) fn drop_unread(program: &mut Program, block: Block) {
    let mut live = [false; SLOTS];
    let slot_of = |place: Option<&Place>| {
        let reg = place?.reg()?;
        (0..SLOTS).find(|&slot| register(slot) == reg)
    };
    let mut list = std::mem::take(&mut program.blocks[block].instrs);
    for i in (0..list.len()).rev() {
        let data = &mut program.instrs[list[i]];
        let mut needed = data.dsts.len() != 1 || !data.is_rematerializable();
        for dst in data.dsts.iter_mut() {
            match slot_of(Some(&dst.place)).filter(|_| is_address(dst.class.file)) {
                Some(slot) => {
                    needed |= std::mem::replace(&mut live[slot], false);
                    dst.place = Place::Reg(register(slot));
                }
                None => needed = true,
            }
        }
        if !needed {
            list.remove(i);
            continue;
        }
        let after = live;
        for src in data.srcs.iter_mut().filter(|src| is_address(src.class.file)) {
            if let Some(slot) = slot_of(src.place()) {
                src.operand = SrcOperand::Place(Place::Reg(register(slot)));
                src.flags.set(OperandFlags::KILL, !after[slot]);
                src.flags.set(OperandFlags::FIRST_KILL, !live[slot]);
                live[slot] = true;
            }
        }
    }
    program.blocks[block].instrs = list;
}
