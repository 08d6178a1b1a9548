//! Corner cases: the values at which an operation differs from one that is nearly the same.

use crate::support::random::mix;

/// Words at which operations on integers and on floats differ from those that are nearly the same: signs, the ends of
/// ranges, of 16 and of 8 bits, too, halves between two integers, negative floats, infinities and NaNs.
pub const CORNERS: [u32; 24] = [
    0,
    1,
    u32::MAX,
    0xffff_fffd,
    0x7fff_ffff,
    0x8000_0000,
    0x0000_7fff,
    0x0000_8000,
    0x0000_ffff,
    0x0001_0000,
    0x00ff_ffff,
    0x8080_8080,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0xbfc0_0000,
    0xbf80_0000,
    0xc0a0_0000,
    0x42f0_0000,
    0xc2f0_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0000_0001 << 23,
];

/// Corner cases of 16 bits: ends of ranges; 1, -1 and a half, the largest and the smallest floats, infinities and NaNs.
const HALF_CORNERS: [u16; 16] = [
    0, 1, 0xffff, 0x7fff, 0x8000, 0x00ff, 0x0080, 0x3c00, 0xbc00, 0x3800, 0x7bff, 0x0400, 0x03ff, 0x7c00, 0xfc00,
    0x7e00,
];

/// Corner cases of 64 bits: zeros, ends of ranges, of 32 bits, too, values with one word 0, and floats.
const WIDE_CORNERS: [u64; 26] = [
    0,
    0,
    1 << 63,
    1 << 63,
    1,
    u64::MAX,
    i64::MAX as u64,
    1 << 32,
    u32::MAX as u64,
    1 << 31,
    i32::MIN as i64 as u64,
    (i32::MIN as i64 - 1) as u64,
    i32::MAX as u64,
    0xffff_ffff_0000_0000,
    0x7fff_ffff_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x0000_0001_0000_0001,
    0x0010_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0xffff_ffff_ffff_fffe,
];

/// A number of 64 bits that is a corner case, from a hash.
pub fn wide_corner(drawn: u64) -> u64 {
    let drawn = mix(drawn, 0x7769_6465);
    match drawn >> 61 {
        0..=5 => WIDE_CORNERS[drawn as usize % WIDE_CORNERS.len()],
        6 => 1 << (drawn & 63),
        _ => u64::MAX >> (drawn & 63),
    }
}

/// A word that is a corner case, from a hash: of 32 bits, of two numbers of 16 bits, a power of two or a number next to
/// one, a mask, or any bits.
pub fn corner(drawn: u64) -> u32 {
    let drawn = mix(drawn, 0x636f_726e);
    let bits = drawn as u32;
    let half = |shift: u32| u32::from(HALF_CORNERS[(drawn >> shift) as usize % HALF_CORNERS.len()]);
    match drawn >> 60 {
        0..=6 => CORNERS[bits as usize % CORNERS.len()],
        7..=9 => half(0) | half(8) << 16,
        10 => 1 << (bits & 31),
        11 => u32::MAX >> (bits & 31),
        12 => u32::MAX << (bits & 31),
        // Next to a power of two.
        13 => (1u32 << (bits & 31)).wrapping_add(bits >> 8 & 15).wrapping_sub(8),
        _ => bits,
    }
}
