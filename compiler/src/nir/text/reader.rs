//! Reads nir: the header, and the lines that form the tree of control flow.
//!
//! The text is read line by line, in one pass. The builder keeps the open ifs and loops. The reader keeps what the text
//! adds: the labels of the blocks, and the phis; their sources may be defined below and are set at the end.

use rustc_hash::FxHashMap;

use super::ParseError;
use super::cursor::{LineCursor, TextPosition};
use super::former;
use super::instruction::{block_label, divergence};
use super::writer::header_rank;
use crate::log_line::LogLine;
use crate::nir::builder::Builder;
use crate::nir::function::{Block, Def, Instr, InstrData, LoopControl, SelectionControl, Variable};
use crate::nir::shader::{Info, Shader, Stage};

/// The maximum nesting of ifs and loops. Real shaders stay far below; with it, code that visits the tree may recurse.
const MAX_DEPTH: usize = 200;

/// A phi whose sources are not resolved yet.
pub(super) struct PendingPhi {
    pub instr: Instr,
    /// Label and value, each with its position.
    pub srcs: Vec<(u32, TextPosition, u32, TextPosition)>,
}

/// An open construct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Then,
    Else,
    Body,
    Continuing,
}

/// The lines that are neither empty nor comments, with one line of lookahead.
struct Lines<'a> {
    rest: std::str::Split<'a, char>,
    number: u32,
    /// True in a function.
    in_function: bool,
    /// True if a line was of the syntax before 23.2.
    is_former: bool,
}

impl<'a> Lines<'a> {
    /// The next line that is neither empty nor only a comment: its text, its number, and the number of characters
    /// removed before it.
    fn next(&mut self) -> Option<(std::borrow::Cow<'a, str>, u32, u32)> {
        loop {
            let raw = self.rest.next()?;
            self.number += 1;
            let LogLine { text: line, prefix: before } = LogLine::of(raw);
            let line = match former::line(&line).filter(|_| self.in_function) {
                Some(former) => {
                    self.is_former = true;
                    former.into()
                }
                None => line,
            };
            let trimmed = line.trim_start();
            if !trimmed.is_empty() && !trimmed.starts_with("//") {
                return Some((line, self.number, before));
            }
        }
    }

    /// The error for a text that ends too early.
    fn ended(&self, expected: &str) -> ParseError {
        ParseError {
            line: self.number.max(1),
            column: 1,
            found: "the end of the text".into(),
            expected: expected.into(),
            message: String::new(),
        }
    }
}

pub(super) struct Reader<'a> {
    lines: Lines<'a>,
    pub builder: Builder,
    /// Values by their number in the text.
    pub defs: FxHashMap<u32, Def>,
    labels: FxHashMap<u32, Block>,
    pub phis: Vec<PendingPhi>,
    /// Values that have no number in the text.
    pub unnamed: Vec<Def>,
    open: Vec<Open>,
}

pub(super) fn read(text: &str) -> Result<Shader, ParseError> {
    let mut lines = Lines { rest: text.split('\n'), number: 0, in_function: false, is_former: false };
    let shader = header(&mut lines)?;
    let mut reader = Reader {
        lines,
        builder: Builder::with_shader(shader),
        defs: FxHashMap::default(),
        labels: FxHashMap::default(),
        phis: Vec::new(),
        unnamed: Vec::new(),
        open: Vec::new(),
    };
    let read = reader.body();
    if let (Err(error), true) = (&read, reader.lines.is_former) {
        let expected = format!("{}: this is nir of Mesa before 23.2, and none before 23.1 is read", error.expected);
        return Err(ParseError { expected, ..error.clone() });
    }
    read?;
    reader.end()
}

