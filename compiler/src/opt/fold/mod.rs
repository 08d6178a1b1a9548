//! Folds operations into the instructions that compute their operands, or into those that read their results.
//!
//! A bool is a number in a register, 0 or 1, half if the GPU can. Selection computes each bool this way, and converts
//! it at its uses: to a predicate for a branch or a kill, to a full register for a 32-bit selection; nir's negations
//! are `xor.b` with 1. This pass computes the required form directly:
//! - `negation`: branches are inverted instead, selections swap their operands, bitwise operations read `(not)`;
//! - `branches`: a branch on the conjunction or disjunction of two bools reads two predicates;
//! - `votes`: a branch on a subgroup vote becomes a vote branch;
//! - `predicates`: comparisons and bitwise operations write predicates;
//!
//! The same applies to other widths: with `conversions`, operations convert their own results, including floats and
//! integers.
//!
//! A 1-bit negation is a logical one only for a proven bool (`Pass::is_bool`): not every register that is compared with
//! 0 holds a bool. The pass removes the instructions that it folds, and no others.

mod branches;
mod conversions;
mod negation;
mod predicates;
mod votes;

pub use conversions::{CONVERSIONS, Conversion};

use crate::arms::Counter;
use crate::ir3::legality::valid_source;
use crate::ir3::{
    Attrs, Block, Condition, Dst, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegClass, RegFile, Src,
    SrcOperand, Type, Value, ValueData, WriteMask,
};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

/// Returns true if there is a comparison, or a conversion of width.
pub fn is_needed(program: &Program) -> bool {
    let converts = |data: &InstrData| data.move_types().is_some_and(|(from, to)| from.is_half() != to.is_half());
    program
        .iter_instrs()
        .map(|(_, instr)| &program.instrs[instr])
        .any(|data| data.opcode.is_comparison() || converts(data))
}

/// Applies the rules.
pub fn run(program: &mut Program, target: &Target, counter: &Counter) {
    let mut pass = Pass::new(program, target, counter);
    let is_branch = |data: &InstrData| data.opcode == Opcode::Br;
    let is_bitwise = |data: &InstrData| matches!(data.opcode, Opcode::AndB | Opcode::OrB | Opcode::XorB);
    pass.each(|_, _| true, Pass::negation);
    pass.each_of(is_branch, Pass::vote);
    if target.has_branch_and_or {
        pass.each_of(is_branch, Pass::two_predicates);
    }
    pass.each_of(|data| data.opcode.is_comparison() || is_bitwise(data), Pass::predicate);
    if target.bitops_can_write_predicates {
        pass.each_of(|data| data.opcode == Opcode::CmpsS, Pass::single_bit);
    }
    pass.each_read_by(Opcode::CmpsS, Pass::early_test);
    pass.each_read_by(Opcode::Mov, Pass::conversion);
    pass.finish();
}

/// Maximum depth of the search for the definition of a bool.
const DEPTH: u32 = 4;

/// A use: the instruction, and the index of the source.
type UseSite = (Instr, u8);

struct Pass<'a> {
    program: &'a mut Program,
    target: &'a Target,
    counter: &'a Counter,
    uses: SecondaryMap<Value, SmallVec<[UseSite; 2]>>,
    /// The block of each instruction; None for a removed one.
    blocks: SecondaryMap<Instr, PackedOption<Block>>,
    /// Instructions before a write to the constant file, whose constants may not be read later.
    early: SecondaryMap<Instr, bool>,
    /// Subgroup votes after which lanes end in the same block.
    outvoted: Vec<Instr>,
    /// New instructions, each with its position.
    added: Vec<(Instr, Position)>,
}

/// The position of a new instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Before(Instr),
    /// The position after an instruction, and after the phis and inputs that follow it.
    After(Instr),
}

impl<'a> Pass<'a> {
    fn new(program: &'a mut Program, target: &'a Target, counter: &'a Counter) -> Self {
        let mut uses = map_of::<Value, SmallVec<[UseSite; 2]>>(program.values.len());
        let mut blocks = map_of(program.instrs.len());
        let mut early = map_of(program.instrs.len());
        let is_writer = |&(_, instr): &(Block, Instr)| program.instrs[instr].opcode.writes_consts();
        let mut writers = program.iter_instrs().filter(is_writer).count();
        for (block, instr) in program.iter_instrs() {
            blocks[instr] = block.into();
            writers -= usize::from(is_writer(&(block, instr)));
            if writers > 0 {
                early[instr] = true;
            }
            for (slot, src) in program.instrs[instr].srcs.iter().enumerate() {
                if let Some(value) = src.value() {
                    uses[value].push((instr, slot as u8));
                }
            }
        }
        let outvoted = outvoted(program);
        Self { program, target, counter, uses, blocks, early, outvoted, added: Vec::new() }
    }

