//! The size of scratch memory: that of nir until something is spilled, then up to the end of the last slot that any section
//! accesses, or what the line about waves says (`pvtmem_size`), if that is more: arrays in scratch memory are accessed at addresses that are
//! computed.

use ir3_compiler::ir3::access::{Address, MemoryAccess};
use ir3_compiler::ir3::{AddressSpace, Opcode, Program};

/// Returns the end of the scratch memory that a program accesses at known addresses, in bytes.
pub(in crate::harness::mesa) fn accessed(program: &Program) -> u32 {
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
pub(super) fn is_computed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        matches!(data.opcode, Opcode::Ldp | Opcode::Stp)
            && MemoryAccess::of(data)
                .is_ok_and(|access| !matches!(access.address, Address::Linear { index2: None, scale: 0, .. }))
    })
}
