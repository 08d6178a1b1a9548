//! The rules of ir3, and what is wrong with a program that breaks one.
//!
//! `structure` looks at the control flow: lists of blocks agree with each other, phis stand first, terminators last,
//! and every use of a value is dominated by its definition. `operands` looks at each operand by itself: its register
//! is in the file, its value has its class, its immediate fits. `opcodes` looks at instructions: how many operands,
//! and which widths and files go together. Derived facts are only used once the lists that they come from are sound.
//!
//! All rules hold for every section of Mesa's logs (the test `mesa_logs` checks that); where a stage of the compiler
//! legitimately departs, the rule depends on the [`Form`].

mod opcodes;
mod operands;
mod structure;
#[cfg(test)]
mod tests;

use super::{Block, Instr, InstrData, Opcode, Program};
use crate::target::Target;
use std::fmt;

/// What a program has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// SSA values, up to register allocation. Values whose registers had to be chosen earlier (inputs, predicates,
    /// address registers, shared registers) may have them.
    Ssa,
    /// Physical registers; phis, vectors and parallel copies are still there.
    Registers,
    /// Nothing but machine instructions, inputs aside. Branches may say where they go, and two may end a block.
    Machine,
}

impl Form {
    /// The form that a program is in, as its operands tell.
    pub fn of(program: &Program) -> Self {
        let all = || program.iter_instrs().map(|(_, instr)| &program.instrs[instr]);
        let in_ssa = |data: &InstrData| {
            data.dsts.iter().any(|dst| dst.value().is_some()) || data.srcs.iter().any(|src| src.value().is_some())
        };
        if all().any(in_ssa) {
            return Self::Ssa;
        }
        let vectors = [Opcode::Phi, Opcode::Collect, Opcode::Split, Opcode::ParallelCopy];
        if all().any(|data| vectors.contains(&data.opcode)) { Self::Registers } else { Self::Machine }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ssa => "SSA form",
            Self::Registers => "register form",
            Self::Machine => "machine form",
        })
    }
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A program has an entry block, which nothing jumps to; each block stands once in the layout.
    Layout,
    /// Logical successors and predecessors are each other's inverse.
    LogicalEdges,
    /// Physical successors and predecessors are each other's inverse, and contain the logical ones.
    PhysicalEdges,
    /// An instruction stands in one place.
    InstrOnce,
    /// Phis stand before everything else in a block.
    PhisFirst,
    /// A phi has a source for each predecessor.
    PhiSources,
    /// A block ends with the terminator that its successors need, and has no other.
    Terminator,
    /// Blocks where lanes wait for others are reconvergence points, if any block is said to be one.
    Reconvergence,
    /// A value is what its instruction's destination says.
    ValueRecord,
    /// A value that is used is defined in the code.
    Defined,
    /// A definition dominates its uses.
    Dominance,
    /// The opcode and its operands are possible in this form.
    Form,
    /// The attributes are of the opcode's kind.
    Attributes,
    /// Number of destinations.
    Destinations,
    /// Number of sources.
    Sources,
    /// A use has the class of the value.
    ValueClass,
    /// A use reads components that the value has.
    Components,
    /// Register numbers are in the file of the class.
    RegisterFile,
    /// Constants are in the constant file.
    ConstFile,
    /// Immediates fit.
    Immediate,
    /// The encoding has room for a source of this kind beside the others.
    Encoding,
    /// Modifiers are the operation's.
    Modifiers,
    /// Widths of operands go together.
    Width,
    /// Register files of operands go together.
    File,
    /// Tied operands come in pairs of one class and, once allocated, one register.
    Tied,
    /// Array accesses are inside their array.
    Array,
    /// What is relative to an address register has it as a source.
    Address,
    /// Repetition of an instruction that can be repeated, and repeat groups within a block.
    Repeat,
}

/// Which operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A destination, from 0.
    Dst(usize),
    /// A source, from 0.
    Src(usize),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dst(i) => write!(f, "destination {i}"),
            Self::Src(i) => write!(f, "source {i}"),
        }
    }
}

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The block; none where the program as a whole is wrong.
    pub block: Option<Block>,
    /// The number of the block in the text.
    pub block_number: u32,
    /// The instruction.
    pub instr: Option<Instr>,
    /// What the instruction is, and its number in the text (0 where it has none).
    pub name: Option<(Opcode, u32)>,
    /// The operand.
    pub operand: Option<Operand>,
    /// What the rule asks for.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.block.is_some() {
            write!(f, "block{}: ", self.block_number)?;
        }
        if let Some((opcode, serial)) = self.name {
            write!(f, "{opcode}")?;
            if serial != 0 {
                write!(f, " ({serial:04})")?;
            }
            f.write_str(": ")?;
        }
        if let Some(operand) = self.operand {
            write!(f, "{operand}: ")?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for Violation {}

/// Checks a program against all rules.
pub fn validate(program: &Program, target: &Target, form: Form) -> Result<(), Vec<Violation>> {
    let mut checker = Checker { program, target, form, place: Place::default(), violations: Vec::new() };
    if checker.control_flow() {
        checker.uses();
        checker.reconvergence();
    }
    for &block in &program.layout {
        if program.blocks.get(block).is_none() {
            continue;
        }
        checker.place = Place { block: Some(block), ..Place::default() };
        for &instr in &program.blocks[block].instrs {
            if program.instrs.get(instr).is_some() {
                checker.place.instr = Some(instr);
                checker.place.operand = None;
                checker.instr(instr);
            }
        }
    }
    if checker.violations.is_empty() { Ok(()) } else { Err(checker.violations) }
}

/// Where the checker is.
#[derive(Clone, Copy, Default)]
struct Place {
    block: Option<Block>,
    instr: Option<Instr>,
    operand: Option<Operand>,
}

/// The checker; its methods are spread over the files by what they look at.
struct Checker<'a> {
    program: &'a Program,
    target: &'a Target,
    form: Form,
    place: Place,
    violations: Vec<Violation>,
}

/// More than this many violations tell nobody anything.
const MOST: usize = 200;

impl Checker<'_> {
    /// Notes that a rule is broken here.
    fn violation(&mut self, rule: Rule, expected: impl Into<String>, found: impl Into<String>) {
        if self.violations.len() == MOST {
            return;
        }
        let program = self.program;
        let Place { block, instr, operand } = self.place;
        self.violations.push(Violation {
            rule,
            block,
            block_number: block.map_or(0, |block| self.number_of(block)),
            instr,
            name: instr.and_then(|instr| program.instrs.get(instr).map(|data| (data.opcode, program.serials[instr]))),
            operand,
            expected: expected.into(),
            found: found.into(),
        });
    }

    /// The number of a block in the text.
    fn number_of(&self, block: Block) -> u32 {
        let program = self.program;
        let named = program.block_names.iter().find(|(b, _)| *b == block).map(|&(_, number)| number);
        let position = || program.layout.iter().position(|&b| b == block).map_or(0, |i| i as u32 + 1);
        named.unwrap_or_else(position)
    }

    /// A block as the text has it.
    fn name_of(&self, block: Block) -> String {
        format!("block{}", self.number_of(block))
    }

    /// Notes a broken rule unless `holds`.
    fn require(
        &mut self,
        holds: bool,
        rule: Rule,
        expected: impl FnOnce() -> String,
        found: impl FnOnce() -> String,
    ) -> bool {
        if !holds {
            self.violation(rule, expected(), found());
        }
        holds
    }
}
