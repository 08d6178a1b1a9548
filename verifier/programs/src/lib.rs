//! Sources of programs.
//!
//! [`input`] reads the programs of files, [`mesa`] Mesa's logs; [`generator`] makes programs from bytes and seeds. The
//! others make pairs of programs: [`mutations`] random single changes, [`equivalent_pairs`] pairs that are equivalent
//! by construction, [`variants`] are programs with pieces of others, [`divergence`] and [`adversarial`] pairs against
//! the soundness of proofs, [`planted_bugs`] compilers with a bug. [`foreign`] is the interface for programs of other
//! compilers. [`vec4_code`] generates programs of the vec4 backend's language. [`spirv`] writes a nir program for
//! compilers that read SPIR-V. [`coverage`] counts the cells of programs. [`vulkan`] executes programs on devices.
//! [`seeds`] derives the seeds of a campaign, [`numbers`] the inputs of a program that are one number each.

pub mod adversarial;
pub mod coverage;
pub mod divergence;
pub mod equivalent_pairs;
pub mod foreign;
pub mod generator;
pub mod input;
pub mod mesa;
pub mod mutations;
pub mod numbers;
mod pair;
pub mod planted_bugs;
pub mod seeds;
pub mod spirv;
pub mod turnip;
pub mod variants;
pub mod vec4_code;
pub mod vulkan;

pub use pair::{Case, Pair, Question};
