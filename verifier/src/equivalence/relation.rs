//! What locations of both programs agree at the headers of loops.
//!
//! An *atom* is the bits of a location of one of the programs, or the poison of one of its halves. The relation at a header is a
//! partition of its atoms: what is in one class has the same value, which is a variable, or a term that means the same everywhere
//! (a constant, or what was computed in front of all loops). [`Header::refine`] is
//! given the terms that the atoms have on every way to the header, and splits each class by them. So a class only ever gets
//! smaller, and the partition that no round splits any more is kept by every segment, whatever it started from: all rounds
//! before it were guesses.
//!
//! Which atoms there are is found as segments ask for locations: a location that nobody reads is in no class.

use super::sweep::Side;
use crate::guards::{Guard, left_out};
use crate::semantics::memory::Space;
use crate::symbolic::{Facts, Slot, slot};
use crate::terms::{Term, Terms, VariableKind};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

/// Which part of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Its bits.
    Bits,
    /// Whether its low half is poison.
    LowPoison,
    /// Whether its high half is poison.
    HighPoison,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 3] = [Part::Bits, Part::LowPoison, Part::HighPoison];
}

/// A part of a location of one of the programs.
pub type Atom = (Side, Slot, Part);

/// What a class holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// What it held when the lane came to the first loop: a term of what does not change.
    Fixed(Term),
    /// Something of so many bits; whether all lanes hold the same.
    Variable { width: u32, uniform: bool },
}

/// The relation at a header.
#[derive(Debug, Default)]
pub struct Header {
    /// The class of each atom; `None` for one that was asked for since the last round.
    atoms: IndexMap<Atom, Option<u32>, FxBuildHasher>,
    classes: Vec<Holds>,
}

/// A way to a header: the terms that the atoms have there, in their order; whether it comes from inside of the loop.
pub struct Way {
    /// One for each atom.
    pub terms: Vec<Term>,
    /// It goes back.
    pub back: bool,
    /// The lanes that come here together have left another loop, perhaps one after the other: what all lanes had in an
    /// iteration of it they may have from several.
    pub mixed: bool,
}

impl Header {
    /// The atoms, in their order.
    pub fn atoms(&self) -> impl Iterator<Item = Atom> {
        self.atoms.keys().copied()
    }

    /// One of them.
    pub fn atom(&self, at: usize) -> Option<Atom> {
        self.atoms.get_index(at).map(|(&atom, _)| atom)
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are atoms that no round has put into a class.
    pub fn has_new(&self) -> bool {
        self.atoms.values().any(Option::is_none)
    }

    /// Forgets the classes: with more atoms there may be a larger relation.
    pub fn forget(&mut self) {
        self.classes.clear();
        self.atoms.values_mut().for_each(|class| *class = None);
    }

    /// What an atom holds. One that was not asked for before holds what nothing else holds.
    pub fn term(&mut self, terms: &mut Terms, header: u32, atom: Atom) -> Term {
        match self.atoms.entry(atom).or_insert(None) {
            Some(class) => {
                let class = *class;
                match self.classes[class as usize] {
                    Holds::Fixed(term) => term,
                    Holds::Variable { width, uniform } => {
                        let kind = if uniform { VariableKind::WAVE } else { VariableKind::LANE };
                        let name = format!("class {class} of {width} bits at loop {header}");
                        terms.variable_of(kind.passing(), width, &name)
                    }
                }
            }
            None => {
                let (side, slot, part) = atom;
                let width = match part {
                    Part::Bits if slot == slot::DEMOTED => 1,
                    Part::Bits => 32,
                    _ => 1,
                };
                let name = format!("new {part:?} of {side:?} {slot} at loop {header}");
                terms.variable_of(VariableKind::LANE.passing(), width, &name)
            }
        }
    }

    /// Splits classes by the terms on all ways here. Whether anything has changed.
    pub fn refine(&mut self, terms: &Terms, ways: &[Way], facts: &Facts) -> bool {
        if ways.is_empty() {
            return false;
        }
        // All lanes in a loop are in the same iteration: they enter it together, since the wave runs what stands in front of it first, and go
        // back together. Those that do so on different ways have come from different cut points, and what is uniform for those of one way
        // need not be so for all; but where it is the same lasting term on all of the ways, it is.
        let together = |on_ways: &[Term]| {
            [false, true].into_iter().all(|back| {
                let mut of_kind = ways.iter().zip(on_ways).filter(|(way, _)| way.back == back).map(|(_, &term)| term);
                let first = of_kind.next();
                of_kind.all(|term| Some(term) == first && facts.lasting(terms, term))
            })
        };
        type Key = (Option<u32>, SmallVec<[Term; 3]>);
        let mut numbers: FxHashMap<Key, u32> = FxHashMap::default();
        let mut classes = Vec::new();
        let mut changed = false;
        for (i, (&(_, slot, _), class)) in self.atoms.iter_mut().enumerate() {
            let mut on_ways: SmallVec<[Term; 3]> = ways.iter().map(|way| way.terms[i]).collect();
            if left_out(Guard::RelationWays) {
                on_ways.truncate(1);
            }
            let first = on_ways[0];
            let key = (*class, on_ways);
            if let Some(&number) = numbers.get(&key) {
                changed |= *class != Some(number);
                *class = Some(number);
                continue;
            }
            let old = class.map(|class| self.classes[class as usize]);
            let width = terms.width(first);
            let same = key.1.iter().all(|&term| term == first);
            let holds = match old {
                None | Some(Holds::Fixed(_))
                    if same && (facts.lasting(terms, first) || left_out(Guard::RelationLasting)) =>
                {
                    Holds::Fixed(first)
                }
                _ => {
                    let version = slot::is_version(slot);
                    let uniform = if version {
                        slot != slot::memory(Space::Scratch)
                    } else {
                        !matches!(old, Some(Holds::Variable { uniform: false, .. }))
                            && (together(&key.1) || left_out(Guard::RelationTogether))
                            && key.1.iter().zip(ways).all(|(&term, way)| {
                                (facts.uniform(terms, term) || left_out(Guard::RelationUniform))
                                    && (!way.mixed || facts.lasting(terms, term) || left_out(Guard::RelationMixed))
                            })
                    };
                    Holds::Variable { width, uniform }
                }
            };
            let number = classes.len() as u32;
            changed |= *class != Some(number) || old != Some(holds);
            *class = Some(number);
            numbers.insert(key, number);
            classes.push(holds);
        }
        changed |= classes.len() != self.classes.len();
        self.classes = classes;
        changed
    }
}
