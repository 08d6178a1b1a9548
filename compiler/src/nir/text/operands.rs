//! Reads the operands after the name of an operation: constants, indices, swizzles.

use half::f16;
use smallvec::SmallVec;

use super::ParseError;
use super::cursor::LineCursor;
use super::writer::component_letters;
use crate::nir::index::{
    ACCESS_WORDS, Access, AtomicOp, FP_WORDS, Format, FpMath, IO_WORDS, ImageDim, Index, IndexKind, InterpMode,
    IoFlags, IoSemantics, MODE_WORDS, MemoryModes, MemorySemantics, PRESERVE_WORDS, Scope, Xfb, XfbOutput,
};
use crate::nir::op::Op;
use crate::nir::types::AluType;

/// The first list of a constant: one number per component, in parentheses. The other interpretations of the same bits,
/// after `=`, are skipped.
pub(super) fn constant(cursor: &mut LineCursor<'_>, count: u8, bit_size: u8) -> Result<SmallVec<[u64; 4]>, ParseError> {
    cursor.expect("(")?;
    let mut values = SmallVec::new();
    for index in 0..count {
        if index > 0 {
            cursor.expect(",")?;
        }
        values.push(number(cursor, bit_size)?);
    }
    if cursor.eat("=") {
        cursor.group()?;
    } else {
        cursor.expect(")")?;
    }
    while cursor.eat("=") {
        cursor.expect("(")?;
        cursor.group()?;
    }
    Ok(values)
}

/// One component of a constant: `true`, hexadecimal bits, a decimal integer or a decimal float.
fn number(cursor: &mut LineCursor<'_>, bit_size: u8) -> Result<u64, ParseError> {
    let text = cursor.peek_while(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
    let mask = u64::MAX >> (64 - bit_size);
    let value = match text {
        "true" if bit_size == 1 => Some(1),
        "false" if bit_size == 1 => Some(0),
        _ => match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().filter(|value| value & !mask == 0),
            None if text.contains('.') => match bit_size {
                16 => text.parse().ok().map(|value| f16::from_f64(value).to_bits().into()),
                32 => text.parse().ok().map(|value: f32| value.to_bits().into()),
                64 => text.parse().ok().map(|value: f64| value.to_bits()),
                _ => None,
            },
            None => {
                let low = -(1i128 << (bit_size - 1));
                let fits = |value: &i128| (low..=i128::from(mask)).contains(value);
                text.parse::<i128>().ok().filter(fits).map(|value| value as u64 & mask)
            }
        },
    };
    match value {
        Some(value) => {
            cursor.take(text);
            Ok(value)
        }
        None if bit_size == 1 => Err(cursor.error("`true` or `false`")),
        None => Err(cursor.error(format!("a constant of {bit_size} bits"))),
    }
}

/// The swizzle of a source: `used` components of a value that has `live`. The cursor is on `.` or past the source.
pub(super) fn swizzle(cursor: &mut LineCursor<'_>, used: u8, live: u8) -> Result<[u8; 16], ParseError> {
    let mut swizzle = [0; 16];
    let components = usize::from(used.min(16));
    if cursor.peek() != Some(b'.') {
        if used != live {
            return Err(cursor.error(format!("a swizzle that takes {used} of {live} components")));
        }
        for (index, component) in swizzle[..components].iter_mut().enumerate() {
            *component = index as u8;
        }
        return Ok(swizzle);
    }
    cursor.take_exact(".");
    let text = cursor.peek_while(|c| c.is_ascii_alphabetic());
    let letters = &component_letters(live)[..usize::from(live)];
    if text.len() != components {
        return Err(cursor.error(format!("{used} of the components `{}`", text_of(letters))));
    }
    for (component, letter) in swizzle.iter_mut().zip(text.bytes()) {
        *component = match letters.iter().position(|&known| known == letter) {
            Some(position) => position as u8,
            None => return Err(cursor.error(format!("components from `{}`", text_of(letters)))),
        };
    }
    cursor.take(text);
    Ok(swizzle)
}

fn text_of(letters: &[u8]) -> String {
    letters.iter().map(|&letter| char::from(letter)).collect()
}

