//! Two texts as a boundary.
//!
//! A text may be a fragment: it reads registers before it writes them. These are inputs, the same on both sides: an `_meta:in` of an attribute
//! that no shader has is added for each ([`TextPair::inputs`] names them). So a difference in them is one of the programs, and no undefined
//! value hides it. They are the general registers that nothing in the program writes, and those that are read before they are written on every
//! path: a backward dataflow analysis over sets of [register units](RegisterSet), with `exposed-in = reads before writes ∪ (exposed-out − writes)`
//! and the intersection over successors. What only some paths write stays undefined on the others. Of other files (shared registers,
//! predicates, addresses) a value that nothing writes makes the pair *unknown*.
//!
//! A text is final code if something in it waits: `nop`, `(nop1)`, `(ss)`, `(sy)`. (Barriers have their flags from selection on.) If one of the two
//! is, the program after has to wait for its results.

use super::NotShown;
use super::boundary::{Boundary, BoundaryKind};
use crate::semantics::Snapshot;
use ir3_compiler::ir3::register_set::RegisterSet;
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, InputKind, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, Program, RegClass,
    RegFile, WriteMask,
};
use ir3_compiler::target::Target;
use std::collections::{BTreeMap, BTreeSet};

/// The attribute that the first vector register of a fragment is.
const FIRST_ATTRIBUTE: u16 = 1000;

/// Two programs that were read from texts.
pub struct TextPair {
    /// The program before.
    pub before: Snapshot,
    /// The program after.
    pub after: Snapshot,
    /// The registers that are inputs of both programs.
    pub inputs: Vec<String>,
    /// The kind of the boundary.
    pub kind: BoundaryKind,
    /// A value that cannot be an input, and that nothing writes.
    unwritten: Option<&'static str>,
}

impl TextPair {
    /// Completes two programs.
    pub fn new(mut before: Snapshot, mut after: Snapshot, target: &Target) -> Self {
        let mut inputs = BTreeSet::new();
        let mut unwritten = None;
        for side in [&mut before, &mut after] {
            if let Snapshot::Ir3(program) = side {
                let reads = UnwrittenReads::of(program, target);
                add_inputs(program, &reads.registers);
                inputs.extend(reads.registers);
                unwritten = unwritten.or(reads.other);
            }
        }
        let is_final = |side: &Snapshot| side.as_ir3().is_some_and(waits);
        let is_machine = after.as_ir3().is_some_and(|program| Form::of(program) == Form::Machine);
        let kind = match is_machine && (is_final(&before) || is_final(&after)) {
            true => BoundaryKind::Final,
            false => BoundaryKind::Computes,
        };
        Self { before, after, inputs: inputs.iter().map(Register::name).collect(), kind, unwritten }
    }

    /// The boundary between them.
    pub fn boundary(&self) -> Boundary<'_> {
        Boundary { kind: self.kind, ..Boundary::of_texts((&self.before).into(), (&self.after).into()) }
    }

    /// The reason why a pass shows nothing: a value that nothing writes may be any.
    pub fn open_value(&self) -> Option<NotShown> {
        self.unwritten.map(|what| NotShown::Rule(format!("it reads {what} that nothing writes")))
    }
}

/// Returns true if a program has an instruction that waits.
fn waits(program: &Program) -> bool {
    Form::of(program) == Form::Machine
        && program.iter_instrs().any(|(_, instr)| {
            let data = &program.instrs[instr];
            let has_flags = data.flags.intersects(InstrFlags::SS | InstrFlags::SY) && data.opcode != Opcode::Bar;
            data.opcode == Opcode::Nop || data.nop > 0 || has_flags
        })
}

/// A general register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Register {
    half: bool,
    number: u16,
}

impl Register {
    fn name(&self) -> String {
        let Self { half, number } = *self;
        format!("{}r{}.{}", if half { "h" } else { "" }, number / 4, ['x', 'y', 'z', 'w'][usize::from(number % 4)])
    }

    fn class(&self) -> RegClass {
        RegClass { file: RegFile::General, half: self.half }
    }

