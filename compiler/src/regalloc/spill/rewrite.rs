//! Applies a plan to the program: stores, reloads, and phis where several names of a value join.
//!
//! A value has one name at its definition and another one at each reload. Blocks are visited in order; the names at the
//! start of each come from its predecessor, or from phis that are added for the values in registers there. In the end,
//! phis whose sources are all one value are replaced by it, and unused ones are removed.

use super::super::liveness::Liveness;
use super::belady::Plan;
use super::scalars::{define, general_result, general_value};
use super::slots::SpillSlots;
use crate::ir3::access::build::{self, MemoryElements};
use crate::ir3::opcode::Role;
use crate::ir3::{
    Attrs, Block, Instr, InstrData, MemoryAttrs, Opcode, Place, Program, RegClass, Round, Src, SrcOperand, Type, Value,
    WriteMask,
};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Applies the plan.
pub fn run(program: &mut Program, order: &[Block], plan: &Plan, liveness: &Liveness) {
    let mut slots = SpillSlots::new(program, plan, liveness);
    let (base_instr, base) = define_base(program);
    let mut pass = Rewriter {
        plan,
        base,
        base_instr,
        name: map_of(program.values.len()),
        touched: Vec::new(),
        exits: SecondaryMap::new(),
        added: Vec::new(),
        stored: FxHashSet::default(),
        out: Vec::new(),
    };
    for &block in order {
        pass.run_block(program, &mut slots, block);
    }
    pass.fill_phis(program, order);
    pass.simplify(program);
    program.scratch_size = slots.end;
}

/// The base register, which holds 0.
fn define_base(program: &mut Program) -> (Instr, Value) {
    let mut data = InstrData::new(Opcode::Mov);
    data.attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
    data.srcs.push(Src::immediate(0, false));
    define(program, data, RegClass::FULL, 1)
}

/// The number of leading instructions of the first block that are inputs or split inputs.
fn count_inputs(program: &Program, list: &[Instr]) -> usize {
    let is_input = |instr: Instr| program.instrs[instr].opcode == Opcode::Input;
    let of_input = |instr: Instr| {
        program.instrs[instr].srcs.iter().filter_map(general_value).any(|v| is_input(program.values[v].instr))
    };
    list.iter().take_while(|&&i| is_input(i) || program.instrs[i].opcode == Opcode::Split && of_input(i)).count()
}

/// A phi for a value with several names.
struct Added {
    block: Block,
    phi: Instr,
    value: Value,
}

struct Rewriter<'a> {
    plan: &'a Plan,
    base: Value,
    base_instr: Instr,
    /// The current name of each value.
    name: SecondaryMap<Value, PackedOption<Value>>,
    touched: Vec<Value>,
    /// Names at the end of each block, by value.
    exits: SecondaryMap<Block, Vec<(Value, Value)>>,
    added: Vec<Added>,
    /// Parts that were stored with their vectors.
    stored: FxHashSet<Value>,
    out: Vec<Instr>,
}

