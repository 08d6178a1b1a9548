//! Text to words.
//!
//! The flags before a mnemonic stand in any order. What follows is read along the pieces of an encoding; if several
//! encodings have the mnemonic, the first that fits is taken, or else the error of the one that fits furthest.

mod operands;

use super::field::{Bits, Field, FieldName, Half, Kind};
use super::instr::{UNIFORM_PREDICATES, is_uniform_predicate};
use super::table::{Encoding, Piece, Table, When};
use super::widths::{OtherWidth, Said};
use crate::cursor::Cursor;
use crate::target::Generation;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A line that is no instruction of the generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: expected {expected}")]
pub struct AssembleError {
    /// Column, from 1 on.
    pub column: usize,
    /// The expected text.
    pub expected: Cow<'static, str>,
}

type Result<T> = std::result::Result<T, AssembleError>;

fn fail<T>(at: usize, expected: impl Into<Cow<'static, str>>) -> Result<T> {
    Err(AssembleError { column: at + 1, expected: expected.into() })
}

/// A flag before the mnemonic.
struct Prefix<'a> {
    text: &'a str,
    at: usize,
    used: bool,
}

/// The positions of labels.
pub type Labels<'a> = dyn Fn(&str) -> Option<u32> + 'a;

/// Assembles the instruction at a position.
///
/// # Errors
/// If the text is no instruction of the generation, with the column and what was expected there.
pub fn assemble(generation: Generation, text: &str, ip: u32, labels: &Labels) -> Result<u64> {
    let (line, extra) = without_comment(text)?;
    let mut cursor = Cursor::new(line);
    let mut prefixes: SmallVec<[Prefix; 8]> = SmallVec::new();
    loop {
        cursor.skip_spaces();
        let at = cursor.pos();
        if cursor.peek() != Some(b'(') {
            break;
        }
        let body = cursor.until(&[')']);
        if !cursor.eat(")") {
            return fail(cursor.pos(), "`)`");
        }
        prefixes.push(Prefix { text: &line[at..at + body.len() + 1], at, used: false });
    }
    let start = cursor.pos();
    let mnemonic = cursor.peek_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    let table = Table::of(generation);
    let mut name = mnemonic;
    let mut best: Option<AssembleError> = None;
    while !name.is_empty() {
        for encoding in table.named(name) {
            let mut cursor = cursor.clone();
            cursor.take(name);
            prefixes.iter_mut().for_each(|prefix| prefix.used = false);
            let parser = Parser {
                encoding,
                generation,
                cursor,
                word: encoding.template,
                said: Said::default(),
                weak: None,
                advances: 0,
                ip,
                labels,
            };
            match parser.run(&mut prefixes) {
                Ok(word) => return Ok(word ^ extra),
                Err(error) if best.as_ref().is_none_or(|best| best.column < error.column) => best = Some(error),
                Err(_) => {}
            }
        }
        name = &name[..name.rfind('.').unwrap_or(0)];
    }
    best.map_or_else(|| fail(start, format!("an instruction of a{}xx", generation.number())), Err)
}

/// The line without its comment, and the bits that a comment of the disassembler tells beside the text.
fn without_comment(text: &str) -> Result<(&str, u64)> {
    let Some(at) = text.find(';') else { return Ok((text.trim_end(), 0)) };
    let comment = text[at + 1..].trim();
    let line = text[..at].trim_end();
    match comment.strip_prefix("dontcare bits in ").and_then(|rest| rest.rsplit_once(": ")) {
        Some((_, digits)) => match u64::from_str_radix(digits, 16) {
            Ok(bits) => Ok((line, bits)),
            Err(_) => fail(text.len() - digits.len(), "64 bits in hexadecimal"),
        },
        None => Ok((line, 0)),
    }
}

struct Parser<'a> {
    encoding: &'a Encoding,
    generation: Generation,
    cursor: Cursor<'a>,
    word: u64,
    said: Said,
    /// The width that an immediate of the table of floats says, if nothing else does.
    weak: Option<bool>,
    /// The bits of `(r)`.
    advances: u64,
    ip: u32,
    labels: &'a Labels<'a>,
}

