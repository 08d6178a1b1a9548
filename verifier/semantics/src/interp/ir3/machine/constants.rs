//! Words of the constant file that are being written: readers wait, and the preamble does not end before they are
//! available.
//!
//! These are the rules of `prove::hazards` on the path of one run. Words that the code does not name, of a write or of
//! a read relative to an address, are not looked at.

use crate::interp::UndefinedReason;
use crate::machine::rules::{ConstWrite, Wait};
use crate::machine::steps::Step;
use ir3_compiler::ir3::Opcode;
use smallvec::SmallVec;
use std::ops::Range;

/// The writes of a wave that are not known to be there.
#[derive(Clone, Debug, Default)]
pub struct ConstWrites {
    /// One that is available after the end of the preamble.
    of_preamble: bool,
    /// The words of those, with the flags that wait for them before.
    words: SmallVec<[(Range<u32>, Wait); 4]>,
}

impl ConstWrites {
    /// Executes an instruction that names some words; returns the rule that it breaks.
    pub fn step(&mut self, step: &Step, reads: &[Range<u32>]) -> Option<UndefinedReason> {
        self.words.retain(|(_, wait)| !(step.ss && *wait == Wait::Ss || step.sy && *wait == Wait::Sy));
        let ends_preamble = step.opcode == Opcode::Shpe;
        let is_written =
            |read: &Range<u32>| self.words.iter().any(|(word, _)| word.start < read.end && read.start < word.end);
        let is_early = reads.iter().any(is_written) || ends_preamble && self.of_preamble && !(step.ss && step.sy);
        if ends_preamble {
            self.of_preamble = false;
            self.words.clear();
        }
        if let ConstWrite::Preamble(wait) = step.const_write {
            self.of_preamble = true;
            let words = (step.const_words.clone(), wait);
            if !step.const_words.is_empty() && !self.words.contains(&words) {
                self.words.push(words);
            }
        }
        is_early.then_some(UndefinedReason::Constants)
    }
}
