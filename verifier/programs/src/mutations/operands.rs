//! Mutations of operands.

use super::{MutationSite, data};
use ir3_compiler::ir3::opcode::Numeric;
use ir3_compiler::ir3::{
    Attrs, Condition, Instr, Mods, Opcode, OperandFlags, PhysReg, Place, Program, RegFile, Src, SrcOperand, WriteMask,
};

pub(super) fn operands_differ(a: &Src, b: &Src) -> bool {
    (a.operand, a.mods) != (b.operand, b.mods)
}

pub(super) fn swap_sources(program: &mut Program, site: &MutationSite) -> bool {
    use Opcode::*;
    let data = data(program, site);
    let (i, j) = match data.opcode {
        SubU | SubS | ShlB | ShrB | AshrB | GetbitB => (0, 1),
        CmpsF | CmpsS | CmpsU if !matches!(data.attrs, Attrs::Compare(Condition::Eq | Condition::Ne)) => (0, 1),
        SelB16 | SelB32 => (0, 2),
        MadF16 | MadF32 | MadU16 | MadS16 | MadU24 | MadS24 | MadshM16 => (1, 2),
        Shrm | Shlm | Shrg | Shlg => (0, 1),
        _ => return false,
    };
    let swap = data.srcs.len() > j && operands_differ(&data.srcs[i], &data.srcs[j]);
    if swap {
        data.srcs.swap(i, j);
    }
    swap
}

/// The places written before a site that have the class and size of `src`, the most recent first.
pub(super) fn others(program: &Program, site: &MutationSite, src: &Src, only_scalars: bool) -> Vec<Place> {
    let mut places = Vec::new();
    let before = program.layout.iter().take_while(|&&block| block != site.block);
    let mut instrs: Vec<Instr> = before.flat_map(|&block| &program.blocks[block].instrs).copied().collect();
    instrs.extend(&program.blocks[site.block].instrs[..site.index]);
    for &instr in instrs.iter().rev() {
        for dst in &program.instrs[instr].dsts {
            let scalar = dst.mask == WriteMask::SCALAR || !only_scalars;
            let direct = matches!(dst.place, Place::Value(_) | Place::Assigned(..) | Place::Reg(_));
            if dst.class == src.class && dst.mask == src.mask && scalar && direct && !places.contains(&dst.place) {
                places.push(dst.place);
            }
        }
    }
    places
}

pub(super) fn other_source(program: &mut Program, site: &MutationSite) -> bool {
    if program.instrs[site.instr].opcode == Opcode::Phi {
        return false;
    }
    let count = program.instrs[site.instr].srcs.len();
    for i in 0..count {
        let i = (i + site.random as usize) % count;
        let src = program.instrs[site.instr].srcs[i];
        let SrcOperand::Place(place) = src.operand else { continue };
        if src.flags.contains(OperandFlags::TIED) || matches!(place, Place::Array(_) | Place::Relative { .. }) {
            continue;
        }
        let mut others = others(program, site, &src, false);
        others.truncate(12);
        if let Some(other) = site.other(&others, place) {
            program.instrs[site.instr].srcs[i].operand = SrcOperand::Place(other);
            return true;
        }
    }
    false
}

pub(super) fn other_destination(program: &mut Program, site: &MutationSite) -> bool {
    let [dst] = program.instrs[site.instr].dsts[..] else { return false };
    let tied = program.instrs[site.instr].srcs.iter().any(|src| src.flags.contains(OperandFlags::TIED));
    if !matches!(dst.place, Place::Reg(_)) || tied {
        return false;
    }
    let like = Src::reg(dst.place, dst.class, dst.mask);
    let mut others = others(program, site, &like, false);
    others.truncate(12);
    match site.other(&others, dst.place) {
        Some(other) => {
            program.instrs[site.instr].dsts[0].place = other;
            true
        }
        None => false,
    }
}

