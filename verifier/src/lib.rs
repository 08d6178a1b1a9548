//! Engines that compare two snapshots of a program.

pub mod adversarial;
pub mod assumptions;
pub mod check;
pub mod equivalence;
pub mod generate;
pub mod guards;
pub mod header;
pub mod interp;
pub mod lemmas;
pub mod mesa;
pub mod mutate;
mod panics;
pub mod plants;
mod random;
pub mod reduce;
pub mod registers;
pub mod report;
pub mod rewrites;
pub mod rules;
pub mod semantics;
pub mod solver;
pub mod symbolic;
pub mod terms;
pub mod triage;
pub mod waves;
