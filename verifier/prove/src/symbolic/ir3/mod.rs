//! Symbolic execution of decoded ir3 programs: in SSA form, with registers, and partly allocated.

mod across;
mod effects;
mod memory;
mod uses;

use crate::symbolic::environment;
use crate::symbolic::environment::{Constants, StoredConstants};
use crate::symbolic::graph::{BlockEffects, Graph};
use crate::symbolic::lanes;
use crate::symbolic::lanes::LaneResult;
use crate::symbolic::memory::{scratch_bytes, synchronize};
use crate::symbolic::nir::condition_of;
use crate::symbolic::operation::{Elected, LaneOperation};
use crate::symbolic::run::SymbolicMachine;
use crate::symbolic::{EventSite, Oracle, Slot, SymbolicProgram, SymbolicValue, Unsupported, slot};
use effects::{effects_of, is_vote, stored_words};
use ir3_compiler::ir3::AddressSpace;
use ir3_compiler::ir3::InputKind;
use ir3_compiler::ir3::access::MemoryAction;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions::Uses;
use ir3_semantics::environment::env::{CONST_WORDS, Launch};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::interp::ir3::op;
use ir3_semantics::interp::ir3::op::{
    Condition, ConstWidth, Copies, DecodedEdge, DecodedOp, NumberOperand, Terminator,
};
use ir3_semantics::interp::ir3::storage::{Loc, Modifier, Read, SlotPart, Write};
use ir3_semantics::interp::ir3::{Decoded, InputSlot};
use ir3_semantics::interp::uses::ValueUses;
use ir3_semantics::interp::{OutputSlot, Places};
use ir3_semantics::operations::Kernel;
use ir3_semantics::operations::undefined;
use ir3_semantics::operations::undefined::Free;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Op as TermOp, Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use uses::uses_of;

/// A decoded ir3 program, for symbolic execution.
pub struct Ir3<'a> {
    code: &'a Decoded,
    graph: Graph,
    immediates: FxHashMap<Slot, u32>,
    /// The slots that hold words of the constant file.
    words: FxHashMap<Slot, (u32, ConstWidth)>,
    constants: Constants,
    shared: FxHashSet<Slot>,
    places: &'a Places,
    /// The slots that phis define, in order.
    phis: Vec<Slot>,
    /// The numbers of phis in their text, by the number of their value; empty if values have the same numbers in both
    /// programs.
    phi_numbers: FxHashMap<u32, u32>,
    /// The uses of slots, once something undefined is observed.
    uses: OnceCell<ValueUses>,
}

impl<'a> Ir3<'a> {
    /// Builds the graph of a program.
    ///
    /// # Errors
    /// If a loop cannot be followed, or the preamble may not terminate.
    pub fn new(code: &'a Decoded, places: &'a Places) -> Result<Self, Unsupported> {
        if !code.ends_preamble {
            return Err(Unsupported("an exit of the preamble that does not end it".to_owned()));
        }
        let edges = |block: &op::DecodedBlock| -> SmallVec<[DecodedEdge; 2]> {
            match &block.terminator {
                Terminator::End(..) => smallvec![],
                Terminator::Jump(edge) | Terminator::Skip(_, edge, _) => smallvec![*edge],
                Terminator::Branch(_, yes, no, _) => smallvec![*yes, *no],
            }
        };
        let effects = |block: u32| {
            let block = &code.blocks[block as usize];
            let mut all = BlockEffects::default();
            for op in &code.ops[block.start as usize..block.end as usize] {
                all.extend(effects_of(code, op));
            }
            for edge in edges(block) {
                all.extend(effects_of(code, &DecodedOp::Copies(edge.copies)));
            }
            all
        };
        let successors = code.blocks.iter().map(|block| edges(block).iter().map(|edge| edge.to).collect()).collect();
        let shared = (0..code.blocks.len()).flat_map(|block| effects(block as u32).shared).collect();
        let graph = Graph::new(successors, effects)?;
        let of_edge = |edge: &DecodedEdge| code.copies[edge.copies.start as usize..edge.copies.end as usize].iter();
        let written = code.blocks.iter().flat_map(edges).flat_map(|edge| of_edge(&edge));
        let phis: BTreeSet<Slot> = written.map(|(_, write)| write.loc.slot).collect();
        let phis = phis.into_iter().collect();
        let constants = Constants {
            params: code
                .driver_params
                .iter()
                .map(|param| (param.word.into(), (param.value, param.component.into())))
                .collect(),
            numbers: code.driver_immediates.iter().map(|&(word, bits)| (word.into(), bits)).collect(),
            stored: stored_words(code),
            ..Constants::default()
        };
        Ok(Self {
            code,
            graph,
            immediates: code.immediates.iter().map(|&(bits, slot)| (slot, bits)).collect(),
            words: code.consts.iter().map(|&(word, width, slot)| (slot, (word.into(), width))).collect(),
            constants,
            shared,
            places,
            phis,
            phi_numbers: FxHashMap::default(),
            uses: OnceCell::new(),
        })
    }

