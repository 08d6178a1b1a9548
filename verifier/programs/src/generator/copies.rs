//! Parallel copies alone: programs in register form that consist of copies, collects and splits.
//!
//! Registers come from a few short windows, so that sources and destinations overlap: chains, cycles, halves of full
//! registers, registers that half registers do not reach. Each register of a window is initialised with a number of its
//! own and is an output at the end; all others are undefined.

use super::choices::Choices;
use super::config::CONFIG;
use ir3_compiler::ir3::{
    Attrs, BlockData, Builder, Dst, InstrData, Opcode, Output, PhysReg, Place, Program, RegClass, RegFile, Round,
    ShaderStage, Src, SrcOperand, Type, WriteMask,
};
use ir3_compiler::target::Target;

/// The greatest number of copies of a program, without its beginning and end.
const MAX_COPIES: usize = 60;

/// The registers of a class that a program uses.
struct RegisterWindow {
    class: RegClass,
    /// The registers in ascending order.
    list: Vec<u16>,
    /// True if they may be sources of copies to each other. Without a scalar ALU two shared registers cannot be
    /// swapped.
    sources: bool,
}

/// Three register files, in units of half a register: general (or full), half if it is a separate file, shared.
struct Written([[bool; 384]; 3]);

impl Written {
    /// Marks the units of some registers as written; false, and nothing is marked, if one of them is marked already.
    fn mark(&mut self, target: &Target, class: RegClass, first: u16, count: u16) -> bool {
        let (file, base) = match class.file {
            RegFile::Shared => (2, PhysReg::SHARED_FIRST.0),
            _ if class.half && !target.merged_regs => (1, 0),
            _ => (0, 0),
        };
        let units = class.component_units();
        let range = usize::from((first - base) * units)..usize::from((first - base + count) * units);
        let units = &mut self.0[file][range];
        if units.contains(&true) {
            return false;
        }
        units.fill(true);
        true
    }
}

/// Generates a program of parallel copies.
pub fn copies<C: Choices>(c: &mut C, target: &Target) -> Program {
    let classes = windows(c, target);
    let mut program = Program { stage: Some(ShaderStage::Vertex), ..Program::default() };
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut b = Builder::new(&mut program, block);
    let mut number = 0;
    for RegisterWindow { class, list, .. } in &classes {
        if class.half && (target.merged_regs || class.file == RegFile::Shared) {
            // Already initialised with the full registers.
            continue;
        }
        for &reg in list {
            number += 1;
            let bits = u32::wrapping_mul(number, 0x9e37_79b9) ^ 0x5bd1_e995;
            let bits = if class.half { bits & 0xffff } else { bits };
            b.push(mov(*class, reg, SrcOperand::Immediate(bits)));
        }
    }
    for _ in 0..MAX_COPIES {
        if c.exhausted() {
            break;
        }
        let mut written = Written([[false; 384]; 3]);
        let data = match c.below(8) {
            0 => collect(c, target, &classes, &mut written),
            1 => split(c, &classes),
            _ => parallel_copy(c, target, &classes, &mut written),
        };
        if let Some(data) = data {
            b.push(data);
        }
    }
    end(&mut b, &classes);
    program
}

/// Chooses the registers of a program.
fn windows<C: Choices>(c: &mut C, target: &Target) -> Vec<RegisterWindow> {
    let mut full = Vec::new();
    for _ in 0..1 + c.below(3) {
        let start = match c.below(4) {
            0 => 0,
            1 => 4 + c.below(8),
            // Half registers reach up to r23.w.
            2 => 88 + c.below(12),
            _ => c.below(180),
        } as u16;
        full.extend(start..(start + 2 + c.below(8) as u16).min(192));
    }
    full.sort_unstable();
    full.dedup();
    let half = if target.merged_regs {
        full.iter().filter(|&&reg| reg < 96).flat_map(|&reg| [2 * reg, 2 * reg + 1]).collect()
    } else {
        let start = c.below(180) as u16;
        (start..start + 2 + c.below(8) as u16).collect()
    };
    let mut classes = vec![
        RegisterWindow { class: RegClass::FULL, list: full, sources: true },
        RegisterWindow { class: RegClass::HALF, list: half, sources: true },
    ];
    if target.has_shared_regfile {
        let start = c.below(24) as u16;
        let end = start + 2 + c.below(6) as u16;
        let first = PhysReg::SHARED_FIRST.0;
        let sources = target.has_scalar_alu;
        classes.push(RegisterWindow { class: RegClass::SHARED, list: (first + start..first + end).collect(), sources });
        let halves = (2 * start..2 * end).filter(|&half| half < 32).map(|half| first + half);
        classes.push(RegisterWindow { class: RegClass::SHARED_HALF, list: halves.collect(), sources });
    }
    classes.retain(|class| !class.list.is_empty());
    classes
}

