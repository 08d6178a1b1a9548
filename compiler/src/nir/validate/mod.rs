//! The nir validator: the rules of nir, and errors for programs that break one.
//!
//! There are two passes. `structure` checks the tree: lists alternate between blocks and other nodes, each block and
//! instruction occurs once, jumps are last in their block and have a loop to leave. Only a tree without such errors has
//! well-defined edges and dominance. Then `operands` checks each instruction: every use is dominated by its definition,
//! widths and component counts follow the tables, a phi has exactly its block's predecessors.

mod operands;
mod structure;
#[cfg(test)]
mod tests;

use std::fmt;

use super::function::{Block, Def, Function, Instr};
use super::index::IndexKind;
use super::shader::Shader;
use super::tex::{TexOp, TexSrcKind};
use super::types::AluType;

/// The location of a validation error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLocation {
    /// The block.
    pub block: Option<Block>,
    /// The instruction, and its name.
    pub instr: Option<(Instr, &'static str)>,
    /// The index of the value that it defines.
    pub value: Option<u32>,
    /// The line in the text that it was read from; 0 if it was not read from a text.
    pub line: u32,
}

impl fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.block, &self.instr) {
            (None, _) => f.write_str("the function")?,
            (Some(block), None) => write!(f, "{block}")?,
            (Some(block), Some((_, name))) => match self.value {
                Some(value) => write!(f, "`%{value} = {name}` in {block}")?,
                None => write!(f, "`{name}` in {block}")?,
            },
        }
        if self.line != 0 {
            write!(f, ", line {}", self.line)?;
        }
        Ok(())
    }
}

/// A quantity that has a wrong value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Components of the result.
    ResultComponents,
    /// Width of the result.
    ResultWidth,
    /// Components of a source.
    SourceComponents(usize),
    /// Width of a source.
    SourceWidth(usize),
    /// The number of sources.
    Sources,
    /// The number of values of a constant.
    Values,
    /// Components of an if's condition.
    ConditionComponents,
    /// Width of an if's condition.
    ConditionWidth,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::ResultComponents => f.write_str("components of the result"),
            Quantity::ResultWidth => f.write_str("bits of the result"),
            Quantity::SourceComponents(index) => write!(f, "components of source {index}"),
            Quantity::SourceWidth(index) => write!(f, "bits of source {index}"),
            Quantity::Sources => f.write_str("sources"),
            Quantity::Values => f.write_str("values"),
            Quantity::ConditionComponents => f.write_str("components of the condition"),
            Quantity::ConditionWidth => f.write_str("bits of the condition"),
        }
    }
}

/// The rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokenRule {
    /// A list of nodes that does not alternate, or does not begin and end with a block.
    ListShape,
    /// A block that occurs twice in the tree, or that does not exist.
    BlockPlace(Block),
    /// An instruction that occurs twice, or that does not exist.
    InstrPlace(Instr),
    /// An instruction after a jump, or nodes after a block that ends with one.
    AfterJump,
    /// A break or continue without a loop.
    JumpOutsideLoop,
    /// A continue, return or halt in the continue construct of a loop.
    JumpInContinuing,
    /// A phi after another instruction.
    LatePhi,
    /// A value that does not exist.
    NoSuchValue(u32),
    /// A value that two instructions define, or that names another instruction as its definition.
    DefinedElsewhere(u32),
    /// Two values with the same index.
    SameIndex(u32),
    /// A value whose width nir does not have.
    BadWidth(u8),
    /// A value with a number of components that nir does not have.
    BadComponents(u8),
    /// A use that its definition does not dominate.
    NotDominated {
        /// The index of the value.
        value: u32,
        /// The block of its definition; None for an instruction that is in no block.
        defined: Option<Block>,
    },
    /// A phi without a source for a predecessor.
    PhiMissing(Block),
    /// A phi with a source for a block that is no predecessor, or with two for one.
    PhiExtra(Block),
    /// A wrong count.
    Count {
        /// The quantity.
        what: Quantity,
        /// The actual count.
        found: u32,
        /// The required count.
        expected: u32,
    },
    /// A width that the type of an operand does not have.
    WidthOfType {
        /// The operand.
        what: Quantity,
        /// The width.
        found: u8,
        /// The widths that it may have.
        expected: &'static [u8],
    },
    /// A swizzle that reads a component that its source does not have.
    Swizzle {
        /// The source.
        source: usize,
        /// The component.
        component: u8,
        /// The number of components of the source.
        components: u8,
    },
    /// A constant with bits above its width.
    ConstantTooWide(u64),
    /// Indices that the intrinsic does not have, or in the wrong order.
    Indices {
        /// The first wrong index.
        found: Option<IndexKind>,
        /// The index expected in its place.
        expected: Option<IndexKind>,
    },
    /// A write mask with components that the value does not have.
    WriteMask {
        /// The mask.
        mask: u16,
        /// The number of components.
        components: u8,
    },
    /// An atomic operation that the instruction does not support: a compare without a comparator, or another operation
    /// with one.
    AtomicOp(&'static str),
    /// A local array that is not declared by `decl_reg`.
    NotALocalArray(u32),
    /// A local array where a value is required: it is a name and has no bits.
    LocalArrayAsValue(u32),
    /// An element past the end of a local array.
    PastLocalArray {
        /// The element.
        element: i32,
        /// The number of elements.
        elements: u32,
    },
    /// An intrinsic with a result where the table has none, or without one where the table has one.
    Result,
    /// A texture operation without a source that it needs.
    TexMissing(TexSrcKind),
    /// A texture operation with two sources of one kind.
    TexTwice(TexSrcKind),
    /// A texture operation with a source that it does not have.
    TexSource(TexOp, TexSrcKind),
    /// A texture operation with a result of another type.
    TexType(TexOp, AluType),
    /// A write of which the order does not matter.
    ReorderableWrite,
    /// An alignment that is no power of two, or an offset from it that is not less.
    Alignment {
        /// The alignment in bytes.
        mul: u32,
        /// The offset.
        offset: u32,
    },
}

