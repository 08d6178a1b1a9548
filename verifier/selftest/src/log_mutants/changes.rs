//! One change of one instruction in the text of a section, by kind.
//!
//! Each resembles the effect of a bug in a pass: another register, a missing copy, a wrong offset. A change need not
//! change the meaning: that is for the provers to find.

use super::line::{Line, Operand};
use ir3_semantics::support::random::Random;
use std::collections::BTreeMap;

/// A section's lines, with the facts about all of them that changes need.
pub struct Text<'a> {
    lines: Vec<&'a str>,
    read: Vec<Option<Line>>,
    /// The names of each class in the section.
    names: BTreeMap<&'a str, Vec<&'a str>>,
}

/// A change: new texts of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The kind of the change.
    pub kind: &'static str,
    /// The first changed line, from 0 on.
    pub line: usize,
    /// The changed lines.
    pub lines: Vec<(usize, String)>,
}

/// The new texts of lines by their numbers.
type Replaced = Vec<(usize, String)>;
/// Changes the line with this number.
type ChangeFn = fn(&Text<'_>, usize, &Line, &mut Random) -> Option<Replaced>;

/// The kinds of changes, with their names in tables.
const KINDS: [(&str, ChangeFn); 27] = [
    ("register", register),
    ("destination", destination),
    ("source order", source_order),
    ("predicate", predicate),
    ("condition", condition),
    ("dropped copy", dropped_copy),
    ("copy source", copy_source),
    ("phi source", phi_source),
    ("spill offset", spill_offset),
    ("dropped kill", dropped_kill),
    ("dropped nop", dropped_nop),
    ("dropped flag", dropped_flag),
    ("immediate", immediate),
    ("constant", constant),
    ("modifier", modifier),
    ("saturation", saturation),
    ("opcode", opcode),
    ("type", types),
    ("order", order),
    ("dropped store", dropped_store),
    ("branch target", branch_target),
    ("successors", successors),
    ("component", component),
    ("repeat", repeat),
    ("texture", texture),
    ("relative offset", relative_offset),
    ("output", output),
];

/// The names of the kinds.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(|(name, _)| name)
}

impl<'a> Text<'a> {
    /// Reads the lines of a section.
    pub fn of(text: &'a str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        // The lists of kept instructions repeat each with two tabs.
        let read: Vec<Option<Line>> = lines.iter().map(|line| Line::read(line)).collect();
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in &lines {
            for token in line.split([' ', ',', '(', ')', '!']) {
                let operand = Operand { marks: String::new(), name: token.to_owned(), rest: String::new() };
                let Some(length) = operand.class().map(str::len) else { continue };
                let known = names.entry(&token[..length]).or_default();
                if !known.contains(&token) {
                    known.push(token);
                }
            }
        }
        Self { lines, read, names }
    }

    /// A random change of a random kind, where one applies.
    pub fn change(&self, random: &mut Random) -> Option<Edit> {
        let mut kinds = KINDS;
        random.shuffle(&mut kinds);
        kinds.into_iter().find_map(|(name, change)| {
            let start = random.below(self.lines.len().max(1));
            (0..self.lines.len()).map(|at| (start + at) % self.lines.len()).find_map(|at| {
                let empty = Line::default();
                let line = match &self.read[at] {
                    Some(line) => line,
                    None if name == "successors" => &empty,
                    None => return None,
                };
                let lines = change(self, at, line, random)?;
                let is_new = lines.iter().any(|(number, text)| self.lines[*number] != text);
                is_new.then_some(Edit { kind: name, line: at, lines })
            })
        })
    }

    /// The text with a change.
    pub fn with(&self, edit: &Edit) -> String {
        let changed = |at: usize| edit.lines.iter().find(|(number, _)| *number == at).map(|(_, text)| &**text);
        (0..self.lines.len()).flat_map(|at| [changed(at).unwrap_or(self.lines[at]), "\n"]).collect()
    }

    /// A line of the original text.
    pub fn line(&self, at: usize) -> &'a str {
        self.lines[at].trim()
    }

    /// Another name of the same class: near in the text, or next to it.
    fn other(&self, operand: &Operand, random: &mut Random) -> Option<String> {
        if operand.register().is_some() && random.chance(50) {
            return operand.moved(if random.chance(50) { 1 } else { -1 });
        }
        let names = self.names.get(operand.class()?)?;
        let others: Vec<&str> = names.iter().copied().filter(|name| *name != operand.name).collect();
        random.pick(&others).map(str::to_owned)
    }
}

