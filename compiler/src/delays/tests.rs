//! Delays over edges, quirks, and latencies. The rules for straight code are in the file tests, `corpus/file/delays`.

use super::latency::{Latency, Timing};
use super::nops::Delays;
use crate::ir3::Program;
use crate::ir3::text::read;
use crate::stats::Stats;
use crate::target::Target;

/// Blocks of lines of code, with their successors.
fn program(blocks: &[(&[&str], &str)]) -> Program {
    let mut text = String::new();
    for (number, (lines, successors)) in blocks.iter().enumerate() {
        text += &format!("block{number} {{\n");
        let predecessors: Vec<String> = (0..blocks.len())
            .filter(|&from| blocks[from].1.split(", ").any(|to| to == format!("block{number}")))
            .map(|from| format!("block{from}"))
            .collect();
        if !predecessors.is_empty() {
            text += &format!("\tpred: {}\n", predecessors.join(", "));
        }
        for (at, line) in lines.iter().enumerate() {
            text += &format!("\t{:04}:0000:000: \t{line}\n", 1 + number * 100 + at);
        }
        if !successors.is_empty() {
            text += &format!("\t/* succs: {successors} */\n");
        }
        text += "}\n";
    }
    read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn target(name: &str) -> Target {
    Target::by_name(name).unwrap()
}

/// The nops before each instruction.
fn nops(program: &Program) -> Vec<u32> {
    let delays = Delays::of(program, &target("a660"));
    program.iter_instrs().map(|(_, instr)| delays.before(instr)).collect()
}

fn straight(lines: &[&str]) -> Vec<u32> {
    nops(&program(&[(lines, "")]))
}

#[test]
fn time_passes_over_the_edges() {
    // The path around the loop is longer than the first path into it.
    let program = program(&[
        (&["add.f r0.x, r1.x, r1.y", "jump"], "block1"),
        (&["rcp r3.x, r0.x", "cmps.f.lt pp0.x, r1.x, r1.y", "br pp0.x"], "block2, block3"),
        (&["add.f r0.x, r1.x, r1.y", "add.f r2.x, r1.x, r1.y", "jump"], "block1"),
        (&["end"], ""),
    ]);
    assert_eq!(nops(&program), [0, 0, 6, 0, 6, 0, 0, 0, 0]);
    let mut backwards = program.clone();
    let first = backwards.blocks[backwards.layout[0]].instrs[0];
    backwards.instrs[first].dsts[0].place = crate::ir3::Place::Reg(crate::ir3::PhysReg(60));
    // Now only the path around the loop has to be waited for.
    assert_eq!(nops(&backwards), [0, 0, 5, 0, 6, 0, 0, 0, 0]);
}

#[test]
fn some_want_nops_where_lanes_wake_up() {
    let lines = ["predt pp0.x", "mov.u32u32 r0.x, r1.x", "predf pp0.x", "mov.u32u32 r0.x, r1.y", "prede"];
    let program = program(&[(&lines, "")]);
    for (name, expected) in [("a618", [0; 5]), ("a660", [0, 0, 5, 0, 7]), ("a730", [0, 0, 5, 0, 7])] {
        let delays = Delays::of(&program, &target(name));
        let after: Vec<u32> = program.iter_instrs().map(|(_, instr)| delays.after(instr)).collect();
        let quirks = target(name).quirks;
        assert_eq!((after[2] > 0, after[4] > 0), (quirks.predtf_nop, quirks.prede_nop), "{name}");
        if name != "a730" {
            assert_eq!(after, expected, "{name}");
        }
    }
}

#[test]
fn latencies_are_those_of_the_units() {
    let between = |lines: [&str; 2], index| {
        let program = program(&[(&lines, "")]);
        let [producer, consumer] = program.blocks[program.layout[0]].instrs[..] else { panic!() };
        let target = target("a660");
        let timings = [producer, consumer].map(|instr| Timing::of(&program.instrs[instr], &target));
        let [producer, consumer] = [producer, consumer].map(|instr| &program.instrs[instr]);
        let latency = Latency::between((producer, &timings[0]), (consumer, &timings[1]), || index, &target);
        (latency.slots, latency.soft)
    };
    assert_eq!(between(["add.f r0.x, r1.x, r1.y", "mul.f r0.y, r0.x, r1.x"], 0), (3, 3));
    assert_eq!(between(["add.f r0.x, r1.x, r1.y", "mad.f32 r0.y, r1.x, r1.y, r0.x"], 2), (1, 1));
    assert_eq!(between(["add.f r0.x, r1.x, r1.y", "cov.f16f32 r0.y, hr0.x"], 0), (6, 6));
    assert_eq!(between(["cmps.f.lt pp0.x, r1.x, r1.y", "kill pp0.x"], 0), (6, 6));
    assert_eq!(between(["rcp r0.x, r1.x", "add.f r0.y, r0.x, r0.x"], 0), (0, 10));
    assert_eq!(between(["sam (f32)(xy)r0.x (wrmask=0x3), r1.x (wrmask=0x3), s#0, t#0", "rcp r2.x, r0.x"], 0), (0, 53));
    assert_eq!(between(["ldl r0.x, r1.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]", "rcp r2.x, r0.x"], 0), (0, 10));
    assert_eq!(between(["add.f r0.x, r1.x, r1.y", "end r0.x"], 0), (0, 0));
    // The scalar ALU does not wait for itself, others wait with `(ss)`.
    assert_eq!(between(["add.u sr48.x, c0.x, imm[0.000000,1,0x1]", "add.u sr48.y, sr48.x, c0.y"], 0), (0, 0));
    assert_eq!(between(["add.u sr48.x, c0.x, imm[0.000000,1,0x1]", "add.u r0.x, sr48.x, r0.y"], 0), (0, 6));
}

/// In an early preamble users of `a1.x` wait with `(ss)`: the move has `(r)` there.
#[test]
fn an_address_of_an_early_preamble_is_not_waited_for() {
    let load = "ldc.k.4 imm[0.000000,0,0x0], imm[0.000000,0,0x0], hr61.y";
    assert_eq!(straight(&["mov.u16u16 hr61.y, himm[0.000000,16,0x10]", load]), [0, 6]);
    assert_eq!(straight(&["mov.u16u16 hr61.y, (r)himm[0.000000,16,0x10]", load]), [0, 0]);
    // The other address register is not affected.
    let read = "mov.u32u32 r0.x, r<a0.x + 14> (8), hr61.x";
    assert_eq!(straight(&["mov.s16s16 hr61.x, (r)hr3.x", read]), [0, 6]);
}

/// A program that has nops has all of them, with branches or without.
#[test]
fn nops_of_a_legalized_program_are_counted_and_not_added() {
    let count = |lines: &[&str]| Stats::of(&program(&[(lines, "")]), &target("a660")).nops;
    assert_eq!(count(&["add.f r0.x, r1.x, r1.y", "mul.f r0.y, r0.x, r1.x"]), 3);
    assert_eq!(count(&["add.f r0.x, r1.x, r1.y", "nop", "mul.f r0.y, r0.x, r1.x"]), 1);
    assert_eq!(count(&["(nop2)add.f r0.x, r1.x, r1.y", "mul.f r0.y, r0.x, r1.x"]), 2);
}
