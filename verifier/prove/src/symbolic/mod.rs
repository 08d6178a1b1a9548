//! Symbolic execution: programs run on terms instead of constants.
//!
//! The input is the interpreter's: a decoded program ([`interp::nir`](ir3_semantics::interp::nir),
//! [`interp::ir3`](ir3_semantics::interp::ir3)). Its operations have the same definitions, in the domain of
//! [terms](ir3_semantics::terms). Execution follows *one* arbitrary lane from one *cut point* (the entry, or a loop
//! header) to the next ones. Between cut points the program is acyclic. So each block is executed once, under its path
//! condition; where control-flow paths merge, values are selected by the conditions of the edges.
//!
//! One lane depends on the others in three ways. All of them are *events* that an [`Oracle`] answers:
//! - Cross-lane operations: the result depends on the operands of all active lanes.
//! - Memory: other lanes see stores. The state of a memory is a *version*, which belongs to the wave. Versions follow
//!   each other in the order of the blocks in the layout, which is the order in which the wave runs them ([`run`]). At
//!   barriers and fences other waves may write, so each is followed by a new version.
//! - Shared registers, which hold values that any lane wrote.
//!
//! Undefined values (see `semantics::undefined`): in the program after a pass, an undefined value is a fresh variable,
//! so a proof holds for every value it may have. In the program before the pass the proof may choose the value
//! ([`Oracle::unknown`]); and each value has, in addition to its bits, a mask of the bits that may be anything,
//! independently at each use.

mod environment;
mod forwarding;
mod graph;
mod ir3;
mod lane_terms;
mod lanes;
mod memory;
mod nir;
mod operation;
mod preamble;
mod recut;
pub mod run;
mod scratch;
mod segment;
mod sinking;
mod site;
mod wave;

pub use environment::{HELPER, VariableFacts, is_helper, system_value, version_kind};
pub use graph::{Graph, GraphLoop};
pub use ir3::Ir3;
pub use lane_terms::LaneTerms;
pub use nir::Nir;
pub use operation::{EventOperation, MemoryOperation};
pub use recut::RecutProgram;
pub use run::EntryStores;
pub use segment::{Run, Transition};
pub use site::EventSite;
pub use wave::{Goals, leave_convergently};

use ir3_semantics::arithmetic::concrete::mask;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions::Uses;
use ir3_semantics::environment::env::{CONST_WORDS, Launch};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::environment::sync::Sync;
use ir3_semantics::interp::{OutputSlot, Places};
use ir3_semantics::operations::wraps::NoWrap;
use ir3_semantics::terms::{Op, Term, Terms, VariableKind};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::ops::Range;
use std::rc::Rc;

/// A location: a row of nir, a slot of ir3, or one of the pseudo-slots below.
pub type Slot = u32;

/// Slots that are not storage of the program.
pub mod slot {
    use super::Slot;
    use ir3_semantics::environment::memory::Space;

    /// The first pseudo-slot.
    const FIRST: Slot = 1 << 30;
    /// True if the lane was demoted: 1 bit.
    pub const DEMOTED: Slot = FIRST;
    /// The version of the constant file.
    pub const CONSTANTS: Slot = FIRST + 1;

    /// The version of a memory.
    pub const fn memory(space: Space) -> Slot {
        FIRST + 2 + space as Slot
    }

    /// A component of an output.
    pub const fn output(base: u16, component: u8) -> Slot {
        FIRST + 0x10_0000 + (base as Slot) * 8 + component as Slot
    }

    /// A store that is sunk out of its loop: the flag that the lane executes it (0 or 1), or with `value` the stored
    /// value.
    pub const fn pending(number: u32, value: bool) -> Slot {
        FIRST + 0x2000_0000 + 2 * number + value as Slot
    }

    /// Returns true if `slot` holds the flag that a lane has a pending store.
    pub const fn is_pending(slot: Slot) -> bool {
        slot >= FIRST + 0x2000_0000 && slot < FIRST + 0x2001_0000
    }

    /// A word of the lane's scratch memory.
    pub const fn scratch(word: u32) -> Slot {
        FIRST + 0x1000_0000 + word
    }

    /// Returns true if `slot` is the version of a memory or of the constant file.
    pub const fn is_version(slot: Slot) -> bool {
        slot > DEMOTED && slot < FIRST + 0x10
    }

    /// The order of barriers and fences, modelled as stores to a memory of their own.
    pub const SYNCHRONIZATION: Slot = FIRST + 7;

