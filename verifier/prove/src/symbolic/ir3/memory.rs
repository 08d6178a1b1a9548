//! Indexed accesses: arrays of registers, memory, textures.

use super::Ir3;
use crate::symbolic::environment;
use crate::symbolic::environment::TextureQuery;
use crate::symbolic::memory::{self, AccessPlace, AccessTarget};
use crate::symbolic::run::SymbolicMachine;
use crate::symbolic::{EventSite, Oracle, SymbolicValue, Unsupported};
use ir3_compiler::ir3::access::{MemoryAction, Slot as TextureOperand};
use ir3_compiler::ir3::{AddressSpace, SystemValue, Type};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions;
use ir3_semantics::environment::memory::size_property;
use ir3_semantics::interp::ir3::op;
use ir3_semantics::interp::ir3::op::SlotElements;
use ir3_semantics::interp::ir3::storage::{Read, Write};
use ir3_semantics::operations::byte_offset;
use ir3_semantics::terms::{Term, Terms};
use smallvec::{SmallVec, smallvec};

impl Ir3<'_> {
    /// The conditions under which the lane's index selects each element.
    fn elements<O: Oracle>(
        &self,
        array: &SlotElements,
        offset: i32,
        index: SymbolicValue,
        machine: &mut SymbolicMachine<'_, O>,
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

    pub(super) fn gather<O: Oracle>(
        &self,
        array: &SlotElements,
        offset: i32,
        index: &Read,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> SymbolicValue {
        let index = self.read(index, machine);
        let elements = self.elements(array, offset, index, machine);
        // The index is out of bounds.
        let mut value = match self.places.names.get(&array.slot) {
            Some(name) => {
                let low = machine.terms.extract(32, index.bits, 0, 16);
                machine.outside(&name.to_string(), low, offset.into())
            }
            None => machine.unknown(),
        };
        for &(here, i) in elements.iter().rev() {
            let stored = self.at(array.loc(i), machine);
            value = machine.choose(here, stored, value);
        }
        value
    }

    pub(super) fn scatter<O: Oracle>(
        &self,
        array: &SlotElements,
        offset: i32,
        index: &Read,
        from: &Read,
        machine: &mut SymbolicMachine<'_, O>,
    ) {
        let (index, value) = (self.read(index, machine), self.read(from, machine));
        let elements = self.elements(array, offset, index, machine);
        let mut inside = machine.terms.constant(1, 0);
        for &(here, _) in &elements {
            inside = machine.terms.or(1, inside, here);
        }
        let free = index.any_free(machine.terms);
        let defined = machine.terms.not(1, free);
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

    fn number<O: Oracle>(&self, number: &op::NumberOperand, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        match number {
            op::NumberOperand::Fixed(value) => {
                let bits = machine.terms.constant(32, (*value).into());
                SymbolicValue::defined(machine.terms, bits)
            }
            op::NumberOperand::Field { read, shift, mask } => {
                let value = self.read(read, machine);
                let shift = machine.terms.constant(32, (*shift).into());
                let mask = machine.terms.constant(32, (*mask).into());
                let mut field = |term: Term| {
                    let bits = machine.terms.lshr(32, term, shift);
                    machine.terms.and(32, bits, mask)
                };
                SymbolicValue { bits: field(value.bits), free: field(value.free) }
            }
        }
    }

    /// Reads a resource operand.
    fn resource<O: Oracle>(
        &self,
        resource: &op::ResourceOperand,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> SymbolicValue {
        let index = self.number(&resource.index, machine);
        let set = resource.set.as_ref().map(|set| self.number(set, machine));
        let bits = memory::resource(machine.terms, set.map(|set| set.bits), index.bits);
        if resource.shared {
            memory::one_descriptor(machine, bits);
        }
        let mut parts: SmallVec<[SymbolicValue; 2]> = smallvec![index];
        parts.extend(set);
        let free = machine.any_free(&parts);
        SymbolicValue::free_where(machine.terms, bits, free)
    }

    pub(super) fn access<O: Oracle>(
        &self,
        site: EventSite,
        access: &op::Memory,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> Result<(), Unsupported> {
        let mut values: SmallVec<[SymbolicValue; 6]> = SmallVec::new();
        let mut read = |machine: &mut SymbolicMachine<'_, O>, source: &Read| {
            let value = self.read(source, machine);
            values.push(value);
            value.bits
        };
        let zero = machine.terms.constant(32, 0);
        let mut texel: SmallVec<[Term; 4]> = SmallVec::new();
        let place = match &access.place {
            op::AccessAddress::None => AccessPlace::Texel(SmallVec::new()),
            op::AccessAddress::Linear { base, indices, scale, offset } => {
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
                AccessPlace::Linear { base, index, scale: *scale, offset: *offset }
            }
            op::AccessAddress::Texel(reads) => {
                texel = reads.iter().map(|source| read(machine, source)).collect();
                memory::texel(machine, texel.clone(), access.view())
            }
        };
        let described = access.bytes.as_ref().filter(|bytes| bytes.is_described);
        let is_same = described.map(|bytes| {
            let mut read = |source| read(machine, source);
            let (low, high) = (read(&bytes.low), bytes.high.as_ref().map(&mut read));
            let start = bytes.start.as_ref().map(&mut read);
            let strides: SmallVec<[Term; 3]> = bytes.strides.iter().map(&mut read).collect();
            let terms = &mut *machine.terms;
            let offset = start.map_or(low, |start| terms.sub(32, low, start));
            let is_same = match &place {
                &AccessPlace::Linear { index, scale, .. } => byte_offset::is_of_element(terms, offset, index, scale),
                AccessPlace::Texel(_) => {
                    let place = byte_offset::of_texel(terms, &texel, &strides, bytes.in_words);
                    terms.eq(32, offset, place)
                }
            };
            let high = high.unwrap_or(zero);
            let is_low = terms.eq(32, high, zero);
            terms.and(1, is_same, is_low)
        });
        let mut byte_offset: SmallVec<[Term; 2]> = SmallVec::new();
        if let Some(bytes) = access.bytes.as_ref().filter(|bytes| !bytes.is_described) {
            if machine.oracle.has_printed_shapes() {
                byte_offset.push(read(machine, &bytes.low));
                byte_offset.extend(bytes.high.as_ref().map(|high| read(machine, high)));
            } else {
                machine.oracle.assume(assumptions::BYTE_OFFSET);
            }
        }
        let is_zero = access.padding.as_ref().map(|padding| {
            let padding = read(machine, padding);
            machine.terms.eq(32, padding, zero)
        });
        // No access has both.
        let is_same = is_same.or(is_zero);
        let binding = match &access.resource {
            Some(resource) => {
                let resource = self.resource(resource, machine);
                values.push(resource);
                resource.bits
            }
            None => memory::resource(machine.terms, None, zero),
        };
        let free = machine.any_free(&values);
        let volatile = access.volatile && machine.oracle.names_volatile();
        if access.cached {
            let resource = machine.swept(binding);
            machine.oracle.cached_load(resource);
        }
        let target = AccessTarget::new(machine.terms, (access.space, binding), place, free, is_same);
        let target = AccessTarget { volatile, observed: access.volatile, byte_offset, ..target };
        if access.is_of_texture && !machine.oracle.has_printed_shapes() {
            machine.oracle.assume(assumptions::TEXTURE_OF_IMAGE);
        }
        let bits = access.ty.bits();
        match access.action {
            MemoryAction::Load => {
                for (i, &(component, write)) in access.results.iter().enumerate() {
                    let value = memory::load(machine, site, &target, component, bits);
                    self.result(site.results().part(i), write, value, machine);
                }
            }
            MemoryAction::Store if access.space == AddressSpace::Const => {
                for (component, source) in access.data.iter().enumerate() {
                    let value = self.observed(source, machine);
                    let AccessPlace::Linear { base, index, scale, offset } = target.place else { continue };
                    let address = memory::linear_address(
                        machine.terms,
                        access.space,
                        (base, index),
                        (scale, offset),
                        component as u32,
                        bits / 8,
                    );
                    let word = machine.terms.extract(64, address, 2, 32);
                    let defined = machine.terms.not(1, target.free);
                    machine.demand(defined, "a write to an undefined address");
                    if !self.constants.keeps(machine.terms, word, &value) {
                        memory::store_constant(machine, site.part(component), word, value);
                    }
                }
            }
            MemoryAction::CopyToConsts => {
                if let Some(first) = access.data.first() {
                    let first = self.read(first, machine);
                    memory::copy_to_constants(machine, site, &target, first, access.copied);
                }
            }
            MemoryAction::Store => {
                let data: SmallVec<[(u32, SymbolicValue); 4]> = access
                    .data
                    .iter()
                    .enumerate()
                    .map(|(i, source)| (i as u32, self.observed(source, machine)))
                    .collect();
                let helper = environment::helper_now(machine, self.code.launch);
                memory::store(machine, site, &target, bits, &data, helper);
            }
            MemoryAction::Atomic(op) => {
                let op = op::atomic(op);
                let words = if access.ty == Type::U64 { 2 } else { 1 };
                let compare = if op.compares() { &access.compare[..] } else { &[] };
                let operands: SmallVec<[SymbolicValue; 4]> = (access.data.iter().take(words))
                    .chain(compare.iter().take(words))
                    .map(|source| self.observed(source, machine))
                    .collect();
                let helper = environment::helper_now(machine, self.code.launch);
                let results = memory::atomic(machine, site, &target, (op, bits), &operands, helper);
                for (i, (&(_, write), value)) in access.results.iter().zip(results).enumerate() {
                    self.result(site.results().part(i), write, value, machine);
                }
            }
            MemoryAction::Size | MemoryAction::SplitSize => {
                for (i, &(component, write)) in access.results.iter().enumerate() {
                    let terms = &mut *machine.terms;
                    let is_split = access.action == MemoryAction::SplitSize;
                    let word = match component {
                        0 | 1 if is_split => {
                            let size = memory::buffer_size(terms, target.binding);
                            let part = terms.extract(32, size, 16 * component, 16);
                            terms.zext(16, 32, part)
                        }
                        0 if access.space != AddressSpace::Image => memory::buffer_size(terms, target.binding),
                        _ => {
                            let property = size_property(component, access.dimensions.into(), 0);
                            memory::size_component(terms, target.binding, property)
                        }
                    };
                    let value = SymbolicValue::defined(machine.terms, word);
                    self.result(site.results().part(i), write, value, machine);
                }
            }
            MemoryAction::Prefetch => {}
        }
        Ok(())
    }

    pub(super) fn texture<O: Oracle>(
        &self,
        site: EventSite,
        access: &op::Texture,
        machine: &mut SymbolicMachine<'_, O>,
    ) {
        let texture = self.resource(&access.texture, machine);
        let sampler = self.resource(&access.sampler, machine);
        let mut operands: SmallVec<[(TextureOperand, Term); 8]> = SmallVec::new();
        for (operand, source) in &access.operands {
            let value = self.read(source, machine);
            operands.push((*operand, value.bits));
        }
        if let Some((ij, varying)) = &access.prefetch {
            let ij = [0, 1].map(|i| self.read(&ij[i], machine));
            for (k, operand) in [TextureOperand::X, TextureOperand::Y].into_iter().enumerate() {
                let at = machine.terms.constant(32, u64::from(varying + k as u32));
                let word = environment::varying(machine.terms, at, Some(ij.map(|value| value.bits)), false);
                operands.push((operand, word));
            }
        }
        let mut query = TextureQuery {
            kind: access.kind,
            texture: texture.bits,
            sampler: sampler.bits,
            operands,
            shape: Some(access.shape),
            derivatives: None,
        };
        query.simplify(machine);
        if access.derivatives {
            query.derive(machine, site);
        }
        for (i, &(component, write)) in access.results.iter().enumerate() {
            let (answered, less) = access.answered(component);
            let mut word = environment::texture_result(machine.terms, &query, answered, access.ty);
            if less {
                let minus = machine.terms.constant(32, u64::MAX);
                word = machine.terms.add(32, word, minus);
            }
            let value = SymbolicValue::defined(machine.terms, word);
            let value = self.in_quad_lane(access.quad_lane, write, value, machine);
            self.result(site.results().part(i), write, value, machine);
        }
    }

    /// Returns a result that is written in one lane of each quad only: the others keep their old value.
    fn in_quad_lane<O: Oracle>(
        &self,
        lane: Option<u8>,
        write: Write,
        value: SymbolicValue,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> SymbolicValue {
        let Some(lane) = lane else { return value };
        let old = self.at(write.loc, machine);
        let number = environment::system_value(machine.terms, self.code.launch, SystemValue::SubgroupInvocation, 0);
        let in_quad = machine.terms.extract(32, number, 0, 2);
        let wanted = machine.terms.constant(2, lane.into());
        let is_written = machine.terms.eq(2, in_quad, wanted);
        let mut choose = |new, old| machine.terms.ite(32, is_written, new, old);
        SymbolicValue { bits: choose(value.bits, old.bits), free: choose(value.free, old.free) }
    }
}

/// Computes the index of an element: an address register has 16 bits and a sign.
pub(super) fn address(terms: &mut Terms, word: Term, offset: i32) -> Term {
    let low = terms.extract(32, word, 0, 16);
    let index = terms.sext(16, 32, low);
    let offset = terms.constant(32, i64::from(offset) as u64);
    terms.add(32, index, offset)
}
