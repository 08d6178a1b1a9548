//! The choice between the two allocators.

use super::{Features, Options, RegisterLimit, Rotation};
use crate::arms::Counter;
use crate::graph_colouring;
use crate::ir3::Program;
use crate::regalloc::{self, Carried, Coalescing, Error, spill, spill_arrays};
use crate::target::{RegisterFiles, Target};
use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

/// An allocator of general registers. [Features](Features) of allocation are those of the SSA allocator.
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

/// The allocation of general registers of a compilation.
#[derive(Clone, Copy)]
pub struct Allocation<'a> {
    target: &'a Target,
    allocator: Allocator,
    limit: RegisterLimit,
    features: Features,
}

impl<'a> Allocation<'a> {
    /// The allocation that the options of a compilation determine.
    pub fn of(options: &Options, target: &'a Target) -> Self {
        let Options { allocator, registers: limit, features, .. } = *options;
        Self { target, allocator, limit, features }
    }

    /// The registers that the limit allows for a program before register assignment. Colouring takes more than the
    /// minimum, as many as it needs.
    ///
    /// # Errors
    /// If the program cannot be analysed.
    pub fn files(self, program: &Program) -> Result<RegisterFiles, Error> {
        match self.allocator {
            Allocator::Ssa => regalloc::files_within(program, self.target, self.limit, self.features),
            Allocator::GraphColouring(_) => Ok(self.limit.files(self.target)),
        }
    }

    /// Returns true if arrays have to be spilled.
    pub(super) fn are_arrays_spilled(self, program: &Program, carried: &RefCell<Carried>) -> Result<bool, Error> {
        let spilling = spill_arrays::Spilling {
            is_needed: &|program| self.is_spilling_needed(program, carried),
            run: &|program, carried| self.spill(program, carried),
        };
        let coalescing = Coalescing::of(self.features);
        let (arrays, spilled) = spill_arrays::choose(program, self.target, self.limit, coalescing, &spilling)?;
        let mut carried = carried.borrow_mut();
        (carried.arrays, carried.spilled) = (arrays, spilled);
        Ok(!carried.arrays.is_empty())
    }

    /// Spills the arrays that [`Self::are_arrays_spilled`] has chosen.
    pub(super) fn spill_arrays(self, program: &mut Program, carried: &RefCell<Carried>) {
        let mut carried = carried.borrow_mut();
        carried.analysed = None;
        spill_arrays::run(program, &carried.arrays);
    }

    /// Returns true if values have to be spilled.
    pub(super) fn is_spilling_needed(self, program: &Program, carried: &RefCell<Carried>) -> Result<bool, Error> {
        match self.allocator {
            Allocator::Ssa => {
                let carried = &mut carried.borrow_mut();
                spill::is_needed(program, self.target, self.limit, self.features, carried)
            }
            Allocator::GraphColouring(rotation) => {
                graph_colouring::is_spilling_needed(program, self.target, self.limit, rotation)
            }
        }
    }

    /// Spills as many values as the limit requires.
    pub(super) fn spill(self, program: &mut Program, carried: &RefCell<Carried>) -> Result<(), Error> {
        let mut carried = carried.borrow_mut();
        if let Some(spilled) = carried.spilled.take() {
            (*program, carried.analysed) = (spilled.program, spilled.analysed);
            return Ok(());
        }
        match self.allocator {
            Allocator::Ssa => spill::run(program, self.target, self.limit, self.features, &mut carried),
            Allocator::GraphColouring(rotation) => {
                carried.analysed = None;
                graph_colouring::spill(program, self.target, self.limit, rotation)
            }
        }
    }

    /// Assigns registers.
    pub(super) fn run(self, program: &mut Program, carried: &RefCell<Carried>, counter: &Counter) -> Result<(), Error> {
        match self.allocator {
            Allocator::Ssa => {
                let analysed = carried.take().take(program, self.target, Coalescing::of(self.features))?;
                regalloc::run_analysed(program, &analysed, self.target, self.limit, self.features, counter)
            }
            Allocator::GraphColouring(rotation) => {
                graph_colouring::run(program, self.target, self.limit, rotation, counter)
            }
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