    /// Applies a rule to each instruction of a kind.
    fn each_of(&mut self, is_of: impl Fn(&InstrData) -> bool, rule: fn(&mut Self, Instr)) {
        self.each(|this, instr| is_of(this.data(instr)), rule);
    }

    /// Applies a rule to each instruction whose result is the first source of an instruction of this opcode.
    fn each_read_by(&mut self, reader: Opcode, rule: fn(&mut Self, Instr)) {
        let mut is_read = map_of::<Instr, bool>(self.program.instrs.len());
        for (_, instr) in self.program.iter_instrs() {
            let data = self.data(instr);
            if data.opcode == reader
                && let Some(value) = data.srcs.first().and_then(Src::value)
            {
                is_read[self.program.values[value].instr] = true;
            }
        }
        self.each(|_, instr| is_read[instr], rule);
    }

    /// Applies a rule to each instruction to which it may apply.
    fn each(&mut self, may_apply: impl Fn(&Self, Instr) -> bool, rule: fn(&mut Self, Instr)) {
        for position in 0..self.program.layout.len() {
            let block = self.program.layout[position];
            let list = std::mem::take(&mut self.program.blocks[block].instrs);
            for &instr in &list {
                if may_apply(self, instr) && self.blocks[instr].is_some() {
                    rule(self, instr);
                }
            }
            self.program.blocks[block].instrs = list;
            for (new, position) in std::mem::take(&mut self.added) {
                self.insert(new, position);
            }
        }
    }

    /// Inserts an instruction into the block of its position.
    fn insert(&mut self, new: Instr, position: Position) {
        let Some(block) = self.blocks[new].expand() else { return };
        let list = &mut self.program.blocks[block].instrs;
        let find = |wanted: Instr| list.iter().position(|&instr| instr == wanted).unwrap_or(list.len());
        let at = match position {
            Position::Before(instr) => find(instr),
            Position::After(instr) => {
                let is_first =
                    |&&instr: &&Instr| matches!(self.program.instrs[instr].opcode, Opcode::Phi | Opcode::Input);
                let after = (find(instr) + 1).min(list.len());
                after + list[after..].iter().take_while(is_first).count()
            }
        };
        list.insert(at, new);
    }

    /// Deletes the removed instructions from the blocks.
    fn finish(self) {
        for &block in &self.program.layout {
            self.program.blocks[block].instrs.retain(|&instr| self.blocks[instr].is_some());
        }
    }

    fn data(&self, instr: Instr) -> &InstrData {
        &self.program.instrs[instr]
    }

    /// The value that an instruction defines, if it is one register, and the only result.
    fn result(&self, instr: Instr) -> Option<Value> {
        match self.data(instr).dsts[..] {
            [Dst { place: Place::Value(value), mask: WriteMask::SCALAR, .. }] => Some(value),
            _ => None,
        }
    }

    /// The instruction that defines a source, if the source is one whole register without modifiers.
    fn producer(&self, src: &Src) -> Option<(Value, Instr)> {
        let SrcOperand::Place(Place::Value(value)) = src.operand else { return None };
        let instr = self.program.values[value].instr;
        let plain = src.mods.is_empty() && !src.flags.contains(OperandFlags::TIED) && self.blocks[instr].is_some();
        (plain && self.result(instr) == Some(value)).then_some((value, instr))
    }

    /// Like [`producer`](Self::producer), if the source is the only use.
    fn sole_producer(&self, src: &Src) -> Option<(Value, Instr)> {
        self.producer(src).filter(|&(value, _)| self.uses[value].len() == 1)
    }

    fn remove(&mut self, instr: Instr) {
        self.blocks[instr] = None.into();
        for slot in 0..self.program.instrs[instr].srcs.len() {
            self.forget(instr, slot);
        }
    }

    /// Removes an instruction without other effects, if its result is unused.
    fn remove_unread(&mut self, instr: Instr) {
        if self.result(instr).is_some_and(|value| self.uses[value].is_empty()) {
            self.remove(instr);
        }
    }

    fn forget(&mut self, instr: Instr, slot: usize) {
        if let Some(value) = self.program.instrs[instr].srcs[slot].value() {
            self.uses[value].retain(|its| *its != (instr, slot as u8));
        }
    }

    /// Records the uses of an instruction that is new, or has new sources.
    fn note(&mut self, instr: Instr) {
        for slot in 0..self.program.instrs[instr].srcs.len() {
            if let Some(value) = self.program.instrs[instr].srcs[slot].value() {
                self.uses[value].push((instr, slot as u8));
            }
        }
    }

