//! Steps that remove ifs and loops, or turn them into straight-line code.
//!
//! Every step replaces a node of the tree by a list of nodes (an arm, a body, nothing), and merges the blocks on both
//! sides of each seam. Phis at the seams get the value of the remaining path. [`repair`](super::super::repair) fixes
//! the rest.

use ir3_compiler::nir::{Block, CfNode, Def, Function, Instr, InstrData, JumpKind};

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView, ValueShape, for_each_condition};
use crate::reduce::repair::repair;

/// A node: an if is identified by the first block of its then side, a loop by the first block of its body.
type NodeKey = Block;

/// A replacement of a node.
#[derive(Clone, Copy)]
enum NodeReplacement {
    /// Drops the construct.
    Drop,
    /// The then side of an if.
    Then,
    /// The else side of an if.
    Else,
    /// The body of a loop, run once. Phis after it get the value that they had at this break, by its number.
    Once(usize),
    /// The if with an empty then side.
    EmptyThen,
    /// The if with an empty else side.
    EmptyElse,
}

struct Restructure {
    key: NodeKey,
    change: NodeReplacement,
}

/// The context of a node: the blocks around it, and the node itself.
struct NodeSite<'a> {
    before: Block,
    node: &'a CfNode,
    after: Block,
}

impl ReductionStep for Restructure {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(site) = find(&edit.function().body, self.key) else { return false };
        let (before, after) = (site.before, site.after);
        // First the phis at the seams and the jumps, while the tree is intact; then the tree.
        match (self.change, site.node) {
            (NodeReplacement::Drop, _) => resolve_phis(edit, after, None),
            (NodeReplacement::Then | NodeReplacement::Else, CfNode::If(node)) => {
                let arm = if matches!(self.change, NodeReplacement::Then) { &node.then } else { &node.otherwise };
                if let (Some(first), Some(last)) = (first_block(arm), last_block(arm)) {
                    resolve_phis(edit, first, Some(before));
                    resolve_phis(edit, after, Some(last));
                }
            }
            (NodeReplacement::EmptyThen | NodeReplacement::EmptyElse, CfNode::If(node)) => {
                let then = matches!(self.change, NodeReplacement::EmptyThen);
                let arm = if then { node.then.clone() } else { node.otherwise.clone() };
                return empty(edit, self.key, then, &arm, after);
            }
            (NodeReplacement::Once(exit), CfNode::Loop(node)) => {
                let mut jumps = Vec::new();
                own_jumps(edit.function(), &node.body, &mut jumps);
                let continuing = node.continuing.as_deref().unwrap_or_default();
                own_jumps(edit.function(), continuing, &mut jumps);
                let breaks: Vec<Block> =
                    jumps.iter().filter(|jump| jump.2 == JumpKind::Break).map(|jump| jump.0).collect();
                if exit > 0 && exit >= breaks.len() {
                    return false;
                }
                let seam = first_block(continuing).map(|first| (first, last_block(&node.body)));
                resolve_phis(edit, after, breaks.get(exit).copied());
                resolve_phis(edit, self.key, Some(before));
                if let Some((first, last)) = seam {
                    resolve_phis(edit, first, last);
                }
                for (_, instr, _) in jumps {
                    edit.remove(instr);
                }
            }
            _ => return false,
        }
        let change = self.change;
        let mut nodes = std::mem::take(&mut edit.function_mut().body);
        with_list(&mut nodes, self.key, &mut |list, at| {
            let function = edit.function_mut();
            let node = std::mem::replace(&mut list[at], CfNode::Block(before));
            let inner = match (change, node) {
                (NodeReplacement::Then, CfNode::If(node)) => node.then,
                (NodeReplacement::Else, CfNode::If(node)) => node.otherwise,
                (NodeReplacement::Once(_), CfNode::Loop(node)) => {
                    let mut body = node.body;
                    join(function, &mut body, node.continuing.unwrap_or_default());
                    body
                }
                _ => Vec::new(),
            };
            splice(function, list, at, inner);
        });
        edit.function_mut().body = nodes;
        repair(edit);
        true
    }
}

/// Replaces the phis of a block by their source for `pred`, or by their first source.
fn resolve_phis(edit: &mut Edit, block: Block, pred: Option<Block>) {
    for instr in edit.function().blocks[block].instrs.clone() {
        let InstrData::Phi { def, srcs } = &edit.function().instrs[instr] else { break };
        let (def, srcs) = (*def, srcs.clone());
        let source = srcs.iter().find(|(from, _)| Some(*from) == pred).or(srcs.first());
        let value = source.map(|&(_, value)| value).filter(|&value| value != def);
        let value = value.unwrap_or_else(|| edit.splat(edit.shape(def), 0));
        edit.replace_uses(def, value);
        edit.remove(instr);
    }
}

