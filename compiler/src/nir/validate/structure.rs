//! The rules for the tree and for the order of instructions.

use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashSet;

use super::{BrokenRule, Errors};
use crate::nir::function::{Block, CfNode, Function, InstrData, JumpKind};

/// The context of a list of nodes.
#[derive(Clone, Copy)]
struct ListContext {
    in_loop: bool,
    in_continuing: bool,
}

pub(super) fn check(function: &Function, errors: &mut Errors<'_>) {
    let mut blocks = SecondaryMap::new();
    list(function, &function.body, ListContext { in_loop: false, in_continuing: false }, &mut blocks, errors);
    if !errors.found.is_empty() {
        return;
    }
    instructions(function, errors);
}

fn list(
    function: &Function,
    nodes: &[CfNode],
    around: ListContext,
    seen: &mut SecondaryMap<Block, bool>,
    errors: &mut Errors<'_>,
) {
    let is_block = |node: &CfNode| matches!(node, CfNode::Block(_));
    let alternates = nodes.iter().enumerate().all(|(index, node)| is_block(node) == index.is_multiple_of(2));
    if !alternates || nodes.len().is_multiple_of(2) {
        match nodes.iter().find_map(|node| if let CfNode::Block(block) = node { Some(*block) } else { None }) {
            Some(block) => errors.at_block(block, BrokenRule::ListShape),
            None => errors.at_function(BrokenRule::ListShape),
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        match node {
            CfNode::Block(block) => {
                if !function.blocks.is_valid(*block) || std::mem::replace(&mut seen[*block], true) {
                    errors.at_function(BrokenRule::BlockPlace(*block));
                    continue;
                }
                block_jumps(function, *block, index + 1 == nodes.len(), around, errors);
            }
            CfNode::If(node) => {
                list(function, &node.then, around, seen, errors);
                list(function, &node.otherwise, around, seen, errors);
            }
            CfNode::Loop(node) => {
                list(function, &node.body, ListContext { in_loop: true, in_continuing: false }, seen, errors);
                if let Some(continuing) = &node.continuing {
                    list(function, continuing, ListContext { in_loop: true, in_continuing: true }, seen, errors);
                }
            }
        }
    }
}

fn block_jumps(function: &Function, block: Block, last: bool, around: ListContext, errors: &mut Errors<'_>) {
    let instrs = &function.blocks[block].instrs;
    for (index, &instr) in instrs.iter().enumerate() {
        let Some(InstrData::Jump(kind)) = function.instrs.get(instr) else { continue };
        let is_loop_jump = matches!(kind, JumpKind::Break | JumpKind::Continue);
        let problem = if index + 1 != instrs.len() || !last {
            BrokenRule::AfterJump
        } else if is_loop_jump && !around.in_loop {
            BrokenRule::JumpOutsideLoop
        } else if *kind != JumpKind::Break && around.in_continuing {
            BrokenRule::JumpInContinuing
        } else {
            continue;
        };
        errors.at_instr(block, instr, problem);
    }
}

/// Each instruction occurs once, phis come first, and each value has one definition.
fn instructions(function: &Function, errors: &mut Errors<'_>) {
    let mut seen = SecondaryMap::new();
    let mut numbers = FxHashSet::default();
    for block in function.blocks_in_order() {
        let mut phis_over = false;
        for &instr in &function.blocks[block].instrs {
            if !function.instrs.is_valid(instr) || std::mem::replace(&mut seen[instr], true) {
                errors.at_block(block, BrokenRule::InstrPlace(instr));
                continue;
            }
            let data = &function.instrs[instr];
            match data {
                InstrData::Phi { .. } if phis_over => errors.at_instr(block, instr, BrokenRule::LatePhi),
                InstrData::Phi { .. } => {}
                _ => phis_over = true,
            }
            let Some(def) = data.def() else { continue };
            match function.defs.get(def) {
                None => errors.at_instr(block, instr, BrokenRule::NoSuchValue(def.as_u32())),
                Some(value) if value.instr != instr => {
                    errors.at_instr(block, instr, BrokenRule::DefinedElsewhere(value.index));
                }
                Some(value) if !numbers.insert(value.index) => {
                    errors.at_instr(block, instr, BrokenRule::SameIndex(value.index));
                }
                Some(value) if !matches!(value.bit_size, 1 | 8 | 16 | 32 | 64) => {
                    errors.at_instr(block, instr, BrokenRule::BadWidth(value.bit_size));
                }
                Some(value) if !matches!(value.num_components, 1..=5 | 8 | 16) => {
                    errors.at_instr(block, instr, BrokenRule::BadComponents(value.num_components));
                }
                Some(_) => {}
            }
        }
    }
}
