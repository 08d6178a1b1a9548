//! Programs as text, in the syntax of Mesa's `dump_instructions` for vec4.
//!
//! The header is that of nir; the instructions are between `vec4 {` (or `simd8 {`, `simd16 {`) and `}`, one a line,
//! with or without their numbers. Operands of scalar programs have no writemask and no swizzle. As in older dumps, the
//! offset `.0` of a register and the number of channels are optional. `//` begins a comment. Reading a written text
//! gives an equal [`Program`].

use super::instr::CHANNELS;
use super::{
    Cmod, Dst, DstFile, Immediate, Instr, Mask, Message, Mode, Opcode, OpcodeKind, Predicate, Program, RegType, Src,
    SrcFile, Swizzle, validate,
};
use crate::cursor::Cursor;
use crate::nir;
use crate::nir::text::ParseError;
use std::fmt::{self, Write};

/// The mode of the program, if this is the line before its instructions.
pub fn begins(line: &str) -> Option<Mode> {
    Mode::from_name(line.trim().strip_suffix('{')?.trim_end())
}

/// Reads a program.
///
/// # Errors
/// If the text is no program, or one that is not valid: the place, the found and the expected text.
pub fn read(text: &str) -> Result<Program, ParseError> {
    let line_error = |line: usize, found: &str, expected: &str| ParseError {
        line: line as u32 + 1,
        column: 1,
        found: if found.is_empty() { "the end of the text".to_owned() } else { format!("`{found}`") },
        expected: expected.to_owned(),
        message: String::new(),
    };
    let lines: Vec<&str> = text.lines().collect();
    let Some((begin, mode)) = lines.iter().enumerate().find_map(|(at, line)| Some((at, begins(strip(line))?))) else {
        return Err(line_error(lines.len(), "", "`vec4 {`, `simd8 {` or `simd16 {`"));
    };
    let (stage, info) = nir::text::read_header(&lines[..begin].join("\n"))?;
    let mut program = Program { mode, stage, info, instrs: Vec::new() };
    let mut at_line = Vec::new();
    let mut closed = false;
    for (number, line) in lines.iter().enumerate().skip(begin + 1) {
        let content = strip(line).trim_end();
        match content.trim() {
            "" => {}
            found if closed => return Err(line_error(number, found, "the end of the text")),
            "}" => closed = true,
            _ => {
                let mut reader = LineReader { cursor: Cursor::new(content), line: number, mode };
                program.instrs.push(reader.instruction()?);
                at_line.push(number);
            }
        }
    }
    if !closed {
        return Err(line_error(lines.len(), "", "`}`"));
    }
    validate(&program).map_err(|invalid| ParseError {
        message: invalid.rule.clone(),
        ..line_error(at_line[invalid.instr], lines[at_line[invalid.instr]].trim(), "a valid instruction")
    })?;
    Ok(program)
}

fn strip(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

struct LineReader<'a> {
    cursor: Cursor<'a>,
    line: usize,
    mode: Mode,
}

