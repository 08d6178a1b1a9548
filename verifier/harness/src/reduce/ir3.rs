//! ir3 programs under reduction, in SSA form or with registers.
//!
//! Steps change the program as if only its text counted: an instruction is dropped and its uses read 0, a branch
//! becomes a jump, an operand an immediate. The validator of ir3 refuses programs that no compiler writes, so a step
//! may ignore the form of the program.

use super::size::{Size, complexity};
use super::subject::{Kind, Subject};
use ir3_compiler::graph;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{
    Attrs, Block, Category, Instr, InstrData, InstrFlags, Mods, Opcode, OperandFlags, Program, RepeatLink, Src,
    SrcOperand, Value, WriteMask, text,
};
use ir3_compiler::target::Target;

/// An ir3 program for a GPU.
#[derive(Clone, PartialEq)]
pub struct Ir3Subject {
    /// The program.
    pub program: Program,
    /// The GPU, whose rules it keeps.
    pub target: Target,
}

/// A change of an ir3 program.
#[derive(Clone, Copy, Debug)]
pub enum Ir3Step {
    /// Drops an instruction; uses of its results read 0.
    Drop(Instr),
    /// Drops the sources of an `end` or `chmask` that are an output of this location.
    Output(Instr, u16),
    /// Uses of the result of an instruction read one of its sources.
    Forward(Instr, usize),
    /// A source becomes an immediate.
    Immediate(Instr, usize, u32),
    /// Lanes take this successor of a conditional branch.
    Jump(Block, usize),
    /// A block and its only successor become one.
    Join(Block),
    /// Clears the flags of an instruction, its repetitions and its nops.
    Flags(Instr),
    /// Clears the modifiers and flags of a source.
    Modifiers(Instr, usize),
    /// Drops a part of the program's declarations.
    Header(Declared),
}

/// A part of the declarations of a program.
#[derive(Clone, Copy, Debug)]
pub enum Declared {
    /// The size of the workgroup.
    Workgroup,
    /// Shared memory.
    Shared,
    /// Scratch memory.
    Scratch,
    /// The system value of this number in the constant file.
    DriverParam(usize),
    /// The immediate of this number in the constant file.
    Immediate(usize),
    /// Marks of reconvergence points.
    Reconvergence,
}

/// The flags that only affect the time of issue.
const ISSUE: InstrFlags = InstrFlags::SY.union(InstrFlags::SS).union(InstrFlags::JP).union(InstrFlags::UL);

type List = fn(&Program) -> Vec<Ir3Step>;

const fn kind(name: &'static str, together: bool) -> Kind {
    Kind { name, together }
}

static KINDS: [(Kind, List); 10] = [
    (kind("drop effects", true), effects),
    (kind("branches to jumps", false), jumps),
    (kind("drop instructions", true), drops),
    (kind("results to operands", true), forwards),
    (kind("operands to zero", true), zeros),
    (kind("operands to one", true), ones),
    (kind("join blocks", true), joins),
    (kind("fewer flags", true), flags),
    (kind("fewer modifiers", true), modifiers),
    (kind("fewer declarations", true), declared),
];

impl Subject for Ir3Subject {
    type Step = Ir3Step;

    fn kinds(&self) -> Vec<Kind> {
        KINDS.iter().map(|(kind, _)| *kind).collect()
    }

    fn list(&self, kind: usize) -> Vec<Ir3Step> {
        (KINDS[kind].1)(&self.program)
    }

    fn edited(&self, steps: &[&Ir3Step], _sweep: bool) -> Option<Self> {
        let mut program = self.program.clone();
        let mut changed = false;
        for step in steps {
            changed |= apply(&mut program, step);
        }
        changed.then_some(Self { program, target: self.target })
    }

    fn swept(&self) -> Self {
        self.clone()
    }

    fn finished(&self) -> Option<Self> {
        let program = self.program.canonical()?;
        validate(&program, &self.target, Form::of(&program)).ok()?;
        Some(Self { program, target: self.target })
    }