    /// Replaces an instruction.
    fn rewrite(&mut self, instr: Instr, data: InstrData) {
        for slot in 0..self.program.instrs[instr].srcs.len() {
            self.forget(instr, slot);
        }
        self.program.instrs[instr] = data;
        self.note(instr);
    }

    /// Inserts an instruction with one result before or after another; returns its value.
    fn add(&mut self, mut data: InstrData, class: RegClass, position: Position) -> Value {
        data.dsts.clear();
        let instr = self.program.instrs.push(data);
        let value = self.program.values.push(ValueData { instr, dst: 0, class, components: 1, array: None });
        self.program.instrs[instr].dsts.push(Dst::new(Place::Value(value), class, WriteMask::SCALAR));
        let (Position::Before(beside) | Position::After(beside)) = position;
        self.blocks[instr] = self.blocks[beside];
        self.added.push((instr, position));
        self.note(instr);
        value
    }

    /// Replaces all uses of `old` by `new`, which has its class.
    fn replace(&mut self, old: Value, new: Value) {
        for (instr, slot) in std::mem::take(&mut self.uses[old]) {
            self.program.instrs[instr].srcs[usize::from(slot)].set_value(new);
            self.uses[new].push((instr, slot));
        }
    }

    /// Returns true if a source has the same value at `from` and at all `places`: a shared register may have another
    /// value elsewhere, for lanes that have come later.
    fn is_current(&self, src: &Src, from: Instr, places: &[Instr]) -> bool {
        src.class.file != RegFile::Shared || places.iter().all(|&instr| self.blocks[instr] == self.blocks[from])
    }

    /// Returns true if a source is provably 0 or 1.
    fn is_bool(&self, src: &Src, depth: u32) -> bool {
        if matches!(src.operand, SrcOperand::Immediate(0 | 1)) {
            return src.mods.is_empty();
        }
        let Some((_, def)) = self.producer(src) else { return false };
        self.gives_bool(def, depth)
    }

    /// Returns true if the result of an instruction is provably 0 or 1.
    fn gives_bool(&self, instr: Instr, depth: u32) -> bool {
        let data = self.data(instr);
        let is_bool = |src: &Src| self.is_bool(src, depth - 1);
        match data.opcode {
            opcode if opcode.is_comparison() => data.dsts[0].class.file != RegFile::Predicate,
            _ if depth == 0 || !data.flags.is_empty() => false,
            Opcode::AnyMacro | Opcode::AllMacro => true,
            // A conjunction with a bool keeps at most the lowest bit.
            Opcode::AndB => data.srcs.iter().any(is_bool),
            Opcode::OrB | Opcode::XorB => data.srcs.iter().all(is_bool),
            Opcode::Mov => moves_integer(data) && data.srcs.iter().all(is_bool),
            // A cycle of phis ends at the depth limit.
            Opcode::Phi => data.srcs.len() <= 4 && data.srcs.iter().all(is_bool),
            _ => false,
        }
    }

    /// The comparison with 0 that computes a predicate, and the compared operand.
    fn test(&self, predicate: &Src) -> Option<((Value, Instr), Src)> {
        let (value, def) = self.producer(predicate)?;
        let data = self.data(def);
        let is_test = data.opcode == Opcode::CmpsS
            && data.flags.is_empty()
            && data.attrs == Attrs::Compare(Condition::Ne)
            && data.dsts[0].class.file == RegFile::Predicate
            && matches!(data.srcs[..], [_, Src { operand: SrcOperand::Immediate(0), .. }]);
        is_test.then(|| ((value, def), data.srcs[0]))
    }
}

/// Returns true if a move preserves 0 and 1: between unsigned or signed integers of 16 or 32 bits.
fn moves_integer(data: &InstrData) -> bool {
    use Type::*;
    let is_integer = |ty| matches!(ty, U16 | U32 | S16 | S32);
    data.move_types().is_some_and(|(from, to)| is_integer(from) && is_integer(to))
}

/// Subgroup votes after which lanes end in the same block.
fn outvoted(program: &Program) -> Vec<Instr> {
    let mut list = Vec::new();
    for &block in &program.layout {
        let mut ends = false;
        for &instr in program.blocks[block].instrs.iter().rev() {
            match program.instrs[instr].opcode {
                Opcode::Kill | Opcode::Demote => ends = true,
                Opcode::AnyMacro | Opcode::AllMacro if ends => list.push(instr),
                _ => {}
            }
        }
    }
    list
}

/// Returns true if the instruction can encode all of its sources together.
fn is_legal(target: &Target, data: &InstrData) -> bool {
    data.srcs.iter().enumerate().all(|(slot, src)| valid_source(target, data, slot, src))
}

/// A source that reads a predicate.
fn predicate_src(value: Value) -> Src {
    Src::reg(Place::Value(value), RegClass::PREDICATE, WriteMask::SCALAR)
}
