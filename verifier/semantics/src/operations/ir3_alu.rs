//! The ALU operations of ir3: categories 1 (`mov`, `cov`) to 4.
//!
//! The width of an operation is that of its sources, which all have the same width. If the destination has another
//! width, the result is converted: floats as numbers, rounded toward zero; integers are truncated or extended (by the
//! sign for `.s`, by zeros otherwise); comparisons are 0 or 1 in any width. Products of 24 bits are the exception: they
//! multiply the extended sources. Only the operations that Mesa folds conversions into have a definition with a
//! destination of another width.

use ir3_compiler::ir3::opcode::Numeric;
use ir3_compiler::ir3::{
    Attrs, Condition, Dst, InstrData, InstrFlags, Mods, Opcode, PhysReg, Place, RegClass, RegFile, Round, Src,
    SrcOperand, Type, WriteMask,
};

use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::convert;
use crate::arithmetic::convert::NumberKind;
use crate::arithmetic::domain::{Domain, Format, Function, Rounding};
use crate::arithmetic::float;
use crate::arithmetic::integer;
use crate::arithmetic::rows::{LANES, Row};
use crate::operations::kernels;
use crate::operations::kernels::{binary, select, ternary, unary};
use crate::operations::modifiers;
use crate::operations::values::{Kernel, LaneTest, Modify, One, Select, Three, Two};
use crate::terms::{Term, Terms};

/// The execution of an ALU instruction.
#[derive(Clone, Copy, Debug)]
pub struct Alu {
    /// Computes the result from the sources, modifiers applied.
    pub kernel: Kernel,
    /// Applied to the result: the float clamp of `(sat)`. Integer saturation is in the kernel.
    pub clamp: Option<&'static Modify>,
}

/// Dispatches on result and sources of 16 or 32 bits each: four combinations, with the constants `$o` and `$w` (widths)
/// for each.
macro_rules! widths {
    ($half:expr, $o:ident, $w:ident, $kind:ident |$($v:ident),*| $e:expr) => {
        match $half {
            (false, false) => { const $o: u32 = 32; const $w: u32 = 32; widths!(@ $kind 32 |$($v),*| $e) }
            (true, true) => { const $o: u32 = 16; const $w: u32 = 16; widths!(@ $kind 16 |$($v),*| $e) }
            (true, false) => { const $o: u32 = 16; const $w: u32 = 32; widths!(@ $kind 32 |$($v),*| $e) }
            (false, true) => { const $o: u32 = 32; const $w: u32 = 16; widths!(@ $kind 16 |$($v),*| $e) }
        }
    };
    (@ unary $w:tt |$($v:ident),*| $e:expr) => { unary!(32 $w |$($v),*| $e) };
    (@ binary $w:tt |$($v:ident),*| $e:expr) => { binary!(32 $w $w |$($v),*| $e) };
    (@ ternary $w:tt |$($v:ident),*| $e:expr) => { ternary!(32 $w $w $w |$($v),*| $e) };
}

/// A float operation: the expression in format `$f`, converted to the destination's.
macro_rules! floats {
    ($half:expr, $f:ident, $kind:ident |$d:ident, $($v:ident),*| $e:expr) => {
        widths!($half, O, W, $kind |$d, $($v),*| {
            const $f: Format = format(W);
            let result = $e;
            widen($d, W, O, result)
        })
    };
}

/// An operation on bits of the source's width; the result is truncated or zero-extended.
macro_rules! bits {
    ($half:expr, $w:ident, $kind:ident |$d:ident, $($v:ident),*| $e:expr) => {
        widths!($half, O, $w, $kind |$d, $($v),*| { let result = $e; integer::resize($d, $w, O, result) })
    };
}

/// An operation on integers of the source's width; the result is truncated or extended, by its sign if `$signed`.
macro_rules! integers {
    ($half:expr, $signed:expr, $w:ident, $kind:ident |$d:ident, $($v:ident),*| $e:expr) => {
        widths!($half, O, $w, $kind |$d, $($v),*| {
            let result = $e;
            if $signed { integer::resize_signed($d, $w, O, result) } else { integer::resize($d, $w, O, result) }
        })
    };
}

/// An operation on integers of the destination's width; sources are extended, by their signs if `$signed`.
macro_rules! products {
    ($half:expr, $signed:expr, $o:ident, $kind:ident |$d:ident, $($v:ident),*| $e:expr) => {
        widths!($half, $o, W, $kind |$d, $($v),*| {
            $(let $v = if $signed { integer::resize_signed($d, W, $o, $v) } else { integer::resize($d, W, $o, $v) };)*
            $e
        })
    };
}

