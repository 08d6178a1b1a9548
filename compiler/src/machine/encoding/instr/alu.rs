//! Moves, and operations of one to three sources.

use super::{DecodeResult, Decoder, EncodeResult, Encoder, class};
use crate::ir3::legality::{flut_bits, flut_index, takes_flut_immediates};
use crate::ir3::{
    Attrs, Condition, Dst, Mods, Opcode, OperandFlags, PhysReg, Place, RegClass, RegFile, Round, Src, SrcOperand, Type,
    WriteMask,
};
use crate::machine::encoding::field::{Bits, Field, FieldName, Kind};
use crate::machine::encoding::print::nops;
use crate::machine::encoding::table::Encoding;

/// The types by their number; atomics have `u64` in place of `u8`.
pub(super) const TYPES: [Type; 8] =
    [Type::F16, Type::F32, Type::U16, Type::U32, Type::S16, Type::S32, Type::U8, Type::U8In32];
const ROUNDS: [Round; 4] = [Round::Default, Round::Even, Round::PosInf, Round::NegInf];

pub(super) fn number_of(ty: Type) -> u64 {
    match ty {
        Type::U64 => 6,
        _ => TYPES.iter().position(|&known| known == ty).unwrap_or(0) as u64,
    }
}

/// The general registers from one on: a word does not say how long the array is that it accesses.
fn relative(offset: i64) -> Place {
    let size = (4 * 48 - offset.max(0)).clamp(1, 4 * 48) as u16;
    Place::Relative { offset: offset as i16, size }
}

const SOURCES: [FieldName; 4] = [FieldName::Src1, FieldName::Src2, FieldName::Src3, FieldName::Src4];
const RESULTS: [FieldName; 4] = [FieldName::Dst, FieldName::Dst1, FieldName::Dst2, FieldName::Dst3];

/// The bits that count nops where nothing is repeated.
fn nop_bits(encoding: &Encoding) -> Option<[u8; 2]> {
    match encoding.field(FieldName::RepeatOrNop).map(|field| field.kind) {
        Some(Kind::RepeatOrNop { r }) => Some(r),
        _ => None,
    }
}

impl Decoder {
    fn src_half(&self) -> bool {
        self.encoding.widths.src_half(self.word)
    }

    fn dst_half(&self) -> bool {
        self.encoding.widths.dst_half(self.word)
    }

    fn src(&self, operand: SrcOperand) -> Src {
        let half = self.src_half();
        let class = match operand {
            SrcOperand::Place(Place::Reg(reg)) => class(reg.0.into(), half),
            _ => RegClass::general(half),
        };
        Src::new(operand, class, WriteMask::SCALAR)
    }

    fn number(&self, number: u64) -> Src {
        self.src(SrcOperand::Place(Place::Reg(PhysReg(number as u16))))
    }

    /// A source relative to `a0.x`, in ten bits and one for constants.
    fn relative(&self, bits: u64) -> Src {
        let offset = Bits::new(0, 9).get_signed(bits);
        let constant = bits >> 10 & 1 != 0;
        self.src(if constant { SrcOperand::ConstRelative(offset as i16) } else { SrcOperand::Place(relative(offset)) })
    }

    /// Marks a source that advances with each repetition.
    fn advance(&self, mut src: Src, advances: bool) -> Src {
        if advances {
            src.flags |= OperandFlags::R;
            src.mask = WriteMask::first(1 + u32::from(self.data.repeat));
        }
        src
    }

    fn last(mut src: Src, last: bool) -> Src {
        src.flags.set(OperandFlags::LAST, last);
        src
    }

