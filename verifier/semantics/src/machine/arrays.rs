//! The registers that relative accesses reach.
//!
//! An instruction names the register that is added to `a0.x`: that of some element, and the text also the number of
//! elements, but not the start of the array: [`ArrayBases`] has that, if it is known. Otherwise an access reaches all
//! registers of all arrays of that size that have the named register. Where no size is given, as in words, it reaches
//! the whole file. A relative access to constants stays in the part of their file that has the named word.

use super::units;
use ir3_compiler::ir3::{Program, RegClass};
use ir3_compiler::machine::Ip;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// The sides of an instruction that may access an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Its sources.
    Read,
    /// Its destinations.
    Write,
}

/// The positions of accessed arrays, if they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayBases {
    /// The first registers of arrays in registers.
    known: FxHashMap<(Ip, Side), u16>,
    /// The parts of the constant file: a relative access to one of them stays there.
    consts: Vec<Range<u16>>,
}

impl ArrayBases {
    /// Adds the first register of the array that all relative operands of one side access.
    pub fn insert(&mut self, at: Ip, side: Side, base: u16) {
        self.known.insert((at, side), base);
    }

    /// The first register of the array, if it is known.
    #[must_use]
    pub fn get(&self, at: Ip, side: Side) -> Option<u16> {
        self.known.get(&(at, side)).copied()
    }

    /// Adds a part of the constant file, in words.
    pub fn add_consts(&mut self, words: Range<u16>) {
        self.consts.push(words);
    }

    /// The words of the constant file that an access relative to `a0.x` may read; none if that is not known.
    #[must_use]
    pub fn consts(&self, offset: i16) -> Option<Range<u16>> {
        let named = u16::try_from(offset).ok()?;
        self.consts.iter().find(|words| words.contains(&named)).cloned()
    }

    /// The bases of code without the instruction at a position.
    #[must_use]
    pub fn without(&self, removed: Ip) -> Self {
        let moved = |at: Ip| if at > removed { Ip::from_u32(at.as_u32() - 1) } else { at };
        let known = self.known.iter().filter(|((at, _), _)| *at != removed);
        Self {
            known: known.map(|(&(at, side), &base)| ((moved(at), side), base)).collect(),
            consts: self.consts.clone(),
        }
    }
}

/// The first register that a relative access of a program may reach, and the number of registers. If the program states
/// the registers of all arrays of the size that the access names, the result is the array that contains the named
/// register, or all these arrays if none does.
pub fn reach(program: &Program, offset: i16, size: u16, class: RegClass, merged: bool) -> (u16, u16) {
    let arrays = || program.arrays.values().filter(|array| array.class == class && array.length == size);
    let bases: Option<SmallVec<[u16; 4]>> = arrays().map(|array| array.base.map(|base| base.0)).collect();
    let bases = bases.unwrap_or_default();
    let own = bases.iter().copied().find(|&base| (0..i32::from(size)).contains(&(i32::from(offset) - i32::from(base))));
    match (own, bases.iter().min(), bases.iter().max()) {
        (Some(base), ..) => extent(offset, size, Some(base), class, merged),
        (None, Some(&first), Some(&last)) => extent(offset, last - first + size, Some(first), class, merged),
        _ => extent(offset, size, None, class, merged),
    }
}

/// The first register that a relative access may reach, and the number of registers.
pub fn extent(offset: i16, size: u16, base: Option<u16>, class: RegClass, merged: bool) -> (u16, u16) {
    let file = units::file_size(class, merged);
    match (base, u16::try_from(offset)) {
        (Some(base), _) if size > 0 && base < file => (base, size.min(file - base)),
        (None, Ok(named)) if size > 0 && named < file => {
            let first = (named + 1).saturating_sub(size);
            (first, (named + size).min(file) - first)
        }
        _ => (0, file),
    }
}
