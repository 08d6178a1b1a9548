//! Fuzz target for the lowering of parallel copies.

use crate::check::{Boundary, Engines, Verdict};
use crate::fuzz_targets::TargetFailure;
use crate::fuzz_targets::program::gpu;
use crate::fuzz_targets::stats;
use arbitrary::{Arbitrary, Unstructured};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{Program, text};
use ir3_compiler::pipeline::{self, Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::generator;
use ir3_programs::generator::{Bytes, Choices};
use ir3_semantics::environment::env::Env;
use std::fmt;

/// A program of copies alone, and a GPU.
#[derive(Clone)]
pub struct CopyInput {
    /// The program, in register form.
    pub program: Program,
    /// The GPU.
    pub target: Target,
}

impl CopyInput {
    /// Decodes a byte string: the GPU, then the generator's choices.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut choices = Bytes::new(bytes);
        let target = gpu(choices.byte());
        Self { program: generator::copies(&mut choices, &target), target }
    }
}

impl<'a> Arbitrary<'a> for CopyInput {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let bytes = u.bytes(u.len())?;
        let input = Self::from_bytes(bytes);
        stats::count(bytes.len(), input.program.instruction_count());
        Ok(input)
    }
}

impl fmt::Debug for CopyInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "// GPU: {}", self.target.name)?;
        f.write_str(&text::write(&self.program))
    }
}

/// Lowers the copies, and runs the program before and after.
///
/// # Errors
/// If the pass refuses the program, or its result is invalid or leaves another value in a register.
pub fn parallel_copy(input: &CopyInput) -> Result<bool, TargetFailure> {
    parallel_copy_with(input, &mut |_| {})
}

/// Like [`parallel_copy`], with a bug planted after the pass.
///
/// # Errors
/// If the pass refuses the program, or its result is invalid or leaves another value in a register.
pub fn parallel_copy_with(input: &CopyInput, plant: &mut dyn FnMut(&mut Program)) -> Result<bool, TargetFailure> {
    let stage = Stage::LowerCopies;
    let mut after = input.program.clone();
    pipeline::run_stage(stage, &mut after, &input.target, &Options::default())
        .map_err(|error| TargetFailure::new(format_args!("{stage} refuses"), error))?;
    plant(&mut after);
    if let Err(violations) = validate(&after, &input.target, Form::Machine)
        && let Some(violation) = violations.first()
    {
        return Err(TargetFailure::new(format_args!("{stage} breaks a rule"), violation));
    }
    let (before, after) = (ProgramRef::Ir3(&input.program), ProgramRef::Ir3(&after));
    let boundary = Boundary { follows: false, ..Boundary::of_stage(stage, before, after) };
    // Only the constant file of the environment is read: one environment is enough.
    match Engines::interpreter().judge(&boundary, &input.target, &[Env::from_seed(1)]).verdict {
        Verdict::Tested { .. } | Verdict::Proved { .. } => {
            stats::compared();
            Ok(true)
        }
        Verdict::Refuted(refutation) => Err(TargetFailure::new(format_args!("{stage} refuted"), refutation.difference)),
        Verdict::Unknown(why) => Err(TargetFailure::new(stage, why)),
    }
}
