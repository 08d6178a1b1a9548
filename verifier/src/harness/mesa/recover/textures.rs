//! Kinds of textures: arrays, and buffers whose size is asked for.
//!
//! nir's text has the number of coordinates only: two are those of two dimensions, or one and a layer. ir3 prints `.a`, and pads one
//! dimension to two. The size of an array of one dimension has its layers in component 1, where the text of nir has no more than the number
//! of components; and what asks for the size of a buffer is `getbuf`, though the operation of nir has a level. The first section has the
//! texture instructions in the order of nir, so the kinds of its flags and opcodes are those of nir's operations, where both have the same
//! number of them.

use ir3_compiler::ir3::{self, InstrFlags, Opcode, Program};
use ir3_compiler::nir::{Def, Instr, InstrData, Shader, Tex, TexOp, TexSrcKind};
use ir3_compiler::target::Target;

/// Marks the operations of nir on arrays, where that changes what they mean, and those for the size of a buffer. Returns lines about them.
pub(super) fn complete(nir: &mut Shader, first: &Program, target: &Target) -> Vec<String> {
    let mut lines = Vec::new();
    let coordinates =
        |tex: &Tex| tex.src(TexSrcKind::Coord).filter(|_| !matches!(tex.op, TexOp::Lod | TexOp::TexPrefetch));
    for (instr, coords, text) in pairs(nir, first, coordinates, is_sample) {
        let InstrData::Tex(tex) = &mut nir.entry.instrs[instr] else { continue };
        // Where fetches take the coordinates of level 0, those of dimensions are shifted, and a layer is not.
        let is_shifted = tex.op == TexOp::Txf && target.unminify_coords;
        if is_array(text) && (coords == 2 || coords == 3 && is_shifted) {
            tex.is_array = true;
            let dimensions = if coords == 2 { "one dimension" } else { "two dimensions" };
            lines.push(format!("texture {} is an array of {dimensions}", tex.texture_index));
        }
    }
    let size = |tex: &Tex| (tex.op == TexOp::Txs).then_some(tex.def);
    for (instr, components, text) in pairs(nir, first, size, |op| matches!(op, Opcode::Getsize | Opcode::Getbuf)) {
        let InstrData::Tex(tex) = &mut nir.entry.instrs[instr] else { continue };
        if text.opcode == Opcode::Getbuf && components == 1 && tex.src(TexSrcKind::Lod).is_some() {
            tex.srcs.retain(|(kind, _)| *kind != TexSrcKind::Lod);
            lines.push(format!("texture {} is a buffer", tex.texture_index));
        } else if is_array(text) && components == 2 {
            tex.is_array = true;
            lines.push(format!("texture {} is an array of one dimension", tex.texture_index));
        }
    }
    lines.dedup();
    lines
}

fn is_sample(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, Isaml | Isamm | Sam | Samb | Saml | Samgq | Gather4r | Gather4g | Gather4b | Gather4a)
}

/// Returns true if the text has `.a` without `.3d`.
fn is_array(text: &ir3::InstrData) -> bool {
    text.flags.contains(InstrFlags::ARRAY) && !text.flags.contains(InstrFlags::DIM_3D)
}

/// The operations that have a certain value, the number of its components, and the instructions of certain opcodes, in their order. None if
/// there are more of the ones than of the others.
fn pairs<'p>(
    nir: &Shader,
    first: &'p Program,
    value: impl Fn(&Tex) -> Option<Def>,
    is_wanted: impl Fn(Opcode) -> bool,
) -> Vec<(Instr, u8, &'p ir3::InstrData)> {
    let texts: Vec<_> =
        first.iter_instrs().map(|(_, instr)| &first.instrs[instr]).filter(|data| is_wanted(data.opcode)).collect();
    let function = &nir.entry;
    let operations: Vec<_> = function
        .instrs_in_order()
        .filter_map(|(_, instr)| {
            let InstrData::Tex(tex) = &function.instrs[instr] else { return None };
            Some((instr, function.defs[value(tex)?].num_components))
        })
        .collect();
    if operations.len() != texts.len() {
        return Vec::new();
    }
    operations.into_iter().zip(texts).map(|((instr, components), text)| (instr, components, text)).collect()
}
