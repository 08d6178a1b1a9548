//! The rounding mode that nir leaves open, chosen for a comparison.
//!
//! Without a rounding mode in the header, a plain conversion of nir to a float may round in either direction. A target
//! is correct if it refines its source, so the source is compared with the rounding mode of the target: to nearest even
//! in the formats in which all conversions of the target that can round carry `(even)`, else the machine's, toward
//! zero. One choice holds for the whole program.
//!
//! `fquantize2f16` makes zeros of denormal halves. Mesa emits two conversions for it, which keep denormals here as all
//! operations do ([`QUANTIZED`](crate::assumptions::QUANTIZED)), so it is compared with these where the target does not
//! compare with the smallest normal half.

use ir3_compiler::ir3::{Attrs, Program, Round, SrcOperand, Type};
use ir3_compiler::nir::{AluSrc, FloatControls, Function, Instr, InstrData, Op, Shader};
use std::borrow::Cow;

/// 2^-14, the smallest normal half, as a float of 32 bits.
const LEAST_NORMAL_HALF: u32 = 0x3880_0000;

/// The instructions that quantize floats of 32 bits.
fn quantizations(function: &Function) -> Vec<Instr> {
    let is_one = |&instr: &Instr| match &function.instrs[instr] {
        InstrData::Alu(alu) => alu.op == Op::Fquantize2f16 && function.defs[alu.def].bit_size == 32,
        _ => false,
    };
    function.instrs_in_order().map(|(_, instr)| instr).filter(is_one).collect()
}

/// Returns true if the source quantizes floats, and the target keeps values below the smallest normal half: the source
/// has no such number.
pub fn keeps_half_denormals(source: &Shader, target: &Program) -> bool {
    if quantizations(&source.entry).is_empty() {
        return false;
    }
    let is_least = |operand: &SrcOperand| matches!(operand, SrcOperand::Immediate(LEAST_NORMAL_HALF));
    let mut operands = target.iter_instrs().flat_map(|(_, instr)| &target.instrs[instr].srcs);
    let in_code = operands.any(|src| is_least(&src.operand));
    !in_code && target.consts.immediates.iter().all(|&(_, bits)| bits != LEAST_NORMAL_HALF)
}

/// Replaces quantizations by two conversions.
fn keep_half_denormals(function: &mut Function) {
    for instr in quantizations(function) {
        let InstrData::Alu(alu) = function.instrs[instr].clone() else { continue };
        let place = function.instrs_in_order().find(|&(_, at)| at == instr).map(|(block, _)| block);
        let Some(block) = place else { continue };
        let at = function.blocks[block].instrs.iter().position(|&at| at == instr).unwrap_or(0);
        let components = function.defs[alu.def].num_components;
        let half = function.new_def(components, 16, function.defs[alu.def].divergent);
        let mut narrow = alu.clone();
        (narrow.op, narrow.def) = (Op::F2f16Rtne, half);
        let inserted = function.insert(block, at, InstrData::Alu(narrow));
        function.lines[inserted] = function.lines[instr];
        if let InstrData::Alu(alu) = &mut function.instrs[instr] {
            alu.op = Op::F2f32;
            alu.srcs = [AluSrc::identity(half)].into_iter().collect();
        }
    }
}

/// Returns true if the conversion has results that are not exact.
fn can_round(src: Type, dst: Type) -> bool {
    src != dst && dst.is_float() && (dst == Type::F16 || !src.is_half())
}

/// The source, with the rounding mode of the target for conversions that leave it open, and its treatment of denormal
/// halves.
pub fn with_rounding_of<'a>(source: &'a Shader, target: &Program) -> Cow<'a, Shader> {
    let Ok(controls) = FloatControls::of(&source.info) else { return Cow::Borrowed(source) };
    let mut shader = Cow::Borrowed(source);
    for (bits, ty) in [(16, Type::F16), (32, Type::F32)] {
        let (mut even, mut others) = (false, false);
        for (_, instr) in target.iter_instrs() {
            if let Attrs::Move { src, dst, round } = target.instrs[instr].attrs
                && dst == ty
                && can_round(src, dst)
            {
                even |= round == Round::Even;
                others |= round != Round::Even;
            }
        }
        if even && !others && !controls.rounds_to_even(bits) {
            // The header was checked above.
            let _ = FloatControls::require_even(&mut shader.to_mut().info, bits);
        }
    }
    if keeps_half_denormals(source, target) {
        keep_half_denormals(&mut shader.to_mut().entry);
    }
    shader
}
