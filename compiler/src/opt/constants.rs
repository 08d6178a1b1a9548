//! Immediates that no operand can hold, in the constant file.
//!
//! An operation of cat2 holds an integer of ten bits or a float of the table ([`legality`](crate::ir3::legality)), one of
//! cat3 no immediate at all, but both read words of the constant file. So a number that copy propagation has left in a
//! register, moved there for the operation, becomes a word behind the last one that the program has a use for, and the
//! program says what the driver has to put there ([`ConstLayout`](crate::ir3::ConstLayout)). The same number is one word.
//!
//! Not where accesses relative to an address may go to any word, nor where the program writes to the constant file at places
//! that are not known. Half registers keep their moves: what a half operand reads of a word is a conversion, by
//! the type of its reader.

use super::operands::place;
use crate::ir3::{
    Category, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegClass, RegFile, ShaderStage, Src, SrcOperand,
    Type,
};
use crate::target::Target;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Whether an operation reads an immediate from a register.
pub fn is_needed(program: &Program) -> bool {
    program
        .iter_instrs()
        .any(|(_, instr)| (0..program.instrs[instr].srcs.len()).any(|slot| immediate(program, instr, slot).is_some()))
}

/// Has operations read from the constant file what they cannot hold.
pub fn run(program: &mut Program, target: &Target) {
    let mut free = free_words(program, target);
    let mut words: FxHashMap<u32, u16> = program.consts.immediates.iter().map(|&(word, bits)| (bits, word)).collect();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        for index in 0..program.blocks[block].instrs.len() {
            let instr = program.blocks[block].instrs[index];
            for slot in 0..program.instrs[instr].srcs.len() {
                let Some(bits) = immediate(program, instr, slot) else { continue };
                let known = words.get(&bits).copied();
                let Some(word) = known.or_else(|| (!free.is_empty()).then_some(free.start)) else { continue };
                let old = program.instrs[instr].srcs[slot];
                let new = Src { operand: SrcOperand::Const(word), class: RegClass::FULL, ..old };
                if place(program, target, instr, slot, new) && known.is_none() {
                    words.insert(bits, word);
                    program.consts.immediates.push((word, bits));
                    free.start += 1;
                }
            }
        }
    }
}

/// The immediate of 32 bits that source `slot` of an operation reads from a register.
fn immediate(program: &Program, instr: Instr, slot: usize) -> Option<u32> {
    let data = &program.instrs[instr];
    // Phis and copies become moves, which hold any immediate.
    if !matches!(data.opcode.category(), Category::Alu2 | Category::Alu3) {
        return None;
    }
    let src = data.srcs[slot];
    let SrcOperand::Place(Place::Value(value)) = src.operand else { return None };
    let info = &program.values[value];
    let def = &program.instrs[info.instr];
    let moved = match def.srcs[..] {
        [Src { operand: SrcOperand::Immediate(bits), mods, .. }] if mods.is_empty() => Some(bits),
        _ => None,
    };
    let fits = matches!(info.class, RegClass::FULL | RegClass::SHARED)
        && info.components == 1
        && def.opcode == Opcode::Mov
        && def.flags.is_empty()
        && matches!(def.move_types(), Some((Type::U32, Type::U32) | (Type::F32, Type::F32) | (Type::S32, Type::S32)))
        && !src.flags.contains(OperandFlags::TIED);
    moved.filter(|_| fits)
}

/// Words of the constant file behind all that the program reads or writes, up to the first that the driver passes.
fn free_words(program: &Program, target: &Target) -> Range<u16> {
    const NONE: Range<u16> = 0..0;
    let limits = &target.const_limits;
    let vec4 = match program.stage {
        Some(ShaderStage::Compute) => limits.compute,
        Some(ShaderStage::Fragment) => limits.fragment,
        _ => limits.geometry,
    };
    let params = program.consts.driver_params.iter().map(|param| u32::from(param.word) & !3);
    let end = params.min().unwrap_or(u32::MAX).min(4 * vec4);
    let mut start = program.consts.immediates.iter().map(|&(word, _)| u32::from(word) + 1).max().unwrap_or(0);
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for src in &data.srcs {
            match src.operand {
                // The driver's words, which are at the end, are no obstacle.
                SrcOperand::Const(word) if u32::from(word) < end => start = start.max(u32::from(word) + 1),
                SrcOperand::ConstRelative(_) => return NONE,
                _ => {}
            }
        }
        if data.opcode.writes_consts() {
            let Some(stored) = stored_words(program, data) else { return NONE };
            start = start.max(stored.end);
        }
    }
    let start = start.next_multiple_of(4);
    if start < end { start as u16..end as u16 } else { NONE }
}