/// A comparison: 0 or 1, for any width of the destination.
macro_rules! compare {
    ($half:expr, $condition:expr, $w:ident, |$d:ident, $a:ident, $b:ident| $less:expr, $not_greater:expr, $equal:expr) => {
        match $condition {
            Condition::Lt => compare!(@ $half, $w, |$d, $a, $b| $less),
            Condition::Ge => compare!(@ $half, $w, |$d, $b, $a| $not_greater),
            Condition::Gt => compare!(@ $half, $w, |$d, $b, $a| $less),
            Condition::Le => compare!(@ $half, $w, |$d, $a, $b| $not_greater),
            Condition::Eq => compare!(@ $half, $w, |$d, $a, $b| $equal),
            Condition::Ne => compare!(@ $half, $w, |$d, $a, $b| { let equal = $equal; $d.not(1, equal) }),
        }
    };
    (@ $half:expr, $w:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        if $half {
            const $w: u32 = 16;
            binary!(32 16 16 |$d, $a, $b| $e)
        } else {
            const $w: u32 = 32;
            binary!(32 32 32 |$d, $a, $b| $e)
        }
    };
}

const fn format(width: u32) -> Format {
    if width == 16 { Format::F16 } else { Format::F32 }
}

/// Converts a float of `w` bits to one of `o` bits.
#[inline(always)]
fn widen<D: Domain>(d: &mut D, w: u32, o: u32, a: D::V) -> D::V {
    if w == o { a } else { d.fconvert(format(w), format(o), Rounding::MACHINE, a) }
}

/// Returns true if the operation can have a destination of another width than its sources.
fn converts_result(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        AddF | MulF
            | MadF16
            | MadF32
            | CmpsF
            | CmpsU
            | CmpsS
            | AddU
            | AddS
            | SubU
            | SubS
            | MinU
            | MinS
            | MaxU
            | MaxS
            | AndB
            | OrB
            | XorB
            | NotB
            | ShlB
            | ShrB
            | AshrB
            | AbsnegS
            | MullU
            | MulU24
            | MulS24
            | Shrm
            | Shlm
            | Shrg
            | Shlg
            | Andg
    )
}

/// The kernel of an ALU instruction, from its first one, two or three sources (an address register source after them is
/// no operand); `None` if it is no ALU instruction, or one without a definition.
///
/// The widths of sources and destination are those of their classes. A comparison gives 0 or 1; a predicate receives
/// the lowest bit of a result, except for a conversion: there it is 1 if the source is not 0.
pub fn kernel(instr: &InstrData) -> Option<Alu> {
    let dst = instr.dsts.first()?.class;
    let operands = operand_count(instr.opcode)?;
    let srcs = instr.srcs.get(..operands)?;
    if let Attrs::Move { src, dst: to, round } = instr.attrs
        && instr.opcode == Opcode::Mov
    {
        let to_predicate = dst.file == RegFile::Predicate;
        let kernel = if to_predicate {
            unary!(1 32 |d, a| { let zero = integer::is_zero(d, 32, a); d.not(1, zero) })
        } else {
            conversion(src, to, round)?
        };
        let clamp = match (instr.flags.contains(InstrFlags::SAT), to) {
            (false, _) => None,
            (true, Type::F16) => Some(modifiers::SATURATE16),
            (true, Type::F32) => Some(modifiers::SATURATE32),
            (true, _) => return None,
        };
        return Some(Alu { kernel, clamp });
    }
    // Predicates have one bit, but are read as numbers of any width.
    let mut widths = srcs.iter().filter(|src| src.class.file != RegFile::Predicate).map(|src| src.class.half);
    let half = widths.next().unwrap_or(false);
    if widths.any(|other| other != half) {
        return None;
    }
    // A predicate receives the lowest bit: any width will do.
    let dst_half = if dst.file == RegFile::Predicate { half } else { dst.half };
    if dst_half != half && !converts_result(instr.opcode) {
        return None;
    }
    let saturates = instr.flags.contains(InstrFlags::SAT);
    let shape = (dst_half, half);
    let is_float = instr.opcode.info().numeric == Numeric::Float;
    let kernel = match instr.opcode {
        Opcode::CmpsF | Opcode::CmpsU | Opcode::CmpsS => comparison(instr, half)?,
        _ => float_kernel(instr.opcode, shape)
            .or_else(|| function_kernel(instr.opcode, shape))
            .or_else(|| bit_kernel(instr.opcode, shape))
            .or_else(|| integer_kernel(instr.opcode, shape, saturates))
            .or_else(|| select_kernel(instr.opcode))?,
    };
    let clamp = match (saturates && is_float, dst_half) {
        (false, _) => None,
        (true, true) => Some(modifiers::SATURATE16),
        (true, false) => Some(modifiers::SATURATE32),
    };
    if saturates && !is_float && !saturating_integer(instr.opcode) {
        return None;
    }
    Some(Alu { kernel, clamp })
}

