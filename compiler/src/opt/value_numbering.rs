//! Value numbering: eliminates common subexpressions.
//!
//! Two instructions compute the same value if they have the same opcode, attributes, flags and sources, and the result
//! depends on the sources only. The second one is removed, and its users read the first one's result, if the block of
//! the first dominates its own. One pass in code order; sources are replaced before an instruction is hashed, so that
//! whole expressions become one; phis may read later values and are processed at the end.
//!
//! The pass skips
//! - results in registers with restrictions on when they may be read: shared ones; predicates unless a comparison
//!   writes them; addresses unless the same number is moved to the same register that was moved there last in the
//!   block, as no two addresses of one register are alive at once;
//! - reads of the constant file before an instruction that writes to it (a preamble does so), and relative reads;
//! - vectors, immediates and words of the constant file of other blocks: keeping them costs more registers than it
//!   saves instructions.

use crate::arms::{Arm, Counter};
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::{
    Attrs, Block, Condition, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegFile, SrcOperand,
    Value,
};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// The maximum number of candidates that an instruction is compared with: those of blocks that do not dominate it count
/// too.
const LOOKS: usize = 16;

/// An instruction that later ones are compared with.
struct Candidate {
    block: Block,
    instr: Instr,
    /// The index of the one before it with the same hash.
    before: u32,
    /// The number of those before it with the same hash.
    rank: u32,
}

const NO_CANDIDATE: u32 = u32::MAX;

/// Removes instructions that compute the same value as an earlier one.
pub fn run(program: &mut Program, counter: &Counter) {
    let mut writers = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode.writes_consts()).count();
    let dominators = Dominators::new(program, EdgeKind::Logical);
    let count = program.instruction_count();
    // The last candidate of each hash, and all candidates.
    let mut last_of = FxHashMap::<u64, u32>::with_capacity_and_hasher(count, FxBuildHasher);
    let mut candidates: Vec<Candidate> = Vec::with_capacity(count);
    // The values that replace the results of removed instructions.
    let mut same: SecondaryMap<Value, PackedOption<Value>> = map_of(program.values.len());
    let mut any = false;
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut list = std::mem::take(&mut program.blocks[block].instrs);
        let mut addresses = Vec::<(PhysReg, Instr)>::new();
        list.retain(|&instr| {
            if any {
                replace_sources(program, instr, &same);
            }
            let data = &program.instrs[instr];
            if let Some((reg, value)) = address(data) {
                let last = addresses.iter().position(|&(other, _)| other == reg).map(|at| addresses.swap_remove(at).1);
                let found = last.filter(|&last| is_same(data, &program.instrs[last]));
                addresses.push((reg, found.unwrap_or(instr)));
                if let Some(first) = found.and_then(|last| program.instrs[last].dsts[0].value())
                    && counter.may(Arm::NumberAddress)
                {
                    same[value] = first.into();
                    any = true;
                    return false;
                }
                return true;
            }
            if data.dsts.iter().any(|dst| dst.class.file == RegFile::Address) {
                addresses.clear();
            }
            writers -= usize::from(data.opcode.writes_consts());
            let Some(value) = numbered(data, writers > 0) else { return true };
            let last = last_of.entry(hash(data)).or_insert(NO_CANDIDATE);
            let before = candidates.get(*last as usize);
            let rank = before.map_or(0, |before| before.rank + 1);
            if rank as usize > LOOKS {
                counter.count(Arm::NumberLooks);
            }
            let chain = std::iter::successors(before, |candidate| candidates.get(candidate.before as usize));
            let found = chain.take(LOOKS).find(|candidate| {
                let near =
                    candidate.block == block || worth_keeping(data) && dominators.dominates(candidate.block, block);
                near && is_same(data, &program.instrs[candidate.instr])
            });
            let compares = matches!(data.attrs, Attrs::Compare(_));
            let arm = if compares { Arm::NumberComparison } else { Arm::NumberOther };
            let first = found.and_then(|found| program.instrs[found.instr].dsts[0].value());
            match first.filter(|_| counter.may(arm)) {
                Some(first) => {
                    same[value] = first.into();
                    any = true;
                    false
                }
                None => {
                    let before = std::mem::replace(last, candidates.len() as u32);
                    candidates.push(Candidate { block, instr, before, rank });
                    true
                }
            }
        });
        program.blocks[block].instrs = list;
    }
    if any {
        replace_in_phis(program, &same);
    }
    gather_tests(program, counter);
}

