//! Recognition of pasted pieces of programs: nir without its header, and the notation of ir3 with `...` for missing
//! parts; and texts of versions of Mesa that are not read.

use ir3_compiler::log_line::LogLine;
use std::collections::{BTreeMap, BTreeSet};

/// Returns true for an instruction of ir3, which begins with its numbers: `0004:0001:002: …`.
pub fn is_ir3_line(line: &str) -> bool {
    let mut numbers = line.trim_start().splitn(4, ':');
    let mut is_number = || numbers.next().is_some_and(|it| it.len() >= 3 && it.bytes().all(|c| c.is_ascii_digit()));
    let starts = is_number() && is_number();
    starts && numbers.next().is_some_and(|it| it.len() >= 3 && it.bytes().all(|c| c.is_ascii_digit() || c == b'X'))
}

/// Returns true for a line that only nir has: a definition, a block, the start of a function.
pub fn is_nir_line(line: &str) -> bool {
    let line = line.trim_start();
    let line = ["con ", "div "].iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line).trim_start();
    let is_block = line.strip_prefix("block b").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_former =
        ["vec1 ", "vec2 ", "vec3 ", "vec4 "].iter().any(|start| line.starts_with(start)) && line.contains(" ssa_");
    is_block
        || is_former
        || line.starts_with("decl_function ")
        || line.starts_with("@store_")
        || definition(line).is_some()
}

/// The size, the number and the operation of `32x2 %4 = vec2 %1, %2`, or of `%4 = …`.
fn definition(line: &str) -> Option<(Option<&str>, u32, &str)> {
    let line = line.trim_start();
    let line = ["con ", "div "].iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line).trim_start();
    let (before, rest) = line.split_once('%')?;
    let size = before.trim();
    if !size.bytes().all(|c| c.is_ascii_digit() || c == b'x') {
        return None;
    }
    let (number, operation) = rest.split_once(" = ")?;
    let is_whole = number.bytes().all(|c| c.is_ascii_digit());
    Some(((!size.is_empty()).then_some(size), number.parse().ok().filter(|_| is_whole)?, operation.trim()))
}

/// A sign of a version whose texts are not read, with its place and the versions that print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldText {
    /// The line, from 1 on.
    pub line: u32,
    /// The column, from 1 on.
    pub column: u32,
    /// The sign.
    pub sign: &'static str,
    /// The version.
    pub version: &'static str,
}

/// Finds such a sign in a text of ir3.
pub fn old_ir3(text: &str) -> Option<OldText> {
    const SIGNS: [(&str, &str); 4] = [
        ("right=_[", "Mesa 20 (2020)"),
        ("left=_[", "Mesa 20 (2020)"),
        ("false-deps:_[", "Mesa 20 (2020)"),
        ("_[0", "Mesa before 21.2 (2021)"),
    ];
    SIGNS.into_iter().find_map(|(sign, version)| {
        let (line, at) = (1..).zip(text.lines()).find_map(|(number, line)| Some((number, line.find(sign)?)))?;
        Some(OldText { line, column: at as u32 + 1, sign, version })
    })
}

