//! If a proof fails, the solver's model becomes an input, and the interpreter confirms it.

use super::common::vertex;

use ir3_compiler::target::Target;
use ir3_harness::check::{Smt, Verdict, compare_snapshots};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;

fn gpu() -> Target {
    Target::by_name("a660").expect("a GPU")
}

/// A vertex shader whose output is `result`, which may read `%6`: true if a value equals a constant.
fn program(value: &str, number: u32, result: &str) -> Snapshot {
    let lines = format!(
        "32x4   %2 = @load_const_ir3 (%0 (0x0)) (base=4)
32     %3 = @load_ssbo_ir3 (%0 (0x0), %0 (0x0), %0 (0x0)) (base=0, access=none, align_mul=4, align_offset=0)
32     %4 = @load_instance_id
32     %5 = {value}
32     %6 = load_const ({number:#010x})
1      %7 = ieq %5, %6
32     %8 = {result}"
    );
    vertex::shader(&lines, "%8")
}

/// Two programs that differ on one value of 2^32.
fn sides(value: &str, number: u32) -> [Snapshot; 2] {
    ["bcsel %7, %1.y, %1.z", "mov %1.z"].map(|result| program(value, number, result))
}

/// Each of these is one value of 2^32: no random input hits it.
const VALUES: [&str; 7] =
    ["mov %1.x", "mov %2.x", "mov %3", "mov %4", "iadd %1.x, %2.y", "ixor %3, %2.w", "imul %1.w, %2.z"];

#[test]
fn one_value_in_many_is_found() {
    for value in VALUES {
        let [before, after] = sides(value, 0x1234_5678);
        let random: Vec<Env> = (0..50).map(Env::from_seed).collect();
        let tried = compare_snapshots(&before, &after, &gpu(), &random).0;
        assert!(matches!(tried, Verdict::Tested { .. }), "{value}: {tried:?}");
        let verdict = Smt::default().compare(&before, &after, &gpu());
        let Verdict::Refuted(refutation) = verdict else { panic!("{value}: {verdict:?}") };
        // The input is text, and reproduces the difference.
        let env = Env::from_json(&refutation.env.to_json()).expect("an environment");
        assert_eq!(env, refutation.env);
        let again = compare_snapshots(&before, &after, &gpu(), &[env]).0;
        assert!(matches!(again, Verdict::Refuted(_)), "{value}: {again:?}");
    }
}

/// No lane has such a value: an impossible input is no counterexample.
#[test]
fn what_no_lane_can_have_is_no_counterexample() {
    let [before, after] = sides("@load_subgroup_invocation", 64);
    let verdict = Smt::default().compare(&before, &after, &gpu());
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
    let [before, after] = sides("@load_subgroup_invocation", 63);
    let verdict = Smt::default().compare(&before, &after, &gpu());
    assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
}

#[test]
fn what_is_the_same_is_not_refuted() {
    for value in VALUES {
        let [before, _] = sides(value, 0x1234_5678);
        let other = program(value, 0x1234_5678, "bcsel %7, %1.y, %1.z");
        let verdict = Smt::default().compare(&before, &other, &gpu());
        assert!(matches!(verdict, Verdict::Proved { .. }), "{value}: {verdict:?}");
    }
}
