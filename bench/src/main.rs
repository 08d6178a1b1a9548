//! The fuzzing loop of this project in comparison with that of regalloc2, in one run on one thread.
//!
//!     cargo run --release --manifest-path bench/Cargo.toml [PROGRAMS [SEED]]
//!
//! regalloc2's fuzzing module generates a function, allocates registers, and checks the result with its own checker.
//! Our loop generates a nir program, compiles it with every stage, and compares: `fuzz` with its defaults (end to end,
//! every boundary of one program in sixteen) and `fuzz --every-boundary`. Rounds of both alternate, so a machine that
//! becomes slower does so for both. All results are thousands of instructions a second of CPU time: of regalloc2's
//! functions there, of nir here. They are no comparison of quality: one instruction of regalloc2 has up to ten operands
//! and no meaning, one of nir becomes some two of ir3, which are run by 64 lanes.
//!
//! The parts of our loop, separately, each over the same programs: the cost of one full step, even if the loop does not
//! take it for each program.

use arbitrary::{Result as ArbitraryResult, Unstructured};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_harness::campaigns::counts::Counts;
use ir3_harness::campaigns::fuzzing::{Boundaries, Campaign, Drawn, every_generation};
use ir3_harness::check::{Executable, Execution, Snapshots};
use ir3_programs::generator::{self, Features};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_prove::registers;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::{End, Scratch};
use regalloc2::checker::Checker;
use regalloc2::fuzzing::func::{Func, Options as FuncOptions, machine_env};
use regalloc2::{Ctx, Function, RegallocOptions};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The rounds in which both sides take turns.
const ROUNDS: u64 = 10;

/// CPU time and instructions of one part.
#[derive(Default)]
struct Part {
    time: Duration,
    instructions: u64,
}

impl Part {
    /// Runs a function and adds its time.
    fn time<T>(&mut self, instructions: usize, run: impl FnOnce() -> T) -> T {
        let start = ThreadTime::now();
        let result = run();
        self.time += start.elapsed();
        self.instructions += instructions as u64;
        result
    }

    /// Thousands of instructions a second.
    fn rate(&self) -> f64 {
        self.instructions as f64 / self.time.as_secs_f64().max(1e-9) / 1e3
    }
}

/// The parts of regalloc2's loop.
#[derive(Default)]
struct Theirs {
    functions: u64,
    generate: Part,
    allocate: Part,
    check: Part,
    ctx: Ctx,
}

impl Theirs {
    /// The options of its fuzz target for this allocator: `fuzzing::ion`.
    const OPTIONS: FuncOptions = FuncOptions {
        reused_inputs: true,
        fixed_regs: true,
        fixed_nonallocatable: true,
        clobbers: true,
        reftypes: true,
        callsite_ish_constraints: true,
        ..FuncOptions::DEFAULT
    };

    /// One function from random bytes. Functions that need more bytes than there are do not count, as for a fuzzer.
    fn one(&mut self, bytes: &[u8]) -> ArbitraryResult<()> {
        let start = ThreadTime::now();
        let func = Func::arbitrary_with_options(&mut Unstructured::new(bytes), &Self::OPTIONS)?;
        self.generate.time += start.elapsed();
        let count = func.num_insts();
        self.generate.instructions += count as u64;
        let env = machine_env();
        let options = RegallocOptions::default();
        let ctx = &mut self.ctx;
        self.allocate.time(count, || {
            regalloc2::run_with_ctx(&func, &env, &options, ctx).expect("regalloc2 allocates");
        });
        self.check.time(count, || {
            let mut checker = Checker::new(&func, &env);
            checker.prepare(&ctx.output);
            checker.run().expect("regalloc2 is right");
        });
        self.functions += 1;
        Ok(())
    }

    fn total(&self) -> f64 {
        let time = self.generate.time + self.allocate.time + self.check.time;
        Part { time, instructions: self.check.instructions }.rate()
    }
}

/// The parts of our loop.
#[derive(Default)]
struct Ours {
    generate: Part,
    compile: Part,
    validate: Part,
    run_source: Part,
    run_final: Part,
    registers: Part,
    programs: u64,
}

