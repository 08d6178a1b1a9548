//! Texture instructions.
//!
//! Sources: the pair of texture and sampler index (`.s2en`), the coordinates with their companions, offset and level,
//! `a1.x` (`.a1en`). The coordinates are followed by those of these operands that the flags select: the
//! comparator (`.s`), the array layer (`.a`), the projector (`.p`), the derivatives (`samgq` and `samgpN`, from
//! component 4 on), the sample (`isamm`). The third source is the texel offset (`.o`), then the level or bias.
//!
//! Texture and sampler of a bindless instruction (`.base<n>`) are in set `n`; `a1.x` holds the sampler's set if it
//! differs, with `.s2en`. Without `.s2en`, `a1.x >> 3` is the index that does not fit into the instruction: the
//! texture's up to a6xx (there is no `t#`), the sampler's from a7xx on (there is no `s#`); its low three bits are the
//! sampler's set.

use super::super::opcode::{Coordinates, Role};
use super::super::{AddressSpace, InstrData, InstrFlags, Opcode, RegFile, TextureAttrs, Type};
use super::{
    Address, Binding, MemoryAccess, MemoryAction, Number, PrintedShape, Slice, Slot, TextureKind, UnknownAttribute,
    width,
};
use smallvec::SmallVec;

/// The source of the coordinates of a texture sample that is issued before the program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefetch {
    /// Barycentric i and j.
    pub barycentric: Slice,
    /// Index of the varying (`4 * base + component`) that is the first coordinate; the second is the next.
    pub varying: u16,
}

/// A texture instruction, as every engine sees it; engines build the [`TextureRequest`](super::TextureRequest) of each
/// lane from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextureAccess {
    /// The kind of request.
    pub kind: TextureKind,
    /// The texture.
    pub texture: Binding,
    /// The sampler; meaningless unless [`TextureKind::has_sampler`] holds.
    pub sampler: Binding,
    /// Scalar operands of the request.
    pub operands: SmallVec<[(Slot, Slice); 8]>,
    /// The coordinates X and Y, if they are interpolated.
    pub prefetch: Option<Prefetch>,
    /// The shape that the text prints for the texture.
    pub shape: PrintedShape,
    /// Type of the response. Component `i` of the response is written to component `i` of the destination.
    pub ty: Type,
}

impl TextureAccess {
    /// Returns true if instructions with `opcode` are texture requests.
    pub const fn covers(opcode: Opcode) -> bool {
        kind(opcode).is_some()
    }

    /// The request of a texture instruction.
    ///
    /// # Errors
    /// If an attribute is unknown that the request depends on.
    pub fn of(instr: &InstrData) -> Result<Self, UnknownAttribute> {
        let reader = TextureDecoder::new(instr)?;
        let fetches = instr.opcode == Opcode::Isam && reader.attrs.is_fetch;
        let kind = if fetches { Some(TextureKind::Fetch) } else { kind(instr.opcode) };
        let kind = kind.ok_or_else(|| reader.unknown("what it asks"))?;
        let (texture, sampler) = reader.bindings()?;
        let ty = reader.attrs.ty.ok_or_else(|| reader.unknown("its type"))?;
        let shape = reader.shape();
        let mut access = Self { kind, texture, sampler, operands: SmallVec::new(), prefetch: None, shape, ty };
        if instr.opcode == Opcode::TexPrefetch {
            let varying = reader.attrs.input_offset.ok_or_else(|| reader.unknown("its varying"))?;
            access.prefetch = Some(Prefetch { barycentric: Slice::new(0, 0, 2), varying });
        } else {
            reader.operands(&mut access)?;
        }
        Ok(access)
    }
}

fn dimensions(instr: &InstrData) -> usize {
    2 + usize::from(instr.flags.contains(InstrFlags::DIM_3D))
}

/// The components of the coordinates of a texture request by their slots; `None` is one without a meaning.
pub(crate) fn coordinates(instr: &InstrData) -> SmallVec<[Option<Slot>; 12]> {
    let has = |flag| instr.flags.contains(flag);
    let dims = dimensions(instr);
    let mut slots: SmallVec<[Option<Slot>; 12]> = Slot::COORDS[..dims].iter().copied().map(Some).collect();
    slots.extend(has(InstrFlags::SHADOW).then_some(Some(Slot::Comparator)));
    slots.extend(has(InstrFlags::ARRAY).then_some(Some(if dims == 2 { Slot::Z } else { Slot::Layer })));
    slots.extend(has(InstrFlags::PROJ).then_some(Some(Slot::Projector)));
    match instr.form().coordinates {
        Coordinates::Gradients | Coordinates::GradientsInParts => {
            slots.resize(slots.len().max(4), None);
            slots.extend(Slot::DDX[..dims].iter().chain(&Slot::DDY[..dims]).copied().map(Some));
        }
        Coordinates::Sample => slots.push(Some(Slot::Sample)),
        _ => {}
    }
    slots
}