/// Empties an arm of an if.
fn empty(edit: &mut Edit, key: NodeKey, then: bool, arm: &[CfNode], after: Block) -> bool {
    let (Some(first), Some(last)) = (first_block(arm), last_block(arm)) else { return false };
    if arm.len() == 1 && edit.function().blocks[first].instrs.is_empty() {
        return false;
    }
    // Keep the value from the end of the arm, if it was not computed in the arm; the repair replaces others by 0.
    rename_pred(edit.function_mut(), last, first, after);
    edit.function_mut().blocks[first].instrs.clear();
    let mut nodes = std::mem::take(&mut edit.function_mut().body);
    with_list(&mut nodes, key, &mut |list, at| {
        if let CfNode::If(node) = &mut list[at] {
            let arm = if then { &mut node.then } else { &mut node.otherwise };
            arm.truncate(1);
        }
    });
    edit.function_mut().body = nodes;
    repair(edit);
    true
}

/// Renames predecessor `from` of `block` to `to` in its phis.
fn rename_pred(function: &mut Function, from: Block, to: Block, block: Block) {
    for instr in function.blocks[block].instrs.clone() {
        if let InstrData::Phi { srcs, .. } = &mut function.instrs[instr] {
            srcs.iter_mut().filter(|(pred, _)| *pred == from).for_each(|(pred, _)| *pred = to);
        }
    }
}

/// Appends nodes to a list. The last block of the list and the first of the nodes are merged.
fn join(function: &mut Function, list: &mut Vec<CfNode>, more: Vec<CfNode>) {
    if let (Some(last), Some(first)) = (last_block(list), first_block(&more))
        && !ends_with_jump(function, last)
    {
        merge(function, last, first);
        list.extend(more.into_iter().skip(1));
    }
}

/// Replaces the node at `at` by other nodes, and merges the blocks at the seams.
fn splice(function: &mut Function, list: &mut Vec<CfNode>, at: usize, mut inner: Vec<CfNode>) {
    let (&CfNode::Block(before), &CfNode::Block(after)) = (&list[at - 1], &list[at + 1]) else { return };
    let (Some(first), Some(last)) = (first_block(&inner), last_block(&inner)) else {
        merge(function, before, after);
        list.drain(at..at + 2);
        return;
    };
    merge(function, before, first);
    let last = if inner.len() == 1 { before } else { last };
    inner.remove(0);
    if ends_with_jump(function, last) {
        // The code after it is unreachable.
        list.truncate(at);
        list.extend(inner);
    } else {
        merge(function, last, after);
        list.splice(at..at + 2, inner);
    }
}

/// Appends the instructions of `second` to `first`, which replaces it as a predecessor.
fn merge(function: &mut Function, first: Block, second: Block) {
    let moved = std::mem::take(&mut function.blocks[second].instrs);
    function.blocks[first].instrs.extend(moved);
    for data in function.instrs.values_mut() {
        if let InstrData::Phi { srcs, .. } = data {
            srcs.iter_mut().filter(|(pred, _)| *pred == second).for_each(|(pred, _)| *pred = first);
        }
    }
}

fn first_block(list: &[CfNode]) -> Option<Block> {
    match list.first() {
        Some(CfNode::Block(block)) => Some(*block),
        _ => None,
    }
}

fn last_block(list: &[CfNode]) -> Option<Block> {
    match list.last() {
        Some(CfNode::Block(block)) => Some(*block),
        _ => None,
    }
}

fn ends_with_jump(function: &Function, block: Block) -> bool {
    function.blocks[block].instrs.last().is_some_and(|&i| matches!(function.instrs[i], InstrData::Jump(_)))
}

fn key_of(node: &CfNode) -> Option<NodeKey> {
    match node {
        CfNode::Block(_) => None,
        CfNode::If(node) => first_block(&node.then),
        CfNode::Loop(node) => first_block(&node.body),
    }
}

fn find(list: &[CfNode], key: NodeKey) -> Option<NodeSite<'_>> {
    list.iter().enumerate().find_map(|(at, node)| {
        if key_of(node) == Some(key)
            && let (Some(CfNode::Block(before)), Some(CfNode::Block(after))) =
                (list.get(at.wrapping_sub(1)), list.get(at + 1))
        {
            return Some(NodeSite { before: *before, node, after: *after });
        }
        match node {
            CfNode::Block(_) => None,
            CfNode::If(node) => find(&node.then, key).or_else(|| find(&node.otherwise, key)),
            CfNode::Loop(node) => {
                find(&node.body, key).or_else(|| find(node.continuing.as_deref().unwrap_or_default(), key))
            }
        }
    })
}

/// Calls `change` with the list that contains a node, and its index there.
fn with_list(list: &mut Vec<CfNode>, key: NodeKey, change: &mut dyn FnMut(&mut Vec<CfNode>, usize)) -> bool {
    if let Some(at) = list.iter().position(|node| key_of(node) == Some(key)) {
        change(list, at);
        return true;
    }
    list.iter_mut().any(|node| match node {
        CfNode::Block(_) => false,
        CfNode::If(node) => with_list(&mut node.then, key, change) || with_list(&mut node.otherwise, key, change),
        CfNode::Loop(node) => {
            with_list(&mut node.body, key, change)
                || node.continuing.as_mut().is_some_and(|list| with_list(list, key, change))
        }
    })
}

