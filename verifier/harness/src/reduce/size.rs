//! The size of a program.
//!
//! A step is taken only if it makes the program smaller, so reduction terminates and never returns a larger program.
//! Sizes are compared lexicographically, the most important field first.

use ir3_compiler::nir::{CfNode, Def, Index, InstrData, Op, Shader};

/// The size of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Instructions, ifs and loops.
    pub instructions: u32,
    /// Instructions other than constants, moves and control flow.
    pub work: u32,
    /// Operands that are not constants.
    pub operands: u32,
    /// Components times bits, over all values, and over all operands that are not swizzled.
    pub bits: u32,
    /// The complexity of the constants.
    pub constants: u32,
    /// Indices other than their default, flags, lines of the header, variables.
    pub attributes: u32,
}

impl Size {
    /// Measures a program.
    pub fn of(shader: &Shader) -> Self {
        let function = &shader.entry;
        let mut size = Self { instructions: 0, work: 0, operands: 0, bits: 0, constants: 0, attributes: 0 };
        for (_, instr) in function.instrs_in_order() {
            let data = &function.instrs[instr];
            size.instructions += 1;
            let bits = |def: Def| {
                let def = &function.defs[def];
                u32::from(def.num_components) * u32::from(def.bit_size)
            };
            let all_components = !matches!(data, InstrData::Alu(_) | InstrData::Phi { .. });
            data.for_each_src(|src| {
                size.operands += u32::from(function.as_const(src).is_none());
                size.bits += if all_components { bits(src) } else { 0 };
            });
            if let Some(def) = data.def() {
                size.bits += bits(def);
                let def = &function.defs[def];
                size.attributes += u32::from(def.divergent.is_some());
            }
            match data {
                InstrData::Const { values, .. } => {
                    size.constants += values.iter().map(|&value| complexity(value)).sum::<u32>();
                }
                InstrData::Alu(alu) => {
                    size.work += if alu.op == Op::Mov { 0 } else { 1 };
                    size.attributes +=
                        [alu.exact, alu.no_signed_wrap, alu.no_unsigned_wrap].map(u32::from).iter().sum::<u32>();
                    // Operands that do not start at the first component.
                    size.attributes += alu.srcs.iter().map(|src| u32::from(src.swizzle[0] != 0)).sum::<u32>();
                }
                InstrData::Intrinsic(intrinsic) => {
                    size.work += 1;
                    size.attributes += intrinsic.indices.0.iter().map(index).sum::<u32>();
                    size.attributes += u32::from(intrinsic.variable.is_some());
                }
                InstrData::Tex(tex) => {
                    size.work += 1;
                    size.attributes += u32::from(tex.texture_index != 0)
                        + u32::from(tex.sampler_index != 0)
                        + u32::from(tex.component != 0)
                        + u32::from(tex.gather_offsets.is_some())
                        + u32::from(tex.texture_non_uniform)
                        + u32::from(tex.sampler_non_uniform)
                        + u32::from(tex.sparse)
                        + u32::from(tex.implicit_lod);
                }
                InstrData::Undef { .. } | InstrData::Jump(_) => {}
                InstrData::Phi { .. } => size.work += 1,
            }
        }
        size.instructions += nodes(&function.body);
        let info = &shader.info;
        size.attributes += shader.variables.len() as u32 + function.variables.len() as u32 + info.other.len() as u32;
        size.attributes += u32::from(info.divergence_analysis_run)
            + [info.num_textures, info.num_ubos, info.num_ssbos, info.num_images, info.shared_size]
                .map(|n| u32::from(n != 0))
                .iter()
                .sum::<u32>()
            + [info.inputs, info.outputs, info.uniforms, info.scratch_size]
                .map(|n| u32::from(n != 0))
                .iter()
                .sum::<u32>();
        size
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            instructions: self.instructions + other.instructions,
            work: self.work + other.work,
            operands: self.operands + other.operands,
            bits: self.bits + other.bits,
            constants: self.constants + other.constants,
            attributes: self.attributes + other.attributes,
        }
    }
}

/// The complexity of a constant, from simple to complex: 0, 1, a power of two, a simple float, any other.
pub(super) fn complexity(value: u64) -> u32 {
    match value {
        0 => 0,
        1 => 1,
        _ if value.is_power_of_two() => 2,
        0x3c00 | 0x3f80_0000 => 2,
        _ => 2 + value.count_ones() + (64 - value.leading_zeros()) / 8,
    }
}

/// The complexity of an index: 0 for its default.
fn index(index: &Index) -> u32 {
    match index {
        Index::WriteMask(mask) => mask.count_ones(),
        Index::Base(0) | Index::Component(0) | Index::AlignOffset(0) | Index::RangeBase(0) => 0,
        Index::NumArrayElems(elements) => 1 + (32 - elements.leading_zeros()),
        _ => u32::from(*index != Index::default_of(index.kind())),
    }
}

fn nodes(list: &[CfNode]) -> u32 {
    list.iter()
        .map(|node| match node {
            CfNode::Block(_) => 0,
            CfNode::If(node) => 1 + nodes(&node.then) + nodes(&node.otherwise),
            CfNode::Loop(node) => 1 + nodes(&node.body) + nodes(node.continuing.as_deref().unwrap_or_default()),
        })
        .sum()
}
