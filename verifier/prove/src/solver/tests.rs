//! Each operation against the semantics, equalities that hold and that do not, and the behaviour at the limits.

use super::*;
use ir3_semantics::arithmetic::concrete::mask;
use ir3_semantics::arithmetic::domain::{Domain, Format, Rounding};
use ir3_semantics::support::random::hash;
use ir3_semantics::terms::FloatOp;
use std::time::Instant;

fn solve(terms: &Terms, assumptions: &[Term], goal: Term) -> Answer {
    Z3::default().solve(terms, &Query { assumptions: assumptions.to_vec(), goal }, &Budget::default())
}

/// Constants, among them the corner cases of operations.
fn number(w: u32, seed: u64) -> u64 {
    let bits = hash(&[seed]);
    let number = match bits % 6 {
        0 => bits >> 8 & 3,
        1 => u64::MAX - (bits >> 8 & 3),
        2 => 1 << (w - 1) | bits >> 8 & 1,
        3 => bits >> 8 & u64::from(w),
        _ => bits >> 8,
    };
    number & mask(w)
}

/// Every operation with the width of its result and those of its arguments.
fn operations() -> Vec<(Op, u32, Vec<u32>)> {
    let mut all = Vec::new();
    for w in [1, 3, 16, 32, 64] {
        all.extend([Op::Not, Op::Popcount, Op::Clz, Op::Reverse].map(|op| (op, w, vec![w])));
        all.extend([Op::Udiv, Op::Urem, Op::UmulHigh, Op::SmulHigh].map(|op| (op, w, vec![w; 2])));
        all.extend([Op::Shl, Op::Lshr, Op::Ashr].map(|op| (op, w, vec![w; 2])));
        all.extend([Op::Eq, Op::Ult, Op::Slt].map(|op| (op, 1, vec![w; 2])));
        all.extend([Op::And, Op::Xor, Op::Add, Op::Mul].map(|op| (op, w, vec![w; 2])));
        all.extend([Op::And, Op::Xor, Op::Add].map(|op| (op, w, vec![w; 3])));
        all.push((Op::Ite, w, vec![1, w, w]));
        for to in [w + 1, 32, 64].into_iter().filter(|&to| to > w && to <= 64) {
            all.extend([Op::Zext, Op::Sext].map(|op| (op, to, vec![w])));
            all.push((Op::Concat, to, vec![to - w, w]));
        }
        for (low, n) in [(0, 1), (w - 1, 1), (w / 2, w - w / 2)] {
            if n < w {
                all.push((Op::Extract(low as u8), n, vec![w]));
            }
        }
    }
    for f in [Format::F16, Format::F32, Format::F64] {
        all.extend([FloatOp::Eq(f), FloatOp::Lt(f), FloatOp::Le(f)].map(|op| (Op::Float(op), 1, vec![f.width(); 2])));
    }
    all
}

/// The operation on variables, assumptions that give them these values, and the result by the semantics.
fn instance(terms: &mut Terms, op: Op, w: u32, widths: &[u32], numbers: &[u64]) -> (Term, Vec<Term>, u64) {
    let mut variables = Vec::new();
    let mut constants = Vec::new();
    let mut assumptions = Vec::new();
    for (i, (&width, &number)) in widths.iter().zip(numbers).enumerate() {
        let name = terms.name(&format!("x{i} of {width}"));
        let variable = terms.variable(width, name);
        let constant = terms.constant(width, number);
        assumptions.push(terms.eq(width, variable, constant));
        variables.push(variable);
        constants.push(constant);
    }
    let folded = terms.rebuild(op, w, &constants);
    let value = terms.as_constant(folded).expect("numbers are folded");
    (terms.rebuild(op, w, &variables), assumptions, value)
}

/// Constants for the arguments: for floats, ones that are near each other or special.
fn arguments(op: Op, widths: &[u32], seed: u64) -> Vec<u64> {
    let special = |w| {
        let f = Format::of_width(w).expect("a format");
        vec![
            0,
            f.sign(),
            f.nan(),
            f.nan() | f.sign() | 1,
            f.infinity(),
            f.infinity() | f.sign(),
            f.one(),
            1,
            f.sign() | 1,
        ]
    };
    let argument = |(i, &w): (usize, &u32)| match op {
        Op::Float(_) if !hash(&[seed, i as u64]).is_multiple_of(4) => {
            let all = special(w);
            all[(hash(&[seed, i as u64, 1]) % all.len() as u64) as usize]
        }
        _ => number(w, seed * 4 + i as u64),
    };
    widths.iter().enumerate().map(argument).collect()
}

