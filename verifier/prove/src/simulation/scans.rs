//! Loops over the lanes that are scans: `scan.macro` and `scan_clusters.macro` as `lower-subgroups` and Mesa expand
//! them (`ir3_lower_subgroups.c`).
//!
//! A program that has such loops is read as one that has the macros, and this is why it means the same. Nothing but the
//! loop runs between its start and its end: its blocks follow each other in the layout, before the block where lanes go
//! on, no other block leads into it, and it has no effect but its registers.
//!
//! ```text
//!     header: getone exit, footer
//!     exit:   e = s; i = v OP e; s = i; jump after
//!     footer: jump header
//! ```
//!
//! In each iteration the first of the remaining lanes takes `exit`. By induction over the lanes, `s` has the initial
//! value combined with the values of all lanes before it, in order. So `e` gets the exclusive and `i` the inclusive
//! scan in each lane, and at the end `s` has that of the last lane, as the macro defines. `v` may not change before a
//! lane reads it: neither `e` nor `s` is part of it.
//!
//! ```text
//!     body:   t = s; i = v OP t; x = w OP t; getlast store, after
//!     store:  s = i; getone after, body
//! ```
//!
//! All remaining lanes compute, then the first cluster of 8 lanes leaves: all but its last lane by `getlast`, the last
//! one by `getone`, after its `i` has become `s` (it is the first active lane, of which a shared register gets the
//! value). Lanes of other clusters compute again, so `v` and `w` may not change: no register of the loop is part of
//! them. Registers of the program that the macro has not, `t`, are undefined after it, so that nothing follows from
//! their value. That holds for a target; in a source, an undefined register would allow the target anything, so a loop
//! with one is not replaced there.

