//! Modules of both programs of this package: a Vulkan driver that is loaded by its path, its device, and SPIR-V modules
//! for it.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a library for the two programs of this package")]

pub mod atomics;
pub mod capabilities;
pub mod device;
pub mod module;
pub mod outcome;
pub mod specialise;
