//! What locations of both programs agree at the headers of loops.
//!
//! An *atom* is the bits of a location of one of the programs, or the mask of those that are free. The relation at a header is a
//! partition of its atoms: what is in one class has the same value, which is a variable, or a term that means the same everywhere
//! (a constant, or what was computed in front of all loops). [`Header::refine`] is
//! given the terms that the atoms have on every way to the header, and splits each class by them. So a class only ever gets
//! smaller, and the partition that no round splits any more is kept by every segment, whatever it started from: all rounds
//! before it were guesses.
//!
//! A class may hold 16 bits of which an atom has the extension ([`Form`]): one program may keep a half register over the loop and the
//! other its conversion to a word. An atom has the first form that its terms on all ways have, and never goes back to an earlier one.
//!
//! Which atoms there are is found as segments ask for locations: a location that nobody reads is in no class.

use super::sweep::Side;
use crate::prove::symbolic::{Facts, Slot, slot};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::environment::memory::Space;
use crate::semantics::terms::{Op, Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Which part of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Its bits.
    Bits,
    /// The mask of its free bits.
    Free,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 2] = [Part::Bits, Part::Free];
}

/// A part of a location of one of the programs.
pub type Atom = (Side, Slot, Part);

/// What an atom is of what its class holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// The class holds 16 bits, and the atom is that number.
    #[default]
    Unsigned,
    /// The class holds 16 bits, and the atom is that signed number.
    Signed,
    /// The same.
    Whole,
}

impl Form {
    /// An atom of which the class holds this.
    fn of(self, terms: &mut Terms, held: Term) -> Term {
        match self {
            Self::Unsigned => terms.zext(16, 32, held),
            Self::Signed => terms.sext(16, 32, held),
            Self::Whole => held,
        }
    }

    /// What the class would hold of an atom that is this word; `None` if it has another form.
    fn held(self, terms: &mut Terms, word: Term) -> Option<Term> {
        if self == Self::Whole {
            return Some(word);
        }
        if terms.width(word) != 32 {
            return None;
        }
        // The choices between words that have the form; what is chosen from has lower numbers.
        let (mut choices, mut seen, mut found) = (Vec::new(), FxHashSet::default(), FxHashMap::default());
        let mut work = vec![word];
        while let Some(term) = work.pop() {
            if !seen.insert(term) {
                continue;
            }
            let low = terms.extract(32, term, 0, 16);
            if self.of(terms, low) == term {
                found.insert(term, low);
                continue;
            }
            let node = terms.node(term);
            if node.op != Op::Ite {
                return None;
            }
            work.extend_from_slice(&node.args[1..]);
            choices.push(term);
        }
        choices.sort_unstable();
        for term in choices {
            let [condition, yes, no] = terms.node(term).args[..] else { return None };
            let chosen = terms.ite(16, condition, found[&yes], found[&no]);
            found.insert(term, chosen);
        }
        Some(found[&word])
    }
}

