//! Constructors of memory and texture instructions, inverse to the views. They add no destination: the caller does,
//! with the mask that each constructor documents (as many components as are loaded, where it documents none).

use super::super::{
    AddressSpace, Attrs, Dst, InstrData, InstrFlags, MemoryAttrs, Opcode, OperandFlags, Src, TextureAttrs, Type,
};
use super::{AtomicFamily, AtomicOp};
use smallvec::SmallVec;

/// The descriptor of an SSBO, an image or a UBO.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    /// Descriptor set, if it is bindless.
    pub set: Option<u8>,
    /// Index.
    pub index: Src,
    /// True if lanes may have different indices.
    pub nonuniform: bool,
}

/// Elements in memory: their type and number.
#[derive(Clone, Copy, Debug)]
pub struct MemoryElements {
    /// Type of an element.
    pub ty: Type,
    /// Number of elements.
    pub components: u8,
}

/// A location in an SSBO or an image.
#[derive(Clone, Copy, Debug)]
pub enum Location {
    /// Element of an SSBO: a register, and an immediate that is added to it.
    Element(Src, u32),
    /// Coordinates of an image: a vector with this number of components.
    Texel(Src, u8),
}

impl Location {
    fn source(self) -> Src {
        match self {
            Self::Element(src, _) | Self::Texel(src, _) => src,
        }
    }

    fn attrs(self, attrs: MemoryAttrs) -> MemoryAttrs {
        match self {
            Self::Element(..) => MemoryAttrs { space: Some(AddressSpace::Ssbo), coords: Some(1), ..attrs },
            Self::Texel(_, n) => MemoryAttrs { space: Some(AddressSpace::Image), coords: Some(n), ..attrs },
        }
    }
}

/// The new value of an atomic, and the comparand of `cmpxchg`.
#[derive(Clone, Copy, Debug)]
pub struct AtomicOperand {
    /// Operation.
    pub op: AtomicOp,
    /// All of its data as one source, in the order of [`atomic_data_order`].
    pub data: Src,
    /// True if memory holds 64 bits.
    pub wide: bool,
}

impl AtomicOperand {
    fn ty(&self) -> Type {
        match (self.wide, self.op.is_signed()) {
            (true, _) => Type::U64,
            (false, true) => Type::S32,
            (false, false) => Type::U32,
        }
    }
}

/// The data of an atomic in the order of its vector: space for the old value if the family has it there (`zero`s), the
/// new value, the comparand. `value` and `compare` have two words each for 64 bits.
pub fn atomic_data_order(family: AtomicFamily, value: &[Src], compare: &[Src], zero: Src) -> SmallVec<[Src; 6]> {
    let room = if family == AtomicFamily::Resource { value.len() } else { 0 };
    std::iter::repeat_n(zero, room).chain(value.iter().copied()).chain(compare.iter().copied()).collect()
}

fn memory(opcode: Opcode, srcs: &[Src], attrs: MemoryAttrs) -> InstrData {
    let mut instr = InstrData::new(opcode);
    instr.srcs.extend_from_slice(srcs);
    instr.attrs = Attrs::Memory(attrs);
    instr
}

fn with_handle(mut instr: InstrData, handle: Handle) -> InstrData {
    if let (Some(set), Attrs::Memory(attrs)) = (handle.set, &mut instr.attrs) {
        attrs.base = Some(set);
        instr.flags |= InstrFlags::BINDLESS;
    }
    instr.flags.set(InstrFlags::NONUNIFORM, handle.nonuniform);
    instr
}

fn immediate(value: i32) -> Src {
    Src::immediate(value as u32, false)
}

fn attrs(elements: MemoryElements, space: AddressSpace) -> MemoryAttrs {
    MemoryAttrs {
        ty: Some(elements.ty),
        components: Some(elements.components.into()),
        space: Some(space),
        ..MemoryAttrs::default()
    }
}

