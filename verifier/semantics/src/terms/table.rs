//! The table of nodes: finds a node by its operation and arguments.
//!
//! It holds only the numbers of the terms, with their hashes; the nodes themselves are those of the graph.

use super::{Op, Term};
use cranelift_entity::EntityRef;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The number of places of the smallest table.
const LEAST: usize = 64;

/// A hash table of terms. Colliding entries are in the next free places.
#[derive(Default)]
pub(super) struct NodeTable {
    /// A power of two of places, each with a term's number plus 1, or 0.
    places: Vec<u32>,
    /// The hash of each term.
    hashes: Vec<u32>,
}

/// The hash of a node.
pub(super) fn hash_of(op: Op, width: u8, args: &[Term]) -> u32 {
    let mut hasher = FxHasher::default();
    op.hash(&mut hasher);
    hasher.write_u8(width);
    args.iter().for_each(|arg| hasher.write_u32(arg.as_u32()));
    hasher.finish() as u32
}

impl NodeTable {
    /// The term with this hash for which `is` returns true.
    pub fn find(&self, hash: u32, is: impl Fn(Term) -> bool) -> Option<Term> {
        if self.places.is_empty() {
            return None;
        }
        let last = self.places.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let index = self.places[at].checked_sub(1)? as usize;
            if self.hashes[index] == hash && is(Term::new(index)) {
                return Some(Term::new(index));
            }
            at = (at + 1) & last;
        }
    }

    /// Adds the next term: terms are added in their order.
    pub fn insert(&mut self, hash: u32, term: Term) {
        debug_assert_eq!(term.index(), self.hashes.len(), "terms are added in their order");
        self.hashes.push(hash);
        // At most three quarters of the places are taken.
        if self.hashes.len() * 4 > self.places.len() * 3 {
            let size = (2 * self.places.len()).max(LEAST);
            self.places = vec![0; size];
            for index in 0..self.hashes.len() {
                self.place(index);
            }
        } else {
            self.place(term.index());
        }
    }

    fn place(&mut self, index: usize) {
        let last = self.places.len() - 1;
        let mut at = self.hashes[index] as usize & last;
        while self.places[at] != 0 {
            at = (at + 1) & last;
        }
        self.places[at] = index as u32 + 1;
    }
}
