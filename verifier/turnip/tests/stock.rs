//! The driver of `ci/stock-mesa`, if it is installed: shaders of all stages, chips of all generations.

#![cfg(target_os = "linux")]

mod common;

use common::{Answer, compile, shader, stock};
use std::path::PathBuf;

/// All shaders of the corpus.
fn shaders() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        shader("").read_dir().expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    all.sort();
    all
}

#[test]
fn shaders_of_the_corpus_compile() {
    for gpu in ["a618", "a660", "a750", "a830"] {
        let Some(command) = stock(gpu) else { return };
        let all = shaders();
        let (first, answers) = compile(command, &all);
        assert!(first.starts_with("ready ") && first.contains("turnip"), "{first}");
        assert_eq!(answers.len(), all.len());
        for (path, answer) in all.iter().zip(&answers) {
            let Answer { kind, reason, log, data } = answer;
            assert_eq!((&**kind, &**reason), ("compiled", ""), "{}: {log}", path.display());
            let has = |text: &str| log.contains(text);
            assert!(has("NIR (final form)") && has("AFTER: nir->ir3") && has("Native code for"), "{}", path.display());
            assert!(*data > 0, "{}", path.display());
        }
    }
}

#[test]
fn a_chip_may_be_given_by_its_number() {
    for (gpu, name) in [("0x06030001", "630"), ("x1-85", "X1-85"), ("a840", "840"), ("a702", "702")] {
        let Some(command) = stock(gpu) else { return };
        let (first, _) = compile(command, &[]);
        assert!(first.starts_with("ready ") && first.contains(name), "{gpu}: {first}");
    }
    let Some(command) = stock("0x00000001") else { return };
    let (first, _) = compile(command, &[]);
    assert!(first.starts_with("failed ") && first.contains("does not know this chip"), "{first}");
}

#[test]
fn the_environment_of_the_caller_does_not_change_the_log() {
    let Some(mut plain) = stock("a660") else { return };
    let Some(mut changed) = stock("a660") else { return };
    plain.env_remove("IR3_SHADER_DEBUG");
    changed.env("IR3_SHADER_DEBUG", "nouboopt").env("MESA_LOG", "null").env("TU_DEBUG", "nir");
    let logs = [plain, changed].map(|command| compile(command, &[shader("fill.wgsl")]).1.remove(0).log);
    assert_eq!(logs[0], logs[1]);
}
