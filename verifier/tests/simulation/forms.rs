//! Programs that the term engine proves by special rules (loops cut at other points, scratch memory as registers,
//! shared registers that some lanes write), and the same with a bug, which it must not prove.

use super::{gpu, ir3 as program, limits};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::nir;
use ir3_compiler::pipeline;
use ir3_programs::equivalent_pairs::pairs;
use ir3_programs::mutations::{KINDS, Sites};
use ir3_programs::seeds::env_seeds;
use ir3_prove::registers;
use ir3_prove::simulation::{Proof, SimulationFailure};
use ir3_semantics::Snapshot;

fn prove(source: &Snapshot, target: &Snapshot) -> Result<Proof, SimulationFailure> {
    super::proof(source, target, &limits(1500))
}

/// Returns true if a run differs.
fn differ(source: &Snapshot, target: &Snapshot) -> bool {
    super::differ(source, target, env_seeds(7, 6))
}

/// Makes a program from its texts, each changed by a function.
type MakeProgram<'a> = &'a dyn Fn(&dyn Fn(&str) -> String) -> Snapshot;

/// The target is proved; with each of the changes to its text it is another program, and is not proved.
fn only_as_it_stands(source: &Snapshot, target: MakeProgram<'_>, changes: &[(&str, &str)]) {
    let plain = target(&str::to_owned);
    assert!(!differ(source, &plain));
    let proof = prove(source, &plain);
    assert!(proof.is_ok(), "{proof:?}");
    for (from, to) in changes {
        let changed = target(&|text| text.replace(from, to));
        assert!(differ(source, &changed), "{from} as {to} is the same");
        let proof = prove(source, &changed);
        assert!(proof.is_err(), "{from} as {to}: {proof:?}");
    }
}

/// The target is another program, and is not proved.
fn unproved(source: &Snapshot, target: &Snapshot) {
    assert!(differ(source, target));
    let proof = prove(source, target);
    assert!(proof.is_err(), "{proof:?}");
}

const INPUTS: &str = "_meta:in r0.x (wrmask=0x3) // {input=local_invocation_id}";
const STORE: &str =
    "stib imm[0.000000,0,0x0], r0.x, imm[0.000000,0,0x0], r1.x // {type=u32, components=1, space=ssbo, coords=1}
    end";

#[test]
fn spilled_or_not() {
    let compute = "add.u r1.x, r0.x, r0.y
        shl.b r1.y, r0.x, imm[0.000000,3,0x3]";
    let source = program(0, &[(&format!("{INPUTS}\n{compute}\nsub.u r1.x, r1.x, r1.y\n{STORE}"), &[])]);
    let spills = "mov.u32u32 r2.x, imm[0.000000,0,0x0]
        stp r2.x, r1.x, imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}
        stp r2.x, r1.y, imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch, offset=4}
        mov.u32u32 r1.x, imm[0.000000,9,0x9]
        mov.u32u32 r1.y, imm[0.000000,9,0x9]
        ldp r1.y, r2.x, imm[0.000000,4,0x4], imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}
        ldp r1.x, r2.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}";
    let target = |change: &dyn Fn(&str) -> String| {
        let text = change(&format!("{INPUTS}\n{compute}\n{spills}\nsub.u r1.x, r1.x, r1.y\n{STORE}"));
        program(if text.contains("short") { 4 } else { 8 }, &[(&text.replace("short", ""), &[])])
    };
    only_as_it_stands(
        &source,
        &target,
        &[
            // One slot for both; one that begins in the middle of the other.
            ("offset=4", "offset=0"),
            ("offset=4", "offset=2"),
            // The wrong slot; one that is never written.
            ("imm[0.000000,4,0x4]", "imm[0.000000,0,0x0]"),
            // A base that has changed.
            ("mov.u32u32 r2.x, imm[0.000000,0,0x0]", "mov.u32u32 r2.x, r0.x"),
            // Beyond the end.
            ("stp r2.x, r1.y", "shortstp r2.x, r1.y"),
            // Half of a slot is written again.
            (
                "mov.u32u32 r1.x, imm[0.000000,9,0x9]",
                "stp r2.x, hr0.x, imm[0.000000,1,0x1] // {type=u16, components=1, space=scratch, offset=6}",
            ),
        ],
    );
}

