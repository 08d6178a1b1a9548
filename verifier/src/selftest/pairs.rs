//! `pairs`: runs provers on equivalent pairs and counts their proofs.

use crate::engine_run::{self, EngineRun, Table};
use crate::engines::TIMEOUT;
use crate::values;
use crate::{Exit, Failure, Format, interrupt, output};
use clap::{Args, ValueEnum};
use ir3_compiler::target::Target;
use ir3_harness::check::{Answer, Verdict};
use ir3_programs::Case;
use ir3_programs::equivalent_pairs;
use ir3_programs::equivalent_pairs::{ControlFlowShape, EquivalentPair, pairs, scaled};

/// Options of `pairs`.
#[derive(Args)]
pub struct Pairs {
    /// The number of pairs, of all kinds in turn.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = values::count::<u64>())]
    count: u64,
    /// Make pairs of this kind only. May be repeated.
    #[arg(long, value_name = "KIND", value_parser = equivalent_pairs::kinds())]
    kind: Vec<String>,
    /// Instead, make one pair of about this many instructions. May be several numbers, separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    scaled: Vec<usize>,
    /// With `--scaled`: the control flow of the pairs.
    #[arg(long, value_enum, value_name = "SHAPE", default_value = "branches", requires = "scaled")]
    shape: Flow,
    /// With `--scaled`: the percentage of instructions that are rewritten.
    #[arg(long, value_name = "PERCENT", default_value_t = 50, requires = "scaled")]
    percent: usize,
    /// Print one pair, by its number, and the verdicts of the engines.
    #[arg(long, value_name = "N")]
    show: Option<usize>,
    /// Print the pairs that are not proved.
    #[arg(long)]
    list: bool,
    /// Fail (exit code 3) unless each prover has proved at least this percentage.
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    least: u64,
    #[command(flatten)]
    run: EngineRun,
}

#[derive(Clone, Copy, ValueEnum)]
enum Flow {
    Straight,
    Branches,
    Loops,
}

impl From<Flow> for ControlFlowShape {
    fn from(flow: Flow) -> Self {
        match flow {
            Flow::Straight => Self::Straight,
            Flow::Branches => Self::Branches,
            Flow::Loops => Self::Loops,
        }
    }
}

fn heading(pair: &EquivalentPair) -> String {
    let EquivalentPair { kind, number, profile, seed, stage, .. } = pair;
    format!("pair {number}: {kind}, {profile} after {stage}, seed {seed}")
}

impl Pairs {
    /// The selected pairs, and their number.
    fn pairs<'a>(&'a self, machine: &'a Target) -> (Box<dyn Iterator<Item = EquivalentPair> + Send + 'a>, u64) {
        if !self.scaled.is_empty() {
            let pair = |&size| scaled(self.run.seed, size, self.shape.into(), self.percent, machine);
            return (Box::new(self.scaled.iter().map(pair)), self.scaled.len() as u64);
        }
        let is_selected =
            |pair: &EquivalentPair| self.kind.is_empty() || self.kind.iter().any(|kind| kind == pair.kind);
        let all = pairs(self.run.seed, machine).filter(is_selected);
        (Box::new(all.take(usize::try_from(self.count).unwrap_or(usize::MAX))), self.count)
    }

    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt::flag();
        let engines = self.run.engines(TIMEOUT)?;
        let machine = self.run.gpu.target();
        let (mut all, count) = self.pairs(&machine);
        if let Some(number) = self.show {
            let pair = all.find(|pair| pair.number == number as u64).ok_or("found no such pair")?;
            engine_run::show(&heading(&pair), &pair.question(&machine, &self.run.fuel.of(pair.envs())), &engines);
            return Ok(Exit::Passed);
        }
        let mut table = Table::default();
        let (mut wrong, mut open) = (Vec::new(), Vec::new());
        let mut each = |_: u64, pair: &EquivalentPair, answers: &[Answer]| {
            let name = match pair.source.as_ir3() {
                Some(program) if pair.kind == "scaled" => format!("{} instructions", program.instruction_count()),
                _ => pair.kind.to_owned(),
            };
            table.count(&name, answers);
            if let Err(violations) = pair.validate(&machine) {
                let first = violations.first().map_or_else(String::new, ToString::to_string);
                wrong.push((pair.number, format!("not valid: {first}; {}", heading(pair))));
            }
            for Answer { engine, verdict, time } in answers {
                let reason = verdict.reason().unwrap_or_default();
                let ms = time.as_secs_f64() * 1e3;
                let line = || format!("{verdict} by {}, {ms:.0} ms: {}: {reason}", engine.name(), heading(pair));
                match verdict {
                    Verdict::Refuted(_) => wrong.push((pair.number, line())),
                    Verdict::Unknown(_) if engine.proves() => open.push((pair.number, line())),
                    _ => {}
                }
            }
        };
        self.run.run(all, count, &engines, interrupted, &mut each)?;
        table.print(format, "rewrite", &engines.kinds);
        table.print_details(format, &engines.kinds);
        let mut met = true;
        for engine in engines.kinds.iter().filter(|engine| engine.proves()) {
            let total = table.total(*engine);
            let percent = 100.0 * total.proved as f64 / total.total().max(1) as f64;
            met &= percent >= self.least as f64;
            if format == Format::Human {
                output::line(&format!(
                    "{} proves {} of {}: {percent:.1} %",
                    engine.name(),
                    total.proved,
                    total.total()
                ));
            }
        }
        if self.list {
            engine_run::print_open(&mut open);
        }
        engine_run::print_wrong(&mut wrong);
        Ok(engine_run::exit(Exit::Refuted, &wrong, table.cases(), &engines).max(Exit::Unmet.when(!met)))
    }
}
