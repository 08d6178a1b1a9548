//! The rules of the language: what the hardware, the readers and the passes rely on.

use super::{DstFile, Instr, Opcode, OpcodeKind, Program, RegType, SrcFile, Structure, StructureError};
use crate::nir;

/// A rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {instr}, `{opcode}`: {rule}")]
pub struct Invalid {
    /// The number of the instruction.
    pub instr: usize,
    /// Its operation.
    pub opcode: Opcode,
    /// What it has, and what is expected.
    pub rule: String,
}

/// The most virtual registers of a program.
const REGISTERS: u32 = 1 << 14;

/// The most attributes, outputs and vectors of uniforms.
const SLOTS: u32 = 1 << 10;

/// Checks a program.
///
/// # Errors
/// The first rule that it breaks.
pub fn validate(program: &Program) -> Result<(), Invalid> {
    let invalid = |instr: usize, rule: String| Invalid { instr, opcode: program.instrs[instr].opcode, rule };
    if program.stage != nir::Stage::Vertex && !program.instrs.is_empty() {
        return Err(invalid(0, format!("in a shader of {}, expected MESA_SHADER_VERTEX", program.stage)));
    }
    Structure::of(program).map_err(|error| match error {
        StructureError::Unmatched(at) => invalid(at, "is in no construct that it could belong to".to_owned()),
        StructureError::Open(at) => invalid(at, "has no end".to_owned()),
    })?;
    for (at, instr) in program.instrs.iter().enumerate() {
        check(instr).map_err(|rule| invalid(at, rule))?;
    }
    Ok(())
}

fn check(instr: &Instr) -> Result<(), String> {
    let opcode = instr.opcode;
    if instr.srcs.len() != opcode.sources() {
        return Err(format!("has {} sources, expected {}", instr.srcs.len(), opcode.sources()));
    }
    match (instr.exec_size, instr.group) {
        (8, 0) | (4, 0 | 4) => {}
        (8, group) => return Err(format!("has group {group}, expected 0 with 8 channels")),
        (4, group) => return Err(format!("has group {group}, expected 0 or 4")),
        (size, _) => return Err(format!("has {size} channels, expected 8 or 4")),
    }
    if opcode.kind() == OpcodeKind::Control {
        return check_control(instr);
    }
    let limit = |number: u32, limit: u32, what: &str| {
        (number < limit).then_some(()).ok_or_else(|| format!("names {what} {number}, expected less than {limit}"))
    };
    match instr.dst.file {
        DstFile::Null if !instr.writes_flag() => {
            return Err("writes the null register, expected a conditional modifier that writes the flag".to_owned());
        }
        DstFile::Null => {}
        DstFile::Vgrf(number) => limit(number, REGISTERS, "register")?,
        DstFile::Output(number) => limit(number, SLOTS, "output")?,
    }
    if instr.dst.mask.is_empty() || instr.dst.mask.0 > 15 {
        return Err("has an empty writemask, expected one channel at least".to_owned());
    }
    for src in &instr.srcs {
        match src.file {
            SrcFile::Vgrf(number) => limit(number, REGISTERS, "register")?,
            SrcFile::Attr(number) => limit(number, SLOTS, "attribute")?,
            SrcFile::Uniform(number) => limit(number, SLOTS, "uniform")?,
            SrcFile::Imm(_) if src.abs || src.negate => {
                return Err("has an immediate with a modifier, expected none".to_owned());
            }
            SrcFile::Imm(_) => {}
        }
        if src.swizzle.0.iter().any(|&channel| channel > 3) {
            return Err("has a swizzle of other channels than x, y, z and w".to_owned());
        }
        if opcode.is_bitwise() && (src.abs || src.negate) {
            return Err("has a source with a modifier, expected none on bits".to_owned());
        }
        if src.ty == RegType::Ud && (src.abs || src.negate) {
            return Err("has a modifier on a source of type UD, expected D or F".to_owned());
        }
    }
    check_types(instr)?;
    match (opcode, instr.cmod, instr.predicate) {
        (Opcode::Cmp, None, _) => return Err("has no conditional modifier, expected one".to_owned()),
        (Opcode::Sel, None, None) => return Err("has no predicate, expected one or a conditional modifier".to_owned()),
        (Opcode::Sel, Some(_), Some(_)) => return Err("has both a predicate and a conditional modifier".to_owned()),
        (Opcode::Sel, Some(cmod), None) if !matches!(cmod, super::Cmod::L | super::Cmod::Ge) => {
            return Err(format!("has the conditional modifier {cmod}, expected l or ge"));
        }
        (_, Some(_), _) if opcode.is_math() => return Err("has a conditional modifier, expected none".to_owned()),
        _ => {}
    }
    if instr.saturate && (instr.dst.ty != RegType::F || opcode == Opcode::Cmp) {
        return Err("is clamped, expected a result of type F".to_owned());
    }
    Ok(())
}

fn check_control(instr: &Instr) -> Result<(), String> {
    if instr.dst.file != DstFile::Null || instr.cmod.is_some() || instr.saturate {
        return Err("has a result or a modifier, expected none".to_owned());
    }
    if instr.exec_size != 8 {
        return Err("is for one vertex, expected both".to_owned());
    }
    match (instr.opcode, instr.predicate) {
        (Opcode::If, None) => Err("has no predicate, expected one".to_owned()),
        (Opcode::Else | Opcode::Endif | Opcode::Do, Some(_)) => Err("has a predicate, expected none".to_owned()),
        _ => Ok(()),
    }
}

/// All sources have one type; that of the result is the same, or the operation converts.
fn check_types(instr: &Instr) -> Result<(), String> {
    let opcode = instr.opcode;
    let first = instr.srcs[0].ty;
    if let Some(other) = instr.srcs.iter().find(|src| src.ty != first) {
        return Err(format!("has sources of types {first} and {}, expected one type", other.ty));
    }
    let floats = |ty: RegType| ty == RegType::F;
    if opcode.is_float() && !floats(first) {
        return Err(format!("has sources of type {first}, expected F"));
    }
    if opcode.is_bitwise() && (floats(first) || floats(instr.dst.ty)) {
        return Err("has an operand of type F, expected D or UD".to_owned());
    }
    let converts = matches!(opcode, Opcode::Mov | Opcode::Cmp);
    if !converts && floats(first) != floats(instr.dst.ty) {
        return Err(format!("has a result of type {} and sources of type {first}, expected one type", instr.dst.ty));
    }
    Ok(())
}
