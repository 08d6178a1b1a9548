//! Values for undefined bits, to decide if a target differs.
//!
//! A run marks each bit that *may* depend on an undefined value (`operations::undefined`), which are more bits than do:
//! the analysis is per operation, so it does not see that `x ^ x` is 0. For a source that errs on the safe side. A mark
//! in the target without one in the source is no difference by itself: the same function, in other instructions, may
//! have marks elsewhere. An undefined value of a target is *some* value, the same for all its uses. So the target runs
//! again, with a value for each undefined bit ([`Filling`]); it differs if one of these runs does, or if they take
//! different branches: a branch on an undefined value has no meaning on either edge ([`Outcome::decisions`]). Such a
//! run is one of those that the target may have, so a refutation is never wrong; and if no filling shows a difference,
//! the verdict is that of a run: tested.
//!
//! nir's operations and accesses promise something: that a sum does not overflow, that an address is aligned. A source
//! that breaks a promise of its own has no meaning there, so a difference is not an error. A target that does where its
//! source does not runs again, and the result that breaks the promise is undefined ([`Scratch::strict`]).

use super::{Compared, Difference, End, OperationSite, Outcome, Scratch, UndefinedReason};
use crate::environment::env::{lanes, nice};
use crate::support::random::hash;

/// The value of undefined bits in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// All are 0.
    Zeros,
    /// All are 1.
    Ones,
    /// Other bits in each place and lane, by a seed.
    Mixed(u64),
    /// Other numbers in each place and lane, by a seed: small ones, floats, corner cases, as inputs are.
    Fitting(u64),
}

impl Filling {
    /// The fillings that are tried: hardly any comparison needs them, and one that does should not miss a difference.
    const TRIED: [Self; 12] = [
        Self::Mixed(1),
        Self::Fitting(1),
        Self::Zeros,
        Self::Ones,
        Self::Mixed(2),
        Self::Fitting(2),
        Self::Fitting(3),
        Self::Fitting(4),
        Self::Fitting(5),
        Self::Fitting(6),
        Self::Fitting(7),
        Self::Fitting(8),
    ];

    /// The bits of a place in a lane.
    pub fn bits(self, place: u32, lane: usize) -> u32 {
        match self {
            Self::Zeros => 0,
            Self::Ones => u32::MAX,
            Self::Mixed(seed) => hash(&[seed, place.into(), lane as u64]) as u32,
            Self::Fitting(seed) => nice(hash(&[seed, place.into(), lane as u64])),
        }
    }
}

/// The masks of the bits that places narrower than a word have: first place, number of places, mask.
pub(crate) type Narrow = Vec<(u32, u32, u32)>;

/// A filling, and the bits of each place.
#[derive(Debug)]
pub(crate) struct Filled {
    filling: Filling,
    masks: Vec<u32>,
}

impl Filled {
    /// Creates the filling of a program with `places` places.
    pub fn new(filling: Filling, places: u32, narrow: &Narrow) -> Self {
        let mut masks = vec![u32::MAX; places as usize];
        for &(first, count, mask) in narrow {
            masks[first as usize..(first + count) as usize].fill(mask);
        }
        Self { filling, masks }
    }

    /// The bits of a place in a lane; none beyond its width.
    pub fn bits(&self, place: u32, lane: usize) -> u32 {
        self.filling.bits(place, lane) & self.masks[place as usize]
    }

    /// Gives the undefined bits of these lanes their values.
    pub fn fill(&self, place: u32, row: &mut [u32], poison: u64, open: impl Fn(usize) -> u32) {
        for lane in lanes(poison) {
            let open = open(lane);
            row[lane] = row[lane] & !open | self.bits(place, lane) & open;
        }
    }
}

