//! Planted bugs of the vec4 backend: changes of the program after a stage.

use super::{BugChange, PlantedBug};
use ir3_compiler::i965::vec4::{DstFile, Instr, Mask, Opcode, Predicate, Program};
use ir3_compiler::pipeline::Stage;

/// The bugs in the passes.
pub static ALL: [PlantedBug; 5] = [
    PlantedBug {
        name: "one-flag-bit",
        stage: Stage::Vec4DeadCode,
        description: "liveness has one bit for the flag: a comparison before another one is dead, for any channels of the other one",
        change: BugChange::Gen7(one_flag_bit),
    },
    PlantedBug {
        name: "any4h-reads-x",
        stage: Stage::Vec4DeadCode,
        description: "a comparison whose flag `.any4h` or `.all4h` reads keeps only the channel x",
        change: BugChange::Gen7(any4h_reads_x),
    },
    PlantedBug {
        name: "cmod-over-writer",
        stage: Stage::CmodPropagation,
        description: "a comparison moves before another instruction that writes the flag",
        change: BugChange::Gen7(cmod_over_writer),
    },
    PlantedBug {
        name: "lost-inverse",
        stage: Stage::Vec4DeadCode,
        description: "inverted predicates are not inverted",
        change: BugChange::Gen7(lost_inverse),
    },
    PlantedBug {
        name: "cmod-other-writemask",
        stage: Stage::CmodPropagation,
        description: "a conditional modifier goes to a producer that writes only x",
        change: BugChange::Gen7(cmod_other_writemask),
    },
];

/// The bug in selection, which is compared with nir.
pub static SELECTION: [PlantedBug; 1] = [PlantedBug {
    name: "inverted-if",
    stage: Stage::Vec4Select,
    description: "the condition of a branch is inverted",
    change: BugChange::Gen7(inverted_if),
}];

fn only_flag(instr: &Instr) -> bool {
    instr.dst.file == DstFile::Null && instr.writes_flag()
}

fn one_flag_bit(program: &mut Program) {
    let mut at = 0;
    while at + 1 < program.instrs.len() {
        let next = program.instrs[at + 1..]
            .iter()
            .find(|instr| instr.writes_flag() || instr.reads_flag() || instr.srcs.is_empty());
        let is_dead = next.is_some_and(|next| next.writes_flag() && !next.reads_flag());
        if only_flag(&program.instrs[at]) && is_dead {
            program.instrs.remove(at);
        } else {
            at += 1;
        }
    }
}

fn any4h_reads_x(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let reads_all = matches!(program.instrs[at].predicate, Some((Predicate::Any4h | Predicate::All4h, _)));
        let writer = program.instrs[..at].iter_mut().rev().find(|instr| instr.writes_flag());
        if let Some(writer) = writer.filter(|writer| reads_all && only_flag(writer)) {
            writer.dst.mask = Mask(1);
        }
    }
}

fn cmod_over_writer(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let [before, after] = [&program.instrs[at - 1], &program.instrs[at]];
        if before.writes_flag() && only_flag(before) && only_flag(after) {
            program.instrs.swap(at - 1, at);
            return;
        }
    }
}

fn lost_inverse(program: &mut Program) {
    for instr in &mut program.instrs {
        if let Some((_, inverse)) = &mut instr.predicate {
            *inverse = false;
        }
    }
}

fn cmod_other_writemask(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let [before, after] = [&program.instrs[at - 1], &program.instrs[at]];
        let fits = before.opcode.can_do_cmod() && !before.writes_flag() && before.dst.mask != Mask(1);
        if fits && only_flag(after) && after.opcode == Opcode::Cmp {
            let cmod = after.cmod;
            let producer = &mut program.instrs[at - 1];
            producer.cmod = cmod;
            program.instrs.remove(at);
            return;
        }
    }
}

fn inverted_if(program: &mut Program) {
    for instr in &mut program.instrs {
        if let (Opcode::If, Some((_, inverse))) = (instr.opcode, &mut instr.predicate) {
            *inverse ^= true;
        }
    }
}
