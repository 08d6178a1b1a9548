//! The values of all lanes of a wave.

/// The number of lanes of a wave.
pub const LANES: usize = 64;

/// The mask of all lanes.
pub const ALL_LANES: u64 = u64::MAX;

/// One component of a value in every lane; values of fewer than 32 bits are zero-extended, booleans are 0 or 1.
pub type Row = [u32; LANES];

/// The same bits in every lane.
#[inline]
pub fn splat(bits: u32) -> Row {
    [bits; LANES]
}
