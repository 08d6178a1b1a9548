//! Refinements of undefined values (docs/semantics.md). Each case is a source, and targets that do or do not refine it.

use super::limits;
use ir3_compiler::pipeline;
use ir3_semantics::Snapshot;

/// A shader that stores `%9`, which the lines define. `%4` is the lane's index, `%3` and `%5` are undefined, `%6` is 0,
/// `%7` is 1, and `%8` is true if the lane's index is 0.
fn shader(lines: &str) -> Snapshot {
    let body = format!(
        "    block b0:   // preds:
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
    block b99:"
    );
    super::nir("workgroup_size: 64, 1, 1\nnum_ssbos: 1", &body)
}

fn is_proved(source: &Snapshot, target: &Snapshot) -> bool {
    super::proof(source, target, &limits(1500)).is_ok()
}

/// Returns true if a run differs.
fn differ(source: &str, target: &str) -> bool {
    super::differ(&shader(source), &shader(target), 0..2)
}

/// Checks that the source is refined by each program of `these`, by none of `not`, and by the program that selection
/// emits for it.
fn becomes(source: &str, these: &[&str], not: &[&str]) {
    let before = shader(source);
    for lines in these {
        assert!(is_proved(&before, &shader(lines)), "{source}\nis not shown to be\n{lines}");
    }
    for lines in not {
        assert!(!is_proved(&before, &shader(lines)), "{source}\nis shown to be\n{lines}");
    }
    let Snapshot::Nir(nir) = &before else { unreachable!("nir") };
    let selected = pipeline::select(nir, &super::gpu()).expect("a program");
    assert!(is_proved(&before, &Snapshot::Ir3(Box::new(selected))), "{source}\nis not shown to be what is selected");
}

const FIVE: &str = "32 %9 = load_const (0x00000005)";
const ZERO: &str = "32 %9 = load_const (0x00000000)";
const ONE: &str = "32 %9 = load_const (0x00000001)";
const TWO: &str = "32 %9 = load_const (0x00000002)";
const LANE: &str = "32 %9 = mov %4";

#[test]
fn an_undefined_value_may_be_anything() {
    becomes("32 %9 = mov %3", &[FIVE, LANE, "32 %9 = mov %5"], &[]);
    // So may the result of a bijection of it.
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
    // Mesa folds these to 0 and true, for any operand.
    becomes("32 %9 = isub %3, %3", &[ZERO], &[FIVE]);
    becomes("32 %9 = ixor %3, %3", &[ZERO], &[FIVE]);
    becomes("1 %10 = ieq %3, %3\n32 %9 = b2i32 %10", &[ONE], &[FIVE]);
    becomes("32 %9 = imul %3, %3", &[ZERO], &[FIVE]);
    becomes("32 %9 = umin %3, %7", &[ZERO], &[FIVE]);
    becomes("32 %9 = fsat %3", &[ZERO], &[FIVE]);
    becomes("1 %10 = ult %3, %6\n32 %9 = b2i32 %10", &[ZERO], &[ONE]);
    becomes("1 %10 = ieq %3, %4\n32 %9 = b2i32 %10", &[ZERO, ONE], &[TWO]);
}

/// Each undefined value of the target may be anything, independently.
#[test]
fn the_target_depends_on_nothing_undefined() {
    becomes(ZERO, &["32 %9 = iand %3, %6", "32 %9 = imul %6, %3"], &["32 %9 = mov %3", "32 %9 = isub %3, %5"]);
    becomes(LANE, &["32 %9 = bcsel %8, %4, %4", "32 %9 = ior %4, %6"], &["32 %9 = bcsel %8, %3, %4"]);
}

/// Runs compare values that do not depend on an undefined one.
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
    // Results of `nir_opt_undef`.
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
    // Results of `nir_opt_remove_phis`, and of selection, which leaves the register unwritten.
    becomes(&source, &[LANE, "32 %9 = bcsel %8, %4, %4"], &[FIVE]);
    // All reads in one instruction see the same value.
    let source = with("32 %10 = phi b1: %3, b2: %4\n32 %9 = imul %10, %10");
    becomes(&source, &[&source], &[FIVE]);
}

#[test]
fn nothing_depends_on_what_is_undefined_in_the_other_program() {
    // Two undefined values of the target are different variables: their difference is not 0.
    becomes("32 %9 = imul %3, %99", &[ZERO, TWO], &["32 %10 = iadd %3, %5\n32 %9 = mov %10", "32 %9 = isub %3, %5"]);
}

#[test]
fn a_branch_on_something_undefined_is_none_of_the_target() {
    let branch =
        |condition: &str| format!("1 %10 = {condition}\n{}32 %9 = phi b1: %7, b2: %7", PHI.replace("%8", "%10"));
    becomes(ONE, &[&branch("mov %8"), &branch("ult %3, %6")], &[&branch("undefined"), &branch("ieq %3, %4")]);
}
