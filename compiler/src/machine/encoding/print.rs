//! Words to text.

use super::field::{Bits, Field, FieldName, Half, Kind};
use super::instr::is_uniform_predicate;
use super::table::{Encoding, Piece};
use crate::target::Generation;
use half::f16;
use std::fmt::Write;

/// The floats that have a text as an immediate of cat2, by their index.
pub(super) const FLOATS: [&str; 12] = [
    "(0.0)",
    "(0.5)",
    "(1.0)",
    "(2.0)",
    "(e)",
    "(pi)",
    "(1/pi)",
    "(1/log2(e))",
    "(log2(e))",
    "(1/log2(10))",
    "(log2(10))",
    "(4.0)",
];

/// The position of a word in the code, and the number of words; branches are labels then.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The position.
    pub ip: u32,
    /// The number of words.
    pub count: u32,
}

/// Bits of a field that hold none of its values.
pub(super) type Result = std::result::Result<(), FieldName>;

pub(super) struct Printer<'a> {
    pub encoding: &'a Encoding,
    pub word: u64,
    pub generation: Generation,
    pub position: Option<Position>,
    pub out: &'a mut String,
}

const fn bit(word: u64, bit: u8) -> bool {
    word >> bit & 1 != 0
}

/// The distance of `l30` from here, if it is in the code.
const fn target(distance: i64, position: Option<Position>) -> Option<i64> {
    match position {
        Some(Position { ip, count }) => {
            let ip = ip as i64 + distance;
            if 0 <= ip && ip < count as i64 { Some(ip) } else { None }
        }
        None => None,
    }
}

