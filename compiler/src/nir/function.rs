//! A function: values, instructions, blocks, and the tree of control flow that contains the blocks.
//!
//! Control flow is structured. A list of nodes begins and ends with a block, and blocks alternate with ifs and loops,
//! so there is a block before and after every if or loop to insert instructions into. Edges between blocks are not
//! stored: they follow from the tree and the jumps (see [`Cfg`](super::Cfg)).

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

use super::index::Indices;
use super::intrinsic::{Components, IntrinsicOp};
use super::op::Op;
use super::tex::Tex;
use crate::words;

/// A value: the result of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Def(u32);
entity_impl!(Def, "%");

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instr(u32);
entity_impl!(Instr, "instr");

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "b");

/// The properties of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefData {
    /// 1 to 5, 8 or 16.
    pub num_components: u8,
    /// 1, 8, 16, 32 or 64.
    pub bit_size: u8,
    /// True if active lanes may have different values. None before divergence analysis.
    pub divergent: Option<bool>,
    /// The instruction that defines it.
    pub instr: Instr,
    /// The index in nir text (`%12`). Unique in a function; it indexes no table.
    pub index: u32,
}

/// A basic block: straight-line code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// The instructions: phis first, a jump only at the end.
    pub instrs: Vec<Instr>,
    /// True if some lanes may be inactive in the block. None before divergence analysis.
    pub divergent: Option<bool>,
}

/// A source of an arithmetic instruction: a value with a swizzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AluSrc {
    /// The value.
    pub def: Def,
    /// Component `i` of the operation reads component `swizzle[i]`. Entries that the operation does not read are 0.
    pub swizzle: [u8; 16],
}

impl AluSrc {
    /// Reads the value with the identity swizzle.
    pub fn identity(def: Def) -> AluSrc {
        AluSrc { def, swizzle: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] }
    }

    /// Reads one component for all components of the operation.
    pub fn scalar(def: Def, component: u8) -> AluSrc {
        AluSrc { def, swizzle: [component; 16] }
    }

    /// Reads the given components.
    pub fn swizzled(def: Def, components: &[u8]) -> AluSrc {
        let mut swizzle = [0; 16];
        swizzle[..components.len()].copy_from_slice(components);
        AluSrc { def, swizzle }
    }
}

impl From<Def> for AluSrc {
    fn from(def: Def) -> AluSrc {
        AluSrc::identity(def)
    }
}

/// An arithmetic instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alu {
    /// The operation.
    pub op: Op,
    /// `!`: floats must not be reassociated.
    pub exact: bool,
    /// `.nsw`: a signed overflow is undefined.
    pub no_signed_wrap: bool,
    /// `.nuw`: an unsigned overflow is undefined.
    pub no_unsigned_wrap: bool,
    /// The result.
    pub def: Def,
    /// The sources.
    pub srcs: SmallVec<[AluSrc; 3]>,
}

/// An intrinsic instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intrinsic {
    /// The operation.
    pub op: IntrinsicOp,
    /// The result, if any.
    pub def: Option<Def>,
    /// The sources; an intrinsic reads whole values.
    pub srcs: SmallVec<[Def; 4]>,
    /// The indices.
    pub indices: Indices,
    /// The accessed variable, which nir text prints in a comment.
    pub variable: Option<Box<str>>,
}

