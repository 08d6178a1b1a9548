//! The environment of a program: all of it follows from one seed.
//!
//! [`mod@env`] has inputs, constants and buffers, [`aliases`] which of them are one memory, [`memory`] the words that a
//! program reads and writes, [`texture`] the texels; [`sync`] has the operations on waves, [`exchange`] an idiom of
//! ir3, [`hints`] properties of inputs that fit a program, [`device`] rules
//! of runs that a Vulkan device is compared with, [`corners`] values at which operations go wrong.

pub mod aliases;
pub mod corners;
pub mod device;
pub mod env;
pub mod exchange;
pub mod hints;
pub mod memory;
pub mod sync;
pub mod texture;

/// The buffer, image, texture or sampler of an access.
pub use ir3_compiler::ir3::access::ResourceId as Binding;
