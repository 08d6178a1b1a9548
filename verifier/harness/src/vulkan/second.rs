//! A second device for a program on which a device and the interpreter differ.

use super::oracle::{Verdict, observe};
use ir3_compiler::nir::Shader;
use ir3_programs::vulkan::{Device, DeviceError};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;

/// The result of a second device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Second {
    /// Device, driver and version.
    pub device: String,
    /// The sides that agree, or the reason why that is not known.
    pub agreement: String,
}

impl Second {
    /// Executes the program of a failure on another device.
    ///
    /// # Errors
    /// If that device is gone.
    pub fn of(device: &mut Device, shader: &Shader, env: &Env, first: &Verdict) -> Result<Self, DeviceError> {
        let seen = observe(device, shader, env, None, &mut Scratch::default())?;
        Ok(Self { device: device.name().to_owned(), agreement: agreement(first, &seen.verdict) })
    }
}

/// The sides that agree: the interpreter, and the devices with these verdicts. The programs of two devices may differ,
/// as their capabilities do: words are compared by their places.
fn agreement(first: &Verdict, second: &Verdict) -> String {
    match (first, second) {
        (_, Verdict::Equal) => "it agrees with the interpreter".to_owned(),
        (Verdict::Differs(count, words), Verdict::Differs(same, others)) => {
            let is_same =
                count == same && words.iter().zip(others).all(|(a, b)| (a.place, a.actual) == (b.place, b.actual));
            match is_same {
                true => "it agrees with the first device".to_owned(),
                false => format!("it differs from both: {second}"),
            }
        }
        (first, second) if first.is_like(second) => format!("the same fault: {second}"),
        (_, second) => second.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{Difference, Place};
    use super::*;

    #[test]
    fn the_sides_that_agree_are_named() {
        let differs = |actual| {
            let place = Place::Color { location: 0, lane: 1, component: 2 };
            Verdict::Differs(1, vec![Difference { place, expected: 5, actual, open: 0, is_stored: true }])
        };
        assert_eq!(agreement(&differs(6), &Verdict::Equal), "it agrees with the interpreter");
        assert_eq!(agreement(&differs(6), &differs(6)), "it agrees with the first device");
        assert!(agreement(&differs(6), &differs(7)).starts_with("it differs from both: 1 word"));
        assert!(agreement(&differs(6), &Verdict::NothingCompared).contains("open"));
    }
}
