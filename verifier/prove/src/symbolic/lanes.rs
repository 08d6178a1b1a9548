//! Cross-lane operations, as events with names that do not depend on the language.

use super::environment::{apply, nonzero};
use super::lane_terms::LaneMap;
use super::operation::{LaneOperation, ShuffleOperation};
use super::run::SymbolicMachine;
use super::wave::Selection;
use super::{Event, EventContext, EventKind, EventSite, Oracle, SymbolicValue};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::operations::Two;
use ir3_semantics::operations::undefined::free_truth;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Op, Term, Terms, VariableKind};
use smallvec::{SmallVec, smallvec};

/// The reason, worded as in runs, why a cross-lane operation has no meaning.
pub const UNDECIDED: &str = "a cross-lane operation with an undefined lane or condition";

/// The result of a cross-lane operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LaneResult {
    /// The result is the same for all lanes.
    Uniform,
    /// Each lane has its own.
    Own,
    /// Each lane has its own, which may depend on an inactive lane.
    Other,
    /// Each lane has its own, of an active lane; undefined if that lane's value is.
    There,
    /// The result is the same for all lanes; undefined if no lane is selected.
    Missing,
    /// The result is the same for all lanes, and the value of an active lane, as each lane is selected.
    Selected,
}

/// The active lane that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OneLane {
    /// The first one.
    First,
    /// The last one of the first cluster.
    Last,
}

/// Executes a cross-lane operation with a result of `bits` bits; returns a word.
pub fn across<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    operation: LaneOperation,
    args: SmallVec<[SymbolicValue; 4]>,
    result: LaneResult,
    bits: u8,
) -> SymbolicValue {
    let event = event(machine, site, operation, args, result, bits);
    let results = machine.event(event);
    value_of(machine, &results, result, bits)
}

/// Executes an operation whose result is a function of the operands of those lanes in which `selected` is true.
/// `some` makes a bit of its results that is 1 if there are such lanes, and 0 if there are none.
fn of_selected<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    operation: LaneOperation,
    (args, selected): (&[SymbolicValue], SymbolicValue),
    (result, bits): (LaneResult, u8),
    some: impl FnOnce(&mut Terms, &[Term]) -> Term,
) -> SymbolicValue {
    let args = args.iter().copied().chain([selected]).collect();
    let event = Event { selects: true, ..event(machine, site, operation, args, result, bits) };
    let results = machine.event(event);
    let selection = Selection { block: machine.block, path: machine.path(), some: some(machine.terms, &results) };
    machine.selections.push(selection);
    value_of(machine, &results, result, bits)
}

fn event<O: Oracle>(
    machine: &SymbolicMachine<'_, O>,
    site: EventSite,
    operation: LaneOperation,
    args: SmallVec<[SymbolicValue; 4]>,
    result: LaneResult,
    bits: u8,
) -> Event {
    let uniform = matches!(result, LaneResult::Uniform | LaneResult::Missing | LaneResult::Selected);
    let may_miss = matches!(result, LaneResult::Other | LaneResult::Missing | LaneResult::Selected);
    let mut widths: SmallVec<[u8; 4]> = smallvec![bits, 1];
    if may_miss && bits < 32 {
        widths.push(32);
    }
    Event {
        site,
        kind: EventKind::Lanes,
        operation: operation.into(),
        path: machine.path(),
        args,
        results: widths,
        uniform,
        selects: false,
        store: None,
        context: EventContext::default(),
    }
}

/// The word that an operation results in.
fn value_of<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    results: &[Term],
    result: LaneResult,
    bits: u8,
) -> SymbolicValue {
    let may_miss = matches!(result, LaneResult::Other | LaneResult::Missing);
    let mut word = machine.terms.zext(bits.into(), 32, results[0]);
    // The value of an inactive lane is not narrow: all of its bits are undefined.
    if may_miss && bits < 32 {
        word = machine.terms.ite(32, results[1], results[2], word);
    }
    match result {
        LaneResult::Uniform | LaneResult::Own | LaneResult::Selected => SymbolicValue::defined(machine.terms, word),
        LaneResult::Other | LaneResult::Missing => SymbolicValue::free_where(machine.terms, word, results[1]),
        LaneResult::There => {
            let free = machine.terms.sext(1, bits.into(), results[1]);
            SymbolicValue { bits: word, free: machine.terms.zext(bits.into(), 32, free) }
        }
    }
}

