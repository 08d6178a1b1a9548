//! `ir3-selftest machine`: runs Mesa's final programs on the machine and compares them with their nir.

use crate::{Exit, Failure, Format, Gpu, output, values};
use clap::Args;
use ir3_programs::input::{NativeError, native};
use ir3_programs::mesa::input;
use ir3_selftest::machine::{Finding, run};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `machine`.
#[derive(Args)]
pub struct MachineTest {
    /// Mesa logs with listings of words, or folders of them.
    #[arg(required = true, value_name = "LOG")]
    paths: Vec<PathBuf>,
    /// The number of random environments of each program.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    gpu: Gpu,
}

/// The counts of a folder.
#[derive(Clone, Copy, Default, Serialize)]
struct FolderCounts {
    programs: u64,
    compared: u64,
    equal: u64,
    /// Programs that have no effect, as their nir.
    empty: u64,
    hazards: u64,
    different: u64,
    /// Programs of which nothing was compared.
    nothing: u64,
    refused: u64,
}

impl FolderCounts {
    fn add(&mut self, finding: &Finding) {
        self.programs += 1;
        let count = match finding {
            Finding::Equal { .. } => &mut self.equal,
            Finding::Empty => &mut self.empty,
            Finding::Hazard(_) => &mut self.hazards,
            Finding::Different(_) => &mut self.different,
            Finding::Nothing(_) => &mut self.nothing,
            Finding::Refused(_) => &mut self.refused,
        };
        *count += 1;
        self.compared = self.equal + self.empty + self.hazards + self.different;
    }
}

/// A folder, as JSON.
#[derive(Serialize)]
struct FolderRow<'a> {
    folder: &'a str,
    #[serde(flatten)]
    counts: FolderCounts,
}

/// A program, as JSON.
#[derive(Serialize)]
struct ProgramRow<'a> {
    program: &'a str,
    verdict: &'static str,
    reason: Option<&'a str>,
    /// The verdict is that for pixels of one sample.
    one_sample: bool,
    /// One lane ran in each wave.
    one_lane: bool,
}

impl MachineTest {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let mut folders: BTreeMap<String, FolderCounts> = BTreeMap::new();
        let mut exit = Exit::Passed;
        for path in input::collect_paths(&self.paths)? {
            let mut one_sample = false;
            let finding = match native(&path, self.gpu.given()) {
                Ok(program) => {
                    one_sample = program.one_sample;
                    run(&program, self.runs)
                }
                Err(NativeError::Refused { what, .. }) => Finding::Refused(what),
                Err(NativeError::Input(error)) => {
                    output::error(&error);
                    exit = exit.max(Exit::Bad);
                    continue;
                }
            };
            let folder = path.parent().map_or_else(String::new, |folder| folder.display().to_string());
            folders.entry(folder).or_default().add(&finding);
            exit = exit.max(match finding {
                Finding::Equal { .. } | Finding::Empty => Exit::Passed,
                Finding::Hazard(_) | Finding::Different(_) => Exit::Refuted,
                Finding::Nothing(_) | Finding::Refused(_) => Exit::Unmet,
            });
            let name = path.display().to_string();
            let one_lane = matches!(finding, Finding::Equal { alone: true, .. });
            output::json(
                "machine-program",
                &ProgramRow { program: &name, verdict: finding.name(), reason: finding.reason(), one_sample, one_lane },
            );
            for (holds, what) in [(one_sample, "a pixel has one sample"), (one_lane, "one lane runs in each wave")] {
                if holds && format == Format::Human {
                    output::line(&format!("{name}: {} where {what}", finding.name()));
                }
            }
            if let Some(reason) = finding.reason().filter(|_| format == Format::Human) {
                output::line(&format!("{name}: {}: {reason}", finding.name()));
            }
        }
        if format == Format::Human {
            output::line(
                "folder                            programs compared    equal    empty  hazards different  nothing  refused",
            );
        }
        // A folder of empty programs is no test of anything.
        let mut compared = 0;
        for (folder, counts) in folders {
            let FolderCounts { programs, compared: some, equal, empty, hazards, different, nothing, refused } = counts;
            compared += some - empty;
            if format == Format::Human {
                output::line(&format!(
                    "{folder:<33} {programs:>8} {some:>8} {equal:>8} {empty:>8} {hazards:>8} {different:>9} {nothing:>8} {refused:>8}"
                ));
            }
            output::json("machine", &FolderRow { folder: &folder, counts });
        }
        Ok(exit.max(Exit::Nothing.when(compared == 0)))
    }
}
