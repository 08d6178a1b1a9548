//! Classification of the difference between two ir3 programs, one of which a stage made from the other.
//!
//! All changes are listed, and the most specific one is used: a missing effect is more specific than a changed operand
//! after it. A change does not contain values, registers, numbers or constants.

use std::collections::BTreeSet;
use std::fmt;

use ir3_compiler::ir3::{Category, Instr, InstrData, Opcode, Program, RegClass, RegFile};
use ir3_compiler::target::Target;

use super::reaching_values::{Operands, ReachingValue, is_copy, loses_copy, operands};

/// A change, the most specific kinds first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StageChange {
    /// An instruction with an effect was removed.
    Missing(InstrClass),
    /// Instructions that access memory were reordered.
    Order,
    /// A copy into a register was removed.
    CopyLost,
    /// An instruction has another operation.
    Operation(InstrClass),
    /// A source has another modifier.
    Modifier(InstrClass),
    /// Two operands were swapped.
    Exchanged(InstrClass),
    /// An operand has parts of two values.
    Torn(OperandFile),
    /// An operand has another value.
    Another(OperandFile),
    /// An operand is undefined.
    Nothing(OperandFile),
    /// An instruction with an effect was added.
    Added(InstrClass),
}

/// The class of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InstrClass {
    Store,
    Atomic,
    Load,
    Texture,
    Branch,
    Flow,
    End,
    Phi,
    Compare,
    Move,
    Arithmetic,
    Other,
}

/// The register file of an operand. The width is ignored: most bugs occur with both widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OperandFile {
    General,
    Predicate,
    Address,
}

impl fmt::Display for StageChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(class) => write!(f, "{class} lost"),
            Self::CopyLost => f.write_str("a copy lost"),
            Self::Order => f.write_str("effects in another order"),
            Self::Operation(class) => write!(f, "{class} does something else"),
            Self::Modifier(class) => write!(f, "{class} with another modifier"),
            Self::Exchanged(class) => write!(f, "operands of {class} exchanged"),
            Self::Torn(file) => write!(f, "{file} has parts of two values"),
            Self::Another(file) => write!(f, "{file} has another value"),
            Self::Nothing(file) => write!(f, "{file} has no value"),
            Self::Added(class) => write!(f, "{class} added"),
        }
    }
}

impl fmt::Display for InstrClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "a store",
            Self::Atomic => "an atomic",
            Self::Load => "a load",
            Self::Texture => "a texture operation",
            Self::Branch => "a branch",
            Self::Flow => "control flow",
            Self::End => "the end",
            Self::Phi => "a phi",
            Self::Compare => "a comparison",
            Self::Move => "a move",
            Self::Arithmetic => "arithmetic",
            Self::Other => "an instruction",
        })
    }
}

impl fmt::Display for OperandFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General => "an operand",
            Self::Predicate => "a predicate",
            Self::Address => "an address",
        })
    }
}

impl InstrClass {
    fn of(data: &InstrData) -> Self {
        let opcode = data.opcode;
        match opcode.category() {
            Category::Flow if matches!(opcode, Opcode::End | Opcode::Chmask) => Self::End,
            Category::Flow if opcode.is_terminator() && !data.srcs.is_empty() => Self::Branch,
            Category::Flow => Self::Flow,
            Category::Memory if opcode.is_atomic() => Self::Atomic,
            Category::Memory if opcode.has_side_effect() => Self::Store,
            Category::Memory => Self::Load,
            Category::Texture => Self::Texture,
            Category::Move => Self::Move,
            Category::Alu2 if matches!(data.attrs, ir3_compiler::ir3::Attrs::Compare(_)) => Self::Compare,
            Category::Alu2 | Category::Alu3 | Category::Sfu => Self::Arithmetic,
            Category::Meta if opcode == Opcode::Phi => Self::Phi,
            Category::Meta | Category::Barrier => Self::Other,
        }
    }
}

impl OperandFile {
    fn of(class: RegClass) -> Self {
        match class.file {
            RegFile::Predicate => Self::Predicate,
            RegFile::Address => Self::Address,
            RegFile::General | RegFile::Shared => Self::General,
        }
    }
}

