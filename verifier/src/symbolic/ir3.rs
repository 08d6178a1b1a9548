//! ir3 on terms: the operations of the decoded program, in SSA form, with registers, and in between.

use super::graph::{Effects, Graph};
use super::lanes::{self, Result as Of, Scan, ScanPart};
use super::nir::{condition_of, select};
use super::run::Machine;
use super::world::{self, Constants, Place, Question, Stored, Target};
use super::{Code, Oracle, Site, Slot, Unsupported, Value, slot};
use crate::interp::ir3::op::{self, Condition, ConstWidth, Copies, Edge, Elements, Op, Terminator, Which};
use crate::interp::ir3::storage::{Loc, Modifier, Part, Read, Write};
use crate::interp::ir3::{Decoded, Input};
use crate::semantics::domain::Domain;
use crate::semantics::env::{CONST_WORDS, Launch};
use crate::semantics::memory::Space;
use crate::terms::{Term, Terms};
use ir3_compiler::ir3::access::{MemoryAction, Slot as Asked, TextureKind};
use ir3_compiler::ir3::{AddressSpace, InputKind, ShuffleMode, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// A program to be run on terms.
pub struct Ir3<'a> {
    code: &'a Decoded,
    graph: Graph,
    immediates: FxHashMap<Slot, u32>,
    /// The slots that hold words of the constant file.
    words: FxHashMap<Slot, (u32, ConstWidth)>,
    constants: Constants,
    shared: FxHashSet<Slot>,
}

/// What an operation writes to shared registers, and which versions it changes.
fn effects_of(code: &Decoded, op: &Op) -> Effects {
    let mut effects = Effects::default();
    let mut note = |write: &Write| {
        if write.shared {
            effects.shared.push(write.loc.slot);
        }
    };
    match op {
        Op::Alu1 { dst, .. }
        | Op::Alu2 { dst, .. }
        | Op::Alu3 { dst, .. }
        | Op::Select { dst, .. }
        | Op::Apply { dst, .. }
        | Op::Copy(_, dst)
        | Op::Truth(_, dst)
        | Op::Interpolate { dst, .. }
        | Op::Flat { dst, .. }
        | Op::MoveMask { dst, .. }
        | Op::Vote { dst, .. }
        | Op::Elect(dst)
        | Op::ReadLane { dst, .. }
        | Op::Derivative { dst, .. }
        | Op::BroadcastActive { dst, .. }
        | Op::QuadShuffle { dst, .. }
        | Op::Shuffle { dst, .. } => note(dst),
        Op::Input(input) => note(&code.inputs[*input as usize].dst),
        Op::Copies(copies) => {
            code.copies[copies.start as usize..copies.end as usize].iter().for_each(|(_, write)| note(write));
        }
        Op::Scan(scan) => {
            scan.exclusive.iter().chain(&scan.inclusive).chain([&scan.reduction]).for_each(note);
        }
        Op::Memory(access) => {
            let access = &code.memory[*access as usize];
            access.results.iter().for_each(|(_, write)| note(write));
            if matches!(access.action, MemoryAction::Store | MemoryAction::Atomic(_)) {
                let version = match access.space {
                    AddressSpace::Const => Some(slot::CONSTANTS),
                    space => Space::of(space).map(slot::memory),
                };
                effects.versions.extend(version);
            }
        }
        Op::Texture(texture) => {
            code.textures[*texture as usize].results.iter().for_each(|(_, write)| note(write));
        }
        // These write elements of arrays, or slots of their own, which are never shared.
        Op::Gather { .. } | Op::Scatter { .. } | Op::GatherConst { .. } | Op::Kill(..) | Op::Demote(..) => {}
    }
    effects
}

