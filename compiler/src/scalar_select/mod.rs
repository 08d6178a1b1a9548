//! Instruction selection: from nir to scalar programs for Gen7.
//!
//! One pass over the tree of control flow, in source order. A nir value is a list of registers, one for each word: 64 bits are two words, the low one
//! first, and a bool is 0 or all ones. Vectors, copies and the halves of 64-bit values are no instructions: they name the registers of others. Each
//! intrinsic is a message. Each phi has two sets of registers, as in [`vec4_select`](crate::vec4_select).
//!
//! The halves of 64-bit sums (`iadd64_split…`) become `add64lo` and `add64hi`, which the hardware does not have:
//! [`lower_additions`](crate::scalar_passes::lower_additions) decides how the carry goes from one to the other. A 64-bit sum that is not split gets a
//! comparison here, as `nir_lower_int64` has it.
//!
//! Arithmetic on 32 bits, comparisons, selections, 64-bit sums and bitwise operations, control flow and intrinsics are supported; everything else is
//! refused by name.

mod alu;

use crate::nir::{self, Block, CfNode, Def, If, InstrData, Intrinsic, JumpKind, Loop};
use crate::select::SelectError;
use crate::vec4::{
    Cmod, Dst, DstFile, Instr, Mask, Message, Mode, Opcode, Predicate, Program, RegType, Src, SrcFile, Swizzle,
};
use crate::vec4_select::operands::bool_bits;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The registers of a value, word by word.
type Registers = SmallVec<[u32; 4]>;

struct Selector<'a> {
    function: &'a nir::Function,
    mode: Mode,
    instrs: Vec<Instr>,
    locations: SecondaryMap<Def, Registers>,
    registers: u32,
    /// The registers that the sources of phis are copied to, by phi.
    incoming: FxHashMap<Def, Registers>,
    /// The phis and their values at the end of each block.
    copies: SecondaryMap<Block, Vec<(Def, Def)>>,
    /// The instruction that is translated.
    instr: Option<nir::Instr>,
}

/// A register as a source.
fn register(number: u32, ty: RegType) -> Src {
    Src::new(SrcFile::Vgrf(number), Swizzle::replicate(0), ty)
}

/// A register as a destination.
fn destination(number: u32, ty: RegType) -> Dst {
    Dst { file: DstFile::Vgrf(number), mask: Mask(1), ty }
}

/// No register: only the flag is written.
fn null(ty: RegType) -> Dst {
    Dst { mask: Mask(1), ..Dst::null(ty) }
}

