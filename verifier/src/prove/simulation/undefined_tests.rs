//! What may be made of undefined values: docs/semantics.md. Each case is a source, and targets that it may or may not become.

use super::{Limits, ProgramRef, prove};
use crate::harness::check::{Verdict, compare_snapshots};
use crate::prove::solver::{Budget, Z3};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use ir3_compiler::nir::{self, Shader};
use ir3_compiler::{pipeline, target::Target};
use std::time::Duration;

const LIMITS: Limits = Limits {
    query: Budget { rlimit: 400_000, time: Duration::from_millis(500) },
    time: Duration::from_millis(1500),
    inputs: false,
};

/// Stores `%9`, as some lines make it. `%4` is the lane's number, `%3` and `%5` are undefined, `%6` is 0, `%7` is 1, `%8` is whether the
/// lane's number is 0.
fn shader(lines: &str) -> Shader {
    let text = format!(
        "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {{
    block b0:   // preds:
    32x3   %0 = @load_local_invocation_id
    32     %1 = load_const (0x00000000)
    32     %2 = @bindless_resource_ir3 (%1 (0x0)) (desc_set=0)
    32     %3 = undefined
    32     %4 = mov %0.x
    32     %5 = undefined
    32     %6 = load_const (0x00000000)
    32     %7 = load_const (0x00000001)
    1      %8 = ieq %4, %6
    32    %99 = load_const (0x00000002)
    32    %98 = ishl %4, %99
{lines}
                @store_ssbo_ir3 (%9, %2, %98, %4) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
                // succs: b99
    block b99:
}}
"
    );
    nir::text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn is_proved(source: ProgramRef<'_>, target: ProgramRef<'_>) -> bool {
    let machine = Target::by_name("a660").expect("a GPU");
    let proof = prove(source, target, &machine, &LIMITS, &mut Z3::default());
    proof.is_ok()
}

/// Whether a run differs.
fn differ(source: &str, target: &str) -> bool {
    let machine = Target::by_name("a660").expect("a GPU");
    let [before, after] = [source, target].map(|lines| Snapshot::Nir(Box::new(shader(lines))));
    let envs: Vec<Env> = (0..2).map(Env::from_seed).collect();
    matches!(compare_snapshots(&before, &after, &machine, &envs).0, Verdict::Refuted(_))
}

/// The source becomes each of some programs, and none of others; and what selection makes of it.
fn becomes(source: &str, these: &[&str], not: &[&str]) {
    let before = shader(source);
    for lines in these {
        assert!(
            is_proved(ProgramRef::Nir(&before), ProgramRef::Nir(&shader(lines))),
            "{source}\nis not shown to be\n{lines}"
        );
    }
    for lines in not {
        assert!(
            !is_proved(ProgramRef::Nir(&before), ProgramRef::Nir(&shader(lines))),
            "{source}\nis shown to be\n{lines}"
        );
    }
    let machine = Target::by_name("a660").expect("a GPU");
    let selected = pipeline::select(&before, &machine).expect("a program");
    assert!(
        is_proved(ProgramRef::Nir(&before), ProgramRef::Ir3(&selected)),
        "{source}\nis not shown to be what is selected"
    );
}

const FIVE: &str = "32 %9 = load_const (0x00000005)";
const ZERO: &str = "32 %9 = load_const (0x00000000)";
const ONE: &str = "32 %9 = load_const (0x00000001)";
const TWO: &str = "32 %9 = load_const (0x00000002)";
const LANE: &str = "32 %9 = mov %4";

#[test]
fn an_undefined_value_may_be_anything() {
    becomes("32 %9 = mov %3", &[FIVE, LANE, "32 %9 = mov %5"], &[]);
    // So may what is one to one with it.
    becomes("32 %9 = iadd %3, %4", &[FIVE, LANE, "32 %9 = isub %4, %5"], &[]);
    becomes("32 %9 = inot %3", &[FIVE], &[]);
}

#[test]
fn bits_that_are_known_stay() {
    becomes("32 %9 = iand %3, %6", &[ZERO], &[FIVE, "32 %9 = mov %3", "32 %9 = iand %3, %7"]);
    becomes("32 %9 = iand %3, %7", &[ZERO, ONE, "32 %9 = iand %4, %7"], &[FIVE, TWO]);
    becomes("32 %9 = ior %3, %7", &[ONE, FIVE], &[TWO]);
    becomes("32 %10 = load_const (0x0000001f)\n32 %9 = ushr %3, %10", &[ZERO, ONE], &[TWO]);
    becomes("32 %9 = ishl %3, %7", &[ZERO, TWO], &[ONE]);
    becomes("32 %10 = load_const (0x00000006)\n32 %9 = imul %3, %10", &[ZERO, TWO], &[ONE, "32 %9 = mov %3"]);
    becomes("16 %10 = u2u16 %3\n32 %9 = u2u32 %10", &[ZERO, FIVE], &["32 %9 = load_const (0x00010000)"]);
    // The sign and its copies are one bit.
    becomes("16 %10 = u2u16 %3\n32 %9 = i2i32 %10", &[ZERO], &["32 %9 = load_const (0x00010000)"]);
    becomes("32 %10 = load_const (0x0000001f)\n32 %9 = ishr %3, %10", &[ZERO], &[FIVE]);
}

