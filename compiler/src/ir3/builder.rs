//! A builder that appends instructions to a program in SSA form.

use super::{
    Attrs, Block, Condition, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, Round, Src, Type, Value,
    ValueData, WriteMask,
};

/// Appends to one block of a program.
pub struct Builder<'a> {
    /// The program under construction.
    pub program: &'a mut Program,
    /// The block that instructions are appended to.
    pub block: Block,
}

impl<'a> Builder<'a> {
    /// Creates a builder that appends to `block`.
    pub fn new(program: &'a mut Program, block: Block) -> Self {
        Self { program, block }
    }

    /// Appends an instruction unchanged.
    pub fn push(&mut self, data: InstrData) -> Instr {
        let instr = self.program.instrs.push(data);
        self.program.blocks[self.block].instrs.push(instr);
        instr
    }

    /// Appends an instruction without destinations.
    pub fn effect(&mut self, opcode: Opcode, srcs: &[Src]) -> Instr {
        let mut data = InstrData::new(opcode);
        data.srcs.extend_from_slice(srcs);
        self.push(data)
    }

    /// Appends an instruction that defines a value of `components` registers.
    pub fn define(&mut self, opcode: Opcode, class: RegClass, components: u16, srcs: &[Src], attrs: Attrs) -> Value {
        let mut data = InstrData::new(opcode);
        data.srcs.extend_from_slice(srcs);
        data.attrs = attrs;
        let instr = self.push(data);
        self.add_dst(instr, class, WriteMask::first(u32::from(components)))
    }

    /// Adds a destination, which defines a new value, to an instruction.
    pub fn add_dst(&mut self, instr: Instr, class: RegClass, mask: WriteMask) -> Value {
        let dst = self.program.instrs[instr].dsts.len() as u8;
        let components = mask.span() as u16;
        let value = self.program.values.push(ValueData { instr, dst, class, components, array: None });
        self.program.instrs[instr].dsts.push(Dst::new(Place::Value(value), class, mask));
        value
    }

    /// Appends an operation with one scalar result.
    pub fn alu(&mut self, opcode: Opcode, class: RegClass, srcs: &[Src]) -> Value {
        self.define(opcode, class, 1, srcs, Attrs::None)
    }

    /// Appends `cmps.*.<condition>`.
    pub fn compare(&mut self, opcode: Opcode, condition: Condition, class: RegClass, a: Src, b: Src) -> Value {
        self.define(opcode, class, 1, &[a, b], Attrs::Compare(condition))
    }

    /// Appends a move or a conversion, by its types.
    pub fn convert(&mut self, from: Type, to: Type, class: RegClass, src: Src) -> Value {
        self.define(Opcode::Mov, class, 1, &[src], Attrs::Move { src: from, dst: to, round: Round::Default })
    }

    /// Creates a source that reads all components of `value`.
    pub fn src(&self, value: Value) -> Src {
        let data = &self.program.values[value];
        Src::reg(Place::Value(value), data.class, WriteMask::first(u32::from(data.components)))
    }
}
