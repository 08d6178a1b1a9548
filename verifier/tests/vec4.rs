//! The findings of docs/findings.md in the proposals for vec4, and the example of the document.

use ir3_compiler::i965::vec4::{Opcode, Program, text};
use ir3_compiler::pipeline::{Feature, Options, Stage, run_vec4_stage};
use ir3_harness::check::{EngineKind, Engines, Policy, Search, Smt, Verdict, Verification, verify_vec4};
use ir3_programs::seeds::env_seeds;
use ir3_semantics::environment::env::Env;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/vec4")
}

fn read(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).expect("a file of the corpus");
    text::read(&text).unwrap_or_else(|error| panic!("{}:{error}", path.display()))
}

fn verify(program: &Program, options: &Options) -> Verification {
    let engines = Engines { kinds: vec![EngineKind::Interpreter, EngineKind::Smt], smt: Smt::default() };
    let policy = Policy::new(&engines).with_search(Search::MEASURING);
    verify_vec4(program, options, None, &policy, Env::from_seeds(&env_seeds(1, 4)))
}

fn is_proved(verification: &Verification) -> bool {
    verification.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Proved { .. }))
}

#[test]
fn each_counterexample_is_refuted_as_proposed_and_proved_as_corrected() {
    let mut corrections: Vec<&str> =
        Feature::every().filter(|feature| feature.is_correction()).map(Feature::name).collect();
    let files = std::fs::read_dir(folder().join("counterexamples")).expect("a folder of the corpus");
    let mut names = Vec::new();
    for file in files {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        let feature = Feature::from_name(&name).unwrap_or_else(|| panic!("{name} is no feature"));
        let program = read(&path);
        assert!(program.instrs.len() <= 5, "{name}");
        assert!(is_proved(&verify(&program, &Options::default())), "{name}");
        let proposed = verify(&program, &Options::default().without(feature));
        let refuted = proposed.boundaries.iter().find(|row| matches!(row.verdict, Verdict::Refuted(_)));
        assert_eq!(refuted.map(|row| row.stage), Some(feature.stage()), "{name}");
        names.push(name);
    }
    names.sort_unstable();
    corrections.sort_unstable();
    assert_eq!(names, corrections);
}

#[test]
fn the_example_of_the_document_loses_its_second_comparison_with_a_replicated_predicate() {
    for (name, comparisons) in [("document-example", 1), ("document-example-normal", 2)] {
        let program = read(&folder().join(name).with_extension("vec4"));
        let options = Options::default();
        assert!(is_proved(&verify(&program, &options)), "{name}");
        let compiled = |options: &Options| {
            let mut program = program.clone();
            for stage in Stage::on_mode(program.mode) {
                run_vec4_stage(stage, &mut program, options);
            }
            program.instrs.iter().filter(|instr| instr.opcode == Opcode::Cmp).count()
        };
        assert_eq!(compiled(&options), comparisons, "{name}");
        // One bit for the whole flag does not see that only x is live.
        assert_eq!(compiled(&options.without(Feature::FlagChannels)), 2, "{name}");
    }
}