/// The notation of reports, `ssa_4 = collect ssa_1, ssa_2 (kill)` and `... = ssa_4`, as ir3; `None` if a line has
/// another form. A missing right side is an input, a missing left side a result.
pub fn from_notation(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut widths: BTreeMap<u32, usize> = BTreeMap::new();
    let mut results: Vec<u32> = Vec::new();
    let number = |name: &str| name.trim().strip_prefix("ssa_")?.parse::<u32>().ok();
    let mut any = false;
    for raw in text.lines() {
        let line = LogLine::of(raw).text;
        let line = line.split("//").next().unwrap_or_default().trim();
        if !line.is_empty() {
            let (left, right) = line.split_once('=')?;
            let right = right.replace("(kill)", "");
            let operands = |list: &str| list.split(',').map(number).collect::<Option<Vec<u32>>>();
            match (left.trim(), right.trim()) {
                ("..." | "…", used) => results.extend(operands(used)?),
                (name, "..." | "…") => {
                    number(name)?;
                }
                (name, operation) => {
                    any = true;
                    let def = number(name)?;
                    let (opcode, list) = operation.split_once(' ')?;
                    let list = operands(list)?;
                    let is_meta = matches!(opcode, "collect" | "split" | "phi" | "parallel_copy");
                    let mask = if opcode == "collect" {
                        format!(" (wrmask={:#x})", (1u32 << list.len().min(31)) - 1)
                    } else {
                        String::new()
                    };
                    if opcode == "collect" {
                        widths.insert(def, list.len());
                    }
                    let names: Vec<String> = list.iter().map(|number| format!("ssa_{number}")).collect();
                    let meta = if is_meta { "_meta:" } else { "" };
                    out += &format!("{def:04}:0000:000: {meta}{opcode} ssa_{def}{mask}, {}", names.join(", "));
                }
            }
        }
        out.push('\n');
    }
    let srcs: Vec<String> = results
        .iter()
        .enumerate()
        .map(|(index, result)| {
            let mask = widths
                .get(result)
                .map_or(String::new(), |&width| format!(" (wrmask={:#x})", (1u32 << width.min(31)) - 1));
            format!("ssa_{result}{mask} ({index})")
        })
        .collect();
    if !results.is_empty() {
        let outputs: Vec<String> = (0..results.len()).map(|index| format!("{index}.x")).collect();
        let outputs = outputs.join("}\n// {output=");
        out += &format!("// {{output={outputs}}}\n9999:0000:000: end {}\n", srcs.join(", "));
    }
    any.then_some(out)
}

/// A nir text that was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedNir {
    /// The whole text.
    pub text: String,
    /// The lines before the given ones.
    pub added: u32,
    /// The added parts.
    pub taken: Vec<String>,
}

