//! Forms: the sources of an instruction by their roles, in the only definition of their order.

use crate::ir3::AddressSpace;

/// The role of a source in its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A 64-bit address, of two words.
    Base,
    /// A word that is an address, or that is added to one.
    Index,
    /// The number of bits by which the index is shifted.
    Shift,
    /// An immediate that is added to the address; of a texture instruction with `.o` or `.v`, the offset from the
    /// coordinates.
    Offset,
    /// The index of a descriptor.
    Resource,
    /// The element of a buffer, or the coordinates in an image.
    Texel,
    /// The byte offset of the texel, which GPUs before a6xx read, too.
    Bytes,
    /// The stored value, the value for another lane, or the second operand of a texture instruction that has another
    /// than offset and level.
    Data,
    /// The new value of an atomic and its comparand.
    Operand,
    /// The same after the room for the old value, in the registers of the result.
    Tied,
    /// The number of elements, an immediate.
    Count,
    /// `a1.x`: a word of the constant file.
    To,
    /// `a1.x`, of an instruction with `.a1en`.
    Address1,
    /// The indices of texture and sampler, of an instruction with `.s2en`.
    Pair,
    /// The coordinates with their companions, or the values of a lane.
    Coordinates,
    /// The offset, if there is one, and then level, bias or lane.
    Level,
    /// The operand that determines the lane that is read.
    Lane,
}

/// The memory that instructions of a form access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// None.
    None,
    /// It is not known, nor are the sources.
    Unknown,
    /// Always this one.
    Space(AddressSpace),
    /// A buffer or an image, by the attributes.
    Attribute,
}

/// The components of the coordinates of a texture instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinates {
    /// It has none, or is no texture instruction.
    None,
    /// By the flags.
    Flags,
    /// By the flags, and the number of the sample.
    Sample,
    /// By the flags; from component 4 on, the derivatives.
    Gradients,
    /// The same, but the instruction computes a part of the result.
    GradientsInParts,
    /// One number.
    One,
    /// As many as the result has: derivatives.
    Result,
    /// A value that lanes of a quad or a cluster exchange: there is no texture.
    Exchanged,
}

/// The sources of an instruction.
#[derive(Debug)]
pub struct Form {
    /// Their roles.
    pub srcs: &'static [Role],
    /// The memory that it accesses.
    pub memory: Memory,
    /// The components of its coordinates.
    pub coordinates: Coordinates,
    /// The form with the order of a4xx and a5xx, if it is another.
    pub old: Option<&'static Form>,
}

impl Form {
    /// Returns true if there is a source with a role, or can be.
    pub fn has(&self, role: Role) -> bool {
        self.srcs.contains(&role)
    }
}

macro_rules! old {
    () => {
        None
    };
    ($form:ident) => {
        Some(&$form)
    };
}

macro_rules! coordinates {
    () => {
        Coordinates::None
    };
    ($coordinates:ident) => {
        Coordinates::$coordinates
    };
}

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident = [$($role:ident)*] $memory:ident $(($space:ident))? $(/ $coordinates:ident)? $(, old $old:ident)?;)*) => {
        $($(#[$doc])* pub(super) static $name: Form = Form {
            srcs: &[$(Role::$role),*],
            memory: Memory::$memory $((AddressSpace::$space))?,
            coordinates: coordinates!($($coordinates)?),
            old: old!($($old)?),
        };)*
    };
}

forms! {
    /// No roles: sources have numbers only.
    PLAIN = [] None;
    UNKNOWN = [] Unknown;
    LDG = [Base Offset Count] Space(Global);
    LDG_A = [Base Index Shift Offset Count] Space(Global);
    STG = [Base Offset Data Count] Space(Global);
    STG_A = [Base Index Shift Offset Data Count] Space(Global);
    LDL = [Index Offset Count] Space(Shared);
    STL = [Index Data Count] Space(Shared);
    LDP = [Index Offset Count] Space(Scratch);
    STP = [Index Data Count] Space(Scratch);
    LDLV = [Offset Count] None;
    LDC = [Resource Index] Space(Ubo);
    LDC_K = [Resource Index To] Space(Ubo);
    STC = [Offset Data Address1] Space(Const);
    STSC = [Offset Data] Space(Const);
    RESINFO = [Resource] Attribute;
    LDIB = [Resource Texel Offset] Attribute, old LDGB;
    STIB = [Resource Texel Offset Data] Attribute, old STGB;
    LDGB = [Resource Bytes Texel] Attribute;
    STGB = [Resource Data Texel Bytes] Attribute;
    ATOMIC = [Index Operand] Space(Shared);
    ATOMIC_B = [Resource Texel Tied] Attribute;
    ATOMIC_S = [Resource Operand Texel Bytes] Attribute;
    ATOMIC_G = [Base Operand] Space(Global);
    SHFL = [Data Lane] None;
    SAM = [Pair Coordinates Offset Address1] None / Flags;
    SAM_LEVEL = [Pair Coordinates Level Address1] None / Flags;
    CONV = [Pair Coordinates Data Address1] None / Flags;
    ISAMM = [Pair Coordinates Offset Address1] None / Sample;
    SAMGQ = [Pair Coordinates Offset Address1] None / Gradients;
    SAMGP = [Pair Coordinates Offset Address1] None / GradientsInParts;
    GETSIZE = [Pair Coordinates Offset Address1] None / One;
    GETINFO = [Pair Offset Address1] None;
    DSX = [Pair Coordinates Offset Address1] None / Result;
    SHUFFLE = [Coordinates Offset] None / Exchanged;
    SHUFFLE_LANE = [Coordinates Level] None / Exchanged;
    BRCST = [Coordinates Tied] None / Exchanged;
}
