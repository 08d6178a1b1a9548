//! Encoding of instructions as 64-bit words, and decoding.
//!
//! Instructions are in the form of [`InstrData`] in [`Code`](crate::machine::Code). Both directions access the fields
//! of the encoding table by name. A word has less information than an instruction: the components that a texture or
//! memory instruction reads follow from its flags, and the kind of its resource (buffer or image) from its dimensions.

mod alias;
mod alu;
mod memory;
mod texture;

use super::NotAnInstruction;
use super::field::{FieldName, Half, Kind};
use super::table::{Encoding, PREFIX_FLAGS, Table, When};
use super::widths::{OtherWidth, Said};
use crate::ir3::{
    Attrs, Category, Dst, InstrData, InstrFlags, Mods, Opcode, OperandFlags, PhysReg, Place, RegClass, RegFile, Src,
    SrcOperand, WriteMask,
};
use crate::target::Generation;
use smallvec::SmallVec;

/// The reason why a word has no [`InstrData`]. It may still have a disassembly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The word is not an instruction.
    #[error(transparent)]
    NotAnInstruction(#[from] NotAnInstruction),
    /// ir3 has no such opcode.
    #[error("`{name}` ({word:016x}): ir3 has no such opcode")]
    NoOpcode {
        /// The word.
        word: u64,
        /// The mnemonic.
        name: &'static str,
    },
    /// ir3 cannot represent an attribute of the word.
    #[error("`{name}` ({word:016x}): ir3 has no {what}")]
    NoAttribute {
        /// The word.
        word: u64,
        /// The mnemonic.
        name: &'static str,
        /// The attribute that ir3 does not have.
        what: &'static str,
    },
}

/// The reason why an instruction has no encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The generation does not have the opcode.
    #[error("`{opcode}`: an a{}xx has no such instruction", .generation.number())]
    NoEncoding {
        /// The opcode.
        opcode: Opcode,
        /// The generation.
        generation: Generation,
    },
    /// An operand or attribute does not fit its field.
    #[error("`{opcode}`: {field}: {what}")]
    Field {
        /// The opcode.
        opcode: Opcode,
        /// The field.
        field: FieldName,
        /// The violated constraint.
        what: &'static str,
    },
    /// An operand or attribute that the field holds is not known: Mesa's texts leave some out.
    #[error("`{opcode}`: {field}: {what}")]
    NotKnown {
        /// The opcode.
        opcode: Opcode,
        /// The field.
        field: FieldName,
        /// A sentence that names the attribute.
        what: &'static str,
    },
}

/// A decoded word: the instruction, and the distance of its branch in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The instruction.
    pub data: InstrData,
    /// The distance of the branch in words; `None` if it is not a branch.
    pub distance: Option<i32>,
}

/// Decodes a word of a generation.
///
/// # Errors
/// If the word is not an instruction of the generation, or ir3 cannot represent it.
pub fn decode(generation: Generation, word: u64) -> Result<Decoded, DecodeError> {
    let Some(encoding) = Table::of(generation).find(word) else {
        return Err(NotAnInstruction::Unknown { word, generation }.into());
    };
    let Some(opcode) = encoding.opcode else {
        return Err(DecodeError::NoOpcode { word, name: encoding.name });
    };
    let mut decoder = Decoder { encoding, word, generation, data: InstrData::new(opcode) };
    if word & encoding.flags != 0 {
        for (name, flag) in PREFIX_FLAGS {
            decoder.data.flags.set(flag, decoder.get(name) != 0);
        }
    }
    let distance = match opcode.category() {
        Category::Flow => decoder.flow()?,
        Category::Move => decoder.move_()?,
        Category::Alu2 | Category::Alu3 | Category::Sfu => decoder.alu()?,
        Category::Texture => decoder.texture()?,
        Category::Memory => decoder.memory()?,
        Category::Barrier => decoder.barrier()?,
        Category::Meta => return Err(DecodeError::NoOpcode { word, name: encoding.name }),
    };
    decoder.address();
    Ok(Decoded { data: decoder.data, distance })
}

