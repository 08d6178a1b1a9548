//! Operations across lanes, as events with names that do not depend on the language.

use super::run::Machine;
use super::world::nonzero;
use super::{Event, EventKind, Oracle, Setting, Site, Value};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::operations::Two;
use crate::semantics::operations::undefined::free_truth;
use crate::semantics::terms::{Op, Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use smallvec::{SmallVec, smallvec};

/// What an operation across lanes promises of its result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Result {
    /// One result for all lanes.
    Uniform,
    /// Each lane has its own.
    Own,
    /// Each lane has its own, and it may look at a lane that is not there.
    Other,
    /// Each lane has its own, of a lane that is there, undefined where that is.
    There,
    /// One for all, and there may be none.
    Missing,
}

/// An operation across lanes, of so many bits; its result is a word.
pub fn across<O: Oracle>(
    machine: &mut Machine<'_, O>,
    site: Site,
    what: String,
    args: SmallVec<[Value; 4]>,
    result: Result,
    bits: u8,
) -> Value {
    let path = machine.path();
    let uniform = matches!(result, Result::Uniform | Result::Missing);
    let may_miss = matches!(result, Result::Other | Result::Missing);
    let mut widths: SmallVec<[u8; 4]> = smallvec![bits, 1];
    if may_miss && bits < 32 {
        widths.push(32);
    }
    let event =
        Event { site, kind: EventKind::Lanes, what, path, args, results: widths, uniform, setting: Setting::default() };
    let results = machine.event(event);
    let mut word = machine.terms.zext(bits.into(), 32, results[0]);
    // What comes from a lane that is not there is no narrow value: all of its bits are undefined.
    if may_miss && bits < 32 {
        word = machine.terms.ite(32, results[1], results[2], word);
    }
    match result {
        Result::Uniform | Result::Own => Value::defined(machine.terms, word),
        Result::Other | Result::Missing => Value::free_where(machine.terms, word, results[1]),
        Result::There => {
            let free = machine.terms.sext(1, bits.into(), results[1]);
            Value { bits: word, free: machine.terms.zext(bits.into(), 32, free) }
        }
    }
}

/// An operation whose result is the value of some lane. What all lanes' words have in common, zeros above, it has too: if all lanes that
/// are here run this segment, their words are this term. Lanes from another cut point have other terms.
pub fn moved<O: Oracle>(
    machine: &mut Machine<'_, O>,
    site: Site,
    what: String,
    value: Value,
    others: &[Value],
    result: Result,
) -> Value {
    let node = machine.terms.node(value.bits);
    let (inner, bits) = match node.op {
        Op::Zext if !machine.is_met() || left_out(Guard::LaneWidth) => {
            (node.args[0], machine.terms.width(node.args[0]))
        }
        _ => (value.bits, 32),
    };
    let free = machine.terms.extract(32, value.free, 0, bits);
    let mut args: SmallVec<[Value; 4]> = smallvec![Value { bits: inner, free }];
    args.extend(others.iter().copied());
    across(machine, site, what, args, result, bits as u8)
}

/// A broadcast in clusters: the result is the value of some lane, or what a lane keeps. As for [`moved`], it has zeros above where all
/// lanes' words have them.
pub fn broadcast_active<O: Oracle>(
    machine: &mut Machine<'_, O>,
    site: Site,
    cluster: u8,
    value: Value,
    kept: Value,
) -> Value {
    let bits = if machine.is_met() && !left_out(Guard::BroadcastWidth) {
        32
    } else {
        let zeros = machine.terms.zeros_on_top(value.bits).min(machine.terms.zeros_on_top(kept.bits));
        32 - zeros.min(31)
    };
    let args = [value, kept].map(|value| value.part(machine.terms, bits));
    across(machine, site, format!("broadcast active {cluster}"), args.into_iter().collect(), Result::There, bits as u8)
}

/// A truth value as an operand: one bit.
pub fn truth<O: Oracle>(machine: &mut Machine<'_, O>, value: Value) -> Value {
    let width = machine.terms.width(value.bits);
    let bits = nonzero(machine.terms, value.bits);
    Value { bits, free: free_truth(machine.terms, width, value.bits, value.free) }
}

/// Which of the results of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanPart {
    /// What all lanes of a cluster make.
    Reduction,
    /// Up to the lane.
    Inclusive,
    /// In front of the lane.
    Exclusive,
}

/// A scan or reduction of values of so many bits.
pub struct Scan {
    /// What combines two.
    pub kernel: &'static Two,
    /// Lanes that have been combined already.
    pub step: u8,
    /// Lanes after which it begins again.
    pub cluster: u8,
    /// The result.
    pub part: ScanPart,
}

/// Returns true if each bit of a term depends on the same bits of its variables only.
fn is_bitwise(terms: &Terms, term: Term) -> bool {
    match terms.node(term).op {
        Op::And | Op::Xor => true,
        Op::Not => matches!(terms.node(terms.node(term).args[0]).op, Op::And | Op::Xor),
        _ => false,
    }
}

/// A scan. `args` are the value, what to begin with, and what an exclusive scan over clusters has from inside of them.
pub fn scan<O: Oracle>(machine: &mut Machine<'_, O>, site: Site, scan: &Scan, args: &[Value]) -> Value {
    // What combines is known by what it makes of two values, which also tells how wide they are.
    let mut operand = |text: &str| -> Term { machine.terms.variable_of(VariableKind::LANE, 32, text) };
    let (a, b) = (operand("first value"), operand("second value"));
    let combined = (scan.kernel.meaning)(machine.terms, a, b);
    let node = machine.terms.node(combined);
    let (inner, mut bits) =
        if node.op == Op::Zext { (node.args[0], machine.terms.width(node.args[0])) } else { (combined, 32) };
    let mut combined = combined;
    // Bits that are combined one by one are 0 where they are in all lanes' words: a bool is one bit in nir, and half a register.
    if is_bitwise(machine.terms, inner) && (!machine.is_met() || left_out(Guard::ScanWidth)) {
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
            Value { bits: part[0], free: part[1] }
        })
        .collect();
    let result = if scan.part == ScanPart::Reduction && scan.cluster == 64 { Result::Uniform } else { Result::Own };
    across(machine, site, what, args, result, bits as u8)
}
