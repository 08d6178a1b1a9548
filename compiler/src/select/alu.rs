//! Selection of arithmetic, one component at a time.
//!
//! The width of an operation decides first: [`int64`] and [`int8`] build operations that the machine has only for 32
//! and 16 bits. The other files, [`float`], [`integer`], [`bits`], [`convert`] and [`pack`], work on full or half
//! registers; the register class is the width.

mod bits;
mod compare;
mod convert;
mod divide;
mod dot;
mod double;
mod float;
mod int64;
mod int8;
mod integer;
mod multiply;
mod pack;

use super::SelectError;
use super::context::{Context, Word, words_per_component};
use crate::ir3::{Condition, InstrFlags, Mods, Opcode, RegClass, Src};
use crate::nir::{Alu, BaseType, Op};

/// Translates an arithmetic instruction.
pub(super) fn emit(ctx: &mut Context<'_>, alu: &Alu) -> Result<(), SelectError> {
    let components = ctx.components(alu.def);
    if alu.op == Op::Mov {
        for component in 0..components {
            copy(ctx, alu, 0, component, component);
        }
        return Ok(());
    }
    if alu.op.is_vec() {
        for component in 0..components {
            copy(ctx, alu, usize::from(component), 0, component);
        }
        return Ok(());
    }
    if pack::emit(ctx, alu)? {
        return Ok(());
    }
    let info = alu.op.info();
    if !info.is_per_component() {
        return Err(ctx.unsupported("an operation across components, which is lowered before ir3"));
    }
    for component in 0..components {
        Scalar { ctx, alu, component }.emit()?;
    }
    Ok(())
}

/// Copies one component of a source unchanged.
fn copy(ctx: &mut Context<'_>, alu: &Alu, src: usize, from: u8, to: u8) {
    let words = words_per_component(ctx.bits(alu.def));
    let from = usize::from(alu.srcs[src].swizzle[usize::from(from)]);
    for word in 0..words {
        let found = ctx.word(alu.srcs[src].def, from * words + word);
        ctx.set_word(alu.def, usize::from(to) * words + word, found);
    }
}

/// One component of one arithmetic instruction.
struct Scalar<'c, 'a> {
    ctx: &'c mut Context<'a>,
    alu: &'c Alu,
    component: u8,
}

impl<'a> Scalar<'_, 'a> {
    fn emit(&mut self) -> Result<(), SelectError> {
        let info = self.alu.op.info();
        let width = info.width_source().map_or(32, |index| self.bits(index));
        let wide =
            width == 64 || self.ctx.bits(self.alu.def) == 64 || (0..info.inputs.len()).any(|i| self.bits(i) == 64);
        let float = |base: BaseType| base == BaseType::Float;
        if wide && (float(info.output.ty.base) || info.inputs.iter().any(|input| float(input.ty.base))) {
            return self.wide_float();
        }
        let done = if wide {
            self.int64()?
        } else {
            self.select_op()?
                || self.convert_op()?
                || self.compare_op()
                || (width == 8 && self.int8()?)
                || self.float_op()?
                || self.one_bit(width)?
                || self.multiply_op()
                || self.divide_op(width)
                || self.bits_op(width)?
                || self.dot_op()
                || self.integer_op()
        };
        if done { Ok(()) } else { Err(self.ctx.unsupported(format!("not supported for {width} bits"))) }
    }

    /// Selects float operations with a 64-bit operand or result.
    fn wide_float(&mut self) -> Result<(), SelectError> {
        let info = self.alu.op.info();
        if self.double_op() {
            return Ok(());
        }
        let is_double = |base: BaseType, bits: u8| base == BaseType::Float && bits == 64;
        if is_double(info.output.ty.base, self.dst_bits())
            || info.inputs.iter().enumerate().any(|(i, input)| is_double(input.ty.base, self.bits(i)))
        {
            return Err(self.ctx.unsupported("floats of 64 bits, which the machine does not have"));
        }
        Err(self.ctx.unsupported("conversion between floats and integers of 64 bits"))
    }

    /// Refuses arithmetic on 1-bit integers; the remaining 1-bit operations are on bools.
    fn one_bit(&mut self, width: u8) -> Result<bool, SelectError> {
        let logic = matches!(self.op(), Op::Iand | Op::Ior | Op::Ixor | Op::Inot | Op::AndgIr3 | Op::BitfieldSelect);
        if width == 1 && !logic {
            return Err(self.ctx.unsupported("arithmetic on integers of one bit"));
        }
        Ok(false)
    }

    // Operands.

    fn op(&self) -> Op {
        self.alu.op
    }

    /// Width of a source.
    fn bits(&self, index: usize) -> u8 {
        self.ctx.bits(self.alu.srcs[index].def)
    }

    /// Width of the result.
    fn dst_bits(&self) -> u8 {
        self.ctx.bits(self.alu.def)
    }

    /// A source in a register.
    fn src(&mut self, index: usize) -> Src {
        let src = &self.alu.srcs[index];
        self.ctx.scalar(src.def, src.swizzle[usize::from(self.component)])
    }

    /// Both words of a 64-bit source.
    fn pair(&mut self, index: usize) -> [Src; 2] {
        let src = &self.alu.srcs[index];
        self.ctx.pair(src.def, src.swizzle[usize::from(self.component)])
    }

    /// The value of a constant source.
    fn constant(&self, index: usize) -> Option<u32> {
        let src = &self.alu.srcs[index];
        match self.ctx.word(src.def, usize::from(src.swizzle[usize::from(self.component)])) {
            Word::Immediate(bits) if self.bits(index) != 64 => Some(bits),
            _ => None,
        }
    }

    /// A source as an integer operand of cat2: an immediate if it is a small constant.
    fn int_src(&mut self, index: usize) -> Src {
        match self.constant(index) {
            Some(bits) if bits < 0x200 => Src::immediate(bits, self.ctx.is_half(self.bits(index))),
            _ => self.src(index),
        }
    }

    /// The first two sources as operands of an integer operation of cat2; at most one is an immediate.
    fn int_srcs(&mut self) -> [Src; 2] {
        let second = self.int_src(1);
        let first = if is_register(&second) { self.int_src(0) } else { self.src(0) };
        [first, second]
    }

    /// Sets the result to a register.
    fn result(&mut self, src: Src) -> bool {
        if let Some(value) = src.value() {
            self.ctx.set(self.alu.def, self.component, value);
        }
        true
    }

    /// Sets the result with the bits above the width cleared: for 8 bits.
    fn masked_result(&mut self, src: Src) -> bool {
        let src = if self.dst_bits() == 8 { self.ctx.bin(Opcode::AndB, src, Src::immediate(0xff, true)) } else { src };
        self.result(src)
    }

    /// Sets both words of a 64-bit result.
    fn wide_result(&mut self, [low, high]: [Src; 2]) -> bool {
        if let (Some(low), Some(high)) = (low.value(), high.value()) {
            self.ctx.set_pair(self.alu.def, self.component, low, high);
        }
        true
    }

    // Selections.

    fn select_op(&mut self) -> Result<bool, SelectError> {
        let (condition, yes, no) = match self.op() {
            Op::Bcsel | Op::B8csel | Op::B16csel | Op::B32csel => {
                let mut condition = self.src(0);
                // A 32-bit bool may have all of its lower 16 bits clear.
                if condition.class.half != self.ctx.is_half(self.dst_bits()) && self.bits(0) != 1 {
                    let zero = Src::immediate(0, condition.class.half);
                    condition = self.ctx.compare_src(Opcode::CmpsS, Condition::Ne, condition, zero);
                }
                (condition, 1, 2)
            }
            Op::IcselEqz => (self.src(0), 2, 1),
            Op::Fcsel => {
                let (x, zero) = (self.src(0), self.ctx.immediate(0, false));
                (self.ctx.compare_src(Opcode::CmpsF, Condition::Ne, x, zero), 1, 2)
            }
            Op::I32cselGt | Op::I32cselGe => {
                let x = self.src(0);
                let condition = if self.op() == Op::I32cselGt { Condition::Gt } else { Condition::Ge };
                (self.ctx.compare_src(Opcode::CmpsS, condition, x, Src::immediate(0, false)), 1, 2)
            }
            Op::FcselGt | Op::FcselGe => {
                let (x, zero) = (self.src(0), self.ctx.immediate(0, false));
                let condition = if self.op() == Op::FcselGt { Condition::Gt } else { Condition::Ge };
                (self.ctx.compare_src(Opcode::CmpsF, condition, x, zero), 1, 2)
            }
            _ => return Ok(false),
        };
        let (yes, no) = (self.src(yes), self.src(no));
        let selected = self.ctx.select(condition, yes, no);
        Ok(self.result(selected))
    }
}