/// `ldc`: elements of a UBO, from element `first` of vec4 number `vec4` on.
pub fn ldc(handle: Handle, vec4: Src, first: u8, elements: MemoryElements) -> InstrData {
    let attrs = MemoryAttrs { offset: i32::from(first), ..attrs(elements, AddressSpace::Ubo) };
    with_handle(memory(Opcode::Ldc, &[handle.index, vec4], attrs), handle)
}

/// `ldc.k`: copies `count` vec4s of a UBO, from vec4 number `vec4` on, to the constant file, from the word in `a1.x` on.
pub fn ldc_k(handle: Handle, vec4: Src, a1: Src, count: u16) -> InstrData {
    let attrs = MemoryAttrs {
        ty: Some(Type::U32),
        components: Some(count),
        space: Some(AddressSpace::Ubo),
        ..MemoryAttrs::default()
    };
    with_handle(memory(Opcode::LdcK, &[handle.index, vec4, a1], attrs), handle)
}

/// `ldg`: loads at a 64-bit address (two components) and an offset in bytes.
pub fn ldg(address: Src, offset: i32, elements: MemoryElements) -> InstrData {
    let count = immediate(i32::from(elements.components));
    memory(Opcode::Ldg, &[address, immediate(offset), count], attrs(elements, AddressSpace::Global))
}

/// `ldg.a`: loads at a 64-bit address and an index that counts units of `unit` bytes (4 on a6xx, 1 on a7xx).
pub fn ldg_indexed(address: Src, index: Src, unit: u8, elements: MemoryElements) -> InstrData {
    let attrs = MemoryAttrs { index_unit: Some(unit), ..attrs(elements, AddressSpace::Global) };
    let count = immediate(i32::from(elements.components));
    memory(Opcode::LdgA, &[address, index, immediate(0), immediate(0), count], attrs)
}

/// `stg`: stores at a 64-bit address (two components) and an offset in bytes.
pub fn stg(address: Src, offset: i32, data: Src, elements: MemoryElements) -> InstrData {
    let count = immediate(i32::from(elements.components));
    memory(Opcode::Stg, &[address, immediate(offset), data, count], attrs(elements, AddressSpace::Global))
}

/// `stg.a`: stores at a 64-bit address and an index in units of `unit` bytes.
pub fn stg_indexed(address: Src, index: Src, unit: u8, data: Src, elements: MemoryElements) -> InstrData {
    let attrs = MemoryAttrs { index_unit: Some(unit), ..attrs(elements, AddressSpace::Global) };
    let count = immediate(i32::from(elements.components));
    memory(Opcode::StgA, &[address, index, immediate(0), immediate(0), data, count], attrs)
}

/// `ldl`, `ldp`: loads from shared or scratch memory, addresses in bytes.
pub fn local_load(space: AddressSpace, address: Src, offset: i32, elements: MemoryElements) -> InstrData {
    let opcode = if space == AddressSpace::Scratch { Opcode::Ldp } else { Opcode::Ldl };
    let count = immediate(i32::from(elements.components));
    memory(opcode, &[address, immediate(offset), count], attrs(elements, space))
}

/// `ldlv`: one component of a varying that is not interpolated, by its number.
pub fn local_varying(ty: Type, number: Src) -> InstrData {
    let attrs = MemoryAttrs { ty: Some(ty), components: Some(1), ..MemoryAttrs::default() };
    memory(Opcode::Ldlv, &[number, immediate(1)], attrs)
}

/// `stl`, `stp`: stores to shared or scratch memory, addresses in bytes.
pub fn local_store(space: AddressSpace, address: Src, offset: i32, data: Src, elements: MemoryElements) -> InstrData {
    let opcode = if space == AddressSpace::Scratch { Opcode::Stp } else { Opcode::Stl };
    let count = immediate(i32::from(elements.components));
    memory(opcode, &[address, data, count], MemoryAttrs { offset, ..attrs(elements, space) })
}

