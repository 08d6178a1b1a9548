//! Decoding: from ir3 programs to flat arrays of operations.

mod alu;
mod flow;
mod lanes;
mod memory;
mod preamble;

pub use lanes::lone_half;

use super::op::{ConstWidth, Copies, DecodedBlock, DecodedOp, SlotElements, Which};
use super::slots::{RegisterBases, SlotAllocator, SlotError, modifier};
use super::storage::{Loc, Modifier, Read, Write};
use super::{Decoded, InputSlot};
use crate::environment::exchange::exchange;
use crate::environment::memory::MAX_SCRATCH_BYTES;
use crate::environment::sync::Sync;
use crate::interp::trace::Watched;
use crate::interp::{Places, Unsupported, waves};
use crate::machine::rules::takes_one_lane;
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::opcode::Numeric;
use ir3_compiler::ir3::{
    self, Attrs, Category, Dst, InputKind, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass,
    RegFile, ShaderStage, Src, SrcOperand, SystemValue,
};
use ir3_compiler::target::Target;
use smallvec::SmallVec;

/// Moves that happen at once, while they are collected.
type Moves = SmallVec<[(Read, Write); 4]>;

/// The result of decoding an instruction.
type Result<T = ()> = std::result::Result<T, SlotError>;

/// A program that is being decoded.
pub(super) struct Decoder<'a> {
    program: &'a Program,
    target: &'a Target,
    slots: SlotAllocator<'a>,
    /// The position of each block in the layout.
    position: SecondaryMap<ir3::Block, u32>,
    /// The current instruction.
    instr: Instr,
    out: Decoded,
    /// A preamble has been entered.
    has_preamble: bool,
    /// The table for traced runs.
    watched: Option<Vec<Watched<Read>>>,
}

/// Decodes a program.
pub(super) fn decode(program: &Program, target: &Target) -> std::result::Result<Decoded, Unsupported> {
    check_whole(program)?;
    decode_with(program, target, None, false).map(|(decoded, ..)| decoded)
}

/// Decodes a program, and returns the names of its locations.
pub(super) fn decode_with_places(
    program: &Program,
    target: &Target,
) -> std::result::Result<(Decoded, Places), Unsupported> {
    check_whole(program)?;
    decode_with(program, target, None, false).map(|(decoded, _, slots)| (decoded, slots.places()))
}

/// Decodes a program that has one instruction a block, and returns the slots of its registers. It may be a part of a
/// preamble.
pub(super) fn decode_with_registers(
    program: &Program,
    target: &Target,
) -> std::result::Result<(Decoded, RegisterBases), Unsupported> {
    decode_with(program, target, None, true).map(|(decoded, _, slots)| (decoded, slots.bases()))
}

/// Decodes a program, with a table of the positions of its instructions and their operands.
pub(super) fn decode_watched(
    program: &Program,
    target: &Target,
) -> std::result::Result<(Decoded, Vec<Watched<Read>>), Unsupported> {
    check_whole(program)?;
    let (decoded, table, _) = decode_with(program, target, Some(Vec::new()), false)?;
    Ok((decoded, table.unwrap_or_default()))
}

/// Refuses a half of a fine derivative without the other one, and a block that leads nowhere and has no `end`.
fn check_whole(program: &Program) -> std::result::Result<(), Unsupported> {
    for (position, &block) in program.layout.iter().enumerate() {
        let data = &program.blocks[block];
        let instrs = data.instrs.iter().map(|&instr| &program.instrs[instr]);
        if data.successors == [None, None] && !instrs.clone().any(|data| data.opcode.is_terminator()) {
            let what = "a block that has neither `end` nor a successor".to_owned();
            return Err(Unsupported { what, place: format!("block {position}") });
        }
        if let Some(at) = lone_half(instrs) {
            return Err(lone(format!("block {position}, instruction {at}")));
        }
    }
    Ok(())
}