/// Executes an operation whose result is the value of some lane. If the words of all lanes have zeros above some bit,
/// the result has them too: if all active lanes run this segment, their words are this term. Lanes from another cut
/// point have other terms.
pub fn moved<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    operation: LaneOperation,
    value: SymbolicValue,
    others: &[SymbolicValue],
    result: LaneResult,
) -> SymbolicValue {
    let (value, bits) = narrow(machine, value);
    let mut args: SmallVec<[SymbolicValue; 4]> = smallvec![value];
    args.extend(others.iter().copied());
    across(machine, site, operation, args, result, bits)
}

/// Executes a move of a value from the lane that a map gives, or from one that is a function of `others`.
pub fn moved_from<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    (map, operation): (Option<LaneMap>, LaneOperation),
    value: SymbolicValue,
    others: &[SymbolicValue],
    result: LaneResult,
) -> SymbolicValue {
    match map.and_then(|map| machine.moved_by(map, value)) {
        Some(moved) => moved,
        None => moved(machine, site, operation, value, others, result),
    }
}

/// Exchanges values in each quad: the lanes' numbers differ in these bits.
pub fn swapped<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    flip: u8,
    value: SymbolicValue,
) -> SymbolicValue {
    let from = (Some(LaneMap::xor(flip.into())), LaneOperation::Swap(flip));
    moved_from(machine, site, from, value, &[], LaneResult::Other)
}

/// Reads the value of a lane of the quad.
pub fn of_quad<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    value: SymbolicValue,
    index: SymbolicValue,
) -> SymbolicValue {
    let map = machine.terms.as_constant(index.bits).map(|index| LaneMap::of_quad(index as u32));
    moved_from(machine, site, (map, LaneOperation::QuadBroadcast), value, &[index], LaneResult::Other)
}

/// Reads the value of a lane whose number is the same in all lanes.
pub fn of_lane<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    value: SymbolicValue,
    number: SymbolicValue,
) -> SymbolicValue {
    let map = machine.terms.as_constant(number.bits).map(|number| LaneMap::lane(number as u32));
    moved_from(machine, site, (map, LaneOperation::ReadLane), value, &[number], LaneResult::Missing)
}

/// Executes a shuffle. `uniform`: its index has to be the same in all lanes, otherwise the result is unknown.
/// Uniformity is a fact of the wave, which one lane cannot determine: it is a function of the index, so the side after
/// may rely on it where the side before does.
pub fn shuffled<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    shuffle: ShuffleOperation,
    value: SymbolicValue,
    index: SymbolicValue,
    uniform: bool,
) -> SymbolicValue {
    let map = machine.terms.as_constant(index.bits).filter(|_| index.is_defined(machine.terms));
    let map = map.and_then(|index| match shuffle {
        ShuffleOperation::Xor => Some(LaneMap::xor(index as u32)),
        ShuffleOperation::Index => Some(LaneMap::lane(index as u32)),
        _ => None,
    });
    let operation = LaneOperation::Shuffle(shuffle);
    let moved = moved_from(machine, site, (map, operation), value, &[index], LaneResult::Other);
    if !uniform || machine.terms.as_constant(index.bits).is_some() {
        return moved;
    }
    let same = apply(machine.terms, 1, "the same index in all lanes", &[index.bits]);
    let unknown = machine.unknown();
    machine.choose(same, moved, unknown)
}

/// A value without the zeros that the words of all lanes have on top, and its width: see [`moved`].
fn narrow<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, value: SymbolicValue) -> (SymbolicValue, u8) {
    let node = machine.terms.node(value.bits);
    let (inner, bits) = match node.op {
        Op::Zext if !machine.may_be_joined() || left_out(Guard::LaneWidth) => {
            (node.args[0], machine.terms.width(node.args[0]))
        }
        _ => (value.bits, 32),
    };
    let free = machine.terms.extract(32, value.free, 0, bits);
    (SymbolicValue { bits: inner, free }, bits as u8)
}