    fn size(&self) -> Size {
        size(&self.program)
    }

    fn text(&self) -> String {
        text::write(&self.program)
    }

    fn read(&self, text: &str) -> Option<Self> {
        Some(Self { program: text::read(text).ok()?, target: self.target })
    }
}

/// The size of a program.
fn size(program: &Program) -> Size {
    let mut size = Size { instructions: 0, work: 0, operands: 0, bits: 0, constants: 0, attributes: 0 };
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        size.instructions += 1;
        let is_plain = data.opcode.is_copy() || matches!(data.opcode.info().category, Category::Flow | Category::Meta);
        size.work += u32::from(!is_plain);
        for src in &data.srcs {
            match src.operand {
                SrcOperand::Immediate(bits) => size.constants += complexity(bits.into()),
                SrcOperand::Undef => size.constants += 1,
                _ => size.operands += 1,
            }
            size.attributes += src.mods.bits().count_ones() + src.flags.bits().count_ones();
        }
        size.bits += data.dsts.iter().map(|dst| dst.mask.0.count_ones() * u32::from(dst.class.bits())).sum::<u32>();
        size.attributes += data.flags.bits().count_ones() + u32::from(data.repeat) + u32::from(data.nop);
    }
    let sizes = [program.shared_size, program.scratch_size, u32::from(program.workgroup_size.is_some())];
    size.attributes += sizes.iter().map(|&n| u32::from(n != 0)).sum::<u32>();
    size.attributes += (program.consts.driver_params.len() + program.consts.immediates.len()) as u32;
    for &block in &program.layout {
        let data = &program.blocks[block];
        size.attributes += 1 + u32::from(data.reconvergence_point) + data.physical_successors.len() as u32;
    }
    size
}

/// The instructions, the last one first: readers of a value are dropped before it.
fn last_first(program: &Program) -> Vec<Instr> {
    let mut instrs: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).collect();
    instrs.reverse();
    instrs
}

fn is_effect(data: &InstrData) -> bool {
    data.opcode.has_side_effect() && !data.opcode.is_terminator()
}

/// The locations that a terminator writes, each once.
pub(super) fn outputs_of(program: &Program, data: &InstrData) -> Vec<u16> {
    let Attrs::Outputs(outputs) = &data.attrs else { return Vec::new() };
    let mut bases: Vec<u16> =
        outputs.iter().filter_map(|&index| Some(program.outputs.get(usize::from(index))?.base)).collect();
    bases.sort_unstable();
    bases.dedup();
    bases
}

fn effects(program: &Program) -> Vec<Ir3Step> {
    let of = |instr: Instr| {
        let data = &program.instrs[instr];
        let outputs = outputs_of(program, data).into_iter().map(move |base| Ir3Step::Output(instr, base));
        outputs.chain(is_effect(data).then_some(Ir3Step::Drop(instr)))
    };
    program.iter_instrs().flat_map(|(_, instr)| of(instr)).collect()
}

fn jumps(program: &Program) -> Vec<Ir3Step> {
    let branches = program.layout.iter().filter(|&&block| program.blocks[block].successors[1].is_some());
    branches.flat_map(|&block| [Ir3Step::Jump(block, 1), Ir3Step::Jump(block, 0)]).collect()
}

fn drops(program: &Program) -> Vec<Ir3Step> {
    let droppable = |instr: &Instr| !program.instrs[*instr].opcode.is_terminator();
    last_first(program).into_iter().filter(droppable).map(Ir3Step::Drop).collect()
}

fn forwards(program: &Program) -> Vec<Ir3Step> {
    let of = |instr: Instr| {
        let data = &program.instrs[instr];
        let class = data.dsts.first().filter(|dst| dst.value().is_some()).map(|dst| dst.class);
        let fits = move |src: &Src| Some(src.class) == class && src.mods.is_empty();
        data.srcs.iter().enumerate().filter(move |(_, src)| fits(src)).map(move |(n, _)| Ir3Step::Forward(instr, n))
    };
    last_first(program).into_iter().flat_map(of).collect()
}