/// The refusal of a half of a fine derivative.
pub(super) fn lone(place: String) -> Unsupported {
    Unsupported { what: "a half of a fine derivative that is not next to the other one".to_owned(), place }
}

/// The instructions and operands that a traced run records; `None` for other runs.
type WatchTable = Option<Vec<Watched<Read>>>;

fn decode_with<'a>(
    program: &'a Program,
    target: &'a Target,
    watched: WatchTable,
    has_preamble: bool,
) -> std::result::Result<(Decoded, WatchTable, SlotAllocator<'a>), Unsupported> {
    let mut position = SecondaryMap::with_default(u32::MAX);
    position.resize(program.blocks.len());
    for (i, &block) in program.layout.iter().enumerate() {
        position[block] = i as u32;
    }
    let mut decoder = Decoder {
        program,
        target,
        slots: SlotAllocator::new(program, target.merged_regs),
        position,
        instr: Instr::from_u32(0),
        out: Decoded::empty(program),
        has_preamble,
        watched,
    };
    if program.scratch_size > MAX_SCRATCH_BYTES {
        let what = format!("{} bytes of scratch memory, more than {MAX_SCRATCH_BYTES}", program.scratch_size);
        return Err(Unsupported { what, place: "the program".to_owned() });
    }
    let instructions = program.instruction_count();
    decoder.out.ops.reserve(instructions);
    decoder.out.copies.reserve(instructions / 4);
    decoder.out.blocks.reserve(program.layout.len());
    for &block in &program.layout {
        decoder.block(block).map_err(|problem| decoder.unsupported(block, problem))?;
    }
    let mut out = decoder.out;
    out.slots = decoder.slots.count;
    out.narrow = std::mem::take(&mut decoder.slots.narrow);
    out.immediates = decoder.slots.immediates();
    out.undefined = decoder.slots.undefined;
    if out.undefined.is_some() {
        out.values = decoder.slots.values();
    }
    out.consts = decoder.slots.consts();
    let has_barrier = out.ops.iter().any(|op| matches!(op, DecodedOp::Sync(Sync::Barrier(_))));
    out.waves = waves::count(out.launch, has_barrier);
    Ok((out, decoder.watched, decoder.slots))
}

impl<'a> Decoder<'a> {
    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    pub(super) fn slots(&mut self) -> &mut SlotAllocator<'a> {
        &mut self.slots
    }

    pub(super) fn position(&self, block: ir3::Block) -> u32 {
        self.position[block]
    }

    /// The point before the next operation, as [`Watch`](super::watch::Watch) counts them.
    pub(super) fn here(&self) -> u32 {
        (self.out.ops.len() + self.out.blocks.len()) as u32
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    pub(super) fn push_watched(&mut self, watched: Watched<Read>) {
        self.watched.get_or_insert_default().push(watched);
    }
}

