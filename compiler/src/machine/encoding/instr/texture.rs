//! Textures, derivatives, quads.

use super::alu::{TYPES, number_of};
use super::{DecodeResult, Decoder, EncodeResult, Encoder};
use crate::ir3::access;
use crate::ir3::opcode::{Coordinates, Role};
use crate::ir3::{Attrs, InstrData, InstrFlags, Opcode, Src, TextureAttrs, WriteMask};
use crate::machine::encoding::field::{Field, FieldName, Kind};
use crate::machine::encoding::print::is_bindless;
use crate::target::Generation;

/// Flags of the instruction, and the fields that they are.
const FLAGS: [(FieldName, InstrFlags); 3] = [
    (FieldName::ThreeD, InstrFlags::DIM_3D),
    (FieldName::Array, InstrFlags::ARRAY),
    (FieldName::HasOffset, InstrFlags::OFFSET),
];

/// The flags of a bit that means another thing for some opcodes: `.p`, and `.s` or `.v`.
fn shared_flags(opcode: Opcode) -> (InstrFlags, InstrFlags) {
    match opcode {
        Opcode::Dsxpp1 | Opcode::Dsypp1 => (InstrFlags::PAIR, InstrFlags::SHADOW),
        Opcode::Isam => (InstrFlags::empty(), InstrFlags::VECTOR),
        _ => (InstrFlags::PROJ, InstrFlags::SHADOW),
    }
}

/// The components of the coordinates with their companions, by the flags.
fn coordinates(data: &InstrData, written: u32) -> u32 {
    match data.form().coordinates {
        Coordinates::Result => written,
        Coordinates::One | Coordinates::Exchanged => 1,
        _ if data.flags.contains(InstrFlags::VECTOR) => 1,
        _ => access::coordinates(data).len() as u32,
    }
}

/// The components of offset and level.
fn second(data: &InstrData) -> u32 {
    let has = |flag| u32::from(data.flags.contains(flag));
    let offset = has(InstrFlags::OFFSET) * (2 + has(InstrFlags::DIM_3D));
    (offset + u32::from(data.form().has(Role::Level))).max(1)
}

impl Decoder {
    pub(super) fn texture(&mut self) -> DecodeResult {
        let opcode = self.data.opcode;
        if opcode == Opcode::Tcinv {
            return Ok(None);
        }
        for (name, flag) in FLAGS {
            self.data.flags.set(flag, self.encoding.prints(name) && self.get(name) != 0);
        }
        let (projected, shadow) = shared_flags(opcode);
        self.data.flags.set(projected, self.get(FieldName::Projected) != 0);
        self.data.flags.set(shadow, self.get(FieldName::ShadowOrVector) != 0);
        let mut attrs =
            TextureAttrs { ty: Some(TYPES[self.get(FieldName::Type) as usize & 7]), ..TextureAttrs::default() };
        if self.encoding.field(FieldName::Cluster).is_some() {
            attrs.cluster = Some(2 << self.get(FieldName::Cluster));
        }
        let mask = WriteMask(self.get(FieldName::Mask) as u32);
        let (src_half, dst_half) = (self.encoding.widths.src_half(self.word), self.encoding.widths.dst_half(self.word));
        if mask.0 != 0 {
            self.dst(self.get(FieldName::Dst), dst_half, mask);
        }
        let a1 = self.descriptors(&mut attrs);
        let flags = self.data.flags;
        if self.encoding.prints(FieldName::Src1) {
            let components = coordinates(&self.data, mask.0.count_ones());
            self.push_register(FieldName::Src1, src_half, components);
        }
        match self.encoding.field(FieldName::Src2).map(|field| field.kind) {
            Some(Kind::Register(_)) => self.push_register(FieldName::Src2, src_half, second(&self.data)),
            Some(Kind::IfSet { .. } | Kind::IfSetOrOffset { .. }) if flags.contains(InstrFlags::OFFSET) => {
                self.push_register(FieldName::Src2, src_half, second(&self.data));
            }
            Some(Kind::IfSetOrOffset { offset, .. }) if flags.contains(InstrFlags::VECTOR) => {
                let has = self.word >> offset & 1 != 0;
                let value = if has { self.get(FieldName::Src2) as i64 } else { 0 };
                self.data.flags.set(InstrFlags::IMM_OFFSET, value != 0);
                self.push_immediate(value);
            }
            _ => {}
        }
        if self.data.form().has(Role::Tied)
            && let Some(dst) = self.data.dsts.first()
        {
            // What stays where no lane has a value.
            let kept = Src::reg(dst.place, dst.class, dst.mask);
            self.data.srcs.push(kept);
        }
        if a1 {
            self.data.flags |= InstrFlags::A1EN;
            self.push_address1();
        }
        self.data.attrs = Attrs::Texture(attrs);
        Ok(None)
    }

