//! Fixed registers for inputs and outputs: our front end assigns none, other front ends do.

use super::choices::Choices;
use ir3_compiler::ir3::{Instr, Opcode, PhysReg, Place, Program, RegClass, RegFile, SrcOperand, Value};

/// The assigned ranges by file: first half register, and the one after the last.
type Taken = [Vec<(u32, u32)>; 2];

/// Assigns registers to some of the general inputs and outputs of a program in SSA form, disjoint among inputs and
/// among outputs; returns the number assigned. They are below `limit` (in half registers) and above the arrays of
/// halves, which are at the bottom of the file.
pub fn assign_fixed_registers<C: Choices>(c: &mut C, program: &mut Program, merged: bool, limit: u32) -> usize {
    let arrays = program.arrays.values().filter(|data| data.class.half);
    let first = arrays.map(|data| u32::from(data.length)).sum::<u32>().next_multiple_of(2);
    let span = limit.saturating_sub(first) >> c.below(4);
    if span < 2 {
        return 0;
    }
    let one_in = 1 + c.below(3);
    let mut count = 0;
    let list: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).collect();
    // A prefetch reads its coordinates from r0.x, so no other input uses it, and they are nowhere else.
    let prefetches = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode == Opcode::TexPrefetch);
    let coordinates: Vec<Value> =
        prefetches.filter_map(|(_, instr)| program.instrs[instr].srcs.first()?.value()).collect();
    for is_output in [false, true] {
        let mut taken = Taken::default();
        if !is_output && !coordinates.is_empty() {
            taken[0].push((0, 4));
        }
        let mut draw = |class: RegClass, components: u32| {
            let unit = u32::from(class.component_units());
            let taken = &mut taken[usize::from(class.half && !merged)];
            // Half registers that alias the full file cover only its beginning.
            let span = if class.half { span.min(96) } else { span };
            let tries = if class.file == RegFile::General && c.below(one_in) == 0 { 4 } else { 0 };
            let found = (0..tries).find_map(|_| {
                let start = (first + c.below(span as usize) as u32) / unit * unit;
                let end = start + components * unit;
                let fits = end <= first + span && taken.iter().all(|&(a, b)| end <= a || b <= start);
                fits.then_some((start, end))
            })?;
            taken.push(found);
            count += 1;
            Some(PhysReg((found.0 / unit) as u16))
        };
        for &instr in &list {
            let data = &mut program.instrs[instr];
            if !is_output && data.opcode == Opcode::Input {
                for dst in data.dsts.iter_mut() {
                    if let Place::Value(value) = dst.place
                        && !coordinates.contains(&value)
                        && let Some(reg) = draw(dst.class, dst.mask.span())
                    {
                        dst.place = Place::Assigned(value, reg);
                    }
                }
            } else if is_output && data.opcode.is_output() {
                for src in data.srcs.iter_mut() {
                    if let SrcOperand::Place(Place::Value(value)) = src.operand
                        && let Some(reg) = draw(src.class, src.mask.span())
                    {
                        src.operand = SrcOperand::Place(Place::Assigned(value, reg));
                    }
                }
            }
        }
    }
    count
}
