//! `ir3-equiv`: the command line, one file for each subcommand.

mod agreement;
mod assemble;
mod broken_logs;
mod check;
mod compile;
mod contents;
mod corpus;
mod coverage;
mod disassemble;
mod engine_run;
mod engines;
mod exit;
mod fuzz;
mod fuzz_compiler;
mod generate;
mod hazard_mutants;
mod hazards;
mod help;
mod interrupt;
mod junit;
mod kill_matrix;
mod log_mutants;
mod machine;
mod manual;
mod merge;
mod mesa;
mod missed_bugs;
mod output;
mod pairs;
mod paths;
mod planted_bugs;
mod prover_mutants;
mod reduce;
mod reduce_texts;
mod results;
mod rules;
mod run;
mod show;
mod spirv;
mod stats;
mod temporary;
mod triage;
mod turnip;
mod unknown_programs;
mod values;
mod vec4;
mod verify;
mod vulkan;
mod words;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use exit::{Exit, Failure};
use ir3_compiler::pipeline::{Allocator, Feature, Options, RegisterLimit, Rotation};
use ir3_compiler::target::Target;
use ir3_harness::guard::{self, Guard, Limits};
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::environment::env::Env;
use std::process::ExitCode;
use std::time::Duration;

/// Checks that a shader compiler's passes preserve the meaning of programs.
#[derive(Parser)]
#[command(name = "ir3-equiv", version = ir3_harness::version::LINE, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The output: text for people, one JSON object a line (docs/json.md), or JUnit's XML, of `verify`, `check`, `mesa` and `rules`.
    #[arg(long, value_enum, default_value = "human", global = true)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
    Junit,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles programs with every stage and compares every boundary.
    Verify(verify::Verify),
    /// Compiles generated programs, and compares before and after.
    Fuzz(fuzz::Fuzz),
    /// Compares two texts, of the same language or of different ones, or two logs.
    #[command(visible_alias = "diff")]
    Check(check::Check),
    /// Checks the passes of Mesa's ir3 by the log that it prints.
    Mesa(mesa::Mesa),
    /// Prints the logs of shaders that Mesa's turnip compiles, without a GPU.
    Turnip(turnip::Turnip),
    /// Prints a program after a stage.
    Compile(compile::Compile),
    /// Runs a program and prints its observable results.
    Run(run::Run),
    /// Prints a random program.
    Generate(generate::Generate),
    /// Reduces a failing program, preserving the class of the failure.
    Reduce(reduce::Reduce),
    /// Groups failures by cause, and reduces those that are not yet reduced.
    Triage(triage::Triage),
    /// Adds up the parts of a campaign on several machines.
    Merge(merge::Merge),
    /// Writes a bundle as one HTML page: the failure, both programs, control flow, values and registers.
    Show(show::Show),
    /// Proves every rewrite rule of the compiler, for all operands.
    Rules(rules::Rules),
    /// Proves that final programs wait for their results, on every path and for any order of completion.
    Hazards(hazards::Hazards),
    /// Prints the costs of programs, alone or in comparison with Mesa's.
    Stats(stats::StatsCommand),
    /// Prints the text of machine code.
    Disassemble(disassemble::Disassemble),
    /// Prints the words of machine code.
    Assemble(assemble::Assemble),
    /// Writes a nir program as SPIR-V, for compilers that read that.
    Spirv(spirv::Spirv),
    /// Campaigns that test ir3-equiv itself, for its developers.
    #[command(subcommand)]
    SelfTest(SelfTest),
    /// Compiles programs for another process, which can end this one.
    #[command(hide = true)]
    Worker(Worker),
    /// Prints the completions of a shell.
    Completions(manual::Completions),
    /// Prints the manual page, in roff.
    Man,
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
    /// Leaves out side conditions of the provers, one at a time, and prints which campaign notices (with `--features prover-mutants`).
    ProverMutants(prover_mutants::ProverMutants),
    /// Takes machine code from words to text and back: listings of logs, or random words.
    Words(words::Words),
}

