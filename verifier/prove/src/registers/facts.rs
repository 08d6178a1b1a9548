//! The facts at a program point: equalities between pieces of the target and pieces of the source.
//!
//! A *fact* `(l, x)` means: at this point, in every active lane, piece `l` of the target has the same bits as piece `x`
//! of the source, or `x` is undefined. The state at a point is a set of facts; more facts are more precise. The meet of
//! two paths is the intersection, except that a path on which `x` is undefined has every fact about `x`. Literals are
//! pieces of both programs, too: immediates and words of the constant file.
//!
//! A fact that holds on one of the paths because `x` is undefined there is *open* ([`OpenFacts`]): `x` may be the
//! content of one piece of the target, not of two different ones.
//!
//! Most pieces are in no fact at a point, and those that are in one are seldom in a second. So facts are stored in one
//! short array, each of them in two lists: that of its target piece and that of its source piece.

use super::location::Piece;
use super::open::{Choices, OnPath, OpenFacts};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, entity_impl};
use fixedbitset::FixedBitSet;
use ir3_compiler::ir3::Block;
use ir3_semantics::support::guards::{Guard, left_out};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;
use std::rc::Rc;

/// Sixteen bits that are the same at every read, and are not a piece of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// An immediate.
    Bits(u16),
    /// Half of a word of the constant file, by its scalar index: the low half, or the high half if true.
    Const(u16, bool),
    /// The value of a source piece in the lane that writes to shared registers. This is the same lane until the next
    /// operation that may end lanes.
    OneLane(Piece),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(bits) => write!(f, "{bits:#x}"),
            Self::Const(word, high) => {
                let part = if *high { "high" } else { "low" };
                write!(f, "c{}.{} ({part})", word / 4, ['x', 'y', 'z', 'w'][usize::from(word % 4)])
            }
            Self::OneLane(_) => f.write_str("the value of one lane"),
        }
    }
}

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySource {
    /// A piece of the same program.
    Piece(Piece),
    /// A literal.
    Literal(Literal),
    /// The value of a piece in one lane, for all lanes: the destination is shared, the source is not.
    OfOneLane(Piece),
    /// An undefined value.
    Undefined,
}

/// The pieces of the source that are undefined. The first pieces may be written more than once, and begin undefined.
#[derive(Clone, Debug)]
struct UndefinedPieces {
    /// The number of those pieces.
    fixed: u32,
    /// The pieces among them that may have been written: the same at most points.
    written: Rc<FixedBitSet>,
    /// The other pieces that are undefined.
    others: Vec<Piece>,
}

impl UndefinedPieces {
    fn contains(&self, x: Piece) -> bool {
        if x < self.fixed { !self.written.contains(x as usize) } else { self.others.contains(&x) }
    }

    fn insert(&mut self, x: Piece) {
        if x >= self.fixed {
            if !self.others.contains(&x) {
                self.others.push(x);
            }
        } else if self.written.contains(x as usize) {
            Rc::make_mut(&mut self.written).remove(x as usize);
        }
    }

    fn remove(&mut self, x: Piece) {
        if x >= self.fixed {
            self.others.retain(|other| *other != x);
        } else if !self.written.contains(x as usize) {
            Rc::make_mut(&mut self.written).grow_and_insert(x as usize);
        }
    }

    /// The pieces of this set that are not in another one.
    fn defined_in<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Piece> + 'a {
        let written = other.written.difference(&self.written).map(|x| x as Piece);
        written.chain(self.others.iter().copied().filter(|&x| !other.contains(x)))
    }

    /// Intersects with another set. Returns true if the set has become smaller.
    fn intersect(&mut self, other: &Self) -> bool {
        let is_less = !Rc::ptr_eq(&self.written, &other.written)
            && !other.written.is_subset(&self.written)
            && !left_out(Guard::RegistersMeetUndefined);
        if is_less {
            Rc::make_mut(&mut self.written).union_with(&other.written);
        }
        let count = self.others.len();
        self.others.retain(|x| other.others.contains(x) || left_out(Guard::RegistersMeetUndefined));
        is_less || self.others.len() < count
    }
}

