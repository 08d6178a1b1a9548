//! Live variables: the channels of registers and of the flag that are read later, at the boundaries of blocks.
//!
//! A channel of a register is a variable, and so is each bit of the flag. `uses` are read in a block before they are
//! written there, `defs` are written in all vertices before they are read: live-in = uses ∪ (live-out − defs), to the
//! fixed point.

use crate::i965::vec4::{Blocks, Dst, DstFile, Instr, Mask, Program, SrcFile};
use fixedbitset::FixedBitSet;

/// The model of the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// True if each channel of the flag is tracked separately, rather than all of them as one bit.
    pub channels: bool,
}

impl Flag {
    /// The channels of the flag that an instruction reads.
    pub fn reads(self, instr: &Instr) -> Mask {
        match self.channels {
            true => instr.flag_channels_read(),
            false if instr.reads_flag() => Mask::ALL,
            false => Mask::NONE,
        }
    }

    /// The channels of the flag whose bits no longer matter before an instruction, since it writes them in all
    /// vertices.
    pub fn kills(self, instr: &Instr) -> Mask {
        let is_partial = instr.predicate.is_some() || instr.exec_size != 8;
        match instr.writes_flag() && !is_partial {
            true if self.channels || instr.dst.mask == Mask::ALL => instr.dst.mask,
            _ => Mask::NONE,
        }
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
    pub fn flag_before(&mut self, instr: &Instr, model: Flag) {
        self.flag = self.flag.without(model.kills(instr)) | model.reads(instr);
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
    pub fn of(program: &Program, model: Flag) -> Self {
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
                uses.flag |= model.reads(instr).without(defs.flag);
                if let DstFile::Vgrf(number) = instr.dst.file
                    && !instr.is_partial()
                {
                    for channel in instr.dst.mask.channels() {
                        let variable = 4 * number as usize + channel;
                        defs.registers
                            .set(variable, defs.registers.contains(variable) || !uses.registers.contains(variable));
                    }
                }
                defs.flag |= model.kills(instr).without(uses.flag);
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
