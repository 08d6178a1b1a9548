//! No stage changes what a program means: the property that the fuzz target has, as a proptest.

use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_verifier::check::{Checker, Verdict, fuzz};
use ir3_verifier::generate::{self, Features, Profile};
use proptest::prelude::*;

fn any_gpu() -> impl Strategy<Value = (Target, generate::Generated)> {
    prop::sample::select(vec!["a306", "a420", "a540", "a618", "a660", "a730", "a750"]).prop_flat_map(|name| {
        let target = Target::by_name(name).unwrap();
        generate::strategy(Profile::Mixed, Features::of(&target)).prop_map(move |generated| (target, generated))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn stages_preserve_meaning((target, generated) in any_gpu(), seed in any::<u64>()) {
        let report = Checker::new(target, Options::default()).program(&generated.shader, &[seed]);
        for (stage, verdict, _) in &report.boundaries {
            if let Verdict::Refuted(refutation) = verdict {
                let message = format!("{stage} on {}: {}", target.name, refutation.difference);
                return Err(TestCaseError::fail(message));
            }
        }
    }

    #[test]
    fn the_fuzz_target_passes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz::settle(fuzz::ra_equiv(&fuzz::ProgramInput::from_bytes(&bytes)), &bytes);
    }
}
