//! The walk over the tree of control flow, and the code that was emitted so far: the same for vec4 and scalar programs.
//!
//! One pass in source order. At the end of a block the values of phis are copied to registers of their own, before the
//! jump of the block.

use crate::i965::vec4::{Dst, Instr, Mode, Opcode, Predicate, Src};
use crate::nir::{self, Block, CfNode, Def, If, InstrData, JumpKind, Loop};
use crate::select::SelectError;
use cranelift_entity::SecondaryMap;

/// The code of a program so far.
pub(crate) struct Code<'a> {
    pub(crate) function: &'a nir::Function,
    pub(crate) mode: Mode,
    pub(crate) instrs: Vec<Instr>,
    registers: u32,
    /// The phis that have a value at the end of a block, and that value.
    phis: SecondaryMap<Block, Vec<(Def, Def)>>,
    /// The instruction that is translated.
    pub(crate) instr: Option<nir::Instr>,
    /// The number of ifs and loops around.
    pub(crate) depth: u32,
}

impl<'a> Code<'a> {
    /// No code.
    pub(crate) fn new(function: &'a nir::Function, mode: Mode) -> Self {
        let mut phis: SecondaryMap<Block, Vec<(Def, Def)>> = SecondaryMap::new();
        for (_, instr) in function.instrs_in_order() {
            if let InstrData::Phi { def, srcs } = &function.instrs[instr] {
                srcs.iter().for_each(|&(block, value)| phis[block].push((*def, value)));
            }
        }
        Self { function, mode, instrs: Vec::new(), registers: 0, phis, instr: None, depth: 0 }
    }

    /// The error for the current instruction, or the shader.
    pub(crate) fn unsupported(&self, reason: impl Into<String>) -> SelectError {
        let operation = match self.instr {
            Some(instr) => self.function.instrs[instr].name().to_owned(),
            None => "shader".to_owned(),
        };
        let line = self.instr.map(|instr| self.function.lines[instr]).filter(|&line| line != 0);
        SelectError { operation, reason: reason.into(), line, instr: self.instr }
    }

    pub(crate) fn bits(&self, def: Def) -> u8 {
        self.function.defs[def].bit_size
    }

    pub(crate) fn components(&self, def: Def) -> u8 {
        self.function.defs[def].num_components
    }

    pub(crate) fn new_register(&mut self) -> u32 {
        self.registers += 1;
        self.registers - 1
    }

    pub(crate) fn emit(&mut self, opcode: Opcode, dst: Dst, srcs: &[Src]) -> &mut Instr {
        self.push(Instr::new(opcode, dst, srcs))
    }

    fn control(&mut self, opcode: Opcode) -> &mut Instr {
        self.push(Instr::control(opcode))
    }

    fn push(&mut self, instr: Instr) -> &mut Instr {
        self.instrs.push(Instr { exec_size: self.mode.width(), ..instr });
        self.instrs.last_mut().expect("it was pushed")
    }
}

/// The selection for one mode.
pub(crate) trait Selection<'a> {
    fn code(&mut self) -> &mut Code<'a>;

    /// Sets the flag by a condition; returns the predicate of the `if` that reads it, and true if that is inverted.
    fn test(&mut self, condition: Def) -> (Predicate, bool);

    /// Copies a value to the registers for the sources of a phi.
    fn copy_to_phi(&mut self, phi: Def, value: Def);

    /// Translates an instruction that is no jump.
    ///
    /// # Errors
    /// Names the operation that is not supported, and its location.
    fn instruction(&mut self, data: &InstrData) -> Result<(), SelectError>;

    /// Translates a list of nodes.
    ///
    /// # Errors
    /// As [`instruction`](Self::instruction).
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

    /// Translates an if. An empty else is left out; if there is only an else, it is the first branch of an inverted
    /// predicate.
    ///
    /// # Errors
    /// As [`instruction`](Self::instruction).
    fn if_node(&mut self, node: &If) -> Result<(), SelectError> {
        let (predicate, inverse) = self.test(node.condition);
        self.code().control(Opcode::If).predicate = Some((predicate, inverse));
        self.code().depth += 1;
        let first = self.code().instrs.len();
        self.list(&node.then)?;
        let before = self.code().instrs.len();
        self.code().control(Opcode::Else);
        self.list(&node.otherwise)?;
        let is_empty = self.code().instrs.len() == before + 1;
        if is_empty || before == first {
            self.code().instrs.remove(before);
        }
        if before == first && !is_empty {
            self.code().instrs[first - 1].predicate = Some((predicate, !inverse));
        }
        self.code().depth -= 1;
        self.code().control(Opcode::Endif);
        Ok(())
    }

    /// Translates a loop.
    ///
    /// # Errors
    /// As [`instruction`](Self::instruction).
    fn loop_node(&mut self, node: &Loop) -> Result<(), SelectError> {
        if node.continuing.is_some() {
            return Err(self.code().unsupported("a loop with a continue construct"));
        }
        self.code().control(Opcode::Do);
        self.code().depth += 1;
        self.list(&node.body)?;
        self.code().depth -= 1;
        self.code().control(Opcode::While);
        Ok(())
    }

    /// Translates a block.
    ///
    /// # Errors
    /// As [`instruction`](Self::instruction).
    fn block(&mut self, block: Block) -> Result<(), SelectError> {
        let function = self.code().function;
        let mut jump = None;
        for &instr in &function.blocks[block].instrs {
            self.code().instr = Some(instr);
            match &function.instrs[instr] {
                InstrData::Jump(kind) => jump = Some(*kind),
                data => self.instruction(data)?,
            }
        }
        for (phi, value) in std::mem::take(&mut self.code().phis[block]) {
            if !matches!(function.instrs[function.defs[value].instr], InstrData::Undef { .. }) {
                self.copy_to_phi(phi, value);
            }
        }
        match jump {
            None => {}
            Some(JumpKind::Break) => drop(self.code().control(Opcode::Break)),
            Some(JumpKind::Continue) => drop(self.code().control(Opcode::Continue)),
            Some(kind) => return Err(self.code().unsupported(format!("`{kind}` is not supported"))),
        }
        self.code().instr = None;
        Ok(())
    }
}
