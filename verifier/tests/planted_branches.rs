//! Planted bugs of branches, predication and De Morgan's laws: each must be refuted at its stage, and at no other; and
//! random programs have enough of the results of those stages.

use super::common::planted as programs;
use ir3_semantics::environment::env::Env;

use ir3_compiler::compilation;
use ir3_compiler::ir3::{Attrs, Condition, Instr, InstrData, Mods, Opcode, Program, RegFile, SrcOperand};
use ir3_compiler::nir::{self, Alu, AluSrc, Op, Shader};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{BoundaryVerdict, Checker, Verdict};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::Snapshot;
use programs::Programs;

fn planted(stage: Stage, profile: Profile, bug: impl Fn(&mut Program, u64) -> bool) {
    Programs { seed: 0xb4a9c4, count: 160, profiles: &[profile], runs: 1, one_in: 4, options: Options::default() }
        .planted(stage, bug);
}

/// The `n`-th of the instructions that satisfy `wanted`, modulo their number.
fn nth(program: &Program, n: u64, wanted: impl Fn(&InstrData) -> bool) -> Option<Instr> {
    let all: Vec<Instr> = program.iter_instrs().map(|(_, i)| i).filter(|&i| wanted(&program.instrs[i])).collect();
    all.get((n % all.len().max(1) as u64) as usize).copied()
}

fn reads_two(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Braa | Opcode::Brao)
}

/// The inversions of two predicates are exchanged.
#[test]
fn inversions_are_exchanged() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let branch = nth(program, n, |data| reads_two(data) && data.srcs[0].mods != data.srcs[1].mods);
        let Some(branch) = branch else { return false };
        let srcs = &mut program.instrs[branch].srcs;
        (srcs[0].mods, srcs[1].mods) = (srcs[1].mods, srcs[0].mods);
        true
    });
}

/// `braa` in place of `brao`, and vice versa.
#[test]
fn both_where_one_is_enough() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let Some(branch) = nth(program, n, reads_two) else { return false };
        let opcode = &mut program.instrs[branch].opcode;
        *opcode = if *opcode == Opcode::Braa { Opcode::Brao } else { Opcode::Braa };
        true
    });
}

/// A bitwise operation becomes one that writes a predicate, but keeps the flag of half registers: it writes another
/// register.
#[test]
fn a_predicate_with_the_flag_of_half_registers() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let bitop = nth(program, n, |data| {
            matches!(data.opcode, Opcode::AndB | Opcode::OrB | Opcode::XorB)
                && data.dsts[0].class.file == RegFile::Predicate
                && data.srcs[0].class.half
        });
        let Some(bitop) = bitop else { return false };
        program.instrs[bitop].dsts[0].class.half = true;
        true
    });
}

/// The second of two branches on one condition is inverted. Few generated programs have several.
#[test]
fn one_of_several_branches() {
    let text = include_str!("../../corpus/booleans/conjunction-of-two-ifs.nir");
    let shader = nir::text::read(text).expect("a program");
    let mut planted = false;
    let mut plant = |stage: Stage, program: &mut Program| {
        let branches: Vec<Instr> =
            program.iter_instrs().map(|(_, i)| i).filter(|&i| reads_two(&program.instrs[i])).collect();
        if let (Stage::Fold, [_, second]) = (stage, &branches[..]) {
            let data = &mut program.instrs[*second];
            data.opcode = if data.opcode == Opcode::Braa { Opcode::Brao } else { Opcode::Braa };
            data.srcs.iter_mut().for_each(|src| src.mods ^= Mods::NOT);
            planted = true;
        }
    };
    let mut checker = Checker::new(Target::default(), Options::default());
    let report = checker.program_or_panic(&shader, &Env::from_seeds(&env_seeds(7, 4)), Some(&mut plant));
    assert!(planted, "no two branches on two predicates");
    let refuted: Vec<Stage> =
        report.boundaries.iter().filter(|row| row.verdict.is_refuted()).map(|row| row.stage).collect();
    assert_eq!(refuted, [Stage::Fold]);
}

/// `getbit.b` takes the next bit.
#[test]
fn the_next_bit() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let Some(test) = nth(program, n, |data| data.opcode == Opcode::GetbitB) else { return false };
        let SrcOperand::Immediate(bit) = program.instrs[test].srcs[1].operand else { return false };
        program.instrs[test].srcs[1].operand = SrcOperand::Immediate(bit ^ 1);
        true
    });
}

