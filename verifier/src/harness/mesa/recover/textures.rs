//! Arrays of textures of one dimension.
//!
//! nir's text has the number of coordinates only: two are those of two dimensions, or one and a layer. ir3 prints `.a`, and pads one
//! dimension to two. The first section has the texture instructions in the order of nir, so the kinds of its flags are those of nir's
//! operations, where both have the same number of them.

use ir3_compiler::ir3::{InstrFlags, Opcode, Program};
use ir3_compiler::nir::{InstrData, Shader, TexOp, TexSrcKind};

/// Marks the operations of nir whose second coordinate is a layer. Returns lines about them.
pub(super) fn complete(nir: &mut Shader, first: &Program) -> Vec<String> {
    let is_sample = |opcode| {
        use Opcode::*;
        matches!(opcode, Isaml | Isamm | Sam | Samb | Saml | Samgq | Gather4r | Gather4g | Gather4b | Gather4a)
    };
    let samples: Vec<_> = first
        .layout
        .iter()
        .flat_map(|&block| first.blocks[block].instrs.iter().map(|&instr| &first.instrs[instr]))
        .filter(|data| is_sample(data.opcode))
        .collect();
    let function = &nir.entry;
    let operations: Vec<_> = function
        .instrs_in_order()
        .filter_map(|(_, instr)| match &function.instrs[instr] {
            InstrData::Tex(tex) if tex.op != TexOp::Lod && tex.op != TexOp::TexPrefetch => {
                let coords = function.defs[tex.src(TexSrcKind::Coord)?].num_components;
                Some((instr, coords, tex.texture_index))
            }
            _ => None,
        })
        .collect();
    if operations.len() != samples.len() {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for ((instr, coords, texture), data) in operations.into_iter().zip(samples) {
        let is_array = data.flags.contains(InstrFlags::ARRAY) && !data.flags.contains(InstrFlags::DIM_3D);
        let InstrData::Tex(tex) = &mut nir.entry.instrs[instr] else { continue };
        if is_array && coords == 2 {
            tex.is_1d_array = true;
            lines.push(format!("texture {texture} is an array of one dimension"));
        }
    }
    lines.dedup();
    lines
}