#[test]
fn every_operation_means_what_the_semantics_say() {
    let mut terms = Terms::new();
    for (number, (op, w, widths)) in operations().into_iter().enumerate() {
        let special = if matches!(op, Op::Float(_)) { 30 } else { 2 };
        for seed in 0..special {
            let numbers = arguments(op, &widths, seed * 1000 + number as u64);
            let (term, assumptions, value) = instance(&mut terms, op, w, &widths, &numbers);
            for (value, holds) in [(value, true), (value ^ 1, false)] {
                let value = terms.constant(w, value);
                let goal = terms.eq(w, term, value);
                let answer = solve(&terms, &assumptions, goal);
                assert_eq!(answer == Answer::Valid, holds, "{op:?} {w} of {numbers:x?}: {answer:?}");
                if seed == 0 && holds {
                    as_text(&terms, &assumptions, goal, Floats::Uninterpreted, &answer);
                }
                let Answer::Invalid(model) = answer else { continue };
                // The model is unique where the normalised term still depends on the variables.
                for (name, number) in model.iter() {
                    let text = terms.text(name);
                    let at: usize = text[1..2].parse().expect("a number");
                    assert_eq!(number, numbers[at], "{op:?} {w}: {text}");
                }
            }
        }
    }
}

/// Checks that the text has the same answer.
fn as_text(terms: &Terms, assumptions: &[Term], goal: Term, floats: Floats, answer: &Answer) {
    let query = Query { assumptions: assumptions.to_vec(), goal };
    if query.plain_answer(terms).is_none() {
        let same = z3::solve_text(terms, &query, floats, &Budget::default()).expect("readable text");
        assert_eq!(smtlib::status(&same), smtlib::status(answer), "{same:?}");
    }
}

/// Every operation on floats that IEEE 754 defines, with the widths of its result and its arguments.
fn float_operations() -> Vec<(FloatOp, u32, Vec<u32>)> {
    let formats = [Format::F16, Format::F32, Format::F64];
    let roundings = [Rounding::Even, Rounding::Away, Rounding::Zero, Rounding::Up, Rounding::Down];
    let mut all = Vec::new();
    for f in formats {
        let w = f.width();
        all.extend([FloatOp::Add(f), FloatOp::Mul(f), FloatOp::Div(f)].map(|op| (op, w, vec![w; 2])));
        all.push((FloatOp::Fma(f), w, vec![w; 3]));
        for rounding in roundings {
            all.push((FloatOp::Round(f, rounding), w, vec![w]));
            for signed in [false, true] {
                for width in [8, 16, 32, 64] {
                    all.push((FloatOp::ToInt { from: f, width, signed, rounding }, width.into(), vec![w]));
                    all.push((FloatOp::FromInt { width, signed, to: f, rounding }, w, vec![width.into()]));
                }
            }
        }
        for to in formats.into_iter().filter(|&to| to != f) {
            let modes = if to.width() < w { &roundings[..] } else { &roundings[..1] };
            all.extend(modes.iter().map(|&rounding| (FloatOp::Convert(f, to, rounding), to.width(), vec![w])));
        }
    }
    all
}

#[test]
fn exact_floats_mean_what_the_semantics_say() {
    let mut terms = Terms::new();
    let mut solver = Z3 { floats: Floats::Exact };
    for (place, (op, w, widths)) in float_operations().into_iter().enumerate() {
        let converts = matches!(op, FloatOp::ToInt { .. } | FloatOp::FromInt { .. });
        for seed in 0..if converts { 1 } else { 3 } {
            let seed = seed * 1000 + place as u64;
            let numbers = match op {
                FloatOp::FromInt { width, .. } => vec![number(width.into(), seed)],
                _ => arguments(Op::Float(op), &widths, seed),
            };
            let (term, assumptions, value) = instance(&mut terms, Op::Float(op), w, &widths, &numbers);
            for (value, holds) in [(value, true), (value ^ 1, false)] {
                let value = terms.constant(w, value);
                let goal = terms.eq(w, term, value);
                let query = Query { assumptions: assumptions.clone(), goal };
                let answer = solver.solve(&terms, &query, &Budget::default());
                assert_eq!(answer == Answer::Valid, holds, "{op:?} of {numbers:x?}: {answer:?}");
            }
        }
    }
}

