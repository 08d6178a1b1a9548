//! Z3, through its library.

use super::lower::{self, Binary, BitRelation, Logic, LoweredTerm};
use super::smtlib::Script;
use super::{Answer, Budget, Floats, Model, Query, Reason, Solver, smtlib, variables};
use ::z3::ast::{Ast, BV, Bool};
use ::z3::{Config, Context, FuncDecl, Params, SatResult, Sort, StatisticsValue, with_z3_config, with_z3_context};
use ir3_semantics::terms::{Term, Terms};
use std::cell::RefCell;
use std::time::Instant;

thread_local! {
    /// The context of the session of this thread: none yet, or none at all outside of a session.
    static SESSION: RefCell<Option<Option<Context>>> = const { RefCell::new(None) };
}

/// The queries of one proof. They share a context, as to make one takes as long as to answer a small query. So an
/// answer is a function of the queries of the proof up to this one; outside of a session, of the query.
pub struct Session(());

impl Session {
    /// Begins a session, which ends when it is dropped.
    pub fn begin() -> Self {
        SESSION.set(Some(None));
        Self(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        SESSION.set(None);
    }
}

/// Calls a function in the context of the session, or in one of its own.
fn in_context<R: Send + Sync>(call: impl FnOnce() -> R + Send + Sync) -> R {
    match SESSION.with_borrow(Clone::clone) {
        None => with_z3_config(&Config::new(), call),
        Some(Some(context)) => with_z3_context(&context, call),
        Some(None) => with_z3_config(&Config::new(), || {
            SESSION.set(Some(Some(Context::thread_local())));
            call()
        }),
    }
}

/// Z3. It keeps nothing from one query to the next, except its context in a [`Session`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Z3 {
    /// The encoding of float operations.
    pub floats: Floats,
}

impl Z3 {
    /// The reason why this build has no solver: it has one.
    pub const LEFT_OUT: Option<&'static str> = None;
}

impl Solver for Z3 {
    fn solve(&mut self, terms: &Terms, query: &Query, budget: &Budget) -> Answer {
        if let Some(answer) = query.plain_answer(terms) {
            return answer;
        }
        match query.nodes(terms) {
            Some(nodes) => in_context(|| solve(terms, query, &nodes, self.floats, budget)),
            None => Answer::Unknown(Reason::Size(super::MOST_NODES)),
        }
    }
}

fn solve(terms: &Terms, query: &Query, nodes: &[Term], floats: Floats, budget: &Budget) -> Answer {
    let (solver, functions) = match floats {
        Floats::Uninterpreted => assertions(terms, query, nodes),
        // The library has no expression that makes a float of bits; the text has.
        Floats::Exact => match read(&smtlib::script(terms, query, nodes, floats, None)) {
            Some(solver) => (solver, Vec::new()),
            None => return Answer::Unknown(Reason::Solver("it does not read the query".into())),
        },
    };
    let start = spent(&solver);
    check(&solver, budget, || model(&solver, terms, nodes, &functions, floats, start))
}

/// Applications of uninterpreted functions, as expressions.
type Functions = Vec<(Term, LoweredTerm<Expressions>)>;

/// A solver with the bit-vector encoding of the negated query, and the applications in it.
fn assertions(terms: &Terms, query: &Query, nodes: &[Term]) -> (::z3::Solver, Functions) {
    let lowered = lower::lower(&mut Expressions, terms, query, nodes);
    // Three to ten times as fast as the default, which detects the logic itself.
    let solver = ::z3::Solver::new_for_logic("QF_UFBV").unwrap_or_default();
    for assumption in &lowered.assumptions {
        solver.assert(assumption);
    }
    solver.assert(lowered.goal.not());
    (solver, lowered.functions)
}

/// A solver with the assertions of a text, if it can be parsed.
fn read(script: &Script) -> Option<::z3::Solver> {
    let solver = ::z3::Solver::new_for_logic(script.logic).unwrap_or_default();
    solver.from_string(script.text.as_str());
    (solver.get_assertions().len() == 1).then_some(solver)
}

/// The answer to a query by way of its text.
#[cfg(test)]
pub(super) fn solve_text(terms: &Terms, query: &Query, floats: Floats, budget: &Budget) -> Option<Answer> {
    let nodes = query.nodes(terms)?;
    with_z3_config(&Config::new(), || {
        let solver = read(&smtlib::script(terms, query, &nodes, floats, None))?;
        Some(check(&solver, budget, || Answer::Invalid(Model::default())))
    })
}

/// Checks the assertions within the budget; `invalid` returns the answer if they are satisfiable.
fn check(solver: &::z3::Solver, budget: &Budget, invalid: impl FnOnce() -> Answer) -> Answer {
    let mut params = Params::new();
    params.set_u32("rlimit", budget.rlimit.try_into().unwrap_or(u32::MAX));
    params.set_u32("timeout", budget.time.as_millis().try_into().unwrap_or(u32::MAX));
    // Otherwise a SIGINT during a query ends the query, and the program does not see it.
    params.set_bool("ctrl_c", false);
    solver.set_params(&params);
    let start = Instant::now();
    match solver.check() {
        SatResult::Unsat => Answer::Valid,
        SatResult::Sat => invalid(),
        SatResult::Unknown => {
            let text = solver.get_reason_unknown().unwrap_or_default();
            Answer::Unknown(reason(text, start.elapsed() >= budget.time))
        }
    }
}

