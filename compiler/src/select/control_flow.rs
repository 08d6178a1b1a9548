//! Selection of control flow: blocks, branches and phis.
//!
//! Diverged lanes reconverge because the wave always runs the block that is first in the layout among those where lanes
//! wait. So the block order makes structured control flow work: then, else, merge, each before the blocks that follow
//! it. A loop adds a requirement: all lanes of an iteration must reach its end before any of them starts the next. That
//! holds if the only back edge is at the last block of the loop. If it does not (several back edges, or one that is not
//! last), a *continue block* is placed last in the loop, and all back edges go through it.
//!
//! nir blocks and ir3 blocks correspond one to one, except for continue blocks and the block of `end`. Unreachable
//! blocks and their contents are left out.
//!
//! Phis get their sources after all blocks have been created, in the order of the ir3 block's predecessors.

use super::SelectError;
use super::context::{Context, Word, words_per_component};
use super::{alu, intrinsics, memory, outputs, texture};
use crate::graph;
use crate::ir3::{Attrs, Block, Opcode, RegClass, Src, Value};
use crate::maps::map_of;
use crate::nir::{self, CfNode, Cfg, InstrData, IntrinsicOp, JumpKind};
use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{EntitySet, SecondaryMap};

/// A phi without sources yet.
struct PendingPhi {
    block: nir::Block,
    instr: nir::Instr,
    /// One ir3 phi for each register of the nir value.
    values: Vec<Value>,
}

struct ControlFlowSelection<'c, 'a> {
    ctx: &'c mut Context<'a>,
    cfg: Cfg,
    reachable: EntitySet<nir::Block>,
    /// The ir3 block of each nir block that has been reached, or is the target of a jump.
    blocks: SecondaryMap<nir::Block, Option<Block>>,
    /// The continue block of the loop with that header.
    continue_blocks: SecondaryMap<nir::Block, Option<Block>>,
    phis: Vec<PendingPhi>,
    /// The nir blocks that have been placed.
    placed: EntitySet<nir::Block>,
}

/// Translates the whole function.
pub(super) fn emit(ctx: &mut Context<'_>) -> Result<(), SelectError> {
    let function = ctx.function;
    let cfg = Cfg::new(function);
    let Some(first) = function.blocks_in_order().next() else {
        return Err(ctx.unsupported("the function has no block"));
    };
    let reachable =
        graph::reachable([first], |block, search| cfg.succs[block].iter().for_each(|&next| search.add(next)));
    let mut walk = ControlFlowSelection {
        ctx,
        cfg,
        reachable,
        blocks: map_of(function.blocks.len()),
        continue_blocks: SecondaryMap::new(),
        phis: Vec::new(),
        placed: EntitySet::new(),
    };
    walk.blocks[first] = Some(walk.ctx.block);
    walk.list(&function.body)?;
    walk.finish_phis()?;
    outputs::end(walk.ctx);
    walk.ctx.instr = None;
    Ok(())
}

