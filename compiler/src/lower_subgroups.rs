//! Subgroup macros become control flow.
//!
//! Up to here a ballot, a vote or a reduction is one instruction, so that schedulers and the allocator can place it as
//! any other. The machine has branches that choose lanes instead: `getone` and `getlast` send one active lane to
//! another successor, `bany` and `ball` branch on the predicates of all of them. A macro splits its block; most become
//! an if:
//!
//! ```text
//!     block:  …                        block:  …
//!             ballot.macro r0, p0  →           mov r0, 0
//!             …                                br p0, then, after
//!                                      then:   movmsk r0
//!                                      after:  …
//! ```
//!
//! Moves to shared registers read the first active lane, so `read_first.macro` is a move. `scan.macro` is a loop in
//! which one lane after the other adds its value and leaves:
//!
//! ```text
//!     header: getone exit, footer
//!     exit:   exclusive = reduce; inclusive = src OP exclusive; reduce = inclusive; jump after
//!     footer: jump header
//! ```
//!
//! `scan_clusters.macro` does it for clusters, whose last lanes have their sums already: all lanes compute, the last
//! one of those that are left hands the sum on, and its cluster leaves:
//!
//! ```text
//!     body:   scratch = reduce; inclusive = src OP scratch; exclusive = src2 OP scratch; getlast store, after
//!     store:  reduce = inclusive; getone after, body
//! ```

use crate::ir3::{
    Attrs, Block, BlockData, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, Round, Src, SrcOperand, Type,
    reconvergence,
};

/// Returns true if there is a macro.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| expands(program.instrs[instr].opcode))
}

/// Expands all macros of a program with registers, and computes physical edges and reconvergence points.
pub fn run(program: &mut Program) {
    // Blocks that are added after one are looked at next.
    let mut position = 0;
    while position < program.layout.len() {
        let block = program.layout[position];
        let first = program.blocks[block].instrs.iter().position(|&instr| expands(program.instrs[instr].opcode));
        if let Some(at) = first {
            expand(program, position, at);
        }
        position += 1;
    }
    reconvergence::run(program);
}

fn expands(opcode: Opcode) -> bool {
    opcode.is_macro() && opcode != Opcode::PushConstsLoadMacro
}

/// Expands the instruction at `at` of the block at `position` of the layout.
fn expand(program: &mut Program, position: usize, at: usize) {
    let block = program.layout[position];
    let instr = program.blocks[block].instrs[at];
    let data = program.instrs[instr].clone();
    if data.opcode == Opcode::ReadFirstMacro {
        let (dst, src) = (data.dsts[0], data.srcs[0]);
        program.instrs[instr] = InstrData { srcs: data.srcs, ..copy(dst, src) };
        // There may be another one in this block.
        let rest = &program.blocks[block].instrs[at + 1..];
        if let Some(next) = rest.iter().position(|&instr| expands(program.instrs[instr].opcode)) {
            expand(program, position, at + 1 + next);
        }
        return;
    }
    let mut regions = Regions { program, before: block, position };
    let after = regions.split(at);
    match data.opcode {
        Opcode::ScanMacro => regions.scan(&data, after),
        Opcode::ScanClustersMacro => regions.scan_clusters(&data, after),
        _ => regions.choose(&data, after),
    }
    // The macro itself was split off first.
    debug_assert_ne!(regions.program.blocks[after].instrs.first(), Some(&instr));
}

/// The blocks that a macro becomes.
struct Regions<'a> {
    program: &'a mut Program,
    /// The block that it was in, up to it.
    before: Block,
    position: usize,
}

