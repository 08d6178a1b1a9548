//! Reports of differences in the order of memory accesses, as reasons of unknown verdicts.

use super::lane::{Operation, Suspect};
use crate::check::Executable;
use ir3_semantics::environment::sync::Sync;
use ir3_semantics::interp::OperationSite;
use std::fmt;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderChange {
    /// The order of two operations is reversed.
    Exchanged,
    /// A load was removed: its replacement was read or stored on the other side of an operation.
    Merged,
    /// A store or atomic that only the program after executes.
    Added,
    /// A store or a volatile load that only the program before executes.
    Removed,
    /// An operation that no run executes, and whose position relative to others changed.
    Unexecuted,
}

/// An access to memory, or a barrier or fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderedOperation {
    /// An access.
    Access(OperationSite),
    /// A barrier or fence, by the number of those that the wave executes before it.
    Sync(u32, Sync),
}

/// A difference of the order of accesses that no run covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOrder {
    /// The kind of the difference.
    pub change: OrderChange,
    /// An operation of the program before, or of the program after if only that one has it.
    pub first: OrderedOperation,
    /// The operation of the program before that it was moved across.
    pub second: Option<OrderedOperation>,
}

impl MemoryOrder {
    pub(super) fn new(suspect: Suspect, before: &Executable, after: &Executable) -> Self {
        let Suspect { change, first, is_of_after, second } = suspect;
        let named = |executable: &Executable, operation| match operation {
            Operation::Access(site) => {
                let unnamed = OperationSite { operation: "an access", instr: site, line: 0 };
                OrderedOperation::Access(executable.site(site).unwrap_or(unnamed))
            }
            Operation::Sync(number, sync) => OrderedOperation::Sync(number, sync),
        };
        let of_first = if is_of_after { after } else { before };
        Self { change, first: named(of_first, first), second: second.map(|second| named(before, second)) }
    }
}

impl fmt::Display for OrderedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(site) => site.fmt(f),
            Self::Sync(number, sync) => write!(f, "{sync} (number {number})"),
        }
    }
}

impl fmt::Display for MemoryOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, first, second } = self;
        match (change, second) {
            (OrderChange::Exchanged, Some(second)) => {
                write!(f, "{first} and {second} have another order, and no run shows that this makes no difference")
            }
            (OrderChange::Merged, Some(second)) => {
                write!(
                    f,
                    "{first} is left out, its value is from the other side of {second}, and no run shows that this makes no difference"
                )
            }
            (OrderChange::Added, _) => {
                write!(f, "{first} of the program after writes a word that the program before does not write")
            }
            (OrderChange::Removed, Some(second)) => {
                write!(f, "{first} is left out, and {second} may access the same word")
            }
            (OrderChange::Unexecuted, _) => {
                write!(f, "no run executes {first}, which has another place among the accesses to its memory")
            }
            (OrderChange::Exchanged | OrderChange::Merged | OrderChange::Removed, None) => {
                write!(f, "{first} is left out")
            }
        }
    }
}
