//! `agreement`: searches for runs that contradict proofs.

use crate::engine_run::{self, EngineRun, Table};
use crate::values;
use crate::{Exit, Failure, Format, interrupt, output};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use ir3_compiler::pipeline::Options;
use ir3_harness::campaigns::boundaries::{Boundary, Series, boundaries};
use ir3_harness::check::{Answer, EngineKind, Verdict, contradiction, proofs};
use ir3_programs::Case;
use ir3_programs::Pair;
use ir3_programs::adversarial;
use ir3_programs::adversarial::{FAMILIES, Family};
use ir3_programs::divergence;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// CPU time for one proof: there are many programs, and slow proofs are left open.
const TIMEOUT: Duration = Duration::from_millis(300);

/// Options of `agreement`.
#[derive(Args)]
pub struct Agreement {
    /// The number of programs: those that `fuzz` generates from the same seed.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::count::<u64>())]
    programs: u64,
    /// The number of the first program, to continue where another run with the same seed has ended.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// The number of random environments in which each proved boundary is run, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = values::count::<u32>())]
    runs: u32,
    /// The approximate limit of instructions of a program before it is compiled.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = values::count::<u32>())]
    size: u32,
    /// Instead of compiled programs, divergence pairs: small programs with divergent lanes, each with a changed
    /// version that may or may not be equivalent.
    #[arg(long)]
    waves: bool,
    /// Instead of compiled programs, adversarial pairs of a family, or of all families in turn.
    #[arg(long, value_name = "FAMILY", conflicts_with = "waves", value_parser = family_names())]
    family: Option<String>,
    /// Print the first of these pairs, and the verdicts on it.
    #[arg(long)]
    show: bool,
    /// Print the pairs that are not proved.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    run: EngineRun,
}

fn family_names() -> PossibleValuesParser {
    let families = FAMILIES.iter().map(|family| PossibleValue::new(family.name).help(family.about));
    PossibleValuesParser::new(families.chain([PossibleValue::new("all").help("all of them, in turn")]))
}

/// The summary, as JSON.
#[derive(Serialize)]
struct AgreementSummary {
    boundaries: u64,
    proved: u64,
    attacked: u64,
    disagreements: usize,
    next: u64,
}

/// A line about a case.
struct Named<'a> {
    /// The number of its program.
    number: u64,
    /// The row of the table.
    row: &'a str,
    what: String,
}

impl<'a> From<&'a Boundary> for Named<'a> {
    fn from(boundary: &'a Boundary) -> Self {
        let Boundary { program, profile, seed, stage, .. } = boundary;
        let what = format!("{stage} of program {program} ({profile}, seed {seed})");
        Self { number: *program, row: stage.name(), what }
    }
}

impl<'a> From<&'a Pair> for Named<'a> {
    fn from(pair: &'a Pair) -> Self {
        let &Pair { family, change, number, .. } = pair;
        match family {
            Some(family) => Self { number, row: family, what: format!("{family} {number}: {change}") },
            None => Self { number, row: change, what: format!("{change} in program {number}") },
        }
    }
}

/// A pair whose programs differ, or may differ, in a run.
trait Compared: Case {
    /// Returns true if they differ by construction.
    fn differs(&self) -> bool {
        false
    }
}

impl Compared for Boundary {}

impl Compared for Pair {
    fn differs(&self) -> bool {
        self.differs
    }
}