#[test]
fn spilled_in_a_loop() {
    // r1.x counts up to r0.x; r1.y collects.
    let begin = "mov.u32u32 r1.x, imm[0.000000,0,0x0]
        mov.u32u32 r1.y, r0.y
        jump";
    let test = "cmps.u.ge pp0.x, r1.x, r0.x
        br pp0.x";
    let body = "add.u r1.y, r1.y, r1.x
        xor.b r1.y, r1.y, r0.y
        add.u r1.x, r1.x, imm[0.000000,1,0x1]
        jump";
    let finish = format!("mov.u32u32 r1.x, r1.y\n{STORE}");
    let source = program(0, &[(&format!("{INPUTS}\n{begin}"), &[2]), (test, &[4, 3]), (body, &[2]), (&finish, &[])]);
    let target = |change: &dyn Fn(&str) -> String| {
        let begin = change(&format!(
            "{INPUTS}
            mov.u32u32 r1.x, imm[0.000000,0,0x0]
            mov.u32u32 r2.x, imm[0.000000,0,0x0]
            stp r2.x, r0.y, imm[0.000000,1,0x1] // {{type=u32, components=1, space=scratch, offset=4}}
            jump"
        ));
        let body = change(
            "ldp r1.y, r2.x, imm[0.000000,4,0x4], imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}
            add.u r1.y, r1.y, r1.x
            xor.b r1.y, r1.y, r0.y
            stp r2.x, r1.y, imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch, offset=4}
            add.u r1.x, r1.x, imm[0.000000,1,0x1]
            jump",
        );
        let finish = change(&format!(
            "ldp r1.x, r2.x, imm[0.000000,4,0x4], imm[0.000000,1,0x1] // {{type=u32, components=1, space=scratch}}
            {STORE}"
        ));
        program(8, &[(&begin, &[2]), (test, &[4, 3]), (&body, &[2]), (&finish, &[])])
    };
    only_as_it_stands(
        &source,
        &target,
        &[
            ("stp r2.x, r1.y", "stp r2.x, r1.x"),
            ("r1.x, imm[0.000000,1,0x1]\n", "r2.x, imm[0.000000,0,0x0]\nadd.u r2.x, r2.x, imm[0.000000,4,0x4]\n"),
            ("stp r2.x, r0.y", "stp r2.x, r0.x"),
        ],
    );
}

#[test]
fn a_loop_that_tests_first_or_last() {
    let begin = "mov.u32u32 r1.x, r0.x";
    let test = "cmps.u.ge pp0.x, r1.x, imm[0.000000,40,0x28]
        br pp0.x";
    let body = "add.u r1.x, r1.x, r1.x
        add.u r1.x, r1.x, imm[0.000000,1,0x1]";
    let source = program(
        0,
        &[(&format!("{INPUTS}\n{begin}\njump"), &[2]), (test, &[4, 3]), (&format!("{body}\njump"), &[2]), (STORE, &[])],
    );
    let target = |change: &dyn Fn(&str) -> String| {
        let guard = change(&format!("{INPUTS}\n{begin}\n{test} // guard")).replace(" // guard", "");
        let inside = change(&format!("{body}\n{test} // inside")).replace(" // inside", "");
        program(0, &[(&guard, &[3, 2]), (&inside, &[3, 2]), (STORE, &[])])
    };
    only_as_it_stands(
        &source,
        &target,
        &[
            // At least one iteration; another test before; another at the end; the value before the update tested.
            (
                "cmps.u.ge pp0.x, r1.x, imm[0.000000,40,0x28]\n        br pp0.x // guard",
                "cmps.u.lt pp0.x, r1.x, imm[0.000000,0,0x0]\nbr pp0.x",
            ),
            ("40,0x28]\n        br pp0.x // guard", "41,0x29]\nbr pp0.x"),
            ("40,0x28]\n        br pp0.x // inside", "30,0x1e]\nbr pp0.x"),
            ("imm[0.000000,1,0x1]\ncmps.u.ge pp0.x, r1.x", "imm[0.000000,1,0x1]\ncmps.u.ge pp0.x, r0.y"),
        ],
    );
}

