//! Validation of vec4 and scalar programs: requirements of the hardware, and invariants that readers and passes rely
//! on.

use super::{
    Cmod, DstFile, Instr, Mask, Message, Mode, Opcode, OpcodeKind, Predicate, Program, RegType, SrcFile, Structure,
    StructureError, Swizzle,
};
use crate::nir;

/// A rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {instr}, `{opcode}`: {rule}")]
pub struct Invalid {
    /// The index of the instruction in the program.
    pub instr: usize,
    /// Its operation.
    pub opcode: Opcode,
    /// The violated rule, with the found and the expected form.
    pub rule: String,
}

/// The maximum number of virtual registers of a program.
const REGISTERS: u32 = 1 << 14;

/// The maximum number of attributes, of outputs and of vectors of uniforms.
const SLOTS: u32 = 1 << 10;

/// Checks a program.
///
/// # Errors
/// The first rule that it breaks.
pub fn validate(program: &Program) -> Result<(), Invalid> {
    let invalid = |instr: usize, rule: String| Invalid { instr, opcode: program.instrs[instr].opcode, rule };
    if !program.mode.is_scalar() && program.stage != nir::Stage::Vertex && !program.instrs.is_empty() {
        return Err(invalid(0, format!("in a shader of {}, expected MESA_SHADER_VERTEX", program.stage)));
    }
    let structure = Structure::of(program).map_err(|error| match error {
        StructureError::Unmatched(at) => invalid(at, "is in no construct that it could belong to".to_owned()),
        StructureError::Open(at) => invalid(at, "has no end".to_owned()),
    })?;
    for (at, instr) in program.instrs.iter().enumerate() {
        check(instr, program.mode).map_err(|rule| invalid(at, rule))?;
        // A channel that continues reaches the `while`, whose predicate decides for it, too (Mesa 4563261ad18).
        let end = structure.partner(at).filter(|_| instr.opcode == Opcode::Continue);
        let end = end.and_then(|begin| structure.partner(begin));
        if end.is_some_and(|end| program.instrs[end].predicate.is_some()) {
            return Err(invalid(at, "is in a loop whose end has a predicate, expected a plain `while`".to_owned()));
        }
    }
    Ok(())
}