pub(super) fn immediate(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let count = data.srcs.len();
    for i in 0..count {
        let src = &mut data.srcs[(i + site.random as usize) % count];
        if let SrcOperand::Immediate(bits) = src.operand {
            let bits = if site.coin() { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
            src.operand = SrcOperand::Immediate(if src.class.half { bits & 0xffff } else { bits });
            return true;
        }
    }
    false
}

pub(super) fn constant(program: &mut Program, site: &MutationSite) -> bool {
    for src in &mut data(program, site).srcs {
        if let SrcOperand::Const(word) = src.operand {
            src.operand = SrcOperand::Const(if site.coin() { word ^ 1 } else { word ^ 4 });
            return true;
        }
    }
    false
}

pub(super) fn modifier(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let mods = match data.opcode.info().numeric {
        Numeric::Float => [Mods::NEG, Mods::ABS][usize::from(site.coin())],
        Numeric::Int => Mods::NEG,
        Numeric::Bits => Mods::NOT,
        _ => return false,
    };
    let count = data.srcs.len();
    let i = (site.random >> 16) as usize % count.max(1);
    let Some(src) = data.srcs.get_mut(i) else { return false };
    if matches!(src.operand, SrcOperand::Immediate(_)) || src.class.file == RegFile::Address {
        return false;
    }
    src.mods ^= mods;
    true
}

pub(super) fn other_half(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let half = |file, half, place: &mut Place| match place {
        Place::Reg(reg) if file == RegFile::General && half => {
            *reg = PhysReg(reg.0 ^ 1);
            true
        }
        _ => false,
    };
    let tied = data.srcs.iter().any(|src| src.flags.contains(OperandFlags::TIED));
    if site.coin() && !tied && data.dsts.iter_mut().any(|dst| half(dst.class.file, dst.class.half, &mut dst.place)) {
        return true;
    }
    data.srcs.iter_mut().any(|src| match &mut src.operand {
        SrcOperand::Place(place) => half(src.class.file, src.class.half, place),
        _ => false,
    })
}

/// Removes a component of a destination or a source.
pub(super) fn write_mask(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let less = |mask: &mut WriteMask| {
        let wide = mask.0.count_ones() > 1;
        if wide {
            mask.0 &= !(1 << (mask.span() - 1));
        }
        wide
    };
    let mut masks = data.dsts.iter_mut().map(|dst| &mut dst.mask).chain(data.srcs.iter_mut().map(|src| &mut src.mask));
    masks.any(less)
}

/// Swaps an instruction with the next one, if one of them writes a register that the other accesses. In registers only.
pub(super) fn swap_instructions(program: &mut Program, site: &MutationSite) -> bool {
    let block = &program.blocks[site.block].instrs;
    let Some(&next) = block.get(site.index + 1) else { return false };
    let places = |instr: Instr| {
        let data = &program.instrs[instr];
        let written: Vec<Place> = data.dsts.iter().map(|dst| dst.place).collect();
        let read: Vec<Place> = data.srcs.iter().filter_map(|src| src.place().copied()).collect();
        (written, read)
    };
    let fixed = |instr: Instr| {
        let opcode = program.instrs[instr].opcode;
        opcode.is_terminator() || matches!(opcode, Opcode::Phi | Opcode::Input)
    };
    let ((writes, reads), (next_writes, next_reads)) = (places(site.instr), places(next));
    let in_registers = |places: &[Place]| places.iter().all(|place| matches!(place, Place::Reg(_)));
    let conflict = |a: &[Place], b: &[Place]| a.iter().any(|place| b.contains(place));
    let matters = conflict(&writes, &next_reads) || conflict(&reads, &next_writes) || conflict(&writes, &next_writes);
    if fixed(site.instr) || fixed(next) || !matters || !in_registers(&writes) || !in_registers(&next_writes) {
        return false;
    }
    program.blocks[site.block].instrs.swap(site.index, site.index + 1);
    true
}
