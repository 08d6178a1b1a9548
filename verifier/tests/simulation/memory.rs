//! Memory in proofs and in runs: aliasing of buffers, reordering of accesses, barriers. A target that a run
//! distinguishes from its source must not be proved, and an equivalent one must be.

use super::{gpu, limits};
use ir3_compiler::compilation;
use ir3_compiler::ir3::Opcode;
use ir3_compiler::pipeline::{self, Options};
use ir3_harness::check::Verdict;
use ir3_programs::mutations::{KINDS, Sites};
use ir3_programs::seeds::env_seeds;
use ir3_prove::simulation::{Proof, SimulationFailure};
use ir3_semantics::Snapshot;
use ir3_semantics::assumptions::NO_ALIAS;

/// A compute shader of one block. `%0` is the number of the invocation, `%1` to `%3` are 0, 1 and 64.
fn shader(lines: &str) -> Snapshot {
    shader_of(&format!(
        "block b0:
    32    %0 = @load_local_invocation_index
    32    %1 = load_const (0x00000000 = 0.000000)
    32    %2 = load_const (0x00000001)
    32    %3 = load_const (0x00000040 = 64)
    {lines}
    block b1:"
    ))
}

/// A compute shader of two waves.
fn shader_of(body: &str) -> Snapshot {
    super::nir("workgroup_size: 128, 1, 1\nnum_ssbos: 4\nshared_size: 1024", body)
}

fn proof(source: &Snapshot, target: &Snapshot) -> Result<Proof, SimulationFailure> {
    super::proof(source, target, &limits(2000))
}

fn runs(source: &Snapshot, target: &Snapshot) -> Verdict {
    super::runs(source, target, env_seeds(7, 16))
}

/// Checks that the programs differ in a run, and are not proved.
#[track_caller]
fn differ(source: &str, target: &str) {
    let (source, target) = (shader(source), shader(target));
    let verdict = runs(&source, &target);
    assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
    let proof = proof(&source, &target);
    assert!(matches!(proof, Err(SimulationFailure::NotShown { .. })), "{proof:?}");
}

/// Checks that the programs are proved, and that no run differs.
#[track_caller]
fn same(source: &str, target: &str) -> Proof {
    let (source, target) = (shader(source), shader(target));
    let verdict = runs(&source, &target);
    assert!(matches!(verdict, Verdict::Tested { .. }), "{verdict:?}");
    proof(&source, &target).unwrap_or_else(|failure| panic!("{failure}"))
}

