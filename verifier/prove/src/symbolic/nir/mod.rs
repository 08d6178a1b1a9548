//! Symbolic execution of nir: the blocks and the graph of the decoded shader. Its operations are in `operations`.

mod arrays;
mod operations;

use super::environment::{Constants, StoredConstants};
use super::graph::{BlockEffects, Graph};
use super::lanes;
use super::memory;
use super::preamble;
use super::run::SymbolicMachine;
use super::{EventKind, Oracle, Slot, SymbolicProgram, SymbolicValue, Unsupported};
use ir3_compiler::ir3::AddressSpace;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions::Uses;
use ir3_semantics::environment::env::{CONST_WORDS, Launch};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::interp;
use ir3_semantics::interp::nir::op::{Action, DecodedOp, EnvironmentInput, MemoryAccess, R};
use ir3_semantics::interp::nir::{Decoded, op};
use ir3_semantics::interp::{OutputSlot, Places};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// The terminator of a block of the list of operations.
#[derive(Clone, Copy, Debug)]
enum BlockEnd {
    /// A branch: the row of the condition, and the two successors.
    If(R, u32, u32),
    /// A jump, or the next block.
    Jump(u32),
    /// The end of the program.
    Done,
}

/// A decoded nir shader, for symbolic execution.
pub struct Nir<'a> {
    code: &'a Decoded,
    graph: Graph,
    /// The operations of each block, and its terminator.
    blocks: Vec<(std::ops::Range<usize>, BlockEnd)>,
    fixed: FxHashMap<Slot, u32>,
    constants: Constants,
    none: FxHashSet<Slot>,
    places: Places,
    /// The slots that phis define, in order.
    phis: Vec<Slot>,
    /// True if the other program is ir3.
    compared_to_machine: bool,
}

/// The operations that begin a block.
fn boundaries(ops: &[DecodedOp]) -> Vec<u32> {
    let mut at = vec![0];
    for (i, op) in ops.iter().enumerate() {
        let i = i as u32;
        match *op {
            DecodedOp::If { .. }
            | DecodedOp::Else { .. }
            | DecodedOp::EndIf { .. }
            | DecodedOp::Break { .. }
            | DecodedOp::Continue { .. }
            | DecodedOp::Return { .. }
            | DecodedOp::Exit { .. } => at.push(i + 1),
            DecodedOp::Gather { .. } => at.push(i),
            DecodedOp::Again { start } => at.extend([start, i + 1]),
            _ => {}
        }
    }
    at.sort_unstable();
    at.dedup();
    at.retain(|&start| (start as usize) < ops.len());
    at
}

