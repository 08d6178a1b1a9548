//! Copy propagation.
//!
//! One pass over the program, definitions before uses: each source that reads a copy reads the copy's source instead,
//! if the instruction can encode it there ([`legality`](crate::ir3::legality)). Sources of copies have been processed
//! already, so one or two steps reach the end of any chain. Phis, whose operands may be defined later, are processed at
//! the end.
//!
//! The copies are:
//! - `mov` without conversion, of a register, an immediate, or a word of the constant file;
//! - `absneg`, if the user supports the same modifiers on its source;
//! - a split of a collect, and a collect of all splits of one vector.
//!
//! If only the other source of a commutative operation can encode a constant or an immediate, the two are swapped.
//!
//! The program itself may write a word of the constant file (a preamble does so). A copy of the word then has the old
//! contents, so only copies after the last such write are propagated.

use super::operands::place;
use crate::arms::{Arm, Counter};
use crate::ir3::legality::takes_flut_immediates;
use crate::ir3::reconvergence::{Waiting, may_diverge};
use crate::ir3::{
    Attrs, Block, Category, Instr, InstrData, Mods, Opcode, OperandFlags, Place, Program, RegClass, RegFile, Round,
    Src, SrcOperand, Type, Value, opcode::Numeric,
};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::{PackedOption, ReservedValue};

/// Propagates copies.
pub fn run(program: &mut Program, target: &Target, counter: &Counter) {
    let writers = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode.writes_consts()).count();
    let shared = SharedValues::new(program);
    let mut pass = Propagation {
        target,
        counter,
        vectors: map_of(program.values.len()),
        program,
        early: SecondaryMap::new(),
        writers_to_come: writers,
        shared,
        block: Block::reserved_value(),
    };
    for phis in [false, true] {
        for position in 0..pass.program.layout.len() {
            let block = pass.program.layout[position];
            let list = std::mem::take(&mut pass.program.blocks[block].instrs);
            pass.block = block;
            for &instr in &list {
                match (pass.program.instrs[instr].opcode == Opcode::Phi, phis) {
                    (false, false) | (true, true) => pass.run_instr(instr),
                    (true, false) => {}
                    (false, true) => break,
                }
            }
            pass.program.blocks[block].instrs = list;
        }
    }
}

struct Propagation<'a> {
    target: &'a Target,
    counter: &'a Counter,
    program: &'a mut Program,
    /// The vector that a collect rebuilds from its splits.
    vectors: SecondaryMap<Value, PackedOption<Value>>,
    /// Moves before the last write to the constant file.
    early: SecondaryMap<Instr, bool>,
    writers_to_come: usize,
    /// The definitions of shared values, if there are any.
    shared: Option<SharedValues>,
    /// The current block.
    block: Block,
}

/// The facts needed to read a shared value later than its copy.
struct SharedValues {
    def_block: SecondaryMap<Value, PackedOption<Block>>,
    /// The blocks that read a predicate or an address, which may be rematerialised there.
    special_uses: SecondaryMap<Value, Vec<Block>>,
    waiting: Waiting,
}

impl SharedValues {
    fn new(program: &Program) -> Option<Self> {
        let is_shared = |class: RegClass| class.file == RegFile::Shared;
        let defines = |&(_, instr): &(Block, Instr)| program.instrs[instr].dsts.iter().any(|dst| is_shared(dst.class));
        program.iter_instrs().find(defines)?;
        let mut def_block = map_of(program.values.len());
        let mut special_uses: SecondaryMap<Value, Vec<Block>> = map_of(program.values.len());
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for value in data.dsts.iter().filter(|dst| is_shared(dst.class)).filter_map(|dst| dst.value()) {
                def_block[value] = block.into();
            }
            for src in data.srcs.iter().filter(|src| matches!(src.class.file, RegFile::Predicate | RegFile::Address)) {
                if let Some(value) = src.value() {
                    special_uses[value].push(block);
                }
            }
        }
        let waiting = Waiting::new(program, |block| may_diverge(program, block));
        Some(Self { def_block, special_uses, waiting })
    }

    /// Returns true if lanes that read `value` in `block` find the value that a copy at its definition has.
    fn is_current(&self, value: Value, block: Block) -> bool {
        let def = self.def_block[value].expand();
        def.is_some_and(|def| def == block || !self.waiting.waits_between(def, block))
    }
}