    /// Names the undefined operands of phis after these numbers, by the number of the value that a phi defines. No two
    /// phis have one number.
    #[must_use]
    pub fn with_phi_numbers(self, phi_numbers: FxHashMap<u32, u32>) -> Self {
        Self { phi_numbers, ..self }
    }
}

impl SymbolicProgram for Ir3<'_> {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<SymbolicValue> {
        if let Some(&bits) = self.immediates.get(&slot) {
            let bits = terms.constant(32, bits.into());
            return Some(SymbolicValue::defined(terms, bits));
        }
        let &(word, width) = self.words.get(&slot)?;
        let word = self.constants.fixed(terms, self.code.launch, word)?;
        let word = width.of(terms, word);
        Some(SymbolicValue::defined(terms, word))
    }

    fn undefined(&self) -> Option<Slot> {
        self.code.undefined
    }

    fn phis(&self) -> &[Slot] {
        &self.phis
    }

    fn places(&self) -> &Places {
        self.places
    }

    fn scratch_bytes(&self) -> u32 {
        scratch_bytes(self.code.scratch_size)
    }

    fn uses_scratch(&self) -> bool {
        self.code.memory.iter().any(|access| Space::of(access.space) == Some(Space::Scratch))
    }

    fn memories(&self) -> Vec<Space> {
        self.code.memory.iter().filter_map(|access| Space::of(access.space)).collect()
    }

    fn volatile(&self) -> Vec<Space> {
        let loads = self.code.memory.iter().filter(|access| access.volatile && access.action == MemoryAction::Load);
        loads.filter_map(|access| Space::of(access.space)).collect()
    }

    fn marks_volatile(&self) -> bool {
        self.code.memory.iter().any(|access| access.volatile)
    }

    fn has_sums(&self) -> bool {
        false
    }

    fn liberties(&self) -> &[String] {
        &[]
    }

    fn may_cache(&self) -> Vec<Space> {
        self.cached()
    }

    fn cached(&self) -> Vec<Space> {
        let loads = self.code.memory.iter().filter(|access| access.cached);
        loads.filter_map(|access| Space::of(access.space)).collect()
    }

    fn launch(&self) -> Launch {
        self.code.launch
    }

    fn uses(&self) -> Uses {
        let is_seen = |access: &op::Memory| Space::of(access.space).is_some_and(|space| space != Space::Scratch);
        let is_global_load =
            |access: &op::Memory| access.space == AddressSpace::Global && access.action == MemoryAction::Load;
        let is_across = |op: &DecodedOp| {
            use DecodedOp::*;
            matches!(
                op,
                MoveMask { .. }
                    | Vote { .. }
                    | Elect(_)
                    | ReadLane { .. }
                    | Scan(_)
                    | Derivative { .. }
                    | BroadcastActive { .. }
                    | QuadShuffle { .. }
                    | Shuffle { .. }
            )
        };
        Uses {
            textures: !self.code.textures.is_empty(),
            memory: self.code.memory.iter().any(is_seen),
            global_loads: self.code.memory.iter().any(is_global_load),
            // A subgroup vote as a branch looks at other lanes; so does a shared register, which is written for others.
            lanes: !self.shared.is_empty()
                || self.code.ops.iter().any(is_across)
                || self.code.blocks.iter().any(is_vote),
            branches: self.code.blocks.len() > 1,
            rounding: false,
            arrays: self.code.has_register_arrays,
            descriptors: self.has_computed_descriptors(),
            narrow_inputs: self.has_narrow_inputs(),
        }
    }

    fn shared_slots(&self) -> &FxHashSet<Slot> {
        &self.shared
    }

    fn stores_constants(&self) -> bool {
        self.constants.stored != StoredConstants::Nothing
    }

    fn read_constants(&self) -> Option<FxHashSet<u32>> {
        let is_computed = |op: &DecodedOp| matches!(op, DecodedOp::GatherConst { .. });
        let words = self.code.consts.iter().map(|&(word, ..)| u32::from(word) % CONST_WORDS);
        (!self.code.ops.iter().any(is_computed)).then(|| words.collect())
    }

    fn prints_shapes(&self) -> bool {
        true
    }

    fn outputs(&self) -> Vec<OutputSlot> {
        let mut list = self.code.declared.clone();
        list.sort_unstable();
        list.dedup();
        list
    }

    fn block<O: Oracle>(&self, block: u32, machine: &mut SymbolicMachine<'_, O>) -> Result<(), Unsupported> {
        let site =
            EventSite::end(if left_out(Guard::BlockEnds) { self.code.blocks[block as usize].end } else { block });
        let block = &self.code.blocks[block as usize];
        for at in block.start..block.end {
            self.op(at, machine)?;
        }
        let always = machine.terms.constant(1, 1);
        match &block.terminator {
            Terminator::End(start, end) => {
                for &(output, component, read) in &self.code.outputs[*start as usize..*end as usize] {
                    let value = self.observed(&read, machine);
                    machine.write(slot::output(output.base, output.component + component as u8), value);
                }
                machine.end();
            }
            Terminator::Jump(edge) => self.leave(edge, always, site.edge(0), machine),
            Terminator::Skip(condition, edge, _) => {
                // The lanes that are here had the other predicate.
                let holds = self.condition(condition, site, machine);
                let holds = if left_out(Guard::PredicationEnd) { always } else { holds };
                machine.demand(holds, "a predication that ends with another predicate");
                self.leave(edge, always, site.edge(0), machine);
            }
            Terminator::Branch(condition, yes, no, _) => {
                let taken = self.condition(condition, site, machine);
                let otherwise = machine.terms.not(1, taken);
                self.leave(yes, taken, site.edge(1), machine);
                self.leave(no, otherwise, site.edge(0), machine);
            }
        }
        Ok(())
    }
}

