//! Bugs of register allocation and of the lowering of copies.

use ir3_compiler::ir3::{
    Attrs, Block, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, Round, Src,
};

use super::liveness::{RegisterLiveness, UnitSet, units_of, units_of_dst, units_of_src};

/// Returns true for a move of one register to another without conversion or modifiers.
fn is_copy(data: &InstrData) -> bool {
    let plain = matches!(data.attrs, Attrs::Move { src, dst, round: Round::Default } if src == dst);
    let registers = match (&data.dsts[..], &data.srcs[..]) {
        ([dst], [src]) => src.mods.is_empty() && src.place().is_some_and(|src| *src != dst.place),
        _ => false,
    };
    data.opcode == Opcode::Mov && plain && registers
}

/// Drops the last copy of each block.
pub(super) fn dropped_copy(program: &mut Program) {
    for block in program.layout.clone() {
        let instrs = &program.blocks[block].instrs;
        if let Some(at) = instrs.iter().rposition(|&instr| is_copy(&program.instrs[instr])) {
            let data = &mut program.blocks[block];
            let lost = data.instrs.remove(at);
            data.keeps.retain(|&instr| instr != lost);
        }
    }
}

/// Lowers swaps to two moves, one after the other.
pub(super) fn copy_cycle(program: &mut Program) {
    for block in program.layout.clone() {
        let mut instrs = Vec::new();
        for instr in program.blocks[block].instrs.clone() {
            let data = program.instrs[instr].clone();
            if data.opcode != Opcode::Swz {
                instrs.push(instr);
                continue;
            }
            for (&dst, &src) in data.dsts.iter().zip(&data.srcs) {
                let mut copy = InstrData::new(Opcode::Mov);
                copy.dsts.push(dst);
                copy.srcs.push(src);
                copy.attrs = data.attrs.clone();
                instrs.push(program.instrs.push(copy));
            }
        }
        program.blocks[block].instrs = instrs;
    }
}

/// At the first opportunity, assigns a value to a full register that holds another value since an earlier block and
/// that is read later.
pub(super) fn live_range(program: &mut Program) {
    let liveness = RegisterLiveness::new(program);
    for &block in &program.layout {
        let mut held = liveness.live_in(block).clone();
        for (at, &instr) in program.blocks[block].instrs.iter().enumerate() {
            let live = liveness.live_after(program, block, at);
            if let Some(value) = Assigned::at(program, block, at, RegClass::FULL) {
                let registers = (0..192).map(PhysReg);
                let taken = registers.map(|reg| (reg, units_of(RegClass::FULL, reg, 1))).find(|(_, units)| {
                    units.clone().all(|unit| held.contains(unit) && live.contains(unit))
                        && !units_of_dst(&program.instrs[instr].dsts[0]).any(|unit| units.contains(&unit))
                });
                if let (Some((reg, _)), Some(readers)) = (taken, value.readers(program, &liveness)) {
                    return value.put(program, reg, &readers);
                }
            }
            program.instrs[instr].dsts.iter().flat_map(units_of_dst).for_each(|unit| held.remove(unit));
        }
    }
}

/// At the first opportunity, assigns a value to a register of an array that was written at an index and is read later.
pub(super) fn shared_array(program: &mut Program) {
    let liveness = RegisterLiveness::new(program);
    let arrays: Vec<PhysReg> = (program.arrays.values())
        .filter(|array| array.class == RegClass::FULL)
        .flat_map(|array| array.base.into_iter().flat_map(|base| (0..array.length).map(move |k| base.offset(k))))
        .collect();
    let mut written = UnitSet::default();
    for &block in &program.layout {
        for (at, &instr) in program.blocks[block].instrs.iter().enumerate() {
            let live = liveness.live_after(program, block, at);
            if let Some(value) = Assigned::at(program, block, at, RegClass::FULL) {
                let taken = arrays.iter().copied().find(|&reg| {
                    let mut units = units_of(RegClass::FULL, reg, 1);
                    reg != value.reg && units.all(|unit| written.contains(unit) && live.contains(unit))
                });
                if let (Some(reg), Some(readers)) = (taken, value.readers(program, &liveness)) {
                    return value.put(program, reg, &readers);
                }
            }
            let relative = |dst: &&Dst| matches!(dst.place, Place::Relative { .. });
            program.instrs[instr]
                .dsts
                .iter()
                .filter(relative)
                .flat_map(units_of_dst)
                .for_each(|unit| written.insert(unit));
        }
    }
}

