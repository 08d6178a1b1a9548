//! Renumbers blocks, instructions and values.

use cranelift_entity::{EntityRef, PrimaryMap};
use ir3_compiler::ir3::{Attrs, Block, Instr, Place, Program, RepeatLink, SrcOperand, Value};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// A random permutation of the numbers of `count` entities.
fn permutation<K: EntityRef>(count: usize, random: &mut Random) -> Vec<K> {
    let mut numbers: Vec<usize> = (0..count).collect();
    random.shuffle(&mut numbers);
    numbers.into_iter().map(K::new).collect()
}

/// The entries of a map by their new numbers.
fn permuted<K: EntityRef, V>(table: PrimaryMap<K, V>, to: &[K]) -> PrimaryMap<K, V> {
    let mut entries: Vec<(K, V)> = table.into_iter().map(|(key, entry)| (to[key.index()], entry)).collect();
    entries.sort_by_key(|(key, _)| key.index());
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Renumbers all entities.
pub(super) fn all(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    let blocks: Vec<Block> = permutation(program.blocks.len(), random);
    let instrs: Vec<Instr> = permutation(program.instrs.len(), random);
    let values: Vec<Value> = permutation(program.values.len(), random);
    let block = |b: &mut Block| *b = blocks[b.index()];
    let instr = |i: &mut Instr| *i = instrs[i.index()];
    let value = |v: &mut Value| *v = values[v.index()];
    let place = |place: &mut Place| match place {
        Place::Value(v) | Place::Assigned(v, _) => value(v),
        Place::Array(access) => {
            if let Some(mut version) = access.value.expand() {
                value(&mut version);
                access.value = version.into();
            }
        }
        Place::Reg(_) | Place::Relative { .. } => {}
    };
    for data in program.blocks.values_mut() {
        data.instrs.iter_mut().for_each(instr);
        data.keeps.iter_mut().for_each(instr);
        data.successors.iter_mut().flatten().for_each(block);
        data.predecessors.iter_mut().for_each(block);
        data.physical_successors.iter_mut().for_each(block);
        data.physical_predecessors.iter_mut().for_each(block);
    }
    for data in program.instrs.values_mut() {
        data.dsts.iter_mut().for_each(|dst| place(&mut dst.place));
        for src in &mut data.srcs {
            if let SrcOperand::Place(read) = &mut src.operand {
                place(read);
            }
        }
        if data.is_constrained() {
            data.constrain(|it| {
                it.false_deps.iter_mut().for_each(instr);
                if let RepeatLink::After(previous) = &mut it.link {
                    instr(previous);
                }
            });
        }
        if let Attrs::Branch { target: Some(target) } = &mut data.attrs {
            block(target);
        }
    }
    for data in program.values.values_mut() {
        instr(&mut data.instr);
    }
    program.layout.iter_mut().for_each(block);
    program.blocks = permuted(std::mem::take(&mut program.blocks), &blocks);
    program.instrs = permuted(std::mem::take(&mut program.instrs), &instrs);
    program.values = permuted(std::mem::take(&mut program.values), &values);
    program.block_names.clear();
    program.serials.clear();
    program.value_names.clear();
    true
}