impl Ours {
    /// One program, by its parts.
    fn one(&mut self, campaign: &Campaign, number: u64, scratch: &mut Scratch) {
        let Drawn { target, profile, seed, registers, .. } = campaign.program(number);
        let target = &target;
        let start = ThreadTime::now();
        let shader = generator::from_seed(seed, profile, Features::of(target)).shader;
        let generated = start.elapsed();
        let count = shader.instruction_count();
        self.generate.time += generated;
        self.generate.instructions += count as u64;
        let options = Options { registers, ..Options::default() };
        let compiled = self.compile.time(count, || Compilation::new(&shader, target, &options).finish());
        let Ok(Some(program)) = compiled else { return };
        self.validate.time(count, || validate(&program, target, Form::Machine).expect("a valid program"));
        let env = Env::from_seeds(&env_seeds(seed, 1)).remove(0);
        let source = self.run_source.time(count, || {
            let source = Executable::new(ProgramRef::Nir(&shader), target, Execution::Untimed).expect("it runs");
            source.run(&env, env.fuel(), scratch)
        });
        if source.end == End::Finished {
            self.run_final.time(count, || {
                let last = Executable::new(ProgramRef::Ir3(&program), target, Execution::after(Stage::Encode));
                let outcome = last.expect("it runs").run(&env, source.executed * 64 + 10_000, scratch);
                assert!(source.compare(&outcome).is_ok(), "a difference");
            });
        }
        let mut hook = |_, _: ir3_compiler::compilation::ProgramMut<'_, '_>| ir3_compiler::pipeline::Change::Nothing;
        let compilation = Compilation::new(&shader, target, &options).with_hook(Some(&mut hook));
        for sides in Snapshots::new(compilation).map_while(Result::ok).filter(|sides| sides.stage.moves_values()) {
            if let (Snapshot::Ir3(before), Snapshot::Ir3(after)) = (&sides.before, &sides.after) {
                // A failed proof costs time, too.
                self.registers.time(0, || _ = registers::prove(before, after, target));
            }
        }
        self.registers.instructions += count as u64;
        self.programs += 1;
    }
}

/// Runs a part of a campaign, as `fuzz` does.
fn campaign(campaign: &Campaign, total: &mut Counts) {
    let counts = campaign.run(&AtomicBool::new(false), &mut |finding| assert!(!finding.failed), &mut |_| ());
    total.add(&counts);
}

fn rate(counts: &Counts, time: Duration) -> f64 {
    counts.instructions as f64 / time.as_secs_f64().max(1e-9) / 1e3
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let programs = arguments.next().unwrap_or(2000);
    let seed = arguments.next().unwrap_or(1);
    let each = programs.div_ceil(ROUNDS);
    let base = Campaign { targets: every_generation(), seed, ..Campaign::default() };
    let (mut theirs, mut ours) = (Theirs::default(), Ours::default());
    let (mut ends, mut every) = (Counts::default(), Counts::default());
    let mut scratch = Scratch::default();
    for round in 0..ROUNDS {
        let (mut done, mut number) = (0, round << 32);
        while done < each {
            number += 1;
            // The typical length of inputs after a fuzzer has run for a while.
            let bytes: Vec<u8> = (0..2048).flat_map(|word| program_seed(seed ^ number, word).to_le_bytes()).collect();
            done += u64::from(theirs.one(&bytes).is_ok());
        }
        let first = round * each;
        let part = Campaign { first, programs: Some(each), jobs: 1, keep_going: true, ..base.clone() };
        campaign(&part, &mut ends);
        campaign(&Campaign { boundaries: Boundaries::All, ..part.clone() }, &mut every);
        (first..first + each).for_each(|number| ours.one(&part, number, &mut scratch));
    }
    println!("thousands of instructions a second of CPU time, over {programs} programs each");
    println!(
        "regalloc2 0.15.2: {:.1}   (generate {:.0}, allocate {:.0}, check {:.0}; {:.0} instructions a function)",
        theirs.total(),
        theirs.generate.rate(),
        theirs.allocate.rate(),
        theirs.check.rate(),
        theirs.check.instructions as f64 / theirs.functions as f64
    );
    for (name, counts) in [("fuzz", &ends), ("fuzz --every-boundary", &every)] {
        println!(
            "{name}: {:.1}   (generate {:.0}, compile {:.0}, run and compare {:.0}; counted once for each of {} compilations \
             {:.1}; {} programs end to end, {} at every boundary)",
            rate(counts, counts.total()),
            rate(counts, counts.generate),
            rate(counts, counts.compile),
            rate(counts, counts.run),
            counts.compilations,
            counts.compiled_instructions as f64 / counts.total().as_secs_f64().max(1e-9) / 1e3,
            counts.end_to_end,
            counts.every_boundary
        );
    }
    println!(
        "apart: generate {:.0}, compile {:.0}, validate the last program {:.0}, run nir {:.0}, run the last program {:.0}, \
         register checker {:.0}; {:.0} instructions a program",
        ours.generate.rate(),
        ours.compile.rate(),
        ours.validate.rate(),
        ours.run_source.rate(),
        ours.run_final.rate(),
        ours.registers.rate(),
        ours.generate.instructions as f64 / ours.programs as f64
    );
    println!(
        "our loop to regalloc2's: {:.2} times the instructions, {:.2} times counted once for each compilation",
        rate(&ends, ends.total()) / theirs.total(),
        ends.compiled_instructions as f64 / ends.total().as_secs_f64().max(1e-9) / 1e3 / theirs.total()
    );
}