impl LineReader<'_> {
    fn error<T>(&self, expected: &str) -> Result<T, ParseError> {
        let found = self.cursor.peek_while(|c| !c.is_whitespace() && c != ',' && c != ')');
        let found = match (found, self.cursor.at_end()) {
            (_, true) => "the end of the line".to_owned(),
            ("", _) => format!("`{}`", self.cursor.rest().chars().next().unwrap_or_default()),
            (word, _) => format!("`{word}`"),
        };
        Err(ParseError {
            line: self.line as u32 + 1,
            column: self.cursor.before().chars().count() as u32 + 1,
            found,
            expected: expected.to_owned(),
            message: String::new(),
        })
    }

    fn expect(&mut self, text: &str) -> Result<(), ParseError> {
        if self.cursor.eat(text) { Ok(()) } else { self.error(&format!("`{text}`")) }
    }

    fn number(&mut self, what: &str) -> Result<u32, ParseError> {
        let digits = self.cursor.peek_while(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) => {
                self.cursor.take(digits);
                Ok(number)
            }
            Err(_) => self.error(what),
        }
    }

    fn instruction(&mut self) -> Result<Instr, ParseError> {
        self.cursor.skip_spaces();
        let digits = self.cursor.peek_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            self.cursor.take(digits);
            self.expect(":")?;
            self.cursor.skip_spaces();
        }
        let predicate = self.predicate()?;
        let word = self.cursor.peek_while(|c| c.is_ascii_alphanumeric());
        let Some(opcode) = Opcode::from_name(word) else { return self.error("an operation") };
        self.cursor.take(word);
        let exec_size = match self.cursor.eat("(") {
            true => {
                let size = self.number("a number of channels")?;
                self.expect(")")?;
                size.min(255) as u8
            }
            false => self.mode.width(),
        };
        let mut instr = Instr { predicate, exec_size, ..Instr::control(opcode) };
        instr.saturate = self.cursor.eat(".sat");
        if self.cursor.eat(".") {
            let word = self.cursor.peek_while(|c| c.is_ascii_alphabetic());
            let Some(cmod) = Cmod::from_name(word) else { return self.error("a conditional modifier, or `sat`") };
            self.cursor.take(word);
            instr.cmod = Some(cmod);
            if self.cursor.eat(".f") {
                self.flag()?;
            }
        }
        self.cursor.skip_spaces();
        if opcode.kind() != OpcodeKind::Control {
            instr.dst = self.dst()?;
            let is_message = opcode.kind() == OpcodeKind::Message;
            while instr.srcs.len() < opcode.sources() || is_message && self.cursor.peek() == Some(b',') {
                self.expect(",")?;
                self.cursor.skip_spaces();
                instr.srcs.push(self.src()?);
            }
            if is_message {
                instr.message = Some(Box::new(self.message()?));
            }
        }
        self.cursor.skip_spaces();
        if self.cursor.eat("group") {
            instr.group = self.number("the first channel, 0 or 4")?.min(255) as u8;
            self.cursor.skip_spaces();
        }
        if self.cursor.at_end() { Ok(instr) } else { self.error("the end of the line") }
    }

    /// ` | 32x4 @load_ssbo_ir3 (32, 32, 32) (base=0, …)`, to the end of the line.
    fn message(&mut self) -> Result<Message, ParseError> {
        self.cursor.skip_spaces();
        self.expect("|")?;
        self.cursor.skip_spaces();
        let text = self.cursor.rest();
        match Message::read(text.trim_end()) {
            Ok(message) => {
                self.cursor.take(text);
                Ok(message)
            }
            Err(error) => self.error(&error.to_string()),
        }
    }

    /// The number of the flag register after its `f`: only f0.0 exists.
    fn flag(&mut self) -> Result<(), ParseError> {
        if self.cursor.eat("0.0") { Ok(()) } else { self.error("`0.0`, the only flag register that is supported") }
    }

    fn predicate(&mut self) -> Result<Option<(Predicate, bool)>, ParseError> {
        if !self.cursor.eat("(") {
            return Ok(None);
        }
        let inverse = match self.cursor.peek() {
            Some(b'+') => false,
            Some(b'-') => true,
            _ => return self.error("`+f0.0` or `-f0.0`"),
        };
        self.cursor.take("+");
        self.expect("f")?;
        self.flag()?;
        let word = self.cursor.peek_while(|c| c != ')' && !c.is_whitespace());
        let Some(predicate) = Predicate::from_name(word) else {
            return self.error("`.x`, `.y`, `.z`, `.w`, `.any4h`, `.all4h` or `)`");
        };
        self.cursor.take(word);
        self.expect(")")?;
        self.cursor.skip_spaces();
        Ok(Some((predicate, inverse)))
    }

    fn register_type(&mut self) -> Result<RegType, ParseError> {
        self.expect(":")?;
        let word = self.cursor.peek_while(|c| c.is_ascii_alphabetic());
        let Some(ty) = RegType::from_name(word) else { return self.error("a type: `F`, `D` or `UD`") };
        self.cursor.take(word);
        Ok(ty)
    }

    /// The offset `.0` of older dumps.
    fn skip_offset(&mut self) {
        if self.cursor.rest().starts_with(".0") {
            self.cursor.take(".0");
        }
    }

    fn dst(&mut self) -> Result<Dst, ParseError> {
        let word = self.cursor.peek_while(|c| c.is_ascii_alphabetic());
        self.cursor.take(word);
        let file = match word {
            "null" => DstFile::Null,
            "vgrf" => DstFile::Vgrf(self.number("the number of a register")?),
            "o" => DstFile::Output(self.number("the number of an output")?),
            _ => return self.error("a destination: `vgrfN`, `oN` or `null`"),
        };
        self.skip_offset();
        let mut mask = if self.mode.is_scalar() { Mask(1) } else { Mask::ALL };
        if !self.mode.is_scalar() && self.cursor.eat(".") {
            mask = Mask::NONE;
            for (channel, letter) in CHANNELS.iter().enumerate() {
                if self.cursor.eat(&letter.to_string()) {
                    mask |= Mask(1 << channel);
                }
            }
            if mask.is_empty() {
                return self.error("channels of `xyzw`, in this order");
            }
        }
        Ok(Dst { file, mask, ty: self.register_type()? })
    }

    fn src(&mut self) -> Result<Src, ParseError> {
        let rest = self.cursor.rest();
        let unsigned = rest.strip_prefix('-').unwrap_or(rest);
        if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return self.immediate();
        }
        let negate = self.cursor.eat("-");
        let abs = self.cursor.eat("|");
        let word = self.cursor.peek_while(|c| c.is_ascii_alphabetic());
        self.cursor.take(word);
        let file = match word {
            "vgrf" => SrcFile::Vgrf(self.number("the number of a register")?),
            "attr" => SrcFile::Attr(self.number("the number of an attribute")?),
            "u" => SrcFile::Uniform(self.number("the number of a uniform")?),
            "acc" => {
                self.expect("0")?;
                SrcFile::Acc
            }
            _ => return self.error("a source: `vgrfN`, `attrN`, `uN`, `acc0` or a number"),
        };
        self.skip_offset();
        let mut swizzle = [0; 4];
        if !self.mode.is_scalar() {
            self.expect(".")?;
        }
        for channel in swizzle.iter_mut().filter(|_| !self.mode.is_scalar()) {
            let letter = self.cursor.peek().map(char::from);
            let Some(read) = CHANNELS.iter().position(|&other| Some(other) == letter) else {
                return self.error("a swizzle of four channels");
            };
            self.cursor.take("x");
            *channel = read as u8;
        }
        if abs {
            self.expect("|")?;
        }
        let ty = self.register_type()?;
        Ok(Src { file, swizzle: Swizzle(swizzle), ty, abs, negate })
    }

    /// `1.500000F`, `0x7fc00000F`, `-3D`, `7U`
    fn immediate(&mut self) -> Result<Src, ParseError> {
        let word = self.cursor.peek_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
        let hexadecimal =
            |digits: &str| digits.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let read = || {
            let (digits, ty) = match word.strip_suffix("UD").or_else(|| word.strip_suffix('U')) {
                Some(digits) => (digits, RegType::Ud),
                // The last digit of a hexadecimal number is never its type.
                None if word.len() < 2 => return None,
                None => (&word[..word.len() - 1], RegType::from_name(&word[word.len() - 1..])?),
            };
            let bits = match ty {
                RegType::F => match hexadecimal(digits) {
                    Some(bits) => bits,
                    None => digits.parse::<f32>().ok()?.to_bits(),
                },
                RegType::D => digits.parse::<i32>().ok()? as u32,
                RegType::Ud => digits.parse::<u32>().ok()?,
            };
            Some(Src::immediate(bits, ty))
        };
        match read() {
            Some(src) => {
                self.cursor.take(word);
                Ok(src)
            }
            None => self.error("a number with its type: `1.5F`, `-1D`, `1U`"),
        }
    }
}

