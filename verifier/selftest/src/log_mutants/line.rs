//! The parts of an instruction's line: in a section after a pass, and in assembly.
//!
//! The line stays text, so a change is one of the log, as a bug of a pass would be.

use std::fmt;
use std::ops::Range;

/// An operand, with its modifiers and flags in parentheses and the text after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// `(kill)(neg)` …
    pub marks: String,
    /// The register, value, constant or number.
    pub name: String,
    /// ` (wrmask=0x3)`, ` (0)` …
    pub rest: String,
}

/// A line that is an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Serial number, position and uses; empty in assembly.
    head: String,
    /// `(sy)`, `(ss)`, `(rpt2)` …
    pub flags: Vec<String>,
    /// The printed opcode, with its types and condition.
    pub opcode: String,
    /// The type and components of a texture instruction: `(f32)(xyz)`.
    pub texture: String,
    /// The operands, destinations first.
    pub operands: Vec<Operand>,
    /// Keywords after the operands, with their separators: `, false-deps:…`, ` target=block7`.
    tail: String,
}

impl Line {
    /// Reads a line; `None` if it is no instruction.
    pub fn read(line: &str) -> Option<Self> {
        let (head, rest) = if let Some(numbers) = line.strip_prefix('\t') {
            // Two tabs: the list of kept instructions, which repeats each of them.
            let end = numbers.find('\t')? + 2;
            let head = &line[..end];
            head[1..].starts_with(|c: char| c.is_ascii_digit()).then_some((head, &line[end..]))?
        } else {
            ("", line)
        };
        let mut rest = rest.trim_end();
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let mut flags = Vec::new();
        while let Some(inner) = rest.strip_prefix('(') {
            let (flag, after) = inner.split_once(')')?;
            flags.push(format!("({flag})"));
            rest = after;
        }
        if !rest.starts_with(is_name) || rest.ends_with([':', '{']) {
            return None;
        }
        let tails = [
            ", false-deps:",
            ", rpt: ",
            ", target=",
            " target=",
            ", off=",
            " dst_offset=",
            ", dst_offset=",
            ", #l",
            " #l",
        ];
        let start = tails.iter().filter_map(|tail| rest.find(tail)).min().unwrap_or(rest.len());
        let (rest, tail) = rest.split_at(start);
        let (opcode, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
        // Nothing else begins with a word in small letters and ends there.
        let is_opcode = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | ':');
        if !opcode.chars().all(is_opcode) {
            return None;
        }
        let mut texture = String::new();
        if let Some((ty, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(")("))
            && ty.starts_with(['f', 'u', 's'])
            && ty[1..].bytes().all(|c| c.is_ascii_digit())
        {
            let (components, after) = after.split_once(')')?;
            texture = format!("({ty})({components})");
            rest = after;
        }
        let mut own = Self {
            head: head.to_owned(),
            flags,
            opcode: opcode.to_owned(),
            texture,
            operands: Vec::new(),
            tail: tail.to_owned(),
        };
        while !rest.is_empty() {
            let end = end_of_operand(rest);
            own.operands.push(Operand::read(&rest[..end]));
            rest = rest[end..].strip_prefix(", ").unwrap_or("");
        }
        Some(own)
    }

    /// Changes a number in the keywords: that after `word`.
    pub fn change_tail(&mut self, word: &str, change: impl FnOnce(i64) -> i64) -> bool {
        let Some(at) = self.tail.find(word).map(|at| at + word.len()) else { return false };
        let digits = self.tail[at..].find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.tail.len() - at);
        let Ok(number) = self.tail[at..at + digits].parse::<i64>() else { return false };
        self.tail.replace_range(at..at + digits, &change(number).to_string());
        true
    }

