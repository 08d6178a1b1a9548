//! Planted bugs of a scheduler: each must be refuted at its boundary, and at no other.
//!
//! A single wave runs in lockstep, so moving a barrier alone does not change its behaviour. Differences that other
//! waves would see appear here where an access before the barrier is exchanged with one after it.

use super::common::planted as programs;
use ir3_semantics::environment::env::Env;

use ir3_compiler::ir3::{AddressSpace, Block, InstrData, Opcode, Place, Program};
use ir3_compiler::nir::text;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{BoundaryVerdict, Checker, Verdict};
use ir3_programs::generator::Profile;
use programs::Programs;

/// Plants a bug in random programs.
fn planted(count: u64, profile: Profile, bug: impl Fn(&mut Program, u64) -> bool) {
    let programs =
        Programs { seed: 0x5c4ed, count, profiles: &[profile], runs: 1, one_in: 6, options: Options::default() };
    programs.planted(Stage::Schedule, bug);
}

/// Plants a bug in one program: it is refuted at this boundary and at no other.
fn refuted(program: &str, bug: impl Fn(&mut Program) -> bool) {
    let shader = text::read(program).expect("a program");
    let mut checker = Checker::new(Target::default(), Options::default());
    let clean = checker.program_or_panic(&shader, &Env::from_seeds(&[1, 2, 3]), None);
    assert!(
        clean.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Tested { .. })),
        "{:?}",
        clean.boundaries.len()
    );
    let mut changed = false;
    let mut plant = |at: Stage, program: &mut Program| {
        if at == Stage::Schedule {
            changed = bug(program);
        }
    };
    let report = checker.program_or_panic(&shader, &Env::from_seeds(&[1, 2, 3]), Some(&mut plant));
    assert!(changed, "nothing to change");
    for BoundaryVerdict { stage: at, verdict, .. } in &report.boundaries {
        assert_eq!(matches!(verdict, Verdict::Refuted(_)), *at == Stage::Schedule, "{at}: {verdict:?}");
    }
}

const DISCARD: &str = "
shader: MESA_SHADER_FRAGMENT
subgroup_size: 1
inputs: 1
outputs: 1
decl_function main () (entrypoint)

impl main {
    block b0:  // preds:
    32x2  %0 = @load_barycentric_pixel (interp_mode=INTERP_MODE_SMOOTH)
    32    %1 = load_const (0x00000000)
    32x2  %2 = @load_interpolated_input (%0, %1 (0x0)) (base=0, component=0, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    1     %3 = flt %2.x, %2.y
               @terminate_if (%3)
    32    %4 = @bindless_resource_ir3 (%1 (0x0)) (desc_set=0)
    32    %5 = load_const (0x00000002)
    32    %6 = iand %2.x, %5 (0x2)
    32    %7 = ishl %6, %5 (0x2)
    32    %8 = mov %2.x
               @store_ssbo_ir3 (%8, %4, %7, %6) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
               @store_output (%8, %1 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=FRAG_RESULT_DATA0 slots=1, xfb(), xfb2())
               // succs: b1
    block b1:
}
";

/// Moves an instruction without a result after another one of its block: of the pairs that satisfy `first` and
/// `second`, the one that `n` selects.
fn move_after(
    program: &mut Program,
    n: u64,
    first: impl Fn(&InstrData) -> bool,
    mut second: impl FnMut(&InstrData, &InstrData) -> bool,
) -> bool {
    let mut pairs: Vec<(Block, usize, usize)> = Vec::new();
    for &block in &program.layout {
        let list = &program.blocks[block].instrs;
        let data = |at: usize| &program.instrs[list[at]];
        for from in
            (0..list.len()).filter(|&from| data(from).dsts.iter().all(|dst| dst.value().is_none()) && first(data(from)))
        {
            // Up to the first that it must not cross.
            pairs.extend((from + 1..list.len()).find(|&to| second(data(from), data(to))).map(|to| (block, from, to)));
        }
    }
    let Some(&(block, from, to)) = pairs.get((n % pairs.len().max(1) as u64) as usize) else { return false };
    program.blocks[block].instrs[from..=to].rotate_left(1);
    true
}

fn is_store(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Stl | Opcode::Stib | Opcode::Stg | Opcode::Stp)
}

fn space(data: &InstrData) -> Option<AddressSpace> {
    data.memory().and_then(|memory| memory.space)
}

/// A load is moved over a store to the same memory.
#[test]
fn a_load_over_a_store() {
    refuted(include_str!("../../corpus/memory/load-after-store.nir"), |program| {
        move_after(program, 0, is_store, |store, load| space(store) == space(load) && !load.dsts.is_empty())
    });
}

/// A store is moved over an atomic on the same memory.
#[test]
fn an_atomic_over_a_store() {
    // Most of them have other addresses.
    let programs = Programs {
        seed: 0x5c4ed,
        count: 300,
        profiles: &[Profile::Memory],
        runs: 1,
        one_in: 10,
        options: Options::default(),
    };
    programs.planted(Stage::Schedule, |program, n| {
        move_after(program, n, is_store, |store, atomic| space(store) == space(atomic) && atomic.opcode.is_atomic())
    });
}

/// Lanes that ended before a store do store.
#[test]
fn a_kill_over_a_store() {
    refuted(DISCARD, |program| move_after(program, 0, |data| data.opcode == Opcode::Kill, |_, store| is_store(store)));
}

fn arrays<'a>(places: impl Iterator<Item = &'a Place>) -> Vec<u32> {
    let array = |place: &Place| match place {
        Place::Array(access) => Some(access.array.as_u32()),
        _ => None,
    };
    places.filter_map(array).collect()
}

fn written(data: &InstrData) -> Vec<u32> {
    arrays(data.dsts.iter().map(|dst| &dst.place))
}

/// An element of an array is read before it is written.
#[test]
fn an_array_is_read_over_a_write() {
    planted(300, Profile::Memory, |program, n| {
        move_after(
            program,
            n,
            |data| !written(data).is_empty(),
            |write, read| arrays(read.srcs.iter().filter_map(|src| src.place())) == written(write),
        )
    });
}

/// A store from before a barrier is moved after a load that follows the barrier.
#[test]
fn accesses_cross_a_barrier() {
    refuted(include_str!("../../corpus/memory/shared-reverse.nir"), |program| {
        let is_barrier = |data: &InstrData| matches!(data.opcode, Opcode::Bar | Opcode::Fence);
        let of_shared = |data: &InstrData| space(data) == Some(AddressSpace::Shared);
        let mut crosses = false;
        move_after(
            program,
            0,
            |data| is_store(data) && of_shared(data),
            |_, other| {
                crosses |= is_barrier(other);
                of_shared(other)
            },
        ) && crosses
    });
}
