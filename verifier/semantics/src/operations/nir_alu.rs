//! The ALU operations of nir.

use ir3_compiler::nir::{FloatControls, Op};

use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::convert;
use crate::arithmetic::convert::NumberKind;
use crate::arithmetic::domain::{Domain, Format, Function, Rounding};
use crate::arithmetic::float;
use crate::arithmetic::integer;
use crate::arithmetic::rows::{LANES, Row};
use crate::operations::Words;
use crate::operations::kernels;
use crate::operations::kernels::{
    binary, conversion, counts, float_horizontal, float_to_byte, floats, from_bool, horizontal, ints, select, shifts,
    ternary, unary,
};
use crate::operations::nir_compare;
use crate::operations::values::{Kernel, LaneTest, One, Rows, Select, Three, Two};
use crate::terms::{Term, Terms};

/// The kernel of an operation; `None` if the operation does not have these widths.
///
/// `dst_bits` and `src_bits` are the widths of the result and of each source. Where all are at most 32 and the
/// operation is per component, the kernel is one of the fixed shapes, to be run once per component; else it is
/// [`Kernel::Rows`] (one run for all components if the operation is horizontal, one per component otherwise). A choice
/// between 64-bit values is a [`Kernel::Select`] too, to be run on both rows. `mov` and the `vec`s have none: they move
/// rows. The header of the shader has the rounding modes of conversions.
pub fn kernel(op: Op, dst_bits: u8, src_bits: &[u8], controls: FloatControls) -> Option<Kernel> {
    let info = op.info();
    if src_bits.len() != info.inputs.len() {
        return None;
    }
    let fits = |declared: u8, bits: u8| declared == 0 || declared == bits;
    if !fits(info.output.ty.size, dst_bits) || !info.inputs.iter().zip(src_bits).all(|(i, &b)| fits(i.ty.size, b)) {
        return None;
    }
    if let Some(first) = info.width_source() {
        let width = src_bits[first];
        let same = info.inputs.iter().zip(src_bits).all(|(i, &b)| i.ty.size != 0 || b == width);
        if !same || info.output.ty.size == 0 && dst_bits != width {
            return None;
        }
    }
    // The width of operands that have no fixed width.
    let w = info.width_source().map_or(dst_bits, |first| src_bits[first]);
    nir_compare::kernel(op, w)
        .or_else(|| conversions(op, w, controls))
        .or_else(|| packing(op, w))
        .or_else(|| bits(op, w))
        .or_else(|| integers(op, w))
        .or_else(|| products(op, w))
        .or_else(|| float_arithmetic(op, w, controls))
        .or_else(|| selections(op, w))
}

/// Returns true if the operation on a source of this width is a conversion that can round, and its rounding mode is
/// open.
pub fn leaves_rounding_open(op: Op, src_bits: u8, controls: FloatControls) -> bool {
    use Op::*;
    let to = match op {
        I2f16 | U2f16 | F2f16 => Format::F16,
        I2f32 | U2f32 | F2f32 => Format::F32,
        I2f64 | U2f64 => Format::F64,
        _ => return false,
    };
    let digits = if matches!(op, F2f16 | F2f32) { to.width() } else { to.fraction() + 1 };
    u32::from(src_bits) > digits && !controls.rounds_to_even(to.width() as u8)
}

