//! Memory accesses: action, memory, address, type and data.

use super::super::opcode::{Effect, Form, Memory, Role};
use super::super::{AddressSpace, InstrData, InstrFlags, MemoryAttrs, Opcode, PhysReg, RegFile, SrcOperand, Type};
use super::{Binding, Number, PrintedShape, Slice, UnknownAttribute, width};
use smallvec::SmallVec;

/// The operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Add.
    Add,
    /// Subtract.
    Sub,
    /// Exchange.
    Xchg,
    /// Increment, wrapping to 0 above the operand.
    Inc,
    /// Decrement, wrapping to the operand below 0 or above the operand.
    Dec,
    /// Exchange if the old value equals `compare`.
    Cmpxchg,
    /// Signed minimum.
    MinS,
    /// Unsigned minimum.
    MinU,
    /// Signed maximum.
    MaxS,
    /// Unsigned maximum.
    MaxU,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl AtomicOp {
    /// The operations in the order of each family of opcodes: of two that differ in signedness the signed one.
    const ALL: [Self; 11] = {
        use AtomicOp::*;
        [Add, Sub, Xchg, Inc, Dec, Cmpxchg, MinS, MaxS, And, Or, Xor]
    };

    /// Returns true if the operands are compared as signed integers.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::MinS | Self::MaxS)
    }
}

/// The four encodings of atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicFamily {
    /// `atomic.*`: shared memory.
    Shared,
    /// `atomic.b.*`: SSBOs and images from a6xx on.
    Resource,
    /// `atomic.s.*`: SSBOs and images of a4xx and a5xx.
    OldResource,
    /// `atomic.g.*`: 64-bit addresses.
    Global,
}

impl AtomicFamily {
    const ALL: [Self; 4] = [Self::Shared, Self::Resource, Self::OldResource, Self::Global];

    const fn first(self) -> Opcode {
        match self {
            Self::Shared => Opcode::AtomicAdd,
            Self::Resource => Opcode::AtomicBAdd,
            Self::OldResource => Opcode::AtomicSAdd,
            Self::Global => Opcode::AtomicGAdd,
        }
    }

    /// The opcode of `op`. Signedness is in the type.
    pub fn opcode(self, op: AtomicOp) -> Opcode {
        let op = match op {
            AtomicOp::MinU => AtomicOp::MinS,
            AtomicOp::MaxU => AtomicOp::MaxS,
            op => op,
        };
        let position = AtomicOp::ALL.iter().position(|&known| known == op).unwrap_or(0);
        // The table lists each family's opcodes consecutively.
        Opcode::ALL[self.first() as usize + position]
    }

    /// The family of an atomic, and its operation as far as the opcode determines it: the signed one of two.
    pub fn of(opcode: Opcode) -> Option<(Self, AtomicOp)> {
        Self::ALL.into_iter().find_map(|family| {
            let position = (opcode as usize).checked_sub(family.first() as usize)?;
            Some((family, *AtomicOp::ALL.get(position)?))
        })
    }
}

/// The effect of a memory instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAction {
    /// Component `i` of the destination becomes element `i`.
    Load,
    /// Element `i` becomes component `i` of [`MemoryAccess::data`].
    Store,
    /// The destination's first component (two for 64 bits) becomes the old value; the components after it keep the
    /// values of the tied source.
    Atomic(AtomicOp),
    /// Size of the resource in [`MemoryAccess::dimensions`]. An image: component `i` is its size in dimension `i`. An
    /// SSBO: component 0 is the value that nir's `get_ssbo_size` has.
    Size,
    /// Size of an SSBO, its low 16 bits in component 0 and its high 16 bits in component 1 (below a6xx).
    SplitSize,
    /// Copies [`MemoryAccess::components`] vec4s to the constant file, starting at the word in [`MemoryAccess::data`].
    CopyToConsts,
    /// Prefetches a descriptor; has no effect on values.
    Prefetch,
}

impl MemoryAction {
    /// The most vec4s that an instruction copies to the constant file.
    pub const MAX_COPY: u16 = 256;
}

/// The address within a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// No address: a size.
    None,
    /// Units counted from the start of the memory, or from a 64-bit address: see [`linear_address`].
    Linear {
        /// 64-bit address, of two components (global memory only).
        base: Option<Slice>,
        /// Scalar index, in units.
        index: Option<Slice>,
        /// A second scalar that is added to the index: an immediate field that is still in a register.
        index2: Option<Slice>,
        /// Unit size in bytes.
        scale: u8,
        /// Added to the index, in units, except for global memory (in bytes) and UBOs (in elements).
        offset: i32,
    },
    /// Coordinates of an image, each a scalar: as many as the image has dimensions, followed by the array layer (or
    /// cube face and layer).
    Texel(SmallVec<[Slice; 4]>),
}

