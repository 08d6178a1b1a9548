//! `check`: compares two texts, or two logs section by section.
//!
//! Each row is one comparison with one verdict, by the same rules as a pass of a log: `program` where both files are
//! programs, and for two logs nir with nir, each pass that both print, and final code with final code.

use crate::engines::{self, EngineArgs, TIMEOUT};
use crate::exit::{self, Unwritten};
use crate::values;
use crate::{EnvSeed, Exit, Failure, Fuel, Gpu, output};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_harness::check::{
    self, BoundaryKind, EngineKind, Engines, Judge, Judgment, NO_ENGINE, NotShown, Policy, ProgramInputs, Refutation,
    Search, Summary, TextPair, Unknown, Verdict,
};
use ir3_harness::mesa::{CODE, Checked, NIR, Settings, Sides};
use ir3_programs::input;
use ir3_programs::input::Named;
use ir3_programs::mesa::input::{InputError, InputKind, Source, find_pairs, is_pair_folder};
use ir3_programs::mesa::native::Native;
use ir3_programs::mesa::pair_file::read_pairs;
use ir3_programs::mesa::shader::{LogShader, shaders_of};
use ir3_programs::seeds::env_seeds;
use ir3_report::page::PageFolder;
use ir3_report::pair::{PairEvidence, PairFolder};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `check`.
#[derive(Args)]
pub struct Check {
    /// The program before: nir or ir3, or a Mesa log, whose nir is used; if AFTER is a log too, all programs of both
    /// logs are compared. Without AFTER: both programs, with a line `// after` between them (several of them
    /// with `// after NAME`); or the folder of a refuted
    /// pair, which `mesa` and `check --failures` write; or a folder of such files and folders.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The program after.
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,
    /// The number of random environments (inputs) that both are run on, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    seed: EnvSeed,
    /// Use this environment, as JSON, instead of `--runs` and `--seed`.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    gpu: Gpu,
    /// Write each refuted comparison as a folder in DIR: both programs, the input, the runs up to the first
    /// difference.
    #[arg(long, value_name = "DIR")]
    failures: Option<PathBuf>,
    /// Write a page for each refuted comparison in DIR.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    #[command(flatten)]
    engines: EngineArgs,
}

/// The width of the column of program names.
const WIDTH: usize = 60;

/// CPU time after which no inputs are added.
const SEARCH: Duration = Duration::from_millis(500);

/// Inputs of a fragment that a row names.
const MOST_NAMED: usize = 8;

/// The difference between the groups of the constant file that the driver fills for two shaders: then the same word has
/// another meaning in each of them.
fn other_groups(shaders: [&LogShader; 2]) -> Option<String> {
    let natives = shaders.map(|shader| Native::read(shader.assembly.as_ref(), None, Vec::new()).ok());
    let [Some(first), Some(second)] = natives else { return None };
    let [of_first, of_second] = [&first, &second].map(Native::filled_groups);
    if !first.has_groups || !second.has_groups || of_first == of_second {
        return None;
    }
    let named = |groups: &[String]| match groups {
        [] => "nothing".to_owned(),
        groups => format!("`{}`", groups.join(", ")),
    };
    let [first, second] = [named(&of_first), named(&of_second)];
    Some(format!(
        "the driver fills the constant file in another way, so no words can be compared: found {second}, expected \
         {first} as in the first log (logs of two GPUs, or of two drivers)"
    ))
}

/// Reads the programs of two files, which are as many.
fn programs_of([before, after]: [Source; 2], gpu: Option<Target>) -> Result<Vec<[Named; 2]>, Failure> {
    let paths = [&before, &after].map(|source| source.path.display().to_string());
    let (before, after) = (input::load_source(before, gpu)?, input::load_source(after, gpu)?);
    if before.len() != after.len() {
        let [first, second] = &paths;
        let (found, expected) = (after.len(), before.len());
        return Err(format!("{second}: found {found} programs, expected {expected} as in {first}").into());
    }
    Ok(before.into_iter().zip(after).map(|(before, after)| [before, after]).collect())
}

/// The rows of a comparison.
struct Rows<'a> {
    options: &'a Check,
    engines: &'a Engines,
    summary: Summary,
    exit: Exit,
    pages: Option<PageFolder>,
    /// True if a refuted row shows its evidence.
    shows: bool,
    /// The name of the pair within its file.
    variant: Option<String>,
}