    pub(super) fn move_(&mut self) -> DecodeResult {
        let types = self.get(FieldName::Types);
        let ty = |number: u64| TYPES[(number & 7) as usize];
        let (src, dst) = match self.encoding.name {
            "mova" => (Type::S16, Type::S16),
            "mova1" => (Type::U16, Type::U16),
            "movmsk" => (Type::U32, Type::U32),
            _ => (ty(types >> 3), ty(types)),
        };
        let round = ROUNDS[(self.get(FieldName::Round) & 3) as usize];
        self.data.attrs = Attrs::Move { src, dst, round };
        self.data.repeat = self.get(FieldName::Repeat) as u8;
        match self.data.opcode {
            Opcode::Swz => self.data.repeat = 1,
            Opcode::Gat | Opcode::Sct => self.data.repeat = 3,
            Opcode::Movmsk => {
                self.data.attrs = Attrs::None;
                let mask = WriteMask::first(1 + u32::from(self.data.repeat));
                self.dst(self.get(FieldName::Dst), false, mask);
                if self.word >> 49 & 1 != 0 {
                    return self.lacks("mask of lanes at a relative register");
                }
                return Ok(None);
            }
            _ => return self.one_move(),
        }
        let half = [self.src_half(), self.dst_half()];
        for name in RESULTS.into_iter().filter(|&name| self.encoding.field(name).is_some()) {
            self.dst(self.get(name), half[1], WriteMask::SCALAR);
        }
        for name in SOURCES.into_iter().filter(|&name| self.encoding.field(name).is_some()) {
            self.push_register(name, half[0], 1);
        }
        // The others follow the first.
        if self.data.opcode == Opcode::Gat {
            self.data.dsts[0].mask = WriteMask::first(4);
        } else if self.data.opcode == Opcode::Sct {
            self.data.srcs[0].mask = WriteMask::first(4);
        }
        Ok(None)
    }

    fn one_move(&mut self) -> DecodeResult {
        let mask = WriteMask::first(1 + u32::from(self.data.repeat));
        match self.encoding.name {
            "mova" => self.dst(PhysReg::A0_X.0.into(), true, WriteMask::SCALAR),
            "mova1" => self.dst(PhysReg::A1_X.0.into(), true, WriteMask::SCALAR),
            _ if self.word >> 49 & 1 != 0 => {
                let place = relative(self.get(FieldName::Dst) as i64);
                self.data.dsts.push(Dst::new(place, RegClass::general(self.dst_half()), mask));
            }
            _ => self.dst(self.get(FieldName::Dst), self.dst_half(), mask),
        }
        let value = self.get(FieldName::Src1);
        let Some(&Field { kind: Kind::MoveSrc { r, kind }, .. }) = self.encoding.field(FieldName::Src1) else {
            return self.unknown(FieldName::Src1);
        };
        let half = match self.encoding.name {
            "mova" | "mova1" => true,
            _ => self.src_half(),
        };
        let src = match self.word >> kind & 3 {
            0 if value >> 11 == 1 => self.relative(value),
            0 if value & !0x4ff == 0 => Self::last(self.number(value & 0xff), value >> 10 != 0),
            1 if value >> 11 == 0 => self.src(SrcOperand::Const(value as u16)),
            2 => Src::immediate(if half { value as u32 & 0xffff } else { value as u32 }, half),
            _ => return self.unknown(FieldName::Src1),
        };
        let mut src = self.advance(src, self.word >> r & 1 != 0);
        if src.class.file != RegFile::Address && src.class.file != RegFile::Predicate {
            src.class.half = half;
        }
        self.data.srcs.push(src);
        Ok(None)
    }

    pub(super) fn alu(&mut self) -> DecodeResult {
        let opcode = self.data.opcode;
        self.data.repeat = self.get(FieldName::Repeat) as u8;
        if let Some(field) = self.encoding.field(FieldName::RepeatOrNop) {
            self.data.repeat = field.bits.get(self.word) as u8;
        }
        if let Some(r) = nop_bits(self.encoding) {
            self.data.nop = nops(self.word, self.data.repeat.into(), r) as u8;
        }
        if self.get(FieldName::Sign) != 0 || self.get(FieldName::Pack) != 0 {
            return self.lacks("mixed or high operands of a dot product");
        }
        if self.encoding.field(FieldName::Condition).is_some() {
            match Condition::ALL.get(self.get(FieldName::Condition) as usize) {
                Some(&condition) => self.data.attrs = Attrs::Compare(condition),
                None => return self.unknown(FieldName::Condition),
            }
        }
        // `setrm` has no result.
        if opcode.info().dsts > 0 {
            let mask = WriteMask::first(1 + u32::from(self.data.repeat));
            self.dst(self.get(FieldName::Dst), self.dst_half(), mask);
        }
        for name in SOURCES {
            let Some(field) = self.encoding.field(name) else { continue };
            let value = field.bits.get(self.word);
            let bit = |at: u8| self.word >> at & 1 != 0;
            let (src, r) = match field.kind {
                Kind::Source { r } => match self.source(value) {
                    Some(src) => (src, r),
                    None => return self.unknown(name),
                },
                Kind::Source3 { negate, r, immediates } => {
                    let Some(src) = self.source3(value, immediates) else { return self.unknown(name) };
                    let negated = negate.is_some_and(bit);
                    (src.with_mods(if negated { opcode.negation() } else { Mods::empty() }), r)
                }
                Kind::SourceMiddle { negate, r } => {
                    let negated = negate.is_some_and(bit);
                    (self.number(value).with_mods(if negated { opcode.negation() } else { Mods::empty() }), r)
                }
                _ => return self.unknown(name),
            };
            // Without repetition, `(r)` is a number of nops, or means nothing.
            let mut src = self.advance(src, bit(r) && self.data.repeat > 0);
            // Barycentric i and j.
            if opcode == Opcode::BaryF && name == FieldName::Src2 {
                src.mask = WriteMask::first(2);
            }
            self.data.srcs.push(src);
        }
        Ok(None)
    }