/// The byte address of element `component` of an access at a [linear](Address::Linear) address. The same function
/// serves nir: `base` is the 64-bit address of `load_global_ir3`, `index` the offset source (in elements for SSBOs, in
/// bytes for shared and scratch memory, in 32-bit words for global memory, in vec4 for UBOs) and `offset` the
/// intrinsic's base (or component, for UBOs). `size` is the size of an element in bytes.
///
/// - SSBO, shared, scratch, constants: `(index + offset + component elements) mod 2^32` units of `scale` bytes.
/// - Global: `base + sign-extended (index * scale mod 2^32) + offset + component * size`, mod 2^64.
/// - UBO: `offset + component` elements after vec4 number `index`.
pub const fn linear_address(
    space: AddressSpace,
    base: u64,
    index: u32,
    scale: u8,
    offset: i32,
    component: u32,
    size: u8,
) -> u64 {
    match space {
        AddressSpace::Global => base
            .wrapping_add_signed(index.wrapping_mul(scale as u32) as i32 as i64)
            .wrapping_add_signed(offset as i64)
            .wrapping_add(component as u64 * size as u64),
        AddressSpace::Ubo => index as u64 * 16 + (offset as u64).wrapping_add(component as u64) * size as u64,
        _ => {
            let per_element = if scale >= size { 1 } else { (size / scale) as u32 };
            let unit = index.wrapping_add_signed(offset).wrapping_add(component.wrapping_mul(per_element));
            unit as u64 * scale as u64
        }
    }
}

/// The unit in bytes of the element offset of an SSBO access of `bits` bits: an element, but 2 for 64 bits (Mesa's
/// lowering to `ssbo_atomic_ir3` shifts the byte offset that way).
pub const fn ssbo_offset_unit(bits: u8) -> u8 {
    match bits {
        8 => 1,
        16 | 64 => 2,
        _ => 4,
    }
}

/// A memory access, as every engine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The action.
    pub action: MemoryAction,
    /// The memory.
    pub space: AddressSpace,
    /// The resource (SSBOs, images, UBOs).
    pub binding: Option<Binding>,
    /// The address.
    pub address: Address,
    /// What the machine reads beside the address before a6xx: the same place as a byte offset, of one word or two. See
    /// [`ResourceWords`](crate::ir3::ResourceWords).
    pub bytes: Option<Slice>,
    /// The coordinate that pads one dimension to two, which has to be 0: `isam` reads it.
    pub padding: Option<Slice>,
    /// Type of an element.
    pub ty: Type,
    /// Number of elements; of vec4s for a copy to the constant file.
    pub components: u16,
    /// Stored data, an atomic's operand (two components for 64 bits), or the first word of a copy to the constant
    /// file.
    pub data: Option<Slice>,
    /// The comparand of `Cmpxchg`.
    pub compare: Option<Slice>,
    /// The shape of the image that `isam` prints; other accesses print none.
    pub shape: PrintedShape,
    /// The number of dimensions that a size is requested in; 0 for other actions.
    pub dimensions: u8,
}

impl MemoryAccess {
    /// Returns true if instructions with `opcode` are memory accesses.
    pub fn covers(opcode: Opcode) -> bool {
        match opcode.info().form.memory {
            Memory::Space(_) | Memory::Attribute => opcode != Opcode::Stsc,
            Memory::None | Memory::Unknown => opcode == Opcode::Isam,
        }
    }

    /// The access of a memory instruction.
    ///
    /// # Errors
    /// If an attribute is unknown that the access depends on.
    pub fn of(instr: &InstrData) -> Result<Self, UnknownAttribute> {
        if instr.opcode == Opcode::Isam {
            return super::texture::texel_load(instr);
        }
        let unknown = |attribute| UnknownAttribute { opcode: instr.opcode.name(), attribute };
        if !Self::covers(instr.opcode) {
            return Err(unknown("what it does to memory"));
        }
        let attrs = instr.memory().ok_or_else(|| unknown("every memory attribute"))?;
        let access = MemoryDecoder { instr, attrs, form: instr.form() }.access()?;
        // The word has the number of elements beside what the registers and the comment say.
        match instr.source(Role::Count).map(|src| src.operand) {
            Some(SrcOperand::Immediate(count)) if count != access.components.into() => {
                Err(unknown("the number of its elements"))
            }
            _ => Ok(access),
        }
    }
}

struct MemoryDecoder<'a> {
    instr: &'a InstrData,
    attrs: &'a MemoryAttrs,
    form: &'static Form,
}

