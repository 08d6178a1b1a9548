//! Inputs and outputs with given registers.

use super::*;
use crate::ir3::{Instr, PhysReg, Value};
use crate::regalloc::spill;

/// Registers of general operands: of inputs, or of sources of `end`.
fn registers(program: &Program, outputs: bool) -> Vec<(Option<PhysReg>, RegClass, u32)> {
    let mut list = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        match data.opcode {
            Opcode::Input if !outputs => {
                list.extend(data.dsts.iter().map(|dst| (dst.place.reg(), dst.class, dst.mask.span())))
            }
            Opcode::End if outputs => {
                let reg = |src: &Src| src.place().and_then(Place::reg);
                list.extend(data.srcs.iter().map(|src| (reg(src), src.class, src.mask.span())));
            }
            _ => {}
        }
    }
    list
}

/// Gives registers to some inputs and outputs; these overlap neither each other nor the arrays of halves.
fn give(program: &mut Program, target: &Target, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % n
    };
    let (span, one_in) = ([24, 60, 150][below(3) as usize], 1 + below(3));
    let bottom: u32 = program.arrays.values().filter(|data| data.class.half).map(|data| u32::from(data.length)).sum();
    for outputs in [false, true] {
        let mut taken: [Vec<(u32, u32)>; 2] = Default::default();
        let regs: Vec<Option<PhysReg>> = (registers(program, outputs).iter())
            .map(|&(_, class, components)| {
                let unit = u32::from(class.component_units());
                let file = &mut taken[usize::from(class.half && !target.merged_regs)];
                for _ in 0..if below(one_in) == 0 { 8 } else { 0 } {
                    let start = (bottom.next_multiple_of(unit) + below(span) as u32) / unit * unit;
                    let end = start + components * unit;
                    if file.iter().all(|&(a, b)| end <= a || b <= start) {
                        file.push((start, end));
                        return Some(PhysReg((start / unit) as u16));
                    }
                }
                None
            })
            .collect();
        let mut regs = regs.into_iter();
        let list: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).collect();
        for instr in list {
            let data = &mut program.instrs[instr];
            match data.opcode {
                Opcode::Input if !outputs => {
                    for dst in data.dsts.iter_mut() {
                        if let (Some(value), Some(reg)) = (dst.value(), regs.next().flatten()) {
                            dst.place = Place::Assigned(value, reg);
                        }
                    }
                }
                Opcode::End if outputs => {
                    for src in data.srcs.iter_mut() {
                        if let (Some(value), Some(reg)) = (src.value(), regs.next().flatten()) {
                            src.operand = SrcOperand::Place(Place::Assigned(value, reg));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Checks that each given register of `before` is the same in `after`; returns their number.
fn kept(before: &Program, after: &Program) -> usize {
    let mut count = 0;
    for outputs in [false, true] {
        let (before, after) = (registers(before, outputs), registers(after, outputs));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(after) {
            if before.0.is_some() {
                assert_eq!(before.0, after.0);
                count += 1;
            }
        }
    }
    count
}

/// Random programs with random given registers are correct, need no more registers than were counted, and keep the
/// given ones.
#[test]
fn random_programs_with_given_registers() {
    let (mut given, mut fitted, mut refused) = (0, 0, 0);
    for seed in 1..800u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 4 + (seed % 30) as usize, size: 10 + (seed % 80) as usize };
        let mut program = random_program(seed, target, profile);
        give(&mut program, target, seed);
        let needed = needed(&program, target);
        // Exactly the need, more, or less.
        let limits = match seed % 8 {
            0 => RegisterFiles { full: needed.full.saturating_sub(2), ..needed },
            1 => target.register_files(),
            _ => needed,
        };
        let limits = RegisterFiles { full: limits.full.min(384), half: limits.half.min(192), ..limits };
        match check_within(&program, target, limits, seed % 8 == 1, seed) {
            Ok(()) => fitted += 1,
            Err(Error::NeedsSpilling { .. }) => {
                assert!(needed.full > limits.full || needed.half > limits.half, "seed {seed}: {needed:?}");
                refused += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
        let mut after = program.clone();
        predicates(&mut after, target).unwrap();
        run_within(&mut after, target, limits).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        given += kept(&program, &after);
        lower_copies::run(&mut after, target, &Counter::default()).unwrap();
        kept(&program, &after);
    }
    assert!(given > 2500 && fitted > 500 && refused > 50, "{given} {fitted} {refused}");
}

/// A block of inputs, the values that `body` computes from them, and their registers in `end`.
fn program(count: usize, body: impl Fn(&mut Builder<'_>, &[Src]) -> Vec<(Value, Option<PhysReg>)>) -> Program {
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut b = Builder::new(&mut program, block);
    let inputs: Vec<Value> =
        (0..count).map(|_| b.define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None))).collect();
    let inputs: Vec<Src> = inputs.iter().map(|&value| b.src(value)).collect();
    let outputs = body(&mut b, &inputs);
    let srcs: Vec<Src> = (outputs.iter())
        .map(|&(value, reg)| {
            let src = b.src(value);
            match reg {
                Some(reg) => Src { operand: SrcOperand::Place(Place::Assigned(value, reg)), ..src },
                None => src,
            }
        })
        .collect();
    b.effect(Opcode::End, &srcs);
    program
}

fn full(target: &Target, mut program: Program) -> Result<Program, Error> {
    run(&mut program, target).map(|()| program)
}

#[test]
fn gaps_between_outputs_are_needed() {
    let target = Target::default();
    let mut before = program(1, |_, inputs| vec![(inputs[0].value().unwrap(), Some(PhysReg(30)))]);
    let pressure = Analysis::new(&mut before, &target).unwrap().max_pressure(&before);
    assert_eq!(pressure.full, 62);
    assert!(
        spill::is_needed(&before, &target, RegisterLimit::Registers(30), Features::all(), &mut Carried::default())
            .unwrap()
    );
    assert!(
        !spill::is_needed(&before, &target, RegisterLimit::Registers(31), Features::all(), &mut Carried::default())
            .unwrap()
    );
    let error = spill::run(
        &mut before.clone(),
        &target,
        RegisterLimit::Registers(30),
        Features::all(),
        &mut Carried::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("(end) needs 31 of 30 full registers"), "{error}");
}

#[test]
fn two_outputs_in_one_register_are_refused() {
    let target = Target::default();
    let of = |regs: [u16; 2], wide: bool| {
        let before = program(2, |b, inputs| {
            let second = match wide {
                true => b.define(Opcode::Collect, RegClass::FULL, 2, inputs, Attrs::None),
                false => inputs[1].value().unwrap(),
            };
            vec![(inputs[0].value().unwrap(), Some(PhysReg(regs[0]))), (second, Some(PhysReg(regs[1])))]
        });
        full(&target, before).err().map(|error| error.to_string())
    };
    assert_eq!(of([4, 5], false), None);
    assert_eq!(of([4, 4], false).unwrap(), "malformed program: the register of output ssa_1 is taken");
    assert_eq!(of([5, 4], true).unwrap(), "malformed program: the register of output ssa_2 is taken");
    assert_eq!(of([6, 4], true), None);
    assert_eq!(of([190, 191], true).unwrap(), "malformed program: there is no register r47.w for output ssa_2");
}

/// No value is read after outputs; a given register elsewhere is refused, not dropped.
#[test]
fn outputs_in_the_middle_are_refused() {
    let target = Target::default();
    let mut program = program(1, |b, inputs| {
        let value = inputs[0].value().unwrap();
        let given = SrcOperand::Place(Place::Assigned(value, PhysReg(40)));
        b.effect(Opcode::Chmask, &[Src { operand: given, ..inputs[0] }]);
        vec![(value, None)]
    });
    let error = full(&target, program.clone()).unwrap_err();
    assert!(error.to_string().contains("given register"), "{error}");
    // Without the read after it, the program is accepted.
    let end = program.iter_instrs().map(|(_, instr)| instr).last().unwrap();
    program.instrs[end].srcs.clear();
    let after = full(&target, program).unwrap();
    let chmask = after.iter_instrs().find(|&(_, instr)| after.instrs[instr].opcode == Opcode::Chmask).unwrap().1;
    assert_eq!(after.instrs[chmask].srcs[0].operand, SrcOperand::Place(Place::Reg(PhysReg(40))));
}

#[test]
fn given_registers_are_valid_and_have_a_text() {
    use crate::ir3::validate::{Form, validate};
    let target = Target::default();
    let mut before = program(1, |b, inputs| {
        let sum = b.alu(Opcode::AddF, RegClass::FULL, &[inputs[0], inputs[0]]);
        vec![(sum, Some(PhysReg(6))), (inputs[0].value().unwrap(), None)]
    });
    let input = before.iter_instrs().next().unwrap().1;
    let value = before.instrs[input].dsts[0].value().unwrap();
    before.instrs[input].dsts[0].place = Place::Assigned(value, PhysReg(2));
    assert_eq!(validate(&before, &target, Form::Ssa), Ok(()));
    let text = crate::ir3::text::write(&before);
    assert!(text.contains("r1.z"), "{text}");
    let again = crate::ir3::text::read(&text).unwrap();
    assert_eq!(crate::ir3::text::write(&again), text);
    assert_eq!(kept(&before, &again), 2);
}