impl Rows<'_> {
    /// Prints the evidence of a refuted row, and writes it.
    fn show(&mut self, program: &str, target: &Target, stage: &str, refutation: &Refutation) -> Result<(), Failure> {
        let evidence = PairEvidence::new(format!("{program}: {stage}"), refutation, target);
        evidence.lines().iter().for_each(|line| output::line(&format!("    {line}")));
        if let Some(root) = &self.options.failures {
            let path = evidence.write(root).map_err(|error| Unwritten::new(root, error))?;
            output::line(&format!("    written to {}", path.display()));
        }
        if let Some(pages) = &mut self.pages {
            let page = pages.add_pair(&evidence)?;
            output::line(&format!("    page {}", page.display()));
        }
        Ok(())
    }

    fn add(
        &mut self,
        program: &str,
        target: &Target,
        stage: &str,
        judgment: Judgment,
        [inputs, results]: [&[String]; 2],
    ) -> Result<(), Failure> {
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
            output::problem(&format!("{} proved a boundary that a run refutes: {why}", prover.name()));
            self.exit = Exit::Unsound;
        }
        match &verdict {
            Verdict::Refuted(refutation) if self.shows => self.show(program, target, stage, refutation),
            _ => Ok(()),
        }
    }

    /// Compares the pairs of a file, or the two programs of a folder.
    fn pair(&mut self, path: &Path) -> Result<(), Failure> {
        let Check { gpu, env, .. } = self.options;
        match PairFolder::read(path)? {
            Some(PairFolder { target, programs: [before, after], env: own, .. }) => {
                let sources = [Source::read(&before)?, Source::read(&after)?];
                self.sources(sources, Some(gpu.given().unwrap_or(target)), Some(env.as_deref().unwrap_or(&own)))
            }
            None => read_pairs(path)?.into_iter().try_for_each(|pair| {
                self.variant = pair.name;
                let checked = self.sources(pair.sources, gpu.given(), env.as_deref());
                self.variant = None;
                checked
            }),
        }
    }

    /// Compares two texts.
    fn sources(&mut self, sources: [Source; 2], gpu: Option<Target>, env: Option<&Path>) -> Result<(), Failure> {
        let logs = sources.iter().filter(|source| source.kind == InputKind::Log).count();
        let heading = |rows: &Self| {
            if rows.summary.programs == 0 {
                output::heading(WIDTH);
            }
        };
        if logs == 2 {
            let shaders = sources.each_ref().map(|source| shaders_of(&source.path, &source.text));
            heading(self);
            return self.logs(sources.each_ref().map(|source| &*source.path), shaders.each_ref().map(|list| &**list));
        }
        let pairs = programs_of(sources, gpu)?;
        heading(self);
        self.summary.programs += pairs.len() as u64;
        pairs.into_iter().try_for_each(|pair| self.programs(pair, logs > 0, env))
    }

    /// Compares two programs. If one is that of a log, it is its nir.
    fn programs(&mut self, [before, after]: [Named; 2], is_of_log: bool, env: Option<&Path>) -> Result<(), Failure> {
        let Check { runs, seed: EnvSeed { seed }, fuel, .. } = self.options;
        let target = before.target;
        let name = match before.name == after.name {
            true => self.variant.iter().fold(before.name.clone(), |path, name| format!("{path} ({name})")),
            false => format!("{} → {}", before.name, after.name),
        };
        for side in [&before, &after] {
            output::taken(&side.name, &side.taken);
        }
        let is_open = before.has_unknown_results || after.has_unknown_results;
        let pair = TextPair::new(before.program, after.program, &target);
        let is_open = is_open && pair.results.is_empty();
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
        // A pass would not cover the registers that the next stage gets.
        let open_end =
            is_open.then(|| NotShown::Piece("the texts do not name the registers that are read after them".to_owned()));
        let mut judge = Judge::new(policy, target, &envs, &mut scratch);
        let judgment = pair.judge(&mut |boundary| judge.judge(boundary), || open_end.clone());
        let stage = match pair.kind {
            _ if is_of_log => "nir of the log",
            BoundaryKind::Final => "final code",
            _ => "program",
        };
        self.add(&name, &target, stage, judgment, [&pair.inputs, &pair.results])
    }

    /// Compares two logs, shader by shader and section by section.
    fn logs(&mut self, paths: [&Path; 2], [before, after]: [&[LogShader]; 2]) -> Result<(), Failure> {
        let Check { runs, seed: EnvSeed { seed }, gpu, .. } = self.options;
        let (pairs, alone) = matched_shaders(before, after);
        if pairs.is_empty() {
            let [first, second] = paths.map(Path::display);
            return Err(format!(
                "found no shader of {first} in {second}: {} and {} shaders",
                before.len(),
                after.len()
            )
            .into());
        }
        for (side, number, stage) in alone {
            let path = paths[side].display();
            output::note(&format!("{path}#{number} ({stage}) is not compared: the other log has no such shader"));
            self.exit = self.exit.max(Exit::Unmet);
        }
        self.summary.programs += pairs.len() as u64;
        let settings = Settings::new(self.engines, *runs as usize, *seed);
        for [i, j] in pairs {
            let (first, second) = (&before[i], &after[j]);
            let targets = [first, second].map(|shader| shader.target(gpu.given()));
            let names = [format!("{}#{i}", paths[0].display()), format!("{}#{j}", paths[1].display())];
            let name = format!("{} → {}", names[0], names[1]);
            if targets[0].name != targets[1].name {
                let [first, second] = targets.map(|target| target.name);
                return Err(format!("{name}: found a log of {second}, expected one of {first}").into());
            }
            let shaders = [first, second];
            output::line(&first_textual_difference(&name, paths, shaders));
            if let Some(why) = other_groups(shaders) {
                output::problem(&format!("{name}: {why}"));
                self.exit = self.exit.max(Exit::Bad);
                continue;
            }
            let (original, first) = Sides::of(paths[0], first, &targets[0], *seed);
            let (changed, second) = Sides::of(paths[1], second, &targets[1], *seed);
            for (name, recovered) in names.iter().zip([&first, &second]) {
                recovered.contradictions.iter().for_each(|why| output::problem(&format!("{name}: {why}")));
                recovered.problems.iter().for_each(|why| output::note(&format!("{name}: {why}")));
                let is_broken = recovered.unread > 0 || !recovered.contradictions.is_empty();
                self.exit = self.exit.max(Exit::Bad.when(is_broken));
            }
            let (mut sides, alone) = matched(&original, &changed);
            if shaders.iter().all(|shader| shader.assembly.is_none() && shader.listing.is_none()) {
                sides.retain(|[side, _]| original.all[*side].name != CODE);
            }
            if sides.is_empty() {
                let headlines = |which: &str| {
                    let list: Vec<String> =
                        alone.iter().filter(|(side, _)| *side == which).map(|(_, name)| format!("`{name}`")).collect();
                    if list.is_empty() { "no section".to_owned() } else { list.join(", ") }
                };
                output::problem(&format!(
                    "{name}: found no section that both logs have, expected one at least: the first has {}, the second {}",
                    headlines("first"),
                    headlines("second")
                ));
                self.exit = self.exit.max(Exit::Nothing);
                continue;
            }
            let mut is_refuted = false;
            for sides in sides {
                let checked = changed.judge_against(&original, sides, &settings);
                // The first one shows the input and the instructions; later passes have the same difference.
                is_refuted |= self.checked(&name, &targets[0], checked, !is_refuted)?;
            }
            for (side, section) in alone {
                output::note(&format!("{name}: `{section}` is not compared: it is in the {side} log only"));
            }
            if is_refuted {
                self.own(&names, &targets[0], [&original, &changed], &settings)?;
            }
        }
        Ok(())
    }

    /// Adds the row of a comparison of a log. Returns true if it is refuted.
    fn checked(&mut self, name: &str, target: &Target, checked: Checked<'_>, shows: bool) -> Result<bool, Failure> {
        let wrong_proofs = checked.wrong_proof.clone().map(|why| (EngineKind::Smt, why)).into_iter().collect();
        let stage = checked.name.clone();
        let is_refuted = checked.verdict.is_refuted();
        let judgment = Judgment {
            verdict: checked.verdict,
            engine: checked.engine,
            sensitivity: checked.sensitivity,
            time: checked.time,
            proving: Duration::ZERO,
            wrong_proofs,
            is_earlier: false,
        };
        self.shows = shows;
        self.add(name, target, &stage, judgment, [&[], &[]])?;
        self.shows = true;
        Ok(is_refuted)
    }

    /// Compares the final code of each of two shaders that differ with its own nir, and names the wrong one.
    fn own(
        &mut self,
        names: &[String; 2],
        target: &Target,
        shaders: [&Sides<'_>; 2],
        settings: &Settings<'_>,
    ) -> Result<(), Failure> {
        let mut verdicts = Vec::new();
        for (name, sides) in names.iter().zip(shaders) {
            let last = sides.all.len().saturating_sub(1);
            let has_nir = sides.all.first().is_some_and(|side| side.name == NIR);
            if !has_nir || last == 0 {
                output::note(&format!("{name}: its final code is not compared with its own nir: the log has not both"));
                verdicts.push(None);
                continue;
            }
            let checked = Checked { name: OWN.to_owned(), ..sides.judge([0, last], settings) };
            verdicts.push(Some((checked.verdict.is_pass(), checked.verdict.is_refuted())));
            self.checked(name, target, checked, true)?;
        }
        let [good, bad] = names;
        let text = match verdicts[..] {
            [Some((true, _)), Some((_, true))] => {
                format!("{bad} is wrong: it differs from its own nir, and {good} does not")
            }
            [Some((_, true)), Some((true, _))] => {
                format!("{good} is wrong: it differs from its own nir, and {bad} does not")
            }
            [Some((_, true)), Some((_, true))] => "both are wrong: each differs from its own nir".to_owned(),
            [Some((true, _)), Some((true, _))] => {
                "neither differs from its own nir: the two nirs are other programs".to_owned()
            }
            _ => "which of the two is wrong is not known".to_owned(),
        };
        output::line(&format!("    {text}"));
        Ok(())
    }
}

