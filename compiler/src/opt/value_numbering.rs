//! Value numbering: what has been computed already is not computed again.
//!
//! Two instructions give the same value if they are the same operation with the same attributes, flags and sources, and
//! nothing but the sources decides what it gives. The second one goes, and its readers read the first one's result, if
//! the first stands in a block that dominates its own. One walk in the order of the code, in which sources have been
//! replaced before an instruction is looked at, so that whole expressions become one; phis read what comes later, and
//! have their turn at the end.
//!
//! Left alone are
//! - results in registers that have their own idea of when they may be read: shared ones and addresses; predicates only
//!   where a comparison writes them;
//! - reads of the constant file in front of an instruction that writes to it (a preamble does so), and reads relative to
//!   an address;
//! - vectors, immediates and words of the constant file of other blocks: to keep them costs more registers than it
//!   saves instructions.

use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::{
    Attrs, Block, Category, Condition, Dst, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegFile,
    RepeatLink, SrcOperand, Value,
};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// How many instructions an instruction is compared with: those of blocks that do not dominate it are in the way.
const LOOKS: usize = 16;

/// What is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Comparisons.
    pub comparisons: bool,
    /// All else.
    pub others: bool,
}

impl Rules {
    /// Everything.
    pub const ALL: Self = Self { comparisons: true, others: true };
}

/// Removes what computes the same as an instruction before it.
pub fn run(program: &mut Program, rules: Rules) {
    let mut writers = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode.writes_consts()).count();
    let dominators = Dominators::new(program, EdgeKind::Logical);
    let mut known = FxHashMap::<u64, SmallVec<[(Block, Instr); 1]>>::default();
    // What the results of removed instructions are now.
    let mut same = SecondaryMap::<Value, PackedOption<Value>>::new();
    let mut any = false;
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut list = std::mem::take(&mut program.blocks[block].instrs);
        list.retain(|&instr| {
            if any {
                replace_sources(program, instr, &same);
            }
            let data = &program.instrs[instr];
            writers -= usize::from(data.opcode.writes_consts());
            let Some(value) = numbered(data, rules, writers > 0) else { return true };
            let candidates = known.entry(hash(data)).or_default();
            let found = candidates.iter().rev().take(LOOKS).find(|&&(before, other)| {
                let near = before == block || worth_keeping(data) && dominators.dominates(before, block);
                near && is_same(data, &program.instrs[other])
            });
            match found.and_then(|&(_, other)| program.instrs[other].dsts[0].value()) {
                Some(first) => {
                    same[value] = first.into();
                    any = true;
                    false
                }
                None => {
                    candidates.push((block, instr));
                    true
                }
            }
        });
        program.blocks[block].instrs = list;
    }
    if any {
        replace_in_phis(program, &same);
    }
    if rules.comparisons {
        gather_tests(program);
    }
}

/// Has phis read what the results of removed instructions are now.
fn replace_in_phis(program: &mut Program, same: &SecondaryMap<Value, PackedOption<Value>>) {
    for position in 0..program.layout.len() {
        for index in 0..program.blocks[program.layout[position]].instrs.len() {
            let instr = program.blocks[program.layout[position]].instrs[index];
            if program.instrs[instr].opcode != Opcode::Phi {
                break;
            }
            replace_sources(program, instr, same);
        }
    }
}

/// Several tests of one value, none of which dominates all others, become one behind the value's definition. Predicates
/// cost nothing to keep: what finds no register is computed again where it is read.
fn gather_tests(program: &mut Program) {
    // Of each value that is tested: the test that stays, and how many there are.
    let mut tests = FxHashMap::<Value, (Instr, u32)>::default();
    let mut defined = SecondaryMap::<Value, bool>::with_capacity(program.values.len());
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if let Some((tested, _)) = test_of(data).filter(|&(tested, _)| defined[tested]) {
            tests.entry(tested).or_insert((instr, 0)).1 += 1;
        }
        data.dsts.iter().filter_map(Dst::value).for_each(|value| defined[value] = true);
    }
    tests.retain(|_, (_, count)| *count > 1);
    if tests.is_empty() {
        return;
    }
    let mut same = SecondaryMap::<Value, PackedOption<Value>>::new();
    let mut first = Vec::new();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let list = std::mem::take(&mut program.blocks[block].instrs);
        let mut out = Vec::with_capacity(list.len() + 4);
        for instr in list {
            let data = &program.instrs[instr];
            if !matches!(data.opcode, Opcode::Phi | Opcode::Input) {
                out.append(&mut first);
            }
            if let Some((tested, predicate)) = test_of(data)
                && let Some(&(stays, _)) = tests.get(&tested)
            {
                let stays = program.instrs[stays].dsts[0].value();
                same[predicate] = stays.filter(|&stays| stays != predicate).into();
                continue;
            }
            out.push(instr);
            let results = data.dsts.iter().filter_map(Dst::value);
            let behind = if matches!(data.opcode, Opcode::Phi | Opcode::Input) { &mut first } else { &mut out };
            behind.extend(results.filter_map(|value| tests.get(&value)).map(|&(test, _)| test));
        }
        out.append(&mut first);
        program.blocks[block].instrs = out;
    }
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        for index in 0..program.blocks[block].instrs.len() {
            replace_sources(program, program.blocks[block].instrs[index], &same);
        }
    }
}

