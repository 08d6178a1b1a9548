use super::accepted::{Accepted, Status};
use super::*;
use crate::programs::generator::{Features, Profile, from_seed};
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

/// The cells that generated programs have are cells that selection accepts: a program of one operation is refused for a reason that holds
/// for every program.
#[test]
fn what_is_generated_is_accepted() {
    let target = Target::default();
    let mut seen = Seen::default();
    for seed in 0..300 {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        of_shader(&from_seed(seed, profile, Features::of(&target)).shader, |cell| seen.add(cell));
    }
    let accepted = Accepted::of(&target);
    let mut wrong = Vec::new();
    for family in [Family::Alu, Family::Intrinsics, Family::Textures] {
        for (cell, name) in family.cells().filter(|(cell, _)| seen.of(*cell) > 0) {
            if let Status::Refused(reason) = accepted.status(family, cell) {
                wrong.push(format!("{name}: {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells: {wrong:#?}", wrong.len());
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

/// The least share of the cells that selection accepts, in percent, that 400 programs of all profiles and 200 of `operations` have.
const FLOORS: [(Family, f64); 3] = [(Family::Alu, 60.0), (Family::Intrinsics, 30.0), (Family::Textures, 20.0)];

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
        for (cell, _) in family.cells() {
            let is_seen = seen.of(cell) > 0;
            if is_seen || accepted.status(family, cell) == Status::Accepted {
                all += 1;
                filled += u32::from(is_seen);
            }
        }
        let share = f64::from(filled) / f64::from(all) * 100.0;
        println!("{family:?}: {filled} of {all}, {share:.1} %");
        assert!(share >= floor, "{family:?}: {filled} of {all}, {share:.1} %");
    }
}

/// A generator that has lost an operation leaves its cells empty.
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

/// docs/coverage.md names, for each reason of a refusal, the number of cells that it rules out, and one of them.
#[test]
fn every_cell_that_is_refused_is_explained() {
    let accepted = Accepted::of(&Target::default());
    let mut reasons = std::collections::BTreeMap::<(&str, String), (usize, String)>::new();
    for family in [Family::Alu, Family::Intrinsics, Family::Textures] {
        for (cell, name) in family.cells() {
            if let Status::Refused(reason) = accepted.status(family, cell) {
                reasons.entry((family.name(), reason)).or_insert((0, name)).0 += 1;
            }
        }
    }
    let rows: String = reasons
        .iter()
        .map(|((family, reason), (cells, example))| format!("| {family} | {cells} | {reason} | {example} |\n"))
        .collect();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/coverage.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let (head, rest) = text.split_once("|---|---|---|---|\n").expect("the table");
    let is_row = |line: &&str| line.starts_with('|');
    let written: String = rest.lines().take_while(is_row).map(|line| format!("{line}\n")).collect();
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        let rest: String = rest.lines().skip_while(is_row).map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, format!("{head}|---|---|---|---|\n{rows}{rest}")).expect("the page can be written");
        return;
    }
    assert_eq!(written, rows, "BLESS=1 writes the table of docs/coverage.md");
}