    /// Texture and sampler; returns true if `a1.x` has a part of them.
    fn descriptors(&mut self, attrs: &mut TextureAttrs) -> bool {
        let Some(Field { kind: Kind::TextureMode { base }, .. }) = self.encoding.field(FieldName::Mode) else {
            let index = |name| self.encoding.prints(name).then(|| self.get(name) as u16);
            attrs.sampler = index(FieldName::Sampler);
            attrs.texture = index(FieldName::Texture);
            return false;
        };
        let Some(Field { kind: Kind::TextureDescriptor { sampler, texture, .. }, .. }) =
            self.encoding.field(FieldName::Descriptor)
        else {
            return false;
        };
        let mode = self.get(FieldName::Mode);
        let value = self.get(FieldName::Descriptor);
        if is_bindless(mode) {
            self.data.flags |= InstrFlags::BINDLESS;
            attrs.base = Some(base.get(self.word) as u8);
        }
        self.data.flags.set(InstrFlags::NONUNIFORM, matches!(mode, 2..=4));
        let some = |has: bool, index: u64| has.then_some(index as u16);
        match (mode, self.generation) {
            (0..=5, _) => {
                self.data.flags |= InstrFlags::S2EN;
                let pair = self.register(value, !is_bindless(mode), 2);
                self.data.srcs.push(pair);
            }
            (7, Generation::A7xx | Generation::A8xx) => attrs.texture = some(*texture, value),
            (7, Generation::A6xx) => attrs.sampler = some(*sampler, value),
            _ => {
                attrs.sampler = some(*sampler, value & 0xf);
                attrs.texture = some(*texture, value >> 4);
            }
        }
        matches!(mode, 1 | 3 | 7)
    }
}

