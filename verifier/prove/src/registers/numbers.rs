//! The pairing of the target's instructions with the source's.
//!
//! Within the compiler a pass keeps the entities of the instructions that it keeps. Two programs that were read from
//! texts have entities in the order of each text instead, so an additional instruction shifts all that follow. There,
//! the serial numbers that the texts print decide: the target gets the source's entity for each instruction and each
//! block whose number the source prints too, and new ones, above all of the source's, for the rest.
//!
//! Soundness does not depend on this: two instructions that are wrongly paired have another shape, other operands, or
//! the same meaning.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ir3_compiler::ir3::{Attrs, Block, BlockData, Instr, InstrData, Opcode, Program, RepeatLink};
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns the target with the source's entities, if the numbers in the texts distinguish them.
pub fn aligned(source: &Program, target: &Program) -> Option<Program> {
    let instrs = renamed(
        source.iter_instrs().map(|(_, instr)| (instr, source.serials[instr])),
        target.iter_instrs().map(|(_, instr)| (instr, target.serials[instr])),
        source.instrs.len(),
        target.instrs.keys(),
    );
    let numbers = |program: &Program| {
        let mut numbers: SecondaryMap<Block, u32> = SecondaryMap::new();
        (1..).zip(&program.layout).for_each(|(at, &block)| numbers[block] = at);
        program.block_names.iter().for_each(|&(block, number)| numbers[block] = number);
        numbers
    };
    let numbers = [source, target].map(numbers);
    let blocks = renamed(
        source.layout.iter().map(|&block| (block, numbers[0][block])),
        target.layout.iter().map(|&block| (block, numbers[1][block])),
        source.blocks.len(),
        target.blocks.keys(),
    );
    // A block whose number is its position has no name: the numbers of its instructions decide.
    let instrs = instrs?;
    let blocks = blocks.unwrap_or_else(|| target.blocks.keys().collect());
    Some(rebuilt(target, &instrs, &blocks))
}

/// New entities for those of the target; `None` if they are right already, or have no numbers.
fn renamed<E: EntityRef>(
    source: impl Iterator<Item = (E, u32)>,
    target: impl Iterator<Item = (E, u32)>,
    first_new: usize,
    all: impl Iterator<Item = E>,
) -> Option<Vec<E>> {
    let source: FxHashMap<u32, E> = source.map(|(entity, number)| (number, entity)).collect();
    let mut found: FxHashMap<usize, E> = FxHashMap::default();
    let mut is_other = false;
    let mut taken = FxHashSet::default();
    for (entity, number) in target {
        if number == 0 {
            return None;
        }
        if let Some(&its) = source.get(&number) {
            is_other |= its != entity;
            if !taken.insert(its.index()) {
                return None;
            }
            found.insert(entity.index(), its);
        } else {
            is_other |= entity.index() < first_new;
        }
    }
    if !is_other {
        return None;
    }
    let mut new = (first_new..).map(E::new);
    Some(all.map(|entity| found.get(&entity.index()).copied().unwrap_or_else(|| new.next().expect("no end"))).collect())
}

/// Moves data to the positions of the new entities.
fn placed<E: EntityRef, D: Clone>(all: impl Iterator<Item = (E, D)>, names: &[E], none: D) -> PrimaryMap<E, D> {
    let mut data = vec![none; names.iter().map(|new| new.index() + 1).max().unwrap_or(0)];
    for (old, its) in all {
        data[names[old.index()].index()] = its;
    }
    data.into_iter().collect()
}

