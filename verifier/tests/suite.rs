//! The integration tests, in one program: each program that links the verifier costs seconds, and tests of one program
//! share both cores.
//!
//! `cargo test -p ir3-verifier --test suite pairs::` runs one file.

mod common;

mod allocation_property;
mod allocation_rules;
mod bundle;
mod check;
mod corpus_campaign;
mod counterexamples;
mod documents;
mod equivalence;
mod equivalent_pairs;
mod examples;
mod exit_codes;
mod external_compiler;
mod file_tests;
mod final_programs;
mod fragments;
mod fuzz_targets;
mod generate;
mod given_registers;
mod graph_colouring;
mod guard;
mod hazards;
mod headers;
mod json;
mod kill;
mod layers;
mod listings;
mod lowered_arithmetic;
mod machine_programs;
mod machine_words;
mod mesa_broken;
mod mesa_cut;
mod mesa_logs;
mod mesa_passes;
mod mesa_release;
mod mesa_stages;
mod mesa_statistics;
mod mesa_versions;
mod mesa_watch;
mod messages;
mod mutations;
mod nir_interpreter;
mod page;
mod pair_families;
mod pairs;
#[path = "parallel_copies/main.rs"]
mod parallel_copies;
mod pastes;
mod physical_edges;
mod planted_branches;
mod planted_bugs;
mod planted_folds;
mod planted_predicates;
mod planted_schedule;
mod planted_shared;
mod predicates_census;
mod proofs;
mod reduce;
mod reduce_texts;
mod registers;
mod regressions;
mod scalar;
mod selected_arithmetic;
mod selected_intrinsics;
mod selected_memory;
#[path = "simulation/main.rs"]
mod simulation;
mod spills;
mod spirv;
mod targets;
mod tight_registers;
mod triage;
mod truth_tables;
mod turnip;
mod vec4;
mod vulkan;
mod walkthrough;

/// A file that is not listed here would never run.
#[test]
fn every_file_is_a_module_of_this_one() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text = std::fs::read_to_string(folder.join("suite.rs")).expect("this file");
    for file in std::fs::read_dir(folder).expect("the folder of tests") {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let is_module = path.extension().is_some_and(|end| end == "rs") && name != "suite";
        assert!(!is_module || text.contains(&format!("\nmod {name};\n")), "{} is not a module", path.display());
    }
}
