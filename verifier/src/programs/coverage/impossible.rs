//! Cells that no generated program can have, and why: one table of rules, of which each covers the cells of one reason.
//!
//! A rule names the row of a table, the pass or the refusal that rules its cells out. A test runs a campaign, in which no cell that
//! a rule covers may be seen, and checks that each rule covers one.

use ir3_compiler::ir3::{Category, Mods, Opcode};
use ir3_compiler::opt::fold::CONVERSIONS;
use ir3_compiler::reached::Arm;
use ir3_compiler::target::{Backend, Target};

use super::Family;
use super::machine::{Mark, Property, ResultForm, SourceForm};
use super::made::{JOINED, Made};

/// A cell of an instruction, and what is known of the GPU.
struct Instruction<'a> {
    family: Family,
    opcode: Opcode,
    property: Property,
    made: &'a Made,
}

impl Instruction<'_> {
    fn is_made(&self, property: Property) -> bool {
        self.made.has(self.family, self.opcode, property)
    }

    /// Returns true if programs of one operation tell all about the opcode.
    fn is_told(&self) -> bool {
        !JOINED.contains(&self.opcode)
    }

    /// Returns true if a source or a result of this width is made, where the property is one.
    fn has_width(&self) -> bool {
        let alike = |slot: usize, register: SourceForm| {
            let mut forms = SourceForm::ALL.into_iter().filter(|form| form.register() == Some(register));
            forms.any(|form| self.is_made(Property::Source(slot, form)))
        };
        match self.property {
            Property::Source(slot, form) => form.register().is_none_or(|register| {
                // Operands of operations that commute change places.
                alike(slot, register) || slot < 2 && self.opcode.commutes() && alike(1 - slot, register)
            }),
            Property::Result(form) => {
                let is_half = matches!(form, ResultForm::Half | ResultForm::HalfShared);
                let made = |full, half| self.is_made(Property::Result(if is_half { half } else { full }));
                let same =
                    || made(ResultForm::Full, ResultForm::Half) || made(ResultForm::Shared, ResultForm::HalfShared);
                let converts = || {
                    CONVERSIONS.iter().any(|it| it.opcodes.contains(&self.opcode) && it.types.1.is_half() == is_half)
                };
                !matches!(form, ResultForm::Full | ResultForm::Half | ResultForm::Shared | ResultForm::HalfShared)
                    || same()
                    || converts()
            }
            _ => true,
        }
    }
}

