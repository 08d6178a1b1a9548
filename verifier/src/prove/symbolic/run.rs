//! One segment of a program, run on terms.
//!
//! Blocks are executed in the order of the layout (of their positions in the [`Graph`]), each once. What a location holds is looked up where it is read: in the
//! block, else at its beginning, which is what it holds at the ends of the blocks in front, chosen by the conditions
//! of the edges where these differ. So a location costs nothing where nobody reads it, and a value of SSA form, which one
//! block writes that dominates its readers, is found at once.
//!
//! What belongs to the wave goes by the order of the blocks instead. Versions of memory simply follow each other. A shared register holds
//! what was written last, by whatever lanes: a reader that is on the path of the last writer has its value; one that
//! is not has it if there was a lane on that path, which is an event, unless all lanes take the same way there (`wave`).

use super::graph::Graph;
use super::wave::{Goals, SharedWrite};
use super::{Code, Cut, Event, Facts, Goal, Oracle, Setting, Site, Slot, Unsupported, Value, slot};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::operations::Words;
use crate::semantics::operations::undefined::Template;
use crate::semantics::operations::{Kernel, Modify};
use crate::semantics::terms::{Term, Terms};
use crate::support::guards::{Guard, left_out};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// A way into a block.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    from: u32,
    condition: Term,
    /// What is written on it: the phis of the block.
    writes: SmallVec<[(Slot, Value); 2]>,
}

/// A block that is executed in the segment.
#[derive(Debug)]
struct Node {
    edges: SmallVec<[Edge; 2]>,
    /// The block that all ways to this one go through, and how many there are of these.
    dominator: u32,
    depth: u32,
    /// What locations hold at the beginning, as far as somebody asked.
    entry: FxHashMap<Slot, Value>,
    /// What is written.
    exit: FxHashMap<Slot, Value>,
}

/// A way out of the segment.
#[derive(Debug)]
pub struct Transition {
    /// Where to.
    pub goal: Goal,
    /// The condition under which the lane goes there: that of one of the edges.
    pub path: Term,
    edges: SmallVec<[Edge; 2]>,
    /// The versions and shared registers when the wave comes there.
    wave: FxHashMap<Slot, Value>,
}

/// A segment that has been run.
#[derive(Debug)]
pub struct Run {
    pub(super) cut: Cut,
    nodes: FxHashMap<u32, Node>,
    /// Of each slot the blocks that write it.
    writers: FxHashMap<Slot, SmallVec<[u32; 2]>>,
    /// The ways out, one a goal, in their order.
    pub transitions: Vec<Transition>,
    pub(super) start: u32,
}

/// A program at work.
pub struct Machine<'a, O: Oracle> {
    /// The graph of terms.
    pub terms: &'a mut Terms,
    /// The one who watches.
    pub oracle: &'a mut O,
    pub(super) graph: &'a Graph,
    fixed: &'a dyn Fn(&mut Terms, Slot) -> Option<Value>,
    pub(super) run: Run,
    /// The block at work.
    pub(super) block: u32,
    /// The condition that the lane is here.
    path: Term,
    writes: FxHashMap<Slot, Value>,
    /// The edges to blocks that have not been executed.
    pub(super) pending: FxHashMap<u32, SmallVec<[Edge; 2]>>,
    pub(super) versions: FxHashMap<Slot, Value>,
    pub(super) shared: FxHashMap<Slot, Vec<SharedWrite>>,
    /// What shared registers held when a loop was over, and the number of that.
    pub(super) behind: FxHashMap<Term, usize>,
    /// Where events have happened in this segment.
    sites: FxHashSet<Site>,
    shared_slots: &'a FxHashSet<Slot>,
    pub(super) facts: &'a Facts,
    /// Bytes of memory that each lane has of its own.
    pub(super) scratch_bytes: u32,
    /// The location that is undefined, and how many undefined words there were in the block at work.
    undefined: Option<Slot>,
    unknown: (u32, u32),
    /// How often there was an access outside of an array at an index.
    outside: FxHashMap<String, u32>,
}

