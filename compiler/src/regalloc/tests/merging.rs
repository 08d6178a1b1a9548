//! Merging of values, and values that are live simultaneously.

use super::random::{Profile, random_program};
use super::targets;
use crate::ir3::{Attrs, BlockData, Builder, Opcode, Program, RegClass, Src, Value};
use crate::regalloc::pressure::{Analysis, Pressure};
use crate::regalloc::{predicates, run_within};
use crate::target::{RegisterFiles, Target};

/// `vec4 bar = texture(…) + baz`: the texture's result and bar share registers component by component, so no more are
/// needed.
#[test]
fn a_texture_and_a_sum_share_registers() {
    let target = Target::default();
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut b = Builder::new(&mut program, block);
    let baz = b.define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None));
    let coordinates = b.define(Opcode::Input, RegClass::FULL, 2, &[], Attrs::Input(None));
    let src = b.src(coordinates);
    let foo = b.define(Opcode::Sam, RegClass::FULL, 4, &[src], Attrs::None);
    let foo_src = b.src(foo);
    let baz_src = b.src(baz);
    let mut bar_parts: Vec<Src> = Vec::new();
    let mut pairs = Vec::new();
    for offset in 0..4 {
        let part = b.define(Opcode::Split, RegClass::FULL, 1, &[foo_src], Attrs::Split { offset });
        let srcs = [b.src(part), baz_src];
        let sum = b.alu(Opcode::AddF, RegClass::FULL, &srcs);
        pairs.push((part, sum));
        bar_parts.push(b.src(sum));
    }
    let bar = b.define(Opcode::Collect, RegClass::FULL, 4, &bar_parts, Attrs::None);
    let bar_src = b.src(bar);
    b.effect(Opcode::Stib, &[bar_src]);
    b.effect(Opcode::End, &[]);

    let analysis = Analysis::new(&mut program, &target).unwrap();
    let sets = &analysis.sets;
    for (k, &(part, sum)) in pairs.iter().enumerate() {
        assert_eq!(sets.interval(part).start, sets.interval(foo).start + 2 * k as u32);
        assert_eq!(sets.interval(sum).start, sets.interval(bar).start + 2 * k as u32);
    }
    assert_ne!(sets.set_of(baz), sets.set_of(foo));
    // The texture's four and baz: each sum takes the place of a part.
    let expected = Pressure { full: 10, ..Pressure::default() };
    assert_eq!(analysis.max_pressure(&program), expected);

    // Fits exactly these registers, without a copy.
    let before = program.clone();
    let files = RegisterFiles { full: expected.full, ..target.register_files() };
    run_within(&mut program, &target, files).unwrap();
    let opcodes: Vec<Opcode> = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode).collect();
    assert_eq!(opcodes.iter().filter(|opcode| **opcode == Opcode::AddF).count(), 4);
    assert!(!opcodes.contains(&Opcode::ParallelCopy), "{opcodes:?}");
    let reg = |value: Value| program.instrs[before.values[value].instr].dsts[0].place.reg().unwrap();
    for (k, &(_, sum)) in pairs.iter().enumerate() {
        assert_eq!(reg(sum), reg(foo).offset(k as u16));
    }
}

/// The invariant of merge sets, at every point of random programs.
#[test]
fn live_members_are_nested() {
    let mut pieces = 0;
    for seed in 1..400u64 {
        let target = &targets()[(seed % 3) as usize];
        let profile = Profile { pressure: 4 + (seed % 40) as usize, ..Profile::default() };
        let mut program = random_program(seed, target, profile);
        predicates(&mut program, target).unwrap();
        let analysis = Analysis::new(&mut program, target).unwrap();
        let (sets, liveness) = (&analysis.sets, &analysis.liveness);
        analysis.walk(&program, |point, forest, _| {
            let live = forest.live();
            let mut sum = 0;
            for (i, &a) in live.iter().enumerate() {
                if forest.is_root(a) {
                    sum += u32::from(liveness.units(a));
                }
                for &b in &live[..i] {
                    let (ia, ib) = (sets.interval(a), sets.interval(b));
                    if !ia.overlaps(ib) {
                        continue;
                    }
                    let (whole, piece) = if ia.contains(ib) { (a, b) } else { (b, a) };
                    assert!(sets.interval(whole).contains(sets.interval(piece)), "seed {seed}, {point:?}: {a} {b}");
                    assert!(sets.is_copy_of_piece(&program, whole, piece), "seed {seed}, {point:?}: {a} {b}");
                    assert!(!(forest.is_root(a) && forest.is_root(b)));
                    pieces += 1;
                }
            }
            assert_eq!(sum, forest.sums.iter().sum::<u32>());
        });
    }
    assert!(pieces > 1000, "{pieces}");
}
