//! The evidence that two texts differ: the input, the first difference of both runs with its two instructions, and the
//! instructions that computed the two values; as lines for a terminal, and as a folder.
//!
//! The folder has `README.md`, `before.nir` or `before.ir3`, `after.…`, `env.json` (the input), `difference.txt` (the
//! runs up to the difference) and `pair.json` (the title and the GPU). [`PairFolder`] reads it again.

use crate::difference::FirstDifference;
use ir3_compiler::target::Target;
use ir3_harness::case::folder;
use ir3_harness::check::{Boundary, Engines, Refutation, Verdict};
use ir3_programs::input;
use ir3_programs::mesa::InputError;
use ir3_programs::mesa::input::{PAIR_FILE, is_pair_folder};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::random::text_hash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Characters of a line.
const WIDTH: usize = 110;

/// Instructions of a computation that lines show: the last ones.
const COMPUTATION: usize = 12;

/// The last operations of a computation that a smaller pair has to keep.
const COMPUTING: usize = 3;

/// A refuted pair.
pub struct PairEvidence<'a> {
    /// The two files and the comparison.
    pub title: String,
    /// The refutation.
    pub refutation: &'a Refutation,
    /// The first difference, if both sides can be traced.
    pub first: Option<FirstDifference>,
    target: Target,
}

impl<'a> PairEvidence<'a> {
    /// Runs both sides again.
    pub fn new(title: String, refutation: &'a Refutation, target: &Target) -> Self {
        let Refutation { before, after, env, difference, .. } = refutation;
        let first = catch(|| FirstDifference::find(before, after, target, env, difference));
        Self { title, refutation, first: first.ok().and_then(Result::ok), target: *target }
    }

    /// The evidence as lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(first) = &self.first else { return lines };
        lines.push(format!("input: lane {} of the environment with seed {}", first.lane, self.refutation.env.seed));
        if let Some([before, after]) = first.instructions() {
            lines.push("first difference of both runs:".to_owned());
            for (side, line) in [("before", before), ("after", after)] {
                lines.push(short(&format!("  {side:6} {}", line.as_deref().unwrap_or("no such step"))));
            }
        }
        for (what, cells) in ["expected", "actual"].into_iter().zip(first.computations()) {
            if cells.is_empty() {
                continue;
            }
            lines.push(format!("computation of the {what} value:"));
            if cells.len() > COMPUTATION {
                lines.push(format!("  … {} steps before these", cells.len() - COMPUTATION));
            }
            let shown = &cells[cells.len().saturating_sub(COMPUTATION)..];
            let width = shown.iter().map(|cell| cell.text.chars().count()).max().unwrap_or(0).min(WIDTH / 2);
            lines.extend(shown.iter().map(|cell| short(&format!("  {:width$}  {}", cell.text, cell.values))));
        }
        lines
    }

    /// The command that shows the difference again, in the folder.
    pub fn command(&self) -> String {
        let [before, after] = [name("before", &self.refutation.before), name("after", &self.refutation.after)];
        format!("ir3-equiv check --gpu {} --env env.json {before} {after}", self.target.name)
    }

    /// The files of the folder.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let Refutation { before, after, env, difference, .. } = self.refutation;
        let readme = format!(
            "# {}: refuted\n\nGPU {}. {difference}\n\n{}\n\nThe programs are in `{}` and `{}`, the input in `env.json`, and `difference.txt` has the \
             runs up to the first difference. To see it again:\n\n    {}\n",
            self.title,
            self.target.name,
            self.lines().iter().map(|line| format!("    {line}\n")).collect::<String>().trim_end(),
            name("before", before),
            name("after", after),
            self.command(),
        );
        let mut files = vec![
            ("README.md", readme),
            (name("before", before), before.text()),
            (name("after", after), after.text()),
            ("env.json", env.to_json() + "\n"),
        ];
        files.extend(self.first.as_ref().map(|first| ("difference.txt", first.to_string())));
        files.push((PAIR_FILE, metadata(&self.title, &self.target)));
        files
    }

    /// The name of the folder, and of the page.
    pub fn name(&self) -> String {
        let Refutation { before, after, .. } = self.refutation;
        let hash = text_hash(&format!("{} {} {}", self.title, before.text(), after.text())) as u32;
        let file = self.title.split(['/', '\\']).next_back().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        format!("check-{file}-{hash:08x}").chars().map(plain).collect()
    }

    /// Writes the folder below `root`, and returns its path.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(&self, root: &Path) -> io::Result<PathBuf> {
        let path = root.join(self.name());
        folder::write(&path, &self.files())?;
        Ok(path)
    }
}

