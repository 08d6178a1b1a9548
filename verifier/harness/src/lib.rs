//! Checking compilations and reducing failures. (The package ir3-report writes the failures for people.)
//!
//! - [`check`] runs engines on the boundaries of one compilation.
//! - [`guard`] compiles programs in processes that can be killed.
//! - [`reduce`] makes a failing program smaller; a [`case`] is a failure that can be reproduced.
//! - [`finals`] reads final programs.
//! - [`mesa`] compares the sections of a log.
//! - [`vulkan`] compares the interpreter with Vulkan devices.
//! - [`campaigns`] checks many generated programs; [`fuzz_targets`] checks one input of a fuzzer.

pub mod campaigns;
pub mod case;
pub mod check;
pub mod finals;
pub mod fuzz_targets;
pub mod guard;
pub mod mesa;
pub mod reduce;
pub mod version;
pub mod vulkan;
