//! Operands, in both directions.
//!
//! An operand is its modifiers and flags in parentheses, then letters for its class (`s` shared, `h` half, `p`
//! predicate), then the register, value, constant or immediate. SSA names are resolved later, when all definitions have
//! been read.

use super::cursor::{Cursor, Parsed, fail};
use crate::ir3::legality::{flut_bits, flut_index, takes_flut_immediates};
use crate::ir3::opcode::Category;
use crate::ir3::{Mods, Opcode, OperandFlags, PhysReg, RegClass, RegFile, WriteMask};
use std::fmt::Write;

/// An operand as it is in the text.
pub(super) struct RawOperand {
    pub what: What,
    pub class: RegClass,
    pub mask: WriteMask,
    pub mods: Mods,
    pub flags: OperandFlags,
    /// It has `!!`: it is printed as it is, not inverted.
    pub as_printed: bool,
    /// `(sat)` before a result: it is clamped.
    pub is_clamped: bool,
    /// `(dummy)`: the operand of a prefetch that has none.
    pub is_dummy: bool,
    /// Byte offset in the line.
    pub at: usize,
}

/// An SSA name: the two numbers after `ssa_`.
#[derive(Clone, Copy)]
pub(super) struct SsaName {
    pub serial: u32,
    /// 0 if there is none.
    pub name: u32,
}

/// An array as it is in the text.
#[derive(Clone, Copy)]
pub(super) struct RawArray {
    pub id: u32,
    pub offset: i16,
    pub size: u16,
    pub base: Option<PhysReg>,
}

pub(super) enum What {
    Value(SsaName, Option<PhysReg>),
    /// In SSA form; `None` is undefined.
    Array(Option<SsaName>, RawArray),
    Undef,
    Reg(PhysReg),
    Relative {
        offset: i16,
        size: u16,
    },
    Const(u16),
    ConstRelative(i16),
    /// As it is in the text: for a float operation, the index in the table.
    Immediate(u32),
}

impl RawOperand {
    pub(super) fn parse(cursor: &mut Cursor, opcode: Opcode) -> Parsed<Self> {
        let at = cursor.pos();
        let as_printed = cursor.eat("!!");
        let mut mods = Mods::empty();
        let mut flags = OperandFlags::empty();
        let (mut is_clamped, mut is_dummy) = (false, false);
        let neg = opcode.negation();
        while cursor.peek() == Some(b'(') {
            if cursor.eat("(neg)") {
                mods |= neg;
            } else if cursor.eat("(abs)") {
                mods |= Mods::ABS;
            } else if cursor.eat("(absneg)") {
                mods |= Mods::ABS | neg;
            } else if cursor.eat("(not)") {
                mods |= Mods::NOT;
            } else if cursor.eat("(minus)") {
                mods |= Mods::NEG;
            } else if cursor.eat("(kill)") {
                flags |= OperandFlags::KILL | OperandFlags::FIRST_KILL;
            } else if cursor.eat("(last)") {
                flags |= OperandFlags::LAST;
            } else if cursor.eat("(unused)") {
                flags |= OperandFlags::UNUSED;
            } else if cursor.eat("(r)") {
                flags |= OperandFlags::R;
            } else if cursor.eat("(early_clobber)") {
                flags |= OperandFlags::EARLY_CLOBBER;
            } else if cursor.eat("(tied)") {
                flags |= OperandFlags::TIED;
            } else if cursor.eat("(dummy)") {
                is_dummy = true;
            } else if cursor.eat("(sat)") {
                is_clamped = true;
            } else {
                return fail(cursor.pos(), "an operand's flag");
            }
        }
        if cursor.eat("!") {
            mods |= Mods::NOT;
        }
        let mut class = RegClass::FULL;
        if cursor.rest().starts_with("up") {
            cursor.eat("u");
            flags |= OperandFlags::UNIFORM;
        }
        if cursor.peek() == Some(b's') && !cursor.rest().starts_with("ssa_") {
            cursor.eat("s");
            class.file = RegFile::Shared;
        }
        class.half = cursor.eat("h");
        if cursor.eat("p") {
            class.file = RegFile::Predicate;
        }
        let what = What::parse(cursor, class.half)?;
        if class.file == RegFile::General && what.reg().is_some_and(|reg| reg.register() == PhysReg::A0_X.register()) {
            class = RegClass::ADDRESS;
        }
        let mut mask = WriteMask::SCALAR;
        if cursor.eat(" (wrmask=") {
            mask = WriteMask(cursor.hex("a hexadecimal mask")?);
            cursor.expect(")")?;
        }
        Ok(Self { what, class, mask, mods, flags, as_printed, is_clamped, is_dummy, at })
    }

