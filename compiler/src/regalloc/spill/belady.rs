//! Chooses the values in registers at each point, after Braun and Hack ("Register Spilling and Live-Range Splitting for
//! SSA-Form Programs").
//!
//! One pass over the blocks keeps `W`, the values in registers. An operand that is not in `W` is reloaded; if there are
//! too many, the one with the furthest next use is evicted. Eviction costs nothing here, since a value that is ever
//! reloaded is stored at its definition. Operands cannot be evicted before they are read, results not before they are
//! written.
//!
//! At the start of a block, `W` is
//! - after one predecessor: the set at its end;
//! - at a join: the values that all predecessors have, then those that some have, nearest uses first, while there is
//!   registers are free;
//! - at a loop header: the values that the loop uses, nearest first; then those that are live through it, if all
//!   predecessors have them and the loop leaves registers.
//!
//! Values that are missing at the end of a predecessor are reloaded there. A phi that is not in `W` is a memory phi: it
//! shares its slot with its sources, each of which is stored there.

use super::super::next_use::{LOOP_EXIT, NEVER, NextUse};
use super::pressure_units::{Capacity, Fixed, Units, early_results, is_vector, operands, results};
use super::scalars::{general_result, general_value};
use crate::ir3::loops::Loops;
use crate::ir3::{Attrs, Block, Instr, InstrData, Opcode, OperandFlags, Program, SrcOperand, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// The plan for a block.
#[derive(Clone, Debug, Default)]
pub struct BlockPlan {
    /// Values in registers at the start, phis included; sorted.
    pub entry: Vec<Value>,
    /// Values in registers at the end.
    pub exit: Vec<Value>,
    /// Reloads, with the position of the instruction that each precedes.
    pub reloads: Vec<(u32, Value)>,
    /// Reloads at the end, for the successor.
    pub last: Vec<Value>,
}

/// The plan for a program.
pub struct Plan {
    /// The plan for each block.
    pub blocks: SecondaryMap<Block, BlockPlan>,
    /// True for values that are spilled.
    pub memory: SecondaryMap<Value, bool>,
    /// True for values that are rematerialised instead.
    pub rematerializable: SecondaryMap<Value, bool>,
    /// True for phis whose value is in memory from the start.
    pub memory_phis: SecondaryMap<Value, bool>,
}

/// The values that can be rematerialised at any point, at the cost of a reload.
pub fn rematerializable(program: &Program) -> SecondaryMap<Value, bool> {
    // If the program writes the constant file, a constant may change.
    let consts_change = program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode.writes_consts());
    let mut table = map_of(program.values.len());
    for value in program.values.keys() {
        table[value] = is_fixed_move(program, value, !consts_change);
    }
    table
}

fn is_fixed_move(program: &Program, value: Value, consts: bool) -> bool {
    let data = &program.instrs[program.values[value].instr];
    if matches!(data.srcs[..], [ref src] if matches!(src.operand, SrcOperand::Const(_)) && !consts) {
        return false;
    }
    let is_fixed =
        matches!(data.srcs[..], [ref src] if matches!(src.operand, SrcOperand::Immediate(_) | SrcOperand::Const(_)));
    let moves = match (data.opcode, &data.attrs) {
        (Opcode::ParallelCopy, _) => data.dsts.len() == 1,
        (Opcode::Mov, Attrs::Move { .. }) => data.dsts.len() == 1 && data.repeat == 0,
        _ => false,
    };
    moves && is_fixed && program.values[value].components == 1
}

/// Computes the plan. `fixed` is the need of live arrays and of the base register.
pub fn run(
    program: &Program,
    order: &[Block],
    loops: &Loops,
    next: &NextUse,
    capacity: Capacity,
    fixed: &Fixed,
) -> Plan {
    let mut walk = PressureLimiter {
        program,
        next,
        loops,
        capacity,
        fixed,
        fixed_here: Units::default(),
        sums: Units::default(),
        inside: Vec::new(),
        is_inside: map_of(program.values.len()),
        uses: map_of(program.values.len()),
        beyond: map_of(program.values.len()),
        position: 0,
        visited: map_of(program.blocks.len()),
        through: loop_room(program, order, loops, next, capacity, fixed),
        plan: Plan {
            blocks: map_of(program.blocks.len()),
            memory: map_of(program.values.len()),
            rematerializable: rematerializable(program),
            memory_phis: map_of(program.values.len()),
        },
    };
    for &block in order {
        walk.enter(block);
        walk.run_block(block);
        walk.visited[block] = true;
    }
    order.iter().for_each(|&block| walk.couple(block));
    walk.spread();
    walk.plan
}

