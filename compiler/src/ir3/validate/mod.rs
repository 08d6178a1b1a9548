//! The ir3 validator: the rules of ir3, and errors for programs that break one.
//!
//! `structure` checks the control flow: lists of blocks are consistent, phis come first, terminators last, and every
//! use of a value is dominated by its definition. `operands` checks each operand in isolation: its register is in the
//! file, its value has its class, its immediate fits. `opcodes` checks instructions: the number of operands, and the
//! combinations of widths and files. Derived facts are only used after the lists that they come from are checked.
//!
//! All rules hold for every section of Mesa's logs (the test `mesa_logs` checks that); where a stage of the compiler
//! legitimately departs from one, the rule depends on the [`Form`].

mod opcodes;
mod operands;
mod structure;
#[cfg(test)]
mod tests;

use super::{Block, Instr, InstrData, Opcode, Program};
use crate::target::Target;
use std::fmt;

/// The form of a program, which changes in the course of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// SSA values, up to register allocation. Values whose registers are chosen earlier (inputs, predicates, address
    /// registers, shared registers) may have them.
    Ssa,
    /// Physical registers; phis, vectors and parallel copies still exist.
    Registers,
    /// Only machine instructions and inputs. Branches may have explicit targets, and two may end a block.
    Machine,
}

impl Form {
    /// The form of a program, derived from its operands.
    pub fn of(program: &Program) -> Self {
        let all = || program.iter_instrs().map(|(_, instr)| &program.instrs[instr]);
        let in_ssa = |data: &InstrData| {
            data.dsts.iter().any(|dst| dst.value().is_some()) || data.srcs.iter().any(|src| src.value().is_some())
        };
        if all().any(in_ssa) {
            return Self::Ssa;
        }
        let is_lowered = |data: &InstrData| data.opcode == Opcode::Phi || data.opcode.is_copy();
        if all().any(is_lowered) { Self::Registers } else { Self::Machine }
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
    /// A program has an entry block without predecessors; each block occurs once in the layout.
    Layout,
    /// Logical successors and predecessors are each other's inverse.
    LogicalEdges,
    /// Physical successors and predecessors are each other's inverse, and contain the logical ones.
    PhysicalEdges,
    /// An instruction occurs once.
    InstrOnce,
    /// Phis precede all other instructions of a block.
    PhisFirst,
    /// No general register is written before a prefetch, but by inputs and other prefetches: it has read and written
    /// its registers before the first instruction.
    PrefetchesFirst,
    /// A prefetch reads and writes registers that the command which starts it can name.
    Prefetch,
    /// A phi has a source for each predecessor.
    PhiSources,
    /// A block ends with the terminator that its successors need, and has no other.
    Terminator,
    /// Blocks where lanes wait for others are reconvergence points, if any block is marked as one.
    Reconvergence,
    /// A value's record agrees with the destination of its instruction.
    ValueRecord,
    /// A value that is used is defined in the code.
    Defined,
    /// A definition dominates its uses.
    Dominance,
    /// The opcode and its operands are allowed in this form.
    Form,
    /// The attributes fit the opcode's kind.
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
    /// The encoding supports a source of this kind beside the others.
    Encoding,
    /// The operation supports the modifiers.
    Modifiers,
    /// The widths of operands agree.
    Width,
    /// The register files of operands agree.
    File,
    /// Tied operands come in pairs of one class and, once allocated, one register.
    Tied,
    /// Array accesses are inside their array.
    Array,
    /// An operand that is relative to an address register has it as a source.
    Address,
    /// Repetition of an instruction that can be repeated, and repeat groups within a block.
    Repeat,
    /// The GPU has the instruction, in this stage.
    Generation,
}

/// An operand of an instruction.
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

/// A broken rule and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The block; None if the program as a whole is wrong.
    pub block: Option<Block>,
    /// The number of the block in the text.
    pub block_number: u32,
    /// The instruction.
    pub instr: Option<Instr>,
    /// The opcode of the instruction, and its number in the text (0 if it has none).
    pub name: Option<(Opcode, u32)>,
    /// The operand.
    pub operand: Option<Operand>,
    /// The requirement of the rule.
    pub expected: String,
    /// The actual state.
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
///
/// # Errors
/// Returns all broken rules, up to a maximum number.
pub fn validate(program: &Program, target: &Target, form: Form) -> Result<(), Vec<Violation>> {
    let mut checker = Checker { program, target, form, place: RuleLocation::default(), violations: Vec::new() };
    if checker.control_flow() {
        checker.uses();
        checker.reconvergence();
    }
    for &block in &program.layout {
        if program.blocks.get(block).is_none() {
            continue;
        }
        checker.place = RuleLocation { block: Some(block), ..RuleLocation::default() };
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

/// The current location of the validator.
#[derive(Clone, Copy, Default)]
struct RuleLocation {
    block: Option<Block>,
    instr: Option<Instr>,
    operand: Option<Operand>,
}

/// The validator; its methods are distributed over the files by what they check.
struct Checker<'a> {
    program: &'a Program,
    target: &'a Target,
    form: Form,
    place: RuleLocation,
    violations: Vec<Violation>,
}

/// The maximum number of violations that are reported.
const MOST: usize = 200;

impl Checker<'_> {
    /// Reports a broken rule at the current location.
    fn violation(&mut self, rule: Rule, expected: impl Into<String>, found: impl Into<String>) {
        if self.violations.len() == MOST {
            return;
        }
        let program = self.program;
        let RuleLocation { block, instr, operand } = self.place;
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

    /// The name of a block in the text.
    fn name_of(&self, block: Block) -> String {
        format!("block{}", self.number_of(block))
    }

    /// Reports a broken rule unless `holds`.
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