impl MemoryDecoder<'_> {
    fn unknown(&self, attribute: &'static str) -> UnknownAttribute {
        UnknownAttribute { opcode: self.instr.opcode.name(), attribute }
    }

    /// The source with a role, if the form has it.
    fn slot(&self, role: Role) -> Result<Option<usize>, UnknownAttribute> {
        match self.instr.position(role) {
            Some(index) if index >= self.instr.srcs.len() => Err(self.unknown("one of its sources")),
            index => Ok(index),
        }
    }

    fn scalar(&self, role: Role) -> Result<Option<Slice>, UnknownAttribute> {
        Ok(self.slot(role)?.map(|index| Slice::scalar(index, 0)))
    }

    fn whole(&self, role: Role) -> Result<Option<Slice>, UnknownAttribute> {
        Ok(self.slot(role)?.map(|index| Slice::new(index, 0, width(&self.instr.srcs[index]))))
    }

    /// The immediate offset, or the register that still holds it. Without a source it is an attribute.
    fn offset(&self) -> Result<(i32, Option<Slice>), UnknownAttribute> {
        Ok(match self.scalar(Role::Offset)?.map(|source| Number::of(self.instr, source)) {
            None => (self.attrs.offset, None),
            Some(Number::Fixed(value)) => (value as i32, None),
            Some(Number::Source { source, .. }) => (0, Some(source)),
        })
    }

    /// The type of the elements. A full register in Mesa's text holds 32 bits; whether a half register holds 8 or 16 is
    /// unknown.
    fn ty(&self) -> Result<Type, UnknownAttribute> {
        let half = match self.slot(Role::Data)? {
            Some(data) => self.instr.srcs[data].class.half,
            None => self.instr.dsts.first().is_some_and(|dst| dst.class.half),
        };
        match self.attrs.ty {
            Some(ty) => Ok(ty),
            None if half => Err(self.unknown("the type of its elements")),
            None => Ok(Type::U32),
        }
    }

    /// Returns true for a prefetch of a descriptor. In final code `r63.x` stands for no result.
    fn is_prefetch(&self) -> bool {
        matches!(self.instr.opcode, Opcode::Ldc | Opcode::Resinfo)
            && self.instr.dsts.iter().all(|dst| dst.place.reg() == Some(PhysReg::INVALID))
    }

    fn access(&self) -> Result<MemoryAccess, UnknownAttribute> {
        let opcode = self.instr.opcode;
        let space = match (self.form.memory, self.attrs.space) {
            (Memory::Space(space), _) | (_, Some(space)) => space,
            _ if self.is_prefetch() => AddressSpace::Image,
            _ => return Err(self.unknown("which memory it accesses")),
        };
        let written = self.instr.dsts.first().map_or(0, |dst| dst.mask.0.count_ones() as u16);
        let mut access = MemoryAccess {
            action: MemoryAction::Load,
            space,
            binding: self.binding()?,
            address: Address::None,
            bytes: self.whole(Role::Bytes)?,
            padding: None,
            ty: Type::U32,
            components: self.attrs.components.unwrap_or(written),
            data: None,
            compare: None,
            shape: PrintedShape::default(),
            dimensions: 0,
        };
        match opcode.info().effect {
            _ if self.is_prefetch() => {
                access.action = MemoryAction::Prefetch;
                return Ok(access);
            }
            _ if opcode == Opcode::Resinfo => {
                self.size(&mut access)?;
                return Ok(access);
            }
            Effect::Atomic => self.atomic(&mut access)?,
            Effect::LoadConsts => {
                access.action = MemoryAction::CopyToConsts;
                access.components = self.attrs.components.ok_or_else(|| self.unknown("how much it copies"))?;
                access.data = self.scalar(Role::To).map_err(|_| self.unknown("where it copies to"))?;
            }
            Effect::StoreConsts => {
                access.action = MemoryAction::Store;
                let has_register = self.instr.srcs.iter().any(|src| src.class.file == RegFile::Address);
                if has_register != self.instr.flags.contains(InstrFlags::A1EN) {
                    return Err(self.unknown("if it adds `a1.x`"));
                }
            }
            Effect::Store | Effect::StoreAny => {
                access.action = MemoryAction::Store;
                let is_local = matches!(space, AddressSpace::Shared | AddressSpace::Scratch);
                if is_local && self.attrs.ty.is_none() && opcode != Opcode::SpillMacro {
                    // A text without types has no offset either.
                    return Err(self.unknown("its offset"));
                }
                access.ty = self.ty()?;
            }
            _ => access.ty = self.ty()?,
        }
        access.address = self.address(space, access.ty)?;
        if let Some(data) = self.whole(Role::Data)? {
            access.components = self.attrs.components.unwrap_or(data.count.into());
            let count = data.count.min(access.components.try_into().unwrap_or(u8::MAX));
            access.data = Some(Slice { count, ..data });
        }
        Ok(access)
    }

    fn binding(&self) -> Result<Option<Binding>, UnknownAttribute> {
        let Some(source) = self.scalar(Role::Resource)? else { return Ok(None) };
        let set = if self.instr.flags.contains(InstrFlags::BINDLESS) {
            let set = self.attrs.base.ok_or_else(|| self.unknown("its descriptor set"))?;
            Some(Number::Fixed(u32::from(set)))
        } else {
            None
        };
        Ok(Some(Binding { set, index: Number::of(self.instr, source) }))
    }

    /// The address: in bytes, but elements of SSBOs, vec4s of UBOs and words of the constant file. The offset of the
    /// `.a` forms is in units of the index, or in words together with a shift.
    fn address(&self, space: AddressSpace, ty: Type) -> Result<Address, UnknownAttribute> {
        let (mut offset, index2) = self.offset()?;
        if let (AddressSpace::Image, Some(texel)) = (space, self.whole(Role::Texel)?) {
            let count = self.attrs.coords.unwrap_or(texel.count);
            if count > texel.count {
                return Err(self.unknown("all of its coordinates"));
            }
            if offset != 0 && self.form.has(Role::Offset) {
                return Err(self.unknown("what its offset is to a texel"));
            }
            return Ok(Address::Texel((0..count).map(|i| texel.component(i)).collect()));
        }
        let base = self.whole(Role::Base)?.map(|base| Slice { count: 2, ..base });
        let index = self.scalar(Role::Index)?.or(self.scalar(Role::Texel)?).or(self.scalar(Role::Address1)?);
        let mut scale = match space {
            AddressSpace::Ssbo | AddressSpace::Image => ssbo_offset_unit(ty.bits()),
            AddressSpace::Ubo => 16,
            AddressSpace::Const => 4,
            AddressSpace::Shared | AddressSpace::Scratch | AddressSpace::Global => 1,
        };
        if let Some(shift) = self.scalar(Role::Shift)? {
            let shift = match Number::of(self.instr, shift) {
                Number::Fixed(shift @ 0..4) => shift,
                _ => return Err(self.unknown("the shift of its index")),
            };
            // The index is in words on a6xx and in bytes on a7xx; the text does not print the unit.
            scale = self.attrs.index_unit.ok_or_else(|| self.unknown("the unit of its index"))?;
            offset = offset.wrapping_mul(if shift == 0 { scale.into() } else { 4 });
            scale <<= shift;
        }
        // An offset in a register is an index in bytes.
        let (index, index2) = match (index, index2) {
            (Some(_), Some(_)) if base.is_some() => return Err(self.unknown("its immediate offset")),
            (None, Some(offset)) if base.is_some() => (Some(offset), None),
            both => both,
        };
        Ok(Address::Linear { base, index, index2, scale, offset })
    }

    fn size(&self, access: &mut MemoryAccess) -> Result<(), UnknownAttribute> {
        access.dimensions = self.attrs.coords.ok_or_else(|| self.unknown("its number of dimensions"))?;
        access.action = match (access.space, access.dimensions) {
            (AddressSpace::Ssbo, 2) => MemoryAction::SplitSize,
            (AddressSpace::Ssbo, 1) | (AddressSpace::Image, 1..=3) => MemoryAction::Size,
            _ => return Err(self.unknown("what its dimensions are to the size")),
        };
        access.components = 3;
        Ok(())
    }

    /// The data of `cmpxchg` are the new value and the comparand; those of `atomic.b` come after the room for the old
    /// value.
    fn atomic(&self, access: &mut MemoryAccess) -> Result<(), UnknownAttribute> {
        let (_, op) = AtomicFamily::of(self.instr.opcode).ok_or_else(|| self.unknown("what it does to memory"))?;
        let signed = matches!(op, AtomicOp::MinS | AtomicOp::MaxS);
        let ty = match self.attrs.ty {
            Some(ty) => ty,
            None if signed => return Err(self.unknown("the type of its elements")),
            None => Type::U32,
        };
        if ty.is_float() {
            return Err(self.unknown("what it does with floats"));
        }
        let op = match op {
            AtomicOp::MinS if !ty.is_signed() => AtomicOp::MinU,
            AtomicOp::MaxS if !ty.is_signed() => AtomicOp::MaxU,
            op => op,
        };
        let registers = if ty == Type::U64 { 2 } else { 1 };
        let (data, first) = match self.slot(Role::Tied)? {
            Some(tied) => (Some(tied), registers),
            None => (self.slot(Role::Operand)?, 0),
        };
        access.action = MemoryAction::Atomic(op);
        access.ty = ty;
        access.components = 1;
        access.data = data.map(|data| Slice::new(data, first, registers));
        if op == AtomicOp::Cmpxchg {
            access.compare = data.map(|data| Slice::new(data, first + registers, registers));
        }
        Ok(())
    }
}
