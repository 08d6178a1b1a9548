//! Observers of a running program.

use super::decode::Decoder;
use super::op::ConstWidth;
use super::slots::{SlotAllocator, modifier};
use super::storage::{Loc, Read, SlotPart, Storage};
use crate::environment::memory::Memory;
use crate::interp::trace;
use crate::interp::trace::{Location, TracePoint, Watched, WatchedOperand};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{Attrs, Block, Dst, Instr, Opcode, Src, WriteMask};

/// Records the steps of one lane.
pub(super) type Recorder<'a> = trace::LaneRecorder<'a, Read>;

/// An observer of a run.
pub(super) trait Watch {
    /// Called when lanes enter the block at this position of the layout.
    fn enter(&mut self, block: usize, mask: u64);

    /// Called before a point of the program: point `n + b` precedes operation `n` of the program, which is in block `b`
    /// of the layout. So there is also a point after the last operation of a block, before its terminator.
    fn between(&mut self, point: u32, mask: u64, storage: &mut Storage, memory: &mut Memory);
}

/// Observes nothing.
impl Watch for () {
    #[inline(always)]
    fn enter(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn between(&mut self, _: u32, _: u64, _: &mut Storage, _: &mut Memory) {}
}

/// Reports each step of the wave from block to block.
pub(super) struct Steps<'a> {
    step: &'a mut dyn FnMut(usize, usize),
    /// The previous block, and the lanes that ran there last.
    from: Option<(usize, u64)>,
}

impl<'a> Steps<'a> {
    /// Calls `step` with the positions in the layout.
    pub fn new(step: &'a mut dyn FnMut(usize, usize)) -> Self {
        Self { step, from: None }
    }
}

impl Watch for Steps<'_> {
    fn enter(&mut self, block: usize, mask: u64) {
        if let Some((from, 1..)) = self.from {
            (self.step)(from, block);
        }
        self.from = Some((block, mask));
    }

    fn between(&mut self, _: u32, mask: u64, _: &mut Storage, _: &mut Memory) {
        if let Some((_, last)) = &mut self.from {
            *last = mask;
        }
    }
}

impl Watch for Recorder<'_> {
    fn enter(&mut self, block: usize, mask: u64) {
        self.enter(block as u32, mask);
    }

    fn between(&mut self, point: u32, mask: u64, storage: &mut Storage, memory: &mut Memory) {
        let lane = self.lane;
        let value = |read: Read| storage.operand(read, lane);
        self.between(point, mask, value, || memory.take_log());
    }
}

/// The location of a value, by numbers that registers have in every program.
fn location(slots: &SlotAllocator<'_>, loc: Loc) -> Location {
    let halves = match loc.part {
        SlotPart::Whole => 3,
        SlotPart::Low => 1,
        SlotPart::High => 2,
    };
    let slot = slots.canonical(loc.slot);
    Location { slot, halves, register: SlotAllocator::is_register(slot) }
}

