//! Bugs of the stages between selection and words: folding, scheduling, spilling, subgroups, waits.

use super::{BugChange, PlantedBug};
use ir3_compiler::ir3::{Attrs, InstrFlags, Opcode, OperandFlags, Program, RegFile, SrcOperand};
use ir3_compiler::pipeline::Stage;

use super::liveness::{units_of_dst, units_of_src};
use super::ssa;

/// The bugs.
pub static STAGES: [PlantedBug; 8] = [
    PlantedBug {
        name: "and-is-or",
        stage: Stage::Fold,
        description: "a branch on two conditions is taken if one of them holds where both have to, and vice versa",
        change: BugChange::Ir3(and_is_or),
    },
    PlantedBug {
        name: "load-first",
        stage: Stage::Schedule,
        description: "the scheduler moves a load over the store before it",
        change: BugChange::Ir3(ssa::store_over_load),
    },
    PlantedBug {
        name: "wrong-slot",
        stage: Stage::Spill,
        description: "all reloads of a block read the slot of the first one",
        change: BugChange::Ir3(wrong_slot),
    },
    PlantedBug {
        name: "late-read",
        stage: Stage::PostSchedule,
        description: "an instruction is issued after the one that overwrites its source",
        change: BugChange::Ir3(late_read),
    },
    PlantedBug {
        name: "repeat-without-step",
        stage: Stage::Repeat,
        description: "the sources of repeated instructions do not advance",
        change: BugChange::Ir3(repeat_without_step),
    },
    PlantedBug {
        name: "any-is-all",
        stage: Stage::LowerSubgroups,
        description: "a vote for any lane becomes one for all lanes",
        change: BugChange::Ir3(any_is_all),
    },
    PlantedBug {
        name: "lost-wait",
        stage: Stage::Legalize,
        description: "no instruction waits for loads: there is no `(sy)`",
        change: BugChange::Ir3(lost_wait),
    },
    PlantedBug {
        name: "shared-operand",
        stage: Stage::SharedRegisters,
        description: "where two operands are in shared registers, the second one is read twice",
        change: BugChange::Ir3(shared_operand),
    },
];

fn and_is_or(program: &mut Program) {
    for block in program.layout.clone() {
        for &instr in &program.blocks[block].instrs {
            let data = &mut program.instrs[instr];
            data.opcode = match data.opcode {
                Opcode::Braa => Opcode::Brao,
                Opcode::Brao => Opcode::Braa,
                other => other,
            };
        }
    }
}

fn wrong_slot(program: &mut Program) {
    for block in program.layout.clone() {
        let mut first = None;
        for &instr in &program.blocks[block].instrs {
            let data = &mut program.instrs[instr];
            if data.opcode != Opcode::ReloadMacro {
                continue;
            }
            // Base, offset, number of components.
            let Some(src) = data.srcs.get_mut(1) else { continue };
            src.operand = *first.get_or_insert(src.operand);
        }
    }
}

fn late_read(program: &mut Program) {
    for block in program.layout.clone() {
        let instrs = program.blocks[block].instrs.clone();
        let plain = |at: usize| {
            let data = &program.instrs[instrs[at]];
            !data.opcode.is_meta() && !data.opcode.is_terminator() && !data.dsts.is_empty()
        };
        let swapped = (1..instrs.len()).find(|&at| {
            let (first, second) = (&program.instrs[instrs[at - 1]], &program.instrs[instrs[at]]);
            let written: Vec<u16> = second.dsts.iter().flat_map(units_of_dst).collect();
            let reads = |unit: &u16| first.srcs.iter().flat_map(units_of_src).any(|read| read == *unit);
            plain(at - 1) && plain(at) && written.iter().any(reads)
        });
        if let Some(at) = swapped {
            program.blocks[block].instrs.swap(at - 1, at);
        }
    }
}

fn repeat_without_step(program: &mut Program) {
    for data in program.instrs.values_mut().filter(|data| data.repeat > 0) {
        data.srcs.iter_mut().for_each(|src| src.flags -= OperandFlags::R);
    }
}

fn any_is_all(program: &mut Program) {
    for data in program.instrs.values_mut().filter(|data| data.opcode == Opcode::Bany) {
        data.opcode = Opcode::Ball;
    }
}

fn lost_wait(program: &mut Program) {
    program.instrs.values_mut().for_each(|data| data.flags -= InstrFlags::SY);
}

fn shared_operand(program: &mut Program) {
    for data in program.instrs.values_mut() {
        let moves = data.opcode.is_meta() || matches!(data.attrs, Attrs::Memory(_) | Attrs::Texture(_));
        if let ([first, second, ..], false) = (&mut data.srcs[..], moves)
            && let (SrcOperand::Place(_), SrcOperand::Place(_)) = (first.operand, second.operand)
            && first.class == second.class
            && first.class.file == RegFile::Shared
        {
            first.operand = second.operand;
        }
    }
}
