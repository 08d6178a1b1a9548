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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{BlockData, Builder, Mods, RegClass, Src, Type};

    const R: RegClass = RegClass::FULL;

    /// A program of blocks, each with the edges to others, and an input in the first.
    fn program(edges: &[&[usize]]) -> (Program, Vec<Block>, Src) {
        let mut program = Program::default();
        let blocks: Vec<Block> = edges.iter().map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.extend(&blocks);
        for (&from, to) in blocks.iter().zip(edges) {
            for (slot, &to) in to.iter().enumerate() {
                program.add_edge(from, slot, blocks[to]);
            }
        }
        let mut b = Builder::new(&mut program, blocks[0]);
        let x = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        (program, blocks, x)
    }

    fn alu(b: &mut Builder, opcode: Opcode, srcs: &[Src]) -> Src {
        let value = b.alu(opcode, R, srcs);
        b.src(value)
    }

    fn opcodes(program: &Program) -> Vec<Opcode> {
        program.iter_instrs().skip(1).map(|(_, instr)| program.instrs[instr].opcode).collect()
    }

    fn last(program: &Program) -> &[Src] {
        &program.instrs[program.iter_instrs().last().unwrap().1].srcs
    }

    #[test]
    fn expressions_become_one() {
        let (mut program, blocks, x) = program(&[&[]]);
        let mut b = Builder::new(&mut program, blocks[0]);
        let mut sums = Vec::new();
        for _ in 0..2 {
            let product = alu(&mut b, Opcode::MulF, &[x, x.with_mods(Mods::NEG)]);
            sums.push(alu(&mut b, Opcode::AddF, &[product, Src::constant(3, false)]));
        }
        b.effect(Opcode::End, &sums);
        run(&mut program, Rules::ALL);
        assert_eq!(opcodes(&program), [Opcode::MulF, Opcode::AddF, Opcode::End]);
        assert_eq!(last(&program), [sums[0]; 2]);
    }

    /// Each pair differs in one thing only.
    #[test]
    fn what_differs_stays() {
        let imm = |n| Src::immediate(n, false);
        let pairs: [fn(&mut Builder, Src, bool) -> Value; 7] = [
            |b, x, d| b.alu(if d { Opcode::AddF } else { Opcode::MulF }, R, &[x, x]),
            |b, x, d| b.alu(Opcode::AddF, R, &[x, if d { x } else { x.with_mods(Mods::ABS) }]),
            |b, x, d| b.alu(Opcode::AddF, R, &[x, Src::constant(u16::from(d), false)]),
            |b, x, d| b.alu(Opcode::AddF, if d { R } else { RegClass::HALF }, &[x, x]),
            |b, x, d| b.compare(Opcode::CmpsF, if d { Condition::Lt } else { Condition::Le }, R, x, x),
            |b, x, d| b.convert(Type::U32, if d { Type::U16 } else { Type::S16 }, RegClass::HALF, x),
            |b, x, d| b.define(Opcode::Split, R, 1, &[x], Attrs::Split { offset: u16::from(d) }),
        ];
        for pair in pairs {
            let (mut program, blocks, x) = program(&[&[]]);
            let mut b = Builder::new(&mut program, blocks[0]);
            let srcs = [false, true].map(|differently| {
                let value = pair(&mut b, x, differently);
                b.src(value)
            });
            b.effect(Opcode::End, &srcs);
            run(&mut program, Rules::ALL);
            assert_eq!(last(&program), srcs);
        }
        // The same numbers are the same; loads are not.
        let (mut program, blocks, x) = program(&[&[]]);
        let mut b = Builder::new(&mut program, blocks[0]);
        let srcs = [(); 4].map(|()| alu(&mut b, Opcode::AddU, &[x, imm(1)]));
        let loads = [(); 2].map(|()| alu(&mut b, Opcode::Ldl, &[x, imm(0), imm(1)]));
        b.effect(Opcode::End, &[srcs[3], loads[0], loads[1]]);
        run(&mut program, Rules::ALL);
        assert_eq!(last(&program), [srcs[0], loads[0], loads[1]]);
    }

    #[test]
    fn only_what_dominates_is_there() {
        // An if with two sides, and what comes behind.
        let (mut program, blocks, x) = program(&[&[1, 2], &[3], &[3], &[]]);
        let sums: Vec<Src> =
            [1, 2, 3].map(|index| alu(&mut Builder::new(&mut program, blocks[index]), Opcode::AddF, &[x, x])).to_vec();
        Builder::new(&mut program, blocks[3]).effect(Opcode::End, &sums);
        let mut with_first = program.clone();
        run(&mut program, Rules::ALL);
        assert_eq!(last(&program), sums);
        let first = alu(&mut Builder::new(&mut with_first, blocks[0]), Opcode::AddF, &[x, x]);
        run(&mut with_first, Rules::ALL);
        assert_eq!(last(&with_first), [first; 3]);
    }

    /// Neither of the two arms dominates the other: both read a test behind the definition.
    #[test]
    fn tests_of_one_value_are_one() {
        for arms in [1, 2] {
            let (mut program, blocks, x) = program(&[&[1, 2], &[3], &[3], &[]]);
            for &block in &blocks[1..=arms] {
                let mut b = Builder::new(&mut program, block);
                let test = b.compare(Opcode::CmpsS, Condition::Ne, RegClass::PREDICATE, x, Src::immediate(0, false));
                let test = b.src(test);
                b.effect(Opcode::Kill, &[test]);
            }
            run(&mut program, Rules { comparisons: false, others: true });
            assert_eq!(opcodes(&program), [Opcode::CmpsS, Opcode::Kill].repeat(arms));
            run(&mut program, Rules::ALL);
            let expected: &[Opcode] =
                if arms == 1 { &[Opcode::CmpsS, Opcode::Kill] } else { &[Opcode::CmpsS, Opcode::Kill, Opcode::Kill] };
            assert_eq!(opcodes(&program), expected);
            let test = program.blocks[blocks[usize::from(arms == 1)]].instrs[usize::from(arms == 2)];
            let test = program.instrs[test].dsts[0].value();
            assert_eq!(last(&program)[0].value(), test);
        }
    }

    #[test]
    fn vectors_are_local_and_phis_see_what_is_left() {
        let (mut program, blocks, x) = program(&[&[1], &[1, 2], &[]]);
        let mut b = Builder::new(&mut program, blocks[0]);
        let collect = |b: &mut Builder| {
            let value = b.define(Opcode::Collect, R, 2, &[x, Src::immediate(0, false)], Attrs::None);
            b.src(value)
        };
        let early = [collect(&mut b), collect(&mut b)];
        let first = alu(&mut b, Opcode::AddU, &[x, x]);
        let mut b = Builder::new(&mut program, blocks[1]);
        let phi = b.define(Opcode::Phi, R, 1, &[first], Attrs::None);
        let second = alu(&mut b, Opcode::AddU, &[x, x]);
        let late = collect(&mut b);
        let instr = program.values[phi].instr;
        program.instrs[instr].srcs.push(second);
        Builder::new(&mut program, blocks[2]).effect(Opcode::End, &[early[0], early[1], late]);
        run(&mut program, Rules::ALL);
        assert_eq!(last(&program), [early[0], early[0], late]);
        assert_eq!(program.instrs[instr].srcs[..], [first; 2]);
    }

    #[test]
    fn the_constant_file_may_be_written() {
        let (mut program, blocks, x) = program(&[&[]]);
        let mut b = Builder::new(&mut program, blocks[0]);
        let read = |b: &mut Builder| alu(b, Opcode::AddU, &[x, Src::constant(5, false)]);
        let before = read(&mut b);
        b.effect(Opcode::Stc, &[Src::immediate(5, false), before]);
        let after = [read(&mut b), read(&mut b)];
        b.effect(Opcode::End, &[before, after[0], after[1]]);
        run(&mut program, Rules::ALL);
        assert_eq!(last(&program), [before, after[0], after[0]]);
    }
}