/// Returns a random class; full registers are most likely.
fn class<'a, C: Choices>(c: &mut C, classes: &'a [RegisterWindow]) -> &'a RegisterWindow {
    let at = [0, 0, 0, 1, 1, 1, 2, 3][c.below(8)];
    &classes[at % classes.len()]
}

fn src(class: RegClass, operand: SrcOperand, count: u16) -> Src {
    Src::new(operand, class, WriteMask::first(u32::from(count)))
}

fn register(reg: u16) -> SrcOperand {
    SrcOperand::Place(Place::Reg(PhysReg(reg)))
}

fn dst(class: RegClass, reg: u16, count: u16) -> Dst {
    Dst::new(Place::Reg(PhysReg(reg)), class, WriteMask::first(u32::from(count)))
}

/// Returns the first of `count` consecutive registers of the list.
fn run<C: Choices>(c: &mut C, list: &[u16], count: u16) -> Option<u16> {
    let first = c.pick(list);
    (1..count).all(|k| list.contains(&(first + k))).then_some(first)
}

/// Returns a source for a copy to a register of `file`: mostly a register.
fn operand<C: Choices>(c: &mut C, registers: &RegisterWindow, count: u16, file: RegFile) -> SrcOperand {
    let half = registers.class.half;
    let is_source = registers.sources || file != registers.class.file;
    match c.below(16) {
        0 if count == 1 => {
            let bits = c.u32();
            SrcOperand::Immediate(if half { bits & 0xffff } else { bits })
        }
        1 => SrcOperand::Const(c.byte().into()),
        2 if count == 1 => SrcOperand::Undef,
        _ if !is_source => SrcOperand::Const(c.byte().into()),
        _ => match run(c, &registers.list, count) {
            Some(reg) => register(reg),
            None => SrcOperand::Const(c.byte().into()),
        },
    }
}

fn parallel_copy<C: Choices>(
    c: &mut C,
    target: &Target,
    classes: &[RegisterWindow],
    written: &mut Written,
) -> Option<InstrData> {
    let mut data = InstrData::new(Opcode::ParallelCopy);
    for _ in 0..1 + c.below(12) {
        let registers = class(c, classes);
        let count = [1, 1, 1, 1, 1, 2, 3, 4][c.below(8)];
        if let Some(to) = run(c, &registers.list, count)
            && written.mark(target, registers.class, to, count)
        {
            // Shared registers are read by copies to general ones, too. There are none the other way, so no cycle is of
            // both files.
            let (is_general, half) = (registers.class.file == RegFile::General, registers.class.half);
            let shared = classes.iter().find(|other| other.class.file == RegFile::Shared && other.class.half == half);
            let from = shared.filter(|_| is_general && c.chance(CONFIG.copy_from_shared)).unwrap_or(registers);
            data.dsts.push(dst(registers.class, to, count));
            data.srcs.push(src(from.class, operand(c, from, count, registers.class.file), count));
        }
    }
    (!data.dsts.is_empty()).then_some(data)
}