/// The name of the comparison of final code with the nir of the same log.
const OWN: &str = "own nir → final code";

/// A shader of one of two logs: the log, its number there, and its stage.
type Alone<'a> = (usize, usize, &'a str);

/// The shaders of two logs that are the same: of one stage and with the same nir, or else the next of the stage.
fn matched_shaders<'a>(before: &'a [LogShader], after: &'a [LogShader]) -> (Vec<[usize; 2]>, Vec<Alone<'a>>) {
    let text = |shader: &'a LogShader| shader.nir.as_ref().map(|section| section.text.trim_end());
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    for by_text in [true, false] {
        for (i, first) in before.iter().enumerate() {
            let is_free = |j: usize, pairs: &[[usize; 2]]| pairs.iter().all(|pair| pair[1] != j);
            if pairs.iter().any(|pair| pair[0] == i) {
                continue;
            }
            let is_same = |second: &LogShader| second.stage == first.stage;
            let found = after.iter().enumerate().find(|&(j, second)| {
                is_free(j, &pairs)
                    && is_same(second)
                    && (!by_text || text(second).is_some() && text(second) == text(first))
            });
            pairs.extend(found.map(|(j, _)| [i, j]));
        }
    }
    pairs.sort_unstable();
    let only = |side: usize, shaders: &'a [LogShader]| {
        let is_alone = |number: usize| pairs.iter().all(|pair| pair[side] != number);
        let found = shaders.iter().enumerate().filter(move |(number, _)| is_alone(*number));
        found.map(move |(number, shader)| (side, number, &*shader.stage)).collect::<Vec<_>>()
    };
    let alone = [only(0, before), only(1, after)].concat();
    (pairs, alone)
}

