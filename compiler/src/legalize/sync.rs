//! Synchronisation: where an instruction has to wait for results, or for reads, of units that take their time.
//!
//! Special functions, memory and textures finish at any time, and so does the scalar ALU for readers outside of it. An
//! instruction waits with `(ss)` for special functions, local memory and shared registers, with `(sy)` for textures and
//! other memory. It waits for results that it reads or overwrites, and for units that may not have read yet the
//! registers that it overwrites. A dataflow analysis over all paths has, at each point, the pending registers, by what
//! ends the wait ([`Pending`]).
//!
//! The rules:
//! - `(ss)` ends all waits but those for `(sy)` results; `(sy)` ends those for its results, and for the reads of the
//!   instructions that have such results. Copies to the constant file have none. (In Mesa `(sy)` ends the wait for
//!   their reads, too.)
//! - Between two instructions of the scalar ALU nothing waits, except where a register is read in another width than it
//!   was written.
//! - After a barrier, and at the end of the preamble, everything is waited for.
//! - Instructions from cat5 on cannot carry `(ss)`; a nop before them does.
//! - In an early preamble `a1.x` is written as a shared register is.
//!
//! Shared registers are pending along physical edges too: the wave takes them independent of its lanes. If a `kill`
//! ends the last active lane in the middle of a block, the wave continues at once with lanes that wait, past the waits
//! of the rest of the block. So registers that are pending at a `kill` are pending in the blocks where lanes may wait.

use super::preamble::Preamble;
use crate::delays::latency::{Sync, is_scalar_alu, sync};
use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::opcode::{Effect, Role};
use crate::ir3::reconvergence::{self, Waiting};
use crate::ir3::register_set::{RegisterSet, Word, list_instr};
use crate::ir3::{
    Block, Category, Dst, Instr, InstrData, InstrFlags, Opcode, PhysReg, Program, RegFile, Src, SrcOperand,
};
use crate::maps::map_of;
use crate::target::Target;
use bitflags::bitflags;
use cranelift_entity::SecondaryMap;

/// Sets `(ss)` and `(sy)` on all instructions, and inserts the nops that carry `(ss)` for others.
pub fn run(program: &mut Program, target: &Target, preamble: &Preamble) {
    let waiting = has_kill(program).then(|| reconvergence::points(program));
    let mut waits = Waits {
        program,
        target,
        preamble,
        flags: map_of(program.instrs.len()),
        waiting,
        after_kills: SecondaryMap::new(),
        grows: true,
        registers: Vec::new(),
    };
    // Waiting blocks are later in the code, so that once is enough but for kills in loops.
    while std::mem::take(&mut waits.grows) {
        solve(&Cfg::new(program, EdgeKind::Physical), &program.layout, &mut waits);
    }
    let flags = waits.flags;
    program.rewrite_lists(|program, instr, out| {
        let data = &mut program.instrs[instr];
        data.flags -= InstrFlags::SS | InstrFlags::SY;
        data.flags |= flags[instr];
        let opcode = data.opcode;
        if data.flags.contains(InstrFlags::SS) && !carries_ss(opcode) {
            data.flags -= InstrFlags::SS;
            out.push(waiting_nop(program));
        }
        out.push(instr);
        // Mesa has one there, too.
        if opcode == Opcode::Resinfo && !program.instrs[instr].dsts.is_empty() {
            out.push(waiting_nop(program));
        }
    });
}

fn waiting_nop(program: &mut Program) -> Instr {
    program.instrs.push(InstrData { flags: InstrFlags::SS, ..InstrData::new(Opcode::Nop) })
}

/// Returns true if the encoding has a bit for `(ss)`.
fn carries_ss(opcode: Opcode) -> bool {
    use Category::{Alu2, Alu3, Flow, Move, Sfu};
    matches!(opcode.category(), Flow | Move | Alu2 | Alu3 | Sfu)
}

/// The pending registers at a point of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    /// The sets of [`Present`], each at the number of its bit.
    sets: [RegisterSet; Present::all().bits().count_ones() as usize],
    /// The sets that are not empty.
    present: Present,
    /// The constant file is being written.
    consts: bool,
    /// The last instruction was a barrier.
    barrier: bool,
    /// Varyings are being read from local memory.
    varyings: bool,
}

bitflags! {
    /// Sets of [`Pending`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Present: u8 {
        /// Results that `(ss)` waits for.
        const SS = 1;
        /// Results that `(sy)` waits for.
        const SY = 1 << 1;
        /// Full results of the scalar ALU: readers of their halves wait, and all outside of the scalar ALU.
        const SCALAR_FULL = 1 << 2;
        /// Half results of the scalar ALU.
        const SCALAR_HALF = 1 << 3;
        /// Registers that may still be read; `(ss)` ends that.
        const READ_SS = 1 << 4;
        /// Registers that may still be read; `(ss)` and `(sy)` end that.
        const READ_ANY = 1 << 5;
        /// Registers that the scalar ALU may still read; it waits for itself.
        const READ_SCALAR = 1 << 6;
    }
}

