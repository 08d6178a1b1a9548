//! Branches whose condition is the same in all lanes that run them.
//!
//! A value is *uniform* at a block if all lanes that run the block together have the same one. That is so of shared
//! registers, constants and immediates when they are read; of an ALU result if all of its operands are uniform where it
//! is computed, and if the lanes that are together here have computed it together.
//!
//! Lanes that run block `b` together have run block `d` last at the same time, if `d` dominates `b` and, for each edge
//! back from `f` to `t`, both of them are between `t` and `f` in the code, or neither, and `t` is `d` or a block that
//! `d` does not dominate. For suppose that a lane A runs `d` without another lane B, which runs it for the last time
//! later. A wave runs the earliest block in which lanes wait, so B is in a later block at that time, and goes back over
//! an edge around `d`, which is around `b` too. When it takes that edge, A waits at its end or after it, hence after
//! `b`. So A only reaches `b` by an edge back around `b` and `d`; the path from its end to `b` passes `d`, as there is
//! a path to that end without `d`. Nor has any other lane run `d` in between: nothing of this is about where B goes
//! then. So a shared value that is defined in `d` is unchanged at `b`.
//!
//! None of this uses the compiler's divergence analysis, its physical edges, or the marks on its branches.

use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::dominance::{Dominators, EdgeKind};
use ir3_compiler::ir3::{Block, Instr, Opcode, PhysReg, Place, Program, RegClass, Src, SrcOperand, Value, WriteMask};
use ir3_semantics::machine::units;
use ir3_semantics::operations::ir3_alu;
use ir3_semantics::support::guards::{Guard, left_out};

/// The maximum length of a chain of operations from shared registers to a branch.
const DEPTH: u32 = 6;

/// The blocks that end in a branch whose condition is uniform.
pub(super) fn uniform_branches(program: &Program, together: &Together) -> SecondaryMap<Block, bool> {
    let mut found = SecondaryMap::new();
    let values = UniformValues::new(program, together);
    for &block in &program.layout {
        let instrs = &program.blocks[block].instrs;
        let Some((&branch, before)) = instrs.split_last() else { continue };
        let data = &program.instrs[branch];
        found[block] = matches!(data.opcode, Opcode::Br | Opcode::Braa | Opcode::Brao)
            && data.srcs.iter().all(|src| values.is_uniform(src, (block, before.len()), DEPTH));
    }
    found
}

/// The blocks of a program, to tell which of them lanes have last run at the same time.
pub(super) struct Together {
    pub dominators: Dominators,
    /// The position of each block in the layout.
    position: SecondaryMap<Block, u32>,
    /// The edges back: the first and the last block of what is repeated.
    back: Vec<(Block, Block)>,
}

impl Together {
    pub fn new(program: &Program) -> Self {
        let mut position = SecondaryMap::new();
        (0..).zip(&program.layout).for_each(|(at, &block)| position[block] = at);
        let edges = program.layout.iter().flat_map(|&from| program.blocks[from].successors().map(move |to| (to, from)));
        let back = edges.filter(|&(to, from)| position[to] <= position[from]).collect();
        Self { dominators: Dominators::new(program, EdgeKind::Logical), position, back }
    }

    /// Returns true if all lanes that run `block` together have run `earlier` for the last time together, and no lane
    /// has run it since.
    pub fn ran_last(&self, earlier: Block, block: Block) -> bool {
        if earlier == block {
            return true;
        }
        // Without an edge back around it, the wave runs a block at most once: it goes forward on all others.
        let repeats = |&(first, last): &(Block, Block), block: Block| {
            (self.position[first]..=self.position[last]).contains(&self.position[block])
        };
        let runs_once = !self.back.iter().any(|edge| repeats(edge, earlier));
        let is_around = |edge: &(Block, Block)| {
            let first = edge.0;
            let [d, b] = [earlier, block].map(|block| repeats(edge, block));
            let is_apart = first != earlier && self.dominators.dominates(earlier, first);
            d == b && !(d && is_apart) || left_out(Guard::UniformTogether)
        };
        self.dominators.dominates(earlier, block) && (runs_once || self.back.iter().all(is_around))
    }
}

/// A position: the instructions of a block before one.
type Point = (Block, usize);

struct UniformValues<'a> {
    program: &'a Program,
    together: &'a Together,
    /// The place where each value is computed.
    definitions: SecondaryMap<Value, Option<Point>>,
}

