//! Floats.

/// Addition of binary32.
#[inline]
pub fn add32(a: u32, b: u32) -> u32 {
    canonical32(f32::from_bits(a) + f32::from_bits(b))
}

/// Minimum of binary32.
#[inline]
pub fn min32(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    if x.is_nan() {
        return canonical32(y);
    }
    if y.is_nan() || x < y || x == y && a >> 31 != 0 { a } else { b }
}

/// Maximum of binary32.
#[inline]
pub fn max32(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    if x.is_nan() {
        return canonical32(y);
    }
    if y.is_nan() || x > y || x == y && a >> 31 == 0 { a } else { b }
}

#[inline(always)]
fn canonical32(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }
}

/// `p0 + p1 i + p2 j` as fragment inputs are interpolated.
#[inline]
pub fn interpolate(p0: u32, p1: u32, p2: u32, i: u32, j: u32) -> u32 {
    let [p0, p1, p2, i, j] = [p0, p1, p2, i, j].map(f32::from_bits);
    canonical32(p2.mul_add(j, p1.mul_add(i, p0)))
}

/// binary32 to binary16, to nearest even.
#[inline]
pub fn f32_to_f16(bits: u32) -> u32 {
    let x = f32::from_bits(bits);
    if x.is_nan() { 0x7e00 } else { half::f16::from_f32(x).to_bits().into() }
}

/// Subtraction of binary32.
#[inline]
pub fn sub32(a: u32, b: u32) -> u32 {
    canonical32(f32::from_bits(a) - f32::from_bits(b))
}

/// Subtraction of binary16.
#[inline]
pub fn sub16(a: u32, b: u32) -> u32 {
    let [a, b] = [a, b].map(|bits| half::f16::from_bits(bits as u16).to_f32());
    // The difference of two binary16 is exact in binary32 but for its rounding, which no second one can make worse.
    f32_to_f16((a - b).to_bits())
}
