//! Pairs as rematerialisation makes them: a value is defined a second time right before a reader. That is sound while
//! the operands still hold the same values.

use super::Made;
use crate::generator;
use crate::generator::{Features, Profile};
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{Block, Category, Instr, Opcode, Place, Program, RegClass, SrcOperand, Value, ValueData};
use ir3_compiler::pipeline::{Feature, Options, Stage};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// The approximate number of instructions of a program.
const SIZE: u32 = 40;

/// Makes a pair. `None` if the changed program is not valid.
pub(super) fn make(random: &mut Random, machine: &Target) -> Option<Made> {
    let profile = Profile::ALL[random.below(Profile::ALL.len())];
    let shader = generator::from_seed_within(random.next(), SIZE, profile, Features::of(machine)).shader;
    let options = Options::default().without(Feature::DeMorgan);
    let mut compilation = Compilation::new(&shader, machine, &options);
    compilation.run_until(Stage::Schedule).ok()?;
    let ProgramRef::Ir3(source) = compilation.program() else { return None };
    let source = source.clone();
    let mut target = source.clone();
    let other = random.chance(50);
    (0..20).find(|_| cloned(&mut target, other, random))?;
    if validate(&target, machine, Form::of(&source)).is_err() {
        return None;
    }
    let change = if other { "recomputed from another value" } else { "recomputed" };
    let [source, target] = [source, target].map(|program| Snapshot::Ir3(Box::new(program)));
    Some(Made { change, source, target, differs: false })
}

/// Returns the value that an instruction defines, if it is a pure operation with one destination.
fn computes(program: &Program, instr: Instr) -> Option<(Value, RegClass)> {
    let data = &program.instrs[instr];
    let pure = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3 | Category::Sfu)
        || matches!(data.opcode, Opcode::Mov);
    match data.dsts[..] {
        [dst] if pure => match dst.place {
            Place::Value(value) => Some((value, dst.class)),
            _ => None,
        },
        _ => None,
    }
}

/// Rematerialises a value before one of its readers, perhaps from other operands. Returns false if there is nothing to
/// change.
fn cloned(program: &mut Program, other: bool, random: &mut Random) -> bool {
    let all: Vec<(Block, Instr)> = program.iter_instrs().collect();
    let Some((_, instr)) = random.pick(&all) else { return false };
    let Some((value, _)) = computes(program, instr) else { return false };
    let reads = |&(_, reader): &(Block, Instr)| {
        let data = &program.instrs[reader];
        data.opcode != Opcode::Phi && data.srcs.iter().any(|src| src.value() == Some(value))
    };
    let readers: Vec<(Block, Instr)> = all.iter().copied().filter(reads).collect();
    let Some((block, reader)) = random.pick(&readers) else { return false };
    let mut data = program.instrs[instr].clone();
    if other {
        let values: Vec<(Value, RegClass)> = all.iter().filter_map(|&(_, instr)| computes(program, instr)).collect();
        let places: Vec<usize> = (0..data.srcs.len()).filter(|&at| data.srcs[at].value().is_some()).collect();
        let Some(at) = random.pick(&places) else { return false };
        let fits: Vec<Value> = values.into_iter().filter(|it| it.1 == data.srcs[at].class).map(|it| it.0).collect();
        let Some(found) = random.pick(&fits) else { return false };
        data.srcs[at].operand = SrcOperand::Place(Place::Value(found));
    }
    let again = program.instrs.push(data);
    let new = program.values.push(ValueData { instr: again, dst: 0, ..program.values[value].clone() });
    program.instrs[again].dsts[0].place = Place::Value(new);
    for src in program.instrs[reader].srcs.iter_mut().filter(|src| src.value() == Some(value)) {
        src.operand = SrcOperand::Place(Place::Value(new));
    }
    let instrs = &mut program.blocks[block].instrs;
    let Some(at) = instrs.iter().position(|&it| it == reader) else { return false };
    instrs.insert(at, again);
    true
}
