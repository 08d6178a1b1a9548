//! The code as the transfer functions read it: each instruction with its unit, its waits and the bits of its operands,
//! computed once.

use super::arrays::{self, ArrayBases, Side};
use super::consts::{ConstWords, ConstWrites};
use super::rules::{self, ConstWrite, SourceWait, Unit, Wait};
use super::units::{self, Piece};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{
    InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile, Src, SrcOperand, WriteMask,
};
use ir3_compiler::machine::{Code, CodeError, CodeInstr, Ip, OutputRegister};
use ir3_compiler::target::Target;
use smallvec::SmallVec;
use std::ops::Range;

/// A register of an operand.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The register.
    pub piece: Piece,
    /// Slots after the issue of the instruction at which it is read, or written.
    pub delay: u16,
    /// The only one of the repetitions that reads or writes it; none if all of them do.
    pub repetition: Option<u16>,
    /// The operand is a half register.
    pub half: bool,
    /// The file.
    pub file: RegFile,
}

impl Operand {
    /// Its bits. A full register has an even number, so it never straddles two words.
    pub fn bits(&self) -> Bits {
        let Self { piece, half, .. } = *self;
        Bits { word: (piece.bit / 64) as u8, half, bits: ((1 << piece.width) - 1) << (piece.bit % 64) }
    }
}

/// Bits of one word of a mask.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    /// The word.
    pub word: u8,
    /// The operand is a half register.
    pub half: bool,
    /// The bits.
    pub bits: u64,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its unit.
    pub unit: Unit,
    /// The opcode.
    pub opcode: Opcode,
    /// It has an `(ss)` that is encoded.
    pub ss: bool,
    /// It has a `(sy)`.
    pub sy: bool,
    /// Issue slots of the instruction itself.
    pub slots: u32,
    /// Slots that pass after it: `(nopN)`.
    pub nop: u32,
    /// The flag with which readers of its results wait, in addition to slots.
    pub result: Wait,
    /// The event after which its sources have been read.
    pub source: SourceWait,
    /// The one lane of each quad that it reads and writes.
    pub quad_lane: Option<u8>,
    /// It is the last of four that follow each other and write the same registers, each in its lane of the quads.
    pub completes_quads: bool,
    /// Its write to the constant file.
    pub const_write: ConstWrite,
    /// The writes to the constant file whose words it reads and that may come before it, on some path.
    pub read_writes: ConstWrites,
    /// Its own write among these, as a set.
    pub own_write: ConstWrites,
    /// The words of the constant file that it names, in order.
    pub const_reads: Range<u32>,
    /// The words of the constant file that it writes, if they are known; none otherwise.
    pub const_words: Range<u32>,
    /// It reads memory, textures or barriers: an access that a barrier before it orders.
    pub accesses: bool,
    /// It is the second of a pair that is one operation: it waits for nothing.
    pub paired: bool,
    /// The operand that a repetition reads before the result of an earlier one is available, with the slots that are
    /// missing.
    pub own_read: Option<(Operand, u32)>,
    /// The reading of `a1.x` waits with `(ss)`.
    pub early_a1: bool,
    /// A block of the compiler begins here: after a branch, where one leads to, or where lanes join.
    pub starts_block: bool,
    /// Registers read, in order.
    pub reads: Range<u32>,
    /// Registers written, in order.
    pub writes: Range<u32>,
    /// The registers that it reads, as bits.
    pub read_bits: Range<u32>,
    /// The registers that it writes, as bits.
    pub write_bits: Range<u32>,
}

/// An operand that is no register of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepError {
    /// The instruction.
    pub at: Ip,
    /// Its opcode.
    pub opcode: Opcode,
    /// The number of the operand's register.
    pub number: u16,
}

/// All instructions.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The steps by position.
    pub steps: Vec<Step>,
    operands: Vec<Operand>,
    bits: Vec<Bits>,
    const_words: Vec<Range<u32>>,
    preamble_writes: Option<ConstWords>,
}

