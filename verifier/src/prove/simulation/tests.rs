//! Pairs that were proved and are different, each beside one of the same shape that is equal.

use super::{Failure, Limits, Proof, prove};
use crate::harness::check::{Verdict, compare_snapshots};
use crate::programs::divergence::compute_shader;
use crate::prove::solver::{Budget, Z3};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::target::Target;
use ir3_compiler::{ir3, nir};
use std::time::Duration;

fn gpu() -> Target {
    Target::by_name("a660").expect("a GPU")
}

fn proof(before: &Snapshot, after: &Snapshot) -> Result<Proof, Failure> {
    let query = Budget { rlimit: 400_000, time: Duration::from_millis(500) };
    let limits = Limits { query, time: Duration::from_secs(3), inputs: false };
    prove(before.into(), after.into(), &gpu(), &limits, &mut Z3::default())
}

fn differ(before: &Snapshot, after: &Snapshot) -> bool {
    let envs: Vec<Env> = (0..16).map(Env::from_seed).collect();
    matches!(compare_snapshots(before, after, &gpu(), &envs).0, Verdict::Refuted(_))
}

/// A pair that differs, and is not proved.
#[track_caller]
fn refuted(before: &Snapshot, after: &Snapshot) {
    assert!(differ(before, after), "the interpreter sees no difference");
    let proof = proof(before, after);
    assert!(matches!(proof, Err(Failure::NotShown { .. })), "{proof:?}");
}

/// A pair that is equal, and is proved.
#[track_caller]
fn proved(before: &Snapshot, after: &Snapshot) {
    assert!(!differ(before, after), "the interpreter sees a difference");
    let proof = proof(before, after);
    assert!(proof.is_ok(), "{proof:?}");
}

/// A compute shader with registers: see [`compute_shader`].
fn ir3(blocks: &[(&str, &[usize])]) -> Snapshot {
    let text = compute_shader(0, blocks);
    let program = ir3::text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let broken = validate(&program, &gpu(), Form::of(&program)).err();
    assert!(broken.is_none(), "{broken:?}\n{text}");
    Snapshot::Ir3(Box::new(program))
}

/// A compute shader of these lines, in which `%1` is the number of the lane, `%2` and `%3` are 0 and 1, `%4` and `%5` buffers to read and to
/// write, and `%6` a word that was read.
fn nir(lines: &str) -> Snapshot {
    let text = format!(
        "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 2
subgroup_size: 1
decl_function main () (entrypoint)

impl main {{
    block b0:   // preds:
    32     %1 = @load_local_invocation_index
    32     %2 = load_const (0x00000000)
    32     %3 = load_const (0x00000001)
    32     %4 = @bindless_resource_ir3 (%2) (desc_set=0)
    32     %5 = @bindless_resource_ir3 (%3) (desc_set=0)
    32     %9 = load_const (0x00000002)
    32     %8 = ishl %1, %9
    32     %6 = @load_ssbo_ir3 (%4, %8, %1) (base=0, access=none, align_mul=4, align_offset=0)
    32     %7 = undefined
{lines}
}}
"
    );
    Snapshot::Nir(Box::new(nir::text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))))
}

/// The end of a shader in a block that stores a value.
fn store(block: &str, value: &str) -> String {
    format!(
        "    {block}\n    @store_ssbo_ir3 ({value}, %5, %8, %1) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
                // succs: b99\n    block b99:"
    )
}

/// The events at the ends of two blocks, of which one is empty, were one event: so the second vote was taken for the first.
#[test]
fn votes_at_the_ends_of_empty_blocks() {
    let shader = |other: u32| {
        let compare = "_meta:in r0.x (wrmask=0x3) // {input=local_invocation_id}
            cmps.u.lt pp0.x, r0.x, imm[0.000000,9,0x9]
            cmps.u.lt pp0.y, r0.x, imm[0.000000,8,0x8]
            bany pp0.x";
        let set = |number: u32| format!("mov.u32u32 r2.x, imm[0.000000,{number},{number:#x}]\njump");
        let store = "stib imm[0.000000,0,0x0], r0.x, imm[0.000000,0,0x0], r2.x // {type=u32, components=1, space=ssbo, coords=1}\nend";
        ir3(&[
            (compare, &[2, 5]),
            ("ball pp0.y", &[3, 4]),
            (&set(1), &[6]),
            (&set(other), &[6]),
            (&set(3), &[6]),
            (store, &[]),
        ])
    };
    proved(&shader(2), &shader(2));
    refuted(&shader(2), &shader(7));
}

