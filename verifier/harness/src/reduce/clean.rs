//! Cleanup of every candidate: dead code elimination and renumbering.

use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::{Block, CfNode, Def, Function, If, Instr, InstrData, Loop, Shader};

use super::edit::{Edit, for_each_condition, for_each_condition_of, has_effect};

/// Removes the instructions whose values reach no effect, no branch and no end of the program. Values that only feed
/// each other around a loop are removed too.
pub(super) fn remove_dead_code(edit: &mut Edit) {
    let function = edit.function();
    let mut live: SecondaryMap<Instr, bool> = SecondaryMap::new();
    let mut work = Vec::new();
    let mut need = |instr: Instr, work: &mut Vec<Instr>| {
        if !std::mem::replace(&mut live[instr], true) {
            work.push(instr);
        }
    };
    for (_, instr) in function.instrs_in_order() {
        if has_effect(&function.instrs[instr]) {
            need(instr, &mut work);
        }
    }
    for_each_condition_of(&function.body, &mut |def| need(function.defs[def].instr, &mut work));
    while let Some(instr) = work.pop() {
        function.instrs[instr].for_each_src(|def| need(function.defs[def].instr, &mut work));
    }
    let dead: Vec<Instr> = function.instrs_in_order().map(|(_, i)| i).filter(|&i| !live[i]).collect();
    for instr in dead {
        edit.remove(instr);
    }
}

/// Returns the program without the entities that are not in its tree, numbered in source order, as the text reader
/// numbers them.
pub(super) fn compact(shader: &Shader) -> Shader {
    let old = &shader.entry;
    let mut new = Function::new(old.name.clone());
    new.variables.clone_from(&old.variables);
    let mut blocks: SecondaryMap<Block, Block> = SecondaryMap::with_default(Block::from_u32(0));
    let mut defs: SecondaryMap<Def, Def> = SecondaryMap::with_default(Def::from_u32(u32::MAX - 1));
    for block in old.blocks_in_order() {
        blocks[block] = new.blocks.push(old.blocks[block].clone());
        for &instr in &old.blocks[block].instrs {
            if let Some(def) = old.instrs[instr].def() {
                let mut data = old.defs[def].clone();
                data.index = new.defs.len() as u32;
                defs[def] = new.defs.push(data);
            }
        }
    }
    for block in old.blocks_in_order() {
        let instrs = old.blocks[block].instrs.iter().map(|&instr| {
            let mut data = old.instrs[instr].clone();
            data.for_each_src_mut(|src| *src = defs[*src]);
            data.def_mut().into_iter().for_each(|def| *def = defs[*def]);
            if let InstrData::Phi { srcs, .. } = &mut data {
                srcs.iter_mut().for_each(|(pred, _)| *pred = blocks[*pred]);
                // Predecessors are printed in source order.
                srcs.sort_by_key(|&(pred, _)| pred);
            }
            let def = data.def();
            let instr = new.instrs.push(data);
            if let Some(def) = def {
                new.defs[def].instr = instr;
            }
            instr
        });
        let instrs = instrs.collect();
        new.blocks[blocks[block]].instrs = instrs;
    }
    new.body = nodes(&old.body, &blocks);
    for_each_condition(&mut new.body, &mut |condition| *condition = defs[*condition]);
    Shader { stage: shader.stage, info: shader.info.clone(), variables: shader.variables.clone(), entry: new }
}

fn nodes(old: &[CfNode], blocks: &SecondaryMap<Block, Block>) -> Vec<CfNode> {
    let map = |list: &[CfNode]| nodes(list, blocks);
    old.iter()
        .map(|node| match node {
            CfNode::Block(block) => CfNode::Block(blocks[*block]),
            CfNode::If(node) => CfNode::If(Box::new(If {
                condition: node.condition,
                control: node.control,
                then: map(&node.then),
                otherwise: map(&node.otherwise),
            })),
            CfNode::Loop(node) => CfNode::Loop(Box::new(Loop {
                control: node.control,
                body: map(&node.body),
                continuing: node.continuing.as_deref().map(map),
                divergent: node.divergent,
            })),
        })
        .collect()
}
