//! Reads one instruction's line.

use super::comment::{Remarks, read_instr_comment};
use super::cursor::{Cursor, Parsed, fail};
use super::mnemonic::{Mnemonic, ROUNDS, prints_texture, take_type};
use super::operand::{RawOperand, SsaName, What, ssa_name};
use crate::ir3::legality::{flut_bits, takes_flut_immediates};
use crate::ir3::{
    AliasScope, Attrs, Category, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, RegFile, WriteMask,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A parsed line with unresolved names.
pub(super) struct RawInstr {
    /// The serial number. A release build prints none; then it is that of the result, if the result is an SSA value.
    pub serial: Option<u32>,
    /// True if the line prints the serial number.
    pub is_numbered: bool,
    /// The printed position of the instruction.
    pub position: u32,
    /// The instruction without operands.
    pub data: InstrData,
    pub dsts: SmallVec<[RawOperand; 2]>,
    pub srcs: SmallVec<[RawOperand; 4]>,
    /// Number of the target block.
    pub target: Option<(u32, usize)>,
    pub false_deps: SmallVec<[(u32, usize); 0]>,
    pub link: RawLink,
    /// The array operands that are relative to `a0.x` (one bit per operand, destinations first).
    pub relative: u32,
    /// The indices of the outputs that the sources are.
    outputs: SmallVec<[u16; 4]>,
    /// The printed write mask of a texture instruction, and its position; `None` for a prefetch of descriptors.
    components: Option<(WriteMask, usize)>,
}

/// Repeat group, by serial number and its position.
pub(super) enum RawLink {
    None,
    First,
    After(u32, usize),
}

/// A cache of parsed mnemonics, by their text.
pub(super) type Mnemonics = FxHashMap<Box<str>, Mnemonic>;

/// The numbers at the start of an instruction's line: serial number, position, number of uses.
pub(super) struct LineNumbers {
    /// The serial number; `None` in the text of a release build.
    pub serial: Option<u32>,
    pub position: u32,
    /// True if the line has `XXX` in place of the number of uses: the result is unused.
    pub is_unused: bool,
}

impl LineNumbers {
    /// Parses `0007:0012:003:`, or `0012:003:` in the text of a release build.
    pub(super) fn parse(cursor: &mut Cursor) -> Parsed<Self> {
        let first: u32 = cursor.number("an instruction's serial number")?;
        cursor.expect(":")?;
        let is_number = |cursor: &Cursor| cursor.peek().is_some_and(|c| c.is_ascii_digit());
        let mut numbers = Self { serial: None, position: first, is_unused: cursor.eat("XXX") };
        if !numbers.is_unused {
            let second = cursor.number("an instruction's position")?;
            let mut ahead = cursor.clone();
            if ahead.eat(":") && (is_number(&ahead) || ahead.rest().starts_with("XXX")) {
                if first == 0 {
                    return fail(0, "a serial number above 0");
                }
                *cursor = ahead;
                numbers = Self { serial: Some(first), position: second, is_unused: cursor.eat("XXX") };
                if !numbers.is_unused {
                    cursor.number::<u32>("a number of uses, or XXX")?;
                }
            }
        }
        cursor.expect(":")?;
        Ok(numbers)
    }

    /// The serial number at the start of a line.
    pub(super) fn serial_of(line: &str) -> Parsed<Option<u32>> {
        Ok(Self::parse(&mut Cursor::new(line))?.serial)
    }
}

impl RawInstr {
    pub(super) fn parse(line: &str, mnemonics: &mut Mnemonics) -> Parsed<Self> {
        let mut cursor = Cursor::new(line);
        let cursor = &mut cursor;
        let LineNumbers { serial, position, is_unused } = LineNumbers::parse(cursor)?;
        let mut flags = InstrFlags::empty();
        flags.set(InstrFlags::UNUSED, is_unused);
        cursor.skip_spaces();
        let (mut repeat, mut nop) = (0, 0);
        while cursor.peek() == Some(b'(') && !cursor.rest().starts_with("(null)") {
            if cursor.eat("(rpt") {
                repeat = cursor.number("a number of repetitions")?;
                cursor.expect(")")?;
            } else if cursor.eat("(nop") {
                nop = cursor.number("a number of nops")?;
                cursor.expect(")")?;
            } else if !["(needs_helpers)", "(eolm)", "(eogm)"].iter().any(|mark| cursor.eat(mark)) {
                // Those are facts for the compiler, and change no result.
                flags |= instr_flag(cursor)?;
            }
        }
        let at = cursor.pos();
        let name = cursor.until(&[' ', ',']);
        let mnemonic = match mnemonics.get(name) {
            Some(known) => known,
            None => {
                let Some(mnemonic) = Mnemonic::parse(name) else { return fail(at, "an opcode") };
                mnemonics.entry(name.into()).or_insert(mnemonic)
            }
        };
        let mut data = InstrData::new(mnemonic.opcode);
        data.flags = flags | mnemonic.flags;
        data.attrs = mnemonic.attrs.clone();
        (data.repeat, data.nop) = (repeat, nop);
        let mut raw = Self {
            serial,
            is_numbered: serial.is_some(),
            position,
            data,
            dsts: SmallVec::new(),
            srcs: SmallVec::new(),
            target: None,
            false_deps: SmallVec::new(),
            link: RawLink::None,
            relative: 0,
            outputs: SmallVec::new(),
            components: None,
        };
        if prints_texture(raw.data.opcode) {
            raw.texture_type(cursor)?;
        } else if let Attrs::Move { round, .. } = &mut raw.data.attrs {
            cursor.skip_spaces();
            if let Some(&(known, _)) = ROUNDS.iter().find(|(_, name)| cursor.eat(name)) {
                *round = known;
            }
        }
        let mut operands: SmallVec<[RawOperand; 6]> = SmallVec::new();
        let mut remarks = Remarks::default();
        let mut is_in_group = false;
        loop {
            cursor.skip_spaces();
            if cursor.at_end() {
                break;
            }
            if cursor.eat("//") {
                cursor.skip_spaces();
                if cursor.eat("{") {
                    remarks = read_instr_comment(cursor, &mut raw.data)?;
                }
                break;
            }
            let comma = cursor.eat(",");
            cursor.skip_spaces();
            if raw.keyword(cursor)? {
                continue;
            }
            if !comma && !operands.is_empty() {
                return fail(cursor.pos(), "`,`");
            }
            if raw.alias_register(cursor)? {
                continue;
            }
            let starts = cursor.eat("@{");
            if starts && is_in_group {
                return fail(cursor.pos(), "`}` before another group");
            }
            is_in_group |= starts;
            let mut operand = RawOperand::parse(cursor, raw.data.opcode)?;
            operand.flags.set(OperandFlags::ALIAS, is_in_group);
            operand.flags.set(OperandFlags::FIRST_ALIAS, starts);
            is_in_group &= !cursor.eat("}");
            // A vector of consecutive registers is one, whatever its text.
            if starts && !is_in_group && operand.is_register() {
                operand.flags -= OperandFlags::ALIAS | OperandFlags::FIRST_ALIAS;
            }
            operands.push(operand);
            raw.output_index(cursor, operands.len())?;
        }
        if is_in_group {
            return fail(line.len(), "`}`");
        }
        raw.place_operands(operands, line.len(), &remarks)?;
        Ok(raw)
    }

    /// The register of an alias, before its source: `@hr40.x` or `rt0.w`.
    fn alias_register(&mut self, cursor: &mut Cursor) -> Parsed<bool> {
        let Attrs::Alias { scope, register, .. } = &mut self.data.attrs else { return Ok(false) };
        let is_output = *scope == AliasScope::RenderTarget;
        if !cursor.eat(if is_output { "rt" } else { "@" }) {
            return Ok(false);
        }
        if !is_output {
            cursor.eat("h");
            cursor.expect("r")?;
        }
        let at = cursor.pos();
        let number: u16 = cursor.number("a register number")?;
        if number >= if is_output { 8 } else { 48 } {
            return fail(at, "the number of a register, or of a render target");
        }
        cursor.expect(".")?;
        *register = PhysReg::new(number, cursor.component()?);
        Ok(true)
    }

    /// ` (f32)(xyz)`: the result's type and components.
    fn texture_type(&mut self, cursor: &mut Cursor) -> Parsed<()> {
        let mut ahead = cursor.clone();
        ahead.skip_spaces();
        if !ahead.eat("(") {
            return Ok(());
        }
        let Some((ty, rest)) = take_type(ahead.rest()) else { return Ok(()) };
        if !rest.starts_with(")(") {
            return Ok(());
        }
        ahead.until(&[')']);
        ahead.expect(")(")?;
        let at = ahead.pos();
        let components = ahead.until(&[')']);
        let place = |letter: u8| b"xyzw".iter().position(|&known| known == letter);
        let next = |mask: u32, at: Option<usize>| at.map(|at| 1 << at).filter(|&bit| bit > mask).map(|bit| mask | bit);
        let Some(mask) = components.bytes().map(place).try_fold(0, next) else {
            return fail(at, "components of `xyzw`, in this order");
        };
        self.components = Some((WriteMask(mask), at));
        ahead.expect(")")?;
        if let Attrs::Texture(texture) = &mut self.data.attrs {
            texture.ty = Some(ty);
        }
        *cursor = ahead;
        Ok(())
    }

    /// Parses a keyword that can occur between and after operands.
    fn keyword(&mut self, cursor: &mut Cursor) -> Parsed<bool> {
        let at = cursor.pos();
        match &mut self.data.attrs {
            Attrs::Texture(texture) => {
                if cursor.eat("s#") {
                    texture.sampler = Some(cursor.number("a sampler's number")?);
                    return Ok(true);
                }
                if cursor.eat("t#") {
                    texture.texture = Some(cursor.number("a texture's number")?);
                    return Ok(true);
                }
                if self.data.opcode == Opcode::TexPrefetch {
                    let field = if cursor.eat("tex=") {
                        &mut texture.texture
                    } else if cursor.eat("samp=") {
                        &mut texture.sampler
                    } else if cursor.eat("input_offset=") {
                        &mut texture.input_offset
                    } else {
                        return self.common_keyword(cursor);
                    };
                    *field = Some(cursor.number("a number")?);
                    return Ok(true);
                }
            }
            Attrs::Memory(memory) if self.data.opcode == Opcode::SpillMacro && cursor.eat("dst_offset=") => {
                memory.offset = cursor.signed("an offset")?;
                return Ok(true);
            }
            attrs if self.data.opcode == Opcode::PushConstsLoadMacro && cursor.eat("dst_offset=") => {
                let dst = cursor.number("an offset")?;
                cursor.expect(", src_offset = ")?;
                let src = cursor.number("an offset")?;
                cursor.expect(", src_size = ")?;
                *attrs = Attrs::PushConsts { dst, src, size: cursor.number("a size")? };
                return Ok(true);
            }
            attrs if self.data.opcode == Opcode::Split && cursor.eat("off=") => {
                *attrs = Attrs::Split { offset: cursor.number("a component")? };
                return Ok(true);
            }
            _ if self.data.opcode.category() == Category::Flow && cursor.eat("target=block") => {
                self.target = Some((cursor.number("a block's number")?, at));
                return Ok(true);
            }
            _ => {}
        }
        self.common_keyword(cursor)
    }

    fn common_keyword(&mut self, cursor: &mut Cursor) -> Parsed<bool> {
        if cursor.eat("false-deps:") {
            while !cursor.at_end() {
                let at = cursor.pos();
                if !cursor.eat("ssa_") {
                    break;
                }
                let SsaName { serial, .. } = ssa_name(cursor)?;
                self.false_deps.push((serial, at));
                if !cursor.rest().starts_with(", ssa_") {
                    break;
                }
                cursor.eat(", ");
            }
            return Ok(true);
        }
        if cursor.eat("rpt: ") {
            let at = cursor.pos();
            self.link = if cursor.eat("first") {
                RawLink::First
            } else {
                RawLink::After(cursor.number("`first` or a serial number")?, at)
            };
            return Ok(true);
        }
        Ok(false)
    }

    /// ` (3)` after a source of `end`: the index of the output.
    fn output_index(&mut self, cursor: &mut Cursor, operands: usize) -> Parsed<()> {
        if matches!(self.data.attrs, Attrs::Outputs(_)) && cursor.eat(" (") {
            if self.outputs.len() + 1 != operands {
                return fail(cursor.pos() - 2, "the number of an output after every source or none");
            }
            self.outputs.push(cursor.number("an output's number")?);
            cursor.expect(")")?;
        }
        Ok(())
    }

    /// Separates destinations from sources, and computes the properties that depend on the whole line.
    fn place_operands(&mut self, mut operands: SmallVec<[RawOperand; 6]>, end: usize, remarks: &Remarks) -> Parsed<()> {
        let opcode = self.data.opcode;
        if let Attrs::Outputs(outputs) = &mut self.data.attrs {
            *outputs = std::mem::take(&mut self.outputs).into_boxed_slice();
        }
        let Some(mut dsts) = destinations(opcode, operands.len()) else {
            return fail(end, format!("as many operands as {opcode} has"));
        };
        let own = self.serial;
        let foreign = |operand: &RawOperand| matches!(operand.what, What::Value(name, _) if own.is_some_and(|serial| name.serial != serial));
        if self.components.is_some_and(|(mask, _)| mask.0 == 0)
            || prints_texture(opcode) && operands.first().is_some_and(foreign)
        {
            dsts = 0;
        }
        // The same holds for a sample of one operand; Mesa prints the components that it would write.
        if opcode == Opcode::Sam && operands.len() == 1 {
            dsts = 0;
        }
        if dsts > operands.len() {
            return fail(end, "a destination");
        }
        if takes_flut_immediates(opcode) && !remarks.raw {
            for operand in &mut operands {
                if let What::Immediate(bits) = &mut operand.what {
                    *bits = flut_bits(*bits, operand.class.half).unwrap_or(*bits);
                }
            }
        }
        // Mesa prints no number of an array for the results of parallel copies: they are of the array that is copied.
        if opcode == Opcode::ParallelCopy {
            let (results, copied) = operands.split_at_mut(dsts);
            for (result, copied) in results.iter_mut().zip(copied) {
                if let (What::Array(_, own), What::Array(_, other)) = (&mut result.what, &copied.what)
                    && own.id == 0
                {
                    own.id = other.id;
                }
            }
        }
        for (i, operand) in operands.into_iter().enumerate() {
            if i >= dsts {
                self.srcs.push(operand);
                continue;
            }
            let register =
                matches!(operand.what, What::Value(..) | What::Array(..) | What::Reg(_) | What::Relative { .. });
            if !register || !operand.mods.is_empty() {
                return fail(operand.at, "a register to write");
            }
            self.data.flags.set(InstrFlags::SAT, operand.is_clamped || self.data.flags.contains(InstrFlags::SAT));
            // A prefetch of a descriptor has no result, and needs none.
            if !(operand.is_dummy && matches!(opcode, Opcode::Sam | Opcode::Resinfo | Opcode::Ldc)) {
                self.dsts.push(operand);
            }
        }
        // The destination repeats the components.
        if let (Some((said, at)), Some(dst)) = (self.components, self.dsts.first())
            && said != dst.mask
        {
            return fail(at, format!("the components of the destination, whose mask is {:#x}", dst.mask.0));
        }
        self.serial = self.serial.or_else(|| self.dsts.iter().find_map(RawOperand::serial));
        let operands = self.dsts.iter().chain(&self.srcs);
        self.relative = remarks.relative.unwrap_or_else(|| {
            relative_arrays(
                self.srcs.iter().any(|src| src.class.file == RegFile::Address),
                operands.clone().any(|op| matches!(op.what, What::Relative { .. } | What::ConstRelative(_))),
                operands.map(|op| matches!(op.what, What::Array(..))),
            )
        });
        Ok(())
    }
}

/// The rule for array accesses, whose text does not print if they are relative: they are if `a0.x` is a source, unless
/// another operand is relative to it.
pub(super) fn relative_arrays(address: bool, other: bool, arrays: impl Iterator<Item = bool>) -> u32 {
    if !address || other {
        return 0;
    }
    arrays.take(32).enumerate().fold(0, |mask, (i, array)| mask | u32::from(array) << i)
}

/// The number of destinations among `operands` operands.
fn destinations(opcode: Opcode, operands: usize) -> Option<usize> {
    match opcode {
        Opcode::ParallelCopy => operands.is_multiple_of(2).then_some(operands / 2),
        // Prefetches of descriptors have no destination.
        Opcode::Resinfo if operands == 1 => Some(0),
        Opcode::Ldc if operands == 2 => Some(0),
        // Reduction and inclusive scan, exclusive scan with its source, scratch.
        Opcode::ScanClustersMacro => match operands {
            4 => Some(2),
            5 | 6 => Some(3),
            7 => Some(4),
            _ => None,
        },
        _ => Some(usize::from(opcode.info().dsts)),
    }
}

fn instr_flag(cursor: &mut Cursor) -> Parsed<InstrFlags> {
    for (flag, name) in [
        (InstrFlags::SY, "(sy)"),
        (InstrFlags::SS, "(ss)"),
        (InstrFlags::JP, "(jp)"),
        (InstrFlags::EQ, "(eq)"),
        (InstrFlags::UL, "(ul)"),
        (InstrFlags::SAT, "(sat)"),
    ] {
        if cursor.eat(name) {
            return Ok(flag);
        }
    }
    fail(cursor.pos(), "an instruction's flag or its opcode")
}
