//! The size of scratch memory: that of nir until something is spilled, then up to the end of the last slot that any
//! section accesses, or the size on the line about waves (`pvtmem_size`), if that is more: arrays in scratch memory are
//! accessed at addresses that are computed. Without that line the size of all arrays of nir is assumed.

use ir3_compiler::ir3::access::{Address, MemoryAccess};
use ir3_compiler::ir3::{AddressSpace, Opcode, Program};
use ir3_compiler::nir::{InstrData, IntrinsicOp, Shader};
use ir3_programs::mesa::shader::LogShader;

/// Sets the size of scratch memory of the programs of a shader, in their order. Once something is spilled, it is in all
/// programs that follow, also where no offset alone says the address.
pub(super) fn complete<'p>(shader: &LogShader, nir: Option<&Shader>, programs: impl Iterator<Item = &'p mut Program>) {
    let programs: Vec<&mut Program> = programs.collect();
    let slots = programs.iter().map(|program| accessed(program)).max().unwrap_or(0);
    let declares = nir.is_some_and(|nir| nir.info.scratch_size != 0);
    let printed = shader.printed_statistics().and_then(|statistics| statistics.waves?.pvtmem_size);
    let said = if declares { 0 } else { printed.unwrap_or_else(|| nir.map_or(0, |nir| slots + array_bytes(nir))) };
    let all = slots.max(said);
    let mut spills = false;
    for program in programs {
        spills |= accessed(program) > program.scratch_size || said > 0 && is_computed(program);
        if spills {
            program.scratch_size = program.scratch_size.max(all);
        }
    }
}

/// The bytes of all arrays in nir's registers, which may be in scratch memory.
fn array_bytes(nir: &Shader) -> u32 {
    let declared = nir.entry.instrs.values().filter_map(|data| match data {
        InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::DeclReg => {
            let elements = intrinsic.indices.num_array_elems().max(1);
            Some(elements.saturating_mul(u32::from(intrinsic.indices.num_components())).saturating_mul(4))
        }
        _ => None,
    });
    declared.fold(0, u32::saturating_add)
}

/// Returns the end of the scratch memory that a program accesses at known addresses, in bytes.
pub(in crate::mesa) fn accessed(program: &Program) -> u32 {
    let ends = program.iter_instrs().filter_map(|(_, instr)| {
        let data = &program.instrs[instr];
        if !matches!(data.opcode, Opcode::Ldp | Opcode::Stp | Opcode::SpillMacro | Opcode::ReloadMacro) {
            return None;
        }
        let access = MemoryAccess::of(data).ok().filter(|access| access.space == AddressSpace::Scratch)?;
        // The base register of spill slots holds 0.
        let Address::Linear { index2: None, scale, offset, .. } = access.address else { return None };
        let size = u32::from(access.ty.bits() / 8) * u32::from(access.components);
        Some(u32::try_from(offset).ok()? * u32::from(scale) + size)
    });
    ends.max().unwrap_or(0)
}

/// Returns true if a program accesses scratch memory at an address that is computed.
fn is_computed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        matches!(data.opcode, Opcode::Ldp | Opcode::Stp)
            && MemoryAccess::of(data)
                .is_ok_and(|access| !matches!(access.address, Address::Linear { index2: None, scale: 0, .. }))
    })
}
