//! `float_controls_execution_mode`: the requirements of a shader's header on its float operations.
//!
//! Arithmetic rounds to nearest even here and on the machine. Conversions differ: without a rounding mode in the
//! header, nir leaves the rounding of a plain conversion (`f2f16`, `f2f32` of 64 bits, `i2f*`, `u2f*`) open, and the
//! machine's `cov` rounds toward zero unless it carries a rounding mode. So an open conversion has the machine's
//! rounding, in every engine and in the code that selection emits, and one under `ROUNDING_MODE_RTE_*` rounds to
//! nearest even.
//!
//! Signed zeros, infinities and NaNs are always preserved, so the bits that require this change nothing. The machine flushes denormals of
//! binary16 and binary32, as Mesa's drivers say (`shaderDenormFlushToZeroFloat32`), so the bits that require that change nothing, either:
//! proofs about floats assume that there are none (`denormals-kept`). Modes that the machine lacks (rounding of arithmetic toward zero,
//! denormals that are kept in binary16 and binary32) are refused by the name of their bit.

use super::Info;

/// The rounding of plain conversions, by the format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FloatControls {
    /// `ROUNDING_MODE_RTE_*` for 16, 32 and 64 bits.
    even: [bool; 3],
}

/// An execution mode that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlsError {
    /// The header's text is not a number.
    #[error("float_controls_execution_mode: {0:?} is no number")]
    NotANumber(String),
    /// The machine does not support the mode.
    #[error("float_controls_execution_mode: {0} is not supported")]
    Unsupported(String),
}

/// The names of the bits; each name covers three bits, for 16, 32 and 64 bits.
const NAMES: [&str; 7] = [
    "SIGNED_ZERO_PRESERVE",
    "INF_PRESERVE",
    "NAN_PRESERVE",
    "DENORM_PRESERVE",
    "DENORM_FLUSH_TO_ZERO",
    "ROUNDING_MODE_RTE",
    "ROUNDING_MODE_RTZ",
];

const RTE: usize = 5;

/// Returns true if a mode needs no action: the first three always hold, and denormals are flushed but those of 64 bits.
fn is_given(name: usize, width: usize) -> bool {
    name < 3 || name == 3 && width == 2 || name == 4 && width < 2
}

/// The key of the header line.
const KEY: &str = "float_controls_execution_mode";

fn mode_of(info: &Info) -> Result<u32, ControlsError> {
    let Some(text) = info.get(KEY) else { return Ok(0) };
    let text = text.trim();
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| ControlsError::NotANumber(text.to_owned()))
}

impl FloatControls {
    /// The rounding of all conversions is open.
    pub const OPEN: Self = Self { even: [false; 3] };

    /// All conversions round to nearest even.
    pub const EVEN: Self = Self { even: [true; 3] };

    /// Reads the execution mode of a header.
    ///
    /// # Errors
    /// Names a mode that is not supported.
    pub fn of(info: &Info) -> Result<Self, ControlsError> {
        let mode = mode_of(info)?;
        let mut controls = Self::OPEN;
        for bit in (0..32).filter(|bit| mode >> bit & 1 != 0) {
            let (name, width) = (bit / 3, bit % 3);
            match NAMES.get(name) {
                _ if is_given(name, width) => {}
                Some(_) if name == RTE => controls.even[width] = true,
                Some(text) => return Err(ControlsError::Unsupported(format!("{text}_FP{}", 16 << width))),
                None => return Err(ControlsError::Unsupported(format!("bit {bit}"))),
            }
        }
        Ok(controls)
    }

    /// Makes the header of a shader require round-to-nearest-even for plain conversions to floats of `bits` bits.
    ///
    /// # Errors
    /// If the header has a mode that is not a number.
    pub fn require_even(info: &mut Info, bits: u8) -> Result<(), ControlsError> {
        let width = match bits {
            16 => 0,
            32 => 1,
            _ => 2,
        };
        let text = format!("{:#010x}", mode_of(info)? | 1 << (3 * RTE + width));
        match info.other.iter_mut().find(|(key, _)| key == KEY) {
            Some((_, mode)) => *mode = text,
            None => info.other.push((KEY.to_owned(), text)),
        }
        Ok(())
    }

    /// Returns true if plain conversions to floats of `bits` bits round to nearest even.
    pub fn rounds_to_even(self, bits: u8) -> bool {
        match bits {
            16 => self.even[0],
            32 => self.even[1],
            _ => self.even[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controls(text: &str) -> Result<FloatControls, ControlsError> {
        let mut info = Info::default();
        info.other.push(("float_controls_execution_mode".to_owned(), text.to_owned()));
        FloatControls::of(&info)
    }

    #[test]
    fn a_rounding_mode_is_that_of_its_format() {
        assert_eq!(FloatControls::of(&Info::default()), Ok(FloatControls::OPEN));
        // Mesa prints this mode for OpenCL kernels: zeros, infinities and NaNs of 16 bits are preserved.
        assert_eq!(controls("0x00000049"), Ok(FloatControls::OPEN));
        let sixteen = controls("0x00008000").unwrap();
        assert_eq!([16, 32, 64].map(|bits| sixteen.rounds_to_even(bits)), [true, false, false]);
        assert_eq!(controls("0x00038000"), Ok(FloatControls::EVEN));
    }

    #[test]
    fn a_mode_can_be_required() {
        let mut info = Info::default();
        FloatControls::require_even(&mut info, 32).unwrap();
        assert_eq!(info.get(KEY), Some("0x00010000"));
        FloatControls::require_even(&mut info, 16).unwrap();
        assert_eq!(info.other.len(), 1);
        assert_eq!(
            [16, 32, 64].map(|bits| FloatControls::of(&info).unwrap().rounds_to_even(bits)),
            [true, true, false]
        );
    }

    #[test]
    fn what_the_machine_cannot_do_is_refused_by_name() {
        let refused = |text: &str| controls(text).unwrap_err().to_string();
        assert!(refused("0x00080000").contains("ROUNDING_MODE_RTZ_FP32"));
        assert!(refused("0x00004000").contains("DENORM_FLUSH_TO_ZERO_FP64"));
        assert!(refused("0x00000400").contains("DENORM_PRESERVE_FP32"));
        assert!(refused("0x00200000").contains("bit 21"));
        assert!(refused("even").contains("\"even\" is no number"));
    }
}
