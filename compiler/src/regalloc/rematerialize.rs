//! Rematerialisation: definitions that can be executed again, elsewhere and later.
//!
//! A definition that depends only on values in SSA form computes the same wherever these are available. Its other
//! sources may have changed by then; such sources are copied to general registers before the definition.

use crate::ir3::{
    Attrs, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, Round, Src, SrcOperand, Type, ValueData,
    opcode::Numeric,
};

/// Copies constants that are written later into registers, if a rematerialisable definition in `file` reads them. Users
/// of the definition are dominated by it, so definitions after the last write in the code are safe.
pub(super) fn keep_old_constants(program: &mut Program, file: RegFile) {
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
            if to_come == 0 || !data.dsts.iter().any(|dst| dst.class.file == file) {
                continue;
            }
            for k in 0..program.instrs[instr].srcs.len() {
                let src = program.instrs[instr].srcs[k];
                let SrcOperand::Const(_) = src.operand else { continue };
                let mov = keep(program, instr, k);
                program.blocks[block].instrs.insert(at - 1, mov);
                at += 1;
            }
        }
    }
}

/// Inserts a move of source `k` of an instruction to a general register, which the instruction then reads. A half word
/// of the constant file is converted as by the instruction.
pub(super) fn keep(program: &mut Program, instr: Instr, k: usize) -> Instr {
    let data = &program.instrs[instr];
    let src = data.srcs[k];
    let class = RegClass::general(src.class.half);
    let mut read = Src::new(src.operand, src.class, src.mask);
    let (from, to) = match (src.operand, class.half, data.opcode.info().numeric) {
        (SrcOperand::Const(_), true, Numeric::Float) => (Type::F32, Type::F16),
        (SrcOperand::Const(_), true, _) => (Type::U32, Type::U16),
        (_, true, _) => (Type::U16, Type::U16),
        (_, false, _) => (Type::U32, Type::U32),
    };
    read.class.half = from.is_half();
    let mut mov = InstrData::new(Opcode::Mov);
    mov.attrs = Attrs::Move { src: from, dst: to, round: Round::Default };
    mov.srcs.push(read);
    let mov = program.instrs.push(mov);
    let components = src.mask.span() as u16;
    let value = program.values.push(ValueData { instr: mov, dst: 0, class, components, array: None });
    program.instrs[mov].dsts.push(Dst::new(Place::Value(value), class, src.mask));
    let src = &mut program.instrs[instr].srcs[k];
    (src.operand, src.class) = (SrcOperand::Place(Place::Value(value)), class);
    mov
}