impl<'a> ControlFlowSelection<'_, 'a> {
    fn list(&mut self, list: &'a [CfNode]) -> Result<(), SelectError> {
        for (position, node) in list.iter().enumerate() {
            match node {
                CfNode::Block(block) => self.block(*block, list.get(position + 1))?,
                CfNode::If(node) => {
                    self.ctx.depth += 1;
                    self.list(&node.then)?;
                    self.list(&node.otherwise)?;
                    self.ctx.depth -= 1;
                }
                CfNode::Loop(node) => self.loop_node(node)?,
            }
        }
        Ok(())
    }

    fn loop_node(&mut self, node: &'a nir::Loop) -> Result<(), SelectError> {
        let Some(CfNode::Block(header)) = node.body.first() else {
            return Err(self.ctx.unsupported("a loop without a first block"));
        };
        let header = *header;
        if !self.reachable.contains(header) {
            return Ok(());
        }
        let lists = [Some(&node.body), node.continuing.as_ref()];
        let last = lists.into_iter().flatten().rev().flat_map(|list| list.last()).next();
        let last = match last {
            Some(CfNode::Block(block)) => *block,
            _ => nir::Block::reserved_value(),
        };
        let (_, back) = self.header_preds(header, node);
        let needs_continue_block = match back.as_slice() {
            [] => false,
            [only] => *only != last,
            _ => true,
        };
        if needs_continue_block {
            self.continue_blocks[header] = Some(self.ctx.new_block());
        }
        self.ctx.depth += 1;
        self.list(&node.body)?;
        if let Some(continuing) = &node.continuing {
            self.list(continuing)?;
        }
        if let Some(block) = self.continue_blocks[header] {
            self.ctx.place_block(block);
            let target = self.block_of(header);
            self.jump(target);
        }
        self.ctx.depth -= 1;
        Ok(())
    }

    /// The reachable predecessors of a loop header: from before the loop, and from inside.
    fn header_preds(&self, header: nir::Block, node: &nir::Loop) -> (Vec<nir::Block>, Vec<nir::Block>) {
        let mut inside = EntitySet::new();
        collect_blocks(&node.body, &mut inside);
        if let Some(continuing) = &node.continuing {
            collect_blocks(continuing, &mut inside);
        }
        let preds = self.cfg.preds[header].iter().copied().filter(|&pred| self.reachable.contains(pred));
        preds.partition(|&pred| !inside.contains(pred))
    }

    /// The ir3 block of a nir block; it is placed later, in source order.
    fn block_of(&mut self, block: nir::Block) -> Block {
        match self.blocks[block] {
            Some(found) => found,
            None => {
                let new = self.ctx.new_block();
                self.blocks[block] = Some(new);
                new
            }
        }
    }

    fn block(&mut self, block: nir::Block, next: Option<&'a CfNode>) -> Result<(), SelectError> {
        if !self.reachable.contains(block) {
            return Ok(());
        }
        let target = self.block_of(block);
        // The entry block exists from the start.
        if !self.placed.insert(block) || self.ctx.program.layout[0] == target {
            self.ctx.go_to(target);
        } else {
            self.ctx.place_block(target);
        }
        let function = self.ctx.function;
        let count = function.blocks[block].instrs.len();
        self.ctx.program.blocks[target].instrs.reserve(count + count / 2);
        for &instr in &function.blocks[block].instrs {
            self.ctx.instr = Some(instr);
            match &function.instrs[instr] {
                InstrData::Alu(op) => alu::emit(self.ctx, op)?,
                InstrData::Const { def, values } => {
                    let wide = self.ctx.bits(*def) == 64;
                    for (index, &value) in values.iter().enumerate() {
                        if wide {
                            self.ctx.set_word(*def, 2 * index, Word::Immediate(value as u32));
                            self.ctx.set_word(*def, 2 * index + 1, Word::Immediate((value >> 32) as u32));
                        } else {
                            self.ctx.set_word(*def, index, Word::Immediate(value as u32));
                        }
                    }
                }
                InstrData::Undef { .. } => {}
                InstrData::Phi { def, .. } => self.phi(block, instr, *def),
                InstrData::Intrinsic(intrinsic) => {
                    let first = self.ctx.program.instrs.len();
                    intrinsics::emit(self.ctx, intrinsic)?;
                    if memory::is_volatile(intrinsic) {
                        memory::mark_volatile(self.ctx, first);
                    }
                }
                InstrData::Tex(tex) => texture::emit(self.ctx, tex)?,
                InstrData::Jump(kind) => {
                    if matches!(kind, JumpKind::Return | JumpKind::Halt) {
                        outputs::exit(self.ctx);
                        return Ok(());
                    }
                }
            }
        }
        self.ctx.instr = None;
        let succs = self.cfg.succs[block].clone();
        match (next, succs.as_slice()) {
            (Some(CfNode::If(node)), &[then, otherwise]) => {
                self.branch(block, node, then, otherwise);
                Ok(())
            }
            (_, &[succ]) => {
                let target = self.edge_target(succ);
                self.jump(target);
                Ok(())
            }
            (_, &[]) => {
                outputs::exit(self.ctx);
                Ok(())
            }
            _ => Err(self.ctx.unsupported("control flow that is not structured")),
        }
    }

    /// The target of an edge from the current block to a nir block: the continue block for a back edge.
    fn edge_target(&mut self, to: nir::Block) -> Block {
        if let Some(block) = self.continue_blocks[to] {
            // The edge into the loop is the one that exists before the header has been placed.
            if self.placed.contains(to) {
                return block;
            }
        }
        self.block_of(to)
    }

    fn jump(&mut self, target: Block) {
        self.ctx.builder().effect(Opcode::Jump, &[]);
        let from = self.ctx.block;
        self.ctx.program.add_edge(from, 0, target);
    }

    /// Returns true if a lane is elected in this block, and no lane ends between that and the end of the block.
    fn is_elected_here(&self, block: nir::Block, condition: nir::Def) -> bool {
        let function = self.ctx.function;
        let elect = function.defs[condition].instr;
        let instrs = &function.blocks[block].instrs;
        let kills = |instr: nir::Instr| {
            matches!(
                &function.instrs[instr],
                InstrData::Intrinsic(i) if matches!(i.op, IntrinsicOp::Terminate | IntrinsicOp::TerminateIf)
            )
        };
        instrs.iter().position(|&i| i == elect).is_some_and(|at| !instrs[at..].iter().any(|&i| kills(i)))
    }

    fn branch(&mut self, block: nir::Block, node: &nir::If, then: nir::Block, otherwise: nir::Block) {
        let then = self.block_of(then);
        let otherwise = self.block_of(otherwise);
        let intrinsic = match self.ctx.producer(node.condition) {
            InstrData::Intrinsic(intrinsic) => Some(intrinsic.op),
            _ => None,
        };
        let elected = matches!(intrinsic, Some(IntrinsicOp::ElectAnyIr3 | IntrinsicOp::Elect))
            && self.ctx.target.generation.number() >= 6
            && self.is_elected_here(block, node.condition);
        let mut divergent = self.ctx.function.defs[node.condition].divergent.unwrap_or(true);
        match intrinsic {
            Some(IntrinsicOp::PreambleStartIr3) => {
                self.ctx.builder().effect(Opcode::Shps, &[]);
                divergent = false;
            }
            _ if elected => {
                self.ctx.builder().effect(Opcode::Getone, &[]);
                divergent = true;
            }
            _ => {
                let predicate = self.ctx.predicate(node.condition);
                self.ctx.builder().effect(Opcode::Br, &[predicate]);
            }
        }
        let from = self.ctx.block;
        self.ctx.program.blocks[from].divergent = Some(divergent);
        self.ctx.program.add_edge(from, 0, then);
        self.ctx.program.add_edge(from, 1, otherwise);
    }

    fn phi(&mut self, block: nir::Block, instr: nir::Instr, def: nir::Def) {
        let class = self.ctx.class(self.ctx.bits(def));
        let count = usize::from(self.ctx.components(def)) * words_per_component(self.ctx.bits(def));
        let values: Vec<Value> = (0..count).map(|_| self.ctx.alu(Opcode::Phi, class, &[])).collect();
        self.ctx.define(def, &values);
        self.phis.push(PendingPhi { block, instr, values });
    }

    fn finish_phis(&mut self) -> Result<(), SelectError> {
        for pending in std::mem::take(&mut self.phis) {
            let InstrData::Phi { def, srcs } = &self.ctx.function.instrs[pending.instr] else { continue };
            self.ctx.instr = Some(pending.instr);
            let class = self.ctx.class(self.ctx.bits(*def));
            let (Some(block), through) = (self.blocks[pending.block], self.continue_blocks[pending.block]) else {
                continue;
            };
            for (index, &value) in pending.values.iter().enumerate() {
                let preds = self.ctx.program.blocks[block].predecessors.clone();
                for pred in preds {
                    let src = if Some(pred) == through {
                        self.continue_phi(pred, srcs, index, class)?
                    } else {
                        self.phi_src(pred, srcs, index, class)?
                    };
                    let instr = self.ctx.program.values[value].instr;
                    self.ctx.program.instrs[instr].srcs.push(src);
                }
            }
        }
        Ok(())
    }

    /// The source of a phi for one predecessor.
    fn phi_src(
        &mut self,
        pred: Block,
        srcs: &[(nir::Block, nir::Def)],
        index: usize,
        class: RegClass,
    ) -> Result<Src, SelectError> {
        let found = srcs.iter().find(|(block, _)| self.blocks[*block] == Some(pred));
        let Some(&(_, def)) = found else {
            return Err(self.ctx.unsupported("a predecessor has no value in the phi"));
        };
        let word = match self.ctx.word(def, index) {
            // The bits of the register beyond a narrow value are 0.
            Word::Undef if self.ctx.bits(def) < 16 => Word::Immediate(0),
            word => word,
        };
        Ok(self.ctx.word_at_end(pred, word, class))
    }

    /// The source of a loop header's phi for the continue block: a phi over the back edges, if they differ.
    fn continue_phi(
        &mut self,
        block: Block,
        srcs: &[(nir::Block, nir::Def)],
        index: usize,
        class: RegClass,
    ) -> Result<Src, SelectError> {
        let preds = self.ctx.program.blocks[block].predecessors.clone();
        let mut merged = Vec::with_capacity(preds.len());
        for &pred in &preds {
            merged.push(self.phi_src(pred, srcs, index, class)?);
        }
        if let [only] = merged.as_slice() {
            return Ok(*only);
        }
        self.ctx.go_to(block);
        let value = self.ctx.builder().define(Opcode::Phi, class, 1, &merged, Attrs::None);
        let instrs = &mut self.ctx.program.blocks[block].instrs;
        instrs.rotate_right(1);
        Ok(self.ctx.src(value))
    }
}

fn collect_blocks(list: &[CfNode], into: &mut EntitySet<nir::Block>) {
    for node in list {
        match node {
            CfNode::Block(block) => {
                into.insert(*block);
            }
            CfNode::If(node) => {
                collect_blocks(&node.then, into);
                collect_blocks(&node.otherwise, into);
            }
            CfNode::Loop(node) => {
                collect_blocks(&node.body, into);
                if let Some(continuing) = &node.continuing {
                    collect_blocks(continuing, into);
                }
            }
        }
    }
}
