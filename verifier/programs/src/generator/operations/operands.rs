//! Operands and results of arithmetic: constants of interest, modifiers, conversions.
//!
//! Selection and folding look through constants, negations, absolute values, saturation and conversions. So operands
//! have them directly before the operation, each value with this one reader.

use super::super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, BaseType, Def, InstrData, Op};

use super::super::Generator;
use super::super::accepted::{operations, part_bits};
use super::super::choices::Choices;

/// Floats that the machine has a short form for, and those at the edges.
const FLOATS: &[f32] = &[
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    2.0,
    4.0,
    -4.0,
    std::f32::consts::E,
    std::f32::consts::PI,
    std::f32::consts::FRAC_1_PI,
    std::f32::consts::LN_2,
    std::f32::consts::LOG2_E,
    std::f32::consts::LOG2_10,
    std::f32::consts::LOG10_2,
    255.0,
    65504.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    1e-40,
    f32::MAX,
    2147483648.0,
    4294967296.0,
];

/// Integers at the edges of the ranges of immediates.
const EDGES: &[i64] = &[
    -1,
    -2,
    -511,
    -512,
    -513,
    511,
    512,
    1023,
    1024,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fff_ffff,
    0x7fff_fff0,
    0x8000_0000,
    0x7f80_807f,
];

/// A value, or all its components.
pub(in crate::generator) fn source(def: Def, components: u8) -> AluSrc {
    if components == 1 { AluSrc::scalar(def, 0) } else { AluSrc::identity(def) }
}

