//! The operations of a decoded nir shader.

use super::{Nir, condition_of, preamble};
use crate::symbolic::environment::{self, TextureQuery};
use crate::symbolic::lanes::{self, LaneResult, LaneScan, OneLane, ScanPart};
use crate::symbolic::memory::{self, AccessPlace, AccessTarget};
use crate::symbolic::operation::{Elected, LaneOperation, ShuffleOperation};
use crate::symbolic::run::SymbolicMachine;
use crate::symbolic::{EventSite, Oracle, Slot, SymbolicProgram, SymbolicValue, Unsupported, slot};
use ir3_compiler::ir3::AddressSpace;
use ir3_semantics::arithmetic::convert;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::environment::env::CONST_WORDS;
use ir3_semantics::interp::array_word;
use ir3_semantics::interp::nir::op::{
    self, AccessAddress, Action, DecodedOp, EnvironmentInput, LaneKind, Lanes, MemoryAccess, R, ResourceOperand,
    ScanResult, Shuffle, Sum, Texture, TextureOperand,
};
use ir3_semantics::operations::{Kernel, byte_offset};
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::Term;
use smallvec::{SmallVec, smallvec};

/// Writes a computed result.
fn result<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, row: R, value: SymbolicValue) {
    let value = machine.oracle.value(machine.terms, value);
    machine.write(row, value);
}

/// Returns the name of a buffer, image, texture or sampler; `read` reads a row.
fn resource<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    resource: ResourceOperand,
    read: &mut impl FnMut(&mut SymbolicMachine<'_, O>, R) -> Term,
) -> Term {
    let mut index = machine.terms.constant(32, resource.base.into());
    if let Some(row) = resource.row {
        let row = read(machine, row);
        index = machine.terms.add(32, index, row);
    }
    let set = resource.set.map(|set| machine.terms.constant(32, set.into()));
    let name = memory::resource(machine.terms, set, index);
    if resource.shared {
        memory::one_descriptor(machine, name);
        // A uniform value has the same low bits in all lanes, which are all that an instruction reads of the number of
        // a bound texture.
        if resource.bound {
            let low = machine.terms.extract(32, index, 0, 16);
            let low = machine.terms.zext(16, 32, low);
            let name = memory::resource(machine.terms, None, low);
            memory::one_descriptor(machine, name);
        }
    }
    name
}