/// The facts at the start or the end of a block.
#[derive(Clone, Debug)]
pub struct FactSet {
    /// The facts, without duplicates: a piece of the target, and the piece of the source whose value it holds.
    pairs: Vec<(Piece, Piece)>,
    undefined: UndefinedPieces,
    open: OpenFacts,
}

impl FactSet {
    /// The facts at the entry of a program whose first `fixed` pieces begin undefined.
    pub fn entry(fixed: u32) -> Self {
        let undefined = UndefinedPieces { fixed, written: Rc::new(FixedBitSet::new()), others: Vec::new() };
        Self { pairs: Vec::new(), undefined, open: OpenFacts::default() }
    }

    /// The number of facts.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Meets this path with the one to `here`, at the start of a block. A fact of `here` whose source is undefined on
    /// this path is added if `keep` is true of it. Returns true if the set has become smaller, or facts assume more.
    pub fn meet(&mut self, here: &CurrentFacts, block: Block, keep: impl Fn(Piece, Piece) -> bool) -> bool {
        let count = self.pairs.len();
        let others = here.iter().filter(|&(l, x)| self.undefined.contains(x) && keep(l, x));
        let new: SmallVec<[(Piece, Piece); 8]> = others.filter(|fact| !self.pairs.contains(fact)).collect();
        self.pairs.retain(|&(l, x)| here.holds(l, x) || left_out(Guard::RegistersMeet));
        let fewer = self.pairs.len() < count;
        let mut opened = false;
        if !left_out(Guard::RegistersOpenOnce) {
            let there = |(l, x)| match here.has(l, x) {
                true => OnPath::Known(here.open.get((l, x))),
                false => OnPath::Undefined,
            };
            let both = self.pairs.iter().map(|&fact| (fact, [OnPath::Known(self.open.get(fact)), there(fact)]));
            let one = new.iter().map(|&fact| (fact, [OnPath::Undefined, there(fact)]));
            let open = OpenFacts::meet(block, both.chain(one));
            opened = open != self.open;
            self.open = open;
        }
        self.pairs.extend(new);
        self.undefined.intersect(&here.undefined) || fewer || opened
    }

    /// Meets the facts about registers of the wave with those at the `ends` of blocks from which the wave may arrive
    /// while the lanes of this path wait. Pieces that are undefined for the waiting lanes, but not at one of the ends,
    /// are written by other lanes: the facts about them are those that all ends have. `is_shared` selects pieces of the
    /// source that are registers of the wave, `is_of_wave` facts about such registers. Returns true if the set has
    /// become smaller, or facts assume more.
    pub fn meet_wave(
        &mut self,
        ends: &[&Self],
        block: Block,
        is_shared: impl Fn(Piece) -> bool,
        is_of_wave: impl Fn(Piece, Piece) -> bool,
    ) -> bool {
        let mut defined: SmallVec<[Piece; 8]> =
            ends.iter().flat_map(|end| self.undefined.defined_in(&end.undefined)).filter(|&x| is_shared(x)).collect();
        defined.sort_unstable();
        defined.dedup();
        let facts = ends.iter().flat_map(|end| end.pairs.iter().copied());
        let facts = facts.filter(|&(l, x)| defined.binary_search(&x).is_ok() && is_of_wave(l, x));
        let mut new: Vec<(Piece, Piece)> = facts.filter(|&(l, x)| ends.iter().all(|end| end.allows(l, x))).collect();
        new.retain(|fact| !self.pairs.contains(fact));
        new.sort_unstable();
        new.dedup();
        let opened = !left_out(Guard::RegistersOpenOnce) && self.open_wave(&new, ends, block, is_of_wave);
        self.pairs.extend(new);
        defined.iter().for_each(|&x| self.undefined.remove(x));
        opened || !defined.is_empty()
    }

