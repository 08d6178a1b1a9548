//! The machine language of ir3, from SSA form down to physical registers.
//!
//! One type, [`Program`], serves every stage between instruction selection and encoding. Stages change the [`Place`] of
//! each operand: an SSA [`Value`] at first, a [`PhysReg`] after register allocation. [`opcode`] is the only description
//! of the opcodes; operands have a register class, independent of their allocation.
//!
//! The textual form is that of Mesa's `ir3_print` ([`text`]). Mesa's text omits some attributes (types and component
//! counts of memory operations, the input of a `_meta:in`). They are kept in [`Attrs`] and printed as a trailing
//! comment, so in a dump of Mesa those attributes are unknown.

pub mod access;
pub mod aliases;
mod builder;
mod canonical;
mod code_order;
pub mod const_words;
pub mod dataflow;
pub mod dominance;
pub(crate) mod helper_lanes;
mod instr;
pub mod legality;
pub mod liveness;
pub mod loops;
pub mod opcode;
mod operand;
mod program;
pub mod readers;
pub mod reconvergence;
pub mod register_set;
pub mod text;
pub mod uniformity;
pub mod validate;
mod workload;

pub use aliases::AliasScope;
pub use builder::Builder;
pub use code_order::CodeOrder;
pub use instr::{
    AddressSpace, Attrs, Condition, Constraints, InputKind, InstrData, InstrFlags, MemoryAttrs, RepeatLink, Round,
    ShuffleMode, SystemValue, TextureAttrs, Type,
};
pub use opcode::{Category, Latency, Opcode};
pub use operand::{
    ArrayAccess, Dst, Mods, OperandFlags, PhysReg, Place, RegClass, RegFile, Src, SrcOperand, WriteMask,
};
pub use program::{
    Array, ArrayData, Block, BlockData, ConstLayout, DriverParam, Instr, MAX_ARRAYS, Output, Program, ResourceWords,
    ShaderStage, Value, ValueData,
};
pub use workload::{branchstack, workload};