impl<'a> UniformValues<'a> {
    fn new(program: &'a Program, together: &'a Together) -> Self {
        let mut definitions = SecondaryMap::new();
        for &block in &program.layout {
            for (at, &instr) in program.blocks[block].instrs.iter().enumerate() {
                for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                    definitions[value] = Some((block, at));
                }
            }
        }
        Self { program, together, definitions }
    }

    /// Returns true if a source is uniform where it is read.
    fn is_uniform(&self, src: &Src, read: Point, depth: u32) -> bool {
        let place = match &src.operand {
            SrcOperand::Const(_) | SrcOperand::Immediate(_) => return true,
            SrcOperand::Place(place) => place,
            SrcOperand::ConstRelative(_) | SrcOperand::Undef => return false,
        };
        if place.is_relative() || src.mask != WriteMask::first(1) {
            return false;
        }
        if units::is_of_wave(place, src.class) {
            return true;
        }
        let definition = match *place {
            Place::Value(value) | Place::Assigned(value, _) => self.definitions[value],
            Place::Reg(register) => self.last_write(register, src.class, read),
            _ => None,
        };
        let Some((block, at)) = definition.filter(|_| depth > 0) else { return false };
        if !self.together.ran_last(block, read.0) {
            return false;
        }
        let data = &self.program.instrs[self.program.blocks[block].instrs[at]];
        let [dst] = &data.dsts[..] else { return false };
        dst.mask == WriteMask::first(1)
            && data.repeat == 0
            && ir3_alu::kernel(data).is_some()
            && data.srcs.iter().all(|src| self.is_uniform(src, (block, at), depth - 1))
    }

    /// The instruction that has written a register, if there is one on the only path to here.
    fn last_write(&self, register: PhysReg, class: RegClass, (mut block, mut end): Point) -> Option<Point> {
        loop {
            for (at, &instr) in self.program.blocks[block].instrs[..end].iter().enumerate().rev() {
                match self.writes(instr, register, class) {
                    Written::No => {}
                    Written::All => return Some((block, at)),
                    Written::Perhaps => return None,
                }
            }
            let [before] = self.program.blocks[block].predecessors[..] else { return None };
            // A block that is its own predecessor is never reached.
            if self.together.position[before] >= self.together.position[block] {
                return None;
            }
            (block, end) = (before, self.program.blocks[before].instrs.len());
        }
    }

    fn writes(&self, instr: Instr, register: PhysReg, class: RegClass) -> Written {
        let data = &self.program.instrs[instr];
        // In halves: in a merged file, a full register is where two halves are.
        let halves = |first: PhysReg, count: u32, half: bool| {
            let first = u32::from(first.0);
            if half { first..first + count } else { 2 * first..2 * (first + count) }
        };
        let wanted = halves(register, 1, class.half);
        let mut found = Written::No;
        for dst in data.dsts.iter().filter(|dst| dst.class.file == class.file) {
            let Some(first) = dst.place.reg() else { return Written::Perhaps };
            let written = halves(first, dst.mask.span() + u32::from(data.repeat), dst.class.half);
            if written.end <= wanted.start || wanted.end <= written.start {
                continue;
            }
            if dst.class != class || written != wanted {
                return Written::Perhaps;
            }
            found = Written::All;
        }
        found
    }
}

/// The part of a register that an instruction writes.
enum Written {
    No,
    All,
    Perhaps,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::text;

    /// The numbers of the blocks of a text that end in a uniform branch.
    fn uniform(source: &str) -> Vec<u32> {
        let program = text::read(source).expect("a program");
        let found = uniform_branches(&program, &Together::new(&program));
        (1..).zip(&program.layout).filter(|&(_, &block)| found[block]).map(|(number, _)| number).collect()
    }

    /// Two branches on one shared register, the second on a predicate that is computed before the first.
    const LADDER: &str = "block1 {
	0001:0000:001: 	_meta:in ssa_1 // {input=local_invocation_index}
	0002:0001:001: 	mov.u32u32 sssa_2, c0.x
	0003:0002:001: 	cmps.s.eq pssa_3, sssa_2, imm[0.000000,0,0x0]
	0004:0003:001: 	cmps.s.eq pssa_4, sssa_2, imm[0.000000,1,0x1]
	0005:0004:001: 	br pssa_3
	/* succs: block2, block3 (div) */
}
block2 {
	pred: block1
	0006:0005:001: 	br pssa_4
	/* succs: block3, block4 (div) */
}
block3 {
	pred: block1, block2
	0007:0006:001: 	jump
	/* succs: block4 */
}
block4 {
	pred: block2, block3
	0008:0007:001: 	end
}
";

    /// Each lane leaves the loop after its own number of iterations; the predicate is of the last of them.
    const LOOP: &str = "block1 {
	0001:0000:001: 	_meta:in ssa_1 // {input=local_invocation_index}
	0002:0001:001: 	mov.u32u32 sssa_2, imm[0.000000,0,0x0]
	0003:0002:001: 	jump
	/* succs: block2 */
}
block2 {
	pred: block1, block3
	0004:0003:001: 	_meta:phi sssa_4, sssa_2, sssa_8
	0005:0004:001: 	cmps.s.gt pssa_5, sssa_4, imm[0.000000,3,0x3]
	0006:0005:001: 	mov.u32u32 ssa_6, sssa_4
	0007:0006:001: 	cmps.s.ge pssa_7, ssa_6, ssa_1
	0010:0007:001: 	br pssa_7
	/* succs: block4, block3 (div) */
}
block3 {
	pred: block2
	0008:0008:001: 	add.u sssa_8, sssa_4, imm[0.000000,1,0x1]
	0009:0009:001: 	br pssa_5
	/* succs: block4, block2 (div) */
}
block4 {
	pred: block2, block3
	0011:0010:001: 	br pssa_5
	/* succs: block5, block6 (div) */
}
block5 {
	pred: block4
	0012:0011:001: 	jump
	/* succs: block6 */
}
block6 {
	pred: block4, block5
	0013:0012:001: 	end
}
";

    #[test]
    fn conditions_of_shared_registers_are_uniform() {
        assert_eq!(uniform(LADDER), [1, 2]);
        assert_eq!(uniform(&LADDER.replace("pssa_3, sssa_2", "pssa_3, ssa_1")), [2]);
        // In registers, along the only path.
        let registers = LADDER.replace("pssa_3", "pp0.x").replace("pssa_4", "pp0.y");
        assert_eq!(uniform(&registers), [1, 2]);
        let overwritten = registers.replace("pp0.y, sssa_2", "pp0.x, sssa_2").replace("br pp0.y", "br pp0.x");
        assert_eq!(uniform(&overwritten), [1, 2]);
        assert_eq!(uniform(&overwritten.replace("pp0.x, sssa_2, imm[0.000000,1,0x1]", "pp0.x, ssa_1, sssa_2")), [0; 0]);
    }

    #[test]
    fn a_value_of_another_iteration_is_not_uniform() {
        // In block 3 it is of this iteration; in block 4, lanes have left the loop in different ones.
        assert_eq!(uniform(LOOP), [3]);
    }
}
