//! Arithmetic: an operation of SPIR-V if one is equal for all operands, else the expansion of the operation's meaning
//! (`meaning`).

use ir3_compiler::nir::{Alu, Op};
use rspirv::dr::Operand;
use rspirv::spirv::{self, GlslStd450Op, Word};

use super::values::{Kind, wanted};
use super::{Emitter, NoForm, refs};

/// An operation of SPIR-V.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// An instruction of the core.
    Core(spirv::Op),
    /// An extended instruction for GLSL.
    Glsl(GlslStd450Op),
}

/// The operation of SPIR-V that does the same on values of this width, if there is one.
fn form(op: Op, bits: u8) -> Option<Form> {
    use Form::{Core, Glsl};
    let is_bool = bits == 1;
    // These extended instructions have no form for 64 bits, or none for other widths than 32.
    let narrow = bits <= 32;
    let word = bits == 32;
    Some(match op {
        Op::Inot if is_bool => Core(spirv::Op::LogicalNot),
        Op::Iand if is_bool => Core(spirv::Op::LogicalAnd),
        Op::Ior if is_bool => Core(spirv::Op::LogicalOr),
        Op::Ixor | Op::Ine if is_bool => Core(spirv::Op::LogicalNotEqual),
        Op::Ieq if is_bool => Core(spirv::Op::LogicalEqual),
        _ if is_bool => return None,
        Op::Inot => Core(spirv::Op::Not),
        Op::Iand => Core(spirv::Op::BitwiseAnd),
        Op::Ior => Core(spirv::Op::BitwiseOr),
        Op::Ixor => Core(spirv::Op::BitwiseXor),
        Op::Iadd | Op::Iadd64Split2Lo => Core(spirv::Op::IAdd),
        Op::Isub => Core(spirv::Op::ISub),
        Op::Imul | Op::Amul => Core(spirv::Op::IMul),
        Op::Ineg => Core(spirv::Op::SNegate),
        Op::Iabs => Glsl(GlslStd450Op::SAbs),
        Op::Isign => Glsl(GlslStd450Op::SSign),
        Op::Imin => Glsl(GlslStd450Op::SMin),
        Op::Imax => Glsl(GlslStd450Op::SMax),
        Op::Umin => Glsl(GlslStd450Op::UMin),
        Op::Umax => Glsl(GlslStd450Op::UMax),
        Op::BitCount if word => Core(spirv::Op::BitCount),
        Op::BitfieldReverse => Core(spirv::Op::BitReverse),
        Op::FindLsb if word => Glsl(GlslStd450Op::FindILsb),
        Op::UfindMsb if word => Glsl(GlslStd450Op::FindUMsb),
        Op::IfindMsb => Glsl(GlslStd450Op::FindSMsb),
        Op::Ieq => Core(spirv::Op::IEqual),
        Op::Ine => Core(spirv::Op::INotEqual),
        Op::Ilt => Core(spirv::Op::SLessThan),
        Op::Ige => Core(spirv::Op::SGreaterThanEqual),
        Op::Ult => Core(spirv::Op::ULessThan),
        Op::Uge => Core(spirv::Op::UGreaterThanEqual),
        Op::Flt => Core(spirv::Op::FOrdLessThan),
        Op::Fge => Core(spirv::Op::FOrdGreaterThanEqual),
        Op::Feq => Core(spirv::Op::FOrdEqual),
        Op::Fneu => Core(spirv::Op::FUnordNotEqual),
        Op::Fltu => Core(spirv::Op::FUnordLessThan),
        Op::Fgeu => Core(spirv::Op::FUnordGreaterThanEqual),
        Op::Fequ => Core(spirv::Op::FUnordEqual),
        Op::Fneo => Core(spirv::Op::FOrdNotEqual),
        Op::I2i8 | Op::I2i16 | Op::I2i32 | Op::I2i64 => Core(spirv::Op::SConvert),
        Op::U2u8 | Op::U2u16 | Op::U2u32 | Op::U2u64 => Core(spirv::Op::UConvert),
        Op::I2f16 | Op::I2f32 | Op::I2f64 => Core(spirv::Op::ConvertSToF),
        Op::U2f16 | Op::U2f32 | Op::U2f64 => Core(spirv::Op::ConvertUToF),
        Op::F2i8 | Op::F2i16 | Op::F2i32 | Op::F2i64 => Core(spirv::Op::ConvertFToS),
        Op::F2u8 | Op::F2u16 | Op::F2u32 | Op::F2u64 => Core(spirv::Op::ConvertFToU),
        Op::F2f16 | Op::F2f16Rtne | Op::F2f32 | Op::F2f64 => Core(spirv::Op::FConvert),
        Op::Fneg => Core(spirv::Op::FNegate),
        Op::Fadd => Core(spirv::Op::FAdd),
        Op::Fsub => Core(spirv::Op::FSub),
        Op::Fmul => Core(spirv::Op::FMul),
        Op::Fdiv => Core(spirv::Op::FDiv),
        Op::Fmod => Core(spirv::Op::FMod),
        Op::Frem => Core(spirv::Op::FRem),
        Op::Fdot2 | Op::Fdot3 | Op::Fdot4 => Core(spirv::Op::Dot),
        Op::Fquantize2f16 if word => Core(spirv::Op::QuantizeToF16),
        Op::Fabs => Glsl(GlslStd450Op::FAbs),
        Op::Fsign => Glsl(GlslStd450Op::FSign),
        Op::Frsq => Glsl(GlslStd450Op::InverseSqrt),
        Op::Fsqrt => Glsl(GlslStd450Op::Sqrt),
        Op::Fexp2 if narrow => Glsl(GlslStd450Op::Exp2),
        Op::Flog2 if narrow => Glsl(GlslStd450Op::Log2),
        Op::Fsin if narrow => Glsl(GlslStd450Op::Sin),
        Op::Fcos if narrow => Glsl(GlslStd450Op::Cos),
        Op::Fpow if narrow => Glsl(GlslStd450Op::Pow),
        Op::Ftrunc => Glsl(GlslStd450Op::Trunc),
        Op::Fceil => Glsl(GlslStd450Op::Ceil),
        Op::Ffloor => Glsl(GlslStd450Op::Floor),
        Op::Ffract => Glsl(GlslStd450Op::Fract),
        Op::FroundEven => Glsl(GlslStd450Op::RoundEven),
        Op::Fmin => Glsl(GlslStd450Op::NMin),
        Op::Fmax => Glsl(GlslStd450Op::NMax),
        Op::Ffma => Glsl(GlslStd450Op::Fma),
        Op::Flrp => Glsl(GlslStd450Op::FMix),
        Op::Ldexp => Glsl(GlslStd450Op::Ldexp),
        Op::PackHalf2x16 => Glsl(GlslStd450Op::PackHalf2x16),
        Op::UnpackHalf2x16 => Glsl(GlslStd450Op::UnpackHalf2x16),
        Op::PackSnorm2x16 if word => Glsl(GlslStd450Op::PackSnorm2x16),
        Op::PackUnorm2x16 if word => Glsl(GlslStd450Op::PackUnorm2x16),
        Op::PackSnorm4x8 => Glsl(GlslStd450Op::PackSnorm4x8),
        Op::PackUnorm4x8 => Glsl(GlslStd450Op::PackUnorm4x8),
        Op::UnpackSnorm2x16 => Glsl(GlslStd450Op::UnpackSnorm2x16),
        Op::UnpackUnorm2x16 => Glsl(GlslStd450Op::UnpackUnorm2x16),
        Op::UnpackSnorm4x8 => Glsl(GlslStd450Op::UnpackSnorm4x8),
        Op::UnpackUnorm4x8 => Glsl(GlslStd450Op::UnpackUnorm4x8),
        // Bit casts between vectors and scalars: the first component has the low bits.
        Op::Pack64_2x32 | Op::Pack64_4x16 | Op::Pack32_2x16 | Op::Pack32_4x8 => Core(spirv::Op::Bitcast),
        Op::Unpack64_2x32 | Op::Unpack64_4x16 | Op::Unpack32_2x16 | Op::Unpack32_4x8 => Core(spirv::Op::Bitcast),
        _ => return None,
    })
}

