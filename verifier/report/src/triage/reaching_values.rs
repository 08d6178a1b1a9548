//! The values that reach each operand, before and after a stage.
//!
//! Passes change programs in place, so an instruction that both sides have has the same number on both. For each of its
//! operands a forward may analysis computes the results that may reach it. Copies of all kinds (moves, phis, collects,
//! splits, parallel copies, swaps) are looked through, so the result does not depend on where a value was kept in
//! between.
//!
//! The lattice: a map from units of storage (components of SSA values; registers in units of half a register) to sets
//! of results, ordered by inclusion; the join is the union. The transfer function of a copy assigns the sets of its
//! sources, that of any other instruction assigns its own result.
//!
//! This produces no verdict: it classifies the difference of two sides that are known to differ. So it may be
//! imprecise: it ignores lanes, and skips indirect operands.

use std::collections::BTreeSet;

use ir3_compiler::ir3::dataflow::Worklist;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, Src, SrcOperand, Value,
};
use ir3_compiler::target::Target;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A value that may reach an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReachingValue {
    /// Undefined: no instruction has written the location.
    Undefined,
    /// An immediate.
    Immediate(u32),
    /// A word of the constant file.
    Const(u16),
    /// A component of a destination of an instruction.
    Result(Instr, u8, u16),
    /// Parts of two values.
    Torn,
}

/// The values that may reach a component of an operand.
pub(super) type ReachingSet = BTreeSet<ReachingValue>;

/// The reaching values of each operand of each instruction other than copies. Phis count as instructions here: as long
/// as there are phis, a wrong phi is not a wrong copy.
#[derive(Debug, Default)]
pub(super) struct Operands(FxHashMap<Instr, Vec<Vec<ReachingSet>>>);

impl Operands {
    /// The sets by source, by component; empty for operands that are not analysed.
    pub fn of(&self, instr: Instr) -> &[Vec<ReachingSet>] {
        self.0.get(&instr).map_or(&[], Vec::as_slice)
    }
}

/// The part of a value that a unit holds: the low or the high half of 32 bits, or all of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValuePart {
    Low,
    High,
    Whole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holding {
    root: ReachingValue,
    part: ValuePart,
}

/// The smallest unit of storage: half a component of a value, or a half register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Unit {
    Value(Value, u16, bool),
    Register { file: RegFile, halves: bool, number: u16 },
}

type ReachingState = FxHashMap<Unit, BTreeSet<Holding>>;

/// Returns true if an instruction is a copy.
pub(super) fn is_copy(data: &InstrData) -> bool {
    match data.opcode {
        Opcode::Phi | Opcode::Collect | Opcode::Split | Opcode::ParallelCopy | Opcode::Swz => true,
        Opcode::Mov => {
            let same = data.move_types().is_some_and(|(from, to)| from.bits() == to.bits());
            let general = |class: RegClass| matches!(class.file, RegFile::General | RegFile::Shared);
            let plain = data.srcs.iter().all(|src| src.mods.is_empty() && general(src.class));
            same && plain && data.srcs.len() == 1 && data.dsts.iter().all(|dst| general(dst.class))
        }
        _ => false,
    }
}

/// A component of a destination, and the component of a source that is copied to it.
type ComponentCopy<'a> = (&'a Dst, u16, &'a Src, u16);

/// The component copies of a copy other than a phi.
fn moves(data: &InstrData) -> SmallVec<[ComponentCopy<'_>; 4]> {
    let mut moves = SmallVec::new();
    match (data.opcode, &data.attrs, data.dsts.first(), data.srcs.first()) {
        (Opcode::Phi, ..) => {}
        (Opcode::Collect, _, Some(dst), _) => {
            moves.extend(data.srcs.iter().enumerate().map(|(k, src)| (dst, k as u16, src, 0)));
        }
        (_, Attrs::Split { offset }, Some(dst), Some(src)) => moves.push((dst, 0, src, *offset)),
        _ => {
            for (dst, src) in data.dsts.iter().zip(&data.srcs) {
                let components = dst.mask.components().map(|k| k as u16);
                moves.extend(components.map(|k| (dst, k, src, k)));
            }
        }
    }
    moves
}