/// Lanes that jump back from the middle of a loop do not wait for those that continue.
#[test]
fn lanes_that_diverge_for_iterations() {
    let begin = format!(
        "{INPUTS}\nmov.u32u32 r1.x, imm[0.000000,0,0x0]\nmov.u32u32 r1.y, imm[0.000000,0,0x0]
        add.u r1.z, r0.x, imm[0.000000,4,0x4]\njump"
    );
    let header = "add.u r1.x, r1.x, imm[0.000000,1,0x1]
        cmps.u.lt pp0.x, r1.x, r0.x
        br pp0.x";
    let counts =
        "ldib r2.x, imm[0.000000,0,0x0], r1.y, imm[0.000000,0,0x0] // {type=u32, components=1, space=ssbo, coords=1}
        add.u r2.x, r2.x, imm[0.000000,1,0x1]
        stib imm[0.000000,0,0x0], r1.y, imm[0.000000,0,0x0], r2.x // {type=u32, components=1, space=ssbo, coords=1}";
    let latch = "cmps.u.lt pp0.x, r1.x, r1.z
        br pp0.x";
    // The lanes that count in iteration r0.x, and those that do not yet.
    let together = program(
        0,
        &[(&begin, &[2]), (header, &[4, 3]), (&format!("{counts}\njump"), &[4]), (latch, &[2, 5]), ("end", &[])],
    );
    let apart = program(
        0,
        &[(&begin, &[2]), (header, &[2, 3]), (&format!("{counts}\njump"), &[4]), (latch, &[2, 5]), ("end", &[])],
    );
    assert!(differ(&together, &apart));
    assert!(prove(&together, &together).is_ok());
    for (source, target) in [(&together, &apart), (&apart, &together), (&apart, &apart)] {
        let proof = prove(source, target);
        assert!(matches!(proof, Err(SimulationFailure::Unsupported(_))), "{proof:?}");
    }
}

#[test]
fn what_some_lanes_write_to_a_shared_register() {
    let branch = "cmps.u.lt pp0.x, r0.x, imm[0.000000,3,0x3]\nbr pp0.x";
    let with = |register: &str, change: &dyn Fn(&str) -> String| {
        let begin = change(&format!("{INPUTS}\nmov.u32u32 {register}, imm[0.000000,7,0x7] // first\n{branch}"));
        let arm = change(&format!("mov.u32u32 {register}, imm[0.000000,9,0x9] // second\njump"));
        let join = change(&format!("mov.u32u32 r1.x, {register} // read\n{STORE}"));
        let plain = |text: String| text.replace(" // first", "").replace(" // second", "").replace(" // read", "");
        program(0, &[(&plain(begin), &[2, 3]), (&plain(arm), &[3]), (&plain(join), &[])])
    };
    let source = with("sr48.x", &str::to_owned);
    let target = |change: &dyn Fn(&str) -> String| with("sr49.y", change);
    only_as_it_stands(
        &source,
        &target,
        &[
            ("imm[0.000000,9,0x9]", "imm[0.000000,8,0x8]"),
            ("r0.x, imm[0.000000,3,0x3]", "r0.x, imm[0.000000,0,0x0]"),
            // Each lane separately.
            ("sr49.y", "r1.y"),
            // Half of the written value.
            ("mov.u32u32 sr49.y, imm[0.000000,9,0x9]", "mov.u16u16 shr50.x, himm[0.000000,9,0x9]"),
        ],
    );
}

