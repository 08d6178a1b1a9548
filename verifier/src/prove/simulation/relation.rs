//! The relation at a loop header: the locations of both programs that agree there.
//!
//! An *atom* is the bits of a location of one of the programs, or the mask of its free bits. The relation is a
//! partition of the atoms. The atoms of a class have the same value, which is a variable, or a term that means the same
//! everywhere (a constant, or a value computed before all loops). [`HeaderRelation::refine`] is given the terms that the atoms
//! have on every path to the header, and splits each class by them. So classes only get smaller, and a partition that
//! no iteration splits is preserved by every segment, whatever it started from: the iterations before it only guess.
//!
//! A class may hold 16 bits of which an atom is the extension ([`AtomForm`]): one program may keep a half register over the
//! loop, and the other its conversion to a word. An atom has the first form that its terms on all paths have, and never
//! goes back to an earlier one. Between two programs of nir, a class may hold one bit: a bool of one program, and in the
//! other (a lifted vec4 program) the word that is all ones where the bool is true. Where an attempt asks for it, a class may hold the 16 or 31
//! low bits of a word whose other bits are proved to be 0 on each path: a counter that is never negative, by the condition of its loop, is
//! the same compared with and without a sign.
//!
//! Atoms are found as segments query locations: a location that is never read is in no class.

use super::sweep::Side;
use crate::prove::symbolic::{Slot, VariableFacts, slot};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::environment::memory::Space;
use crate::semantics::terms::{Op, Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The part of a location that an atom is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomPart {
    /// Its bits.
    Bits,
    /// The mask of its free bits.
    Free,
}

impl AtomPart {
    /// Both parts.
    pub const ALL: [AtomPart; 2] = [AtomPart::Bits, AtomPart::Free];
}

/// A part of a location of one of the programs.
pub type Atom = (Side, Slot, AtomPart);

/// The value of an atom, relative to the value of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum AtomForm {
    /// The class holds one bit, and the atom is its zero extension: a bool.
    Bit,
    /// The class holds one bit, and the atom is its sign extension: all ones or zero.
    Truth,
    /// The class holds 16 bits, and the atom is their zero extension.
    #[default]
    Unsigned,
    /// The class holds 16 bits, and the atom is their sign extension.
    Signed,
    /// The class holds 31 bits, and the atom is their zero extension: a number that is not negative on any path.
    Positive,
    /// The atom is the value of the class.
    Whole,
}

impl AtomForm {
    /// The width of the value of the class.
    fn width(self) -> u32 {
        match self {
            Self::Bit | Self::Truth => 1,
            Self::Unsigned | Self::Signed => 16,
            Self::Positive => 31,
            Self::Whole => 32,
        }
    }

    /// The form that is tried after this one.
    fn next(self) -> Self {
        match self {
            Self::Bit => Self::Truth,
            Self::Truth => Self::Unsigned,
            Self::Unsigned => Self::Signed,
            Self::Signed => Self::Positive,
            Self::Positive | Self::Whole => Self::Whole,
        }
    }

    /// The value of an atom, given the value of its class.
    fn of(self, terms: &mut Terms, class_value: Term) -> Term {
        match self {
            Self::Bit => terms.zext(1, 32, class_value),
            Self::Truth => terms.sext(1, 32, class_value),
            Self::Unsigned => terms.zext(16, 32, class_value),
            Self::Signed => terms.sext(16, 32, class_value),
            Self::Positive => terms.zext(31, 32, class_value),
            Self::Whole => class_value,
        }
    }

    /// The value of the class, given the value of the atom; `None` if the word does not have this form. `is_narrow` says that the word has
    /// so many bits, the others being 0.
    fn class_value(
        self,
        terms: &mut Terms,
        word: Term,
        is_narrow: impl FnOnce(&mut Terms, u32) -> bool,
    ) -> Option<Term> {
        if self == Self::Whole {
            return Some(word);
        }
        if terms.width(word) != 32 {
            return None;
        }
        let by_text = if self == Self::Positive { None } else { self.extended(terms, word) };
        if by_text.is_none() && matches!(self, Self::Unsigned | Self::Positive) && is_narrow(terms, self.width()) {
            return Some(terms.extract(32, word, 0, self.width()));
        }
        by_text
    }