impl Printer<'_> {
    pub(super) fn run(&mut self) -> Result {
        let encoding = self.encoding;
        for piece in encoding.pieces() {
            match piece {
                Piece::Text(text) => self.out.push_str(text),
                Piece::Name => self.out.push_str(encoding.name),
                Piece::Field(field) => self.field(field)?,
            }
        }
        Ok(())
    }

    fn number(&mut self, value: impl std::fmt::Display) {
        let _ = write!(self.out, "{value}");
    }

    fn offset(&mut self, value: i64) {
        if value != 0 {
            let _ = write!(self.out, "{value:+}");
        }
    }

    fn flag(&mut self, set: bool, text: &str) {
        if set {
            self.out.push_str(text);
        }
    }

    fn field(&mut self, field: &Field) -> Result {
        let word = self.word;
        let value = field.bits.get(word);
        match field.kind {
            Kind::Hidden | Kind::Always(_) => {}
            Kind::Flag(text) => self.flag(value != 0, text),
            Kind::Clear(text) => self.flag(value == 0, text),
            Kind::Repeat => self.repeat(value),
            Kind::RepeatOrNop { r } => match nops(word, value, r) {
                0 => self.repeat(value),
                nops => {
                    let _ = write!(self.out, "(nop{nops}) ");
                }
            },
            Kind::Words(words) => match words.get(value as usize) {
                Some(text) => self.out.push_str(text),
                None => self.number(value),
            },
            Kind::Uint(least) => self.number(value + least),
            Kind::Offset => self.offset(field.bits.get_signed(word)),
            Kind::UnsignedOffset | Kind::OffsetIf { .. } => self.offset(value as i64),
            Kind::Log2 => self.number(2u64 << value),
            Kind::Lanes => self.number((value + 1) * 32),
            Kind::Target => {
                let distance = field.bits.get_signed(word);
                match target(distance, self.position) {
                    Some(ip) => {
                        let _ = write!(self.out, "l{ip}");
                    }
                    None => self.number(distance),
                }
            }
            Kind::Predicate => {
                self.flag(value & 1 != 0, "!");
                self.out.push_str("p0.");
                self.component(value >> 1);
            }
            Kind::Register(_) if self.is_uniform_predicate(field.name, value) => {
                self.out.push_str("up0.");
                self.component(value & 3);
            }
            Kind::Register(half) => {
                self.half(half);
                self.register(value);
            }
            Kind::MoveDst { relative } => {
                self.half(Half::Dst);
                if bit(word, relative) { self.relative('r', value as i64, true) } else { self.register(value) }
            }
            Kind::MoveSrc { r, kind } => return self.move_src(field, value, r, kind),
            Kind::MoveTypes => {
                self.out.push_str(super::texture::TYPES[(value >> 3 & 7) as usize]);
                self.out.push_str(super::texture::TYPES[(value & 7) as usize]);
            }
            Kind::Source { r } => return self.source(field, value, r),
            Kind::Source3 { negate, r, immediates } => {
                self.flag(negate.is_some_and(|at| bit(word, at)), "(neg)");
                self.flag(self.repeats(r), "(r)");
                return self.source3(field, value, immediates);
            }
            Kind::SourceMiddle { negate, r } => {
                self.flag(negate.is_some_and(|at| bit(word, at)), "(neg)");
                self.flag(self.repeats(r), "(r)");
                self.half(Half::Src);
                self.register(value);
            }
            Kind::GeneralRegister => self.general(value),
            Kind::RegisterOr { immediate } => self.either(bit(word, immediate), value),
            Kind::RegisterOrMode { mode } => self.either(word >> mode & 3 == 0, value),
            Kind::RegisterOrConst { constant } => {
                if bit(word, constant) {
                    self.constant(value)
                } else {
                    self.general(value)
                }
            }
            Kind::IfSet { bit: at } | Kind::IfSetOrOffset { bit: at, .. } if bit(word, at) => {
                self.out.push_str(", ");
                self.half(Half::Src);
                self.register(value);
            }
            Kind::IfSet { .. } => {}
            Kind::IfSetOrOffset { offset, .. } => {
                if bit(word, offset) {
                    self.offset(value as i64);
                }
            }
            Kind::Components => (0..4).filter(|i| value >> i & 1 != 0).for_each(|i| self.component(i)),
            Kind::TextureMode { base } => self.texture_mode(value, base),
            Kind::TextureDescriptor { mode, sampler, texture } => self.descriptor(value, mode, sampler, texture),
            Kind::Base { bindless } => {
                if bit(word, bindless) {
                    let _ = write!(self.out, ".base{value}");
                }
            }
            Kind::ConstOffset => {
                if value >> 8 == 0 {
                    self.number(value);
                } else {
                    self.out.push_str("a1.x");
                    self.offset((value & 0xff) as i64);
                }
            }
            Kind::AliasDst { scope, size } => match scope.get(word) {
                1 => {
                    self.out.push_str("rt");
                    self.number(value >> 2);
                    self.out.push('.');
                    self.component(value & 3);
                }
                _ => {
                    self.flag(!bit(word, size), "h");
                    self.register(value);
                }
            },
            Kind::AliasSrc { float, size, kind } => {
                let half = !bit(word, size);
                match kind.get(word) {
                    0 => {
                        self.flag(half, "h");
                        self.register(value & 0xff);
                    }
                    1 => {
                        self.flag(half, "h");
                        self.constant(value & 0x7ff);
                    }
                    _ if bit(word, float) => {
                        self.flag(half, "h");
                        let _ = write!(self.out, "({value:#x})");
                    }
                    _ => self.float(value as u32, half),
                }
            }
        }
        Ok(())
    }

    fn repeat(&mut self, value: u64) {
        if value != 0 {
            let _ = write!(self.out, "(rpt{value})");
        }
    }

    /// Returns true if the bit says that a source advances with each repetition, and not a number of nops.
    fn repeats(&self, r: u8) -> bool {
        bit(self.word, r)
            && match self.encoding.field(FieldName::RepeatOrNop) {
                Some(Field { kind: Kind::RepeatOrNop { r }, bits, .. }) => {
                    nops(self.word, bits.get(self.word), *r) == 0
                }
                _ => true,
            }
    }

    fn half(&mut self, half: Half) {
        let widths = self.encoding.widths;
        let is = match half {
            Half::Never => false,
            Half::Src => widths.src_half(self.word),
            Half::Dst => widths.dst_half(self.word),
        };
        self.flag(is, "h");
    }

    fn component(&mut self, number: u64) {
        self.out.push(['x', 'y', 'z', 'w'][(number & 3) as usize]);
    }

    fn numbered(&mut self, letter: char, number: u64) {
        let _ = write!(self.out, "{letter}{}.", number >> 2);
        self.component(number);
    }

    fn general(&mut self, number: u64) {
        self.numbered('r', number);
    }

    fn constant(&mut self, number: u64) {
        self.numbered('c', number);
    }

    fn is_uniform_predicate(&self, name: FieldName, number: u64) -> bool {
        let opcode = self.encoding.opcode;
        name == FieldName::Dst && opcode.is_some_and(|opcode| is_uniform_predicate(opcode, self.generation, number))
    }

    fn register(&mut self, number: u64) {
        match number >> 2 {
            61 => self.numbered('a', number & 3),
            62 => self.numbered('p', number & 3),
            _ => self.general(number),
        }
    }

    fn relative(&mut self, letter: char, offset: i64, shorten: bool) {
        let _ = match offset {
            0 if shorten => write!(self.out, "{letter}<a0.x>"),
            _ => write!(self.out, "{letter}<a0.x + {offset}>"),
        };
    }

    fn either(&mut self, immediate: bool, value: u64) {
        if immediate { self.number(value) } else { self.general(value) }
    }

    fn float(&mut self, bits: u32, half: bool) {
        let value = if half { f16::from_bits(bits as u16).to_f32() } else { f32::from_bits(bits) };
        self.flag(half, "h");
        let _ = match value.is_nan() {
            true => write!(self.out, "({}nan)", if value.is_sign_negative() { "-" } else { "" }),
            false => write!(self.out, "({value:.6})"),
        };
    }

    fn move_src(&mut self, field: &Field, value: u64, r: u8, kind: u8) -> Result {
        let advances = bit(self.word, r);
        let relative = value >> 11 & 1 != 0;
        match self.word >> kind & 3 {
            0 if relative && value >> 12 == 0 => {
                self.flag(advances, "(r)");
                self.half(Half::Src);
                let letter = if value >> 10 & 1 != 0 { 'c' } else { 'r' };
                self.relative(letter, Bits::new(0, 9).get_signed(value), true);
            }
            0 if value & !0x4ff == 0 => {
                self.flag(value >> 10 & 1 != 0, "(last)");
                self.flag(advances, "(r)");
                self.half(Half::Src);
                self.register(value & 0xff);
            }
            1 if value >> 11 == 0 => {
                self.flag(advances, "(r)");
                self.half(Half::Src);
                self.constant(value);
            }
            2 => {
                self.flag(advances, "(r)");
                self.move_immediate(value as u32);
            }
            _ => return Err(field.name),
        }
        Ok(())
    }

    fn move_immediate(&mut self, value: u32) {
        // `mova` has no types in its text: both are integers of 16 bits.
        let ty = match self.encoding.name {
            "mova" => 4,
            "mova1" => 2,
            _ => self.word >> 50 & 7,
        };
        match ty {
            0 => self.float(value & 0xffff, true),
            1 => self.float(value, false),
            3 if value > 0x1000 => {
                let _ = write!(self.out, "0x{value:x}");
            }
            4 => self.number(value as i16),
            5 => self.number(value as i32),
            _ => self.number(value),
        }
    }

    fn source(&mut self, field: &Field, value: u64, r: u8) -> Result {
        let advances = self.repeats(r);
        let register = value >> 11 & 7 == 0;
        self.flag(register && value >> 10 & 1 != 0, "(last)");
        self.out.push_str(["", "(neg)", "(abs)", "(absneg)"][(value >> 14 & 3) as usize]);
        self.flag(advances, "(r)");
        match value >> 11 & 7 {
            0 if value >> 8 & 3 == 0 => {
                self.half(Half::Src);
                self.register(value & 0xff);
            }
            1 => {
                self.half(Half::Src);
                let letter = if value >> 10 & 1 != 0 { 'c' } else { 'r' };
                self.relative(letter, Bits::new(0, 9).get_signed(value), true);
            }
            2 | 6 => {
                self.half(Half::Src);
                self.constant(value & 0x7ff);
            }
            4 => {
                let number = Bits::new(0, 10).get_signed(value);
                let _ = match self.encoding.widths.src_half(self.word) {
                    true => write!(self.out, "h({number})"),
                    false => write!(self.out, "{number}"),
                };
            }
            5 => {
                let Some(text) = FLOATS.get((value & 0x3ff) as usize) else { return Err(field.name) };
                self.flag(value >> 10 & 1 != 0, "h");
                self.out.push_str(text);
            }
            _ => return Err(field.name),
        }
        Ok(())
    }

    fn source3(&mut self, field: &Field, value: u64, immediates: bool) -> Result {
        if value >> 12 != 0 {
            if immediates {
                self.number(value & 0xfff);
            } else {
                self.half(Half::Src);
                self.constant(value & 0x7ff);
            }
        } else if value >> 11 != 0 {
            self.half(Half::Src);
            let letter = if value >> 10 & 1 != 0 { 'c' } else { 'r' };
            self.relative(letter, Bits::new(0, 9).get_signed(value), false);
        } else if value >> 8 & 3 == 0 {
            self.flag(value >> 10 & 1 != 0, "(last)");
            self.half(Half::Src);
            self.register(value & 0xff);
        } else {
            return Err(field.name);
        }
        Ok(())
    }

    fn texture_mode(&mut self, mode: u64, base: Bits) {
        self.flag(mode < 6, ".s2en");
        self.out.push_str(match mode {
            0 | 1 | 5 => ".uniform",
            2..=4 => ".nonuniform",
            _ => "",
        });
        if is_bindless(mode) {
            let _ = write!(self.out, ".base{}", base.get(self.word));
        }
    }

    fn descriptor(&mut self, value: u64, mode: Bits, sampler: bool, texture: bool) {
        let mode = mode.get(self.word);
        let mut index = |has: bool, letter: char, value: u64| {
            if has {
                let _ = write!(self.out, ", {letter}#{value}");
            }
        };
        match (mode, self.generation) {
            (7, Generation::A6xx) => index(sampler, 's', value),
            (7, Generation::A7xx | Generation::A8xx) => index(texture, 't', value),
            (6 | 7, _) => {
                index(sampler, 's', value & 0xf);
                index(texture, 't', value >> 4);
            }
            _ => {
                self.out.push_str(", ");
                self.flag(!is_bindless(mode), "h");
                self.register(value);
            }
        }
        self.flag(matches!(mode, 1 | 3 | 7), ", a1.x");
    }
}

/// The number of nops in the bits for `(r)`.
pub(super) const fn nops(word: u64, repeat: u64, r: [u8; 2]) -> u64 {
    if repeat == 0 { word >> r[0] & 1 | (word >> r[1] & 1) << 1 } else { 0 }
}

/// Returns true if a mode of texture descriptors is bindless.
pub(super) const fn is_bindless(mode: u64) -> bool {
    !matches!(mode, 0 | 4)
}
