//! The live values at a point: vectors, and the pieces of them that are values of their own.
//!
//! By the invariant of [merge sets](super::merge_sets) the live values of a set form a forest, in which a value's
//! ancestors are those whose interval contains its own. Only the *roots* need registers. When a root dies, its pieces
//! stay where they are, as roots.

use super::liveness::Liveness;
use super::merge_sets::MergeSets;
use crate::ir3::{Program, RegClass, RegFile, Value};
use crate::maps::map_of;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// A short list of values.
pub type ValueList = SmallVec<[Value; 8]>;

/// Units of full and half registers, general and shared ones, by [`kind`].
pub type Sums = [u32; 4];

/// Full general registers.
pub const FULL: usize = 0;
/// Half general registers.
pub const HALF: usize = 1;
/// Full shared registers.
pub const SHARED: usize = 2;
/// Half shared registers.
pub const SHARED_HALF: usize = 3;

/// The index of a class in [`Sums`].
pub const fn kind(class: RegClass) -> usize {
    match (class.file, class.half) {
        (RegFile::Shared, false) => SHARED,
        (RegFile::Shared, true) => SHARED_HALF,
        (_, false) => FULL,
        (_, true) => HALF,
    }
}

#[derive(Clone, Copy, Default)]
struct ForestNode {
    /// The next live member of the set.
    next: PackedOption<Value>,
    prev: PackedOption<Value>,
    /// Position in the list of live values, plus one; 0 if the value is not live.
    position: u32,
    is_root: bool,
    /// The index in the sums, and the number of units.
    kind: u8,
    units: u16,
}

/// The live values at a point.
pub struct Forest {
    nodes: SecondaryMap<Value, ForestNode>,
    /// A live member of each set with several members.
    heads: Vec<PackedOption<Value>>,
    live: Vec<Value>,
    /// Units of all roots.
    pub sums: Sums,
}

impl Forest {
    /// Creates an empty forest.
    pub fn new(program: &Program, sets: &MergeSets) -> Self {
        Self {
            nodes: map_of(program.values.len()),
            heads: vec![None.into(); sets.set_count()],
            live: Vec::with_capacity(program.values.len().min(64)),
            sums: Sums::default(),
        }
    }

    /// All live values.
    pub fn live(&self) -> &[Value] {
        &self.live
    }

    /// Returns true if a value is live.
    fn is_live(&self, value: Value) -> bool {
        self.nodes[value].position != 0
    }

    /// Returns true if a value is live and not contained in another live value.
    pub fn is_root(&self, value: Value) -> bool {
        self.nodes[value].is_root
    }

    /// The live members of a value's set, unless it is alone in it.
    fn members(&self, sets: &MergeSets, value: Value) -> impl Iterator<Item = Value> + '_ {
        let mut at = if sets.is_alone(value) { None.into() } else { self.heads[sets.set_of(value)] };
        std::iter::from_fn(move || {
            let value = at.expand()?;
            at = self.nodes[value].next;
            Some(value)
        })
    }

    /// The widest other live value that contains the interval of `value`.
    pub fn container(&self, sets: &MergeSets, value: Value) -> Option<Value> {
        if sets.is_alone(value) {
            return None;
        }
        let interval = sets.interval(value);
        let contains = |&other: &Value| other != value && sets.interval(other).contains(interval);
        // A root, if there is one: no other value is wider.
        let mut found = None;
        for other in self.members(sets, value).filter(contains) {
            if self.nodes[other].is_root {
                return Some(other);
            }
            found = Some(other);
        }
        found
    }

    /// The other live values within the interval of `value`.
    pub fn within<'a>(&'a self, sets: &'a MergeSets, value: Value) -> impl Iterator<Item = Value> + 'a {
        let interval = sets.interval(value);
        self.members(sets, value).filter(move |&other| other != value && interval.contains(sets.interval(other)))
    }

    /// Marks a live value as not a root.
    fn demote(&mut self, value: Value) {
        let node = &mut self.nodes[value];
        node.is_root = false;
        self.sums[usize::from(node.kind)] -= u32::from(node.units);
    }

    /// Marks a live value as a root.
    fn promote(&mut self, value: Value) {
        let node = &mut self.nodes[value];
        node.is_root = true;
        self.sums[usize::from(node.kind)] += u32::from(node.units);
    }

    /// Adds a value; the roots that it contains are appended to `absorbed`. Returns true if it is a root.
    pub fn insert(
        &mut self,
        program: &Program,
        liveness: &Liveness,
        sets: &MergeSets,
        value: Value,
        absorbed: &mut ValueList,
    ) -> bool {
        absorbed.clear();
        if self.is_live(value) {
            return self.nodes[value].is_root;
        }
        let is_root = self.container(sets, value).is_none();
        self.live.push(value);
        let mut next = None.into();
        if !sets.is_alone(value) {
            if is_root {
                absorbed.extend(self.within(sets, value).filter(|&other| self.nodes[other].is_root));
                absorbed.iter().for_each(|&other| self.demote(other));
            }
            next = std::mem::replace(&mut self.heads[sets.set_of(value)], value.into());
            if let Some(next) = next.expand() {
                self.nodes[next].prev = value.into();
            }
        }
        let (kind, units) = (kind(program.values[value].class) as u8, liveness.units(value));
        let position = self.live.len() as u32;
        self.nodes[value] = ForestNode { next, prev: None.into(), position, is_root: false, kind, units };
        if is_root {
            self.promote(value);
        }
        is_root
    }

    /// Removes a value; values that become roots are appended to `exposed`. Returns true if it was a root.
    pub fn remove(&mut self, sets: &MergeSets, value: Value, exposed: &mut ValueList) -> bool {
        exposed.clear();
        let node = self.nodes[value];
        if node.position == 0 {
            return false;
        }
        let is_alone = sets.is_alone(value);
        if !is_alone {
            match node.prev.expand() {
                Some(prev) => self.nodes[prev].next = node.next,
                None => self.heads[sets.set_of(value)] = node.next,
            }
            if let Some(next) = node.next.expand() {
                self.nodes[next].prev = node.prev;
            }
        }
        self.nodes[value] = ForestNode::default();
        self.live.swap_remove(node.position as usize - 1);
        if let Some(&moved) = self.live.get(node.position as usize - 1) {
            self.nodes[moved].position = node.position;
        }
        if !node.is_root {
            return false;
        }
        self.sums[usize::from(node.kind)] -= u32::from(node.units);
        if !is_alone && self.heads[sets.set_of(value)].is_some() {
            exposed.extend(self.within(sets, value));
            // Wide values first: values inside them are not roots.
            exposed.sort_unstable_by_key(|&other| (std::cmp::Reverse(sets.interval(other).units()), other.index()));
            let mut n = 0;
            for i in 0..exposed.len() {
                let other = exposed[i];
                let interval = sets.interval(other);
                if exposed[..n].iter().any(|&root| sets.interval(root).contains(interval)) {
                    continue;
                }
                exposed[n] = other;
                n += 1;
                self.promote(other);
            }
            exposed.truncate(n);
        }
        true
    }

    /// The root that contains a live value.
    pub fn root_of(&self, sets: &MergeSets, value: Value) -> Value {
        if self.nodes[value].is_root {
            return value;
        }
        self.container(sets, value).unwrap_or(value)
    }
}
