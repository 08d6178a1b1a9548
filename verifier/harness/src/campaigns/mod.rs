//! Campaigns over many programs. (The package ir3-selftest has those that test the verifier itself.)
//!
//! [`coverage`] counts the cells of a campaign's programs, and chooses programs with rare ones; [`corpus`] are programs
//! that it starts from, and keeps.
//!
//! [`fuzzing`] compiles generated programs with [`register_limits`] and checks them, [`workers`] does so in processes that can be stopped,
//! [`shard`] is a part of a campaign for one of several machines. [`boundaries`] generates the boundaries of
//! compilations one after the other. [`code`] are the programs of a campaign that are not made from nir.
//! [`external`] fuzzes a compiler that is another program. [`words`] takes machine code from words to text and back.

pub mod boundaries;
pub mod code;
pub mod corpus;
pub mod counts;
pub mod coverage;
pub mod external;
pub mod fuzzing;
pub mod register_limits;
pub mod shard;
pub mod words;
pub mod workers;
