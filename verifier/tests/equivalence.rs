//! No stage changes the meaning of a program: the property of the fuzz target, as a proptest.

use ir3_compiler::compilation;
use ir3_compiler::ir3;
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_harness::check::{BoundaryVerdict, Checker, DEFAULT_FUEL, Verdict};
use ir3_harness::fuzz_targets;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::program_seed;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{Outcome, Scratch};
use proptest::prelude::*;

fn any_gpu() -> impl Strategy<Value = (Target, generator::Generated)> {
    prop::sample::select(vec!["a306", "a420", "a540", "a618", "a660", "a730", "a750"]).prop_flat_map(|name| {
        let target = Target::by_name(name).unwrap();
        generator::strategy(Profile::Mixed, Features::of(&target)).prop_map(move |generated| (target, generated))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn stages_preserve_meaning((target, generated) in any_gpu(), seed in any::<u64>()) {
        let report = Checker::new(target, Options::default()).program(&generated.shader, &Env::from_seeds(&[seed]), None);
        for BoundaryVerdict { stage, verdict, .. } in &report.boundaries {
            if let Verdict::Refuted(refutation) = verdict {
                let message = format!("{stage} on {}: {}", target.name, refutation.difference);
                return Err(TestCaseError::fail(message));
            }
        }
    }

    #[test]
    fn the_fuzz_target_passes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz_targets::settle(fuzz_targets::ra_equiv(&fuzz_targets::ProgramInput::from_bytes(&bytes)), &bytes);
    }
}

/// The outcomes of a run whose buffers an earlier run left full of zeros, and full of ones.
fn after_other_runs(run: impl Fn(&mut Scratch) -> Outcome) -> [Outcome; 2] {
    [0, u32::MAX].map(|left| {
        let mut scratch = Scratch::new();
        // More rows than any program here has.
        scratch.prepare(&Env::default(), 20_000, 0);
        scratch.rows.iter_mut().for_each(|row| row.fill(left));
        run(&mut scratch)
    })
}

/// The outcome of a run is a function of its program and its environment: it is independent of earlier runs, even where
/// the program leaves values undefined.
#[test]
fn nothing_of_an_earlier_run_is_left() {
    let target = Target::default();
    for (number, profile) in (0..60).zip(Profile::ALL.into_iter().cycle()) {
        let seed = program_seed(0xd1e7, number);
        let shader = generator::from_seed(seed, profile, Features::ALL).shader;
        let program = compilation::compile(&shader, &target, &Options::default(), &mut |_, _| {}).expect("it fits");
        let source = interp::nir::Decoded::new(&shader).expect("it can be run");
        let result = interp::ir3::Decoded::new(&program, &target).expect("it can be run");
        let env = Env::from_seed(seed);
        let [a, b] = after_other_runs(|scratch| source.run(&env, DEFAULT_FUEL, scratch));
        assert_eq!(a, b, "nir, {profile}, seed {seed}");
        let [a, b] = after_other_runs(|scratch| result.run(&env, 64 * DEFAULT_FUEL, scratch));
        assert_eq!(a, b, "ir3, {profile}, seed {seed}");
    }
    // An undefined output and an undefined word of memory.
    let program = ir3::text::read(UNDEFINED).expect("our own text");
    let decoded = interp::ir3::Decoded::new(&program, &target).expect("it can be run");
    let [a, b] = after_other_runs(|scratch| decoded.run(&Env::from_seed(1), DEFAULT_FUEL, scratch));
    assert_eq!(a.outputs.rows()[0].poison, u64::MAX);
    assert!(!a.memory.is_empty() && a.memory.iter().all(|word| word.poison == u32::MAX));
    assert_eq!(a, b);
}

const UNDEFINED: &str = "\
// {stage=vertex}
// {output=0.x}
block1 {
\t0001:0000:000: \tmov.u32u32 r0.x, imm[0.000000,0,0x0]
\t0002:0001:000: \tstib imm[0.000000,0,0x0], r0.x, imm[0.000000,0,0x0], r2.x // {type=u32, components=1, space=ssbo, coords=1}
\t0003:0002:000: \tend r2.y (0)
}
";