#[test]
fn a_shared_register_after_a_loop_that_lanes_leave_one_by_one() {
    let with = |register: &str, change: &dyn Fn(&str) -> String| {
        let begin = change(&format!(
            "{INPUTS}\nmov.u32u32 {register}, imm[0.000000,0,0x0]\nmov.u32u32 r1.x, imm[0.000000,0,0x0]\njump"
        ));
        let body = change(&format!(
            "add.u {register}, {register}, imm[0.000000,1,0x1]
            add.u r1.x, r1.x, imm[0.000000,1,0x1]
            cmps.u.ge pp0.x, r1.x, r0.x
            br pp0.x"
        ));
        let after_loop = change(&format!("mov.u32u32 r1.x, {register}\n{STORE}"));
        program(0, &[(&begin, &[2]), (&body, &[3, 2]), (&after_loop, &[])])
    };
    let source = with("sr48.x", &str::to_owned);
    let target = |change: &dyn Fn(&str) -> String| with("sr49.y", change);
    only_as_it_stands(
        &source,
        &target,
        &[
            // The value that a lane had when it left.
            ("mov.u32u32 r1.x, sr49.y", "mov.u32u32 r1.x, r1.x"),
            ("sr49.y, sr49.y, imm[0.000000,1,0x1]", "sr49.y, sr49.y, imm[0.000000,2,0x2]"),
            // The values that others left are overwritten.
            ("mov.u32u32 r1.x, sr49.y", "mov.u32u32 sr49.y, imm[0.000000,1,0x1]\nmov.u32u32 r1.x, sr49.y"),
        ],
    );
}

/// A shared register takes the value of the first active lane, which is undefined here.
#[test]
fn a_shared_register_that_some_lanes_leave_undefined() {
    let with = |last: &str| {
        let begin = format!("{INPUTS}\ncmps.u.ge pp0.x, r0.x, imm[0.000000,3,0x3]\nbr pp0.x");
        let arm = "mov.u32u32 r1.y, imm[0.000000,0,0x0]\njump";
        program(0, &[(&begin, &[2, 3]), (arm, &[3]), (&format!("{last}\n{STORE}"), &[])])
    };
    let (source, target) = (with("mov.u32u32 r1.x, r1.y"), with("mov.u32u32 sr48.x, r1.y\nmov.u32u32 r1.x, sr48.x"));
    assert!(prove(&source, &source).is_ok());
    unproved(&source, &target);
}

/// Lanes that bypassed a loop wait for those that ran it, and write together with them.
#[test]
fn a_shared_register_written_by_lanes_from_a_loop_and_by_lanes_that_bypassed_it() {
    let begin = format!(
        "{INPUTS}\nmov.u32u32 r1.x, imm[0.000000,5,0x5]
        cmps.u.lt pp0.x, r0.x, imm[0.000000,3,0x3]\nbr pp0.x"
    );
    let body = "add.u r1.x, r1.x, imm[0.000000,1,0x1]
        cmps.u.lt pp0.x, r1.x, imm[0.000000,9,0x9]\nbr pp0.x";
    let through = "mov.u32u32 sr48.x, r1.x\nmov.u32u32 r1.x, sr48.x\n";
    let with = |past: &str, both: &str| {
        let (past, both) = (format!("{past}jump"), format!("{both}{STORE}"));
        program(0, &[(&begin, &[2, 4]), (body, &[2, 3]), ("jump", &[5]), (&past, &[5]), (&both, &[])])
    };
    let (source, target) = (with(through, ""), with("", through));
    assert!(prove(&source, &source).is_ok());
    assert!(prove(&target, &target).is_ok());
    unproved(&source, &target);
    // They may write values that are the same for all of them.
    let same = with("", "mov.u32u32 sr48.x, imm[0.000000,7,0x7]\nmov.u32u32 r1.x, sr48.x\n");
    let plain = with("", "mov.u32u32 r1.x, imm[0.000000,7,0x7]\n");
    assert!(!differ(&plain, &same));
    let proof = prove(&plain, &same);
    assert!(proof.is_ok(), "{proof:?}");
    // On each path another value, which all lanes of the path share.
    let one_each = |arm: &str, both: &str| {
        let (arm, both) = (format!("{arm}jump"), format!("{both}{STORE}"));
        program(0, &[(&begin, &[2, 4]), (body, &[2, 3]), (&arm, &[5]), ("jump", &[5]), (&both, &[])])
    };
    let source = one_each("mov.u32u32 r1.x, imm[0.000000,7,0x7]\n", "");
    let target = one_each("mov.u32u32 r1.x, imm[0.000000,7,0x7]\n", through);
    unproved(&source, &target);
}