use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::register_set::RegisterSet;
use ir3_compiler::ir3::{
    Attrs, Block, Dst, InstrData, InstrFlags, Mods, Opcode, OperandFlags, PhysReg, Place, Program, RegFile, Round, Src,
    SrcOperand, Type, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_semantics::operations::{Kernel, ir3_alu};
use ir3_semantics::support::guards::{Guard, left_out};
use smallvec::SmallVec;

/// The lemma by which three products of 16 bits are one of 32.
const PRODUCT: &str = "lemma:mul32";

/// A program whose loops over lanes are macros.
pub(super) struct WithMacros {
    /// The program.
    pub program: Program,
    /// The lemmas by which it means the same.
    pub lemmas: SmallVec<[&'static str; 1]>,
}

/// Reads the loops of two programs that are scans as macros, if that can help: all of the target's where the source has
/// none; otherwise those of both after which no register is undefined, if there are as many.
pub(super) fn of_both(source: ProgramRef<'_>, target: ProgramRef<'_>, machine: &Target) -> [Option<WithMacros>; 2] {
    let ProgramRef::Ir3(target) = target else { return [None, None] };
    let scans = |program: &Program| -> Vec<Scan> {
        program.layout.iter().filter_map(|&header| Scan::at(program, machine, header)).collect()
    };
    let mut after = scans(target);
    let (source, mut before) = match source {
        ProgramRef::Ir3(source) => (Some(source), scans(source)),
        _ => (None, Vec::new()),
    };
    if !before.is_empty() {
        for scans in [&mut before, &mut after] {
            scans.retain(|scan| scan.scratch.is_none());
        }
        if before.len() != after.len() {
            return [None, None];
        }
    }
    [source.and_then(|source| with_macros(source, before)), with_macros(target, after)]
}

fn with_macros(program: &Program, scans: Vec<Scan>) -> Option<WithMacros> {
    if scans.is_empty() {
        return None;
    }
    let mut result = WithMacros { program: program.clone(), lemmas: SmallVec::new() };
    for scan in scans {
        if scan.is_product && result.lemmas.is_empty() {
            result.lemmas.push(PRODUCT);
        }
        scan.replace(&mut result.program);
    }
    Some(result)
}

/// A loop that is a scan.
struct Scan {
    /// The block before it.
    before: Block,
    /// Its blocks.
    blocks: SmallVec<[Block; 3]>,
    /// The block after it.
    after: Block,
    /// The instruction.
    instr: InstrData,
    /// A register that it writes and the macro does not.
    scratch: Option<Dst>,
    /// It multiplies by three instructions.
    is_product: bool,
}

/// A combination of two values: `dst = value OP sum`.
struct Combined {
    op: Opcode,
    dst: Dst,
    value: Src,
    is_product: bool,
}

impl Scan {
    /// The scan whose first block is `header`, if there is one.
    fn at(program: &Program, machine: &Target, header: Block) -> Option<Self> {
        let chooses = |opcode| matches!(opcode, Opcode::Getone | Opcode::Getlast);
        let mut last = program.blocks[header].instrs.iter().rev().take(2).map(|&instr| program.instrs[instr].opcode);
        if !last.any(chooses) {
            return None;
        }
        let registers = Registers { program, machine };
        registers.scan(header).or_else(|| registers.clusters(header)).filter(|scan| scan.is_alone(program))
    }

    /// Returns true if nothing but the loop runs from its start to its end.
    fn is_alone(&self, program: &Program) -> bool {
        if left_out(Guard::ScanAlone) {
            return true;
        }
        let comes_from_loop = |from: &Block| self.blocks.contains(from);
        let all = |block: Block, test: &dyn Fn(&Block) -> bool| program.blocks[block].predecessors.iter().all(test);
        let mut layout = program.layout.iter().skip_while(|block| **block != self.before).skip(1);
        let follow = layout.by_ref().take(self.blocks.len()).filter(|block| comes_from_loop(block)).count();
        // Lanes that leave the loop would run a block above it before the others run the next iteration.
        let is_after = layout.any(|block| *block == self.after);
        self.before != self.after
            && !self.blocks.contains(&self.before)
            && follow == self.blocks.len()
            && is_after
            && self.blocks[1..].iter().all(|&block| all(block, &comes_from_loop))
            && all(self.blocks[0], &|from| *from == self.before || comes_from_loop(from))
    }

    /// Puts the macro in the place of the loop.
    fn replace(self, program: &mut Program) {
        let Self { before, blocks, after, instr, scratch, .. } = self;
        let last = program.blocks[before].instrs.last().copied();
        if last.is_some_and(|last| program.instrs[last].opcode == Opcode::Jump) {
            program.blocks[before].instrs.pop();
        }
        let undefined = scratch.map(|dst| {
            let src = Src::new(SrcOperand::Undef, dst.class, WriteMask::SCALAR);
            let bits = if dst.class.half { Type::U16 } else { Type::U32 };
            InstrData {
                attrs: Attrs::Move { src: bits, dst: bits, round: Round::Default },
                dsts: [dst].into_iter().collect(),
                srcs: [src].into_iter().collect(),
                ..InstrData::new(Opcode::Mov)
            }
        });
        for data in [instr].into_iter().chain(undefined).chain([InstrData::new(Opcode::Jump)]) {
            let instr = program.instrs.push(data);
            program.blocks[before].instrs.push(instr);
        }
        program.layout.retain(|block| !blocks.contains(block));
        let before_data = &mut program.blocks[before];
        before_data.successors = [Some(after), None];
        redirect(&mut before_data.physical_successors, &blocks, after);
        let after_data = &mut program.blocks[after];
        redirect(&mut after_data.predecessors, &blocks, before);
        redirect(&mut after_data.physical_predecessors, &blocks, before);
    }
}

/// Puts one block in the place of all blocks of a loop.
fn redirect(list: &mut SmallVec<[Block; 2]>, from: &[Block], to: Block) {
    let count = list.len();
    list.retain(|block| !from.contains(block));
    if list.len() < count && !list.contains(&to) {
        list.push(to);
    }
}

/// A program and its registers.
#[derive(Clone, Copy)]
struct Registers<'a> {
    program: &'a Program,
    machine: &'a Target,
}

impl<'a> Registers<'a> {
    /// The loop of `scan.macro`.
    fn scan(self, header: Block) -> Option<Scan> {
        let code = self.code(header)?;
        let [getone] = code[..] else { return None };
        let [exit, other] = self.one_and_others(header, getone, Opcode::Getone)?;
        let mut blocks: SmallVec<[Block; 3]> = SmallVec::from_slice(&[header, exit]);
        if other != header {
            if !self.code(other)?.is_empty() || self.program.blocks[other].successors != [Some(header), None] {
                return None;
            }
            blocks.push(other);
        }
        let [Some(after), None] = self.program.blocks[exit].successors else { return None };
        let code = self.code(exit)?;
        let [first, middle @ .., last] = &code[..] else { return None };
        let (exclusive, sum) = copied(first)?;
        let combined = self.combined(middle, &exclusive)?;
        let (reduction, inclusive) = copied(last)?;
        let Combined { op, dst, value, is_product } = combined;
        let is_chain = same(&reduction, &sum)? && same(&dst, &inclusive)?;
        let [in_exclusive, in_inclusive, in_reduction] = [&exclusive, &dst, &reduction].map(|dst| self.of(dst));
        let in_value = RegisterSet::of_src(self.program, self.machine, &value);
        let are_right = is_shared(&reduction) && is_own(&exclusive);
        let is_overwritten = in_exclusive.meets(&in_value)
            || in_reduction.meets(&in_value)
            || in_exclusive.meets(&in_inclusive)
            || is_product && in_inclusive.meets(&in_value);
        if !is_chain || !are_right || is_overwritten && !left_out(Guard::ScanApart) {
            return None;
        }
        let before = self.before(header, &blocks)?;
        let instr = InstrData {
            attrs: Attrs::Scan { op },
            dsts: [exclusive, dst, reduction].into_iter().collect(),
            srcs: [value, sum].into_iter().collect(),
            ..InstrData::new(Opcode::ScanMacro)
        };
        Some(Scan { before, blocks, after, instr, scratch: None, is_product })
    }

    /// The loop of `scan_clusters.macro`.
    fn clusters(self, body: Block) -> Option<Scan> {
        let code = self.code(body)?;
        let [first, middle @ .., getlast] = &code[..] else { return None };
        let [store, after] = self.one_and_others(body, getlast, Opcode::Getlast)?;
        let end = self.code(store)?;
        let [last, getone] = end[..] else { return None };
        if self.one_and_others(store, getone, Opcode::Getone)? != [after, body] {
            return None;
        }
        let (scratch, sum) = copied(first)?;
        let length = if middle.first()?.opcode == Opcode::MullU { 3 } else { 1 };
        let (one, other) = middle.split_at_checked(length)?;
        let inclusive = self.combined(one, &scratch)?;
        let exclusive = if other.is_empty() { None } else { Some(self.combined(other, &scratch)?) };
        let (reduction, stored) = copied(last)?;
        let is_chain = same(&reduction, &sum)? && same(&inclusive.dst, &stored)?;
        let is_one_operation = exclusive.as_ref().is_none_or(|exclusive| exclusive.op == inclusive.op);
        // The last result may be where the sum was: it is read for the last time then.
        let results: SmallVec<[&Combined; 2]> = [&inclusive].into_iter().chain(&exclusive).collect();
        let last_dst = results.last()?.dst;
        let is_reused =
            !inclusive.is_product && last_dst.place.reg() == scratch.place.reg() && last_dst.class == scratch.class;
        let mut written: SmallVec<[RegisterSet; 4]> = results.iter().map(|result| self.of(&result.dst)).collect();
        if !is_reused {
            written.push(self.of(&scratch));
        }
        written.push(self.of(&reduction));
        let read = |result: &&Combined| RegisterSet::of_src(self.program, self.machine, &result.value);
        let meets_written = |set: &RegisterSet, count: usize| written[..count].iter().any(|other| other.meets(set));
        let is_overwritten = results.iter().map(read).any(|value| meets_written(&value, written.len()))
            || (0..written.len()).any(|i| meets_written(&written[i], i));
        let are_right = is_chain && is_one_operation && is_shared(&reduction) && is_own(&scratch);
        if !are_right || is_overwritten && !left_out(Guard::ScanApart) {
            return None;
        }
        let blocks: SmallVec<[Block; 3]> = SmallVec::from_slice(&[body, store]);
        let before = self.before(body, &blocks)?;
        let instr = InstrData {
            attrs: Attrs::Scan { op: inclusive.op },
            dsts: [reduction].into_iter().chain(results.iter().map(|result| result.dst)).collect(),
            srcs: [sum].into_iter().chain(results.iter().map(|result| result.value)).collect(),
            ..InstrData::new(Opcode::ScanClustersMacro)
        };
        let scratch = (!is_reused).then_some(scratch);
        Some(Scan { before, blocks, after, instr, scratch, is_product: inclusive.is_product })
    }

    /// The instructions of a block except jumps and `nop`; `None` if one of them has another flag than those for waits.
    fn code(self, block: Block) -> Option<SmallVec<[&'a InstrData; 8]>> {
        let instrs = self.program.blocks[block].instrs.iter().map(|&instr| &self.program.instrs[instr]);
        let code: SmallVec<[&'a InstrData; 8]> =
            instrs.filter(|data| !matches!(data.opcode, Opcode::Nop | Opcode::Jump)).collect();
        let waits = InstrFlags::SS | InstrFlags::SY | InstrFlags::JP;
        code.iter().all(|data| data.repeat == 0 && waits.contains(data.flags)).then_some(code)
    }

    /// The successors of the lane or lanes that the branch at the end of a block selects, and of the others: a branch
    /// that names a block has the others jump there.
    fn one_and_others(self, block: Block, branch: &InstrData, opcode: Opcode) -> Option<[Block; 2]> {
        let [Some(first), Some(second)] = self.program.blocks[block].successors else { return None };
        let others = match branch.attrs {
            Attrs::Branch { target: Some(target) } => target,
            _ => second,
        };
        match others {
            _ if branch.opcode != opcode || first == second => None,
            _ if others == second => Some([first, second]),
            _ if others == first => Some([second, first]),
            _ => None,
        }
    }

    /// The only block that leads into the loop.
    fn before(self, header: Block, blocks: &[Block]) -> Option<Block> {
        let into = self.program.blocks[header].predecessors.iter();
        let mut from = into.copied().filter(|from| !blocks.contains(from));
        let before = from.next().filter(|_| from.next().is_none())?;
        (self.program.blocks[before].successors == [Some(header), None]).then_some(before)
    }

    fn of(self, dst: &Dst) -> RegisterSet {
        RegisterSet::of_dst(self.program, self.machine, dst)
    }

    /// `dst = value OP sum`, in one instruction, or in three that multiply 32 bits.
    fn combined(self, code: &[&InstrData], sum: &Dst) -> Option<Combined> {
        let is_sum = |src: &Src| same(sum, src) == Some(true);
        let first = code.first()?;
        let ([dst], [value, of_sum, ..]) = (&first.dsts[..], &first.srcs[..]) else { return None };
        let (dst, value) = (result(dst)?, operand(value)?);
        let is_value = value.place().is_none() || matches!(value.class.file, RegFile::General | RegFile::Shared);
        if !is_sum(of_sum) || !is_value || !is_own(&dst) || dst.class.half != sum.class.half {
            return None;
        }
        match code {
            [one] if one.srcs.len() == 2 => {
                let half = dst.class.half;
                let op = if one.opcode == Opcode::MulS24 && half { Opcode::MulU24 } else { one.opcode };
                let alu = ir3_alu::kernel(one).filter(|alu| alu.clamp.is_none())?;
                let Kernel::Two(kernel) = alu.kernel else { return None };
                let is_product = op == Opcode::MulU24 && half;
                let is_operation = is_product || std::ptr::eq(kernel, ir3_alu::combine(op, half)?);
                (is_operation && value.class.half == half).then_some(Combined { op, dst, value, is_product: false })
            }
            [low, cross, other] => {
                let product = |data: &InstrData, opcode: Opcode, [a, b]: [&Src; 2], adds: bool| {
                    let [x, y, rest @ ..] = &data.srcs[..] else { return false };
                    data.opcode == opcode
                        && data.dsts.len() == 1
                        && result(&data.dsts[0]).is_some_and(|to| to == dst)
                        && operand(x).zip(operand(y)) == operand(a).zip(operand(b))
                        && match rest {
                            [] => !adds,
                            [before] => adds && same(&dst, before) == Some(true),
                            _ => false,
                        }
                };
                let (a, b) = (&value, of_sum);
                let is_product = !dst.class.half
                    && !value.class.half
                    && product(low, Opcode::MullU, [a, b], false)
                    && product(cross, Opcode::MadshM16, [a, b], true)
                    && product(other, Opcode::MadshM16, [b, a], true);
                is_product.then_some(Combined { op: Opcode::MulU24, dst, value, is_product })
            }
            _ => None,
        }
    }
}

/// A move of bits, the low half or all: its destination and source.
fn copied(data: &InstrData) -> Option<(Dst, Src)> {
    let Attrs::Move { src: from, dst: to, .. } = data.attrs else { return None };
    let ([dst], [src]) = (&data.dsts[..], &data.srcs[..]) else { return None };
    let (dst, src) = (result(dst)?, operand(src)?);
    let bits = |half: bool| if half { Type::U16 } else { Type::U32 };
    let keeps = from == bits(src.class.half) && to == bits(dst.class.half);
    (data.opcode == Opcode::Mov && keeps).then_some((dst, src))
}

/// A destination of one register, without marks.
fn result(dst: &Dst) -> Option<Dst> {
    let place = Place::Reg(register(&dst.place)?);
    (dst.mask == WriteMask::SCALAR).then_some(Dst { place, flags: OperandFlags::default(), ..*dst })
}

/// A source of one register, or a number or constant, without marks.
fn operand(src: &Src) -> Option<Src> {
    let operand = match &src.operand {
        SrcOperand::Place(place) => SrcOperand::Place(Place::Reg(register(place)?)),
        SrcOperand::Immediate(_) | SrcOperand::Const(_) => src.operand,
        SrcOperand::ConstRelative(_) | SrcOperand::Undef => return None,
    };
    let is_plain = src.mods == Mods::default() && src.mask == WriteMask::SCALAR;
    is_plain.then_some(Src { operand, flags: OperandFlags::default(), ..*src })
}

fn register(place: &Place) -> Option<PhysReg> {
    match *place {
        Place::Reg(reg) | Place::Assigned(_, reg) if reg != PhysReg::INVALID => Some(reg),
        _ => None,
    }
}

/// Returns true if a source reads the content of a destination.
fn same(dst: &Dst, src: &Src) -> Option<bool> {
    let src = operand(src)?;
    Some(src.class == dst.class && src.place().and_then(register) == register(&dst.place))
}

fn is_shared(dst: &Dst) -> bool {
    dst.class.file == RegFile::Shared
}

fn is_own(dst: &Dst) -> bool {
    dst.class.file == RegFile::General
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::RegClass;

    /// Either 24-bit multiplication of two halves is the product that a scan by products computes.
    #[test]
    fn products_of_halves_are_products() {
        let Some(product) = ir3_alu::combine(Opcode::MulU24, true) else { panic!("a product") };
        let edges = [0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff];
        let others: [u32; 64] = std::array::from_fn(|i| edges.get(i).copied().unwrap_or(i as u32 * 0x03f1) & 0xffff);
        for opcode in [Opcode::MulS24, Opcode::MulU24] {
            let src = Src::new(SrcOperand::Undef, RegClass::HALF, WriteMask::SCALAR);
            let dst = Dst::new(Place::Reg(PhysReg(0)), RegClass::HALF, WriteMask::SCALAR);
            let data = InstrData {
                dsts: [dst].into_iter().collect(),
                srcs: [src, src].into_iter().collect(),
                ..InstrData::new(opcode)
            };
            let Some(Kernel::Two(kernel)) = ir3_alu::kernel(&data).map(|alu| alu.kernel) else { panic!("{opcode}") };
            for a in 0..=0xffff_u32 {
                let [mut one, mut two] = [[a; 64]; 2];
                let found = [(kernel, &mut one), (product, &mut two)].map(|(kernel, row)| {
                    let values = *row;
                    (kernel.run)(row, &values, &others);
                    *row
                });
                assert_eq!(found[0], found[1], "{opcode} of {a:#x}");
            }
        }
    }
}
