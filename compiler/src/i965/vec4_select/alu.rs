//! Arithmetic, comparisons and selections.

use super::Selector;
use crate::features::Feature;
use crate::i965::vec4::{Cmod, Dst, DstFile, Instr, Mask, Opcode, OpcodeKind, Predicate, RegType, Src};
use crate::nir::{Alu, AluSrc, BaseType, Op};
use crate::select::SelectError;

/// The instruction of an operation on sources of a type.
pub(crate) struct Translation {
    /// The operation.
    pub(crate) opcode: Opcode,
    /// The type of the sources.
    pub(crate) ty: RegType,
    /// The type of the result.
    pub(crate) dst: RegType,
    /// The conditional modifier.
    pub(crate) cmod: Option<Cmod>,
}

/// The instruction of an operation on each channel, if there is one.
pub(crate) fn translation(op: Op) -> Option<Translation> {
    use Opcode::{
        Add, And, Asr, Cmp, Cos, Dp2, Dp3, Dp4, Exp2, Frc, Log2, Mad, Mov, Mul, Not, Or, Rcp, Rndd, Rnde, Rndz, Rsq,
        Sel, Shl, Shr, Sin, Sqrt, Xor,
    };
    use RegType::{D, F, Ud};
    let plain = |opcode, ty| Translation { opcode, ty, dst: ty, cmod: None };
    let convert = |dst, ty| Translation { opcode: Mov, ty, dst, cmod: None };
    let with = |opcode, ty, cmod| Translation { opcode, ty, dst: ty, cmod: Some(cmod) };
    Some(match op {
        Op::Mov => plain(Mov, Ud),
        Op::Fneg | Op::Fabs | Op::Fsat => plain(Mov, F),
        Op::Ineg | Op::Iabs => plain(Mov, D),
        Op::Fadd | Op::Fsub => plain(Add, F),
        Op::Fmul => plain(Mul, F),
        Op::Ffma | Op::FfmaWeak => plain(Mad, F),
        Op::Fmin => with(Sel, F, Cmod::L),
        Op::Fmax => with(Sel, F, Cmod::Ge),
        Op::Imin => with(Sel, D, Cmod::L),
        Op::Imax => with(Sel, D, Cmod::Ge),
        Op::Umin => with(Sel, Ud, Cmod::L),
        Op::Umax => with(Sel, Ud, Cmod::Ge),
        Op::Frcp => plain(Rcp, F),
        Op::Frsq => plain(Rsq, F),
        Op::Fsqrt => plain(Sqrt, F),
        Op::Fexp2 => plain(Exp2, F),
        Op::Flog2 => plain(Log2, F),
        Op::Fsin => plain(Sin, F),
        Op::Fcos => plain(Cos, F),
        Op::Ffloor => plain(Rndd, F),
        Op::Ffract => plain(Frc, F),
        Op::Ftrunc => plain(Rndz, F),
        Op::FroundEven => plain(Rnde, F),
        Op::Fdot2 => plain(Dp2, F),
        Op::Fdot3 => plain(Dp3, F),
        Op::Fdot4 => plain(Dp4, F),
        Op::Iadd | Op::Isub => plain(Add, D),
        Op::Imul => plain(Mul, D),
        Op::Iand => plain(And, Ud),
        Op::Ior => plain(Or, Ud),
        Op::Ixor => plain(Xor, Ud),
        Op::Inot => plain(Not, Ud),
        Op::Ishl => plain(Shl, D),
        Op::Ishr => plain(Asr, D),
        Op::Ushr => plain(Shr, Ud),
        Op::Flt => with(Cmp, F, Cmod::L),
        Op::Fge => with(Cmp, F, Cmod::Ge),
        Op::Feq => with(Cmp, F, Cmod::Z),
        Op::Fneu => with(Cmp, F, Cmod::Nz),
        Op::Ilt => with(Cmp, D, Cmod::L),
        Op::Ige => with(Cmp, D, Cmod::Ge),
        Op::Ieq => with(Cmp, D, Cmod::Z),
        Op::Ine => with(Cmp, D, Cmod::Nz),
        Op::Ult => with(Cmp, Ud, Cmod::L),
        Op::Uge => with(Cmp, Ud, Cmod::Ge),
        Op::I2f32 => convert(F, D),
        Op::U2f32 => convert(F, Ud),
        Op::F2i32 => convert(D, F),
        Op::F2u32 => convert(Ud, F),
        _ => return None,
    })
}