/// The copy of a comparison that writes a predicate has another condition than the one that is read as a number.
#[test]
fn a_copy_with_another_condition() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let all: Vec<InstrData> = program.iter_instrs().map(|(_, instr)| program.instrs[instr].clone()).collect();
        let copy = nth(program, n, |data| {
            let is_number = |other: &InstrData| {
                other.dsts[0].class.file == RegFile::General
                    && other.opcode == data.opcode
                    && other.attrs == data.attrs
                    && (0..2).all(|k| other.srcs[k].operand == data.srcs[k].operand)
            };
            writes_comparison(data) && all.iter().any(|other| other.opcode.is_comparison() && is_number(other))
        });
        let Some(copy) = copy else { return false };
        let attrs = &mut program.instrs[copy].attrs;
        *attrs = match *attrs {
            Attrs::Compare(Condition::Eq) => Attrs::Compare(Condition::Ne),
            Attrs::Compare(_) => Attrs::Compare(Condition::Eq),
            _ => return false,
        };
        true
    });
}

fn writes_comparison(data: &InstrData) -> bool {
    data.opcode.is_comparison() && data.dsts[0].class.file == RegFile::Predicate
}

/// The test of a phi is moved up to its block, and tests the value from the first predecessor.
#[test]
fn a_test_of_the_first_operand() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let phi_of = |program: &Program, data: &InstrData| {
            let value = data.srcs.first()?.value()?;
            let phi = &program.instrs[program.values[value].instr];
            (writes_comparison(data) && phi.opcode == Opcode::Phi).then(|| phi.srcs[0])
        };
        let test = nth(program, n, |data| phi_of(program, data).is_some());
        let Some(test) = test else { return false };
        let Some(first) = phi_of(program, &program.instrs[test]) else { return false };
        program.instrs[test].srcs[0].operand = first.operand;
        true
    });
}

fn predicates(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Predt | Opcode::Predf)
}

/// The arms of a predicated if are exchanged.
#[test]
fn predication_of_the_other_lanes() {
    planted(Stage::Predication, Profile::Predicates, |program, n| {
        let Some(first) = nth(program, n, predicates) else { return false };
        let srcs = program.instrs[first].srcs.clone();
        for data in program.instrs.values_mut().filter(|data| predicates(data) && data.srcs == srcs) {
            data.opcode = if data.opcode == Opcode::Predt { Opcode::Predf } else { Opcode::Predt };
        }
        true
    });
}

/// The first arm ends with the instruction that it began with: the lanes of the second arm do not become active, and
/// those of the first stay active.
#[test]
fn predication_without_an_end() {
    planted(Stage::Predication, Profile::Predicates, |program, n| {
        let mut ends = Vec::new();
        for &block in &program.layout {
            let data = &program.blocks[block];
            let last = data.instrs.last().copied();
            ends.extend(last.filter(|&i| data.successors[1].is_none() && predicates(&program.instrs[i])));
        }
        let Some(&end) = ends.get((n % ends.len().max(1) as u64) as usize) else { return false };
        let data = &mut program.instrs[end];
        data.opcode = if data.opcode == Opcode::Predt { Opcode::Predf } else { Opcode::Predt };
        true
    });
}

/// A subgroup vote whose result is negated: all for any, of the lanes where the predicate fails.
#[test]
fn a_negated_vote() {
    planted(Stage::Fold, Profile::Predicates, |program, n| {
        let Some(branch) = nth(program, n, |data| matches!(data.opcode, Opcode::Bany | Opcode::Ball)) else {
            return false;
        };
        let opcode = &mut program.instrs[branch].opcode;
        *opcode = if *opcode == Opcode::Bany { Opcode::Ball } else { Opcode::Bany };
        program.instrs[branch].srcs[0].mods ^= Mods::NOT;
        true
    });
}

