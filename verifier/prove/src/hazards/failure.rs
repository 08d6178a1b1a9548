//! Hazards, and where they come from.
//!
//! The analysis finds the instruction and the register. The producer and the path to it are searched backwards
//! afterwards, for hazards only.

use super::flow::{BlockIndex, Flow};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::Opcode;
use ir3_compiler::machine::{Code, Ip};
use ir3_semantics::machine::rules::{SourceWait, Wait};
use ir3_semantics::machine::steps::{Step, Steps};
use ir3_semantics::machine::units;
use std::collections::VecDeque;
use std::fmt;

/// The flag that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// `(ss)`.
    Ss,
    /// `(sy)`.
    Sy,
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Ss { "(ss)" } else { "(sy)" })
    }
}

/// The source of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// The machine: a source documents that the hardware requires it. A program that keeps these rules is free of
    /// hazards.
    Machine,
    /// Mesa's own practice: no source states that the machine needs it. A program that breaks only such a rule is
    /// proved, and has a finding.
    Practice,
}

impl Basis {
    /// The name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Practice => "practice",
        }
    }
}

/// The kind of a hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardKind {
    /// A result of the ALU is read too early.
    EarlyRead {
        /// Slots that are missing.
        missing: u32,
    },
    /// A result of another unit is read, and not waited for.
    ReadBeforeResult(Flag),
    /// A register is written for which a result of another unit is outstanding: that may come later.
    WriteBeforeResult(Flag),
    /// A register is written that another unit may not have read yet.
    WriteBeforeRead(Flag),
    /// The constant file is read while it is being written.
    ConstBeforeWrite,
    /// Memory is accessed after a barrier that has not been waited for.
    AccessAfterBarrier(Flag),
    /// The end of the preamble does not wait for its results.
    PreambleEnd(Flag),
    /// `resinfo` is not followed by an `(ss)`.
    AfterResinfo,
    /// Too few nops follow an instruction of predication.
    AfterPredication {
        /// Slots that are missing.
        missing: u32,
    },
    /// Lanes may wait here, and nothing makes them reconverge: there is no `(jp)`.
    NoReconvergence,
    /// More positions where lanes wait than the branch stack holds.
    BranchStack {
        /// Positions.
        depth: u32,
        /// The depth of the branch stack.
        limit: u32,
    },
    /// `a0.x` is read after `(ul)`.
    AddressReleased,
    /// A varying is read after `(ei)`.
    VaryingReleased,
    /// `(ei)` releases varyings that are still being read.
    VaryingOutstanding,
    /// Lanes end before `(ei)`.
    KillBeforeRelease,
    /// The program ends, and has not released the memory of its varyings.
    VaryingHeld,
    /// Helper lanes are needed after `(eq)`.
    HelpersEnded,
    /// `(eq)` in the preamble, where it is not allowed.
    HelpersEndedEarly,
    /// Waves that do not run the preamble go on elsewhere than after its end.
    PreambleTarget,
    /// The driver runs the preamble before the wave has registers, and it uses some.
    EarlyPreamble,
    /// `a1.x` is written in an early preamble, and the source has no `(r)`.
    AddressMark,
    /// One of the two instructions of a fine derivative is missing.
    LoneDerivative,
    /// `stsc` is executed once, where the GPU needs it twice.
    StscOnce,
}