/// Reads the text up to and including `impl main {`.
fn header(lines: &mut Lines<'_>) -> Result<Shader, ParseError> {
    let expected = "`shader: MESA_SHADER_…`";
    let (mut line, mut number, mut before) = lines.next().ok_or_else(|| lines.ended(expected))?;
    if line.starts_with("NIR (") {
        (line, number, before) = lines.next().ok_or_else(|| lines.ended(expected))?;
    }
    let mut cursor = LineCursor::new(&line, number, before);
    cursor.eat("shader:").then_some(()).ok_or_else(|| cursor.error(expected))?;
    let word = cursor.peek_word();
    let stage = Stage::from_name(word).ok_or_else(|| cursor.error("a stage like `MESA_SHADER_COMPUTE`"))?;
    cursor.take(word);
    cursor.end()?;
    let mut shader = Shader::new(stage);
    shader.info.workgroup_size = None;
    let mut declared = false;
    let mut keys: Vec<Box<str>> = Vec::new();
    loop {
        let (line, number, before) = lines.next().ok_or_else(|| lines.ended("`impl`"))?;
        let mut cursor = LineCursor::new(&line, number, before);
        if cursor.eat_word("impl") {
            shader.entry.name = name(&mut cursor)?;
            cursor.expect("{")?;
            cursor.end()?;
            lines.in_function = true;
            // Sorted in the writer's order, so that a written shader compares equal when it is read back.
            shader.info.other.sort_by_key(|(key, _)| header_rank(key));
            return Ok(shader);
        }
        if cursor.eat_word("decl_function") {
            if declared {
                return Err(cursor.error("only one function"));
            }
            declared = true;
            name(&mut cursor)?;
        } else if cursor.rest().starts_with("decl_var ") {
            shader.variables.push(variable(&cursor)?);
        } else {
            let Some((key, text)) = key_and_text(cursor.rest()) else {
                return Err(cursor.error("a line `key: value`, `decl_var`, `decl_function` or `impl`"));
            };
            if keys.iter().any(|other| **other == *key) {
                return Err(ParseError {
                    message: "each line of the header occurs once".into(),
                    ..cursor.error("a line that was not there yet")
                });
            }
            keys.push(key.into());
            cursor.take(key);
            cursor.expect(":")?;
            info_line(&mut shader.info, key, text, &mut cursor)?;
        }
    }
}

/// Reads a header that ends with the text.
pub(super) fn read_header(text: &str) -> Result<(Stage, Info), ParseError> {
    let shader = header(&mut Lines {
        rest: format!("{text}\nimpl main {{").split('\n'),
        number: 0,
        in_function: false,
        is_former: false,
    })?;
    Ok((shader.stage, shader.info))
}

/// The name of a function: anything up to a space.
fn name(cursor: &mut LineCursor<'_>) -> Result<String, ParseError> {
    let name = cursor.peek_while(|c| !c.is_whitespace() && c != '{');
    if name.is_empty() {
        return Err(cursor.error("the name of a function"));
    }
    cursor.take(name);
    Ok(name.into())
}

/// `decl_var shader_out INTERP_MODE_NONE none vec4 color (FRAG_RESULT_DATA0.xyzw, 0, 0)`
fn variable(cursor: &LineCursor<'_>) -> Result<Variable, ParseError> {
    let text = cursor.rest().strip_prefix("decl_var ").unwrap_or_default();
    match text.find("INTERP_MODE_") {
        Some(at) => {
            let mode = &text[..at];
            Ok(Variable { mode: mode.strip_suffix(' ').unwrap_or(mode).into(), text: text[at..].into() })
        }
        None => Err(ParseError {
            message: "a variable has a mode and a way of interpolation".into(),
            ..cursor.error("a declaration with `INTERP_MODE_…`")
        }),
    }
}

/// `key: text`, or `key:`. A key has no colon and does not end with a space, or it would be written as another one that
/// may be there.
fn key_and_text(line: &str) -> Option<(&str, &str)> {
    let (key, text) = line.split_once(':')?;
    let text = if text.is_empty() { text } else { text.strip_prefix(' ')? };
    (!key.is_empty() && !key.ends_with(' ')).then_some((key, text))
}

