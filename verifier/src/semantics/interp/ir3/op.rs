//! Decoded instructions: operands are slots, everything that can be looked up is looked up.

use super::storage::{Loc, Read, Write};
use crate::semantics::arithmetic::convert;
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::environment::memory::{Atomic, TexelView};
use crate::semantics::environment::sync::Sync;
use crate::semantics::operations::{Modify, One, Select, Three, Two};
use ir3_compiler::ir3::access::{AtomicOp, MemoryAction, PrintedShape, Slot, TextureKind};
use ir3_compiler::ir3::{AddressSpace, Instr, ShuffleMode, Type};

/// One thing to do for all executing lanes. An instruction becomes one of these for each component that it writes, or
/// a few, where it addresses registers indirectly.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The wave waits for others, or orders its accesses.
    Sync(Sync),
    /// A kernel of one source.
    Alu1 {
        /// The kernel.
        kernel: &'static One,
        /// Its source.
        src: Read,
        /// Its result.
        dst: Write,
    },
    /// A kernel of two sources.
    Alu2 {
        /// The kernel.
        kernel: &'static Two,
        /// Its sources.
        srcs: [Read; 2],
        /// Its result.
        dst: Write,
    },
    /// A kernel of three sources.
    Alu3 {
        /// The kernel.
        kernel: &'static Three,
        /// Its sources.
        srcs: [Read; 3],
        /// Its result.
        dst: Write,
    },
    /// A choice between two sources.
    Select {
        /// Which, by what.
        select: Select,
        /// The sources.
        srcs: [Read; 3],
        /// The result.
        dst: Write,
    },
    /// Something done to the source as it is moved.
    Apply {
        /// What is done.
        apply: &'static Modify,
        /// The source.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// The value of a `_meta:in`, by number.
    Input(u32),
    /// A move without conversion.
    Copy(Read, Write),
    /// 1 where the source is not 0, else 0.
    Truth(Read, Write),
    /// Moves that happen at once.
    Copies(Copies),
    /// Reads an element that each lane chooses.
    Gather {
        /// The elements.
        array: Elements,
        /// Added to the lane's index.
        offset: i32,
        /// The index.
        index: Read,
        /// The slot that receives the element; poison where there is none.
        to: u32,
    },
    /// Writes an element that each lane chooses.
    Scatter {
        /// The elements.
        array: Elements,
        /// Added to the lane's index.
        offset: i32,
        /// The index.
        index: Read,
        /// What is written.
        from: Read,
        /// For messages.
        instr: Instr,
    },
    /// Reads a word of the constant file that each lane chooses.
    GatherConst {
        /// Added to the lane's index.
        offset: i32,
        /// The index.
        index: Read,
        /// What becomes of the word.
        width: ConstWidth,
        /// The slot that receives the word.
        to: u32,
    },
    /// An interpolated varying.
    Interpolate {
        /// Number of the varying.
        varying: Read,
        /// Barycentric coordinates.
        ij: [Read; 2],
        /// The result has 16 bits.
        half: bool,
        /// The result.
        dst: Write,
    },
    /// A varying that is not interpolated.
    Flat {
        /// Number of the varying.
        varying: Read,
        /// Added to it.
        component: u32,
        /// The result has 16 bits.
        half: bool,
        /// The result.
        dst: Write,
    },
    /// Mask of the lanes that execute, or of those of them where a predicate holds.
    MoveMask {
        /// The predicate.
        predicate: Option<Read>,
        /// Which 32 lanes.
        word: u32,
        /// The result.
        dst: Write,
    },
    /// Whether a predicate holds in any or in all executing lanes.
    Vote {
        /// In any.
        any: bool,
        /// The predicate.
        predicate: Read,
        /// The result, 0 or 1.
        dst: Write,
    },
    /// 1 in the first executing lane, 0 in the others.
    Elect(Write),
    /// The value of one executing lane, in all of them.
    ReadLane {
        /// Which lane.
        which: Which,
        /// The value.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// Reduction and scans, one lane after the other.
    Scan(Scan),
    /// Differences within a quad.
    Derivative {
        /// Lane bit: 1 in x, 2 in y.
        bit: u8,
        /// Per row or column, instead of one for the quad.
        fine: bool,
        /// Of floats of 16 bits.
        half: bool,
        /// The value.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// The value of the last executing lane of a cluster's lower half, for the lanes of its upper half.
    BroadcastActive {
        /// Lanes of a cluster.
        cluster: u8,
        /// What is broadcast.
        src: Read,
        /// What the other lanes have.
        default: Read,
        /// The result.
        dst: Write,
    },
    /// The value of another lane of the quad.
    QuadShuffle {
        /// The lane number in the quad, or `None` for the lane that differs in these bits.
        lane: Option<Read>,
        /// Bits in which the lane differs.
        flip: u8,
        /// The value.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// The value of another lane of the wave.
    Shuffle {
        /// How the lane is found.
        mode: ShuffleMode,
        /// The distance, or the bits that flip.
        index: Read,
        /// The value.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// Memory access, by number.
    Memory(u32),
    /// Texture access, by number.
    Texture(u32),
    /// Lanes whose predicate holds end.
    Kill(Read, Instr),
    /// Lanes whose predicate holds turn into helper lanes.
    Demote(Read, Instr),
}

/// What a half operand takes of a word of the constant file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConstWidth {
    /// The whole word.
    Full,
    /// Its low 16 bits.
    Truncated,
    /// The float that it is, rounded to 16 bits toward zero.
    Rounded,
}

impl ConstWidth {
    /// What is taken of a word, in any domain.
    pub fn of<D: Domain>(self, d: &mut D, word: D::V) -> D::V {
        match self {
            Self::Full => word,
            Self::Truncated => {
                let low = d.extract(32, word, 0, 16);
                d.zext(16, 32, low)
            }
            Self::Rounded => convert::half_word(d, word),
        }
    }
}

/// A row of slots, or of halves of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    /// The slot of element 0 (with the first half of which it begins, if `halves`).
    pub slot: u32,
    /// Index of the first half in `slot`, if `halves`.
    pub first: u32,
    /// Each element is half a slot.
    pub halves: bool,
    /// Number of elements.
    pub length: u32,
}

impl Elements {
    /// The place of element `i`.
    pub fn loc(&self, i: u32) -> Loc {
        use super::storage::Part;
        if self.halves {
            let half = self.first + i;
            Loc { slot: self.slot + half / 2, part: if half & 1 == 0 { Part::Low } else { Part::High } }
        } else {
            Loc::whole(self.slot + i)
        }
    }
}

/// Moves that happen at once: a range of [`Decoded`](super::Decoded)'s moves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copies {
    /// The first.
    pub start: u32,
    /// Behind the last.
    pub end: u32,
    /// One after the other would be wrong: all have to be read first.
    pub staged: bool,
}

/// Which lane is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// The first that executes.
    First,
    /// The last that executes.
    Last,
    /// The first that executes and where this holds.
    Where(Read),
}

