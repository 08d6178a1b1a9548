//! Pairs that are different and were once proved, each with an equivalent one of the same shape.

use super::{ir3, limits};
use ir3_prove::simulation::{Proof, SimulationFailure};
use ir3_semantics::Snapshot;

fn proof(before: &Snapshot, after: &Snapshot) -> Result<Proof, SimulationFailure> {
    super::proof(before, after, &limits(3000))
}

fn differ(before: &Snapshot, after: &Snapshot) -> bool {
    super::differ(before, after, 0..16)
}

/// Checks that a pair differs, and is not proved.
#[track_caller]
fn refuted(before: &Snapshot, after: &Snapshot) {
    assert!(differ(before, after), "the interpreter sees no difference");
    let proof = proof(before, after);
    assert!(matches!(proof, Err(SimulationFailure::NotShown { .. })), "{proof:?}");
}

/// Checks that a pair is equivalent, and is proved.
#[track_caller]
fn proved(before: &Snapshot, after: &Snapshot) {
    assert!(!differ(before, after), "the interpreter sees a difference");
    let proof = proof(before, after);
    assert!(proof.is_ok(), "{proof:?}");
}

/// A compute shader with these lines. `%1` is the lane's index, `%2` and `%3` are 0 and 1, `%4` and `%5` are buffers to
/// read and to write, and `%6` is a word that was read.
fn nir(lines: &str) -> Snapshot {
    let body = format!(
        "    block b0:   // preds:
    32     %1 = @load_local_invocation_index
    32     %2 = load_const (0x00000000)
    32     %3 = load_const (0x00000001)
    32     %4 = @bindless_resource_ir3 (%2) (desc_set=0)
    32     %5 = @bindless_resource_ir3 (%3) (desc_set=0)
    32     %9 = load_const (0x00000002)
    32     %8 = ishl %1, %9
    32     %6 = @load_ssbo_ir3 (%4, %8, %1) (base=0, access=none, align_mul=4, align_offset=0)
    32     %7 = undefined
{lines}"
    );
    super::nir("workgroup_size: 64, 1, 1\nnum_ssbos: 2", &body)
}

/// The end of a shader, in a block that stores a value.
fn store(block: &str, value: &str) -> String {
    format!(
        "    {block}\n    @store_ssbo_ir3 ({value}, %5, %8, %1) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
                // succs: b99\n    block b99:"
    )
}

/// The events at the ends of two blocks, of which one is empty, were taken for one event, and so the second vote for
/// the first.
#[test]
fn votes_at_the_ends_of_empty_blocks() {
    let shader = |other: u32| {
        let compare = "_meta:in r0.x (wrmask=0x3) // {input=local_invocation_id}
            cmps.u.lt pp0.x, r0.x, imm[0.000000,9,0x9]
            cmps.u.lt pp0.y, r0.x, imm[0.000000,8,0x8]
            bany pp0.x";
        let set = |number: u32| format!("mov.u32u32 r2.x, imm[0.000000,{number},{number:#x}]\njump");
        let store = "stib imm[0.000000,0,0x0], r0.x, imm[0.000000,0,0x0], r2.x // {type=u32, components=1, space=ssbo, coords=1}\nend";
        ir3(
            0,
            &[
                (compare, &[2, 5]),
                ("ball pp0.y", &[3, 4]),
                (&set(1), &[6]),
                (&set(other), &[6]),
                (&set(3), &[6]),
                (store, &[]),
            ],
        )
    };
    proved(&shader(2), &shader(2));
    refuted(&shader(2), &shader(7));
}

/// A value that was computed in a loop has 8 bits; that of a lane that skipped the loop may have more.
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
        assert!(matches!(proof, Err(SimulationFailure::NotShown { .. })), "{before}: {proof:?}");
    }
    // A lane that has read an even number does not get past the branch; where an odd one was read, this is 1.
    let lines = "    32    %31 = iand %6, %3\n    1     %32 = ieq %31, %2\n    32    %33 = bcsel %32, %7, %1\n";
    let after = |value: &str| nir(&format!("{lines}{}", branch("%1", "ieq %33, %2", value)));
    proved(&after("%31"), &after("%3"));
    // Not so if it is stored before the branch.
    let before = |value: &str| nir(&format!("{lines}{}", branch(value, "ieq %33, %2", "%1")));
    let proof = proof(&before("%31"), &before("%3"));
    assert!(matches!(proof, Err(SimulationFailure::NotShown { .. })), "{proof:?}");
}

/// A branch on a word that is loaded from an undefined place, in the program after only, though both arms have the same
/// effects.
#[test]
fn a_branch_on_what_is_loaded_from_an_undefined_place() {
    let shader = |place: &str| {
        let lines = format!(
            "    32    %31 = @load_ssbo_ir3 (%4, {place}) (base=0, access=none, align_mul=4, align_offset=0)\n    32    %32 = f2i32 %31\n{}",
            branch("%1", "ieq %32, %2", "%6")
        );
        nir(&lines)
    };
    proved(&shader("%8, %1"), &shader("%8, %1"));
    refuted(&shader("%8, %1"), &shader("%7, %7"));
}

/// In each lane one of two values is undefined, and there is a branch on both, so nothing can be proved: not even if
/// there is a loop between the branches.
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
        assert!(matches!(proof, Err(SimulationFailure::Vacuous)), "{inner}: {proof:?}");
    }
}