impl Emitter<'_> {
    /// Emits an arithmetic instruction.
    pub fn alu(&mut self, alu: &Alu) -> Result<(), NoForm> {
        let ty = self.ty(alu.def);
        let id = self.ids[alu.def];
        if self.original(alu.def) != alu.def {
            return Ok(());
        }
        let info = alu.op.info();
        let width = info.width_source().map_or(ty.bits, |i| self.function.defs[alu.srcs[i].def].bit_size);
        let type_id = self.type_id(ty);
        if alu.op == Op::Mov || alu.op.is_vec() {
            let parts: Vec<(_, u8)> = match alu.op {
                Op::Mov => (0..ty.components).map(|i| (alu.srcs[0].def, alu.srcs[0].swizzle[usize::from(i)])).collect(),
                _ => alu.srcs.iter().map(|src| (src.def, src.swizzle[0])).collect(),
            };
            let parts: Vec<Word> = parts.into_iter().map(|(def, c)| self.component(def, c, ty.kind)).collect();
            match parts[..] {
                // A component, with a name of its own since phis may read it.
                [part] => self.emit_as(id, spirv::Op::CopyObject, type_id, refs(&[part])),
                _ => self.emit_as(id, spirv::Op::CompositeConstruct, type_id, refs(&parts)),
            }
            return Ok(());
        }
        if alu.op == Op::Bcsel {
            let condition = self.source(&alu.srcs[0], ty.components, Kind::Bool);
            let yes = self.source(&alu.srcs[1], ty.components, ty.kind);
            let no = self.source(&alu.srcs[2], ty.components, ty.kind);
            self.emit_as(id, spirv::Op::Select, type_id, refs(&[condition, yes, no]));
            return Ok(());
        }
        let same_width =
            ty.bits == width && matches!(alu.op.name().split_at(2).0, "i2" | "u2") && ty.kind == Kind::Uint;
        let Some(form) = form(alu.op, width).filter(|_| !same_width && ty.kind.holds(ty.bits)) else {
            return self.composed(alu);
        };
        // A float of the same width is no conversion there.
        let is_copy = ty.bits == width && matches!(form, Form::Core(spirv::Op::FConvert));
        let form = if is_copy { Form::Core(spirv::Op::CopyObject) } else { form };
        self.rounds_halves_to_even |= alu.op == Op::F2f16Rtne;
        let mut operands = Vec::new();
        for (i, (src, input)) in alu.srcs.iter().zip(info.inputs).enumerate() {
            let bits = self.function.defs[src.def].bit_size;
            operands.push(self.source(src, info.source_components(i, ty.components), wanted(input.ty.base, bits)));
        }
        self.emit_form(id, form, type_id, &operands);
        if alu.exact && ty.kind == Kind::Float {
            self.decorate(id, spirv::Decoration::NoContraction, &[]);
        }
        Ok(())
    }

    pub fn emit_form(&mut self, id: Word, form: Form, ty: Word, operands: &[Word]) {
        match form {
            Form::Core(op) => self.emit_as(id, op, ty, refs(operands)),
            Form::Glsl(op) => {
                let mut list = vec![Operand::IdRef(self.glsl), Operand::LiteralExtInstInteger(op as u32)];
                list.extend(refs(operands));
                self.emit_as(id, spirv::Op::ExtInst, ty, list);
            }
        }
    }

    /// Operations of several instructions.
    fn composed(&mut self, alu: &Alu) -> Result<(), NoForm> {
        let ty = self.ty(alu.def);
        let id = self.ids[alu.def];
        let type_id = self.type_id(ty);
        let info = alu.op.info();
        let float = |this: &mut Self, value: f64| {
            let bits = match ty.bits {
                16 => half::f16::from_f64(value).to_bits().into(),
                32 => (value as f32).to_bits().into(),
                _ => value.to_bits(),
            };
            this.constant(ty, bits)
        };
        let operand = |this: &mut Self, i: usize| {
            let src = &alu.srcs[i];
            let bits = this.function.defs[src.def].bit_size;
            this.source(src, info.source_components(i, ty.components), wanted(info.inputs[i].ty.base, bits))
        };
        match alu.op {
            Op::Frcp => {
                let (one, x) = (float(self, 1.0), operand(self, 0));
                self.emit_as(id, spirv::Op::FDiv, type_id, refs(&[one, x]));
            }
            Op::Fsat | Op::FsatSigned => {
                let low = float(self, if alu.op == Op::Fsat { 0.0 } else { -1.0 });
                let operands = [operand(self, 0), low, float(self, 1.0)];
                self.emit_form(id, Form::Glsl(GlslStd450Op::NClamp), type_id, &operands);
            }
            Op::FclampPos => {
                let operands = [operand(self, 0), float(self, 0.0)];
                self.emit_form(id, Form::Glsl(GlslStd450Op::NMax), type_id, &operands);
            }
            Op::B2f16 | Op::B2f32 | Op::B2f64 if self.function.defs[alu.srcs[0].def].bit_size == 1 => {
                let operands = [operand(self, 0), float(self, 1.0), float(self, 0.0)];
                self.emit_as(id, spirv::Op::Select, type_id, refs(&operands));
            }
            Op::B2i8 | Op::B2i16 | Op::B2i32 | Op::B2i64 if self.function.defs[alu.srcs[0].def].bit_size == 1 => {
                let operands = [operand(self, 0), self.constant(ty, 1), self.constant(ty, 0)];
                self.emit_as(id, spirv::Op::Select, type_id, refs(&operands));
            }
            Op::IcselEqz => {
                let bits = self.function.defs[alu.srcs[0].def].bit_size;
                let bools = self.type_id(super::Ty::BOOL.of(ty.components));
                let condition = if bits == 1 {
                    let tested = self.source(&alu.srcs[0], ty.components, Kind::Bool);
                    self.emit(spirv::Op::LogicalNot, bools, refs(&[tested]))
                } else {
                    let tested = super::Ty::uint(bits).of(ty.components);
                    let sources = [self.source(&alu.srcs[0], ty.components, Kind::Uint), self.constant(tested, 0)];
                    self.emit(spirv::Op::IEqual, bools, refs(&sources))
                };
                let yes = self.source(&alu.srcs[1], ty.components, ty.kind);
                let no = self.source(&alu.srcs[2], ty.components, ty.kind);
                self.emit_as(id, spirv::Op::Select, type_id, refs(&[condition, yes, no]));
            }
            Op::Slt | Op::Sge | Op::Seq | Op::Sne => {
                let compare = match alu.op {
                    Op::Slt => spirv::Op::FOrdLessThan,
                    Op::Sge => spirv::Op::FOrdGreaterThanEqual,
                    Op::Seq => spirv::Op::FOrdEqual,
                    _ => spirv::Op::FUnordNotEqual,
                };
                let sources = [operand(self, 0), operand(self, 1)];
                let bools = self.type_id(super::Ty::BOOL.of(ty.components));
                let condition = self.emit(compare, bools, refs(&sources));
                let operands = [condition, float(self, 1.0), float(self, 0.0)];
                self.emit_as(id, spirv::Op::Select, type_id, refs(&operands));
            }
            Op::UnpackHalf2x16SplitX | Op::UnpackHalf2x16SplitY if ty.components == 1 => {
                let word = operand(self, 0);
                let pair = self.type_id(ty.of(2));
                let halves = self.b.id();
                self.emit_form(halves, Form::Glsl(GlslStd450Op::UnpackHalf2x16), pair, &[word]);
                let component = u32::from(alu.op == Op::UnpackHalf2x16SplitY);
                let operands = vec![Operand::IdRef(halves), Operand::LiteralBit32(component)];
                self.emit_as(id, spirv::Op::CompositeExtract, type_id, operands);
            }
            Op::PackHalf2x16Split => {
                let parts = [operand(self, 0), operand(self, 1)];
                let pair = self.type_id(super::Ty::F32.of(2));
                let halves = self.emit(spirv::Op::CompositeConstruct, pair, refs(&parts));
                self.emit_form(id, Form::Glsl(GlslStd450Op::PackHalf2x16), type_id, &[halves]);
            }
            _ => return self.meaning(alu),
        }
        Ok(())
    }
}