/// Translates a shader to a program of a scalar mode.
///
/// # Errors
/// Names the operation that is not supported, and its location.
pub fn run(shader: &nir::Shader, mode: Mode) -> Result<Program, SelectError> {
    let mut selector = Selector {
        function: &shader.entry,
        mode,
        instrs: Vec::new(),
        locations: SecondaryMap::new(),
        registers: 0,
        incoming: FxHashMap::default(),
        copies: SecondaryMap::new(),
        instr: None,
    };
    nir::FloatControls::of(&shader.info).map_err(|error| selector.unsupported(error.to_string()))?;
    selector.phis()?;
    selector.list(&shader.entry.body)?;
    Ok(Program { mode, stage: shader.stage, info: shader.info.clone(), instrs: selector.instrs })
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

    fn bits(&self, def: Def) -> u8 {
        self.function.defs[def].bit_size
    }

    fn components(&self, def: Def) -> u8 {
        self.function.defs[def].num_components
    }

    /// The registers of each component.
    fn words_per_component(&self, def: Def) -> usize {
        if self.bits(def) == 64 { 2 } else { 1 }
    }

    /// Checks that a value is made of words.
    fn expect_words(&self, def: Def) -> Result<(), SelectError> {
        match self.bits(def) {
            1 | 32 | 64 => Ok(()),
            bits => Err(self.unsupported(format!("a value of {bits} bits"))),
        }
    }

    fn new_register(&mut self) -> u32 {
        self.registers += 1;
        self.registers - 1
    }

    fn new_registers(&mut self, def: Def) -> Registers {
        let count = usize::from(self.components(def)) * self.words_per_component(def);
        (0..count).map(|_| self.new_register()).collect()
    }

    /// New registers for a value that is computed.
    fn define(&mut self, def: Def) -> Registers {
        let registers = self.new_registers(def);
        self.locations[def].clone_from(&registers);
        registers
    }

    fn emit(&mut self, opcode: Opcode, dst: Dst, srcs: &[Src]) -> &mut Instr {
        let exec_size = self.mode.width();
        self.instrs.push(Instr { exec_size, ..Instr::new(opcode, dst, srcs) });
        self.instrs.last_mut().expect("it was pushed")
    }

    fn control(&mut self, opcode: Opcode) -> &mut Instr {
        let exec_size = self.mode.width();
        self.instrs.push(Instr { exec_size, ..Instr::control(opcode) });
        self.instrs.last_mut().expect("it was pushed")
    }

    fn copy(&mut self, to: u32, from: Src) {
        self.emit(Opcode::Mov, destination(to, RegType::Ud), &[from]);
    }

    /// Sets the flag where a bool in a register is true.
    fn test(&mut self, condition: u32) {
        let set = self.emit(Opcode::Mov, null(RegType::D), &[register(condition, RegType::D)]);
        set.cmod = Some(Cmod::Nz);
    }

    /// Registers for the sources of all phis and for their results, and the copies by block.
    fn phis(&mut self) -> Result<(), SelectError> {
        for (_, instr) in self.function.instrs_in_order() {
            if let InstrData::Phi { def, srcs } = &self.function.instrs[instr] {
                self.instr = Some(instr);
                self.expect_words(*def)?;
                let registers = self.new_registers(*def);
                self.incoming.insert(*def, registers);
                self.define(*def);
                srcs.iter().for_each(|&(block, value)| self.copies[block].push((*def, value)));
            }
        }
        self.instr = None;
        Ok(())
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
        self.test(self.locations[node.condition][0]);
        self.control(Opcode::If).predicate = Some((Predicate::Normal, false));
        self.list(&node.then)?;
        let before = self.instrs.len();
        self.control(Opcode::Else);
        self.list(&node.otherwise)?;
        if self.instrs.len() == before + 1 {
            self.instrs.pop();
        }
        self.control(Opcode::Endif);
        Ok(())
    }

    fn loop_node(&mut self, node: &Loop) -> Result<(), SelectError> {
        if node.continuing.is_some() {
            return Err(self.unsupported("a loop with a continue construct"));
        }
        self.control(Opcode::Do);
        self.list(&node.body)?;
        self.control(Opcode::While);
        Ok(())
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
        for (phi, value) in self.copies[block].clone() {
            if !matches!(function.instrs[function.defs[value].instr], InstrData::Undef { .. }) {
                let to = self.incoming[&phi].clone();
                let from = self.locations[value].clone();
                to.into_iter().zip(from).for_each(|(to, from)| self.copy(to, register(from, RegType::Ud)));
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
        if let Some(def) = data.def() {
            self.expect_words(def)?;
        }
        match data {
            InstrData::Alu(alu) => self.alu(alu)?,
            InstrData::Const { def, values } => {
                let registers = self.define(*def);
                let bits = self.bits(*def);
                let words = values.iter().flat_map(|&value| match bits {
                    1 => [Some(bool_bits(value)), None],
                    32 => [Some(value as u32), None],
                    _ => [Some(value as u32), Some((value >> 32) as u32)],
                });
                for (to, word) in registers.into_iter().zip(words.flatten()) {
                    self.copy(to, Src::immediate(word, RegType::Ud));
                }
            }
            InstrData::Undef { def } => drop(self.define(*def)),
            InstrData::Phi { def, .. } => {
                let (from, to) = (self.incoming[def].clone(), self.locations[*def].clone());
                to.into_iter().zip(from).for_each(|(to, from)| self.copy(to, register(from, RegType::Ud)));
            }
            InstrData::Intrinsic(intrinsic) => self.message(intrinsic)?,
            InstrData::Tex(_) => return Err(self.unsupported("textures are not supported")),
            InstrData::Jump(_) => unreachable!("jumps end blocks"),
        }
        Ok(())
    }

    /// An intrinsic: its operands are the words of the payload.
    fn message(&mut self, intrinsic: &Intrinsic) -> Result<(), SelectError> {
        intrinsic.srcs.iter().try_for_each(|&src| self.expect_words(src))?;
        let message = Message::of(self.function, intrinsic);
        let payload: Vec<Src> = intrinsic
            .srcs
            .iter()
            .flat_map(|&src| &self.locations[src])
            .map(|&word| register(word, RegType::Ud))
            .collect();
        let dst = match intrinsic.def {
            Some(def) => destination(self.define(def)[0], RegType::Ud),
            None => null(RegType::Ud),
        };
        self.emit(Opcode::Send, dst, &payload).message = Some(Box::new(message));
        Ok(())
    }
}
