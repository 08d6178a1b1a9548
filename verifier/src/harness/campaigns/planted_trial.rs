//! A planted bug from the campaign that finds it to the program that is left of it.

use crate::harness::check::{EngineKind, Engines};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cpu_time::ThreadTime;
use ir3_compiler::nir::{Shader, text};
use ir3_compiler::pipeline::{Options, RegisterLimit};
use ir3_compiler::target::Target;

use crate::harness::campaigns::fuzzing::{Campaign, Counts, Finding, Limits};
use crate::harness::reduce;
use crate::harness::reduce::whole;
use crate::harness::reduce::whole::Whole;
use crate::harness::reduce::{Failure, Oracle};
use crate::programs::generator::Profile;
use crate::programs::planted_bugs::Plant;
use crate::programs::seeds::env_seeds;
use crate::semantics::environment::env::Env;

/// A program in which a campaign has found a planted bug.
#[derive(Clone, Debug)]
pub struct Found {
    /// The bug.
    pub plant: &'static Plant,
    /// The program's number in the campaign.
    pub number: u64,
    /// Its profile.
    pub profile: Profile,
    /// The seed that makes it.
    pub seed: u64,
    /// CPU time of the campaign up to then.
    pub time: Duration,
    /// The program.
    pub shader: Shader,
    /// The inputs of the campaign.
    pub envs: Vec<Env>,
}

/// Runs a campaign over all profiles until a bug is found in so many programs, or `limit` of CPU time is over.
pub fn find(plant: &'static Plant, target: Target, seed: u64, programs: usize, limit: Duration) -> Vec<Found> {
    let campaign = Campaign {
        target,
        seed,
        profiles: Profile::ALL.to_vec(),
        first: 0,
        programs: None,
        time: None,
        jobs: 1,
        runs: 1,
        keep_going: true,
        refusals: false,
        registers: Limits::Fixed(RegisterLimit::Target),
        options: Options::default(),
        engines: Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() },
        plant: Some(plant),
    };
    let over = AtomicBool::new(false);
    let mut all = Vec::new();
    let mut found = |finding: &Finding<'_>| {
        let failed = finding.report.refutation().is_some() || finding.report.crash().is_some();
        if failed && all.len() < programs {
            // This is the campaign's one thread, which was begun for it.
            all.push(Found {
                plant,
                number: finding.number,
                profile: finding.profile,
                seed: finding.seed,
                time: ThreadTime::now().as_duration(),
                shader: finding.generated.shader.clone(),
                envs: env_seeds(finding.seed, 1).into_iter().map(Env::from_seed).collect(),
            });
            over.store(all.len() == programs, Ordering::Relaxed);
        }
    };
    let mut progress = |_: &Counts| {
        over.fetch_or(ThreadTime::now().as_duration() > limit, Ordering::Relaxed);
    };
    campaign.run(&over, &mut found, &mut progress);
    all
}

/// What a reduction came to.
pub struct Outcome {
    /// The failure.
    pub failure: Failure,
    /// What is left.
    pub whole: Whole,
    /// CPU time of the thread that was called; all of it where that was the only one.
    pub time: Duration,
    /// Whether what is left fails in the same way as what was found.
    pub same: bool,
}

impl Outcome {
    /// All of it as text, for comparisons.
    pub fn result(&self) -> String {
        let Whole { reduced, env, target, options } = &self.whole;
        let env = env.as_ref().map(Env::to_json).unwrap_or_default();
        format!("{}{env}\n{} {options:?}\n", text::write(&reduced.shader), target.name)
    }
}

impl Found {
    /// Reduces the program. `None` where it does not fail, or the reduction did not come to its end.
    pub fn reduce(&self, target: Target, jobs: usize) -> Option<Outcome> {
        let start = ThreadTime::now();
        let plant = Some(self.plant.shared());
        let mut oracle = Oracle::find(target, Options::default(), &self.shader, &self.envs, plant.clone())?;
        let options = reduce::Options::default();
        let whole = whole::run(&self.shader, &mut oracle, jobs, &options, &mut |_| true).ok()?;
        let time = start.elapsed();
        let envs: Vec<Env> = whole.env.iter().cloned().collect();
        let again = Oracle::find(whole.target, whole.options, &whole.reduced.shader, &envs, plant);
        let same = again.is_some_and(|again| again.failure() == oracle.failure());
        whole.reduced.minimal.then(|| Outcome { failure: oracle.failure().clone(), whole, time, same })
    }
}