/// Reduction and scans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    /// The operation.
    pub kernel: &'static Two,
    /// The values are those of clusters of 8 lanes, combined already, up to each lane.
    pub clusters: bool,
    /// What is combined.
    pub src: Read,
    /// What is combined for the exclusive result (clusters only).
    pub exclusive_src: Option<Read>,
    /// What there is before the first lane.
    pub initial: Read,
    /// Result of the lanes before this one.
    pub exclusive: Option<Write>,
    /// Result of the lanes up to this one.
    pub inclusive: Option<Write>,
    /// Result of all lanes.
    pub reduction: Write,
    /// The values have 16 bits.
    pub half: bool,
}

/// A way out of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Position of the next block in the layout.
    pub to: u32,
    /// Moves into its phis.
    pub copies: Copies,
}

/// Which lanes take a branch's first edge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    /// Where this holds.
    Is(Read),
    /// Where both hold.
    And(Read, Read),
    /// Where one of them holds.
    Or(Read, Read),
    /// All, if this holds in one of them.
    Any(Read),
    /// All, if this holds in all of them.
    All(Read),
    /// The first.
    First,
    /// The last.
    Last,
    /// All.
    Always,
}

/// How a block ends.
#[derive(Clone, Debug)]
pub(crate) enum Terminator {
    /// The lanes end; these are the sources of the outputs, a range of [`Decoded`](super::Decoded)'s outputs.
    End(u32, u32),
    /// They go on.
    Jump(Edge),
    /// They go on, and the condition holds.
    Skip(Condition, Edge, Instr),
    /// They part.
    Branch(Condition, Edge, Edge, Instr),
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Its first operation.
    pub start: u32,
    /// Behind its last operation.
    pub end: u32,
    /// Instructions in it, for fuel.
    pub instructions: u32,
    /// How it ends.
    pub terminator: Terminator,
}

