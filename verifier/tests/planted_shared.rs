//! Planted bugs of shared registers: each is refuted after the stage that assigns registers to shared values.

use ir3_compiler::ir3::{Attrs, InstrData, Opcode, PhysReg, Place, Program, RegClass, RegFile, Round, Src, Type};
use ir3_compiler::ir3::{Dst, WriteMask};
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{BoundaryVerdict, Checker, Verdict};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::environment::env::Env;

/// Plants `bug` after `stage` in random programs with few shared registers. At least `least` must be refuted, all of
/// them after the allocation of shared registers.
fn planted(name: &str, stage: Stage, least: u32, bug: impl Fn(&mut Program) -> bool) {
    let mut checker = Checker::new(Target::default(), Options::default());
    checker.set_registers(RegisterLimit::Minimum(4));
    let (mut changed, mut refuted) = (0, 0);
    for number in 0..150 {
        let seed = program_seed(0x5a, number);
        let generated = generator::from_seed(seed, Profile::Uniform, Features::ALL);
        let mut planted = false;
        let report = checker.program_or_panic(
            &generated.shader,
            &Env::from_seeds(&env_seeds(seed, 3)),
            Some(&mut |at: Stage, program: &mut Program| {
                if at == stage {
                    planted = bug(program);
                }
            }),
        );
        changed += u32::from(planted);
        for BoundaryVerdict { stage: at, verdict, .. } in &report.boundaries {
            if matches!(verdict, Verdict::Refuted(_)) {
                assert!(planted, "seed {seed}: refuted at {at} with nothing planted");
                // A bug that runs of this stage miss may not survive on the machine.
                if *at >= Stage::Repeat {
                    continue;
                }
                assert_eq!(*at, Stage::SharedRegisters, "seed {seed}: refuted at the wrong stage");
                refuted += 1;
            }
        }
    }
    println!("{name}: {changed} programs changed, {refuted} refuted");
    assert!(refuted >= least, "only {refuted} of {changed} were refuted");
}

fn shared(place: Option<&Place>, class: RegClass) -> Option<(PhysReg, bool)> {
    match place {
        Some(Place::Reg(reg)) if class.file == RegFile::Shared => Some((*reg, class.half)),
        _ => None,
    }
}

/// No lanes are assumed to wait: shared values are live on logical edges only.
#[test]
fn missing_physical_edges() {
    planted("missing physical edges", Stage::Predicates, 2, |program| {
        let mut changed = false;
        for position in 0..program.layout.len() {
            let data = &mut program.blocks[program.layout[position]];
            if data.successors().count() > 1 {
                data.divergent = Some(false);
                changed = true;
            }
        }
        changed
    });
}

/// One arm writes to a shared register that the other arm, which waits, still reads.
#[test]
fn overwritten_in_the_other_arm() {
    planted("overwritten in the other arm", Stage::SharedRegisters, 5, |program| {
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            let data = &program.blocks[block];
            let logical: Vec<_> = data.successors().collect();
            let waiting = data.physical_successors.iter().copied().filter(|next| !logical.contains(next));
            for other in waiting {
                let mut written = Vec::new();
                for &instr in &program.blocks[other].instrs {
                    let data = &program.instrs[instr];
                    let mut read = data.srcs.iter().filter_map(|src| shared(src.place(), src.class));
                    if let Some((reg, half)) = read.find(|reg| !written.contains(reg)) {
                        let class = if half { RegClass::SHARED_HALF } else { RegClass::SHARED };
                        let ty = if half { Type::U16 } else { Type::U32 };
                        let mut write = InstrData::new(Opcode::Mov);
                        write.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
                        write.dsts.push(Dst::new(Place::Reg(reg), class, WriteMask::SCALAR));
                        write.srcs.push(Src::immediate(0x2a, half));
                        let write = program.instrs.push(write);
                        let list = &program.blocks[block].instrs;
                        let end = list.iter().rev().take_while(|&&i| program.instrs[i].opcode.is_terminator()).count();
                        let at = list.len() - end;
                        program.blocks[block].instrs.insert(at, write);
                        return true;
                    }
                    written.extend(data.dsts.iter().filter_map(|dst| shared(Some(&dst.place), dst.class)));
                }
            }
        }
        false
    });
}

/// A spilled value is not reloaded: a reader reads another value of the shared register.
#[test]
fn lost_reload() {
    planted("lost reload", Stage::SharedRegisters, 10, |program| {
        for position in (0..program.layout.len()).rev() {
            let block = program.layout[position];
            let reload = program.blocks[block].instrs.iter().rposition(|&instr| {
                let data = &program.instrs[instr];
                data.opcode == Opcode::Mov
                    && data.dsts[0].class.file == RegFile::Shared
                    && data.srcs[0].value().is_some()
            });
            if let Some(at) = reload {
                program.blocks[block].instrs.remove(at);
                return true;
            }
        }
        false
    });
}

/// The copies of a phi of shared values at the end of a block are dropped.
#[test]
fn lost_phi_copy() {
    planted("lost phi copy", Stage::SharedRegisters, 5, |program| {
        for position in (0..program.layout.len()).rev() {
            let block = program.layout[position];
            let copy = program.blocks[block].instrs.iter().position(|&instr| {
                let data = &program.instrs[instr];
                data.opcode == Opcode::ParallelCopy && data.dsts[0].class.file == RegFile::Shared
            });
            if let Some(at) = copy {
                program.blocks[block].instrs.remove(at);
                return true;
            }
        }
        false
    });
}
