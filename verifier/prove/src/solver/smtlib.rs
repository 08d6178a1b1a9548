//! Queries as SMT-LIB 2 text, for any solver: `unsat` if the query is valid.
//!
//! The text is a function of the query. Equal expressions are written once, bound by `let`, all of one depth together.
//! Float operations with their exact meaning are the theory's. The standard has no function from floats to bits; so the
//! bits of a result are a constant, with an assertion that it represents the float, and that a NaN is the canonical
//! one.

use super::lower::{self, Binary, BitRelation, Logic, Lowered};
use super::{Answer, Budget, Floats, Query, Solver, variables};
use ir3_semantics::arithmetic::domain::{Format, Rounding};
use ir3_semantics::terms::{FloatOp, Term, Terms};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::{fs, io};
use xxhash_rust::xxh3::xxh3_128;

/// The text of a query, with the expected status if there is an answer.
pub fn text(terms: &Terms, query: &Query, floats: Floats, answer: Option<&Answer>) -> Option<String> {
    let nodes = query.nodes(terms)?;
    Some(script(terms, query, &nodes, floats, answer).text)
}

/// The status that a solver prints for an answer.
pub fn status(answer: &Answer) -> &'static str {
    match answer {
        Answer::Valid => "unsat",
        Answer::Invalid(_) => "sat",
        Answer::Unknown(_) => "unknown",
    }
}

/// A text, and its logic, which Z3 needs before it reads the text.
pub(super) struct Script {
    #[cfg_attr(not(feature = "z3"), expect(dead_code, reason = "the text has it too"))]
    pub logic: &'static str,
    pub text: String,
}

/// The text of a query. `nodes` are its terms, arguments first.
pub(super) fn script(terms: &Terms, query: &Query, nodes: &[Term], floats: Floats, answer: Option<&Answer>) -> Script {
    let mut writer = ScriptWriter { floats, ..ScriptWriter::default() };
    let lowered = lower::lower(&mut writer, terms, query, nodes);
    let mut out = String::from("(set-info :smt-lib-version 2.6)\n");
    let logic = match (writer.has_floats, writer.has_functions) {
        (false, _) => "QF_UFBV",
        (true, false) => "QF_BVFP",
        // Z3 has no name for it.
        (true, true) => "ALL",
    };
    let _ = writeln!(out, "(set-logic {logic})");
    if let Some(answer) = answer {
        let _ = writeln!(out, "(set-info :status {})", status(answer));
    }
    for (name, w) in variables(terms, nodes) {
        let _ = writeln!(
            out,
            "(declare-fun {} () {})",
            quote(terms.text(name)),
            if w == 1 { "Bool".into() } else { sort(w) }
        );
    }
    for (name, sorts) in &writer.functions {
        let _ = writeln!(out, "(declare-fun {name} {sorts})");
    }
    writer.assertion(&lowered, &mut out);
    out.push_str("(check-sat)\n");
    Script { logic, text: out }
}

/// Quotes a name as a symbol. Different names are different symbols.
pub(super) fn quote(name: &str) -> String {
    let mut out = String::from("|");
    for c in name.chars() {
        match c {
            ' '..='~' if !matches!(c, '|' | '\\' | '^') => out.push(c),
            _ => {
                let _ = write!(out, "^{:x}^", u32::from(c));
            }
        }
    }
    out.push('|');
    out
}

fn sort(w: u32) -> String {
    format!("(_ BitVec {w})")
}

/// A symbol or a literal, and the number of enclosing `let`s.
#[derive(Clone)]
struct Atom {
    text: Rc<str>,
    depth: usize,
}

#[derive(Default)]
struct ScriptWriter {
    floats: Floats,
    has_floats: bool,
    has_functions: bool,
    /// Bound expressions.
    bound: FxHashMap<String, Atom>,
    /// Bound names and their expressions, by depth.
    levels: Vec<Vec<(Rc<str>, String)>>,
    /// Uninterpreted functions and other new symbols, with their types.
    functions: BTreeMap<String, String>,
    /// Assertions that define new symbols.
    facts: Vec<Atom>,
}

