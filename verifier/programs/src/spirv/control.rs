//! Control flow: the tree of ifs and loops as blocks with merge instructions.
//!
//! An if is a selection whose merge block is the block after it. A loop gets a header, which has the phis of the loop's
//! first block, and a continue block: SPIR-V wants one back edge, so a phi of several values that come from `continue`s
//! is split in two. Blocks that are never reached are merge blocks without code.

use ir3_compiler::nir::{Block, CfNode, Def, Function, Instr, InstrData, JumpKind, Loop};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Word};

use super::lanes::is_conditional_kill;
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, no_form, refs};

/// The branch targets of a list of nodes.
#[derive(Clone, Copy, Default)]
struct Exits {
    /// The target after its last block; a return from the shader if `None`.
    next: Option<Word>,
    /// The target of `break`.
    after_loop: Option<Word>,
    /// The target of `continue`.
    again: Option<Word>,
}

/// The predecessors that the phis of a loop header read from.
struct Header {
    /// The block before the loop.
    before: Block,
    /// The block that goes back to the header.
    again: Word,
    /// True if that block is nir's own, and not one that joins the `continue`s.
    is_construct: bool,
}

impl<'a> Emitter<'a> {
    /// Emits the function's body.
    pub fn body(&mut self) -> Result<(), NoForm> {
        let function = self.function;
        for block in function.blocks_in_order() {
            self.begins[block] = self.b.id();
            self.ends[block] = if kills(function, block) > 0 { self.b.id() } else { self.begins[block] };
        }
        for (_, instr) in function.instrs_in_order() {
            let data = &function.instrs[instr];
            if matches!(data, InstrData::Phi { .. } | InstrData::Const { .. }) && self.is_too_wide(data) {
                return no_form(self.width_of(data));
            }
        }
        self.split_headers(&function.body);
        self.plan_phi_casts();
        self.nodes(&function.body, Exits::default())
    }

    /// Gives the first blocks of loops ends that are not their headers.
    fn split_headers(&mut self, nodes: &'a [CfNode]) {
        for node in nodes {
            match node {
                CfNode::Block(_) => {}
                CfNode::If(node) => {
                    self.split_headers(&node.then);
                    self.split_headers(&node.otherwise);
                }
                CfNode::Loop(node) => {
                    let first = first_block(&node.body);
                    if self.ends[first] == self.begins[first] {
                        self.ends[first] = self.b.id();
                    }
                    self.split_headers(&node.body);
                    self.split_headers(node.continuing.as_deref().unwrap_or_default());
                }
            }
        }
    }

    /// Names the casts that phis need at the ends of blocks: a phi reads values of its own kind.
    fn plan_phi_casts(&mut self) {
        let function = self.function;
        for (_, instr) in function.instrs_in_order() {
            let InstrData::Phi { def, srcs } = &function.instrs[instr] else { continue };
            let kind = self.kinds[*def];
            for &(block, src) in srcs {
                let src = self.original(src);
                if self.kinds[src] != kind && function.as_const(src).is_none() {
                    let id = self.b.id();
                    self.phi_casts.entry(block).or_default().entry((src, kind)).or_insert(id);
                }
            }
        }
    }

    /// The value that a phi of this kind reads at the end of a block.
    fn at_end(&mut self, block: Block, src: Def, kind: Kind) -> Word {
        let src = self.original(src);
        match self.phi_casts.get(&block).and_then(|casts| casts.get(&(src, kind))) {
            Some(&id) => id,
            None => self.read(src, kind),
        }
    }

    /// Begins a block.
    pub fn open(&mut self, label: Word) {
        self.b.begin_block(Some(label)).expect("the block before has ended");
        self.readings.clear();
    }

    fn nodes(&mut self, nodes: &'a [CfNode], exits: Exits) -> Result<(), NoForm> {
        self.nodes_after(None, nodes, exits)
    }

