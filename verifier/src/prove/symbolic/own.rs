//! A lane's own memory where it is used like registers: at addresses that are numbers.
//!
//! Nobody else sees it, so a word of it at a known address is a location like a register, and a store and a load are moves. That is
//! what spills are. From which address on this holds is the observer's choice ([`Oracle::own_from`]), the same for both programs:
//! - 0, where the source does nothing else with its memory. An access whose address is not known is given up on;
//! - the number of bytes that the source has: there the source has nothing, what it loads from there is undefined and a store
//!   there has no meaning. What is below stays a memory of which nothing is known, so a load at an
//!   unknown address is undefined on both sides where it is not below, or it would see what spills left there.

use super::run::Machine;
use super::{Oracle, Value, slot};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::terms::Term;
use crate::support::guards::{Guard, left_out};

/// What an access is to.
pub enum Own {
    /// Bits of a location: its number, and the lowest bit.
    Location(u32, u32),
    /// Nothing: it is beyond the end.
    Beyond,
    /// The memory of which nothing is known; a load is undefined where this bit is 1.
    Memory(Term),
}

/// Finds out what an access to so many bits (8, 16 or 32) at an address of 64 bits is to.
pub fn find<O: Oracle>(machine: &mut Machine<'_, O>, address: Term, bits: u8) -> Own {
    let never = machine.terms.constant(1, 0);
    let Some(from) = machine.oracle.own_from() else { return Own::Memory(never) };
    let (from, size) = (u64::from(from), u64::from(bits / 8));
    let Some(at) = machine.terms.as_constant(address) else {
        if from < size && !left_out(Guard::OwnAddress) {
            machine.oracle.lost("an address in a lane's own memory that is not a number");
            return Own::Memory(never);
        }
        let last = machine.terms.constant(64, from.saturating_sub(size));
        return Own::Memory(machine.terms.ult(64, last, address));
    };
    if at < from {
        if at + size > from {
            machine.oracle.lost("an access to a lane's own memory that goes over its end");
        }
        return Own::Memory(never);
    }
    if at.checked_add(size).is_none_or(|end| end > u64::from(machine.scratch_bytes)) {
        return Own::Beyond;
    }
    if (size == 1 || at % size != 0) && !left_out(Guard::OwnBytes) {
        machine.oracle.lost("bytes in a lane's own memory");
        return Own::Memory(never);
    }
    Own::Location(slot::own((at / 4) as u32), (at % 4) as u32 * 8)
}

/// What some bits of a location hold, in a word.
pub fn load<O: Oracle>(machine: &mut Machine<'_, O>, (location, low): (u32, u32), bits: u8) -> Value {
    let value = machine.read(location);
    if bits == 32 { value } else { value.half(machine.terms, low) }
}

/// Stores some bits in a location.
pub fn store<O: Oracle>(machine: &mut Machine<'_, O>, (location, low): (u32, u32), bits: u8, value: Value) {
    if bits == 32 || left_out(Guard::OwnHalf) {
        return machine.write(location, value);
    }
    let old = machine.read(location);
    let value = old.with_half(machine.terms, low != 0, value);
    machine.write(location, value);
}