impl ScriptWriter {
    fn atom(text: impl Into<Rc<str>>) -> Atom {
        Atom { text: text.into(), depth: 0 }
    }

    /// Binds an operation on atoms.
    fn bind(&mut self, op: &str, args: &[&Atom]) -> Atom {
        let mut text = format!("({op}");
        for arg in args {
            text.push(' ');
            text.push_str(&arg.text);
        }
        text.push(')');
        if let Some(atom) = self.bound.get(&text) {
            return atom.clone();
        }
        let depth = 1 + args.iter().map(|arg| arg.depth).max().unwrap_or(0);
        let name: Rc<str> = format!("?{}", self.bound.len()).into();
        if self.levels.len() < depth {
            self.levels.push(Vec::new());
        }
        self.levels[depth - 1].push((Rc::clone(&name), text.clone()));
        let atom = Atom { text: name, depth };
        self.bound.insert(text, atom.clone());
        atom
    }

    fn assertion(&self, lowered: &Lowered<Self>, out: &mut String) {
        out.push_str("(assert\n");
        for level in &self.levels {
            out.push_str("(let (");
            for (i, (name, text)) in level.iter().enumerate() {
                let _ = write!(out, "{}({name} {text})", if i == 0 { "" } else { "\n      " });
            }
            out.push_str(")\n");
        }
        out.push_str("(and");
        for fact in self.facts.iter().chain(&lowered.assumptions) {
            let _ = write!(out, " {}", fact.text);
        }
        let _ = write!(out, " (not {}))", lowered.goal.text);
        out.extend(self.levels.iter().map(|_| ')'));
        out.push_str(")\n");
    }

    /// The float that is represented by bits.
    fn float_of(&mut self, f: Format, bits: &Atom) -> Atom {
        self.bind(&format!("(_ to_fp {})", shape(f)), &[bits])
    }

    /// The bits of a float.
    fn bits_of(&mut self, f: Format, float: &Atom) -> Atom {
        let name = format!("|the bits of {}|", float.text);
        self.functions.insert(name.clone(), format!("() {}", sort(f.width())));
        let bits = Self::atom(name);
        let back = self.float_of(f, &bits);
        let same = self.bind("=", &[&back, float]);
        let nan = self.number(f.width(), f.nan());
        let canonical = self.bind("=", &[&bits, &nan]);
        let is_nan = self.bind("fp.isNaN", &[float]);
        let fact = self.bind("ite", &[&is_nan, &canonical, &same]);
        self.facts.push(fact);
        bits
    }

    /// A power of two as a float; infinity if it is not representable.
    fn power(&mut self, f: Format, exponent: u32, negative: bool) -> Atom {
        let number = 1u128 << exponent;
        let text = if negative { format!("(- {number}.0)") } else { format!("{number}.0") };
        self.bind(&format!("(_ to_fp {}) RNE", shape(f)), &[&Self::atom(text)])
    }

    /// Converts to an integer, clamped to the range of the result; a NaN gives 0.
    fn int_of(&mut self, f: Format, w: u32, signed: bool, rounding: Rounding, a: &Atom) -> Atom {
        let integral = self.bind(&format!("fp.roundToIntegral {}", mode(rounding)), &[a]);
        let (op, high, most, low, least) = if signed {
            let low = self.power(f, w - 1, true);
            ("to_sbv", self.power(f, w - 1, false), (1 << (w - 1)) - 1, low, 1 << (w - 1))
        } else {
            let zero = self.bind(&format!("(_ to_fp {}) RNE", shape(f)), &[&Self::atom("0.0")]);
            ("to_ubv", self.power(f, w, false), u64::MAX >> (64 - w), zero, 0)
        };
        let inside = self.bind(&format!("(_ fp.{op} {w}) RTZ"), &[&integral]);
        let (most, least, zero) = (self.number(w, most), self.number(w, least), self.number(w, 0));
        let (above, below) = (self.bind("fp.geq", &[&integral, &high]), self.bind("fp.leq", &[&integral, &low]));
        let out = self.bind("ite", &[&below, &least, &inside]);
        let out = self.bind("ite", &[&above, &most, &out]);
        let is_nan = self.bind("fp.isNaN", &[a]);
        self.bind("ite", &[&is_nan, &zero, &out])
    }
}

