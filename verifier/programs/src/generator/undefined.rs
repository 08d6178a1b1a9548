//! Undefined values that may be read where only defined ones have a meaning.
//!
//! A branch on an undefined condition and an access at an undefined address are undefined behaviour: no run after them
//! is compared. An undefined value stays undefined in every environment, so a program that always reaches such a branch
//! has no environment in which it can be tested. So undefined values are kept where they reach outputs only, through
//! arithmetic, phis and memory without loads; the others become 0. A texture takes its level from differences between
//! the lanes of a quad, which are undefined where one of them is inactive: there it gets a level as an operand. A
//! shuffle reads another lane, which the last wave of a workgroup may not have: there it reads its own, at the distance
//! 0.
//!
//! The result of an atomic is undefined in helper lanes, and `demote_if` makes helpers that go on. Where such a result
//! has to be defined after it, the lanes end instead.

use ir3_compiler::nir::{
    CfNode, Def, Function, Instr, InstrData, Intrinsic, IntrinsicOp, JumpKind, Shader, Tex, TexOp, TexSrcKind,
};
use rustc_hash::FxHashSet;
use smallvec::smallvec;
use std::ops::ControlFlow;

/// Replaces the undefined values that a condition, an address or any other operand with a meaning depends on. Returns
/// the number of those that are left.
pub(super) fn settle(shader: &mut Shader) -> u32 {
    let defined = Defined::of(&shader.entry).values;
    let mut left = 0;
    let zero = first_zero(&mut shader.entry, 32);
    let half_zero = if samples_at_halves(&shader.entry) { first_zero(&mut shader.entry, 16) } else { None };
    let demotes = !reads_atomics_of_helpers(&shader.entry, &defined);
    let mut convergent = FxHashSet::default();
    let _ = all_lanes(&shader.entry, demotes, &shader.entry.body, &mut convergent);
    for (instr, data) in &mut shader.entry.instrs {
        match data {
            &mut InstrData::Undef { def } if defined[def.as_u32() as usize] => {
                let components = shader.entry.defs[def].num_components;
                *data = InstrData::Const { def, values: smallvec![0; components.into()] };
            }
            InstrData::Undef { .. } => left += 1,
            InstrData::Intrinsic(intrinsic) if !demotes && intrinsic.op == IntrinsicOp::DemoteIf => {
                intrinsic.op = IntrinsicOp::TerminateIf;
            }
            InstrData::Intrinsic(intrinsic) if !demotes && intrinsic.op == IntrinsicOp::Demote => {
                intrinsic.op = IntrinsicOp::Terminate;
            }
            InstrData::Intrinsic(intrinsic) if is_shuffle(intrinsic.op) => {
                if let Some(zero) = zero.filter(|_| intrinsic.def.is_some_and(|def| defined[def.as_u32() as usize])) {
                    intrinsic.srcs[1] = zero;
                }
            }
            InstrData::Tex(tex) if defined[tex.def.as_u32() as usize] && !convergent.contains(&instr) => {
                let coordinates = tex.src(TexSrcKind::Coord).map_or(32, |def| shader.entry.defs[def].bit_size);
                match (tex.op, if coordinates == 16 { half_zero } else { zero }) {
                    (TexOp::Txb, _) => {
                        let biases = tex.srcs.iter_mut().filter(|(kind, _)| *kind == TexSrcKind::Bias);
                        biases.for_each(|(kind, _)| *kind = TexSrcKind::Lod);
                        tex.op = TexOp::Txl;
                    }
                    (TexOp::Tex, Some(level)) if tex.src(TexSrcKind::Lod).is_none() => {
                        tex.srcs.push((TexSrcKind::Lod, level));
                        tex.op = TexOp::Txl;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    left
}

/// Returns true if a result of an atomic may have to be defined in lanes that were demoted: if one comes after a
/// `demote_if`, or, where there is a loop, before it.
fn reads_atomics_of_helpers(function: &Function, defined: &[bool]) -> bool {
    let has_loops = function.body.iter().any(has_loop);
    let mut demoted = false;
    let mut atomics = false;
    for (_, instr) in function.instrs_in_order() {
        let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
        demoted |= matches!(intrinsic.op, IntrinsicOp::DemoteIf | IntrinsicOp::Demote);
        if intrinsic.op.name().contains("atomic") && intrinsic.def.is_some_and(|def| defined[def.as_u32() as usize]) {
            atomics |= demoted || has_loops;
        }
    }
    demoted && atomics
}

fn has_loop(node: &CfNode) -> bool {
    match node {
        CfNode::Block(_) => false,
        CfNode::If(branch) => branch.then.iter().chain(&branch.otherwise).any(has_loop),
        CfNode::Loop(_) => true,
    }
}

/// Adds the instructions that all lanes of a quad execute: those outside of divergent control flow, up to the first
/// after which lanes may be gone, where it breaks. Lanes that were demoted are helpers, if `demotes`.
fn all_lanes(function: &Function, demotes: bool, nodes: &[CfNode], instrs: &mut FxHashSet<Instr>) -> ControlFlow<()> {
    for node in nodes {
        match node {
            CfNode::Block(block) => {
                for &instr in &function.blocks[*block].instrs {
                    if ends_lanes(&function.instrs[instr], demotes) {
                        return ControlFlow::Break(());
                    }
                    instrs.insert(instr);
                }
            }
            CfNode::If(branch) => {
                let mut within = FxHashSet::default();
                for arm in [&branch.then, &branch.otherwise] {
                    all_lanes(function, demotes, arm, &mut within)?;
                }
                if is_uniform(function, branch.condition, 4) {
                    instrs.extend(within);
                }
            }
            CfNode::Loop(repeated) => all_lanes(function, demotes, &repeated.body, &mut FxHashSet::default())?,
        }
    }
    ControlFlow::Continue(())
}

/// Returns true if a value is the same in all lanes of a quad by its definition, up to a depth of operations:
/// arithmetic on constants, on words of the constant file, and on values that one lane of the quad passes to the
/// others.
fn is_uniform(function: &Function, def: Def, depth: u32) -> bool {
    match &function.instrs[function.defs[def].instr] {
        InstrData::Const { .. } => true,
        data @ InstrData::Alu(_) if depth > 0 => {
            let mut all = true;
            data.for_each_src(|src| all = all && is_uniform(function, src, depth - 1));
            all
        }
        InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::QuadBroadcast => true,
        InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::LoadConstIr3 => {
            function.as_const(intrinsic.srcs[0]).is_some()
        }
        _ => false,
    }
}

fn ends_lanes(data: &InstrData, demotes: bool) -> bool {
    let ends = ["terminate", "demote", "discard"];
    let ends = if demotes { &[ends[0], ends[2]][..] } else { &ends[..] };
    matches!(data, InstrData::Jump(JumpKind::Halt | JumpKind::Return))
        || matches!(data, InstrData::Intrinsic(intrinsic) if ends.iter().any(|name| intrinsic.op.name().starts_with(name)))
}

/// Returns true if some texture has coordinates of 16 bits, as its level must have then.
fn samples_at_halves(function: &Function) -> bool {
    let at_halves = |tex: &Tex| tex.src(TexSrcKind::Coord).is_some_and(|def| function.defs[def].bit_size == 16);
    function.instrs.values().any(|data| matches!(data, InstrData::Tex(tex) if at_halves(tex)))
}

/// Returns true if the result comes from a lane at a distance, and so is undefined where there is no such lane.
fn is_shuffle(op: IntrinsicOp) -> bool {
    use IntrinsicOp::*;
    matches!(
        op,
        Rotate
            | Shuffle
            | ShuffleXor
            | ShuffleUp
            | ShuffleDown
            | ShuffleXorUniformIr3
            | ShuffleUpUniformIr3
            | ShuffleDownUniformIr3
    )
}

/// A zero of this width in the first block, and so one that is defined everywhere.
fn first_zero(function: &mut Function, bits: u8) -> Option<Def> {
    let (first, _) = function.instrs_in_order().next()?;
    let found = function.blocks[first].instrs.iter().find_map(|&instr| match function.instrs[instr] {
        InstrData::Const { def, ref values } => {
            let is_it = values[..] == [0] && function.defs[def].bit_size == bits;
            is_it.then_some(def)
        }
        _ => None,
    });
    found.or_else(|| {
        let def = function.new_def(1, bits, function.blocks[first].divergent.map(|_| false));
        function.insert(first, 0, InstrData::Const { def, values: smallvec![0] });
        Some(def)
    })
}

/// The values that have to be defined.
struct Defined<'a> {
    function: &'a Function,
    values: Vec<bool>,
    worklist: Vec<Def>,
    /// True if some loaded value has to be defined, and so have stored values.
    memory: bool,
}

impl<'a> Defined<'a> {
    fn of(function: &'a Function) -> Self {
        let mut this = Self { function, values: vec![false; function.defs.len()], worklist: Vec::new(), memory: false };
        this.conditions(&function.body);
        for (_, instr) in function.instrs_in_order() {
            match &function.instrs[instr] {
                InstrData::Intrinsic(intrinsic) => {
                    let data = stored(intrinsic);
                    intrinsic.srcs.iter().skip(data.iter().count()).for_each(|&src| this.need(src));
                }
                InstrData::Tex(tex) => tex.srcs.iter().for_each(|&(_, src)| this.need(src)),
                _ => {}
            }
        }
        this.close();
        this
    }

    fn need(&mut self, def: Def) {
        if !std::mem::replace(&mut self.values[def.as_u32() as usize], true) {
            self.worklist.push(def);
        }
    }

    fn conditions(&mut self, nodes: &[CfNode]) {
        for node in nodes {
            match node {
                CfNode::Block(_) => {}
                CfNode::If(branch) => {
                    self.need(branch.condition);
                    self.conditions(&branch.then);
                    self.conditions(&branch.otherwise);
                }
                CfNode::Loop(repeated) => {
                    self.conditions(&repeated.body);
                    self.conditions(repeated.continuing.as_deref().unwrap_or_default());
                }
            }
        }
    }

    /// Adds the operands of values that have to be defined.
    fn close(&mut self) {
        let function = self.function;
        while let Some(def) = self.worklist.pop() {
            let data = &function.instrs[function.defs[def].instr];
            data.for_each_src(|src| self.need(src));
            if matches!(data, InstrData::Intrinsic(_)) && !std::mem::replace(&mut self.memory, true) {
                let intrinsics = function.instrs.values().filter_map(|data| match data {
                    InstrData::Intrinsic(intrinsic) => stored(intrinsic),
                    _ => None,
                });
                intrinsics.for_each(|data| self.need(data));
            }
        }
    }
}

/// The data of a store: its first source.
fn stored(intrinsic: &Intrinsic) -> Option<Def> {
    intrinsic.op.name().starts_with("store_").then(|| intrinsic.srcs[0])
}
