//! The interpreter of ir3: programs in SSA form, with registers, and in between.
//!
//! A program is decoded into flat arrays (`DecodedOp`). Each operand (a component of a value, a register, half of one,
//! an array element, an immediate, a word of the constant file) becomes a slot of 64 lanes (`storage`), so the loop
//! that runs a program is the same for all forms:
//!
//! - SSA values and values whose register has been chosen (`ssa_5(r61.x)`) have slots of their own: an operand that
//!   names a value reads the value. An operand that is a register reads that register. So a register assignment takes
//!   effect where operands are registers.
//! - Arrays in SSA form have one row of slots for each version of the whole array; arrays before `array_to_ssa` have
//!   one; arrays with registers are those registers.
//! - Everything is poison at first, except the results of `_meta:in`.
//!
//! Control flow: each lane is in a block. The wave runs the first block in the layout that has lanes, with all of those
//! lanes active. Phis are parallel moves on the control-flow edges, in the lanes that take the edge. A result is
//! written in the active lanes; the others keep their values, so values that leave a divergent loop are right.
//! Predication (`predt`, `predf`, `prede`) is ordinary control flow here: the blocks of both sides are successors.
//!
//! Time is not modelled. Delay slots, `(ss)` and `(sy)` mean nothing before legalization, and the programs here have
//! not been legalized. A program with `bar` in a workgroup of more than one wave is run by two waves; see `waves`.

mod comparisons;
mod decode;
mod flips;
pub mod machine;
pub mod op;
mod run;
mod same_code;
pub(crate) mod slots;
pub mod storage;
#[cfg(test)]
mod tests;
mod watch;

pub use comparisons::{ComparedOperands, ComparisonPoint};
pub use decode::lone_half;
pub use flips::{FlipBits, FlipKind, FlipSite, Flippable};

use super::filling::Narrow;
use super::trace::Traced;
use super::{OperationSite, Outcome, OutputSlot, Places, Scratch, Unsupported};
use crate::environment::env::{Env, Launch};
use crate::environment::memory::{AccessKind, OrderedCode, Space};
use crate::pair::PairFacts;
use ir3_compiler::ir3::access::MemoryAction;
use ir3_compiler::ir3::{DriverParam, InputKind, Instr, Output, Program};
use ir3_compiler::target::Target;
use op::{ConstWidth, DecodedBlock, DecodedOp};
use rustc_hash::FxHashMap;
use storage::{Read, Write};

/// A program that is ready to run, any number of times.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The operations of all blocks.
    pub ops: Vec<DecodedOp>,
    /// The names of the instructions that may be undefined, for messages.
    pub(crate) sites: Vec<(Instr, &'static str)>,
    /// False if a path leaves the preamble without its end.
    pub ends_preamble: bool,
    /// The blocks, in the order of the program.
    pub blocks: Vec<DecodedBlock>,
    /// The moves of parallel copies and of edges.
    pub copies: Vec<(Read, Write)>,
    /// The number of rows that staged moves need: two per move.
    pub(crate) stage: usize,
    /// The components of inputs that operations read.
    pub inputs: Vec<InputSlot>,
    /// The outputs that operations write: the output, its component, the operand.
    pub outputs: Vec<(Output, u32, Read)>,
    /// The outputs that the program has.
    pub declared: Vec<OutputSlot>,
    /// The accesses to memory.
    pub memory: Vec<op::Memory>,
    /// The opcodes of its accesses, by the number of the instruction.
    pub(crate) memory_names: FxHashMap<u32, &'static str>,
    /// The texture instructions.
    pub textures: Vec<op::Texture>,
    /// The number of slots.
    pub slots: u32,
    /// The slots of less than 32 bits.
    pub(crate) narrow: Narrow,
    /// Immediates, and the slots that have them.
    pub immediates: Vec<(u32, u32)>,
    /// Constants, with their width, and the slots that have them.
    pub consts: Vec<(u16, ConstWidth, u32)>,
    /// The constants that the driver fills with values of the launch.
    pub driver_params: Vec<DriverParam>,
    /// The constants that the driver fills with immediates: the word, its value.
    pub driver_immediates: Vec<(u16, u32)>,
    /// The launch.
    pub launch: Launch,
    /// The number of waves that run it: see [`waves`](super::waves).
    pub(crate) waves: u32,
    /// Bytes of scratch memory per lane; 0 where that is not declared.
    pub scratch_size: u32,
    /// It has operands relative to `a0.x`, of arrays of a known size in registers.
    pub has_register_arrays: bool,
    /// The slot that stays undefined, if there is one.
    pub undefined: Option<u32>,
    /// The facts about the pair that its runs are compared in.
    pub(crate) facts: PairFacts,
    /// The first slots of SSA values, in order, and the values' numbers, if the program has such.
    pub values: Vec<(u32, u32)>,
}

