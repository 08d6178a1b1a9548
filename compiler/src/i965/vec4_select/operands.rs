//! Sources of instructions from nir values: swizzles, modifiers, immediates.

use super::{Location, Selector};
use crate::i965::vec4::{RegType, Src, Swizzle};
use crate::nir::{AluSrc, Def, InstrData, Op};

/// The bits of a bool in a register.
pub(crate) fn bool_bits(value: u64) -> u32 {
    if value & 1 != 0 { u32::MAX } else { 0 }
}

/// The source that an operation on each component reads where its result is read as `outer`.
fn through(outer: &AluSrc, inner: &AluSrc, components: u8) -> AluSrc {
    let mut swizzle = outer.swizzle;
    for channel in &mut swizzle[..usize::from(components)] {
        *channel = inner.swizzle[usize::from(*channel)];
    }
    AluSrc { def: inner.def, swizzle }
}

impl Selector<'_> {
    /// A value with its components in order.
    pub(super) fn whole(&mut self, def: Def, ty: RegType) -> Src {
        let components = self.code.components(def);
        self.swizzled(&AluSrc::identity(def), components, ty)
    }

    /// A source of an operation on this many components, without modifiers. Other channels repeat the last component.
    pub(super) fn swizzled(&mut self, src: &AluSrc, components: u8, ty: RegType) -> Src {
        let Location { file, first } = self.location(src.def);
        let channel = |i: u8| first + src.swizzle[usize::from(i.min(components - 1))];
        Src::new(file, Swizzle([0, 1, 2, 3].map(channel)), ty)
    }

    /// A source of an operation on floats: negations and absolute values are its modifiers.
    pub(super) fn float(&mut self, src: &AluSrc, components: u8) -> Src {
        let mut at = *src;
        let (mut abs, mut negate) = (false, false);
        while let InstrData::Alu(alu) = &self.code.function.instrs[self.code.function.defs[at.def].instr] {
            match alu.op {
                Op::Fneg => negate ^= !abs,
                Op::Fabs => abs = true,
                _ => break,
            }
            at = through(&at, &alu.srcs[0], components);
        }
        Src { abs, negate, ..self.swizzled(&at, components, RegType::F) }
    }

    /// A condition of this many components without its negations, and true if it is the opposite of that.
    pub(super) fn without_nots(&self, src: &AluSrc, components: u8) -> (AluSrc, bool) {
        let (mut at, mut inverse) = (*src, false);
        while let InstrData::Alu(alu) = &self.code.function.instrs[self.code.function.defs[at.def].instr]
            && alu.op == Op::Inot
        {
            at = through(&at, &alu.srcs[0], components);
            inverse = !inverse;
        }
        (at, inverse)
    }

    /// The immediate that all used components of a constant are.
    pub(super) fn immediate(&self, src: &AluSrc, components: u8, ty: RegType) -> Option<Src> {
        let values = self.code.function.as_const(src.def)?;
        let first = values[usize::from(src.swizzle[0])];
        let used = &src.swizzle[..usize::from(components)];
        let is_bool = self.code.function.defs[src.def].bit_size == 1;
        let bits = if is_bool { bool_bits(first) } else { first as u32 };
        used.iter().all(|&i| values[usize::from(i)] == first).then(|| Src::immediate(bits, ty))
    }
}
