//! `ir3-equiv`: the command line, one file for each subcommand.

mod assemble;
mod check;
mod compile;
mod corpus;
mod coverage;
mod disassemble;
mod fuzz;
mod fuzz_compiler;
mod generate;
mod hazards;
mod manual;
mod merge;
mod mesa;
mod paths;
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
mod verify;
mod vulkan;

use clap::{Args, Parser, Subcommand};
use ir3_cli::{
    Compiler, EnvSeed, Exit, Failure, Format, Fuel, Gpu, Guarding, Jobs, Planted, Stages, contents, engines, exit,
    given, interrupt, junit, output, values,
};
use ir3_harness::guard::{self, Guard, Limits};
use std::process::ExitCode;

/// Checks that a shader compiler's passes preserve the meaning of programs.
#[derive(Parser)]
#[command(name = "ir3-equiv", version = ir3_harness::version::LINE, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The output: text for people, one JSON object a line (docs/json.md), or JUnit's XML (of `verify`, `check`, `mesa`
    /// and `rules` only).
    #[arg(long, value_enum, default_value = "human", global = true)]
    format: Format,
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
    /// Compiles programs for another process, which can end this one.
    #[command(hide = true)]
    Worker(Worker),
    /// Prints the completions of a shell.
    Completions(manual::Completions),
    /// Prints the manual page, in roff.
    Man,
    #[command(hide = true, aliases = ["planted-bugs", "kill-matrix", "pairs", "agreement", "prover-mutants"])]
    SelfTest(OldName),
}

/// Options of `worker`.
#[derive(Args)]
struct Worker {
    arguments: Vec<String>,
}

/// A subcommand that is one of `ir3-selftest` by now.
#[derive(Args)]
struct OldName {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

impl OldName {
    /// # Errors
    /// Always: the error names the program.
    fn run(&self) -> Result<Exit, Failure> {
        Err("the campaigns that test ir3-equiv itself are subcommands of the program `ir3-selftest` now".into())
    }
}

impl Command {
    /// Returns true if the complete backend runs, with all of its rules. A compiler under test is checked by its log:
    /// `fuzz --compiler` starts it thousands of times.
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
                | Self::SelfTest(_)
        )
    }
}

impl Cli {
    /// Works for another process, if this one was started for that: without output of its own, and deaf to signals of
    /// the terminal.
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
            Command::SelfTest(old) => old.run(),
        }
    }
}

fn main() -> ExitCode {
    let cli: Cli = match ir3_cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
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
    ir3_cli::run(cli.format, || cli.run())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use ir3_cli::help;

    #[test]
    fn old_names_are_errors_that_say_the_new_ones() {
        let verify = |engines| Cli::try_parse_from(["ir3-equiv", "verify", "corpus", "--engine", engines]);
        let Err(error) = verify("contents,smt") else { panic!("an old name") };
        assert!(error.to_string().contains("now `registers`"), "{error}");
        assert!(verify("registers,smt").is_ok());
        let moved: [&[&str]; 4] =
            [&["self-test", "pairs"], &["self-test"], &["kill-matrix", "--mutants", "5"], &["prover-mutants"]];
        for arguments in moved {
            let Ok(cli) = Cli::try_parse_from(["ir3-equiv"].iter().chain(arguments)) else { panic!("{arguments:?}") };
            let Command::SelfTest(old) = cli.command else { panic!("{arguments:?} is no old name") };
            assert!(old.run().is_err_and(|error| error.to_string().contains("`ir3-selftest`")), "{arguments:?}");
        }
    }

    /// An option takes a number, a time, a path or one of the values that its help lists.
    #[test]
    fn values_are_listed() {
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
                "ARM[:N..]",
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
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_each_command_fits_on_a_screen() {
        let mut command = help::shortened(Cli::command());
        command.build();
        for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set()) {
            let name = sub.get_name().to_owned();
            let text = sub.render_help().to_string();
            let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum();
            assert!(lines <= 36, "{name}: {lines} lines\n{text}");
            assert!(!text.contains("possible values") && !text.contains("a306a"), "{name}");
            if name != "help" && name != "man" {
                assert!(sub.render_long_help().to_string().len() > text.len(), "{name}");
            }
        }
    }

    #[test]
    fn options_of_the_list_exist() {
        let mut command = Cli::command();
        command.build();
        let has = |name: &str| command.get_subcommands().any(|sub| sub.get_arguments().any(|arg| arg.get_id() == name));
        for name in help::ONLY_LONG {
            assert!(has(name), "{name}");
        }
    }
}