impl BrokenRule {
    /// Describes what was found.
    pub fn found(&self) -> String {
        match self {
            BrokenRule::ListShape => "a list of another shape".into(),
            BrokenRule::BlockPlace(block) => format!("{block} twice, or no such block"),
            BrokenRule::InstrPlace(instr) => format!("{instr} twice, or no such instruction"),
            BrokenRule::AfterJump => "code after a jump".into(),
            BrokenRule::JumpOutsideLoop => "a jump outside any loop".into(),
            BrokenRule::JumpInContinuing => "a jump in the continue part of a loop".into(),
            BrokenRule::LatePhi => "a phi after another instruction".into(),
            BrokenRule::NoSuchValue(index) => format!("value number {index}, which there is not"),
            BrokenRule::DefinedElsewhere(index) => format!("`%{index}`, which another instruction defines"),
            BrokenRule::SameIndex(index) => format!("a second `%{index}`"),
            BrokenRule::BadWidth(width) => format!("{width} bits"),
            BrokenRule::BadComponents(components) => format!("{components} components"),
            BrokenRule::NotDominated { value, defined: Some(block) } => format!("`%{value}`, defined in {block}"),
            BrokenRule::NotDominated { value, defined: None } => format!("`%{value}`, defined in no block"),
            BrokenRule::PhiMissing(block) => format!("no source for the predecessor {block}"),
            BrokenRule::PhiExtra(block) => format!("a source for {block}"),
            BrokenRule::Count { what, found, .. } => format!("{found} {what}"),
            BrokenRule::WidthOfType { what, found, .. } => format!("{found} {what}"),
            BrokenRule::Swizzle { source, component, .. } => format!("component {component} of source {source}"),
            BrokenRule::ConstantTooWide(value) => format!("the constant {value:#x}"),
            BrokenRule::Indices { found: Some(found), .. } => format!("the index `{}`", found.name()),
            BrokenRule::Indices { found: None, .. } => "no further index".into(),
            BrokenRule::WriteMask { mask, .. } => format!("the write mask {mask:#b}"),
            BrokenRule::AtomicOp(op) => format!("the atomic operation `{op}`"),
            BrokenRule::NotALocalArray(index) => format!("`%{index}`"),
            BrokenRule::LocalArrayAsValue(index) => format!("the local array `%{index}`"),
            BrokenRule::PastLocalArray { element, .. } => format!("element {element}"),
            BrokenRule::Result => "a wrong result".into(),
            BrokenRule::TexMissing(kind) => format!("no source `({})`", kind.name()),
            BrokenRule::TexTwice(kind) => format!("two sources `({})`", kind.name()),
            BrokenRule::TexSource(op, kind) => format!("a source `({})` of `{op}`", kind.name()),
            BrokenRule::TexType(op, ty) => format!("a result of type {ty} of `{op}`"),
            BrokenRule::ReorderableWrite => "a write that is `reorderable`".into(),
            BrokenRule::Alignment { mul, offset } => format!("align_mul={mul}, align_offset={offset}"),
        }
    }