/// The table of a program that is being decoded. Operands that are addressed indirectly are not in it.
impl Decoder<'_> {
    /// Adds an instruction whose operations begin with number `first` and end here.
    pub(super) fn watch(&mut self, instr: Instr, first: u32) {
        let last = self.here();
        self.watch_ops(instr, (first, last));
    }

    /// Adds the terminator of a block, after the block's last operation.
    pub(super) fn watch_terminator(&mut self, instr: Instr) {
        let here = self.here();
        if self.program().instrs[instr].opcode != Opcode::Jump {
            self.watch_ops(instr, (here, here));
        }
    }

    fn watch_ops(&mut self, instr: Instr, ops: (u32, u32)) {
        if !self.is_watched() {
            return;
        }
        let data = &self.program().instrs[instr];
        if matches!(data.opcode, Opcode::Nop | Opcode::Phi) {
            return;
        }
        let outputs = match &data.attrs {
            Attrs::Outputs(outputs) => outputs.iter().map(|&i| self.program().outputs.get(usize::from(i))).collect(),
            _ => Vec::new(),
        };
        let mut reads = Vec::new();
        for (i, src) in data.srcs.iter().enumerate() {
            let from = reads.len();
            self.sources(i, src, src.mask, &mut reads);
            if let Ok(modifier) = modifier(data, i) {
                reads[from..].iter_mut().for_each(|read| read.place.modifier = modifier);
            }
            if let Some(Some(output)) = outputs.get(i) {
                for read in &mut reads[from..] {
                    read.output = Some((output.base, output.component + read.component));
                }
            }
        }
        let mut writes = Vec::new();
        for (i, dst) in data.dsts.iter().enumerate() {
            self.destinations(i, dst, &mut writes);
        }
        if let Attrs::Split { offset } = data.attrs {
            // It reads one component of its source.
            reads.clear();
            for k in (0..16).filter(|&k| data.dsts.first().is_some_and(|dst| dst.mask.contains(k))) {
                self.component(0, &data.srcs[0], u32::from(offset) + k, &mut reads);
            }
        }
        let moves = matches!(data.opcode, Opcode::Collect | Opcode::ParallelCopy | Opcode::Split);
        let pairwise = moves && reads.len() == writes.len();
        self.push_watched(Watched { at: at(instr), ops, reads, writes, pairwise, phi: Vec::new() });
    }

    /// Adds the three instructions of an exchange as their first one.
    pub(super) fn watch_exchange(&mut self, instr: Instr, a: &Dst, b: &Dst, first: u32) {
        if !self.is_watched() {
            return;
        }
        let (mut to_a, mut to_b) = (Vec::new(), Vec::new());
        self.destinations(0, a, &mut to_a);
        self.destinations(1, b, &mut to_b);
        let reads = to_b.iter().chain(&to_a).copied().collect();
        let writes = to_a.iter().chain(&to_b).copied().collect();
        let ops = (first, self.here());
        self.push_watched(Watched { at: at(instr), ops, reads, writes, pairwise: true, phi: Vec::new() });
    }

    /// Adds the phis of a block.
    pub(super) fn watch_phis(&mut self, block: Block) {
        if !self.is_watched() {
            return;
        }
        let here = self.here();
        let program = self.program();
        for &instr in &program.blocks[block].instrs {
            let data = &program.instrs[instr];
            let (Opcode::Phi, Some(dst)) = (data.opcode, data.dsts.first()) else { break };
            let mut writes = Vec::new();
            self.destinations(0, dst, &mut writes);
            let mut phi = Vec::new();
            for (i, (src, &from)) in data.srcs.iter().zip(&program.blocks[block].predecessors).enumerate() {
                let mut reads = Vec::new();
                self.sources(i, src, dst.mask, &mut reads);
                phi.push((self.position(from), reads));
            }
            let ops = (here, here);
            self.push_watched(Watched { at: at(instr), ops, reads: Vec::new(), writes, pairwise: true, phi });
        }
    }

    fn sources(&mut self, i: usize, src: &Src, mask: WriteMask, out: &mut Vec<WatchedOperand<Read>>) {
        for k in mask.components() {
            self.component(i, src, k, out);
        }
    }

    fn component(&mut self, i: usize, src: &Src, component: u32, out: &mut Vec<WatchedOperand<Read>>) {
        if let Ok(loc) = self.slots().loc(src, component, ConstWidth::Truncated) {
            out.push(operand(self.slots(), i, component, loc));
        }
    }

    fn destinations(&mut self, i: usize, dst: &Dst, out: &mut Vec<WatchedOperand<Read>>) {
        for k in dst.mask.components() {
            if let Ok(write) = self.slots().write(dst, k) {
                out.push(operand(self.slots(), i, k, write.loc));
            }
        }
    }
}

fn at(instr: Instr) -> TracePoint {
    TracePoint::Instr(instr.index() as u32)
}

fn operand(slots: &SlotAllocator<'_>, operand: usize, component: u32, loc: Loc) -> WatchedOperand<Read> {
    let (operand, component) = (operand as u8, component as u8);
    WatchedOperand { operand, component, place: Read::plain(loc), location: location(slots, loc), output: None }
}