/// Writes a program.
pub fn write(program: &Program) -> String {
    let mut out = nir::text::write_header(program.stage, &program.info);
    let _ = writeln!(out, "\n{} {{", program.mode);
    let mut depth = 0_usize;
    for (number, instr) in program.instrs.iter().enumerate() {
        if matches!(instr.opcode, Opcode::Else | Opcode::Endif | Opcode::While) {
            depth = depth.saturating_sub(1);
        }
        let printed = Printed { instr, mode: program.mode };
        let _ = writeln!(out, "{number:4}: {:1$}{printed}", "", 2 * depth);
        if matches!(instr.opcode, Opcode::Else | Opcode::If | Opcode::Do) {
            depth += 1;
        }
    }
    out.push_str("}\n");
    out
}

/// An instruction of a program in some mode.
struct Printed<'a> {
    instr: &'a Instr,
    mode: Mode,
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instr, mode } = *self;
        if let Some((predicate, inverse)) = instr.predicate {
            write!(f, "({}f0.0{predicate}) ", if inverse { '-' } else { '+' })?;
        }
        write!(f, "{}({})", instr.opcode, instr.exec_size)?;
        if instr.saturate {
            f.write_str(".sat")?;
        }
        if let Some(cmod) = instr.cmod {
            write!(f, ".{cmod}")?;
            if instr.writes_flag() {
                f.write_str(".f0.0")?;
            }
        }
        if instr.opcode.kind() != OpcodeKind::Control {
            f.write_str(" ")?;
            write_dst(f, &instr.dst, mode)?;
            for src in &instr.srcs {
                f.write_str(", ")?;
                write_src(f, src, mode)?;
            }
        }
        if let Some(message) = &instr.message {
            write!(f, " | {message}")?;
        }
        if instr.exec_size != mode.width() { write!(f, " group{}", instr.group) } else { Ok(()) }
    }
}

