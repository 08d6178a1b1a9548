//! Undefined values that may be read where only defined ones have a meaning.
//!
//! A branch on an undefined condition and an access at an undefined address are undefined behaviour: no run after them is
//! compared. An undefined value stays undefined in every environment, so a program that always comes to such a branch has
//! no environment in which it can be tested. So undefined values are kept where they reach outputs only, through
//! arithmetic, phis and memory that nobody loads from; the others become 0.

use ir3_compiler::nir::{CfNode, Def, Function, InstrData, Intrinsic, Shader};
use smallvec::smallvec;

/// Replaces the undefined values that a condition, an address or any other operand with a meaning depends on. Returns the
/// number of those that are left.
pub(super) fn settle(shader: &mut Shader) -> u32 {
    let defined = Defined::of(&shader.entry).values;
    let mut left = 0;
    for data in shader.entry.instrs.values_mut() {
        if let &mut InstrData::Undef { def } = data {
            if defined[def.as_u32() as usize] {
                let components = shader.entry.defs[def].num_components;
                *data = InstrData::Const { def, values: smallvec![0; components.into()] };
            } else {
                left += 1;
            }
        }
    }
    left
}

/// The values that have to be defined.
struct Defined<'a> {
    function: &'a Function,
    values: Vec<bool>,
    worklist: Vec<Def>,
    /// True if some loaded value has to be defined, and so has what is stored.
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

    /// Adds the operands of what has to be defined.
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