/// Encodes an instruction for a generation. `distance` is the distance of a branch in words. Decoding the word gives
/// the same instruction, except for attributes that have no encoding.
///
/// # Errors
/// If the generation does not have the instruction, or an operand or attribute does not fit its field.
pub fn encode(generation: Generation, data: &InstrData, distance: Option<i32>) -> Result<u64, EncodeError> {
    let opcode = if data.opcode == Opcode::Demote { Opcode::Kill } else { data.opcode };
    let mut error = EncodeError::NoEncoding { opcode: data.opcode, generation };
    for encoding in Table::of(generation).of_opcode(opcode) {
        let mut encoder = Encoder {
            encoding,
            word: encoding.template,
            generation,
            data,
            distance,
            said: Said::default(),
            registers: SmallVec::new(),
        };
        if encoder.is_other_form() {
            // The error of the encoding that matches the form of the instruction is the most specific one.
            if matches!(error, EncodeError::NoEncoding { .. }) {
                let what = "another way to find the descriptors";
                error = EncodeError::Field { opcode: data.opcode, field: FieldName::Mode, what };
            }
            continue;
        }
        match encoder.run() {
            Ok(()) if encoding.matches(encoder.word) => return Ok(encoder.word),
            Ok(()) => {}
            Err(this) => error = *this,
        }
    }
    Err(error)
}

struct Decoder {
    encoding: &'static Encoding,
    word: u64,
    generation: Generation,
    data: InstrData,
}

type DecodeResult = Result<Option<i32>, DecodeError>;

impl Decoder {
    fn get(&self, name: FieldName) -> u64 {
        self.encoding.get(name, self.word)
    }

    fn get_signed(&self, name: FieldName) -> i64 {
        self.encoding.field(name).map_or(0, |field| field.bits.get_signed(self.word))
    }

