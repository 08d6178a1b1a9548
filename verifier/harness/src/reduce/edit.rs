//! A program under reduction.
//!
//! Blocks, instructions and values keep their numbers while a program is edited, so a step that was listed for a
//! program can still be applied after others; if its entities have been removed, it does nothing. Removed instructions
//! stay in their table, in no block; [`compact`](super::clean::compact) drops them.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use ir3_compiler::nir::{AluSrc, Block, CfNode, Cfg, Def, Dominance, Function, Instr, InstrData, Op, Shader};
use smallvec::SmallVec;

/// The number of components of a value, and their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueShape {
    /// Components.
    pub components: u8,
    /// The width of each in bits.
    pub bits: u8,
}

impl ValueShape {
    /// The greatest value of a component.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// A program, and the block of each instruction.
pub(super) struct Edit {
    /// The program.
    pub shader: Shader,
    home: SecondaryMap<Instr, PackedOption<Block>>,
}

impl Edit {
    /// Starts editing a program.
    pub fn new(shader: Shader) -> Self {
        let mut edit = Self { shader, home: SecondaryMap::new() };
        edit.refresh();
        edit
    }

    /// Recomputes the blocks of the instructions after the tree has changed.
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

    /// The function, mutable.
    pub fn function_mut(&mut self) -> &mut Function {
        &mut self.shader.entry
    }

    /// Returns true if an instruction has not been removed.
    pub fn is_placed(&self, instr: Instr) -> bool {
        self.home[instr].is_some()
    }

    /// Returns an instruction, if it has not been removed.
    pub fn get(&self, instr: Instr) -> Option<&InstrData> {
        self.is_placed(instr).then(|| &self.shader.entry.instrs[instr])
    }

    /// Returns the instruction that defines a value, if it has not been removed.
    pub fn definer(&self, def: Def) -> Option<Instr> {
        let instr = self.shader.entry.defs[def].instr;
        self.is_placed(instr).then_some(instr)
    }

    /// The number of components and the width of a value.
    pub fn shape(&self, def: Def) -> ValueShape {
        shape(self.function(), def)
    }

    /// Removes an instruction from its block.
    pub fn remove(&mut self, instr: Instr) {
        if let Some(block) = self.home[instr].take() {
            self.shader.entry.blocks[block].instrs.retain(|&i| i != instr);
        }
    }

    /// Returns a constant whose components all are `value`: an existing one at the start of the program, or a new one
    /// there.
    pub fn splat(&mut self, shape: ValueShape, value: u64) -> Def {
        self.constant(shape, &SmallVec::from_elem(value & shape.mask(), shape.components.into()))
    }

    /// Returns a constant: an existing one at the start of the program, or a new one there.
    pub fn constant(&mut self, shape: ValueShape, values: &SmallVec<[u64; 4]>) -> Def {
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
        let def = function.new_def(shape.components, shape.bits, None);
        let instr = function.insert(block, at, InstrData::Const { def, values: values.clone() });
        self.home[instr] = block.into();
        def
    }

    /// Replaces each use of `def` by `with`, which has the same components and width.
    pub fn replace_uses(&mut self, def: Def, with: Def) {
        self.map_uses(|used| if used == def { with } else { used });
    }

    /// Replaces the values of all uses.
    fn map_uses(&mut self, mut map: impl FnMut(Def) -> Def) {
        let function = &mut self.shader.entry;
        for (instr, home) in self.home.iter() {
            if home.is_some() {
                function.instrs[instr].for_each_src_mut(|src| *src = map(*src));
            }
        }
        for_each_condition(&mut function.body, &mut |condition| *condition = map(*condition));
    }

    /// Replaces each use of `def` by the components of `with`. Returns false, and changes nothing, if a use cannot
    /// swizzle.
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

    /// Returns true if all uses of a value are arithmetic, which can swizzle.
    fn used_by_swizzles_only(&self, def: Def) -> bool {
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

/// The number of components and the width of a value.
pub(super) fn shape(function: &Function, def: Def) -> ValueShape {
    let data = &function.defs[def];
    ValueShape { components: data.num_components, bits: data.bit_size }
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

/// Returns true if an instruction has an effect besides defining its value.
pub(super) fn has_effect(data: &InstrData) -> bool {
    match data {
        InstrData::Intrinsic(intrinsic) => intrinsic.op.has_side_effect(),
        InstrData::Jump(_) => true,
        _ => false,
    }
}

/// The operation that builds a vector of this many scalars, if nir has it.
pub(super) fn vec_op(components: usize) -> Option<Op> {
    Op::vec(u8::try_from(components).ok()?)
}

/// A program with its dominator tree and instruction order: the analyses for listing steps.
pub(super) struct ProgramView<'a> {
    /// The program.
    pub shader: &'a Shader,
    /// The dominator tree.
    pub dominance: Dominance,
    /// The instructions in source order, with their blocks.
    pub order: Vec<(Block, Instr)>,
    /// The position of each instruction in that order, from 1; 0 for removed instructions.
    position: SecondaryMap<Instr, u32>,
}

impl<'a> ProgramView<'a> {
    /// Analyses a program.
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

    /// Returns true if the definition of `a` dominates position `place` of the order.
    pub fn available(&self, a: Def, place: usize) -> bool {
        let function = self.function();
        let definer = self.position[function.defs[a].instr] as usize;
        if definer == 0 {
            return false;
        }
        let (home, (block, _)) = (self.order[definer - 1].0, self.order[place]);
        if home == block { definer - 1 < place } else { self.dominance.dominates(home, block) }
    }

    /// Returns true if the definition of a value dominates the end of a block.
    pub fn available_after(&self, def: Def, block: Block) -> bool {
        match self.position[self.function().defs[def].instr] as usize {
            0 => false,
            definer => self.dominance.dominates(self.order[definer - 1].0, block),
        }
    }

    /// The values in source order, each with the position of its definition.
    pub fn defs(&self) -> impl Iterator<Item = (usize, Def)> + '_ {
        let function = self.function();
        self.order.iter().enumerate().filter_map(|(place, &(_, i))| Some((place, function.instrs[i].def()?)))
    }

    /// The number of components and the width of a value.
    pub fn shape(&self, def: Def) -> ValueShape {
        shape(self.function(), def)
    }
}
