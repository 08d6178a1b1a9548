//! Fields: bits of a word with a name, and how their text looks.

use crate::ir3::opcode::Role;
use crate::words;

/// Bits of a word: up to two ranges, the least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    low: [u8; 2],
    width: [u8; 2],
}

impl Bits {
    /// The bits from `low` to `high`, both included.
    pub const fn new(low: u8, high: u8) -> Self {
        Self { low: [low, 0], width: [high - low + 1, 0] }
    }

    /// These bits, and above them those from `low` to `high`.
    pub const fn and(self, low: u8, high: u8) -> Self {
        Self { low: [self.low[0], low], width: [self.width[0], high - low + 1] }
    }

    /// The number of bits.
    pub const fn width(self) -> u32 {
        self.width[0] as u32 + self.width[1] as u32
    }

    /// The value in a word.
    pub const fn get(self, word: u64) -> u64 {
        let high =
            if self.width[1] == 0 { 0 } else { (word >> self.low[1] & ones(self.width[1] as u32)) << self.width[0] };
        word >> self.low[0] & ones(self.width[0] as u32) | high
    }

    /// The value, sign-extended.
    pub const fn get_signed(self, word: u64) -> i64 {
        let unused = 64 - self.width();
        ((self.get(word) << unused) as i64) >> unused
    }

    /// The bits of a word that hold a value; its bits above the width are lost.
    pub const fn put(self, value: u64) -> u64 {
        let high =
            if self.width[1] == 0 { 0 } else { (value >> self.width[0] & ones(self.width[1] as u32)) << self.low[1] };
        (value & ones(self.width[0] as u32)) << self.low[0] | high
    }

    /// The bits as a mask.
    pub const fn mask(self) -> u64 {
        self.put(u64::MAX)
    }

    /// Returns true if the value fits.
    pub const fn holds(self, value: u64) -> bool {
        value & !ones(self.width()) == 0
    }

    /// Returns true if the signed value fits.
    pub const fn holds_signed(self, value: i64) -> bool {
        let limit = 1i64 << (self.width() - 1);
        -limit <= value && value < limit
    }
}

const fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

words! {
    /// The name of a field, by which templates and errors speak of it.
    pub enum FieldName {
        /// `(eolm)`.
        EndOfLocal = "EOLM",
        /// `(eogm)`.
        EndOfGlobal = "EOGM",
        /// `(sy)`.
        Sy = "SY",
        /// `(ss)`.
        Ss = "SS",
        /// `(jp)`.
        Jp = "JP",
        /// `(eq)`.
        Eq = "EQ",
        /// `(ul)`.
        Ul = "UL",
        /// `(sat)`.
        Sat = "SAT",
        /// `(ei)`.
        Ei = "EI",
        /// `(rptN)`, or the number of lanes of `movmsk`.
        Repeat = "REPEAT",
        /// `(rptN)`, or `(nopN)` where nothing is repeated.
        RepeatOrNop = "NOP",
        /// First predicate of a branch.
        Predicate1 = "P1",
        /// Second predicate of a branch.
        Predicate2 = "P2",
        /// The distance of a branch.
        Target = "TARGET",
        /// The index of `brac`.
        Index = "INDEX",
        /// The size of a cluster of lanes.
        Cluster = "CLUSTER",
        /// First destination.
        Dst = "DST",
        /// Second destination.
        Dst1 = "DST1",
        /// Third destination.
        Dst2 = "DST2",
        /// Fourth destination.
        Dst3 = "DST3",
        /// First source.
        Src1 = "SRC1",
        /// Second source.
        Src2 = "SRC2",
        /// Third source.
        Src3 = "SRC3",
        /// Fourth source.
        Src4 = "SRC4",
        /// The types of a move: of its source, of its destination.
        Types = "TYPES",
        /// The rounding of a conversion.
        Round = "ROUND",
        /// The condition of a comparison.
        Condition = "COND",
        /// True if sources are full registers.
        Full = "FULL",
        /// True if the width of the destination is not that of the sources.
        Convert = "CONVERT",
        /// Signedness of a dot product.
        Sign = "SIGN",
        /// The half of the registers that a dot product reads.
        Pack = "PACK",
        /// The type of a result or of memory.
        Type = "TYPE",
        /// The components of a result.
        Mask = "MASK",
        /// Sampler.
        Sampler = "SAMP",
        /// Texture.
        Texture = "TEX",
        /// How descriptors are found, with the base of a bindless one.
        Mode = "MODE",
        /// The base of a bindless descriptor.
        Base = "BASE",
        /// What [`FieldName::Mode`] refers to.
        Descriptor = "DESC",
        /// `.3d`.
        ThreeD = "3D",
        /// `.a`.
        Array = "A",
        /// `.o`.
        HasOffset = "O",
        /// `.p`.
        Projected = "P",
        /// `.s` of samples, `.v` of `isam`.
        ShadowOrVector = "SV",
        /// `.1d`.
        OneD = "1D",
        /// An offset in the instruction.
        Offset = "OFF",
        /// The number of elements.
        Size = "SIZE",
        /// Typed or untyped.
        Typed = "TYPED",
        /// The number of dimensions.
        Dimensions = "D",
        /// The descriptor of a buffer or an image.
        Resource = "SSBO",
        /// A shift.
        Shift = "SHIFT",
        /// A word of the constant file.
        ConstWord = "CONST",
        /// `.u`.
        Uniform = "U",
        /// `.g`.
        Global = "G",
        /// `.l`.
        Local = "L",
        /// `.r`.
        Read = "R",
        /// `.w`.
        Write = "W",
        /// Bits whose meaning is not known.
        Unused = "UNUSED",
        /// The index of an alias.
        Entry = "ENTRY",
        /// The table of an alias.
        Scope = "SCOPE",
    }
}