    fn lacks<T>(&self, what: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError::NoAttribute { word: self.word, name: self.encoding.name, what })
    }

    /// A field holds none of its values.
    fn unknown<T>(&self, field: FieldName) -> Result<T, DecodeError> {
        Err(NotAnInstruction::Field { word: self.word, name: self.encoding.name, field }.into())
    }

    fn dst(&mut self, number: u64, half: bool, mask: WriteMask) {
        if is_uniform_predicate(self.data.opcode, self.generation, number) {
            let place = Place::Reg(PhysReg::P0_X.offset(number as u16 & 3));
            let dst = Dst::new(place, RegClass::PREDICATE, mask);
            self.data.dsts.push(Dst { flags: OperandFlags::UNIFORM, ..dst });
            return;
        }
        self.data.dsts.push(Dst::new(Place::Reg(PhysReg(number as u16)), class(number, half), mask));
    }

    fn register(&self, number: u64, half: bool, components: u32) -> Src {
        Src::reg(Place::Reg(PhysReg(number as u16)), class(number, half), WriteMask::first(components))
    }

    fn push_register(&mut self, name: FieldName, half: bool, components: u32) {
        let src = self.register(self.get(name), half, components);
        self.data.srcs.push(src);
    }

    fn push_immediate(&mut self, value: i64) {
        self.data.srcs.push(Src::immediate(value as u32, false));
    }

    fn push_address1(&mut self) {
        self.data.srcs.push(Src::reg(Place::Reg(PhysReg::A1_X), RegClass::ADDRESS, WriteMask::SCALAR));
    }

    /// Adds `a0.x` as a source if an operand is relative to it.
    fn address(&mut self) {
        let relative = |place: &Place| matches!(place, Place::Relative { .. });
        let srcs = self
            .data
            .srcs
            .iter()
            .any(|src| matches!(src.operand, SrcOperand::ConstRelative(_)) || src.place().is_some_and(relative));
        if srcs || self.data.dsts.iter().any(|dst| relative(&dst.place)) {
            self.data.srcs.push(Src::reg(Place::Reg(PhysReg::A0_X), RegClass::ADDRESS, WriteMask::SCALAR));
        }
    }

    fn flow(&mut self) -> DecodeResult {
        let opcode = self.data.opcode;
        self.data.repeat = self.get(FieldName::Repeat) as u8;
        if matches!(opcode, Opcode::Brac) {
            return self.lacks("index of a branch");
        }
        if opcode == Opcode::Getlast && self.get(FieldName::Cluster) != 2 {
            return self.lacks("cluster of another size than 8");
        }
        let predicate = |value: u64| {
            let place = Place::Reg(PhysReg::P0_X.offset((value >> 1) as u16));
            let mods = if value & 1 != 0 { Mods::NOT } else { Mods::empty() };
            Src::reg(place, RegClass::PREDICATE, WriteMask::SCALAR).with_mods(mods)
        };
        for name in [FieldName::Predicate1, FieldName::Predicate2] {
            if self.encoding.field(name).is_some() {
                self.data.srcs.push(predicate(self.get(name)));
            }
        }
        if matches!(opcode, Opcode::Predt | Opcode::Predf) {
            self.data.srcs.push(predicate(0));
        }
        if matches!(opcode, Opcode::End | Opcode::Chmask) {
            self.data.attrs = Attrs::Outputs(Box::default());
        }
        let prints = crate::machine::code::needs_target(opcode);
        Ok(prints.then(|| self.get_signed(FieldName::Target) as i32))
    }

    fn barrier(&mut self) -> DecodeResult {
        if self.data.opcode == Opcode::Alias {
            return self.alias();
        }
        if self.encoding.field(FieldName::Global).is_some() {
            let is = |name| self.get(name) != 0;
            self.data.attrs = Attrs::Fence {
                r: is(FieldName::Read),
                w: is(FieldName::Write),
                g: is(FieldName::Global),
                l: is(FieldName::Local),
            };
        } else if self.encoding.field(FieldName::Type).is_some() && self.get(FieldName::Type) != 1 {
            return self.lacks("other kind of it");
        }
        Ok(None)
    }
}

/// The register number of `up0` as a destination of two-source operations, from a7xx on. In other instructions it is
/// the number of the address registers.
pub(super) const UNIFORM_PREDICATES: u64 = 61;

/// Returns true if a destination is a predicate that the scalar ALU writes.
pub(super) fn is_uniform_predicate(opcode: Opcode, generation: Generation, number: u64) -> bool {
    generation >= Generation::A7xx && opcode.category() == Category::Alu2 && number >> 2 == UNIFORM_PREDICATES
}

/// The class of a register by its number.
fn class(number: u64, half: bool) -> RegClass {
    let file = match number >> 2 {
        61 => return RegClass::ADDRESS,
        62 => return RegClass::PREDICATE,
        48..=55 => RegFile::Shared,
        _ => RegFile::General,
    };
    RegClass { file, half }
}

/// Returns true if the registers of a file are full or half registers.
fn says_width(file: RegFile) -> bool {
    !matches!(file, RegFile::Address | RegFile::Predicate)
}

struct Encoder<'a> {
    encoding: &'static Encoding,
    word: u64,
    generation: Generation,
    data: &'a InstrData,
    distance: Option<i32>,
    said: Said,
    registers: SmallVec<[WrittenRegister; 5]>,
}

/// A register that the word encodes.
struct WrittenRegister {
    field: FieldName,
    number: u64,
    /// The register class of the operand in the instruction.
    class: RegClass,
    /// The width bit that applies to it; `None` if the mode of a texture instruction determines the width.
    half: Option<Half>,
}

/// Boxed: the error is rare, and a result without one then fits into a register.
type EncodeResult<T = ()> = Result<T, Box<EncodeError>>;

impl<'a> Encoder<'a> {
    #[cold]
    fn fail<T>(&self, field: FieldName, what: &'static str) -> EncodeResult<T> {
        Err(Box::new(EncodeError::Field { opcode: self.data.opcode, field, what }))
    }