/// The widths of the exponent and of the significand with its hidden bit.
fn shape(f: Format) -> String {
    format!("{} {}", f.width() - f.fraction() - 1, f.fraction() + 1)
}

fn mode(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::Even => "RNE",
        Rounding::Away => "RNA",
        Rounding::Zero => "RTZ",
        Rounding::Up => "RTP",
        Rounding::Down => "RTN",
    }
}

impl Logic for ScriptWriter {
    type Bits = Atom;
    type Truth = Atom;

    fn number(&mut self, w: u32, bits: u64) -> Atom {
        Self::atom(match w % 4 {
            0 => format!("#x{bits:0width$x}", width = w as usize / 4),
            _ => format!("#b{bits:0width$b}", width = w as usize),
        })
    }
    fn variable(&mut self, _w: u32, name: &str) -> Atom {
        Self::atom(quote(name))
    }
    fn complement(&mut self, _w: u32, a: &Atom) -> Atom {
        self.bind("bvnot", &[a])
    }
    fn binary(&mut self, op: Binary, _w: u32, a: &Atom, b: &Atom) -> Atom {
        let op = match op {
            Binary::And => "bvand",
            Binary::Or => "bvor",
            Binary::Xor => "bvxor",
            Binary::Add => "bvadd",
            Binary::Mul => "bvmul",
            Binary::Udiv => "bvudiv",
            Binary::Urem => "bvurem",
            Binary::Shl => "bvshl",
            Binary::Lshr => "bvlshr",
            Binary::Ashr => "bvashr",
        };
        self.bind(op, &[a, b])
    }
    fn test(&mut self, test: BitRelation, a: &Atom, b: &Atom) -> Atom {
        let op = match test {
            BitRelation::Equal => "=",
            BitRelation::UnsignedLess => "bvult",
            BitRelation::SignedLess => "bvslt",
        };
        self.bind(op, &[a, b])
    }
    fn choose(&mut self, _w: u32, condition: &Atom, a: &Atom, b: &Atom) -> Atom {
        self.bind("ite", &[condition, a, b])
    }
    fn extend(&mut self, signed: bool, w: u32, to: u32, a: &Atom) -> Atom {
        let op = if signed { "sign_extend" } else { "zero_extend" };
        self.bind(&format!("(_ {op} {})", to - w), &[a])
    }
    fn extract(&mut self, a: &Atom, low: u32, n: u32) -> Atom {
        self.bind(&format!("(_ extract {} {low})", low + n - 1), &[a])
    }
    fn concat(&mut self, _w: u32, high: &Atom, low: &Atom) -> Atom {
        self.bind("concat", &[high, low])
    }
    fn apply(&mut self, w: u32, name: &str, args: &[(u32, Atom)]) -> Atom {
        self.has_functions = true;
        let name = quote(name);
        let domain: Vec<String> = args.iter().map(|&(w, _)| sort(w)).collect();
        self.functions.insert(name.clone(), format!("({}) {}", domain.join(" "), sort(w)));
        let args: Vec<&Atom> = args.iter().map(|(_, arg)| arg).collect();
        // A function without arguments is a symbol, without parentheses.
        if args.is_empty() { Self::atom(name) } else { self.bind(&name, &args) }
    }
    fn float(&mut self, op: FloatOp, args: &[Atom]) -> Option<Atom> {
        if self.floats == Floats::Uninterpreted {
            return None;
        }
        let (operand, result) = match op {
            FloatOp::Add(f) | FloatOp::Mul(f) | FloatOp::Fma(f) | FloatOp::Div(f) | FloatOp::Round(f, _) => (f, f),
            FloatOp::Convert(from, to, _) => (from, to),
            FloatOp::ToInt { from, .. } => (from, from),
            FloatOp::FromInt { to, .. } => (to, to),
            _ => return None,
        };
        self.has_floats = true;
        if let FloatOp::FromInt { signed, rounding, .. } = op {
            let op = if signed { "to_fp" } else { "to_fp_unsigned" };
            // The semantics do not have this mode for binary64.
            let away = result == Format::F64 && rounding == Rounding::Away;
            let rounding = if away { Rounding::Even } else { rounding };
            let float = self.bind(&format!("(_ {op} {}) {}", shape(result), mode(rounding)), &[&args[0]]);
            return Some(self.bits_of(result, &float));
        }
        let args: Vec<Atom> = args.iter().map(|arg| self.float_of(operand, arg)).collect();
        let args: Vec<&Atom> = args.iter().collect();
        let float = match op {
            FloatOp::Add(_) => self.bind("fp.add RNE", &args),
            FloatOp::Mul(_) => self.bind("fp.mul RNE", &args),
            FloatOp::Fma(_) => self.bind("fp.fma RNE", &args),
            FloatOp::Div(_) => self.bind("fp.div RNE", &args),
            FloatOp::Round(_, rounding) => self.bind(&format!("fp.roundToIntegral {}", mode(rounding)), &args),
            FloatOp::Convert(_, to, rounding) => {
                self.bind(&format!("(_ to_fp {}) {}", shape(to), mode(rounding)), &args)
            }
            FloatOp::ToInt { from, width, signed, rounding } => {
                return Some(self.int_of(from, width.into(), signed, rounding, args[0]));
            }
            _ => return None,
        };
        Some(self.bits_of(result, &float))
    }

