//! Packing and unpacking across components, and building and splitting 64-bit values: most of these only rename
//! registers.

use crate::ir3::{Opcode, Round, Src, Type};
use crate::nir::{Alu, Op};
use crate::select::SelectError;
use crate::select::context::Context;

use Opcode::*;

/// Translates the operation; returns false if it is not one of these.
pub(super) fn emit(ctx: &mut Context<'_>, alu: &Alu) -> Result<bool, SelectError> {
    let word = |ctx: &Context<'_>, src: usize, component: usize, part: usize| {
        let src = &alu.srcs[src];
        let words = if ctx.bits(src.def) == 64 { 2 } else { 1 };
        ctx.word(src.def, usize::from(src.swizzle[component]) * words + part)
    };
    let components = usize::from(ctx.components(alu.def));
    match alu.op {
        Op::Pack64_2x32Split => {
            for component in 0..components {
                for part in 0..2 {
                    let found = word(ctx, part, component, 0);
                    ctx.set_word(alu.def, 2 * component + part, found);
                }
            }
        }
        Op::Pack64_2x32 => {
            for part in 0..2 {
                let found = word(ctx, 0, part, 0);
                ctx.set_word(alu.def, part, found);
            }
        }
        Op::Unpack64_2x32 => {
            for part in 0..2 {
                let found = word(ctx, 0, 0, part);
                ctx.set_word(alu.def, part, found);
            }
        }
        Op::Unpack64_2x32SplitX | Op::Unpack64_2x32SplitY => {
            let part = usize::from(alu.op == Op::Unpack64_2x32SplitY);
            for component in 0..components {
                let found = word(ctx, 0, component, part);
                ctx.set_word(alu.def, component, found);
            }
        }
        Op::Pack64_4x16 => {
            for part in 0..2 {
                let low = source(ctx, alu, 0, 2 * part);
                let high = source(ctx, alu, 0, 2 * part + 1);
                let packed = ctx.pack_halves(low, high);
                define(ctx, alu, part, packed);
            }
        }
        Op::Unpack64_4x16 => {
            let pair = ctx.pair(alu.srcs[0].def, alu.srcs[0].swizzle[0]);
            for component in 0..4 {
                let part = halfword(ctx, pair[component / 2], component % 2);
                define(ctx, alu, component, part);
            }
        }
        Op::Pack32_2x16 => {
            let (low, high) = (source(ctx, alu, 0, 0), source(ctx, alu, 0, 1));
            let packed = ctx.pack_halves(low, high);
            define(ctx, alu, 0, packed);
        }
        Op::Unpack32_2x16 => {
            let x = source(ctx, alu, 0, 0);
            for component in 0..2 {
                let part = halfword(ctx, x, component);
                define(ctx, alu, component, part);
            }
        }
        Op::Pack32_4x8 => {
            let bytes = [0, 1, 2, 3].map(|component| source(ctx, alu, 0, component));
            let packed = ctx.pack_bytes(bytes);
            define(ctx, alu, 0, packed);
        }
        Op::Unpack32_4x8 => {
            let x = source(ctx, alu, 0, 0);
            for component in 0..4 {
                let part = halfword(ctx, x, component / 2);
                let byte = if component % 2 == 0 {
                    ctx.bin(AndB, part, Src::immediate(0xff, true))
                } else {
                    ctx.bin(ShrB, part, Src::immediate(8, true))
                };
                define(ctx, alu, component, byte);
            }
        }
        Op::PackHalf2x16 | Op::PackHalf2x16Split | Op::PackHalf2x16RtzSplit => {
            let whole = alu.op == Op::PackHalf2x16;
            let (low, high) = (source(ctx, alu, 0, 0), source(ctx, alu, usize::from(!whole), usize::from(whole)));
            let [low, high] = [low, high].map(|x| {
                let round = if alu.op == Op::PackHalf2x16RtzSplit { Round::Default } else { Round::Even };
                ctx.convert_rounded(Type::F32, Type::F16, round, x)
            });
            let packed = ctx.pack_halves(low, high);
            define(ctx, alu, 0, packed);
        }
        Op::UnpackHalf2x16 => {
            let x = source(ctx, alu, 0, 0);
            for component in 0..2 {
                let part = halfword(ctx, x, component);
                let float = ctx.convert_src(Type::F16, Type::F32, part);
                define(ctx, alu, component, float);
            }
        }
        Op::PackUvec2ToUint | Op::PackUint2x16 | Op::PackSint2x16 => {
            return Err(ctx.unsupported("ir3 does not have it; it is lowered before"));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// One component of a source of at most 32 bits.
fn source(ctx: &mut Context<'_>, alu: &Alu, src: usize, component: usize) -> Src {
    let src = &alu.srcs[src];
    ctx.scalar(src.def, src.swizzle[component])
}

/// The low or the high half of a full register, in a half one.
fn halfword(ctx: &mut Context<'_>, x: Src, index: usize) -> Src {
    let x = if index == 0 { x } else { ctx.bin(ShrB, x, Src::immediate(16, false)) };
    ctx.convert_src(Type::U32, Type::U16, x)
}

/// Defines one register of the result.
fn define(ctx: &mut Context<'_>, alu: &Alu, index: usize, src: Src) {
    if let Some(value) = src.value() {
        ctx.set_word(alu.def, index, super::Word::Value(value));
    }
}
