//! Operands: register classes, physical registers, SSA places, constants and immediates.

use super::{Array, Value};
use bitflags::bitflags;
use cranelift_entity::packed_option::{PackedOption, ReservedValue};
use std::fmt;

/// A register file of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegFile {
    /// General registers, one value per lane (`r0.x` … `r47.w`).
    General,
    /// Shared registers, one value per wave (`r48.x` … `r55.w`).
    Shared,
    /// Predicates (`p0.x` … `p0.w`).
    Predicate,
    /// The address registers `a0.x` (`r61.x`) and `a1.x` (`r61.y`).
    Address,
}

/// The class of a register operand: its file and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegClass {
    /// The register file.
    pub file: RegFile,
    /// True for 16 bits per component instead of 32.
    pub half: bool,
}

impl RegClass {
    /// 32-bit general registers.
    pub const FULL: Self = Self { file: RegFile::General, half: false };
    /// 16-bit general registers.
    pub const HALF: Self = Self { file: RegFile::General, half: true };
    /// 32-bit shared registers.
    pub const SHARED: Self = Self { file: RegFile::Shared, half: false };
    /// 16-bit shared registers.
    pub const SHARED_HALF: Self = Self { file: RegFile::Shared, half: true };
    /// Predicate registers.
    pub const PREDICATE: Self = Self { file: RegFile::Predicate, half: false };
    /// Address registers (16 bits).
    pub const ADDRESS: Self = Self { file: RegFile::Address, half: true };

    /// The general class: half for values of up to 16 bits, full for 32.
    pub const fn general(half: bool) -> Self {
        if half { Self::HALF } else { Self::FULL }
    }

    /// Size of one component in half-register units, the unit of register allocation.
    pub const fn component_units(self) -> u16 {
        if self.half { 1 } else { 2 }
    }

    /// Bits of one component.
    pub const fn bits(self) -> u8 {
        if self.half { 16 } else { 32 }
    }
}

/// A physical register, by Mesa's number: `register << 2 | component`, counted in registers of the operand's own width
/// (the number of `hr1.y` is 5, as is that of `r1.y`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhysReg(pub u16);

impl PhysReg {
    /// `r63.x`, which denotes no register.
    pub const INVALID: Self = Self(63 << 2);
    /// `r0.x`, from which a prefetch reads its coordinates.
    pub const PREFETCH_COORDINATES: Self = Self(0);
    /// The end (exclusive) of the registers that a prefetch can write: up to `r15.w`. The command that issues the
    /// prefetch has six bits for its destination.
    pub const PREFETCH_RESULTS_END: u16 = 64;
    /// `a0.x`.
    pub const A0_X: Self = Self(61 << 2);
    /// `a1.x`.
    pub const A1_X: Self = Self((61 << 2) + 1);
    /// `p0.x`, the first predicate.
    pub const P0_X: Self = Self(62 << 2);
    /// `r48.x`, the first shared register.
    pub const SHARED_FIRST: Self = Self(48 << 2);

    /// Creates a register from a vec4 register number and a component.
    pub const fn new(register: u16, component: u16) -> Self {
        Self(register << 2 | component)
    }

    /// The vec4 register.
    pub const fn register(self) -> u16 {
        self.0 >> 2
    }

    /// The component, 0 to 3.
    pub const fn component(self) -> u16 {
        self.0 & 3
    }

    /// The register `n` components after this one.
    pub const fn offset(self, n: u16) -> Self {
        Self(self.0 + n)
    }
}

impl fmt::Display for PhysReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}.{}", self.register(), ['x', 'y', 'z', 'w'][usize::from(self.component())])
    }
}

impl fmt::Debug for PhysReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An optional register takes two bytes.
impl ReservedValue for PhysReg {
    fn reserved_value() -> Self {
        Self(u16::MAX)
    }

    fn is_reserved_value(&self) -> bool {
        self.0 == u16::MAX
    }
}

