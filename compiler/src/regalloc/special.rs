//! Predicates and address registers, of which there are few.
//!
//! A predicate costs one comparison, an address one move. So where more values are alive than there are registers,
//! the value is not kept but computed again in front of its next use: no value of these files lives across the end of
//! a block, and within a block the one that gives way is the one whose next use is furthest.
//!
//! What is computed again reads its sources later than the program did, so this pass goes before liveness is known.
//! A constant may be another one by then, where the program itself writes to the constant file behind it; such a
//! definition reads a register with the old contents instead.
//! Definitions that nobody in their block reads any more are dropped in the end.

use super::Error;
use crate::ir3::{
    Attrs, Block, Category, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile,
    Round, Src, SrcOperand, Type, Value, ValueData,
};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// `p0.x` to `p0.w`, `a0.x`, `a1.x`.
const SLOTS: usize = 6;
const A0: usize = 4;
const A1: usize = 5;

/// Whether there is a predicate or address operand.
pub fn is_needed(program: &Program) -> bool {
    program.layout.iter().any(|&block| has_special_operands(program, block))
}

/// Gives each predicate and address operand its register.
pub fn run(program: &mut Program, target: &Target) -> Result<(), Error> {
    let mut pass = Pass {
        predicates: target.num_predicates.min(4) as usize,
        occupants: [None; SLOTS],
        uses: SecondaryMap::new(),
        out: Vec::new(),
    };
    keep_old_constants(program);
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        if has_special_operands(program, block) {
            pass.run_block(program, block)?;
        }
    }
    // Only now: what is computed again is found by the values in its definition.
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        if has_special_operands(program, block) {
            drop_unread(program, block);
        }
    }
    Ok(())
}

fn is_special(file: RegFile) -> bool {
    matches!(file, RegFile::Predicate | RegFile::Address)
}

fn has_special_operands(program: &Program, block: Block) -> bool {
    program.blocks[block].instrs.iter().any(|&instr| {
        let data = &program.instrs[instr];
        data.dsts.iter().any(|dst| is_special(dst.class.file)) || data.srcs.iter().any(|src| is_special(src.class.file))
    })
}

const fn register(slot: usize) -> PhysReg {
    match slot {
        A0 => PhysReg::A0_X,
        A1 => PhysReg::A1_X,
        _ => PhysReg(PhysReg::P0_X.0 + slot as u16),
    }
}

/// Whether computing it again, anywhere that its sources are known, gives the same value.
fn is_recomputable(data: &InstrData) -> bool {
    let pure = match data.opcode.category() {
        Category::Alu2 | Category::Alu3 => data.opcode != Opcode::BaryF,
        Category::Move => matches!(data.opcode, Opcode::Mov | Opcode::Movp),
        _ => false,
    };
    let is_ssa = |operand: &SrcOperand| match operand {
        SrcOperand::Place(place) => matches!(place, Place::Value(_) | Place::Assigned(..)),
        SrcOperand::ConstRelative(_) => false,
        _ => true,
    };
    pure && data.dsts.len() == 1 && data.srcs.iter().all(|src| is_ssa(&src.operand))
}

/// Puts constants that are written later into registers, where a definition that may be computed again reads them.
/// Whoever reads the definition is dominated by it, so what stands behind the last write in the code is safe.
fn keep_old_constants(program: &mut Program) {
    let writers = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode.writes_consts());
    let mut to_come = writers.count();
    for position in 0..program.layout.len() {
        if to_come == 0 {
            return;
        }
        let block = program.layout[position];
        let mut at = 0;
        while let Some(&instr) = program.blocks[block].instrs.get(at) {
            at += 1;
            let data = &program.instrs[instr];
            to_come -= usize::from(data.opcode.writes_consts());
            if to_come == 0 || !data.dsts.iter().any(|dst| is_special(dst.class.file)) {
                continue;
            }
            for k in 0..program.instrs[instr].srcs.len() {
                let src = program.instrs[instr].srcs[k];
                let SrcOperand::Const(_) = src.operand else { continue };
                let class = RegClass::general(src.class.half);
                let ty = if class.half { Type::U16 } else { Type::U32 };
                let mut mov = InstrData::new(Opcode::Mov);
                mov.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
                mov.srcs.push(Src::new(src.operand, src.class, src.mask));
                let mov = program.instrs.push(mov);
                let components = src.mask.span() as u16;
                let value = program.values.push(ValueData { instr: mov, dst: 0, class, components, array: None });
                program.instrs[mov].dsts.push(Dst::new(Place::Value(value), class, src.mask));
                let src = &mut program.instrs[instr].srcs[k];
                (src.operand, src.class) = (SrcOperand::Place(Place::Value(value)), class);
                program.blocks[block].instrs.insert(at - 1, mov);
                at += 1;
            }
        }
    }
}

struct Pass {
    predicates: usize,
    /// Whose value each register holds.
    occupants: [Option<Value>; SLOTS],
    /// Positions in the block at which each value is still to be read, the next one last.
    uses: SecondaryMap<Value, SmallVec<[u32; 4]>>,
    out: Vec<Instr>,
}

