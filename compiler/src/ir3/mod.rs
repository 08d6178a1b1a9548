//! The machine language of ir3, from SSA form down to physical registers.
//!
//! One type, [`Program`], serves every stage between instruction selection and encoding. What changes on the way is
//! the [`Place`] of each operand: an SSA [`Value`] at first, a [`PhysReg`] after register allocation. Opcodes are
//! described once, in [`opcode`]; operands know their register class and nothing about where they are allocated.
//!
//! The textual form is the one that Mesa's `ir3_print` writes ([`text`]). What Mesa leaves out of it (types and
//! component counts of memory operations, which input a `_meta:in` is) is kept in [`Attrs`] and printed as a trailing
//! comment, so a dump of Mesa reads with those attributes unknown.

pub mod access;
mod builder;
mod canonical;
mod code_order;
pub mod dominance;
mod instr;
pub mod legality;
pub mod opcode;
mod operand;
mod program;
pub mod reconvergence;
pub mod text;
pub mod uniformity;
pub mod validate;
mod workload;

pub use builder::Builder;
pub use code_order::CodeOrder;
pub use instr::{
    AddressSpace, Attrs, Condition, InputKind, InstrData, InstrFlags, MemoryAttrs, RepeatLink, Round, ShuffleMode,
    SystemValue, TextureAttrs, Type,
};
pub use opcode::{Category, Latency, Opcode};
pub use operand::{
    ArrayAccess, Dst, Mods, OperandFlags, PhysReg, Place, RegClass, RegFile, Src, SrcOperand, WriteMask,
};
pub use program::{
    Array, ArrayData, Block, BlockData, ConstLayout, DriverParam, Instr, Output, Program, ShaderStage, Value, ValueData,
};
pub use workload::{branchstack, workload};
