//! Common parts of the rewrites: which operations can be repeated, moved and removed, and how to insert new ones.

use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::legality::valid_source;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, Instr, InstrData, InstrFlags, Mods, Opcode, OperandFlags, Place, Program, RegClass, RegFile,
    Round, Src, SrcOperand, Type, Value, ValueData, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// Returns true if constants can change while the program runs.
pub(super) fn consts_change(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode.writes_consts())
}

/// Returns true if an instruction computes, in each lane for itself, SSA values from SSA values, immediates and
/// constants, so that it can be repeated, moved, or executed where its result is not used. The shared file and arrays
/// have other values at other points of the program, and so have constants where they can change.
pub(super) fn is_pure(data: &InstrData, consts_change: bool) -> bool {
    let per_lane = |class: RegClass| matches!(class.file, RegFile::General | RegFile::Predicate);
    let src_is_still = |src: &Src| match src.operand {
        SrcOperand::Place(Place::Value(_)) => per_lane(src.class),
        SrcOperand::Immediate(_) => true,
        SrcOperand::Const(_) => !consts_change,
        _ => false,
    };
    let bound = |flags: OperandFlags| flags.contains(OperandFlags::TIED);
    data.opcode.is_pure()
        && data.repeat == 0
        && !data.is_constrained()
        && data.dsts.len() == 1
        && data.dsts.iter().all(|dst| matches!(dst.place, Place::Value(_)) && per_lane(dst.class) && !bound(dst.flags))
        && data.srcs.iter().all(|src| src_is_still(src) && !bound(src.flags))
}

/// Returns true if all sources can be encoded together.
pub(super) fn encodes(target: &Target, data: &InstrData) -> bool {
    (0..data.srcs.len()).all(|slot| valid_source(target, data, slot, &data.srcs[slot]))
}

/// An instruction with one destination that defines no value yet.
pub(super) fn operation(opcode: Opcode, class: RegClass, srcs: &[Src], attrs: Attrs) -> InstrData {
    let mut data = InstrData::new(opcode);
    data.srcs.extend(srcs.iter().map(fresh));
    data.attrs = attrs;
    data.dsts.push(Dst::new(Place::Reg(ir3_compiler::ir3::PhysReg::INVALID), class, WriteMask::SCALAR));
    data
}

/// Copies a source without its flags.
fn fresh(src: &Src) -> Src {
    Src { flags: OperandFlags::empty(), ..*src }
}

/// Inserts an instruction with one destination into a block and defines a value by it.
pub(super) fn insert(program: &mut Program, block: Block, index: usize, data: InstrData) -> Value {
    let dst = data.dsts[0];
    let instr = program.instrs.push(data);
    let components = dst.mask.span() as u16;
    let value = program.values.push(ValueData { instr, dst: 0, class: dst.class, components, array: None });
    program.instrs[instr].dsts[0].place = Place::Value(value);
    program.blocks[block].instrs.insert(index, instr);
    value
}

/// A source that reads all components of a value.
pub(super) fn full_src(program: &Program, value: Value) -> Src {
    let data = &program.values[value];
    Src::reg(Place::Value(value), data.class, WriteMask::first(u32::from(data.components)))
}

/// The types of a move in a register class.
pub(super) const fn move_attrs(class: RegClass) -> Attrs {
    let ty = if class.half { Type::U16 } else { Type::U32 };
    Attrs::Move { src: ty, dst: ty, round: Round::Default }
}

/// The block of each instruction of the layout.
pub(super) fn blocks_of(program: &Program) -> SecondaryMap<Instr, Option<Block>> {
    let mut blocks = SecondaryMap::with_capacity(program.instrs.len());
    for (block, instr) in program.iter_instrs() {
        blocks[instr] = Some(block);
    }
    blocks
}

/// Returns true if physical and logical edges are the same everywhere: then a rewrite of the logical edges can
/// recompute the physical ones.
pub(super) fn physical_is_logical(program: &Program) -> bool {
    program.layout.iter().all(|&block| {
        let data = &program.blocks[block];
        let mut logical: Vec<Block> = data.successors().collect();
        let mut physical = data.physical_successors.to_vec();
        logical.sort_unstable();
        physical.sort_unstable();
        logical == physical
    })
}

/// Copies the logical edges to the physical ones.
pub(super) fn renew_physical(program: &mut Program) {
    for block in program.layout.clone() {
        let data = &mut program.blocks[block];
        data.physical_successors = data.successors().collect();
        data.physical_predecessors = data.predecessors.clone();
    }
}

