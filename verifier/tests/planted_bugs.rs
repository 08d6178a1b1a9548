//! Bugs planted after a stage must be refuted at that stage, and at no other; each planted bug is found, at its stage,
//! in the programs of a campaign.

use super::common::planted as programs;
use ir3_semantics::environment::env::Env;

use ir3_compiler::ir3::{Dst, Instr, Mods, Opcode, Place, Program, RegFile};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, Engines, Policy, Refutation, Smt, Unknown, Verdict};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::planted_bugs::ALL;
use ir3_programs::seeds::{env_seeds, program_seed};
use programs::Programs;

/// The `n`-th of the instructions that satisfy `wanted`, modulo their number.
fn nth(program: &Program, n: u64, wanted: impl Fn(&Program, Instr) -> bool) -> Option<Instr> {
    let candidates: Vec<Instr> = program.iter_instrs().map(|(_, i)| i).filter(|&i| wanted(program, i)).collect();
    (!candidates.is_empty()).then(|| candidates[(n % candidates.len() as u64) as usize])
}

fn planted(stage: Stage, profile: Profile, bug: impl Fn(&mut Program, u64) -> bool) {
    Programs { seed: 0xb06, count: 60, profiles: &[profile], runs: 1, one_in: 4, options: Options::default() }
        .planted(stage, bug);
}

#[test]
fn swapped_sources_after_allocation() {
    planted(Stage::RegisterAllocation, Profile::Alu, |program, n| {
        let instr = nth(program, n, |p, i| {
            let data = &p.instrs[i];
            matches!(
                data.opcode,
                Opcode::SubU | Opcode::ShlB | Opcode::ShrB | Opcode::AshrB | Opcode::CmpsS | Opcode::CmpsU
            ) && data.srcs.len() == 2
                && data.srcs[0].operand != data.srcs[1].operand
        });
        let Some(instr) = instr else { return false };
        program.instrs[instr].srcs.swap(0, 1);
        true
    });
}

#[test]
fn dropped_copy() {
    planted(Stage::LowerCopies, Profile::Loops, |program, n| {
        let instr = nth(program, n, |p, i| p.instrs[i].opcode == Opcode::Mov);
        let Some(instr) = instr else { return false };
        for block in program.layout.clone() {
            program.blocks[block].instrs.retain(|&i| i != instr);
        }
        true
    });
}

#[test]
fn wrong_phi_operand() {
    planted(Stage::DeadCode, Profile::Branchy, |program, n| {
        let instr = nth(program, n, |p, i| {
            let data = &p.instrs[i];
            data.opcode == Opcode::Phi && data.srcs.len() == 2 && data.srcs[0].operand != data.srcs[1].operand
        });
        let Some(instr) = instr else { return false };
        program.instrs[instr].srcs.swap(0, 1);
        true
    });
}

#[test]
fn clobbered_live_register() {
    planted(Stage::RegisterAllocation, Profile::Pressure, |program, n| {
        // An operation writes the register that the one before it wrote.
        let scalar = |dst: &Dst| dst.class.file == RegFile::General && !dst.class.half && dst.mask.span() == 1;
        let mut pairs = Vec::new();
        for &block in &program.layout {
            for pair in program.blocks[block].instrs.windows(2) {
                let [a, b] = [pair[0], pair[1]].map(|i| &program.instrs[i]);
                if let ([x], [y]) = (&a.dsts[..], &b.dsts[..])
                    && scalar(x)
                    && scalar(y)
                    && !a.opcode.is_meta()
                    && !b.opcode.is_meta()
                    && x.place != y.place
                    && matches!((x.place, y.place), (Place::Reg(_), Place::Reg(_)))
                {
                    pairs.push((pair[0], pair[1]));
                }
            }
        }
        let Some(&(a, b)) = pairs.get((n % pairs.len().max(1) as u64) as usize) else { return false };
        program.instrs[b].dsts[0].place = program.instrs[a].dsts[0].place;
        true
    });
}

#[test]
fn a_crash_is_a_verdict_and_not_the_end() {
    let shader = generator::from_seed(12, Profile::Mixed, Features::ALL).shader;
    let mut checker = Checker::new(Target::default(), Options::default());
    let mut crash = |stage: Stage, _: &mut Program| assert!(stage != Stage::RegisterAllocation, "planted");
    let report = checker.program(&shader, &Env::from_seeds(&[1]), Some(&mut crash));
    let crash_of = report.crash().map(|(stage, crash)| (stage, &*crash.message));
    assert_eq!(crash_of, Some((Stage::RegisterAllocation, "planted")));
    // The verdicts of the stages before it are kept, by the provers too.
    let before = report.boundaries.iter().take_while(|row| row.stage < Stage::RegisterAllocation);
    assert!(before.filter(|row| matches!(row.verdict, Verdict::Tested { .. })).count() >= 8);
    let provers = Engines::provers(Smt::default());
    let proved = checker.verify(&shader, Some(&mut crash), &Policy::new(&provers), &[]).boundaries;
    let Some((last, others)) = proved.split_last() else { panic!("no verdicts") };
    assert_eq!((last.stage, last.engine), (Stage::RegisterAllocation, "compiler"));
    assert!(matches!(last.verdict, Verdict::Unknown(Unknown::Crashed(_))));
    assert!(others.len() >= 4 && others.iter().all(|proved| matches!(proved.verdict, Verdict::Proved { .. })));
    // The checker can continue.
    let report = checker.program(&shader, &Env::from_seeds(&[1]), None);
    assert!(report.boundaries.iter().all(|row| matches!(row.verdict, Verdict::Tested { .. })));
}

#[test]
fn inverted_branch() {
    planted(Stage::CopyPropagation, Profile::Branchy, |program, n| {
        let instr = nth(program, n, |p, i| p.instrs[i].opcode == Opcode::Br);
        let Some(instr) = instr else { return false };
        program.instrs[instr].srcs[0].mods ^= Mods::NOT;
        true
    });
}

/// A program on which a bug has no effect passes. A failure is reported at the stage of the bug, and soon.
#[test]
fn each_is_found_where_it_is() {
    let mut checker = Checker::new(Target::default(), Options::default());
    for plant in &ALL {
        let found = (0..2000u64).find(|&number| {
            let seed = program_seed(1, number);
            let profile = Profile::ALL[(number % Profile::ALL.len() as u64) as usize];
            let shader = generator::from_seed(seed, profile, Features::ALL).shader;
            let mut change = |stage, program: &mut _| plant.apply(stage, program);
            let report = checker.program(&shader, &Env::from_seeds(&env_seeds(seed, 1)), Some(&mut change));
            let refuted = report.refutation().map(|Refutation { stage, .. }| *stage);
            let failed = refuted.or(report.crash().map(|(stage, _)| stage.name()));
            assert!(failed.is_none() || failed == Some(plant.stage.name()), "{}: {failed:?}", plant.name);
            failed.is_some()
        });
        let found = found.unwrap_or_else(|| panic!("{} is not found in 2000 programs", plant.name));
        println!("{}: program {found}", plant.name);
    }
}