fn write_dst(f: &mut fmt::Formatter<'_>, dst: &Dst, mode: Mode) -> fmt::Result {
    match dst.file {
        DstFile::Null => f.write_str("null")?,
        DstFile::Vgrf(number) => write!(f, "vgrf{number}")?,
        DstFile::Output(number) => write!(f, "o{number}")?,
    }
    if !mode.is_scalar() && dst.mask != Mask::ALL {
        write!(f, ".{}", dst.mask)?;
    }
    write!(f, ":{}", dst.ty)
}

fn write_src(f: &mut fmt::Formatter<'_>, src: &Src, mode: Mode) -> fmt::Result {
    if src.negate {
        f.write_str("-")?;
    }
    if src.abs {
        f.write_str("|")?;
    }
    match src.file {
        SrcFile::Vgrf(number) => write!(f, "vgrf{number}")?,
        SrcFile::Attr(number) => write!(f, "attr{number}")?,
        SrcFile::Uniform(number) => write!(f, "u{number}")?,
        SrcFile::Acc => f.write_str("acc0")?,
        SrcFile::Imm(Immediate(bits)) => return write_immediate(f, bits, src.ty),
    }
    if !mode.is_scalar() {
        write!(f, ".{}", src.swizzle)?;
    }
    if src.abs {
        f.write_str("|")?;
    }
    write!(f, ":{}", src.ty)
}

fn write_immediate(f: &mut fmt::Formatter<'_>, bits: u32, ty: RegType) -> fmt::Result {
    let value = f32::from_bits(bits);
    let short = || format!("{value:.6}");
    match ty {
        RegType::D => write!(f, "{}D", bits as i32),
        RegType::Ud => write!(f, "{bits}U"),
        RegType::F if !value.is_finite() => write!(f, "0x{bits:08x}F"),
        RegType::F if short().parse().is_ok_and(|read: f32| read.to_bits() == bits) => write!(f, "{}F", short()),
        RegType::F => write!(f, "0x{bits:08x}F"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "shader: MESA_SHADER_VERTEX
subgroup_size: 1
inputs: 19
outputs: 1

vec4 {
   0: cmp(8).l.f0.0 vgrf40.x:F, attr18.wwww:F, 0.000000F
   1: cmp(8).nz.f0.0 null:D, vgrf40.xxxx:D, 0D
   2: (+f0.0.any4h) if(8)
   3:   (-f0.0.x) sel(8) vgrf41.xy:UD, u3.xyzw:UD, 1065353216U
   4:   mov(4).sat vgrf41.z:F, -|attr0.xxyy|:F group4
   5: else(8)
   6:   do(8)
   7:     (+f0.0.all4h) break(8)
   8:     add(8).nz.f0.0 null.x:D, vgrf41.xxxx:D, -3D
   9:   while(8)
  10: endif(8)
  11: mad(8) o0:F, 0x7f800000F, attr0.xyzw:F, vgrf41.xyzw:F
}
";

    #[test]
    fn a_text_is_what_is_written() {
        let program = read(TEXT).expect("a program");
        assert_eq!(write(&program), TEXT);
        // The form of the document: with offsets, without numbers of channels.
        let old = TEXT.replace("vgrf40.x:F", "vgrf40.0.x:F").replace("(8)", "");
        assert_eq!(read(&old).as_ref(), Ok(&program));
    }

    #[test]
    fn errors_name_the_place_and_what_is_expected() {
        let mut wrong = Vec::new();
        for (from, to, error) in [
            ("f0.0.any4h", "f0.1", "9:10: found `0.1`, expected `0.0`, the only flag register that is supported"),
            ("null:D", "null:W", "8:27: found `W`, expected a type: `F`, `D` or `UD`"),
            ("attr18.wwww", "attr18.www", "7:43: found `:F`, expected a swizzle of four channels"),
            (
                "   2: (+f0.0.any4h) if(8)",
                "if(8)",
                "9:1: found `if(8)`, expected a valid instruction (has no predicate, expected one)",
            ),
            ("  10: endif(8)\n", "", "12:1: found `5: else(8)`, expected a valid instruction (has no end)"),
        ] {
            let found = read(&TEXT.replace(from, to)).expect_err(from).to_string();
            if !found.starts_with(error) {
                wrong.push(format!("{found}\n{error}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
