//! Equality of decoded programs.
//!
//! Decoding drops the parts of a program that only take time (`nop`, `(ss)`, `(sy)`, `(jp)`), expands `(rptN)`, and
//! replaces operands by slots. Two programs with equal decoded code have the same runs in every environment, whatever
//! the names of their instructions are, and whether or not the runs are defined.

use super::Decoded;
use super::op::{DecodedBlock, DecodedOp, Memory, Terminator, Texture};
use ir3_compiler::ir3::Instr;

impl Decoded {
    /// Returns true if both programs have the same operations on the same slots in the same blocks, and agree in
    /// everything else that a run depends on. The numbers of instructions, which only messages and traces have, and
    /// the fuel that blocks take do not count.
    pub fn is_same_code(&self, other: &Self) -> bool {
        let Self {
            ops,
            sites: _,
            ends_preamble,
            blocks,
            copies,
            stage: _,
            inputs,
            outputs,
            declared,
            memory,
            memory_names: _,
            textures,
            slots: _,
            narrow,
            immediates,
            consts,
            driver_params,
            driver_immediates,
            launch,
            waves,
            scratch_size,
            has_register_arrays,
            undefined,
            facts,
            values,
        } = self;
        // The cheap comparisons come first: most programs differ there.
        ops.len() == other.ops.len()
            && blocks.len() == other.blocks.len()
            && memory.len() == other.memory.len()
            && textures.len() == other.textures.len()
            && (*ends_preamble, *launch, *waves, *scratch_size)
                == (other.ends_preamble, other.launch, other.waves, other.scratch_size)
            && (*has_register_arrays, *undefined, *facts) == (other.has_register_arrays, other.undefined, other.facts)
            && *immediates == other.immediates
            && *consts == other.consts
            && *driver_params == other.driver_params
            && *driver_immediates == other.driver_immediates
            && *inputs == other.inputs
            && *outputs == other.outputs
            && *declared == other.declared
            && *narrow == other.narrow
            && *values == other.values
            && *copies == other.copies
            && ops.iter().zip(&other.ops).all(|(a, b)| without_name(a) == without_name(b))
            && blocks.iter().zip(&other.blocks).all(|(a, b)| are_same_blocks(a, b))
            && memory.iter().zip(&other.memory).all(|(a, b)| {
                let named = |access: &Memory| Memory { instr: no_name(), ..access.clone() };
                named(a) == named(b)
            })
            && textures.iter().zip(&other.textures).all(|(a, b)| {
                let named = |texture: &Texture| Texture { instr: no_name(), ..texture.clone() };
                named(a) == named(b)
            })
    }
}

/// The instruction in the place of all others.
fn no_name() -> Instr {
    Instr::from_u32(0)
}

/// The operation without the number of its instruction.
fn without_name(op: &DecodedOp) -> DecodedOp {
    let mut op = op.clone();
    match &mut op {
        DecodedOp::Scatter { instr, .. }
        | DecodedOp::Kill(_, instr)
        | DecodedOp::Demote(_, instr)
        | DecodedOp::Decided(_, instr) => *instr = no_name(),
        _ => {}
    }
    op
}

fn are_same_blocks(a: &DecodedBlock, b: &DecodedBlock) -> bool {
    let terminator = |block: &DecodedBlock| {
        let mut terminator = block.terminator.clone();
        match &mut terminator {
            Terminator::Skip(.., instr) | Terminator::Branch(.., instr) => *instr = no_name(),
            Terminator::End(..) | Terminator::Jump(_) => {}
        }
        terminator
    };
    (a.start, a.end) == (b.start, b.end) && terminator(a) == terminator(b)
}
