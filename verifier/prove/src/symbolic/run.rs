//! Symbolic execution of one segment of a program.
//!
//! Blocks are executed in layout order (the order of their positions in the [`Graph`]), each once. The value of a
//! location is looked up when it is read: in the block, else at the block's entry, which merges the values at the
//! exits of the predecessors by the conditions of the edges where these differ. So a location costs nothing if nothing
//! reads it, and an SSA value, which one block writes that dominates its readers, is found at once.
//!
//! The state of the wave follows the order of the blocks instead. Versions of memory simply follow each other. A shared
//! register holds the last value written by any lanes: a reader on the path of the last writer has its value;
//! another reader has it if a lane was on that path, which is an event, unless all lanes take the same path there
//! (`wave`).

use super::forwarding::SegmentStores;
use super::graph::Graph;
use super::segment::{ExecutedBlock, IncomingEdge, Run, Transition, choose, look_up};
use super::sinking::sunk_block;
use super::wave::{Selection, SharedWrite};
use super::{
    Cut, Event, EventContext, EventSite, Goal, Oracle, Slot, SymbolicProgram, SymbolicValue, Unsupported,
    VariableFacts, slot,
};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::operations::Words;
use ir3_semantics::operations::undefined::Template;
use ir3_semantics::operations::{Kernel, Modify};
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::rc::Rc;

/// A store to known words of the constant file.
#[derive(Debug)]
pub struct StoredWords {
    /// The version before.
    before: Term,
    words: Range<u32>,
    /// A version in which they have the same values.
    version: Term,
}

/// Stores to known words of the constant file, by the version that they make.
///
/// Those before the first loop are facts about their versions that hold at any time, as these versions are variables of
/// the run ([`Cut::kind`]). So a segment from a loop header in which the file still has such a version may use them.
pub type EntryStores = FxHashMap<Term, StoredWords>;

/// The state of a symbolic execution.
pub struct SymbolicMachine<'a, O: Oracle> {
    /// The graph of terms.
    pub terms: &'a mut Terms,
    /// The observer.
    pub oracle: &'a mut O,
    pub(super) graph: &'a Graph,
    fixed: &'a dyn Fn(&mut Terms, Slot) -> Option<SymbolicValue>,
    pub(super) run: Run,
    /// The current block.
    pub(super) block: u32,
    /// The path condition of the current point.
    path: Term,
    writes: FxHashMap<Slot, SymbolicValue>,
    /// The edges to blocks that have not been executed.
    pub(super) pending: FxHashMap<u32, SmallVec<[IncomingEdge; 2]>>,
    pub(super) versions: FxHashMap<Slot, SymbolicValue>,
    pub(super) shared: FxHashMap<Slot, Vec<SharedWrite>>,
    /// The values that shared registers had when a loop had ended, with the number of the loop.
    pub(super) after_loops: FxHashMap<Term, usize>,
    /// The stores to known words of the constant file in this segment, and in the segment from the entry.
    stored_words: EntryStores,
    entry_stores: Rc<EntryStores>,
    /// The results of events that all lanes that take part have in common, with the position of the block.
    pub(super) common_results: FxHashMap<Term, u32>,
    /// The events that select lanes, for writes of shared registers after them.
    pub(super) selections: SmallVec<[Selection; 2]>,
    /// The stores of this segment.
    pub(super) stores: SegmentStores,
    /// The conditions that hold in exactly one lane of the wave: see `preamble`.
    pub(super) elected: SmallVec<[Term; 1]>,
    /// The sites of the events of this segment.
    sites: FxHashSet<EventSite>,
    shared_slots: &'a FxHashSet<Slot>,
    pub(super) facts: &'a VariableFacts,
    /// Bytes of scratch memory of each lane.
    pub(super) scratch_bytes: u32,
    /// The location that is undefined, and the number of undefined words in the current block so far.
    undefined: Option<Slot>,
    unknown: (u32, u32),
    /// The number of accesses outside of each array at each index.
    outside: FxHashMap<String, u32>,
}

