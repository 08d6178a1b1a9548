//! The properties of a program, besides its registers, that limit how many of its waves run concurrently.

use super::{Block, Category, CodeOrder, Opcode, Program, ShaderStage};
use crate::target::occupancy::{WorkKind, Workload};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The execution parameters of a program. API-level requirements are unknown here.
#[must_use]
pub fn workload(program: &Program) -> Workload {
    let kind = match program.stage {
        Some(ShaderStage::Compute) => WorkKind::Compute {
            threads: program
                .workgroup_size
                .map(|size| size.iter().map(|&n| u32::from(n)).product())
                .filter(|&n| n != 0),
            shared_size: program.shared_size,
            barrier: program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Bar),
        },
        Some(ShaderStage::Fragment) => WorkKind::Fragment,
        _ => WorkKind::Geometry,
    };
    Workload::new(kind).with_branchstack(branchstack(program))
}

/// The maximum number of places where lanes wait for others at the same time.
///
/// Lanes that diverge at a branch reconverge at the later of its two successors; until the wave reaches that place, it
/// is on the stack. A jump from a block before that place to one after it makes its lanes wait too, at its own target.
/// A back edge from a block before it makes the waiting lanes wait throughout the loop. Blocks that only jump do not
/// exist by then. A `kill` and a macro become branches themselves.
///
/// Mesa prints the same number for its own programs, except for some with nested loops, where it counts one more.
#[must_use]
pub fn branchstack(program: &Program) -> u32 {
    let order = CodeOrder::new(program);
    // For each block where lanes reconverge, the first block during which some wait there. It only decreases, so the
    // pass over the code is repeated until a fixed point.
    let mut since = vec![u32::MAX; program.layout.len()];
    loop {
        let (most, changed) = walk(program, &order, &mut since);
        if !changed {
            return most + later_branches(program);
        }
    }
}

/// The branches that instructions become later.
fn later_branches(program: &Program) -> u32 {
    let (mut kills, mut macros) = (0, 0);
    for (_, instr) in program.iter_instrs() {
        match program.instrs[instr].opcode {
            Opcode::Kill => kills = 1,
            Opcode::ScanMacro | Opcode::ScanClustersMacro => macros = 3,
            opcode if opcode.is_macro() && opcode.category() == Category::Move => {
                macros = macros.max(1);
            }
            _ => {}
        }
    }
    kills + macros
}

/// Visits the code once. Returns the maximum number of places where lanes waited, and true if `since` has changed for
/// blocks already visited.
fn walk(program: &Program, order: &CodeOrder, since: &mut [u32]) -> (u32, bool) {
    let mut starts: Vec<(u32, u32)> =
        (0..).zip(&*since).filter(|&(_, &first)| first != u32::MAX).map(|(meet, &first)| (first, meet)).collect();
    starts.sort_unstable_by(|a, b| b.cmp(a));
    let mut waiting = BTreeSet::new();
    let (mut most, mut changed) = (0, false);
    for (position, &block) in (0..).zip(&program.layout) {
        while let Some((_, meet)) = starts.pop_if(|(first, _)| *first <= position) {
            waiting.insert(meet);
        }
        waiting.remove(&position);
        if order.is_empty(block) {
            continue;
        }
        let successors: SmallVec<[u32; 2]> =
            program.blocks[block].successors().map(|to| order.place(order.landing(to))).collect();
        let mut wait = |meet: u32| {
            let first = &mut since[meet as usize];
            *first = (*first).min(position);
            waiting.insert(meet);
        };
        if parts(program, block)
            && let Some(later) = successors.iter().copied().max()
            && later > position
        {
            wait(later);
        }
        for to in successors {
            if to > position && waiting.first().is_some_and(|&meet| meet < to) {
                since[to as usize] = since[to as usize].min(position);
                waiting.insert(to);
            } else if to <= position {
                for &meet in &waiting {
                    changed |= to < since[meet as usize];
                    since[meet as usize] = since[meet as usize].min(to);
                }
            }
        }
        most = most.max(waiting.len() as u32);
    }
    (most, changed)
}

/// Returns true if lanes may diverge at the end of a block.
fn parts(program: &Program, block: Block) -> bool {
    let data = &program.blocks[block];
    matches!(data.successors, [Some(_), Some(_)])
        && data.divergent != Some(false)
        && data.instrs.iter().any(|&instr| {
            let opcode = program.instrs[instr].opcode;
            opcode.is_terminator() && opcode.category() == Category::Flow && !opcode.is_predication()
        })
}
