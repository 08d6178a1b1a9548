//! Instructions: opcodes, operands, predicates, conditional modifiers.

use super::Message;
use crate::words;
use smallvec::SmallVec;
use std::fmt;

words! {
    /// The operations.
    pub enum Opcode {
        /// A copy, or a conversion between types.
        Mov = "mov",
        /// Bitwise complement.
        Not = "not",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Shift to the left.
        Shl = "shl",
        /// Logical shift to the right.
        Shr = "shr",
        /// Arithmetic shift to the right.
        Asr = "asr",
        /// Sum.
        Add = "add",
        /// Sum; its carry goes to the accumulator.
        Addc = "addc",
        /// The low word of a 64-bit sum: of two low words. Not an instruction of the hardware.
        Add64Lo = "add64lo",
        /// The high word of a 64-bit sum: of two low words and two high words. Not an instruction of the hardware.
        Add64Hi = "add64hi",
        /// A message to another unit: memory, the thread's payload.
        Send = "send",
        /// Product.
        Mul = "mul",
        /// The first source plus the product of the others.
        Mad = "mad",
        /// Fraction.
        Frc = "frc",
        /// Rounding down.
        Rndd = "rndd",
        /// Rounding to the nearest, to even.
        Rnde = "rnde",
        /// Rounding towards zero.
        Rndz = "rndz",
        /// Comparison: all bits of the result are the condition.
        Cmp = "cmp",
        /// Selection by the predicate; with a conditional modifier, minimum or maximum.
        Sel = "sel",
        /// Dot product of two channels.
        Dp2 = "dp2",
        /// Dot product of three channels.
        Dp3 = "dp3",
        /// Dot product of four channels.
        Dp4 = "dp4",
        /// Reciprocal.
        Rcp = "rcp",
        /// Reciprocal square root.
        Rsq = "rsq",
        /// Square root.
        Sqrt = "sqrt",
        /// Power of two.
        Exp2 = "exp2",
        /// Logarithm to base two.
        Log2 = "log2",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Begins a branch: the predicate is the condition.
        If = "if",
        /// Begins the other branch.
        Else = "else",
        /// Ends an `if`.
        Endif = "endif",
        /// Begins a loop.
        Do = "do",
        /// Ends a loop: iterates again without a predicate, or if it holds.
        While = "while",
        /// Leaves the loop.
        Break = "break",
        /// Goes to the start of the loop.
        Continue = "continue",
    }
}

/// The form of an operation's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpcodeKind {
    /// Each channel of the result from the same channel of the sources (after swizzles).
    PerChannel,
    /// A dot product of this many channels, in each channel of the result.
    Dot(u8),
    /// Control flow: no operands.
    Control,
    /// A message: its operands are consecutive registers.
    Message,
}

impl Opcode {
    /// The form of its operands.
    pub fn kind(self) -> OpcodeKind {
        match self {
            Self::Dp2 => OpcodeKind::Dot(2),
            Self::Dp3 => OpcodeKind::Dot(3),
            Self::Dp4 => OpcodeKind::Dot(4),
            Self::If | Self::Else | Self::Endif | Self::Do | Self::While | Self::Break | Self::Continue => {
                OpcodeKind::Control
            }
            Self::Send => OpcodeKind::Message,
            _ => OpcodeKind::PerChannel,
        }
    }

    /// The number of sources; of a message, those of its [`Message`].
    pub fn sources(self) -> usize {
        match self {
            Self::Addc | Self::Add64Lo => 2,
            Self::Add64Hi => 4,
            Self::And | Self::Or | Self::Xor | Self::Shl | Self::Shr | Self::Asr | Self::Add | Self::Mul => 2,
            Self::Cmp | Self::Sel | Self::Dp2 | Self::Dp3 | Self::Dp4 => 2,
            Self::Mad => 3,
            _ if matches!(self.kind(), OpcodeKind::Control | OpcodeKind::Message) => 0,
            _ => 1,
        }
    }

    /// Returns true if it works on bits: sources have no modifiers, and no operand is a float.
    pub fn is_bitwise(self) -> bool {
        matches!(self, Self::Not | Self::And | Self::Or | Self::Xor | Self::Shl | Self::Shr | Self::Asr)
    }

    /// Returns true if it works on floats only.
    pub fn is_float(self) -> bool {
        use Opcode::{Cos, Dp2, Dp3, Dp4, Exp2, Frc, Log2, Mad, Rcp, Rndd, Rnde, Rndz, Rsq, Sin, Sqrt};
        matches!(self, Mad | Frc | Rndd | Rnde | Rndz | Dp2 | Dp3 | Dp4 | Rcp | Rsq | Sqrt | Exp2 | Log2 | Sin | Cos)
    }

    /// Returns true if it is an operation of the shared math unit, which has no conditional modifier.
    pub fn is_math(self) -> bool {
        matches!(self, Self::Rcp | Self::Rsq | Self::Sqrt | Self::Exp2 | Self::Log2 | Self::Sin | Self::Cos)
    }

