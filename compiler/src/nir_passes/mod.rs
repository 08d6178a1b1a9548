//! Rewrites of nir, one file a pass, and the rules that they go by.
//!
//! A [`Rule`] says that two terms are equal, whatever its variables are; that is all it says, and it can be proved without
//! any program. Where a rule is worth applying is the pass's business. So a [`Table`] of rules is data, which a pass and
//! a prover read alike; a pass has no other way to a rule.

pub mod de_morgan;

use crate::nir::{Alu, AluSrc, Block, Def, DefData, Function, Instr, InstrData, Op};
use smallvec::SmallVec;

/// One side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// Any scalar value, the same one everywhere in the rule.
    Variable(u8),
    /// An operation on scalars.
    Op(Op, &'static [Term]),
}

/// Two terms that are equal for all values of their variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What to call it.
    pub name: &'static str,
    /// Bits of all values in it.
    pub bits: u8,
    /// What is looked for.
    pub from: Term,
    /// What takes its place; no variable is in it that is not in the other one.
    pub to: Term,
}

/// The tables: a prover goes through all of them, and a pass names the ones that it applies.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $name:literal = $rules:expr;)*) => {
        /// Rules that are applied together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Table {
            $($(#[$doc])* $table,)*
        }

        impl Table {
            /// Every table that there is.
            pub const ALL: &'static [Table] = &[$(Table::$table),*];

            /// What to call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$table => $name,)*
                }
            }

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
    /// What a negation of ifs is rewritten by.
    DeMorgan "de-morgan" = de_morgan::RULES;
    /// What makes the new negations simpler.
    Simpler "de-morgan-simpler" = de_morgan::SIMPLER;
}

/// The most variables that a rule has.
pub const VARIABLES: usize = 4;

/// What the variables of a rule stand for.
type Bindings = [Option<AluSrc>; VARIABLES];

impl Rule {
    /// What the variables are where an operation is the left side of the rule.
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

/// Puts operations in front of an instruction.
struct Rewriter<'a> {
    function: &'a mut Function,
    block: Block,
    /// What stands behind the new operations.
    before: Instr,
    /// Rules that make new operations simpler, where one of them is the left side.
    simpler: Table,
    /// The number of the next value in the text.
    next_index: u32,
}

impl Rewriter<'_> {
    /// A term, computed. What is a variable, or becomes one by a simpler rule, is no new value.
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

    /// Whether lanes may have different values, where that has been found out for all sources.
    fn divergent(&self, srcs: &[AluSrc]) -> Option<bool> {
        srcs.iter().try_fold(false, |any, src| Some(self.function.defs[src.def].divergent? || any))
    }

    /// Gives the value of the instruction another operation.
    fn replace(&mut self, op: Op, terms: &[Term], bindings: &Bindings, def: Def) -> bool {
        let Some(srcs) = self.operands(terms, bindings) else { return false };
        self.function.instrs[self.before] = alu(op, def, srcs);
        true
    }
}

fn alu(op: Op, def: Def, srcs: SmallVec<[AluSrc; 3]>) -> InstrData {
    InstrData::Alu(Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
}
