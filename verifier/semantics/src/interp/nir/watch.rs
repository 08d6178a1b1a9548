//! Observers of a running shader.

use cranelift_entity::EntityRef;
use ir3_compiler::nir::{Alu, Block, Def, Instr, InstrData};

use super::decode::Decoder;
use super::op::{DecodedCode, DecodedOp, R};
use crate::arithmetic::rows::Row;
use crate::environment::memory::Memory;
use crate::interp::trace;
use crate::interp::trace::{Location, TracePoint, Watched, WatchedOperand};

/// Records the steps of one lane.
pub(super) type Recorder<'a> = trace::LaneRecorder<'a, R>;

/// The state of a run that an observer sees.
pub(super) struct RunView<'a> {
    pub rows: &'a [Row],
    pub poison: &'a [u64],
    pub memory: &'a mut Memory,
    pub active: u64,
}

/// An observer of a run.
pub(super) trait Watch {
    /// Called before operation `pc`.
    fn before(&mut self, pc: u32, code: &DecodedCode, view: RunView<'_>);
}

/// Observes nothing.
impl Watch for () {
    #[inline(always)]
    fn before(&mut self, _: u32, _: &DecodedCode, _: RunView<'_>) {}
}

impl Watch for Recorder<'_> {
    fn before(&mut self, pc: u32, code: &DecodedCode, RunView { rows, poison, memory, active }: RunView<'_>) {
        let lane = self.lane;
        let value = |row: R| (poison[row as usize] >> lane & 1 == 0).then(|| rows[row as usize][lane]);
        self.between(pc, active, value, || memory.take_log());
        if let DecodedOp::Block(_) = code.ops[pc as usize]
            && let Ok(block) = code.block_starts.binary_search_by_key(&pc, |&(at, _)| at)
        {
            self.enter(code.block_starts[block].1, active);
        }
    }
}

/// The table of a shader that is being decoded.
impl Decoder<'_> {
    /// Adds an instruction whose operations begin with number `first` and end here.
    pub(super) fn watch(&mut self, instr: Instr, first: u32) {
        if !self.is_watched() {
            return;
        }
        let function = self.function();
        let data = &function.instrs[instr];
        let mut reads = Vec::new();
        for output in self.outputs_since(first) {
            let (base, component, row) = output;
            reads.push(WatchedOperand { output: Some((base, component)), ..self.named_row(row, component) });
        }
        if !reads.is_empty() {
            // The places of a store's operands, not only its rows.
            if let InstrData::Intrinsic(intrinsic) = data
                && let Some(&value) = intrinsic.srcs.first()
            {
                let all = self.components_of(0, value);
                for read in &mut reads {
                    if let Some(same) = all.iter().find(|other| other.place == read.place) {
                        read.location = same.location;
                    }
                }
            }
        } else {
            match data {
                InstrData::Alu(alu) => reads = self.alu_reads(alu),
                InstrData::Phi { .. } => return,
                data => {
                    let mut number = 0;
                    data.for_each_src(|def| {
                        reads.extend(self.components_of(number, def));
                        number += 1;
                    });
                }
            }
        }
        let writes = data.def().map(|def| self.components_of(0, def)).unwrap_or_default();
        let moves = matches!(data, InstrData::Alu(alu) if alu.op.is_vec() || alu.op.name() == "mov");
        let pairwise = moves && reads.len() == writes.len();
        let ops = (first, self.point());
        let at = TracePoint::Instr(instr.index() as u32);
        self.push_watched(Watched { at, ops, reads, writes, pairwise, phi: Vec::new() });
    }

    /// Adds the phis of a block, whose rows are allocated.
    pub(super) fn watch_phis(&mut self, block: Block) {
        if !self.is_watched() {
            return;
        }
        let here = self.point();
        let function = self.function();
        for &instr in &function.blocks[block].instrs {
            let InstrData::Phi { def, srcs } = &function.instrs[instr] else { break };
            let writes = self.components_of(0, *def);
            let mut phi = Vec::new();
            for (i, (from, value)) in srcs.iter().enumerate() {
                // The places of a value that is defined later are known; by then its rows are those of the phi.
                let mut reads = self.places_of(i, *value);
                for (read, write) in reads.iter_mut().zip(&writes) {
                    read.place = write.place;
                }
                phi.push((from.index() as u32, reads));
            }
            let at = TracePoint::Instr(instr.index() as u32);
            self.push_watched(Watched { at, ops: (here, here), reads: Vec::new(), writes, pairwise: true, phi });
        }
    }

    /// Adds the condition of an if, which is the next operation.
    pub(super) fn watch_if(&mut self, condition: Def) {
        if !self.is_watched() {
            return;
        }
        let (here, reads) = (self.point(), self.components_of(0, condition));
        let at = TracePoint::If(condition.index() as u32);
        self.push_watched(Watched {
            at,
            ops: (here, here),
            reads,
            writes: Vec::new(),
            pairwise: false,
            phi: Vec::new(),
        });
    }

    fn alu_reads(&self, alu: &Alu) -> Vec<WatchedOperand<R>> {
        let info = alu.op.info();
        let components = self.function().defs[alu.def].num_components;
        let mut reads = Vec::new();
        for (number, src) in alu.srcs.iter().enumerate() {
            let all = self.components_of(number, src.def);
            let count = if alu.op.is_vec() { 1 } else { info.source_components(number, components) };
            let words = all.len() / usize::from(self.function().defs[src.def].num_components).max(1);
            for &component in &src.swizzle[..usize::from(count).min(16)] {
                let first = usize::from(component) * words;
                reads.extend(all.iter().skip(first).take(words));
            }
        }
        reads
    }

    /// The words of a value that has rows.
    fn components_of(&self, operand: usize, def: Def) -> Vec<WatchedOperand<R>> {
        let mut words = self.places_of(operand, def);
        let rows = self.rows_of(def);
        words.truncate(rows.len());
        for (word, &row) in words.iter_mut().zip(rows) {
            word.place = row;
        }
        words
    }

    /// The words of a value, without rows.
    fn places_of(&self, operand: usize, def: Def) -> Vec<WatchedOperand<R>> {
        let data = &self.function().defs[def];
        let words = u32::from(data.num_components) * if data.bit_size == 64 { 2 } else { 1 };
        let place = |word: u32| WatchedOperand {
            operand: operand as u8,
            component: word as u8,
            place: super::op::UNDEFINED,
            location: Location::whole(def.index() as u32 * 32 + word),
            output: None,
        };
        (0..words.min(32)).map(place).collect()
    }

    fn named_row(&self, row: R, component: u8) -> WatchedOperand<R> {
        WatchedOperand { operand: 0, component, place: row, location: Location::whole(u32::MAX), output: None }
    }

    /// The outputs that are stored by the operations from number `first` on: location, component, row.
    fn outputs_since(&self, first: u32) -> Vec<(u16, u8, R)> {
        let code = self.code();
        let stored = code.ops[first as usize..].iter().filter_map(|op| match op {
            DecodedOp::StoreOutput(number) => Some(&code.outputs[*number as usize]),
            _ => None,
        });
        stored.map(|output| (output.base, output.component, output.row)).collect()
    }
}