impl Nir<'_> {
    /// Reads a row that others see: in an output, in memory, in other lanes. Its undefined bits may be anything there
    /// only if nothing else depends on them (see `interp::uses`).
    fn observed<O: Oracle>(&self, row: R, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        let value = machine.read(row);
        let is_kept =
            value.is_defined(machine.terms) || self.code.code.uses().is_independent(row) || left_out(Guard::FreeOnce);
        if is_kept { value } else { SymbolicValue::defined(machine.terms, value.bits) }
    }

    /// Executes the operation at `pc`.
    pub(super) fn op<O: Oracle>(&self, pc: usize, machine: &mut SymbolicMachine<'_, O>) -> Result<(), Unsupported> {
        let code = &self.code.code;
        let site = EventSite::operation(pc as u32);
        match code.ops[pc] {
            DecodedOp::One { kernel, dst, a, .. } => {
                let operands = [machine.read(a)];
                let value = machine.compute(Kernel::One(kernel), &operands)[0];
                result(machine, dst, value);
            }
            DecodedOp::Two { kernel, dst, a, b, .. } => {
                let operands = [a, b].map(|row| machine.read(row));
                let value = machine.compute(Kernel::Two(kernel), &operands)[0];
                result(machine, dst, value);
            }
            DecodedOp::Three { kernel, dst, a, b, c, .. } => {
                let operands = [a, b, c].map(|row| machine.read(row));
                let value = machine.compute(Kernel::Three(kernel), &operands)[0];
                result(machine, dst, value);
            }
            DecodedOp::Select { select: choice, dst, a, b, c, .. } => {
                // The rows are in the order condition, yes, no.
                let [condition, yes, no] = [a, b, c].map(|row| machine.read(row));
                let [yes, no] = machine.selected([yes, no], |i| code.uses().is_independent([b, c][i]));
                let mut operands = [condition; 3];
                operands[usize::from(choice.condition)] = condition;
                operands[usize::from(choice.yes)] = yes;
                operands[usize::from(choice.no)] = no;
                let value = machine.compute(Kernel::Select(choice), &operands)[0];
                result(machine, dst, value);
            }
            DecodedOp::Wide(index) => {
                let wide = &code.wide[index as usize];
                let operands: SmallVec<[SymbolicValue; 8]> = wide.srcs.iter().map(|&row| machine.read(row)).collect();
                let results = machine.compute(Kernel::Rows(wide.kernel), &operands);
                for (i, value) in results.into_iter().enumerate().take(wide.count as usize) {
                    result(machine, wide.dst + i as u32, value);
                }
            }
            DecodedOp::Sum(index) if machine.oracle.are_both_nir() => self.sum(pc, &code.sums[index as usize], machine),
            DecodedOp::Sum(_) => {}
            DecodedOp::AddConst { dst, a, constant } => {
                let a = machine.read(a);
                let constant = machine.terms.constant(32, constant.into());
                let bits = machine.terms.add(32, a.bits, constant);
                // An address: its free bits are not tracked further.
                let free = a.any_free(machine.terms);
                let value = SymbolicValue::free_where(machine.terms, bits, free);
                result(machine, dst, value);
            }
            DecodedOp::Input { input, dst } => {
                let value = self.input(&code.inputs[input as usize], machine);
                result(machine, dst, value);
            }
            DecodedOp::Lanes(index) => self.across(site, &code.lanes[index as usize], machine),
            DecodedOp::ArrayLoad(index) => {
                let access = &code.arrays[index as usize];
                for &(word, dst) in &access.rows {
                    let mut value = self.element(access, word, machine);
                    if let Some(adapt) = access.adapt {
                        value = machine.modify(adapt, value);
                    }
                    result(machine, dst, value);
                }
            }
            DecodedOp::ArrayStore(index) => self.array_store(&code.arrays[index as usize], machine),
            DecodedOp::ArrayInit { array, first, count } => {
                for word in 0..count {
                    let value = machine.unwritten(&array_word(array, word));
                    machine.write(first + word, value);
                }
            }
            DecodedOp::Access(index) => self.access(site, &code.accesses[index as usize], machine),
            DecodedOp::Texture(index) => self.texture(site, &code.textures[index as usize], machine),
            DecodedOp::StoreOutput(index) => {
                let output = &code.outputs[index as usize];
                let value = self.observed(output.row, machine);
                machine.write(slot::output(output.base, output.component), value);
            }
            DecodedOp::StoreConst(index) => {
                let output = &code.outputs[index as usize];
                let value = self.observed(output.row, machine);
                let word = machine.terms.constant(32, u64::from(u32::from(output.base) % CONST_WORDS));
                memory::store_constant(machine, site, word, value);
                preamble::store(machine, &self.constants, output.base.into(), value);
            }
            DecodedOp::Sync(sync) => memory::synchronize(machine, site, sync),
            DecodedOp::Moves { list: (start, end), .. } => {
                let moves = &code.moves[start as usize..end as usize];
                let values: SmallVec<[SymbolicValue; 8]> = moves
                    .iter()
                    .map(|&(to, from)| {
                        let value = self.phi_source(to, from, machine);
                        machine.phi_operand(value, || code.uses().is_independent(from))
                    })
                    .collect();
                for (&(to, _), value) in moves.iter().zip(values) {
                    machine.write(to, value);
                }
            }
            DecodedOp::Kill { condition, demote, .. } => {
                let holds = match condition {
                    None => machine.terms.constant(1, 1),
                    Some(row) => {
                        let value = machine.read(row);
                        condition_of(machine, value, "a lane ends by an undefined condition")
                    }
                };
                if demote {
                    environment::demote(machine, holds);
                } else {
                    machine.kill(holds);
                }
            }
            // Control flow is handled by blocks.
            DecodedOp::Block(_)
            | DecodedOp::If { .. }
            | DecodedOp::Else { .. }
            | DecodedOp::EndIf { .. }
            | DecodedOp::Loop { .. }
            | DecodedOp::Break { .. }
            | DecodedOp::Continue { .. }
            | DecodedOp::Gather { .. }
            | DecodedOp::Again { .. }
            | DecodedOp::Exit { .. }
            | DecodedOp::Return { .. }
            | DecodedOp::End => {}
        }
        if let Some(exact) = code.floats.get(&(pc as u32)).map(|site| site.exact)
            && machine.oracle.are_both_nir()
        {
            for row in op::writes(code, &code.ops[pc]) {
                let result = machine.read(row).bits;
                machine.oracle.float_result(machine.terms, result, exact);
            }
        }
        Ok(())
    }

    /// Replaces the result of an operation where it breaks its promise.
    fn sum<O: Oracle>(&self, pc: usize, sum: &Sum, machine: &mut SymbolicMachine<'_, O>) {
        let bits = sum.promise.bits;
        let number = |rows: &[R], machine: &mut SymbolicMachine<'_, O>| {
            let words: SmallVec<[Term; 2]> = rows.iter().map(|&row| machine.read(row).bits).collect();
            match words[..] {
                [low, high] => machine.terms.concat(32, high, 32, low),
                _ => machine.terms.extract(32, words[0], 0, bits),
            }
        };
        let operands = [0, 1].map(|i| number(&sum.operands[i], machine));
        let rows: SmallVec<[R; 2]> = (sum.dst..sum.dst + if bits == 64 { 2 } else { 1 }).collect();
        let result = number(&rows, machine);
        let [a, b] = operands;
        let broken = sum.promise.is_broken(&mut *machine.terms, a, b).unwrap_or_else(|| {
            let name = format!("{} overflows", sum.promise.op.name());
            environment::apply(machine.terms, 1, &name, &operands)
        });
        let broken = machine.swept(broken);
        let value = machine.oracle.sum(machine.terms, (sum.promise, pc as u32), operands, (broken, result));
        if value == result {
            return;
        }
        for (i, &row) in rows.iter().enumerate() {
            let width = bits.min(32);
            let word = machine.terms.extract(bits, value, 32 * i as u32, width);
            let word = machine.terms.zext(width, 32, word);
            let free = machine.read(row).free;
            self::result(machine, row, SymbolicValue { bits: word, free });
        }
    }

    /// Reads the operand of a phi.
    fn phi_source<O: Oracle>(&self, to: Slot, from: Slot, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        if self.undefined() != Some(from) {
            return machine.read(from);
        }
        let rank = self.phis.partition_point(|&phi| phi < to);
        machine.unknown_phi(&format!("phi {rank}"), rank)
    }

    fn input<O: Oracle>(&self, input: &EnvironmentInput, machine: &mut SymbolicMachine<'_, O>) -> SymbolicValue {
        let launch = self.code.launch;
        let terms = &mut *machine.terms;
        match *input {
            EnvironmentInput::System(value, component, adapt, second) => {
                let mut word = environment::system_value(terms, launch, value, component);
                if let (Some(second), true) = (second, machine.oracle.are_both_nir()) {
                    word = environment::apply(terms, 32, &format!("{second:?}"), &[word]);
                }
                let word = adapt.of(terms, word);
                SymbolicValue::defined(terms, word)
            }
            EnvironmentInput::Attribute(base, component, half) => {
                let word = environment::attribute(terms, base, component);
                let word = if half { environment::low(terms, word, 16) } else { word };
                SymbolicValue::defined(terms, word)
            }
            EnvironmentInput::Varying { location, offset, ij, half } => {
                let mut operands: SmallVec<[SymbolicValue; 3]> = SmallVec::new();
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
                let word = environment::varying(machine.terms, at, ij, half);
                SymbolicValue::defined(machine.terms, word)
            }
            EnvironmentInput::Const { word, offset, half } => {
                let mut index = terms.constant(32, word.into());
                if let Some(row) = offset {
                    let offset = machine.read(row);
                    index = machine.terms.add(32, index, offset.bits);
                }
                let word = self.constants.read(machine, launch, index);
                let word = if half { environment::low(machine.terms, word, 16) } else { word };
                SymbolicValue::defined(machine.terms, word)
            }
            EnvironmentInput::RunsPreamble => {
                let bit = environment::runs_preamble(terms);
                let word = terms.zext(1, 32, bit);
                SymbolicValue::defined(terms, word)
            }
            EnvironmentInput::Helper => {
                let helper = environment::helper_now(machine, launch);
                let word = machine.terms.zext(1, 32, helper);
                SymbolicValue::defined(machine.terms, word)
            }
        }
    }

    fn across<O: Oracle>(&self, site: EventSite, op: &Lanes, machine: &mut SymbolicMachine<'_, O>) {
        for row in op.condition_rows() {
            let value = machine.read(row);
            let undefined = value.any_free(machine.terms);
            let defined = machine.terms.not(1, undefined);
            machine.demand(defined, lanes::UNDECIDED);
        }
        match op.kind {
            LaneKind::VoteEqual { float } => {
                let args = op.rows.iter().map(|&(_, src)| self.observed(src, machine)).collect();
                let operation = LaneOperation::VoteEqual(float);
                let value = lanes::across(machine, site, operation, args, LaneResult::Uniform, 1);
                if let Some(&(dst, _)) = op.rows.first() {
                    result(machine, dst, value);
                }
                return;
            }
            LaneKind::InverseBallot => {
                // A word for each 32 lanes.
                let args: SmallVec<[SymbolicValue; 4]> =
                    op.rows.iter().map(|&(_, src)| self.observed(src, machine)).collect();
                let value = lanes::across(machine, site, LaneOperation::InverseBallot, args, LaneResult::Own, 1);
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

    fn across_row<O: Oracle>(
        &self,
        site: EventSite,
        kind: LaneKind,
        src: R,
        machine: &mut SymbolicMachine<'_, O>,
    ) -> SymbolicValue {
        match kind {
            LaneKind::Elect { any } => {
                let any = any && machine.oracle.are_both_nir();
                let operation = LaneOperation::Elect(if any { Elected::Any } else { Elected::First });
                let elected = lanes::across(machine, site, operation, smallvec![], LaneResult::Own, 1);
                preamble::elect(machine, elected);
                elected
            }
            LaneKind::VoteAny | LaneKind::VoteAll => {
                let value = self.observed(src, machine);
                let bit = lanes::truth(machine, value);
                lanes::vote(machine, site, matches!(kind, LaneKind::VoteAny), bit)
            }
            LaneKind::Ballot { word, relaxed } => {
                let value = self.observed(src, machine);
                let bit = lanes::truth(machine, value);
                let mask = lanes::ballot(machine, site, word, bit);
                match relaxed && machine.oracle.are_both_nir() {
                    true => {
                        let bits = environment::apply(machine.terms, 32, "relaxed ballot", &[mask.bits]);
                        SymbolicValue { bits, ..mask }
                    }
                    false => mask,
                }
            }
            LaneKind::LaneNumber { last } => {
                lanes::across(machine, site, LaneOperation::LaneNumber { last }, smallvec![], LaneResult::Uniform, 32)
            }
            LaneKind::VoteEqual { .. } | LaneKind::InverseBallot => unreachable!("of all rows"),
            LaneKind::QuadVote { all } => {
                let value = self.observed(src, machine);
                let bit = lanes::truth(machine, value);
                lanes::across(machine, site, LaneOperation::QuadVote { all }, smallvec![bit], LaneResult::Own, 1)
            }
            LaneKind::Derivative { bit, fine, half } => {
                let value = self.observed(src, machine);
                lanes::across(
                    machine,
                    site,
                    LaneOperation::Derivative { bit, fine, half },
                    smallvec![value],
                    LaneResult::Other,
                    if half { 16 } else { 32 },
                )
            }
            LaneKind::ReadFirst | LaneKind::ReadLast => {
                let value = self.observed(src, machine);
                let which = if matches!(kind, LaneKind::ReadFirst) { OneLane::First } else { OneLane::Last };
                lanes::of_one_lane(machine, site, which, value)
            }
            LaneKind::ReadLane(number) => {
                let (value, number) = (self.observed(src, machine), self.observed(number, machine));
                lanes::of_lane(machine, site, value, number)
            }
            LaneKind::ReadWhere(predicate) => {
                let (value, predicate) = (self.observed(src, machine), self.observed(predicate, machine));
                let predicate = lanes::truth(machine, predicate);
                lanes::read_where(machine, site, value, predicate)
            }
            LaneKind::Shuffle { mode, index, uniform } => {
                let (value, index) = (self.observed(src, machine), self.observed(index, machine));
                let shuffle = match mode {
                    Shuffle::Index => ShuffleOperation::Index,
                    Shuffle::Xor => ShuffleOperation::Xor,
                    Shuffle::Up => ShuffleOperation::Up,
                    Shuffle::Down => ShuffleOperation::Down,
                    Shuffle::Rotate(cluster) => ShuffleOperation::Rotate(cluster),
                };
                lanes::shuffled(machine, site, shuffle, value, index, uniform)
            }
            LaneKind::Swap(flip) => {
                let value = self.observed(src, machine);
                lanes::swapped(machine, site, flip, value)
            }
            LaneKind::Broadcast(index) => {
                let (value, index) = (self.observed(src, machine), self.observed(index, machine));
                lanes::of_quad(machine, site, value, index)
            }
            LaneKind::BroadcastActive { cluster, kept } => {
                let (value, kept) = (self.observed(src, machine), self.observed(kept, machine));
                lanes::broadcast_active(machine, site, cluster, value, kept)
            }
            LaneKind::Scan(scan) => {
                let value = self.observed(src, machine);
                let identity = machine.terms.constant(32, scan.identity.into());
                let mut args: SmallVec<[SymbolicValue; 3]> =
                    smallvec![value, SymbolicValue::defined(machine.terms, identity)];
                if let Some(row) = scan.exclusive {
                    args.push(self.observed(row, machine));
                }
                let part = match scan.result {
                    ScanResult::Reduce => ScanPart::Reduction,
                    ScanResult::Inclusive => ScanPart::Inclusive,
                    ScanResult::Exclusive => ScanPart::Exclusive,
                };
                let scan = LaneScan { kernel: scan.kernel, step: scan.step, cluster: scan.cluster, part };
                lanes::scan(machine, site, &scan, &args)
            }
        }
    }

    fn target<O: Oracle>(&self, access: &MemoryAccess, machine: &mut SymbolicMachine<'_, O>) -> AccessTarget {
        let mut operands: SmallVec<[SymbolicValue; 6]> = SmallVec::new();
        let mut read = |machine: &mut SymbolicMachine<'_, O>, row: R| {
            let value = machine.read(row);
            operands.push(value);
            value.bits
        };
        let binding = resource(
            machine,
            access.binding.unwrap_or(ResourceOperand { set: None, base: 0, row: None, bound: false, shared: false }),
            &mut read,
        );
        let mut is_same = None;
        let place = match &access.place {
            AccessAddress::None => AccessPlace::Texel(SmallVec::new()),
            &AccessAddress::Linear { base, index, scale, offset, bytes } => {
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
                if let Some(bytes) = bytes {
                    let bytes = read(machine, bytes);
                    is_same = Some(byte_offset::is_of_element(&mut *machine.terms, bytes, index, scale));
                }
                AccessPlace::Linear { base, index, scale, offset }
            }
            AccessAddress::Texel(rows, sample) => {
                let sample = sample.filter(|_| machine.oracle.are_both_nir());
                let rows = rows.iter().copied().chain(sample);
                let coordinates: SmallVec<[Term; 4]> = rows.map(|row| read(machine, row)).collect();
                memory::texel(machine, coordinates, access.view)
            }
        };
        let free = machine.any_free(&operands);
        let volatile = access.volatile && machine.oracle.names_volatile();
        if access.cacheable {
            let resource = machine.swept(binding);
            machine.oracle.cached_load(resource);
        }
        let target = AccessTarget::new(machine.terms, (access.space, binding), place, free, is_same);
        AccessTarget { volatile, observed: access.volatile, ..target }
    }

    fn access<O: Oracle>(&self, site: EventSite, access: &MemoryAccess, machine: &mut SymbolicMachine<'_, O>) {
        let target = self.target(access, machine);
        let bits = access.bits;
        if let Some(alignment) = access.alignment.filter(|_| machine.oracle.are_both_nir())
            && let Some(address) = target.address(machine.terms, bits)
        {
            let (address, path) = (machine.swept(address), machine.path());
            let address = (address, matches!(access.action, Action::Load));
            if let Some(holds) = machine.oracle.alignment(machine.terms, path, address, alignment) {
                machine.demand(holds, "an address that does not have the alignment of the access");
            }
        }
        match access.action {
            Action::Load => {
                for &(number, dst) in &access.rows {
                    let value = memory::load(machine, site, &target, number, bits);
                    result(machine, dst, value);
                }
            }
            Action::Store => {
                let data: SmallVec<[(u32, SymbolicValue); 4]> =
                    access.rows.iter().map(|&(number, src)| (number, self.observed(src, machine))).collect();
                let helper = environment::helper_now(machine, self.code.launch);
                memory::store(machine, site, &target, bits, &data, helper);
            }
            Action::Atomic { op, data, compare } => {
                let compare = if op.compares() { &compare[..] } else { &[] };
                let words = if bits == 64 { 2 } else { 1 };
                let operands: SmallVec<[SymbolicValue; 4]> = data
                    .iter()
                    .take(words)
                    .chain(compare.iter().take(words))
                    .map(|&row| self.observed(row, machine))
                    .collect();
                let helper = environment::helper_now(machine, self.code.launch);
                let results = memory::atomic(machine, site, &target, (op, bits), &operands, helper);
                for (&(_, dst), value) in access.rows.iter().zip(results) {
                    result(machine, dst, value);
                }
            }
            Action::CopyToConsts { first, words } => {
                let place = machine.terms.constant(32, first.into());
                let place = SymbolicValue::defined(machine.terms, place);
                memory::copy_to_constants(machine, site, &target, place, words);
                preamble::copy(machine, &self.constants, site, &target, (first, words));
            }
            Action::Size => {
                let both_nir = machine.oracle.are_both_nir();
                for &(number, dst) in &access.rows {
                    let word = match access.space {
                        AddressSpace::Image => {
                            let property = access.size_property(number, both_nir);
                            memory::size_component(machine.terms, target.binding, property)
                        }
                        _ => memory::buffer_size(machine.terms, target.binding),
                    };
                    let value = SymbolicValue::defined(machine.terms, word);
                    result(machine, dst, value);
                }
            }
        }
    }

    fn texture<O: Oracle>(&self, site: EventSite, texture: &Texture, machine: &mut SymbolicMachine<'_, O>) {
        let mut read = |machine: &mut SymbolicMachine<'_, O>, row: R| machine.read(row).bits;
        let mut beyond = machine.terms.constant(1, 0);
        let mut number = |machine: &mut SymbolicMachine<'_, O>, of: ResourceOperand| {
            let identity = resource(machine, of, &mut read);
            if !of.bound {
                return identity;
            }
            let index = machine.terms.extract(64, identity, 0, 32);
            let low = environment::low(machine.terms, index, op::BOUND.trailing_zeros());
            let in_range = machine.terms.eq(32, low, index);
            let out_of_range = machine.terms.not(1, in_range);
            beyond = machine.terms.or(1, beyond, out_of_range);
            memory::resource(machine.terms, None, low)
        };
        let texture_name = number(machine, texture.texture);
        let sampler = number(machine, texture.sampler);
        let mut operands = SmallVec::new();
        for &(slot, operand) in &texture.operands {
            let term = match operand {
                TextureOperand::Row(row) => read(machine, row),
                TextureOperand::Bits(bits) => machine.terms.constant(32, bits.into()),
            };
            operands.push((slot, term));
        }
        let mut query = TextureQuery {
            kind: texture.kind,
            texture: texture_name,
            sampler,
            operands,
            shape: None,
            derivatives: None,
        };
        query.simplify(machine);
        if texture.derivatives {
            query.derive(machine, site);
        }
        for &(component, dst) in &texture.results {
            let mut word = environment::texture_result(machine.terms, &query, component, texture.ty);
            if texture.levels {
                word = convert::level(machine.terms, texture.ty.is_half(), word);
            }
            let mut value = SymbolicValue::defined(machine.terms, word);
            if machine.terms.as_constant(beyond) != Some(0) {
                let unknown = machine.unknown();
                value = machine.choose(beyond, unknown, value);
            }
            result(machine, dst, value);
        }
    }
}
