//! Bugs that a scheduler could have must be refuted at its boundary, and nowhere else.
//!
//! A wave alone runs in step, so that a barrier by itself changes nothing of what it does: what would show in other waves
//! shows here where an access on either side changes places with one on the other.

#[path = "common/planted.rs"]
mod programs;

use ir3_compiler::ir3::{Block, Instr, InstrData, Opcode, Place, Program};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_verifier::generate::Profile;
use programs::Programs;

fn planted(count: u64, profile: Profile, bug: impl Fn(&mut Program, u64) -> bool) {
    let programs = Programs { seed: 0x5c4ed, count, profiles: &[profile], options: Options::default() };
    programs.planted(Stage::Schedule, bug);
}

/// Moves an instruction without a result behind another one of its block: of the pairs that `wanted` likes, one.
fn behind(
    program: &mut Program,
    n: u64,
    first: impl Fn(&InstrData) -> bool,
    second: impl Fn(&InstrData, &InstrData) -> bool,
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

fn space(data: &InstrData) -> Option<ir3_compiler::ir3::AddressSpace> {
    data.memory().and_then(|memory| memory.space)
}

/// A load is moved over a store to the same memory.
#[test]
fn a_load_over_a_store() {
    planted(200, Profile::Memory, |program, n| {
        behind(program, n, is_store, |store, load| {
            space(store) == space(load) && !load.dsts.is_empty() && !load.opcode.is_atomic()
        })
    });
}

/// A store is moved over an atomic on the same memory.
#[test]
fn an_atomic_over_a_store() {
    planted(300, Profile::Memory, |program, n| {
        behind(program, n, is_store, |store, atomic| space(store) == space(atomic) && atomic.opcode.is_atomic())
    });
}

/// Lanes that ended before a store do store.
#[test]
fn a_kill_over_a_store() {
    planted(3000, Profile::Mixed, |program, n| {
        behind(
            program,
            n,
            |data| matches!(data.opcode, Opcode::Kill),
            |_, store| is_store(store) || store.opcode.is_atomic(),
        )
    });
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
        behind(
            program,
            n,
            |data| !written(data).is_empty(),
            |write, read| arrays(read.srcs.iter().filter_map(|src| src.place())) == written(write),
        )
    });
}

/// A store from in front of a barrier is moved behind a load from behind it.
#[test]
fn accesses_cross_a_barrier() {
    planted(2000, Profile::Memory, |program, n| {
        let barrier =
            |&instr: &Instr, program: &Program| matches!(program.instrs[instr].opcode, Opcode::Bar | Opcode::Fence);
        let mut crossed = Vec::new();
        for &block in &program.layout {
            let list = &program.blocks[block].instrs;
            for at in (0..list.len()).filter(|&at| barrier(&list[at], program)) {
                let store = (0..at).rev().find(|&store| is_store(&program.instrs[list[store]]));
                let Some(store) = store else { continue };
                let here = space(&program.instrs[list[store]]);
                let load = (at + 1..list.len()).find(|&load| {
                    let data = &program.instrs[list[load]];
                    space(data) == here && !data.dsts.is_empty()
                });
                crossed.extend(load.map(|load| (block, store, load)));
            }
        }
        let Some(&(block, from, to)) = crossed.get((n % crossed.len().max(1) as u64) as usize) else { return false };
        program.blocks[block].instrs[from..=to].rotate_left(1);
        true
    });
}
