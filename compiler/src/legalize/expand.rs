//! Expands instructions that are encoded as two, and operands that only the encoding has.

use crate::ir3::access::build;
use crate::ir3::opcode::Role;
use crate::ir3::{
    Attrs, Dst, InstrData, InstrFlags, MemoryAttrs, Opcode, PhysReg, Place, Program, RegClass, Src, Type, WriteMask,
};
use crate::target::Target;

/// Fine derivatives become two instructions, between which nothing may wait: the second one reads what the first one
/// reads, even where that has been overwritten.
pub fn derivatives(program: &mut Program) {
    rewrite(program, |data| {
        let opcode = match data.opcode {
            Opcode::DsxppMacro => Opcode::Dsxpp1,
            Opcode::DsyppMacro => Opcode::Dsypp1,
            _ => return Vec::new(),
        };
        vec![InstrData { opcode, ..data.clone() }, InstrData { opcode, flags: InstrFlags::PAIR, ..data.clone() }]
    });
}

/// Lowers the load of push constants to a store to the constant file; on some GPUs to two equal ones.
pub fn push_constants(program: &mut Program, target: &Target) {
    rewrite(program, |data| {
        let Attrs::PushConsts { dst, src, size } = data.attrs else { return Vec::new() };
        let words = MemoryAttrs { ty: Some(Type::U32), components: u16::try_from(size).ok(), ..MemoryAttrs::default() };
        let operands = [(Role::Offset, Src::immediate(dst, false)), (Role::Data, Src::immediate(src, false))];
        let store = build::memory(Opcode::Stsc, words, &operands);
        if target.quirks.stsc_duplication {
            let wait = InstrData { flags: InstrFlags::SS, ..InstrData::new(Opcode::Nop) };
            return vec![store.clone(), wait, store];
        }
        vec![store]
    });
}

/// Prefetches of descriptors have `r63.x` as their destination.
pub fn no_results(program: &mut Program) {
    let Program { layout, blocks, instrs, .. } = program;
    for &instr in layout.iter().flat_map(|&block| &blocks[block].instrs) {
        let data = &mut instrs[instr];
        if data.dsts.is_empty() && matches!(data.opcode, Opcode::Sam | Opcode::Ldc | Opcode::Resinfo) {
            let mask = if data.opcode == Opcode::Sam { WriteMask::first(4) } else { WriteMask::SCALAR };
            data.dsts.push(Dst::new(Place::Reg(PhysReg::INVALID), RegClass::FULL, mask));
        }
    }
}

/// Replaces each instruction by those that `expansion` returns, if there are some. The first of these keeps its
/// identity.
fn rewrite(program: &mut Program, expansion: impl Fn(&InstrData) -> Vec<InstrData>) {
    program.rewrite_lists(|program, instr, out| {
        let mut new = expansion(&program.instrs[instr]).into_iter();
        if let Some(first) = new.next() {
            program.instrs[instr] = first;
        }
        out.push(instr);
        out.extend(new.map(|data| program.instrs.push(data)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::text;

    #[test]
    fn push_constants_are_stored_twice_on_some_gpus() {
        let source = "block1 {\n\t0001:0000:000: \tpush_consts_load.macro dst_offset=0, src_offset = 4, src_size = 8\n\
            \t0002:0000:000: \tend\n}\n";
        let opcodes = |gpu: &str| {
            let mut program = text::read(source).unwrap();
            push_constants(&mut program, &Target::by_name(gpu).unwrap());
            let instrs: Vec<InstrData> =
                program.iter_instrs().map(|(_, instr)| program.instrs[instr].clone()).collect();
            let stores: Vec<&InstrData> = instrs.iter().filter(|data| data.opcode == Opcode::Stsc).collect();
            assert!(stores.windows(2).all(|pair| pair[0].srcs == pair[1].srcs && pair[0].attrs == pair[1].attrs));
            let waits = |data: &InstrData| data.flags.contains(InstrFlags::SS);
            instrs.iter().map(|data| (data.opcode, waits(data))).collect::<Vec<_>>()
        };
        let (store, end) = ((Opcode::Stsc, false), (Opcode::End, false));
        assert_eq!(opcodes("a750"), [store, end]);
        assert_eq!(opcodes("a740"), [store, (Opcode::Nop, true), store, end]);
    }
}
