//! Memory accesses: action, memory, address, type and data.

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
    /// Index in each family of opcodes.
    const fn position(self) -> usize {
        match self {
            Self::Add => 0,
            Self::Sub => 1,
            Self::Xchg => 2,
            Self::Inc => 3,
            Self::Dec => 4,
            Self::Cmpxchg => 5,
            Self::MinS | Self::MinU => 6,
            Self::MaxS | Self::MaxU => 7,
            Self::And => 8,
            Self::Or => 9,
            Self::Xor => 10,
        }
    }

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
    /// Opcodes in a family.
    const SIZE: usize = 11;
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
    pub const fn opcode(self, op: AtomicOp) -> Opcode {
        // The table lists each family's opcodes consecutively, in the order of `AtomicOp::position`.
        Opcode::ALL[self.first() as usize + op.position()]
    }

    /// The family of an atomic, and its operation as far as the opcode determines it: the signed one of two.
    pub fn of(opcode: Opcode) -> Option<(Self, AtomicOp)> {
        Self::ALL.into_iter().find_map(|family| {
            let position = (opcode as usize).checked_sub(family.first() as usize)?;
            (position < Self::SIZE).then(|| {
                let op = match position {
                    0 => AtomicOp::Add,
                    1 => AtomicOp::Sub,
                    2 => AtomicOp::Xchg,
                    3 => AtomicOp::Inc,
                    4 => AtomicOp::Dec,
                    5 => AtomicOp::Cmpxchg,
                    6 => AtomicOp::MinS,
                    7 => AtomicOp::MaxS,
                    8 => AtomicOp::And,
                    9 => AtomicOp::Or,
                    _ => AtomicOp::Xor,
                };
                (family, op)
            })
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
    /// Size of the resource in [`MemoryAccess::dimensions`]. An image: component `i` is its size in dimension `i`. An SSBO:
    /// component 0 is the value that nir's `get_ssbo_size` has.
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
    /// Stored data, an atomic's operand (two components for 64 bits), or the first word of a copy to the constant file.
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
        use Opcode as O;
        matches!(
            opcode,
            O::Ldc
                | O::LdcK
                | O::Ldg
                | O::LdgA
                | O::Stg
                | O::StgA
                | O::Ldl
                | O::Stl
                | O::Ldlw
                | O::Stlw
                | O::Ldp
                | O::Stp
                | O::SpillMacro
                | O::ReloadMacro
                | O::Ldib
                | O::Stib
                | O::Ldgb
                | O::Stgb
                | O::Resinfo
                | O::Stc
                | O::Isam
        ) || AtomicFamily::of(opcode).is_some()
    }

    /// The access of a memory instruction.
    ///
    /// # Errors
    /// If an attribute is unknown that the access depends on.
    pub fn of(instr: &InstrData) -> Result<Self, UnknownAttribute> {
        let access = Self::of_attributes(instr)?;
        // The word has the number of elements beside what the registers and the comment say.
        let said = count_source(instr.opcode).and_then(|source| instr.srcs.get(source));
        match said.map(|src| src.operand) {
            Some(SrcOperand::Immediate(count)) if count != access.components.into() => {
                Err(UnknownAttribute { opcode: instr.opcode.name(), attribute: "the number of its elements" })
            }
            _ => Ok(access),
        }
    }

    fn of_attributes(instr: &InstrData) -> Result<Self, UnknownAttribute> {
        use Opcode as O;
        match instr.opcode {
            O::Ldc => MemoryDecoder::new(instr)?.ldc(),
            O::LdcK => MemoryDecoder::new(instr)?.ldc_k(),
            O::Ldg | O::LdgA => MemoryDecoder::new(instr)?.global(MemoryAction::Load),
            O::Stg | O::StgA => MemoryDecoder::new(instr)?.global(MemoryAction::Store),
            O::Ldl | O::Ldlw => MemoryDecoder::new(instr)?.local_load(AddressSpace::Shared),
            O::Ldp | O::ReloadMacro => MemoryDecoder::new(instr)?.local_load(AddressSpace::Scratch),
            O::Stl | O::Stlw => MemoryDecoder::new(instr)?.local_store(AddressSpace::Shared),
            O::Stp | O::SpillMacro => MemoryDecoder::new(instr)?.local_store(AddressSpace::Scratch),
            O::Ldib => MemoryDecoder::new(instr)?.resource(MemoryAction::Load),
            O::Stib => MemoryDecoder::new(instr)?.resource(MemoryAction::Store),
            O::Ldgb => MemoryDecoder::new(instr)?.old_resource(MemoryAction::Load),
            O::Stgb => MemoryDecoder::new(instr)?.old_resource(MemoryAction::Store),
            O::Resinfo => MemoryDecoder::new(instr)?.resinfo(),
            O::Stc => MemoryDecoder::new(instr)?.stc(),
            O::Isam => super::texture::texel_load(instr),
            _ => match AtomicFamily::of(instr.opcode) {
                Some((family, op)) => MemoryDecoder::new(instr)?.atomic(family, op),
                None => Err(UnknownAttribute { opcode: instr.opcode.name(), attribute: "what it does to memory" }),
            },
        }
    }
}

/// The source that is the number of elements, if the instruction has one.
const fn count_source(opcode: Opcode) -> Option<usize> {
    use Opcode as O;
    match opcode {
        O::Ldg | O::Ldl | O::Ldlw | O::Ldp | O::Stl | O::Stlw | O::Stp | O::SpillMacro | O::ReloadMacro => Some(2),
        O::Stg => Some(3),
        O::LdgA => Some(4),
        O::StgA => Some(5),
        _ => None,
    }
}

/// The positions of the sources of an access to an SSBO or image.
struct ResourceLayout {
    /// Offset or coordinates.
    address: usize,
    /// Immediate offset.
    immediate: Option<usize>,
    /// Byte offset beside the address.
    bytes: Option<usize>,
    /// Data.
    data: Option<usize>,
}

struct MemoryDecoder<'a> {
    instr: &'a InstrData,
    attrs: &'a MemoryAttrs,
}