/// A number that an instruction has in itself or in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Known.
    Fixed(u32),
    /// `source >> shift & mask`.
    Field {
        /// The register.
        read: Read,
        /// Bits below the field.
        shift: u8,
        /// Mask, after the shift.
        mask: u32,
    },
}

/// Which resource an access is to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    /// Its descriptor set, if it is bindless.
    pub set: Option<Number>,
    /// Its index.
    pub index: Number,
}

/// Where in a memory an access is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Nowhere: a size.
    None,
    /// At a byte address: see [`linear_address`](ir3_compiler::ir3::access::linear_address).
    Linear {
        /// Low and high words of a 64-bit address.
        base: Option<[Read; 2]>,
        /// Indices that are added.
        indices: [Option<Read>; 2],
        /// Bytes that the index counts.
        scale: u8,
        /// Added to it.
        offset: i32,
    },
    /// At a texel.
    Texel(Vec<Read>),
}

/// An access to memory.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// What is done.
    pub action: MemoryAction,
    /// It is volatile or coherent.
    pub volatile: bool,
    /// Which memory.
    pub space: AddressSpace,
    /// Which resource, where there are several.
    pub resource: Option<Resource>,
    /// Where.
    pub place: Place,
    /// Type of an element.
    pub ty: Type,
    /// Stored elements, the operand of an atomic, or the word of the constant file that a copy begins at.
    pub data: Vec<Read>,
    /// Words that a copy to the constant file writes.
    pub copied: u32,
    /// What an atomic compares with; two words of 64 bits.
    pub compare: Vec<Read>,
    /// Elements that are loaded, and where to.
    pub results: Vec<(u32, Write)>,
    /// For messages.
    pub instr: Instr,
}

impl Memory {
    /// How a load or store sees the texels of an image.
    pub fn view(&self) -> TexelView {
        match self.action {
            MemoryAction::Load | MemoryAction::Store if self.space == AddressSpace::Image => TexelView::of_ir3(self.ty),
            _ => TexelView::default(),
        }
    }
}

/// A question to a texture.
#[derive(Clone, Debug)]
pub(crate) struct Texture {
    /// What is asked.
    pub kind: TextureKind,
    /// Which texture.
    pub texture: Resource,
    /// Which sampler.
    pub sampler: Resource,
    /// The operands.
    pub operands: Vec<(Slot, Read)>,
    /// Barycentric coordinates and varying that the first two coordinates are interpolated from.
    pub prefetch: Option<([Read; 2], u32)>,
    /// The level comes from derivatives.
    pub derivatives: bool,
    /// What the text tells of the texture's shape.
    pub shape: PrintedShape,
    /// Type of the answer.
    pub ty: Type,
    /// Numbers of levels are one less here.
    pub levels_add_one: bool,
    /// Components of the answer that are wanted, and where.
    pub results: Vec<(u32, Write)>,
}

/// What an atomic does.
pub(crate) fn atomic(op: AtomicOp) -> Atomic {
    match op {
        AtomicOp::Add => Atomic::Add,
        AtomicOp::Sub => Atomic::Sub,
        AtomicOp::Xchg => Atomic::Exchange,
        AtomicOp::Inc => Atomic::IncrementWrap,
        AtomicOp::Dec => Atomic::DecrementWrap,
        AtomicOp::Cmpxchg => Atomic::CompareExchange,
        AtomicOp::MinS => Atomic::Smin,
        AtomicOp::MinU => Atomic::Umin,
        AtomicOp::MaxS => Atomic::Smax,
        AtomicOp::MaxU => Atomic::Umax,
        AtomicOp::And => Atomic::And,
        AtomicOp::Or => Atomic::Or,
        AtomicOp::Xor => Atomic::Xor,
    }
}
