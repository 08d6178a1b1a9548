//! One compute program after another: the code of a donor at the end of a program, on the same memory.

use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::preamble::Preamble;
use ir3_compiler::nir::{Block, CfNode, Def, Function, InstrData, JumpKind, Shader, Stage};

/// Appends the code of a donor to that of a program; returns false if that is not possible: one of them is no compute
/// program, leaves early, or has a preamble.
pub(super) fn append(program: &mut Shader, donor: &Shader) -> bool {
    let is_possible = |shader: &Shader| {
        matches!(shader.stage, Stage::Compute | Stage::Kernel)
            && !leaves(&shader.entry)
            && Preamble::of(&shader.entry).is_none()
    };
    if !is_possible(program) || !is_possible(donor) || program.stage != donor.stage {
        return false;
    }
    let (Some(&CfNode::Block(last)), Some(&CfNode::Block(first))) =
        (program.entry.body.last(), donor.entry.body.first())
    else {
        return false;
    };
    let (info, more) = (&mut program.info, &donor.info);
    let sizes = [
        (&mut info.num_textures, more.num_textures),
        (&mut info.num_ubos, more.num_ubos),
        (&mut info.num_ssbos, more.num_ssbos),
        (&mut info.num_images, more.num_images),
        (&mut info.shared_size, more.shared_size),
        (&mut info.scratch_size, more.scratch_size),
        (&mut info.uniforms, more.uniforms),
    ];
    for (size, more) in sizes {
        *size = (*size).max(more);
    }
    let function = &mut program.entry;
    let mut blocks: SecondaryMap<Block, Block> = SecondaryMap::with_default(last);
    for block in donor.entry.blocks_in_order().filter(|&block| block != first) {
        blocks[block] = function.blocks.push(Default::default());
    }
    let mut defs: SecondaryMap<Def, Def> = SecondaryMap::with_default(Def::from_u32(0));
    for (_, instr) in donor.entry.instrs_in_order() {
        if let Some(def) = donor.entry.instrs[instr].def() {
            defs[def] = function.new_def_like(&donor.entry.defs[def]);
        }
    }
    for (block, instr) in donor.entry.instrs_in_order() {
        let mut data = donor.entry.instrs[instr].clone();
        data.for_each_src_mut(|src| *src = defs[*src]);
        data.def_mut().into_iter().for_each(|def| *def = defs[*def]);
        if let InstrData::Phi { srcs, .. } = &mut data {
            srcs.iter_mut().for_each(|(from, _)| *from = blocks[*from]);
        }
        function.append(blocks[block], data);
    }
    let mut nodes = donor.entry.body[1..].to_vec();
    rename(&mut nodes, &blocks, &defs);
    function.body.extend(nodes);
    true
}

/// Returns true if a function ends before its end.
fn leaves(function: &Function) -> bool {
    let is_end = |data: &InstrData| matches!(data, InstrData::Jump(JumpKind::Return | JumpKind::Halt));
    function.instrs_in_order().any(|(_, instr)| is_end(&function.instrs[instr]))
}

fn rename(list: &mut [CfNode], blocks: &SecondaryMap<Block, Block>, defs: &SecondaryMap<Def, Def>) {
    for node in list {
        match node {
            CfNode::Block(block) => *block = blocks[*block],
            CfNode::If(node) => {
                node.condition = defs[node.condition];
                rename(&mut node.then, blocks, defs);
                rename(&mut node.otherwise, blocks, defs);
            }
            CfNode::Loop(node) => {
                rename(&mut node.body, blocks, defs);
                node.continuing.iter_mut().for_each(|list| rename(list, blocks, defs));
            }
        }
    }
}
