//! Legalisation: a program with registers becomes one that the machine can run.
//!
//! The program determines values, order and places. The machine leaves the rest to the compiler: it does not
//! wait for results by itself, and control flow is a list of instructions with branches between them. In order:
//!
//! 1. `layout`: branches become explicit, and those to the next block are left out.
//! 2. `predication`: `prede` ends predicated code.
//! 3. `kills`: killed lanes leave loops.
//! 4. `relative`: the last user of `a0.x` is marked (`(ul)`), on the paths of killed lanes too.
//! 5. Physical edges and reconvergence points are recomputed from the final layout.
//! 6. `inputs`: the memory of the varyings is released (`(ei)`).
//! 7. `sync`: instructions wait for units that take their time (`(ss)`, `(sy)`).
//! 8. `expand`: the load of push constants becomes stores.
//! 9. `delays::nops`: the ALU's results are waited for by distance (`nop`, `(nopN)`). Derivatives are written as two
//!    afterwards (`expand`).
//! 10. `helpers`: helper lanes end (`(eq)`).
//! 11. Reconvergence points are marked (`(jp)`).
//!
//! The layout comes first, so that no wait is attached to a jump that is left out. The result is a program in
//! [machine form](crate::ir3::validate::Form::Machine) whose branches have targets; its inputs are still listed, as the
//! interpreter needs them.

mod expand;
mod helpers;
mod inputs;
mod kills;
mod layout;
mod preamble;
mod predication;
mod relative;
mod sync;

use crate::delays::nops;
use crate::ir3::{InstrFlags, Opcode, Program, reconvergence};
use crate::target::Target;
use preamble::Preamble;

/// Legalises a program with registers, without macros, whose branches are not explicit.
pub fn run(program: &mut Program, target: &Target) {
    layout::run(program);
    predication::run(program);
    layout::remove_unreachable(program);
    kills::run(program);
    relative::run(program);
    reconvergence::run(program);
    wait_for_elected(program);
    let preamble = Preamble::of(program, target);
    preamble.mark_addresses(program);
    inputs::run(program, target, &preamble);
    sync::run(program, target, &preamble);
    // The store that it becomes is no slot of a delay.
    expand::push_constants(program, target);
    nops::insert(program, target);
    expand::derivatives(program);
    expand::no_results(program);
    helpers::run(program, target, &preamble);
    mark_reconvergence(program);
}

/// Makes the other lanes wait where the one that `getone` elects jumps over them: its jump is a step of its own, in
/// which they are waiting.
fn wait_for_elected(program: &mut Program) {
    for position in 0..program.layout.len() {
        let instrs = &program.blocks[program.layout[position]].instrs;
        let [.., election, jump] = instrs[..] else { continue };
        if program.instrs[election].opcode.elects_lane() && program.instrs[jump].opcode == Opcode::Jump {
            let others = layout::target(program, election);
            others.into_iter().for_each(|others| program.blocks[others].reconvergence_point = true);
        }
    }
}

/// Sets `(jp)` on the first instruction of each block where lanes reconverge. An empty block leads to the next one.
fn mark_reconvergence(program: &mut Program) {
    let mut is_open = false;
    for &block in &program.layout {
        let data = &program.blocks[block];
        is_open |= data.reconvergence_point;
        if let Some(&first) = data.instrs.iter().find(|&&instr| !program.instrs[instr].opcode.is_meta()) {
            program.instrs[first].flags.set(InstrFlags::JP, std::mem::take(&mut is_open));
        }
    }
}
