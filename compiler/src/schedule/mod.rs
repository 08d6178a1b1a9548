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

/// Ready instructions that are compared, in the order of their bounds. A bound is at most the key, and faster to compute:
/// it leaves out waits.
trait Bounded {
    fn bound(&self) -> u128;
}

/// Adds an item to a list in the order of bounds.
fn insert_by_bound<T: Bounded>(items: &mut Vec<T>, item: T) {
    let at = items.partition_point(|other| other.bound() < item.bound());
    items.insert(at, item);
}

/// The position of the item with the least key, if there is one, in a list in the order of bounds.
fn position_of_least<T: Bounded>(items: &[T], key: impl Fn(&T) -> u128) -> Option<usize> {
    let (mut at, mut least) = (0, key(items.first()?));
    for (position, item) in items.iter().enumerate().skip(1) {
        if item.bound() >= least {
            break;
        }
        let key = key(item);
        if key < least {
            (at, least) = (position, key);
        }
    }
    Some(at)
}
