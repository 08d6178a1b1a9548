//! Memory.

use super::alu::{TYPES, number_of};
use super::{DecodeResult, Decoder, EncodeError, EncodeResult, Encoder};
use crate::ir3::{
    AddressSpace, Attrs, InstrFlags, MemoryAttrs, Opcode, RegFile, ShuffleMode, Src, SrcOperand, Type, WriteMask,
};
use crate::machine::encoding::field::{FieldName, Kind};
use crate::target::Generation;

const MODES: [(u64, ShuffleMode); 5] = [
    (1, ShuffleMode::Xor),
    (2, ShuffleMode::Up),
    (3, ShuffleMode::Down),
    (6, ShuffleMode::RotateUp),
    (7, ShuffleMode::RotateDown),
];

/// The bit of `a1.x` in the offset of `stc`.
const WITH_A1: u64 = 1 << 8;

/// The dimensions of a buffer before a6xx; an image has fewer.
const BUFFER_DIMENSIONS: u8 = 4;

/// Returns true for instructions whose images are untyped, as buffers are: atomics of a4xx.
fn has_untyped_images(generation: Generation, name: &str) -> bool {
    generation == Generation::A4xx && name.starts_with("atomic.s.")
}

impl Decoder {
    fn ty(&self) -> Type {
        let number = self.get(FieldName::Type);
        // Atomics have 64 bits in place of 8.
        if number == 6 && self.is_wide_atomic() {
            return Type::U64;
        }
        TYPES[(number & 7) as usize]
    }

    /// Atomics on shared memory have the types of loads.
    fn is_wide_atomic(&self) -> bool {
        ["atomic.b.", "atomic.g.", "atomic.s."].iter().any(|family| self.encoding.name.starts_with(family))
    }

    fn half(&self) -> bool {
        self.encoding.widths.dst_half(self.word)
    }

    /// A register or an immediate, as a bit says.
    fn push_either(&mut self, name: FieldName, components: u32) {
        let Some(field) = self.encoding.field(name) else { return };
        let immediate = match field.kind {
            Kind::RegisterOr { immediate } => self.word >> immediate & 1 != 0,
            Kind::RegisterOrMode { mode } => self.word >> mode & 3 == 0,
            _ => false,
        };
        if immediate { self.push_immediate(self.get(name) as i64) } else { self.push_register(name, false, components) }
    }

    /// The base and the mode of a descriptor of a6xx.
    fn handle(&mut self, attrs: &mut MemoryAttrs) {
        if let Some(field) = self.encoding.field(FieldName::Base)
            && self.encoding.prints(FieldName::Base)
            && let Kind::Base { bindless } = field.kind
        {
            if self.word >> bindless & 1 != 0 {
                self.data.flags |= InstrFlags::BINDLESS;
                attrs.base = Some(field.bits.get(self.word) as u8);
            }
            self.data.flags.set(InstrFlags::NONUNIFORM, self.get(FieldName::Mode) == 2);
        }
    }