impl<'a> Nir<'a> {
    /// Finds the blocks of a shader.
    ///
    /// # Errors
    /// If a loop cannot be followed.
    pub fn new(code: &'a Decoded) -> Result<Self, Unsupported> {
        let ops = &code.code.ops;
        let starts = boundaries(ops);
        let block_at = |op: usize| starts.partition_point(|&start| start as usize <= op) as u32 - 1;
        // Lanes that break wait at the exit with their slot, those that continue wait where they are gathered.
        let (mut exits, mut gathers) = (FxHashMap::default(), FxHashMap::default());
        for (i, op) in ops.iter().enumerate() {
            match *op {
                DecodedOp::Exit { slot, .. } => drop(exits.insert(slot, i)),
                DecodedOp::Gather { slot, .. } => drop(gathers.insert(slot, i)),
                _ => {}
            }
        }
        let mut blocks = Vec::with_capacity(starts.len());
        for (i, &start) in starts.iter().enumerate() {
            let stop = starts.get(i + 1).map_or(ops.len(), |&next| next as usize);
            let next = i as u32 + 1;
            let end = match ops[stop - 1] {
                DecodedOp::If { condition, otherwise, .. } => {
                    BlockEnd::If(condition, next, block_at(otherwise as usize + 1))
                }
                DecodedOp::Else { end, .. } => BlockEnd::Jump(block_at(end as usize + 1)),
                DecodedOp::Break { slot, .. } => BlockEnd::Jump(block_at(exits[&slot] + 1)),
                DecodedOp::Continue { slot, .. } => BlockEnd::Jump(block_at(gathers[&slot])),
                DecodedOp::Again { start } => BlockEnd::Jump(block_at(start as usize)),
                DecodedOp::Return { .. } | DecodedOp::End => BlockEnd::Done,
                _ => BlockEnd::Jump(next),
            };
            blocks.push((start as usize..stop, end));
        }
        let successors = blocks.iter().map(|(_, end)| match *end {
            BlockEnd::If(_, yes, no) => smallvec![yes, no],
            BlockEnd::Jump(to) => smallvec![to],
            BlockEnd::Done => smallvec![],
        });
        let effects = |block: u32| {
            let mut effects = BlockEffects::default();
            for op in &ops[blocks[block as usize].0.clone()] {
                match *op {
                    DecodedOp::StoreConst(_) => effects.events.push(EventKind::Constants),
                    DecodedOp::Sync(sync) => effects.events.push(EventKind::Sync(sync)),
                    DecodedOp::Access(access) => {
                        let access = &code.code.accesses[access as usize];
                        let event = match access.action {
                            Action::Store | Action::Atomic { .. } => Space::of(access.space).map(EventKind::Memory),
                            Action::Load => Space::of(access.space).map(EventKind::Load),
                            Action::CopyToConsts { .. } => Some(EventKind::Constants),
                            Action::Size => None,
                        };
                        effects.events.extend(event);
                    }
                    _ => {}
                }
            }
            effects
        };
        let graph = Graph::new(successors.collect(), effects)?;
        let stores = ops.iter().filter_map(|op| match *op {
            DecodedOp::StoreConst(output) => Some(u32::from(code.code.outputs[output as usize].base)),
            _ => None,
        });
        let copies = ops.iter().flat_map(|op| match *op {
            DecodedOp::Access(access) => match code.code.accesses[access as usize].action {
                Action::CopyToConsts { first, words } => first..first.saturating_add(words),
                _ => 0..0,
            },
            _ => 0..0,
        });
        let words = stores.chain(copies);
        let once = preamble::stored_once(words.clone());
        let constants = Constants { stored: StoredConstants::words(words), once, ..Constants::default() };
        let fixed = code.code.constants.iter().copied().collect();
        let phis: BTreeSet<Slot> = code.code.moves.iter().map(|&(to, _)| to).collect();
        Ok(Self {
            code,
            graph,
            blocks,
            fixed,
            constants,
            none: FxHashSet::default(),
            places: Places::default(),
            phis: phis.into_iter().collect(),
            compared_to_machine: false,
        })
    }
}

impl Nir<'_> {
    fn has_computed_descriptors(&self) -> bool {
        let code = &self.code.code;
        let of_memory = code.accesses.iter().filter_map(|access| access.binding);
        let of_textures = code.textures.iter().flat_map(|texture| [texture.texture, texture.sampler]);
        of_memory.chain(of_textures).filter_map(|resource| resource.row).any(|row| !self.fixed.contains_key(&row))
    }

    fn has_narrow_inputs(&self) -> bool {
        self.code.code.inputs.iter().any(|input| {
            matches!(
                input,
                EnvironmentInput::Attribute(.., true) | EnvironmentInput::Varying { ij: None, half: true, .. }
            )
        })
    }

    /// Sets the words of the constant file that the driver fills for a compiled program.
    #[must_use]
    pub fn with_driver_words_of(mut self, compiled: &interp::ir3::Decoded) -> Self {
        let params = compiled.driver_params.iter();
        self.compared_to_machine = true;
        self.constants.driver =
            params.map(|param| (u32::from(param.word) % CONST_WORDS, (param.value, param.component.into()))).collect();
        let numbers = compiled.driver_immediates.iter();
        self.constants.driver_numbers = numbers.map(|&(word, bits)| (u32::from(word) % CONST_WORDS, bits)).collect();
        self
    }
}

