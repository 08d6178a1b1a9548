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

/// The position of the item with the least key, if there is one. `bound` is at most the key, and faster to compute.
fn position_of_least<T, K: PartialOrd>(items: &[T], bound: impl Fn(&T) -> K, key: impl Fn(&T) -> K) -> Option<usize> {
    let (mut at, mut least) = (0, key(items.first()?));
    for (position, item) in items.iter().enumerate().skip(1) {
        if bound(item) < least {
            let key = key(item);
            if key < least {
                (at, least) = (position, key);
            }
        }
    }
    Some(at)
}
