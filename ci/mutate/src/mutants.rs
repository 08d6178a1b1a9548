//! Mutants: small changes at every place of the compiler where one is possible.
//!
//! The kinds are those of cargo-mutants (the body of a function, binary and unary operators, arms of a match and their
//! guards), constants off by one, `break` and `continue` for each other, and statements left out. Code that is
//! evaluated when the compiler is built (constants, `const fn`, patterns, types, expansions of macros) has no switch,
//! and is left alone; so are texts of errors.

use crate::bugs;
use crate::check::{self, Message};
use crate::splice::{self, Placed, Splice};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Modules that no stage runs: readers and writers of texts, validators, reports.
const LEFT_OUT: [&str; 16] = [
    "log_line.rs",
    "cursor.rs",
    "words.rs",
    "stats.rs",
    "stats/",
    "nir/text/",
    "nir/validate/",
    "nir/builder.rs",
    "ir3/text/",
    "ir3/validate/",
    "ir3/builder.rs",
    "machine/listing.rs",
    "machine/encoding/print.rs",
    "i965/vec4/text.rs",
    "i965/vec4/validate.rs",
    "pipeline",
];

/// A mutant, for the list.
struct Mutant {
    file: String,
    line: usize,
    function: String,
    kind: &'static str,
    change: String,
}

/// Writes the mutants that compile into the tree, and the list of them: number, place, function, kind, and change,
/// separated by tabs. At most `most`, chosen by a hash of their numbers. The bugs are in the tree as well, with later
/// numbers and a list of their own (`LIST.bugs`).
pub fn run(tree: &Path, list: &Path, most: Option<usize>) -> Result<(), Box<dyn Error>> {
    let sources = Path::new(crate::SOURCES);
    let mut mutants = Vec::new();
    let mut files = Vec::new();
    for path in crate::rust_files(sources)? {
        let name = path.strip_prefix(sources)?.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path)?;
        let mut finder =
            Finder { text: &text, name: &name, function: Vec::new(), splices: Vec::new(), mutants: &mut mutants };
        if name != "lib.rs" && !LEFT_OUT.iter().any(|left_out| name.starts_with(left_out)) {
            let file = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            finder.visit_file(&file);
        }
        let splices = finder.splices;
        files.push((path, text, splices));
    }
    let first = mutants.len() as u32 + 1;
    let (mut of_bugs, names) = bugs::splices(tree, first)?;
    crate::write_switch(tree, mutants.len() + names.len())?;
    crate::write(&tree.join(crate::OUTPUTS), include_str!("../outputs.rs"))?;
    let all = mutants.len();
    if let Some(most) = most {
        let mut numbers: Vec<u32> = (1..=all as u32).collect();
        numbers.sort_by_key(|&number| number.wrapping_mul(0x9e37_79b9).rotate_left(15).wrapping_mul(0x85eb_ca6b));
        let chosen: BTreeSet<u32> = numbers.into_iter().take(most).collect();
        files.iter_mut().for_each(|(_, _, splices)| splices.retain(|splice| chosen.contains(&splice.number)));
    }
    for (path, _, splices) in &mut files {
        splices.extend(of_bugs.remove(&*path.to_string_lossy()).into_iter().flatten());
    }
    loop {
        let mut placed = BTreeMap::new();
        for (path, text, splices) in files.iter().filter(|(path, ..)| !path.ends_with("lib.rs")) {
            let (new, places) = splice::splice(text, splices);
            crate::write(&tree.join(path), &new)?;
            placed.insert(path.to_string_lossy().into_owned(), places);
        }
        let errors = check::errors(tree)?;
        let kept: usize = files.iter().map(|(_, _, splices)| splices.len()).sum();
        eprintln!("{kept} of {all} mutants, {} errors", errors.len());
        if errors.is_empty() {
            break;
        }
        let mut dropped = BTreeSet::new();
        for error in &errors {
            let numbers = guilty(error, &placed);
            if numbers.is_empty() {
                return Err(format!("an error that is at no mutant:\n{}", error.rendered).into());
            }
            if numbers.iter().any(|&number| number >= first) {
                return Err(format!("a bug does not compile (see `mutate bugs`):\n{}", error.rendered).into());
            }
            dropped.extend(numbers);
        }
        for (_, _, splices) in &mut files {
            splices.retain(|splice| !dropped.contains(&splice.number));
        }
    }
    let mut kept: Vec<u32> =
        files.iter().flat_map(|(_, _, splices)| splices.iter().map(|splice| splice.number)).collect();
    kept.sort_unstable();
    let mut lines = String::new();
    for number in kept.into_iter().filter(|&number| number < first) {
        let Mutant { file, line, function, kind, change } = &mutants[number as usize - 1];
        lines += &format!("{number}\t{file}:{line}\t{function}\t{kind}\t{change}\n");
    }
    crate::write(&list.with_extension("bugs"), &bugs::list(first, &names))?;
    crate::write(list, &lines)
}

