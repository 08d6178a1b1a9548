//! Every parallel copy over a few registers, lowered, run, and compared with the meaning of a parallel copy.
//!
//! The registers under test are the *stage*: three full ones, which are six half ones. A *case* is a partial function:
//! each full register is written as a whole or as two halves, from any register of the stage, from an immediate or from
//! the constant file, or not at all. Many cases make one program: the stage is initialised, the copy executed, and the
//! contents of the stage saved (in the *stash*) until the end, where every register of every file is compared, so that
//! a stray write anywhere is noticed. `nop`s separate the copies from their surroundings, so that instructions can be
//! counted. GPUs for which a program is lowered to the same instructions share one run of it.
//!
//! The interpreter gives the meaning of an instruction; [`CopyCase::result`] gives the meaning of a parallel copy.

mod case;
mod series;

use case::{CopyCase, CopyStage, full, half, mov, shared, src};
use ir3_compiler::ir3::{InstrData, Opcode, Program};
use series::Series;

/// Runs all cases of a series that can be lowered, and checks that the others are refused.
fn exhaust(kind: &CopyStage, least: bool) {
    let mut series = Series::new(kind, &|_| {});
    let mut refusals = Series::new(kind, &|_| {});
    let room = series.room();
    let mut refused = 0;
    let has_shared = kind.has_shared();
    let has_scalar_alu = kind.targets[0].has_scalar_alu;
    let mut cases = kind.cases().filter(|case| {
        if !has_shared || !case.has_cycle(kind, true) && (has_scalar_alu || !case.has_cycle(kind, false)) {
            return true;
        }
        refused += 1;
        let result = refusals.check(std::slice::from_ref(case), false);
        assert!(result.is_err_and(|error| error.contains("an exchange of")), "{}: {:?}", kind.name, case.entries);
        false
    });
    loop {
        let batch: Vec<CopyCase> = cases.by_ref().take(room).collect();
        if batch.is_empty() {
            break;
        }
        if let Err(error) = series.check(&batch, least) {
            panic!("{}: {error}", kind.name);
        }
    }
    drop(cases);
    let Series { run, instructions, .. } = series;
    println!("{:66} {run:>8} cases, {instructions:>8} instructions run, {refused:>6} refused", kind.name);
}

const MERGED: [&str; 3] = ["a618", "a660", "a750"];

#[test]
fn halves_of_merged_registers() {
    exhaust(&CopyStage::merged("three full registers and their halves", &MERGED, &[full(0), full(4), full(9)]), false);
}

#[test]
fn merged_registers_on_both_sides_of_what_halves_reach() {
    for (a, b) in [(0, 4), (0, 5), (4, 5), (94, 95)] {
        for far in [96, 191] {
            let stage = [full(a), full(b), full(far)];
            exhaust(
                &CopyStage::merged(&format!("registers {a} and {b} in reach, {far} beyond"), &MERGED, &stage),
                false,
            );
        }
    }
    for near in [0, 4, 95] {
        let stage = [full(near), full(96), full(150)];
        exhaust(&CopyStage::merged(&format!("register {near} in reach, 96 and 150 beyond"), &MERGED, &stage), false);
    }
    exhaust(&CopyStage::merged("all beyond", &MERGED, &[full(96), full(150), full(191)]), false);
}

#[test]
fn separate_files() {
    let halves = [0, 1, 8, 9, 100, 191].map(half);
    for gpus in [&["a320", "a420"][..], &["a540"]] {
        exhaust(
            &CopyStage::separate("two full and three half registers", gpus, &[full(0), full(4)], &halves[..3]),
            false,
        );
        exhaust(&CopyStage::separate("six half registers", gpus, &[], &halves), false);
    }
}

#[test]
fn shared_registers() {
    let scalar = ["a660", "a750"];
    let stage = [shared(0), shared(4), shared(9)];
    exhaust(&CopyStage::merged("three shared registers and their halves", &scalar, &stage), false);
    for (a, b) in [(0, 4), (4, 5)] {
        let stage = [shared(a), shared(b), shared(16)];
        exhaust(&CopyStage::merged(&format!("shared {a} and {b} in reach, 16 beyond"), &scalar, &stage), false);
    }
    // Without a scalar ALU, copies that are in no cycle can be lowered.
    for gpu in ["a540", "a618"] {
        exhaust(&CopyStage::merged("two shared registers and their halves", &[gpu], &[shared(0), shared(4)]), false);
        exhaust(&CopyStage::fulls("three shared registers", &[gpu], &stage), false);
    }
}