fn resource_attrs(location: Location, elements: MemoryElements) -> MemoryAttrs {
    location.attrs(attrs(elements, AddressSpace::Ssbo))
}

fn offset_of(location: Location) -> (Src, InstrFlags) {
    let offset = if let Location::Element(_, offset) = location { offset } else { 0 };
    let flags = if offset == 0 { InstrFlags::empty() } else { InstrFlags::IMM_OFFSET };
    (Src::immediate(offset, false), flags)
}

/// `ldib` from a6xx on.
pub fn ldib(handle: Handle, location: Location, elements: MemoryElements) -> InstrData {
    let (offset, flags) = offset_of(location);
    let srcs = [handle.index, location.source(), offset];
    let mut instr = with_handle(memory(Opcode::Ldib, &srcs, resource_attrs(location, elements)), handle);
    instr.flags |= flags;
    instr
}

/// `stib` from a6xx on.
pub fn stib(handle: Handle, location: Location, data: Src, elements: MemoryElements) -> InstrData {
    let (offset, flags) = offset_of(location);
    let srcs = [handle.index, location.source(), offset, data];
    let mut instr = with_handle(memory(Opcode::Stib, &srcs, resource_attrs(location, elements)), handle);
    instr.flags |= flags;
    instr
}

/// `ldgb` of a4xx and a5xx, `ldib` of a5xx. The location has no immediate.
pub fn old_load(
    opcode: Opcode,
    handle: Handle,
    byte_offset: Src,
    location: Location,
    elements: MemoryElements,
) -> InstrData {
    let srcs = [handle.index, byte_offset, location.source()];
    let attrs = MemoryAttrs { old_layout: true, ..resource_attrs(location, elements) };
    with_handle(memory(opcode, &srcs, attrs), handle)
}

/// `stgb` of a4xx and a5xx, `stib` of a5xx.
pub fn old_store(
    opcode: Opcode,
    handle: Handle,
    byte_offset: Src,
    location: Location,
    data: Src,
    elements: MemoryElements,
) -> InstrData {
    let srcs = [handle.index, data, location.source(), byte_offset];
    let attrs = MemoryAttrs { old_layout: true, ..resource_attrs(location, elements) };
    with_handle(memory(opcode, &srcs, attrs), handle)
}

/// `resinfo`: the size of an SSBO or an image, into three components. `split` is the form below a6xx.
pub fn resinfo(handle: Handle, space: AddressSpace, dims: u8, split: bool) -> InstrData {
    let attrs = MemoryAttrs {
        ty: Some(Type::U32),
        components: Some(3),
        space: Some(space),
        coords: Some(if split { 2 } else { dims }),
        ..MemoryAttrs::default()
    };
    with_handle(memory(Opcode::Resinfo, &[handle.index], attrs), handle)
}

/// `stc`: stores to the constant file, at word `offset` (below 256) plus `a1.x`.
pub fn stc(a1: Option<Src>, offset: u8, data: Src, components: u8) -> InstrData {
    let elements = MemoryElements { ty: Type::U32, components };
    let srcs = [Src::immediate(u32::from(offset), false), data];
    let mut instr = memory(Opcode::Stc, &srcs, attrs(elements, AddressSpace::Const));
    if let Some(a1) = a1 {
        instr.srcs.push(a1);
        instr.flags |= InstrFlags::A1EN;
    }
    instr
}

/// `atomic`: on shared memory.
pub fn atomic_shared(address: Src, operand: &AtomicOperand) -> InstrData {
    let opcode = AtomicFamily::Shared.opcode(operand.op);
    let elements = MemoryElements { ty: operand.ty(), components: 1 };
    memory(opcode, &[address, operand.data], attrs(elements, AddressSpace::Shared))
}

