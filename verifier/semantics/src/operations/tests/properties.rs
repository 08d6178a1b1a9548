//! Definitions compared with plain arithmetic, on random values, and exhaustively where there are few.

use ir3_compiler::nir::Op;
use proptest::prelude::*;

use crate::arithmetic::concrete::{Concrete, f16_to_f32, f32_to_f16, f64_to_f32_odd, fma32, signed};
use crate::arithmetic::domain::{Domain, Format, Rounding};
use crate::operations::tests::nir_table::evaluate;

const WIDTHS: [u8; 4] = [8, 16, 32, 64];

/// The domain with the definitions that [`Concrete`] overrides.
struct Plain;

/// Forwards everything but `popcount`, `clz` and `reverse`.
macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl Domain for Plain {
            type V = u64;
            $(fn $name(&mut self, $($arg: $ty),*) -> u64 { Concrete.$name($($arg),*) })*
        }
    };
}

forward! {
    constant(w: u32, bits: u64);
    not(w: u32, a: u64);
    and(w: u32, a: u64, b: u64);
    or(w: u32, a: u64, b: u64);
    xor(w: u32, a: u64, b: u64);
    add(w: u32, a: u64, b: u64);
    sub(w: u32, a: u64, b: u64);
    mul(w: u32, a: u64, b: u64);
    udiv(w: u32, a: u64, b: u64);
    urem(w: u32, a: u64, b: u64);
    shl(w: u32, a: u64, count: u64);
    lshr(w: u32, a: u64, count: u64);
    ashr(w: u32, a: u64, count: u64);
    eq(w: u32, a: u64, b: u64);
    ult(w: u32, a: u64, b: u64);
    slt(w: u32, a: u64, b: u64);
    ite(w: u32, condition: u64, a: u64, b: u64);
    zext(w: u32, to: u32, a: u64);
    sext(w: u32, to: u32, a: u64);
    extract(w: u32, a: u64, low: u32, n: u32);
    concat(w_high: u32, high: u64, w_low: u32, low: u64);
    umul_high(w: u32, a: u64, b: u64);
    smul_high(w: u32, a: u64, b: u64);
    fadd(f: Format, a: u64, b: u64);
    fmul(f: Format, a: u64, b: u64);
    ffma(f: Format, a: u64, b: u64, c: u64);
    fdiv(f: Format, a: u64, b: u64);
    fround(f: Format, rounding: Rounding, a: u64);
    feq(f: Format, a: u64, b: u64);
    flt(f: Format, a: u64, b: u64);
    fle(f: Format, a: u64, b: u64);
    fconvert(from: Format, to: Format, rounding: Rounding, a: u64);
    float_to_int(from: Format, w: u32, signed: bool, rounding: Rounding, a: u64);
    int_to_float(w: u32, signed: bool, to: Format, rounding: Rounding, a: u64);
    function(f: Format, function: crate::arithmetic::domain::Function, a: u64);
    fpow(f: Format, a: u64, b: u64);
}

/// Words among which corner cases are frequent.
fn word() -> impl Strategy<Value = u64> {
    let edges = vec![0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    prop_oneof![
        any::<u64>(),
        any::<u64>().prop_map(|x| x >> 32),
        any::<u64>().prop_map(|x| x >> 56),
        prop::sample::select(edges),
        any::<u64>().prop_map(|x| u64::MAX - (x >> 60)),
        Just(1 << 63),
        (0u32..64).prop_map(|shift| 1 << shift),
    ]
}

/// Bits of binary32 with frequent cancellation and ties in products and sums.
fn float() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        // Few significant bits, and exponents near each other.
        (any::<bool>(), 100u32..150, 0u32..24, any::<u32>()).prop_map(|(sign, exponent, zeros, bits)| {
            u32::from(sign) << 31 | exponent << 23 | (bits & 0x7f_ffff) >> zeros << zeros
        }),
        (0u32..0x0100_0000).prop_map(|bits| bits | (bits & 1) << 31),
        prop::sample::select(vec![0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 1, 0x007f_ffff, 0x7f7f_ffff]),
    ]
}

fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn integers_are_arithmetic(a in word(), b in word(), c in word(), width in prop::sample::select(&WIDTHS[..])) {
        let w = u32::from(width);
        let mask = u64::MAX >> (64 - w);
        let (a, b, c) = (a & mask, b & mask, c & mask);
        let (ua, ub) = (u128::from(a), u128::from(b));
        let (sa, sb, sc) = (i128::from(signed(w, a)), i128::from(signed(w, b)), i128::from(signed(w, c)));
        let (low, high) = (-(1i128 << (w - 1)), (1i128 << (w - 1)) - 1);
        let cut = |x: i128| x as u64 & mask;
        let two = |op: Op| evaluate(op, width, &[vec![a], vec![b]]).unwrap()[0];
        let one = |op: Op| evaluate(op, width, &[vec![a]]).unwrap()[0];
        prop_assert_eq!(two(Op::Iadd), cut(sa + sb));
        prop_assert_eq!(two(Op::Isub), cut(sa - sb));
        prop_assert_eq!(two(Op::Imul), a.wrapping_mul(b) & mask);
        prop_assert_eq!(two(Op::IaddSat), cut((sa + sb).clamp(low, high)));
        prop_assert_eq!(two(Op::IsubSat), cut((sa - sb).clamp(low, high)));
        prop_assert_eq!(two(Op::UaddSat), (ua + ub).min(u128::from(mask)) as u64);
        prop_assert_eq!(two(Op::UsubSat), a.saturating_sub(b));
        prop_assert_eq!(two(Op::UabsIsub), cut((sa - sb).abs()));
        prop_assert_eq!(two(Op::UabsUsub), a.abs_diff(b));
        prop_assert_eq!(two(Op::ImulHigh), cut((sa * sb) >> w));
        prop_assert_eq!(two(Op::UmulHigh), ((ua * ub) >> w) as u64);
        prop_assert_eq!(two(Op::UaddCarry), u64::from(ua + ub > u128::from(mask)));
        prop_assert_eq!(two(Op::UsubBorrow), u64::from(a < b));
        prop_assert_eq!(two(Op::Ihadd), cut((sa + sb) >> 1));
        prop_assert_eq!(two(Op::Uhadd), ((ua + ub) >> 1) as u64);
        prop_assert_eq!(two(Op::Irhadd), cut((sa + sb + 1) >> 1));
        prop_assert_eq!(two(Op::Urhadd), ((ua + ub + 1) >> 1) as u64);
        prop_assert_eq!(two(Op::Idiv), if b == 0 { 0 } else { cut(sa / sb) });
        prop_assert_eq!(two(Op::Irem), if b == 0 { 0 } else { cut(sa % sb) });
        prop_assert_eq!(two(Op::Imod), if b == 0 { 0 } else { cut((sa % sb + sb) % sb) });
        prop_assert_eq!(two(Op::Udiv), a.checked_div(b).unwrap_or(0));
        prop_assert_eq!(two(Op::Umod), a.checked_rem(b).unwrap_or(0));
        prop_assert_eq!(two(Op::Imin), cut(sa.min(sb)));
        prop_assert_eq!(two(Op::Imax), cut(sa.max(sb)));
        prop_assert_eq!(two(Op::Umin), a.min(b));
        prop_assert_eq!(two(Op::Umax), a.max(b));
        prop_assert_eq!(one(Op::Ineg), cut(-sa));
        prop_assert_eq!(one(Op::Iabs), cut(sa.abs()));
        prop_assert_eq!(one(Op::Isign), cut(sa.signum()));
        prop_assert_eq!(one(Op::BitCount), u64::from(a.count_ones()));
        prop_assert_eq!(one(Op::UfindMsb) as i32, if a == 0 { -1 } else { a.ilog2() as i32 });
        prop_assert_eq!(one(Op::FindLsb) as i32, if a == 0 { -1 } else { a.trailing_zeros() as i32 });
        prop_assert_eq!(two(Op::Ilt), u64::from(sa < sb));
        prop_assert_eq!(two(Op::Ige), u64::from(sa >= sb));
        prop_assert_eq!(two(Op::Ult), u64::from(a < b));
        prop_assert_eq!(two(Op::Uge), u64::from(a >= b));
        prop_assert_eq!(two(Op::Ieq), u64::from(a == b));
        let three = |op: Op| evaluate(op, width, &[vec![a], vec![b], vec![c]]).unwrap()[0];
        prop_assert_eq!(three(Op::Iadd3), cut(sa + sb + sc));
        prop_assert_eq!(three(Op::Imad), a.wrapping_mul(b).wrapping_add(c) & mask);
        prop_assert_eq!(three(Op::BitfieldSelect), a & b | !a & c);
        let count = (b & 0xffff_ffff) as u32;
        let shift = |op: Op| evaluate(op, width, &[vec![a], vec![count.into()]]).unwrap()[0];
        let n = count % w;
        prop_assert_eq!(shift(Op::Ishl), a << n & mask);
        prop_assert_eq!(shift(Op::Ushr), a >> n);
        prop_assert_eq!(shift(Op::Ishr), cut(sa >> n));
        let rotated = (u128::from(a) << n | u128::from(a) >> (w - n)) as u64 & mask;
        prop_assert_eq!(shift(Op::Urol), rotated);
        let back = (u128::from(a) >> n | u128::from(a) << (w - n)) as u64 & mask;
        prop_assert_eq!(shift(Op::Uror), back);
    }

    /// The sequences that replace multiplications compute products.
    #[test]
    fn products_from_parts(a in any::<u32>(), b in any::<u32>()) {
        let (x, y) = (u64::from(a), u64::from(b));
        let low = evaluate(Op::UmulLow, 32, &[vec![x], vec![y]]).unwrap();
        let middle = evaluate(Op::ImadshMix16, 32, &[vec![x], vec![y], low]).unwrap();
        let product = evaluate(Op::ImadshMix16, 32, &[vec![y], vec![x], middle]).unwrap();
        prop_assert_eq!(product[0] as u32, a.wrapping_mul(b));
    }

    #[test]
    fn overridden_definitions_are_the_plain_ones(a in word(), w in 1u32..=64) {
        let a = a & u64::MAX >> (64 - w);
        prop_assert_eq!(Plain.popcount(w, a), Concrete.popcount(w, a) & u64::MAX >> (64 - w));
        // A count needs enough bits for the width.
        if w > 7 {
            prop_assert_eq!(Plain.clz(w, a), Concrete.clz(w, a));
        }
        prop_assert_eq!(Plain.reverse(w, a), Concrete.reverse(w, a));
    }

    /// Compared with the fused operation of Rust, which is correctly rounded.
    #[test]
    fn fused_multiplication_rounds_once(a in float(), b in float(), c in float(), tie in 0..3) {
        let [a, b, mut c] = [a, b, c].map(f32::from_bits);
        // Sums that cancel, or are near the midpoint of two floats.
        match tie {
            1 => c = -(a * b),
            2 => c = a * b * 16_777_216.0,
            _ => {}
        }
        prop_assert_eq!(canonical(fma32(a, b, c)), canonical(a.mul_add(b, c)), "{:?} {:?} {:?}", a, b, c);
    }

    /// Compared with the same in binary64 with one rounding by the `half` crate, where binary64 is exact.
    #[test]
    fn half_arithmetic_rounds_once(a in any::<u16>(), b in any::<u16>(), c in any::<u16>()) {
        let [x, y, z] = [a, b, c].map(|bits| half::f16::from_bits(bits).to_f64());
        let [a, b, c] = [a, b, c].map(u64::from);
        // `f16::from_f64` rounds twice where the processor converts by way of binary32. With the intermediate result
        // rounded to odd, the second rounding sees on which side of a tie the number is.
        let odd = |x: f64| {
            let nearest = x as f32;
            let towards_zero = nearest.to_bits() - u32::from(f64::from(nearest).abs() > x.abs());
            if f64::from(nearest) == x { nearest } else { f32::from_bits(towards_zero | 1) }
        };
        let round = |x: f64| if x.is_nan() { 0x7e00 } else { u64::from(half::f16::from_f32(odd(x)).to_bits()) };
        let d = &mut Concrete;
        prop_assert_eq!(d.fadd(Format::F16, a, b), round(x + y));
        // The NaN of a product has its sign.
        let sign = if (x * y).is_nan() { (a ^ b) & 0x8000 } else { 0 };
        prop_assert_eq!(d.fmul(Format::F16, a, b), round(x * y) | sign);
        // The quotient in binary64 is not exact, but has many more than twice the bits.
        prop_assert_eq!(d.fdiv(Format::F16, a, b), round(x / y));
        // The module's text has the reason why binary64 is enough here.
        prop_assert_eq!(d.ffma(Format::F16, a, b, c), round(x * y + z));
    }

    #[test]
    fn rounding_to_odd(bits in any::<u64>()) {
        let x = f64::from_bits(bits);
        let odd = f64_to_f32_odd(x);
        if x.is_nan() {
            prop_assert!(odd.is_nan());
        } else if f64::from(odd) != x {
            prop_assert_eq!(odd.to_bits() & 1, 1, "{:?} to {:?}", x, odd);
            let below = f64::from(f32::from_bits(odd.to_bits() - 1));
            let above = f64::from(f32::from_bits(odd.to_bits() + 1));
            prop_assert!(below.abs() <= x.abs() && x.abs() <= above.abs());
            prop_assert_eq!(odd.is_sign_negative(), x.is_sign_negative());
        }
    }

    #[test]
    fn floats_to_integers_are_casts(bits in float()) {
        let x = f32::from_bits(bits);
        let d = &mut Concrete;
        let mut convert = |w, sign| d.float_to_int(Format::F32, w, sign, Rounding::Zero, bits.into());
        prop_assert_eq!(convert(32, true) as u32, x as i32 as u32);
        prop_assert_eq!(convert(32, false) as u32, x as u32);
        prop_assert_eq!(convert(16, true) as u16, x as i16 as u16);
        prop_assert_eq!(convert(16, false) as u16, x as u16);
        prop_assert_eq!(convert(8, true) as u8, x as i8 as u8);
        prop_assert_eq!(convert(64, true), x as i64 as u64);
    }

    #[test]
    fn integers_to_floats_are_casts(x in any::<u64>(), shift in 0u32..64) {
        let x = x >> shift;
        let d = &mut Concrete;
        let mut convert = |w, sign, f| d.int_to_float(w, sign, f, Rounding::Even, x & u64::MAX >> (64 - w));
        prop_assert_eq!(convert(32, true, Format::F32) as u32, (x as i32 as f32).to_bits());
        prop_assert_eq!(convert(32, false, Format::F32) as u32, (x as u32 as f32).to_bits());
        prop_assert_eq!(convert(64, true, Format::F32) as u32, (x as i64 as f32).to_bits());
        prop_assert_eq!(convert(64, false, Format::F32) as u32, (x as f32).to_bits());
        prop_assert_eq!(convert(64, false, Format::F64), (x as f64).to_bits());
        prop_assert_eq!(convert(16, true, Format::F32) as u32, f32::from(x as i16).to_bits());
        prop_assert_eq!(convert(16, false, Format::F16) as u16, half::f16::from_f32(f32::from(x as u16)).to_bits());
    }
}

