//! A program that is being changed.
//!
//! Blocks, instructions and values keep their numbers while a program is edited, so that a step that was listed for a
//! program can still be taken after others have been; what it names may be gone by then, and it does nothing. Removed
//! instructions stay in their table, in no block; [`compact`](super::clean::compact) leaves them behind.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use ir3_compiler::nir::{
    AluSrc, Block, CfNode, Cfg, Def, DefData, Dominance, Function, Instr, InstrData, IntrinsicOp, Op, Shader,
};
use smallvec::SmallVec;

/// How many components a value has, and how many bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Components.
    pub components: u8,
    /// Bits of each.
    pub bits: u8,
}

impl Shape {
    /// The value that has all bits that fit.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// A program and where its instructions are.
pub(super) struct Edit {
    /// The program.
    pub shader: Shader,
    home: SecondaryMap<Instr, PackedOption<Block>>,
}

impl Edit {
    /// Begins to edit a program.
    pub fn new(shader: Shader) -> Self {
        let mut edit = Self { shader, home: SecondaryMap::new() };
        edit.refresh();
        edit
    }

    /// Finds out anew where each instruction is, after the tree has changed.
    pub fn refresh(&mut self) {
        self.home.clear();
        for (block, instr) in self.shader.entry.instrs_in_order() {
            self.home[instr] = block.into();
        }
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.shader.entry
    }

    /// The function, to be changed.
    pub fn function_mut(&mut self) -> &mut Function {
        &mut self.shader.entry
    }

    /// Whether an instruction is still there.
    pub fn is_placed(&self, instr: Instr) -> bool {
        self.home[instr].is_some()
    }

    /// An instruction, if it is still there.
    pub fn get(&self, instr: Instr) -> Option<&InstrData> {
        self.is_placed(instr).then(|| &self.shader.entry.instrs[instr])
    }

    /// The instruction that defines a value, if it is still there.
    pub fn definer(&self, def: Def) -> Option<Instr> {
        let instr = self.shader.entry.defs[def].instr;
        self.is_placed(instr).then_some(instr)
    }

    /// The shape of a value.
    pub fn shape(&self, def: Def) -> Shape {
        shape(self.function(), def)
    }

    /// Takes an instruction out of its block.
    pub fn remove(&mut self, instr: Instr) {
        if let Some(block) = self.home[instr].take() {
            self.shader.entry.blocks[block].instrs.retain(|&i| i != instr);
        }
    }

    /// A constant whose components all have `value`: one of those at the start of the program, or a new one there.
    pub fn splat(&mut self, shape: Shape, value: u64) -> Def {
        self.constant(shape, &SmallVec::from_elem(value & shape.mask(), shape.components.into()))
    }

    /// A constant: one of those at the start of the program, or a new one there.
    pub fn constant(&mut self, shape: Shape, values: &SmallVec<[u64; 4]>) -> Def {
        let function = &mut self.shader.entry;
        let Some(block) = function.blocks_in_order().next() else {
            unreachable!("a valid function has a block");
        };
        let instrs = &function.blocks[block].instrs;
        let mut at = 0;
        for &instr in instrs {
            let InstrData::Const { def, values: old } = &function.instrs[instr] else { break };
            if old == values && function.defs[*def].bit_size == shape.bits {
                return *def;
            }
            at += 1;
        }
        let instr = function.instrs.next_key();
        // Numbers in the text only have to differ; compaction gives new ones.
        let index = function.defs.values().map(|def| def.index + 1).max().unwrap_or(0);
        let def = function.defs.push(DefData {
            num_components: shape.components,
            bit_size: shape.bits,
            divergent: None,
            instr,
            index,
        });
        function.instrs.push(InstrData::Const { def, values: values.clone() });
        function.blocks[block].instrs.insert(at, instr);
        self.home[instr] = block.into();
        def
    }

    /// Replaces each use of `def` by `with`, a value of the same shape.
    pub fn replace_uses(&mut self, def: Def, with: Def) {
        self.map_uses(|used| if used == def { with } else { used });
    }

    /// Replaces values at each use.
    pub fn map_uses(&mut self, mut map: impl FnMut(Def) -> Def) {
        let function = &mut self.shader.entry;
        for (instr, home) in self.home.iter() {
            if home.is_some() {
                function.instrs[instr].for_each_src_mut(|src| *src = map(*src));
            }
        }
        for_each_condition(&mut function.body, &mut |condition| *condition = map(*condition));
    }

    /// Replaces each use of `def` by the components of `with` that it is made of. Does nothing, and says so, where a
    /// use needs `def` as it stands.
    pub fn replace_uses_swizzled(&mut self, def: Def, with: &AluSrc) -> bool {
        let (old, new) = (self.shape(def), self.shape(with.def));
        if old.bits != new.bits {
            return false;
        }
        let same = (0..old.components).all(|c| with.swizzle[usize::from(c)] == c);
        if same && old.components == new.components {
            self.replace_uses(def, with.def);
            return true;
        }
        if !self.used_by_swizzles_only(def) {
            return false;
        }
        let function = &mut self.shader.entry;
        for (instr, home) in self.home.iter() {
            if home.is_some()
                && let InstrData::Alu(alu) = &mut function.instrs[instr]
            {
                let components = function.defs[alu.def].num_components;
                for (index, src) in alu.srcs.iter_mut().enumerate().filter(|(_, src)| src.def == def) {
                    let used = alu.op.info().source_components(index, components);
                    let composed: SmallVec<[u8; 16]> =
                        src.swizzle[..usize::from(used)].iter().map(|&c| with.swizzle[usize::from(c)]).collect();
                    *src = AluSrc::swizzled(with.def, &composed);
                }
            }
        }
        true
    }

