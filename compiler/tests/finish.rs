//! Final programs of the corpus, on a GPU of each kind: valid, complete, with a text, and flat.

use crate::common::corpus::corpus;
use ir3_compiler::compilation::compile;
use ir3_compiler::delays::nops::Delays;
use ir3_compiler::ir3::text::{read, write};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{InstrData, Opcode, Place, Program};
use ir3_compiler::machine::Code;
use ir3_compiler::nir;
use ir3_compiler::pipeline::{ErrorKind, Options, Stage};
use ir3_compiler::target::Target;
use std::fs;

/// Checks a program after each pass.
fn check(program: &Program, target: &Target, stage: Stage) -> Result<(), String> {
    validate(program, target, Form::Machine).map_err(|broken| broken[0].to_string())?;
    let text = write(program);
    if read(&text).ok() != program.canonical() {
        return Err(format!("reads back as another program:\n{text}"));
    }
    if stage < Stage::Legalize {
        return Ok(());
    }
    Code::from_program(program).map_err(|error| error.to_string())?;
    let delays = Delays::of(program, target);
    for (_, instr) in program.iter_instrs() {
        if delays.before(instr) > 0 {
            return Err(format!("{} needs a nop:\n{text}", program.instrs[instr].opcode));
        }
    }
    Ok(())
}

/// Returns true if a register is relative to `a0.x`.
fn accesses_array(data: &InstrData) -> bool {
    let mut places = data.srcs.iter().filter_map(|src| src.place()).chain(data.dsts.iter().map(|dst| &dst.place));
    places.any(|place| matches!(place, Place::Relative { .. }))
}

#[test]
fn every_program_can_be_finished() {
    let (mut programs, mut failures, mut repeated, mut macros) = (0, Vec::new(), 0, 0);
    let (mut lost, mut relative) = (Vec::new(), 0);
    for path in corpus() {
        let shader = nir::read(&fs::read_to_string(&path).unwrap()).unwrap();
        for gpu in ["a306", "a420", "a540", "a618", "a660", "a750"] {
            let target = Target::by_name(gpu).unwrap();
            let mut legal = None;
            let compiled = compile(&shader, &target, &Options::default(), &mut |stage, program| {
                if stage == Stage::LowerSamgq {
                    let opcodes = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode);
                    macros += opcodes.filter(|&opcode| opcode == Opcode::BallotMacro).count();
                } else if stage > Stage::LowerSamgq
                    && let Err(problem) = check(program, &target, stage)
                {
                    failures.push(format!("{}, {gpu}, {stage}: {problem}", path.display()));
                }
                if stage == Stage::Legalize {
                    legal = Code::from_program(program).ok();
                    let instrs = legal.iter().flat_map(|code| code.instrs.values());
                    relative += instrs.filter(|instr| accesses_array(&instr.data)).count();
                } else if stage == Stage::Encode
                    && let (Some(legal), Ok(decoded)) = (&legal, Code::from_program(program))
                {
                    for (ip, before) in &legal.instrs {
                        let after = &decoded.instrs[ip];
                        if before != after {
                            lost.push(format!("{}, {gpu}: {ip}: {before:?}\n    {after:?}", path.display()));
                        }
                    }
                }
            });
            let program = match compiled {
                Ok(program) => program,
                Err(error) if error.kind == ErrorKind::Unsupported => continue,
                Err(error) => {
                    failures.push(format!("{}, {gpu}: {error}", path.display()));
                    continue;
                }
            };
            programs += 1;
            repeated += program
                .iter_instrs()
                .filter(|&(_, i)| {
                    let data = &program.instrs[i];
                    data.repeat > 0 && data.opcode != Opcode::Nop
                })
                .count();
        }
    }
    println!("{programs} programs, {repeated} repetitions, {macros} ballots, {relative} accesses of arrays");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(200)].join("\n"));
    assert!(
        lost.is_empty(),
        "{} instructions are others after they were encoded\n{}",
        lost.len(),
        lost[..lost.len().min(500)].join("\n")
    );
    assert!(programs > 300 && repeated > 100 && macros > 0 && relative > 10);
}