/// `atomic.g`: at a 64-bit address.
pub fn atomic_global(address: Src, operand: &AtomicOperand) -> InstrData {
    let opcode = AtomicFamily::Global.opcode(operand.op);
    let elements = MemoryElements { ty: operand.ty(), components: 1 };
    memory(opcode, &[address, operand.data], attrs(elements, AddressSpace::Global))
}

/// `atomic.b`: on an SSBO or image. The destination has the mask of the data, and is [tied](tied()) to them.
pub fn atomic_resource(handle: Handle, location: Location, operand: &AtomicOperand) -> InstrData {
    let opcode = AtomicFamily::Resource.opcode(operand.op);
    let elements = MemoryElements { ty: operand.ty(), components: 1 };
    let mut data = operand.data;
    data.flags |= OperandFlags::TIED;
    let srcs = [handle.index, location.source(), data];
    with_handle(memory(opcode, &srcs, resource_attrs(location, elements)), handle)
}

/// `atomic.s`: on an SSBO or image of a4xx and a5xx.
pub fn old_atomic(handle: Handle, byte_offset: Src, location: Location, operand: &AtomicOperand) -> InstrData {
    let opcode = AtomicFamily::OldResource.opcode(operand.op);
    let elements = MemoryElements { ty: operand.ty(), components: 1 };
    let srcs = [handle.index, operand.data, location.source(), byte_offset];
    let attrs = MemoryAttrs { old_layout: true, ..resource_attrs(location, elements) };
    with_handle(memory(opcode, &srcs, attrs), handle)
}

/// Marks a destination as tied to the tied source.
pub fn tied(dst: &mut Dst) {
    dst.flags |= OperandFlags::TIED;
}

/// The descriptors of texture and sampler.
#[derive(Clone, Copy, Debug)]
pub enum TextureHandle {
    /// Indices in the instruction.
    Fixed {
        /// Descriptor set, if it is bindless.
        set: Option<u8>,
        /// Texture.
        texture: u16,
        /// Sampler.
        sampler: u16,
    },
    /// A vector of texture and sampler index: half registers unless it is bindless.
    Pair {
        /// Descriptor set, if it is bindless.
        set: Option<u8>,
        /// The two indices.
        pair: Src,
        /// `a1.x` with the sampler's descriptor set, if it differs.
        sampler_set: Option<Src>,
    },
}

/// The operands of a texture instruction, as scalars.
#[derive(Clone, Debug, Default)]
pub struct TextureOperands {
    /// Two or three coordinates.
    pub coords: SmallVec<[Src; 3]>,
    /// Reference of the shadow comparison.
    pub comparator: Option<Src>,
    /// Array layer.
    pub layer: Option<Src>,
    /// Divisor of the coordinates.
    pub projector: Option<Src>,
    /// Derivatives in x, as many as coordinates or none.
    pub ddx: SmallVec<[Src; 3]>,
    /// Derivatives in y.
    pub ddy: SmallVec<[Src; 3]>,
    /// Sample number.
    pub sample: Option<Src>,
    /// Texel offset: none, two or three.
    pub offset: SmallVec<[Src; 3]>,
    /// Level or bias.
    pub level: Option<Src>,
}

impl TextureOperands {
    /// The operands as the components of the two vectors of the instruction, and the flags that tell which operands are
    /// present. `padding` fills components without an operand.
    pub fn vectors(&self, padding: Src) -> (SmallVec<[Src; 12]>, SmallVec<[Src; 4]>, InstrFlags) {
        let mut flags = InstrFlags::empty();
        flags.set(InstrFlags::DIM_3D, self.coords.len() == 3);
        flags.set(InstrFlags::SHADOW, self.comparator.is_some());
        flags.set(InstrFlags::ARRAY, self.layer.is_some());
        flags.set(InstrFlags::PROJ, self.projector.is_some());
        flags.set(InstrFlags::OFFSET, !self.offset.is_empty());
        let mut first: SmallVec<[Src; 12]> = self.coords.iter().copied().collect();
        first.extend([self.comparator, self.layer, self.projector].into_iter().flatten());
        if !self.ddx.is_empty() {
            while first.len() < 4 {
                first.push(padding);
            }
            first.extend_from_slice(&self.ddx);
            first.extend_from_slice(&self.ddy);
        }
        first.extend(self.sample);
        let second = self.offset.iter().copied().chain(self.level).collect();
        (first, second, flags)
    }
}