/// Executes a ballot: a word of a mask of the lanes in which `bit` is true. It is empty where that is false in all of
/// them.
pub fn ballot<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    word: u32,
    bit: SymbolicValue,
) -> SymbolicValue {
    let is_same = bit.is_defined(machine.terms) && machine.is_same_for_all(site, bit);
    let some = |terms: &mut Terms, results: &[Term]| nonzero(terms, results[0]);
    let mask = of_selected(machine, site, LaneOperation::Ballot(word), (&[], bit), (LaneResult::Uniform, 32), some);
    if !is_same {
        return mask;
    }
    let none = machine.terms.constant(32, 0);
    let word = machine.terms.ite(32, bit.bits, mask.bits, none);
    SymbolicValue::defined(machine.terms, word)
}

/// Executes a read from the first of the lanes in which `bit` is true; undefined if it is true in none.
pub fn read_where<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    value: SymbolicValue,
    bit: SymbolicValue,
) -> SymbolicValue {
    let is_same = value.is_defined(machine.terms) && machine.is_same_for_all(site, value);
    if !is_same {
        if let Some(first) = machine.first_or_none(bit, value) {
            return first;
        }
        return read_selected(machine, site, value, bit, LaneResult::Missing);
    }
    let some = is_any(machine, site, bit);
    let none = machine.terms.not(1, some);
    SymbolicValue::free_where(machine.terms, value.bits, none)
}

/// One bit: true if `bit` is true in some lane that is here.
fn is_any<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, site: EventSite, bit: SymbolicValue) -> Term {
    if let Some(any) = machine.any_with(bit) {
        return any;
    }
    let some = |_: &mut Terms, results: &[Term]| results[0];
    let any = of_selected(machine, site, LaneOperation::VoteAny, (&[], bit), (LaneResult::Uniform, 1), some);
    machine.terms.extract(32, any.bits, 0, 1)
}

fn read_selected<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    value: SymbolicValue,
    bit: SymbolicValue,
    result: LaneResult,
) -> SymbolicValue {
    let (value, bits) = narrow(machine, value);
    let some = |terms: &mut Terms, results: &[Term]| terms.not(1, results[1]);
    of_selected(machine, site, LaneOperation::ReadWhere, (&[value], bit), (result, bits), some)
}

/// Executes a read from an active lane. If all of them have the same value, the result has its bits; those that are
/// undefined are the same in all lanes.
pub fn of_one_lane<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    which: OneLane,
    value: SymbolicValue,
) -> SymbolicValue {
    let is_same = machine.is_same_for_all(site, value);
    let always = machine.terms.constant(1, 1);
    let always = SymbolicValue::defined(machine.terms, always);
    if is_same && value.is_defined(machine.terms) {
        // The value is known, the set of lanes that take part is not.
        if which == OneLane::First && !machine.is_uniform(machine.path()) {
            is_any(machine, site, always);
        }
        return value;
    }
    if !is_same
        && which == OneLane::First
        && let Some(first) = machine.first_with(always.bits, value)
    {
        // As below: the read shows that a lane is here.
        is_any(machine, site, always);
        return first;
    }
    let read = match which {
        OneLane::First => read_selected(machine, site, value, always, LaneResult::Selected),
        OneLane::Last => moved(machine, site, LaneOperation::ReadLast, value, &[], LaneResult::Uniform),
    };
    if !is_same {
        return read;
    }
    let terms = &mut *machine.terms;
    let known = terms.not(32, value.free);
    let known = terms.and(32, value.bits, known);
    let chosen = terms.and(32, read.bits, value.free);
    let bits = terms.or(32, known, chosen);
    SymbolicValue::defined(terms, bits)
}

/// Executes a subgroup vote. `all` is the negation of `any` of the negation, so that both kinds are one event; uniform
/// values need no event.
pub fn vote<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    any: bool,
    bit: SymbolicValue,
) -> SymbolicValue {
    if bit.is_defined(machine.terms) && machine.is_same_for_all(site, bit) {
        let word = machine.terms.zext(1, 32, bit.bits);
        return SymbolicValue::defined(machine.terms, word);
    }
    let result = if any {
        is_any(machine, site, bit)
    } else {
        let no = SymbolicValue { bits: machine.terms.not(1, bit.bits), free: bit.free };
        let one_says_no = is_any(machine, site, no);
        machine.terms.not(1, one_says_no)
    };
    let word = machine.terms.zext(1, 32, result);
    SymbolicValue::defined(machine.terms, word)
}

