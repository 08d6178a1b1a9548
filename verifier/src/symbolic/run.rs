//! One segment of a program, run on terms.
//!
//! Blocks are executed in the order of the layout (of their positions in the [`Graph`]), each once. What a location holds is looked up where it is read: in the
//! block, else at its beginning, which is what it holds at the ends of the blocks in front, chosen by the conditions
//! of the edges where these differ. So a location costs nothing where nobody reads it, and a value of SSA form, which one
//! block writes that dominates its readers, is found at once.
//!
//! What belongs to the wave goes by the order of the blocks instead. Versions of memory simply follow each other. A shared register holds
//! what was written last, by whatever lanes: a reader that is on the path of the last writer has its value; one that
//! is not has it if there was a lane on that path, which is an event, unless all lanes take the same way there.

use super::graph::Graph;
use super::world;
use super::{Code, Cut, Event, EventKind, Facts, Goal, Oracle, Site, Slot, Unsupported, Value, slot};
use crate::semantics::domain::Domain;
use crate::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// A way into a block.
#[derive(Clone, Debug)]
struct Edge {
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
    cut: Cut,
    nodes: FxHashMap<u32, Node>,
    /// Of each slot the blocks that write it.
    writers: FxHashMap<Slot, SmallVec<[u32; 2]>>,
    /// The ways out, one a goal, in their order.
    pub transitions: Vec<Transition>,
    start: u32,
}

/// Something that was written to a shared register.
#[derive(Clone, Copy, Debug)]
struct SharedWrite {
    /// Who writes.
    path: Term,
    /// What is there then for those who do.
    value: Value,
    /// Where not all lanes do or none does: whether there is one that does (one bit), and what is written, to which half if not
    /// to the whole.
    others: Option<(Term, Value, Option<bool>)>,
    /// It is plain that all who write, write the same.
    alike: bool,
}

