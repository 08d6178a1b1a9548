//! The reader: blocks first, then names.
//!
//! Lines are read in order. Names whose definition may be further down (SSA values of loops, blocks, earlier members of
//! a repeat group) are recorded with their position, and resolved after the last line.

mod fragment;

use super::comment::read_program_comment;
use super::cursor::{Cursor, LineError, ParseError, Parsed, fail};
use super::line::{LineNumbers, Mnemonics, RawInstr, RawLink};
use super::operand::{RawArray, RawOperand, SsaName, What};
use crate::ir3::canonical::{scan_result, settle_kills};
use crate::ir3::{
    Array, ArrayAccess, ArrayData, Attrs, Block, BlockData, Dst, Instr, MAX_ARRAYS, Mods, Opcode, Place, Program,
    RegClass, RepeatLink, Src, SrcOperand, Value, ValueData,
};
use crate::log_line::LogLine;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Reads one section of a log: the text of one program.
///
/// # Errors
/// Returns the first syntax error with its position.
pub fn read(text: &str) -> Result<Program, ParseError> {
    read_with_positions(text).map(|read| read.program)
}

/// A program with what its text says beside it.
#[derive(Clone, Debug)]
pub struct ReadProgram {
    /// The program. Without serial numbers in the text, an instruction whose result is no SSA value has the number 0.
    pub program: Program,
    /// The printed position of each instruction.
    pub positions: SecondaryMap<Instr, u32>,
    /// True if the text has serial numbers: that of a release build has not.
    pub has_serials: bool,
}

/// Reads one section of a log, with the positions that it prints.
///
/// # Errors
/// Returns the first syntax error with its position.
pub fn read_with_positions(text: &str) -> Result<ReadProgram, ParseError> {
    let mut reader = Reader::default();
    read_lines(&mut reader, text)?;
    let read = reader.finish(text).map_err(|(index, failure)| {
        let original = text.lines().nth(index).unwrap_or("");
        failure.located(index + 1, original)
    });
    read.map(|(read, _)| read)
}

/// The parts that a fragment leaves out, as they were completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The values that nothing defines, and that are inputs: `ssa_2`.
    pub inputs: Vec<String>,
    /// The blocks that are not in the text, and that are the end of the program.
    pub blocks: Vec<u32>,
    /// True if the lines were in no block.
    pub is_without_block: bool,
    /// True if the last block had no end.
    pub is_without_end: bool,
}

/// Reads a piece of a program: lines without a block, values that nothing defines, edges to blocks that are not there.
///
/// # Errors
/// Returns the first syntax error with its position.
pub fn read_fragment(text: &str) -> Result<(Program, Completion), ParseError> {
    let mut reader = Reader { fragment: Some(Completion::default()), ..Reader::default() };
    read_lines(&mut reader, text)?;
    let (read, completion) = reader.finish(text).map_err(|(index, failure)| {
        let original = text.lines().nth(index).unwrap_or("");
        failure.located(index + 1, original)
    })?;
    Ok((read.program, completion))
}

fn read_lines(reader: &mut Reader, text: &str) -> Result<(), ParseError> {
    for (index, original) in text.lines().enumerate() {
        if let Err(failure) = reader.line(index, &LogLine::of(original).text) {
            return Err(failure.located(index + 1, original));
        }
    }
    Ok(())
}

/// Byte offset in a line, and the line.
#[derive(Clone, Copy)]
struct TextPosition {
    line: u32,
    at: u32,
}

/// A source's SSA name that is not resolved yet.
struct SrcName {
    instr: Instr,
    src: u32,
    name: SsaName,
    site: TextPosition,
}

/// The lists of blocks among a block's lines.
#[derive(Clone, Copy)]
enum EdgeList {
    Predecessors,
    PhysicalPredecessors,
    Successors,
    PhysicalSuccessors,
}

#[derive(Default)]
enum ReaderState {
    /// Between blocks.
    #[default]
    Outside,
    /// In a block.
    Inside(Block),
    /// In the list of a block's kept instructions.
    Keeps(Block),
}

