//! Checking compilations, reducing failures and reporting them.
//!
//! - [`check`] runs engines on the boundaries of one compilation.
//! - [`guard`] compiles programs in processes that can be stopped.
//! - [`reduce`] makes a failing program smaller, [`report`] writes it as a bundle, [`triage`] groups failures that are one bug.
//! - [`vulkan`] compares programs with devices.
//! - [`campaigns`] do so for many programs; [`fuzz_targets`] for one input of a fuzzer.

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