/// A program at work.
pub struct Machine<'a, O: Oracle> {
    /// The graph of terms.
    pub terms: &'a mut Terms,
    /// The one who watches.
    pub oracle: &'a mut O,
    graph: &'a Graph,
    fixed: &'a dyn Fn(&mut Terms, Slot) -> Option<Value>,
    run: Run,
    /// The block at work.
    block: u32,
    /// The condition that the lane is here.
    path: Term,
    writes: FxHashMap<Slot, Value>,
    /// The edges to blocks that have not been executed.
    pending: FxHashMap<u32, SmallVec<[Edge; 2]>>,
    versions: FxHashMap<Slot, Value>,
    shared: FxHashMap<Slot, Vec<SharedWrite>>,
    shared_slots: &'a FxHashSet<Slot>,
    facts: &'a Facts,
    /// Bytes of memory that each lane has of its own.
    pub(super) scratch_bytes: u32,
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
        shared_slots,
        facts,
        scratch_bytes: code.scratch_bytes(),
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
        if block != start && edges.is_empty() {
            continue;
        }
        machine.pass(behind, block);
        behind = block;
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

    /// Whether a term is the same in all lanes that are here.
    pub fn is_uniform(&self, term: Term) -> bool {
        self.facts.uniform(self.terms, term) && (!self.is_mixed() || self.facts.lasting(self.terms, term))
    }

    /// Whether lanes that are here may have left the loop, from whose header they come, one after the other.
    fn is_mixed(&self) -> bool {
        let Cut::Header(own) = self.run.cut else { return false };
        self.block > self.graph.loops[own as usize].last && !self.whole_wave_is_here(own as usize)
    }

    /// The wave goes on from one block to another. Lanes that go back to a loop whose end is passed go back now; then what
    /// happens in that loop, be it by lanes that were never here, is over.
    fn pass(&mut self, from: u32, to: u32) {
        let loops = &self.graph.loops;
        let mut passed: SmallVec<[usize; 2]> =
            (0..loops.len()).filter(|&number| (from..to).contains(&loops[number].last)).collect();
        // Inner loops first: where two end together, the one that begins later.
        passed.sort_by_key(|&number| (loops[number].last, std::cmp::Reverse(loops[number].header)));
        for number in passed {
            if let Some(edges) = self.pending.remove(&loops[number].header) {
                self.transition(Goal::Header(number as u32), edges);
            }
            let others = !self.whole_wave_is_here(number);
            let effects = &self.graph.loops[number].effects;
            for &version in &effects.versions {
                let name = format!("{} behind loop {number} from {:?}", world::version_name(version), self.run.cut);
                let name = self.terms.name(&name);
                let bits = self.terms.variable(32, name);
                let value = Value::defined(self.terms, bits);
                self.versions.insert(version, value);
            }
            for &shared in &effects.shared {
                let always = self.terms.constant(1, 1);
                let held = self.read_shared(shared, always);
                let value = self.oracle.behind(self.terms, number as u32, shared, held);
                if !others {
                    continue;
                }
                // Written on a path that is nobody's.
                let never = self.terms.constant(1, 0);
                let write = SharedWrite { path: never, value, others: None, alike: false };
                self.shared.entry(shared).or_default().push(write);
            }
        }
    }

    /// Whether nobody runs a loop whose end is passed while the lane is on its way behind it: the wave leaves it as one (or, on
    /// the way from the entry to the first loop, goes past it as one).
    fn whole_wave_is_here(&self, number: usize) -> bool {
        let alone = match self.run.cut {
            Cut::Entry => number == 0,
            Cut::Header(own) => own as usize == number,
        };
        alone && self.run.goes_as_one(number as u32, self.terms, self.facts)
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

    fn transition(&mut self, goal: Goal, edges: SmallVec<[Edge; 2]>) {
        let conditions: SmallVec<[Term; 4]> = edges.iter().map(|edge| edge.condition).collect();
        let path = if let [one] = conditions[..] { one } else { self.terms.disjunction(&conditions) };
        let mut wave = FxHashMap::default();
        for version in slot::versions() {
            let value = self.version(version);
            wave.insert(version, value);
        }
        for &slot in self.shared_slots {
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

    /// Writes a shared register, or one of its halves: one of the lanes' values, for all of them.
    pub fn write_shared(&mut self, site: Site, slot: Slot, half: Option<bool>, value: Value) {
        if self.terms.as_constant(self.path) == Some(0) {
            return;
        }
        let poison = value.any_poison(self.terms);
        let mut value = Value::new(value.bits, poison);
        let path = self.path;
        let alike = self.is_uniform(value.bits) && self.is_uniform(poison);
        let together = self.is_uniform(path);
        let mut others = None;
        if !alike || !together {
            let event = Event {
                site,
                kind: EventKind::OneLane,
                what: "one lane".to_owned(),
                path,
                args: smallvec![value],
                results: smallvec![1, 32, 1],
                uniform: true,
                alone: false,
            };
            let results = self.event(event);
            let mut written = value;
            if !alike {
                // Poison where lanes disagree, or one of them has none.
                written = Value::new(results[1], results[0]);
                value = Value::new(value.bits, self.terms.or(1, poison, results[0]));
            }
            others = (!together).then_some((results[2], written, half));
        }
        if let Some(high) = half {
            let old = self.read_shared(slot, path);
            value = old.with_half(self.terms, high, value);
        }
        self.shared.entry(slot).or_default().push(SharedWrite { path, value, others, alike });
    }

    fn read_shared(&mut self, slot: Slot, path: Term) -> Value {
        let here = self.terms.conjuncts(path);
        let writes = self.shared.get(&slot).map_or(0, Vec::len);
        // The last write that the reader is sure to see, and those behind it.
        let mut first = writes;
        let mut sure = None;
        while first > 0 && sure.is_none() {
            let write = self.shared[&slot][first - 1];
            if self.terms.as_constant(write.path) == Some(0) {
                sure = Some(write.value);
            } else {
                let conditions = self.terms.conjuncts(write.path);
                sure = conditions.iter().all(|condition| here.contains(condition)).then_some(write.value);
            }
            first -= usize::from(sure.is_none());
        }
        let mut value = match sure {
            Some(value) => value,
            None => self.oracle.start(self.terms, slot),
        };
        for i in first..writes {
            let write = self.shared[&slot][i];
            if let Some((any, theirs, half)) = write.others {
                let theirs = half.map_or(theirs, |high| value.with_half(self.terms, high, theirs));
                value = self.choose(any, theirs, value);
                // The reader may be one of those who wrote.
                if write.alike {
                    continue;
                }
            }
            value = self.choose(write.path, write.value, value);
        }
        value
    }

    /// One of two values.
    pub fn choose(&mut self, condition: Term, yes: Value, no: Value) -> Value {
        choose(self.terms, condition, yes, no)
    }

    /// The poison of what is computed from operands.
    pub fn poison_of(&mut self, operands: &[Value]) -> Term {
        let mut all = self.terms.constant(1, 0);
        for operand in operands {
            let own = operand.any_poison(self.terms);
            all = self.terms.or(1, all, own);
        }
        all
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
        let version = match event.kind {
            EventKind::Memory(space) => Some(slot::memory(space)),
            EventKind::Constants => Some(slot::CONSTANTS),
            EventKind::Lanes | EventKind::OneLane => None,
        };
        // Each place where a block stands is one of its own.
        let site = event.site.in_copy(self.graph.standing[self.block as usize].copy.into());
        let event = Event { site, alone: self.is_alone(), ..event };
        let results = self.oracle.event(self.terms, event);
        if let (Some(version), Some(&bits)) = (version, results.last()) {
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
    let bits = pick(width, yes.bits, no.bits);
    let low = pick(1, yes.poison[0], no.poison[0]);
    let high = if yes.poison[0] == yes.poison[1] && no.poison[0] == no.poison[1] {
        low
    } else {
        pick(1, yes.poison[1], no.poison[1])
    };
    Value { bits, poison: [low, high] }
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
    /// Whether all lanes that are here go to a loop together, or none does.
    pub fn goes_as_one(&self, number: u32, terms: &Terms, facts: &Facts) -> bool {
        let goes_there = self.transitions.iter().find(|transition| transition.goal == Goal::Header(number));
        goes_there.is_none_or(|transition| facts.uniform(terms, transition.path))
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
        if let Some(&value) = self.transitions[transition].wave.get(&slot) {
            return value;
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