/// Reads the value of a key in the header; the cursor is after the colon.
fn info_line(info: &mut Info, key: &str, text: &str, cursor: &mut LineCursor<'_>) -> Result<(), ParseError> {
    let field = match key {
        // With a dash until Mesa 23.1.
        "workgroup_size" | "workgroup-size" => {
            let mut size = [0; 3];
            for (index, dimension) in size.iter_mut().enumerate() {
                if index > 0 {
                    cursor.expect(",")?;
                }
                *dimension = cursor.number(u32::MAX.into(), "a size of a workgroup")? as u32;
                cursor.spaces();
            }
            info.workgroup_size = Some(size);
            info.workgroup_size_variable = cursor.eat("(variable)");
            cursor.end()?;
            return Ok(());
        }
        "num_textures" => &mut info.num_textures,
        "num_ubos" => &mut info.num_ubos,
        "num_ssbos" => &mut info.num_ssbos,
        "num_images" => &mut info.num_images,
        "shared_size" | "shared-size" => &mut info.shared_size,
        "subgroup_size" => &mut info.subgroup_size,
        "inputs" => &mut info.inputs,
        "outputs" => &mut info.outputs,
        "uniforms" => &mut info.uniforms,
        "scratch" => &mut info.scratch_size,
        "divergence_analysis_run" => {
            cursor.expect("true")?;
            cursor.end()?;
            info.divergence_analysis_run = true;
            return Ok(());
        }
        _ => {
            info.other.push((key.into(), text.into()));
            return Ok(());
        }
    };
    *field = cursor.number(u32::MAX.into(), "a number")? as u32;
    cursor.end()?;
    Ok(())
}