/// Final code with its steps, which the hazard checker and the machine read.
#[derive(Clone, Debug)]
pub struct FinalCode {
    /// The code.
    pub code: Code,
    /// Its steps.
    pub steps: Steps,
}

/// A program that is not final code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFinal {
    /// It has no form as code.
    #[error("{place}: a program that is not final: {}", .0.what, place = .0.place)]
    Code(CodeError),
    /// An operand is no register of the machine.
    #[error("{at}: `{opcode}`: no register {number}", at = .0.at, opcode = .0.opcode, number = .0.number)]
    Register(StepError),
}

impl FinalCode {
    /// Flattens a final program and decodes its steps.
    ///
    /// # Errors
    /// If the program is not final, or an operand is no register of the machine.
    pub fn of_program(program: &Program, target: &Target) -> Result<Self, NotFinal> {
        Self::new(Code::from_program(program).map_err(NotFinal::Code)?, target).map_err(NotFinal::Register)
    }

    /// Decodes the steps of code.
    ///
    /// # Errors
    /// If an operand is no register of the machine.
    pub fn new(code: Code, target: &Target) -> Result<Self, StepError> {
        let steps = Steps::new(&code, &ArrayBases::default(), target)?;
        Ok(Self { code, steps })
    }
}

impl Steps {
    /// Decodes the code into steps, with the registers that each reads and writes.
    ///
    /// # Errors
    /// If an operand is no register of the machine.
    pub fn new(code: &Code, bases: &ArrayBases, target: &Target) -> Result<Self, StepError> {
        let early = early_preamble(code, target);
        let count = code.instrs.len();
        let mut this = Self {
            steps: Vec::with_capacity(count),
            operands: Vec::with_capacity(3 * count),
            bits: Vec::with_capacity(3 * count),
            const_words: Vec::new(),
            preamble_writes: ConstWords::of(code),
        };
        let starts = block_starts(code);
        for (ip, instr) in &code.instrs {
            let data = &instr.data;
            let early = early.contains(&ip.index());
            let outputs =
                if matches!(data.opcode, Opcode::End | Opcode::Chmask) { &code.interface.outputs[..] } else { &[] };
            let step = this.step(data, outputs, (ip, bases), target, early).map_err(|reg| StepError {
                at: ip,
                opcode: data.opcode,
                number: reg.0,
            })?;
            let pair = data.flags.contains(InstrFlags::PAIR);
            let mut before = (0..ip.index()).rev().map(|before| &code.instrs[Ip::new(before)].data);
            let paired = pair && before.find(|data| !only_passes_time(data)).is_some_and(|first| is_pair(first, data));
            let completes_quads = completes_quads(&code.instrs.as_values_slice()[..=ip.index()]);
            this.steps.push(Step { paired, completes_quads, starts_block: starts[ip.index()], ..step });
        }
        Ok(this)
    }

    /// The registers of a range.
    pub fn operands(&self, range: &Range<u32>) -> &[Operand] {
        &self.operands[range.start as usize..range.end as usize]
    }

    /// Words of the constant file that instructions name, of a range.
    pub fn const_words(&self, range: &Range<u32>) -> &[Range<u32>] {
        &self.const_words[range.start as usize..range.end as usize]
    }

    /// The bits of a range.
    pub fn bits(&self, range: &Range<u32>) -> &[Bits] {
        &self.bits[range.start as usize..range.end as usize]
    }