impl Ir3<'_> {
    fn has_computed_descriptors(&self) -> bool {
        let code = self.code;
        let of_memory = code.memory.iter().filter_map(|access| access.resource.as_ref());
        let of_textures = code.textures.iter().flat_map(|texture| [&texture.texture, &texture.sampler]);
        of_memory.chain(of_textures).any(|resource| match resource.index {
            NumberOperand::Fixed(_) => false,
            NumberOperand::Field { read, .. } => !self.immediates.contains_key(&read.loc.slot),
        })
    }

    fn has_narrow_inputs(&self) -> bool {
        let is_narrow = |input: &InputSlot| input.half && matches!(input.kind, InputKind::Attribute { .. });
        self.code.inputs.iter().any(is_narrow)
            || self.code.ops.iter().any(|op| matches!(op, DecodedOp::Flat { half: true, .. }))
    }

    fn raw<O: Oracle>(&self, slot: Slot, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        // A word of the constant file that the program stores.
        if let Some(&(word, width)) = self.words.get(&slot)
            && self.constants.fixed(machine.terms, self.code.launch, word).is_none()
        {
            let index = machine.terms.constant(32, word.into());
            let word = self.constants.read(machine, self.code.launch, index);
            let word = width.of(machine.terms, word);
            return SymbolicValue::defined(machine.terms, word);
        }
        machine.read(slot)
    }

    fn at<O: Oracle>(&self, loc: Loc, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        let value = self.raw(loc.slot, machine);
        match loc.part {
            SlotPart::Whole => value,
            SlotPart::Low => value.half(machine.terms, 0),
            SlotPart::High => value.half(machine.terms, 16),
        }
    }

    /// Reads a source component: a word.
    fn read<O: Oracle>(&self, read: &Read, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        let value = self.at(read.loc, machine);
        match read.modifier {
            Modifier::None => value,
            Modifier::Invert => {
                let value = value.low(machine.terms, 1);
                let bit = machine.terms.extract(32, value.bits, 0, 1);
                let bit = machine.terms.not(1, bit);
                SymbolicValue { bits: machine.terms.zext(1, 32, bit), ..value }
            }
            Modifier::Low => value.low(machine.terms, 16),
            Modifier::Apply(modify) => machine.modify(modify, value),
        }
    }

    /// Reads a source component that others see: in an output, in memory, in other lanes. Its undefined bits may be
    /// anything there only if nothing else depends on them (see `interp::uses`).
    fn observed<O: Oracle>(&self, read: &Read, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        let value = self.read(read, machine);
        let is_kept =
            value.is_defined(machine.terms) || self.is_independent(read.loc.slot) || left_out(Guard::FreeOnce);
        if is_kept { value } else { SymbolicValue::defined(machine.terms, value.bits) }
    }

    fn is_independent(&self, slot: Slot) -> bool {
        self.uses.get_or_init(|| uses_of(self.code, &self.graph, self.places)).is_independent(slot)
    }

    /// The value of a slot after a write to it or to one of its halves.
    fn written<O: Oracle>(
        &self,
        loc: Loc,
        value: SymbolicValue,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> SymbolicValue {
        if loc.part == SlotPart::Whole || left_out(Guard::HalfWrite) {
            return value;
        }
        let old = self.raw(loc.slot, machine);
        old.with_half(machine.terms, loc.part == SlotPart::High, value)
    }

    fn store<O: Oracle>(
        &self,
        site: EventSite,
        write: Write,
        value: SymbolicValue,
        machine: &mut SymbolicMachine<'_, O>,
    ) {
        if write.shared {
            let value = match value.is_defined(machine.terms) || self.is_independent(write.loc.slot) {
                true => value,
                false => SymbolicValue::defined(machine.terms, value.bits),
            };
            let half = match write.loc.part {
                SlotPart::Whole => None,
                part => Some(part == SlotPart::High),
            };
            machine.write_shared(site, write.loc.slot, half, value);
        } else {
            let value = self.written(write.loc, value, machine);
            machine.write(write.loc.slot, value);
        }
    }

    /// Writes a computed result.
    fn result<O: Oracle>(
        &self,
        site: EventSite,
        write: Write,
        value: SymbolicValue,
        machine: &mut SymbolicMachine<'_, O>,
    ) {
        let value = machine.oracle.value(machine.terms, value);
        self.store(site, write, value, machine);
    }

    fn copies<O: Oracle>(&self, site: EventSite, copies: &Copies, machine: &mut SymbolicMachine<'_, O>) {
        let list = &self.code.copies[copies.start as usize..copies.end as usize];
        let values: SmallVec<[SymbolicValue; 8]> = list.iter().map(|(read, _)| self.read(read, machine)).collect();
        for (i, ((_, write), value)) in list.iter().zip(values).enumerate() {
            self.store(site.part(i), *write, value, machine);
        }
    }

    /// Reads the operand of a phi. An undefined operand is named after the phi, which all stages keep.
    fn phi_source<O: Oracle>(&self, read: &Read, write: &Write, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        let values = &self.code.values;
        let at = values.partition_point(|&(slot, _)| slot <= write.loc.slot);
        if Some(read.loc.slot) != self.code.undefined || at == 0 {
            return self.read(read, machine);
        }
        let (slot, value) = values[at - 1];
        let rank = self.phis.partition_point(|&phi| phi < write.loc.slot);
        let value = self.phi_numbers.get(&value).copied().unwrap_or(value);
        machine.unknown_phi(&format!("phi {value}.{}", write.loc.slot - slot), rank)
    }

    /// Leaves to another block, writing its phis on the edge.
    fn leave<O: Oracle>(
        &self,
        edge: &DecodedEdge,
        condition: Term,
        site: EventSite,
        machine: &mut SymbolicMachine<'_, O>,
    ) {
        let list = &self.code.copies[edge.copies.start as usize..edge.copies.end as usize];
        let values: SmallVec<[SymbolicValue; 8]> = list
            .iter()
            .map(|(read, write)| {
                let value = self.phi_source(read, write, machine);
                machine.phi_operand(value, || self.is_independent(read.loc.slot))
            })
            .collect();
        let mut writes: SmallVec<[(Slot, SymbolicValue); 2]> = SmallVec::new();
        for (i, (&(_, write), value)) in list.iter().zip(values).enumerate() {
            if write.shared {
                machine.on_path(condition, |machine| self.store(site.part(i), write, value, machine));
                continue;
            }
            // Phis are SSA values, which have slots of their own.
            writes.push((write.loc.slot, value));
        }
        machine.leave(edge.to, condition, writes);
    }

    /// Returns one bit: 1 if a predicate holds. The predicate must be defined.
    fn predicate<O: Oracle>(&self, read: &Read, why: &'static str, machine: &mut SymbolicMachine<'_, O>) -> Term {
        let value = self.read(read, machine);
        condition_of(machine, value, why)
    }

    fn condition<O: Oracle>(
        &self,
        condition: &Condition,
        site: EventSite,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> Term {
        let branch = "a branch on an undefined condition";
        let own = |machine: &mut SymbolicMachine<'_, O>, elected| {
            let operation = LaneOperation::Elect(elected);
            let value = lanes::across(machine, site, operation, SmallVec::new(), LaneResult::Own, 1);
            environment::nonzero(machine.terms, value.bits)
        };
        match condition {
            Condition::Is(a) => self.predicate(a, branch, machine),
            Condition::And(a, b) | Condition::Or(a, b) => {
                let [a, b] = [a, b].map(|read| {
                    let value = self.read(read, machine);
                    lanes::truth(machine, value)
                });
                let is_and = matches!(condition, Condition::And(..));
                let terms = &mut *machine.terms;
                let bits = if is_and { terms.and(1, a.bits, b.bits) } else { terms.or(1, a.bits, b.bits) };
                // An or is a negated conjunction of negations: it is free where that is.
                let mut operand = |value: SymbolicValue, from| {
                    let bits = if is_and { value.bits } else { terms.not(1, value.bits) };
                    Free { bits, free: value.free, from }
                };
                let operands = [operand(a, 1), operand(b, 2)];
                let free = undefined::free(terms, TermOp::And, 1, &[1, 1], &operands);
                lanes::demand_defined(machine, SymbolicValue { bits, free }, branch);
                machine.oracle.condition(machine.terms, bits)
            }
            Condition::Any(a) | Condition::All(a) => {
                let bit = self.predicate(a, branch, machine);
                let arg = SymbolicValue::defined(machine.terms, bit);
                let value = lanes::vote(machine, site, matches!(condition, Condition::Any(_)), arg);
                environment::nonzero(machine.terms, value.bits)
            }
            Condition::First => own(machine, Elected::First),
            Condition::Last => own(machine, Elected::Last),
            Condition::RunsPreamble => {
                let bit = environment::runs_preamble(machine.terms);
                machine.oracle.condition(machine.terms, bit)
            }
        }
    }

    fn op<O: Oracle>(&self, at: u32, machine: &mut SymbolicMachine<'_, O>) -> Result<(), Unsupported> {
        let site = EventSite::operation(at);
        match &self.code.ops[at as usize] {
            DecodedOp::Alu1 { kernel, src, dst } => {
                let operands = [self.read(src, machine)];
                let value = machine.compute(Kernel::One(kernel), &operands)[0];
                self.result(site, *dst, value, machine);
            }
            DecodedOp::Alu2 { kernel, srcs, dst } => {
                let operands = [0, 1].map(|i| self.read(&srcs[i], machine));
                let value = machine.compute(Kernel::Two(kernel), &operands)[0];
                self.result(site, *dst, value, machine);
            }
            DecodedOp::Alu3 { kernel, srcs, dst } => {
                let operands = [0, 1, 2].map(|i| self.read(&srcs[i], machine));
                let value = machine.compute(Kernel::Three(kernel), &operands)[0];
                self.result(site, *dst, value, machine);
            }
            DecodedOp::Select { select: choice, srcs, dst } => {
                let mut operands = [0, 1, 2].map(|i| self.read(&srcs[i], machine));
                let [yes, no] = [choice.yes, choice.no].map(usize::from);
                let both = [operands[yes], operands[no]];
                let independent = |i: usize| self.is_independent(srcs[[yes, no][i]].loc.slot);
                [operands[yes], operands[no]] = machine.selected(both, independent);
                let value = machine.compute(Kernel::Select(*choice), &operands)[0];
                self.result(site, *dst, value, machine);
            }
            DecodedOp::Apply { apply, src, dst } => {
                let value = self.read(src, machine);
                let value = machine.modify(apply, value);
                self.result(site, *dst, value, machine);
            }
            DecodedOp::Copy(src, dst) => {
                let value = self.read(src, machine);
                self.result(site, *dst, value, machine);
            }
            DecodedOp::Truth(src, dst) => {
                let value = self.read(src, machine);
                let bit = lanes::truth(machine, value);
                let [bits, free] = [bit.bits, bit.free].map(|bit| machine.terms.zext(1, 32, bit));
                self.result(site, *dst, SymbolicValue { bits, free }, machine);
            }
            DecodedOp::Copies(copies) => self.copies(site, copies, machine),
            DecodedOp::Input(input) => self.input(site, &self.code.inputs[*input as usize], machine),
            DecodedOp::Gather { array, offset, index, to } => {
                let value = self.gather(array, *offset, index, machine);
                self.result(site, Write { loc: Loc::whole(*to), shared: false }, value, machine);
            }
            DecodedOp::Scatter { array, offset, index, from, .. } => self.scatter(array, *offset, index, from, machine),
            DecodedOp::GatherConst { offset, index, width, to } => {
                let index = self.read(index, machine);
                let element = memory::address(machine.terms, index.bits, *offset);
                let element = machine.swept(element);
                let word = self.constants.read(machine, self.code.launch, element);
                let bits = width.of(machine.terms, word);
                let value = SymbolicValue::defined(machine.terms, bits);
                self.result(site, Write { loc: Loc::whole(*to), shared: false }, value, machine);
            }
            DecodedOp::Kill(predicate, _) => {
                let holds = self.predicate(predicate, "a lane ends by an undefined condition", machine);
                machine.kill(holds);
            }
            DecodedOp::Demote(predicate, _) => {
                let holds = self.predicate(predicate, "a lane ends by an undefined condition", machine);
                environment::demote(machine, holds);
            }
            DecodedOp::Decided(predicate, _) => {
                let value = self.read(predicate, machine);
                lanes::defined_truth(machine, value, lanes::UNDECIDED);
            }
            DecodedOp::Sync(sync) => synchronize(machine, site, *sync),
            DecodedOp::Memory(access) => self.access(site, &self.code.memory[*access as usize], machine)?,
            DecodedOp::Texture(texture) => self.texture(site, &self.code.textures[*texture as usize], machine),
            op => self.across(site, op, machine),
        }
        Ok(())
    }

    fn input<O: Oracle>(&self, site: EventSite, input: &InputSlot, machine: &mut SymbolicMachine<'_, O>) {
        let word = match input.kind {
            InputKind::System(value) => {
                environment::system_value(machine.terms, self.code.launch, value, input.component)
            }
            InputKind::Attribute { base, component } => {
                environment::attribute(machine.terms, base.into(), u32::from(component) + input.component)
            }
        };
        let word = if input.half { environment::low(machine.terms, word, 16) } else { word };
        let value = if input.clash && !left_out(Guard::InputClash) {
            machine.unknown()
        } else {
            SymbolicValue::defined(machine.terms, word)
        };
        self.result(site, input.dst, value, machine);
    }
}
