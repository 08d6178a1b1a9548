//! The promises of two programs in nir about their operations and accesses: that sums do not overflow, that addresses
//! are aligned, that floats are exact. A pass may weaken the first two and may not strengthen them; it may add the
//! third and may not drop it.
//!
//! A sum that breaks its promise is poison, as in LLVM: a value that depends on it may be anything. In the program
//! after, its value is another one that nothing is known of; in the program before, the proof chooses: the sum itself,
//! or the value that the operation of the program after has on the same operands. Both choices are tried: first all
//! operations of the program before have the value of the other program, then only those that had a partner there.
//!
//! An address of the program after is aligned if its bits show it, or if an access of the program before on the same
//! path promises as much of the same address; otherwise it has to be proved. A load may be executed on more paths than
//! before: its result is not used there. So all loads of the program before from the address are to promise as much.
//!
//! An operation that need not be exact may become another one in the next pass. So one of the program after is not
//! equal to an exact one of the program before.

use super::sweep::Side;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::operations::wraps::NoWrap;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Op, Term, Terms, VariableKind};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The operations of the program before whose broken promises have the value of the program after.
#[derive(Clone, Debug, Default)]
pub(super) enum Kept {
    /// All.
    #[default]
    All,
    /// The operations at these places.
    At(FxHashSet<u32>),
}

/// An alignment that an access promises.
struct Alignment {
    address: Term,
    multiple: u32,
    offset: u32,
    is_load: bool,
    /// The conditions under which the access is executed.
    path: SmallVec<[Term; 4]>,
}

/// The promises of both programs in a segment.
#[derive(Default)]
pub(super) struct Promises {
    kept: Kept,
    /// The operations of the program before that had a partner in the program after.
    pub(super) partners: FxHashSet<u32>,
    sums: FxHashMap<(NoWrap, [Term; 2]), SmallVec<[u32; 1]>>,
    taken: FxHashMap<u32, u32>,
    alignments: Vec<Alignment>,
    /// The results of operations on floats that are exact, of the program before, and of those that need not be: in
    /// all segments.
    exact: FxHashSet<Term>,
    inexact: FxHashSet<Term>,
}

impl Promises {
    /// The promises of two programs. `kept`: see [`Kept`].
    pub(super) fn new(kept: Kept) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Begins a segment.
    pub(super) fn begin(&mut self) {
        self.sums.clear();
        self.taken.clear();
        self.alignments.clear();
    }

    /// The result of an operation at `place` that promises not to overflow; `broken`, of one bit, is 1 where it does.
    pub(super) fn sum(
        &mut self,
        terms: &mut Terms,
        side: Side,
        kind: VariableKind,
        (promise, place): (NoWrap, u32),
        operands: [Term; 2],
        (broken, result): (Term, Term),
    ) -> Term {
        if terms.as_constant(broken) == Some(0) {
            return result;
        }
        let width = terms.width(result);
        let of_place = |terms: &mut Terms, place: u32| {
            let name = terms.name(&format!("{} that overflows, at {place}", promise.op.name()));
            terms.apply(width, name, &operands)
        };
        let poison = match side {
            Side::Source => {
                let is_kept = match &self.kept {
                    Kept::All => true,
                    Kept::At(places) => places.contains(&place),
                };
                if !is_kept {
                    return result;
                }
                self.sums.entry((promise, operands)).or_default().push(place);
                of_place(terms, place)
            }
            Side::Target if left_out(Guard::PromisedSum) => return result,
            Side::Target => {
                let places = self.sums.get(&(promise, operands)).map_or(&[][..], |places| places);
                let partner = places.iter().copied().find(|partner| match self.taken.get(partner) {
                    Some(&by) => by == place,
                    None => true,
                });
                match partner {
                    Some(partner) => {
                        self.taken.insert(partner, place);
                        self.partners.insert(partner);
                        of_place(terms, partner)
                    }
                    None => {
                        terms.variable_of(kind, width, &format!("{} that overflows, at {place}", promise.op.name()))
                    }
                }
            }
        };
        terms.ite(width, broken, poison, result)
    }

    /// Records the alignment of an address, of 64 bits, where an access of the program before promises it. Of the
    /// program after, returns the condition that is to be proved, if there is one.
    pub(super) fn alignment(
        &mut self,
        terms: &mut Terms,
        side: Side,
        path: Term,
        (address, is_load): (Term, bool),
        [multiple, offset]: [u32; 2],
    ) -> Option<Term> {
        let path = terms.conjuncts(path).into_iter().collect::<SmallVec<[Term; 4]>>();
        if side == Side::Source {
            self.alignments.push(Alignment { address, multiple, offset, is_load, path });
            return None;
        }
        let implies = |known: &&Alignment| {
            known.multiple.is_multiple_of(multiple) && known.offset % multiple == offset % multiple
        };
        let is_here = |known: &&Alignment| known.path.iter().all(|condition| path.contains(condition));
        let there = || self.alignments.iter().filter(|known| known.address == address);
        let loads = || there().filter(|known| known.is_load);
        let is_promised = there().any(|known| implies(&known) && is_here(&known))
            || is_load && loads().next().is_some() && loads().all(|known| implies(&known));
        if is_promised || left_out(Guard::PromisedAlignment) {
            return None;
        }
        let bits = multiple.trailing_zeros();
        let low = terms.extract(64, address, 0, bits);
        let expected = terms.constant(bits, u64::from(offset % multiple));
        Some(terms.eq(bits, low, expected))
    }

    /// Records the result of a float operation. Returns false if the program after computes it by an operation that
    /// need not be exact, and the program before by one that must be.
    pub(super) fn result(&mut self, terms: &Terms, side: Side, result: Term, exact: bool) -> bool {
        if matches!(terms.node(result).op, Op::Constant(_) | Op::Variable(_)) {
            return true;
        }
        match side {
            Side::Source => {
                let set = if exact { &mut self.exact } else { &mut self.inexact };
                set.insert(result);
                true
            }
            Side::Target => exact || self.inexact.contains(&result) || !self.exact.contains(&result),
        }
    }
}
