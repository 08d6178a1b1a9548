//! `ir3-selftest`: campaigns that test `ir3-equiv` itself, for its developers; one file for each subcommand.

mod agreement;
mod broken_logs;
mod engine_run;
mod hazard_mutants;
mod kill_matrix;
mod log_mutants;
mod machine;
mod missed_bugs;
mod pairs;
mod planted_bugs;
mod prover_mutants;
mod vec4;
mod words;

use clap::{Parser, Subcommand};
use ir3_cli::{Compiler, EnvSeed, Exit, Failure, Format, Fuel, Gpu, Jobs, engines, exit, interrupt, output, values};
use std::process::ExitCode;

/// Campaigns that test ir3-equiv itself, for its developers.
#[derive(Parser)]
#[command(name = "ir3-selftest", version = ir3_harness::version::LINE, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The output: text for people, or one JSON object a line (docs/json.md).
    #[arg(long, value_enum, default_value = "human", global = true)]
    format: Format,
}

#[derive(Subcommand)]
enum Command {
    /// Measures how soon each planted bug is found, and the size of the reduced program.
    PlantedBugs(planted_bugs::PlantedBugs),
    /// Plants miscompilations, and prints which engine finds which kind.
    KillMatrix(kill_matrix::KillMatrix),
    /// Plants each bug in real programs, and counts those that matter and `verify` misses.
    MissedBugs(missed_bugs::MissedBugs),
    /// Changes waits of final programs, and prints which changes the hazard checker and the machine refute.
    HazardMutants(hazard_mutants::HazardMutants),
    /// Breaks real logs (cut, noisy, mixed), and checks how `mesa` handles them.
    BrokenLogs(broken_logs::BrokenLogs),
    /// Applies one mutation to one section of real logs, and prints the mutations that `mesa` refutes, and the passes.
    LogMutants(log_mutants::LogMutants),
    /// Checks the passes of vec4 on generated vec4 programs.
    Vec4(vec4::Vec4),
    /// Runs the final programs of Mesa's logs on the machine, from their words, and compares them with their nir.
    Machine(machine::MachineTest),
    /// Counts the equivalent programs, made by sound rewrites, that the engines prove.
    Pairs(pairs::Pairs),
    /// Searches for runs that contradict proofs, over random programs.
    Agreement(agreement::Agreement),
    /// Leaves out side conditions of the provers, one at a time, and prints which campaign detects it (with `--features
    /// prover-mutants`).
    ProverMutants(prover_mutants::ProverMutants),
    /// Disassembles machine code and assembles it again: listings of logs, or random words.
    Words(words::Words),
}

impl Cli {
    /// Runs the subcommand.
    fn run(&self) -> Result<Exit, Failure> {
        ir3_prove::rewrite_rules::check_enabled()?;
        if self.format == Format::Junit {
            return Err("`--format junit` is for ir3-equiv verify, check, mesa and rules".into());
        }
        match &self.command {
            Command::PlantedBugs(command) => command.run(self.format),
            Command::KillMatrix(command) => command.run(self.format),
            Command::MissedBugs(command) => command.run(),
            Command::HazardMutants(command) => command.run(self.format),
            Command::BrokenLogs(command) => command.run(self.format),
            Command::LogMutants(command) => command.run(self.format),
            Command::Vec4(command) => command.run(self.format),
            Command::Machine(command) => command.run(self.format),
            Command::Pairs(command) => command.run(self.format),
            Command::Agreement(command) => command.run(self.format),
            Command::ProverMutants(command) => command.run(self.format),
            Command::Words(command) => command.run(self.format),
        }
    }
}

fn main() -> ExitCode {
    let cli: Cli = match ir3_cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    ir3_cli::run(cli.format, || cli.run())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn an_old_name_of_an_engine_is_an_error_that_names_the_new_one() {
        let pairs = |engines| Cli::try_parse_from(["ir3-selftest", "pairs", "--engine", engines]);
        let Err(error) = pairs("contents,smt") else { panic!("an old name") };
        assert!(error.to_string().contains("now `registers`"), "{error}");
        assert!(pairs("registers,smt").is_ok());
    }
}
