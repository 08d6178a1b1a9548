//! The constant file: nir's loads from it and, in a preamble, its stores to it.

use super::SelectError;
use super::context::{Context, words_per_component};
use crate::ir3::access::build::{self, MemoryElements};
use crate::ir3::opcode::Role;
use crate::ir3::{Attrs, Opcode, PhysReg, Place, RegClass, Round, Src, SrcOperand, Type, WriteMask};
use crate::nir::{Intrinsic, IntrinsicOp};
use crate::target::Generation;

/// Words of the constant file.
pub(super) const WORDS: u16 = 2048;

/// Translates one intrinsic of this module.
pub(super) fn emit(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    match intrinsic.op {
        IntrinsicOp::LoadConstIr3 => load(ctx, intrinsic),
        _ => store(ctx, intrinsic),
    }
}

fn load(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let (Some(def), &[offset]) = (intrinsic.def, &intrinsic.srcs[..]) else {
        return Err(ctx.unsupported("unexpected sources"));
    };
    let bits = ctx.bits(def);
    if !matches!(bits, 16 | 32 | 64) {
        return Err(ctx.unsupported(format!("a constant of {bits} bits")));
    }
    let words = i64::from(ctx.components(def)) * words_per_component(bits) as i64;
    let constant = ctx.constant(offset, 0);
    let mut base = i64::from(intrinsic.indices.base()) + constant.map_or(0, |offset| i64::from(offset as i32));
    if base < 0 || base + words > i64::from(WORDS) {
        return Err(ctx.unsupported("the word is outside of the constant file"));
    }
    // Words are available after the end of the preamble, which waits for them.
    let read = if constant.is_none() { base..WORDS.into() } else { base..base + words };
    if ctx.stored_consts.iter().flatten().any(|stored| stored.start < read.end && read.start < stored.end) {
        return Err(ctx.unsupported("it may read a word that the same preamble has stored before"));
    }
    let mut address = None;
    if constant.is_none() {
        let mut offset = ctx.scalar(offset, 0);
        // The relative form has an offset of up to 512 words.
        if base + words > 512 {
            let far = ctx.immediate(base as u32, false);
            offset = ctx.widened(offset);
            offset = ctx.bin(Opcode::AddU, offset, far);
            base = 0;
        }
        address = Some(ctx.address(offset));
    }
    for word in 0..words {
        let operand = match address {
            Some(_) => SrcOperand::ConstRelative((base + word) as i16),
            None => SrcOperand::Const((base + word) as u16),
        };
        let src = Src::new(operand, RegClass::FULL, WriteMask::SCALAR);
        let srcs: Vec<Src> = std::iter::once(src).chain(address).collect();
        let (class, ty) = if bits == 16 { (RegClass::HALF, Type::U16) } else { (RegClass::FULL, Type::U32) };
        let attrs = Attrs::Move { src: Type::U32, dst: ty, round: Round::Default };
        let value = ctx.builder().define(Opcode::Mov, class, 1, &srcs, attrs);
        ctx.define_word(def, word as usize, value);
    }
    Ok(())
}

fn store(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let value = intrinsic.srcs[0];
    if ctx.bits(value) != 32 {
        return Err(ctx.unsupported("a constant that has not 32 bits"));
    }
    if ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported(format!("{} has no stores to the constant file", ctx.target)));
    }
    let components = ctx.components(value);
    let Some(base) = u16::try_from(intrinsic.indices.base()).ok().filter(|&b| b <= WORDS - u16::from(components))
    else {
        return Err(ctx.unsupported("the word is outside of the constant file"));
    };
    if let Some(stored) = &mut ctx.stored_consts {
        stored.push(base.into()..i64::from(base) + i64::from(components));
    }
    let data = ctx.collect_def(value);
    let mut operands = vec![(Role::Offset, Src::immediate(u32::from(base & 0xff), false)), (Role::Data, data)];
    if base > 0xff {
        operands.push((Role::Address1, ctx.address_1(base & 0xff00)));
    }
    ctx.push(build::memory(Opcode::Stc, MemoryElements { ty: Type::U32, components }, &operands));
    Ok(())
}

impl Context<'_> {
    /// Sets `a1.x` to a constant, for one use directly after it.
    pub(super) fn address_1(&mut self, bits: u16) -> Src {
        let attrs = Attrs::Move { src: Type::U16, dst: Type::U16, round: Round::Default };
        let src = Src::immediate(u32::from(bits), true);
        let value = self.builder().define(Opcode::Mov, RegClass::ADDRESS, 1, &[src], attrs);
        let instr = self.program.values[value].instr;
        let place = Place::Assigned(value, PhysReg::A1_X);
        self.program.instrs[instr].dsts[0].place = place;
        Src::reg(place, RegClass::ADDRESS, WriteMask::SCALAR)
    }
}
