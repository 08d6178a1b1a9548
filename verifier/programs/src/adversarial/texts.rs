//! Pairs about contradictory texts: an instruction, and a comment that contradicts it. The reader must refuse such a
//! text or let the instruction count.
//!
//! A pair is a text, and the same text with an instruction changed but its comment kept.

use super::Made;
use crate::divergence::compute_shader;
use ir3_compiler::ir3::text;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// An arm of an if: it adds a constant to a component of the lane's number. The second component is always 0.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Arm {
    component: usize,
    adds: usize,
}

impl Arm {
    fn random(random: &mut Random) -> Self {
        Self { component: random.below(2), adds: random.below(8) }
    }

    /// The value that the arm computes in a lane.
    const fn value(self, lane: usize) -> usize {
        self.adds + if self.component == 0 { lane } else { 0 }
    }

    fn text(self) -> String {
        format!("add.u r1.x, r0.{}, {}\njump", ["x", "y"][self.component], number(self.adds))
    }
}

fn number(n: usize) -> String {
    format!("imm[0.000000,{n},{n:#x}]")
}

/// Makes a pair. `None` where the changed text is refused, as it should be.
pub(super) fn make(random: &mut Random, machine: &Target) -> Option<Made> {
    let Texts { change, before, after, differs } = texts(random);
    let [source, target] = [before, after].map(|text| {
        let program = text::read(&text).ok()?;
        validate(&program, machine, Form::of(&program)).is_ok().then(|| Snapshot::Ir3(Box::new(program)))
    });
    Some(Made { change, source: source?, target: target?, differs })
}

/// A text, and the same with a change.
struct Texts {
    change: &'static str,
    before: String,
    after: String,
    /// The programs differ if the instruction counts.
    differs: bool,
}

fn texts(random: &mut Random) -> Texts {
    let (yes, no) = (Arm::random(random), Arm::random(random));
    let (limit, first) = (1 + random.below(60), random.chance(50));
    let begin = format!(
        "_meta:in r0.x (wrmask=0x3) // {{input=local_invocation_id}}
        cmps.u.lt pp0.x, r0.x, {}
        br pp0.x",
        number(limit)
    );
    // Makes the result depend on reconvergence: all lanes take the value of the first active lane.
    let broadcast = if first { "read_first.macro.u32u32 sr48.x, r1.x\nmov.u32u32 r1.x, sr48.x\n" } else { "" };
    let zero = number(0);
    let buffer = "{type=u32, components=1, space=ssbo, coords=1}";
    let end = format!("{broadcast}stib {zero}, r0.x, {zero}, r1.x // {buffer}\nend");
    let blocks = [(begin, vec![2, 3]), (yes.text(), vec![4]), (no.text(), vec![4]), (end, vec![])];
    let before = compute_shader(0, &blocks).replace("block3 {", "(jp)block3 {").replace("block4 {", "(jp)block4 {");
    let after = |old: &str, new: &str| before.replacen(old, new, 1);
    let (at_first, at_limit) = (yes.value(0), no.value(limit));
    let (change, after, differs) = match random.below(5) {
        // All lanes run the second arm as well, if the instruction counts.
        0 => ("a jump removed", after("jump\n", "nop\n"), !first && yes != no && yes.value(0) != no.value(0)),
        1 => ("a branch removed", after("br pp0.x\n", "nop\n"), !first && at_limit != yes.value(limit)),
        2 => ("a vote for a branch", after("br pp0.x\n", "bany pp0.x\n"), !first && at_limit != yes.value(limit)),
        3 => ("an end removed", after("end\n", "nop\n"), true),
        // Lanes do not reconverge where the text has no reconvergence point.
        _ => ("a block less to wait in", after("(jp)block4", "block4"), first && at_first != at_limit),
    };
    Texts { change, before, after, differs }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unchanged text can be read. Many a changed text is refused.
    #[test]
    fn contradictions_are_refused() {
        let machine = Target::default();
        let mut refused = 0;
        for seed in 0..60 {
            assert!(text::read(&texts(&mut Random::new(seed)).before).is_ok());
            refused += u32::from(make(&mut Random::new(seed), &machine).is_none());
        }
        assert!(refused >= 20, "{refused}");
    }
}