/// The number of operands of an ALU opcode that has a definition.
fn operand_count(opcode: Opcode) -> Option<usize> {
    use Opcode::*;
    Some(match opcode {
        Mov | SignF | AbsnegF | FloorF | CeilF | RndneF | RndazF | TruncF | AbsnegS | NotB | BfrevB | ClzS | ClzB
        | CbitsB | Rcp | Rsq | Log2 | Exp2 | Sin | Cos | Sqrt | Hrsq | Hlog2 | Hexp2 => 1,
        AddF | MinF | MaxF | MulF | CmpsF | AddU | AddS | SubU | SubS | CmpsU | CmpsS | MinU | MinS | MaxU | MaxS
        | AndB | OrB | XorB | MulU24 | MulS24 | MullU | ShlB | ShrB | AshrB | GetbitB => 2,
        MadU16 | MadshU16 | MadS16 | MadshM16 | MadU24 | MadS24 | MadF16 | MadF32 | SelB16 | SelB32 | SelS16
        | SelS32 | SelF16 | SelF32 | SadS16 | SadS32 | Shrm | Shlm | Shrg | Shlg | Andg => 3,
        _ => return None,
    })
}

fn saturating_integer(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::AddU | Opcode::AddS | Opcode::SubU | Opcode::SubS)
}

fn comparison(instr: &InstrData, half: bool) -> Option<Kernel> {
    let Attrs::Compare(condition) = instr.attrs else { return None };
    Some(match instr.opcode {
        Opcode::CmpsF => compare!(
            half,
            condition,
            W,
            |d, a, b| d.flt(format(W), a, b),
            d.fle(format(W), a, b),
            d.feq(format(W), a, b)
        ),
        Opcode::CmpsU => {
            compare!(half, condition, W, |d, a, b| d.ult(W, a, b), integer::uge(d, W, b, a), d.eq(W, a, b))
        }
        Opcode::CmpsS => {
            compare!(half, condition, W, |d, a, b| d.slt(W, a, b), integer::ige(d, W, b, a), d.eq(W, a, b))
        }
        _ => return None,
    })
}

fn float_kernel(opcode: Opcode, half: (bool, bool)) -> Option<Kernel> {
    Some(match opcode {
        Opcode::AddF => floats!(half, F, binary | d, a, b | d.fadd(F, a, b)),
        Opcode::MinF => floats!(half, F, binary | d, a, b | float::fmin(d, F, a, b)),
        Opcode::MaxF => floats!(half, F, binary | d, a, b | float::fmax(d, F, a, b)),
        Opcode::MulF => floats!(half, F, binary | d, a, b | d.fmul(F, a, b)),
        Opcode::SignF => floats!(half, F, unary | d, a | float::fsign(d, F, a)),
        // The modifiers are the operation.
        Opcode::AbsnegF => floats!(half, F, unary | d, a | d.zext(F.width(), F.width(), a)),
        Opcode::FloorF => floats!(half, F, unary | d, a | d.fround(F, Rounding::Down, a)),
        Opcode::CeilF => floats!(half, F, unary | d, a | d.fround(F, Rounding::Up, a)),
        Opcode::RndneF => floats!(half, F, unary | d, a | d.fround(F, Rounding::Even, a)),
        Opcode::RndazF => floats!(half, F, unary | d, a | d.fround(F, Rounding::Away, a)),
        Opcode::TruncF => floats!(half, F, unary | d, a | d.fround(F, Rounding::Zero, a)),
        // The product is rounded, too: see docs/semantics.md.
        Opcode::MadF16 | Opcode::MadF32 => floats!(half, F, ternary | d, a, b, c | float::fmad(d, F, a, b, c)),
        _ => return None,
    })
}