/// Returns true if a copy in this block of `before` writes a register that the block of `after` does not write: the
/// analysis cannot tell the expected value of that register, but a copy to it is missing.
pub(super) fn loses_copy(before: &Program, after: &Program, block: Block, target: &Target) -> bool {
    let merged = target.merged_regs;
    let register = |unit: &Unit| matches!(unit, Unit::Register { .. });
    let instrs = |program: &'_ Program| -> Vec<Instr> {
        program.blocks.get(block).map(|data| data.instrs.clone()).unwrap_or_default()
    };
    let mut written: BTreeSet<Unit> = BTreeSet::new();
    for instr in instrs(after) {
        for dst in &after.instrs[instr].dsts {
            for k in 0..dst.mask.span() as u16 {
                written.extend(units(merged, &dst.place, dst.class, k).into_iter().map(|(unit, _)| unit));
            }
        }
    }
    let copies = instrs(before).into_iter().map(|instr| &before.instrs[instr]).filter(|data| is_copy(data));
    copies.flat_map(|data| moves(data)).any(|(dst, k, src, from)| {
        let read = src.place().map(|place| units(merged, place, src.class, from)).unwrap_or_default();
        let given = units(merged, &dst.place, dst.class, k);
        given != read && given.iter().any(|(unit, _)| register(unit) && !written.contains(unit))
    })
}

/// Analyses a program.
pub(super) fn operands(program: &Program, target: &Target) -> Operands {
    let flow = ReachingAnalysis { program, merged: target.merged_regs };
    let ends = flow.fixpoint();
    let mut operands = Operands::default();
    for &block in &program.layout {
        let Some(mut state) = flow.start(block, &ends) else { continue };
        for &instr in &program.blocks[block].instrs {
            let data = &program.instrs[instr];
            if data.opcode == Opcode::Phi {
                let read = data
                    .srcs
                    .iter()
                    .zip(&program.blocks[block].predecessors)
                    .map(|(src, pred)| ends.get(pred).map_or_else(Vec::new, |end| flow.read_all(end, src)));
                operands.0.insert(instr, read.collect());
            } else if !is_copy(data) {
                operands.0.insert(instr, data.srcs.iter().map(|src| flow.read_all(&state, src)).collect());
            }
            flow.step(instr, &mut state);
        }
    }
    operands
}

struct ReachingAnalysis<'a> {
    program: &'a Program,
    merged: bool,
}

impl ReachingAnalysis<'_> {
    /// Computes the state at the end of each reachable block.
    fn fixpoint(&self) -> FxHashMap<Block, ReachingState> {
        let mut ends: FxHashMap<Block, ReachingState> = FxHashMap::default();
        let layout = &self.program.layout;
        let positions: FxHashMap<Block, usize> = layout.iter().enumerate().map(|(at, &block)| (block, at)).collect();
        // Terminates: the sets only grow, and the number of results is finite.
        let mut worklist = Worklist::full(layout.len());
        while let Some(at) = worklist.next() {
            let block = layout[at];
            let Some(mut state) = self.start(block, &ends) else { continue };
            for &instr in &self.program.blocks[block].instrs {
                self.step(instr, &mut state);
            }
            if ends.get(&block) != Some(&state) {
                ends.insert(block, state);
                let successors = self.program.blocks[block].successors();
                successors.filter_map(|next| positions.get(&next)).for_each(|&next| worklist.add(next));
            }
        }
        ends
    }

    /// The state at the beginning of a block, after its phis.
    fn start(&self, block: Block, ends: &FxHashMap<Block, ReachingState>) -> Option<ReachingState> {
        let data = &self.program.blocks[block];
        let mut all: Option<ReachingState> = (block == self.program.entry()).then(ReachingState::default);
        for (k, pred) in data.predecessors.iter().enumerate() {
            let Some(end) = ends.get(pred) else { continue };
            let mut state = end.clone();
            let phis = data.instrs.iter().map(|&i| &self.program.instrs[i]).filter(|i| i.opcode == Opcode::Phi);
            let mut moves = Vec::new();
            for phi in phis {
                if let (Some(dst), Some(src)) = (phi.dsts.first(), phi.srcs.get(k)) {
                    for component in 0..dst.mask.span() as u16 {
                        moves.push((dst.place, dst.class, component, self.read(end, src, component)));
                    }
                }
            }
            for (place, class, component, values) in moves {
                self.copy(&mut state, &place, class, component, values.as_ref());
            }
            all = Some(match all {
                None => state,
                Some(all) => join(all, &state),
            });
        }
        all
    }

    fn step(&self, instr: Instr, state: &mut ReachingState) {
        let data = &self.program.instrs[instr];
        if data.opcode == Opcode::Phi {
            return;
        }
        if !is_copy(data) {
            for (n, dst) in data.dsts.iter().enumerate() {
                for component in dst.mask.components().map(|k| k as u16) {
                    let root = ReachingValue::Result(instr, n as u8, component);
                    self.write(state, &dst.place, dst.class, component, root);
                }
            }
            return;
        }
        // All sources are read before a destination is written.
        let moves = moves(data).into_iter().map(|(dst, k, src, from)| (dst, k, self.read(state, src, from)));
        let moves: SmallVec<[_; 4]> = moves.collect();
        for (dst, component, values) in moves {
            self.copy(state, &dst.place, dst.class, component, values.as_ref());
        }
    }

    fn write(&self, state: &mut ReachingState, place: &Place, class: RegClass, component: u16, root: ReachingValue) {
        for (unit, part) in units(self.merged, place, class, component) {
            state.insert(unit, BTreeSet::from([Holding { root, part }]));
        }
    }

    fn copy(
        &self,
        state: &mut ReachingState,
        place: &Place,
        class: RegClass,
        component: u16,
        values: Option<&ReachingSet>,
    ) {
        for (unit, part) in units(self.merged, place, class, component) {
            match values {
                Some(values) => {
                    state.insert(unit, values.iter().map(|&root| Holding { root, part }).collect());
                }
                None => _ = state.remove(&unit),
            }
        }
    }

    fn read_all(&self, state: &ReachingState, src: &Src) -> Vec<ReachingSet> {
        let components = 0..src.mask.span().max(1) as u16;
        components.map_while(|component| self.read(state, src, component)).collect()
    }

    /// The values that may reach a component of a source; `None` if the operand is not analysed.
    fn read(&self, state: &ReachingState, src: &Src, component: u16) -> Option<ReachingSet> {
        let one = |root| Some(ReachingSet::from([root]));
        let place = match &src.operand {
            SrcOperand::Immediate(bits) => return one(ReachingValue::Immediate(*bits)),
            SrcOperand::Const(word) => return one(ReachingValue::Const(word + component)),
            SrcOperand::Undef => return one(ReachingValue::Undefined),
            SrcOperand::ConstRelative(_) => return None,
            SrcOperand::Place(place) => place,
        };
        let units = units(self.merged, place, src.class, component);
        let nothing = BTreeSet::from([Holding { root: ReachingValue::Undefined, part: ValuePart::Whole }]);
        let held = |unit: &Unit| state.get(unit).unwrap_or(&nothing);
        match &units[..] {
            [] => None,
            [(unit, _)] => Some(held(unit).iter().map(|holding| value_of(holding, ValuePart::Whole)).collect()),
            [(low, _), (high, _), ..] => {
                let (low, high) = (held(low), held(high));
                let other = |holding: &Holding, part| Holding { part, root: holding.root };
                let mut all = ReachingSet::new();
                for holding in low {
                    let torn =
                        holding.root != ReachingValue::Undefined && !high.contains(&other(holding, ValuePart::High));
                    all.insert(if torn { ReachingValue::Torn } else { value_of(holding, ValuePart::Low) });
                }
                for holding in high {
                    if holding.root != ReachingValue::Undefined && !low.contains(&other(holding, ValuePart::Low)) {
                        all.insert(ReachingValue::Torn);
                    }
                }
                Some(all)
            }
        }
    }
}

