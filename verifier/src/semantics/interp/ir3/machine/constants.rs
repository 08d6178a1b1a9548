//! Words of the constant file that are being written: who reads them waits, and the preamble does not end before they are there.
//!
//! These are the rules of `prove::hazards` on the path of one run. Which word is read is not looked at beyond what the code says of it.

use crate::semantics::interp::UndefinedReason;
use crate::semantics::machine::rules::ConstWrite;
use crate::semantics::machine::steps::Step;
use ir3_compiler::ir3::Opcode;

/// The writes of a wave that are not known to be there.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstWrites {
    /// One that an `(ss)` waits for.
    until_ss: bool,
    /// One that is there after the end of the preamble.
    of_preamble: bool,
}

impl ConstWrites {
    /// Executes an instruction; returns the rule that it breaks.
    pub fn step(&mut self, step: &Step) -> Option<UndefinedReason> {
        self.until_ss &= !step.ss;
        let ends_preamble = step.opcode == Opcode::Shpe;
        let is_early = step.reads_consts && self.until_ss
            || step.reads_written_consts && self.of_preamble
            || ends_preamble && self.of_preamble && !(step.ss && step.sy);
        self.of_preamble &= !ends_preamble;
        self.until_ss |= step.const_write == ConstWrite::Ss;
        self.of_preamble |= step.const_write == ConstWrite::Preamble;
        is_early.then_some(UndefinedReason::Constants)
    }
}