/// The text of `pair.json`.
pub(crate) fn metadata(title: &str, target: &Target) -> String {
    let metadata = PairMetadata { title: title.to_owned(), gpu: target.name.to_owned() };
    serde_json::to_string_pretty(&metadata).expect("strings are JSON") + "\n"
}

/// The content of `pair.json`.
#[derive(Serialize, Deserialize)]
struct PairMetadata {
    title: String,
    gpu: String,
}

/// An error of the folder of a refuted pair.
#[derive(Debug, thiserror::Error)]
pub enum PairFolderError {
    /// A file of it cannot be read.
    #[error("{path}: cannot be read: {cause}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// Its text is not of the expected form.
    #[error("{path}: found {found}, expected {expected}", path = path.display())]
    Invalid {
        /// The file or the folder.
        path: PathBuf,
        /// The text that was found.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// One of its programs cannot be read.
    #[error(transparent)]
    Program(#[from] InputError),
}

/// The folder of a refuted pair, which `mesa` and `check --failures` write.
#[derive(Debug)]
pub struct PairFolder {
    /// The two sides and the comparison.
    pub title: String,
    /// The GPU.
    pub target: Target,
    /// The files of the program before and the program after.
    pub programs: [PathBuf; 2],
    /// The file of the input.
    pub env: PathBuf,
}

impl PairFolder {
    /// Reads a folder. `None` if it is not that of a pair.
    ///
    /// # Errors
    /// If a file is missing, or is not of the expected form.
    pub fn read(folder: &Path) -> Result<Option<Self>, PairFolderError> {
        if !is_pair_folder(folder) {
            return Ok(None);
        }
        let path = folder.join(PAIR_FILE);
        let text = text_of(&path)?;
        let PairMetadata { title, gpu } = serde_json::from_str(&text).map_err(|error| PairFolderError::Invalid {
            path: path.clone(),
            found: format!("a text that is not of this form ({error})"),
            expected: "a title and a GPU",
        })?;
        let unknown = |_| PairFolderError::Invalid { path, found: format!("the GPU `{gpu}`"), expected: "a known GPU" };
        let target = Target::by_name(&gpu).map_err(unknown)?;
        let side = |name: &'static str, expected| {
            let files = ["nir", "ir3", "vec4"].map(|end| folder.join(format!("{name}.{end}")));
            let file = files.into_iter().find(|file| file.is_file());
            let found = format!("no file `{name}.nir`, `{name}.ir3` or `{name}.vec4`");
            file.ok_or_else(|| PairFolderError::Invalid { path: folder.to_owned(), found, expected })
        };
        let programs = [side("before", "the program before")?, side("after", "the program after")?];
        Ok(Some(Self { title, target, programs, env: folder.join("env.json") }))
    }

    /// Runs both programs on the input. `None` if they do not differ.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn refutation(&self) -> Result<Option<Box<Refutation>>, PairFolderError> {
        let Self { target, env: path, .. } = self;
        let env = Env::from_json(&text_of(path)?).map_err(|error| PairFolderError::Invalid {
            path: path.clone(),
            found: error.to_string(),
            expected: "an environment",
        })?;
        let load = |path: &PathBuf| {
            let only = input::load(path, Some(*target))?.into_iter().next();
            only.map(|named| named.program).ok_or_else(|| InputError::Empty { path: path.clone() })
        };
        let [before, after] = [load(&self.programs[0])?, load(&self.programs[1])?];
        let boundary = Boundary::of_texts((&before).into(), (&after).into());
        match Engines::interpreter().judge(&boundary, target, &[env]).verdict {
            Verdict::Refuted(refutation) => Ok(Some(refutation)),
            _ => Ok(None),
        }
    }
}

fn text_of(path: &Path) -> Result<String, PairFolderError> {
    fs::read_to_string(path).map_err(|cause| PairFolderError::Unreadable { path: path.to_owned(), cause })
}