impl Rewriter<'_> {
    fn set_name(&mut self, value: Value, name: Value) {
        self.name[value] = name.into();
        self.touched.push(value);
    }

    fn exit_name(&self, block: Block, value: Value) -> Option<Value> {
        let exits = &self.exits[block];
        exits.binary_search_by_key(&value, |&(value, _)| value).ok().map(|at| exits[at].1)
    }

    /// Chooses names for the values in registers at the start of a block.
    fn enter(&mut self, program: &mut Program, block: Block, list: &[Instr]) {
        for value in self.touched.drain(..) {
            self.name[value] = None.into();
        }
        let predecessors = program.blocks[block].predecessors.clone();
        let phis: FxHashSet<Instr> =
            list.iter().copied().take_while(|&instr| program.instrs[instr].opcode == Opcode::Phi).collect();
        for &value in &self.plan.blocks[block].entry {
            if let [pred] = predecessors[..] {
                if let Some(name) = self.exit_name(pred, value) {
                    self.set_name(value, name);
                }
                continue;
            }
            let def = program.values[value].instr;
            if program.instrs[def].opcode == Opcode::Phi && phis.contains(&def) {
                self.set_name(value, value);
                continue;
            }
            let (phi, name) = define(program, InstrData::new(Opcode::Phi), program.values[value].class, 1);
            self.added.push(Added { block, phi, value });
            self.out.push(phi);
            self.set_name(value, name);
        }
    }

    fn run_block(&mut self, program: &mut Program, slots: &mut SpillSlots, block: Block) {
        let plan = &self.plan.blocks[block];
        let list = std::mem::take(&mut program.blocks[block].instrs);
        self.out.clear();
        self.enter(program, block, &list);
        let mut reloads = plan.reloads.iter().peekable();
        // Stores that are delayed until after phis, inputs and splits.
        let mut waiting: Vec<Value> = Vec::new();
        let is_start = |program: &Program, instr: Instr| {
            matches!(program.instrs[instr].opcode, Opcode::Phi | Opcode::Input | Opcode::Split)
        };
        let base_at = (block == program.entry()).then(|| count_inputs(program, &list));
        for (position, &instr) in list.iter().enumerate() {
            let base_is_there = base_at.is_none_or(|at| position >= at);
            if base_at == Some(position) {
                self.out.push(self.base_instr);
            }
            if !is_start(program, instr) && base_is_there {
                self.store(program, slots, &mut waiting);
            }
            while let Some(&&(_, value)) = reloads.peek().filter(|&&&(at, _)| at == position as u32) {
                reloads.next();
                self.reload(program, slots, value);
            }
            let is_dropped = program.instrs[instr].opcode == Opcode::Phi
                && program.instrs[instr]
                    .dsts
                    .first()
                    .and_then(general_result)
                    .is_some_and(|phi| self.name[phi].is_none());
            let defined: SmallVec<[Value; 4]> = program.instrs[instr].dsts.iter().filter_map(general_result).collect();
            if program.instrs[instr].opcode != Opcode::Phi {
                self.rename(program, instr);
            }
            if !is_dropped {
                self.out.push(instr);
                for &value in &defined {
                    self.set_name(value, value);
                    if program.values[value].components > 1 && base_is_there {
                        self.store_vector(program, slots, value, &list[position + 1..]);
                    }
                    if self.is_stored(program, value) && !slots.is_there(value) && !self.stored.contains(&value) {
                        waiting.push(value);
                    }
                }
            }
        }
        // Terminators define nothing, so stores are delayed only to the end of a block without terminators.
        self.store(program, slots, &mut waiting);
        let terminators = self.out.split_off(program.body_len(&self.out));
        for &value in &plan.last {
            self.reload(program, slots, value);
        }
        self.out.extend(terminators);
        program.blocks[block].instrs = self.out.clone();
        let mut exits: Vec<(Value, Value)> = Vec::with_capacity(plan.exit.len() + plan.last.len());
        for &value in plan.exit.iter().chain(&plan.last) {
            if let Some(name) = self.name[value].expand() {
                exits.push((value, name));
            }
        }
        exits.sort_unstable();
        self.exits[block] = exits;
    }

    /// Returns true if a value is stored at its definition. Rematerialised values are not, unless a memory phi needs
    /// them.
    fn is_stored(&self, program: &Program, value: Value) -> bool {
        self.plan.memory[value] && !self.plan.memory_phis[value] && program.values[value].components == 1
    }

    fn rename(&self, program: &mut Program, instr: Instr) {
        let data = &mut program.instrs[instr];
        for src in data.srcs.iter_mut() {
            if let Some(value) = general_value(src)
                && let Some(name) = self.name[value].expand()
                && name != value
            {
                src.set_value(name);
            }
        }
    }

    fn store(&mut self, program: &mut Program, slots: &mut SpillSlots, values: &mut Vec<Value>) {
        for value in values.drain(..) {
            if let Some(address) = slots.of(value) {
                self.push_store(program, value, 1, address);
            }
        }
    }

    /// Stores the first parts of a vector, with the given splits, with one instruction, if they are stored at all
    /// and have consecutive slots.
    fn store_vector(&mut self, program: &mut Program, slots: &mut SpillSlots, vector: Value, splits: &[Instr]) {
        let size = if program.values[vector].class.half { 2 } else { 4 };
        let mut parts: SmallVec<[Value; 4]> = SmallVec::new();
        let mut first = 0;
        for &instr in splits {
            let data = &program.instrs[instr];
            let (Opcode::Split, &Attrs::Split { offset }) = (data.opcode, &data.attrs) else { break };
            let reads = data.srcs.first().and_then(general_value) == Some(vector);
            let Some(part) = data.dsts.first().and_then(general_result).filter(|_| reads) else { break };
            let Some(address) = slots.of(part).filter(|_| self.is_stored(program, part)) else { break };
            if usize::from(offset) != parts.len() || !parts.is_empty() && address != first + size * u32::from(offset) {
                break;
            }
            if parts.is_empty() {
                first = address;
            }
            parts.push(part);
        }
        if parts.len() > 1 {
            self.push_store(program, vector, parts.len() as u8, first);
            self.stored.extend(parts);
        }
    }

    fn push_store(&mut self, program: &mut Program, value: Value, components: u8, address: u32) {
        let class = program.values[value].class;
        let mask = WriteMask::first(u32::from(components));
        let attrs = MemoryAttrs { offset: address as i32, ..elements(class, components).into() };
        let stored = Src::reg(Place::Value(value), class, mask);
        let data = build::memory(Opcode::SpillMacro, attrs, &[(Role::Index, self.base()), (Role::Data, stored)]);
        let store = program.instrs.push(data);
        self.out.push(store);
    }

    fn base(&self) -> Src {
        Src::reg(Place::Value(self.base), RegClass::FULL, WriteMask::SCALAR)
    }

    fn reload(&mut self, program: &mut Program, slots: &mut SpillSlots, value: Value) {
        let def = program.values[value].instr;
        let class = program.values[value].class;
        let data = if self.plan.rematerializable[value] {
            let mut data = program.instrs[def].clone();
            data.dsts.clear();
            data.unconstrain();
            data
        } else {
            let Some(address) = slots.of(value) else { return };
            let offset = Src::immediate(address, false);
            build::memory(
                Opcode::ReloadMacro,
                elements(class, 1),
                &[(Role::Index, self.base()), (Role::Offset, offset)],
            )
        };
        let (instr, name) = define(program, data, class, 1);
        self.out.push(instr);
        self.set_name(value, name);
    }

    /// Sets the sources of the added phis and of the others.
    fn fill_phis(&mut self, program: &mut Program, order: &[Block]) {
        for Added { block, phi, value } in &self.added {
            let class = program.values[*value].class;
            let predecessors = program.blocks[*block].predecessors.clone();
            for &pred in &predecessors {
                let operand = match self.exit_name(pred, *value) {
                    Some(name) => SrcOperand::Place(Place::Value(name)),
                    None => SrcOperand::Undef,
                };
                program.instrs[*phi].srcs.push(Src::new(operand, class, WriteMask::SCALAR));
            }
        }
        let is_added: FxHashSet<Instr> = self.added.iter().map(|added| added.phi).collect();
        for &block in order {
            let predecessors = program.blocks[block].predecessors.clone();
            for at in 0..program.blocks[block].instrs.len() {
                let phi = program.blocks[block].instrs[at];
                if program.instrs[phi].opcode != Opcode::Phi {
                    break;
                }
                if is_added.contains(&phi) {
                    continue;
                }
                for (k, &pred) in predecessors.iter().enumerate() {
                    let Some(src) = program.instrs[phi].srcs.get(k) else { continue };
                    if let Some(name) = general_value(src).and_then(|value| self.exit_name(pred, value)) {
                        program.instrs[phi].srcs[k].operand = SrcOperand::Place(Place::Value(name));
                    }
                }
            }
        }
    }

    /// Replaces redundant phis that were added, and removes unused ones.
    fn simplify(&self, program: &mut Program) {
        let mut same: SecondaryMap<Value, PackedOption<Value>> = map_of(program.values.len());
        let find = |same: &SecondaryMap<Value, PackedOption<Value>>, mut value: Value| {
            while let Some(other) = same[value].expand() {
                value = other;
            }
            value
        };
        loop {
            let mut changed = false;
            for Added { phi, .. } in &self.added {
                let data = &program.instrs[*phi];
                let Some(own) = data.dsts.first().and_then(|dst| dst.value()) else { continue };
                if same[own].is_some() {
                    continue;
                }
                let mut only = None;
                let mut several = false;
                for src in &data.srcs {
                    let Some(value) = src.value() else {
                        several = true;
                        continue;
                    };
                    let value = find(&same, value);
                    if value != own {
                        several |= only.is_some_and(|other| other != value);
                        only = Some(value);
                    }
                }
                if let (Some(value), false) = (only, several) {
                    same[own] = value.into();
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            let instrs = &program.instrs;
            let is_same = |instr: &Instr| {
                let data = &instrs[*instr];
                data.opcode == Opcode::Phi && data.dsts[0].value().is_some_and(|value| same[value].is_some())
            };
            program.blocks[block].instrs.retain(|instr| !is_same(instr));
            for &instr in &program.blocks[block].instrs {
                for src in program.instrs[instr].srcs.iter_mut() {
                    if let Some(value) = general_value(src)
                        && same[value].is_some()
                    {
                        src.set_value(find(&same, value));
                    }
                }
            }
        }
    }
}

/// The elements of a store or load of `components` registers of a class.
pub fn elements(class: RegClass, components: u8) -> MemoryElements {
    MemoryElements { ty: if class.half { Type::U16 } else { Type::U32 }, components }
}