/// The components that an operand covers: bit `i` is component `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteMask(pub u32);

impl WriteMask {
    /// One component.
    pub const SCALAR: Self = Self(1);

    /// The first `n` components.
    pub const fn first(n: u32) -> Self {
        if n >= 32 { Self(u32::MAX) } else { Self((1 << n) - 1) }
    }

    /// Number of registers spanned, holes included.
    pub const fn span(self) -> u32 {
        32 - self.0.leading_zeros()
    }

    /// The components in the mask, in order.
    pub fn components(self) -> impl Iterator<Item = u32> {
        (0..self.span()).filter(move |&i| self.contains(i))
    }

    /// Returns true if component `i` is in the mask.
    pub const fn contains(self, i: u32) -> bool {
        self.0 >> i & 1 != 0
    }
}

/// An access to an array of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayAccess {
    /// The array.
    pub array: Array,
    /// First element of the access; relative to `a0.x` if `relative`.
    pub offset: i16,
    /// True if the access is relative to `a0.x`, which is then one of the instruction's sources.
    pub relative: bool,
    /// The version of the whole array (SSA) that is written (destination) or read (source). `None` before
    /// `array_to_ssa` has run, or if no version reaches this use.
    pub value: PackedOption<Value>,
    /// The first register of the array, after allocation.
    pub base: PackedOption<PhysReg>,
}

/// The location of a register operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// An SSA value without a register.
    Value(Value),
    /// An SSA value whose register has been chosen (`ssa_5(r61.x)`: inputs, predicates, address registers).
    Assigned(Value, PhysReg),
    /// A physical register.
    Reg(PhysReg),
    /// An array, in SSA form.
    Array(ArrayAccess),
    /// `r<a0.x + offset>` after register allocation; it may access `size` elements from `offset` on.
    Relative {
        /// Register number that is added to `a0.x`.
        offset: i16,
        /// Number of elements of the array.
        size: u16,
    },
}

impl Place {
    /// The SSA value, if any.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Value(v) | Self::Assigned(v, _) => Some(*v),
            Self::Array(access) => access.value.expand(),
            Self::Reg(_) | Self::Relative { .. } => None,
        }
    }

    /// The physical register, if it is known.
    pub fn reg(&self) -> Option<PhysReg> {
        match self {
            Self::Assigned(_, r) | Self::Reg(r) => Some(*r),
            Self::Array(access) => access.base.expand(),
            Self::Value(_) | Self::Relative { .. } => None,
        }
    }

    /// Returns true if the register is relative to `a0.x`.
    pub const fn is_relative(&self) -> bool {
        match self {
            Self::Relative { .. } => true,
            Self::Array(access) => access.relative,
            Self::Value(_) | Self::Assigned(..) | Self::Reg(_) => false,
        }
    }
}

bitflags! {
    /// Source modifiers. On predicate sources of branches `NOT` is the inversion flag.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Mods: u8 {
        /// Arithmetic negation (sign bit for floats, two's complement for integers).
        const NEG = 1;
        /// Absolute value, applied before the negation.
        const ABS = 2;
        /// Bitwise not (cat2 logic and `.b` operations), or the inverted predicate of a branch.
        const NOT = 4;
    }
}

bitflags! {
    /// Flags of an operand.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OperandFlags: u16 {
        /// `(r)`: advances with each repetition of the instruction.
        const R = 1;
        /// `(kill)`: last use of the value.
        const KILL = 1 << 1;
        /// First source of the instruction that is the value's last use.
        const FIRST_KILL = 1 << 2;
        /// `(unused)`: a destination without uses.
        const UNUSED = 1 << 3;
        /// `(tied)`: destination and source must be the same register.
        const TIED = 1 << 4;
        /// `(early_clobber)`: the destination is written before the sources are read.
        const EARLY_CLOBBER = 1 << 5;
        /// `(last)`: the hardware may free the register after this read.
        const LAST = 1 << 6;
        /// `up0.x`: the predicate is the same in all lanes; the scalar ALU may write it.
        const UNIFORM = 1 << 7;
        /// `@{…}`: a component of a vector whose components are sources of their own ([`aliases`](super::aliases)).
        const ALIAS = 1 << 8;
        /// The first component of such a vector.
        const FIRST_ALIAS = 1 << 9;
    }
}