/// A value that came by way of a loop has 8 bits; that of another lane, which went past the loop, may have more.
#[test]
fn values_of_lanes_that_went_past_a_loop() {
    let moves = [
        "@read_first_invocation (%12)",
        "@read_invocation (%12, %3)",
        "@shuffle (%12, %3)",
        "@shuffle_xor (%12, %9)",
        "@rotate (%12, %3) (cluster_size=64)",
        "@quad_broadcast (%12, %2)",
        "@quad_swap_vertical (%12)",
        "@quad_swap_diagonal (%12)",
    ];
    for operation in moves {
        let shader = |mask: u32| {
            let lines = format!(
                "    32     %10 = load_const (0x000000ff)
    32     %11 = iand %6, %10
    32    %20 = load_const ({mask:#010x})
    32    %21 = load_const (0x0000000a)
    1     %22 = uge %1, %21
                // succs: b1 b4
    if %22 {{
        block b1:   // preds: b0, succs: b2
        loop {{
            block b2:   // preds: b1
            break
            // succs: b3
        }}
        block b3:   // preds: b2, succs: b5
    }} else {{
        block b4:   // preds: b0, succs: b5
    }}
    block b5:   // preds: b3 b4
    32    %12 = phi b3: %11, b4: %6
    32    %13 = {operation}
    32    %14 = iand %13, %20
    1     %23 = uge %1, %21
    32    %15 = bcsel %23, %14, %13
{}",
                store("", "%15")
            );
            nir(&lines)
        };
        proved(&shader(u32::MAX), &shader(u32::MAX));
        refuted(&shader(u32::MAX), &shader(0xff));
    }
}

/// A branch on `condition`, with a store before it and one after it.
fn branch(before: &str, condition: &str, after: &str) -> String {
    format!(
        "    1     %30 = {condition}
    @store_ssbo_ir3 ({before}, %5, %8, %1) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
                // succs: b1 b2
    if %30 {{
        block b1:   // preds: b0, succs: b3
    }} else {{
        block b2:   // preds: b0, succs: b3
    }}
{}",
        store("block b3:   // preds: b1 b2", after)
    )
}

/// A store that comes before a branch on an undefined value has happened.
#[test]
fn what_was_stored_before_a_branch_on_an_undefined_value() {
    // Undefined in lanes that have read an even number.
    let shader = |before: &str, after: &str| {
        let lines = "    32    %31 = iand %6, %3\n    1     %32 = ieq %31, %2\n    32    %33 = bcsel %32, %7, %1\n";
        nir(&format!("{lines}{}", branch(before, "ieq %33, %2", after)))
    };
    proved(&shader("%1", "%6"), &shader("%1", "%6"));
    for before in ["%8", "%33"] {
        let proof = proof(&shader("%1", "%6"), &shader(before, "%6"));
        assert!(matches!(proof, Err(Failure::NotShown { .. })), "{before}: {proof:?}");
    }
    // Where an even number was read there is no after; where an odd one was, this is 1.
    let lines = "    32    %31 = iand %6, %3\n    1     %32 = ieq %31, %2\n    32    %33 = bcsel %32, %7, %1\n";
    let after = |value: &str| nir(&format!("{lines}{}", branch("%1", "ieq %33, %2", value)));
    proved(&after("%31"), &after("%3"));
    // Not so if it is stored before.
    let before = |value: &str| nir(&format!("{lines}{}", branch(value, "ieq %33, %2", "%1")));
    let proof = proof(&before("%31"), &before("%3"));
    assert!(matches!(proof, Err(Failure::NotShown { .. })), "{proof:?}");
}

/// Of two values one is undefined in each lane, and there is a branch on both, so nothing can be shown: also where there is a loop between the
/// branches.
#[test]
fn assumptions_that_contradict_each_other() {
    for inner in [
        "",
        "        loop {\n            block b10:   // preds: b1\n            break\n            // succs: b11\n        }\n        block b11:   // preds: b10, succs: b3\n",
    ] {
        let shader = |stored: &str| {
            let (first, last) = if inner.is_empty() {
                ("b1:   // preds: b0, succs: b3", "b1")
            } else {
                ("b1:   // preds: b0, succs: b10", "b11")
            };
            nir(&format!(
                "    1     %20 = ieq %6, %2
    32    %21 = bcsel %20, %7, %1
    32    %22 = bcsel %20, %1, %7
    1     %23 = ieq %21, %2
    1     %24 = ieq %22, %2
                // succs: b1 b2
    if %23 {{
        block {first}
{inner}    }} else {{
        block b2:   // preds: b0, succs: b3
    }}
    block b3:   // preds: {last} b2
                // succs: b4 b5
    if %24 {{
        block b4:   // preds: b3, succs: b6
    }} else {{
        block b5:   // preds: b3, succs: b6
    }}
{}",
                store("block b6:   // preds: b4 b5", stored)
            ))
        };
        let proof = proof(&shader("%1"), &shader("%8"));
        assert!(matches!(proof, Err(Failure::Vacuous)), "{inner}: {proof:?}");
    }
}
