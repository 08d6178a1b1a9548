//! Assignment of registers that were chosen before the pass.
//!
//! The pass is the same: it rewrites operands, makes copies and moves values on edges. But each value has one place for
//! its whole life, so nothing is moved to free registers.

use super::{Assigner, Error, Settings};
use crate::arms::Counter;
use crate::ir3::{Program, Value};
use crate::regalloc::pressure::{Analysis, Pressure};
use crate::regalloc::step::Step;
use crate::target::{RegisterFiles, Target};
use cranelift_entity::SecondaryMap;

/// Places that are chosen before the pass: the first unit of each value for its whole life, and the files that they are
/// in.
pub struct FixedPlaces {
    /// The first unit of each value, in its file.
    pub places: SecondaryMap<Value, u16>,
    /// The size of the files. Arrays of full registers are stacked from the ends of these.
    pub files: RegisterFiles,
}

/// Assigns the registers that were chosen for a program.
///
/// # Errors
/// If the program has an operand that is not supported.
pub fn run_fixed(
    program: &mut Program,
    analysis: &Analysis,
    target: &Target,
    fixed: &FixedPlaces,
    pressure: &Pressure,
    counter: &Counter,
) -> Result<(), Error> {
    let mut step = Step::with_fixed_places(program);
    let settings = Settings { files: fixed.files, preferred: None, splitting: false };
    let mut assigner = Assigner::new(program, analysis, target, settings, pressure, Some(fixed), counter)?;
    for &block in &analysis.liveness.order {
        assigner.run_block(block, &mut step)?;
    }
    assigner.emit_last_copies();
    Ok(())
}
