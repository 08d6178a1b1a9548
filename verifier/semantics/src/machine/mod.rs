//! Time on the machine: the unit that executes an instruction, and the time at which its results are available.
//!
//! The hazard checker proves with these rules that a program waits as long as it has to, and the machine of the
//! interpreter makes values undefined that are read too early.

pub mod arrays;
pub mod consts;
pub mod rules;
pub mod steps;
pub mod units;

/// A program of blocks, for tests: each is its lines, and its successors.
///
/// # Panics
/// If a line is not ir3.
pub fn program_of_blocks(list: &[(&[&str], &str)]) -> ir3_compiler::ir3::Program {
    let mut out = String::new();
    let mut serial = 0;
    for (i, (lines, succs)) in list.iter().enumerate() {
        out += &format!("block{i} {{\n");
        for line in *lines {
            serial += 1;
            out += &format!("\t{serial:04}:0000:000: \t{line}\n");
        }
        if !succs.is_empty() {
            out += &format!("\t/* succs: {succs} */\n");
        }
        out += "}\n";
    }
    // The reader wants both directions of an edge from no text, so edges are those of successors.
    ir3_compiler::ir3::text::read(&out).unwrap_or_else(|error| panic!("{error}\n{out}"))
}