/// Steps that make sources immediates, of those that are no immediates of this value or a simpler one.
fn immediates(program: &Program, bits: u32) -> Vec<Ir3Step> {
    let is_other = |src: &Src| match src.operand {
        SrcOperand::Immediate(old) => complexity(old.into()) > complexity(bits.into()),
        _ => true,
    };
    let of = |instr: Instr| {
        let srcs = program.instrs[instr].srcs.iter().enumerate();
        srcs.filter(|(_, src)| is_other(src)).map(move |(n, _)| Ir3Step::Immediate(instr, n, bits)).collect::<Vec<_>>()
    };
    last_first(program).into_iter().flat_map(of).collect()
}

fn zeros(program: &Program) -> Vec<Ir3Step> {
    immediates(program, 0)
}

fn ones(program: &Program) -> Vec<Ir3Step> {
    immediates(program, 1)
}

fn joins(program: &Program) -> Vec<Ir3Step> {
    program.layout.iter().map(|&block| Ir3Step::Join(block)).collect()
}

fn flags(program: &Program) -> Vec<Ir3Step> {
    last_first(program).into_iter().map(Ir3Step::Flags).collect()
}

fn modifiers(program: &Program) -> Vec<Ir3Step> {
    let of = |instr: Instr| {
        let srcs = 0..program.instrs[instr].srcs.len();
        srcs.map(move |n| Ir3Step::Modifiers(instr, n))
    };
    last_first(program).into_iter().flat_map(of).collect()
}

fn declared(program: &Program) -> Vec<Ir3Step> {
    let params = (0..program.consts.driver_params.len()).map(Declared::DriverParam);
    let immediates = (0..program.consts.immediates.len()).map(Declared::Immediate);
    let parts = [Declared::Workgroup, Declared::Shared, Declared::Scratch, Declared::Reconvergence];
    // The last one first: a step that was taken does not change the numbers of those that come after it.
    parts.into_iter().chain(params.rev()).chain(immediates.rev()).map(Ir3Step::Header).collect()
}

/// The block of an instruction that has not been dropped.
fn block_of(program: &Program, instr: Instr) -> Option<Block> {
    program.iter_instrs().find(|&(_, other)| other == instr).map(|(block, _)| block)
}

/// Makes a change. Returns false if there is nothing to change (any more).
fn apply(program: &mut Program, step: &Ir3Step) -> bool {
    match *step {
        Ir3Step::Drop(instr) => drop_instr(program, instr),
        Ir3Step::Output(instr, base) => drop_output(program, instr, base),
        Ir3Step::Forward(instr, n) => forward(program, instr, n),
        Ir3Step::Immediate(instr, n, bits) => {
            let src = &mut program.instrs[instr].srcs[n];
            let new =
                Src { operand: SrcOperand::Immediate(bits), mask: WriteMask::SCALAR, mods: Mods::empty(), ..*src };
            let new = Src { flags: OperandFlags::empty(), ..new };
            std::mem::replace(src, new) != new
        }
        Ir3Step::Jump(block, slot) => jump(program, block, slot),
        Ir3Step::Join(block) => join(program, block),
        Ir3Step::Flags(instr) => {
            let data = &mut program.instrs[instr];
            let new = (data.flags.difference(ISSUE), 0, 0);
            let old = (data.flags, data.repeat, data.nop);
            let is_changed = old != new || data.link() != RepeatLink::None;
            (data.flags, data.repeat, data.nop) = new;
            data.unconstrain();
            is_changed
        }
        Ir3Step::Modifiers(instr, n) => {
            let src = &mut program.instrs[instr].srcs[n];
            let new = Src { mods: Mods::empty(), flags: OperandFlags::empty(), ..*src };
            std::mem::replace(src, new) != new
        }
        Ir3Step::Header(part) => drop_declared(program, part),
    }
}

