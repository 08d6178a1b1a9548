//! Registers and kinds of kills that words leave out.

use ir3_compiler::ir3::{AddressSpace, Opcode, Place, SrcOperand, WriteMask};
use ir3_compiler::machine::Code;
use ir3_compiler::nir::{InstrData, IntrinsicOp, Shader};

/// Adds register facts that are not encoded: the sizes of arrays that are accessed relative to `a0.x`, and the number
/// of registers that the accesses to resources before a6xx use (`ldgb`, `stgb`, `ldib`, `stib`, `atomic.s`). Their
/// words encode the number of dimensions and of components that are loaded, and 4 dimensions for every buffer
/// (`ir3_a4xx.c`).
pub fn complete(code: &mut Code, text: &Code) {
    for (ip, instr) in &mut code.instrs {
        let said = text.instrs.get(ip);
        // One word for both.
        if instr.data.opcode == Opcode::Kill && said.is_some_and(|said| said.data.opcode == Opcode::Demote) {
            instr.data.opcode = Opcode::Demote;
        }
        let Some(said) = said.filter(|said| said.data.opcode == instr.data.opcode) else { continue };
        let data = &mut instr.data;
        let counts = data.memory().is_some_and(|memory| memory.old_layout);
        for (dst, said) in data.dsts.iter_mut().zip(&said.data.dsts) {
            complete_register(&mut dst.place, &mut dst.mask, (&said.place, said.mask), counts);
        }
        for (src, said) in data.srcs.iter_mut().zip(&said.data.srcs) {
            if let (SrcOperand::Place(place), Some(its)) = (&mut src.operand, said.place()) {
                complete_register(place, &mut src.mask, (its, said.mask), counts);
            }
        }
    }
}

fn complete_register(place: &mut Place, mask: &mut WriteMask, said: (&Place, WriteMask), counts: bool) {
    match (place, said.0) {
        (Place::Relative { size, .. }, Place::Relative { size: said, .. }) => *size = *said,
        (Place::Reg(own), Place::Reg(register)) if counts && own == register => *mask = said.1,
        _ => {}
    }
}

/// Adds the facts that nir implies, for a log without the text. A word that kills lanes is a `demote` if nir only
/// demotes. An image before a6xx is loaded to as many registers as nir's value has components; its word counts those of
/// the format.
pub(super) fn complete_by_nir(code: &mut Code, shader: &Shader) {
    use IntrinsicOp::{Demote, DemoteIf, ImageLoad, Terminate, TerminateIf};
    let mut demotes = false;
    let mut terminates = false;
    let mut loaded = Vec::new();
    for (_, instr) in shader.entry.instrs_in_order() {
        let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] else { continue };
        match intrinsic.op {
            Demote | DemoteIf => demotes = true,
            Terminate | TerminateIf => terminates = true,
            ImageLoad => loaded.extend(intrinsic.def.map(|def| shader.entry.defs[def].num_components)),
            _ => {}
        }
    }
    loaded.dedup();
    for instr in code.instrs.values_mut() {
        let data = &mut instr.data;
        if data.opcode == Opcode::Kill && demotes && !terminates {
            data.opcode = Opcode::Demote;
        }
        let is_image =
            data.memory().is_some_and(|memory| memory.old_layout && memory.space == Some(AddressSpace::Image));
        if let (true, &[components], Opcode::Ldib | Opcode::Ldgb) = (is_image, &loaded[..], data.opcode) {
            data.dsts.iter_mut().for_each(|dst| dst.mask = WriteMask::first(components.into()));
        }
    }
}