fn one(at: usize, line: &Line) -> Option<Replaced> {
    Some(vec![(at, line.to_string())])
}

/// Removes an instruction: its line becomes empty, and so does the one that repeats it in the list of kept
/// instructions. In assembly a nop takes its place, so that no other one moves.
fn dropped(text: &Text<'_>, at: usize, line: &Line) -> Option<Replaced> {
    if line.is_assembly() {
        return Some(vec![(at, "nop".to_owned())]);
    }
    let serial = text.lines[at].trim_start().split(':').next()?;
    let again = format!("\t\t{serial}:");
    let lines = (0..text.lines.len()).filter(|&other| other == at || text.lines[other].starts_with(&again));
    Some(lines.map(|at| (at, String::new())).collect())
}

/// A source that fits a test.
fn source(line: &Line, random: &mut Random, test: impl Fn(&Operand) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = line.sources().filter(|&at| test(&line.operands[at])).collect();
    random.pick(&fitting)
}

/// Two sources whose places can be exchanged.
fn two_sources(line: &Line, random: &mut Random) -> Option<(usize, usize)> {
    let first = source(line, random, |_| true)?;
    let differs = |other: &Operand| other.name != line.operands[first].name;
    let second = source(line, random, differs)?;
    Some((first, second))
}

fn swap_names(line: &Line, (first, second): (usize, usize)) -> Line {
    let mut line = line.clone();
    let other = line.operands[second].name.clone();
    line.operands[second].name = std::mem::replace(&mut line.operands[first].name, other);
    line
}

fn is_copy(line: &Line) -> bool {
    line.opcode.starts_with("_meta:parallel_copy")
}

fn register(text: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let is_register = |operand: &Operand| operand.class().is_some_and(|class| !class.ends_with('c'));
    let which = source(line, random, is_register)?;
    let mut line = line.clone();
    line.operands[which].name = text.other(&line.operands[which], random)?;
    one(at, &line)
}

/// Replaces a destination register. SSA form has none: names of results are those of instructions.
fn destination(text: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let results: Vec<usize> = (0..line.results()).filter(|&at| line.operands[at].register().is_some()).collect();
    let which = random.pick(&results)?;
    let mut line = line.clone();
    line.operands[which].name = text.other(&line.operands[which], random)?;
    one(at, &line)
}

fn source_order(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let is_ordinary = !line.opcode.starts_with("_meta") && !matches!(line.name(), "end" | "shps" | "stp" | "ldp");
    if !is_ordinary {
        return None;
    }
    one(at, &swap_names(line, two_sources(line, random)?))
}

fn predicate(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if !matches!(line.name(), "br" | "braa" | "brao" | "kill" | "demote" | "predt" | "predf") {
        return None;
    }
    let mut line = line.clone();
    match line.name() {
        "predt" => line.opcode = "predf".to_owned(),
        "predf" => line.opcode = "predt".to_owned(),
        "braa" if random.chance(30) => line.opcode = "brao".to_owned(),
        "brao" if random.chance(30) => line.opcode = "braa".to_owned(),
        _ => {
            let which = source(&line, random, |_| true)?;
            line.operands[which].toggle("!");
        }
    }
    one(at, &line)
}

fn condition(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if !matches!(line.name(), "cmps" | "cmpv") {
        return None;
    }
    let (start, own) = line.opcode.rsplit_once('.')?;
    let others: Vec<&str> = ["lt", "le", "gt", "ge", "eq", "ne"].into_iter().filter(|name| *name != own).collect();
    let mut changed = line.clone();
    changed.opcode = format!("{start}.{}", random.pick(&others)?);
    one(at, &changed)
}

fn dropped_copy(text: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if is_copy(line) {
        let count = line.results();
        if count < 2 {
            return None;
        }
        let which = random.below(count);
        let mut line = line.clone();
        // The number of components of an access is printed twice; `stp` and `ldp` have their own kind.
        line.operands[which].register()?;
        line.operands.remove(count + which);
        line.operands.remove(which);
        return one(at, &line);
    }
    let moves = matches!(line.name(), "mov" | "cov" | "swz");
    let writes = line.operands.first().is_some_and(|dst| dst.register().is_some());
    if moves && writes { dropped(text, at, line) } else { None }
}