impl<'a> Ir3<'a> {
    /// Looks at the shape of a program.
    ///
    /// # Errors
    /// If a loop cannot be followed.
    pub fn new(code: &'a Decoded) -> Result<Self, Unsupported> {
        let edges = |block: &op::Block| -> SmallVec<[Edge; 2]> {
            match &block.terminator {
                Terminator::End(..) => smallvec![],
                Terminator::Jump(edge) | Terminator::Skip(_, edge, _) => smallvec![*edge],
                Terminator::Branch(_, yes, no, _) => smallvec![*yes, *no],
            }
        };
        let effects = |block: u32| {
            let block = &code.blocks[block as usize];
            let mut all = Effects::default();
            for op in &code.ops[block.start as usize..block.end as usize] {
                all.extend(effects_of(code, op));
            }
            for edge in edges(block) {
                all.extend(effects_of(code, &Op::Copies(edge.copies)));
            }
            all
        };
        let successors = code.blocks.iter().map(|block| edges(block).iter().map(|edge| edge.to).collect()).collect();
        let shared = (0..code.blocks.len()).flat_map(|block| effects(block as u32).shared).collect();
        let graph = Graph::new(successors, effects)?;
        let stores: Vec<&op::Memory> = code
            .ops
            .iter()
            .filter_map(|op| match op {
                Op::Memory(access) => Some(&code.memory[*access as usize]),
                _ => None,
            })
            .filter(|access| access.space == AddressSpace::Const && access.action == MemoryAction::Store)
            .collect();
        let constants = Constants {
            params: code
                .driver_params
                .iter()
                .map(|param| (param.word.into(), (param.value, param.component.into())))
                .collect(),
            numbers: code.driver_immediates.iter().map(|&(word, bits)| (word.into(), bits)).collect(),
            stored: stored_words(code, &stores),
        };
        Ok(Self {
            code,
            graph,
            immediates: code.immediates.iter().map(|&(bits, slot)| (slot, bits)).collect(),
            words: code.consts.iter().map(|&(word, width, slot)| (slot, (word.into(), width))).collect(),
            constants,
            shared,
        })
    }
}

/// The words of the constant file that a program stores, where they are known.
fn stored_words(code: &Decoded, stores: &[&op::Memory]) -> Stored {
    if stores.is_empty() {
        return Stored::Nothing;
    }
    let immediate = |read: &Read| code.immediates.iter().find(|&&(_, slot)| slot == read.loc.slot).map(|i| i.0);
    let mut words = Vec::new();
    for access in stores {
        let op::Place::Linear { base: None, indices, scale, offset } = &access.place else { return Stored::Anything };
        let mut index = 0u32;
        for read in indices.iter().flatten() {
            match immediate(read) {
                Some(bits) if matches!(read.modifier, Modifier::None) => index = index.wrapping_add(bits),
                _ => return Stored::Anything,
            }
        }
        for component in 0..access.data.len() as u32 {
            let address = ir3_compiler::ir3::access::linear_address(
                AddressSpace::Const,
                0,
                index,
                *scale,
                *offset,
                component,
                access.ty.bits() / 8,
            );
            words.push((address / 4) as u32 % CONST_WORDS);
        }
    }
    Stored::Words(words)
}

