//! Subgroup macros, compared with Mesa's expansion: its logs have each program before and after it.

use crate::common::gpu::gpu;
use crate::common::logs::{logs, text};
use crate::common::passes::passes;
use ir3_compiler::ir3::text::read;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{Block, InstrData, OperandFlags, Program};
use ir3_compiler::lower_subgroups;

/// A block: its instructions, the positions of its successors, and true if lanes may diverge at its end.
type Shape = (Vec<InstrData>, Vec<usize>, Option<bool>);

fn shape(program: &Program) -> Vec<Shape> {
    let place = |block: Block| program.layout.iter().position(|&other| other == block).unwrap();
    let instr = |data: &InstrData| {
        let mut data = data.clone();
        data.unconstrain();
        let marks = OperandFlags::KILL | OperandFlags::FIRST_KILL | OperandFlags::UNUSED | OperandFlags::TIED;
        data.srcs.iter_mut().for_each(|src| src.flags -= marks);
        data.dsts.iter_mut().for_each(|dst| dst.flags -= marks | OperandFlags::EARLY_CLOBBER);
        data
    };
    let block = |block: &Block| {
        let data = &program.blocks[*block];
        let instrs = data.instrs.iter().map(|&i| instr(&program.instrs[i])).collect();
        (instrs, data.successors().map(place).collect(), data.divergent)
    };
    program.layout.iter().map(block).collect()
}

#[test]
fn as_mesa_expands_them() {
    let (mut programs, mut equal) = (0, 0);
    for (folder, files) in logs() {
        let target = gpu(&folder);
        for file in &files {
            let log = text(file);
            let mut before = None;
            for (title, text) in passes(&log) {
                if title != "ir3_lower_subgroups" {
                    before = Some(text);
                    continue;
                }
                let mut ours = read(before.take().unwrap()).unwrap();
                if !lower_subgroups::is_needed(&ours) {
                    continue;
                }
                let name = file.display();
                let mesa = read(text).unwrap();
                lower_subgroups::run(&mut ours);
                assert!(!lower_subgroups::is_needed(&ours));
                validate(&ours, &target, Form::Machine).unwrap_or_else(|broken| panic!("{name}: {}", broken[0]));
                programs += 1;
                let (found, expected) = (shape(&ours), shape(&mesa));
                let at = (0..found.len().max(expected.len())).find(|&i| found.get(i) != expected.get(i));
                match at {
                    None => equal += 1,
                    Some(at) => println!("{name}: block {at}:\n  {:?}\n  {:?}", found.get(at), expected.get(at)),
                }
            }
        }
    }
    println!("{equal} of {programs} programs with macros are equal");
    assert_eq!(equal, programs);
}
