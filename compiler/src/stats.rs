//! The cost of a program, counted as Mesa counts it.
//!
//! The statistics are those of the lines that freedreno prints after a shader (`; FRAG prog 1/1: 5 instr, …`), so that
//! the two compilers can be compared. Mesa's counts, as its logs show:
//! - an instruction with `(rptN)` is N + 1 instructions, `(nopN)` is N nops; a meta instruction (`_meta:…`) is none,
//!   but its registers count;
//! - the preamble, from `shps` to `shpe`, is counted separately, though its registers count too;
//! - `mov` is a cat1 move that keeps the type, `cov` one that changes it; `swz`, which swaps, is neither, but two
//!   instructions;
//! - `full` and `half` are vec4 of general registers; in a merged file, half registers count as full;
//! - `stp` and `ldp` are components of private memory, not instructions;
//! - `last-baryf` and `last-helper` are the instructions before the last varying is read (`(ei)`) and before helper
//!   lanes end (`(eq)`, or the end of a program that needs them and has no such mark);
//! - `constlen` is in vec4, see `consts`;
//! - `sstall` and `systall` are estimates: the slots that are left of a usual latency at each `(ss)` and `(sy)`.
//!
//! A program before legalization has no nops. If it has registers, the nops that its results need are counted
//! ([`Delays`]), and none that would carry an `(ss)` or an `(eq)`. Its jumps are counted as their final form: a jump to
//! the next block in the code is not counted, and a branch of which neither side is next counts twice. A macro counts
//! as one instruction.

mod branches;
mod consts;
mod waits;

pub use branches::{BRANCHES, Branches};
pub use waits::Waits;

use crate::delays::nops::Delays;
use crate::ir3::helper_lanes::{reads_quad, uses_helpers, votes};
use crate::ir3::{
    ArrayAccess, Attrs, Category, CodeOrder, InstrData, InstrFlags, Opcode, Place, Program, RegClass, RegFile,
    ShaderStage, SrcOperand, WriteMask,
};
use crate::target::{Generation, Target};

/// The statistics; see the module's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions, including nops, without the preamble.
    pub instructions: u32,
    /// Nops.
    pub nops: u32,
    /// Moves.
    pub mov: u32,
    /// Moves of immediates, of those.
    pub mov_immediate: u32,
    /// Moves of words of the constant file, of those. The rest are between registers.
    pub mov_constant: u32,
    /// Conversions.
    pub cov: u32,
    /// Full registers, in vec4.
    pub full: u32,
    /// Half registers, in vec4, where they are a file of their own.
    pub half: u32,
    /// Components stored to private memory.
    pub stp: u32,
    /// Components loaded from private memory.
    pub ldp: u32,
    /// Instructions by their category, cat0 (with the nops) to cat7.
    pub categories: [u32; 8],
    /// Instructions of the preamble, including its nops.
    pub preamble: u32,
    /// Instructions that write a predicate, including those of the preamble.
    pub predicates: u32,
    /// Branches, including those of the preamble.
    pub branches: Branches,
    /// Waits in the final program; zeros before.
    pub waits: Waits,
    /// Size of the final program in 32-bit words, with the nops that follow it in memory; zero before.
    pub dwords: u32,
    /// Instructions of the final program before the last varying is read; zero before.
    pub last_baryf: u32,
    /// Instructions of the final program before helper lanes end; zero before, and without them.
    pub last_helper: u32,
    /// Vec4 of the constant file that the program needs.
    pub constlen: u32,
}

impl Stats {
    /// The number of instructions other than nops.
    #[must_use]
    pub const fn non_nops(&self) -> u32 {
        self.instructions - self.nops
    }

    /// The statistics of a program, in SSA form (then without registers) or with registers.
    #[must_use]
    pub fn of(program: &Program, target: &Target) -> Self {
        Self::counted(program, target, is_legalized(program))
    }

    /// The statistics of a final program, without estimates.
    #[must_use]
    pub fn of_final(program: &Program, target: &Target) -> Self {
        Self::counted(program, target, true)
    }

