//! Arrays of registers in final code without the text of a pass.
//!
//! A word has the register that is added to `a0.x`, and neither where its array starts nor how long it is. nir has the
//! arrays (`decl_reg`) and each computed access to them: its first element, which ir3 puts into the register of the
//! word, and the components that are read or written. So the register is one of a few elements of one of a few arrays.
//! An access reaches no more than all of these arrays have.

use super::array_starts::{Named, complete};
use crate::check::only_access;
use ir3_compiler::ir3::{Instr, PhysReg, Place, Program};
use ir3_compiler::nir::{Def, InstrData, Intrinsic, IntrinsicOp, Shader};
use ir3_semantics::machine::arrays::Side;

/// The computed accesses to an array: the distance of a word's register from its start.
struct Accessed {
    side: Side,
    half: bool,
    element: u16,
    length: u16,
}

/// The number of the first array; larger than in any text.
const FIRST_ID: u32 = 1 << 20;

/// Bounds the accesses relative to `a0.x` that no section has completed.
pub(super) fn complete_code(code: &mut Program, nir: &Shader) {
    let accessed = accesses(nir);
    let instrs: Vec<Instr> = code.iter_instrs().map(|(_, instr)| instr).collect();
    let mut known: Vec<(u16, u16, bool)> = Vec::new();
    for instr in instrs {
        for side in [Side::Read, Side::Write] {
            let Some((Place::Relative { offset, .. }, class)) = only_access(&code.instrs[instr], side) else {
                continue;
            };
            let Some((start, end)) = reach(&accessed, side, class.half, offset) else { continue };
            let key = (start, end, class.half);
            let number = known.iter().position(|its| *its == key).unwrap_or_else(|| {
                known.push(key);
                known.len() - 1
            });
            let named =
                Named { id: FIRST_ID + number as u32, length: end - start, class, offset: offset - start as i16 };
            complete(code, instr, side, (named, PhysReg(start)));
        }
    }
}

/// The registers of all arrays of which an access with a register may read or write an element; `None` if nir has no
/// such access.
fn reach(accessed: &[Accessed], side: Side, half: bool, register: i16) -> Option<(u16, u16)> {
    let register = u16::try_from(register).ok()?;
    let arrays = accessed.iter().filter(|its| its.side == side && its.half == half && its.element <= register);
    arrays.fold(None, |reach, its| {
        let start = register - its.element;
        let end = start.saturating_add(its.length);
        Some(reach.map_or((start, end), |(first, last): (u16, u16)| (first.min(start), last.max(end))))
    })
}

fn accesses(nir: &Shader) -> Vec<Accessed> {
    let mut all = Vec::new();
    for (_, instr) in nir.entry.instrs_in_order() {
        let InstrData::Intrinsic(intrinsic) = &nir.entry.instrs[instr] else { continue };
        let (side, array, mask) = match (intrinsic.op, &intrinsic.srcs[..]) {
            (IntrinsicOp::LoadRegIndirect, &[array, _]) => (Side::Read, array, u32::MAX),
            (IntrinsicOp::StoreRegIndirect, &[_, array, _]) => {
                (Side::Write, array, u32::from(intrinsic.indices.write_mask()))
            }
            _ => continue,
        };
        all.extend(elements(nir, intrinsic, side, array, mask).into_iter().flatten());
    }
    all
}

/// The elements that an access names, one a component.
fn elements(nir: &Shader, intrinsic: &Intrinsic, side: Side, array: Def, mask: u32) -> Option<Vec<Accessed>> {
    let InstrData::Intrinsic(declared) = &nir.entry.instrs[nir.entry.defs[array].instr] else { return None };
    let indices = &declared.indices;
    let components = u16::from(indices.num_components());
    let length = components.checked_mul(u16::try_from(indices.num_array_elems().max(1)).ok()?)?;
    let first = u16::try_from(intrinsic.indices.base()).ok()?.checked_mul(components)?;
    let half = indices.bit_size() <= 16;
    let used = (0..components).filter(|component| mask >> component & 1 != 0);
    Some(used.map(|component| Accessed { side, half, element: first + component, length }).collect())
}
