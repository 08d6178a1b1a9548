//! Local arrays: nir's indexed registers.
//!
//! An array has the same registers at all points where it is live, so an access names the array and no version of it.
//! The elements of an array of vectors are consecutive, component by component.

use super::SelectError;
use super::context::{Context, words_per_component};
use crate::ir3::{
    Array, ArrayAccess, ArrayData, Attrs, Dst, InstrData, InstrFlags, MAX_ARRAYS, Mods, Opcode, Place, RegClass, Round,
    Src, SrcOperand, Type, WriteMask,
};
use crate::nir::{Def, InstrData as NirInstr, Intrinsic, IntrinsicOp};

/// Translates one intrinsic of this module.
pub(super) fn emit(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    match (intrinsic.op, &intrinsic.srcs[..]) {
        (IntrinsicOp::DeclReg, _) => declare(ctx, intrinsic),
        (IntrinsicOp::LoadReg, &[array]) => load(ctx, intrinsic, array, None),
        (IntrinsicOp::LoadRegIndirect, &[array, index]) => load(ctx, intrinsic, array, Some(index)),
        (IntrinsicOp::StoreReg, &[value, array]) => store(ctx, intrinsic, value, array, None),
        (IntrinsicOp::StoreRegIndirect, &[value, array, index]) => store(ctx, intrinsic, value, array, Some(index)),
        _ => Err(ctx.unsupported("unexpected sources")),
    }
}

fn declare(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let indices = &intrinsic.indices;
    let words = u32::from(indices.num_components()) * words_per_component(indices.bit_size()) as u32;
    let length = words.checked_mul(indices.num_array_elems().max(1)).and_then(|n| u16::try_from(n).ok());
    let Some(length) = length.filter(|&n| n <= i16::MAX as u16) else {
        return Err(ctx.unsupported("the array is too long"));
    };
    let class = ctx.class(indices.bit_size());
    if ctx.program.arrays.len() >= MAX_ARRAYS {
        return Err(ctx.unsupported("too many arrays"));
    }
    let id = ctx.program.arrays.len() as u32 + 1;
    let array = ctx.program.arrays.push(ArrayData { id, class, length, base: None });
    if let Some(def) = intrinsic.def {
        ctx.arrays.insert(def, array);
    }
    Ok(())
}

/// An array access: the array, its first word, and the number of words of an element.
struct ElementAccess {
    array: Array,
    class: RegClass,
    first: u32,
    /// The index that is added through `a0.x`.
    address: Option<Def>,
    words: u32,
}

impl ElementAccess {
    fn new(ctx: &mut Context<'_>, intrinsic: &Intrinsic, array: Def, index: Option<Def>) -> Result<Self, SelectError> {
        let (Some(&found), NirInstr::Intrinsic(declaration)) = (ctx.arrays.get(&array), ctx.producer(array)) else {
            return Err(ctx.unsupported("the register is not declared before"));
        };
        let indices = &declaration.indices;
        let words = u32::from(indices.num_components()) * words_per_component(indices.bit_size()) as u32;
        let base = u32::try_from(intrinsic.indices.base()).map_err(|_| ctx.unsupported("the base is negative"))?;
        let (element, address) = match index {
            Some(index) => match ctx.constant(index, 0) {
                Some(constant) => (base.wrapping_add(constant as u32), None),
                None => (base, Some(index)),
            },
            None => (base, None),
        };
        let data = &ctx.program.arrays[found];
        let (class, length) = (data.class, u32::from(data.length));
        let first = element.checked_mul(words).filter(|&first| first + words <= length);
        let Some(first) = first else {
            return Err(ctx.unsupported("the element is outside of the array"));
        };
        Ok(ElementAccess { array: found, class, first, address, words })
    }

    fn address(&self, ctx: &mut Context<'_>) -> Option<Src> {
        let index = self.address?;
        let mut src = ctx.scalar(index, 0);
        if self.words.is_power_of_two() {
            if self.words > 1 {
                let count = Src::immediate(self.words.trailing_zeros(), src.class.half);
                src = ctx.bin(Opcode::ShlB, src, count);
            }
        } else {
            src = ctx.bin(Opcode::MulU24, src, Src::immediate(self.words, src.class.half));
        }
        Some(ctx.address(src))
    }

    fn place(&self, word: u32) -> Place {
        Place::Array(ArrayAccess {
            array: self.array,
            offset: (self.first + word) as i16,
            relative: self.address.is_some(),
            value: None.into(),
            base: None.into(),
        })
    }

    fn attrs(&self) -> Attrs {
        let ty = if self.class.half { Type::U16 } else { Type::U32 };
        Attrs::Move { src: ty, dst: ty, round: Round::Default }
    }
}

fn load(ctx: &mut Context<'_>, intrinsic: &Intrinsic, array: Def, index: Option<Def>) -> Result<(), SelectError> {
    let access = ElementAccess::new(ctx, intrinsic, array, index)?;
    let Some(def) = intrinsic.def else { return Ok(()) };
    let address = access.address(ctx);
    for word in 0..access.words {
        let src = Src::new(SrcOperand::Place(access.place(word)), access.class, WriteMask::SCALAR);
        let srcs: Vec<Src> = std::iter::once(src).chain(address).collect();
        let mut value = ctx.builder().define(Opcode::Mov, access.class, 1, &srcs, access.attrs());
        let mut mods = Mods::empty();
        mods.set(Mods::ABS, intrinsic.indices.legacy_fabs());
        mods.set(Mods::NEG, intrinsic.indices.legacy_fneg());
        if !mods.is_empty() {
            let src = ctx.src(value).with_mods(mods);
            value = ctx.alu(Opcode::AbsnegF, access.class, &[src]);
        }
        let value = ctx.in_width(def, value);
        ctx.define_word(def, word as usize, value);
    }
    Ok(())
}

fn store(
    ctx: &mut Context<'_>,
    intrinsic: &Intrinsic,
    value: Def,
    array: Def,
    index: Option<Def>,
) -> Result<(), SelectError> {
    let access = ElementAccess::new(ctx, intrinsic, array, index)?;
    let mask = intrinsic.indices.write_mask();
    let per_component = words_per_component(ctx.bits(value)) as u32;
    let mut srcs = ctx.vector(value);
    if intrinsic.indices.legacy_fsat() {
        for src in &mut srcs {
            let result = ctx.alu(Opcode::MaxF, access.class, &[*src, *src]);
            let instr = ctx.program.values[result].instr;
            ctx.program.instrs[instr].flags |= InstrFlags::SAT;
            *src = ctx.src(result);
        }
    }
    let address = access.address(ctx);
    for (word, &src) in (0..access.words).zip(&srcs) {
        if mask >> (word / per_component) & 1 == 0 {
            continue;
        }
        let mut data = InstrData::new(Opcode::Mov);
        data.dsts.push(Dst::new(access.place(word), access.class, WriteMask::SCALAR));
        data.srcs.push(src);
        data.srcs.extend(address);
        data.attrs = access.attrs();
        let instr = ctx.push(data);
        let block = ctx.block;
        ctx.program.blocks[block].keeps.push(instr);
    }
    Ok(())
}