/// At the first opportunity, assigns a half value to one half of a full register that is read later.
pub(super) fn half_overlap(program: &mut Program) {
    let liveness = RegisterLiveness::new(program);
    // The units of registers that hold full values. A write of either half ends that.
    for &block in &program.layout {
        let mut full = UnitSet::default();
        for (at, &instr) in program.blocks[block].instrs.iter().enumerate() {
            let live = liveness.live_after(program, block, at);
            if let Some(value) = Assigned::at(program, block, at, RegClass::HALF) {
                // Half registers alias the first half of the file.
                let taken = (0..96).map(PhysReg).find(|&reg| {
                    units_of(RegClass::FULL, reg, 1).all(|unit| full.contains(unit) && live.contains(unit))
                });
                if let (Some(reg), Some(readers)) = (taken, value.readers(program, &liveness)) {
                    return value.put(program, PhysReg(reg.0 * 2), &readers);
                }
            }
            for dst in &program.instrs[instr].dsts {
                let wide = !dst.class.half;
                units_of_dst(dst).for_each(|unit| if wide { full.insert(unit) } else { full.remove(unit) });
            }
        }
    }
}

/// The scalar result of an instruction in a register.
struct Assigned {
    block: Block,
    at: usize,
    instr: Instr,
    reg: PhysReg,
    class: RegClass,
}

impl Assigned {
    /// The result of an instruction, if it is of the given class and its register can be changed.
    fn at(program: &Program, block: Block, at: usize, class: RegClass) -> Option<Self> {
        let instr = program.blocks[block].instrs[at];
        let data = &program.instrs[instr];
        let [Dst { place: Place::Reg(reg), class: found, mask, flags }] = data.dsts[..] else { return None };
        let free = !data.opcode.is_meta() && data.repeat == 0 && !flags.contains(OperandFlags::TIED);
        (free && found == class && mask.span() == 1).then_some(Self { block, at, instr, reg, class })
    }

    /// The sources that read it, up to the next write of its register in the block. `None` if it is read as part of a
    /// larger value, or in another block.
    fn readers(&self, program: &Program, liveness: &RegisterLiveness) -> Option<Vec<(Instr, usize)>> {
        let mine = units_of(self.class, self.reg, 1);
        let mut readers = Vec::new();
        let block = &program.blocks[self.block];
        for (at, &instr) in block.instrs.iter().enumerate().skip(self.at + 1) {
            let data = &program.instrs[instr];
            for (index, src) in data.srcs.iter().enumerate() {
                if !units_of_src(src).any(|unit| mine.contains(&unit)) {
                    continue;
                }
                let exact = matches!(src, Src { operand, class, mask, flags, .. }
                    if *operand == ir3_compiler::ir3::SrcOperand::Place(Place::Reg(self.reg))
                        && *class == self.class && mask.span() == 1 && !flags.contains(OperandFlags::TIED));
                if !exact || data.repeat != 0 {
                    return None;
                }
                readers.push((instr, index));
            }
            if data.dsts.iter().flat_map(units_of_dst).any(|unit| mine.contains(&unit)) {
                let live = liveness.live_after(program, self.block, at);
                let rest = mine.clone().filter(|unit| !data.dsts.iter().flat_map(units_of_dst).any(|u| u == *unit));
                return rest.into_iter().all(|unit| !live.contains(unit)).then_some(readers);
            }
        }
        let out = liveness.live_out(self.block);
        mine.into_iter().all(|unit| !out.contains(unit)).then_some(readers)
    }

    /// Assigns another register.
    fn put(&self, program: &mut Program, reg: PhysReg, readers: &[(Instr, usize)]) {
        program.instrs[self.instr].dsts[0].place = Place::Reg(reg);
        for &(instr, index) in readers {
            program.instrs[instr].srcs[index].operand = ir3_compiler::ir3::SrcOperand::Place(Place::Reg(reg));
        }
    }
}