fn copy_source(text: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if !is_copy(line) && !line.opcode.starts_with("_meta:collect") {
        return None;
    }
    if random.chance(50)
        && let Some(two) = two_sources(line, random)
    {
        return one(at, &swap_names(line, two));
    }
    register(text, at, line, random)
}

fn phi_source(text: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if line.opcode != "_meta:phi" {
        return None;
    }
    match two_sources(line, random) {
        Some(two) => one(at, &swap_names(line, two)),
        None => register(text, at, line, random),
    }
}

fn spill_offset(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let by = if random.chance(50) { 4 } else { -4 };
    let mut line = line.clone();
    match line.name() {
        "spill" => line.change_tail("dst_offset=", |offset| offset + by).then_some(())?,
        "ldp" | "reload" => {
            let which = source(&line, random, |operand| operand.immediate().is_some())?;
            let offset = line.operands[which].immediate()?;
            line.operands[which].set_immediate(offset.checked_add_signed(by as i32)?);
        }
        _ => return None,
    }
    one(at, &line)
}

fn dropped_kill(text: &Text<'_>, at: usize, line: &Line, _: &mut Random) -> Option<Replaced> {
    if matches!(line.name(), "kill" | "demote") { dropped(text, at, line) } else { None }
}

fn dropped_nop(text: &Text<'_>, at: usize, line: &Line, _: &mut Random) -> Option<Replaced> {
    let mut line = line.clone();
    if let Some(which) = line.flags.iter().position(|flag| flag.starts_with("(nop")) {
        line.flags.remove(which);
        return one(at, &line);
    }
    if line.opcode != "nop" {
        return None;
    }
    let repeats = line.flags.iter().position(|flag| flag.starts_with("(rpt"));
    match repeats {
        // In assembly an instruction less would move branch targets.
        Some(which) => {
            line.flags.remove(which);
            one(at, &line)
        }
        None if line.flags.is_empty() && !line.is_assembly() => dropped(text, at, &line),
        None => None,
    }
}

fn dropped_flag(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let waits: Vec<usize> =
        (0..line.flags.len()).filter(|&at| matches!(&*line.flags[at], "(ss)" | "(sy)" | "(jp)")).collect();
    let mut line = line.clone();
    line.flags.remove(random.pick(&waits)?);
    one(at, &line)
}

fn immediate(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    // The number of components of an access is printed twice; `stp` and `ldp` have their own kind.
    if matches!(line.name(), "stp" | "ldp" | "spill" | "reload") {
        return None;
    }
    let which = source(line, random, |operand| operand.immediate().is_some())?;
    let mut line = line.clone();
    let bits = line.operands[which].immediate()?;
    let is_float = (0x3000_0000..0x5000_0000).contains(&(bits & 0x7fff_ffff));
    let new = match random.below(3) {
        0 => bits.wrapping_add(1),
        1 if is_float => bits ^ 0x8000_0000,
        1 => bits.wrapping_sub(1),
        _ if is_float => bits.wrapping_add(0x80_0000),
        _ => bits ^ 4,
    };
    line.operands[which].set_immediate(new);
    one(at, &line)
}

fn constant(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let is_constant = |operand: &Operand| operand.register().is_some_and(|(class, ..)| class.ends_with('c'));
    let which = source(line, random, is_constant)?;
    let by = random.pick(&[-4, -1, 1, 4])?;
    let mut line = line.clone();
    line.operands[which].name = line.operands[which].moved(by)?;
    one(at, &line)
}

/// Returns true for arithmetic on floats that takes (neg) and (abs) at each source.
fn takes_modifiers(line: &Line) -> bool {
    ["add.f", "mul.f", "min.f", "max.f", "cmps.f"].iter().any(|name| line.opcode.starts_with(name))
}