#[test]
fn a_function_of_something_undefined_is_not_undefined() {
    // Mesa makes 0 and true of these, whatever the operand is.
    becomes("32 %9 = isub %3, %3", &[ZERO], &[FIVE]);
    becomes("32 %9 = ixor %3, %3", &[ZERO], &[FIVE]);
    becomes("1 %10 = ieq %3, %3\n32 %9 = b2i32 %10", &[ONE], &[FIVE]);
    becomes("32 %9 = imul %3, %3", &[ZERO], &[FIVE]);
    becomes("32 %9 = umin %3, %7", &[ZERO], &[FIVE]);
    becomes("32 %9 = fsat %3", &[ZERO], &[FIVE]);
    becomes("1 %10 = ult %3, %6\n32 %9 = b2i32 %10", &[ZERO], &[ONE]);
    becomes("1 %10 = ieq %3, %4\n32 %9 = b2i32 %10", &[ZERO, ONE], &[TWO]);
}

/// What is undefined in the target may be anything, each for itself.
#[test]
fn the_target_depends_on_nothing_undefined() {
    becomes(ZERO, &["32 %9 = iand %3, %6", "32 %9 = imul %6, %3"], &["32 %9 = mov %3", "32 %9 = isub %3, %5"]);
    becomes(LANE, &["32 %9 = bcsel %8, %4, %4", "32 %9 = ior %4, %6"], &["32 %9 = bcsel %8, %3, %4"]);
}

/// A run knows what does not depend on anything undefined.
#[test]
fn runs_refute_what_does_not_depend_on_it() {
    let select = "1 %10 = undefined\n32 %9 = bcsel %10, %4, %4";
    for (source, right) in [("32 %9 = iand %3, %6", ZERO), ("32 %9 = imul %6, %3", ZERO), (select, LANE)] {
        assert!(!differ(source, right) && !differ(right, source), "{source}");
        assert!(differ(source, FIVE) && differ(FIVE, source), "{source}");
    }
    assert!(differ(ZERO, "32 %9 = mov %3"));
}

#[test]
fn a_choice_with_something_undefined() {
    // What `nir_opt_undef` makes.
    becomes("32 %9 = bcsel %8, %3, %4", &[LANE], &[FIVE]);
    becomes("32 %9 = bcsel %8, %4, %3", &[LANE], &[FIVE]);
    becomes("1 %10 = undefined\n32 %9 = bcsel %10, %4, %4", &[LANE], &[FIVE]);
    becomes("1 %10 = undefined\n32 %9 = bcsel %10, %7, %99", &[ONE, TWO], &[FIVE]);
    becomes("32 %10 = iadd %3, %4\n32 %9 = bcsel %8, %10, %4", &[LANE], &[FIVE]);
}

const PHI: &str = "// succs: b1 b2
    if %8 {
        block b1:   // preds: b0, succs: b3
    } else {
        block b2:   // preds: b0, succs: b3
    }
    block b3:   // preds: b1 b2
";

#[test]
fn a_phi_of_something_undefined() {
    let with = |phi: &str| format!("{PHI}{phi}");
    let source = with("32 %9 = phi b1: %3, b2: %4");
    // What `nir_opt_remove_phis` makes, and what selection does, which leaves the register as it is.
    becomes(&source, &[LANE, "32 %9 = bcsel %8, %4, %4"], &[FIVE]);
    // An instruction that reads it reads one value.
    let source = with("32 %10 = phi b1: %3, b2: %4\n32 %9 = imul %10, %10");
    becomes(&source, &[&source], &[FIVE]);
}

#[test]
fn nothing_depends_on_what_is_undefined_in_the_other_program() {
    // Two undefined values of the target are not one: their difference is not 0.
    becomes("32 %9 = imul %3, %99", &[ZERO, TWO], &["32 %10 = iadd %3, %5\n32 %9 = mov %10", "32 %9 = isub %3, %5"]);
}

#[test]
fn a_branch_on_something_undefined_is_none_of_the_target() {
    let branch =
        |condition: &str| format!("1 %10 = {condition}\n{}32 %9 = phi b1: %7, b2: %7", PHI.replace("%8", "%10"));
    becomes(ONE, &[&branch("mov %8"), &branch("ult %3, %6")], &[&branch("undefined"), &branch("ieq %3, %4")]);
}