/// Executes a broadcast in clusters: the result is the value of some lane, or the value that a lane keeps. As in
/// [`moved`], it has zeros above where the words of all lanes have them.
pub fn broadcast_active<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    cluster: u8,
    value: SymbolicValue,
    kept: SymbolicValue,
) -> SymbolicValue {
    let bits = if machine.may_be_joined() && !left_out(Guard::BroadcastWidth) {
        32
    } else {
        let zeros = machine.terms.zeros_on_top(value.bits).min(machine.terms.zeros_on_top(kept.bits));
        32 - zeros.min(31)
    };
    let args = [value, kept].map(|value| value.part(machine.terms, bits));
    across(
        machine,
        site,
        LaneOperation::BroadcastActive(cluster),
        args.into_iter().collect(),
        LaneResult::There,
        bits as u8,
    )
}

/// Returns a truth value as an operand: one bit.
pub fn truth<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, value: SymbolicValue) -> SymbolicValue {
    let width = machine.terms.width(value.bits);
    let bits = nonzero(machine.terms, value.bits);
    SymbolicValue { bits, free: free_truth(machine.terms, width, value.bits, value.free) }
}

/// Demands that a truth value is defined.
pub fn demand_defined<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, truth: SymbolicValue, why: &'static str) {
    let defined = machine.terms.not(1, truth.free);
    let decided = machine.oracle.decided(machine.terms, truth.bits);
    let holds = machine.terms.and(1, defined, decided);
    machine.demand(holds, why);
}

/// Returns a truth value as an operand, and demands that it is defined.
pub fn defined_truth<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, value: SymbolicValue, why: &'static str) -> Term {
    let truth = truth(machine, value);
    demand_defined(machine, truth, why);
    truth.bits
}

/// The result of a scan that is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanPart {
    /// The reduction of a cluster.
    Reduction,
    /// The inclusive scan.
    Inclusive,
    /// The exclusive scan.
    Exclusive,
}

/// A scan or reduction.
pub struct LaneScan {
    /// The operation that combines two values.
    pub kernel: &'static Two,
    /// The number of lanes that have been combined already.
    pub step: u8,
    /// The size of a cluster.
    pub cluster: u8,
    /// The result.
    pub part: ScanPart,
}

/// Returns true if each bit of a term depends only on the same bits of its variables.
fn is_bitwise(terms: &Terms, term: Term) -> bool {
    match terms.node(term).op {
        Op::And | Op::Xor => true,
        Op::Not => matches!(terms.node(terms.node(term).args[0]).op, Op::And | Op::Xor),
        _ => false,
    }
}

/// Executes a scan. `args`: the value, the identity, and for an exclusive scan over clusters the result inside of them.
pub fn scan<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    scan: &LaneScan,
    args: &[SymbolicValue],
) -> SymbolicValue {
    // The operation is named by its term for two variables, which also shows its width.
    let mut operand = |text: &str| -> Term { machine.terms.variable_of(VariableKind::LANE, 32, text) };
    let (a, b) = (operand("first value"), operand("second value"));
    let combined = (scan.kernel.meaning)(machine.terms, a, b);
    let node = machine.terms.node(combined);
    let (inner, mut bits) =
        if node.op == Op::Zext { (node.args[0], machine.terms.width(node.args[0])) } else { (combined, 32) };
    let mut combined = combined;
    // A bitwise combination has zero bits where the words of all lanes do: a bool is one bit in nir, and half a
    // register.
    if is_bitwise(machine.terms, inner) && (!machine.may_be_joined() || left_out(Guard::ScanWidth)) {
        let zeros = args.iter().map(|arg| machine.terms.zeros_on_top(arg.bits)).min().unwrap_or(0);
        bits = bits.min(32 - zeros.min(31));
        let low = machine.terms.extract(32, combined, 0, bits);
        combined = machine.terms.zext(bits, 32, low);
    }
    let operation = LaneOperation::Scan { combined, part: scan.part, step: scan.step, cluster: scan.cluster };
    let args = args
        .iter()
        .map(|&value| {
            let part = [value.bits, value.free].map(|term| machine.terms.extract(32, term, 0, bits));
            SymbolicValue { bits: part[0], free: part[1] }
        })
        .collect();
    let result =
        if scan.part == ScanPart::Reduction && scan.cluster == 64 { LaneResult::Uniform } else { LaneResult::Own };
    across(machine, site, operation, args, result, bits as u8)
}
