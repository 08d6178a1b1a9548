//! Shared memory of a workgroup of two waves: barriers that are removed, added, and accesses moved over them.

use super::Plan;
use super::shader::Shader;
use crate::semantics::Snapshot;
use crate::support::random::Random;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, MemoryModes, MemorySemantics, Op, Scope};
use ir3_compiler::target::Target;

/// Lanes: two waves.
const LANES: u32 = 128;

/// Where in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The lane's own word.
    Own,
    /// The word of a lane of the other wave.
    OtherWave,
    /// The word of a lane of the same wave.
    OtherLane,
    /// A second word of the lane.
    Second,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    Store(Place, u8),
    /// Adds a word to the sum.
    Load(Place),
    Barrier,
}

/// A list of accesses and barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Barriers {
    list: Vec<Statement>,
}

impl Plan for Barriers {
    fn random(random: &mut Random) -> Self {
        // Words are written by their own lanes only, so a barrier on either side makes a program without races.
        let mut list = vec![Statement::Store(Place::Own, 1)];
        for i in 0..2 + random.below(3) {
            if random.chance(70) {
                list.push(Statement::Barrier);
            }
            list.push(match random.below(3) {
                0 => Statement::Store([Place::Own, Place::Second][random.below(2)], 2 + i as u8),
                _ => {
                    Statement::Load([Place::Own, Place::OtherWave, Place::OtherLane, Place::OtherWave][random.below(4)])
                }
            });
        }
        Self { list }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let at = random.below(self.list.len());
        match (random.below(5), self.list[at]) {
            (0 | 1, Statement::Barrier) => {
                self.list.remove(at);
                Some("a barrier removed")
            }
            (0, _) => {
                self.list.insert(at, Statement::Barrier);
                Some("a barrier added")
            }
            (1, Statement::Store(place, value)) => {
                self.list[at] = Statement::Store(place, value + 1);
                Some("another value")
            }
            (2, Statement::Load(_)) => {
                self.list[at] = Statement::Load([Place::Own, Place::OtherWave, Place::OtherLane][random.below(3)]);
                Some("another word")
            }
            _ if at + 1 < self.list.len() => {
                let name = match (self.list[at], self.list[at + 1]) {
                    (Statement::Barrier, _) | (_, Statement::Barrier) => "moved over a barrier",
                    _ => "two accesses swapped",
                };
                self.list.swap(at, at + 1);
                Some(name)
            }
            _ => None,
        }
    }

    fn program(&self, _: &Target) -> Option<Snapshot> {
        let mut s = Shader::compute(LANES);
        s.b.shader_mut().info.shared_size = 2 * 4 * LANES;
        let lane = s.lane();
        let from = s.number(0);
        let loaded = s.load(from, lane);
        let mut sum = s.number(0);
        let place = |s: &mut Shader, place: Place| -> Def {
            match place {
                Place::Own => lane,
                Place::OtherWave => s.with(Op::Ixor, lane, 64),
                Place::OtherLane => s.with(Op::Ixor, lane, 5),
                Place::Second => s.with(Op::Iadd, lane, LANES.into()),
            }
        };
        for statement in &self.list {
            match *statement {
                Statement::Store(at, value) => {
                    let value = s.with(Op::Iadd, loaded, value.into());
                    let at = place(&mut s, at);
                    s.store_shared(at, value);
                }
                Statement::Load(at) => {
                    let at = place(&mut s, at);
                    let word = s.load_shared(at);
                    let tripled = s.with(Op::Ishl, sum, 1);
                    sum = s.b.alu(Op::Iadd, &[tripled, word]);
                }
                Statement::Barrier => {
                    let indices = [
                        Index::ExecutionScope(Scope::Workgroup),
                        Index::MemoryScope(Scope::Workgroup),
                        Index::MemorySemantics(MemorySemantics::ACQUIRE | MemorySemantics::RELEASE),
                        Index::MemoryModes(MemoryModes::SHARED),
                    ];
                    s.b.intrinsic(IntrinsicOp::Barrier, 0, 0, &[], indices);
                }
            }
        }
        let out = s.number(1);
        s.store(out, lane, sum);
        s.finish()
    }
}