impl<'a> MemoryDecoder<'a> {
    fn new(instr: &'a InstrData) -> Result<Self, UnknownAttribute> {
        match instr.memory() {
            Some(attrs) => Ok(Self { instr, attrs }),
            None => Err(UnknownAttribute { opcode: instr.opcode.name(), attribute: "every memory attribute" }),
        }
    }

    fn unknown(&self, attribute: &'static str) -> UnknownAttribute {
        UnknownAttribute { opcode: self.instr.opcode.name(), attribute }
    }

    /// Checks that the source at `index` exists.
    fn require(&self, index: usize) -> Result<usize, UnknownAttribute> {
        if index < self.instr.srcs.len() { Ok(index) } else { Err(self.unknown("one of its sources")) }
    }

    fn scalar(&self, index: usize) -> Result<Slice, UnknownAttribute> {
        Ok(Slice::scalar(self.require(index)?, 0))
    }

    fn whole(&self, index: usize) -> Result<Slice, UnknownAttribute> {
        let index = self.require(index)?;
        Ok(Slice::new(index, 0, width(&self.instr.srcs[index])))
    }

    /// An immediate field: its value, or the register that still holds it.
    fn immediate(&self, index: usize) -> Result<(i32, Option<Slice>), UnknownAttribute> {
        let source = self.scalar(index)?;
        Ok(match self.instr.srcs[index].operand {
            SrcOperand::Immediate(value) => (value as i32, None),
            _ => (0, Some(source)),
        })
    }

    /// The type of the elements. A full register in Mesa's text holds 32 bits; whether a half register holds 8 or 16 is
    /// unknown.
    fn ty(&self, half: bool) -> Result<Type, UnknownAttribute> {
        match self.attrs.ty {
            Some(ty) => Ok(ty),
            None if half => Err(self.unknown("the type of its elements")),
            None => Ok(Type::U32),
        }
    }

    fn dst_half(&self) -> bool {
        self.instr.dsts.first().is_some_and(|dst| dst.class.half)
    }

    fn dst_width(&self) -> u16 {
        let written = self.instr.dsts.first().map_or(0, |dst| dst.mask.0.count_ones() as u16);
        self.attrs.components.unwrap_or(written)
    }

    fn space(&self) -> Result<AddressSpace, UnknownAttribute> {
        self.attrs.space.ok_or_else(|| self.unknown("which memory it accesses"))
    }

    fn binding(&self, index: usize) -> Result<Binding, UnknownAttribute> {
        let source = self.scalar(index)?;
        let set = if self.instr.flags.contains(InstrFlags::BINDLESS) {
            let set = self.attrs.base.ok_or_else(|| self.unknown("its descriptor set"))?;
            Some(Number::Fixed(u32::from(set)))
        } else {
            None
        };
        Ok(Binding { set, index: Number::of(self.instr, source) })
    }