/// Adds the parts that a piece of nir leaves out: the header, the function around its blocks, and the values that
/// nothing defines, which are inputs. `None` if the text has a header.
pub fn complete_nir(text: &str) -> Option<CompletedNir> {
    let lines: Vec<String> = text.lines().map(|line| LogLine::of(line).text.into_owned()).collect();
    if lines.iter().any(|line| line.starts_with("shader: ")) {
        return None;
    }
    let has = |words: &[&str]| lines.iter().any(|line| words.iter().any(|word| line.contains(word)));
    let fragment = ["FRAG_RESULT", "barycentric", "interpolated_input", "@terminate", "@demote", "load_frag_coord"];
    let compute = ["workgroup", "local_invocation", "@barrier", "num_workgroups"];
    let stage = match () {
        () if has(&fragment) => "MESA_SHADER_FRAGMENT",
        () if has(&compute) => "MESA_SHADER_COMPUTE",
        () => "MESA_SHADER_VERTEX",
    };
    let mut taken = vec![format!("the header of `{stage}`")];
    let mut head = format!("shader: {stage}\n");
    if stage == "MESA_SHADER_COMPUTE" {
        head += "workgroup_size: 64, 1, 1\n";
    }
    if !has(&["decl_function "]) {
        head += "decl_function main () (entrypoint)\n";
    }
    let has_function = lines.iter().any(|line| line.starts_with("impl "));
    let has_block = lines.iter().any(|line| {
        let line = line.trim_start();
        let line = ["con ", "div "].iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line);
        line.trim_start().starts_with("block b")
    });
    if !has_function {
        head += "impl main {\n";
    }
    if !has_block {
        head += "    block b0:  // preds:\n";
    }
    let inputs = undefined(&lines);
    let added = head.lines().count();
    let mut body = lines.clone();
    // Before the first instruction of the first block.
    let first = if has_block { lines.iter().position(|line| line.contains("block b"))? + 1 } else { 0 };
    let mut defined = String::new();
    let zero = 1 + inputs.keys().chain(definitions(&lines).iter()).max().copied().unwrap_or_default();
    if !inputs.is_empty() {
        defined += &format!("    con 32 %{zero} = load_const (0x00000000); ");
        taken.push(format!(
            "the inputs {}",
            inputs.keys().map(|number| format!("%{number}")).collect::<Vec<_>>().join(", ")
        ));
    }
    let mut extra: Vec<String> = Vec::new();
    if !inputs.is_empty() {
        extra.push(format!("    con 32 %{zero} = load_const (0x00000000)"));
    }
    let mut next = zero + 1;
    for (place, (&number, &(bits, components))) in inputs.iter().enumerate() {
        let size = if components > 1 { format!("32x{components}") } else { "32".to_owned() };
        let name = if bits == 32 { number } else { next };
        let location = match stage {
            "MESA_SHADER_VERTEX" => format!("VERT_ATTRIB_GENERIC{}", place.min(15)),
            _ => format!("VARYING_SLOT_VAR{}", place.min(31)),
        };
        let load = match stage {
            "MESA_SHADER_COMPUTE" => format!(
                "@load_ubo (%{zero} (0x0), %{zero} (0x0)) (access=none, align_mul=16, align_offset=0, range_base=0, range=-1)"
            ),
            _ => format!(
                "@load_input (%{zero} (0x0)) (base={place}, range=1, component=0, dest_type=uint32, io location={location} slots=1)"
            ),
        };
        extra.push(format!("    div {size} %{name} = {load}"));
        if bits != 32 {
            let shape = if components > 1 { format!("x{components}") } else { String::new() };
            let convert = match bits {
                1 => format!("ine %{name}, %{zero} (0x0)"),
                bits => format!("u2u{bits} %{name}"),
            };
            extra.push(format!("    div {bits}{shape} %{number} = {convert}"));
            next += 1;
        }
    }
    let lines_before = extra.len();
    if first > 0 {
        body.splice(first..first, extra);
    } else {
        head += &extra.iter().map(|line| line.clone() + "\n").collect::<String>();
    }
    let open: i32 = body.iter().map(|line| braces(line)).sum::<i32>() + i32::from(!has_function);
    let mut tail = String::new();
    if open > 0 {
        let labels = body.iter().filter_map(|line| {
            line.split_once("block b")?.1.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        });
        let last = labels.max().unwrap_or(0) + 1;
        tail = "    }\n".repeat(open as usize - 1);
        if open == 1 {
            tail += &format!("                   // succs: b{last}\n    block b{last}:\n}}\n");
            taken.push("the end of the function".to_owned());
        } else {
            tail += "}\n";
        }
    }
    let whole = head + &body.iter().map(|line| line.clone() + "\n").collect::<String>() + &tail;
    Some(CompletedNir { text: whole, added: (added + lines_before) as u32, taken })
}

fn braces(line: &str) -> i32 {
    let code = if line.trim_end().ends_with('{') { line } else { line.split("//").next().unwrap_or_default() };
    code.matches('{').count() as i32 - code.matches('}').count() as i32
}

fn definitions(lines: &[String]) -> BTreeSet<u32> {
    lines.iter().filter_map(|line| definition(line)).map(|(_, number, _)| number).collect()
}