    pub(super) fn memory(&mut self) -> DecodeResult {
        use Opcode as O;
        let opcode = self.data.opcode;
        let size = (self.get(FieldName::Size) + self.least(FieldName::Size)) as u16;
        let mut attrs = MemoryAttrs { ty: Some(self.ty()), components: Some(size), ..MemoryAttrs::default() };
        let half = self.half();
        let loaded = WriteMask::first(size.into());
        let dst = self.get(FieldName::Dst);
        let offset = self.get_signed(FieldName::Offset);
        let unsigned = self.get(FieldName::Offset) as i64;
        self.handle(&mut attrs);
        match opcode {
            O::Ldg | O::LdgA => {
                attrs.space = Some(AddressSpace::Global);
                self.dst(dst, half, loaded);
                self.global_address();
                match opcode {
                    O::Ldg => self.push_immediate(offset),
                    _ => self.index(&mut attrs, unsigned),
                }
                self.push_immediate(size.into());
            }
            O::Stg | O::StgA => {
                attrs.space = Some(AddressSpace::Global);
                self.global_address();
                match opcode {
                    O::Stg => self.push_immediate(offset),
                    _ => self.index(&mut attrs, unsigned),
                }
                self.push_register(FieldName::Src3, half, size.into());
                self.push_immediate(size.into());
            }
            O::Ldl | O::Ldp | O::Ldlw => {
                attrs.space = Some(if opcode == O::Ldp { AddressSpace::Scratch } else { AddressSpace::Shared });
                self.dst(dst, half, loaded);
                self.push_register(FieldName::Src1, false, 1);
                self.push_immediate(offset);
                self.push_immediate(size.into());
            }
            O::Stl | O::Stp | O::Stlw => {
                attrs.space = Some(if opcode == O::Stp { AddressSpace::Scratch } else { AddressSpace::Shared });
                attrs.offset = offset as i32;
                self.push_register(FieldName::Src1, false, 1);
                self.push_register(FieldName::Src2, half, size.into());
                self.push_immediate(size.into());
            }
            O::Ldlv => {
                self.dst(dst, half, loaded);
                self.push_immediate(unsigned);
                self.push_immediate(size.into());
            }
            O::Stc => {
                attrs.space = Some(AddressSpace::Const);
                let word = self.get(FieldName::ConstWord);
                self.push_immediate((word & 0xff) as i64);
                self.push_register(FieldName::Src1, half, size.into());
                if word & WITH_A1 != 0 {
                    self.data.flags |= InstrFlags::A1EN;
                    self.push_address1();
                }
            }
            O::Stsc => {
                attrs.space = Some(AddressSpace::Const);
                self.push_immediate(self.get(FieldName::ConstWord) as i64);
                self.push_immediate(self.get(FieldName::Src1) as i64);
            }
            O::Ldc => {
                attrs.ty = Some(Type::U32);
                attrs.offset = unsigned as i32;
                self.data.flags.set(InstrFlags::UNIFORM, self.get(FieldName::Uniform) != 0);
                self.dst(dst, false, loaded);
                self.push_either(FieldName::Src2, 1);
                self.push_either(FieldName::Src1, 1);
            }
            O::LdcK => {
                attrs.space = Some(AddressSpace::Ubo);
                attrs.ty = Some(Type::U32);
                self.push_either(FieldName::Src2, 1);
                self.push_either(FieldName::Src1, 1);
                self.push_address1();
            }
            O::Ldib | O::Stib | O::Resinfo if self.encoding.name.ends_with(".b") => self.resource(&mut attrs, loaded),
            O::Resinfo if self.generation >= Generation::A6xx => {
                return self.lacks("descriptors of another generation");
            }
            O::Ldib | O::Ldgb | O::Stib | O::Stgb | O::Resinfo => self.old_resource(&mut attrs, loaded),
            O::Getspid | O::Getwid | O::Getfiberid => {
                self.dst(dst, half, WriteMask::SCALAR);
                attrs.components = None;
            }
            O::Shfl => {
                let mode = MODES.iter().find(|(number, _)| *number == self.get(FieldName::Mode));
                let Some(&(_, mode)) = mode else { return self.unknown(FieldName::Mode) };
                self.dst(dst, half, WriteMask::SCALAR);
                self.push_register(FieldName::Src1, half, 1);
                self.push_either(FieldName::Src2, 1);
                self.data.attrs = Attrs::Shuffle { mode, ty: self.ty() };
                return Ok(None);
            }
            _ if opcode.is_atomic() => self.atomic(&mut attrs),
            _ => return self.lacks("operands of it"),
        }
        self.data.attrs = Attrs::Memory(attrs);
        Ok(None)
    }

    /// The least value of a number.
    fn least(&self, name: FieldName) -> u64 {
        match self.encoding.field(name).map(|field| field.kind) {
            Some(Kind::Uint(least)) => least,
            _ => 0,
        }
    }

    /// A 64-bit address: two registers, or two words of the constant file.
    fn global_address(&mut self) {
        match self.encoding.field(FieldName::Src1).map(|field| field.kind) {
            Some(Kind::RegisterOrConst { constant }) if self.word >> constant & 1 != 0 => {
                let word = self.get(FieldName::Src1) as u16;
                self.data.srcs.push(Src::constant(word, false));
            }
            _ => self.push_register(FieldName::Src1, false, 2),
        }
    }

