//! Random programs, before and after, run by a small interpreter in which every operation but copies is an
//! uninterpreted function of its operands: two runs agree only if each operand was the right one.

mod given;
mod machine;
mod merging;
mod random;
mod rules;
mod spill;

use super::parallel_copy::unit_of;
use super::*;
use crate::ir3::{Attrs, BlockData, Builder, Opcode, Place, RegClass, RegFile, Src, SrcOperand};
use crate::pipeline::{Options, Stage, run_stage};
use machine::run_program;
use random::{Profile, random_program};

/// Assigns registers to a program in SSA form, within the target's files.
fn run(program: &mut Program, target: &Target) -> Result<(), Error> {
    predicates(program, target)?;
    run_within(program, target, target.register_files())
}

fn targets() -> [Target; 3] {
    ["a660", "a540", "a330"].map(|name| Target::by_name(name).unwrap())
}

/// Runs the stages on a program and compares after each one.
fn check(before: &Program, target: &Target, opt: bool, seed: u64) -> Result<(), Error> {
    check_within(before, target, target.register_files(), opt, seed)
}

fn check_within(before: &Program, target: &Target, limits: RegisterFiles, opt: bool, seed: u64) -> Result<(), Error> {
    let expected = run_program(before, target, seed);
    let mut program = before.clone();
    if opt {
        for stage in [Stage::CopyPropagation, Stage::DeadCode] {
            run_stage(stage, &mut program, target, &Options::default()).unwrap();
            let actual = run_program(&program, target, seed);
            assert!(actual.refines(&expected), "{stage}, seed {seed}: {actual:?}\n{expected:?}");
        }
    }
    predicates(&mut program, target)?;
    let actual = run_program(&program, target, seed);
    assert!(actual.refines(&expected), "predicates, seed {seed}: {actual:?}\n{expected:?}");
    let ssa = program.clone();
    run_within(&mut program, target, limits)?;
    assert_within(&program, target, limits, &ssa);
    let actual = run_program(&program, target, seed);
    assert!(actual.refines(&expected), "registers, seed {seed}:\n{actual:?}\n{expected:?}\n{}", dump(before, &program));
    lower_copies::run(&mut program, target, &Counter::default())?;
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        assert!(!data.opcode.is_meta() || data.opcode == Opcode::Input, "{}", data.opcode);
        let places =
            data.dsts.iter().map(|dst| dst.place).chain(data.srcs.iter().filter_map(|src| src.place().copied()));
        assert!(places.into_iter().all(|place| matches!(place, Place::Reg(_) | Place::Relative { .. })));
    }
    let actual = run_program(&program, target, seed);
    assert!(actual.refines(&expected), "copies, seed {seed}:\n{actual:?}\n{expected:?}\n{}", dump(before, &program));
    Ok(())
}

/// Checks that no register exceeds the size that was computed before.
fn assert_within(program: &Program, target: &Target, limits: RegisterFiles, before: &Program) {
    let mut before = before.clone();
    let analysis = Analysis::new(&mut before, target).unwrap();
    let pressure = analysis.max_pressure(&before);
    let mut most = Pressure::default();
    analysis.walk(&before, |_, _, now| {
        most = Pressure {
            full: most.full.max(now.full),
            half: most.half.max(now.half),
            shared: most.shared.max(now.shared),
            shared_half: most.shared_half.max(now.shared_half),
        };
    });
    assert_eq!(pressure, most);
    let size = target_size(&before, &pressure, target, limits);
    let check = |place: &Place, class: RegClass, components: u32| {
        let Place::Reg(reg) = *place else { return };
        let end = u32::from(unit_of(class, reg)) + components * u32::from(class.component_units());
        let reach = match (class.file, class.half) {
            (RegFile::General, false) => size.full,
            (RegFile::General, true) => size.half,
            _ => return,
        };
        assert!(end <= reach, "{reg} is above {size:?}");
    };
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        data.dsts.iter().for_each(|dst| check(&dst.place, dst.class, dst.mask.span()));
        for src in &data.srcs {
            if let Some(place) = src.place() {
                check(place, src.class, src.mask.span());
            }
        }
    }
}

fn dump(before: &Program, after: &Program) -> String {
    let text = |program: &Program| {
        let mut lines = String::new();
        for &block in &program.layout {
            lines += &format!("{block}: -> {:?}\n", program.blocks[block].successors().collect::<Vec<_>>());
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                let dsts: Vec<_> = data.dsts.iter().map(|d| (d.place, d.class.half, d.flags)).collect();
                let srcs: Vec<_> = data.srcs.iter().map(|s| (s.operand, s.class.half, s.flags)).collect();
                lines += &format!("  {instr} {} {dsts:?} <- {srcs:?} {:?}\n", data.opcode, data.attrs);
            }
        }
        lines
    };
    format!("{}\n----\n{}", text(before), text(after))
}

#[test]
fn random_programs() {
    let mut refused = 0;
    for seed in 1..600u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 4 + (seed % 40) as usize, ..Profile::default() };
        let program = random_program(seed, target, profile);
        if check(&program, target, seed % 2 == 0, seed).is_err() {
            refused += 1;
        }
    }
    assert_eq!(refused, 0);
}