impl Parser<'_> {
    fn run(mut self, prefixes: &mut [Prefix]) -> Result<u64> {
        let encoding = self.encoding;
        let mut named = false;
        for piece in encoding.pieces() {
            match piece {
                Piece::Name => {
                    named = true;
                    // Since 25.1, `.u` is `(r)` of the source: the address is the same in all lanes.
                    if encoding.name == "mova1" && self.cursor.eat(".u") {
                        self.set(43);
                    }
                }
                Piece::Text(text) => self.text(text)?,
                Piece::Field(field) if !named => self.prefix(field, prefixes)?,
                Piece::Field(field) => {
                    // Since 25.1, `(sat)` is before the result.
                    if let Some(clamp) = encoding.field(FieldName::Sat)
                        && self.cursor.eat("(sat)")
                    {
                        self.word |= clamp.bits.put(1);
                    }
                    self.field(field)?;
                }
            }
        }
        self.cursor.skip_spaces();
        if !self.cursor.at_end() {
            return fail(self.cursor.pos(), "the end of the line");
        }
        if let Some(prefix) = prefixes.iter().find(|prefix| !prefix.used) {
            return fail(prefix.at, format!("a flag that `{}` has", encoding.name));
        }
        if let Some(Field { kind: Kind::RepeatOrNop { r }, bits, .. }) = encoding.field(FieldName::RepeatOrNop) {
            let nop_bits = 1 << r[0] | 1 << r[1];
            // Before 25.1, the nops of varyings are printed as `(r)`.
            if bits.get(self.word) == 0 && self.advances & nop_bits != 0 && !encoding.name.ends_with("y.f") {
                return fail(0, "(rptN) where a source has (r)");
            }
        }
        self.said.src = self.said.src.or(self.weak);
        match encoding.widths.set(self.word, self.said, encoding.prints(FieldName::Type)) {
            Ok(word) => self.word = word,
            Err(OtherWidth::Src) => return fail(self.cursor.pos(), "sources of the width that the instruction has"),
            Err(OtherWidth::Dst) => {
                return fail(self.cursor.pos(), "a destination of the width that the instruction has");
            }
        }
        match encoding.when {
            _ if encoding.matches(self.word) => Ok(self.word),
            When::SameTypes => fail(0, "`cov`, since the types differ"),
            When::OtherTypes => fail(0, "`mov`, since the types are the same"),
            When::Always => fail(0, "another instruction"),
        }
    }

    /// Text of the encoding; any number of spaces is read for a space, and spaces before punctuation are skipped.
    fn text(&mut self, text: &'static str) -> Result<()> {
        for (i, part) in text.split(' ').enumerate() {
            if i > 0 {
                self.cursor.skip_spaces();
            }
            let mut ahead = self.cursor.clone();
            for c in part.split("").filter(|c| !c.is_empty()) {
                if matches!(c, "," | "[" | "]" | "<" | "+") {
                    ahead.skip_spaces();
                }
                if !ahead.eat(c) {
                    return fail(self.cursor.pos(), format!("`{part}`"));
                }
                if c == "[" {
                    ahead.skip_spaces();
                }
            }
            self.cursor = ahead;
        }
        Ok(())
    }

    fn prefix(&mut self, field: &Field, prefixes: &mut [Prefix]) -> Result<()> {
        match field.kind {
            Kind::Flag(text) => {
                if let Some(prefix) = prefixes.iter_mut().find(|prefix| prefix.text == text && !prefix.used) {
                    prefix.used = true;
                    self.word |= field.bits.put(1);
                }
            }
            Kind::Repeat => {
                let value = numbered(prefixes, "(rpt")?;
                self.put(field, value.map_or(0, |(value, _)| value), value.map_or(0, |(_, at)| at))?;
            }
            Kind::RepeatOrNop { r } => {
                if let Some((value, at)) = numbered(prefixes, "(rpt")? {
                    self.put(field, value, at)?;
                } else if let Some((value, at)) = numbered(prefixes, "(nop")? {
                    if value > 3 {
                        return fail(at, "at most 3 nops");
                    }
                    self.word |= (value & 1) << r[0] | (value >> 1) << r[1];
                }
            }
            _ => return self.field(field),
        }
        Ok(())
    }

    /// Sets a field, if the value fits.
    fn put(&mut self, field: &Field, value: u64, at: usize) -> Result<()> {
        if !field.bits.holds(value) {
            return fail(at, format!("a number that fits the {} bits of {}", field.bits.width(), field.name));
        }
        self.word |= field.bits.put(value);
        Ok(())
    }

    fn put_signed(&mut self, field: &Field, value: i64, at: usize) -> Result<()> {
        if !field.bits.holds_signed(value) {
            return fail(at, format!("a number that fits the {} bits of {}", field.bits.width(), field.name));
        }
        self.word |= field.bits.put(value as u64);
        Ok(())
    }

    fn set(&mut self, bit: u8) {
        self.word |= 1 << bit;
    }

    fn number(&mut self) -> Result<u64> {
        let at = self.cursor.pos();
        let (digits, radix) = if self.cursor.eat("0x") {
            (self.cursor.take_while(|c| c.is_ascii_hexdigit()), 16)
        } else {
            (self.cursor.take_while(|c| c.is_ascii_digit()), 10)
        };
        u64::from_str_radix(digits, radix).or_else(|_| fail(at, "a number"))
    }

    fn signed(&mut self) -> Result<i64> {
        let at = self.cursor.pos();
        let negative = self.cursor.eat("-");
        if !negative {
            self.cursor.eat("+");
        }
        match i64::try_from(self.number()?) {
            Ok(value) => Ok(if negative { -value } else { value }),
            Err(_) => fail(at, "a smaller number"),
        }
    }

    /// `+5` or `-5`, or nothing; there may be spaces, as in ` + 5` and ` + -5`.
    fn offset(&mut self) -> Result<i64> {
        let mut ahead = self.cursor.clone();
        ahead.skip_spaces();
        let sign = match ahead.peek() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Ok(0),
        };
        ahead.take("+");
        ahead.skip_spaces();
        self.cursor = ahead;
        Ok(sign * self.signed()?)
    }

    fn half(&mut self, half: Half, is: bool, at: usize) -> Result<()> {
        let said = match half {
            Half::Never if is => return fail(at, "a register without `h`"),
            Half::Never => return Ok(()),
            Half::Src => &mut self.said.src,
            Half::Dst => &mut self.said.dst,
        };
        match said.replace(is) {
            Some(before) if before != is => fail(at, "a register as wide as the others"),
            _ => Ok(()),
        }
    }

    fn component(&mut self) -> Result<u64> {
        let at = self.cursor.pos();
        match ["x", "y", "z", "w"].iter().position(|name| self.cursor.eat(name)) {
            Some(component) => Ok(component as u64),
            None => fail(at, "a component"),
        }
    }

    /// The number and component after a letter.
    fn numbered(&mut self, limit: u64) -> Result<u64> {
        let at = self.cursor.pos();
        let number = self.number()?;
        if number >= limit {
            return fail(at, format!("a number below {limit}"));
        }
        if !self.cursor.eat(".") {
            return fail(self.cursor.pos(), "`.`");
        }
        Ok(number << 2 | self.component()?)
    }

    /// `up0.x` as a destination.
    fn uniform_predicate(&mut self, name: FieldName) -> Result<Option<u64>> {
        let number = UNIFORM_PREDICATES << 2;
        let opcode = self.encoding.opcode;
        let may_be = opcode.is_some_and(|opcode| is_uniform_predicate(opcode, self.generation, number));
        if name != FieldName::Dst || !may_be || !self.cursor.eat("up0.") {
            return Ok(None);
        }
        Ok(Some(number | self.component()?))
    }

    fn register(&mut self) -> Result<u64> {
        let at = self.cursor.pos();
        if self.cursor.eat("a0.") {
            return Ok(61 << 2 | self.component()?);
        }
        if self.cursor.eat("a1.x") {
            return Ok(61 << 2 | 1);
        }
        if self.cursor.eat("p0.") {
            return Ok(62 << 2 | self.component()?);
        }
        if self.cursor.eat("r") { self.numbered(64) } else { fail(at, "a register") }
    }

    /// `r<a0.x + 5>` or `c<a0.x + 5>`: whether it is a constant, and the offset.
    fn relative(&mut self) -> Result<Option<(bool, i64)>> {
        let constant = match () {
            () if self.cursor.eat("r<a0.x") => false,
            () if self.cursor.eat("c<a0.x") => true,
            () => return Ok(None),
        };
        self.cursor.skip_spaces();
        let mut offset = 0;
        if self.cursor.eat("+") {
            self.cursor.skip_spaces();
            offset = self.signed()?;
        }
        if self.cursor.eat(">") { Ok(Some((constant, offset))) } else { fail(self.cursor.pos(), "`>`") }
    }

    /// The ten bits of an offset, and the bit for a constant above them.
    fn relative_bits(&self, constant: bool, offset: i64, at: usize) -> Result<u64> {
        if !Bits::new(0, 9).holds_signed(offset) {
            return fail(at, "an offset of 10 bits");
        }
        Ok((offset as u64 & 0x3ff) | u64::from(constant) << 10)
    }

    fn field(&mut self, field: &Field) -> Result<()> {
        let at = self.cursor.pos();
        match field.kind {
            Kind::Hidden | Kind::Always(_) | Kind::Repeat | Kind::RepeatOrNop { .. } => {}
            Kind::Flag(text) => {
                if self.suffix(text) {
                    self.word |= field.bits.put(1);
                }
            }
            Kind::Clear(text) => {
                if !self.suffix(text) {
                    self.word |= field.bits.put(1);
                }
            }
            Kind::Words(words) => {
                let value = self.word_of(words)?;
                self.put(field, value, at)?;
            }
            Kind::Uint(least) => match self.number()?.checked_sub(least) {
                Some(value) => self.put(field, value, at)?,
                None => return fail(at, format!("a number from {least} on")),
            },
            Kind::Offset => {
                let value = self.offset()?;
                self.put_signed(field, value, at)?;
            }
            Kind::UnsignedOffset | Kind::OffsetIf { .. } => {
                let value = self.unsigned_offset()?;
                self.put(field, value, at)?;
                if let (Kind::OffsetIf { bit }, true) = (field.kind, value != 0) {
                    self.set(bit);
                }
            }
            Kind::Log2 => {
                let value = self.number()?;
                if !value.is_power_of_two() || value < 2 {
                    return fail(at, "a power of two");
                }
                self.put(field, u64::from(value.trailing_zeros()) - 1, at)?;
            }
            Kind::Lanes => {
                let value = self.number()?;
                if value % 32 != 0 || value == 0 {
                    return fail(at, "a multiple of 32");
                }
                self.put(field, value / 32 - 1, at)?;
            }
            Kind::Target => {
                let distance = self.target()?;
                self.put_signed(field, distance, at)?;
            }
            Kind::Predicate => {
                let inverted = self.cursor.eat("!");
                if !self.cursor.eat("p0.") {
                    return fail(self.cursor.pos(), "a predicate");
                }
                let component = self.component()?;
                self.put(field, component << 1 | u64::from(inverted), at)?;
            }
            Kind::Register(half) => {
                let is = self.cursor.eat("h");
                self.half(half, is, at)?;
                let value = match self.uniform_predicate(field.name)? {
                    Some(value) => value,
                    None => self.register()?,
                };
                self.put(field, value, at)?;
            }
            Kind::MoveDst { relative } => {
                let is = self.cursor.eat("h");
                self.half(Half::Dst, is, at)?;
                let value = match self.relative()? {
                    Some((false, offset)) if (0..256).contains(&offset) => {
                        self.set(relative);
                        offset as u64
                    }
                    Some(_) => return fail(at, "a register at an offset of 8 bits"),
                    None => self.register()?,
                };
                self.put(field, value, at)?;
            }
            Kind::MoveSrc { r, kind } => self.move_src(field, r, kind)?,
            Kind::MoveTypes => {
                let src = self.word_of(super::texture::TYPES)?;
                let dst = self.word_of(super::texture::TYPES)?;
                self.put(field, src << 3 | dst, at)?;
            }
            Kind::Source { r } => self.source(field, r)?,
            Kind::Source3 { negate, r, immediates } => {
                self.modifiers3(negate, r);
                self.source3(field, immediates)?;
            }
            Kind::SourceMiddle { negate, r } => {
                self.modifiers3(negate, r);
                let is = self.cursor.eat("h");
                self.half(Half::Src, is, at)?;
                let value = self.register()?;
                self.put(field, value, at)?;
            }
            Kind::GeneralRegister => {
                let value = self.register()?;
                self.put(field, value, at)?;
            }
            Kind::RegisterOr { immediate } => {
                let (value, is_number) = self.either()?;
                if is_number {
                    self.set(immediate);
                }
                self.put(field, value, at)?;
            }
            Kind::RegisterOrMode { mode } => {
                let (value, is_number) = self.either()?;
                if is_number != (self.word >> mode & 3 == 0) {
                    return fail(at, if is_number { "a register" } else { "a number" });
                }
                self.put(field, value, at)?;
            }
            Kind::RegisterOrConst { constant } => {
                let value = if self.cursor.eat("c") {
                    self.set(constant);
                    self.numbered(64)?
                } else {
                    self.register()?
                };
                self.put(field, value, at)?;
            }
            // Where the text has no `.o`, the second source itself says that it is there.
            Kind::IfSet { bit } | Kind::IfSetOrOffset { bit, .. }
                if self.word >> bit & 1 != 0
                    || !self.encoding.prints(FieldName::HasOffset) && self.cursor.peek() == Some(b',') =>
            {
                self.set(bit);
                self.text(", ")?;
                let is = self.cursor.eat("h");
                self.half(Half::Src, is, at)?;
                let value = self.register()?;
                self.put(field, value, at)?;
            }
            Kind::IfSet { .. } => {}
            Kind::IfSetOrOffset { offset, .. } => {
                let value = self.unsigned_offset()?;
                if value != 0 {
                    self.set(offset);
                }
                self.put(field, value, at)?;
            }
            Kind::Components => {
                let names = ["x", "y", "z", "w"];
                let value = (0..4).filter(|&i| self.cursor.eat(names[i])).fold(0, |mask, i| mask | 1 << i);
                self.put(field, value, at)?;
            }
            Kind::TextureMode { base } => self.texture_mode(field, base)?,
            Kind::TextureDescriptor { mode, sampler, texture } => self.descriptor(field, mode, sampler, texture)?,
            Kind::Base { bindless } => {
                if self.cursor.eat(".base") {
                    self.set(bindless);
                    let value = self.number()?;
                    self.put(field, value, at)?;
                }
            }
            Kind::ConstOffset => {
                let value = if self.cursor.eat("a1.x") { self.unsigned_offset()? | 1 << 8 } else { self.number()? };
                if value >> 8 > 1 || (value >> 8 == 1 && !self.cursor.before().contains("a1.x")) {
                    return fail(at, format!("a number that fits the 8 bits of {}", field.name));
                }
                self.put(field, value, at)?;
            }
            Kind::AliasDst { scope, size } => self.alias_dst(field, scope, size)?,
            Kind::AliasSrc { float, size, kind } => self.alias_src(field, float, size, kind)?,
        }
        Ok(())
    }

    /// The index of the longest of some texts that is next, or a number.
    fn word_of(&mut self, words: &[&'static str]) -> Result<u64> {
        let rest = self.cursor.rest();
        let fits = words.iter().enumerate().filter(|(_, word)| rest.starts_with(*word));
        // The first of the longest.
        let longest = fits.max_by_key(|&(i, word)| (word.len(), std::cmp::Reverse(i)));
        match longest {
            Some((i, word)) if !word.is_empty() || !rest.starts_with(|c: char| c.is_ascii_digit()) => {
                self.cursor.take(word);
                Ok(i as u64)
            }
            _ if rest.starts_with(|c: char| c.is_ascii_digit()) => self.number(),
            _ => fail(self.cursor.pos(), format!("one of {}", words.join(", "))),
        }
    }

    /// Consumes a suffix of the mnemonic, or a flag, unless it only begins like this one: `.s` and `.s2en`.
    fn suffix(&mut self, text: &str) -> bool {
        let mut ahead = self.cursor.clone();
        let longer =
            ahead.eat(text) && text.starts_with('.') && ahead.peek().is_some_and(|c| c.is_ascii_alphanumeric());
        !longer && self.cursor.eat(text)
    }

    fn unsigned_offset(&mut self) -> Result<u64> {
        let at = self.cursor.pos();
        u64::try_from(self.offset()?).or_else(|_| fail(at, "an offset that is not negative"))
    }

    fn target(&mut self) -> Result<i64> {
        let at = self.cursor.pos();
        let name = self.cursor.peek_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
            return self.signed();
        }
        self.cursor.take(name);
        match (self.labels)(name) {
            Some(ip) => Ok(i64::from(ip) - i64::from(self.ip)),
            None => fail(at, "a label of the code"),
        }
    }

    fn either(&mut self) -> Result<(u64, bool)> {
        if self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            Ok((self.number()?, true))
        } else {
            Ok((self.register()?, false))
        }
    }
}

/// The number of a flag such as `(rpt3)`, and where it is.
fn numbered(prefixes: &mut [Prefix], opening: &str) -> Result<Option<(u64, usize)>> {
    let Some(prefix) = prefixes.iter_mut().find(|prefix| prefix.text.starts_with(opening) && !prefix.used) else {
        return Ok(None);
    };
    prefix.used = true;
    let digits = &prefix.text[opening.len()..prefix.text.len() - 1];
    match digits.parse() {
        Ok(number) => Ok(Some((number, prefix.at))),
        Err(_) => fail(prefix.at + opening.len(), "a number"),
    }
}
