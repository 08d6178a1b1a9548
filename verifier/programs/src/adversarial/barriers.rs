//! Pairs about the shared memory of a workgroup of two waves: a barrier is removed or added, an access moves across
//! one.

use super::PairPlan;
use super::shader::Shader;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, MemoryModes, MemorySemantics, Op, Scope};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// The lanes of the workgroup: two waves.
const LANES: u32 = 128;

/// The word of shared memory that an access addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SharedWord {
    /// The lane's own word.
    Own,
    /// The word of a lane of the other wave.
    OtherWave,
    /// The word of a lane of the same wave.
    OtherLane,
    /// A second word of the same lane.
    Second,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarrierStatement {
    Store(SharedWord, u8),
    /// Adds a word to the sum.
    Load(SharedWord),
    Barrier,
}

/// A list of accesses and barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Barriers {
    list: Vec<BarrierStatement>,
}

impl PairPlan for Barriers {
    fn random(random: &mut Random) -> Self {
        // Only its own lane writes a word, so a barrier between two accesses is enough to make a program free of races.
        let mut list = vec![BarrierStatement::Store(SharedWord::Own, 1)];
        for i in 0..2 + random.below(3) {
            if random.chance(70) {
                list.push(BarrierStatement::Barrier);
            }
            list.push(match random.below(3) {
                0 => BarrierStatement::Store([SharedWord::Own, SharedWord::Second][random.below(2)], 2 + i as u8),
                _ => BarrierStatement::Load(
                    [SharedWord::Own, SharedWord::OtherWave, SharedWord::OtherLane, SharedWord::OtherWave]
                        [random.below(4)],
                ),
            });
        }
        Self { list }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let at = random.below(self.list.len());
        match (random.below(5), self.list[at]) {
            (0 | 1, BarrierStatement::Barrier) => {
                self.list.remove(at);
                Some("a barrier removed")
            }
            (0, _) => {
                self.list.insert(at, BarrierStatement::Barrier);
                Some("a barrier added")
            }
            (1, BarrierStatement::Store(place, value)) => {
                self.list[at] = BarrierStatement::Store(place, value + 1);
                Some("another value")
            }
            (2, BarrierStatement::Load(_)) => {
                self.list[at] = BarrierStatement::Load(
                    [SharedWord::Own, SharedWord::OtherWave, SharedWord::OtherLane][random.below(3)],
                );
                Some("another word")
            }
            _ if at + 1 < self.list.len() => {
                let name = match (self.list[at], self.list[at + 1]) {
                    (BarrierStatement::Barrier, _) | (_, BarrierStatement::Barrier) => "moved over a barrier",
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
        let place = |s: &mut Shader, place: SharedWord| -> Def {
            match place {
                SharedWord::Own => lane,
                SharedWord::OtherWave => s.with(Op::Ixor, lane, 64),
                SharedWord::OtherLane => s.with(Op::Ixor, lane, 5),
                SharedWord::Second => s.with(Op::Iadd, lane, LANES.into()),
            }
        };
        for statement in &self.list {
            match *statement {
                BarrierStatement::Store(at, value) => {
                    let value = s.with(Op::Iadd, loaded, value.into());
                    let at = place(&mut s, at);
                    s.store_shared(at, value);
                }
                BarrierStatement::Load(at) => {
                    let at = place(&mut s, at);
                    let word = s.load_shared(at);
                    let tripled = s.with(Op::Ishl, sum, 1);
                    sum = s.b.alu(Op::Iadd, &[tripled, word]);
                }
                BarrierStatement::Barrier => {
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