struct PressureLimiter<'a> {
    /// The units that are not available for values.
    fixed: &'a Fixed,
    /// The units that are not available for values at the current point.
    fixed_here: Units,
    program: &'a Program,
    next: &'a NextUse,
    loops: &'a Loops,
    capacity: Capacity,
    /// Units of the values in registers.
    sums: Units,
    /// The values in registers.
    inside: Vec<Value>,
    is_inside: SecondaryMap<Value, bool>,
    /// Positions of the remaining uses of each value in this block, the next one last.
    uses: SecondaryMap<Value, SmallVec<[u32; 2]>>,
    /// Distance of the next use after the block, counted from its start; 0 if there is no use.
    beyond: SecondaryMap<Value, u32>,
    position: u32,
    visited: SecondaryMap<Block, bool>,
    /// For each loop, the units available for values that are live through it.
    through: Vec<Units>,
    plan: Plan,
}

/// The units that each loop leaves: the limit minus the maximum need for the values that the loop uses.
fn loop_room(
    program: &Program,
    order: &[Block],
    loops: &Loops,
    next: &NextUse,
    capacity: Capacity,
    fixed: &Fixed,
) -> Vec<Units> {
    let mut most = vec![Units::default(); loops.count()];
    if most.is_empty() {
        return most;
    }
    let mut live: SecondaryMap<Value, bool> = map_of(program.values.len());
    for &block in order.iter().filter(|&&block| loops.around(block).next().is_some()) {
        let mut now = Units::default();
        let mut members = Vec::new();
        for &(value, distance) in &next.end[block] {
            if distance < LOOP_EXIT {
                live[value] = true;
                members.push(value);
                now += Units::of(program, value);
            }
        }
        let mut max = now + fixed.at_start(block);
        for &instr in program.blocks[block].instrs.iter().rev() {
            let fixed = fixed.at_instr(instr);
            let data = &program.instrs[instr];
            for value in results(data) {
                if std::mem::replace(&mut live[value], false) {
                    now -= Units::of(program, value);
                }
            }
            if data.opcode != Opcode::Phi {
                for value in operands(data) {
                    if !std::mem::replace(&mut live[value], true) {
                        members.push(value);
                        now += Units::of(program, value);
                    }
                }
            }
            let now = now + fixed;
            max = Units { full: max.full.max(now.full), half: max.half.max(now.half) };
        }
        members.into_iter().for_each(|value| live[value] = false);
        for number in loops.around(block) {
            most[number] = Units { full: most[number].full.max(max.full), half: most[number].half.max(max.half) };
        }
    }
    let left = |most: Units| {
        let (full, half) = Capacity::demand(most, capacity.merged);
        Units { full: capacity.full.saturating_sub(full), half: capacity.half.saturating_sub(half) }
    };
    most.into_iter().map(left).collect()
}