fn conversions(op: Op, w: u8, controls: FloatControls) -> Option<Kernel> {
    use NumberKind::{Float, Signed, Unsigned};
    /// A conversion whose rounding mode the header gives, or, if it is open there, the machine.
    macro_rules! to_float {
        ($from:ident, $to:tt) => {
            if controls.rounds_to_even($to) {
                conversion!($from, w, Float, $to, Some(Rounding::Even))
            } else {
                conversion!($from, w, Float, $to, Some(Rounding::MACHINE))
            }
        };
    }
    Some(match op {
        Op::I2f16 => to_float!(Signed, 16),
        Op::I2f32 => to_float!(Signed, 32),
        Op::I2f64 => to_float!(Signed, 64),
        Op::I2i1 => conversion!(Signed, w, Signed, 1, None),
        Op::I2i8 => conversion!(Signed, w, Signed, 8, None),
        Op::I2i16 => conversion!(Signed, w, Signed, 16, None),
        Op::I2i32 => conversion!(Signed, w, Signed, 32, None),
        Op::I2i64 => conversion!(Signed, w, Signed, 64, None),
        Op::U2f16 => to_float!(Unsigned, 16),
        Op::U2f32 => to_float!(Unsigned, 32),
        Op::U2f64 => to_float!(Unsigned, 64),
        Op::U2u1 => conversion!(Unsigned, w, Unsigned, 1, None),
        Op::U2u8 => conversion!(Unsigned, w, Unsigned, 8, None),
        Op::U2u16 => conversion!(Unsigned, w, Unsigned, 16, None),
        Op::U2u32 => conversion!(Unsigned, w, Unsigned, 32, None),
        Op::U2u64 => conversion!(Unsigned, w, Unsigned, 64, None),
        _ if Format::of_width(w.into()).is_none() => return bool_conversions(op, w),
        Op::F2i1 => conversion!(Float, w, Signed, 1, None),
        Op::F2i8 => float_to_byte!(w, Signed),
        Op::F2i16 => conversion!(Float, w, Signed, 16, None),
        Op::F2i32 => conversion!(Float, w, Signed, 32, None),
        Op::F2i64 => conversion!(Float, w, Signed, 64, None),
        Op::F2u1 => conversion!(Float, w, Unsigned, 1, None),
        Op::F2u8 => float_to_byte!(w, Unsigned),
        Op::F2u16 => conversion!(Float, w, Unsigned, 16, None),
        Op::F2u32 => conversion!(Float, w, Unsigned, 32, None),
        Op::F2u64 => conversion!(Float, w, Unsigned, 64, None),
        Op::F2f16 => to_float!(Float, 16),
        Op::F2f16Rtne => conversion!(Float, w, Float, 16, Some(Rounding::Even)),
        Op::F2f16Rtz => conversion!(Float, w, Float, 16, Some(Rounding::Zero)),
        Op::F2f32 => to_float!(Float, 32),
        Op::F2f64 => conversion!(Float, w, Float, 64, None),
        _ => return bool_conversions(op, w),
    })
}

fn bool_conversions(op: Op, w: u8) -> Option<Kernel> {
    Some(match op {
        Op::B2f16 => from_bool!(w, 16 | d, bit | float::from_bool(d, Format::F16, bit)),
        Op::B2f32 => from_bool!(w, 32 | d, bit | float::from_bool(d, Format::F32, bit)),
        Op::B2f64 => from_bool!(w, 64 | d, bit | float::from_bool(d, Format::F64, bit)),
        Op::B2i1 => from_bool!(w, 1 | d, bit | d.zext(1, 1, bit)),
        Op::B2i8 => from_bool!(w, 8 | d, bit | d.zext(1, 8, bit)),
        Op::B2i16 => from_bool!(w, 16 | d, bit | d.zext(1, 16, bit)),
        Op::B2i32 => from_bool!(w, 32 | d, bit | d.zext(1, 32, bit)),
        Op::B2i64 => from_bool!(w, 64 | d, bit | d.zext(1, 64, bit)),
        Op::B2b1 => from_bool!(w, 1 | d, bit | d.sext(1, 1, bit)),
        Op::B2b8 => from_bool!(w, 8 | d, bit | d.sext(1, 8, bit)),
        Op::B2b16 => from_bool!(w, 16 | d, bit | d.sext(1, 16, bit)),
        Op::B2b32 => from_bool!(w, 32 | d, bit | d.sext(1, 32, bit)),
        _ => return None,
    })
}