/// Lanes that come from a loop see the effects of lanes that bypassed it, in the order of the blocks.
#[test]
fn effects_of_lanes_that_bypassed_a_loop() {
    let begin = format!(
        "{INPUTS}\nmov.u32u32 r1.x, imm[0.000000,5,0x5]\nmov.u32u32 r1.y, imm[0.000000,0,0x0]
        mov.u32u32 sr48.x, imm[0.000000,1,0x1]
        cmps.u.lt pp0.x, r0.x, imm[0.000000,3,0x3]\nbr pp0.x"
    );
    let body = "add.u r1.x, r1.x, imm[0.000000,1,0x1]
        cmps.u.lt pp0.x, r1.x, imm[0.000000,9,0x9]\nbr pp0.x";

    // A shared register.
    let with = |after_loop: &str, past: &str, both: &str| {
        let after_loop = format!("{after_loop}\njump");
        let past = format!("mov.u32u32 sr48.x, imm[0.000000,2,0x2]\n{past}\njump");
        let both = format!("{both}\n{STORE}");
        program(0, &[(&begin, &[2, 4]), (body, &[2, 3]), (&after_loop, &[5]), (&past, &[5]), (&both, &[])])
    };
    let source = with("", "", "mov.u32u32 r1.x, sr48.x");
    let target = with("mov.u32u32 r1.x, imm[0.000000,1,0x1]", "mov.u32u32 r1.x, imm[0.000000,2,0x2]", "");
    unproved(&source, &target);

    // Memory: one side loads a word that the other stores, before or after.
    let load = "ldib r1.x, imm[0.000000,0,0x0], r1.y, imm[0.000000,0,0x0] // {type=u32, components=1, space=ssbo, coords=1}\njump";
    let store = "stib imm[0.000000,0,0x0], r1.y, imm[0.000000,0,0x0], r0.x // {type=u32, components=1, space=ssbo, coords=1}\njump";
    let loads_first = program(0, &[(&begin, &[2, 4]), (body, &[2, 3]), (load, &[5]), (store, &[5]), (STORE, &[])]);
    let stores_first = program(0, &[(&begin, &[2, 3]), (body, &[2, 4]), (store, &[5]), (load, &[5]), (STORE, &[])]);
    assert!(prove(&loads_first, &loads_first).is_ok());
    assert!(prove(&stores_first, &stores_first).is_ok());
    unproved(&loads_first, &stores_first);
    unproved(&stores_first, &loads_first);

    // Both store.
    let after_loop = "stib imm[0.000000,0,0x0], r1.y, imm[0.000000,0,0x0], r1.x // {type=u32, components=1, space=ssbo, coords=1}\njump";
    let one = program(0, &[(&begin, &[2, 4]), (body, &[2, 3]), (after_loop, &[5]), (store, &[5]), ("end", &[])]);
    let other = program(0, &[(&begin, &[2, 3]), (body, &[2, 4]), (store, &[5]), (after_loop, &[5]), ("end", &[])]);
    assert!(prove(&one, &one).is_ok());
    unproved(&one, &other);
}

