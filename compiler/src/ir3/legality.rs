//! Legality of source operands: which constants, immediates, relative and shared registers and modifiers an instruction
//! can encode.
//!
//! Copy propagation calls [`valid_source`] before it replaces a register by the source of its copy. The answer depends
//! on the slot and on the other operands: many instructions can encode one constant, but not two.
//!
//! Float operations of cat2 cannot encode an arbitrary immediate, only one of the twelve floats of a hardware table
//! (the *FLUT*). In this crate such an immediate is the float's own bits; only the text and the encoding use the index.

use super::opcode::{Immediates, Role, Sources};
use super::{Attrs, Dst, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, RegFile, Src, SrcOperand, Type};
use crate::target::{Generation, Target};

/// The floats that float operations can encode as an immediate, as binary32 and binary16, by their index: 0, 1/2, 1, 2,
/// e, pi, 1/pi, ln 2, log2 e, log10 2, log2 10, 4.
pub const FLUT: [(u32, u16); 12] = [
    (0x0000_0000, 0x0000),
    (0x3f00_0000, 0x3800),
    (0x3f80_0000, 0x3c00),
    (0x4000_0000, 0x4000),
    (0x402d_f854, 0x4170),
    (0x4049_0fdb, 0x4248),
    (0x3ea2_f983, 0x3518),
    (0x3f31_7218, 0x398c),
    (0x3fb8_aa3b, 0x3dc5),
    (0x3e9a_209b, 0x34d1),
    (0x4054_9a78, 0x42a5),
    (0x4080_0000, 0x4400),
];

/// The number of words of the constant file that an operand can address (11 bits).
pub const CONST_WORDS: u16 = 2048;

/// The index in [`FLUT`] of a float given by its bits.
pub fn flut_index(bits: u32, half: bool) -> Option<u32> {
    FLUT.iter().position(|&(f32, f16)| if half { u32::from(f16) == bits } else { f32 == bits }).map(|i| i as u32)
}

/// The bits of the float at an index of [`FLUT`].
pub fn flut_bits(index: u32, half: bool) -> Option<u32> {
    let &(f32, f16) = FLUT.get(usize::try_from(index).ok()?)?;
    Some(if half { u32::from(f16) } else { f32 })
}

/// Returns true if immediates of this opcode are floats from [`FLUT`]: float operations of cat2, but not `bary.f`,
/// whose immediate is the index of a varying.
pub fn takes_flut_immediates(opcode: Opcode) -> bool {
    opcode.info().immediates == Immediates::FloatTable
}

/// The kind of a source operand, as far as encodings distinguish it.
#[derive(Clone, Copy)]
struct OperandKind {
    constant: bool,
    immediate: bool,
    relative: bool,
    shared: bool,
}

impl OperandKind {
    fn of(src: &Src) -> Self {
        let mut kind = Self { constant: false, immediate: false, relative: false, shared: false };
        match src.operand {
            SrcOperand::Const(_) => kind.constant = true,
            SrcOperand::ConstRelative(_) => (kind.constant, kind.relative) = (true, true),
            SrcOperand::Immediate(_) => kind.immediate = true,
            SrcOperand::Place(place) => {
                kind.relative = place.is_relative();
                kind.shared = src.class.file == RegFile::Shared;
            }
            SrcOperand::Undef => kind.shared = src.class.file == RegFile::Shared,
        }
        kind
    }

    /// Returns true for all but directly addressed general registers.
    fn special(self) -> bool {
        self.constant || self.immediate || self.relative || self.shared
    }

    /// Returns true if the scalar ALU can read the operand.
    fn uniform(self) -> bool {
        self.constant || self.immediate || self.shared
    }
}

fn shared_dst(dst: Option<&Dst>) -> bool {
    dst.is_some_and(|dst| dst.class.file == RegFile::Shared || dst.flags.contains(OperandFlags::UNIFORM))
}

/// Returns true if `instr` can encode its source `slot` together with its others. A word has fields for two constants:
/// the vector ALU cannot read them at once, and the scalar ALU can. Mesa encodes two since 25.1; passes use
/// [`valid_source`].
pub fn encodable_source(target: &Target, instr: &InstrData, slot: usize, src: &Src) -> bool {
    let is_constant = |src: &Src| matches!(src.operand, SrcOperand::Const(_) | SrcOperand::ConstRelative(_));
    // A component of a group is in the word of an alias, which encodes any immediate.
    if src.is_of_group() || instr.opcode == Opcode::Alias {
        return !src.is_relative() && src.class.file != RegFile::Shared && src.mods.is_empty();
    }
    let sources = instr.opcode.info().sources;
    if target.has_scalar_alu
        && sources == Sources::Cat2
        && shared_dst(instr.dsts.first())
        && slot < 2
        && is_constant(src)
        && instr.srcs.get(slot ^ 1).is_some_and(is_constant)
    {
        let mut alone = instr.clone();
        alone.srcs[slot ^ 1].operand = SrcOperand::Immediate(0);
        return valid_source(target, &alone, slot, src);
    }
    valid_source(target, instr, slot, src)
}

