//! nir on terms: the operations of the decoded shader.

mod arrays;

use super::graph::{Effects, Graph};
use super::lanes::{self, Result as Of, Scan, ScanPart};
use super::run::Machine;
use super::world::{self, Constants, Place, Question, Stored, Target};
use super::{Code, EventKind, Oracle, Site, Slot, Unsupported, Value, slot};
use crate::semantics::arithmetic::convert;
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::assumptions::Uses;
use crate::semantics::environment::env::{CONST_WORDS, Launch};
use crate::semantics::environment::memory::Space;
use crate::semantics::interp;
use crate::semantics::interp::nir::op::{
    AccessAddress, Action, EnvironmentInput, LaneKind, Lanes, MemoryAccess, Op, R, ResourceOperand, ScanResult,
    Shuffle, Texture, TextureOperand,
};
use crate::semantics::interp::nir::{Decoded, op};
use crate::semantics::interp::{OutputSlot, Places, array_word};
use crate::semantics::operations::Kernel;
use crate::semantics::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// How a block of the list of operations ends.
#[derive(Clone, Copy, Debug)]
enum Exit {
    /// By a choice: the row that is tested, and the blocks.
    If(R, u32, u32),
    /// By going on.
    Jump(u32),
    /// The lane is done.
    Done,
}

/// A shader to be run on terms.
pub struct Nir<'a> {
    code: &'a Decoded,
    graph: Graph,
    /// Of each block its operations, and how it ends.
    blocks: Vec<(std::ops::Range<usize>, Exit)>,
    fixed: FxHashMap<Slot, u32>,
    constants: Constants,
    none: FxHashSet<Slot>,
    places: Places,
    /// What phis are written to, in order.
    phis: Vec<Slot>,
    /// It is the source of a program of the machine.
    beside_machine: bool,
}

/// The operations in front of which blocks begin.
fn boundaries(ops: &[Op]) -> Vec<u32> {
    let mut at = vec![0];
    for (i, op) in ops.iter().enumerate() {
        let i = i as u32;
        match *op {
            Op::If { .. }
            | Op::Else { .. }
            | Op::EndIf { .. }
            | Op::Break { .. }
            | Op::Continue { .. }
            | Op::Return { .. }
            | Op::Exit { .. } => at.push(i + 1),
            Op::Gather { .. } => at.push(i),
            Op::Again { start } => at.extend([start, i + 1]),
            _ => {}
        }
    }
    at.sort_unstable();
    at.dedup();
    at.retain(|&start| (start as usize) < ops.len());
    at
}

