//! Nir passes, one file per pass, and their rewrite rules.
//!
//! A [`Rule`] states that two terms are equal for all values of its variables, and nothing else; it can be proved
//! without any program. The pass decides where a rule is profitable. So a [`Table`] of rules is data that both a pass
//! and a prover read; a pass has no other access to a rule.

pub mod de_morgan;
pub mod inline_preamble;
pub mod split_additions;

use crate::nir::{Alu, AluSrc, BaseType, Block, Def, DefData, Function, Instr, InstrData, Op};
use crate::words;
use smallvec::SmallVec;

/// One side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// Any scalar value; every occurrence in the rule is the same value.
    Variable(u8),
    /// A constant.
    Constant(u64),
    /// An operation on scalars.
    Op(Op, &'static [Term]),
}

/// Two terms that are equal for all values of their variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// The width in bits of every value in it whose width no operation determines.
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
            /// The rules of the table.
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
    /// Rules that simplify the negations that `DeMorgan` introduces.
    Simpler "de-morgan-simpler" = de_morgan::SIMPLER;
    /// Rules that split 64-bit additions into 32-bit halves.
    SplitAdditions "split-additions" = split_additions::RULES;
    /// Rules that remove operands from the halves of sums.
    FewerWords "split-additions-simpler" = split_additions::SIMPLER;
}

/// The maximum number of variables of a rule.
pub const VARIABLES: usize = 4;

/// The values of a rule's variables.
type Bindings = [Option<AluSrc>; VARIABLES];

/// The width in bits of operand `index` of `op`, in a rule of width `rule`, where the result has `result` bits.
pub fn operand_bits(op: Op, index: usize, result: u8, rule: u8) -> u8 {
    let info = op.info();
    let ty = info.inputs[index].ty;
    match (ty.size, info.output.ty.size, ty.base) {
        (0, 0, _) => result,
        (0, _, BaseType::Bool) => 1,
        (0, ..) => rule,
        (fixed, ..) => fixed,
    }
}

impl Rule {
    /// The width in bits of the value of the rule: that of the result of its pattern.
    pub fn result_bits(&self) -> u8 {
        match self.from {
            Term::Op(op, _) if op.info().output.ty.size != 0 => op.info().output.ty.size,
            _ => self.bits,
        }
    }

    /// The width in bits of each variable, by its number. Numbers without a variable have the width of the rule.
    pub fn variable_bits(&self) -> [u8; VARIABLES] {
        let mut all = [self.bits; VARIABLES];
        self.variables_in(&self.from, self.result_bits(), &mut all);
        all
    }

    fn variables_in(&self, term: &Term, bits: u8, all: &mut [u8; VARIABLES]) {
        match *term {
            Term::Variable(number) => all[usize::from(number)] = bits,
            Term::Constant(_) => {}
            Term::Op(op, terms) => {
                for (index, term) in terms.iter().enumerate() {
                    self.variables_in(term, operand_bits(op, index, bits, self.bits), all);
                }
            }
        }
    }

    /// Matches an operation against the pattern of the rule, with the operands of commutative operations in every
    /// order. Returns the values of the variables. `bits` is the width of the result.
    fn matches(&self, function: &Function, op: Op, srcs: &[AluSrc], bits: u8) -> Option<Bindings> {
        let Term::Op(wanted, _) = self.from else { return None };
        if op != wanted || bits != self.result_bits() || !has_operations(function, &self.from, srcs) {
            return None;
        }
        (0..1 << self.from.commuting()).find_map(|orders| {
            let mut matcher = Matcher { function, rule: self.bits, orders, bindings: Bindings::default() };
            matcher.op(&self.from, (op, srcs), bits).then_some(matcher.bindings)
        })
    }
}

impl Term {
    /// The number of commutative operations in the term.
    fn commuting(&self) -> u32 {
        match *self {
            Self::Op(op, terms) => u32::from(op.info().commutes()) + terms.iter().map(Self::commuting).sum::<u32>(),
            Self::Variable(_) | Self::Constant(_) => 0,
        }
    }
}

/// Matches operations of a program against a pattern.
struct Matcher<'a> {
    function: &'a Function,
    /// The width of the rule in bits.
    rule: u8,
    /// One bit for each commutative operation of the pattern, in the order of the traversal: set to exchange its first
    /// two operands.
    orders: u32,
    bindings: Bindings,
}

impl Matcher<'_> {
    fn op(&mut self, term: &Term, (op, srcs): (Op, &[AluSrc]), bits: u8) -> bool {
        let Term::Op(wanted, terms) = *term else { return false };
        if op != wanted || srcs.len() != terms.len() {
            return false;
        }
        let mut exchange = 0;
        if op.info().commutes() {
            exchange = usize::from(self.orders & 1 != 0);
            self.orders >>= 1;
        }
        terms.iter().enumerate().all(|(index, term)| {
            let src = srcs[if index < 2 { index ^ exchange } else { index }];
            self.src(term, src, operand_bits(op, index, bits, self.rule))
        })
    }

    fn src(&mut self, term: &Term, src: AluSrc, bits: u8) -> bool {
        let function = self.function;
        let def = &function.defs[src.def];
        if def.bit_size != bits {
            return false;
        }
        match *term {
            Term::Variable(number) => {
                let one = AluSrc::swizzled(src.def, &src.swizzle[..1]);
                match &mut self.bindings[usize::from(number)] {
                    Some(bound) => *bound == one,
                    free => {
                        *free = Some(one);
                        true
                    }
                }
            }
            Term::Constant(number) => constant(function, src) == Some(number),
            Term::Op(..) => match &function.instrs[def.instr] {
                InstrData::Alu(alu) => def.num_components == 1 && self.op(term, (alu.op, &alu.srcs), bits),
                _ => false,
            },
        }
    }
}