/// Replaces the results of removed instructions in phis.
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

/// If several tests of one value exist, none of which dominates all others, merges them into one after the value's
/// definition. A long live range of a predicate costs nothing: without a register, it is rematerialised at its uses.
fn gather_tests(program: &mut Program, counter: &Counter) {
    if program.iter_instrs().filter(|&(_, instr)| test_of(&program.instrs[instr]).is_some()).nth(1).is_none() {
        return;
    }
    // For each tested value: the test that stays, and the number of tests.
    let mut tests = FxHashMap::<Value, (Instr, u32)>::default();
    let mut defined = map_of::<Value, bool>(program.values.len());
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if let Some((tested, _)) = test_of(data).filter(|&(tested, _)| defined[tested]) {
            tests.entry(tested).or_insert((instr, 0)).1 += 1;
        }
        data.dsts.iter().filter_map(Dst::value).for_each(|value| defined[value] = true);
    }
    tests.retain(|_, (_, count)| *count > 1);
    if tests.is_empty() || !counter.may(Arm::NumberTests) {
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
            if !data.opcode.is_block_start() {
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
            let behind = if data.opcode.is_block_start() { &mut first } else { &mut out };
            behind.extend(results.filter_map(|value| tests.get(&value)).map(|&(test, _)| test));
        }
        out.append(&mut first);
        program.blocks[block].instrs = out;
    }
    let list: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).collect();
    list.into_iter().for_each(|instr| replace_sources(program, instr, &same));
}

/// The general register that an instruction compares with 0 to compute a predicate, and the predicate.
fn test_of(data: &InstrData) -> Option<(Value, Value)> {
    if data.opcode != Opcode::CmpsS {
        return None;
    }
    let [Dst { place: Place::Value(predicate), class, .. }] = data.dsts[..] else { return None };
    let [tested, zero] = &data.srcs[..] else { return None };
    let is_test = data.attrs == Attrs::Compare(Condition::Ne)
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

/// The address register that an instruction moves a value or an immediate to, and the address.
fn address(data: &InstrData) -> Option<(PhysReg, Value)> {
    let ([Dst { place: Place::Assigned(value, reg), .. }], [src]) = (&data.dsts[..], &data.srcs[..]) else {
        return None;
    };
    let is_known = matches!(src.operand, SrcOperand::Place(Place::Value(_)) | SrcOperand::Immediate(_));
    let is_move = data.opcode == Opcode::Mov && matches!(*reg, PhysReg::A0_X | PhysReg::A1_X);
    // Shared registers may change between two moves.
    (is_move && is_known && src.class.file == RegFile::General).then_some((*reg, *value))
}

/// The result of an instruction that computes only that value, from its sources only.
fn numbered(data: &InstrData, consts_may_change: bool) -> Option<Value> {
    let [Dst { place: Place::Value(value), class, flags, .. }] = data.dsts[..] else { return None };
    let compares = matches!(data.attrs, Attrs::Compare(_));
    let plain = data.opcode.is_pure()
        && (class.file == RegFile::General || compares && class.file == RegFile::Predicate)
        && !flags.intersects(OperandFlags::TIED | OperandFlags::EARLY_CLOBBER)
        && data.repeat == 0
        && !data.is_constrained();
    let known = |operand: &SrcOperand| match operand {
        SrcOperand::Place(place) => matches!(place, Place::Value(_)),
        SrcOperand::Const(_) => !consts_may_change,
        SrcOperand::Immediate(_) => true,
        SrcOperand::ConstRelative(_) | SrcOperand::Undef => false,
    };
    let all = data.srcs.iter().all(|src| known(&src.operand) && !src.flags.contains(OperandFlags::TIED));
    (plain && all).then_some(value)
}

/// Returns true if a value is worth a register for longer than a block.
fn worth_keeping(data: &InstrData) -> bool {
    let constant = |operand: &SrcOperand| matches!(operand, SrcOperand::Const(_) | SrcOperand::Immediate(_));
    match data.opcode {
        Opcode::Collect => false,
        Opcode::Mov => !data.srcs.iter().all(|src| constant(&src.operand)),
        _ => true,
    }
}

/// A hash that is equal for [equal](is_same) instructions.
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
