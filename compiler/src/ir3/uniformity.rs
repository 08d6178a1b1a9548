//! Uniformity analysis: the values that are the same in all lanes that run together, and the branches at which lanes
//! may diverge.
//!
//! A value is *uniform* if, whenever its definition runs, all lanes that run it get the same bits. That is so for an
//! operation that computes each lane separately from sources that are uniform there. Two cases make a difference
//! without any operation:
//!
//! - a phi in a block where lanes come together that took different edges: any reconvergence point
//!   ([`Waiting::is_point`]);
//! - a read in a block U of a value of block B, if lanes may have waited between them while others ran B again: then
//!   the lanes in U have values that B defined at different times ([`Waiting::waits_between`]). So a value can be
//!   uniform, and yet a read of it is not.
//!
//! The lattice of a value is uniform < divergent, and so is that of a branch. All values and branches start as uniform;
//! each branch on a divergent predicate adds reconvergence points. An instruction is visited again ([`Worklist`]) when
//! a source has become divergent, or when lanes may newly wait at its block or between it and the definition of a
//! source. All of these facts only grow, so the result is the least fixed point.

use super::dataflow::Worklist;
use super::opcode::Lanes;
use super::readers::Readers;
use super::reconvergence::Waiting;
use super::{Attrs, Block, InputKind, Instr, InstrData, Opcode, Place, Program, SrcOperand, SystemValue, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The uniform values and divergent branches of a program.
pub struct Uniformity {
    divergent: SecondaryMap<Value, bool>,
    def_block: SecondaryMap<Value, PackedOption<Block>>,
    parts: SecondaryMap<Block, bool>,
    waiting: Waiting,
    /// The readers of the values, which other analyses of the same program read, too.
    pub(crate) readers: Readers,
}

impl Uniformity {
    /// Analyses a program in SSA form. The divergence that the program records for its branches is ignored.
    pub fn new(program: &Program) -> Self {
        let mut this = Self {
            divergent: map_of(program.values.len()),
            def_block: program.definition_blocks(),
            parts: map_of(program.blocks.len()),
            waiting: Waiting::without_divergence(program),
            readers: Readers::new(program),
        };
        this.solve(program);
        this
    }

    fn solve(&mut self, program: &Program) {
        let mut worklist = Worklist::full(self.readers.instrs.len());
        // Blocks at whose ends lanes are newly known to diverge.
        let mut parting = Vec::new();
        loop {
            while let Some(position) = worklist.next() {
                let (block, instr) = self.readers.instrs[position];
                let data = &program.instrs[instr];
                for (k, dst) in data.dsts.iter().enumerate() {
                    let Some(value) = dst.value().filter(|&value| !self.divergent[value]) else { continue };
                    if !self.computes_uniform(program, block, instr, k) {
                        self.divergent[value] = true;
                        self.readers.of(value).iter().for_each(|&reader| worklist.add(reader as usize));
                    }
                }
                if data.opcode.is_terminator() && !self.parts[block] && self.branch_diverges(program, block) {
                    self.parts[block] = true;
                    parting.push(block);
                }
            }
            if parting.is_empty() {
                return;
            }
            let parts = &self.parts;
            let changed = self.waiting.extend(program, &parting, |block| parts[block]);
            parting.clear();
            for block in changed {
                // Phis of the block, and reads elsewhere of its definitions.
                for position in self.readers.range(block) {
                    let data = &program.instrs[self.readers.instrs[position].1];
                    if data.opcode == Opcode::Phi {
                        worklist.add(position);
                    }
                    let values = data.dsts.iter().filter_map(|dst| dst.value());
                    values.flat_map(|value| self.readers.of(value)).for_each(|&reader| worklist.add(reader as usize));
                }
            }
        }
    }

    /// Returns true if all lanes that run the definition of `value` together get the same value.
    pub fn is_uniform(&self, value: Value) -> bool {
        !self.divergent[value]
    }

    /// Returns true if all lanes that read `value` together in `block` (or at its end) read the same value.
    pub fn is_uniform_at(&self, value: Value, block: Block) -> bool {
        self.is_uniform(value) && self.is_current_at(value, block)
    }

    /// Returns true if all lanes that read `value` together in `block` read the result of the same execution of its
    /// definition: the last one.
    pub fn is_current_at(&self, value: Value, block: Block) -> bool {
        self.def_block[value].expand().is_some_and(|def| def == block || !self.waiting.waits_between(def, block))
    }

    /// Returns true if lanes may diverge at the end of `block`.
    pub fn parts_lanes(&self, block: Block) -> bool {
        self.parts[block]
    }

    fn computes_uniform(&self, program: &Program, block: Block, instr: Instr, k: usize) -> bool {
        let data = &program.instrs[instr];
        let arrays = |place: Option<&Place>| matches!(place, Some(Place::Array(_) | Place::Relative { .. }));
        if data.dsts.iter().any(|dst| arrays(Some(&dst.place))) || data.srcs.iter().any(|src| arrays(src.place())) {
            return false;
        }
        let srcs_are = |block: Block| data.srcs.iter().all(|src| self.src_is_uniform(&src.operand, block));
        match lanes(data) {
            Lanes::Divergent => false,
            Lanes::Uniform => true,
            Lanes::UniformFirst => k == 0,
            Lanes::UniformThird => k == 2,
            Lanes::Own => srcs_are(block),
            // Other copies of the instruction do not matter.
            Lanes::Pairs => data.srcs.get(k).is_some_and(|src| self.src_is_uniform(&src.operand, block)),
            Lanes::Edge => {
                let preds = &program.blocks[block].predecessors;
                if preds.len() == 1 {
                    // Lanes that took one edge may have waited for each other after it.
                    return srcs_are(block);
                }
                let together = !self.waiting.is_point(block);
                let reads = data.srcs.iter().zip(preds);
                together && reads.into_iter().all(|(src, &pred)| self.src_is_uniform(&src.operand, pred))
            }
        }
    }

    fn src_is_uniform(&self, operand: &SrcOperand, block: Block) -> bool {
        match operand {
            SrcOperand::Const(_) | SrcOperand::ConstRelative(_) | SrcOperand::Immediate(_) | SrcOperand::Undef => true,
            // The contents of a physical register are unknown.
            SrcOperand::Place(place) => place.value().is_some_and(|value| self.is_uniform_at(value, block)),
        }
    }

    /// Returns true if lanes may diverge at the end of a block, by the facts so far.
    fn branch_diverges(&self, program: &Program, block: Block) -> bool {
        let data = &program.blocks[block];
        if data.successors().count() < 2 {
            return false;
        }
        let terminators = data.instrs.iter().rev().map(|&instr| &program.instrs[instr]);
        !terminators.take_while(|data| data.opcode.is_terminator()).all(|data| match data.opcode.info().lanes {
            Lanes::Uniform => true,
            Lanes::Own => data.srcs.iter().all(|src| self.src_is_uniform(&src.operand, block)),
            _ => false,
        })
    }
}

/// The relation of the results of an instruction in different lanes.
fn lanes(data: &InstrData) -> Lanes {
    match data.attrs {
        Attrs::Input(Some(InputKind::System(value))) if value.is_uniform() => Lanes::Uniform,
        _ => data.opcode.info().lanes,
    }
}

impl SystemValue {
    /// Returns true if all lanes of a wave have the same value: properties of a draw, a dispatch, or a workgroup.
    pub const fn is_uniform(self) -> bool {
        use SystemValue::*;
        matches!(
            self,
            WorkgroupId
                | BaseWorkgroupId
                | NumWorkgroups
                | WorkgroupSize
                | SubgroupSize
                | SubgroupId
                | SubgroupIdShift
                | WorkDim
                | BaseVertex
                | BaseInstance
                | DrawId
                | IsIndexedDraw
                | UserClipPlane(_)
                | KernelInput(_)
                | FragInvocationCount
                | FragSize(_)
                | FragOffset(_)
                | VsPrimitiveStride
                | VsVertexStride
                | HsPatchStride
                | PatchVerticesIn
                | TessParamBase
                | TessFactorBase
                | PrimitiveLocation(_)
                | Opaque(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{BlockData, Builder, Condition, RegClass, Src};

    const R: RegClass = RegClass::FULL;

    /// `count` blocks in layout order.
    fn blocks(count: usize) -> (Program, Vec<Block>) {
        let mut program = Program::default();
        let blocks: Vec<Block> = (0..count).map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.clone_from(&blocks);
        (program, blocks)
    }

    fn input(b: &mut Builder, value: SystemValue) -> Src {
        let value = b.define(Opcode::Input, R, 1, &[], Attrs::Input(Some(InputKind::System(value))));
        b.src(value)
    }

    fn branch(b: &mut Builder, x: Src) {
        let p = b.compare(Opcode::CmpsU, Condition::Lt, RegClass::PREDICATE, x, Src::immediate(3, false));
        let p = b.src(p);
        b.effect(Opcode::Br, &[p]);
    }

    /// A phi of two constants is uniform after a uniform branch only.
    #[test]
    fn a_phi_is_as_uniform_as_its_branch() {
        for (system, uniform) in [(SystemValue::WorkgroupId, true), (SystemValue::SubgroupInvocation, false)] {
            let (mut program, blocks) = blocks(4);
            for (from, slot, to) in [(0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 0, 3)] {
                program.add_edge(blocks[from], slot, blocks[to]);
            }
            let mut b = Builder::new(&mut program, blocks[0]);
            let x = input(&mut b, system);
            branch(&mut b, x);
            b.block = blocks[3];
            let phi = b.define(Opcode::Phi, R, 1, &[Src::immediate(1, false), Src::immediate(2, false)], Attrs::None);
            let y = b.src(phi);
            let sum = b.alu(Opcode::AddU, R, &[y, y]);
            let lane = b.alu(Opcode::AddU, R, &[y, x]);
            let first = b.define(Opcode::ReadFirstMacro, R, 1, &[x], Attrs::None);
            let found = Uniformity::new(&program);
            assert_eq!(found.is_uniform(phi), uniform);
            assert_eq!(found.is_uniform(sum), uniform);
            assert_eq!(found.is_uniform(lane), uniform);
            assert!(found.is_uniform(first));
            assert_eq!(found.parts_lanes(blocks[0]), !uniform);
        }
    }

    /// The counter of a loop that lanes leave one by one is uniform inside, and not after the loop.
    #[test]
    fn lanes_leave_a_loop_at_different_times() {
        for (system, uniform) in [(SystemValue::WorkgroupId, true), (SystemValue::SubgroupInvocation, false)] {
            let (mut program, blocks) = blocks(4);
            // 0 → 1; 1 → 3 | 2; 2 → 1.
            for (from, slot, to) in [(0, 0, 1), (1, 0, 3), (1, 1, 2), (2, 0, 1)] {
                program.add_edge(blocks[from], slot, blocks[to]);
            }
            let mut b = Builder::new(&mut program, blocks[0]);
            let x = input(&mut b, system);
            b.block = blocks[1];
            let i = b.define(Opcode::Phi, R, 1, &[Src::immediate(0, false)], Attrs::None);
            let i_src = b.src(i);
            let y = b.alu(Opcode::AddU, R, &[x, i_src]);
            let y = b.src(y);
            branch(&mut b, y);
            b.block = blocks[2];
            let next = b.alu(Opcode::AddU, R, &[i_src, Src::immediate(1, false)]);
            let next_src = b.src(next);
            b.block = blocks[3];
            let after = b.alu(Opcode::AddU, R, &[i_src, i_src]);
            let phi = program.values[i].instr;
            program.instrs[phi].srcs.push(next_src);
            let found = Uniformity::new(&program);
            assert!(found.is_uniform(i) && found.is_uniform(next));
            assert!(found.is_uniform_at(i, blocks[2]));
            assert_eq!(found.is_uniform_at(i, blocks[3]), uniform);
            assert_eq!(found.is_uniform(after), uniform);
        }
    }
}