/// A loop that counts iterations, with an inner loop, and after both the count of all lanes: from a register of each
/// lane, or from a shared one. The blocks are 2, the header of the outer loop, where the lane number decides the edge
/// that a lane takes; 3, the inner loop; 4, which jumps back; 5, after both.
fn counted_through_a_shared_register(outer_to: &[usize], inner_to: &[usize]) {
    let begin = format!("{INPUTS}\nmov.u32u32 r1.x, imm[0.000000,0,0x0]\njump");
    let outer = "add.u r1.x, r1.x, imm[0.000000,1,0x1]
        mov.u32u32 r1.y, imm[0.000000,0,0x0]
        cmps.u.ge pp0.x, r1.x, r0.x\nbr pp0.x";
    let inner = "add.u r1.y, r1.y, imm[0.000000,1,0x1]
        cmps.u.lt pp0.x, r1.y, imm[0.000000,3,0x3]\nbr pp0.x";
    let with = |last: &str| {
        let last = format!("{last}{STORE}");
        program(0, &[(&begin, &[2]), (outer, outer_to), (inner, inner_to), ("jump", &[2]), (&last, &[])])
    };
    let (source, target) = (with(""), with("mov.u32u32 sr48.x, r1.x\nmov.u32u32 r1.x, sr48.x\n"));
    assert!(prove(&source, &source).is_ok());
    unproved(&source, &target);
}

/// Lanes that leave an inner loop together, and the outer one with it, may leave the outer one in different iterations.
#[test]
fn a_shared_register_after_an_outer_loop_that_lanes_leave_from_an_inner_one() {
    counted_through_a_shared_register(&[3, 4], &[3, 5]);
}

/// Lanes that leave a loop at its header do so one after the other, even if all back edges to it come from an inner
/// loop.
#[test]
fn a_shared_register_after_a_loop_whose_back_edges_come_from_an_inner_one() {
    counted_through_a_shared_register(&[5, 3], &[3, 4]);
}

/// Lanes that have left a loop do not wait for the others in a block that is laid out inside it.
#[test]
fn a_vote_of_lanes_that_have_left_a_loop() {
    let begin = format!("{INPUTS}\nmov.u32u32 r1.x, imm[0.000000,0,0x0]\njump");
    let test = "cmps.u.ge pp0.x, r1.x, r0.x\nbr pp0.x";
    let next = "add.u r1.x, r1.x, imm[0.000000,1,0x1]\njump";
    let vote = "cmps.u.lt pp0.x, r0.x, imm[0.000000,2,0x2]\nball pp0.x";
    let all = "mov.u32u32 r1.x, imm[0.000000,9,0x9]\njump";
    let inside =
        program(0, &[(&begin, &[2]), (test, &[3, 4]), (vote, &[5, 6]), (next, &[2]), (all, &[6]), (STORE, &[])]);
    let after_loop =
        program(0, &[(&begin, &[2]), (test, &[4, 3]), (next, &[2]), (vote, &[5, 6]), (all, &[6]), (STORE, &[])]);
    assert!(prove(&inside, &inside).is_ok());
    assert!(prove(&after_loop, &after_loop).is_ok());
    unproved(&inside, &after_loop);
    unproved(&after_loop, &inside);
}

