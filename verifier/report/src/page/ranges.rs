//! Live ranges of values in registers.
//!
//! A register is live where its value may still be read. Its content has a name: the SSA value that the instruction
//! defines in the program before allocation, carried along by copies. Where names from several predecessors meet, a phi
//! of the SSA program gives the name. Both are computed here from the program alone; nothing is taken from the
//! allocator.

use crate::difference::printed;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir3_compiler::ir3::{
    Attrs, Block, Instr, InstrData, Opcode, PhysReg, Place, Program, RegClass, RegFile, SrcOperand, Value, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::interp::trace::TracePoint;
use rustc_hash::FxHashMap;

/// The first unit of each register file. A unit is half of a full register.
const HALF: usize = 512;
const SHARED: usize = HALF + 512;
const PREDICATE: usize = SHARED + 64;
const ADDRESS: usize = PREDICATE + 8;
/// The number of units.
pub(super) const UNITS: usize = ADDRESS + 4;

/// The name of a full register by one of its units.
pub(super) fn register_name(unit: usize) -> String {
    let (prefix, first, number) = match unit {
        ..HALF => ("r", 0, unit / 2),
        HALF..SHARED => ("hr", 0, (unit - HALF) / 2),
        SHARED..PREDICATE => ("r", 48, (unit - SHARED) / 2),
        PREDICATE..ADDRESS => ("p", 0, (unit - PREDICATE) / 2),
        _ => return format!("a{}.x", (unit - ADDRESS) / 2),
    };
    format!("{prefix}{}.{}", first + number / 4, ['x', 'y', 'z', 'w'][number % 4])
}

/// The units of a register of a class.
fn units_of(class: RegClass, register: PhysReg, merged: bool) -> std::ops::Range<usize> {
    let number = usize::from(register.0);
    let full = |base: usize, number: usize| base + 2 * number..base + 2 * number + 2;
    let (range, end) = match (class.file, class.half) {
        (RegFile::General, false) => (full(0, number), HALF),
        (RegFile::General, true) if merged => (number..number + 1, HALF),
        (RegFile::General, true) => (full(HALF, number), SHARED),
        (RegFile::Shared, half) => {
            let number = number.wrapping_sub(48 << 2) & 0xffff;
            (if half { SHARED + number..SHARED + number + 1 } else { full(SHARED, number) }, PREDICATE)
        }
        (RegFile::Predicate, _) => (full(PREDICATE, number.wrapping_sub(62 << 2) & 0xffff), ADDRESS),
        (RegFile::Address, _) => (full(ADDRESS, number.wrapping_sub(61 << 2) & 0xffff), UNITS),
    };
    // A register outside of its file has no column.
    if range.end <= end { range } else { 0..0 }
}

/// A register that an operand reads or writes.
#[derive(Clone, Debug)]
struct RegisterAccess {
    units: std::ops::Range<usize>,
    /// The index of the component.
    component: u32,
    /// The whole register is accessed for sure.
    certain: bool,
}

fn accesses(program: &Program, place: &Place, class: RegClass, mask: WriteMask, merged: bool) -> Vec<RegisterAccess> {
    let several = |first: u16, count: u16| {
        let of = |i: u16| RegisterAccess {
            units: units_of(class, PhysReg(first + i), merged),
            component: i.into(),
            certain: false,
        };
        (0..count).map(of).collect()
    };
    match place {
        Place::Array(access) => {
            access.base.expand().map_or_else(Vec::new, |base| several(base.0, program.arrays[access.array].length))
        }
        Place::Relative { offset, size } => {
            u16::try_from(*offset).map_or_else(|_| Vec::new(), |first| several(first, *size))
        }
        _ => {
            let Some(register) = place.reg() else { return Vec::new() };
            let of = |i: u32| RegisterAccess {
                units: units_of(class, register.offset(i as u16), merged),
                component: i,
                certain: true,
            };
            mask.components().map(of).collect()
        }
    }
}

/// The registers that an instruction reads, by operand.
pub(super) fn reads(program: &Program, data: &InstrData, slot: usize, merged: bool) -> Vec<usize> {
    let Some(src) = data.srcs.get(slot) else { return Vec::new() };
    let SrcOperand::Place(place) = &src.operand else { return Vec::new() };
    accesses(program, place, src.class, src.mask, merged).into_iter().flat_map(|access| access.units).collect()
}

/// A value in a register, as a rectangle of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// The units.
    pub units: std::ops::Range<usize>,
    /// The range in halves of rows: odd numbers are within an instruction.
    pub rows: std::ops::Range<usize>,
    /// The name of the value, if it has one.
    pub name: Option<String>,
}