/// The mutants that an error may come from: those whose changed text has a span of it, otherwise the innermost one around a span,
/// otherwise those in it.
fn guilty(error: &Message, placed: &BTreeMap<String, Vec<Placed>>) -> Vec<u32> {
    let mut numbers = Vec::new();
    for (file, span) in &error.spans {
        let Some(places) = placed.get(file) else { continue };
        let within = |outer: &std::ops::Range<usize>| outer.start <= span.start && span.end <= outer.end;
        let changed = places.iter().filter(|place| within(&place.changed)).min_by_key(|place| place.changed.len());
        let around = || places.iter().filter(|place| within(&place.all)).min_by_key(|place| place.all.len());
        match changed.or_else(around) {
            Some(place) => numbers.push(place.number),
            None => numbers.extend(
                places
                    .iter()
                    .filter(|place| span.start <= place.all.start && place.all.end <= span.end)
                    .map(|place| place.number),
            ),
        }
    }
    numbers
}

struct Finder<'a> {
    text: &'a str,
    name: &'a str,
    /// The types and functions around the place.
    function: Vec<String>,
    splices: Vec<Splice>,
    mutants: &'a mut Vec<Mutant>,
}

/// A text on one line, shortened.
fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

impl Finder<'_> {
    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    /// Adds a mutant: the texts around the part have the number where they have `#`.
    fn add(
        &mut self,
        node: &impl Spanned,
        around: std::ops::Range<usize>,
        texts: (&str, &'static str),
        kind: &'static str,
        change: String,
    ) {
        let number = self.mutants.len() as u32 + 1;
        let switch = format!("crate::mutant({number})");
        self.splices.push(Splice { number, around, before: texts.0.replacen("\u{1}", &switch, 1), after: texts.1 });
        self.mutants.push(Mutant {
            file: self.name.to_string(),
            line: node.span().start().line,
            function: self.function.join("::"),
            kind,
            change,
        });
    }

    /// An expression in place of another one.
    fn replace(&mut self, expr: &syn::Expr, new: &str, kind: &'static str) {
        let change = format!("{} -> {}", short(self.source(expr)), short(new));
        self.add(expr, expr.span().byte_range(), (&format!("(if \u{1} {{ {new} }} else {{ "), " })"), kind, change);
    }

    /// The body of a function: returns at once.
    fn body(&mut self, output: &syn::ReturnType, block: &syn::Block) {
        if block.stmts.is_empty() {
            return;
        }
        let ty = match output {
            syn::ReturnType::Default => "()".to_string(),
            syn::ReturnType::Type(_, ty) => ty.to_token_stream().to_string(),
        };
        let values: &[&str] = match ty.as_str() {
            "()" => &["()"],
            "bool" => &["true", "false"],
            "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => &["0", "1"],
            _ if ty.starts_with("Option <") => &["None"],
            _ if ty.starts_with("Result < ()") => &["Ok(())"],
            _ if ty.starts_with("Result <") => &["Ok(Default::default())"],
            _ if ty.starts_with('&') || ty.starts_with("impl ") || ty == "Self" || ty == "!" => &[],
            _ => &["Default::default()"],
        };
        let at = block.span().byte_range().start + 1;
        for value in values {
            self.add(
                block,
                at..at,
                (&format!(" if \u{1} {{ return {value}; }}"), ""),
                "body",
                format!("return {value}"),
            );
        }
    }

    fn function(&mut self, sig: &syn::Signature, block: &syn::Block) {
        if sig.constness.is_some() || sig.ident == "fmt" {
            return;
        }
        self.function.push(sig.ident.to_string());
        self.body(&sig.output, block);
        visit::visit_block(self, block);
        self.function.pop();
    }
}

/// Returns true if `let` conditions are joined to this one.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(syn::ExprBinary { left, right, .. }) => has_let(left) || has_let(right),
        _ => false,
    }
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident("test") || attr.to_token_stream().to_string().contains("cfg (test)"))
}