    /// All general registers, by the unit in which each starts. Halves of a merged file are parts of full registers.
    fn by_unit(target: &Target) -> BTreeMap<usize, Self> {
        let empty = Program::default();
        let halves = if target.merged_regs { 0 } else { 192 };
        let all = (0..192).map(|number| Self { half: false, number });
        let all = all.chain((0..halves).map(|number| Self { half: true, number }));
        all.flat_map(|register| {
            let place = Place::Reg(PhysReg(register.number));
            let set = RegisterSet::of(&empty, target, &place, register.class(), WriteMask(1));
            set.units().map(move |unit| (unit, register)).collect::<Vec<_>>()
        })
        .collect()
    }
}

/// The values that a program with registers reads and nothing has written.
#[derive(Default)]
struct UnwrittenReads {
    registers: BTreeSet<Register>,
    /// A value of another file.
    other: Option<&'static str>,
}

impl UnwrittenReads {
    fn of(program: &Program, target: &Target) -> Self {
        if Form::of(program) == Form::Ssa || program.layout.is_empty() {
            return Self::default();
        }
        let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
        for (_, instr) in program.iter_instrs() {
            let [reads, writes] = RegisterSet::of_instr(program, target, &program.instrs[instr]);
            read.extend(reads.units());
            written.extend(writes.units());
        }
        let mut unwritten: BTreeSet<usize> = read.difference(&written).copied().collect();
        unwritten.extend(exposed(program, target));
        let registers = Register::by_unit(target);
        // Of a register that an input or another instruction writes in part, the rest stays undefined.
        let is_whole = |register: &Register| {
            registers
                .iter()
                .filter(|(_, other)| *other == register)
                .all(|(unit, _)| unwritten.contains(unit) || !written.contains(unit))
        };
        let found: BTreeSet<Register> = unwritten.iter().filter_map(|unit| registers.get(unit).copied()).collect();
        let has_other = unwritten.iter().any(|unit| !registers.contains_key(unit));
        let other = has_other.then_some("a shared register, predicate or address");
        Self { registers: found.into_iter().filter(is_whole).collect(), other }
    }
}

/// The register units that are read before they are written on every path from the start.
fn exposed(program: &Program, target: &Target) -> BTreeSet<usize> {
    // Blocks that have not been visited have all units, the greatest element.
    let mut at_start: BTreeMap<Block, BTreeSet<usize>> = BTreeMap::new();
    loop {
        let mut has_changed = false;
        for &block in program.layout.iter().rev() {
            let successors = program.blocks[block].successors().filter_map(|next| at_start.get(&next));
            let mut units =
                successors.cloned().reduce(|a, b| a.intersection(&b).copied().collect()).unwrap_or_default();
            for &instr in program.blocks[block].instrs.iter().rev() {
                let [reads, writes] = RegisterSet::of_instr(program, target, &program.instrs[instr]);
                writes.units().for_each(|unit| {
                    units.remove(&unit);
                });
                units.extend(reads.units());
            }
            has_changed |= at_start.get(&block) != Some(&units);
            at_start.insert(block, units);
        }
        if !has_changed {
            return at_start.remove(&program.layout[0]).unwrap_or_default();
        }
    }
}

fn add_inputs(program: &mut Program, registers: &BTreeSet<Register>) {
    let Some(&entry) = program.layout.first() else { return };
    for register in registers.iter().rev() {
        let &Register { half, number } = register;
        let base = FIRST_ATTRIBUTE + number / 4 + if half { 48 } else { 0 };
        let input = InputKind::Attribute { base, component: (number % 4) as u8 };
        let place = Place::Reg(PhysReg(number));
        let dst = Dst { place, class: register.class(), mask: WriteMask(1), flags: OperandFlags::empty() };
        let attrs = Attrs::Input(Some(input));
        let data = InstrData { dsts: [dst].into_iter().collect(), attrs, ..InstrData::new(Opcode::Input) };
        let instr = program.instrs.push(data);
        program.blocks[entry].instrs.insert(0, instr);
    }
}
