//! `check`: compares two texts, or two logs section by section.
//!
//! Each row is one comparison with one verdict, by the same rules as a pass of a log: `program` where both files are programs, and for two logs
//! nir with nir, each pass that both print, and final code with final code.

use crate::engines::{self, EngineArgs, TIMEOUT};
use crate::values;
use crate::{Exit, Failure, Fuel, Gpu, output};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_verifier::harness::check::{
    self, Boundary, BoundaryKind, EngineKind, Engines, Judge, Judgment, NO_ENGINE, Policy, ProgramInputs, Search,
    Summary, TextPair, Unknown, Verdict,
};
use ir3_verifier::harness::mesa::{Settings, Sides};
use ir3_verifier::harness::report;
use ir3_verifier::harness::report::Named;
use ir3_verifier::programs::mesa::input::{InputKind, Source};
use ir3_verifier::programs::mesa::shader::{LogShader, shaders_of};
use ir3_verifier::programs::seeds::env_seeds;
use ir3_verifier::semantics::Snapshot;
use ir3_verifier::semantics::environment::env::Env;
use ir3_verifier::semantics::interp::Scratch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `check`.
#[derive(Args)]
pub struct Check {
    /// The program before: nir, ir3, or a Mesa log: its nir, or, if AFTER is a log too, all that both logs print.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The program after.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Environments, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = values::count::<u32>())]
    runs: u32,
    /// Seed of the environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// This environment, as JSON, instead of `--runs` and `--seed`.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    engines: EngineArgs,
}

/// The width of the column of program names.
const WIDTH: usize = 60;

/// CPU time after which no inputs are added.
const SEARCH: Duration = Duration::from_millis(500);

/// Inputs of a fragment that a row names.
const MOST_NAMED: usize = 8;

/// Reads the one program of a file.
fn one(source: Source, gpu: Option<Target>) -> Result<Named, Failure> {
    let path = source.path.display().to_string();
    let mut programs = report::load_source(source, gpu)?;
    match (programs.pop(), programs.len()) {
        (Some(program), 0) => Ok(program),
        (_, more) => Err(format!("{path}: found {} programs, expected one", more + 1).into()),
    }
}

/// The rows of a comparison.
struct Rows<'a> {
    options: &'a Check,
    engines: &'a Engines,
    summary: Summary,
    exit: Exit,
}

impl Rows<'_> {
    fn add(
        &mut self,
        program: &str,
        target: &Target,
        stage: &str,
        judgment: Judgment,
        [inputs, results]: [&[String]; 2],
    ) {
        let Judgment { verdict, engine, sensitivity, time, wrong_proofs, .. } = judgment;
        self.summary.count(&verdict);
        self.exit = self.exit.max(match &verdict {
            Verdict::Proved { .. } | Verdict::Tested { .. } => Exit::Passed,
            Verdict::Refuted(_) | Verdict::Unknown(Unknown::Crashed(_)) => Exit::Refuted,
            Verdict::Unknown(_) if engine == NO_ENGINE => Exit::Nothing,
            Verdict::Unknown(_) => Exit::Unmet,
        });
        self.summary.seconds += time.as_secs_f64();
        let named = (!inputs.is_empty()).then(|| {
            let more = inputs.len().saturating_sub(MOST_NAMED);
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = inputs.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
            format!("the same inputs on both sides: {names}{others}")
        });
        let compared = (!results.is_empty()).then(|| format!("compared at the end: {}", results.join(", ")));
        let share = sensitivity.filter(|_| matches!(verdict, Verdict::Tested { .. })).map(|it| it.share());
        let measured = share.map(|share| format!("sensitivity {:.0} %", share * 100.0));
        let reason: Vec<String> = verdict.reason().or(measured).into_iter().chain(named).chain(compared).collect();
        let row = check::Check {
            program: program.to_owned(),
            gpu: target.name.to_owned(),
            stage: stage.to_owned(),
            engine,
            verdict: verdict.name(),
            lanes: verdict.lanes(),
            seconds: time.as_secs_f64(),
            reason: (!reason.is_empty()).then(|| reason.join("; ")),
            sensitivity: sensitivity.map(|it| it.share()),
        };
        output::check(WIDTH, &row);
        for (prover, why) in wrong_proofs {
            output::problem(&format!("{} proved what a run refutes: {why}", prover.name()));
            self.exit = Exit::Unsound;
        }
    }

    /// Compares two programs. If one is that of a log, it is its nir.
    fn programs(&mut self, before: Named, after: Named, is_of_log: bool) -> Result<(), Failure> {
        let Check { runs, seed, env, fuel, .. } = self.options;
        let target = before.target;
        let name = format!("{} → {}", before.name, after.name);
        for side in [&before, &after] {
            output::taken(&side.name, &side.taken);
        }
        let pair = TextPair::new(before.program, after.program, &target);
        let inputs = match &pair.before {
            Snapshot::Nir(shader) => Some(ProgramInputs::with_boolean_words(shader, *seed)),
            Snapshot::Vec4(_) | Snapshot::Ir3(_) => None,
        };
        let envs = match env {
            Some(path) => vec![crate::run::read_env(path)?],
            None => env_seeds(*seed, *runs).into_iter().map(Env::from_seed).collect(),
        };
        let envs = fuel.of(envs);
        let base = Policy::new(self.engines);
        let search = Search {
            inputs: inputs.as_ref(),
            runs: *runs as usize,
            most_runs: 8 * *runs as usize,
            limit: SEARCH,
            fuel: fuel.given().unwrap_or(base.fuel),
        };
        // Exactly one environment shows a failure again, and is measured all the same.
        let search = if env.is_some() { Search::MEASURING } else { search };
        let policy = Policy { runs_proved: true, ..base.with_search(search) };
        let mut scratch = Scratch::default();
        let open_value = || pair.open_value();
        let boundary = Boundary { condition: Some(&open_value), ..pair.boundary() };
        let judgment = Judge::new(policy, target, &envs, &mut scratch).judge(&boundary);
        let stage = match pair.kind {
            _ if is_of_log => "nir of the log",
            BoundaryKind::Final => "final code",
            _ => "program",
        };
        self.add(&name, &target, stage, judgment, [&pair.inputs, &pair.results]);
        Ok(())
    }

    /// Compares two logs, shader by shader and section by section.
    fn logs(&mut self, paths: [&Path; 2], [before, after]: [&[LogShader]; 2]) -> Result<(), Failure> {
        let Check { runs, seed, gpu, .. } = self.options;
        if before.len() != after.len() {
            let [first, second] = paths.map(Path::display);
            let (found, expected) = (after.len(), before.len());
            return Err(format!("{second}: found {found} shaders, expected {expected} as in {first}").into());
        }
        self.summary.programs = before.len() as u64;
        let settings = Settings::new(self.engines, *runs as usize, *seed);
        for (number, (first, second)) in before.iter().zip(after).enumerate() {
            let targets = [first, second].map(|shader| shader.target(gpu.given()));
            let name = format!("{}#{number} → {}#{number}", paths[0].display(), paths[1].display());
            if targets[0].name != targets[1].name {
                let [first, second] = targets.map(|target| target.name);
                return Err(format!("{name}: found a log of {second}, expected one of {first}").into());
            }
            let (original, first) = Sides::of(paths[0], first, &targets[0], *seed);
            let (changed, second) = Sides::of(paths[1], second, &targets[1], *seed);
            for (path, recovered) in paths.iter().zip([&first, &second]) {
                let name = format!("{}#{number}", path.display());
                recovered.contradictions.iter().for_each(|why| output::problem(&format!("{name}: {why}")));
                recovered.problems.iter().for_each(|why| output::note(&format!("{name}: {why}")));
                let is_broken = recovered.unread > 0 || !recovered.contradictions.is_empty();
                self.exit = self.exit.max(Exit::Bad.when(is_broken));
            }
            let (pairs, alone) = matched(&original, &changed);
            for sides in pairs {
                let checked = changed.judge_against(&original, sides, &settings);
                let wrong_proofs = checked.wrong_proof.clone().map(|why| (EngineKind::Smt, why)).into_iter().collect();
                let stage = checked.name.clone();
                let judgment = Judgment {
                    verdict: checked.verdict,
                    engine: checked.engine,
                    sensitivity: checked.sensitivity,
                    time: checked.time,
                    proving: Duration::ZERO,
                    wrong_proofs,
                    is_earlier: false,
                };
                self.add(&name, &targets[0], &stage, judgment, [&[], &[]]);
            }
            for (side, section) in alone {
                output::note(&format!("{name}: `{section}` is not compared: it is in the {side} log only"));
            }
        }
        Ok(())
    }
}