/// The breaks and continues of a loop with this body, without those of nested loops.
fn own_jumps(function: &Function, list: &[CfNode], found: &mut Vec<(Block, Instr, JumpKind)>) {
    for node in list {
        match node {
            CfNode::Block(block) => {
                if let Some(&instr) = function.blocks[*block].instrs.last()
                    && let InstrData::Jump(kind @ (JumpKind::Break | JumpKind::Continue)) = function.instrs[instr]
                {
                    found.push((*block, instr, kind));
                }
            }
            CfNode::If(node) => {
                own_jumps(function, &node.then, found);
                own_jumps(function, &node.otherwise, found);
            }
            CfNode::Loop(_) => {}
        }
    }
}

/// All ifs and loops, the outer ones first.
fn nodes<'a>(list: &'a [CfNode], found: &mut Vec<&'a CfNode>) {
    for node in list {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(inner) => {
                found.push(node);
                nodes(&inner.then, found);
                nodes(&inner.otherwise, found);
            }
            CfNode::Loop(inner) => {
                found.push(node);
                nodes(&inner.body, found);
                nodes(inner.continuing.as_deref().unwrap_or_default(), found);
            }
        }
    }
}

fn list(view: &ProgramView<'_>, changes: impl Fn(&CfNode) -> Vec<NodeReplacement>) -> Steps {
    let mut found = Vec::new();
    nodes(&view.function().body, &mut found);
    boxed(found.into_iter().flat_map(|node| {
        let key = key_of(node);
        changes(node).into_iter().filter_map(move |change| Some(Restructure { key: key?, change }))
    }))
}

/// Drops ifs and loops.
pub(super) fn drop(view: &ProgramView<'_>) -> Steps {
    list(view, |_| vec![NodeReplacement::Drop])
}

/// Keeps one arm of an if, or the body of a loop; or empties an arm.
pub(super) fn flatten(view: &ProgramView<'_>) -> Steps {
    list(view, |node| match node {
        CfNode::Block(_) => Vec::new(),
        CfNode::If(_) => {
            vec![NodeReplacement::Then, NodeReplacement::Else, NodeReplacement::EmptyThen, NodeReplacement::EmptyElse]
        }
        // A loop rarely has more than three different breaks.
        CfNode::Loop(_) => (0..3).map(NodeReplacement::Once).collect(),
    })
}

/// Drops a jump: its block falls through.
struct DropJump(Instr);

impl ReductionStep for DropJump {
    fn apply(&self, edit: &mut Edit) -> bool {
        if !edit.is_placed(self.0) {
            return false;
        }
        edit.remove(self.0);
        repair(edit);
        true
    }
}

/// Drops jumps.
pub(super) fn jumps(view: &ProgramView<'_>) -> Steps {
    let jump = |i: Instr| matches!(view.function().instrs[i], InstrData::Jump(_));
    boxed(view.order.iter().filter(|(_, i)| jump(*i)).map(|&(_, i)| DropJump(i)))
}

/// Replaces the condition of an if by a constant, or by another value.
struct SetCondition {
    key: NodeKey,
    new: Result<u64, Def>,
}

impl ReductionStep for SetCondition {
    fn apply(&self, edit: &mut Edit) -> bool {
        let new = match self.new {
            Ok(value) => edit.splat(ValueShape { components: 1, bits: 1 }, value),
            Err(def) if edit.definer(def).is_some() => def,
            Err(_) => return false,
        };
        let Some(NodeSite { node: CfNode::If(node), .. }) = find(&edit.function().body, self.key) else { return false };
        let old = node.condition;
        if old == new {
            return false;
        }
        let mut nodes = std::mem::take(&mut edit.function_mut().body);
        with_list(&mut nodes, self.key, &mut |list, at| {
            // Only the condition of this if, not of nested ones.
            if let CfNode::If(node) = &mut list[at] {
                node.condition = new;
            }
        });
        edit.function_mut().body = nodes;
        true
    }
}

/// Replaces conditions by false, true, or the first boolean that dominates them.
pub(super) fn conditions(view: &ProgramView<'_>) -> Steps {
    let mut found = Vec::new();
    nodes(&view.function().body, &mut found);
    let mut steps = Vec::new();
    let mut all = view.function().body.clone();
    let mut known = Vec::new();
    for_each_condition(&mut all, &mut |condition| known.push(*condition));
    for node in found {
        let (CfNode::If(inner), Some(key)) = (node, key_of(node)) else { continue };
        let Some(site) = find(&view.function().body, key) else { continue };
        if view.function().as_const(inner.condition).is_none() {
            steps.extend([0, 1].map(|value| SetCondition { key, new: Ok(value) }));
        }
        let usable = |&&def: &&Def| def != inner.condition && view.available_after(def, site.before);
        if let Some(&other) = known.iter().find(usable) {
            steps.push(SetCondition { key, new: Err(other) });
        }
    }
    boxed(steps)
}