    fn step(
        &mut self,
        data: &InstrData,
        outputs: &[OutputRegister],
        (at, bases): (Ip, &ArrayBases),
        target: &Target,
        early_a1: bool,
    ) -> Result<Step, PhysReg> {
        let base = |side: Side| bases.get(at, side);
        let unit = Unit::of(data, target);
        let (operands, bits) = (self.operands.len(), self.bits.len());
        let mut read_writes = ConstWrites::default();
        let const_reads = self.const_words.len();
        let outputs = outputs.iter().map(|output| &output.src);
        let moves = is_several_moves(data);
        for (n, src) in rules::read_sources(data).iter().chain(outputs).enumerate() {
            let place = match &src.operand {
                SrcOperand::Place(place) => place,
                SrcOperand::Const(word) => {
                    let mask = repeated_mask(data, src.mask, src.flags);
                    if let Some(written) = &self.preamble_writes {
                        read_writes.extend(written.before(at, *word, mask.span() as u16));
                        self.const_words.push(u32::from(*word)..u32::from(*word) + mask.span());
                    }
                    continue;
                }
                SrcOperand::ConstRelative(offset) => {
                    let words = bases.consts(*offset).unwrap_or(0..u16::MAX);
                    if let Some(written) = &self.preamble_writes {
                        read_writes.extend(written.before(at, words.start, words.end - words.start));
                    }
                    continue;
                }
                SrcOperand::Immediate(_) | SrcOperand::Undef => continue,
            };
            let mut delay = 0;
            if matches!(data.opcode, Opcode::Swz | Opcode::Gat) {
                delay += n as u16;
            }
            if n == 2 && rules::reads_third_late(data.opcode) {
                delay += rules::Slots::of(target).third_late as u16;
            }
            let advances = data.repeat > 0 && !matches!(place, Place::Relative { .. });
            let mask = repeated_mask(data, src.mask, src.flags);
            let pieces = Self::pieces(place, src.class, mask, base(Side::Read), target)?;
            let repeats = advances && !moves && src.flags.contains(OperandFlags::R);
            self.operand(pieces, src.class, delay, [advances, repeats]);
        }
        for address in unlisted_addresses(data).into_iter().flatten() {
            let class = RegClass::ADDRESS;
            let pieces = Self::pieces(&Place::Reg(address), class, WriteMask::SCALAR, None, target)?;
            self.operand(pieces, class, 0, [false; 2]);
        }
        let read_end = (self.operands.len(), self.bits.len());
        let third = data.srcs.get(2).filter(|_| rules::result_replaces_third(data.opcode) && data.dsts.is_empty());
        if let Some((src, place)) = third.and_then(|src| Some((src, src.place()?))) {
            let pieces = Self::pieces(place, src.class, src.mask, base(Side::Read), target)?;
            self.operand(pieces, src.class, 0, [false; 2]);
        }
        for (n, dst) in data.dsts.iter().enumerate() {
            let relative = matches!(dst.place, Place::Relative { .. });
            let mut delay = if relative { u16::from(data.repeat) } else { 0 };
            if matches!(data.opcode, Opcode::Swz | Opcode::Sct) {
                delay += n as u16;
            }
            let mask = repeated_mask(data, dst.mask, OperandFlags::R);
            let pieces = Self::pieces(&dst.place, dst.class, mask, base(Side::Write), target)?;
            let advances = data.repeat > 0 && !relative;
            self.operand(pieces, dst.class, delay, [advances, advances && !moves]);
        }
        let write_end = (self.operands.len(), self.bits.len());
        let range = |from: usize, to: usize| from as u32..to as u32;
        let slots = rules::Slots::of(target);
        let own_read = if data.repeat > 0 && (unit.is_alu() || unit == Unit::Special) && !moves {
            let near_and_far = if unit.is_alu() { [slots.near, slots.far] } else { [SFU_LATENCY; 2] };
            own_read(
                data.repeat.into(),
                near_and_far,
                &self.operands[operands..read_end.0],
                &self.operands[read_end.0..],
            )
        } else {
            None
        };
        Ok(Step {
            unit,
            opcode: data.opcode,
            ss: data.flags.contains(InstrFlags::SS) && rules::can_wait_ss(data.opcode),
            sy: data.flags.contains(InstrFlags::SY),
            slots: rules::issue_slots(data, unit),
            nop: rules::nops_after(data, target),
            result: rules::result_wait(data, unit),
            source: rules::source_wait(data, unit),
            quad_lane: rules::quad_lane(data.opcode),
            completes_quads: false,
            starts_block: false,
            const_write: rules::const_write(data.opcode),
            read_writes,
            own_write: self.preamble_writes.as_ref().map(|words| words.write(at)).unwrap_or_default(),
            const_reads: range(const_reads, self.const_words.len()),
            const_words: self.preamble_writes.as_ref().and_then(|words| words.written_by(at)).unwrap_or_default(),
            // `unlock` follows `(ss)(sy)lock` in every compute shader of a7xx, and accesses nothing.
            accesses: matches!(unit, Unit::Memory | Unit::Texture | Unit::Barrier) && data.opcode != Opcode::Unlock,
            paired: false,
            own_read,
            early_a1,
            reads: range(operands, read_end.0),
            writes: range(read_end.0, write_end.0),
            read_bits: range(bits, read_end.1),
            write_bits: range(read_end.1, write_end.1),
        })
    }

