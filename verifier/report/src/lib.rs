//! Reports: failures as folders that can be read, run again, reduced, and attached to a bug report ([`bundle`], [`pair`],
//! [`pass`], [`external`], [`device`]), with the first [`difference`] of the two sides, and as one [`page`]; [`triage`]
//! groups them by cause. Metrics in comparison with Mesa's ([`mesa_comparison`]), and of two runs of [`shader_db`].

pub mod bundle;
pub mod device;
pub mod difference;
pub mod external;
pub mod mesa_comparison;
pub mod page;
pub mod pair;
pub mod pass;
pub mod shader_db;
pub mod triage;
