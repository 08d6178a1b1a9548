//! What is kept of a refutation: a folder that can be read, run again, and attached to a report.
//!
//! The folder is written under a temporary name and then renamed, so that a half-written one is never taken for a
//! finding.

pub mod beside_mesa;
pub mod bundle;
pub mod difference;
mod programs;

pub use programs::{Named, load, print};

use crate::check::{Refutation, Snapshot};
use crate::generate::Profile;
use crate::semantics::env::Env;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::{nir, target::Target};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where a program came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// What to call it.
    pub name: String,
    /// The seed that makes it, if it is a random one.
    pub seed: Option<u64>,
    /// The profile that the seed was used with.
    pub profile: Option<Profile>,
}

/// A failure that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: the counterexample cannot be written: {cause}", path = path.display())]
pub struct WriteError {
    path: PathBuf,
    cause: io::Error,
}

/// Writes the folder of a refutation below `root`, and returns its path. A folder of the same name is replaced.
///
/// # Errors
/// When the file system refuses.
pub fn write_failure(
    root: &Path,
    origin: &Origin,
    target: &Target,
    source: &nir::Shader,
    refutation: &Refutation,
) -> Result<PathBuf, WriteError> {
    write_folder(root, &format!("{}-{}-{}", refutation.stage, target.name, origin.name), |folder| {
        Ok(vec![
            ("program.nir", nir::text::write(source)),
            (
                if matches!(refutation.before, Snapshot::Nir(_)) { "before.nir" } else { "before.ir3" },
                print(&refutation.before),
            ),
            ("after.ir3", print(&refutation.after)),
            ("env.json", serde_json::to_string_pretty(&refutation.env)?),
            ("README.md", readme(folder, origin, target, refutation)),
        ])
    })
}

/// Writes the folder of a program on which the compiler or an engine panicked.
///
/// # Errors
/// When the file system refuses.
pub fn write_crash(
    root: &Path,
    origin: &Origin,
    target: &Target,
    source: &nir::Shader,
    stage: Stage,
    message: &str,
) -> Result<PathBuf, WriteError> {
    write_folder(root, &format!("crash-{stage}-{}-{}", target.name, origin.name), |folder| {
        let readme = format!(
            "# {stage} panics\n\n- GPU: {}\n- stage: `{stage}`\n- message: {message}\n- program: {}\n- ir3-equiv {}\n\n\
             To see it again:\n\n    ir3-equiv verify {}/program.nir --gpu {}\n",
            target.name,
            origin.name,
            env!("CARGO_PKG_VERSION"),
            folder.display(),
            target.name
        );
        Ok(vec![("program.nir", nir::text::write(source)), ("README.md", readme)])
    })
}

/// The command that shows a refutation again, with its folder written.
pub fn command(folder: &Path, target: &Target, refutation: &Refutation) -> String {
    let (seed, folder) = (refutation.env.seed, folder.display());
    let input = if refutation.env == Env::from_seed(seed) {
        format!("--env-seed {seed}")
    } else {
        format!("--env {folder}/env.json")
    };
    format!("ir3-equiv verify {folder}/program.nir --gpu {} {input}", target.name)
}

/// Writes files into a folder of a name made of `title`, all of them or none.
fn write_folder(
    root: &Path,
    title: &str,
    files: impl FnOnce(&Path) -> io::Result<Vec<(&'static str, String)>>,
) -> Result<PathBuf, WriteError> {
    let name: String = title
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    // Names come from paths; the end of a long one tells more than its beginning.
    let name = &name[name.len().saturating_sub(160)..];
    let folder = root.join(name);
    let partial = root.join(format!(".{name}.partial"));
    let write = || -> io::Result<()> {
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir_all(&partial)?;
        for (file, text) in files(&folder)? {
            fs::write(partial.join(file), text)?;
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::rename(&partial, &folder)
    };
    match write() {
        Ok(()) => Ok(folder.clone()),
        Err(cause) => Err(WriteError { path: folder.clone(), cause }),
    }
}

fn readme(folder: &Path, origin: &Origin, target: &Target, refutation: &Refutation) -> String {
    let mut text = String::new();
    let stage = refutation.stage;
    let _ = writeln!(text, "# {stage} changes what a program means\n");
    let _ = writeln!(text, "- GPU: {}\n- stage: `{stage}`\n- difference: {}", target.name, refutation.difference);
    let _ = match (origin.seed, origin.profile) {
        (Some(seed), Some(profile)) => {
            writeln!(
                text,
                "- program: generated, `ir3-equiv generate --profile {profile} --seed {seed} --gpu {}`",
                target.name
            )
        }
        _ => writeln!(text, "- program: {}", origin.name),
    };
    let _ = writeln!(text, "- ir3-equiv {}\n", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "To see it again:\n");
    let _ = writeln!(text, "    {}\n", command(folder, target, refutation));
    let _ = writeln!(
        text,
        "`before.*` and `after.ir3` are the two sides of the stage, `env.json` is the input on which they differ, \
         `program.nir` is the source."
    );
    text
}
