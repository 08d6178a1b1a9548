//! The interpreter of nir.
//!
//! Decoding gives every component of every value a row (two for 64 bits) and turns the tree of control flow into a list
//! of operations with jumps. Moves are free: `mov`, the `vec`s and unpackings of words are aliases of rows. Rows of
//! constants are filled when a run starts.
//!
//! Control flow is a mask of active lanes. Each if and each loop has its own slot for the lanes that wait in it; if no
//! lane is left, the run jumps to the next point where some may be active. Phis are moves at the ends of the
//! predecessors.
//!
//! Results are computed in all lanes, active or not: in SSA form no active lane reads the result of an inactive lane,
//! with two exceptions, which are blended with the previous value: phis, and values that are defined in a loop and used
//! after it (a lane that has left the loop keeps its value while others iterate).
//!
//! A value's rows follow those of its operands, so that a kernel can borrow its sources and its destination from one
//! array.

mod decode;
#[expect(missing_docs, reason = "fields and variants have the names of the operands and operations of nir")]
pub mod op;
mod run;
mod uses;
mod watch;

pub use run::{DENORMALS, has_error, is_open};

use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{InstrData, Shader};
use ir3_compiler::target::Target;

use super::trace::Traced;
use super::{OperationSite, Outcome, Scratch, Unsupported};
use crate::environment::aliases::MemoryName;
use crate::environment::env::{Env, Launch};
use crate::environment::memory::{AccessKind, OrderedCode, Space};
use crate::pair::PairFacts;
use std::collections::BTreeSet;

/// The memories that a shader promises to alias no other one; its runs are undefined in an environment where they do:
/// see [`Env::keeping`]. All of them if the shader cannot be decoded.
pub fn unaliased(shader: &Shader) -> BTreeSet<MemoryName> {
    let function = &shader.entry;
    let promises = function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => decode::memory::promises(intrinsic),
        _ => false,
    });
    if !promises {
        return BTreeSet::new();
    }
    Decoded::new(shader).map_or_else(|_| Space::ALL.map(MemoryName::all).into(), |decoded| decoded.unaliased())
}

/// A shader, decoded.
#[derive(Debug)]
pub struct Decoded {
    /// The operations, with their tables.
    pub code: op::DecodedCode,
    /// The launch.
    pub launch: Launch,
    /// The number of waves that run it: see [`waves`](super::waves).
    pub(crate) waves: u32,
    /// Bytes of scratch memory per lane; 0 where that is not declared.
    pub scratch_size: u32,
    /// The facts about the pair that its runs are compared in.
    pub(crate) facts: PairFacts,
}

impl Decoded {
    /// Decodes a valid shader, for any GPU.
    ///
    /// # Errors
    /// If the shader has an operation that the interpreter does not support; the error names it and its place. A shader
    /// that breaks nir's rules may be refused too.
    pub fn new(shader: &Shader) -> Result<Decoded, Unsupported> {
        decode::decode(shader, decode::Rules::default())
    }

    /// Decodes a valid shader for a GPU. If the GPU reads the byte offsets of storage buffers, an access is undefined
    /// whose byte offset names another element; before a4xx, flat varyings and fetches from other levels than 0 have
    /// the meaning of Mesa's translation.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn of_target(shader: &Shader, target: &Target) -> Result<Decoded, Unsupported> {
        decode::decode(shader, target.into())
    }

    /// The promises that the flags of its accesses make about resources.
    pub fn promises(&self) -> &[String] {
        &self.code.promised
    }

    /// The memories that it promises to alias no other one, as [`unaliased`].
    pub fn unaliased(&self) -> BTreeSet<MemoryName> {
        self.code.unaliased.iter().map(|&(name, _)| name).collect()
    }

    /// Returns true if it has a preamble, which one wave of a draw runs.
    pub fn has_preamble(&self) -> bool {
        self.code.inputs.iter().any(|input| matches!(input, op::EnvironmentInput::RunsPreamble))
    }

    /// Returns the shader as one of a pair.
    #[must_use]
    pub fn in_pair(self, facts: PairFacts) -> Self {
        Self { facts, ..self }
    }

    /// Returns true if it loads words of the constant file from computed indices.
    pub fn computes_constants(&self) -> bool {
        self.code.inputs.iter().any(|input| matches!(input, op::EnvironmentInput::Const { offset: Some(_), .. }))
    }

    /// Returns true if lanes of a wave see each other, or how many they are.
    pub fn sees_subgroups(&self) -> bool {
        let sees = |input: &op::EnvironmentInput| {
            let op::EnvironmentInput::System(value, ..) = input else { return false };
            use SystemValue as S;
            matches!(value, S::SubgroupSize | S::SubgroupInvocation | S::SubgroupId | S::SubgroupIdShift)
        };
        !self.code.lanes.is_empty() || self.code.inputs.iter().any(sees)
    }

    /// Returns true if the lanes of a quad see each other where a texture is sampled.
    pub fn has_implicit_derivatives(&self) -> bool {
        self.code.textures.iter().any(|texture| texture.derivatives)
    }

    /// Its accesses to memory that other waves see, barriers and fences, in the order of the code.
    pub fn ordered_code(&self) -> Vec<OrderedCode> {
        let access = |number: u32| {
            let access = &self.code.accesses[number as usize];
            let kind = match access.action {
                op::Action::Load => AccessKind::Load,
                op::Action::Store => AccessKind::Store,
                op::Action::Atomic { .. } => AccessKind::Atomic,
                op::Action::CopyToConsts { .. } | op::Action::Size => return None,
            };
            let space = Space::of(access.space).filter(|&space| space != Space::Scratch)?;
            Some(OrderedCode::Access { site: access.origin, kind, space, volatile: access.volatile })
        };
        let code = self.code.ops.iter().zip(0..).filter_map(|(op, site)| match *op {
            op::DecodedOp::Access(number) => access(number),
            op::DecodedOp::Sync(sync) => Some(OrderedCode::Sync { site, sync }),
            _ => None,
        });
        code.collect()
    }

    /// The position of an access, by the number that a trace has.
    pub fn site(&self, number: u32) -> Option<OperationSite> {
        self.code.origins.get(number as usize).cloned()
    }

    /// The properties that the environment depends on.
    pub fn launch(&self) -> Launch {
        self.launch
    }

    /// Runs the shader once, for at most `fuel` instructions.
    pub fn run(&self, env: &Env, fuel: u64, scratch: &mut Scratch) -> Outcome {
        run::run(self, env, fuel, scratch)
    }

    /// Runs a shader of a pair once, and records the steps of one lane.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn trace(shader: &Shader, facts: PairFacts, env: &Env, fuel: u64, lane: u8) -> Result<Traced, Unsupported> {
        let (decoded, table) = decode::decode_watched(shader)?;
        let decoded = decoded.in_pair(facts);
        let mut recorder = watch::Recorder::new(lane, &table);
        let mut scratch = Scratch::default();
        scratch.memory.keep_log(true);
        let outcome = run::run_watched(&decoded, env, fuel, &mut scratch, &mut recorder);
        Ok(Traced { outcome, trace: recorder.finish() })
    }
}

#[cfg(test)]
mod tests;
