//! The nir interpreter on every nir section of the real logs.

use super::common;

use std::collections::BTreeMap;

use ir3_programs::input::load;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::nir::Decoded;
use ir3_semantics::interp::{End, Scratch};

#[test]
fn every_final_form_runs() {
    let Some(logs) = common::some_logs() else { return };
    let mut scratch = Scratch::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut sections, mut instructions) = (0u64, 0u64);
    let mut refused: Vec<String> = Vec::new();
    let start = std::time::Instant::now();
    let mut running = std::time::Duration::ZERO;
    for path in logs {
        for named in load(&path, None).unwrap_or_else(|error| panic!("{error}")) {
            let Snapshot::Nir(shader) = named.program else { panic!("{} is not nir", named.name) };
            sections += 1;
            let decoded = match Decoded::new(&shader) {
                Ok(decoded) => decoded,
                Err(error) => {
                    refused.push(format!("{}: {error}", named.name));
                    continue;
                }
            };
            for seed in [1, 2] {
                let env = Env::from_seed(seed);
                let before = std::time::Instant::now();
                let outcome = decoded.run(&env, 100_000, &mut scratch);
                running += before.elapsed();
                instructions += outcome.executed;
                assert!(outcome.compare(&outcome).is_ok(), "{}", named.name);
                let again = decoded.run(&env, 100_000, &mut scratch);
                assert_eq!(outcome, again, "{}: two runs differ", named.name);
                let name = match &outcome.end {
                    End::Finished => "finished",
                    End::OutOfFuel => "out of fuel",
                    End::Undefined { .. } => "undefined",
                };
                if let End::Undefined { reason, origin, .. } = &outcome.end {
                    println!("{}: {reason}: {origin}", named.name);
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
