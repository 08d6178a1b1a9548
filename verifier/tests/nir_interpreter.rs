//! The nir interpreter on every nir section of the real logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ir3_compiler::nir::text;
use ir3_verifier::interp::{End, Scratch, nir::Decoded};
use ir3_verifier::mesa::Log;
use ir3_verifier::semantics::env::Env;

/// The real logs: of `IR3_SHARED`, or beside the workspace.
fn train() -> Option<PathBuf> {
    let shared = std::env::var_os("IR3_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let train = shared.join("mesa/train");
    train.is_dir().then_some(train)
}

fn logs(train: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(train).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|path| std::fs::read_dir(path).unwrap());
    let mut logs: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    logs
}

#[test]
fn every_final_form_runs() {
    let Some(train) = train() else {
        println!("skipped: ../shared is absent");
        return;
    };
    let mut scratch = Scratch::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut sections, mut instructions) = (0u64, 0u64);
    let mut refused = Vec::new();
    let start = std::time::Instant::now();
    let mut running = std::time::Duration::ZERO;
    for path in logs(&train) {
        let raw = std::fs::read_to_string(&path).unwrap();
        let log = Log::read(&path, &raw).unwrap();
        for section in log.nir(&path).unwrap() {
            let shader = text::read(&section.text).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
            sections += 1;
            let decoded = match Decoded::new(&shader) {
                Ok(decoded) => decoded,
                Err(error) => {
                    refused.push(format!("{}: {error}", path.display()));
                    continue;
                }
            };
            for seed in [1, 2] {
                let env = Env::from_seed(seed);
                let before = std::time::Instant::now();
                let outcome = decoded.run(&env, 100_000, &mut scratch);
                running += before.elapsed();
                instructions += outcome.executed;
                assert!(outcome.compare(&outcome).is_ok(), "{}", path.display());
                let again = decoded.run(&env, 100_000, &mut scratch);
                assert_eq!(outcome, again, "{}: two runs differ", path.display());
                let name = match &outcome.end {
                    End::Finished => "finished",
                    End::OutOfFuel => "out of fuel",
                    End::Undefined { .. } => "undefined",
                };
                if let End::Undefined { reason, origin, .. } = &outcome.end {
                    println!("{}: {reason}: {origin}", path.display());
                }
                *counts.entry(name).or_default() += 1;
            }
        }
    }
    println!(
        "{sections} sections, {} refused; runs: {counts:?}; {instructions} instructions in {running:?} of {:?}",
        refused.len(),
        start.elapsed()
    );
    for line in &refused {
        println!("{line}");
    }
    assert!(refused.is_empty(), "{} sections are refused", refused.len());
}