/// Runs a segment.
///
/// # Errors
/// If an operation is not supported.
pub fn run<C: Code, O: Oracle>(
    code: &C,
    cut: Cut,
    terms: &mut Terms,
    oracle: &mut O,
    facts: &Facts,
) -> Result<Run, Unsupported> {
    let graph = code.graph();
    let start = match cut {
        Cut::Entry => 0,
        Cut::Header(number) => graph.loops[number as usize].header,
    };
    let always = terms.constant(1, 1);
    let shared_slots = code.shared_slots();
    let mut machine = Machine {
        terms,
        oracle,
        graph,
        fixed: &|terms, slot| code.fixed(terms, slot),
        run: Run { cut, nodes: FxHashMap::default(), writers: FxHashMap::default(), transitions: Vec::new(), start },
        block: start,
        path: always,
        writes: FxHashMap::default(),
        pending: FxHashMap::default(),
        versions: FxHashMap::default(),
        shared: FxHashMap::default(),
        behind: FxHashMap::default(),
        sites: FxHashSet::default(),
        shared_slots,
        facts,
        scratch_bytes: code.scratch_bytes(),
        undefined: code.undefined(),
        unknown: (start, 0),
        outside: FxHashMap::default(),
    };
    // A loop at the very beginning is a segment of its own.
    if cut == Cut::Entry && graph.loop_at(0).is_some() {
        let edge = Edge { from: u32::MAX, condition: always, writes: SmallVec::new() };
        machine.transition(Goal::Header(0), smallvec![edge]);
        return Ok(machine.run);
    }
    let mut behind = start;
    for block in start..graph.successors.len() as u32 {
        let edges = if block == start { SmallVec::new() } else { machine.pending.remove(&block).unwrap_or_default() };
        machine.pass(behind, block);
        behind = block;
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
        if machine.terms.as_constant(machine.path) != Some(0) {
            code.block(graph.standing[block as usize].block, &mut machine)?;
        }
        machine.run.nodes.get_mut(&block).expect("entered").exit = std::mem::take(&mut machine.writes);
    }
    machine.pass(behind, u32::MAX);
    for (block, goal) in [(END, Goal::End), (KILLED, Goal::Killed)] {
        if let Some(edges) = machine.pending.remove(&block) {
            machine.transition(goal, edges);
        }
    }
    debug_assert!(machine.pending.is_empty(), "an edge that goes back goes to the header of a loop");
    machine.run.transitions.sort_by_key(|transition| transition.goal);
    Ok(machine.run)
}

/// The numbers of no blocks, for edges that end.
const END: u32 = u32::MAX - 1;
const KILLED: u32 = u32::MAX;

