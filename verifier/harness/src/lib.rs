//! Checking compilations, reducing failures and reporting them.
//!
//! - [`check`] runs engines on the boundaries of one compilation.
//! - [`guard`] compiles programs in processes that can be killed.
//! - [`reduce`] makes a failing program smaller, [`report`] writes it as a bundle, [`triage`] groups failures by bug.
//! - [`vulkan`] compares the interpreter with Vulkan devices.
//! - [`campaigns`] checks many generated programs; [`fuzz_targets`] checks one input of a fuzzer.

pub mod campaigns;
pub mod check;
pub mod fuzz_targets;
pub mod guard;
pub mod mesa;
pub mod reduce;
pub mod report;
pub mod triage;
pub mod version;
pub mod vulkan;