impl HazardKind {
    /// The name of the kind, without its numbers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EarlyRead { .. } => "early-read",
            Self::ReadBeforeResult(_) => "read-before-result",
            Self::WriteBeforeResult(_) => "write-before-result",
            Self::WriteBeforeRead(_) => "write-before-read",
            Self::ConstBeforeWrite => "const-before-write",
            Self::AccessAfterBarrier(_) => "access-after-barrier",
            Self::PreambleEnd(_) => "preamble-end",
            Self::AfterResinfo => "after-resinfo",
            Self::AfterPredication { .. } => "after-predication",
            Self::NoReconvergence => "no-reconvergence",
            Self::BranchStack { .. } => "branch-stack",
            Self::AddressReleased => "address-released",
            Self::VaryingReleased => "varying-released",
            Self::VaryingOutstanding => "varying-outstanding",
            Self::KillBeforeRelease => "kill-before-release",
            Self::VaryingHeld => "varying-held",
            Self::HelpersEnded => "helpers-ended",
            Self::HelpersEndedEarly => "helpers-ended-early",
            Self::EarlyPreamble => "early-preamble",
            Self::PreambleTarget => "preamble-target",
            Self::AddressMark => "address-mark",
            Self::LoneDerivative => "lone-derivative",
            Self::StscOnce => "stsc-once",
        }
    }

    /// The source of the rule.
    #[must_use]
    pub const fn basis(self) -> Basis {
        match self {
            Self::AccessAfterBarrier(_) => Basis::Practice,
            _ => Basis::Machine,
        }
    }
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EarlyRead { missing: 1 } => f.write_str("reads a result one slot too early"),
            Self::EarlyRead { missing } => write!(f, "reads a result {missing} slots too early"),
            Self::ReadBeforeResult(flag) => write!(f, "reads a result without {flag}"),
            Self::WriteBeforeResult(flag) => write!(f, "writes where a result is outstanding, without {flag}"),
            Self::WriteBeforeRead(flag) => {
                write!(f, "overwrites a register that may not have been read, without {flag}")
            }
            Self::ConstBeforeWrite => f.write_str("reads constants that are being written"),
            Self::AccessAfterBarrier(flag) => write!(f, "accesses memory after a barrier, without {flag}"),
            Self::PreambleEnd(flag) => write!(f, "ends the preamble without {flag}"),
            Self::AfterResinfo => f.write_str("follows `resinfo` without (ss)"),
            Self::AfterPredication { missing } => write!(f, "is followed by too few nops: {missing} slots are missing"),
            Self::NoReconvergence => f.write_str("has no (jp), and lanes may wait here"),
            Self::BranchStack { depth, limit } => {
                write!(f, "lanes may wait at {depth} positions, and the branch stack holds {limit}")
            }
            Self::AddressReleased => f.write_str("reads a0.x after (ul)"),
            Self::VaryingReleased => f.write_str("reads a varying after (ei)"),
            Self::VaryingOutstanding => f.write_str("releases varyings that are being read, without (ss)"),
            Self::KillBeforeRelease => f.write_str("ends lanes before (ei)"),
            Self::VaryingHeld => f.write_str("ends the program without (ei)"),
            Self::HelpersEnded => f.write_str("needs helper lanes after (eq)"),
            Self::HelpersEndedEarly => f.write_str("has (eq) in the preamble"),
            Self::EarlyPreamble => {
                f.write_str("begins a preamble that runs before the wave has the registers that it uses")
            }
            Self::PreambleTarget => f.write_str("skips more or less than the preamble"),
            Self::AddressMark => f.write_str("writes a1.x in an early preamble, from a source without (r)"),
            Self::LoneDerivative => {
                f.write_str("is one of the two instructions of a fine derivative, without the other")
            }
            Self::StscOnce => f.write_str("is not followed by `(ss)nop` and the same `stsc`"),
        }
    }
}

/// A hazard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The instruction that reads, writes or lacks something.
    pub at: Ip,
    /// The kind of the hazard.
    pub kind: HazardKind,
    /// The register, if one is concerned.
    pub register: Option<String>,
    /// The instruction whose result, or whose read, is not waited for; for lanes that wait, a branch that makes them
    /// wait.
    pub producer: Option<Ip>,
    /// The first instructions of the blocks on a path from the producer, including both ends.
    pub path: Vec<Ip>,
    /// The first bit of the register.
    pub(super) bit: Option<u16>,
}

impl Hazard {
    pub(super) fn new(at: usize, kind: HazardKind) -> Self {
        Self { at: Ip::new(at), kind, register: None, producer: None, path: Vec::new(), bit: None }
    }

    pub(super) fn of_register(at: usize, kind: HazardKind, bit: u16, half: bool) -> Self {
        Self { bit: Some(bit), register: Some(units::name(bit, half)), ..Self::new(at, kind) }
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.kind)?;
        if let Some(register) = &self.register {
            write!(f, ", {register}")?;
        }
        if let Some(producer) = self.producer {
            write!(f, ", from {producer}")?;
        }
        for (i, ip) in self.path.iter().enumerate() {
            write!(f, "{}{ip}", if i == 0 { ", path " } else { " → " })?;
        }
        Ok(())
    }
}

