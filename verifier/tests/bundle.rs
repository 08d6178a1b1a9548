//! Failures as folders: written whole, read back, replaced.

use ir3_compiler::nir::{Shader, text};
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_verifier::check::campaign::{env_seeds, program_seed};
use ir3_verifier::generate::{self, Features, Profile};
use ir3_verifier::reduce::Failure;
use ir3_verifier::report::bundle::{self, Case, Origin};
use ir3_verifier::semantics::env::Env;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ir3-equiv-bundle-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A random program that the compiler refuses for this GPU.
fn refused() -> Case {
    let target = Target::by_name("a306").expect("a GPU");
    (0..100)
        .find_map(|number| {
            let seed = program_seed(5, number);
            let shader: Shader = generate::from_seed(seed, Profile::Memory, Features::ALL).shader;
            let envs: Vec<Env> = env_seeds(seed, 1).into_iter().map(Env::from_seed).collect();
            let origin = Origin::Seed { seed, profile: Profile::Memory };
            Case::find(shader, target, Options::default(), None, &envs, origin).filter(|case| {
                matches!(case.symptom.failure, Failure::Refused { .. }) && case.program.instruction_count() > 40
            })
        })
        .expect("a program that is refused")
}

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_refusal_is_written_read_and_reduced_in_place() {
    let root = Folder::new("refusal");
    let case = refused();
    let path = bundle::write(&root.0, &case).expect("a folder");
    assert_eq!(path, root.0.join(case.folder_name()));
    assert_eq!(bundle::read(&path).expect("our own folder"), case);
    let result = bundle::reduce(&path, 1, &mut |_| true).expect("a reduction");
    assert!(result.case.minimal && result.case.program.instruction_count() <= 6);
    let there = bundle::read(&path).expect("our own folder");
    assert_eq!(there, result.case);
    let original = there.original.as_ref().expect("what it was");
    assert_eq!(text::write(&original.program), text::write(&case.program));
    // The name stays, and nothing else is left.
    assert_eq!(there.folder_name(), case.folder_name());
    assert_eq!(names(&root.0), [case.folder_name()]);
    // It is found again by a campaign: what was reduced stays.
    assert_eq!(bundle::write(&root.0, &case).expect("a folder"), path);
    assert_eq!(bundle::read(&path).expect("our own folder"), there);
    assert_eq!(bundle::list(&root.0).expect("a folder"), [path]);
}