/// The sides of two logs that have the same name, the nth with the nth; and the names of those that only one has.
fn matched(before: &Sides<'_>, after: &Sides<'_>) -> (Vec<[usize; 2]>, Vec<(&'static str, String)>) {
    let numbered = |sides: &Sides<'_>| -> BTreeMap<(String, usize), usize> {
        let mut counts = BTreeMap::<String, usize>::new();
        let key = |at: usize| {
            let name = sides.all[at].name.clone();
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            ((name, *count), at)
        };
        (0..sides.all.len()).map(key).collect()
    };
    let (first, second) = (numbered(before), numbered(after));
    let mut pairs: Vec<[usize; 2]> = first.iter().filter_map(|(key, &at)| Some([at, *second.get(key)?])).collect();
    pairs.sort_unstable();
    let only = |of: &BTreeMap<(String, usize), usize>, other: &BTreeMap<(String, usize), usize>, side| {
        let mut alone: Vec<_> = of.iter().filter(|(key, _)| !other.contains_key(*key)).collect();
        alone.sort_by_key(|(_, at)| **at);
        alone.into_iter().map(|((name, _), _)| (side, name.clone())).collect::<Vec<_>>()
    };
    let mut alone = only(&first, &second, "first");
    alone.extend(only(&second, &first, "second"));
    (pairs, alone)
}

impl Check {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, TIMEOUT)?;
        let summary = Summary { programs: 1, ..Summary::default() };
        let mut rows = Rows { options: self, engines: &engines, summary, exit: Exit::Passed };
        let sources = [Source::read(&self.before)?, Source::read(&self.after)?];
        let logs = sources.iter().filter(|source| source.kind == InputKind::Log).count();
        if logs == 2 {
            let shaders = sources.each_ref().map(|source| shaders_of(&source.path, &source.text));
            output::heading(WIDTH);
            rows.logs(sources.each_ref().map(|source| &*source.path), shaders.each_ref().map(|list| &**list))?;
        } else {
            let [before, after] = sources;
            let (before, after) = (one(before, self.gpu.given())?, one(after, self.gpu.given())?);
            output::heading(WIDTH);
            rows.programs(before, after, logs > 0)?;
        }
        output::summary(&rows.summary);
        Ok(Exit::of_all([engines::written(&engines), rows.exit, Exit::Nothing.when(rows.summary.checks == 0)]))
    }
}
