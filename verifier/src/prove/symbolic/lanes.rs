//! Cross-lane operations, as events with names that do not depend on the language.

use super::environment::nonzero;
use super::run::SymbolicMachine;
use super::{Event, EventContext, EventKind, EventSite, Oracle, SymbolicValue};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::operations::Two;
use crate::semantics::operations::undefined::free_truth;
use crate::semantics::terms::{Op, Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use smallvec::{SmallVec, smallvec};

/// The result of a cross-lane operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LaneResult {
    /// The same for all lanes.
    Uniform,
    /// Each lane has its own.
    Own,
    /// Each lane has its own, which may depend on an inactive lane.
    Other,
    /// Each lane has its own, of an active lane; undefined if that lane's value is.
    There,
    /// The same for all lanes; undefined if no lane is selected.
    Missing,
}

/// Executes a cross-lane operation with a result of `bits` bits; returns a word.
pub fn across<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    what: String,
    args: SmallVec<[SymbolicValue; 4]>,
    result: LaneResult,
    bits: u8,
) -> SymbolicValue {
    let path = machine.path();
    let uniform = matches!(result, LaneResult::Uniform | LaneResult::Missing);
    let may_miss = matches!(result, LaneResult::Other | LaneResult::Missing);
    let mut widths: SmallVec<[u8; 4]> = smallvec![bits, 1];
    if may_miss && bits < 32 {
        widths.push(32);
    }
    let event = Event {
        site,
        kind: EventKind::Lanes,
        what,
        path,
        args,
        results: widths,
        uniform,
        context: EventContext::default(),
    };
    let results = machine.event(event);
    let mut word = machine.terms.zext(bits.into(), 32, results[0]);
    // The value of an inactive lane is not narrow: all of its bits are undefined.
    if may_miss && bits < 32 {
        word = machine.terms.ite(32, results[1], results[2], word);
    }
    match result {
        LaneResult::Uniform | LaneResult::Own => SymbolicValue::defined(machine.terms, word),
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
    what: String,
    value: SymbolicValue,
    others: &[SymbolicValue],
    result: LaneResult,
) -> SymbolicValue {
    let node = machine.terms.node(value.bits);
    let (inner, bits) = match node.op {
        Op::Zext if !machine.may_be_joined() || left_out(Guard::LaneWidth) => {
            (node.args[0], machine.terms.width(node.args[0]))
        }
        _ => (value.bits, 32),
    };
    let free = machine.terms.extract(32, value.free, 0, bits);
    let mut args: SmallVec<[SymbolicValue; 4]> = smallvec![SymbolicValue { bits: inner, free }];
    args.extend(others.iter().copied());
    across(machine, site, what, args, result, bits as u8)
}

/// Executes a read from an active lane. If all of them have the same value, the result has its bits; those that are undefined are the
/// same in all lanes.
pub fn of_one_lane<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    what: &str,
    value: SymbolicValue,
) -> SymbolicValue {
    let is_same = machine.is_same_for_all(site, value);
    if is_same && machine.terms.as_constant(value.free) == Some(0) {
        return value;
    }
    let read = moved(machine, site, what.to_owned(), value, &[], LaneResult::Uniform);
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

/// Executes a vote on a truth value. All lanes say yes if none says no, so that both kinds are one event.
pub fn vote<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    any: bool,
    bit: SymbolicValue,
) -> SymbolicValue {
    let of_any = |machine: &mut SymbolicMachine<'_, O>, bit| {
        across(machine, site, "vote any".to_owned(), smallvec![bit], LaneResult::Uniform, 1)
    };
    if any {
        return of_any(machine, bit);
    }
    let no = SymbolicValue { bits: machine.terms.not(1, bit.bits), free: bit.free };
    let one_says_no = of_any(machine, no).bits;
    let one_says_no = machine.terms.extract(32, one_says_no, 0, 1);
    let all = machine.terms.not(1, one_says_no);
    let word = machine.terms.zext(1, 32, all);
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
        format!("broadcast active {cluster}"),
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
    let what = format!("scan {combined:?} {:?} of {} in {}", scan.part, scan.step, scan.cluster);
    let args = args
        .iter()
        .map(|&value| {
            let part = [value.bits, value.free].map(|term| machine.terms.extract(32, term, 0, bits));
            SymbolicValue { bits: part[0], free: part[1] }
        })
        .collect();
    let result =
        if scan.part == ScanPart::Reduction && scan.cluster == 64 { LaneResult::Uniform } else { LaneResult::Own };
    across(machine, site, what, args, result, bits as u8)
}
