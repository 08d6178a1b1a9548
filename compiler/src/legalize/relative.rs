//! `(ul)`: the last user of a value in `a0.x` is marked.

use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::{Block, Instr, InstrData, InstrFlags, PhysReg, Program};

/// Marks the last users, on all paths.
pub fn run(program: &mut Program) {
    if !program.iter_instrs().any(|(_, instr)| program.instrs[instr].is_relative()) {
        return;
    }
    let ends = solve(&Cfg::new(program, EdgeKind::Logical), &program.layout, &mut Users { program }).end;
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut used = ends[block];
        for index in (0..program.blocks[block].instrs.len()).rev() {
            let instr: Instr = program.blocks[block].instrs[index];
            let data = &mut program.instrs[instr];
            used &= !writes(data);
            if data.is_relative() {
                data.flags.set(InstrFlags::UL, !used);
                used = true;
            }
        }
    }
}

/// True where a later instruction uses the value.
struct Users<'a> {
    program: &'a Program,
}

impl Analysis<Block> for Users<'_> {
    type Fact = bool;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, input: &mut bool, output: &bool, _: Edge<Block>) {
        *input |= output;
    }

    fn transfer(&mut self, block: Block, input: &bool) -> bool {
        let instrs = &self.program.blocks[block].instrs;
        let data = || instrs.iter().map(|&instr| &self.program.instrs[instr]);
        data()
            .find_map(|data| if data.is_relative() { Some(true) } else { writes(data).then_some(false) })
            .unwrap_or(*input)
    }
}

fn writes(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.place.reg() == Some(PhysReg::A0_X))
}