/// Replaces the uses of a value by a source of its class: an immediate, or another value. The read components stay,
/// except of an immediate.
fn replace_uses(program: &mut Program, value: Value, with: &Src) {
    for data in program.instrs.values_mut() {
        for src in data.srcs.iter_mut().filter(|src| src.value() == Some(value)) {
            let mask = if matches!(with.operand, SrcOperand::Place(_)) { src.mask } else { WriteMask::SCALAR };
            *src = Src { operand: with.operand, mask, flags: OperandFlags::empty(), ..*src };
        }
    }
}

fn drop_instr(program: &mut Program, instr: Instr) -> bool {
    let Some(block) = block_of(program, instr) else { return false };
    program.blocks[block].instrs.retain(|&other| other != instr);
    for block in program.layout.clone() {
        program.blocks[block].keeps.retain(|&other| other != instr);
    }
    for dst in program.instrs[instr].dsts.clone() {
        if let Some(value) = dst.value() {
            replace_uses(program, value, &Src::immediate(0, dst.class.half));
        }
    }
    for data in program.instrs.values_mut() {
        if data.is_constrained() {
            data.constrain(|it| {
                it.false_deps.retain(|&other| other != instr);
                if it.link == RepeatLink::After(instr) {
                    it.link = RepeatLink::None;
                }
            });
        }
    }
    true
}

fn drop_output(program: &mut Program, instr: Instr, base: u16) -> bool {
    let outputs = program.outputs.clone();
    let data = &mut program.instrs[instr];
    let Attrs::Outputs(indices) = &mut data.attrs else { return false };
    let keeps: Vec<bool> =
        indices.iter().map(|&index| outputs.get(usize::from(index)).is_none_or(|it| it.base != base)).collect();
    let mut of_srcs = keeps.iter();
    data.srcs.retain(|_| of_srcs.next().copied().unwrap_or(true));
    let kept = indices.iter().zip(&keeps).filter(|(_, keep)| **keep);
    *indices = kept.map(|(&index, _)| index).collect();
    keeps.contains(&false)
}

fn forward(program: &mut Program, instr: Instr, n: usize) -> bool {
    let data = &program.instrs[instr];
    let src = data.srcs[n];
    let Some(value) = data.dsts.first().and_then(|dst| dst.value()) else { return false };
    if src.value() == Some(value) || block_of(program, instr).is_none() {
        return false;
    }
    replace_uses(program, value, &src);
    drop_instr(program, instr)
}

/// Removes the edge to the successor of a slot, with the sources of phis there.
fn remove_edge(program: &mut Program, from: Block, slot: usize) {
    let Some(to) = program.blocks[from].successors[slot].take() else { return };
    let data = &mut program.blocks[from];
    if slot == 0 {
        data.successors.swap(0, 1);
    }
    if let Some(at) = data.physical_successors.iter().position(|&next| next == to) {
        data.physical_successors.remove(at);
    }
    data.divergent = None;
    let data = &mut program.blocks[to];
    if let Some(at) = data.physical_predecessors.iter().position(|&pred| pred == from) {
        data.physical_predecessors.remove(at);
    }
    let Some(at) = data.predecessors.iter().position(|&pred| pred == from) else { return };
    data.predecessors.remove(at);
    for &phi in &data.instrs {
        if program.instrs[phi].opcode == Opcode::Phi && at < program.instrs[phi].srcs.len() {
            program.instrs[phi].srcs.remove(at);
        }
    }
}

