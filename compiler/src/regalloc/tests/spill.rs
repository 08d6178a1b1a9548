//! Random programs with few registers: spilled, assigned, lowered, and compared after each stage.

use super::*;
use crate::ir3::validate::{Form, validate};
use crate::regalloc::pressure::Analysis;
use crate::regalloc::{lower_spills, spill};

/// Counts of the outcomes.
#[derive(Default)]
pub(super) struct SpillCounts {
    pub(super) spilled: usize,
    pub(super) reloads: usize,
    /// … that would not fit even so, which is reported.
    pub(super) refused: usize,
}

pub(super) fn check_spilled(
    before: &Program,
    target: &Target,
    limit: RegisterLimit,
    seed: u64,
    registers: bool,
    features: Features,
    counts: &mut SpillCounts,
) {
    let expected = run_program(before, target, seed);
    let mut program = before.clone();
    predicates(&mut program, target).unwrap();
    let mut spilled = program.clone();
    if spill::is_needed(&spilled, target, limit, features, &mut Carried::default()).unwrap() {
        match spill::run(&mut spilled, target, limit, features, &mut Carried::default()) {
            Ok(()) => {}
            Err(Error::Instruction { .. }) if matches!(limit, RegisterLimit::Registers(_)) => {
                counts.refused += 1;
                return;
            }
            Err(Error::Fragmented { .. }) if !features.contains(Feature::LiveRangeSplitting) => {
                counts.refused += 1;
                return;
            }
            Err(error) => panic!("seed {seed}, {limit}: {error}\n{}", dump(&program, &spilled)),
        }
    }
    let reloads = spilled.iter_instrs().filter(|&(_, i)| spilled.instrs[i].opcode == Opcode::ReloadMacro).count();
    counts.reloads += reloads;
    counts.spilled += usize::from(reloads > 0);
    if let Err(violations) = validate(&spilled, target, Form::Ssa) {
        // The random programs break some rules; these are the ones that the spiller might break.
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
    let pressure = Analysis::coalesced(&mut copy, target, Coalescing::of(features)).unwrap().max_pressure(&copy);
    let files = limit.files(target);
    assert!(pressure.full <= files.full && pressure.half <= files.half, "seed {seed}, {limit}: {pressure:?}");
    if !registers {
        return;
    }
    run_limited(&mut spilled, target, limit, features, &Counter::default())
        .unwrap_or_else(|error| panic!("seed {seed}, {limit}: {error}"));
    let actual = run_program(&spilled, target, seed);
    assert!(actual.refines(&expected), "registers, seed {seed}, {limit}:\n{}", dump(&program, &spilled));
    lower_spills::run(&mut spilled).unwrap();
    let actual = run_program(&spilled, target, seed);
    assert!(actual.refines(&expected), "lowered, seed {seed}, {limit}:\n{}", dump(&program, &spilled));
    assert!(!lower_spills::is_needed(&spilled));
}

/// The quick bound holds, and is not trivial.
#[test]
fn no_program_needs_more_than_the_bound() {
    let (mut bounds, mut needs) = (0, 0);
    for seed in 1..500u64 {
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

/// The same, with registers assigned after spilling.
#[test]
fn random_programs_in_few_registers() {
    random_programs(true);
}

fn random_programs(registers: bool) {
    let mut counts = SpillCounts::default();
    for seed in 1..700u64 {
        let target = &targets()[(seed % 2) as usize];
        let profile = Profile { pressure: 4 + (seed % 50) as usize, size: 20 + (seed % 90) as usize };
        let program = random_program(seed, target, profile);
        let limit = match seed % 5 {
            0 | 1 => RegisterLimit::Minimum(0),
            2 => RegisterLimit::Minimum((seed % 13) as u16),
            3 => RegisterLimit::Registers(12 + (seed % 60) as u16),
            _ => RegisterLimit::Minimum(1),
        };
        check_spilled(&program, target, limit, seed, registers, Features::all(), &mut counts);
    }
    println!("{} programs spilled, {} reloads, {} refused", counts.spilled, counts.reloads, counts.refused);
    assert!(counts.spilled > 460, "{}", counts.spilled);
}

#[test]
fn no_private_memory_no_spilling() {
    let target = Target::by_name("a420").unwrap();
    let mut program = random_program(7, &target, Profile { pressure: 40, size: 60 });
    predicates(&mut program, &target).unwrap();
    let error =
        spill::run(&mut program, &target, RegisterLimit::Registers(20), Features::all(), &mut Carried::default())
            .unwrap_err();
    assert!(error.to_string().starts_with("a420 has no private memory to spill to: needs "), "{error}");
    // The minimum is its need without spilling.
    assert_eq!(
        spill::is_needed(&program, &target, RegisterLimit::Minimum(0), Features::all(), &mut Carried::default()),
        Ok(false)
    );
    run_limited(&mut program, &target, RegisterLimit::Minimum(0), Features::all(), &Counter::default()).unwrap();
}

/// A limit that is too small for one instruction is refused with its name, and the least sufficient one is accepted.
#[test]
fn a_limit_below_the_least_is_refused() {
    let target = Target::default();
    for seed in 1..40 {
        let mut program = random_program(seed, &target, Profile { pressure: 30, size: 60 });
        predicates(&mut program, &target).unwrap();
        let least = (1..96).find(|&count| {
            spill::run(
                &mut program.clone(),
                &target,
                RegisterLimit::Registers(count),
                Features::all(),
                &mut Carried::default(),
            )
            .is_ok()
        });
        let least = least.unwrap();
        let error = spill::run(
            &mut program.clone(),
            &target,
            RegisterLimit::Registers(least - 1),
            Features::all(),
            &mut Carried::default(),
        )
        .unwrap_err();
        let Error::Instruction { instr, opcode, needed, available, file } = error else { panic!("{error}") };
        assert_eq!((available, file), (u32::from(least) - 1, "full"), "seed {seed}");
        assert!(needed >= u32::from(least), "seed {seed}: {needed}, {least}");
        let text = format!("{instr} ({opcode}) needs {needed} of {available} full registers, with all else in memory");
        assert_eq!(error.to_string(), text);
        let mut spilled = program.clone();
        spill::run(&mut spilled, &target, RegisterLimit::Minimum(0), Features::all(), &mut Carried::default()).unwrap();
        let pressure = spill::pressure(&spilled, &target, Coalescing::of(Features::all())).unwrap();
        // While an array is live, a value that is kept may need less than its reloads.
        assert!(pressure.full <= 2 * u32::from(least) + 2, "seed {seed}: {pressure:?}, {least}");
    }
}

/// Inputs with given registers, holes between them, and other inputs that must fill the holes.
#[test]
fn inputs_have_the_registers_that_are_given() {
    use crate::ir3::{PhysReg, RegClass};
    for (number, target) in targets().iter().enumerate() {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let mut values = Vec::new();
        let given = [(RegClass::FULL, 1, Some(5)), (RegClass::HALF, 1, Some(4)), (RegClass::FULL, 1, Some(17))];
        let free = [
            (RegClass::FULL, 4, None),
            (RegClass::HALF, 2, None),
            (RegClass::FULL, 3, None),
            (RegClass::FULL, 1, None),
        ];
        for (class, components, reg) in free.into_iter().chain(given) {
            let value = b.define(Opcode::Input, class, components, &[], Attrs::Input(None));
            values.push((value, reg));
        }
        let srcs: Vec<Src> = values.iter().map(|&(value, _)| b.src(value)).collect();
        b.effect(Opcode::End, &srcs);
        for &(value, reg) in &values {
            if let Some(reg) = reg {
                let instr = program.values[value].instr;
                program.instrs[instr].dsts[0].place = Place::Assigned(value, PhysReg(reg));
            }
        }
        let expected = run_program(&program, target, 3);
        let mut copy = program.clone();
        let pressure = Analysis::new(&mut copy, target).unwrap().max_pressure(&copy);
        assert_eq!(pressure.full, 36);
        let files = RegisterFiles { full: 36, half: pressure.half, ..target.register_files() };
        let mut tight = program.clone();
        run_within(&mut tight, target, files).unwrap();
        for &(value, reg) in &values {
            let instr = program.values[value].instr;
            let Place::Reg(at) = tight.instrs[instr].dsts[0].place else { panic!("no register") };
            assert!(reg.is_none_or(|reg| at == PhysReg(reg)), "{value} is at {at}");
        }
        assert!(run_program(&tight, target, 3).refines(&expected), "target {number}");
        let smaller = RegisterFiles { full: 34, ..files };
        assert!(matches!(run_within(&mut program, target, smaller), Err(Error::NeedsSpilling { .. })));
    }
}

/// A value that is carried around a loop in memory is stored at its definition, to the slot of its phi, if the phi is
/// dead by then; otherwise it is loaded and stored again at the end.
#[test]
fn what_goes_round_a_loop_shares_the_slot_of_its_phi() {
    let target = Target::default();
    let accesses = |read_after_the_loop: bool| {
        let mut program = Program::default();
        let blocks: Vec<_> = (0..4).map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.extend(&blocks);
        let mut b = Builder::new(&mut program, blocks[0]);
        let inputs: Vec<_> =
            (0..3).map(|_| b.define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None))).collect();
        let start = b.src(inputs[0]);
        let pair = [b.src(inputs[1]), b.src(inputs[2])];
        let more: Vec<_> = (0..6).map(|_| b.alu(Opcode::MadF32, RegClass::FULL, &[pair[0], pair[1], start])).collect();
        b.effect(Opcode::Jump, &[]);
        program.add_edge(blocks[0], 0, blocks[1]);
        let mut b = Builder::new(&mut program, blocks[1]);
        let phi = b.define(Opcode::Phi, RegClass::FULL, 1, &[start], Attrs::None);
        let [x, y, z] = [b.src(phi), b.src(inputs[1]), b.src(inputs[2])];
        // Until all these have been read, there is no register for the phi, nor for values computed from it.
        for &value in &more {
            let srcs = [b.src(value), z];
            b.effect(Opcode::Stg, &srcs);
        }
        let next = b.alu(Opcode::AddF, RegClass::FULL, &[x, y]);
        for &value in &more {
            let srcs = [b.src(value), z];
            b.effect(Opcode::Stg, &srcs);
        }
        let next_src = b.src(next);
        let again = b.compare(Opcode::CmpsF, crate::ir3::Condition::Lt, RegClass::PREDICATE, y, z);
        let again = b.src(again);
        b.effect(Opcode::Br, &[again]);
        program.add_edge(blocks[1], 0, blocks[2]);
        program.add_edge(blocks[1], 1, blocks[3]);
        Builder::new(&mut program, blocks[2]).effect(Opcode::Jump, &[]);
        program.add_edge(blocks[2], 0, blocks[1]);
        let phi_instr = program.values[phi].instr;
        program.instrs[phi_instr].srcs.push(next_src);
        let mut b = Builder::new(&mut program, blocks[3]);
        let read = b.src(if read_after_the_loop { phi } else { next });
        b.effect(Opcode::End, &[read]);
        check_spilled(
            &program,
            &target,
            RegisterLimit::Minimum(0),
            5,
            true,
            Features::all(),
            &mut SpillCounts::default(),
        );
        spill::run(&mut program, &target, RegisterLimit::Minimum(0), Features::all(), &mut Carried::default()).unwrap();
        let in_block = |block: usize| {
            let opcodes = program.blocks[blocks[block]].instrs.iter().map(|&instr| program.instrs[instr].opcode);
            opcodes.filter(|opcode| matches!(opcode, Opcode::SpillMacro | Opcode::ReloadMacro)).count()
        };
        [in_block(1), in_block(2)]
    };
    let [shared, apart] = [accesses(false), accesses(true)];
    // Both load the initial value of the loop; the load and the store of the value itself are gone.
    assert_eq!((shared[0], shared[1] + 2), (apart[0], apart[1]));
}
