//! Cells that no generated program can have, and why: one table of rules, of which each covers the cells of one reason.
//!
//! A rule names the row of a table, the pass or the refusal that rules its cells out. A test runs a campaign, in which
//! no cell that a rule covers may be seen, and checks that each rule covers one.

use ir3_compiler::arms::Arm;
use ir3_compiler::ir3::{Category, Mods, Opcode, Type};
use ir3_compiler::opt::fold::CONVERSIONS;
use ir3_compiler::target::{Backend, Target};

use super::Family;
use super::machine::{Mark, Property, ResultForm, SourceForm};
use super::made::{self, Made};

/// A cell of an instruction, and facts about the GPU.
struct Instruction<'a> {
    family: Family,
    opcode: Opcode,
    property: Property,
    target: &'a Target,
    made: &'a Made,
}

impl Instruction<'_> {
    fn is_made(&self, property: Property) -> bool {
        self.made.has(self.family, self.opcode, property)
    }

    /// Returns true if programs of one operation cover the opcode.
    fn is_covered(&self) -> bool {
        made::is_covered(self.opcode)
    }

    /// Returns true if it loads bytes of a read-only storage buffer: programs of one operation have no such buffer.
    fn is_cached_byte(&self) -> bool {
        self.opcode == Opcode::Isam && self.property == Property::Type(Type::U8) && !self.target.storage_8bit
    }

    /// Returns true if it is a product of which an address is made.
    fn is_address(&self) -> bool {
        self.family == Family::Final && self.opcode == Opcode::MulS24
    }

    /// Returns true if a source or a result of this width is made, where the property is one.
    fn has_width(&self) -> bool {
        let alike = |slot: usize, register: SourceForm| {
            let mut forms = SourceForm::ALL.into_iter().filter(|form| form.register() == Some(register));
            forms.any(|form| self.is_made(Property::Source(slot, form)))
        };
        match self.property {
            Property::Source(..) | Property::Result(_) if self.is_address() => true,
            Property::Source(slot, form) => form.register().is_none_or(|register| {
                // Operands of operations that commute change places.
                alike(slot, register) || slot < 2 && self.opcode.commutes() && alike(1 - slot, register)
            }),
            Property::Result(form) => {
                use ResultForm as F;
                let made = |form| self.is_made(Property::Result(form));
                let is_half = matches!(form, F::Half | F::HalfShared);
                let converts = || {
                    CONVERSIONS.iter().any(|it| it.types.1.is_half() == is_half && it.opcodes.contains(&self.opcode))
                };
                let (general, shared) = if is_half { (F::Half, F::HalfShared) } else { (F::Full, F::Shared) };
                match form {
                    F::Full | F::Half | F::Shared | F::HalfShared if self.opcode.has_scalar_form() => {
                        made(general) || made(shared) || converts()
                    }
                    F::Full | F::Half => made(general),
                    _ => true,
                }
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
        reason: "target: it has no shared registers",
        covers: |it| {
            use {ResultForm as R, SourceForm as S};
            let is_shared = matches!(
                it.property,
                Property::Source(_, S::Shared | S::HalfShared) | Property::Result(R::Shared | R::HalfShared)
            );
            is_shared && !it.target.has_shared_regfile
        },
    },
    Rule {
        reason: "legalize: `dsxpp.macro` and `dsypp.macro` are two instructions each",
        covers: |it| it.family == Family::Final && matches!(it.opcode, Opcode::DsxppMacro | Opcode::DsyppMacro),
    },
    Rule {
        reason: "register-allocation: nothing is swapped, waited for, reactivated or elected before it",
        covers: |it| {
            it.family == Family::Ssa && matches!(it.opcode, Opcode::Swz | Opcode::Nop | Opcode::Prede | Opcode::Getlast)
        },
    },
    Rule {
        reason: "register-allocation: of half registers, only the products of which addresses are made are `mul.s24`",
        covers: |it| {
            use {ResultForm as R, SourceForm as S};
            it.is_address()
                && matches!(
                    it.property,
                    Property::Source(_, S::HalfShared | S::HalfConstant | S::HalfImmediate)
                        | Property::Result(R::HalfShared)
                )
        },
    },
    Rule {
        reason: "select: the coordinates of a varying, and of a sample before the program starts, are a pair of full registers",
        covers: |it| {
            let slot = if it.opcode == Opcode::TexPrefetch { 0 } else { 1 };
            let is_pair = matches!(it.opcode, Opcode::BaryF | Opcode::FlatB | Opcode::TexPrefetch);
            match it.property {
                Property::Source(at, form) => {
                    is_pair && at == slot && form != SourceForm::Full && !it.is_made(it.property)
                }
                _ => false,
            }
        },
    },
    Rule {
        reason: "select: barriers have no operands",
        covers: |it| it.opcode.category() == Category::Barrier && matches!(it.property, Property::Source(..)),
    },
    Rule {
        reason: "lower-copies: swaps are of general registers",
        covers: |it| {
            it.opcode == Opcode::Swz
                && matches!(it.property, Property::Source(_, SourceForm::Shared | SourceForm::HalfShared))
        },
    },
    Rule {
        reason: "lower-spills: the address of a spill slot has 32 bits",
        covers: |it| {
            matches!(it.opcode, Opcode::Ldp | Opcode::Stp) && it.property == Property::Source(0, SourceForm::Half)
        },
    },
    Rule {
        reason: "select: no operation that it accepts becomes this opcode, and no pass makes it",
        covers: |it| it.is_covered() && !it.made.has_opcode(it.family, it.opcode),
    },
    Rule {
        reason: "select: no operation that it accepts becomes an instruction of this width",
        covers: |it| it.is_covered() && !it.has_width(),
    },
    Rule {
        reason: "select: no operation that it accepts becomes an instruction of this type or condition",
        covers: |it| {
            it.is_covered()
                && matches!(it.property, Property::Type(_) | Property::Condition(_))
                && !it.is_made(it.property)
                && !it.is_cached_byte()
        },
    },
    Rule {
        reason: "select: no operation that it accepts has a vector as the result of this opcode",
        covers: |it| it.is_covered() && it.property == Property::Result(ResultForm::Vector) && !it.is_made(it.property),
    },
    Rule {
        reason: "select: the operand is an immediate, and no pass makes a register of it",
        covers: |it| match it.property {
            Property::Source(_, SourceForm::Full | SourceForm::Half) => {
                it.is_covered() && it.opcode.category() == Category::Memory && !it.is_made(it.property)
            }
            _ => false,
        },
    },
    Rule {
        reason: "copy-propagation: a read at an address stays a move",
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
        reason: "copy-propagation: a macro, and an instruction that only moves, reads registers and the operands from selection",
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
        reason: "fold: of the readers of predicates, only branches are inverted",
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
];

/// The reason for which no program has a cell of an instruction.
pub(super) fn instruction(
    family: Family,
    opcode: Opcode,
    property: Property,
    target: &Target,
    made: &Made,
) -> Option<&'static str> {
    let cell = Instruction { family, opcode, property, target, made };
    RULES.iter().find(|rule| (rule.covers)(&cell)).map(|rule| rule.reason)
}

/// Arms that no generated program reaches. File tests of the passes reach them.
const ARMS: &[(Arm, &str)] = &[
    (Arm::CopyOutput, "select: an output has no register of its own; only texts give it one"),
    (Arm::CopySplit, "select: the source of a split is the result of one instruction, never a collect"),
    (Arm::FoldTwoNegations, "fold: one operand of a conjunction becomes `(not)`, none of a disjunction"),
    (Arm::PredicationUniform, "scalar-alu: branches on which lanes do not diverge are marked before"),
    (Arm::AssignEvictShared, "shared-registers: shared values have their registers before"),
    (Arm::CopiesAcross, "shared-registers: a phi with a general source is no shared register"),
    (Arm::CopiesNarrow, "shared-registers: a phi with a general source is no shared register"),
];

/// Arms of the stages of one backend.
const INLINED: [Arm; 3] = [Arm::PreambleValue, Arm::PreambleDriver, Arm::PreambleBuffer];

/// Why arms of [`INLINED`] are not reached.
const NOT_INLINED: &str = "pipeline: preambles are inlined for vec4 only";

/// The reasons of all rules.
pub fn reasons() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.reason).chain(ARMS.iter().map(|(_, reason)| *reason)).chain([NOT_INLINED])
}

/// The reason for which no program reaches an arm.
pub(super) fn arm(arm: Arm, target: &Target) -> Option<&'static str> {
    if INLINED.contains(&arm) && target.backend != Backend::Vec4 {
        return Some(NOT_INLINED);
    }
    ARMS.iter().find(|(other, _)| *other == arm).map(|(_, reason)| *reason)
}