/// Returns true if an index of this kind is at the cursor.
pub(super) fn is_at(cursor: &LineCursor<'_>, kind: IndexKind) -> bool {
    let rest = cursor.rest().strip_prefix(kind.name());
    match kind {
        IndexKind::IoSemantics => rest.is_some_and(|rest| rest.starts_with(" location=")),
        IndexKind::IoXfb | IndexKind::IoXfb2 => rest.is_some_and(|rest| rest.starts_with('(')),
        IndexKind::FpMathCtrl => fp_math(&mut cursor.clone()).is_some(),
        _ => rest.is_some_and(|rest| rest.starts_with('=')),
    }
}

/// The control of a float operation: `exact, preserve:sz,inf`, `preserve:nan`, `no-contract`, or `fp-fast-math` for
/// none. The cursor moves only past such a text.
pub(super) fn fp_math(cursor: &mut LineCursor<'_>) -> Option<FpMath> {
    fn word<'a>(cursor: &LineCursor<'a>) -> &'a str {
        cursor.peek_while(|c| c.is_ascii_lowercase() || c == '-')
    }
    let mut ahead = cursor.clone();
    let first = word(&ahead);
    let forbidden = match first {
        "exact" => Some(FpMath::EXACT),
        "fp-fast-math" => Some(FpMath::empty()),
        _ => FP_WORDS.iter().position(|&known| known == first).map(|bit| FpMath::from_bits_truncate(1 << bit)),
    };
    if forbidden.is_some() {
        ahead.take_exact(first);
    }
    let mut math = forbidden.unwrap_or_default();
    let mut after = ahead.clone();
    let has_list = (forbidden.is_none() || after.eat(", ")) && first != "fp-fast-math" && after.eat("preserve:");
    if has_list {
        loop {
            let kept = word(&after);
            let bit = PRESERVE_WORDS.iter().position(|&known| known == kept)?;
            math |= FpMath::from_bits_truncate(FpMath::SIGNED_ZERO.bits() << bit);
            after.take_exact(kept);
            if !after.rest().starts_with(',') || after.rest().starts_with(", ") {
                break;
            }
            after.take_exact(",");
        }
        ahead = after;
    }
    if forbidden.is_none() && !has_list {
        return None;
    }
    *cursor = ahead;
    Some(math)
}

