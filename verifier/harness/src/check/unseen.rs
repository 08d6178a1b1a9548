//! Rules of the hardware about whole programs that runs and proofs do not check, once registers are assigned: both give
//! a meaning to programs that break them.

use ir3_compiler::ir3::register_set::RegisterSet;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, InputKind, Instr, InstrData, InstrFlags, Opcode, OperandFlags, Program, ShaderStage, SystemValue,
};
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;
use ir3_semantics::interp::ir3::lone_half;

/// The first rule that a program after a stage breaks.
pub(super) fn broken(stage: Stage, program: &Program, target: &Target) -> Option<String> {
    if stage < Stage::RegisterAllocation {
        return None;
    }
    let wrong = || (stage >= Stage::LowerSamgq).then(|| wrong_samgq(program, target))?;
    missing_edge(program)
        .or_else(|| lone_derivative(program))
        .or_else(|| early_result(program, target))
        .or_else(|| other_coordinates(program))
        .or_else(|| late_prefetch(program))
        .or_else(wrong)
}

/// Finds a branch to a block that is not among the successors of its own, where proofs would not follow it. (The
/// validator does not demand this: Mesa's legalization retargets branches, and does not update the lists of
/// successors.)
fn missing_edge(program: &Program) -> Option<String> {
    program.layout.iter().find_map(|&block| {
        let data = &program.blocks[block];
        let targets = data.instrs.iter().filter_map(|&instr| match program.instrs[instr].attrs {
            Attrs::Branch { target } => target,
            _ => None,
        });
        let lost = targets.into_iter().find(|&target| !data.successors().any(|next| next == target))?;
        Some(format!("{block} branches to {lost}, which is not among its successors"))
    })
}

/// Finds a prefetch whose coordinates are not those of the pixel: the command that starts it supports no others. Runs
/// sample at the coordinates in the register.
fn other_coordinates(program: &Program) -> Option<String> {
    let start = || program.blocks[program.entry()].instrs.iter().map(|&instr| &program.instrs[instr]);
    start().filter(|data| data.opcode == Opcode::TexPrefetch).find_map(|prefetch| {
        let reg = prefetch.srcs.first()?.place()?.reg()?;
        let is_there = |data: &&InstrData| data.dsts.first().and_then(|dst| dst.place.reg()) == Some(reg);
        let input = start().filter(|data| data.opcode == Opcode::Input).find(is_there)?;
        let is_pixel = input.attrs == Attrs::Input(Some(InputKind::System(SystemValue::BarycentricPixel)));
        (!is_pixel).then(|| format!("a prefetch reads {reg}, which is not the place of the pixel"))
    })
}

/// Finds a prefetch after an instruction that may use the register of its result: that is written before the program
/// starts.
fn late_prefetch(program: &Program) -> Option<String> {
    let is_late =
        |block: Block, at: usize| block != program.entry() || at >= program.ready_len(&program.blocks[block].instrs);
    program.layout.iter().find_map(|&block| {
        let list = &program.blocks[block].instrs;
        let late =
            (0..list.len()).find(|&at| program.instrs[list[at]].opcode == Opcode::TexPrefetch && is_late(block, at))?;
        Some(format!("{} prefetches a texture after the start of the program", list[late]))
    })
}

/// Finds a `samgq` outside of fragment and compute shaders, where some GPUs return wrong data for it.
fn wrong_samgq(program: &Program, target: &Target) -> Option<String> {
    if !target.quirks.samgq || matches!(program.stage, Some(ShaderStage::Fragment | ShaderStage::Compute)) {
        return None;
    }
    let (_, left) = program.iter_instrs().find(|&(_, instr)| program.instrs[instr].opcode == Opcode::Samgq)?;
    Some(format!("{left} (`samgq`) returns wrong data on {} in shaders of this stage", target.name))
}

/// Finds a derivative of two instructions that has only one of them.
fn lone_derivative(program: &Program) -> Option<String> {
    let instrs = |block: Block| program.blocks[block].instrs.iter().map(|&instr| &program.instrs[instr]);
    let block = program.layout.iter().find(|&&block| lone_half(instrs(block)).is_some())?;
    Some(format!("{block} has one of the two instructions of a derivative"))
}