    fn pieces(
        place: &Place,
        class: RegClass,
        mask: WriteMask,
        base: Option<u16>,
        target: &Target,
    ) -> Result<SmallVec<[Piece; 4]>, PhysReg> {
        match *place {
            Place::Relative { offset, size } => {
                let (first, length) = arrays::extent(offset, size, base, class, target.merged_regs);
                units::range(first, length, class, target.merged_regs)
            }
            _ => units::pieces(place, class, mask, target.merged_regs),
        }
    }

    /// Adds the registers of an operand. Each is read or written a slot later than the one before if it `advances`, and
    /// by one repetition only if it `repeats`.
    fn operand(
        &mut self,
        pieces: impl IntoIterator<Item = Piece>,
        class: RegClass,
        delay: u16,
        [advances, repeats]: [bool; 2],
    ) {
        let first = self.bits.len();
        for (k, piece) in (0..).zip(pieces) {
            let delay = delay + if advances { k } else { 0 };
            let repetition = repeats.then_some(k);
            let operand = Operand { piece, delay, repetition, half: class.half, file: class.file };
            self.operands.push(operand);
            let of = operand.bits();
            match self.bits[first..].iter_mut().find(|last| last.word == of.word) {
                Some(last) => last.bits |= of.bits,
                None => self.bits.push(of),
            }
        }
    }
}

/// The address registers that an instruction reads and does not list: `a0.x` where an operand is relative to it, `a1.x`
/// with `.a1en`. Words imply them.
fn unlisted_addresses(data: &InstrData) -> [Option<PhysReg>; 2] {
    let lists = |reg: PhysReg| data.srcs.iter().any(|src| src.place().and_then(Place::reg) == Some(reg));
    let a0 = data.is_relative() && !lists(PhysReg::A0_X);
    let a1 = data.flags.contains(InstrFlags::A1EN) && !lists(PhysReg::A1_X);
    [a0.then_some(PhysReg::A0_X), a1.then_some(PhysReg::A1_X)]
}

/// The positions at which blocks of the compiler begin.
fn block_starts(code: &Code) -> Vec<bool> {
    let mut starts = vec![false; code.instrs.len() + 1];
    for (ip, instr) in &code.instrs {
        starts[ip.index()] |= instr.data.flags.contains(InstrFlags::JP);
        starts[ip.index() + 1] |= instr.data.opcode.is_terminator();
        if let Some(start) = instr.target.and_then(|target| starts.get_mut(target.index())) {
            *start = true;
        }
    }
    starts
}

/// Returns true if a repetition of an instruction reads the result of an earlier one before it is available.
pub fn reads_own_result(data: &InstrData, target: &Target) -> bool {
    let mut steps = Steps {
        steps: Vec::new(),
        operands: Vec::new(),
        bits: Vec::new(),
        const_words: Vec::new(),
        preamble_writes: None,
    };
    let step = steps.step(data, &[], (Ip::new(0), &ArrayBases::default()), target, false);
    step.is_ok_and(|step| step.own_read.is_some())
}