    /// All slots that hold versions.
    pub fn versions() -> impl Iterator<Item = Slot> {
        CONSTANTS..SYNCHRONIZATION + 1
    }
}

/// The value of a location: a word, and a mask of its undefined bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SymbolicValue {
    /// The bits: 32 of them in storage, any number elsewhere. Where a bit is free, this is the value that was chosen
    /// for it.
    pub bits: Term,
    /// A mask of the same width: the bits that are undefined and may be anything, independent of the other bits. See
    /// [`semantics::undefined`](ir3_semantics::operations::undefined).
    pub free: Term,
}

impl SymbolicValue {
    /// A value that is undefined where `free`, of one bit, is 1.
    pub fn free_where(terms: &mut Terms, bits: Term, free: Term) -> Self {
        let width = terms.width(bits);
        Self { bits, free: terms.sext(1, width, free) }
    }

    /// A value without free bits.
    pub fn defined(terms: &mut Terms, bits: Term) -> Self {
        let width = terms.width(bits);
        Self { bits, free: terms.constant(width, 0) }
    }

    /// Replaces the high half of the word, or the low half, by the low half of `half`.
    pub fn with_half(self, terms: &mut Terms, high: bool, half: SymbolicValue) -> Self {
        let mut join = |own: Term, half: Term| {
            let half = terms.extract(32, half, 0, 16);
            let own = terms.extract(32, own, if high { 0 } else { 16 }, 16);
            if high { terms.concat(16, half, 16, own) } else { terms.concat(16, own, 16, half) }
        };
        Self { bits: join(self.bits, half.bits), free: join(self.free, half.free) }
    }

    /// Returns one half, as a word.
    pub fn half(self, terms: &mut Terms, low: u32) -> Self {
        let mut part = |term: Term| {
            let half = terms.extract(32, term, low, 16);
            terms.zext(16, 32, half)
        };
        Self { bits: part(self.bits), free: part(self.free) }
    }

    /// Returns the low `bits` bits, as a value of that width.
    pub fn part(self, terms: &mut Terms, bits: u32) -> Self {
        Self { bits: terms.extract(32, self.bits, 0, bits), free: terms.extract(32, self.free, 0, bits) }
    }

    /// Returns the low `bits` bits, zero-extended to a word.
    pub fn low(self, terms: &mut Terms, bits: u32) -> Self {
        Self { bits: environment::low(terms, self.bits, bits), free: environment::low(terms, self.free, bits) }
    }

    /// Returns one bit: 1 if any bit is free.
    pub fn any_free(&self, terms: &mut Terms) -> Term {
        let node = terms.node(self.free);
        if node.op == Op::Sext && terms.width(node.args[0]) == 1 {
            return node.args[0];
        }
        environment::nonzero(terms, self.free)
    }

    /// Returns true if the term itself shows that all bits are free.
    pub fn is_free(&self, terms: &Terms) -> bool {
        terms.as_constant(self.free) == Some(mask(terms.width(self.free)))
    }

    /// Returns true if the term itself shows that no bit is free.
    pub fn is_defined(&self, terms: &Terms) -> bool {
        terms.as_constant(self.free) == Some(0)
    }
}

/// The start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    /// The entry of the program.
    Entry,
    /// A loop header, by its number in [`Graph::loops`].
    Header(u32),
}

impl Cut {
    /// The kind of a variable in a segment that starts here. Code before the first loop is executed
    /// once.
    pub fn kind(self, of: VariableKind) -> VariableKind {
        match self {
            Self::Entry => of,
            Self::Header(_) => of.passing(),
        }
    }
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Goal {
    /// A loop header.
    Header(u32),
    /// The end of the program.
    End,
    /// The lane is killed.
    Killed,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Its results are a function of the operands of all active lanes. So an operand that is free in one program may be
    /// read with its bits in the other; then the results are the same, and no bit of them is free.
    Lanes,
    /// Makes a new version of a memory.
    Memory(Space),
    /// Loads from a memory of which the source has volatile loads: the load keeps its order with all other accesses to
    /// that memory.
    Load(Space),
    /// Makes a new version of the constant file.
    Constants,
    /// Other waves may write to the memories that it orders, so each of them gets a new version.
    Sync(Sync),
    /// A shared register takes the value of one of the lanes. The results: one bit, 1 if the lanes disagree; the value;
    /// one bit, 1 if any lane is active.
    OneLane,
}

impl EventKind {
    /// Returns true if the target may have this event in place of the event `source` of the source.
    pub fn replaces(self, source: Self) -> bool {
        match (self, source) {
            (EventKind::Sync(this), EventKind::Sync(source)) => this.replaces(source),
            _ => self == source,
        }
    }
}

/// Versions of memories. Most events that make versions make one.
pub type Versions<T = Slot> = SmallVec<[T; 1]>;

/// An access to one element of a memory, by one lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementAccess {
    /// The memory.
    pub space: Space,
    /// The buffer or image, then the byte address (64 bits) or the coordinates of the texel.
    pub place: SmallVec<[Term; 6]>,
    /// The width in bits.
    pub bits: u32,
    /// The condition under which the lane accesses it.
    pub path: Term,
}