    /// The opcode's name without types, condition and options.
    pub fn name(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// Returns true for a line of assembly.
    pub fn is_assembly(&self) -> bool {
        self.head.is_empty()
    }

    /// The number of destinations among the operands.
    pub fn results(&self) -> usize {
        let stores = [
            "st", "bar", "fence", "end", "br", "kill", "demote", "pred", "jump", "nop", "chmask", "chsh", "shp",
            "getone", "ccinv", "getlast", "dccln", "ldc.k", "sleep",
        ];
        let name = &*self.opcode;
        if name.starts_with("_meta:parallel_copy") {
            self.operands.len() / 2
        } else if name == "swz" || name.starts_with("swz.") || name.starts_with("gat.") || name.starts_with("sct.") {
            match name.get(..3) {
                Some("swz") => 2,
                Some("sct") => self.operands.len().saturating_sub(1),
                _ => 1,
            }
        } else if name.starts_with("bary") || !stores.iter().any(|store| name.starts_with(store)) {
            1.min(self.operands.len())
        } else {
            0
        }
    }

    /// The places of the sources in the list of operands.
    pub fn sources(&self) -> Range<usize> {
        self.results()..self.operands.len()
    }

    /// Removes or adds a flag.
    pub fn toggle(&mut self, flag: &str) {
        match self.flags.iter().position(|its| its == flag) {
            Some(at) => drop(self.flags.remove(at)),
            None => self.flags.push(flag.to_owned()),
        }
    }
}

/// The end of the operand at the start of a text: the comma that is in no brackets.
fn end_of_operand(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

impl Operand {
    fn read(text: &str) -> Self {
        let mut rest = text;
        let mut marks = String::new();
        while rest.starts_with('(') && !rest[1..].starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let Some(end) = rest.find(')') else { break };
            marks.push_str(&rest[..=end]);
            rest = &rest[end + 1..];
        }
        if let Some(after) = rest.strip_prefix('!') {
            marks.push('!');
            rest = after;
        }
        let end =
            rest.find(" (wrmask").or_else(|| rest.rfind(" (").filter(|_| !rest.starts_with('('))).unwrap_or(rest.len());
        // The length of an array belongs to its name.
        let end = if rest.starts_with("r<") || rest.starts_with("hr<") { rest.len() } else { end };
        Self { marks, name: rest[..end].to_owned(), rest: rest[end..].to_owned() }
    }

    /// The letters of its class and kind: `r`, `hr`, `ssa_`, `hssa_`, `c` … `None` if it is no register, value or
    /// constant.
    pub fn class(&self) -> Option<&str> {
        if self.name.contains(['[', '<']) {
            return None;
        }
        let end = self.name.find(|c: char| c.is_ascii_digit())?;
        let class = &self.name[..end];
        let known = ["r", "ssa_", "c", "p"];
        (known.iter().any(|kind| class.trim_start_matches(['s', 'h', 'p']) == kind.trim_start_matches(['s', 'p']))
            || class == "p")
            .then_some(class)
    }

    /// The bits of an immediate.
    pub fn immediate(&self) -> Option<u32> {
        if let Some(inner) = self.name.trim_start_matches(['s', 'h']).strip_prefix("imm[") {
            let hex = inner.strip_suffix(']')?.rsplit(',').next()?;
            return u32::from_str_radix(hex.strip_prefix("0x")?, 16).ok();
        }
        self.name.parse::<i32>().ok().map(|number| number as u32)
    }

    /// Sets the bits of an immediate, in the form that it has.
    pub fn set_immediate(&mut self, bits: u32) {
        if let Some(at) = self.name.find("imm[") {
            let float = f32::from_bits(bits);
            let float = if float.is_nan() {
                format!("{}nan", if float.is_sign_negative() { "-" } else { "" })
            } else if float.is_infinite() {
                format!("{}inf", if float.is_sign_negative() { "-" } else { "" })
            } else {
                format!("{float:.6}")
            };
            self.name = format!("{}imm[{float},{},{bits:#x}]", &self.name[..at], bits as i32);
        } else {
            self.name = (bits as i32).to_string();
        }
    }

    /// The register: its class, number and component.
    pub fn register(&self) -> Option<(&str, u32, char)> {
        let class = self.class().filter(|class| !class.ends_with('_'))?;
        let (number, component) = self.name[class.len()..].split_once('.')?;
        let mut letters = component.chars();
        let letter = letters.next().filter(|c| "xyzw".contains(*c))?;
        if letters.next().is_some() {
            return None;
        }
        Some((class, number.parse().ok()?, letter))
    }

    /// Moves a register or constant by some components.
    pub fn moved(&self, by: i32) -> Option<String> {
        let (class, number, letter) = self.register()?;
        let at = (number * 4 + "xyzw".find(letter)? as u32).checked_add_signed(by)?;
        Some(format!("{class}{}.{}", at / 4, ['x', 'y', 'z', 'w'][at as usize % 4]))
    }

    /// Removes or adds a mark directly before the name.
    pub fn toggle(&mut self, mark: &str) {
        match self.marks.find(mark) {
            Some(at) => self.marks.replace_range(at..at + mark.len(), ""),
            None => self.marks.insert_str(0, mark),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.marks, self.name, self.rest)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head)?;
        self.flags.iter().try_for_each(|flag| f.write_str(flag))?;
        f.write_str(&self.opcode)?;
        let mut before = " ";
        if !self.texture.is_empty() {
            write!(f, " {}", self.texture)?;
            before = "";
        }
        for operand in &self.operands {
            write!(f, "{before}{operand}")?;
            before = ", ";
        }
        f.write_str(&self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_printed_as_they_are_read() {
        for line in [
            "\t0014:0001:000: \tmov.u32u32 r0.x, c0.x",
            "\t0212:0094:002: \t(nop1)mul.f r4.x, (kill)r3.x, (kill)(neg)r0.z",
            "\t0148:0030:004: \t(sy)(rpt1)mul.f r0.x (wrmask=0x3), (kill)(r)r0.x (wrmask=0x3), c8.y",
            "\t0190:0056:000: \tspill.macro r1.z, (kill)r0.z, imm[0.000000,1,0x1] dst_offset=20",
            "\t0308:0000:004: \tsam.base3 (f32)(xyzw)ssa_308 (wrmask=0xf), ssa_307 (wrmask=0x3), s#0, t#0",
            "\t0194:0063:000: \t_meta:parallel_copy arr[id=0, offset=0, size=10](r2.z), hr10.y, (kill)arr[id=2, offset=0, size=10](r2.z), himm[0.000000,1,0x1]",
            "\t0113:0057:020: \tmov.u32u32 (tied)r<a0.x + 5> (34), (kill)r0.z, (kill)(tied)r<a0.x + 5> (34), hr61.x, false-deps:ssa_104, ssa_112",
            "\t0054:0000:004: \t_meta:split ssa_54, ssa_53 (wrmask=0x3), off=0",
            "\t0029:0000:000: \tbrao !pssa_24, !pssa_28",
            "\t0013:0005:000: \tend (kill)r0.x (wrmask=0xf) (0)",
            "\t0005:0002:000: \tshps target=block7",
            "\t0003:0000:000: \tmov.f32f32 ssa_3, c0.x, rpt: first",
            "\t0022:0010:000: \t(sy)(ss)shpe, false-deps:ssa_21",
            "(sy)(ss)br p0.x, #l30",
            "mad.f32 r0.x, (neg)r1.x, c0.x, r2.x",
            "add.s r0.x, r0.y, -1",
        ] {
            let read = Line::read(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(read.to_string(), line);
        }
        for line in ["\t/* keeps:", "\t\t0013:0005:000: \tend r0.x (0)", "block1 {", "\tpred: block1", "l30:", "; x"] {
            assert_eq!(Line::read(line), None, "{line}");
        }
    }

    #[test]
    fn operands_have_their_parts() {
        let line =
            Line::read("\t0044:0002:003: \tadd.f hr0.x, (neg)c4.w, imm[1.000000,1065353216,0x3f800000]").unwrap();
        assert_eq!(line.operands[1].moved(1).as_deref(), Some("c5.x"));
        assert_eq!((line.operands[0].class(), line.operands[1].class()), (Some("hr"), Some("c")));
        assert_eq!(line.operands[2].immediate(), Some(0x3f80_0000));
        assert_eq!(line.operands[1].marks, "(neg)");
        assert_eq!((line.results(), line.sources()), (1, 1..3));
        let mut number = line.operands[2].clone();
        number.set_immediate(2);
        assert_eq!(number.name, "imm[0.000000,2,0x2]");
    }
}