/// Options of `worker`.
#[derive(Args)]
struct Worker {
    arguments: Vec<String>,
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
    /// The GPU; `--gpu list` lists them. Unless given: that of a log's generation (a320, a420, a540, a660, a750 or a830), otherwise a660.
    #[arg(long = "gpu", value_name = "GPU", value_parser = values::gpu())]
    target: Option<Target>,
}

impl Gpu {
    /// The GPU of the command line.
    fn given(&self) -> Option<Target> {
        self.target
    }

    /// The GPU where no log names a generation.
    fn target(&self) -> Target {
        self.target.unwrap_or_default()
    }
}

/// The fuel of runs, for every subcommand that runs programs.
#[derive(Args, Clone)]
struct Fuel {
    /// Instructions of the wave after which a run of the program before is aborted; 200000, or the fuel of the
    /// environment, unless given. The program after may take a multiple of those that the program before has taken.
    #[arg(long, value_name = "N", value_parser = values::count::<u64>())]
    fuel: Option<u64>,
}

impl Fuel {
    /// The fuel of the command line.
    fn given(&self) -> Option<u64> {
        self.fuel
    }

    /// Returns the environment with this fuel, if it is given.
    fn of_one(&self, env: Env) -> Env {
        Env { fuel: self.fuel.or(env.fuel), ..env }
    }

    /// Returns the environments with this fuel, if it is given.
    fn of(&self, envs: Vec<Env>) -> Vec<Env> {
        Env::with_fuel(envs, self.fuel)
    }
}

/// The limits of the compiler, for subcommands that guard it.
#[derive(Args, Clone)]
struct Guarding {
    /// Limit on the CPU time of a stage of the compiler; exceeding it is a failure.
    #[arg(long, value_name = "T", value_parser = values::time, default_value = "5s")]
    stage_time: Duration,
    /// Memory limit of the process in which the compiler runs (`512M`, `2G`); exceeding it is a failure.
    #[arg(long, value_name = "SIZE", value_parser = values::memory, default_value = "2G")]
    memory: u64,
}

impl Guarding {
    fn limits(&self) -> Limits {
        Limits { time: self.stage_time, memory: self.memory }
    }
}

/// Compiler options, for every subcommand that compiles.
#[derive(Args, Clone)]
struct Compiler {
    /// Registers that a program may take: full general registers, 4 to a vec4, or `min`: the fewest that it compiles
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
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', value_parser = values::features())]
    disable: Vec<Feature>,
    /// The allocator of general registers: in SSA form, or by graph colouring.
    #[arg(long, value_name = "ALLOCATOR", default_value = "ssa", hide_default_value = true, value_parser = values::allocator())]
    allocator: AllocatorName,
    /// With `--allocator graph-colouring`: the nodes after which the search continues at the next register instead of
    /// the first one (`first-fit`: none). `document` unless given.
    #[arg(long, value_name = "RULE", requires = "allocator", value_parser = values::rotation())]
    round_robin: Option<Rotation>,
}

ir3_compiler::words! {
    /// The allocators, on the command line.
    pub enum AllocatorName {
        /// Assignment in SSA form.
        Ssa = "ssa",
        /// Graph colouring.
        GraphColouring = "graph-colouring",
    }
}

impl Stages {
    fn options(&self) -> Options {
        let options = Options { allocator: self.allocator(), ..Options::default() };
        self.disable.iter().copied().fold(options, Options::without)
    }

    fn allocator(&self) -> Allocator {
        match self.allocator {
            AllocatorName::Ssa => Allocator::Ssa,
            AllocatorName::GraphColouring => Allocator::GraphColouring(self.round_robin.unwrap_or_default()),
        }
    }
}

impl Compiler {
    fn options(&self) -> Options {
        Options { registers: self.max_registers, ..self.stages.options() }
    }

    /// Returns true if it is not the default.
    fn is_given(&self) -> bool {
        let Stages { disable, allocator, round_robin } = &self.stages;
        let stages = !disable.is_empty() || *allocator != AllocatorName::Ssa || round_robin.is_some();
        stages || self.max_registers != RegisterLimit::Target
    }
}