    /// Returns true if it names a register, or a value that gets one.
    pub(super) const fn is_register(&self) -> bool {
        !matches!(self.what, What::Const(_) | What::ConstRelative(_) | What::Immediate(_) | What::Undef)
    }

    /// The serial number of the instruction whose result it names.
    pub(super) fn serial(&self) -> Option<u32> {
        match self.what {
            What::Value(name, _) | What::Array(Some(name), _) => Some(name.serial),
            _ => None,
        }
    }
}

impl What {
    fn parse(cursor: &mut Cursor, half: bool) -> Parsed<Self> {
        let start = cursor.pos();
        if cursor.eat("ssa_") {
            let name = ssa_name(cursor)?;
            if let Some(array) = array(cursor, ":arr[")? {
                return Ok(Self::Array(Some(name), array));
            }
            return Ok(Self::Value(name, parenthesised_reg(cursor)?));
        }
        if cursor.eat("undef") {
            return Ok(array(cursor, ":arr[")?.map_or(Self::Undef, |array| Self::Array(None, array)));
        }
        if let Some(array) = array(cursor, "arr[")? {
            return Ok(Self::Array(None, array));
        }
        if cursor.eat("imm[") {
            // The same bits as a float, as an integer, and in hexadecimal; the float is rounded.
            let float_at = cursor.pos();
            let float = cursor.until(&[',', ']']);
            cursor.expect(",")?;
            let at = cursor.pos();
            let decimal: i64 = cursor.signed("a decimal number")?;
            cursor.expect(",")?;
            let mut bits = cursor.hex("32 bits in hexadecimal")?;
            cursor.expect("]")?;
            if decimal as u32 != bits {
                return fail(at, format!("{}, as in hexadecimal", bits as i32));
            }
            if !rounds_to(float, bits) {
                return fail(float_at, format!("{:.6}, as in hexadecimal", f32::from_bits(bits)));
            }
            if half {
                bits &= 0xffff;
            }
            return Ok(Self::Immediate(bits));
        }
        if cursor.eat("r<a0.x + ") {
            let offset = cursor.signed("an offset")?;
            cursor.expect("> (")?;
            let size = cursor.number("a number of elements")?;
            cursor.expect(")")?;
            return Ok(Self::Relative { offset, size });
        }
        if cursor.eat("c<a0.x + ") {
            let offset = cursor.signed("an offset")?;
            cursor.expect(">")?;
            return Ok(Self::ConstRelative(offset));
        }
        if let Some(letter) = ["r", "c", "p"].into_iter().find(|letter| cursor.eat(letter)) {
            let number: u16 = cursor.number("a register number")?;
            if number >= 1 << 13 {
                return fail(start, "a register number");
            }
            cursor.expect(".")?;
            let reg = PhysReg::new(number, cursor.component()?);
            return Ok(match letter {
                "c" => Self::Const(reg.0),
                "p" => Self::Reg(PhysReg::P0_X.offset(reg.component())),
                _ => Self::Reg(reg),
            });
        }
        fail(start, "an operand")
    }

    fn reg(&self) -> Option<PhysReg> {
        match *self {
            Self::Value(_, reg) => reg,
            Self::Reg(reg) => Some(reg),
            _ => None,
        }
    }
}

/// Returns true if a float with six decimal places is the rounded value of these bits.
fn rounds_to(text: &str, bits: u32) -> bool {
    let value = f64::from(f32::from_bits(bits));
    match text.trim_start_matches('-') {
        "nan" => value.is_nan(),
        "inf" => value.is_infinite() && value.is_sign_negative() == text.starts_with('-'),
        _ => text.parse::<f64>().is_ok_and(|said| (said - value).abs() <= 1e-6 + value.abs() * 1e-6),
    }
}

/// The numbers after `ssa_`.
pub(super) fn ssa_name(cursor: &mut Cursor) -> Parsed<SsaName> {
    let serial = cursor.number("a serial number")?;
    let mut ahead = cursor.clone();
    let named = ahead.eat(":") && ahead.peek().is_some_and(|c| c.is_ascii_digit());
    if !named {
        return Ok(SsaName { serial, name: 0 });
    }
    *cursor = ahead;
    Ok(SsaName { serial, name: cursor.number("a value's number")? })
}