/// The values of the variables and of applications: each is evaluated, as the shape of a model differs between
/// releases. `start` is the amount of resources that had been used before the query.
fn model(
    solver: &::z3::Solver,
    terms: &Terms,
    nodes: &[Term],
    functions: &Functions,
    floats: Floats,
    start: u64,
) -> Answer {
    let Some(model) = solver.get_model() else {
        return Answer::Unknown(Reason::Solver("it has no model".into()));
    };
    let value = |(name, w)| {
        let text = match floats {
            Floats::Uninterpreted => terms.text(name).to_owned(),
            Floats::Exact => smtlib::quote(terms.text(name)).trim_matches('|').to_owned(),
        };
        let value = if w == 1 {
            model.eval(&Bool::new_const(text), true)?.as_bool().map(u64::from)
        } else {
            model.eval(&BV::new_const(text, w), true)?.as_u64()
        };
        Some((name, value?))
    };
    let applied = |(term, value): &(Term, LoweredTerm<Expressions>)| {
        let value = match value {
            LoweredTerm::Bits(bits) => model.eval(bits, true)?.as_u64()?,
            LoweredTerm::Truth(truth) => model.eval(truth, true)?.as_bool()?.into(),
        };
        Some((*term, value))
    };
    match variables(terms, nodes).into_iter().map(value).collect::<Option<Model>>() {
        Some(found) => {
            let found = found.with_functions(functions.iter().filter_map(applied).collect());
            Answer::Invalid(Model { cost: spent(solver).saturating_sub(start), ..found })
        }
        None => Answer::Unknown(Reason::Solver("its model has no value for a variable".into())),
    }
}

/// The amount of resources that all solvers of the context have used.
fn spent(solver: &::z3::Solver) -> u64 {
    match solver.get_statistics().value("rlimit count") {
        Some(StatisticsValue::UInt(count)) => count.into(),
        _ => 0,
    }
}

/// Z3's message does not distinguish the two limits.
fn reason(text: String, late: bool) -> Reason {
    let limit = ["timeout", "cancel", "resource"].iter().any(|word| text.contains(word));
    match (limit, late) {
        (true, true) => Reason::Time,
        (true, false) => Reason::Resources,
        (false, _) => Reason::Solver(text),
    }
}

/// Z3's expressions, in the context of the thread.
struct Expressions;

impl Logic for Expressions {
    type Bits = BV;
    type Truth = Bool;

    fn number(&mut self, w: u32, bits: u64) -> BV {
        BV::from_u64(bits, w)
    }
    fn variable(&mut self, w: u32, name: &str) -> BV {
        BV::new_const(name, w)
    }
    fn complement(&mut self, _w: u32, a: &BV) -> BV {
        a.bvnot()
    }
    fn binary(&mut self, op: Binary, _w: u32, a: &BV, b: &BV) -> BV {
        match op {
            Binary::And => a.bvand(b),
            Binary::Or => a.bvor(b),
            Binary::Xor => a.bvxor(b),
            Binary::Add => a.bvadd(b),
            Binary::Mul => a.bvmul(b),
            Binary::Udiv => a.bvudiv(b),
            Binary::Urem => a.bvurem(b),
            Binary::Shl => a.bvshl(b),
            Binary::Lshr => a.bvlshr(b),
            Binary::Ashr => a.bvashr(b),
        }
    }
    fn test(&mut self, test: BitRelation, a: &BV, b: &BV) -> Bool {
        match test {
            BitRelation::Equal => a.eq(b),
            BitRelation::UnsignedLess => a.bvult(b),
            BitRelation::SignedLess => a.bvslt(b),
        }
    }
    fn choose(&mut self, _w: u32, condition: &Bool, a: &BV, b: &BV) -> BV {
        condition.ite(a, b)
    }
    fn extend(&mut self, signed: bool, w: u32, to: u32, a: &BV) -> BV {
        if signed { a.sign_ext(to - w) } else { a.zero_ext(to - w) }
    }
    fn extract(&mut self, a: &BV, low: u32, n: u32) -> BV {
        a.extract(low + n - 1, low)
    }
    fn concat(&mut self, _w: u32, high: &BV, low: &BV) -> BV {
        high.concat(low)
    }
    fn apply(&mut self, w: u32, name: &str, args: &[(u32, BV)]) -> BV {
        let domain: Vec<Sort> = args.iter().map(|&(w, _)| Sort::bitvector(w)).collect();
        let function = FuncDecl::new(name, &domain.iter().collect::<Vec<_>>(), &Sort::bitvector(w));
        let args: Vec<&dyn Ast> = args.iter().map(|(_, arg)| arg as &dyn Ast).collect();
        let value = function.apply(&args);
        value.as_bv().unwrap_or_else(|| unreachable!("the range of {name} is a bit vector"))
    }

    fn truth(&mut self, value: bool) -> Bool {
        Bool::from_bool(value)
    }
    fn condition(&mut self, name: &str) -> Bool {
        Bool::new_const(name)
    }
    fn not(&mut self, a: &Bool) -> Bool {
        a.not()
    }
    fn both(&mut self, a: &Bool, b: &Bool) -> Bool {
        Bool::and(&[a, b])
    }
    fn either(&mut self, a: &Bool, b: &Bool) -> Bool {
        Bool::or(&[a, b])
    }
    fn differ(&mut self, a: &Bool, b: &Bool) -> Bool {
        a.xor(b)
    }
    fn choose_truth(&mut self, condition: &Bool, a: &Bool, b: &Bool) -> Bool {
        condition.ite(a, b)
    }
}
