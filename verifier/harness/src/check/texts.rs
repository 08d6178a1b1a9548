//! Two texts as a boundary.
//!
//! A text may be a fragment: it reads registers before it writes them. These are inputs, the same on both sides: an
//! `_meta:in` of an attribute that no shader has is added for each ([`TextPair::inputs`] names them). So a difference
//! in them is one of the programs, and no undefined value hides it. They are the general registers that nothing in the
//! program writes, and those that are read before they are written on every path: a backward dataflow analysis over
//! sets of [register units](RegisterSet), with `exposed-in = reads before writes ∪ (exposed-out − writes)` and the
//! intersection over successors. A register that only some paths write stays undefined on the others. In other files
//! (shared registers, predicates, addresses) a value that nothing writes makes the pair *unknown*.
//!
//! A fragment may have no result: no output and no access that is observed. Then its results are the values that
//! nothing in it reads: of SSA form in the order of the text, of registers those that the program before writes last,
//! if all of them are also such of the program after ([`TextPair::results`] names them).
//!
//! A text is final code if something in it waits: `nop`, `(nop1)`, `(ss)`, `(sy)`. (Barriers have their flags from
//! selection on.) If one of the two is, the program after has to wait for its results.

use super::boundary::{Boundary, BoundaryKind};
use super::{Engines, Judge, NotShown, Policy, ProgramInputs, Search, Smt, Verdict};
use ir3_compiler::ir3::register_set::RegisterSet;
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, InputKind, Instr, InstrData, InstrFlags, Opcode, OperandFlags, Output, PhysReg, Place, Program,
    RegClass, RegFile, Src, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_programs::seeds::env_seeds;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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
    /// The values of fragments without a result that are compared at the end.
    pub results: Vec<String>,
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
        let results = match (&mut before, &mut after) {
            (Snapshot::Ir3(before), Snapshot::Ir3(after)) => add_results(before, after),
            _ => Vec::new(),
        };
        let is_final = |side: &Snapshot| side.as_ir3().is_some_and(waits);
        let is_machine = after.as_ir3().is_some_and(|program| Form::of(program) == Form::Machine);
        let kind = match is_machine && (is_final(&before) || is_final(&after)) {
            true => BoundaryKind::Final,
            false => BoundaryKind::Computes,
        };
        Self { before, after, inputs: inputs.iter().map(Register::name).collect(), results, kind, unwritten }
    }

    /// The boundary between them.
    pub fn boundary(&self) -> Boundary<'_> {
        Boundary { kind: self.kind, ..Boundary::of_texts((&self.before).into(), (&self.after).into()) }
    }

    /// The reason why a pass shows nothing: a value that nothing writes may be any.
    pub fn open_value(&self) -> Option<NotShown> {
        self.unwritten.map(|what| NotShown::Rule(format!("it reads {what} that no instruction writes")))
    }
}

/// The environments that [`compare`] starts from, and the CPU time after which it adds none.
const RUNS: usize = 16;
const SEARCH: Duration = Duration::from_millis(500);

/// Compares two programs by all engines, as `ir3-equiv check` does: a proof for all inputs, an input on which they
/// differ, or the number of lanes that agreed. Pieces of programs are completed: registers that both read and do not
/// write are inputs.
#[must_use]
pub fn compare(before: &Snapshot, after: &Snapshot, target: &Target) -> Verdict {
    let pair = TextPair::new(before.clone(), after.clone(), target);
    let inputs = pair.before.as_nir().map(|shader| ProgramInputs::with_boolean_words(shader, 1));
    let envs: Vec<Env> = env_seeds(1, RUNS as u32).into_iter().map(Env::from_seed).collect();
    let engines = Engines::all(Smt::default());
    let base = Policy::new(&engines);
    let search = Search { inputs: inputs.as_ref(), runs: RUNS, most_runs: 8 * RUNS, limit: SEARCH, fuel: base.fuel };
    let policy = Policy { runs_proved: true, ..base.with_search(search) };
    let open_value = || pair.open_value();
    let boundary = Boundary { condition: Some(&open_value), ..pair.boundary() };
    Judge::new(policy, *target, &envs, &mut Scratch::default()).judge(&boundary).verdict
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
        // A register that an input or another instruction writes in part stays undefined in the rest.
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

/// Completes a program that is read alone. Returns the added items.
pub fn complete(program: &mut Program, target: &Target) -> Vec<String> {
    let mut taken = Vec::new();
    let has_inputs = program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Input);
    if !has_inputs {
        let UnwrittenReads { registers, .. } = UnwrittenReads::of(program, target);
        add_inputs(program, &registers);
        if !registers.is_empty() {
            let names: Vec<String> = registers.iter().map(Register::name).collect();
            taken.push(format!("the inputs {}", names.join(", ")));
        }
    }
    if is_without_result(program) {
        let results = results(program);
        if !results.is_empty() {
            let names: Vec<String> = results.iter().map(|(name, ..)| name.clone()).collect();
            set_outputs(program, results.into_iter().map(|(_, src)| src));
            taken.push(format!("the outputs {}", names.join(", ")));
        }
    }
    taken
}