/// A planted bug, for every subcommand that compiles.
#[derive(Args, Clone)]
struct Planted {
    /// Plants a bug after a stage of the backend, to test if it is found.
    #[arg(long, value_name = "BUG", value_parser = values::plants(), help_heading = "Testing ir3-equiv itself")]
    plant: Option<&'static PlantedBug>,
}

impl Planted {
    /// The bug, for a compilation to this target.
    ///
    /// # Errors
    /// If its programs have no stage of the bug.
    fn on(&self, target: &Target) -> Result<Option<&'static PlantedBug>, String> {
        match self.plant {
            Some(plant) if !plant.stage.is_of(target.backend) => Err(format!(
                "`--plant {}`: it changes the programs after {}, which is no stage for {target}",
                plant.name, plant.stage
            )),
            plant => Ok(plant),
        }
    }
}

impl Command {
    /// Returns true if the complete backend runs, with all of its rules. A compiler under test is checked by its log: `fuzz --compiler`
    /// starts it thousands of times.
    fn compiles(&self) -> bool {
        if let Self::Compile(command) = self {
            return !command.is_under_test();
        }
        !matches!(
            self,
            Self::Rules(_)
                | Self::Run(_)
                | Self::Hazards(_)
                | Self::Generate(_)
                | Self::Disassemble(_)
                | Self::Assemble(_)
                | Self::Spirv(_)
                | Self::Turnip(_)
                | Self::Completions(_)
                | Self::Worker(_)
                | Self::Man
        )
    }
}

impl Cli {
    /// Works for another process, if this one was started for that: without output of its own, and deaf to signals of the terminal.
    fn work(&self) -> Option<Result<Exit, Failure>> {
        match &self.command {
            Command::Worker(Worker { arguments }) => {
                let serve = |arguments| Ok(guard::worker::serve(&arguments).map(|()| Exit::Passed)?);
                Some(guard::worker::Arguments::parse(arguments).map_err(Failure::from).and_then(serve))
            }
            Command::Fuzz(fuzz) => Some(fuzz.work(fuzz.worker()?)),
            _ => None,
        }
    }

    /// The limits of the compiler, if it is guarded.
    fn limits(&self) -> Option<Limits> {
        match &self.command {
            Command::Fuzz(command) => Some(command.guarding.limits()),
            Command::Verify(command) => Some(command.guarding.limits()),
            Command::Reduce(_) | Command::Triage(_) | Command::Merge(_) | Command::Show(_) => Some(Limits::default()),
            _ => None,
        }
    }