/// The register checker, where the texts do not determine the order of the blocks of a wave.
#[test]
fn a_shared_register_that_others_write_while_lanes_wait() {
    let begin = format!(
        "{INPUTS}\nmov.u32u32 sr48.x, imm[0.000000,1,0x1]\nmov.u32u32 r1.x, imm[0.000000,5,0x5]
        cmps.u.lt pp0.x, r0.x, imm[0.000000,3,0x3]\nbr pp0.x"
    );
    let with = |others: &str, waits: &str| {
        let (others, waits) = (format!("{others}\njump"), format!("{waits}\njump"));
        program(0, &[(&begin, &[2, 3]), (&others, &[4]), (&waits, &[4]), (STORE, &[])])
    };
    let proved = |source: &Snapshot, target: &Snapshot| match (source.as_ir3(), target.as_ir3()) {
        (Some(source), Some(target)) => registers::prove(source, target, &gpu()).is_ok(),
        _ => panic!("both are ir3"),
    };
    let (read, known) = ("mov.u32u32 r1.x, sr48.x", "mov.u32u32 r1.x, imm[0.000000,1,0x1]");
    let alone = "mov.u32u32 sr49.x, imm[0.000000,2,0x2]";
    assert!(proved(&with(alone, read), &with(alone, known)));
    let writes = "mov.u32u32 sr48.x, imm[0.000000,2,0x2]";
    // The writes of the last lane before it ended, and those that it did not reach.
    let ends = format!(
        "{writes}\ncmps.u.lt pp0.x, r0.x, imm[0.000000,3,0x3]\nkill pp0.x\nmov.u32u32 sr48.x, imm[0.000000,1,0x1]"
    );
    for others in [writes, &ends] {
        let (source, target) = (with(others, read), with(others, known));
        assert!(proved(&source, &source));
        assert!(differ(&source, &target));
        assert!(!proved(&source, &target), "{others}");
    }
}

/// The selected program of a shader is proved; that of the shader with each of the changes to its text is another
/// program, and is not proved.
fn selected_is_proved(shader: &str, changes: &[(&str, &str)]) {
    let read = |text: &str| nir::text::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let plain = read(shader);
    let program = pipeline::select(&plain, &gpu()).unwrap_or_else(|error| panic!("{error}\n{shader}"));
    let (plain, program) = (Snapshot::Nir(Box::new(plain)), Snapshot::Ir3(Box::new(program)));
    assert!(!differ(&plain, &program));
    let proof = prove(&plain, &program);
    assert!(proof.is_ok(), "{proof:?}");
    for (from, to) in changes {
        let changed = shader.replace(from, to);
        assert!(changed != shader, "{from} is not there");
        let changed = Snapshot::Nir(Box::new(read(&changed)));
        assert!(differ(&changed, &program), "{from} as {to} is the same");
        let proof = prove(&changed, &program);
        assert!(proof.is_err(), "{from} as {to}: {proof:?}");
    }
}