/// The cells of one reason.
struct Rule {
    reason: &'static str,
    covers: fn(&Instruction<'_>) -> bool,
}

const RULES: &[Rule] = &[
    Rule {
        reason: "select: no operation that it accepts becomes this opcode, and no pass makes it",
        covers: |it| it.is_told() && !it.made.has_opcode(it.family, it.opcode),
    },
    Rule {
        reason: "select: no operation that it accepts becomes an instruction of this width",
        covers: |it| it.is_told() && !it.has_width(),
    },
    Rule {
        reason: "select: no operation that it accepts becomes an instruction of this type or condition",
        covers: |it| {
            it.is_told()
                && matches!(it.property, Property::Type(_) | Property::Condition(_))
                && !it.is_made(it.property)
        },
    },
    Rule {
        reason: "select: no operation that it accepts has a vector as the result of this opcode",
        covers: |it| it.is_told() && it.property == Property::Result(ResultForm::Vector) && !it.is_made(it.property),
    },
    Rule {
        reason: "select: the operand is an immediate, and no pass makes a register of it",
        covers: |it| match it.property {
            Property::Source(_, SourceForm::Full | SourceForm::Half) => {
                it.is_told() && it.opcode.category() == Category::Memory && !it.is_made(it.property)
            }
            _ => false,
        },
    },
    Rule {
        reason: "copy-propagation: what is read at an address stays a move",
        covers: |it| match it.property {
            Property::Source(_, SourceForm::RelativeConstant | SourceForm::Relative) => it.opcode != Opcode::Mov,
            _ => false,
        },
    },
    Rule {
        reason: "copy-propagation: a vector is no copy of a constant or a shared register",
        covers: |it| match it.property {
            Property::Source(slot, form) => {
                !matches!(form, SourceForm::Full | SourceForm::Half)
                    && it.made.is_vector(it.opcode, slot)
                    && !it.is_made(it.property)
            }
            _ => false,
        },
    },
    Rule {
        reason: "copy-propagation: a macro, and an instruction that only moves, reads registers and what selection gave it",
        covers: |it| match it.property {
            Property::Source(_, SourceForm::HalfConstant) if it.opcode.is_meta() || it.opcode == Opcode::Mov => true,
            Property::Source(_, form) => {
                it.opcode.is_macro()
                    && form.register().is_some_and(|register| register != form)
                    && !it.is_made(it.property)
            }
            _ => false,
        },
    },
    Rule {
        reason: "copy-propagation: the number of a varying and its coordinates have no sign",
        covers: |it| {
            it.opcode == Opcode::BaryF
                && matches!(it.property, Property::Source(_, SourceForm::Negated | SourceForm::Absolute))
        },
    },
    Rule {
        reason: "fold: of all operations, only a conjunction reads an operand with `(not)`",
        covers: |it| {
            it.property == Property::Mark(Mark::Not)
                && it.opcode != Opcode::AndB
                && it.opcode.category() == Category::Alu2
        },
    },
    Rule {
        reason: "fold: of what reads predicates, only branches are inverted",
        covers: |it| {
            it.property == Property::Mark(Mark::Not)
                && it.opcode.reads_predicates()
                && it.opcode.source_mods(0).contains(Mods::NOT)
                && it.opcode.inverse_branch().is_none()
        },
    },
    Rule {
        reason: "fold: `getbit.b` tests a register at an immediate number, into a predicate",
        covers: |it| {
            it.opcode == Opcode::GetbitB
                && match it.property {
                    Property::Source(0, form) => !matches!(form, SourceForm::Full | SourceForm::Half),
                    Property::Source(_, form) => !matches!(form, SourceForm::Immediate | SourceForm::HalfImmediate),
                    Property::Result(form) => form != ResultForm::Predicate,
                    Property::Mark(mark) => mark == Mark::Repeated,
                    Property::Condition(_) | Property::Type(_) => false,
                }
        },
    },
    Rule {
        reason: "register-allocation: swaps are made after it, of general registers",
        covers: |it| {
            let is_shared = matches!(it.property, Property::Source(_, SourceForm::Shared | SourceForm::HalfShared));
            it.opcode == Opcode::Swz && (it.family == Family::Ssa || is_shared)
        },
    },
];

/// The reason for which no program has a cell of an instruction.
pub(super) fn instruction(family: Family, opcode: Opcode, property: Property, made: &Made) -> Option<&'static str> {
    let cell = Instruction { family, opcode, property, made };
    RULES.iter().find(|rule| (rule.covers)(&cell)).map(|rule| rule.reason)
}

/// Arms that no generated program reaches. File tests of the passes reach them.
const ARMS: &[(Arm, &str)] = &[
    (Arm::CopyOutput, "select: an output has no register of its own; only texts give it one"),
    (Arm::CopySplit, "select: what is split is the result of one instruction, never a collect"),
    (Arm::FoldTwoNegations, "fold: one operand of a conjunction becomes `(not)`, none of a disjunction"),
    (Arm::PredicationUniform, "scalar-alu: branches on which lanes do not diverge are marked before"),
    (Arm::AssignEvictShared, "shared-registers: shared values have their registers before"),
    (Arm::CopiesAcross, "shared-registers: a phi with a general source is no shared register"),
    (Arm::CopiesNarrow, "shared-registers: a phi with a general source is no shared register"),
    (Arm::SubgroupPreamble, "select: the branch of a preamble is `shps` itself"),
];

/// Arms of the stages of one backend.
const INLINED: [Arm; 3] = [Arm::PreambleValue, Arm::PreambleDriver, Arm::PreambleBuffer];

/// The reason for which no program reaches an arm.
pub(super) fn arm(arm: Arm, target: &Target) -> Option<&'static str> {
    if INLINED.contains(&arm) && target.backend != Backend::Vec4 {
        return Some("pipeline: preambles are inlined for vec4 only");
    }
    ARMS.iter().find(|(other, _)| *other == arm).map(|(_, reason)| *reason)
}
