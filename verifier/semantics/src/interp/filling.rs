//! Values for undefined bits, to decide if a target differs from its source.
//!
//! A run marks each bit that *may* depend on an undefined value (`operations::undefined`). These are more bits than
//! really do: the analysis is per operation, so it does not detect that `x ^ x` is 0. For a source this is
//! conservative. A mark in the target without one in the source is not yet a difference: the same function, computed by
//! other instructions, may have other marks. An undefined value of a target is *some* value, the same for all its uses.
//! So the target runs again, with a value for each undefined bit ([`Filling`]). It differs if one of these runs does,
//! or if two of them take different branches: a branch on an undefined value is undefined behaviour
//! ([`Outcome::decisions`]). Each of these runs is a possible run of the target, so a refutation is never wrong. If no
//! filling shows a difference, the verdict is that of a run: tested.
//!
//! Operations and accesses of nir carry guarantees: a sum does not overflow, an address is aligned. A source that
//! violates a guarantee of its own has undefined behaviour, so a difference is not an error. If only the target
//! violates one, it runs again with an undefined result for that operation ([`Scratch::strict`]).

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
    /// Random bits, different in each place and lane, by a seed.
    Mixed(u64),
    /// Plausible numbers, different in each place and lane, by a seed: small integers, floats and corner cases, like
    /// inputs.
    Fitting(u64),
}

impl Filling {
    /// The fillings that are tried. Hardly any comparison needs them, and one that does should not miss a difference.
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

    /// The bits of a place (a storage slot) in a lane.
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

    /// Replaces the undefined bits of a row in these lanes.
    pub fn fill(&self, place: u32, row: &mut [u32], poison: u64, open: impl Fn(usize) -> u32) {
        for lane in lanes(poison) {
            let open = open(lane);
            row[lane] = row[lane] & !open | self.bits(place, lane) & open;
        }
    }
}

impl Difference {
    /// Returns true if the difference is only that the target may be undefined where the source is defined.
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
            // A load at an undefined address is not counted.
            Self::Loads { .. } => true,
            _ => false,
        }
    }
}

/// The result of the comparison of a run of the target with one of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The result of comparing the marked runs, without filling undefined values.
    Plain(Compared),
    /// The target is marked as undefined where the source is not, but agrees for all tried values of its undefined
    /// bits.
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
        // A source that violates its own guarantees is undefined. A target that violates the same ones does not exploit
        // them.
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

/// Runs a program. If it has a preamble, runs it again as a wave that skips the preamble and reads the words of the
/// constant file that the first wave has left. The outcome contains that of the second run, if it differs.
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
