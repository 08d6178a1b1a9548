//! Scratch memory that is used like registers: accessed at constant addresses.
//!
//! No other lane sees scratch memory. So a word of it at a known address is a location like a register, and stores and
//! loads are moves, as are spills and reloads. The oracle chooses the address from which on this holds
//! ([`Oracle::scratch_slots_from`]), the same for both programs:
//! - 0, if the source accesses its scratch memory in no other way. An access with an unknown address makes the proof
//!   give up.
//! - The size of the source's scratch memory. The source has nothing from there on: a load there is undefined, and a
//!   store there is undefined behaviour. Below, scratch remains a memory with versions. So on both sides a load at an
//!   unknown address is undefined unless the address is below; otherwise it could read the contents of spill slots.

use super::run::SymbolicMachine;
use super::{Oracle, SymbolicValue, slot};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::Term;

/// The storage that a scratch access refers to.
pub enum ScratchAccess {
    /// Bits of a location: its number, and the lowest bit.
    Location(u32, u32),
    /// The address is out of bounds.
    OutOfBounds,
    /// The memory with versions; a load is undefined where this bit is 1.
    Memory(Term),
}

/// Finds the storage for an access of 8, 16 or 32 bits at a 64-bit address.
pub fn find<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, address: Term, bits: u8) -> ScratchAccess {
    let never = machine.terms.constant(1, 0);
    let Some(from) = machine.oracle.scratch_slots_from() else { return ScratchAccess::Memory(never) };
    let (from, size) = (u64::from(from), u64::from(bits / 8));
    let Some(at) = machine.terms.as_constant(address) else {
        if from < size && !left_out(Guard::OwnAddress) {
            machine.oracle.give_up("an address in scratch memory that is not constant");
            return ScratchAccess::Memory(never);
        }
        let last = machine.terms.constant(64, from.saturating_sub(size));
        return ScratchAccess::Memory(machine.terms.ult(64, last, address));
    };
    if at < from {
        if at + size > from {
            machine.oracle.give_up("an access across the end of scratch memory");
        }
        return ScratchAccess::Memory(never);
    }
    if at.checked_add(size).is_none_or(|end| end > u64::from(machine.scratch_bytes)) {
        return ScratchAccess::OutOfBounds;
    }
    if (size == 1 || at % size != 0) && !left_out(Guard::OwnBytes) {
        machine.oracle.give_up("bytes in scratch memory");
        return ScratchAccess::Memory(never);
    }
    ScratchAccess::Location(slot::scratch((at / 4) as u32), (at % 4) as u32 * 8)
}

/// Loads bits of a location, as a word.
pub fn load<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, (location, low): (u32, u32), bits: u8) -> SymbolicValue {
    let value = machine.read(location);
    if bits == 32 { value } else { value.half(machine.terms, low) }
}

/// Stores bits of a location.
pub fn store<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    (location, low): (u32, u32),
    bits: u8,
    value: SymbolicValue,
) {
    if bits == 32 || left_out(Guard::OwnHalf) {
        return machine.write(location, value);
    }
    let old = machine.read(location);
    let value = old.with_half(machine.terms, low != 0, value);
    machine.write(location, value);
}
