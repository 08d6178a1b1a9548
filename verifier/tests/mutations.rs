//! The share of random changes to programs that the checker refutes: single mutations after each stage, by kind.
//!
//! A mutant is compared with the program that it was made from, as the checker does at a boundary. Some of the valid
//! mutants go through the whole checker as well, which must refute their stage and no other. Not all mutants can be
//! refuted (a change may not affect the behaviour of the program), so each kind has a least share.
//!
//! After the stages of moves, spilling and register assignment, the register checker proves no mutant that is refuted.
//!
//! `IR3_EFFORT=<n>` multiplies the number of programs; `IR3_MUTATIONS_SHOW=<kind>` prints the survivors of a kind.

use crate::common::effort::effort;
use ir3_compiler::ir3::Program;
use ir3_compiler::ir3::text::write;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::pipeline::{self, Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{BoundaryVerdict, Checker, Verdict};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::mutations::{KINDS, Sites};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_prove::registers;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::filling::{self, Agreement};
use ir3_semantics::interp::{Compared, Difference, End, Outcome, Scratch, ir3};

/// The number of environments of each program.
const RUNS: u32 = 3;
/// The number of environments in which survivors are run again.
const MORE_RUNS: u32 = 24;

/// The share of the mutants of each kind, in percent, that must be refuted.
const LEAST: &[(&str, u32)] = &[
    ("swap sources", 50),
    ("other source", 45),
    ("other destination", 55),
    ("drop instruction", 55),
    ("repeat store later", 20),
    ("immediate +-1", 40),
    ("constant +-1", 55),
    ("other condition", 40),
    ("source modifier", 40),
    ("saturation", 25),
    ("other operation", 40),
    ("constant result", 55),
    ("split offset", 60),
    ("swap in collect", 65),
    ("drop a copy", 30),
    ("swap in phi", 50),
    ("invert branch", 60),
    ("swap successors", 60),
    ("move types", 18),
    ("rounding", 25),
    ("memory components", 75),
    ("memory offset", 40),
    ("memory type", 60),
    ("memory space", 65),
    ("memory order", 15),
    // Random programs have no barriers and no bindless resources; see `simulation::memory`.
    ("drop barrier", 0),
    ("store over barrier", 0),
    ("descriptor set", 0),
    ("texture index", 50),
    ("sampler index", 50),
    ("texture flags", 60),
    ("texture type", 50),
    ("output slot", 95),
    ("input kind", 95),
    ("input component", 85),
    ("other half", 50),
    ("write mask", 65),
    ("driver param", 80),
    ("kill for demote", 0),
    ("swap instructions", 30),
    ("drop store", 40),
    ("operation left out", 40),
    ("swap copies", 40),
    ("other phi source", 30),
    ("loop-carried value", 30),
    ("other predicate", 30),
    ("branch target", 30),
];

/// The results for mutants.
#[derive(Clone, Copy, Default)]
struct Count {
    applied: u32,
    /// Refuted by the interpreter.
    refuted: u32,
    /// Undefined or unsupported in the interpreter, or not valid.
    refused: u32,
    /// Survivors that the validator rejects.
    invalid: u32,
    /// Survivors that are refuted in other environments.
    later: u32,
    /// Mutants that the register checker was run on, and those of them that it did not prove.
    judged: u32,
    denied: u32,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.applied += other.applied;
        self.refuted += other.refuted;
        self.refused += other.refused;
        self.invalid += other.invalid;
        self.later += other.later;
        self.judged += other.judged;
        self.denied += other.denied;
    }

    fn survived(&self) -> u32 {
        self.applied - self.refuted - self.refused
    }
}

/// The lines in which two programs differ.
fn changed_lines(before: &Program, after: &Program) -> String {
    let (before, after) = (write(before), write(after));
    let mut out = String::new();
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let front = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let back = a[front..].iter().rev().zip(b[front..].iter().rev()).take_while(|(x, y)| x == y).count();
    for line in &a[front..a.len() - back] {
        out += &format!("  - {}\n", line.trim());
    }
    for line in &b[front..b.len() - back] {
        out += &format!("  + {}\n", line.trim());
    }
    out
}

