//! Speed of the hazard checker and of the machine, on a program of long blocks, branches and loops.
//!
//! `cargo bench -p ir3-verifier --bench hazards` prints instructions per CPU second of the checker, for sizes that show
//! that it is linear, and lane-instructions per CPU second of the machine.

use cpu_time::ThreadTime;
use ir3_compiler::ir3::text;
use ir3_compiler::machine::Code;
use ir3_compiler::target::Target;
use ir3_prove::hazards::{Facts, check};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use ir3_semantics::interp::ir3::machine::{Completion, Machine, Start};
use std::fmt::Write as _;

/// Loops with a branch in each, one after the other; each runs eight times.
fn program(loops: usize) -> String {
    let mut out = String::new();
    let mut serial = 0;
    let mut block = |out: &mut String, number: usize, lines: &[&str], succs: String| {
        let _ = writeln!(out, "block{number} {{");
        for line in lines {
            serial += 1;
            let _ = writeln!(out, "\t{serial:04}:0000:000: \t{line}");
        }
        if !succs.is_empty() {
            let _ = writeln!(out, "\t/* succs: {succs} */");
        }
        out.push_str("}\n");
    };
    for i in 0..loops {
        let at = 4 * i;
        block(&mut out, at, &["(ss)mov.u32u32 r4.x, imm[0.000000,0,0x0]", "(rpt2)nop"], format!("block{}", at + 1));
        let head = format!("br pp0.x target=block{}", at + 3);
        let body = [
            "(jp)add.u r4.x, r4.x, imm[0.000000,1,0x1]",
            "(rpt2)mad.f32 r5.x (wrmask=0x7), (r)r8.x (wrmask=0x7), (r)r9.x (wrmask=0x7), (r)r10.x (wrmask=0x7)",
            "sqrt r6.x, r7.x",
            "(nop3)cmps.u.ge pp0.x, r4.x, imm[0.000000,8,0x8]",
            "(ss)mul.f r8.x, r6.x, r5.x",
            "(rpt2)nop",
            &head,
        ];
        block(&mut out, at + 1, &body, format!("block{}, block{} (con)", at + 3, at + 2));
        let back = format!("jump target=block{}", at + 1);
        let rest = ["add.f r11.x, r5.y, r5.z", "min.u r12.x, r4.x, r0.x", "max.u r12.y, r4.x, r0.y", "nop", &back];
        block(&mut out, at + 2, &rest, format!("block{}", at + 1));
        block(&mut out, at + 3, &["(ss)nop", "xor.b r0.x, r0.x, r12.x"], format!("block{}", at + 4));
    }
    block(&mut out, 4 * loops, &["(sy)(ss)end r4.x"], String::new());
    out
}

fn main() {
    let target = Target::default();
    println!("{:>12} {:>12} {:>18}", "instructions", "M instr/s", "M lane-instr/s");
    for loops in [62, 625, 6250] {
        let program = text::read(&program(loops)).expect("a program");
        let code = Code::from_program(&program).expect("a final program");
        let facts = Facts::of_program(&program);
        let count = code.instrs.len();
        let best = (0..(400_000 / count).clamp(3, 300)).map(|_| {
            let start = ThreadTime::now();
            let report = check(&code, &facts, &target).expect("it is understood");
            assert!(report.hazards.is_empty(), "{}", report.hazards[0]);
            start.elapsed().as_secs_f64()
        });
        let checked = count as f64 / best.fold(f64::INFINITY, f64::min) / 1e6;
        let machine = Machine::new(&code, &target, Start::Arbitrary(1)).expect("it is supported");
        let mut scratch = Scratch::new();
        let best = (0..3).map(|seed| {
            let start = ThreadTime::now();
            let outcome = machine.run(&Env::from_seed(seed), Completion::Latest, u64::MAX, &mut scratch);
            start.elapsed().as_secs_f64() / outcome.executed as f64
        });
        let ran = 64.0 / best.fold(f64::INFINITY, f64::min) / 1e6;
        println!("{count:>12} {checked:>12.2} {ran:>18.1}");
    }
}