/// The kind of request of an opcode.
const fn kind(opcode: Opcode) -> Option<TextureKind> {
    Some(match opcode {
        Opcode::Sam | Opcode::TexPrefetch => TextureKind::Sample,
        Opcode::Samb => TextureKind::SampleBias,
        Opcode::Saml => TextureKind::SampleLod,
        Opcode::Samgq | Opcode::Samgp0 | Opcode::Samgp1 | Opcode::Samgp2 | Opcode::Samgp3 => TextureKind::SampleGrad,
        Opcode::Isaml => TextureKind::Fetch,
        Opcode::Isamm => TextureKind::FetchMs,
        Opcode::Gather4r => TextureKind::Gather(0),
        Opcode::Gather4g => TextureKind::Gather(1),
        Opcode::Gather4b => TextureKind::Gather(2),
        Opcode::Gather4a => TextureKind::Gather(3),
        Opcode::Getlod => TextureKind::LodQuery,
        Opcode::Getsize => TextureKind::Size,
        Opcode::Getbuf => TextureKind::BufferSize,
        Opcode::Getinfo => TextureKind::Info,
        Opcode::Rgetpos => TextureKind::SamplePosition,
        _ => return None,
    })
}

/// `isam`: a load from an SSBO or an image through the texture unit.
pub(super) fn texel_load(instr: &InstrData) -> Result<MemoryAccess, UnknownAttribute> {
    let reader = TextureDecoder::new(instr)?;
    if instr.flags.intersects(InstrFlags::OFFSET | InstrFlags::SHADOW | InstrFlags::PROJ) {
        return Err(reader.unknown("what a sampler's operand is to a load"));
    }
    let vector = instr.flags.contains(InstrFlags::VECTOR);
    let space = match reader.attrs.space {
        Some(space) => space,
        None if vector => AddressSpace::Ssbo,
        None => return Err(reader.unknown("which memory it accesses")),
    };
    let ty = reader.attrs.ty.ok_or_else(|| reader.unknown("its type"))?;
    let (binding, _) = reader.bindings()?;
    let coords = reader.source(Role::Coordinates)?;
    let count = width(&instr.srcs[coords]);
    // The unit reads as many as the flags say. The coordinate that pads one dimension to two is not one of the image or
    // buffer.
    let read = if vector {
        1
    } else {
        2 + usize::from(reader.flag(InstrFlags::DIM_3D)) + usize::from(reader.flag(InstrFlags::ARRAY))
    };
    if count != read {
        return Err(reader.unknown("each of its coordinates by its flags"));
    }
    let is_padded = if space == AddressSpace::Image { reader.attrs.is_1d } else { !vector };
    let padding = is_padded.then(|| Slice::scalar(coords, 1));
    let address = if space == AddressSpace::Image {
        Address::Texel((0..count).map(|i| Slice::scalar(coords, i)).filter(|&slice| Some(slice) != padding).collect())
    } else {
        let immediate = if vector { Number::of(instr, reader.scalar(Role::Offset)?) } else { Number::Fixed(0) };
        let offset = if let Number::Fixed(offset) = immediate { offset as i32 } else { 0 };
        let index = Some(Slice::scalar(coords, 0));
        Address::Linear { base: None, index, index2: immediate.source(), scale: ty.bits() / 8, offset }
    };
    let components = instr.dsts.first().map_or(0, |dst| dst.mask.0.count_ones() as u8);
    let action = MemoryAction::Load;
    Ok(MemoryAccess {
        action,
        space,
        binding: Some(binding),
        address,
        bytes: None,
        padding,
        ty,
        components: components.into(),
        data: None,
        compare: None,
        shape: reader.shape(),
        dimensions: 0,
    })
}

struct TextureDecoder<'a> {
    instr: &'a InstrData,
    attrs: &'a TextureAttrs,
}

impl<'a> TextureDecoder<'a> {
    fn new(instr: &'a InstrData) -> Result<Self, UnknownAttribute> {
        match instr.texture() {
            Some(attrs) => Ok(Self { instr, attrs }),
            None => Err(UnknownAttribute { opcode: instr.opcode.name(), attribute: "every texture attribute" }),
        }
    }

    fn unknown(&self, attribute: &'static str) -> UnknownAttribute {
        UnknownAttribute { opcode: self.instr.opcode.name(), attribute }
    }

    fn flag(&self, flag: InstrFlags) -> bool {
        self.instr.flags.contains(flag)
    }

    fn shape(&self) -> PrintedShape {
        PrintedShape {
            three: self.flag(InstrFlags::DIM_3D),
            array: self.flag(InstrFlags::ARRAY),
            cube: self.attrs.is_cube,
        }
    }

