//! The rounding mode that nir leaves open, chosen for a comparison.
//!
//! Without a rounding mode in the header, a plain conversion of nir to a float may round in either direction. A target is correct if it
//! refines its source, so the source is compared with the rounding mode of the target: to nearest even in the formats in which all
//! conversions of the target that can round carry `(even)`, else the machine's, toward zero. One choice holds for the whole program.

use ir3_compiler::ir3::{Attrs, Program, Round, Type};
use ir3_compiler::nir::{FloatControls, Shader};
use std::borrow::Cow;

/// Returns true if the conversion has results that are not exact.
fn can_round(src: Type, dst: Type) -> bool {
    src != dst && dst.is_float() && (dst == Type::F16 || !src.is_half())
}

/// The source, with the rounding mode of the target for conversions that leave it open.
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
    shader
}
