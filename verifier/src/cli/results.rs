//! The results of a part of a campaign, in a file in the folder of its bundles: `merge` adds them up.

use crate::exit::{self, Failure, Unwritten};
use crate::unknown_programs::SavedReason;
use ir3_harness::campaigns::counts::Counts;
use ir3_harness::campaigns::shard::Shard;
use ir3_harness::check::Summary;
use ir3_harness::version;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The version of the format. A reader refuses others.
const FORMAT: u32 = 1;

/// The name of the file.
const NAME: &str = "results.json";

/// The results of one part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    format: u32,
    version: String,
    commit: Option<String>,
    /// The command line without the parts that differ between shards.
    pub campaign: String,
    /// The part, as `I/N`.
    pub shard: String,
    /// The verdicts.
    pub summary: Summary,
    /// All counts, of `fuzz`.
    pub counts: Option<Counts>,
    /// The programs without a verdict.
    pub unknown: Vec<SavedReason>,
}

/// Options whose values differ between parts of one campaign.
const OWN: [&str; 5] = ["--shard", "--failures", "--jobs", "--html", "--cache"];

/// The command line without the options of a part.
fn campaign(arguments: &[String]) -> String {
    let mut kept = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.split_once('=') {
            Some((name, _)) if OWN.contains(&name) => {}
            None if OWN.contains(&argument.as_str()) => _ = arguments.next(),
            _ => kept.push(argument.as_str()),
        }
    }
    kept.join(" ")
}

impl Results {
    /// The results of this process.
    pub fn new(shard: Shard, summary: Summary, counts: Option<Counts>, unknown: Vec<SavedReason>) -> Self {
        Self {
            format: FORMAT,
            version: version::VERSION.to_owned(),
            commit: version::COMMIT.map(str::to_owned),
            campaign: campaign(&crate::given()),
            shard: shard.to_string(),
            summary,
            counts,
            unknown,
        }
    }

    /// The part.
    pub fn part(&self) -> Result<Shard, Failure> {
        self.shard.parse().map_err(|error| format!("found shard `{}`, {error}", self.shard).into())
    }

    /// Writes them into a folder, completely or not at all.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        fs::create_dir_all(folder).map_err(|error| Unwritten::new(folder, error))?;
        Ok(exit::write_file(&folder.join(NAME), serde_json::to_string_pretty(self)? + "\n")?)
    }

    /// Reads them from a folder.
    ///
    /// # Errors
    /// If there are none, or they are not valid.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let path: PathBuf = folder.join(NAME);
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}; expected the results of `--shard`", path.display()))?;
        let results: Self = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if results.format != FORMAT {
            return Err(format!("{}: found format {}, expected {FORMAT}", path.display(), results.format).into());
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_campaign_have_the_same_command_line() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let one = campaign(&list("fuzz --seed 1 --shard 1/2 --failures a --programs 10 --jobs=2"));
        assert_eq!(one, "fuzz --seed 1 --programs 10");
        assert_eq!(one, campaign(&list("fuzz --shard=2/2 --seed 1 --programs 10 --failures b")));
        assert_ne!(one, campaign(&list("fuzz --shard=2/2 --seed 2 --programs 10 --failures b")));
    }
}