impl Encoder<'_> {
    pub(super) fn texture(&mut self) -> EncodeResult {
        let data = self.data;
        if data.opcode == Opcode::Tcinv {
            return Ok(());
        }
        let Some(attrs) = data.texture() else {
            return self.not_known(FieldName::Type, "its attributes are not known");
        };
        let by_mode =
            matches!(self.encoding.field(FieldName::Mode), Some(Field { kind: Kind::TextureMode { .. }, .. }));
        for (name, flag) in FLAGS {
            let set = u64::from(self.flag(flag));
            self.put(name, set)?;
        }
        let (projected, shadow) = shared_flags(data.opcode);
        let set = u64::from(!projected.is_empty() && self.flag(projected));
        self.put(FieldName::Projected, set)?;
        let set = u64::from(self.flag(shadow));
        self.put(FieldName::ShadowOrVector, set)?;
        match attrs.ty {
            Some(ty) => self.put(FieldName::Type, number_of(ty))?,
            None => return self.not_known(FieldName::Type, "its type is not known"),
        }
        if self.encoding.field(FieldName::Cluster).is_some() {
            match attrs.cluster {
                Some(size) if size.is_power_of_two() && size > 1 => {
                    self.put(FieldName::Cluster, u64::from(size.trailing_zeros()) - 1)?;
                }
                _ => return self.fail(FieldName::Cluster, "no power of two"),
            }
        }
        if let Some(dst) = data.dsts.first() {
            self.dst(FieldName::Dst, 0)?;
            self.put(FieldName::Mask, dst.mask.0.into())?;
            self.said.dst = Some(dst.class.half);
        }
        if data.opcode == Opcode::Isam {
            // Without it, vectors are not read: `.1d` for images alone.
            self.put(FieldName::OneD, u64::from(self.flag(InstrFlags::VECTOR)))?;
        }
        if self.encoding.prints(FieldName::Src1) {
            self.texture_register(FieldName::Src1, Role::Coordinates)?;
        }
        let mut roles = data.form().srcs.iter().copied();
        let second = roles.find(|role| matches!(role, Role::Offset | Role::Level | Role::Data)).unwrap_or(Role::Offset);
        match self.encoding.field(FieldName::Src2).map(|field| field.kind) {
            Some(Kind::Register(_)) => self.texture_register(FieldName::Src2, second)?,
            Some(Kind::IfSet { bit } | Kind::IfSetOrOffset { bit, .. }) if self.word >> bit & 1 != 0 => {
                self.texture_register(FieldName::Src2, second)?;
            }
            Some(Kind::IfSetOrOffset { offset, .. }) if self.flag(InstrFlags::VECTOR) => {
                let value = self.immediate(FieldName::Src2, data.position(second).unwrap_or(usize::MAX))?;
                if value != 0 {
                    self.set(offset);
                    self.put(FieldName::Src2, value.into())?;
                }
            }
            _ => {}
        }
        let is_other = |kept: &Src| data.dsts.first().map(|dst| &dst.place) != kept.place();
        if data.form().has(Role::Tied) && data.source(Role::Tied).is_none_or(is_other) {
            return self.fail(FieldName::Dst, "other registers than those of the value that stays");
        }
        if by_mode { self.mode(attrs) } else { self.indices(attrs) }
    }

    fn texture_register(&mut self, name: FieldName, role: Role) -> EncodeResult {
        let src = self.register(name, self.data.position(role).unwrap_or(usize::MAX))?;
        self.src_width(name, src.class)
    }

    fn indices(&mut self, attrs: &TextureAttrs) -> EncodeResult {
        if self.encoding.prints(FieldName::Sampler) {
            self.put(FieldName::Sampler, attrs.sampler.unwrap_or(0).into())?;
        }
        if self.encoding.prints(FieldName::Texture) {
            self.put(FieldName::Texture, attrs.texture.unwrap_or(0).into())?;
        }
        Ok(())
    }

    fn mode(&mut self, attrs: &TextureAttrs) -> EncodeResult {
        let has = |flag| self.data.flags.contains(flag);
        let a1 = has(InstrFlags::A1EN);
        let mode = match (has(InstrFlags::S2EN), has(InstrFlags::BINDLESS), has(InstrFlags::NONUNIFORM)) {
            (true, false, false) => 0,
            (true, false, true) => 4,
            (true, true, false) if a1 => 1,
            (true, true, true) if a1 => 3,
            (true, true, true) => 2,
            (true, true, false) => 5,
            (false, ..) if a1 => 7,
            (false, ..) => 6,
        };
        let Some(Kind::TextureMode { base }) = self.encoding.field(FieldName::Mode).map(|field| field.kind) else {
            return self.fail(FieldName::Mode, "it has no such field");
        };
        let Some(Kind::TextureDescriptor { sampler, texture, .. }) =
            self.encoding.field(FieldName::Descriptor).map(|field| field.kind)
        else {
            return self.fail(FieldName::Descriptor, "it has no such field");
        };
        self.put(FieldName::Mode, mode)?;
        if is_bindless(mode) {
            match attrs.base {
                Some(number) if base.holds(number.into()) => self.word |= base.put(number.into()),
                _ => return self.not_known(FieldName::Base, "the number does not fit its bits, or is not known"),
            }
        }
        let index = |has: bool, index: Option<u16>| if has { u64::from(index.unwrap_or(0)) } else { 0 };
        let (sampler, texture) = (index(sampler, attrs.sampler), index(texture, attrs.texture));
        let value = match (mode, self.generation) {
            (0..=5, _) => {
                let src = self.register(FieldName::Descriptor, 0)?;
                if src.class.half == is_bindless(mode) {
                    return self.fail(FieldName::Descriptor, "a register of another width than the mode says");
                }
                return Ok(());
            }
            (7, Generation::A7xx | Generation::A8xx) => texture,
            (7, Generation::A6xx) => sampler,
            _ if sampler > 15 || texture > 15 => {
                return self.fail(FieldName::Descriptor, "the index does not fit four bits");
            }
            _ => sampler | texture << 4,
        };
        self.put(FieldName::Descriptor, value)
    }
}
