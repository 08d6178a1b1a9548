//! Random programs with few registers: spilled, assigned, lowered, and compared after each stage.

use super::*;
use crate::ir3::validate::{Form, validate};
use crate::regalloc::pressure::Analysis;
use crate::regalloc::{lower_spills, spill};

/// What happened to a program.
#[derive(Default)]
struct Counts {
    spilled: usize,
    reloads: usize,
    /// … that did not fit though they were spilled: a fault of the spiller, which says so.
    unfit: usize,
}

fn check_spilled(
    before: &Program,
    target: &Target,
    limit: RegisterLimit,
    seed: u64,
    registers: bool,
    counts: &mut Counts,
) {
    let expected = run_program(before, target, seed);
    let mut program = before.clone();
    predicates(&mut program, target).unwrap();
    let mut spilled = program.clone();
    if spill::is_needed(&spilled, target, limit).unwrap() {
        match spill::run(&mut spilled, target, limit) {
            Ok(()) => {}
            Err(Error::Instruction { .. }) if matches!(limit, RegisterLimit::Registers(_)) => return,
            Err(Error::Malformed { .. }) => {
                counts.unfit += 1;
                return;
            }
            Err(error) => panic!("seed {seed}, {limit}: {error}\n{}", dump(&program, &spilled)),
        }
    }
    let reloads = spilled.iter_instrs().filter(|&(_, i)| spilled.instrs[i].opcode == Opcode::ReloadMacro).count();
    counts.reloads += reloads;
    counts.spilled += usize::from(reloads > 0);
    if let Err(violations) = validate(&spilled, target, Form::Ssa) {
        // The random programs are no valid ones in all respects; these are what the spiller might break.
        use crate::ir3::validate::Rule;
        let broken =
            [Rule::Defined, Rule::Dominance, Rule::ValueRecord, Rule::InstrOnce, Rule::PhiSources, Rule::Components];
        if let Some(violation) = violations.iter().find(|violation| broken.contains(&violation.rule)) {
            panic!("seed {seed}, {limit}: {violation}\n{}", dump(&program, &spilled));
        }
    }
    let actual = run_program(&spilled, target, seed);
    assert!(
        actual.refines(&expected),
        "spill, seed {seed}, {limit}:\n{actual:?}\n{expected:?}\n{}",
        dump(&program, &spilled)
    );
    let mut copy = spilled.clone();
    let pressure = Analysis::new(&mut copy, target).unwrap().max_pressure(&copy);
    let files = limit.files(target);
    assert!(pressure.full <= files.full && pressure.half <= files.half, "seed {seed}, {limit}: {pressure:?}");
    if !registers {
        return;
    }
    run_limited(&mut spilled, target, limit).unwrap_or_else(|error| panic!("seed {seed}, {limit}: {error}"));
    let actual = run_program(&spilled, target, seed);
    assert!(actual.refines(&expected), "registers, seed {seed}, {limit}:\n{}", dump(&program, &spilled));
    lower_spills::run(&mut spilled).unwrap();
    let actual = run_program(&spilled, target, seed);
    assert!(actual.refines(&expected), "lowered, seed {seed}, {limit}:\n{}", dump(&program, &spilled));
    assert!(!lower_spills::is_needed(&spilled));
}

/// The quick bound is one, and no useless one.
#[test]
fn no_program_needs_more_than_the_bound() {
    let (mut bounds, mut needs) = (0, 0);
    for seed in 1..800u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 4 + (seed % 50) as usize, size: 20 + (seed % 90) as usize };
        let mut program = random_program(seed, target, profile);
        predicates(&mut program, target).unwrap();
        let (full, half) = spill::quick_bound(&program, target).expect("a structured program");
        let needed = Analysis::new(&mut program, target).unwrap().max_pressure(&program);
        assert!(needed.full <= full && needed.half <= half, "seed {seed}: {needed:?}, {full} and {half}");
        bounds += full;
        needs += needed.full;
    }
    println!("{needs} needed, {bounds} by the bound");
    assert!(bounds < 2 * needs);
}

#[test]
fn random_programs_with_few_registers() {
    random_programs(false);
}

/// The same, with registers assigned to what was spilled.
#[test]
fn random_programs_in_few_registers() {
    random_programs(true);
}

fn random_programs(registers: bool) {
    let mut counts = Counts::default();
    for seed in 1..1200u64 {
        let target = &targets()[(seed % 2) as usize];
        let profile = Profile { pressure: 4 + (seed % 50) as usize, size: 20 + (seed % 90) as usize };
        let program = random_program(seed, target, profile);
        let limit = match seed % 5 {
            0 | 1 => RegisterLimit::Minimum(0),
            2 => RegisterLimit::Minimum((seed % 13) as u16),
            3 => RegisterLimit::Registers(12 + (seed % 60) as u16),
            _ => RegisterLimit::Minimum(1),
        };
        check_spilled(&program, target, limit, seed, registers, &mut counts);
    }
    println!("{} programs spilled, {} reloads, {} did not fit", counts.spilled, counts.reloads, counts.unfit);
    assert!(counts.spilled > 400, "{}", counts.spilled);
    // What selection makes fits always; of these programs, with their arrays and macros, some do not.
    assert!(counts.unfit < 300, "{}", counts.unfit);
}

#[test]
fn no_private_memory_no_spilling() {
    let target = Target::by_name("a420").unwrap();
    let program = random_program(7, &target, Profile { pressure: 40, size: 60 });
    let mut program = program.clone();
    predicates(&mut program, &target).unwrap();
    let error = spill::run(&mut program, &target, RegisterLimit::Minimum(0)).unwrap_err();
    assert!(error.to_string().starts_with("a420 has no private memory to spill to: needs "), "{error}");
}
