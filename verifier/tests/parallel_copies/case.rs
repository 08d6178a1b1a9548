//! A case: one parallel copy over the stage, its instruction, and its meaning.

use ir3_compiler::ir3::{
    Attrs, Dst, InstrData, Opcode, PhysReg, Place, RegClass, RegFile, Round, Src, SrcOperand, Type, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::Env;
use std::collections::BTreeMap;

/// The source of a copied component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A register of the stage, as wide as the destination: an index into [`CopyStage::halves`] or
    /// [`CopyStage::fulls`].
    Register(usize),
    /// An immediate or a word of the constant file.
    Number,
}

/// One component that is copied: the register of the stage that is written, and the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyEntry {
    pub half: bool,
    pub to: usize,
    pub from: From,
}

/// A register by its file and number.
pub type Register = (RegClass, PhysReg);

/// The stage of a series of cases.
pub struct CopyStage {
    pub name: String,
    /// The GPUs, which agree on whether files are merged and whether there is a scalar ALU.
    pub targets: Vec<Target>,
    pub fulls: Vec<Register>,
    /// Halves that can be written and read on their own.
    pub halves: Vec<Register>,
    /// For each half, the full register of the stage that it is part of, and whether it is the upper half.
    pub parts: Vec<Option<(usize, bool)>>,
}

pub fn full(number: u16) -> Register {
    (RegClass::FULL, PhysReg(number))
}

pub fn half(number: u16) -> Register {
    (RegClass::HALF, PhysReg(number))
}

pub fn shared(number: u16) -> Register {
    (RegClass::SHARED, PhysReg(PhysReg::SHARED_FIRST.0 + number))
}

/// The number of a register within its file.
pub fn number((class, reg): Register) -> u16 {
    if class.file == RegFile::Shared { reg.0 - PhysReg::SHARED_FIRST.0 } else { reg.0 }
}

impl CopyStage {
    /// Full registers, and their halves if those can be named.
    pub fn merged(name: &str, gpus: &[&str], fulls: &[Register]) -> Self {
        let mut kind = Self::fulls(name, gpus, fulls);
        for (i, &(class, reg)) in fulls.iter().enumerate() {
            let first = number((class, reg));
            let reach = if class.file == RegFile::Shared { 16 } else { 96 };
            if first < reach {
                let class = RegClass { half: true, ..class };
                let base = reg.0 - first;
                for upper in [false, true] {
                    kind.halves.push((class, PhysReg(base + 2 * first + u16::from(upper))));
                    kind.parts.push(Some((i, upper)));
                }
            }
        }
        kind
    }

    /// Full registers alone.
    pub fn fulls(name: &str, gpus: &[&str], fulls: &[Register]) -> Self {
        let targets = gpus.iter().map(|gpu| Target::by_name(gpu).unwrap()).collect();
        let name = format!("{}: {name}", gpus.join(" "));
        Self { name, targets, fulls: fulls.to_vec(), halves: Vec::new(), parts: Vec::new() }
    }

    /// Full registers, and halves that are a file of their own.
    pub fn separate(name: &str, gpus: &[&str], fulls: &[Register], halves: &[Register]) -> Self {
        let parts = vec![None; halves.len()];
        Self { halves: halves.to_vec(), parts, ..Self::fulls(name, gpus, fulls) }
    }

    pub fn has_shared(&self) -> bool {
        self.fulls.iter().any(|(class, _)| class.file == RegFile::Shared)
    }

    /// All writes to a full register of the stage: a list of entries for each.
    pub fn full_choices(&self, to: usize) -> Vec<Vec<CopyEntry>> {
        let sources = (0..self.fulls.len()).map(From::Register).chain([From::Number]);
        let mut choices: Vec<Vec<CopyEntry>> = sources.map(|from| vec![CopyEntry { half: false, to, from }]).collect();
        let halves: Vec<usize> =
            (0..self.halves.len()).filter(|&half| self.parts[half].is_some_and(|(whole, _)| whole == to)).collect();
        // No entry is that both halves are left alone.
        let mut parts = vec![Vec::new()];
        for half in halves {
            let options = self.half_choices(half);
            parts = parts.iter().flat_map(|done| options.iter().map(move |more| [&done[..], more].concat())).collect();
        }
        choices.append(&mut parts);
        choices
    }

