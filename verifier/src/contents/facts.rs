//! What is known at a point: which piece of the target holds what which piece of the source has.
//!
//! A *fact* `(l, x)` says: at this point, in every lane that is here, piece `l` of the target has the same bits as piece `x` of
//! the source, or `x` is undefined. Facts at a point are a set; more facts say more, so where ways meet it is their
//! intersection, but that a way on which `x` is undefined has every fact about `x`.
//! Literals are pieces of both programs, too: numbers that stand in instructions and words of the constant file.

use super::location::Piece;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;

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

/// What is known at the beginning or the end of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Facts, target piece in the high half, ascending.
    pairs: Vec<u64>,
    /// Pieces of the source that begin undefined and may have been written: registers and scratch memory.
    written: FixedBitSet,
    /// Other pieces that are undefined here, ascending.
    undefined: Vec<Piece>,
}

const fn pair(l: Piece, x: Piece) -> u64 {
    (l as u64) << 32 | x as u64
}

const fn unpair(pair: u64) -> (Piece, Piece) {
    ((pair >> 32) as u32, pair as u32)
}

impl Facts {
    /// Nothing has happened yet, in a program whose first `fixed` pieces begin undefined.
    pub fn entry(fixed: u32) -> Self {
        Self { pairs: Vec::new(), written: FixedBitSet::with_capacity(fixed as usize), undefined: Vec::new() }
    }

    fn is_undefined(&self, x: Piece) -> bool {
        let at = x as usize;
        at < self.written.len() && !self.written.contains(at) || self.undefined.binary_search(&x).is_ok()
    }

    /// What is known where this way and another meet.
    pub fn meet(&mut self, other: &Self) {
        let (mut a, mut b) = (self.pairs.iter().copied().peekable(), other.pairs.iter().copied().peekable());
        let mut met = Vec::with_capacity(self.pairs.len());
        loop {
            match (a.peek().copied(), b.peek().copied()) {
                (None, None) => break,
                (Some(x), y) if y.is_none_or(|y| x < y) => {
                    a.next();
                    if other.is_undefined(unpair(x).1) {
                        met.push(x);
                    }
                }
                (x, Some(y)) if x.is_none_or(|x| y < x) => {
                    b.next();
                    if self.is_undefined(unpair(y).1) {
                        met.push(y);
                    }
                }
                (Some(x), _) => {
                    a.next();
                    b.next();
                    met.push(x);
                }
                (None, Some(_)) => unreachable!("the second arm takes it"),
            }
        }
        self.pairs = met;
        self.written.union_with(&other.written);
        self.undefined.retain(|x| other.undefined.binary_search(x).is_ok());
    }

    /// Keeps the facts that `keep` does.
    pub fn retain(&mut self, mut keep: impl FnMut(Piece, Piece) -> bool) {
        self.pairs.retain(|&fact| {
            let (l, x) = unpair(fact);
            keep(l, x)
        });
    }

    /// Whether a fact may be true: it is known, or about nothing defined.
    pub fn allows(&self, l: Piece, x: Piece) -> bool {
        self.pairs.binary_search(&pair(l, x)).is_ok() || self.is_undefined(x)
    }

    /// The facts.
    pub fn iter(&self) -> impl Iterator<Item = (Piece, Piece)> + '_ {
        self.pairs.iter().map(|&fact| unpair(fact))
    }
}

type Few = SmallVec<[Piece; 2]>;

/// The facts at the point that a walk through a block has come to.
pub struct Here {
    /// What each piece of the target holds.
    held: Vec<Few>,
    /// Which pieces of the target hold each piece of the source.
    holders: Vec<Few>,
    /// Pieces of the target that may hold something, and whether each is in that list.
    touched: Vec<Piece>,
    is_touched: FixedBitSet,
    written: FixedBitSet,
    undefined: Few,
    literals: FxHashMap<Literal, Piece>,
    /// The literals in the order of their pieces, which stand behind the others in both programs.
    literal_at: Vec<Literal>,
    /// Pieces of the source and of the target, without literals.
    sources: u32,
    targets: u32,
    /// Whether a fact is about what one lane has.
    one_lane: bool,
}

