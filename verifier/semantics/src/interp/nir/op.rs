//! Decoded shaders: operations on rows.

use ir3_compiler::ir3::access::{Slot, TextureKind};
use ir3_compiler::ir3::{AddressSpace, SystemValue, Type};
use ir3_compiler::nir::{IntrinsicOp, Op};
use smallvec::SmallVec;
use std::sync::OnceLock;

use super::uses::uses_of;
pub use super::uses::writes;
use crate::arithmetic::domain::Domain;
use crate::arithmetic::{convert, integer};
use crate::environment::aliases::MemoryName;
use crate::environment::memory::{Atomic, TexelView, size_property};
use crate::environment::sync::Sync;
use crate::interp::filling::Narrow;
use crate::interp::uses::ValueUses;
use crate::interp::{OperationSite, OutputSlot};
use crate::operations::wraps::NoWrap;
use crate::operations::{Modify, One, Rows, Select, Three, Two};
use rustc_hash::FxHashMap;

/// The number of a row.
pub type R = u32;

/// The row of undefined values: poison in every lane.
pub const UNDEFINED: R = 0;

/// A range of rows in a table of the code: start, end.
pub(crate) type List = (u32, u32);

/// A kernel with its rows, for those that have many.
#[derive(Debug)]
pub struct Wide {
    pub kernel: &'static Rows,
    pub dst: R,
    pub count: u32,
    pub srcs: SmallVec<[R; 8]>,
    /// True if the result is blended.
    pub keep: bool,
}

/// An operation on floats.
#[derive(Clone, Copy, Debug)]
pub struct FloatSite {
    pub op: Op,
    /// It must be exact.
    pub exact: bool,
    /// Bits of the result, and of the first operand that is a float (of the first one if none is).
    pub bits: u8,
    pub source_bits: u8,
    /// The mask of the operands that are floats.
    pub sources: u8,
    /// The result is a float.
    pub result: bool,
}

/// An operation that promises not to overflow, whose result is written.
#[derive(Debug)]
pub struct Sum {
    pub promise: NoWrap,
    /// The words of the operands, low ones first: two for 64 bits.
    pub operands: [SmallVec<[R; 2]>; 2],
    /// The first row of the result.
    pub dst: R,
}

/// An access to memory.
#[derive(Debug)]
pub struct MemoryAccess {
    pub action: Action,
    pub space: AddressSpace,
    /// It is volatile or coherent.
    pub volatile: bool,
    /// It is a load that may be reordered with any other access: nothing stores there.
    pub cacheable: bool,
    /// The buffer or image.
    pub binding: Option<ResourceOperand>,
    pub place: AccessAddress,
    /// The view on the texels of an image.
    pub view: TexelView,
    /// Bits of an element; 64 bits are two words.
    pub bits: u8,
    /// The multiple that the address is promised to be, a power of two, and the offset that is added to it.
    pub alignment: Option<[u32; 2]>,
    /// Rows that are loaded or stored, with their components: for 64 bits the high words are components too.
    pub rows: SmallVec<[(u32, R); 4]>,
    pub origin: u32,
}

