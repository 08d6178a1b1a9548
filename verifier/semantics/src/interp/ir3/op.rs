//! Decoded instructions: operands are slots, and every table lookup is done.

use super::storage::{Loc, Read, Write};
use crate::arithmetic::convert;
use crate::arithmetic::domain::Domain;
use crate::environment::memory::{Atomic, TexelView};
use crate::environment::sync::Sync;
use crate::operations::{Modify, One, Select, Three, Two};
use ir3_compiler::ir3::access::{AtomicOp, MemoryAction, PrintedShape, Slot, TextureKind};
use ir3_compiler::ir3::{AddressSpace, Instr, ShuffleMode, Type};
use smallvec::SmallVec;

/// An operation on all active lanes. An instruction becomes one of these for each component that it writes, or a few
/// where it addresses registers indirectly.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodedOp {
    /// A barrier or a fence.
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
        /// The condition of the choice.
        select: Select,
        /// The sources.
        srcs: [Read; 3],
        /// The result.
        dst: Write,
    },
    /// A modifier that is applied to the source of a move.
    Apply {
        /// The modifier.
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
    /// 1 if the source is not 0, else 0.
    Truth(Read, Write),
    /// Parallel moves.
    Copies(Copies),
    /// Reads an element by the lane's index.
    Gather {
        /// The elements.
        array: SlotElements,
        /// Added to the lane's index.
        offset: i32,
        /// The index.
        index: Read,
        /// The slot that receives the element; poison if there is none.
        to: u32,
    },
    /// Writes an element by the lane's index.
    Scatter {
        /// The elements.
        array: SlotElements,
        /// Added to the lane's index.
        offset: i32,
        /// The index.
        index: Read,
        /// The value that is written.
        from: Read,
        /// The instruction, for messages.
        instr: Instr,
    },
    /// Reads a word of the constant file by the lane's index.
    GatherConst {
        /// Added to the lane's index.
        offset: i32,
        /// The index.
        index: Read,
        /// The width of the operand that reads the word.
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
        /// True if the result has 16 bits.
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
        /// True if the result has 16 bits.
        half: bool,
        /// The result.
        dst: Write,
    },
    /// Mask of the active lanes, or of those in which a predicate holds.
    MoveMask {
        /// The predicate.
        predicate: Option<Read>,
        /// The word of the mask: 32 lanes.
        word: u32,
        /// The result.
        dst: Write,
    },
    /// 1 if a predicate holds in any, or in all, active lanes: a subgroup vote.
    Vote {
        /// True for a vote on any lane, false on all.
        any: bool,
        /// The predicate.
        predicate: Read,
        /// The result, 0 or 1.
        dst: Write,
    },
    /// 1 in the first active lane, 0 in the others.
    Elect(Write),
    /// The value of one active lane, in all of them.
    ReadLane {
        /// The lane that is read.
        which: Which,
        /// The value.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// Reduction and scans, lane by lane.
    Scan(ScanOp),
    /// Differences within a quad.
    Derivative {
        /// Lane bit: 1 in x, 2 in y.
        bit: u8,
        /// Per row or column, instead of one for the quad.
        fine: bool,
        /// True if the operands are floats of 16 bits.
        half: bool,
        /// The value.
        src: Read,
        /// The result.
        dst: Write,
    },
    /// The value of the last active lane of a cluster's lower half, for the lanes of its upper half.
    BroadcastActive {
        /// Lanes of a cluster.
        cluster: u8,
        /// The value that is broadcast.
        src: Read,
        /// The value of the other lanes.
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
        /// The rule that computes the lane.
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
    /// Ends the lanes whose predicate holds.
    Kill(Read, Instr),
    /// Turns the lanes whose predicate holds into helper lanes.
    Demote(Read, Instr),
    /// Checks that the predicate of a subgroup macro is defined in the active lanes: the macro is lowered to a branch.
    Decided(Read, Instr),
}

/// The part of a word of the constant file that an operand reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstWidth {
    /// The whole word.
    Full,
    /// Its low 16 bits.
    Truncated,
    /// The word as a float, rounded to 16 bits toward zero.
    Rounded,
}

impl ConstWidth {
    /// The value that is read from a word, in any domain.
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

/// Consecutive slots, or halves of slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotElements {
    /// The slot of element 0 (and of its first half, if `halves`).
    pub slot: u32,
    /// Index of the first half in `slot`, if `halves`.
    pub first: u32,
    /// True if each element is half a slot.
    pub halves: bool,
    /// Number of elements.
    pub length: u32,
}

impl SlotElements {
    /// The location of element `i`.
    pub fn loc(&self, i: u32) -> Loc {
        use super::storage::SlotPart;
        if self.halves {
            let half = self.first + i;
            Loc { slot: self.slot + half / 2, part: if half & 1 == 0 { SlotPart::Low } else { SlotPart::High } }
        } else {
            Loc::whole(self.slot + i)
        }
    }
}

/// A parallel move: a range of [`Decoded`](super::Decoded)'s moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copies {
    /// The first.
    pub start: u32,
    /// The index after the last move.
    pub end: u32,
    /// True if a move writes a source of a later one, so that all sources have to be read first.
    pub staged: bool,
}