    fn counted(program: &Program, target: &Target, explicit_jumps: bool) -> Self {
        let mut stats = Self::default();
        let delays = (!explicit_jumps && has_registers(program)).then(|| Delays::of(program, target));
        let order = CodeOrder::new(program);
        let (mut in_preamble, mut words, mut consts) = (false, 0, consts::ConstWords::of(program, target));
        let mut helpers = Helpers::default();
        for (position, &block) in program.layout.iter().enumerate() {
            let mut pending = waits::Pending::default();
            consts.start_block();
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                if !in_preamble && data.opcode != Opcode::Shps && !data.opcode.is_meta() {
                    stats.waits.count(&mut pending, program, data);
                }
                stats.count_registers(data, target);
                consts.count(data);
                let opcode = data.opcode;
                if opcode.is_meta() {
                    helpers.quads |= opcode == Opcode::TexPrefetch;
                    continue;
                }
                words += 1;
                if data.flags.contains(InstrFlags::EI) && matches!(opcode, Opcode::BaryF | Opcode::FlatB) {
                    stats.last_baryf = stats.instructions;
                }
                in_preamble |= matches!(opcode, Opcode::Shps | Opcode::ShpsMacro);
                // It does not matter which lanes compute the preamble.
                if !in_preamble {
                    helpers.count(data, stats.instructions);
                }
                if opcode.is_terminator() && !explicit_jumps {
                    for opcode in branches::explicit(program, &order, position, opcode) {
                        stats.count(data, opcode, 1, in_preamble);
                    }
                } else {
                    // A swap is two moves, which legalized programs write as a repetition.
                    let count = if opcode == Opcode::Swz { 2 } else { 1 + u32::from(data.repeat) };
                    stats.count(data, opcode, count, in_preamble);
                }
                let needed = delays.as_ref().map_or(0, |delays| delays.before(instr) + delays.after(instr));
                stats.count_nops(u32::from(data.nop) + needed, in_preamble);
                in_preamble &= opcode != Opcode::Shpe;
            }
        }
        stats.constlen = consts.length(program.stage, target);
        if explicit_jumps {
            stats.dwords = target.dwords(words);
            stats.last_helper = helpers.last(program.stage, target);
        }
        stats
    }

    /// Counts nops before an instruction, or in its `(nopN)`.
    fn count_nops(&mut self, nops: u32, in_preamble: bool) {
        if in_preamble {
            self.preamble += nops;
            return;
        }
        self.instructions += nops;
        self.categories[0] += nops;
        self.nops += nops;
    }

    /// Counts an instruction that is `opcode` in the final program.
    fn count(&mut self, data: &InstrData, opcode: Opcode, count: u32, in_preamble: bool) {
        self.branches.count(opcode, count);
        if data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate) {
            self.predicates += count;
        }
        if in_preamble {
            self.preamble += count;
            return;
        }
        self.instructions += count;
        match opcode {
            Opcode::Nop => self.nops += count,
            Opcode::Mov => match data.move_types() {
                Some((src, dst)) if src != dst => self.cov += count,
                _ => {
                    self.mov += count;
                    match data.srcs.first().map(|src| src.operand) {
                        Some(SrcOperand::Immediate(_)) => self.mov_immediate += count,
                        Some(SrcOperand::Const(_) | SrcOperand::ConstRelative(_)) => self.mov_constant += count,
                        _ => {}
                    }
                }
            },
            Opcode::Stp | Opcode::SpillMacro => self.stp += components(data),
            Opcode::Ldp | Opcode::ReloadMacro => self.ldp += components(data),
            _ => {}
        }
        if let Some(category) = number(opcode.category()) {
            self.categories[category] += count;
        }
    }

    fn count_registers(&mut self, data: &InstrData, target: &Target) {
        for dst in &data.dsts {
            self.count_register(dst.class, &dst.place, dst.mask, target);
        }
        for src in &data.srcs {
            if let SrcOperand::Place(place) = &src.operand {
                self.count_register(src.class, place, src.mask, target);
            }
        }
    }

    fn count_register(&mut self, class: RegClass, place: &Place, mask: WriteMask, target: &Target) {
        // The mask of an operand that advances with repetitions includes all of its registers.
        let span = mask.span().max(1) - 1;
        let last = match *place {
            Place::Relative { offset, size } => (i32::from(offset) + i32::from(size)).max(1) as u32 - 1,
            Place::Array(ArrayAccess { base, offset, .. }) => match base.expand() {
                Some(base) => (i32::from(base.0) + i32::from(offset)).max(0) as u32 + span,
                None => return,
            },
            _ => match place.reg() {
                Some(reg) => u32::from(reg.0) + span,
                None => return,
            },
        };
        // Above r47 are the shared and the special registers, and `r63.x`, which is no register.
        if class.file != RegFile::General || last / 4 >= 48 {
            return;
        }
        match (class.half, target.merged_regs) {
            (false, _) => self.full = self.full.max(last / 4 + 1),
            (true, true) => self.full = self.full.max(last / 8 + 1),
            (true, false) => self.half = self.half.max(last / 4 + 1),
        }
    }
}

