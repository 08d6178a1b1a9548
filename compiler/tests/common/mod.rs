//! Utilities of several tests.

pub mod corpus;
pub mod files;
pub mod final_forms;
pub mod gpu;
pub mod logs;
pub mod passes;
