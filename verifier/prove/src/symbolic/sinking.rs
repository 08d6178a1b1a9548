//! Stores that are moved out of a loop.
//!
//! A loop that stores to one word again and again may as well store the last value once, after it. The source is
//! executed as if it did so: in the loop ([`SunkStores`](super::graph::SunkStores)) a store only sets pseudo-locations
//! of the lane, a bit and a value, and where lanes have left the loop, those in which the bit is set store the value.
//! The rest of a proof compares that program with the target. It does the same as the source if
//!
//! - the place is the same in all iterations: a term of values computed before all loops,
//! - nothing in the loop observes the memory: it loads nothing from it, has no barriers, fences, atomics, or accesses
//!   that are watched,
//! - different lanes store to different places, as they store in the order of the lanes now, and not in that of the
//!   iterations,
//! - no lane ends, is killed or becomes undefined in the loop after it has stored.
//!
//! The stores of a lane that never leaves the loop are dropped: such a loop has no meaning (docs/semantics.md).

use super::run::SymbolicMachine;
use super::{ElementAccess, Event, EventContext, EventKind, Oracle, SymbolicValue, Versions, slot};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::Term;
use smallvec::SmallVec;

/// The reason why a proof gives up.
const OBSERVED: &str = "a store that cannot be moved out of its loop";

impl<O: Oracle> SymbolicMachine<'_, O> {
    /// Returns true if the current block is in a loop whose stores are sunk.
    fn is_in_sunk_loop(&self) -> bool {
        self.graph.sunk.is_some_and(|sunk| sunk.contains(self.block))
    }

    /// Gives up if something is executed in the loop that must not be there.
    pub(super) fn observe_sunk(&mut self) {
        if self.is_in_sunk_loop() && !left_out(Guard::SunkObserved) {
            self.oracle.give_up(OBSERVED);
        }
    }

    /// Gives up if a load in the loop may read a sunk store.
    pub(super) fn observe_sunk_memory(&mut self, space: Space) {
        let is_sunk = self.graph.sunk.is_some_and(|sunk| {
            sunk.contains(self.block) && self.oracle.version_of(sunk.space) == self.oracle.version_of(space)
        });
        if is_sunk && !left_out(Guard::SunkObserved) {
            self.oracle.give_up(OBSERVED);
        }
    }

    /// Executes an event in the loop. Returns its results if it is a store that is sunk.
    pub(super) fn sink(&mut self, event: &Event, makes: &Versions) -> Option<SmallVec<[Term; 4]>> {
        let sunk = self.graph.sunk.filter(|sunk| sunk.contains(self.block))?;
        let version = self.oracle.version_of(sunk.space);
        if !makes.contains(&version) {
            return None;
        }
        let access = event.store.clone().filter(|access| access.space == sunk.space);
        let (Some(access), [.., value], EventKind::Memory(_)) = (access, &event.args[..], event.kind) else {
            self.observe_sunk();
            return None;
        };
        let is_fixed =
            access.place.iter().all(|&term| self.facts.lasting(self.terms, term)) || left_out(Guard::SunkPlace);
        let is_alone = !self.may_be_joined() && !self.is_mixed();
        if !value.is_defined(self.terms) || !is_fixed || !is_alone {
            self.observe_sunk();
            return None;
        }
        let value = *value;
        let always = self.terms.constant(1, 1);
        let place = ElementAccess { path: always, ..access };
        let number = self.oracle.sunk_place(self.terms, event.site, event.operation, &place);
        // For different lanes.
        let apart = number.is_some() && self.oracle.lanes_disjoint(self.terms, &place, &place);
        let Some(number) = number.filter(|_| apart) else {
            self.observe_sunk();
            return None;
        };
        let [pending, stored] = [slot::pending(number, false), slot::pending(number, true)];
        let (one, old) = (self.terms.constant(32, 1), [pending, stored].map(|slot| self.read(slot)));
        let one = SymbolicValue::defined(self.terms, one);
        for (slot, new, old) in [(pending, one, old[0]), (stored, value, old[1])] {
            let new = self.choose(event.path, new, old);
            self.write(slot, new);
        }
        Some(SmallVec::new())
    }

    /// Executes the sunk stores where the current block is entered from their loop.
    pub(super) fn store_sunk(&mut self) {
        let Some(sunk) = self.graph.sunk.filter(|sunk| sunk.exit == self.block) else { return };
        let mut own: SmallVec<[bool; 4]> = SmallVec::new();
        for number in 0.. {
            let Some((site, operation, access)) = self.oracle.sunk_store(number) else { break };
            let [pending, value] =
                [slot::pending(number, false), slot::pending(number, true)].map(|slot| self.read(slot));
            let zero = self.terms.constant(32, 0);
            let none = self.terms.eq(32, pending.bits, zero);
            let some = self.terms.not(1, none);
            let path = self.path();
            let path = self.terms.and(1, path, some);
            own.push(self.terms.as_constant(path) != Some(0));
            if own.last() == Some(&false) {
                continue;
            }
            let args = access.place.iter().map(|&term| SymbolicValue::defined(self.terms, term)).chain([value]);
            let args: SmallVec<[SymbolicValue; 4]> = args.collect();
            let kind = EventKind::Memory(access.space);
            let store = Some(ElementAccess { path, ..access });
            self.event(Event {
                site: site.sunk(),
                kind,
                operation,
                path,
                args,
                results: SmallVec::new(),
                uniform: true,
                selects: false,
                store,
                context: EventContext::default(),
            });
            // The lane may reach the loop again.
            let done = SymbolicValue::defined(self.terms, zero);
            self.write(slot::pending(number, false), done);
        }
        // Lanes that come from the loop store here, also where this one has not been in it.
        if own.iter().all(|own| !own) && !own.is_empty() {
            self.pass_stores(sunk_block(sunk.exit));
        } else if own.contains(&false) {
            self.oracle.give_up(OBSERVED);
        }
    }
}

/// The number of the block of sunk stores, which are before the first operation of a block.
pub(super) fn sunk_block(exit: u32) -> u32 {
    (1 << 30) + exit
}
