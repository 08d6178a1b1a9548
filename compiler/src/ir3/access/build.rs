//! Constructors of memory and texture instructions, inverse to the views. They add no destination: the caller does,
//! with the mask that each constructor documents (as many components as are loaded, where it documents none).

use super::super::opcode::{Memory, Role};
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

impl From<MemoryElements> for MemoryAttrs {
    fn from(elements: MemoryElements) -> Self {
        Self { ty: Some(elements.ty), components: Some(elements.components.into()), ..Self::default() }
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
    /// The one element in memory.
    pub fn elements(&self) -> MemoryElements {
        let ty = match (self.wide, self.op.is_signed()) {
            (true, _) => Type::U64,
            (false, true) => Type::S32,
            (false, false) => Type::U32,
        };
        MemoryElements { ty, components: 1 }
    }
}

/// The data of an atomic in the order of its vector: space for the old value if the family has it there (`zero`s), the
/// new value, the comparand. `value` and `compare` have two words each for 64 bits.
pub fn atomic_data_order(family: AtomicFamily, value: &[Src], compare: &[Src], zero: Src) -> SmallVec<[Src; 6]> {
    let room = if family == AtomicFamily::Resource { value.len() } else { 0 };
    std::iter::repeat_n(zero, room).chain(value.iter().copied()).chain(compare.iter().copied()).collect()
}

/// A memory instruction with operands by their roles. Offsets, shifts and counts that are not given are filled in; an
/// `a1.x` that is not given is left out.
pub fn memory(opcode: Opcode, attrs: impl Into<MemoryAttrs>, operands: &[(Role, Src)]) -> InstrData {
    let attrs: MemoryAttrs = attrs.into();
    let given = |role| operands.iter().find(|&&(known, _)| known == role).map(|&(_, src)| src);
    let mut instr = InstrData::new(opcode);
    let space = if let Memory::Space(space) = opcode.info().form.memory { Some(space) } else { attrs.space };
    instr.attrs = Attrs::Memory(MemoryAttrs { space, old_layout: given(Role::Bytes).is_some(), ..attrs });
    add_sources(&mut instr, |role| {
        given(role).or(match role {
            Role::Offset | Role::Shift => Some(Src::immediate(0, false)),
            Role::Count => Some(Src::immediate(attrs.components.unwrap_or(0).into(), false)),
            _ => None,
        })
    });
    instr
}

/// Adds the sources that are given, in the order of the form.
fn add_sources(instr: &mut InstrData, given: impl Fn(Role) -> Option<Src>) {
    instr.flags.set(InstrFlags::A1EN, given(Role::Address1).is_some());
    let form = instr.form();
    instr.srcs.extend(form.srcs.iter().filter_map(|&role| given(role)));
}

/// An access to an SSBO or an image, with its operands except descriptor and location. The destination of an `atomic.b`
/// has the mask of the data, and is [tied](tied()) to them.
pub fn resource(
    opcode: Opcode,
    handle: Handle,
    location: Location,
    attrs: impl Into<MemoryAttrs>,
    operands: &[(Role, Src)],
) -> InstrData {
    let (texel, offset, space, coords) = match location {
        Location::Element(src, offset) => (src, offset, AddressSpace::Ssbo, 1),
        Location::Texel(src, coords) => (src, 0, AddressSpace::Image, coords),
    };
    let attrs = MemoryAttrs { space: Some(space), coords: Some(coords), ..attrs.into() };
    let mut all: SmallVec<[(Role, Src); 4]> = SmallVec::from_slice(operands);
    all.extend([(Role::Texel, texel), (Role::Offset, Src::immediate(offset, false))]);
    let mut instr = described(opcode, handle, attrs, &all);
    instr.flags.set(InstrFlags::IMM_OFFSET, offset != 0);
    if let Some(tied) = instr.position(Role::Tied) {
        instr.srcs[tied].flags |= OperandFlags::TIED;
    }
    instr
}

/// An instruction with a descriptor.
fn described(opcode: Opcode, handle: Handle, attrs: MemoryAttrs, operands: &[(Role, Src)]) -> InstrData {
    let mut all: SmallVec<[(Role, Src); 6]> = SmallVec::from_slice(operands);
    all.push((Role::Resource, handle.index));
    let mut instr = memory(opcode, MemoryAttrs { base: handle.set, ..attrs }, &all);
    instr.flags.set(InstrFlags::BINDLESS, handle.set.is_some());
    instr.flags.set(InstrFlags::NONUNIFORM, handle.nonuniform);
    instr
}

/// `ldc`: elements of a UBO, from element `first` of vec4 number `vec4` on.
pub fn ldc(handle: Handle, vec4: Src, first: u8, elements: MemoryElements) -> InstrData {
    let attrs = MemoryAttrs { offset: i32::from(first), ..elements.into() };
    described(Opcode::Ldc, handle, attrs, &[(Role::Index, vec4)])
}

/// `ldc.k`: copies `count` vec4s of a UBO, from vec4 number `vec4` on, to the constant file, from the word in `a1.x`
/// on.
pub fn ldc_k(handle: Handle, vec4: Src, a1: Src, count: u16) -> InstrData {
    let attrs = MemoryAttrs { ty: Some(Type::U32), components: Some(count), ..MemoryAttrs::default() };
    described(Opcode::LdcK, handle, attrs, &[(Role::Index, vec4), (Role::To, a1)])
}

/// `ldl`, `ldp`: loads from shared or scratch memory, addresses in bytes.
pub fn local_load(space: AddressSpace, address: Src, offset: i32, elements: MemoryElements) -> InstrData {
    let opcode = if space == AddressSpace::Scratch { Opcode::Ldp } else { Opcode::Ldl };
    memory(opcode, elements, &[(Role::Index, address), (Role::Offset, Src::immediate(offset as u32, false))])
}

/// `stl`, `stp`: stores to shared or scratch memory, addresses in bytes.
pub fn local_store(space: AddressSpace, address: Src, offset: i32, data: Src, elements: MemoryElements) -> InstrData {
    let opcode = if space == AddressSpace::Scratch { Opcode::Stp } else { Opcode::Stl };
    memory(opcode, MemoryAttrs { offset, ..elements.into() }, &[(Role::Index, address), (Role::Data, data)])
}

/// `resinfo`: the size of an SSBO or an image, into three components. `split` is the form below a6xx.
pub fn resinfo(handle: Handle, space: AddressSpace, dims: u8, split: bool) -> InstrData {
    let coords = Some(if split { 2 } else { dims });
    let elements = MemoryElements { ty: Type::U32, components: 3 };
    described(Opcode::Resinfo, handle, MemoryAttrs { space: Some(space), coords, ..elements.into() }, &[])
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
    let mut attrs = TextureAttrs { ty: Some(ty), ..TextureAttrs::default() };
    let (set, pair, a1) = match handle {
        TextureHandle::Fixed { set, texture, sampler } => {
            (attrs.texture, attrs.sampler) = (Some(texture), Some(sampler));
            (set, None, None)
        }
        TextureHandle::Pair { set, pair, sampler_set } => (set, Some(pair), sampler_set),
    };
    attrs.base = set;
    instr.attrs = Attrs::Texture(attrs);
    instr.flags = flags;
    instr.flags.set(InstrFlags::S2EN, pair.is_some());
    instr.flags.set(InstrFlags::BINDLESS, set.is_some());
    add_sources(&mut instr, |role| match role {
        Role::Pair => pair,
        Role::Coordinates => first,
        Role::Offset | Role::Level | Role::Data => second,
        Role::Address1 => a1,
        _ => None,
    });
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