impl Agreement {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let machine = self.run.gpu.target();
        if let Some(name) = &self.family {
            let families: Vec<&Family> =
                FAMILIES.iter().filter(|family| name == "all" || family.name == name).collect();
            let numbers = self.from..self.last();
            let pairs = adversarial::pairs(families, self.run.seed, numbers, self.runs, &machine);
            return if self.show { self.show(pairs) } else { self.compare(pairs, self.programs, format) };
        }
        if self.waves {
            let pairs = divergence::pairs(self.run.seed, self.from..self.last(), self.runs, &machine);
            return if self.show { self.show(pairs) } else { self.compare(pairs, self.programs, format) };
        }
        let series = Series { seed: self.run.seed, first: self.from, programs: self.programs, size: self.size };
        let cases = boundaries(series, self.runs, &machine, Options::default());
        if self.show {
            return self.show(cases);
        }
        self.compare(cases, self.programs.saturating_mul(12), format)
    }

    /// Prints the first case.
    fn show<C: Case>(&self, mut cases: impl Iterator<Item = C>) -> Result<Exit, Failure>
    where
        for<'a> Named<'a>: From<&'a C>,
    {
        let case = cases.next().ok_or("this program has no change that is valid")?;
        let engines = self.run.engines(TIMEOUT)?;
        let heading = Named::from(&case).what;
        engine_run::show(&heading, &case.question(&self.run.gpu.target(), &self.run.fuel.of(case.envs())), &engines);
        Ok(Exit::Passed)
    }

    /// Returns true if the cases are adversarial pairs.
    fn has_pairs(&self) -> bool {
        self.waves || self.family.is_some()
    }

    /// The number after that of the last program.
    fn last(&self) -> u64 {
        self.from.saturating_add(self.programs)
    }

    fn compare<C: Compared>(
        &self,
        mut cases: impl Iterator<Item = C> + Send,
        count: u64,
        format: Format,
    ) -> Result<Exit, Failure>
    where
        for<'a> Named<'a>: From<&'a C>,
    {
        let interrupted = interrupt::flag();
        // The interpreter always runs: it is the one that disagrees.
        let mut engines = self.run.engines(TIMEOUT)?;
        engines.kinds.retain(|engine| engine.proves());
        engines.kinds.push(EngineKind::Interpreter);
        // The interpreter runs all of them; another search for inputs would only take time.
        engines.smt.limits.inputs &= !self.has_pairs();
        let mut table = Table::default();
        let (mut proved, mut attacked, mut disagreements, mut open) = (0u64, 0u64, Vec::new(), Vec::new());
        let mut wrong: BTreeMap<String, u64> = BTreeMap::new();
        let mut each = |_: u64, case: &C, answers: &[Answer]| {
            let Named { number, row, what } = case.into();
            table.count(row, answers);
            let runs = |answer: &Answer| {
                answer.engine == EngineKind::Interpreter
                    && matches!(answer.verdict, Verdict::Tested { .. } | Verdict::Refuted(_))
            };
            let is_proved = proofs(answers).next().is_some();
            proved += u64::from(is_proved);
            attacked += u64::from(is_proved && answers.iter().any(runs));
            let by_construction = || {
                let provers: Vec<EngineKind> = proofs(answers).map(|answer| answer.engine).collect();
                (case.differs() && is_proved).then(|| (provers, "the programs differ by construction".to_owned()))
            };
            if let Some((provers, why)) = contradiction(answers).or_else(by_construction) {
                let who: Vec<&str> = provers.into_iter().map(EngineKind::name).collect();
                disagreements.push((number, format!("{} proved {what}: {why}", who.join(" and "))));
                *wrong.entry(row.to_owned()).or_default() += 1;
            }
            for Answer { engine, verdict, time } in answers.iter().filter(|it| self.list && it.engine.proves()) {
                if let Verdict::Unknown(why) = verdict {
                    let ms = time.as_secs_f64() * 1e3;
                    let why = why.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    open.push((number, format!("{verdict} by {}, {ms:.0} ms: {what}: {why}", engine.name())));
                }
            }
        };
        self.run.run(cases.by_ref(), count, &engines, interrupted, &mut each)?;
        let first = match (&self.family, self.waves) {
            (Some(_), _) => "family",
            (None, true) => "change",
            (None, false) => "stage",
        };
        table.print(format, first, &engines.kinds);
        table.print_details(format, &engines.kinds);
        // The program at which another run can resume: the first with a case that was not done.
        let next = cases.next().map_or(self.last(), |case| Named::from(&case).number);
        engine_run::print_open(&mut open);
        match format {
            Format::Json => output::json(
                "agreement",
                &AgreementSummary {
                    boundaries: table.cases(),
                    proved,
                    attacked,
                    disagreements: disagreements.len(),
                    next,
                },
            ),
            _ => output::line(&format!(
                "\n{} {} of {} programs; {proved} proved, {} open; {attacked} of the proved ones run in {} environments \
                 with a meaning, {} refuted all the same",
                table.cases(),
                if self.has_pairs() { "changes" } else { "boundaries" },
                next - self.from,
                table.cases() - proved,
                self.runs,
                disagreements.len()
            )),
        }
        for (row, count) in wrong.iter().filter(|_| format == Format::Human) {
            output::line(&format!("{row}: {count} wrong proofs"));
        }
        if next < self.last() {
            output::note(&format!("interrupted; `--from {next}` continues"));
        }
        engine_run::print_wrong(&mut disagreements);
        Ok(engine_run::exit(Exit::Unsound, &disagreements, table.cases(), &engines))
    }
}
