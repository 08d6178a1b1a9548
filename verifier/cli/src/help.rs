//! The short help of commands, `-h`: the most common options, one line each. `--help` has all of it.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

/// Options that only `--help` lists: of the backend under test, of the driver, of campaigns and of proofs.
pub const ONLY_LONG: &[&str] = &[
    "max_registers",
    "disable",
    "skip",
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
