//! Fields of an instruction word: named ranges of bits, and the syntax of their values in assembly.

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

    /// Places a value into the bits of a word; bits of the value above the width are dropped.
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

/// The lowest `width` bits, from 1 to 64.
const fn ones(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

words! {
    /// The name of a field in templates and error messages.
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
        /// The mode by which descriptors are addressed, with the base of a bindless one.
        Mode = "MODE",
        /// The base of a bindless descriptor.
        Base = "BASE",
        /// The operand of [`FieldName::Mode`]: a register, or descriptor numbers.
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
        /// Bits of unknown meaning.
        Unused = "UNUSED",
        /// The index of an alias.
        Entry = "ENTRY",
        /// The table of an alias.
        Scope = "SCOPE",
    }
}

/// The width bit of the word that determines the width of a register operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// None: a full register, or a half register that the text prints like a full one.
    Never,
    /// The width of the sources.
    Src,
    /// The width of the destination.
    Dst,
}

/// The syntax of a field in assembly, and the encoding of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not printed: other fields, or the prefixes of registers, imply the value.
    Hidden,
    /// One bit, printed as a text if it is set.
    Flag(&'static str),
    /// One bit, printed as a text if it is clear.
    Clear(&'static str),
    /// Not printed; always this value.
    Always(u64),
    /// `(rpt3)`.
    Repeat,
    /// `(rpt3)`; without repetition `(nop3) `, whose number is in the bits for `(r)` of the first and of the second
    /// source.
    RepeatOrNop { r: [u8; 2] },
    /// A word of this list; values without a word are printed as numbers.
    Words(&'static [&'static str]),
    /// An unsigned number of at least this value.
    Uint(u64),
    /// `+5`, `-5`, nothing for 0.
    Offset,
    /// `+5`, nothing for 0.
    UnsignedOffset,
    /// `+5`, nothing for 0; the bit is set if there is an offset.
    OffsetIf { bit: u8 },
    /// A power of two of at least 2.
    Log2,
    /// A multiple of 32, at least 32.
    Lanes,
    /// The target of a branch, as a label or a distance.
    Target,
    /// Inversion and component: `!p0.x`.
    Predicate,
    /// `r0.x`, `a0.x`, `p0.x`.
    Register(Half),
    /// A register, or relative to `a0.x` if the bit is set.
    MoveDst { relative: u8 },
    /// A source of 32 bits whose kind is determined by other bits.
    MoveSrc { r: u8, kind: u8 },
    /// The types of a move: two numbers of three bits.
    MoveTypes,
    /// A source of 16 bits, with modifiers.
    Source { r: u8 },
    /// A source of 13 bits, its negation and `(r)`; with 12 bits of immediate in place of constants or without.
    Source3 { negate: Option<u8>, r: u8, immediates: bool },
    /// The second of three sources: 8 bits, its negation and `(r)`.
    SourceMiddle { negate: Option<u8>, r: u8 },
    /// `r0.x`, without the names of special registers.
    GeneralRegister,
    /// A register, or an unsigned number if the bit is set.
    RegisterOr { immediate: u8 },
    /// A register, or an unsigned number if the two bits from this on are 0.
    RegisterOrMode { mode: u8 },
    /// A register, or a word of the constant file if the bit is set.
    RegisterOrConst { constant: u8 },
    /// The second source of a texture instruction, present if the bit is set: `, r0.x`.
    IfSet { bit: u8 },
    /// Like `IfSet`, or `+5` if another bit is set.
    IfSetOrOffset { bit: u8, offset: u8 },
    /// Components, as letters.
    Components,
    /// The mode by which a texture instruction addresses its descriptors.
    TextureMode { base: Bits },
    /// The descriptors in that mode: a register, or numbers, and `a1.x`.
    TextureDescriptor { mode: Bits, sampler: bool, texture: bool },
    /// `.base3` if the bit is set.
    Base { bindless: u8 },
    /// 8 bits and above them one for `a1.x+`.
    ConstOffset,
    /// A register, whose width is another bit; or an output, by the table.
    AliasDst { scope: Bits, size: u8 },
    /// A number, register or constant, whose kind and width are determined by other bits.
    AliasSrc { float: u8, size: u8, kind: Bits },
}

/// A field of an encoding.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: FieldName,
    /// Its bits.
    pub bits: Bits,
    /// Its syntax and encoding.
    pub kind: Kind,
    /// The role of the source that it holds, for instructions whose sources have roles.
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

    /// Returns the field as the one that holds the source of a role.
    pub const fn holds(self, role: Role) -> Self {
        Self { holds: Some(role), ..self }
    }

    /// The mask of the bits that the field determines.
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