/// An operation that depends on other lanes, or that other lanes can observe.
#[derive(Clone, Debug)]
pub struct Event {
    /// Identifies the event in the program: the same each time that a lane executes it.
    pub site: EventSite,
    /// The kind.
    pub kind: EventKind,
    /// The exact operation.
    pub operation: EventOperation,
    /// The path condition under which the lane executes the event: one bit.
    pub path: Term,
    /// The operands.
    pub args: SmallVec<[SymbolicValue; 4]>,
    /// The width of each result in bits. If the first result may be undefined, the second is 1 where it is, and the
    /// third is the value to use there.
    pub results: SmallVec<[u8; 4]>,
    /// True if all lanes get the same results.
    pub uniform: bool,
    /// True if the last operand selects lanes: the results are a function of the operands of the lanes that execute
    /// the event and in which that operand is true. So an event on a narrower path, in which all lanes are
    /// selected, may be the same.
    pub selects: bool,
    /// The element that it stores its last operand to, if it is a store that is neither volatile nor coherent.
    pub store: Option<ElementAccess>,
    /// The context, which [`run::SymbolicMachine::event`] fills in.
    pub context: EventContext,
}

impl Event {
    /// The words of the constant file that it changes, if it is a store or copy to known words.
    pub fn stored_words(&self, terms: &Terms) -> Option<Range<u32>> {
        let count = match self.operation {
            EventOperation::StoreWord => 1,
            EventOperation::CopyWords(count) => count,
            _ => return None,
        };
        let first = terms.as_constant(self.args.first()?.bits)? as u32 % CONST_WORDS;
        let end = first.checked_add(count).filter(|&end| end <= CONST_WORDS)?;
        Some(first..end)
    }
}

/// The place of an event in the control flow, and the versions there.
#[derive(Clone, Debug, Default)]
pub struct EventContext {
    /// The position of the block.
    pub block: u32,
    /// The loops around it.
    pub loops: SmallVec<[u32; 2]>,
    /// The versions that it makes, which others observe.
    pub makes: Versions,
    /// The versions before it.
    pub before: Versions<Term>,
    /// True if lanes reach it from the entry only, on paths without loops.
    pub alone: bool,
    /// True if lanes of other segments may execute it as well, or lanes that have left a loop in different iterations.
    pub joined: bool,
}

