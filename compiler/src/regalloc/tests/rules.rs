//! Random programs without one rule of the allocator each, and without all of them.

use super::spill::{SpillCounts, check_spilled};
use super::*;

fn without_rules(name: &str, rules: AllocationRules, refused: usize) {
    let mut counts = SpillCounts::default();
    for seed in 1..300u64 {
        let target = &targets()[(seed % 2) as usize];
        let profile = Profile { pressure: 4 + (seed % 50) as usize, size: 20 + (seed % 90) as usize };
        let program = random_program(seed, target, profile);
        let limit = match seed % 5 {
            0 => RegisterLimit::Minimum(0),
            1 | 2 => RegisterLimit::Minimum((seed % 13) as u16),
            3 => RegisterLimit::Registers(24 + (seed % 60) as u16),
            _ => RegisterLimit::Target,
        };
        check_spilled(&program, target, limit, seed, true, rules, &mut counts);
    }
    let SpillCounts { spilled, reloads, refused: these } = counts;
    println!("{name}: {spilled} programs spilled, {reloads} reloads, {these} refused");
    assert!(spilled > 100 && these <= refused, "{name}: {spilled} spilled, {these} refused");
}

#[test]
fn without_merge_sets() {
    without_rules("no merge sets", AllocationRules { coalescing: Coalescing::Nothing, ..RULES }, 10);
}

#[test]
fn without_coalescing_of_vectors() {
    without_rules("no vectors", AllocationRules { coalescing: Coalescing::Variables, ..RULES }, 10);
}

#[test]
fn without_splitting() {
    without_rules("no splitting", AllocationRules { splitting: false, ..RULES }, 10);
}

#[test]
fn without_partial_spilling() {
    without_rules("whole values", AllocationRules { partial_spilling: false, ..RULES }, 10);
}

#[test]
fn without_occupancy() {
    without_rules("no occupancy", AllocationRules { occupancy: false, ..RULES }, 10);
}

#[test]
fn without_any_rule() {
    let rules = AllocationRules {
        coalescing: Coalescing::Nothing,
        splitting: false,
        partial_spilling: false,
        occupancy: false,
    };
    without_rules("nothing", rules, 10);
}