    fn source(&self, role: Role) -> Result<usize, UnknownAttribute> {
        let index = self.instr.position(role).filter(|&index| index < self.instr.srcs.len());
        index.ok_or_else(|| self.unknown("one of its sources"))
    }

    fn scalar(&self, role: Role) -> Result<Slice, UnknownAttribute> {
        Ok(Slice::scalar(self.source(role)?, 0))
    }

    /// A field of `a1.x`.
    fn a1(&self, shift: u8, mask: u32) -> Result<Number, UnknownAttribute> {
        let index = self.instr.srcs.iter().rposition(|src| src.class.file == RegFile::Address);
        let index = index.ok_or_else(|| self.unknown("`a1.x`"))?;
        Ok(Number::Source { source: Slice::scalar(index, 0), shift, mask })
    }

    /// Texture and sampler.
    fn bindings(&self) -> Result<(Binding, Binding), UnknownAttribute> {
        let set = if self.flag(InstrFlags::BINDLESS) {
            let set = self.attrs.base.ok_or_else(|| self.unknown("its descriptor set"))?;
            Some(Number::Fixed(u32::from(set)))
        } else {
            None
        };
        let fixed = |index: Option<u16>| Number::Fixed(u32::from(index.unwrap_or(0)));
        let (texture, sampler, sampler_set) = if self.flag(InstrFlags::S2EN) {
            let sampler_set = if self.flag(InstrFlags::A1EN) { Some(self.a1(0, 7)?) } else { set };
            (self.pair(0)?, self.pair(1)?, sampler_set)
        } else if !self.flag(InstrFlags::A1EN) {
            let sampler_set = self.attrs.sampler_base.map_or(set, |set| Some(Number::Fixed(u32::from(set))));
            (fixed(self.attrs.texture), fixed(self.attrs.sampler), sampler_set)
        } else if self.attrs.texture.is_none() {
            (self.a1(3, u32::MAX)?, fixed(self.attrs.sampler), Some(self.a1(0, 7)?))
        } else {
            (fixed(self.attrs.texture), self.a1(3, u32::MAX)?, Some(self.a1(0, 7)?))
        };
        Ok((Binding { set, index: texture }, Binding { set: sampler_set, index: sampler }))
    }

    /// One of the pair of indices; a vector that is one immediate for both does not occur.
    fn pair(&self, component: usize) -> Result<Number, UnknownAttribute> {
        let index = self.source(Role::Pair)?;
        if width(&self.instr.srcs[index]) < 2 {
            return Err(self.unknown("its pair of indices"));
        }
        Ok(Number::Source { source: Slice::scalar(index, component), shift: 0, mask: u32::MAX })
    }

    fn operands(&self, access: &mut TextureAccess) -> Result<(), UnknownAttribute> {
        match access.kind {
            TextureKind::BufferSize | TextureKind::Info => return Ok(()),
            TextureKind::SamplePosition => {
                access.operands.push((Slot::Sample, self.scalar(Role::Coordinates)?));
                return Ok(());
            }
            TextureKind::Size => {
                access.operands.push((Slot::Lod, self.scalar(Role::Coordinates)?));
                return Ok(());
            }
            _ => {}
        }
        let mut slots = coordinates(self.instr);
        let is_query = access.kind == TextureKind::LodQuery;
        if is_query {
            // The level depends on no other operands.
            slots.truncate(dimensions(self.instr));
        }
        let mut source = Operands { access, reader: self, source: self.source(Role::Coordinates)?, next: 0 };
        source.take(slots)?;
        if is_query {
            return Ok(());
        }
        let level = self.instr.form().has(Role::Level);
        if level || self.flag(InstrFlags::OFFSET) {
            source =
                Operands { source: self.source(if level { Role::Level } else { Role::Offset })?, next: 0, ..source };
            if self.flag(InstrFlags::OFFSET) {
                let count = width(&self.instr.srcs[source.source]) - usize::from(level);
                source.take(Slot::OFFSET[..count.min(3)].iter().copied().map(Some))?;
            }
            if level {
                source.take([Some(Slot::Lod)])?;
            }
        }
        Ok(())
    }
}

/// Consumes the components of a source one by one.
struct Operands<'a, 'b> {
    access: &'a mut TextureAccess,
    reader: &'a TextureDecoder<'b>,
    source: usize,
    next: usize,
}

impl Operands<'_, '_> {
    fn take(&mut self, slots: impl IntoIterator<Item = Option<Slot>>) -> Result<(), UnknownAttribute> {
        for slot in slots {
            if let Some(slot) = slot {
                if self.next >= width(&self.reader.instr.srcs[self.source]) {
                    return Err(self.reader.unknown("one of its operands' components"));
                }
                self.access.operands.push((slot, Slice::scalar(self.source, self.next)));
            }
            self.next += 1;
        }
        Ok(())
    }
}