/// A destination operand: its location, its register class and the components that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dst {
    /// The location of the result.
    pub place: Place,
    /// The register class.
    pub class: RegClass,
    /// The components that are written.
    pub mask: WriteMask,
    /// Flags.
    pub flags: OperandFlags,
}

/// The operand of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrcOperand {
    /// A register.
    Place(Place),
    /// A word of the constant file, `c<n>.<comp>`, by its scalar index.
    Const(u16),
    /// `c<a0.x + n>`.
    ConstRelative(i16),
    /// An immediate: 32 raw bits (16 for half operands).
    Immediate(u32),
    /// An undefined value.
    Undef,
}

const _: () = assert!(size_of::<SrcOperand>() == 12 && size_of::<Src>() == 24);

/// A source operand: a register, a constant or an immediate, with modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Src {
    /// The operand.
    pub operand: SrcOperand,
    /// Class of the register, or width of the constant or immediate.
    pub class: RegClass,
    /// The components that are read.
    pub mask: WriteMask,
    /// Modifiers, applied to the operand's value.
    pub mods: Mods,
    /// Flags.
    pub flags: OperandFlags,
}

impl Dst {
    /// Creates a destination of one or more components.
    pub const fn new(place: Place, class: RegClass, mask: WriteMask) -> Self {
        Self { place, class, mask, flags: OperandFlags::empty() }
    }

    /// The SSA value that it defines, if any.
    pub fn value(&self) -> Option<Value> {
        self.place.value()
    }
}

impl Src {
    /// Changes the value that the source reads. An assigned register stays.
    pub const fn set_value(&mut self, value: Value) {
        self.operand = SrcOperand::Place(match self.operand {
            SrcOperand::Place(Place::Assigned(_, reg)) => Place::Assigned(value, reg),
            _ => Place::Value(value),
        });
    }

    /// Creates a source without modifiers.
    pub const fn new(operand: SrcOperand, class: RegClass, mask: WriteMask) -> Self {
        Self { operand, class, mask, mods: Mods::empty(), flags: OperandFlags::empty() }
    }

    /// Creates a register source.
    pub const fn reg(place: Place, class: RegClass, mask: WriteMask) -> Self {
        Self::new(SrcOperand::Place(place), class, mask)
    }

    /// Creates an immediate of 32 bits, or of 16 if `half`.
    pub const fn immediate(bits: u32, half: bool) -> Self {
        Self::new(SrcOperand::Immediate(bits), RegClass::general(half), WriteMask::SCALAR)
    }

    /// Creates a source that reads a word of the constant file.
    pub const fn constant(index: u16, half: bool) -> Self {
        Self::new(SrcOperand::Const(index), RegClass::general(half), WriteMask::SCALAR)
    }

    /// Returns the source with other modifiers.
    pub const fn with_mods(mut self, mods: Mods) -> Self {
        self.mods = mods;
        self
    }

    /// The SSA value that it reads, if any.
    pub fn value(&self) -> Option<Value> {
        match &self.operand {
            SrcOperand::Place(place) => place.value(),
            _ => None,
        }
    }

    /// Returns true if it is a register or a word of the constant file relative to `a0.x`.
    pub const fn is_relative(&self) -> bool {
        match &self.operand {
            SrcOperand::Place(place) => place.is_relative(),
            operand => matches!(operand, SrcOperand::ConstRelative(_)),
        }
    }

    /// The place, if the source is a register.
    pub const fn place(&self) -> Option<&Place> {
        match &self.operand {
            SrcOperand::Place(place) => Some(place),
            _ => None,
        }
    }
}