/// Laws of floats, and others that are commonly assumed but wrong.
#[test]
fn exact_floats_for_all_values() {
    let mut terms = Terms::new();
    let f = Format::F16;
    let [x, y] = two(&mut terms, 16);
    let [one, two_, half, zero] = [0x3c00, 0x4000, 0x3800, 0].map(|bits| terms.constant(16, bits));
    let (double, sum) = (terms.fmul(f, x, two_), terms.fadd(f, x, x));
    let (quotient, product) = (terms.fdiv(f, x, two_), terms.fmul(f, x, half));
    let (xy, yx) = (
        terms.rebuild(Op::Float(FloatOp::Add(f)), 16, &[x, y]),
        terms.rebuild(Op::Float(FloatOp::Add(f)), 16, &[y, x]),
    );
    let (with_zero, by_one) = (terms.fadd(f, x, zero), terms.fmul(f, x, one));
    for (a, b, holds) in
        [(double, sum, true), (quotient, product, true), (xy, yx, true), (with_zero, by_one, false), (by_one, x, false)]
            .into_iter()
            .chain([(double, sum, false), (quotient, product, false)])
    {
        let goal = terms.eq(16, a, b);
        // The NaN of a product has a sign, other NaNs have none.
        let number = terms.feq(f, x, x);
        let query = Query { assumptions: if holds { vec![number] } else { Vec::new() }, goal };
        let answer = Z3 { floats: Floats::Exact }.solve(&terms, &query, &Budget::default());
        assert_eq!(answer == Answer::Valid, holds, "{answer:?}");
        if !holds {
            let Answer::Invalid(model) = answer else { panic!("{answer:?}") };
            let bits = model.value(terms.name("x"));
            assert!(bits == 0x8000 || bits & 0x7fff > 0x7c00, "{bits:x}");
        }
    }
}

/// Names that are not symbols, functions without arguments, sharing; the text is the same each time.
#[test]
fn texts_of_queries() {
    let mut terms = Terms::new();
    let [a, b] = ["a|b \\ \u{e9}", "(a"].map(|name| {
        let name = terms.name(name);
        terms.variable(8, name)
    });
    let name = terms.name("nothing");
    let nothing = terms.apply(8, name, &[]);
    let name = terms.name("c");
    let c = terms.variable(1, name);
    let sum = terms.add(8, a, b);
    let product = terms.mul(8, sum, sum);
    let choice = terms.ite(8, c, product, nothing);
    let goal = terms.ult(8, choice, sum);
    let same = terms.eq(8, sum, nothing);
    for assumptions in [vec![], vec![same, c]] {
        let answer = solve(&terms, &assumptions, goal);
        as_text(&terms, &assumptions, goal, Floats::Uninterpreted, &answer);
        as_text(&terms, &assumptions, goal, Floats::Exact, &answer);
        let query = Query { assumptions, goal };
        let text = smtlib::text(&terms, &query, Floats::Uninterpreted, Some(&answer)).expect("a small query");
        assert_eq!(text.matches("bvadd").count(), 1, "{text}");
        assert!(text.contains("(set-info :status sat)") == matches!(answer, Answer::Invalid(_)), "{text}");
        assert_eq!(Some(text), smtlib::text(&terms, &query, Floats::Uninterpreted, Some(&answer)));
    }
}

#[test]
fn each_query_is_recorded_once() {
    let folder = std::env::temp_dir().join(format!("ir3-equiv-queries-{}", std::process::id()));
    let mut terms = Terms::new();
    let [x, y] = two(&mut terms, 32);
    let goal = terms.ult(32, x, y);
    let plain = terms.constant(1, 1);
    let mut solver =
        smtlib::Recording::new(Z3::default(), &smtlib::QueryFolder::new(&folder).expect("a folder"), Floats::default());
    for goal in [goal, goal, plain] {
        solver.solve(&terms, &Query { assumptions: Vec::new(), goal }, &Budget::default());
    }
    assert_eq!(solver.written(), 2);
    let files: Vec<_> =
        std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    let texts: Vec<_> = files.iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(texts.len(), 1);
    assert!(texts[0].contains("(set-info :status sat)"), "{}", texts[0]);
}