/// The content of a unit at a point: `None` if the point is not known to be reached, `Some(0)` without a name.
type UnitNames = Vec<Option<u32>>;

struct RangeAnalysis<'a> {
    program: &'a Program,
    /// The names of the program before registers were assigned.
    ssa: &'a SsaNames,
    merged: bool,
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

/// Returns the live ranges of all registers; rows are the instructions in the order of the layout. `ssa` has the names
/// of the program before registers were assigned.
pub(super) fn bars(program: &Program, ssa: &SsaNames, target: &Target) -> Vec<Bar> {
    let mut analysis = RangeAnalysis {
        program,
        ssa,
        merged: target.merged_regs,
        names: vec![String::new()],
        numbers: FxHashMap::default(),
    };
    let live_out = analysis.live_out();
    let starts = analysis.names_at_starts();
    let mut bars = Vec::new();
    let mut row = 0;
    for &block in &program.layout {
        let instrs = &program.blocks[block].instrs;
        // Backwards: the units that are live before each instruction, and at the end.
        let mut live = live_out[block.index()].clone();
        let mut before = vec![live.clone()];
        for &instr in instrs.iter().rev() {
            analysis.step_back(&program.instrs[instr], &mut live);
            before.push(live.clone());
        }
        before.reverse();
        let mut names = starts[block.index()].clone().unwrap_or_else(|| vec![None; UNITS]);
        // The start of the open range of each unit.
        let mut open: Vec<Option<usize>> = (0..UNITS).map(|unit| before[0].contains(unit).then_some(2 * row)).collect();
        let mut close = |unit: usize, start: usize, end: usize, name: Option<u32>, names: &[String]| {
            let name = name.filter(|&name| name != 0).map(|name| names[name as usize].clone());
            bars.push(Bar { units: unit..unit + 1, rows: start..end, name });
        };
        for (i, &instr) in instrs.iter().enumerate() {
            let data = &program.instrs[instr];
            let written = analysis.written(data);
            let old = names.clone();
            analysis.step_names(instr, data, &mut names);
            for unit in 0..UNITS {
                let is_written = written.contains(unit);
                if let Some(start) = open[unit].filter(|_| is_written || !before[i + 1].contains(unit)) {
                    close(unit, start, 2 * row + 1, old[unit], &analysis.names);
                    open[unit] = None;
                }
                if is_written && before[i + 1].contains(unit) {
                    open[unit] = Some(2 * row + 1);
                } else if is_written {
                    // A result that is never read.
                    close(unit, 2 * row + 1, 2 * row + 2, names[unit], &analysis.names);
                }
            }
            row += 1;
        }
        for unit in 0..UNITS {
            if let Some(start) = open[unit] {
                close(unit, start, 2 * row, names[unit], &analysis.names);
            }
        }
    }
    merge(bars)
}

