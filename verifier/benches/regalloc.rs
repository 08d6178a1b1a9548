//! Speed of register allocation: straight-line code, branches and loops, of 100 to 100,000 instructions.
//!
//! `cargo bench -p ir3-verifier --bench regalloc` prints nanoseconds of CPU time per instruction of the program in SSA
//! form, of the best of many runs. The result covers everything from SSA form to machine instructions, by parts:
//!
//! - *predicates*: critical edges, tied sources, registers of predicates and addresses (`regalloc::predicates`);
//! - *assignment*: conversion to conventional SSA, liveness, merge sets, pressure and assignment
//!   (`regalloc::run_within`);
//! - *lowering*: parallel copies to moves and swaps (`regalloc::lower_copies`).
//!
//! The programs fit, so nothing is spilled. The last column is the scheduler before allocation (`schedule::before`), in
//! nanoseconds per instruction too; it is in none of the other numbers.

mod programs;

use cpu_time::ThreadTime;
use ir3_compiler::arms::Counter;
use ir3_compiler::ir3::Program;
use ir3_compiler::regalloc;
use ir3_compiler::schedule::{before, dependencies::ScheduleRules};
use ir3_compiler::target::Target;
use programs::{Chosen, generate, print_spread};

/// The parts of the result.
const PARTS: [&str; 3] = ["predicates", "assignment", "lowering"];

/// Nanoseconds of CPU time of the parts, in the run whose sum was the fastest.
fn time(program: &Program, target: &Target, runs: usize) -> [f64; PARTS.len()] {
    let run = |_| {
        let mut program = program.clone();
        let mut last = ThreadTime::now();
        let mut part = || {
            let now = ThreadTime::now();
            now.duration_since(std::mem::replace(&mut last, now)).as_nanos() as f64
        };
        regalloc::predicates(&mut program, target).expect("predicates fit");
        let predicates = part();
        regalloc::run_within(&mut program, target, target.register_files()).expect("it fits");
        let assignment = part();
        regalloc::lower_copies::run(&mut program, target, &Counter::default()).expect("copies can be lowered");
        [predicates, assignment, part()]
    };
    let total = |parts: &[f64; PARTS.len()]| parts.iter().sum::<f64>();
    (0..runs).map(run).min_by(|a, b| total(a).total_cmp(&total(b))).unwrap_or_default()
}

/// Nanoseconds of CPU time of the scheduler, of the fastest run.
fn time_schedule(program: &Program, target: &Target, runs: usize) -> f64 {
    let run = |_| {
        let mut program = program.clone();
        let start = ThreadTime::now();
        let rules = ScheduleRules { predicates: true, registers: target.num_predicates, occupancy: true };
        before::run(&mut program, target, target.register_files(), rules);
        start.elapsed().as_nanos() as f64
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    let target = Target::default();
    let chosen = Chosen::new();
    println!(
        "{:<16} {:>12} {:>8} {:>9} {:>10}   {}; schedule",
        "shape",
        "instructions",
        "blocks",
        "ns/instr",
        "M instr/s",
        PARTS.join(" + ")
    );
    for (name, shape) in chosen.shapes() {
        let mut flat = Vec::new();
        for size in chosen.sizes() {
            let program = generate(shape, size);
            let count = program.instruction_count();
            let runs = (2_000_000 / size).clamp(15, 1000);
            let schedule = time_schedule(&program, &target, runs) / count as f64;
            let parts = time(&program, &target, runs).map(|part| part / count as f64);
            let each: f64 = parts.iter().sum();
            let parts: Vec<String> = parts.iter().map(|part| format!("{part:.0}")).collect();
            println!(
                "{name:<16} {count:>12} {:>8} {each:>9.0} {:>10.2}   {}; {schedule:.0}",
                program.layout.len(),
                1e3 / each,
                parts.join(" + ")
            );
            if size >= 1_000 {
                flat.push(each);
            }
        }
        print_spread(name, &flat);
    }
}