    /// All writes to a half register of the stage.
    pub fn half_choices(&self, to: usize) -> Vec<Vec<CopyEntry>> {
        let sources = (0..self.halves.len()).map(From::Register).chain([From::Number]);
        let mut choices: Vec<Vec<CopyEntry>> = sources.map(|from| vec![CopyEntry { half: true, to, from }]).collect();
        choices.push(Vec::new());
        choices
    }

    /// All writes to each register of the stage, independently.
    pub fn choices(&self) -> Vec<Vec<Vec<CopyEntry>>> {
        let fulls = (0..self.fulls.len()).map(|to| self.full_choices(to));
        let alone = (0..self.halves.len()).filter(|&half| self.parts[half].is_none());
        fulls.chain(alone.map(|half| self.half_choices(half))).collect()
    }

    /// All cases.
    pub fn cases(&self) -> impl Iterator<Item = CopyCase> {
        let choices = self.choices();
        let total: usize = choices.iter().map(Vec::len).product();
        (0..total).map(move |index| {
            let mut rest = index;
            let mut entries = Vec::new();
            for options in &choices {
                entries.extend_from_slice(&options[rest % options.len()]);
                rest /= options.len();
            }
            CopyCase { index, entries }
        })
    }
}

/// One parallel copy.
pub struct CopyCase {
    pub index: usize,
    pub entries: Vec<CopyEntry>,
}

/// The bits of each register of the stage: full ones, then halves of a file of their own (others are 0 here).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageBits {
    pub fulls: Vec<u32>,
    pub halves: Vec<u32>,
}

impl StageBits {
    pub fn read(&self, kind: &CopyStage, is_half: bool, which: usize) -> u32 {
        match (is_half, kind.parts.get(which).copied().flatten()) {
            (false, _) => self.fulls[which],
            (true, Some((whole, upper))) => self.fulls[whole] >> if upper { 16 } else { 0 } & 0xffff,
            (true, None) => self.halves[which],
        }
    }

    pub fn write(&mut self, kind: &CopyStage, is_half: bool, which: usize, bits: u32) {
        match (is_half, kind.parts.get(which).copied().flatten()) {
            (false, _) => self.fulls[which] = bits,
            (true, Some((whole, true))) => self.fulls[whole] = self.fulls[whole] & 0xffff | bits << 16,
            (true, Some((whole, false))) => self.fulls[whole] = self.fulls[whole] & !0xffff | bits & 0xffff,
            (true, None) => self.halves[which] = bits & 0xffff,
        }
    }
}

/// Distinct numbers, in all of their halves, for all cases of a program.
pub fn bits_of(case: usize, which: usize) -> u32 {
    let low = (1 + which as u32 + 32 * (case as u32 % 1024)) & 0x7fff;
    low | (low ^ 0xa5a5) << 16
}

impl CopyCase {
    /// The initial contents of the stage.
    pub fn before(&self, kind: &CopyStage) -> StageBits {
        let n = kind.fulls.len();
        StageBits {
            fulls: (0..n).map(|i| bits_of(self.index, i)).collect(),
            halves: (0..kind.halves.len()).map(|i| bits_of(self.index, n + i) & 0xffff).collect(),
        }
    }

    /// The operand of an entry that reads no register: an immediate or a constant, alternately.
    pub fn operand(&self, entry: &CopyEntry) -> (SrcOperand, u32) {
        let mask = if entry.half { 0xffff } else { u32::MAX };
        let at = self.index / 7 + entry.to;
        if at.is_multiple_of(2) {
            let bits = bits_of(self.index, 20 + entry.to) & mask;
            (SrcOperand::Immediate(bits), bits)
        } else {
            let word = (at % 50) as u16;
            (SrcOperand::Const(word), constant(word, entry.half))
        }
    }

