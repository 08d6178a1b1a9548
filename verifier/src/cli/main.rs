//! `ir3-equiv`: the command line, one file for each subcommand.

mod agreement;
mod asking;
mod check;
mod compile;
mod engines;
mod fuzz;
mod generate;

mod kill_matrix;
mod output;
mod pairs;
mod planted_bugs;
mod prover_mutants;
mod reduce;
mod rules;
mod run;
mod show;
mod stats;
mod triage;
mod verify;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use ir3_compiler::pipeline::{Feature, Features, Options, RegisterLimit};
use ir3_compiler::target::Target;
use ir3_verifier::programs::planted_bugs::PlantedBug;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checks that a shader compiler's passes keep what a program means.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Output for people or for machines (one JSON object a line).
    #[arg(long, value_enum, default_value = "human", global = true)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles programs with every stage and compares every boundary.
    Verify(verify::Verify),
    /// Does the same with random programs.
    Fuzz(fuzz::Fuzz),
    /// Compares two texts, of the same language or of different ones.
    Check(check::Check),
    /// Prints a program after a stage.
    Compile(compile::Compile),
    /// Runs a program and prints what can be observed.
    Run(run::Run),
    /// Prints a random program.
    Generate(generate::Generate),
    /// Makes a program that fails smaller, while it fails in the same way.
    Reduce(reduce::Reduce),
    /// Puts failures together that are one bug, and reduces what has not been.
    Triage(triage::Triage),
    /// Writes a bundle as one HTML page: what fails, both programs, control flow, values and registers.
    Show(show::Show),
    /// Proves every rewrite rule of the compiler, for all operands.
    Rules(rules::Rules),
    /// Prints what programs cost, alone or beside Mesa's.
    Stats(stats::StatsCommand),
    /// Campaigns that test ir3-equiv itself, for its developers.
    #[command(subcommand)]
    SelfTest(SelfTest),
    #[command(hide = true, name = "planted-bugs")]
    OldPlantedBugs(OldName),
    #[command(hide = true, name = "kill-matrix")]
    OldKillMatrix(OldName),
    #[command(hide = true, name = "pairs")]
    OldPairs(OldName),
    #[command(hide = true, name = "agreement")]
    OldAgreement(OldName),
    #[command(hide = true, name = "prover-mutants")]
    OldProverMutants(OldName),
}

#[derive(Subcommand)]
enum SelfTest {
    /// Prints how soon each planted bug is found, and what is left of the program.
    PlantedBugs(planted_bugs::PlantedBugs),
    /// Plants miscompilations, and prints which engine finds which kind.
    KillMatrix(kill_matrix::KillMatrix),
    /// Prints how many equivalent programs, made by sound rewrites, the engines prove.
    Pairs(pairs::Pairs),
    /// Has the interpreter attack what was proved, over random programs.
    Agreement(agreement::Agreement),
    /// Leaves out side conditions of the provers, one at a time, and prints which campaign notices (with `--features prover-mutants`).
    ProverMutants(prover_mutants::ProverMutants),
}

/// A subcommand by the name that it had before it became one of `self-test`.
#[derive(Args)]
struct OldName {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

impl OldName {
    /// # Errors
    /// Always: the error names the new subcommand.
    fn run(&self, name: &str) -> Result<Exit, Failure> {
        Err(format!("`{name}` is now `self-test {name}`").into())
    }
}

/// The GPU, for every subcommand that compiles.
#[derive(Args, Clone)]
struct Gpu {
    /// The GPU to compile for, by name (a306 … a750) or number.
    #[arg(long = "gpu", value_name = "GPU", default_value = "a660", value_parser = parse_gpu)]
    target: Target,
}

/// Compiler options, for every subcommand that compiles.
#[derive(Args, Clone)]
struct Compiler {
    /// Registers that a program may take: full general registers, 4 to a vec4, or `min`: as few as it can do
    /// with, or `min+N`: N more than that.
    #[arg(long, value_name = "LIMIT", default_value = "target", hide_default_value = true)]
    max_registers: RegisterLimit,
    #[command(flatten)]
    stages: Stages,
}

/// The stages to run.
#[derive(Args, Clone)]
struct Stages {
    /// Leave out a stage, or a part of one. May be repeated.
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', value_parser = feature_names())]
    disable: Vec<Feature>,
}

impl Stages {
    fn options(&self) -> Options {
        self.disable.iter().copied().fold(Options::default(), Options::without)
    }
}

impl Compiler {
    fn options(&self) -> Options {
        Options { registers: self.max_registers, ..self.stages.options() }
    }
}

fn parse_gpu(name: &str) -> Result<Target, String> {
    Target::by_name(name).map_err(|error| error.to_string())
}

/// A planted bug, for every subcommand that compiles.
#[derive(Args, Clone)]
struct Planted {
    /// Plants a bug after a stage of the backend, to see whether and how it is found.
    #[arg(long, value_name = "BUG", value_parser = plant_names(), help_heading = "Testing ir3-equiv itself")]
    plant: Option<&'static PlantedBug>,
}

/// The features by their names.
fn feature_names() -> impl TypedValueParser<Value = Feature> {
    PossibleValuesParser::new(Features::all().iter().map(Feature::name))
        .try_map(|name| Feature::from_name(&name).ok_or("found no such feature"))
}

/// The planted bugs by their names, which the help lists.
fn plant_names() -> impl TypedValueParser<Value = &'static PlantedBug> {
    let names = ir3_verifier::programs::planted_bugs::ALL
        .iter()
        .map(|plant| PossibleValue::new(plant.name).help(plant.description));
    PossibleValuesParser::new(names)
        .try_map(|name| ir3_verifier::programs::planted_bugs::by_name(&name).ok_or("found no such bug"))
}

