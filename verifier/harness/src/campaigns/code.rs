//! Programs of the backends' own languages in a campaign: vec4 code, and parallel copies alone.
//!
//! Selection emits few of the shapes that the passes of vec4 have to keep, and compiled programs hardly ever have
//! copies of halves, of full registers that are their pairs, and of shared registers in one cycle. So every other
//! program for a vec4 target is vec4 code, and one of 32 for ir3 is a program of parallel copies in registers, which
//! are lowered.

use super::counts::Counts;
use super::fuzzing::{self, Campaign, Drawn, unknown_boundaries};
use crate::check::{Boundary, COMPILER, Crash, Engines, Judgment, Policy, Unknown, Verdict, Verification, verify_vec4};
use crate::reduce::minimal_vec4;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::i965::vec4;
use ir3_compiler::ir3;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::pipeline::{self, Stage};
use ir3_compiler::target::{Backend, Target};
use ir3_programs::generator::{self, Seeded};
use ir3_programs::seeds::env_seeds;
use ir3_programs::vec4_code;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::watch::watched;
use std::time::{Duration, Instant};

/// About the most instructions of a program of vec4 code.
const CODE_SIZE: u32 = 60;

/// The environments of a program.
const CODE_ENVS: u32 = 2;

/// One program for ir3 of this many is one of parallel copies.
const COPIES: u64 = 32;

/// A program that was not made from nir.
#[derive(Clone)]
pub enum Code {
    /// A program of the vec4 backend's language.
    Vec4(vec4::Program),
    /// Parallel copies between registers of a GPU.
    Copies(Box<ir3::Program>, Target),
}

impl Code {
    fn instructions(&self) -> usize {
        match self {
            Self::Vec4(program) => program.instrs.len(),
            Self::Copies(program, _) => program.instruction_count(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Vec4(program) => vec4::text::write(program),
            Self::Copies(program, _) => ir3::text::write(program),
        }
    }
}

impl Drawn {
    /// Returns true if the program of a seed is [code](Code), in a campaign that has such programs.
    pub(super) fn is_code(target: &Target, seed: u64) -> bool {
        match target.backend {
            Backend::Vec4 => !seed.is_multiple_of(2),
            Backend::Ir3 => seed % COPIES == 5,
            Backend::Scalar => false,
        }
    }

    /// The program, if it is code.
    pub fn code(&self) -> Option<Code> {
        self.is_code.then(|| match self.target.backend {
            Backend::Ir3 => {
                Code::Copies(Box::new(generator::copies(&mut Seeded::new(self.seed), &self.target)), self.target)
            }
            _ => Code::Vec4(vec4_code::from_seed(self.seed, CODE_SIZE)),
        })
    }
}

/// A failure on code.
pub struct CodeFailure {
    /// The stage.
    pub stage: Stage,
    /// True if the stage panicked, or left a program that is not valid.
    pub is_crash: bool,
    /// The message.
    pub message: String,
    /// The program, made smaller, as text.
    pub text: String,
    /// The program after the stage, as text, if `check` is needed to see the failure again.
    pub after: Option<String>,
    /// The file extension.
    pub extension: &'static str,
    /// The number of its instructions.
    pub instructions: usize,
}

/// The stage that fails, true if it crashes, and why.
fn failure(verification: &Verification) -> Option<(Stage, bool, String)> {
    verification.boundaries.iter().find_map(|row| match &row.verdict {
        Verdict::Refuted(refutation) => Some((row.stage, false, refutation.difference.to_string())),
        Verdict::Unknown(Unknown::Crashed(crash)) => Some((row.stage, true, crash.to_string())),
        _ => None,
    })
}

/// The program after its copies are lowered, or the error of lowering.
fn lowered(campaign: &Campaign, program: &ir3::Program, target: &Target) -> Result<ir3::Program, String> {
    let mut after = program.clone();
    let run = || watched(|| pipeline::run_stage(Stage::LowerCopies, &mut after, target, &campaign.options));
    match catch(run) {
        Err(panic) => return Err(panic.message),
        Ok(Err(error)) => return Err(error.to_string()),
        Ok(Ok(_)) => {}
    }
    if let Some(bug) = campaign.plant {
        bug.apply(Stage::LowerCopies, &mut after);
    }
    match validate(&after, target, Form::Machine) {
        Err(violations) if !violations.is_empty() => Err(format!("the program is not valid: {}", violations[0])),
        _ => Ok(after),
    }
}

impl Campaign {
    /// Tests every pass on code.
    fn test_code(&self, code: &Code, seed: u64) -> Verification {
        let envs = Env::with_fuel(Env::from_seeds(&env_seeds(seed, CODE_ENVS.max(self.runs))), self.fuel);
        match code {
            Code::Vec4(program) => verify_vec4(program, &self.options, self.plant, &Policy::new(&self.engines), envs),
            Code::Copies(program, target) => self.test_copies(program, target, envs),
        }
    }

    /// Compares a program with the one in which its copies are lowered.
    fn test_copies(&self, program: &ir3::Program, target: &Target, envs: Vec<Env>) -> Verification {
        let judgment = match lowered(self, program, target) {
            Ok(after) => {
                let (before, after) = (ProgramRef::Ir3(program), ProgramRef::Ir3(&after));
                let boundary = Boundary { follows: false, ..Boundary::of_stage(Stage::LowerCopies, before, after) };
                Engines::interpreter().judge(&boundary, target, &envs)
            }
            Err(message) => {
                let crash = Crash::from(message);
                Judgment::of(Verdict::Unknown(Unknown::Crashed(crash)), COMPILER)
            }
        };
        let mut verification = Verification { envs, ..Verification::default() };
        verification.push(Stage::LowerCopies, judgment);
        verification
    }

