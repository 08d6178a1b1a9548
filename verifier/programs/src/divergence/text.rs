//! Mesa's text form of ir3, from the instructions and the successors of each block.

use std::fmt::Write as _;

/// Writes a compute shader with `scratch` bytes of scratch memory. A block is given by its instructions, one on each
/// line, and its successors, numbered from 1 (the one where the predicate is true first).
#[must_use]
pub fn compute_shader<T: AsRef<str>, B: AsRef<[usize]>>(scratch: u32, blocks: &[(T, B)]) -> String {
    let mut out = "// {stage=compute}\n".to_owned();
    if scratch > 0 {
        let _ = writeln!(out, "// {{scratch={scratch}}}");
    }
    let names = |blocks: &[usize]| blocks.iter().map(|n| format!("block{n}")).collect::<Vec<_>>().join(", ");
    let mut number = 0;
    for (block, (instructions, successors)) in (1..).zip(blocks) {
        let _ = writeln!(out, "block{block} {{");
        let has_edge = |from: &usize| blocks[from - 1].1.as_ref().contains(&block);
        let before: Vec<usize> = (1..=blocks.len()).filter(has_edge).collect();
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
        if !successors.as_ref().is_empty() {
            let to = names(successors.as_ref());
            let votes = last.starts_with("bany") || last.starts_with("ball");
            let mark = if successors.as_ref().len() > 1 && !votes { " (div)" } else { "" };
            let _ = writeln!(out, "\t/* succs: {to}{mark} */\n\t/* physical succs: {to} */");
        }
        out.push_str("}\n");
    }
    out
}