/// A line's indentation, and its text.
fn trim(line: &str) -> (usize, &str) {
    let trimmed = line.trim_start_matches(['\t', ' ']);
    (line.len() - trimmed.len(), trimmed.trim_end())
}

#[derive(Default)]
struct Reader {
    program: Program,
    state: ReaderState,
    mnemonics: Mnemonics,
    by_serial: FxHashMap<u32, Instr>,
    by_block_number: FxHashMap<u32, Block>,
    /// By number. Spilling and copies of Mesa print 0 for every array, so these are told apart by what they are.
    arrays: FxHashMap<(u32, Option<(RegClass, u16)>), Array>,
    src_names: Vec<SrcName>,
    edges: Vec<(Block, EdgeList, u32, TextPosition)>,
    targets: Vec<(Instr, u32, TextPosition)>,
    /// Branches of which the predicate is inverted as it is printed.
    as_printed: Vec<Instr>,
    false_deps: Vec<(Instr, u32, TextPosition)>,
    links: Vec<(Instr, u32, TextPosition)>,
    /// Lines of kept instructions, by serial number.
    keeps: Vec<(Block, Option<u32>, u32)>,
    positions: SecondaryMap<Instr, u32>,
    /// The instructions without a serial number, by their lines.
    unnumbered: Vec<(u32, Instr)>,
    /// True if some line has a serial number.
    has_serials: bool,
    /// The missing parts so far, if the text may be a piece of a program.
    fragment: Option<Completion>,
    /// The block for those that are not in a fragment.
    exit: Option<Block>,
}

/// An error and the index of its line.
type Located<T> = Result<T, (usize, Box<LineError>)>;

impl TextPosition {
    fn fail<T>(self, expected: impl Into<std::borrow::Cow<'static, str>>) -> Located<T> {
        Err((self.line as usize, Box::new(LineError { at: self.at as usize, expected: expected.into() })))
    }
}

impl Reader {
    fn line(&mut self, index: usize, line: &str) -> Parsed<()> {
        let (indent, text) = trim(line);
        let result = self.trimmed_line(index, indent, text);
        result.map_err(|mut failure| {
            failure.at += indent;
            failure
        })
    }

    fn trimmed_line(&mut self, index: usize, indent: usize, text: &str) -> Parsed<()> {
        let mut cursor = Cursor::new(text);
        if text.is_empty() {
            return Ok(());
        }
        if cursor.eat("//") {
            cursor.skip_spaces();
            return if cursor.eat("{") { read_program_comment(&mut cursor, &mut self.program) } else { Ok(()) };
        }
        match self.state {
            ReaderState::Outside => {
                if text.starts_with("AFTER: ") && self.program.layout.is_empty() {
                    return Ok(());
                }
                let Some(fragment) =
                    self.fragment.as_mut().filter(|_| cursor.peek().is_some_and(|c| c.is_ascii_digit()))
                else {
                    return self.block_header(&mut cursor);
                };
                fragment.is_without_block = true;
                let block = self.program.blocks.push(BlockData::default());
                self.program.layout.push(block);
                self.state = ReaderState::Inside(block);
                self.trimmed_line(index, indent, text)
            }
            ReaderState::Inside(block) if cursor.peek().is_some_and(|c| c.is_ascii_digit()) => {
                let instr = self.instr(index, indent, text)?;
                self.program.blocks[block].instrs.push(instr);
                Ok(())
            }
            ReaderState::Inside(block) => self.block_line(block, &mut cursor, index, indent),
            ReaderState::Keeps(block) if cursor.eat("*/") => {
                self.state = ReaderState::Inside(block);
                end_of_line(&cursor)
            }
            ReaderState::Keeps(block) => {
                self.keeps.push((block, LineNumbers::serial_of(text)?, index as u32));
                Ok(())
            }
        }
    }

