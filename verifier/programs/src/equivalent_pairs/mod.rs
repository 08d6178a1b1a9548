//! Equivalent pairs: programs, each with a rewritten version, by rewrites that no stage of the compiler makes.
//!
//! Each rewrite is sound for every program: an instruction computes the same result in another way (`local`), code is
//! split, merged, moved or duplicated (`blocks`, `reorder`, `hoist`, `rotate`, `diamonds`), entities are renamed
//! (`rename`, `registers`). A rewrite does not check its own result: tests run both sides. An engine that proves stages
//! must prove these pairs too, though it cannot be tailored to any of them; an engine that refutes one is wrong.
//!
//! [`pairs`] is a stream of them: pair `i` is a function of the seed and `i` alone. [`scaled`] makes pairs of any size
//! in which a given percentage of the operations is rewritten.

mod blocks;
mod diamonds;
mod edit;
mod hoist;
pub mod local;
mod loops;
mod registers;
mod rename;
mod reorder;
mod rotate;
mod scale;

pub use edit::RewriteSite;
pub use scale::{ControlFlowShape, scaled};

use crate::generator;
use crate::generator::{Features, Profile};
use crate::seeds::{env_seeds, program_seed};
use crate::{Case, Question};
use ir3_compiler::compilation;
use ir3_compiler::ir3::validate::{Form, Violation, validate};
use ir3_compiler::ir3::{Program, SrcOperand};
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::random::Random;

/// Two equivalent programs.
#[derive(Clone, Debug)]
pub struct EquivalentPair {
    /// The rewrite that made the second from the first.
    pub kind: &'static str,
    /// Its number in the stream.
    pub number: u64,
    /// The profile of the program.
    pub profile: Profile,
    /// The seed of the program.
    pub seed: u64,
    /// The stage after which the program was taken.
    pub stage: Stage,
    /// The program.
    pub source: Snapshot,
    /// The rewritten program.
    pub target: Snapshot,
}

impl EquivalentPair {
    /// Checks that the rewritten program is valid ir3.
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

/// The number of environments for an engine that needs some.
const RUNS: u32 = 3;

impl Case for EquivalentPair {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: None, before: (&self.source).into(), after: (&self.target).into(), machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        env_seeds(self.seed, RUNS).into_iter().map(Env::from_seed).collect()
    }
}

/// Rewrites a whole program; false if there was nothing to rewrite.
type Rewrite = fn(&mut Program, &Target, &mut Random) -> bool;

/// The method by which a pair is made.
#[derive(Clone, Copy)]
enum Method {
    /// Rewrites single instructions.
    Local(&'static local::Family),
    /// Rewrites the program in SSA form.
    Ssa(Rewrite),
    /// Rewrites the finished program.
    Finished(Rewrite),
    /// Splits blocks of the program, and merges them again.
    Merged,
    /// Compiles the program again for fewer registers.
    OtherLimit,
    /// Applies several of the others one after the other.
    Several,
}

static WHOLE_PROGRAM: &[(&str, Method)] = &[
    ("blocks split", Method::Ssa(blocks::split)),
    ("blocks split, registers", Method::Finished(blocks::split)),
    ("blocks merged", Method::Merged),
    ("renamed", Method::Ssa(rename::all)),
    ("renamed, registers", Method::Finished(rename::all)),
    ("reordered", Method::Ssa(reorder::within_blocks)),
    ("other registers", Method::Finished(registers::permuted)),
    ("other register limit", Method::OtherLimit),
    ("loops rotated", Method::Ssa(rotate::loops_rotated)),
    ("out of loops", Method::Ssa(hoist::out_of_loops)),
    ("ifs as selects", Method::Ssa(diamonds::to_selects)),
    ("selects as ifs", Method::Ssa(diamonds::from_selects)),
    ("several", Method::Several),
];

fn all() -> impl Iterator<Item = (&'static str, Method)> {
    local::FAMILIES.iter().map(|family| (family.name, Method::Local(family))).chain(WHOLE_PROGRAM.iter().copied())
}

/// The names of all kinds.
pub fn kinds() -> Vec<&'static str> {
    all().map(|(name, _)| name).collect()
}