/// Returns true if `instr` can encode `src` as its source `slot`, given its other operands (the current source in
/// `slot` is ignored).
///
/// The caller must check two more conditions: a relative source adds the address register as a source, whose definition
/// must be in the block of `instr`, and an instruction has at most one address register.
pub fn valid_source(target: &Target, instr: &InstrData, slot: usize, src: &Src) -> bool {
    let kind = OperandKind::of(src);
    match src.operand {
        SrcOperand::Immediate(bits) if !valid_immediate(instr.opcode, bits, src.class.half) => return false,
        SrcOperand::Const(word) if word >= CONST_WORDS => return false,
        // Ten bits, signed.
        SrcOperand::ConstRelative(offset) | SrcOperand::Place(Place::Relative { offset, .. })
            if !(-512..512).contains(&offset) =>
        {
            return false;
        }
        _ => {}
    }
    if src.class.file == RegFile::Address {
        // The address register of a relative access, or the source of a move from it.
        return src.mods.is_empty() && !instr.opcode.is_meta();
    }
    if !instr.opcode.source_mods(slot).contains(src.mods) {
        return false;
    }
    // A modifier of an integer immediate is folded into it.
    if kind.immediate && !src.mods.is_empty() && !takes_flut_immediates(instr.opcode) {
        return false;
    }
    // Below a6xx only moves read relative to the address register.
    let reads_relative = target.generation >= Generation::A6xx || instr.opcode == Opcode::Mov;
    if kind.relative && (!reads_relative || instr.dsts.first().is_some_and(|dst| dst.place.is_relative())) {
        return false;
    }
    let sources = instr.opcode.info().sources;
    if kind.immediate && !instr.opcode.takes_immediate(slot) {
        return false;
    }
    match sources {
        Sources::OfResult => valid_for_meta(instr, slot, kind),
        Sources::General => {
            // The element offset of a vector fetch follows the coordinates and is always an immediate.
            let is_vector = instr.opcode == Opcode::Isam && instr.flags.contains(InstrFlags::VECTOR);
            if is_vector && instr.position(Role::Offset) == Some(slot) {
                kind.immediate
            } else {
                // A sample without a result prefetches a descriptor, and does not look at its coordinates.
                let has_result = instr.dsts.iter().any(|dst| dst.place.reg() != Some(PhysReg::INVALID));
                !kind.special() || instr.opcode == Opcode::Sam && !has_result && kind.shared
            }
        }
        Sources::Any => true,
        Sources::Move => valid_for_move(target, instr, kind),
        Sources::Registers => !kind.constant && !kind.immediate && !kind.relative,
        Sources::FirstGeneral | Sources::FirstShared => {
            if (slot == 0) == (sources == Sources::FirstGeneral) {
                !kind.special()
            } else {
                (kind.shared || kind.immediate) && !kind.relative
            }
        }
        Sources::Cat2 | Sources::Flat => valid_for_alu2(instr, slot, kind),
        Sources::Cat3 | Sources::Cat3Alternative | Sources::Dot | Sources::Matrix => valid_for_alu3(instr, slot, kind),
        Sources::Cat4 => !kind.constant && !kind.immediate && kind.shared == shared_dst(instr.dsts.first()),
        // `ldc.u` runs on the scalar side, and reads its addresses from shared registers, too.
        Sources::Memory if instr.opcode == Opcode::Ldc && instr.flags.contains(InstrFlags::UNIFORM) => {
            !kind.constant && !kind.relative
        }
        Sources::Memory if kind.constant => takes_const_address(target, instr.opcode, slot, src),
        Sources::Memory => !kind.relative && !kind.shared,
        Sources::MemorySecondShared => !kind.constant && !kind.relative && (!kind.shared || slot == 1),
    }
}

