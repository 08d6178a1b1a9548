//! Spilling, end to end: random programs with few registers, and bugs planted in the results of spilling, each of which
//! is refuted at its own boundary.

use super::common::planted as programs;

use ir3_compiler::ir3::{self, Attrs, Instr, InstrData, Opcode, Program, SrcOperand};
use ir3_compiler::pipeline::{ErrorKind, Options, RegisterLimit, Stage};
use ir3_compiler::regalloc::lower_spills;
use ir3_compiler::target::Target;
use ir3_harness::campaigns::register_limits::program_registers;
use ir3_harness::check::{Checker, Verdict, compare_snapshots};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::input::load;
use ir3_programs::mesa::input::collect_paths;
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use programs::Programs;

fn options(registers: RegisterLimit) -> Options {
    Options { registers, ..Options::default() }
}

/// The instructions with an opcode.
fn all(program: &Program, opcode: Opcode) -> Vec<Instr> {
    program.iter_instrs().map(|(_, instr)| instr).filter(|&instr| program.instrs[instr].opcode == opcode).collect()
}

/// The byte address of a spill or reload.
fn address(data: &mut InstrData) -> Option<i64> {
    match (data.opcode, &data.attrs) {
        (Opcode::SpillMacro, Attrs::Memory(memory)) => Some(i64::from(memory.offset)),
        (Opcode::ReloadMacro, _) => match data.srcs[1].operand {
            SrcOperand::Immediate(bits) => Some(i64::from(bits)),
            _ => None,
        },
        _ => None,
    }
}

fn set_address(data: &mut InstrData, to: i64) {
    match (data.opcode, &mut data.attrs) {
        (Opcode::SpillMacro, Attrs::Memory(memory)) => memory.offset = to as i32,
        _ => data.srcs[1].operand = SrcOperand::Immediate(to as u32),
    }
}

#[test]
fn programs_with_few_registers() {
    let (mut spilled, mut programs, mut stores, mut loads) = (0, 0, 0, 0);
    for number in 0..240u64 {
        let seed = program_seed(0x5111, number);
        let target = Target::by_name(["a660", "a540", "a750"][number as usize % 3]).unwrap();
        let profile = Profile::ALL[number as usize / 3 % Profile::ALL.len()];
        let generated = generator::from_seed(seed, profile, Features::of(&target));
        let registers = if number % 2 == 0 { RegisterLimit::Minimum(0) } else { program_registers(seed) };
        let report = Checker::new(target, options(registers)).program(
            &generated.shader,
            &Env::from_seeds(&env_seeds(seed, 1)),
            None,
        );
        assert!(report.refutation().is_none(), "seed {seed}, {registers}: {:?}", report.boundaries);
        // No shader of the generator has scratch memory itself.
        if let Some(error) = &report.refusal {
            panic!("seed {seed}, {registers}: {error}");
        }
        programs += 1;
        spilled += u64::from(report.spills.loads > 0);
        stores += report.spills.stores;
        loads += report.spills.loads;
    }
    println!("{spilled} of {programs} programs spilled: {stores} stp, {loads} ldp");
    assert!(spilled * 2 > programs, "{spilled} of {programs}");
}

/// The whole corpus with the smallest register limit, and with a few registers more.
#[test]
fn the_corpus_with_few_registers() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut spilled = 0;
    for folder in ["algorithms", "control-flow", "pressure", "vectors", "half", "memory"] {
        for path in collect_paths(&[root.join(folder)]).unwrap() {
            for (gpu, registers) in [("a660", "min"), ("a540", "min"), ("a750", "min+3")] {
                let target = Target::by_name(gpu).unwrap();
                for named in load(&path, Some(target)).unwrap() {
                    let Snapshot::Nir(shader) = &named.program else { continue };
                    let mut checker = Checker::new(target, options(registers.parse().unwrap()));
                    let report = checker.program(shader, &Env::from_seeds(&env_seeds(3, 2)), None);
                    let place = format!("{} on {gpu} with {registers}", named.name);
                    assert!(report.refutation().is_none(), "{place}: {:?}", report.boundaries);
                    if let Some(error) = report.refusal {
                        assert_eq!(error.kind, ErrorKind::Unsupported, "{place}: {error}");
                        continue;
                    }
                    assert!(folder != "pressure" || report.spills.loads > 10, "{place}: {:?}", report.spills);
                    spilled += u32::from(report.spills.loads > 0);
                }
            }
        }
    }
    println!("{spilled} compilations spilled");
    assert!(spilled > 60, "{spilled}");
}

