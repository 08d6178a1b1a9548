//! Live variables: the channels of registers and of the flag that are read later, at the boundaries of blocks.
//!
//! A channel of a register is a variable, and so is each bit of the flag. `uses` are read in a block before they are written there, `defs` are
//! written in all vertices before they are read: live-in = uses ∪ (live-out − defs), to the fixed point.

use crate::i965::vec4::{Blocks, Dst, DstFile, Instr, Mask, Program, SrcFile};
use fixedbitset::FixedBitSet;

/// The model of the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagRules {
    /// True if each channel of the flag is tracked separately, rather than all of them as one bit.
    pub channels: bool,
    /// A predicated instruction does not change the flag of other vertices and channels.
    pub predicated: bool,
    /// An instruction on one of the two vertices does not change the flag of the other.
    pub exec_size: bool,
    /// An instruction writes the channels of its writemask, and no others.
    pub writemask: bool,
}

impl FlagRules {
    /// All corrections.
    pub const CORRECT: Self = Self { channels: true, predicated: true, exec_size: true, writemask: true };

    /// The channels of the flag that an instruction reads.
    pub fn reads(self, instr: &Instr) -> Mask {
        match self.channels {
            true => instr.flag_channels_read(),
            false if instr.reads_flag() => Mask::ALL,
            false => Mask::NONE,
        }
    }

    /// The channels of the flag whose bits no longer matter before an instruction, since it writes them.
    pub fn kills(self, instr: &Instr) -> Mask {
        let keeps = self.predicated && instr.predicate.is_some() || self.exec_size && instr.exec_size != 8;
        match instr.writes_flag() && !keeps {
            true if self.channels && self.writemask => instr.dst.mask,
            true if self.writemask && instr.dst.mask != Mask::ALL => Mask::NONE,
            true => Mask::ALL,
            false => Mask::NONE,
        }
    }

    /// The definitions in the analysis of blocks, which considered the writemask from the start.
    fn defs(self, instr: &Instr) -> Mask {
        if self.channels { self.kills(instr) & instr.dst.mask } else { self.kills(instr) }
    }
}

/// Variables that are live, in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    registers: FixedBitSet,
    /// The channels of the flag.
    pub flag: Mask,
}

impl Live {
    fn new(registers: u32) -> Self {
        Self { registers: FixedBitSet::with_capacity(4 * registers as usize), flag: Mask::NONE }
    }

    /// The channels of a destination that are live: those of a register, all of an output.
    pub fn of_dst(&self, dst: &Dst) -> Mask {
        match dst.file {
            DstFile::Null => Mask::NONE,
            DstFile::Output(_) => Mask::ALL,
            DstFile::Vgrf(number) => (0..4)
                .filter(|channel| self.registers.contains(4 * number as usize + channel))
                .fold(Mask::NONE, |mask, channel| mask | Mask(1 << channel)),
        }
    }

    /// The registers before an instruction, from those after it: registers that it writes in all vertices are dead,
    /// registers that it reads are live.
    pub fn registers_before(&mut self, instr: &Instr) {
        if let DstFile::Vgrf(number) = instr.dst.file
            && !instr.is_partial()
        {
            instr.dst.mask.channels().for_each(|channel| self.registers.set(4 * number as usize + channel, false));
        }
        for src in &instr.srcs {
            if let SrcFile::Vgrf(number) = src.file {
                let read = instr.channels_read(src);
                read.channels().for_each(|channel| self.registers.set(4 * number as usize + channel, true));
            }
        }
    }

    /// The flag before an instruction, from that after it.
    pub fn flag_before(&mut self, instr: &Instr, rules: FlagRules) {
        self.flag = self.flag.without(rules.kills(instr)) | rules.reads(instr);
    }
}

/// The live variables of a program.
#[derive(Clone, Debug)]
pub struct LiveVariables {
    /// The blocks.
    pub blocks: Blocks,
    /// The live variables at the end of each block.
    pub out: Vec<Live>,
}

impl LiveVariables {
    /// The live variables of a valid program.
    ///
    /// # Panics
    /// If control flow is not nested.
    pub fn of(program: &Program, rules: FlagRules) -> Self {
        let blocks = Blocks::of(program).expect("the program is valid");
        let registers = program.registers();
        let empty = || vec![Live::new(registers); blocks.ranges.len()];
        let (mut uses, mut defs, mut out) = (empty(), empty(), empty());
        for (block, range) in blocks.ranges.iter().enumerate() {
            for instr in &program.instrs[range.clone()] {
                let (uses, defs) = (&mut uses[block], &mut defs[block]);
                for src in &instr.srcs {
                    if let SrcFile::Vgrf(number) = src.file {
                        for channel in instr.channels_read(src).channels() {
                            let variable = 4 * number as usize + channel;
                            uses.registers
                                .set(variable, uses.registers.contains(variable) || !defs.registers.contains(variable));
                        }
                    }
                }
                uses.flag |= rules.reads(instr).without(defs.flag);
                if let DstFile::Vgrf(number) = instr.dst.file
                    && !instr.is_partial()
                {
                    for channel in instr.dst.mask.channels() {
                        let variable = 4 * number as usize + channel;
                        defs.registers
                            .set(variable, defs.registers.contains(variable) || !uses.registers.contains(variable));
                    }
                }
                defs.flag |= rules.defs(instr).without(uses.flag);
            }
        }
        let mut live_in = uses.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..blocks.ranges.len()).rev() {
                for &next in &blocks.successors[block] {
                    out[block].registers.union_with(&live_in[next].registers);
                    out[block].flag |= live_in[next].flag;
                }
                let mut before = out[block].clone();
                before.registers.difference_with(&defs[block].registers);
                before.registers.union_with(&uses[block].registers);
                before.flag = before.flag.without(defs[block].flag) | uses[block].flag;
                if before != live_in[block] {
                    live_in[block] = before;
                    changed = true;
                }
            }
        }
        Self { blocks, out }
    }
}