    fn block_header(&mut self, cursor: &mut Cursor) -> Parsed<()> {
        let reconvergence_point = cursor.eat("(jp)");
        if !cursor.eat("block") {
            return fail(cursor.pos(), "a block");
        }
        let at = cursor.pos();
        let number: u32 = cursor.number("a block's number")?;
        cursor.expect(" {")?;
        end_of_line(cursor)?;
        let block = self.program.blocks.push(BlockData { reconvergence_point, ..BlockData::default() });
        if self.by_block_number.insert(number, block).is_some() {
            return fail(at, "the number of no other block");
        }
        self.program.layout.push(block);
        if number != self.program.layout.len() as u32 {
            self.program.block_names.push((block, number));
        }
        self.state = ReaderState::Inside(block);
        Ok(())
    }

    fn block_line(&mut self, block: Block, cursor: &mut Cursor, index: usize, indent: usize) -> Parsed<()> {
        let kind = if cursor.eat("}") {
            self.state = ReaderState::Outside;
            return end_of_line(cursor);
        } else if cursor.eat("/* keeps:") {
            self.state = ReaderState::Keeps(block);
            return end_of_line(cursor);
        } else if cursor.eat("pred: ") {
            EdgeList::Predecessors
        } else if cursor.eat("physical pred: ") {
            EdgeList::PhysicalPredecessors
        } else if cursor.eat("/* succs: ") {
            EdgeList::Successors
        } else if cursor.eat("/* physical succs: ") {
            EdgeList::PhysicalSuccessors
        } else {
            return fail(cursor.pos(), "an instruction, a list of blocks or `}`");
        };
        let mut count = 0;
        loop {
            let at = cursor.pos();
            if !cursor.eat("block") {
                return fail(at, "a block");
            }
            count += 1;
            if count > 2 && matches!(kind, EdgeList::Successors) {
                return fail(at, "at most two successors");
            }
            let number = cursor.number("a block's number")?;
            self.edges.push((block, kind, number, TextPosition { line: index as u32, at: (at + indent) as u32 }));
            if !cursor.eat(", ") {
                break;
            }
        }
        if matches!(kind, EdgeList::Successors) {
            if cursor.eat(" (div)") {
                self.program.blocks[block].divergent = Some(true);
            } else if cursor.eat(" (con)") {
                self.program.blocks[block].divergent = Some(false);
            }
        }
        if matches!(kind, EdgeList::Successors | EdgeList::PhysicalSuccessors) {
            cursor.expect(" */")?;
        }
        end_of_line(cursor)
    }

    /// Reads an instruction's line into the program, without a block.
    fn instr(&mut self, index: usize, indent: usize, text: &str) -> Parsed<Instr> {
        let site = |at: usize| TextPosition { line: index as u32, at: (at + indent) as u32 };
        let raw = RawInstr::parse(text, &mut self.mnemonics)?;
        let instr = self.program.instrs.push(raw.data);
        if let Some(serial) = raw.serial {
            if self.by_serial.insert(serial, instr).is_some() {
                return fail(0, "the serial number of no other instruction");
            }
            self.program.serials[instr] = serial;
        }
        self.positions[instr] = raw.position;
        if raw.is_numbered {
            self.has_serials = true;
        } else {
            self.unnumbered.push((index as u32, instr));
        }
        let dsts = raw.dsts.len();
        for (i, operand) in raw.dsts.iter().enumerate() {
            let relative = raw.relative >> i.min(31) & 1 != 0;
            let dst = self.dst(instr, i, operand, raw.serial.unwrap_or_default(), relative)?;
            self.program.instrs[instr].dsts.push(dst);
        }
        for (i, operand) in raw.srcs.iter().enumerate() {
            let relative = raw.relative >> (dsts + i).min(31) & 1 != 0;
            let src = self.src(operand, relative)?;
            let is_vote = matches!(self.program.instrs[instr].opcode, Opcode::Ball | Opcode::Bany);
            if is_vote && (operand.as_printed || src.mods.contains(Mods::NOT)) {
                self.as_printed.push(instr);
            }
            if let What::Value(name, _) | What::Array(Some(name), _) = operand.what {
                self.src_names.push(SrcName { instr, src: i as u32, name, site: site(operand.at) });
            }
            self.program.instrs[instr].srcs.push(src);
        }
        if let Some((number, at)) = raw.target {
            self.targets.push((instr, number, site(at)));
        }
        for &(serial, at) in &raw.false_deps {
            self.false_deps.push((instr, serial, site(at)));
        }
        match raw.link {
            RawLink::None => {}
            RawLink::First => self.program.instrs[instr].constrain(|it| it.link = RepeatLink::First),
            RawLink::After(serial, at) => self.links.push((instr, serial, site(at))),
        }
        Ok(instr)
    }