impl Code for Ir3<'_> {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<Value> {
        if let Some(&bits) = self.immediates.get(&slot) {
            let bits = terms.constant(32, bits.into());
            return Some(Value::defined(terms, bits));
        }
        let &(word, width) = self.words.get(&slot)?;
        let word = self.constants.fixed(terms, self.code.launch, word)?;
        let word = width.of(terms, word);
        Some(Value::defined(terms, word))
    }

    fn scratch_bytes(&self) -> u32 {
        world::scratch_bytes(self.code.scratch_size)
    }

    fn uses_scratch(&self) -> bool {
        self.code.memory.iter().any(|access| Space::of(access.space) == Some(Space::Scratch))
    }

    fn launch(&self) -> Launch {
        self.code.launch
    }

    fn shared_slots(&self) -> &FxHashSet<Slot> {
        &self.shared
    }

    fn outputs(&self) -> Vec<(u16, u8)> {
        let mut list: Vec<_> =
            self.code.outputs.iter().map(|&(output, k, _)| (output.base, output.component + k as u8)).collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    fn block<O: Oracle>(&self, block: u32, machine: &mut Machine<'_, O>) -> Result<(), Unsupported> {
        let block = &self.code.blocks[block as usize];
        for at in block.start..block.end {
            self.op(at, machine)?;
        }
        let site = Site::end(block.end);
        let always = machine.terms.constant(1, 1);
        match &block.terminator {
            Terminator::End(start, end) => {
                for &(output, component, read) in &self.code.outputs[*start as usize..*end as usize] {
                    let value = self.read(&read, machine);
                    machine.write(slot::output(output.base, output.component + component as u8), value);
                }
                machine.end();
            }
            Terminator::Jump(edge) => self.leave(edge, always, site.edge(0), machine),
            Terminator::Skip(condition, edge, _) => {
                // The lanes that are here had the other predicate.
                let holds = self.condition(condition, site, machine);
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
    fn raw<O: Oracle>(&self, slot: Slot, machine: &mut Machine<'_, O>) -> Value {
        // A word of the constant file that the program stores.
        if let Some(&(word, width)) = self.words.get(&slot)
            && self.constants.fixed(machine.terms, self.code.launch, word).is_none()
        {
            let index = machine.terms.constant(32, word.into());
            let word = self.constants.read(machine, self.code.launch, index);
            let word = width.of(machine.terms, word);
            return Value::defined(machine.terms, word);
        }
        machine.read(slot)
    }

    fn at<O: Oracle>(&self, loc: Loc, machine: &mut Machine<'_, O>) -> Value {
        let value = self.raw(loc.slot, machine);
        let (low, poison) = match loc.part {
            Part::Whole => {
                let poison = value.any_poison(machine.terms);
                return Value::new(value.bits, poison);
            }
            Part::Low => (0, value.poison[0]),
            Part::High => (16, value.poison[1]),
        };
        let half = machine.terms.extract(32, value.bits, low, 16);
        Value::new(machine.terms.zext(16, 32, half), poison)
    }

    /// A source component: a word.
    fn read<O: Oracle>(&self, read: &Read, machine: &mut Machine<'_, O>) -> Value {
        let value = self.at(read.loc, machine);
        let bits = match read.modifier {
            Modifier::None => value.bits,
            Modifier::Invert => {
                let bit = machine.terms.extract(32, value.bits, 0, 1);
                let bit = machine.terms.not(1, bit);
                machine.terms.zext(1, 32, bit)
            }
            Modifier::Low => world::low(machine.terms, value.bits, 16),
            Modifier::Apply(modify) => (modify.meaning)(machine.terms, value.bits),
        };
        Value { bits, ..value }
    }

    /// What a slot holds after a write to it or to one of its halves.
    fn written<O: Oracle>(&self, loc: Loc, value: Value, machine: &mut Machine<'_, O>) -> Value {
        if loc.part == Part::Whole {
            let poison = value.any_poison(machine.terms);
            return Value::new(value.bits, poison);
        }
        let old = self.raw(loc.slot, machine);
        old.with_half(machine.terms, loc.part == Part::High, value)
    }

    fn store<O: Oracle>(&self, site: Site, write: Write, value: Value, machine: &mut Machine<'_, O>) {
        if write.shared {
            let half = match write.loc.part {
                Part::Whole => None,
                part => Some(part == Part::High),
            };
            machine.write_shared(site, write.loc.slot, half, value);
        } else {
            let value = self.written(write.loc, value, machine);
            machine.write(write.loc.slot, value);
        }
    }

    /// A result that has been computed.
    fn result<O: Oracle>(&self, site: Site, write: Write, value: Value, machine: &mut Machine<'_, O>) {
        let value = machine.oracle.value(machine.terms, value);
        self.store(site, write, value, machine);
    }

    fn copies<O: Oracle>(&self, site: Site, copies: &Copies, machine: &mut Machine<'_, O>) {
        let list = &self.code.copies[copies.start as usize..copies.end as usize];
        let values: SmallVec<[Value; 8]> = list.iter().map(|(read, _)| self.read(read, machine)).collect();
        for (i, ((_, write), value)) in list.iter().zip(values).enumerate() {
            self.store(site.part(i), *write, value, machine);
        }
    }

    /// Goes to another block, writing its phis on the way.
    fn leave<O: Oracle>(&self, edge: &Edge, condition: Term, site: Site, machine: &mut Machine<'_, O>) {
        let list = &self.code.copies[edge.copies.start as usize..edge.copies.end as usize];
        let values: SmallVec<[Value; 8]> = list.iter().map(|(read, _)| self.read(read, machine)).collect();
        let mut writes: SmallVec<[(Slot, Value); 2]> = SmallVec::new();
        for (i, (&(_, write), value)) in list.iter().zip(values).enumerate() {
            if write.shared {
                machine.on_path(condition, |machine| self.store(site.part(i), write, value, machine));
                continue;
            }
            // Phis are values, which have slots of their own.
            let poison = value.any_poison(machine.terms);
            writes.push((write.loc.slot, Value::new(value.bits, poison)));
        }
        machine.leave(edge.to, condition, writes);
    }

    /// Whether a predicate holds, which must be defined: one bit.
    fn predicate<O: Oracle>(&self, read: &Read, why: &'static str, machine: &mut Machine<'_, O>) -> Term {
        let value = self.read(read, machine);
        condition_of(machine, value, why)
    }

    fn condition<O: Oracle>(&self, condition: &Condition, site: Site, machine: &mut Machine<'_, O>) -> Term {
        let branch = "a branch on an undefined condition";
        let vote = |machine: &mut Machine<'_, O>, what: &str, args: SmallVec<[Value; 4]>, result| {
            let value = lanes::across(machine, site, what.to_owned(), args, result, 1);
            world::nonzero(machine.terms, value.bits)
        };
        match condition {
            Condition::Is(a) => self.predicate(a, branch, machine),
            Condition::And(a, b) => {
                let (a, b) = (self.predicate(a, branch, machine), self.predicate(b, branch, machine));
                let both = machine.terms.and(1, a, b);
                machine.oracle.condition(machine.terms, both)
            }
            Condition::Or(a, b) => {
                let (a, b) = (self.predicate(a, branch, machine), self.predicate(b, branch, machine));
                let either = machine.terms.or(1, a, b);
                machine.oracle.condition(machine.terms, either)
            }
            Condition::Any(a) | Condition::All(a) => {
                let bit = self.predicate(a, branch, machine);
                let arg = Value::defined(machine.terms, bit);
                let any = matches!(condition, Condition::Any(_));
                vote(machine, if any { "vote any" } else { "vote all" }, smallvec![arg], Of::Uniform)
            }
            Condition::First => vote(machine, "elect", smallvec![], Of::Own),
            Condition::Last => vote(machine, "elect last", smallvec![], Of::Own),
            Condition::Always => machine.terms.constant(1, 1),
        }
    }

    fn op<O: Oracle>(&self, at: u32, machine: &mut Machine<'_, O>) -> Result<(), Unsupported> {
        let site = Site::operation(at);
        match &self.code.ops[at as usize] {
            Op::Alu1 { kernel, src, dst } => {
                let a = self.read(src, machine);
                let bits = (kernel.meaning)(machine.terms, a.bits);
                self.result(site, *dst, Value { bits, ..a }, machine);
            }
            Op::Alu2 { kernel, srcs, dst } => {
                let [a, b] = [0, 1].map(|i| self.read(&srcs[i], machine));
                let bits = (kernel.meaning)(machine.terms, a.bits, b.bits);
                let poison = machine.poison_of(&[a, b]);
                self.result(site, *dst, Value::new(bits, poison), machine);
            }
            Op::Alu3 { kernel, srcs, dst } => {
                let [a, b, c] = [0, 1, 2].map(|i| self.read(&srcs[i], machine));
                let bits = (kernel.meaning)(machine.terms, a.bits, b.bits, c.bits);
                let poison = machine.poison_of(&[a, b, c]);
                self.result(site, *dst, Value::new(bits, poison), machine);
            }
            Op::Select { select: choice, srcs, dst } => {
                let operands = [0, 1, 2].map(|i| self.read(&srcs[i], machine));
                let value = select(machine, choice, operands);
                self.result(site, *dst, value, machine);
            }
            Op::Apply { apply, src, dst } => {
                let value = self.read(src, machine);
                let bits = (apply.meaning)(machine.terms, value.bits);
                self.result(site, *dst, Value { bits, ..value }, machine);
            }
            Op::Copy(src, dst) => {
                let value = self.read(src, machine);
                self.result(site, *dst, value, machine);
            }
            Op::Truth(src, dst) => {
                let value = self.read(src, machine);
                let bit = world::nonzero(machine.terms, value.bits);
                let bits = machine.terms.zext(1, 32, bit);
                self.result(site, *dst, Value { bits, ..value }, machine);
            }
            Op::Copies(copies) => self.copies(site, copies, machine),
            Op::Input(input) => self.input(site, &self.code.inputs[*input as usize], machine),
            Op::Gather { array, offset, index, to } => {
                let value = self.gather(array, *offset, index, machine);
                self.result(site, Write { loc: Loc::whole(*to), shared: false }, value, machine);
            }
            Op::Scatter { array, offset, index, from, .. } => self.scatter(array, *offset, index, from, machine),
            Op::GatherConst { offset, index, width, to } => {
                let index = self.read(index, machine);
                let element = address(machine.terms, index.bits, *offset);
                let element = machine.swept(element);
                let word = self.constants.read(machine, self.code.launch, element);
                let bits = width.of(machine.terms, word);
                self.result(site, Write { loc: Loc::whole(*to), shared: false }, Value { bits, ..index }, machine);
            }
            Op::Kill(predicate, _) => {
                let holds = self.predicate(predicate, "a lane ends by an undefined condition", machine);
                machine.kill(holds);
            }
            Op::Demote(predicate, _) => {
                let holds = self.predicate(predicate, "a lane ends by an undefined condition", machine);
                world::demote(machine, holds);
            }
            Op::Memory(access) => self.access(site, &self.code.memory[*access as usize], machine)?,
            Op::Texture(texture) => self.texture(site, &self.code.textures[*texture as usize], machine),
            op => self.across(site, op, machine),
        }
        Ok(())
    }

    fn input<O: Oracle>(&self, site: Site, input: &Input, machine: &mut Machine<'_, O>) {
        let word = match input.kind {
            InputKind::System(value) => world::system_value(machine.terms, self.code.launch, value, input.component),
            InputKind::Attribute { base, component } => {
                world::attribute(machine.terms, base.into(), u32::from(component) + input.component)
            }
        };
        let word = if input.half { world::low(machine.terms, word, 16) } else { word };
        let clash = machine.terms.constant(1, input.clash.into());
        self.result(site, input.dst, Value::new(word, clash), machine);
    }

    /// The conditions under which a lane's index is that of each element.
    fn elements<O: Oracle>(
        &self,
        array: &Elements,
        offset: i32,
        index: Value,
        machine: &mut Machine<'_, O>,
    ) -> SmallVec<[(Term, u32); 8]> {
        let element = address(machine.terms, index.bits, offset);
        let element = machine.swept(element);
        let mut list = SmallVec::new();
        for i in 0..array.length {
            let number = machine.terms.constant(32, i.into());
            let here = machine.terms.eq(32, element, number);
            if machine.terms.as_constant(here) != Some(0) {
                list.push((here, i));
            }
        }
        list
    }

    fn gather<O: Oracle>(&self, array: &Elements, offset: i32, index: &Read, machine: &mut Machine<'_, O>) -> Value {
        let index = self.read(index, machine);
        let elements = self.elements(array, offset, index, machine);
        let mut value = Value::undefined(machine.terms);
        for &(here, i) in elements.iter().rev() {
            let stored = self.at(array.loc(i), machine);
            value = machine.choose(here, stored, value);
        }
        let own = value.any_poison(machine.terms);
        let poison = machine.terms.or(1, own, index.poison[0]);
        Value::new(value.bits, poison)
    }

    fn scatter<O: Oracle>(
        &self,
        array: &Elements,
        offset: i32,
        index: &Read,
        from: &Read,
        machine: &mut Machine<'_, O>,
    ) {
        let (index, value) = (self.read(index, machine), self.read(from, machine));
        let elements = self.elements(array, offset, index, machine);
        let mut inside = machine.terms.constant(1, 0);
        for &(here, _) in &elements {
            inside = machine.terms.or(1, inside, here);
        }
        let defined = machine.terms.not(1, index.poison[0]);
        let fine = machine.terms.and(1, inside, defined);
        machine.demand(fine, "a write outside of an array");
        for &(here, i) in &elements {
            let loc = array.loc(i);
            let old = self.at(loc, machine);
            let new = machine.choose(here, value, old);
            let whole = self.written(loc, new, machine);
            machine.write(loc.slot, whole);
        }
    }

    fn number<O: Oracle>(&self, number: &op::Number, machine: &mut Machine<'_, O>) -> Value {
        match number {
            op::Number::Fixed(value) => {
                let bits = machine.terms.constant(32, (*value).into());
                Value::defined(machine.terms, bits)
            }
            op::Number::Field { read, shift, mask } => {
                let value = self.read(read, machine);
                let shift = machine.terms.constant(32, (*shift).into());
                let mask = machine.terms.constant(32, (*mask).into());
                let bits = machine.terms.lshr(32, value.bits, shift);
                Value { bits: machine.terms.and(32, bits, mask), ..value }
            }
        }
    }

    /// The identity of a resource; see `binding_identity`.
    fn identity<O: Oracle>(&self, resource: &op::Resource, machine: &mut Machine<'_, O>) -> Value {
        let index = self.number(&resource.index, machine);
        let Some(set) = &resource.set else { return index };
        let set = self.number(set, machine);
        let sets = machine.terms.constant(32, 64);
        let first = machine.terms.mul(32, set.bits, sets);
        let bits = machine.terms.add(32, first, index.bits);
        Value::new(bits, machine.terms.or(1, set.poison[0], index.poison[0]))
    }

    fn access<O: Oracle>(
        &self,
        site: Site,
        access: &op::Memory,
        machine: &mut Machine<'_, O>,
    ) -> Result<(), Unsupported> {
        let mut values: SmallVec<[Value; 6]> = SmallVec::new();
        let mut read = |machine: &mut Machine<'_, O>, source: &Read| {
            let value = self.read(source, machine);
            values.push(value);
            value.bits
        };
        let zero = machine.terms.constant(32, 0);
        let place = match &access.place {
            op::Place::None => Place::Texel(SmallVec::new()),
            op::Place::Linear { base, indices, scale, offset } => {
                let base = match base {
                    Some([low, high]) => {
                        let (low, high) = (read(machine, low), read(machine, high));
                        machine.terms.concat(32, high, 32, low)
                    }
                    None => machine.terms.constant(64, 0),
                };
                let mut index = zero;
                for source in indices.iter().flatten() {
                    let word = read(machine, source);
                    index = machine.terms.add(32, index, word);
                }
                Place::Linear { base, index, scale: *scale, offset: *offset }
            }
            op::Place::Texel(reads) => Place::Texel(reads.iter().take(4).map(|source| read(machine, source)).collect()),
        };
        let binding = match &access.resource {
            Some(resource) => {
                let identity = self.identity(resource, machine);
                values.push(identity);
                identity.bits
            }
            None => zero,
        };
        let poison = machine.poison_of(&values);
        let target = Target { space: access.space, binding, place, poison };
        let bits = access.ty.bits();
        match access.action {
            MemoryAction::Load => {
                for (i, &(component, write)) in access.results.iter().enumerate() {
                    let value = world::load(machine, &target, component, bits);
                    self.result(site.results().part(i), write, value, machine);
                }
            }
            MemoryAction::Store if access.space == AddressSpace::Const => {
                for (component, source) in access.data.iter().enumerate() {
                    let value = self.read(source, machine);
                    let Place::Linear { base, index, scale, offset } = target.place else { continue };
                    let address = world::linear_address(
                        machine.terms,
                        access.space,
                        (base, index),
                        (scale, offset),
                        component as u32,
                        bits / 8,
                    );
                    let word = machine.terms.extract(64, address, 2, 32);
                    let defined = machine.terms.not(1, target.poison);
                    machine.demand(defined, "a write to an undefined address");
                    world::store_constant(machine, site.part(component), word, value);
                }
            }
            MemoryAction::Store => {
                let data: SmallVec<[(u32, Value); 4]> =
                    access.data.iter().enumerate().map(|(i, source)| (i as u32, self.read(source, machine))).collect();
                let helper = world::helper_now(machine, self.code.launch);
                world::store(machine, site, &target, bits, &data, helper);
            }
            MemoryAction::Atomic(op) => {
                let op = op::atomic(op);
                let words = if access.ty == Type::U64 { 2 } else { 1 };
                let compare = if op.compares() { &access.compare[..] } else { &[] };
                let operands: SmallVec<[Value; 4]> = (access.data.iter().take(words))
                    .chain(compare.iter().take(words))
                    .map(|source| self.read(source, machine))
                    .collect();
                let helper = world::helper_now(machine, self.code.launch);
                let results = world::atomic(machine, site, &target, (op, bits), &operands, helper);
                for (&(_, write), value) in access.results.iter().zip(results) {
                    self.result(site, write, value, machine);
                }
            }
            MemoryAction::Size | MemoryAction::SplitSize => {
                for (i, &(component, write)) in access.results.iter().enumerate() {
                    let mut word = world::size(machine.terms, access.space, target.binding, component);
                    if access.action == MemoryAction::SplitSize {
                        let part = machine.terms.extract(32, word, if component == 0 { 0 } else { 16 }, 16);
                        word = machine.terms.zext(16, 32, part);
                    }
                    self.result(site.results().part(i), write, Value::new(word, target.poison), machine);
                }
            }
            MemoryAction::Prefetch => {}
        }
        Ok(())
    }

    fn texture<O: Oracle>(&self, site: Site, access: &op::Texture, machine: &mut Machine<'_, O>) {
        let texture = self.identity(&access.texture, machine);
        let sampler = self.identity(&access.sampler, machine);
        let mut values: SmallVec<[Value; 8]> = smallvec![texture, sampler];
        let mut operands: SmallVec<[(Asked, Term); 8]> = SmallVec::new();
        for (asked, source) in &access.operands {
            let value = self.read(source, machine);
            values.push(value);
            operands.push((*asked, value.bits));
        }
        if let Some((ij, varying)) = &access.prefetch {
            let ij = [0, 1].map(|i| self.read(&ij[i], machine));
            for (k, asked) in [Asked::X, Asked::Y].into_iter().enumerate() {
                let at = machine.terms.constant(32, u64::from(varying + k as u32));
                let word = world::varying(machine.terms, at, Some(ij.map(|value| value.bits)), false);
                operands.push((asked, word));
            }
            values.extend(ij);
        }
        let poison = machine.poison_of(&values);
        let question = Question { kind: access.kind, texture: texture.bits, sampler: sampler.bits, operands };
        for (i, &(component, write)) in access.results.iter().enumerate() {
            let mut word = world::answer(machine.terms, &question, component, access.ty);
            if access.levels_add_one && access.kind == TextureKind::Info && component == 2 {
                let minus = machine.terms.constant(32, u64::MAX);
                word = machine.terms.add(32, word, minus);
            }
            self.result(site.results().part(i), write, Value::new(word, poison), machine);
        }
    }

    fn across<O: Oracle>(&self, site: Site, op: &Op, machine: &mut Machine<'_, O>) {
        let (value, dst) = match op {
            Op::Interpolate { varying, ij, half, dst } => {
                let number = self.read(varying, machine);
                let ij = [0, 1].map(|i| self.read(&ij[i], machine));
                let poison = machine.poison_of(&[number, ij[0], ij[1]]);
                let coordinates = Some(ij.map(|value| value.bits));
                (Value::new(world::varying(machine.terms, number.bits, coordinates, *half), poison), *dst)
            }
            Op::Flat { varying, component, half, dst } => {
                let number = self.read(varying, machine);
                let component = machine.terms.constant(32, (*component).into());
                let at = machine.terms.add(32, number.bits, component);
                (Value { bits: world::varying(machine.terms, at, None, *half), ..number }, *dst)
            }
            Op::MoveMask { predicate, word, dst } => {
                let bit = match predicate {
                    Some(predicate) => {
                        let value = self.read(predicate, machine);
                        lanes::truth(machine, value)
                    }
                    None => {
                        let always = machine.terms.constant(1, 1);
                        Value::defined(machine.terms, always)
                    }
                };
                let what = format!("ballot {word}");
                (lanes::across(machine, site, what, smallvec![bit], Of::Uniform, 32), *dst)
            }
            Op::Vote { any, predicate, dst } => {
                let value = self.read(predicate, machine);
                let bit = lanes::truth(machine, value);
                let what = if *any { "vote any" } else { "vote all" };
                (lanes::across(machine, site, what.to_owned(), smallvec![bit], Of::Uniform, 1), *dst)
            }
            Op::Elect(dst) => (lanes::across(machine, site, "elect".to_owned(), smallvec![], Of::Own, 1), *dst),
            Op::ReadLane { which, src, dst } => {
                let value = self.read(src, machine);
                let value = match which {
                    Which::First => lanes::moved(machine, site, "read first".to_owned(), value, &[], Of::Uniform),
                    Which::Last => lanes::moved(machine, site, "read last".to_owned(), value, &[], Of::Uniform),
                    Which::Where(predicate) => {
                        let predicate = self.read(predicate, machine);
                        let bit = lanes::truth(machine, predicate);
                        lanes::moved(machine, site, "read where".to_owned(), value, &[bit], Of::Missing)
                    }
                };
                (value, *dst)
            }
            Op::Scan(scan) => return self.scan(site, scan, machine),
            Op::Derivative { bit, fine, half, src, dst } => {
                let value = self.read(src, machine);
                let what = format!("derivative {bit} {fine} {half}");
                let bits = if *half { 16 } else { 32 };
                (lanes::across(machine, site, what, smallvec![value], Of::Other, bits), *dst)
            }
            Op::BroadcastActive { cluster, src, default, dst } => {
                let (value, kept) = (self.read(src, machine), self.read(default, machine));
                let what = format!("broadcast active {cluster}");
                (lanes::across(machine, site, what, smallvec![value, kept], Of::Other, 32), *dst)
            }
            Op::QuadShuffle { lane, flip, src, dst } => {
                let value = self.read(src, machine);
                let value = match lane {
                    Some(lane) => {
                        let lane = self.read(lane, machine);
                        lanes::moved(machine, site, "quad broadcast".to_owned(), value, &[lane], Of::Other)
                    }
                    None => lanes::moved(machine, site, format!("swap {flip}"), value, &[], Of::Other),
                };
                (value, *dst)
            }
            Op::Shuffle { mode, index, src, dst } => {
                let (value, mut index) = (self.read(src, machine), self.read(index, machine));
                let what = match mode {
                    ShuffleMode::Xor => "xor",
                    ShuffleMode::Up => "up",
                    ShuffleMode::Down => "down",
                    ShuffleMode::RotateDown => "rotate 64",
                    ShuffleMode::RotateUp => {
                        // The other way round.
                        let zero = machine.terms.constant(32, 0);
                        index.bits = machine.terms.sub(32, zero, index.bits);
                        "rotate 64"
                    }
                };
                (lanes::moved(machine, site, format!("shuffle {what}"), value, &[index], Of::Other), *dst)
            }
            _ => unreachable!("the other operations are `op`'s"),
        };
        self.result(site.results(), dst, value, machine);
    }

    fn scan<O: Oracle>(&self, site: Site, scan: &op::Scan, machine: &mut Machine<'_, O>) {
        let mut args: SmallVec<[Value; 3]> =
            smallvec![self.read(&scan.src, machine), self.read(&scan.initial, machine)];
        let exclusive_src = scan.exclusive_src.as_ref().map(|read| self.read(read, machine));
        let step = if scan.clusters { 8 } else { 1 };
        let parts = [
            (ScanPart::Exclusive, scan.exclusive),
            (ScanPart::Inclusive, scan.inclusive),
            (ScanPart::Reduction, Some(scan.reduction)),
        ];
        let mut results: SmallVec<[(Write, Value); 3]> = SmallVec::new();
        for (i, (part, write)) in parts.into_iter().enumerate() {
            let Some(write) = write else { continue };
            args.truncate(2);
            if part == ScanPart::Exclusive {
                args.extend(exclusive_src);
            }
            let scan = Scan { kernel: scan.kernel, step, cluster: 64, part };
            results.push((write, lanes::scan(machine, site.part(i), &scan, &args)));
        }
        for (i, (write, value)) in results.into_iter().enumerate() {
            self.result(site.results().part(i), write, value, machine);
        }
    }
}

/// The index of an element: an address register has 16 bits with a sign.
fn address(terms: &mut Terms, word: Term, offset: i32) -> Term {
    let low = terms.extract(32, word, 0, 16);
    let index = terms.sext(16, 32, low);
    let offset = terms.constant(32, i64::from(offset) as u64);
    terms.add(32, index, offset)
}