impl<O: Oracle> Machine<'_, O> {
    /// The condition that the lane is here.
    pub fn path(&self) -> Term {
        self.path
    }

    fn enter(&mut self, block: u32, edges: SmallVec<[Edge; 2]>) {
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
        let node = Node { edges, dominator, depth, entry: FxHashMap::default(), exit: FxHashMap::default() };
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

    pub(super) fn transition(&mut self, goal: Goal, edges: SmallVec<[Edge; 2]>) {
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

    /// The version of a memory, now.
    pub fn version(&mut self, version: Slot) -> Value {
        if let Some(&value) = self.versions.get(&version) {
            return value;
        }
        let value = self.oracle.start(self.terms, version);
        self.versions.insert(version, value);
        value
    }

    /// What a location holds here.
    pub fn read(&mut self, slot: Slot) -> Value {
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
    pub fn write(&mut self, slot: Slot, value: Value) {
        if self.writes.insert(slot, value).is_none() {
            self.run.writers.entry(slot).or_default().push(self.block);
        }
    }

    /// One of two values.
    pub fn choose(&mut self, condition: Term, yes: Value, no: Value) -> Value {
        choose(self.terms, condition, yes, no)
    }

    /// A word that is undefined: every one that is asked for is another.
    pub fn unknown(&mut self) -> Value {
        if self.unknown.0 != self.block {
            self.unknown = (self.block, 0);
        }
        let (block, number) = self.unknown;
        self.unknown.1 += 1;
        self.unknown_of(&format!("{block}.{number}"))
    }

    /// A word that is undefined, with a name that nothing else in the segment has.
    fn unknown_of(&mut self, name: &str) -> Value {
        let name = self.named(name);
        self.oracle.unknown(self.terms, &name)
    }

    /// A word that a phi makes of something undefined: the same whichever block is left. `rank` says which of all words that phis make.
    pub fn unknown_phi(&mut self, name: &str, rank: usize) -> Value {
        let names = [self.named(name), self.named(&format!("word {rank} of phis"))];
        self.oracle.phi(self.terms, [&names[0], &names[1]])
    }

    fn named(&self, name: &str) -> String {
        let copy = self.graph.standing[self.block as usize].copy;
        format!("{name} of {copy} from {:?}", self.run.cut)
    }

    /// What is found outside of an array at an index, of 16 bits, to which an offset is added. Each time it may be another word; it has the
    /// same name in both programs if they look there equally often.
    pub fn outside(&mut self, array: &str, index: Term, offset: i64) -> Value {
        let index = self.swept(index);
        let name = format!("{array} at {index} + {offset}");
        let number = self.outside.entry(name.clone()).or_default();
        *number += 1;
        let name = format!("{name}, number {number} from {:?}", self.run.cut);
        self.oracle.unwritten(self.terms, &name)
    }

    /// A word of an array that is declared here.
    pub fn unwritten(&mut self, name: &str) -> Value {
        // In a loop there is another one in each iteration.
        if self.is_alone() { self.oracle.unwritten(self.terms, name) } else { self.unknown() }
    }

    /// Whether a bit of one of some values is free: one bit.
    pub fn any_free(&mut self, operands: &[Value]) -> Term {
        let mut any = self.terms.constant(1, 0);
        for operand in operands {
            let own = operand.any_free(self.terms);
            any = self.terms.or(1, any, own);
        }
        any
    }

    /// The results of a kernel.
    pub fn compute(&mut self, kernel: Kernel, operands: &[Value]) -> SmallVec<[Value; 4]> {
        let words: SmallVec<[Term; 8]> = operands.iter().map(|value| value.bits).collect();
        let results: Words = match kernel {
            Kernel::One(kernel) => smallvec![(kernel.meaning)(self.terms, words[0])],
            Kernel::Two(kernel) => smallvec![(kernel.meaning)(self.terms, words[0], words[1])],
            Kernel::Three(kernel) => smallvec![(kernel.meaning)(self.terms, words[0], words[1], words[2])],
            Kernel::Rows(kernel) => (kernel.meaning)(self.terms, &words),
            Kernel::Select(select) => {
                let [condition, yes, no] = [select.condition, select.yes, select.no].map(usize::from);
                // Where the condition is free too, the choice is what the one that was made for it says.
                let taken = (select.test.meaning)(self.terms, words[condition]);
                return smallvec![self.choose(taken, operands[yes], operands[no])];
            }
        };
        if operands.iter().all(|operand| operand.is_defined(self.terms)) {
            return results.into_iter().map(|bits| Value::defined(self.terms, bits)).collect();
        }
        let template = Template::of(kernel, operands.len());
        self.with_free(&template, operands, &results)
    }

    /// What is done to a word.
    pub fn modify(&mut self, modify: &'static Modify, value: Value) -> Value {
        let bits = (modify.meaning)(self.terms, value.bits);
        if value.is_defined(self.terms) {
            return Value::defined(self.terms, bits);
        }
        self.with_free(&Template::of_modify(modify), &[value], &[bits])[0]
    }

    fn with_free(&mut self, template: &Template, operands: &[Value], results: &[Term]) -> SmallVec<[Value; 4]> {
        let operands: SmallVec<[(Term, Term); 8]> = operands.iter().map(|value| (value.bits, value.free)).collect();
        let free = template.free(self.terms, &operands, |terms, op, width, _, args| terms.rebuild(op, width, args));
        results.iter().zip(free).map(|(&bits, free)| Value { bits, free }).collect()
    }

    /// A number that is part of a computation.
    pub fn swept(&mut self, term: Term) -> Term {
        let value = Value::defined(self.terms, term);
        self.oracle.value(self.terms, value).bits
    }

    /// What a location holds at the beginning of a block.
    fn at_entry(&mut self, block: u32, slot: Slot) -> Value {
        look_up(&mut self.run, self.terms, self.oracle, block, slot)
    }

    /// The lane goes on to another block if `condition` holds; what is written on the way.
    pub fn leave(&mut self, to: u32, condition: Term, writes: SmallVec<[(Slot, Value); 2]>) {
        let condition = self.terms.and(1, self.path, condition);
        if self.terms.as_constant(condition) == Some(0) {
            return;
        }
        let to = match to {
            END | KILLED => to,
            to => self.graph.position(self.block, to).expect("a successor of the block"),
        };
        let edge = Edge { from: self.block, condition, writes };
        self.pending.entry(to).or_default().push(edge);
    }

    /// The lane's program ends here.
    pub fn end(&mut self) {
        let always = self.terms.constant(1, 1);
        self.leave(END, always, SmallVec::new());
    }

    /// The lane ends if `condition` holds; otherwise it goes on.
    pub fn kill(&mut self, condition: Term) {
        self.leave(KILLED, condition, SmallVec::new());
        if left_out(Guard::KilledPath) {
            return;
        }
        let goes_on = self.terms.not(1, condition);
        self.path = self.terms.and(1, self.path, goes_on);
    }

    /// Does something as if the lane were here only where a condition holds too.
    pub fn on_path(&mut self, condition: Term, act: impl FnOnce(&mut Self)) {
        let path = self.path;
        self.path = self.terms.and(1, path, condition);
        act(self);
        self.path = path;
    }

    /// Whether lanes come here from the entry only.
    fn is_alone(&self) -> bool {
        self.run.cut == Cut::Entry && self.graph.loops.iter().all(|l| l.header > self.block)
    }

    /// An event here.
    pub fn event(&mut self, event: Event) -> SmallVec<[Term; 4]> {
        let makes = self.oracle.makes(event.kind);
        // Each place where a block stands is one of its own.
        let copy = self.graph.standing[self.block as usize].copy;
        let site = event.site.in_copy(copy);
        // Results are variables named after the site: those of two events would be taken for equal.
        if !self.sites.insert(site) && !left_out(Guard::BlockEnds) {
            self.oracle.lost("two events at one site");
        }
        let before = makes.iter().map(|&version| self.version(version).bits).collect();
        let setting = Setting {
            block: self.block,
            loops: self.graph.loops_around(self.block).collect(),
            makes: makes.clone(),
            before,
            alone: self.is_alone(),
        };
        let event = Event { site, setting, ..event };
        let results = self.oracle.event(self.terms, event);
        for (&version, &bits) in makes.iter().rev().zip(results.iter().rev()) {
            let value = Value::defined(self.terms, bits);
            self.versions.insert(version, value);
        }
        results
    }

    /// The program has no meaning if the lane is here and this does not hold.
    pub fn demand(&mut self, holds: Term, why: &'static str) {
        if self.terms.as_constant(holds) != Some(1) {
            self.oracle.demand(self.terms, self.path, holds, why);
        }
    }
}

fn choose(terms: &mut Terms, condition: Term, yes: Value, no: Value) -> Value {
    let width = terms.width(yes.bits);
    let mut pick = |width, yes, no| if yes == no { yes } else { terms.ite(width, condition, yes, no) };
    Value { bits: pick(width, yes.bits, no.bits), free: pick(width, yes.free, no.free) }
}

/// The value of one of several edges, where each has its own. Only what tells the edges from each other counts.
fn merge(terms: &mut Terms, values: &[(Term, Value)]) -> Value {
    let (&(_, first), rest) = values.split_first().expect("a block that is reached has an edge into it");
    if rest.iter().all(|&(_, value)| value == first) {
        return first;
    }
    let lists: SmallVec<[_; 4]> = values.iter().map(|&(condition, _)| terms.conjuncts(condition)).collect();
    let common: SmallVec<[Term; 8]> =
        lists[0].iter().copied().filter(|term| lists[1..].iter().all(|list| list.contains(term))).collect();
    let mut conditions = SmallVec::<[Term; 4]>::new();
    for list in &lists {
        let own: SmallVec<[Term; 8]> = list.iter().copied().filter(|term| !common.contains(term)).collect();
        conditions.push(terms.conjunction(&own));
    }
    let mut result = values[values.len() - 1].1;
    for i in (0..values.len() - 1).rev() {
        result = choose(terms, conditions[i], values[i].1, result);
    }
    result
}

/// What a location holds at the beginning of a block of the segment.
fn look_up<O: Oracle>(run: &mut Run, terms: &mut Terms, oracle: &mut O, block: u32, slot: Slot) -> Value {
    let writers = run.writers.get(&slot).map_or(&[][..], |list| list);
    if let Some(&value) = run.nodes[&block].entry.get(&slot) {
        return value;
    }
    match *writers {
        [] => return at_start(run, terms, oracle, slot),
        // Where the one writer dominates, nothing else can be here.
        [writer] if writer != block => {
            let depth = run.nodes[&writer].depth;
            let mut at = block;
            while run.nodes[&at].depth > depth {
                at = run.nodes[&at].dominator;
            }
            let node = &run.nodes[&writer];
            if at == writer
                && let Some(&value) = node.exit.get(&slot).or_else(|| node.entry.get(&slot))
            {
                return value;
            }
        }
        _ => {}
    }
    let mut stack: SmallVec<[u32; 16]> = smallvec![block];
    while let Some(&at) = stack.last() {
        if run.nodes[&at].entry.contains_key(&slot) {
            stack.pop();
            continue;
        }
        if at == run.start {
            let value = at_start(run, terms, oracle, slot);
            run.nodes.get_mut(&at).expect("the first block").entry.insert(slot, value);
            continue;
        }
        let node = &run.nodes[&at];
        let mut values: SmallVec<[(Term, Value); 4]> = SmallVec::new();
        let before = stack.len();
        for edge in &node.edges {
            match at_edge(run, edge, slot) {
                Some(value) => values.push((edge.condition, value)),
                None => stack.push(edge.from),
            }
        }
        if stack.len() == before {
            let value = merge(terms, &values);
            run.nodes.get_mut(&at).expect("on the stack").entry.insert(slot, value);
        }
    }
    run.nodes[&block].entry[&slot]
}

/// What a location holds on an edge, if that is known already.
fn at_edge(run: &Run, edge: &Edge, slot: Slot) -> Option<Value> {
    if let Some(&(_, value)) = edge.writes.iter().rev().find(|(written, _)| *written == slot) {
        return Some(value);
    }
    let node = &run.nodes[&edge.from];
    node.exit.get(&slot).or_else(|| node.entry.get(&slot)).copied()
}

fn at_start<O: Oracle>(run: &mut Run, terms: &mut Terms, oracle: &mut O, slot: Slot) -> Value {
    let start = run.start;
    if let Some(&value) = run.nodes.get(&start).and_then(|node| node.entry.get(&slot)) {
        return value;
    }
    let value = oracle.start(terms, slot);
    if let Some(node) = run.nodes.get_mut(&start) {
        node.entry.insert(slot, value);
    }
    value
}

impl Run {
    /// Where lanes go from here, and whether some of them do and others do not.
    pub fn goals(&self, terms: &Terms, facts: &Facts) -> Goals {
        let goals = self.transitions.iter();
        goals.map(|transition| (transition.goal, !facts.uniform(terms, transition.path))).collect()
    }

    /// What a location holds on the way out number `transition`.
    pub fn value_at<C: Code, O: Oracle>(
        &mut self,
        code: &C,
        terms: &mut Terms,
        oracle: &mut O,
        transition: usize,
        slot: Slot,
    ) -> Value {
        if let Some(value) = code.fixed(terms, slot) {
            return value;
        }
        let way = &self.transitions[transition];
        if let Some(&value) = way.wave.get(&slot) {
            return value;
        }
        if code.shared_slots().contains(&slot) {
            return oracle.not_known_yet(terms, way.goal, slot);
        }
        let edges = self.transitions[transition].edges.clone();
        let mut values: SmallVec<[(Term, Value); 4]> = SmallVec::new();
        for edge in &edges {
            // A way that does not begin anywhere.
            if edge.from == u32::MAX {
                return oracle.start(terms, slot);
            }
            let value = match at_edge(self, edge, slot) {
                Some(value) => value,
                None => look_up(self, terms, oracle, edge.from, slot),
            };
            values.push((edge.condition, value));
        }
        merge(terms, &values)
    }
}
