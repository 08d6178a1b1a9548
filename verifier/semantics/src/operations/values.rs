//! Kernels: an operation over all lanes of a wave, and its meaning in one lane.

use crate::arithmetic::domain::Domain;
use crate::arithmetic::rows::{LANES, Row};
use crate::terms::{Term, Terms};
use smallvec::SmallVec;

/// The words of a value, one of 32 bits per row.
pub type Words = SmallVec<[Term; 4]>;

/// One definition in two domains: a loop over the lanes, and its result in one lane, as terms. Both are expansions of
/// one expression.
///
/// A meaning works on the words of the rows: terms of 32 bits, zero-extended; a component of 64 bits is two words.
#[derive(Debug)]
pub struct Defined<Run, Meaning> {
    /// The loop. Every lane is computed, active or not; none can trap.
    pub run: Run,
    /// The result in one lane.
    pub meaning: Meaning,
}

/// Equality of identity: two definitions are equal if they are the same one.
impl<Run, Meaning> PartialEq for Defined<Run, Meaning> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A kernel of one source row.
pub type One = Defined<fn(&mut Row, &Row), fn(&mut Terms, Term) -> Term>;
/// A kernel of two source rows.
pub type Two = Defined<fn(&mut Row, &Row, &Row), fn(&mut Terms, Term, Term) -> Term>;
/// A kernel of three source rows.
pub type Three = Defined<fn(&mut Row, &Row, &Row, &Row), fn(&mut Terms, Term, Term, Term) -> Term>;
/// A kernel of any number of destination and source rows: every component of every source in order, 64-bit components
/// as two rows.
pub type Rows = Defined<fn(&mut [Row], &[&Row]), fn(&mut Terms, &[Term]) -> Words>;
/// A test of each lane: the mask of the lanes where it holds; a term of one bit.
pub type LaneTest = Defined<fn(&Row) -> u64, fn(&mut Terms, Term) -> Term>;
/// A modification of a row in place.
pub type Modify = Defined<fn(&mut Row), fn(&mut Terms, Term) -> Term>;

/// One operation over all lanes.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// One source row.
    One(&'static One),
    /// Two source rows.
    Two(&'static Two),
    /// Three source rows.
    Three(&'static Three),
    /// A choice between two sources by a third: the only operation whose result may be defined though an operand is
    /// poison.
    Select(Select),
    /// Any number of rows.
    Rows(&'static Rows),
}

/// A choice: in each lane the condition is tested, and one of two sources is the result.
///
/// The result is poison where the condition is, or else where the chosen source is. Of a condition of 64 bits, which is
/// tested for zero, the test takes the bitwise or of both words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Select {
    /// The test of the condition.
    pub test: &'static LaneTest,
    /// Index of the source that is tested.
    pub condition: u8,
    /// Index of the source that is the result where the condition holds.
    pub yes: u8,
    /// Index of the source that is the result elsewhere.
    pub no: u8,
}

impl Select {
    /// The lanes in which a condition of these words holds.
    pub fn mask(&self, condition: &[Row]) -> u64 {
        match condition {
            [word] => (self.test.run)(word),
            words => (self.test.run)(&std::array::from_fn(|lane| words.iter().fold(0, |bits, word| bits | word[lane]))),
        }
    }

    /// A condition of these words, as a term of one bit.
    pub fn holds(&self, terms: &mut Terms, condition: &[Term]) -> Term {
        let mut bits = condition[0];
        for &word in &condition[1..] {
            bits = terms.or(32, bits, word);
        }
        (self.test.meaning)(terms, bits)
    }

    /// Fills `dst` with `yes` where `mask` has a bit, with `no` elsewhere.
    #[inline]
    pub fn blend(dst: &mut Row, mask: u64, yes: &Row, no: &Row) {
        for lane in 0..LANES {
            dst[lane] = if mask >> lane & 1 != 0 { yes[lane] } else { no[lane] };
        }
    }

    /// The poison of the result, from the mask of the test and the poison of the three sources.
    #[inline]
    pub fn poison(mask: u64, condition: u64, yes: u64, no: u64) -> u64 {
        condition | mask & yes | !mask & no
    }
}
