//! False dependencies on instructions that a pass has expanded.
//!
//! They order instructions for the schedulers, and mean nothing after them. `ir3_lower_subgroups` expands macros and
//! leaves their numbers in the lists of others (`movmsk …, false-deps:ssa_134`, where `ssa_134` was a `ballot.macro`).

use ir3_programs::mesa::{Section, SectionKind};
use std::borrow::Cow;
use std::collections::BTreeSet;

const LIST: &str = ", false-deps:";

/// The passes from the one that expands macros on.
const PASSES: [&str; 2] = ["ir3_lower_subgroups", "ir3_legalize"];

/// The text of a section, after macros are expanded without dependencies on instructions that it has not. Lines and
/// columns stay.
pub(super) fn without_expanded(section: &Section) -> Cow<'_, str> {
    match &section.kind {
        SectionKind::Ir3After { pass } if PASSES.contains(&&**pass) => without_missing(&section.text),
        _ => Cow::Borrowed(&section.text),
    }
}

fn without_missing(text: &str) -> Cow<'_, str> {
    let serial = |line: &str| line.trim_start().split_once(':').and_then(|(serial, _)| serial.parse::<u32>().ok());
    if !text.contains(LIST) {
        return Cow::Borrowed(text);
    }
    let known: BTreeSet<u32> = text.lines().filter_map(serial).collect();
    let is_known = |name: &str| {
        let number = name.trim().strip_prefix("ssa_").and_then(|number| number.parse().ok());
        // The reader reports entries that are not numbers.
        number.is_none_or(|number| known.contains(&number))
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let Some((instr, list)) = line.split_once(LIST) else {
            out.push_str(line);
            continue;
        };
        let names: Vec<&str> = list.trim_end().split(", ").filter(|name| is_known(name)).collect();
        out.push_str(instr);
        if !names.is_empty() {
            out.push_str(LIST);
            out.push_str(&names.join(", "));
        }
        out.push_str(&list[list.trim_end().len()..]);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::without_missing;

    #[test]
    fn only_what_is_there_is_named() {
        let text = "block1 {\n\t0001:0000:000: \tnop\n\t0002:0001:000: \tmovmsk sr52.z, false-deps:ssa_134, ssa_1\n\t0003:0002:000: \tend, false-deps:ssa_134\n}\n";
        let rest = "block1 {\n\t0001:0000:000: \tnop\n\t0002:0001:000: \tmovmsk sr52.z, false-deps:ssa_1\n\t0003:0002:000: \tend\n}\n";
        assert_eq!(without_missing(text), rest);
        assert_eq!(without_missing(rest), rest);
        // The reader reports the error in it.
        let broken = "\t0001:0000:000: \tnop, false-deps:x\n";
        assert_eq!(without_missing(broken), broken);
    }
}