/// The source of a copy, and the kind of copy.
enum Copied {
    /// The copy preserves all bits.
    Same(Src),
    /// A word of the constant file, converted to half: as a float if the user is a float operation, else as an integer.
    Converted(Src, Numeric),
    /// A register, or a word of the constant file, with modifiers, float or integer.
    Modified(Src, Numeric),
}

impl Propagation<'_> {
    fn run_instr(&mut self, instr: Instr) {
        let opcode = self.program.instrs[instr].opcode;
        for slot in 0..self.program.instrs[instr].srcs.len() {
            // Each step moves to an earlier definition, but correctness does not rely on that.
            for _ in 0..4 {
                if !self.step(instr, slot) {
                    break;
                }
            }
        }
        match opcode {
            Opcode::Split => self.simplify_split(instr),
            Opcode::Collect => self.note_collect(instr),
            Opcode::Mov | Opcode::AbsnegF | Opcode::AbsnegS if self.writers_to_come > 0 => self.early[instr] = true,
            _ if opcode.writes_consts() => self.writers_to_come -= 1,
            _ => {}
        }
    }

    /// Propagates one copy into source `slot`; returns true if it did.
    fn step(&mut self, instr: Instr, slot: usize) -> bool {
        let data = &self.program.instrs[instr];
        let src = data.srcs[slot];
        // The register of an output may be given; the new source keeps it.
        let (value, given) = match src.operand {
            SrcOperand::Place(Place::Value(value)) => (value, None),
            SrcOperand::Place(Place::Assigned(value, reg)) if data.opcode.is_output() => (value, Some(reg)),
            _ => return false,
        };
        let Some(copied) = self.copied(value, src) else { return false };
        let kind = match &copied {
            Copied::Same(Src { operand: SrcOperand::Place(_), .. }) => Arm::CopyRegister,
            Copied::Same(Src { operand: SrcOperand::Const(_), .. }) => Arm::CopyWord,
            Copied::Same(_) => Arm::CopyImmediate,
            Copied::Converted(..) => Arm::CopyConverted,
            Copied::Modified(_, Numeric::Float) => Arm::CopyFloatMods,
            Copied::Modified(..) => Arm::CopyIntMods,
        };
        let new = match copied {
            Copied::Same(from) => {
                let is_register = matches!(from.operand, SrcOperand::Place(_));
                if !is_register && (src.flags.contains(OperandFlags::TIED) || data.opcode.is_macro()) {
                    self.counter.count(Arm::CopyTied);
                    return false;
                }
                if from.class != src.class && is_register && !self.may_read_shared(instr, slot, from) {
                    self.counter.count(Arm::CopyShared);
                    return false;
                }
                let Some(from) = with_reader_mods(data.opcode, from, src.mods) else {
                    self.counter.count(Arm::CopyImmediateMods);
                    return false;
                };
                Src { flags: src.flags, ..from }
            }
            Copied::Converted(from, numeric) => {
                let reader = match data.opcode.info().numeric {
                    Numeric::Bits => Numeric::Int,
                    numeric => numeric,
                };
                let operates = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3);
                if !operates || reader != numeric || src.flags.contains(OperandFlags::TIED) {
                    self.counter.count(Arm::CopyConvertedOther);
                    return false;
                }
                Src { flags: src.flags, mods: src.mods, ..from }
            }
            Copied::Modified(from, numeric) => {
                if data.opcode.info().numeric != numeric || !applies_mods_to_numbers(data.opcode) {
                    self.counter.count(Arm::CopyModifiedOther);
                    return false;
                }
                let mods = if src.mods.contains(Mods::ABS) { src.mods } else { src.mods ^ from.mods };
                if !data.opcode.source_mods(slot).contains(mods) {
                    self.counter.count(Arm::CopyModifiedUnfit);
                    return false;
                }
                Src { flags: src.flags, mods, ..from }
            }
        };
        let new = match (given, new.operand) {
            (None, _) => new,
            (Some(reg), SrcOperand::Place(Place::Value(value))) if new.class == src.class && new.mods.is_empty() => {
                self.counter.count(Arm::CopyOutput);
                Src { operand: SrcOperand::Place(Place::Assigned(value, reg)), ..new }
            }
            _ => return false,
        };
        let placed = place(self.program, self.target, instr, slot, new, || self.counter.may(kind));
        if !placed {
            self.counter.count(Arm::CopyIllegal);
        }
        placed
    }

    /// Returns true if source `slot` may read the shared register `from` instead of its general copy.
    fn may_read_shared(&self, instr: Instr, slot: usize, from: Src) -> bool {
        let data = &self.program.instrs[instr];
        let (Some(shared), Some(value)) = (&self.shared, from.value()) else { return false };
        if from.class.file != RegFile::Shared
            || data.srcs[slot].flags.contains(OperandFlags::TIED)
            || data.opcode.is_macro()
            || data.opcode.is_meta()
            || !shared.is_current(value, self.block)
        {
            return false;
        }
        // A predicate is computed in each block that reads it; an address is moved from general registers.
        data.dsts.iter().all(|dst| match (dst.class.file, dst.value()) {
            (RegFile::Predicate, Some(dst)) => {
                shared.special_uses[dst].iter().all(|&block| shared.is_current(value, block))
            }
            (RegFile::Predicate | RegFile::Address, _) => false,
            _ => true,
        })
    }

    /// The copy that defines `value`, as `reader` sees it.
    fn copied(&self, value: Value, reader: Src) -> Option<Copied> {
        if let Some(vector) = self.vectors[value].expand() {
            let operand = SrcOperand::Place(Place::Value(vector));
            return Some(Copied::Same(Src::new(operand, reader.class, reader.mask)));
        }
        let info = &self.program.values[value];
        let def = &self.program.instrs[info.instr];
        if !matches!(def.opcode, Opcode::Mov | Opcode::AbsnegF | Opcode::AbsnegS)
            || info.class != reader.class
            || !matches!(info.class.file, RegFile::General | RegFile::Shared)
            || info.components != 1
            || !def.flags.is_empty()
            || def.srcs.len() != 1
            || !matches!(def.dsts[..], [dst] if dst.place == Place::Value(value))
        {
            return None;
        }
        let from = def.srcs[0];
        let is_value = matches!(from.operand, SrcOperand::Place(Place::Value(_)));
        if info.class.half
            && let Some(converted) = self.half_word(info.instr)
        {
            return Some(converted);
        }
        // Constants have no file. A copy from a shared to a general register is propagated if the user supports it.
        let from_shared = info.class.file == RegFile::General && from.class.file == RegFile::Shared;
        let fits = if is_value { from.class == info.class || from_shared } else { true };
        if from.class.half != info.class.half || !fits {
            return None;
        }
        // A half constant is converted according to its user's type.
        let is_word = matches!(from.operand, SrcOperand::Const(_)) && !info.class.half && !self.early[info.instr];
        match def.opcode {
            Opcode::Mov if from.mods.is_empty() && copies_bits(def) => {
                let valid = match from.operand {
                    SrcOperand::Immediate(_) => true,
                    SrcOperand::Const(_) => is_word,
                    _ => is_value && (info.class.file == RegFile::General || self.is_shared_in_same_block(value, from)),
                };
                valid.then_some(Copied::Same(from))
            }
            _ if from_shared || info.class.file == RegFile::Shared && is_value => None,
            Opcode::AbsnegF if is_value || is_word => Some(Copied::Modified(from, Numeric::Float)),
            Opcode::AbsnegS if is_value || is_word => Some(Copied::Modified(from, Numeric::Int)),
            _ => None,
        }
    }

    /// Returns true if a shared value is a copy of another one of the same block: the two are current in the same
    /// places.
    fn is_shared_in_same_block(&self, value: Value, from: Src) -> bool {
        let (Some(shared), Some(from)) = (&self.shared, from.value()) else { return false };
        let block = shared.def_block[value];
        block.is_some() && block == shared.def_block[from]
    }

    /// The word of the constant file that an instruction converts to half as a half operand would: toward zero.
    fn half_word(&self, instr: Instr) -> Option<Copied> {
        use Type::*;
        let data = &self.program.instrs[instr];
        let Attrs::Move { src, dst, round: Round::Default } = data.attrs else { return None };
        let numeric = match (src, dst) {
            (F32, F16) => Numeric::Float,
            (U32, U16) | (S32, S16) => Numeric::Int,
            _ => return None,
        };
        let from = data.srcs[0];
        let SrcOperand::Const(word) = from.operand else { return None };
        let plain = data.opcode == Opcode::Mov && !from.class.half && from.mods.is_empty() && !self.early[instr];
        plain.then_some(Copied::Converted(Src::constant(word, true), numeric))
    }

    /// Turns a split of a collect into a move of one of its sources.
    fn simplify_split(&mut self, instr: Instr) {
        let data = &self.program.instrs[instr];
        let Attrs::Split { offset } = data.attrs else { return };
        let SrcOperand::Place(Place::Value(vector)) = data.srcs[0].operand else { return };
        let def = &self.program.instrs[self.program.values[vector].instr];
        let Some(&from) = def.srcs.get(usize::from(offset)) else { return };
        let class = data.dsts[0].class;
        let fits = def.opcode == Opcode::Collect
            && class.file == RegFile::General
            && from.class == class
            && from.mods.is_empty()
            && matches!(from.operand, SrcOperand::Place(Place::Value(_)) | SrcOperand::Immediate(_));
        if !fits {
            return;
        }
        if !self.counter.may(Arm::CopySplit) {
            return;
        }
        let ty = if class.half { Type::U16 } else { Type::U32 };
        let data = &mut self.program.instrs[instr];
        data.opcode = Opcode::Mov;
        data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
        data.srcs[0] = Src { flags: OperandFlags::empty(), ..from };
    }

    /// Records a collect of all the components of one vector, in order.
    fn note_collect(&mut self, instr: Instr) {
        let data = &self.program.instrs[instr];
        let Some(dst) = data.dsts[0].value() else { return };
        let vector_of = |k: usize| {
            let SrcOperand::Place(Place::Value(part)) = data.srcs[k].operand else { return None };
            let def = &self.program.instrs[self.program.values[part].instr];
            let in_place = matches!(def.attrs, Attrs::Split { offset } if usize::from(offset) == k);
            match def.srcs.first()?.operand {
                SrcOperand::Place(Place::Value(vector)) if in_place && def.opcode == Opcode::Split => Some(vector),
                _ => None,
            }
        };
        if data.srcs.len() < 2 {
            return;
        }
        let Some(vector) = vector_of(0) else { return };
        let (whole, again) = (&self.program.values[vector], &self.program.values[dst]);
        if whole.class == again.class
            && whole.components == again.components
            && usize::from(whole.components) == data.srcs.len()
            && (1..data.srcs.len()).all(|k| vector_of(k) == Some(vector))
            && self.counter.may(Arm::CopyVector)
        {
            self.vectors[dst] = vector.into();
        }
    }
}

/// Returns true if a `mov` preserves the bits of its source.
fn copies_bits(data: &InstrData) -> bool {
    use Type::*;
    matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst && matches!(src, F16 | F32 | U16 | U32 | S16 | S32))
}

/// `from` with the user's modifiers, folded into immediates that cannot have modifiers.
fn with_reader_mods(opcode: Opcode, from: Src, mods: Mods) -> Option<Src> {
    let SrcOperand::Immediate(bits) = from.operand else { return Some(from.with_mods(mods)) };
    if mods.is_empty() || takes_flut_immediates(opcode) {
        return Some(from.with_mods(mods));
    }
    if mods != Mods::NOT {
        return None;
    }
    let mask = if from.class.half { 0xffff } else { u32::MAX };
    Some(Src { operand: SrcOperand::Immediate(!bits & mask), mods: Mods::empty(), ..from })
}

/// Returns true if modifiers of the operation compute the same as `absneg`: an operation that copies bits would copy a
/// NaN that `absneg` replaces by the canonical one.
fn applies_mods_to_numbers(opcode: Opcode) -> bool {
    !opcode.copies_bits()
}
