//! `agreement`: whether the interpreter refutes what was proved.

use crate::judging::{Judging, Table};
use crate::{Exit, Failure, Format, interrupt_flag, output};
use clap::Args;
use ir3_compiler::pipeline::Options;
use ir3_verifier::check::Verdict;
use ir3_verifier::check::boundaries::{Boundary, boundaries};
use ir3_verifier::check::judge::{Answers, Engine, contradiction};
use serde::Serialize;
use std::time::Duration;

/// Options of `agreement`.
#[derive(Args)]
pub struct Agreement {
    /// Programs: those that `fuzz` makes of the same seed.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    programs: u64,
    /// The number of the first program: goes on where another run with the same seed has ended.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Environments in which the interpreter attacks each boundary, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 4)]
    runs: u32,
    #[command(flatten)]
    judging: Judging,
}

/// The end, as JSON.
#[derive(Serialize)]
struct Outcome {
    boundaries: u64,
    proved: u64,
    attacked: u64,
    disagreements: usize,
}

impl Agreement {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt_flag()?;
        // The interpreter is asked in any case: it is who disagrees.
        let mut engines: Vec<Engine> = self.judging.engines().into_iter().filter(|engine| engine.proves()).collect();
        engines.push(Engine::Interpreter);
        let machine = self.judging.gpu.target;
        let cases = boundaries(self.judging.seed, self.from, self.programs, self.runs, &machine, Options::default());
        let mut table = Table::default();
        let (mut proved, mut attacked, mut disagreements) = (0u64, 0u64, Vec::new());
        let mut each = |_: u64, boundary: &Boundary, answers: &Answers| {
            table.count(boundary.stage.name(), answers);
            let proves = |(_, verdict, _): &(Engine, Verdict, Duration)| matches!(verdict, Verdict::Proved { .. });
            let runs = |(engine, verdict, _): &(Engine, Verdict, Duration)| {
                *engine == Engine::Interpreter && matches!(verdict, Verdict::Tested { .. } | Verdict::Refuted(_))
            };
            let is_proved = answers.iter().any(proves);
            proved += u64::from(is_proved);
            attacked += u64::from(is_proved && answers.iter().any(runs));
            if let Some((provers, why)) = contradiction(answers) {
                let Boundary { program, profile, seed, stage, .. } = boundary;
                let who: Vec<&str> = provers.into_iter().map(Engine::name).collect();
                let who = who.join(" and ");
                disagreements
                    .push(format!("{who} proved {stage} of program {program} ({profile}, seed {seed}): {why}"));
            }
        };
        self.judging.ask(cases, self.programs * 12, &engines, &interrupted, &mut each)?;
        table.print(format, "stage", &engines);
        table.print_details(format, &engines);
        disagreements.sort_unstable();
        match format {
            Format::Json => output::json(&Outcome {
                boundaries: table.cases(),
                proved,
                attacked,
                disagreements: disagreements.len(),
            }),
            Format::Human => output::line(&format!(
                "\n{} boundaries of {} programs; {proved} proved, {attacked} of them run in {} environments with a meaning; \
                 {} refuted all the same",
                table.cases(),
                self.programs,
                self.runs,
                disagreements.len()
            )),
        }
        for line in &disagreements {
            eprintln!("ir3-equiv: {line}");
        }
        Ok(if disagreements.is_empty() { Exit::Passed } else { Exit::Unsound })
    }
}
