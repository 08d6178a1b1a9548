//! What an instruction is given in front of a stage and behind it.
//!
//! Passes change programs in place, so an instruction that is there on both sides has one number on both. For each of
//! its operands this room asks: which results may it hold? Copies of all kinds (moves, phis, collects, splits, parallel
//! copies, swaps) are looked through, so the answer does not depend on where a value was kept on the way. It is forward
//! dataflow over the places of a program (components of SSA values; registers in units of half a register), with the set
//! of results that a place may hold; where paths meet, the sets are united.
//!
//! This decides no verdict: it says in which respect two sides differ that are known to differ. So it may be coarse: it
//! knows nothing of lanes, and skips operands that are indirect.

use std::collections::BTreeSet;

use ir3_compiler::ir3::dataflow::Worklist;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, Src, SrcOperand, Value,
};
use ir3_compiler::target::Target;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What an operand may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    /// Nothing: nobody has written the place.
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

/// All that an operand's component may hold.
pub(super) type Contents = BTreeSet<Root>;

/// What each operand of each instruction that is no copy may hold. Phis count as instructions here: a wrong phi is no
/// wrong copy as long as there are phis.
#[derive(Debug, Default)]
pub(super) struct Operands(FxHashMap<Instr, Vec<Vec<Contents>>>);

impl Operands {
    /// By source, by component; nothing where the operand is not understood.
    pub fn of(&self, instr: Instr) -> &[Vec<Contents>] {
        self.0.get(&instr).map_or(&[], Vec::as_slice)
    }
}

/// Which part of a value a unit holds: the low or the high half of 32 bits, or all of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Low,
    High,
    Whole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holding {
    root: Root,
    part: Part,
}

/// The least thing that is written: half a component of a value, or a half register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Unit {
    Value(Value, u16, bool),
    Register { file: RegFile, halves: bool, number: u16 },
}

type State = FxHashMap<Unit, BTreeSet<Holding>>;

/// Whether an instruction only moves values about.
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

/// A component of a destination, and the component of a source that goes there.
type Move<'a> = (&'a Dst, u16, &'a Src, u16);

