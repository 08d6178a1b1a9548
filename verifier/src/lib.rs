//! Differential fuzzing and verification of a shader-compiler backend.
//!
//! Layers, each of which uses only those before it: [`support`]; [`semantics`], the meaning of programs and their interpreters; [`prove`],
//! the proof engines; [`programs`], where programs come from; [`harness`], which checks compilations, reduces failures and reports them.
//! ARCHITECTURE.md lists the modules in that order, and a test compares it with their `use` declarations.

pub mod harness;
pub mod programs;
pub mod prove;
pub mod semantics;
pub mod support;