/// The observer of a symbolic execution: supplies facts that the execution of one lane cannot determine.
pub trait Oracle {
    /// Returns the value of a location at the cut point.
    fn start(&mut self, terms: &mut Terms, slot: Slot) -> SymbolicValue;
    /// Returns an undefined word. `name` identifies it in the segment.
    fn unknown(&mut self, terms: &mut Terms, name: &str) -> SymbolicValue;
    /// Returns an undefined word that has the same name in both programs: of an array or register that has not been
    /// written since the entry, or outside of an array.
    fn unwritten(&mut self, terms: &mut Terms, name: &str) -> SymbolicValue;
    /// Returns the word that a phi makes of an undefined operand. `names`: its names in other forms of the program, and
    /// in the other language.
    fn phi(&mut self, terms: &mut Terms, names: [&str; 2]) -> SymbolicValue;
    /// Returns true if an undefined operand of a phi or of a selection is replaced by the other operand.
    fn takes_other_value(&self) -> bool;
    /// Returns true if the value of a shared register at the end of the segment is needed.
    fn wants(&self, goal: Goal, slot: Slot) -> bool;
    /// Returns the value of a location at the end of a segment, when it is queried for the first time.
    fn first_query(&mut self, terms: &mut Terms, goal: Goal, slot: Slot) -> SymbolicValue;
    /// Hook for every computed value; returns the value to use in its place.
    fn value(&mut self, terms: &mut Terms, value: SymbolicValue) -> SymbolicValue;
    /// Hook for every computed condition, of one bit; returns the term to use in its place.
    fn condition(&mut self, terms: &mut Terms, condition: Term) -> Term {
        let condition = SymbolicValue::defined(terms, condition);
        self.value(terms, condition).bits
    }
    /// Returns the version slot of a memory; memories that may alias share one.
    fn version_of(&self, space: Space) -> Slot;
    /// Returns true if loads from a memory are events: the source has volatile ones.
    fn watches_loads(&self, space: Space) -> bool;
    /// Returns the versions that an event makes.
    fn makes(&self, kind: EventKind) -> Versions;
    /// Handles an event. Returns its results, followed by the new versions if it makes any.
    fn event(&mut self, terms: &mut Terms, event: Event) -> SmallVec<[Term; 4]>;
    /// Returns the goals that convergent lanes at a cut point reach, as far as known, each with true if some of these
    /// lanes reach it and others do not.
    fn goals(&self, cut: Cut) -> &[(Goal, bool)];
    /// Returns true if every segment that reaches `site` writes this value to the shared register there. `None` means
    /// a value that is not uniform.
    fn written_everywhere(&mut self, site: EventSite, value: Option<SymbolicValue>) -> bool;
    /// Called where other lanes run a block that this lane does not reach. Returns the new version of a memory if it
    /// changes, or the value of a shared register that the block writes.
    fn others(&mut self, terms: &mut Terms, block: u32, slot: Slot) -> Option<SymbolicValue>;
    /// Returns true if a term of the cut point is the value of a shared register that no block of the loop writes.
    fn is_kept(&self, term: Term, number: u32) -> bool;
    /// Returns true if something reads a shared register after a loop: only then its value after it matters.
    fn is_read_after(&self, number: u32, slot: Slot) -> bool;
    /// The value of a shared register after a loop that is read there for the first time; the value is known in the
    /// next iteration.
    fn first_read_after(&mut self, terms: &mut Terms, number: u32, slot: Slot) -> SymbolicValue;
    /// Returns the value of a shared register after a loop that other lanes may have executed meanwhile. It is
    /// `unchanged` if none has, and the same for all lanes.
    fn after_loop(&mut self, terms: &mut Terms, number: u32, slot: Slot, unchanged: SymbolicValue) -> SymbolicValue;
    /// Returns the address from which on scratch memory is treated as registers (see `scratch`); `None` if it is not.
    fn scratch_slots_from(&self) -> Option<u32>;
    /// Returns true if both texts print the shapes of textures.
    fn has_printed_shapes(&self) -> bool;
    /// Returns true if both programs mark volatile accesses.
    fn names_volatile(&self) -> bool;
    /// Records a load of the source, from a resource, that may use the texture cache. A load of the target that uses it
    /// is coherent by assumption if the source has no such load from the same resource.
    fn cached_load(&mut self, resource: Term);
    /// Returns true if both texts are nir, and name formats and dimensions of images.
    fn are_both_nir(&self) -> bool;
    /// Returns true if the values of words of the constant file are to be kept (see `preamble`): the target stores
    /// none.
    fn keeps_words(&self) -> bool;
    /// Keeps the value of a word of the constant file, which it has from here on in all lanes.
    fn keep_word(&mut self, word: u32, value: Term);
    /// The kept value of a word of the constant file, if any.
    fn kept_word(&self, word: u32) -> Option<Term>;
    /// Records the stores to known words of the constant file in the segment from the entry, in place of earlier ones.
    fn keep_entry_stores(&mut self, stores: EntryStores);
    /// The stores to known words of the constant file in the segment from the entry.
    fn entry_stores(&self) -> Rc<EntryStores>;
    /// Returns the result of an operation with a no-wrap flag. `result` is the result modulo 2^width, and one bit that
    /// is 1 if the operation overflows.
    fn sum(&mut self, terms: &mut Terms, at: (NoWrap, u32), operands: [Term; 2], result: (Term, Term)) -> Term;
    /// Records the alignment that an access guarantees for its address of 64 bits (with it, true for a load). Returns
    /// the condition that the target has to prove for it, if any.
    fn alignment(&mut self, terms: &mut Terms, path: Term, address: (Term, bool), alignment: [u32; 2]) -> Option<Term>;
    /// Records the result of an operation on floats, and whether it is exact.
    fn float_result(&mut self, terms: &Terms, result: Term, exact: bool);
    /// Records an assumption of the proof, by its short name.
    fn assume(&mut self, assumption: &'static str);
    /// The variables of other lanes, if values of other lanes are to be terms (see `lane_terms`).
    fn lane_terms(&mut self) -> Option<&mut LaneTerms>;
    /// Returns true if loads are to be looked up in the stores before them (see `forwarding`).
    fn forwards_stores(&self) -> bool;
    /// Returns true if the store aliases the access in no pair of lanes, including the same lane twice.
    fn are_disjoint(&mut self, terms: &mut Terms, store: &ElementAccess, access: &ElementAccess) -> bool;
    /// Returns true if any two different lanes that store to one element, each by one of the two stores, store the same
    /// value. The stores are given with their values.
    fn lanes_agree(&mut self, terms: &mut Terms, first: (&ElementAccess, Term), second: (&ElementAccess, Term))
    -> bool;
    /// Returns true if the store aliases the access in no pair of different lanes.
    fn lanes_disjoint(&mut self, terms: &mut Terms, store: &ElementAccess, access: &ElementAccess) -> bool;
    /// Returns the number of a store that is sunk out of its loop, by its site, operation and element; `None` if it had
    /// another element before, or may alias another such store.
    fn sunk_place(
        &mut self,
        terms: &mut Terms,
        site: EventSite,
        operation: EventOperation,
        access: &ElementAccess,
    ) -> Option<u32>;
    /// The sunk store with a number.
    fn sunk_store(&self, number: u32) -> Option<(EventSite, EventOperation, ElementAccess)>;
    /// Requires that no lane takes a path, because it leads [beyond](Graph::beyond) the unrolled copies of a loop.
    fn never(&mut self, terms: &mut Terms, path: Term);
    /// Aborts: the result of the execution cannot be used.
    fn give_up(&mut self, why: &'static str);
    /// Returns one bit: 1 where a condition does not depend on undefined words.
    fn decided(&mut self, terms: &mut Terms, condition: Term) -> Term;
    /// Records that the program has undefined behaviour on this path unless `holds` is true.
    fn demand(&mut self, terms: &mut Terms, path: Term, holds: Term, why: &'static str);
}

/// An operation that symbolic execution does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// A decoded program, for symbolic execution.
pub trait SymbolicProgram {
    /// The blocks and loops of the program.
    fn graph(&self) -> &Graph;
    /// Returns the value of a location that never changes: a constant.
    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<SymbolicValue>;
    /// The location that is undefined each time that it is read.
    fn undefined(&self) -> Option<Slot>;
    /// The slots that phis define, in order.
    fn phis(&self) -> &[Slot];
    /// Facts about the locations of the program.
    fn places(&self) -> &Places;
    /// Executes the operations of a block, and then leaves it by [`run::SymbolicMachine::leave`] and the like.
    ///
    /// # Errors
    /// If an operation is not supported.
    fn block<O: Oracle>(&self, block: u32, machine: &mut run::SymbolicMachine<'_, O>) -> Result<(), Unsupported>;
    /// Bytes of scratch memory of each lane.
    fn scratch_bytes(&self) -> u32;
    /// Returns true if the program accesses scratch memory.
    fn uses_scratch(&self) -> bool;
    /// The memories that the program accesses.
    fn memories(&self) -> Vec<Space>;
    /// The memories from which some loads are volatile or coherent.
    fn volatile(&self) -> Vec<Space>;
    /// Returns true if operations of the program have no-wrap flags.
    fn has_sums(&self) -> bool;
    /// Properties that the program leaves open or guarantees, and that the other program may not rely on.
    fn liberties(&self) -> &[String];
    /// Returns true if the program marks volatile accesses.
    fn marks_volatile(&self) -> bool;
    /// The memories from which some loads may use the texture cache, which is not coherent with stores.
    fn may_cache(&self) -> Vec<Space>;
    /// The memories from which some loads do use the texture cache.
    fn cached(&self) -> Vec<Space>;
    /// The launch parameters of the shader.
    fn launch(&self) -> Launch;
    /// The features of the program that a proof models less precisely than the hardware implements them.
    fn uses(&self) -> Uses;
    /// The locations that are shared registers, or SSA values in shared registers.
    fn shared_slots(&self) -> &FxHashSet<Slot>;
    /// Returns true if the program may write to the constant file.
    fn stores_constants(&self) -> bool;
    /// Returns the words of the constant file that the program may read; `None` if it reads at computed indices.
    fn read_constants(&self) -> Option<FxHashSet<u32>>;
    /// Returns true if the text of the program prints the shapes of textures.
    fn prints_shapes(&self) -> bool;
    /// The outputs that the program may have written at its end.
    fn outputs(&self) -> Vec<OutputSlot>;
}
