//! The rules of runs that are compared with a device of Vulkan: the modes of floats, and the sizes and contents of
//! resources.

use super::Binding;
use super::env::Env;
use crate::support::random::hash;
use ir3_compiler::nir::ImageDim;
use serde::{Deserialize, Serialize};

/// Texels of a texture in each dimension, and its layers. It has one level.
pub const TEXTURE_SIDE: u32 = 8;
/// Rows, slices and layers of an image.
const IMAGE_SIDE: u32 = 4;

/// The sizes of an image of a width, by coordinate; 1 after its last coordinate.
#[must_use]
pub const fn image_extent(dim: ImageDim, is_array: bool, width: u32) -> [u32; 3] {
    match (dim, is_array) {
        (ImageDim::Dim1D | ImageDim::Buf, false) => [width, 1, 1],
        (ImageDim::Dim1D | ImageDim::Buf, true) | (ImageDim::Dim2D | ImageDim::Rect, false) => [width, IMAGE_SIDE, 1],
        _ => [width, IMAGE_SIDE, IMAGE_SIDE],
    }
}

/// A component of a texel of a texture: any word, or a float that has a half of the same value and is no zero.
#[must_use]
pub fn texel(env: &Env, binding: Binding, cell: u32, component: u32, is_float: bool) -> u32 {
    let word = hash(&[env.seed ^ 0x0064_7465_786c, binding.bits(), cell.into(), component.into()]);
    if !is_float {
        return (word >> 16) as u32;
    }
    let magnitude = 1 + (word >> 20) as u32 % 2047;
    let value = magnitude as f32 / (1 << (word % 7)) as f32;
    (if word >> 60 & 1 == 0 { value } else { -value }).to_bits()
}

/// The modes of floats that a device guarantees, by width: 16, 32 and 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatModes {
    /// Results that are correctly rounded are rounded to nearest even.
    pub rounds_to_even: [bool; 3],
    /// Denormals are kept.
    pub keeps_denormals: [bool; 3],
    /// Signs of zeros, infinities and NaNs are kept.
    pub keeps_specials: [bool; 3],
}

/// The position of a width in lists of modes.
pub const fn width_index(bits: u8) -> usize {
    match bits {
        0..=16 => 0,
        17..=32 => 1,
        _ => 2,
    }
}

/// The rules of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRules {
    /// The bytes of each storage buffer.
    pub buffer_bytes: u32,
    /// The texels in a row of each storage image.
    #[serde(default)]
    pub image_width: u32,
    /// With modes, whatever the specification of Vulkan leaves open is undefined in the run: results of operations
    /// that are not correctly rounded, bits of NaNs, denormals that may be flushed, shared memory before it is
    /// written. Without, the run has one of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<FloatModes>,
}

impl DeviceRules {
    /// The same rules, for the run that has a result for everything.
    #[must_use]
    pub const fn loose(self) -> Self {
        Self { modes: None, ..self }
    }
}