    /// Opens those facts of the wave, including the `new` ones, that hold at some of the ends only because their source
    /// is undefined there.
    fn open_wave(
        &mut self,
        new: &[(Piece, Piece)],
        ends: &[&Self],
        block: Block,
        is_of_wave: impl Fn(Piece, Piece) -> bool,
    ) -> bool {
        let all: Vec<(Piece, Piece)> =
            self.pairs.iter().filter(|&&(l, x)| is_of_wave(l, x)).chain(new).copied().collect();
        let mut open = self.open.among(&all);
        for (at, end) in ends.iter().enumerate() {
            let paths = all.iter().enumerate().map(|(number, &fact)| {
                let is_new = at == 0 && number >= all.len() - new.len();
                let known = if is_new { OnPath::Undefined } else { OnPath::Known(open.get(fact)) };
                (fact, [known, end.on_path(fact)])
            });
            open = OpenFacts::meet(block, paths);
        }
        let opened = all.iter().any(|&fact| open.get(fact) != self.open.get(fact));
        for &fact in &all {
            self.open.remove(fact);
            if let Some(choices) = open.get(fact) {
                self.open.insert(fact, choices.clone());
            }
        }
        opened
    }

    fn on_path(&self, fact: (Piece, Piece)) -> OnPath<'_> {
        match self.pairs.contains(&fact) {
            true => OnPath::Known(self.open.get(fact)),
            false => OnPath::Undefined,
        }
    }

    /// Keeps the facts that satisfy `keep`. Returns true if the set has become smaller.
    pub fn retain(&mut self, mut keep: impl FnMut(Piece, Piece) -> bool) -> bool {
        let count = self.pairs.len();
        self.pairs.retain(|&(l, x)| keep(l, x));
        self.pairs.len() < count
    }

    /// Returns true if a fact may hold: it is in the set, or its source piece is undefined.
    pub fn allows(&self, l: Piece, x: Piece) -> bool {
        self.undefined.contains(x) || self.pairs.contains(&(l, x))
    }
}

/// An index of a fact in [`CurrentFacts`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fact(u32);
entity_impl!(Fact);

/// One of the two programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FactSide {
    Target,
    Source,
}

/// A fact in its two lists, by program: the piece, and the next fact about it.
struct FactNode {
    pieces: [Piece; 2],
    next: [PackedOption<Fact>; 2],
}

/// The facts at the current point of the walk through a block.
pub struct CurrentFacts {
    facts: PrimaryMap<Fact, FactNode>,
    /// Unused entries; their pieces are `NO_PIECE`.
    free: Vec<Fact>,
    /// The first fact about each piece, by program.
    first: [Vec<PackedOption<Fact>>; 2],
    undefined: UndefinedPieces,
    open: OpenFacts,
    literals: FxHashMap<Literal, Piece>,
    /// The literals in the order of their pieces, which come after all others in both programs. That a literal equals
    /// itself is not stored as a fact.
    literal_at: Vec<Literal>,
    /// The number of pieces of the source and of the target, without literals.
    sources: u32,
    targets: u32,
    /// True if some fact is about the value of one lane.
    one_lane: bool,
    /// Scratch list for parallel copies.
    moved: Vec<Moved>,
}

/// A fact that a copy makes, with its assumptions.
struct Moved {
    fact: (Piece, Piece),
    choices: Option<Choices>,
}

/// The number that denotes no piece.
const NO_PIECE: Piece = Piece::MAX;

impl CurrentFacts {
    /// An empty set for programs with these numbers of pieces; the first `fixed` of the source begin undefined.
    pub fn new(sources: u32, targets: u32, fixed: u32) -> Self {
        Self {
            facts: PrimaryMap::new(),
            free: Vec::new(),
            first: [targets, sources].map(|count| vec![None.into(); count as usize]),
            undefined: FactSet::entry(fixed).undefined,
            open: OpenFacts::default(),
            literals: FxHashMap::default(),
            literal_at: Vec::new(),
            sources,
            targets,
            one_lane: false,
            moved: Vec::new(),
        }
    }