    /// Checks code, adds it to the counts, and reports it as [`check_number`](Self::check_number) does with nir.
    pub(super) fn check_code(
        &self,
        number: u64,
        drawn: &Drawn,
        code: &Code,
        counts: &mut Counts,
        found: &mut dyn FnMut(&fuzzing::Finding<'_>),
    ) -> bool {
        let &Drawn { target, profile, seed, registers, .. } = drawn;
        let mut verification = self.test_code(code, seed);
        verification.times.run = verification.boundaries.iter().map(|row| row.time).sum();
        counts.count_program(code.instructions(), Duration::ZERO);
        counts.count(number, code.instructions(), &verification);
        let failed = failure(&verification).is_some();
        let unknown = if failed { Vec::new() } else { unknown_boundaries(&verification) };
        if failed || !unknown.is_empty() {
            let report = &verification;
            let shader = None;
            let plant = self.plant;
            found(&fuzzing::Finding {
                number,
                target,
                profile,
                seed,
                registers,
                plant,
                failed,
                unknown,
                shader,
                report,
                env: None,
            });
        }
        failed
    }

    /// The failure of the code of a number, made smaller if that is wanted. `None` if it does not fail when it is
    /// tested again.
    pub fn code_failure(&self, number: u64, reduces: bool) -> Option<CodeFailure> {
        let drawn = self.program(number);
        let mut code = drawn.code()?;
        let verify = |code: &Code| failure(&self.test_code(code, drawn.seed));
        let (stage, is_crash, mut message) = verify(&code)?;
        if reduces {
            let fails = |smaller: &Code| verify(smaller).is_some_and(|found| (found.0, found.1) == (stage, is_crash));
            code = match code {
                Code::Vec4(program) => {
                    Code::Vec4(minimal_vec4(&program, &|smaller| fails(&Code::Vec4(smaller.clone()))))
                }
                Code::Copies(program, target) => {
                    Code::Copies(minimal_copies(program, &|smaller| fails(&Code::Copies(smaller, target))), target)
                }
            };
            message = verify(&code).map_or(message, |found| found.2);
        }
        let extension = if matches!(code, Code::Vec4(_)) { "vec4" } else { "ir3" };
        let (text, instructions) = (code.text(), code.instructions());
        let after = match &code {
            Code::Copies(program, target) => lowered(self, program, target).ok().map(|after| ir3::text::write(&after)),
            Code::Vec4(_) => None,
        };
        Some(CodeFailure { stage, is_crash, message, text, after, extension, instructions })
    }
}

/// The time for making a program of copies smaller.
const REDUCTION: Duration = Duration::from_secs(10);

/// A smaller program of copies that fails: without instructions, and without single copies.
fn minimal_copies(program: Box<ir3::Program>, fails: &dyn Fn(Box<ir3::Program>) -> bool) -> Box<ir3::Program> {
    let start = Instant::now();
    let mut best = program;
    let block = best.entry();
    // From the end on: later instructions read earlier results.
    for at in (0..best.blocks[block].instrs.len()).rev() {
        if start.elapsed() > REDUCTION {
            break;
        }
        let mut smaller = best.clone();
        let instr = smaller.blocks[block].instrs.remove(at);
        if !smaller.instrs[instr].opcode.is_terminator() && fails(smaller.clone()) {
            best = smaller;
            continue;
        }
        for copy in (0..best.instrs[instr].dsts.len()).rev() {
            let mut smaller = best.clone();
            let data = &mut smaller.instrs[instr];
            if data.opcode != ir3::Opcode::ParallelCopy || data.dsts.len() < 2 {
                break;
            }
            data.dsts.remove(copy);
            data.srcs.remove(copy);
            if fails(smaller.clone()) {
                best = smaller;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::target::GEN7;
    use ir3_programs::planted_bugs;
    use std::sync::atomic::AtomicBool;

    /// The first failure of a campaign with a planted bug, made smaller.
    fn failure_with(bug: &str, target: Target, has_code: bool) -> Option<CodeFailure> {
        let plant = planted_bugs::by_name(bug);
        let (over, mut found) = (AtomicBool::new(false), None);
        let targets = vec![target];
        let campaign = Campaign { targets, programs: Some(600), plant, jobs: 1, has_code, ..Campaign::default() };
        campaign.run(&over, &mut |finding| found = found.or(finding.failed.then_some(finding.number)), &mut |_| ());
        found.and_then(|number| campaign.code_failure(number, true))
    }

    /// Campaigns on the target reach a bug of a pass that no program from nir shows, and write the program that shows
    /// it.
    #[test]
    fn campaigns_have_vec4_code() {
        let failure = failure_with("one-flag-bit", GEN7, true).expect("a failure");
        let bug = planted_bugs::by_name("one-flag-bit").expect("a planted bug");
        assert!(failure.stage == bug.stage && !failure.is_crash, "{}: {}", failure.stage, failure.message);
        assert!(failure.instructions < 10, "{}", failure.text);
        assert!(failure_with("one-flag-bit", GEN7, false).is_none());
    }

    /// A program of parallel copies shows a dropped copy in a few instructions.
    #[test]
    fn campaigns_have_copies() {
        let campaign = Campaign { plant: planted_bugs::by_name("dropped-copy"), has_code: true, ..Campaign::default() };
        let fails = |number| Some((number, campaign.code_failure(number, true)?));
        let (number, failure) = (0..400).find_map(fails).expect("a failure");
        assert!(failure.stage == Stage::LowerCopies && !failure.is_crash, "{}", failure.message);
        assert!(failure.instructions < 20, "{}", failure.text);
        assert!(Campaign { plant: None, ..campaign }.code_failure(number, true).is_none());
    }
}
