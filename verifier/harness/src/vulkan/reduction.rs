//! Reduces a program while the device and the interpreter differ on it.
//!
//! The reducer works on the program before it is prepared: each candidate is prepared anew, so it has no access beyond
//! a buffer and no race.

use super::oracle::{Observation, Verdict, observe};
use crate::reduce::{self, Options, Progress};
use ir3_compiler::nir::Shader;
use ir3_programs::vulkan::{Device, DeviceError};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use ir3_semantics::support::panics::catch;

/// A reduced program.
pub struct Reduced {
    /// The program.
    pub shader: Shader,
    /// Its comparison.
    pub seen: Observation,
    /// No known step makes it smaller.
    pub minimal: bool,
}

/// Reduces a program. `None` if it does not fail again. `progress` returns false to stop.
///
/// # Errors
/// If the device is gone.
pub fn reduce(
    device: &mut Device,
    shader: &Shader,
    env: &Env,
    verdict: &Verdict,
    candidates: u64,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Option<Reduced>, DeviceError> {
    let (mut scratch, mut gone) = (Scratch::default(), None);
    let mut same = |candidate: &Shader| {
        if gone.is_some() {
            return false;
        }
        match catch(|| observe(device, candidate, env, None, &mut scratch)) {
            Ok(Ok(seen)) => seen.verdict.is_like(verdict),
            Ok(Err(error)) => {
                gone = Some(error);
                false
            }
            Err(_) => false,
        }
    };
    let options = Options { candidates: Some(candidates), checkpoint: None };
    // There is no checkpoint that could be wrong.
    let Ok(reduced) = reduce::run(shader, &mut same, &options, progress) else { return Ok(None) };
    if let Some(error) = gone {
        return Err(error);
    }
    if !reduced.reproduced {
        return Ok(None);
    }
    let seen = observe(device, &reduced.program, env, None, &mut scratch)?;
    Ok(seen.verdict.is_like(verdict).then_some(Reduced { shader: reduced.program, seen, minimal: reduced.minimal }))
}
