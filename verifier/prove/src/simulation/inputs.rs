//! Inputs on which something differs, where it could not be proved equal.
//!
//! If a solver refutes a goal, it has values for the variables. Most variables are values that an environment can
//! set (a word of the constant file or of memory, an attribute). A lane's own position is not free: there are 64 lanes.
//! So the solver is queried once more, for values that *one of the lanes* of a seeded environment can have. It may
//! choose the results of float operations; where it has chosen wrong, the actual results on its operands are added, and
//! it is queried again, a few times.
//!
//! The result is a candidate: the results of cross-lane operations and textures, and the state in the middle of loops,
//! cannot be set. The interpreter decides whether the programs differ on it.

use crate::solver::{Answer, Budget, Query, Solver};
use crate::symbolic::HELPER;
use ir3_compiler::ir3::SystemValue;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::arithmetic::rows::{LANES, Row};
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::env::{CONST_WORDS, Env, Launch};
use ir3_semantics::environment::memory;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::terms::{FloatOp, Op, Term, Terms, values};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of goals.
const GOALS: u64 = 3;

/// The maximum number of queries with corrected float operations …
const REFINEMENTS: usize = 6;

/// … and the maximum number of operations that are corrected at once.
const OPERATIONS: usize = 48;

/// CPU time of one query.
const TIME: Duration = Duration::from_millis(250);

/// System values that may be any number in an environment. All others depend on the position of the lane.
const FREE: [&str; 7] =
    ["BaseVertex.", "BaseInstance.", "DrawId.", "InstanceId.", "VertexIdZeroBase.", "PrimitiveId.", "Opaque("];

/// A search for inputs.
#[derive(Debug, Default)]
pub struct InputSearch {
    launch: Launch,
    goals: u64,
    /// The inputs found.
    pub found: Vec<Env>,
}

impl InputSearch {
    /// A search for programs with these launch parameters.
    pub fn new(launch: Launch) -> Self {
        Self { launch, ..Self::default() }
    }

    /// Returns true if an input was found.
    pub fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Searches for an input on which the goal is false and all assumptions hold.
    pub fn search(
        &mut self,
        solver: &mut dyn Solver,
        limit: &Budget,
        terms: &mut Terms,
        assumptions: &[Term],
        goal: Term,
    ) {
        if self.goals == GOALS {
            return;
        }
        let env = Env::from_seed(self.goals);
        self.goals += 1;
        let mut roots = assumptions.to_vec();
        roots.push(goal);
        // A goal that is too large for the solver has no model either.
        let Some(nodes) = (Query { assumptions: assumptions.to_vec(), goal }).nodes(terms) else { return };
        let lanes = LaneVariables::new(&env, self.launch, terms, &nodes);
        let mut facts = assumptions.to_vec();
        facts.push(lanes.fact(terms));
        let budget = Budget { time: limit.time.min(TIME), ..*limit };
        let mut found = None;
        for _ in 0..REFINEMENTS {
            let query = Query { assumptions: facts.clone(), goal };
            let Answer::Invalid(model) = solver.solve(terms, &query, &budget) else { break };
            let values = values(terms, &roots, &|term| model.of(terms, term));
            let is = |term: &Term, bit| values[term] == bit;
            let settled = is(&goal, 0) && assumptions.iter().all(|term| is(term, 1));
            let before = facts.len();
            facts.extend(floats(terms, &nodes, &values));
            found = Some(values);
            if settled || facts.len() == before {
                break;
            }
        }
        if let Some(values) = found {
            let lane = lanes.lane(&values);
            self.found.extend([true, false].map(|alone| environment(&env, terms, &nodes, &values, lane, alone)));
        }
    }
}

/// Variables that depend on the position of the lane, and their values in each lane.
struct LaneVariables {
    variables: Vec<(Term, Row)>,
}

impl LaneVariables {
    fn new(env: &Env, launch: Launch, terms: &Terms, nodes: &[Term]) -> Self {
        let mut named: FxHashMap<String, (SystemValue, u32)> = FxHashMap::default();
        for value in SystemValue::named() {
            named.extend((0..4).map(|component| (format!("{value:?}.{component}"), (value, component))));
        }
        let variable = |&term: &Term| {
            let Op::Variable(name) = terms.node(term).op else { return None };
            let text = terms.text(name);
            let mut row = [0; LANES];
            if text == HELPER {
                let mask = env.helper_lanes(launch);
                row.iter_mut().enumerate().for_each(|(lane, bit)| *bit = (mask >> lane) as u32 & 1);
                return Some((term, row));
            }
            let text = terms.label(name);
            if FREE.iter().any(|free| text.starts_with(free)) {
                return None;
            }
            let &(value, component) = named.get(text)?;
            env.system_value(launch, value, component, &mut row);
            if terms.width(term) == 1 {
                row.iter_mut().for_each(|word| *word &= 1);
            }
            Some((term, row))
        };
        Self { variables: nodes.iter().filter_map(variable).collect() }
    }

    /// The condition that they have the values of one of the lanes.
    fn fact(&self, terms: &mut Terms) -> Term {
        let mut lanes: Vec<Vec<u32>> =
            (0..LANES).map(|lane| self.variables.iter().map(|(_, row)| row[lane]).collect()).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let mut any = Vec::new();
        for lane in lanes {
            let mut all = Vec::new();
            for (&(term, _), value) in self.variables.iter().zip(lane) {
                all.push(is(terms, term, value.into()));
            }
            any.push(terms.conjunction(&all));
        }
        terms.disjunction(&any)
    }