    #[cold]
    fn not_known<T>(&self, field: FieldName, what: &'static str) -> EncodeResult<T> {
        Err(Box::new(EncodeError::NotKnown { opcode: self.data.opcode, field, what }))
    }

    fn put(&mut self, name: FieldName, value: u64) -> EncodeResult {
        match self.encoding.field(name) {
            Some(field) if field.bits.holds(value) => {
                self.word |= field.bits.put(value);
                Ok(())
            }
            Some(_) => self.fail(name, "the number does not fit its bits"),
            None if value == 0 => Ok(()),
            None => self.fail(name, "it has no such field"),
        }
    }

    fn put_signed(&mut self, name: FieldName, value: i64) -> EncodeResult {
        match self.encoding.field(name) {
            Some(field) if field.bits.holds_signed(value) => {
                self.word |= field.bits.put(value as u64);
                Ok(())
            }
            Some(_) => self.fail(name, "the number does not fit its bits"),
            None if value == 0 => Ok(()),
            None => self.fail(name, "it has no such field"),
        }
    }

    fn set(&mut self, bit: u8) {
        self.word |= 1 << bit;
    }

    /// Returns true if the encoding is for another descriptor mode, another generation's `resinfo`, or a move to other
    /// registers or between other types, than the instruction has.
    fn is_other_form(&self) -> bool {
        match self.data.opcode.category() {
            Category::Texture => {
                let mode = self.encoding.field(FieldName::Mode).map(|field| field.kind);
                let by_mode = matches!(mode, Some(Kind::TextureMode { .. }));
                self.data.opcode != Opcode::Tcinv
                    && by_mode != (self.flag(InstrFlags::S2EN) || self.flag(InstrFlags::BINDLESS))
            }
            Category::Move => {
                let is_address = |dst: &Dst| dst.class.file == RegFile::Address;
                self.data.opcode == Opcode::Mov
                    && self.encoding.field(FieldName::Dst).is_none()
                    && !self.data.dsts.first().is_some_and(is_address)
                    || match (self.data.move_types(), self.encoding.when) {
                        (Some((from, to)), When::SameTypes) => from != to,
                        (Some((from, to)), When::OtherTypes) => from == to,
                        _ => false,
                    }
            }
            _ if self.data.opcode == Opcode::Resinfo => {
                self.encoding.name.ends_with(".b") != (self.generation >= Generation::A6xx)
            }
            _ => false,
        }
    }

    fn run(&mut self) -> EncodeResult {
        let data = self.data;
        if !data.flags.is_empty() {
            for (name, _) in PREFIX_FLAGS.into_iter().filter(|&(_, flag)| data.flags.contains(flag)) {
                self.put(name, 1)?;
            }
        }
        let category = data.opcode.category();
        if data.nop > 0 && !matches!(category, Category::Alu2 | Category::Alu3 | Category::Sfu) {
            return self.fail(FieldName::RepeatOrNop, "it has no nops");
        }
        if data.repeat > 0 && matches!(category, Category::Texture | Category::Memory | Category::Barrier) {
            return self.fail(FieldName::Repeat, "it cannot be repeated");
        }
        match category {
            Category::Flow => self.flow()?,
            Category::Move => self.move_()?,
            Category::Alu2 | Category::Alu3 | Category::Sfu => self.alu()?,
            Category::Texture => self.texture()?,
            Category::Memory => self.memory()?,
            Category::Barrier => self.barrier()?,
            Category::Meta => {
                return Err(Box::new(EncodeError::NoEncoding { opcode: data.opcode, generation: self.generation }));
            }
        }
        match self.encoding.widths.set(self.word, self.said, true) {
            Ok(word) => self.word = word,
            Err(OtherWidth::Src) => {
                return self.fail(FieldName::Src1, "a source of another width than the instruction");
            }
            Err(OtherWidth::Dst) => {
                return self.fail(FieldName::Dst, "a destination of another width than the instruction");
            }
        }
        self.classes()
    }