/// A store of the invocation's number to entry 0 of descriptor set 1, which is then copied from the buffer `from` to
/// buffer 2.
fn copied(from: &str) -> String {
    format!(
        "32 %4 = @bindless_resource_ir3 (%1) (desc_set=1)
        32 %5 = @bindless_resource_ir3 (%3) (desc_set=0)
        32 %6 = load_const (0x00000002)
        @store_ssbo_ir3 (%0, %4, %1, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
        32 %7 = @load_ssbo_ir3 ({from}, %1, %0) (base=0, access=none, align_mul=4, align_offset=0)
        @store_ssbo_ir3 (%7, %6, %1, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)"
    )
}

#[test]
fn a_descriptor_is_a_set_and_an_index() {
    same(&copied("%4"), &copied("%4"));
    // Entry 64 of set 0; buffer 64, bound; buffer 0, bound.
    for other in ["%5", "%3", "%1"] {
        differ(&copied("%4"), &copied(other));
    }
    // Bindless in set 0 is not bound.
    differ(&copied("%5"), &copied("%3"));
}

#[test]
fn the_set_of_a_texture_is_part_of_the_question() {
    let sampled = |set: u32, index: &str| {
        format!(
            "32 %4 = @bindless_resource_ir3 ({index}) (desc_set={set})
            32x2 %5 = vec2 %1, %1
            32x4 %6 = (float32)txl %4 (texture_handle), %4 (sampler_handle), %5 (coord), %1 (lod), 0 (texture), 0 (sampler)
            @store_ssbo_ir3 (%6, %1, %1, %0) (base=0, wrmask=xyzw, access=none, align_mul=4, align_offset=0)"
        )
    };
    same(&sampled(1, "%1"), &sampled(1, "%1"));
    differ(&sampled(1, "%1"), &sampled(0, "%3"));
}

/// A barrier for execution and shared memory, and its halves.
const BARRIER: &str =
    "@barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)";
const FENCE: &str = "@barrier (execution_scope=NONE, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)";
const DEVICE_FENCE: &str =
    "@barrier (execution_scope=NONE, memory_scope=DEVICE, mem_semantics=ACQ|REL, mem_modes=ssbo)";
const WAIT: &str = "@barrier (execution_scope=WORKGROUP, memory_scope=NONE, mem_semantics=NONE, mem_modes=0)";

/// Each invocation stores its number, and then loads that of its partner in the other wave. The letters of `order` give
/// the order of the store, the barrier and the load.
fn exchanged(barrier: &str, order: &str) -> String {
    let mut lines = "32 %4 = load_const (0x00000002)
        32 %5 = ishl %0, %4
        32 %6 = ixor %0, %3
        32 %7 = ishl %6, %4
        "
    .to_owned();
    for letter in order.chars() {
        lines += match letter {
            's' => "@store_shared (%0, %5) (base=0, wrmask=x, align_mul=4, align_offset=0)",
            'b' => barrier,
            'l' => "32 %8 = @load_shared (%7) (base=0, align_mul=4, align_offset=0)",
            _ => unreachable!("a letter"),
        };
        lines += "\n        ";
    }
    lines + "@store_ssbo_ir3 (%8, %1, %5, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)"
}

#[test]
fn nothing_moves_over_a_barrier() {
    let source = exchanged(BARRIER, "sbl");
    same(&source, &source);
    // Without the barrier, and with an access moved across it.
    for order in ["sl", "bsl", "slb"] {
        differ(&source, &exchanged(BARRIER, order));
    }
    // An additional barrier, or only one of its halves.
    differ(&source, &exchanged(BARRIER, "sbbl"));
    differ(&source, &exchanged(FENCE, "sbl"));
    differ(&source, &exchanged(WAIT, "sbl"));
}

#[test]
fn fences_stay_between_what_they_order() {
    let source = exchanged(FENCE, "sbl");
    same(&source, &source);
    for order in ["sl", "bsl"] {
        differ(&source, &exchanged(FENCE, order));
    }
    differ(&source, &exchanged(DEVICE_FENCE, "sbl"));
    differ(&source, &exchanged(BARRIER, "sbl"));
    // A load that is moved across it may read a word that another wave has not stored yet, which no order of waves
    // between barriers shows.
    let moved = proof(&shader(&source), &shader(&exchanged(FENCE, "slb")));
    assert!(matches!(moved, Err(SimulationFailure::NotShown { .. })), "{moved:?}");
    // The target may have a fence that orders more, and additional fences.
    let both = FENCE.replace("shared", "ssbo|shared");
    same(&source, &exchanged(&both, "sbl"));
    same(&source, &exchanged(FENCE, "sbbl"));
    differ(&exchanged(&both, "sbl"), &source);
    // Accesses that a fence does not order may be moved across it.
    let of_device = exchanged(DEVICE_FENCE, "sbl");
    same(&of_device, &exchanged(DEVICE_FENCE, "slb"));
    same(&of_device, &exchanged(DEVICE_FENCE, "bsl"));
    differ(&of_device, &exchanged(DEVICE_FENCE, "sl"));
}

/// A store and a load of two kinds of memory, in either order; the load's result goes to buffer 3.
fn crossed(store: &str, load: &str, load_first: bool) -> String {
    let begin = "32 %4 = load_const (0x00000003)
        32x2 %5 = vec2 %1, %1
        32x4 %6 = vec4 %1, %1, %1, %1
        32 %7 = undefined";
    let end = "@store_ssbo_ir3 (%8, %4, %1, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)";
    let (first, second) = if load_first { (load, store) } else { (store, load) };
    format!("{begin}\n{first}\n{second}\n{end}")
}

fn load_ssbo(number: u32) -> String {
    format!("32 %8 = @load_ssbo_ir3 (%{number}, %1, %1) (base=0, access=none, align_mul=4, align_offset=0)")
}

const STORE_SSBO: &str =
    "@store_ssbo_ir3 (%0, %1, %1, %1) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)";
const STORE_GLOBAL: &str = "@store_global_ir3 (%0, %5, %1) (access=none, align_mul=4, align_offset=0)";
const STORE_IMAGE: &str = "@image_store (%1, %6, %7, %6, %1) (image_dim=2D, image_array=false, \
    format=r32g32b32a32_uint, access=none, range_base=0, src_type=uint32)";

#[test]
fn what_may_be_one_buffer_stays_in_order() {
    // The same binding, another one, and global memory.
    for (store, load) in [(STORE_SSBO, load_ssbo(1)), (STORE_SSBO, load_ssbo(2)), (STORE_GLOBAL, load_ssbo(1))] {
        let [source, target] = [false, true].map(|load_first| crossed(store, &load, load_first));
        assert!(!same(&source, &source).assumptions.contains(&NO_ALIAS));
        differ(&source, &target);
    }
    // Loads may be reordered.
    let two = |a: u32, b: u32| {
        crossed(&load_ssbo(a).replace("%8", "%9"), &load_ssbo(b), false)
            + "\n@store_ssbo_ir3 (%9, %4, %2, %2) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)"
    };
    let swapped = two(1, 2).replace("%8 =", "%t =").replace("%9 =", "%8 =").replace("%t =", "%9 =");
    let swapped = swapped.replace("(%8, %4", "(%t, %4").replace("(%9, %4", "(%8, %4").replace("(%t, %4", "(%9, %4");
    assert!(!same(&two(1, 2), &swapped).assumptions.contains(&NO_ALIAS));
}

#[test]
fn images_are_no_buffers_by_a_named_assumption() {
    let load = load_ssbo(1);
    let [source, target] = [false, true].map(|load_first| crossed(STORE_IMAGE, &load, load_first));
    assert!(!same(&source, &source).assumptions.contains(&NO_ALIAS));
    assert!(same(&source, &target).assumptions.contains(&NO_ALIAS));
    // Shared memory aliases nothing.
    let shared = "32 %8 = @load_shared (%1) (base=0, align_mul=4, align_offset=0)";
    let [source, target] = [false, true].map(|load_first| crossed(STORE_SSBO, shared, load_first));
    assert!(!same(&source, &target).assumptions.contains(&NO_ALIAS));
}

/// Two loads of one place, whose sum goes to buffer 1; with `second`, the second one is executed.
fn loaded_twice(access: &str, second: bool) -> String {
    let load = |number: u32| {
        format!("32 %{number} = @load_ssbo_ir3 (%1, %0, %0) (base=0, access={access}, align_mul=4, align_offset=0)\n")
    };
    let again = if second { 5 } else { 4 };
    load(4)
        + &if second { load(5) } else { String::new() }
        + &format!("32 %6 = iadd %4, %{again}\n")
        + "@store_ssbo_ir3 (%6, %2, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)"
}

#[test]
fn volatile_loads_are_neither_merged_nor_dropped_nor_added_in_proofs() {
    same(&loaded_twice("none", true), &loaded_twice("none", false));
    for access in ["volatile", "coherent"] {
        same(&loaded_twice(access, true), &loaded_twice(access, true));
        differ(&loaded_twice(access, true), &loaded_twice(access, false));
        let added = proof(&shader(&loaded_twice(access, false)), &shader(&loaded_twice(access, true)));
        assert!(matches!(added, Err(SimulationFailure::NotShown { .. })), "{added:?}");
    }
}

#[test]
fn the_compiler_keeps_volatile_loads() {
    let unused = |access: &str| {
        let text = format!(
            "32 %4 = @load_ssbo_ir3 (%1, %0, %0) (base=0, access={access}, align_mul=4, align_offset=0)
            @store_ssbo_ir3 (%0, %2, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)"
        );
        let source = shader(&text);
        let Snapshot::Nir(nir) = &source else { unreachable!("nir") };
        let compiled = compilation::compile(nir, &gpu(), &Options::default(), &mut |_, _| ()).expect("it compiles");
        let target = Snapshot::Ir3(Box::new(compiled));
        let verdict = runs(&source, &target);
        assert!(matches!(verdict, Verdict::Tested { .. }), "{verdict:?}");
        let proof = proof(&source, &target);
        assert!(proof.is_ok(), "{proof:?}");
        // The load is dropped after compilation.
        let Snapshot::Ir3(mut program) = target else { unreachable!("ir3") };
        let mut dropped = false;
        for block in program.layout.clone() {
            let before = program.blocks[block].instrs.len();
            let loads: Vec<_> = program.blocks[block].instrs.clone();
            let kept = loads.into_iter().filter(|&instr| program.instrs[instr].opcode != Opcode::Ldib).collect();
            program.blocks[block].instrs = kept;
            dropped |= program.blocks[block].instrs.len() < before;
        }
        (source, Snapshot::Ir3(program), dropped)
    };
    assert!(!unused("none").2);
    let (source, target, dropped) = unused("volatile");
    assert!(dropped);
    let verdict = runs(&source, &target);
    assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
    assert!(proof(&source, &target).is_err());
}

/// Lanes of both arms of an if store to one word of buffer 1.
fn racing(condition: &str, arms: [&str; 2]) -> Snapshot {
    let [first, second] = arms.map(|value| {
        format!("@store_ssbo_ir3 ({value}, %2, %1, %1) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)")
    });
    shader_of(&format!(
        "block b0:
    32 %0 = @load_local_invocation_index
    32 %1 = load_const (0x00000000 = 0.000000)
    32 %2 = load_const (0x00000001)
    32 %3 = iand %0, %2
    1 %4 = {condition} %3, %1
    if %4 {{
        block b1:
        {first}
    }} else {{
        block b2:
        {second}
    }}
    block b3:
    block b4:"
    ))
}

/// A decision: which of two racing stores is last depends on the order of the arms. See docs/semantics.md.
#[test]
fn racing_stores_of_two_arms_stay_in_order() {
    let source = racing("ine", ["%0", "%3"]);
    let proved = proof(&source, &source);
    assert!(proved.is_ok(), "{proved:?}");
    let swapped = racing("ieq", ["%3", "%0"]);
    let verdict = runs(&source, &swapped);
    assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
    let proof = proof(&source, &swapped);
    assert!(matches!(proof, Err(SimulationFailure::NotShown { .. })), "{proof:?}");
}

#[test]
fn changes_of_barriers_and_sets_are_seen() {
    let source = shader(
        &exchanged(BARRIER, "sbl")
            .replace("(%8, %1,", "(%8, %9,")
            .replace("32 %8", "32 %9 = @bindless_resource_ir3 (%1) (desc_set=1)\n        32 %8"),
    );
    let Snapshot::Nir(nir) = &source else { unreachable!("nir") };
    let selected = pipeline::select(nir, &gpu()).expect("it is selected");
    let proved = proof(&source, &Snapshot::Ir3(Box::new(selected.clone())));
    assert!(proved.is_ok(), "{proved:?}");
    for name in ["drop barrier", "store over barrier", "descriptor set"] {
        let kind = KINDS.iter().find(|kind| kind.name == name).expect("a kind");
        for random in 0..4 {
            let mut mutant = selected.clone();
            assert!(kind.apply(&mut mutant, &Sites::new(&selected), random), "{name}");
            let mutant = Snapshot::Ir3(Box::new(mutant));
            let verdict = runs(&source, &mutant);
            assert!(matches!(verdict, Verdict::Refuted(_)), "{name}: {verdict:?}");
            let proof = proof(&source, &mutant);
            assert!(proof.is_err(), "{name}: {proof:?}");
        }
    }
}