/// The vectors of the constant file up to the last word that a program reads or stores: the part that has to be loaded;
/// `constlen` may be more.
#[must_use]
pub fn const_vectors(program: &Program, target: &Target) -> u32 {
    let mut consts = consts::ConstWords::of(program, target);
    for &block in &program.layout {
        consts.start_block();
        program.blocks[block].instrs.iter().for_each(|&instr| consts.count(&program.instrs[instr]));
    }
    consts.vectors()
}

/// The end of helper lanes.
#[derive(Clone, Copy, Debug, Default)]
struct Helpers {
    /// The last mark.
    mark: Option<u32>,
    /// The end of the program.
    end: u32,
    /// A quad is read, possibly only by a prefetch before the start.
    quads: bool,
    /// Helper lanes are used by the code.
    used: bool,
}

impl Helpers {
    fn count(&mut self, data: &InstrData, instructions: u32) {
        self.quads |= reads_quad(data);
        self.used |= uses_helpers(data) || votes(data);
        if data.opcode == Opcode::Nop && data.flags.contains(InstrFlags::EQ) {
            self.mark = Some(instructions);
        }
        if data.opcode == Opcode::End {
            self.end = instructions;
        }
    }

    /// The instructions before. From a6xx on, a prefetch before the start needs no helper lanes in the code.
    fn last(&self, stage: Option<ShaderStage>, target: &Target) -> u32 {
        let needed = self.quads && (self.used || target.generation < Generation::A6xx);
        let is_fragment = stage == Some(ShaderStage::Fragment);
        self.mark.unwrap_or(if needed && is_fragment { self.end } else { 0 })
    }
}

/// Components of an access to private memory. In Mesa's texts, only the last source has them.
fn components(data: &InstrData) -> u32 {
    let known = data.memory().and_then(|memory| memory.components).map(u32::from);
    known.unwrap_or_else(|| match data.srcs.last().map(|src| src.operand) {
        Some(SrcOperand::Immediate(n)) => n,
        _ => 1,
    })
}

const fn number(category: Category) -> Option<usize> {
    Some(match category {
        Category::Flow => 0,
        Category::Move => 1,
        Category::Alu2 => 2,
        Category::Alu3 => 3,
        Category::Sfu => 4,
        Category::Texture => 5,
        Category::Memory => 6,
        Category::Barrier => 7,
        Category::Meta => return None,
    })
}

/// Returns true if all destinations are registers, so that latencies can be computed.
fn has_registers(program: &Program) -> bool {
    let known = |place: &Place| place.reg().is_some() || matches!(place, Place::Relative { .. });
    program.iter_instrs().all(|(_, instr)| program.instrs[instr].dsts.iter().all(|dst| known(&dst.place)))
}

/// Returns true if jumps are explicit and all nops exist: for a program without branches, if it has nops.
fn is_legalized(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        matches!(data.attrs, Attrs::Branch { target: Some(_) }) || data.opcode == Opcode::Nop || data.nop > 0
    })
}
