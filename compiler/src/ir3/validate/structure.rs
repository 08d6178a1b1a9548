//! Validation of control flow: blocks, edges, the order of instructions, dominance.

use super::{Checker, Operand, Rule, RuleLocation};
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::reconvergence;
use crate::ir3::validate::Form;
use crate::ir3::{Attrs, Block, BlockData, Dst, Instr, InstrData, Opcode, PhysReg, RegFile, Src, SrcOperand, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

impl Checker<'_> {
    /// Checks blocks and their lists; returns true if dominance can be computed from them.
    pub(super) fn control_flow(&mut self) -> bool {
        let program = self.program;
        let mut sound = true;
        if program.layout.is_empty() {
            self.violation(Rule::Layout, "a block", "none");
            return false;
        }
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &program.layout {
            self.place = RuleLocation { block: Some(block), ..RuleLocation::default() };
            let exists = program.blocks.get(block).is_some();
            let first = !std::mem::replace(&mut seen[block], true);
            sound &= self.require(exists, Rule::Layout, || "a block of the program".into(), || "none".into());
            sound &= self.require(
                first,
                Rule::Layout,
                || "each block once in the layout".into(),
                || "it a second time".into(),
            );
        }
        if !sound {
            return false;
        }
        let physical = program.layout.iter().any(|&block| !program.blocks[block].physical_successors.is_empty());
        for &block in &program.layout {
            self.place = RuleLocation { block: Some(block), ..RuleLocation::default() };
            sound &= self.edges(block, &seen, EdgeKind::Logical, Rule::LogicalEdges);
            sound &= self.edges(block, &seen, EdgeKind::Physical, Rule::PhysicalEdges);
            let data = &program.blocks[block];
            if let [None, Some(_)] = data.successors {
                self.violation(Rule::LogicalEdges, "a first successor before the second", "the second alone");
            }
            for successor in data.successors().filter(|_| physical) {
                self.require(
                    data.physical_successors.contains(&successor),
                    Rule::PhysicalEdges,
                    || format!("the successor {successor} as a physical one"),
                    || "it missing".into(),
                );
            }
        }
        let entry = program.entry();
        self.place = RuleLocation { block: Some(entry), ..RuleLocation::default() };
        if !program.blocks[entry].predecessors.is_empty() {
            self.violation(Rule::Layout, "an entry without predecessors", "predecessors");
        }
        self.instr_places() && sound
    }

    /// Checks one kind of edges of a block in both directions.
    fn edges(&mut self, block: Block, known: &SecondaryMap<Block, bool>, kind: EdgeKind, rule: Rule) -> bool {
        let program = self.program;
        let data = &program.blocks[block];
        let successors = |data: &BlockData| {
            let mut list: SmallVec<[Block; 4]> = Default::default();
            list.extend(kind.successors(data));
            list
        };
        let count = |list: &[Block], b: Block| list.iter().filter(|&&other| other == b).count();
        let mut sound = true;
        let mine = successors(data);
        for &successor in &mine {
            let there = known[successor]
                && count(kind.predecessors(&program.blocks[successor]), block) == count(&mine, successor);
            sound &= self.require(
                there,
                rule,
                || format!("this block among the predecessors of {successor} as often as that among its successors"),
                || "another number".into(),
            );
        }
        for &predecessor in kind.predecessors(data) {
            let there = known[predecessor]
                && count(&successors(&program.blocks[predecessor]), block)
                    == count(kind.predecessors(data), predecessor);
            sound &= self.require(
                there,
                rule,
                || format!("this block among the successors of {predecessor} as often as that among its predecessors"),
                || "another number".into(),
            );
        }
        sound
    }

    /// Each instruction occurs once, and phis, prefetches and terminators are at their places.
    fn instr_places(&mut self) -> bool {
        let program = self.program;
        let mut sound = true;
        let mut seen: SecondaryMap<Instr, bool> = map_of(program.instrs.len());
        for (position, &block) in program.layout.iter().enumerate() {
            let data = &program.blocks[block];
            self.place = RuleLocation { block: Some(block), ..RuleLocation::default() };
            let (mut phis_end, mut is_written) = (false, false);
            for &instr in &data.instrs {
                self.place.instr = Some(instr);
                let once = program.instrs.get(instr).is_some() && !std::mem::replace(&mut seen[instr], true);
                sound &= self.require(
                    once,
                    Rule::InstrOnce,
                    || "each instruction of the program in one place".into(),
                    || format!("{instr} again, or unknown"),
                );
                if !once {
                    continue;
                }
                let data = &program.instrs[instr];
                if data.opcode != Opcode::Phi {
                    phis_end = true;
                } else if phis_end {
                    self.violation(Rule::PhisFirst, "phis before other instructions", "a phi after one");
                }
                if !data.opcode.is_ready_at_start() {
                    let is_written_by = |dst: &Dst| {
                        let is_register = dst.value().is_none() && dst.place.reg() != Some(PhysReg::INVALID);
                        dst.class.file == RegFile::General && is_register
                    };
                    is_written |= data.dsts.iter().any(is_written_by);
                } else if data.opcode.is_prefetched() && is_written {
                    self.violation(Rule::PrefetchesFirst, "prefetches before writes of registers", "one after a write");
                }
            }
            self.place.instr = None;
            if sound {
                self.terminators(data);
            }
            if sound && self.form == Form::Machine {
                self.leads_on(data, program.layout.get(position + 1).copied());
            }
        }
        sound
    }

    fn terminators(&mut self, data: &BlockData) {
        use Opcode::*;
        let program = self.program;
        let opcode = |instr: Instr| program.instrs[instr].opcode;
        if self.form == Form::Machine {
            // Jumps are explicit: a terminator in the middle has a target. A block may fall through.
            for (i, &instr) in data.instrs.iter().enumerate() {
                let rest = &data.instrs[i + 1..];
                let explicit = matches!(program.instrs[instr].attrs, Attrs::Branch { target: Some(_) });
                let ends = |&other: &Instr| opcode(other).is_terminator() || opcode(other) == Nop;
                if opcode(instr).is_terminator() && !explicit && !rest.iter().all(ends) {
                    self.place.instr = Some(instr);
                    self.violation(Rule::Terminator, "nothing after a terminator without a target", "instructions");
                    self.place.instr = None;
                }
            }
            let last = data.instrs.iter().rev().map(|&instr| opcode(instr)).find(|opcode| opcode.is_terminator());
            if let (2, Some(last @ (Predt | Predf))) = (data.successors().count(), last) {
                self.predication(data, last);
            }
            return;
        }
        let last = data.instrs.last().map(|&instr| opcode(instr));
        for &instr in data.instrs.iter().rev().skip(1) {
            if opcode(instr).is_terminator() {
                self.place.instr = Some(instr);
                self.violation(Rule::Terminator, "terminators last", "an instruction after one");
                self.place.instr = None;
            }
        }
        let fits = match (data.successors().count(), last) {
            (0, Some(last)) if last.ends_program() => true,
            // An unreachable block may have no successors left.
            (0, last) => data.predecessors.is_empty() && last.is_none_or(|op| !op.is_terminator()),
            (1, Some(Jump | Predt | Predf)) => true,
            (2, Some(last)) => last.is_branch() || last.is_predication(),
            _ => false,
        };
        if !fits {
            let expected = ["`end`", "a jump", "a conditional branch"][data.successors().count().min(2)];
            let found = last.map_or("nothing".to_owned(), |op| format!("`{op}`"));
            self.violation(Rule::Terminator, format!("{expected} at the end of the block"), found);
        }
        if let (2, Some(opcode @ (Predt | Predf))) = (data.successors().count(), last) {
            self.predication(data, opcode);
        }
    }

    /// The successors that the text lists are those of the instructions: the targets of branches, and the next block of
    /// the code if the last instruction lets lanes fall through.
    fn leads_on(&mut self, data: &BlockData, next: Option<Block>) {
        use Opcode::{Jump, Predf, Predt};
        let program = self.program;
        let terminators = data.instrs.iter().map(|&instr| &program.instrs[instr]);
        let terminators: SmallVec<[&InstrData; 2]> = terminators.filter(|it| it.opcode.is_terminator()).collect();
        let successors: SmallVec<[Block; 2]> = data.successors().collect();
        let target = |instr: &&InstrData| match instr.attrs {
            Attrs::Branch { target } => target,
            _ => None,
        };
        let last = terminators.last().map(|instr| instr.opcode);
        let named = || terminators.iter().filter_map(target);
        // The requirement, and the blocks that it lists in place of `{}`: most hold, and need no text.
        let mut reached: SmallVec<[Block; 2]> = SmallVec::new();
        let (fits, expected) = if matches!(last, Some(Predt | Predf)) {
            // Lanes become inactive, and no lane jumps.
            let fits = matches!(successors.len(), 1 | 2) && named().all(|block| successors.contains(&block));
            (fits, "one or two successors of a predication, the one it names among them")
        } else if named().next().is_some() {
            reached.extend(named());
            if last.is_none_or(Opcode::falls_through) {
                reached.extend(next);
            }
            // Mesa's legalization retargets branches, and does not update the lists.
            let same = successors.iter().all(|block| reached.contains(block));
            (same, "the successors to which its branches lead, {}")
        } else {
            match last {
                Some(last) if last.ends_program() => (successors.is_empty(), "no successor after the end"),
                Some(Jump) => (successors.len() == 1, "one successor of a jump"),
                Some(last) if last.is_branch() => (successors.len() == 2, "two successors of a branch"),
                // An unreachable block may have no successors left.
                _ if successors.is_empty() => (data.predecessors.is_empty() && next.is_some(), "an end"),
                _ => {
                    reached.extend(next);
                    (successors == reached, "the next block, {}, without a jump to another")
                }
            }
        };
        if !fits {
            let listed = |blocks: &[Block]| match blocks {
                [] => "none".to_owned(),
                blocks => blocks.iter().map(|&block| self.name_of(block)).collect::<Vec<_>>().join(" and "),
            };
            let expected = expected.replace("{}", &listed(&reached));
            let found = format!("{} in the list of successors", listed(&successors));
            self.violation(Rule::Terminator, expected, found);
        }
    }

    /// If a text marks reconvergence points, it marks every block where lanes may wait for others.
    pub(super) fn reconvergence(&mut self) {
        let program = self.program;
        let is_only_physical = |block: &Block| {
            let data = &program.blocks[*block];
            data.physical_predecessors.iter().any(|from| !data.predecessors.contains(from))
        };
        let says = |block: &Block| program.blocks[*block].reconvergence_point || is_only_physical(block);
        if !program.layout.iter().any(says) {
            return;
        }
        let points = reconvergence::points(program);
        for &block in program.layout.iter().filter(|&&block| points.is_point(block)) {
            self.place = RuleLocation { block: Some(block), ..RuleLocation::default() };
            self.require(
                program.blocks[block].reconvergence_point,
                Rule::Reconvergence,
                || "`(jp)` on a block where lanes wait for those of another path".into(),
                || "none, though other blocks say where lanes reconverge".into(),
            );
        }
    }

    /// The lanes of the first arm become inactive where those of the second become active, so the arms are two
    /// consecutive blocks.
    fn predication(&mut self, data: &BlockData, opcode: Opcode) {
        let program = self.program;
        let [Some(first), Some(second)] = data.successors else { return };
        let mut following = program.layout.iter().skip_while(|&&block| Some(block) != self.place.block).skip(1);
        let in_order = following.next() == Some(&first) && following.next() == Some(&second);
        self.require(
            in_order,
            Rule::Terminator,
            || format!("the arms of `{opcode}` after it"),
            || "other blocks".into(),
        );
        let opposite = if opcode == Opcode::Predt { Opcode::Predf } else { Opcode::Predt };
        let arm = &program.blocks[first];
        let mut opcodes = arm.instrs.iter().rev().map(|&instr| program.instrs[instr].opcode);
        let last = opcodes.find(|opcode| *opcode != Opcode::Nop);
        // Where the lanes of a second arm have nothing to do, legalization ends the predication behind the first.
        let is_alone = self.form == Form::Machine && last == Some(Opcode::Prede) && arm.successors[0] == Some(second);
        self.require(
            (last == Some(opposite) || is_alone) && arm.successors[1].is_none(),
            Rule::Terminator,
            || format!("`{opposite}` at the end of its first arm"),
            || "something else".into(),
        );
        // The second arm is none if lanes come there by other ways, too.
        let arms = [first, second].map(|arm| &program.blocks[arm]);
        for arm in arms.into_iter().filter(|arm| arm.predecessors.len() == 1) {
            for &instr in &arm.instrs {
                let data = &program.instrs[instr];
                self.place.instr = Some(instr);
                self.require(
                    // Mesa makes a move of `read_first.macro` since 26.
                    data.opcode.can_be_predicated() || data.opcode == Opcode::ReadFirstMacro,
                    Rule::Form,
                    || "an instruction that can be predicated".into(),
                    || format!("{}", data.opcode),
                );
            }
        }
        self.place.instr = None;
    }

    /// Checks that definitions dominate uses. Shared registers are written whatever lanes are active, so dominance over
    /// the physical edges counts for them.
    pub(super) fn uses(&mut self) {
        let program = self.program;
        let logical = Dominators::new(program, EdgeKind::Logical);
        let has_physical = program.layout.iter().any(|&block| !program.blocks[block].physical_successors.is_empty());
        let physical = has_physical.then(|| Dominators::new(program, EdgeKind::Physical));
        let positions = Positions::of(self);
        for &block in &program.layout {
            let data = &program.blocks[block];
            if !logical.is_reachable(block) {
                continue;
            }
            for (at, &instr) in data.instrs.iter().enumerate() {
                self.place = RuleLocation { block: Some(block), instr: Some(instr), operand: None };
                let phi = program.instrs[instr].opcode == Opcode::Phi;
                let srcs = &program.instrs[instr].srcs;
                if phi && srcs.len() != data.predecessors.len() {
                    self.violation(
                        Rule::PhiSources,
                        format!("{} sources, one for each predecessor", data.predecessors.len()),
                        format!("{}", srcs.len()),
                    );
                    continue;
                }
                for (i, src) in srcs.iter().enumerate() {
                    let Some(value) = src.value() else { continue };
                    self.place.operand = Some(Operand::Src(i));
                    // A phi reads at the end of the predecessor.
                    let (block, at) = if phi { (data.predecessors[i], usize::MAX) } else { (block, at) };
                    let physical = physical.as_ref().filter(|_| src.class.file == RegFile::Shared && !phi);
                    self.use_of(value, src, block, at, &positions, physical.unwrap_or(&logical), &logical);
                }
                self.place.operand = None;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a use is its place, its value, and what is known of both")]
    fn use_of(
        &mut self,
        value: Value,
        src: &Src,
        block: Block,
        at: usize,
        positions: &Positions,
        dominators: &Dominators,
        logical: &Dominators,
    ) {
        debug_assert!(!matches!(src.operand, SrcOperand::Undef));
        let Some((def_block, def_at)) = positions.of_value(self, value) else {
            self.violation(Rule::Defined, "a value that an instruction of the code defines", format!("{value}"));
            return;
        };
        if !logical.is_reachable(block) {
            return;
        }
        let dominated = if def_block == block { def_at < at } else { dominators.dominates(def_block, block) };
        if !dominated {
            self.violation(
                Rule::Dominance,
                "a definition on every way here",
                format!("{value}, which {def_block} defines"),
            );
        }
    }
}

/// The position of each instruction.
struct Positions(SecondaryMap<Instr, Option<(Block, u32)>>);

impl Positions {
    fn of(checker: &Checker) -> Self {
        let program = checker.program;
        let mut positions = map_of(program.instrs.len());
        for &block in &program.layout {
            for (i, &instr) in program.blocks[block].instrs.iter().enumerate() {
                positions[instr] = Some((block, i as u32));
            }
        }
        Self(positions)
    }

    /// The position of a value's definition: of the instruction that its record names, if the value is one of its
    /// destinations.
    fn of_value(&self, checker: &Checker, value: Value) -> Option<(Block, usize)> {
        let instr = checker.program.values.get(value)?.instr;
        checker.program.instrs.get(instr)?.dsts.iter().find(|dst| dst.value() == Some(value))?;
        self.0[instr].map(|(block, at)| (block, at as usize))
    }
}
