//! The interpreter of nir.
//!
//! Decoding gives every component of every value a row (two for 64 bits) and turns the tree of control flow into a list of operations with
//! jumps. Moves are free: `mov`, the `vec`s and unpackings of words are aliases of rows. Rows of constants are filled when a run starts.
//!
//! Control flow is a mask of active lanes. Each if and each loop has its own slot for the lanes that wait in it; if no lane is left, the
//! run jumps to the next point where some may be active. Phis are moves at the ends of the predecessors.
//!
//! Results are computed in all lanes, active or not: in SSA form no active lane reads the result of an inactive lane, with two exceptions,
//! which are blended with the previous value: phis, and values that are defined in a loop and used after it (a lane that has left the loop
//! keeps its value while others iterate).
//!
//! A value's rows follow those of its operands, so that a kernel can borrow its sources and its destination from one array.

mod decode;
pub(crate) mod op;
mod run;
mod watch;

use ir3_compiler::nir::{InstrData, Shader};
use ir3_compiler::target::Target;

use super::trace::Traced;
use super::{Outcome, Scratch, Unsupported};
use crate::semantics::environment::env::{Env, Launch};

/// Returns true if a shader relies on buffers with different names being different, so that its runs are undefined where they are not: see
/// [`Env::has_one_buffer`].
pub fn promises_no_alias(shader: &Shader) -> bool {
    let function = &shader.entry;
    function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => decode::memory::promises(intrinsic),
        _ => false,
    })
}

/// A shader, decoded.
#[derive(Debug)]
pub struct Decoded {
    pub(crate) code: op::DecodedCode,
    pub(crate) launch: Launch,
    /// The number of waves that run it: see [`waves`](super::waves).
    pub(crate) waves: u32,
    /// Bytes of scratch memory per lane; 0 where that is not declared.
    pub(crate) scratch_size: u32,
}

impl Decoded {
    /// Decodes a valid shader, whatever the GPU.
    ///
    /// # Errors
    /// If the shader has an operation that the interpreter does not support; the error names it and its place. A shader that breaks nir's
    /// rules may be refused too.
    pub fn new(shader: &Shader) -> Result<Decoded, Unsupported> {
        decode::decode(shader, decode::Rules::default())
    }

    /// Decodes a valid shader for a GPU. One that reads the byte offsets of storage buffers makes undefined what has another element than
    /// its byte offset says; before a4xx, flat varyings and fetches from other levels than 0 are what Mesa makes of them there.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn of_target(shader: &Shader, target: &Target) -> Result<Decoded, Unsupported> {
        decode::decode(shader, target.into())
    }

    /// Returns true if it loads words of the constant file from computed indices.
    pub fn computes_constants(&self) -> bool {
        self.code.inputs.iter().any(|input| matches!(input, op::EnvironmentInput::Const { offset: Some(_), .. }))
    }

    /// The properties that the environment depends on.
    pub fn launch(&self) -> Launch {
        self.launch
    }

    /// Runs the shader once, for at most `fuel` instructions.
    pub fn run(&self, env: &Env, fuel: u64, scratch: &mut Scratch) -> Outcome {
        run::run(self, env, fuel, scratch)
    }

    /// Runs a shader once, and records the steps of one lane.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn trace(shader: &Shader, env: &Env, fuel: u64, lane: u8) -> Result<Traced, Unsupported> {
        let (decoded, table) = decode::decode_watched(shader)?;
        let mut recorder = watch::Recorder::new(lane, &table);
        let mut scratch = Scratch::default();
        scratch.memory.keep_log(true);
        let outcome = run::run_watched(&decoded, env, fuel, &mut scratch, &mut recorder);
        Ok(Traced { outcome, trace: recorder.finish() })
    }
}

#[cfg(test)]
mod tests;