/// The stages after which programs in SSA form are taken.
const STAGES: [Stage; 4] = [Stage::Select, Stage::CopyPropagation, Stage::DeadCode, Stage::Fold];

/// The number of programs that are tried for one pair: not every program has a loop of the right form.
const TRIES: u64 = 60;

/// Generates a stream of pairs, all kinds in turn.
pub fn pairs(seed: u64, machine: &Target) -> impl Iterator<Item = EquivalentPair> + Send {
    let machine = *machine;
    let all: Vec<(&'static str, Method)> = all().collect();
    (0..).filter_map(move |number: u64| {
        let (kind, method) = all[(number % all.len() as u64) as usize];
        pair(seed, number, kind, method, &machine)
    })
}

fn pair(seed: u64, number: u64, kind: &'static str, method: Method, machine: &Target) -> Option<EquivalentPair> {
    (0..TRIES).find_map(|attempt| {
        let seed = program_seed(program_seed(seed, number), attempt);
        let mut random = Random::new(program_seed(seed, 0x7265_7772));
        let profile = Profile::ALL[random.below(Profile::ALL.len())];
        let stage = match method {
            Method::Finished(_) | Method::OtherLimit => Stage::LowerCopies,
            _ => STAGES[random.below(STAGES.len())],
        };
        let generator::Generated { shader, undefined_values } =
            generator::from_seed(seed, profile, Features::of(machine));
        let compiled = |last, registers| {
            let options = Options { last, registers, ..Options::default() };
            compilation::compile(&shader, machine, &options, &mut |_, _| {}).ok()
        };
        let mut source = compiled(stage, RegisterLimit::Target)?;
        let mut target = source.clone();
        let done = match method {
            Method::Local(family) => local::rewrite(&mut target, machine, &mut random, family.rules, 70) > 0,
            Method::Ssa(rewrite) | Method::Finished(rewrite) => rewrite(&mut target, machine, &mut random),
            Method::Merged => {
                let cut = blocks::split(&mut source, machine, &mut random);
                target = source.clone();
                cut && blocks::merge(&mut target, machine, &mut random)
            }
            // An undefined value of the shader, or an output that is not stored on all paths, may be resolved
            // differently on the two sides, so neither refines the other.
            Method::OtherLimit
                if undefined_values > 0 || reads_undefined(&compiled(Stage::Select, RegisterLimit::Target)?) =>
            {
                false
            }
            Method::OtherLimit => {
                target = compiled(stage, RegisterLimit::Minimum(random.below(6) as u16))?;
                target != source
            }
            Method::Several => several(&mut target, machine, &mut random),
        };
        (done && target != source).then(|| EquivalentPair::new(kind, number, (profile, seed, stage), source, target))
    })
}

/// Returns true if an operand of the program is undefined.
fn reads_undefined(program: &Program) -> bool {
    let mut srcs = program.iter_instrs().flat_map(|(_, instr)| &program.instrs[instr].srcs);
    srcs.any(|src| src.operand == SrcOperand::Undef)
}

/// Applies three rewrites to the program in SSA form, one after the other.
fn several(program: &mut Program, machine: &Target, random: &mut Random) -> bool {
    let of_ssa: Vec<Method> =
        all().map(|(_, method)| method).filter(|method| matches!(method, Method::Local(_) | Method::Ssa(_))).collect();
    let mut done = 0;
    for _ in 0..8 {
        if done == 3 {
            break;
        }
        done += u32::from(match of_ssa[random.below(of_ssa.len())] {
            Method::Local(family) => local::rewrite(program, machine, random, family.rules, 40) > 0,
            Method::Ssa(rewrite) => rewrite(program, machine, random),
            _ => false,
        });
    }
    done == 3
}
