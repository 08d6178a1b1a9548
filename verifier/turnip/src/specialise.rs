//! Specialisation constants: their values in the words of a module.
//!
//! Source: the SPIR-V specification, chapters on binary form, constants and decorations.

use rspirv::spirv::{Decoration, Op};
use std::collections::BTreeMap;

/// The words of the header of a module.
const HEADER: usize = 5;

/// A specialisation constant.
struct Constant {
    /// The first word of its instruction.
    at: usize,
    /// The type: of truth values, of integers or floats of this many bits.
    ty: Type,
}

#[derive(Clone, Copy)]
enum Type {
    Bool,
    Int(u32),
    Float(u32),
}

/// Gives specialisation constants values, by their number, as texts.
///
/// # Errors
/// If the module has no constant of a number (the message lists those that it has), or the text is no value of its
/// type.
pub fn specialise(words: &mut [u32], values: &[(u32, String)]) -> Result<(), String> {
    if values.is_empty() {
        return Ok(());
    }
    let constants = constants(words);
    for (number, text) in values {
        let Some(constant) = constants.get(number) else {
            let all = constants.iter().map(|(number, constant)| format!("{number} ({})", text_of(words, constant)));
            let all = all.collect::<Vec<_>>().join(", ");
            let all = if all.is_empty() { "none".to_owned() } else { all };
            return Err(format!("the module has no specialisation constant {number}; it has {all}"));
        };
        let wrong = || format!("specialisation constant {number}: found `{text}`, expected {}", name(constant.ty));
        let bits = bits(constant.ty, text).ok_or_else(wrong)?;
        match constant.ty {
            Type::Bool => {
                let op = if bits != 0 { Op::SpecConstantTrue } else { Op::SpecConstantFalse };
                words[constant.at] = words[constant.at] & 0xffff_0000 | op as u32;
            }
            Type::Int(64) | Type::Float(64) => {
                words[constant.at + 3] = bits as u32;
                words[constant.at + 4] = (bits >> 32) as u32;
            }
            _ => words[constant.at + 3] = bits as u32,
        }
    }
    Ok(())
}

/// The specialisation constants of a module, by their number.
fn constants(words: &[u32]) -> BTreeMap<u32, Constant> {
    let mut numbers = BTreeMap::new();
    let mut types = BTreeMap::new();
    let mut constants = BTreeMap::new();
    let mut at = HEADER;
    while let Some(&head) = words.get(at) {
        let (length, op) = ((head >> 16) as usize, Op::from_u32(head & 0xffff));
        let Some(operands) = words.get(at + 1..at + length.max(1)) else { break };
        match (op, operands) {
            (Some(Op::Decorate), [target, decoration, number]) if *decoration == Decoration::SpecId as u32 => {
                numbers.insert(*target, *number);
            }
            (Some(Op::TypeBool), [id]) => _ = types.insert(*id, Type::Bool),
            (Some(Op::TypeInt), [id, width, ..]) => _ = types.insert(*id, Type::Int(*width)),
            (Some(Op::TypeFloat), [id, width, ..]) => _ = types.insert(*id, Type::Float(*width)),
            (Some(Op::SpecConstant | Op::SpecConstantTrue | Op::SpecConstantFalse), [ty, id, ..]) => {
                if let (Some(number), Some(ty)) = (numbers.get(id), types.get(ty)) {
                    constants.insert(*number, Constant { at, ty: *ty });
                }
            }
            _ => {}
        }
        at += length.max(1);
    }
    constants
}

fn name(ty: Type) -> String {
    match ty {
        Type::Bool => "true or false".to_owned(),
        Type::Int(width) => format!("an integer of {width} bits"),
        Type::Float(width) => format!("a float of {width} bits"),
    }
}

