//! What is known at a point: which piece of the target holds what which piece of the source has.
//!
//! A *fact* `(l, x)` says: at this point, in every lane that is here, piece `l` of the target has the same bits as piece `x` of
//! the source, or `x` is undefined. Facts at a point are a set; more facts say more, so where ways meet it is their
//! intersection, but that a way on which `x` is undefined has every fact about `x`.
//! Literals are pieces of both programs, too: numbers that stand in instructions and words of the constant file.
//!
//! Most of a program's pieces are in no fact at a point, and those that are in one are seldom in a second. So facts stand in
//! one short array, each of them in two lists: that of its target piece and that of its source piece.

use super::location::Piece;
use crate::support::guards::{Guard, left_out};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, entity_impl};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;
use std::rc::Rc;

/// Sixteen bits that are the same wherever they are read, and are no piece of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// A number.
    Bits(u16),
    /// Half of a word of the constant file: the low one, or the high one.
    Const(u16, bool),
    /// What the lane that writes to shared registers has in a piece of the source. Until the next operation, which may
    /// end lanes, that is the same lane.
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
            Self::OneLane(_) => f.write_str("what one lane has"),
        }
    }
}

/// What a copy reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A piece of the same program.
    Piece(Piece),
    /// Bits that stand in the program, or in the constant file.
    Literal(Literal),
    /// What one lane has in a piece, for all: the destination is shared, the source is not.
    OfOneLane(Piece),
    /// Nothing defined.
    Undefined,
}

/// The pieces of the source that nothing defined is in. In front stand those that may be written more than once, and begin so.
#[derive(Clone, Debug)]
struct Undefined {
    /// How many those are.
    fixed: u32,
    /// Those of them that may have been written: the same at most points.
    written: Rc<FixedBitSet>,
    /// The others, without what is none of both.
    others: Vec<Piece>,
}

impl Undefined {
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

    /// Keeps what is in another set too. Returns whether that is less.
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

/// What is known at the beginning or the end of a block.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The facts, each once: a piece of the target, and the piece of the source that it holds.
    pairs: Vec<(Piece, Piece)>,
    undefined: Undefined,
}

impl Facts {
    /// Nothing has happened yet, in a program whose first `fixed` pieces begin undefined.
    pub fn entry(fixed: u32) -> Self {
        let undefined = Undefined { fixed, written: Rc::new(FixedBitSet::new()), others: Vec::new() };
        Self { pairs: Vec::new(), undefined }
    }

    /// What is known where this way and the one to `here` meet. Returns whether that is less.
    pub fn meet(&mut self, here: &Here) -> bool {
        let count = self.pairs.len();
        let others = here.iter().filter(|&(_, x)| self.undefined.contains(x));
        let new: SmallVec<[(Piece, Piece); 8]> = others.filter(|fact| !self.pairs.contains(fact)).collect();
        self.pairs.retain(|&(l, x)| here.holds(l, x) || left_out(Guard::RegistersMeet));
        let fewer = self.pairs.len() < count;
        self.pairs.extend(new);
        self.undefined.intersect(&here.undefined) || fewer
    }

    /// Keeps the facts that `keep` does. Returns whether these are fewer.
    pub fn retain(&mut self, mut keep: impl FnMut(Piece, Piece) -> bool) -> bool {
        let count = self.pairs.len();
        self.pairs.retain(|&(l, x)| keep(l, x));
        self.pairs.len() < count
    }

    /// Whether a fact may be true: it is known, or about nothing defined.
    pub fn allows(&self, l: Piece, x: Piece) -> bool {
        self.undefined.contains(x) || self.pairs.contains(&(l, x))
    }
}

/// A fact that is known here.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fact(u32);
entity_impl!(Fact);

/// One of both programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Target,
    Source,
}

/// A fact in its two lists, by sides: the piece, and the next fact about it.
struct Node {
    pieces: [Piece; 2],
    next: [PackedOption<Fact>; 2],
}

/// The facts at the point that a walk through a block has come to.
pub struct Here {
    facts: PrimaryMap<Fact, Node>,
    /// Facts that are none any more; their pieces are `NOWHERE`.
    free: Vec<Fact>,
    /// By sides, the first fact about each piece.
    first: [Vec<PackedOption<Fact>>; 2],
    undefined: Undefined,
    literals: FxHashMap<Literal, Piece>,
    /// The literals in the order of their pieces, which stand behind the others in both programs. That a literal is itself is
    /// no fact.
    literal_at: Vec<Literal>,
    /// Pieces of the source and of the target, without literals.
    sources: u32,
    targets: u32,
    /// Whether a fact is about what one lane has.
    one_lane: bool,
    /// What several copies at once move.
    moved: Vec<(Piece, Piece)>,
}

/// No piece.
const NOWHERE: Piece = Piece::MAX;