/// What is known of an atom.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Its class; `None` if it was asked for since the last round.
    class: Option<u32>,
    form: Form,
}

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
    atoms: IndexMap<Atom, Known, FxBuildHasher>,
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

    /// Returns true if an atom was asked for.
    pub fn has(&self, atom: Atom) -> bool {
        self.atoms.contains_key(&atom)
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are atoms that no round has put into a class.
    pub fn has_new(&self) -> bool {
        self.atoms.values().any(|known| known.class.is_none())
    }

    /// Forgets the classes: with more atoms there may be a larger relation.
    pub fn forget(&mut self) {
        self.classes.clear();
        self.atoms.values_mut().for_each(|known| *known = Known::default());
    }

    /// What an atom holds. One that was not asked for before holds what nothing else holds.
    pub fn term(&mut self, terms: &mut Terms, header: u32, atom: Atom) -> Term {
        let Known { class, form } = *self.atoms.entry(atom).or_default();
        match class {
            Some(class) => {
                let held = match self.classes[class as usize] {
                    Holds::Fixed(term) => term,
                    Holds::Variable { width, uniform } => {
                        let kind = if uniform { VariableKind::WAVE } else { VariableKind::LANE };
                        let name = format!("class {class} of {width} bits at loop {header}");
                        terms.variable_of(kind.passing(), width, &name)
                    }
                };
                form.of(terms, held)
            }
            None => {
                let (side, slot, part) = atom;
                let width = if slot == slot::DEMOTED { 1 } else { 32 };
                let name = format!("new {part:?} of {side:?} {slot} at loop {header}");
                terms.variable_of(VariableKind::LANE.passing(), width, &name)
            }
        }
    }

    /// Splits classes by the terms on all ways here. Whether anything has changed.
    pub fn refine(
        &mut self,
        terms: &mut Terms,
        ways: &[Way],
        facts: &Facts,
        is_of_wave: impl Fn(Atom) -> bool,
    ) -> bool {
        if ways.is_empty() {
            return false;
        }
        // All lanes in a loop are in the same iteration: they enter it together, since the wave runs what stands in front of it first, and go
        // back together. Those that do so on different ways have come from different cut points, and what is uniform for those of one way
        // need not be so for all; but where it is the same lasting term on all of the ways, it is.
        let together = |terms: &Terms, on_ways: &[Term]| {
            [false, true].into_iter().all(|back| {
                let mut of_kind = ways.iter().zip(on_ways).filter(|(way, _)| way.back == back).map(|(_, &term)| term);
                let first = of_kind.next();
                of_kind.all(|term| Some(term) == first && facts.lasting(terms, term))
            })
        };
        type Key = (Option<u32>, SmallVec<[Term; 3]>);
        let mut changed = false;
        let mut keys: Vec<Key> = Vec::with_capacity(self.atoms.len());
        let mut of_wave: FxHashSet<&Key> = FxHashSet::default();
        for (i, Known { class, form }) in self.atoms.values_mut().enumerate() {
            let before = *form;
            let words = ways.iter().map(|way| way.terms[i]);
            let mut on_ways = loop {
                let held = |word| form.held(terms, word);
                let held: Option<SmallVec<[Term; 3]>> = words.clone().map(held).collect();
                match (held, *form) {
                    (Some(held), _) => break held,
                    (None, Form::Unsigned) => *form = Form::Signed,
                    (None, Form::Signed | Form::Whole) => *form = Form::Whole,
                }
            };
            changed |= *form != before;
            if left_out(Guard::RelationWays) {
                on_ways.truncate(1);
            }
            keys.push((*class, on_ways));
        }
        of_wave.extend(self.atoms.keys().zip(&keys).filter(|&(&atom, _)| is_of_wave(atom)).map(|(_, key)| key));
        let mut numbers: FxHashMap<&Key, u32> = FxHashMap::default();
        // The first part of a class keeps its number, so that what is the same as in the round before has the same terms, and nothing is asked
        // twice.
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        let mut classes = self.classes.clone();
        for ((&(_, slot, _), Known { class, .. }), key) in self.atoms.iter_mut().zip(&keys) {
            if let Some(&number) = numbers.get(key) {
                changed |= *class != Some(number);
                *class = Some(number);
                continue;
            }
            let first = key.1[0];
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
                    } else if of_wave.contains(key) {
                        true
                    } else {
                        !matches!(old, Some(Holds::Variable { uniform: false, .. }))
                            && (together(terms, &key.1) || left_out(Guard::RelationTogether))
                            && key.1.iter().zip(ways).all(|(&term, way)| {
                                (facts.uniform(terms, term) || left_out(Guard::RelationUniform))
                                    && (!way.mixed || facts.lasting(terms, term) || left_out(Guard::RelationMixed))
                            })
                    };
                    Holds::Variable { width, uniform }
                }
            };
            let number = class.filter(|&class| taken.insert(class)).unwrap_or_else(|| {
                classes.push(holds);
                classes.len() as u32 - 1
            });
            changed |= *class != Some(number) || old != Some(holds);
            *class = Some(number);
            numbers.insert(key, number);
            classes[number as usize] = holds;
        }
        self.classes = classes;
        changed
    }
}