impl Regions<'_> {
    /// Moves the instructions after the one at `at` to a new block, with the edges of the old one, and removes the
    /// instruction.
    fn split(&mut self, at: usize) -> Block {
        let program = &mut *self.program;
        let data = &mut program.blocks[self.before];
        let after = BlockData {
            instrs: data.instrs.split_off(at + 1),
            successors: std::mem::take(&mut data.successors),
            divergent: data.divergent.take(),
            keeps: std::mem::take(&mut data.keeps),
            ..BlockData::default()
        };
        let gone = data.instrs.pop();
        let after = program.blocks.push(after);
        program.blocks[after].keeps.retain(|keep| Some(*keep) != gone);
        program.layout.insert(self.position + 1, after);
        for successor in program.blocks[after].successors {
            let Some(successor) = successor else { continue };
            let list = &mut program.blocks[successor].predecessors;
            list.iter_mut().filter(|from| **from == self.before).for_each(|from| *from = after);
        }
        after
    }

    /// Adds a block after `count` others of the macro.
    fn block(&mut self, count: usize) -> Block {
        let block = self.program.blocks.push(BlockData::default());
        self.program.layout.insert(self.position + 1 + count, block);
        block
    }

    fn push(&mut self, block: Block, data: InstrData) -> Instr {
        let instr = self.program.instrs.push(data);
        self.program.blocks[block].instrs.push(instr);
        instr
    }

    /// Ends a block with a jump.
    fn jump(&mut self, from: Block, to: Block) {
        self.push(from, InstrData::new(Opcode::Jump));
        self.link(from, 0, to);
    }

    /// Ends a block with a branch.
    fn branch(&mut self, from: Block, opcode: Opcode, condition: Option<Src>, to: [Block; 2]) {
        self.push(from, InstrData { srcs: condition.into_iter().collect(), ..InstrData::new(opcode) });
        self.link(from, 0, to[0]);
        self.link(from, 1, to[1]);
        self.program.blocks[from].divergent = Some(!opcode.is_uniform_branch());
    }

    /// Physical edges are added when all blocks exist.
    fn link(&mut self, from: Block, slot: usize, to: Block) {
        self.program.blocks[from].successors[slot] = Some(to);
        self.program.blocks[to].predecessors.push(from);
    }

    /// An if: the lanes, or the one lane, that the macro is about do something else.
    fn choose(&mut self, data: &InstrData, after: Block) {
        let (before, then) = (self.before, self.block(0));
        let dst = data.dsts[0];
        let (opcode, condition) = match data.opcode {
            Opcode::BallotMacro | Opcode::ReadCondMacro => (Opcode::Br, Some(data.srcs[0])),
            Opcode::AnyMacro => (Opcode::Bany, Some(data.srcs[0])),
            Opcode::AllMacro => (Opcode::Ball, Some(data.srcs[0])),
            Opcode::ElectMacro => (Opcode::Getone, None),
            Opcode::ShpsMacro => (Opcode::Shps, None),
            _ => (Opcode::Getlast, None),
        };
        // Lanes for which nothing is done have nothing.
        if !matches!(data.opcode, Opcode::ReadCondMacro | Opcode::ReadGetlastMacro) {
            self.push(before, set(dst, 0));
        }
        self.branch(before, opcode, condition, [then, after]);
        let result = match data.opcode {
            Opcode::BallotMacro => {
                let repeat = dst.mask.span() as u8 - 1;
                InstrData {
                    repeat,
                    attrs: Attrs::None,
                    dsts: [dst].into_iter().collect(),
                    ..InstrData::new(Opcode::Movmsk)
                }
            }
            Opcode::ReadCondMacro => copy(dst, data.srcs[1]),
            Opcode::ReadGetlastMacro => copy(dst, data.srcs[0]),
            _ => set(dst, 1),
        };
        self.push(then, result);
        self.jump(then, after);
    }

    /// Starts with the first value of a reduction: in Mesa's scans it is in the register of the result already.
    fn start(&mut self, reduce: Dst, initial: Src) {
        if let SrcOperand::Immediate(number) = initial.operand {
            self.push(self.before, set(reduce, number));
        }
    }

    fn scan(&mut self, data: &InstrData, after: Block) {
        self.start(data.dsts[2], data.srcs[1]);
        let [header, exit, footer] = [0, 1, 2].map(|count| self.block(count));
        self.jump(self.before, header);
        self.branch(header, Opcode::Getone, None, [exit, footer]);
        let [exclusive, inclusive, reduce] = [0, 1, 2].map(|i| data.dsts[i]);
        self.push(exit, copy(exclusive, read(reduce)));
        self.combine(exit, data, inclusive, data.srcs[0], read(exclusive));
        self.push(exit, copy(reduce, read(inclusive)));
        self.jump(exit, after);
        self.jump(footer, header);
    }

    fn scan_clusters(&mut self, data: &InstrData, after: Block) {
        self.start(data.dsts[0], data.srcs[0]);
        let [body, store] = [0, 1].map(|count| self.block(count));
        self.jump(self.before, body);
        let (reduce, inclusive) = (data.dsts[0], data.dsts[1]);
        // The last destination: one of its own, or one that is computed last.
        let scratch = data.dsts[data.dsts.len() - 1];
        self.push(body, copy(scratch, read(reduce)));
        self.combine(body, data, inclusive, data.srcs[1], read(scratch));
        if let Some(&src) = data.srcs.get(2) {
            self.combine(body, data, data.dsts[2], src, read(scratch));
        }
        self.branch(body, Opcode::Getlast, None, [store, after]);
        self.push(store, copy(reduce, read(inclusive)));
        self.branch(store, Opcode::Getone, None, [after, body]);
    }

    /// `dst = a OP b`, with the operation of a scan.
    fn combine(&mut self, block: Block, data: &InstrData, dst: Dst, a: Src, b: Src) {
        let Attrs::Scan { op } = data.attrs else { return };
        let dst = plain(dst);
        // Operands are read once for each step.
        let [a, b] = [a, b].map(|src| Src { flags: Default::default(), ..src });
        let step = |opcode: Opcode, srcs: &[Src]| InstrData {
            dsts: [dst].into_iter().collect(),
            srcs: srcs.iter().copied().collect(),
            ..InstrData::new(opcode)
        };
        match op {
            Opcode::MulU24 if dst.class.half => {
                self.push(block, step(Opcode::MulS24, &[a, b]));
            }
            // 32 bits, from three products of 16.
            Opcode::MulU24 => {
                self.push(block, step(Opcode::MullU, &[a, b]));
                self.push(block, step(Opcode::MadshM16, &[a, b, read(dst)]));
                self.push(block, step(Opcode::MadshM16, &[b, a, read(dst)]));
            }
            _ => {
                self.push(block, step(op, &[a, b]));
            }
        }
    }
}