impl Here {
    /// For programs with so many pieces.
    pub fn new(sources: u32, targets: u32) -> Self {
        Self {
            held: vec![Few::new(); targets as usize],
            holders: vec![Few::new(); sources as usize],
            touched: Vec::new(),
            is_touched: FixedBitSet::with_capacity(targets as usize),
            written: FixedBitSet::new(),
            undefined: Few::new(),
            literals: FxHashMap::default(),
            literal_at: Vec::new(),
            sources,
            targets,
            one_lane: false,
        }
    }

    /// Goes to a point where this is known.
    pub fn load(&mut self, facts: &Facts) {
        for l in self.touched.drain(..) {
            for x in self.held[l as usize].drain(..) {
                self.holders[x as usize].clear();
            }
            self.is_touched.set(l as usize, false);
        }
        for at in 0..self.literal_at.len() as u32 {
            self.held[(self.targets + at) as usize] = Few::from_elem(self.sources + at, 1);
            self.holders[(self.sources + at) as usize] = Few::from_elem(self.targets + at, 1);
        }
        self.written.clone_from(&facts.written);
        self.undefined = facts.undefined.iter().copied().collect();
        for (l, x) in facts.iter() {
            // No fact is there twice, and of literals none is what they are anyway.
            self.insert(l, x);
        }
    }

    /// What is known here, of what `keep` keeps.
    pub fn save(&self, mut keep: impl FnMut(Piece, Piece) -> bool) -> Facts {
        let mut pairs = Vec::new();
        for &l in &self.touched {
            let is_own = |x: Piece| l >= self.targets && x >= self.sources;
            let kept = self.held[l as usize].iter().filter(|&&x| !is_own(x) && keep(l, x));
            pairs.extend(kept.map(|&x| pair(l, x)));
        }
        pairs.sort_unstable();
        let mut undefined = self.undefined.to_vec();
        undefined.sort_unstable();
        undefined.dedup();
        Facts { pairs, written: self.written.clone(), undefined }
    }