    /// The value of the class, if the word is an extension or a selection between such words.
    fn extended(self, terms: &mut Terms, word: Term) -> Option<Term> {
        // Selections between words of the form; their operands have lower numbers.
        let (mut choices, mut seen, mut found) = (Vec::new(), FxHashSet::default(), FxHashMap::default());
        let mut work = vec![word];
        while let Some(term) = work.pop() {
            if !seen.insert(term) {
                continue;
            }
            let low = terms.extract(32, term, 0, self.width());
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
            let chosen = terms.ite(self.width(), condition, found[&yes], found[&no]);
            found.insert(term, chosen);
        }
        Some(found[&word])
    }
}

/// The state of an atom.
#[derive(Clone, Copy, Debug, Default)]
struct AtomState {
    /// Its class; `None` if it was first queried in this iteration.
    class: Option<u32>,
    form: AtomForm,
}

/// The value of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassValue {
    /// Its value when the lane reached the first loop: a term that does not change.
    Fixed(Term),
    /// A variable of `width` bits; `uniform` if all lanes have the same.
    Variable { width: u32, uniform: bool },
}

/// The relation at one header.
#[derive(Debug, Default)]
pub struct HeaderRelation {
    atoms: IndexMap<Atom, AtomState, FxBuildHasher>,
    classes: Vec<ClassValue>,
    /// The first form of an atom.
    first: AtomForm,
}

/// A path to a header: the terms of the atoms there, in their order.
pub struct Arrival {
    /// One term for each atom.
    pub terms: Vec<Term>,
    /// The condition of the path.
    pub path: Term,
    /// True if the path comes from inside of the loop.
    pub back: bool,
    /// True if the lanes that arrive together have left another loop, perhaps in different iterations: what was uniform
    /// in one iteration of it may have several values here.
    pub mixed: bool,
}

impl HeaderRelation {
    /// Takes words as bools where they have that form.
    pub fn with_bools(&mut self) {
        self.first = AtomForm::Bit;
    }

    /// The atoms, in their order.
    pub fn atoms(&self) -> impl Iterator<Item = Atom> {
        self.atoms.keys().copied()
    }

    /// The atom at an index.
    pub fn atom(&self, at: usize) -> Option<Atom> {
        self.atoms.get_index(at).map(|(&atom, _)| atom)
    }