    /// The lane that has these values.
    fn lane(&self, values: &FxHashMap<Term, u64>) -> usize {
        let has = |lane: &usize| {
            self.variables
                .iter()
                .all(|(term, row)| values.get(term).is_none_or(|&value| value == u64::from(row[*lane])))
        };
        (0..LANES).find(has).unwrap_or(0)
    }
}

/// The condition that a term is a constant.
fn is(terms: &mut Terms, term: Term, value: u64) -> Term {
    let width = terms.width(term);
    let number = terms.constant(width, value);
    terms.eq(width, term, number)
}

/// The actual results of the float operations on these operands.
fn floats(terms: &mut Terms, nodes: &[Term], values: &FxHashMap<Term, u64>) -> Vec<Term> {
    let mut facts = Vec::new();
    for &term in nodes {
        let node = terms.node(term);
        let exact = matches!(node.op, Op::Float(op) if !matches!(op, FloatOp::Eq(_) | FloatOp::Lt(_) | FloatOp::Le(_)));
        if !exact || facts.len() == OPERATIONS {
            continue;
        }
        let args = node.args.clone();
        let operands: Vec<Term> = args.iter().map(|&arg| is(terms, arg, values[&arg])).collect();
        let here = terms.conjunction(&operands);
        let elsewhere = terms.not(1, here);
        let result = is(terms, term, values[&term]);
        facts.push(terms.or(1, elsewhere, result));
    }
    facts.retain(|&fact| terms.as_constant(fact) != Some(1));
    facts
}

/// The environment with these values: a value of a single lane is set for that lane, any other for all lanes.
fn environment(
    env: &Env,
    terms: &Terms,
    nodes: &[Term],
    values: &FxHashMap<Term, u64>,
    lane: usize,
    alone: bool,
) -> Env {
    let mut new = env.clone();
    for &term in nodes {
        let node = terms.node(term);
        let (Op::Variable(name) | Op::Apply(name)) = node.op else { continue };
        let text = terms.text(name);
        let args: Vec<u64> = node.args.iter().map(|arg| values[arg]).collect();
        let word = values[&term] as u32;
        let plain = terms.label(name);
        if let Some(key) = plain.strip_prefix("attribute ") {
            let row = alone.then(|| {
                let mut row = [0; LANES];
                let mut numbers = key.split('.').filter_map(|number| number.parse().ok());
                if let (Some(base), Some(component)) = (numbers.next(), numbers.next()) {
                    env.attribute(base, component, &mut row);
                }
                row
            });
            new.attributes.insert(key.to_owned(), of_lanes(row, lane, word));
        } else if FREE.iter().any(|free| plain.starts_with(free)) {
            new.system.insert(plain.to_owned(), vec![word]);
        } else if text.starts_with("uniform file") {
            if let Some(index) = args.last() {
                new.consts.entry(*index as u32 % CONST_WORDS).or_insert(word);
            }
        } else if matches!(text, "flat varying" | "varying") {
            // The same for any coordinates.
            new.varyings.entry(args[0] as u32).or_insert([word, 0, 0]);
        } else if let Some(bits) = text.strip_prefix("uniform buffer Ubo ") {
            let (binding, address) = (Binding::from_bits(args[0]), args[1]);
            let place = (address >> 2) as u32;
            let old = env.ubo_word(binding, place);
            let words = new.memory.entry(format!("ubo {binding}")).or_default();
            put(words, place, old, (address, bits), word);
        } else if let Some((space, bits)) = memory_of(text)
            && let [_version, binding, place @ ..] = &args[..]
        {
            let binding = Binding::from_bits(*binding);
            let (place, address) = match (space, place) {
                (Space::Image, [texel @ .., component]) => {
                    let texel: Vec<u32> = texel.iter().map(|&coordinate| coordinate as u32).collect();
                    (memory::image_cell(&texel) * 4 + *component as u32, 0)
                }
                (_, [address]) => (memory::word_of(*address, space.words()), *address),
                _ => continue,
            };
            let old = env.memory_word(space, binding, place);
            let words = new.memory.entry(format!("{} {binding}", space.name())).or_default();
            put(words, place, old, (address, bits), word);
        }
    }
    new
}

/// A row in which one lane has a word, or all lanes.
fn of_lanes(row: Option<Row>, lane: usize, word: u32) -> Vec<u32> {
    match row {
        None => vec![word],
        Some(mut row) => {
            row[lane] = word;
            row.to_vec()
        }
    }
}

/// The memory from which a function loads, and the width in bits.
fn memory_of(text: &str) -> Option<(Space, &str)> {
    let spaces = [Space::Ssbo, Space::Shared, Space::Global, Space::Image];
    let (space, rest) = text.split_once(' ')?;
    let (bits, _) = rest.split_once(" of ")?;
    Some((spaces.into_iter().find(|other| other.name() == space)?, bits))
}

/// Inserts a part of a word of memory.
fn put(words: &mut BTreeMap<u32, u32>, place: u32, old: u32, (address, bits): (u64, &str), word: u32) {
    let byte = address as u32 & 3;
    let (shift, mask) = match bits {
        "8" => (byte * 8, 0xff),
        "16" => ((byte & 2) * 8, 0xffff),
        _ => (0, u32::MAX),
    };
    let whole = words.entry(place).or_insert(old);
    *whole = *whole & !(mask << shift) | (word & mask) << shift;
}
