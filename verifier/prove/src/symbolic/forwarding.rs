//! Loads of values that the same lane has stored before.
//!
//! A load reads the version of its memory that the last store made. A store to another place does not change its value,
//! and one of the same lane to the same place determines it. So the value of a load is looked up through the stores of
//! its segment, from the last one back, as far as nothing else made a version: an atomic, a barrier, a fence, other
//! lanes.
//!
//! All lanes store at once, and a lane reads the stores of any of them to its word. Stores of several lanes to one word
//! have an order here (docs/semantics.md), so it is not enough that the lane itself has stored a value: no other lane
//! may store another one to the same word, and a store to another place must be one of all lanes, to places other than
//! that of this lane. [`Oracle::are_disjoint`] and [`Oracle::lanes_agree`] show that, for any two lanes.

use super::run::SymbolicMachine;
use super::{ElementAccess, Event, Oracle, SymbolicValue};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The maximum number of stores that a load is looked up through.
const STORES: usize = 64;

/// A store of the segment.
#[derive(Clone, Debug)]
struct LaneStore {
    access: ElementAccess,
    value: SymbolicValue,
    /// The version before it.
    before: Term,
}

/// The stores of a segment, by the versions that they make. Those are absent in which lanes of other segments may take
/// part.
#[derive(Debug, Default)]
pub struct SegmentStores {
    made: FxHashMap<Term, LaneStore>,
}

/// The contents of a place, as a lane reads it: the value of the first condition that holds, else the content of memory
/// at a version.
pub(super) struct PlaceContents {
    pub stored: SmallVec<[(Term, SymbolicValue); 1]>,
    pub version: Term,
}

impl PlaceContents {
    /// The value, if it is one that the lane has certainly stored.
    pub(super) fn as_stored(&self, terms: &Terms) -> Option<SymbolicValue> {
        let &(condition, value) = self.stored.first()?;
        (terms.as_constant(condition) == Some(1)).then_some(value)
    }
}

impl<O: Oracle> SymbolicMachine<'_, O> {
    /// Records a store that has made a version.
    pub(super) fn note_store(&mut self, event: &Event, version: Term) {
        let (Some(access), [before], [.., value]) = (event.store.clone(), &event.context.before[..], &event.args[..])
        else {
            return;
        };
        if !event.context.joined || left_out(Guard::StoreJoined) {
            let store = LaneStore { access, value: *value, before: *before };
            self.stores.made.insert(version, store);
        }
    }

    /// The contents of a place for an access of this lane.
    pub(super) fn contents(&mut self, access: &ElementAccess) -> PlaceContents {
        let version = self.oracle.version_of(access.space);
        let mut contents = PlaceContents { stored: SmallVec::new(), version: self.version(version).bits };
        if !self.oracle.forwards_stores() {
            return contents;
        }
        let path = self.terms.conjuncts(access.path);
        for _ in 0..STORES {
            let Some(store) = self.stores.made.get(&contents.version).cloned() else { break };
            let LaneStore { access: stored, value, before } = store;
            let is_same = (stored.space, &stored.place, stored.bits) == (access.space, &access.place, access.bits);
            if is_same {
                // A texel has the format of its image: the loaded value may have been rounded.
                let agree = access.space != Space::Image
                    && value.is_defined(self.terms)
                    && (self.oracle.lanes_agree(self.terms, (&stored, value.bits), (&stored, value.bits))
                        || left_out(Guard::ForwardedAgree));
                if !agree {
                    break;
                }
                let is_sure = self.terms.conjuncts(stored.path).iter().all(|condition| path.contains(condition));
                if is_sure || left_out(Guard::ForwardedPath) {
                    let always = self.terms.constant(1, 1);
                    contents.stored.push((always, value));
                    break;
                }
                contents.stored.push((stored.path, value));
                // A lane that has not stored reads the old value, unless another one has.
                if !self.oracle.lanes_disjoint(self.terms, &stored, access) {
                    break;
                }
            } else if !self.oracle.are_disjoint(self.terms, &stored, access) && !left_out(Guard::ForwardedApart) {
                break;
            }
            contents.version = before;
        }
        contents
    }
}
