//! Counts the planted bugs that matter and that `verify` misses.
//!
//! A bug *matters* in a program if many runs of the interpreter show a difference. Of these, each must be refuted, or
//! at least not pass.

use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{
    Checker, Ends, Engines, Policy, ProgramInputs, Search, SiteCount, Verification, hook_of, plant_of,
};
use ir3_programs::planted_bugs::PlantedBug;
use ir3_programs::seeds::{ProgramEnvs, env_seeds};
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::panics::{Panicked, catch};
use std::time::Duration;

/// The seed of the runs that show if a bug matters: not that of any check.
const SEED: u64 = 0x6d61_7474_6572;

/// A program to plant bugs in.
#[derive(Clone, Copy)]
pub struct Victim<'a> {
    /// The program.
    pub shader: &'a Shader,
    /// The GPU.
    pub target: &'a Target,
}

/// The result of `verify` on a program with a bug that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BugVerdict {
    /// A run shows the difference, or the compiler crashes.
    Refuted,
    /// It is not shown, and some boundary is no pass.
    Unknown,
    /// All boundaries pass.
    Passed,
}

/// The trial of one bug in one program.
#[derive(Clone, Debug)]
pub struct BugTrial {
    /// The verdict.
    pub verdict: BugVerdict,
    /// The sensitivity of the runs.
    pub sensitivity: Option<SiteCount>,
    /// CPU time of `verify`.
    pub time: Duration,
}

impl Victim<'_> {
    /// The program after the last stage; `None` if the compiler refuses it.
    ///
    /// # Errors
    /// If the compiler panics.
    fn compiled(&self, plant: Option<&'static PlantedBug>) -> Result<Option<ir3::Program>, Panicked> {
        catch(|| {
            let options = Options::default();
            let mut change = plant.map(PlantedBug::change);
            let mut hook = hook_of(plant_of(&mut change), None);
            let mut compilation = Compilation::new(self.shader, self.target, &options).with_hook(Some(&mut hook));
            while let Some(step) = compilation.step() {
                step.ok()?;
            }
            match compilation.program() {
                ProgramRef::Ir3(program) => Some(program.clone()),
                ProgramRef::Nir(_) | ProgramRef::Vec4(_) => None,
            }
        })
    }

    /// Returns true if a bug changes the program, and at least one of `runs` runs of the source and of the last program
    /// shows it; or if the compiler crashes.
    pub fn matters(&self, plant: &'static PlantedBug, runs: u32) -> bool {
        match (self.compiled(None), self.compiled(Some(plant))) {
            (Ok(Some(right)), Ok(Some(wrong))) if ir3::text::write(&right) == ir3::text::write(&wrong) => return false,
            (Ok(Some(_)), Ok(Some(_))) => {}
            (Ok(Some(_)), Err(_)) => return true,
            _ => return false,
        }
        let mut checker = Checker::new(*self.target, Options::default());
        ProgramEnvs::new(self.shader, SEED).first(runs).chunks(16).any(|envs| {
            let mut change = |stage: Stage, program: &mut ir3::Program| plant.apply(stage, program);
            let Ok(source) = checker.source_outcomes(self.shader, envs) else { return false };
            matches!(checker.ends(self.shader, &source, Some(&mut change)), Ends::Differ(_))
        })
    }

    fn verify(
        &self,
        plant: Option<&'static PlantedBug>,
        engines: &Engines,
        seed: u64,
        runs: u32,
        fuel: u64,
    ) -> Verification {
        let inputs = ProgramInputs::new(self.shader, seed);
        let mut checker = Checker::new(*self.target, Options::default()).with_fuel(fuel);
        let mut change = plant.map(PlantedBug::change);
        let policy = Policy::new(engines).with_search(Search { fuel, ..Search::of_stage(&inputs) });
        checker.verify(self.shader, plant_of(&mut change), &policy, &inputs.envs.first(runs))
    }

    /// Verifies the program with a bug.
    pub fn try_bug(&self, plant: &'static PlantedBug, engines: &Engines, seed: u64, runs: u32, fuel: u64) -> BugTrial {
        let start = ThreadTime::now();
        let verification = match catch(|| self.verify(Some(plant), engines, seed, runs, fuel)) {
            Ok(verification) => verification,
            // An engine that crashes has no verdict.
            Err(_) => return BugTrial { verdict: BugVerdict::Unknown, sensitivity: None, time: start.elapsed() },
        };
        let verdict = if verification.refutation().is_some() || verification.crash().is_some() {
            BugVerdict::Refuted
        } else if verification.boundaries.iter().all(|boundary| boundary.verdict.is_pass()) {
            BugVerdict::Passed
        } else {
            BugVerdict::Unknown
        };
        let sites = verification.sites();
        BugTrial { verdict, sensitivity: (sites.all > 0).then_some(sites), time: start.elapsed() }
    }

    /// CPU time of `verify` on the program without a bug, and of runs alone.
    pub fn times(&self, engines: &Engines, seed: u64, runs: u32, fuel: u64) -> [Duration; 2] {
        let start = ThreadTime::now();
        self.verify(None, engines, seed, runs, fuel);
        let all = start.elapsed();
        let start = ThreadTime::now();
        let envs = Env::from_seeds(&env_seeds(seed, runs));
        Checker::new(*self.target, Options::default()).with_fuel(fuel).program(self.shader, &envs, None);
        [all, start.elapsed()]
    }
}
