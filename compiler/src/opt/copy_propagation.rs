//! Copy propagation.
//!
//! One walk over the program, definitions before uses: each source that reads a copy reads what was copied instead,
//! as long as the instruction can encode it there ([`legality`](crate::ir3::legality)). Because what is copied has been
//! treated already, one or two steps reach the end of any chain. Phis, which may read what comes later, have their turn
//! at the end.
//!
//! What counts as a copy:
//! - `mov` without conversion, of a register, an immediate, or a word of the constant file;
//! - `absneg`, where the reader has the same modifiers for its source;
//! - a split of a collect, and a collect of all splits of one vector.
//!
//! Where only the other source of a commutative operation can hold a constant or an immediate, the two change places.
//!
//! A word of the constant file may be written by the program itself (a preamble does so). Its copy is a register with
//! the old contents, so only copies that stand behind the last such write are looked through.

use super::operands::place;
use crate::ir3::legality::{allowed_mods, takes_flut_immediates};
use crate::ir3::reconvergence::{Waiting, may_diverge};
use crate::ir3::{
    Attrs, Block, Category, Instr, InstrData, Mods, Opcode, OperandFlags, Place, Program, RegClass, RegFile, Round,
    Src, SrcOperand, Type, Value,
    opcode::{Latency, Numeric},
};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::{PackedOption, ReservedValue};

/// Replaces operands by what was copied into them.
pub fn run(program: &mut Program, target: &Target) {
    let writers = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode.writes_consts()).count();
    let shared = SharedValues::new(program);
    let mut pass = Pass {
        target,
        program,
        vectors: SecondaryMap::new(),
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

struct Pass<'a> {
    target: &'a Target,
    program: &'a mut Program,
    /// The vector that a collect puts together again.
    vectors: SecondaryMap<Value, PackedOption<Value>>,
    /// Moves in front of the last write to the constant file.
    early: SecondaryMap<Instr, bool>,
    writers_to_come: usize,
    /// Where shared values are defined, if there are any.
    shared: Option<SharedValues>,
    /// The block whose turn it is.
    block: Block,
}

/// What has to be known to read a shared value later than a copy of it was made.
struct SharedValues {
    def_block: SecondaryMap<Value, PackedOption<Block>>,
    /// The blocks that read a predicate or an address, which may be computed again there.
    special_uses: SecondaryMap<Value, Vec<Block>>,
    waiting: Waiting,
}

