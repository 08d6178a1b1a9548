//! Spilling of chosen values, as in a colouring allocator: such a value is stored after its definition and reloaded
//! before each instruction that reads it.
//!
//! The program is scalarised first (`scalars`), so that chosen values are scalars, and `rewrite` applies the plan. The
//! values of the scalarised program keep their numbers in the result, so more of them can be chosen when that does not
//! fit either.

use super::belady::{self, Plan};
use super::pressure_units::{Capacity, Fixed};
use super::scalars::{self, general_result, general_value};
use super::{combine_reloads, rewrite, unused};
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::loops::Loops;
use crate::ir3::{Block, Opcode, Program, Value};
use crate::regalloc::liveness::Liveness;
use crate::regalloc::{Error, next_use, order};
use cranelift_entity::{EntityRef, SecondaryMap};

/// The estimated number of iterations of a loop.
const ITERATIONS: f32 = 10.0;

/// The cost of rematerialising a constant, if a load costs 1.
const REMATERIALISED: f32 = 0.5;

/// The length of a live range, in points, that spilling would not make shorter.
const SHORT: u32 = 2;

/// A scalarised program of which values can be spilled.
pub struct Spiller {
    scalars: Program,
    order: Vec<Block>,
    liveness: Liveness,
    loops: Loops,
    fixed: Fixed,
    rematerializable: SecondaryMap<Value, bool>,
    /// The cost of spilling each value; 0 if that is useless.
    cost: SecondaryMap<Value, f32>,
}

impl Spiller {
    /// Scalarises a program.
    ///
    /// # Errors
    /// If the program is malformed.
    pub fn new(program: &Program) -> Result<Self, Error> {
        let mut scalars = program.clone();
        scalars::run(&mut scalars);
        let order = order(&scalars);
        let liveness = Liveness::new(&mut scalars.clone(), order.clone())?;
        let loops = Loops::new(&scalars, &Dominators::new(&scalars, EdgeKind::Logical));
        let rematerializable = belady::rematerializable(&scalars);
        let fixed = Fixed::new(&scalars, &order)?;
        let mut this = Self { scalars, order, liveness, loops, fixed, rematerializable, cost: SecondaryMap::new() };
        this.cost = this.costs();
        Ok(this)
    }

    /// The cost of spilling a value: its stores and loads, with 10 iterations for each loop around them. 0 if it cannot
    /// be spilled, or if that is useless.
    pub fn cost(&self, value: Value) -> f32 {
        self.cost[value]
    }

    /// The number of values that there were before anything was spilled.
    pub fn value_count(&self) -> usize {
        self.scalars.values.len()
    }

    fn costs(&self) -> SecondaryMap<Value, f32> {
        let program = &self.scalars;
        let mut cost: SecondaryMap<Value, f32> = SecondaryMap::with_capacity(program.values.len());
        let mut is_read: SecondaryMap<Value, bool> = SecondaryMap::new();
        for &block in &self.order {
            let weight = ITERATIONS.powi(self.loops.around(block).count().min(8) as i32);
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                for value in data.dsts.iter().filter_map(general_result) {
                    let stores = match data.opcode {
                        // Each source is stored.
                        Opcode::Phi => data.srcs.len() as f32,
                        _ if self.rematerializable[value] => 0.0,
                        _ => 1.0,
                    };
                    cost[value] += stores * weight;
                }
                if data.opcode == Opcode::Phi {
                    continue;
                }
                for value in data.srcs.iter().filter_map(general_value) {
                    is_read[value] = true;
                    cost[value] += weight * if self.rematerializable[value] { REMATERIALISED } else { 1.0 };
                }
            }
        }
        for value in program.values.keys() {
            let is_short = match self.liveness.segments(value) {
                [] => true,
                [only] => only.end - only.start <= SHORT,
                _ => false,
            };
            // A value that only phis read is a copy for them.
            if is_short || !is_read[value] || program.values[value].components != 1 {
                cost[value] = 0.0;
            }
        }
        cost
    }

    /// The program with the chosen values spilled.
    pub fn spilled(&self, chosen: &SecondaryMap<Value, bool>) -> Program {
        self.rewritten(&self.plan(chosen))
    }

    /// The program with every value spilled where no instruction reads or writes it.
    pub fn all_spilled(&self, merged: bool) -> Program {
        let next = next_use::run(&self.scalars, &self.order, &self.loops, scalars::GENERAL);
        let none = Capacity { full: 0, half: 0, merged };
        self.rewritten(&belady::run(&self.scalars, &self.order, &self.loops, &next, none, &self.fixed))
    }

    fn rewritten(&self, plan: &Plan) -> Program {
        let mut program = self.scalars.clone();
        rewrite::run(&mut program, &self.order, plan, &self.liveness);
        unused::run(&mut program);
        combine_reloads::run(&mut program);
        program
    }

    fn plan(&self, chosen: &SecondaryMap<Value, bool>) -> Plan {
        let program = &self.scalars;
        let mut plan = Plan {
            blocks: SecondaryMap::new(),
            memory: SecondaryMap::with_capacity(program.values.len()),
            rematerializable: self.rematerializable.clone(),
            memory_phis: SecondaryMap::with_capacity(program.values.len()),
        };
        for value in program.values.keys().filter(|&value| chosen[value]) {
            let data = &program.instrs[program.values[value].instr];
            if data.opcode == Opcode::Phi {
                plan.memory_phis[value] = true;
                data.srcs.iter().filter_map(general_value).for_each(|source| plan.memory[source] = true);
            }
            plan.memory[value] |= !self.rematerializable[value];
        }
        for &block in &self.order {
            let list = &program.blocks[block].instrs;
            let last = program.body_len(list) as u32;
            let of_block = &mut plan.blocks[block];
            for (position, &instr) in list.iter().enumerate() {
                let data = &program.instrs[instr];
                if data.opcode == Opcode::Phi {
                    // A value that is not spilled has one name everywhere. Only the phis of a block must be said to be
                    // in registers.
                    of_block.entry.extend(data.dsts.iter().filter_map(general_result).filter(|&phi| !chosen[phi]));
                    continue;
                }
                for (k, value) in data.srcs.iter().enumerate().filter_map(|(k, src)| Some((k, general_value(src)?))) {
                    let is_first = !data.srcs[..k].iter().filter_map(general_value).any(|other| other == value);
                    if chosen[value] && is_first {
                        of_block.reloads.push(((position as u32).min(last), value));
                    }
                }
            }
            of_block.entry.sort_unstable_by_key(|value| value.index());
        }
        plan
    }
}
