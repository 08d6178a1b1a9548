//! The nops of Mesa's final programs: they are removed, inserted again by our rules, and must be the same.

use crate::common::gpu::gpu;
use crate::common::logs::{logs, text};
use crate::common::passes::passes;
use ir3_compiler::delays::nops::{self, Delays};
use ir3_compiler::ir3::text::read;
use ir3_compiler::ir3::{Block, CodeOrder, Instr, InstrFlags, Opcode, Place, Program};
use ir3_compiler::target::{DelaySlots, Target};
use std::path::PathBuf;

/// `(eq)` is in the assembly only, which has the same nops in the same order.
fn mark_end_of_helpers(program: &mut Program, native: &str) {
    let lines = native.lines().skip(1).map_while(|line| line.strip_prefix("MESA: info: "));
    let is_nop = |&instr: &Instr| program.instrs[instr].opcode == Opcode::Nop;
    let nops: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).filter(is_nop).collect();
    for (instr, line) in nops.into_iter().zip(lines.filter(|line| line.ends_with("nop"))) {
        let data = &mut program.instrs[instr];
        if line.contains("(eq)") {
            data.flags |= InstrFlags::EQ;
        }
    }
}

/// Removes nops that only pass time.
fn strip(program: &mut Program) {
    let Program { blocks, instrs, layout, .. } = program;
    for &block in layout.iter() {
        blocks[block].instrs.retain(|&instr| {
            let data = &mut instrs[instr];
            data.nop = 0;
            if data.opcode != Opcode::Nop {
                return true;
            }
            data.repeat = 0;
            data.flags.intersects(InstrFlags::SS | InstrFlags::SY)
        });
    }
}

/// A block's instructions, each with the nops that it is and carries. Without `eq`, a nop that only carries the `(eq)`
/// is left out.
fn shape(program: &Program, block: Block, eq: bool) -> Vec<(Option<Instr>, u8, u8)> {
    let shape = |&instr: &Instr| {
        let data = &program.instrs[instr];
        let nop = data.opcode == Opcode::Nop;
        if !eq && nop && data.flags.contains(InstrFlags::EQ) && data.repeat == 0 {
            return None;
        }
        let new = nop && !data.flags.intersects(InstrFlags::SS | InstrFlags::SY);
        Some(((!new).then_some(instr), data.repeat, data.nop))
    };
    program.blocks[block].instrs.iter().filter_map(shape).collect()
}

/// Returns true if there is a backward jump.
fn loops(program: &Program) -> bool {
    let order = CodeOrder::new(program);
    let backwards = |&block: &Block| program.blocks[block].successors().any(|to| order.place(to) <= order.place(block));
    program.layout.iter().any(backwards)
}

/// Returns true if there is a relative access. Mesa assumes that all of the array is written and read. The final text
/// has its length but not its start: it prints the first accessed element. So its waits cannot be derived from the
/// text.
fn has_relative(program: &Program) -> bool {
    let relative = |place: Option<&Place>| matches!(place, Some(Place::Relative { .. }));
    program.iter_instrs().any(|(_, i)| {
        let data = &program.instrs[i];
        data.dsts.iter().any(|dst| relative(Some(&dst.place))) || data.srcs.iter().any(|src| relative(src.place()))
    })
}

fn nops(program: &Program) -> u32 {
    let nops = |instr: Instr| {
        let data = &program.instrs[instr];
        u32::from(data.nop) + if data.opcode == Opcode::Nop { 1 + u32::from(data.repeat) } else { 0 }
    };
    program.iter_instrs().map(|(_, instr)| nops(instr)).sum()
}

#[test]
fn nops_stand_where_mesa_has_them() {
    let folders = logs();
    let all = !cfg!(debug_assertions) || std::env::var_os("IR3_LOGS").is_some_and(|v| v == "all");
    let files = folders.iter().flat_map(|(folder, logs)| logs.iter().map(move |log| (folder, log)));
    let files: Vec<(&String, &PathBuf)> = files.step_by(if all { 1 } else { 8 }).collect();
    let (mut same, mut theirs, mut ours, mut in_loops, mut predicated) = (0, 0, 0, 0, 0);
    for (folder, file) in &files {
        // Mesa 25.0 printed them.
        let target = Target { delay_slots: DelaySlots::LONG, ..gpu(folder) };
        let log = text(file);
        let mut native = log.split("MESA: info: Native code for ").skip(1);
        for (_, text) in passes(&log).filter(|(title, _)| title.trim_end_matches(':') == "ir3_legalize") {
            let mut mesa = read(text).unwrap();
            mark_end_of_helpers(&mut mesa, native.next().unwrap());
            let mut again = mesa.clone();
            strip(&mut again);
            nops::insert(&mut again, &target);
            // A program with all its nops needs no more.
            let delays = Delays::of(&again, &target);
            assert!(again.iter_instrs().all(|(_, instr)| delays.before(instr) == 0), "{}", file.display());
            let (found, expected) = (nops(&again), nops(&mesa));
            ours += found;
            theirs += expected;
            let at = mesa.layout.iter().find_map(|&block| difference(&mesa, &again, block));
            let Some(at) = at else {
                same += 1;
                continue;
            };
            // When the predecessors change, Mesa processes a block again with the nops that it has already inserted,
            // and does not count those in `(nopN)`. It also inserts `prede` and its nops after all others.
            let why = if loops(&mesa) { &mut in_loops } else { &mut predicated };
            *why += 1;
            let explained = loops(&mesa) || mesa.iter_instrs().any(|(_, i)| mesa.instrs[i].opcode == Opcode::Prede);
            let what = format!("{}: {at}: {found} nops, Mesa {expected}", file.display());
            assert!(explained && found < expected || has_relative(&mesa), "{what}");
        }
    }
    let programs = same + in_loops + predicated;
    println!(
        "{programs} programs: nops of {same} the same, {in_loops} with loops and {predicated} predicated ones have fewer"
    );
    println!("{ours} nops, Mesa {theirs}");
    assert!(files.is_empty() || same * 4 > programs * 3, "{same} of {programs}");
}

/// Describes where the nops of a block differ.
fn difference(mesa: &Program, again: &Program, block: Block) -> Option<String> {
    let (expected, found) = (shape(mesa, block, true), shape(again, block, true));
    if expected == found || shape(mesa, block, false) == found {
        return None;
    }
    let at = (0..expected.len().max(found.len())).find(|&i| expected.get(i) != found.get(i))?;
    Some(format!("{block} at {at}: {:?} not {:?}", found.get(at), expected.get(at)))
}