/// The exit codes.
enum Exit {
    /// All passed.
    Passed,
    /// Something was refuted.
    Refuted,
    /// Less was reached than `--require` demands.
    Unmet,
    /// An input or the usage was bad.
    Bad,
    /// An engine proved something that is wrong.
    Unsound,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Passed => 0,
            Exit::Refuted => 1,
            Exit::Bad | Exit::Unsound => 2,
            Exit::Unmet => 3,
        })
    }
}

/// An error that ends the program: its text goes to standard error.
type Failure = Box<dyn std::error::Error>;

/// A flag that Ctrl-C sets; a second Ctrl-C ends the program at once.
fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    Ok(flag)
}

impl Command {
    /// Returns true if the complete backend runs, with all of its rules.
    fn compiles(&self) -> bool {
        !matches!(self, Self::Rules(_) | Self::Run(_) | Self::Generate(_))
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.command.compiles()
        && let Err(error) = rules::check_enabled()
    {
        output::error(&error);
        return Exit::Bad.into();
    }
    let result = match &cli.command {
        Command::Verify(command) => command.run(cli.format),
        Command::Fuzz(command) => command.run(cli.format),
        Command::Check(command) => command.run(cli.format),
        Command::Compile(command) => command.run(),
        Command::Run(command) => command.run(cli.format),
        Command::Generate(command) => command.run(),
        Command::Reduce(command) => command.run(cli.format),
        Command::Triage(command) => command.run(cli.format),
        Command::SelfTest(SelfTest::PlantedBugs(command)) => command.run(cli.format),
        Command::OldPlantedBugs(old) => old.run("planted-bugs"),
        Command::Show(command) => command.run(cli.format),
        Command::Rules(command) => command.run(cli.format),
        Command::Stats(command) => command.run(cli.format),
        Command::SelfTest(SelfTest::KillMatrix(command)) => command.run(cli.format),
        Command::OldKillMatrix(old) => old.run("kill-matrix"),
        Command::SelfTest(SelfTest::Pairs(command)) => command.run(cli.format),
        Command::OldPairs(old) => old.run("pairs"),
        Command::SelfTest(SelfTest::Agreement(command)) => command.run(cli.format),
        Command::OldAgreement(old) => old.run("agreement"),
        Command::SelfTest(SelfTest::ProverMutants(command)) => command.run(cli.format),
        Command::OldProverMutants(old) => old.run("prover-mutants"),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::error(&*error);
            Exit::Bad.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_are_errors_that_say_the_new_ones() {
        for arguments in [["verify", "corpus"], ["self-test", "pairs"]] {
            let old = ["ir3-equiv"].iter().chain(&arguments).chain(&["--engine", "contents,smt"]);
            let Err(error) = Cli::try_parse_from(old) else { panic!("{arguments:?}") };
            assert!(error.to_string().contains("now `registers`"), "{error}");
            let new = ["ir3-equiv"].iter().chain(&arguments).chain(&["--engine", "registers,smt"]);
            assert!(Cli::try_parse_from(new).is_ok());
        }
        for (name, arguments) in [("kill-matrix", &["--mutants", "5"][..]), ("pairs", &[]), ("prover-mutants", &[])] {
            let Ok(cli) = Cli::try_parse_from(["ir3-equiv", name].iter().chain(arguments)) else { panic!("{name}") };
            let error = match cli.command {
                Command::OldKillMatrix(old) | Command::OldPairs(old) | Command::OldProverMutants(old) => old.run(name),
                _ => panic!("{name} is no old name"),
            };
            let error = error.err().map(|error| error.to_string());
            assert_eq!(error, Some(format!("`{name}` is now `self-test {name}`")));
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
