//! Divergence pairs: small programs in which lanes diverge and reconverge, each with a changed version, to find unsound
//! proofs about several lanes.
//!
//! In compiled random programs it is rare that lanes are at two points at once and observe each other. Here nearly all
//! of a program is that: loops that lanes leave in different iterations, exits from several loops at once, blocks in
//! any order, and in them shared registers, memory, and little else (`grow`). The changes (`change`) preserve the
//! behaviour of a single lane, or nearly so: an operation in another block, a value moved through a shared register,
//! two blocks in the other order. Some keep the meaning and some do not, which is unknown in advance: the interpreter
//! tries to refute every pair that an engine has proved.
//!
//! [`pairs`] is a stream of them: pair `i` is a function of the seed and `i` alone.

mod change;
mod grow;
mod sketch;
mod text;

pub use text::compute_shader;

use crate::Pair;
use crate::seeds::program_seed;
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;
use sketch::Sketch;
use std::ops::Range;

/// The number of kinds of changes.
pub const CHANGES: usize = change::COUNT;

/// Generates the pairs of the given numbers, each to be run in `runs` environments. Numbers that give no valid program
/// are skipped.
pub fn pairs(seed: u64, numbers: Range<u64>, runs: u32, machine: &Target) -> impl Iterator<Item = Pair> + Send {
    let machine = *machine;
    numbers.filter_map(move |number| pair(program_seed(seed, number), number, runs, &machine))
}

fn pair(seed: u64, number: u64, runs: u32, machine: &Target) -> Option<Pair> {
    let mut random = Random::new(seed);
    let one = grow::sketch(&mut random);
    let mut other = one.clone();
    let mut last = None;
    for _ in 0..1 + usize::from(random.chance(30)) {
        last = change::random(&mut other, &mut random).or(last);
    }
    let change = last?;
    let made = |sketch: &Sketch| Some(Snapshot::Ir3(Box::new(sketch.program(machine)?)));
    let (mut source, mut target) = (made(&one)?, made(&other)?);
    if random.chance(50) {
        std::mem::swap(&mut source, &mut target);
    }
    Some(Pair { family: None, change, number, source, target, differs: false, seed, runs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_one_pair() {
        let machine = Target::default();
        let texts = |first| -> Vec<(u64, String)> {
            let pairs = pairs(1, first..30, 1, &machine).filter(|pair| pair.number >= 20);
            pairs.map(|pair| (pair.number, pair.target.text())).collect()
        };
        assert_eq!(texts(0), texts(20));
        assert!(!texts(0).is_empty());
    }
}