/// Runs of one program, in some environments.
fn outcomes(program: &ir3::Decoded, envs: &[Env], fuel: &[u64], scratch: &mut Scratch) -> Vec<Outcome> {
    envs.iter().zip(fuel).map(|(env, &fuel)| program.run(env, fuel, scratch)).collect()
}

/// The number of mutants of a kind from which on their share is checked.
const ENOUGH: u32 = 100;

/// A program after a stage, and its runs.
struct StageRuns<'a> {
    program: &'a Program,
    envs: &'a [Env],
    outcomes: Vec<Outcome>,
}

impl StageRuns<'_> {
    /// Fuel for the runs of a mutant, as the checker gives it.
    fn fuel(&self) -> Vec<u64> {
        self.outcomes.iter().map(|outcome| outcome.executed * 64 + 10_000).collect()
    }

    /// The first difference of a mutant in the environments of `range`.
    fn refute(
        &self,
        mutant: &ir3::Decoded,
        range: std::ops::Range<usize>,
        scratch: &mut Scratch,
    ) -> Option<Difference> {
        let fuel = self.fuel();
        range.filter(|&i| matches!(self.outcomes[i].end, End::Finished)).find_map(|i| {
            let source = &self.outcomes[i];
            let run = |scratch: &mut Scratch| mutant.run(&self.envs[i], fuel[i], scratch);
            let target = run(scratch);
            // The same comparison as in the checker.
            match filling::compare(source, &target, scratch, run) {
                Err(difference) => Some(difference),
                Ok(Agreement::Plain(Compared::OutOfFuel)) => {
                    Some(Difference::Endless { expected: source.executed, actual: target.executed })
                }
                Ok(_) => None,
            }
        })
    }
}

