//! What is the same in each iteration is computed in front of the loop.

use super::edit::{consts_change, is_pure};
use super::loops::{Shape, loops};
use crate::support::random::Random;
use ir3_compiler::ir3::Program;
use ir3_compiler::target::Target;

/// Moves pure instructions whose operands come from outside their loop in front of it; false if there are none.
///
/// Nothing that is moved can fail, so it does not matter that it is computed where the loop would not have.
pub(super) fn out_of_loops(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    let consts_change = consts_change(program);
    let mut shape = Shape::new(program);
    let mut any = false;
    // Outer loops first: what leaves an inner loop goes one step further the next time.
    for the_loop in loops(program, &shape.dominators).iter().rev() {
        for block in program.layout.clone() {
            if !the_loop.body.contains(block) {
                continue;
            }
            let mut index = 0;
            while let Some(&instr) = program.blocks[block].instrs.get(index) {
                let data = &program.instrs[instr];
                let invariant =
                    data.srcs.iter().filter_map(|src| src.value()).all(|value| {
                        shape.definition(program, value).is_some_and(|from| !the_loop.body.contains(from))
                    });
                if is_pure(data, consts_change) && invariant && random.chance(80) {
                    program.blocks[block].instrs.remove(index);
                    let before = &mut program.blocks[the_loop.before].instrs;
                    before.insert(before.len() - 1, instr);
                    shape.block_of[instr] = Some(the_loop.before);
                    any = true;
                } else {
                    index += 1;
                }
            }
        }
    }
    any
}
