//! `fuzz --coverage`: the table of covered cells, kept in a file and merged over runs.

use crate::exit::{self, Failure};
use crate::{Format, output};
use clap::Args;
use ir3_harness::campaigns::coverage::Coverage;
use ir3_harness::vulkan::coverage::Compared;
use ir3_programs::coverage::table::{Table, shares};
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `fuzz` about coverage.
#[derive(Args)]
pub struct CoverageArgs {
    /// File for the coverage counts, as JSON; counts of an existing file are added. The table as text is written to
    /// the same name with `.txt` appended. With --vulkan: what was compared on devices, and with `.md` the table
    /// of docs/coverage.md.
    #[arg(long, value_name = "FILE")]
    coverage: Option<PathBuf>,
    /// Choose programs with rare operations: of several candidates for each number, the one with the rarest. So
    /// the same seed makes other programs. Unless given: yes with `--coverage`, and no without.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    directed: Option<bool>,
}

impl CoverageArgs {
    /// The table so far, if it is wanted. The file is read, and its folder is tried, before the first program.
    ///
    /// # Errors
    /// If the file exists and is no such table, or cannot be written.
    pub fn table(&self) -> Result<Option<Table>, Failure> {
        let Some(path) = &self.coverage else { return Ok(None) };
        exit::try_file(path)?;
        read(path).map(Some)
    }

    /// The record of comparisons on devices, if it is wanted.
    ///
    /// # Errors
    /// If the file exists and is no such file, or cannot be written.
    pub fn compared(&self) -> Result<Option<(PathBuf, Compared)>, Failure> {
        let Some(path) = &self.coverage else { return Ok(None) };
        exit::try_file(path)?;
        Ok(Some((path.clone(), read(path)?)))
    }

    /// The counts that a campaign adds to, if they are wanted.
    pub fn counts(&self) -> Option<Arc<Coverage>> {
        self.coverage.is_some().then(Arc::default)
    }

    /// Returns true if programs are chosen.
    pub fn is_directed(&self) -> bool {
        self.directed.unwrap_or(self.coverage.is_some())
    }

    /// Writes the table, and prints its shares.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, table: &Table, format: Format) -> Result<(), Failure> {
        let Some(path) = &self.coverage else { return Ok(()) };
        let mut text = path.clone().into_os_string();
        text.push(".txt");
        exit::write_file(path, serde_json::to_string_pretty(table)? + "\n")?;
        exit::write_file(Path::new(&text), table.text())?;
        let rows = table.rows();
        match format {
            Format::Json => rows.iter().for_each(|row| output::json("coverage", row)),
            _ => output::line(shares(&rows).trim_end()),
        }
        Ok(())
    }
}

/// Writes what was compared on devices, and prints the table.
///
/// # Errors
/// If a file cannot be written.
pub fn write_compared(path: &Path, compared: &Compared) -> Result<(), Failure> {
    let mut text = path.to_owned().into_os_string();
    text.push(".md");
    let table = compared.table();
    exit::write_file(path, serde_json::to_string_pretty(compared)? + "\n")?;
    exit::write_file(Path::new(&text), &table)?;
    output::line(table.trim_end());
    Ok(())
}

fn read<T: DeserializeOwned + Default>(path: &Path) -> Result<T, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| format!("{}: expected a table of `fuzz --coverage`: {error}", path.display()).into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}
