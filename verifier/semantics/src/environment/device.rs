//! The rules of runs that are compared with a device of Vulkan.

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRules {
    /// The bytes of each storage buffer.
    pub buffer_bytes: u32,
    /// With modes, whatever the specification of Vulkan leaves open is undefined in the run: results of operations that are not correctly
    /// rounded, bits of NaNs, denormals that may be flushed, shared memory before it is written. Without, the run has one of the results.
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