impl Pending {
    /// One of the sets.
    const fn set(&self, set: Present) -> &RegisterSet {
        &self.sets[set.bits().trailing_zeros() as usize]
    }

    const fn set_mut(&mut self, set: Present) -> &mut RegisterSet {
        &mut self.sets[set.bits().trailing_zeros() as usize]
    }

    /// Returns true if one of the sets has one of these registers.
    fn has(&self, set: Present, registers: &[Word]) -> bool {
        self.present.contains(set) && self.set(set).meets_list(registers)
    }

    /// Adds registers to one of the sets.
    fn add(&mut self, set: Present, registers: &[Word]) {
        if !registers.is_empty() {
            self.set_mut(set).add_list(registers);
            self.present |= set;
        }
    }

    /// Adds a set of registers to one of the sets.
    fn add_set(&mut self, set: Present, registers: &RegisterSet) {
        if *registers != RegisterSet::EMPTY {
            self.set_mut(set).add(registers);
            self.present |= set;
        }
    }

    /// Adds the registers that are pending on an edge from another point: of the lanes that come from there, or of the
    /// wave only.
    fn add_from(&mut self, other: &Self, lanes: bool) {
        for set in other.present.iter() {
            let theirs = other.set(set);
            if lanes {
                self.add_set(set, theirs);
            } else {
                self.add_set(set, &theirs.shared());
            }
        }
        self.consts |= other.consts;
        self.barrier |= other.barrier;
        self.varyings |= other.varyings;
    }

    /// Waits for everything that `(ss)` waits for.
    fn apply_ss(&mut self) {
        self.clear(!Present::SY);
        (self.consts, self.barrier, self.varyings) = (false, false, false);
    }

    fn apply_sy(&mut self) {
        self.clear(Present::SY | Present::READ_ANY);
    }

    fn clear(&mut self, sets: Present) {
        (self.present & sets).iter().for_each(|set| *self.set_mut(set) = RegisterSet::EMPTY);
        self.present -= sets;
    }
}

fn has_kill(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Kill)
}

/// The analysis.
struct Waits<'a> {
    program: &'a Program,
    target: &'a Target,
    preamble: &'a Preamble,
    /// The flags of the last visit of each instruction.
    flags: SecondaryMap<Instr, InstrFlags>,
    /// The blocks where lanes wait, if there is a `kill`.
    waiting: Option<Waiting>,
    /// The registers that are pending in a block where lanes wait while others are killed.
    after_kills: SecondaryMap<Block, Pending>,
    /// More is pending after kills than when the blocks before them were visited in this iteration.
    grows: bool,
    /// The registers of the current instruction.
    registers: Vec<Word>,
}

impl Waits<'_> {
    /// The last active lane may have been killed in a block.
    fn kill(&mut self, block: Block, pending: &Pending) {
        let Some(waiting) = &self.waiting else { return };
        for other in waiting.while_running(self.program, block) {
            let mut more = self.after_kills[other].clone();
            more.add_from(pending, false);
            if more != self.after_kills[other] {
                self.after_kills[other] = more;
                self.grows = true;
            }
        }
    }
}

impl Analysis<Block> for Waits<'_> {
    type Fact = Pending;

    const DIRECTION: Direction = Direction::Forward;

    fn join(&mut self, entry: &mut Pending, exit: &Pending, edge: Edge<Block>) {
        entry.add_from(exit, self.program.blocks[edge.from].successors().any(|to| to == edge.to));
    }

    fn transfer(&mut self, block: Block, entry: &Pending) -> Pending {
        let mut pending = entry.clone();
        if self.waiting.is_some() {
            pending.add_from(&self.after_kills[block], false);
        }
        let early = self.preamble.is_early(block);
        let mut registers = std::mem::take(&mut self.registers);
        for &instr in &self.program.blocks[block].instrs {
            let data = &self.program.instrs[instr];
            if data.opcode.is_meta() && data.opcode != Opcode::TexPrefetch {
                continue;
            }
            let operands = Operands::of(self.program, self.target, data, early, &mut registers);
            self.flags[instr] = operands.wait(&mut pending);
            operands.issue(&mut pending);
            if data.opcode == Opcode::Kill {
                self.kill(block, &pending);
            }
        }
        self.registers = registers;
        pending
    }
}

/// An instruction, as far as synchronisation is concerned.
struct Operands<'a> {
    program: &'a Program,
    data: &'a InstrData,
    target: &'a Target,
    is_scalar: bool,
    is_early: bool,
    writes: &'a [Word],
    reads: &'a [Word],
    /// The registers that it reads and those that it writes.
    named: &'a [Word],
}

impl<'a> Operands<'a> {
    fn of(
        program: &'a Program,
        target: &'a Target,
        data: &'a InstrData,
        is_early: bool,
        registers: &'a mut Vec<Word>,
    ) -> Self {
        registers.clear();
        let [middle, _] = list_instr(program, target, data, registers);
        let (reads, writes) = registers.split_at(middle);
        Self {
            program,
            data,
            target,
            is_scalar: is_scalar_alu(data, target),
            is_early,
            writes,
            reads,
            named: registers,
        }
    }