/// The values that are used and not defined, with their sizes as far as their uses show them.
fn undefined(lines: &[String]) -> BTreeMap<u32, (u32, u32)> {
    let defined = definitions(lines);
    let mut found: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for line in lines {
        let code = line.split("//").next().unwrap_or_default();
        let own = definition(code);
        let (size, operation) = match own {
            Some((size, _, operation)) => (size.unwrap_or("32"), operation),
            None => ("32", code.trim()),
        };
        let (bits, components) = size.split_once('x').unwrap_or((size, "1"));
        let (bits, components): (u32, u32) = (bits.parse().unwrap_or(32), components.parse().unwrap_or(1));
        let opcode = operation.split([' ', '(']).next().unwrap_or_default();
        let is_vector = !opcode.starts_with("vec") && !opcode.starts_with('@');
        let mut rest = operation;
        let mut position = 0;
        while let Some((_, after)) = rest.split_once('%') {
            let digits = &after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())];
            rest = &after[digits.len()..];
            let Ok(number) = digits.parse::<u32>() else { continue };
            let swizzle =
                rest.strip_prefix('.').map(|it| &it[..it.find(|c: char| !"xyzw".contains(c)).unwrap_or(it.len())]);
            let most =
                swizzle.and_then(|it| it.chars().filter_map(|c| "xyzw".find(c)).max()).map(|last| last as u32 + 1);
            let width = most.unwrap_or(if is_vector { components } else { 1 });
            let is_condition =
                opcode == "if" || position == 0 && opcode.starts_with("bcsel") || opcode.starts_with("b2");
            let of_source = match opcode {
                _ if is_condition => 1,
                "iand" | "ior" | "ixor" | "inot" => bits,
                _ if bits == 1
                    || opcode.starts_with('@')
                    || opcode.starts_with("f2")
                    || opcode.starts_with("i2")
                    || opcode.starts_with("u2") =>
                {
                    32
                }
                _ => bits,
            };
            position += 1;
            if !defined.contains(&number) {
                let entry = found.entry(number).or_insert((of_source, width));
                entry.1 = entry.1.max(width);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_of_reports_is_ir3() {
        let text = "ssa_1 = ...\nssa_4 = collect ssa_1, ssa_2 (kill)\n... = ssa_4 (kill)\n";
        let expected = "\n0004:0000:000: _meta:collect ssa_4 (wrmask=0x3), ssa_1, ssa_2\n\n// {output=0.x}\n9999:0000:000: end ssa_4 (wrmask=0x3) (0)\n";
        assert_eq!(from_notation(text).as_deref(), Some(expected));
        let two = from_notation(&format!("{text}... = ssa_1\n")).expect("ir3");
        assert!(
            two.ends_with("// {output=0.x}\n// {output=1.x}\n9999:0000:000: end ssa_4 (wrmask=0x3) (0), ssa_1 (1)\n"),
            "{two}"
        );
        assert_eq!(from_notation("ssa_1 = ...\n"), None);
        assert_eq!(from_notation("a report\nssa_4 = collect ssa_1\n"), None);
    }

    #[test]
    fn lines_have_the_kind_of_their_language() {
        for line in ["\t0005:0004:001: \tadd.f ssa_5", "0079:0103:009: mov.u32u32", "0001:0000:XXX: nop"] {
            assert!(is_ir3_line(line) && !is_nir_line(line), "{line}");
        }
        for line in [
            "    con 32 %0 = load_const (0x0)",
            "div 32x2 %1 = vec2 %0, %0",
            "%3 = fadd %1, %2",
            "  block b0:",
            "vec1 32 ssa_3 = fadd ssa_1, ssa_2",
        ] {
            assert!(is_nir_line(line) && !is_ir3_line(line), "{line}");
        }
        for line in ["0000:0000[03000000x_00000000x] end", "100 % = 3", "add.f r0.x, r0.y, r0.z", ""] {
            assert!(!is_nir_line(line) && !is_ir3_line(line), "{line}");
        }
    }

    #[test]
    fn undefined_values_have_the_sizes_of_their_uses() {
        let lines = [
            "    div 32 %3 = fadd %1.x, %1.z",
            "  1 %4 = flt %2, %3",
            "16x2 %5 = fmul %6, %6",
            "32 %7 = bcsel %8, %3, %9",
        ]
        .map(str::to_owned);
        let expected = [(1, (32, 3)), (2, (32, 1)), (6, (16, 2)), (8, (1, 1)), (9, (32, 1))];
        assert_eq!(undefined(&lines), expected.into());
    }

    #[test]
    fn versions_are_named_by_their_signs() {
        let old = old_ir3("a\n0079:0103:009: mov.u32u32 r1.w, r0.x, right=_[0080:0104:009: mov.u32u32]\n");
        assert_eq!(old.map(|it| (it.line, it.column, it.version)), Some((2, 39, "Mesa 20 (2020)")));
        assert_eq!(old_ir3("block0 {\n0001:0000:000: nop\n}\n"), None);
    }
}