impl Here {
    /// For programs with so many pieces; the first `fixed` of the source begin undefined.
    pub fn new(sources: u32, targets: u32, fixed: u32) -> Self {
        Self {
            facts: PrimaryMap::new(),
            free: Vec::new(),
            first: [targets, sources].map(|count| vec![None.into(); count as usize]),
            undefined: Facts::entry(fixed).undefined,
            literals: FxHashMap::default(),
            literal_at: Vec::new(),
            sources,
            targets,
            one_lane: false,
            moved: Vec::new(),
        }
    }

    /// Goes to a point where this is known.
    pub fn load(&mut self, facts: &Facts) {
        let [targets, sources] = &mut self.first;
        for Node { pieces: [l, x], .. } in self.facts.values().filter(|node| node.pieces[0] != NOWHERE) {
            targets[*l as usize] = None.into();
            sources[*x as usize] = None.into();
        }
        self.facts.clear();
        self.free.clear();
        self.undefined.clone_from(&facts.undefined);
        for &(l, x) in &facts.pairs {
            self.insert(l, x);
        }
    }

    /// What is known here, of what `keep` keeps.
    pub fn save(&self, mut keep: impl FnMut(Piece, Piece) -> bool) -> Facts {
        // Collected first, so that they take no more memory than they need.
        let pairs: SmallVec<[(Piece, Piece); 256]> = self.iter().filter(|&(l, x)| keep(l, x)).collect();
        Facts { pairs: pairs.to_vec(), undefined: self.undefined.clone() }
    }