/// A construct that the checker does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An operand is no register.
    #[error("`{opcode}` has an operand with number {number}, which is no register of its file")]
    NoRegister {
        /// The instruction.
        opcode: Opcode,
        /// The number of the operand's register.
        number: u16,
    },
    /// Control flow that it does not follow.
    #[error("`{0}` is not followed")]
    ControlFlow(Opcode),
    /// Control flow leads out of the code.
    #[error("control flow leads out of the code")]
    LeavesCode,
    /// Predication that is not closed.
    #[error("predication has {0}")]
    Predication(&'static str),
}

/// A program that the checker refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {refusal}")]
pub struct HazardError {
    /// The instruction.
    pub at: Ip,
    /// The reason.
    pub refusal: Refusal,
}

/// Finds the producer of each hazard, and a path from it.
pub(super) fn explain(code: &Code, steps: &Steps, flow: &Flow, hazards: &mut [Hazard]) {
    if hazards.is_empty() {
        return;
    }
    let mut from: Vec<Vec<BlockIndex>> = vec![Vec::new(); flow.blocks.len()];
    for (i, block) in (0..).zip(&flow.blocks) {
        block.lanes.iter().chain(&block.wave).for_each(|&to| from[to as usize].push(i));
    }
    for hazard in hazards.iter_mut().filter(|hazard| hazard.producer.is_none()) {
        let wanted = |step: &Step| produces(steps, step, hazard);
        if let Some(path) = search(code, steps, flow, &from, hazard.at, &wanted) {
            hazard.producer = path.first().copied();
            hazard.path = path;
        }
    }
}

/// Returns true if a hazard may come from this instruction.
fn produces(steps: &Steps, step: &Step, hazard: &Hazard) -> bool {
    let touches = |range| {
        let bit = hazard.bit.unwrap_or(u16::MAX);
        steps
            .operands(range)
            .iter()
            .any(|operand| (operand.piece.bit..operand.piece.bit + operand.piece.width).contains(&bit))
    };
    match hazard.kind {
        HazardKind::EarlyRead { .. } => step.unit.is_alu() && touches(&step.writes),
        HazardKind::ReadBeforeResult(Flag::Sy) | HazardKind::WriteBeforeResult(Flag::Sy) => {
            step.result == Wait::Sy && touches(&step.writes)
        }
        HazardKind::ReadBeforeResult(Flag::Ss) | HazardKind::WriteBeforeResult(Flag::Ss) => touches(&step.writes),
        HazardKind::WriteBeforeRead(_) => step.source != SourceWait::None && touches(&step.reads),
        HazardKind::ConstBeforeWrite => step.const_write != ir3_semantics::machine::rules::ConstWrite::None,
        HazardKind::AccessAfterBarrier(_) => step.unit == ir3_semantics::machine::rules::Unit::Barrier,
        _ => false,
    }
}

/// The nearest instruction before `at` that is wanted, and the starts of the blocks between them, including both ends.
fn search(
    code: &Code,
    steps: &Steps,
    flow: &Flow,
    from: &[Vec<BlockIndex>],
    at: Ip,
    wanted: &dyn Fn(&Step) -> bool,
) -> Option<Vec<Ip>> {
    let within = |start: u32, end: u32| (start..end).rev().find(|&ip| wanted(&steps.steps[ip as usize]));
    let own = flow.block_of[at.index()];
    let start = flow.blocks[own as usize].ips.start;
    if let Some(found) = within(start, at.index() as u32) {
        return Some(vec![Ip::new(found as usize), at]);
    }
    // The block that each was reached from, towards the hazard.
    let mut next: Vec<Option<BlockIndex>> = vec![None; code.instrs.len().min(flow.blocks.len())];
    let mut seen = vec![false; flow.blocks.len()];
    let mut queue: VecDeque<(BlockIndex, BlockIndex)> = from[own as usize].iter().map(|&block| (block, own)).collect();
    while let Some((block, to)) = queue.pop_front() {
        if std::mem::replace(&mut seen[block as usize], true) {
            continue;
        }
        next[block as usize] = Some(to);
        let ips = &flow.blocks[block as usize].ips;
        if let Some(found) = within(ips.start, ips.end) {
            let mut path = vec![Ip::new(found as usize)];
            let mut here = to;
            while here != own && path.len() <= flow.blocks.len() {
                path.push(Ip::new(flow.blocks[here as usize].ips.start as usize));
                here = next[here as usize].unwrap_or(own);
            }
            path.extend([Ip::new(start as usize), at]);
            path.dedup();
            return Some(path);
        }
        queue.extend(from[block as usize].iter().map(|&other| (other, block)));
    }
    None
}