fn function_kernel(opcode: Opcode, half: (bool, bool)) -> Option<Kernel> {
    Some(match opcode {
        Opcode::Rcp => floats!(half, F, unary | d, a | d.function(F, Function::Reciprocal, a)),
        Opcode::Rsq | Opcode::Hrsq => floats!(half, F, unary | d, a | d.function(F, Function::ReciprocalSqrt, a)),
        Opcode::Log2 | Opcode::Hlog2 => floats!(half, F, unary | d, a | d.function(F, Function::Log2, a)),
        Opcode::Exp2 | Opcode::Hexp2 => floats!(half, F, unary | d, a | d.function(F, Function::Exp2, a)),
        Opcode::Sin => floats!(half, F, unary | d, a | d.function(F, Function::Sin, a)),
        Opcode::Cos => floats!(half, F, unary | d, a | d.function(F, Function::Cos, a)),
        Opcode::Sqrt => floats!(half, F, unary | d, a | d.function(F, Function::Sqrt, a)),
        _ => return None,
    })
}

fn bit_kernel(opcode: Opcode, half: (bool, bool)) -> Option<Kernel> {
    /// The second source shifted by the first, combined with the third.
    macro_rules! shifted {
        ($shift:ident, $combine:ident) => {
            bits!(
                half,
                W,
                ternary | d,
                a,
                b,
                c | {
                    let x = integer::$shift(d, W, b, W, a);
                    d.$combine(W, x, c)
                }
            )
        };
    }
    /// The distance of the first bit from the top, -1 if no bit is set.
    macro_rules! leading {
        ($find:ident) => {
            widths!(
                half,
                O,
                W,
                unary | d,
                a | {
                    let count = integer::$find(d, W, a);
                    integer::resize_signed(d, W, O, count)
                }
            )
        };
    }
    Some(match opcode {
        Opcode::AndB => bits!(half, W, binary | d, a, b | d.and(W, a, b)),
        Opcode::OrB => bits!(half, W, binary | d, a, b | d.or(W, a, b)),
        Opcode::XorB => bits!(half, W, binary | d, a, b | d.xor(W, a, b)),
        Opcode::NotB => bits!(half, W, unary | d, a | d.not(W, a)),
        Opcode::BfrevB => bits!(half, W, unary | d, a | d.reverse(W, a)),
        Opcode::CbitsB => bits!(half, W, unary | d, a | d.popcount(W, a)),
        Opcode::ClzB => leading!(ufind_msb_rev),
        Opcode::ClzS => leading!(ifind_msb_rev),
        Opcode::ShlB => bits!(half, W, binary | d, a, b | integer::ishl(d, W, a, W, b)),
        Opcode::ShrB => bits!(half, W, binary | d, a, b | integer::ushr(d, W, a, W, b)),
        Opcode::AshrB => bits!(half, W, binary | d, a, b | integer::ishr(d, W, a, W, b)),
        Opcode::GetbitB => bits!(
            half,
            W,
            binary | d,
            a,
            b | {
                let shifted = integer::ushr(d, W, a, W, b);
                integer::low(d, W, 1, false, shifted)
            }
        ),
        Opcode::Shrm => shifted!(ushr, and),
        Opcode::Shlm => shifted!(ishl, and),
        Opcode::Shrg => shifted!(ushr, or),
        Opcode::Shlg => shifted!(ishl, or),
        Opcode::Andg => bits!(
            half,
            W,
            ternary | d,
            a,
            b,
            c | {
                let x = d.and(W, a, b);
                d.or(W, x, c)
            }
        ),
        _ => return None,
    })
}