#[test]
fn every_half_converts_exactly() {
    for bits in 0..=u16::MAX {
        let expected = half::f16::from_bits(bits);
        let found = f16_to_f32(bits.into());
        if expected.is_nan() {
            assert_eq!(found.to_bits(), 0x7fc0_0000);
            assert_eq!(f32_to_f16(found), 0x7e00);
        } else {
            assert_eq!(found.to_bits(), expected.to_f32().to_bits(), "{bits:#x}");
            assert_eq!(f32_to_f16(found), u32::from(bits));
        }
    }
}

#[test]
fn floats_to_halves_round_to_even() {
    // Every pattern of the sixteen bits above the rounding position, with possible bits below it.
    for high in 0..=u32::from(u16::MAX) {
        for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x8000, 0xffff] {
            let x = f32::from_bits(high << 16 | low);
            let expected = if x.is_nan() { 0x7e00 } else { u32::from(half::f16::from_f32(x).to_bits()) };
            assert_eq!(f32_to_f16(x), expected, "{:#x}", x.to_bits());
        }
    }
}

#[test]
fn directed_rounding_brackets_the_value() {
    let d = &mut Concrete;
    for numerator in -300i32..300 {
        for divisor in [7, 1000, 3_000_000, 400_000_000] {
            let x = f64::from(numerator) / f64::from(divisor);
            let bits = (x as f32).to_bits().into();
            let exact = f64::from(x as f32);
            let mut to = |rounding| {
                let half = d.fconvert(Format::F32, Format::F16, rounding, bits);
                half::f16::from_bits(half as u16).to_f64()
            };
            let (down, up, zero, even) = (to(Rounding::Down), to(Rounding::Up), to(Rounding::Zero), to(Rounding::Even));
            assert!(down <= exact && exact <= up, "{x}");
            assert_eq!(zero, if x < 0.0 { up } else { down }, "{x}");
            assert!(even == down || even == up);
            assert!((even - exact).abs() <= (down - exact).abs() && (even - exact).abs() <= (up - exact).abs());
        }
    }
}