fn collect<C: Choices>(
    c: &mut C,
    target: &Target,
    classes: &[RegisterWindow],
    written: &mut Written,
) -> Option<InstrData> {
    let registers = class(c, classes);
    let count = 1 + c.below(4) as u16;
    let to = run(c, &registers.list, count)?;
    if !written.mark(target, registers.class, to, count) {
        return None;
    }
    let mut data = InstrData::new(Opcode::Collect);
    data.dsts.push(dst(registers.class, to, count));
    for _ in 0..count {
        data.srcs.push(src(registers.class, operand(c, registers, 1, registers.class.file), 1));
    }
    Some(data)
}

fn split<C: Choices>(c: &mut C, classes: &[RegisterWindow]) -> Option<InstrData> {
    let registers = class(c, classes);
    if !registers.sources {
        return None;
    }
    let count = 2 + c.below(3) as u16;
    let from = run(c, &registers.list, count)?;
    let mut data = InstrData::new(Opcode::Split);
    data.dsts.push(dst(registers.class, c.pick(&registers.list), 1));
    data.srcs.push(src(registers.class, register(from), count));
    data.attrs = Attrs::Split { offset: c.below(usize::from(count)) as u16 };
    Some(data)
}

fn mov(class: RegClass, to: u16, operand: SrcOperand) -> InstrData {
    let ty = if class.half { Type::U16 } else { Type::U32 };
    let mut data = InstrData::new(Opcode::Mov);
    data.dsts.push(dst(class, to, 1));
    data.srcs.push(src(class, operand, 1));
    data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
    data
}

/// Makes every register an output: full ones and halves, since a full register is undefined where one of its halves is.
/// Shared ones are moved to unused general registers first.
fn end(b: &mut Builder<'_>, classes: &[RegisterWindow]) {
    let mut data = InstrData::new(Opcode::End);
    let mut numbers = Vec::new();
    let used: Vec<u16> = classes.iter().filter(|c| c.class == RegClass::FULL).flat_map(|c| c.list.clone()).collect();
    let mut free = (0..192).rev().filter(|reg| !used.contains(reg));
    for RegisterWindow { class, list, .. } in classes {
        for &reg in list {
            let (class, reg) = match (class.file, class.half) {
                (RegFile::Shared, true) => continue,
                (RegFile::Shared, false) => {
                    let Some(to) = free.next() else { continue };
                    let mut shared = mov(RegClass::FULL, to, register(reg));
                    shared.srcs[0].class = *class;
                    b.push(shared);
                    (RegClass::FULL, to)
                }
                _ => (*class, reg),
            };
            let number = b.program.outputs.len() as u16;
            b.program.outputs.push(Output { base: number, component: 0 });
            numbers.push(number);
            data.srcs.push(src(class, register(reg), 1));
        }
    }
    data.attrs = Attrs::Outputs(numbers.into_iter().collect());
    b.push(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Seeded;
    use ir3_compiler::ir3::{text, validate};

    #[test]
    fn programs_are_valid_and_can_be_written() {
        for (i, target) in ir3_compiler::target::ALL.iter().enumerate() {
            for seed in 0..20 {
                let program = copies(&mut Seeded::new(1000 * i as u64 + seed), target);
                let text = text::write(&program);
                let form = validate::Form::of(&program);
                assert_eq!(validate::validate(&program, target, form), Ok(()), "{target}\n{text}");
                assert_eq!(text::read(&text).ok(), program.canonical(), "{target}\n{text}");
            }
        }
    }

    #[test]
    fn all_kinds_of_copies_occur() {
        let target = Target::default();
        let (mut opcodes, mut files) = (Vec::new(), Vec::new());
        for seed in 0..50 {
            let program = copies(&mut Seeded::new(seed), &target);
            for (_, instr) in program.iter_instrs() {
                let data = &program.instrs[instr];
                opcodes.push(data.opcode);
                files.extend(data.dsts.iter().map(|dst| dst.class));
            }
        }
        for opcode in [Opcode::ParallelCopy, Opcode::Collect, Opcode::Split] {
            assert!(opcodes.contains(&opcode), "{opcode}");
        }
        for class in [RegClass::FULL, RegClass::HALF, RegClass::SHARED, RegClass::SHARED_HALF] {
            assert!(files.contains(&class), "{class:?}");
        }
    }
}
