//! `fuzz --coverage`: the table of what programs had, kept in a file and merged over runs.

use crate::exit::Failure;
use crate::{Format, output};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_verifier::harness::campaigns::coverage::Coverage;
use ir3_verifier::programs::coverage::table::{Table, shares};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `fuzz` about what programs have.
#[derive(Args)]
pub struct CoverageArgs {
    /// File for the counts of what the programs had, as JSON; counts of an existing file are added. The table as text is written beside it,
    /// with `.txt` after its name.
    #[arg(long, value_name = "FILE")]
    coverage: Option<PathBuf>,
    /// Choose programs with what is rare among those before: of several candidates for each number, the one with the rarest operations.
    #[arg(long)]
    directed: bool,
}

impl CoverageArgs {
    /// The counts that a campaign adds to, if they are wanted. The file is read before the first program.
    ///
    /// # Errors
    /// If the file exists and is no such table.
    pub fn counts(&self) -> Result<Option<(Arc<Coverage>, Table)>, Failure> {
        let Some(path) = &self.coverage else { return Ok(None) };
        Ok(Some((Arc::default(), read(path)?)))
    }

    /// Returns true if programs are chosen.
    pub fn directed(&self) -> bool {
        self.directed
    }

    /// Writes the table with the counts of a campaign.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(
        &self,
        counts: Option<(Arc<Coverage>, Table)>,
        target: &Target,
        format: Format,
    ) -> Result<(), Failure> {
        let (Some(path), Some((coverage, mut table))) = (&self.coverage, counts) else { return Ok(()) };
        coverage.add_to(&mut table, target);
        let mut text = path.clone().into_os_string();
        text.push(".txt");
        let written = fs::write(path, serde_json::to_string_pretty(&table)? + "\n");
        written
            .and_then(|()| fs::write(&text, table.text()))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let rows = table.rows();
        match format {
            Format::Json => rows.iter().for_each(|row| output::json("coverage", row)),
            _ => output::line(shares(&rows).trim_end()),
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Table, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| format!("{}: expected a table of `fuzz --coverage`: {error}", path.display()).into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Table::default()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}
