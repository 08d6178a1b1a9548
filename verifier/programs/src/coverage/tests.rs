//! Names of cells, operations that selection accepts, and cells of generated programs.

use super::accepted::{Accepted, Status};
use super::*;
use crate::generator::{Features, Profile, from_seed};
use ir3_compiler::target::Target;
use rustc_hash::FxHashSet;

#[test]
fn names_are_unique() {
    let mut names = FxHashSet::default();
    for family in Family::ALL {
        let before = names.len();
        for (_, name) in family.cells() {
            assert!(names.insert(name.clone()), "{name}");
        }
        assert!(names.len() > before, "{family:?}");
    }
}

/// The cells of the first programs of a GPU with these features.
fn seen_in(programs: u64, features: Features) -> Seen {
    let mut seen = Seen::default();
    for seed in 0..programs {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        of_shader(&from_seed(seed, profile, features).shader, |cell| seen.add(cell));
    }
    seen
}

/// The least share of the cells that selection accepts, in percent, that 400 programs of all profiles and 200 of
/// `operations` have.
const FLOORS: [(Family, f64); 3] = [(Family::Alu, 38.0), (Family::Intrinsics, 30.0), (Family::Textures, 35.0)];

#[test]
fn a_few_hundred_programs_have_most_cells() {
    let target = Target::default();
    let mut seen = seen_in(400, Features::of(&target));
    for seed in 0..200 {
        of_shader(&from_seed(seed, Profile::Operations, Features::of(&target)).shader, |cell| seen.add(cell));
    }
    let accepted = Accepted::of(&target);
    for (family, floor) in FLOORS {
        let (mut filled, mut all) = (0, 0);
        for (cell, name) in family.cells() {
            let is_seen = seen.of(cell) > 0;
            let status = accepted.status(family, cell);
            if let Status::Impossible(reason) = &status {
                assert!(!reason.is_empty(), "{name} has no reason");
                assert!(!is_seen, "{name} is generated, and impossible: {reason}");
            }
            if is_seen || status == Status::Accepted {
                all += 1;
                filled += u32::from(is_seen);
            }
        }
        let share = f64::from(filled) / f64::from(all) * 100.0;
        println!("{family:?}: {filled} of {all}, {share:.1} %");
        assert!(share >= floor, "{family:?}: {filled} of {all}, {share:.1} %");
    }
}

/// A generator without an operation leaves the cells of the operation empty.
#[test]
fn cells_of_an_operation_that_is_lost_are_empty() {
    let all = Features::of(&Target::default());
    let has_images = |seen: &Seen| {
        let of_images = |name: &str| name.contains("image_load") || name.contains("image_store");
        Family::Intrinsics.cells().any(|(cell, name)| of_images(&name) && seen.of(cell) > 0)
    };
    assert!(has_images(&seen_in(120, all)));
    assert!(!has_images(&seen_in(120, Features { images: false, ..all })));
}
