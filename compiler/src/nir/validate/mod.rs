//! The rules of nir, and what is wrong with a program that breaks one.
//!
//! Two passes. `structure` looks at the tree: lists alternate between blocks and other nodes, each block and instruction
//! has one place, jumps stand last and have a loop to leave. Only when it finds nothing is the tree good enough to
//! derive edges and dominance from; then `operands` looks at each instruction: every use is dominated by its
//! definition, widths and component counts follow the tables, a phi has exactly its block's predecessors.

mod operands;
mod structure;
#[cfg(test)]
mod tests;

use std::fmt;

use super::function::{Block, Def, Function, Instr};
use super::index::IndexKind;
use super::shader::Shader;
use super::tex::TexSrcKind;

/// Where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block.
    pub block: Option<Block>,
    /// The instruction, and its name.
    pub instr: Option<(Instr, &'static str)>,
    /// The number of the value that it defines.
    pub value: Option<u32>,
    /// Its line in the text that it was read from; 0 where there is none.
    pub line: u32,
}

impl fmt::Display for Place {
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

/// A number that is not what it should be.
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
    /// Sources.
    Sources,
    /// Values of a constant.
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

/// Which rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A list of nodes that does not alternate, or does not begin and end with a block.
    ListShape,
    /// A block that stands twice in the tree, or that there is not.
    BlockPlace(Block),
    /// An instruction that stands twice, or that there is not.
    InstrPlace(Instr),
    /// An instruction after a jump, or nodes after a block that ends with one.
    AfterJump,
    /// A break or continue without a loop.
    JumpOutsideLoop,
    /// A continue, return or halt in the part of a loop that runs before each further iteration.
    JumpInContinuing,
    /// A phi after something else.
    LatePhi,
    /// A value that there is not.
    NoSuchValue(u32),
    /// A value that two instructions define, or that names another instruction as its definition.
    DefinedElsewhere(u32),
    /// Two values with one number.
    SameIndex(u32),
    /// A value whose width is none of nir's.
    BadWidth(u8),
    /// A value with a number of components that nir does not have.
    BadComponents(u8),
    /// A use that its definition does not dominate.
    NotDominated {
        /// The number of the value.
        value: u32,
        /// Where it is defined; none for an instruction that is in no block.
        defined: Option<Block>,
    },
    /// A phi without a source for a predecessor.
    PhiMissing(Block),
    /// A phi with a source for a block that is no predecessor, or with two for one.
    PhiExtra(Block),
    /// A wrong number of something.
    Count {
        /// What is counted.
        what: Quantity,
        /// How many there are.
        found: u32,
        /// How many there should be.
        expected: u32,
    },
    /// A width that the type of an operand does not have.
    WidthOfType {
        /// Whose width.
        what: Quantity,
        /// The width.
        found: u8,
        /// The widths that it may have.
        expected: &'static [u8],
    },
    /// A swizzle that takes a component that its source does not have.
    Swizzle {
        /// Which source.
        source: usize,
        /// The component.
        component: u8,
        /// How many the source has.
        components: u8,
    },
    /// A constant with bits above its width.
    ConstantTooWide(u64),
    /// Indices other than the intrinsic's, or in another order.
    Indices {
        /// The first that is wrong.
        found: Option<IndexKind>,
        /// What should stand there.
        expected: Option<IndexKind>,
    },
    /// A write mask with components that the value does not have.
    WriteMask {
        /// The mask.
        mask: u16,
        /// How many components there are.
        components: u8,
    },
    /// An atomic operation that the instruction cannot do: a compare in one without a comparator, or none in one with.
    AtomicOp(&'static str),
    /// A local array that is not declared by `decl_reg`.
    NotALocalArray(u32),
    /// A local array where a value should be: it has a name, and no bits.
    LocalArrayAsValue(u32),
    /// An element past the end of a local array.
    PastLocalArray {
        /// The element.
        element: i32,
        /// How many there are.
        elements: u32,
    },
    /// An intrinsic with a result that it should not have, or without one that it should.
    Result,
    /// A texture operation without a source that it needs.
    TexMissing(TexSrcKind),
    /// A texture operation with two sources of a kind.
    TexTwice(TexSrcKind),
}

impl Problem {
    /// What was found.
    pub fn found(&self) -> String {
        match self {
            Problem::ListShape => "a list of another shape".into(),
            Problem::BlockPlace(block) => format!("{block} twice, or no such block"),
            Problem::InstrPlace(instr) => format!("{instr} twice, or no such instruction"),
            Problem::AfterJump => "code after a jump".into(),
            Problem::JumpOutsideLoop => "a jump outside any loop".into(),
            Problem::JumpInContinuing => "a jump in the continue part of a loop".into(),
            Problem::LatePhi => "a phi after another instruction".into(),
            Problem::NoSuchValue(index) => format!("value number {index}, which there is not"),
            Problem::DefinedElsewhere(index) => format!("`%{index}`, which another instruction defines"),
            Problem::SameIndex(index) => format!("a second `%{index}`"),
            Problem::BadWidth(width) => format!("{width} bits"),
            Problem::BadComponents(components) => format!("{components} components"),
            Problem::NotDominated { value, defined: Some(block) } => format!("`%{value}`, defined in {block}"),
            Problem::NotDominated { value, defined: None } => format!("`%{value}`, defined in no block"),
            Problem::PhiMissing(block) => format!("no source for the predecessor {block}"),
            Problem::PhiExtra(block) => format!("a source for {block}"),
            Problem::Count { what, found, .. } => format!("{found} {what}"),
            Problem::WidthOfType { what, found, .. } => format!("{found} {what}"),
            Problem::Swizzle { source, component, .. } => format!("component {component} of source {source}"),
            Problem::ConstantTooWide(value) => format!("the constant {value:#x}"),
            Problem::Indices { found: Some(found), .. } => format!("the index `{}`", found.name()),
            Problem::Indices { found: None, .. } => "no further index".into(),
            Problem::WriteMask { mask, .. } => format!("the write mask {mask:#b}"),
            Problem::AtomicOp(op) => format!("the atomic operation `{op}`"),
            Problem::NotALocalArray(index) => format!("`%{index}`"),
            Problem::LocalArrayAsValue(index) => format!("the local array `%{index}`"),
            Problem::PastLocalArray { element, .. } => format!("element {element}"),
            Problem::Result => "a wrong result".into(),
            Problem::TexMissing(kind) => format!("no source `({})`", kind.name()),
            Problem::TexTwice(kind) => format!("two sources `({})`", kind.name()),
        }
    }

