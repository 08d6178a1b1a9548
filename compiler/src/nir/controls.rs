//! `float_controls_execution_mode`: the requirements of a shader's header on its float operations.
//!
//! Arithmetic rounds to nearest even here and on the machine. Conversions differ: without a rounding mode in the
//! header, nir leaves the rounding of a plain conversion (`f2f16`, `f2f32` of 64 bits, `i2f*`, `u2f*`) open, and the
//! machine's `cov` rounds toward zero unless it carries a rounding mode. So an open conversion has the machine's
//! rounding, in every engine and in the code that selection emits, and one under `ROUNDING_MODE_RTE_*` rounds to
//! nearest even.
//!
//! Signed zeros, infinities and NaNs are always preserved, so modes that require this have no effect. The machine
//! flushes denormals of binary16 and binary32 (Mesa's drivers report `shaderDenormFlushToZeroFloat32`), so modes that
//! require flushing have no effect either; proofs about floats assume that there are no denormals (`denormals-kept`).
//! Modes that the machine does not support (rounding of arithmetic toward zero, preserved denormals in binary16 and
//! binary32) are errors, which name the bit.

use super::Info;

/// The rounding of plain conversions, by the format of the result, and of the product of a multiply-add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FloatControls {
    /// `ROUNDING_MODE_RTE_*` for 16, 32 and 64 bits.
    even: [bool; 3],
    /// The machine does not round the product of a multiply-add.
    fused: bool,
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
const NAMES: &[&str] = &[
    "SIGNED_ZERO_PRESERVE",
    "INF_PRESERVE",
    "NAN_PRESERVE",
    "DENORM_PRESERVE",
    "DENORM_FLUSH_TO_ZERO",
    "ROUNDING_MODE_RTE",
    "ROUNDING_MODE_RTZ",
];

/// The names of the bits since Mesa 26.0, which moved the modes that preserve something to the operations.
const NAMES_SINCE_26: &[&str] = &["DENORM_PRESERVE", "DENORM_FLUSH_TO_ZERO", "ROUNDING_MODE_RTE", "ROUNDING_MODE_RTZ"];

/// The names of the bits in Mesa 23.3 and 24.0.
const NAMES_OF_24_0: &[&str] = &[
    "DENORM_PRESERVE",
    "DENORM_FLUSH_TO_ZERO",
    "SIGNED_ZERO_PRESERVE",
    "INF_PRESERVE",
    "NAN_PRESERVE",
    "ROUNDING_MODE_RTE",
    "ROUNDING_MODE_RTZ",
];

/// The names of the bits until Mesa 23.2.
const NAMES_UNTIL_23_2: &[&str] = &[
    "DENORM_PRESERVE",
    "DENORM_FLUSH_TO_ZERO",
    "SIGNED_ZERO_INF_NAN_PRESERVE",
    "ROUNDING_MODE_RTE",
    "ROUNDING_MODE_RTZ",
];

/// The names of the bits in the versions of Mesa that print such a header: since 26.0 it has the limits of the subgroup
/// size, until 24.0 (and maybe longer) a SHA-1 of the source.
fn names(info: &Info) -> &'static [&'static [&'static str]] {
    if info.get("max_subgroup_size").is_some() {
        &[NAMES_SINCE_26]
    } else if info.get("source_sha1").is_some() {
        &[NAMES, NAMES_OF_24_0, NAMES_UNTIL_23_2]
    } else {
        &[NAMES]
    }
}

const RTE: &str = "ROUNDING_MODE_RTE";

