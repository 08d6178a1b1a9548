//! The findings of docs/findings.md in the proposals for vec4, and the example of the document.

use ir3_compiler::i965::vec4::{Opcode, Program, text};
use ir3_compiler::pipeline::{Feature, Options, Stage, run_vec4_stage};
use ir3_compiler::target::GEN7;
use ir3_harness::check::{EngineKind, Engines, Policy, Search, Smt, Verdict, Verification, verify_vec4};
use ir3_programs::Question;
use ir3_programs::seeds::env_seeds;
use ir3_semantics::Snapshot;
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

/// Returns true if some run tells two programs apart.
fn is_refuted(before: &Program, after: &Program) -> bool {
    let engines = Engines { kinds: vec![EngineKind::Interpreter], smt: Smt::default() };
    let envs = Env::from_seeds(&env_seeds(1, 16));
    let [before, after] = [before, after].map(|program| Snapshot::Vec4(Box::new(program.clone())));
    let (before, after) = ((&before).into(), (&after).into());
    let answers = engines.answers(&Question { stage: None, before, after, machine: &GEN7, envs: &envs });
    answers.iter().any(|answer| matches!(answer.verdict, Verdict::Refuted(_)))
}

/// `proposed/` has the results of the passes as they were proposed, each without one of the ten corrections.
#[test]
fn each_counterexample_is_refuted_as_proposed_and_proved_as_corrected() {
    let folder = folder().join("counterexamples");
    let mut count = 0;
    for file in std::fs::read_dir(&folder).expect("a folder of the corpus") {
        let path = file.expect("a file").path();
        if path.is_dir() {
            continue;
        }
        let name = path.file_name().expect("a file");
        let program = read(&path);
        assert!(program.instrs.len() <= 5, "{name:?}");
        assert!(is_proved(&verify(&program, &Options::default())), "{name:?}");
        assert!(is_refuted(&program, &read(&folder.join("proposed").join(name))), "{name:?}");
        count += 1;
    }
    assert_eq!(count, 10);
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
                run_vec4_stage(stage, &mut program, options).expect("it is supported");
            }
            program.instrs.iter().filter(|instr| instr.opcode == Opcode::Cmp).count()
        };
        assert_eq!(compiled(&options), comparisons, "{name}");
        // One bit for the whole flag does not see that only x is live.
        assert_eq!(compiled(&options.without(Feature::FlagChannels)), 2, "{name}");
    }
}