    /// Replaces the current facts by those at a block boundary.
    pub fn load(&mut self, facts: &FactSet) {
        let [targets, sources] = &mut self.first;
        for FactNode { pieces: [l, x], .. } in self.facts.values().filter(|node| node.pieces[0] != NO_PIECE) {
            targets[*l as usize] = None.into();
            sources[*x as usize] = None.into();
        }
        self.facts.clear();
        self.free.clear();
        self.undefined.clone_from(&facts.undefined);
        for &(l, x) in &facts.pairs {
            self.insert(l, x);
        }
        self.open.clone_from(&facts.open);
    }

    /// The facts at the current point that satisfy `keep`.
    pub fn save(&self, mut keep: impl FnMut(Piece, Piece) -> bool) -> FactSet {
        // Collected first, so that they take no more memory than they need.
        let pairs: SmallVec<[(Piece, Piece); 256]> = self.iter().filter(|&(l, x)| keep(l, x)).collect();
        let open = self.open.among(&pairs);
        FactSet { pairs: pairs.to_vec(), undefined: self.undefined.clone(), open }
    }

    fn iter(&self) -> impl Iterator<Item = (Piece, Piece)> + '_ {
        self.facts.values().map(|node| (node.pieces[0], node.pieces[1])).filter(|&(l, _)| l != NO_PIECE)
    }

    /// The piece of a literal in the source.
    pub fn literal(&mut self, literal: Literal) -> Piece {
        *self.literals.entry(literal).or_insert_with(|| {
            self.literal_at.push(literal);
            self.first.iter_mut().for_each(|first| first.push(None.into()));
            self.sources + self.literal_at.len() as u32 - 1
        })
    }

    /// The piece of a literal in the target, given its piece in the source.
    const fn in_target(&self, literal: Piece) -> Piece {
        literal - self.sources + self.targets
    }

    /// Returns true if a piece of the source is a literal.
    pub const fn is_literal(&self, x: Piece) -> bool {
        x >= self.sources
    }

    /// The literal of a piece of the source.
    pub fn literal_of(&self, x: Piece) -> Option<Literal> {
        self.literal_at.get(x.checked_sub(self.sources)? as usize).copied()
    }

    /// Returns true if a piece of the target is a literal.
    pub const fn is_target_literal(&self, l: Piece) -> bool {
        l >= self.targets
    }

    /// Returns true if a fact is about a word of the constant file.
    pub fn is_of_constant(&self, l: Piece, x: Piece) -> bool {
        let all = [self.target_literal(l), self.literal_of(x)];
        all.into_iter().flatten().any(|literal| matches!(literal, Literal::Const(..)))
    }

    fn target_literal(&self, l: Piece) -> Option<Literal> {
        self.literal_at.get(l.checked_sub(self.targets)? as usize).copied()
    }

    /// Returns true if a piece of the target has the value of a source piece, or the source piece is undefined.
    pub fn holds(&self, l: Piece, x: Piece) -> bool {
        self.has(l, x) || self.undefined.contains(x)
    }

    /// Returns true if a piece of the target is known to have the value of a source piece.
    pub fn has(&self, l: Piece, x: Piece) -> bool {
        self.values_of(l).any(|held| held == x)
    }

    /// Returns true if a piece of the target is known to have the value of a source piece, for any undefined values.
    pub fn surely_has(&self, l: Piece, x: Piece) -> bool {
        self.has(l, x) && self.open.get((l, x)).is_none()
    }

    /// Records that the target reads piece `l` for source piece `x`: if `x` is undefined, its value is now the content
    /// of `l`.
    pub fn settle(&mut self, l: Piece, x: Piece) {
        for fact in self.open.settle((l, x)) {
            self.remove(fact);
        }
    }

    /// Removes a fact.
    fn remove(&mut self, (l, x): (Piece, Piece)) {
        let mut next = self.first[FactSide::Target as usize][l as usize];
        while let Some(fact) = next.expand() {
            let node = &self.facts[fact];
            next = node.next[FactSide::Target as usize];
            if node.pieces[1] == x {
                self.unlink(fact, FactSide::Target);
                self.unlink(fact, FactSide::Source);
                self.release(fact);
            }
        }
    }

    /// Returns true if a piece of the source is undefined.
    fn is_undefined(&self, x: Piece) -> bool {
        self.undefined.contains(x)
    }

    /// The source pieces whose value a piece of the target holds.
    pub fn values_of(&self, l: Piece) -> impl Iterator<Item = Piece> + '_ {
        self.list(FactSide::Target, l)
    }

    /// The pieces of the other program in the facts about a piece.
    fn list(&self, side: FactSide, piece: Piece) -> impl Iterator<Item = Piece> + '_ {
        let mut next = self.first[side as usize][piece as usize];
        std::iter::from_fn(move || {
            let node = &self.facts[next.expand()?];
            next = node.next[side as usize];
            Some(node.pieces[1 - side as usize])
        })
    }

    /// The 16-bit constant that a piece is known to hold: all of its possible values are this one.
    pub fn number(&self, side: FactSide, piece: Piece) -> Option<u16> {
        let literal = |of_other: Piece| match side {
            FactSide::Target => self.literal_of(of_other),
            FactSide::Source => self.target_literal(of_other),
        };
        let is_sure = |of_other: Piece| match side {
            FactSide::Target => self.open.get((piece, of_other)).is_none(),
            FactSide::Source => self.open.get((of_other, piece)).is_none(),
        };
        self.list(side, piece).find_map(|of_other| match literal(of_other) {
            Some(Literal::Bits(bits)) if is_sure(of_other) => Some(bits),
            _ => None,
        })
    }

    /// Adds a fact.
    pub fn add(&mut self, l: Piece, x: Piece) {
        self.open.remove((l, x));
        if !self.has(l, x) {
            self.insert(l, x);
        }
    }

    /// Adds facts that copies make of others; an open one is open again.
    fn add_moved(&mut self, moved: &mut Vec<Moved>) {
        for Moved { fact: (l, x), choices } in moved.drain(..) {
            match choices {
                Some(_) if self.surely_has(l, x) => {}
                Some(choices) => {
                    self.add(l, x);
                    self.open.insert((l, x), choices);
                }
                None => self.add(l, x),
            }
        }
    }

    /// The fact that a copy makes of another one.
    fn moved(&self, fact: (Piece, Piece), of: (Piece, Piece)) -> Moved {
        Moved { fact, choices: self.open.get(of).cloned() }
    }

    fn insert(&mut self, l: Piece, x: Piece) {
        let pieces = [l, x];
        let next = [self.first[0][l as usize], self.first[1][x as usize]];
        let node = FactNode { pieces, next };
        let fact = match self.free.pop() {
            Some(fact) => {
                self.facts[fact] = node;
                fact
            }
            None => self.facts.push(node),
        };
        self.first[0][l as usize] = fact.into();
        self.first[1][x as usize] = fact.into();
    }

    /// Removes a fact from the list of one program.
    fn unlink(&mut self, fact: Fact, side: FactSide) {
        let side = side as usize;
        let FactNode { pieces, next } = self.facts[fact];
        let mut at = &mut self.first[side][pieces[side] as usize];
        while let Some(other) = at.expand().filter(|other| *other != fact) {
            at = &mut self.facts[other].next[side];
        }
        *at = next[side];
    }

    /// Releases a fact that is in no list any more.
    fn release(&mut self, fact: Fact) {
        let [l, x] = self.facts[fact].pieces;
        self.open.remove((l, x));
        self.facts[fact].pieces = [NO_PIECE; 2];
        self.free.push(fact);
    }

    /// Removes all facts about a piece.
    fn clear(&mut self, side: FactSide, piece: Piece) {
        let other = [FactSide::Source, FactSide::Target][side as usize];
        let mut next = std::mem::take(&mut self.first[side as usize][piece as usize]);
        while let Some(fact) = next.expand() {
            next = self.facts[fact].next[side as usize];
            self.unlink(fact, other);
            self.release(fact);
        }
    }

    /// Transfer function: the target writes an unknown value to a piece.
    pub fn overwrite_target(&mut self, l: Piece) {
        if !left_out(Guard::RegistersTargetWrites) {
            self.clear(FactSide::Target, l);
        }
    }

    /// Transfer function: the source writes a value to a piece.
    pub fn overwrite_source(&mut self, x: Piece) {
        if self.one_lane {
            self.forget(|literal| literal == Literal::OneLane(x));
        }
        if !left_out(Guard::RegistersSourceWrites) {
            self.clear(FactSide::Source, x);
        }
        self.undefined.remove(x);
    }

    /// Transfer function: the source writes an undefined value to a piece.
    fn undefine_source(&mut self, x: Piece) {
        self.overwrite_source(x);
        self.undefined.insert(x);
    }

    /// Transfer function: the target copies pieces, in parallel (destination, source).
    pub fn copy_target(&mut self, copies: &[(Piece, CopySource)]) {
        let mut moved = std::mem::take(&mut self.moved);
        for &(to, from) in copies {
            match from {
                CopySource::Piece(from) => {
                    moved.extend(self.values_of(from).map(|x| self.moved((to, x), (from, x))));
                }
                CopySource::Literal(literal) => {
                    let literal = self.literal(literal);
                    moved.push(Moved { fact: (to, literal), choices: None });
                    let from = self.in_target(literal);
                    moved.extend(self.values_of(from).map(|x| self.moved((to, x), (from, x))));
                }
                CopySource::OfOneLane(from) => {
                    self.one_lane = true;
                    let values: SmallVec<[Piece; 8]> = self.values_of(from).collect();
                    // An undefined value of one lane is that of all.
                    for x in values {
                        if self.surely_has(from, x) {
                            let x = if self.is_literal(x) { x } else { self.literal(Literal::OneLane(x)) };
                            moved.push(Moved { fact: (to, x), choices: None });
                        }
                    }
                }
                CopySource::Undefined => {}
            }
        }
        for &(to, _) in copies {
            self.overwrite_target(to);
        }
        self.add_moved(&mut moved);
        self.moved = moved;
    }

    /// Transfer function: the source copies pieces, in parallel.
    pub fn copy_source(&mut self, copies: &[(Piece, CopySource)]) {
        let mut moved = std::mem::take(&mut self.moved);
        let mut undefined = SmallVec::<[Piece; 8]>::new();
        for &(to, from) in copies {
            let from = match from {
                CopySource::Piece(from) | CopySource::OfOneLane(from) if self.is_undefined(from) => {
                    undefined.push(to);
                    continue;
                }
                CopySource::Undefined => {
                    undefined.push(to);
                    continue;
                }
                CopySource::Piece(from) => from,
                CopySource::Literal(literal) => self.literal(literal),
                CopySource::OfOneLane(from) => self.literal(Literal::OneLane(from)),
            };
            if self.is_literal(from) {
                moved.push(Moved { fact: (self.in_target(from), to), choices: None });
            }
            moved.extend(self.list(FactSide::Source, from).map(|l| self.moved((l, to), (l, from))));
        }
        for &(to, _) in copies {
            self.overwrite_source(to);
        }
        self.add_moved(&mut moved);
        for x in undefined {
            self.undefine_source(x);
        }
        self.moved = moved;
    }

    /// Removes all facts about the constant file.
    pub fn forget_constants(&mut self) {
        self.forget(|literal| matches!(literal, Literal::Const(..)));
    }

    /// Removes all facts about the value of one lane ([`Literal::OneLane`]): from now on another lane may write to
    /// shared registers.
    pub fn forget_lane(&mut self) {
        if std::mem::take(&mut self.one_lane) && !left_out(Guard::RegistersLane) {
            self.forget(|literal| matches!(literal, Literal::OneLane(_)));
        }
    }

    fn forget(&mut self, which: impl Fn(Literal) -> bool) {
        for fact in self.facts.keys() {
            let [l, x] = self.facts[fact].pieces;
            if l != NO_PIECE && (self.literal_of(x).is_some_and(&which) || self.target_literal(l).is_some_and(&which)) {
                self.unlink(fact, FactSide::Target);
                self.unlink(fact, FactSide::Source);
                self.release(fact);
            }
        }
    }
}