    /// Returns true if it can have a conditional modifier that writes the flag with the comparison of its result with
    /// zero.
    pub fn can_do_cmod(self) -> bool {
        !matches!(self.kind(), OpcodeKind::Control | OpcodeKind::Message)
            && !self.is_math()
            && !self.is_scalar()
            && !matches!(self, Self::Sel | Self::Cmp)
    }

    /// Returns true if only scalar programs have it.
    pub fn is_scalar(self) -> bool {
        matches!(self, Self::Addc | Self::Add64Lo | Self::Add64Hi)
    }
}

words! {
    /// The type of an operand.
    pub enum RegType {
        /// Float.
        F = "F",
        /// Signed integer.
        D = "D",
        /// Unsigned integer.
        Ud = "UD",
    }
}

words! {
    /// A conditional modifier.
    pub enum Cmod {
        /// Zero, or equal.
        Z = "z",
        /// The result is not zero, or the sources are not equal.
        Nz = "nz",
        /// Greater.
        G = "g",
        /// Greater or equal.
        Ge = "ge",
        /// Less.
        L = "l",
        /// Less or equal.
        Le = "le",
        /// Overflow: the sum does not fit in the type of the result.
        O = "o",
    }
}

impl Cmod {
    /// The condition with its operands swapped; also that of a negated value compared with zero.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Self::Z | Self::Nz | Self::O => self,
            Self::G => Self::L,
            Self::Ge => Self::Le,
            Self::L => Self::G,
            Self::Le => Self::Ge,
        }
    }
}

words! {
    /// A predicate, by the bits of the flag that each channel reads. The name is the suffix that is printed after
    /// `f0.0`.
    pub enum Predicate {
        /// Each channel its own bit.
        Normal = "",
        /// All channels the bit of x.
        ReplicateX = ".x",
        /// All channels the bit of y.
        ReplicateY = ".y",
        /// All channels the bit of z.
        ReplicateZ = ".z",
        /// All channels the bit of w.
        ReplicateW = ".w",
        /// True if any of the four bits is.
        Any4h = ".any4h",
        /// True if all four bits are.
        All4h = ".all4h",
    }
}

impl Predicate {
    /// The replicated predicate of a channel.
    #[must_use]
    pub fn replicate(channel: usize) -> Self {
        [Self::ReplicateX, Self::ReplicateY, Self::ReplicateZ, Self::ReplicateW][channel]
    }

    /// The channels of the flag that it reads, for any written channels.
    pub fn channels(self) -> Mask {
        match self {
            Self::ReplicateX => Mask(1),
            Self::ReplicateY => Mask(2),
            Self::ReplicateZ => Mask(4),
            Self::ReplicateW => Mask(8),
            Self::Normal | Self::Any4h | Self::All4h => Mask::ALL,
        }
    }
}

/// A set of channels: a writemask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Mask(pub u8);

impl Mask {
    /// No channel.
    pub const NONE: Self = Self(0);
    /// All four.
    pub const ALL: Self = Self(15);

    /// The first `count` channels.
    #[must_use]
    pub fn first(count: u8) -> Self {
        Self((1 << count) - 1)
    }

    /// Returns true if the mask contains a channel.
    pub fn has(self, channel: usize) -> bool {
        self.0 >> channel & 1 != 0
    }

    /// Returns true if the mask contains no channel.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The channels of the mask, in order.
    pub fn channels(self) -> impl Iterator<Item = usize> {
        (0..4).filter(move |&channel| self.has(channel))
    }

    /// The only channel of the mask, if it has exactly one.
    pub fn single(self) -> Option<usize> {
        (self.0.count_ones() == 1).then(|| self.0.trailing_zeros() as usize)
    }

    /// The channels that are not in another mask.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::ops::BitAnd for Mask {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl std::ops::BitOr for Mask {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channels().try_for_each(|channel| write!(f, "{}", CHANNELS[channel]))
    }
}

/// The letters of the channels.
pub(super) const CHANNELS: [char; 4] = ['x', 'y', 'z', 'w'];

/// The channel of a register that each channel of an operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle(pub [u8; 4]);

impl Swizzle {
    /// Each channel reads its own.
    pub const IDENTITY: Self = Self([0, 1, 2, 3]);

    /// All channels read one.
    #[must_use]
    pub fn replicate(channel: u8) -> Self {
        Self([channel; 4])
    }

    /// The channels of the register that an operation reads, of these of its own.
    pub fn reads(self, channels: Mask) -> Mask {
        channels.channels().fold(Mask::NONE, |mask, channel| mask | Mask(1 << self.0[channel]))
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&channel| write!(f, "{}", CHANNELS[usize::from(channel)]))
    }
}

/// The bits of an immediate; all channels have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Immediate(pub u32);

/// The register file of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DstFile {
    /// The null register: only the flag is written.
    Null,
    /// A virtual register.
    Vgrf(u32),
    /// An output of the program.
    Output(u32),
}

/// A destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dst {
    /// The register file.
    pub file: DstFile,
    /// The channels that are written. For [`DstFile::Null`], those of the flag.
    pub mask: Mask,
    /// The type.
    pub ty: RegType,
}