impl MemoryAccess {
    /// The number that identifies a component of a size: see [`size_property`]. `resinfo` names as many dimensions as
    /// nir has components (`emit_intrinsic_image_size`); between two programs in nir the dimension of the image
    /// counts, and unused components may be missing.
    pub fn size_property(&self, component: u32, both_nir: bool) -> u32 {
        let dimensions = if both_nir || self.space != AddressSpace::Image { 0 } else { self.rows.len() as u32 };
        size_property(component, dimensions, self.view.shape(both_nir))
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Action {
    Load,
    Store,
    /// The rows are those of the result; data and comparand have a low and a high word, for 64 bits.
    Atomic {
        op: Atomic,
        data: [R; 2],
        compare: [R; 2],
    },
    /// Copies words to the constant file; `first` is the first word that is written.
    CopyToConsts {
        first: u32,
        words: u32,
    },
    /// The size of a buffer or image.
    Size,
}

#[derive(Debug)]
pub enum AccessAddress {
    None,
    /// `bytes` is the offset in bytes, in addition to the index, if the GPU reads it.
    Linear {
        base: Option<[R; 2]>,
        index: Option<R>,
        scale: u8,
        offset: i32,
        bytes: Option<R>,
    },
    /// The coordinates, and the sample of an image that may have several. The storage images of these GPUs have one
    /// sample, and ir3 names none: it counts between two programs in nir only.
    Texel(SmallVec<[R; 4]>, Option<R>),
}

/// A texture operation.
#[derive(Debug)]
pub struct Texture {
    pub kind: TextureKind,
    pub texture: ResourceOperand,
    pub sampler: ResourceOperand,
    pub operands: SmallVec<[(Slot, TextureOperand); 6]>,
    /// The coordinates in the order of nir, and the offsets in texels: what a texture of a device is read by.
    pub coordinates: SmallVec<[R; 4]>,
    pub offsets: SmallVec<[R; 4]>,
    /// The last coordinate is a layer.
    pub is_array: bool,
    /// The level comes from derivatives.
    pub derivatives: bool,
    pub ty: Type,
    /// Component of the result, row.
    pub results: SmallVec<[(u32, R); 4]>,
    /// Results are levels: small integers, as floats in 256ths.
    pub levels: bool,
    pub origin: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum TextureOperand {
    Row(R),
    Bits(u32),
}

/// A buffer, image, texture or sampler: its index is a constant plus a row.
#[derive(Clone, Copy, Debug)]
pub struct ResourceOperand {
    /// The descriptor set, if it is bindless.
    pub set: Option<u32>,
    pub base: u32,
    pub row: Option<R>,
    /// The index is among bound descriptors, of which there are fewer than [`BOUND`].
    pub bound: bool,
    /// The access is not nonuniform, and its name is computed: all lanes name the same one.
    pub shared: bool,
}

/// No bound texture or sampler has this index or a higher one: ir3 takes the index from a half register, and no driver
/// has that many. Accesses beyond are undefined.
pub const BOUND: u32 = 1 << 16;

/// A value from the environment.
#[derive(Debug)]
pub enum EnvironmentInput {
    /// System value, component, conversion, and the name of the intrinsic if ir3 has one value for it and another one.
    System(SystemValue, u32, Adapt, Option<SecondName>),
    /// Base, component, true if of 16 bits.
    Attribute(u32, u32, bool),
    /// Location, row that is added four times, coordinates; `half` if of 16 bits.
    Varying { location: u32, offset: Option<R>, ij: Option<[R; 2]>, half: bool },
    /// Word of the constant file, row that is added; `half` if of 16 bits.
    Const { word: u32, offset: Option<R>, half: bool },
    /// True in lanes that are helpers by now.
    Helper,
    /// True if the driver has the wave run the preamble, as it does where programs are run.
    RunsPreamble,
}

/// Values that nir distinguishes from others with the same value in ir3. Between two programs in nir they are other
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondName {
    /// The first vertex: not 0 in a draw without indices, unlike the base vertex.
    FirstVertex,
    /// The fragment coordinates before they are scaled by the size of fragments.
    FragCoordUnscaled,
    /// The sample is always 0 where the shader does not run once a sample.
    SampleIdNoPerSample,
    /// The center where the shader does not run once a sample.
    SamplePosOrCenter,
}

impl SecondName {
    /// The second name of an intrinsic's value.
    pub const fn of(op: IntrinsicOp) -> Option<Self> {
        match op {
            IntrinsicOp::LoadFirstVertex => Some(Self::FirstVertex),
            IntrinsicOp::LoadFragCoordUnscaledIr3 => Some(Self::FragCoordUnscaled),
            IntrinsicOp::LoadSampleIdNoPerSample => Some(Self::SampleIdNoPerSample),
            IntrinsicOp::LoadSamplePosOrCenter => Some(Self::SamplePosOrCenter),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapt {
    /// The value needs no conversion.
    No,
    /// Converts sixteenths, as integers, to floats.
    Sixteenths,
    /// Maps 0 or 1 to 0 or all ones.
    AllOnes,
    /// Maps 0 to 1 (32 bits: to all ones), and all ones to 0.
    IsZero {
        /// 32 bits.
        wide: bool,
    },
}

impl Adapt {
    /// The converted word, in any domain.
    pub fn of<D: Domain>(self, d: &mut D, word: D::V) -> D::V {
        match self {
            Self::No => word,
            Self::Sixteenths => convert::sixteenths(d, word),
            Self::AllOnes => integer::ineg(d, 32, word),
            Self::IsZero { wide } => {
                let not = d.not(32, word);
                let mask = d.constant(32, if wide { u32::MAX.into() } else { 1 });
                d.and(32, not, mask)
            }
        }
    }
}

/// An operation across lanes, on each row of a value.
#[derive(Debug)]
pub struct Lanes {
    pub kind: LaneKind,
    /// Destination, source.
    pub rows: SmallVec<[(R, R); 4]>,
    /// The number of the operation's site.
    pub origin: u32,
}

impl Lanes {
    /// The rows of conditions and indices of cross-lane operations. They must be defined in the active lanes, as the
    /// condition of a branch: the machine branches on them (except `getlast`, `bany` and `ball`; a ballot is an `if`
    /// around `movmsk`).
    pub fn condition_rows(&self) -> impl Iterator<Item = R> + '_ {
        let (rows, other) = match self.kind {
            LaneKind::VoteAny | LaneKind::VoteAll | LaneKind::VoteEqual { .. } | LaneKind::Ballot { .. } => {
                (&self.rows[..], None)
            }
            LaneKind::ReadLane(row) | LaneKind::ReadWhere(row) => (&[][..], Some(row)),
            _ => (&[][..], None),
        };
        rows.iter().map(|&(_, src)| src).chain(other)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum LaneKind {
    /// True in the first active lane. If `any`, nir allows another one, as runs and ir3 do not.
    Elect {
        any: bool,
    },
    VoteAny,
    VoteAll,
    /// Equality of all rows in all active lanes; floats of this width.
    VoteEqual {
        float: Option<u8>,
    },
    /// The mask's word. If `relaxed`, nir allows bits of lanes that are not there.
    Ballot {
        word: u32,
        relaxed: bool,
    },
    ReadFirst,
    ReadLast,
    /// The lane with the number in a row, which is the same in all lanes.
    ReadLane(R),
    /// The first active lane where a row is not 0.
    ReadWhere(R),
    /// Difference over the quad: bit of the lane number, and whether it is of the lane's own row or column.
    Derivative {
        bit: u8,
        fine: bool,
        half: bool,
    },
    /// Another lane, by a row.
    Shuffle {
        mode: Shuffle,
        index: R,
        /// The index has to be the same in all lanes; otherwise the result is undefined.
        uniform: bool,
    },
    /// The lane with a bit of its number flipped.
    Swap(u8),
    /// The lane of the quad whose number is in a row.
    Broadcast(R),
    /// Vote of a quad: any, or all.
    QuadVote {
        all: bool,
    },
    /// Broadcast over half a cluster: the row is the value of the other lanes.
    BroadcastActive {
        cluster: u8,
        kept: R,
    },
    Scan(ScanOp),
    /// The number of the first or last active lane.
    LaneNumber {
        last: bool,
    },
    /// The bit of the lane in a mask of one or two words.
    InverseBallot,
}

#[derive(Clone, Copy, Debug)]
pub enum Shuffle {
    Index,
    Xor,
    Up,
    Down,
    /// Within clusters of this many lanes.
    Rotate(u8),
}

#[derive(Clone, Copy, Debug)]
pub struct ScanOp {
    pub kernel: &'static Two,
    pub identity: u32,
    pub result: ScanResult,
    /// Lanes per element: 1 for plain scans; 8 where clusters have been combined already.
    pub step: u8,
    /// Lanes after which the scan restarts: 64 for none.
    pub cluster: u8,
    /// For an exclusive scan over clusters: the value within the lane's own cluster.
    pub exclusive: Option<R>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanResult {
    Reduce,
    Inclusive,
    Exclusive,
}

/// An access to a local array.
#[derive(Debug)]
pub struct ArrayAccess {
    /// The array's number: see [`DecodedOp::ArrayInit`].
    pub array: u32,
    /// First row, number of elements, rows of an element.
    pub first: R,
    pub length: u32,
    pub stride: u32,
    pub base: i64,
    pub index: Option<R>,
    /// Row of the element, row of the value.
    pub rows: SmallVec<[(u32, R); 4]>,
    pub adapt: Option<&'static Modify>,
    pub origin: u32,
}

/// A store to an output or to a word of the constant file.
#[derive(Debug)]
pub struct OutputStore {
    pub base: u16,
    pub component: u8,
    pub row: R,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub enum DecodedOp {
    // Values. With the flag `keep`, inactive lanes keep their values.
    One {
        kernel: &'static One,
        dst: R,
        a: R,
        keep: bool,
    },
    Two {
        kernel: &'static Two,
        dst: R,
        a: R,
        b: R,
        keep: bool,
    },
    Three {
        kernel: &'static Three,
        dst: R,
        a: R,
        b: R,
        c: R,
        keep: bool,
    },
    Select {
        select: Select,
        dst: R,
        a: R,
        b: R,
        c: R,
        keep: bool,
    },
    Wide(u32),
    /// The result of an operation that promises not to overflow, by number: it is poison where it does.
    Sum(u32),
    /// A row plus a constant.
    AddConst {
        dst: R,
        a: R,
        constant: u32,
    },
    Input {
        input: u32,
        dst: R,
    },
    Lanes(u32),
    ArrayLoad(u32),
    ArrayStore(u32),
    /// Makes all rows of an array poison.
    ArrayInit {
        /// Its number, in the order of declarations, from 1 on.
        array: u32,
        first: R,
        count: u32,
    },
    Access(u32),
    Texture(u32),
    StoreOutput(u32),
    StoreConst(u32),
    /// A barrier or a fence.
    Sync(Sync),
    /// Moves of phis: a list, and whether one reads a row that another writes.
    Moves {
        list: List,
        staged: bool,
    },
    /// Ends lanes, or makes them helpers: those where the row is not 0 (all without a row). Jumps if no lane is left.
    Kill {
        condition: Option<R>,
        demote: bool,
        origin: u32,
        empty: u32,
    },

    // Control flow. `slot` holds the waiting lanes, `empty` is the jump target if no lane is left.
    /// Start of a block with this number of instructions.
    Block(u32),
    If {
        condition: R,
        slot: u32,
        otherwise: u32,
        origin: u32,
    },
    /// End of the then side: its lanes wait, those of the else side become active.
    Else {
        slot: u32,
        end: u32,
    },
    EndIf {
        slot: u32,
        empty: u32,
    },
    Loop {
        slot: u32,
    },
    /// Lanes wait at the end of the loop.
    Break {
        slot: u32,
        empty: u32,
    },
    /// Lanes wait for the next iteration.
    Continue {
        slot: u32,
        empty: u32,
    },
    /// Lanes that continued become active.
    Gather {
        slot: u32,
        exit: u32,
    },
    /// Jumps back for the next iteration.
    Again {
        start: u32,
    },
    /// The end of the loop: the lanes that left it become active.
    Exit {
        slot: u32,
        empty: u32,
    },
    /// Ends the active lanes.
    Return {
        empty: u32,
    },
    End,
}

/// A decoded function.
#[derive(Debug, Default)]
pub struct DecodedCode {
    /// True if there are conversions whose rounding the header leaves open.
    pub open_rounding: bool,
    pub ops: Vec<DecodedOp>,
    pub rows: u32,
    /// The rows of less than 32 bits.
    pub narrow: Narrow,
    /// Rows with the same bits in all lanes.
    pub constants: Vec<(R, u32)>,
    pub slots: u32,
    pub moves: Vec<(R, R)>,
    pub wide: Vec<Wide>,
    pub sums: Vec<Sum>,
    /// The operations on floats.
    pub floats: FxHashMap<u32, FloatSite>,
    pub inputs: Vec<EnvironmentInput>,
    pub accesses: Vec<MemoryAccess>,
    pub textures: Vec<Texture>,
    pub lanes: Vec<Lanes>,
    pub arrays: Vec<ArrayAccess>,
    pub outputs: Vec<OutputStore>,
    /// The outputs that the shader may store.
    pub declared: Vec<OutputSlot>,
    pub origins: Vec<OperationSite>,
    /// The memories that alias no other one, as the flags of accesses promise, and the origin of such an access.
    pub unaliased: Vec<(MemoryName, u32)>,
    /// The promises of access flags, as printed by `decode::memory`.
    pub promised: Vec<String>,
    /// For traced runs: the first operation of each block, and the block.
    pub block_starts: Vec<(u32, u32)>,
    /// The uses of rows, once something undefined is met.
    pub row_uses: OnceLock<ValueUses>,
}

impl DecodedCode {
    /// The uses of rows. The code must be complete.
    pub fn uses(&self) -> &ValueUses {
        self.row_uses.get_or_init(|| uses_of(self))
    }
}
