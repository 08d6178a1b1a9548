//! Adversarial pairs: small programs, each with a changed version that may or may not be equivalent, to find wrong
//! proofs.
//!
//! Each *family* aims at one mistake of provers, taken from an unsound proof that was found: subgroup votes in blocks
//! without instructions, values of other lanes, headers, undefined values, descriptors, barriers, derivatives,
//! contradictory texts. A program of a family is built from a *plan*, a few choices. A change is another plan, so one
//! function builds both programs of a pair. Some changes keep the meaning and some do not. A prover that proves a pair
//! whose programs differ is unsound.
//!
//! Programs differ if runs of the interpreter differ. Some changes differ by construction ([`Pair::differs`]), even if
//! no run shows it: another header, another descriptor. [`pairs`] is a stream: pair `i` of a family is a function of
//! the seed and `i` alone.

mod barriers;
mod bindings;
mod clones;
mod headers;
mod lane_moves;
mod moves;
mod quads;
mod shader;
mod texts;
mod undefined;
mod votes;

use crate::Pair;
use crate::divergence;
use crate::seeds::program_seed;
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;
use std::ops::Range;

/// The pair that a family makes from a stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub change: &'static str,
    pub source: Snapshot,
    pub target: Snapshot,
    pub differs: bool,
}

/// A family of adversarial pairs.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// The mistake that its pairs aim at.
    pub about: &'static str,
    make: fn(&mut Random, &Target) -> Option<Made>,
}

/// All families.
pub static FAMILIES: [Family; 11] = [
    Family { name: "votes", about: "votes at the ends of blocks without instructions", make: made::<votes::Votes> },
    Family {
        name: "lane-moves",
        about: "values of other lanes, which may come from another side of a loop",
        make: made::<lane_moves::LaneMoves>,
    },
    Family { name: "headers", about: "properties of the whole program", make: made::<headers::Headers> },
    Family {
        name: "undefined",
        about: "branches on undefined values, before and after stores",
        make: made::<undefined::UndefinedValues>,
    },
    Family { name: "bindings", about: "descriptor sets and indices", make: made::<bindings::Bindings> },
    Family {
        name: "barriers",
        about: "shared memory of two waves, with and without barriers",
        make: made::<barriers::Barriers>,
    },
    Family { name: "quads", about: "samples with implicit derivatives", make: made::<quads::Quads> },
    Family { name: "texts", about: "contradictory texts", make: texts::make },
    Family { name: "moves", about: "instructions, moves and blocks in other places", make: moves::make },
    Family { name: "clones", about: "values that are rematerialised where they are read", make: clones::make },
    Family { name: "waves", about: "divergent loops, shared registers and memory", make: divergence },
];

/// The choices that determine a program.
trait PairPlan: Clone + PartialEq {
    /// Draws a random plan.
    fn random(random: &mut Random) -> Self;
    /// Changes the plan. Returns the name of the change; `None` if there is nothing to change.
    fn change(&mut self, random: &mut Random) -> Option<&'static str>;
    /// Returns true if `target` differs by construction, whether or not a run shows it.
    fn differs(&self, _target: &Self) -> bool {
        false
    }
    /// Builds the program. `None` if it is not valid.
    fn program(&self, machine: &Target) -> Option<Snapshot>;
}

/// Makes a pair from two plans. `None` if a program is not valid.
fn made<P: PairPlan>(random: &mut Random, machine: &Target) -> Option<Made> {
    let one = P::random(random);
    let mut other = one.clone();
    // A random change often finds nothing to change.
    let change = (0..8).find_map(|_| {
        other = one.clone();
        other.change(random).filter(|_| other != one)
    })?;
    let (source, target) = if random.chance(50) { (other, one) } else { (one, other) };
    let differs = source.differs(&target);
    Some(Made { change, source: source.program(machine)?, target: target.program(machine)?, differs })
}

/// Makes a pair of [`divergence`].
fn divergence(random: &mut Random, machine: &Target) -> Option<Made> {
    let number = random.next();
    let Pair { change, source, target, .. } = divergence::pairs(number, 0..1, 0, machine).next()?;
    Some(Made { change, source, target, differs: false })
}

/// Generates the pairs of the given numbers, one family after the other in turn, each to be run in `runs` environments.
/// Numbers that give no valid program are skipped.
pub fn pairs(
    families: Vec<&'static Family>,
    seed: u64,
    numbers: Range<u64>,
    runs: u32,
    machine: &Target,
) -> impl Iterator<Item = Pair> + Send + use<> {
    let machine = *machine;
    numbers.filter_map(move |number| {
        let family = families[(number % families.len() as u64) as usize];
        let seed = program_seed(seed, number);
        let Made { change, source, target, differs } = (family.make)(&mut Random::new(seed), &machine)?;
        Some(Pair { family: Some(family.name), change, number, source, target, differs, seed, runs })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_one_pair() {
        let machine = Target::default();
        let texts = |first| -> Vec<(u64, String)> {
            let pairs = pairs(FAMILIES.iter().collect(), 1, first..60, 1, &machine).filter(|pair| pair.number >= 40);
            pairs.map(|pair| (pair.number, pair.target.text())).collect()
        };
        assert_eq!(texts(0), texts(40));
        assert!(texts(40).len() >= 12);
    }
}