/// Lists all changes.
pub(super) fn all(before: &Program, after: &Program, target: &Target) -> BTreeSet<StageChange> {
    let (old, new) = (operands(before, target), operands(after, target));
    let here: BTreeSet<Instr> = after.iter_instrs().map(|(_, instr)| instr).collect();
    let there: BTreeSet<Instr> = before.iter_instrs().map(|(_, instr)| instr).collect();
    let mut changes = BTreeSet::new();
    for &instr in &there {
        let data = &before.instrs[instr];
        if here.contains(&instr) {
            instruction(data, &after.instrs[instr], instr, &old, &new, &mut changes);
        } else if data.opcode.has_side_effect() && !data.opcode.is_meta() {
            changes.insert(StageChange::Missing(InstrClass::of(data)));
        }
    }
    for &instr in here.difference(&there) {
        let data = &after.instrs[instr];
        if data.opcode.has_side_effect() && !data.opcode.is_meta() {
            changes.insert(StageChange::Added(InstrClass::of(data)));
        }
    }
    // The memory instructions of each block that both sides have.
    for &block in &before.layout {
        let touches = |program: &Program, other: &BTreeSet<Instr>| -> Vec<Instr> {
            let Some(data) = program.blocks.get(block) else { return Vec::new() };
            let memory = |i: &Instr| program.instrs[*i].opcode.category() == Category::Memory && other.contains(i);
            data.instrs.iter().copied().filter(memory).collect()
        };
        if touches(before, &here) != touches(after, &there) {
            changes.insert(StageChange::Order);
        }
        if loses_copy(before, after, block, target) {
            changes.insert(StageChange::CopyLost);
        }
    }
    changes
}

fn instruction(
    before: &InstrData,
    after: &InstrData,
    instr: Instr,
    old: &Operands,
    new: &Operands,
    changes: &mut BTreeSet<StageChange>,
) {
    // A phi with another opcode has been lowered to parallel copies in the predecessors.
    if is_copy(after) && after.opcode != Opcode::Phi || is_copy(before) && before.opcode != after.opcode {
        return;
    }
    let class = InstrClass::of(before);
    if before.opcode != after.opcode || before.attrs != after.attrs || before.srcs.len() != after.srcs.len() {
        changes.insert(StageChange::Operation(class));
        return;
    }
    let (expected, actual) = (old.of(instr), new.of(instr));
    let differ = |n: &usize| expected.get(*n) != actual.get(*n);
    let wrong: Vec<usize> = (0..before.srcs.len()).filter(differ).collect();
    for (n, (a, b)) in before.srcs.iter().zip(&after.srcs).enumerate() {
        // If the operands are wrong too, a modifier may have moved with its operand.
        if a.mods != b.mods && !wrong.contains(&n) {
            changes.insert(StageChange::Modifier(class));
        }
    }
    // In SSA form swapped operands are recognised by their names, and by their values if registers have been assigned.
    // (If both sides have the same registers with other values, the operands were not swapped.)
    let moved = |a: usize, b: usize| before.srcs[a].operand == after.srcs[b].operand;
    let holds = |a: usize, b: usize| expected[a] == actual[b] && !moved(a, a);
    if let (Opcode::Phi, [_, _]) = (before.opcode, &before.srcs[..])
        && moved(0, 1)
        && moved(1, 0)
        && !moved(0, 0)
    {
        changes.insert(StageChange::Exchanged(class));
        return;
    }
    if let [a, b] = wrong[..]
        && (moved(a, b) && moved(b, a) || holds(a, b) && holds(b, a))
    {
        changes.insert(StageChange::Exchanged(class));
        return;
    }
    for n in wrong {
        let file = OperandFile::of(after.srcs[n].class);
        for (expected, actual) in expected[n].iter().zip(&actual[n]) {
            let unexpected = actual.difference(expected).map(|root| match root {
                ReachingValue::Torn => StageChange::Torn(file),
                ReachingValue::Undefined => StageChange::Nothing(file),
                ReachingValue::Immediate(_) | ReachingValue::Const(_) | ReachingValue::Result(..) => {
                    StageChange::Another(file)
                }
            });
            changes.extend(unexpected);
            if actual.is_subset(expected) && actual != expected {
                // Some reaching values are missing.
                changes.insert(StageChange::Another(file));
            }
        }
    }
}
