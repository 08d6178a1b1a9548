//! The meaning of each operation, once.
//!
//! [`nir_alu`] and [`ir3_alu`] are the tables from the operations of the two languages to the definitions of
//! [`arithmetic`](crate::arithmetic), as [`Kernel`]s: loops over the 64 lanes of a
//! [`Row`](crate::arithmetic::rows::Row), monomorphised for one definition, each with its meaning, the same
//! definition in terms ([`Defined`]). They are looked up once, when a program is decoded.
//!
//! A value component of up to 32 bits is a row, zero-extended in each lane; a component of 64 bits is two rows, the low
//! half first. Poison is not in the rows: interpreters keep a mask of poisoned lanes for each component. A result is
//! poison where an operand is, except for [`Kernel::Select`].

pub mod byte_offset;
pub mod halves;
pub mod ir3_alu;
mod kernels;
pub mod modifiers;
pub mod nir_alu;
mod nir_compare;
#[cfg(test)]
mod tests;
pub mod undefined;
mod values;
pub mod wraps;

pub use values::{Defined, Kernel, LaneTest, Modify, One, Rows, Select, Three, Two, Words};