fn packing(op: Op, w: u8) -> Option<Kernel> {
    const F32: Format = Format::F32;
    Some(match op {
        Op::PackSnorm2x16 if w == 32 => {
            horizontal!(32 1 x 32 2 |d, s| [{ let p = s.map(|x| convert::snorm(d, F32, 16, x)); convert::pack(d, 16, p) }])
        }
        Op::PackUnorm2x16 if w == 32 => {
            horizontal!(32 1 x 32 2 |d, s| [{ let p = s.map(|x| convert::unorm(d, F32, 16, x)); convert::pack(d, 16, p) }])
        }
        Op::PackSnorm2x16 if w == 16 => {
            horizontal!(32 1 x 16 2 |d, s| [{ let p = s.map(|x| convert::snorm(d, Format::F16, 16, x)); convert::pack(d, 16, p) }])
        }
        Op::PackSnorm2x16 if w == 64 => {
            horizontal!(32 1 x 64 2 |d, s| [{ let p = s.map(|x| convert::snorm(d, Format::F64, 16, x)); convert::pack(d, 16, p) }])
        }
        Op::PackUnorm2x16 if w == 16 => {
            horizontal!(32 1 x 16 2 |d, s| [{ let p = s.map(|x| convert::unorm(d, Format::F16, 16, x)); convert::pack(d, 16, p) }])
        }
        Op::PackUnorm2x16 if w == 64 => {
            horizontal!(32 1 x 64 2 |d, s| [{ let p = s.map(|x| convert::unorm(d, Format::F64, 16, x)); convert::pack(d, 16, p) }])
        }
        Op::PackSnorm4x8 => {
            horizontal!(32 1 x 32 4 |d, s| [{ let p = s.map(|x| convert::snorm(d, F32, 8, x)); convert::pack(d, 8, p) }])
        }
        Op::PackUnorm4x8 => {
            horizontal!(32 1 x 32 4 |d, s| [{ let p = s.map(|x| convert::unorm(d, F32, 8, x)); convert::pack(d, 8, p) }])
        }
        Op::PackHalf2x16 => {
            horizontal!(32 1 x 32 2 |d, s| [{ let p = s.map(|x| convert::to_half(d, Rounding::Even, x)); convert::pack(d, 16, p) }])
        }
        Op::UnpackSnorm2x16 => horizontal!(32 2 x 32 1 |d, s| [0, 1].map(|i| {
            let part = convert::part(d, 32, 16, i, s[0]);
            convert::from_snorm(d, 16, part)
        })),
        Op::UnpackUnorm2x16 => horizontal!(32 2 x 32 1 |d, s| [0, 1].map(|i| {
            let part = convert::part(d, 32, 16, i, s[0]);
            convert::from_unorm(d, 16, part)
        })),
        Op::UnpackSnorm4x8 => horizontal!(32 4 x 32 1 |d, s| [0, 1, 2, 3].map(|i| {
            let part = convert::part(d, 32, 8, i, s[0]);
            convert::from_snorm(d, 8, part)
        })),
        Op::UnpackUnorm4x8 => horizontal!(32 4 x 32 1 |d, s| [0, 1, 2, 3].map(|i| {
            let part = convert::part(d, 32, 8, i, s[0]);
            convert::from_unorm(d, 8, part)
        })),
        Op::PackUint2x16 => {
            horizontal!(32 1 x 32 2 |d, s| [{ let p = s.map(|x| integer::clamp_u16(d, x)); convert::pack(d, 16, p) }])
        }
        Op::PackSint2x16 => {
            horizontal!(32 1 x 32 2 |d, s| [{ let p = s.map(|x| integer::clamp_i16(d, x)); convert::pack(d, 16, p) }])
        }
        Op::PackUvec2ToUint => {
            horizontal!(32 1 x 32 2 |d, s| [{ let p = s.map(|x| convert::part(d, 32, 16, 0, x)); convert::pack(d, 16, p) }])
        }
        // The sources are not truncated to bytes: higher bits stay.
        Op::PackUvec4ToUint => horizontal!(32 1 x 32 4 |d, s| [{
            let mut all = s[0];
            for (i, &part) in s.iter().enumerate().skip(1) {
                let count = d.constant(32, 8 * i as u64);
                let part = d.shl(32, part, count);
                all = d.or(32, all, part);
            }
            all
        }]),
        Op::Pack32_4x8 => horizontal!(32 1 x 8 4 |d, s| [convert::pack(d, 8, s)]),
        Op::Pack32_2x16 => horizontal!(32 1 x 16 2 |d, s| [convert::pack(d, 16, s)]),
        Op::Pack64_2x32 => horizontal!(64 1 x 32 2 |d, s| [convert::pack(d, 32, s)]),
        Op::Pack64_4x16 => horizontal!(64 1 x 16 4 |d, s| [convert::pack(d, 16, s)]),
        Op::Unpack64_2x32 => horizontal!(32 2 x 64 1 |d, s| [0, 1].map(|i| convert::part(d, 64, 32, i, s[0]))),
        Op::Unpack64_4x16 => horizontal!(16 4 x 64 1 |d, s| [0, 1, 2, 3].map(|i| convert::part(d, 64, 16, i, s[0]))),
        Op::Unpack32_2x16 => horizontal!(16 2 x 32 1 |d, s| [0, 1].map(|i| convert::part(d, 32, 16, i, s[0]))),
        Op::Unpack32_4x8 => horizontal!(8 4 x 32 1 |d, s| [0, 1, 2, 3].map(|i| convert::part(d, 32, 8, i, s[0]))),
        Op::UnpackHalf2x16 => horizontal!(32 2 x 32 1 |d, s| [0, 1].map(|i| half_part(d, i, s[0]))),
        Op::UnpackHalf2x16SplitX => unary!(32 32 |d, a| half_part(d, 0, a)),
        Op::UnpackHalf2x16SplitY => unary!(32 32 |d, a| half_part(d, 1, a)),
        Op::Unpack32_2x16SplitX => unary!(16 32 |d, a| convert::part(d, 32, 16, 0, a)),
        Op::Unpack32_2x16SplitY => unary!(16 32 |d, a| convert::part(d, 32, 16, 1, a)),
        Op::Unpack64_2x32SplitX => unary!(32 64 |d, a| convert::part(d, 64, 32, 0, a)),
        Op::Unpack64_2x32SplitY => unary!(32 64 |d, a| convert::part(d, 64, 32, 1, a)),
        Op::PackHalf2x16Split => horizontal!(32 1 x 32 2 |d, s| [{
            let p = s.map(|x| convert::to_half(d, Rounding::Even, x));
            convert::pack(d, 16, p)
        }]),
        Op::PackHalf2x16RtzSplit => horizontal!(32 1 x 32 2 |d, s| [{
            let p = s.map(|x| convert::to_half(d, Rounding::Zero, x));
            convert::pack(d, 16, p)
        }]),
        Op::Pack64_2x32Split => binary!(64 32 32 |d, a, b| d.concat(32, b, 32, a)),
        Op::Pack32_2x16Split => binary!(32 16 16 |d, a, b| d.concat(16, b, 16, a)),
        Op::Pack32_4x8Split => horizontal!(32 1 x 8 4 |d, s| [convert::pack(d, 8, s)]),
        Op::ExtractU8 => ints!(w, W, |d, a, b| integer::extract_part(d, W, 8, false, a, b)),
        Op::ExtractI8 => ints!(w, W, |d, a, b| integer::extract_part(d, W, 8, true, a, b)),
        Op::ExtractU16 => ints!(w, W, |d, a, b| integer::extract_part(d, W, 16, false, a, b)),
        Op::ExtractI16 => ints!(w, W, |d, a, b| integer::extract_part(d, W, 16, true, a, b)),
        Op::InsertU8 => ints!(w, W, |d, a, b| integer::insert_part(d, W, 8, a, b)),
        Op::InsertU16 => ints!(w, W, |d, a, b| integer::insert_part(d, W, 16, a, b)),
        _ => return None,
    })
}

