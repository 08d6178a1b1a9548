//! Random programs without one feature of the allocator each, and without all of them.

use super::spill::{SpillCounts, check_spilled};
use super::*;

fn without(name: &str, disabled: &[Feature], refused: usize) {
    let features = Features::all() - disabled.iter().copied().collect();
    let mut counts = SpillCounts::default();
    for seed in 1..160u64 {
        let target = &targets()[(seed % 2) as usize];
        let profile = Profile { pressure: 4 + (seed % 50) as usize, size: 20 + (seed % 90) as usize };
        let program = random_program(seed, target, profile);
        let limit = match seed % 5 {
            0 => RegisterLimit::Minimum(0),
            1 | 2 => RegisterLimit::Minimum((seed % 13) as u16),
            3 => RegisterLimit::Registers(24 + (seed % 60) as u16),
            _ => RegisterLimit::Target,
        };
        check_spilled(&program, target, limit, seed, true, features, &mut counts);
    }
    let SpillCounts { spilled, reloads, refused: these } = counts;
    println!("{name}: {spilled} programs spilled, {reloads} reloads, {these} refused");
    assert!(spilled > 50 && these <= refused, "{name}: {spilled} spilled, {these} refused");
}

#[test]
fn without_merge_sets() {
    without("no merge sets", &[Feature::MergeSets], 10);
}

#[test]
fn without_coalescing_of_vectors() {
    without("no vectors", &[Feature::VectorCoalescing], 10);
}

#[test]
fn without_splitting() {
    without("no splitting", &[Feature::LiveRangeSplitting], 10);
}

#[test]
fn without_partial_spilling() {
    without("whole values", &[Feature::PartialSpilling], 10);
}

#[test]
fn without_occupancy() {
    without("no occupancy", &[Feature::Occupancy], 10);
}

#[test]
fn without_any_feature() {
    use Feature::{LiveRangeSplitting, MergeSets, Occupancy, PartialSpilling};
    without("nothing", &[MergeSets, LiveRangeSplitting, PartialSpilling, Occupancy], 10);
}