impl<'ast> Visit<'ast> for Finder<'_> {
    // Constant expressions, and parts that are no code.
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast syn::AngleBracketedGenericArguments) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.function.push(item.self_ty.to_token_stream().to_string().replace(' ', ""));
        visit::visit_item_impl(self, item);
        self.function.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    /// Statements that are calls or assignments can be left out; their values, if there are any, are not used.
    fn visit_stmt(&mut self, stmt: &'ast syn::Stmt) {
        if let syn::Stmt::Expr(expr, Some(_)) = stmt {
            let call = matches!(
                expr,
                syn::Expr::MethodCall(_) | syn::Expr::Call(_) | syn::Expr::Assign(_) | syn::Expr::Try(_)
            );
            let assigns = matches!(expr, syn::Expr::Binary(_));
            if call || assigns {
                let change = format!("without {}", short(self.source(expr)));
                self.add(expr, stmt.span().byte_range(), ("if !\u{1} { ", " }"), "statement", change);
            }
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.visit_expr(&expr.expr);
        let has_rest = expr.arms.last().is_some_and(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        for (index, arm) in expr.arms.iter().enumerate() {
            let pattern = short(self.source(&arm.pat));
            let end = arm.pat.span().byte_range().end;
            match &arm.guard {
                Some((_, guard)) if !has_let(guard) => {
                    let (around, change) =
                        (guard.span().byte_range(), format!("{pattern} if {}", short(self.source(&**guard))));
                    self.add(arm, around.clone(), ("!\u{1} && (", ")"), "arm", format!("{change} -> if false"));
                    self.add(arm, around, ("\u{1} || (", ")"), "guard", format!("{change} -> if true"));
                }
                None if has_rest && index + 1 < expr.arms.len() => {
                    self.add(arm, end..end, (" if !\u{1}", ""), "arm", format!("without {pattern}"));
                }
                _ => {}
            }
            if let Some((_, guard)) = &arm.guard {
                self.visit_expr(guard);
            }
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        match expr {
            syn::Expr::Binary(binary) if !has_let(expr) => {
                use syn::BinOp as B;
                let new: &[&str] = match binary.op {
                    B::Add(_) => &["-", "*"],
                    B::Sub(_) => &["+", "/"],
                    B::Mul(_) => &["+", "/"],
                    B::Div(_) => &["%", "*"],
                    B::Rem(_) => &["/", "+"],
                    B::And(_) => &["||"],
                    B::Or(_) => &["&&"],
                    B::BitXor(_) => &["|", "&"],
                    B::BitAnd(_) => &["|", "^"],
                    B::BitOr(_) => &["&", "^"],
                    B::Shl(_) => &[">>"],
                    B::Shr(_) => &["<<"],
                    B::Eq(_) => &["!="],
                    B::Ne(_) => &["=="],
                    B::Lt(_) => &["<=", ">=", "=="],
                    B::Le(_) => &["<", ">"],
                    B::Gt(_) => &[">=", "<=", "=="],
                    B::Ge(_) => &[">", "<"],
                    B::AddAssign(_) => &["-=", "*="],
                    B::SubAssign(_) => &["+=", "/="],
                    B::MulAssign(_) => &["+=", "/="],
                    B::BitXorAssign(_) => &["|=", "&="],
                    B::BitAndAssign(_) => &["|=", "^="],
                    B::BitOrAssign(_) => &["&=", "^="],
                    B::ShlAssign(_) => &[">>="],
                    B::ShrAssign(_) => &["<<="],
                    _ => &[],
                };
                for op in new {
                    let text = format!("{} {op} {}", self.source(&*binary.left), self.source(&*binary.right));
                    self.replace(expr, &text, "operator");
                }
            }
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Not(_) | syn::UnOp::Neg(_), expr: inner, .. }) => {
                let text = self.source(&**inner).to_string();
                self.replace(expr, &text, "unary");
            }
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(lit), .. }) => {
                if let Ok(value) = lit.base10_parse::<u64>() {
                    self.replace(expr, &format!("{}{}", value.wrapping_add(1), lit.suffix()), "constant");
                    if value > 0 {
                        self.replace(expr, &format!("{}{}", value - 1, lit.suffix()), "constant");
                    }
                }
            }
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(lit), .. }) => {
                self.replace(expr, if lit.value { "false" } else { "true" }, "constant");
            }
            syn::Expr::Break(syn::ExprBreak { label: None, expr: None, .. }) => self.replace(expr, "continue", "jump"),
            syn::Expr::Continue(syn::ExprContinue { label: None, .. }) => self.replace(expr, "break", "jump"),
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}
