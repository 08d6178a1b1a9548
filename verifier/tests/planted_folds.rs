//! Planted bugs of value numbering and the folds: each must be refuted at its stage, and at no other.

use super::common::planted as programs;

use ir3_compiler::ir3::{Dst, Instr, InstrFlags, Mods, Opcode, Place, Program, SrcOperand, Value};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_programs::generator::Profile;
use programs::Programs;

/// Some folds are rare.
fn planted(stage: Stage, profile: Profile, bug: impl Fn(&mut Program, u64) -> bool) {
    Programs { seed: 0xf01d, count: 240, profiles: &[profile], runs: 1, one_in: 4, options: Options::default() }
        .planted(stage, bug);
}

/// The `n`-th element of a list, modulo its length.
fn nth<T: Copy>(list: &[T], n: u64) -> Option<T> {
    list.get((n % list.len().max(1) as u64) as usize).copied()
}

fn all(program: &Program, wanted: impl Fn(&Program, Instr) -> bool) -> Vec<Instr> {
    program.iter_instrs().map(|(_, instr)| instr).filter(|&instr| wanted(program, instr)).collect()
}

fn result(program: &Program, instr: Instr) -> Option<Value> {
    program.instrs[instr].dsts.first().and_then(Dst::value)
}

/// Replaces all uses of a value by another one.
fn replace(program: &mut Program, old: Value, new: Value) {
    for instr in all(program, |_, _| true) {
        for src in &mut program.instrs[instr].srcs {
            if src.operand == SrcOperand::Place(Place::Value(old)) {
                src.operand = SrcOperand::Place(Place::Value(new));
            }
        }
    }
}

/// Two splits of a vector are treated as equal though they take different components.
#[test]
fn value_numbering_forgets_attributes() {
    planted(Stage::ValueNumbering, Profile::Vectors, |program, n| {
        let splits = all(program, |program, instr| program.instrs[instr].opcode == Opcode::Split);
        let Some(second) = nth(&splits, n) else { return false };
        let operand = program.instrs[second].srcs[0].operand;
        let first = splits.iter().copied().find(|&split| program.instrs[split].srcs[0].operand == operand);
        match (first.filter(|&first| first != second).and_then(|first| result(program, first)), result(program, second))
        {
            (Some(first), Some(second)) => replace(program, second, first),
            _ => return false,
        }
        true
    });
}

/// An operand reads the word after that of its immediate, which has another immediate or is undefined.
#[test]
fn a_number_is_at_another_word() {
    planted(Stage::Constants, Profile::Alu, |program, n| {
        let Some((word, _)) = nth(&program.consts.immediates, n) else { return false };
        for (its, _) in &mut program.consts.immediates {
            *its += u16::from(*its >= word);
        }
        true
    });
}

/// An immediate is put at a word that the shader itself uses.
#[test]
fn a_number_overlaps_a_word_in_use() {
    planted(Stage::Constants, Profile::Mixed, |program, n| {
        let numbers: Vec<u16> = program.consts.immediates.iter().map(|&(word, _)| word).collect();
        let mut own = Vec::new();
        for instr in all(program, |_, _| true) {
            for src in &program.instrs[instr].srcs {
                match src.operand {
                    SrcOperand::Const(word) if !numbers.contains(&word) && word < 1024 => own.push(word),
                    _ => {}
                }
            }
        }
        let (Some(own), Some(number)) = (nth(&own, n), nth(&numbers, n)) else { return false };
        for instr in all(program, |_, _| true) {
            for src in &mut program.instrs[instr].srcs {
                if src.operand == SrcOperand::Const(number) {
                    src.operand = SrcOperand::Const(own);
                }
            }
        }
        program.consts.immediates.iter_mut().filter(|(word, _)| *word == number).for_each(|(word, _)| *word = own);
        true
    });
}

/// A clamp is removed, and no operation saturates instead.
#[test]
fn a_clamp_is_lost() {
    planted(Stage::Saturation, Profile::Alu, |program, n| {
        let clamps = |program: &Program, instr: Instr| {
            let data = &program.instrs[instr];
            data.flags == InstrFlags::SAT && data.opcode.can_saturate()
        };
        let Some(clamp) = nth(&all(program, clamps), n) else { return false };
        program.instrs[clamp].flags = InstrFlags::empty();
        true
    });
}

/// The negation of a selection's condition is removed, and its operands are not exchanged.
#[test]
fn a_selection_without_the_exchange() {
    planted(Stage::Fold, Profile::Branchy, |program, n| {
        let selections = all(program, |program, instr| {
            let data = &program.instrs[instr];
            matches!(data.opcode, Opcode::SelB16 | Opcode::SelB32) && data.srcs[0].operand != data.srcs[2].operand
        });
        let Some(selection) = nth(&selections, n) else { return false };
        program.instrs[selection].srcs.swap(0, 2);
        true
    });
}

/// The negation of a condition is removed, and the branch is not inverted.
#[test]
fn a_branch_without_the_inversion() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let is_branch = |opcode| matches!(opcode, Opcode::Br | Opcode::Braa | Opcode::Brao);
        let branches = all(program, |p, instr| is_branch(p.instrs[instr].opcode));
        let Some(branch) = nth(&branches, n) else { return false };
        program.instrs[branch].srcs[0].mods ^= Mods::NOT;
        true
    });
}