    /// Index, shift and offset of the `.a` forms.
    fn index(&mut self, attrs: &mut MemoryAttrs, offset: i64) {
        attrs.index_unit = Some(if self.generation >= Generation::A7xx { 1 } else { 4 });
        self.push_register(FieldName::Src2, false, 1);
        self.push_immediate(self.get(FieldName::Shift) as i64);
        self.push_immediate(offset);
    }

    /// The memory and the dimensions: a buffer is untyped. On a4xx atomics of images are, too, and only buffers have four dimensions.
    fn shape(&self, attrs: &mut MemoryAttrs) -> u32 {
        let dimensions = (self.get(FieldName::Dimensions) + 1) as u8;
        let untyped_image = has_untyped_images(self.generation, self.encoding.name) && dimensions < BUFFER_DIMENSIONS;
        let is_image = self.get(FieldName::Typed) != 0 || untyped_image;
        attrs.space = Some(if is_image { AddressSpace::Image } else { AddressSpace::Ssbo });
        attrs.coords = Some(if is_image { dimensions } else { 1 });
        if is_image { dimensions.into() } else { 1 }
    }

    fn resource(&mut self, attrs: &mut MemoryAttrs, elements: WriteMask) {
        let coordinates = self.shape(attrs);
        let half = self.half();
        self.push_either(FieldName::Resource, 1);
        if self.data.opcode == Opcode::Resinfo {
            self.sizes(attrs);
            return;
        }
        self.push_register(FieldName::Src2, false, coordinates);
        self.push_immediate(self.get(FieldName::Offset) as i64);
        self.data.flags.set(InstrFlags::IMM_OFFSET, self.get(FieldName::Offset) != 0);
        if self.data.opcode == Opcode::Stib {
            self.push_register(FieldName::Src1, half, elements.span());
        } else {
            self.dst(self.get(FieldName::Dst), half, elements);
        }
    }

    /// The results of `resinfo`: always three, whatever the dimensions.
    fn sizes(&mut self, attrs: &mut MemoryAttrs) {
        let dimensions = self.get(FieldName::Dimensions) as u8 + 1;
        attrs.components = Some(3);
        attrs.coords = Some(dimensions);
        self.dst(self.get(FieldName::Dst), self.half(), WriteMask::first(3));
    }

    fn old_resource(&mut self, attrs: &mut MemoryAttrs, elements: WriteMask) {
        let coordinates = self.shape(attrs);
        let half = self.half();
        attrs.old_layout = self.data.opcode != Opcode::Resinfo;
        self.push_either(FieldName::Resource, 1);
        match self.data.opcode {
            Opcode::Resinfo => {
                self.sizes(attrs);
            }
            Opcode::Ldib | Opcode::Ldgb => {
                self.dst(self.get(FieldName::Dst), half, elements);
                self.push_either(FieldName::Src1, self.byte_offset_registers());
                self.push_either(FieldName::Src2, coordinates);
            }
            _ => {
                self.push_register(FieldName::Src1, half, elements.span());
                self.push_either(FieldName::Src2, coordinates);
                self.push_either(FieldName::Src3, self.byte_offset_registers());
            }
        }
    }

    /// The registers of an offset in bytes before a6xx: addresses have 64 bits from a5xx on.
    fn byte_offset_registers(&self) -> u32 {
        if self.generation >= Generation::A5xx { 2 } else { 1 }
    }