fn modifier(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let has = |operand: &Operand, mark: &str| operand.marks.contains(mark);
    let marked = source(line, random, |operand| has(operand, "(neg)") || has(operand, "(abs)"));
    let mut line = line.clone();
    match marked {
        Some(which) if random.chance(70) => {
            let mark = if has(&line.operands[which], "(neg)") { "(neg)" } else { "(abs)" };
            line.operands[which].toggle(mark);
        }
        _ if takes_modifiers(&line) => {
            let which =
                source(&line, random, |operand| operand.immediate().is_none() && operand.marks.find("abs").is_none())?;
            line.operands[which].toggle("(neg)");
        }
        _ => return None,
    }
    one(at, &line)
}

fn saturation(_: &Text<'_>, at: usize, line: &Line, _: &mut Random) -> Option<Replaced> {
    let has = line.flags.iter().any(|flag| flag == "(sat)");
    let takes = ["add.f", "mul.f", "mad.f32"].iter().any(|name| line.opcode.starts_with(name));
    if !has && !takes {
        return None;
    }
    let mut line = line.clone();
    line.toggle("(sat)");
    one(at, &line)
}

/// Opcodes with the same operands.
const ALIKE: [&[&str]; 12] = [
    &["add.f", "mul.f", "min.f", "max.f"],
    &["add.u", "sub.u", "and.b", "or.b", "xor.b", "min.u", "max.u"],
    &["add.s", "sub.s", "min.s", "max.s"],
    &["shl.b", "shr.b", "ashr.b"],
    &["mul.u24", "mul.s24", "mull.u"],
    &["floor.f", "ceil.f", "trunc.f", "rndne.f", "absneg.f", "sign.f"],
    &["rcp", "rsq", "sqrt", "exp2", "log2", "sin", "cos"],
    &["mad.u24", "mad.s24"],
    &["mad.u16", "madsh.m16"],
    &["clz.b", "cbits.b", "bfrev.b", "not.b"],
    &["dsx", "dsy"],
    &["madsh.u16", "madsh.m16"],
];

fn opcode(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let known = ALIKE.iter().find(|names| names.contains(&&*line.opcode));
    let mut changed = line.clone();
    if let Some(names) = known {
        let others: Vec<&str> = names.iter().copied().filter(|name| *name != line.opcode).collect();
        changed.opcode = random.pick(&others)?.to_owned();
        return one(at, &changed);
    }
    for (from, to) in [(".add.", ".or."), (".or.", ".and."), (".umin", ".umax"), (".min", ".max"), (".xchg", ".add")] {
        if line.opcode.contains(from) {
            changed.opcode = line.opcode.replacen(from, to, 1);
            return one(at, &changed);
        }
    }
    None
}

fn types(_: &Text<'_>, at: usize, line: &Line, _: &mut Random) -> Option<Replaced> {
    let (name, rest) = line.opcode.split_once('.')?;
    let pairs: &[(&str, &str)] = match name {
        "cov" => &[
            ("u32f", "s32f"),
            ("s32f", "u32f"),
            ("f32u", "f32s"),
            ("f32s", "f32u"),
            ("u16f", "s16f"),
            ("s16f", "u16f"),
            ("u16u32", "s16s32"),
            ("s16s32", "u16u32"),
            ("u8u", "s8s"),
            ("u8s16", "s8s16"),
        ],
        "cmps" | "cmpv" | "min" | "max" => &[("u.", "s."), ("s.", "u."), ("f.", "s.")],
        _ => &[],
    };
    let (from, to) = pairs.iter().find(|(from, _)| rest.starts_with(from))?;
    let mut changed = line.clone();
    changed.opcode = format!("{name}.{to}{}", &rest[from.len()..]);
    one(at, &changed)
}

/// Exchanges two adjacent instructions of which one writes a register that the other reads or writes.
fn order(text: &Text<'_>, at: usize, line: &Line, _: &mut Random) -> Option<Replaced> {
    let next = text.read.get(at + 1)?.as_ref()?;
    let writes = |line: &Line| -> Vec<String> {
        let results = line.operands.iter().take(line.results());
        results.filter(|dst| dst.register().is_some()).map(|dst| dst.name.clone()).collect()
    };
    let touches = |line: &Line, names: &[String]| line.operands.iter().any(|operand| names.contains(&operand.name));
    let is_memory = |line: &Line| line.name().starts_with("st") || line.name().starts_with("atomic");
    let dependent = touches(next, &writes(line)) || touches(line, &writes(next)) || is_memory(line) && is_memory(next);
    let control = |line: &Line| {
        let name = line.name();
        name.starts_with("br") || name.starts_with("pred") || matches!(name, "jump" | "end" | "kill" | "getone")
    };
    if !dependent || control(line) || control(next) {
        return None;
    }
    Some(vec![(at, text.lines[at + 1].to_owned()), (at + 1, text.lines[at].to_owned())])
}

