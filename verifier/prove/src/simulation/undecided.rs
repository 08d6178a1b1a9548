//! Conditions that depend on undefined words.
//!
//! A program has no meaning where a condition depends on an undefined word. Whether it does cannot be read from the
//! term of the condition: `u & 0` has `u`, and the result of a load at an undefined address is no undefined word
//! itself. So each undefined word has a twin, a variable of its own, and a condition is decided if it is the same with
//! the twins in the place of the words. The program before is assumed to decide its conditions, and the program after
//! has to. Words of one name have one twin, so a condition of both programs is decided in both or in neither.

use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::terms::{Term, Terms, VariableKind};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

/// The undefined words of a proof.
#[derive(Default)]
pub(super) struct UndefinedWords {
    twins: FxHashMap<Term, Term>,
    /// Terms with twins in the place of words.
    others: FxHashMap<Term, Term>,
}

impl UndefinedWords {
    /// Adds a variable of 32 bits.
    pub(super) fn add(&mut self, terms: &mut Terms, word: Term, kind: VariableKind) {
        if let Entry::Vacant(entry) = self.twins.entry(word) {
            entry.insert(terms.variable_of(kind, 32, &format!("another value of {word:?}")));
            self.others.clear();
        }
    }

    /// Returns one bit: 1 where a condition does not depend on undefined words.
    pub(super) fn decided(&mut self, terms: &mut Terms, condition: Term) -> Term {
        let other = if self.twins.is_empty() { condition } else { self.other(terms, condition) };
        terms.eq(1, condition, other)
    }

    fn other(&mut self, terms: &mut Terms, root: Term) -> Term {
        let mut stack = vec![root];
        while let Some(&term) = stack.last() {
            if self.others.contains_key(&term) {
                stack.pop();
            } else if let Some(&twin) = self.twins.get(&term) {
                self.others.insert(term, twin);
            } else {
                let node = terms.node(term);
                let before = stack.len();
                stack.extend(node.args.iter().filter(|arg| !self.others.contains_key(arg)));
                if stack.len() == before {
                    let args: SmallVec<[Term; 4]> = node.args.iter().map(|arg| self.others[arg]).collect();
                    let (op, width) = (node.op, node.width.into());
                    let other = if args[..] == node.args[..] { term } else { terms.rebuild(op, width, &args) };
                    self.others.insert(term, other);
                }
            }
        }
        self.others[&root]
    }
}