    /// The piece of a literal in the source.
    pub fn literal(&mut self, literal: Literal) -> Piece {
        *self.literals.entry(literal).or_insert_with(|| {
            let at = self.literal_at.len() as u32;
            self.literal_at.push(literal);
            self.holders.push(Few::from_elem(self.targets + at, 1));
            self.held.push(Few::from_elem(self.sources + at, 1));
            self.is_touched.grow(self.held.len());
            self.sources + at
        })
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

    /// Whether a piece of the target has what one of the source has.
    pub fn holds(&self, l: Piece, x: Piece) -> bool {
        self.held[l as usize].contains(&x) || self.is_undefined(x)
    }

    /// Whether nothing defined is in a piece of the source.
    pub fn is_undefined(&self, x: Piece) -> bool {
        let at = x as usize;
        at < self.written.len() && !self.written.contains(at) || self.undefined.contains(&x)
    }

    /// What a piece of the target holds.
    pub fn held(&self, l: Piece) -> &[Piece] {
        &self.held[l as usize]
    }

    /// The number that a piece of the target holds for certain.
    pub fn target_number(&self, l: Piece) -> Option<u16> {
        number(self.held[l as usize].iter().filter_map(|&x| self.literal_of(x)))
    }

    /// The number that a piece of the source holds for certain.
    pub fn source_number(&self, x: Piece) -> Option<u16> {
        number(self.holders[x as usize].iter().filter_map(|&l| self.target_literal(l)))
    }

    /// From now on this holds.
    pub fn add(&mut self, l: Piece, x: Piece) {
        if !self.held[l as usize].contains(&x) {
            self.insert(l, x);
        }
    }

    fn insert(&mut self, l: Piece, x: Piece) {
        self.held[l as usize].push(x);
        self.holders[x as usize].push(l);
        if !self.is_touched.put(l as usize) {
            self.touched.push(l);
        }
    }

    /// The target has written something unknown to a piece.
    pub fn overwrite_target(&mut self, l: Piece) {
        for x in std::mem::take(&mut self.held[l as usize]) {
            self.holders[x as usize].retain(|other| *other != l);
        }
    }

    /// The source has written something to a piece.
    pub fn overwrite_source(&mut self, x: Piece) {
        if self.one_lane {
            self.forget(|literal| literal == Literal::OneLane(x));
        }
        for l in std::mem::take(&mut self.holders[x as usize]) {
            self.held[l as usize].retain(|other| *other != x);
        }
        if (x as usize) < self.written.len() {
            self.written.insert(x as usize);
        } else {
            self.undefined.retain(|other| *other != x);
        }
    }

    /// The source has written nothing defined to a piece.
    pub fn undefine_source(&mut self, x: Piece) {
        self.overwrite_source(x);
        if (x as usize) < self.written.len() {
            self.written.set(x as usize, false);
        } else {
            self.undefined.push(x);
        }
    }

    /// The target has copied pieces, all at once: destination, source.
    pub fn copy_target(&mut self, copies: &[(Piece, Origin)]) {
        let mut new = SmallVec::<[Few; 8]>::new();
        for &(_, from) in copies {
            new.push(match from {
                Origin::Piece(from) => self.held[from as usize].clone(),
                Origin::Literal(literal) => {
                    let at = self.literal(literal) - self.sources;
                    self.held[(self.targets + at) as usize].clone()
                }
                Origin::OfOneLane(from) => {
                    self.one_lane = true;
                    let held = self.held[from as usize].clone();
                    held.into_iter()
                        .map(|x| if self.is_literal(x) { x } else { self.literal(Literal::OneLane(x)) })
                        .collect()
                }
                Origin::Undefined => Few::new(),
            });
        }
        for &(to, _) in copies {
            self.overwrite_target(to);
        }
        for (&(to, _), held) in copies.iter().zip(new) {
            for x in held {
                self.add(to, x);
            }
        }
    }

    /// The source has copied pieces, all at once.
    pub fn copy_source(&mut self, copies: &[(Piece, Origin)]) {
        let mut new = SmallVec::<[Option<Few>; 8]>::new();
        for &(_, from) in copies {
            let from = match from {
                Origin::Piece(from) if self.is_undefined(from) => None,
                Origin::Piece(from) => Some(from),
                Origin::Literal(literal) => Some(self.literal(literal)),
                Origin::OfOneLane(from) if self.is_undefined(from) => None,
                Origin::OfOneLane(from) => Some(self.literal(Literal::OneLane(from))),
                Origin::Undefined => None,
            };
            new.push(from.map(|from| self.holders[from as usize].clone()));
        }
        for &(to, _) in copies {
            self.overwrite_source(to);
        }
        for (&(to, _), holders) in copies.iter().zip(new) {
            match holders {
                Some(holders) => holders.into_iter().for_each(|l| self.add(l, to)),
                None => self.undefine_source(to),
            }
        }
    }

    /// Nothing is known of the constant file any more.
    pub fn forget_constants(&mut self) {
        self.forget(|literal| matches!(literal, Literal::Const(..)));
    }

    /// The lane that wrote to shared registers may not be the one that does so from now on.
    pub fn forget_lane(&mut self) {
        if std::mem::take(&mut self.one_lane) {
            self.forget(|literal| matches!(literal, Literal::OneLane(_)));
        }
    }

    fn forget(&mut self, which: impl Fn(Literal) -> bool) {
        for at in 0..self.literal_at.len() {
            if which(self.literal_at[at]) {
                let (x, l) = (self.sources + at as u32, self.targets + at as u32);
                for holder in std::mem::replace(&mut self.holders[x as usize], Few::from_elem(l, 1)) {
                    self.held[holder as usize].retain(|other| *other != x);
                }
                for held in std::mem::replace(&mut self.held[l as usize], Few::from_elem(x, 1)) {
                    if held != x {
                        self.holders[held as usize].retain(|other| *other != l);
                    }
                }
            }
        }
    }
}

/// The number among literals that are all the same.
fn number(mut literals: impl Iterator<Item = Literal>) -> Option<u16> {
    literals.find_map(|literal| match literal {
        Literal::Bits(bits) => Some(bits),
        _ => None,
    })
}