    fn source(&self, value: u64) -> Option<Src> {
        let opcode = self.data.opcode;
        let half = self.src_half();
        let src = match value >> 11 & 7 {
            0 if value >> 8 & 3 == 0 => Self::last(self.number(value & 0xff), value >> 10 & 1 != 0),
            1 => self.relative(value),
            2 | 6 => self.src(SrcOperand::Const((value & 0x7ff) as u16)),
            4 if !takes_flut_immediates(opcode) => {
                let number = Bits::new(0, 10).get_signed(value) as u32;
                Src::immediate(if half { number & 0xffff } else { number }, half)
            }
            5 if takes_flut_immediates(opcode) && (value >> 10 & 1 != 0) == half => {
                Src::immediate(flut_bits(value as u32 & 0x3ff, half)?, half)
            }
            _ => return None,
        };
        let mut mods = Mods::empty();
        if value >> 14 & 1 != 0 {
            mods |= opcode.negation();
        }
        if value >> 15 & 1 != 0 {
            mods |= Mods::ABS;
        }
        Some(src.with_mods(mods))
    }

    fn source3(&self, value: u64, immediates: bool) -> Option<Src> {
        Some(match value >> 11 & 3 {
            0 if value >> 8 & 3 == 0 => Self::last(self.number(value & 0xff), value >> 10 & 1 != 0),
            1 => self.relative(value),
            2 | 3 if immediates => Src::immediate(value as u32 & 0xfff, self.src_half()),
            2 => self.src(SrcOperand::Const((value & 0x7ff) as u16)),
            _ => return None,
        })
    }
}