impl Selector<'_> {
    pub(super) fn alu(&mut self, alu: &Alu) -> Result<(), SelectError> {
        for src in &alu.srcs {
            let bits = self.code.function.defs[src.def].bit_size;
            if !matches!(bits, 1 | 32) || self.code.components(src.def) > 4 {
                return Err(self.code.unsupported(format!("a source of {bits} bits or of more than 4 components")));
            }
        }
        let components = self.code.components(alu.def);
        let mask = Mask::first(components);
        match alu.op {
            op if op.is_vec() => {
                self.vector(alu);
                return Ok(());
            }
            Op::Bcsel => {
                self.bcsel(alu, components);
                return Ok(());
            }
            Op::B2f32 | Op::B2i32 => {
                let one = if alu.op == Op::B2f32 { 1.0_f32.to_bits() } else { 1 };
                let src = self.swizzled(&alu.srcs[0], components, RegType::Ud);
                let file = DstFile::Vgrf(self.define(alu.def));
                let one = Src::immediate(one, RegType::Ud);
                self.code.emit(Opcode::And, Dst { file, mask, ty: RegType::Ud }, &[src, one]);
                return Ok(());
            }
            _ => {}
        }
        let Some(Translation { opcode, ty, dst, cmod }) = translation(alu.op) else {
            return Err(self.code.unsupported("not supported in vec4"));
        };
        let info = alu.op.info();
        let is_bool = self.code.function.defs[alu.srcs[0].def].bit_size == 1;
        if is_bool && info.inputs[0].ty.base == BaseType::Int && !matches!(alu.op, Op::Ieq | Op::Ine | Op::Inot) {
            return Err(self.code.unsupported("arithmetic on bools"));
        }
        let read = |at: usize| match opcode.kind() {
            OpcodeKind::Dot(count) => count,
            _ => info.source_components(at, components),
        };
        let mut srcs: Vec<Src> = Vec::with_capacity(3);
        let last = alu.srcs.len() - 1;
        // The second source of a sum is subtracted by a modifier, which immediates do not have.
        let subtracts = matches!(alu.op, Op::Fsub | Op::Isub);
        for (at, src) in alu.srcs.iter().enumerate() {
            let immediate = match opcode.sources() == 2 && at == last && !subtracts {
                true => self.immediate(src, read(at), ty),
                false => None,
            };
            srcs.push(match immediate {
                Some(src) => src,
                None if ty == RegType::F => self.float(src, read(at)),
                None => self.swizzled(src, read(at), ty),
            });
        }
        match alu.op {
            Op::Fneg | Op::Ineg | Op::Fsub | Op::Isub => srcs[last].negate ^= true,
            Op::Fabs | Op::Iabs => (srcs[last].abs, srcs[last].negate) = (true, false),
            Op::Ffma | Op::FfmaWeak => srcs.rotate_right(1),
            _ => {}
        }
        let file = DstFile::Vgrf(self.define(alu.def));
        let instr = self.code.emit(opcode, Dst { file, mask, ty: dst }, &srcs);
        instr.cmod = cmod;
        instr.saturate = alu.op == Op::Fsat;
        Ok(())
    }

    /// A vector: a move for each register that it comes from.
    fn vector(&mut self, alu: &Alu) {
        let register = self.define(alu.def);
        let mut left = Mask::first(alu.srcs.len() as u8);
        for i in 0..alu.srcs.len() {
            if !left.has(i) {
                continue;
            }
            let from = self.location(alu.srcs[i].def);
            let mut swizzle = [from.first + alu.srcs[i].swizzle[0]; 4];
            let mut mask = Mask::NONE;
            for (j, src) in alu.srcs.iter().enumerate() {
                let other = self.location(src.def);
                if left.has(j) && other.file == from.file {
                    swizzle[j] = other.first + src.swizzle[0];
                    mask |= Mask(1 << j);
                }
            }
            left = left.without(mask);
            let dst = Dst { file: DstFile::Vgrf(register), mask, ty: RegType::Ud };
            self.code.emit(Opcode::Mov, dst, &[Src::new(from.file, crate::i965::vec4::Swizzle(swizzle), RegType::Ud)]);
        }
    }

    fn bcsel(&mut self, alu: &Alu, components: u8) {
        let (condition, inverse) = self.without_nots(&alu.srcs[0], components);
        let condition = self.swizzled(&condition, components, RegType::D);
        let set = self.code.emit(Opcode::Cmp, Dst::null(RegType::D), &[condition, Src::immediate(0, RegType::D)]);
        set.cmod = Some(Cmod::Nz);
        let a = self.swizzled(&alu.srcs[1], components, RegType::Ud);
        let b = self.operand(&alu.srcs[2], components);
        let mask = Mask::first(components);
        let predicate = match mask.single() {
            Some(channel) if self.features.contains(Feature::ReplicateSel) => Predicate::replicate(channel),
            _ => Predicate::Normal,
        };
        let dst = Dst { file: DstFile::Vgrf(self.define(alu.def)), mask, ty: RegType::Ud };
        let sel: &mut Instr = self.code.emit(Opcode::Sel, dst, &[a, b]);
        sel.predicate = Some((predicate, inverse));
    }

    fn operand(&mut self, src: &AluSrc, components: u8) -> Src {
        match self.immediate(src, components, RegType::Ud) {
            Some(immediate) => immediate,
            None => self.swizzled(src, components, RegType::Ud),
        }
    }
}
