//! `show`: writes bundles as HTML pages.

use crate::exit::{self, Unwritten};
use crate::{Exit, Failure, output};
use clap::Args;
use ir3_programs::mesa::input::is_pair_folder;
use ir3_report::pair::{PairEvidence, PairFolder};
use ir3_report::triage;
use ir3_report::{bundle, page};
use std::path::{Path, PathBuf};

/// Options of `show`.
#[derive(Args)]
pub struct Show {
    /// The folder of a failure that `fuzz`, `verify`, `mesa` or `check` wrote; or a folder of such folders, each of
    /// which gets its page.
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// The output file, `-` for standard output; default: `report.html` in the bundle.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Show {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let folders = self.folders()?;
        if let (Some(output), [_, _, ..]) = (&self.output, &folders[..]) {
            let (path, count) = (self.bundle.display(), folders.len());
            return Err(
                format!("{path}: found {count} failures, expected one for `--output {}`", output.display()).into()
            );
        }
        let mut exit = Exit::Passed;
        for folder in &folders {
            match self.show(folder) {
                Ok(()) => {}
                Err(error) if folders.len() == 1 => return Err(error),
                Err(error) => {
                    exit = exit.max(exit::of_failure(&*error));
                    output::error(&*error);
                }
            }
        }
        Ok(exit)
    }

    /// The folders of failures.
    fn folders(&self) -> Result<Vec<PathBuf>, Failure> {
        let is_failure = |path: &Path| {
            bundle::is_bundle(path) || is_pair_folder(path) || matches!(page::of_device(path), Ok(Some(_)))
        };
        if is_failure(&self.bundle) || !self.bundle.is_dir() {
            return Ok(vec![self.bundle.clone()]);
        }
        let in_folder = |error: std::io::Error| format!("{}: {error}", self.bundle.display());
        let (mut folders, others) = triage::find(&self.bundle).map_err(in_folder)?;
        folders.extend(others.into_iter().map(|problem| problem.path).filter(|path| is_failure(path)));
        folders.sort();
        if folders.is_empty() {
            let path = self.bundle.display();
            return Err(format!(
                "{path}: found no failure, expected a folder that `fuzz`, `verify`, `mesa` or `check` wrote"
            )
            .into());
        }
        Ok(folders)
    }

    /// Writes the page of a failure.
    fn show(&self, folder: &Path) -> Result<(), Failure> {
        let of_device = page::of_device(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let page = match (of_device, PairFolder::read(folder)?) {
            (Some(page), _) => page,
            (None, Some(pair)) => {
                let refutation = pair.refutation()?.ok_or_else(|| {
                    let path = folder.display();
                    format!("{path}: found two programs that agree on their input, expected a difference (README.md there has the command)")
                })?;
                page::of_pair(&PairEvidence::new(pair.title, &refutation, &pair.target))
            }
            (None, None) => page::of_case(&bundle::read(folder)?, &folder.display().to_string()),
        };
        if let Some(path) = self.output.as_deref().filter(|path| *path != Path::new("-")) {
            exit::try_file(path)?;
        }
        let path = self.output.clone().unwrap_or_else(|| folder.join("report.html"));
        if path == Path::new("-") {
            output::text(&page);
            return Ok(());
        }
        std::fs::write(&path, page).map_err(|error| Unwritten::new(&path, error))?;
        output::json("page", &serde_json::json!({ "path": path }));
        output::line(&path.display().to_string());
        Ok(())
    }
}
