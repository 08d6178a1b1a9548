//! Scheduling: the order of instructions within a block.
//!
//! [`before`] schedules a program in SSA form before register allocation: loads are issued long before their results
//! are read, and no more values are live at a time than before. [`after`] does it again once registers, moves and
//! spills are known. [`dependencies`] has the constraints on the order, `registers` computes the register need of an
//! order.

pub mod after;
pub mod before;
mod conflicts;
pub mod dependencies;
mod live_out;
mod registers;
#[cfg(test)]
mod tests;

/// The position of the least key, if there is one.
fn position_of_least<K: PartialOrd>(keys: impl Iterator<Item = K>) -> Option<usize> {
    let mut keys = keys.enumerate();
    let (mut at, mut least) = keys.next()?;
    for (position, key) in keys {
        if key < least {
            (at, least) = (position, key);
        }
    }
    Some(at)
}
