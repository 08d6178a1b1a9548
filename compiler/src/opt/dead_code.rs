//! Dead-code elimination.
//!
//! An instruction is live if it has a side effect, ends a block, is listed in `keeps`, writes an array, or defines a
//! value that a live instruction reads. One traversal from the roots finds all of them.
//!
//! A texture instruction writes only those components of its result that are read: fewer registers, and a shorter wait.

use crate::ir3::{Attrs, Category, Instr, InstrData, Opcode, Place, Program, Src, Value, WriteMask};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// Removes dead instructions, and components of texture results.
pub fn run(program: &mut Program) {
    let roots = program.layout.iter().flat_map(|&block| {
        let data = &program.blocks[block];
        data.instrs.iter().filter(|&&instr| is_root(program, instr)).chain(&data.keeps)
    });
    let needed = program.with_definitions(roots.copied());
    for &block in &program.layout {
        let list = &mut program.blocks[block].instrs;
        list.retain(|&instr| needed.contains(instr));
        for &instr in &*list {
            let data = &mut program.instrs[instr];
            if data.is_constrained() {
                data.constrain(|it| it.false_deps.retain(|&dep| needed.contains(dep)));
            }
        }
    }
    narrow_textures(program);
}

/// Removes components of texture results that are not read. The others keep their places in the vector.
fn narrow_textures(program: &mut Program) {
    let is_texture = |opcode: Opcode| opcode.category() == Category::Texture || opcode == Opcode::TexPrefetch;
    let is_wide = |data: &InstrData| is_texture(data.opcode) && data.dsts.iter().any(|dst| dst.mask.span() > 1);
    if !program.iter_instrs().any(|(_, instr)| is_wide(&program.instrs[instr])) {
        return;
    }
    // The components that are read, by value.
    let mut read: SecondaryMap<Value, u32> = map_of(program.values.len());
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for src in &data.srcs {
            let Some(value) = src.value() else { continue };
            read[value] |= match data.attrs {
                Attrs::Split { offset } => data.dsts[0].mask.0 << offset,
                _ => u32::MAX,
            };
        }
    }
    let Program { blocks, instrs, values, layout, .. } = program;
    let mut narrowed: SecondaryMap<Value, bool> = map_of(values.len());
    for &instr in layout.iter().flat_map(|&block| &blocks[block].instrs) {
        let data = &mut instrs[instr];
        if !is_wide(data) {
            continue;
        }
        for dst in &mut data.dsts {
            let Some(value) = dst.value().filter(|&value| dst.mask.0 & read[value] != 0) else { continue };
            dst.mask.0 &= read[value];
            values[value].components = dst.mask.span() as u16;
            narrowed[value] = true;
        }
    }
    for &instr in layout.iter().flat_map(|&block| &blocks[block].instrs) {
        let data = &mut instrs[instr];
        if let (Opcode::Split, Some(value)) = (data.opcode, data.srcs.first().and_then(Src::value))
            && narrowed[value]
        {
            data.srcs[0].mask = WriteMask::first(values[value].components.into());
        }
    }
}

/// Returns true if the instruction is live regardless of uses of its result.
fn is_root(program: &Program, instr: Instr) -> bool {
    let data = &program.instrs[instr];
    let writes_more = |place: &Place| matches!(place, Place::Array(_) | Place::Relative { .. } | Place::Reg(_));
    data.opcode.is_terminator()
        || data.opcode.has_side_effect()
        || data.memory().is_some_and(|memory| memory.volatile)
        || data.dsts.iter().any(|dst| writes_more(&dst.place))
        || data.dsts.is_empty() && !matches!(data.attrs, Attrs::Input(_))
}