/// The name without its component.
pub(super) fn base(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Joins ranges of one value in neighbouring units and blocks.
fn merge(mut bars: Vec<Bar>) -> Vec<Bar> {
    // One unit through the blocks of the layout.
    bars.sort_by_key(|bar| (bar.units.start, bar.rows.start));
    let mut joined: Vec<Bar> = Vec::new();
    for bar in bars {
        match joined.last_mut() {
            Some(last)
                if last.units == bar.units
                    && last.rows.end == bar.rows.start
                    && last.name == bar.name
                    && bar.rows.start % 2 == 0 =>
            {
                last.rows.end = bar.rows.end;
            }
            _ => joined.push(bar),
        }
    }
    // Units next to each other.
    joined.sort_by_key(|bar| (bar.rows.start, bar.rows.end, bar.units.start));
    let mut wide: Vec<Bar> = Vec::new();
    for bar in joined {
        let same = |last: &Bar| match (&last.name, &bar.name) {
            (Some(a), Some(b)) => base(a) == base(b),
            // The two halves of a register.
            (None, None) => last.units.len() == 1 && bar.units.start % 2 == 1,
            _ => false,
        };
        match wide.last_mut() {
            Some(last) if last.rows == bar.rows && last.units.end == bar.units.start && same(last) => {
                last.units.end = bar.units.end;
                // A bar of several components has the name of the whole.
                if last.name != bar.name {
                    last.name = last.name.as_deref().map(|name| base(name).to_owned());
                }
            }
            _ => wide.push(bar),
        }
    }
    wide
}

/// The names of values in SSA form, as the text of the program has them.
#[derive(Default)]
pub(super) struct SsaNames {
    /// The results of instructions, by instruction and destination.
    results: FxHashMap<(Instr, usize), String>,
    values: FxHashMap<Value, String>,
    /// The component that a split takes from a vector, which stays where the vector is: `ssa_1.x`.
    splits: FxHashMap<String, String>,
    /// Names of the phis of a block, and of their operands.
    phis: FxHashMap<Block, Vec<(String, Vec<String>)>>,
}

impl SsaNames {
    /// Reads the names of a program from its text.
    pub fn new(ssa: &Program) -> Self {
        let texts = printed(&Snapshot::Ir3(Box::new(ssa.clone())));
        let mut names = Self::default();
        for (_, instr) in ssa.iter_instrs() {
            let Some(known) = texts.get(&TracePoint::Instr(instr.index() as u32)) else { continue };
            let operands = known.text.split_once(' ').map_or("", |(_, operands)| operands);
            for ((number, dst), text) in ssa.instrs[instr].dsts.iter().enumerate().zip(operands.split(", ")) {
                if let (Some(value), Some(start)) = (dst.value(), text.find("ssa_")) {
                    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let name: String = text[start..].chars().take_while(|&c| letter(c)).collect();
                    names.results.insert((instr, number), name.clone());
                    names.values.insert(value, name);
                }
            }
        }
        for (block, instr) in ssa.iter_instrs() {
            let data = &ssa.instrs[instr];
            let Some(name) = names.results.get(&(instr, 0)).cloned() else { continue };
            let sources = data.srcs.iter().map(|src| src.value().and_then(|value| names.values.get(&value)));
            match (data.opcode, &data.attrs) {
                (Opcode::Phi, _) => {
                    let sources = sources.map(|source| source.cloned().unwrap_or_default()).collect();
                    names.phis.entry(block).or_default().push((name, sources));
                }
                (Opcode::Split, Attrs::Split { offset }) => {
                    let component = ['x', 'y', 'z', 'w'].get(usize::from(*offset));
                    let vector = sources.flatten().next().cloned();
                    if let (Some(vector), Some(component)) = (vector, component) {
                        names.splits.insert(name, format!("{vector}.{component}"));
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// The name of a value; that of the vector's component, if it is one.
    pub fn content<'a>(&'a self, name: &'a str) -> &'a str {
        self.splits.get(name).map_or(name, String::as_str)
    }

    /// Replaces the numbers of values in a message by their names in the text.
    pub fn in_text(&self, message: &str) -> String {
        let mut parts = message.split("ssa_");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let value = part[..end].parse().ok().map(Value::from_u32);
            match value.and_then(|value| self.values.get(&value)) {
                Some(name) => out.push_str(name),
                None => out.extend(["ssa_", &part[..end]]),
            }
            out.push_str(&part[end..]);
        }
        out
    }
}

impl RangeAnalysis<'_> {
    fn number(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    fn destinations(&self, data: &InstrData) -> Vec<Vec<RegisterAccess>> {
        let of = |dst: &ir3_compiler::ir3::Dst| accesses(self.program, &dst.place, dst.class, dst.mask, self.merged);
        data.dsts.iter().map(of).collect()
    }

    /// The units that an instruction may write.
    fn written(&self, data: &InstrData) -> FixedBitSet {
        let mut units = FixedBitSet::with_capacity(UNITS);
        self.destinations(data).into_iter().flatten().for_each(|access| units.insert_range(access.units));
        units
    }

    fn step_back(&self, data: &InstrData, live: &mut FixedBitSet) {
        for access in self.destinations(data).into_iter().flatten().filter(|access| access.certain) {
            live.set_range(access.units, false);
        }
        for slot in 0..data.srcs.len() {
            reads(self.program, data, slot, self.merged).into_iter().for_each(|unit| live.insert(unit));
        }
    }

    /// The units that are live at the ends of blocks.
    fn live_out(&self) -> Vec<FixedBitSet> {
        let program = self.program;
        let empty = FixedBitSet::with_capacity(UNITS);
        let (mut starts, mut ends) = (vec![empty.clone(); program.blocks.len()], vec![empty; program.blocks.len()]);
        // Shared registers are also read by lanes that take the other side of a branch.
        let mut shared = FixedBitSet::with_capacity(UNITS);
        shared.insert_range(SHARED..UNITS);
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &block in program.layout.iter().rev() {
                let data = &program.blocks[block];
                let mut live = FixedBitSet::with_capacity(UNITS);
                data.successors().for_each(|to| live.union_with(&starts[to.index()]));
                for to in &data.physical_successors {
                    let mut of_wave = starts[to.index()].clone();
                    of_wave.intersect_with(&shared);
                    live.union_with(&of_wave);
                }
                ends[block.index()].clone_from(&live);
                data.instrs.iter().rev().for_each(|&instr| self.step_back(&program.instrs[instr], &mut live));
                changed |= live != starts[block.index()];
                starts[block.index()] = live;
            }
        }
        ends
    }

    /// The contents of registers after an instruction.
    fn step_names(&mut self, instr: Instr, data: &InstrData, names: &mut UnitNames) {
        let dsts = self.destinations(data);
        let is_copy = matches!(data.opcode, Opcode::ParallelCopy | Opcode::Swz)
            || data.opcode == Opcode::Mov && matches!(&data.attrs, Attrs::Move { src, dst, .. } if src == dst);
        let mut writes: Vec<(usize, Option<u32>)> = Vec::new();
        for (number, accesses) in dsts.iter().enumerate() {
            let sources = if is_copy { reads(self.program, data, number, self.merged) } else { Vec::new() };
            let known = self.ssa.results.get(&(instr, number)).cloned();
            for (access, count) in accesses.iter().zip(0..) {
                for (offset, unit) in access.units.clone().enumerate() {
                    let source = sources.get(count * access.units.len() + offset);
                    let name = match (&known, source) {
                        (Some(name), _) if accesses.len() > 1 => {
                            let component = ['x', 'y', 'z', 'w'].get(access.component as usize);
                            component.map_or_else(|| name.clone(), |letter| format!("{name}.{letter}"))
                        }
                        (Some(name), _) => name.clone(),
                        (None, Some(&source)) => {
                            writes.push((unit, names[source]));
                            continue;
                        }
                        (None, None) => {
                            writes.push((unit, Some(0)));
                            continue;
                        }
                    };
                    let number = self.number(name);
                    writes.push((unit, Some(number)));
                }
            }
        }
        writes.into_iter().for_each(|(unit, name)| names[unit] = name);
    }

    /// The contents of registers at the starts of blocks; `None` for blocks that are not reached.
    fn names_at_starts(&mut self) -> Vec<Option<UnitNames>> {
        let program = self.program;
        let mut starts: Vec<Option<UnitNames>> = vec![None; program.blocks.len()];
        let mut ends: Vec<Option<UnitNames>> = vec![None; program.blocks.len()];
        // The names need not be a fixed point of any lattice: a few sweeps are enough to carry them through nested
        // loops.
        for _ in 0..8 {
            let mut changed = false;
            for &block in &program.layout {
                let predecessors: Vec<Option<&UnitNames>> =
                    program.blocks[block].predecessors.iter().map(|pred| ends[pred.index()].as_ref()).collect();
                let mut names = vec![None; UNITS];
                let mut joined = Vec::new();
                for (unit, name) in names.iter_mut().enumerate() {
                    let incoming: Vec<Option<u32>> =
                        predecessors.iter().map(|names| names.and_then(|names| names[unit])).collect();
                    let mut known = incoming.iter().flatten();
                    *name = known.next().copied();
                    if known.any(|other| Some(*other) != *name) {
                        *name = Some(0);
                        joined.push((unit, incoming));
                    }
                }
                for (unit, incoming) in joined {
                    let phi = self.phi(block, &incoming).map(|name| self.number(name));
                    names[unit] = phi.or(Some(0));
                }
                let start = Some(names.clone());
                for &instr in &program.blocks[block].instrs {
                    self.step_names(instr, &program.instrs[instr], &mut names);
                }
                changed |= start != starts[block.index()];
                starts[block.index()] = start;
                ends[block.index()] = Some(names);
            }
            if !changed {
                break;
            }
        }
        starts
    }

    /// The phi of a block whose operands are the names that come from the predecessors.
    fn phi(&self, block: Block, incoming: &[Option<u32>]) -> Option<String> {
        let matches = |sources: &[String]| {
            sources.len() == incoming.len()
                && sources
                    .iter()
                    .zip(incoming)
                    .all(|(source, name)| name.is_none_or(|name| self.names[name as usize] == self.ssa.content(source)))
        };
        let phis = self.ssa.phis.get(&block)?;
        phis.iter().find(|(_, sources)| matches(sources)).map(|(name, _)| name.clone())
    }
}