    /// The flags that the instruction needs; they end the waits.
    fn wait(&self, pending: &mut Pending) -> InstrFlags {
        let mut flags = InstrFlags::empty();
        let fence = std::mem::take(&mut pending.barrier) || self.data.opcode == Opcode::Shpe;
        let last_input = self.data.flags.contains(InstrFlags::EI) && pending.varyings;
        // Nobody reads the result of a dummy.
        let is_dummy = self.data.opcode == Opcode::BaryF && self.writes.is_empty();
        if fence || last_input || !is_dummy && self.needs_ss(pending) {
            flags |= InstrFlags::SS;
        }
        if fence || !is_dummy && pending.has(Present::SY, self.named) {
            flags |= InstrFlags::SY;
        }
        if flags.contains(InstrFlags::SY) {
            pending.apply_sy();
        }
        // A wait for results may be all that the reads need, too.
        if !flags.contains(InstrFlags::SS) && self.overwrites(pending) {
            flags |= InstrFlags::SS;
        }
        if flags.contains(InstrFlags::SS) {
            pending.apply_ss();
        }
        flags
    }

    /// Returns true if it reads or overwrites a result that `(ss)` waits for.
    fn needs_ss(&self, pending: &Pending) -> bool {
        if pending.has(Present::SS, self.named) {
            return true;
        }
        let reads_consts = || {
            self.data.srcs.iter().any(|src| matches!(src.operand, SrcOperand::Const(_) | SrcOperand::ConstRelative(_)))
        };
        if pending.consts && reads_consts() {
            return true;
        }
        if !self.is_scalar {
            return pending.has(Present::SCALAR_FULL, self.named) || pending.has(Present::SCALAR_HALF, self.named);
        }
        // Each operand by its width.
        let other_width = |half: bool| if half { Present::SCALAR_FULL } else { Present::SCALAR_HALF };
        let Self { program, target, data, .. } = *self;
        let is_read = |src: &Src| {
            let set = other_width(src.class.half);
            pending.present.contains(set) && pending.set(set).meets_src(program, target, src)
        };
        let is_overwritten = |dst: &Dst| {
            let set = other_width(dst.class.half);
            pending.present.contains(set) && pending.set(set).meets(&RegisterSet::of_dst(program, target, dst))
        };
        data.dsts.iter().any(is_overwritten) || data.srcs.iter().any(is_read)
    }

    /// Returns true if it overwrites registers that may not have been read yet.
    fn overwrites(&self, pending: &Pending) -> bool {
        pending.has(Present::READ_SS, self.writes)
            || pending.has(Present::READ_ANY, self.writes)
            || !self.is_scalar && pending.has(Present::READ_SCALAR, self.writes)
    }

    /// Adds the registers that others have to wait for after it.
    fn issue(&self, pending: &mut Pending) {
        let Self { data, target, .. } = *self;
        let is_flow = data.opcode.category() == Category::Flow;
        let shared = data.dsts.iter().any(|dst| dst.class.file == RegFile::Shared);
        let kind = sync(data, target);
        let mut by_ss = kind == Sync::Ss || shared;
        if self.is_scalar {
            let set = if data.dsts[0].class.half { Present::SCALAR_HALF } else { Present::SCALAR_FULL };
            pending.add(set, self.writes);
        } else {
            by_ss |= self.is_early && writes_a1(data);
            if by_ss {
                pending.add(Present::SS, self.writes);
            }
            if kind == Sync::Sy {
                pending.add(Present::SY, self.writes);
                pending.add_set(Present::SY, &self.result_in_place());
            }
        }
        match data.opcode {
            Opcode::PushConstsLoadMacro => pending.consts = true,
            Opcode::Ldlv => pending.varyings = true,
            _ => {}
        }
        pending.barrier = data.opcode.category() == Category::Barrier;
        // The registers that it may read later.
        if self.is_scalar {
            pending.add(Present::READ_SCALAR, self.reads);
        } else if by_ss || has_no_result(data.opcode) {
            pending.add(Present::READ_SS, self.reads);
        } else if !is_flow && !data.opcode.is_alu() && !data.opcode.is_meta() {
            pending.add(Present::READ_ANY, self.reads);
        }
    }

    /// The register in which an atomic of a bindless buffer leaves its result: that of its data.
    fn result_in_place(&self) -> RegisterSet {
        let tied = self.data.source(Role::Tied);
        tied.map_or(RegisterSet::EMPTY, |src| RegisterSet::of_src(self.program, self.target, src))
    }
}

/// Returns true for accesses to memory without a result in a register, so that no `(sy)` is for them.
fn has_no_result(opcode: Opcode) -> bool {
    matches!(opcode.info().effect, Effect::Store | Effect::StoreAny | Effect::StoreConsts | Effect::LoadConsts)
}

fn writes_a1(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.place.reg() == Some(PhysReg::A1_X))
}
