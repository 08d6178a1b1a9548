//! Words of the constant file that the driver fills: system values, and before a6xx the addresses and strides of
//! buffers and images.
//!
//! They come directly after the words that the shader names, as Mesa's do (`ir3_setup_const_state`), or before the
//! first of these where a driver has left a gap, so that the part of the file that a program needs stays small: the GPU
//! loads all of it, up to the last word. Mesa's conditions hold: words that an indirect dispatch or draw fills begins
//! at a multiple of the unit in which a command uploads constants, and is not at the start of the file in a vertex
//! shader of a6xx and later. A shader that reads words relative to an address may have arrays whose length nothing
//! declares, so there these words are before them or at the end of the file: a load of nir's that reaches them reads
//! the driver's values.

use super::context::Context;
use crate::ir3::const_words::{NamedConstWords, const_limit, shared_consts};
use crate::ir3::{DriverParam, Instr, Program, ResourceWords, ShaderStage, Src, SrcOperand, SystemValue, Type};
use crate::nir::Info;
use crate::target::{Generation, Target};

/// The content that the driver writes to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DriverWord {
    /// A component of a system value.
    System(SystemValue, u8),
    /// A word about a buffer or an image: four for each.
    Resource(u16),
}

/// Moves of words that the driver fills, and that have no place yet.
#[derive(Debug, Default)]
pub(super) struct DriverParams(Vec<(Instr, DriverWord)>);

impl Context<'_> {
    /// A component of a system value that the driver passes in the constant file. Its word is chosen at the end of
    /// selection ([`DriverParams::place`]).
    pub(super) fn driver_param(&mut self, value: SystemValue, component: u8) -> Src {
        self.driver_word(DriverWord::System(value, component))
    }

    /// Word 0 to 3 that the driver passes about a buffer or an image.
    pub(super) fn resource_param(&mut self, index: u16, word: u16) -> Src {
        self.driver_word(DriverWord::Resource(4 * index + word))
    }

    fn driver_word(&mut self, word: DriverWord) -> Src {
        let src = self.convert_src(Type::U32, Type::U32, Src::constant(0, false));
        if let Some(moved) = src.value() {
            let instr = self.program.values[moved].instr;
            self.driver_params.0.push((instr, word));
        }
        src
    }
}

impl DriverParams {
    /// Chooses the words. All components of a value are in one vec4. On a4xx buffers are described before the images.
    /// Returns false if the words that the shader names leave no space.
    #[must_use]
    pub(super) fn place(&self, program: &mut Program, target: &Target, info: &Info) -> bool {
        if self.0.is_empty() {
            return true;
        }
        // The moves read word 0 so far, which does not count.
        for &(instr, _) in &self.0 {
            program.instrs[instr].srcs[0].operand = SrcOperand::Undef;
        }
        let mut values: Vec<(SystemValue, u16)> = Vec::new();
        let mut resources = 0;
        for &(_, word) in &self.0 {
            match word {
                DriverWord::Resource(word) => resources = resources.max((word + 1).next_multiple_of(4)),
                DriverWord::System(value, component) => {
                    let size = u16::from(component) + 1;
                    match values.iter_mut().find(|known| known.0 == value) {
                        Some(known) => known.1 = known.1.max(size),
                        None => values.push((value, size)),
                    }
                }
            }
        }
        let (offsets, params) = pack(&values);
        let Some(base) = base(program, target, params + resources, info.uniforms) else { return false };
        if resources > 0 {
            let buffers = if target.generation == Generation::A4xx { info.num_ssbos as u16 } else { 0 };
            program.consts.resources = Some(ResourceWords { first: base + params, buffers });
        }
        for &(instr, word) in &self.0 {
            let place = match word {
                DriverWord::Resource(word) => base + params + word,
                DriverWord::System(value, component) => {
                    let found = values.iter().zip(&offsets).find(|(known, _)| known.0 == value);
                    let word = base + found.map_or(0, |(_, offset)| *offset) + u16::from(component);
                    let param = DriverParam { word, value, component };
                    if !program.consts.driver_params.contains(&param) {
                        program.consts.driver_params.push(param);
                    }
                    word
                }
            };
            program.instrs[instr].srcs[0].operand = SrcOperand::Const(place);
        }
        true
    }
}

/// The word of each value after the first of all, and the length of all, in words: each in the first vec4 with enough
/// free words.
fn pack(values: &[(SystemValue, u16)]) -> (Vec<u16>, u16) {
    let mut used: Vec<u16> = Vec::new();
    let mut offsets = Vec::with_capacity(values.len());
    for &(_, size) in values {
        let vec4 = used.iter().position(|&words| words + size <= 4).unwrap_or(used.len());
        if vec4 == used.len() {
            used.push(0);
        }
        offsets.push(4 * vec4 as u16 + used[vec4]);
        used[vec4] += size;
    }
    (offsets, 4 * used.len() as u16)
}

/// The start of `length` words that the driver fills, if they fit.
fn base(program: &Program, target: &Target, length: u16, uniforms: u32) -> Option<u16> {
    let named = NamedConstWords::of(program, target, |_| false);
    let vec4 = match (program.stage, target.generation) {
        // Commands of a3xx upload eight vec4 at a time.
        (Some(ShaderStage::Compute | ShaderStage::Vertex), Generation::A3xx) => 8,
        (Some(ShaderStage::Compute | ShaderStage::Vertex), _) => 4,
        _ => 1,
    };
    let is_vertex = program.stage == Some(ShaderStage::Vertex) && target.generation >= Generation::A6xx;
    let start = named.end.max(u32::from(is_vertex)).next_multiple_of(4 * vec4);
    let end = const_limit(program, target).checked_sub(length.into()).filter(|&end| start <= end)?;
    // Uniforms, or push constants, begin the file even if they are not read, unless they are those that all stages
    // share. Without them, no instruction reads a word before the first word that is named: an index is not negative.
    let has_uniforms = uniforms > 0 && shared_consts(program, target).is_empty();
    let has_room = !has_uniforms && !is_vertex && !named.has_unknown_stores;
    let fits_before = has_room && u32::from(length) <= named.start;
    let has_arrays = named.is_relative || named.has_unknown_stores;
    u16::try_from(match (fits_before, has_arrays) {
        (true, _) => 0,
        (false, true) => end,
        (false, false) => start,
    })
    .ok()
}
