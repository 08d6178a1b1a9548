//! Repairs a program after a change of control flow.
//!
//! Each phi gets one source for each current predecessor of its block. A use that is no longer dominated by its
//! definition reads 0 instead. A step that preserves the values of a phi renames predecessors, or replaces the phi,
//! before the repair.

use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::{Block, Cfg, Def, Dominance, Function, Instr, InstrData};
use smallvec::SmallVec;

use super::edit::{Edit, for_each_condition};
use ir3_compiler::nir::CfNode;

/// Repairs phis and uses.
pub(super) fn repair(edit: &mut Edit) {
    edit.refresh();
    let cfg = Cfg::new(edit.function());
    phis(edit, &cfg);
    uses(edit, &cfg);
}

fn phis(edit: &mut Edit, cfg: &Cfg) {
    let phis: Vec<(Block, Instr)> = (edit.function().instrs_in_order())
        .filter(|&(_, i)| matches!(edit.function().instrs[i], InstrData::Phi { .. }))
        .collect();
    for (block, instr) in phis {
        let InstrData::Phi { def, srcs } = &edit.function().instrs[instr] else { continue };
        let (def, old) = (*def, srcs.clone());
        let preds = cfg.preds[block].clone();
        if preds.is_empty() {
            let zero = edit.splat(edit.shape(def), 0);
            edit.replace_uses(def, zero);
            edit.remove(instr);
            continue;
        }
        let mut new: SmallVec<[(Block, Def); 2]> = SmallVec::new();
        for pred in preds {
            let value = old.iter().find(|(from, _)| *from == pred).map(|&(_, value)| value);
            let value = value.unwrap_or_else(|| edit.splat(edit.shape(def), 0));
            new.push((pred, value));
        }
        if let InstrData::Phi { srcs, .. } = &mut edit.function_mut().instrs[instr] {
            *srcs = new;
        }
    }
}

/// The position of each instruction, and the dominator tree.
struct Places {
    at: SecondaryMap<Instr, Option<(Block, usize)>>,
    dominance: Dominance,
}

impl Places {
    fn new(function: &Function, cfg: &Cfg) -> Self {
        let mut at = SecondaryMap::new();
        for block in function.blocks_in_order() {
            for (position, &instr) in function.blocks[block].instrs.iter().enumerate() {
                at[instr] = Some((block, position));
            }
        }
        Self { at, dominance: Dominance::new(function, cfg) }
    }

    fn available(&self, function: &Function, def: Def, block: Block, position: usize) -> bool {
        match self.at[function.defs[def].instr] {
            Some((home, at)) if home == block => at < position,
            Some((home, _)) => self.dominance.dominates(home, block),
            None => false,
        }
    }
}

fn uses(edit: &mut Edit, cfg: &Cfg) {
    let places = Places::new(edit.function(), cfg);
    let mut bad: Vec<(Instr, usize)> = Vec::new();
    let function = edit.function();
    for (block, instr) in function.instrs_in_order() {
        let data = &function.instrs[instr];
        let position = places.at[instr].map_or(0, |(_, position)| position);
        match data {
            InstrData::Phi { srcs, .. } => {
                for (index, &(pred, src)) in srcs.iter().enumerate() {
                    if !places.available(function, src, pred, usize::MAX) {
                        bad.push((instr, index));
                    }
                }
            }
            _ => {
                let mut index = 0;
                data.for_each_src(|src| {
                    if !places.available(function, src, block, position) {
                        bad.push((instr, index));
                    }
                    index += 1;
                });
            }
        }
    }
    let mut conditions = Vec::new();
    bad_conditions(function, &places, &function.body, &mut conditions);
    for (instr, index) in bad {
        let mut sources = SmallVec::<[Def; 4]>::new();
        edit.function().instrs[instr].for_each_src(|src| sources.push(src));
        let zero = edit.splat(edit.shape(sources[index]), 0);
        let mut at = 0;
        edit.function_mut().instrs[instr].for_each_src_mut(|src| {
            if at == index {
                *src = zero;
            }
            at += 1;
        });
    }
    for def in conditions {
        let zero = edit.splat(edit.shape(def), 0);
        for_each_condition(&mut edit.function_mut().body, &mut |condition| {
            if *condition == def {
                *condition = zero;
            }
        });
    }
}

/// The conditions that do not dominate their if.
fn bad_conditions(function: &Function, places: &Places, nodes: &[CfNode], bad: &mut Vec<Def>) {
    let mut before = None;
    for node in nodes {
        match node {
            CfNode::Block(block) => before = Some(*block),
            CfNode::If(node) => {
                if before.is_some_and(|block| !places.available(function, node.condition, block, usize::MAX)) {
                    bad.push(node.condition);
                }
                bad_conditions(function, places, &node.then, bad);
                bad_conditions(function, places, &node.otherwise, bad);
            }
            CfNode::Loop(node) => {
                bad_conditions(function, places, &node.body, bad);
                bad_conditions(function, places, node.continuing.as_deref().unwrap_or_default(), bad);
            }
        }
    }
}