impl Pass {
    fn run_block(&mut self, program: &mut Program, block: Block) -> Result<(), Error> {
        self.occupants = [None; SLOTS];
        let mut list = std::mem::take(&mut program.blocks[block].instrs);
        for (position, &instr) in list.iter().enumerate().rev() {
            for src in program.instrs[instr].srcs.iter().filter(|src| is_special(src.class.file)) {
                if let Some(value) = src.value() {
                    self.uses[value].push(position as u32);
                }
            }
        }
        self.out.clear();
        self.out.reserve(list.len() + 8);
        for &instr in &list {
            let data = &program.instrs[instr];
            if !data.srcs.iter().any(|src| is_special(src.class.file)) {
                if !data.dsts.iter().any(|dst| is_special(dst.class.file)) {
                    self.out.push(instr);
                    continue;
                }
                // Read in other blocks only, if at all: these compute it for themselves.
                let unread = |value: Option<Value>| value.is_some_and(|value| self.uses[value].is_empty());
                if data.dsts.len() == 1 && unread(data.dsts[0].value()) && is_recomputable(data) {
                    continue;
                }
            }
            self.read(program, instr, [false; SLOTS])?;
            for k in 0..program.instrs[instr].srcs.len() {
                let src = program.instrs[instr].srcs[k];
                if let (true, Some(value)) = (is_special(src.class.file), src.value()) {
                    self.uses[value].pop();
                }
            }
            let mut locked = [false; SLOTS];
            for k in 0..program.instrs[instr].dsts.len() {
                if is_special(program.instrs[instr].dsts[k].class.file) {
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

    /// Makes sure that the special sources of `instr` are in registers.
    fn read(&mut self, program: &mut Program, instr: Instr, mut locked: [bool; SLOTS]) -> Result<(), Error> {
        for k in 0..program.instrs[instr].srcs.len() {
            let src = program.instrs[instr].srcs[k];
            if !is_special(src.class.file) {
                continue;
            }
            let Some(value) = src.value() else { continue };
            if program.instrs[instr].opcode.is_meta() {
                return Err(Error::unsupported(program, instr, "a predicate or address"));
            }
            let slot = match self.occupants.iter().position(|&occupant| occupant == Some(value)) {
                Some(slot) => slot,
                None => self.recompute(program, instr, value, locked)?,
            };
            locked[slot] = true;
            program.instrs[instr].srcs[k].operand = SrcOperand::Place(Place::Assigned(value, register(slot)));
        }
        Ok(())
    }

    /// Puts a copy of the instruction that defines `value` in front of its user; returns the register.
    fn recompute(
        &mut self,
        program: &mut Program,
        user: Instr,
        value: Value,
        locked: [bool; SLOTS],
    ) -> Result<usize, Error> {
        let data = program.instrs[program.values[value].instr].clone();
        if !is_recomputable(&data) {
            return Err(Error::unsupported(program, user, "a predicate or address that cannot be computed again"));
        }
        let clone = program.instrs.push(data);
        self.read(program, clone, locked)?;
        let slot = self.write(program, clone, 0, &locked)?;
        self.occupants[slot] = Some(value);
        self.out.push(clone);
        Ok(slot)
    }

    /// Chooses the register of destination `k` of `instr`.
    fn write(&mut self, program: &mut Program, instr: Instr, k: usize, locked: &[bool; SLOTS]) -> Result<usize, Error> {
        let data = &program.instrs[instr];
        let dst = &data.dsts[k];
        let candidates = match dst.class.file {
            RegFile::Predicate => 0..self.predicates,
            _ if is_second_address(data, k) => A1..A1 + 1,
            _ => A0..A0 + 1,
        };
        let urgency = |slot: usize| {
            let next = self.occupants[slot].and_then(|value| {
                let next = *self.uses[value].last()?;
                Some((!is_recomputable(&program.instrs[program.values[value].instr]), std::cmp::Reverse(next)))
            });
            (next.is_some(), next)
        };
        let Some(slot) = candidates.filter(|&slot| !locked[slot]).min_by_key(|&slot| urgency(slot)) else {
            let file = if dst.class.file == RegFile::Predicate { "predicate" } else { "address" };
            let available = if dst.class.file == RegFile::Predicate { self.predicates as u32 } else { 1 };
            return Err(Error::NeedsSpilling { needed: available + 1, available, file });
        };
        if let Some(value) = dst.value() {
            self.occupants[slot] = Some(value);
            program.instrs[instr].dsts[k].place = Place::Assigned(value, register(slot));
        }
        Ok(slot)
    }
}

/// Whether an address destination is `a1.x`: it was said so, or it is of the type that `a1.x` is moved with.
fn is_second_address(data: &InstrData, k: usize) -> bool {
    match data.dsts[k].place {
        Place::Assigned(_, reg) | Place::Reg(reg) => reg == PhysReg::A1_X,
        _ => matches!(data.attrs, Attrs::Move { dst: Type::U16, .. }),
    }
}

/// Removes definitions whose register is not read before it is written again or the block ends, turns places into
/// registers, and marks last reads.
fn drop_unread(program: &mut Program, block: Block) {
    let mut live = [false; SLOTS];
    let slot_of = |place: Option<&Place>| {
        let reg = place?.reg()?;
        (0..SLOTS).find(|&slot| register(slot) == reg)
    };
    let mut list = std::mem::take(&mut program.blocks[block].instrs);
    for i in (0..list.len()).rev() {
        let data = &mut program.instrs[list[i]];
        let mut needed = data.dsts.len() != 1 || !is_recomputable(data);
        for dst in data.dsts.iter_mut() {
            match slot_of(Some(&dst.place)).filter(|_| is_special(dst.class.file)) {
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
        for src in data.srcs.iter_mut().filter(|src| is_special(src.class.file)) {
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