    fn access(&self, action: MemoryAction, space: AddressSpace, address: Address, ty: Type) -> MemoryAccess {
        let components = self.dst_width();
        MemoryAccess {
            action,
            space,
            binding: None,
            address,
            bytes: None,
            padding: None,
            ty,
            components,
            data: None,
            compare: None,
            shape: PrintedShape::default(),
            dimensions: 0,
        }
    }

    /// `ldc index, offset`.
    fn ldc(&self) -> Result<MemoryAccess, UnknownAttribute> {
        if self.has_no_result() {
            return Ok(self.access(MemoryAction::Prefetch, AddressSpace::Ubo, Address::None, Type::U32));
        }
        let index = Some(self.scalar(1)?);
        let address = Address::Linear { base: None, index, index2: None, scale: 16, offset: self.attrs.offset };
        let access = self.access(MemoryAction::Load, AddressSpace::Ubo, address, self.ty(self.dst_half())?);
        Ok(MemoryAccess { binding: Some(self.binding(0)?), ..access })
    }

    /// `ldc.k index, offset`, with the first word of the constant file in `a1.x`.
    fn ldc_k(&self) -> Result<MemoryAccess, UnknownAttribute> {
        let index = Some(self.scalar(1)?);
        let address = Address::Linear { base: None, index, index2: None, scale: 16, offset: 0 };
        let components = self.attrs.components.ok_or_else(|| self.unknown("how much it copies"))?;
        let to = self.address_register().ok_or_else(|| self.unknown("where it copies to"))?;
        let access = self.access(MemoryAction::CopyToConsts, AddressSpace::Ubo, address, Type::U32);
        Ok(MemoryAccess { binding: Some(self.binding(0)?), components, data: Some(to), ..access })
    }

    /// The address register among the sources.
    fn address_register(&self) -> Option<Slice> {
        let index = self.instr.srcs.iter().rposition(|src| src.class.file == RegFile::Address);
        index.map(|index| Slice::scalar(index, 0))
    }

    /// Sets the stored data.
    fn with_data(&self, access: MemoryAccess, data: usize) -> Result<MemoryAccess, UnknownAttribute> {
        let data = self.whole(data)?;
        let components = self.attrs.components.unwrap_or(data.count.into());
        let count = data.count.min(components.try_into().unwrap_or(u8::MAX));
        Ok(MemoryAccess { data: Some(Slice { count, ..data }), components, ..access })
    }

    /// `ldg address, offset, count`, `stg address, offset, data, count`; `ldg.a address, index, shift, offset, count`,
    /// `stg.a address, index, shift, offset, data, count`. The offset is in bytes, that of the `.a` forms in units of the
    /// index, or in words together with a shift.
    fn global(&self, action: MemoryAction) -> Result<MemoryAccess, UnknownAttribute> {
        let base = Some(Slice { count: 2, ..self.whole(0)? });
        let indexed = matches!(self.instr.opcode, Opcode::LdgA | Opcode::StgA);
        let (index, scale, (offset, index2), data) = if indexed {
            let (shift, in_register) = self.immediate(2)?;
            if in_register.is_some() || !(0..4).contains(&shift) {
                return Err(self.unknown("the shift of its index"));
            }
            // The index is in words on a6xx and in bytes on a7xx; the text does not print the unit.
            let unit = self.attrs.index_unit.ok_or_else(|| self.unknown("the unit of its index"))?;
            let (offset, index2) = self.immediate(3)?;
            let unit_of_offset = if shift == 0 { unit.into() } else { 4 };
            (Some(self.scalar(1)?), unit << shift, (offset.wrapping_mul(unit_of_offset), index2), 4)
        } else {
            (None, 1, self.immediate(1)?, 2)
        };
        // An offset in a register is an index in bytes.
        let (index, index2) = match (index, index2) {
            (Some(_), Some(_)) => return Err(self.unknown("its immediate offset")),
            (None, Some(offset)) => (Some(offset), None),
            (index, None) => (index, None),
        };
        let address = Address::Linear { base, index, index2, scale, offset };
        if action == MemoryAction::Store {
            let half = self.instr.srcs[self.require(data)?].class.half;
            self.with_data(self.access(action, AddressSpace::Global, address, self.ty(half)?), data)
        } else {
            Ok(self.access(action, AddressSpace::Global, address, self.ty(self.dst_half())?))
        }
    }