    /// Runs the subcommand.
    fn run(&self) -> Result<Exit, Failure> {
        if self.command.compiles() {
            rules::check_enabled()?;
        }
        guard::try_start()?;
        let reports_boundaries =
            matches!(self.command, Command::Verify(_) | Command::Check(_) | Command::Mesa(_) | Command::Rules(_));
        if self.format == Format::Junit && !reports_boundaries {
            return Err("`--format junit` is for verify, check, mesa and rules".into());
        }
        match &self.command {
            Command::Verify(command) => command.run(self.format),
            Command::Fuzz(command) => command.run(self.format),
            Command::Check(command) => command.run(),
            Command::Compile(command) => command.run(),
            Command::Mesa(command) => command.run(self.format),
            Command::Turnip(command) => command.run(),
            Command::Run(command) => command.run(self.format),
            Command::Generate(command) => command.run(),
            Command::Reduce(command) => command.run(self.format),
            Command::Triage(command) => command.run(self.format),
            Command::Merge(command) => command.run(self.format),
            Command::Rules(command) => command.run(self.format),
            Command::Hazards(command) => command.run(self.format),
            Command::Stats(command) => command.run(self.format),
            Command::Show(command) => command.run(),
            Command::Disassemble(command) => command.run(),
            Command::Assemble(command) => command.run(),
            Command::Spirv(command) => command.run(),
            Command::Worker(_) => Err("a worker has been started by hand".into()),
            Command::Completions(command) => command.run(),
            Command::Man => manual::page(),
            Command::SelfTest(SelfTest::PlantedBugs(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::MissedBugs(command)) => command.run(),
            Command::SelfTest(SelfTest::KillMatrix(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::HazardMutants(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::BrokenLogs(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::LogMutants(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::Vec4(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::Machine(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::Pairs(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::Agreement(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::ProverMutants(command)) => command.run(self.format),
            Command::SelfTest(SelfTest::Words(command)) => command.run(self.format),
            Command::OldPlantedBugs(old) => old.run("planted-bugs"),
            Command::OldKillMatrix(old) => old.run("kill-matrix"),
            Command::OldPairs(old) => old.run("pairs"),
            Command::OldAgreement(old) => old.run("agreement"),
            Command::OldProverMutants(old) => old.run("prover-mutants"),
        }
    }
}

/// The arguments of the command line, for the first object of JSON.
fn given() -> Vec<String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Prints the help, or the error of the command line.
fn usage(error: &clap::Error) -> Exit {
    let arguments = given();
    let json =
        arguments.iter().any(|it| it == "--format=json") || arguments.windows(2).any(|it| it == ["--format", "json"]);
    if !error.use_stderr() {
        // Help and version are text in every format.
        output::begin(Format::Human, "");
        let text = error.render().to_string();
        // The list of values of an option is such an error, too.
        output::text(text.strip_prefix("error: ").unwrap_or(&text));
        return Exit::Passed;
    }
    if json {
        output::begin(Format::Json, &arguments.join(" "));
        output::problem(error.render().to_string().trim());
        output::end(Exit::Bad);
    } else {
        // A broken standard error has nowhere to be reported.
        let _ = error.print();
    }
    Exit::Bad
}

fn main() -> ExitCode {
    let matches = help::shortened(Cli::command()).try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    if let Err(error) = interrupt::files_have_limits() {
        output::error(&error);
        return Exit::Bad.into();
    }
    if let Some(worked) = cli.work() {
        let exit = worked.unwrap_or_else(|error| {
            eprintln!("{error}");
            exit::of_failure(&*error)
        });
        return exit.into();
    }
    if let (Some(limits), Ok(program)) = (cli.limits(), std::env::current_exe()) {
        guard::configure(Guard { program, limits });
    }
    // Before the first line: who reads it may send a signal.
    let installed = interrupt::install();
    output::begin(cli.format, &given().join(" "));
    let result = installed.map_err(Failure::from).and_then(|()| cli.run());
    interrupt::ends_by_itself();
    let exit = result.unwrap_or_else(|error| {
        output::error(&*error);
        exit::of_failure(&*error)
    });
    // A signal prevented the rest, so report the signal.
    let exit = if interrupt::is_set() { exit.max(Exit::Interrupted) } else { exit };
    output::end(exit);
    exit.into()
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

    /// An option takes a number, a time, a path or one of the values that its help lists.
    #[test]
    fn values_are_listed() {
        use clap::CommandFactory;
        fn look(command: &clap::Command, path: &str) {
            let free = [
                "N",
                "S",
                "SEED",
                "J",
                "T",
                "DIR",
                "FILE",
                "PATH",
                "LIMIT",
                "CMD",
                "ARG",
                "PERCENT",
                "AFTER",
                "BEFORE",
                "BUNDLE",
                "LOG",
                "NAMES",
                "I/N",
                "SIZE",
                "NAME=VALUE",
                "NUMBER=VALUE",
                "SHADER",
                "DEVICE",
            ];
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values() && !arg.is_hide_set()) {
                let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
                let is_free = name.as_deref().is_some_and(|name| free.contains(&name));
                let listed = !arg.get_possible_values().is_empty();
                assert!(is_free || listed, "{path} {} {name:?}", arg.get_id());
            }
            let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
            shown.for_each(|sub| look(sub, &format!("{path} {}", sub.get_name())));
        }
        let mut command = Cli::command();
        command.build();
        look(&command, "ir3-equiv");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
