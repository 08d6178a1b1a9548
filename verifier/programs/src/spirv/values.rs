//! nir values in a SPIR-V module: their types, constants, and loads of operands.

use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::{AluSrc, BaseType, Def, Function, InstrData, IntrinsicOp, Op, TexSrcKind};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Word};

use super::{Emitter, refs};

/// The base kind of a SPIR-V type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Bool,
    #[default]
    Uint,
    Float,
}

/// The SPIR-V type of a value: base kind, width in bits, number of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ty {
    pub kind: Kind,
    pub bits: u8,
    pub components: u8,
}

impl Ty {
    pub const BOOL: Self = Self { kind: Kind::Bool, bits: 1, components: 1 };
    pub const U32: Self = Self::uint(32);
    pub const F32: Self = Self { kind: Kind::Float, bits: 32, components: 1 };

    pub const fn uint(bits: u8) -> Self {
        Self { kind: Kind::Uint, bits, components: 1 }
    }

    /// Returns the type with this many components.
    pub const fn of(self, components: u8) -> Self {
        Self { components, ..self }
    }
}

/// A converted form of a nir value, of which a block computes one and reuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reading {
    /// One component, as this kind.
    Component(Def, u8, Kind),
    /// The whole, as this kind.
    Whole(Def, Kind),
}

impl Kind {
    /// Returns true if there are values of this kind and width.
    pub fn holds(self, bits: u8) -> bool {
        match self {
            Self::Bool => bits == 1,
            Self::Uint => bits > 1,
            Self::Float => bits >= 16,
        }
    }
}

/// The kind that an operand of a nir operation wants; none if it takes any bits.
pub(super) fn wanted(base: BaseType, bits: u8) -> Kind {
    match base {
        _ if bits == 1 => Kind::Bool,
        BaseType::Float => Kind::Float,
        _ => Kind::Uint,
    }
}

/// Returns true for operations that copy bits of any type.
pub(super) fn is_untyped(op: Op) -> bool {
    op.is_vec() || matches!(op, Op::Mov | Op::Bcsel | Op::IcselEqz)
}