/// The destination without marks.
fn plain(dst: Dst) -> Dst {
    Dst { flags: Default::default(), ..dst }
}

/// Reads the content of a destination.
fn read(dst: Dst) -> Src {
    Src::reg(place(&dst.place), dst.class, dst.mask)
}

fn place(place: &Place) -> Place {
    match *place {
        Place::Assigned(_, reg) => Place::Reg(reg),
        place => place,
    }
}

/// A move of bits, zero-extended.
fn copy(dst: Dst, src: Src) -> InstrData {
    let attrs = Attrs::Move { src: integer(src.class), dst: integer(dst.class), round: Round::Default };
    InstrData {
        attrs,
        dsts: [plain(dst)].into_iter().collect(),
        srcs: [Src { flags: Default::default(), ..src }].into_iter().collect(),
        ..InstrData::new(Opcode::Mov)
    }
}

/// Sets all components of a destination to a number.
fn set(dst: Dst, number: u32) -> InstrData {
    let src = Src::new(SrcOperand::Immediate(number), RegClass::general(dst.class.half), crate::ir3::WriteMask::SCALAR);
    InstrData { repeat: dst.mask.span() as u8 - 1, ..copy(dst, src) }
}

const fn integer(class: RegClass) -> Type {
    if class.half { Type::U16 } else { Type::U32 }
}