/// Finds a result that is written before all sources are read, and is on top of one of them. Runs read all sources of a
/// macro first, and take the first one of the two instructions of a derivative for both.
fn early_result(program: &Program, target: &Target) -> Option<String> {
    let is_early = |&(_, instr): &(Block, Instr)| {
        let data = &program.instrs[instr];
        // The second instruction of a derivative reads the sources again.
        let is_first = is_half_of_derivative(data) && !data.flags.contains(InstrFlags::PAIR);
        let overlaps = |dst: &Dst| {
            let written = RegisterSet::of_dst(program, target, dst);
            let mut direct = data.srcs.iter().filter(|src| !src.is_relative());
            direct.any(|src| RegisterSet::of_src(program, target, src).meets(&written))
        };
        let mut early = data.dsts.iter().filter(|dst| is_first || dst.flags.contains(OperandFlags::EARLY_CLOBBER));
        early.any(overlaps)
    };
    let (_, instr) = program.iter_instrs().find(is_early)?;
    Some(format!("{instr} (`{}`): a result that is written early is on top of a source", program.instrs[instr].opcode))
}

/// True for both instructions of a derivative.
fn is_half_of_derivative(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Dsxpp1 | Opcode::Dsypp1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::compilation::Compilation;
    use ir3_compiler::ir3::{Place, Src};
    use ir3_compiler::nir;
    use ir3_compiler::pipeline::Options;
    use ir3_programs::generator;
    use ir3_programs::generator::{Features, Profile};

    /// The final program of a shader.
    fn compiled(text: &str, target: &Target) -> Program {
        let shader = nir::read(text).unwrap();
        Compilation::new(&shader, target, &Options::default()).finish().unwrap().unwrap()
    }

    /// The successors of a block with branches lose the target of one of these.
    #[test]
    fn branches_to_blocks_that_are_no_successors_are_found() {
        let target = Target::by_name("a660").unwrap();
        let mut found = 0;
        for seed in 1..20 {
            let shader = generator::from_seed(seed, Profile::Branchy, Features::of(&target)).shader;
            let options = Options::default();
            let last = Compilation::new(&shader, &target, &options).finish().unwrap().unwrap();
            assert_eq!(missing_edge(&last), None);
            for &block in &last.layout {
                for slot in 0..2 {
                    let mut changed = last.clone();
                    let Some(target) = changed.blocks[block].successors[slot].replace(block) else { continue };
                    let names = |&instr: &Instr| matches!(last.instrs[instr].attrs, Attrs::Branch { target: Some(to) } if to == target);
                    let is_named = last.blocks[block].instrs.iter().any(names);
                    let is_lost = is_named && !changed.blocks[block].successors().any(|next| next == target);
                    assert_eq!(missing_edge(&changed).is_some(), is_lost, "seed {seed}, {block}, {target}");
                    found += u32::from(is_lost);
                }
            }
        }
        assert!(found > 20, "{found}");
    }

    /// A texture that is fetched before the program starts takes the place of the pixel for that of its centroid.
    #[test]
    fn other_coordinates_of_prefetches_are_found() {
        let target = Target::by_name("a660").unwrap();
        let mut last = compiled(include_str!("../../../../corpus/fragment/prefetch.nir"), &target);
        assert!(last.iter_instrs().any(|(_, instr)| last.instrs[instr].opcode == Opcode::TexPrefetch));
        assert_eq!(other_coordinates(&last), None);
        for data in last.instrs.values_mut() {
            if data.attrs == Attrs::Input(Some(InputKind::System(SystemValue::BarycentricPixel))) {
                data.attrs = Attrs::Input(Some(InputKind::System(SystemValue::BarycentricCentroid)));
            }
        }
        assert!(other_coordinates(&last).is_some_and(|found| found.contains("not the place of the pixel")));
    }

    /// A derivative loses its first or its second instruction, or something comes between the two.
    #[test]
    fn halves_of_derivatives_are_found() {
        let target = Target::by_name("a660").unwrap();
        let last = compiled(include_str!("../../../../corpus/fragment/derivatives.nir"), &target);
        assert_eq!(lone_derivative(&last).or_else(|| early_result(&last, &target)), None);
        let mut found = 0;
        for &block in &last.layout {
            let instrs = &last.blocks[block].instrs;
            let is_half = |at: &usize| is_half_of_derivative(&last.instrs[instrs[*at]]);
            for at in (0..instrs.len()).filter(is_half) {
                let mut early = last.clone();
                let data = &mut early.instrs[instrs[at]];
                let is_first = !data.flags.contains(InstrFlags::PAIR);
                data.dsts[0].place = *data.srcs[0].place().unwrap();
                assert_eq!(early_result(&early, &target).is_some(), is_first, "{at} in place");
                let mut changed = last.clone();
                changed.blocks[block].instrs.remove(at);
                assert!(lone_derivative(&changed).is_some(), "without {at}");
                changed = last.clone();
                changed.blocks[block].instrs.swap(0, at);
                assert_eq!(lone_derivative(&changed).is_some(), at > 0, "{at} moved");
                found += 1;
            }
        }
        assert!(found >= 4, "{found}");
    }

    /// Each result that is written early, in turn, takes the place of a source.
    #[test]
    fn early_results_over_sources_are_found() {
        let target = Target::by_name("a660").unwrap();
        let mut found = 0;
        for seed in 0..40 {
            let shader = generator::from_seed(seed, Profile::Subgroups, Features::of(&target)).shader;
            let options = Options { last: Stage::RegisterAllocation, ..Options::default() };
            let program = Compilation::new(&shader, &target, &options).finish().unwrap().unwrap();
            assert_eq!(broken(Stage::RegisterAllocation, &program, &target), None, "seed {seed}");
            for (_, instr) in program.iter_instrs() {
                let data = &program.instrs[instr];
                for (k, dst) in data.dsts.iter().enumerate() {
                    let same = |place: &&Place| place.reg().is_some();
                    let mut places = data.srcs.iter().filter(|src| src.class == dst.class).filter_map(Src::place);
                    let Some(&place) = places.find(same) else { continue };
                    let mut changed = program.clone();
                    changed.instrs[instr].dsts[k].place = place;
                    let is_early = dst.flags.contains(OperandFlags::EARLY_CLOBBER);
                    assert_eq!(early_result(&changed, &target).is_some(), is_early, "seed {seed}, {instr}");
                    found += u32::from(is_early);
                }
            }
        }
        assert!(found > 10, "{found}");
    }

    /// A move, which may be to the register of the result, goes before a prefetch.
    #[test]
    fn prefetches_behind_the_start_are_found() {
        let target = Target::by_name("a660").unwrap();
        let mut last = compiled(include_str!("../../../../corpus/fragment/prefetch.nir"), &target);
        assert_eq!(late_prefetch(&last), None);
        let entry = last.entry();
        let start = last.ready_len(&last.blocks[entry].instrs);
        last.blocks[entry].instrs.swap(start - 1, start);
        assert!(late_prefetch(&last).is_some_and(|found| found.contains("after the start of the program")));
    }

    /// A vertex shader whose `samgq` stays, in any block.
    #[test]
    fn samgq_that_returns_wrong_data_is_found() {
        let features = Features::of(&Target::by_name("a660").unwrap());
        let (mut found, mut right) = (0, 0);
        for seed in 0..1000 {
            let shader = generator::from_seed(seed, Profile::Operations, features).shader;
            let mut before = |gpu: &str| {
                let target = Target::by_name(gpu).unwrap();
                let options = Options { last: Stage::LowerCopies, ..Options::default() };
                // Features that a GPU does not have are refused.
                let Ok(Some(program)) = Compilation::new(&shader, &target, &options).finish() else { return };
                let mut instrs = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode);
                let has_it = instrs.any(|opcode| opcode == Opcode::Samgq);
                let broken = wrong_samgq(&program, &target);
                let is_wrong = has_it && target.quirks.samgq && program.stage == Some(ShaderStage::Vertex);
                assert_eq!(broken.is_some(), is_wrong, "seed {seed}, {gpu}: {broken:?}");
                found += u32::from(is_wrong);
                right += u32::from(has_it && !is_wrong);
            };
            before("a660");
            before("a540");
        }
        assert!(found > 3 && right > 3, "{found} {right}");
    }
}
