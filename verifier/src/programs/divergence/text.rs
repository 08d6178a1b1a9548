//! ir3 in Mesa's text, from the instructions of each block and where lanes go behind it.

use std::fmt::Write as _;

/// A compute shader with so many bytes of scratch memory: of each block its instructions, a line each, and the numbers, from 1 on, of the blocks
/// behind it (the one where the predicate holds first).
#[must_use]
pub fn compute_shader<T: AsRef<str>, B: AsRef<[usize]>>(scratch: u32, blocks: &[(T, B)]) -> String {
    let mut out = "// {stage=compute}\n".to_owned();
    if scratch > 0 {
        let _ = writeln!(out, "// {{scratch={scratch}}}");
    }
    let names = |blocks: &[usize]| blocks.iter().map(|n| format!("block{n}")).collect::<Vec<_>>().join(", ");
    let mut number = 0;
    for (block, (instructions, behind)) in (1..).zip(blocks) {
        let _ = writeln!(out, "block{block} {{");
        let leads_here = |from: &usize| blocks[from - 1].1.as_ref().contains(&block);
        let before: Vec<usize> = (1..=blocks.len()).filter(leads_here).collect();
        if !before.is_empty() {
            let before = names(&before);
            let _ = writeln!(out, "\tpred: {before}\n\tphysical pred: {before}");
        }
        let mut last = "";
        for instruction in instructions.as_ref().lines().map(str::trim).filter(|line| !line.is_empty()) {
            number += 1;
            let _ = writeln!(out, "\t{number:04}:{number:04}:000: \t{instruction}");
            last = instruction;
        }
        if !behind.as_ref().is_empty() {
            let to = names(behind.as_ref());
            let votes = last.starts_with("bany") || last.starts_with("ball");
            let way = if behind.as_ref().len() > 1 && !votes { " (div)" } else { "" };
            let _ = writeln!(out, "\t/* succs: {to}{way} */\n\t/* physical succs: {to} */");
        }
        out.push_str("}\n");
    }
    out
}