fn dropped_store(text: &Text<'_>, at: usize, line: &Line, _: &mut Random) -> Option<Replaced> {
    let stores = ["stg", "stgb", "stl", "stib", "stp", "stc", "stlw", "bar", "fence"];
    if stores.contains(&line.name()) { dropped(text, at, line) } else { None }
}

fn branch_target(text: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let mut changed = line.clone();
    for (word, begins) in [("target=block", "block"), ("#l", "l")] {
        let labels: Vec<i64> = text
            .lines
            .iter()
            .filter_map(|line| {
                let line = line.trim_start_matches("(jp)").trim_end_matches([':', '{', ' ']);
                line.strip_prefix(begins)?.parse().ok()
            })
            .collect();
        let to = random.pick(&labels);
        if let Some(to) = to
            && changed.change_tail(word, |_| to)
        {
            return one(at, &changed);
        }
    }
    None
}

/// The successors of a block, (true, false), where no branch names its target.
fn successors(text: &Text<'_>, at: usize, _: &Line, _: &mut Random) -> Option<Replaced> {
    let line = text.lines[at];
    let start = line.find("/* succs: block")? + "/* succs: ".len();
    let (first, rest) = line[start..].split_once(", ")?;
    let end = rest.find(' ')?;
    let swapped = format!("{}{}, {first}{}", &line[..start], &rest[..end], &rest[end..]);
    Some(vec![(at, swapped)])
}

fn component(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let mut changed = line.clone();
    let by = 1 + random.below(3) as i64;
    if line.opcode == "_meta:split" && changed.change_tail("off=", |offset| (offset + by) % 4) {
        return one(at, &changed);
    }
    if line.opcode == "_meta:collect" {
        return one(at, &swap_names(line, two_sources(line, random)?));
    }
    None
}

fn repeat(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if line.opcode == "nop" {
        return None;
    }
    line.flags.iter().find(|flag| flag.starts_with("(rpt"))?;
    let mut line = line.clone();
    let which = source(&line, random, |operand| operand.marks.contains("(r)"))?;
    line.operands[which].toggle("(r)");
    one(at, &line)
}

fn texture(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let which = source(line, random, |operand| operand.name.starts_with("s#") || operand.name.starts_with("t#"))?;
    let mut line = line.clone();
    let (kind, number) = line.operands[which].name.split_once('#')?;
    let number: u32 = number.parse().ok()?;
    line.operands[which].name = format!("{kind}#{}", number ^ 1);
    one(at, &line)
}

fn relative_offset(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    let by = if random.chance(50) { 1 } else { -1 };
    let mut line = line.clone();
    let words = ["<a0.x + ", "offset="];
    let fits = |operand: &Operand| words.iter().any(|word| operand.name.contains(word));
    let all: Vec<usize> = (0..line.operands.len()).filter(|&at| fits(&line.operands[at])).collect();
    let operand = &mut line.operands[random.pick(&all)?];
    let start = words.iter().find_map(|word| Some(operand.name.find(word)? + word.len()))?;
    let digits = operand.name[start..].find(|c: char| !c.is_ascii_digit() && c != '-')?;
    let offset: i64 = operand.name[start..start + digits].parse().ok()?;
    operand.name.replace_range(start..start + digits, &(offset + by).to_string());
    one(at, &line)
}

fn output(_: &Text<'_>, at: usize, line: &Line, random: &mut Random) -> Option<Replaced> {
    if line.name() != "end" || line.operands.is_empty() {
        return None;
    }
    let mut line = line.clone();
    let two = two_sources(&line, random);
    if let Some(two) = two {
        line = swap_names(&line, two);
    } else {
        let operand = &mut line.operands[0];
        operand.name = operand.moved(1)?;
    }
    one(at, &line)
}