    /// Describes what the rule requires.
    pub fn expected(&self) -> String {
        match self {
            BrokenRule::ListShape => "blocks alternating with ifs and loops, a block first and last".into(),
            BrokenRule::BlockPlace(_) => "each block once in the tree".into(),
            BrokenRule::InstrPlace(_) => "each instruction once in the blocks".into(),
            BrokenRule::AfterJump => "the end of the list after a jump".into(),
            BrokenRule::JumpOutsideLoop => "a loop around `break` and `continue`".into(),
            BrokenRule::JumpInContinuing => "only `break` there".into(),
            BrokenRule::LatePhi => "phis first in their block".into(),
            BrokenRule::NoSuchValue(_) => "a value of this function".into(),
            BrokenRule::DefinedElsewhere(_) => "one definition for each value".into(),
            BrokenRule::SameIndex(_) => "a number of its own for each value".into(),
            BrokenRule::BadWidth(_) => "1, 8, 16, 32 or 64 bits".into(),
            BrokenRule::BadComponents(_) => "1 to 5, 8 or 16 components".into(),
            BrokenRule::NotDominated { .. } => "a value defined on every path to its use".into(),
            BrokenRule::PhiMissing(_) => "one source for each predecessor".into(),
            BrokenRule::PhiExtra(_) => "sources for the block's predecessors only, one for each".into(),
            BrokenRule::Count { expected, .. } => expected.to_string(),
            BrokenRule::WidthOfType { expected, .. } => {
                let widths: Vec<String> = expected.iter().map(|width| width.to_string()).collect();
                widths.join(" or ")
            }
            BrokenRule::Swizzle { components, .. } => format!("components below {components}"),
            BrokenRule::ConstantTooWide(_) => "a constant that fits its width".into(),
            BrokenRule::Indices { expected: Some(expected), .. } => format!("`{}`", expected.name()),
            BrokenRule::Indices { expected: None, .. } => "no further index".into(),
            BrokenRule::WriteMask { components, .. } => format!("a mask of {components} components"),
            BrokenRule::AtomicOp(_) => "`cmpxchg` or `fcmpxchg` in a swap, any other operation elsewhere".into(),
            BrokenRule::NotALocalArray(_) => "a local array declared by `decl_reg`".into(),
            BrokenRule::LocalArrayAsValue(_) => "a value; local arrays are only loaded from and stored to".into(),
            BrokenRule::PastLocalArray { elements, .. } => format!("an element below {elements}"),
            BrokenRule::Result => "a result exactly where the intrinsic has one".into(),
            BrokenRule::TexMissing(_) => "every source that the operation needs".into(),
            BrokenRule::TexTwice(_) => "one source of each kind".into(),
            BrokenRule::TexSource(..) => "a source that the operation has".into(),
            BrokenRule::TexType(op, _) => {
                op.result_types().iter().map(|&ty| AluType::new(ty, 0).to_string()).collect::<Vec<_>>().join(" or ")
            }
            BrokenRule::ReorderableWrite => "that of reads only".into(),
            BrokenRule::Alignment { .. } => "a power of two, and an offset below it".into(),
        }
    }
}

/// A broken rule and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The location.
    pub place: ErrorLocation,
    /// The broken rule.
    pub problem: BrokenRule,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.place, self.problem.found(), self.problem.expected())
    }
}

impl std::error::Error for ValidationError {}

/// Checks a shader against every rule.
///
/// # Errors
/// Returns all broken rules in source order. Errors in the tree suppress the checks of operands.
pub fn validate(shader: &Shader) -> Result<(), Vec<ValidationError>> {
    let function = &shader.entry;
    let mut errors = Errors { function, found: Vec::new() };
    structure::check(function, &mut errors);
    if errors.found.is_empty() {
        operands::check(function, &mut errors);
    }
    if errors.found.is_empty() { Ok(()) } else { Err(errors.found) }
}

/// Collects the errors.
struct Errors<'a> {
    function: &'a Function,
    found: Vec<ValidationError>,
}

impl Errors<'_> {
    fn at_function(&mut self, problem: BrokenRule) {
        let place = ErrorLocation { block: None, instr: None, value: None, line: 0 };
        self.found.push(ValidationError { place, problem });
    }

    fn at_block(&mut self, block: Block, problem: BrokenRule) {
        let instrs = self.function.blocks.get(block).map_or(&[][..], |data| &data.instrs);
        let line = instrs.last().map_or(0, |&instr| self.function.lines[instr]);
        let place = ErrorLocation { block: Some(block), instr: None, value: None, line };
        self.found.push(ValidationError { place, problem });
    }

    fn at_instr(&mut self, block: Block, instr: Instr, problem: BrokenRule) {
        let data = &self.function.instrs[instr];
        let value = data.def().and_then(|def| self.function.defs.get(def)).map(|def| def.index);
        let place = ErrorLocation {
            block: Some(block),
            instr: Some((instr, data.name())),
            value,
            line: self.function.lines[instr],
        };
        self.found.push(ValidationError { place, problem });
    }

    /// The index of a value in the text.
    fn index(&self, def: Def) -> u32 {
        self.function.defs.get(def).map_or(def.as_u32(), |data| data.index)
    }
}