    fn dst(&mut self, instr: Instr, i: usize, operand: &RawOperand, serial: u32, relative: bool) -> Parsed<Dst> {
        let class = operand.class;
        let place = match &operand.what {
            What::Value(name, _) | What::Array(Some(name), _) if name.serial != serial => {
                return fail(operand.at, format!("ssa_{serial}, the instruction's own number"));
            }
            What::Value(name, reg) => {
                let value = self.value(instr, i, operand, *name, None);
                reg.map_or(Place::Value(value), |reg| Place::Assigned(value, reg))
            }
            What::Array(name, raw) => {
                let array = self.array(raw, operand)?;
                let value = name.map(|name| self.value(instr, i, operand, name, Some(array))).into();
                Place::Array(ArrayAccess { array, offset: raw.offset, relative, value, base: raw.base.into() })
            }
            What::Relative { offset, size } => Place::Relative { offset: *offset, size: *size },
            What::Reg(reg) => Place::Reg(*reg),
            _ => return fail(operand.at, "a register to write"),
        };
        Ok(Dst { place, class, mask: operand.mask, flags: operand.flags })
    }

    fn value(&mut self, instr: Instr, i: usize, operand: &RawOperand, name: SsaName, array: Option<Array>) -> Value {
        let components = operand.mask.span() as u16;
        let value =
            self.program.values.push(ValueData { instr, dst: i as u8, class: operand.class, components, array });
        if name.name != 0 {
            self.program.value_names[value] = name.name;
        }
        value
    }

    fn src(&mut self, operand: &RawOperand, relative: bool) -> Parsed<Src> {
        // The value is set when names are resolved.
        let unresolved = Value::from_u32(0);
        let place = |place| SrcOperand::Place(place);
        let what = match &operand.what {
            What::Value(_, None) => place(Place::Value(unresolved)),
            What::Value(_, Some(reg)) => place(Place::Assigned(unresolved, *reg)),
            What::Array(name, raw) => {
                let array = self.array(raw, operand)?;
                let value = name.map(|_| unresolved).into();
                place(Place::Array(ArrayAccess { array, offset: raw.offset, relative, value, base: raw.base.into() }))
            }
            What::Undef => SrcOperand::Undef,
            What::Reg(reg) => place(Place::Reg(*reg)),
            What::Relative { offset, size } => place(Place::Relative { offset: *offset, size: *size }),
            What::Const(word) => SrcOperand::Const(*word),
            What::ConstRelative(offset) => SrcOperand::ConstRelative(*offset),
            What::Immediate(bits) => SrcOperand::Immediate(*bits),
        };
        Ok(Src { operand: what, class: operand.class, mask: operand.mask, mods: operand.mods, flags: operand.flags })
    }

    /// The array of an access. Every access repeats its length and class.
    fn array(&mut self, raw: &RawArray, operand: &RawOperand) -> Parsed<Array> {
        let (program, class) = (&mut self.program, operand.class);
        if program.arrays.len() >= MAX_ARRAYS {
            return fail(operand.at, format!("one of at most {MAX_ARRAYS} arrays"));
        }
        let new = || program.arrays.push(ArrayData { id: raw.id, class, length: raw.size, base: None });
        let unnamed = (raw.id == 0).then_some((class, raw.size));
        let array = *self.arrays.entry((raw.id, unnamed)).or_insert_with(new);
        let data = &self.program.arrays[array];
        if data.length != raw.size {
            return fail(operand.at, format!("an array of {} elements, as elsewhere", data.length));
        }
        if data.class != class {
            return fail(operand.at, "an array in the file and of the width that it has elsewhere");
        }
        Ok(array)
    }

