//! A function: values, instructions, blocks, and the tree of control flow that holds the blocks.
//!
//! Control flow is structured. A list of nodes begins and ends with a block, and blocks alternate with ifs and loops,
//! so "before" and "after" every if or loop there is a place to put instructions. Edges between blocks are not stored:
//! they follow from the tree and the jumps (see [`Cfg`](super::Cfg)).

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

use super::index::{Indices, words};
use super::intrinsic::{Components, IntrinsicOp};
use super::op::Op;
use super::tex::Tex;

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

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefData {
    /// 1 to 5, 8 or 16.
    pub num_components: u8,
    /// 1, 8, 16, 32 or 64.
    pub bit_size: u8,
    /// Whether lanes may have different values, where divergence analysis has run.
    pub divergent: Option<bool>,
    /// The instruction that defines it.
    pub instr: Instr,
    /// The number in nir text (`%12`). Unique in a function; not an index of anything.
    pub index: u32,
}

/// A basic block: straight-line code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// The instructions: phis first, a jump only last.
    pub instrs: Vec<Instr>,
    /// Whether some lanes may not be there, where divergence analysis has run.
    pub divergent: Option<bool>,
}

/// A source of an arithmetic instruction: a value and which component feeds which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AluSrc {
    /// The value.
    pub def: Def,
    /// Component `i` of the operation reads component `swizzle[i]`. Entries that the operation does not read are 0.
    pub swizzle: [u8; 16],
}

impl AluSrc {
    /// The value as it is.
    pub fn identity(def: Def) -> AluSrc {
        AluSrc { def, swizzle: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] }
    }

    /// One component, for all components of the operation.
    pub fn scalar(def: Def, component: u8) -> AluSrc {
        AluSrc { def, swizzle: [component; 16] }
    }

    /// The given components.
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
    /// What it computes.
    pub op: Op,
    /// `!`: floats must not be rearranged.
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
    /// What it does.
    pub op: IntrinsicOp,
    /// The result, where there is one.
    pub def: Option<Def>,
    /// The sources, whole values.
    pub srcs: SmallVec<[Def; 4]>,
    /// The indices.
    pub indices: Indices,
    /// The variable that it accesses, as nir text says in a comment.
    pub variable: Option<Box<str>>,
}

words! {
    /// How a block ends early.
    JumpKind { Break = "break", Continue = "continue", Return = "return", Halt = "halt", }
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
        /// One value a component.
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
    /// The value that it defines.
    pub fn def(&self) -> Option<Def> {
        match self {
            InstrData::Alu(alu) => Some(alu.def),
            InstrData::Const { def, .. } | InstrData::Undef { def } | InstrData::Phi { def, .. } => Some(*def),
            InstrData::Intrinsic(intrinsic) => intrinsic.def,
            InstrData::Tex(tex) => Some(tex.def),
            InstrData::Jump(_) => None,
        }
    }

    /// Calls `visit` with each value that it reads, in order.
    pub fn for_each_src(&self, mut visit: impl FnMut(Def)) {
        match self {
            InstrData::Alu(alu) => alu.srcs.iter().for_each(|src| visit(src.def)),
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
            InstrData::Phi { srcs, .. } => srcs.iter().for_each(|(_, def)| visit(*def)),
            InstrData::Intrinsic(intrinsic) => intrinsic.srcs.iter().for_each(|def| visit(*def)),
            InstrData::Tex(tex) => tex.srcs.iter().for_each(|(_, def)| visit(*def)),
        }
    }

    /// Calls `visit` with each value that it reads, for changing it.
    pub fn for_each_src_mut(&mut self, mut visit: impl FnMut(&mut Def)) {
        match self {
            InstrData::Alu(alu) => alu.srcs.iter_mut().for_each(|src| visit(&mut src.def)),
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
            InstrData::Phi { srcs, .. } => srcs.iter_mut().for_each(|(_, def)| visit(def)),
            InstrData::Intrinsic(intrinsic) => intrinsic.srcs.iter_mut().for_each(visit),
            InstrData::Tex(tex) => tex.srcs.iter_mut().for_each(|(_, def)| visit(def)),
        }
    }

    /// What to call it in a message.
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
    /// What the author of an if asked for.
    SelectionControl {
        None = "", Flatten = "flatten", DontFlatten = "don't flatten",
        DivergentAlwaysTaken = "divergent always taken",
    }
}

/// An if.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct If {
    /// A scalar boolean.
    pub condition: Def,
    /// What the author asked for.
    pub control: SelectionControl,
    /// Where the condition is true.
    pub then: Vec<CfNode>,
    /// Where it is false.
    pub otherwise: Vec<CfNode>,
}

/// A loop: left by `break` (or `return`, `halt`) only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The body.
    pub body: Vec<CfNode>,
    /// What runs before each further iteration, where there is such a part.
    pub continuing: Option<Vec<CfNode>>,
    /// Whether lanes may leave in different iterations, where divergence analysis has run.
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

/// A declared variable. Final-form nir keeps them for their names; the compiler reads none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// `uniform`, `shader_out`, `ubo` …, with the words before it (`centroid`, `invariant` …).
    pub mode: String,
    /// What follows the mode, as it stands.
    pub text: String,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The variables that only the function has.
    pub variables: Vec<Variable>,
    /// All blocks. The reader and the builder number them in source order.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// All instructions.
    pub instrs: PrimaryMap<Instr, InstrData>,
    /// All values.
    pub defs: PrimaryMap<Def, DefData>,
    /// The tree.
    pub body: Vec<CfNode>,
    /// The line of each instruction in the text that it was read from; 0 where there is none.
    pub lines: SecondaryMap<Instr, u32>,
}

/// Two functions are equal when they are the same program with the same numbering; lines do not count.
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
    /// An empty function without any block; the builder makes functions that have one.
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

    /// The blocks in source order.
    pub fn blocks_in_order(&self) -> BlocksInOrder<'_> {
        BlocksInOrder { stack: SmallVec::from_elem(self.body.iter(), 1) }
    }

    /// The instructions in source order, with their blocks.
    pub fn instrs_in_order(&self) -> impl Iterator<Item = (Block, Instr)> + '_ {
        self.blocks_in_order().flat_map(|block| self.blocks[block].instrs.iter().map(move |&instr| (block, instr)))
    }

    /// How many instructions the blocks hold.
    pub fn instruction_count(&self) -> usize {
        self.blocks_in_order().map(|block| self.blocks[block].instrs.len()).sum()
    }

    /// The bits of each component of a value that is a constant.
    pub fn as_const(&self, def: Def) -> Option<&[u64]> {
        match &self.instrs[self.defs[def].instr] {
            InstrData::Const { values, .. } => Some(values),
            _ => None,
        }
    }

    /// The value of a scalar constant.
    pub fn as_const_scalar(&self, def: Def) -> Option<u64> {
        match self.as_const(def) {
            Some(&[value]) => Some(value),
            _ => None,
        }
    }

    /// How many components an intrinsic works on: those of the result or of the first source that may have any number.
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

/// Iterates over the blocks of a function in source order; allocates nothing up to a nesting of eight.
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
