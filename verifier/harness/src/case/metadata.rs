//! The format of `bundle.json`, and the reader of bundles.

use super::evidence::EngineVerdict;
use super::{Case, Evidence, Original, ProgramOrigin, Symptom, folder};
use crate::guard::{Stop, Stopped};
use crate::reduce::Failure;
use crate::reduce::oracle::DifferenceKind;
use crate::version;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Allocator, ErrorKind, Feature, Features, Options, OwnPass, Stage};
use ir3_compiler::target::Target;
use ir3_programs::mesa::input::InputError;
use ir3_programs::planted_bugs;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the format. Readers refuse other versions.
pub const FORMAT: u32 = 2;

/// A folder that is not a bundle.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The folder does not exist.
    #[error("{path}: found no such folder, expected a bundle", path = path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// A file is missing.
    #[error("{path}: found no such file, expected {expected}", path = path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
        /// Its expected content.
        expected: &'static str,
    },
    /// A file cannot be read.
    #[error("{path}: {cause}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// A file is not JSON, or has other fields.
    #[error("{path}:{line}:{column}: {cause}", path = path.display(), line = cause.line(), column = cause.column())]
    Json {
        /// The file.
        path: PathBuf,
        /// The error with its position.
        cause: serde_json::Error,
    },
    /// A field has an invalid value.
    #[error("{path}: found {field} `{found}`, expected {expected}", path = path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// A program cannot be read.
    #[error(transparent)]
    Program(#[from] InputError),
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    format: u32,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    gpu: String,
    options: SavedOptions,
    plant: Option<String>,
    failure: SavedFailure,
    stage: String,
    message: String,
    origin: SavedOrigin,
    instructions: u32,
    original_instructions: u32,
    /// The GPU and the options before the reduction, if they were different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_gpu: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_options: Option<SavedOptions>,
    minimal: bool,
    #[serde(default)]
    verdicts: Vec<EngineVerdict>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedOptions {
    /// The enabled features. Features that the backend gets later are not part of an old failure.
    features: Vec<String>,
    /// The applications of arms that are skipped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    skip: String,
    last: String,
    registers: String,
    /// The allocator, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allocator: Option<String>,
    /// The name of the caller's own pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_pass: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum SavedFailure {
    Refuted { stage: String, difference: String },
    Refused { stage: String, why: String, reason: String },
    Unsupported { stage: String, reason: String },
    Panic { place: String },
    Stopped { stage: String, why: String },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SavedOrigin {
    File(String),
    Seed { seed: u64, profile: String },
    Artifact(String),
    Variant { of: String, seed: u64 },
}

impl SavedOptions {
    fn of(options: &Options) -> Self {
        // Destructured so that a new option cannot be forgotten here.
        let Options { features, skip, last, registers, allocator, own_pass } = *options;
        let features = features.iter().map(|feature| feature.name().to_owned()).collect();
        let own_pass = own_pass.map(|pass| pass.name.to_owned());
        let allocator = (allocator != Allocator::default()).then(|| allocator.to_string());
        let (skip, last, registers) = (skip.to_string(), last.name().to_owned(), registers.to_string());
        Self { features, skip, last, registers, allocator, own_pass }
    }
}

/// The names of the kinds of refusals.
const REFUSALS: [(ErrorKind, &str); 3] = [
    (ErrorKind::Unsupported, "unsupported"),
    (ErrorKind::NeedsSpilling, "needs-spilling"),
    (ErrorKind::Internal, "internal"),
];

impl SavedFailure {
    fn of(failure: &Failure) -> Self {
        let name = |stage: Stage| stage.name().to_owned();
        match failure {
            Failure::Refuted { stage, difference } => {
                Self::Refuted { stage: name(*stage), difference: difference.name().to_owned() }
            }
            Failure::Refused { stage, kind, reason } => {
                let why = REFUSALS.iter().find(|(other, _)| other == kind).map_or("internal", |(_, name)| name);
                Self::Refused { stage: name(*stage), why: why.to_owned(), reason: reason.clone() }
            }
            Failure::Unsupported { stage, reason } => Self::Unsupported { stage: name(*stage), reason: reason.clone() },
            Failure::Panic { place } => Self::Panic { place: place.clone() },
            Failure::Stopped(Stopped { stage, stop }) => {
                Self::Stopped { stage: name(*stage), why: stop.name().to_owned() }
            }
        }
    }
}

/// The text of `bundle.json`.
pub fn metadata(case: &Case, evidence: &Evidence) -> String {
    let Case { program, target, options, plant, origin, symptom, original, minimal, .. } = case;
    let instructions = |shader: &Shader| shader.instruction_count() as u32;
    let metadata = Metadata {
        format: FORMAT,
        version: version::VERSION.to_owned(),
        commit: version::COMMIT.map(str::to_owned),
        gpu: target.name.to_owned(),
        options: SavedOptions::of(options),
        plant: plant.map(|plant| plant.name.to_owned()),
        failure: SavedFailure::of(&symptom.failure),
        stage: symptom.stage.name().to_owned(),
        message: symptom.message.clone(),
        origin: match origin {
            ProgramOrigin::File(path) => SavedOrigin::File(path.clone()),
            ProgramOrigin::Seed { seed, profile } => SavedOrigin::Seed { seed: *seed, profile: profile.to_string() },
            ProgramOrigin::Artifact(path) => SavedOrigin::Artifact(path.clone()),
            ProgramOrigin::Variant { of, seed } => SavedOrigin::Variant { of: of.clone(), seed: *seed },
        },
        instructions: instructions(program),
        original_instructions: instructions(original.as_ref().map_or(program, |original| &original.program)),
        original_gpu: original.as_ref().filter(|o| o.target != *target).map(|o| o.target.name.to_owned()),
        original_options: original.as_ref().filter(|o| o.options != *options).map(|o| SavedOptions::of(&o.options)),
        minimal: *minimal,
        verdicts: evidence.verdicts.clone(),
    };
    serde_json::to_string_pretty(&metadata).expect("strings and numbers are JSON") + "\n"
}

/// Reads the folder of a case.
///
/// # Errors
/// If it does not exist, or is not a bundle; with the file and the expected content.
pub fn read(path: &Path) -> Result<Case, ReadError> {
    read_with(path, None)
}

/// Like [`read`], of a failure that a pass of the caller may have.
///
/// # Errors
/// Those of [`read`].
pub fn read_with(path: &Path, own_pass: Option<OwnPass>) -> Result<Case, ReadError> {
    // The replacement of the folder may have been interrupted.
    let _ = folder::recover(path);
    if !path.is_dir() {
        return Err(ReadError::Missing { path: path.to_owned() });
    }
    let file = path.join("bundle.json");
    let text = content(&file, "the metadata of a bundle")?;
    let CaseFacts { target, options, found_with, plant, symptom, origin, minimal } =
        facts(Fields { file: &file, own_pass }, parse(&file, &text)?)?;
    let program = program(&path.join("program.nir"), "the program")?;
    let env = env(&path.join("env.json"))?;
    let folder = path.join("original");
    let original = if folder.is_dir() {
        let program = self::program(&folder.join("program.nir"), "the program before it was reduced")?;
        let env = self::env(&folder.join("env.json"))?;
        let (target, options) = found_with;
        Some(Original { program, env, target, options })
    } else {
        None
    };
    Ok(Case { program, target, options, plant, env, origin, symptom, original, minimal })
}

/// The part of a case that is in `bundle.json`.
struct CaseFacts {
    target: Target,
    options: Options,
    /// The GPU and the options before the reduction.
    found_with: (Target, Options),
    plant: Option<&'static PlantedBug>,
    symptom: Symptom,
    origin: ProgramOrigin,
    minimal: bool,
}

/// Parses the fields of a text.
fn parse(file: &Path, text: &str) -> Result<Metadata, ReadError> {
    let json = |cause| ReadError::Json { path: file.to_owned(), cause };
    // Check the version first: other versions may have other fields.
    #[derive(Deserialize)]
    struct FormatVersion {
        format: u32,
    }
    let FormatVersion { format } = serde_json::from_str(text).map_err(json)?;
    if format != FORMAT {
        return Err(Fields { file, own_pass: None }.bad("format", &format.to_string(), &FORMAT.to_string()));
    }
    serde_json::from_str(text).map_err(json)
}

/// Interprets the fields.
fn facts(in_file: Fields<'_>, metadata: Metadata) -> Result<CaseFacts, ReadError> {
    let target = in_file.target("gpu", &metadata.gpu)?;
    let options = in_file.options(metadata.options)?;
    let gpu = metadata.original_gpu.map(|gpu| in_file.target("original_gpu", &gpu)).transpose()?;
    let saved = metadata.original_options.map(|options| in_file.options(options)).transpose()?;
    let found_with = (gpu.unwrap_or(target), saved.unwrap_or(options));
    let symptom = Symptom {
        failure: in_file.failure(metadata.failure)?,
        stage: in_file.stage("stage", &metadata.stage)?,
        message: metadata.message,
    };
    let origin = match metadata.origin {
        SavedOrigin::File(path) => ProgramOrigin::File(path),
        SavedOrigin::Artifact(path) => ProgramOrigin::Artifact(path),
        SavedOrigin::Variant { of, seed } => ProgramOrigin::Variant { of, seed },
        SavedOrigin::Seed { seed, profile } => {
            let profile = profile.parse().map_err(|expected: String| in_file.bad("profile", &profile, &expected))?;
            ProgramOrigin::Seed { seed, profile }
        }
    };
    let plant = metadata.plant.as_deref().map(|name| in_file.plant(name)).transpose()?;
    Ok(CaseFacts { target, options, found_with, plant, symptom, origin, minimal: metadata.minimal })
}

/// Reads the text of a `bundle.json` and writes it again.
///
/// # Errors
/// If it is invalid; with the expected content.
pub fn rewritten(file: &Path, text: &str) -> Result<String, ReadError> {
    let metadata = parse(file, text)?;
    let written = serde_json::to_string_pretty(&metadata).expect("strings and numbers are JSON") + "\n";
    facts(Fields { file, own_pass: None }, metadata)?;
    Ok(written)
}

/// The fields of a file, with its path for errors.
struct Fields<'a> {
    file: &'a Path,
    /// The pass of the caller.
    own_pass: Option<OwnPass>,
}

impl Fields<'_> {
    fn target(&self, field: &'static str, name: &str) -> Result<Target, ReadError> {
        Target::by_name(name).map_err(|_| self.bad(field, name, "a GPU such as a660"))
    }

    fn options(&self, saved: SavedOptions) -> Result<Options, ReadError> {
        let SavedOptions { features, skip, last, registers, allocator, own_pass } = saved;
        let own_pass = own_pass.map(|name| {
            let expected = "the pass that the reader has been given: only the program that has made it can run it";
            self.own_pass.filter(|pass| pass.name == name).ok_or_else(|| self.bad("own_pass", &name, expected))
        });
        let own_pass = own_pass.transpose()?;
        let features = features.iter().map(|name| self.feature(name)).collect::<Result<Features, _>>()?;
        let last = self.stage("last", &last)?;
        let registers =
            registers.parse().map_err(|_| self.bad("registers", &registers, "a number, `min`, `min+N` or `target`"))?;
        let allocator = match allocator {
            Some(name) => name
                .parse()
                .map_err(|_| self.bad("allocator", &name, "`ssa`, `graph-colouring`, or that and a rule"))?,
            None => Allocator::default(),
        };
        let skip = skip.parse().map_err(|expected: String| self.bad("skip", &skip, &expected))?;
        Ok(Options { features, skip, last, registers, allocator, own_pass })
    }

    fn feature(&self, name: &str) -> Result<Feature, ReadError> {
        let known = || Features::all().iter().map(Feature::name).collect::<Vec<_>>().join(", ");
        Feature::from_name(name).ok_or_else(|| self.bad("features", name, &format!("one of {}", known())))
    }

    fn bad(&self, field: &'static str, found: &str, expected: &str) -> ReadError {
        ReadError::Field { path: self.file.to_owned(), field, found: found.to_owned(), expected: expected.to_owned() }
    }

    fn stage(&self, field: &'static str, name: &str) -> Result<Stage, ReadError> {
        let all = Stage::NIR.into_iter().chain(Stage::VEC4).chain(Stage::ALL);
        let known = || all.map(Stage::name).collect::<Vec<_>>().join(", ");
        Stage::from_name(name).ok_or_else(|| self.bad(field, name, &format!("one of {}", known())))
    }

    fn plant(&self, name: &str) -> Result<&'static PlantedBug, ReadError> {
        let known = || planted_bugs::every().map(|plant| plant.name).collect::<Vec<_>>().join(", ");
        planted_bugs::by_name(name).ok_or_else(|| self.bad("plant", name, &format!("one of {}", known())))
    }

    fn failure(&self, saved: SavedFailure) -> Result<Failure, ReadError> {
        Ok(match saved {
            SavedFailure::Refuted { stage, difference } => {
                let known = || DifferenceKind::ALL.map(DifferenceKind::name).join(", ");
                let difference = DifferenceKind::from_name(&difference)
                    .ok_or_else(|| self.bad("difference", &difference, &format!("one of {}", known())))?;
                Failure::Refuted { stage: self.stage("stage", &stage)?, difference }
            }
            SavedFailure::Refused { stage, why, reason } => {
                let kind = REFUSALS.iter().find(|(_, name)| *name == why);
                let known = || REFUSALS.map(|(_, name)| name).join(", ");
                let (kind, _) = kind.ok_or_else(|| self.bad("why", &why, &format!("one of {}", known())))?;
                Failure::Refused { stage: self.stage("stage", &stage)?, kind: *kind, reason }
            }
            SavedFailure::Unsupported { stage, reason } => {
                Failure::Unsupported { stage: self.stage("stage", &stage)?, reason }
            }
            SavedFailure::Panic { place } => Failure::Panic { place },
            SavedFailure::Stopped { stage, why } => {
                let known = || Stop::ALL.map(Stop::name).join(", ");
                let stop =
                    Stop::from_name(&why).ok_or_else(|| self.bad("why", &why, &format!("one of {}", known())))?;
                Failure::Stopped(Stopped { stage: self.stage("stage", &stage)?, stop })
            }
        })
    }
}

fn content(path: &Path, expected: &'static str) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => ReadError::NoFile { path: path.to_owned(), expected },
        _ => ReadError::Io { path: path.to_owned(), cause },
    })
}

fn program(path: &Path, expected: &'static str) -> Result<Shader, ReadError> {
    content(path, expected)?;
    let mut programs = ir3_programs::input::load(path, None)?;
    match programs.pop().map(|named| named.program) {
        Some(Snapshot::Nir(shader)) => Ok(*shader),
        _ => Err(ReadError::NoFile { path: path.to_owned(), expected }),
    }
}

/// Reads the environment, if there is one.
fn env(path: &Path) -> Result<Option<Env>, ReadError> {
    let text = match content(path, "an input") {
        Ok(text) => text,
        Err(ReadError::NoFile { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    Env::from_json(&text).map(Some).map_err(|cause| ReadError::Json { path: path.to_owned(), cause })
}
