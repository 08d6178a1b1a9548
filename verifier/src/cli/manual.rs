//! Shell completions, and the manual page.

use crate::exit::{Exit, Failure};
use crate::{Cli, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Options of `completions`.
#[derive(Args)]
pub struct Completions {
    /// The shell that the completions are for.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// Prints the completions.
    pub fn run(&self) -> Result<Exit, Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "ir3-equiv", &mut text);
        output::document("completions", self.shell, &String::from_utf8(text)?);
        Ok(Exit::Passed)
    }
}

/// Prints the manual page, with a section for each subcommand.
pub fn page() -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        text.extend(format!(".SH \"{}\"\n", sub.get_name().to_uppercase()).bytes());
        let man = clap_mangen::Man::new(sub.clone());
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
    }
    output::document("man", "roff", &String::from_utf8(text)?);
    Ok(Exit::Passed)
}
