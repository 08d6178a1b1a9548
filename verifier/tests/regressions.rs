//! Every bundle in `corpus/regressions` is a test: a real bug stays fixed, a planted one is still found.

use ir3_harness::case::{Case, Evidence, ProgramOrigin};
use ir3_harness::check::{BoundaryVerdict, Checker, Verdict};
use ir3_harness::reduce::Failure;
use ir3_programs::planted_bugs;
use ir3_programs::seeds::env_seeds;
use ir3_report::bundle;
use ir3_semantics::environment::env::Env;
use std::fs;
use std::path::{Path, PathBuf};

use super::common::folder;

use folder::Folder;

/// The number of random inputs on which a fixed bug is tried, in addition to its own.
const RUNS: u32 = 8;

/// The defects of the bundles of a folder, one text each; and the number of bundles.
fn problems(root: &Path) -> (Vec<String>, usize) {
    // Everything but text has to be a bundle: an unread folder must not look like a test.
    let entries = fs::read_dir(root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    let wrong = folders.iter().filter_map(|folder| {
        let problem = match bundle::read(folder) {
            Ok(case) if case.plant.is_some() => planted(&case),
            Ok(case) => fixed(&case),
            Err(error) => Err(error.to_string()),
        };
        problem.err().map(|problem| format!("{}: {problem}", folder.display()))
    });
    (wrong.collect(), folders.len())
}

/// A planted bug is found at its stage, with the same kind of failure. The source line of a panic does not matter.
fn planted(case: &Case) -> Result<(), String> {
    let recorded = &case.symptom;
    match Evidence::of(case).symptom {
        Some(found) if found.failure == recorded.failure => Ok(()),
        Some(found)
            if matches!((&found.failure, &recorded.failure), (Failure::Panic { .. }, Failure::Panic { .. }))
                && (found.stage, &found.message) == (recorded.stage, &recorded.message) =>
        {
            Ok(())
        }
        Some(found) => Err(format!("the planted bug is found as `{}`, expected `{}`", found.failure, recorded.failure)),
        None => Err(format!("the planted bug is not found any more, expected `{}`", recorded.failure)),
    }
}

/// A real bug is gone: each boundary is passed on the bundle's input, and none fails on others.
fn fixed(case: &Case) -> Result<(), String> {
    let random = env_seeds(1, RUNS).into_iter().map(Env::from_seed);
    let envs: Vec<Env> = case.env.iter().cloned().chain(random).collect();
    let mut passed = 0;
    for (number, env) in envs.iter().enumerate() {
        let report = Checker::new(case.target, case.options).program(&case.program, std::slice::from_ref(env), None);
        for BoundaryVerdict { stage, verdict, .. } in &report.boundaries {
            match verdict {
                Verdict::Tested { .. } => passed += 1,
                // The program may be undefined on another input than the bundle's.
                Verdict::Unknown(_) if number > 0 && report.refusal.is_none() && report.crash().is_none() => {}
                other => {
                    let reason = other.reason().unwrap_or_default();
                    let input = if number == 0 && case.env.is_some() {
                        "its input".to_owned()
                    } else {
                        format!("seed {}", env.seed)
                    };
                    return Err(format!(
                        "fails at {stage} on {input}: {reason}; when it was written: {}",
                        case.symptom.failure
                    ));
                }
            }
        }
    }
    if passed == 0 { Err("nothing was tested on any input".to_owned()) } else { Ok(()) }
}

#[test]
fn all_of_them_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/regressions");
    let (problems, count) = problems(&root);
    assert!(problems.is_empty(), "{} of {count} regressions:\n{}", problems.len(), problems.join("\n"));
    assert!(count > 0, "there is no regression");
}

/// A bundle that fails makes the test fail, with its error.
#[test]
fn a_bundle_that_fails_is_noticed() {
    let root = Folder::new("regressions");
    let case = folder::planted("lost-store");
    let path = bundle::write(root.path(), &case).expect("a folder");
    assert_eq!(problems(root.path()), (Vec::new(), 1), "a planted bug that is found is no problem");
    // The same, as if the bug were an unfixed one of the compiler: it refuses the program.
    let refused = folder::refused();
    let other = bundle::write(root.path(), &refused).expect("a folder");
    let (problems_, count) = problems(root.path());
    assert_eq!((problems_.len(), count), (1, 2), "{problems_:?}");
    assert!(problems_[0].contains(&*other.to_string_lossy()), "{problems_:?}");
    assert!(problems_[0].contains("fails at select on ") && problems_[0].contains("refuses"), "{problems_:?}");
    fs::remove_dir_all(other).expect("the folder is ours");
    // A planted bug that is not found at the stage of its bundle.
    let json = path.join("bundle.json");
    let text = fs::read_to_string(&json).expect("our own file");
    fs::write(&json, text.replace("lost-store", "half-overlap")).expect("our own file");
    let (problems_, _) = problems(root.path());
    assert!(matches!(&problems_[..], [problem] if problem.contains("the planted bug is ")), "{problems_:?}");
    // A fixed bug passes: the program without its plant.
    fs::write(&json, text.replace("\"lost-store\"", "null")).expect("our own file");
    assert_eq!(problems(root.path()), (Vec::new(), 1));
    // A folder that is no bundle is an error, not a test.
    fs::create_dir(root.path().join("something")).expect("a folder");
    let (problems_, _) = problems(root.path());
    assert!(
        matches!(&problems_[..], [problem] if problem.contains("bundle.json: found no such file")),
        "{problems_:?}"
    );
}

/// The planted bugs all have their bundles here.
#[test]
fn bundles_name_plants_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/regressions");
    for path in bundle::list(&root).expect("a folder") {
        let case = bundle::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(case.minimal, "{}: not reduced", path.display());
        assert!(case.plant.is_none_or(|plant| planted_bugs::by_name(plant.name).is_some()));
        assert!(
            !matches!(&case.origin, ProgramOrigin::File(file) if Path::new(file).is_absolute()),
            "{}",
            path.display()
        );
    }
}