/// Two variables of a width.
fn two(terms: &mut Terms, w: u32) -> [Term; 2] {
    ["x", "y"].map(|name| {
        let name = terms.name(name);
        terms.variable(w, name)
    })
}

#[test]
fn equalities_that_hold_and_that_do_not() {
    for w in [1, 8, 16, 32, 64] {
        let mut terms = Terms::new();
        let [x, y] = two(&mut terms, w);
        let (and, or, sum) = (terms.and(w, x, y), terms.or(w, x, y), terms.add(w, x, y));
        let carry = terms.add(w, and, or);
        let holds = terms.eq(w, sum, carry);
        assert_eq!(solve(&terms, &[], holds), Answer::Valid, "{w}");
        let fails = terms.eq(w, or, sum);
        let Answer::Invalid(model) = solve(&terms, &[], fails) else { panic!("x | y is not x + y") };
        let [x, y] = ["x", "y"].map(|name| model.value(terms.name(name)));
        assert_ne!(x | y, x.wrapping_add(y) & mask(w), "{w}");
    }
}

#[test]
fn assumptions_count() {
    let mut terms = Terms::new();
    let [x, y] = two(&mut terms, 32);
    let (less, not_more) = (terms.ult(32, x, y), terms.ult(32, y, x));
    let goal = terms.not(1, not_more);
    assert_eq!(solve(&terms, &[less], goal), Answer::Valid);
    assert!(matches!(solve(&terms, &[], goal), Answer::Invalid(_)));
}

/// Functions give the same results for the same arguments, and nothing else is known of them.
#[test]
fn functions_are_functions() {
    let mut terms = Terms::new();
    let [x, y] = two(&mut terms, 32);
    let name = terms.name("f");
    let (a, b) = (terms.apply(32, name, &[x, y]), terms.apply(32, name, &[y, x]));
    let (equal, results) = (terms.eq(32, x, y), terms.eq(32, a, b));
    assert_eq!(solve(&terms, &[equal], results), Answer::Valid);
    assert!(matches!(solve(&terms, &[], results), Answer::Invalid(_)));
    let sum = |terms: &mut Terms, f, x, y| terms.rebuild(Op::Float(FloatOp::Add(f)), f.width(), &[x, y]);
    let (a, b) = (sum(&mut terms, Format::F32, x, x), sum(&mut terms, Format::F32, x, y));
    let results = terms.eq(32, a, b);
    assert_eq!(solve(&terms, &[equal], results), Answer::Valid);
    assert!(matches!(solve(&terms, &[], results), Answer::Invalid(_)));
    // Rounding modes are part of the function.
    let [up, down] = [Rounding::Up, Rounding::Down].map(|rounding| terms.fround(Format::F32, rounding, x));
    let goal = terms.eq(32, up, down);
    assert!(matches!(solve(&terms, &[], goal), Answer::Invalid(_)));
}

#[test]
fn what_is_plain_is_not_asked() {
    let mut terms = Terms::new();
    let [x, _] = two(&mut terms, 1);
    let (yes, no) = (terms.constant(1, 1), terms.constant(1, 0));
    let answer = |assumptions: &[Term], goal| Query { assumptions: assumptions.to_vec(), goal }.plain_answer(&terms);
    assert_eq!(answer(&[x], yes), Some(Answer::Valid));
    assert_eq!(answer(&[x], x), Some(Answer::Valid));
    assert_eq!(answer(&[x, no], no), Some(Answer::Valid));
    assert_eq!(answer(&[yes], no), Some(Answer::Invalid(Model::default())));
    assert_eq!(answer(&[x], no), None);
    assert_eq!(answer(&[], x), None);
}