/// The first section of two shaders that has another text, with its lines.
fn first_textual_difference(name: &str, paths: [&Path; 2], [first, second]: [&LogShader; 2]) -> String {
    let mut used: Vec<String> = Vec::new();
    for section in first.sections() {
        let title = section.title();
        let earlier = used.iter().filter(|its| **its == title).count();
        used.push(title.clone());
        let Some(other) = second.sections().filter(|other| other.title() == title).nth(earlier) else { continue };
        let different =
            (1..).zip(section.text.lines().zip(other.text.lines())).find(|(_, (a, b))| a.trim_end() != b.trim_end());
        let lengths = section.text.trim_end().lines().count() != other.text.trim_end().lines().count();
        let line = match different {
            Some((line, _)) => line,
            None if lengths => 1,
            None => continue,
        };
        let [a, b] = [section, other].map(|section| section.place(line, 1).0);
        return format!(
            "{name}: the first section that differs in text is `{title}` ({}:{a}, {}:{b})",
            paths[0].display(),
            paths[1].display()
        );
    }
    format!("{name}: all sections that both have are the same text")
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
        let summary = Summary::default();
        if let Some(folder) = &self.failures {
            exit::try_folder(folder)?;
        }
        let pages = self.html.as_deref().map(PageFolder::create).transpose()?;
        let mut rows =
            Rows { options: self, engines: &engines, summary, exit: Exit::Passed, pages, shows: true, variant: None };
        match &self.after {
            Some(after) => {
                let both = [&self.before, after];
                if let Some(path) = both.into_iter().find(|path| path.is_dir()) {
                    let expected = "a file: a folder of pairs has no second argument";
                    return Err(InputError::Folder { path: path.clone(), expected }.into());
                }
                rows.sources([Source::read(both[0])?, Source::read(both[1])?], self.gpu.given(), self.env.as_deref())?;
            }
            None if self.before.is_dir() && !is_pair_folder(&self.before) => {
                for path in find_pairs(&self.before)? {
                    if let Err(error) = rows.pair(&path) {
                        rows.exit = rows.exit.max(exit::of_failure(&*error));
                        output::error(&*error);
                    }
                }
            }
            None => rows.pair(&self.before)?,
        }
        output::summary(&rows.summary);
        Ok(Exit::of_all([engines::written(&engines), rows.exit, Exit::Nothing.when(rows.summary.checks == 0)]))
    }
}
