//! Lowers spills and reloads to accesses to scratch memory.
//!
//! `stp` and `ldp` move up to four consecutive registers, at a base register plus a signed offset of 13 bits. A vector
//! is moved in chunks of four. The base register holds 0; if an offset does not fit, the base is set to the required
//! value, and back to 0 after the access, unless it has no later use. The result of a reload of several chunks must not
//! overlap its base: see [`needs_base_to_the_end`].

use super::Error;
use crate::ir3::access::build::{self, MemoryElements};
use crate::ir3::opcode::Role;
use crate::ir3::{
    AddressSpace, Attrs, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, Round, Src,
    SrcOperand, Type, WriteMask,
};

/// The maximum number of registers per access.
const CHUNK: u32 = 4;

/// Offsets of an access are in `-OFFSETS..OFFSETS`.
const OFFSETS: u32 = 1 << 12;

/// Returns true if there is an instruction to lower.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| is_macro(program.instrs[instr].opcode))
}

/// Returns true if a reload of `components` registers still needs its base after it has begun to write, so that the
/// result is an early clobber.
pub const fn needs_base_to_the_end(components: u32) -> bool {
    components > CHUNK
}

const fn is_macro(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::SpillMacro | Opcode::ReloadMacro)
}

/// Lowers all of them. Registers have been assigned.
///
/// # Errors
/// If the program is malformed.
pub fn run(program: &mut Program) -> Result<(), Error> {
    let mut lowered = Ok(());
    program.rewrite_lists(|program, instr, out| {
        if !is_macro(program.instrs[instr].opcode) {
            out.push(instr);
        } else if lowered.is_ok() {
            lowered = lower(program, instr, out);
        }
    });
    lowered
}

/// A decoded spill or reload.
struct SpillAccess {
    /// The base register.
    base: Src,
    /// First register of the value, and its class.
    register: PhysReg,
    class: RegClass,
    components: u32,
    /// Byte address.
    address: u32,
    /// True for a reload.
    load: bool,
    /// Flags of the value's operand.
    flags: OperandFlags,
}

fn understand(data: &InstrData) -> Option<SpillAccess> {
    let load = data.opcode == Opcode::ReloadMacro;
    let base = *data.srcs.first().filter(|src| matches!(src.place(), Some(Place::Reg(_))))?;
    let (register, class, mask, flags, address) = if load {
        let dst = data.dsts.first()?;
        let Some(SrcOperand::Immediate(address)) = data.source(Role::Offset).map(|src| src.operand) else {
            return None;
        };
        (dst.place.reg()?, dst.class, dst.mask, dst.flags, address)
    } else {
        let src = data.source(Role::Data)?;
        let Attrs::Memory(memory) = &data.attrs else { return None };
        (src.place()?.reg()?, src.class, src.mask, src.flags, u32::try_from(memory.offset).ok()?)
    };
    Some(SpillAccess { base, register, class, components: mask.span(), address, load, flags })
}

fn lower(program: &mut Program, instr: Instr, out: &mut Vec<Instr>) -> Result<(), Error> {
    let access = understand(&program.instrs[instr])
        .ok_or_else(|| Error::unsupported(program, instr, "a spill or reload without registers"))?;
    let half = access.class.half;
    let (ty, size) = if half { (Type::U16, 2) } else { (Type::U32, 4) };
    let is_last_use = access.base.flags.contains(OperandFlags::KILL);
    let mut base = access.base;
    base.flags.remove(OperandFlags::KILL | OperandFlags::FIRST_KILL);
    // The current value of the base register.
    let mut held = 0;
    let mut done = 0;
    while done < access.components {
        let count = (access.components - done).min(CHUNK);
        let address = access.address + done * size;
        if address - held >= OFFSETS {
            held = address;
            out.push(set_base(program, base, held));
        }
        let elements = MemoryElements { ty, components: count as u8 };
        let register = Place::Reg(access.register.offset(done as u16));
        let mask = WriteMask::first(count);
        let offset = (address - held) as i32;
        let data = if access.load {
            let mut data = build::local_load(AddressSpace::Scratch, base, offset, elements);
            let mut dst = Dst::new(register, access.class, mask);
            dst.flags = access.flags;
            data.dsts.push(dst);
            data
        } else {
            let mut value = Src::reg(register, access.class, mask);
            value.flags = access.flags;
            build::local_store(AddressSpace::Scratch, base, offset, value, elements)
        };
        done += count;
        out.push(program.instrs.push(data));
    }
    if is_last_use {
        if let Some(&last) = out.last() {
            program.instrs[last].srcs[0].flags |= OperandFlags::KILL | OperandFlags::FIRST_KILL;
        }
    } else if held != 0 {
        out.push(set_base(program, base, 0));
    }
    Ok(())
}

fn set_base(program: &mut Program, base: Src, to: u32) -> Instr {
    let mut data = InstrData::new(Opcode::Mov);
    data.attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
    data.srcs.push(Src::immediate(to, false));
    if let Some(&place) = base.place() {
        data.dsts.push(Dst::new(place, base.class, WriteMask::SCALAR));
    }
    program.instrs.push(data)
}