/// The words of the constant file that an instruction writes, if they are known.
fn stored_words(program: &Program, data: &InstrData) -> Option<Range<u32>> {
    let a1 = match data.srcs.iter().find(|src| src.class.file == RegFile::Address) {
        Some(src) => Some(constant_address(program, src)?),
        None => None,
    };
    let (base, count) = match (data.opcode, &data.srcs[..]) {
        (Opcode::Stc, [Src { operand: SrcOperand::Immediate(base), .. }, stored, ..]) => {
            (base.checked_add(a1.unwrap_or(0))?, stored.mask.span())
        }
        (Opcode::LdcK, _) => (a1?, 4 * u32::from(data.memory()?.components?)),
        _ => return None,
    };
    Some(base..base.checked_add(count)?)
}

/// The number in an address register, if that is moved there.
fn constant_address(program: &Program, src: &Src) -> Option<u32> {
    let def = &program.instrs[program.values[src.value()?].instr];
    match def.srcs[..] {
        [Src { operand: SrcOperand::Immediate(bits), mods, .. }] if def.opcode == Opcode::Mov && mods.is_empty() => {
            Some(bits & 0xffff)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{
        Attrs, Block, BlockData, Builder, DriverParam, MemoryAttrs, Mods, PhysReg, SystemValue, Value, WriteMask,
    };

    const R: RegClass = RegClass::FULL;
    const THIRD: u32 = 0x3eaa_aaab;

    fn program() -> (Program, Block, Src) {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        (program, block, x)
    }

    fn mov(b: &mut Builder, src: Src) -> Src {
        let ty = if src.class.half { Type::U16 } else { Type::U32 };
        let value = b.convert(ty, ty, src.class, src);
        b.src(value)
    }

    fn sources(program: &Program, value: Value) -> &[Src] {
        &program.instrs[program.values[value].instr].srcs
    }

    #[test]
    fn each_number_is_one_word_behind_those_in_use() {
        let (mut program, block, x) = program();
        let mut b = Builder::new(&mut program, block);
        let third = mov(&mut b, Src::immediate(THIRD, false));
        let one = mov(&mut b, Src::immediate(0x3f80_0000, false));
        let mul = b.alu(Opcode::MulF, R, &[x, third.with_mods(Mods::NEG)]);
        let mad = b.alu(Opcode::MadF32, R, &[x, third, one]);
        let both = b.alu(Opcode::AddF, R, &[Src::constant(9, false), third]);
        b.effect(Opcode::Stc, &[Src::immediate(20, false), x]);
        assert!(is_needed(&program));
        run(&mut program, &Target::default());
        let (a, b) = (Src::constant(24, false), Src::constant(25, false));
        assert_eq!(sources(&program, mul), [x, a.with_mods(Mods::NEG)]);
        assert_eq!(sources(&program, mad), [a, x, b]);
        assert_eq!(sources(&program, both), [Src::constant(9, false), third]);
        assert_eq!(program.consts.immediates, [(24, THIRD), (25, 0x3f80_0000)]);
    }

    /// The scalar ALU reads words of the constant file, too, but not two of them.
    #[test]
    fn scalar_operations_read_words() {
        let (mut program, block, _) = program();
        let mut b = Builder::new(&mut program, block);
        let [third, fifth] = [THIRD, 0x3e4c_cccd].map(|bits| {
            let value = b.convert(Type::U32, Type::U32, RegClass::SHARED, Src::immediate(bits, false));
            b.src(value)
        });
        let product = b.alu(Opcode::MulF, RegClass::SHARED, &[third, fifth]);
        run(&mut program, &Target::by_name("a660").unwrap());
        assert_eq!(sources(&program, product), [Src::constant(0, false), fifth]);
    }

    /// What an operand can read with no word of its own stays as it is.
    #[test]
    fn halves_and_phis_are_left_alone() {
        let (mut program, block, _) = program();
        let mut b = Builder::new(&mut program, block);
        let half = mov(&mut b, Src::immediate(0x1234, true));
        let sum = b.alu(Opcode::AddU, RegClass::HALF, &[half, half]);
        let third = mov(&mut b, Src::immediate(THIRD, false));
        let phi = b.define(Opcode::Phi, R, 1, &[third], Attrs::None);
        assert!(!is_needed(&program));
        run(&mut program, &Target::default());
        assert_eq!((sources(&program, sum), sources(&program, phi)), (&[half; 2][..], &[third][..]));
        assert!(program.consts.immediates.is_empty());
    }

    #[test]
    fn no_word_is_free_where_any_may_be_accessed() {
        let relative = Src::new(SrcOperand::ConstRelative(0), R, WriteMask::SCALAR);
        let a1 = Src::reg(Place::Reg(PhysReg::A1_X), RegClass::ADDRESS, WriteMask::SCALAR);
        let words: [(Opcode, &[Src]); 3] = [
            (Opcode::Mov, &[relative]),
            (Opcode::LdcK, &[]),
            (Opcode::Stc, &[Src::immediate(0, false), Src::constant(0, false), a1]),
        ];
        for (opcode, srcs) in words {
            let (mut program, block, x) = program();
            let mut b = Builder::new(&mut program, block);
            b.effect(opcode, srcs);
            let third = mov(&mut b, Src::immediate(THIRD, false));
            let mul = b.alu(Opcode::MulF, R, &[x, third]);
            run(&mut program, &Target::default());
            assert_eq!(sources(&program, mul), [x, third], "{opcode}");
        }
    }

    /// Stores behind `a1.x` and copies of buffers write words that are known, if the address is.
    #[test]
    fn numbers_are_behind_what_is_copied_to_the_file() {
        for (opcode, count, base, expected) in
            [(Opcode::LdcK, 5, Some(40), 60), (Opcode::Stc, 1, Some(256), 264), (Opcode::LdcK, 5, None, 0)]
        {
            let (mut program, block, x) = program();
            let mut b = Builder::new(&mut program, block);
            let address = match base {
                Some(base) => Src::immediate(base, true),
                None => mov(&mut b, Src::immediate(4, true)),
            };
            let address = b.convert(Type::U16, Type::U16, RegClass::ADDRESS, address);
            let address = b.src(address);
            let srcs = match opcode {
                Opcode::Stc => [Src::immediate(4, false), x, address],
                _ => [x, x, address],
            };
            let instr = b.effect(opcode, &srcs);
            let memory = MemoryAttrs { components: Some(count), ..MemoryAttrs::default() };
            program.instrs[instr].attrs = Attrs::Memory(memory);
            let mut b = Builder::new(&mut program, block);
            let third = mov(&mut b, Src::immediate(THIRD, false));
            let mul = b.alu(Opcode::MulF, R, &[x, third]);
            run(&mut program, &Target::default());
            let word = if base.is_some() { Src::constant(expected, false) } else { third };
            assert_eq!(sources(&program, mul), [x, word], "{opcode} {base:?}");
        }
    }

    /// A compute shader of the a6xx has 256 vec4; the driver's parameters are the last of them here.
    #[test]
    fn the_file_ends_at_the_limit_and_at_the_drivers_words() {
        for (used, driver, expected) in
            [(1013, None, 1016..1021), (1013, Some(1020), 1016..1020), (1018, None, 1020..1024), (1020, None, 0..0)]
        {
            let (mut program, block, x) = program();
            program.stage = Some(ShaderStage::Compute);
            let value = SystemValue::WorkgroupSize;
            program.consts.driver_params.extend(driver.map(|word| DriverParam { word, value, component: 0 }));
            let mut b = Builder::new(&mut program, block);
            b.alu(Opcode::AddF, R, &[x, Src::constant(used, false)]);
            for more in 0..5 {
                let large = mov(&mut b, Src::immediate(THIRD + more, false));
                b.alu(Opcode::MulF, R, &[x, large]);
            }
            run(&mut program, &Target::by_name("a660").unwrap());
            let words: Vec<_> = program.consts.immediates.iter().map(|&(word, _)| word).collect();
            assert_eq!(words, expected.collect::<Vec<u16>>(), "{used}");
        }
    }
}