/// The lane that is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Which {
    /// The first active lane.
    First,
    /// The last active lane.
    Last,
    /// The first active lane in which the predicate is true.
    Where(Read),
}

/// Reduction and scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanOp {
    /// The operation.
    pub kernel: &'static Two,
    /// True if the values are those of clusters of 8 lanes, already combined up to each lane.
    pub clusters: bool,
    /// The value that is combined.
    pub src: Read,
    /// The value that is combined for the exclusive result (clusters only).
    pub exclusive_src: Option<Read>,
    /// The initial value.
    pub initial: Read,
    /// The result of the lanes before this one.
    pub exclusive: Option<Write>,
    /// The result of the lanes up to this one.
    pub inclusive: Option<Write>,
    /// The result of all lanes.
    pub reduction: Write,
    /// True if the values have 16 bits.
    pub half: bool,
}

/// A control-flow edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodedEdge {
    /// Position of the next block in the layout.
    pub to: u32,
    /// Moves into its phis.
    pub copies: Copies,
}

/// The lanes that take a branch's first edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// The lanes in which the predicate is true.
    Is(Read),
    /// The lanes in which both predicates are true.
    And(Read, Read),
    /// The lanes in which one of the predicates is true.
    Or(Read, Read),
    /// All lanes, if the predicate is true in one of them.
    Any(Read),
    /// All lanes, if the predicate is true in all of them.
    All(Read),
    /// The first lane.
    First,
    /// The last lane.
    Last,
    /// All lanes, if the wave runs the preamble. In runs it always does; a wave that skips the preamble finds the same
    /// words in the constant file.
    RunsPreamble,
}

/// The terminator of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// The lanes end; these are the sources of the outputs, a range of [`Decoded`](super::Decoded)'s outputs.
    End(u32, u32),
    /// All lanes take the edge.
    Jump(DecodedEdge),
    /// All lanes take the edge; the condition must hold in them.
    Skip(Condition, DecodedEdge, Instr),
    /// The lanes diverge.
    Branch(Condition, DecodedEdge, DecodedEdge, Instr),
}

/// A decoded block.
#[derive(Clone, Debug)]
pub struct DecodedBlock {
    /// Its first operation.
    pub start: u32,
    /// The index after its last operation.
    pub end: u32,
    /// The number of instructions in it, for fuel.
    pub instructions: u32,
    /// Its terminator.
    pub terminator: Terminator,
}

/// A number that is an immediate of an instruction or is read from a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberOperand {
    /// An immediate.
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

/// The resource of an access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResourceOperand {
    /// Its descriptor set, if it is bindless.
    pub set: Option<NumberOperand>,
    /// Its index.
    pub index: NumberOperand,
    /// True if the index is computed and the access is not marked nonuniform: all lanes must access the same resource.
    pub shared: bool,
}

/// The address of an access in its memory.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessAddress {
    /// The operation is a query of the size, without an address.
    None,
    /// A byte address: see [`linear_address`](ir3_compiler::ir3::access::linear_address).
    Linear {
        /// Low and high words of a 64-bit address.
        base: Option<[Read; 2]>,
        /// The indices, which are added up.
        indices: [Option<Read>; 2],
        /// Bytes per unit of the index.
        scale: u8,
        /// Bytes that are added to the address.
        offset: i32,
    },
    /// The coordinates of a texel.
    Texel(Vec<Read>),
}

