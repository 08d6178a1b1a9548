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
//! A fragment may have no result: no output and no access that is observed. Then its results are compared at the end
//! ([`TextPair::results`] names them):
//!
//! - of SSA form, the values that nothing in it reads, in the order of the text;
//! - of registers, all general registers that either text writes. A text does not say which of them are read after it.
//!   So a difference refutes the pair only if it is in registers that both texts write last and do not read; a
//!   difference in the others makes it *unknown* ([`TextPair::judge`]). A predicate, shared or address register that a
//!   text writes and does not read makes it unknown, too, as it cannot be an output.
//!
//! A text is final code if something in it waits: `nop`, `(nop1)`, `(ss)`, `(sy)`. (Barriers have their flags from
//! selection on.) If one of the two is, the program after has to wait for its results.

use super::boundary::{Boundary, BoundaryKind};
use super::judge::Judgment;
use super::{Engines, Judge, NotShown, Policy, ProgramInputs, Search, Smt, Unknown, Verdict};
use ir3_compiler::ir3::register_set::RegisterSet;
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, InputKind, Instr, InstrData, InstrFlags, Opcode, OperandFlags, Output, PhysReg, Place, Program,
    RegClass, RegFile, Src, Value, WriteMask,
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
    /// The programs with those results alone that are certain to be results, if there are others.
    certain: Option<[Snapshot; 2]>,
    /// The results that may be read after the texts, or not.
    uncertain: Vec<String>,
    /// The kind of the boundary.
    pub kind: BoundaryKind,
    /// The reason why a pass shows nothing.
    open: Option<String>,
}

impl TextPair {
    /// Completes two programs.
    pub fn new(mut before: Snapshot, mut after: Snapshot, target: &Target) -> Self {
        let mut inputs = BTreeSet::new();
        let mut open = None;
        for side in [&mut before, &mut after] {
            if let Snapshot::Ir3(program) = side {
                let reads = UnwrittenReads::of(program, target);
                add_inputs(program, &reads.registers);
                inputs.extend(reads.registers);
                open = open.or(reads.other.map(|what| format!("it reads {what} that no instruction writes")));
            }
        }
        let added = match (&mut before, &mut after) {
            (Snapshot::Ir3(before), Snapshot::Ir3(after)) => add_results(before, after, target),
            _ => AddedResults::default(),
        };
        let AddedResults { names: results, certain, uncertain, uncompared } = added;
        open = open.or(uncompared);
        let is_final = |side: &Snapshot| side.as_ir3().is_some_and(waits);
        let is_machine = after.as_ir3().is_some_and(|program| Form::of(program) == Form::Machine);
        let kind = match is_machine && (is_final(&before) || is_final(&after)) {
            true => BoundaryKind::Final,
            false => BoundaryKind::Computes,
        };
        let inputs = inputs.iter().map(Register::name).collect();
        Self { before, after, inputs, results, certain, uncertain, kind, open }
    }