/// A texture instruction; `flags`, `first` and `second` as returned by [`TextureOperands::vectors`], each collected
/// into a vector.
pub fn texture(
    opcode: Opcode,
    ty: Type,
    handle: TextureHandle,
    flags: InstrFlags,
    first: Option<Src>,
    second: Option<Src>,
) -> InstrData {
    let mut instr = InstrData::new(opcode);
    instr.flags = flags;
    let mut attrs = TextureAttrs { ty: Some(ty), ..TextureAttrs::default() };
    let mut a1 = None;
    let set = match handle {
        TextureHandle::Fixed { set, texture, sampler } => {
            attrs.texture = Some(texture);
            attrs.sampler = Some(sampler);
            set
        }
        TextureHandle::Pair { set, pair, sampler_set } => {
            instr.flags |= InstrFlags::S2EN;
            instr.srcs.push(pair);
            a1 = sampler_set;
            set
        }
    };
    if set.is_some() {
        attrs.base = set;
        instr.flags |= InstrFlags::BINDLESS;
    }
    instr.srcs.extend([first, second].into_iter().flatten());
    if let Some(a1) = a1 {
        instr.flags |= InstrFlags::A1EN;
        instr.srcs.push(a1);
    }
    instr.attrs = Attrs::Texture(attrs);
    instr
}

/// `isam`: loads from an SSBO through the texture unit. `address` is the element, or the vector of it and 0 if `isam.v`
/// is unsupported; `offset` is for `isam.v`.
pub fn isam_ssbo(handle: TextureHandle, address: Src, vector: bool, offset: u32, ty: Type) -> InstrData {
    let mut flags = InstrFlags::empty();
    flags.set(InstrFlags::VECTOR, vector);
    flags.set(InstrFlags::IMM_OFFSET, offset != 0);
    let mut instr = texture(Opcode::Isam, ty, handle, flags, Some(address), Some(Src::immediate(offset, false)));
    set_space(&mut instr, AddressSpace::Ssbo, false);
    instr
}

/// `isam`: loads from an image through the texture unit. One coordinate is padded with 0 to two; the array layer
/// follows them.
pub fn isam_image(handle: TextureHandle, coords: Src, flags: InstrFlags, is_1d: bool, ty: Type) -> InstrData {
    let mut instr = texture(Opcode::Isam, ty, handle, flags, Some(coords), None);
    set_space(&mut instr, AddressSpace::Image, is_1d);
    instr
}

fn set_space(instr: &mut InstrData, space: AddressSpace, is_1d: bool) {
    if let Attrs::Texture(attrs) = &mut instr.attrs {
        attrs.space = Some(space);
        attrs.is_1d = is_1d;
    }
}

/// `_meta:tex_prefetch`: samples at the varying `varying` before the program starts.
pub fn tex_prefetch(
    ty: Type,
    barycentric: Src,
    varying: u16,
    set: Option<u8>,
    texture: u16,
    sampler: u16,
    sampler_set: Option<u8>,
) -> InstrData {
    let mut instr = InstrData::new(Opcode::TexPrefetch);
    instr.srcs.push(barycentric);
    instr.flags.set(InstrFlags::BINDLESS, set.is_some());
    instr.attrs = Attrs::Texture(TextureAttrs {
        ty: Some(ty),
        sampler: Some(sampler),
        texture: Some(texture),
        base: set,
        sampler_base: sampler_set,
        input_offset: Some(varying),
        ..TextureAttrs::default()
    });
    instr
}