impl Dst {
    /// The null register of a type, all channels.
    #[must_use]
    pub fn null(ty: RegType) -> Self {
        Self { file: DstFile::Null, mask: Mask::ALL, ty }
    }
}

/// The register file of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SrcFile {
    /// A virtual register.
    Vgrf(u32),
    /// An attribute of the vertex.
    Attr(u32),
    /// Four words of the uniforms.
    Uniform(u32),
    /// The accumulator.
    Acc,
    /// A constant.
    Imm(Immediate),
}

/// A source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Src {
    /// The register file.
    pub file: SrcFile,
    /// The channels that are read.
    pub swizzle: Swizzle,
    /// The type.
    pub ty: RegType,
    /// True if the absolute value is read.
    pub abs: bool,
    /// True if the value is negated, after `abs`.
    pub negate: bool,
}

impl Src {
    /// A source without modifiers.
    #[must_use]
    pub fn new(file: SrcFile, swizzle: Swizzle, ty: RegType) -> Self {
        Self { file, swizzle, ty, abs: false, negate: false }
    }

    /// An immediate.
    #[must_use]
    pub fn immediate(bits: u32, ty: RegType) -> Self {
        Self::new(SrcFile::Imm(Immediate(bits)), Swizzle::IDENTITY, ty)
    }

    /// The 32 bits of the source, if it is an immediate.
    pub fn as_immediate(&self) -> Option<u32> {
        match self.file {
            SrcFile::Imm(Immediate(bits)) => Some(bits),
            _ => None,
        }
    }

    /// Returns true if the source is an immediate zero of its type: for floats, of either sign.
    pub fn is_zero(&self) -> bool {
        match self.as_immediate() {
            Some(bits) => bits == 0 || self.ty == RegType::F && bits == 0x8000_0000,
            None => false,
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instr {
    /// The operation.
    pub opcode: Opcode,
    /// The predicate, and true if it is inverted.
    pub predicate: Option<(Predicate, bool)>,
    /// The conditional modifier.
    pub cmod: Option<Cmod>,
    /// True if the result is clamped to [0, 1].
    pub saturate: bool,
    /// The number of channels that it runs in: all of the program's [`Mode`](super::Mode), or half of them.
    pub exec_size: u8,
    /// The first of these channels.
    pub group: u8,
    /// The destination. Control flow writes the null register.
    pub dst: Dst,
    /// The sources.
    pub srcs: SmallVec<[Src; 3]>,
    /// The message, of [`Opcode::Send`].
    pub message: Option<Box<Message>>,
}

impl Instr {
    /// An operation on both vertices, without predicate and modifiers.
    #[must_use]
    pub fn new(opcode: Opcode, dst: Dst, srcs: &[Src]) -> Self {
        Self {
            opcode,
            predicate: None,
            cmod: None,
            saturate: false,
            exec_size: 8,
            group: 0,
            dst,
            srcs: SmallVec::from_slice(srcs),
            message: None,
        }
    }

    /// An instruction of control flow.
    #[must_use]
    pub fn control(opcode: Opcode) -> Self {
        Self::new(opcode, Dst::null(RegType::D), &[])
    }

    /// Returns true if it writes the flag. A `sel` with a conditional modifier does not: it is a minimum or maximum.
    pub fn writes_flag(&self) -> bool {
        self.cmod.is_some() && self.opcode != Opcode::Sel
    }

    /// Returns true if it reads the flag.
    pub fn reads_flag(&self) -> bool {
        self.predicate.is_some()
    }

    /// The channels of the flag that it reads.
    pub fn flag_channels_read(&self) -> Mask {
        self.predicate.map_or(Mask::NONE, |(predicate, _)| predicate.channels())
    }

    /// Returns true if it may leave a channel of its writemask unwritten in some vertex of a vec4 program.
    pub fn is_partial(&self) -> bool {
        self.exec_size != 8 || self.predicate.is_some() && self.opcode != Opcode::Sel
    }

    /// The channels of a source's register that it reads, for the channels of the writemask.
    pub fn channels_read(&self, src: &Src) -> Mask {
        match self.opcode.kind() {
            OpcodeKind::Dot(count) => src.swizzle.reads(Mask::first(count)),
            OpcodeKind::PerChannel => src.swizzle.reads(self.dst.mask),
            OpcodeKind::Message => src.swizzle.reads(Mask::ALL),
            OpcodeKind::Control => Mask::NONE,
        }
    }

    /// The registers that it writes: one, or in a scalar program those of the words of a message's result.
    pub fn registers_written(&self) -> std::ops::Range<u32> {
        match self.dst.file {
            DstFile::Vgrf(first) => {
                let is_scalar = self.dst.mask == Mask(1);
                let words = self.message.as_ref().filter(|_| is_scalar).map_or(1, |message| message.result_words());
                first..first.saturating_add(words)
            }
            DstFile::Null | DstFile::Output(_) => 0..0,
        }
    }
}