/// A quick check before matching: returns false if some operation of the pattern has the opcode of no source, so that
/// no order of the sources matches.
fn has_operations(function: &Function, pattern: &Term, srcs: &[AluSrc]) -> bool {
    let Term::Op(_, terms) = *pattern else { return true };
    terms.iter().all(|term| match term {
        Term::Op(wanted, _) => srcs.iter().any(|src| match &function.instrs[function.defs[src.def].instr] {
            InstrData::Alu(alu) => alu.op == *wanted && has_operations(function, term, &alu.srcs),
            _ => false,
        }),
        Term::Variable(_) | Term::Constant(_) => true,
    })
}

/// The value of a scalar source, if it is a constant.
fn constant(function: &Function, src: AluSrc) -> Option<u64> {
    match &function.instrs[function.defs[src.def].instr] {
        InstrData::Const { values, .. } => values.get(usize::from(src.swizzle[0])).copied(),
        _ => None,
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
    /// Builds a term of `bits` bits in a rule of width `rule`. Variables, and terms that simplify to a variable, need
    /// no new value.
    fn build(&mut self, term: Term, bindings: &Bindings, bits: u8, rule: u8) -> Option<AluSrc> {
        let (op, terms) = match term {
            Term::Variable(number) => return bindings[usize::from(number)],
            Term::Constant(number) => return Some(self.constant(number, bits)),
            Term::Op(op, terms) => (op, terms),
        };
        let srcs = self.operands(op, terms, bindings, bits, rule)?;
        for rule in self.simpler.rules() {
            if let Some(found) = rule.matches(self.function, op, &srcs, bits) {
                return self.build(rule.to, &found, bits, rule.bits);
            }
        }
        if let Some(number) = self.part_of_constant(op, &srcs) {
            return Some(self.constant(number, bits));
        }
        let divergent = self.divergent(&srcs);
        let def = self.define(bits, divergent, |def| alu(op, def, srcs));
        Some(AluSrc::swizzled(def, &[0]))
    }

    /// Folds the low or high half of a 64-bit constant.
    fn part_of_constant(&self, op: Op, srcs: &[AluSrc]) -> Option<u64> {
        let number = constant(self.function, *srcs.first()?)?;
        match op {
            Op::Unpack64_2x32SplitX => Some(number & 0xffff_ffff),
            Op::Unpack64_2x32SplitY => Some(number >> 32),
            _ => None,
        }
    }

    fn constant(&mut self, number: u64, bits: u8) -> AluSrc {
        let known = self.function.defs.values().next().and_then(|data| data.divergent);
        let def = self
            .define(bits, known.map(|_| false), |def| InstrData::Const { def, values: [number].into_iter().collect() });
        AluSrc::swizzled(def, &[0])
    }

    /// Inserts a scalar instruction before the one that is rewritten; returns its result.
    fn define(&mut self, bit_size: u8, divergent: Option<bool>, data: impl FnOnce(Def) -> InstrData) -> Def {
        let instr = self.function.instrs.next_key();
        let index = self.next_index;
        self.next_index += 1;
        let def = self.function.defs.push(DefData { num_components: 1, bit_size, divergent, instr, index });
        let list = &self.function.blocks[self.block].instrs;
        let at = list.iter().position(|&other| other == self.before).unwrap_or(list.len());
        self.function.insert(self.block, at, data(def));
        def
    }

    fn operands(
        &mut self,
        op: Op,
        terms: &[Term],
        bindings: &Bindings,
        bits: u8,
        rule: u8,
    ) -> Option<SmallVec<[AluSrc; 3]>> {
        let operand = |(index, &term)| self.build(term, bindings, operand_bits(op, index, bits, rule), rule);
        terms.iter().enumerate().map(operand).collect()
    }

    /// The divergence of a result; `None` if that of a source is not known.
    fn divergent(&self, srcs: &[AluSrc]) -> Option<bool> {
        srcs.iter().try_fold(false, |any, src| Some(self.function.defs[src.def].divergent? || any))
    }

    /// Replaces the instruction that defines `def` by the right side of a rule whose pattern it matches. Returns false
    /// if the right side cannot be built.
    fn replace(&mut self, rule: &Rule, bindings: &Bindings, def: Def) -> bool {
        let bits = self.function.defs[def].bit_size;
        let (op, srcs) = match rule.to {
            Term::Op(op, terms) => match self.operands(op, terms, bindings, bits, rule.bits) {
                Some(srcs) => (op, srcs),
                None => return false,
            },
            term => match self.build(term, bindings, bits, rule.bits) {
                Some(src) => (Op::Mov, [src].into_iter().collect()),
                None => return false,
            },
        };
        self.function.instrs[self.before] = alu(op, def, srcs);
        true
    }
}

fn alu(op: Op, def: Def, srcs: SmallVec<[AluSrc; 3]>) -> InstrData {
    InstrData::Alu(Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
}
