//! Loop-invariant code motion: computes values before the loop that are the same in each iteration.

use super::edit::{consts_change, is_pure};
use super::loops::{LoopAnalysis, loops};
use ir3_compiler::ir3::Program;
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// Moves pure instructions whose operands are defined outside their loop to the block before it; false if there are
/// none.
///
/// No instruction that is moved can fail, so it may run where the loop would not have run it.
pub(super) fn out_of_loops(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    let consts_change = consts_change(program);
    let mut analysis = LoopAnalysis::new(program);
    let mut any = false;
    // Inner loops first, in reverse order of headers: an instruction that leaves an inner loop can leave the outer one
    // next.
    for the_loop in loops(program, &analysis.dominators).iter().rev() {
        for block in program.layout.clone() {
            if !the_loop.body.contains(block) {
                continue;
            }
            let mut index = 0;
            while let Some(&instr) = program.blocks[block].instrs.get(index) {
                let data = &program.instrs[instr];
                let invariant =
                    data.srcs.iter().filter_map(|src| src.value()).all(|value| {
                        analysis.definition(program, value).is_some_and(|from| !the_loop.body.contains(from))
                    });
                if is_pure(data, consts_change) && invariant && random.chance(80) {
                    program.blocks[block].instrs.remove(index);
                    let before = &mut program.blocks[the_loop.before].instrs;
                    before.insert(before.len() - 1, instr);
                    analysis.block_of[instr] = Some(the_loop.before);
                    any = true;
                } else {
                    index += 1;
                }
            }
        }
    }
    any
}
