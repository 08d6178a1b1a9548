//! Killed lanes that go on as helper lanes.
//!
//! In our model `kill` ends a lane for derivatives, too, as nir's `terminate` does; Mesa's schedulers move samples over a `kill`, both ways
//! (docs/semantics.md, killed lanes). From a6xx on `kill` and `demote` are one word, so a killed lane of the hardware is a helper lane.
//! A boundary that is refuted with the stricter meaning is checked once more with that of the hardware.

use crate::semantics::Snapshot;
use ir3_compiler::ir3::{Opcode, Program};
use ir3_compiler::target::{Generation, Target};

/// The two programs with each `kill` as a `demote`. `None` if there is none in the program after, or more than samples may depend on
/// killed lanes: they must not count as voters, and before a6xx nothing says that they are helper lanes.
pub(super) fn as_helpers(before: &Snapshot, after: &Snapshot, target: &Target) -> Option<(Snapshot, Snapshot)> {
    if target.generation < Generation::A6xx || !after.as_ir3().is_some_and(kills) {
        return None;
    }
    let depends = [before, after].iter().filter_map(|side| side.as_ir3()).any(counts_lanes);
    (!depends).then(|| (demoting(before), demoting(after)))
}

fn kills(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Kill)
}

/// Returns true if a vote, an election or a read of another lane depends on which lanes are active, after the preamble.
fn counts_lanes(program: &Program) -> bool {
    use Opcode::{
        AllMacro, AnyMacro, Ball, BallotMacro, Bany, BrcstActive, ElectMacro, Getlast, Getone, Movmsk, ReadCondMacro,
        ReadFirstMacro, ReadGetlastMacro, ScanClustersMacro, ScanMacro, Shfl, Shpe,
    };
    let mut opcodes: Vec<Opcode> = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode).collect();
    if let Some(end) = opcodes.iter().rposition(|&opcode| opcode == Shpe) {
        opcodes.drain(..=end);
    }
    opcodes.iter().any(|opcode| {
        matches!(
            opcode,
            AllMacro
                | AnyMacro
                | Ball
                | BallotMacro
                | Bany
                | BrcstActive
                | ElectMacro
                | Getlast
                | Getone
                | Movmsk
                | ReadCondMacro
                | ReadFirstMacro
                | ReadGetlastMacro
                | ScanClustersMacro
                | ScanMacro
                | Shfl
        )
    })
}

fn demoting(side: &Snapshot) -> Snapshot {
    let Some(program) = side.as_ir3() else { return side.clone() };
    let mut program = program.clone();
    for data in program.instrs.values_mut().filter(|data| data.opcode == Opcode::Kill) {
        data.opcode = Opcode::Demote;
    }
    Snapshot::Ir3(Box::new(program))
}
