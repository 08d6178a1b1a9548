//! A program whose loops are cut elsewhere.

use super::run::SymbolicMachine;
use super::{Graph, Oracle, Slot, SymbolicProgram, SymbolicValue, Unsupported};
use ir3_semantics::assumptions::Uses;
use ir3_semantics::environment::env::Launch;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::interp::{OutputSlot, Places};
use ir3_semantics::terms::Terms;
use rustc_hash::FxHashSet;

/// A program with the graph of [`Graph::rotated`].
pub struct RecutProgram<'a, C> {
    /// The program.
    pub code: &'a C,
    /// Its graph.
    pub graph: &'a Graph,
}

impl<C: SymbolicProgram> SymbolicProgram for RecutProgram<'_, C> {
    fn graph(&self) -> &Graph {
        self.graph
    }

    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<SymbolicValue> {
        self.code.fixed(terms, slot)
    }

    fn undefined(&self) -> Option<Slot> {
        self.code.undefined()
    }

    fn phis(&self) -> &[Slot] {
        self.code.phis()
    }

    fn places(&self) -> &Places {
        self.code.places()
    }

    fn block<O: Oracle>(&self, block: u32, machine: &mut SymbolicMachine<'_, O>) -> Result<(), Unsupported> {
        self.code.block(block, machine)
    }

    fn scratch_bytes(&self) -> u32 {
        self.code.scratch_bytes()
    }

    fn uses_scratch(&self) -> bool {
        self.code.uses_scratch()
    }

    fn memories(&self) -> Vec<Space> {
        self.code.memories()
    }

    fn volatile(&self) -> Vec<Space> {
        self.code.volatile()
    }

    fn marks_volatile(&self) -> bool {
        self.code.marks_volatile()
    }

    fn has_sums(&self) -> bool {
        self.code.has_sums()
    }

    fn liberties(&self) -> &[String] {
        self.code.liberties()
    }

    fn may_cache(&self) -> Vec<Space> {
        self.code.may_cache()
    }

    fn cached(&self) -> Vec<Space> {
        self.code.cached()
    }

    fn launch(&self) -> Launch {
        self.code.launch()
    }

    fn uses(&self) -> Uses {
        self.code.uses()
    }

    fn shared_slots(&self) -> &FxHashSet<Slot> {
        self.code.shared_slots()
    }

    fn stores_constants(&self) -> bool {
        self.code.stores_constants()
    }

    fn read_constants(&self) -> Option<FxHashSet<u32>> {
        self.code.read_constants()
    }

    fn prints_shapes(&self) -> bool {
        self.code.prints_shapes()
    }

    fn outputs(&self) -> Vec<OutputSlot> {
        self.code.outputs()
    }
}