impl<'a> Nir<'a> {
    /// Finds the blocks of a shader.
    ///
    /// # Errors
    /// If a loop cannot be followed.
    pub fn new(code: &'a Decoded) -> Result<Self, Unsupported> {
        let ops = &code.code.ops;
        let starts = boundaries(ops);
        let block_at = |op: usize| starts.partition_point(|&start| start as usize <= op) as u32 - 1;
        // Lanes that break wait at the exit with their slot, those that continue where they are gathered.
        let (mut exits, mut gathers) = (FxHashMap::default(), FxHashMap::default());
        for (i, op) in ops.iter().enumerate() {
            match *op {
                Op::Exit { slot, .. } => drop(exits.insert(slot, i)),
                Op::Gather { slot, .. } => drop(gathers.insert(slot, i)),
                _ => {}
            }
        }
        let mut blocks = Vec::with_capacity(starts.len());
        for (i, &start) in starts.iter().enumerate() {
            let stop = starts.get(i + 1).map_or(ops.len(), |&next| next as usize);
            let next = i as u32 + 1;
            let end = match ops[stop - 1] {
                Op::If { condition, otherwise, .. } => Exit::If(condition, next, block_at(otherwise as usize + 1)),
                Op::Else { end, .. } => Exit::Jump(block_at(end as usize + 1)),
                Op::Break { slot, .. } => Exit::Jump(block_at(exits[&slot] + 1)),
                Op::Continue { slot, .. } => Exit::Jump(block_at(gathers[&slot])),
                Op::Again { start } => Exit::Jump(block_at(start as usize)),
                Op::Return { .. } | Op::End => Exit::Done,
                _ => Exit::Jump(next),
            };
            blocks.push((start as usize..stop, end));
        }
        let successors = blocks.iter().map(|(_, end)| match *end {
            Exit::If(_, yes, no) => smallvec![yes, no],
            Exit::Jump(to) => smallvec![to],
            Exit::Done => smallvec![],
        });
        let effects = |block: u32| {
            let mut effects = Effects::default();
            for op in &ops[blocks[block as usize].0.clone()] {
                match *op {
                    Op::StoreConst(_) => effects.events.push(EventKind::Constants),
                    Op::Sync(sync) => effects.events.push(EventKind::Sync(sync)),
                    Op::Access(access) => {
                        let access = &code.code.accesses[access as usize];
                        let event = match access.action {
                            Action::Store | Action::Atomic { .. } => Space::of(access.space).map(EventKind::Memory),
                            Action::Load => Space::of(access.space).map(EventKind::Load),
                            Action::CopyToConsts { .. } => Some(EventKind::Constants),
                            Action::Size => None,
                        };
                        effects.events.extend(event);
                    }
                    _ => {}
                }
            }
            effects
        };
        let graph = Graph::new(successors.collect(), effects)?;
        let stored = Stored::words(ops.iter().flat_map(|op| match *op {
            Op::StoreConst(output) => {
                let word = u32::from(code.code.outputs[output as usize].base);
                word..word + 1
            }
            Op::Access(access) => match code.code.accesses[access as usize].action {
                Action::CopyToConsts { first, words } => first..first.saturating_add(words),
                _ => 0..0,
            },
            _ => 0..0,
        }));
        let constants = Constants { stored, ..Constants::default() };
        let fixed = code.code.constants.iter().copied().collect();
        let phis: BTreeSet<Slot> = code.code.moves.iter().map(|&(to, _)| to).collect();
        Ok(Self {
            code,
            graph,
            blocks,
            fixed,
            constants,
            none: FxHashSet::default(),
            places: Places::default(),
            phis: phis.into_iter().collect(),
            beside_machine: false,
        })
    }
}

impl Nir<'_> {
    /// With the words of the constant file that the driver fills for a compiled program.
    #[must_use]
    pub fn beside(mut self, compiled: &interp::ir3::Decoded) -> Self {
        let params = compiled.driver_params.iter();
        self.beside_machine = true;
        self.constants.driver =
            params.map(|param| (u32::from(param.word) % CONST_WORDS, (param.value, param.component.into()))).collect();
        self
    }
}

impl Code for Nir<'_> {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<Value> {
        let &bits = self.fixed.get(&slot)?;
        let bits = terms.constant(32, bits.into());
        Some(Value::defined(terms, bits))
    }

    fn undefined(&self) -> Option<Slot> {
        Some(op::UNDEFINED)
    }

    // The words of an array are written by its declaration, and no value is in a shared register, which is asked for where nobody needs it.
    fn places(&self) -> &Places {
        &self.places
    }

    fn scratch_bytes(&self) -> u32 {
        world::scratch_bytes(self.code.scratch_size)
    }

    fn uses_scratch(&self) -> bool {
        self.code.code.accesses.iter().any(|access| Space::of(access.space) == Some(Space::Scratch))
    }

    fn memories(&self) -> Vec<Space> {
        self.code.code.accesses.iter().filter_map(|access| Space::of(access.space)).collect()
    }

    fn volatile(&self) -> Vec<Space> {
        let loads =
            self.code.code.accesses.iter().filter(|access| access.volatile && matches!(access.action, Action::Load));
        loads.filter_map(|access| Space::of(access.space)).collect()
    }

    fn launch(&self) -> Launch {
        self.code.launch
    }

    fn uses(&self) -> Uses {
        let code = &self.code.code;
        let is_seen = |access: &MemoryAccess| Space::of(access.space).is_some_and(|space| space != Space::Scratch);
        Uses {
            textures: !code.textures.is_empty(),
            memory: code.accesses.iter().any(is_seen),
            lanes: !code.lanes.is_empty(),
            branches: self.blocks.len() > 1,
            rounding: code.open_rounding,
        }
    }

    fn shared_slots(&self) -> &FxHashSet<Slot> {
        &self.none
    }

    fn prints_shapes(&self) -> bool {
        false
    }

    fn outputs(&self) -> Vec<OutputSlot> {
        let mut list = self.code.code.declared.clone();
        list.sort_unstable();
        list.dedup();
        list
    }

    fn block<O: Oracle>(&self, block: u32, machine: &mut Machine<'_, O>) -> Result<(), Unsupported> {
        let (range, end) = &self.blocks[block as usize];
        for pc in range.clone() {
            self.op(pc, machine)?;
        }
        let always = machine.terms.constant(1, 1);
        match *end {
            Exit::If(condition, yes, no) => {
                let value = machine.read(condition);
                let taken = condition_of(machine, value, "a branch on an undefined condition");
                machine.leave(yes, taken, SmallVec::new());
                let otherwise = machine.terms.not(1, taken);
                machine.leave(no, otherwise, SmallVec::new());
            }
            Exit::Jump(to) => machine.leave(to, always, SmallVec::new()),
            Exit::Done => machine.end(),
        }
        Ok(())
    }
}