#[test]
fn what_has_no_private_memory_says_so() {
    let mut refused = 0;
    for number in 0..20 {
        let seed = program_seed(0x5112, number);
        let target = Target::by_name("a330").unwrap();
        let generated = generator::from_seed(seed, Profile::Pressure, Features::of(&target));
        let mut checker = Checker::new(target, options(RegisterLimit::Registers(12)));
        let report = checker.program(&generated.shader, &Env::from_seeds(&env_seeds(seed, 1)), None);
        assert!(report.refutation().is_none() && report.crash().is_none());
        if let Some(error) = report.refusal {
            assert_eq!((error.stage, error.kind), (Stage::Spill, ErrorKind::NeedsSpilling));
            assert!(error.reason.to_string().starts_with("a330 has no private memory to spill to: needs "), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 5, "{refused}");
}

/// Plants `bug` after `stage` in programs with the smallest register limit.
fn planted(stage: Stage, bug: impl Fn(&mut Program, usize) -> bool) {
    let profiles = [Profile::Pressure, Profile::Loops, Profile::Vectors, Profile::Half];
    Programs {
        seed: 0x5113,
        count: 40,
        profiles: &profiles,
        runs: 1,
        one_in: 4,
        options: options(RegisterLimit::Minimum(0)),
    }
    .planted(stage, |program, seed| bug(program, seed as usize >> 8));
}

#[test]
fn a_reload_from_the_wrong_slot() {
    planted(Stage::Spill, |program, n| {
        let reloads = all(program, Opcode::ReloadMacro);
        let addresses: Vec<Option<i64>> = reloads.iter().map(|&instr| address(&mut program.instrs[instr])).collect();
        let Some(at) = (0..reloads.len())
            .cycle()
            .skip(n % reloads.len().max(1))
            .take(reloads.len())
            .find(|&i| addresses[i] != addresses[0])
        else {
            return false;
        };
        set_address(&mut program.instrs[reloads[at]], addresses[0].unwrap());
        true
    });
}

#[test]
fn slots_that_overlap() {
    planted(Stage::Spill, |program, n| {
        // All accesses to one slot are moved to another.
        let stores = all(program, Opcode::SpillMacro);
        let mut slots: Vec<i64> = stores.iter().filter_map(|&i| address(&mut program.instrs[i])).collect();
        slots.sort_unstable();
        slots.dedup();
        if slots.len() < 2 {
            return false;
        }
        let (from, to) = (slots[n % slots.len()], slots[(n + 1) % slots.len()]);
        for instr in stores.into_iter().chain(all(program, Opcode::ReloadMacro)) {
            let data = &mut program.instrs[instr];
            if address(data) == Some(from) {
                set_address(data, to);
            }
        }
        true
    });
}

#[test]
fn a_spill_that_is_missing() {
    planted(Stage::Spill, |program, n| {
        let stores = all(program, Opcode::SpillMacro);
        let Some(&store) = stores.get(n % stores.len().max(1)) else { return false };
        for data in program.blocks.values_mut() {
            data.instrs.retain(|&instr| instr != store);
        }
        true
    });
}

#[test]
fn slots_after_the_end_of_scratch_memory() {
    planted(Stage::Spill, |program, _| {
        program.scratch_size = program.scratch_size.saturating_sub(4);
        !all(program, Opcode::SpillMacro).is_empty()
    });
}

#[test]
fn an_offset_that_is_lowered_wrongly() {
    planted(Stage::LowerSpills, |program, n| {
        let loads = all(program, Opcode::Ldp);
        let Some(&load) = loads.get(n % loads.len().max(1)) else { return false };
        let SrcOperand::Immediate(offset) = &mut program.instrs[load].srcs[1].operand else { return false };
        *offset ^= 4;
        true
    });
}

/// Six registers are spilled and reloaded, far from the base: two chunks, and the base is set and reset.
fn vectors(address: u32) -> Program {
    let mut text = format!("// {{stage=vertex}}\n// {{scratch={}}}\n", address + 24);
    for i in 0..6 {
        text += &format!("// {{output={i}.x}}\n");
    }
    text += "block1 {\n";
    let mut serial = 0;
    let mut line = |instr: &str| {
        serial += 1;
        text += &format!("\t{serial:04}:{serial:04}:000: \t{instr}\n");
    };
    line("mov.u32u32 r0.x, imm[0.000000,0,0x0]");
    for i in 0..6 {
        line(&format!(
            "mov.u32u32 r{}.{}, imm[0.000000,{},{:#x}]",
            1 + i / 4,
            ["x", "y", "z", "w"][i % 4],
            40 + i,
            40 + i
        ));
    }
    line(&format!(
        "spill.macro r0.x, r1.x (wrmask=0x3f), imm[0.000000,6,0x6] dst_offset={address} // {{type=u32, components=6, space=scratch}}"
    ));
    line(&format!(
        "reload.macro (early_clobber)r3.x (wrmask=0x3f), r0.x, imm[0.000000,{address},{address:#x}], imm[0.000000,6,0x6] // {{type=u32, components=6, space=scratch}}"
    ));
    // Once more: the base has its value again.
    line(&format!(
        "reload.macro (early_clobber)r5.x (wrmask=0x3f), (kill)r0.x, imm[0.000000,{address},{address:#x}], imm[0.000000,6,0x6] // {{type=u32, components=6, space=scratch}}"
    ));
    line("end r3.x (0), r3.y (1), r3.z (2), r3.w (3), r5.x (4), r6.y (5)");
    text += "\t/* keeps:\n\t */\n}\n";
    ir3::text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn vectors_go_in_chunks() {
    let target = Target::default();
    let snapshot = |program: &Program| Snapshot::Ir3(Box::new(program.clone()));
    let envs = [Env::from_seed(1)];
    for at in [0, 4092, 4096, 5000, 100_000] {
        let before = vectors(at);
        let mut after = before.clone();
        lower_spills::run(&mut after).unwrap();
        let (stp, ldp) = (all(&after, Opcode::Stp), all(&after, Opcode::Ldp));
        assert_eq!((stp.len(), ldp.len()), (2, 4));
        let moves = all(&after, Opcode::Mov).len() - all(&before, Opcode::Mov).len();
        assert_eq!(
            moves,
            match at {
                0 => 0,
                4092 => 5,
                _ => 5,
            },
            "{at}"
        );
        let compare = |after: &Program| compare_snapshots(&snapshot(&before), &snapshot(after), &target, &envs).0;
        assert!(matches!(compare(&after), Verdict::Tested { .. }), "{at}: {:?}", compare(&after));
        // The second chunk into the registers of the first; from the address next to its slot; of the first one's
        // registers.
        let mut wrong = after.clone();
        wrong.instrs[ldp[1]].dsts[0].place = wrong.instrs[ldp[0]].dsts[0].place;
        assert!(matches!(compare(&wrong), Verdict::Refuted(_)));
        let mut wrong = after.clone();
        let SrcOperand::Immediate(offset) = &mut wrong.instrs[ldp[3]].srcs[1].operand else { panic!("no offset") };
        *offset ^= 4;
        assert!(matches!(compare(&wrong), Verdict::Refuted(_)));
        let mut wrong = after.clone();
        wrong.instrs[stp[1]].srcs[1] = wrong.instrs[stp[0]].srcs[1];
        wrong.instrs[stp[1]].srcs[1].mask = ir3::WriteMask::first(2);
        assert!(matches!(compare(&wrong), Verdict::Refuted(_)));
    }
}
