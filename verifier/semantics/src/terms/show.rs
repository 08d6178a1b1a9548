//! Terms as text.

use super::{FloatOp, Op, Term, Terms};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The largest number of nodes of a term that are printed.
const SHOWN: usize = 200;

/// The depth of a brief text, and the number of arguments in it.
const BRIEF: usize = 3;
const WIDE: usize = 4;

impl Terms {
    /// The term as an s-expression; a subterm that occurs more than once has a line of its own before it.
    pub fn show(&self, term: Term) -> String {
        // The number of uses of each node, nodes in the order in which they are found.
        let mut uses = FxHashMap::<Term, u32>::default();
        let mut found = vec![term];
        let mut at = 0;
        while at < found.len() {
            for &arg in &self.node(found[at]).args {
                let count = uses.entry(arg).or_default();
                *count += 1;
                if *count == 1 {
                    found.push(arg);
                }
            }
            at += 1;
            if at > SHOWN {
                break;
            }
        }
        let limit = found.get(SHOWN).is_some();
        let mut expanded: Vec<Term> = found.into_iter().take(SHOWN).collect();
        expanded.sort_unstable();
        let mut text = String::new();
        let mut shown = FxHashMap::<Term, String>::default();
        // Arguments have lower numbers.
        for &t in &expanded {
            let node = self.node(t);
            let mut line = String::new();
            if node.args.is_empty() && !matches!(node.op, Op::Apply(_)) {
                self.write_head(&mut line, t);
            } else {
                line.push('(');
                self.write_head(&mut line, t);
                for arg in &node.args {
                    match shown.get(arg) {
                        Some(text) => _ = write!(line, " {text}"),
                        None => _ = write!(line, " {arg}"),
                    }
                }
                line.push(')');
            }
            let named =
                t != term && !node.args.is_empty() && (uses.get(&t).is_some_and(|&n| n > 1) || line.len() > 100);
            if named {
                _ = writeln!(text, "let {t} = {line}");
                line = t.to_string();
            }
            shown.insert(t, line);
        }
        text.push_str(shown.get(&term).map_or("", String::as_str));
        if limit {
            text.push_str("\n(more is not shown)");
        }
        text
    }

    /// The outermost operations of a term, on one line.
    pub fn brief(&self, term: Term) -> String {
        let mut text = String::new();
        self.write_brief(&mut text, term, BRIEF);
        text
    }

    fn write_brief(&self, out: &mut String, term: Term, depth: usize) {
        let args = &self.node(term).args;
        if args.is_empty() {
            return self.write_head(out, term);
        }
        if depth == 0 {
            out.push('…');
            return;
        }
        out.push('(');
        self.write_head(out, term);
        for &arg in args.iter().take(WIDE) {
            out.push(' ');
            self.write_brief(out, arg, depth - 1);
        }
        out.push_str(if args.len() > WIDE { " …)" } else { ")" });
    }

    /// Writes the operation of a node, without its arguments.
    fn write_head(&self, out: &mut String, t: Term) {
        let node = self.node(t);
        let name = match node.op {
            Op::Constant(bits) => {
                _ = if bits < 10 {
                    write!(out, "{bits}:{}", node.width)
                } else {
                    write!(out, "{bits:#x}:{}", node.width)
                };
                return;
            }
            Op::Variable(name) => {
                _ = write!(out, "{}:{}", self.text(name), node.width);
                return;
            }
            Op::Apply(name) => {
                _ = write!(out, "{}", self.text(name));
                return;
            }
            Op::Extract(low) => {
                _ = write!(out, "bits {}..{}", low, u32::from(low) + u32::from(node.width));
                return;
            }
            Op::Zext | Op::Sext => {
                _ = write!(out, "{} {}", if node.op == Op::Zext { "zext" } else { "sext" }, node.width);
                return;
            }
            Op::Float(op) => {
                write_float(out, op);
                return;
            }
            Op::Not => "not",
            Op::And => "and",
            Op::Xor => "xor",
            Op::Add => "+",
            Op::Mul => "*",
            Op::Udiv => "udiv",
            Op::Urem => "urem",
            Op::Shl => "shl",
            Op::Lshr => "lshr",
            Op::Ashr => "ashr",
            Op::Eq => "=",
            Op::Ult => "u<",
            Op::Slt => "s<",
            Op::Ite => "if",
            Op::Concat => "concat",
            Op::UmulHigh => "umul-high",
            Op::SmulHigh => "smul-high",
            Op::Opaque => "opaque",
            Op::Popcount => "popcount",
            Op::Clz => "clz",
            Op::Reverse => "reverse",
        };
        out.push_str(name);
    }
}

fn write_float(out: &mut String, op: FloatOp) {
    _ = match op {
        FloatOp::Add(f) => write!(out, "fadd {f:?}"),
        FloatOp::Mul(f) => write!(out, "fmul {f:?}"),
        FloatOp::Fma(f) => write!(out, "fma {f:?}"),
        FloatOp::Div(f) => write!(out, "fdiv {f:?}"),
        FloatOp::Round(f, rounding) => write!(out, "fround {f:?} {rounding:?}"),
        FloatOp::Eq(f) => write!(out, "f= {f:?}"),
        FloatOp::Lt(f) => write!(out, "f< {f:?}"),
        FloatOp::Le(f) => write!(out, "f<= {f:?}"),
        FloatOp::Convert(from, to, rounding) => write!(out, "fconvert {from:?} {to:?} {rounding:?}"),
        FloatOp::ToInt { from, width, signed, rounding } => {
            write!(out, "float-to-{}{width} {from:?} {rounding:?}", if signed { 'i' } else { 'u' })
        }
        FloatOp::FromInt { width, signed, to, rounding } => {
            write!(out, "{}{width}-to-float {to:?} {rounding:?}", if signed { 'i' } else { 'u' })
        }
        FloatOp::Function(f, function) => write!(out, "{function:?} {f:?}"),
        FloatOp::Pow(f) => write!(out, "fpow {f:?}"),
    };
}