impl PressureLimiter<'_> {
    fn units(&self, value: Value) -> Units {
        Units::of(self.program, value)
    }

    fn insert(&mut self, value: Value) {
        if !std::mem::replace(&mut self.is_inside[value], true) {
            self.sums += self.units(value);
            self.inside.push(value);
        }
    }

    fn remove(&mut self, value: Value) {
        if std::mem::replace(&mut self.is_inside[value], false) {
            self.sums -= self.units(value);
            if let Some(at) = self.inside.iter().position(|&other| other == value) {
                self.inside.swap_remove(at);
            }
        }
    }

    fn clear(&mut self) {
        for value in self.inside.drain(..) {
            self.is_inside[value] = false;
        }
        self.sums = Units::default();
    }

    /// Position of the next use, from the start of the block.
    fn next_use(&self, value: Value) -> u32 {
        match (self.uses[value].last(), self.beyond[value]) {
            (Some(&position), _) => position,
            (None, 0) => NEVER,
            (None, beyond) => beyond,
        }
    }

    /// Collects the uses of values in the block and after it.
    fn prepare(&mut self, block: Block) {
        let instrs = &self.program.blocks[block].instrs;
        let length = instrs.len() as u32;
        for &(value, distance) in &self.next.end[block] {
            self.beyond[value] = (distance.saturating_add(length)).clamp(1, NEVER - 1);
        }
        for (position, &instr) in instrs.iter().enumerate().rev() {
            let data = &self.program.instrs[instr];
            if data.opcode == Opcode::Phi {
                break;
            }
            for value in operands(data) {
                self.uses[value].push(position as u32);
            }
        }
    }

    fn finish(&mut self, block: Block) {
        for &(value, _) in &self.next.end[block] {
            self.beyond[value] = 0;
        }
        let mut exit = self.inside.clone();
        exit.sort_unstable();
        self.plan.blocks[block].exit = exit;
    }

    fn phis(&self, block: Block) -> impl Iterator<Item = (Value, &InstrData)> + '_ {
        let program = self.program;
        let data = program.blocks[block].instrs.iter().map(move |&instr| &program.instrs[instr]);
        let phis = data.take_while(|data| data.opcode == Opcode::Phi);
        phis.filter_map(|data| Some((general_result(data.dsts.first()?)?, data)))
    }

    /// Chooses the values in registers at the start of a block.
    fn enter(&mut self, block: Block) {
        self.clear();
        self.fixed_here = self.fixed.at_start(block);
        self.prepare(block);
        let predecessors = &self.program.blocks[block].predecessors;
        if let [pred] = predecessors[..] {
            let exit = std::mem::take(&mut self.plan.blocks[pred].exit);
            for &(value, _) in &self.next.start[block] {
                if exit.binary_search(&value).is_ok() {
                    self.insert(value);
                }
            }
            self.plan.blocks[pred].exit = exit;
        } else {
            self.enter_join(block);
        }
        let mut entry = self.inside.clone();
        entry.sort_unstable();
        self.plan.blocks[block].entry = entry;
    }

    fn enter_join(&mut self, block: Block) {
        // Values with the number of predecessors that miss them, and the distance.
        let predecessors = &self.program.blocks[block].predecessors;
        let visited: SmallVec<[usize; 4]> =
            (0..predecessors.len()).filter(|&k| self.visited[predecessors[k]]).collect();
        let at_end = |value: Value, k: usize| self.plan.blocks[predecessors[k]].exit.binary_search(&value).is_ok();
        let mut candidates: Vec<(u32, u32, Value)> = Vec::new();
        for (phi, data) in self.phis(block) {
            let distance = self.next_use(phi);
            let has = |&&k: &&usize| data.srcs.get(k).and_then(general_value).is_none_or(|value| at_end(value, k));
            let missing = visited.len() - visited.iter().filter(has).count();
            if distance != NEVER {
                candidates.push((missing as u32, distance, phi));
            }
        }
        for &(value, distance) in &self.next.start[block] {
            let missing = visited.iter().filter(|&&k| !at_end(value, k)).count();
            candidates.push((missing as u32, distance, value));
        }
        let some = visited.len() as u32;
        let is_open = visited.len() < predecessors.len();
        let mut through = Units::default();
        if is_open {
            // Values that the loop uses come first, even if they are not available in all predecessors.
            candidates
                .sort_unstable_by_key(|&(missing, distance, value)| (distance >= LOOP_EXIT, distance, missing, value));
            if let Some(number) = self.loops.headed_by(block) {
                through = self.through[number];
            }
        } else {
            candidates.sort_unstable_by_key(|&(missing, distance, value)| (missing.min(1), distance, value));
        }
        for (missing, distance, value) in candidates {
            let units = self.units(value);
            if is_open && distance >= LOOP_EXIT {
                let (full, half) = Capacity::demand(units, self.capacity.merged);
                if missing > 0 || full > through.full || half > through.half {
                    continue;
                }
                through = Units { full: through.full - full, half: through.half - half };
            } else if missing == some && (!is_open || some == 0) {
                continue;
            }
            if self.capacity.fits(self.sums + units + self.fixed_here) {
                self.insert(value);
            }
        }
        for phi in self.phis(block).map(|(phi, _)| phi).collect::<SmallVec<[_; 8]>>() {
            if !self.is_inside[phi] && self.next_use(phi) != NEVER {
                self.plan.memory_phis[phi] = true;
            }
        }
    }

    fn run_block(&mut self, block: Block) {
        let program = self.program;
        let instrs = &program.blocks[block].instrs;
        let mut inputs = false;
        for (position, &instr) in instrs.iter().enumerate() {
            self.position = position as u32;
            let data = &program.instrs[instr];
            match data.opcode {
                Opcode::Phi => {}
                // All inputs are live simultaneously.
                Opcode::Input => {
                    inputs = true;
                    results(data).for_each(|value| self.insert(value));
                }
                _ => {
                    if std::mem::take(&mut inputs) {
                        self.drop_unused();
                    }
                    self.step(block, instr);
                }
            }
        }
        self.finish(block);
    }

    fn drop_unused(&mut self) {
        let unused: SmallVec<[Value; 8]> = self.inside.iter().copied().filter(|&v| self.next_use(v) == NEVER).collect();
        unused.into_iter().for_each(|value| self.remove(value));
    }

    fn step(&mut self, block: Block, instr: Instr) {
        let data = &self.program.instrs[instr];
        self.fixed_here = self.fixed.at_instr(instr);
        let reads = operands(data);
        for &value in &reads {
            if !self.is_inside[value] {
                self.plan.blocks[block].reloads.push((self.position, value));
                self.reloaded(value);
                self.insert(value);
            }
        }
        let early: Units = early_results(data).fold(Units::default(), |sum, value| sum + self.units(value));
        // A result that is tied to a vector with a live part may need separate registers.
        let tied = data.dsts.iter().filter(|dst| dst.flags.contains(OperandFlags::TIED)).filter_map(general_result);
        let tied: Units = tied.fold(Units::default(), |sum, value| sum + self.units(value));
        self.limit(&reads, |_| early);
        if tied != Units::default() && self.ghosts(&reads) != Units::default() {
            self.limit(&reads, |walk| if walk.ghosts(&reads) == Units::default() { early } else { early + tied });
        }
        for &value in &reads {
            let uses = &mut self.uses[value];
            while uses.last() == Some(&self.position) {
                uses.pop();
            }
        }
        let is_copy = data.opcode.is_copy();
        let dying: SmallVec<[Value; 8]> = reads.iter().copied().filter(|&v| self.next_use(v) == NEVER).collect();
        let dying_vectors: SmallVec<[Value; 4]> =
            dying.iter().copied().filter(|&v| !is_copy && is_vector(self.program, v)).collect();
        dying.iter().for_each(|&value| self.remove(value));
        let writes: SmallVec<[Value; 4]> = results(data).collect();
        writes.iter().for_each(|&value| self.insert(value));
        // If a vector is split, its parts are live while the vector is.
        if data.opcode != Opcode::Split || !dying.is_empty() {
            self.limit(&writes, |walk| walk.ghosts(&dying_vectors));
        }
        for &value in &writes {
            if self.next_use(value) == NEVER {
                self.remove(value);
            }
        }
    }

    /// Units that vectors occupy after their death, beyond those of their live parts.
    fn ghosts(&self, dying: &[Value]) -> Units {
        let mut sum = Units::default();
        for &vector in dying {
            let collect = &self.program.instrs[self.program.values[vector].instr];
            if collect.opcode != Opcode::Collect {
                continue;
            }
            let parts = operands(collect);
            let alive = |part: &&Value| self.is_inside[**part] && self.next_use(**part) != NEVER;
            let living = parts.iter().filter(alive).fold(Units::default(), |sum, &part| sum + self.units(part));
            if living != Units::default() {
                let mut all = self.units(vector);
                all.full = all.full.saturating_sub(living.full);
                all.half = all.half.saturating_sub(living.half);
                sum += all;
            }
        }
        sum
    }

    /// Evicts values with the furthest uses until the rest fits, if possible; `pinned` values and vectors stay.
    fn limit(&mut self, pinned: &[Value], more: impl Fn(&Self) -> Units) {
        loop {
            let needed = self.sums + more(self) + self.fixed_here;
            if self.capacity.fits(needed) {
                return;
            }
            let (full, half) = Capacity::demand(needed, self.capacity.merged);
            // If only one of the files is full, only its values help.
            let (any, only_half) = (full > self.capacity.full, half > self.capacity.half);
            let can_leave = |&&value: &&Value| {
                let is_half = self.program.values[value].class.half;
                !is_vector(self.program, value)
                    && !pinned.contains(&value)
                    && (is_half && only_half || any && (!is_half || self.capacity.merged))
            };
            let victim =
                self.inside.iter().filter(can_leave).copied().max_by_key(|&value| (self.next_use(value), value));
            match victim {
                Some(victim) => self.remove(victim),
                None => return,
            }
        }
    }

    /// Marks a value as reloaded or rematerialised.
    fn reloaded(&mut self, value: Value) {
        if !self.plan.rematerializable[value] {
            self.plan.memory[value] = true;
        }
    }

    /// Plans reloads at the ends of the predecessors for the values that a join has in registers.
    fn couple(&mut self, block: Block) {
        let predecessors = &self.program.blocks[block].predecessors;
        if predecessors.len() < 2 {
            return;
        }
        let entry = std::mem::take(&mut self.plan.blocks[block].entry);
        for (k, &pred) in predecessors.iter().enumerate() {
            for &value in &entry {
                // The block's own phis are not live into it.
                let source = match self.next.start[block].binary_search_by_key(&value, |&(value, _)| value) {
                    Ok(_) => Some(value),
                    Err(_) => {
                        let phi = &self.program.instrs[self.program.values[value].instr];
                        phi.srcs.get(k).and_then(general_value)
                    }
                };
                let Some(source) = source else { continue };
                let plan = &mut self.plan.blocks[pred];
                if plan.exit.binary_search(&source).is_err() && !plan.last.contains(&source) {
                    plan.last.push(source);
                    self.reloaded(source);
                }
            }
        }
        self.plan.blocks[block].entry = entry;
    }

    /// Marks values that are stored to the slot of a memory phi as in memory, too.
    fn spread(&mut self) {
        let phis: Vec<Value> = self.program.values.keys().filter(|&value| self.plan.memory_phis[value]).collect();
        for phi in phis {
            self.plan.memory[phi] = true;
            let data = &self.program.instrs[self.program.values[phi].instr];
            for source in data.srcs.iter().filter_map(general_value) {
                self.plan.memory[source] = true;
            }
        }
    }
}
