//! `show`: writes a bundle as one HTML page.

use crate::{Exit, Failure, Format, output};
use clap::Args;
use ir3_verifier::harness::report::{bundle, page};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `show`.
#[derive(Args)]
pub struct Show {
    /// A bundle: the folder of a failure.
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// The file to be written, `-` for standard output; `report.html` in the bundle unless given.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The page that was written.
#[derive(Serialize)]
struct Written<'a> {
    r#type: &'static str,
    path: &'a Path,
}

impl Show {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let case = bundle::read(&self.bundle)?;
        let page = page::of_case(&case, &self.bundle.display().to_string());
        let path = self.output.clone().unwrap_or_else(|| self.bundle.join("report.html"));
        if path == Path::new("-") {
            output::text(&page);
            return Ok(Exit::Passed);
        }
        std::fs::write(&path, page)
            .map_err(|cause| format!("{}: the page cannot be written: {cause}", path.display()))?;
        match format {
            Format::Human => output::line(&path.display().to_string()),
            Format::Json => output::json(&Written { r#type: "page", path: &path }),
        }
        Ok(Exit::Passed)
    }
}