/// The value of a general register that an instruction makes a predicate of by comparing it with 0, and the predicate.
fn test_of(data: &InstrData) -> Option<(Value, Value)> {
    let [Dst { place: Place::Value(predicate), class, .. }] = data.dsts[..] else { return None };
    let [tested, zero] = &data.srcs[..] else { return None };
    let is_test = data.opcode == Opcode::CmpsS
        && data.attrs == Attrs::Compare(Condition::Ne)
        && class.file == RegFile::Predicate
        && data.flags.is_empty()
        && zero.operand == SrcOperand::Immediate(0)
        && tested.mods.is_empty()
        && tested.class.file == RegFile::General;
    match tested.operand {
        SrcOperand::Place(Place::Value(value)) if is_test => Some((value, predicate)),
        _ => None,
    }
}

/// The value of an instruction that computes nothing but a value, from nothing but its sources.
fn numbered(data: &InstrData, rules: Rules, consts_may_change: bool) -> Option<Value> {
    let [Dst { place: Place::Value(value), class, flags, .. }] = data.dsts[..] else { return None };
    let computes = match data.opcode.category() {
        Category::Alu2 => !matches!(data.opcode, Opcode::BaryF | Opcode::FlatB | Opcode::Setrm),
        Category::Alu3 | Category::Sfu => true,
        Category::Move => data.opcode == Opcode::Mov,
        _ => matches!(data.opcode, Opcode::Collect | Opcode::Split),
    };
    let compares = matches!(data.attrs, Attrs::Compare(_));
    let plain = computes
        && if compares { rules.comparisons } else { rules.others }
        && (class.file == RegFile::General || compares && class.file == RegFile::Predicate)
        && !flags.intersects(OperandFlags::TIED | OperandFlags::EARLY_CLOBBER)
        && data.repeat == 0
        && data.link == RepeatLink::None
        && data.false_deps.is_empty();
    let known = |operand: &SrcOperand| match operand {
        SrcOperand::Place(place) => matches!(place, Place::Value(_)),
        SrcOperand::Const(_) => !consts_may_change,
        SrcOperand::Immediate(_) => true,
        SrcOperand::ConstRelative(_) | SrcOperand::Undef => false,
    };
    let all = data.srcs.iter().all(|src| known(&src.operand) && !src.flags.contains(OperandFlags::TIED));
    (plain && all).then_some(value)
}

/// Whether a value is worth a register for longer than a block.
fn worth_keeping(data: &InstrData) -> bool {
    let constant = |operand: &SrcOperand| matches!(operand, SrcOperand::Const(_) | SrcOperand::Immediate(_));
    match data.opcode {
        Opcode::Collect => false,
        Opcode::Mov => !data.srcs.iter().all(|src| constant(&src.operand)),
        _ => true,
    }
}

/// A number that is the same for all that is [the same](is_same).
fn hash(data: &InstrData) -> u64 {
    let mut hasher = FxHasher::default();
    (data.opcode, data.flags, data.dsts[0].class).hash(&mut hasher);
    match &data.attrs {
        Attrs::Move { src, dst, round } => (src, dst, round).hash(&mut hasher),
        Attrs::Compare(condition) => condition.hash(&mut hasher),
        Attrs::Split { offset } => offset.hash(&mut hasher),
        _ => {}
    }
    for src in &data.srcs {
        match src.operand {
            SrcOperand::Place(place) => place.value().hash(&mut hasher),
            SrcOperand::Const(word) => word.hash(&mut hasher),
            SrcOperand::Immediate(bits) => bits.hash(&mut hasher),
            SrcOperand::ConstRelative(_) | SrcOperand::Undef => {}
        }
        src.mods.hash(&mut hasher);
    }
    hasher.finish()
}

fn is_same(a: &InstrData, b: &InstrData) -> bool {
    a.opcode == b.opcode
        && a.flags == b.flags
        && a.attrs == b.attrs
        && (a.dsts[0].class, a.dsts[0].mask) == (b.dsts[0].class, b.dsts[0].mask)
        && a.srcs.len() == b.srcs.len()
        && a.srcs
            .iter()
            .zip(&b.srcs)
            .all(|(a, b)| (a.operand, a.class, a.mask, a.mods) == (b.operand, b.class, b.mask, b.mods))
}

fn replace_sources(program: &mut Program, instr: Instr, same: &SecondaryMap<Value, PackedOption<Value>>) {
    for src in &mut program.instrs[instr].srcs {
        if let Some(first) = src.value().and_then(|value| same[value].expand()) {
            src.set_value(first);
        }
    }
}