/// The fewest slots until results of the SFU are available; more than the number of repetitions.
const SFU_LATENCY: u32 = 10;

/// The operand of a repeated instruction that a repetition reads before the result of an earlier one is available, and
/// the slots that are missing: nothing waits between repetitions, which follow each other in consecutive slots.
fn own_read(repeat: u16, [near, far]: [u32; 2], reads: &[Operand], writes: &[Operand]) -> Option<(Operand, u32)> {
    let missing = |read: &Operand, write: &Operand| {
        let meets = read.bits().word == write.bits().word && read.bits().bits & write.bits().bits != 0;
        let (first, last) = (write.repetition?, read.repetition.unwrap_or(repeat));
        let is_near = read.file == RegFile::General && read.half == write.half;
        let ready = 1 + u32::from(first) + if is_near { near } else { far };
        (meets && last > first && ready > last.into()).then(|| ready - u32::from(last))
    };
    let all = reads.iter().flat_map(|read| writes.iter().filter_map(move |write| Some((*read, missing(read, write)?))));
    all.max_by_key(|&(_, missing)| missing)
}

/// The registers that a repeated operand reaches: its mask, or as many as there are repetitions.
fn repeated_mask(data: &InstrData, mask: WriteMask, flags: OperandFlags) -> WriteMask {
    if data.repeat > 0 && mask == WriteMask::SCALAR && flags.contains(OperandFlags::R) && !is_several_moves(data) {
        WriteMask::first(1 + u32::from(data.repeat))
    } else {
        mask
    }
}

/// Returns true for moves whose repetitions are operands of their own.
fn is_several_moves(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Swz | Opcode::Gat | Opcode::Sct)
}

/// Returns true for a `nop` that waits for nothing and is no place where lanes join. Helper lanes may end at it.
fn only_passes_time(data: &InstrData) -> bool {
    data.opcode == Opcode::Nop && !data.flags.intersects(InstrFlags::SS | InstrFlags::SY | InstrFlags::JP)
}

/// Returns true if the second of two instructions finishes the first: a fine derivative is a pair that reads and writes
/// the same registers (`apply_fine_deriv_macro`), with nothing between them but time. The flags of operands may differ:
/// the second one is the last reader.
fn is_pair(first: &InstrData, second: &InstrData) -> bool {
    let source = |src: &Src| (src.operand, src.class, src.mods);
    first.opcode == second.opcode
        && !first.flags.contains(InstrFlags::PAIR)
        && first.srcs.iter().map(source).eq(second.srcs.iter().map(source))
        && first.dsts == second.dsts
}

/// Returns true if the last four instructions write the same registers, one lane of each quad after the other.
fn completes_quads(instrs: &[CodeInstr]) -> bool {
    let Some(last) = instrs.last_chunk::<4>() else { return false };
    let writes = |(lane, instr): (u8, &CodeInstr)| {
        rules::quad_lane(instr.data.opcode) == Some(lane) && instr.data.dsts == last[3].data.dsts
    };
    (0..).zip(last).all(writes)
}

/// The positions of the preamble, if `a1.x` is waited for with `(ss)` in it.
fn early_preamble(code: &Code, target: &Target) -> Range<usize> {
    let instrs = code.instrs.as_values_slice();
    let find = |opcode: Opcode| instrs.iter().position(|instr| instr.data.opcode == opcode);
    let (Some(start), Some(end)) = (find(Opcode::Shps), find(Opcode::Shpe)) else { return 0..0 };
    // The block of `shps` is part of the preamble.
    let preamble: Vec<&InstrData> = instrs[..=end].iter().map(|instr| &instr.data).collect();
    if start < end && rules::has_early_a1(&preamble, target) { 0..end + 1 } else { 0..0 }
}