/// De Morgan's law is applied in place though the negated value has another reader: that one reads the negation.
fn another_reader(stage: Stage, shader: &mut Shader) -> bool {
    if stage != Stage::DeMorgan {
        return false;
    }
    let function = &mut shader.entry;
    let all: Vec<_> = function.instrs_in_order().collect();
    for &(_, negation) in &all {
        let Some((inner, not)) = operand(function, negation) else { continue };
        let nir::InstrData::Alu(joined) = function.instrs[inner].clone() else { continue };
        let op = match joined.op {
            Op::Iand => Op::Ior,
            Op::Ior => Op::Iand,
            _ => continue,
        };
        let mut readers = 0;
        for &(_, instr) in &all {
            function.instrs[instr].for_each_src(|def| readers += usize::from(def == joined.def));
        }
        let Some(&(block, _)) = all.iter().find(|(_, instr)| *instr == inner).filter(|_| readers > 1) else { continue };
        let mut srcs = joined.srcs.clone();
        for src in &mut srcs {
            let instr = function.instrs.next_key();
            let index = 1 + function.defs.values().map(|def| def.index).max().unwrap_or(0);
            let data = nir::DefData { num_components: 1, bit_size: 1, divergent: None, instr, index };
            let def = function.defs.push(data);
            function.instrs.push(nir::InstrData::Alu(Alu {
                op: Op::Inot,
                def,
                srcs: std::iter::once(*src).collect(),
                ..joined.clone()
            }));
            let list = &mut function.blocks[block].instrs;
            let at = list.iter().position(|&other| other == inner).expect("it is there");
            list.insert(at, instr);
            *src = AluSrc::swizzled(def, &[0]);
        }
        let def = joined.def;
        function.instrs[inner] = nir::InstrData::Alu(Alu { op, srcs, ..joined });
        function.instrs[negation] = nir::InstrData::Alu(Alu {
            op: Op::Mov,
            srcs: std::iter::once(AluSrc::swizzled(def, &[0])).collect(),
            ..not
        });
        return true;
    }
    false
}

/// The operand of a negation of one bit.
fn operand(function: &nir::Function, instr: nir::Instr) -> Option<(nir::Instr, Alu)> {
    match &function.instrs[instr] {
        nir::InstrData::Alu(alu) if alu.op == Op::Inot && function.defs[alu.def].bit_size == 1 => {
            Some((function.defs[alu.srcs[0].def].instr, alu.clone()))
        }
        _ => None,
    }
}

#[test]
fn de_morgan_with_another_reader() {
    let mut checker = Checker::new(Target::default(), Options::default()).with_nir_plant(another_reader);
    let (mut changed, mut refuted) = (0, 0);
    for number in 0..480 {
        let seed = program_seed(0xde40, number);
        let shader = generator::from_seed(seed, Profile::Predicates, Features::ALL).shader;
        let mut rewritten = compilation::run_nir(&shader, &Target::default(), &Options::default()).into_owned();
        let planted = another_reader(Stage::DeMorgan, &mut rewritten);
        let report = checker.program(&shader, &Env::from_seeds(&env_seeds(seed, 1)), None);
        changed += u32::from(planted);
        for BoundaryVerdict { stage, verdict, .. } in &report.boundaries {
            if let Verdict::Refuted(refutation) = verdict {
                assert!(planted && *stage == Stage::DeMorgan, "seed {seed}: refuted at {stage}");
                assert!(matches!((&refutation.before, &refutation.after), (Snapshot::Nir(_), Snapshot::Nir(_))));
                refuted += 1;
            }
        }
    }
    println!("{changed} programs changed, {refuted} refuted");
    assert!(changed >= 10, "only {changed} programs had something to change");
    assert!(refuted * 8 >= changed, "only {refuted} of {changed} were refuted");
}

/// An instruction to count: its description, a test for it, and the least number of programs that have one.
type Wanted<'a> = (&'a str, &'a dyn Fn(&InstrData) -> bool, u32);

/// Counts the programs that have the results of a stage.
fn census(profile: Profile, wanted: &[Wanted<'_>]) {
    let target = Target::default();
    let count = 200;
    let mut having = vec![0; wanted.len()];
    for number in 0..count {
        let shader = generator::from_seed(program_seed(0xce5, number), profile, Features::of(&target)).shader;
        let options = Options { last: Stage::Predicates, ..Options::default() };
        let program = compilation::compile(&shader, &target, &options, &mut |_, _| {}).expect("it is supported");
        for ((_, has, _), having) in wanted.iter().zip(&mut having) {
            *having += u32::from(program.iter_instrs().any(|(_, instr)| has(&program.instrs[instr])));
        }
    }
    for (&(what, _, least), having) in wanted.iter().zip(having) {
        println!("{profile}: {having} of {count} programs have {what}");
        assert!(having >= least, "only {having} of {count} programs have {what}");
    }
}

#[test]
fn random_programs_have_all_kinds_of_branches() {
    let inverted =
        |data: &InstrData| data.opcode.is_terminator() && data.srcs.iter().any(|src| src.mods.contains(Mods::NOT));
    census(
        Profile::Predicates,
        &[
            ("a branch on two predicates", &reads_two, 120),
            ("braa", &|data| data.opcode == Opcode::Braa, 60),
            ("brao", &|data| data.opcode == Opcode::Brao, 60),
            ("an inverted branch", &inverted, 80),
            ("predication", &predicates, 60),
            ("a branch that votes", &|data| matches!(data.opcode, Opcode::Bany | Opcode::Ball), 20),
        ],
    );
}
