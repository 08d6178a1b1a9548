//! Planted bugs of the scalar backend for Gen7, in its 64-bit sums: changes of the program after a stage.
//!
//! Some show only in one form of the carry, which [`without`] selects.

use super::{BugChange, PlantedBug};
use ir3_compiler::i965::vec4::{Cmod, DstFile, Instr, Opcode, Program, RegType, Src, SrcFile};
use ir3_compiler::pipeline::{Feature, Stage};

/// All of them.
pub static ALL: [PlantedBug; 8] = [
    PlantedBug {
        name: "carry-dropped",
        stage: Stage::LowerAdditions,
        description: "the high words are added without the carry in the accumulator",
        change: BugChange::Gen7(carry_dropped),
    },
    PlantedBug {
        name: "carry-of-one-half",
        stage: Stage::LowerAdditions,
        description: "the carry is computed for the first 8 of 16 invocations only",
        change: BugChange::Gen7(carry_of_one_half),
    },
    PlantedBug {
        name: "sum-over-low-word",
        stage: Stage::LowerAdditions,
        description: "the carry is computed after its first low word was overwritten with the sum of the high words",
        change: BugChange::Gen7(sum_over_low_word),
    },
    PlantedBug {
        name: "inverted-carry",
        stage: Stage::LowerAdditions,
        description: "1 is added where there is no carry in the flag",
        change: BugChange::Gen7(inverted_carry),
    },
    PlantedBug {
        name: "signed-overflow",
        stage: Stage::LowerAdditions,
        description: "the flag is set by the overflow of signed integers",
        change: BugChange::Gen7(signed_overflow),
    },
    PlantedBug {
        name: "signed-carry",
        stage: Stage::LowerAdditions,
        description: "the sum of the low words is compared with an addend as signed integers",
        change: BugChange::Gen7(signed_carry),
    },
    PlantedBug {
        name: "pair-of-other-words",
        stage: Stage::CombineAdditions,
        description: "two sums are taken for a pair that have only their first words in common",
        change: BugChange::Gen7(pair_of_other_words),
    },
    PlantedBug {
        name: "accumulator-overwritten",
        stage: Stage::CombineAdditions,
        description: "the next `addc` moves between an `addc` and the reader of its carry",
        change: BugChange::Gen7(accumulator_overwritten),
    },
];

/// The features that are left out for the form of the carry in which a bug shows.
pub fn without(bug: &PlantedBug) -> &'static [Feature] {
    match bug.name {
        "inverted-carry" | "signed-overflow" => &[Feature::CarryAccumulator],
        "signed-carry" => &[Feature::CarryAccumulator, Feature::CarryFlag],
        _ => &[],
    }
}

fn is_carry(src: &Src) -> bool {
    src.file == SrcFile::Acc
}

fn carry_dropped(program: &mut Program) {
    let carries = program.instrs.iter_mut().flat_map(|instr| &mut instr.srcs).filter(|src| is_carry(src));
    carries.for_each(|src| *src = Src::immediate(0, RegType::Ud));
}

fn carry_of_one_half(program: &mut Program) {
    program.instrs.retain(|instr| !(instr.group == 8 && instr.srcs.iter().any(is_carry)));
}

/// The register of a destination, as a source.
fn reads(instr: &Instr, file: DstFile) -> bool {
    matches!(file, DstFile::Vgrf(number) if instr.srcs.iter().any(|src| src.file == SrcFile::Vgrf(number)))
}

fn sum_over_low_word(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let (before, carry) = (&program.instrs[at - 1], &program.instrs[at]);
        let is_sum = before.opcode == Opcode::Add && before.exec_size == program.mode.width();
        if carry.opcode == Opcode::Addc && carry.dst.file == DstFile::Null && is_sum && !reads(carry, before.dst.file) {
            let first = Src { file: program.instrs[at - 1].srcs[0].file, ..program.instrs[at].srcs[0] };
            program.instrs[at].srcs[0] = first;
        }
    }
}

fn inverted_carry(program: &mut Program) {
    for at in 1..program.instrs.len() {
        if program.instrs[at - 1].cmod == Some(Cmod::O)
            && let Some((_, inverse)) = &mut program.instrs[at].predicate
        {
            *inverse = true;
        }
    }
}

fn signed_overflow(program: &mut Program) {
    for instr in program.instrs.iter_mut().filter(|instr| instr.cmod == Some(Cmod::O)) {
        instr.dst.ty = RegType::D;
        instr.srcs.iter_mut().for_each(|src| src.ty = RegType::D);
    }
}

fn signed_carry(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let sum = program.instrs[at - 1].dst.file;
        let instr = &mut program.instrs[at];
        if instr.opcode == Opcode::Cmp && instr.cmod == Some(Cmod::L) && reads(instr, sum) {
            instr.srcs.iter_mut().for_each(|src| src.ty = RegType::D);
        }
    }
}

fn pair_of_other_words(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let (earlier, instr) = (&program.instrs[..at], &program.instrs[at]);
        let is_like = |other: &&Instr| {
            other.opcode == Opcode::Addc
                && other.group == instr.group
                && other.srcs[0] == instr.srcs[0]
                && other.srcs[1] != instr.srcs[1]
        };
        if instr.opcode == Opcode::Addc
            && let Some(other) = earlier.iter().rev().find(is_like)
        {
            program.instrs[at].srcs = other.srcs.clone();
        }
    }
}

fn accumulator_overwritten(program: &mut Program) {
    for at in 1..program.instrs.len() {
        let [reader, next] = [&program.instrs[at - 1], &program.instrs[at]];
        if reader.srcs.iter().any(is_carry) && next.opcode == Opcode::Addc && !reads(next, reader.dst.file) {
            program.instrs.swap(at - 1, at);
        }
    }
}