fn jump(program: &mut Program, block: Block, slot: usize) -> bool {
    if !program.layout.contains(&block) || program.blocks[block].successors[1].is_none() {
        return false;
    }
    let kept = program.blocks[block].successors[slot];
    remove_edge(program, block, 1 - slot);
    let is_terminator = |instr: &Instr| program.instrs[*instr].opcode.is_terminator();
    let terminators: Vec<Instr> = program.blocks[block].instrs.iter().copied().filter(is_terminator).collect();
    let explicit =
        terminators.iter().any(|&instr| matches!(program.instrs[instr].attrs, Attrs::Branch { target: Some(_) }));
    program.blocks[block].instrs.retain(|instr| !terminators.contains(instr));
    let mut data = InstrData::new(Opcode::Jump);
    data.attrs = Attrs::Branch { target: kept.filter(|_| explicit) };
    let new = program.instrs.push(data);
    program.blocks[block].instrs.push(new);
    remove_unreachable(program);
    true
}

/// Removes the blocks that the entry does not lead to.
fn remove_unreachable(program: &mut Program) {
    let reachable = graph::reachable([program.entry()], |block, search| {
        program.blocks[block].successors().for_each(|next| search.add(next));
    });
    let (kept, gone): (Vec<Block>, Vec<Block>) = program.layout.iter().partition(|&&block| reachable.contains(block));
    for &block in &gone {
        while program.blocks[block].successors[0].is_some() {
            remove_edge(program, block, 0);
        }
    }
    for &block in &kept {
        let data = &mut program.blocks[block];
        data.physical_successors.retain(|next| reachable.contains(*next));
        data.physical_predecessors.retain(|pred| reachable.contains(*pred));
    }
    program.layout = kept;
    for phi in last_first(program) {
        lower_phi(program, phi);
    }
}

/// Replaces a phi with one source by that.
fn lower_phi(program: &mut Program, phi: Instr) {
    if program.instrs[phi].opcode == Opcode::Phi && program.instrs[phi].srcs.len() == 1 {
        forward(program, phi, 0);
    }
}

fn join(program: &mut Program, block: Block) -> bool {
    if !program.layout.contains(&block) {
        return false;
    }
    let [Some(next), None] = program.blocks[block].successors else { return false };
    if program.blocks[next].predecessors[..] != [block] || next == program.entry() || next == block {
        return false;
    }
    let ends = |instr: &Instr| program.instrs[*instr].opcode.is_terminator();
    let mut instrs: Vec<Instr> = program.blocks[block].instrs.iter().copied().filter(|instr| !ends(instr)).collect();
    let mut taken = std::mem::take(&mut program.blocks[next]);
    instrs.append(&mut taken.instrs);
    program.layout.retain(|&other| other != next);
    for to in program.layout.clone() {
        let data = &mut program.blocks[to];
        data.predecessors.iter_mut().filter(|pred| **pred == next).for_each(|pred| *pred = block);
        data.physical_predecessors.iter_mut().filter(|pred| **pred == next).for_each(|pred| *pred = block);
        data.physical_successors.retain(|other| *other != next);
    }
    let data = &mut program.blocks[block];
    data.instrs = instrs;
    data.successors = taken.successors;
    data.physical_successors = taken.physical_successors;
    data.divergent = taken.divergent;
    data.keeps.append(&mut taken.keeps);
    true
}

fn drop_declared(program: &mut Program, part: Declared) -> bool {
    match part {
        Declared::Workgroup => program.workgroup_size.take().is_some(),
        Declared::Shared => std::mem::take(&mut program.shared_size) != 0,
        Declared::Scratch => std::mem::take(&mut program.scratch_size) != 0,
        Declared::DriverParam(n) => take(&mut program.consts.driver_params, n),
        Declared::Immediate(n) => take(&mut program.consts.immediates, n),
        Declared::Reconvergence => {
            let mut changed = false;
            for block in program.layout.clone() {
                changed |= std::mem::take(&mut program.blocks[block].reconvergence_point);
            }
            changed
        }
    }
}

fn take<T>(list: &mut Vec<T>, n: usize) -> bool {
    let is_there = n < list.len();
    if is_there {
        list.remove(n);
    }
    is_there
}