    /// Whether only arithmetic reads a value, which can take any components of another one instead.
    pub fn used_by_swizzles_only(&self, def: Def) -> bool {
        let function = self.function();
        let mut other = false;
        for_each_condition_of(&function.body, &mut |condition| other |= condition == def);
        for (_, instr) in function.instrs_in_order() {
            let data = &function.instrs[instr];
            if !matches!(data, InstrData::Alu(_)) {
                data.for_each_src(|src| other |= src == def);
            }
        }
        !other
    }
}

/// The shape of a value.
pub(super) fn shape(function: &Function, def: Def) -> Shape {
    let data = &function.defs[def];
    Shape { components: data.num_components, bits: data.bit_size }
}

/// Calls `visit` with the condition of each if.
pub(super) fn for_each_condition(nodes: &mut [CfNode], visit: &mut impl FnMut(&mut Def)) {
    for node in nodes {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                visit(&mut node.condition);
                for_each_condition(&mut node.then, visit);
                for_each_condition(&mut node.otherwise, visit);
            }
            CfNode::Loop(node) => {
                for_each_condition(&mut node.body, visit);
                for_each_condition(node.continuing.as_deref_mut().unwrap_or_default(), visit);
            }
        }
    }
}

/// Calls `visit` with the condition of each if.
pub(super) fn for_each_condition_of(nodes: &[CfNode], visit: &mut impl FnMut(Def)) {
    for node in nodes {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                visit(node.condition);
                for_each_condition_of(&node.then, visit);
                for_each_condition_of(&node.otherwise, visit);
            }
            CfNode::Loop(node) => {
                for_each_condition_of(&node.body, visit);
                for_each_condition_of(node.continuing.as_deref().unwrap_or_default(), visit);
            }
        }
    }
}

/// Whether an instruction does something besides defining its value.
pub(super) fn has_effect(data: &InstrData) -> bool {
    match data {
        InstrData::Intrinsic(intrinsic) => intrinsic.def.is_none() || is_atomic(intrinsic.op),
        InstrData::Jump(_) => true,
        _ => false,
    }
}

/// Whether an intrinsic changes memory and has a result.
pub(super) fn is_atomic(op: IntrinsicOp) -> bool {
    op.name().contains("_atomic")
}

/// The operation that makes a vector of so many scalars, if nir has it.
pub(super) fn vec_op(components: usize) -> Option<Op> {
    Op::vec(u8::try_from(components).ok()?)
}

/// What dominates what, and where everything is: the way that a program is looked at to list the steps for it.
pub(super) struct View<'a> {
    /// The program.
    pub shader: &'a Shader,
    /// The dominator tree.
    pub dominance: Dominance,
    /// The instructions in source order, with their blocks.
    pub order: Vec<(Block, Instr)>,
    /// Where each instruction is in that order, from 1; 0 for one that is nowhere.
    position: SecondaryMap<Instr, u32>,
}

impl<'a> View<'a> {
    /// Looks at a program.
    pub fn new(shader: &'a Shader) -> Self {
        let function = &shader.entry;
        let dominance = Dominance::new(function, &Cfg::new(function));
        let order: Vec<_> = function.instrs_in_order().collect();
        let mut position = SecondaryMap::new();
        for (&(_, instr), number) in order.iter().zip(1..) {
            position[instr] = number;
        }
        Self { shader, dominance, order, position }
    }

    /// The function.
    pub fn function(&self) -> &'a Function {
        &self.shader.entry
    }

    /// Whether the value `a` is there where `b`, at `place` in the order, is computed.
    pub fn available(&self, a: Def, place: usize) -> bool {
        let function = self.function();
        let definer = self.position[function.defs[a].instr] as usize;
        if definer == 0 {
            return false;
        }
        let (home, (block, _)) = (self.order[definer - 1].0, self.order[place]);
        if home == block { definer - 1 < place } else { self.dominance.dominates(home, block) }
    }

    /// Whether the value is there at the end of a block.
    pub fn available_after(&self, def: Def, block: Block) -> bool {
        match self.position[self.function().defs[def].instr] as usize {
            0 => false,
            definer => self.dominance.dominates(self.order[definer - 1].0, block),
        }
    }

    /// The values that are defined, in source order, with the place of their definers.
    pub fn defs(&self) -> impl Iterator<Item = (usize, Def)> + '_ {
        let function = self.function();
        self.order.iter().enumerate().filter_map(|(place, &(_, i))| Some((place, function.instrs[i].def()?)))
    }

    /// The shape of a value.
    pub fn shape(&self, def: Def) -> Shape {
        shape(self.function(), def)
    }
}