/// A product of sums, on which every solver times out.
fn hard(terms: &mut Terms) -> Term {
    let [x, y] = two(terms, 64);
    let name = terms.name("z");
    let z = terms.variable(64, name);
    let (xy, yz) = (terms.mul(64, x, y), terms.mul(64, y, z));
    let (left, right) = (terms.umul_high(64, xy, z), terms.umul_high(64, x, yz));
    let (a, b) = (terms.mul(64, left, right), terms.mul(64, xy, yz));
    terms.ult(64, a, b)
}

#[test]
fn limits_are_kept() {
    let mut terms = Terms::new();
    let [x, y] = two(&mut terms, 64);
    let (quotient, one) = (terms.udiv(64, x, y), terms.constant(64, 1));
    let product = terms.mul(64, quotient, y);
    let difference = terms.sub(64, x, product);
    let less = terms.ult(64, difference, y);
    let no_zero = terms.ult(64, one, y);
    let query = Query { assumptions: vec![no_zero], goal: less };
    let budget = Budget { rlimit: 1_000_000, time: Duration::from_secs(60) };
    let first = Z3::default().solve(&terms, &query, &budget);
    assert_eq!(first, Answer::Unknown(Reason::Resources));
    let hard = hard(&mut terms);
    let query = Query { assumptions: vec![hard], goal: less };
    let budget = Budget { rlimit: u64::MAX, time: Duration::from_millis(200) };
    let start = Instant::now();
    assert_eq!(Z3::default().solve(&terms, &query, &budget), Answer::Unknown(Reason::Time));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// A chain of operations as long as a large program: nothing recurses.
#[test]
fn deep_terms() {
    let mut terms = Terms::new();
    let [x, y] = two(&mut terms, 32);
    let mut chain = x;
    for _ in 0..4_000 {
        chain = terms.xor(32, chain, y);
        chain = terms.rebuild(Op::Reverse, 32, &[chain]);
        chain = terms.rebuild(Op::Reverse, 32, &[chain]);
        chain = terms.add(32, chain, x);
    }
    let goal = terms.eq(32, chain, x);
    // No answer is needed: that the term is translated at all is what counts.
    let budget = Budget { time: Duration::from_secs(1), ..Budget::default() };
    let answer = Z3::default().solve(&terms, &Query { assumptions: Vec::new(), goal }, &budget);
    assert!(!matches!(answer, Answer::Valid));
}

/// The model, too, does not depend on earlier queries.
#[test]
fn answers_do_not_depend_on_what_was_asked_before() {
    let mut terms = Terms::new();
    let [x, y] = two(&mut terms, 32);
    let (sum, product) = (terms.add(32, x, y), terms.mul(32, x, y));
    let goal = terms.eq(32, sum, product);
    let first = solve(&terms, &[], goal);
    let other = terms.eq(32, x, y);
    solve(&terms, &[], other);
    assert_eq!(solve(&terms, &[], goal), first);
}

/// Operands of an uninterpreted sum are in the order of the terms, also those that are only equal under an assumption.
#[test]
fn commutative_functions_of_equal_operands_are_equal() {
    let mut terms = Terms::new();
    let [x, y, z] = ["x", "y", "z"].map(|name| {
        let name = terms.name(name);
        terms.variable(32, name)
    });
    let f = Format::F32;
    let same = terms.eq(32, x, z);
    for (a, b) in [
        (terms.fadd(f, x, y), terms.fadd(f, y, z)),
        (terms.fmul(f, x, y), terms.fmul(f, y, z)),
        (terms.ffma(f, x, y, y), terms.ffma(f, y, z, y)),
    ] {
        // The operand that both have is not at one place, or the solver's congruence would do.
        let (of_a, of_b) = (terms.node(a), terms.node(b));
        assert!(of_a.args[0] == of_b.args[1] || of_a.args[1] == of_b.args[0]);
        let goal = terms.eq(32, a, b);
        assert_eq!(solve(&terms, &[same], goal), Answer::Valid);
        assert!(matches!(solve(&terms, &[], goal), Answer::Invalid(_)));
    }
    // A quotient does not commute.
    let (a, b) = (terms.fdiv(f, x, y), terms.fdiv(f, y, z));
    let goal = terms.eq(32, a, b);
    assert!(matches!(solve(&terms, &[same], goal), Answer::Invalid(_)));
}