    /// Emits nodes that a block may precede.
    fn nodes_after(&mut self, before: Option<Block>, nodes: &'a [CfNode], exits: Exits) -> Result<(), NoForm> {
        for (i, node) in nodes.iter().enumerate() {
            match node {
                &CfNode::Block(block) => {
                    self.open(self.begins[block]);
                    if !self.reached(block) {
                        self.end(spirv::Op::Unreachable, Vec::new());
                        return Ok(());
                    }
                    if self.is_entry(block) {
                        self.local_arrays()?;
                        self.scratch_memory();
                    }
                    self.phis(block);
                    self.rest(block, &nodes[i + 1..], exits)?;
                }
                CfNode::If(node) => {
                    let arms = Exits { next: Some(self.begins[first_block(&nodes[i + 1..])]), ..exits };
                    self.nodes(&node.then, arms)?;
                    self.nodes(&node.otherwise, arms)?;
                }
                CfNode::Loop(node) => {
                    let before = match nodes[..i].last() {
                        Some(&CfNode::Block(block)) => Some(block),
                        _ => before,
                    };
                    let Some(before) = before else { return no_form("a loop without a block before it") };
                    self.repetition(node, before, self.begins[first_block(&nodes[i + 1..])])?;
                }
            }
        }
        Ok(())
    }

    /// Returns true for the first block of the function.
    fn is_entry(&self, block: Block) -> bool {
        self.function.blocks_in_order().next() == Some(block)
    }

    /// Returns true if a block is reachable.
    fn reached(&self, block: Block) -> bool {
        self.is_entry(block) || !self.cfg.preds[block].is_empty()
    }

    fn repetition(&mut self, node: &'a Loop, before: Block, after: Word) -> Result<(), NoForm> {
        let first = first_block(&node.body);
        let continuing = node.continuing.as_deref().filter(|nodes| self.reached(first_block(nodes)));
        let again = match continuing {
            Some(nodes) => self.begins[first_block(nodes)],
            None => self.b.id(),
        };
        let header = self.begins[first];
        let body = if kills(self.function, first) > 0 { self.b.id() } else { self.ends[first] };
        self.open(header);
        let joins = self.header_phis(first, &Header { before, again, is_construct: continuing.is_some() });
        let control = Operand::LoopControl(spirv::LoopControl::NONE);
        self.act(spirv::Op::LoopMerge, vec![Operand::IdRef(after), Operand::IdRef(again), control]);
        self.end(spirv::Op::Branch, refs(&[body]));
        self.open(body);
        let exits = Exits { next: Some(again), after_loop: Some(after), again: Some(again) };
        self.rest(first, &node.body[1..], exits)?;
        self.nodes_after(Some(first), &node.body[1..], exits)?;
        if let Some(nodes) = continuing {
            return self.nodes(nodes, Exits { next: Some(header), ..Exits::default() });
        }
        self.open(again);
        for (id, ty, sources) in joins {
            self.emit_as(id, spirv::Op::Phi, ty, refs(&sources));
        }
        self.end(spirv::Op::Branch, refs(&[header]));
        Ok(())
    }

    /// The phis of a loop's header; returns those that join the values of several `continue`s.
    fn header_phis(&mut self, block: Block, header: &Header) -> Vec<(Word, Word, Vec<Word>)> {
        let mut joins = Vec::new();
        for (def, srcs) in self.phis_of(block) {
            let kind = self.kinds[def];
            let ty = self.type_id(self.ty(def));
            let mut operands = Vec::new();
            let mut back = Vec::new();
            for (pred, src) in srcs {
                let value = self.at_end(pred, src, kind);
                let list = if pred == header.before || header.is_construct { &mut operands } else { &mut back };
                list.extend([value, self.ends[pred]]);
            }
            match back[..] {
                _ if header.is_construct => {}
                [] => operands.extend([self.undefined(ty), header.again]),
                [value, _] => operands.extend([value, header.again]),
                _ => {
                    let join = self.b.id();
                    operands.extend([join, header.again]);
                    joins.push((join, ty, back));
                }
            }
            self.emit_as(self.ids[def], spirv::Op::Phi, ty, refs(&operands));
        }
        joins
    }

    fn phis(&mut self, block: Block) {
        for (def, srcs) in self.phis_of(block) {
            let kind = self.kinds[def];
            let mut operands = Vec::new();
            for (pred, src) in srcs {
                operands.extend([self.at_end(pred, src, kind), self.ends[pred]]);
            }
            let ty = self.type_id(self.ty(def));
            self.emit_as(self.ids[def], spirv::Op::Phi, ty, refs(&operands));
        }
    }