impl Encoder<'_> {
    fn relative_bits(&self, name: FieldName, offset: i16, constant: bool) -> EncodeResult<u64> {
        if !Bits::new(0, 9).holds_signed(offset.into()) {
            return self.fail(name, "the offset from a0.x does not fit ten bits");
        }
        Ok(offset as u64 & 0x3ff | u64::from(constant) << 10)
    }

    fn const_bits(&self, name: FieldName, word: u16) -> EncodeResult<u64> {
        if word >= 1 << 11 { self.fail(name, "the constant does not fit eleven bits") } else { Ok(word.into()) }
    }

    /// Checks that no modifier is on a source that cannot have it.
    fn unmodified(&self, name: FieldName, src: &Src) -> EncodeResult {
        if src.mods.is_empty() { Ok(()) } else { self.fail(name, "a modifier that it cannot have") }
    }

    pub(super) fn move_(&mut self) -> EncodeResult {
        let data = self.data;
        if data.opcode == Opcode::Movmsk {
            self.put(FieldName::Repeat, data.repeat.into())?;
            return self.dst(FieldName::Dst, 0).map(drop);
        }
        let Attrs::Move { src: from, dst: to, round } = data.attrs else {
            return self.not_known(FieldName::Types, "its types are not known");
        };
        let round = ROUNDS.iter().position(|&known| known == round).unwrap_or(0);
        self.put(FieldName::Round, round as u64)?;
        if matches!(from, Type::U64) || matches!(to, Type::U64) {
            return self.fail(FieldName::Types, "no move has 64 bits");
        }
        let types = number_of(from) << 3 | number_of(to);
        if self.encoding.field(FieldName::Types).is_some() {
            self.put(FieldName::Types, types)?;
        }
        let several = match data.opcode {
            Opcode::Swz => (2, 2),
            Opcode::Gat => (1, 4),
            Opcode::Sct => (4, 1),
            _ => return self.one_move(types),
        };
        for (i, name) in RESULTS.into_iter().enumerate().take(several.0) {
            let dst = self.dst(name, i)?;
            self.said.dst = Some(dst.class.half);
        }
        for (i, name) in SOURCES.into_iter().enumerate().take(several.1) {
            let src = self.register(name, i)?;
            self.src_width(name, src.class)?;
        }
        Ok(())
    }

    fn one_move(&mut self, types: u64) -> EncodeResult {
        let data = self.data;
        self.put(FieldName::Repeat, data.repeat.into())?;
        let Some(dst) = data.dsts.first() else { return self.fail(FieldName::Dst, "no destination") };
        let place = dst.place;
        match self.encoding.name {
            "mova" | "mova1" => {
                let (reg, expected) = if self.encoding.name == "mova" {
                    (PhysReg::A0_X, 4 << 3 | 4)
                } else {
                    (PhysReg::A1_X, 2 << 3 | 2)
                };
                if place != Place::Reg(reg) || types != expected {
                    return self.fail(FieldName::Dst, "another destination than the address register of its types");
                }
            }
            _ => match place {
                Place::Relative { offset, .. } => {
                    self.put(FieldName::Dst, u64::try_from(offset).unwrap_or(u64::MAX))?;
                    self.set(49);
                    self.said.dst = Some(dst.class.half);
                }
                _ => {
                    self.dst(FieldName::Dst, 0)?;
                    self.said.dst = (dst.class.file != RegFile::Predicate).then_some(dst.class.half);
                }
            },
        }
        let name = FieldName::Src1;
        let src = self.src(0, name)?;
        self.unmodified(name, src)?;
        let Some(Kind::MoveSrc { r, kind }) = self.encoding.field(name).map(|field| field.kind) else {
            return self.fail(name, "it has no such field");
        };
        let value = match src.operand {
            SrcOperand::Place(Place::Relative { offset, .. }) => self.relative_bits(name, offset, false)? | 1 << 11,
            SrcOperand::ConstRelative(offset) => self.relative_bits(name, offset, true)? | 1 << 11,
            SrcOperand::Place(place) => self.number(&place, src.class, name)? | Self::has_last(src) << 10,
            SrcOperand::Const(word) => {
                self.word |= 1 << kind;
                self.const_bits(name, word)?
            }
            SrcOperand::Immediate(bits) => {
                self.word |= 2 << kind;
                bits.into()
            }
            SrcOperand::Undef => return self.fail(name, "an undefined value"),
        };
        if src.flags.contains(OperandFlags::R) {
            self.set(r);
        }
        self.put(name, value)
    }

    pub(super) fn alu(&mut self) -> EncodeResult {
        let data = self.data;
        match data.attrs {
            Attrs::None => {}
            Attrs::Compare(condition) => self.put(FieldName::Condition, condition as u64)?,
            _ => return self.fail(FieldName::Type, "attributes that it cannot have"),
        }
        if data.opcode.info().dsts > 0 {
            let dst = self.dst(FieldName::Dst, 0)?;
            self.said.dst = Some(dst.class.half);
        }
        match nop_bits(self.encoding) {
            Some(_) if data.nop > 3 || (data.nop > 0 && data.repeat > 0) => {
                return self.fail(FieldName::RepeatOrNop, "more than three nops, or nops of what is repeated");
            }
            Some(r) => self.word |= u64::from(data.nop & 1) << r[0] | u64::from(data.nop >> 1) << r[1],
            None if data.nop > 0 => return self.fail(FieldName::RepeatOrNop, "it has no nops"),
            None => {}
        }
        let repeat = match self.encoding.field(FieldName::RepeatOrNop) {
            Some(_) => FieldName::RepeatOrNop,
            None => FieldName::Repeat,
        };
        self.put(repeat, data.repeat.into())?;
        let mut index = 0;
        for name in SOURCES {
            let Some(field) = self.encoding.field(name) else { continue };
            let src = self.src(index, name)?;
            index += 1;
            let (value, r) = match field.kind {
                Kind::Source { r } => (self.source(name, src)?, r),
                Kind::Source3 { negate, r, immediates } => {
                    self.negate(name, src, negate)?;
                    (self.source3(name, src, immediates)?, r)
                }
                Kind::SourceMiddle { negate, r } => {
                    self.negate(name, src, negate)?;
                    match src.operand {
                        SrcOperand::Place(place) => (self.number(&place, src.class, name)?, r),
                        _ => return self.fail(name, "a register is the only operand that it can have"),
                    }
                }
                _ => return self.fail(name, "it has no such field"),
            };
            self.src_width(name, src.class)?;
            if src.flags.contains(OperandFlags::R) && data.repeat > 0 {
                self.set(r);
            }
            self.put(name, value)?;
        }
        // The last one may be the address of a relative one.
        if data.srcs.iter().skip(index).any(|src| src.class.file != RegFile::Address) {
            return self.fail(SOURCES[index.min(3)], "more sources than it has");
        }
        Ok(())
    }

    fn negate(&mut self, name: FieldName, src: &Src, negate: Option<u8>) -> EncodeResult {
        match negate {
            _ if src.mods.is_empty() => Ok(()),
            Some(bit) if src.mods == self.data.opcode.negation() => {
                self.set(bit);
                Ok(())
            }
            _ => self.fail(name, "a modifier that it cannot have"),
        }
    }

    fn source(&mut self, name: FieldName, src: &Src) -> EncodeResult<u64> {
        let opcode = self.data.opcode;
        let value = match src.operand {
            SrcOperand::Place(Place::Relative { offset, .. }) => 1 << 11 | self.relative_bits(name, offset, false)?,
            SrcOperand::ConstRelative(offset) => 1 << 11 | self.relative_bits(name, offset, true)?,
            SrcOperand::Place(place) => self.number(&place, src.class, name)? | Self::has_last(src) << 10,
            SrcOperand::Const(word) => 2 << 11 | self.const_bits(name, word)?,
            SrcOperand::Immediate(bits) if takes_flut_immediates(opcode) => match flut_index(bits, src.class.half) {
                Some(index) => 5 << 11 | u64::from(src.class.half) << 10 | u64::from(index),
                None => return self.fail(name, "the float is not in the table"),
            },
            SrcOperand::Immediate(bits) => {
                let value = if src.class.half { i64::from(bits as u16 as i16) } else { i64::from(bits as i32) };
                if !Bits::new(0, 10).holds_signed(value) {
                    return self.fail(name, "the immediate does not fit eleven bits");
                }
                4 << 11 | value as u64 & 0x7ff
            }
            SrcOperand::Undef => return self.fail(name, "an undefined value"),
        };
        let negated = src.mods.intersects(opcode.negation());
        if !(opcode.negation() | Mods::ABS).contains(src.mods) {
            return self.fail(name, "a modifier that it cannot have");
        }
        Ok(value | u64::from(negated) << 14 | u64::from(src.mods.contains(Mods::ABS)) << 15)
    }

    fn source3(&mut self, name: FieldName, src: &Src, immediates: bool) -> EncodeResult<u64> {
        Ok(match src.operand {
            SrcOperand::Place(Place::Relative { offset, .. }) => 1 << 11 | self.relative_bits(name, offset, false)?,
            SrcOperand::ConstRelative(offset) => 1 << 11 | self.relative_bits(name, offset, true)?,
            SrcOperand::Place(place) => self.number(&place, src.class, name)? | Self::has_last(src) << 10,
            SrcOperand::Immediate(bits) if immediates && bits < 1 << 12 => 1 << 12 | u64::from(bits),
            SrcOperand::Immediate(_) if immediates => {
                return self.fail(name, "the immediate does not fit twelve bits");
            }
            SrcOperand::Const(word) if !immediates => 1 << 12 | self.const_bits(name, word)?,
            _ => return self.fail(name, "an operand that it cannot have"),
        })
    }
}