/// Returns true if an address of 64 bits may be two words of the constant file: that of the indexed accesses of a7xx,
/// in its first 256 words.
fn takes_const_address(target: &Target, opcode: Opcode, slot: usize, src: &Src) -> bool {
    let has_form = target.generation >= Generation::A7xx && matches!(opcode, Opcode::LdgA | Opcode::StgA);
    has_form && slot == 0 && matches!(src.operand, SrcOperand::Const(word) if word < 256)
}

/// Returns true if the immediate `bits` can be encoded in an operand of `opcode`.
pub fn valid_immediate(opcode: Opcode, bits: u32, half: bool) -> bool {
    if half && bits > 0xffff {
        return false;
    }
    match opcode.info().immediates {
        Immediates::No => false,
        Immediates::Any => true,
        Immediates::Bits8 => bits <= 0xff,
        Immediates::Bits10 => {
            let value = if half { i32::from(bits as u16 as i16) } else { bits as i32 };
            (-511..=511).contains(&value)
        }
        Immediates::Bits12 => bits <= 0xfff,
        Immediates::FloatTable => flut_index(bits, half).is_some(),
    }
}

/// Constants and immediates become moves when phis and vectors are lowered. Otherwise source and destination are in the
/// same file, except for a copy between registers.
fn valid_for_meta(instr: &InstrData, slot: usize, kind: OperandKind) -> bool {
    let copies = instr.opcode == Opcode::ParallelCopy;
    let dst = if copies { instr.dsts.get(slot) } else { instr.dsts.first() };
    let has_register = dst.is_some_and(|dst| matches!(dst.place, Place::Reg(_)));
    let any = kind.constant || kind.immediate || copies && has_register;
    !kind.relative && (any || kind.shared == shared_dst(dst))
}

/// From a general register to the shared file, bits can be moved but floats cannot be converted.
fn valid_for_move(target: &Target, instr: &InstrData, kind: OperandKind) -> bool {
    let Attrs::Move { src, dst, .. } = instr.attrs else { return true };
    if !shared_dst(instr.dsts.first()) {
        return true;
    }
    let float = src.is_float() || dst.is_float();
    let sign_extends_byte = src == Type::U8 && dst.is_signed();
    let from_general = !kind.uniform();
    !(from_general && (float || sign_extends_byte)) && !(kind.shared && !target.has_scalar_alu && src != dst)
}

fn valid_for_alu2(instr: &InstrData, slot: usize, kind: OperandKind) -> bool {
    let scalar = shared_dst(instr.dsts.first());
    // `flat.b` ignores its barycentrics, so an immediate there does not count as a second one.
    if instr.opcode.info().sources == Sources::Flat && slot <= 1 && kind.immediate {
        return true;
    }
    if scalar && !kind.uniform() {
        return false;
    }
    if slot > 1 {
        return !kind.special();
    }
    let Some(other) = instr.srcs.get(slot ^ 1).map(OperandKind::of) else { return true };
    let conflict = if scalar {
        kind.constant && other.constant
    } else {
        (kind.constant || kind.shared) && (other.constant || other.shared)
    };
    !(conflict || kind.immediate && other.immediate)
}

