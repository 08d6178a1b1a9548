//! What each operation means, once.
//!
//! - [`domain`] is the vocabulary of primitive operations on bit vectors and floats; [`integer`], [`float`] and
//!   [`convert`] define every instruction's result in that vocabulary, generic over the domain. [`concrete`] is the
//!   domain of machine integers, [`Terms`](crate::terms::Terms) that of expressions.
//! - [`nir_alu`] and [`ir3_alu`] are the tables from the operations of the two languages to those definitions, as
//!   [`Kernel`]s: loops over the 64 lanes of a [`Row`], monomorphised around one definition, and beside each loop its
//!   meaning, the same definition in terms ([`Defined`]). They are looked up once, when a program is decoded.
//! - [`mod@env`], [`memory`] and [`texture`] are the world around a program: everything in it follows from one seed. [`sync`] is what
//!   waves have to do with each other.
//!
//! A value component of up to 32 bits is a [`Row`], zero-extended in each lane; a component of 64 bits is two rows, the
//! low half first. Poison (a value that means nothing) is not in the rows: interpreters keep a mask of lanes beside
//! each component. A result is poison where an operand is, except for [`Kernel::Select`].

pub mod concrete;
pub mod convert;
pub mod domain;
pub mod env;
pub mod exchange;
pub mod float;
pub mod integer;
pub mod ir3_alu;
mod kernels;
pub mod memory;
pub mod modifiers;
pub mod nir_alu;
mod nir_compare;
pub mod rounding;
pub mod sync;
pub mod texture;
pub mod undefined;
mod values;

pub use values::{
    ALL_LANES, Binding, Defined, Kernel, LANES, Modify, One, Row, Rows, Select, Test, Three, Two, Words, splat,
};

#[cfg(test)]
mod tests;