    /// `ldl index, offset, count`, in bytes.
    fn local_load(&self, space: AddressSpace) -> Result<MemoryAccess, UnknownAttribute> {
        let (offset, index2) = self.immediate(1)?;
        let address = Address::Linear { base: None, index: Some(self.scalar(0)?), index2, scale: 1, offset };
        Ok(self.access(MemoryAction::Load, space, address, self.ty(self.dst_half())?))
    }

    /// `stl index, data, count`, in bytes. A text without types has no offset either.
    fn local_store(&self, space: AddressSpace) -> Result<MemoryAccess, UnknownAttribute> {
        if self.attrs.ty.is_none() && self.instr.opcode != Opcode::SpillMacro {
            return Err(self.unknown("its offset"));
        }
        let index = Some(self.scalar(0)?);
        let address = Address::Linear { base: None, index, index2: None, scale: 1, offset: self.attrs.offset };
        let half = self.instr.srcs[self.require(1)?].class.half;
        self.with_data(self.access(MemoryAction::Store, space, address, self.ty(half)?), 1)
    }

    /// The address of an access to an SSBO or an image.
    fn resource_address(
        &self,
        space: AddressSpace,
        layout: &ResourceLayout,
        ty: Type,
    ) -> Result<Address, UnknownAttribute> {
        if space == AddressSpace::Image {
            let all = self.whole(layout.address)?;
            let count = self.attrs.coords.unwrap_or(all.count);
            if count > all.count {
                return Err(self.unknown("all of its coordinates"));
            }
            if let Some(source) = layout.immediate
                && self.immediate(source)?.0 != 0
            {
                return Err(self.unknown("what its offset is to a texel"));
            }
            return Ok(Address::Texel((0..count).map(|i| all.component(i)).collect()));
        }
        let index = Some(self.scalar(layout.address)?);
        let (offset, index2) = match layout.immediate {
            Some(source) => self.immediate(source)?,
            None => (0, None),
        };
        let scale = ty.bits() / 8;
        Ok(Address::Linear { base: None, index, index2, scale, offset })
    }

    fn byte_offset(&self, layout: &ResourceLayout) -> Result<Option<Slice>, UnknownAttribute> {
        layout.bytes.map(|source| self.whole(source)).transpose()
    }

    fn resource_access(&self, action: MemoryAction, layout: &ResourceLayout) -> Result<MemoryAccess, UnknownAttribute> {
        let space = self.space()?;
        let half = match layout.data {
            Some(data) => self.instr.srcs[self.require(data)?].class.half,
            None => self.dst_half(),
        };
        let ty = self.ty(half)?;
        let address = self.resource_address(space, layout, ty)?;
        let bytes = self.byte_offset(layout)?;
        let access = MemoryAccess { binding: Some(self.binding(0)?), bytes, ..self.access(action, space, address, ty) };
        match layout.data {
            Some(data) => self.with_data(access, data),
            None => Ok(access),
        }
    }

    /// From a6xx on: `ldib resource, address, immediate`, `stib resource, address, immediate, data`. a5xx: `ldib
    /// resource, byte offset, coordinates`, `stib resource, data, coordinates, byte offset`.
    fn resource(&self, action: MemoryAction) -> Result<MemoryAccess, UnknownAttribute> {
        if self.attrs.old_layout {
            return self.old_resource(action);
        }
        let data = (action == MemoryAction::Store).then_some(3);
        self.resource_access(action, &ResourceLayout { address: 1, immediate: Some(2), bytes: None, data })
    }

    /// `ldgb resource, byte offset, address`, `stgb resource, data, address, byte offset`.
    fn old_resource(&self, action: MemoryAction) -> Result<MemoryAccess, UnknownAttribute> {
        let (data, bytes) = if action == MemoryAction::Store { (Some(1), 3) } else { (None, 1) };
        self.resource_access(action, &ResourceLayout { address: 2, immediate: None, bytes: Some(bytes), data })
    }

    /// Returns true for a prefetch of a descriptor. In final code `r63.x` stands for no result.
    fn has_no_result(&self) -> bool {
        self.instr.dsts.iter().all(|dst| dst.place.reg() == Some(PhysReg::INVALID))
    }

