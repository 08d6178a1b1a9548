//! Nir passes, one file per pass, and their rewrite rules.
//!
//! A [`Rule`] states that two terms are equal for all values of its variables, and nothing else; it can be proved
//! without any program. The pass decides where a rule is profitable. So a [`Table`] of rules is data that both a pass
//! and a prover read; a pass has no other access to a rule.

pub mod de_morgan;

use crate::nir::{Alu, AluSrc, Block, Def, DefData, Function, Instr, InstrData, Op};
use crate::words;
use smallvec::SmallVec;

/// One side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// Any scalar value; every occurrence in the rule is the same value.
    Variable(u8),
    /// An operation on scalars.
    Op(Op, &'static [Term]),
}

/// Two terms that are equal for all values of their variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// The width of all values in it.
    pub bits: u8,
    /// The pattern.
    pub from: Term,
    /// The replacement, with variables of the pattern only.
    pub to: Term,
}

/// Declares the tables: a prover iterates over all of them, and a pass names the ones that it applies.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $name:literal = $rules:expr;)*) => {
        words! {
            /// Rules that are applied together.
            pub enum Table { $($(#[$doc])* $table = $name,)* }
        }

        impl Table {
            /// Its rules.
            pub const fn rules(self) -> &'static [Rule] {
                match self {
                    $(Table::$table => &$rules,)*
                }
            }
        }
    };
}

tables! {
    /// Rules for negated conditions of ifs.
    DeMorgan "de-morgan" = de_morgan::RULES;
    /// Rules that simplify the new negations.
    Simpler "de-morgan-simpler" = de_morgan::SIMPLER;
}

/// The maximum number of variables of a rule.
pub const VARIABLES: usize = 4;

/// The values of a rule's variables.
type Bindings = [Option<AluSrc>; VARIABLES];

impl Rule {
    /// Matches an operation with the left side of the rule; returns the values of the variables.
    fn matches(&self, function: &Function, op: Op, srcs: &[AluSrc]) -> Option<Bindings> {
        let Term::Op(wanted, terms) = self.from else { return None };
        let mut bindings = Bindings::default();
        let fits = op == wanted
            && srcs.len() == terms.len()
            && srcs.iter().zip(terms).all(|(src, term)| self.binds(function, term, *src, &mut bindings));
        fits.then_some(bindings)
    }

    fn binds(&self, function: &Function, term: &Term, src: AluSrc, bindings: &mut Bindings) -> bool {
        let def = &function.defs[src.def];
        if def.bit_size != self.bits {
            return false;
        }
        match *term {
            Term::Variable(number) => {
                let one = AluSrc::swizzled(src.def, &src.swizzle[..1]);
                match &mut bindings[usize::from(number)] {
                    Some(bound) => *bound == one,
                    free => {
                        *free = Some(one);
                        true
                    }
                }
            }
            Term::Op(op, terms) => match &function.instrs[def.instr] {
                InstrData::Alu(alu) => {
                    def.num_components == 1
                        && alu.op == op
                        && alu.srcs.len() == terms.len()
                        && alu.srcs.iter().zip(terms).all(|(src, term)| self.binds(function, term, *src, bindings))
                }
                _ => false,
            },
        }
    }
}

/// Inserts operations before an instruction.
struct Rewriter<'a> {
    function: &'a mut Function,
    block: Block,
    /// The instruction after the new operations.
    before: Instr,
    /// Rules that simplify new operations.
    simpler: Table,
    /// The index of the next value in the text.
    next_index: u32,
}

impl Rewriter<'_> {
    /// Builds a term. Variables, and terms that a simplification turns into one, need no new value.
    fn build(&mut self, term: Term, bindings: &Bindings) -> Option<AluSrc> {
        let (op, terms) = match term {
            Term::Variable(number) => return bindings[usize::from(number)],
            Term::Op(op, terms) => (op, terms),
        };
        let srcs = self.operands(terms, bindings)?;
        for rule in self.simpler.rules() {
            if let Some(found) = rule.matches(self.function, op, &srcs) {
                return self.build(rule.to, &found);
            }
        }
        let instr = self.function.instrs.next_key();
        let bit_size = self.function.defs[srcs.first()?.def].bit_size;
        let divergent = self.divergent(&srcs);
        let index = self.next_index;
        self.next_index += 1;
        let def = self.function.defs.push(DefData { num_components: 1, bit_size, divergent, instr, index });
        self.function.instrs.push(alu(op, def, srcs));
        let list = &mut self.function.blocks[self.block].instrs;
        let at = list.iter().position(|&other| other == self.before).unwrap_or(list.len());
        list.insert(at, instr);
        Some(AluSrc::swizzled(def, &[0]))
    }

    fn operands(&mut self, terms: &[Term], bindings: &Bindings) -> Option<SmallVec<[AluSrc; 3]>> {
        terms.iter().map(|&term| self.build(term, bindings)).collect()
    }

    /// The divergence of a result, if it is known for all sources.
    fn divergent(&self, srcs: &[AluSrc]) -> Option<bool> {
        srcs.iter().try_fold(false, |any, src| Some(self.function.defs[src.def].divergent? || any))
    }

    /// Replaces the operation that defines the value.
    fn replace(&mut self, op: Op, terms: &[Term], bindings: &Bindings, def: Def) -> bool {
        let Some(srcs) = self.operands(terms, bindings) else { return false };
        self.function.instrs[self.before] = alu(op, def, srcs);
        true
    }
}

fn alu(op: Op, def: Def, srcs: SmallVec<[AluSrc; 3]>) -> InstrData {
    InstrData::Alu(Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
}
