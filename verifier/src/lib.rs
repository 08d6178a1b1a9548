//! Engines that compare two snapshots of a program.

pub mod mesa;