    /// The phis of a block with their sources from reachable blocks.
    fn phis_of(&self, block: Block) -> Vec<(Def, Vec<(Block, Def)>)> {
        let function = self.function;
        let phi = |&instr: &Instr| match &function.instrs[instr] {
            InstrData::Phi { def, srcs } => {
                Some((*def, srcs.iter().copied().filter(|&(pred, _)| self.reached(pred)).collect()))
            }
            _ => None,
        };
        function.blocks[block].instrs.iter().map_while(phi).collect()
    }

    /// Returns true if a value has more components than a vector has.
    fn is_too_wide(&self, data: &InstrData) -> bool {
        data.def().is_some_and(|def| self.function.defs[def].num_components > 4)
    }

    fn width_of(&self, data: &InstrData) -> String {
        let count = data.def().map_or(0, |def| self.function.defs[def].num_components);
        format!("a vector of {count} components")
    }

    /// A block after its phis: its instructions, and its terminator.
    fn rest(&mut self, block: Block, following: &'a [CfNode], exits: Exits) -> Result<(), NoForm> {
        let function = self.function;
        let mut kills = kills(function, block);
        let mut jump = None;
        for &instr in &function.blocks[block].instrs {
            let emitted = match &function.instrs[instr] {
                InstrData::Phi { .. } | InstrData::Const { .. } => Ok(()),
                data if self.is_too_wide(data) => no_form(self.width_of(data)),
                InstrData::Undef { def } => {
                    let ty = self.type_id(self.ty(*def));
                    self.emit_as(self.ids[*def], spirv::Op::Undef, ty, Vec::new());
                    Ok(())
                }
                InstrData::Alu(alu) => self.alu(alu),
                InstrData::Intrinsic(intrinsic) if is_conditional_kill(intrinsic.op) => {
                    kills -= 1;
                    let next = if kills == 0 { self.ends[block] } else { self.b.id() };
                    self.kill_if(intrinsic, next);
                    Ok(())
                }
                InstrData::Intrinsic(intrinsic) => self.intrinsic(intrinsic),
                InstrData::Tex(tex) => self.texture(tex),
                InstrData::Jump(kind) => {
                    jump = Some(*kind);
                    Ok(())
                }
            };
            self.emitted(instr, emitted)?;
        }
        for ((def, kind), id) in self.phi_casts.remove(&block).unwrap_or_default() {
            let ty = self.type_id(Ty { kind, ..self.ty(def) });
            self.emit_as(id, spirv::Op::Bitcast, ty, refs(&[self.ids[def]]));
            self.phi_casts.entry(block).or_default().insert((def, kind), id);
        }
        let target = match jump {
            Some(JumpKind::Break) => exits.after_loop,
            Some(JumpKind::Continue) => exits.again,
            // The entry point returns: the lane ends.
            Some(JumpKind::Return | JumpKind::Halt) => None,
            None => match following {
                [CfNode::If(node), after @ ..] => {
                    let condition = self.read(node.condition, Kind::Bool);
                    let after = self.begins[first_block(after)];
                    let control = Operand::SelectionControl(spirv::SelectionControl::NONE);
                    self.act(spirv::Op::SelectionMerge, vec![Operand::IdRef(after), control]);
                    let arms = [self.begins[first_block(&node.then)], self.begins[first_block(&node.otherwise)]];
                    self.end(spirv::Op::BranchConditional, refs(&[condition, arms[0], arms[1]]));
                    return Ok(());
                }
                [CfNode::Loop(node), ..] => Some(self.begins[first_block(&node.body)]),
                _ => exits.next,
            },
        };
        match target {
            Some(target) => self.end(spirv::Op::Branch, refs(&[target])),
            None => self.end(spirv::Op::Return, Vec::new()),
        }
        Ok(())
    }
}

/// The number of instructions of a block that may end a lane.
fn kills(function: &Function, block: Block) -> usize {
    let is_kill = |&&instr: &&Instr| match &function.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => is_conditional_kill(intrinsic.op),
        _ => false,
    };
    function.blocks[block].instrs.iter().filter(is_kill).count()
}

/// The block with which nodes begin.
fn first_block(nodes: &[CfNode]) -> Block {
    match nodes.first() {
        Some(&CfNode::Block(block)) => block,
        _ => unreachable!("a list of nodes begins with a block"),
    }
}