    fn atomic(&mut self, attrs: &mut MemoryAttrs) {
        let registers = if attrs.ty == Some(Type::U64) { 2 } else { 1 };
        let compares = self.encoding.name.ends_with("cmpxchg");
        let data = registers * (1 + u32::from(compares));
        let dst = self.get(FieldName::Dst);
        attrs.components = Some(1);
        if self.encoding.name.starts_with("atomic.b.") {
            let coordinates = self.shape(attrs);
            let mask = WriteMask::first(registers + data);
            self.dst(dst, false, mask);
            self.push_either(FieldName::Resource, 1);
            self.push_register(FieldName::Src2, false, coordinates);
            // The old value, and the data behind it, are one vector.
            self.push_register(FieldName::Dst, false, registers + data);
        } else if self.encoding.name.starts_with("atomic.s.") {
            let coordinates = self.shape(attrs);
            attrs.old_layout = true;
            self.dst(dst, false, WriteMask::first(registers));
            self.push_either(FieldName::Resource, 1);
            self.push_either(FieldName::Src1, data);
            self.push_either(FieldName::Src2, coordinates);
            self.push_register(FieldName::Src3, false, self.byte_offset_registers());
        } else {
            let global = self.encoding.name.starts_with("atomic.g.");
            attrs.space = Some(if global { AddressSpace::Global } else { AddressSpace::Shared });
            self.dst(dst, false, WriteMask::first(registers));
            self.push_either(FieldName::Src1, if global { 2 } else { 1 });
            self.push_either(FieldName::Src2, data);
        }
    }
}

