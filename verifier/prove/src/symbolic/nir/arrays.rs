//! Loads and stores of arrays.
//!
//! If the index is out of bounds, a load is undefined and a store is undefined behaviour, so any choice of element
//! is right. When nir is compared with a machine program, it is the machine's choice, which uses the low 16
//! bits of a register number: then both programs get the same terms, and nothing has to be proved about indices.

use super::{Nir, SymbolicMachine};
use crate::symbolic::{Oracle, Slot, SymbolicValue};
use ir3_semantics::arithmetic::concrete::mask;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::interp::array_word;
use ir3_semantics::interp::nir::op::ArrayAccess;
use ir3_semantics::terms::Term;
use smallvec::{SmallVec, smallvec};

/// Conditions, and the row that is accessed under each.
type ConditionalRows = SmallVec<[(Term, Slot); 8]>;

/// The elements that an access may refer to.
struct ArrayElements {
    /// Elements and their conditions; an element whose condition is false is left out.
    list: SmallVec<[(Term, u32); 4]>,
    /// One bit: 1 if the index is in bounds.
    inside: Term,
    /// One bit: 1 if a bit of the index is free.
    free: Term,
}

impl Nir<'_> {
    fn elements<O: Oracle>(&self, access: &ArrayAccess, machine: &mut SymbolicMachine<'_, O>) -> ArrayElements {
        let never = machine.terms.constant(1, 0);
        let Some(row) = access.index else {
            let always = machine.terms.constant(1, 1);
            let element = u32::try_from(access.base).ok().filter(|&element| element < access.length);
            return match element {
                Some(element) => ArrayElements { list: smallvec![(always, element)], inside: always, free: never },
                None => ArrayElements { list: smallvec![], inside: never, free: never },
            };
        };
        let index = machine.read(row);
        let free = index.any_free(machine.terms);
        let (mut list, mut inside) = (SmallVec::new(), never);
        let bits = 16 - access.stride.max(1).trailing_zeros().min(15);
        let low = machine.terms.extract(32, index.bits, 0, bits);
        for element in 0..access.length {
            // The index is an unsigned word.
            let Ok(wanted) = u32::try_from(i64::from(element) - access.base) else { continue };
            let wanted = machine.terms.constant(32, wanted.into());
            let here = machine.terms.eq(32, index.bits, wanted);
            if machine.terms.as_constant(here) == Some(0) {
                continue;
            }
            inside = machine.terms.or(1, inside, here);
            // No two elements have the same low bits.
            let wanted = u64::from(element.wrapping_sub(access.base as u32)) & mask(bits);
            let wanted = machine.terms.constant(bits, wanted);
            let here = if access.length <= 1 << bits { machine.terms.eq(bits, low, wanted) } else { here };
            list.push((here, element));
        }
        ArrayElements { list, inside, free }
    }

    /// The rows of a word of the elements.
    fn rows<O: Oracle>(
        &self,
        access: &ArrayAccess,
        word: u32,
        elements: &ArrayElements,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> ConditionalRows {
        match self.registers(access, machine) {
            Some((number, offset)) => {
                let all = 0..access.length * access.stride;
                let wanted = all.map(|row| (row, (i64::from(row) - offset - i64::from(word)) as u64 & mask(16)));
                let rows = wanted.map(|(row, wanted)| {
                    let wanted = machine.terms.constant(16, wanted);
                    (machine.terms.eq(16, number, wanted), access.first + row)
                });
                rows.collect()
            }
            None => {
                let row = |element: u32| access.first + element * access.stride + word;
                elements.list.iter().map(|&(here, element)| (here, row(element))).collect()
            }
        }
    }

    /// The register number by which a machine indexes, and the constant added to it; `None` if it finds the same words
    /// as nir does.
    fn registers<O: Oracle>(&self, access: &ArrayAccess, machine: &mut SymbolicMachine<'_, O>) -> Option<(Term, i64)> {
        let fits = access.length * access.stride <= 1 << 16;
        if !self.compared_to_machine || access.stride.is_power_of_two() || !fits {
            return None;
        }
        let number = self.number_of_registers(access, machine)?;
        Some((number, access.base.wrapping_mul(access.stride.into())))
    }

    fn number_of_registers<O: Oracle>(
        &self,
        access: &ArrayAccess,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> Option<Term> {
        let index = machine.read(access.index?).bits;
        let low = machine.terms.extract(32, index, 0, 16);
        let stride = machine.terms.constant(16, access.stride.into());
        Some(machine.terms.mul(16, low, stride))
    }

    /// Loads a word of an element.
    pub(super) fn element<O: Oracle>(
        &self,
        access: &ArrayAccess,
        word: u32,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> SymbolicValue {
        let elements = self.elements(access, machine);
        let undefined = match self.number_of_registers(access, machine) {
            Some(number) => {
                let offset = access.base.wrapping_mul(access.stride.into()).wrapping_add(word.into());
                machine.outside(&array_word(access.array, 0), number, offset)
            }
            None => machine.unknown(),
        };
        let mut value = undefined;
        for (here, row) in self.rows(access, word, &elements, machine).into_iter().rev() {
            let stored = machine.read(row);
            value = machine.choose(here, stored, value);
        }
        if self.compared_to_machine { value } else { machine.choose(elements.inside, value, undefined) }
    }

    /// Stores to an element.
    pub(super) fn array_store<O: Oracle>(&self, access: &ArrayAccess, machine: &mut SymbolicMachine<'_, O>) {
        let elements = self.elements(access, machine);
        let defined = machine.terms.not(1, elements.free);
        let fine = machine.terms.and(1, elements.inside, defined);
        machine.demand(fine, "a write outside of an array");
        for &(word, src) in &access.rows {
            let mut value = machine.read(src);
            if let Some(adapt) = access.adapt {
                value = machine.modify(adapt, value);
                value = machine.oracle.value(machine.terms, value);
            }
            for (here, row) in self.rows(access, word, &elements, machine) {
                let old = machine.read(row);
                let new = machine.choose(here, value, old);
                machine.write(row, new);
            }
        }
    }
}
