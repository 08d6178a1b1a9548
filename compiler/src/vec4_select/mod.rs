//! Instruction selection: from nir to vec4.
//!
//! One pass over the tree of control flow, in source order. A nir value is a virtual register, its components the first channels; a bool is 0 or
//! all ones. Inputs and uniforms are operands themselves. Negations and absolute values of floats become source modifiers, constants immediates of
//! the last source. Each phi has two registers: predecessors write one at their end, the block of the phi copies it to the other, so that phis of
//! a block cannot overwrite each other's sources.
//!
//! Arithmetic on 32 bits, comparisons, selections, control flow, inputs, uniforms and outputs are supported. Loads from uniform buffers (i965's pull
//! constants) and system values are messages. Everything else is refused by name.

pub(crate) mod alu;
pub(crate) mod operands;

use crate::nir::{self, Block, CfNode, Def, If, InstrData, Intrinsic, IntrinsicOp, JumpKind, Loop};
use crate::select::SelectError;
use crate::vec4::{
    Cmod, Dst, DstFile, Instr, Mask, Message, Mode, Opcode, Predicate, Program, RegType, Src, SrcFile, Swizzle,
};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// The forms of code that selection emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A selection of one channel reads the flag of that channel only: "i965/vec4: select predicate based on writemask for sel emissions".
    pub replicate_sel: bool,
    /// A branch reads the flag of x only: "i965/vec4: nir_emit_if doesn't need to predicate based on all the channels".
    pub replicate_if: bool,
}

/// Where the components of a nir value are: consecutive channels of a register.
#[derive(Clone, Copy, Debug)]
struct Location {
    file: SrcFile,
    first: u8,
}

/// A phi of the block that a block goes to: the register that the block writes, and the value.
#[derive(Clone, Copy)]
struct PhiCopy {
    register: u32,
    components: u8,
    value: Def,
}

struct Selector<'a> {
    function: &'a nir::Function,
    rules: Rules,
    instrs: Vec<Instr>,
    locations: SecondaryMap<Def, Option<Location>>,
    registers: u32,
    /// The registers that the sources of phis are copied to, by phi.
    incoming: FxHashMap<Def, u32>,
    /// The copies at the end of each block.
    copies: SecondaryMap<Block, Vec<PhiCopy>>,
    /// The instruction that is translated.
    instr: Option<nir::Instr>,
    depth: u32,
}

/// Translates a shader.
///
/// # Errors
/// Names the operation that is not supported, and its location.
pub fn run(shader: &nir::Shader, rules: Rules) -> Result<Program, SelectError> {
    let mut selector = Selector {
        function: &shader.entry,
        rules,
        instrs: Vec::new(),
        locations: SecondaryMap::new(),
        registers: 0,
        incoming: FxHashMap::default(),
        copies: SecondaryMap::new(),
        instr: None,
        depth: 0,
    };
    if shader.stage != nir::Stage::Vertex {
        return Err(selector.unsupported(format!("{}: only vertex shaders are translated to vec4", shader.stage)));
    }
    nir::FloatControls::of(&shader.info).map_err(|error| selector.unsupported(error.to_string()))?;
    selector.phis();
    selector.list(&shader.entry.body)?;
    Ok(Program { mode: Mode::Vec4, stage: shader.stage, info: shader.info.clone(), instrs: selector.instrs })
}

