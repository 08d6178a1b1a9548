//! The parts that the programs `ir3-equiv` and `ir3-selftest` share: options, output, signals and exit codes.

pub mod contents;
pub mod engines;
pub mod exit;
pub mod help;
pub mod interrupt;
pub mod junit;
pub mod options;
pub mod output;
pub mod values;

pub use exit::{Exit, Failure};
pub use options::{AllocatorName, Compiler, EnvSeed, Format, Fuel, Gpu, Guarding, Jobs, Planted, Stages};

use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

/// The arguments of the command line, for the first object of JSON.
pub fn given() -> Vec<String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Parses the command line of a program.
///
/// # Errors
/// The exit code, after the help or the error has been printed.
pub fn parse<C: CommandFactory + FromArgMatches>() -> Result<C, ExitCode> {
    let matches = help::shortened(C::command()).try_get_matches();
    let command = matches.and_then(|matches| C::from_arg_matches(&matches)).map_err(|error| usage(&error))?;
    interrupt::files_have_limits().map_err(|error| {
        output::error(&error);
        Exit::Bad
    })?;
    Ok(command)
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

/// Runs a subcommand: its output, from the first line to the last, and its exit code.
pub fn run(format: Format, subcommand: impl FnOnce() -> Result<Exit, Failure>) -> ExitCode {
    // Before the first line: who reads it may send a signal.
    let installed = interrupt::install();
    output::begin(format, &given().join(" "));
    let result = installed.map_err(Failure::from).and_then(|()| subcommand());
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