/// A half of a word, as binary32.
#[inline(always)]
fn half_part<D: Domain>(d: &mut D, index: u32, a: D::V) -> D::V {
    let part = convert::part(d, 32, 16, index, a);
    d.fconvert(Format::F16, Format::F32, Rounding::Even, part)
}

fn bits(op: Op, w: u8) -> Option<Kernel> {
    Some(match op {
        Op::Inot => ints!(w, W, |d, a| d.not(W, a)),
        Op::Iand => ints!(w, W, |d, a, b| d.and(W, a, b)),
        Op::Ior => ints!(w, W, |d, a, b| d.or(W, a, b)),
        Op::Ixor => ints!(w, W, |d, a, b| d.xor(W, a, b)),
        Op::BitfieldReverse => unary!(32 32 |d, a| d.reverse(32, a)),
        Op::BitCount => counts!(w, W, |d, a| integer::bit_count(d, W, a)),
        Op::UfindMsb => counts!(w, W, |d, a| integer::ufind_msb(d, W, a)),
        Op::UfindMsbRev if w == 32 => unary!(32 32 |d, a| integer::ufind_msb_rev(d, 32, a)),
        Op::Uclz => unary!(32 32 |d, a| d.clz(32, a)),
        Op::IfindMsb => unary!(32 32 |d, a| integer::ifind_msb(d, 32, a)),
        Op::IfindMsbRev => unary!(32 32 |d, a| integer::ifind_msb_rev(d, 32, a)),
        Op::FindLsb => counts!(w, W, |d, a| integer::find_lsb(d, W, a)),
        Op::Ishl => shifts!(w, W, |d, a, b| integer::ishl(d, W, a, 32, b)),
        Op::Ishr => shifts!(w, W, |d, a, b| integer::ishr(d, W, a, 32, b)),
        Op::Ushr => shifts!(w, W, |d, a, b| integer::ushr(d, W, a, 32, b)),
        Op::Urol => shifts!(w, W, |d, a, b| integer::urol(d, W, a, b)),
        Op::Uror => shifts!(w, W, |d, a, b| integer::uror(d, W, a, b)),
        Op::Shfr => ternary!(32 32 32 32 |d, a, b, c| integer::shfr(d, a, b, c)),
        Op::Bfm => binary!(32 32 32 |d, a, b| integer::bfm(d, a, b)),
        Op::Bfi => ternary!(32 32 32 32 |d, a, b, c| integer::bfi(d, a, b, c)),
        Op::BitfieldSelect => ints!(w, W, |d, a, b, c| integer::bitfield_select(d, W, a, b, c)),
        Op::Ubfe => ternary!(32 32 32 32 |d, a, b, c| integer::bfe(d, false, a, b, c)),
        Op::Ibfe => ternary!(32 32 32 32 |d, a, b, c| integer::bfe(d, true, a, b, c)),
        Op::UbitfieldExtract => ternary!(32 32 32 32 |d, a, b, c| integer::bitfield_extract(d, false, a, b, c)),
        Op::IbitfieldExtract => ternary!(32 32 32 32 |d, a, b, c| integer::bitfield_extract(d, true, a, b, c)),
        Op::BitfieldInsert => {
            horizontal!(32 1 x 32 4 |d, s| [integer::bitfield_insert(d, s[0], s[1], s[2], s[3])])
        }
        Op::ShrmIr3 => shifts!(w, W, |d, a, b, c| {
            let x = integer::ushr(d, W, a, 32, b);
            d.and(W, x, c)
        }),
        Op::ShlmIr3 => shifts!(w, W, |d, a, b, c| {
            let x = integer::ishl(d, W, a, 32, b);
            d.and(W, x, c)
        }),
        Op::ShrgIr3 => shifts!(w, W, |d, a, b, c| {
            let x = integer::ushr(d, W, a, 32, b);
            d.or(W, x, c)
        }),
        Op::ShlgIr3 => shifts!(w, W, |d, a, b, c| {
            let x = integer::ishl(d, W, a, 32, b);
            d.or(W, x, c)
        }),
        Op::AndgIr3 => ints!(w, W, |d, a, b, c| {
            let x = d.and(W, a, b);
            d.or(W, x, c)
        }),
        _ => return None,
    })
}