    /// What the rule says.
    pub fn expected(&self) -> String {
        match self {
            Problem::ListShape => "blocks alternating with ifs and loops, a block first and last".into(),
            Problem::BlockPlace(_) => "each block once in the tree".into(),
            Problem::InstrPlace(_) => "each instruction once in the blocks".into(),
            Problem::AfterJump => "the end of the list after a jump".into(),
            Problem::JumpOutsideLoop => "a loop around `break` and `continue`".into(),
            Problem::JumpInContinuing => "only `break` there".into(),
            Problem::LatePhi => "phis first in their block".into(),
            Problem::NoSuchValue(_) => "a value of this function".into(),
            Problem::DefinedElsewhere(_) => "one definition for each value".into(),
            Problem::SameIndex(_) => "a number of its own for each value".into(),
            Problem::BadWidth(_) => "1, 8, 16, 32 or 64 bits".into(),
            Problem::BadComponents(_) => "1 to 5, 8 or 16 components".into(),
            Problem::NotDominated { .. } => "a value defined on every way to its use".into(),
            Problem::PhiMissing(_) => "one source for each predecessor".into(),
            Problem::PhiExtra(_) => "sources for the block's predecessors only, one for each".into(),
            Problem::Count { expected, .. } => expected.to_string(),
            Problem::WidthOfType { expected, .. } => {
                let widths: Vec<String> = expected.iter().map(|width| width.to_string()).collect();
                widths.join(" or ")
            }
            Problem::Swizzle { components, .. } => format!("components below {components}"),
            Problem::ConstantTooWide(_) => "a constant that fits its width".into(),
            Problem::Indices { expected: Some(expected), .. } => format!("`{}`", expected.name()),
            Problem::Indices { expected: None, .. } => "no further index".into(),
            Problem::WriteMask { components, .. } => format!("a mask of {components} components"),
            Problem::AtomicOp(_) => "`cmpxchg` or `fcmpxchg` in a swap, any other operation elsewhere".into(),
            Problem::NotALocalArray(_) => "a local array declared by `decl_reg`".into(),
            Problem::LocalArrayAsValue(_) => "a value; local arrays are only loaded from and stored to".into(),
            Problem::PastLocalArray { elements, .. } => format!("an element below {elements}"),
            Problem::Result => "a result exactly where the intrinsic has one".into(),
            Problem::TexMissing(_) => "every source that the operation needs".into(),
            Problem::TexTwice(_) => "one source of each kind".into(),
        }
    }
}

/// A broken rule, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Problem,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.place, self.problem.found(), self.problem.expected())
    }
}

impl std::error::Error for ValidationError {}

/// Checks a shader against every rule. Gives all that is wrong, in source order; what is wrong with the tree hides the
/// rest.
pub fn validate(shader: &Shader) -> Result<(), Vec<ValidationError>> {
    let function = &shader.entry;
    let mut errors = Errors { function, found: Vec::new() };
    structure::check(function, &mut errors);
    if errors.found.is_empty() {
        operands::check(function, &mut errors);
    }
    if errors.found.is_empty() { Ok(()) } else { Err(errors.found) }
}

/// Collects what is wrong.
struct Errors<'a> {
    function: &'a Function,
    found: Vec<ValidationError>,
}

impl Errors<'_> {
    fn at_function(&mut self, problem: Problem) {
        let place = Place { block: None, instr: None, value: None, line: 0 };
        self.found.push(ValidationError { place, problem });
    }

    fn at_block(&mut self, block: Block, problem: Problem) {
        let instrs = self.function.blocks.get(block).map_or(&[][..], |data| &data.instrs);
        let line = instrs.last().map_or(0, |&instr| self.function.lines[instr]);
        let place = Place { block: Some(block), instr: None, value: None, line };
        self.found.push(ValidationError { place, problem });
    }

    fn at_instr(&mut self, block: Block, instr: Instr, problem: Problem) {
        let data = &self.function.instrs[instr];
        let value = data.def().and_then(|def| self.function.defs.get(def)).map(|def| def.index);
        let place =
            Place { block: Some(block), instr: Some((instr, data.name())), value, line: self.function.lines[instr] };
        self.found.push(ValidationError { place, problem });
    }

    /// The number of a value in the text.
    fn index(&self, def: Def) -> u32 {
        self.function.defs.get(def).map_or(def.as_u32(), |data| data.index)
    }
}