    /// Returns true if the atom was queried.
    pub fn has(&self, atom: Atom) -> bool {
        self.atoms.contains_key(&atom)
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Returns true if there are atoms that are in no class yet.
    pub fn has_new(&self) -> bool {
        self.atoms.values().any(|known| known.class.is_none())
    }

    /// Forgets the classes: with more atoms there may be a larger relation.
    pub fn forget(&mut self) {
        self.classes.clear();
        let first = AtomState { class: None, form: self.first };
        self.atoms.values_mut().for_each(|known| *known = first);
    }

    /// The value of an atom. An atom that was not queried before gets a value of its own.
    pub fn term(&mut self, terms: &mut Terms, header: u32, atom: Atom) -> Term {
        let AtomState { class, form } = *self.atoms.entry(atom).or_insert(AtomState { class: None, form: self.first });
        match class {
            Some(class) => {
                let class_value = match self.classes[class as usize] {
                    ClassValue::Fixed(term) => term,
                    ClassValue::Variable { width, uniform } => {
                        let kind = if uniform { VariableKind::WAVE } else { VariableKind::LANE };
                        let name = format!("class {class} of {width} bits at loop {header}");
                        terms.variable_of(kind.passing(), width, &name)
                    }
                };
                form.of(terms, class_value)
            }
            None => {
                let (side, slot, part) = atom;
                let width = if slot == slot::DEMOTED { 1 } else { 32 };
                let name = format!("new {part:?} of {side:?} {slot} at loop {header}");
                terms.variable_of(VariableKind::LANE.passing(), width, &name)
            }
        }
    }

    /// Splits classes by the terms on all paths to the header. `is_narrow` returns true if a word, the second term, has so many bits on a
    /// path, the first one. Returns true if anything has changed.
    pub fn refine(
        &mut self,
        terms: &mut Terms,
        arrivals: &[Arrival],
        facts: &VariableFacts,
        is_of_wave: impl Fn(Atom) -> bool,
        is_narrow: &mut dyn FnMut(&mut Terms, [Term; 2], u32) -> bool,
    ) -> bool {
        if arrivals.is_empty() {
            return false;
        }
        // All lanes in a loop are in the same iteration: they enter it together, since the wave runs all code before it
        // first, and go back together. Lanes on different paths come from different cut points, so a term that is
        // uniform on one path need not be uniform for all lanes; but if it is the same lasting term on all paths, it
        // is.
        let together = |terms: &Terms, on_paths: &[Term]| {
            [false, true].into_iter().all(|back| {
                let mut of_kind =
                    arrivals.iter().zip(on_paths).filter(|(arrival, _)| arrival.back == back).map(|(_, &term)| term);
                let first = of_kind.next();
                of_kind.all(|term| Some(term) == first && facts.lasting(terms, term))
            })
        };
        type SplitKey = (Option<u32>, SmallVec<[Term; 3]>);
        let mut changed = false;
        let mut keys: Vec<SplitKey> = Vec::with_capacity(self.atoms.len());
        let mut of_wave: FxHashSet<&SplitKey> = FxHashSet::default();
        for (i, AtomState { class, form }) in self.atoms.values_mut().enumerate() {
            let before = *form;
            let words = arrivals.iter().map(|arrival| (arrival.path, arrival.terms[i]));
            let mut on_paths = loop {
                let class_value =
                    |(path, word)| form.class_value(terms, word, |terms, bits| is_narrow(terms, [path, word], bits));
                let class_value: Option<SmallVec<[Term; 3]>> = words.clone().map(class_value).collect();
                match (class_value, *form) {
                    (Some(class_value), _) => break class_value,
                    (None, before) => *form = before.next(),
                }
            };
            changed |= *form != before;
            if left_out(Guard::RelationWays) {
                on_paths.truncate(1);
            }
            keys.push((*class, on_paths));
        }
        of_wave.extend(self.atoms.keys().zip(&keys).filter(|&(&atom, _)| is_of_wave(atom)).map(|(_, key)| key));
        let mut numbers: FxHashMap<&SplitKey, u32> = FxHashMap::default();
        // The first part of a class keeps its number. So what is unchanged has the same terms in the next iteration,
        // and no query is repeated.
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        let mut classes = self.classes.clone();
        for ((&(_, slot, _), AtomState { class, .. }), key) in self.atoms.iter_mut().zip(&keys) {
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
                None | Some(ClassValue::Fixed(_))
                    if same && (facts.lasting(terms, first) || left_out(Guard::RelationLasting)) =>
                {
                    ClassValue::Fixed(first)
                }
                _ => {
                    let version = slot::is_version(slot);
                    let uniform = if version {
                        slot != slot::memory(Space::Scratch)
                    } else if of_wave.contains(key) {
                        true
                    } else {
                        !matches!(old, Some(ClassValue::Variable { uniform: false, .. }))
                            && (together(terms, &key.1) || left_out(Guard::RelationTogether))
                            && key.1.iter().zip(arrivals).all(|(&term, arrival)| {
                                (facts.uniform(terms, term) || left_out(Guard::RelationUniform))
                                    && (!arrival.mixed || facts.lasting(terms, term) || left_out(Guard::RelationMixed))
                            })
                    };
                    ClassValue::Variable { width, uniform }
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
