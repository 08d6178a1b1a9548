//! `fuzz --corpus`: programs that a campaign starts from, and the folder in which it keeps programs with new cells.

use crate::exit::{self, Failure, Unwritten};
use crate::{Format, output, paths};
use clap::Args;
use ir3_compiler::nir::write;
use ir3_compiler::target::Target;
use ir3_harness::campaigns::corpus::{Corpus, CorpusProgram, file_name, kept};
use ir3_harness::campaigns::fuzzing::Campaign;
use ir3_programs::input;
use ir3_semantics::Snapshot;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The option of `fuzz` about programs to start from.
#[derive(Args)]
pub struct CorpusArgs {
    /// Folder of nir programs to start from: half of the programs are variants of one of them with pieces of others.
    /// At the end, programs with new cells are reduced and kept there. May be repeated; further folders, and
    /// files, are only read, and may hold Mesa's logs.
    #[arg(long, value_name = "DIR")]
    corpus: Vec<PathBuf>,
}

impl CorpusArgs {
    /// Reads the programs; `None` if there is no such option. The first folder need not exist, and is made. Texts that
    /// are no valid nir are left out and counted by `skipped`.
    ///
    /// # Errors
    /// If a path cannot be read, or the first one is no folder that can be written.
    pub fn read(&self, targets: &[Target], skipped: &mut usize) -> Result<Option<Corpus>, Failure> {
        let Some(first) = self.corpus.first() else { return Ok(None) };
        fs::create_dir_all(first).map_err(|error| Unwritten::new(first, error))?;
        let mut programs = Vec::new();
        for path in &self.corpus {
            if path == first && is_empty(first)? {
                continue;
            }
            for file in paths::files(std::slice::from_ref(path))?.0 {
                for text in input::unread(&file, None) {
                    let named = text.map_err(Failure::from).and_then(|text| text.read().map_err(Failure::from));
                    match named.map(|named| (named.name, named.program)) {
                        Ok((name, Snapshot::Nir(shader))) => programs.push(CorpusProgram { name, shader: *shader }),
                        Ok(_) | Err(_) => *skipped += 1,
                    }
                }
            }
        }
        Ok(Some(Corpus::new(programs, targets)))
    }

    /// Tries the folder in which programs are kept, before the first program.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn try_folder(&self) -> Result<(), Unwritten> {
        self.corpus.first().map_or(Ok(()), |folder| exit::try_folder(folder))
    }

    /// Prints the size of a corpus.
    pub fn print(corpus: &Corpus, skipped: usize, format: Format) {
        let (programs, accepted) = corpus.counts();
        match format {
            Format::Json => output::json(
                "corpus",
                &serde_json::json!({ "programs": programs, "accepted": accepted, "skipped": skipped }),
            ),
            _ => output::line(&format!(
                "corpus: {programs} programs, {accepted} of which a GPU of the campaign accepts; {skipped} texts that are no nir programs left out"
            )),
        }
    }

    /// Keeps the new programs of a campaign, by number, in the first folder, and prints their number.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep(
        &self,
        campaign: &Campaign,
        new: &[u64],
        format: Format,
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        let (Some(folder), Some(corpus)) = (self.corpus.first(), &campaign.corpus) else { return Ok(()) };
        let seen = corpus.seen(&campaign.targets, campaign.options);
        let programs = new.iter().filter_map(|&number| campaign.new_program(number)).collect();
        let (mut count, mut failure) = (0, None);
        kept(&seen, programs, interrupted, &mut |shader, whole| {
            count += usize::from(whole.is_none());
            // The old file is replaced only when the new one is complete.
            let write = || {
                exit::write_file(&folder.join(file_name(shader)), write(shader))?;
                let whole = whole.map(file_name).filter(|name| *name != file_name(shader));
                whole.map_or(Ok(()), |name| {
                    let path = folder.join(name);
                    fs::remove_file(&path).map_err(|error| Unwritten::new(&path, error))
                })
            };
            failure = write().err();
            failure.is_none()
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        match format {
            Format::Json => output::json("kept", &serde_json::json!({ "programs": count })),
            _ => output::line(&format!("{count} programs kept in {}", folder.display())),
        }
        Ok(())
    }
}

fn is_empty(folder: &Path) -> Result<bool, Failure> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(format!("{}: found a file, expected a folder", folder.display()).into())
        }
        Err(error) => Err(format!("{}: {error}", folder.display()).into()),
    }
}