    fn finish(mut self, text: &str) -> Located<(ReadProgram, Completion)> {
        if self.fragment.is_some() {
            self.state = ReaderState::Outside;
        }
        let end = TextPosition { line: text.lines().count().saturating_sub(1) as u32, at: 0 };
        if !matches!(self.state, ReaderState::Outside) || self.program.layout.is_empty() {
            let at = text.lines().last().map_or(0, |line| LogLine::of(line).text.len()) as u32;
            let expected = if self.program.layout.is_empty() { "a block" } else { "`}`" };
            return TextPosition { at, ..end }.fail(expected);
        }
        self.kept_instrs(text)?;
        self.resolve_edges()?;
        self.resolve_instrs()?;
        if self.fragment.is_some() {
            self.add_inputs();
        }
        for name in std::mem::take(&mut self.src_names) {
            self.resolve_name(&name)?;
        }
        self.invert_votes();
        if self.fragment.is_some() {
            self.add_end();
        }
        self.program.instrs.values_mut().for_each(|data| settle_kills(&mut data.srcs));
        let Self { program, positions, has_serials, fragment, .. } = self;
        Ok((ReadProgram { program, positions, has_serials }, fragment.unwrap_or_default()))
    }

    /// Kept instructions are usually in their blocks; a removed one is read from its line here.
    fn kept_instrs(&mut self, text: &str) -> Located<()> {
        let keeps = std::mem::take(&mut self.keeps);
        if keeps.is_empty() {
            return Ok(());
        }
        let lines: Vec<&str> = text.lines().collect();
        let line = |index: u32| LogLine::of(lines.get(index as usize).copied().unwrap_or_default());
        // Without serial numbers the same line is the same instruction; equal ones are in the order of the code.
        let mut by_line: FxHashMap<String, VecDeque<Instr>> = FxHashMap::default();
        for &(index, instr) in &self.unnumbered {
            by_line.entry(trim(&line(index).text).1.to_owned()).or_default().push_back(instr);
        }
        for (block, serial, index) in keeps {
            let line = line(index);
            let (indent, bare) = trim(&line.text);
            let known = match serial {
                Some(serial) => self.by_serial.get(&serial).copied(),
                None => by_line.get_mut(bare).and_then(VecDeque::pop_front),
            };
            let instr = match known {
                Some(instr) => instr,
                None => self.instr(index as usize, indent, bare).map_err(|mut failure| {
                    failure.at += indent;
                    (index as usize, failure)
                })?,
            };
            self.program.blocks[block].keeps.push(instr);
        }
        Ok(())
    }

    fn resolve_edges(&mut self) -> Located<()> {
        for (block, kind, number, site) in std::mem::take(&mut self.edges) {
            let is_source = matches!(kind, EdgeList::Predecessors | EdgeList::PhysicalPredecessors);
            let other = match self.by_block_number.get(&number) {
                Some(&other) => other,
                None if is_source && self.fragment.is_some() => continue,
                None => match self.exit(number) {
                    Some(exit) => exit,
                    None => return site.fail("a block that there is"),
                },
            };
            let data = &mut self.program.blocks[block];
            match kind {
                EdgeList::Predecessors => data.predecessors.push(other),
                EdgeList::PhysicalPredecessors => data.physical_predecessors.push(other),
                EdgeList::PhysicalSuccessors => data.physical_successors.push(other),
                EdgeList::Successors => match data.successors.iter_mut().find(|slot| slot.is_none()) {
                    Some(slot) => *slot = Some(other),
                    None => return site.fail("at most two successors"),
                },
            }
        }
        for (instr, number, site) in std::mem::take(&mut self.targets) {
            let known = self.by_block_number.get(&number).copied();
            let Some(target) = known.or_else(|| self.exit(number)) else {
                return site.fail("a block that there is");
            };
            self.program.instrs[instr].attrs = Attrs::Branch { target: Some(target) };
        }
        Ok(())
    }

