//! Values that are the same in all lanes, as the divergence analysis of Mesa finds them.

use ir3_compiler::nir::{Block, CfNode, Def, Function, If, InstrData, IntrinsicOp, Loop, Op};
use rustc_hash::{FxHashMap, FxHashSet};

/// The operations whose results are the same in all lanes where their operands are.
#[derive(Clone, Copy)]
pub(super) struct Assumed {
    /// Loads from storage buffers.
    pub(super) loads: bool,
    /// Derivatives, operations of a quad, and textures.
    pub(super) lanes: bool,
}

/// The values that are the same in all lanes, as far as their operations and the control flow show it.
pub(super) struct Uniform {
    uniform: FxHashSet<Def>,
}

impl Uniform {
    /// Analyses a function.
    pub(super) fn of(function: &Function, assumed: Assumed) -> Self {
        let mut conditions = FxHashMap::default();
        phi_conditions(function, &function.body, &mut conditions);
        // All values, until one of their operands is not the same: phis of loops depend on themselves.
        let mut uniform: FxHashSet<Def> =
            function.instrs_in_order().filter_map(|(_, instr)| function.instrs[instr].def()).collect();
        loop {
            let before = uniform.len();
            for (_, instr) in function.instrs_in_order() {
                let data = &function.instrs[instr];
                let Some(def) = data.def() else { continue };
                let mut is_uniform = may_be_uniform(data, assumed);
                data.for_each_src(|src| is_uniform &= uniform.contains(&src));
                if let Some(conditions) = conditions.get(&def) {
                    is_uniform &= conditions.iter().all(|condition| uniform.contains(condition));
                }
                if !is_uniform && !is_absorbed(function, data) {
                    uniform.remove(&def);
                }
            }
            if uniform.len() == before {
                return Self { uniform };
            }
        }
    }

    /// Returns true if the value is the same in all lanes.
    pub(super) fn contains(&self, def: Def) -> bool {
        self.uniform.contains(&def)
    }
}

/// Returns true if the result is the same in all lanes where the operands are.
fn may_be_uniform(data: &InstrData, assumed: Assumed) -> bool {
    use IntrinsicOp as I;
    match data {
        InstrData::Const { .. } | InstrData::Alu(_) | InstrData::Phi { .. } => true,
        InstrData::Intrinsic(it) => match it.op {
            I::LoadConstIr3 | I::LoadUboVec4 | I::LoadUbo | I::LoadPushConstant | I::BindlessResourceIr3 => true,
            I::LoadSsboIr3 => assumed.loads,
            I::Ddx | I::DdxFine | I::DdxCoarse | I::Ddy | I::DdyFine | I::DdyCoarse => assumed.lanes,
            I::QuadBroadcast | I::QuadSwapHorizontal | I::QuadSwapVertical | I::QuadSwapDiagonal => assumed.lanes,
            _ => false,
        },
        InstrData::Tex(_) => assumed.lanes,
        _ => false,
    }
}

/// Returns true if the result is a constant for any operands: with a constant that absorbs the other operand, or of a
/// value with itself. Mesa folds these.
fn is_absorbed(function: &Function, data: &InstrData) -> bool {
    let InstrData::Alu(alu) = data else { return false };
    let is_all = |bit: u64| {
        alu.srcs.iter().any(|src| {
            let ones = u64::MAX >> (64 - function.defs[src.def].bit_size);
            function.as_const(src.def).is_some_and(|values| values.iter().all(|&value| value & ones == bit * ones))
        })
    };
    match alu.op {
        Op::Iand | Op::Imul | Op::Amul => is_all(0),
        Op::Ior => is_all(1),
        Op::Ixor | Op::Isub => alu.srcs[0] == alu.srcs[1],
        _ => false,
    }
}

/// Collects the conditions that decide which operand of each phi a lane takes: those of the `if` before it, and in a
/// loop and after it those of all branches in the loop that may jump.
fn phi_conditions(function: &Function, nodes: &[CfNode], to: &mut FxHashMap<Def, Vec<Def>>) {
    let mut before: Vec<Def> = Vec::new();
    for node in nodes {
        match node {
            CfNode::Block(block) => {
                let conditions = std::mem::take(&mut before);
                add(function, *block, &conditions, to);
            }
            CfNode::If(node) => {
                before = vec![node.condition];
                phi_conditions(function, &node.then, to);
                phi_conditions(function, &node.otherwise, to);
            }
            CfNode::Loop(node) => {
                let mut conditions = Vec::new();
                jump_conditions(function, node, &mut conditions);
                let all = [Some(&node.body), node.continuing.as_ref()];
                for nodes in all.into_iter().flatten() {
                    phi_conditions(function, nodes, to);
                    if let Some(CfNode::Block(header)) = nodes.first() {
                        add(function, *header, &conditions, to);
                    }
                }
                before = conditions;
            }
        }
    }
}

fn add(function: &Function, block: Block, conditions: &[Def], to: &mut FxHashMap<Def, Vec<Def>>) {
    for &instr in &function.blocks[block].instrs {
        if let InstrData::Phi { def, .. } = &function.instrs[instr] {
            to.entry(*def).or_default().extend(conditions);
        }
    }
}

/// Collects the conditions of the branches of a loop whose arms have a jump.
fn jump_conditions(function: &Function, node: &Loop, to: &mut Vec<Def>) {
    let nodes = node.body.iter().chain(node.continuing.iter().flatten());
    let mut rest: Vec<&CfNode> = nodes.collect();
    while let Some(node) = rest.pop() {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                if jumps(function, node) {
                    to.push(node.condition);
                }
                rest.extend(node.then.iter().chain(&node.otherwise));
            }
            CfNode::Loop(node) => rest.extend(node.body.iter().chain(node.continuing.iter().flatten())),
        }
    }
}

/// Returns true if an arm has a jump.
fn jumps(function: &Function, node: &If) -> bool {
    let mut rest: Vec<&CfNode> = node.then.iter().chain(&node.otherwise).collect();
    while let Some(node) = rest.pop() {
        match node {
            CfNode::Block(block) => {
                let instrs = &function.blocks[*block].instrs;
                if instrs.iter().any(|&instr| matches!(function.instrs[instr], InstrData::Jump(_))) {
                    return true;
                }
            }
            CfNode::If(node) => rest.extend(node.then.iter().chain(&node.otherwise)),
            CfNode::Loop(node) => rest.extend(node.body.iter().chain(node.continuing.iter().flatten())),
        }
    }
    false
}