    /// Checks that the widths of the registers are those that the word encodes.
    fn classes(&self) -> EncodeResult {
        for &WrittenRegister { field, number, class: said, half } in &self.registers {
            let half = match half {
                Some(Half::Dst) => self.encoding.widths.dst_half(self.word),
                Some(Half::Src) => self.encoding.widths.src_half(self.word),
                Some(Half::Never) => false,
                None => said.half,
            };
            let is = class(number, half);
            if is.file != said.file {
                return self.fail(field, "a register of another file than its number says");
            }
            if is.half != said.half && says_width(is.file) {
                return self.fail(field, "a register of another width than the field");
            }
        }
        Ok(())
    }

    /// Records the width of the sources.
    fn src_width(&mut self, name: FieldName, class: RegClass) -> EncodeResult {
        if says_width(class.file) && self.said.src.replace(class.half).is_some_and(|half| half != class.half) {
            return self.fail(name, "a source of another width than the one before");
        }
        Ok(())
    }

    fn src(&self, index: usize, field: FieldName) -> EncodeResult<&'a Src> {
        match self.data.srcs.get(index) {
            Some(src) => Ok(src),
            None => self.fail(field, "no such source"),
        }
    }

    /// The number of a register that is addressed directly.
    fn number(&mut self, place: &Place, class: RegClass, field: FieldName) -> EncodeResult<u64> {
        match place {
            Place::Reg(reg) if reg.0 < 256 => {
                let half = match self.encoding.field(field).map(|field| field.kind) {
                    Some(Kind::Register(half)) => Some(half),
                    Some(Kind::MoveDst { .. }) => Some(Half::Dst),
                    Some(
                        Kind::MoveSrc { .. } | Kind::Source { .. } | Kind::Source3 { .. } | Kind::SourceMiddle { .. },
                    ) => Some(Half::Src),
                    Some(Kind::RegisterOr { .. } | Kind::RegisterOrMode { .. }) => Some(Half::Never),
                    _ => None,
                };
                self.registers.push(WrittenRegister { field, number: reg.0.into(), class, half });
                Ok(reg.0.into())
            }
            Place::Reg(_) => self.fail(field, "a register number above r63.w"),
            _ => self.fail(field, "no register"),
        }
    }

    fn register(&mut self, name: FieldName, index: usize) -> EncodeResult<&'a Src> {
        let src = self.src(index, name)?;
        match src.place() {
            Some(_) if !says_width(src.class.file) => self.fail(name, "a predicate or an address register"),
            Some(_) if !src.mods.is_empty() => self.fail(name, "a modifier that it cannot have"),
            Some(place) => {
                let number = self.number(place, src.class, name)?;
                self.put(name, number)?;
                Ok(src)
            }
            None => self.fail(name, "a register is the only operand that it can have"),
        }
    }

    /// A register of the data of a memory instruction: as wide as the type, even if its text prints another width.
    fn data(&mut self, name: FieldName, index: usize) -> EncodeResult {
        self.register(name, index)?;
        self.has_width(name, Half::Src);
        Ok(())
    }

    fn has_width(&mut self, name: FieldName, half: Half) {
        self.registers.iter_mut().filter(|register| register.field == name).for_each(|it| it.half = Some(half));
    }

    fn dst(&mut self, name: FieldName, index: usize) -> EncodeResult<&'a Dst> {
        match self.data.dsts.get(index) {
            Some(dst) if dst.flags.contains(OperandFlags::UNIFORM) => {
                let component = dst.place.reg().map(|reg| u64::from(reg.component()));
                let number = component.map(|component| UNIFORM_PREDICATES << 2 | component);
                let number = number.filter(|&number| is_uniform_predicate(self.data.opcode, self.generation, number));
                let Some(number) = number else { return self.fail(name, "a predicate of the scalar ALU") };
                self.put(name, number)?;
                Ok(dst)
            }
            Some(dst) => {
                let number = self.number(&dst.place, dst.class, name)?;
                if self.data.opcode.category() == Category::Memory && !self.data.opcode.is_atomic() {
                    self.has_width(name, Half::Dst);
                }
                self.put(name, number)?;
                Ok(dst)
            }
            None => self.fail(name, "no such destination"),
        }
    }

    fn immediate(&self, name: FieldName, index: usize) -> EncodeResult<u32> {
        match self.src(index, name)?.operand {
            SrcOperand::Immediate(value) => Ok(value),
            _ => self.fail(name, "an immediate is the only operand that it can have"),
        }
    }

    /// A register, or an immediate if the bit is set.
    fn register_or(&mut self, name: FieldName, index: usize) -> EncodeResult {
        let Some(Kind::RegisterOr { immediate }) = self.encoding.field(name).map(|field| field.kind) else {
            return self.fail(name, "it has no such field");
        };
        if let SrcOperand::Immediate(value) = self.src(index, name)?.operand {
            self.set(immediate);
            return self.put(name, value.into());
        }
        self.register(name, index).map(drop)
    }

    fn flow(&mut self) -> EncodeResult {
        let data = self.data;
        self.put(FieldName::Repeat, data.repeat.into())?;
        let names = [FieldName::Predicate1, FieldName::Predicate2];
        if matches!(data.opcode, Opcode::Predt | Opcode::Predf) {
            let src = self.src(0, FieldName::Predicate1)?;
            if src.place() != Some(&Place::Reg(PhysReg::P0_X)) || !src.mods.is_empty() {
                return self.fail(FieldName::Predicate1, "p0.x is the only predicate that it can have");
            }
        } else {
            for (i, src) in data.srcs.iter().enumerate() {
                let component = match src.place() {
                    Some(Place::Reg(reg)) => u64::from(reg.0).checked_sub(PhysReg::P0_X.0.into()).filter(|&i| i < 4),
                    _ => None,
                };
                let Some(name) = names.get(i) else { return self.fail(FieldName::Predicate2, "too many sources") };
                let Some(component) = component else { return self.fail(*name, "no predicate") };
                self.put(*name, component << 1 | u64::from(src.mods.contains(Mods::NOT)))?;
            }
            let expected = names.iter().filter(|&&name| self.encoding.field(name).is_some()).count();
            if data.srcs.len() != expected {
                return self.fail(names[expected.saturating_sub(1)], "another number of sources");
            }
        }
        if data.opcode == Opcode::Getlast {
            self.put(FieldName::Cluster, 2)?;
        }
        match (self.distance, crate::machine::code::needs_target(data.opcode)) {
            (Some(distance), true) => self.put_signed(FieldName::Target, distance.into()),
            (None, true) => self.fail(FieldName::Target, "a branch without a target"),
            (Some(_), false) => self.fail(FieldName::Target, "it does not branch"),
            (None, false) => Ok(()),
        }
    }

    fn barrier(&mut self) -> EncodeResult {
        match self.data.attrs {
            Attrs::Fence { r, w, g, l } => {
                self.put(FieldName::Read, r.into())?;
                self.put(FieldName::Write, w.into())?;
                self.put(FieldName::Global, g.into())?;
                self.put(FieldName::Local, l.into())
            }
            _ if self.encoding.field(FieldName::Global).is_some() => {
                self.not_known(FieldName::Global, "which memory it orders is not known")
            }
            Attrs::Alias { .. } => self.alias(),
            _ if self.data.opcode == Opcode::Alias => {
                self.not_known(FieldName::Src1, "operands of an alias are not known")
            }
            _ if self.encoding.field(FieldName::Type).is_some() => self.put(FieldName::Type, 1),
            _ => Ok(()),
        }
    }

    fn flag(&self, flag: InstrFlags) -> bool {
        self.data.flags.contains(flag)
    }

    fn has_last(src: &Src) -> u64 {
        src.flags.contains(OperandFlags::LAST).into()
    }
}
