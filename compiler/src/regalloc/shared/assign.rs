//! Linear assignment of shared registers in one pass over the blocks: each definition gets the first gap, or values
//! (victims) are chosen for spilling.
//!
//! A definition is live only where its block dominates, so it only has to avoid the registers that are taken when the
//! pass reaches it. That holds along physical edges for values whose definition dominates along them; a value that is
//! live into the first block does not satisfy it, and is a victim at once.

use super::super::{Error, order};
use super::elements::{Elements, split_of};
use super::liveness::Liveness;
use crate::ir3::{Block, Instr, InstrData, Opcode, OperandFlags, Program, RegFile, SrcOperand, Value};
use crate::maps::map_of;
use crate::target::RegisterFiles;
use cranelift_entity::SecondaryMap;

/// The result of the pass.
pub enum SharedAssignment {
    /// The first unit (half register) of each component; `None` for components that are not used.
    Placed(Vec<Option<u8>>),
    /// The values that must be spilled before the next pass.
    Victims(Vec<Value>),
}

/// Values that must not be chosen for spilling, because spilling inserted them: copies that serve a single instruction.
/// A reload for a phi maps to the phi, which is spilled if the reload gets no register.
pub type Kept = SecondaryMap<Value, Option<Option<Value>>>;

struct SharedAssigner<'a> {
    program: &'a Program,
    elements: &'a Elements,
    liveness: &'a Liveness,
    limits: RegisterFiles,
    kept: &'a Kept,
    units: Vec<Option<u8>>,
    /// The component in each unit.
    taken: [Option<u32>; 64],
    victims: Vec<Value>,
    is_victim: SecondaryMap<Value, bool>,
    /// The cost of spilling each value.
    cost: SecondaryMap<Value, u32>,
    /// The phi that reads a value.
    phi_of: SecondaryMap<Value, Option<Value>>,
}

/// Places every shared value.
///
/// # Errors
/// If the program is malformed.
pub fn run(
    program: &Program,
    accesses: &[(Block, Instr)],
    elements: &Elements,
    liveness: &Liveness,
    limits: RegisterFiles,
    kept: &Kept,
) -> Result<SharedAssignment, Error> {
    let mut walk = SharedAssigner {
        program,
        elements,
        liveness,
        limits,
        kept,
        units: vec![None; elements.list.len()],
        taken: [None; 64],
        victims: Vec::new(),
        is_victim: map_of(program.values.len()),
        cost: map_of(program.values.len()),
        phi_of: map_of(program.values.len()),
    };
    walk.weigh(accesses);
    let early: Vec<u32> = liveness.live_in(program.entry()).collect();
    for element in early {
        let value = elements.list[element as usize].value;
        if kept[value].is_some() {
            return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
        }
        walk.sacrifice(value);
    }
    for block in order(program) {
        walk.block(block)?;
    }
    Ok(if walk.victims.is_empty() {
        SharedAssignment::Placed(walk.units)
    } else {
        SharedAssignment::Victims(walk.victims)
    })
}

