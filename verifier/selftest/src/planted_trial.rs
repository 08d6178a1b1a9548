//! Trials of planted bugs: from the campaign that finds a bug to the reduced program.

use ir3_harness::check::{EngineKind, Engines};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cpu_time::ThreadTime;
use ir3_compiler::nir::{Shader, text};
use ir3_compiler::pipeline::{Options, RegisterLimit};
use ir3_compiler::target::Target;

use ir3_harness::campaigns::counts::Counts;
use ir3_harness::campaigns::fuzzing::{Boundaries, Campaign, Finding};
use ir3_harness::campaigns::register_limits::Limits;
use ir3_harness::campaigns::shard::Shard;
use ir3_harness::reduce;
use ir3_harness::reduce::combined;
use ir3_harness::reduce::combined::CombinedReduction;
use ir3_harness::reduce::{Failure, Oracle};
use ir3_programs::generator::Profile;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::environment::env::Env;

/// A program in which a campaign has found a planted bug.
#[derive(Clone, Debug)]
pub struct Found {
    /// The bug.
    pub plant: &'static PlantedBug,
    /// The program's number in the campaign.
    pub number: u64,
    /// Its profile.
    pub profile: Profile,
    /// The seed that makes it.
    pub seed: u64,
    /// CPU time of the campaign so far.
    pub time: Duration,
    /// The program.
    pub shader: Shader,
    /// The environments of the campaign.
    pub envs: Vec<Env>,
}

/// Runs a campaign over all profiles until a bug is found in `programs` programs, or `limit` of CPU time is used up.
/// Runs have that fuel, if it is given.
pub fn find(
    plant: &'static PlantedBug,
    target: Target,
    seed: u64,
    programs: usize,
    limit: Duration,
    fuel: Option<u64>,
) -> Vec<Found> {
    let campaign = Campaign {
        targets: vec![target],
        seed,
        profiles: Profile::ALL.to_vec(),
        first: 0,
        programs: None,
        shard: Shard::ALL,
        time: None,
        jobs: 1,
        runs: 1,
        fuel,
        keep_going: true,
        refusals: false,
        registers: Limits::Fixed(RegisterLimit::Target),
        options: Options::default(),
        engines: Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() },
        boundaries: Boundaries::Sampled,
        plant: Some(plant),
        coverage: None,
        director: None,
        has_code: false,
        corpus: None,
    };
    let over = AtomicBool::new(false);
    let mut all = Vec::new();
    let mut found = |finding: &Finding<'_>| {
        let failed = finding.report.refutation().is_some() || finding.report.crash().is_some();
        if let Some(shader) = finding.shader.filter(|_| failed && all.len() < programs) {
            // The only thread of the campaign, which was started for it.
            all.push(Found {
                plant,
                number: finding.number,
                profile: finding.profile,
                seed: finding.seed,
                time: ThreadTime::now().as_duration(),
                shader: shader.clone(),
                envs: campaign.envs(finding.seed, shader, &finding.target),
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

/// The result of a reduction.
pub struct ReductionOutcome {
    /// The failure.
    pub failure: Failure,
    /// The reduced program, with its environment and options.
    pub whole: CombinedReduction,
    /// CPU time of the calling thread; the total if it was the only one.
    pub time: Duration,
    /// True if the reduced program fails in the same way.
    pub same: bool,
}

impl ReductionOutcome {
    /// The complete result as text, for comparisons.
    pub fn result(&self) -> String {
        let CombinedReduction { reduced, env, target, options } = &self.whole;
        let env = env.as_ref().map(Env::to_json).unwrap_or_default();
        format!("{}{env}\n{} {options:?}\n", text::write(&reduced.program), target.name)
    }
}

impl Found {
    /// Reduces the program. `None` if it does not fail, or the reduction was not finished.
    pub fn reduce(&self, target: Target, jobs: usize) -> Option<ReductionOutcome> {
        let start = ThreadTime::now();
        let plant = Some(self.plant.shared());
        let mut oracle = Oracle::find(target, Options::default(), &self.shader, &self.envs, plant.clone())?;
        let options = reduce::Options::default();
        let whole = combined::run(&self.shader, &mut oracle, jobs, &options, &mut |_| true).ok()?;
        let time = start.elapsed();
        let envs: Vec<Env> = whole.env.iter().cloned().collect();
        let again = Oracle::find(whole.target, whole.options, &whole.reduced.program, &envs, plant);
        let same = again.is_some_and(|again| again.failure() == oracle.failure());
        whole.reduced.minimal.then(|| ReductionOutcome { failure: oracle.failure().clone(), whole, time, same })
    }
}
