//! Two texts as a boundary.
//!
//! A text may be a fragment: it reads registers that it never writes. These are inputs, the same on both sides: an `_meta:in` of an attribute
//! that no shader has is added for each ([`TextPair::inputs`] names them). So a difference in them is one of the programs, and no undefined
//! value hides it. They are the registers that are live at the start: a backward dataflow analysis over sets of
//! [register units](RegisterSet), with `live-in = reads before writes ∪ (live-out − writes)`.
//!
//! A text is final code if something in it waits: `nop`, `(nop1)`, `(ss)`, `(sy)`. Then the program after has to wait for its results.

use super::boundary::{Boundary, BoundaryKind};
use crate::semantics::Snapshot;
use ir3_compiler::ir3::register_set::RegisterSet;
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::ir3::{
    Attrs, Dst, InputKind, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile,
    WriteMask,
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
}

impl TextPair {
    /// Completes two programs.
    pub fn new(mut before: Snapshot, mut after: Snapshot, target: &Target) -> Self {
        let mut inputs = Vec::new();
        if let (Snapshot::Ir3(first), Snapshot::Ir3(second)) = (&mut before, &mut after) {
            let registers: BTreeSet<Register> =
                [&**first, &**second].into_iter().flat_map(|program| live_in(program, target)).collect();
            for program in [first, second] {
                add_inputs(program, &registers);
            }
            inputs = registers.iter().map(Register::name).collect();
        }
        let kind = match &after {
            Snapshot::Ir3(program) if waits(program) => BoundaryKind::Final,
            _ => BoundaryKind::Computes,
        };
        Self { before, after, inputs, kind }
    }

    /// The boundary between them.
    pub fn boundary(&self) -> Boundary<'_> {
        Boundary { kind: self.kind, ..Boundary::of_texts((&self.before).into(), (&self.after).into()) }
    }
}

/// Returns true if a program has an instruction that waits.
fn waits(program: &Program) -> bool {
    Form::of(program) == Form::Machine
        && program.iter_instrs().any(|(_, instr)| {
            let data = &program.instrs[instr];
            data.opcode == Opcode::Nop || data.nop > 0 || data.flags.intersects(InstrFlags::SS | InstrFlags::SY)
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

/// The general registers that are live at the start of a program with registers.
fn live_in(program: &Program, target: &Target) -> BTreeSet<Register> {
    if Form::of(program) == Form::Ssa || program.layout.is_empty() {
        return BTreeSet::new();
    }
    let mut live: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
    loop {
        let mut has_changed = false;
        for &block in program.layout.iter().rev() {
            let successors = program.blocks[block].successors();
            let mut units: BTreeSet<usize> = successors.filter_map(|next| live.get(&next)).flatten().copied().collect();
            for &instr in program.blocks[block].instrs.iter().rev() {
                let data = &program.instrs[instr];
                let [reads, writes] = RegisterSet::of_instr(program, target, data);
                // An access relative to an address may write any element: the others stay live.
                if !data.dsts.iter().any(|dst| dst.place.is_relative()) {
                    writes.units().for_each(|unit| {
                        units.remove(&unit);
                    });
                }
                units.extend(reads.units());
            }
            has_changed |= live.get(&block) != Some(&units);
            live.insert(block, units);
        }
        if !has_changed {
            break;
        }
    }
    let registers = Register::by_unit(target);
    live[&program.layout[0]].iter().filter_map(|unit| registers.get(unit).copied()).collect()
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