impl Difference {
    /// Returns true if the target may only be undefined where it should be defined.
    fn is_of_undefined_bits(&self) -> bool {
        match self {
            Self::Output { actual, .. } => actual.is_none(),
            Self::Memory { expected, actual, defined, poisoned, .. } => {
                (expected ^ actual) & defined & !poisoned == 0 && poisoned & defined != 0
            }
            Self::Undefined { reason, .. } => matches!(
                reason,
                UndefinedReason::Branch
                    | UndefinedReason::Kill
                    | UndefinedReason::Address
                    | UndefinedReason::LaneNumber
                    | UndefinedReason::Predication
            ),
            // A load at an undefined address counts nothing.
            Self::Loads { .. } => true,
            _ => false,
        }
    }
}

/// A comparison of a run with one of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The comparison without filling undefined values.
    Plain(Compared),
    /// The target is undefined somewhere, by its marks, where the source is not; with all tried values of its undefined
    /// bits, it agrees.
    Filled,
}

/// Compares a run of a target with that of its source in the same environment. `run` runs the target again.
///
/// # Errors
/// The first difference.
pub fn compare(
    source: &Outcome,
    target: &Outcome,
    scratch: &mut Scratch,
    mut run: impl FnMut(&mut Scratch) -> Outcome,
) -> Result<Agreement, Difference> {
    if let Some(other) = target.other_waves.as_deref()
        && source.other_waves.is_none()
        && source.end == End::Finished
    {
        let run = |scratch: &mut Scratch| {
            let mut outcome = run(scratch);
            outcome.other_waves.take().map_or(outcome, |other| *other)
        };
        if compare_undefined(source, other, scratch, run).is_err() {
            let origin = OperationSite { operation: "shpe", instr: 0, line: 0 };
            return Err(Difference::Undefined { reason: UndefinedReason::Preamble, origin, lanes: target.lanes });
        }
    }
    match compare_undefined(source, target, scratch, &mut run) {
        // The source has no meaning where it breaks its own promises. A target that breaks the same ones makes no use of them.
        Err(_) if !source.broken.is_empty() && source.broken != target.broken => {
            Ok(Agreement::Plain(Compared::Vacuous))
        }
        Ok(_) if !target.broken.is_empty() && source.broken.is_empty() => {
            let mut strict = |scratch: &mut Scratch| scratch.strict(&mut run);
            let target = strict(scratch);
            compare_undefined(source, &target, scratch, strict)
        }
        compared => compared,
    }
}

/// Runs a program. If it has a preamble, it runs again as a wave that does not run that, and finds the words of the constant file that the first
/// one has left: the outcome has that of the second run too, if it is another one.
pub fn run_with_preamble(scratch: &mut Scratch, mut run: impl FnMut(&mut Scratch) -> Outcome) -> Outcome {
    let outcome = run(scratch);
    if outcome.end != End::Finished {
        return outcome;
    }
    let mut again = |scratch: &mut Scratch| scratch.without_preamble(&mut run);
    let second = again(scratch);
    let words = scratch.consts.written();
    let again = |scratch: &mut Scratch| {
        scratch.preamble_words = Some(words.clone());
        let outcome = run(scratch);
        scratch.preamble_words = None;
        outcome
    };
    let differs = compare_undefined(&outcome, &second, scratch, again).is_err();
    Outcome { other_waves: differs.then(|| Box::new(second)), ..outcome }
}

/// Compares two runs without filling undefined values.
fn compare_undefined(
    source: &Outcome,
    target: &Outcome,
    scratch: &mut Scratch,
    mut run: impl FnMut(&mut Scratch) -> Outcome,
) -> Result<Agreement, Difference> {
    let difference = match source.compare(target) {
        Ok(compared) => return Ok(Agreement::Plain(compared)),
        Err(difference) if difference.is_of_undefined_bits() => difference,
        Err(difference) => return Err(difference),
    };
    let is_undefined = matches!(difference, Difference::Undefined { .. });
    let mut decisions = None;
    for filling in Filling::TRIED {
        let filled = scratch.filled(filling, &mut run);
        match source.compare(&filled) {
            Ok(Compared::Same | Compared::Vacuous) => {}
            Ok(Compared::OutOfFuel) | Err(_) => return Err(difference),
        }
        if is_undefined && *decisions.get_or_insert(filled.decisions) != filled.decisions {
            return Err(difference);
        }
    }
    Ok(Agreement::Filled)
}