/// Whether a word is not 0, which must be defined.
pub(super) fn condition_of<O: Oracle>(machine: &mut Machine<'_, O>, value: Value, why: &'static str) -> Term {
    let truth = lanes::truth(machine, value);
    let defined = machine.terms.not(1, truth.free);
    machine.demand(defined, why);
    machine.oracle.condition(machine.terms, truth.bits)
}

/// Writes a result that has been computed.
fn result<O: Oracle>(machine: &mut Machine<'_, O>, row: R, value: Value) {
    let value = machine.oracle.value(machine.terms, value);
    machine.write(row, value);
}

/// A buffer, image, texture or sampler; `read` reads a row.
fn resource<O: Oracle>(
    machine: &mut Machine<'_, O>,
    resource: ResourceOperand,
    read: &mut impl FnMut(&mut Machine<'_, O>, R) -> Term,
) -> Term {
    let mut index = machine.terms.constant(32, resource.base.into());
    if let Some(row) = resource.row {
        let row = read(machine, row);
        index = machine.terms.add(32, index, row);
    }
    let set = resource.set.map(|set| machine.terms.constant(32, set.into()));
    world::resource(machine.terms, set, index)
}

impl Nir<'_> {
    fn op<O: Oracle>(&self, pc: usize, machine: &mut Machine<'_, O>) -> Result<(), Unsupported> {
        let code = &self.code.code;
        let site = Site::operation(pc as u32);
        match code.ops[pc] {
            Op::One { kernel, dst, a, .. } => {
                let operands = [machine.read(a)];
                let value = machine.compute(Kernel::One(kernel), &operands)[0];
                result(machine, dst, value);
            }
            Op::Two { kernel, dst, a, b, .. } => {
                let operands = [a, b].map(|row| machine.read(row));
                let value = machine.compute(Kernel::Two(kernel), &operands)[0];
                result(machine, dst, value);
            }
            Op::Three { kernel, dst, a, b, c, .. } => {
                let operands = [a, b, c].map(|row| machine.read(row));
                let value = machine.compute(Kernel::Three(kernel), &operands)[0];
                result(machine, dst, value);
            }
            Op::Select { select: choice, dst, a, b, c, .. } => {
                // The rows stand in the order condition, yes, no.
                let [condition, yes, no] = [a, b, c].map(|row| machine.read(row));
                let mut operands = [condition; 3];
                operands[usize::from(choice.condition)] = condition;
                operands[usize::from(choice.yes)] = yes;
                operands[usize::from(choice.no)] = no;
                let value = machine.compute(Kernel::Select(choice), &operands)[0];
                result(machine, dst, value);
            }
            Op::Wide(index) => {
                let wide = &code.wide[index as usize];
                let operands: SmallVec<[Value; 8]> = wide.srcs.iter().map(|&row| machine.read(row)).collect();
                let results = machine.compute(Kernel::Rows(wide.kernel), &operands);
                for (i, value) in results.into_iter().enumerate().take(wide.count as usize) {
                    result(machine, wide.dst + i as u32, value);
                }
            }
            Op::AddConst { dst, a, constant } => {
                let a = machine.read(a);
                let constant = machine.terms.constant(32, constant.into());
                let bits = machine.terms.add(32, a.bits, constant);
                // An address: what is free of it is not followed further.
                let free = a.any_free(machine.terms);
                let value = Value::free_where(machine.terms, bits, free);
                result(machine, dst, value);
            }
            Op::Input { input, dst } => {
                let value = self.input(&code.inputs[input as usize], machine);
                result(machine, dst, value);
            }
            Op::Lanes(index) => self.across(site, &code.lanes[index as usize], machine),
            Op::ArrayLoad(index) => {
                let access = &code.arrays[index as usize];
                for &(word, dst) in &access.rows {
                    let mut value = self.element(access, word, machine);
                    if let Some(adapt) = access.adapt {
                        value = machine.modify(adapt, value);
                    }
                    result(machine, dst, value);
                }
            }
            Op::ArrayStore(index) => self.array_store(&code.arrays[index as usize], machine),
            Op::ArrayInit { array, first, count } => {
                for word in 0..count {
                    let value = machine.unwritten(&array_word(array, word));
                    machine.write(first + word, value);
                }
            }
            Op::Access(index) => self.access(site, &code.accesses[index as usize], machine),
            Op::Texture(index) => self.texture(site, &code.textures[index as usize], machine),
            Op::StoreOutput(index) => {
                let output = &code.outputs[index as usize];
                let value = machine.read(output.row);
                machine.write(slot::output(output.base, output.component), value);
            }
            Op::StoreConst(index) => {
                let output = &code.outputs[index as usize];
                let value = machine.read(output.row);
                let word = machine.terms.constant(32, u64::from(u32::from(output.base) % CONST_WORDS));
                world::store_constant(machine, site, word, value);
            }
            Op::Sync(sync) => world::synchronize(machine, site, sync),
            Op::Moves { list: (start, end), .. } => {
                let moves = &code.moves[start as usize..end as usize];
                let values: SmallVec<[Value; 8]> =
                    moves.iter().map(|&(to, from)| self.phi_source(to, from, machine)).collect();
                for (&(to, _), value) in moves.iter().zip(values) {
                    machine.write(to, value);
                }
            }
            Op::Kill { condition, demote, .. } => {
                let holds = match condition {
                    None => machine.terms.constant(1, 1),
                    Some(row) => {
                        let value = machine.read(row);
                        condition_of(machine, value, "a lane ends by an undefined condition")
                    }
                };
                if demote {
                    world::demote(machine, holds);
                } else {
                    machine.kill(holds);
                }
            }
            // Where control goes is the matter of blocks.
            Op::Block(_)
            | Op::If { .. }
            | Op::Else { .. }
            | Op::EndIf { .. }
            | Op::Loop { .. }
            | Op::Break { .. }
            | Op::Continue { .. }
            | Op::Gather { .. }
            | Op::Again { .. }
            | Op::Exit { .. }
            | Op::Return { .. }
            | Op::End => {}
        }
        Ok(())
    }

    /// What a phi becomes.
    fn phi_source<O: Oracle>(&self, to: Slot, from: Slot, machine: &mut Machine<'_, O>) -> Value {
        if self.undefined() != Some(from) {
            return machine.read(from);
        }
        let rank = self.phis.partition_point(|&phi| phi < to);
        machine.unknown_phi(&format!("phi {rank}"), rank)
    }

    fn input<O: Oracle>(&self, input: &EnvironmentInput, machine: &mut Machine<'_, O>) -> Value {
        let launch = self.code.launch;
        let terms = &mut *machine.terms;
        match *input {
            EnvironmentInput::System(value, component, adapt) => {
                let word = world::system_value(terms, launch, value, component);
                let word = adapt.of(terms, word);
                Value::defined(terms, word)
            }
            EnvironmentInput::Attribute(base, component, half) => {
                let word = world::attribute(terms, base, component);
                let word = if half { world::low(terms, word, 16) } else { word };
                Value::defined(terms, word)
            }
            EnvironmentInput::Varying { location, offset, ij, half } => {
                let mut operands: SmallVec<[Value; 3]> = SmallVec::new();
                let mut at = terms.constant(32, location.into());
                if let Some(row) = offset {
                    let offset = machine.read(row);
                    let four = machine.terms.constant(32, 4);
                    let scaled = machine.terms.mul(32, offset.bits, four);
                    at = machine.terms.add(32, at, scaled);
                    operands.push(offset);
                }
                let ij = ij.map(|rows| {
                    rows.map(|row| {
                        let value = machine.read(row);
                        operands.push(value);
                        value.bits
                    })
                });
                let word = world::varying(machine.terms, at, ij, half);
                Value::defined(machine.terms, word)
            }
            EnvironmentInput::Const { word, offset, half } => {
                let mut index = terms.constant(32, word.into());
                if let Some(row) = offset {
                    let offset = machine.read(row);
                    index = machine.terms.add(32, index, offset.bits);
                }
                let word = self.constants.read(machine, launch, index);
                let word = if half { world::low(machine.terms, word, 16) } else { word };
                Value::defined(machine.terms, word)
            }
            EnvironmentInput::Helper => {
                let helper = world::helper_now(machine, launch);
                let word = machine.terms.zext(1, 32, helper);
                Value::defined(machine.terms, word)
            }
        }
    }

    fn across<O: Oracle>(&self, site: Site, op: &Lanes, machine: &mut Machine<'_, O>) {
        match op.kind {
            LaneKind::VoteEqual { float } => {
                let args = op.rows.iter().map(|&(_, src)| machine.read(src)).collect();
                let what = format!("vote equal {float:?}");
                let value = lanes::across(machine, site, what, args, Of::Uniform, 1);
                if let Some(&(dst, _)) = op.rows.first() {
                    result(machine, dst, value);
                }
                return;
            }
            LaneKind::InverseBallot => {
                // A word for each 32 lanes.
                let args: SmallVec<[Value; 4]> = op.rows.iter().map(|&(_, src)| machine.read(src)).collect();
                let value = lanes::across(machine, site, "inverse ballot".to_owned(), args, Of::Own, 1);
                if let Some(&(dst, _)) = op.rows.first() {
                    result(machine, dst, value);
                }
                return;
            }
            _ => {}
        }
        for (i, &(dst, src)) in op.rows.iter().enumerate() {
            let site = site.part(i);
            let value = self.across_row(site, op.kind, src, machine);
            result(machine, dst, value);
        }
    }

    fn across_row<O: Oracle>(&self, site: Site, kind: LaneKind, src: R, machine: &mut Machine<'_, O>) -> Value {
        let own = |machine: &mut Machine<'_, O>, what: &str, result| {
            lanes::across(machine, site, what.to_owned(), smallvec![], result, 1)
        };
        let vote = |machine: &mut Machine<'_, O>, what: String, bits| {
            let value = machine.read(src);
            let bit = lanes::truth(machine, value);
            lanes::across(machine, site, what, smallvec![bit], Of::Uniform, bits)
        };
        match kind {
            LaneKind::Elect => own(machine, "elect", Of::Own),
            LaneKind::VoteAny => vote(machine, "vote any".to_owned(), 1),
            LaneKind::VoteAll => vote(machine, "vote all".to_owned(), 1),
            LaneKind::Ballot { word } => vote(machine, format!("ballot {word}"), 32),
            LaneKind::LaneNumber { last } => {
                lanes::across(machine, site, format!("lane number, last {last}"), smallvec![], Of::Uniform, 32)
            }
            LaneKind::VoteEqual { .. } | LaneKind::InverseBallot => unreachable!("of all rows"),
            LaneKind::QuadVote { all } => {
                let value = machine.read(src);
                let bit = lanes::truth(machine, value);
                lanes::across(machine, site, format!("quad vote, all {all}"), smallvec![bit], Of::Own, 1)
            }
            LaneKind::Derivative { bit, fine, half } => {
                let value = machine.read(src);
                lanes::across(
                    machine,
                    site,
                    format!("derivative {bit} {fine} {half}"),
                    smallvec![value],
                    Of::Other,
                    if half { 16 } else { 32 },
                )
            }
            LaneKind::ReadFirst | LaneKind::ReadLast => {
                let value = machine.read(src);
                let what = if matches!(kind, LaneKind::ReadFirst) { "read first" } else { "read last" };
                lanes::moved(machine, site, what.to_owned(), value, &[], Of::Uniform)
            }
            LaneKind::ReadLane(number) => {
                let (value, number) = (machine.read(src), machine.read(number));
                lanes::moved(machine, site, "read lane".to_owned(), value, &[number], Of::Missing)
            }
            LaneKind::ReadWhere(predicate) => {
                let (value, predicate) = (machine.read(src), machine.read(predicate));
                let predicate = lanes::truth(machine, predicate);
                lanes::moved(machine, site, "read where".to_owned(), value, &[predicate], Of::Missing)
            }
            LaneKind::Shuffle { mode, index } => {
                let (value, index) = (machine.read(src), machine.read(index));
                let what = match mode {
                    Shuffle::Index => "index".to_owned(),
                    Shuffle::Xor => "xor".to_owned(),
                    Shuffle::Up => "up".to_owned(),
                    Shuffle::Down => "down".to_owned(),
                    Shuffle::Rotate(cluster) => format!("rotate {cluster}"),
                };
                lanes::moved(machine, site, format!("shuffle {what}"), value, &[index], Of::Other)
            }
            LaneKind::Swap(flip) => {
                let value = machine.read(src);
                lanes::moved(machine, site, format!("swap {flip}"), value, &[], Of::Other)
            }
            LaneKind::Broadcast(index) => {
                let (value, index) = (machine.read(src), machine.read(index));
                lanes::moved(machine, site, "quad broadcast".to_owned(), value, &[index], Of::Other)
            }
            LaneKind::BroadcastActive { cluster, kept } => {
                let (value, kept) = (machine.read(src), machine.read(kept));
                lanes::broadcast_active(machine, site, cluster, value, kept)
            }
            LaneKind::Scan(scan) => {
                let value = machine.read(src);
                let identity = machine.terms.constant(32, scan.identity.into());
                let mut args: SmallVec<[Value; 3]> = smallvec![value, Value::defined(machine.terms, identity)];
                if let Some(row) = scan.exclusive {
                    args.push(machine.read(row));
                }
                let part = match scan.result {
                    ScanResult::Reduce => ScanPart::Reduction,
                    ScanResult::Inclusive => ScanPart::Inclusive,
                    ScanResult::Exclusive => ScanPart::Exclusive,
                };
                let scan = Scan { kernel: scan.kernel, step: scan.step, cluster: scan.cluster, part };
                lanes::scan(machine, site, &scan, &args)
            }
        }
    }

    fn target<O: Oracle>(&self, access: &MemoryAccess, machine: &mut Machine<'_, O>) -> Target {
        let mut operands: SmallVec<[Value; 6]> = SmallVec::new();
        let mut read = |machine: &mut Machine<'_, O>, row: R| {
            let value = machine.read(row);
            operands.push(value);
            value.bits
        };
        let binding = resource(
            machine,
            access.binding.unwrap_or(ResourceOperand { set: None, base: 0, row: None, bound: false }),
            &mut read,
        );
        let place = match &access.place {
            AccessAddress::None => Place::Texel(SmallVec::new()),
            &AccessAddress::Linear { base, index, scale, offset } => {
                let base = match base {
                    Some([low, high]) => {
                        let (low, high) = (read(machine, low), read(machine, high));
                        machine.terms.concat(32, high, 32, low)
                    }
                    None => machine.terms.constant(64, 0),
                };
                let index = match index {
                    Some(row) => read(machine, row),
                    None => machine.terms.constant(32, 0),
                };
                Place::Linear { base, index, scale, offset }
            }
            AccessAddress::Texel(rows) => {
                let coordinates: SmallVec<[Term; 4]> = rows.iter().map(|&row| read(machine, row)).collect();
                world::texel(machine, coordinates, access.view)
            }
        };
        let free = machine.any_free(&operands);
        Target { space: access.space, binding, place, free }
    }

    fn access<O: Oracle>(&self, site: Site, access: &MemoryAccess, machine: &mut Machine<'_, O>) {
        let target = self.target(access, machine);
        let bits = access.bits;
        match access.action {
            Action::Load => {
                for &(number, dst) in &access.rows {
                    let value = world::load(machine, site, &target, number, bits);
                    result(machine, dst, value);
                }
            }
            Action::Store => {
                let data: SmallVec<[(u32, Value); 4]> =
                    access.rows.iter().map(|&(number, src)| (number, machine.read(src))).collect();
                let helper = world::helper_now(machine, self.code.launch);
                world::store(machine, site, &target, bits, &data, helper);
            }
            Action::Atomic { op, data, compare } => {
                let compare = if op.compares() { &compare[..] } else { &[] };
                let words = if bits == 64 { 2 } else { 1 };
                let operands: SmallVec<[Value; 4]> =
                    data.iter().take(words).chain(compare.iter().take(words)).map(|&row| machine.read(row)).collect();
                let helper = world::helper_now(machine, self.code.launch);
                let results = world::atomic(machine, site, &target, (op, bits), &operands, helper);
                for (&(_, dst), value) in access.rows.iter().zip(results) {
                    result(machine, dst, value);
                }
            }
            Action::CopyToConsts { first, words } => {
                let first = machine.terms.constant(32, first.into());
                let first = Value::defined(machine.terms, first);
                world::copy_to_constants(machine, site, &target, first, words);
            }
            Action::Size => {
                for &(number, dst) in &access.rows {
                    let word = world::size(machine.terms, access.space, target.binding, number);
                    let value = Value::defined(machine.terms, word);
                    result(machine, dst, value);
                }
            }
        }
    }

    fn texture<O: Oracle>(&self, site: Site, texture: &Texture, machine: &mut Machine<'_, O>) {
        let mut read = |machine: &mut Machine<'_, O>, row: R| machine.read(row).bits;
        let mut beyond = machine.terms.constant(1, 0);
        let mut number = |machine: &mut Machine<'_, O>, of: ResourceOperand| {
            let identity = resource(machine, of, &mut read);
            if !of.bound {
                return identity;
            }
            let index = machine.terms.extract(64, identity, 0, 32);
            let low = world::low(machine.terms, index, op::BOUND.trailing_zeros());
            let in_range = machine.terms.eq(32, low, index);
            let out_of_range = machine.terms.not(1, in_range);
            beyond = machine.terms.or(1, beyond, out_of_range);
            world::resource(machine.terms, None, low)
        };
        let asked = number(machine, texture.texture);
        let sampler = number(machine, texture.sampler);
        let mut operands = SmallVec::new();
        for &(slot, operand) in &texture.operands {
            let term = match operand {
                TextureOperand::Row(row) => read(machine, row),
                TextureOperand::Bits(bits) => machine.terms.constant(32, bits.into()),
            };
            operands.push((slot, term));
        }
        let mut question =
            Question { kind: texture.kind, texture: asked, sampler, operands, shape: None, derivatives: None };
        question.simplify(machine);
        if texture.derivatives {
            question.derive(machine, site);
        }
        for &(component, dst) in &texture.results {
            let mut word = world::answer(machine.terms, &question, component, texture.ty);
            if texture.levels {
                word = convert::level(machine.terms, texture.ty.is_half(), word);
            }
            let mut value = Value::defined(machine.terms, word);
            if machine.terms.as_constant(beyond) != Some(0) {
                let unknown = machine.unknown();
                value = machine.choose(beyond, unknown, value);
            }
            result(machine, dst, value);
        }
    }
}
