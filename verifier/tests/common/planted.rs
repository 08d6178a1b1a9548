//! Bugs planted after a stage of the backend, in random programs.

use ir3_compiler::compilation;
use ir3_compiler::ir3::Program;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{BoundaryVerdict, Checker, Verdict};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::environment::env::Env;

/// The programs that a bug is planted in.
pub struct Programs<'a> {
    /// The seed of the campaign.
    pub seed: u64,
    /// The number of programs.
    pub count: u64,
    /// Their profiles, in turn.
    pub profiles: &'a [Profile],
    /// The number of inputs for each.
    pub runs: u32,
    /// At least one in this many of the changed programs must be refuted: a change need not affect a program's
    /// behaviour.
    pub one_in: u32,
    /// The options of the compiler.
    pub options: Options,
}

impl Programs<'_> {
    /// Plants `bug` after `stage`. `bug` gets a number for its choices, and returns true if it changed the program.
    /// Enough of the changed programs must be refuted, all of them at `stage`.
    pub fn planted(&self, stage: Stage, bug: impl Fn(&mut Program, u64) -> bool) {
        let mut checker = Checker::new(Target::default(), self.options);
        let (mut changed, mut refuted) = (0, 0);
        for (number, &profile) in (0..self.count).zip(self.profiles.iter().cycle()) {
            let seed = program_seed(self.seed, number);
            let generated = generator::from_seed(seed, profile, Features::ALL);
            // Most programs have no place for a rare bug: they are compiled up to the stage, and not run.
            let mut planted = false;
            let as_far = Options { last: stage, ..self.options };
            let compiled = compilation::compile(&generated.shader, &Target::default(), &as_far, &mut |at, program| {
                if at == stage {
                    planted = bug(&mut program.clone(), seed);
                }
            });
            if compiled.is_ok() && !planted {
                continue;
            }
            let mut plant = |at: Stage, program: &mut Program| {
                if at == stage {
                    planted = bug(program, seed);
                }
            };
            let report = checker.program_or_panic(
                &generated.shader,
                &Env::from_seeds(&env_seeds(seed, self.runs)),
                Some(&mut plant),
            );
            changed += u32::from(planted);
            for BoundaryVerdict { stage: at, verdict, .. } in &report.boundaries {
                if matches!(verdict, Verdict::Refuted(_)) {
                    assert!(planted, "seed {seed}: refuted at {at} with nothing planted");
                    // A bug that runs of this stage miss may not survive on the machine.
                    if *at > stage && *at >= Stage::Repeat {
                        continue;
                    }
                    assert_eq!(*at, stage, "seed {seed}: refuted at the wrong stage");
                    refuted += 1;
                }
            }
        }
        println!("{stage}: {changed} programs changed, {refuted} refuted");
        assert!(changed >= 10, "only {changed} programs had something to change");
        assert!(refuted * self.one_in >= changed, "only {refuted} of {changed} were refuted");
    }
}
