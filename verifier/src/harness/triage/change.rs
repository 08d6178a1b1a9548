//! In which respect two ir3 programs differ that a stage made one from the other.
//!
//! All that differs is listed, and what says most is taken: an effect that is gone says more than an operand that is
//! another one behind it. What is said does not name values, registers, numbers or constants.

use std::collections::BTreeSet;
use std::fmt;

use ir3_compiler::ir3::{Category, Instr, InstrData, Opcode, Program, RegClass, RegFile};
use ir3_compiler::target::Target;

use super::contents::{Operands, Root, is_copy, loses_copy, operands};

/// Something that differs; what says more comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// An instruction with an effect is gone.
    Missing(Sort),
    /// Instructions with effects, or that see them, have changed places.
    Order,
    /// A copy into a register is gone.
    CopyLost,
    /// An instruction does something else.
    Operation(Sort),
    /// It takes the same operand in another way.
    Modifier(Sort),
    /// Its operands have changed places.
    Exchanged(Sort),
    /// An operand has parts of two values.
    Torn(File),
    /// An operand has another value.
    Another(File),
    /// An operand has no value.
    Nothing(File),
    /// An instruction with an effect is there that was not.
    Added(Sort),
}

/// What an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
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

/// The file of an operand. How wide it is does not matter: most of what goes wrong does so with both widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum File {
    General,
    Predicate,
    Address,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(sort) => write!(f, "{sort} lost"),
            Self::CopyLost => f.write_str("a copy lost"),
            Self::Order => f.write_str("effects in another order"),
            Self::Operation(sort) => write!(f, "{sort} does something else"),
            Self::Modifier(sort) => write!(f, "{sort} with another modifier"),
            Self::Exchanged(sort) => write!(f, "operands of {sort} exchanged"),
            Self::Torn(file) => write!(f, "{file} has parts of two values"),
            Self::Another(file) => write!(f, "{file} has another value"),
            Self::Nothing(file) => write!(f, "{file} has no value"),
            Self::Added(sort) => write!(f, "{sort} added"),
        }
    }
}

impl fmt::Display for Sort {
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

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General => "an operand",
            Self::Predicate => "a predicate",
            Self::Address => "an address",
        })
    }
}

impl Sort {
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

impl File {
    fn of(class: RegClass) -> Self {
        match class.file {
            RegFile::Predicate => Self::Predicate,
            RegFile::Address => Self::Address,
            RegFile::General | RegFile::Shared => Self::General,
        }
    }
}

/// All that differs.
pub(super) fn all(before: &Program, after: &Program, target: &Target) -> BTreeSet<Change> {
    let (old, new) = (operands(before, target), operands(after, target));
    let here: BTreeSet<Instr> = after.iter_instrs().map(|(_, instr)| instr).collect();
    let there: BTreeSet<Instr> = before.iter_instrs().map(|(_, instr)| instr).collect();
    let mut changes = BTreeSet::new();
    for &instr in &there {
        let data = &before.instrs[instr];
        if here.contains(&instr) {
            instruction(data, &after.instrs[instr], instr, &old, &new, &mut changes);
        } else if data.opcode.has_side_effect() && !data.opcode.is_meta() {
            changes.insert(Change::Missing(Sort::of(data)));
        }
    }
    for &instr in here.difference(&there) {
        let data = &after.instrs[instr];
        if data.opcode.has_side_effect() && !data.opcode.is_meta() {
            changes.insert(Change::Added(Sort::of(data)));
        }
    }
    // What touches memory, block by block, as far as it is on both sides.
    for &block in &before.layout {
        let touches = |program: &Program, other: &BTreeSet<Instr>| -> Vec<Instr> {
            let Some(data) = program.blocks.get(block) else { return Vec::new() };
            let memory = |i: &Instr| program.instrs[*i].opcode.category() == Category::Memory && other.contains(i);
            data.instrs.iter().copied().filter(memory).collect()
        };
        if touches(before, &here) != touches(after, &there) {
            changes.insert(Change::Order);
        }
        if loses_copy(before, after, block, target) {
            changes.insert(Change::CopyLost);
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
    changes: &mut BTreeSet<Change>,
) {
    // A phi that has become something else is the parallel copies before it.
    if is_copy(after) && after.opcode != Opcode::Phi || is_copy(before) && before.opcode != after.opcode {
        return;
    }
    let sort = Sort::of(before);
    if before.opcode != after.opcode || before.attrs != after.attrs || before.srcs.len() != after.srcs.len() {
        changes.insert(Change::Operation(sort));
        return;
    }
    let (expected, actual) = (old.of(instr), new.of(instr));
    let differ = |n: &usize| expected.get(*n) != actual.get(*n);
    let wrong: Vec<usize> = (0..before.srcs.len()).filter(differ).collect();
    for (n, (a, b)) in before.srcs.iter().zip(&after.srcs).enumerate() {
        // Where the operand is another one too, a modifier may have moved from one to the other.
        if a.mods != b.mods && !wrong.contains(&n) {
            changes.insert(Change::Modifier(sort));
        }
    }
    // Operands that have changed places tell by their names in SSA form, and by what they hold where these have got
    // registers. (Registers on both sides that hold something else have not changed places.)
    let moved = |a: usize, b: usize| before.srcs[a].operand == after.srcs[b].operand;
    let holds = |a: usize, b: usize| expected[a] == actual[b] && !moved(a, a);
    if let (Opcode::Phi, [_, _]) = (before.opcode, &before.srcs[..])
        && moved(0, 1)
        && moved(1, 0)
        && !moved(0, 0)
    {
        changes.insert(Change::Exchanged(sort));
        return;
    }
    if let [a, b] = wrong[..]
        && (moved(a, b) && moved(b, a) || holds(a, b) && holds(b, a))
    {
        changes.insert(Change::Exchanged(sort));
        return;
    }
    for n in wrong {
        let file = File::of(after.srcs[n].class);
        for (expected, actual) in expected[n].iter().zip(&actual[n]) {
            let unexpected = actual.difference(expected).map(|root| match root {
                Root::Torn => Change::Torn(file),
                Root::Undefined => Change::Nothing(file),
                Root::Immediate(_) | Root::Const(_) | Root::Result(..) => Change::Another(file),
            });
            changes.extend(unexpected);
            if actual.is_subset(expected) && actual != expected {
                // What should come over some paths does not.
                changes.insert(Change::Another(file));
            }
        }
    }
}