    fn resolve_instrs(&mut self) -> Located<()> {
        for list in self.false_deps.chunk_by(|(instr, ..), (next, ..)| instr == next) {
            let mut deps = Vec::with_capacity(list.len());
            for &(_, serial, site) in list {
                match self.by_serial.get(&serial) {
                    Some(&dep) => deps.push(dep),
                    // It may be one whose serial number is not printed. The order that it demands means nothing for
                    // the program.
                    None if !self.has_serials || self.fragment.is_some() => {}
                    None => return site.fail("an instruction that there is"),
                }
            }
            self.program.instrs[list[0].0].constrain(|it| it.false_deps = deps);
        }
        for &(instr, serial, site) in &self.links {
            let Some(&previous) = self.by_serial.get(&serial) else {
                if !self.has_serials || self.fragment.is_some() {
                    continue;
                }
                return site.fail("an instruction that there is");
            };
            self.program.instrs[instr].constrain(|it| it.link = RepeatLink::After(previous));
        }
        Ok(())
    }

    fn resolve_name(&mut self, name: &SrcName) -> Located<()> {
        let Some(&def) = self.by_serial.get(&name.name.serial) else {
            return name.site.fail("a value that is defined");
        };
        let src = &self.program.instrs[name.instr].srcs[name.src as usize];
        let value = match self.candidates(def, name.name, src) {
            Ok(value) => value,
            Err(expected) => return name.site.fail(expected),
        };
        let src = &mut self.program.instrs[name.instr].srcs[name.src as usize];
        match &mut src.operand {
            SrcOperand::Place(Place::Value(v) | Place::Assigned(v, _)) => *v = value,
            SrcOperand::Place(Place::Array(access)) => access.value = value.into(),
            _ => {}
        }
        Ok(())
    }

    /// The result of `def` that a name refers to.
    fn candidates(&self, def: Instr, name: SsaName, src: &Src) -> Result<Value, &'static str> {
        let program = &self.program;
        let data = &program.instrs[def];
        let mut values: SmallVec<[(usize, Value); 4]> =
            data.dsts.iter().enumerate().filter_map(|(i, dst)| Some((i, dst.value()?))).collect();
        values.retain(|(_, value)| program.value_names[*value] == name.name);
        if values.len() > 1 {
            values.retain(|(_, value)| program.values[*value].class == src.class);
        }
        if values.len() > 1 && data.opcode == Opcode::ScanClustersMacro {
            // One of the results in general registers is used: the exclusive scan, if there is one.
            let wanted = scan_result(data.srcs.len());
            values.retain(|(i, _)| *i == wanted);
        }
        match values[..] {
            [(_, value)] => Ok(value),
            [] => Err("a value that is defined"),
            _ => Err("a name of one value only"),
        }
    }

    /// In Mesa's texts `ball` and `bany` do not print that they are inverted, but legalization's inverted branch has
    /// the second successor as its target. In ours they do, and `!!` stands where one with that target is not.
    fn invert_votes(&mut self) {
        let Program { blocks, instrs, .. } = &mut self.program;
        for block in blocks.values() {
            let [Some(first), Some(second)] = block.successors else { continue };
            if block.instrs.iter().any(|instr| self.as_printed.contains(instr)) {
                continue;
            }
            for &instr in &block.instrs {
                let data = &mut instrs[instr];
                let target = match data.attrs {
                    Attrs::Branch { target: Some(target) } => target,
                    _ => continue,
                };
                if matches!(data.opcode, Opcode::Ball | Opcode::Bany) && target == second && target != first {
                    data.srcs.iter_mut().for_each(|src| src.mods |= Mods::NOT);
                }
            }
        }
    }
}

fn end_of_line(cursor: &Cursor) -> Parsed<()> {
    if cursor.at_end() || cursor.rest().trim_start().starts_with("//") {
        Ok(())
    } else {
        fail(cursor.pos(), "the end of the line")
    }
}
