//! Steps on flags, indices and the header: remove the parts that the program does not need.

use ir3_compiler::nir::{Access, Index, IndexKind, Instr, InstrData, TexSrcKind};

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView};

/// A part of the header to be removed.
#[derive(Clone, Copy)]
enum HeaderPart {
    Divergence,
    Variables,
    Lines,
    Counts,
    Scratch,
    Shared,
}

impl ReductionStep for HeaderPart {
    fn apply(&self, edit: &mut Edit) -> bool {
        let before = edit.shader.info.clone();
        let shader = &mut edit.shader;
        match self {
            HeaderPart::Divergence => {
                let mut any = std::mem::take(&mut shader.info.divergence_analysis_run);
                shader.entry.defs.values_mut().for_each(|def| any |= def.divergent.take().is_some());
                shader.entry.blocks.values_mut().for_each(|block| block.divergent = None);
                return any;
            }
            HeaderPart::Variables => {
                let any = !shader.variables.is_empty() || !shader.entry.variables.is_empty();
                shader.variables.clear();
                shader.entry.variables.clear();
                return any;
            }
            HeaderPart::Lines => shader.info.other.clear(),
            HeaderPart::Counts => {
                let info = &mut shader.info;
                (info.num_textures, info.num_ubos, info.num_ssbos, info.num_images) = (0, 0, 0, 0);
                (info.inputs, info.outputs, info.uniforms) = (0, 0, 0);
            }
            HeaderPart::Scratch => shader.info.scratch_size = 0,
            HeaderPart::Shared => shader.info.shared_size = 0,
        }
        shader.info != before
    }
}

/// Steps that remove parts of the header.
pub(super) fn header(_: &ProgramView<'_>) -> Steps {
    boxed([
        HeaderPart::Divergence,
        HeaderPart::Variables,
        HeaderPart::Lines,
        HeaderPart::Counts,
        HeaderPart::Scratch,
        HeaderPart::Shared,
    ])
}

/// A simplification of an instruction.
#[derive(Clone, Copy)]
enum Simplification {
    /// Sets an index to its default.
    Index(IndexKind),
    /// Removes flags of arithmetic, and names of variables.
    Flags,
    /// Removes a source of a texture operation.
    Source(TexSrcKind),
    /// Sets texture and sampler to number 0 without attributes.
    Texture,
    /// Reads operands from the first component.
    FirstComponent,
    /// Halves the elements of a local array.
    Elements,
}

struct Simplify {
    instr: Instr,
    change: Simplification,
}

impl ReductionStep for Simplify {
    fn apply(&self, edit: &mut Edit) -> bool {
        if !edit.is_placed(self.instr) {
            return false;
        }
        let data = &mut edit.function_mut().instrs[self.instr];
        let before = data.clone();
        match (self.change, &mut *data) {
            (Simplification::Index(kind), InstrData::Intrinsic(intrinsic)) => intrinsic.indices.set(default(kind)),
            (Simplification::Elements, InstrData::Intrinsic(intrinsic)) => {
                let elements = intrinsic.indices.num_array_elems();
                intrinsic.indices.set(Index::NumArrayElems(elements / 2));
            }
            (Simplification::Flags, InstrData::Intrinsic(intrinsic)) => intrinsic.variable = None,
            (Simplification::Flags, InstrData::Alu(alu)) => {
                (alu.exact, alu.no_signed_wrap, alu.no_unsigned_wrap) = (false, false, false);
            }
            (Simplification::FirstComponent, InstrData::Alu(alu)) => {
                alu.srcs.iter_mut().for_each(|src| src.swizzle = [0; 16])
            }
            (Simplification::Source(kind), InstrData::Tex(tex)) => tex.srcs.retain(|(k, _)| *k != kind),
            (Simplification::Texture, InstrData::Tex(tex)) => {
                (tex.texture_index, tex.sampler_index, tex.component) = (0, 0, 0);
                (tex.texture_non_uniform, tex.sampler_non_uniform, tex.sparse) = (false, false, false);
                (tex.implicit_lod, tex.gather_offsets) = (false, None);
            }
            _ => return false,
        }
        *data != before
    }
}

/// The simplest value of an index. An alignment of 4 bytes is the usual one.
fn default(kind: IndexKind) -> Index {
    match kind {
        IndexKind::Access => Index::Access(Access::empty()),
        kind => Index::default_of(kind),
    }
}

/// The indices that can be removed.
const OPTIONAL: [IndexKind; 12] = [
    IndexKind::Base,
    IndexKind::Component,
    IndexKind::Access,
    IndexKind::AlignOffset,
    IndexKind::Range,
    IndexKind::RangeBase,
    IndexKind::IoSemantics,
    IndexKind::IoXfb,
    IndexKind::IoXfb2,
    IndexKind::Format,
    IndexKind::ImageArray,
    IndexKind::DescSet,
];

/// Steps that simplify instructions.
pub(super) fn instructions(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for &(_, instr) in &view.order {
        let mut add = |change: Simplification| steps.push(Simplify { instr, change });
        match &view.function().instrs[instr] {
            InstrData::Alu(alu) => {
                if alu.exact || alu.no_signed_wrap || alu.no_unsigned_wrap {
                    add(Simplification::Flags);
                }
                if alu.srcs.iter().any(|src| src.swizzle[0] != 0) {
                    add(Simplification::FirstComponent);
                }
            }
            InstrData::Intrinsic(intrinsic) => {
                add(Simplification::Flags);
                let set = |kind: &IndexKind| intrinsic.indices.get(*kind).is_some_and(|i| *i != default(*kind));
                OPTIONAL.into_iter().filter(set).for_each(|kind| add(Simplification::Index(kind)));
                if intrinsic.indices.num_array_elems() > 1 {
                    add(Simplification::Elements);
                }
            }
            InstrData::Tex(tex) => {
                add(Simplification::Texture);
                tex.srcs.iter().for_each(|&(kind, _)| add(Simplification::Source(kind)));
            }
            _ => {}
        }
    }
    boxed(steps)
}