fn integers(op: Op, w: u8) -> Option<Kernel> {
    Some(match op {
        Op::Ineg => ints!(w, W, |d, a| integer::ineg(d, W, a)),
        Op::Isign => ints!(w, W, |d, a| integer::isign(d, W, a)),
        Op::Iabs => ints!(w, W, |d, a| integer::iabs(d, W, a)),
        Op::Iadd => ints!(w, W, |d, a, b| d.add(W, a, b)),
        Op::IaddSat => ints!(w, W, |d, a, b| integer::iadd_sat(d, W, a, b)),
        Op::UaddSat => ints!(w, W, |d, a, b| integer::uadd_sat(d, W, a, b)),
        Op::IsubSat => ints!(w, W, |d, a, b| integer::isub_sat(d, W, a, b)),
        Op::UsubSat => ints!(w, W, |d, a, b| integer::usub_sat(d, W, a, b)),
        Op::Isub => ints!(w, W, |d, a, b| d.sub(W, a, b)),
        Op::UabsIsub => ints!(w, W, |d, a, b| integer::uabs_isub(d, W, a, b)),
        Op::UabsUsub => ints!(w, W, |d, a, b| integer::uabs_usub(d, W, a, b)),
        Op::UaddCarry => ints!(w, W, |d, a, b| integer::uadd_carry(d, W, a, b)),
        Op::UsubBorrow => ints!(w, W, |d, a, b| integer::usub_borrow(d, W, a, b)),
        Op::Iadd64Split2Lo => binary!(32 32 32 |d, a, b| d.add(32, a, b)),
        Op::Iadd64Split2Hi => binary!(32 32 32 |d, a, b| integer::uadd_carry(d, 32, a, b)),
        Op::Iadd64Split3Lo => ternary!(32 32 32 32 |d, a, b, _high| d.add(32, a, b)),
        Op::Iadd64Split3Hi => ternary!(32 32 32 32 |d, a, b, high| {
            let carry = integer::uadd_carry(d, 32, a, b);
            d.add(32, carry, high)
        }),
        Op::Iadd64Split4Lo => horizontal!(32 1 x 32 4 |d, s| [d.add(32, s[0], s[1])]),
        Op::Iadd64Split4Hi => horizontal!(32 1 x 32 4 |d, s| [{
            let carry = integer::uadd_carry(d, 32, s[0], s[1]);
            integer::iadd3(d, 32, carry, s[2], s[3])
        }]),
        Op::Ihadd => ints!(w, W, |d, a, b| integer::hadd(d, W, true, a, b)),
        Op::Uhadd => ints!(w, W, |d, a, b| integer::hadd(d, W, false, a, b)),
        Op::Irhadd => ints!(w, W, |d, a, b| integer::rhadd(d, W, true, a, b)),
        Op::Urhadd => ints!(w, W, |d, a, b| integer::rhadd(d, W, false, a, b)),
        Op::Idiv => ints!(w, W, |d, a, b| integer::idiv(d, W, a, b)),
        Op::Udiv => ints!(w, W, |d, a, b| integer::udiv(d, W, a, b)),
        Op::Umod => ints!(w, W, |d, a, b| integer::umod(d, W, a, b)),
        Op::Irem => ints!(w, W, |d, a, b| integer::irem(d, W, a, b)),
        Op::Imod => ints!(w, W, |d, a, b| integer::imod(d, W, a, b)),
        Op::UdivAligned4 if w == 1 => unary!(1 1 |d, a| d.xor(1, a, a)),
        Op::UdivAligned4 => ints!(w, W, |d, a| {
            let two = d.constant(W, 2);
            d.lshr(W, a, two)
        }),
        Op::Imin => ints!(w, W, |d, a, b| integer::imin(d, W, a, b)),
        Op::Umin => ints!(w, W, |d, a, b| integer::umin(d, W, a, b)),
        Op::Imax => ints!(w, W, |d, a, b| integer::imax(d, W, a, b)),
        Op::Umax => ints!(w, W, |d, a, b| integer::umax(d, W, a, b)),
        Op::Iadd3 => ints!(w, W, |d, a, b, c| integer::iadd3(d, W, a, b, c)),
        Op::FrexpExp => match w {
            16 => unary!(32 16 |d, a| float::frexp_exp(d, Format::F16, a)),
            32 => unary!(32 32 |d, a| float::frexp_exp(d, Format::F32, a)),
            64 => unary!(32 64 |d, a| float::frexp_exp(d, Format::F64, a)),
            _ => return None,
        },
        _ => return None,
    })
}

