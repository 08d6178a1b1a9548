//! Liveness of predicates, along the logical edges.

use super::Error;
use super::survey::Survey;
use crate::ir3::liveness::{LiveSets, Use};
use crate::ir3::{Program, RegFile, Value};

/// Computes the predicates that are live at the starts of blocks.
///
/// # Errors
/// If a predicate is read at a point where it is not defined.
pub fn run(program: &Program, survey: &Survey) -> Result<LiveSets<Value>, Error> {
    let mut uses: Vec<Use<Value>> = Vec::new();
    for &block in &survey.order {
        for op in &survey.ops[survey.range(block)] {
            for src in program.instrs[op.instr].srcs.iter().filter(|src| src.class.file == RegFile::Predicate) {
                uses.extend(src.value().map(|entity| Use { entity, block, at_end: false }));
            }
        }
    }
    let def = |value: Value| survey.def_block[value].expand();
    let live = LiveSets::new(program, uses, def, |block| &program.blocks[block].predecessors);
    match live.live_in(program.entry()).first() {
        None => Ok(live),
        Some(value) => Err(Error::Malformed { what: format!("{value} is read where it is not defined") }),
    }
}