/// Returns true if the layout of blocks matters because of predicated execution with inactive lanes.
pub(super) fn has_predication(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| matches!(program.instrs[instr].opcode, Opcode::Predt | Opcode::Predf))
}

/// An instruction with the context that a rule needs to rewrite it.
pub struct RewriteSite<'a> {
    /// The program.
    pub program: &'a mut Program,
    /// The GPU.
    pub target: &'a Target,
    /// The random choices of a rule.
    pub random: &'a mut Random,
    /// The instruction's block.
    pub block: Block,
    /// Its index in the block.
    pub index: usize,
    /// The instruction.
    pub instr: Instr,
    /// Constants can change while the program runs.
    pub consts_change: bool,
}

impl RewriteSite<'_> {
    /// The data of the instruction.
    pub(super) fn data(&self) -> &InstrData {
        &self.program.instrs[self.instr]
    }

    /// Replaces the instruction; false, and nothing is changed, if the new one cannot be encoded.
    pub(super) fn replace(&mut self, data: InstrData) -> bool {
        let encodes = encodes(self.target, &data);
        if encodes {
            self.program.instrs[self.instr] = data;
        }
        encodes
    }

    /// The register class of its result.
    pub(super) fn class(&self) -> RegClass {
        self.data().dsts[0].class
    }

    /// Opcode and sources, if the result and all sources are scalars in general registers of one width, and no flag
    /// modifies the operation.
    pub(super) fn uniform(&self) -> Option<(Opcode, Vec<Src>)> {
        let data = self.data();
        let class = self.class();
        let alike = |src: &Src| src.class == class && src.mask == WriteMask::SCALAR;
        let sound = class.file == RegFile::General
            && data.dsts[0].mask == WriteMask::SCALAR
            && data.flags.is_empty()
            && data.srcs.iter().all(alike);
        sound.then(|| (data.opcode, data.srcs.iter().map(fresh).collect()))
    }

    /// The definition of the value that a source reads without modifiers, if it is pure.
    pub(super) fn definition(&self, src: &Src) -> Option<&InstrData> {
        let value = src.value().filter(|_| src.mods.is_empty())?;
        let data = &self.program.instrs[self.program.values[value].instr];
        is_pure(data, self.consts_change).then_some(data)
    }

    /// Inserts an operation before the instruction; `None` if it cannot be encoded.
    pub(super) fn before(&mut self, opcode: Opcode, srcs: &[Src], attrs: Attrs) -> Option<Src> {
        let class = self.class();
        self.before_in(class, opcode, srcs, attrs)
    }

    /// Like [`before`](Self::before), with a result of another class.
    pub(super) fn before_in(&mut self, class: RegClass, opcode: Opcode, srcs: &[Src], attrs: Attrs) -> Option<Src> {
        let data = operation(opcode, class, srcs, attrs);
        if !encodes(self.target, &data) {
            return None;
        }
        let value = insert(self.program, self.block, self.index, data);
        self.index += 1;
        Some(full_src(self.program, value))
    }

    /// Inserts a move of an immediate to a register.
    pub(super) fn number(&mut self, bits: u32) -> Option<Src> {
        let class = self.class();
        self.before(Opcode::Mov, &[Src::immediate(bits, class.half)], move_attrs(class))
    }

    /// Replaces the operation and its sources but not its result; false, and nothing is changed, if that cannot be
    /// encoded.
    pub(super) fn becomes(&mut self, opcode: Opcode, srcs: &[Src], attrs: Attrs) -> bool {
        let mut data = operation(opcode, self.class(), srcs, attrs);
        data.dsts = self.data().dsts.clone();
        let encodes = encodes(self.target, &data);
        if encodes {
            self.program.instrs[self.instr] = data;
        }
        encodes
    }
}

/// The bitwise complement of a source: of an immediate the complemented immediate.
pub(super) fn complement(mut src: Src) -> Src {
    match &mut src.operand {
        SrcOperand::Immediate(bits) => *bits = if src.class.half { !*bits & 0xffff } else { !*bits },
        _ => src.mods ^= Mods::NOT,
    }
    src
}

/// Returns true if the result is not clamped.
pub(super) fn is_plain(data: &InstrData) -> bool {
    !data.flags.contains(InstrFlags::SAT)
}
