//! The last stage: a final program becomes words, and is read back from them.
//!
//! The hardware gets the words. So the program after this stage is decoded from them, in blocks again, with
//! the facts of the driver's [`Interface`](crate::machine::Interface). Fields that an encoding drops or changes are a
//! difference between the two programs.
//!
//! Some facts are not encoded, so they are copied from the input program:
//!
//! - the memory that `isam` reads, a buffer or an image, and its dimensions: the driver makes the descriptors to fit
//!   the program;
//! - where the array of an access relative to `a0.x` ends;
//! - the registers that an old buffer access (`ldgb`, `stgb`) reads: the machine reads some of them, depending on the
//!   descriptor;
//! - the lanes of a `kill` that go on as helpers, those of a `demote`: the driver sets whether there are any.

use crate::ir3::{Attrs, InstrData, Opcode, Place, Program, SrcOperand};
use crate::machine::{Code, CodeError, CodeInstr, Flat, FlatInstr, encode};
use crate::target::Target;
use cranelift_entity::PrimaryMap;

/// Encodes a program after legalization and decodes the words.
///
/// # Errors
/// If the program is not final, or has an operand that does not fit into its field.
pub fn run(program: &mut Program, target: &Target) -> Result<(), CodeError> {
    let Flat { instrs: flat, interface } = Flat::of(program)?;
    let mut words = Vec::with_capacity(flat.len());
    for (ip, &FlatInstr { instr, target: branch }) in &flat {
        words.push(encode(target.generation, ip, &program.instrs[instr], branch)?);
    }
    let mut instrs = PrimaryMap::with_capacity(words.len());
    for (ip, &FlatInstr { instr, .. }) in &flat {
        let mut decoded = CodeInstr::decode(target.generation, &words, ip)?;
        describe(&mut decoded.data, &program.instrs[instr]);
        instrs.push(decoded);
    }
    *program = Code { instrs, interface }.into_program()?;
    Ok(())
}

/// Adds the facts that are not encoded.
fn describe(decoded: &mut InstrData, encoded: &InstrData) {
    if encoded.opcode == Opcode::Demote && decoded.opcode == Opcode::Kill {
        decoded.opcode = Opcode::Demote;
    }
    let is_old = matches!(&encoded.attrs, Attrs::Memory(memory) if memory.old_layout);
    for (decoded, encoded) in decoded.dsts.iter_mut().zip(&encoded.dsts) {
        bound(&mut decoded.place, &encoded.place);
    }
    for (decoded, encoded) in decoded.srcs.iter_mut().zip(&encoded.srcs) {
        if let (SrcOperand::Place(decoded), SrcOperand::Place(encoded)) = (&mut decoded.operand, &encoded.operand) {
            bound(decoded, encoded);
        }
        if is_old && decoded.operand == encoded.operand {
            decoded.mask = encoded.mask;
        }
    }
    match (&mut decoded.attrs, &encoded.attrs) {
        (Attrs::Texture(decoded), Attrs::Texture(encoded)) => {
            decoded.space = decoded.space.or(encoded.space);
            // Queries have no sampler.
            decoded.sampler = decoded.sampler.or(encoded.sampler);
            decoded.is_1d = encoded.is_1d;
            decoded.is_cube = encoded.is_cube;
            decoded.is_fetch = encoded.is_fetch;
        }
        (Attrs::Memory(decoded), Attrs::Memory(encoded)) => {
            decoded.components = decoded.components.or(encoded.components);
            decoded.coords = decoded.coords.or(encoded.coords);
            decoded.space = decoded.space.or(encoded.space);
            decoded.volatile = encoded.volatile;
        }
        _ => {}
    }
}

/// Sets the size of an array that is accessed at the same offset.
fn bound(decoded: &mut Place, encoded: &Place) {
    if let (Place::Relative { offset, size }, Place::Relative { offset: same, size: known }) = (decoded, encoded)
        && offset == same
    {
        *size = *known;
    }
}
