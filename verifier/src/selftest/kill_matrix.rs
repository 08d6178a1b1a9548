//! `kill-matrix`: plants miscompilations and counts which engine finds which kind.

use crate::engine_run::{self, EngineRun, Table};
use crate::engines::TIMEOUT;
use crate::values;
use crate::{Exit, Failure, Format, interrupt, output};
use clap::Args;
use ir3_harness::check::{Answer, EngineKind, Verdict};
use ir3_programs::Case;
use ir3_selftest::kill_matrix::{Mutant, Mutants, kinds};

/// Options of `kill-matrix`.
#[derive(Args)]
pub struct KillMatrix {
    /// The number of miscompilations to plant.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::count::<u64>())]
    mutants: u64,
    /// The greatest number of mutants of one kind.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = values::count::<u64>())]
    most: u64,
    /// Print one mutant, by its number, and the verdicts of the engines.
    #[arg(long, value_name = "N")]
    show: Option<usize>,
    /// Print the numbers of mutants that a prover neither refutes nor proves.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    run: EngineRun,
}

impl KillMatrix {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt::flag();
        let engines = self.run.engines(TIMEOUT)?;
        let machine = self.run.gpu.target();
        let mut mutants = Mutants::new(self.run.seed, self.most, &machine);
        let heading = |number: u64, mutant: &Mutant| {
            let Mutant { kind, stage, profile, seed, .. } = mutant;
            format!("mutant {number}: {kind} after {stage}, {profile}, seed {seed}")
        };
        if let Some(number) = self.show {
            let mutant = mutants.nth(number).ok_or("found fewer mutants")?;
            engine_run::show(
                &heading(number as u64, &mutant),
                &mutant.question(&machine, &self.run.fuel.of(mutant.envs())),
                &engines,
            );
            return Ok(Exit::Passed);
        }
        let mut table = Table::new(kinds());
        let mut stages = Table::default();
        let (mut wrong, mut open) = (Vec::new(), Vec::new());
        let mut each = |number: u64, mutant: &Mutant, answers: &[Answer]| {
            table.count(mutant.kind, answers);
            stages.count(mutant.stage.name(), answers);
            for Answer { engine, verdict, .. } in answers.iter().filter(|answer| answer.engine.proves()) {
                let line = |verdict: &Verdict| format!("{} by {}: {}", verdict, engine.name(), heading(number, mutant));
                match verdict {
                    Verdict::Proved { .. } => wrong.push((number, line(verdict))),
                    Verdict::Unknown(why) if *engine != EngineKind::Registers => {
                        open.push((number, format!("{}: {why}", line(verdict))));
                    }
                    _ => {}
                }
            }
        };
        let count = self.mutants;
        let cases = mutants.by_ref().take(usize::try_from(count)?);
        self.run.run(cases, count, &engines, interrupted, &mut each)?;
        table.print(format, "kind of change", &engines.kinds);
        if format == Format::Human {
            output::line("");
        }
        stages.print(format, "stage", &engines.kinds);
        table.print_details(format, &engines.kinds);
        if format == Format::Human {
            let tried = mutants.tried;
            output::line(&format!(
                "\n{} of {} changes that were tried make a difference; {} are not valid, with {} no run differed",
                table.cases(),
                tried.changes,
                tried.invalid,
                tried.same
            ));
        }
        if self.list {
            engine_run::print_open(&mut open);
        }
        engine_run::print_wrong(&mut wrong);
        Ok(engine_run::exit(Exit::Unsound, &wrong, table.cases(), &engines))
    }
}
