//! `ir3-selftest vec4`: checks the passes of vec4 on generated vec4 programs.

use crate::engines::EngineArgs;
use crate::{Compiler, Exit, Failure, Format, Jobs, engines, exit, interrupt, output, values};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use ir3_compiler::i965::vec4::text;
use ir3_harness::check::EngineKind;
use ir3_programs::planted_bugs::vec4::ALL;
use ir3_programs::planted_bugs::{PlantedBug, by_name};
use ir3_selftest::vec4::Vec4Campaign;
use std::path::PathBuf;

/// Options of `vec4`.
#[derive(Args)]
pub struct Vec4 {
    /// The number of programs.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = values::count::<u64>())]
    programs: u64,
    /// Seed of the programs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Approximate limit on the instructions of a program.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = values::count::<u32>())]
    size: u32,
    /// Stop after this many refutations, each of which is reduced.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::count::<usize>())]
    findings: usize,
    /// Plant this bug.
    #[arg(long, value_name = "NAME", value_parser = bugs())]
    plant: Option<&'static PlantedBug>,
    /// Write the smallest refuted program to this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    compiler: Compiler,
}

fn bugs() -> impl TypedValueParser<Value = &'static PlantedBug> {
    PossibleValuesParser::new(ALL.iter().map(|bug| bug.name)).try_map(|name| by_name(&name).ok_or("no such bug"))
}

impl Vec4 {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let campaign = Vec4Campaign {
            seed: self.seed,
            programs: self.programs,
            size: self.size,
            options: self.compiler.options(),
            bug: self.plant,
            engines: self.engines.engines(&EngineKind::ALL, engines::PROOF_TIME)?,
            jobs: self.jobs.count(),
            findings: self.findings,
        };
        let counts = campaign.run(interrupt::flag());
        for finding in &counts.findings {
            let (stage, length) = (finding.stage, finding.program.instrs.len());
            let program = text::write(&finding.program);
            output::json(
                "vec4",
                &serde_json::json!({ "program": finding.number, "stage": stage.name(), "reduced": program }),
            );
            if format == Format::Human {
                output::line(&format!("refuted: program {}, stage {stage}; reduced to {length}:", finding.number));
                output::text(&program);
            }
        }
        if let (Some(path), Some(finding)) = (&self.write, counts.findings.first()) {
            std::fs::write(path, text::write(&finding.program))?;
        }
        for (number, stage) in &counts.wrong_proofs {
            output::problem(&format!("program {number}: {stage} was proved, and a run refutes it"));
        }
        output::summary(&counts.summary);
        let unsound = if counts.wrong_proofs.is_empty() { Exit::Passed } else { Exit::Unsound };
        Ok(Exit::of_all([unsound, exit::of_verdicts(&counts.summary)]))
    }
}