/// The bits of a value.
fn bits(ty: Type, text: &str) -> Option<u64> {
    let integer = || {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let number = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok()?,
            None => digits.parse::<i128>().ok()?,
        };
        Some(sign * number)
    };
    match ty {
        Type::Bool => match text {
            "true" | "1" => Some(1),
            "false" | "0" => Some(0),
            _ => None,
        },
        Type::Int(width) => {
            let (number, range) = (integer()?, 1i128 << width);
            // Narrow numbers are extended by their sign, or by zeros: bits above their width do not count.
            (-(range / 2)..range).contains(&number).then_some(number as u64)
        }
        Type::Float(32) => text.parse::<f32>().ok().map(|value| value.to_bits().into()),
        Type::Float(64) => text.parse::<f64>().ok().map(f64::to_bits),
        // Halves by their bits.
        Type::Float(_) => u64::try_from(integer()?).ok().filter(|bits| *bits <= 0xffff),
    }
}

/// The value of a constant.
fn text_of(words: &[u32], constant: &Constant) -> String {
    let low = || words.get(constant.at + 3).copied().unwrap_or_default();
    let wide = || u64::from(words.get(constant.at + 4).copied().unwrap_or_default()) << 32 | u64::from(low());
    match constant.ty {
        Type::Bool => (words[constant.at] & 0xffff == Op::SpecConstantTrue as u32).to_string(),
        Type::Int(64) => wide().to_string(),
        Type::Float(64) => f64::from_bits(wide()).to_string(),
        Type::Float(32) => f32::from_bits(low()).to_string(),
        Type::Int(_) | Type::Float(_) => low().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of a truth value, an integer and a float, of the numbers 0, 1 and 7.
    fn module() -> Vec<u32> {
        let op = |op: Op, operands: &[u32]| -> Vec<u32> {
            [&[(operands.len() as u32 + 1) << 16 | op as u32], operands].concat()
        };
        let spec = Decoration::SpecId as u32;
        [
            vec![0x0723_0203, 0x0001_0500, 0, 10, 0],
            op(Op::Decorate, &[4, spec, 0]),
            op(Op::Decorate, &[5, spec, 1]),
            op(Op::Decorate, &[6, spec, 7]),
            op(Op::TypeBool, &[1]),
            op(Op::TypeInt, &[2, 32, 1]),
            op(Op::TypeFloat, &[3, 32]),
            op(Op::SpecConstantTrue, &[1, 4]),
            op(Op::SpecConstant, &[2, 5, 3]),
            op(Op::SpecConstant, &[3, 6, 1.5f32.to_bits()]),
        ]
        .concat()
    }

    fn with(values: &[(u32, &str)]) -> Result<Vec<u32>, String> {
        let mut words = module();
        let values: Vec<_> = values.iter().map(|(number, text)| (*number, (*text).to_owned())).collect();
        specialise(&mut words, &values).map(|()| words)
    }

    #[test]
    fn constants_have_the_values_that_are_given() {
        let words = with(&[(0, "false"), (1, "-2"), (7, "0.25")]).expect("values");
        let constants = constants(&words);
        let texts: Vec<_> = constants.iter().map(|(number, it)| (*number, text_of(&words, it))).collect();
        let expected = [(0, "false"), (1, "4294967294"), (7, "0.25")].map(|(number, text)| (number, text.to_owned()));
        assert_eq!(texts, expected);
        assert_eq!(with(&[]).expect("no change"), module());
        assert_eq!(with(&[(1, "0x10")]).expect("a value"), with(&[(1, "16")]).expect("a value"));
    }

    #[test]
    fn a_constant_that_is_not_there_is_an_error_that_lists_the_others() {
        let error = with(&[(3, "1")]).expect_err("no such constant");
        assert_eq!(error, "the module has no specialisation constant 3; it has 0 (true), 1 (3), 7 (1.5)");
        for (number, text, expected) in [
            (0, "yes", "true or false"),
            (1, "1.5", "an integer of 32 bits"),
            (1, "4294967296", "an integer of 32 bits"),
            (7, "x", "a float of 32 bits"),
        ] {
            let error = with(&[(number, text)]).expect_err(text);
            assert!(error.contains(&format!("found `{text}`, expected {expected}")), "{error}");
        }
    }
}
