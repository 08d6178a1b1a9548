//! `show`: writes a bundle as one HTML page.

use crate::exit::{self, Unwritten};
use crate::{Exit, Failure, output};
use clap::Args;
use ir3_harness::report::{bundle, page};
use std::path::{Path, PathBuf};

/// Options of `show`.
#[derive(Args)]
pub struct Show {
    /// A bundle: the folder of a failure.
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// The output file, `-` for standard output; default: `report.html` in the bundle.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Show {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let of_device = page::of_device(&self.bundle).map_err(|error| format!("{}: {error}", self.bundle.display()))?;
        let page = match of_device {
            Some(page) => page,
            None => page::of_case(&bundle::read(&self.bundle)?, &self.bundle.display().to_string()),
        };
        if let Some(path) = self.output.as_deref().filter(|path| *path != Path::new("-")) {
            exit::try_file(path)?;
        }
        let path = self.output.clone().unwrap_or_else(|| self.bundle.join("report.html"));
        if path == Path::new("-") {
            output::text(&page);
            return Ok(Exit::Passed);
        }
        std::fs::write(&path, page).map_err(|error| Unwritten::new(&path, error))?;
        output::json("page", &serde_json::json!({ "path": path }));
        output::line(&path.display().to_string());
        Ok(Exit::Passed)
    }
}