/// Which width of the instruction an operand has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// A full register, or a half register that the text does not tell from one.
    Never,
    /// That of the sources.
    Src,
    /// That of the destination.
    Dst,
}

/// How a field looks in the text, and what its bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is not printed: other fields, or the letters of registers, say it.
    Hidden,
    /// One bit: a text if it is set.
    Flag(&'static str),
    /// One bit: a text if it is clear.
    Clear(&'static str),
    /// It is not printed, and has this value.
    Always(u64),
    /// `(rpt3)`.
    Repeat,
    /// `(rpt3)`; or `(nop3) `, of the bits for `(r)` of the first and of the second source, if nothing is repeated.
    RepeatOrNop { r: [u8; 2] },
    /// One of some texts; a number for a value without a text.
    Words(&'static [&'static str]),
    /// A number of which this is the least.
    Uint(u64),
    /// `+5`, `-5`, nothing for 0.
    Offset,
    /// `+5`, nothing for 0.
    UnsignedOffset,
    /// `+5`, nothing for 0; the bit is set if there is an offset.
    OffsetIf { bit: u8 },
    /// A power of two, of which 2 is the least.
    Log2,
    /// A multiple of 32, of which 32 is the least.
    Lanes,
    /// The target of a branch, as a label or a distance.
    Target,
    /// Inversion and component: `!p0.x`.
    Predicate,
    /// `r0.x`, `a0.x`, `p0.x`.
    Register(Half),
    /// A register, or relative to `a0.x` if the bit is set.
    MoveDst { relative: u8 },
    /// A source of 32 bits whose kind other bits tell.
    MoveSrc { r: u8, kind: u8 },
    /// The types of a move: two numbers of three bits.
    MoveTypes,
    /// A source of 16 bits, with modifiers.
    Source { r: u8 },
    /// A source of 13 bits, its negation and `(r)`; with 12 bits of immediate in place of constants or without.
    Source3 { negate: Option<u8>, r: u8, immediates: bool },
    /// The source in the middle: 8 bits, its negation and `(r)`.
    SourceMiddle { negate: Option<u8>, r: u8 },
    /// `r0.x`, without the names of special registers.
    GeneralRegister,
    /// A register, or an unsigned number if the bit is set.
    RegisterOr { immediate: u8 },
    /// A register, or an unsigned number if the two bits from this on are 0.
    RegisterOrMode { mode: u8 },
    /// A register, or a word of the constant file if the bit is set.
    RegisterOrConst { constant: u8 },
    /// The second source of a texture instruction, which is there if the bit is set: `, r0.x`.
    IfSet { bit: u8 },
    /// As that, or `+5` if another bit is set.
    IfSetOrOffset { bit: u8, offset: u8 },
    /// Components, as letters.
    Components,
    /// How the descriptors of a texture instruction are found.
    TextureMode { base: Bits },
    /// What the mode refers to: a register, or numbers, and `a1.x`.
    TextureDescriptor { mode: Bits, sampler: bool, texture: bool },
    /// `.base3` if the bit is set.
    Base { bindless: u8 },
    /// 8 bits and above them one for `a1.x+`.
    ConstOffset,
    /// A register, whose width is another bit; or an output, by the table.
    AliasDst { scope: Bits, size: u8 },
    /// A number, register or constant, whose kind and width other bits tell.
    AliasSrc { float: u8, size: u8, kind: Bits },
}

/// A field of an encoding.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: FieldName,
    /// Its bits.
    pub bits: Bits,
    /// Its text.
    pub kind: Kind,
    /// The source that it holds, of an instruction whose sources have roles.
    pub holds: Option<Role>,
}

impl Field {
    /// A field of the bits from `low` to `high`, both included.
    pub const fn new(name: FieldName, low: u8, high: u8, kind: Kind) -> Self {
        Self { name, bits: Bits::new(low, high), kind, holds: None }
    }

    /// A field of one bit with a text.
    pub const fn flag(name: FieldName, bit: u8, text: &'static str) -> Self {
        Self::new(name, bit, bit, Kind::Flag(text))
    }

    /// The field with more significant bits from `low` to `high`.
    pub const fn and(self, low: u8, high: u8) -> Self {
        Self { bits: self.bits.and(low, high), ..self }
    }

    /// The field as that of a source.
    pub const fn holds(self, role: Role) -> Self {
        Self { holds: Some(role), ..self }
    }

    /// All bits that the field decides.
    pub const fn mask(&self) -> u64 {
        let more = match self.kind {
            Kind::RepeatOrNop { r: [a, b] } => 1 << a | 1 << b,
            Kind::MoveDst { relative: bit }
            | Kind::Source { r: bit }
            | Kind::RegisterOr { immediate: bit }
            | Kind::RegisterOrConst { constant: bit }
            | Kind::OffsetIf { bit }
            | Kind::Base { bindless: bit } => 1 << bit,
            Kind::IfSetOrOffset { offset, .. } => 1 << offset,
            Kind::MoveSrc { r, kind } => 1 << r | 3 << kind,
            Kind::Source3 { negate, r, .. } | Kind::SourceMiddle { negate, r } => match negate {
                Some(bit) => 1 << bit | 1 << r,
                None => 1 << r,
            },
            Kind::TextureMode { base } => base.mask(),
            Kind::AliasSrc { kind, .. } => kind.mask(),
            _ => 0,
        };
        self.bits.mask() | more
    }
}
