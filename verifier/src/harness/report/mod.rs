//! What is told of a failure: a [`bundle`] that can be read, run again, reduced, and attached to a report, with the
//! first [`difference`] of both sides; and programs as files and as text.

pub mod beside_mesa;
pub mod bundle;
pub mod difference;
mod programs;
pub mod shader_db;

pub use programs::{Named, load};
