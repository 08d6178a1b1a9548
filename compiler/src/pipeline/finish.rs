//! The stages after register allocation, which make a final program.
//!
//! They are not rows of the pipeline yet: its engines follow programs up to `lower-samgq`. In order:
//!
//! 1. `repeat`: adjacent instructions become one with `(rptN)`.
//! 2. `post-schedule`: the instructions of each block are ordered again, with registers.
//! 3. `lower-subgroups`: macros become control flow.
//! 4. `legalize`: branches, waits and nops.
//!
//! Repetitions come first: a group stays together in the new order.

use crate::ir3::Program;
use crate::target::Target;
use crate::{legalize, lower_subgroups, repeat, schedule};

/// A pass on a program with registers.
#[derive(Clone, Copy, Debug)]
pub struct FinalPass {
    /// Its name in file tests.
    pub name: &'static str,
    /// Changes the program.
    pub run: fn(&mut Program, &Target),
}

/// The passes in their order.
pub const FINAL_PASSES: [FinalPass; 4] = [
    FinalPass { name: "repeat", run: repeat::run },
    FinalPass {
        name: "post-schedule",
        run: |program, target| {
            schedule::after::remove_self_moves(program);
            schedule::after::run(program, target);
        },
    },
    FinalPass {
        name: "lower-subgroups",
        run: |program, _| {
            if lower_subgroups::is_needed(program) {
                lower_subgroups::run(program);
            }
        },
    },
    FinalPass { name: "legalize", run: legalize::run },
];

/// Makes a final program of what the last stage of the pipeline returns.
pub fn finish(program: &mut Program, target: &Target) {
    FINAL_PASSES.iter().for_each(|pass| (pass.run)(program, target));
}
