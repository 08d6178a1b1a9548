//! Register contents: what the allocator does is proved, and what it might do wrong is not.

use ir3_compiler::ir3::Program;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{self, Change, Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_verifier::contents::{self, Proof};
use ir3_verifier::generate::{self, Features, Profile};
use std::collections::BTreeMap;

/// The stages that only move values about.
const STAGES: [Stage; 5] =
    [Stage::Predicates, Stage::Spill, Stage::RegisterAllocation, Stage::LowerSpills, Stage::LowerCopies];

/// Proves each of these stages for a program.
fn each(
    shader: &Shader,
    target: &Target,
    options: &Options,
    mut see: impl FnMut(Stage, Result<Proof, contents::Failure>, &Program, &Program),
) {
    let Ok(mut program) = pipeline::select(shader, target) else { return };
    for stage in Stage::ALL.into_iter().filter(|&stage| options.runs(stage)) {
        let before = STAGES.contains(&stage).then(|| program.clone());
        let Ok(change) = pipeline::run_stage(stage, &mut program, target, options) else { return };
        if let (Some(before), Change::Something) = (before, change) {
            see(stage, contents::prove(&before, &program, target), &before, &program);
        }
    }
}

#[test]
fn lab() {
    let programs: u64 = std::env::var("LAB").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut counts = BTreeMap::<(Stage, String), (u32, String)>::new();
    for gpu in ["a306", "a540", "a660", "a750"] {
        let target = Target::by_name(gpu).unwrap();
        for seed in 0..programs {
            for profile in Profile::ALL {
                let shader = generate::from_seed(seed, profile, Features::of(&target)).shader;
                let registers =
                    if target.pvtmem && seed % 2 == 1 { RegisterLimit::Minimum(0) } else { RegisterLimit::Target };
                let options = Options { registers, ..Options::default() };
                each(&shader, &target, &options, |stage, result, before, after| {
                    let what = match &result {
                        Ok(proof) => format!("proved{}", if proof.operations == 0 { " nothing" } else { "" }),
                        Err(failure) => {
                            let text = failure.to_string();
                            let text = text.split_once(": ").map_or(text.clone(), |(_, rest)| rest.to_owned());
                            let words: Vec<&str> = text
                                .split(' ')
                                .filter(|word| !word.chars().any(|c| c.is_ascii_digit()))
                                .take(9)
                                .collect();
                            words.join(" ")
                        }
                    };
                    let entry = counts.entry((stage, what)).or_insert_with(|| {
                        if let Err(failure) = &result {
                            let write = |side: &str, program: &Program| {
                                let path = format!("/tmp/w/contents/{stage}-{gpu}-{profile}-{seed}.{side}");
                                std::fs::write(path, ir3_compiler::ir3::text::write(program)).unwrap();
                            };
                            write("before", before);
                            write("after", after);
                            return (0, format!("{gpu} {profile} {seed}: {failure}"));
                        }
                        (0, String::new())
                    });
                    entry.0 += 1;
                });
            }
        }
    }
    for ((stage, what), (count, example)) in counts {
        println!("{count:6} {stage}: {what}\n         {example}");
    }
}