/// `(r4.x)` or `(p0.y)`, if it is next.
fn parenthesised_reg(cursor: &mut Cursor) -> Parsed<Option<PhysReg>> {
    let predicate = cursor.eat("(p");
    if !predicate && !cursor.eat("(r") {
        return Ok(None);
    }
    let at = cursor.pos();
    let number: u16 = cursor.number("a register number")?;
    if number >= 64 {
        return fail(at, "a register number below 64");
    }
    cursor.expect(".")?;
    let component = cursor.component()?;
    cursor.expect(")")?;
    Ok(Some(if predicate { PhysReg::P0_X.offset(component) } else { PhysReg::new(number, component) }))
}

/// An array whose text starts with `opening`, if it is next.
fn array(cursor: &mut Cursor, opening: &str) -> Parsed<Option<RawArray>> {
    if !cursor.eat(opening) {
        return Ok(None);
    }
    cursor.expect("id=")?;
    let id = cursor.number("an array's number")?;
    cursor.expect(", offset=")?;
    let offset = cursor.signed("an offset")?;
    cursor.expect(", size=")?;
    let size = cursor.number("a number of elements")?;
    cursor.expect("]")?;
    Ok(Some(RawArray { id, offset, size, base: parenthesised_reg(cursor)? }))
}

/// Writes the flags and modifiers before an operand, and the letters of its class.
pub(in crate::ir3) fn write_prefix(out: &mut String, opcode: Opcode, mods: Mods, flags: OperandFlags, class: RegClass) {
    let flow = opcode.category() == Category::Flow;
    let neg = opcode.negation();
    let bits = neg == Mods::NOT;
    match (mods.contains(Mods::ABS), mods.contains(neg)) {
        (true, true) => out.push_str("(absneg)"),
        (true, false) => out.push_str("(abs)"),
        (false, true) => out.push_str("(neg)"),
        (false, false) => {}
    }
    // Modifiers that the operation cannot have; Mesa has no text for them.
    if bits && mods.contains(Mods::NEG) {
        out.push_str("(minus)");
    }
    if !bits && !flow && mods.contains(Mods::NOT) {
        out.push_str("(not)");
    }
    for (flag, name) in [
        (OperandFlags::FIRST_KILL, "(kill)"),
        (OperandFlags::LAST, "(last)"),
        (OperandFlags::UNUSED, "(unused)"),
        (OperandFlags::R, "(r)"),
        (OperandFlags::EARLY_CLOBBER, "(early_clobber)"),
        (OperandFlags::TIED, "(tied)"),
    ] {
        if flags.contains(flag) {
            out.push_str(name);
        }
    }
    if flow && mods.contains(Mods::NOT) {
        out.push('!');
    }
    if flags.contains(OperandFlags::UNIFORM) {
        out.push('u');
    }
    if class.file == RegFile::Shared {
        out.push('s');
    }
    if class.half {
        out.push('h');
    }
    if class.file == RegFile::Predicate {
        out.push('p');
    }
}

/// Writes a register without a class prefix.
pub(in crate::ir3) fn write_reg(out: &mut String, class: RegClass, reg: PhysReg) {
    let component = ['x', 'y', 'z', 'w'][usize::from(reg.component())];
    let _ = match class.file {
        RegFile::Predicate => write!(out, "p0.{component}"),
        _ => write!(out, "r{}.{component}", reg.register()),
    };
}

/// The bits that the text of an immediate holds: a small index if `raw` is not set and the float is in the table.
pub(super) fn immediate_bits(opcode: Opcode, bits: u32, half: bool, raw: bool) -> u32 {
    if raw || !takes_flut_immediates(opcode) { bits } else { flut_index(bits, half).unwrap_or(bits) }
}

/// Returns true if the bits of an immediate would be misread as an index.
pub(super) fn immediate_is_ambiguous(opcode: Opcode, bits: u32, half: bool) -> bool {
    takes_flut_immediates(opcode) && flut_bits(bits, half).is_some() && flut_index(bits, half).is_none()
}

/// Writes an immediate.
pub(in crate::ir3) fn write_immediate(out: &mut String, bits: u32) {
    let float = f32::from_bits(bits);
    let _ = match (float.is_nan(), float.is_infinite(), float.is_sign_negative()) {
        (true, _, negative) => write!(out, "imm[{}nan", if negative { "-" } else { "" }),
        (_, true, negative) => write!(out, "imm[{}inf", if negative { "-" } else { "" }),
        _ => write!(out, "imm[{float:.6}"),
    };
    let _ = write!(out, ",{},{bits:#x}]", bits as i32);
}
