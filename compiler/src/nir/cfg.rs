//! The control-flow edges between blocks, derived from the tree and the jumps.

use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use super::function::{Block, CfNode, Function, InstrData, JumpKind};

/// Predecessors and successors of every block.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    /// The predecessors, in source order.
    pub preds: SecondaryMap<Block, SmallVec<[Block; 4]>>,
    /// The successors: for an if, then before else. A block without successors exits the function (`exits`).
    pub succs: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    /// The blocks that exit the function, in source order.
    pub exits: Vec<Block>,
}

/// The targets of break and continue.
#[derive(Clone, Copy)]
struct Targets {
    after: Block,
    again: Block,
}

impl Cfg {
    /// Derives the edges. Parts of a tree that break the rules (the validator reports them) get no edges.
    pub fn new(function: &Function) -> Cfg {
        let count = function.blocks.len();
        let mut cfg = Cfg { preds: map_of(count), succs: map_of(count), exits: Vec::new() };
        cfg.list(function, &function.body, None, None);
        for block in function.blocks_in_order() {
            for &succ in &cfg.succs[block].clone() {
                if cfg.preds[succ].last() != Some(&block) {
                    cfg.preds[succ].push(block);
                }
            }
        }
        cfg
    }

    fn list(&mut self, function: &Function, list: &[CfNode], next: Option<Block>, targets: Option<Targets>) {
        for (position, node) in list.iter().enumerate() {
            let after = match list.get(position + 1) {
                Some(CfNode::Block(block)) => Some(*block),
                _ => next,
            };
            match node {
                CfNode::Block(block) => {
                    let jump = function.blocks[*block].instrs.last().and_then(|&i| match function.instrs[i] {
                        InstrData::Jump(kind) => Some(kind),
                        _ => None,
                    });
                    self.block(*block, jump, list.get(position + 1), next, targets);
                }
                CfNode::If(node) => {
                    self.list(function, &node.then, after, targets);
                    self.list(function, &node.otherwise, after, targets);
                }
                CfNode::Loop(node) => {
                    let Some(header) = first_block(&node.body) else { continue };
                    let Some(after) = after else { continue };
                    let again = node.continuing.as_deref().and_then(first_block).unwrap_or(header);
                    let targets = Some(Targets { after, again });
                    self.list(function, &node.body, Some(again), targets);
                    if let Some(continuing) = &node.continuing {
                        self.list(function, continuing, Some(header), targets);
                    }
                }
            }
        }
    }

    fn block(
        &mut self,
        block: Block,
        jump: Option<JumpKind>,
        node: Option<&CfNode>,
        next: Option<Block>,
        targets: Option<Targets>,
    ) {
        match (jump, targets) {
            (Some(JumpKind::Break), Some(targets)) => return self.succs[block].push(targets.after),
            (Some(JumpKind::Continue), Some(targets)) => return self.succs[block].push(targets.again),
            (Some(_), _) => return self.exits.push(block),
            (None, _) => {}
        }
        match node {
            Some(CfNode::If(node)) => {
                self.succs[block].extend(first_block(&node.then));
                self.succs[block].extend(first_block(&node.otherwise));
            }
            Some(CfNode::Loop(node)) => self.succs[block].extend(first_block(&node.body)),
            Some(CfNode::Block(block_after)) => self.succs[block].push(*block_after),
            None => match next {
                Some(next) => self.succs[block].push(next),
                None => self.exits.push(block),
            },
        }
    }
}

fn first_block(list: &[CfNode]) -> Option<Block> {
    match list.first() {
        Some(CfNode::Block(block)) => Some(*block),
        _ => None,
    }
}
