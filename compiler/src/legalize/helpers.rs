//! `(eq)`: the end of helper lanes, on a6xx and later.
//!
//! Helper lanes of a quad exist for derivatives, and for other instructions that read values of other lanes. They end
//! as soon as no path leads to such an instruction any more, if something follows that would cost them time. The mark
//! is that of a nop. Branches that read all lanes count as the end of their block: the mark has to come after them, in
//! the successors.

use super::preamble::Preamble;
use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::helper_lanes::{reads_quad, uses_helpers, votes};
use crate::ir3::{Block, Category, Instr, InstrData, InstrFlags, Opcode, Program, ShaderStage};
use crate::target::{Generation, Target};

/// Marks the ends, in a program with nops.
pub fn run(program: &mut Program, target: &Target, preamble: &Preamble) {
    let needs_quads = |(_, instr): (Block, Instr)| reads_quad(&program.instrs[instr]);
    if program.stage != Some(ShaderStage::Fragment)
        || target.generation < Generation::A6xx
        || !program.iter_instrs().any(needs_quads)
    {
        return;
    }
    let users = Users { program, preamble };
    // Prefetches alone end them without help.
    if !program.layout.iter().any(|&block| users.at_end(block) || users.inside(block)) {
        return;
    }
    let mut analysis = Users { program, preamble };
    let solution = solve(&Cfg::new(program, EdgeKind::Physical), &program.layout, &mut analysis);
    let mut ends = Vec::new();
    for &block in &program.layout {
        let used_at_end = solution.end[block].0 || users.at_end(block) || preamble.contains(block);
        if used_at_end {
            continue;
        }
        let mut predecessors = program.blocks[block].physical_predecessors.iter();
        let used_before =
            predecessors.any(|&from| solution.end[from].0 || users.at_end(from) || preamble.contains(from));
        if solution.start[block].0 || used_before {
            ends.push(block);
        }
    }
    for block in ends {
        end_helpers(program, block);
    }
}

/// Marks the end in a block: a nop after the last user, or a new one.
fn end_helpers(program: &mut Program, block: Block) {
    let list = &program.blocks[block].instrs;
    let is_user = |&instr: &Instr| uses_helpers(&program.instrs[instr]);
    let first = list.iter().rposition(is_user).map_or(0, |last| last + 1);
    let mut is_useful = false;
    for &instr in &list[first..] {
        let data = &mut program.instrs[instr];
        match data.opcode.category() {
            _ if data.opcode == Opcode::Nop => {
                data.flags |= InstrFlags::EQ;
                return;
            }
            // Those complete a whole quad at a time.
            Category::Move | Category::Alu2 | Category::Alu3 | Category::Sfu | Category::Meta => {}
            _ if matches!(data.opcode, Opcode::Prede | Opcode::Getfiberid) => {}
            _ => {
                is_useful = true;
                break;
            }
        }
    }
    let last = program.layout.last().copied();
    if is_useful || program.blocks[block].successors[0] != last {
        let body = program.body_len(list);
        let is_start = |&&instr: &&Instr| program.instrs[instr].opcode.is_meta();
        let first = if first == 0 { list.iter().take_while(is_start).count() } else { first };
        let at = first.min(body.max(first.min(list.len())));
        let nop = program.instrs.push(InstrData { flags: InstrFlags::EQ, ..InstrData::new(Opcode::Nop) });
        program.blocks[block].instrs.insert(at, nop);
    }
}

/// The fact: true if a path leads to a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used(bool);

struct Users<'a> {
    program: &'a Program,
    preamble: &'a Preamble,
}

impl Users<'_> {
    fn any(&self, block: Block, holds: impl Fn(&InstrData) -> bool) -> bool {
        self.program.blocks[block].instrs.iter().any(|&instr| holds(&self.program.instrs[instr]))
    }

    /// Returns true if an instruction of a block is a user. It does not matter which lanes compute the preamble.
    fn inside(&self, block: Block) -> bool {
        !self.preamble.contains(block) && self.any(block, uses_helpers)
    }

    /// Returns true if the branches at the end of a block are users.
    fn at_end(&self, block: Block) -> bool {
        !self.preamble.contains(block) && self.any(block, votes)
    }
}

impl Analysis<Block> for Users<'_> {
    type Fact = Used;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, input: &mut Used, output: &Used, _: Edge<Block>) {
        input.0 |= output.0;
    }

    fn transfer(&mut self, block: Block, input: &Used) -> Used {
        // No mark is allowed in the preamble.
        let is_before = self.preamble.contains(block) || self.any(block, |data| data.opcode == Opcode::TexPrefetch);
        Used(input.0 || is_before || self.inside(block) || self.at_end(block))
    }
}