/// Executes a segment.
///
/// # Errors
/// If an operation is not supported.
pub fn run<C: SymbolicProgram, O: Oracle>(
    code: &C,
    cut: Cut,
    terms: &mut Terms,
    oracle: &mut O,
    facts: &VariableFacts,
) -> Result<Run, Unsupported> {
    let graph = code.graph();
    let start = match cut {
        Cut::Entry => 0,
        Cut::Header(number) => graph.loops[number as usize].header,
    };
    let always = terms.constant(1, 1);
    let shared_slots = code.shared_slots();
    let entry_stores = if cut == Cut::Entry { Rc::default() } else { oracle.entry_stores() };
    let mut machine = SymbolicMachine {
        terms,
        oracle,
        graph,
        fixed: &|terms, slot| code.fixed(terms, slot),
        run: Run {
            cut,
            nodes: FxHashMap::default(),
            writers: FxHashMap::default(),
            transitions: Vec::new(),
            start,
            phis: code.phis().to_vec(),
        },
        block: start,
        path: always,
        writes: FxHashMap::default(),
        pending: FxHashMap::default(),
        versions: FxHashMap::default(),
        shared: FxHashMap::default(),
        after_loops: FxHashMap::default(),
        stored_words: EntryStores::default(),
        entry_stores,
        common_results: FxHashMap::default(),
        selections: SmallVec::new(),
        stores: SegmentStores::default(),
        elected: SmallVec::new(),
        sites: FxHashSet::default(),
        shared_slots,
        facts,
        scratch_bytes: code.scratch_bytes(),
        undefined: code.undefined(),
        unknown: (start, 0),
        outside: FxHashMap::default(),
    };
    // A loop header at the entry is a segment of its own.
    if cut == Cut::Entry && graph.loop_at(0).is_some() {
        let edge = IncomingEdge { from: u32::MAX, condition: always, writes: SmallVec::new() };
        machine.transition(Goal::Header(0), smallvec![edge]);
        return Ok(machine.run);
    }
    let mut previous = start;
    for block in start..graph.successors.len() as u32 {
        let edges = if block == start { SmallVec::new() } else { machine.pending.remove(&block).unwrap_or_default() };
        machine.pass(previous, block);
        previous = block;
        if graph.beyond.contains(&block) {
            if !edges.is_empty() {
                let conditions: SmallVec<[Term; 4]> = edges.iter().map(|edge| edge.condition).collect();
                let path = machine.terms.disjunction(&conditions);
                machine.oracle.never(machine.terms, path);
            }
            continue;
        }
        if block != start && edges.is_empty() {
            if !machine.pending.is_empty() {
                machine.skip(block);
            }
            continue;
        }
        let header = graph.loop_at(block);
        if let (Some(number), true) = (header, block != start) {
            machine.transition(Goal::Header(number), edges);
            continue;
        }
        machine.enter(block, edges);
        machine.store_sunk();
        if machine.terms.as_constant(machine.path) != Some(0) {
            code.block(graph.placed[block as usize].block, &mut machine)?;
        }
        machine.run.nodes.get_mut(&block).expect("entered").exit = std::mem::take(&mut machine.writes);
    }
    machine.pass(previous, u32::MAX);
    for (block, goal) in [(END, Goal::End), (KILLED, Goal::Killed)] {
        if let Some(edges) = machine.pending.remove(&block) {
            machine.transition(goal, edges);
        }
    }
    debug_assert!(machine.pending.is_empty(), "an edge that goes back goes to the header of a loop");
    machine.run.transitions.sort_by_key(|transition| transition.goal);
    if cut == Cut::Entry {
        machine.oracle.keep_entry_stores(machine.stored_words);
    }
    Ok(machine.run)
}

/// Block numbers that no block has, for edges that end the program.
const END: u32 = u32::MAX - 1;
const KILLED: u32 = u32::MAX;

