//! Passes on vec4 programs, one file each: after "i965/vec4: track and use independently each flag channel" and the
//! patches of its series.

pub mod cmod_propagation;
pub mod dead_code;
pub mod live_variables;