/// Reads an index of this kind; `components` is the size of the vector that a write mask applies to.
pub(super) fn index(cursor: &mut LineCursor<'_>, kind: IndexKind, components: u8) -> Result<Index, ParseError> {
    if !is_at(cursor, kind) {
        let equals = match kind {
            IndexKind::IoSemantics | IndexKind::IoXfb | IndexKind::IoXfb2 | IndexKind::FpMathCtrl => "",
            _ => "=",
        };
        return Err(cursor.error(format!("`{}{equals}`", kind.name())));
    }
    if kind == IndexKind::FpMathCtrl {
        return Ok(Index::FpMathCtrl(fp_math(cursor)));
    }
    cursor.take_exact(kind.name());
    match kind {
        IndexKind::IoSemantics => return io_semantics(cursor).map(Index::IoSemantics),
        IndexKind::IoXfb => return xfb(cursor).map(Index::IoXfb),
        IndexKind::IoXfb2 => return xfb(cursor).map(Index::IoXfb2),
        _ => cursor.take_exact("="),
    }
    Ok(match kind {
        IndexKind::Base => Index::Base(integer(cursor)? as i32),
        IndexKind::WriteMask => Index::WriteMask(write_mask(cursor, components)?),
        IndexKind::StreamId => Index::StreamId(integer(cursor)?),
        IndexKind::RangeBase => Index::RangeBase(integer(cursor)?),
        IndexKind::Range => Index::Range(integer(cursor)?),
        IndexKind::DescSet => Index::DescSet(integer(cursor)?),
        IndexKind::UcpId => Index::UcpId(integer(cursor)?),
        IndexKind::Component => Index::Component(cursor.number(15, "a component")? as u8),
        IndexKind::InterpMode => Index::InterpMode(word(cursor, interp_mode, "an interpolation mode")?),
        IndexKind::ReductionOp => Index::ReductionOp(word(cursor, Op::from_name, "an operation")?),
        IndexKind::ClusterSize => Index::ClusterSize(integer(cursor)?),
        IndexKind::ImageDim => Index::ImageDim(word(cursor, ImageDim::from_name, "an image dimension")?),
        IndexKind::ImageArray => Index::ImageArray(word(cursor, boolean, "`true` or `false`")?),
        IndexKind::Format => Index::Format(word(cursor, Format::from_name, "an image format")?),
        IndexKind::Access => {
            let bits = match cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                // The bits of these words, until Mesa 23.2. The tenth was of another meaning then.
                true => cursor.number((1 << FIRST_ACCESS_WORDS) - 1, "a kind of access")? as u32,
                false => flags(cursor, "none", ACCESS_WORDS, "a kind of access")?,
            };
            Index::Access(Access::from_bits_truncate(bits))
        }
        IndexKind::AlignMul => Index::AlignMul(integer(cursor)?),
        IndexKind::AlignOffset => Index::AlignOffset(integer(cursor)?),
        IndexKind::SrcType => Index::SrcType(word(cursor, AluType::from_name, "a type")?),
        IndexKind::DestType => Index::DestType(word(cursor, AluType::from_name, "a type")?),
        IndexKind::DriverLocation => Index::DriverLocation(integer(cursor)?),
        IndexKind::MemorySemantics => Index::MemorySemantics(MemorySemantics::from_bits_truncate(flags(
            cursor,
            "NONE",
            &["ACQ", "REL", "AVAILABLE", "VISIBLE"],
            "memory semantics",
        )? as u8)),
        IndexKind::MemoryModes => {
            Index::MemoryModes(MemoryModes::from_bits_truncate(flags(cursor, "0", MODE_WORDS, "a kind of memory")?))
        }
        IndexKind::MemoryScope => Index::MemoryScope(word(cursor, Scope::from_name, "a scope")?),
        IndexKind::ExecutionScope => Index::ExecutionScope(word(cursor, Scope::from_name, "a scope")?),
        IndexKind::AtomicOp => Index::AtomicOp(word(cursor, AtomicOp::from_name, "an atomic operation")?),
        IndexKind::NumComponents => Index::NumComponents(cursor.number(16, "a number of components")? as u8),
        IndexKind::NumArrayElems => Index::NumArrayElems(integer(cursor)?),
        IndexKind::BitSize => Index::BitSize(cursor.number(64, "a width")? as u8),
        IndexKind::Divergent => Index::Divergent(cursor.number(1, "`0` or `1`")? != 0),
        IndexKind::LegacyFabs => Index::LegacyFabs(cursor.number(1, "`0` or `1`")? != 0),
        IndexKind::LegacyFneg => Index::LegacyFneg(cursor.number(1, "`0` or `1`")? != 0),
        IndexKind::LegacyFsat => Index::LegacyFsat(cursor.number(1, "`0` or `1`")? != 0),
        IndexKind::OffsetShift => Index::OffsetShift(Some(cursor.number(3, "a shift")? as u8)),
        // Read above: they have no `=`.
        IndexKind::IoSemantics | IndexKind::IoXfb | IndexKind::IoXfb2 | IndexKind::FpMathCtrl => {
            return Err(cursor.error("an index"));
        }
    })
}

/// A mode by its name, or by its number, as Mesa 23.1 prints it.
fn interp_mode(text: &str) -> Option<InterpMode> {
    use InterpMode::{Color, Explicit, Flat, NoPerspective, None, Smooth};
    let number = text
        .parse::<usize>()
        .ok()
        .and_then(|number| [None, Smooth, Flat, NoPerspective, Explicit, Color].get(number).copied());
    number.or_else(|| InterpMode::from_name(text))
}

/// The number of kinds of access that have had their bits in all versions.
const FIRST_ACCESS_WORDS: u32 = 9;

/// A 32-bit number; nir_print prints signed and unsigned ones as signed.
fn integer(cursor: &mut LineCursor<'_>) -> Result<u32, ParseError> {
    let at = cursor.clone();
    let expected = "an integer of 32 bits";
    let value = cursor.signed(expected)?;
    let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value);
    if fits { Ok(value as u32) } else { Err(at.error(expected)) }
}

fn word<T>(cursor: &mut LineCursor<'_>, read: impl Fn(&str) -> Option<T>, what: &str) -> Result<T, ParseError> {
    let text = cursor.peek_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let value = read(text).ok_or_else(|| cursor.error(what))?;
    cursor.take(text);
    Ok(value)
}

fn boolean(text: &str) -> Option<bool> {
    text.parse().ok()
}