fn products(op: Op, w: u8) -> Option<Kernel> {
    Some(match op {
        Op::Imul | Op::Amul => ints!(w, W, |d, a, b| d.mul(W, a, b)),
        Op::Imad => ints!(w, W, |d, a, b, c| integer::mad_low(d, W, W, false, a, b, c)),
        Op::ImulHigh => ints!(w, W, |d, a, b| d.smul_high(W, a, b)),
        Op::UmulHigh => ints!(w, W, |d, a, b| d.umul_high(W, a, b)),
        Op::Imul2x32_64 => binary!(64 32 32 |d, a, b| integer::mul_low(d, 64, 32, true, a, b)),
        Op::Umul2x32_64 => binary!(64 32 32 |d, a, b| integer::mul_low(d, 64, 32, false, a, b)),
        Op::UmulLow | Op::Umul16x16 => binary!(32 32 32 |d, a, b| integer::mul_low(d, 32, 16, false, a, b)),
        Op::Imul32x16 => binary!(32 32 32 |d, a, b| { let b = integer::low(d, 32, 16, true, b); d.mul(32, a, b) }),
        Op::Umul32x16 => binary!(32 32 32 |d, a, b| { let b = integer::low(d, 32, 16, false, b); d.mul(32, a, b) }),
        Op::ImadshMix16 => ternary!(32 32 32 32 |d, a, b, c| integer::madsh_mix(d, a, b, c)),
        Op::Imad24Ir3 => ternary!(32 32 32 32 |d, a, b, c| integer::mad_low(d, 32, 24, true, a, b, c)),
        Op::Imul24 => binary!(32 32 32 |d, a, b| integer::mul_low(d, 32, 24, true, a, b)),
        Op::Umul24 => binary!(32 32 32 |d, a, b| integer::mul_low(d, 32, 24, false, a, b)),
        Op::Umad24 => ternary!(32 32 32 32 |d, a, b, c| integer::mad_low(d, 32, 24, false, a, b, c)),
        Op::Imul24Relaxed | Op::Umul24Relaxed => binary!(32 32 32 |d, a, b| d.mul(32, a, b)),
        Op::Umad24Relaxed => ternary!(32 32 32 32 |d, a, b, c| integer::mad_low(d, 32, 32, false, a, b, c)),
        Op::Msad4x8 => ternary!(32 32 32 32 |d, a, b, c| integer::msad(d, a, b, c)),
        Op::Mqsad4x8 => horizontal!(32 4 x 32 7 |d, s| {
            let all = d.concat(32, s[2], 32, s[1]);
            [0, 1, 2, 3].map(|i| {
                let window = d.extract(64, all, 8 * i, 32);
                integer::msad(d, s[0], window, s[3 + i as usize])
            })
        }),
        Op::Sdot4x8Iadd => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 8, (true, true), false, a, b, c)),
        Op::Udot4x8Uadd => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 8, (false, false), false, a, b, c)),
        Op::Sudot4x8Iadd => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 8, (true, false), false, a, b, c)),
        Op::Sdot4x8IaddSat => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 8, (true, true), true, a, b, c)),
        Op::Udot4x8UaddSat => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 8, (false, false), true, a, b, c)),
        Op::Sudot4x8IaddSat => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 8, (true, false), true, a, b, c)),
        Op::Sdot2x16Iadd => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 16, (true, true), false, a, b, c)),
        Op::Udot2x16Uadd => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 16, (false, false), false, a, b, c)),
        Op::Sdot2x16IaddSat => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 16, (true, true), true, a, b, c)),
        Op::Udot2x16UaddSat => ternary!(32 32 32 32 |d, a, b, c| integer::dot(d, 16, (false, false), true, a, b, c)),
        _ => return None,
    })
}