fn rebuilt(target: &Program, instrs: &[Instr], blocks: &[Block]) -> Program {
    let instr = |old: Instr| instrs[old.index()];
    let block = |old: Block| blocks[old.index()];
    let mut program = target.clone();
    program.layout.iter_mut().for_each(|at| *at = block(*at));
    program.block_names.iter_mut().for_each(|(at, _)| *at = block(*at));
    program.values.values_mut().for_each(|value| value.instr = instr(value.instr));

    let renamed = target.instrs.iter().map(|(old, its)| {
        let mut its = its.clone();
        if its.is_constrained() {
            its.constrain(|it| {
                it.false_deps.iter_mut().for_each(|dep| *dep = instr(*dep));
                if let RepeatLink::After(previous) = &mut it.link {
                    *previous = instr(*previous);
                }
            });
        }
        if let Attrs::Branch { target: Some(to) } = &mut its.attrs {
            *to = block(*to);
        }
        (old, its)
    });
    program.instrs = placed(renamed, instrs, InstrData::new(Opcode::Nop));
    program.serials = SecondaryMap::new();
    target.instrs.keys().for_each(|old| program.serials[instr(old)] = target.serials[old]);

    let renamed = target.blocks.iter().map(|(old, its)| {
        let mut its = its.clone();
        its.instrs.iter_mut().chain(&mut its.keeps).for_each(|at| *at = instr(*at));
        its.successors.iter_mut().flatten().for_each(|to| *to = block(*to));
        let lists = [&mut its.predecessors, &mut its.physical_successors, &mut its.physical_predecessors];
        lists.into_iter().flatten().for_each(|other| *other = block(*other));
        (old, its)
    });
    program.blocks = placed(renamed, blocks, BlockData::default());
    program
}

#[cfg(test)]
mod tests {
    use super::super::prove;
    use super::*;
    use ir3_compiler::target::Target;

    fn program(text: &str) -> Program {
        ir3_compiler::ir3::text::read(text).unwrap()
    }

    const SOURCE: &str = "block1 {\n\t0001:0000:000: \tmov.u32u32 r0.x, c0.x\n\t0002:0000:000: \tadd.u r1.x, r0.x, c1.x\n\t\
        0003:0000:000: \tend r1.x (0)\n}";

    /// An additional instruction shifts those after it; their numbers pair them.
    #[test]
    fn instructions_go_by_their_numbers() {
        let added = SOURCE
            .replace("\t0002:", "\t0009:0000:000: \tmov.u32u32 r2.x, r0.x\n\t0002:")
            .replace("add.u r1.x, r0.x", "add.u r1.x, r2.x");
        let (source, target) = (program(SOURCE), program(&added));
        let renamed = aligned(&source, &target).unwrap();
        let numbers = |program: &Program| -> Vec<(usize, u32)> {
            program.iter_instrs().map(|(_, instr)| (instr.index(), program.serials[instr])).collect()
        };
        assert_eq!(numbers(&renamed), [(0, 1), (3, 9), (1, 2), (2, 3)]);
        assert!(prove(&source, &target, &Target::default()).is_ok());
        assert!(aligned(&source, &source).is_none());
        // The names do not matter.
        let wrong = added.replace("mov.u32u32 r2.x, r0.x", "mov.u32u32 r2.x, c2.x");
        assert!(prove(&source, &program(&wrong), &Target::default()).is_err());
    }

    #[test]
    fn blocks_go_by_their_numbers() {
        let source = "block1 {\n\t0001:0000:000: \tjump\n\t/* succs: block2 */\n}\n\
            block2 {\n\tpred: block1\n\t0002:0000:000: \tend\n}";
        let target = "block1 {\n\t0001:0000:000: \tjump\n\t/* succs: block7 */\n}\n\
            block7 {\n\tpred: block1\n\t0008:0000:000: \tjump\n\t/* succs: block2 */\n}\n\
            block2 {\n\tpred: block7\n\t0002:0000:000: \tend\n}";
        let (source, target) = (program(source), program(target));
        let renamed = aligned(&source, &target).unwrap();
        let layout: Vec<usize> = renamed.layout.iter().map(|block| block.index()).collect();
        assert_eq!(layout, [0, 2, 1]);
        assert!(prove(&source, &target, &Target::default()).is_ok());
    }
}
