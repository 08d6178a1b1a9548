//! Tests of the simulation proof on pairs of small compute shaders. Equivalent pairs are proved, different ones are
//! not; the interpreter decides which are which.

mod divergence;
mod forms;
mod memory;
mod undefined;

use ir3_compiler::ir3;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::nir;
use ir3_compiler::target::Target;
use ir3_harness::check::{Verdict, compare_snapshots};
use ir3_programs::divergence::compute_shader;
use ir3_prove::simulation::{Limits, Proof, SimulationFailure, prove};
use ir3_prove::solver::{Budget, Z3};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use std::time::Duration;

fn gpu() -> Target {
    Target::by_name("a660").expect("a GPU")
}

/// The limits of a proof that may take `milliseconds`.
fn limits(milliseconds: u64) -> Limits {
    let query = Budget { rlimit: 400_000, time: Duration::from_millis(500) };
    Limits { query, time: Duration::from_millis(milliseconds), inputs: false }
}

fn proof(before: &Snapshot, after: &Snapshot, limits: &Limits) -> Result<Proof, SimulationFailure> {
    prove(before.into(), after.into(), &gpu(), limits, &mut Z3::default())
}

/// Runs both programs in the environments of these seeds.
fn runs(before: &Snapshot, after: &Snapshot, seeds: impl IntoIterator<Item = u64>) -> Verdict {
    let envs: Vec<Env> = seeds.into_iter().map(Env::from_seed).collect();
    compare_snapshots(before, after, &gpu(), &envs).0
}

/// Returns true if a run refutes the pair.
fn differ(before: &Snapshot, after: &Snapshot, seeds: impl IntoIterator<Item = u64>) -> bool {
    matches!(runs(before, after, seeds), Verdict::Refuted(_))
}

/// A compute shader with registers and `scratch` bytes of scratch memory: see [`compute_shader`].
fn ir3(scratch: u32, blocks: &[(&str, &[usize])]) -> Snapshot {
    let text = compute_shader(scratch, blocks);
    let program = ir3::text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let broken = validate(&program, &gpu(), Form::of(&program)).err();
    assert!(broken.is_none(), "{broken:?}\n{text}");
    Snapshot::Ir3(Box::new(program))
}

/// A compute shader in nir with these lines of the header and this body.
fn nir(header: &str, body: &str) -> Snapshot {
    let text = format!(
        "shader: MESA_SHADER_COMPUTE
{header}
subgroup_size: 1
decl_function main () (entrypoint)

impl main {{
{body}
}}
"
    );
    Snapshot::Nir(Box::new(nir::text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))))
}
