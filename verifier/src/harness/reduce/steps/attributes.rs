//! What is written at instructions and in the header: flags, indices, lines that nobody needs.

use ir3_compiler::nir::{Access, Index, IndexKind, Instr, InstrData, TexSrcKind};

use super::{Step, Steps, boxed};
use crate::harness::reduce::edit::{Edit, View};

/// Something of the header goes.
#[derive(Clone, Copy)]
enum Header {
    Divergence,
    Variables,
    Lines,
    Counts,
    Scratch,
    Shared,
}

impl Step for Header {
    fn apply(&self, edit: &mut Edit) -> bool {
        let before = edit.shader.info.clone();
        let shader = &mut edit.shader;
        match self {
            Header::Divergence => {
                let mut any = std::mem::take(&mut shader.info.divergence_analysis_run);
                shader.entry.defs.values_mut().for_each(|def| any |= def.divergent.take().is_some());
                shader.entry.blocks.values_mut().for_each(|block| block.divergent = None);
                return any;
            }
            Header::Variables => {
                let any = !shader.variables.is_empty() || !shader.entry.variables.is_empty();
                shader.variables.clear();
                shader.entry.variables.clear();
                return any;
            }
            Header::Lines => shader.info.other.clear(),
            Header::Counts => {
                let info = &mut shader.info;
                (info.num_textures, info.num_ubos, info.num_ssbos, info.num_images) = (0, 0, 0, 0);
                (info.inputs, info.outputs, info.uniforms) = (0, 0, 0);
            }
            Header::Scratch => shader.info.scratch_size = 0,
            Header::Shared => shader.info.shared_size = 0,
        }
        shader.info != before
    }
}

/// The header says only what is needed.
pub(super) fn header(_: &View<'_>) -> Steps {
    boxed([Header::Divergence, Header::Variables, Header::Lines, Header::Counts, Header::Scratch, Header::Shared])
}

/// What is changed at an instruction.
#[derive(Clone, Copy)]
enum Change {
    /// An index gets its default.
    Index(IndexKind),
    /// Flags of arithmetic go, and names of variables.
    Flags,
    /// A source of a texture operation goes.
    Source(TexSrcKind),
    /// The texture and the sampler become number 0, with nothing special about them.
    Texture,
    /// Operands are read from the first component.
    FirstComponent,
    /// A local array has half as many elements.
    Elements,
}

struct Simplify {
    instr: Instr,
    change: Change,
}

impl Step for Simplify {
    fn apply(&self, edit: &mut Edit) -> bool {
        if !edit.is_placed(self.instr) {
            return false;
        }
        let data = &mut edit.function_mut().instrs[self.instr];
        let before = data.clone();
        match (self.change, &mut *data) {
            (Change::Index(kind), InstrData::Intrinsic(intrinsic)) => intrinsic.indices.set(default(kind)),
            (Change::Elements, InstrData::Intrinsic(intrinsic)) => {
                let elements = intrinsic.indices.num_array_elems();
                intrinsic.indices.set(Index::NumArrayElems(elements / 2));
            }
            (Change::Flags, InstrData::Intrinsic(intrinsic)) => intrinsic.variable = None,
            (Change::Flags, InstrData::Alu(alu)) => {
                (alu.exact, alu.no_signed_wrap, alu.no_unsigned_wrap) = (false, false, false);
            }
            (Change::FirstComponent, InstrData::Alu(alu)) => alu.srcs.iter_mut().for_each(|src| src.swizzle = [0; 16]),
            (Change::Source(kind), InstrData::Tex(tex)) => tex.srcs.retain(|(k, _)| *k != kind),
            (Change::Texture, InstrData::Tex(tex)) => {
                (tex.texture_index, tex.sampler_index, tex.component) = (0, 0, 0);
                (tex.texture_non_uniform, tex.sampler_non_uniform, tex.sparse) = (false, false, false);
                (tex.implicit_lod, tex.gather_offsets) = (false, None);
            }
            _ => return false,
        }
        *data != before
    }
}

/// The plainest value of an index. An alignment of 4 bytes is what everything has.
fn default(kind: IndexKind) -> Index {
    match kind {
        IndexKind::Access => Index::Access(Access::empty()),
        kind => Index::default_of(kind),
    }
}

/// The indices that a program can do without.
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

/// Instructions say only what is needed.
pub(super) fn instructions(view: &View<'_>) -> Steps {
    let mut steps = Vec::new();
    for &(_, instr) in &view.order {
        let mut add = |change: Change| steps.push(Simplify { instr, change });
        match &view.function().instrs[instr] {
            InstrData::Alu(alu) => {
                if alu.exact || alu.no_signed_wrap || alu.no_unsigned_wrap {
                    add(Change::Flags);
                }
                if alu.srcs.iter().any(|src| src.swizzle[0] != 0) {
                    add(Change::FirstComponent);
                }
            }
            InstrData::Intrinsic(intrinsic) => {
                add(Change::Flags);
                let set = |kind: &IndexKind| intrinsic.indices.get(*kind).is_some_and(|i| *i != default(*kind));
                OPTIONAL.into_iter().filter(set).for_each(|kind| add(Change::Index(kind)));
                if intrinsic.indices.num_array_elems() > 1 {
                    add(Change::Elements);
                }
            }
            InstrData::Tex(tex) => {
                add(Change::Texture);
                tex.srcs.iter().for_each(|&(kind, _)| add(Change::Source(kind)));
            }
            _ => {}
        }
    }
    boxed(steps)
}