    fn truth(&mut self, value: bool) -> Atom {
        Self::atom(if value { "true" } else { "false" })
    }
    fn condition(&mut self, name: &str) -> Atom {
        Self::atom(quote(name))
    }
    fn not(&mut self, a: &Atom) -> Atom {
        self.bind("not", &[a])
    }
    fn both(&mut self, a: &Atom, b: &Atom) -> Atom {
        self.bind("and", &[a, b])
    }
    fn either(&mut self, a: &Atom, b: &Atom) -> Atom {
        self.bind("or", &[a, b])
    }
    fn differ(&mut self, a: &Atom, b: &Atom) -> Atom {
        self.bind("xor", &[a, b])
    }
    fn choose_truth(&mut self, condition: &Atom, a: &Atom, b: &Atom) -> Atom {
        self.bind("ite", &[condition, a, b])
    }
}

/// A folder for queries.
#[derive(Clone, Debug)]
pub struct QueryFolder {
    path: PathBuf,
    /// The first error of a write, by whichever solver.
    failure: Arc<OnceLock<String>>,
}

impl QueryFolder {
    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn new(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self { path: path.to_owned(), failure: Arc::default() })
    }

    /// The first error of a write, in this folder or a clone of it. Proofs do not depend on it.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

/// A solver that also writes each query into a folder, in a file named by the hash of the text.
pub struct Recording<S> {
    solver: S,
    folder: QueryFolder,
    floats: Floats,
    written: usize,
}

impl<S: Solver> Recording<S> {
    /// A solver that writes into a folder.
    pub fn new(solver: S, folder: &QueryFolder, floats: Floats) -> Self {
        Self { solver, folder: folder.clone(), floats, written: 0 }
    }

    /// The number of queries written.
    pub const fn written(&self) -> usize {
        self.written
    }

    fn write(&self, terms: &Terms, query: &Query, answer: &Answer) -> io::Result<()> {
        // A query that is too large to be sent is not written.
        let Some(question) = text(terms, query, self.floats, None) else { return Ok(()) };
        let path = self.folder.path.join(format!("{:032x}.smt2", xxh3_128(question.as_bytes())));
        let Some(text) = text(terms, query, self.floats, Some(answer)) else { return Ok(()) };
        fs::write(path, text)
    }
}

impl<S: Solver> Solver for Recording<S> {
    fn solve(&mut self, terms: &Terms, query: &Query, budget: &Budget) -> Answer {
        if let Some(answer) = query.plain_answer(terms) {
            return answer;
        }
        let answer = self.solver.solve(terms, query, budget);
        match self.write(terms, query, &answer) {
            Ok(()) => self.written += 1,
            Err(error) => {
                self.folder.failure.get_or_init(|| format!("{}: {error}", self.folder.path.display()));
            }
        }
        answer
    }
}