/// A shader that loads a word by the lane number, %5, and stores %90 there.
fn shader_of(body: &str) -> String {
    format!(
        "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 64, 1, 1\nnum_ssbos: 2\nsubgroup_size: 1
decl_function main () (entrypoint)

impl main {{
    block b0:
    32     %0 = @load_local_invocation_index
    32     %1 = load_const (0x00000000)
    32     %2 = load_const (0x00000001)
    32     %3 = load_const (0x00000002)
    32     %4 = ishl %0, %3
    32     %5 = @load_ssbo_ir3 (%1, %4, %0) (base=0, access=none, align_mul=4, align_offset=0)
    1      %6 = ult %0, %2
    32     %9 = load_const (0x00000021)
    1      %7 = ult %0, %9
{body}
                @store_ssbo_ir3 (%90, %1, %4, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
                // succs: b9
    block b9:
}}
"
    )
}

/// The machine reads components of other elements where nir reads none, as the number of registers is three times the
/// index.
#[test]
fn an_array_of_vectors_of_three_by_an_index_from_memory() {
    let body = "    32         %10 = @decl_reg (num_components=3, num_array_elems=2, bit_size=32, divergent=1)
    32     %11 = iadd %5, %0
    32x3   %12 = vec3 %5, %0, %11
    32     %13 = iand %5, %2
                @store_reg (%12, %10) (base=0, wrmask=xyz, legacy_fsat=0)
    32x3   %19 = vec3 %11, %5, %0
                @store_reg (%19, %10) (base=1, wrmask=xyz, legacy_fsat=0)
                @store_reg_indirect (%12, %10, %13) (base=0, wrmask=yz, legacy_fsat=0)
    32     %14 = iand %0, %2
    32x3   %15 = @load_reg_indirect (%10, %14) (base=0, legacy_fabs=0, legacy_fneg=0)
    32x3   %16 = @load_reg_indirect (%10, %5) (base=0, legacy_fabs=0, legacy_fneg=0)
    32     %17 = fadd %15.x, %15.z
    32     %18 = fadd %16.x, %16.y
    32     %90 = bcsel %7, %17, %18";
    selected_is_proved(&shader_of(body), &[("%15.z", "%15.y"), ("iand %0, %2", "iand %5, %2")]);
}

/// Selection leaves a phi of an undefined value unchanged: values computed from it are the same on paths on which it is
/// defined.
#[test]
fn values_computed_from_a_phi_that_is_undefined_on_one_path() {
    let body = "    32     %8 = undefined
                // succs: b1 b2
    if %7 {
        block b1:   // preds: b0
        32     %10 = iadd %5, %0
        // succs: b3
    } else {
        block b2:   // preds: b0, succs: b3
    }
    block b3:   // preds: b1 b2
    32     %11 = phi b1: %10, b2: %8
    32     %31 = load_const (0x3fc00000 = 1.5)
    32     %12 = fadd %11, %5
    32     %13 = fmul %12, %31
    32     %14 = fadd %13, %5
    32     %15 = fmul %14, %31
    32     %16 = fadd %15, %5
    32     %17 = fmul %16, %31
    32     %18 = fadd %17, %5
    32     %19 = fmul %18, %31
    32     %90 = bcsel %7, %19, %0";
    selected_is_proved(&shader_of(body), &[("bcsel %7, %19", "bcsel %7, %18"), ("fmul %12", "fmul %11")]);
}

/// A broadcast reads lanes that are active, so a bool of another lane is one bit in a half register, too.
#[test]
fn a_bool_that_is_broadcast_in_clusters() {
    let body = "    1      %10 = load_const (false)
    1      %11 = @brcst_active_ir3 (%10, %7) (cluster_size=2)
    1      %12 = ior %7, %11
    1      %13 = @reduce_clusters_ir3 (%12) (reduction_op=ior)
    32     %14 = b2i32 %13
    32     %15 = b2i32 %12
    32     %16 = iadd %14, %15
    32     %90 = iadd %16, %5";
    selected_is_proved(
        &shader_of(body),
        &[("ior %7, %11", "iand %7, %11"), ("@brcst_active_ir3 (%10, %7)", "@brcst_active_ir3 (%10, %6)")],
    );
}

/// Random changes to programs that these rules prove.
#[test]
fn changed_pairs_are_not_proved() {
    for kind in ["loops rotated", "other register limit"] {
        let (mut proved, mut planted) = (0, 0);
        for pair in pairs(0x666f_726d, &gpu()).filter(|pair| pair.kind == kind).take(3) {
            if prove(&pair.source, &pair.target).is_err() {
                continue;
            }
            proved += 1;
            let Some(program) = pair.target.as_ir3() else { continue };
            let sites = Sites::new(program);
            for (i, change) in KINDS.iter().enumerate() {
                let mut mutant = program.clone();
                if !change.apply(&mut mutant, &sites, pair.seed.wrapping_add(i as u64))
                    || validate(&mutant, &gpu(), Form::of(program)).is_err()
                {
                    continue;
                }
                let mutant = Snapshot::Ir3(Box::new(mutant));
                if differ(&pair.source, &mutant) {
                    planted += 1;
                    let proof = super::proof(&pair.source, &mutant, &limits(120));
                    assert!(proof.is_err(), "{kind}, pair {}, {}: {proof:?}", pair.number, change.name);
                }
            }
        }
        assert!(proved >= 2 && planted >= 8, "{kind}: {proved} proved, {planted} planted");
    }
}