impl SharedAssigner<'_> {
    /// Computes the cost of spilling each value: the reads that need a reload to a shared register, weighted by loop
    /// depth.
    fn weigh(&mut self, accesses: &[(Block, Instr)]) {
        let depth = super::loop_depths(self.program);
        for &(block, instr) in accesses {
            if split_of(self.program, instr).is_some() {
                continue;
            }
            let data = &self.program.instrs[instr];
            let scalar = data.dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared);
            for src in data.srcs.iter().filter(|src| src.class.file == RegFile::Shared) {
                let Some(value) = src.value().and_then(|value| self.root(value)) else { continue };
                let each = if scalar { 4 } else { 1 };
                self.cost[value] = self.cost[value].saturating_add(each << (3 * depth[block].min(6)));
                if data.opcode == Opcode::Phi {
                    self.phi_of[value] = data.dsts[0].value();
                }
            }
        }
    }

    /// The value that contains the component `value`.
    fn root(&self, value: Value) -> Option<Value> {
        self.elements.of(value).map(|(first, _)| self.elements.list[first as usize].value)
    }

    fn sacrifice(&mut self, value: Value) {
        if !std::mem::replace(&mut self.is_victim[value], true) {
            self.victims.push(value);
        }
        for unit in &mut self.taken {
            if unit.is_some_and(|element| self.elements.list[element as usize].value == value) {
                *unit = None;
            }
        }
    }

    fn block(&mut self, block: Block) -> Result<(), Error> {
        self.taken = [None; 64];
        let live: Vec<u32> = self.liveness.live_in(block).collect();
        for element in live {
            let value = self.elements.list[element as usize].value;
            if self.is_victim[value] {
                continue;
            }
            match self.units[element as usize] {
                Some(unit) => self.occupy(element, unit),
                // Its definition does not dominate this block along physical edges.
                None if self.kept[value].is_none() => self.sacrifice(value),
                None if !self.victims.is_empty() => {}
                None => return Err(Error::Malformed { what: format!("{value} is read where it is not defined") }),
            }
        }
        let mut kills = self.liveness.kills(self.program, self.elements, block);
        let list = &self.program.blocks[block].instrs;
        let first = list.iter().position(|&i| self.program.instrs[i].opcode != Opcode::Phi).unwrap_or(list.len());
        let inputs = list[first..].iter().take_while(|&&i| self.program.instrs[i].opcode == Opcode::Input).count();
        // Phis are simultaneous, and so are inputs: unused ones occupy registers until all are placed.
        let mut unread = Vec::new();
        let mut killed = Vec::new();
        for group in [&list[..first], &list[first..first + inputs]] {
            for &instr in group {
                self.define(instr, &mut unread)?;
            }
            self.release(&mut unread);
        }
        for &instr in &list[first + inputs..] {
            if split_of(self.program, instr).is_some() {
                continue;
            }
            let data = &self.program.instrs[instr];
            let early =
                data.opcode.is_macro() || data.dsts.iter().any(|dst| dst.flags.contains(OperandFlags::EARLY_CLOBBER));
            while let Some(&(_, element)) = kills.last().filter(|&&(at, _)| at == instr) {
                kills.pop();
                killed.push(element);
            }
            if early {
                self.define(instr, &mut unread)?;
                self.release(&mut killed);
            } else {
                self.release(&mut killed);
                self.define(instr, &mut unread)?;
            }
            self.release(&mut unread);
        }
        Ok(())
    }

    fn occupy(&mut self, element: u32, unit: u8) {
        let units = self.elements.list[element as usize].units;
        self.taken[usize::from(unit)..][..usize::from(units)].fill(Some(element));
    }

    /// Frees the units of components.
    fn release(&mut self, list: &mut Vec<u32>) {
        for element in list.drain(..) {
            let Some(unit) = self.units[element as usize] else { continue };
            let units = self.elements.list[element as usize].units;
            for unit in &mut self.taken[usize::from(unit)..][..usize::from(units)] {
                if *unit == Some(element) {
                    *unit = None;
                }
            }
        }
    }

    /// Places the results of an instruction; unused components are appended to `unread`.
    fn define(&mut self, instr: Instr, unread: &mut Vec<u32>) -> Result<(), Error> {
        let data = &self.program.instrs[instr];
        for dst in &data.dsts {
            let Some(value) = dst.value().filter(|_| dst.class.file == RegFile::Shared) else { continue };
            let range = self.elements.range(value);
            let is_unread = |element: u32| !self.liveness.is_used(element);
            if range.is_empty() || self.is_victim[value] || data.opcode == Opcode::Phi && is_unread(range.start) {
                continue;
            }
            let step = dst.class.component_units() as u8;
            let len = usize::from(step) * range.len();
            let reach = if dst.class.half { self.limits.shared_half } else { self.limits.shared };
            let reach = (reach as usize).min(self.taken.len());
            let Some(unit) = self.find(data, value, len, usize::from(step), reach)? else { continue };
            for (k, element) in range.enumerate() {
                let at = unit + k as u8 * step;
                self.units[element as usize] = Some(at);
                self.occupy(element, at);
                if !self.liveness.is_used(element) {
                    unread.push(element);
                }
            }
        }
        Ok(())
    }

    /// The first unit for a value: the one that a phi prefers, else the first gap, else one that spilling victims
    /// frees.
    fn find(
        &mut self,
        data: &InstrData,
        value: Value,
        len: usize,
        align: usize,
        reach: usize,
    ) -> Result<Option<u8>, Error> {
        let is_free = |taken: &[Option<u32>; 64], at: usize| {
            at + len <= reach && at.is_multiple_of(align) && taken[at..at + len].iter().all(Option::is_none)
        };
        let wish = |walk: &Self| {
            let of = |value: Value| walk.elements.of(value).and_then(|(first, _)| walk.units[first as usize]);
            let mut wishes: Vec<usize> = walk.phi_of[value].and_then(of).map(usize::from).into_iter().collect();
            if data.opcode == Opcode::Phi {
                let srcs = data.srcs.iter().filter_map(|src| match src.operand {
                    SrcOperand::Place(place) => place.value(),
                    _ => None,
                });
                wishes.extend(srcs.filter_map(of).map(usize::from));
            }
            wishes.into_iter().find(|&at| is_free(&walk.taken, at))
        };
        if let Some(at) = wish(self) {
            return Ok(Some(at as u8));
        }
        let starts = || (0..(reach + 1).saturating_sub(len)).step_by(align);
        // Halves reach only the lower half of the file, so full registers are placed from above.
        let gap = if align == 1 {
            starts().find(|&at| is_free(&self.taken, at))
        } else {
            starts().rev().find(|&at| is_free(&self.taken, at))
        };
        if let Some(at) = gap {
            return Ok(Some(at as u8));
        }
        self.make_room(value, len, starts(), reach)
    }

    /// Chooses the cheapest victims: all values in one range of units, or the value itself. Returns the first unit of
    /// the range; `None` if the value gets no register in this pass.
    fn make_room(
        &mut self,
        value: Value,
        len: usize,
        starts: impl Iterator<Item = usize>,
        reach: usize,
    ) -> Result<Option<u8>, Error> {
        let mut best: Option<(u32, usize)> = None;
        for at in starts {
            let mut cost = 0u32;
            let mut last = None;
            let mut possible = true;
            for &element in self.taken[at..at + len].iter().flatten() {
                let other = self.elements.list[element as usize].value;
                if last != Some(other) {
                    possible &= self.may_be_victim(other);
                    cost = cost.saturating_add(self.cost[other] + 1);
                    last = Some(other);
                }
            }
            if possible && best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, at));
            }
        }
        let own = match self.kept[value] {
            None => self.may_be_victim(value).then_some((self.cost[value] + 1, value)),
            // A reload for a phi: the phi is spilled instead.
            Some(Some(phi)) if !self.is_victim[phi] && self.may_be_victim(phi) => Some((u32::MAX, phi)),
            Some(_) => None,
        };
        match (best, own) {
            (Some((cost, at)), own) if own.is_none_or(|(own, _)| cost < own) => {
                let others: Vec<u32> = self.taken[at..at + len].iter().flatten().copied().collect();
                for element in others {
                    self.sacrifice(self.elements.list[element as usize].value);
                }
                Ok(Some(at as u8))
            }
            (_, Some((_, victim))) => {
                self.sacrifice(victim);
                Ok(None)
            }
            // This pass has victims already, so another pass follows and may succeed.
            _ if !self.victims.is_empty() => Ok(None),
            _ => Err(Error::NeedsSpilling {
                needed: (reach / 2) as u32 + 1,
                available: (reach / 2) as u32,
                file: "shared",
            }),
        }
    }

    /// Returns true if a value may be chosen for spilling.
    fn may_be_victim(&self, value: Value) -> bool {
        self.kept[value].is_none() && !self.elements.is_read_whole(value)
    }
}
