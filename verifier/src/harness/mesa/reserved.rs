//! What a driver reserves for a program, beside what its code uses.
//!
//! Mesa prints what it tells the driver: registers, the part of the constant file that is loaded, scratch and shared memory, the branch stack
//! (checked with the hazards). Too much costs speed. With too little, the registers or the memory of another wave are
//! written, and no run or proof of the program alone shows it.

use super::recover::scratch;
use crate::harness::check::final_code;
use crate::programs::mesa::{Statistics, mesa_counts};
use ir3_compiler::ir3::Program;
use ir3_compiler::stats::const_vectors;
use ir3_compiler::target::Target;

/// The first thing of which a final program uses more than Mesa says in its statistics: `full registers: 14 used, 12 reserved`.
pub(super) fn exceeded(program: &Program, said: &Statistics, target: &Target) -> Option<String> {
    let (plain, ..) = final_code(program).ok()?;
    let counted = mesa_counts(&plain, target);
    let figures = [
        ("full registers", u64::from(counted.full), said.get("full")),
        ("half registers", u64::from(counted.half), said.get("half")),
        ("vectors of constants", u64::from(const_vectors(&plain)), said.get("constlen")),
    ];
    let of_waves = said.waves.map(|waves| {
        [
            ("bytes of scratch memory", u64::from(scratch::accessed(program)), waves.pvtmem_size.map(u64::from)),
            ("bytes of shared memory", u64::from(program.shared_size), waves.shared_size.map(u64::from)),
        ]
    });
    let beyond = |(what, used, said): (&str, u64, Option<u64>)| {
        let said = said.filter(|&said| used > said)?;
        Some(format!("{what}: {used} used, {said} reserved"))
    };
    figures.into_iter().chain(of_waves.into_iter().flatten()).find_map(beyond)
}
