//! Each step on generated programs: the result is valid, and has the additions of the step.

use super::*;
use crate::generator::{self, Features, Profile};
use crate::seeds::env_seeds;
use ir3_compiler::nir::{InstrData, Op, Stage};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::{End, Scratch, nir::Decoded};

fn programs() -> Vec<Shader> {
    let profiles =
        [Profile::Alu, Profile::Loops, Profile::Memory, Profile::Half, Profile::Operations, Profile::Uniform];
    let make = |(seed, profile)| generator::from_seed(seed, profile, Features::ALL).shader;
    (0..24).zip(profiles.into_iter().cycle()).map(make).collect()
}

#[test]
fn variants_are_valid_and_depend_on_the_seed_alone() {
    let programs = programs();
    let donors: Vec<&Shader> = programs.iter().collect();
    let mut changed = 0;
    for (seed, program) in (0..).zip(&programs) {
        let variant = variant(program, &donors, seed);
        assert_eq!(validate(&variant), Ok(()), "{}", write(&variant));
        assert_eq!(variant, super::variant(program, &donors, seed));
        changed += usize::from(variant.entry != program.entry);
    }
    assert!(changed > programs.len() / 2, "{changed} of {} are other programs", programs.len());
}

/// Applies a step to programs until it has applied to some of them.
fn changed(step: impl Fn(&mut Shader, &Shader, &mut Random) -> bool) -> Vec<(Shader, Shader)> {
    let programs = programs();
    let mut pairs = Vec::new();
    for (seed, program) in (0..).zip(&programs) {
        let donor = &programs[(seed as usize * 7 + 1) % programs.len()];
        let mut next = program.clone();
        forget_divergence(&mut next);
        let before = next.clone();
        if step(&mut next, donor, &mut Random::new(seed)) {
            pairs.push((before, renumbered(&next).unwrap_or_else(|| panic!("{}", write(&next)))));
        }
    }
    assert!(pairs.len() > 3, "it applies to {} programs", pairs.len());
    pairs
}

/// Code that an opaque condition does not choose changes nothing.
#[test]
fn opaque_conditions_preserve_what_programs_mean() {
    let pairs = changed(|shader, donor, random| graft::keep(&mut shader.entry, &donor.entry, random));
    let mut compared = 0;
    for (before, after) in pairs {
        let env = Env::from_seeds(&env_seeds(5, 1)).remove(0);
        let [before, after] = [&before, &after].map(|shader| {
            let decoded = Decoded::new(shader).expect("a program that can be run");
            decoded.run(&env, env.fuel(), &mut Scratch::default())
        });
        if before.end == End::Finished && after.end == End::Finished {
            assert_eq!((&before.outputs, &before.memory), (&after.outputs, &after.memory));
            compared += 1;
        }
    }
    assert!(compared > 3, "{compared} programs compared");
}

#[test]
fn a_branch_has_a_phi_of_the_piece_and_of_what_was_there() {
    for (before, after) in changed(|shader, donor, random| graft::branch(&mut shader.entry, &donor.entry, random)) {
        let phis = |shader: &Shader| {
            let function = &shader.entry;
            function
                .instrs_in_order()
                .filter(|(_, instr)| matches!(function.instrs[*instr], InstrData::Phi { .. }))
                .count()
        };
        assert_eq!(phis(&after), phis(&before) + 1);
        assert_eq!(after.entry.blocks_in_order().count(), before.entry.blocks_in_order().count() + 3);
    }
}

#[test]
fn an_appended_program_runs_after_the_first_one() {
    let pairs = changed(|shader, donor, _| append::append(shader, donor));
    for (before, after) in pairs {
        assert_eq!(after.stage, Stage::Compute);
        assert!(after.instruction_count() > before.instruction_count());
        let first = |shader: &Shader| {
            let text = write(shader);
            let line = text.lines().filter(|line| line.contains(" = ")).nth(3).unwrap_or_default();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(first(&after), first(&before));
    }
}

/// A piece takes its operands from the program: grafted into one that has no value of its width, constants.
#[test]
fn pieces_find_their_inputs() {
    for (before, after) in changed(|shader, donor, random| graft::replace(&mut shader.entry, &donor.entry, random)) {
        let moves = |shader: &Shader| {
            let is_move = |data: &InstrData| matches!(data, InstrData::Alu(alu) if alu.op == Op::Mov);
            shader.entry.instrs.values().filter(|data| is_move(data)).count()
        };
        assert!(moves(&after) > moves(&before));
    }
}