/// The units of a component of a place, with the part that each holds; none for indirect places.
fn units(merged: bool, place: &Place, class: RegClass, component: u16) -> SmallVec<[(Unit, ValuePart); 2]> {
    let parts: &[ValuePart] = if class.half || class.file == RegFile::Predicate {
        &[ValuePart::Whole]
    } else {
        &[ValuePart::Low, ValuePart::High]
    };
    let unit = |part: ValuePart| match *place {
        Place::Value(value) | Place::Assigned(value, _) => Some(Unit::Value(value, component, part == ValuePart::High)),
        Place::Reg(reg) => {
            let number = reg.0 + component;
            // In a merged register file a full register is two half registers.
            let halves = class.half && !merged;
            let number = match part {
                ValuePart::Whole => number,
                ValuePart::Low => number * 2,
                ValuePart::High => number * 2 + 1,
            };
            Some(Unit::Register { file: class.file, halves, number })
        }
        Place::Array(_) | Place::Relative { .. } => None,
    };
    parts.iter().filter_map(|&part| Some((unit(part)?, part))).collect()
}

/// The value that a unit holds, if it is the part that is read; otherwise parts of two values.
fn value_of(holding: &Holding, part: ValuePart) -> ReachingValue {
    let fits = holding.part == part || holding.root == ReachingValue::Undefined;
    if fits { holding.root } else { ReachingValue::Torn }
}

/// The join of two states.
fn join(mut a: ReachingState, b: &ReachingState) -> ReachingState {
    let nothing = Holding { root: ReachingValue::Undefined, part: ValuePart::Whole };
    for (unit, set) in &mut a {
        match b.get(unit) {
            Some(other) => set.extend(other),
            None => _ = set.insert(nothing),
        }
    }
    for (unit, set) in b {
        a.entry(*unit).or_insert_with(|| {
            let mut set = set.clone();
            set.insert(nothing);
            set
        });
    }
    a
}