impl SharedValues {
    fn new(program: &Program) -> Option<Self> {
        let is_shared = |class: RegClass| class.file == RegFile::Shared;
        let defines = |&(_, instr): &(Block, Instr)| program.instrs[instr].dsts.iter().any(|dst| is_shared(dst.class));
        program.iter_instrs().find(defines)?;
        let mut def_block = SecondaryMap::with_capacity(program.values.len());
        let mut special_uses: SecondaryMap<Value, Vec<Block>> = SecondaryMap::new();
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

    /// Whether lanes that read `value` in `block` are sure to find what a copy at its definition has for them.
    fn is_current(&self, value: Value, block: Block) -> bool {
        let def = self.def_block[value].expand();
        def.is_some_and(|def| def == block || !self.waiting.waits_between(def, block))
    }
}

/// What a copy is a copy of, and how.
enum Copied {
    /// The same bits.
    Same(Src),
    /// A word of the constant file, converted to half: as a float where the reader is of that kind, as an integer where
    /// it is of another.
    Converted(Src, Numeric),
    /// A register, or a word of the constant file, with modifiers, float or integer.
    Modified(Src, Numeric),
}

impl Pass<'_> {
    fn run_instr(&mut self, instr: Instr) {
        let opcode = self.program.instrs[instr].opcode;
        for slot in 0..self.program.instrs[instr].srcs.len() {
            // Each step goes to an earlier definition, but nothing relies on that.
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

    /// Looks through one copy in source `slot`; whether it did.
    fn step(&mut self, instr: Instr, slot: usize) -> bool {
        let data = &self.program.instrs[instr];
        let src = data.srcs[slot];
        // The register of an output may be given; whatever it reads, it does so from there.
        let (value, given) = match src.operand {
            SrcOperand::Place(Place::Value(value)) => (value, None),
            SrcOperand::Place(Place::Assigned(value, reg)) if data.opcode.is_output() => (value, Some(reg)),
            _ => return false,
        };
        let Some(copied) = self.copied(value, src) else { return false };
        let new = match copied {
            Copied::Same(from) => {
                let is_register = matches!(from.operand, SrcOperand::Place(_));
                if !is_register && (src.flags.contains(OperandFlags::TIED) || is_macro(data.opcode)) {
                    return false;
                }
                if from.class != src.class && is_register && !self.may_read_shared(instr, slot, from) {
                    return false;
                }
                let Some(from) = with_reader_mods(data.opcode, from, src.mods) else { return false };
                Src { flags: src.flags, ..from }
            }
            Copied::Converted(from, numeric) => {
                let reader = match data.opcode.info().numeric {
                    Numeric::Bits => Numeric::Int,
                    numeric => numeric,
                };
                let operates = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3);
                if !operates || reader != numeric || src.flags.contains(OperandFlags::TIED) {
                    return false;
                }
                Src { flags: src.flags, mods: src.mods, ..from }
            }
            Copied::Modified(from, numeric) => {
                if data.opcode.info().numeric != numeric || !applies_mods_to_numbers(data.opcode) {
                    return false;
                }
                let mods = if src.mods.contains(Mods::ABS) { src.mods } else { src.mods ^ from.mods };
                if !allowed_mods(data.opcode, slot).contains(mods) {
                    return false;
                }
                Src { flags: src.flags, mods, ..from }
            }
        };
        let new = match (given, new.operand) {
            (None, _) => new,
            (Some(reg), SrcOperand::Place(Place::Value(value))) if new.class == src.class && new.mods.is_empty() => {
                Src { operand: SrcOperand::Place(Place::Assigned(value, reg)), ..new }
            }
            _ => return false,
        };
        place(self.program, self.target, instr, slot, new)
    }

    /// Whether source `slot` may read the shared register `from` instead of the general one that it was copied to.
    fn may_read_shared(&self, instr: Instr, slot: usize, from: Src) -> bool {
        let data = &self.program.instrs[instr];
        let (Some(shared), Some(value)) = (&self.shared, from.value()) else { return false };
        if from.class.file != RegFile::Shared
            || data.srcs[slot].flags.contains(OperandFlags::TIED)
            || is_macro(data.opcode)
            || data.opcode.is_meta()
            || !shared.is_current(value, self.block)
        {
            return false;
        }
        // A predicate is computed wherever it is read; an address is moved from general registers.
        data.dsts.iter().all(|dst| match (dst.class.file, dst.value()) {
            (RegFile::Predicate, Some(dst)) => {
                shared.special_uses[dst].iter().all(|&block| shared.is_current(value, block))
            }
            (RegFile::Predicate | RegFile::Address, _) => false,
            _ => true,
        })
    }

    /// What `value`, which `reader` reads, is a copy of.
    fn copied(&self, value: Value, reader: Src) -> Option<Copied> {
        if let Some(vector) = self.vectors[value].expand() {
            let operand = SrcOperand::Place(Place::Value(vector));
            return Some(Copied::Same(Src::new(operand, reader.class, reader.mask)));
        }
        let info = &self.program.values[value];
        let def = &self.program.instrs[info.instr];
        if info.class != reader.class
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
        // Constants have no file; a shared register may be copied to a general one, and is looked through if the reader may.
        let from_shared = info.class.file == RegFile::General && from.class.file == RegFile::Shared;
        let fits = if is_value { from.class == info.class || from_shared } else { true };
        if from.class.half != info.class.half || !fits {
            return None;
        }
        // A half constant is converted as its reader's type wants it.
        let is_word = matches!(from.operand, SrcOperand::Const(_)) && !info.class.half && !self.early[info.instr];
        match def.opcode {
            Opcode::Mov if from.mods.is_empty() && copies_bits(def) => {
                let valid = match from.operand {
                    SrcOperand::Immediate(_) => true,
                    SrcOperand::Const(_) => is_word,
                    _ => is_value && info.class.file == RegFile::General,
                };
                valid.then_some(Copied::Same(from))
            }
            _ if from_shared || info.class.file == RegFile::Shared && is_value => None,
            Opcode::AbsnegF if is_value || is_word => Some(Copied::Modified(from, Numeric::Float)),
            Opcode::AbsnegS if is_value || is_word => Some(Copied::Modified(from, Numeric::Int)),
            _ => None,
        }
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

    /// A split of a collect is a move of one of its sources.
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
        let ty = if class.half { Type::U16 } else { Type::U32 };
        let data = &mut self.program.instrs[instr];
        data.opcode = Opcode::Mov;
        data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
        data.srcs[0] = Src { flags: OperandFlags::empty(), ..from };
    }

    /// Notes a collect of all the components of one vector, in order.
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
        {
            self.vectors[dst] = vector.into();
        }
    }
}