/// A component of a `_meta:in`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputSlot {
    /// The kind of the input.
    pub kind: InputKind,
    /// The component.
    pub component: u32,
    /// True if the register has 16 bits.
    pub half: bool,
    /// The slot that it is written to.
    pub dst: Write,
    /// Another input has the same register. All inputs are written when the program starts, so neither has a value.
    pub clash: bool,
}

impl Decoded {
    /// Decodes a program for a target, which decides whether half registers are halves of full ones.
    ///
    /// # Errors
    /// If the program has an operation that the interpreter does not support, or one whose text does not determine its
    /// meaning: the error names it and its place.
    pub fn new(program: &Program, target: &Target) -> Result<Self, Unsupported> {
        decode::decode(program, target)
    }

    /// Like [`new`](Decoded::new), and returns the names of the program's locations.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn with_places(program: &Program, target: &Target) -> Result<(Self, Places), Unsupported> {
        decode::decode_with_places(program, target)
    }

    /// Returns the program as one of a pair.
    #[must_use]
    pub fn in_pair(self, facts: PairFacts) -> Self {
        Self { facts, ..self }
    }

    /// Its accesses to memory that other waves see, barriers and fences, in the order of the code.
    pub fn ordered_code(&self) -> Vec<OrderedCode> {
        let access = |number: u32| {
            let access = &self.memory[number as usize];
            let kind = match access.action {
                MemoryAction::Load => AccessKind::Load,
                MemoryAction::Store => AccessKind::Store,
                MemoryAction::Atomic(_) => AccessKind::Atomic,
                _ => return None,
            };
            let space = Space::of(access.space).filter(|&space| space != Space::Scratch)?;
            Some(OrderedCode::Access { site: access.instr.as_u32(), kind, space, volatile: access.volatile })
        };
        let code = self.ops.iter().zip(0..).filter_map(|(op, site)| match *op {
            DecodedOp::Memory(number) => access(number),
            DecodedOp::Sync(sync) => Some(OrderedCode::Sync { site, sync }),
            _ => None,
        });
        code.collect()
    }

    /// The position of an access, by the number that a trace has.
    pub fn site(&self, number: u32) -> Option<OperationSite> {
        self.memory_names.get(&number).map(|&operation| OperationSite { operation, instr: number, line: 0 })
    }

    /// Runs the program in an environment, for at most `fuel` instructions.
    pub fn run(&self, env: &Env, fuel: u64, scratch: &mut Scratch) -> Outcome {
        run::run(self, env, fuel, scratch)
    }

    /// Returns true if it has a preamble, which one wave of a draw runs.
    pub fn has_preamble(&self) -> bool {
        self.blocks.iter().any(|block| match &block.terminator {
            op::Terminator::Branch(condition, ..) | op::Terminator::Skip(condition, ..) => {
                matches!(condition, op::Condition::RunsPreamble)
            }
            op::Terminator::End(..) | op::Terminator::Jump(_) => false,
        })
    }

    /// Like [`run`](Decoded::run), and calls `step` with each step of the wave from block to block, by their positions
    /// in the layout. A step is no edge of the program where the next lanes have waited; steps from a block in which
    /// the last running lane ended are left out.
    pub fn run_stepping(
        &self,
        env: &Env,
        fuel: u64,
        scratch: &mut Scratch,
        step: &mut dyn FnMut(usize, usize),
    ) -> Outcome {
        run::run_watched(self, env, fuel, scratch, &mut watch::Steps::new(step))
    }

    /// Runs a program of a pair once, and records the steps of one lane.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn trace(
        program: &Program,
        target: &Target,
        facts: PairFacts,
        env: &Env,
        fuel: u64,
        lane: u8,
    ) -> Result<Traced, Unsupported> {
        let (decoded, table) = decode::decode_watched(program, target)?;
        let decoded = decoded.in_pair(facts);
        let mut recorder = watch::Recorder::new(lane, &table);
        let mut scratch = Scratch::default();
        scratch.memory.keep_log(true);
        let outcome = run::run_watched(&decoded, env, fuel, &mut scratch, &mut recorder);
        Ok(Traced { outcome, trace: recorder.finish() })
    }

    fn empty(program: &Program) -> Self {
        let size = program.workgroup_size.unwrap_or([64, 1, 1]).map(u32::from);
        Self {
            ops: Vec::new(),
            sites: Vec::new(),
            ends_preamble: true,
            blocks: Vec::new(),
            copies: Vec::new(),
            stage: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            declared: Vec::new(),
            memory: Vec::new(),
            memory_names: FxHashMap::default(),
            textures: Vec::new(),
            slots: 0,
            narrow: Narrow::new(),
            immediates: Vec::new(),
            consts: Vec::new(),
            driver_params: program.consts.driver_params.clone(),
            driver_immediates: program.consts.immediates.clone(),
            launch: Launch { fragment: decode::is_fragment(program), workgroup_size: size, wave: 0 },
            waves: 1,
            scratch_size: program.scratch_size,
            has_register_arrays: false,
            undefined: None,
            facts: PairFacts::default(),
            values: Vec::new(),
        }
    }
}