impl<C: Choices> Generator<'_, C> {
    /// An operand of a type.
    pub(in crate::generator) fn any_operand(&mut self, base: BaseType, bits: u8, components: u8) -> AluSrc {
        let constants = if bits == 1 { self.swarm.constants / 4 } else { self.swarm.constants };
        if self.c.chance(constants) {
            return self.any_constants(base, bits, components);
        }
        if self.c.chance(self.swarm.conversions)
            && let Some(src) = self.converted(base, bits, components)
        {
            return src;
        }
        if bits == 64 && components == 1 && self.c.chance(CONFIG.half_known) {
            return self.half_known();
        }
        let Some(src) = self.pool.source(self.c, bits, components) else {
            return match bits {
                1 => AluSrc::scalar(self.value(1), 0),
                _ => self.any_constants(base, bits, components),
            };
        };
        if self.c.chance(self.swarm.modifiers) { self.modified(src, base, bits, components) } else { src }
    }

    /// 64 bits of which one word is known: an operation on words may look at one of them only.
    fn half_known(&mut self) -> AluSrc {
        let mut words = [self.value(32), self.value(32)];
        // The last one makes a float infinite, or a NaN by the other word.
        let known = self.c.pick(&[0, 0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7ff0_0000]);
        words[self.c.below(2)] = self.b.constant(32, known);
        AluSrc::scalar(self.b.alu(Op::Pack64_2x32Split, &words), 0)
    }

    /// The number of a part of a value.
    pub(in crate::generator) fn any_part(&mut self, op: Op, bits: u8) -> AluSrc {
        let parts = bits / part_bits(op).unwrap_or(bits);
        let number = self.c.below(parts.max(1).into()) as u64;
        self.constant_source(bits, number)
    }

    /// A constant, the same or another one for each component.
    fn any_constants(&mut self, base: BaseType, bits: u8, components: u8) -> AluSrc {
        if components == 1 || self.c.chance(CONFIG.equal_constants) {
            let value = self.any_bits(base, bits);
            return self.constant_source(bits, value);
        }
        let values: Vec<u64> = (0..components).map(|_| self.any_bits(base, bits)).collect();
        AluSrc::identity(self.b.constants(bits, &values))
    }

    /// A constant, rarely as a component of a vector of others.
    pub(super) fn constant_source(&mut self, bits: u8, value: u64) -> AluSrc {
        if !self.c.chance(CONFIG.component_of_constant) {
            return AluSrc::scalar(self.b.constant(bits, value), 0);
        }
        let mut values: Vec<u64> = (0..2 + self.c.below(3)).map(|_| self.any_bits(BaseType::Int, bits)).collect();
        let component = self.c.below(values.len());
        values[component] = value;
        AluSrc::scalar(self.b.constants(bits, &values), component as u8)
    }

    /// A vector of constants of one type.
    pub(in crate::generator) fn constant_vector(&mut self, bits: u8, components: u8) -> Def {
        let base = if matches!(bits, 16 | 32) && self.c.chance(CONFIG.float_constants) {
            BaseType::Float
        } else {
            BaseType::Int
        };
        let values: Vec<u64> = (0..components).map(|_| self.any_bits(base, bits)).collect();
        self.b.constants(bits, &values)
    }

    /// The bits of a constant of interest.
    pub(super) fn any_bits(&mut self, base: BaseType, bits: u8) -> u64 {
        let float = base == BaseType::Float || self.c.chance(CONFIG.float_bits);
        if float && self.c.chance(CONFIG.float_of_interest) {
            let value = if self.c.chance(CONFIG.special_float) { self.c.pick(FLOATS) } else { self.small_float() };
            return match bits {
                16 => half::f16::from_f32(value).to_bits().into(),
                64 => f64::from(value).to_bits(),
                _ => value.to_bits().into(),
            };
        }
        match self.c.below(8) {
            0 => self.c.below(3) as u64,
            1 | 2 => self.c.below(72) as u64,
            3 => self.c.pick(EDGES) as u64,
            4 => (1u64 << (self.c.byte() & (bits.max(8) - 1))).wrapping_add(self.c.pick(&[0, 0, 0, 1, 2])),
            5 => (1u64 << (self.c.byte() & (bits.max(8) - 1))).wrapping_sub(1),
            6 if bits > 32 => u64::from(self.c.u32()) << 32 | u64::from(self.c.u32()),
            _ => u64::from(self.c.u32()),
        }
    }

    /// An operand with a negation, an absolute value, or both.
    fn modified(&mut self, src: AluSrc, base: BaseType, bits: u8, components: u8) -> AluSrc {
        let ops: &[&[Op]] = match base {
            BaseType::Float => &[&[Op::Fneg], &[Op::Fabs], &[Op::Fabs, Op::Fneg], &[Op::Fsat]],
            _ if bits == 1 => &[&[Op::Inot]],
            _ => &[&[Op::Ineg], &[Op::Inot], &[Op::Iabs], &[Op::Iabs, Op::Ineg], &[Op::Fneg]],
        };
        let mut src = src;
        let list = self.c.pick(ops);
        for &op in list {
            if operations(&self.target).contains(&(op, bits)) {
                src = source(self.b.alu_swizzled(op, components, &[src]), components);
            }
        }
        src
    }

    /// An operand that is converted from another width or type.
    fn converted(&mut self, base: BaseType, bits: u8, components: u8) -> Option<AluSrc> {
        let ops: &[(Op, u8)] = match (base, bits) {
            (BaseType::Float, 16) => {
                &[(Op::F2f16, 32), (Op::F2f16Rtz, 32), (Op::I2f16, 16), (Op::U2f16, 32), (Op::B2f16, 1)]
            }
            (BaseType::Float, 32) => {
                &[(Op::F2f32, 16), (Op::F2f32, 16), (Op::U2f32, 16), (Op::I2f32, 32), (Op::B2f32, 1)]
            }
            (_, 8) => &[(Op::U2u8, 32), (Op::I2i8, 16)],
            (_, 16) => &[(Op::U2u16, 32), (Op::I2i16, 32), (Op::I2i16, 8), (Op::F2i16, 32), (Op::B2i16, 1)],
            (_, 32) => {
                &[(Op::U2u32, 16), (Op::I2i32, 16), (Op::U2u32, 8), (Op::I2i32, 64), (Op::F2i32, 16), (Op::B2i32, 1)]
            }
            (_, 64) => &[(Op::U2u64, 32), (Op::I2i64, 32), (Op::I2i64, 16), (Op::B2i64, 1)],
            _ => return None,
        };
        let (op, from) = self.c.pick(ops);
        if !operations(&self.target).contains(&(op, from)) {
            return None;
        }
        let src = self.pool.source(self.c, from, components)?;
        Some(source(self.b.alu_swizzled(op, components, &[src]), components))
    }

    /// The result of an operation, plain or with a modifier; sometimes it is exact.
    pub(in crate::generator) fn any_result(&mut self, def: Def, base: BaseType) -> Def {
        let data = &self.b.function().defs[def];
        let (instr, bits, components) = (data.instr, data.bit_size, data.num_components);
        if self.c.chance(CONFIG.exact)
            && let InstrData::Alu(alu) = &mut self.b.shader_mut().entry.instrs[instr]
        {
            alu.exact = true;
        }
        if base != BaseType::Float || !matches!(bits, 16 | 32) || !self.c.chance(self.swarm.modifiers) {
            return def;
        }
        let op = self.c.pick(&[Op::Fsat, Op::Fsat, Op::Fneg, Op::Fabs]);
        self.b.alu_swizzled(op, components, &[source(def, components)])
    }
}
