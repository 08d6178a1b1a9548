//! Pairs about samples with implicit derivatives: they read the coordinates of the whole quad, so they depend on which
//! lanes are active.

use super::PairPlan;
use super::shader::Shader;
use ir3_compiler::nir::{IntrinsicOp, Op, TexOp, TexSrcKind};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// The position of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SamplePosition {
    /// The sample is before the branch.
    Before,
    /// The sample is in the arm that needs it.
    Arm,
    /// The sample is after the branch.
    After,
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleKind {
    /// A sample with the level of detail of the quad.
    Implicit,
    /// A sample with a bias on that level.
    Biased,
    /// A sample with an explicit level.
    Level,
    /// A derivative instead of a sample.
    Derivative,
}

/// The instruction by which lanes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Never,
    Terminate,
    Demote,
}

/// A sample and a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quads {
    kind: SampleKind,
    place: SamplePosition,
    /// The branch condition is uniform.
    uniform: bool,
    ends: Ends,
    /// Lanes end before the sample.
    ends_first: bool,
    texture: u8,
}

fn place(random: &mut Random) -> SamplePosition {
    [SamplePosition::Before, SamplePosition::Arm, SamplePosition::After][random.below(3)]
}

impl PairPlan for Quads {
    fn random(random: &mut Random) -> Self {
        Self {
            kind: [
                SampleKind::Implicit,
                SampleKind::Implicit,
                SampleKind::Biased,
                SampleKind::Level,
                SampleKind::Derivative,
            ][random.below(5)],
            place: place(random),
            uniform: random.chance(30),
            ends: [Ends::Never, Ends::Never, Ends::Terminate, Ends::Demote][random.below(4)],
            ends_first: random.chance(50),
            texture: random.below(2) as u8,
        }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let name = match random.below(6) {
            0..=2 => {
                self.place = place(random);
                "moved to another block"
            }
            3 => {
                self.ends_first = !self.ends_first;
                "moved over the end of lanes"
            }
            4 => {
                self.kind = [SampleKind::Implicit, SampleKind::Biased, SampleKind::Level][random.below(3)];
                "another kind of sample"
            }
            _ => {
                self.texture ^= 1;
                "another texture"
            }
        };
        Some(name)
    }

    fn program(&self, _: &Target) -> Option<Snapshot> {
        let mut s = Shader::fragment();
        let [x, y, z, w] = s.varying();
        let zero = s.b.float(0.0);
        let chosen = match self.uniform {
            false => z,
            true => {
                let at = s.number(0);
                s.load(at, at)
            }
        };
        let condition = s.b.alu(Op::Flt, &[chosen, zero]);
        let ends = s.b.alu(Op::Flt, &[w, zero]);
        let sample = |s: &mut Shader| {
            let half = s.b.float(0.5);
            match self.kind {
                SampleKind::Implicit => s.sample(TexOp::Tex, self.texture.into(), [x, y], &[]),
                SampleKind::Biased => s.sample(TexOp::Txb, self.texture.into(), [x, y], &[(TexSrcKind::Bias, half)]),
                SampleKind::Level => s.sample(TexOp::Txl, self.texture.into(), [x, y], &[(TexSrcKind::Lod, half)]),
                SampleKind::Derivative => s.get(IntrinsicOp::Ddx, (1, 32), &[x], []),
            }
        };
        let end = |s: &mut Shader| {
            let op = match self.ends {
                Ends::Never => return,
                Ends::Terminate => IntrinsicOp::TerminateIf,
                Ends::Demote => IntrinsicOp::DemoteIf,
            };
            s.b.intrinsic(op, 0, 0, &[ends], []);
        };
        if self.ends_first {
            end(&mut s);
        }
        let before = (self.place == SamplePosition::Before).then(|| sample(&mut s));
        if !self.ends_first {
            end(&mut s);
        }
        s.b.begin_if(condition);
        let in_arm = if self.place == SamplePosition::Arm { sample(&mut s) } else { before.unwrap_or(x) };
        let yes = s.b.current_block();
        s.b.begin_else();
        let no = s.b.current_block();
        s.b.end_if();
        let mut result = s.b.phi(1, 32);
        s.b.set_phi_src(result, yes, in_arm);
        s.b.set_phi_src(result, no, y);
        if self.place == SamplePosition::After {
            let after = sample(&mut s);
            result = s.b.alu(Op::Bcsel, &[condition, after, y]);
        }
        s.output(result);
        s.finish()
    }
}
