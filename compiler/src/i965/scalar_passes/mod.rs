//! Passes on scalar programs for Gen7.

pub mod combine_additions;
pub mod dead_code;
pub mod lower_additions;
