//! The operation of an event, in terms that do not depend on the language: two events of different programs are alike
//! if theirs are equal.

use super::lanes::ScanPart;
use ir3_semantics::environment::memory::{Atomic, Space};
use ir3_semantics::terms::Term;
use std::fmt;

/// The exact operation of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOperation {
    /// A load, a store or an atomic.
    Memory {
        /// The action.
        action: MemoryOperation,
        /// The memory.
        space: Space,
        /// The width of an element.
        bits: u8,
        /// The number of operands, which the kind of the place decides.
        operands: u8,
        /// The access is volatile, and both programs mark volatile accesses.
        volatile: bool,
    },
    /// A store of one word of the constant file, its first operand.
    StoreWord,
    /// A copy of this many words of a uniform buffer to the constant file.
    CopyWords(u32),
    /// A barrier.
    Barrier,
    /// A fence; the kind of the event has the memories.
    Fence,
    /// A choice of one of the active lanes.
    OneLane,
    /// An operation across lanes.
    Lanes(LaneOperation),
}

/// The action of a memory event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic.
    Atomic(Atomic),
}

/// An operation across lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneOperation {
    /// True if the word is the same in all lanes; as floats of this width.
    VoteEqual(Option<u8>),
    /// True if a condition is true in some lane.
    VoteAny,
    /// True if a condition is true in a lane of the quad.
    QuadVote {
        /// True in all lanes instead of any.
        all: bool,
    },
    /// The bit of the lane in a mask.
    InverseBallot,
    /// A word of the mask of lanes.
    Ballot(u32),
    /// True in one lane.
    Elect(Elected),
    /// The number of the first lane, or of the last one.
    LaneNumber {
        /// The last active lane.
        last: bool,
    },
    /// A derivative.
    Derivative {
        /// The bit of the number of the lane in its quad: the direction.
        bit: u8,
        /// One for each half of the quad.
        fine: bool,
        /// Operands and result have 16 bits.
        half: bool,
    },
    /// The derivatives of a texture operation of a number, with these operands.
    TextureDerivatives {
        /// The number of the operation.
        number: u32,
        /// The operands that are present, as bits.
        present: u32,
    },
    /// An exchange in each quad: the numbers differ in these bits.
    Swap(u8),
    /// The value of a lane of the quad.
    QuadBroadcast,
    /// The value of a lane by its number.
    ReadLane,
    /// The value of the last lane of the first cluster.
    ReadLast,
    /// The value of the first lane in which a condition is true.
    ReadWhere,
    /// A shuffle.
    Shuffle(ShuffleOperation),
    /// A broadcast in clusters.
    BroadcastActive(u8),
    /// A scan or reduction.
    Scan {
        /// The term of the combination of two variables.
        combined: Term,
        /// The result.
        part: ScanPart,
        /// The number of lanes that have been combined already.
        step: u8,
        /// The size of a cluster.
        cluster: u8,
    },
}

/// The lane that is elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elected {
    /// The first one.
    First,
    /// The last active lane.
    Last,
    /// Any active lane.
    Any,
}

/// The lane that a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleOperation {
    /// The one of this number.
    Index,
    /// The one whose number differs in these bits.
    Xor,
    /// The lane at this distance before.
    Up,
    /// The lane at this distance after.
    Down,
    /// The lane at this distance after, in clusters of this size.
    Rotate(u8),
}

impl From<LaneOperation> for EventOperation {
    fn from(operation: LaneOperation) -> Self {
        Self::Lanes(operation)
    }
}

impl fmt::Display for EventOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { action, space, bits, operands, volatile } => {
                if *volatile {
                    f.write_str("volatile ")?;
                }
                match action {
                    MemoryOperation::Load => f.write_str("load")?,
                    MemoryOperation::Store => f.write_str("store")?,
                    MemoryOperation::Atomic(op) => write!(f, "atomic {op:?}")?,
                }
                write!(f, " {} {bits} of {operands}", space.name())
            }
            Self::StoreWord => f.write_str("store file"),
            Self::CopyWords(words) => write!(f, "copy {words} words of a uniform buffer to the file"),
            Self::Barrier => f.write_str("barrier"),
            Self::Fence => f.write_str("fence"),
            Self::OneLane => f.write_str("one lane"),
            Self::Lanes(operation) => operation.fmt(f),
        }
    }
}

impl fmt::Display for LaneOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VoteEqual(Some(width)) => write!(f, "vote equal, floats of {width} bits"),
            Self::VoteEqual(None) => f.write_str("vote equal"),
            Self::VoteAny => f.write_str("vote any"),
            Self::QuadVote { all } => write!(f, "quad vote {}", if *all { "all" } else { "any" }),
            Self::InverseBallot => f.write_str("inverse ballot"),
            Self::Ballot(word) => write!(f, "ballot, word {word}"),
            Self::Elect(Elected::First) => f.write_str("elect"),
            Self::Elect(Elected::Last) => f.write_str("elect last"),
            Self::Elect(Elected::Any) => f.write_str("elect any"),
            Self::LaneNumber { last } => write!(f, "number of the {} lane", if *last { "last" } else { "first" }),
            Self::Derivative { bit, fine, half } => {
                let (kind, width) = (if *fine { "fine" } else { "coarse" }, if *half { 16 } else { 32 });
                write!(f, "{kind} derivative in {}, {width} bits", if *bit == 0 { "x" } else { "y" })
            }
            Self::TextureDerivatives { number, .. } => write!(f, "derivatives for texture operation {number}"),
            Self::Swap(flip) => write!(f, "swap {flip}"),
            Self::QuadBroadcast => f.write_str("quad broadcast"),
            Self::ReadLane => f.write_str("read lane"),
            Self::ReadLast => f.write_str("read last"),
            Self::ReadWhere => f.write_str("read where"),
            Self::Shuffle(ShuffleOperation::Rotate(cluster)) => write!(f, "rotate in clusters of {cluster}"),
            Self::Shuffle(shuffle) => write!(f, "shuffle {}", format!("{shuffle:?}").to_lowercase()),
            Self::BroadcastActive(cluster) => write!(f, "broadcast active in clusters of {cluster}"),
            Self::Scan { part, cluster, .. } => write!(
                f,
                "{} in clusters of {cluster}",
                match part {
                    ScanPart::Reduction => "reduction",
                    ScanPart::Inclusive => "inclusive scan",
                    ScanPart::Exclusive => "exclusive scan",
                }
            ),
        }
    }
}