    /// The meaning of the parallel copy: all sources are read, then all destinations are written.
    pub fn result(&self, kind: &CopyStage) -> StageBits {
        let before = self.before(kind);
        let mut after = before.clone();
        for entry in &self.entries {
            let bits = match entry.from {
                From::Register(which) => before.read(kind, entry.half, which),
                From::Number => self.operand(entry).1,
            };
            after.write(kind, entry.half, entry.to, bits);
        }
        after
    }

    /// The instruction.
    pub fn instruction(&self, kind: &CopyStage) -> InstrData {
        let mut data = InstrData::new(Opcode::ParallelCopy);
        for entry in &self.entries {
            let registers = if entry.half { &kind.halves } else { &kind.fulls };
            let to = registers[entry.to];
            data.dsts.push(dst(to));
            data.srcs.push(match entry.from {
                From::Register(which) => src(registers[which]),
                From::Number => Src::new(self.operand(entry).0, RegClass::general(entry.half), WriteMask::SCALAR),
            });
        }
        data
    }

    /// The numbers of moves and swaps that a case of full registers needs.
    pub fn least(&self) -> (usize, usize) {
        let from: BTreeMap<usize, From> = self.entries.iter().map(|entry| (entry.to, entry.from)).collect();
        let (mut moves, mut swaps) = (0, 0);
        for (&to, &source) in &from {
            // Follows the path to its end, or around the cycle.
            let (mut at, mut length) = (source, 1);
            while let From::Register(register) = at
                && register != to
                && length <= from.len()
            {
                let Some(&next) = from.get(&register) else { break };
                (at, length) = (next, length + 1);
            }
            match at {
                // Every member of the cycle gets here once; only the smallest adds its swaps.
                From::Register(register) if register == to => {
                    let mut smallest = true;
                    let mut member = source;
                    while let From::Register(register) = member
                        && register != to
                    {
                        smallest &= register > to;
                        member = from[&register];
                    }
                    swaps += if smallest { length - 1 } else { 0 };
                }
                _ => moves += 1,
            }
        }
        (moves, swaps)
    }

    /// The units of the stage that form a cycle through this entry's register files.
    pub fn has_cycle(&self, kind: &CopyStage, across: bool) -> bool {
        // The unit that each unit is copied from.
        let unit = |is_half: bool, which: usize, k: usize| match (is_half, kind.parts.get(which).copied().flatten()) {
            (false, _) => 2 * which + k,
            (true, Some((whole, upper))) => 2 * whole + usize::from(upper),
            (true, None) => 2 * kind.fulls.len() + which,
        };
        let mut from = BTreeMap::new();
        for entry in &self.entries {
            if let From::Register(which) = entry.from {
                for k in 0..if entry.half { 1 } else { 2 } {
                    from.insert(unit(entry.half, entry.to, k), unit(entry.half, which, k));
                }
            }
        }
        let is_shared = |unit: usize| kind.fulls.get(unit / 2).is_some_and(|(class, _)| class.file == RegFile::Shared);
        from.keys().any(|&start| {
            let (mut at, mut steps, mut files) = (from[&start], 1, [is_shared(start); 2]);
            while at != start {
                files = [files[0] | is_shared(at), files[1] & is_shared(at)];
                match from.get(&at) {
                    Some(&next) if steps <= from.len() => (at, steps) = (next, steps + 1),
                    _ => return false,
                }
            }
            steps > 1 && if across { files[0] != files[1] } else { files[0] }
        })
    }
}

/// The value that a move reads from the constant file.
pub fn constant(word: u16, half: bool) -> u32 {
    let bits = Env::from_seed(1).const_word(word.into());
    if half { bits & 0xffff } else { bits }
}

pub fn dst((class, reg): Register) -> Dst {
    Dst::new(Place::Reg(reg), class, WriteMask::SCALAR)
}

pub fn src((class, reg): Register) -> Src {
    Src::reg(Place::Reg(reg), class, WriteMask::SCALAR)
}

pub fn mov(to: Register, from: Src) -> InstrData {
    let ty = if to.0.half { Type::U16 } else { Type::U32 };
    let mut data = InstrData::new(Opcode::Mov);
    data.dsts.push(dst(to));
    data.srcs.push(from);
    data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
    data
}