/// Whether a `mov` gives the bits that it reads.
fn copies_bits(data: &InstrData) -> bool {
    use Type::*;
    matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst && matches!(src, F16 | F32 | U16 | U32 | S16 | S32))
}

fn is_macro(opcode: Opcode) -> bool {
    opcode.info().latency == Latency::Macro
}

/// `from` with the reader's modifiers, folded into immediates where the encoding has no modifiers for these.
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

/// Whether modifiers mean to the operation what `absneg` computes: an operation that passes bits on would pass on a
/// NaN that `absneg` would have replaced by the canonical one.
fn applies_mods_to_numbers(opcode: Opcode) -> bool {
    use Opcode::*;
    !matches!(opcode, SelF16 | SelF32 | CmpvF | BaryF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{Block, BlockData, Builder, Condition, RegClass};

    const R: RegClass = RegClass::FULL;

    fn program() -> (Program, Block) {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        (program, block)
    }

    fn mov(b: &mut Builder, src: Src) -> Src {
        let ty = if src.class.half { Type::U16 } else { Type::U32 };
        let value = b.convert(ty, ty, src.class, src);
        b.src(value)
    }

    fn alu(b: &mut Builder, opcode: Opcode, srcs: &[Src]) -> Value {
        b.alu(opcode, srcs[0].class, srcs)
    }

    fn sources(program: &Program, value: Value) -> &[Src] {
        &program.instrs[program.values[value].instr].srcs
    }

    #[test]
    fn constants_go_where_they_are_legal() {
        let (mut program, block) = program();
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let c = mov(&mut b, Src::constant(5, false));
        let c = mov(&mut b, c);
        let d = mov(&mut b, Src::constant(6, false));
        let both = alu(&mut b, Opcode::AddU, &[c, d]);
        let mad = alu(&mut b, Opcode::MadF32, &[x, c, d]);
        let small = mov(&mut b, Src::immediate(7, false));
        let large = mov(&mut b, Src::immediate(70_000, false));
        let sum = alu(&mut b, Opcode::SubU, &[small, large]);
        let not = alu(&mut b, Opcode::AndB, &[x, small.with_mods(Mods::NOT)]);
        let less = b.compare(Opcode::CmpsU, Condition::Lt, R, x, x);
        run(&mut program, &Target::default());
        assert_eq!(sources(&program, both), [Src::constant(5, false), d]);
        // The second source of mad holds registers only: the sources change places.
        assert_eq!(sources(&program, mad), [Src::constant(5, false), x, Src::constant(6, false)]);
        assert_eq!(sources(&program, sum), [Src::immediate(7, false), large]);
        assert_eq!(sources(&program, not), [x, Src::immediate(!7, false)]);
        assert_eq!(sources(&program, less), [x, x]);
    }

    #[test]
    fn modifiers_are_merged() {
        let (mut program, block) = program();
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let neg = alu(&mut b, Opcode::AbsnegF, &[x.with_mods(Mods::NEG)]);
        let neg = b.src(neg);
        let plus = alu(&mut b, Opcode::AddF, &[neg.with_mods(Mods::NEG), neg.with_mods(Mods::ABS)]);
        let int = alu(&mut b, Opcode::AddU, &[neg, x]);
        let abs = alu(&mut b, Opcode::AbsnegF, &[x.with_mods(Mods::ABS)]);
        let abs = b.src(abs);
        // mad has no (abs).
        let mad = alu(&mut b, Opcode::MadF32, &[neg, abs, x]);
        let chosen = alu(&mut b, Opcode::SelF32, &[neg, x, x]);
        run(&mut program, &Target::default());
        assert_eq!(sources(&program, plus), [x, x.with_mods(Mods::ABS)]);
        assert_eq!(sources(&program, int), [neg, x]);
        assert_eq!(sources(&program, mad), [x.with_mods(Mods::NEG), abs, x]);
        assert_eq!(sources(&program, chosen), [neg, x, x]);
    }

    /// A float operation takes a word as a float, an operation on integers or bits its lower half.
    #[test]
    fn words_become_half_operands_of_their_kind() {
        const H: RegClass = RegClass::HALF;
        for (from, to, opcode, taken) in [
            (Type::F32, Type::F16, Opcode::MulF, true),
            (Type::F32, Type::F16, Opcode::AddU, false),
            (Type::U32, Type::U16, Opcode::AddU, true),
            (Type::U32, Type::U16, Opcode::AndB, true),
            (Type::U32, Type::U16, Opcode::MulF, false),
            (Type::U32, Type::F16, Opcode::MulF, false),
        ] {
            let (mut program, block) = program();
            let mut b = Builder::new(&mut program, block);
            let x = b.define(Opcode::Input, H, 1, &[], Attrs::Input(None));
            let x = b.src(x);
            let half = b.convert(from, to, H, Src::constant(5, false));
            let half = b.src(half);
            let result = alu(&mut b, opcode, &[x, half]);
            run(&mut program, &Target::default());
            let expected = if taken { Src::constant(5, true) } else { half };
            assert_eq!(sources(&program, result), [x, expected], "{from:?} {to:?} {opcode}");
        }
    }

    #[test]
    fn modified_words_of_the_constant_file_are_looked_through() {
        let (mut program, block) = program();
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let early = alu(&mut b, Opcode::AbsnegF, &[Src::constant(3, false).with_mods(Mods::NEG)]);
        b.effect(Opcode::Stc, &[Src::immediate(3, false), x]);
        let neg = alu(&mut b, Opcode::AbsnegF, &[Src::constant(3, false).with_mods(Mods::NEG)]);
        let (early, neg) = (b.src(early), b.src(neg));
        let sum = alu(&mut b, Opcode::AddF, &[x, early]);
        let mad = alu(&mut b, Opcode::MadF32, &[x, x, neg]);
        run(&mut program, &Target::default());
        // What was read before the word was written stays where it is.
        assert_eq!(sources(&program, sum), [x, early]);
        assert_eq!(sources(&program, mad)[2], Src::constant(3, false).with_mods(Mods::NEG));
    }

    #[test]
    fn exchanged_comparisons_are_mirrored() {
        let (mut program, block) = program();
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let c = mov(&mut b, Src::constant(5, false));
        let mad = alu(&mut b, Opcode::MadU24, &[x, c, x]);
        let compare = b.compare(Opcode::CmpsS, Condition::Lt, R, c, x);
        run(&mut program, &Target::default());
        assert_eq!(sources(&program, mad)[0], Src::constant(5, false));
        assert_eq!(sources(&program, compare), [Src::constant(5, false), x]);
    }

    #[test]
    fn vectors_are_looked_through() {
        let (mut program, block) = program();
        let mut b = Builder::new(&mut program, block);
        let vector = b.define(Opcode::Input, R, 2, &[], Attrs::Input(None));
        let whole = b.src(vector);
        let split = |b: &mut Builder, src: Src, offset: u16| {
            let value = b.define(Opcode::Split, R, 1, &[src], Attrs::Split { offset });
            b.src(value)
        };
        let (x, y) = (split(&mut b, whole, 0), split(&mut b, whole, 1));
        let again = b.define(Opcode::Collect, R, 2, &[x, y], Attrs::None);
        let again = b.src(again);
        let turned = b.define(Opcode::Collect, R, 2, &[y, x], Attrs::None);
        let turned = b.src(turned);
        let first = split(&mut b, turned, 0);
        let sum = alu(&mut b, Opcode::AddU, &[first, x]);
        let end = b.effect(Opcode::End, &[again, turned]);
        run(&mut program, &Target::default());
        assert_eq!(sources(&program, sum), [y, x]);
        assert_eq!(program.instrs[end].srcs[..], [whole, turned]);
    }

    #[test]
    fn a_write_to_the_constant_file_stops_constants() {
        let (mut program, block) = program();
        let mut b = Builder::new(&mut program, block);
        let before = mov(&mut b, Src::constant(5, false));
        b.effect(Opcode::Stc, &[Src::immediate(5, false), before]);
        let after = mov(&mut b, Src::constant(5, false));
        let sum = alu(&mut b, Opcode::AddU, &[before, after]);
        run(&mut program, &Target::default());
        assert_eq!(sources(&program, sum), [before, Src::constant(5, false)]);
    }
}
