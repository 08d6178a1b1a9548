//! The choice between the two allocators.

use super::{AllocationRules, RegisterLimit, Rotation};
use crate::arms::Counter;
use crate::graph_colouring;
use crate::ir3::Program;
use crate::regalloc::{self, Error, spill, spill_arrays};
use crate::target::{RegisterFiles, Target};
use std::fmt;
use std::str::FromStr;

/// An allocator of general registers. The rules are those of the SSA allocator; graph colouring has no use for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allocator {
    /// Register assignment in SSA form.
    #[default]
    Ssa,
    /// Graph colouring, with a rule for round robin.
    GraphColouring(Rotation),
}

/// The name of graph colouring.
const GRAPH_COLOURING: &str = "graph-colouring";

impl Allocator {
    /// The registers that a limit allows for a program before register assignment. Colouring takes more than the minimum, as many as it
    /// needs.
    ///
    /// # Errors
    /// If the program cannot be analysed.
    pub fn files_within(
        self,
        program: &Program,
        target: &Target,
        limit: RegisterLimit,
        rules: AllocationRules,
    ) -> Result<RegisterFiles, Error> {
        match self {
            Self::Ssa => regalloc::files_within(program, target, limit, rules),
            Self::GraphColouring(_) => Ok(limit.files(target)),
        }
    }

    /// Calls a function of [`spill_arrays`] with the spilling of this allocator.
    pub(super) fn with_spilling<T>(
        self,
        target: &Target,
        limit: RegisterLimit,
        rules: AllocationRules,
        call: impl FnOnce(&spill_arrays::Spilling<'_>) -> T,
    ) -> T {
        call(&spill_arrays::Spilling {
            is_needed: &|program| self.is_spilling_needed(program, target, limit, rules),
            run: &|program| self.spill(program, target, limit, rules),
        })
    }

    /// Returns true if values have to be spilled before [`run`](Self::run).
    ///
    /// # Errors
    /// If the program cannot be analysed.
    pub fn is_spilling_needed(
        self,
        program: &Program,
        target: &Target,
        limit: RegisterLimit,
        rules: AllocationRules,
    ) -> Result<bool, Error> {
        match self {
            Self::Ssa => spill::is_needed(program, target, limit, rules),
            Self::GraphColouring(rotation) => graph_colouring::is_spilling_needed(program, target, limit, rotation),
        }
    }

    /// Spills as many values as the limit requires.
    ///
    /// # Errors
    /// If the program does not fit with all values spilled, or the target has no memory for spills.
    pub fn spill(
        self,
        program: &mut Program,
        target: &Target,
        limit: RegisterLimit,
        rules: AllocationRules,
    ) -> Result<(), Error> {
        match self {
            Self::Ssa => spill::run(program, target, limit, rules),
            Self::GraphColouring(rotation) => graph_colouring::spill(program, target, limit, rotation),
        }
    }

    /// Assigns registers.
    ///
    /// # Errors
    /// If the program needs more registers than the limit allows, or is not supported.
    pub fn run(
        self,
        program: &mut Program,
        target: &Target,
        limit: RegisterLimit,
        rules: AllocationRules,
        counter: &Counter,
    ) -> Result<(), Error> {
        match self {
            Self::Ssa => regalloc::run_limited(program, target, limit, rules, counter),
            Self::GraphColouring(rotation) => graph_colouring::run(program, target, limit, rotation, counter),
        }
    }
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssa => f.write_str("ssa"),
            Self::GraphColouring(Rotation::Document) => f.write_str(GRAPH_COLOURING),
            Self::GraphColouring(rotation) => write!(f, "{GRAPH_COLOURING}:{rotation}"),
        }
    }
}

impl FromStr for Allocator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rotation) = text.split_once(':').map_or((text, None), |(name, rotation)| (name, Some(rotation)));
        match (name, rotation) {
            ("ssa", None) => Ok(Self::Ssa),
            (GRAPH_COLOURING, None) => Ok(Self::GraphColouring(Rotation::default())),
            (GRAPH_COLOURING, Some(rotation)) => match Rotation::from_name(rotation) {
                Some(rotation) => Ok(Self::GraphColouring(rotation)),
                None => {
                    let names = Rotation::ALL.map(Rotation::name).join(", ");
                    Err(format!("found the rule `{rotation}`, expected one of {names}"))
                }
            },
            _ => Err(format!("found `{text}`, expected ssa or {GRAPH_COLOURING}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_read_as_they_are_written() {
        for allocator in [Allocator::Ssa].into_iter().chain(Rotation::ALL.map(Allocator::GraphColouring)) {
            assert_eq!(allocator.to_string().parse(), Ok(allocator));
        }
        for wrong in ["", "ssa:old", "graph", "graph-colouring:", "graph-colouring:new"] {
            assert!(wrong.parse::<Allocator>().is_err(), "{wrong}");
        }
    }
}