impl Reader<'_> {
    /// The lines from the first block to the `}` of the function.
    fn body(&mut self) -> Result<(), ParseError> {
        // True if the current list needs a block before any other node.
        let mut need_block = true;
        loop {
            let (line, number, before) = self.lines.next().ok_or_else(|| self.lines.ended("`}`"))?;
            let mut cursor = LineCursor::new(&line, number, before);
            let cursor = &mut cursor;
            let divergent = divergence(cursor);
            if cursor.eat_word("block") {
                if !need_block {
                    // Two adjacent blocks: the second is the end block of the function.
                    return self.end_block(cursor);
                }
                self.label(cursor, divergent)?;
                need_block = false;
            } else if need_block && self.labels.is_empty() && cursor.rest().starts_with("decl_var ") {
                let variable = variable(cursor)?;
                self.builder.shader_mut().entry.variables.push(variable);
            } else if cursor.rest().starts_with("decl_reg ") {
                return Err(
                    cursor.error("no registers of nir, which Mesa prints so until 23.1, and which are not read")
                );
            } else if need_block {
                return Err(cursor.error("`block`"));
            } else if cursor.eat_word("loop") {
                let control = control(cursor, &LoopControl::ALL, LoopControl::name)?.unwrap_or(LoopControl::None);
                self.push(cursor, Open::Body)?;
                self.builder.begin_loop_with(divergent, control);
                need_block = true;
            } else if divergent.is_none() && cursor.eat_word("if") {
                let condition = self.source(cursor)?;
                let control = control(cursor, &SelectionControl::ALL, SelectionControl::name)?;
                let control = control.unwrap_or(SelectionControl::None);
                self.push(cursor, Open::Then)?;
                self.builder.begin_if_with(condition, control);
                need_block = true;
            } else if divergent.is_none() && cursor.peek() == Some(b'}') {
                self.close(cursor)?;
                need_block = true;
            } else {
                self.instruction(cursor, divergent)?;
            }
        }
    }

    fn push(&mut self, cursor: &LineCursor<'_>, open: Open) -> Result<(), ParseError> {
        if self.open.len() == MAX_DEPTH {
            return Err(cursor.error(format!("at most {MAX_DEPTH} ifs and loops in each other")));
        }
        self.open.push(open);
        Ok(())
    }

    /// `}`, `} else {` or `} continue {`
    fn close(&mut self, cursor: &mut LineCursor<'_>) -> Result<(), ParseError> {
        let open = self.open.pop();
        let expected = match open {
            None => return Err(cursor.error("the last block of the function before `}`")),
            Some(Open::Then) => "`} else {`",
            Some(Open::Else | Open::Continuing) => "`}`",
            Some(Open::Body) => "`}` or `} continue {`",
        };
        let at = cursor.clone();
        cursor.expect("}")?;
        match open {
            Some(Open::Then) => {
                if !cursor.eat_word("else") || !cursor.eat("{") {
                    return Err(at.error(expected));
                }
                self.open.push(Open::Else);
                self.builder.begin_else();
            }
            Some(Open::Body) if cursor.eat_word("continue") => {
                cursor.expect("{")?;
                self.open.push(Open::Continuing);
                self.builder.begin_continuing();
            }
            Some(Open::Else) => self.builder.end_if(),
            _ => self.builder.end_loop(),
        }
        if cursor.at_end() { Ok(()) } else { Err(at.error(expected)) }
    }

    /// The label of the block that the builder is in: `b12:`, and a comment.
    fn label(&mut self, cursor: &mut LineCursor<'_>, divergent: Option<bool>) -> Result<(), ParseError> {
        let at = cursor.clone();
        let label = block_label(cursor)?;
        cursor.expect(":")?;
        cursor.end()?;
        let block = self.builder.current_block();
        self.builder.shader_mut().entry.blocks[block].divergent = divergent;
        match self.labels.insert(label, block) {
            Some(_) => Err(at.error("a block that is not there yet")),
            None => Ok(()),
        }
    }

    /// `block b12:` and `}`, with which a function ends.
    fn end_block(&mut self, cursor: &mut LineCursor<'_>) -> Result<(), ParseError> {
        if !self.open.is_empty() {
            return Err(ParseError {
                message: "two blocks in a row, which only the end of a function has".into(),
                ..cursor.error("an instruction, `if`, `loop` or `}`")
            });
        }
        block_label(cursor)?;
        cursor.expect(":")?;
        cursor.end()?;
        let (line, number, before) = self.lines.next().ok_or_else(|| self.lines.ended("`}`"))?;
        let mut cursor = LineCursor::new(&line, number, before);
        cursor.expect("}")?;
        cursor.end()?;
        match self.lines.next() {
            None => Ok(()),
            Some((line, number, before)) => {
                let cursor = LineCursor::new(&line, number, before);
                Err(ParseError {
                    message: "a shader has one function".into(),
                    ..cursor.error("the end of the text after the function")
                })
            }
        }
    }

    /// Sets the sources of the phis and returns the shader.
    fn end(mut self) -> Result<Shader, ParseError> {
        for phi in &self.phis {
            for &(label, label_place, index, value_place) in &phi.srcs {
                let Some(&block) = self.labels.get(&label) else {
                    return Err(missing(label_place, format!("`b{label}`"), "a block of this function"));
                };
                let Some(&value) = self.defs.get(&index) else {
                    return Err(missing(value_place, format!("`%{index}`"), "a value that is defined somewhere"));
                };
                if let InstrData::Phi { srcs, .. } = &mut self.builder.shader_mut().entry.instrs[phi.instr] {
                    srcs.push((block, value));
                }
            }
        }
        // Behind all numbers of the text.
        let first = self.defs.keys().max().map_or(0, |&last| last + 1);
        for (number, &def) in (first..).zip(&self.unnamed) {
            self.builder.shader_mut().entry.defs[def].index = number;
        }
        Ok(self.builder.finish())
    }
}

fn missing(place: TextPosition, found: String, expected: &str) -> ParseError {
    let TextPosition { line, column } = place;
    ParseError { line, column, found, expected: expected.into(), message: String::new() }
}

/// `{`, or a comment that nir_print puts before it: the control of that name. The first of `all` has no name.
fn control<T: Copy>(
    cursor: &mut LineCursor<'_>,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Option<T>, ParseError> {
    cursor.spaces();
    let control = all.iter().skip(1).find(|&&control| {
        let comment = cursor.rest().strip_prefix("// ").and_then(|rest| rest.strip_prefix(name(control)));
        comment.is_some_and(|rest| rest.trim() == "{")
    });
    if control.is_none() {
        cursor.expect("{")?;
        cursor.end()?;
    }
    Ok(control.copied())
}
