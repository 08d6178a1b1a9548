//! The short help of commands, `-h`: the most common options, one line each. `--help` has all of it.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

/// Options that only `--help` lists: of the backend under test, of the driver, of campaigns and of proofs.
const ONLY_LONG: &[&str] = &[
    "max_registers",
    "disable",
    "allocator",
    "round_robin",
    "shard",
    "from",
    "env_seed",
    "fuel",
    "timeout",
    "float",
    "emit_smt",
    "cache",
    "stage_time",
    "memory",
    "plant",
    "device_time",
    "driver_time",
    "driver_memory",
    "driver_output",
    "driver_set",
    "spec_constant",
    "link",
    "robust",
    "queue",
    "drop",
    "refusals",
    "no_reduce",
    "reduce_time",
    "reduce_limit",
    "coverage",
    "directed",
    "corpus",
    "variants_of",
    "compiler_arg",
    "compiler_time",
    "compiler_memory",
    "test_arg",
    "test_timeout",
    "every_boundary",
    "require",
    "largest",
    "note",
    "measurements",
    "report",
];

/// Characters of a line of the short help.
const LINE: usize = 90;

/// The command with a short help; that of its subcommands, too.
pub fn shortened(command: Command) -> Command {
    command.mut_args(short_argument).mut_subcommands(shortened)
}

fn short_argument(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let mut long = arg.get_long_help().map_or_else(|| help.clone(), ToString::to_string);
    let values = arg.get_possible_values();
    let is_flag = !arg.get_action().takes_values();
    if !values.is_empty() && !is_flag {
        let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
        long += &format!("\n\nValues: {}", names.join(", "));
    }
    let only_long = ONLY_LONG.contains(&arg.get_id().as_str());
    let arg = if is_flag { arg } else { arg.hide_possible_values(true) };
    arg.help(first_sentence(&help)).long_help(long).hide_short_help(only_long)
}

/// The first sentence of a text, or its start up to a colon or semicolon.
fn first_sentence(text: &str) -> String {
    let sentence = text.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let ends = [": ", "; ", ", "];
    let mut short = sentence;
    for end in ends {
        if short.chars().count() > LINE {
            short = short.rfind(end).filter(|&at| at > 20).map_or(short, |at| &short[..at]);
        }
    }
    if short.chars().count() <= LINE {
        return short.to_owned();
    }
    let cut: String = short.chars().take(LINE).collect();
    format!("{}…", cut.rsplit_once(' ').map_or(&*cut, |(start, _)| start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_each_command_fits_on_a_screen() {
        let mut command = shortened(crate::Cli::command());
        command.build();
        for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set()) {
            let name = sub.get_name().to_owned();
            let help = sub.render_help().to_string();
            let lines: usize = help.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum();
            assert!(lines <= 36, "{name}: {lines} lines\n{help}");
            assert!(!help.contains("possible values") && !help.contains("a306a"), "{name}");
            if name != "help" && name != "man" {
                assert!(sub.render_long_help().to_string().len() > help.len(), "{name}");
            }
        }
    }

    #[test]
    fn options_of_the_list_exist() {
        let mut command = crate::Cli::command();
        command.build();
        let has = |name: &str| command.get_subcommands().any(|sub| sub.get_arguments().any(|arg| arg.get_id() == name));
        for name in ONLY_LONG {
            assert!(has(name), "{name}");
        }
    }
}