words! {
    /// The kinds of jumps, which end a block early.
    pub enum JumpKind { Break = "break", Continue = "continue", Return = "return", Halt = "halt", }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstrData {
    /// Arithmetic.
    Alu(Alu),
    /// `load_const`: the bits of each component, zero-extended.
    Const {
        /// The result.
        def: Def,
        /// One value per component.
        values: SmallVec<[u64; 4]>,
    },
    /// `undefined`.
    Undef {
        /// The result.
        def: Def,
    },
    /// A phi: one value for each predecessor of its block.
    Phi {
        /// The result.
        def: Def,
        /// Predecessor and value, in print order.
        srcs: SmallVec<[(Block, Def); 2]>,
    },
    /// An intrinsic.
    Intrinsic(Intrinsic),
    /// A texture operation.
    Tex(Tex),
    /// A jump.
    Jump(JumpKind),
}

impl InstrData {
    /// The value that the instruction defines.
    pub fn def(&self) -> Option<Def> {
        match self {
            InstrData::Alu(alu) => Some(alu.def),
            InstrData::Const { def, .. } | InstrData::Undef { def } | InstrData::Phi { def, .. } => Some(*def),
            InstrData::Intrinsic(intrinsic) => intrinsic.def,
            InstrData::Tex(tex) => Some(tex.def),
            InstrData::Jump(_) => None,
        }
    }

    /// The value that the instruction defines, mutable.
    pub fn def_mut(&mut self) -> Option<&mut Def> {
        match self {
            InstrData::Alu(alu) => Some(&mut alu.def),
            InstrData::Const { def, .. } | InstrData::Undef { def } | InstrData::Phi { def, .. } => Some(def),
            InstrData::Intrinsic(intrinsic) => intrinsic.def.as_mut(),
            InstrData::Tex(tex) => Some(&mut tex.def),
            InstrData::Jump(_) => None,
        }
    }

    /// Calls `visit` with each value that the instruction reads, in order.
    pub fn for_each_src(&self, mut visit: impl FnMut(Def)) {
        match self {
            InstrData::Alu(alu) => alu.srcs.iter().for_each(|src| visit(src.def)),
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
            InstrData::Phi { srcs, .. } => srcs.iter().for_each(|(_, def)| visit(*def)),
            InstrData::Intrinsic(intrinsic) => intrinsic.srcs.iter().for_each(|def| visit(*def)),
            InstrData::Tex(tex) => tex.srcs.iter().for_each(|(_, def)| visit(*def)),
        }
    }

    /// Calls `visit` with a mutable reference to each value that the instruction reads.
    pub fn for_each_src_mut(&mut self, mut visit: impl FnMut(&mut Def)) {
        match self {
            InstrData::Alu(alu) => alu.srcs.iter_mut().for_each(|src| visit(&mut src.def)),
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
            InstrData::Phi { srcs, .. } => srcs.iter_mut().for_each(|(_, def)| visit(def)),
            InstrData::Intrinsic(intrinsic) => intrinsic.srcs.iter_mut().for_each(visit),
            InstrData::Tex(tex) => tex.srcs.iter_mut().for_each(|(_, def)| visit(def)),
        }
    }

    /// The name of the instruction in messages.
    pub fn name(&self) -> &'static str {
        match self {
            InstrData::Alu(alu) => alu.op.name(),
            InstrData::Const { .. } => "load_const",
            InstrData::Undef { .. } => "undefined",
            InstrData::Phi { .. } => "phi",
            InstrData::Intrinsic(intrinsic) => intrinsic.op.name(),
            InstrData::Tex(tex) => tex.op.name(),
            InstrData::Jump(kind) => kind.name(),
        }
    }
}

words! {
    /// The selection control of an if: a hint by its author.
    pub enum SelectionControl {
        None = "", Flatten = "flatten", DontFlatten = "don't flatten",
        DivergentAlwaysTaken = "divergent always taken",
    }
}

words! {
    /// The control of a loop, which is printed as a comment.
    pub enum LoopControl {
        None = "", Unroll = "unroll", DontUnroll = "don't unroll",
    }
}

/// An if.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct If {
    /// A scalar boolean.
    pub condition: Def,
    /// The selection control.
    pub control: SelectionControl,
    /// The side where the condition is true.
    pub then: Vec<CfNode>,
    /// The side where the condition is false.
    pub otherwise: Vec<CfNode>,
}

/// A loop: only `break` (or `return`, `halt`) leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The loop control.
    pub control: LoopControl,
    /// The body.
    pub body: Vec<CfNode>,
    /// The continue construct, which runs before each further iteration, if any.
    pub continuing: Option<Vec<CfNode>>,
    /// True if lanes may leave in different iterations. None before divergence analysis.
    pub divergent: Option<bool>,
}

/// A node of the control-flow tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CfNode {
    /// A block.
    Block(Block),
    /// An if.
    If(Box<If>),
    /// A loop.
    Loop(Box<Loop>),
}

/// A declared variable. Final-form nir keeps variables for their names; the compiler reads none of their properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The mode (`uniform`, `shader_out`, `ubo` …), with the words before it (`centroid`, `invariant` …).
    pub mode: String,
    /// The text after the mode, verbatim.
    pub text: String,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The local variables of the function.
    pub variables: Vec<Variable>,
    /// All blocks. The reader and the builder number them in source order.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// All instructions.
    pub instrs: PrimaryMap<Instr, InstrData>,
    /// All values.
    pub defs: PrimaryMap<Def, DefData>,
    /// The tree.
    pub body: Vec<CfNode>,
    /// The line of each instruction in the text that it was read from; 0 if it was not read from a text.
    pub lines: SecondaryMap<Instr, u32>,
}

