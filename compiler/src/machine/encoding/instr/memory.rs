//! Memory.

use super::alu::{TYPES, number_of};
use super::{DecodeError, DecodeResult, Decoder, EncodeResult, Encoder};
use crate::ir3::opcode::{Form, Memory, Role};
use crate::ir3::{AddressSpace, Attrs, InstrFlags, MemoryAttrs, Opcode, ShuffleMode, Src, SrcOperand, Type, WriteMask};
use crate::machine::encoding::field::{Field, FieldName, Kind};
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

/// The dimensions in the word of an access to a buffer.
const fn buffer_dimensions(old_layout: bool) -> u8 {
    if old_layout { BUFFER_DIMENSIONS } else { 1 }
}

/// The mode of a descriptor after immediate, uniform and nonuniform.
const UNKNOWN_MODE: u64 = 3;

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
        let opcode = self.data.opcode;
        opcode.is_atomic() && opcode.info().form.memory != Memory::Space(AddressSpace::Shared)
    }

    fn half(&self) -> bool {
        self.encoding.widths.dst_half(self.word)
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
        let (opcode, encoding) = (self.data.opcode, self.encoding);
        let old_layout = encoding.source(Role::Bytes).is_some();
        let form = opcode.info().form;
        let form = form.old.filter(|_| old_layout).unwrap_or(form);
        if form.memory == Memory::Unknown {
            return self.lacks("operands of it");
        }
        if opcode == Opcode::Resinfo && self.generation >= Generation::A6xx && !encoding.name.ends_with(".b") {
            return self.lacks("descriptors of another generation");
        }
        let ty = if encoding.field(FieldName::Type).is_some() { self.ty() } else { Type::U32 };
        self.fields_without_meaning(form, ty)?;
        let mut attrs = MemoryAttrs { ty: Some(ty), old_layout, ..MemoryAttrs::default() };
        let mut coordinates = 1;
        match form.memory {
            Memory::Space(space) => attrs.space = Some(space),
            Memory::Attribute => coordinates = self.shape(&mut attrs)?,
            Memory::None | Memory::Unknown => {}
        }
        self.handle(&mut attrs);
        if !form.has(Role::Offset) {
            attrs.offset = self.offset(encoding.source(Role::Offset)) as i32;
        }
        if form.has(Role::Shift) {
            attrs.index_unit = Some(if self.generation >= Generation::A7xx { 1 } else { 4 });
        }
        attrs.components = match encoding.source(Role::Count).map(|field| (field.kind, field.bits.get(self.word))) {
            // Always three, whatever the dimensions.
            _ if opcode == Opcode::Resinfo => Some(3),
            _ if opcode.is_atomic() => Some(1),
            Some((Kind::Uint(least), count)) => Some((count + least) as u16),
            _ => None,
        };
        self.operands(form, &attrs, coordinates);
        self.data.flags.set(InstrFlags::UNIFORM, self.get(FieldName::Uniform) != 0);
        self.data.attrs = Attrs::Memory(attrs);
        if opcode == Opcode::Shfl {
            let mode = MODES.iter().find(|(number, _)| *number == self.get(FieldName::Mode));
            let Some(&(_, mode)) = mode else { return self.unknown(FieldName::Mode) };
            self.data.attrs = Attrs::Shuffle { mode, ty };
        }
        Ok(None)
    }

    /// Refuses values of fields that nothing in ir3 stands for, so that two words that ir3 does not distinguish are not
    /// taken for equal.
    fn fields_without_meaning(&mut self, form: &Form, ty: Type) -> Result<(), DecodeError> {
        let opcode = self.data.opcode;
        let is_single = opcode.is_atomic() || opcode == Opcode::Resinfo;
        if let Some(Field { kind: Kind::Uint(least), bits, .. }) = self.encoding.field(FieldName::Size)
            && is_single
            && bits.get(self.word) + least != 1
        {
            return self.lacks("access of several elements");
        }
        let is_shaped = self.get(FieldName::Typed) != 0 || self.get(FieldName::Dimensions) != 0;
        if form.memory != Memory::Attribute && is_shaped {
            return self.lacks("access with dimensions to memory without them");
        }
        if (opcode.is_atomic() || opcode == Opcode::Stc) && matches!(ty, Type::U8 | Type::U8In32) {
            return self.lacks("access of bytes");
        }
        if opcode != Opcode::Shfl && self.get(FieldName::Mode) == UNKNOWN_MODE {
            return self.unknown(FieldName::Mode);
        }
        Ok(())
    }

    /// Adds the result and the sources.
    fn operands(&mut self, form: &Form, attrs: &MemoryAttrs, coordinates: u32) {
        let encoding = self.encoding;
        let is_atomic = self.data.opcode.is_atomic();
        let half = self.half() && !is_atomic;
        let elements = u32::from(attrs.components.unwrap_or(1));
        let words = if attrs.ty == Some(Type::U64) { 2 } else { 1 };
        let operand = if encoding.name.ends_with("cmpxchg") { 2 * words } else { words };
        // The old value, and the data after it, are one vector.
        let tied = words + operand;
        if encoding.field(FieldName::Dst).is_some() {
            let written = match form.has(Role::Tied) {
                true => tied,
                false if is_atomic => words,
                false => elements,
            };
            self.dst(self.get(FieldName::Dst), half, WriteMask::first(written));
        }
        for &role in form.srcs {
            let (half, components) = match role {
                Role::Base => (false, 2),
                Role::Texel => (false, coordinates),
                // Addresses have 64 bits from a5xx on.
                Role::Bytes => (false, if self.generation >= Generation::A5xx { 2 } else { 1 }),
                Role::Data => (half, elements),
                Role::Operand => (false, operand),
                Role::Tied => (false, tied),
                _ => (false, 1),
            };
            match role {
                Role::Count => self.push_immediate(elements.into()),
                Role::To => self.push_address1(),
                Role::Address1 if self.data.flags.contains(InstrFlags::A1EN) => self.push_address1(),
                Role::Address1 => {}
                _ => self.push(encoding.source(role), half, components),
            }
        }
    }

    /// The number in a field of an offset.
    fn offset(&self, field: Option<&Field>) -> i64 {
        match field {
            Some(Field { kind: Kind::Offset, bits, .. }) => bits.get_signed(self.word),
            Some(field) => field.bits.get(self.word) as i64,
            None => 0,
        }
    }

    /// Adds the source in a field, by the bits of its kind: a register, a number, or a word of the constant file.
    fn push(&mut self, field: Option<&Field>, half: bool, components: u32) {
        let number = self.offset(field);
        let kind = field.map(|field| (field.name, field.kind));
        let bit = |at: u8, mask: u64| self.word >> at & mask != 0;
        match kind {
            Some((_, Kind::RegisterOrConst { constant })) if bit(constant, 1) => {
                self.data.srcs.push(Src::constant(number as u16, false));
            }
            Some((name, Kind::RegisterOr { immediate })) if !bit(immediate, 1) => {
                self.push_register(name, false, components);
            }
            Some((name, Kind::RegisterOrMode { mode })) if bit(mode, 3) => self.push_register(name, false, components),
            Some((name, Kind::Register(_) | Kind::GeneralRegister | Kind::RegisterOrConst { .. })) => {
                self.push_register(name, half, components);
            }
            Some((_, Kind::ConstOffset)) => {
                self.data.flags.set(InstrFlags::A1EN, number as u64 & WITH_A1 != 0);
                self.push_immediate(number & 0xff);
            }
            Some((_, Kind::OffsetIf { .. })) => {
                self.data.flags.set(InstrFlags::IMM_OFFSET, number != 0);
                self.push_immediate(number);
            }
            _ => self.push_immediate(number),
        }
    }

    /// The memory and the dimensions: a buffer is untyped. On a4xx atomics of images are, too, and only buffers have
    /// four dimensions.
    fn shape(&self, attrs: &mut MemoryAttrs) -> Result<u32, DecodeError> {
        let dimensions = (self.get(FieldName::Dimensions) + 1) as u8;
        let untyped_image = has_untyped_images(self.generation, self.encoding.name) && dimensions < BUFFER_DIMENSIONS;
        let is_typed = self.get(FieldName::Typed) != 0;
        if is_typed && has_untyped_images(self.generation, self.encoding.name) {
            return self.lacks("typed access");
        }
        let is_image = is_typed || untyped_image;
        attrs.space = Some(if is_image { AddressSpace::Image } else { AddressSpace::Ssbo });
        let is_access_of_buffer = !is_image && self.data.opcode != Opcode::Resinfo;
        if is_access_of_buffer && dimensions != buffer_dimensions(attrs.old_layout) {
            return self.lacks("access to a buffer of so many dimensions");
        }
        let coordinates = if is_access_of_buffer { 1 } else { dimensions };
        attrs.coords = Some(coordinates);
        Ok(coordinates.into())
    }
}

