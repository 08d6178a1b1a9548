//! Infers the values that are used as integers and as floats. nir_print consults this to print a constant.
//!
//! The lattice is two bits per value, joined until a fixed point. Operations and texture sources with a type set the
//! bit of their values; moves, vectors, selections and phis propagate bits from result to source and from source to
//! result, except that a constant or an undefined value never types the result (it may serve both uses).

use cranelift_entity::SecondaryMap;

use crate::nir::function::{Def, Function, InstrData, Intrinsic};
use crate::nir::intrinsic::IntrinsicOp;
use crate::nir::op::Op;
use crate::nir::tex::{Tex, TexOp, TexSrcKind};
use crate::nir::types::BaseType;

const INT: u8 = 1;
const FLOAT: u8 = 2;

/// The result: the uses of each value.
pub(super) struct NumericUses {
    bits: SecondaryMap<Def, u8>,
    changed: bool,
}

impl NumericUses {
    pub(super) fn new(function: &Function) -> NumericUses {
        let mut uses = NumericUses { bits: SecondaryMap::new(), changed: true };
        while uses.changed {
            uses.changed = false;
            for (_, instr) in function.instrs_in_order() {
                uses.instruction(function, &function.instrs[instr]);
            }
        }
        uses
    }

    /// Returns true if the value is used as an integer and never as a float.
    pub(super) fn only_int(&self, def: Def) -> bool {
        self.bits[def] == INT
    }

    /// Returns true if the value is used as a float and never as an integer.
    pub(super) fn only_float(&self, def: Def) -> bool {
        self.bits[def] == FLOAT
    }

    fn add(&mut self, def: Def, bits: u8) {
        let old = self.bits[def];
        if old | bits != old {
            self.bits[def] = old | bits;
            self.changed = true;
        }
    }

    fn set(&mut self, def: Def, base: BaseType) {
        match base {
            BaseType::Int | BaseType::Uint | BaseType::Bool => self.add(def, INT),
            BaseType::Float => self.add(def, FLOAT),
            BaseType::Invalid => {}
        }
    }

    fn copy(&mut self, function: &Function, src: Def, result: Def) {
        self.add(src, self.bits[result]);
        let data = &function.instrs[function.defs[src].instr];
        if !matches!(data, InstrData::Const { .. } | InstrData::Undef { .. }) {
            self.add(result, self.bits[src]);
        }
    }

    fn instruction(&mut self, function: &Function, data: &InstrData) {
        match data {
            InstrData::Alu(alu) if alu.op == Op::Mov || alu.op.is_vec() => {
                alu.srcs.iter().for_each(|src| self.copy(function, src.def, alu.def));
            }
            InstrData::Alu(alu) if matches!(alu.op, Op::Bcsel | Op::B32csel) => {
                for (index, src) in alu.srcs.iter().enumerate() {
                    match index {
                        0 => self.set(src.def, BaseType::Bool),
                        _ => self.copy(function, src.def, alu.def),
                    }
                }
            }
            InstrData::Alu(alu) => {
                let info = alu.op.info();
                for (src, input) in alu.srcs.iter().zip(info.inputs) {
                    self.set(src.def, input.ty.base);
                }
                self.set(alu.def, info.output.ty.base);
            }
            InstrData::Tex(tex) => {
                for &(kind, def) in &tex.srcs {
                    self.set(def, tex_src_type(tex, kind));
                }
                self.set(tex.def, tex.dest_type.base);
            }
            InstrData::Intrinsic(intrinsic) => {
                if let (Some(def), IntrinsicOp::LoadInput | IntrinsicOp::LoadUniform) = (intrinsic.def, intrinsic.op) {
                    self.set(def, intrinsic.indices.dest_type().base);
                }
                for (index, &src) in intrinsic.srcs.iter().enumerate() {
                    self.set(src, intrinsic_src_type(intrinsic, index));
                }
            }
            InstrData::Phi { def, srcs } => srcs.iter().for_each(|&(_, src)| self.copy(function, src, *def)),
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
        }
    }
}

/// The type of a source of a texture instruction.
pub(super) fn tex_src_type(tex: &Tex, kind: TexSrcKind) -> BaseType {
    let texels = matches!(tex.op, TexOp::Txf | TexOp::TxfMs);
    match kind {
        TexSrcKind::Coord if texels || matches!(tex.op, TexOp::TxfMsFb | TexOp::SamplesIdentical) => BaseType::Int,
        TexSrcKind::Lod if texels || tex.op == TexOp::Txs => BaseType::Int,
        TexSrcKind::Coord
        | TexSrcKind::Lod
        | TexSrcKind::Projector
        | TexSrcKind::Comparator
        | TexSrcKind::Bias
        | TexSrcKind::MinLod
        | TexSrcKind::Ddx
        | TexSrcKind::Ddy
        | TexSrcKind::Backend1
        | TexSrcKind::Backend2 => BaseType::Float,
        TexSrcKind::Offset | TexSrcKind::MsIndex | TexSrcKind::Plane => BaseType::Int,
        TexSrcKind::TextureOffset
        | TexSrcKind::SamplerOffset
        | TexSrcKind::TextureHandle
        | TexSrcKind::SamplerHandle => BaseType::Uint,
    }
}

/// The type of a source of an intrinsic, where nir defines it: outputs, and offsets.
pub(super) fn intrinsic_src_type(intrinsic: &Intrinsic, index: usize) -> BaseType {
    use IntrinsicOp::*;
    if matches!(intrinsic.op, StoreOutput | StorePerViewOutput) && index == 0 {
        return intrinsic.indices.src_type().base;
    }
    let offset = match intrinsic.op {
        LoadInput | LoadOutput | LoadShared | LoadUniform | LoadConstant | LoadPushConstant | LoadGlobal
        | LoadGlobalConstant | LoadScratch | SharedAtomic | SharedAtomicSwap | GlobalAtomic | GlobalAtomicSwap => 0,
        LoadUbo
        | LoadSsbo
        | LoadPerVertexInput
        | LoadPerVertexOutput
        | LoadPerViewOutput
        | LoadInterpolatedInput
        | StoreOutput
        | StoreShared
        | StoreGlobal
        | StoreScratch
        | SsboAtomic
        | SsboAtomicSwap => 1,
        StoreSsbo | StorePerVertexOutput | StorePerViewOutput => 2,
        _ => return BaseType::Invalid,
    };
    if index == offset { BaseType::Int } else { BaseType::Invalid }
}