fn float_arithmetic(op: Op, w: u8, controls: FloatControls) -> Option<Kernel> {
    Some(match op {
        Op::Fneg => floats!(w, F, |d, a| float::fneg(d, F, a)),
        Op::Fabs => floats!(w, F, |d, a| float::fabs(d, F, a)),
        Op::Fsign => floats!(w, F, |d, a| float::fsign(d, F, a)),
        Op::Fsat => floats!(w, F, |d, a| float::fsat(d, F, a)),
        Op::FsatSigned => floats!(w, F, |d, a| float::fsat_signed(d, F, a)),
        Op::FclampPos => floats!(w, F, |d, a| float::fclamp_pos(d, F, a)),
        Op::Frcp => floats!(w, F, |d, a| d.function(F, Function::Reciprocal, a)),
        Op::Frsq => floats!(w, F, |d, a| d.function(F, Function::ReciprocalSqrt, a)),
        Op::Fsqrt => floats!(w, F, |d, a| d.function(F, Function::Sqrt, a)),
        Op::Fexp2 => floats!(w, F, |d, a| d.function(F, Function::Exp2, a)),
        Op::Flog2 => floats!(w, F, |d, a| d.function(F, Function::Log2, a)),
        Op::Fsin => floats!(w, F, |d, a| d.function(F, Function::Sin, a)),
        Op::Fcos => floats!(w, F, |d, a| d.function(F, Function::Cos, a)),
        Op::Ftrunc => floats!(w, F, |d, a| d.fround(F, Rounding::Zero, a)),
        Op::Fceil => floats!(w, F, |d, a| d.fround(F, Rounding::Up, a)),
        Op::Ffloor => floats!(w, F, |d, a| d.fround(F, Rounding::Down, a)),
        Op::FroundEven => floats!(w, F, |d, a| d.fround(F, Rounding::Even, a)),
        Op::Ffract => floats!(w, F, |d, a| float::ffract(d, F, a)),
        Op::Fquantize2f16 => floats!(w, F, |d, a| float::fquantize(d, F, a)),
        Op::FrexpSig => floats!(w, F, |d, a| float::frexp_sig(d, F, a)),
        Op::Fadd => floats!(w, F, |d, a, b| d.fadd(F, a, b)),
        Op::Fsub => floats!(w, F, |d, a, b| float::fsub(d, F, a, b)),
        Op::Fmul => floats!(w, F, |d, a, b| d.fmul(F, a, b)),
        Op::Fmulz => binary!(32 32 32 |d, a, b| float::fmulz(d, Format::F32, a, b)),
        Op::Fdiv => floats!(w, F, |d, a, b| d.fdiv(F, a, b)),
        Op::Fmod => floats!(w, F, |d, a, b| float::remainder(d, F, Rounding::Down, a, b)),
        Op::Frem => floats!(w, F, |d, a, b| float::remainder(d, F, Rounding::Zero, a, b)),
        Op::Slt => floats!(w, F, |d, a, b| {
            let bit = d.flt(F, a, b);
            float::from_bool(d, F, bit)
        }),
        Op::Sge => floats!(w, F, |d, a, b| {
            let bit = float::fge(d, F, a, b);
            float::from_bool(d, F, bit)
        }),
        Op::Seq => floats!(w, F, |d, a, b| {
            let bit = d.feq(F, a, b);
            float::from_bool(d, F, bit)
        }),
        Op::Sne => floats!(w, F, |d, a, b| {
            let bit = float::fneu(d, F, a, b);
            float::from_bool(d, F, bit)
        }),
        Op::Fmin => floats!(w, F, |d, a, b| float::fmin(d, F, a, b)),
        Op::Fmax => floats!(w, F, |d, a, b| float::fmax(d, F, a, b)),
        Op::Fpow => floats!(w, F, |d, a, b| d.fpow(F, a, b)),
        Op::Ldexp => match w {
            16 => binary!(16 16 32 |d, a, b| float::ldexp(d, Format::F16, a, b)),
            32 => binary!(32 32 32 |d, a, b| float::ldexp(d, Format::F32, a, b)),
            64 => binary!(64 64 32 |d, a, b| float::ldexp(d, Format::F64, a, b)),
            _ => return None,
        },
        Op::Ffma | Op::FfmaWeak if controls.is_fused() => floats!(w, F, |d, a, b, c| d.ffma(F, a, b, c)),
        Op::Ffma | Op::FfmaWeak | Op::Fmad => floats!(w, F, |d, a, b, c| float::fmad(d, F, a, b, c)),
        Op::Ffmaz => ternary!(32 32 32 32 |d, a, b, c| float::ffmaz(d, Format::F32, a, b, c)),
        Op::Flrp => floats!(w, F, |d, a, b, c| float::flrp(d, F, a, b, c)),
        Op::Fsum2 => float_horizontal!(w, F, 2 | d, s | sum(d, F, s)),
        Op::Fsum3 => float_horizontal!(w, F, 3 | d, s | sum(d, F, s)),
        Op::Fsum4 => float_horizontal!(w, F, 4 | d, s | sum(d, F, s)),
        Op::Fdot2 => float_horizontal!(w, F, 4 | d, s | dot::<2, _>(d, F, &s)),
        Op::Fdot3 => float_horizontal!(w, F, 6 | d, s | dot::<3, _>(d, F, &s)),
        Op::Fdot4 => float_horizontal!(w, F, 8 | d, s | dot::<4, _>(d, F, &s)),
        Op::Fdot5 => float_horizontal!(w, F, 10 | d, s | dot::<5, _>(d, F, &s)),
        Op::Fdot8 => float_horizontal!(w, F, 16 | d, s | dot::<8, _>(d, F, &s)),
        Op::Fdot16 => float_horizontal!(w, F, 32 | d, s | dot::<16, _>(d, F, &s)),
        Op::Fdph => float_horizontal!(
            w,
            F,
            7 | d,
            s | {
                let xyz = [s[0], s[1], s[2], s[3], s[4], s[5]];
                let products: [_; 3] = std::array::from_fn(|i| d.fmul(F, xyz[i], xyz[3 + i]));
                sum(d, F, [products[0], products[1], products[2], s[6]])
            }
        ),
        _ => return None,
    })
}