    fn resinfo(&self) -> Result<MemoryAccess, UnknownAttribute> {
        let binding = Some(self.binding(0)?);
        if self.has_no_result() {
            let space = self.attrs.space.unwrap_or(AddressSpace::Image);
            let access = self.access(MemoryAction::Prefetch, space, Address::None, Type::U32);
            return Ok(MemoryAccess { binding, ..access });
        }
        let space = self.space()?;
        let dimensions = self.attrs.coords.ok_or_else(|| self.unknown("its number of dimensions"))?;
        let action = match (space, dimensions) {
            (AddressSpace::Ssbo, 2) => MemoryAction::SplitSize,
            (AddressSpace::Ssbo, 1) | (AddressSpace::Image, 1..=3) => MemoryAction::Size,
            _ => return Err(self.unknown("what its dimensions are to the size")),
        };
        let access = self.access(action, space, Address::None, Type::U32);
        Ok(MemoryAccess { binding, components: 3, dimensions, ..access })
    }

    /// `stc offset, data`, with `a1.x` as optional index; in words.
    fn stc(&self) -> Result<MemoryAccess, UnknownAttribute> {
        let (offset, index2) = self.immediate(0)?;
        let index = self.address_register();
        if index.is_some() != self.instr.flags.contains(InstrFlags::A1EN) {
            return Err(self.unknown("if it adds `a1.x`"));
        }
        let address = Address::Linear { base: None, index, index2, scale: 4, offset };
        self.with_data(self.access(MemoryAction::Store, AddressSpace::Const, address, Type::U32), 1)
    }

    /// `atomic index, data`; `atomic.g address, data`; `atomic.b resource, address, data` (after one tied element);
    /// `atomic.s resource, data, address, byte offset`. The data of `cmpxchg` are the new value and the comparand.
    fn atomic(&self, family: AtomicFamily, op: AtomicOp) -> Result<MemoryAccess, UnknownAttribute> {
        let ty = match (self.attrs.ty, op) {
            (Some(ty), _) => ty,
            (None, AtomicOp::MinS | AtomicOp::MaxS) => return Err(self.unknown("the type of its elements")),
            (None, _) => Type::U32,
        };
        if ty.is_float() {
            return Err(self.unknown("what it does with floats"));
        }
        let op = match op {
            AtomicOp::MinS if !ty.is_signed() => AtomicOp::MinU,
            AtomicOp::MaxS if !ty.is_signed() => AtomicOp::MaxU,
            op => op,
        };
        let action = MemoryAction::Atomic(op);
        let registers = if ty == Type::U64 { 2 } else { 1 };
        let (mut access, data, first) = match family {
            AtomicFamily::Shared => {
                let index = Some(self.scalar(0)?);
                let offset = self.attrs.offset;
                let address = Address::Linear { base: None, index, index2: None, scale: 1, offset };
                (self.access(action, AddressSpace::Shared, address, ty), 1, 0)
            }
            AtomicFamily::Global => {
                let base = Some(Slice { count: 2, ..self.whole(0)? });
                let offset = self.attrs.offset;
                let address = Address::Linear { base, index: None, index2: None, scale: 1, offset };
                (self.access(action, AddressSpace::Global, address, ty), 1, 0)
            }
            AtomicFamily::Resource => {
                let layout = ResourceLayout { address: 1, immediate: None, bytes: None, data: None };
                (self.resource_atomic(action, &layout, ty)?, 2, registers)
            }
            AtomicFamily::OldResource => {
                let layout = ResourceLayout { address: 2, immediate: None, bytes: Some(3), data: None };
                (self.resource_atomic(action, &layout, ty)?, 1, 0)
            }
        };
        let data = self.require(data)?;
        access.components = 1;
        access.data = Some(Slice::new(data, first, registers));
        if op == AtomicOp::Cmpxchg {
            access.compare = Some(Slice::new(data, first + registers, registers));
        }
        Ok(access)
    }

    fn resource_atomic(
        &self,
        action: MemoryAction,
        layout: &ResourceLayout,
        ty: Type,
    ) -> Result<MemoryAccess, UnknownAttribute> {
        let space = self.space()?;
        let mut address = self.resource_address(space, layout, ty)?;
        if let Address::Linear { scale, .. } = &mut address {
            *scale = ssbo_offset_unit(ty.bits());
        }
        let bytes = self.byte_offset(layout)?;
        Ok(MemoryAccess { binding: Some(self.binding(0)?), bytes, ..self.access(action, space, address, ty) })
    }
}
