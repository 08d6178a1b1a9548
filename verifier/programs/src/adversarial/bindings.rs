//! Pairs about descriptors: another set or another index is another buffer.

use super::PairPlan;
use super::shader::Shader;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, Op};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// A buffer, named by a set and an index, or by its index alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    set: Option<u8>,
    index: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferAccess {
    /// Adds a word of a buffer to the sum.
    Load(Buffer),
    /// Stores a constant in a row of a buffer that no other statement stores to.
    Store(Buffer, u8),
}

/// A list of accesses; the sum is stored at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bindings {
    list: Vec<BufferAccess>,
}

/// Draws from few sets, and from indices that collide when a set and an index are combined by a sum.
fn buffer(random: &mut Random) -> Buffer {
    let set = random.chance(80).then(|| random.below(3) as u8);
    Buffer { set, index: [0, 1, 2, 64, 65, 128][random.below(6)] }
}

impl PairPlan for Bindings {
    fn random(random: &mut Random) -> Self {
        let count = 2 + random.below(3);
        let statement = |random: &mut Random, row: u8| match random.below(3) {
            0 => BufferAccess::Store(buffer(random), row),
            _ => BufferAccess::Load(buffer(random)),
        };
        Self { list: (0..count as u8).map(|row| statement(random, row)).collect() }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let at = random.below(self.list.len());
        if at + 1 < self.list.len() && random.chance(30) {
            self.list.swap(at, at + 1);
            return Some("two accesses swapped");
        }
        let (BufferAccess::Load(of) | BufferAccess::Store(of, _)) = &mut self.list[at];
        let before = *of;
        *of = match (random.below(4), before) {
            (0 | 1, Buffer { set: Some(set), index }) if index >= 64 => {
                Buffer { set: Some(set + index / 64), index: index % 64 }
            }
            (0, Buffer { set: Some(set), index }) if set > 0 => Buffer { set: Some(set - 1), index: index + 64 },
            (2, Buffer { set: Some(set), index }) => Buffer { set: None, index: index.wrapping_add(64 * set) },
            _ => buffer(random),
        };
        Some("another descriptor")
    }

    /// True if one load reads another buffer and no other access names either buffer: some environment has different
    /// words in them.
    fn differs(&self, target: &Self) -> bool {
        let buffer = |statement: &BufferAccess| match *statement {
            BufferAccess::Load(of) | BufferAccess::Store(of, _) => of,
        };
        let mut changed = self.list.iter().zip(&target.list).filter(|(a, b)| a != b);
        let (Some((BufferAccess::Load(before), BufferAccess::Load(after))), None) = (changed.next(), changed.next())
        else {
            return false;
        };
        let uses = |of: &Buffer| self.list.iter().filter(|statement| buffer(statement) == *of).count();
        before != after && uses(before) == 1 && uses(after) == 0
    }

    fn program(&self, _: &Target) -> Option<Snapshot> {
        let mut s = Shader::compute(64);
        let lane = s.lane();
        let mut sum = s.number(0);
        let descriptor = |s: &mut Shader, buffer: Buffer| -> Def {
            let index = s.number(buffer.index.into());
            match buffer.set {
                None => index,
                Some(set) => s.get(IntrinsicOp::BindlessResourceIr3, (1, 32), &[index], [Index::DescSet(set.into())]),
            }
        };
        for statement in &self.list {
            match *statement {
                BufferAccess::Load(buffer) => {
                    let buffer = descriptor(&mut s, buffer);
                    let word = s.load(buffer, lane);
                    let doubled = s.with(Op::Ishl, sum, 1);
                    sum = s.b.alu(Op::Iadd, &[doubled, word]);
                }
                BufferAccess::Store(buffer, row) => {
                    let buffer = descriptor(&mut s, buffer);
                    let (row, value) = (s.number(u64::from(row) * 64), s.number(row.into()));
                    let at = s.b.alu(Op::Iadd, &[row, lane]);
                    s.store(buffer, at, value);
                }
            }
        }
        let out = descriptor(&mut s, Buffer { set: Some(4), index: 9 });
        s.store(out, lane, sum);
        s.finish()
    }
}