/// A sum of several terms, from left to right.
#[inline(always)]
fn sum<const N: usize, D: Domain<V: Copy>>(d: &mut D, f: Format, s: [D::V; N]) -> D::V {
    let mut all = s[0];
    for &term in &s[1..] {
        all = d.fadd(f, all, term);
    }
    all
}

/// The dot product of the first half of `s` with the second. nir orders it from the last component to the first, and
/// its sum is from left to right.
#[inline(always)]
fn dot<const N: usize, D: Domain<V: Copy>>(d: &mut D, f: Format, s: &[D::V]) -> D::V {
    let products: [D::V; N] = std::array::from_fn(|i| {
        let component = N - 1 - i;
        d.fmul(f, s[component], s[N + component])
    });
    sum(d, f, products)
}

/// A selection by a condition of some width: nonzero, or zero.
macro_rules! choice {
    ($width:expr, $w:ident, |$d:ident, $c:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; select!(0 ? 1 : 2, 1 |$d, $c| $e) }
            8 => { const $w: u32 = 8; select!(0 ? 1 : 2, 8 |$d, $c| $e) }
            16 => { const $w: u32 = 16; select!(0 ? 1 : 2, 16 |$d, $c| $e) }
            32 => { const $w: u32 = 32; select!(0 ? 1 : 2, 32 |$d, $c| $e) }
            _ => return None,
        }
    };
}

fn selections(op: Op, w: u8) -> Option<Kernel> {
    const F32: Format = Format::F32;
    let condition = match op {
        Op::Bcsel => 1,
        Op::B8csel => 8,
        Op::B16csel => 16,
        Op::B32csel => 32,
        _ => w,
    };
    Some(match op {
        Op::Bcsel | Op::B8csel | Op::B16csel | Op::B32csel => choice!(condition, W, |d, c| {
            let zero = integer::is_zero(d, W, c);
            d.not(1, zero)
        }),
        Op::IcselEqz => choice!(condition.min(32), W, |d, c| integer::is_zero(d, W, c)),
        Op::Fcsel => select!(0 ? 1 : 2, 32 |d, c| { let zero = d.constant(32, 0); float::fneu(d, F32, c, zero) }),
        Op::I32cselGt => select!(0 ? 1 : 2, 32 |d, c| { let zero = d.constant(32, 0); d.slt(32, zero, c) }),
        Op::I32cselGe => select!(0 ? 1 : 2, 32 |d, c| { let zero = d.constant(32, 0); integer::ige(d, 32, c, zero) }),
        Op::FcselGt => select!(0 ? 1 : 2, 32 |d, c| { let zero = d.constant(32, 0); d.flt(F32, zero, c) }),
        Op::FcselGe => select!(0 ? 1 : 2, 32 |d, c| { let zero = d.constant(32, 0); d.fle(F32, zero, c) }),
        _ => return None,
    })
}