/// The number of registers that a program needs.
fn needed(program: &Program, target: &Target) -> RegisterFiles {
    let mut program = program.clone();
    predicates(&mut program, target).unwrap();
    let pressure = Analysis::new(&mut program, target).unwrap().max_pressure(&program);
    RegisterFiles { full: pressure.full.next_multiple_of(2), half: pressure.half, ..target.register_files() }
}

/// Programs in files that are just large enough: none is refused, and all are correct after values had to move.
#[test]
fn random_programs_that_just_fit() {
    let mut copies = 0;
    for seed in 1..800u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 4 + (seed % 60) as usize, size: 20 + (seed % 80) as usize };
        let program = random_program(seed, target, profile);
        let limits = needed(&program, target);
        if limits.full > 384 || limits.half > 192 {
            continue;
        }
        if let Err(error) = check_within(&program, target, limits, false, seed) {
            panic!("seed {seed}: {error} within {limits:?}");
        }
        let mut roomy = program.clone();
        let mut tight = program.clone();
        run(&mut roomy, target).unwrap();
        predicates(&mut tight, target).unwrap();
        run_within(&mut tight, target, limits).unwrap();
        copies += tight.instruction_count() - roomy.instruction_count().min(tight.instruction_count());
    }
    assert!(copies > 100, "{copies}: nothing had to move");
}

/// Files of any size: a program is refused if, and only if, its pressure does not fit.
#[test]
fn random_programs_in_random_files() {
    let (mut fitted, mut refused) = (0, 0);
    for seed in 1..800u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 4 + (seed % 50) as usize, size: 20 + (seed % 70) as usize };
        let program = random_program(seed, target, profile);
        let needed = needed(&program, target);
        // Mostly around the need, tiny and full ones too.
        let mix = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let full = match mix >> 60 {
            0 => 2 + (mix >> 32) as u32 % 40,
            1 => 384,
            _ => (needed.full + (mix >> 32) as u32 % 33).saturating_sub(8),
        };
        let half = match mix >> 56 & 15 {
            0 => (mix >> 40) as u32 % 20,
            1..8 => 192,
            _ => (needed.half + (mix >> 40) as u32 % 9).saturating_sub(2),
        };
        let limits = RegisterFiles { full: full.min(384) & !1, half: half.min(192), ..target.register_files() };
        let fits = needed.full <= limits.full && needed.half <= limits.half;
        match check_within(&program, target, limits, false, seed) {
            Ok(()) => {
                assert!(fits, "seed {seed}: {needed:?} within {limits:?}");
                fitted += 1;
            }
            Err(Error::NeedsSpilling { .. }) if !fits => refused += 1,
            Err(error) => panic!("seed {seed}: {error}: {needed:?} within {limits:?}"),
        }
    }
    assert!(fitted > 370 && refused > 50, "{fitted} {refused}");
}

/// Large programs near the limits of the machine: refused only if they do not fit.
#[test]
fn random_programs_under_pressure() {
    let mut fitted = 0;
    for seed in 1..100u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 60 + (seed % 90) as usize, size: 300 };
        let program = random_program(seed, target, profile);
        let needed = needed(&program, target);
        let fits = needed.full <= 384 && needed.half <= 192;
        match check(&program, target, false, seed) {
            Ok(()) => fitted += 1,
            Err(error) => assert!(!fits, "seed {seed}: {error}, but {needed:?}"),
        }
    }
    assert!(fitted > 30, "{fitted}");
}

#[test]
fn too_many_values_are_refused() {
    let target = Target::default();
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut b = Builder::new(&mut program, block);
    let values: Vec<_> =
        (0..193).map(|_| b.define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None))).collect();
    let srcs: Vec<Src> = values.iter().map(|&value| b.src(value)).collect();
    let end = b.effect(Opcode::End, &srcs);
    let mut fits = program.clone();
    fits.instrs[end].srcs.pop();
    run_stage(Stage::DeadCode, &mut fits, &target, &Options::default()).unwrap();
    run(&mut fits, &target).unwrap();
    let error = run(&mut program, &target).unwrap_err();
    assert_eq!(error.to_string(), "needs spilling: 193 of 192 full registers");
}

/// Scattered scalars leave no gap for a vector until they are moved together.
#[test]
fn a_vector_gets_its_place_by_moving_what_is_in_the_way() {
    let target = Target::default();
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut b = Builder::new(&mut program, block);
    let values: Vec<_> =
        (0..192).map(|_| b.define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None))).collect();
    // Every other one dies.
    for &value in values.iter().step_by(2) {
        let src = b.src(value);
        b.effect(Opcode::Stg, &[src]);
    }
    let address = b.src(values[1]);
    let wide = b.define(Opcode::Ldg, RegClass::FULL, 90, &[address], Attrs::None);
    let srcs: Vec<Src> = values.iter().skip(1).step_by(2).chain([&wide]).map(|&value| b.src(value)).collect();
    b.effect(Opcode::End, &srcs);
    check(&program, &target, false, 7).unwrap();
}