#[test]
fn mutations_are_seen() {
    let times = effort();
    let show = std::env::var("IR3_MUTATIONS_SHOW").ok();
    let target = Target::default();
    let mut checker = Checker::new(target, Options::default());
    let mut scratch = Scratch::new();
    let mut table = vec![[Count::default(); Stage::ALL.len()]; KINDS.len()];
    let mut through_checker = 0;
    for number in 0..times * Profile::ALL.len() as u64 {
        let profile = Profile::ALL[(number % Profile::ALL.len() as u64) as usize];
        let seed = program_seed(0x3707a7e, number);
        let shader = generator::from_seed(seed, profile, Features::ALL).shader;
        let seeds = env_seeds(seed, if show.is_some() { MORE_RUNS } else { RUNS });
        let envs: Vec<Env> = seeds.iter().map(|&seed| Env::from_seed(seed)).collect();
        let Ok(mut program) = pipeline::select(&shader, &target) else { continue };
        for (s, stage) in Stage::ALL.into_iter().enumerate() {
            let before = stage.moves_values().then(|| program.clone());
            if pipeline::run_stage(stage, &mut program, &target, &Options::default()).is_err() {
                break;
            }
            let Ok(decoded) = ir3::Decoded::new(&program, &target) else { break };
            let outcomes = outcomes(&decoded, &envs, &vec![100_000; envs.len()], &mut scratch);
            if !outcomes[..RUNS as usize].iter().any(|outcome| matches!(outcome.end, End::Finished)) {
                break;
            }
            let stage_runs = StageRuns { program: &program, envs: &envs, outcomes };
            let sites = Sites::new(&program);
            let form = Form::of(&program);
            for (k, kind) in KINDS.iter().enumerate() {
                let random = program_seed(seed, (s * KINDS.len() + k) as u64);
                let mut mutant = program.clone();
                if !kind.apply(&mut mutant, &sites, random) || mutant == program {
                    continue;
                }
                let count = &mut table[k][s];
                count.applied += 1;
                let valid = validate(&mutant, &target, form).is_ok();
                let refuted = match ir3::Decoded::new(&mutant, &target) {
                    Err(_) => {
                        count.refused += 1;
                        continue;
                    }
                    Ok(mutant) => {
                        let difference = stage_runs.refute(&mutant, 0..RUNS as usize, &mut scratch);
                        if difference.is_none()
                            && stage_runs.refute(&mutant, RUNS as usize..envs.len(), &mut scratch).is_some()
                        {
                            count.later += 1;
                        }
                        difference.is_some()
                    }
                };
                count.refuted += u32::from(refuted);
                if let Some(before) = &before {
                    count.judged += 1;
                    match registers::prove(before, &mutant, &target) {
                        Ok(_) => assert!(
                            !refuted,
                            "{}, program {number}: proved and refuted at {stage}\n{}",
                            kind.name,
                            changed_lines(stage_runs.program, &mutant)
                        ),
                        Err(_) => count.denied += 1,
                    }
                }
                if !refuted {
                    count.invalid += u32::from(!valid);
                    if show.as_deref() == Some(kind.name) {
                        let note = if valid { "" } else { " (not valid)" };
                        println!("{number} {profile} {stage}{note}\n{}", changed_lines(stage_runs.program, &mutant));
                    }
                }
                // The whole checker, now and then.
                if valid && show.is_none() && random.is_multiple_of(32) {
                    through_checker += 1;
                    let report = checker.program_or_panic(
                        &shader,
                        &Env::from_seeds(&seeds),
                        Some(&mut |at: Stage, program: &mut Program| {
                            if at == stage {
                                program.clone_from(&mutant);
                            }
                        }),
                    );
                    for BoundaryVerdict { stage: at, verdict, .. } in &report.boundaries {
                        let found = matches!(verdict, Verdict::Refuted(_));
                        // The checker has inputs that fit the program, and compares interfaces: it may find more at
                        // this stage. A mutant that it misses there may not survive on the machine, where final
                        // programs run, or in words.
                        let is_late = *at >= Stage::Repeat && *at > stage;
                        let is_other = *at == stage && stage.is_final();
                        assert!(
                            if *at == stage { found || !refuted || is_other } else { !found || is_late },
                            "{}, program {number}, planted at {stage}: {verdict} at {at}\n{}",
                            kind.name,
                            changed_lines(&program, &mutant)
                        );
                    }
                }
            }
        }
    }
    println!(
        "refuted/refused/survived by stage; of the survivors: not valid, refuted in {MORE_RUNS} environments; by registers, not proved"
    );
    let mut weak = Vec::new();
    for (kind, row) in KINDS.iter().zip(&table) {
        let mut all = Count::default();
        row.iter().for_each(|count| all.add(count));
        let cells: Vec<String> =
            row.iter().map(|c| format!("{:>11}", format!("{}/{}/{}", c.refuted, c.refused, c.survived()))).collect();
        let seen = all.refuted + all.refused;
        let rate = 100 * seen / all.applied.max(1);
        println!(
            "{:<20}{} | {:>4} of {:>4} = {rate:>3} %, {:>3}, {:>3} | {:>4} of {:>4}",
            kind.name,
            cells.join(""),
            seen,
            all.applied,
            all.invalid,
            all.later,
            all.denied,
            all.judged
        );
        let least = LEAST.iter().find(|(name, _)| *name == kind.name).map(|&(_, least)| least);
        let least = least.unwrap_or_else(|| panic!("{} has no share that must be refuted", kind.name));
        // The share of few mutants, which are the same few after each stage, means little; in ci/nightly there are
        // enough of all kinds.
        if all.applied == 0 && least > 0 && times > 1 || (all.applied >= ENOUGH && rate < least) {
            weak.push(format!("{}: {rate} % instead of {least} %", kind.name));
        }
    }
    println!("{through_checker} mutants went through the checker");
    assert!(weak.is_empty(), "kinds that are seen less often than they should be: {weak:#?}");
}