/// The second address of an access before a6xx: see [`byte_offset`](crate::operations::byte_offset).
#[derive(Clone, Debug, PartialEq)]
pub struct ByteOffset {
    /// The low word of the byte offset.
    pub low: Read,
    /// The high word, which has to be 0.
    pub high: Option<Read>,
    /// The start of the buffer or image, if the byte offset is relative to the start of memory.
    pub start: Option<Read>,
    /// The bytes of a texel, of a row and of a slice.
    pub strides: SmallVec<[Read; 3]>,
    /// True if the byte offset counts words, for some accesses to images.
    pub in_words: bool,
    /// True if the text prints the words of the constant file that describe the buffer or image. Otherwise the byte
    /// offset is compared between two programs in ir3, and assumed to match the address elsewhere.
    pub is_described: bool,
}

/// An access to memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// The operation.
    pub action: MemoryAction,
    /// True if it reads through the texture cache, which is not coherent with stores.
    pub cached: bool,
    /// True if it reads an image through a texture with an index of its own.
    pub is_of_texture: bool,
    /// True if it is volatile or coherent.
    pub volatile: bool,
    /// The kind of memory.
    pub space: AddressSpace,
    /// The resource, for kinds of memory with several.
    pub resource: Option<ResourceOperand>,
    /// The address.
    pub place: AccessAddress,
    /// The byte offset of the access, in addition to its address.
    pub bytes: Option<Box<ByteOffset>>,
    /// A coordinate of the encoding beyond the dimensions of the image. Lanes in which it is not 0 load poison; a
    /// store is undefined behaviour in them.
    pub padding: Option<Read>,
    /// Type of an element.
    pub ty: Type,
    /// Stored elements, the operand of an atomic, or the first word of the constant file that a copy writes.
    pub data: Vec<Read>,
    /// The number of words that a copy to the constant file writes.
    pub copied: u32,
    /// The shape of the image that `isam` prints.
    pub shape: PrintedShape,
    /// The number of dimensions that a size query returns.
    pub dimensions: u8,
    /// The comparand of an atomic; two words for 64 bits.
    pub compare: Vec<Read>,
    /// The loaded elements and their destinations.
    pub results: Vec<(u32, Write)>,
    /// The instruction, for messages.
    pub instr: Instr,
}

impl Memory {
    /// The view of a load or store on the texels of an image.
    pub fn view(&self) -> TexelView {
        match self.action {
            MemoryAction::Load | MemoryAction::Store if self.space == AddressSpace::Image => {
                TexelView::of_ir3(self.ty, self.shape)
            }
            _ => TexelView::default(),
        }
    }
}

/// A texture operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// The kind of the operation.
    pub kind: TextureKind,
    /// The texture.
    pub texture: ResourceOperand,
    /// The sampler.
    pub sampler: ResourceOperand,
    /// The operands.
    pub operands: Vec<(Slot, Read)>,
    /// Barycentric coordinates and varying that the first two coordinates are interpolated from.
    pub prefetch: Option<([Read; 2], u32)>,
    /// True if the level is computed from derivatives.
    pub derivatives: bool,
    /// The shape of the texture in the text.
    pub shape: PrintedShape,
    /// The type of the result.
    pub ty: Type,
    /// The only lane of each quad that issues the request, and is written.
    pub quad_lane: Option<u8>,
    /// True if the machine returns numbers of levels minus one.
    pub levels_add_one: bool,
    /// The components of the result that are read, and their destinations.
    pub results: Vec<(u32, Write)>,
    /// The instruction, for messages.
    pub instr: Instr,
}

impl Texture {
    /// The component of the texture unit's response that is a component of the result, and true if the machine returns
    /// it minus one. The machine has the number of layers in component 3, nir in component 2; the other of the two has
    /// no meaning in nir.
    pub const fn answered(&self, component: u32) -> (u32, bool) {
        const NO_LAYERS: u32 = 4;
        const MINIFIED_LAYERS: u32 = 5;
        match (self.kind, component) {
            (TextureKind::Info, 2) => (2, self.levels_add_one),
            (TextureKind::Size, 2) if self.shape.array => (MINIFIED_LAYERS, false),
            (TextureKind::Size, 3) if self.shape.array => (2, self.levels_add_one),
            (TextureKind::Size, 3) => (NO_LAYERS, false),
            _ => (component, false),
        }
    }
}

/// The atomic operation of an opcode.
pub fn atomic(op: AtomicOp) -> Atomic {
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
