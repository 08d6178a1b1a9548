//! Tests that each planted bug is found, at its stage, in the programs of a campaign.

use crate::semantics::environment::env::Env;
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;

use crate::harness::check::{Checker, Refutation};
use crate::programs::generator;
use crate::programs::generator::{Features, Profile};
use crate::programs::planted_bugs::{ALL, by_name};
use crate::programs::seeds::{env_seeds, program_seed};

#[test]
fn names_are_unique_and_found() {
    for plant in &ALL {
        assert_eq!(by_name(plant.name), Some(plant));
    }
    assert_eq!(by_name("none"), None);
}

/// A program on which a bug has no effect passes. A failure is reported at the stage of the bug, and soon.
#[test]
fn each_is_found_where_it_is() {
    let mut checker = Checker::new(Target::default(), Options::default());
    for plant in &ALL {
        let found = (0..2000u64).find(|&number| {
            let seed = program_seed(1, number);
            let profile = Profile::ALL[(number % Profile::ALL.len() as u64) as usize];
            let shader = generator::from_seed(seed, profile, Features::ALL).shader;
            let mut change = |stage, program: &mut _| plant.apply(stage, program);
            let report = checker.program(&shader, &Env::from_seeds(&env_seeds(seed, 1)), Some(&mut change));
            let refuted = report.refutation().map(|Refutation { stage, .. }| *stage);
            let failed = refuted.or(report.crash().map(|(stage, _)| stage.name()));
            assert!(failed.is_none() || failed == Some(plant.stage.name()), "{}: {failed:?}", plant.name);
            failed.is_some()
        });
        let found = found.unwrap_or_else(|| panic!("{} is not found in 2000 programs", plant.name));
        println!("{}: program {found}", plant.name);
    }
}