impl Decoder<'_> {
    fn unsupported(&self, block: ir3::Block, problem: SlotError) -> Unsupported {
        let data = self.program.instrs.get(self.instr);
        let name = data.map_or("program", |data| data.opcode.name());
        let at = self.program.blocks[block].instrs.iter().position(|&i| i == self.instr);
        let mut place = format!("block {}", self.position[block]);
        if let Some(at) = at {
            place = format!("{place}, instruction {at}");
        }
        Unsupported { what: format!("`{name}`: {problem}"), place }
    }

    fn block(&mut self, block: ir3::Block) -> Result {
        let start = self.out.ops.len() as u32;
        let data = &self.program.blocks[block];
        let mut terminator = None;
        let mut skip = 0;
        self.watch_phis(block);
        for (i, &instr) in data.instrs.iter().enumerate() {
            self.instr = instr;
            let op = self.program.instrs[instr].opcode;
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let first = self.here();
            if op == Opcode::XorB && self.exchange(&data.instrs[i..])? {
                skip = 2;
                continue;
            }
            if let Some(first) = terminator {
                // Time passes there, or the other side of a branch is named, too.
                if op == Opcode::Nop || self.completes(block, first, instr) {
                    continue;
                }
                return Err("more than one terminator in a block".to_owned());
            }
            if op == Opcode::Prede {
                let mut after = data.instrs[i + 1..].iter().map(|&instr| self.program.instrs[instr].opcode);
                if after.any(|opcode| opcode != Opcode::Nop && !opcode.is_terminator()) {
                    return Err("an end of predication before the end of the block".to_owned());
                }
            }
            if !self.is_in_place(op, &data.instrs, i) {
                return Err(
                    "expected `unlock` right after `lock`: their exclusion of other waves is not modelled".to_owned()
                );
            }
            if op.is_terminator() {
                terminator = Some(instr);
            } else {
                self.instr(&self.program.instrs[instr])?;
                self.watch(instr, first);
            }
        }
        let last = terminator;
        let terminator = self.terminator(block, terminator)?;
        if let Some(instr) = last {
            self.watch_terminator(instr);
        }
        let end = self.out.ops.len() as u32;
        self.out.blocks.push(DecodedBlock { start, end, instructions: data.instrs.len() as u32, terminator });
        Ok(())
    }

    /// Records the name of an instruction that may be undefined.
    fn site(&mut self, data: &InstrData) {
        self.out.sites.push((self.instr, data.opcode.name()));
    }

    fn push(&mut self, op: DecodedOp) {
        self.out.ops.push(op);
    }

    fn instr(&mut self, data: &InstrData) -> Result {
        use Opcode::*;
        match data.opcode {
            // Phis are copies on the edges into their block.
            Phi | Nop | Prede => Ok(()),
            Shpe if self.has_preamble => Ok(()),
            Shpe => Err("no preamble that it ends".to_owned()),
            Setrm => Err("another rounding mode".to_owned()),
            Kill | Demote => {
                self.site(data);
                let predicate = self.source(data, 0, 0)?;
                let op = if data.opcode == Kill { DecodedOp::Kill } else { DecodedOp::Demote };
                self.push(op(predicate, self.instr));
                Ok(())
            }
            Input => self.input(data),
            Getfiberid => {
                let dst = self.dst(data, 0)?;
                let dst_of_lane = self.slots.write(dst, 0)?;
                let kind = InputKind::System(SystemValue::SubgroupInvocation);
                let half = dst.class.half;
                self.push(DecodedOp::Input(self.out.inputs.len() as u32));
                self.out.inputs.push(InputSlot { kind, component: 0, half, dst: dst_of_lane, clash: false });
                Ok(())
            }
            Collect => {
                let mut pairs = Moves::new();
                let dst = self.dst(data, 0)?;
                // Components that an alias has in place of a register are left out.
                if dst.mask.span() != data.srcs.len() as u32 {
                    return Err("as many components as sources".to_owned());
                }
                for (i, src) in data.srcs.iter().enumerate().filter(|&(i, _)| dst.mask.contains(i as u32)) {
                    let src = Read::plain(self.slots.loc(src, 0, ConstWidth::Truncated)?);
                    pairs.push((src, self.slots.write(dst, i as u32)?));
                }
                self.copies_op(pairs)
            }
            Split => {
                let Attrs::Split { offset } = data.attrs else { return Err("no component".to_owned()) };
                let dst = self.dst(data, 0)?;
                let src = self.src(data, 0)?;
                let mut pairs = Moves::new();
                for k in dst.mask.components() {
                    let src = self.slots.loc(src, u32::from(offset) + k, ConstWidth::Truncated)?;
                    pairs.push((Read::plain(src), self.slots.write(dst, k)?));
                }
                self.copies_op(pairs)
            }
            ParallelCopy => {
                if data.dsts.len() != data.srcs.len() {
                    return Err("as many destinations as sources".to_owned());
                }
                let mut pairs = Moves::new();
                for (dst, src) in data.dsts.iter().zip(&data.srcs) {
                    self.whole_copy(dst, src, &mut pairs)?;
                }
                self.copies_op(pairs)
            }
            TexPrefetch => self.texture(data),
            Mov | Movp | Swz | Gat | Sct => self.mov(data),
            Movmsk | BallotMacro | AnyMacro | AllMacro | ElectMacro | ReadCondMacro | ReadFirstMacro
            | ReadGetlastMacro | ShpsMacro | ScanMacro | ScanClustersMacro | Dsx | Dsy | DsxppMacro | DsyppMacro
            | Dsxpp1 | Dsypp1 | BrcstActive | QuadShuffleBrcst | QuadShuffleHoriz | QuadShuffleVert
            | QuadShuffleDiag | BaryF | FlatB | Ldlv => self.cross_lane(data),
            Bar | Fence => {
                let sync = Sync::of_instr(data, self.target).ok_or("which memory it orders is not known")?;
                self.push(DecodedOp::Sync(sync));
                Ok(())
            }
            Ccinv => {
                if let Some(sync) = Sync::of_instr(data, self.target) {
                    self.push(DecodedOp::Sync(sync));
                }
                Ok(())
            }
            // Time is not modelled. Between `lock` and `unlock` there is nothing, see `is_in_place`.
            Sleep | Lock | Unlock => Ok(()),
            // One that is part of the instruction that it is for, or of the outputs.
            Alias if data.attrs == Attrs::None => Ok(()),
            Alias => Err("an alias that is not folded into its user".to_owned()),
            PushConstsLoadMacro | Stsc => self.copy_push_constants(data),
            op => match op.category() {
                Category::Alu2 | Category::Alu3 | Category::Sfu => self.alu(data),
                Category::Memory => {
                    self.site(data);
                    self.memory(data)
                }
                Category::Texture => self.texture(data),
                _ => Err("not executed by this interpreter".to_owned()),
            },
        }
    }

    /// Returns false for a `lock` that `unlock` does not follow, or the other way round. (Mesa ends compute shaders of
    /// a7xx with both.)
    fn is_in_place(&self, op: Opcode, instrs: &[Instr], at: usize) -> bool {
        let opcode = |instr: &Instr| self.program.instrs[*instr].opcode;
        match op {
            Opcode::Lock => instrs[at + 1..].iter().map(opcode).find(|op| *op != Opcode::Nop) == Some(Opcode::Unlock),
            Opcode::Unlock => instrs[..at].iter().rev().map(opcode).find(|op| *op != Opcode::Nop) == Some(Opcode::Lock),
            _ => true,
        }
    }

    /// Decodes three `xor.b` that exchange two registers, if the list begins with them.
    fn exchange(&mut self, instrs: &[Instr]) -> Result<bool> {
        let [first, second, third, ..] = *instrs else { return Ok(false) };
        let program = self.program;
        let Some((a, b)) = exchange([first, second, third].map(|instr| &program.instrs[instr])) else {
            return Ok(false);
        };
        let here = self.here();
        let (to_a, to_b) = (self.slots.write(a, 0)?, self.slots.write(b, 0)?);
        let pairs = [(Read::plain(to_b.loc), to_a), (Read::plain(to_a.loc), to_b)];
        self.copies_op(pairs.into_iter().collect())?;
        self.watch_exchange(self.instr, a, b, here);
        Ok(true)
    }

    fn dst<'d>(&self, data: &'d InstrData, i: usize) -> Result<&'d Dst> {
        data.dsts.get(i).ok_or_else(|| format!("no destination {i}"))
    }

    fn src<'d>(&self, data: &'d InstrData, i: usize) -> Result<&'d Src> {
        data.srcs.get(i).ok_or_else(|| format!("no source {i}"))
    }

    /// Component `component` of source `i`; an element that is addressed indirectly is gathered first.
    fn source(&mut self, data: &InstrData, i: usize, component: u32) -> Result<Read> {
        let src = self.src(data, i)?;
        let float = match &data.attrs {
            Attrs::Move { src, .. } => src.is_float(),
            _ => data.opcode.info().numeric == Numeric::Float,
        };
        // A half operand of a float operation reads a word of the constant file as a float.
        let demote = if float { ConstWidth::Rounded } else { ConstWidth::Truncated };
        let indirect = match &src.operand {
            SrcOperand::ConstRelative(offset) => {
                let index = self.index(data)?;
                let to = self.slots.fresh(1);
                let width = if src.class.half { demote } else { ConstWidth::Full };
                self.push(DecodedOp::GatherConst { offset: i32::from(*offset) + component as i32, index, width, to });
                Some(to)
            }
            SrcOperand::Place(place) => match self.elements(place, src.class)? {
                Some((array, offset)) => {
                    let index = self.index(data)?;
                    let to = self.slots.fresh(1);
                    self.push(DecodedOp::Gather { array, offset: offset + component as i32, index, to });
                    Some(to)
                }
                None => None,
            },
            _ => None,
        };
        let loc = match indirect {
            Some(slot) => Loc::whole(slot),
            None => self.slots.loc(src, component, demote)?,
        };
        Ok(Read { loc, modifier: modifier(data, i)? })
    }

    /// The elements that an indirect place selects from, and the constant that is added to the index.
    fn elements(&mut self, place: &Place, class: RegClass) -> Result<Option<(SlotElements, i32)>> {
        Ok(match place {
            Place::Array(access) if access.relative => match self.slots.array(access, class)? {
                Some(elements) => Some((elements, i32::from(access.offset))),
                // The array is never written: every index reads poison.
                None => Some((SlotElements { slot: 0, first: 0, halves: false, length: 0 }, 0)),
            },
            Place::Relative { offset, size } => {
                self.out.has_register_arrays |= *size > 0;
                let (elements, first) = self.slots.relative(class, *offset, *size)?;
                Some((elements, i32::from(*offset) - i32::from(first)))
            }
            _ => None,
        })
    }

    /// The index of an indirect operand: the address register among the sources, or `a0.x`.
    fn index(&mut self, data: &InstrData) -> Result<Read> {
        let address = data.srcs.iter().skip(1).rev().find(|src| src.class.file == RegFile::Address);
        let loc = match address {
            Some(src) => self.slots.loc(src, 0, ConstWidth::Truncated)?,
            None => self.slots.place(&Place::Reg(PhysReg::A0_X), RegClass::ADDRESS, 0)?,
        };
        // Address registers are signed 16-bit numbers.
        Ok(Read::plain(loc))
    }

    /// Component `component` of destination `i`, and the operation that follows the write: the scatter of an element
    /// that is addressed indirectly; the choice of the first active lane, where a move takes a value that lanes have of
    /// their own to a register that they share. A write to a version of an array begins with a copy of the previous
    /// version.
    fn destination(&mut self, data: &InstrData, i: usize, component: u32) -> Result<(Write, Option<DecodedOp>)> {
        let dst = self.dst(data, i)?;
        if let Place::Array(access) = &dst.place
            && component == 0
            && access.base.is_none()
            && access.value.is_some()
        {
            self.next_version(data, dst)?;
        }
        match self.elements(&dst.place, dst.class)? {
            Some((array, offset)) => {
                let index = self.index(data)?;
                let temporary = self.scratch_slot();
                let offset = offset + component as i32;
                self.site(data);
                let from = Read::plain(temporary);
                let scatter = DecodedOp::Scatter { array, offset, index, from, instr: self.instr };
                Ok((Write { loc: temporary, shared: false }, Some(scatter)))
            }
            None => {
                let write = self.slots.write(dst, component)?;
                if !write.shared || !takes_one_lane(data) {
                    return Ok((write, None));
                }
                let temporary = self.scratch_slot();
                let first = DecodedOp::ReadLane { which: Which::First, src: Read::plain(temporary), dst: write };
                Ok((Write { loc: temporary, shared: false }, Some(first)))
            }
        }
    }

    fn next_version(&mut self, data: &InstrData, dst: &Dst) -> Result {
        let Place::Array(new) = &dst.place else { return Ok(()) };
        let previous = data.srcs.iter().find_map(|src| match src.place() {
            Some(Place::Array(old)) if src.flags.contains(OperandFlags::TIED) && old.array == new.array => Some(*old),
            _ => None,
        });
        let Some(to) = self.slots.array(new, dst.class)? else { return Ok(()) };
        let from = match &previous {
            Some(old) => self.slots.array(old, dst.class)?,
            None => None,
        };
        if from.is_some_and(|from| from.slot == to.slot) {
            return Ok(());
        }
        let mut pairs = Moves::new();
        for k in 0..to.length {
            let src = from.map_or_else(|| self.slots.undefined(), |from| from.loc(k));
            pairs.push((Read::plain(src), Write { loc: to.loc(k), shared: false }));
        }
        self.copies_op(pairs)
    }

    /// The moves of a phi or of a parallel copy: whole vectors, whole arrays.
    fn whole_copy(&mut self, dst: &Dst, src: &Src, pairs: &mut Moves) -> Result {
        if let Place::Array(to) = &dst.place {
            let Some(to) = self.slots.array(to, dst.class)? else { return Ok(()) };
            let from = match src.place() {
                Some(Place::Array(from)) => self.slots.array(from, src.class)?,
                Some(_) => return Err("array copied from an operand that is no array".to_owned()),
                None => None,
            };
            for k in 0..to.length {
                let read = from.map_or_else(|| self.slots.undefined(), |from| from.loc(k));
                pairs.push((Read::plain(read), Write { loc: to.loc(k), shared: dst.class.file == RegFile::Shared }));
            }
            return Ok(());
        }
        for k in dst.mask.components() {
            let read = self.slots.plain(src, k)?;
            let read = narrowed(read, src.class, dst.class);
            pairs.push((read, self.slots.write(dst, k)?));
        }
        Ok(())
    }

    fn copies_op(&mut self, pairs: Moves) -> Result {
        if let [(read, write)] = pairs[..] {
            self.push(DecodedOp::Copy(read, write));
        } else if !pairs.is_empty() {
            let copies = self.copies(pairs);
            self.push(DecodedOp::Copies(copies));
        }
        Ok(())
    }

    /// Records moves that happen at once.
    fn copies(&mut self, pairs: Moves) -> Copies {
        let staged = pairs
            .iter()
            .enumerate()
            .any(|(i, (_, write))| pairs[i + 1..].iter().any(|(read, _)| read.loc.overlaps(write.loc)));
        if staged {
            self.out.stage = self.out.stage.max(3 * pairs.len());
        }
        let start = self.out.copies.len() as u32;
        self.out.copies.extend(pairs);
        Copies { start, end: self.out.copies.len() as u32, staged }
    }

    fn input(&mut self, data: &InstrData) -> Result {
        let Attrs::Input(Some(kind)) = data.attrs else {
            return Err("the text does not say which input it reads (in a log, the list of inputs after the final assembly does)".to_owned());
        };
        let dst = self.dst(data, 0)?;
        for k in dst.mask.components() {
            let write = self.slots.write(dst, k)?;
            let input = self.out.inputs.len() as u32;
            let mut clash = false;
            for other in &mut self.out.inputs {
                let overlaps = other.dst.loc.overlaps(write.loc);
                other.clash |= overlaps;
                clash |= overlaps;
            }
            self.out.inputs.push(InputSlot { kind, component: k, half: dst.class.half, dst: write, clash });
            self.push(DecodedOp::Input(input));
        }
        Ok(())
    }
}

/// Truncates a full value that is moved to a half destination.
fn narrowed(read: Read, from: RegClass, to: RegClass) -> Read {
    match read.modifier {
        Modifier::None if to.half && !from.half => Read { loc: read.loc, modifier: Modifier::Low },
        _ => read,
    }
}

/// Returns true if lanes of a program of this stage may be helpers.
pub(super) fn is_fragment(program: &Program) -> bool {
    program.stage == Some(ShaderStage::Fragment)
}