/// Two functions are equal when they are the same program with the same numbering; lines are ignored.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
            && self.variables == other.variables
            && self.body == other.body
            && self.blocks == other.blocks
            && self.instrs == other.instrs
            && self.defs == other.defs
    }
}

impl Function {
    /// Creates a function without blocks; the builder creates functions that have one.
    pub fn new(name: impl Into<String>) -> Function {
        Function {
            name: name.into(),
            variables: Vec::new(),
            blocks: PrimaryMap::new(),
            instrs: PrimaryMap::new(),
            defs: PrimaryMap::new(),
            body: Vec::new(),
            lines: SecondaryMap::new(),
        }
    }

    /// A new value, with an index of its own; `insert` places the instruction that defines it.
    pub fn new_def(&mut self, num_components: u8, bit_size: u8, divergent: Option<bool>) -> Def {
        let index = self.defs.values().map(|def| def.index + 1).max().unwrap_or(0);
        self.defs.push(DefData { num_components, bit_size, divergent, instr: self.instrs.next_key(), index })
    }

    /// A new value of the shape of another, perhaps of another function.
    pub fn new_def_like(&mut self, shape: &DefData) -> Def {
        self.new_def(shape.num_components, shape.bit_size, shape.divergent)
    }

    /// Puts a new instruction at an index of a block.
    pub fn insert(&mut self, block: Block, at: usize, data: InstrData) -> Instr {
        let def = data.def();
        let instr = self.instrs.push(data);
        def.into_iter().for_each(|def| self.defs[def].instr = instr);
        self.blocks[block].instrs.insert(at, instr);
        instr
    }

    /// Puts a new instruction at the end of a block.
    pub fn append(&mut self, block: Block, data: InstrData) -> Instr {
        self.insert(block, self.blocks[block].instrs.len(), data)
    }

    /// The blocks in source order.
    pub fn blocks_in_order(&self) -> BlocksInOrder<'_> {
        BlocksInOrder { stack: SmallVec::from_elem(self.body.iter(), 1) }
    }

    /// The instructions in source order, with their blocks.
    pub fn instrs_in_order(&self) -> impl Iterator<Item = (Block, Instr)> + '_ {
        self.blocks_in_order().flat_map(|block| self.blocks[block].instrs.iter().map(move |&instr| (block, instr)))
    }

    /// The number of instructions in the blocks.
    pub fn instruction_count(&self) -> usize {
        self.blocks_in_order().map(|block| self.blocks[block].instrs.len()).sum()
    }

    /// The bits of each component of a constant; None for other values.
    pub fn as_const(&self, def: Def) -> Option<&[u64]> {
        match &self.instrs[self.defs[def].instr] {
            InstrData::Const { values, .. } => Some(values),
            _ => None,
        }
    }

    /// The value of a scalar constant; None for other values.
    pub fn as_const_scalar(&self, def: Def) -> Option<u64> {
        match self.as_const(def) {
            Some(&[value]) => Some(value),
            _ => None,
        }
    }

    /// The number of components that an intrinsic works on: that of the result or of the first source with a variable
    /// number.
    pub fn intrinsic_components(&self, intrinsic: &Intrinsic) -> u8 {
        let info = intrinsic.op.info();
        if info.dest == Some(Components::Vector)
            && let Some(def) = intrinsic.def
        {
            return self.defs[def].num_components;
        }
        let vector = info.srcs.iter().position(|&components| components == Components::Vector);
        match vector.and_then(|index| intrinsic.srcs.get(index)) {
            Some(&def) => self.defs[def].num_components,
            None => 1,
        }
    }
}

/// Iterates over the blocks of a function in source order, without allocation up to a nesting of eight.
pub struct BlocksInOrder<'a> {
    stack: SmallVec<[std::slice::Iter<'a, CfNode>; 16]>,
}

impl Iterator for BlocksInOrder<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        while let Some(top) = self.stack.last_mut() {
            match top.next() {
                None => {
                    self.stack.pop();
                }
                Some(CfNode::Block(block)) => return Some(*block),
                Some(CfNode::If(node)) => {
                    self.stack.push(node.otherwise.iter());
                    self.stack.push(node.then.iter());
                }
                Some(CfNode::Loop(node)) => {
                    if let Some(continuing) = &node.continuing {
                        self.stack.push(continuing.iter());
                    }
                    self.stack.push(node.body.iter());
                }
            }
        }
        None
    }
}
