//! Recovery of texture kinds: arrays, and buffers with size queries.
//!
//! nir's text has the number of coordinates only: two are those of two dimensions, or one and a layer. ir3 prints `.a`,
//! and pads one dimension to two. The size of an array of one dimension has its layers in component 1, where the text
//! of nir has no more than the number of components; and the size of a buffer is read by `getbuf`, though the operation
//! of nir has a level. The sections before scheduling have the texture instructions in the order of nir, so the kinds
//! of their flags and opcodes are those of nir's operations, where both have the same number of them. Otherwise a
//! texture is of the kind of all instructions that name it.

use ir3_compiler::ir3::{self, InstrFlags, Opcode, Program};
use ir3_compiler::nir::{Def, ImageDim, Instr, InstrData, Shader, Tex, TexOp, TexSrcKind};
use ir3_compiler::target::Target;
use ir3_programs::input::natives::descriptor;

/// The texture instructions of a shader.
pub(super) struct Texts<'p> {
    /// The texture instructions of a section before scheduling: in the order of nir, if none was removed.
    pub first: Option<&'p Program>,
    /// The texture instructions of the words.
    pub words: Vec<&'p ir3::InstrData>,
}

/// Marks the operations of nir on arrays, if that changes their meaning, and those for the size of a buffer. Returns
/// lines about them.
///
/// # Errors
/// An operation on a texture that is an array for one instruction, and none for another one.
pub(super) fn complete(nir: &mut Shader, texts: &Texts<'_>, target: &Target) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let coordinates =
        |tex: &Tex| tex.src(TexSrcKind::Coord).filter(|_| !matches!(tex.op, TexOp::Lod | TexOp::TexPrefetch));
    for (instr, coords, kinds) in kinds(nir, texts, coordinates, is_sample) {
        let InstrData::Tex(tex) = &mut nir.entry.instrs[instr] else { continue };
        // If fetches take the coordinates of level 0, the spatial ones are shifted, and a layer is not.
        let is_shifted = tex.op == TexOp::Txf && target.unminify_coords;
        let is_open = tex.dim.is_none() && (coords == 2 || coords == 3 && is_shifted);
        if is_open && kinds.only(tex)?.is_some_and(|kind| kind.is_array) {
            tex.is_array = true;
            let dimensions = if coords == 2 { "one dimension" } else { "two dimensions" };
            lines.push(format!("texture {} is an array of {dimensions}", tex.texture_index));
        }
    }
    let size = |tex: &Tex| (tex.op == TexOp::Txs).then_some(tex.def);
    for (instr, components, kinds) in kinds(nir, texts, size, |op| matches!(op, Opcode::Getsize | Opcode::Getbuf)) {
        let InstrData::Tex(tex) = &mut nir.entry.instrs[instr] else { continue };
        if components > 2 || tex.dim.is_some_and(|dim| dim != ImageDim::Buf) {
            continue;
        }
        let Some(kind) = kinds.only(tex)? else { continue };
        if kind.is_buffer && components == 1 && tex.src(TexSrcKind::Lod).is_some() {
            tex.srcs.retain(|(kind, _)| *kind != TexSrcKind::Lod);
            lines.push(format!("texture {} is a buffer", tex.texture_index));
        } else if kind.is_array && components == 2 {
            tex.is_array = true;
            lines.push(format!("texture {} is an array of one dimension", tex.texture_index));
        }
    }
    lines.dedup();
    Ok(lines)
}

/// The kind of a texture by an instruction of ir3.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    is_array: bool,
    is_buffer: bool,
}

impl Kind {
    /// An array has `.a` without `.3d`.
    fn of(text: &ir3::InstrData) -> Self {
        Self {
            is_array: text.flags.contains(InstrFlags::ARRAY) && !text.flags.contains(InstrFlags::DIM_3D),
            is_buffer: text.opcode == Opcode::Getbuf,
        }
    }
}

/// The kinds that an operation of nir may be of.
struct Kinds(Vec<Kind>);

impl Kinds {
    /// The only kind; `None` if a pass has removed the operation.
    fn only(&self, tex: &Tex) -> Result<Option<Kind>, String> {
        match &self.0[..] {
            [first, rest @ ..] if rest.iter().any(|other| other != first) => {
                Err(format!("whether texture {} is an array is not known without `AFTER: nir->ir3`", tex.texture_index))
            }
            kinds => Ok(kinds.first().copied()),
        }
    }
}

/// The texture of an instruction by set and number: none if it is computed.
type Texture = Option<(Option<u32>, u64)>;

fn texture_of(text: &ir3::InstrData) -> Texture {
    let attrs = text.texture()?;
    Some((attrs.base.map(u32::from), attrs.texture?.into()))
}

fn texture_of_nir(nir: &Shader, tex: &Tex) -> Texture {
    match tex.src(TexSrcKind::TextureHandle) {
        Some(handle) => descriptor(nir, handle).map(|(set, index)| (Some(set), index)),
        None if tex.src(TexSrcKind::TextureOffset).is_some() => None,
        None => Some((None, tex.texture_index.into())),
    }
}

fn is_sample(opcode: Opcode) -> bool {
    use Opcode::*;
    let samples = matches!(opcode, Sam | Samb | Saml | Samgq | Samgp0 | Samgp1 | Samgp2 | Samgp3);
    samples || matches!(opcode, Isaml | Isamm | Gather4r | Gather4g | Gather4b | Gather4a)
}

/// The operations that have a certain value, the number of its components, and the kinds of the instructions of certain
/// opcodes that each of them may have become.
fn kinds(
    nir: &Shader,
    texts: &Texts<'_>,
    value: impl Fn(&Tex) -> Option<Def>,
    is_wanted: impl Fn(Opcode) -> bool,
) -> Vec<(Instr, u8, Kinds)> {
    let function = &nir.entry;
    let operations: Vec<_> = function
        .instrs_in_order()
        .filter_map(|(_, instr)| {
            let InstrData::Tex(tex) = &function.instrs[instr] else { return None };
            Some((instr, function.defs[value(tex)?].num_components, texture_of_nir(nir, tex)))
        })
        .collect();
    if let Some(first) = texts.first {
        let first = first.iter_instrs().map(|(_, instr)| &first.instrs[instr]);
        let texts: Vec<_> = first.filter(|data| is_wanted(data.opcode)).collect();
        if operations.len() == texts.len() {
            let pairs = operations.into_iter().zip(texts);
            return pairs.map(|((instr, count, _), text)| (instr, count, Kinds(vec![Kind::of(text)]))).collect();
        }
    }
    let may_be = |one: Texture, other: Texture| one.is_none() || other.is_none() || one == other;
    operations
        .into_iter()
        .map(|(instr, components, texture)| {
            let its = texts.words.iter().filter(|text| is_wanted(text.opcode) && may_be(texture, texture_of(text)));
            (instr, components, Kinds(its.map(|text| Kind::of(text)).collect()))
        })
        .collect()
}