impl Selector<'_> {
    fn unsupported(&self, reason: impl Into<String>) -> SelectError {
        let operation = match self.instr {
            Some(instr) => self.function.instrs[instr].name().to_owned(),
            None => "shader".to_owned(),
        };
        let line = self.instr.map(|instr| self.function.lines[instr]).filter(|&line| line != 0);
        SelectError { operation, reason: reason.into(), line, instr: self.instr }
    }

    fn components(&self, def: Def) -> u8 {
        self.function.defs[def].num_components
    }

    fn new_register(&mut self) -> u32 {
        self.registers += 1;
        self.registers - 1
    }

    /// The register of a new value.
    fn define(&mut self, def: Def) -> u32 {
        let register = self.new_register();
        self.locations[def] = Some(Location { file: SrcFile::Vgrf(register), first: 0 });
        register
    }

    /// Where a value is. A value that is used before it is computed (in a phi) gets its register now.
    fn location(&mut self, def: Def) -> Location {
        match self.locations[def] {
            Some(location) => location,
            None => {
                let file = SrcFile::Vgrf(self.define(def));
                Location { file, first: 0 }
            }
        }
    }

    fn emit(&mut self, opcode: Opcode, dst: Dst, srcs: &[Src]) -> &mut Instr {
        self.instrs.push(Instr::new(opcode, dst, srcs));
        self.instrs.last_mut().expect("it was pushed")
    }

    /// Registers for the sources of all phis, and the copies to them by block.
    fn phis(&mut self) {
        for (_, instr) in self.function.instrs_in_order() {
            if let InstrData::Phi { def, srcs } = &self.function.instrs[instr] {
                let register = self.new_register();
                self.incoming.insert(*def, register);
                for &(block, value) in srcs {
                    let components = self.components(*def);
                    self.copies[block].push(PhiCopy { register, components, value });
                }
            }
        }
    }

    fn list(&mut self, list: &[CfNode]) -> Result<(), SelectError> {
        for node in list {
            match node {
                CfNode::Block(block) => self.block(*block)?,
                CfNode::If(node) => self.if_node(node)?,
                CfNode::Loop(node) => self.loop_node(node)?,
            }
        }
        Ok(())
    }

    fn if_node(&mut self, node: &If) -> Result<(), SelectError> {
        let condition = Src::new(self.location(node.condition).file, self.scalar(node.condition), RegType::D);
        let set = self.emit(Opcode::Mov, Dst::null(RegType::D), &[condition]);
        set.cmod = Some(Cmod::Nz);
        let predicate = if self.rules.replicate_if { Predicate::ReplicateX } else { Predicate::Normal };
        self.control(Opcode::If).predicate = Some((predicate, false));
        self.depth += 1;
        self.list(&node.then)?;
        let before = self.instrs.len();
        self.control(Opcode::Else);
        self.list(&node.otherwise)?;
        if self.instrs.len() == before + 1 {
            self.instrs.pop();
        }
        self.depth -= 1;
        self.control(Opcode::Endif);
        Ok(())
    }

    fn loop_node(&mut self, node: &Loop) -> Result<(), SelectError> {
        if node.continuing.is_some() {
            return Err(self.unsupported("a loop with a continue construct"));
        }
        self.control(Opcode::Do);
        self.depth += 1;
        self.list(&node.body)?;
        self.depth -= 1;
        self.control(Opcode::While);
        Ok(())
    }

    fn control(&mut self, opcode: Opcode) -> &mut Instr {
        self.instrs.push(Instr::control(opcode));
        self.instrs.last_mut().expect("it was pushed")
    }

    fn block(&mut self, block: Block) -> Result<(), SelectError> {
        let function = self.function;
        let mut jump = None;
        for &instr in &function.blocks[block].instrs {
            self.instr = Some(instr);
            match &function.instrs[instr] {
                InstrData::Jump(kind) => jump = Some(*kind),
                data => self.instruction(data)?,
            }
        }
        for PhiCopy { register, components, value } in self.copies[block].clone() {
            if !matches!(function.instrs[function.defs[value].instr], InstrData::Undef { .. }) {
                let dst = Dst { file: DstFile::Vgrf(register), mask: Mask::first(components), ty: RegType::Ud };
                let src = self.whole(value, RegType::Ud);
                self.emit(Opcode::Mov, dst, &[src]);
            }
        }
        match jump {
            None => {}
            Some(JumpKind::Break) => drop(self.control(Opcode::Break)),
            Some(JumpKind::Continue) => drop(self.control(Opcode::Continue)),
            Some(kind) => return Err(self.unsupported(format!("`{kind}` is not supported"))),
        }
        self.instr = None;
        Ok(())
    }

    fn instruction(&mut self, data: &InstrData) -> Result<(), SelectError> {
        if let Some(def) = data.def()
            && !matches!(self.function.defs[def].bit_size, 1 | 32)
        {
            return Err(self.unsupported(format!("a value of {} bits", self.function.defs[def].bit_size)));
        }
        if let Some(def) = data.def()
            && self.components(def) > 4
        {
            return Err(self.unsupported(format!("a vector of {} components", self.components(def))));
        }
        match data {
            InstrData::Alu(alu) => self.alu(alu),
            InstrData::Const { def, values } => {
                self.constant(*def, values);
                Ok(())
            }
            InstrData::Undef { def } => {
                self.define(*def);
                Ok(())
            }
            InstrData::Phi { def, .. } => {
                let components = self.components(*def);
                let file = SrcFile::Vgrf(self.incoming[def]);
                let to = match self.location(*def).file {
                    SrcFile::Vgrf(register) => register,
                    _ => unreachable!("a phi is in a register"),
                };
                let dst = Dst { file: DstFile::Vgrf(to), mask: Mask::first(components), ty: RegType::Ud };
                self.emit(Opcode::Mov, dst, &[Src::new(file, Swizzle::IDENTITY, RegType::Ud)]);
                Ok(())
            }
            InstrData::Intrinsic(intrinsic) => self.intrinsic(intrinsic),
            InstrData::Tex(_) => Err(self.unsupported("textures are not supported")),
            InstrData::Jump(_) => unreachable!("jumps end blocks"),
        }
    }

    fn constant(&mut self, def: Def, values: &[u64]) {
        let register = self.define(def);
        let is_bool = self.function.defs[def].bit_size == 1;
        let bits = |value: u64| if is_bool { operands::bool_bits(value) } else { value as u32 };
        let mut left = Mask::first(values.len() as u8);
        for (i, &value) in values.iter().enumerate() {
            let same =
                (0..values.len()).filter(|&j| values[j] == value).fold(Mask::NONE, |mask, j| mask | Mask(1 << j));
            if left.has(i) {
                let dst = Dst { file: DstFile::Vgrf(register), mask: same, ty: RegType::Ud };
                self.emit(Opcode::Mov, dst, &[Src::immediate(bits(value), RegType::Ud)]);
                left = left.without(same);
            }
        }
    }

    fn intrinsic(&mut self, intrinsic: &Intrinsic) -> Result<(), SelectError> {
        // An offset may be negative.
        let constant = |def: Def| self.function.as_const_scalar(def).map(|value| value as i32);
        let base = i64::from(intrinsic.indices.base());
        let slot = |offset: Option<i32>, error: &str| {
            let at = offset.and_then(|offset| u32::try_from(base + i64::from(offset)).ok());
            at.filter(|&at| at < 4096).ok_or_else(|| self.unsupported(error))
        };
        match (intrinsic.op, &intrinsic.srcs[..], intrinsic.def) {
            (IntrinsicOp::LoadInput, &[offset], Some(def)) => {
                let number = slot(constant(offset), "an attribute whose number is no constant")?;
                let first = intrinsic.indices.component();
                if first + self.components(def) > 4 {
                    return Err(self.unsupported("an attribute of two slots"));
                }
                self.locations[def] = Some(Location { file: SrcFile::Attr(number), first });
            }
            (IntrinsicOp::LoadConstIr3, &[offset], Some(def)) if constant(offset).is_none() => {
                // i965 moves uniforms that are indexed to the pull constants.
                self.message(intrinsic, def)?;
            }
            (IntrinsicOp::LoadConstIr3, &[offset], Some(def)) => {
                let word = slot(constant(offset), "a uniform whose number is no constant")?;
                let (vector, first) = (word / 4, (word % 4) as u8);
                let components = self.components(def);
                if first + components <= 4 {
                    self.locations[def] = Some(Location { file: SrcFile::Uniform(vector), first });
                } else {
                    let register = self.define(def);
                    for component in 0..components {
                        let word = word + u32::from(component);
                        let dst = Dst { file: DstFile::Vgrf(register), mask: Mask(1 << component), ty: RegType::Ud };
                        let swizzle = Swizzle::replicate((word % 4) as u8);
                        self.emit(Opcode::Mov, dst, &[Src::new(SrcFile::Uniform(word / 4), swizzle, RegType::Ud)]);
                    }
                }
            }
            (IntrinsicOp::StoreOutput, &[value, offset], None) => {
                if self.depth != 0 {
                    return Err(self.unsupported("a store to an output inside of an if or a loop"));
                }
                if self.function.defs[value].bit_size != 32 {
                    let bits = self.function.defs[value].bit_size;
                    return Err(self.unsupported(format!("an output of {bits} bits")));
                }
                let number = slot(constant(offset), "an output whose number is no constant")?;
                let first = intrinsic.indices.component();
                let mask = intrinsic.indices.write_mask() as u8 & Mask::first(self.components(value)).0;
                if u32::from(mask) << first > 15 {
                    return Err(self.unsupported("an output of two slots"));
                }
                let Location { file, first: from } = self.location(value);
                let mut swizzle = [from; 4];
                for channel in Mask(mask).channels() {
                    swizzle[channel + usize::from(first)] = from + channel as u8;
                }
                let dst = Dst { file: DstFile::Output(number), mask: Mask(mask << first), ty: RegType::F };
                self.emit(Opcode::Mov, dst, &[Src::new(file, Swizzle(swizzle), RegType::F)]);
            }
            (op, _, Some(def)) if is_message(op) => self.message(intrinsic, def)?,
            _ => return Err(self.unsupported("not supported in vec4")),
        }
        Ok(())
    }

    /// A value that is neither an attribute nor a uniform: a system value, or a pull constant.
    fn message(&mut self, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
        for &src in &intrinsic.srcs {
            let bits = self.function.defs[src].bit_size;
            if bits != 32 {
                return Err(self.unsupported(format!("a source of {bits} bits")));
            }
        }
        let message = Message::of(self.function, intrinsic);
        let srcs: Vec<Src> = intrinsic.srcs.iter().map(|&src| self.whole(src, RegType::Ud)).collect();
        let mask = Mask::first(self.components(def));
        let dst = Dst { file: DstFile::Vgrf(self.define(def)), mask, ty: RegType::Ud };
        self.emit(Opcode::Send, dst, &srcs).message = Some(Box::new(message));
        Ok(())
    }
}

/// The intrinsics that are messages: loads from uniform buffers, and the system values of vertex shaders.
fn is_message(op: IntrinsicOp) -> bool {
    use IntrinsicOp::{
        BindlessResourceIr3, LoadBaseInstance, LoadBaseVertex, LoadDrawId, LoadFirstVertex, LoadInstanceId,
        LoadIsIndexedDraw, LoadUbo, LoadUboVec4, LoadVertexId, LoadVertexIdZeroBase, LoadViewIndex,
    };
    matches!(
        op,
        BindlessResourceIr3
            | LoadBaseInstance
            | LoadBaseVertex
            | LoadDrawId
            | LoadFirstVertex
            | LoadInstanceId
            | LoadIsIndexedDraw
            | LoadUbo
            | LoadUboVec4
            | LoadVertexId
            | LoadVertexIdZeroBase
            | LoadViewIndex
    )
}