fn check(instr: &Instr, mode: Mode) -> Result<(), String> {
    let opcode = instr.opcode;
    let message = match (&instr.message, opcode.kind()) {
        (Some(message), OpcodeKind::Message) => Some(message),
        (None, OpcodeKind::Message) => return Err("has no message, expected one".to_owned()),
        (Some(_), _) => return Err("has a message, expected none".to_owned()),
        (None, _) => None,
    };
    let sources = match message {
        Some(message) if mode.is_scalar() => message.operand_words() as usize,
        Some(message) => message.operands.len(),
        None => opcode.sources(),
    };
    if instr.srcs.len() != sources {
        return Err(format!("has {} sources, expected {sources}", instr.srcs.len()));
    }
    // A thread of 8 invocations has no halves: its accumulator has as many channels.
    let (all, half) = (mode.width(), if mode == Mode::Simd8 { 0 } else { mode.width() / 2 });
    match (instr.exec_size, instr.group) {
        (size, 0) if size == all => {}
        (size, group) if size == all => return Err(format!("has group {group}, expected 0 with {all} channels")),
        (size, group) if size == half && (group == 0 || group == half) => {}
        (size, group) if size == half => return Err(format!("has group {group}, expected 0 or {half}")),
        (size, _) if half == 0 => return Err(format!("has {size} channels, expected {all}")),
        (size, _) => return Err(format!("has {size} channels, expected {all} or {half}")),
    }
    if opcode.kind() == OpcodeKind::Control {
        return check_control(instr, mode);
    }
    if let Some(message) = message {
        check_message(instr, message, mode)?;
    }
    if mode.is_scalar() {
        check_scalar(instr)?;
    } else if opcode.is_scalar() || instr.cmod == Some(Cmod::O) {
        return Err("is there in scalar programs only".to_owned());
    }
    let limit = |number: u32, limit: u32, what: &str| {
        (number < limit).then_some(()).ok_or_else(|| format!("names {what} {number}, expected less than {limit}"))
    };
    match instr.dst.file {
        // A message has other effects, and `addc` writes the accumulator.
        DstFile::Null if matches!(opcode, Opcode::Send | Opcode::Addc) => {}
        DstFile::Null if !instr.writes_flag() => {
            return Err("writes the null register, expected a conditional modifier that writes the flag".to_owned());
        }
        DstFile::Null => {}
        DstFile::Vgrf(_) => limit(instr.registers_written().end, REGISTERS, "register")?,
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
            SrcFile::Acc if !mode.is_scalar() => return Err("reads the accumulator in a vec4 program".to_owned()),
            SrcFile::Acc => {}
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
    if opcode != Opcode::Send {
        check_types(instr)?;
    }
    match (opcode, instr.cmod, instr.predicate) {
        (Opcode::Cmp, None, _) => return Err("has no conditional modifier, expected one".to_owned()),
        (Opcode::Sel, None, None) => return Err("has no predicate, expected one or a conditional modifier".to_owned()),
        (Opcode::Sel, Some(_), Some(_)) => return Err("has both a predicate and a conditional modifier".to_owned()),
        (Opcode::Sel, Some(cmod), None) if !matches!(cmod, Cmod::L | Cmod::Ge) => {
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

/// Checks a message: the types of its operands, which have no modifiers, and its result.
fn check_message(instr: &Instr, message: &Message, mode: Mode) -> Result<(), String> {
    if instr.exec_size != mode.width() || instr.predicate.is_some() || instr.cmod.is_some() || instr.saturate {
        return Err("is predicated, modified or of some channels only, expected a message of all".to_owned());
    }
    let is_plain = |src: &super::Src| !src.abs && !src.negate && src.file != SrcFile::Acc;
    if instr.dst.ty != RegType::Ud || !instr.srcs.iter().all(|src| src.ty == RegType::Ud && is_plain(src)) {
        return Err("has an operand other than an unmodified one of type UD".to_owned());
    }
    let types = || message.operands.iter().copied().chain(message.result);
    match types().find(|ty| !(matches!(ty.bits, 1 | 32) || mode.is_scalar() && ty.bits == 64)) {
        Some(ty) => return Err(format!("has an operand of {} bits", ty.bits)),
        None if !mode.is_scalar() && types().any(|ty| ty.components > 4) => {
            return Err("has an operand of more than 4 components".to_owned());
        }
        None => {}
    }
    let mask = message.result.map(|result| if mode.is_scalar() { Mask(1) } else { Mask::first(result.components) });
    match (mask, instr.dst.file) {
        (None, DstFile::Null) => Ok(()),
        (Some(mask), DstFile::Vgrf(_)) if instr.dst.mask == mask => Ok(()),
        _ => Err("has a result that is not that of its message".to_owned()),
    }
}

/// Checks the rules that only scalar programs have.
fn check_scalar(instr: &Instr) -> Result<(), String> {
    let opcode = instr.opcode;
    if matches!(opcode.kind(), OpcodeKind::Dot(_)) {
        return Err("is a dot product, expected an operation on one channel".to_owned());
    }
    if instr.dst.mask != Mask(1)
        || instr.srcs.iter().any(|src| src.swizzle != Swizzle::replicate(0) && src.as_immediate().is_none())
    {
        return Err("has another channel than x".to_owned());
    }
    if matches!(instr.dst.file, DstFile::Output(_))
        || instr.srcs.iter().any(|src| matches!(src.file, SrcFile::Attr(_) | SrcFile::Uniform(_)))
    {
        return Err("has an input or output of vec4 programs, expected a message".to_owned());
    }
    if instr.predicate.is_some_and(|(predicate, _)| predicate != Predicate::Normal) {
        return Err("has a predicate of several channels".to_owned());
    }
    if instr.cmod == Some(Cmod::O) && (opcode != Opcode::Add || instr.dst.ty == RegType::F) {
        return Err("has the condition of overflow, expected a sum of integers".to_owned());
    }
    if instr.cmod == Some(Cmod::O) && instr.srcs.iter().any(|src| src.ty != instr.dst.ty) {
        return Err("has the condition of overflow and operands of other types, expected that of the result".to_owned());
    }
    if !opcode.is_scalar() {
        let accumulators = instr.srcs.iter().filter(|src| src.file == SrcFile::Acc);
        // The accumulator has one channel for each of 8 invocations.
        return match accumulators.count() {
            0 => Ok(()),
            _ if instr.exec_size != 8 => Err("reads the accumulator in 16 channels, expected 8".to_owned()),
            _ => Ok(()),
        };
    }
    let is_word = |ty: RegType| ty == RegType::Ud;
    if !(is_word(instr.dst.ty) && instr.srcs.iter().all(|src| is_word(src.ty))) {
        return Err("has an operand of another type than UD".to_owned());
    }
    if instr.predicate.is_some() || instr.cmod.is_some() || instr.saturate {
        return Err("has a predicate or a modifier, expected none".to_owned());
    }
    if instr.srcs.iter().any(|src| src.file == SrcFile::Acc || src.abs || src.negate) {
        return Err("has a source that is no register and no immediate".to_owned());
    }
    match opcode {
        Opcode::Addc if instr.exec_size != 8 => Err("writes the accumulator in 16 channels, expected 8".to_owned()),
        Opcode::Add64Lo | Opcode::Add64Hi if instr.dst.file == DstFile::Null => {
            Err("has no result, expected one".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_control(instr: &Instr, mode: Mode) -> Result<(), String> {
    if instr.dst.file != DstFile::Null || instr.cmod.is_some() || instr.saturate {
        return Err("has a result or a modifier, expected none".to_owned());
    }
    if instr.exec_size != mode.width() {
        return Err(format!("is for {} channels, expected {}", instr.exec_size, mode.width()));
    }
    if mode.is_scalar() && instr.predicate.is_some_and(|(predicate, _)| predicate != Predicate::Normal) {
        return Err("has a predicate of several channels".to_owned());
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