impl Encoder<'_> {
    pub(super) fn memory(&mut self) -> EncodeResult {
        use Opcode as O;
        let data = self.data;
        if let Attrs::Shuffle { mode, ty } = data.attrs {
            let number = MODES.iter().find(|(_, known)| *known == mode).map_or(0, |(number, _)| *number);
            self.put(FieldName::Mode, number)?;
            self.put(FieldName::Type, number_of(ty))?;
            self.dst(FieldName::Dst, 0)?;
            self.register(FieldName::Src1, 0)?;
            return self.register_or(FieldName::Src2, 1);
        }
        let Some(attrs) = data.memory().copied() else {
            return self.fail(FieldName::Type, "its attributes are not known");
        };
        if self.encoding.prints(FieldName::Type) {
            match attrs.ty {
                Some(ty) => self.put(FieldName::Type, number_of(ty))?,
                None => return self.fail(FieldName::Type, "its type is not known"),
            }
        }
        self.handle(&attrs)?;
        match data.opcode {
            O::Ldg | O::Stg | O::LdgA | O::StgA => self.global(&attrs),
            O::Ldl | O::Ldp | O::Ldlw => {
                self.dst(FieldName::Dst, 0)?;
                self.register(FieldName::Src1, 0)?;
                let offset = self.immediate(FieldName::Offset, 1)? as i32;
                self.put_signed(FieldName::Offset, offset.into())?;
                self.size(FieldName::Size, self.immediate(FieldName::Size, 2)?)
            }
            O::Stl | O::Stp | O::Stlw => {
                self.register(FieldName::Src1, 0)?;
                self.data(FieldName::Src2, 1)?;
                self.put_signed(FieldName::Offset, attrs.offset.into())?;
                self.size(FieldName::Size, self.immediate(FieldName::Size, 2)?)
            }
            O::Ldlv => {
                self.dst(FieldName::Dst, 0)?;
                let number = self.immediate(FieldName::Offset, 0)?;
                self.put(FieldName::Offset, number.into())?;
                self.size(FieldName::Size, self.immediate(FieldName::Size, 1)?)
            }
            O::Stc => {
                let word = u64::from(self.immediate(FieldName::ConstWord, 0)?);
                if word > 0xff {
                    return self.fail(FieldName::ConstWord, "the word does not fit eight bits");
                }
                let a1 = if self.flag(InstrFlags::A1EN) { WITH_A1 } else { 0 };
                self.put(FieldName::ConstWord, word | a1)?;
                self.data(FieldName::Src1, 1)?;
                self.components(&attrs)
            }
            O::Stsc => {
                self.put(FieldName::ConstWord, self.immediate(FieldName::ConstWord, 0)?.into())?;
                self.put(FieldName::Src1, self.immediate(FieldName::Src1, 1)?.into())?;
                self.components(&attrs)
            }
            O::Ldc => {
                self.put(FieldName::Uniform, u64::from(self.flag(InstrFlags::UNIFORM)))?;
                self.put_signed_as_unsigned(FieldName::Offset, attrs.offset)?;
                self.dst(FieldName::Dst, 0)?;
                self.descriptor(FieldName::Src2)?;
                self.register_or(FieldName::Src1, 1)?;
                self.components(&attrs)
            }
            O::LdcK => {
                self.descriptor(FieldName::Src2)?;
                self.register_or(FieldName::Src1, 1)?;
                self.components(&attrs)
            }
            O::Getspid | O::Getwid | O::Getfiberid => self.dst(FieldName::Dst, 0).map(drop),
            O::Resinfo => {
                self.shape(&attrs)?;
                self.dst(FieldName::Dst, 0)?;
                if self.encoding.name.ends_with(".b") {
                    self.put(FieldName::Size, 0)?;
                    self.descriptor(FieldName::Resource)
                } else {
                    self.register_or(FieldName::Resource, 0)
                }
            }
            O::Ldib | O::Stib if self.encoding.name.ends_with(".b") => {
                self.shape(&attrs)?;
                self.components(&attrs)?;
                self.descriptor(FieldName::Resource)?;
                self.register(FieldName::Src2, 1)?;
                let offset = self.immediate(FieldName::Offset, 2)?;
                self.put(FieldName::Offset, offset.into())?;
                if let (true, Some(Kind::OffsetIf { bit })) =
                    (offset != 0, self.encoding.field(FieldName::Offset).map(|field| field.kind))
                {
                    self.set(bit);
                }
                if data.opcode == O::Stib {
                    self.register(FieldName::Src1, 3).map(drop)
                } else {
                    self.dst(FieldName::Dst, 0).map(drop)
                }
            }
            O::Ldib | O::Ldgb => {
                self.shape(&attrs)?;
                self.components(&attrs)?;
                self.dst(FieldName::Dst, 0)?;
                self.register_or(FieldName::Resource, 0)?;
                self.register_or(FieldName::Src1, 1)?;
                self.register_or(FieldName::Src2, 2)
            }
            O::Stib | O::Stgb => {
                self.shape(&attrs)?;
                self.components(&attrs)?;
                self.register_or(FieldName::Resource, 0)?;
                self.data(FieldName::Src1, 1)?;
                self.register_or(FieldName::Src2, 2)?;
                self.register_or(FieldName::Src3, 3)
            }
            opcode if opcode.is_atomic() => self.atomic(&attrs),
            _ => self.fail(FieldName::Src1, "its operands are not known"),
        }
    }

    fn size(&mut self, name: FieldName, size: u32) -> EncodeResult {
        let least = match self.encoding.field(name).map(|field| field.kind) {
            Some(Kind::Uint(least)) => least,
            _ => 0,
        };
        match u64::from(size).checked_sub(least) {
            Some(value) => self.put(name, value),
            None => self.fail(name, "no element"),
        }
    }

    fn components(&mut self, attrs: &MemoryAttrs) -> EncodeResult {
        match attrs.components {
            Some(count) => self.size(FieldName::Size, count.into()),
            None => self.fail(FieldName::Size, "the number of elements is not known"),
        }
    }

    fn put_signed_as_unsigned(&mut self, name: FieldName, value: i32) -> EncodeResult {
        self.put(name, u64::try_from(value).unwrap_or(u64::MAX))
    }

    /// The base of a bindless descriptor of a6xx.
    fn handle(&mut self, attrs: &MemoryAttrs) -> EncodeResult {
        let Some(Kind::Base { bindless }) = self.encoding.field(FieldName::Base).map(|field| field.kind) else {
            return if self.flag(InstrFlags::BINDLESS) {
                self.fail(FieldName::Base, "it has no such field")
            } else {
                Ok(())
            };
        };
        if !self.flag(InstrFlags::BINDLESS) {
            return Ok(());
        }
        self.set(bindless);
        match attrs.base {
            Some(base) => self.put(FieldName::Base, base.into()),
            None => self.fail(FieldName::Base, "the descriptor set is not known"),
        }
    }

    /// The index of a descriptor of a6xx, and with it the mode.
    fn descriptor(&mut self, name: FieldName) -> EncodeResult {
        if let SrcOperand::Immediate(value) = self.src(0, name)?.operand {
            return self.put(name, value.into());
        }
        self.put(FieldName::Mode, if self.flag(InstrFlags::NONUNIFORM) { 2 } else { 1 })?;
        self.register(name, 0).map(drop)
    }

    fn global(&mut self, attrs: &MemoryAttrs) -> EncodeResult {
        let data = self.data;
        let indexed = matches!(data.opcode, Opcode::LdgA | Opcode::StgA);
        self.global_address()?;
        let mut next = 1;
        if indexed {
            self.register(FieldName::Src2, 1)?;
            let (shift, offset) = (self.immediate(FieldName::Shift, 2)?, self.immediate(FieldName::Offset, 3)?);
            if self.generation >= Generation::A7xx {
                if shift != 0 {
                    return self.fail(FieldName::Shift, "an index with a shift");
                }
            } else if self.encoding.field(FieldName::Shift).is_some() == (shift == 0) {
                return self.fail(FieldName::Shift, "another form for this shift");
            }
            self.put(FieldName::Shift, shift.into())?;
            self.put(FieldName::Offset, offset.into())?;
            next = 4;
        } else {
            let offset = self.immediate(FieldName::Offset, 1)? as i32;
            self.put_signed(FieldName::Offset, offset.into())?;
            next += 1;
        }
        if matches!(data.opcode, Opcode::Ldg | Opcode::LdgA) {
            self.dst(FieldName::Dst, 0)?;
        } else {
            self.register(FieldName::Src3, next)?;
            next += 1;
        }
        let size = match self.immediate(FieldName::Size, next) {
            Ok(size) => size,
            Err(_) => attrs.components.unwrap_or(0).into(),
        };
        self.size(FieldName::Size, size)
    }

    fn global_address(&mut self) -> EncodeResult {
        let field = self.encoding.field(FieldName::Src1).map(|field| field.kind);
        match (self.src(0, FieldName::Src1)?.operand, field) {
            (SrcOperand::Const(word), Some(Kind::RegisterOrConst { constant })) => {
                self.set(constant);
                self.put(FieldName::Src1, word.into())
            }
            _ => self.register(FieldName::Src1, 0).map(drop),
        }
    }

    fn shape(&mut self, attrs: &MemoryAttrs) -> EncodeResult {
        let dimensions = attrs.coords.unwrap_or(1);
        if dimensions == 0 {
            return self.fail(FieldName::Dimensions, "no coordinate");
        }
        match attrs.space {
            Some(AddressSpace::Image) if !has_untyped_images(self.generation, self.encoding.name) => {
                self.put(FieldName::Typed, 1)?
            }
            Some(AddressSpace::Image) if dimensions == BUFFER_DIMENSIONS => {
                return self.fail(FieldName::Dimensions, "an untyped image has fewer than four dimensions");
            }
            Some(_) => {}
            None => return self.fail(FieldName::Typed, "the memory is not known"),
        }
        let buffer = attrs.space == Some(AddressSpace::Ssbo) && attrs.old_layout;
        self.put(FieldName::Dimensions, u64::from(if buffer { BUFFER_DIMENSIONS } else { dimensions }) - 1)
    }

    fn atomic(&mut self, attrs: &MemoryAttrs) -> Result<(), EncodeError> {
        let name = self.encoding.name;
        self.dst(FieldName::Dst, 0)?;
        self.put(FieldName::Size, 0)?;
        if name.starts_with("atomic.b.") {
            self.shape(attrs)?;
            self.descriptor(FieldName::Resource)?;
            self.register(FieldName::Src2, 1)?;
            let data = self.src(2, FieldName::Dst)?;
            let same = self.data.dsts.first().is_some_and(|dst| Some(&dst.place) == data.place());
            return if same { Ok(()) } else { self.fail(FieldName::Dst, "other registers than those of its data") };
        }
        if name.starts_with("atomic.s.") {
            self.shape(attrs)?;
            self.register_or(FieldName::Resource, 0)?;
            self.register_or(FieldName::Src1, 1)?;
            self.register_or(FieldName::Src2, 2)?;
            return self.register(FieldName::Src3, 3).map(drop);
        }
        if self.src(0, FieldName::Src1)?.class.file == RegFile::Predicate {
            return self.fail(FieldName::Src1, "no register of an address");
        }
        self.register_or(FieldName::Src1, 0)?;
        self.register_or(FieldName::Src2, 1)
    }
}
