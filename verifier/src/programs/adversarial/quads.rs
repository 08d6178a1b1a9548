//! Samples with implicit derivatives: they read the coordinates of the whole quad, so who else is there matters.

use super::Plan;
use super::shader::Shader;
use crate::semantics::Snapshot;
use crate::support::random::Random;
use ir3_compiler::nir::{IntrinsicOp, Op, TexOp, TexSrcKind};
use ir3_compiler::target::Target;

/// Where the sample stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the branch.
    Before,
    /// In the arm that needs it.
    Arm,
    /// After the branch.
    After,
}

/// What the sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The level of detail is that of the quad.
    Implicit,
    /// A bias on it.
    Biased,
    /// The level is given.
    Level,
    /// No sample, but a derivative.
    Derivative,
}

/// How lanes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Never,
    Terminate,
    Demote,
}

/// A sample and a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quads {
    kind: Kind,
    place: Place,
    /// The branch is the same for all lanes.
    uniform: bool,
    ends: Ends,
    /// Lanes end before the sample.
    ends_first: bool,
    texture: u8,
}

fn place(random: &mut Random) -> Place {
    [Place::Before, Place::Arm, Place::After][random.below(3)]
}

impl Plan for Quads {
    fn random(random: &mut Random) -> Self {
        Self {
            kind: [Kind::Implicit, Kind::Implicit, Kind::Biased, Kind::Level, Kind::Derivative][random.below(5)],
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
                self.kind = [Kind::Implicit, Kind::Biased, Kind::Level][random.below(3)];
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
                Kind::Implicit => s.sample(TexOp::Tex, self.texture.into(), [x, y], &[]),
                Kind::Biased => s.sample(TexOp::Txb, self.texture.into(), [x, y], &[(TexSrcKind::Bias, half)]),
                Kind::Level => s.sample(TexOp::Txl, self.texture.into(), [x, y], &[(TexSrcKind::Lod, half)]),
                Kind::Derivative => s.get(IntrinsicOp::Ddx, (1, 32), &[x], []),
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
        let before = (self.place == Place::Before).then(|| sample(&mut s));
        if !self.ends_first {
            end(&mut s);
        }
        s.b.begin_if(condition);
        let in_arm = if self.place == Place::Arm { sample(&mut s) } else { before.unwrap_or(x) };
        let yes = s.b.current_block();
        s.b.begin_else();
        let no = s.b.current_block();
        s.b.end_if();
        let mut result = s.b.phi(1, 32);
        s.b.set_phi_src(result, yes, in_arm);
        s.b.set_phi_src(result, no, y);
        if self.place == Place::After {
            let after = sample(&mut s);
            result = s.b.alu(Op::Bcsel, &[condition, after, y]);
        }
        s.output(result);
        s.finish()
    }
}
