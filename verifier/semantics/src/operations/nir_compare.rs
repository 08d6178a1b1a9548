//! The comparisons of nir, each with results of 1, 8, 16 and 32 bits.

use ir3_compiler::nir::Op;

use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::domain::{Domain, Format};
use crate::arithmetic::float;
use crate::arithmetic::integer;
use crate::arithmetic::rows::{LANES, Row};
use crate::operations::Words;
use crate::operations::kernels;
use crate::operations::kernels::{binary, bit_compare, float_compare, int_compare, unary};
use crate::operations::values::{Kernel, One, Rows, Two};
use crate::terms::{Term, Terms};

macro_rules! families {
    ($op:expr, $width:expr; $($family:ident $one:ident $eight:ident $sixteen:ident $full:ident
        |$p:ident, $d:ident, $a:ident, $b:ident| $e:expr;)*) => {
        match $op {
            $(
                Op::$one => $family!(1, $width, $p, |$d, $a, $b| $e),
                Op::$eight => $family!(8, $width, $p, |$d, $a, $b| $e),
                Op::$sixteen => $family!(16, $width, $p, |$d, $a, $b| $e),
                Op::$full => $family!(32, $width, $p, |$d, $a, $b| $e),
            )*
            Op::Fisnormal => float_compare!(1, $width, F, |d, a| float::is_normal(d, F, a)),
            Op::Fisfinite => float_compare!(1, $width, F, |d, a| float::is_finite(d, F, a)),
            Op::Fisfinite32 => float_compare!(32, $width, F, |d, a| float::is_finite(d, F, a)),
            _ => return None,
        }
    };
}

/// The kernel of a comparison of operands of `width` bits.
pub(super) fn kernel(op: Op, width: u8) -> Option<Kernel> {
    Some(families! { op, width;
        float_compare Flt Flt8 Flt16 Flt32 |F, d, a, b| d.flt(F, a, b);
        float_compare Fge Fge8 Fge16 Fge32 |F, d, a, b| float::fge(d, F, a, b);
        float_compare Fltu Fltu8 Fltu16 Fltu32 |F, d, a, b| {
            let ge = float::fge(d, F, a, b);
            d.not(1, ge)
        };
        float_compare Fgeu Fgeu8 Fgeu16 Fgeu32 |F, d, a, b| {
            let less = d.flt(F, a, b);
            d.not(1, less)
        };
        float_compare Feq Feq8 Feq16 Feq32 |F, d, a, b| d.feq(F, a, b);
        float_compare Fneu Fneu8 Fneu16 Fneu32 |F, d, a, b| float::fneu(d, F, a, b);
        float_compare Fequ Fequ8 Fequ16 Fequ32 |F, d, a, b| {
            let (unordered, equal) = (float::funord(d, F, a, b), d.feq(F, a, b));
            d.or(1, unordered, equal)
        };
        float_compare Fneo Fneo8 Fneo16 Fneo32 |F, d, a, b| {
            let (less, greater) = (d.flt(F, a, b), d.flt(F, b, a));
            d.or(1, less, greater)
        };
        float_compare Funord Funord8 Funord16 Funord32 |F, d, a, b| float::funord(d, F, a, b);
        float_compare Ford Ford8 Ford16 Ford32 |F, d, a, b| {
            let unordered = float::funord(d, F, a, b);
            d.not(1, unordered)
        };
        int_compare Ilt Ilt8 Ilt16 Ilt32 |W, d, a, b| d.slt(W, a, b);
        int_compare Ige Ige8 Ige16 Ige32 |W, d, a, b| integer::ige(d, W, a, b);
        int_compare Ieq Ieq8 Ieq16 Ieq32 |W, d, a, b| d.eq(W, a, b);
        int_compare Ine Ine8 Ine16 Ine32 |W, d, a, b| integer::ine(d, W, a, b);
        int_compare Ult Ult8 Ult16 Ult32 |W, d, a, b| d.ult(W, a, b);
        int_compare Uge Uge8 Uge16 Uge32 |W, d, a, b| integer::uge(d, W, a, b);
        bit_compare Bitnz Bitnz8 Bitnz16 Bitnz32 |W, d, a, b| integer::bitnz(d, W, a, b);
        bit_compare Bitz Bitz8 Bitz16 Bitz32 |W, d, a, b| {
            let set = integer::bitnz(d, W, a, b);
            d.not(1, set)
        };
    })
}
