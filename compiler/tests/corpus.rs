//! Every program of `corpus/` has a description, is read, is valid, and is the same after writing and reading it back.

use std::fs;

use crate::common::corpus::corpus;
use ir3_compiler::nir;

#[test]
fn every_program_is_valid_and_round_trips() {
    let paths = corpus();
    let mut failures = Vec::new();
    for path in &paths {
        let name = path.display();
        let text = fs::read_to_string(path).unwrap();
        if !text.starts_with("// ") {
            failures.push(format!("{name}:1:1: found no comment that describes the program"));
        }
        let shader = match nir::read(&text) {
            Ok(shader) => shader,
            Err(error) => {
                failures.push(format!("{name}:{error}"));
                continue;
            }
        };
        if let Err(errors) = nir::validate(&shader) {
            failures.extend(errors.iter().map(|error| format!("{name}: {error}")));
            continue;
        }
        let written = nir::write(&shader);
        match nir::read(&written) {
            Ok(again) if again == shader => {}
            Ok(_) => failures.push(format!("{name}: reads back as another program:\n{written}")),
            Err(error) => failures.push(format!("{name}: the written text cannot be read: {error}\n{written}")),
        }
    }
    assert!(failures.is_empty(), "{} of {} programs:\n{}", failures.len(), paths.len(), failures.join("\n"));
}
