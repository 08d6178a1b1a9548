//! Killed lanes that go on as helper lanes.
//!
//! In our model `kill` ends a lane for derivatives, too, as nir's `terminate` does; Mesa's schedulers move samples over
//! a `kill`, both ways (docs/semantics.md, killed lanes). From a6xx on `kill` and `demote` are one word, so a killed
//! lane of the hardware is a helper lane, whose values samples and derivatives of its quad read. Two programs of ir3
//! are compared with this meaning. After nir, whose `terminate` leaves those samples undefined, a boundary is compared
//! with the stricter meaning first, and with that of the hardware if it is refuted.
//!
//! It is undocumented whether killed lanes take part in votes and in reads of other lanes. A program that has any of
//! them, in the same order with its kills on both sides, passes only with both meanings.

use super::boundary::ir3_of;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::{Opcode, Program};
use ir3_compiler::target::{Generation, Target};
use ir3_semantics::Snapshot;

/// The two programs with each `kill` as a `demote`.
pub(super) struct AsHelpers {
    pub before: Snapshot,
    pub after: Snapshot,
    /// Something depends on which lanes are active: that both programs mean the same shows nothing.
    pub counts_lanes: bool,
}

/// The two programs with each `kill` as a `demote`. `None` if there is none in the program after, before a6xx, where it
/// is undocumented that killed lanes are helper lanes, and where a pass has moved votes over kills, or reads of other
/// lanes.
pub(super) fn as_helpers(before: ProgramRef<'_>, after: ProgramRef<'_>, target: &Target) -> Option<AsHelpers> {
    if target.generation < Generation::A6xx || !ir3_of(after).is_some_and(kills) {
        return None;
    }
    let orders = [before, after].map(|side| ir3_of(side).map(order));
    if let [Some(first), Some(second)] = &orders
        && first != second
        && orders.iter().flatten().any(|order| order.iter().any(|&opcode| opcode != Opcode::Kill))
    {
        return None;
    }
    let counts_lanes = orders.iter().flatten().flatten().any(|&opcode| opcode != Opcode::Kill);
    Some(AsHelpers { before: demoting(before), after: demoting(after), counts_lanes })
}

fn kills(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Kill)
}

/// The kills, votes, elections and reads of other lanes after the preamble, as the text has them; between two kills by
/// name, as the same lanes are active there.
fn order(program: &Program) -> Vec<Opcode> {
    use Opcode::{
        AllMacro, AnyMacro, Ball, BallotMacro, Bany, BrcstActive, ElectMacro, Getlast, Getone, Kill, Movmsk,
        ReadCondMacro, ReadFirstMacro, ReadGetlastMacro, ScanClustersMacro, ScanMacro, Shfl, Shpe,
    };
    let mut opcodes: Vec<Opcode> = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode).collect();
    if let Some(end) = opcodes.iter().rposition(|&opcode| opcode == Shpe) {
        opcodes.drain(..=end);
    }
    opcodes.retain(|opcode| {
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
                | Kill
                | Movmsk
                | ReadCondMacro
                | ReadFirstMacro
                | ReadGetlastMacro
                | ScanClustersMacro
                | ScanMacro
                | Shfl
        )
    });
    for between in opcodes.split_mut(|&opcode| opcode == Kill) {
        between.sort_unstable_by_key(|opcode| opcode.name());
    }
    opcodes
}

/// Returns a program with each `kill` as a `demote`.
fn demoting(side: ProgramRef<'_>) -> Snapshot {
    let mut side = Snapshot::from(side);
    let Snapshot::Ir3(program) = &mut side else { return side };
    for data in program.instrs.values_mut().filter(|data| data.opcode == Opcode::Kill) {
        data.opcode = Opcode::Demote;
    }
    side
}

#[cfg(test)]
mod tests {
    use super::order;
    use ir3_semantics::machine::program_of_blocks;

    #[test]
    fn reads_of_lanes_keep_their_side_of_a_kill() {
        let order = |lines: &[&str]| order(&program_of_blocks(&[(lines, "")]));
        let [any, all] = ["any.macro.f32f16 hr0.x, pp0.x", "all.macro.f32f16 hr0.y, pp0.x"];
        let kill = "kill pp0.x";
        let before = order(&[any, all, kill, "end"]);
        assert_eq!(order(&[all, any, kill, "end"]), before);
        assert_ne!(order(&[any, kill, all, "end"]), before);
    }
}