fn integer_kernel(opcode: Opcode, half: (bool, bool), saturates: bool) -> Option<Kernel> {
    Some(match (opcode, saturates) {
        (Opcode::AddU, false) => integers!(half, false, W, binary | d, a, b | d.add(W, a, b)),
        (Opcode::AddS, false) => integers!(half, true, W, binary | d, a, b | d.add(W, a, b)),
        (Opcode::SubU, false) => integers!(half, false, W, binary | d, a, b | d.sub(W, a, b)),
        (Opcode::SubS, false) => integers!(half, true, W, binary | d, a, b | d.sub(W, a, b)),
        (Opcode::AddU, true) => integers!(half, false, W, binary | d, a, b | integer::uadd_sat(d, W, a, b)),
        (Opcode::AddS, true) => integers!(half, true, W, binary | d, a, b | integer::iadd_sat(d, W, a, b)),
        (Opcode::SubU, true) => integers!(half, false, W, binary | d, a, b | integer::usub_sat(d, W, a, b)),
        (Opcode::SubS, true) => integers!(half, true, W, binary | d, a, b | integer::isub_sat(d, W, a, b)),
        (Opcode::MinU, _) => bits!(half, W, binary | d, a, b | integer::umin(d, W, a, b)),
        (Opcode::MaxU, _) => bits!(half, W, binary | d, a, b | integer::umax(d, W, a, b)),
        (Opcode::MinS, _) => integers!(half, true, W, binary | d, a, b | integer::imin(d, W, a, b)),
        (Opcode::MaxS, _) => integers!(half, true, W, binary | d, a, b | integer::imax(d, W, a, b)),
        // The modifiers are the operation.
        (Opcode::AbsnegS, _) => integers!(half, true, W, unary | d, a | d.zext(W, W, a)),
        (Opcode::MulU24, _) => products!(half, false, O, binary | d, a, b | integer::mul_low(d, O, 24, false, a, b)),
        (Opcode::MulS24, _) => products!(half, true, O, binary | d, a, b | integer::mul_low(d, O, 24, true, a, b)),
        (Opcode::MullU, _) => integers!(half, false, W, binary | d, a, b | integer::mul_low(d, W, 16, false, a, b)),
        // The widths of these are in their encodings.
        (Opcode::MadU16 | Opcode::MadS16, _) if half == (true, true) => {
            ternary!(32 16 16 16 |d, a, b, c| integer::mad_low(d, 16, 16, false, a, b, c))
        }
        (Opcode::MadU24, _) if half == (false, false) => {
            ternary!(32 32 32 32 |d, a, b, c| integer::mad_low(d, 32, 24, false, a, b, c))
        }
        (Opcode::MadS24, _) if half == (false, false) => {
            ternary!(32 32 32 32 |d, a, b, c| integer::mad_low(d, 32, 24, true, a, b, c))
        }
        (Opcode::MadshM16, _) if half == (false, false) => {
            ternary!(32 32 32 32 |d, a, b, c| integer::madsh_mix(d, a, b, c))
        }
        (Opcode::MadshU16, _) if half == (false, false) => {
            ternary!(32 32 32 32 |d, a, b, c| integer::madsh_low(d, a, b, c))
        }
        (Opcode::SadS16 | Opcode::SadS32, _) => {
            integers!(half, true, W, ternary | d, a, b, c | integer::iadd3(d, W, a, b, c))
        }
        _ => return None,
    })
}

fn select_kernel(opcode: Opcode) -> Option<Kernel> {
    Some(match opcode {
        Opcode::SelB16 | Opcode::SelB32 => {
            select!(1 ? 0 : 2, 32 |d, c| { let zero = integer::is_zero(d, 32, c); d.not(1, zero) })
        }
        Opcode::SelS16 => {
            select!(1 ? 0 : 2, 16 |d, c| { let negative = integer::is_negative(d, 16, c); d.not(1, negative) })
        }
        Opcode::SelS32 => {
            select!(1 ? 0 : 2, 32 |d, c| { let negative = integer::is_negative(d, 32, c); d.not(1, negative) })
        }
        Opcode::SelF16 => select!(1 ? 0 : 2, 16 |d, c| { let zero = d.constant(16, 0); d.fle(Format::F16, zero, c) }),
        Opcode::SelF32 => select!(1 ? 0 : 2, 32 |d, c| { let zero = d.constant(32, 0); d.fle(Format::F32, zero, c) }),
        _ => return None,
    })
}

/// A conversion with constant parameters: kinds and widths of both sides, rounding.
macro_rules! conversions {
    ($src:expr, $dst:expr, $rounding:expr; $($from:pat => $kind:ident $w:literal,)*) => {
        match $src {
            $($from => conversions!(@to $dst, $rounding, NumberKind::$kind, $w),)*
            Type::U64 => return None,
        }
    };
    (@to $dst:expr, $rounding:expr, $kind:expr, $w:literal) => {
        match $dst {
            Type::F16 => conversions!(@round $rounding, $kind, $w, NumberKind::Float, 16),
            Type::F32 => conversions!(@round $rounding, $kind, $w, NumberKind::Float, 32),
            Type::U16 => conversions!(@round $rounding, $kind, $w, NumberKind::Unsigned, 16),
            Type::U32 => conversions!(@round $rounding, $kind, $w, NumberKind::Unsigned, 32),
            Type::S16 => conversions!(@round $rounding, $kind, $w, NumberKind::Signed, 16),
            Type::S32 => conversions!(@round $rounding, $kind, $w, NumberKind::Signed, 32),
            Type::U8 | Type::U8In32 => conversions!(@round $rounding, $kind, $w, NumberKind::Unsigned, 8),
            Type::U64 => return None,
        }
    };
    (@round $rounding:expr, $kind:expr, $w:literal, $to:expr, $o:literal) => {
        match $rounding {
            Round::Default => conversions!(@one None, $kind, $w, $to, $o),
            Round::Even => conversions!(@one Some(Rounding::Even), $kind, $w, $to, $o),
            Round::PosInf => conversions!(@one Some(Rounding::Up), $kind, $w, $to, $o),
            Round::NegInf => conversions!(@one Some(Rounding::Down), $kind, $w, $to, $o),
        }
    };
    (@one $rounding:expr, $kind:expr, $w:literal, $to:expr, $o:literal) => {
        unary!(32 32 |d, a| {
            let a = d.extract(32, a, 0, $w);
            convert::convert(d, ($kind, $w), ($to, $o), $rounding, a)
        })
    };
}

