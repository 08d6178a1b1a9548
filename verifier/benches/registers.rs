//! Speed of the register checker: straight-line code, branches and loops, of 100 to 100,000 instructions.
//!
//! `cargo bench -p ir3-verifier --bench registers` prints nanoseconds of CPU time per instruction of the program in SSA
//! form, of the best of many runs, for the two boundaries that every program has: *assignment* (values to registers)
//! and *lowering* (parallel copies to moves and swaps). The result is for the slower of both. *Spilled* is assignment
//! with the smallest register limit, per instruction after `spill`.

mod programs;

use cpu_time::ThreadTime;
use ir3_compiler::arms::Counter;
use ir3_compiler::ir3::Program;
use ir3_compiler::pipeline::{self, Options, RegisterLimit, Stage};
use ir3_compiler::regalloc;
use ir3_compiler::target::Target;
use ir3_prove::registers;
use programs::{Chosen, generate, print_spread};

/// Nanoseconds of CPU time of one proof, of the fastest run.
fn time(source: &Program, target: &Program, machine: &Target, runs: usize) -> f64 {
    let run = |_| {
        let start = ThreadTime::now();
        registers::prove(source, target, machine).expect("it is right");
        start.elapsed().as_nanos() as f64
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

/// The program after `spill` and after assignment, with the smallest register limit.
fn spilled(program: &Program, machine: &Target) -> [Program; 2] {
    let options = Options { registers: RegisterLimit::Minimum(0), ..Options::default() };
    let behind = |stage: Stage, program: &Program| {
        let mut program = program.clone();
        pipeline::run_stage(stage, &mut program, machine, &options).expect("it fits");
        program
    };
    let spilled = behind(Stage::Spill, program);
    let assigned = behind(Stage::RegisterAllocation, &spilled);
    [spilled, assigned]
}

fn main() {
    let machine = Target::default();
    let chosen = Chosen::new();
    println!(
        "{:<16} {:>12} {:>8} {:>9} {:>10}   assignment, lowering, spilled",
        "shape", "instructions", "blocks", "ns/instr", "M instr/s"
    );
    for (name, shape) in chosen.shapes() {
        let mut flat = Vec::new();
        for size in chosen.sizes() {
            let mut program = generate(shape, size);
            let count = program.instruction_count();
            let runs = (500_000 / size).clamp(3, 300);
            regalloc::predicates(&mut program, &machine).expect("predicates fit");
            let mut assigned = program.clone();
            regalloc::run_within(&mut assigned, &machine, machine.register_files()).expect("it fits");
            let mut lowered = assigned.clone();
            regalloc::lower_copies::run(&mut lowered, &machine, &Counter::default()).expect("copies can be lowered");
            let each = [(&program, &assigned), (&assigned, &lowered)]
                .map(|(source, target)| time(source, target, &machine, runs) / count as f64);
            let slower = each[0].max(each[1]);
            let [source, target] = spilled(&program, &machine);
            let spilled = time(&source, &target, &machine, runs) / source.instruction_count() as f64;
            println!(
                "{name:<16} {count:>12} {:>8} {slower:>9.0} {:>10.2}   {:.0}, {:.0}, {spilled:.0}",
                program.layout.len(),
                1e3 / slower,
                each[0],
                each[1]
            );
            if size >= 1_000 {
                flat.push(slower);
            }
        }
        print_spread(name, &flat);
    }
}
