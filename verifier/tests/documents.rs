//! Documents that name files of the project.

use std::path::Path;

/// The words between backticks that begin with a folder of the project.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 6] = ["compiler/", "verifier/", "corpus/", "fuzz/", "ci/", "docs/"];
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.contains(' '))
}

#[test]
fn what_the_table_of_features_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("docs/seeds.md")).unwrap();
    let missing: Vec<&str> = paths(&text).filter(|path| !root.join(path).exists()).collect();
    assert!(paths(&text).count() > 80 && missing.is_empty(), "{missing:?}");
}