/// Returns true if a source is a register, not an immediate.
fn is_register(src: &Src) -> bool {
    src.place().is_some()
}

/// Helpers for sequences: sources in, the result as a source of the next operation.
impl Context<'_> {
    /// A unary operation; the result has the class of the source.
    pub(super) fn un(&mut self, opcode: Opcode, a: Src) -> Src {
        self.alu_src(opcode, RegClass::general(a.class.half), &[a])
    }

    /// A binary operation on sources of one class, which is that of the result.
    pub(super) fn bin(&mut self, opcode: Opcode, a: Src, b: Src) -> Src {
        debug_assert_eq!(a.class.half, b.class.half, "{opcode}");
        self.alu_src(opcode, RegClass::general(a.class.half), &[a, b])
    }

    /// A ternary operation on sources of one class, which is that of the result.
    pub(super) fn tri(&mut self, opcode: Opcode, a: Src, b: Src, c: Src) -> Src {
        debug_assert!(a.class.half == b.class.half && b.class.half == c.class.half, "{opcode}");
        self.alu_src(opcode, RegClass::general(a.class.half), &[a, b, c])
    }

    /// A binary operation with `(sat)`.
    fn saturated(&mut self, opcode: Opcode, a: Src, b: Src) -> Src {
        let result = self.bin(opcode, a, b);
        if let Some(value) = result.value() {
            let instr = self.program.values[value].instr;
            self.program.instrs[instr].flags |= InstrFlags::SAT;
        }
        result
    }

    /// `yes` if the condition is not 0, else `no`. A condition of another width must be a bool.
    pub(super) fn select(&mut self, condition: Src, yes: Src, no: Src) -> Src {
        let half = yes.class.half;
        let condition = self.resize(condition, half);
        let opcode = if half { Opcode::SelB16 } else { Opcode::SelB32 };
        self.tri(opcode, yes, condition, no)
    }

    /// The negation of a bool.
    fn not_bool(&mut self, condition: Src) -> Src {
        self.bin(Opcode::XorB, condition, Src::immediate(1, condition.class.half))
    }

    /// The two's complement.
    fn negate(&mut self, src: Src) -> Src {
        self.un(Opcode::AbsnegS, src.with_mods(Mods::NEG))
    }

    /// 8 bits in a half register, sign-extended to 16.
    fn sign_extend_8(&mut self, src: Src) -> Src {
        let up = self.bin(Opcode::ShlB, src, Src::immediate(8, true));
        self.bin(Opcode::AshrB, up, Src::immediate(8, true))
    }
}