impl Encoder<'_> {
    pub(super) fn memory(&mut self) -> EncodeResult {
        let (data, encoding) = (self.data, self.encoding);
        let form = data.form();
        let attrs = match data.attrs {
            Attrs::Memory(attrs) => attrs,
            Attrs::Shuffle { mode, ty } => {
                let number = MODES.iter().find(|(_, known)| *known == mode).map_or(0, |(number, _)| *number);
                self.put(FieldName::Mode, number)?;
                MemoryAttrs { ty: Some(ty), ..MemoryAttrs::default() }
            }
            _ => return self.not_known(FieldName::Type, "its attributes are not known"),
        };
        if form.memory == Memory::Unknown {
            return self.not_known(FieldName::Src1, "its operands are not known");
        }
        if form.has(Role::Bytes) != encoding.source(Role::Bytes).is_some() {
            return self.fail(FieldName::Src1, "the operands of another generation");
        }
        if encoding.prints(FieldName::Type) {
            match attrs.ty {
                Some(ty) => self.put(FieldName::Type, number_of(ty))?,
                None => return self.not_known(FieldName::Type, "its type is not known"),
            }
        }
        self.handle(&attrs)?;
        if form.memory == Memory::Attribute {
            self.shape(&attrs)?;
        }
        if encoding.field(FieldName::Uniform).is_some() {
            self.put(FieldName::Uniform, u64::from(self.flag(InstrFlags::UNIFORM)))?;
        }
        if encoding.field(FieldName::Dst).is_some() {
            self.dst(FieldName::Dst, 0)?;
        }
        if let Some(index) = data.position(Role::Shift) {
            self.shift(index)?;
        }
        for (role, field) in encoding.sources() {
            match (role, data.position(role)) {
                (Role::Count, index) => self.count(&attrs, index)?,
                (_, Some(index)) => self.operand(role, field, index)?,
                (Role::Offset, None) => self.number_field(field, attrs.offset as u32)?,
                (_, None) => return self.fail(field.name, "no such source"),
            }
        }
        Ok(())
    }

    /// A source in its field.
    fn operand(&mut self, role: Role, field: &Field, index: usize) -> EncodeResult {
        let name = field.name;
        match (field.kind, self.src(index, name)?.operand) {
            (Kind::Register(_), operand) if role == Role::Tied => {
                let is_same = self.data.dsts.first().is_some_and(|dst| operand == SrcOperand::Place(dst.place));
                if is_same { Ok(()) } else { self.fail(name, "other registers than those of its data") }
            }
            (Kind::RegisterOrMode { .. }, SrcOperand::Immediate(value)) => self.put(name, value.into()),
            (Kind::RegisterOrMode { .. }, _) => {
                self.put(FieldName::Mode, if self.flag(InstrFlags::NONUNIFORM) { 2 } else { 1 })?;
                self.register(name, index).map(drop)
            }
            (Kind::RegisterOrConst { constant }, SrcOperand::Const(word)) => {
                self.set(constant);
                self.put(name, word.into())
            }
            (Kind::RegisterOr { .. }, _) => self.register_or(name, index),
            (Kind::Register(_) | Kind::GeneralRegister | Kind::RegisterOrConst { .. }, _) if role == Role::Data => {
                self.data(name, index)
            }
            (Kind::Register(_) | Kind::GeneralRegister | Kind::RegisterOrConst { .. }, _) => {
                self.register(name, index).map(drop)
            }
            _ => self.number_field(field, self.immediate(name, index)?),
        }
    }

    fn number_field(&mut self, field: &Field, value: u32) -> EncodeResult {
        match field.kind {
            Kind::Offset => return self.put_signed(field.name, (value as i32).into()),
            Kind::OffsetIf { bit } if value != 0 => self.set(bit),
            Kind::ConstOffset if value > 0xff => return self.fail(field.name, "the word does not fit eight bits"),
            Kind::ConstOffset if self.flag(InstrFlags::A1EN) => {
                return self.put(field.name, u64::from(value) | WITH_A1);
            }
            _ => {}
        }
        self.put(field.name, value.into())
    }

    /// The index of a7xx has no shift, and a6xx has a form with a shift and one without.
    fn shift(&self, index: usize) -> EncodeResult {
        let name = FieldName::Shift;
        let is_shifted = self.immediate(name, index)? != 0;
        match (self.generation >= Generation::A7xx, self.encoding.field(name).is_some()) {
            (true, _) if is_shifted => self.fail(name, "an index with a shift"),
            (false, has) if has != is_shifted => self.fail(name, "another form for this shift"),
            _ => Ok(()),
        }
    }

    /// The number of elements: a source, or else an attribute.
    fn count(&mut self, attrs: &MemoryAttrs, index: Option<usize>) -> EncodeResult {
        let name = FieldName::Size;
        let count = match index.map(|index| self.immediate(name, index)) {
            _ if self.data.opcode == Opcode::Resinfo || self.data.opcode.is_atomic() => Some(1),
            Some(Ok(count)) => Some(count),
            _ => attrs.components.map(u32::from),
        };
        let least = match self.encoding.field(name).map(|field| field.kind) {
            Some(Kind::Uint(least)) => least,
            _ => 0,
        };
        match count.map(|count| u64::from(count).checked_sub(least)) {
            Some(Some(value)) => self.put(name, value),
            Some(None) => self.fail(name, "no element"),
            None => self.not_known(name, "the number of elements is not known"),
        }
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
            None => self.not_known(FieldName::Base, "the descriptor set is not known"),
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
            None => return self.not_known(FieldName::Typed, "the memory is not known"),
        }
        let is_old_buffer = attrs.space == Some(AddressSpace::Ssbo) && attrs.old_layout;
        let dimensions = if is_old_buffer { buffer_dimensions(true) } else { dimensions };
        self.put(FieldName::Dimensions, u64::from(dimensions) - 1)
    }
}