#[test]
fn from_file_to_file() {
    let scalar = ["a660", "a750"];
    exhaust(
        &CopyStage::merged("two general registers and a shared one", &["a660"], &[full(0), full(4), shared(4)]),
        false,
    );
    for gpus in [&["a618"][..], &scalar] {
        exhaust(&CopyStage::merged("a general and a shared register", gpus, &[full(4), shared(4)]), false);
        exhaust(&CopyStage::merged("general beyond, and shared", gpus, &[full(0), full(100), shared(0)]), false);
    }
    exhaust(&CopyStage::merged("general, and shared beyond", &scalar, &[shared(0), shared(20), full(1)]), false);
}

/// The least number of instructions: as many moves as there are copies that are in no cycle, and one swap less than a
/// cycle has registers.
#[test]
fn full_registers_take_no_instruction_too_many() {
    let stage = [0, 4, 5, 96, 191].map(full);
    for gpus in [&["a320", "a420"][..], &["a540"], &MERGED] {
        exhaust(&CopyStage::fulls("five full registers", gpus, &stage), true);
    }
    exhaust(&CopyStage::fulls("five shared registers", &["a660", "a750"], &[0, 1, 4, 16, 31].map(shared)), true);
}

/// Changes the instructions between each two `nop`s around a copy.
fn between(program: &mut Program, change: &dyn Fn(&[InstrData]) -> Vec<InstrData>) {
    let block = program.layout[0];
    let list: Vec<InstrData> = program.iter_instrs().map(|(_, i)| program.instrs[i].clone()).collect();
    let mut new = Vec::new();
    for (i, part) in list.split(|data| data.opcode == Opcode::Nop).enumerate() {
        if i > 0 {
            new.push(InstrData::new(Opcode::Nop));
        }
        new.extend(if i % 2 == 1 { change(part) } else { part.to_vec() });
    }
    program.blocks[block].instrs = new.into_iter().map(|data| program.instrs.push(data)).collect();
}

#[test]
fn wrong_lowerings_are_seen() {
    /// A swap by two moves, which loses a value.
    fn two_moves(part: &[InstrData]) -> Vec<InstrData> {
        let moves = |data: &InstrData| {
            let pair = data.dsts.iter().zip(&data.srcs);
            pair.map(|(dst, &src)| mov((dst.class, dst.place.reg().unwrap()), src)).collect()
        };
        part.iter().flat_map(|data| if data.opcode == Opcode::Swz { moves(data) } else { vec![data.clone()] }).collect()
    }
    type SequenceChange<'a> = (&'a str, &'a dyn Fn(&[InstrData]) -> Vec<InstrData>);
    let changes: [SequenceChange<'_>; 4] = [
        ("two moves for a swap", &two_moves),
        ("the wrong order", &|part| part.iter().rev().cloned().collect()),
        ("the last one left out", &|part| part[..part.len().saturating_sub(1)].to_vec()),
        ("an exchange with a bystander", &|part| {
            let mut part = part.to_vec();
            if part.len() > 3 {
                part.push(mov(full(8), src(full(0))));
            }
            part
        }),
    ];
    let near = CopyStage::merged("near", &["a660"], &[full(0), full(4)]);
    let far = CopyStage::merged("far", &["a660"], &[full(0), full(4), full(100)]);
    for (name, change) in changes {
        for kind in [&near, &far] {
            let plant = |program: &mut Program| between(program, change);
            let mut series = Series::new(kind, &plant);
            let room = series.room();
            let mut cases = kind.cases();
            let found = std::iter::from_fn(|| Some(cases.by_ref().take(room).collect::<Vec<_>>()))
                .take_while(|batch| !batch.is_empty())
                .any(|batch| series.check(&batch, false).is_err());
            assert!(found, "{name} is not seen in {}", kind.name);
        }
    }
    // Right, but one instruction too many.
    let kind = CopyStage::fulls("fulls", &["a660"], &[0, 4, 5].map(full));
    let plant = |program: &mut Program| {
        between(program, &|part| {
            part.iter().flat_map(|data| vec![data.clone(); 1 + usize::from(data.opcode == Opcode::Mov)]).collect()
        })
    };
    let mut series = Series::new(&kind, &plant);
    let cases: Vec<CopyCase> = kind.cases().take(series.room()).collect();
    assert_eq!(series.check(&cases, false), Ok(()));
    assert!(series.check(&cases, true).is_err_and(|error| error.contains("moves")));
}