/// The bug that a refutation shows, without the parts that reduction changes: the operations where both runs first
/// differ, the last ones that computed the two values, the first of the program after that computed a value which the
/// program before did not, those that only the program after has if they are few, and for each side whether the value
/// depends on an input. `None` if both sides cannot be traced.
pub fn signature(refutation: &Refutation, target: &Target, wanted: Option<&[String]>) -> Option<Vec<String>> {
    let evidence = PairEvidence::new(String::new(), refutation, target);
    let first = evidence.first.as_ref()?;
    let steps = first.instructions()?;
    let mut signature: Vec<String> =
        steps.iter().map(|step| step.as_deref().map_or("nothing", operation).to_owned()).collect();
    let slices = first.computations();
    for cells in &slices {
        let operations = || cells.iter().map(|cell| operation(&cell.text));
        let computing =
            operations().filter(|its| !is_transparent(its) && !is_input(its) && !its.starts_with("load_const"));
        let computing: Vec<&str> = computing.collect();
        signature.push(computing[computing.len().saturating_sub(COMPUTING)..].join(" "));
        signature.push(if operations().any(is_input) { "of inputs" } else { "constant" }.to_owned());
    }
    let known: BTreeSet<&str> = slices[0].iter().flat_map(|cell| cell.values.split_whitespace()).collect();
    let is_new = |values: &str| values.split_whitespace().any(|value| !known.contains(value));
    let wrong = slices[1].iter().find(|cell| is_new(&cell.values)).map(|cell| operation(&cell.text));
    signature.push(wrong.unwrap_or_default().to_owned());
    let wants = wanted.is_none_or(|wanted| wanted.iter().any(|its| its.starts_with(ONLY_AFTER)));
    let own = only_after(refutation);
    if wants && (wanted.is_some() || (1..=MOST_OWN).contains(&own.len())) {
        signature.push(format!("{ONLY_AFTER}{}", own.into_iter().collect::<Vec<_>>().join(" ")));
    }
    Some(signature)
}

/// The start of an entry of a signature.
const ONLY_AFTER: &str = "only after: ";

/// The number of operations that only the program after has, up to which a smaller pair has to keep them.
const MOST_OWN: usize = 3;

/// The operations that only the program after has; none if the programs are in two languages.
fn only_after(refutation: &Refutation) -> BTreeSet<String> {
    let Refutation { before, after, .. } = refutation;
    if before.language() != after.language() {
        return BTreeSet::new();
    }
    let of = |program: &Snapshot| -> BTreeSet<String> {
        let text = program.text();
        let is_step = |line: &&str| line.contains(" = ") || line.contains(": ") || line.contains('@');
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//")).filter(is_step);
        lines
            .map(|line| operation(line.trim_start()).to_owned())
            .filter(|its| {
                !["end", "nop", "_meta:in", "_meta:collect", "_meta:split", "load_const", "mov"].contains(&&**its)
            })
            .collect()
    };
    &of(after) - &of(before)
}

/// Returns true for an operation that reads from the environment.
fn is_input(operation: &str) -> bool {
    ["_meta:in", "@load", "ld", "bary", "sam", "isam"].iter().any(|start| operation.starts_with(start))
}

/// Returns true for an operation that only hands a value on to an effect, or puts values together.
fn is_transparent(operation: &str) -> bool {
    let starts = ["@store", "st", "vec", "_meta:collect", "_meta:split", "end", "chmask"];
    starts.iter().any(|start| operation.starts_with(start))
}

/// The operation in the text of a step.
fn operation(text: &str) -> &str {
    let mut rest = text.split_once(" = ").map_or(text, |(_, operation)| operation).trim_start();
    loop {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if let Some(after) = digits.strip_prefix(':').filter(|_| digits.len() < rest.len()) {
            rest = after.trim_start();
        } else if let Some((_, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            rest = after.trim_start();
        } else {
            return rest.split([' ', '(', '\t']).next().unwrap_or_default();
        }
    }
}

/// The name of the file of a side.
fn name(side: &'static str, program: &Snapshot) -> &'static str {
    match (side, program) {
        ("before", Snapshot::Nir(_)) => "before.nir",
        ("before", Snapshot::Vec4(_)) => "before.vec4",
        ("before", Snapshot::Ir3(_)) => "before.ir3",
        (_, Snapshot::Nir(_)) => "after.nir",
        (_, Snapshot::Vec4(_)) => "after.vec4",
        (_, Snapshot::Ir3(_)) => "after.ir3",
    }
}

fn short(line: &str) -> String {
    match line.chars().count() > WIDTH {
        true => line.chars().take(WIDTH - 1).chain(['…']).collect(),
        false => line.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::operation;

    #[test]
    fn operations_are_found_in_the_texts_of_steps() {
        for (text, expected) in [
            ("div 32 %5 = fadd %1, %2", "fadd"),
            ("0004:0001:002: (sy)(kill)add.f ssa_5, ssa_2", "add.f"),
            ("0004: _meta:in ssa_1", "_meta:in"),
            ("@store_output (%5, %0)", "@store_output"),
            ("end", "end"),
            ("", ""),
        ] {
            assert_eq!(operation(text), expected, "{text}");
        }
    }
}