/// Returns true if nothing of a program is observed.
fn is_without_result(program: &Program) -> bool {
    let has_effect = |data: &InstrData| match data.opcode {
        Opcode::End | Opcode::Chmask => !data.srcs.is_empty(),
        opcode => opcode.has_side_effect() && !opcode.is_terminator() && opcode != Opcode::Input,
    };
    program.outputs.is_empty() && !program.iter_instrs().any(|(_, instr)| has_effect(&program.instrs[instr]))
}

/// The values that nothing in a program of one block reads, with their names.
fn results(program: &Program) -> Vec<(String, Src)> {
    // The end may have a block of its own.
    let is_end = |instr: &Instr| matches!(program.instrs[*instr].opcode, Opcode::End | Opcode::Jump);
    let blocks = program.layout.iter().filter(|&&block| !program.blocks[block].instrs.iter().all(is_end));
    if blocks.count() > 1 {
        return Vec::new();
    }
    let instrs: Vec<&InstrData> = program.iter_instrs().map(|(_, instr)| &program.instrs[instr]).collect();
    let reads = |from: usize, place: &Place| {
        instrs[from..].iter().any(|data| {
            data.srcs.iter().any(|src| match (src.place(), place) {
                (Some(Place::Reg(first)), Place::Reg(register)) => {
                    let count = (u16::from(data.repeat) + 1).max(src.mask.span() as u16);
                    (first.0..first.0 + count).contains(&register.0)
                }
                (Some(read), place) => read.value().is_some() && read.value() == place.value(),
                _ => false,
            })
        })
    };
    let writes = |from: usize, register: PhysReg| {
        instrs[from..].iter().any(|data| {
            data.dsts.iter().any(|dst| match dst.place {
                Place::Reg(first) => {
                    let count = (u16::from(data.repeat) + 1).max(dst.mask.span() as u16);
                    (first.0..first.0 + count).contains(&register.0)
                }
                _ => false,
            })
        })
    };
    let mut found = Vec::new();
    for (at, data) in instrs.iter().enumerate().filter(|(_, data)| data.opcode != Opcode::Input) {
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::General) {
            match dst.place {
                Place::Reg(first) if first != PhysReg::INVALID => {
                    let count = (u16::from(data.repeat) + 1).max(dst.mask.span() as u16);
                    for register in (first.0..first.0 + count).map(PhysReg) {
                        let place = Place::Reg(register);
                        if !reads(at + 1, &place) && !writes(at + 1, register) {
                            let name = Register { half: dst.class.half, number: register.0 }.name();
                            found.push((name, Src::reg(place, dst.class, WriteMask(1))));
                        }
                    }
                }
                Place::Value(value) if !reads(at + 1, &dst.place) => {
                    let serial = program.serials[program.values[value].instr];
                    found.push((format!("ssa_{serial}"), Src::reg(dst.place, dst.class, dst.mask)));
                }
                _ => {}
            }
        }
    }
    found
}

/// Makes sources of the only end outputs.
fn set_outputs(program: &mut Program, srcs: impl Iterator<Item = Src>) {
    let end = program.iter_instrs().map(|(_, instr)| instr).find(|&instr| program.instrs[instr].opcode == Opcode::End);
    let Some(end) = end else { return };
    let srcs: Vec<Src> = srcs.collect();
    let count = srcs.len() as u16;
    program.outputs = (0..count).map(|index| Output { base: FIRST_ATTRIBUTE + index, component: 0 }).collect();
    program.instrs[end].attrs = Attrs::Outputs((0..count).collect());
    program.instrs[end].srcs = srcs.into_iter().collect();
}

/// Compares the registers at the end that neither of two fragments reads. Returns the names.
fn add_results(before: &mut Program, after: &mut Program) -> Vec<String> {
    if !is_without_result(before) || !is_without_result(after) {
        return Vec::new();
    }
    let (first, second) = (results(before), results(after));
    let is_ssa = |program: &Program| Form::of(program) == Form::Ssa;
    let pairs: Vec<(String, [Src; 2])> = if is_ssa(before) || is_ssa(after) {
        if first.len() != second.len() {
            return Vec::new();
        }
        first.into_iter().zip(second).map(|((name, before), (_, after))| (name, [before, after])).collect()
    } else {
        // If one of them is missing, the program after may have it elsewhere, and nothing is compared.
        let same = |name: &String| second.iter().find(|(its, _)| its == name).map(|(_, src)| *src);
        let all = first.into_iter().map(|(name, src)| same(&name).map(|other| (name, [src, other])));
        all.collect::<Option<Vec<_>>>().unwrap_or_default()
    };
    set_outputs(before, pairs.iter().map(|(_, [src, _])| *src));
    set_outputs(after, pairs.iter().map(|(_, [_, src])| *src));
    pairs.into_iter().map(|(name, _)| name).collect()
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