    /// Judges the boundary between them by `judge`. A pass counts only if `open` returns no reason against it.
    pub fn judge(
        &self,
        judge: &mut dyn FnMut(&Boundary<'_>) -> Judgment,
        open: impl Fn() -> Option<NotShown>,
    ) -> Judgment {
        let open = || self.open.clone().map(NotShown::Piece).or_else(&open);
        let mut of = |[before, after]: [&Snapshot; 2]| {
            let boundary = Boundary::of_texts(before.into(), after.into());
            judge(&Boundary { kind: self.kind, condition: Some(&open), ..boundary })
        };
        let judgment = of([&self.before, &self.after]);
        if !judgment.verdict.is_refuted() || self.uncertain.is_empty() {
            return judgment;
        }
        let certain = self.certain.as_ref().map(|[before, after]| of([before, after]));
        if let Some(certain) = certain.filter(|certain| certain.verdict.is_refuted()) {
            return certain;
        }
        let registers = self.uncertain.join(", ");
        let why = format!(
            "the texts differ in a register at their end, and do not say if it is read after them: {registers}"
        );
        Judgment { verdict: Verdict::Unknown(Unknown::NotShown(NotShown::Piece(why))), ..judgment }
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
    let mut scratch = Scratch::default();
    let mut judge = Judge::new(policy, *target, &envs, &mut scratch);
    pair.judge(&mut |boundary| judge.judge(boundary), || None).verdict
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

    /// Its units.
    fn units(&self, target: &Target) -> RegisterSet {
        let place = Place::Reg(PhysReg(self.number));
        RegisterSet::of(&Program::default(), target, &place, self.class(), WriteMask(1))
    }

    /// A source that reads it.
    fn src(&self) -> Src {
        Src::reg(Place::Reg(PhysReg(self.number)), self.class(), WriteMask(1))
    }

    /// The general registers that consist of some units, the largest ones, and the units of other files.
    fn covering(units: &BTreeSet<usize>, target: &Target) -> (Vec<Self>, Vec<usize>) {
        let mut left = units.clone();
        let mut found = Vec::new();
        for half in [false, true] {
            for register in (0..192).map(|number| Self { half, number }) {
                let its: Vec<usize> = register.units(target).units().collect();
                if its.iter().all(|unit| left.contains(unit)) {
                    its.iter().for_each(|unit| _ = left.remove(unit));
                    found.push(register);
                }
            }
        }
        (found, left.into_iter().collect())
    }

    /// All general registers, by the unit in which each starts. Halves of a merged file are parts of full registers.
    fn by_unit(target: &Target) -> BTreeMap<usize, Self> {
        let halves = if target.merged_regs { 0 } else { 192 };
        let all = (0..192).map(|number| Self { half: false, number });
        let all = all.chain((0..halves).map(|number| Self { half: true, number }));
        all.flat_map(|register| register.units(target).units().map(move |unit| (unit, register)).collect::<Vec<_>>())
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
        let results = results(program, target);
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

/// The instructions of a program of one block, in order; `None` if it has several.
fn only_block(program: &Program) -> Option<Vec<&InstrData>> {
    // The end may have a block of its own.
    let is_end = |instr: &Instr| matches!(program.instrs[*instr].opcode, Opcode::End | Opcode::Jump);
    let blocks = program.layout.iter().filter(|&&block| !program.blocks[block].instrs.iter().all(is_end));
    (blocks.count() <= 1).then(|| program.iter_instrs().map(|(_, instr)| &program.instrs[instr]).collect())
}

/// The values that nothing in a program of one block reads or overwrites later, with their names.
fn results(program: &Program, target: &Target) -> Vec<(String, Src)> {
    let Some(instrs) = only_block(program) else { return Vec::new() };
    let sets: Vec<_> = instrs.iter().map(|data| RegisterSet::of_instr(program, target, data)).collect();
    let is_read = |from: usize, value: Value| {
        instrs[from..].iter().any(|data| data.srcs.iter().any(|src| src.place().and_then(Place::value) == Some(value)))
    };
    let mut found = Vec::new();
    for (at, data) in instrs.iter().enumerate().filter(|(_, data)| data.opcode != Opcode::Input) {
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::General) {
            match dst.place {
                Place::Reg(first) if first != PhysReg::INVALID => {
                    let count = (u16::from(data.repeat) + 1).max(dst.mask.span() as u16);
                    for number in first.0..first.0 + count {
                        let register = Register { half: dst.class.half, number };
                        let units = register.units(target);
                        if !sets[at + 1..].iter().any(|[reads, writes]| reads.meets(&units) || writes.meets(&units)) {
                            found.push((register.name(), register.src()));
                        }
                    }
                }
                Place::Value(value) if !is_read(at + 1, value) => {
                    let serial = program.serials[program.values[value].instr];
                    found.push((format!("ssa_{serial}"), Src::reg(dst.place, dst.class, dst.mask)));
                }
                _ => {}
            }
        }
    }
    found
}

/// The units of registers that a program of one block writes; `None` if it has several blocks.
fn written(program: &Program, target: &Target) -> Option<BTreeSet<usize>> {
    let instrs = only_block(program)?;
    let mut all = RegisterSet::EMPTY;
    for data in instrs.iter().filter(|data| data.opcode != Opcode::Input) {
        all.add(&RegisterSet::of_instr(program, target, data)[1]);
    }
    Some(all.units().collect())
}

/// Returns true if a program of one block writes a unit, and reads it at no later place.
fn is_left(program: &Program, target: &Target, unit: usize) -> bool {
    let has = |set: &RegisterSet| set.units().any(|other| other == unit);
    let sets = program.iter_instrs().map(|(_, instr)| RegisterSet::of_instr(program, target, &program.instrs[instr]));
    sets.fold(false, |is_left, [reads, writes]| has(&writes) || is_left && !has(&reads))
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

/// The results that were added to two fragments.
#[derive(Default)]
struct AddedResults {
    /// Their names.
    names: Vec<String>,
    /// The programs with the certain results alone, if there are such, and others.
    certain: Option<[Snapshot; 2]>,
    /// The names of those that may be no results.
    uncertain: Vec<String>,
    /// A difference that is not compared.
    uncompared: Option<String>,
}

/// Makes results of the values that two fragments leave at their ends.
fn add_results(before: &mut Program, after: &mut Program, target: &Target) -> AddedResults {
    if !is_without_result(before) || !is_without_result(after) {
        return AddedResults::default();
    }
    let (first, second) = (results(before, target), results(after, target));
    let is_ssa = |program: &Program| Form::of(program) == Form::Ssa;
    if is_ssa(before) || is_ssa(after) {
        if first.len() != second.len() {
            return AddedResults::default();
        }
        let names = first.iter().map(|(name, _)| name.clone()).collect();
        set_outputs(before, first.into_iter().map(|(_, src)| src));
        set_outputs(after, second.into_iter().map(|(_, src)| src));
        return AddedResults { names, ..AddedResults::default() };
    }
    let (Some(of_before), Some(of_after)) = (written(before, target), written(after, target)) else {
        return AddedResults::default();
    };
    let units: BTreeSet<usize> = of_before.union(&of_after).copied().collect();
    let (registers, others) = Register::covering(&units, target);
    // If a register of one is missing in the other, that may have it elsewhere, and none is certain.
    let names = |list: &[(String, Src)]| list.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
    let certain = if names(&first) == names(&second) { first } else { Vec::new() };
    let known = names(&certain);
    let uncertain: Vec<String> =
        registers.iter().map(Register::name).filter(|register| !known.contains(register)).collect();
    // A register that one of them does not write has the value from before the texts.
    let inputs = Register::by_unit(target);
    for (program, written) in [(&mut *before, &of_before), (&mut *after, &of_after)] {
        let is_input = |data: &InstrData| data.opcode == Opcode::Input;
        let declared = program.iter_instrs().map(|(_, instr)| &program.instrs[instr]).filter(|data| is_input(data));
        let declared: BTreeSet<usize> = declared
            .flat_map(|data| RegisterSet::of_instr(program, target, data)[1].units().collect::<Vec<_>>())
            .collect();
        let missing = units.difference(written).filter(|unit| !declared.contains(unit));
        add_inputs(program, &missing.filter_map(|unit| inputs.get(unit).copied()).collect());
    }
    let mut both = [&mut *before, &mut *after];
    let certain = (!certain.is_empty() && !uncertain.is_empty()).then(|| {
        both.each_mut().map(|program| {
            let mut program = program.clone();
            set_outputs(&mut program, certain.iter().map(|(_, src)| *src));
            Snapshot::Ir3(Box::new(program))
        })
    });
    both.iter_mut().for_each(|program| set_outputs(program, registers.iter().map(Register::src)));
    let is_uncompared = |unit: &usize| both.iter().any(|program| is_left(program, target, *unit));
    let uncompared = others.iter().any(is_uncompared).then(|| {
        "the texts end with a predicate, shared or address register that they do not read, which is not compared".into()
    });
    AddedResults { names: registers.iter().map(Register::name).collect(), certain, uncertain, uncompared }
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