impl<O: Oracle> SymbolicMachine<'_, O> {
    /// The path condition of the current point.
    pub fn path(&self) -> Term {
        self.path
    }

    fn enter(&mut self, block: u32, edges: SmallVec<[IncomingEdge; 2]>) {
        let conditions: SmallVec<[Term; 4]> = edges.iter().map(|edge| edge.condition).collect();
        let path = match conditions[..] {
            [] => self.terms.constant(1, 1),
            [one] => one,
            _ => self.terms.disjunction(&conditions),
        };
        self.path = path;
        self.block = block;
        let dominator = edges.iter().map(|edge| edge.from).reduce(|a, b| self.common_dominator(a, b)).unwrap_or(block);
        let depth = if edges.is_empty() { 0 } else { self.run.nodes[&dominator].depth + 1 };
        let mut phis: SmallVec<[Slot; 8]> = edges.iter().flat_map(|edge| edge.writes.iter().map(|w| w.0)).collect();
        phis.sort_unstable();
        phis.dedup();
        let node = ExecutedBlock { edges, dominator, depth, entry: FxHashMap::default(), exit: FxHashMap::default() };
        self.run.nodes.insert(block, node);
        for slot in phis {
            if self.shared_slots.contains(&slot) {
                continue;
            }
            self.run.writers.entry(slot).or_default().push(block);
            let value = self.at_entry(block, slot);
            let value = self.oracle.value(self.terms, value);
            self.run.nodes.get_mut(&block).expect("just made").entry.insert(slot, value);
        }
    }

    fn common_dominator(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            let (x, y) = (&self.run.nodes[&a], &self.run.nodes[&b]);
            if x.depth >= y.depth {
                a = x.dominator;
            } else {
                b = y.dominator;
            }
        }
        a
    }

    pub(super) fn transition(&mut self, goal: Goal, edges: SmallVec<[IncomingEdge; 2]>) {
        let conditions: SmallVec<[Term; 4]> = edges.iter().map(|edge| edge.condition).collect();
        let path = if let [one] = conditions[..] { one } else { self.terms.disjunction(&conditions) };
        let mut wave = FxHashMap::default();
        for version in slot::versions() {
            let value = self.version(version);
            wave.insert(version, value);
        }
        for &slot in self.shared_slots {
            if !self.oracle.wants(goal, slot) {
                continue;
            }
            let value = self.read_shared(slot, path);
            wave.insert(slot, value);
        }
        self.run.transitions.push(Transition { goal, path, edges, wave });
    }

    /// The current version of a memory.
    pub fn version(&mut self, version: Slot) -> SymbolicValue {
        if let Some(&value) = self.versions.get(&version) {
            return value;
        }
        let value = self.oracle.start(self.terms, version);
        self.versions.insert(version, value);
        value
    }

    /// The value of a location.
    pub fn read(&mut self, slot: Slot) -> SymbolicValue {
        if let Some(&value) = self.writes.get(&slot) {
            return value;
        }
        if self.undefined == Some(slot) {
            return self.unknown();
        }
        if let Some(value) = (self.fixed)(self.terms, slot) {
            return value;
        }
        if self.shared_slots.contains(&slot) {
            return self.read_shared(slot, self.path);
        }
        self.at_entry(self.block, slot)
    }

    /// Writes a location.
    pub fn write(&mut self, slot: Slot, value: SymbolicValue) {
        if self.writes.insert(slot, value).is_none() {
            self.run.writers.entry(slot).or_default().push(self.block);
        }
    }

    /// Selects one of two values.
    pub fn choose(&mut self, condition: Term, yes: SymbolicValue, no: SymbolicValue) -> SymbolicValue {
        choose(self.terms, condition, yes, no)
    }

    /// Returns an undefined word: a different one at each call.
    pub fn unknown(&mut self) -> SymbolicValue {
        if self.unknown.0 != self.block {
            self.unknown = (self.block, 0);
        }
        let (block, number) = self.unknown;
        self.unknown.1 += 1;
        self.unknown_of(&format!("{block}.{number}"))
    }

    /// Returns an undefined word with a name that nothing else in the segment has.
    fn unknown_of(&mut self, name: &str) -> SymbolicValue {
        let name = self.named(name);
        self.oracle.unknown(self.terms, &name)
    }

    /// Returns the word that a phi makes of an undefined operand: the same on each edge. `rank`: its index among all
    /// words that phis define.
    pub fn unknown_phi(&mut self, name: &str, rank: usize) -> SymbolicValue {
        let names = [self.named(name), self.named(&format!("word {rank} of phis"))];
        self.oracle.phi(self.terms, [&names[0], &names[1]])
    }

    fn named(&self, name: &str) -> String {
        let copy = self.graph.placed[self.block as usize].copy;
        format!("{name} of {copy} from {:?}", self.run.cut)
    }

    /// Returns the word that is found outside of an array at a 16-bit index plus an offset. Each access may find
    /// another word; it has the same name in both programs if they access the place equally often.
    pub fn outside(&mut self, array: &str, index: Term, offset: i64) -> SymbolicValue {
        let index = self.swept(index);
        let name = format!("{array} at {index} + {offset}");
        let number = self.outside.entry(name.clone()).or_default();
        *number += 1;
        let name = format!("{name}, number {number} from {:?}", self.run.cut);
        self.oracle.unwritten(self.terms, &name)
    }

    /// Returns an undefined word in the place of one that may have been loaded. It is named after that, so both
    /// programs have the same one if they load the same, in any block.
    pub fn unknown_for(&mut self, loaded: Term) -> SymbolicValue {
        let loaded = self.swept(loaded);
        let name = format!("in the place of {loaded:?}");
        let number = self.outside.entry(name.clone()).or_default();
        *number += 1;
        let name = format!("{name}, number {number}");
        self.unknown_of(&name)
    }

    /// Returns the undefined content of an array element at its declaration.
    pub fn unwritten(&mut self, name: &str) -> SymbolicValue {
        // In a loop it is another word in each iteration.
        if self.is_alone() { self.oracle.unwritten(self.terms, name) } else { self.unknown() }
    }

    /// Returns one bit: 1 if any of the operands has a free bit.
    pub fn any_free(&mut self, operands: &[SymbolicValue]) -> Term {
        let mut any = self.terms.constant(1, 0);
        for operand in operands {
            let own = operand.any_free(self.terms);
            any = self.terms.or(1, any, own);
        }
        any
    }

    /// The operands of a selection, of which one may be anything: if the oracle allows it, that one is replaced by the
    /// other. `independent` is true if nothing else depends on its undefined bits.
    pub fn selected(&self, [yes, no]: [SymbolicValue; 2], independent: impl Fn(usize) -> bool) -> [SymbolicValue; 2] {
        if !self.oracle.takes_other_value() {
            return [yes, no];
        }
        match [yes, no].map(|operand| operand.is_free(self.terms)) {
            [true, false] if independent(0) => [SymbolicValue { bits: no.bits, ..yes }, no],
            [false, true] if independent(1) => [yes, SymbolicValue { bits: yes.bits, ..no }],
            _ => [yes, no],
        }
    }

    /// The operand of a phi. Where it may become the operand of another edge, it is defined unless nothing else depends
    /// on its undefined bits.
    pub fn phi_operand(&mut self, value: SymbolicValue, independent: impl Fn() -> bool) -> SymbolicValue {
        let is_kept = !self.oracle.takes_other_value() || value.is_defined(self.terms) || independent();
        if is_kept { value } else { SymbolicValue::defined(self.terms, value.bits) }
    }

    /// Computes the results of a kernel.
    pub fn compute(&mut self, kernel: Kernel, operands: &[SymbolicValue]) -> SmallVec<[SymbolicValue; 4]> {
        let words: SmallVec<[Term; 8]> = operands.iter().map(|value| value.bits).collect();
        let results: Words = match kernel {
            Kernel::One(kernel) => smallvec![(kernel.meaning)(self.terms, words[0])],
            Kernel::Two(kernel) => smallvec![(kernel.meaning)(self.terms, words[0], words[1])],
            Kernel::Three(kernel) => smallvec![(kernel.meaning)(self.terms, words[0], words[1], words[2])],
            Kernel::Rows(kernel) => (kernel.meaning)(self.terms, &words),
            Kernel::Select(select) => {
                let [condition, yes, no] = [select.condition, select.yes, select.no].map(usize::from);
                // If the condition is free too, the choice follows the value that was chosen for it.
                let taken = (select.test.meaning)(self.terms, words[condition]);
                return smallvec![self.choose(taken, operands[yes], operands[no])];
            }
        };
        if operands.iter().all(|operand| operand.is_defined(self.terms)) {
            return results.into_iter().map(|bits| SymbolicValue::defined(self.terms, bits)).collect();
        }
        let template = Template::of(kernel, operands.len());
        self.with_free(&template, operands, &results)
    }

    /// Applies a modifier to a word.
    pub fn modify(&mut self, modify: &'static Modify, value: SymbolicValue) -> SymbolicValue {
        let bits = (modify.meaning)(self.terms, value.bits);
        if value.is_defined(self.terms) {
            return SymbolicValue::defined(self.terms, bits);
        }
        self.with_free(&Template::of_modify(modify), &[value], &[bits])[0]
    }

    fn with_free(
        &mut self,
        template: &Template,
        operands: &[SymbolicValue],
        results: &[Term],
    ) -> SmallVec<[SymbolicValue; 4]> {
        let operands: SmallVec<[(Term, Term); 8]> = operands.iter().map(|value| (value.bits, value.free)).collect();
        let free = template.free(self.terms, &operands, |terms, op, width, _, args| terms.rebuild(op, width, args));
        results.iter().zip(free).map(|(&bits, free)| SymbolicValue { bits, free }).collect()
    }

    /// Passes a term of a computation to the oracle; returns the term to use in its place.
    pub fn swept(&mut self, term: Term) -> Term {
        let value = SymbolicValue::defined(self.terms, term);
        self.oracle.value(self.terms, value).bits
    }

    /// The value of a location at the entry of a block.
    fn at_entry(&mut self, block: u32, slot: Slot) -> SymbolicValue {
        look_up(&mut self.run, self.terms, self.oracle, block, slot)
    }

    /// Adds an edge to `to`, taken if `condition` holds, with the writes on it.
    pub fn leave(&mut self, to: u32, condition: Term, writes: SmallVec<[(Slot, SymbolicValue); 2]>) {
        let condition = self.terms.and(1, self.path, condition);
        if self.terms.as_constant(condition) == Some(0) {
            return;
        }
        let to = match to {
            END | KILLED => to,
            to => self.graph.position(self.block, to).expect("a successor of the block"),
        };
        let edge = IncomingEdge { from: self.block, condition, writes };
        self.pending.entry(to).or_default().push(edge);
    }

    /// Ends the program for the lane.
    pub fn end(&mut self) {
        self.observe_sunk();
        let always = self.terms.constant(1, 1);
        self.leave(END, always, SmallVec::new());
    }

    /// Ends the program for the lane if `condition` holds.
    pub fn kill(&mut self, condition: Term) {
        self.observe_sunk();
        self.leave(KILLED, condition, SmallVec::new());
        if left_out(Guard::KilledPath) {
            return;
        }
        let goes_on = self.terms.not(1, condition);
        self.path = self.terms.and(1, self.path, goes_on);
    }

    /// Calls `act` with a path condition that is restricted by `condition`.
    pub fn on_path(&mut self, condition: Term, act: impl FnOnce(&mut Self)) {
        let path = self.path;
        self.path = self.terms.and(1, path, condition);
        act(self);
        self.path = path;
    }

    /// Returns true if lanes come here from the entry only.
    pub(super) fn is_alone(&self) -> bool {
        self.run.cut == Cut::Entry && self.graph.loops.iter().all(|l| l.header > self.block)
    }

    /// Executes an event.
    pub fn event(&mut self, event: Event) -> SmallVec<[Term; 4]> {
        let makes = self.oracle.makes(event.kind);
        // Each copy of a block has sites of its own.
        let copy = self.graph.placed[self.block as usize].copy;
        let site = event.site.in_copy(copy);
        // Results are variables named after the site: two events of one site would be equal.
        if !self.sites.insert(site) && !left_out(Guard::BlockEnds) {
            self.oracle.give_up("two events at one site");
        }
        let before = makes.iter().map(|&version| self.version(version).bits).collect();
        let context = EventContext {
            block: if site.is_sunk() { sunk_block(self.block) } else { self.block },
            loops: self.graph.loops_around(self.block).collect(),
            makes: makes.clone(),
            before,
            alone: self.is_alone(),
            joined: self.may_be_joined() || self.is_mixed(),
        };
        let event = Event { site, context, ..event };
        if let Some(results) = self.sink(&event, &makes) {
            return results;
        }
        let store = (event.store.is_some() && self.oracle.forwards_stores()).then(|| event.clone());
        // Lanes of other segments may store to other words.
        let words = event.stored_words(self.terms).filter(|_| !event.context.joined);
        let stored = words.zip(event.context.before.first().copied());
        let common = if event.uniform { event.results.len() } else { 0 };
        let results = self.oracle.event(self.terms, event);
        self.common_results.extend(results.iter().take(common).map(|&result| (result, self.block)));
        if let (Some(store), Some(&version)) = (store, results.last()) {
            self.note_store(&store, version);
        }
        if let (Some((words, before)), Some(&after)) = (stored, results.last())
            && before != after
        {
            self.stored_words.insert(after, StoredWords { before, words, version: results[0] });
        }
        for (&version, &bits) in makes.iter().rev().zip(results.iter().rev()) {
            let value = SymbolicValue::defined(self.terms, bits);
            self.versions.insert(version, value);
        }
        results
    }

    /// A version of the constant file that has the present value of a word: that of its last store.
    pub(super) fn version_of_word(&mut self, word: u32) -> Term {
        let mut version = self.version(slot::CONSTANTS).bits;
        while let Some(store) = self.stored_words.get(&version).or_else(|| self.entry_stores.get(&version)) {
            if store.words.contains(&word) && !left_out(Guard::ConstantApart) {
                return store.version;
            }
            version = store.before;
        }
        version
    }

    /// Records undefined behaviour: the lane is here and `holds` is false.
    pub fn demand(&mut self, holds: Term, why: &'static str) {
        self.demand_on(self.path, holds, why);
    }

    /// Records undefined behaviour on a path.
    pub fn demand_on(&mut self, path: Term, holds: Term, why: &'static str) {
        if self.terms.as_constant(holds) != Some(1) {
            self.observe_sunk();
            self.oracle.demand(self.terms, path, holds, why);
        }
    }
}