/// Chooses the kind of each value: that of its definition. For operations that copy bits: float, if a source or a use
/// is a float, else integer.
pub(super) fn kinds(function: &Function) -> SecondaryMap<Def, Kind> {
    let mut kinds: SecondaryMap<Def, Kind> = SecondaryMap::new();
    let mut free: SecondaryMap<Def, bool> = SecondaryMap::new();
    for (_, instr) in function.instrs_in_order() {
        let Some(def) = function.instrs[instr].def() else { continue };
        let bits = function.defs[def].bit_size;
        kinds[def] = match &function.instrs[instr] {
            _ if bits == 1 => Kind::Bool,
            InstrData::Alu(alu) if !is_untyped(alu.op) => wanted(alu.op.info().output.ty.base, bits),
            InstrData::Tex(tex) => wanted(tex.dest_type.base, bits),
            InstrData::Intrinsic(intrinsic) if !is_free(intrinsic.op) => match intrinsic.op {
                IntrinsicOp::LoadFragCoord | IntrinsicOp::LoadSamplePos => Kind::Float,
                op if is_derivative(op) => Kind::Float,
                IntrinsicOp::ImageLoad => wanted(intrinsic.indices.dest_type().base, bits),
                op if op.info().indices.contains(&ir3_compiler::nir::IndexKind::ReductionOp) => {
                    wanted(intrinsic.indices.reduction_op().info().output.ty.base, bits)
                }
                _ => Kind::Uint,
            },
            _ => {
                free[def] = true;
                Kind::Uint
            }
        };
    }
    // Kinds only go from integers to floats, so this ends.
    let mut changed = true;
    while std::mem::take(&mut changed) {
        let mut float = |def: Def, kinds: &mut SecondaryMap<Def, Kind>| {
            // Few devices have floats of 64 bits: operations that pass their bits on use integers.
            if free[def] && kinds[def] == Kind::Uint && function.defs[def].bit_size < 64 {
                kinds[def] = Kind::Float;
                changed = true;
            }
        };
        for (_, instr) in function.instrs_in_order() {
            match &function.instrs[instr] {
                InstrData::Alu(alu) if is_untyped(alu.op) => {
                    let skipped = usize::from(matches!(alu.op, Op::Bcsel | Op::IcselEqz));
                    let is_float = kinds[alu.def] == Kind::Float
                        || alu.srcs[skipped..]
                            .iter()
                            .any(|src| kinds[src.def] == Kind::Float && !is_const(function, src.def));
                    if is_float {
                        float(alu.def, &mut kinds);
                        alu.srcs[skipped..].iter().for_each(|src| float(src.def, &mut kinds));
                    }
                }
                InstrData::Alu(alu) => {
                    for (src, input) in alu.srcs.iter().zip(alu.op.info().inputs) {
                        if input.ty.base == BaseType::Float {
                            float(src.def, &mut kinds);
                        }
                    }
                }
                InstrData::Phi { def, srcs }
                    if kinds[*def] == Kind::Float
                        || srcs.iter().any(|&(_, src)| kinds[src] == Kind::Float && !is_const(function, src)) =>
                {
                    float(*def, &mut kinds);
                    srcs.iter().for_each(|&(_, src)| float(src, &mut kinds));
                }
                InstrData::Intrinsic(intrinsic) if is_derivative(intrinsic.op) => float(intrinsic.srcs[0], &mut kinds),
                InstrData::Tex(tex) => {
                    let is_fetch = !tex.op.needs_sampler();
                    for &(kind, def) in &tex.srcs {
                        let float_source = matches!(
                            kind,
                            TexSrcKind::Comparator
                                | TexSrcKind::Bias
                                | TexSrcKind::MinLod
                                | TexSrcKind::Ddx
                                | TexSrcKind::Ddy
                                | TexSrcKind::Projector
                        ) || matches!(kind, TexSrcKind::Coord | TexSrcKind::Lod) && !is_fetch;
                        if float_source {
                            float(def, &mut kinds);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    kinds
}

fn is_const(function: &Function, def: Def) -> bool {
    function.as_const(def).is_some()
}

pub(super) fn is_derivative(op: IntrinsicOp) -> bool {
    use IntrinsicOp::{Ddx, DdxCoarse, DdxFine, Ddy, DdyCoarse, DdyFine};
    matches!(op, Ddx | DdxCoarse | DdxFine | Ddy | DdyCoarse | DdyFine)
}

/// Returns true for intrinsics whose result may have either kind: inputs, local arrays, and moves of values between
/// lanes.
fn is_free(op: IntrinsicOp) -> bool {
    use IntrinsicOp::{
        LoadInput, LoadInterpolatedInput, QuadBroadcast, QuadSwapDiagonal, QuadSwapHorizontal, QuadSwapVertical,
    };
    use IntrinsicOp::{ReadFirstInvocation, ReadInvocation, Shuffle, ShuffleDown, ShuffleUp, ShuffleXor};
    matches!(
        op,
        LoadInput
            | LoadInterpolatedInput
            | ReadFirstInvocation
            | ReadInvocation
            | Shuffle
            | ShuffleDown
            | ShuffleUp
            | ShuffleXor
            | QuadBroadcast
            | QuadSwapDiagonal
            | QuadSwapHorizontal
            | QuadSwapVertical
    )
}

impl Emitter<'_> {
    /// The type of a value.
    pub fn ty(&self, def: Def) -> Ty {
        let data = &self.function.defs[def];
        Ty { kind: self.kinds[def], bits: data.bit_size, components: data.num_components }
    }

    /// The id of a type in the module.
    pub fn type_id(&mut self, ty: Ty) -> Word {
        let scalar = match (ty.kind, ty.bits) {
            (Kind::Bool, _) => self.b.type_bool(),
            (Kind::Uint, bits) => {
                match bits {
                    8 => self.capability(Capability::Int8),
                    16 => self.capability(Capability::Int16),
                    64 => self.capability(Capability::Int64),
                    _ => {}
                }
                self.b.type_int(bits.into(), 0)
            }
            (Kind::Float, bits) => {
                match bits {
                    16 => self.capability(Capability::Float16),
                    64 => self.capability(Capability::Float64),
                    _ => {}
                }
                self.b.type_float(bits.into(), None)
            }
        };
        match ty.components {
            1 => scalar,
            components => self.b.type_vector(scalar, components.into()),
        }
    }

    /// The id of a constant with the same value in each component.
    pub fn constant(&mut self, ty: Ty, value: u64) -> Word {
        if let Some(&id) = self.constants.get(&(ty, value)) {
            return id;
        }
        let type_id = self.type_id(ty);
        let id = if ty.components > 1 {
            let scalar = self.constant(ty.of(1), value);
            self.b.constant_composite(type_id, vec![scalar; ty.components.into()])
        } else {
            match (ty.kind, ty.bits) {
                (Kind::Bool, _) if value & 1 != 0 => self.b.constant_true(type_id),
                (Kind::Bool, _) => self.b.constant_false(type_id),
                (_, 64) => self.b.constant_bit64(type_id, value),
                (_, bits) => self.b.constant_bit32(type_id, (value & ((1 << bits) - 1)) as u32),
            }
        };
        self.constants.insert((ty, value), id);
        id
    }

    /// The id of a 32-bit integer constant.
    pub fn number(&mut self, value: u32) -> Word {
        self.constant(Ty::U32, value.into())
    }

    /// The value of which `def` is a plain copy, or `def` itself.
    pub fn original(&self, mut def: Def) -> Def {
        while let InstrData::Alu(alu) = &self.function.instrs[self.function.defs[def].instr]
            && alu.op == Op::Mov
            && self.function.defs[alu.srcs[0].def].num_components == self.function.defs[def].num_components
            && alu.srcs[0].swizzle[..usize::from(self.function.defs[def].num_components)]
                .iter()
                .enumerate()
                .all(|(i, &c)| usize::from(c) == i)
        {
            def = alu.srcs[0].def;
        }
        def
    }

    /// The id of a whole value as this kind.
    pub fn read(&mut self, def: Def, kind: Kind) -> Word {
        let def = self.original(def);
        if let Some(values) = self.function.as_const(def) {
            let ty = Ty { kind, ..self.ty(def) };
            if let [value] = values {
                return self.constant(ty, *value);
            }
            let parts: Vec<Word> = values.iter().map(|&value| self.constant(ty.of(1), value)).collect();
            let ty = self.type_id(ty);
            return self.b.constant_composite(ty, parts);
        }
        if self.kinds[def] == kind {
            return self.ids[def];
        }
        if let Some(&id) = self.readings.get(&Reading::Whole(def, kind)) {
            return id;
        }
        let ty = self.type_id(Ty { kind, ..self.ty(def) });
        let id = self.emit(spirv::Op::Bitcast, ty, refs(&[self.ids[def]]));
        self.readings.insert(Reading::Whole(def, kind), id);
        id
    }

    /// The id of one component of a value as this kind.
    pub fn component(&mut self, def: Def, component: u8, kind: Kind) -> Word {
        let def = self.original(def);
        let ty = self.ty(def);
        if let Some(values) = self.function.as_const(def) {
            let value = values[usize::from(component)];
            return self.constant(Ty { kind, ..ty }.of(1), value);
        }
        if ty.components == 1 {
            return self.read(def, kind);
        }
        if let Some(&id) = self.readings.get(&Reading::Component(def, component, kind)) {
            return id;
        }
        let id = if kind == ty.kind {
            let type_id = self.type_id(ty.of(1));
            let operands = vec![Operand::IdRef(self.ids[def]), Operand::LiteralBit32(component.into())];
            self.emit(spirv::Op::CompositeExtract, type_id, operands)
        } else {
            let bits = self.component(def, component, ty.kind);
            let type_id = self.type_id(Ty { kind, ..ty }.of(1));
            self.emit(spirv::Op::Bitcast, type_id, refs(&[bits]))
        };
        self.readings.insert(Reading::Component(def, component, kind), id);
        id
    }

    /// The id of a source of an arithmetic instruction, with this number of components.
    pub fn source(&mut self, src: &AluSrc, components: u8, kind: Kind) -> Word {
        let swizzle = &src.swizzle[..usize::from(components)];
        let ty = self.ty(src.def);
        if components == 1 {
            return self.component(src.def, swizzle[0], kind);
        }
        if ty.components == components && swizzle.iter().enumerate().all(|(i, &c)| usize::from(c) == i) {
            return self.read(src.def, kind);
        }
        let wanted = Ty { kind, ..ty }.of(components);
        if ty.components == 1 || self.function.as_const(src.def).is_some() {
            let parts: Vec<Word> = swizzle.iter().map(|&c| self.component(src.def, c, kind)).collect();
            let type_id = self.type_id(wanted);
            return self.emit(spirv::Op::CompositeConstruct, type_id, refs(&parts));
        }
        let whole = self.read(src.def, kind);
        let type_id = self.type_id(wanted);
        let mut operands = refs(&[whole, whole]);
        operands.extend(swizzle.iter().map(|&c| Operand::LiteralBit32(c.into())));
        self.emit(spirv::Op::VectorShuffle, type_id, operands)
    }
}
