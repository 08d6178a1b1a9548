//! The relation at a loop header: the locations of both programs that agree there.
//!
//! An *atom* is the bits of a location of one of the programs, or the mask of its free bits. The relation is a
//! partition of the atoms. The atoms of a class have the same value, which is a variable, or a term that means the same
//! everywhere (a constant, or a value computed before all loops). [`HeaderRelation::refine`] is given the terms that
//! the atoms have on every path to the header, and splits each class by them. So classes only get smaller, and a
//! partition that no iteration splits is preserved by every segment, for any start: the iterations before it only
//! guess.
//!
//! A class may hold 16 bits of which an atom is the extension ([`AtomForm`]): one program may keep a half register over
//! the loop, and the other its conversion to a word. An atom has the first form that its terms on all paths have, and
//! never goes back to an earlier one. Between two programs of nir, a class may hold one bit: a bool of one program, and
//! in the other (a lifted vec4 program) the word that is all ones where the bool is true. If an attempt enables it, a
//! class may hold the 16 or 31 low bits of a word whose other bits are proved to be 0 on each path: a counter that is
//! never negative, by the condition of its loop, is the same compared with and without a sign.
//!
//! A word that two half registers share is two atoms, each with a class of 16 bits: the other program may have these
//! values in two words ([`HeaderRelation::split`]).
//!
//! If an attempt has invariants, the value of an atom may be a linear function of another one: a sum that grows by 12
//! where a counter grows by 1 is 12 times that counter, plus a constant ([`HeaderRelation::propose`]). Such an atom is
//! in no class. Two terms of a path are then also taken for one if they are proved to be equal on it.
//!
//! Atoms are found as segments query locations: a location that is never read is in no class.

use super::sweep::Side;
use crate::symbolic::{Slot, VariableFacts, slot};
use indexmap::IndexMap;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Op, Term, Terms, VariableKind};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The part of a location that an atom is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomPart {
    /// Its bits.
    Bits,
    /// The mask of its free bits.
    Free,
    /// The low 16 of its bits …
    Low,
    /// … and the others, if they are values of their own: see [`HeaderRelation::split`].
    High,
}

impl AtomPart {
    /// Both halves of the bits, the low one first.
    pub const HALVES: [AtomPart; 2] = [AtomPart::Low, AtomPart::High];

    /// The first bit of a half.
    pub const fn first_bit(self) -> u32 {
        match self {
            Self::High => 16,
            Self::Bits | Self::Free | Self::Low => 0,
        }
    }
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

    /// The value of the class, given the value of the atom; `None` if the word does not have this form. `is_narrow`
    /// decides if the word has only that many bits, the others being 0.
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
    /// Its class; `None` if it was first queried in this iteration, or is a function of another one.
    class: Option<u32>,
    form: AtomForm,
    linear: Linearity,
}

/// An atom as a function of another one.
#[derive(Clone, Copy, Debug, Default)]
enum Linearity {
    /// It has not been proposed to be one.
    #[default]
    Unknown,
    /// `factor` times another atom plus `offset`, both terms that do not change.
    Of { base: Atom, factor: Term, offset: Term },
    /// It was proposed to be one, and is not.
    Refuted,
}

/// The value of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassValue {
    /// Its value when the lane reached the first loop: a term that does not change.
    Fixed(Term),
    /// A variable of `width` bits; `uniform` if all lanes have the same.
    Variable { width: u32, uniform: bool },
}

/// The queries of a refinement about terms on a path.
pub trait PathFacts {
    /// Returns true if a word has at most `bits` bits on a path, the others being 0.
    fn is_narrow(&mut self, terms: &mut Terms, path: Term, word: Term, bits: u32) -> bool;
    /// Returns true if two terms are equal on a path.
    fn are_same(&mut self, terms: &mut Terms, path: Term, a: Term, b: Term) -> bool;
}

/// The relation at one header.
#[derive(Debug, Default)]
pub struct HeaderRelation {
    atoms: IndexMap<Atom, AtomState, FxBuildHasher>,
    classes: Vec<ClassValue>,
    /// The first form of an atom.
    first: AtomForm,
    /// The locations of which each half is an atom.
    split: FxHashSet<(Side, Slot)>,
}

/// A path to a header: the terms of the atoms there, in their order.
pub struct Arrival {
    /// One term for each atom.
    pub terms: Vec<Term>,
    /// The condition of the path.
    pub path: Term,
    /// True if the path comes from inside of the loop.
    pub back: bool,
    /// True if the lanes that arrive together have left another loop, perhaps in different iterations: a value that
    /// was uniform in one iteration of it may have several values here.
    pub mixed: bool,
}