/// Words with `|` between them, or the word for the empty set.
fn flags(cursor: &mut LineCursor<'_>, none: &str, words: &[&str], what: &str) -> Result<u32, ParseError> {
    let mut bits = 0;
    loop {
        let text = cursor.peek_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        match words.iter().position(|&word| word == text) {
            Some(bit) => bits |= 1 << bit,
            // nir_print prints `NONE|VISIBLE` for memory semantics without an order.
            None if text == none && bits == 0 => {}
            None => return Err(cursor.error(what)),
        }
        cursor.take(text);
        if !cursor.eat("|") {
            return Ok(bits);
        }
    }
}

fn write_mask(cursor: &mut LineCursor<'_>, components: u8) -> Result<u16, ParseError> {
    let text = cursor.peek_while(|c| c.is_ascii_alphabetic());
    let letters = &component_letters(components)[..usize::from(components)];
    let mut mask = 0;
    for letter in text.bytes() {
        match letters.iter().position(|&known| known == letter) {
            // In order, each at most once.
            Some(position) if mask >> position == 0 => mask |= 1 << position,
            _ => return Err(cursor.error(format!("components from `{}`", text_of(letters)))),
        }
    }
    cursor.take(text);
    Ok(mask)
}

fn io_semantics(cursor: &mut LineCursor<'_>) -> Result<Option<Box<IoSemantics>>, ParseError> {
    cursor.spaces();
    cursor.expect("location=")?;
    let location = cursor.peek_while(|c| c.is_ascii_alphanumeric() || c == '_');
    if location.is_empty() {
        return Err(cursor.error("a location"));
    }
    cursor.take(location);
    cursor.expect("slots=")?;
    let slots = cursor.number(u32::MAX.into(), "a number of slots")? as u32;
    cursor.spaces();
    let mut flags = IoFlags::empty();
    let mut streams = None;
    while cursor.peek().is_some_and(|c| c != b',' && c != b')') {
        let text = cursor.peek_word();
        if text == "gs_streams" && streams.is_none() {
            streams = Some(io_streams(cursor)?);
            cursor.spaces();
            continue;
        }
        match IO_WORDS.iter().position(|&word| word == text) {
            Some(bit) => flags |= IoFlags::from_bits_truncate(1 << bit),
            None => return Err(cursor.error("a flag of an input or output, `,` or `)`")),
        }
        cursor.take(text);
    }
    if location == "NONE" && slots == 0 && flags.is_empty() && streams.is_none() {
        return Ok(None);
    }
    Ok(Some(Box::new(IoSemantics { location: location.into(), slots, flags, streams })))
}

/// `gs_streams(x=0 y=0 z=0 w=1)`
fn io_streams(cursor: &mut LineCursor<'_>) -> Result<[u8; 4], ParseError> {
    cursor.expect("gs_streams(")?;
    let mut streams = [0; 4];
    for (stream, name) in streams.iter_mut().zip(["x=", "y=", "z=", "w="]) {
        cursor.spaces();
        cursor.expect(name)?;
        *stream = cursor.number(3, "a stream")? as u8;
    }
    cursor.expect(")")?;
    Ok(streams)
}

fn xfb(cursor: &mut LineCursor<'_>) -> Result<Option<Box<Xfb>>, ParseError> {
    cursor.expect("(")?;
    let mut outputs = SmallVec::new();
    while !cursor.eat(")") {
        if !outputs.is_empty() {
            cursor.expect(",")?;
        }
        let several = cursor.eat("components=");
        if !several {
            cursor.expect("component=")?;
        }
        let first = cursor.number(15, "a component")? as u8;
        let last = if several {
            cursor.expect("..")?;
            cursor.number(15, "a component")? as u8
        } else {
            first
        };
        cursor.spaces();
        if last < first {
            return Err(cursor.error(format!("a last component of at least {first}")));
        }
        cursor.expect("buffer=")?;
        let buffer = cursor.number(u32::MAX.into(), "a buffer")? as u32;
        cursor.spaces();
        cursor.expect("offset=")?;
        let offset = cursor.number(u32::MAX.into(), "an offset")? as u32;
        cursor.spaces();
        outputs.push(XfbOutput { first, components: last - first + 1, buffer, offset });
    }
    Ok(if outputs.is_empty() { None } else { Some(Box::new(Xfb { outputs })) })
}