/// Returns true if a mode is always satisfied: zeros, infinities and NaNs are preserved, and denormals of less than 64
/// bits are flushed.
fn is_given(name: &str, width: usize) -> bool {
    match name {
        "DENORM_PRESERVE" => width == 2,
        "DENORM_FLUSH_TO_ZERO" => width < 2,
        _ => name.ends_with("PRESERVE"),
    }
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
    /// Controls that leave the rounding of all conversions open.
    pub const OPEN: Self = Self { even: [false; 3], fused: false };

    /// Controls under which all conversions round to nearest even.
    pub const EVEN: Self = Self { even: [true; 3], fused: false };

    /// Returns the controls for a machine whose multiply-add is fused, or not.
    #[must_use]
    pub const fn with_fused(self, fused: bool) -> Self {
        Self { fused, ..self }
    }

    /// Returns true if `ffma` and `ffma_weak` are fused: nir leaves it to the machine if their product is rounded.
    pub const fn is_fused(self) -> bool {
        self.fused
    }

    /// Reads the execution mode of a header.
    ///
    /// # Errors
    /// If a mode is not supported; the error names it.
    pub fn of(info: &Info) -> Result<Self, ControlsError> {
        let mode = mode_of(info)?;
        // A version that has no name for a bit has not printed it.
        let has_names = |names: &&[&str]| 3 * names.len() >= (u32::BITS - mode.leading_zeros()) as usize;
        let all = names(info);
        let mut known = all.iter().copied().filter(has_names).map(|names| Self::of_mode(mode, names));
        let Some(first) = known.next() else {
            return Err(ControlsError::Unsupported(format!("bit {}", mode.ilog2())));
        };
        match known.all(|other| other == first) {
            true => first,
            false => Err(ControlsError::Unsupported(format!("{mode:#x}, which versions of Mesa number differently,"))),
        }
    }

    /// Reads an execution mode whose bits have these names.
    fn of_mode(mode: u32, names: &[&str]) -> Result<Self, ControlsError> {
        let mut controls = Self::OPEN;
        for bit in (0..u32::BITS as usize).filter(|bit| mode >> bit & 1 != 0) {
            let (name, width) = (bit / 3, bit % 3);
            match names.get(name) {
                Some(name) if is_given(name, width) => {}
                Some(&RTE) => controls.even[width] = true,
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
        let position = names(info)[0].iter().position(|&name| name == RTE).unwrap_or_default();
        let text = format!("{:#010x}", mode_of(info)? | 1 << (3 * position + width));
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
    fn the_bits_are_those_of_the_version() {
        let controls = |text: &str| {
            let mut info = Info::default();
            info.other.push(("max_subgroup_size".to_owned(), "128".to_owned()));
            info.other.push((KEY.to_owned(), text.to_owned()));
            FloatControls::of(&info).map(|controls| [16, 32, 64].map(|bits| controls.rounds_to_even(bits)))
        };
        assert_eq!(controls("0x00000080"), Ok([false, true, false]));
        assert_eq!(controls("0x00000018"), Ok([false; 3]));
        for (mode, name) in
            [("0x00000001", "DENORM_PRESERVE_FP16"), ("0x00000400", "ROUNDING_MODE_RTZ_FP32"), ("0x00001000", "bit 12")]
        {
            assert!(controls(mode).unwrap_err().to_string().contains(name), "{mode}");
        }
        let mut info = Info::default();
        info.other.push(("max_subgroup_size".to_owned(), "128".to_owned()));
        FloatControls::require_even(&mut info, 32).unwrap();
        assert_eq!(info.get(KEY), Some("0x00000080"));
    }

    #[test]
    fn what_versions_number_differently_is_refused() {
        let controls = |text: &str| {
            let mut info = Info::default();
            info.other.push(("source_sha1".to_owned(), "{0x00000000}".to_owned()));
            info.other.push((KEY.to_owned(), text.to_owned()));
            FloatControls::of(&info)
        };
        let even = controls("0x00010000").expect("a bit that Mesa 23.2 does not have, and later ones name alike");
        assert_eq!([16, 32, 64].map(|bits| even.rounds_to_even(bits)), [false, true, false]);
        // A signed zero of 32 bits, or a denormal; denormals that are flushed, or rounding to even.
        for mode in ["0x00000002", "0x00000400"] {
            assert!(controls(mode).unwrap_err().to_string().contains("number differently"), "{mode}");
        }
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
