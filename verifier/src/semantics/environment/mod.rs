//! The world around a program: everything in it follows from one seed.
//!
//! [`mod@env`] has inputs, constants and buffers, [`memory`] what a program has written, [`texture`] the texels; [`sync`] and
//! [`exchange`] are what waves and lanes share.

pub mod env;
pub mod exchange;
pub mod memory;
pub mod sync;
pub mod texture;

/// Which buffer, image, texture or sampler.
pub use ir3_compiler::ir3::access::ResourceId as Binding;