impl HeaderRelation {
    /// Takes words as bools where they have that form.
    pub fn with_bools(&mut self) {
        self.first = AtomForm::Bit;
    }

    /// Makes each half of a location an atom if its word on a path consists of two halves: half registers share words,
    /// and what one program keeps in a word the other one may keep in two. Returns true if that is new.
    pub fn split(&mut self, terms: &Terms, location: (Side, Slot), word: Term) -> bool {
        has_halves(terms, word) && self.split.insert(location)
    }

    /// Returns true if each half of a location is an atom.
    pub fn is_split(&self, location: (Side, Slot)) -> bool {
        self.split.contains(&location)
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
        self.atoms.values().any(|known| known.class.is_none() && !matches!(known.linear, Linearity::Of { .. }))
    }

    /// Forgets the classes: with more atoms there may be a larger relation.
    pub fn forget(&mut self) {
        self.classes.clear();
        let form = self.first;
        self.atoms.values_mut().for_each(|known| *known = AtomState { class: None, form, ..*known });
    }

    /// The value of an atom. An atom that was not queried before gets a value of its own.
    pub fn term(&mut self, terms: &mut Terms, header: u32, atom: Atom) -> Term {
        let new = AtomState { class: None, form: self.first, linear: Linearity::Unknown };
        let AtomState { class, form, linear: linearity } = *self.atoms.entry(atom).or_insert(new);
        if let Linearity::Of { base, factor, offset } = linearity {
            // A base was no function of another atom when it became one, so this ends.
            let base = self.term(terms, header, base);
            return linear(terms, factor, base, offset);
        }
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
                let width = match part {
                    AtomPart::Low | AtomPart::High => 16,
                    AtomPart::Bits | AtomPart::Free if slot == slot::DEMOTED => 1,
                    AtomPart::Bits | AtomPart::Free => 32,
                };
                let name = format!("new {part:?} of {side:?} {slot} at loop {header}");
                terms.variable_of(VariableKind::LANE.passing(), width, &name)
            }
        }
    }

    /// Splits classes by the terms on all paths to the header. Returns true if anything has changed.
    pub fn refine(
        &mut self,
        terms: &mut Terms,
        arrivals: &[Arrival],
        facts: &VariableFacts,
        is_of_wave: impl Fn(Atom) -> bool,
        on_path: &mut dyn PathFacts,
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
        let mut changed = self.check_linear(terms, arrivals, on_path);
        let mut keys: Vec<SplitKey> = Vec::with_capacity(self.atoms.len());
        let mut of_wave: FxHashSet<&SplitKey> = FxHashSet::default();
        for (i, AtomState { class, form, linear }) in self.atoms.values_mut().enumerate() {
            if matches!(linear, Linearity::Of { .. }) {
                keys.push((None, SmallVec::new()));
                continue;
            }
            let before = *form;
            let words = arrivals.iter().map(|arrival| (arrival.path, arrival.terms[i]));
            let mut on_paths = loop {
                let class_value = |(path, word)| {
                    form.class_value(terms, word, |terms, bits| on_path.is_narrow(terms, path, word, bits))
                };
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
        self.unite(terms, arrivals, &mut keys, on_path);
        of_wave.extend(self.atoms.keys().zip(&keys).filter(|&(&atom, _)| is_of_wave(atom)).map(|(_, key)| key));
        let mut numbers: FxHashMap<&SplitKey, u32> = FxHashMap::default();
        // The first part of a class keeps its number. So unchanged classes have the same terms in the next iteration,
        // and no query is repeated.
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        let mut classes = self.classes.clone();
        for ((&(_, slot, _), AtomState { class, .. }), key) in self.atoms.iter_mut().zip(&keys) {
            // A function of another atom.
            if key.1.is_empty() {
                continue;
            }
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

    /// Refutes that atoms are the functions of others that they were proposed to be. Returns true if there are any.
    fn check_linear(&mut self, terms: &mut Terms, arrivals: &[Arrival], on_path: &mut dyn PathFacts) -> bool {
        let mut refuted = Vec::new();
        for (i, AtomState { linear: linearity, .. }) in self.atoms.values().enumerate() {
            let &Linearity::Of { base, factor, offset } = linearity else { continue };
            let Some(base) = self.atoms.get_index_of(&base) else { continue };
            let holds = arrivals.iter().all(|arrival| {
                let expected = linear(terms, factor, arrival.terms[base], offset);
                on_path.are_same(terms, arrival.path, arrival.terms[i], expected)
            });
            if !holds {
                refuted.push(i);
            }
        }
        for &at in &refuted {
            self.atoms[at].linear = Linearity::Refuted;
        }
        !refuted.is_empty()
    }

    /// Takes terms of a class for one where they are equal on their path.
    fn unite(
        &self,
        terms: &mut Terms,
        arrivals: &[Arrival],
        keys: &mut [(Option<u32>, SmallVec<[Term; 3]>)],
        on_path: &mut dyn PathFacts,
    ) {
        let mut firsts: FxHashMap<u32, SmallVec<[usize; 2]>> = FxHashMap::default();
        for i in 0..keys.len() {
            let Some(class) = keys[i].0 else { continue };
            let seen = firsts.entry(class).or_default();
            if seen.iter().any(|&first| keys[first].1 == keys[i].1) {
                continue;
            }
            let same = seen.iter().copied().find(|&first| {
                let of_both = keys[first].1.iter().zip(&keys[i].1).zip(arrivals);
                let mut of_both = of_both.filter(|((a, b), _)| a != b);
                of_both.all(|((&a, &b), arrival)| {
                    let is_same = terms.width(a) == terms.width(b) && on_path.are_same(terms, arrival.path, a, b);
                    is_same || left_out(Guard::RelationUnited)
                })
            });
            match same {
                Some(first) => keys[i].1 = keys[first].1.clone(),
                None if seen.len() < FIRSTS => seen.push(i),
                None => {}
            }
        }
    }

    /// Proposes linear functions: a class whose atoms grow by `factor` times as much in an iteration as the atoms of
    /// another class is `factor` times these, plus its value on entry. Refinements check that. Returns true if there
    /// are any: the classes have to be forgotten then, as other atoms may be equal if these are functions.
    pub fn propose(
        &mut self,
        terms: &mut Terms,
        header: u32,
        arrivals: &[Arrival],
        facts: &VariableFacts,
        is_of_wave: impl Fn(Atom) -> bool,
    ) -> bool {
        if !arrivals.iter().any(|arrival| arrival.back) {
            return false;
        }
        let mut growing: Vec<Growing> = Vec::new();
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        for at in 0..self.atoms.len() {
            let Some((&atom, &AtomState { class: Some(class), form: AtomForm::Whole, .. })) = self.atoms.get_index(at)
            else {
                continue;
            };
            let is_word = matches!(self.classes[class as usize], ClassValue::Variable { width: 32, .. });
            if atom.2 != AtomPart::Bits || slot::is_version(atom.1) || !is_word || !seen.insert(class) {
                continue;
            }
            let own = self.term(terms, header, atom);
            let mut steps = arrivals.iter().filter(|arrival| arrival.back).map(|arrival| arrival.terms[at]);
            let step = steps.next().map(|next| terms.sub(32, next, own));
            let step = step.filter(|&step| steps.all(|next| terms.sub(32, next, own) == step));
            if let Some(step) = step.filter(|&step| terms.as_constant(step) != Some(0) && facts.lasting(terms, step)) {
                growing.push(Growing { atom, at, class, step, is_of_wave: is_of_wave(atom) });
            }
        }
        // Counters in steps of 1 first.
        let is_one = |terms: &Terms, step: Term| matches!(terms.as_constant(step), Some(1 | 0xffff_ffff));
        growing.sort_by_key(|growing| (!is_one(terms, growing.step), growing.at));
        let mut bases: Vec<Growing> = Vec::new();
        let mut changed = false;
        for one in growing {
            let found = bases.iter().filter(|base| base.is_of_wave == one.is_of_wave).find_map(|base| {
                let factor = quotient(terms, one.step, base.step)?;
                let mut offsets = arrivals.iter().filter(|arrival| !arrival.back).map(|arrival| {
                    let scaled = linear_part(terms, factor, arrival.terms[base.at]);
                    terms.sub(32, arrival.terms[one.at], scaled)
                });
                let offset = offsets.next()?;
                let is_same = offsets.all(|other| other == offset);
                let of = Linearity::Of { base: base.atom, factor, offset };
                (is_same && facts.lasting(terms, offset)).then_some(of)
            });
            let Some(of) = found else {
                bases.push(one);
                continue;
            };
            for AtomState { class, linear, .. } in self.atoms.values_mut() {
                if *class == Some(one.class) && matches!(linear, Linearity::Unknown) {
                    *linear = of;
                    changed = true;
                }
            }
        }
        changed
    }

    /// The counters: atoms that grow by a constant in each iteration, with the absolute value of that, and the constant
    /// that they start from.
    pub fn counters(&mut self, terms: &mut Terms, header: u32, arrivals: &[Arrival]) -> Vec<(Atom, u64, Term)> {
        let atoms: Vec<Atom> = self.atoms().collect();
        let mut found = Vec::new();
        for (at, &atom) in atoms.iter().enumerate().filter(|(_, atom)| atom.2 == AtomPart::Bits) {
            let own = self.term(terms, header, atom);
            let (mut starts, mut steps) = (FxHashSet::default(), FxHashSet::default());
            for arrival in arrivals {
                if terms.width(arrival.terms[at]) != 32 || terms.width(own) != 32 {
                    continue;
                }
                match arrival.back {
                    true => steps.insert(terms.sub(32, arrival.terms[at], own)),
                    false => starts.insert(arrival.terms[at]),
                };
            }
            let (mut starts, mut steps) = (starts.into_iter(), steps.into_iter());
            if let (Some(start), None, Some(step), None) = (starts.next(), starts.next(), steps.next(), steps.next())
                && terms.as_constant(start).is_some()
                && let Some(step) = terms.as_constant(step)
            {
                found.push((atom, u64::from((step as u32 as i32).unsigned_abs()), start));
            }
        }
        found
    }

    /// The atom that has a term at this header, if there is one.
    pub fn atom_of(&mut self, terms: &mut Terms, header: u32, term: Term) -> Option<Atom> {
        let atoms: Vec<Atom> = self.atoms().filter(|atom| atom.2 == AtomPart::Bits).collect();
        atoms.into_iter().find(|&atom| self.term(terms, header, atom) == term)
    }

    /// The index of an atom.
    pub fn index_of(&self, atom: Atom) -> Option<usize> {
        self.atoms.get_index_of(&atom)
    }
}

/// The maximum number of selections in a word that are searched for halves.
const SELECTIONS: usize = 16;

/// Returns true if a word, or a word that it is a selection of, is two halves side by side.
fn has_halves(terms: &Terms, word: Term) -> bool {
    let mut work: SmallVec<[Term; 8]> = SmallVec::from_slice(&[word]);
    let mut selections = 0;
    while let Some(term) = work.pop() {
        let node = terms.node(term);
        match node.op {
            Op::Concat if terms.width(term) == 32 => {
                let mut bits = 0;
                if node.args.iter().any(|&piece| {
                    bits += terms.width(piece);
                    bits == 16
                }) {
                    return true;
                }
            }
            Op::Ite if selections < SELECTIONS => {
                selections += 1;
                work.extend_from_slice(&node.args[1..]);
            }
            _ => {}
        }
    }
    false
}

/// The maximum number of different atoms of a class with which others are compared on their paths.
const FIRSTS: usize = 3;

/// A class whose atoms grow by a term in each iteration.
struct Growing {
    /// The first atom, and its index.
    atom: Atom,
    at: usize,
    class: u32,
    step: Term,
    is_of_wave: bool,
}

/// The factor by which one step is larger than another, if the other one is a constant that divides it.
fn quotient(terms: &mut Terms, step: Term, base: Term) -> Option<Term> {
    let by = terms.as_constant(base)? as u32 as i32;
    match terms.as_constant(step) {
        Some(step) => {
            let step = step as u32 as i32;
            let exact = step.checked_rem(by) == Some(0);
            exact.then(|| terms.constant(32, i64::from(step.wrapping_div(by)) as u64))
        }
        None if by == 1 => Some(step),
        None if by == -1 => {
            let zero = terms.constant(32, 0);
            Some(terms.sub(32, zero, step))
        }
        None => None,
    }
}

/// `factor * base + offset`
fn linear(terms: &mut Terms, factor: Term, base: Term, offset: Term) -> Term {
    let scaled = linear_part(terms, factor, base);
    terms.add(32, scaled, offset)
}

/// `factor * base`, as a sum of products if `base` is a sum.
fn linear_part(terms: &mut Terms, factor: Term, base: Term) -> Term {
    if terms.node(base).op != Op::Add {
        return terms.mul(32, factor, base);
    }
    let mut sum = terms.constant(32, 0);
    for arg in terms.node(base).args.clone() {
        let product = terms.mul(32, factor, arg);
        sum = terms.add(32, sum, product);
    }
    sum
}
