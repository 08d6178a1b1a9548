//! Pairs about subgroup votes at the ends of blocks without instructions: such a block begins at the point where the
//! previous one begins.

use super::PairPlan;
use crate::divergence::compute_shader;
use ir3_compiler::ir3::text;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// The condition on which a block branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchTest {
    Own,
    Any,
    All,
}

/// A block that ends in a branch. Blocks are numbered in layout order: the branching ones first, then the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decision {
    test: BranchTest,
    /// The predicate register, by its component.
    predicate: u8,
    yes: usize,
    no: usize,
    /// The constant that the block adds to a register first.
    adds: Option<u8>,
}

/// A tree of branches; each leaf stores a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Votes {
    /// A predicate is true where its value is less than its limit.
    limits: [u8; 2],
    decisions: Vec<Decision>,
    leaves: Vec<u8>,
}

fn test(random: &mut Random) -> BranchTest {
    [BranchTest::Own, BranchTest::Any, BranchTest::Any, BranchTest::All, BranchTest::All][random.below(5)]
}

impl PairPlan for Votes {
    fn random(random: &mut Random) -> Self {
        let count = 2 + random.below(3);
        let leaves = 2 + random.below(3);
        let decisions = (0..count)
            .map(|at| {
                // Successors come later in the layout. The two successors of a branch are different.
                let to = |random: &mut Random| {
                    if at + 1 < count && random.chance(60) {
                        at + 1
                    } else {
                        at + 1 + random.below(count + leaves - at - 1)
                    }
                };
                let (yes, no) = (to(random), to(random));
                let no = if yes == no { count + random.below(leaves) } else { no };
                let adds = random.chance(20).then(|| 1 + random.below(3) as u8);
                Decision { test: test(random), predicate: random.below(2) as u8, yes, no, adds }
            })
            .collect();
        let limits = [1 + random.below(4) as u8, 1 + random.below(4) as u8];
        Self { limits, decisions, leaves: (1..=leaves as u8).collect() }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let at = random.below(self.decisions.len());
        let decision = &mut self.decisions[at];
        let name = match random.below(6) {
            0 | 1 => {
                let leaf = random.below(self.leaves.len());
                self.leaves[leaf] = 7;
                "another constant"
            }
            2 => {
                decision.test = test(random);
                "another vote"
            }
            3 => {
                decision.predicate ^= 1;
                "another predicate"
            }
            4 => {
                std::mem::swap(&mut decision.yes, &mut decision.no);
                "successors swapped"
            }
            _ => {
                decision.adds = if decision.adds.is_some() { None } else { Some(0) };
                "an instruction in a block"
            }
        };
        Some(name)
    }

    fn program(&self, machine: &Target) -> Option<Snapshot> {
        let number = |n: u8| format!("imm[0.000000,{n},{n:#x}]");
        let buffer = "{type=u32, components=1, space=ssbo, coords=1}";
        let (zero, one) = (number(0), number(1));
        let mut blocks: Vec<(String, Vec<usize>)> = Vec::new();
        for (at, decision) in self.decisions.iter().enumerate() {
            let mut lines = String::new();
            if at == 0 {
                // Both values are the sum of a value that all lanes have in common and of a bit of the lane's number.
                lines = format!(
                    "_meta:in r0.x (wrmask=0x3) // {{input=local_invocation_id}}
                    mov.u32u32 r0.z, {zero}
                    mov.u32u32 r0.w, {one}
                    ldib r1.x, {zero}, r0.z, {zero} // {buffer}
                    ldib r1.y, {zero}, r0.w, {zero} // {buffer}
                    and.b r1.x, r1.x, {three}
                    and.b r1.y, r1.y, {three}
                    and.b r1.z, r0.x, {one}
                    shr.b r1.w, r0.x, {five}
                    add.u r1.x, r1.x, r1.z
                    add.u r1.y, r1.y, r1.w
                    mov.u32u32 r2.y, {zero}
                    cmps.u.lt pp0.x, r1.x, {first}
                    cmps.u.lt pp0.y, r1.y, {second}\n",
                    three = number(3),
                    five = number(5),
                    first = number(self.limits[0]),
                    second = number(self.limits[1]),
                );
            }
            if let Some(add) = decision.adds {
                lines += &format!("add.u r2.y, r2.y, {}\n", number(add));
            }
            let opcode = match decision.test {
                BranchTest::Own => "br",
                BranchTest::Any => "bany",
                BranchTest::All => "ball",
            };
            lines += &format!("{opcode} pp0.{}", ["x", "y"][usize::from(decision.predicate)]);
            blocks.push((lines, vec![decision.yes + 1, decision.no + 1]));
        }
        let join = self.decisions.len() + self.leaves.len() + 1;
        for &leaf in &self.leaves {
            blocks.push((format!("mov.u32u32 r2.x, {}\njump", number(leaf)), vec![join]));
        }
        let end = format!("add.u r2.x, r2.x, r2.y\nstib {zero}, r0.x, {zero}, r2.x // {buffer}\nend");
        blocks.push((end, vec![]));
        let program = text::read(&compute_shader(0, &blocks)).ok()?;
        validate(&program, machine, Form::of(&program)).is_ok().then(|| Snapshot::Ir3(Box::new(program)))
    }
}
