//! Equivalent pairs: programs, and the same programs rewritten in ways that no stage of the compiler knows.
//!
//! Each rewrite is sound by itself, whatever the program: what an instruction computes is computed in another way (`local`),
//! code is cut, put together, moved or copied (`blocks`, `reorder`, `hoist`, `rotate`, `diamonds`), things have other names
//! (`rename`, `registers`). Nothing is checked afterwards by the rewrite itself: tests run both sides. An engine that proves
//! stages must prove these too, without a pass that it could have been made for; one that refutes one is wrong.
//!
//! [`pairs`] is a stream of them: pair `i` is a function of the seed and `i` alone. [`scaled`] makes pairs of any size of
//! which so many operations of a hundred are rewritten.

mod blocks;
mod diamonds;
mod edit;
mod hoist;
mod local;
mod loops;
mod registers;
mod rename;
mod reorder;
mod rotate;
mod scale;
#[cfg(test)]
mod tests;

pub use scale::{Shape, scaled};

use crate::programs::generator;
use crate::programs::generator::{Features, Profile};
use crate::programs::seeds::{env_seeds, program_seed};
use crate::programs::{Case, Question};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::support::random::Random;
use ir3_compiler::compilation;
use ir3_compiler::ir3::Program;
use ir3_compiler::ir3::validate::{Form, Violation, validate};
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;

/// Two programs that mean the same.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The rewrite that made the second from the first.
    pub kind: &'static str,
    /// Its number in the stream.
    pub number: u64,
    /// What the program is made of.
    pub profile: Profile,
    /// The seed of the program.
    pub seed: u64,
    /// The stage behind which the program was taken.
    pub stage: Stage,
    /// The program.
    pub source: Snapshot,
    /// The program rewritten.
    pub target: Snapshot,
}

impl Pair {
    /// What is wrong with the rewritten program, if anything is.
    ///
    /// # Errors
    /// The rules of ir3 that it breaks.
    pub fn validate(&self, machine: &Target) -> Result<(), Vec<Violation>> {
        match (self.source.as_ir3(), self.target.as_ir3()) {
            (Some(source), Some(target)) => validate(target, machine, Form::of(source)),
            _ => Ok(()),
        }
    }

    fn new(kind: &'static str, number: u64, of: (Profile, u64, Stage), source: Program, target: Program) -> Self {
        let (profile, seed, stage) = of;
        let [source, target] = [source, target].map(|program| Snapshot::Ir3(Box::new(program)));
        Self { kind, number, profile, seed, stage, source, target }
    }
}

/// Environments that an engine is given which needs some.
const RUNS: u32 = 3;

impl Case for Pair {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: None, before: &self.source, after: &self.target, machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        env_seeds(self.seed, RUNS).into_iter().map(Env::from_seed).collect()
    }
}

/// Rewrites a whole program; false if there was nothing to rewrite.
type Rewrite = fn(&mut Program, &Target, &mut Random) -> bool;

/// How a pair is made.
#[derive(Clone, Copy)]
enum How {
    /// Single instructions.
    Local(&'static local::Family),
    /// The program in SSA form.
    Ssa(Rewrite),
    /// The finished program.
    Finished(Rewrite),
    /// The program with its blocks cut, and put together again.
    Merged,
    /// Compiled again for fewer registers.
    OtherLimit,
    /// Several of the others in turn.
    Several,
}

static WHOLE: &[(&str, How)] = &[
    ("blocks split", How::Ssa(blocks::split)),
    ("blocks split, registers", How::Finished(blocks::split)),
    ("blocks merged", How::Merged),
    ("renamed", How::Ssa(rename::all)),
    ("renamed, registers", How::Finished(rename::all)),
    ("reordered", How::Ssa(reorder::within_blocks)),
    ("other registers", How::Finished(registers::permuted)),
    ("other register limit", How::OtherLimit),
    ("loops rotated", How::Ssa(rotate::loops_rotated)),
    ("out of loops", How::Ssa(hoist::out_of_loops)),
    ("ifs as selects", How::Ssa(diamonds::to_selects)),
    ("selects as ifs", How::Ssa(diamonds::from_selects)),
    ("several", How::Several),
];

fn all() -> impl Iterator<Item = (&'static str, How)> {
    local::FAMILIES.iter().map(|family| (family.name, How::Local(family))).chain(WHOLE.iter().copied())
}

/// The names of all kinds.
pub fn kinds() -> Vec<&'static str> {
    all().map(|(name, _)| name).collect()
}

/// Stages behind which programs in SSA form are taken.
const STAGES: [Stage; 4] = [Stage::Select, Stage::CopyPropagation, Stage::DeadCode, Stage::Fold];

/// Programs that are tried for one pair: loops of one shape are not in every program.
const TRIES: u64 = 60;

/// A stream of pairs, all kinds in turn.
pub fn pairs(seed: u64, machine: &Target) -> impl Iterator<Item = Pair> + Send {
    let machine = *machine;
    let all: Vec<(&'static str, How)> = all().collect();
    (0..).filter_map(move |number: u64| {
        let (kind, how) = all[(number % all.len() as u64) as usize];
        pair(seed, number, kind, how, &machine)
    })
}

fn pair(seed: u64, number: u64, kind: &'static str, how: How, machine: &Target) -> Option<Pair> {
    (0..TRIES).find_map(|attempt| {
        let seed = program_seed(program_seed(seed, number), attempt);
        let mut random = Random::new(program_seed(seed, 0x7265_7772));
        let profile = Profile::ALL[random.below(Profile::ALL.len())];
        let stage = match how {
            How::Finished(_) | How::OtherLimit => Stage::LowerCopies,
            _ => STAGES[random.below(STAGES.len())],
        };
        let generator::Generated { shader, undefined_values } =
            generator::from_seed(seed, profile, Features::of(machine));
        let compiled = |registers| {
            let options = Options { last: stage, registers, ..Options::default() };
            compilation::compile(&shader, machine, &options, &mut |_, _| {}).ok()
        };
        let mut source = compiled(RegisterLimit::Target)?;
        let mut target = source.clone();
        let done = match how {
            How::Local(family) => local::rewrite(&mut target, machine, &mut random, family.rules, 70) > 0,
            How::Ssa(rewrite) | How::Finished(rewrite) => rewrite(&mut target, machine, &mut random),
            How::Merged => {
                let cut = blocks::split(&mut source, machine, &mut random);
                target = source.clone();
                cut && blocks::merge(&mut target, machine, &mut random)
            }
            // What is undefined in the shader may be one number here and another there: neither side is the other's meaning.
            How::OtherLimit if undefined_values > 0 => false,
            How::OtherLimit => {
                target = compiled(RegisterLimit::Minimum(random.below(6) as u16))?;
                target != source
            }
            How::Several => several(&mut target, machine, &mut random),
        };
        (done && target != source).then(|| Pair::new(kind, number, (profile, seed, stage), source, target))
    })
}

/// Three rewrites of the program in SSA form, one behind the other.
fn several(program: &mut Program, machine: &Target, random: &mut Random) -> bool {
    let of_ssa: Vec<How> = all().map(|(_, how)| how).filter(|how| matches!(how, How::Local(_) | How::Ssa(_))).collect();
    let mut done = 0;
    for _ in 0..8 {
        if done == 3 {
            break;
        }
        done += u32::from(match of_ssa[random.below(of_ssa.len())] {
            How::Local(family) => local::rewrite(program, machine, random, family.rules, 40) > 0,
            How::Ssa(rewrite) => rewrite(program, machine, random),
            _ => false,
        });
    }
    done == 3
}