fn valid_for_alu3(instr: &InstrData, slot: usize, kind: OperandKind) -> bool {
    let scalar = shared_dst(instr.dsts.first());
    let encodable = match instr.opcode.info().sources {
        Sources::Matrix if slot == 2 => !kind.relative && !kind.shared,
        Sources::Matrix => !kind.relative && !kind.constant,
        Sources::Dot => !kind.constant,
        Sources::Cat3Alternative => {
            let both_shared = !scalar
                && slot < 2
                && kind.shared
                && instr.srcs.get(slot ^ 1).is_some_and(|s| OperandKind::of(s).shared);
            (!kind.constant || kind.relative) && !both_shared
        }
        _ => true,
    };
    encodable
        // The field of the second source holds only a register number.
        && !(slot == 1 && (kind.constant || kind.relative || kind.shared && !scalar))
        && (!scalar || kind.uniform())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{Mods, PhysReg, RegClass, WriteMask};

    fn reg(class: RegClass) -> Src {
        let base = if class.file == RegFile::Shared { PhysReg::SHARED_FIRST } else { PhysReg::new(1, 0) };
        Src::reg(Place::Reg(base), class, WriteMask::SCALAR)
    }

    fn instr(opcode: Opcode, class: RegClass, srcs: &[Src]) -> InstrData {
        let mut data = InstrData::new(opcode);
        data.dsts.push(Dst::new(Place::Reg(PhysReg::new(0, 0)), class, WriteMask::SCALAR));
        data.srcs.extend_from_slice(srcs);
        data
    }

    fn valid(instr: &InstrData, slot: usize, src: Src) -> bool {
        valid_source(&Target::default(), instr, slot, &src)
    }

    const R: RegClass = RegClass::FULL;
    const S: RegClass = RegClass::SHARED;

    #[test]
    fn one_constant_and_one_immediate_in_cat2() {
        let c = Src::constant(5, false);
        let i = Src::immediate(5, false);
        let add = instr(Opcode::AddU, R, &[reg(R), reg(R)]);
        assert!(valid(&add, 0, c) && valid(&add, 1, c) && valid(&add, 1, i) && valid(&add, 1, reg(S)));
        let add = instr(Opcode::AddU, R, &[c, reg(R)]);
        assert!(!valid(&add, 1, c) && !valid(&add, 1, reg(S)) && valid(&add, 1, i) && valid(&add, 0, i));
        let add = instr(Opcode::AddU, R, &[i, reg(R)]);
        assert!(!valid(&add, 1, i) && valid(&add, 1, c));
        let scalar = instr(Opcode::AddU, S, &[reg(S), reg(S)]);
        assert!(valid(&scalar, 1, reg(S)) && valid(&scalar, 0, c) && !valid(&scalar, 0, reg(R)));
        let scalar = instr(Opcode::AddU, S, &[c, reg(S)]);
        assert!(!valid(&scalar, 1, c) && valid(&scalar, 1, i));
    }

    #[test]
    fn the_scalar_alu_reads_two_constants() {
        let c = Src::constant(5, false);
        let encodable = |target: &Target, class| {
            encodable_source(target, &instr(Opcode::MulF, class, &[c, Src::constant(9, false)]), 0, &c)
        };
        let newer = Target::by_name("a660").expect("a GPU");
        assert!(newer.has_scalar_alu && encodable(&newer, S) && !encodable(&newer, R));
        let older = Target::by_name("a630").expect("a GPU");
        assert!(!older.has_scalar_alu && !encodable(&older, S));
        // Passes do not choose it.
        assert!(!valid_source(&newer, &instr(Opcode::MulF, S, &[c, c]), 0, &c));
    }

    #[test]
    fn immediates_have_their_widths() {
        for (bits, ok) in [(511, true), (512, false), (-511i32 as u32, true), (-512i32 as u32, false)] {
            assert_eq!(valid_immediate(Opcode::AddU, bits, false), ok, "{bits:#x}");
        }
        assert!(valid_immediate(Opcode::AddU, 0xffff, true) && !valid_immediate(Opcode::AddU, 0xffff_ffff, true));
        assert!(valid_immediate(Opcode::Andg, 0xfff, false) && !valid_immediate(Opcode::Andg, 0x1000, false));
        assert!(!valid_immediate(Opcode::MadF32, 0, false));
        assert!(valid_immediate(Opcode::Mov, u32::MAX, false) && valid_immediate(Opcode::Phi, u32::MAX, false));
        assert!(valid_immediate(Opcode::Ldib, 255, false) && !valid_immediate(Opcode::Ldib, 256, false));
        assert!(valid_immediate(Opcode::Ldl, 4000, false) && valid_immediate(Opcode::BaryF, 17, false));
    }

    #[test]
    fn float_immediates_come_from_the_table() {
        assert!(valid_immediate(Opcode::MulF, 2.0f32.to_bits(), false));
        assert!(!valid_immediate(Opcode::MulF, 3.0f32.to_bits(), false));
        assert!(!valid_immediate(Opcode::MulF, 3, false));
        assert!(valid_immediate(Opcode::MulF, 0x3c00, true));
        for (i, &(f32, f16)) in FLUT.iter().enumerate() {
            let i = i as u32;
            assert_eq!((flut_index(f32, false), flut_bits(i, false)), (Some(i), Some(f32)));
            assert_eq!((flut_index(u32::from(f16), true), flut_bits(i, true)), (Some(i), Some(u32::from(f16))));
            // Each binary16 entry is the binary32 entry, rounded.
            assert_eq!(half::f16::from_f32(f32::from_bits(f32)).to_bits(), f16, "{i}");
        }
        assert_eq!((flut_bits(12, false), flut_index(1, false)), (None, None));
    }

    #[test]
    fn the_second_source_of_cat3_is_a_register() {
        let c = Src::constant(5, false);
        let mad = instr(Opcode::MadF32, R, &[reg(R), reg(R), reg(R)]);
        assert!(valid(&mad, 0, c) && !valid(&mad, 1, c) && valid(&mad, 2, c));
        assert!(valid(&mad, 0, reg(S)) && !valid(&mad, 1, reg(S)));
        assert!(valid(&mad, 1, reg(R).with_mods(Mods::NEG)) && !valid(&mad, 1, reg(R).with_mods(Mods::ABS)));
        assert!((0..3).all(|slot| !valid(&mad, slot, Src::immediate(0, false))));
        let shrm = instr(Opcode::Shrm, R, &[reg(R), reg(R), reg(R)]);
        let i = Src::immediate(0xfff, false);
        assert!(valid(&shrm, 0, i) && !valid(&shrm, 1, i) && valid(&shrm, 2, i) && !valid(&shrm, 0, c));
        let sad = instr(Opcode::SadS32, R, &[reg(R), reg(R), reg(R)]);
        assert!(valid(&sad, 1, reg(R).with_mods(Mods::NEG)) && !valid(&sad, 0, reg(R).with_mods(Mods::NEG)));
    }

    #[test]
    fn special_functions_and_textures_read_registers() {
        let rcp = instr(Opcode::Rcp, R, &[reg(R)]);
        assert!(valid(&rcp, 0, reg(R).with_mods(Mods::NEG | Mods::ABS)));
        assert!(!valid(&rcp, 0, Src::constant(0, false)) && !valid(&rcp, 0, reg(S)));
        let sam = instr(Opcode::Sam, R, &[reg(R), reg(R)]);
        assert!(valid(&sam, 0, reg(R)) && !valid(&sam, 0, Src::constant(0, false)) && !valid(&sam, 0, reg(S)));
    }

    #[test]
    fn relative_sources_need_a_new_gpu() {
        let add = instr(Opcode::AddU, R, &[reg(R), reg(R)]);
        let src = Src::new(SrcOperand::ConstRelative(4), R, WriteMask::SCALAR);
        assert!(valid(&add, 0, src));
        let old = Target::by_name("a540").unwrap();
        assert!(!valid_source(&old, &add, 0, &src));
        let mut mov = instr(Opcode::Mov, R, &[reg(R)]);
        mov.dsts[0].place = Place::Relative { offset: 0, size: 4 };
        assert!(!valid(&mov, 0, src) && valid(&mov, 0, Src::constant(0, false)));
    }

    #[test]
    fn moves_into_the_shared_file_convert_no_floats() {
        let mut mov = instr(Opcode::Mov, S, &[reg(R)]);
        mov.attrs = Attrs::Move { src: Type::F32, dst: Type::S32, round: Default::default() };
        assert!(!valid(&mov, 0, reg(R)) && valid(&mov, 0, reg(S)) && valid(&mov, 0, Src::constant(0, false)));
        let old = Target::by_name("a630").unwrap();
        assert!(!valid_source(&old, &mov, 0, &reg(S)));
    }

    #[test]
    fn memory_operands() {
        let i = Src::immediate(1, false);
        let stib = instr(Opcode::Stib, R, &[reg(R); 4]);
        assert_eq!([0, 1, 2, 3].map(|slot| valid(&stib, slot, i)), [true, false, true, false]);
        let ldl = instr(Opcode::Ldl, R, &[reg(R); 3]);
        assert_eq!([0, 1, 2].map(|slot| valid(&ldl, slot, i)), [false, true, true]);
        let atomic = instr(Opcode::AtomicBAdd, R, &[reg(R); 3]);
        assert_eq!([0, 1, 2].map(|slot| valid(&atomic, slot, i)), [true, false, false]);
        let mut load = instr(Opcode::Ldc, S, &[reg(S), i]);
        assert!(!valid(&load, 0, reg(S)));
        load.flags |= InstrFlags::UNIFORM;
        assert!(valid(&load, 0, reg(S)));
        let stc = instr(Opcode::Stc, R, &[i, reg(R)]);
        assert!(valid(&stc, 0, i) && valid(&stc, 1, reg(S)) && !valid(&stc, 1, i));
    }

    #[test]
    fn meta_instructions_take_constants_of_any_file() {
        let phi = instr(Opcode::Phi, S, &[reg(S), reg(S)]);
        assert!(valid(&phi, 0, Src::constant(0, false)) && valid(&phi, 0, reg(S)) && !valid(&phi, 0, reg(R)));
        assert!(!valid(&phi, 0, reg(S).with_mods(Mods::NEG)));
    }
}