/// What an instruction moves that is a copy but no phi.
fn moves(data: &InstrData) -> SmallVec<[Move<'_>; 4]> {
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

/// Whether `after` leaves out a register that a copy in this block of `before` gives something else than it has: its
/// number says nothing of what the register should hold, but a copy there must be.
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

/// Goes through a program.
pub(super) fn operands(program: &Program, target: &Target) -> Operands {
    let flow = Flow { program, merged: target.merged_regs };
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

struct Flow<'a> {
    program: &'a Program,
    merged: bool,
}

impl Flow<'_> {
    /// The state at the end of each block that is reached.
    fn fixpoint(&self) -> FxHashMap<Block, State> {
        let mut ends: FxHashMap<Block, State> = FxHashMap::default();
        let layout = &self.program.layout;
        let positions: FxHashMap<Block, usize> = layout.iter().enumerate().map(|(at, &block)| (block, at)).collect();
        // The sets only grow, and there are as many results as instructions.
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

    /// The state at the beginning of a block, with its phis done.
    fn start(&self, block: Block, ends: &FxHashMap<Block, State>) -> Option<State> {
        let data = &self.program.blocks[block];
        let mut all: Option<State> = (block == self.program.entry()).then(State::default);
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
            for (place, class, component, contents) in moves {
                self.copy(&mut state, &place, class, component, contents.as_ref());
            }
            all = Some(match all {
                None => state,
                Some(all) => unite(all, &state),
            });
        }
        all
    }

    fn step(&self, instr: Instr, state: &mut State) {
        let data = &self.program.instrs[instr];
        if data.opcode == Opcode::Phi {
            return;
        }
        if !is_copy(data) {
            for (n, dst) in data.dsts.iter().enumerate() {
                for component in dst.mask.components().map(|k| k as u16) {
                    let root = Root::Result(instr, n as u8, component);
                    self.write(state, &dst.place, dst.class, component, root);
                }
            }
            return;
        }
        // All are read before one is written.
        let moves = moves(data).into_iter().map(|(dst, k, src, from)| (dst, k, self.read(state, src, from)));
        let moves: SmallVec<[_; 4]> = moves.collect();
        for (dst, component, contents) in moves {
            self.copy(state, &dst.place, dst.class, component, contents.as_ref());
        }
    }

    fn write(&self, state: &mut State, place: &Place, class: RegClass, component: u16, root: Root) {
        for (unit, part) in units(self.merged, place, class, component) {
            state.insert(unit, BTreeSet::from([Holding { root, part }]));
        }
    }

    fn copy(&self, state: &mut State, place: &Place, class: RegClass, component: u16, contents: Option<&Contents>) {
        for (unit, part) in units(self.merged, place, class, component) {
            match contents {
                Some(contents) => {
                    state.insert(unit, contents.iter().map(|&root| Holding { root, part }).collect());
                }
                None => _ = state.remove(&unit),
            }
        }
    }

    fn read_all(&self, state: &State, src: &Src) -> Vec<Contents> {
        let components = 0..src.mask.span().max(1) as u16;
        components.map_while(|component| self.read(state, src, component)).collect()
    }

    /// What a component of a source may hold; `None` where the operand is not understood.
    fn read(&self, state: &State, src: &Src, component: u16) -> Option<Contents> {
        let one = |root| Some(Contents::from([root]));
        let place = match &src.operand {
            SrcOperand::Immediate(bits) => return one(Root::Immediate(*bits)),
            SrcOperand::Const(word) => return one(Root::Const(word + component)),
            SrcOperand::Undef => return one(Root::Undefined),
            SrcOperand::ConstRelative(_) => return None,
            SrcOperand::Place(place) => place,
        };
        let units = units(self.merged, place, src.class, component);
        let nothing = BTreeSet::from([Holding { root: Root::Undefined, part: Part::Whole }]);
        let held = |unit: &Unit| state.get(unit).unwrap_or(&nothing);
        match &units[..] {
            [] => None,
            [(unit, _)] => Some(held(unit).iter().map(|holding| whole(holding, Part::Whole)).collect()),
            [(low, _), (high, _), ..] => {
                let (low, high) = (held(low), held(high));
                let other = |holding: &Holding, part| Holding { part, root: holding.root };
                let mut all = Contents::new();
                for holding in low {
                    let torn = holding.root != Root::Undefined && !high.contains(&other(holding, Part::High));
                    all.insert(if torn { Root::Torn } else { whole(holding, Part::Low) });
                }
                for holding in high {
                    if holding.root != Root::Undefined && !low.contains(&other(holding, Part::Low)) {
                        all.insert(Root::Torn);
                    }
                }
                Some(all)
            }
        }
    }
}

/// The units of a component of a place, with the part that each holds; none where the place is indirect.
fn units(merged: bool, place: &Place, class: RegClass, component: u16) -> SmallVec<[(Unit, Part); 2]> {
    let parts: &[Part] =
        if class.half || class.file == RegFile::Predicate { &[Part::Whole] } else { &[Part::Low, Part::High] };
    let unit = |part: Part| match *place {
        Place::Value(value) | Place::Assigned(value, _) => Some(Unit::Value(value, component, part == Part::High)),
        Place::Reg(reg) => {
            let number = reg.0 + component;
            // Where the file is one, a full register is two half registers.
            let halves = class.half && !merged;
            let number = match part {
                Part::Whole => number,
                Part::Low => number * 2,
                Part::High => number * 2 + 1,
            };
            Some(Unit::Register { file: class.file, halves, number })
        }
        Place::Array(_) | Place::Relative { .. } => None,
    };
    parts.iter().filter_map(|&part| Some((unit(part)?, part))).collect()
}

/// What a unit holds, if it is the part that is read.
fn whole(holding: &Holding, part: Part) -> Root {
    let fits = holding.part == part || holding.root == Root::Undefined;
    if fits { holding.root } else { Root::Torn }
}

/// What may be where two paths meet.
fn unite(mut a: State, b: &State) -> State {
    let nothing = Holding { root: Root::Undefined, part: Part::Whole };
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
