//! Sources of the arithmetic instructions and of moves, and the descriptors of textures.

use super::{Parser, Result, fail};
use crate::machine::encoding::field::{Bits, Field, FieldName, Half};
use crate::machine::encoding::print::{FLOATS, is_bindless};
use crate::target::Generation;
use half::f16;

impl Parser<'_> {
    pub(super) fn advance(&mut self, r: u8) {
        if self.cursor.eat("(r)") {
            self.set(r);
            self.advances |= 1 << r;
        }
    }

    pub(super) fn modifiers3(&mut self, negate: Option<u8>, r: u8) {
        if let Some(bit) = negate
            && self.cursor.eat("(neg)")
        {
            self.set(bit);
        }
        self.advance(r);
    }

    /// A float in parentheses, as its bits.
    pub(super) fn float(&mut self, half: bool) -> Result<u64> {
        let at = self.cursor.pos();
        if !self.cursor.eat("(") {
            return fail(at, "`(`");
        }
        let text = self.cursor.until(&[')']);
        let value: f32 = match text.parse() {
            Ok(value) => value,
            Err(_) => return fail(at + 1, "a float"),
        };
        if !self.cursor.eat(")") {
            return fail(self.cursor.pos(), "`)`");
        }
        Ok(if half { f16::from_f32(value).to_bits().into() } else { value.to_bits().into() })
    }

    pub(super) fn move_src(&mut self, field: &Field, r: u8, kind: u8) -> Result<()> {
        let last = self.cursor.eat("(last)");
        self.advance(r);
        let at = self.cursor.pos();
        let ty = match self.encoding.name {
            "mova" => 4,
            "mova1" => 2,
            _ => self.word >> 50 & 7,
        };
        let first = self.cursor.peek();
        let rest = self.cursor.rest();
        let is_float = rest.starts_with('(') || rest.starts_with("h(");
        if is_float || first.is_some_and(|c| c.is_ascii_digit() || c == b'-') {
            self.word |= 2 << kind;
            let value = match ty {
                0 | 1 => {
                    if (ty == 0) != self.cursor.eat("h") {
                        return fail(at, "a float of the width of the source's type");
                    }
                    self.float(ty == 0)?
                }
                _ if is_float => return fail(at, "an integer, as the type of the source is one"),
                4 => {
                    let value = self.signed()?;
                    if !(-0x8000..0x10000).contains(&value) {
                        return fail(at, "16 bits");
                    }
                    value as u64 & 0xffff
                }
                5 => {
                    let value = self.signed()?;
                    if !(-0x8000_0000..0x1_0000_0000).contains(&value) {
                        return fail(at, "32 bits");
                    }
                    value as u64 & 0xffff_ffff
                }
                _ => self.number()?,
            };
            return self.put(field, value, at);
        }
        let is = self.cursor.eat("h");
        self.half(Half::Src, is, at)?;
        let value = if let Some((constant, offset)) = self.relative()? {
            self.relative_bits(constant, offset, at)? | 1 << 11
        } else if self.cursor.eat("c") {
            self.word |= 1 << kind;
            self.numbered(512)?
        } else {
            self.register()? | u64::from(last) << 10
        };
        self.put(field, value, at)
    }

    pub(super) fn source(&mut self, field: &Field, r: u8) -> Result<()> {
        let last = self.cursor.eat("(last)");
        let modifiers = ["(neg)", "(abs)", "(absneg)"];
        let modifier = modifiers.iter().position(|text| self.cursor.eat(text)).map_or(0, |i| i as u64 + 1);
        self.advance(r);
        let at = self.cursor.pos();
        let is = self.cursor.eat("h");
        let rest = self.cursor.rest();
        // The longer text first: `(log2(e))` and `(1/log2(e))` do not begin alike, but others might.
        let float = FLOATS.iter().position(|text| rest.starts_with(text));
        let value = if let Some(index) = float {
            self.cursor.take(FLOATS[index]);
            self.weak = Some(is);
            5 << 11 | u64::from(is) << 10 | index as u64
        } else if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '(') {
            if is != self.cursor.eat("(") {
                return fail(at, "an operand");
            }
            let number = self.signed()?;
            if is && !self.cursor.eat(")") {
                return fail(self.cursor.pos(), "`)`");
            }
            self.half(Half::Src, is, at)?;
            if !Bits::new(0, 10).holds_signed(number) {
                return fail(at, format!("a number that fits the 11 bits of {}", field.name));
            }
            4 << 11 | number as u64 & 0x7ff
        } else {
            self.half(Half::Src, is, at)?;
            if let Some((constant, offset)) = self.relative()? {
                1 << 11 | self.relative_bits(constant, offset, at)?
            } else if self.cursor.eat("c") {
                2 << 11 | self.numbered(512)?
            } else {
                self.register()? | u64::from(last) << 10
            }
        };
        self.put(field, value | modifier << 14, at)
    }

    pub(super) fn source3(&mut self, field: &Field, immediates: bool) -> Result<()> {
        let at = self.cursor.pos();
        let last = self.cursor.eat("(last)");
        if immediates && self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            let number = self.number()?;
            if number > 0xfff {
                return fail(at, format!("a number that fits the 12 bits of {}", field.name));
            }
            return self.put(field, number | 1 << 12, at);
        }
        let is = self.cursor.eat("h");
        self.half(Half::Src, is, at)?;
        let value = if let Some((constant, offset)) = self.relative()? {
            1 << 11 | self.relative_bits(constant, offset, at)?
        } else if !immediates && self.cursor.eat("c") {
            1 << 12 | self.numbered(512)?
        } else {
            self.register()? | u64::from(last) << 10
        };
        self.put(field, value, at)
    }

    pub(super) fn texture_mode(&mut self, field: &Field, base: Bits) -> Result<()> {
        let at = self.cursor.pos();
        let indirect = self.cursor.eat(".s2en");
        let uniform = self.cursor.eat(".uniform");
        let nonuniform = !uniform && self.cursor.eat(".nonuniform");
        let bindless = self.cursor.eat(".base");
        if bindless {
            let at = self.cursor.pos();
            let number = self.number()?;
            if !base.holds(number) {
                return fail(at, format!("a number that fits the {} bits of {}", base.width(), FieldName::Base));
            }
            self.word |= base.put(number);
        }
        let mode = match (indirect, uniform, nonuniform, bindless) {
            (true, true, false, false) => 0,
            (true, true, false, true) => 5,
            (true, false, true, false) => 4,
            (true, false, true, true) => 2,
            (false, false, false, true) => 6,
            _ => return fail(at, "`.s2en` with `.uniform` or `.nonuniform`, or `.base`"),
        };
        self.put(field, mode, at)
    }

    pub(super) fn descriptor(&mut self, field: &Field, mode: Bits, sampler: bool, texture: bool) -> Result<()> {
        let at = self.cursor.pos();
        let direct = mode.get(self.word) == 6;
        let (mut sampler_index, mut texture_index) = (0, 0);
        let mut value = 0;
        if direct {
            for (has, text, index) in [(sampler, ", s#", &mut sampler_index), (texture, ", t#", &mut texture_index)] {
                let mut ahead = self.cursor.clone();
                std::mem::swap(&mut ahead, &mut self.cursor);
                if has && self.text(if text == ", s#" { ", s#" } else { ", t#" }).is_ok() {
                    *index = self.number()?;
                } else {
                    self.cursor = ahead;
                }
            }
        } else {
            self.text(", ")?;
            let is = self.cursor.eat("h");
            if is == is_bindless(mode.get(self.word)) {
                return fail(at, if is { "a full register" } else { "a half register" });
            }
            value = self.register()?;
        }
        let mut ahead = self.cursor.clone();
        if ahead.eat(",") {
            ahead.skip_spaces();
            if ahead.eat("a1.x") {
                self.cursor = ahead;
                let with = match mode.get(self.word) {
                    5 => 1,
                    2 => 3,
                    6 => 7,
                    _ => return fail(at, "a bindless mode for a1.x"),
                };
                self.word = self.word & !mode.mask() | mode.put(with);
            }
        }
        let whole = mode.get(self.word) == 7;
        match (direct, whole, self.generation) {
            (false, ..) => {}
            (true, true, Generation::A6xx) if texture_index == 0 => value = sampler_index,
            (true, true, Generation::A7xx | Generation::A8xx) if sampler_index == 0 => value = texture_index,
            _ if sampler_index > 15 || texture_index > 15 => {
                return fail(at, format!("numbers that fit the 4 bits of each of {}", field.name));
            }
            _ => value = sampler_index | texture_index << 4,
        }
        self.put(field, value, at)
    }

    fn alias_width(&mut self, size: u8) -> Result<bool> {
        let at = self.cursor.pos();
        let is = self.cursor.eat("h");
        if is == (self.word >> size & 1 != 0) {
            return fail(at, "an operand of the width that the type says");
        }
        Ok(is)
    }

    pub(super) fn alias_dst(&mut self, field: &Field, scope: Bits, size: u8) -> Result<()> {
        let at = self.cursor.pos();
        let value = if scope.get(self.word) == 1 {
            if !self.cursor.eat("rt") {
                return fail(at, "`rt`");
            }
            self.numbered(64)?
        } else {
            self.alias_width(size)?;
            self.register()?
        };
        self.put(field, value, at)
    }

    pub(super) fn alias_src(&mut self, field: &Field, float: u8, size: u8, kind: Bits) -> Result<()> {
        let at = self.cursor.pos();
        let is = self.alias_width(size)?;
        let value = if self.cursor.peek() == Some(b'(') {
            self.word |= kind.put(2);
            if self.word >> float & 1 == 0 {
                self.float(is)?
            } else {
                self.cursor.eat("(");
                let value = self.number()?;
                if !self.cursor.eat(")") {
                    return fail(self.cursor.pos(), "`)`");
                }
                value
            }
        } else if self.cursor.eat("c") {
            self.word |= kind.put(1);
            self.numbered(512)?
        } else {
            self.register()?
        };
        self.put(field, value, at)
    }
}