/// A move or conversion.
///
/// Between equal types it moves all bits. An 8-bit source is its lowest 8 bits as a signed number for any
/// destination: the hardware does not zero-extend bytes, so compilers mask them instead. An 8-bit result is
/// zero-extended in its register. Without a rounding mode all conversions round toward zero. Conversions between floats
/// and bytes are missing: Mesa converts in two steps, by 16 bits, as that `cov` does not compute the conversion of its
/// types.
fn conversion(src: Type, dst: Type, round: Round) -> Option<Kernel> {
    if src == dst {
        return Some(unary!(32 32 |d, a| d.zext(32, 32, a)));
    }
    let is_byte = |ty: Type| matches!(ty, Type::U8 | Type::U8In32);
    if src.is_float() && is_byte(dst) || is_byte(src) && dst.is_float() {
        return None;
    }
    // Only conversions to or from floats round.
    let round = if src.is_float() || dst.is_float() { round } else { Round::Default };
    Some(conversions! { src, dst, round;
        Type::F16 => Float 16,
        Type::F32 => Float 32,
        Type::U16 => Unsigned 16,
        Type::U32 => Unsigned 32,
        Type::S16 => Signed 16,
        Type::S32 => Signed 32,
        Type::U8 | Type::U8In32 => Signed 8,
    })
}

/// The operation by which a reduction or scan combines two values of 16 or 32 bits; `None` if the opcode has none.
///
/// `mul.u` of a reduction, which no single instruction is, is given as `mull.u` or as one of the 24-bit
/// multiplications, and is the whole product.
pub fn combine(opcode: Opcode, half: bool) -> Option<&'static Two> {
    let product = |half: bool| {
        if half { binary!(16 16 16 |d, a, b| d.mul(16, a, b)) } else { binary!(32 32 32 |d, a, b| d.mul(32, a, b)) }
    };
    let kernel = match opcode {
        Opcode::MullU | Opcode::MulU24 | Opcode::MulS24 => product(half),
        _ => {
            let mut data = InstrData::new(opcode);
            let class = RegClass::general(half);
            let src = Src::new(SrcOperand::Undef, class, WriteMask::SCALAR);
            data.srcs.extend([src, src]);
            data.dsts.push(Dst::new(Place::Reg(PhysReg(0)), class, WriteMask::SCALAR));
            kernel(&data).filter(|alu| alu.clamp.is_none())?.kernel
        }
    };
    match kernel {
        Kernel::Two(kernel) => Some(kernel),
        _ => None,
    }
}

/// The effect of the modifiers of source `index`, in place, when it is read; `None` if it has none.
///
/// The instruction decides whether `(neg)` and `(abs)` are those of floats or of integers, and the width.
pub fn modifier(instr: &InstrData, index: usize) -> Option<&'static Modify> {
    let src = &instr.srcs[index];
    let half = src.class.half;
    let is_float = match instr.opcode.info().numeric {
        Numeric::Float => true,
        Numeric::Typed => instr.move_types().is_some_and(|(from, _)| from.is_float()),
        // `sel.b` inverts sign bits.
        Numeric::Bits => instr.opcode.negation() == Mods::NEG,
        Numeric::Int | Numeric::None => false,
    };
    let (neg, abs) = (src.mods.contains(Mods::NEG), src.mods.contains(Mods::ABS));
    if src.mods.contains(Mods::NOT) {
        Some(modifiers::complement(half))
    } else if is_float {
        modifiers::of_float(half, neg, abs)
    } else {
        modifiers::of_integer(half, neg, abs)
    }
}