impl SymbolicProgram for Nir<'_> {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<SymbolicValue> {
        let &bits = self.fixed.get(&slot)?;
        let bits = terms.constant(32, bits.into());
        Some(SymbolicValue::defined(terms, bits))
    }

    fn undefined(&self) -> Option<Slot> {
        Some(op::UNDEFINED)
    }

    fn phis(&self) -> &[Slot] {
        &self.phis
    }

    // The words of an array are written by its declaration. No value is in a shared register: this is queried where it
    // does not matter.
    fn places(&self) -> &Places {
        &self.places
    }

    fn scratch_bytes(&self) -> u32 {
        memory::scratch_bytes(self.code.scratch_size)
    }

    fn uses_scratch(&self) -> bool {
        self.code.code.accesses.iter().any(|access| Space::of(access.space) == Some(Space::Scratch))
    }

    fn memories(&self) -> Vec<Space> {
        self.code.code.accesses.iter().filter_map(|access| Space::of(access.space)).collect()
    }

    fn volatile(&self) -> Vec<Space> {
        let loads =
            self.code.code.accesses.iter().filter(|access| access.volatile && matches!(access.action, Action::Load));
        loads.filter_map(|access| Space::of(access.space)).collect()
    }

    fn marks_volatile(&self) -> bool {
        true
    }

    fn has_sums(&self) -> bool {
        !self.code.code.sums.is_empty()
    }

    fn liberties(&self) -> &[String] {
        &self.code.code.promised
    }

    fn may_cache(&self) -> Vec<Space> {
        let loads = self.code.code.accesses.iter().filter(|access| matches!(access.action, Action::Load));
        loads.filter(|access| !access.volatile).filter_map(|access| Space::of(access.space)).collect()
    }

    fn cached(&self) -> Vec<Space> {
        Vec::new()
    }

    fn launch(&self) -> Launch {
        self.code.launch
    }

    fn uses(&self) -> Uses {
        let code = &self.code.code;
        let is_seen = |access: &MemoryAccess| Space::of(access.space).is_some_and(|space| space != Space::Scratch);
        let is_global_load =
            |access: &MemoryAccess| access.space == AddressSpace::Global && matches!(access.action, Action::Load);
        Uses {
            textures: !code.textures.is_empty(),
            memory: code.accesses.iter().any(is_seen),
            global_loads: code.accesses.iter().any(is_global_load),
            lanes: !code.lanes.is_empty(),
            branches: self.blocks.len() > 1,
            rounding: code.open_rounding,
            arrays: false,
            descriptors: self.has_computed_descriptors(),
            narrow_inputs: self.has_narrow_inputs(),
        }
    }

    fn shared_slots(&self) -> &FxHashSet<Slot> {
        &self.none
    }

    fn stores_constants(&self) -> bool {
        self.constants.stored != StoredConstants::Nothing
    }

    fn read_constants(&self) -> Option<FxHashSet<u32>> {
        let words = self.code.code.inputs.iter().filter_map(|input| match *input {
            EnvironmentInput::Const { word, offset: None, .. } => Some(Some(word % CONST_WORDS)),
            EnvironmentInput::Const { offset: Some(_), .. } => Some(None),
            _ => None,
        });
        words.collect()
    }

    fn prints_shapes(&self) -> bool {
        false
    }

    fn outputs(&self) -> Vec<OutputSlot> {
        let mut list = self.code.code.declared.clone();
        list.sort_unstable();
        list.dedup();
        list
    }

    fn block<O: Oracle>(&self, block: u32, machine: &mut SymbolicMachine<'_, O>) -> Result<(), Unsupported> {
        let (range, end) = &self.blocks[block as usize];
        for pc in range.clone() {
            self.op(pc, machine)?;
        }
        let always = machine.terms.constant(1, 1);
        match *end {
            BlockEnd::If(condition, yes, no) => {
                let value = machine.read(condition);
                let taken = condition_of(machine, value, "a branch on an undefined condition");
                machine.leave(yes, taken, SmallVec::new());
                let otherwise = machine.terms.not(1, taken);
                machine.leave(no, otherwise, SmallVec::new());
            }
            BlockEnd::Jump(to) => machine.leave(to, always, SmallVec::new()),
            BlockEnd::Done => machine.end(),
        }
        Ok(())
    }
}

/// Returns one bit: 1 if a word is not 0. The word must be defined.
pub(super) fn condition_of<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    value: SymbolicValue,
    why: &'static str,
) -> Term {
    let truth = lanes::defined_truth(machine, value, why);
    machine.oracle.condition(machine.terms, truth)
}
