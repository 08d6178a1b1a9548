//! Permutes the registers of a finished program.
//!
//! Registers move in groups of four full registers, or of the eight half registers at the same place. Groups that one
//! operand spans stay adjacent. So registers overlap after the permutation exactly if they overlapped before.

use ir3_compiler::ir3::{Dst, PhysReg, Place, Program, RegClass, RegFile, Src, SrcOperand};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// The groups of the full register file, and the number of them that half registers reach.
const GROUPS: usize = 48;
const HALF_GROUPS: usize = 24;

/// The first and the last group of some registers.
fn groups(reg: PhysReg, class: RegClass, span: u32) -> (usize, usize) {
    let of_group = if class.half { 8 } else { 4 };
    let first = usize::from(reg.0);
    (first / of_group, (first + span as usize - 1) / of_group)
}

/// The general registers of all operands: first register, class and span. `None` for programs with arrays, repeats or
/// SSA values.
fn operands(program: &Program) -> Option<Vec<(PhysReg, RegClass, u32)>> {
    let mut all = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        let dst = |dst: &Dst| (dst.place, dst.class, dst.mask.span());
        let src = |src: &Src| src.place().map(|&place| (place, src.class, src.mask.span()));
        for (place, class, span) in data.dsts.iter().map(dst).chain(data.srcs.iter().filter_map(src)) {
            if class.file != RegFile::General {
                continue;
            }
            let Place::Reg(reg) = place else { return None };
            if data.repeat != 0 || span == 0 {
                return None;
            }
            if reg != PhysReg::INVALID {
                all.push((reg, class, span));
            }
        }
    }
    Some(all)
}

/// Permutes the registers; false for programs with arrays, or if nothing changes.
pub(super) fn permuted(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    let Some(operands) = operands(program) else { return false };
    let mut joined = [false; GROUPS];
    let mut half = [false; GROUPS];
    let mut used = 0;
    for &(reg, class, span) in &operands {
        let (first, last) = groups(reg, class, span);
        if last >= GROUPS {
            return false;
        }
        joined[first..last].fill(true);
        half[first..=last].iter_mut().for_each(|half| *half |= class.half);
        used = used.max(last + 1);
    }
    if used == 0 {
        return false;
    }
    // Two unused groups take part in the permutation.
    let end = (used + 2).min(GROUPS);
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for group in 0..end {
        match runs.last_mut() {
            Some(run) if group > 0 && joined[group - 1] => run.push(group),
            _ => runs.push(vec![group]),
        }
    }
    random.shuffle(&mut runs);
    let mut to = [0; GROUPS];
    for (place, &group) in runs.iter().flatten().enumerate() {
        if half[group] && place >= HALF_GROUPS {
            return false;
        }
        to[group] = place;
    }
    if (0..used).all(|group| to[group] == group) {
        return false;
    }
    let moved = |reg: &mut PhysReg, class: RegClass| {
        if class.file == RegFile::General && *reg != PhysReg::INVALID {
            let of_group = if class.half { 8 } else { 4 };
            let n = usize::from(reg.0);
            *reg = PhysReg((to[n / of_group] * of_group + n % of_group) as u16);
        }
    };
    for instr in program.iter_instrs().map(|(_, instr)| instr).collect::<Vec<_>>() {
        let data = &mut program.instrs[instr];
        for dst in &mut data.dsts {
            if let Place::Reg(reg) = &mut dst.place {
                moved(reg, dst.class);
            }
        }
        for src in &mut data.srcs {
            if let SrcOperand::Place(Place::Reg(reg)) = &mut src.operand {
                moved(reg, src.class);
            }
        }
    }
    true
}
