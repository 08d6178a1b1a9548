//! The order of instructions within a block.
//!
//! [`before`] puts a program in SSA form in order, when there are no registers yet: results are asked for long before they
//! are read, and as many values are alive at a time as were before, or fewer. What may not change places is said in
//! [`dependencies`], how many registers an order needs in `registers`.

pub mod before;
pub mod dependencies;
mod live_out;
mod registers;
#[cfg(test)]
mod tests;