    fn iter(&self) -> impl Iterator<Item = (Piece, Piece)> + '_ {
        self.facts.values().map(|node| (node.pieces[0], node.pieces[1])).filter(|&(l, _)| l != NOWHERE)
    }

    /// The piece of a literal in the source.
    pub fn literal(&mut self, literal: Literal) -> Piece {
        *self.literals.entry(literal).or_insert_with(|| {
            self.literal_at.push(literal);
            self.first.iter_mut().for_each(|first| first.push(None.into()));
            self.sources + self.literal_at.len() as u32 - 1
        })
    }

    /// The piece of a literal in the target, by that in the source.
    const fn in_target(&self, literal: Piece) -> Piece {
        literal - self.sources + self.targets
    }

    /// Whether a piece of the source is that of a literal.
    pub const fn is_literal(&self, x: Piece) -> bool {
        x >= self.sources
    }

    /// The literal of a piece of the source.
    pub fn literal_of(&self, x: Piece) -> Option<Literal> {
        self.literal_at.get(x.checked_sub(self.sources)? as usize).copied()
    }

    /// Whether a piece of the target is that of a literal.
    pub const fn is_target_literal(&self, l: Piece) -> bool {
        l >= self.targets
    }

    fn target_literal(&self, l: Piece) -> Option<Literal> {
        self.literal_at.get(l.checked_sub(self.targets)? as usize).copied()
    }

    /// Whether a piece of the target has what one of the source has, or that is undefined.
    pub fn holds(&self, l: Piece, x: Piece) -> bool {
        self.has(l, x) || self.undefined.contains(x)
    }

    /// Whether it is known that a piece of the target has what one of the source has.
    pub fn has(&self, l: Piece, x: Piece) -> bool {
        self.held(l).any(|held| held == x)
    }

    /// Whether nothing defined is in a piece of the source.
    pub fn is_undefined(&self, x: Piece) -> bool {
        self.undefined.contains(x)
    }

    /// What a piece of the target holds.
    pub fn held(&self, l: Piece) -> impl Iterator<Item = Piece> + '_ {
        self.list(Side::Target, l)
    }

    /// What the facts about a piece say of the other side.
    fn list(&self, side: Side, piece: Piece) -> impl Iterator<Item = Piece> + '_ {
        let mut next = self.first[side as usize][piece as usize];
        std::iter::from_fn(move || {
            let node = &self.facts[next.expand()?];
            next = node.next[side as usize];
            Some(node.pieces[1 - side as usize])
        })
    }

    /// The number that a piece of a side holds for certain. (All that it may hold are the same.)
    pub fn number(&self, side: Side, piece: Piece) -> Option<u16> {
        let literal = |of_other: Piece| match side {
            Side::Target => self.literal_of(of_other),
            Side::Source => self.target_literal(of_other),
        };
        self.list(side, piece).find_map(|of_other| match literal(of_other) {
            Some(Literal::Bits(bits)) => Some(bits),
            _ => None,
        })
    }

    /// From now on this holds.
    pub fn add(&mut self, l: Piece, x: Piece) {
        if !self.has(l, x) {
            self.insert(l, x);
        }
    }

    fn insert(&mut self, l: Piece, x: Piece) {
        let pieces = [l, x];
        let next = [self.first[0][l as usize], self.first[1][x as usize]];
        let node = Node { pieces, next };
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

    /// Takes a fact out of the list of one side.
    fn unlink(&mut self, fact: Fact, side: Side) {
        let side = side as usize;
        let Node { pieces, next } = self.facts[fact];
        let mut at = &mut self.first[side][pieces[side] as usize];
        while let Some(other) = at.expand().filter(|other| *other != fact) {
            at = &mut self.facts[other].next[side];
        }
        *at = next[side];
    }

    /// Forgets a fact that is in no list any more.
    fn release(&mut self, fact: Fact) {
        self.facts[fact].pieces = [NOWHERE; 2];
        self.free.push(fact);
    }

    /// Forgets all facts about a piece.
    fn clear(&mut self, side: Side, piece: Piece) {
        let other = [Side::Source, Side::Target][side as usize];
        let mut next = std::mem::take(&mut self.first[side as usize][piece as usize]);
        while let Some(fact) = next.expand() {
            next = self.facts[fact].next[side as usize];
            self.unlink(fact, other);
            self.release(fact);
        }
    }

    /// The target has written something unknown to a piece.
    pub fn overwrite_target(&mut self, l: Piece) {
        if !left_out(Guard::RegistersTargetWrites) {
            self.clear(Side::Target, l);
        }
    }

    /// The source has written something to a piece.
    pub fn overwrite_source(&mut self, x: Piece) {
        if self.one_lane {
            self.forget(|literal| literal == Literal::OneLane(x));
        }
        if !left_out(Guard::RegistersSourceWrites) {
            self.clear(Side::Source, x);
        }
        self.undefined.remove(x);
    }

    /// The source has written nothing defined to a piece.
    pub fn undefine_source(&mut self, x: Piece) {
        self.overwrite_source(x);
        self.undefined.insert(x);
    }

    /// The target has copied pieces, all at once: destination, source.
    pub fn copy_target(&mut self, copies: &[(Piece, Origin)]) {
        let mut moved = std::mem::take(&mut self.moved);
        for &(to, from) in copies {
            match from {
                Origin::Piece(from) => moved.extend(self.held(from).map(|x| (to, x))),
                Origin::Literal(literal) => {
                    let literal = self.literal(literal);
                    moved.push((to, literal));
                    moved.extend(self.held(self.in_target(literal)).map(|x| (to, x)));
                }
                Origin::OfOneLane(from) => {
                    self.one_lane = true;
                    let first = moved.len();
                    moved.extend(self.held(from).map(|x| (to, x)));
                    for (_, x) in &mut moved[first..] {
                        *x = if self.is_literal(*x) { *x } else { self.literal(Literal::OneLane(*x)) };
                    }
                }
                Origin::Undefined => {}
            }
        }
        for &(to, _) in copies {
            self.overwrite_target(to);
        }
        for (l, x) in moved.drain(..) {
            self.add(l, x);
        }
        self.moved = moved;
    }

    /// The source has copied pieces, all at once.
    pub fn copy_source(&mut self, copies: &[(Piece, Origin)]) {
        let mut moved = std::mem::take(&mut self.moved);
        let mut undefined = SmallVec::<[Piece; 8]>::new();
        for &(to, from) in copies {
            let from = match from {
                Origin::Piece(from) | Origin::OfOneLane(from) if self.is_undefined(from) => {
                    undefined.push(to);
                    continue;
                }
                Origin::Undefined => {
                    undefined.push(to);
                    continue;
                }
                Origin::Piece(from) => from,
                Origin::Literal(literal) => self.literal(literal),
                Origin::OfOneLane(from) => self.literal(Literal::OneLane(from)),
            };
            if self.is_literal(from) {
                moved.push((self.in_target(from), to));
            }
            moved.extend(self.list(Side::Source, from).map(|l| (l, to)));
        }
        for &(to, _) in copies {
            self.overwrite_source(to);
        }
        for (l, x) in moved.drain(..) {
            self.add(l, x);
        }
        for x in undefined {
            self.undefine_source(x);
        }
        self.moved = moved;
    }

    /// Nothing is known of the constant file any more.
    pub fn forget_constants(&mut self) {
        self.forget(|literal| matches!(literal, Literal::Const(..)));
    }

    /// The lane that wrote to shared registers may not be the one that does so from now on.
    pub fn forget_lane(&mut self) {
        if std::mem::take(&mut self.one_lane) && !left_out(Guard::RegistersLane) {
            self.forget(|literal| matches!(literal, Literal::OneLane(_)));
        }
    }

    fn forget(&mut self, which: impl Fn(Literal) -> bool) {
        for fact in self.facts.keys() {
            let [l, x] = self.facts[fact].pieces;
            if l != NOWHERE && (self.literal_of(x).is_some_and(&which) || self.target_literal(l).is_some_and(&which)) {
                self.unlink(fact, Side::Target);
                self.unlink(fact, Side::Source);
                self.release(fact);
            }
        }
    }
}
