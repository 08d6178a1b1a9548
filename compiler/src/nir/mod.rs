//! The SSA input language: the final form of Mesa's nir, as ir3 compiles it.
//!
//! A [`Shader`] has a header ([`Info`]), variables and one [`Function`]. A function has values ([`Def`]), instructions
//! ([`Instr`]) and blocks ([`Block`]), and a tree of structured control flow ([`CfNode`]) whose leaves are the blocks.
//! The operations are two tables: [`Op`] and [`IntrinsicOp`]. This module does not define their meaning.

mod builder;
mod cfg;
mod controls;
mod dominance;
mod function;
mod index;
mod intrinsic;
mod op;
pub mod preamble;
mod shader;
mod tex;
pub mod text;
mod types;
mod validate;

pub use builder::Builder;
pub use cfg::Cfg;
pub use controls::{ControlsError, FloatControls};
pub use dominance::Dominance;
pub use function::{
    Alu, AluSrc, Block, BlockData, BlocksInOrder, CfNode, Def, DefData, Function, If, Instr, InstrData, Intrinsic,
    JumpKind, Loop, LoopControl, SelectionControl, Variable,
};
pub use index::{
    Access, AtomicOp, Format, FpMath, ImageDim, Index, IndexKind, Indices, InterpMode, IoFlags, IoSemantics,
    MemoryModes, MemorySemantics, Scope, Xfb, XfbOutput,
};
pub use intrinsic::{Components, DestBits, IntrinsicInfo, IntrinsicOp};
pub use op::{Op, OpInfo, Operand, Property};
pub use shader::{Info, Shader, Stage};
pub use tex::{Tex, TexOp, TexSrcKind};
pub use text::{ParseError, read, write};
pub use types::{AluType, BaseType};
pub use validate::{BrokenRule, ErrorLocation, Quantity, ValidationError, validate};
